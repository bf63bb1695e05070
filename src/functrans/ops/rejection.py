"""Rejection samplers: the gamma and the Poisson distribution.

Every element has its own key, made from the call's key and the element's index, and counts its attempts, so
that its value does not depend on its neighbors. `lanes` are leading axes of the key.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core.primitive import Primitive, Rule
from functrans.core.shapes import ArraySpec, checked_kinds
from functrans.ops.families import batch_spreading
from functrans.ops.gamma import gamma_slope, log_factorial
from functrans.ops.normal import normal_quantile
from functrans.ops.random_bits import checked_lanes, subkeys, words

_APART = np.uint64(1 << 63)  # a number that counting attempts never reaches


def open_unit(bits: Any, width: int) -> Any:
    """Numbers in the open interval from 0 to 1, in float64, from words of 32 or 64 bits."""
    return (bits + 0.5) * 2.0**-32 if width == 32 else ((bits >> 12) + 0.5) * 2.0**-52


def _entry_keys(key: Any, shape: tuple[int, ...]) -> Any:
    keys = np.asarray(key)
    count = int(np.prod(shape[keys.ndim - 1 :], dtype=int))
    return subkeys(keys.reshape(-1, 2), count)


def _sample_spec(dtype: Any) -> Rule:
    def shape(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> ArraySpec:
        key, parameter = specs
        checked_kinds("biuf", parameter)
        lanes = checked_lanes(key)
        if parameter.shape[: len(lanes)] != lanes:
            raise ValueError("expected one key per lane")
        return ArraySpec(parameter.shape, dtype)

    return shape


def _until_accepted(keys: Any, pending: Any, attempt: Callable[[Any, Any, Any], Any]) -> Any:
    """Fill in the elements numbered `pending`, with attempt(entries, p, q) -> (accepted, values)."""
    out = np.zeros(len(keys))
    number = 0
    while len(pending):
        pairs = open_unit(words(keys[pending], number, 2), 64)
        accepted, values = attempt(pending, pairs[:, 0], pairs[:, 1])
        out[pending[accepted]] = values[accepted]
        pending = pending[~accepted]
        number += 2
    return out


# The gamma distribution, in logarithms, because a sample underflows if the shape parameter is
# small. Marsaglia and Tsang, "A simple method for generating gamma variables", 2000: for a >= 1, d
# v with d = a - 1/3, v = (1 + z / sqrt(9 d))^3 and z normal, is accepted with a probability over
# 0.95. For a < 1 a sample of a + 1 is multiplied by U^(1/a).


def _log_gamma_sample(key: Any, a: Any) -> Any:
    shape = np.shape(a)
    keys = _entry_keys(key, shape)
    a = np.asarray(a, np.float64).reshape(-1)
    small = a < 1
    d = np.where(small, a + 1, a) - 1 / 3
    c = 1 / (3 * np.sqrt(np.maximum(d, 0.1)))

    def attempt(entries: Any, p: Any, q: Any) -> Any:
        z = normal_quantile.impl(p)
        root = 1 + c[entries] * z
        positive = root > 0
        log_v = 3 * np.log(np.where(positive, root, 1))
        scale = d[entries]
        bound = 0.5 * z * z + scale * (1 - root**3 + log_v)
        return positive & (np.log(q) < bound), np.log(scale) + log_v

    fine = (a >= 0) & (a < np.inf)
    out = _until_accepted(keys, np.flatnonzero(fine), attempt)
    boosted = np.flatnonzero(small & fine)
    u = open_unit(words(keys[boosted], _APART, 1)[:, 0], 64)
    with np.errstate(divide="ignore", over="ignore"):
        out[boosted] += np.log(u) / a[boosted]
    out[~fine] = np.where(a[~fine] == np.inf, np.inf, np.nan)
    return out.reshape(shape)[()]


log_gamma_sample = Primitive(
    "log_gamma_sample",
    _log_gamma_sample,
    jvp=lambda out, args, tangents, params: gamma_slope(args[1], out) * tangents[1],
    vjp=lambda mask, out, args, params: (
        lambda g, saved: g * gamma_slope(*saved),
        (args[1], out),
    ),
    batch=batch_spreading,
    shape=_sample_spec(np.float64),
)


# The Poisson distribution: by inversion for small means; for others by Hörmann's transformed
# rejection ("The transformed rejection method for generating Poisson random variables", 1993).

_LARGE_MEAN = 10.0


def _by_inversion(u: Any, mean: Any) -> Any:
    """The first k whose cumulative probability is above u."""
    term = np.exp(-mean)
    remaining = u - term
    k = np.zeros(len(mean))
    while True:
        above = (remaining >= 0) & (k < 1000)
        if not above.any():
            return k
        k = k + above
        term = np.where(above, term * mean / np.maximum(k, 1), term)
        remaining = np.where(above, remaining - term, remaining)


def _poisson_sample(key: Any, mean: Any) -> Any:
    shape = np.shape(mean)
    keys = _entry_keys(key, shape)
    mean = np.asarray(mean, np.float64).reshape(-1)
    large = mean >= _LARGE_MEAN
    safe = np.where(large, mean, _LARGE_MEAN)
    b = 0.931 + 2.53 * np.sqrt(safe)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    squeeze = 0.9277 - 3.6224 / (b - 2)

    def attempt(entries: Any, p: Any, q: Any) -> Any:
        u = p - 0.5
        gap = 0.5 - np.abs(u)
        a_, b_, mean_ = a[entries], b[entries], mean[entries]
        k = np.floor((2 * a_ / gap + b_) * u + mean_ + 0.43)
        log_ratio = np.log(q * inverse_alpha[entries] / (a_ / gap**2 + b_))
        log_density = k * np.log(mean_) - mean_ - log_factorial(np.maximum(k, 0))
        quick = (gap >= 0.07) & (q <= squeeze[entries])
        possible = (k >= 0) & ((gap >= 0.013) | (q <= gap))
        return quick | (possible & (log_ratio <= log_density)), k

    out = _until_accepted(keys, np.flatnonzero(large & (mean < np.inf)), attempt)
    few = np.flatnonzero((mean >= 0) & ~large)
    out[few] = _by_inversion(open_unit(words(keys[few], 0, 1)[:, 0], 64), mean[few])
    out[~((mean >= 0) & (mean < np.inf))] = -1  # invalid parameters
    return out.reshape(shape).astype(np.int64)[()]


poisson_sample = Primitive(
    "poisson_sample",
    _poisson_sample,
    batch=batch_spreading,
    shape=_sample_spec(np.int64),
)
