"""How arrays are laid out in buffers: shapes, strides and offsets, counted in elements."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

from functrans.compiler.native.kinds import NumberKind


class Buffer:
    """A piece of memory: of an argument, a constant, a result, or the workspace.

    The role "identity" takes no memory: an element is `scale` if its offset is 0, and otherwise 0. With
    strides 1 and -1 this is a multiple of the identity matrix.
    """

    __slots__ = ("index", "kind", "role", "scale", "size")

    def __init__(self, role: str, index: int, kind: NumberKind, size: int) -> None:
        self.role = role
        self.index = index  # among the buffers of its role
        self.kind = kind
        self.size = size
        self.scale = 1.0


class BufferView(NamedTuple):
    """An array in a buffer."""

    buffer: Buffer
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def size(self) -> int:
        return prod(self.shape)


def c_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))


def whole(buffer: Buffer, shape: tuple[int, ...]) -> BufferView:
    """A buffer as an array in C order."""
    return BufferView(buffer, shape, c_strides(shape))


def broadcast(view: BufferView, shape: tuple[int, ...]) -> BufferView:
    missing = len(shape) - len(view.shape)
    strides = [0] * missing
    for have, want, stride in zip(view.shape, shape[missing:], view.strides, strict=True):
        strides.append(stride if have == want else 0)
    return BufferView(view.buffer, shape, tuple(strides), view.offset)


def transposed(view: BufferView, axes: tuple[int, ...]) -> BufferView:
    shape = tuple(view.shape[axis] for axis in axes)
    return BufferView(view.buffer, shape, tuple(view.strides[axis] for axis in axes), view.offset)


def indexed(view: BufferView, template: tuple[Any, ...]) -> BufferView | None:
    """view[template] of integers, slices, None and Ellipsis."""
    used = sum(entry is not None and entry is not Ellipsis for entry in template)
    entries: list[Any] = []
    for entry in template:
        if entry is Ellipsis:
            entries += [slice(None)] * (len(view.shape) - used)
        else:
            entries.append(entry)
    if Ellipsis not in template:
        entries += [slice(None)] * (len(view.shape) - used)
    shape, strides, offset, axis = [], [], view.offset, 0
    for entry in entries:
        if entry is None:
            shape.append(1)
            strides.append(0)
            continue
        length, stride = view.shape[axis], view.strides[axis]
        axis += 1
        if isinstance(entry, slice):
            start, stop, step = entry.indices(length)
            shape.append(len(range(start, stop, step)))
            strides.append(stride * step)
            offset += start * stride
        else:
            place = int(entry)
            if not -length <= place < length:
                return None  # NumPy raises the error
            offset += (place % length) * stride
    return BufferView(view.buffer, tuple(shape), tuple(strides), offset)


def reshaped(view: BufferView, shape: tuple[int, ...]) -> BufferView | None:
    """The same entries in another shape, if they lie right for it."""
    old = [(n, s) for n, s in zip(view.shape, view.strides, strict=True) if n != 1]
    strides = [0] * len(shape)
    place, k = 0, 0
    while place < len(shape):
        if shape[place] == 1:
            place += 1
            continue
        # Match one group of contiguous old axes with one group of new ones.
        old_size, new_size = old[k][0], shape[place]
        end = place + 1
        while old_size != new_size:
            if old_size < new_size:
                if old[k][1] != old[k + 1][1] * old[k + 1][0]:
                    return None
                k += 1
                old_size *= old[k][0]
            else:
                new_size *= shape[end]
                end += 1
        step = old[k][1]
        for axis in reversed(range(place, end)):
            strides[axis] = step
            step *= shape[axis]
        k += 1
        place = end
    return BufferView(view.buffer, shape, tuple(strides), view.offset)
