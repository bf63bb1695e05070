"""Collectives: operations across the lanes of a named `vmap` axis.

`sum_lanes` gives every lane the sum over all lanes, and `all_lanes` the values of all of them. A value that
is not mapped over the axis is the same in every lane; `impl` is for this case.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.dispatch import named_axis, running_interpreters
from functrans.core.primitive import Collective
from functrans.core.shapes import ArraySpec, shape_of
from functrans.ops import reduction
from functrans.ops.indexing import ARRAY, index


def axis_size(name: Any, what: str) -> int:
    """The number of lanes of a named axis, all of which must be in this run."""
    axis = named_axis(name)
    axis.require_all_lanes(what)
    for interpreter in running_interpreters():
        if interpreter.level > axis.level:
            interpreter.note_axis(axis)
    return axis.total  # type: ignore[no-any-return]


def _repeat(x: Any, axis_name: Any) -> Any:
    return np.broadcast_to(x, (axis_size(axis_name, "all_gather"), *shape_of(x)))


def _own_share(g: Any, axis_name: Any) -> Any:
    # Lane j's value went to every lane k, which sends back g_k[j].
    return index(
        sum_lanes(g, axis_name=axis_name), named_axis(axis_name).lane_numbers(), template=(ARRAY,)
    )


sum_lanes: Collective = Collective(
    "psum",
    lambda x, axis_name: x * axis_size(axis_name, "psum"),
    jvp=lambda out, args, tangents, params: sum_lanes(tangents[0], **params),
    # Lane j's value went into the sum of every lane k, which sends back g_k.
    vjp=lambda mask, out, args, params: (
        lambda g, name: sum_lanes(g, axis_name=name),
        params["axis_name"],
    ),
    batch=lambda primitive, args, batched, size, params: primitive(*args, **params),
    shape=lambda specs, params: specs[0],
    kind="reduction",
)
sum_lanes.collect = lambda value: reduction.sum(value, axis=(0,), keepdims=False)

all_lanes: Collective = Collective(
    "all_gather",
    _repeat,
    jvp=lambda out, args, tangents, params: all_lanes(tangents[0], **params),
    vjp=lambda mask, out, args, params: (_own_share, params["axis_name"]),
    batch=lambda primitive, args, batched, size, params: np.moveaxis(
        primitive(*args, **params), 0, 1
    ),
    shape=lambda specs, params: ArraySpec(
        (axis_size(params["axis_name"], "all_gather"), *specs[0].shape), specs[0].dtype
    ),
    kind="reduction",
)
all_lanes.collect = lambda value: value
