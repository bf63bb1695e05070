"""NumPy's names, for what NumPy gives no hook on.

`array` and `asarray` are here because NumPy gives no hook on `np.array([traced, traced])`, `take`
because it gives none on `plain[traced]`, `vectorize` because it gives none on
np.vectorize(f)(traced), and the constructors because arrays of NumPy's own cannot be assigned traced
values.
"""

from functrans.surface.creation import array as array
from functrans.surface.creation import asarray as asarray
from functrans.surface.creation import empty, full, ones, zeros
from functrans.surface.functional import vectorize as vectorize
from functrans.surface.shaping import take as take

__all__ = ["array", "asarray", "empty", "full", "ones", "take", "vectorize", "zeros"]
