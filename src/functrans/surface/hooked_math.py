"""Hooks for the functions of `math` and `cmath`: see functrans.core.hooks.

They take numbers, and call NumPy's functions for traced ones. Where Python raises an error for a number
outside the domain, so do these, unless values are not known because a function is being staged.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from functools import reduce, wraps
from typing import Any

import numpy as np

from functrans.core.dispatch import Tracer
from functrans.core.hooks import Hook
from functrans.core.shapes import dtype_of, shape_of
from functrans.core.tracer import in_numpy
from functrans.surface.table import holds_tracer, known


def _number(x: Any, real: bool = True) -> Any:
    """A traced number as NumPy's functions take it."""
    if not isinstance(x, Tracer):
        return x
    traced: Any = in_numpy(x)
    if real and dtype_of(traced).kind == "c":
        raise TypeError("must be real number, not complex")
    if shape_of(traced) == ():
        return traced[()] if dtype_of(traced).kind in "fc" else traced.astype(float)[()]
    float(np.zeros(traced.shape))  # raises, unless this NumPy takes one entry as a number
    return _number(traced.reshape(()), real)


def _real(name: str, function: Callable[..., Any]) -> Hook:
    original = getattr(math, name)

    def traced(*args: Any) -> Any:
        if not holds_tracer(args):
            return original(*args)
        given = [_number(arg) for arg in args]
        with np.errstate(all="ignore"):
            out = function(*given)
        _check_domain(name, given, out)
        return out

    # Most calls are of plain numbers, and not to be slowed down by much.
    def of_one(x: Any, /) -> Any:
        return original(x) if type(x) is float or type(x) is int else traced(x)

    return Hook(wraps(original)(traced if name in _OF_SEVERAL else of_one), True)


_OF_SEVERAL = frozenset({"atan2", "copysign", "fmod", "hypot", "ldexp", "log", "pow", "remainder"})


def _check_domain(name: str, given: list[Any], out: Any) -> None:
    """Raise Python's errors for a result that is not finite, although the arguments are."""
    if name in _TOTAL or not given:
        return
    finite = reduce(np.logical_and, [np.isfinite(x) for x in given])
    # Lanes need to agree on the truth, not on the values.
    if known(np.logical_and(finite, np.logical_not(np.isfinite(out)))):
        undefined = (
            known(np.isnan(out)) or name.startswith("log") or name in ("pow", "atanh", "gamma")
        )
        raise ValueError("math domain error") if undefined else OverflowError("math range error")


# Functions that are finite for all finite arguments.
_TOTAL = frozenset(
    {"sin", "cos", "tan", "asinh", "atan", "atan2", "tanh", "fabs", "degrees", "radians"}
    | {
        "copysign",
        "erf",
        "erfc",
        "cbrt",
        "modf",
        "frexp",
        "hypot",
        "dist",
        "fsum",
        "prod",
        "sumprod",
    }
)


def _as_array(x: Any) -> Any:
    return x if isinstance(x, Tracer) else np.asarray(x, float)


def _log(x: Any, base: Any = None) -> Any:
    return np.log(x) if base is None else np.log(x) / np.log(base)


def _total(values: Any, start: Any = 1) -> Any:
    return reduce(lambda x, y: x * y, values, start)


def _length(*coordinates: Any) -> Any:
    if len(coordinates) == 2:
        return np.hypot(*coordinates)
    return np.linalg.norm(np.stack(list(map(_as_array, coordinates))))


def _special(name: str) -> Callable[..., Any]:
    def function(x: Any) -> Any:
        from scipy import special

        return getattr(special, name)(x)

    return function


def _remainder(x: Any, y: Any) -> Any:
    """The remainder of x / y for the nearest integer quotient, halves to even."""
    return x - np.round(x / y) * y


def _fraction_and_integer(x: Any) -> Any:
    fraction, whole = np.modf(x)
    return fraction, whole


def _mantissa_and_exponent(x: Any) -> Any:
    mantissa, exponent = np.frexp(x)
    return mantissa, exponent


_INVERSE = {f"a{name}": f"arc{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")}
_SAME = ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "sqrt", "log10")
_REAL: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in _SAME},
    **{name: getattr(np, name) for name in ("exp2", "expm1", "log2", "log1p", "cbrt")},
    **{name: getattr(np, name) for name in ("fmod", "copysign", "degrees", "radians")},
    **{name: getattr(np, other) for name, other in _INVERSE.items()},
    "atan2": np.arctan2,
    "fabs": np.abs,
    "log": _log,
    "pow": lambda x, y: np.power(_as_array(x), _as_array(y))[()],
    "hypot": _length,
    "modf": _fraction_and_integer,
    "frexp": _mantissa_and_exponent,
    "remainder": _remainder,
    "erf": _special("erf"),
    "erfc": _special("erfc"),
    "gamma": _special("gamma"),
    "lgamma": _special("gammaln"),
    "ldexp": lambda x, i: x * 2.0**i,
}
_hooks: dict[str, Hook] = {
    name: _real(name, function) for name, function in _REAL.items() if hasattr(math, name)
}


def _of_sequences(name: str, function: Callable[..., Any]) -> None:
    """Functions whose arguments are sequences of numbers."""
    original = getattr(math, name, None)
    if original is None:
        return

    @wraps(original)
    def hook(*args: Any, **kwargs: Any) -> Any:
        given = [list(arg) if hasattr(arg, "__iter__") else arg for arg in args]
        if not holds_tracer(given):
            return original(*given, **kwargs)
        given = [list(map(_number, arg)) if isinstance(arg, list) else arg for arg in given]
        return function(*given, **kwargs)

    _hooks[name] = Hook(hook, True)


_of_sequences("fsum", lambda values: np.sum(np.stack(list(map(_as_array, values)))))
_of_sequences("prod", lambda values, *, start=1: _total(values, start))
_of_sequences("sumprod", lambda p, q: sum(x * y for x, y in zip(p, q, strict=True)))
_of_sequences("dist", lambda p, q: _length(*(x - y for x, y in zip(p, q, strict=True))))


def _complex(name: str, function: Callable[..., Any]) -> Hook:
    original = getattr(cmath, name)

    @wraps(original)
    def hook(*args: Any) -> Any:
        if not holds_tracer(args):
            return original(*args)
        return function(*(_number(arg, real=False) + 0j for arg in args))

    return Hook(hook, True)


def _rect(r: Any, phi: Any) -> Any:
    return r * (np.cos(phi) + 1j * np.sin(phi))


_COMPLEX: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in _SAME},
    **{name: getattr(np, other) for name, other in _INVERSE.items()},
    "log": _log,
    "phase": np.angle,
    "polar": lambda z: (np.abs(z), np.angle(z)),
    "rect": _rect,
}
_complex_hooks = {name: _complex(name, function) for name, function in _COMPLEX.items()}


def find(module: str, name: str, original: Any) -> Hook | None:
    """The hook for a function of math or cmath."""
    return (_complex_hooks if module == "cmath" else _hooks).get(name)
