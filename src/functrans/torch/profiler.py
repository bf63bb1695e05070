"""torch.profiler: the newer name of the profiler."""

from functrans.torch.autograd.profiler import ProfilerActivity as ProfilerActivity
from functrans.torch.autograd.profiler import profile as profile
from functrans.torch.autograd.profiler import record_function as record_function

__all__ = ["ProfilerActivity", "profile", "record_function"]
