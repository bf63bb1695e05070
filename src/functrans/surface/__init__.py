"""The NumPy surface: implementations of `np.f(x)` and `x.method()` for traced values.

Plain `import numpy as np` reaches these tables through NumPy's own protocols. Functions for which NumPy has
no hook are implemented here too; users find them under NumPy's names in `functrans.numpy`.
"""

from functrans.surface import calculus as calculus
from functrans.surface import constructors as constructors
from functrans.surface import creation as creation
from functrans.surface import editing as editing
from functrans.surface import fourier as fourier
from functrans.surface import functional as functional
from functrans.surface import grids as grids
from functrans.surface import hooked as hooked
from functrans.surface import hooked_math as hooked_math
from functrans.surface import in_place as in_place
from functrans.surface import methods as methods
from functrans.surface import norms as norms
from functrans.surface import padding as padding
from functrans.surface import polynomials as polynomials
from functrans.surface import quantiles as quantiles
from functrans.surface import scimath as scimath
from functrans.surface import searching as searching
from functrans.surface import shaping as shaping
from functrans.surface import standard as standard
from functrans.surface import statistics as statistics
from functrans.surface import ufunc_methods as ufunc_methods
