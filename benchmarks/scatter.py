"""Adding values at indices: the gradient of x[indices], compared with NumPy's methods.

python benchmarks/scatter.py prints, for a few shapes, the best time of each way in microseconds and
that of functrans, with its ratio to the fastest.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from functrans.ops.indexing import ARRAY, scatter

SHAPES = [  # rows of the array, indices, the shape of a row
    (1_000, 100_000, ()),
    (100_000, 100_000, ()),
    (1_000, 1_000, (8,)),
    (1_000, 10_000, (64,)),
    (10_000, 1_000, (256,)),
    (100_000, 1_000, (64,)),
]


def by_add_at(indices: Any, values: Any, shape: tuple[int, ...]) -> Any:
    out = np.zeros(shape)
    np.add.at(out, indices, values)
    return out


def by_bincount(indices: Any, values: Any, shape: tuple[int, ...]) -> Any:
    width = values[0].size
    entries = indices[:, None] * width + np.arange(width)
    return np.bincount(entries.ravel(), values.ravel(), int(np.prod(shape))).reshape(shape)


def by_sorting(indices: Any, values: Any, shape: tuple[int, ...]) -> Any:
    order = np.argsort(indices, kind="stable")
    places = indices[order]
    starts = np.flatnonzero(np.r_[True, places[1:] != places[:-1]])
    out = np.zeros(shape)
    out[places[starts]] = np.add.reduceat(values[order], starts, axis=0)
    return out


def by_functrans(indices: Any, values: Any, shape: tuple[int, ...]) -> Any:
    template = (ARRAY, *[slice(None)] * (len(shape) - 1))
    return scatter(values, indices, shape=shape, template=template)


WAYS: dict[str, Callable[..., Any]] = {
    "add.at": by_add_at,
    "bincount": by_bincount,
    "sorting": by_sorting,
    "functrans": by_functrans,
}


def main() -> None:
    random = np.random.default_rng(0)
    for rows, count, tail in SHAPES:
        indices = random.integers(0, rows, count)
        values = random.standard_normal((count, *tail))
        best = dict.fromkeys(WAYS, float("inf"))
        for _ in range(20):  # contestants alternate
            for name, way in WAYS.items():
                start = time.perf_counter()
                way(indices, values, (rows, *tail))
                best[name] = min(best[name], time.perf_counter() - start)
        ratio = best["functrans"] / min(v for k, v in best.items() if k != "functrans")
        times = ", ".join(f"{name} {1e6 * t:.0f}" for name, t in best.items())
        print(f"{count} indices into ({rows}, {tail}): {times}; ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
