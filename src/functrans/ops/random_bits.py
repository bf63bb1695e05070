"""Random bits from a key: the only source of randomness, a pure function of the key and a counter.

The generator is Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror and Shaw, "Parallel random
numbers: as easy as 1, 2, 3", 2011): a cipher that encrypts a counter with the key. Element i of the
result is the cipher of start + i, so it does not depend on how the others are computed.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from functrans.core.primitive import Primitive
from functrans.core.shapes import ArraySpec, checked_choice, checked_kinds, checked_shape
from functrans.ops.families import batch_spreading

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)
_BLOCK = 32768  # words processed at a time, so that the arrays of a block stay in the cache

Words = np.ndarray[Any, np.dtype[Any]]


def threefry(key0: Any, key1: Any, x0: Words, x1: Words) -> None:
    """Encrypt the pairs of 32-bit words (x0, x1) in place; the keys broadcast against them."""
    schedule = (key0, key1, _PARITY ^ key0 ^ key1)
    spare = np.empty_like(x1)
    x0 += schedule[0]
    x1 += schedule[1]
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x0 += x1
            np.left_shift(x1, rotation, out=spare)
            np.right_shift(x1, 32 - rotation, out=x1)
            x1 |= spare
            x1 ^= x0
        x0 += schedule[(group + 1) % 3]
        x1 += schedule[(group + 2) % 3]
        x1 += np.uint32(group + 1)


def words(keys: Words, start: Any, count: int, width: int = 64) -> Words:
    """`count` words of `width` bits for each of the keys, an array of shape (n, 2).

    `start` is the counter of the first word, one for all keys or one per key.
    """
    keys = np.asarray(keys)
    starts = np.broadcast_to(np.asarray(start, np.uint64), len(keys))
    out = np.empty((len(keys), count), f"u{width // 8}")
    rows = max(1, _BLOCK // max(count, 1))
    for top in range(0, len(keys), rows):
        key0, key1 = keys[top : top + rows, :1], keys[top : top + rows, 1:]
        first = starts[top : top + rows, None]
        for left in range(0, count, _BLOCK):
            right = min(left + _BLOCK, count)
            counter: Words = first + np.arange(left, right, dtype=np.uint64)
            x0, x1 = (counter >> 32).astype(np.uint32), counter.astype(np.uint32)
            threefry(key0, key1, x0, x1)
            block = x0.astype(np.uint64) << 32 | x1 if width == 64 else x0 ^ x1
            out[top : top + rows, left:right] = block
    return out


def subkeys(keys: Words, count: int) -> Words:
    """`count` new keys from each of the keys, as an array of shape (n * count, 2)."""
    new = words(keys, 0, count).reshape(-1)
    return np.stack([new >> 32, new & 0xFFFFFFFF], axis=-1).astype(np.uint32)


def _random_bits(key: Any, start: Any, shape: tuple[int, ...], width: int) -> Any:
    lanes = np.shape(start)
    keys, starts = np.asarray(key).reshape(-1, 2), np.reshape(start, -1)
    out = words(keys, starts, prod(shape), width).reshape(lanes + shape)
    return out if out.shape else out[()]


def checked_lanes(key: ArraySpec) -> tuple[int, ...]:
    """The leading axes of keys."""
    if key.dtype != np.uint32 or key.shape[-1:] != (2,):
        raise ValueError(f"a key is two numbers of 32 bits, not {key}")
    return key.shape[:-1]


def _random_bits_spec(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> ArraySpec:
    key, start = specs
    checked_kinds("iu", start)
    checked_choice(params["width"], (8, 16, 32, 64))
    if checked_lanes(key) != start.shape:
        raise ValueError("expected one start per key")
    return ArraySpec(start.shape + checked_shape(params["shape"]), f"u{params['width'] // 8}")


# random_bits(key, start, shape, width): unsigned integers of `width` bits in an array of `shape`.
# With keys of shape (*lanes, 2) and starts of shape `lanes`, each lane has its own.
random_bits = Primitive(
    "random_bits",
    _random_bits,
    batch=batch_spreading,
    shape=_random_bits_spec,
)
