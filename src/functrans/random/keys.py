"""Keys, and random bits made from them."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.dispatch import Tracer
from functrans.ops.random_bits import random_bits
from functrans.ops.rejection import open_unit
from functrans.random.parameters import Shape, checked_key, integer_dtype, shape_argument

Array = Any  # an array, a scalar, or a traced value


def _as_word(value: Any, what: str) -> Any:
    """An integer, plain or traced, as one unsigned word of 64 bits."""
    if isinstance(value, Tracer) and value.dtype.kind in "iu" and value.shape == ():  # type: ignore[attr-defined]
        return value.astype(np.uint64)  # type: ignore[attr-defined]
    try:
        number = None if isinstance(value, (Tracer, bool)) else operator.index(value)
    except TypeError:
        number = None
    if number is None or not -(2**63) <= number < 2**64:
        raise errors.InputTypeError(
            f"{what} must be one integer of at most 64 bits, not {value!r}, at "
            f"{errors.user_location()}. For several, use functrans.vmap."
        )
    return np.uint64(number % 2**64)


def _as_words(bits: Any) -> Any:
    """Words of 64 bits as pairs of words of 32 bits, along a new last axis."""
    return np.stack([(bits >> 32).astype(np.uint32), bits.astype(np.uint32)], axis=-1)


def key(seed: Any) -> Array:
    """Make a key from an integer: an array of two 32-bit words, from which random numbers are drawn.

    Examples
    --------
    >>> from functrans import random
    >>> random.key(42)
    array([ 0, 42], dtype=uint32)
    """
    return _as_words(_as_word(seed, "a seed"))


def split(key: Array, num: Shape = 2) -> Array:
    """Split a key into new, independent keys; the old key should not be used again.

    `num` is the number of keys, or a shape; the last axis of the result holds the keys' words.

    Examples
    --------
    >>> from functrans import random
    >>> first, second = random.split(random.key(0))
    >>> random.split(random.key(0), 5).shape
    (5, 2)
    """
    key = checked_key(key)
    return _as_words(random_bits(key, np.uint64(0), shape=shape_argument(num), width=64))


def fold_in(key: Array, data: Any) -> Array:
    """Make a new key from a key and an integer, such as the number of a step or a lane.

    Examples
    --------
    >>> from functrans import random
    >>> stream = random.key(0)
    >>> [int(random.randint(random.fold_in(stream, step), (), 0, 100)) for step in range(3)]
    [96, 8, 65]
    """
    return _as_words(random_bits(checked_key(key), _as_word(data, "data"), shape=(), width=64))


def bits(key: Array, shape: Shape = (), dtype: Any = np.uint32) -> Array:
    """Random bits, as unsigned integers of 8, 16, 32 or 64 bits.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import random
    >>> random.bits(random.key(0), (3,), np.uint8).dtype
    dtype('uint8')
    """
    wanted = integer_dtype(dtype)
    if wanted.kind != "u":
        raise errors.OptionError(
            f"bits of dtype {wanted}, at {errors.user_location()}: bits must be unsigned integers "
            "(np.uint8, np.uint16, np.uint32, np.uint64). For signed ones use functrans.random.randint."
        )
    key = checked_key(key)
    return random_bits(key, np.uint64(0), shape=shape_argument(shape), width=8 * wanted.itemsize)


def draw_open_unit(key: Array, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Uniform numbers in the open interval from 0 to 1, as float64; smaller types need only 32 bits."""
    width = 64 if dtype.itemsize == 8 else 32
    return open_unit(random_bits(checked_key(key), np.uint64(0), shape=shape, width=width), width)
