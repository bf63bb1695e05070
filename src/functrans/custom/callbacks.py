"""pure_callback and tap: call Python functions with plain values inside any transform."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.control.procedures import Flattened
from functrans.core import errors, tree
from functrans.core.custody import guarded, own
from functrans.core.evaluate import compute
from functrans.core.places import place_in
from functrans.core.primitive import HigherOrder
from functrans.core.shapes import ArraySpec, spec_of
from functrans.interpreters.batch import Batch
from functrans.transforms.arguments import check_callable
from functrans.transforms.leaves import (
    bare,
    chosen,
    common_spec,
    described,
    fitted,
    flat,
    is_known,
    is_moving,
    strong,
    tracked,
    with_lanes_where,
    zeros,
)


def pure_callback(f: Callable[..., Any], result_shape: Any, *args: Any) -> Any:
    """Call f(*args) without tracing it: `f` gets plain arrays, even when a graph runs.

    The call has no derivative, and differentiating it is an error: give it one with `custom_jvp`,
    `custom_vjp` or `define_primitive`, or apply `stop_gradient` to the arguments. Under `vmap`, `f` is
    called once per lane.

    Parameters
    ----------
    f : callable
        A function of plain arrays without side effects. How often it is called is unspecified.
    result_shape : pytree of ArraySpec
        The structure, shapes and dtypes of its result.
    *args
        Pytrees of arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import ArraySpec, pure_callback, vmap
    >>> digits = lambda x: len(str(int(x)))
    >>> vmap(lambda x: pure_callback(digits, ArraySpec((), int), x))(np.array([7, 12345]))
    array([1, 5])
    """
    f = check_callable(f, "pure_callback")
    specs, out_structure = tree.flatten(result_shape)
    for spec in specs:
        if not isinstance(spec, ArraySpec) and not tree.is_array(spec):
            raise errors.InputTypeError(
                "pure_callback: result_shape must be an ArraySpec, or a pytree of them, not "
                f"{tree.with_article(spec)}, at {errors.user_location()}. Write "
                "functrans.ArraySpec(shape, dtype)."
            )
    leaves, structure = flat(args, "pure_callback: an argument")
    function = Flattened(f, structure, "pure_callback")
    expected = tuple(strong(spec_of(spec)) for spec in specs)
    checked = _Checked(function, expected, out_structure)
    results = list(callback(*leaves, function=checked, specs=expected))
    return tree.unflatten(out_structure, own(results))


class _Checked:
    """A callback whose results are checked against the specs it promised."""

    def __init__(self, function: Flattened, specs: Any, structure: Any) -> None:
        self.function = function
        self.specs = specs
        self.structure = structure

    def __repr__(self) -> str:
        return getattr(self.function.function, "__name__", "f")

    def __call__(self, *leaves: Any) -> list[Any]:
        found = self.function(*leaves)
        fits = self.function.out_structure == self.structure and all(
            common_spec(spec_of(value), spec) == spec
            for value, spec in zip(found, self.specs, strict=True)
        )
        if not fits:
            raise errors.RuleError(
                f"pure_callback: {errors.describe(self.function.function)} returned shapes or dtypes "
                f"that differ from result_shape, at {errors.user_location()}.\n"
                f"  result_shape is  {tree.unflatten(self.structure, self.specs)}\n"
                f"  it returned      {described(self.function.rebuild(found))}"
            )
        return [fitted(value, spec) for value, spec in zip(found, self.specs, strict=True)]


class _LaneByLane:
    """A function of flat arrays, called for each lane."""

    def __init__(self, function: Any, batched: Any, size: int) -> None:
        self.function = function
        self.batched = batched
        self.size = size

    def __repr__(self) -> str:
        return repr(self.function)

    def __call__(self, *leaves: Any) -> list[Any]:
        lanes = [
            self.function(
                *(
                    leaf[k] if maps else leaf
                    for leaf, maps in zip(leaves, self.batched, strict=True)
                )
            )
            for k in range(self.size)
        ]
        return [np.stack(each) for each in zip(*lanes, strict=True)]


def _no_derivative(function: Any, specs: Any) -> None:
    if any(map(is_moving, specs)):
        raise errors.MissingRuleError(
            f"pure_callback has no derivative, at {errors.user_location()}: {function!r} is not traced. "
            "Wrap the call in a function with a rule, using custom_jvp; or treat it as a constant, with "
            "stop_gradient around its arguments."
        )


def _push_callback(args: Any, tangents: Any, params: Any) -> Any:
    _no_derivative(**params)
    outs = compute(callback, *args, **params)
    return outs, (None,) * len(outs)


def _trace_callback(mask: int, args: Any, params: Any) -> Any:
    _no_derivative(**params)
    return compute(callback, *args, **params), None, None


def _batch_callback(args: Any, batched: Any, batch: Batch, params: Any) -> Any:
    specs = tuple(ArraySpec((batch.size, *spec.shape), spec.dtype) for spec in params["specs"])
    return callback(
        *args, function=_LaneByLane(params["function"], batched, batch.size), specs=specs
    )


callback = HigherOrder(
    "pure_callback",
    lambda *args, function, specs: tuple(function(*args)),
    push=_push_callback,
    trace=_trace_callback,
    batch=_batch_callback,
    shape=lambda specs, params: params["specs"],
    plain=True,
)


def tap(x: Any, fn: Callable[[Any], Any], backward: Callable[[Any], Any] | None = None) -> Any:
    """Return `x` unchanged, and call `fn` with it; in the backward pass, call `fn` with its cotangents.

    Parameters
    ----------
    x : pytree of arrays
    fn : callable
        Called as fn(x), with plain values; its result is ignored. Under `vmap` it is called for each
        lane, and in a graph each time the graph runs and needs the values.
    backward : callable, optional
        Called with the cotangents instead of `fn`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad, tap
    >>> seen = []
    >>> gradient = grad(lambda x: tap(x**2, seen.append) * 3.0)(5.0)
    >>> [float(value) for value in seen]
    [25.0, 3.0]
    """
    fn = check_callable(fn, "tap")
    if backward is not None:
        backward = check_callable(backward, "tap")
    leaves, structure = flat(x, "tap: a value")
    results = tapped(
        *leaves,
        forward=_Tapped(fn, structure),
        backward=_Tapped(backward or fn, structure),
        count=len(leaves),
    )
    return tree.unflatten(structure, own(list(results)))  # plain ones are the caller's: copies


class _Tapped:
    """A user's function of a tree, as one of flat arrays that returns them."""

    def __init__(self, function: Any, structure: Any) -> None:
        self.function = function
        self.structure = structure

    def __repr__(self) -> str:
        return getattr(self.function, "__name__", "f")

    def __call__(self, *leaves: Any) -> tuple[Any, ...]:
        try:
            self.function(tree.unflatten(self.structure, map(guarded, leaves)))
        except ValueError as error:
            if not str(error).endswith("read-only"):
                raise
            raise errors.AssignmentError(
                f"tap: {errors.describe_users(self.function)} assigned to its argument, which is "
                f"read-only, at {place_in(error.__traceback__)}. Change a copy: y = np.array(y)."
            ) from error
        return leaves


# tapped(*leaves, *anchors, forward=, backward=, count=): the anchors are ignored. They keep the call in a
# graph that is being traced, even if the leaves are constants.


def _impl_tap(*args: Any, forward: Any, backward: Any, count: int) -> Any:
    return tuple(forward(*args[:count]))


def _push_tap(args: Any, tangents: Any, params: Any) -> Any:
    return compute(tapped, *args, **params), tangents[: params["count"]]


def _trace_tap(mask: int, args: Any, params: Any) -> Any:
    outs = compute(tapped, *args, **params)
    count = params["count"]
    active = tracked(mask, len(args))
    if not any(active[:count]):
        return outs, None, None
    likes = [strong(spec_of(out)) for out in outs]
    anchors = [arg for arg in args if not is_known(arg)][:1]
    return outs, _pull_tap, (active, likes, anchors, params)


def _pull_tap(cotangents: Any, saved: Any) -> Any:
    active, likes, anchors, params = saved
    given = [zeros(like) if g is None else g for g, like in zip(cotangents, likes, strict=True)]
    found = tapped(*given, *anchors, **{**params, "forward": params["backward"]})
    count = params["count"]
    return bare([*chosen(found, active[:count]), *(None for flag in active[count:] if flag)])


def _batch_tap(args: Any, batched: Any, batch: Batch, params: Any) -> Any:
    size, count = batch.size, params["count"]
    every = with_lanes_where(args, batched, (True,) * len(args), size)

    def over_lanes(function: Any) -> _LaneByLane:
        return _LaneByLane(function, (True,) * count, size)

    return tapped(
        *every,
        forward=over_lanes(params["forward"]),
        backward=over_lanes(params["backward"]),
        count=count,
    )


tapped = HigherOrder(
    "tap",
    _impl_tap,
    push=_push_tap,
    trace=_trace_tap,
    batch=_batch_tap,
    shape=lambda specs, params: specs[: params["count"]],
    plain=True,
)
