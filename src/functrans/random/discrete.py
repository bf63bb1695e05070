"""Integers, events, choices and permutations. They have no derivative."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.dispatch import Tracer
from functrans.core.shapes import shape_of
from functrans.ops.random_bits import random_bits
from functrans.ops.rejection import poisson_sample
from functrans.random.continuous import gumbel, uniform
from functrans.random.keys import Array, draw_open_unit
from functrans.random.keys import bits as draw_bits
from functrans.random.parameters import (
    Shape,
    checked_key,
    common_shape,
    finished,
    integer_dtype,
    real_parameter,
    require,
    shape_argument,
)
from functrans.surface.creation import asarray
from functrans.surface.shaping import take, take_along_axis
from functrans.surface.table import axis_index

_LOW = 0xFFFFFFFF
_TOP = np.uint64(2**64 - 1)


def bernoulli(key: Array, p: Any = 0.5, shape: Shape | None = None) -> Array:
    """True with probability p.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import random
    >>> np.mean(random.bernoulli(random.key(0), 0.3, (10000,)))
    np.float64(0.3...)
    """
    probability = real_parameter(p, "p")
    require("p", probability, lambda p: (p >= 0) & (p <= 1), "probabilities between 0 and 1")
    return uniform(key, common_shape(shape, probability)) < probability


def rademacher(key: Array, shape: Shape = (), dtype: Any = np.int64) -> Array:
    """1 or -1, with equal probability.

    Examples
    --------
    >>> from functrans import random
    >>> int(abs(random.rademacher(random.key(0))))
    1
    """
    signs = (draw_bits(key, shape) >> 31).astype(np.int8) * 2 - 1
    return finished(signs, np.dtype(dtype))


def _product(x: Array, y: Array) -> tuple[Array, Array]:
    """The upper and lower word of a product of 64-bit words, without intermediate overflow."""
    x1, x0, y1, y0 = x >> 32, x & _LOW, y >> 32, y & _LOW
    bottom = x0 * y0
    middle = x1 * y0 + (bottom >> 32)
    other = x0 * y1 + (middle & _LOW)
    return x1 * y1 + (middle >> 32) + (other >> 32), other << 32 | (bottom & _LOW)


def randint(key: Array, shape: Shape, minval: Any, maxval: Any, dtype: Any = np.int64) -> Array:
    """Integers with minval <= n < maxval, all equally likely.

    Examples
    --------
    >>> from functrans import random
    >>> random.randint(random.key(0), (5,), 0, 10)
    array([4, 2, 9, 5, 5])
    """
    wanted = integer_dtype(dtype)
    low, high = _integer(minval), _integer(maxval)
    lengths = common_shape(shape, low, high)
    limits = np.iinfo(wanted)
    require("minval", low, lambda n: (n >= limits.min) & (n <= limits.max), f"a number of {wanted}")
    require("maxval", high, lambda n: n <= limits.max + 1, f"at most {limits.max + 1}")
    require("maxval - minval", high > low, lambda positive: positive, "more than 0")
    # In 64-bit two's complement, differences are correct for all integer types.
    low = low.astype(np.uint64)
    span = high.astype(np.uint64) - low
    words = random_bits(checked_key(key), np.uint64(0), shape=(2, *lengths), width=64)
    # floor(span * u), where u is a fraction of 128 bits: its bias is below 2^-64.
    upper, lower = _product(words[0], span)
    carry = _product(words[1], span)[0] > _TOP - lower
    return finished(np.add(low, upper + carry.astype(np.uint64)), wanted)


def _integer(value: Any) -> Array:
    """A bound of integers, plain or traced."""
    array = asarray(value)
    if array.dtype.kind in "iu":
        return array
    raise errors.InputTypeError(
        f"the bounds must be integers of at most 64 bits, but {value!r} is "
        f"{array.dtype}, at {errors.user_location()}. Round it first, or use "
        "functrans.random.uniform."
    )


def categorical(key: Array, logits: Any, axis: int = -1, shape: Shape | None = None) -> Array:
    """Indices along `axis`, with probabilities proportional to exp(logits).

    `shape` is that of the result, and must end with the shape of logits without the axis.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import random
    >>> x = random.categorical(random.key(0), np.log([0.1, 0.2, 0.7]), shape=(10000,))
    >>> np.round(np.bincount(x) / 10000, 1)
    array([0.1, 0.2, 0.7])
    """
    scores = real_parameter(logits, "logits")
    if not shape_of(scores) or not shape_of(scores)[axis_index(axis, len(shape_of(scores)))]:
        raise errors.OptionError(
            f"logits of shape {shape_of(scores)}, at {errors.user_location()}: there must be at "
            "least one category to choose from."
        )
    scores = np.moveaxis(scores, axis, -1)
    *lead, categories = shape_of(scores)
    lengths = common_shape(shape, np.empty(lead))
    # The largest of logits + Gumbel noise is category i with probability softmax(logits)[i].
    return np.argmax(scores + gumbel(key, (*lengths, categories)), axis=-1)


def permutation(key: Array, x: Any, axis: int = 0, independent: bool = False) -> Array:
    """The numbers 0 to x - 1, or an array along an axis, in random order.

    With `independent`, each vector along the axis is permuted independently.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import random
    >>> np.sort(random.permutation(random.key(0), 5))
    array([0, 1, 2, 3, 4])
    """
    if not isinstance(x, Tracer) and np.ndim(x) == 0:
        return _order(key, (_count(x),), 0)
    array = asarray(x)
    lengths = shape_of(array)
    if not lengths:
        raise errors.InputTypeError(
            f"permutation of a traced number, at {errors.user_location()}: the length of the "
            "result must be a plain integer."
        )
    axis = axis_index(axis, len(lengths))
    if independent:
        return take_along_axis(array, _order(key, lengths, axis), axis)
    return take(array, _order(key, lengths[axis : axis + 1], 0), axis)


def _count(x: Any) -> int:
    try:
        return operator.index(x)
    except TypeError:
        raise errors.InputTypeError(
            f"{x!r} is neither an integer nor an array, at {errors.user_location()}."
        ) from None


def _order(key: Array, shape: tuple[int, ...], axis: int) -> Array:
    """Permutations along an axis: the sort order of random words, which are almost never equal."""
    return np.argsort(draw_bits(key, shape, np.uint64), axis=axis, kind="stable")


def choice(
    key: Array,
    a: Any,
    shape: Shape = (),
    replace: bool = True,
    p: Any = None,
    axis: int = 0,
) -> Array:
    """Entries of `a` along an axis, or of the numbers 0 to a - 1; with probabilities p, if given.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import random
    >>> random.choice(random.key(0), np.array([2.0, 3.0, 5.0]), (4,), p=np.array([0.0, 1.0, 0.0]))
    array([3., 3., 3., 3.])
    """
    lengths = shape_argument(shape)
    numbers = not isinstance(a, Tracer) and np.ndim(a) == 0
    array = None if numbers else asarray(a)
    if array is not None and not shape_of(array):
        raise errors.InputTypeError(
            f"choice from a traced number, at {errors.user_location()}: pass a plain integer, or "
            "use functrans.random.randint."
        )
    axis = 0 if array is None else axis_index(axis, len(shape_of(array)))
    total = _count(a) if array is None else shape_of(array)[axis]
    chosen = _chosen(key, total, lengths, replace, p)
    return finished(chosen, np.intp) if array is None else take(array, chosen, axis)


def _chosen(key: Array, total: int, shape: tuple[int, ...], replace: bool, p: Any) -> Array:
    """Indices below `total`."""
    wanted = int(np.prod(shape, dtype=int))
    if wanted > total and (not replace or total == 0):
        raise errors.OptionError(
            f"{wanted} entries cannot be chosen from {total} without replacement, at "
            f"{errors.user_location()}. Choose fewer, or pass replace=True."
        )
    if p is None:
        if replace:
            return randint(key, shape, 0, max(total, 1))
        return permutation(key, total)[:wanted].reshape(shape)
    probability = real_parameter(p, "p")
    if shape_of(probability) != (total,):
        raise errors.OptionError(
            f"p has shape {shape_of(probability)}, at {errors.user_location()}: it must have one "
            f"probability for each of the {total} entries to choose from."
        )
    require("p", probability, lambda p: p >= 0, "probabilities, none of them negative")
    tolerance = np.sqrt(np.finfo(probability.dtype).eps)
    require("p", np.sum(probability), lambda s: abs(s - 1) < tolerance, "probabilities with sum 1")
    if replace:
        cumulative = np.cumsum(probability)
        return _count_below(cumulative, uniform(key, shape) * cumulative[-1])
    require(
        "p",
        np.sum(probability > 0),
        lambda n: n >= wanted,
        f"more than 0 for at least the {wanted} entries to be chosen without replacement",
    )
    # The order of log p + Gumbel noise is the order in which they would be drawn one by one.
    with np.errstate(divide="ignore"):
        scores = np.log(probability) + gumbel(key, (total,))
    return np.argsort(-scores, kind="stable")[:wanted].reshape(shape)


def _count_below(cumulative: Array, u: Array) -> Array:
    """The number of entries of a sorted vector that are not above u."""
    if isinstance(cumulative, Tracer) or isinstance(u, Tracer):
        return np.sum(cumulative <= u[..., None], axis=-1)
    return np.searchsorted(cumulative, u, side="right")


def poisson(key: Array, lam: Any, shape: Shape | None = None, dtype: Any = np.int64) -> Array:
    """Poisson numbers with mean lam.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import random
    >>> np.round(np.mean(random.poisson(random.key(0), 4.0, (10000,))), 1)
    np.float64(4.0)
    """
    wanted = integer_dtype(dtype)
    mean = real_parameter(lam, "lam")
    require("lam", mean, lambda lam: (lam >= 0) & (lam < 2.0**62), "between 0 and 2**62")
    lengths = common_shape(shape, mean)
    return finished(poisson_sample(checked_key(key), np.broadcast_to(mean, lengths)), wanted)


def geometric(key: Array, p: Any, shape: Shape | None = None, dtype: Any = np.int64) -> Array:
    """The number of trials, each with probability p, up to and including the first success.

    Examples
    --------
    >>> from functrans import random
    >>> int(random.geometric(random.key(0), 1.0))
    1
    """
    wanted = integer_dtype(dtype)
    probability = real_parameter(p, "p")
    require("p", probability, lambda p: (p > 0) & (p <= 1), "probabilities above 0, at most 1")
    unit = draw_open_unit(key, common_shape(shape, probability), np.dtype(np.float64))
    with np.errstate(divide="ignore"):
        trials = np.floor(np.log1p(-unit) / np.log1p(-probability)) + 1
    return finished(trials, wanted)
