"""The fast Hankel transform of data on a logarithmic grid, which is linear in the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.shapes import dtype_of, shape_of
from functrans.scipy.cosine_transforms import sf
from functrans.scipy.delegation import delegates, is_traced
from functrans.surface.table import as_array


def _transformed(
    name: str, a: Any, dln: Any, mu: Any, offset: Any, bias: Any, inverse: bool
) -> Any:
    """Both are D_out R C D_in, with diagonal matrices, a reversal R and a circulant C."""
    if is_traced(dln, mu, offset, bias):
        raise errors.MissingRuleError(
            f"scipy.fft.{name} has no derivative with respect to its parameters, at "
            f"{errors.user_location()}. Only its first argument may be traced."
        )
    data = as_array(a)
    if dtype_of(data).kind != "f":
        data = data.astype(np.float64)
    n = shape_of(data)[-1]
    distances = (np.arange(n) - (n - 1) / 2) * dln
    low, high = np.exp(-bias * distances), np.exp(-bias * (distances + offset))
    before, after = (1 / high, 1 / low) if inverse else (low, high)
    first = np.zeros(n)
    first[0] = 1 / before[0]
    response = (sf.ifht if inverse else sf.fht)(first, dln, mu, offset, bias)
    kernel = (response / after)[::-1]
    out = np.fft.irfft(np.fft.rfft(data * before) * np.fft.rfft(kernel), n)
    return out[..., ::-1] * after


@delegates(sf.fht)
def fht(a: Any, dln: Any, mu: Any, offset: Any = 0.0, bias: Any = 0.0) -> Any:
    """The fast Hankel transform of data a, on a grid with logarithmic spacing dln.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.fft import fht
    >>> grad(lambda a: np.sum(fht(a, 0.1, 0.0) ** 2))(np.ones(4)).round(6)
    array([2., 2., 2., 2.])
    """
    return _transformed("fht", a, dln, mu, offset, bias, False)


@delegates(sf.ifht)
def ifht(A: Any, dln: Any, mu: Any, offset: Any = 0.0, bias: Any = 0.0) -> Any:
    """The inverse of `fht`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.fft import ifht
    >>> grad(lambda a: np.sum(ifht(a, 0.1, 0.0) ** 2))(np.ones(4)).round(6)
    array([2., 2., 2., 2.])
    """
    return _transformed("ifht", A, dln, mu, offset, bias, True)
