"""Forward mode: jvp, linearize; and linear_transpose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import numpy as np

from functrans.core import errors, tree
from functrans.core.custody import kept_in_tracer, lent, own
from functrans.core.dispatch import Tracer
from functrans.core.evaluate import (
    as_constant,
)
from functrans.core.hooks import runs_again
from functrans.core.shapes import ArraySpec, dtype_of, shape_of
from functrans.interpreters.dual import Dual, DualTracer, LinearizingDual
from functrans.interpreters.stage import Stage, StageTracer, TangentStage
from functrans.transforms.arguments import (
    as_float,
    check_callable,
    check_inexact,
    check_matching,
    check_structure,
    flatten_argument,
    leaf_names,
    unflatten_argument,
)
from functrans.transforms.derivatives import split_aux, vjp
from functrans.transforms.functions import R


@overload
def jvp(
    f: Callable[..., R],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: Literal[False] = False,
) -> tuple[R, R]: ...
@overload
def jvp(
    f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: Literal[True]
) -> tuple[Any, Any, Any]: ...
@overload
def jvp(
    f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool
) -> Any: ...
@runs_again
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
    f = check_callable(f, "jvp")
    leaves, moving, structure = _check_tangents(primals, tangents, "jvp")
    with Dual(f) as dual:
        dual.reruns = True
        tracers = [
            DualTracer(dual, kept_in_tracer(leaf), kept_in_tracer(tangent))
            if dtype_of(leaf).kind in "fc"
            else lent(leaf, f)
            for leaf, tangent in zip(leaves, moving, strict=True)
        ]
        out = f(*tree.unflatten(structure, tracers))
        extra: list[Any] = []
        if has_aux:
            out, aux = split_aux(out, f)
            extra, aux_structure = tree.flatten(aux)
            del aux
        out_leaves, out_structure = flatten_argument(out)
    count = len(out_leaves)
    values = [_primal(leaf, dual) for leaf in out_leaves]
    values += [_tangent(leaf, dual) for leaf in out_leaves]
    values += [_primal(leaf, dual) for leaf in extra]
    tracers.clear()
    del out, out_leaves, extra
    own(values)
    value = unflatten_argument(out_structure, values[:count])
    tangent = unflatten_argument(out_structure, values[count : 2 * count])
    if not has_aux:
        return value, tangent
    return value, tangent, tree.unflatten(aux_structure, values[2 * count :])


def _primal(leaf: Any, dual: Dual) -> Any:
    ours = type(leaf) is DualTracer and leaf.interpreter is dual
    return leaf.value if ours else as_constant(leaf)


def _tangent(leaf: Any, dual: Dual) -> Any:
    if type(leaf) is DualTracer and leaf.interpreter is dual:
        return leaf.tangent
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
                f"{tree.with_article(values)}, at {errors.user_location()}. Write "
                f"{transform}(f, (x,), (t,))."
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
    moving = check_matching(moving, leaves, names, "tangent", "primal")
    for k, (leaf, tangent) in enumerate(zip(leaves, moving, strict=True)):
        if dtype_of(leaf).kind not in "fc" and not isinstance(tangent, Tracer) and np.any(tangent):
            raise errors.TangentError(
                f"{transform} differentiates with respect to floating point numbers, but "
                f"{_argument_names(primals)[k]} has dtype {dtype_of(leaf)} and a tangent that is not 0, at "
                f"{errors.user_location()}. {as_float(leaf)}"
            )
    return leaves, moving, structure


def _argument_names(primals: Sequence[Any]) -> list[str]:
    return [n for k, primal in enumerate(primals) for n in leaf_names(primal, f"argument {k}")]


@runs_again
def linearize(f: Callable[..., R], *primals: Any) -> tuple[R, Callable[..., R]]:
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
    f = check_callable(f, "linearize")
    leaves, structure = tree.flatten(primals)
    for k, primal in enumerate(primals):
        check_inexact(primal, tree.leaves(primal), k, "linearize")
    # Tangents are staged one level below the dual numbers: primal values are computed, operations
    # on tangents are written down.
    with TangentStage(f) as stage, LinearizingDual(f, stage) as dual:
        stage.reruns = True
        tracers = [
            DualTracer(
                dual, kept_in_tracer(leaf), stage.input(ArraySpec(shape_of(leaf), dtype_of(leaf)))
            )
            for leaf in leaves
        ]
        out = f(*tree.unflatten(structure, tracers))
        out_leaves, out_structure = tree.flatten(out)
        graph = stage.finish([_tangent(leaf, dual) for leaf in out_leaves]).pruned()
    values = [_primal(leaf, dual) for leaf in out_leaves]
    tracers.clear()
    del out, out_leaves
    _check_no_stage_tracer(values, stage)
    value = tree.unflatten(out_structure, own(values))
    specs = [ArraySpec(shape_of(leaf), dtype_of(leaf)) for leaf in leaves]
    like = tree.unflatten(structure, specs)

    def linear(*tangents: Any) -> Any:
        moving, moving_structure = tree.flatten(tangents)
        check_structure(moving_structure, structure, "tangents", "primals")
        moving = check_matching(moving, specs, lambda: _argument_names(like), "tangent", "primal")
        return tree.unflatten(out_structure, graph.run(moving))

    return value, linear


def _check_no_stage_tracer(leaves: list[Any], stage: Stage) -> None:
    for leaf in leaves:
        if type(leaf) is StageTracer and leaf.interpreter is stage:
            stage.escaped()


def linear_transpose(f: Callable[..., Any], *examples: Any) -> Callable[[Any], tuple[Any, ...]]:
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
    f = check_callable(f, "linear_transpose")
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
                f"linear_transpose needs a linear function, but {errors.describe(f)} is not linear, at "
                f"{errors.user_location()}: its value at a random point differs from its derivative at 0 "
                "times that point. Use vjp(f, x), the transpose of the derivative at a point."
            )
    return vjp(f, *zeros)[1]


def _random_like(leaf: Any, random: np.random.Generator) -> Any:
    values = random.standard_normal(shape_of(leaf))
    if dtype_of(leaf).kind == "c":
        values = values + 1j * random.standard_normal(shape_of(leaf))
    return np.asarray(values).astype(dtype_of(leaf))[()]
