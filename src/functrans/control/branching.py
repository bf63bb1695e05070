"""cond and switch: branches that a graph can hold.

Where the index is known, they work like Python's `if`. Where it is not, because a function is being staged,
or where the lanes of a `vmap` disagree, the branches become procedures, and `switch` one primitive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import BuiltinFunctionType
from typing import Any

import numpy as np

from functrans.control.calling import floating_cotangents
from functrans.control.procedures import (
    Flattened,
    Procedure,
    check_fit,
    checked_outputs,
    close,
    close_all,
    staged,
)
from functrans.core import errors, tree
from functrans.core.custody import CONSTANTS, lending_tree, own, own_tree
from functrans.core.dispatch import concrete, running_interpreters
from functrans.core.evaluate import compute
from functrans.core.primitive import HigherOrder
from functrans.core.shapes import ArraySpec, checked_kinds, dtype_of, shape_of, spec_of
from functrans.graph.graph import Graph, Variable
from functrans.interpreters.batch import Batch
from functrans.interpreters.stage import CatchingStage
from functrans.transforms.arguments import check_callable
from functrans.transforms.leaves import (
    Specs,
    agree,
    bare,
    common_spec,
    flat,
    grouped,
    is_moving,
    lanes_of,
    lend,
    moves,
    results_in_lanes,
    select_lanes,
    tracked,
    ungrouped,
    zeros,
)


def cond(
    pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: Any
) -> Any:
    """`true_fn(*operands) if pred else false_fn(*operands)`, even where `pred` is not known yet.

    Outside of staging this is Python's `if`. In a graph it is one equation that holds both branches.
    Under `vmap`, each lane may take a different branch; a branch sees only the lanes that take it.
    Branches may close over traced values. They must return the same structure, shapes and dtypes;
    otherwise a `BranchError` is raised. To check this, both branches are traced once per kind of operands,
    so they should have no side effects.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import cond, grad, make_graph, vmap
    >>> def root(x):
    ...     return cond(x > 0, np.sqrt, lambda x: 0.0 * x, x)
    >>> vmap(grad(root))(np.array([4.0, -1.0]))
    array([0.25, 0.  ])
    >>> float(make_graph(root)(1.0)(9.0))
    3.0
    """
    if type(pred) is bool or type(pred) is np.bool_:
        _check_branches((false_fn, true_fn), operands, "cond")
        return _run(true_fn if pred else false_fn, operands)
    pred, _ = tree.unboxed(pred)
    _check_scalar(pred, "cond: the predicate")
    return choose(np.not_equal(pred, 0), (false_fn, true_fn), operands, "cond")


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """`branches[index](*operands)`, even where `index` is not known yet; see `cond`.

    An index out of range is clipped to the first or last branch.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import switch, vmap
    >>> powers = [lambda x: x, lambda x: x**2, lambda x: x**3]
    >>> vmap(lambda i, x: switch(i, powers, x))(np.arange(3), np.full(3, 2.0))
    array([2., 4., 8.])
    """
    if not isinstance(branches, (list, tuple)):
        raise errors.InputTypeError(
            f"switch needs a list of functions, not {tree.with_article(branches)}, at "
            f"{errors.user_location()}. Write switch(index, [f, g, h], x)."
        )
    if not branches:
        raise errors.OptionError(f"switch needs at least one branch, at {errors.user_location()}.")
    branches = tuple(branches)
    if type(index) is int:
        _check_branches(branches, operands, "switch")
        return _run(branches[min(max(index, 0), len(branches) - 1)], operands)
    index, _ = tree.unboxed(index)
    _check_scalar(index, "switch: the index")
    if dtype_of(index).kind not in "iub":
        raise errors.InputTypeError(
            f"switch: the index has dtype {dtype_of(index)}, at {errors.user_location()}; it must be an "
            "integer. Convert it: index.astype(int), or int(index)."
        )
    return choose(np.clip(index, 0, len(branches) - 1), branches, operands, "switch")


def _check_scalar(value: Any, what: str) -> None:
    tree.check_array(value, what)
    if shape_of(value) != ():
        raise errors.InputTypeError(
            f"{what} has shape {shape_of(value)}, at {errors.user_location()}; it must be one number. Use "
            "np.where to choose elementwise."
        )


def choose(
    index: Any, branches: tuple[Any, ...], operands: Any, name: str, compared: bool = True
) -> Any:
    """The result of the branch with this index, which is in range. If it is known, all are `compared`."""
    lanes = lanes_of(index)
    if agree(lanes):
        if compared:
            _check_branches(branches, operands, name)
        return _run(branches[int(lanes.flat[0])], operands)
    for branch_function in branches:
        branch_function = check_callable(branch_function, name)
    leaves, structure = flat(operands, f"{name}: an operand")
    flattened = [Flattened(branch, structure, name) for branch in branches]
    try:
        procedures, captured = _closed(flattened, leaves)
    except errors.StagingError as error:
        # A branch reads values: read that of the index too, which splits the lanes of a vmap.
        try:
            number = int(concrete(index))
        except errors.StagingError:
            raise error from None
        return _run(branches[number], operands)
    alike = _alike(procedures, flattened, name)
    results = list(branch(index.astype(np.int64), *captured, *leaves, branches=alike))
    return flattened[0].rebuild(own(results))


def _run(function: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    """Run one branch in Python; as in a graph, its operands and its result are passed by value."""
    if CONSTANTS.issuperset(map(type, operands)):
        return own_tree(function(*operands))
    return own_tree(lending_tree(function, *operands))


def _closed(functions: Sequence[Any], leaves: list[Any]) -> tuple[list[Procedure], list[Any]]:
    """Procedures with the same inputs: the values that any of the functions closes over come first."""
    specs = [spec_of(leaf) for leaf in leaves]
    found = [close_all(function, specs, leaves) for function in functions]
    everything = [value for _, captured in found for value in captured]
    procedures = []
    start = 0
    for procedure, captured in found:
        graph = procedure.graph
        inputs = [Variable(spec_of(value)) for value in everything]
        inputs[start : start + len(captured)] = graph.inputs[: len(captured)]
        inputs += graph.inputs[len(captured) :]
        graph = Graph(inputs, graph.constants, graph.equations, graph.outputs, arrays=graph.arrays)
        procedures.append(Procedure(graph))
        start += len(captured)
    return procedures, everything


def _alike(procedures: list[Procedure], functions: list[Any], name: str) -> tuple[Procedure, ...]:
    """The branches with outputs of the same specs; a Python scalar takes the dtype of the other branch."""
    first, specs = functions[0], procedures[0].outputs
    for k, (function, procedure) in enumerate(zip(functions, procedures, strict=True)):
        joint = []
        if function.out_structure == first.out_structure:
            joint = list(map(common_spec, specs, procedure.outputs))
        if function.out_structure != first.out_structure or None in joint:
            sides = {0: (first, procedures[0].outputs), k: (function, procedure.outputs)}
            raise _mismatch(name, sides)
        specs = tuple(spec for spec in joint if spec is not None)
    return tuple(procedure.cast(specs) for procedure in procedures)


def _mismatch(name: str, sides: dict[int, tuple[Flattened, Specs]]) -> errors.BranchError:
    returned = "\n".join(
        f"  {('false_fn', 'true_fn')[k] if name == 'cond' else f'branch {k}'}, "
        f"{errors.describe(each.function)}, returns {each.describe(specs)}"
        for k, (each, specs) in sides.items()
    )
    return errors.BranchError(
        f"{name}: the branches return different values, at {errors.user_location()}.\n{returned}\n"
        "Return the same structure, shapes and dtypes from each."
    )


# Where Python runs only one branch, the branches are compared as well. They are traced once per code of the
# branches and kind of operands, because functions are often created anew for each call. The new ones may
# close over different values, so a difference may be missed; there are no false alarms.

_compared: dict[Any, list[Any]] = {}  # what was compared, with the objects whose ids are in the key
_MOST = 4096


def _check_branches(branches: tuple[Any, ...], operands: tuple[Any, ...], name: str) -> None:
    # On later calls of plain functions, this loop is the only cost.
    key: tuple[Any, ...] = ()
    for x in operands:
        key += (x.shape, x.dtype) if type(x) is np.ndarray else (type(x),)
    kinds = key
    for branch in branches:
        key += (id(getattr(branch, "__code__", branch)),)
    if key in _compared:
        return
    codes = [part for branch in branches for part in _code(branch)]
    key = (*kinds, *map(id, codes))
    if key in _compared:
        return
    for branch in branches:
        branch = check_callable(branch, name)
    if any(isinstance(interpreter, Batch) for interpreter in running_interpreters()):
        return  # a branch that reads values would split the lanes
    if len(_compared) >= _MOST:
        _compared.clear()
    _compared[key] = codes  # before it is done: a branch may call the same function again
    try:
        _compare(branches, operands, name)
    except BaseException:
        _compared.pop(key, None)
        raise


_LASTING = (np.ufunc, BuiltinFunctionType, type(np.sum))


def _code(function: Any) -> tuple[Any, ...]:
    """An object that identifies a function and outlives it."""
    if isinstance(function, _LASTING):
        return (function,)
    codes: tuple[Any, ...] = ()
    if isinstance(function, partial):  # a transformed function is one, too
        codes = type(function), *_code(function.func)
    if hasattr(function, "__wrapped__"):
        codes = type(function), *codes, *_code(function.__wrapped__)
    return codes or (getattr(function, "__code__", type(function)),)


def _compare(branches: tuple[Any, ...], operands: Any, name: str) -> None:
    """Raise if branches return different structures or specs, as far as tracing can tell."""
    try:
        leaves, structure = flat(operands, name)
        flattened = [Flattened(branch, structure, name) for branch in branches]
        with np.errstate(all="ignore"):
            specs = list(map(spec_of, leaves))
            found = [
                close(each, specs, CatchingStage(each), leaves)[0].outputs for each in flattened
            ]
    except Exception:
        return  # a branch reads values, or fails on operands it would not have been chosen for
    first = flattened[0]
    for k, (function, outputs) in enumerate(zip(flattened, found, strict=True)):
        if function.out_structure != first.out_structure or None in map(
            common_spec, found[0], outputs
        ):
            raise _mismatch(name, {0: (first, found[0]), k: (function, outputs)})


# The primitive: branch(index, *operands, branches=...), with an index in range.


def _impl(index: Any, *operands: Any, branches: tuple[Procedure, ...]) -> Any:
    return tuple(branches[int(concrete(index))](*operands))


def _push(args: Any, tangents: Any, params: Any) -> Any:
    (index, *operands), branches = args, params["branches"]
    moving = moves(tangents[1:])
    wanted = tuple(map(any, zip(*[each.moved(moving) for each in branches], strict=True)))
    pushed = tuple(each.pushed((moving,), (wanted,)) for each in branches)
    leaves = grouped(operands, tangents[1:], (moving,))
    return ungrouped(compute(branch, index, *leaves, branches=pushed), (wanted,))


def _trace(mask: int, args: Any, params: Any) -> Any:
    outs = compute(branch, *args, **params)
    branches = params["branches"]
    if not any(map(is_moving, branches[0].outputs)):
        return outs, None, None
    return outs, _pull, (tracked(mask, len(args))[1:], args, branches)


def _pull(cotangents: Any, saved: Any) -> Any:
    # The branch runs again, because only its operands were kept.
    active, args, branches = saved
    given = floating_cotangents(cotangents, branches[0].outputs)
    return bare(branch(*args, *given, branches=tuple(each.pulled(active) for each in branches)))


def _batch(args: Any, batched: Any, batch: Batch, params: Any) -> Any:
    (index, *operands), mapped, branches = args, batched[1:], params["branches"]
    every = (True,) * len(branches[0].outputs)
    if not batched[0]:
        found = [each.batched(mapped, batch)[1] for each in branches]
        wanted = tuple(map(any, zip(*found, strict=True)))
        inner = tuple(each.batched(mapped, batch, wanted)[0] for each in branches)
        return results_in_lanes(branch(index, *operands, branches=inner), wanted, batch)
    results: Any = None
    for k, each in enumerate(branches):
        lanes = np.equal(index, k)
        run = each.batched(mapped, batch, every, masked=True)[0]
        idle = staged(lambda *_, run=run: [zeros(spec) for spec in run.outputs], run.inputs)
        lent = [lend(lanes, v) if maps else v for v, maps in zip(operands, mapped, strict=True)]
        found = branch(np.any(lanes).astype(np.int64), *lent, branches=(idle, run))
        if results is not None:
            found = [select_lanes(lanes, *pair) for pair in zip(found, results, strict=True)]
        results = found
    return results


def _shape(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> Any:
    index, *operands = specs
    checked_kinds("biu", index)
    if index.shape or type(params["branches"]) is not tuple or not params["branches"]:
        raise ValueError("one integer chooses one of several branches")
    first, *others = [checked_outputs(each, operands) for each in params["branches"]]
    for outs in others:
        check_fit(outs, first)
    return first


branch = HigherOrder(
    "switch",
    _impl,
    push=_push,
    trace=_trace,
    batch=_batch,
    shape=_shape,
    runs=lambda args: agree(lanes_of(args[0])),
    holds_graphs=True,
    form=lambda params: params["branches"][0].arrays,
)
