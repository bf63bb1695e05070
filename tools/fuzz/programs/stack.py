"""Stack: a program and layers of transforms over it, run in namespaces that define its names."""

from __future__ import annotations

from typing import Any

import numpy as np

from tools.fuzz.nests import leaves, mapped, refilled
from tools.fuzz.numeric import Numeric, axes_of
from tools.fuzz.programs.layers import Layer
from tools.fuzz.programs.program import COMPLEX_STEPS, Program

Space = dict[str, Any]


def widened(nest: Any) -> Any:
    """Convert single precision to double."""

    def wide(leaf: Any) -> Any:
        if isinstance(leaf, (np.ndarray, np.generic)) and leaf.dtype == np.float32:
            return leaf.astype(np.float64)
        return leaf

    return mapped(wide, nest)


class Stack:
    """Layers f1, f2, ... over a program f0.

    `points[k]` is a list of arguments of f{k}; layers of `vmap` combine several of them. Everything is judged
    in double precision, in the namespace `wide`; `own` has the precision of the program. `result` is the
    result of the top layer, in that precision.
    """

    def __init__(self, program: Program, library: Any) -> None:
        self.program = program
        self.library = library
        self.layers: list[Layer] = []
        self.order = 0
        self.points = [[program.arguments(k) for k in range(len(program.points))]]
        self.wide = self.space(np, library)
        self.plain = self.space(np, self.numeric())
        self.own = self.space(np, library, wide=False) if program.narrow else self.wide
        self.result = self.space(np, self.numeric(), wide=False)["f0"](*self.points[0][0])

    @property
    def args(self) -> tuple[Any, ...]:
        """Arguments of the top layer, in double precision."""
        args: tuple[Any, ...] = widened(self.points[-1][0])
        return args

    def numeric(self, step: float = 4e-3) -> Numeric:
        return Numeric(COMPLEX_STEPS not in self.program.lacks, step)

    def space(self, numpy: Any, library: Any, wide: bool = True, convert: Any = None) -> Space:
        """A namespace with all functions of the stack, for this `np` and `ft`."""
        space = {"np": numpy, "ft": library, "NARROW": np.float64 if wide else np.float32}
        space |= self._constants(self.program.constants, wide, convert)
        exec(self.program.code, space)
        for layer in self.layers:
            space |= self._constants(layer.constants, wide, convert)
            exec(layer.text, space)
        return space

    def _constants(self, constants: dict[str, Any], wide: bool, convert: Any) -> dict[str, Any]:
        values: dict[str, Any] = widened(constants) if wide else constants
        return values if convert is None else dict(mapped(convert, values))

    def push(self, layer: Layer) -> None:
        """Add a layer on top. The judge computes its result."""
        self.layers.append(layer)
        code = compile(layer.text, f"<layer {len(self.layers)}>", "exec")
        for space in [self.wide, self.plain, *([self.own] if self.program.narrow else [])]:
            space |= self._constants(layer.constants, space is not self.own, None)
            exec(code, space)
        points = self.points[-1]
        if layer.lanes is not None:
            count = layer.lanes.count
            groups = [points[k : k + count] for k in range(0, len(points) - count + 1, count)]
            points = [_together(group, layer.lanes.in_axes) for group in groups]
        self.points.append(points)
        if layer.derivative is not None:
            self.order += layer.derivative.order

    @property
    def kinds(self) -> list[str]:
        return [layer.kind for layer in self.layers]


def _together(group: list[tuple[Any, ...]], in_axes: tuple[Any, ...]) -> tuple[Any, ...]:
    """Combine the arguments of several lanes; unmapped ones are those of the first lane."""
    together = []
    for k, axes in enumerate(in_axes):
        lanes = [leaves(args[k]) for args in group]
        columns = zip(zip(*lanes, strict=True), axes_of(axes, group[0][k]), strict=True)
        values = [c[0] if axis is None else np.stack(c, axis=axis) for c, axis in columns]
        together.append(refilled(group[0][k], values))
    return tuple(together)
