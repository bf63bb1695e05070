"""torch.autograd: backward passes, grad mode, custom functions, and gradient checks."""

from functrans.torch.autograd import forward_ad as forward_ad
from functrans.torch.autograd import function as function
from functrans.torch.autograd import functional as functional
from functrans.torch.autograd import graph as graph
from functrans.torch.autograd import profiler as profiler
from functrans.torch.autograd.anomaly import detect_anomaly as detect_anomaly
from functrans.torch.autograd.anomaly import set_detect_anomaly as set_detect_anomaly
from functrans.torch.autograd.backward_pass import backward as backward
from functrans.torch.autograd.backward_pass import grad as grad
from functrans.torch.autograd.checking import GradcheckError as GradcheckError
from functrans.torch.autograd.checking import gradcheck as gradcheck
from functrans.torch.autograd.checking import gradgradcheck as gradgradcheck
from functrans.torch.autograd.function import Function as Function
from functrans.torch.autograd.modes import enable_grad as enable_grad
from functrans.torch.autograd.modes import inference_mode as inference_mode
from functrans.torch.autograd.modes import no_grad as no_grad
from functrans.torch.autograd.modes import set_grad_enabled as set_grad_enabled
