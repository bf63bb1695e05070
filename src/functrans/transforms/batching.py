"""vmap, and the collectives over its named axes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

import numpy as np

from functrans.core import errors, tree
from functrans.core.dispatch import Tracer, named_axis, running_interpreters
from functrans.core.evaluate import as_constant, captured, open_array
from functrans.core.progress import progress_bar
from functrans.core.shapes import dtype_of, shape_of
from functrans.interpreters.batch import Batch, BatchTracer
from functrans.ops.collective import all_lanes, axis_size, sum_lanes
from functrans.transforms.arguments import (
    check_callable,
    flatten_argument,
    named_like,
    unflatten_argument,
)


def vmap(
    f: Callable[..., Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Hashable | None = None,
    axis_size: int | None = None,
    chunk_size: int | None = None,
    progress: bool | str = False,
) -> Callable[..., Any]:
    """A function of one example, as a function of a batch of them.

    Python control flow works: where a branch depends on mapped values and the lanes disagree, the
    function is run once for every group of lanes that takes the same path.

    Parameters
    ----------
    f : callable
        A function of one example, in plain NumPy.
    in_axes : int, None, or pytree of them
        Which axis of each positional argument is mapped; None for an argument shared by all lanes.
        A tuple or list has one entry per argument, each a prefix of that argument's structure.
        Keyword arguments are mapped over axis 0.
    out_axes : int, None, or pytree of them
        Where the mapped axis goes in each output; None for an output that is the same in all lanes.
    axis_name : hashable, optional
        A name for collectives such as `psum`.
    axis_size : int, optional
        The number of lanes; needed only if no argument is mapped.
    chunk_size : int, optional
        Run at most this many lanes at a time, to bound memory.
    progress : bool or str
        Whether to show how many lanes are done, by tqdm; a string is the title of the bar.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad, vmap
    >>> vmap(np.dot)(np.ones((3, 2)), np.arange(6.0).reshape(3, 2))
    array([1., 5., 9.])
    >>> vmap(lambda x: x if x > 0 else -2 * x)(np.array([1.0, -1.0]))
    array([1., 2.])
    """
    check_callable(f, "vmap")
    requested = axis_size
    if requested is not None and (not isinstance(requested, (int, np.integer)) or requested < 0):
        raise errors.OptionError(
            f"axis_size must be the number of lanes, an int that is not negative, not {requested!r}."
        )
    if axis_name is not None and not isinstance(axis_name, Hashable):
        raise errors.OptionError(
            f"axis_name must be a value that can be compared, such as a str, not {axis_name!r}."
        )
    if chunk_size is not None and (not isinstance(chunk_size, int) or chunk_size < 1):
        raise errors.OptionError(f"chunk_size must be a positive int, not {chunk_size!r}.")

    def mapped(*args: Any, **kwargs: Any) -> Any:
        flat = [flatten_argument(arg) for arg in args]
        named = {key: flatten_argument(value) for key, value in kwargs.items()}
        axes = _argument_axes(in_axes, args, flat)
        for leaves, _ in named.values():
            axes += [0] * len(leaves)
        everything = [*flat, *named.values()]
        leaves = [leaf for part, _ in everything for leaf in part]
        axes = _checked_axes(axes, leaves, args, kwargs)
        total = _lane_count(leaves, axes, args, kwargs, requested)
        moved = [
            leaf if not axis else np.moveaxis(leaf, axis, 0)
            for leaf, axis in zip(leaves, axes, strict=True)
        ]
        if axis_name is not None:
            _check_axis_name(axis_name)
        numbers = np.arange(total)
        size = chunk_size or max(total, 1)
        pending = [numbers[k : k + size] for k in range(0, max(total, 1), size)][::-1]
        finished: list[_Run] = []
        if total == 0:
            # No lane can say which way a branch goes. One lane of ones finds the shapes instead.
            pending, moved = [np.zeros(1, int)], _with_a_lane(moved, axes)
        with progress_bar(progress, total, f"vmap of {errors.name_of(f)}") as bar:
            while pending:
                lanes = pending.pop()
                with Batch(lanes, max(total, 1), axis_name, f) as batch:
                    traced = iter(
                        [
                            BatchTracer(batch, captured(_take(leaf, lanes, max(total, 1))))
                            if axis is not None
                            else open_array(leaf)
                            for leaf, axis in zip(moved, axes, strict=True)
                        ]
                    )
                    run_args, run_kwargs = _filled(flat, traced), _filled(named.values(), traced)
                    out = f(*run_args, **dict(zip(named, run_kwargs, strict=True)))
                    finished.append(_Run(batch, out, f, keep=total > 0))
                pending += batch.pending[::-1]
                bar.update(len(lanes) - sum(map(len, batch.pending)))
        return _own(_put_together(finished, out_axes, total, f), leaves)

    return named_like(f, "vmap")(mapped)


def _with_a_lane(leaves: list[Any], axes: list[Any]) -> list[Any]:
    """Mapped values of no lanes, as values of one lane."""
    return [
        leaf if axis is None else np.ones((1, *shape_of(leaf)[1:]), dtype_of(leaf))
        for leaf, axis in zip(leaves, axes, strict=True)
    ]


def _filled(parts: Iterable[Any], leaves: Iterator[Any]) -> list[Any]:
    """Arguments of these structures, with the next leaves in them."""
    return [unflatten_argument(s, [next(leaves) for _ in old]) for old, s in parts]


def _take(leaf: Any, lanes: np.ndarray[Any, Any], total: int) -> Any:
    if len(lanes) == total:
        return leaf
    if len(lanes) and lanes[-1] - lanes[0] == len(lanes) - 1:  # a chunk: a view will do
        return leaf[int(lanes[0]) : int(lanes[-1]) + 1]
    return leaf[lanes]


def _check_axis_name(name: Hashable) -> None:
    if any(interpreter.axis_name == name for interpreter in running_interpreters()):
        raise errors.AxisNameError(
            f"an axis named {name!r} is already mapped by a vmap around this one, at "
            f"{errors.user_location()}. Give each nested vmap its own axis_name."
        )


def _is_axis(axis: Any) -> bool:
    return axis is None or (isinstance(axis, (int, np.integer)) and not isinstance(axis, bool))


def _argument_axes(in_axes: Any, args: tuple[Any, ...], flat: list[Any]) -> list[Any]:
    """The mapped axis of every leaf of the positional arguments, or None, as the user gave it."""
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise errors.MappedAxisError(
            f"in_axes has {len(in_axes)} entries, but the function was called with {len(args)} "
            "positional arguments. Give one entry per argument, or one int for all."
        )
    if not isinstance(in_axes, tuple) and not _is_axis(in_axes):
        raise errors.MappedAxisError(
            "in_axes must be an int, None, or a tuple with one entry per argument, not "
            f"{in_axes!r}."
        )
    per_argument = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
    axes: list[Any] = []
    for k, (axis, arg, (leaves, _)) in enumerate(zip(per_argument, args, flat, strict=True)):
        if _is_axis(axis):
            axes += [axis] * len(leaves)
        else:
            axes += _spread_axes(axis, arg, f"in_axes[{k}]", f"argument {k}")
    return axes


def _checked_axes(axes: list[Any], leaves: list[Any], args: Any, kwargs: Any) -> list[Any]:
    """The axes as non-negative ints, each within its leaf."""
    checked = []
    for k, (axis, leaf) in enumerate(zip(axes, leaves, strict=True)):
        if axis is not None:
            if not tree.is_array(leaf):
                tree.check_array(leaf, f"vmap: {_leaf_names(args, kwargs)[k]}")
            ndim = len(shape_of(leaf))
            if not -ndim <= axis < ndim:
                name = _leaf_names(args, kwargs)[k]
                entry = " A list is a container of arrays: np.array(list) is one." * ("[" in name)
                raise errors.MappedAxisError(
                    f"vmap cannot map axis {axis} of {name}, which has shape {shape_of(leaf)}. "
                    f"Correct in_axes, or use None for a value that all lanes share.{entry}"
                )
            axis = int(axis) % ndim
        checked.append(axis)
    return checked


def _spread_axes(axes: Any, value: Any, what: str, of: str) -> list[Any]:
    try:
        spread = tree.broadcast_prefix(axes, value)
    except (ValueError, TypeError) as error:
        raise errors.MappedAxisError(
            f"{what} = {axes!r} does not fit the structure of {of}, "
            f"{tree.structure(value)}. It must be an int, None, or containers like those of {of}."
        ) from error
    for axis in spread:
        if not _is_axis(axis):
            raise errors.MappedAxisError(
                f"{what} holds {axis!r}; an axis is an int, or None for a value that is not mapped."
            )
    return spread


def _leaf_names(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    names = [f"argument {k}{path}" for k, arg in enumerate(args) for path in tree.paths(arg)]
    return names + [
        f"argument {key!r}{path}" for key, value in kwargs.items() for path in tree.paths(value)
    ]


def _lane_count(
    leaves: list[Any], axes: list[Any], args: Any, kwargs: Any, requested: int | None
) -> int:
    sizes = {
        shape_of(leaf)[axis] for leaf, axis in zip(leaves, axes, strict=True) if axis is not None
    }
    if requested is not None:
        sizes.add(requested)
    if len(sizes) == 1:
        return int(sizes.pop())
    if not sizes:
        raise errors.MappedAxisError(
            "vmap has nothing to map: in_axes is None for every argument, or there are no arrays. "
            "Map at least one argument, or give axis_size."
        )
    found = [
        f"{name} has {shape_of(leaf)[axis]} along axis {axis}"
        for name, leaf, axis in zip(_leaf_names(args, kwargs), leaves, axes, strict=True)
        if axis is not None
    ]
    if requested is not None:
        found.append(f"axis_size is {requested}")
    raise errors.MappedAxisError(
        f"vmap needs mapped axes of one size, but {', '.join(found)}. Correct in_axes or the arrays."
    )


def _root(array: Any) -> Any:
    while type(array.base) is np.ndarray:
        array = array.base
    return array


def _own(out: Any, inputs: list[Any]) -> Any:
    """Copy results that share memory with an argument, which np.stack of a loop would not do."""
    roots = {id(_root(leaf)) for leaf in inputs if isinstance(leaf, np.ndarray)}

    def own(leaf: Any) -> Any:
        shares = type(leaf) is np.ndarray and id(_root(leaf)) in roots
        return leaf.copy() if shares else leaf

    leaves, structure = flatten_argument(out)
    return unflatten_argument(structure, [own(leaf) for leaf in leaves])


class _Run:
    """What one group of lanes returned: the leaves with lanes first, or unmapped."""

    def __init__(self, batch: Batch, out: Any, f: Callable[..., Any], keep: bool) -> None:
        leaves, self.structure = flatten_argument(out)
        self.lanes = batch.lanes if keep else batch.lanes[:0]
        self.mapped = []
        self.leaves = []
        for leaf in leaves:
            if not tree.is_array(leaf):
                tree.check_array(leaf, f"vmap: an output of {errors.describe(f)}")
            ours = type(leaf) is BatchTracer and leaf.interpreter is batch
            self.mapped.append(ours)
            value = batch.hidden(leaf) if ours else as_constant(leaf)
            self.leaves.append(value if keep or not ours else value[:0])


def _put_together(runs: list[_Run], out_axes: Any, total: int, f: Callable[..., Any]) -> Any:
    first = runs[0]
    for run in runs[1:]:
        if run.structure != first.structure:
            raise errors.LaneError(
                f"lanes of {errors.describe(f)} took different branches and returned different "
                f"structures: {first.structure} and {run.structure}. Return the same containers on "
                "every path."
            )
    if _is_axis(out_axes):
        axes = [out_axes] * len(first.leaves)
    else:
        like = unflatten_argument(first.structure, first.leaves)
        axes = _spread_axes(out_axes, like, "out_axes", "the output")
    order = None
    if len(runs) > 1:
        lanes = np.concatenate([run.lanes for run in runs])
        if (lanes[1:] < lanes[:-1]).any():
            order = np.argsort(lanes)
    results = []
    for k, axis in enumerate(axes):
        results.append(_gather(runs, k, axis, total, order, f))
    return unflatten_argument(first.structure, results)


def _gather(runs: list[_Run], k: int, axis: Any, total: int, order: Any, f: Any) -> Any:
    """Output k of all runs, with the mapped axis where `axis` wants it."""
    if axis is None:
        if any(run.mapped[k] for run in runs) or not _same(runs, k):
            raise errors.MappedAxisError(
                f"out_axes is None for an output of {errors.describe(f)} that differs from lane to "
                "lane. Use an int, or reduce it over the lanes (psum, pmean with an axis_name)."
            )
        return runs[0].leaves[k]
    parts = [
        run.leaves[k]
        if run.mapped[k]
        else np.broadcast_to(run.leaves[k], (len(run.lanes), *shape_of(run.leaves[k])))
        for run in runs
    ]
    shapes = {shape_of(part)[1:] for part in parts}
    if len(shapes) > 1:
        raise errors.LaneError(
            f"lanes of {errors.describe(f)} took different branches and returned different shapes: "
            f"{', '.join(map(str, sorted(shapes)))}. Return the same shape on every path."
        )
    value = parts[0] if len(parts) == 1 else np.concatenate(parts)
    if order is not None:
        value = value[order]
    ndim = len(shape_of(value))
    if not -ndim <= axis < ndim:
        raise errors.MappedAxisError(
            f"out_axes puts the mapped axis at {axis}, but an output of {errors.describe(f)} has "
            f"only {ndim} axes with it."
        )
    value = np.moveaxis(value, 0, axis) if axis % ndim else value
    if type(value) is np.ndarray and not value.flags.writeable:
        value = value.copy()
    return value


def _same(runs: list[_Run], k: int) -> bool:
    """Whether an output that is not mapped is the same in all runs."""
    first = runs[0].leaves[k]
    return all(
        run.leaves[k] is first
        or (
            not isinstance(first, Tracer)
            and not isinstance(run.leaves[k], Tracer)
            and np.array_equal(run.leaves[k], first)
        )
        for run in runs[1:]
    )


# Collectives.


def _map_arrays(function: Callable[[Any], Any], x: Any, what: str) -> Any:
    def apply(leaf: Any) -> Any:
        tree.check_array(leaf, f"{what}: its argument")
        return function(leaf if isinstance(leaf, Tracer) else np.asarray(leaf)[()])

    return tree.map(apply, x)


def psum(x: Any, axis_name: Hashable) -> Any:
    """The sum over all lanes of a named axis, in every lane.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import psum, vmap
    >>> vmap(lambda x: x / psum(x, "i"), axis_name="i")(np.array([1.0, 3.0]))
    array([0.25, 0.75])
    """
    named_axis(axis_name)
    return _map_arrays(lambda leaf: sum_lanes(leaf, axis_name=axis_name), x, "psum")


def pmean(x: Any, axis_name: Hashable) -> Any:
    """The mean over all lanes of a named axis, in every lane.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import pmean, vmap
    >>> vmap(lambda x: x - pmean(x, "i"), axis_name="i")(np.array([1.0, 3.0]))
    array([-1.,  1.])
    """
    lanes = axis_size(axis_name, "pmean")
    return _map_arrays(lambda leaf: sum_lanes(leaf, axis_name=axis_name) / lanes, x, "pmean")


def pmax(x: Any, axis_name: Hashable) -> Any:
    """The largest value over all lanes of a named axis, in every lane.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import pmax, vmap
    >>> vmap(lambda x: pmax(x, "i") - x, axis_name="i")(np.array([1.0, 3.0]))
    array([2., 0.])
    """
    axis_size(axis_name, "pmax")
    return _map_arrays(lambda leaf: np.max(all_lanes(leaf, axis_name=axis_name), axis=0), x, "pmax")


def pmin(x: Any, axis_name: Hashable) -> Any:
    """The smallest value over all lanes of a named axis, in every lane.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import pmin, vmap
    >>> vmap(lambda x: x - pmin(x, "i"), axis_name="i")(np.array([1.0, 3.0]))
    array([0., 2.])
    """
    axis_size(axis_name, "pmin")
    return _map_arrays(lambda leaf: np.min(all_lanes(leaf, axis_name=axis_name), axis=0), x, "pmin")


def all_gather(x: Any, axis_name: Hashable, axis: int = 0) -> Any:
    """The values of all lanes of a named axis, stacked along `axis`, in every lane.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import all_gather, vmap
    >>> vmap(lambda x: all_gather(x, "i"), axis_name="i")(np.array([1.0, 3.0]))
    array([[1., 3.],
           [1., 3.]])
    """
    named_axis(axis_name)
    return _map_arrays(
        lambda leaf: np.moveaxis(all_lanes(leaf, axis_name=axis_name), 0, axis), x, "all_gather"
    )


def axis_index(axis_name: Hashable) -> Any:
    """The number of the lane along a named axis.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import axis_index, vmap
    >>> vmap(lambda x: x * axis_index("i"), axis_name="i")(np.array([5.0, 5.0]))
    array([0., 5.])
    """
    return named_axis(axis_name).lane_numbers()
