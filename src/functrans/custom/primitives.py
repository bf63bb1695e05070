"""define_primitive: a user-defined primitive, made from any function of plain arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.control.procedures import sweep_back
from functrans.core import errors, tree
from functrans.core.custody import lending, own
from functrans.core.dispatch import Tracer
from functrans.core.evaluate import as_constant
from functrans.core.hooks import runs_again
from functrans.core.primitive import Primitive
from functrans.core.shapes import ArraySpec, cast, dtype_of, is_inexact, shape_of
from functrans.interpreters.tape import Tape
from functrans.transforms.arguments import check_callable, what_it_is
from functrans.transforms.leaves import bare, chosen, described, tracked, zero_tangent


def define_primitive(
    name: str,
    impl: Callable[..., Any],
    jvp: Callable[..., Any] | None = None,
    vjp: Callable[..., Any] | None = None,
    batch: Callable[..., Any] | None = None,
    shape: Callable[..., Any] | None = None,
    outputs: int = 0,
) -> Callable[..., Any]:
    """Define a primitive: a function of plain arrays, such as one written in C, and its rules.

    Arrays are passed by position, and parameters by keyword; parameters are plain values and are passed
    to every rule. Rules work on traced values and use NumPy and primitives, including this one, so they
    can be differentiated too. All rules but `impl` are optional.

    Parameters
    ----------
    name : str
        The name in graphs and error messages.
    impl : callable
        impl(*arrays, **params) -> array. The arrays are plain; it is never traced.
    jvp : callable, optional
        jvp(out, primals, tangents, **params) -> the tangent of `out`, linear in the tangents. If not
        given, `vjp` is transposed.
    vjp : callable, optional
        vjp(out, primals, cotangent, **params) -> a tuple with one cotangent per array, linear in the
        cotangent; None stands for zero. If not given, `jvp` is transposed.
    batch : callable, optional
        batch(arrays, batched, **params) -> the results of all lanes along a new first axis, where
        `batched` says which arrays have the lanes as first axis. If not given, lanes run one by one.
    shape : callable, optional
        shape(*specs, **params) -> the `ArraySpec` of the result. Required for staging.
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
        raise errors.OptionError(
            f"define_primitive needs a name, a str, not {name!r}, at {errors.user_location()}."
        )
    for function in (impl, jvp, vjp, batch, shape):
        if function is not None:
            function = check_callable(function, "define_primitive")
    rules = _Rules(name, impl, jvp, vjp, batch, shape, outputs)
    primitive = Primitive(
        name,
        rules.run,
        jvp=rules.push,
        vjp=rules.trace,
        batch=rules.over_lanes,
        shape=rules.specs,
        outputs=outputs,
        register=False,
    )

    def apply(*arrays: Any, **params: Any) -> Any:
        for key, value in params.items():
            _check_parameter(value, key, name)
        given = [_as_array(array) for array in arrays]
        if outputs:
            return tuple(own(list(primitive(*given, **params))))
        return own([primitive(*given, **params)])[0]

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = impl.__doc__
    return apply


def _check_parameter(value: Any, key: str, name: str) -> None:
    """Refuse a traced parameter: no rule differentiates it, and a graph could not hold it."""
    if any(isinstance(as_constant(leaf), Tracer) for leaf in tree.leaves(value)):
        raise errors.InputTypeError(
            f"the parameter {key} of the primitive {name} is traced, at {errors.user_location()}. "
            "Parameters, which are passed by keyword, must be plain values: pass it to the primitive as an "
            "array, by position."
        )


def _as_array(value: Any) -> Any:
    if not tree.is_array(value):
        value = np.asarray(value)
        tree.check_array(value, "an argument of a primitive")
    return value


class _Rules:
    """The user's rules, as the slots of a primitive.

    Their arguments are lent, and the library owns their results: see functrans.core.custody.
    """

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
        """One or several results as a tuple; checked if a user's rule returned them."""
        if not self.outputs:
            return (result,)
        if rule and (not isinstance(result, (tuple, list)) or len(result) != self.outputs):
            raise errors.RuleError(
                f"{rule} of the primitive {self.name} must return {self.outputs} values, not "
                f"{what_it_is(result)}, at {errors.user_location()}. Return them in a tuple."
            )
        return tuple(result)

    def result(self, values: Any) -> Any:
        """The inverse of `several`."""
        return tuple(values) if self.outputs else values[0]

    def run(self, *args: Any, **params: Any) -> Any:
        found = lending(lambda lent: self.impl(*lent, **params), args, self.impl)
        values = [*map(_as_array, self.several(found, "impl"))]
        del found
        return self.result(own(values, args))

    def specs(self, specs: Any, params: Any) -> Any:
        if self.shape is None:
            raise errors.MissingRuleError(
                f"the primitive {self.name} has no rule for shapes, so it cannot be staged, at "
                f"{errors.user_location()}. Pass shape= to define_primitive: a function of ArraySpecs "
                "that returns the ArraySpec of the result."
            )
        found = self.several(self.shape(*specs, **params), "shape")
        for spec in found:
            if not isinstance(spec, ArraySpec):
                raise errors.RuleError(
                    f"shape of the primitive {self.name} must return an ArraySpec, not {spec!r}, at "
                    f"{errors.user_location()}. Write functrans.ArraySpec(shape, dtype)."
                )
        return self.result(found)

    def over_lanes(self, primitive: Any, args: Any, batched: Any, size: int, params: Any) -> Any:
        if self.batch is None:
            pairs = list(zip(args, batched, strict=True))
            lanes = [
                self.several(primitive(*[a[k] if maps else a for a, maps in pairs], **params))
                for k in range(size)
            ]
            return self.result([np.stack(each) for each in zip(*lanes, strict=True)])
        found = lending(lambda lent: self.batch(tuple(lent), batched, **params), args, self.batch)
        results = list(self.several(found, "batch"))
        del found
        for k in range(len(results)):
            if shape_of(results[k])[:1] != (size,):
                raise errors.RuleError(
                    f"batch of the primitive {self.name} must return the {size} lanes along the first "
                    f"axis, but returned {described(results[k])}, at {errors.user_location()}."
                )
        return self.result(own(results, args))

    @runs_again
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
            tape.reruns = True
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
                "Pass jvp= or vjp= to define_primitive."
            )

    @runs_again
    def _pull(self, cotangent: Any, saved: Any) -> Any:
        active, outs, args, params = saved
        given = [
            zero_tangent(out) if g is None else g
            for out, g in zip(outs, self.several(cotangent), strict=True)
        ]
        if self.vjp is not None:
            return bare(chosen(self._cotangents(outs, args, given, params), active))
        # The output tangent is linear in the input tangents, so the pullback is its transpose, at zero.
        with Tape(self.jvp) as tape:
            tape.reruns = True
            tangents = [
                tape.leaf(zero_tangent(arg)) if mine else zero_tangent(arg)
                for arg, mine in zip(args, active, strict=True)
            ]
            moved = self._tangents(outs, args, tangents, params)
        return bare(sweep_back(tape, chosen(tangents, active), moved, given))

    def _tangents(self, outs: Any, args: Any, tangents: Any, params: Any) -> list[Any]:
        n, count = len(outs), len(outs) + len(args)

        def run(lent: list[Any]) -> Any:
            primals, moved = tuple(lent[n:count]), tuple(lent[count:])
            return self.jvp(self.result(lent[:n]), primals, moved, **params)

        given = [*outs, *args, *tangents]
        result = lending(run, given, self.jvp)
        tangents = [
            self._matching(found, out, "jvp", "the tangent", "the output")
            for found, out in zip(self.several(result, "jvp"), outs, strict=True)
        ]
        del result
        return own(tangents, given)

    def _cotangents(self, outs: Any, args: Any, given: Any, params: Any) -> list[Any]:
        n, count = len(outs), len(outs) + len(args)

        def run(lent: list[Any]) -> Any:
            primals, cotangent = tuple(lent[n:count]), self.result(lent[count:])
            return self.vjp(self.result(lent[:n]), primals, cotangent, **params)

        leaves = [*outs, *args, *given]
        result = lending(run, leaves, self.vjp)
        if len(args) == 1 and not isinstance(result, (tuple, list)):
            result = (result,)
        if not isinstance(result, (tuple, list)) or len(result) != len(args):
            raise errors.RuleError(
                f"vjp of the primitive {self.name} must return one cotangent for each of its {len(args)} "
                f"arrays, but returned {what_it_is(result)}, at {errors.user_location()}. Return them in "
                "a tuple, with None for zero."
            )
        cotangents = [
            self._matching(found, arg, "vjp", "the cotangent", "the argument")
            for found, arg in zip(result, args, strict=True)
        ]
        del result
        return own(cotangents, leaves)

    def _matching(self, found: Any, like: Any, rule: str, what: str, of: str) -> Any:
        if found is None or not is_inexact(like):
            return zero_tangent(like)
        if not tree.is_array(found) or shape_of(found) != shape_of(like):
            shown = described(found) if tree.is_array(found) else type(found).__name__
            raise errors.RuleError(
                f"{rule} of the primitive {self.name} returns a value of the wrong shape or dtype, at "
                f"{errors.user_location()}.\n"
                f"  {of} is {described(like)}\n"
                f"  {what} is {shown}"
            )
        return as_constant(cast(found, dtype_of(like)))
