"""The primitive `custom`: a call of a function of flat arrays that has its own rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functrans.control.procedures import Procedure, close, sweep_back
from functrans.core import errors
from functrans.core.dispatch import Tracer
from functrans.core.evaluate import as_constant
from functrans.core.hooks import runs_again
from functrans.core.primitive import HigherOrder
from functrans.core.shapes import spec_of
from functrans.custom.call_forms import CallForm
from functrans.custom.lent_values import run_on_loan
from functrans.interpreters.batch import Batch
from functrans.interpreters.tape import Tape
from functrans.ops import reduction
from functrans.transforms.batching import vmap
from functrans.transforms.leaves import (
    bare,
    chosen,
    is_known,
    tracked,
    zero_tangent,
)


class FunctionRules:
    """A function of flat arrays and its rules; rules that are not given are None.

    The rules do not get the first `captured` inputs of the function. `level` is that of the interpreter
    that handles the call: values that rules close over may be traced by interpreters below it.
    """

    def __init__(
        self,
        function: Any,
        push: Any,
        forward: Any,
        backward: Any,
        form: CallForm,
        captured: int = 0,
    ) -> None:
        self.function = function
        self.push = push
        self.forward = forward
        self.backward = backward
        self.form = form
        self.captured = captured
        self.level = 0

    @property
    def fixed(self) -> int:
        """The number of arrays before those that are differentiated."""
        return len(self.form.fixed.arrays)

    def __repr__(self) -> str:
        name = getattr(self.form.custom.f, "__name__", "f")
        return f"[{self.form.custom.kind} of {name}]"

    def of(self, function: Any, captured: int) -> FunctionRules:
        return FunctionRules(function, self.push, self.forward, self.backward, self.form, captured)

    def batched(self, mapped: tuple[bool, ...], batch: Batch) -> FunctionRules:
        """The same for all lanes at once: all results have the lanes as first axis."""
        size = batch.size

        def over_lanes(function: Any, flags: Sequence[bool]) -> Any:
            axes = tuple(0 if flag else None for flag in flags)
            return vmap(function, axes, axis_name=batch.axis_name, axis_size=size)

        known = mapped[self.captured :]
        fixed, free = known[: self.fixed], known[self.fixed :]

        def push(*leaves: Any) -> Any:
            return over_lanes(self.push, known + free)(*leaves)

        def forward(*leaves: Any) -> Any:
            return over_lanes(self.forward, known)(*leaves)

        def backward(*leaves: Any) -> list[Any]:
            flags = fixed + (True,) * (len(leaves) - len(fixed))
            cotangents = over_lanes(self.backward, flags)(*leaves)
            # A value that all lanes share gets a cotangent from each.
            return [
                g if maps else reduction.sum(g, axis=(0,), keepdims=False)
                for g, maps in zip(cotangents, free, strict=True)
            ]

        return FunctionRules(
            over_lanes(self.function, mapped),
            None if self.push is None else push,
            None if self.forward is None else forward,
            backward,
            self.form,
            self.captured,
        )


# The primitive: custom(*captured, *fixed, *arrays, rules=).


def _impl(*args: Any, rules: FunctionRules) -> tuple[Any, ...]:
    return tuple(_closed(rules.function(*args), args, rules))


def level_of(values: Sequence[Any]) -> int:
    """The highest level among the values; 0 if none is traced."""
    level = 0
    for value in values:
        if isinstance(value, Tracer):
            level = max(level, value.interpreter.level)
    return level


def _closed(results: Sequence[Any], args: Sequence[Any], rules: FunctionRules) -> list[Any]:
    """Check that results are traced only by the transforms that trace the arguments.

    Transforms around the one that handles the call are allowed too, if they do not differentiate.
    """
    results = [as_constant(result) for result in results]
    traced = [result for result in results if isinstance(result, Tracer)]
    known = level_of(args) if traced else 0
    for result in traced:
        level = result.interpreter.level
        if level > known and (level >= rules.level or _is_differentiated(result, known)):
            raise _closure_error(rules)
    return results


def _is_differentiated(value: Any, above: int) -> bool:
    """Whether a transform above this level differentiates with respect to something the value depends on."""
    while isinstance(value, Tracer) and value.interpreter.level > above:
        if value.interpreter.differentiates:
            return True
        value = value.value if is_known(value) else None
    return False


def _closure_error(rules: FunctionRules) -> errors.ClosureError:
    function = rules.form.custom
    return errors.ClosureError(
        f"{errors.describe(function.f)} is a {function.kind}, and it or its rules depend on a traced "
        "value that is not among the arguments (it is closed over, or in nondiff_argnums), at "
        f"{errors.user_location()}. Its derivative with respect to that value is not known: pass it as an "
        "argument."
    )


def _refuse_derivatives(values: Sequence[Any], rules: FunctionRules) -> None:
    """Refuse values without a rule, if a transform around this one differentiates them."""
    if any(_is_differentiated(value, 0) for value in values):
        raise _closure_error(rules)


def _run(rules: FunctionRules, name: str, *leaves: Any) -> Any:
    """Call a rule. In a graph, what it closes over may be variables of a graph that is finished."""
    custom = rules.form.custom
    rule = {"push": custom.jvp, "forward": custom.fwd, "backward": custom.bwd}[name]
    try:
        return run_on_loan(getattr(rules, name), leaves, rule, rules.form.is_transparent)
    except errors.EscapedTracerError as error:
        if isinstance(rules.function, Procedure):
            raise _closure_error(rules) from error
        raise


def _push(args: Any, tangents: Any, params: Any) -> Any:
    rules = params["rules"]
    n, first = rules.captured, rules.captured + rules.fixed
    if any(tangent is not None for tangent in tangents[:first]):
        raise _closure_error(rules)
    if first:
        _refuse_derivatives(args[:first], rules)
    if rules.push is None:
        raise errors.MissingRuleError(
            f"forward mode (jvp, jacfwd, linearize, hessian) of {errors.describe(rules.form.custom.f)}, "
            f"at {errors.user_location()}: it is a custom_vjp, which has rules for reverse mode only. "
            "Add a rule for forward mode with its defjvp."
        )
    moved = [
        zero_tangent(value) if tangent is None else tangent
        for value, tangent in zip(args[first:], tangents[first:], strict=True)
    ]
    results = _closed(_run(rules, "push", *args[n:], *moved), (*args, *moved), rules)
    count = len(results) // 2
    return results[:count], results[count:]


@runs_again
def _trace(mask: int, args: Any, params: Any) -> Any:
    rules = params["rules"]
    n, first = rules.captured, rules.captured + rules.fixed
    active = tracked(mask, len(args))
    if any(active[:first]):
        raise _closure_error(rules)
    if first:
        _refuse_derivatives(args[:first], rules)
    fixed, values, active = args[n:first], args[first:], active[first:]
    if rules.forward is not None:
        results = _closed(_run(rules, "forward", *fixed, *values), args, rules)
        count = rules.form.out.count
        outs = results[:count]
        likes = [spec_of(out) for out in outs]
        return outs, _pull, (rules, active, [*fixed, *results[count:]], likes)
    # The output tangent is linear in the input tangents, so its transpose, at any point, is the pullback.
    with Tape(rules.form.custom.f) as tape:
        tape.reruns = True
        tangents = [
            tape.leaf(zero_tangent(value)) if mine else zero_tangent(value)
            for value, mine in zip(values, active, strict=True)
        ]
        results = _run(rules, "push", *fixed, *values, *tangents)
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
    return bare(chosen(_run(rules, "backward", *residuals, *given), active))


def _transpose(cotangents: Any, saved: Any) -> Any:
    tape, tangents, moved = saved
    pairs = [
        (out, cotangent)
        for out, cotangent in zip(moved, cotangents, strict=True)
        if cotangent is not None
    ]
    return bare(sweep_back(tape, tangents, [o for o, _ in pairs], [g for _, g in pairs]))


def _batch(args: Any, batched: Any, batch: Batch, params: Any) -> Any:
    rules = params["rules"].batched(batched, batch)
    rules.level = level_of(args)
    return custom(*args, rules=rules)


def _shape(specs: Any, params: Any) -> Any:
    function = params["rules"].function
    if isinstance(function, Procedure):
        return function.outputs
    return close(function, specs)[0].outputs


custom = HigherOrder(
    "custom",
    _impl,
    push=_push,
    trace=_trace,
    batch=_batch,
    shape=_shape,
    form=lambda params: getattr(params["rules"].function, "arrays", ()),
)
