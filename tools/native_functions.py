"""How exact the vector functions of the native backend are: points, exact values and distances.

    python -m tools.native_functions

measures them, and writes the table of docs/native-functions.md.
"""

from __future__ import annotations

import re
import timeit
from pathlib import Path

import mpmath as mp
import numpy as np

from functrans.compiler.native import mathematics
from tests.support.native_runner import DTYPES, Compiled, compile_milliseconds

PAGE = Path(__file__).parents[1] / "docs/native-functions.md"
INTEGERS = {"d": np.int64, "f": np.int32}

# Where functions cancel, switch between formulas, overflow or underflow.
CENTERS = [
    0.5,
    0.75,
    1,
    2,
    4,
    20,
    27,
    2**0.5,
    0.5**0.5,
    np.pi / 2,
    np.pi,
    np.log(2) / 2,
    2.0**40,
    2.0**16,
]
CENTERS += [709.78, 710.47, 708.4, 745.13, 1023.9, 1074, 308.25, 88.72, 89.41, 87.33, 103.97, 127.9]


def points(kind, count, rng):
    """Numbers of all exponents, of ordinary size, near the centers and near multiples of π/2."""
    dtype = DTYPES[kind]
    limits = np.iinfo(INTEGERS[kind])
    bits = rng.integers(limits.min, limits.max, count, INTEGERS[kind], endpoint=True)
    ordinary = rng.standard_normal(count) * 10.0 ** rng.uniform(-4, 3, count)
    signs = rng.choice([-1.0, 1.0], count)
    close = signs * rng.choice(CENTERS, count)
    close = close * (1 + rng.standard_normal(count) * 10.0 ** rng.uniform(-17, -0.5, count))
    turns = signs * rng.integers(0, 10 ** rng.integers(1, 14, count)) * (np.pi / 2)
    turns[::2] *= 1 + rng.standard_normal(turns[::2].size) * 1e-12
    with np.errstate(all="ignore"):
        return np.concatenate(
            [bits.view(dtype), *(x.astype(dtype) for x in (ordinary, close, turns))]
        )


def pairs(kind, count, rng):
    """Pairs of points, and pairs of equal or almost equal size."""
    x = points(kind, count, rng)
    y = rng.permutation(x)
    with np.errstate(invalid="ignore"):
        nearby = np.nextafter(x, rng.choice([-np.inf, np.inf], x.size).astype(x.dtype))
    ordinary = np.abs(x[count : 2 * count])
    return (
        np.concatenate([x, x, x, ordinary, ordinary]),
        np.concatenate([y, nearby, -x, rng.permutation(ordinary), -rng.permutation(ordinary)]),
    )


def as_longdouble(number):
    """A number of mpmath with the 64 bits of a long double."""
    if not mp.isfinite(number):
        return np.longdouble(float(number))
    fraction, exponent = mp.frexp(number)
    high = float(fraction)
    total = np.longdouble(high) + np.longdouble(float(fraction - mp.mpf(high)))
    return np.ldexp(total, int(exponent))


def by_mpmath(function):
    def values(*arrays):
        rows = zip(*(array.tolist() for array in arrays), strict=True)
        with mp.workdps(50):
            return np.array([as_longdouble(function(*map(mp.mpf, row))) for row in rows])

    return values


def expit(x):
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, np.longdouble(1)) / (1 + e)


def softplus(x):
    x = x.astype(np.longdouble)
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def erfc(x):
    # mpmath fails at 1e300.
    return mp.mpf(0 if x > 0 else 2) if abs(x) > 100 else mp.erfc(x)


# Exact values where NumPy's function of long doubles is missing.
EXACT = {
    "expit": lambda x: expit(x.astype(np.longdouble)),
    "softplus": softplus,
    "log_expit": lambda x: -softplus(-x),
    "erf": lambda x: np.copysign(by_mpmath(mp.erf)(x), x),  # mpmath has no -0
    "erfc": by_mpmath(erfc),
}
SLOW = {"erf", "erfc"}


def exact(name, *arrays):
    with np.errstate(all="ignore"):
        if name in EXACT:
            return EXACT[name](*arrays)
        return getattr(np, name)(*(array.astype(np.longdouble) for array in arrays))


def ulps(result, exact):
    """The distances from the exact values, in units in the last place of the result's dtype."""
    information = np.finfo(result.dtype)
    with np.errstate(all="ignore"):
        nearest = exact.astype(result.dtype)
        size = np.maximum(np.abs(exact), np.longdouble(information.tiny))
        spacing = np.exp2(np.floor(np.log2(size)) - information.nmant)
        distance = np.abs(result.astype(np.longdouble) - exact) / spacing
    same = (result == nearest) | (np.isnan(result) & np.isnan(nearest))
    finite = np.isfinite(result) & np.isfinite(nearest)
    return np.where(finite, distance, np.where(same, 0, np.inf)).astype(float)


def sample(name, kind, count, seed=0):
    """Arguments for a function; fewer of those whose exact values take long."""
    rng = np.random.default_rng(seed)
    if name in SLOW:
        count //= 20
    if mathematics.arity(name) == 2:
        return pairs(kind, count, rng)
    return (points(kind, count, rng),)


def worst(name, kind, count, seed=0, width=None):
    """The largest distance in ulps, and where it is."""
    arrays = sample(name, kind, count, seed)
    distances = ulps(Compiled(name, kind, width)(*arrays), exact(name, *arrays))
    place = int(np.argmax(distances))
    return float(distances[place]), [array[place] for array in arrays]


def numpy_nanoseconds(name, arrays):
    function = getattr(np, name)
    out = np.empty_like(arrays[0])
    with np.errstate(all="ignore"):
        times = timeit.repeat(lambda: function(*arrays, out), repeat=50, number=1)
    return min(times) / out.size * 1e9


def times(name):
    """The cells of a row that are times, as a dictionary."""
    rng = np.random.default_rng(1)
    cells = {"compile": compile_milliseconds(name, "d", 4)}
    for kind, dtype in DTYPES.items():
        x = rng.uniform(0.1, 0.9, 4096).astype(dtype)
        arrays = [x + dtype(name == "arccosh")] * mathematics.arity(name)
        cells[kind] = Compiled(name, kind).nanoseconds(*arrays)
        if hasattr(np, name):
            cells[kind + " of NumPy"] = numpy_nanoseconds(name, arrays)
    return cells


def row(name, sweeps):
    # The least of several sweeps: other programs disturb them.
    least = {cell: f"{min(sweep[cell] for sweep in sweeps):.1f}" for cell in sweeps[0]}
    cells = [f"`{name}`"]
    for kind in DTYPES:
        distance, _ = worst(name, kind, 1_000_000)
        cells += [f"{distance:.2f}", least[kind], least.get(kind + " of NumPy", "-")]
    return "| " + " | ".join([*cells, least["compile"]]) + " |"


def main():
    names = sorted(mathematics.names())
    sweeps = [{name: times(name) for name in names} for _ in range(8)]
    rows = "".join(row(name, [sweep[name] for sweep in sweeps]) + "\n" for name in names)
    text = PAGE.read_text(encoding="utf-8")
    table = re.compile(r"(\| --- .*?\n)(?:\|.*\n)*")
    PAGE.write_text(table.sub(lambda match: match[1] + rows, text), encoding="utf-8")


if __name__ == "__main__":
    main()
