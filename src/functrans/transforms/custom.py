"""custom_jvp and custom_vjp: a function with a derivative of its user's own.

A call is one primitive, `custom`, whose parameters hold the function and its rules as functions of flat
arrays. The rules are traced code like any other, so they can be differentiated, batched and staged.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.core import errors, tree
from functrans.core.dispatch import Tracer
from functrans.core.evaluate import as_constant
from functrans.core.primitive import HigherOrder
from functrans.core.shapes import cast, dtype_of, shape_of, spec_of
from functrans.interpreters.batch import Batch
from functrans.interpreters.tape import Tape
from functrans.transforms.arguments import check_callable, several, what_it_is
from functrans.transforms.batching import vmap
from functrans.transforms.leaves import (
    bare,
    chosen,
    described,
    is_known,
    is_staging,
    strong,
    tracked,
    zero_tangent,
)
from functrans.transforms.procedures import CuriousStage, Procedure, close, sweep_back


class _Custom:
    """A function with rules; what `custom_jvp` and `custom_vjp` have in common."""

    kind = ""
    needs = ""

    def __new__(cls, f: Any = None, nondiff_argnums: Any = ()) -> Any:
        if f is None:  # @custom_jvp(nondiff_argnums=...)
            return functools.partial(cls, nondiff_argnums=nondiff_argnums)
        return super().__new__(cls)

    def __init__(self, f: Any = None, nondiff_argnums: int | Sequence[int] = ()) -> None:
        check_callable(f, self.kind)
        functools.update_wrapper(self, f)
        self.f = f
        numbers = several(nondiff_argnums, int, f"{self.kind}: nondiff_argnums")
        if any(number < 0 for number in numbers):
            raise errors.OptionError(
                f"{self.kind}: nondiff_argnums must be positions, ints that are not negative, not "
                f"{nondiff_argnums!r}."
            )
        self.nondiff_argnums = tuple(sorted(numbers))
        self.jvp: Callable[..., Any] | None = None
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None
        try:
            self.signature: inspect.Signature | None = inspect.signature(f)
        except (ValueError, TypeError):  # a function of C may have none
            self.signature = None

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def defjvp(self, jvp: Callable[..., Any]) -> Callable[..., Any]:
        """Set the rule of forward mode, jvp(*nondiff, primals, tangents) -> (out, tangent)."""
        check_callable(jvp, "defjvp")
        self.jvp = jvp
        return jvp

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.jvp is None and self.fwd is None:
            raise errors.RuleError(
                f"{errors.describe(self.f)} is a {self.kind} without a rule: call its {self.needs} "
                "before it is used."
            )
        form = _Form(self, self._positional(args, kwargs))
        arrays = form.given.arrays
        staging = is_staging() or not all(map(is_known, arrays))
        if not staging and not any(isinstance(leaf, Tracer) for leaf in arrays):
            return self.f(*form.args)
        rules = _Rules(
            form.function,
            form.push if self.jvp is not None else None,
            form.forward if self.fwd is not None else None,
            form.backward,
            form,
        )
        if staging:
            # Within a checkpoint, a branch can ask for values.
            stage = CuriousStage(form.function, arrays)
            procedure, captured = close(form.function, [spec_of(leaf) for leaf in arrays], stage)
            rules = rules.of(procedure, len(captured))
            arrays = [*captured, *arrays]
        results = custom(*arrays, rules=rules)
        return form.out.rebuild(results)

    def _positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments by position, with defaults: rules know them by position."""
        if self.signature is None or (not kwargs and len(args) == len(self.signature.parameters)):
            return args
        bound = self.signature.bind(*args, **kwargs)
        given = bound.kwargs  # by keyword only; those that keep their defaults need no rule
        bound.apply_defaults()
        if given:
            raise errors.InputTypeError(
                f"{self.kind}: {errors.describe(self.f)} has arguments by keyword only "
                f"({', '.join(given)}). Rules know arguments by position: let them be "
                "positional as well."
            )
        return bound.args


class custom_jvp(_Custom):
    """A function with a rule of its own for derivatives.

    `f.defjvp(rule)` sets it: rule(primals, tangents) -> (out, tangent), where primals and tangents are
    tuples with one entry per argument, and the tangent is linear in the tangents. Reverse mode
    transposes it. Arguments in `nondiff_argnums` are not differentiated, may be anything, and come
    first: rule(*nondiff, primals, tangents). Arguments by keyword are put in their positions. It also
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

    kind = "custom_jvp"
    needs = "defjvp"


class custom_vjp(_Custom):
    """A function with rules of its own for reverse mode.

    `f.defvjp(fwd, bwd)` sets them: fwd(*args) -> (out, residuals), and
    bwd(*nondiff, residuals, cotangent) -> one cotangent per argument that is differentiated, in a
    tuple, where None stands for zero. Forward mode is an error, unless `f.defjvp` gave a rule for it,
    as for `custom_jvp`.

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

    kind = "custom_vjp"
    needs = "defvjp"

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Set the rules of reverse mode; see `custom_vjp`."""
        check_callable(fwd, "defvjp")
        check_callable(bwd, "defvjp")
        self.fwd = fwd
        self.bwd = bwd


class _Leaves:
    """A tree, of which some leaves are arrays. The others are handed on as they are."""

    def __init__(self, value: Any) -> None:
        self.leaves, self.structure = tree.flatten(value)
        self.flags = [tree.is_array(leaf) for leaf in self.leaves]
        self.arrays = [as_constant(leaf) for leaf in chosen(self.leaves, self.flags)]

    def rebuild(self, arrays: Sequence[Any]) -> Any:
        each = iter(arrays)
        return tree.unflatten(
            self.structure,
            [
                next(each) if flag else leaf
                for leaf, flag in zip(self.leaves, self.flags, strict=True)
            ],
        )

    def rebuild_tangents(self, tangents: Sequence[Any]) -> Any:
        each = iter(tangents)
        return tree.unflatten(self.structure, [next(each) if flag else None for flag in self.flags])


class _Form:
    """One call: the function and the rules, as functions of the arrays among the arguments."""

    def __init__(self, custom: _Custom, args: tuple[Any, ...]) -> None:
        self.custom = custom
        self.args = args
        self.fixed = [args[k] for k in custom.nondiff_argnums if k < len(args)]
        self.free = [k for k in range(len(args)) if k not in custom.nondiff_argnums]
        self.given = _Leaves(tuple(args[k] for k in self.free))
        self.out = _Leaves(())
        self.residuals = _Leaves(())

    def arguments(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        args = list(self.args)
        for k, arg in zip(self.free, self.given.rebuild(arrays), strict=True):
            args[k] = arg
        return tuple(args)

    def function(self, *arrays: Any) -> list[Any]:
        self.out = self._result(self.custom.f(*self.arguments(arrays)), self.custom.f)
        return self.out.arrays

    def _result(self, out: Any, function: Any) -> _Leaves:
        result = _Leaves(out)
        for leaf in result.leaves:
            if not tree.is_array(leaf):
                tree.check_array(leaf, f"an output of {errors.describe(function)}")
        return result

    def push(self, *leaves: Any) -> list[Any]:
        """(arrays, tangents) -> (outputs, tangents)."""
        rule: Any = self.custom.jvp
        count = len(leaves) // 2
        primals = self.given.rebuild(leaves[:count])
        tangents = self.given.rebuild_tangents(leaves[count:])
        out, moved = self._pair(rule(*self.fixed, primals, tangents), rule, "(out, tangent)")
        self.out = self._result(out, rule)
        found, structure = tree.flatten(moved)
        if structure != self.out.structure or not _matching(found, self.out.arrays):
            raise errors.RuleError(
                f"{errors.describe(rule)}, the jvp of {errors.describe(self.custom.f)}, returns a "
                "tangent that is not like the output.\n"
                f"  the output is   {described(out)}\n"
                f"  the tangent is  {_described(moved)}"
            )
        return [*self.out.arrays, *map(_conform, found, self.out.arrays)]

    def forward(self, *arrays: Any) -> list[Any]:
        """arrays -> (outputs, residuals)."""
        rule: Any = self.custom.fwd
        out, residuals = self._pair(rule(*self.arguments(arrays)), rule, "(out, residuals)")
        self.out = self._result(out, rule)
        self.residuals = _Leaves(residuals)
        return [*self.out.arrays, *self.residuals.arrays]

    def backward(self, *leaves: Any) -> list[Any]:
        """(residuals, cotangents of the outputs) -> cotangents of the arrays."""
        rule: Any = self.custom.bwd
        count = len(self.residuals.arrays)
        residuals = self.residuals.rebuild(leaves[:count])
        cotangent = tree.unflatten(self.out.structure, leaves[count:])
        found = rule(*self.fixed, residuals, cotangent)
        if not isinstance(found, (tuple, list)) or len(found) != len(self.free):
            raise errors.RuleError(
                f"{errors.describe(rule)}, the bwd of {errors.describe(self.custom.f)}, must return a "
                f"tuple with one cotangent for each of {len(self.free)} arguments, but returned "
                f"{what_it_is(found)}. "
                "Write (g,) for one, and None for zero."
            )
        results: list[Any] = []
        for number, (k, cotangents) in enumerate(zip(self.free, found, strict=True)):
            argument = _Leaves(self.args[k])
            if cotangents is None:
                results += map(zero_tangent, argument.arrays)
                continue
            given, structure = tree.flatten(cotangents, is_leaf=lambda node: node is None)
            arrays = chosen(given, argument.flags) if len(given) == len(argument.flags) else given
            if structure.num_leaves != len(argument.flags) or not _matching(
                arrays, argument.arrays
            ):
                raise errors.RuleError(
                    f"{errors.describe(rule)}, the bwd of {errors.describe(self.custom.f)}, returns a "
                    f"cotangent of argument {k} (entry {number}) that is not like it.\n"
                    f"  the argument is   {_described(self.args[k])}\n"
                    f"  the cotangent is  {_described(cotangents)}"
                )
            results += map(_conform, arrays, argument.arrays)
        return results

    def _pair(self, out: Any, rule: Any, what: str) -> Any:
        if not isinstance(out, (tuple, list)) or len(out) != 2:
            raise errors.RuleError(
                f"{errors.describe(rule)}, a rule of {errors.describe(self.custom.f)}, must return a "
                f"pair {what}, but returned {what_it_is(out)}."
            )
        return out


def _described(value: Any) -> str:
    return str(tree.map(lambda leaf: strong(spec_of(leaf)) if tree.is_array(leaf) else leaf, value))


def _matching(found: Sequence[Any], likes: Sequence[Any]) -> bool:
    """Whether tangents or cotangents have the shapes of their values, and are real if they are."""
    return len(found) == len(likes) and all(
        one is None
        or (
            tree.is_array(one)
            and shape_of(one) == shape_of(like)
            and not (dtype_of(one).kind == "c" and dtype_of(like).kind == "f")
        )
        for one, like in zip(found, likes, strict=True)
    )


def _conform(found: Any, like: Any) -> Any:
    if found is None or dtype_of(like).kind not in "fc":
        return zero_tangent(like)
    return cast(found, dtype_of(like))


class _Rules:
    """A function of flat arrays and its rules; those that are not given are None.

    The first `captured` inputs of the function are not known to the rules.
    """

    def __init__(
        self, function: Any, push: Any, forward: Any, backward: Any, form: _Form, captured: int = 0
    ) -> None:
        self.function = function
        self.push = push
        self.forward = forward
        self.backward = backward
        self.form = form
        self.captured = captured

    def __repr__(self) -> str:
        name = getattr(self.form.custom.f, "__name__", "f")
        return f"[{self.form.custom.kind} of {name}]"

    def of(self, function: Any, captured: int) -> _Rules:
        return _Rules(function, self.push, self.forward, self.backward, self.form, captured)

    def batched(self, mapped: tuple[bool, ...], batch: Batch) -> _Rules:
        """The same for all lanes at once: all results have them as first axis."""
        size = batch.size

        def over_lanes(function: Any, flags: Sequence[bool]) -> Any:
            axes = tuple(0 if flag else None for flag in flags)
            return vmap(function, axes, axis_name=batch.axis_name, axis_size=size)

        known = mapped[self.captured :]

        def push(*leaves: Any) -> Any:
            return over_lanes(self.push, known * 2)(*leaves)

        def forward(*leaves: Any) -> Any:
            return over_lanes(self.forward, known)(*leaves)

        def backward(*leaves: Any) -> list[Any]:
            cotangents = over_lanes(self.backward, (True,) * len(leaves))(*leaves)
            # A value that all lanes share gets a cotangent from each.
            return [
                g if maps else np.sum(g, axis=0) for g, maps in zip(cotangents, known, strict=True)
            ]

        return _Rules(
            over_lanes(self.function, mapped),
            None if self.push is None else push,
            None if self.forward is None else forward,
            backward,
            self.form,
            self.captured,
        )


# The primitive: custom(*captured, *arrays, rules=).


def _impl(*args: Any, rules: _Rules) -> tuple[Any, ...]:
    return tuple(_closed(rules.function(*args), args, rules))


def _closed(results: Sequence[Any], args: Sequence[Any], rules: _Rules) -> list[Any]:
    """Results that are traced by no transform but those of the arguments."""
    levels = [arg.interpreter.level for arg in args if isinstance(arg, Tracer)]
    known = max(levels, default=0)
    results = [as_constant(result) for result in results]
    for result in results:
        if isinstance(result, Tracer) and result.interpreter.level > known:
            raise _closure_error(rules)
    return results


def _closure_error(rules: _Rules) -> errors.ClosureError:
    function = rules.form.custom
    return errors.ClosureError(
        f"{errors.describe(function.f)} is a {function.kind}, and it or its rules depend on a traced "
        "value that is not among the arguments: it is closed over, or in nondiff_argnums. Its "
        "derivative by that value is not known: pass it as an argument."
    )


def _push(args: Any, tangents: Any, params: Any) -> Any:
    rules = params["rules"]
    n = rules.captured
    if any(tangent is not None for tangent in tangents[:n]):
        raise _closure_error(rules)
    if rules.push is None:
        raise errors.MissingRuleError(
            f"forward mode (jvp, jacfwd, linearize, hessian) of {errors.describe(rules.form.custom.f)}, "
            f"at {errors.user_location()}: it is a custom_vjp, which has rules for reverse mode only. "
            "Use grad, vjp or jacrev, or give it a rule for forward mode by defjvp."
        )
    moved = [
        zero_tangent(value) if tangent is None else tangent
        for value, tangent in zip(args[n:], tangents[n:], strict=True)
    ]
    results = _closed(rules.push(*args[n:], *moved), (*args, *moved), rules)
    count = len(results) // 2
    return results[:count], results[count:]


def _trace(mask: int, args: Any, params: Any) -> Any:
    rules = params["rules"]
    n = rules.captured
    active = tracked(mask, len(args))
    if any(active[:n]):
        raise _closure_error(rules)
    values, active = args[n:], active[n:]
    if rules.forward is not None:
        results = _closed(rules.forward(*values), args, rules)
        count = len(rules.form.out.flags)
        outs = results[:count]
        likes = [spec_of(out) for out in outs]
        return outs, _pull, (rules, active, results[count:], likes)
    # The tangent is linear in the tangents: its transpose is the pullback, at zero or anywhere.
    with Tape(rules.form.custom.f) as tape:
        tangents = [
            tape.leaf(zero_tangent(value)) if mine else zero_tangent(value)
            for value, mine in zip(values, active, strict=True)
        ]
        results = rules.push(*values, *tangents)
    count = len(results) // 2
    outs = [
        out.value if isinstance(out, Tracer) and out.interpreter is tape else out
        for out in results[:count]
    ]
    _closed(outs, args, rules)
    return outs, _transpose, (tape, chosen(tangents, active), results[count:])


def _pull(cotangents: Any, saved: Any) -> Any:
    rules, active, residuals, likes = saved
    given = [
        zero_tangent(like) if cotangent is None else cotangent
        for cotangent, like in zip(cotangents, likes, strict=True)
    ]
    return bare(chosen(rules.backward(*residuals, *given), active))


def _transpose(cotangents: Any, saved: Any) -> Any:
    tape, tangents, moved = saved
    pairs = [
        (out, cotangent)
        for out, cotangent in zip(moved, cotangents, strict=True)
        if cotangent is not None
    ]
    return bare(sweep_back(tape, tangents, [o for o, _ in pairs], [g for _, g in pairs]))


def _batch(args: Any, batched: Any, batch: Batch, params: Any) -> Any:
    return custom(*args, rules=params["rules"].batched(batched, batch))


def _shape(specs: Any, params: Any) -> Any:
    function = params["rules"].function
    if isinstance(function, Procedure):
        return function.outputs
    return close(function, specs)[0].outputs


custom = HigherOrder("custom", _impl, push=_push, trace=_trace, batch=_batch, shape=_shape)
