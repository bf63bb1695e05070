"""Machine code by llvmlite, the extra `jit`; nothing outside of this package imports llvmlite."""
