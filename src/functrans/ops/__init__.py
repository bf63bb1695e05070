"""The primitives, each with all its rules in one place, one file per family.

The families that NumPy's functions are made of are imported here, so that all their primitives are known by
name. The others are imported by the code that needs them.
"""

from functrans.ops import access as access
from functrans.ops import collective as collective
from functrans.ops import contraction as contraction
from functrans.ops import convolution as convolution
from functrans.ops import determinant as determinant
from functrans.ops import elementwise as elementwise
from functrans.ops import factorization as factorization
from functrans.ops import fourier as fourier
from functrans.ops import indexing as indexing
from functrans.ops import reduction as reduction
from functrans.ops import running as running
from functrans.ops import scatter_add as scatter_add
from functrans.ops import searching as searching
from functrans.ops import singular as singular
from functrans.ops import sorting as sorting
from functrans.ops import special as special
from functrans.ops import spectral as spectral
from functrans.ops import structure as structure
