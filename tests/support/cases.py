"""One table of plain NumPy functions, with the shapes and domains on which each is smooth.

Every law in test_laws.py runs over this table. A function here knows nothing of the library.
Values are drawn from a grid that avoids 0, the integers, and ties within and between arguments, so
that a kink is never within a finite-difference step; what happens at kinks is a convention, and is
pinned in test_conventions.py.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
from hypothesis import strategies as st

GRID = 256
LANES = 3


@dataclass(frozen=True)
class Reals:
    """Floating-point values strictly between `low` and `high`."""

    low: float = -2.0
    high: float = 2.0

    def sample(self, rng, shape, part):
        size = int(np.prod(shape))
        cells = rng.permutation(GRID)[:size] + part
        return (self.low + (self.high - self.low) * cells / GRID).reshape(shape)

    def sample_complex(self, rng, shape, part):
        return self.sample(rng, shape, part) + 1j * Reals(0.1, 0.6).sample(rng, shape, part)


@dataclass(frozen=True)
class Integers:
    """Integers from `low` up to but not including `high`."""

    low: int
    high: int

    def sample(self, rng, shape, part):
        return rng.integers(self.low, self.high, size=shape)


@dataclass(frozen=True)
class Booleans:
    def sample(self, rng, shape, part):
        return rng.integers(0, 2, size=shape).astype(bool)


@dataclass(frozen=True)
class Case:
    """A NumPy function and what is true of it.

    linear: linear in all its arguments together, so that it is its own derivative.
    analytic: complex arithmetic continues it, so that a complex step differentiates it.
    complexes: takes complex arguments.
    differentiable: has at least one real argument and a real result that depends on it.
    needs_values: its shapes or its control flow depend on values, so that it cannot be staged.
    """

    name: str
    function: Callable[..., Any]
    shapes: st.SearchStrategy[tuple[tuple[int, ...], ...]]
    domains: tuple[Any, ...]
    linear: bool = False
    analytic: bool = False
    complexes: bool = False
    differentiable: bool = True
    needs_values: bool = False

    @property
    def real_positions(self):
        return tuple(i for i, domain in enumerate(self.domains) if isinstance(domain, Reals))

    def sample(self, rng, shapes, complexes=False):
        """One array for each argument."""
        args = []
        for i, (domain, shape) in enumerate(zip(self.domains, shapes, strict=True)):
            part = (i + 1) / (len(shapes) + 1)
            draw = (
                domain.sample_complex if complexes and isinstance(domain, Reals) else domain.sample
            )
            args.append(np.asarray(draw(rng, shape, part)))
        return tuple(args)

    def of_reals(self, args):
        """The function of the real arguments alone, and those arguments."""
        positions = self.real_positions

        def function(*reals):
            full = list(args)
            for position, value in zip(positions, reals, strict=True):
                full[position] = value
            return self.function(*full)

        return function, tuple(args[i] for i in positions)


CASES: list[Case] = []


def add(name, function, shapes, *domains, table=CASES, **facts):
    """Enter a case; `shapes` is a strategy or a tuple of fixed shapes; domains default to Reals."""
    if isinstance(shapes, tuple):
        domains = domains or (Reals(),) * len(shapes)
        shapes = st.just(shapes)
    if facts.get("linear"):
        facts = {"analytic": True, "complexes": True} | facts
    table.append(Case(name, function, shapes, domains or (Reals(),), **facts))


def sides(count, low=1, high=3):
    """The shape of one argument of rank `count`."""
    return st.tuples(*[st.integers(low, high)] * count).map(lambda shape: (shape,))


ANY_SHAPE = hnp.array_shapes(min_dims=0, max_dims=3, min_side=1, max_side=3).map(
    lambda shape: (shape,)
)


def broadcastable(count):
    return hnp.mutually_broadcastable_shapes(num_shapes=count, max_dims=3, max_side=3).map(
        lambda drawn: drawn.input_shapes
    )


# --- elementary functions of one argument --------------------------------------------------------

ANALYTIC_UNARY = {
    "negative": (np.negative, Reals()),
    "positive": (np.positive, Reals()),
    "exp": (np.exp, Reals()),
    "exp2": (np.exp2, Reals()),
    "expm1": (np.expm1, Reals()),
    "log": (np.log, Reals(0.2, 3.0)),
    "log2": (np.log2, Reals(0.2, 3.0)),
    "log10": (np.log10, Reals(0.2, 3.0)),
    "log1p": (np.log1p, Reals(-0.7, 3.0)),
    "sqrt": (np.sqrt, Reals(0.2, 3.0)),
    "square": (np.square, Reals()),
    "reciprocal": (np.reciprocal, Reals(0.3, 3.0)),
    "sin": (np.sin, Reals()),
    "cos": (np.cos, Reals()),
    "tan": (np.tan, Reals(-1.2, 1.2)),
    "arcsin": (np.arcsin, Reals(-0.8, 0.8)),
    "arccos": (np.arccos, Reals(-0.8, 0.8)),
    "arctan": (np.arctan, Reals()),
    "sinh": (np.sinh, Reals()),
    "cosh": (np.cosh, Reals()),
    "tanh": (np.tanh, Reals()),
    "arcsinh": (np.arcsinh, Reals()),
    "arccosh": (np.arccosh, Reals(1.3, 3.0)),
    "arctanh": (np.arctanh, Reals(-0.8, 0.8)),
}
for name, (function, domain) in ANALYTIC_UNARY.items():
    add(name, function, ANY_SHAPE, domain, analytic=True, complexes=True)

REAL_UNARY = {
    "cbrt": (np.cbrt, Reals(0.2, 3.0)),
    "cbrt of negative": (np.cbrt, Reals(-3.0, -0.2)),
    "deg2rad": (np.deg2rad, Reals(-90, 90)),
    "radians": (np.radians, Reals(-90, 90)),
    "rad2deg": (np.rad2deg, Reals()),
    "degrees": (np.degrees, Reals()),
    "fabs": (np.fabs, Reals()),
    "modf": (np.modf, Reals(0.1, 0.9)),
    "modf of negative": (np.modf, Reals(-2.9, -2.1)),
    "frexp": (np.frexp, Reals(1.1, 1.9)),
}
for name, (function, domain) in REAL_UNARY.items():
    add(name, function, ANY_SHAPE, domain)

add("absolute", np.absolute, ANY_SHAPE, complexes=True)
add("abs()", abs, ANY_SHAPE, complexes=True)
add("conjugate", np.conjugate, ANY_SHAPE, complexes=True)
add("conj", np.conj, ANY_SHAPE, complexes=True)
add("real", lambda x: x.real, ANY_SHAPE, complexes=True)
add("imag", lambda x: x.imag * x, ANY_SHAPE, complexes=True)
add("np.real", np.real, ANY_SHAPE, complexes=True)
add("np.imag", lambda x: np.imag(x) * x, ANY_SHAPE, complexes=True)
add("angle", lambda x: np.angle(x) * x, ANY_SHAPE, complexes=True)

for function in (np.floor, np.ceil, np.trunc, np.rint, np.sign):
    add(function.__name__, function, ANY_SHAPE, differentiable=False)
    add(f"{function.__name__} times x", lambda x, f=function: f(x) * x, ANY_SHAPE)
for function in (np.isfinite, np.isinf, np.isnan, np.signbit, np.logical_not):
    add(function.__name__, function, ANY_SHAPE, differentiable=False)
add("exponent", lambda x: np.frexp(x)[1], ANY_SHAPE, Reals(0.1, 9.0), differentiable=False)
add("invert", np.invert, ANY_SHAPE, Integers(-9, 9), differentiable=False)
add("invert of bool", operator.invert, ANY_SHAPE, Booleans(), differentiable=False)

# --- elementary functions of two arguments -------------------------------------------------------

PAIR = broadcastable(2)
ANALYTIC_BINARY = {
    "multiply": (np.multiply, Reals(), Reals()),
    "divide": (np.divide, Reals(), Reals(0.4, 2.0)),
    "true_divide": (np.true_divide, Reals(), Reals(-2.0, -0.4)),
    "power": (np.power, Reals(0.3, 2.0), Reals()),
    "float_power": (np.float_power, Reals(0.3, 2.0), Reals()),
    "x * y": (operator.mul, Reals(), Reals()),
    "x / y": (operator.truediv, Reals(), Reals(0.4, 2.0)),
    "x ** y": (operator.pow, Reals(0.3, 2.0), Reals()),
}
for name, (function, *domains) in ANALYTIC_BINARY.items():
    add(name, function, PAIR, *domains, analytic=True, complexes=True)
for name, function in {
    "add": np.add,
    "subtract": np.subtract,
    "x + y": operator.add,
    "x - y": operator.sub,
}.items():
    add(name, function, PAIR, Reals(), Reals(), linear=True)

REAL_BINARY = {
    "arctan2": (np.arctan2, Reals(0.2, 2.0), Reals()),
    "arctan2 below the axis": (np.arctan2, Reals(-2.0, -0.2), Reals()),
    "hypot": (np.hypot, Reals(0.3, 2.0), Reals()),
    "logaddexp": (np.logaddexp, Reals(), Reals()),
    "logaddexp2": (np.logaddexp2, Reals(), Reals()),
    "maximum": (np.maximum, Reals(), Reals()),
    "maximum is the second": (np.maximum, Reals(-2.0, -1.0), Reals(1.0, 2.0)),
    "minimum": (np.minimum, Reals(), Reals()),
    "fmax": (np.fmax, Reals(), Reals()),
    "fmin": (np.fmin, Reals(), Reals()),
    "copysign": (np.copysign, Reals(), Reals()),
    "nextafter": (np.nextafter, Reals(), Reals()),
    "mod": (np.mod, Reals(5.2, 5.4), Reals(2.05, 2.15)),
    "mod of negative": (np.mod, Reals(-5.4, -5.2), Reals(2.05, 2.15)),
    "remainder": (np.remainder, Reals(5.2, 5.4), Reals(-2.15, -2.05)),
    "fmod": (np.fmod, Reals(5.2, 5.4), Reals(2.05, 2.15)),
    "fmod of negative": (np.fmod, Reals(-5.4, -5.2), Reals(2.05, 2.15)),
    "divmod": (np.divmod, Reals(5.2, 5.4), Reals(2.05, 2.15)),
    "x % y": (operator.mod, Reals(-5.4, -5.2), Reals(2.05, 2.15)),
    "divmod()": (divmod, Reals(5.2, 5.4), Reals(2.05, 2.15)),
    "heaviside times y": (lambda x, y: np.heaviside(x, 0.5) * y, Reals(), Reals()),
    "ldexp": (np.ldexp, Reals(), Integers(-3, 4)),
    "power with integer exponents": (np.power, Reals(), Integers(0, 5)),
    "power with negative integer exponents": (np.power, Reals(0.4, 2.0), Integers(-3, 3)),
    "multiply by integers": (np.multiply, Reals(), Integers(-4, 5)),
    "divide integers": (lambda x, n: n / x, Reals(0.4, 2.0), Integers(-4, 5)),
    "multiply by booleans": (operator.mul, Reals(), Booleans()),
}
for name, (function, *domains) in REAL_BINARY.items():
    add(name, function, PAIR, *domains)

for function in (
    np.equal,
    np.not_equal,
    np.less,
    np.less_equal,
    np.greater,
    np.greater_equal,
    np.logical_and,
    np.logical_or,
    np.logical_xor,
    np.floor_divide,
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    operator.floordiv,
):
    add(function.__name__, function, PAIR, Reals(), Reals(), differentiable=False)
add("heaviside", np.heaviside, PAIR, Reals(), Reals())
add("heaviside at 0", lambda y: np.heaviside(np.array([0.0, 1.0, 0.0]), y), ((2, 3),))
add("equal on integers", np.equal, PAIR, Integers(0, 2), Integers(0, 2), differentiable=False)
add(
    "integer arithmetic",
    lambda m, n: m * n - n // 2 + m % 3,
    PAIR,
    *[Integers(-9, 9)] * 2,
    differentiable=False,
)
for function in (
    np.bitwise_and,
    np.bitwise_or,
    np.bitwise_xor,
    np.gcd,
    np.lcm,
    operator.and_,
    operator.or_,
    operator.xor,
):
    add(function.__name__, function, PAIR, *[Integers(0, 31)] * 2, differentiable=False)
for function in (np.left_shift, np.right_shift, operator.lshift, operator.rshift):
    add(function.__name__, function, PAIR, *[Integers(0, 5)] * 2, differentiable=False)

# --- operators with constants on either side -----------------------------------------------------

CONSTANT = np.array([0.5, -1.5, 2.0])
ANALYTIC_MIXED = {
    "2 + x": (lambda x: 2 + x, Reals()),
    "2 - x": (lambda x: 2 - x, Reals()),
    "2.5 * x": (lambda x: 2.5 * x, Reals()),
    "2 / x": (lambda x: 2 / x, Reals(0.4, 2.0)),
    "2.0 ** x": (lambda x: 2.0**x, Reals()),
    "x ** 2": (lambda x: x**2, Reals()),
    "x ** 3.0": (lambda x: x**3.0, Reals()),
    "x ** -2": (lambda x: x**-2, Reals(0.4, 2.0)),
    "x ** 0": (lambda x: x**0, Reals()),
    "x ** 1": (lambda x: x**1, Reals()),
    "x ** 0.5": (lambda x: x**0.5, Reals(0.4, 2.0)),
    "-x + +x * x": (lambda x: -x + +x * x, Reals()),
    "float64 scalar * x": (lambda x: np.float64(1.5) * x, Reals()),
    "array + x": (lambda x: CONSTANT + x, Reals()),
    "array - x": (lambda x: CONSTANT - x, Reals()),
    "array * x": (lambda x: CONSTANT * x, Reals()),
    "array / x": (lambda x: CONSTANT / x, Reals(0.4, 2.0)),
    "x / array": (lambda x: x / CONSTANT, Reals()),
    "array ** x": (lambda x: np.abs(CONSTANT) ** x, Reals()),
    "x += array": (lambda x: operator.iadd(x * 1.0, CONSTANT), Reals()),
    "zeros_like": (lambda x: np.zeros_like(x) + np.ones_like(x) * x, Reals()),
}
for name, (function, domain) in ANALYTIC_MIXED.items():
    add(name, function, ((2, 3),), domain, analytic=True, complexes=True)
add("array @ x", lambda x: CONSTANT @ x, ((3, 2),), linear=True)
add("array % x", lambda x: np.full(3, 5.3) % x, ((2, 3),), Reals(2.05, 2.15))
add("x // 2 * x", lambda x: x // 2.0 * x, ((2, 3),), Reals(2.1, 3.9))
add("7 // x * x", lambda x: 7.0 // x * x, ((2, 3),), Reals(2.4, 3.4))
add("relu", lambda x: np.maximum(x, 0), ((2, 3),))
add("0.0 first relu", lambda x: np.maximum(0.0, x), ((2, 3),))
add("minimum with 0", lambda x: np.minimum(x, 0), ((2, 3),))
add("minimum of 0.0 first", lambda x: np.minimum(0.0, x), ((2, 3),))
add(
    "the same argument twice",
    lambda x: x * x * np.sin(x) / (2 + x),
    ((2, 3),),
    Reals(-1, 1),
    analytic=True,
)

# --- reductions ----------------------------------------------------------------------------------

ONE_AXIS = {
    "": {},
    "axis=None": {"axis": None},
    "axis=0": {"axis": 0},
    "axis=-1": {"axis": -1},
    "axis=1 keepdims": {"axis": 1, "keepdims": True},
    "keepdims": {"keepdims": True},
}
MANY_AXES = ONE_AXIS | {
    "axis=(0, 2)": {"axis": (0, 2)},
    "axis=(-1, 0) keepdims": {"axis": (-1, 0), "keepdims": True},
    "axis=(0, 1, 2)": {"axis": (0, 1, 2)},
    "axis=()": {"axis": ()},
}
REDUCTIONS = {
    "sum": (np.sum, {"linear": True}),
    "mean": (np.mean, {"linear": True}),
    "prod": (np.prod, {"analytic": True, "complexes": True}),
    "max": (np.max, {}),
    "min": (np.min, {}),
    "any": (np.any, {"differentiable": False}),
    "all": (np.all, {"differentiable": False}),
}
for name, (function, facts) in REDUCTIONS.items():
    for form, options in MANY_AXES.items():
        add(f"{name} {form}", lambda x, f=function, o=options: f(x, **o), sides(3), **facts)
SPREADS = {
    "var": (np.var, {"complexes": True}),
    "std": (np.std, {"complexes": True}),
}
for name, (function, facts) in SPREADS.items():
    for form, options in (
        MANY_AXES | {"ddof": {"ddof": 1}, "axis=1 ddof": {"axis": 1, "ddof": 1}}
    ).items():
        if form != "axis=()":
            add(f"{name} {form}", lambda x, f=function, o=options: f(x, **o), sides(3, 2), **facts)
for name, function in {"argmax": np.argmax, "argmin": np.argmin}.items():
    for form, options in ONE_AXIS.items():
        add(
            f"{name} {form}",
            lambda x, f=function, o=options: f(x, **o),
            sides(3),
            differentiable=False,
        )
for name, function in {"any": np.any, "all": np.all}.items():
    add(
        f"{name} of booleans",
        lambda x, f=function: f(x, axis=0),
        sides(2),
        Booleans(),
        differentiable=False,
    )
for form, options in {
    "": {},
    "axis=None": {"axis": None},
    "axis=0": {"axis": 0},
    "axis=-1": {"axis": -1},
}.items():
    add(f"cumsum {form}", lambda x, o=options: np.cumsum(x, **o), sides(3), linear=True)
    add(
        f"cumprod {form}",
        lambda x, o=options: np.cumprod(x, **o),
        sides(3),
        analytic=True,
        complexes=True,
    )

MASK = np.array([[True, False, True], [False, True, True]])
add("sum where", lambda x: np.sum(x, axis=0, where=MASK), ((2, 3),), linear=True)
add("mean where", lambda x: np.mean(x, axis=1, where=MASK), ((2, 3),), linear=True)
add("sum initial", lambda x: np.sum(x, initial=2.0), ((2, 3),), analytic=True)
add("prod initial", lambda x: np.prod(x, axis=0, initial=2.0), ((2, 3),), analytic=True)
add("max initial", lambda x: np.max(x, axis=0, initial=0.5), ((2, 3),))
add("min where", lambda x: np.min(x, axis=1, where=MASK, initial=9.0), ((2, 3),))
add("sum of a scalar", np.sum, ((),), linear=True)
add("max of a scalar", np.max, ((),))
add(
    "sum of integers", lambda n: np.sum(n, axis=0), ((2, 3),), Integers(-9, 9), differentiable=False
)
add(
    "mean of integers",
    lambda n: np.mean(n, axis=0),
    ((2, 3),),
    Integers(-9, 9),
    differentiable=False,
)
add("sum of booleans", lambda b: np.sum(b, axis=1), ((2, 3),), Booleans(), differentiable=False)
add(
    "max of integers",
    lambda n: np.max(n, axis=-1),
    ((2, 3),),
    Integers(-9, 9),
    differentiable=False,
)
add("norm", np.linalg.norm, ((4,),))
add("norm of a matrix", np.linalg.norm, ((2, 3),))
add("norm along an axis", lambda x: np.linalg.norm(x, axis=0), ((2, 3),))
add("norm keepdims", lambda x: np.linalg.norm(x, axis=-1, keepdims=True), ((2, 3),))

# --- shape operations ----------------------------------------------------------------------------

STRUCTURE = {
    "reshape": (lambda x: np.reshape(x, (4, 6)), (2, 3, 4)),
    "reshape -1": (lambda x: np.reshape(x, (3, -1)), (2, 3, 4)),
    "reshape to int": (lambda x: np.reshape(x, -1), (2, 3)),
    "reshape to scalar": (lambda x: np.reshape(x, ()), (1, 1)),
    "reshape order F": (lambda x: np.reshape(x, (4, 6), order="F"), (2, 3, 4)),
    "ravel": (np.ravel, (2, 3)),
    "transpose": (np.transpose, (2, 3, 4)),
    "transpose axes": (lambda x: np.transpose(x, (1, 2, 0)), (2, 3, 4)),
    "transpose negative axes": (lambda x: np.transpose(x, (-1, 0, -2)), (2, 3, 4)),
    "broadcast_to": (lambda x: np.broadcast_to(x, (2, 4, 3)), (4, 1)),
    "broadcast_to from scalar": (lambda x: np.broadcast_to(x, (2, 3)), ()),
    "squeeze": (np.squeeze, (1, 3, 1)),
    "squeeze axis": (lambda x: np.squeeze(x, axis=0), (1, 3, 1)),
    "squeeze axes": (lambda x: np.squeeze(x, axis=(0, -1)), (1, 3, 1)),
    "expand_dims": (lambda x: np.expand_dims(x, 1), (2, 3)),
    "expand_dims last": (lambda x: np.expand_dims(x, -1), (2, 3)),
    "expand_dims axes": (lambda x: np.expand_dims(x, (0, 2)), (2, 3)),
    "moveaxis": (lambda x: np.moveaxis(x, 0, -1), (2, 3, 4)),
    "moveaxis axes": (lambda x: np.moveaxis(x, (0, 1), (-1, 0)), (2, 3, 4)),
    "swapaxes": (lambda x: np.swapaxes(x, 0, 2), (2, 3, 4)),
    "swapaxes negative": (lambda x: np.swapaxes(x, -1, -2), (2, 3, 4)),
    "tile": (lambda x: np.tile(x, 2), (2, 3)),
    "tile reps": (lambda x: np.tile(x, (2, 1, 3)), (2, 3)),
    "tile fewer reps": (lambda x: np.tile(x, (2,)), (2, 2, 3)),
    "repeat": (lambda x: np.repeat(x, 2), (2, 3)),
    "repeat axis": (lambda x: np.repeat(x, 3, axis=0), (2, 3)),
    "repeat counts": (lambda x: np.repeat(x, [1, 0, 2], axis=-1), (2, 3)),
    "flip": (np.flip, (2, 3)),
    "flip axis": (lambda x: np.flip(x, axis=0), (2, 3)),
    "flip axes": (lambda x: np.flip(x, axis=(0, -1)), (2, 3, 2)),
    "roll": (lambda x: np.roll(x, 2), (2, 3)),
    "roll axis": (lambda x: np.roll(x, -1, axis=1), (2, 3)),
    "roll axes": (lambda x: np.roll(x, (1, 2), axis=(0, 1)), (3, 4)),
    "triu": (np.triu, (3, 4)),
    "triu k": (lambda x: np.triu(x, k=1), (2, 3, 3)),
    "tril": (np.tril, (4, 3)),
    "tril k": (lambda x: np.tril(x, k=-1), (2, 3, 3)),
    "diag of vector": (np.diag, (3,)),
    "diag of vector k": (lambda x: np.diag(x, k=-1), (3,)),
    "diag of matrix": (np.diag, (3, 4)),
    "diag of matrix k": (lambda x: np.diag(x, k=1), (3, 4)),
    "diagonal": (np.diagonal, (3, 4)),
    "diagonal offset axes": (lambda x: np.diagonal(x, offset=1, axis1=0, axis2=2), (2, 3, 4)),
    "diagonal negative offset": (
        lambda x: np.diagonal(x, offset=-1, axis1=-2, axis2=-1),
        (2, 4, 3),
    ),
    "trace": (np.trace, (3, 3)),
    "trace offset": (lambda x: np.trace(x, offset=1), (3, 4)),
    "trace axes": (lambda x: np.trace(x, axis1=1, axis2=2), (2, 3, 3)),
    "split": (lambda x: np.split(x, 3), (6,)),
    "split axis": (lambda x: np.split(x, 2, axis=1), (3, 4)),
    "split points": (lambda x: np.split(x, [1, 3], axis=-1), (2, 5)),
    "split with empty part": (lambda x: np.split(x, [2, 2], axis=0), (3, 2)),
    "array_split": (lambda x: np.array_split(x, 3), (5,)),
    "hsplit": (lambda x: np.hsplit(x, 2), (3, 4)),
    "vsplit": (lambda x: np.vsplit(x, 2), (4, 3)),
    "dsplit": (lambda x: np.dsplit(x, 2), (2, 1, 4)),
    "split and join": (lambda x: np.concatenate(np.split(x, [1, 3])[::-1]), (5,)),
    "pad": (lambda x: np.pad(x, 1), (2, 3)),
    "pad widths": (lambda x: np.pad(x, ((1, 0), (0, 2))), (2, 3)),
    "pad before after": (lambda x: np.pad(x, (1, 2)), (2, 3)),
    "pad edge": (lambda x: np.pad(x, ((1, 2), (0, 1)), mode="edge"), (2, 3)),
    "pad reflect": (lambda x: np.pad(x, ((1, 1), (2, 1)), mode="reflect"), (2, 3)),
    "pad reflect odd": (lambda x: np.pad(x, 1, mode="reflect", reflect_type="odd"), (3,)),
    "pad symmetric": (lambda x: np.pad(x, ((1, 2), (2, 1)), mode="symmetric"), (2, 3)),
    "pad wrap": (lambda x: np.pad(x, ((1, 2), (2, 4)), mode="wrap"), (2, 3)),
    "pad linear_ramp": (lambda x: np.pad(x, (2, 1), mode="linear_ramp"), (3,)),
    "pad mean": (lambda x: np.pad(x, (1, 2), mode="mean"), (2, 3)),
    "pad nothing": (lambda x: np.pad(x, 0), (2, 3)),
}
for name, (function, shape) in STRUCTURE.items():
    add(name, function, (shape,), linear=True)
add(
    "pad constant",
    lambda x: np.pad(x, 1, mode="constant", constant_values=2.0),
    ((2, 3),),
    analytic=True,
)
add(
    "pad constants",
    lambda x: np.pad(x, 1, constant_values=((1, 2), (3, 4))),
    ((2, 3),),
    analytic=True,
)
add("pad maximum", lambda x: np.pad(x, (1, 2), mode="maximum"), ((2, 3),))
add("pad minimum", lambda x: np.pad(x, (1, 0), mode="minimum"), ((2, 3),))
add("pad median", lambda x: np.pad(x, (1, 0), mode="median"), ((3, 3),))

JOINS = {
    "concatenate": (lambda x, y: np.concatenate([x, y]), (2, 3), (1, 3)),
    "concatenate axis=-1": (lambda x, y: np.concatenate((x, y), axis=-1), (2, 3), (2, 1)),
    "concatenate axis=None": (lambda x, y: np.concatenate((x, y), axis=None), (2, 3), (2,)),
    "concatenate one thing twice": (lambda x, y: np.concatenate([x, y, x]), (2,), (1,)),
    "concatenate empty": (lambda x, y: np.concatenate([x, y]), (2, 3), (0, 3)),
    "stack": (lambda x, y: np.stack([x, y]), (2, 3), (2, 3)),
    "stack axis=1": (lambda x, y: np.stack((x, y, x), axis=1), (2, 3), (2, 3)),
    "stack axis=-1": (lambda x, y: np.stack([x, y], axis=-1), (2, 3), (2, 3)),
    "stack scalars": (lambda x, y: np.stack([x, y, x]), (), ()),
    "vstack": (lambda x, y: np.vstack([x, y]), (3,), (2, 3)),
    "hstack": (lambda x, y: np.hstack([x, y]), (2, 3), (2, 1)),
    "hstack vectors": (lambda x, y: np.hstack([x, y]), (2,), (3,)),
    "dstack": (lambda x, y: np.dstack([x, y]), (2, 3), (2, 3)),
    "column_stack": (lambda x, y: np.column_stack([x, y]), (3,), (3, 2)),
}
for name, (function, *shapes) in JOINS.items():
    add(name, function, tuple(shapes), linear=True)
add(
    "concatenate with a constant",
    lambda x: np.concatenate([np.ones(2), x, [3.0]]),
    ((2,),),
    analytic=True,
)
add(
    "stack with constants",
    lambda x: np.stack([np.ones(2), x, [3.0, 4.0]], axis=1),
    ((2,),),
    analytic=True,
)
add("stack with a number", lambda x: np.stack([x[0], 1.0, x[1]]), ((2,),), analytic=True)

# --- indexing ------------------------------------------------------------------------------------

ROWS = np.array([True, False, True, True])
GRID_MASK = np.array(
    [[True, False, True], [False, False, True], [True, True, False], [False, True, False]]
)
INDEXING = {
    "x[1]": lambda x: x[1],
    "x[-1]": lambda x: x[-1],
    "x[np.int64(1)]": lambda x: x[np.int64(1)],
    "x[1, 2]": lambda x: x[1, 2],
    "x[1, 2, 0]": lambda x: x[1, 2, 0],
    "x[()]": lambda x: x[()],
    "x[...]": lambda x: x[...],
    "x[:]": lambda x: x[:],
    "x[1:3]": lambda x: x[1:3],
    "x[-3:-1]": lambda x: x[-3:-1],
    "x[::2]": lambda x: x[::2],
    "x[::-1]": lambda x: x[::-1],
    "x[3:0:-2]": lambda x: x[3:0:-2],
    "x[:, ::-1, 1]": lambda x: x[:, ::-1, 1],
    "x[2:2]": lambda x: x[2:2],
    "x[1:9]": lambda x: x[1:9],
    "x[None]": lambda x: x[None],
    "x[1:, None]": lambda x: x[1:, None],
    "x[..., None]": lambda x: x[..., None],
    "x[..., 0]": lambda x: x[..., 0],
    "x[1, ..., None, 0]": lambda x: x[1, ..., None, 0],
    "x[None, :, 1, None, ...]": lambda x: x[None, :, 1, None, ...],
    "x[[0, 2]]": lambda x: x[[0, 2]],
    "x[[0, 0, -1]]": lambda x: x[[0, 0, -1]],
    "x[array of rank 2]": lambda x: x[np.array([[0, 1, 0], [3, 3, -2]])],
    "x[array of rank 0]": lambda x: x[np.array(2)],
    "x[[]]": lambda x: x[np.array([], dtype=int)],
    "x[[0, 1], [1, 2]]": lambda x: x[[0, 1], [1, 2]],
    "x[[0, 1], [1, 2], [0, 0]]": lambda x: x[[0, 1], [1, 2], [0, 0]],
    "x[:, [0, 2]]": lambda x: x[:, [0, 2]],
    "x[..., [1, 0, 1]]": lambda x: x[..., [1, 0, 1]],
    "x[1:, [0, 1]]": lambda x: x[1:, [0, 1]],
    "x[[0, 2], 1:]": lambda x: x[[0, 2], 1:],
    "x[[0, 1], :, [1, 0]]": lambda x: x[[0, 1], :, [1, 0]],
    "x[:, 1, [1, 0]]": lambda x: x[:, 1, [1, 0]],
    "x[1, :, [1, 0]]": lambda x: x[1, :, [1, 0]],
    "x[[0, 1], None, [2, 2]]": lambda x: x[[0, 1], None, [2, 2]],
    "x[[[0], [3]], [0, 2]]": lambda x: x[[[0], [3]], [0, 2]],
    "x[np.ix_]": lambda x: x[np.ix_([0, 3], [2, 1])],
    "x[:, :, np.newaxis, [0]]": lambda x: x[:, :, np.newaxis, [0]],
    "x[mask]": lambda x: x[ROWS],
    "x[mask, 1]": lambda x: x[ROWS, 1],
    "x[mask, 1:]": lambda x: x[ROWS, 1:],
    "x[mask, [0, 1, 2]]": lambda x: x[ROWS, [0, 1, 2]],
    "x[mask of rank 2]": lambda x: x[GRID_MASK],
    "x[mask of rank 2, 0]": lambda x: x[GRID_MASK, 0],
    "x[:, mask]": lambda x: x[:, np.array([False, True, True])],
    "x[..., mask]": lambda x: x[..., np.array([False, True])],
    "x[list mask]": lambda x: x[[True, False, False, True]],
    "x[empty mask]": lambda x: x[np.zeros(4, dtype=bool)],
    "x[True]": lambda x: x[True],
    "x[0][1][0]": lambda x: x[0][1][0],
    "every element by itself": lambda x: sum(
        x[i, j, 0] * (i - j) for i in range(4) for j in range(3)
    ),
    "iteration": lambda x: sum((row * i for i, row in enumerate(x)), 0.0),
    "unpacking": lambda x: (lambda a, b, c, d: a + 2 * b - c * 0.5 + d)(*x),
    "reversed": lambda x: np.stack(list(reversed(x))),
    "len": lambda x: x * len(x),
}
for name, function in INDEXING.items():
    add(name, function, ((4, 3, 2),), linear=True)

INDEXED_BY_ARGUMENTS = {
    "x[i]": (lambda x, i: x[i], (4, 3), (5,)),
    "x[i] for scalar i": (lambda x, i: x[i], (4, 3), ()),
    "x[i] for rank 2 i": (lambda x, i: x[i], (4,), (2, 3)),
    "x[:, i]": (lambda x, i: x[:, i], (2, 4), (3,)),
    "x[i, i]": (lambda x, i: x[i, i], (4, 4), (3,)),
    "x[i, 1:]": (lambda x, i: x[i, 1:], (4, 3), (2,)),
    "x[1, i]": (lambda x, i: x[1, i], (2, 4), (2, 2)),
    "x[i, :, i]": (lambda x, i: x[i, :, i], (4, 2, 4), (3,)),
    "x[i, None]": (lambda x, i: x[i, None], (4, 2), (3,)),
    "x[..., i]": (lambda x, i: x[..., i], (2, 2, 4), (3,)),
    "x[[[0], [1]], i]": (lambda x, i: x[[[0], [1]], i], (2, 4), (3,)),
    "take": (lambda x, i: np.take(x, i), (2, 2), (3,)),
    "take axis": (lambda x, i: np.take(x, i, axis=1), (2, 4, 2), (3, 2)),
    "take scalar": (lambda x, i: np.take(x, i, axis=-1), (2, 4), ()),
    "take wrap": (lambda x, i: np.take(x, i, axis=0, mode="wrap"), (3, 2), (5,)),
    "take clip": (lambda x, i: np.take(x, i, axis=0, mode="clip"), (3, 2), (5,)),
    "take_along_axis": (lambda x, i: np.take_along_axis(x, i, axis=1), (2, 4), (2, 3)),
    "take_along_axis broadcasting": (lambda x, i: np.take_along_axis(x, i, axis=0), (4, 3), (2, 1)),
    "take_along_axis last": (lambda x, i: np.take_along_axis(x, i, axis=-1), (2, 3, 4), (2, 3, 2)),
    "take_along_axis None": (lambda x, i: np.take_along_axis(x, i, axis=None), (2, 2), (3,)),
}
for name, (function, *shapes) in INDEXED_BY_ARGUMENTS.items():
    add(name, function, tuple(shapes), Reals(), Integers(-4, 4), linear=True)

SELF_INDEXED = {
    "x[argsort]": lambda x: x[np.argsort(x[:, 0])],
    "take_along_axis argsort": lambda x: np.take_along_axis(x, np.argsort(x, axis=1), axis=1),
    "x[argmax]": lambda x: x[np.argmax(x[:, 1])],
    "x[argmin, arange]": lambda x: x[np.argmin(x, axis=0), np.arange(3)],
}
for name, function in SELF_INDEXED.items():
    add(name, function, ((4, 3),))
add("x[x > 0]", lambda x: np.sum(x[x > 0] ** 2), ((4, 3),), needs_values=True)

# --- choosing and sorting ------------------------------------------------------------------------

THREE = broadcastable(3)
add("where", np.where, THREE, Booleans(), Reals(), Reals(), linear=True)
add("where on a comparison", lambda x, y: np.where(x > y, np.sin(x), x * y), PAIR, Reals(), Reals())
add("where with a number", lambda x: np.where(x > 0, x**2, 0.0), ANY_SHAPE)
add("where with a constant mask", lambda x: np.where(MASK, x, 1.0), ((2, 3),), analytic=True)
add("clip", lambda x: np.clip(x, -0.5, 1.0), ANY_SHAPE)
add("clip below", lambda x: np.clip(x, 0.25, None), ANY_SHAPE)
add("clip above", lambda x: np.clip(x, None, 0.25), ANY_SHAPE)
add("clip to arrays", lambda x: np.clip(x, np.array([-1.0, 0.0, 0.5]), 1.0), ((2, 3),))
add("clip between arguments", np.clip, THREE, Reals(), Reals(-1.0, -0.5), Reals(0.5, 1.0))
add("clip from below", np.clip, THREE, Reals(-2.0, -1.1), Reals(-1.0, -0.5), Reals(0.5, 1.0))
add("clip from above", np.clip, THREE, Reals(1.1, 2.0), Reals(-1.0, -0.5), Reals(0.5, 1.0))
add("select", lambda x: np.select([x < -0.5, x < 0.5], [x**2, np.sin(x)]), ANY_SHAPE)
add(
    "select default",
    lambda x: np.select([x < -0.5, x < 0.5], [x**2, 2 * x], default=3.0),
    ((2, 3),),
)
add("select default argument", lambda x, y: np.select([x < y], [x * y], x), PAIR, Reals(), Reals())
add("sort", np.sort, sides(2))
add("sort axis=0", lambda x: np.sort(x, axis=0), sides(3))
add("sort axis=None", lambda x: np.sort(x, axis=None), sides(2))
add("sort stable", lambda x: np.sort(x, kind="stable"), sides(2))
add("argsort", np.argsort, sides(2), differentiable=False)
add("argsort axis=0", lambda x: np.argsort(x, axis=0), sides(3), differentiable=False)
add("argsort axis=None", lambda x: np.argsort(x, axis=None), sides(2), differentiable=False)
add("sort integers", np.sort, ((2, 4),), Integers(0, 4), differentiable=False)

# --- contractions --------------------------------------------------------------------------------

MATMUL_SHAPES = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3, 4)),
    ((2, 2, 3), (3,)),
    ((3,), (2, 3, 4)),
    ((2, 2, 3), (3, 4)),
    ((2, 3), (2, 3, 4)),
    ((2, 2, 3), (2, 3, 4)),
    ((1, 2, 3), (2, 3, 4)),
    ((2, 1, 2, 3), (3, 3, 2)),
    ((2, 1, 2, 3), (1, 3, 3, 2)),
    ((2, 1, 2, 3), (3,)),
    ((1, 3), (3, 1)),
    ((1, 1), (1, 1)),
]
BILINEAR = {"analytic": True, "complexes": True}
for shapes in MATMUL_SHAPES:
    add(f"matmul {shapes}", np.matmul, shapes, **BILINEAR)
add("x @ y", operator.matmul, ((2, 3), (3, 2)), **BILINEAR)
add("x @ x.T", lambda x: x @ x.T, ((2, 3),), **BILINEAR)

DOT_SHAPES = [
    ((), ()),
    ((), (2, 3)),
    ((2, 3), ()),
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3, 4)),
    ((2, 2, 3), (3,)),
    ((3,), (2, 3, 4)),
    ((2, 3), (2, 3, 4)),
    ((2, 2, 3), (3, 2)),
    ((2, 2, 3), (4, 3, 2)),
]
for shapes in DOT_SHAPES:
    add(f"dot {shapes}", np.dot, shapes, **BILINEAR)
INNER_SHAPES = [
    ((), ()),
    ((), (2, 3)),
    ((2, 3), ()),
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (2, 3)),
    ((2, 3), (4, 3)),
    ((2, 2, 3), (2, 3)),
]
for shapes in INNER_SHAPES:
    add(f"inner {shapes}", np.inner, shapes, **BILINEAR)
for shapes in [((2,), (3,)), ((2, 2), (3,)), ((), (3,)), ((2, 2), (1, 3))]:
    add(f"outer {shapes}", np.outer, shapes, **BILINEAR)
for shapes in [((3,), (3,)), ((2, 3), (2, 3)), ((2, 3), (6,)), ((), ())]:
    add(f"vdot {shapes}", np.vdot, shapes, complexes=True)
KRON_SHAPES = [
    ((2,), (3,)),
    ((2, 3), (2, 2)),
    ((2,), (2, 3)),
    ((2, 3), (2,)),
    ((), (2, 2)),
    ((2, 1, 2), (2, 2)),
]
for shapes in KRON_SHAPES:
    add(f"kron {shapes}", np.kron, shapes, **BILINEAR)

TENSORDOT = {
    "default": ((2, 3, 4), (3, 4, 2), {}),
    "axes=0": ((2, 3), (2,), {"axes": 0}),
    "axes=1": ((2, 3), (3, 2, 2), {"axes": 1}),
    "axes=2": ((2, 3, 2), (3, 2), {"axes": 2}),
    "one pair of ints": ((2, 3), (2, 3), {"axes": (1, 1)}),
    "lists": ((2, 3, 4), (4, 2, 3), {"axes": ([0, 1], [1, 2])}),
    "crossed lists": ((2, 3, 4), (4, 3, 2), {"axes": ([1, 0], [1, 2])}),
    "negative": ((2, 3, 4), (4, 3, 2), {"axes": ((-1, 1), (0, -2))}),
}
for name, (left, right, options) in TENSORDOT.items():
    add(
        f"tensordot {name}",
        lambda x, y, o=options: np.tensordot(x, y, **o),
        (left, right),
        **BILINEAR,
    )

EINSUM = {
    "ij,jk->ik": [(2, 3), (3, 4)],
    "ij,jk": [(2, 3), (3, 4)],
    "ji,kj": [(3, 2), (4, 3)],
    "i,i": [(3,), (3,)],
    "i,i->i": [(3,), (3,)],
    "i,j->ij": [(2,), (3,)],
    "i,j->ji": [(2,), (3,)],
    "i,j->": [(2,), (3,)],
    "bij,bjk->bik": [(2, 2, 3), (2, 3, 2)],
    "bij,bjk->b": [(2, 2, 3), (2, 3, 2)],
    "ij,ij->": [(2, 3), (2, 3)],
    "ij->ji": [(2, 3)],
    "ji": [(2, 3)],
    "ij->": [(2, 3)],
    "ij->j": [(2, 3)],
    "ijk->kj": [(2, 3, 4)],
    "ii": [(3, 3)],
    "ii->i": [(3, 3)],
    "ii->": [(3, 3)],
    "iij->j": [(3, 3, 2)],
    "iji->ij": [(3, 2, 3)],
    "iii->i": [(2, 2, 2)],
    "iijj->ij": [(2, 2, 3, 3)],
    "ii,i->i": [(3, 3), (3,)],
    "ii,ij->j": [(3, 3), (3, 2)],
    "ii,jj->ij": [(2, 2), (3, 3)],
    "i,ii": [(3,), (3, 3)],
    "...ij,...jk->...ik": [(2, 2, 3), (3, 2)],
    "...ij,...jk": [(2, 2, 3), (2, 3, 2)],
    "...ij,...j": [(2, 1, 2, 3), (2, 3)],
    "...,...": [(2, 3), (3,)],
    "...i->i...": [(2, 3, 4)],
    "...i->...": [(2, 3)],
    "i...->...": [(3, 2)],
    "...ii->...i": [(2, 3, 3)],
    "i...j,j...->i...": [(2, 2, 3), (3, 2)],
    "b...i,...i->b...": [(2, 1, 3), (2, 3)],
    "ij,kj,kl->il": [(2, 3), (2, 3), (2, 2)],
    "i,i,i->i": [(3,), (3,), (3,)],
    "i,ij,j": [(2,), (2, 3), (3,)],
    ",ij->ij": [(), (2, 3)],
    ",": [(), ()],
    "->": [()],
    " ij , jk -> ik ": [(2, 3), (3, 2)],
    "aB,BA->Aa": [(2, 3), (3, 2)],
    "ij,ij->ij": [(1, 3), (2, 3)],
    "ij,jk->ki": [(2, 1), (3, 2)],
    "ijkl,lk->ij": [(2, 2, 2, 3), (3, 2)],
}
for subscripts, shapes in EINSUM.items():
    for suffix, options in {"": {}, " optimized": {"optimize": True}}.items():
        if suffix and (len(shapes) < 3 or 1 in shapes[0]):
            continue
        add(
            f"einsum {subscripts}{suffix}",
            lambda *xs, s=subscripts, o=options: np.einsum(s, *xs, **o),
            tuple(shapes),
            linear=len(shapes) == 1,
            **BILINEAR,
        )
add("einsum of one thing twice", lambda x: np.einsum("ij,kj->ik", x, x), ((2, 3),), **BILINEAR)
add("einsum with a constant", lambda x: np.einsum("i,ij->j", CONSTANT, x), ((3, 2),), linear=True)

INTERLEAVED = {
    "matmul": (lambda x, y: np.einsum(x, [0, 1], y, [1, 2], [0, 2]), [(2, 3), (3, 2)]),
    "implicit": (lambda x, y: np.einsum(x, [0, 1], y, [1, 2]), [(2, 3), (3, 2)]),
    "transpose": (lambda x: np.einsum(x, [1, 0], [0, 1]), [(2, 3)]),
    "diagonal": (lambda x: np.einsum(x, [0, 0], [0]), [(3, 3)]),
    "trace": (lambda x: np.einsum(x, [0, 0]), [(3, 3)]),
    "ellipsis": (
        lambda x, y: np.einsum(x, [Ellipsis, 0], y, [0, Ellipsis], [Ellipsis]),
        [(2, 3), (3, 2)],
    ),
    "ellipsis implicit": (lambda x, y: np.einsum(x, [..., 3], y, [3]), [(2, 2, 3), (3,)]),
    "sum": (lambda x: np.einsum(x, [5, 7], []), [(2, 3)]),
    "implicit order": (lambda x: np.einsum(x, [7, 5]), [(2, 3)]),
    "three": (lambda x, y, z: np.einsum(x, [0], y, [0, 1], z, [1], []), [(2,), (2, 3), (3,)]),
}
for name, (function, shapes) in INTERLEAVED.items():
    add(f"einsum interleaved {name}", function, tuple(shapes), linear=len(shapes) == 1, **BILINEAR)

# --- methods of arrays ---------------------------------------------------------------------------

LINEAR_METHODS = {
    "sum()": lambda x: x.sum(),
    "sum(axis=0)": lambda x: x.sum(axis=0),
    "sum(1)": lambda x: x.sum(1),
    "sum((0, 1), keepdims)": lambda x: x.sum((0, 1), keepdims=True),
    "mean()": lambda x: x.mean(),
    "mean(-1)": lambda x: x.mean(-1),
    "cumsum()": lambda x: x.cumsum(),
    "cumsum(axis=1)": lambda x: x.cumsum(axis=1),
    "reshape(2, -1)": lambda x: x.reshape(2, -1),
    "reshape((6, 4))": lambda x: x.reshape((6, 4)),
    "reshape(-1)": lambda x: x.reshape(-1),
    "flatten()": lambda x: x.flatten(),
    "ravel()": lambda x: x.ravel(),
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "transpose()": lambda x: x.transpose(),
    "transpose(1, 2, 0)": lambda x: x.transpose(1, 2, 0),
    "transpose((2, 0, 1))": lambda x: x.transpose((2, 0, 1)),
    "swapaxes(0, 2)": lambda x: x.swapaxes(0, 2),
    "squeeze()": lambda x: x[:1].squeeze(),
    "squeeze(0)": lambda x: x[:1].squeeze(0),
    "repeat(2)": lambda x: x.repeat(2),
    "repeat(2, axis=1)": lambda x: x.repeat(2, axis=1),
    "take([0, 1], axis=1)": lambda x: x.take([0, 1], axis=1),
    "diagonal()": lambda x: x.diagonal(),
    "trace()": lambda x: x.trace(),
    "copy()": lambda x: x.copy(),
    "conj()": lambda x: x.conj().conj(),
    "conjugate()": lambda x: x.conjugate().conjugate(),
    "dot(constant)": lambda x: x.dot(np.arange(4.0)),
    "shape, ndim, size, dtype": lambda x: x * (x.size + x.ndim + x.shape[1]),
    "np.shape, np.ndim, np.size": lambda x: x * (np.size(x) + np.ndim(x) + np.shape(x)[-1]),
}
for name, function in LINEAR_METHODS.items():
    add(f"x.{name}", function, ((2, 3, 4),), linear=True)
add(
    "x.astype(float)",
    lambda x: x.astype(np.float64),
    ((2, 3),),
    linear=True,
    analytic=False,
    complexes=False,
)
SMOOTH_METHODS = {
    "prod()": lambda x: x.prod(),
    "prod(axis=0)": lambda x: x.prod(axis=0),
    "cumprod(axis=1)": lambda x: x.cumprod(axis=1),
}
for name, function in SMOOTH_METHODS.items():
    add(f"x.{name}", function, ((2, 3),), analytic=True, complexes=True)
OTHER_METHODS = {
    "var()": lambda x: x.var(),
    "var(axis=0, ddof=1)": lambda x: x.var(axis=0, ddof=1),
    "std()": lambda x: x.std(),
    "std(axis=-1, keepdims)": lambda x: x.std(axis=-1, keepdims=True),
    "max()": lambda x: x.max(),
    "max(axis=1)": lambda x: x.max(axis=1),
    "min()": lambda x: x.min(),
    "min(axis=0)": lambda x: x.min(axis=0),
    "clip(-0.5, 1.0)": lambda x: x.clip(-0.5, 1.0),
    "clip(min=0.25)": lambda x: x.clip(min=0.25),
}
for name, function in OTHER_METHODS.items():
    add(f"x.{name}", function, ((2, 3),))
CONSTANT_METHODS = {
    "any()": lambda x: (x > 0).any(),
    "all(axis=0)": lambda x: (x > 0).all(axis=0),
    "argmax()": lambda x: x.argmax(),
    "argmax(axis=1)": lambda x: x.argmax(axis=1),
    "argmin(axis=0)": lambda x: x.argmin(axis=0),
    "argsort()": lambda x: x.argsort(),
    "argsort(axis=0)": lambda x: x.argsort(axis=0),
    "astype(int)": lambda x: x.astype(int),
    "astype(bool)": lambda x: (x > 0).astype(np.int64),
}
for name, function in CONSTANT_METHODS.items():
    add(f"x.{name}", function, ((2, 3),), differentiable=False)
add("x.dot(y)", lambda x, y: x.dot(y), ((2, 3), (3, 2)), **BILINEAR)

DIFFERENTIABLE = [case for case in CASES if case.differentiable]
