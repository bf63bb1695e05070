"""What `checkpoint` keeps beside the arguments; see `functrans.checkpoint`."""

from functrans.transforms.checkpointing import save_matmuls, save_names, save_nothing

__all__ = ["save_matmuls", "save_names", "save_nothing"]
