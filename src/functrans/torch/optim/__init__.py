"""torch.optim: optimizers."""

from functrans.torch.optim import lr_scheduler as lr_scheduler
from functrans.torch.optim.first_order import SGD as SGD
from functrans.torch.optim.first_order import Adadelta as Adadelta
from functrans.torch.optim.first_order import Adagrad as Adagrad
from functrans.torch.optim.first_order import Adam as Adam
from functrans.torch.optim.first_order import AdamW as AdamW
from functrans.torch.optim.first_order import RMSprop as RMSprop
from functrans.torch.optim.lbfgs import LBFGS as LBFGS
from functrans.torch.optim.optimizer import Optimizer as Optimizer
