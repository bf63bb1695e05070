"""checkpoint: reverse mode that recomputes values instead of storing them; and its policies."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from functrans.control.calling import call, floating_cotangents
from functrans.control.procedures import (
    CuriousStage,
    Flattened,
    Procedure,
    close,
    pull_through,
)
from functrans.core import errors, tree
from functrans.core.custody import lending, own, own_tree
from functrans.core.dispatch import Tracer, carries_derivative, running_interpreters, watcher
from functrans.core.evaluate import as_constant, compute
from functrans.core.primitive import HigherOrder
from functrans.core.shapes import spec_of
from functrans.graph.graph import Equation, Graph
from functrans.interpreters.tape import Tape
from functrans.ops.contraction import einsum, matmul
from functrans.ops.convolution import convolve
from functrans.ops.families import batch_shifting, linear
from functrans.transforms.arguments import LATER, check_callable
from functrans.transforms.functions import P, R, transformed
from functrans.transforms.leaves import bare, is_moving, is_staging, tracked

Policy = Callable[[Equation], bool]

_mark = linear(
    "checkpoint_name",
    lambda x, name: x,
    lambda g, x_shape, name: g,
    batch=batch_shifting(),
    shape=lambda specs, params: specs[0],
    views=True,
)


def checkpoint_name(x: Any, name: str) -> Any:
    """Return `x` unchanged, and name it for the `checkpoint` policy `save_names`.

    Examples
    --------
    >>> from functrans import checkpoint_name
    >>> checkpoint_name(2.0, "hidden")
    2.0
    """
    leaves, structure = tree.flatten(x)
    del x
    marked = [_mark(leaf, name=name) if isinstance(leaf, Tracer) else leaf for leaf in leaves]
    del leaves
    return tree.unflatten(structure, own(marked))


def save_nothing(equation: Equation) -> bool:
    """Keep only the arguments, and recompute everything else.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import checkpoint, checkpoint_policies, grad
    >>> f = checkpoint(np.sin, policy=checkpoint_policies.save_nothing)
    >>> grad(f)(0.0)
    np.float64(1.0)
    """
    return False


_PRODUCTS = frozenset({matmul, einsum, convolve})


def save_matmuls(equation: Equation) -> bool:
    """Keep the results of matrix products, which are expensive to compute and small to store.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import checkpoint, checkpoint_policies, grad
    >>> policy = checkpoint_policies.save_matmuls
    >>> layer = checkpoint(lambda w, x: np.tanh(w @ x), policy=policy)
    >>> grad(lambda w: np.sum(layer(w, np.ones(2))))(np.zeros((2, 2)))
    array([[1., 1.],
           [1., 1.]])
    """
    return equation.primitive in _PRODUCTS


def save_names(*names: str) -> Policy:
    """Keep the values that were given one of these names with `checkpoint_name`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import checkpoint, checkpoint_name, checkpoint_policies, grad
    >>> policy = checkpoint_policies.save_names("root")
    >>> f = checkpoint(lambda x: np.sin(checkpoint_name(np.sqrt(x), "root") - 2.0), policy=policy)
    >>> grad(f)(4.0)
    np.float64(0.25)
    """

    def policy(equation: Equation) -> bool:
        return equation.primitive is _mark and equation.params["name"] in names

    return policy


@overload
def checkpoint(f: np.ufunc, policy: Policy | None = None) -> Any: ...
@overload
def checkpoint(f: Callable[P, R], policy: Policy | None = None) -> Callable[P, R]: ...
@overload
def checkpoint(*, policy: Policy | None = None) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def checkpoint(f: Callable[..., Any] = LATER, policy: Policy | None = None) -> Any:
    """Return `f` with a reverse mode that keeps only the arguments and recomputes the rest.

    It saves memory at the cost of a second run of `f`. A chain of n steps in sqrt(n) checkpointed parts
    takes memory proportional to sqrt(n); parts may be nested. It composes with all transforms.

    Parameters
    ----------
    f : callable
        It may close over traced values. It must not have side effects.
    policy : callable, optional
        Which values to keep in addition to the arguments, one of `functrans.checkpoint_policies`:
        `save_nothing` (the default), `save_matmuls` or `save_names(...)`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import checkpoint, grad
    >>> layer = checkpoint(lambda x: np.sin(np.sin(np.sin(x))))
    >>> round(float(grad(lambda x: layer(layer(x)))(1.0)), 6)
    0.138775
    """
    if f is LATER:  # @checkpoint(policy=...)
        return functools.partial(checkpoint, policy=policy)
    f = check_callable(f, "checkpoint")
    if policy is not None and not callable(policy):
        raise errors.OptionError(
            "checkpoint: policy must be one of functrans.checkpoint_policies, or a function of an "
            f"equation, not {policy!r}, at {errors.user_location()}."
        )

    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = tree.flatten((args, kwargs))

        def run(leaves: Sequence[Any]) -> Any:
            run_args, run_kwargs = tree.unflatten(structure, leaves)
            return f(*run_args, **run_kwargs)

        if not _is_recorded(args, kwargs):
            return own_tree(lending(run, leaves, f))
        flags = [tree.is_array(leaf) for leaf in leaves]

        def rebuilt(*arrays: Any) -> Any:
            each = iter(arrays)
            return run(
                [next(each) if flag else leaf for leaf, flag in zip(leaves, flags, strict=True)]
            )

        arrays = [as_constant(leaf) for leaf, flag in zip(leaves, flags, strict=True) if flag]
        function = Flattened(rebuilt, tree.structure(tuple(arrays)), "checkpoint", f)
        specs = [spec_of(array) for array in arrays]
        stage = CuriousStage(f, arrays, [carries_derivative(array) for array in arrays])
        procedure, captured = close(function, specs, stage, arrays)
        if policy is None or policy is save_nothing:
            results = call(*captured, *arrays, function=procedure, specs=procedure.outputs)
        else:
            results = kept_call(*captured, *arrays, function=procedure, policy=policy)
        results = list(results)
        return function.rebuild(own(results))

    summary = "{f}, recomputed instead of stored in reverse mode."
    return transformed(checkpointed, f, checkpoint, summary, policy=policy)


remat = checkpoint


def _is_recorded(args: Any, kwargs: Any) -> bool:
    """Whether a tape may be recording, now or when a graph that is being traced runs.

    A debugging tool should see the function's own lines, so under one no call is recorded as a whole.
    """
    recording = any(isinstance(each, Tape) for each in running_interpreters())
    return is_staging() or (recording and watcher() is None)


# With a policy: kept_call(*args, function=procedure, policy=), which keeps some intermediate values.


def _saving(procedure: Procedure, policy: Policy) -> tuple[Procedure, list[Equation]]:
    """The procedure with the values that a policy keeps as additional outputs, and their equations."""
    graph = procedure.graph
    makers = {variable: equation for equation in graph.equations for variable in equation.outputs}
    wanted = []
    for equation in filter(policy, graph.equations):
        if equation.primitive is _mark:  # the equation that made the value need not run again
            equation = makers.get(equation.inputs[0], equation)
        if type(equation.primitive) is not HigherOrder and equation not in wanted:
            wanted.append(equation)
    outputs = [*graph.outputs, *(v for equation in wanted for v in equation.outputs)]
    return Procedure(Graph(graph.inputs, graph.constants, graph.equations, outputs)), wanted


def _trace(mask: int, args: Any, params: Any) -> Any:
    procedure, policy = params["function"], params["policy"]
    # Traced code runs again as a whole: its derivatives need the values that were not kept.
    traced = any(isinstance(arg, Tracer) for arg in args)
    saving, wanted = (procedure, []) if traced else _saving(procedure, policy)
    results = compute(kept_call, *args, function=saving, policy=save_nothing)
    count = len(procedure.outputs)
    if not any(map(is_moving, procedure.outputs)):
        return results[:count], None, None
    active = tracked(mask, len(args))
    return results[:count], _pull, (active, args, results[count:], wanted, procedure)


def _pull(cotangents: Any, saved: Any) -> Any:
    active, args, kept, wanted, procedure = saved
    leaves = [*args, *floating_cotangents(cotangents, procedure.outputs)]
    if any(isinstance(value, Tracer) for value in leaves):
        return bare(pull_through(procedure, active, leaves))
    return bare(pull_through(_remembering(procedure, kept, wanted), active, leaves))


def _remembering(procedure: Procedure, kept: Any, wanted: list[Equation]) -> Procedure:
    """The procedure with equations that return the kept values instead of computing them; rules stay."""
    graph = procedure.graph
    values = iter(kept)
    known: dict[int, Any] = {}
    for equation in wanted:
        results = tuple(next(values) for _ in equation.outputs)
        known[id(equation)] = results if equation.primitive.outputs else results[0]
    equations = []
    for equation in graph.equations:
        if id(equation) in known:
            primitive = copy.copy(equation.primitive)
            primitive.impl = _returning(known[id(equation)])
            equation = Equation(primitive, equation.inputs, equation.params, equation.outputs)
        equations.append(equation)
    return Procedure(Graph(graph.inputs, graph.constants, equations, graph.outputs))


def _returning(result: Any) -> Callable[..., Any]:
    return lambda *args, **params: result


def _push(args: Any, tangents: Any, params: Any) -> Any:
    return call.push(args, tangents, _plain(params))


def _batch(args: Any, batched: Any, batch: Any, params: Any) -> Any:
    every = (True,) * len(params["function"].outputs)
    mapped = params["function"].batched(batched, batch, every)[0]
    return kept_call(*args, function=mapped, policy=params["policy"])


def _plain(params: Any) -> dict[str, Any]:
    return {"function": params["function"], "specs": params["function"].outputs}


kept_call = HigherOrder(
    "kept_call",
    lambda *args, function, policy: tuple(function(*args)),
    push=_push,
    trace=_trace,
    batch=_batch,
    shape=lambda specs, params: params["function"].outputs,
    form=lambda params: params["function"].arrays,
)
