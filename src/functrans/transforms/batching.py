"""vmap, and the collectives over its named axes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import partial
from typing import Any, overload

import numpy as np

from functrans.core import errors, tree
from functrans.core.custody import kept_in_tracer, own
from functrans.core.dispatch import Tracer, is_plain, named_axis, running_interpreters
from functrans.core.evaluate import as_constant, open_array
from functrans.core.hooks import runs_again
from functrans.core.progress import progress_bar
from functrans.core.shapes import dtype_of, shape_of
from functrans.interpreters.batch import Batch, BatchTracer
from functrans.ops.collective import all_lanes, axis_size, sum_lanes
from functrans.ops.families import with_lanes
from functrans.transforms.arguments import (
    LATER,
    check_callable,
    flatten_argument,
    unflatten_argument,
)
from functrans.transforms.functions import transformed

Axes = int | tuple[Any, ...] | list[Any] | None


@overload
def vmap(
    f: Callable[..., Any],
    in_axes: Axes = 0,
    out_axes: Any = 0,
    axis_name: Hashable | None = None,
    axis_size: int | None = None,
    chunk_size: int | None = None,
    progress: bool | str = False,
) -> Callable[..., Any]: ...
@overload
def vmap(
    *,
    in_axes: Axes = 0,
    out_axes: Any = 0,
    axis_name: Hashable | None = None,
    axis_size: int | None = None,
    chunk_size: int | None = None,
    progress: bool | str = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]: ...
def vmap(
    f: Callable[..., Any] = LATER,
    in_axes: Axes = 0,
    out_axes: Any = 0,
    axis_name: Hashable | None = None,
    axis_size: int | None = None,
    chunk_size: int | None = None,
    progress: bool | str = False,
) -> Any:
    """Turn a function of one example into a function of a batch.

    Each element of the batch is a lane. Python control flow works: if a branch depends on mapped
    values and the lanes disagree, the function runs once for every group of lanes that takes the
    same path.

    Parameters
    ----------
    f : callable
        A function of one example, in plain NumPy.
    in_axes : int, None, or pytree of them
        The axis of each positional argument to map over; None for an argument shared by all lanes.
        A tuple or list has one entry per argument, each a tree prefix of that argument. Keyword
        arguments are mapped over axis 0.
    out_axes : int, None, or pytree of them
        The position of the mapped axis in each output; None for an output that is the same in all lanes.
    axis_name : hashable, optional
        A name for collectives such as `psum`.
    axis_size : int, optional
        The number of lanes; needed only if no argument is mapped.
    chunk_size : int, optional
        Run at most this many lanes at a time, to bound memory.
    progress : bool or str
        Whether to show a progress bar with tqdm; a string sets its title.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad, vmap
    >>> vmap(np.dot)(np.ones((3, 2)), np.arange(6.0).reshape(3, 2))
    array([1., 5., 9.])
    >>> vmap(lambda x: x if x > 0 else -2 * x)(np.array([1.0, -1.0]))
    array([1., 2.])
    """
    if f is LATER:
        return partial(
            vmap,
            in_axes=in_axes,
            out_axes=out_axes,
            axis_name=axis_name,
            axis_size=axis_size,
            chunk_size=chunk_size,
            progress=progress,
        )
    f = check_callable(f, "vmap")
    requested = axis_size
    if requested is not None and (not is_plain(requested, (int, np.integer)) or requested < 0):
        raise errors.OptionError(
            "axis_size must be the number of lanes, a non-negative int, not "
            f"{requested!r}, at {errors.user_location()}."
        )
    if axis_name is not None and not isinstance(axis_name, Hashable):
        raise errors.OptionError(
            f"axis_name must be hashable, such as a str, not {axis_name!r}, at "
            f"{errors.user_location()}."
        )
    if chunk_size is not None and (not is_plain(chunk_size, int) or chunk_size < 1):
        raise errors.OptionError(
            f"chunk_size must be a positive int, not {chunk_size!r}, at {errors.user_location()}."
        )

    @runs_again
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
            # Without lanes no branch can be decided. A run with one lane of ones finds the shapes instead.
            pending, moved = [np.zeros(1, int)], _with_a_lane(moved, axes)
        with progress_bar(progress, total, f"vmap of {errors.name_of(f)}") as bar:
            while pending:
                lanes = pending.pop()
                with Batch(lanes, max(total, 1), axis_name, f) as batch:
                    batch.reruns = True
                    traced = iter(
                        [
                            BatchTracer(batch, kept_in_tracer(_take(leaf, lanes, max(total, 1))))
                            if axis is not None
                            else open_array(kept_in_tracer(leaf))
                            for leaf, axis in zip(moved, axes, strict=True)
                        ]
                    )
                    run_args, run_kwargs = _filled(flat, traced), _filled(named.values(), traced)
                    out = f(*run_args, **dict(zip(named, run_kwargs, strict=True)))
                    finished.append(_Run(batch, out, f, keep=total > 0))
                pending += batch.pending[::-1]
                bar.update(len(lanes) - sum(map(len, batch.pending)))
        structure, results = _put_together(finished, out_axes, total, f)
        # These are the last references to the results of the runs.
        finished.clear()
        del traced, run_args, run_kwargs, out
        return unflatten_argument(structure, own(results))

    return transformed(
        mapped,
        f,
        vmap,
        "{f}, mapped over a batch of examples.",
        in_axes=in_axes,
        out_axes=out_axes,
        axis_name=axis_name,
        axis_size=axis_size,
        chunk_size=chunk_size,
        progress=progress,
    )


def _with_a_lane(leaves: list[Any], axes: list[Any]) -> list[Any]:
    """Replace mapped values that have no lanes by values with one lane."""
    return [
        leaf if axis is None else np.ones((1, *shape_of(leaf)[1:]), dtype_of(leaf))
        for leaf, axis in zip(leaves, axes, strict=True)
    ]


def _filled(parts: Iterable[Any], leaves: Iterator[Any]) -> list[Any]:
    """Arguments with these structures, filled with the next leaves."""
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
            f"an axis named {name!r} is already mapped by an outer vmap, at "
            f"{errors.user_location()}. Give each nested vmap its own axis_name."
        )


def _is_axis(axis: Any) -> bool:
    return axis is None or (is_plain(axis, (int, np.integer)) and not isinstance(axis, bool))


def _argument_axes(in_axes: Any, args: tuple[Any, ...], flat: list[Any]) -> list[Any]:
    """The mapped axis of every leaf of the positional arguments, or None, as the user gave it."""
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise errors.MappedAxisError(
            f"in_axes has {len(in_axes)} entries, but the function was called with {len(args)} "
            f"positional argument{'' if len(args) == 1 else 's'}, at {errors.user_location()}. Give one "
            "entry per argument, or one int for all."
        )
    if not isinstance(in_axes, tuple) and not _is_axis(in_axes):
        raise errors.MappedAxisError(
            "in_axes must be an int, None, or a tuple with one entry per argument, not "
            f"{in_axes!r}, at {errors.user_location()}."
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
                raise errors.MappedAxisError(
                    f"vmap cannot map axis {axis} of {name}, which has shape {shape_of(leaf)}, at "
                    f"{errors.user_location()}. "
                    + (
                        "A list is a container of arrays: pass np.array(list) to map its entries."
                        if "[" in name and not ndim
                        else "Its entry in in_axes is None if all lanes share it, or an axis that it has."
                    )
                )
            axis = int(axis) % ndim
        checked.append(axis)
    return checked


def _spread_axes(axes: Any, value: Any, what: str, of: str) -> list[Any]:
    try:
        spread = tree.broadcast_prefix(axes, value)
    except (ValueError, TypeError):
        raise errors.MappedAxisError(
            f"{what} = {axes!r} does not match the structure of {of}, {tree.shown(tree.structure(value))}, "
            f"at {errors.user_location()}. It must be an int, None, or containers like those of {of}."
        ) from None
    for axis in spread:
        if not _is_axis(axis):
            raise errors.MappedAxisError(
                f"{what} holds {axis!r}, at {errors.user_location()}: an axis is an int, or None for a "
                "value that is not mapped."
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
            "vmap has nothing to map: in_axes is None for every argument, or there are no arrays, at "
            f"{errors.user_location()}. Map at least one argument, or give axis_size."
        )
    found = [
        f"{name} has {shape_of(leaf)[axis]} along axis {axis}"
        for name, leaf, axis in zip(_leaf_names(args, kwargs), leaves, axes, strict=True)
        if axis is not None
    ]
    if requested is not None:
        found.append(f"axis_size is {requested}")
    raise errors.MappedAxisError(
        f"vmap needs mapped axes of one size, but {', '.join(found)}, at {errors.user_location()}. Use "
        "None in in_axes for arguments that all lanes share."
    )


class _Run:
    """The output of one group of lanes: leaves with the mapped axis first, or unmapped."""

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


def _put_together(
    runs: list[_Run], out_axes: Any, total: int, f: Callable[..., Any]
) -> tuple[Any, list[Any]]:
    """The structure of the result, and its leaves."""
    first = runs[0]
    for run in runs[1:]:
        if run.structure != first.structure:
            raise errors.LaneError(
                f"lanes of {errors.describe(f)} took different branches and returned different "
                f"structures: {tree.shown(first.structure)} and {tree.shown(run.structure)}, at "
                f"{errors.user_location()}. Return the same containers on every path."
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
    results = [_gather(runs, k, axis, total, order, f) for k, axis in enumerate(axes)]
    return first.structure, results


def _gather(runs: list[_Run], k: int, axis: Any, total: int, order: Any, f: Any) -> Any:
    """Output k of all runs, with the mapped axis at position `axis`."""
    if axis is None:
        if any(run.mapped[k] for run in runs) or not _same(runs, k):
            raise errors.MappedAxisError(
                f"out_axes is None for an output of {errors.describe(f)} that differs from lane to "
                f"lane, at {errors.user_location()}. Use an int, the position of the mapped axis."
            )
        return runs[0].leaves[k]
    parts = [
        run.leaves[k] if run.mapped[k] else with_lanes(run.leaves[k], len(run.lanes))
        for run in runs
    ]
    shapes = {shape_of(part)[1:] for part in parts}
    if len(shapes) > 1:
        raise errors.LaneError(
            f"lanes of {errors.describe(f)} took different branches and returned different shapes: "
            f"{', '.join(map(str, sorted(shapes)))}, at {errors.user_location()}. Return the same shape on "
            "every path."
        )
    value = parts[0] if len(parts) == 1 else np.concatenate(parts)
    if order is not None:
        value = value[order]
    ndim = len(shape_of(value))
    if not -ndim <= axis < ndim:
        raise errors.MappedAxisError(
            f"out_axes puts the mapped axis at {axis}, but an output of {errors.describe(f)} has "
            f"only {ndim} axes with it, at {errors.user_location()}. The first is 0."
        )
    return np.moveaxis(value, 0, axis) if axis % ndim else value


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
    """The index of each lane along a named axis.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import axis_index, vmap
    >>> vmap(lambda x: x * axis_index("i"), axis_name="i")(np.array([5.0, 5.0]))
    array([0., 5.])
    """
    return named_axis(axis_name).lane_numbers()
