"""NumPy's elementwise functions that are more than one primitive, or not ufuncs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans.core.dispatch import Tracer
from functrans.core.likeness import is_weak
from functrans.core.shapes import cast, dtype_of, shape_of
from functrans.core.tracer import UFUNCS, deliver, in_numpy, install_method
from functrans.core.views import is_mutable, link
from functrans.ops import access, elementwise, structure
from functrans.ops.special import bessel_i
from functrans.surface import creation
from functrans.surface.table import (
    as_array,
    as_number,
    decided,
    given,
    implements,
    into,
    refuse,
    returns_arrays,
    returns_numbers,
)


def _operand(value: Any) -> Any:
    return value if isinstance(value, (bool, int, float, complex)) else as_array(value)


def _power(x: Any, y: Any) -> Any:
    """np.power, which treats fewer exponents as special cases than ** does."""
    if isinstance(x, Tracer) and not isinstance(y, Tracer) and not np.ndim(y):
        traced: Any = x
        if traced.shape and (traced.dtype.kind in "bc" or traced.dtype == np.float16):
            y = np.full((1,) * len(traced.shape), y, np.result_type(traced.dtype, y))
    return elementwise.power(_operand(x), _operand(y))


UFUNCS[np.power] = _power


def _divmod(x: Any, y: Any) -> Any:
    return np.floor_divide(x, y), np.remainder(x, y)


UFUNCS[np.divmod] = _divmod


def _frexp(x: Any) -> Any:
    power = elementwise.exponent(x)
    return np.ldexp(x, -power), power


def _modf(x: Any) -> Any:
    if dtype_of(x).kind != "f":
        x = x.astype(np.modf(np.ones((), dtype_of(x)))[0].dtype)
    # The fraction of |x|, with the sign of x, even if it is zero.
    sign = np.copysign(dtype_of(x).type(1), x)
    size = sign * np.where(np.isinf(x), 0, x)
    return sign * (size - np.trunc(size)), np.trunc(x)


UFUNCS[np.frexp] = _frexp
UFUNCS[np.modf] = _modf
# With operators, which leave Python numbers to Python's arithmetic.
install_method("__divmod__", lambda x, y: (x // y, x % y))
install_method("__rdivmod__", lambda x, y: (y // x, y % x))


def _conjugate(x: Any) -> Any:
    if dtype_of(x).kind == "b":
        return x.astype(np.int8)
    return structure.conjugate(x) if dtype_of(x).kind == "c" else x.snapshot()


UFUNCS[np.conjugate] = _conjugate

_sign_without_derivative = UFUNCS[np.sign]


@returns_numbers
def _sign(x: Any) -> Any:
    """The sign of a real number; for a complex one z / |z|, which has a derivative."""
    sign = _sign_without_derivative(x)
    if dtype_of(x).kind != "c":
        return sign
    length = abs(x)
    smooth = np.isfinite(length) & (length != 0)
    x, length = np.where(smooth, x, 1), np.where(smooth, length, 1)
    return np.where(smooth, elementwise.from_parts(x.real / length, x.imag / length), sign)


UFUNCS[np.sign] = _sign


@implements(np.real)
def real(val: Any) -> Any:
    if dtype_of(val).kind != "c":
        return val
    return link(elementwise.real(val), access.RealView(), val)


@implements(np.imag)
def imag(val: Any) -> Any:
    if dtype_of(val).kind == "c":
        return link(elementwise.imag(val), access.ImagView(), val)
    if not shape_of(val) and not is_mutable(val):  # a number, NumPy's or Python's
        zero = dtype_of(val).type(0)
        return zero.item() if is_weak(val) else zero
    return link(np.zeros_like(val), access.ReadOnlyView(np.zeros_like), val)


@implements(np.angle)
def angle(z: Any, deg: bool = False) -> Any:
    result = elementwise.angle(as_array(z))
    return np.degrees(result) if deg else result


@implements(np.clip)
def clip(
    a: Any,
    a_min: Any = None,
    a_max: Any = None,
    out: Any = None,
    *,
    min: Any = None,
    max: Any = None,
    **options: Any,
) -> Any:
    refuse("clip", **options)
    if out is not None:
        return deliver(out, clip(a, a_min, a_max, min=min, max=max), "numpy.clip")
    low = given(min) if given(a_min) is None else a_min
    high = given(max) if given(a_max) is None else a_max
    x = as_array(a)
    if low is None and high is None:
        return creation.copy(x)
    if high is None:
        return elementwise.clip_low(x, _operand(low))
    if low is None:
        return elementwise.clip_high(x, _operand(high))
    return elementwise.clip(x, _operand(low), _operand(high))


@implements(np.round, np.around)
def round_(a: Any, decimals: int = 0, out: Any = None) -> Any:
    if out is not None:
        return into(out, round_(a, decimals))
    x = as_array(a)
    kind = dtype_of(x).kind
    if kind in "iu" and decimals >= 0:
        return creation.copy(x)
    if kind == "c":
        return elementwise.from_parts(round_(x.real, decimals), round_(x.imag, decimals))
    if decimals == 0:
        return np.rint(x)
    # A power of ten is exact, its inverse is not.
    scale = 10.0 ** abs(decimals)
    rounded = np.rint(x * scale) / scale if decimals > 0 else np.rint(x / scale) * scale
    if kind == "f" and decimals > np.finfo(dtype_of(x)).precision:
        # Most numbers have no digits so far behind the point: they stay, with their derivatives.
        keeps = np.spacing(np.abs(x)) >= 1 / scale
        rounded = rounded + np.where(keeps, x - structure.stop_gradient(x), 0.0)
    return rounded.astype(dtype_of(x)) if kind in "iu" else rounded


@implements(np.fix)
def fix(x: Any, out: Any = None) -> Any:
    refuse("fix", out=out)
    return np.trunc(x)


@implements(np.nan_to_num)
def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    x = as_array(x)
    result = as_number(_nan_to_num(x, nan, posinf, neginf))
    if copy or not (isinstance(x, Tracer) and is_mutable(x)):
        return result
    return access.assign_all(x, result)


def _nan_to_num(x: Any, nan: Any, posinf: Any, neginf: Any) -> Any:
    if dtype_of(x).kind in "biu":
        return creation.copy(x)
    if dtype_of(x).kind == "c":
        real, imag = (_nan_to_num(part, nan, posinf, neginf) for part in (x.real, x.imag))
        return elementwise.from_parts(real, imag)
    limits = np.finfo(dtype_of(x))
    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf
    finite = np.where(np.isnan(x), nan, x)
    result = np.where(finite == np.inf, high, np.where(finite == -np.inf, low, finite))
    return cast(result, dtype_of(x))


# sin(y)/y = 1 - y^2/3! + y^4/5! - ...
_SINC_SERIES = [(-1) ** k / math.factorial(2 * k + 1) for k in range(12)]


@implements(np.sinc)
@returns_numbers
def sinc(x: Any) -> Any:
    y = np.pi * as_array(x)
    near = abs(y) < 1
    # Near 0 use the series, so that derivatives of every order are accurate there.
    square = np.where(near, y * y, 0)
    series: Any = 0.0
    for coefficient in reversed(_SINC_SERIES):
        series = series * square + coefficient
    far = np.where(near, 1.0, y)
    return np.where(near, series, np.sin(far) / far)


@implements(np.i0)
def i0(x: Any) -> Any:
    values = as_array(x)
    if dtype_of(values).kind == "c":
        raise TypeError("i0 not supported for complex values")
    return bessel_i(0)(values if dtype_of(values).kind == "f" else values.astype(np.float64))


@implements(np.isclose)
def isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    x, y = as_array(a), as_array(b)
    y = cast(y, np.result_type(dtype_of(y), 1.0))
    close = (abs(x - y) <= atol + rtol * abs(y)) & np.isfinite(y) | (x == y)
    return close | (np.isnan(x) & np.isnan(y)) if equal_nan else close


@implements(np.allclose)
def allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    return bool(np.all(isclose(a, b, rtol, atol, equal_nan)))


@implements(np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    x, y = as_array(a1), as_array(a2)
    if x.shape != y.shape:
        return False
    equal = x == y
    return bool(np.all(equal | (np.isnan(x) & np.isnan(y)) if equal_nan else equal))


@implements(np.array_equiv)
def array_equiv(a1: Any, a2: Any) -> Any:
    x, y = as_array(a1), as_array(a2)
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return False
    return bool(np.all(x == y))


@implements(np.isreal)
def isreal(x: Any) -> Any:
    return imag(as_array(x)) == 0


@implements(np.iscomplex)
def iscomplex(x: Any) -> Any:
    return imag(in_numpy(as_array(x))) != 0


@implements(np.isposinf)
def isposinf(x: Any, out: Any = None) -> Any:
    refuse("isposinf", out=out)
    return np.isinf(x) & ~np.signbit(x)


@implements(np.isneginf)
def isneginf(x: Any, out: Any = None) -> Any:
    refuse("isneginf", out=out)
    return np.isinf(x) & np.signbit(x)


@implements(np.real_if_close)
@returns_arrays
def real_if_close(a: Any, tol: Any = 100) -> Any:
    x = as_array(a)
    if dtype_of(x).kind != "c":
        return x
    limit = tol * np.finfo(dtype_of(x)).eps if tol > 1 else tol
    close = np.all(abs(x.imag) < limit)
    what = "np.real_if_close gives real or complex values"
    return x.real if decided(close, what, "Write x.real if they should be real.") else x
