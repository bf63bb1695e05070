"""torch.profiler: the profiler under its newer name."""

from functrans.torch.autograd.profiler import ProfilerActivity as ProfilerActivity
from functrans.torch.autograd.profiler import profile as profile
from functrans.torch.autograd.profiler import record_function as record_function
