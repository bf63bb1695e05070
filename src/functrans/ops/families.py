"""Families of primitives: each states one fact, and the rules are derived from it here.

elementwise   a NumPy function and one partial derivative per argument
constant      a NumPy function without a derivative (comparisons, rounding, argmax, ...)
linear        a NumPy function linear in its first argument, and its transpose

A partial derivative names the values it needs, out of `out` and the arguments `x`, `y`, `z`, `w` and `v`, and
only these are saved for the backward pass: `lambda x: np.cos(x)` keeps the input, `lambda out: out` the
output. Rules are plain NumPy code. On tracers, plain NumPy code calls primitives again, so rules can be
transformed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from types import BuiltinFunctionType
from typing import Any

import numpy as np

from functrans.core.custody import kept
from functrans.core.errors import RULE_FILE
from functrans.core.frozen import dtype_key
from functrans.core.primitive import Elementwise, Form, Primitive, Rule, always_number
from functrans.core.shapes import ArraySpec, shape_of, stand_in
from functrans.core.tracer import UFUNCS, install_binary, install_unary

Partial = Callable[..., Any] | int | None


def elementwise(
    ufunc: Any,
    *partials: Partial,
    impl: Rule | None = None,
    operator: str | None = None,
    name: str | None = None,
    views: bool | None = None,
    form: Form = always_number,
) -> Elementwise:
    """An elementwise primitive, from its partial derivatives.

    A partial is a function of the values it needs, 1 or -1 for these constants, or None for an argument
    through which no derivative flows. `operator` names the Python operator to install.
    """
    evaluate = impl or ufunc
    if isinstance(evaluate, (np.ufunc, BuiltinFunctionType)):
        views = False
    primitive = Elementwise(
        name or ufunc.__name__,
        evaluate,
        ufunc=ufunc,
        batch=batch_elementwise,
        shape=None,
        views=views,
        form=form,
    )
    known: dict[Any, ArraySpec] = {}
    primitive.shape = lambda specs, params: elementwise_spec(primitive.impl, specs, params, known)
    tables: Any = primitive
    tables.pushes = _Unread(primitive, "pushes", _push, partials)
    tables.rules = _Unread(primitive, "rules", _tape_rule, partials)
    if any(partial is not None for partial in partials):
        primitive.jvp = _jvp_from_pushes(primitive)
        primitive.vjp = vjp_from_rules(primitive)
    if isinstance(ufunc, np.ufunc):
        UFUNCS[ufunc] = primitive
    if operator is not None:
        (install_unary if len(partials) == 1 else install_binary)(operator, primitive)
    return primitive


class _Unread:
    """Stands for a table of rules that has not been read, and is replaced by it: most programs read few."""

    __slots__ = ("derive", "name", "partials", "primitive")

    def __init__(
        self, primitive: Elementwise, name: str, derive: Rule, partials: tuple[Partial, ...]
    ) -> None:
        self.primitive = primitive
        self.name = name
        self.derive = derive
        self.partials = partials

    def _table(self) -> tuple[Any, ...]:
        masks = range(1 << len(self.partials))
        table = tuple(self.derive(self.partials, mask) for mask in masks)
        setattr(self.primitive, self.name, table)
        return table

    def __getitem__(self, mask: int) -> Any:
        return self._table()[mask]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._table())

    def __len__(self) -> int:
        return len(self._table())


_NAMES = ("out", "x", "y", "z", "w", "v")


def _names(partial: Partial) -> tuple[str, ...]:
    """The values that a partial derivative needs: the names of its parameters."""
    if not callable(partial):
        return ()
    code = partial.__code__
    names: tuple[str, ...] = code.co_varnames[: code.co_argcount]
    return names


@cache
def _compiled(source: str) -> Callable[..., Any]:
    """A small function from its source. Most rules have one of about twenty forms, each compiled once."""
    function: Callable[..., Any] = eval(compile(source, RULE_FILE, "eval"))
    return function


_IDENTITY = (lambda x: x).__code__.co_code


def _factor(partial: Any, place: dict[str, str], functions: list[Any]) -> str:
    """A partial derivative as an expression; the functions in it are f0, f1, ..."""
    arguments = ", ".join(place[name] for name in _names(partial))
    if partial.__code__.co_code == _IDENTITY:  # ∂(x * y)/∂x is y, without a call
        return arguments
    functions.append(partial)
    return f"f{len(functions) - 1}({arguments})"


def _with_functions(source: str, functions: list[Any]) -> Callable[..., Any]:
    """A small function from its source, in which f0, f1, ... are these functions."""
    parameters = ", ".join(f"f{k}" for k in range(len(functions)))
    return _compiled(f"lambda {parameters}: {source}")(*functions)  # type: ignore[no-any-return]


def _push(partials: tuple[Partial, ...], mask: int) -> Rule | None:
    """The tangent of the result if the arguments in `mask` have tangents, written as one expression.

    For multiply with two tangents, that is
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

    For multiply with both arguments tracked, that is
    save = lambda out, x, y: (x, y,)
    pull = lambda g, s: (g * s[1], g * s[0],)
    An argument that is not tracked may be the user's array, so it is saved with `kept`.
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
    """save(out, *args) for the values with these names; `foreign` ones are saved with `kept`."""
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


def batch_elementwise(
    primitive: Any, args: tuple[Any, ...], batched: tuple[bool, ...], size: int, params: Any
) -> Any:
    """The batching rule of what broadcasts its arguments: the hidden axis is one more to broadcast."""
    return primitive(*align_batched(args, batched), **params)


def align_batched(args: tuple[Any, ...], batched: tuple[bool, ...]) -> list[Any]:
    """Line arguments up for broadcasting: ones go between the hidden axis and a short shape."""
    ndim = max(len(shape_of(arg)) - mapped for arg, mapped in zip(args, batched, strict=True))
    aligned = []
    for arg, mapped in zip(args, batched, strict=True):
        aligned.append(insert_ones(arg, ndim + 1 - len(arg.shape)) if mapped else arg)
    return aligned


def insert_ones(x: Any, count: int) -> Any:
    """x with so many axes of length one after the hidden one, which is the first."""
    return x.reshape(x.shape[:1] + (1,) * count + x.shape[1:]) if count > 0 else x


def with_lanes(value: Any, size: int) -> Any:
    """The same value in every lane: it gets the hidden axis."""
    return np.broadcast_to(value, (size, *shape_of(value)))


def spread_lanes(args: Sequence[Any], batched: Sequence[bool], size: int) -> list[Any]:
    """Give the arguments that are not mapped the hidden axis as well."""
    return [
        arg if mapped else with_lanes(arg, size) for arg, mapped in zip(args, batched, strict=True)
    ]


def batch_spreading(primitive: Any, args: Any, batched: Any, size: int, params: Any) -> Any:
    """The batching rule of what takes stacks: the hidden axis is one more axis of all of them."""
    return primitive(*spread_lanes(args, batched, size), **params)


def elementwise_spec(
    impl: Rule,
    specs: tuple[ArraySpec, ...],
    params: dict[str, Any],
    known: dict[Any, ArraySpec] | None = None,
) -> Any:
    """The spec of an elementwise result: broadcast the shapes, and ask NumPy for the dtype.

    NumPy's result for scalars of these dtypes is cached in `known`, if given, which belongs to the primitive
    and is freed with it.
    """
    shape = specs[0].shape
    if any(spec.shape != shape for spec in specs[1:]):
        shape = np.broadcast_shapes(*(spec.shape for spec in specs))
    scalars = tuple([ArraySpec((), spec.dtype, spec.weak) for spec in specs])
    if params or known is None:
        return result_spec(impl, scalars, params, shape)
    key = tuple([(dtype_key(spec.dtype), spec.weak) for spec in specs])
    scalar = known.get(key)
    if scalar is None:
        scalar = known[key] = result_spec(impl, scalars, {}, ())
    return ArraySpec(shape, scalar.dtype, scalar.weak)


def result_spec(impl: Rule, specs: Any, params: dict[str, Any], shape: tuple[int, ...]) -> Any:
    """The spec with this shape and the dtype that NumPy gives a small call with these specs."""
    with np.errstate(all="ignore"):
        out = impl(*[stand_in(spec) for spec in specs], **params)
    weak = type(out) in (bool, int, float, complex)
    return ArraySpec(shape, np.asarray(out).dtype, weak)


def constant(
    ufunc: Any, arity: int, *, impl: Rule | None = None, operator: str | None = None
) -> Elementwise:
    """An elementwise primitive without a derivative: its result is a plain value."""
    return elementwise(ufunc, *[None] * arity, impl=impl, operator=operator)


def linear(
    name: str,
    impl: Rule,
    transpose: Rule,
    *,
    batch: Rule,
    shape: Rule,
    kind: str = "operation",
    views: bool | None = None,
    form: Form = always_number,
) -> Primitive:
    """A primitive linear in its only array, from its transpose.

    transpose(cotangent, shape, **params) receives the shape of the array.
    """

    def jvp(out: Any, args: Any, tangents: Any, params: Any) -> Any:
        return primitive(tangents[0], **params)

    def pull(g: Any, saved: Any) -> Any:
        return transpose(g, saved[0], **saved[1])

    def vjp(mask: int, out: Any, args: Any, params: Any) -> Any:
        return pull, (shape_of(args[0]), params)

    primitive = Primitive(
        name, impl, batch=batch, shape=shape, jvp=jvp, vjp=vjp, kind=kind, views=views, form=form
    )
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
