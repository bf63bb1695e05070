"""Stacks of transforms over a program, as source code: layers define f1 from f0, f2 from f1, and so on.

In addition to its text, a layer knows which function it differentiates, so that a judge can compare.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tools.fuzz.nests import is_float, leaves, mapped, paths, refilled
from tools.fuzz.programs.choosing import Chooser
from tools.fuzz.programs.program import STAGING, Program

if TYPE_CHECKING:
    from tools.fuzz.programs.stack import Stack

# The largest number of entries of a Jacobian.
_LARGEST = 150


@dataclass(frozen=True)
class Derivative:
    """The function that a layer differentiates, and how.

    of:         an expression for the function, of all arguments
    positions:  the arguments that it is differentiated with respect to
    tangents:   the name of a direction, a tuple with one nest for each of them
    form:       the form of the derivative in the result: a "gradient", a "jacobian", or already "pushed"
                along the direction
    with_value: whether the result is (value, derivative)
    order:      the order of the derivative, including those inside `of`
    reverse:    whether the outermost mode is reverse mode
    """

    of: str
    positions: tuple[int, ...]
    tangents: str
    form: str
    with_value: bool = False
    order: int = 1
    reverse: bool = False


@dataclass(frozen=True)
class Lanes:
    """The axes of a layer of `vmap`."""

    in_axes: tuple[Any, ...]
    out_axis: int
    count: int


@dataclass(frozen=True)
class Layer:
    """One transform: its name, its text, its constants and its properties."""

    kind: str
    text: str
    constants: dict[str, Any] = field(default_factory=dict)
    derivative: Derivative | None = None
    lanes: Lanes | None = None


class LayerWriter:
    """Writes layers on top of a function `f{level}` with known arguments and a known result."""

    def __init__(self, chooser: Chooser, program: Program) -> None:
        self.chooser = chooser
        self.program = program
        self.count = len(program.parameters)
        self.names = [f"x{k}" for k in range(self.count)]
        self.values = np.random.default_rng(chooser.below(2**32))
        self.staged = STAGING not in program.lacks
        self.all_floats = all(is_float(leaf) for leaf in leaves(program.arguments(0)))

    def layer(self, stack: Stack, kind: str = "") -> Layer:
        """A layer for the top of a stack, of the given kind or of a random possible one."""
        self.level = len(stack.layers)
        points = stack.points[-1]
        self.args, self.result = points[0], stack.result
        kind = kind or self.chooser.weighted(self._possible(stack.order, len(points)))
        if kind == "vmap":
            return self._vmap(len(points))
        if kind in ("checkpoint", "custom_jvp", "custom_vjp") or kind.startswith("jit"):
            return self._same(kind)
        return self._derivative(kind)

    def _possible(self, order: int, points: int) -> list[tuple[int, str]]:
        """The kinds that are possible, with their weights."""
        kinds = [(4, "checkpoint")]
        outputs = leaves(self.result)
        if order < 4 and any(map(is_float, outputs)):
            kinds += [(10, "grad"), (6, "value_and_grad")]
            if order < 3:
                kinds += [(5, "hessian"), (4, "hvp")]
            if all(map(is_float, outputs)):
                kinds += [(9, "jvp"), (8, "vjp"), (5, "linearize")]
                if sum(map(np.size, outputs)) * sum(map(np.size, leaves(self.args))) <= _LARGEST:
                    kinds += [(6, "jacfwd"), (6, "jacrev")]
        if points > 1:
            kinds += [(22, "vmap")]
        if self.staged:
            # Compiling machine code takes much longer than a case may take on average.
            kinds += [(5, "jit numpy")] + [(1, "jit native")] * self.chooser.chance(15)
        if self.all_floats and self.staged:  # checkpoints stage the rules inside
            kinds += [(3, "custom_jvp"), (3, "custom_vjp")]
        return kinds

    def _same(self, kind: str) -> Layer:
        """The same function in another form."""
        f, new = f"f{self.level}", f"f{self.level + 1}"
        if kind == "checkpoint":
            return Layer(kind, f"{new} = ft.checkpoint({f})")
        if kind.startswith("jit"):
            return Layer(kind, f'{new} = ft.jit({f}, backend="{kind[4:]}")')
        lines = [f"{new} = ft.{kind}({f})"]
        if kind == "custom_vjp":
            lines.append(
                f"{new}.defvjp(lambda *a: ({f}(*a), a), lambda a, g: ft.vjp({f}, *a)[1](g))"
            )
        lines.append(f"{new}.defjvp(lambda a, t: ft.jvp({f}, a, t))")
        return Layer(kind, "\n".join(lines))

    def _vmap(self, available: int) -> Layer:
        chooser = self.chooser
        count = chooser.pick([c for c in (2, 4, 3) if c <= available])
        in_axes: list[Any] = []
        for k, arg in enumerate(self.args):
            if k in self.program.shared and chooser.chance(70):
                in_axes.append(None)
                continue
            axes = [self._axis(leaf) for leaf in leaves(arg)]
            in_axes.append(axes[0] if len(set(axes)) == 1 else refilled(arg, axes))
        rank = min(np.ndim(leaf) for leaf in leaves(self.result))
        out_axis = chooser.pick([0, 0, *range(-rank - 1, rank + 1)])
        lanes = Lanes(tuple(in_axes), out_axis, count)
        axes_text = f"({', '.join(map(repr, in_axes))},)"
        text = f"ft.vmap(f{self.level}, in_axes={axes_text}, out_axes={out_axis})"
        return Layer("vmap", f"f{self.level + 1} = {text}", lanes=lanes)

    def _axis(self, leaf: Any) -> int:
        rank = np.ndim(leaf)
        return int(self.chooser.pick([0, 0, *range(-rank - 1, rank + 1)]))

    def _derivative(self, kind: str) -> Layer:
        chooser, level = self.chooser, self.level
        f, new = f"f{level}", f"f{level + 1}"
        arguments = ", ".join(self.names)
        floats = [k for k in range(self.count) if all(map(is_float, leaves(self.args[k])))]
        positions = tuple(chooser.some(floats))
        chosen = tuple(self.args[k] for k in positions)
        t = f"t{level}"
        constants = {t: self._like(chosen)}
        if kind in ("jacfwd", "jacrev"):
            return Layer(
                kind,
                f"{new} = ft.{kind}({f}, argnums={positions})",
                constants,
                Derivative(f, positions, t, "jacobian", reverse=kind == "jacrev"),
            )
        within = ", ".join(self.names[k] for k in positions)
        inner = f"lambda {within}: {{}}({arguments})"
        if kind in ("jvp", "linearize"):
            form = {
                "jvp": f"ft.jvp({inner.format(f)}, ({within},), {t})",
                "linearize": f"ft.linearize({inner.format(f)}, {within})[1](*{t})",
            }[kind]
            derivative = Derivative(f, positions, t, "pushed", with_value=kind == "jvp")
            return Layer(kind, f"{new} = lambda {arguments}: {form}", constants, derivative)
        loss, text, weights = self._loss(linear=kind == "vjp")
        constants |= weights
        if kind == "vjp":
            w = f"w{level}"
            constants[w] = refilled(self.result, list(weights.values()))
            text += f"{new} = lambda {arguments}: ft.vjp({inner.format(f)}, {within})[1]({w})"
            derivative = Derivative(loss, positions, t, "gradient", reverse=True)
        elif kind == "hvp":
            text += f"{new} = lambda {arguments}: ft.hvp({inner.format(loss)}, ({within},), {t})"
            gradient = (
                f"ft.grad({loss}, argnums={positions if len(positions) > 1 else positions[0]})"
            )
            derivative = Derivative(gradient, positions, t, "pushed", order=2)
        elif kind == "hessian":
            text += f"{new} = ft.hessian({loss}, argnums={positions})"
            gradient = f"ft.grad({loss}, argnums={positions})"
            derivative = Derivative(gradient, positions, t, "jacobian", order=2)
        else:
            text += f"{new} = ft.{kind}({loss}, argnums={positions})"
            both = kind == "value_and_grad"
            derivative = Derivative(loss, positions, t, "gradient", both, reverse=True)
        return Layer(kind, text, constants, derivative)

    def _loss(self, linear: bool) -> tuple[str, str, dict[str, Any]]:
        """A scalar computed from the floating point results: its name, text and weights."""
        level = self.level
        arguments = ", ".join(self.names)
        terms, weights = [], {}
        for k, (leaf, path) in enumerate(
            zip(leaves(self.result), paths(self.result, "y"), strict=True)
        ):
            if not is_float(leaf):
                continue
            weight = f"w{level}_{k}"
            weights[weight] = self._number_like(leaf)
            # Use a function with derivatives of all orders, in case the one below is linear.
            bent = not linear and self.chooser.chance(50)
            terms.append(f"np.sum({weight} * {f'np.sin({path})' if bent else path})")
        body = f"    y = f{level}({arguments})\n    return {' + '.join(terms)}\n"
        return f"loss{level}", f"def loss{level}({arguments}):\n{body}", weights

    def _like(self, nest: Any) -> Any:
        """A random direction."""
        return mapped(self._number_like, nest)

    def _number_like(self, leaf: Any) -> Any:
        drawn = self.values.uniform(0.3, 1.0, np.shape(leaf))
        drawn = drawn * self.values.choice([-1.0, 1.0], np.shape(leaf))
        if type(leaf) is float:
            return float(drawn)
        return np.asarray(drawn, np.asarray(leaf).dtype)
