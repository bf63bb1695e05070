"""What the ufuncs of scipy.special mean on traced values.

This package is loaded when the first of them meets a traced value, so that SciPy is not imported before
it is used. Each file is a table of derivatives; a ufunc that is in none of them works under `vmap` and
in graphs, and differentiating it is an error.
"""

import numpy as _np
from scipy import special as _special

from functrans.core.tracer import UFUNCS as _UFUNCS
from functrans.scipy.rules import bessel as bessel
from functrans.scipy.rules import elementary as elementary
from functrans.scipy.rules import elliptic as elliptic
from functrans.scipy.rules import errors_and_integrals as errors_and_integrals
from functrans.scipy.rules import gamma as gamma
from functrans.scipy.rules import polynomials as polynomials
from functrans.scipy.rules import probability as probability
from functrans.scipy.rules.family import UNKNOWN as _UNKNOWN
from functrans.scipy.rules.family import rule as _rule
from functrans.scipy.rules.family import several as _several

for _ufunc in vars(_special).values():
    if isinstance(_ufunc, _np.ufunc) and _ufunc not in _UFUNCS:
        (_rule if _ufunc.nout == 1 else _several)(_ufunc, *[_UNKNOWN] * _ufunc.nin)
