"""checkpoint: reverse mode that computes again instead of keeping; and its policies."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

from functrans.core import errors, tree
from functrans.core.dispatch import Tracer, running_interpreters, watcher
from functrans.core.evaluate import as_constant, compute
from functrans.core.primitive import HigherOrder
from functrans.core.shapes import spec_of
from functrans.graph.graph import Equation, Graph
from functrans.interpreters.tape import Tape
from functrans.ops.families import batch_shifting, linear
from functrans.transforms.arguments import check_callable, named_like
from functrans.transforms.calling import call, floating
from functrans.transforms.leaves import bare, is_moving, is_staging, tracked
from functrans.transforms.procedures import (
    CuriousStage,
    Flattened,
    Procedure,
    close,
    pull_through,
)

Policy = Callable[[Equation], bool]

_mark = linear(
    "checkpoint_name",
    lambda x, name: x,
    lambda g, x_shape, name: g,
    batch=batch_shifting(),
    shape=lambda specs, params: specs[0],
)


def checkpoint_name(x: Any, name: str) -> Any:
    """The same values with a name, by which `checkpoint` with the policy `save_names` knows them.

    Examples
    --------
    >>> from functrans import checkpoint_name
    >>> checkpoint_name(2.0, "hidden")
    2.0
    """
    return tree.map(lambda leaf: _mark(leaf, name=name) if isinstance(leaf, Tracer) else leaf, x)


def save_nothing(equation: Equation) -> bool:
    """Keep the arguments only, and compute all else again.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import checkpoint, checkpoint_policies, grad
    >>> f = checkpoint(np.sin, policy=checkpoint_policies.save_nothing)
    >>> grad(f)(0.0)
    np.float64(1.0)
    """
    return False


_MATMULS = frozenset({"matmul", "einsum", "tensordot", "dot", "convolve", "correlate"})


def save_matmuls(equation: Equation) -> bool:
    """Keep the results of products of matrices, which are dear to compute and small to keep.

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
    return equation.primitive.name in _MATMULS


def save_names(*names: str) -> Policy:
    """Keep the values that `checkpoint_name` gave one of these names.

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


def checkpoint(f: Callable[..., Any] | None = None, policy: Policy | None = None) -> Any:
    """The same function, of which reverse mode keeps the arguments and computes the rest again.

    It saves memory and costs a second run of `f`. Chains of n steps in sqrt(n) checkpointed parts take
    memory in proportion to sqrt(n); parts may be nested. It composes with all transforms.

    Parameters
    ----------
    f : callable
        It may close over traced values. It must not have side effects.
    policy : callable, optional
        What to keep beside the arguments, one of `functrans.checkpoint_policies`: `save_nothing`, the
        default, `save_matmuls` or `save_names(...)`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import checkpoint, grad
    >>> layer = checkpoint(lambda x: np.sin(np.sin(np.sin(x))))
    >>> round(float(grad(lambda x: layer(layer(x)))(1.0)), 6)
    0.138775
    """
    if f is None:  # @checkpoint(policy=...)
        return functools.partial(checkpoint, policy=policy)
    check_callable(f, "checkpoint")
    if policy is not None and not callable(policy):
        raise errors.OptionError(
            "checkpoint: policy must be one of functrans.checkpoint_policies, or a function of an "
            f"equation, not {policy!r}."
        )

    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        if not _is_recorded(args, kwargs):
            return f(*args, **kwargs)
        leaves, structure = tree.flatten((args, kwargs))
        flags = [tree.is_array(leaf) for leaf in leaves]

        def rebuilt(*arrays: Any) -> Any:
            each = iter(arrays)
            filled = [
                next(each) if flag else leaf for leaf, flag in zip(leaves, flags, strict=True)
            ]
            run_args, run_kwargs = tree.unflatten(structure, filled)
            return f(*run_args, **run_kwargs)

        arrays = [as_constant(leaf) for leaf, flag in zip(leaves, flags, strict=True) if flag]
        function = Flattened(rebuilt, tree.structure(tuple(arrays)), "checkpoint", f)
        specs = [spec_of(array) for array in arrays]
        procedure, captured = close(function, specs, CuriousStage(f, arrays))
        if policy is None or policy is save_nothing:
            results = call(*captured, *arrays, function=procedure, specs=procedure.outputs)
        else:
            results = kept_call(*captured, *arrays, function=procedure, policy=policy)
        return function.rebuild(results)

    return named_like(f, "checkpoint")(checkpointed)


remat = checkpoint


def _is_recorded(args: Any, kwargs: Any) -> bool:
    """Whether a tape may be watching, now or when a graph that is being written runs.

    A debugging tool is to see the function's own lines, so nothing is recorded as a whole then.
    """
    recording = any(isinstance(each, Tape) for each in running_interpreters())
    return is_staging() or (recording and watcher() is None)


# With a policy: kept_call(*args, function=procedure, policy=), which keeps some values on the way.


def _saving(procedure: Procedure, policy: Policy) -> tuple[Procedure, list[Equation]]:
    """The procedure with the values that a policy wants as further outputs, and their equations."""
    graph = procedure.graph
    makers = {variable: equation for equation in graph.equations for variable in equation.outputs}
    wanted = []
    for equation in filter(policy, graph.equations):
        if equation.primitive is _mark:  # whoever made the value need not do so again
            equation = makers.get(equation.inputs[0], equation)
        if type(equation.primitive) is not HigherOrder and equation not in wanted:
            wanted.append(equation)
    outputs = [*graph.outputs, *(v for equation in wanted for v in equation.outputs)]
    return Procedure(Graph(graph.inputs, graph.constants, graph.equations, outputs)), wanted


def _trace(mask: int, args: Any, params: Any) -> Any:
    procedure, policy = params["function"], params["policy"]
    # What is traced runs again as a whole: its derivatives need what is not kept.
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
    leaves = [*args, *floating(cotangents, procedure.outputs)]
    if any(isinstance(value, Tracer) for value in leaves):
        return bare(pull_through(procedure, active, leaves))
    return bare(pull_through(_remembering(procedure, kept, wanted), active, leaves))


def _remembering(procedure: Procedure, kept: Any, wanted: list[Equation]) -> Procedure:
    """The procedure with equations that do not compute but return what was kept; their rules stay."""
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
    "call",
    lambda *args, function, policy: tuple(function(*args)),
    push=_push,
    trace=_trace,
    batch=_batch,
    shape=lambda specs, params: params["function"].outputs,
)
