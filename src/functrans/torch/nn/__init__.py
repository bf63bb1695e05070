"""torch.nn: building blocks of models. `nn.functional` has them as functions."""

from functrans.torch.nn import functional as functional
from functrans.torch.nn import init as init
from functrans.torch.nn import utils as utils
from functrans.torch.nn.modules.activations import *  # noqa: F403
from functrans.torch.nn.modules.attention import *  # noqa: F403
from functrans.torch.nn.modules.containers import *  # noqa: F403
from functrans.torch.nn.modules.layers import *  # noqa: F403
from functrans.torch.nn.modules.losses import *  # noqa: F403
from functrans.torch.nn.modules.module import Module as Module
from functrans.torch.nn.modules.normalization import *  # noqa: F403
from functrans.torch.nn.modules.recurrent import *  # noqa: F403
from functrans.torch.nn.modules.windows import *  # noqa: F403
from functrans.torch.nn.parameter import Parameter as Parameter
