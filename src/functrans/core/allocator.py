"""A hint to the C library's allocator, given at import.

glibc returns the top of its heap to the system as soon as 128 kB of it are free, and then pays page faults
to get it back. Code that repeatedly allocates and frees arrays of 50 kB, as every transform does, can lose
three quarters of its time that way. glibc stops doing so once it has seen a large block freed, so we free
one. The block is never touched, and costs a few microseconds.
"""

import numpy as np

_LARGE = (32 << 20) - (64 << 10)  # bytes: just under the largest block that glibc learns from


def keep_freed_memory() -> None:
    """Make the allocator keep up to 64 MB of freed memory for the next arrays."""
    np.empty(_LARGE, np.uint8)
