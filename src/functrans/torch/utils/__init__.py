"""torch.utils: data and checkpoints."""

from functrans.torch.utils import checkpoint as checkpoint
from functrans.torch.utils import data as data
