"""How arrays lie in buffers: shapes, strides and offsets, counted in entries."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

from functrans.compiler.native.kinds import Kind


class Buffer:
    """A piece of memory: of an argument, a constant, a result, or of the workspace.

    The role "identity" is no memory at all: an entry is `scale` where its distance from the start is
    0, and else 0. With strides of 1 and -1 that is a multiple of the identity matrix.
    """

    __slots__ = ("index", "kind", "role", "scale", "size")

    def __init__(self, role: str, index: int, kind: Kind, size: int) -> None:
        self.role = role
        self.index = index  # among those of its role
        self.kind = kind
        self.size = size
        self.scale = 1.0


class View(NamedTuple):
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


def whole(buffer: Buffer, shape: tuple[int, ...]) -> View:
    """A buffer as an array in C order."""
    return View(buffer, shape, c_strides(shape))


def broadcast(view: View, shape: tuple[int, ...]) -> View:
    missing = len(shape) - len(view.shape)
    strides = [0] * missing
    for have, want, stride in zip(view.shape, shape[missing:], view.strides, strict=True):
        strides.append(stride if have == want else 0)
    return View(view.buffer, shape, tuple(strides), view.offset)


def transposed(view: View, axes: tuple[int, ...]) -> View:
    shape = tuple(view.shape[axis] for axis in axes)
    return View(view.buffer, shape, tuple(view.strides[axis] for axis in axes), view.offset)


def indexed(view: View, template: tuple[Any, ...]) -> View | None:
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
    return View(view.buffer, tuple(shape), tuple(strides), offset)


def reshaped(view: View, shape: tuple[int, ...]) -> View | None:
    """The same entries in another shape, if they lie right for it."""
    old = [(n, s) for n, s in zip(view.shape, view.strides, strict=True) if n != 1]
    strides = [0] * len(shape)
    place, k = 0, 0
    while place < len(shape):
        if shape[place] == 1:
            place += 1
            continue
        # One group of old axes that lie behind each other, against one group of new ones.
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
    return View(view.buffer, shape, tuple(strides), view.offset)
