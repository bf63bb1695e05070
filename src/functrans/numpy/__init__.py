"""NumPy's names for traced values: what `np.f(x)` and `x.method()` mean, and what NumPy cannot hook.

Plain `import numpy as np` reaches these tables through NumPy's own protocols. `array` and `asarray`
are here as functions because NumPy gives no hook on `np.array([traced, traced])`, `take` because it
gives none on `plain[traced]`, and `vectorize` because it gives none on np.vectorize(f)(traced).
"""

from functrans.numpy import calculus as calculus
from functrans.numpy import editing as editing
from functrans.numpy import fourier as fourier
from functrans.numpy import grids as grids
from functrans.numpy import in_place as in_place
from functrans.numpy import methods as methods
from functrans.numpy import norms as norms
from functrans.numpy import padding as padding
from functrans.numpy import polynomials as polynomials
from functrans.numpy import quantiles as quantiles
from functrans.numpy import scimath as scimath
from functrans.numpy import searching as searching
from functrans.numpy import statistics as statistics
from functrans.numpy import ufunc_methods as ufunc_methods
from functrans.numpy.creation import array as array
from functrans.numpy.creation import asarray as asarray
from functrans.numpy.creation import empty, full, ones, zeros
from functrans.numpy.functional import vectorize as vectorize
from functrans.numpy.shaping import take as take

__all__ = ["array", "asarray", "empty", "full", "ones", "take", "vectorize", "zeros"]
