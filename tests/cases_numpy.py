"""The rest of NumPy's functions, with the shapes and domains on which each is smooth.

A function is here once or twice, with the options that change what it computes. See cases.py.
"""

from __future__ import annotations

from functools import partial

import cases
import numpy as np
from cases import BILINEAR, Booleans, Case, Integers, Reals

NUMPY_CASES: list[Case] = []
add = partial(cases.add, table=NUMPY_CASES)
MASK = np.array([[True, False, True], [False, True, True]])


def with_nan(function):
    """A function of an array in which one entry is nan, whatever its value was."""
    return lambda x: function(np.where(np.arange(x.size).reshape(x.shape) == 1, np.nan, x))


# --- methods of ufuncs ----------------------------------------------------------------------------

POSITIVE = Reals(0.4, 2.0)
FOLDS = {
    "subtract": (np.subtract, {"linear": True}),
    "divide": (np.divide, {"analytic": True, "complexes": True}),
    "logaddexp": (np.logaddexp, {}),
    "hypot": (np.hypot, {}),
    "power": (np.power, {}),
    "fmax": (np.fmax, {}),
}
for name, (ufunc, facts) in FOLDS.items():
    add(f"{name}.reduce", lambda x, f=ufunc: f.reduce(x), ((3, 2),), POSITIVE, **facts)
    add(f"{name}.accumulate", lambda x, f=ufunc: f.accumulate(x, 1), ((2, 3),), POSITIVE, **facts)
add("arctan2.outer", lambda x, y: np.arctan2.outer(x, y), ((2,), (3, 1)), POSITIVE, POSITIVE)
add("multiply.outer", lambda x, y: np.multiply.outer(x, y), ((2,), (3,)), **BILINEAR)
add(
    "hypot.reduce where initial keepdims",
    lambda x: np.hypot.reduce(x, axis=(0, 1), where=MASK, initial=0.5, keepdims=True),
    ((2, 3),),
)
add(
    "divide.reduce where initial",
    lambda x: np.divide.reduce(x, axis=1, where=MASK, initial=2.0),
    ((2, 3),),
    POSITIVE,
    analytic=True,
)
add(
    "minimum.reduce where initial",
    lambda x: np.minimum.reduce(x, axis=0, where=MASK, initial=9.0),
    ((2, 3),),
)
add("add.reduceat", lambda x: np.add.reduceat(x, [0, 2, 1], axis=1), ((2, 4),), linear=True)
add("maximum.reduceat", lambda x: np.maximum.reduceat(x, [3, 0, 2]), ((4, 2),))
add("maximum.accumulate", np.maximum.accumulate, ((5, 2),))
add("minimum.accumulate", lambda x: np.minimum.accumulate(x, axis=1), ((2, 4),))
add(
    "logical_xor.reduce",
    lambda x: np.logical_xor.reduce(x > 0, axis=1),
    ((3, 4),),
    differentiable=False,
)
add(
    "bitwise_or.accumulate",
    lambda n: np.bitwise_or.accumulate(n, axis=1),
    ((2, 4),),
    Integers(0, 31),
    differentiable=False,
)

# --- reductions that pass over nan ----------------------------------------------------------------

for name, (function, facts) in {
    "nansum": (np.nansum, {}),
    "nanmean": (np.nanmean, {}),
    "nanprod": (np.nanprod, {}),
    "nanmax": (np.nanmax, {}),
    "nanmin": (np.nanmin, {}),
    "nanvar": (np.nanvar, {}),
    "nanstd": (np.nanstd, {}),
    "nanmedian": (np.nanmedian, {}),
    "nancumsum": (np.nancumsum, {}),
    "nancumprod": (np.nancumprod, {}),
    "nanargmax": (np.nanargmax, {"differentiable": False}),
    "nanargmin": (np.nanargmin, {"differentiable": False}),
}.items():
    add(f"{name} axis=1", with_nan(lambda x, f=function: f(x, axis=1)), ((2, 4),), **facts)
add("nanmean all", with_nan(np.nanmean), ((2, 4),))
add("nanvar ddof", with_nan(lambda x: np.nanvar(x, ddof=1, keepdims=True)), ((2, 4),))
add(
    "nanquantile",
    with_nan(lambda x: np.nanquantile(x, [0.2, 0.7], axis=1, method="hazen")),
    ((2, 4),),
)
add("nanpercentile", with_nan(lambda x: np.nanpercentile(x, 40.0)), ((2, 4),))

# --- quantiles ------------------------------------------------------------------------------------

METHODS = "linear midpoint averaged_inverted_cdf interpolated_inverted_cdf hazen weibull"
METHODS += " median_unbiased normal_unbiased inverted_cdf closest_observation lower higher nearest"
for method in METHODS.split():
    add(
        f"quantile {method}",
        lambda x, m=method: np.quantile(x, [0.15, 0.8], axis=0, method=m),
        ((5, 2),),
    )
add("quantile in q", lambda x, q: np.quantile(x, q), ((5,), (2,)), Reals(), Reals(0.27, 0.47))
add("percentile", lambda x: np.percentile(x, 30.0, axis=(0, 2), keepdims=True), ((2, 2, 3),))
add(
    "quantile weights",
    lambda x: np.quantile(x, 0.4, axis=1, method="inverted_cdf", weights=[1.0, 2, 3, 1]),
    ((2, 4),),
)
add("median odd", lambda x: np.median(x, axis=1), ((2, 3),))
add("median even", lambda x: np.median(x, axis=(0, -1), keepdims=True), ((2, 3, 2),))

# --- options of reductions ------------------------------------------------------------------------

add(
    "cumulative_sum",
    lambda x: np.cumulative_sum(x, axis=1, include_initial=True),
    ((2, 3),),
    linear=True,
)
add("cumulative_prod", np.cumulative_prod, ((4,),), analytic=True, complexes=True)
add("ptp", lambda x: np.ptp(x, axis=1, keepdims=True), ((2, 3),))
add("mean dtype", lambda x: np.mean(x, axis=0, dtype=np.float64), ((2, 3),))
add("var where", lambda x: np.var(x, axis=1, where=MASK, ddof=0.5), ((2, 3),))
add("std where keepdims", lambda x: np.std(x, axis=1, where=MASK, keepdims=True), ((2, 3),))
add("prod where", lambda x: np.prod(x, axis=0, where=MASK, initial=3.0), ((2, 3),), analytic=True)
add("max where initial", lambda x: np.max(x, where=MASK, initial=-9.0, keepdims=True), ((2, 3),))
add(
    "any where",
    lambda b: np.any(b, axis=0, where=MASK),
    ((2, 3),),
    Booleans(),
    differentiable=False,
)
add(
    "count_nonzero",
    lambda b: np.count_nonzero(b, axis=1, keepdims=True),
    ((2, 3),),
    Booleans(),
    differentiable=False,
)
