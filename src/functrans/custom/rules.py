"""custom_jvp and custom_vjp: functions with user-defined derivatives.

A call is one primitive, `custom`, whose parameters hold the function and its rules as functions of flat
arrays. The rules are traced code like any other, so they can be differentiated, batched and staged.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Generic, Self, overload

import numpy as np

from functrans.control.procedures import CuriousStage, close
from functrans.core import errors
from functrans.core.custody import own, own_tree
from functrans.core.dispatch import Tracer
from functrans.core.shapes import spec_of
from functrans.custom.call_forms import CallForm
from functrans.custom.custom_primitive import FunctionRules, custom, level_of
from functrans.transforms.arguments import LATER, check_callable, several_values
from functrans.transforms.functions import Instance, P, Q, R, TransformedFunction, keep_name
from functrans.transforms.leaves import (
    is_known,
    is_staging,
)


class _Custom(TransformedFunction, Generic[P, R]):
    """A function with rules; what `custom_jvp` and `custom_vjp` have in common."""

    needs = ""

    def __init__(
        self, f: Callable[P, R], transform: Any, nondiff_argnums: int | Sequence[int]
    ) -> None:
        self.kind = transform.__name__
        f = check_callable(f, self.kind)
        keep_name(self, f)
        self.f = f
        numbers = several_values(nondiff_argnums, int, f"{self.kind}: nondiff_argnums")
        if any(number < 0 for number in numbers):
            raise errors.OptionError(
                f"{self.kind}: nondiff_argnums must be positions, non-negative ints, not "
                f"{nondiff_argnums!r}, at {errors.user_location()}."
            )
        self.nondiff_argnums = tuple(sorted(numbers))
        self._transform, self._options = transform, {"nondiff_argnums": self.nondiff_argnums}
        self.jvp: Callable[..., Any] | None = None
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None
        try:
            self.signature: inspect.Signature | None = inspect.signature(f)
        except (ValueError, TypeError):  # a function written in C may have none
            self.signature = None

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(
        self: _Custom[Concatenate[Instance, Q], R], instance: Instance, owner: Any = None
    ) -> Callable[Q, R]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return super().__get__(instance, owner)

    def __reduce__(self) -> Any:
        made = super().__reduce__()
        rules = {"jvp": self.jvp, "fwd": self.fwd, "bwd": self.bwd}
        return made if isinstance(made, str) else (*made, rules)

    def defjvp(self, jvp: Callable[..., Any]) -> Callable[..., Any]:
        """Set the rule for forward mode, jvp(*nondiff, primals, tangents) -> (out, tangent)."""
        jvp = check_callable(jvp, "defjvp")
        self.jvp = jvp
        return jvp

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.jvp is None and self.fwd is None:
            raise errors.RuleError(
                f"{errors.describe(self.f)} is a {self.kind} without a rule, at "
                f"{errors.user_location()}. Call its {self.needs} before it is used."
            )
        form = CallForm(self, self._positional(args, kwargs))
        arrays = form.given.arrays
        operands = [*form.fixed.arrays, *arrays]
        staging = is_staging() or not all(map(is_known, operands))
        if not staging and not any(isinstance(leaf, Tracer) for leaf in arrays):
            return own_tree(form.on_arguments(self.f, operands))  # type: ignore[no-any-return]
        rules = FunctionRules(
            form.function,
            form.push if self.jvp is not None else None,
            form.forward if self.fwd is not None else None,
            form.backward,
            form,
        )
        if staging:
            # Within a checkpoint, a branch can read values.
            stage = CuriousStage(form.function, operands, [False] * len(operands))
            specs = [spec_of(leaf) for leaf in operands]
            procedure, captured = close(form.function, specs, stage, operands)
            rules = rules.of(procedure, len(captured))
            operands = [*captured, *operands]
        else:
            rules.level = level_of(operands)
        results = list(custom(*operands, rules=rules))
        return form.out.rebuild(own(results))  # type: ignore[no-any-return]

    def _positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments by position, with defaults: rules take them by position."""
        if self.signature is None or (not kwargs and len(args) == len(self.signature.parameters)):
            return args
        bound = self.signature.bind(*args, **kwargs)
        given = bound.kwargs  # keyword-only; those that keep their defaults need no rule
        bound.apply_defaults()
        if given:
            raise errors.InputTypeError(
                f"{self.kind}: {errors.describe(self.f)} has keyword-only arguments "
                f"({', '.join(given)}), at {errors.user_location()}, but rules take arguments by "
                "position. Remove the * from its parameters."
            )
        return bound.args


class CustomJvp(_Custom[P, R]):
    """A function with a rule for derivatives."""

    needs = "defjvp"
    _summary = "{f}, with a custom rule for its derivative."


class CustomVjp(_Custom[P, R]):
    """A function with rules for reverse mode."""

    needs = "defvjp"
    _summary = "{f}, with custom rules for reverse mode."

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Set the rules of reverse mode; see `custom_vjp`."""
        fwd = check_callable(fwd, "defvjp")
        bwd = check_callable(bwd, "defvjp")
        self.fwd = fwd
        self.bwd = bwd


@overload
def custom_jvp(f: np.ufunc, nondiff_argnums: int | Sequence[int] = ()) -> CustomJvp[..., Any]: ...
@overload
def custom_jvp(f: Callable[P, R], nondiff_argnums: int | Sequence[int] = ()) -> CustomJvp[P, R]: ...
@overload
def custom_jvp(
    *, nondiff_argnums: int | Sequence[int] = ()
) -> Callable[[Callable[P, R]], CustomJvp[P, R]]: ...
def custom_jvp(f: Callable[..., Any] = LATER, nondiff_argnums: int | Sequence[int] = ()) -> Any:
    """A function with a custom rule for derivatives.

    `f.defjvp(rule)` sets the rule: rule(primals, tangents) -> (out, tangent), where primals and tangents
    are tuples with one entry per argument, and the result is linear in the tangents. Reverse mode
    transposes the rule. Arguments in `nondiff_argnums` are not differentiated, may be anything, and come
    first: rule(*nondiff, primals, tangents). Keyword arguments are moved to their positions. It also
    decorates methods, whose `self` is then the first argument.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import custom_jvp, grad
    >>> @custom_jvp
    ... def log1pexp(x):
    ...     return np.log1p(np.exp(x))
    >>> @log1pexp.defjvp
    ... def log1pexp_jvp(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return log1pexp(x), t / (1 + np.exp(-x))
    >>> float(grad(log1pexp)(100.0))
    1.0
    """
    if f is LATER:  # @custom_jvp(nondiff_argnums=...)
        return functools.partial(custom_jvp, nondiff_argnums=nondiff_argnums)
    return CustomJvp(f, custom_jvp, nondiff_argnums)


@overload
def custom_vjp(f: np.ufunc, nondiff_argnums: int | Sequence[int] = ()) -> CustomVjp[..., Any]: ...
@overload
def custom_vjp(f: Callable[P, R], nondiff_argnums: int | Sequence[int] = ()) -> CustomVjp[P, R]: ...
@overload
def custom_vjp(
    *, nondiff_argnums: int | Sequence[int] = ()
) -> Callable[[Callable[P, R]], CustomVjp[P, R]]: ...
def custom_vjp(f: Callable[..., Any] = LATER, nondiff_argnums: int | Sequence[int] = ()) -> Any:
    """A function with custom rules for reverse mode.

    `f.defvjp(fwd, bwd)` sets the rules: fwd(*args) -> (out, residuals), and
    bwd(*nondiff, residuals, cotangent) -> a tuple with one cotangent per differentiated argument, where
    None stands for zero. Forward mode is an error unless `f.defjvp` sets a rule for it, as in
    `custom_jvp`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import custom_vjp, grad
    >>> @custom_vjp
    ... def clipped(x, limit):  # the gradient is clipped, not the value
    ...     return x
    >>> clipped.defvjp(
    ...     lambda x, limit: (x, limit), lambda limit, g: (np.clip(g, -limit, limit), None)
    ... )
    >>> float(grad(lambda x: clipped(x, 1.0) ** 2)(10.0))
    1.0
    """
    if f is LATER:
        return functools.partial(custom_vjp, nondiff_argnums=nondiff_argnums)
    return CustomVjp(f, custom_vjp, nondiff_argnums)
