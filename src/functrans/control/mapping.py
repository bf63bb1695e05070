"""map: a function along the first axis of arrays, one entry or one batch at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.control.scanning import length_of, scan
from functrans.core import errors, tree
from functrans.core.dispatch import is_plain
from functrans.core.shapes import shape_of
from functrans.transforms.arguments import check_callable
from functrans.transforms.batching import vmap
from functrans.transforms.leaves import flat


def map(f: Callable[[Any], Any], xs: Any, batch_size: int | None = None) -> Any:
    """Apply `f` to each x along the first axis of `xs`, one after another, and stack the results.

    In a graph it is one equation, like `scan`. `vmap` computes all at once, which is faster but takes
    more memory; `batch_size` sets how many entries `map` computes at once.

    Examples
    --------
    >>> import numpy as np
    >>> import functrans
    >>> functrans.map(lambda row: np.sum(row**2), np.arange(6.0).reshape(3, 2))
    array([ 1., 13., 41.])
    """
    f = check_callable(f, "map")
    if batch_size is None:
        return scan(lambda _, x: (None, f(x)), None, xs)[1]
    if not is_plain(batch_size, (int, np.integer)) or batch_size < 1:
        raise errors.OptionError(
            f"map: batch_size must be a positive int, not {batch_size!r}, at {errors.user_location()}."
        )
    rows, structure = flat(xs, "map: an array of xs")
    length = length_of(rows, None, "map")
    batches, rest = divmod(length, batch_size)

    def part(start: int, stop: int, shape: tuple[int, ...]) -> Any:
        chunks = [row[start:stop].reshape(shape + shape_of(row)[1:]) for row in rows]
        return tree.unflatten(structure, chunks)

    ends = length - rest
    parts = []
    if batches or not length:
        chunked = scan(lambda _, x: (None, vmap(f)(x)), None, part(0, ends, (batches, batch_size)))
        parts.append(tree.map(lambda ys: ys.reshape((ends, *shape_of(ys)[2:])), chunked[1]))
    if rest:
        parts.append(vmap(f)(part(ends, length, (rest,))))
    return tree.map(lambda *each: np.concatenate(each), *parts) if len(parts) > 1 else parts[0]
