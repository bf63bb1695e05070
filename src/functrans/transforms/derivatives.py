"""Derivatives: grad, value_and_grad, vjp, jvp, linearize, linear_transpose, stop_gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from functrans.core import errors, tree
from functrans.core.dispatch import Tracer
from functrans.core.evaluate import (
    as_constant,
    captured,
    check_unchanged,
    kept,
    opened,
    watched_since,
)
from functrans.core.shapes import ArraySpec, dtype_of, shape_of, spec_of
from functrans.interpreters.dual import Dual, DualTracer, LinearizingDual
from functrans.interpreters.stage import Stage, StageTracer, TangentStage
from functrans.interpreters.tape import Tape, TapeTracer, sweep
from functrans.ops import structure as structure_ops
from functrans.transforms.arguments import (
    check_callable,
    check_inexact,
    check_matching,
    check_structure,
    flatten_argument,
    guarded,
    leaf_names,
    named_like,
    own_all,
    own_distinct,
    positions_of,
    unflatten_argument,
    what_it_is,
)

_ONE = np.float64(1)
_ndarray = np.ndarray
_FLOAT64 = np.dtype(float)


def grad(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """The gradient of a function with one real number as result.

    Parameters
    ----------
    f : callable
        A function of arrays (or pytrees of arrays) written in plain NumPy.
    argnums : int or sequence of int
        The positions of the arguments to differentiate by. A sequence gives a tuple of gradients.
    has_aux : bool
        Whether f returns (value, aux); then the result is (gradient, aux).
    holomorphic : bool
        Whether f is a complex-differentiable function of complex arguments; then the result is its
        complex derivative. Without it, a real function u of z = x + iy gives du/dx - i du/dy.

    Returns
    -------
    callable
        A function with the arguments of f that returns the gradient, of the structure, shapes and
        dtypes of the arguments.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    array([2., 4.])
    >>> float(grad(grad(np.sin))(0.5) + np.sin(0.5))
    0.0
    """
    check_callable(f, "grad")

    def gradient(*args: Any, **kwargs: Any) -> Any:
        _, gradients, aux = _differentiate(f, argnums, has_aux, holomorphic, args, kwargs)
        return (gradients, aux) if has_aux else gradients

    return named_like(f, "grad")(gradient)


def value_and_grad(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """The value of a function together with its gradient, for the price of the gradient.

    The options are those of `grad`. Returns (value, gradient), or ((value, aux), gradient).

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import value_and_grad
    >>> value, gradient = value_and_grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    >>> float(value), gradient
    (5.0, array([2., 4.]))
    """
    check_callable(f, "value_and_grad")

    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        value, gradients, aux = _differentiate(f, argnums, has_aux, holomorphic, args, kwargs)
        return ((value, aux), gradients) if has_aux else (value, gradients)

    return named_like(f, "value_and_grad")(value_and_gradient)


def _differentiate(
    f: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool,
    holomorphic: bool,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[Any, Any, Any]:
    """The value, gradients and aux of f: record it on a tape, and sweep back from the output."""
    positions = positions_of(argnums, len(args), f)
    traced_args = list(args)
    if len(args) > len(positions):
        for k, arg in enumerate(args):
            if k not in positions:
                traced_args[k] = guarded(arg)
    if kwargs:
        kwargs = guarded(kwargs)
    aux = None
    likes: list[Any] = []
    keys: list[int] = []
    with Tape(f) as tape:
        for position in positions:
            argument = args[position]
            try:
                traced_args[position] = _traced(argument, tape, likes, keys)
            except errors.FunctransError:
                check_inexact(argument, tree.leaves(argument), position, "grad")  # says where it is
                raise
            except RecursionError:
                tree.flatten(argument)  # says that a container holds itself
                raise
            if holomorphic:
                _check_holomorphic(likes, f"argument {position}")
        out = f(*traced_args, **kwargs)
    if has_aux:
        out, aux = _split_aux(out, f)
        aux = _without_tape(aux, tape)
    cotangents: dict[int, Any] = {}
    box = None
    if type(out) is not TapeTracer:
        out, box = tree.unboxed(out)
    value = out
    if type(out) is TapeTracer and out.interpreter is tape:
        value = out.value
        cotangents[out.record[0]] = _ONE if type(value) is np.float64 else dtype_of(value).type(1)
    if type(value) is not np.float64 or holomorphic:
        value = as_constant(value)
        check_scalar(value, f, holomorphic)
    # The output's record refers to all others; let go of it, so that the sweep can free them.
    del out
    check_unchanged(watched_since(tape.mark))
    sweep(tape.records, cotangents)
    found = iter(opened(own_all(cotangents, keys, likes, set()), likes))

    gradients = [_replaced(args[position], found) for position in positions]
    if box is not None:
        value = tree.unflatten(box, [value])
    return value, gradients[0] if isinstance(argnums, int) else tuple(gradients), aux


# Trees of plain containers are walked here, several times faster than in general.


def _traced(value: Any, tape: Tape, likes: list[Any], keys: list[int]) -> Any:
    """The same tree with tracers for its leaves, which are noted in order."""
    kind = type(value)
    if kind is list or kind is tuple:
        parts = []
        for part in value:
            if type(part) is _ndarray and part.dtype is _FLOAT64:  # the common leaf
                tracer = tape.leaf(part)
                likes.append(part)
                keys.append(tracer.record[0])
                parts.append(tracer)
            else:
                parts.append(_traced(part, tape, likes, keys))
        return kind(parts)
    if kind is dict:
        return {name: _traced(v, tape, likes, keys) for name, v in value.items()}
    if kind is not _ndarray or value.dtype.kind not in "fc":
        leaves, structure = flatten_argument(value)
        if structure is not None:  # a container of another kind
            return tree.unflatten(structure, [_traced(v, tape, likes, keys) for v in leaves])
        check_inexact(value, leaves, 0, "grad")
    tracer = tape.leaf(value)
    likes.append(value)
    keys.append(tracer.record[0])
    return tracer


def _replaced(value: Any, new: Iterator[Any]) -> Any:
    """The same tree with new leaves, in the same order."""
    kind = type(value)
    if kind is _ndarray:
        return next(new)
    if kind is list or kind is tuple:
        return kind([next(new) if type(v) is _ndarray else _replaced(v, new) for v in value])
    if kind is dict:
        return {name: _replaced(v, new) for name, v in value.items()}
    leaves, structure = flatten_argument(value)
    if structure is None:
        return next(new)
    return tree.unflatten(structure, [_replaced(v, new) for v in leaves])


def _without_tape(value: Any, tape: Tape) -> Any:
    """The values behind a finished tape's tracers, in a tree of anything."""

    def plain(leaf: Any) -> Any:
        ours = type(leaf) is TapeTracer and leaf.interpreter is tape
        return leaf.value if ours else as_constant(leaf)

    return tree.map(plain, value)


def _check_holomorphic(leaves: list[Any], name: str) -> None:
    for leaf in leaves:
        if dtype_of(leaf).kind != "c":
            raise errors.InputTypeError(
                f"grad with holomorphic=True needs complex arguments, but {name} has dtype "
                f"{dtype_of(leaf)}. Convert it with .astype(complex), or leave holomorphic out."
            )


def check_scalar(
    value: Any, f: Callable[..., Any], holomorphic: bool = False, transform: str = "grad"
) -> None:
    """Refuse what is not one number, of the kind that has a gradient."""
    if not tree.is_array(value):
        raise errors.OutputTypeError(
            f"{transform} needs a function that returns one real number, but {errors.describe(f)} "
            f"returned {what_it_is(value)}. Return the number alone, or use has_aux=True for (value, "
            "extra results)."
        )
    shape, dtype = shape_of(value), dtype_of(value)
    if shape != ():
        raise errors.OutputShapeError(
            f"{transform} needs a function that returns one real number, but {errors.describe(f)} "
            f"returned an array of shape {shape}. Reduce it (np.sum, np.mean), or use jacrev, "
            "jacfwd or vjp for functions with many outputs."
        )
    if holomorphic:
        if dtype.kind != "c":
            raise errors.OutputTypeError(
                f"{transform} with holomorphic=True needs a complex output, but {errors.describe(f)} "
                f"returned dtype {dtype}. Leave holomorphic out for real functions."
            )
    elif dtype.kind == "c":
        raise errors.OutputTypeError(
            f"{transform} needs a real output, but {errors.describe(f)} returned dtype {dtype}. Take "
            "np.real or np.abs of it, or use holomorphic=True if the function is holomorphic."
        )
    elif dtype.kind != "f":
        raise errors.OutputTypeError(
            f"{transform} needs a floating point output, but {errors.describe(f)} returned dtype {dtype}, "
            "which has no derivative. Return a float, and mind that comparisons, rounding and "
            "argmax give constants."
        )


def vjp(f: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of a function and its pullback, which takes cotangents of outputs to inputs.

    Returns (out, pullback), or (out, pullback, aux) with has_aux. `pullback(cotangent)` takes a
    cotangent of the structure of `out` and returns a tuple with one entry for each primal. It may be
    called many times, and may itself be transformed.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import vjp
    >>> out, pullback = vjp(lambda x: x * np.array([2.0, 3.0]), np.array([1.0, 1.0]))
    >>> pullback(np.array([1.0, 10.0]))
    (array([ 2., 30.]),)
    """
    check_callable(f, "vjp")
    with Tape(f) as tape:
        tape_inputs = []
        traced = []
        for position, primal in enumerate(primals):
            leaves, structure = flatten_argument(primal)
            check_inexact(primal, leaves, position, "vjp")
            tracers = [tape.leaf(kept(leaf)) for leaf in leaves]
            traced.append(unflatten_argument(structure, tracers))
            keys = [tracer.record[0] for tracer in tracers]
            # Specs, not leaves: the pullback must not keep the primals alive.
            tape_inputs.append((structure, [spec_of(leaf) for leaf in leaves], keys))
        out = f(*traced)
    aux = None
    if has_aux:
        out, aux = _split_aux(out, f)
        aux = _without_tape(aux, tape)
    out_leaves, out_structure = flatten_argument(out)
    outputs = []  # for each output leaf: (its record's key or None, spec)
    values = []
    for k, leaf in enumerate(out_leaves):
        if not tree.is_array(leaf):
            tree.check_array(
                leaf, f"vjp: {leaf_names(out, 'the output')[k]} of {errors.describe(f)}"
            )
        ours = type(leaf) is TapeTracer and leaf.interpreter is tape
        outputs.append((leaf.record[0] if ours else None, spec_of(leaf)))
        # What the pullback keeps must not change when the user changes the output.
        values.append(kept(leaf.value) if ours else as_constant(leaf))
    records, watched = tape.records, watched_since(tape.mark)
    value = unflatten_argument(out_structure, values)

    def pullback(cotangent: Any) -> tuple[Any, ...]:
        leaves, structure = flatten_argument(cotangent)
        if structure != out_structure:
            check_structure(
                tree.structure(cotangent), tree.structure(value), "cotangents", "outputs"
            )
        specs = [spec for _, spec in outputs]
        names = lambda: leaf_names(value, "the output")
        leaves = check_matching(leaves, specs, names, "cotangent", "output")
        cotangents: dict[int, Any] = {}
        for leaf, (key, spec) in zip(leaves, outputs, strict=True):
            if key is not None and spec.dtype.kind in "fc":
                cotangents[key] = leaf + cotangents[key] if key in cotangents else leaf
        given = {id(leaf) for leaf in leaves}
        check_unchanged(watched)
        sweep(list(records), cotangents)
        return tuple(
            unflatten_argument(structure, own_all(cotangents, keys, specs, given))
            for structure, specs, keys in tape_inputs
        )

    return (value, pullback, aux) if has_aux else (value, pullback)


def _split_aux(out: Any, f: Callable[..., Any]) -> Any:
    if not isinstance(out, tuple) or len(out) != 2:
        raise errors.OutputTypeError(
            f"with has_aux=True {errors.describe(f)} must return a pair (value, aux), but it "
            f"returned {what_it_is(out)}."
        )
    return out


def jvp(
    f: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool = False,
) -> Any:
    """The value of a function and its derivative in a direction.

    Returns (out, tangent), or (out, tangent, aux) with has_aux.

    Parameters
    ----------
    f : callable
        A function of arrays or pytrees of arrays.
    primals, tangents : tuple or list
        The arguments, and one tangent of the same structure, shapes and dtypes for each.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import jvp
    >>> out, tangent = jvp(np.square, (3.0,), (1.0,))
    >>> float(out), float(tangent)
    (9.0, 6.0)
    """
    check_callable(f, "jvp")
    leaves, moving, structure = _check_tangents(primals, tangents, "jvp")
    with Dual(f) as dual:
        tracers = [
            DualTracer(dual, captured(leaf), captured(tangent))
            if dtype_of(leaf).kind in "fc"
            else guarded(leaf)
            for leaf, tangent in zip(leaves, moving, strict=True)
        ]
        out = f(*tree.unflatten(structure, tracers))
    aux = None
    if has_aux:
        out, aux = _split_aux(out, f)
        aux = tree.map(lambda leaf: _primal(leaf, dual), aux)
    out_leaves, out_structure = flatten_argument(out)
    value = unflatten_argument(out_structure, [_primal(leaf, dual) for leaf in out_leaves])
    pushed = own_distinct([_tangent(leaf, dual) for leaf in out_leaves], moving)
    tangent = unflatten_argument(out_structure, pushed)
    return (value, tangent, aux) if has_aux else (value, tangent)


def _primal(leaf: Any, dual: Dual) -> Any:
    ours = type(leaf) is DualTracer and leaf.interpreter is dual
    return leaf.value if ours else as_constant(leaf)


def _tangent(leaf: Any, dual: Dual) -> Any:
    if type(leaf) is DualTracer and leaf.interpreter is dual:
        tangent = leaf.tangent
        # A broadcast tangent is a view that cannot be written to; users get an array of their own.
        if type(tangent) is np.ndarray and not tangent.flags.writeable:
            tangent = tangent.copy()
        return tangent
    tree.check_array(leaf, "jvp: the output")
    dtype = dtype_of(leaf)
    # Integers and bools do not move; a float zero says so.
    return np.zeros(shape_of(leaf), dtype if dtype.kind in "fc" else float)[()]


def check_tuples(primals: Any, tangents: Any, transform: str) -> None:
    """Primals and tangents have one entry per argument."""
    for name, values in (("primals", primals), ("tangents", tangents)):
        if not isinstance(values, (tuple, list)):
            raise errors.TangentError(
                f"{transform} needs its {name} as a tuple, one entry per argument, not "
                f"{type(values).__name__}: write {transform}(f, (x,), (t,))."
            )


def _check_tangents(
    primals: Any, tangents: Any, transform: str
) -> tuple[list[Any], list[Any], Any]:
    check_tuples(primals, tangents, transform)
    leaves, structure = tree.flatten(tuple(primals))
    moving, moving_structure = tree.flatten(tuple(tangents))
    check_structure(moving_structure, structure, "tangents", "primals")
    for k, leaf in enumerate(leaves):
        if not tree.is_array(leaf):
            tree.check_array(leaf, f"{transform}: {_argument_names(primals)[k]}")
    names = lambda: _argument_names(primals)
    return leaves, check_matching(moving, leaves, names, "tangent", "primal"), structure


def _argument_names(primals: Sequence[Any]) -> list[str]:
    return [n for k, primal in enumerate(primals) for n in leaf_names(primal, f"argument {k}")]


def linearize(f: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The value of a function, and its derivative at that point as a linear function.

    f runs once. The linear function takes one tangent per primal and runs only the operations on
    tangents, which were written down on the way, so it is cheap to call again.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import linearize
    >>> out, linear = linearize(np.sin, 0.0)
    >>> float(linear(2.0))
    2.0
    """
    check_callable(f, "linearize")
    leaves, structure = tree.flatten(primals)
    for k, primal in enumerate(primals):
        check_inexact(primal, tree.leaves(primal), k, "linearize")
    # Tangents are staged one level below the dual numbers: primal values are computed, operations
    # on tangents are written down.
    with TangentStage(f) as stage, LinearizingDual(f, stage) as dual:
        tracers = [
            DualTracer(dual, captured(leaf), stage.input(ArraySpec(shape_of(leaf), dtype_of(leaf))))
            for leaf in leaves
        ]
        out = f(*tree.unflatten(structure, tracers))
        value = tree.map(lambda leaf: _primal(leaf, dual), out)
        out_leaves, out_structure = tree.flatten(out)
        graph = stage.finish([_tangent(leaf, dual) for leaf in out_leaves]).pruned()
    specs = [ArraySpec(shape_of(leaf), dtype_of(leaf)) for leaf in leaves]
    like = tree.unflatten(structure, specs)

    def linear(*tangents: Any) -> Any:
        moving, moving_structure = tree.flatten(tangents)
        check_structure(moving_structure, structure, "tangents", "primals")
        moving = check_matching(moving, specs, lambda: _argument_names(like), "tangent", "primal")
        return tree.unflatten(out_structure, graph.run(moving))

    _check_no_stage_tracer(value, stage)
    return value, linear


def _check_no_stage_tracer(value: Any, stage: Stage) -> None:
    for leaf in tree.leaves(value):
        if type(leaf) is StageTracer and leaf.interpreter is stage:
            stage.escaped()


def linear_transpose(f: Callable[..., Any], *examples: Any) -> Callable[..., Any]:
    """The transpose of a linear function: it takes cotangents of outputs to inputs.

    Parameters
    ----------
    f : callable
        A function that is linear in all its arguments.
    *examples
        Arguments, or `ArraySpec`s of them: only shapes and dtypes matter.

    Returns
    -------
    callable
        A function from a cotangent of the output to a tuple with one entry per argument.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import linear_transpose
    >>> transpose = linear_transpose(lambda x: np.cumsum(x), np.zeros(3))
    >>> transpose(np.array([1.0, 1.0, 1.0]))
    (array([3., 2., 1.]),)
    """
    check_callable(f, "linear_transpose")
    for leaf in tree.leaves(examples):
        if not isinstance(leaf, ArraySpec):
            tree.check_array(leaf, "linear_transpose: an example")
    zeros = tree.map(lambda leaf: np.zeros(shape_of(leaf), dtype_of(leaf))[()], examples)
    # f is linear if its value at a point is its derivative at 0 applied to that point.
    random = np.random.default_rng(0)
    point = tree.map(lambda leaf: _random_like(leaf, random), zeros)
    value, derivative = tree.leaves(f(*point)), tree.leaves(jvp(f, zeros, point)[1])
    for found, expected in zip(value, derivative, strict=True):
        if isinstance(found, Tracer) or isinstance(expected, Tracer):
            continue  # it depends on traced values around us, which may not be known yet
        tolerance = 1e-3 if dtype_of(found).itemsize <= 4 else 1e-9
        if not np.allclose(found, expected, rtol=tolerance, atol=tolerance):
            raise errors.LinearityError(
                f"linear_transpose needs a linear function, but {errors.describe(f)} is not: its "
                "value at a random point is not its derivative at 0 times that point. Use vjp for "
                "the transpose of its derivative at a point."
            )
    transpose: Callable[..., Any] = vjp(f, *zeros)[1]
    return transpose


def _random_like(leaf: Any, random: np.random.Generator) -> Any:
    values = random.standard_normal(shape_of(leaf))
    if dtype_of(leaf).kind == "c":
        values = values + 1j * random.standard_normal(shape_of(leaf))
    return np.asarray(values).astype(dtype_of(leaf))[()]


def stop_gradient(x: Any) -> Any:
    """The same values, with no derivative: transforms take the result as a constant.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad, stop_gradient
    >>> float(grad(lambda x: x * stop_gradient(x))(3.0))
    3.0
    """
    return tree.map(
        lambda leaf: structure_ops.stop_gradient(leaf) if isinstance(leaf, Tracer) else leaf, x
    )
