"""Whether finite differences of a function mean its derivative: tests of plain calls, for discovery.

Differences with a step of 1e-4 see a slope where the function is a staircase of narrow steps, where rounding
errors hide a term, and where the result depends on a basis that LAPACK happens to choose.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np

from tools.corpus.differences import derivative
from tools.corpus.records import Record, bind, float_leaves
from tools.corpus.values import Vector, to_vector

# So many units in the last place must a step change a result before its change can be told from rounding.
_CLEAR = 64


def is_staircase(f: Callable[[Vector], Vector], x: Vector, direction: Vector) -> bool:
    """Whether a result that should change is an integer, or exactly the same after a small step."""
    slope, middle = derivative(f, x, direction).value, f(x)
    unit = np.spacing(np.maximum(np.abs(middle), np.finfo(float).tiny))
    steps = (1e-6, 1e-7, 1e-8)
    moved = [f(x + sign * step * direction) for step in steps for sign in (-1, 1)]
    noise = 1e-9 * np.max(np.abs(middle))
    changes = np.abs(slope) > np.maximum(1e-6 * np.abs(middle), noise)
    is_integer = np.logical_and.reduce([(each == np.rint(each)) & (unit < 1) for each in moved])
    still = [(a == middle) & (b == middle) for a, b in zip(moved[::2], moved[1::2], strict=True)]
    clear = [np.abs(slope) * step > _CLEAR * unit for step in steps]
    is_still = np.logical_or.reduce([a & b for a, b in zip(still, clear, strict=True)])
    return bool(np.any(changes & (is_integer | is_still)))


def is_conditioned(record: Record) -> bool:
    """Whether the results stay almost the same if all floats among the arguments move by a rounding error."""
    plain = _results(record)
    moved = _results(replace(record, init=_nudged(record.init), args=_nudged(record.args)))
    for before, after in zip(plain, moved, strict=True):
        size = np.max(np.abs(before))
        if np.max(np.abs(np.asarray(after) - before)) > 1e-6 * size:
            return False
    return True


def _results(record: Record) -> list[Any]:
    """The floating-point results of a plain call, with arguments made anew: it may write into them."""
    call, point = bind(record)
    chosen = float_leaves(call, point)
    return chosen(*bind(record)[1])


def _nudged(data: Any) -> Any:
    """Arguments as they are stored, with floats moved by one unit in the last place."""
    if isinstance(data, dict):
        return {key: _nudged(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_nudged(item) for item in data]
    return float(np.nextafter(data, np.inf)) if isinstance(data, float) else data


@contextmanager
def another_basis() -> Iterator[None]:
    """Complete U and V of singular value decompositions in other ways, which are as good."""
    svd, turns = np.linalg.svd, count(1)

    def turned(a: Any, full_matrices: bool = True, compute_uv: bool = True, **options: Any) -> Any:
        result = svd(a, full_matrices, compute_uv, **options)
        if not (full_matrices and compute_uv):
            return result
        u, s, vh = result
        k, angle = s.shape[-1], float(next(turns))
        vh = np.swapaxes(_turned(np.swapaxes(vh, -1, -2), k, angle), -1, -2)
        return type(result)(_turned(u, k, angle), s, vh)

    np.linalg.svd = turned
    try:
        yield
    finally:
        np.linalg.svd = svd


def _turned(columns: Any, kept: int, angle: float) -> Any:
    missing = columns.shape[-1] - kept
    if missing < 2:
        return columns
    turn = np.eye(missing)
    turn[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    return np.concatenate([columns[..., :kept], columns[..., kept:] @ turn], axis=-1)


def is_determined(record: Record) -> bool:
    """Whether the results are the same for another choice of the bases that are arbitrary."""
    plain = to_vector(_results(record))
    with another_basis():
        other = to_vector(_results(record))
    return not np.max(np.abs(plain - other)) > 1e-9 * np.max(np.abs(plain))


def is_sound(record: Record, f: Callable[[Vector], Vector], x: Vector, scale: Vector) -> bool:
    """All of these tests; `f` has the flat results as a function of the flat arguments."""
    directions = scale * np.random.default_rng(1).uniform(-1, 1, (2, x.size))
    if any(is_staircase(f, x, direction) for direction in directions):
        return False
    return is_conditioned(record) and is_determined(record)
