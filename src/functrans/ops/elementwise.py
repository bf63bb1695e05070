"""Elementwise functions: a table of partial derivatives.

Conventions at kinks: abs and clip have derivative 0 where they are not differentiable, and ties in
maximum and minimum share evenly. Complex functions: a holomorphic function has its complex
derivative; for a real function of a complex argument, u(x + iy), the entry is du/dx - i du/dy, and
the tangent is the real part of (entry * tangent of x + iy).
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from functrans.core.likeness import is_weak
from functrans.core.primitive import as_first_argument
from functrans.core.shapes import PYTHON_SCALARS, cast, dtype_of
from functrans.core.tracer import UFUNCS, in_numpy
from functrans.core.views import held
from functrans.ops.families import constant, elementwise

# Arithmetic. The Python operators are used to evaluate, because they keep Python scalars weak and
# are several times faster than ufunc calls on NumPy scalars.


_NUMPY_DIVIDES = frozenset({np.ndarray, np.float64})


def _one_over(y: Any) -> Any:
    """1 / y with NumPy's result for 0.0, where Python would raise an exception."""
    if type(y) not in PYTHON_SCALARS or y:
        return 1 / in_numpy(y)
    return (
        np.complex128(complex(math.nan, math.nan))
        if type(y) is complex
        else math.copysign(math.inf, y)
    )


add = elementwise(np.add, 1, 1, impl=operator.add, operator="add")
subtract = elementwise(np.subtract, 1, -1, impl=operator.sub, operator="sub")
multiply = elementwise(np.multiply, lambda y: y, lambda x: x, impl=operator.mul, operator="mul")
divide = elementwise(
    np.divide,
    lambda y: 1 / y if type(y) in _NUMPY_DIVIDES else _one_over(y),
    lambda out, y: -out / y,
    impl=operator.truediv,
    operator="truediv",
)
negative = elementwise(np.negative, -1, impl=operator.neg, operator="neg")
positive = elementwise(np.positive, 1, impl=operator.pos, operator="pos")


def _python_base(x: Any, y: Any) -> Any:
    """The base of a power as Python reads it: (-1.0) ** 0.5 is complex for Python's numbers."""
    if not is_weak(x) or not is_weak(y):
        return x
    base, exponent = held(x), held(y)  # None while a function is staged, for real numbers
    is_complex = type(base) is float and base < 0 and exponent is not None and exponent.real % 1
    return x + 0j if is_complex else x


def _power_by_base(x: Any, y: Any) -> Any:
    """d(x**y)/dx = y x**(y-1), and 0 at x = y = 0, where the formula would be 0 * inf."""
    x = _python_base(x, y)
    if type(x) is float:
        x = np.float64(x)  # 0.0 ** -0.5 is inf in NumPy, and an exception in Python
    if type(y) in PYTHON_SCALARS:
        if y == 2:
            return 2 * x
        if y == 0:
            return x * 0
        return y * (x if y.real >= 1 else in_numpy(x)) ** (y - 1)
    # elsewhere, y = 0 is not special: the derivative of this with respect to y is 1 / x there
    return y * in_numpy(x) ** np.where((y == 0) & (x == 0), 1, y - 1)


def _power_by_exponent(out: Any, x: Any, y: Any) -> Any:
    """d(x**y)/dy = x**y log x, and 0 at x = 0, which is the limit for y > 0."""
    x = _python_base(x, y)
    if type(x) is float:
        x = np.float64(x)
    return out * np.log(np.where(x == 0, 1, x))


power = elementwise(
    np.power,
    _power_by_base,
    _power_by_exponent,
    impl=operator.pow,
    operator="pow",
)
float_power = elementwise(
    np.float_power,
    _power_by_base,
    _power_by_exponent,
)
# x = floor(x / y) y + remainder, and the floor is locally constant.
remainder = elementwise(
    np.remainder, 1, lambda x, y: -np.floor_divide(x, y), impl=operator.mod, operator="mod"
)
fmod = elementwise(np.fmod, 1, lambda x, y: -np.trunc(x / y))
square = elementwise(np.square, lambda x: 2 * x)
reciprocal = elementwise(np.reciprocal, lambda out: -out * out)

# Roots, exponentials and logarithms.

sqrt = elementwise(np.sqrt, lambda out: 0.5 / out)
cbrt = elementwise(np.cbrt, lambda out: 1 / (3 * out * out))
exp = elementwise(np.exp, lambda out: out)
exp2 = elementwise(np.exp2, lambda out: out * math.log(2))
expm1 = elementwise(np.expm1, lambda out: out + 1)
log = elementwise(np.log, lambda x: 1 / x)
log2 = elementwise(np.log2, lambda x: 1 / (x * math.log(2)))
log10 = elementwise(np.log10, lambda x: 1 / (x * math.log(10)))
log1p = elementwise(np.log1p, lambda x: 1 / (1 + x))


def _softmax_weight(x: Any, y: Any, out: Any, exponential: Any) -> Any:
    """exp(x - out), the weight of x in log(exp x + exp y). Infinities share it if they are equal."""
    infinite = (x == out) & np.isinf(out)
    share = np.where(infinite & (x == y), 0.5, 1).astype(dtype_of(out))
    return share * exponential(np.where(infinite, 0, x - np.where(infinite, 0, out)))


logaddexp = elementwise(
    np.logaddexp,
    lambda out, x, y: _softmax_weight(x, y, out, np.exp),
    lambda out, x, y: _softmax_weight(y, x, out, np.exp),
)
logaddexp2 = elementwise(
    np.logaddexp2,
    lambda out, x, y: _softmax_weight(x, y, out, np.exp2),
    lambda out, x, y: _softmax_weight(y, x, out, np.exp2),
)

# Trigonometric and hyperbolic functions.

sin = elementwise(np.sin, lambda x: np.cos(x))
cos = elementwise(np.cos, lambda x: -np.sin(x))
tan = elementwise(np.tan, lambda out: 1 + out * out)


def _arcsin_slope(x: Any) -> Any:
    """1 / sqrt(1 - x^2); for complex x on the branch of arcsin, including the cuts beyond 1 and -1."""
    if dtype_of(x).kind == "c":
        return 1 / (np.sqrt(-(x - 1)) * np.sqrt(1 + x))
    return 1 / np.sqrt(1 - x * x)


arcsin = elementwise(np.arcsin, lambda x: _arcsin_slope(x))
arccos = elementwise(np.arccos, lambda x: -_arcsin_slope(x))
arctan = elementwise(np.arctan, lambda x: 1 / (1 + x * x))
sinh = elementwise(np.sinh, lambda x: np.cosh(x))
cosh = elementwise(np.cosh, lambda x: np.sinh(x))
tanh = elementwise(np.tanh, lambda out: 1 - out * out)
arcsinh = elementwise(np.arcsinh, lambda x: 1 / np.sqrt(x * x + 1))
# sqrt(x-1) sqrt(x+1), not sqrt(x*x - 1): the same branch as arccosh in the complex plane.
arccosh = elementwise(np.arccosh, lambda x: 1 / (np.sqrt(x - 1) * np.sqrt(x + 1)))
arctanh = elementwise(np.arctanh, lambda x: 1 / (1 - x * x))
arctan2 = elementwise(
    np.arctan2, lambda x, y: y / (x * x + y * y), lambda x, y: -(x / (x * x + y * y))
)
deg2rad = elementwise(np.deg2rad, lambda: math.pi / 180)
rad2deg = elementwise(np.rad2deg, lambda: 180 / math.pi)
UFUNCS[np.radians] = deg2rad
UFUNCS[np.degrees] = rad2deg


def safe_ratio(one: Any, other: Any) -> Any:
    """one / other, and 0 where other is 0, without a NumPy warning."""
    if type(other) is np.float64 and isinstance(one, float):  # the norm of one vector
        return one / other if other else np.float64(0)
    return np.where(other == 0, 0, one / np.where(other == 0, 1, other))


hypot = elementwise(np.hypot, lambda out, x: safe_ratio(x, out), lambda out, y: safe_ratio(y, out))

# Absolute value, sign, and the larger of two.


def _sign(out: Any, x: Any) -> Any:
    return safe_ratio(np.conj(x), out) if dtype_of(x).kind == "c" else np.sign(x)


absolute = elementwise(np.absolute, lambda out, x: _sign(out, x), impl=operator.abs, operator="abs")
fabs = elementwise(np.fabs, lambda x: np.sign(x))


def _share(wins: Any, ties: Any, like: Any) -> Any:
    """1 where this argument wins, 1/2 where both are equal, 0 elsewhere."""
    if type(ties) is np.ndarray and not ties.any():
        return wins  # which is cheaper
    return cast(0.5 * ties + wins, dtype_of(like))


_larger = (lambda x, y: _share(x > y, x == y, x), lambda x, y: _share(y > x, x == y, y))
_smaller = (lambda x, y: _share(x < y, x == y, x), lambda x, y: _share(y < x, x == y, y))
maximum = elementwise(np.maximum, *_larger)
minimum = elementwise(np.minimum, *_smaller)
# fmax and fmin return the other argument where one is nan, and so does their derivative.
fmax = elementwise(
    np.fmax,
    lambda x, y: _share((x > y) | np.isnan(y), x == y, x),
    lambda x, y: _share((y > x) | np.isnan(x), x == y, y),
)
fmin = elementwise(
    np.fmin,
    lambda x, y: _share((x < y) | np.isnan(y), x == y, x),
    lambda x, y: _share((y < x) | np.isnan(x), x == y, y),
)
# torch's relu, whose derivative at 0 is 0.
relu = elementwise(None, lambda x: x > 0, impl=lambda x: np.maximum(x, 0), name="relu")
copysign = elementwise(np.copysign, lambda x, y: np.copysign(1.0, x) * np.copysign(1.0, y), None)
clip = elementwise(
    None,
    lambda x, y, z: (x > y) & (x < z),
    lambda x, y, z: (x <= y) & (y < z),
    lambda x, y, z: (x >= z) | (y >= z),
    impl=np.clip,
    name="clip",
    views=False,
)
# With one limit, clip is np.maximum or np.minimum in NumPy; the derivative at the limit stays that of clip.
clip_low = elementwise(
    None, lambda x, y: x > y, lambda x, y: x <= y, impl=np.maximum, name="clip_low"
)
clip_high = elementwise(
    None, lambda x, y: x < y, lambda x, y: x >= y, impl=np.minimum, name="clip_high"
)
# The length of a vector from its squared length; its subgradient at 0 is 0.
root_of_squares = elementwise(
    None, lambda out: safe_ratio(0.5, out), impl=np.sqrt, name="root_of_squares"
)
ldexp = elementwise(np.ldexp, lambda y: np.exp2(y), None)
exponent = elementwise(None, None, impl=lambda x: np.frexp(x)[1], name="exponent")
nextafter = elementwise(np.nextafter, 1, None)
heaviside = elementwise(np.heaviside, None, lambda x: x == 0)

# Real functions of complex numbers.

real = elementwise(None, 1, impl=np.real, name="real", views=True, form=as_first_argument)
imag = elementwise(
    None,
    lambda x: -1j if dtype_of(x).kind == "c" else 0.0,
    impl=np.imag,
    name="imag",
    views=True,
    form=as_first_argument,
)
angle = elementwise(
    None,
    lambda x: -1j * np.conj(x) / (x * np.conj(x)).real if dtype_of(x).kind == "c" else 0.0,
    impl=np.angle,
    name="angle",
)


def _from_parts(x: Any, y: Any) -> Any:
    out = np.empty(
        np.broadcast_shapes(np.shape(x), np.shape(y)), np.result_type(x, y, np.complex64)
    )
    out.real, out.imag = x, y
    return out[()]


# x + iy, and not x + 1j * y: 1j times an infinite y has a real part that is nan.
from_parts = elementwise(None, 1, lambda: 1j, impl=_from_parts, name="from_parts")

# No derivative: comparisons, logic, bits, rounding, and tests of floating point numbers.

greater = constant(np.greater, 2, impl=operator.gt, operator="gt")
greater_equal = constant(np.greater_equal, 2, impl=operator.ge, operator="ge")
less = constant(np.less, 2, impl=operator.lt, operator="lt")
less_equal = constant(np.less_equal, 2, impl=operator.le, operator="le")
equal = constant(np.equal, 2, impl=operator.eq, operator="eq")
not_equal = constant(np.not_equal, 2, impl=operator.ne, operator="ne")
floor_divide = constant(np.floor_divide, 2, impl=operator.floordiv, operator="floordiv")
bitwise_and = constant(np.bitwise_and, 2, impl=operator.and_, operator="and")
bitwise_or = constant(np.bitwise_or, 2, impl=operator.or_, operator="or")
bitwise_xor = constant(np.bitwise_xor, 2, impl=operator.xor, operator="xor")
left_shift = constant(np.left_shift, 2, impl=operator.lshift, operator="lshift")
right_shift = constant(np.right_shift, 2, impl=operator.rshift, operator="rshift")
invert = constant(np.invert, 1, impl=operator.invert, operator="invert")
bitwise_count = constant(np.bitwise_count, 1)
logical_not = constant(np.logical_not, 1)
isnan = constant(np.isnan, 1)
isinf = constant(np.isinf, 1)
isfinite = constant(np.isfinite, 1)
signbit = constant(np.signbit, 1)
sign = constant(np.sign, 1)
floor = constant(np.floor, 1)
ceil = constant(np.ceil, 1)
trunc = constant(np.trunc, 1)
rint = constant(np.rint, 1)
spacing = constant(np.spacing, 1)
logical_and = constant(np.logical_and, 2)
logical_or = constant(np.logical_or, 2)
logical_xor = constant(np.logical_xor, 2)
gcd = constant(np.gcd, 2)
lcm = constant(np.lcm, 2)
