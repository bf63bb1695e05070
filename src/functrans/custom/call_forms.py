"""One call of a function with rules: the function and its rules as functions of flat arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.core import errors, tree
from functrans.core.custody import CONSTANTS, lending, own
from functrans.core.dispatch import Tracer, is_plain
from functrans.core.evaluate import as_constant
from functrans.core.shapes import ArraySpec, cast, dtype_of, shape_of, spec_of
from functrans.transforms.arguments import what_it_is
from functrans.transforms.leaves import (
    chosen,
    described,
    strong,
    zero_tangent,
)

if TYPE_CHECKING:
    from functrans.custom.rules import _Custom


class ArrayLeaves:
    """A tree some of whose leaves are arrays. The others are passed on unchanged."""

    def __init__(self, value: Any, is_array: Callable[[Any], bool] = tree.is_array) -> None:
        leaves, self.structure = tree.flatten(value)
        self.flags = [is_array(leaf) for leaf in leaves]
        self.arrays = [as_constant(leaf) for leaf in chosen(leaves, self.flags)]
        self.count = len(self.arrays)
        self.others = leaves if self.count < len(leaves) else []
        if self.others:
            self.others = [None if f else x for x, f in zip(leaves, self.flags, strict=True)]

    def take(self) -> list[Any]:
        """The arrays, which this object then no longer holds."""
        arrays, self.arrays = self.arrays, []
        return arrays

    def parts(self) -> list[ArrayLeaves]:
        """The children of the tree, each as a tree."""
        others, flags, arrays = iter(self.others), iter(self.flags), iter(self.arrays)
        parts = []
        for child in self.structure.children():
            part: ArrayLeaves = object.__new__(ArrayLeaves)
            part.structure = child
            part.others = list(islice(others, child.num_leaves))
            part.flags = list(islice(flags, child.num_leaves))
            part.arrays = list(islice(arrays, sum(part.flags)))
            part.count = len(part.arrays)
            parts.append(part)
        return parts

    def specs(self) -> Any:
        """The tree with the specs of its arrays."""
        return self.rebuild([spec_of(array) for array in self.arrays])

    def rebuild(self, arrays: Sequence[Any]) -> Any:
        if not self.others:
            return tree.unflatten(self.structure, arrays)
        each = iter(arrays)
        return tree.unflatten(
            self.structure,
            [
                next(each) if flag else leaf
                for leaf, flag in zip(self.others, self.flags, strict=True)
            ],
        )

    def rebuild_tangents(self, tangents: Sequence[Any]) -> Any:
        each = iter(tangents)
        return tree.unflatten(self.structure, [next(each) if flag else None for flag in self.flags])


def _is_traced(leaf: Any) -> bool:
    return isinstance(as_constant(leaf), Tracer)


class FixedArguments:
    """The arguments that are not differentiated. Those without traced values are passed on unchanged.

    A traced one is still an operand, so that each interpreter passes its own view of it to the function and
    the rules: all its lanes, the value behind it, or a variable.
    """

    def __init__(self, args: list[Any]) -> None:
        self.args = args
        self.traced = [any(map(_is_traced, tree.leaves(arg))) for arg in args]
        self.parts = [ArrayLeaves(arg, _is_traced) for arg in chosen(args, self.traced)]
        self.arrays = [array for part in self.parts for array in part.arrays]

    def rebuild(self, arrays: Sequence[Any]) -> list[Any]:
        if not self.parts:
            return self.args
        each = iter(arrays)
        parts = iter(self.parts)
        return [
            (part := next(parts)).rebuild([next(each) for _ in part.arrays]) if traced else arg
            for arg, traced in zip(self.args, self.traced, strict=True)
        ]


_NONE = FixedArguments([])


class CallForm:
    """One call: the function and the rules, as functions of the arrays among the arguments.

    First come those of `fixed`, the traced ones among the arguments that are not differentiated. The arrays
    are lent to the function and the rules, and the library owns their results: see functrans.core.custody.
    """

    def __init__(self, custom: _Custom[..., Any], args: tuple[Any, ...]) -> None:
        self.custom = custom
        self.args = args
        self.nondiff = [k for k in custom.nondiff_argnums if k < len(args)]
        self.fixed = FixedArguments([args[k] for k in self.nondiff]) if self.nondiff else _NONE
        self.free = [k for k in range(len(args)) if k not in custom.nondiff_argnums]
        self.given = ArrayLeaves(tuple(args[k] for k in self.free))
        self.out = ArrayLeaves(())
        self.residuals = ArrayLeaves(())

    def _call(self, rule: Any, run: Callable[..., Any], leaves: Sequence[Any]) -> Any:
        """Call run(fixed, leaves), which calls a rule, with all arrays lent."""
        if not self.nondiff:
            return lending(lambda lent: run((), lent), leaves, rule)
        count = len(self.fixed.arrays)
        plain = [k for k, arg in enumerate(self.fixed.args) if is_plain(arg, np.ndarray)]
        rest = count + len(plain)

        def on_lent(lent: list[Any]) -> Any:
            fixed = self.fixed.rebuild(lent[:count])
            for k, array in zip(plain, lent[count:rest], strict=True):
                fixed[k] = array
            return run(fixed, lent[rest:])

        arrays = [self.fixed.args[k] for k in plain]
        return lending(on_lent, [*leaves[:count], *arrays, *leaves[count:]], rule)

    def on_arguments(self, function: Any, arrays: Sequence[Any]) -> Any:
        """Call a function with all arguments, these arrays among them."""

        def run(fixed: Sequence[Any], arrays: list[Any]) -> Any:
            args = list(self.args)
            for k, arg in zip(self.nondiff, fixed, strict=True):
                args[k] = arg
            for k, arg in zip(self.free, self.given.rebuild(arrays), strict=True):
                args[k] = arg
            return function(*args)

        return self._call(function, run, arrays)

    def _split(self, leaves: Sequence[Any]) -> tuple[list[Any], Sequence[Any]]:
        """The arguments that are not differentiated, and the leaves that follow theirs."""
        count = len(self.fixed.arrays)
        return self.fixed.rebuild(leaves[:count]), leaves[count:]

    def function(self, *arrays: Any) -> list[Any]:
        self.out = self._result(self.on_arguments(self.custom.f, arrays), self.custom.f)
        return own(self.out.take(), arrays)

    def _result(self, out: Any, function: Any) -> ArrayLeaves:
        result = ArrayLeaves(out)
        for leaf, flag in zip(result.others, result.flags, strict=False):
            if not flag:
                tree.check_array(leaf, f"an output of {errors.describe(function)}")
        return result

    def push(self, *leaves: Any) -> list[Any]:
        """(fixed, arrays, tangents) -> (outputs, tangents)."""
        rule: Any = self.custom.jvp

        def run(fixed: Sequence[Any], leaves: list[Any]) -> Any:
            count = len(leaves) // 2
            primals = self.given.rebuild(leaves[:count])
            return rule(*fixed, primals, self.given.rebuild_tangents(leaves[count:]))

        out, moved = self._pair(self._call(rule, run, leaves), rule, "(out, tangent)")
        self.out = self._result(out, rule)
        found, structure = tree.flatten(moved)
        if structure != self.out.structure or not _matching(found, self.out.arrays):
            raise errors.RuleError(
                f"{errors.describe(rule)}, the jvp of {errors.describe(self.custom.f)}, must return a "
                "tangent with the structure and shapes of the output, at "
                f"{errors.user_location()}.\n"
                f"  the output is   {described(out)}\n"
                f"  the tangent is  {_described(moved)}"
            )
        found = list(map(_conform, found, self.out.arrays))
        del out, moved  # so that `own` sees who else refers to the arrays
        results = self.out.take()
        results += found
        del found
        return own(results, leaves)

    def forward(self, *arrays: Any) -> list[Any]:
        """(fixed, arrays) -> (outputs, residuals)."""
        rule: Any = self.custom.fwd
        found = self.on_arguments(rule, arrays)
        out, residuals = self._pair(found, rule, "(out, residuals)")
        self.out = self._result(out, rule)
        self.residuals = ArrayLeaves(residuals)
        del found, out, residuals
        results = self.out.take()
        results += self.residuals.take()
        return own(results, arrays)

    def is_transparent(self) -> bool:
        """Whether all residuals are arrays and constants, not objects that may hold some."""
        return all(type(leaf) in CONSTANTS for leaf in self.residuals.others)

    def backward(self, *leaves: Any) -> list[Any]:
        """(fixed, residuals, cotangents of the outputs) -> cotangents of the arrays."""
        rule: Any = self.custom.bwd
        count = self.residuals.count

        def run(fixed: Sequence[Any], leaves: list[Any]) -> Any:
            residuals = self.residuals.rebuild(leaves[:count])
            return rule(*fixed, residuals, tree.unflatten(self.out.structure, leaves[count:]))

        found = self._call(rule, run, leaves)
        if not isinstance(found, (tuple, list)) or len(found) != len(self.free):
            raise errors.RuleError(
                f"{errors.describe(rule)}, the bwd of {errors.describe(self.custom.f)}, must return a "
                f"tuple with one cotangent for each of its {len(self.free)} arguments, but returned "
                f"{what_it_is(found)}, at {errors.user_location()}. Write (g,) for one, and None for zero."
            )
        results = self._cotangents(found, rule)
        del found  # so that `own` sees who else refers to the arrays
        return own(results, leaves)

    def _cotangents(self, found: Sequence[Any], rule: Any) -> list[Any]:
        """The cotangents of the arrays, from those of the arguments, as returned by a rule."""
        results: list[Any] = []
        for number, (k, cotangents, argument) in enumerate(
            zip(self.free, found, self.given.parts(), strict=True)
        ):
            if cotangents is None:
                results += map(zero_tangent, argument.arrays)
                continue
            given, structure = tree.flatten(cotangents, is_leaf=lambda node: node is None)
            arrays = chosen(given, argument.flags) if len(given) == len(argument.flags) else given
            if structure.num_leaves != len(argument.flags) or not _matching(
                arrays, argument.arrays
            ):
                raise errors.RuleError(
                    f"{errors.describe(rule)}, the bwd of {errors.describe(self.custom.f)}, must return a "
                    f"cotangent with the structure and shapes of argument {k} (entry {number}), at "
                    f"{errors.user_location()}.\n"
                    f"  the argument is   {_described(argument.specs())}\n"
                    f"  the cotangent is  {_described(cotangents)}"
                )
            results += map(_conform, arrays, argument.arrays)
        return results

    def _pair(self, out: Any, rule: Any, what: str) -> Any:
        if not isinstance(out, (tuple, list)) or len(out) != 2:
            raise errors.RuleError(
                f"{errors.describe(rule)}, a rule of {errors.describe(self.custom.f)}, must return a "
                f"pair {what}, but returned {what_it_is(out)}, at {errors.user_location()}."
            )
        return out


def _described(value: Any) -> str:
    def shown(leaf: Any) -> Any:
        is_array = isinstance(leaf, ArraySpec) or tree.is_array(leaf)
        return strong(spec_of(leaf)) if is_array else leaf

    return str(tree.map(shown, value))


def _matching(found: Sequence[Any], likes: Sequence[Any]) -> bool:
    """Whether tangents or cotangents have the shapes of their values, and are real where those are."""
    return len(found) == len(likes) and all(
        one is None
        or (
            tree.is_array(one)
            and shape_of(one) == shape_of(like)
            and not (dtype_of(one).kind == "c" and dtype_of(like).kind == "f")
        )
        for one, like in zip(found, likes, strict=True)
    )


def _conform(found: Any, like: Any) -> Any:
    if found is None or dtype_of(like).kind not in "fc":
        return zero_tangent(like)
    return cast(found, dtype_of(like))
