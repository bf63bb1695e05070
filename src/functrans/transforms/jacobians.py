"""Whole matrices of derivatives: Jacobians and Hessians, and Hessian-vector products."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial, update_wrapper
from typing import Any, Literal, overload

import numpy as np

from functrans.core import errors, tree
from functrans.core.custody import lent
from functrans.core.dispatch import running_interpreters
from functrans.core.evaluate import opened
from functrans.core.shapes import dtype_of, shape_of
from functrans.interpreters.stage import Stage, StageTracer
from functrans.transforms.arguments import (
    LATER,
    check_callable,
    check_inexact,
    positions_of,
)
from functrans.transforms.batching import vmap
from functrans.transforms.derivatives import grad, split_aux, vjp
from functrans.transforms.forward_mode import check_tuples, jvp, linearize
from functrans.transforms.functions import P, transformed
from functrans.transforms.staging import eval_shape

Mode = Literal["auto", "fwd", "rev"]


def _size(leaf: Any) -> int:
    return math.prod(shape_of(leaf))


def _running_stage() -> Stage | None:
    """The innermost interpreter that traces a graph of unknown values, if one is running."""
    stages = [i for i in running_interpreters() if type(i) is Stage]
    return stages[-1] if stages else None


def _basis(leaves: list[Any]) -> list[Any]:
    """The standard basis of all leaves together, one vector per row, split like the leaves."""
    sizes = [_size(leaf) for leaf in leaves]
    total, start, parts = sum(sizes), 0, []
    for leaf, size in zip(leaves, sizes, strict=True):
        block = np.zeros((total, size), dtype_of(leaf))
        # Entry (start + i, i) of a matrix in rows.
        block.reshape(-1)[start * size : (start + size) * size : size + 1] = 1
        parts.append(block.reshape((total, *shape_of(leaf))))
        start += size
    stage = _running_stage()
    if stage is not None:  # operations on it are recorded, not done while tracing
        return [StageTracer(stage, stage.variable_of(part)) for part in parts]
    return parts


def _split_rows(rows: Any, leaves: list[Any], structure: Any, axis: int) -> Any:
    """Split the basis axis of a stack of derivatives into the shapes of the leaves."""
    parts, start = [], 0
    shape = shape_of(rows)
    if len(leaves) == 1 and len(shape_of(leaves[0])) == 1:  # it has that shape already
        return tree.unflatten(structure, [rows])
    for leaf in leaves:
        stop = start + _size(leaf)
        part = rows[(slice(None),) * axis + (slice(start, stop),)]
        parts.append(part.reshape(shape[:axis] + shape_of(leaf) + shape[axis + 1 :])[()])
        start = stop
    return tree.unflatten(structure, parts)


def _rows_at_a_time(chunk_size: int | None, rows: int, width: int) -> int | None:
    """The chunk size: the user's, or one that keeps the arrays of large Jacobians in cache.

    All rows at once would stream arrays of rows * width numbers through memory for every operation;
    the same work on blocks of about half a megabyte is several times faster.
    """
    if chunk_size is not None or rows * width <= 8 * _BLOCK:
        return chunk_size
    if _running_stage() is not None:
        return None  # compiled code uses the cache well without chunks
    return max(_BLOCK // max(width, 1), 8)


_BLOCK = 1 << 16  # numbers


def _title(progress: bool | str, transform: str, f: Callable[..., Any]) -> bool | str:
    """The title of the progress bar, if there is one."""
    return f"{transform} of {errors.name_of(f)}" if progress is True else progress


def _only(f: Callable[..., Any], args: tuple[Any, ...], positions: Any, kwargs: Any) -> Any:
    """f as a function of only the arguments at `positions`."""

    def fixed(*chosen: Any) -> Any:
        full = list(lent(args, f))  # in each run, since the next one may need them in another form
        for position, value in zip(positions, chosen, strict=True):
            full[position] = value
        return f(*full, **lent(kwargs, f))

    return update_wrapper(fixed, f)


def _chosen(
    f: Callable[..., Any], argnums: Any, args: tuple[Any, ...], name: str
) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    positions = positions_of(argnums, len(args), f)
    for position in positions:
        check_inexact(args[position], tree.leaves(args[position]), position, name)
    return positions, tuple(args[position] for position in positions)


def _check_complex(inputs: list[Any], outputs: list[Any], mode: str, holomorphic: bool) -> None:
    """Refuse complex Jacobians that one matrix in this mode does not determine.

    Pushing forward a real tangent gives the derivative of a complex output with respect to a real input;
    pulling back a real cotangent gives that of a real output with respect to a complex input. From complex to
    complex, one matrix is enough only if the function is holomorphic.
    """
    complex_in = any(dtype_of(leaf).kind == "c" for leaf in inputs)
    complex_out = any(dtype_of(leaf).kind == "c" for leaf in outputs)
    lossy = complex_in if mode == "jacfwd" else complex_out
    if lossy and not (holomorphic and complex_in and complex_out):
        other = "jacrev" if mode == "jacfwd" else "jacfwd"
        what = "complex inputs" if mode == "jacfwd" else "complex outputs"
        raise errors.InputTypeError(
            f"{mode} of a function with {what} is not a single complex matrix, at {errors.user_location()}. "
            f"Use {other} if only the other side is complex, and holomorphic=True if the function is "
            "holomorphic."
        )


@overload
def jacfwd(
    f: np.ufunc,
    argnums: int = 0,
    has_aux: bool = False,
    chunk_size: int | None = None,
    holomorphic: bool = False,
    progress: bool | str = False,
) -> Any: ...
@overload
def jacfwd(
    f: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: Literal[True],
    chunk_size: int | None = None,
    holomorphic: bool = False,
    progress: bool | str = False,
) -> Callable[P, tuple[Any, Any]]: ...
@overload
def jacfwd(
    f: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    chunk_size: int | None = None,
    holomorphic: bool = False,
    progress: bool | str = False,
) -> Callable[P, Any]: ...
@overload
def jacfwd(
    *,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    chunk_size: int | None = None,
    holomorphic: bool = False,
    progress: bool | str = False,
) -> Callable[[Callable[P, Any]], Callable[P, Any]]: ...
def jacfwd(
    f: Callable[..., Any] = LATER,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    chunk_size: int | None = None,
    holomorphic: bool = False,
    progress: bool | str = False,
) -> Any:
    """The Jacobian in forward mode: one tangent per input, many at once.

    Forward mode is cheaper if there are more outputs than inputs. For every leaf of the output, the
    result has a tree like the argument, whose leaves have the output's axes followed by the
    input's.

    Parameters
    ----------
    f : callable
        A function of arrays or pytrees of arrays.
    argnums : int or sequence of int
        The arguments to differentiate with respect to. A sequence gives a tuple of Jacobians.
    has_aux : bool
        Whether f returns (out, aux); then the result is (jacobian, aux).
    chunk_size : int, optional
        How many tangents to push forward at a time, at most, to limit memory. By default, large
        Jacobians are computed in blocks that fit into the cache.
    holomorphic : bool
        Whether f is a complex-differentiable function of complex arguments.
    progress : bool or str
        Whether to show a progress bar with tqdm; a string sets its title.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import jacfwd
    >>> jacfwd(lambda x: x * x)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    if f is LATER:
        return partial(
            jacfwd,
            argnums=argnums,
            has_aux=has_aux,
            chunk_size=chunk_size,
            holomorphic=holomorphic,
            progress=progress,
        )
    f = check_callable(f, "jacfwd")

    def jacobian(*args: Any, **kwargs: Any) -> Any:
        positions, chosen = _chosen(f, argnums, args, "jacfwd")
        function = _only(f, args, positions, kwargs)
        leaves, structure = tree.flatten(chosen)
        aux: list[Any] = []
        inputs = sum(map(_size, leaves))
        rows_at_a_time = _rows_at_a_time(chunk_size, inputs, inputs)
        if rows_at_a_time is not None:

            def pushed(*primals: Any) -> Any:
                return split_aux(function(*primals), f) if has_aux else (function(*primals), None)

            def value_only(*primals: Any) -> Any:
                return pushed(*primals)[0]

            if has_aux:
                _, _, extra = jvp(pushed, chosen, tree.map(_zeros_like, chosen), has_aux=True)
                aux.append(extra)
            _, linear = linearize(value_only, *chosen)

            def push(*basis: Any) -> Any:
                return linear(*tree.unflatten(structure, basis))
        else:

            def push(*basis: Any) -> Any:
                tangents = tree.unflatten(structure, basis)
                out = jvp(function, chosen, tangents, has_aux=has_aux)
                if has_aux:
                    aux.append(out[2])
                return out[1]

        mapped = vmap(
            push,
            out_axes=-1,
            axis_size=inputs,
            chunk_size=rows_at_a_time,
            progress=_title(progress, "jacfwd", f),
        )
        rows = mapped(*_basis(leaves))
        _check_complex(leaves, tree.leaves(rows), "jacfwd", holomorphic)
        stacks, outer = tree.flatten(rows)
        stacks = opened(stacks, leaves)
        parts = [_split_rows(s, leaves, structure, len(shape_of(s)) - 1) for s in stacks]
        labels = tree.labels_of(chosen)
        parts = [tree.relabelled(part, labels) for part in parts]
        # With one int as argnums there is no tuple of arguments.
        result = tree.unflatten(
            outer, [part[0] for part in parts] if isinstance(argnums, int) else parts
        )
        return (result, aux[0]) if has_aux else result

    return transformed(
        jacobian,
        f,
        jacfwd,
        "The Jacobian of {f} with respect to {argnums}, in forward mode.",
        argnums=argnums,
        has_aux=has_aux,
        chunk_size=chunk_size,
        holomorphic=holomorphic,
        progress=progress,
    )


def _zeros_like(leaf: Any) -> Any:
    return np.zeros(shape_of(leaf), dtype_of(leaf))[()]


@overload
def jacrev(
    f: np.ufunc,
    argnums: int = 0,
    has_aux: bool = False,
    chunk_size: int | None = None,
    holomorphic: bool = False,
    progress: bool | str = False,
) -> Any: ...
@overload
def jacrev(
    f: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: Literal[True],
    chunk_size: int | None = None,
    holomorphic: bool = False,
    progress: bool | str = False,
) -> Callable[P, tuple[Any, Any]]: ...
@overload
def jacrev(
    f: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    chunk_size: int | None = None,
    holomorphic: bool = False,
    progress: bool | str = False,
) -> Callable[P, Any]: ...
@overload
def jacrev(
    *,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    chunk_size: int | None = None,
    holomorphic: bool = False,
    progress: bool | str = False,
) -> Callable[[Callable[P, Any]], Callable[P, Any]]: ...
def jacrev(
    f: Callable[..., Any] = LATER,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    chunk_size: int | None = None,
    holomorphic: bool = False,
    progress: bool | str = False,
) -> Any:
    """The Jacobian in reverse mode: one cotangent per output, many at once.

    Reverse mode is cheaper if there are more inputs than outputs. The options and the form of the
    result are those of `jacfwd`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import jacrev
    >>> jacrev(lambda x: x[0] * x)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [2., 1.]])
    """
    if f is LATER:
        return partial(
            jacrev,
            argnums=argnums,
            has_aux=has_aux,
            chunk_size=chunk_size,
            holomorphic=holomorphic,
            progress=progress,
        )
    f = check_callable(f, "jacrev")

    def jacobian(*args: Any, **kwargs: Any) -> Any:
        positions, chosen = _chosen(f, argnums, args, "jacrev")
        function = _only(f, args, positions, kwargs)
        out, pullback, *aux = vjp(function, *chosen, has_aux=has_aux)
        leaves, structure = tree.flatten(out)
        for leaf in leaves:
            if dtype_of(leaf).kind not in "fc":
                raise errors.OutputTypeError(
                    f"jacrev needs floating point outputs, but {errors.describe(f)} returned dtype "
                    f"{dtype_of(leaf)}, which has no derivative, at {errors.user_location()}. Return it as "
                    "an extra result, with has_aux=True."
                )
        chosen_leaves = tree.leaves(chosen)
        _check_complex(chosen_leaves, leaves, "jacrev", holomorphic)

        def pull(*basis: Any) -> Any:
            return pullback(tree.unflatten(structure, basis))

        if len(leaves) == 1 and shape_of(leaves[0]) == ():  # a gradient, which needs no batch
            gradients = pull(dtype_of(leaves[0]).type(1))
            result = tree.unflatten(
                structure, [gradients[0] if isinstance(argnums, int) else gradients]
            )
            return (result, aux[0]) if has_aux else result
        outputs = sum(map(_size, leaves))
        inputs = sum(map(_size, chosen_leaves))
        rows_at_a_time = _rows_at_a_time(chunk_size, outputs, inputs)
        mapped = vmap(
            pull,
            axis_size=outputs,
            chunk_size=rows_at_a_time,
            progress=_title(progress, "jacrev", f),
        )
        rows = mapped(*_basis(leaves))
        # rows: for every argument leaf a stack over the outputs; wanted: outputs outside.
        row_leaves, row_structure = tree.flatten(rows)
        row_leaves = opened(row_leaves, chosen_leaves)
        per_leaf = [tree.leaves(_split_rows(row, leaves, structure, 0)) for row in row_leaves]
        results = []
        for k in range(len(leaves)):
            inner = tree.unflatten(row_structure, [parts[k] for parts in per_leaf])
            results.append(inner[0] if isinstance(argnums, int) else inner)
        result = tree.unflatten(structure, results)
        return (result, aux[0]) if has_aux else result

    return transformed(
        jacobian,
        f,
        jacrev,
        "The Jacobian of {f} with respect to {argnums}, in reverse mode.",
        argnums=argnums,
        has_aux=has_aux,
        chunk_size=chunk_size,
        holomorphic=holomorphic,
        progress=progress,
    )


@overload
def jacobian(
    f: np.ufunc,
    argnums: int = 0,
    mode: Mode = "auto",
    chunk_size: int | None = None,
    progress: bool | str = False,
) -> Any: ...
@overload
def jacobian(
    f: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    mode: Mode = "auto",
    chunk_size: int | None = None,
    progress: bool | str = False,
) -> Callable[P, Any]: ...
@overload
def jacobian(
    *,
    argnums: int | Sequence[int] = 0,
    mode: Mode = "auto",
    chunk_size: int | None = None,
    progress: bool | str = False,
) -> Callable[[Callable[P, Any]], Callable[P, Any]]: ...
def jacobian(
    f: Callable[..., Any] = LATER,
    argnums: int | Sequence[int] = 0,
    mode: Mode = "auto",
    chunk_size: int | None = None,
    progress: bool | str = False,
) -> Any:
    """The Jacobian in the cheaper mode: forward for few inputs, reverse for few outputs.

    Parameters
    ----------
    f : callable
        A function of arrays or pytrees of arrays.
    argnums : int or sequence of int
        The arguments to differentiate with respect to.
    mode : "auto", "fwd" or "rev"
        "auto" compares the number of inputs with the number of outputs.
    chunk_size, progress
        As for `jacfwd`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import jacobian
    >>> jacobian(lambda x: np.outer(x, x)[0])(np.array([1.0, 2.0]))
    array([[2., 0.],
           [2., 1.]])
    """
    if f is LATER:
        return partial(
            jacobian, argnums=argnums, mode=mode, chunk_size=chunk_size, progress=progress
        )
    f = check_callable(f, "jacobian")
    if mode not in ("auto", "fwd", "rev"):
        raise errors.OptionError(
            f'mode must be "auto", "fwd" or "rev", not {mode!r}, at {errors.user_location()}.'
        )

    def made(transform: Any) -> Any:
        return transform(f, argnums, chunk_size=chunk_size, progress=progress)

    def chosen_jacobian(*args: Any, **kwargs: Any) -> Any:
        if mode != "auto":
            return made(jacfwd if mode == "fwd" else jacrev)(*args, **kwargs)
        positions, chosen = _chosen(f, argnums, args, "jacobian")
        function = _only(f, args, positions, kwargs)
        inputs = sum(map(_size, tree.leaves(chosen)))
        try:
            results = tree.leaves(eval_shape(function, *chosen))
        except errors.StagingError:  # Python branches: reverse mode can run them
            results = []
        # Complex outputs of real inputs need forward mode.
        forward = inputs < sum(map(_size, results)) or any(s.dtype.kind == "c" for s in results)
        return made(jacfwd if forward else jacrev)(*args, **kwargs)

    return transformed(
        chosen_jacobian,
        f,
        jacobian,
        "The Jacobian of {f} with respect to {argnums}.",
        argnums=argnums,
        mode=mode,
        chunk_size=chunk_size,
        progress=progress,
    )


@overload
def hessian(
    f: np.ufunc, argnums: int = 0, chunk_size: int | None = None, progress: bool | str = False
) -> Any: ...
@overload
def hessian(
    f: Callable[P, Any],
    argnums: Sequence[int],
    chunk_size: int | None = None,
    progress: bool | str = False,
) -> Callable[P, tuple[tuple[Any, ...], ...]]: ...
@overload
def hessian(
    f: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    chunk_size: int | None = None,
    progress: bool | str = False,
) -> Callable[P, Any]: ...
@overload
def hessian(
    *,
    argnums: int | Sequence[int] = 0,
    chunk_size: int | None = None,
    progress: bool | str = False,
) -> Callable[[Callable[P, Any]], Callable[P, Any]]: ...
def hessian(
    f: Callable[..., Any] = LATER,
    argnums: int | Sequence[int] = 0,
    chunk_size: int | None = None,
    progress: bool | str = False,
) -> Any:
    """The matrix of second derivatives, computed in forward-over-reverse mode.

    Parameters
    ----------
    f : callable
        A scalar-valued function of arrays or pytrees of arrays.
    argnums : int or sequence of int
        The arguments to differentiate with respect to. A sequence gives a tuple of tuples.
    chunk_size : int, optional
        How many columns to compute at a time, at most, to limit memory.
    progress : bool or str
        Whether to show a progress bar with tqdm; a string sets its title.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import hessian
    >>> hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 3.0]))
    array([[6., 2.],
           [2., 0.]])
    """
    if f is LATER:
        return partial(hessian, argnums=argnums, chunk_size=chunk_size, progress=progress)
    f = check_callable(f, "hessian")
    title = _title(progress, "hessian", f)
    columns: Any = jacfwd(jacrev(f, argnums), argnums, chunk_size=chunk_size, progress=title)
    return transformed(
        columns.func,
        f,
        hessian,
        "The Hessian of {f} with respect to {argnums}.",
        argnums=argnums,
        chunk_size=chunk_size,
        progress=progress,
    )


def hvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """The product of the Hessian with a vector, without building the Hessian.

    It runs in forward-over-reverse mode, at about twice the cost of a gradient. With one primal,
    the result has its structure; with several, it is a tuple with one entry per primal.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import hvp
    >>> hvp(lambda x: np.sum(x**3), (np.array([1.0, 2.0]),), (np.array([1.0, 0.0]),))
    array([6., 0.])
    """
    f = check_callable(f, "hvp")
    check_tuples(primals, tangents, "hvp")
    argnums = 0 if len(primals) == 1 else tuple(range(len(primals)))
    return jvp(grad(f, argnums), primals, tangents)[1]
