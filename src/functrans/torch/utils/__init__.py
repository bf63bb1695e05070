"""torch.utils: data loading and checkpointing."""

from functrans.torch.utils import checkpoint as checkpoint
from functrans.torch.utils import data as data
