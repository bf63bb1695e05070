"""The layout of the workspace: buffers reuse the memory of others that are no longer needed."""

from __future__ import annotations

from typing import Any

from functrans.compiler.native.plan import Kernel, Plan
from functrans.compiler.native.products import Product
from functrans.compiler.native.strides import Buffer, BufferView

_ALIGNMENT = 64


def views_of(step: Any) -> list[BufferView]:
    """All views that a step reads or writes."""
    if isinstance(step, Kernel):
        written = [item.view for item in step.items if item.view is not None]
        return [*step.loads.values(), *step.cleared, *written]
    if isinstance(step, Product):
        return list(step)
    return list(step.views)


def place_buffers(plan: Plan) -> tuple[dict[Buffer, int], int]:
    """The offset of every buffer of the workspace, in bytes, and the size of the workspace."""
    first: dict[Buffer, int] = {}
    last: dict[Buffer, int] = {}
    for number, step in enumerate(plan.steps):
        for view in views_of(step):
            if view.buffer.role == "work":
                first.setdefault(view.buffer, number)
                last[view.buffer] = number
    ends: dict[int, list[Buffer]] = {}
    for buffer, number in last.items():
        ends.setdefault(number, []).append(buffer)
    begins: dict[int, list[Buffer]] = {}
    for buffer, number in first.items():
        begins.setdefault(number, []).append(buffer)
    offsets: dict[Buffer, int] = {}
    holes: list[tuple[int, int]] = []  # (offset, size) of free memory below `top`
    top = 0
    for number in range(len(plan.steps)):
        for buffer in begins.get(number, ()):
            size = _rounded(buffer)
            for k, (offset, room) in enumerate(holes):
                if room >= size:
                    offsets[buffer] = offset
                    holes[k : k + 1] = [(offset + size, room - size)] if room > size else []
                    break
            else:
                offsets[buffer] = top
                top += size
        for buffer in ends.get(number, ()):
            holes = _merged([*holes, (offsets[buffer], _rounded(buffer))])
    return offsets, top


def _rounded(buffer: Buffer) -> int:
    return -(-buffer.size * buffer.kind.size // _ALIGNMENT) * _ALIGNMENT


def _merged(holes: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for offset, size in sorted(holes):
        if merged and sum(merged[-1]) == offset:
            merged[-1] = (merged[-1][0], merged[-1][1] + size)
        else:
            merged.append((offset, size))
    return merged
