"""Solutions that SciPy finds on plain values, with the derivatives of the equations that they satisfy.

SciPy sees plain numbers. The user's function may close over traced values, which need not be known: after
SciPy, steps x - J^-1 f(x) are taken on traced values, from the plain solution, with the plain Jacobian J
there. There f vanishes, so that the steps leave the value as it is, and each raises the order up to which
the derivatives of x are those of the solution by one: the error is multiplied by 1 - J^-1 f'(x), which
vanishes there, too. All of it is ordinary traced arithmetic, so that the result can be transformed in any
way.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.dispatch import (
    Tracer,
    carries_derivative,
    concrete,
    is_anything_running,
    running_interpreters,
)
from functrans.core.shapes import dtype_of, shape_of
from functrans.core.tree import too_deep
from functrans.surface.table import as_array
from functrans.transforms.derivatives import stop_gradient
from functrans.transforms.forward_mode import jvp
from functrans.transforms.jacobians import jacfwd, jacrev


def derivative_order() -> int:
    """The highest order of derivatives that the running transforms can ask for."""
    return sum(bool(each.differentiates) for each in running_interpreters())


def plain(value: Any) -> Any:
    """A value without derivatives, for SciPy; traced values may be anywhere in lists, tuples and dicts."""
    try:
        return _plain(value)
    except RecursionError:
        raise too_deep() from None


def _plain(value: Any) -> Any:
    if isinstance(value, Tracer):
        return concrete(value)
    if type(value) is tuple:
        return tuple([_plain(each) for each in value])
    if type(value) is list:
        return [_plain(each) for each in value]
    if type(value) is dict:
        return {key: _plain(each) for key, each in value.items()}
    return value


def plainly(function: Any, *more: Any) -> Any:
    """A user's function as SciPy calls it, with `more` arguments appended; its results are plain."""
    if not callable(function):
        return function
    return lambda *args, **kwargs: plain(function(*args, *more, **kwargs))


def is_differentiated(*values: Any) -> bool:
    """Whether a derivative can be asked of one of these values, or of one in their lists and tuples."""
    return _any_of(carries_derivative, values)


def holds_traced(*values: Any) -> bool:
    """Whether one of these values is traced, or one in their lists, tuples and dicts."""
    return _any_of(lambda value: isinstance(value, Tracer), values)


def _any_of(test: Callable[[Any], bool], values: Any) -> bool:
    try:
        return any(
            _any_of(test, tuple(value.values()) if type(value) is dict else value)
            if type(value) in (list, tuple, dict)
            else test(value)
            for value in values
        )
    except RecursionError:
        raise too_deep() from None


def arguments(args: Any) -> tuple[Any, ...]:
    """SciPy's args=: a tuple, or one value."""
    return args if isinstance(args, tuple) else (args,)


def with_value(value: Any, traced: Any) -> Any:
    """A plain value with the derivatives of a traced one that equals it up to rounding."""
    return value + (traced - stop_gradient(traced))


def jacobian_of(function: Callable[[Any], Any], x: Any) -> Any:
    """The Jacobian matrix at a vector, by the mode for which everything in the function has a rule."""
    try:
        return jacfwd(function)(x)
    except errors.MissingRuleError:
        return jacrev(function)(x)


def is_differentiable(derivative: Callable[[Any], Any], x: Any) -> bool:
    """Whether SciPy can be given a derivative of a user's function; if not, it uses finite differences.

    Outside of transforms, the user has called functrans, and sees the error of a function that it cannot
    differentiate. Inside, a plain function need not be written for it.
    """
    if not is_anything_running():
        return True
    with warnings.catch_warnings():
        warnings.simplefilter("error", errors.DerivativeWarning)  # float(x) ends the derivative
        try:
            derivative(x)
        except Exception:
            return False
    return True


class ImplicitEquation:
    """f(x) = 0, for a vector x, or for each entry of an array on its own.

    `name` is SciPy's name of the solver, for messages.
    """

    def __init__(
        self, function: Callable[[Any], Any], name: str, what: str, elementwise: bool = False
    ) -> None:
        self.function = function
        self.name = name
        self.what = what
        self.elementwise = elementwise

    def slope(self, x: Any) -> Any:
        """The Jacobian at a plain x, plain."""
        if self.elementwise:
            slope = concrete(jvp(self._aligned, (x,), (np.ones(shape_of(x), dtype_of(x))[()],))[1])
            self._check(np.all(slope != 0))
            return slope
        return concrete(jacobian_of(self._aligned, x))

    def step(self, x: Any, slope: Any) -> Any:
        """J^-1 f: what a step of Newton's method subtracts."""
        if self.elementwise:
            return self._aligned(x) / slope
        try:
            return np.linalg.solve(slope, self._aligned(x))
        except np.linalg.LinAlgError:
            raise self._singular() from None

    def _aligned(self, x: Any) -> Any:
        out = as_array(self.function(x))
        return np.reshape(out, shape_of(x)) if shape_of(out) != shape_of(x) else out

    def polished(self, found: Any) -> Any:
        """A plain solution up to rounding: its derivatives are taken there."""
        x, last = found, np.inf
        ratios: list[float] = []
        for _ in range(_POLISHING):
            step = concrete(self.step(x, self.slope(x)))
            size = float(np.max(np.abs(step), initial=0.0))
            scale = 1.0 + float(np.max(np.abs(x), initial=0.0))
            if not size <= min(last, 0.1 * scale):
                break
            ratios.append(size / last if last else 0.0)
            x, last = x - step, size
            if size <= 1e-13 * scale:
                return x
        # The steps of Newton's method shrink by a constant factor, 1 - 1/k, towards a root of multiplicity k.
        is_multiple = len(ratios) > 3 and all(0.4 < ratio < 0.95 for ratio in ratios[-3:])
        self._check(not is_multiple)
        if not last <= 1e-6 * scale:
            warnings.warn(
                f"{self.name}: the solution that SciPy found is not accurate enough for its derivative, at "
                f"{errors.user_location()}: a Newton step changes it by {size:.1e}. Lower the "
                "tolerance, or begin nearer to the solution.",
                errors.ConvergenceWarning,
                stacklevel=errors.user_depth(),
            )
            return found
        return x

    def _check(self, regular: Any) -> None:
        if not regular:
            raise self._singular()

    def _singular(self) -> errors.SingularError:
        return errors.SingularError(
            f"{self.name}: {self.what} is singular at the solution, so the solution has no derivative, at "
            f"{errors.user_location()}. Solve for as many unknowns as there are independent equations, and "
            "avoid multiple roots."
        )

    def solution(self, found: Any) -> Any:
        """The plain solution that SciPy found, with its derivatives."""
        x = self.polished(found)
        slope = self.slope(x)
        for _ in range(max(derivative_order(), 1)):
            x = x - self.step(x, slope)
        return with_value(found, x)


_POLISHING = 6
