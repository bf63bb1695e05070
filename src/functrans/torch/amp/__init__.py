"""torch.amp: mixed precision."""

from functrans.torch.amp.autocast import autocast as autocast
from functrans.torch.amp.autocast import is_autocast_enabled as is_autocast_enabled
from functrans.torch.amp.grad_scaler import GradScaler as GradScaler
