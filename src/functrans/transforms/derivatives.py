"""Reverse mode: grad, value_and_grad, vjp; and stop_gradient. Forward mode is in forward_mode.py."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Literal, overload

import numpy as np

from functrans.core import errors, tree
from functrans.core.custody import check_unchanged, kept, lent, own, watched_since
from functrans.core.dispatch import Tracer, check_alive, has_run_others, running_interpreters
from functrans.core.evaluate import (
    as_constant,
    opened,
)
from functrans.core.floating_point import point, unpoint
from functrans.core.hooks import Again, runs_again
from functrans.core.shapes import dtype_of, shape_of, spec_of
from functrans.core.views import detached, is_mutable
from functrans.interpreters.tape import Tape, TapeTracer, sweep
from functrans.ops import structure as structure_ops
from functrans.transforms.arguments import (
    LATER,
    check_callable,
    check_inexact,
    check_matching,
    check_structure,
    flatten_argument,
    leaf_names,
    own_all,
    positions_of,
    unflatten_argument,
    what_it_is,
)
from functrans.transforms.functions import P, R, transformed

_ONE = np.float64(1)
_ndarray = np.ndarray
_FLOAT64 = np.dtype(float)


@overload
def grad(
    f: np.ufunc, argnums: int = 0, has_aux: bool = False, holomorphic: bool = False
) -> Any: ...
@overload
def grad(
    f: Callable[P, Any],
    argnums: Sequence[int],
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> Callable[P, tuple[Any, ...]]: ...
@overload
def grad(
    f: Callable[P, Any],
    argnums: Sequence[int],
    has_aux: Literal[True],
    holomorphic: bool = False,
) -> Callable[P, tuple[tuple[Any, ...], Any]]: ...
@overload
def grad(
    f: Callable[P, Any], argnums: int = 0, *, has_aux: Literal[True], holomorphic: bool = False
) -> Callable[P, tuple[Any, Any]]: ...
@overload
def grad(
    f: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[P, Any]: ...
@overload
def grad(
    *, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[[Callable[P, Any]], Callable[P, Any]]: ...
def grad(
    f: Callable[..., Any] = LATER,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Any:
    """The gradient of a scalar-valued function.

    Parameters
    ----------
    f : callable
        A function of arrays (or pytrees of arrays) written in plain NumPy. Without it, the result is a
        decorator with these options: `@grad(argnums=1)`.
    argnums : int or sequence of int
        The positions of the arguments to differentiate with respect to. A sequence gives a tuple of
        gradients.
    has_aux : bool
        Whether f returns (value, aux); then the result is (gradient, aux).
    holomorphic : bool
        Whether f is a complex-differentiable function of complex arguments; then the result is its
        complex derivative. Without it, a real function u of z = x + iy gives du/dx - i du/dy.

    Returns
    -------
    callable
        A function with the same arguments as f that returns the gradient. The gradient has the
        structure, shapes and dtypes of the arguments.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    array([2., 4.])
    >>> float(grad(grad(np.sin))(0.5) + np.sin(0.5))
    0.0
    """
    if f is LATER:
        return partial(grad, argnums=argnums, has_aux=has_aux, holomorphic=holomorphic)
    f = check_callable(f, "grad")

    def gradient(*args: Any, **kwargs: Any) -> Any:
        while True:
            token = point()  # not on the tape, which ends before the sweep
            try:
                _, gradients, aux = _differentiate(f, argnums, has_aux, holomorphic, args, kwargs)
            except Again:
                continue
            finally:
                unpoint(token)
            return (gradients, aux) if has_aux else gradients

    return transformed(
        gradient,
        f,
        grad,
        "The gradient of {f} with respect to {argnums}.",
        argnums=argnums,
        has_aux=has_aux,
        holomorphic=holomorphic,
    )


@overload
def value_and_grad(
    f: np.ufunc, argnums: int = 0, has_aux: bool = False, holomorphic: bool = False
) -> Any: ...
@overload
def value_and_grad(
    f: Callable[P, R],
    argnums: Sequence[int],
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[P, tuple[R, tuple[Any, ...]]]: ...
@overload
def value_and_grad(
    f: Callable[P, R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[P, tuple[R, Any]]: ...
@overload
def value_and_grad(
    *, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[[Callable[P, R]], Callable[P, tuple[R, Any]]]: ...
def value_and_grad(
    f: Callable[..., Any] = LATER,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Any:
    """The value of a scalar-valued function and its gradient, at the cost of the gradient alone.

    The options are those of `grad`. The result is (value, gradient), or ((value, aux), gradient) with
    has_aux.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import value_and_grad
    >>> value, gradient = value_and_grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    >>> float(value), gradient
    (5.0, array([2., 4.]))
    """
    if f is LATER:
        return partial(value_and_grad, argnums=argnums, has_aux=has_aux, holomorphic=holomorphic)
    f = check_callable(f, "value_and_grad")

    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        while True:
            token = point()
            try:
                value, gradients, aux = _differentiate(
                    f, argnums, has_aux, holomorphic, args, kwargs
                )
            except Again:
                continue
            finally:
                unpoint(token)
            return ((value, aux), gradients) if has_aux else (value, gradients)

    return transformed(
        value_and_gradient,
        f,
        value_and_grad,
        "The value of {f}, and its gradient with respect to {argnums}.",
        argnums=argnums,
        has_aux=has_aux,
        holomorphic=holomorphic,
    )


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
                traced_args[k] = lent(arg, f)
    if kwargs:
        kwargs = lent(kwargs, f)
    aux = None
    likes: list[Any] = []
    keys: list[int] = []
    with Tape(f) as tape:
        tape.reruns = True
        for position in positions:
            argument = args[position]
            try:
                traced_args[position] = _traced(argument, tape, likes, keys)
            except (errors.FunctransError, RecursionError) as error:
                raise _better(error, argument, position) from None
            if holomorphic:
                _check_holomorphic(likes, f"argument {position}")
        out = f(*traced_args, **kwargs)
        if has_aux:
            out, aux = split_aux(out, f)
            extra, aux_structure = _without_tape(aux, tape)
            aux_labels = tree.labels_of(aux)
            aux = None
        box = None
        if type(out) is not TapeTracer or out.interpreter is not tape:
            out, box = tree.unboxed(out)
            check_alive((out,))
    cotangents: dict[int, Any] = {}
    value = out
    if type(out) is TapeTracer and out.interpreter is tape:
        value = out.value
        cotangents[out.record[0]] = _ONE if type(value) is np.float64 else dtype_of(value).type(1)
    if type(value) is not np.float64 or holomorphic:
        value = as_constant(value)
        check_scalar(value, f, holomorphic)
        # A zero-dimensional array is mutable.
        if type(value) is np.ndarray:
            value = value.copy()
        elif isinstance(value, Tracer) and is_mutable(value):
            value = detached(value)
    # A derivative may well be constant: the warning is for functions without transforms inside.
    if not cotangents and likes and not running_interpreters() and not has_run_others(tape):
        _warn_of_constant(f)
    # The output's record refers to all others; drop it, so that the sweep can free them.
    del out
    check_unchanged(watched_since(tape.mark))
    sweep(tape.records, cotangents)
    found = iter(opened(own_all(cotangents, keys, likes, set()), likes))

    gradients = [
        tree.relabelled(_replaced(args[position], found), tree.labels_of(args[position]))
        for position in positions
    ]
    if has_aux:
        aux = tree.relabelled(tree.unflatten(aux_structure, own(extra)), aux_labels)
    if box is not None:
        value = tree.unflatten(box, [value])
    return value, gradients[0] if isinstance(argnums, int) else tuple(gradients), aux


def _warn_of_constant(f: Callable[..., Any]) -> None:
    """Warn about a likely mistake: a value computed outside, rounded, or cut off from its derivative."""
    warnings.warn(
        f"the output of {errors.describe(f)} does not depend on the arguments that grad differentiates with "
        "respect to, or only through rounding and comparisons, at "
        f"{errors.user_location()}: the gradient is zero.",
        errors.DerivativeWarning,
        stacklevel=errors.user_depth(),
    )


def _better(error: Exception, argument: Any, position: int) -> Exception:
    """Rewrite an error so that it names the argument, or the container that contains itself."""
    try:
        check_inexact(argument, tree.leaves(argument), position, "grad")
    except errors.FunctransError as named:
        return named.with_traceback(None)
    return error


# Trees of plain containers are walked here, several times faster than in general.


def _traced(value: Any, tape: Tape, likes: list[Any], keys: list[int]) -> Any:
    """The same tree with tracers as leaves; the tracers are also listed in order."""
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
        if structure is not None:  # any other container
            return tree.unflatten(structure, [_traced(v, tape, likes, keys) for v in leaves])
        check_inexact(value, leaves, 0, "grad")
        (value,) = leaves  # the array in a Series
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


def _without_tape(value: Any, tape: Tape) -> tuple[list[Any], Any]:
    """The values behind a finished tape's tracers in any tree, and the structure of the tree."""
    leaves, structure = tree.flatten(value)
    for k, leaf in enumerate(leaves):
        ours = type(leaf) is TapeTracer and leaf.interpreter is tape
        leaves[k] = leaf.value if ours else as_constant(leaf)
    return leaves, structure


def _check_holomorphic(leaves: list[Any], name: str) -> None:
    for leaf in leaves:
        if dtype_of(leaf).kind != "c":
            raise errors.InputTypeError(
                f"grad with holomorphic=True needs complex arguments, but {name} has dtype "
                f"{dtype_of(leaf)}, at {errors.user_location()}. Convert it: x.astype(complex), or "
                "complex(x)."
            )


def check_scalar(
    value: Any, f: Callable[..., Any], holomorphic: bool = False, transform: str = "grad"
) -> None:
    """Refuse an output that is not a scalar of a dtype with a gradient."""
    if not tree.is_array(value):
        raise errors.OutputTypeError(
            f"{transform} needs a function that returns one real number, but {errors.describe(f)} "
            f"returned {what_it_is(value)}, at {errors.user_location()}. "
            + (
                "Return the number first, and pass has_aux=True to keep the extra results."
                if isinstance(value, tuple)
                else "Return the number alone."
            )
        )
    shape, dtype = shape_of(value), dtype_of(value)
    if shape != ():
        raise errors.OutputShapeError(
            f"{transform} needs a function that returns one real number, but {errors.describe(f)} returned "
            f"an array of shape {shape}, at {errors.user_location()}. Reduce it with np.sum or np.mean, or "
            "use jacrev or jacfwd for the derivatives of all outputs."
        )
    if holomorphic:
        if dtype.kind != "c":
            raise errors.OutputTypeError(
                f"{transform} with holomorphic=True needs a complex output, but {errors.describe(f)} "
                f"returned dtype {dtype}, at {errors.user_location()}. Leave holomorphic out for real "
                "functions."
            )
    elif dtype.kind == "c":
        raise errors.OutputTypeError(
            f"{transform} needs a real output, but {errors.describe(f)} returned dtype {dtype}, at "
            f"{errors.user_location()}. Take np.real or np.abs of it; if the function is holomorphic, pass "
            "a complex argument and holomorphic=True."
        )
    elif dtype.kind != "f":
        raise errors.OutputTypeError(
            f"{transform} needs a floating point output, but {errors.describe(f)} returned dtype {dtype}, "
            f"which has no derivative, at {errors.user_location()}. Return a float that depends on the "
            "arguments; comparisons, rounding and argmax give constants."
        )


@overload
def vjp(
    f: Callable[..., R], *primals: Any, has_aux: Literal[False] = False
) -> tuple[R, Callable[[Any], tuple[Any, ...]]]: ...
@overload
def vjp(
    f: Callable[..., Any], *primals: Any, has_aux: Literal[True]
) -> tuple[Any, Callable[[Any], tuple[Any, ...]], Any]: ...
@overload
def vjp(f: Callable[..., Any], *primals: Any, has_aux: bool) -> Any: ...
@runs_again
def vjp(f: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of a function and its pullback, which maps cotangents of outputs to cotangents of inputs.

    Returns (out, pullback), or (out, pullback, aux) with has_aux. `pullback(cotangent)` takes a cotangent
    with the structure of `out` and returns a tuple with one entry per primal. It may be called many times,
    and may itself be transformed.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import vjp
    >>> out, pullback = vjp(lambda x: x * np.array([2.0, 3.0]), np.array([1.0, 1.0]))
    >>> pullback(np.array([1.0, 10.0]))
    (array([ 2., 30.]),)
    """
    f = check_callable(f, "vjp")
    with Tape(f) as tape:
        tape.reruns = True
        tape_inputs = []
        traced = []
        for position, primal in enumerate(primals):
            leaves, structure = flatten_argument(primal)
            check_inexact(primal, leaves, position, "vjp")
            tracers = [tape.leaf(kept(leaf)) for leaf in leaves]
            traced.append(unflatten_argument(structure, tracers))
            keys = [tracer.record[0] for tracer in tracers]
            # Specs, not leaves: the pullback must not keep the primals alive.
            labels = tree.labels_of(primal)
            tape_inputs.append((structure, [spec_of(leaf) for leaf in leaves], keys, labels))
        out = f(*traced)
        aux = None
        if has_aux:
            out, aux = split_aux(out, f)
            extra, aux_structure = _without_tape(aux, tape)
            aux_labels = tree.labels_of(aux)
            aux = None
        out_leaves, out_structure = flatten_argument(out)
        for k, leaf in enumerate(out_leaves):
            if not tree.is_array(leaf):
                tree.check_array(
                    leaf, f"vjp: {leaf_names(out, 'the output')[k]} of {errors.describe(f)}"
                )
    traced, tracers = [], []
    if has_aux:
        aux = tree.relabelled(tree.unflatten(aux_structure, own(extra)), aux_labels)
    outputs = []  # for each output leaf: (its record's key or None, spec)
    values = []
    for leaf in out_leaves:
        ours = type(leaf) is TapeTracer and leaf.interpreter is tape
        outputs.append((leaf.record[0] if ours else None, spec_of(leaf)))
        values.append(leaf.value if ours else as_constant(leaf))
    leaf = None
    records, watched = tape.records, watched_since(tape.mark)
    # The pullback keeps some of them, and must not change if the user changes the output.
    del out, out_leaves
    value = unflatten_argument(out_structure, own(values))

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
        token = point()
        try:
            sweep(list(records), cotangents)
        finally:
            unpoint(token)
        return tuple(
            tree.relabelled(
                unflatten_argument(structure, own_all(cotangents, keys, specs, given)), labels
            )
            for structure, specs, keys, labels in tape_inputs
        )

    return (value, pullback, aux) if has_aux else (value, pullback)


def split_aux(out: Any, f: Callable[..., Any]) -> Any:
    if not isinstance(out, tuple) or len(out) != 2:
        raise errors.OutputTypeError(
            f"with has_aux=True {errors.describe(f)} must return a pair (value, aux), but it "
            f"returned {what_it_is(out)}, at {errors.user_location()}. Return (value, aux), or leave "
            "has_aux out."
        )
    return out


def stop_gradient(x: R) -> R:
    """The same values without a derivative: transforms treat the result as a constant.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad, stop_gradient
    >>> float(grad(lambda x: x * stop_gradient(x))(3.0))
    3.0
    """
    leaves, structure = tree.flatten(x)
    del x
    stopped: R = tree.unflatten(
        structure,
        own([structure_ops.stop_gradient(y) if isinstance(y, Tracer) else y for y in leaves]),
    )
    return stopped
