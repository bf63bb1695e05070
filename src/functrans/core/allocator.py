"""One hint to the C library's allocator, given at import.

glibc hands the top of its heap back to the system as soon as 128 kB of it are free, and then pays page
faults to get it again. Code that makes some arrays of 50 kB, frees them and starts over, as every
transform does, can lose three quarters of its time that way. glibc stops doing so by itself once it
has seen a large block freed; so free one. The block is never touched, and costs a few microseconds.
"""

import numpy as np

_LARGE = (32 << 20) - (64 << 10)  # bytes: just under the largest block that glibc learns from


def keep_freed_memory() -> None:
    """Let the allocator keep up to 64 MB of freed memory for the next arrays."""
    np.empty(_LARGE, np.uint8)
