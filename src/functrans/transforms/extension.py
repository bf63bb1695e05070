"""define_primitive: a user's own word in the vocabulary, over any function of plain arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core import errors, tree
from functrans.core.evaluate import as_constant
from functrans.core.primitive import Primitive
from functrans.core.shapes import ArraySpec, cast, dtype_of, is_inexact, shape_of
from functrans.interpreters.tape import Tape
from functrans.transforms.arguments import check_callable, what_it_is
from functrans.transforms.leaves import bare, chosen, described, tracked, zero_tangent
from functrans.transforms.procedures import sweep_back


def define_primitive(
    name: str,
    impl: Callable[..., Any],
    jvp: Callable[..., Any] | None = None,
    vjp: Callable[..., Any] | None = None,
    batch: Callable[..., Any] | None = None,
    shape: Callable[..., Any] | None = None,
    outputs: int = 0,
) -> Callable[..., Any]:
    """A primitive of your own: a function of plain arrays, such as one written in C, and its rules.

    Arrays are passed by position, and parameters by keyword; parameters are plain values and are handed
    to every rule. Rules are code on traced values, written with NumPy and with primitives, this one
    included; so they are differentiated in turn. All but `impl` are optional.

    Parameters
    ----------
    name : str
        How graphs and messages call it.
    impl : callable
        impl(*arrays, **params) -> array. The arrays are plain; it is never traced.
    jvp : callable, optional
        jvp(out, primals, tangents, **params) -> the tangent of `out`, linear in the tangents. Without
        it, `vjp` is transposed.
    vjp : callable, optional
        vjp(out, primals, cotangent, **params) -> a tuple with one cotangent per array, in which None
        stands for zero. It is linear in the cotangent. Without it, `jvp` is transposed.
    batch : callable, optional
        batch(arrays, batched, **params) -> the results of all lanes along a new first axis, where
        `batched` says which arrays have the lanes as first axis. Without it, lanes are done one by one.
    shape : callable, optional
        shape(*specs, **params) -> the `ArraySpec` of the result. Staging needs it.
    outputs : int
        The number of results, if there are several: `impl`, `jvp`, `shape` and `batch` then return
        tuples of them, and `out`, the cotangent and the primitive's result are tuples.

    Returns
    -------
    callable
        The primitive, as a function of arrays (by position) and parameters (by keyword).

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import define_primitive, grad
    >>> import math
    >>> erf = define_primitive(
    ...     "erf",
    ...     np.vectorize(math.erf, otypes=[float]),
    ...     jvp=lambda out, x, t: 2 / np.sqrt(np.pi) * np.exp(-(x[0] ** 2)) * t[0],
    ... )
    >>> round(float(grad(grad(erf))(0.5)), 6)
    -0.878783
    """
    if not isinstance(name, str) or not name:
        raise errors.OptionError(f"define_primitive needs a name, not {name!r}.")
    for function in (impl, jvp, vjp, batch, shape):
        if function is not None:
            check_callable(function, "define_primitive")
    rules = _Rules(name, impl, jvp, vjp, batch, shape, outputs)
    primitive = Primitive(
        name,
        rules.run,
        jvp=rules.push,
        vjp=rules.trace,
        batch=rules.over_lanes,
        shape=rules.specs,
        outputs=outputs,
    )

    def apply(*arrays: Any, **params: Any) -> Any:
        return primitive(*map(_as_array, arrays), **params)

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = impl.__doc__
    return apply


def _as_array(value: Any) -> Any:
    if not tree.is_array(value):
        value = np.asarray(value)
        tree.check_array(value, "an argument of a primitive")
    return value


class _Rules:
    """The user's rules, as the slots of a primitive."""

    def __init__(
        self, name: str, impl: Any, jvp: Any, vjp: Any, batch: Any, shape: Any, outputs: int
    ) -> None:
        self.name = name
        self.impl = impl
        self.jvp = jvp
        self.vjp = vjp
        self.batch = batch
        self.shape = shape
        self.outputs = outputs

    def several(self, result: Any, rule: str = "") -> tuple[Any, ...]:
        """One result, or several, as a tuple; checked if a user's rule returned it."""
        if not self.outputs:
            return (result,)
        if rule and (not isinstance(result, (tuple, list)) or len(result) != self.outputs):
            raise errors.RuleError(
                f"{rule} of the primitive {self.name} must return {self.outputs} values, not "
                f"{what_it_is(result)}."
            )
        return tuple(result)

    def result(self, values: Any) -> Any:
        """The inverse of `several`."""
        return tuple(values) if self.outputs else values[0]

    def run(self, *args: Any, **params: Any) -> Any:
        return self.result([*map(_as_array, self.several(self.impl(*args, **params), "impl"))])

    def specs(self, specs: Any, params: Any) -> Any:
        if self.shape is None:
            raise errors.MissingRuleError(
                f"the primitive {self.name} has no rule for shapes, so it cannot be staged, at "
                f"{errors.user_location()}. Give define_primitive shape=: a function of ArraySpecs "
                "that returns the ArraySpec of the result."
            )
        found = self.several(self.shape(*specs, **params), "shape")
        for spec in found:
            if not isinstance(spec, ArraySpec):
                raise errors.RuleError(
                    f"shape of the primitive {self.name} must return an ArraySpec, not {spec!r}."
                )
        return self.result(found)

    def over_lanes(self, primitive: Any, args: Any, batched: Any, size: int, params: Any) -> Any:
        if self.batch is None:
            pairs = list(zip(args, batched, strict=True))
            lanes = [
                self.several(primitive(*(a[k] if maps else a for a, maps in pairs), **params))
                for k in range(size)
            ]
            return self.result([np.stack(each) for each in zip(*lanes, strict=True)])
        results = self.several(self.batch(args, batched, **params), "batch")
        for result in results:
            if shape_of(result)[:1] != (size,):
                raise errors.RuleError(
                    f"batch of the primitive {self.name} must return the {size} lanes along the first "
                    f"axis, but returned {described(result)}."
                )
        return self.result(results)

    def push(self, out: Any, args: Any, tangents: Any, params: Any) -> Any:
        outs = self.several(out)
        if not any(map(is_inexact, outs)):
            return self.result([None] * len(outs))
        self._check_differentiable()
        if self.jvp is not None:
            given = [
                zero_tangent(a) if t is None else t for a, t in zip(args, tangents, strict=True)
            ]
            return self.result(self._tangents(outs, args, given, params))
        # J t is the transpose, applied to t, of the map from g to J^T g, which is linear.
        with Tape(self.vjp) as tape:
            cotangents = [tape.leaf(zero_tangent(each)) for each in outs]
            found = self._cotangents(outs, args, cotangents, params)
        moving = [tangent is not None for tangent in tangents]
        return self.result(
            sweep_back(tape, cotangents, chosen(found, moving), chosen(tangents, moving))
        )

    def trace(self, mask: int, out: Any, args: Any, params: Any) -> Any:
        outs = self.several(out)
        if not any(map(is_inexact, outs)):
            return None
        self._check_differentiable()
        return self._pull, (tracked(mask, len(args)), outs, args, params)

    def _check_differentiable(self) -> None:
        if self.jvp is None and self.vjp is None:
            raise errors.MissingRuleError(
                f"the primitive {self.name} has no rule for derivatives, at {errors.user_location()}. "
                "Give define_primitive jvp= or vjp=, or use functrans.stop_gradient on its arguments."
            )

    def _pull(self, cotangent: Any, saved: Any) -> Any:
        active, outs, args, params = saved
        given = [
            zero_tangent(out) if g is None else g
            for out, g in zip(outs, self.several(cotangent), strict=True)
        ]
        if self.vjp is not None:
            return bare(chosen(self._cotangents(outs, args, given, params), active))
        # The tangent is linear in the tangents, so the pullback is its transpose, taken at zero.
        with Tape(self.jvp) as tape:
            tangents = [
                tape.leaf(zero_tangent(arg)) if mine else zero_tangent(arg)
                for arg, mine in zip(args, active, strict=True)
            ]
            moved = self._tangents(outs, args, tangents, params)
        return bare(sweep_back(tape, chosen(tangents, active), moved, given))

    def _tangents(self, outs: Any, args: Any, tangents: Any, params: Any) -> list[Any]:
        result = self.jvp(self.result(outs), tuple(args), tuple(tangents), **params)
        return [
            self._matching(found, out, "jvp", "the tangent", "the output")
            for found, out in zip(self.several(result, "jvp"), outs, strict=True)
        ]

    def _cotangents(self, outs: Any, args: Any, given: Any, params: Any) -> list[Any]:
        result = self.vjp(self.result(outs), tuple(args), self.result(given), **params)
        if len(args) == 1 and not isinstance(result, (tuple, list)):
            result = (result,)
        if not isinstance(result, (tuple, list)) or len(result) != len(args):
            raise errors.RuleError(
                f"vjp of the primitive {self.name} must return one cotangent for each of {len(args)} "
                f"arrays, but returned {what_it_is(result)}."
            )
        return [
            self._matching(found, arg, "vjp", "the cotangent", "the argument")
            for found, arg in zip(result, args, strict=True)
        ]

    def _matching(self, found: Any, like: Any, rule: str, what: str, of: str) -> Any:
        if found is None or not is_inexact(like):
            return zero_tangent(like)
        if not tree.is_array(found) or shape_of(found) != shape_of(like):
            shown = described(found) if tree.is_array(found) else type(found).__name__
            raise errors.RuleError(
                f"{rule} of the primitive {self.name} returns a value that does not fit.\n"
                f"  {of} is {described(like)}\n"
                f"  {what} is {shown}"
            )
        return as_constant(cast(found, dtype_of(like)))
