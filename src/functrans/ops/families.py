"""Families of primitives: each states one fact, and the rules are derived from it here.

elementwise   a NumPy function and one partial derivative per argument
constant      a NumPy function without a derivative (comparisons, rounding, argmax, ...)
linear        a NumPy function linear in its first argument, and its transpose

A partial derivative names what it needs, out of `out` and the arguments, which are `x`, `y`, `z`,
`w` and `v`, and only that is saved for the backward sweep: `lambda x: np.cos(x)` keeps the input,
`lambda out: out` the output. Rules are plain NumPy code. On tracers plain NumPy code is primitives
again, so rules can be transformed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache
from typing import Any

import numpy as np

from functrans.core.errors import RULE_FILE
from functrans.core.evaluate import kept
from functrans.core.primitive import Elementwise, Primitive, Rule
from functrans.core.shapes import ArraySpec, shape_of, stand_in
from functrans.core.tracer import UFUNCS, install_binary, install_unary

Partial = Callable[..., Any] | int | None


def elementwise(
    ufunc: Any,
    *partials: Partial,
    impl: Rule | None = None,
    operator: str | None = None,
    name: str | None = None,
) -> Elementwise:
    """A primitive that works entry by entry, from its partial derivatives.

    A partial is a function of what it needs, 1 or -1 for those constants, or None for an argument
    through which no derivative flows. `operator` names the Python operator to install.
    """
    primitive = Elementwise(
        name or ufunc.__name__,
        impl or ufunc,
        batch=_batch_elementwise,
        shape=None,  # type: ignore[arg-type]
    )
    primitive.shape = lambda specs, params: elementwise_spec(primitive.impl, specs, params)
    masks = range(1 << len(partials))
    primitive.pushes = tuple(_push(partials, mask) for mask in masks)
    primitive.rules = tuple(_tape_rule(partials, mask) for mask in masks)
    if any(rule is not None for rule in primitive.rules):
        primitive.jvp = _jvp_from_pushes(primitive)
        primitive.vjp = vjp_from_rules(primitive)
    if isinstance(ufunc, np.ufunc):
        UFUNCS[ufunc] = primitive
    if operator is not None:
        (install_unary if len(partials) == 1 else install_binary)(operator, primitive)
    return primitive


_NAMES = ("out", "x", "y", "z", "w", "v")


def _names(partial: Partial) -> tuple[str, ...]:
    """What a partial derivative needs: the names of its parameters."""
    if not callable(partial):
        return ()
    code = partial.__code__
    names: tuple[str, ...] = code.co_varnames[: code.co_argcount]
    return names


@cache
def _compiled(source: str) -> Callable[..., Any]:
    """A small function from its source. Most rules have one of some twenty forms, each made once."""
    function: Callable[..., Any] = eval(compile(source, RULE_FILE, "eval"))
    return function


_IDENTITY = (lambda x: x).__code__.co_code


def _factor(partial: Any, place: dict[str, str], functions: list[Any]) -> str:
    """A partial derivative as an expression; the functions in it are f0, f1, ..."""
    arguments = ", ".join(place[name] for name in _names(partial))
    if partial.__code__.co_code == _IDENTITY:  # that of x * y by x is y, without a call
        return arguments
    functions.append(partial)
    return f"f{len(functions) - 1}({arguments})"


def _with_functions(source: str, functions: list[Any]) -> Callable[..., Any]:
    """A small function from its source, in which f0, f1, ... are these functions."""
    parameters = ", ".join(f"f{k}" for k in range(len(functions)))
    return _compiled(f"lambda {parameters}: {source}")(*functions)  # type: ignore[no-any-return]


def _push(partials: tuple[Partial, ...], mask: int) -> Rule | None:
    """The tangent of the result if the arguments in `mask` move, written out as one expression.

    For multiply with both arguments moving that is
    lambda out, x, y, dx, dy: y * dx + x * dy
    """
    names = _NAMES[: len(partials) + 1]
    place = {name: name for name in names}
    total = ""
    functions: list[Any] = []
    for k, partial in enumerate(partials):
        if partial is None or not mask >> k & 1:
            continue
        tangent = f"d{names[k + 1]}"
        if callable(partial):
            tangent = f"{_factor(partial, place, functions)} * {tangent}"
        total += (" - " if partial == -1 else " + " if total else "") + tangent
    if not total:
        return None
    slots = ", ".join((*names, *(f"d{name}" for name in names[1:])))
    return _with_functions(f"lambda {slots}: {total}", functions)


def _jvp_from_pushes(primitive: Elementwise) -> Rule:
    """The jvp slot of an elementwise primitive."""

    def jvp(out: Any, args: Any, tangents: Any, params: Any) -> Any:
        mask = sum(1 << k for k, tangent in enumerate(tangents) if tangent is not None)
        push = primitive.pushes[mask]
        return None if push is None else push(out, *args, *tangents)

    return jvp


def _tape_rule(partials: tuple[Partial, ...], mask: int) -> tuple[Rule | None, Rule] | None:
    """(save, pull) for the arguments in `mask`, each written out as one expression.

    For multiply with both arguments tracked that is
    save = lambda out, x, y: (x, y,)
    pull = lambda g, s: (g * s[1], g * s[0],)
    An argument that is not tracked may be the user's own array, so it is saved by `kept`.
    """
    tracked = [partial for k, partial in enumerate(partials) if mask >> k & 1]
    if all(partial is None for partial in tracked):
        return None
    needed = [name for name in _NAMES if any(name in _names(partial) for partial in tracked)]
    foreign = {name for k, name in enumerate(_NAMES[1:]) if not mask >> k & 1}
    bare = len(needed) == 1  # one value is saved as it is, several as a tuple
    place = {name: "s" if bare else f"s[{k}]" for k, name in enumerate(needed)}
    terms: list[str] = []
    functions: list[Any] = []
    for partial in tracked:
        if callable(partial):
            terms.append(f"g * {_factor(partial, place, functions)}")
        else:
            terms.append({None: "None", 1: "g", -1: "-g"}[partial])
    result = terms[0] if len(terms) == 1 else f"({', '.join(terms)},)"
    pull: Any = _with_functions(f"lambda g, s: {result}", functions)
    pull.needs = tuple(needed)
    return saver(pull.needs, len(partials), foreign), pull


def saver(needed: tuple[str, ...], arity: int, foreign: Collection[str] = ()) -> Rule | None:
    """save(out, *args) for the values of these names; those that are `foreign` by `kept`."""
    if not needed:
        return None
    slots = ", ".join(_NAMES[: arity + 1])
    values = [f"kept({name})" if name in foreign else name for name in needed]
    saved = values[0] if len(values) == 1 else f"({', '.join(values)},)"
    function: Rule = _compiled(f"lambda kept: lambda {slots}: {saved}")(kept)
    return function


def vjp_from_rules(primitive: Primitive) -> Rule:
    """The vjp slot of a primitive that has a table of rules."""

    def vjp(mask: int, out: Any, args: Any, params: Any) -> Any:
        rule = primitive.rules[mask]
        if rule is None:
            return None
        save, pull = rule
        return pull, None if save is None else save(out, *args)

    return vjp


def _batch_elementwise(
    primitive: Any, args: tuple[Any, ...], batched: tuple[bool, ...], size: int, params: Any
) -> Any:
    return primitive(*align_batched(args, batched), **params)


def align_batched(args: tuple[Any, ...], batched: tuple[bool, ...]) -> list[Any]:
    """Line arguments up for broadcasting: ones go between the hidden axis and a short shape."""
    ndim = max(len(shape_of(arg)) - mapped for arg, mapped in zip(args, batched, strict=True))
    aligned = []
    for arg, mapped in zip(args, batched, strict=True):
        if mapped:
            shape = arg.shape
            missing = ndim - len(shape) + 1
            if missing:
                arg = arg.reshape(shape[:1] + (1,) * missing + shape[1:])
        aligned.append(arg)
    return aligned


def elementwise_spec(impl: Rule, specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> Any:
    """The spec of an entry-by-entry result: broadcast the shapes, and ask NumPy for the dtype."""
    shape = specs[0].shape
    if any(spec.shape != shape for spec in specs[1:]):
        shape = np.broadcast_shapes(*(spec.shape for spec in specs))
    scalars = tuple([ArraySpec((), spec.dtype, spec.weak) for spec in specs])
    if params:
        return result_spec(impl, scalars, params, shape)
    scalar = _scalar_spec(impl, scalars)
    return ArraySpec(shape, scalar.dtype, scalar.weak)


@cache
def _scalar_spec(impl: Rule, scalars: tuple[ArraySpec, ...]) -> Any:
    """What NumPy gives for scalars of these dtypes, which is asked once."""
    return result_spec(impl, scalars, {}, ())


def result_spec(impl: Rule, specs: Any, params: dict[str, Any], shape: tuple[int, ...]) -> Any:
    """The spec with this shape and the dtype that NumPy gives a small call with these specs."""
    with np.errstate(all="ignore"):
        out = impl(*(stand_in(spec) for spec in specs), **params)
    weak = type(out) in (bool, int, float, complex)
    return ArraySpec(shape, np.asarray(out).dtype, weak)


def spec_by_trial(impl: Rule) -> Rule:
    """A shape rule that asks NumPy itself, on stand-ins that hold one number each."""

    def shape(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> ArraySpec:
        out = impl(*map(stand_in, specs), **params)
        return ArraySpec(np.shape(out), np.asarray(out).dtype)

    return shape


def constant(
    ufunc: Any, arity: int, *, impl: Rule | None = None, operator: str | None = None
) -> Any:
    """An elementwise primitive without a derivative: its result is a plain value."""
    return elementwise(ufunc, *[None] * arity, impl=impl, operator=operator)


def linear(
    name: str,
    impl: Rule,
    transpose: Rule,
    *,
    batch: Rule,
    shape: Rule,
) -> Primitive:
    """A primitive linear in its only array, from its transpose.

    transpose(cotangent, shape, **params) is given the shape of the array.
    """

    def jvp(out: Any, args: Any, tangents: Any, params: Any) -> Any:
        return primitive(tangents[0], **params)

    def pull(g: Any, saved: Any) -> Any:
        return transpose(g, saved[0], **saved[1])

    def vjp(mask: int, out: Any, args: Any, params: Any) -> Any:
        return pull, (shape_of(args[0]), params)

    primitive = Primitive(name, impl, batch=batch, shape=shape, jvp=jvp, vjp=vjp)
    return primitive


def batch_shifting(*axis_params: str) -> Rule:
    """A batching rule for a primitive of one array whose parameters name non-negative axes."""

    def batch(primitive: Any, args: Any, batched: Any, size: int, params: Any) -> Any:
        shifted = dict(params)
        for name in axis_params:
            axis = params[name]
            shifted[name] = axis + 1 if isinstance(axis, int) else tuple(a + 1 for a in axis)
        return primitive(*args, **shifted)

    return batch
