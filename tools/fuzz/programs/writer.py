"""The writer of random programs. Each statement is run immediately, at all points, on plain arrays.

So the writer knows all shapes and dtypes, and accepts a statement only if it stays within the `Limits`: it is
smooth at every point, unless kinks do not matter, and its values are of ordinary size.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tools.fuzz.numeric import Numeric
from tools.fuzz.programs.choosing import Chooser, Simplest
from tools.fuzz.programs.program import Program, Statement
from tools.fuzz.programs.tables import MARGIN, apart, away

_NAME = re.compile(r"[a-z]\w*")


@dataclass(frozen=True)
class Limits:
    """What a program stays within.

    points: the number of points at which it is run.
    smooth: whether it keeps away from kinks; finite differences need that, other oracles do not.
    size:   the size of the largest array.
    least:  the size of the smallest array.
    value:  a bound on the absolute values of all numbers.
    kinds:  the kinds of dtypes that statements read: floating point numbers, or also integers and booleans.
    needs:  evaluations that it must support.
    """

    points: int = 4
    smooth: bool = True
    size: int = 36
    least: int = 0
    value: float = 20.0
    kinds: str = "f"
    needs: frozenset[str] = frozenset()


SMALL = Limits()


class RejectedError(Exception):
    """A statement is not smooth at some point, or its values are too large."""


def positive(x: Any) -> bool:
    """x > 0, unless that is a close call."""
    if abs(x) < MARGIN:
        raise RejectedError
    return bool(x > 0)


_GUARDS: dict[str, Any] = {"away": away, "apart": apart, "positive": positive}
_NO_GUARDS: dict[str, Any] = {
    "away": lambda x: True,
    "apart": lambda x, axis=None: True,
    "positive": lambda x: x > 0,
}


class Writer:
    """A program being written. `scopes` has the values of all names, at each point."""

    def __init__(self, chooser: Chooser, narrow: bool, limits: Limits = SMALL) -> None:
        self.chooser = chooser
        self.narrow = narrow
        self.limits = limits
        self.control = Numeric()
        self.values = np.random.default_rng(chooser.below(2**32))
        self.statements: list[Statement] = []
        self.constants: dict[str, Any] = {}
        self.points: list[dict[str, Any]] = [{} for _ in range(limits.points)]
        helpers = {"np": np, "ft": self.control, "NARROW": np.float32, "LARGEST": limits.size}
        helpers |= _GUARDS if limits.smooth else _NO_GUARDS
        self.scopes: list[dict[str, Any]] = [dict(helpers) for _ in self.points]
        self.helpers = frozenset(helpers)
        self.names: list[str] = []
        self.used: set[str] = set()
        self.fixed: set[str] = set()  # names with the same value, or one of a few, at all points

    @classmethod
    def of(cls, program: Program) -> Writer:
        """A writer that has written this program; a `RejectedError` if a statement is not accepted."""
        writer = cls(Simplest(), program.narrow)
        writer.points = list(program.points)
        writer.constants = program.constants
        for scope, point in zip(writer.scopes, program.points, strict=True):
            scope |= point | program.constants
        writer.names = [*program.points[0], *program.constants]
        for statement in program.statements:
            writer.add(statement)
        return writer

    # The values so far.

    def value(self, name: str) -> Any:
        """The value of a name at the first point; shapes and dtypes are the same at all points."""
        return self.scopes[0][name]

    def shape(self, name: str) -> tuple[int, ...]:
        return np.shape(self.value(name))

    def operands(
        self, condition: Callable[[tuple[int, ...]], bool] = lambda shape: True
    ) -> list[str]:
        """The names of arrays that statements may read, of a shape with this property, newest first."""
        kinds = self.limits.kinds
        return [
            name
            for name in reversed(self.names)
            if np.asarray(self.value(name)).dtype.kind in kinds and condition(self.shape(name))
        ]

    def pick(self, condition: Callable[[tuple[int, ...]], bool] = lambda shape: True) -> str:
        """One of these names; newer ones, and those that no statement has read yet, are more likely."""
        options = self.operands(condition)
        if not options:
            raise RejectedError
        fresh = [name for name in options if name not in self.used]
        if fresh and self.chooser.below(2) == 0:
            return fresh[0]
        return self.chooser.pick(options)

    def fitting(self, shape: tuple[int, ...]) -> str:
        """The name of an array that broadcasts to a shape."""
        return self.pick(lambda own: broadcasts(own, shape))

    def new_name(self, letter: str = "v") -> str:
        return f"{letter}{len(self.statements)}"

    # Additions.

    def add_leaf(self, name: str, shape: tuple[int, ...], kind: str, shared: bool) -> None:
        """Add an argument, with different values at every point or the same."""
        values = [self._drawn(shape, kind) for _ in range(1 if shared else len(self.points))]
        for k, (point, scope) in enumerate(zip(self.points, self.scopes, strict=True)):
            point[name] = scope[name] = values[0 if shared else k]
        self.names.append(name)
        if shared:
            self.fixed.add(name)

    def add_constant(self, name: str, shape: tuple[int, ...], kind: str) -> None:
        """Add a value that the function closes over."""
        value = self._drawn(shape, kind)
        self.constants[name] = value
        self.fixed.add(name)
        for scope in self.scopes:
            scope[name] = value
        self.names.append(name)

    def _drawn(self, shape: tuple[int, ...], kind: str) -> Any:
        if kind == "int":
            return self.values.integers(0, 2, shape) if shape else int(self.values.integers(0, 2))
        if kind in ("int64", "int32", "bool"):
            low, high = (0, 1) if kind == "bool" else (-2, 2)
            return np.asarray(self.values.integers(low, high + 1, shape)).astype(kind)
        size = math.prod(shape)
        # A grid with some jitter: distinct numbers, none close to 0.
        cells = self.values.permutation(max(size, 12))[:size] + self.values.uniform(0.2, 0.8, size)
        values = (-1.7 + 3.4 * cells / max(size, 12)).reshape(shape)
        if kind == "python":
            return float(values)
        return values.astype(np.float32 if kind == "single" else np.float64)

    def add(self, statement: Statement) -> None:
        """Run a statement at all points, and keep it; or raise `RejectedError`."""
        if statement.lacks & self.limits.needs:
            raise RejectedError
        try:
            self._run(statement)
        except RejectedError:
            if statement.changes:
                self._run_again()
            raise
        self.statements.append(statement)

    def _run_again(self) -> None:
        """Compute all values anew, because a rejected statement may have changed some of them in place."""
        for scope, point in zip(self.scopes, self.points, strict=True):
            scope |= point | self.constants
        for statement in self.statements:
            self._run(statement)

    def _run(self, statement: Statement) -> None:
        code = compile(statement.checked or statement.text, "<statement>", "exec")
        guard = compile(statement.guard, "<guard>", "eval") if statement.guard else None
        made: list[list[Any]] = []
        with np.errstate(all="ignore"):
            for scope in self.scopes:
                try:
                    if guard is not None and not eval(guard, scope):
                        raise RejectedError
                    own = dict(scope)
                    exec(code, own)
                except RejectedError:
                    raise
                except (
                    Exception
                ) as error:  # NumPy does not support it for these shapes, or for booleans
                    raise RejectedError from error
                made.append([own[name] for name in statement.defines])
        for column in zip(*made, strict=True):
            self._check(column)
        for scope, values in zip(self.scopes, made, strict=True):
            scope.update(zip(statement.defines, values, strict=True))
        new = [name for name in statement.defines if name not in self.names]
        self.names += [name for name in new if _is_array(self.value(name))]
        self.used |= statement.reads
        if statement.reads <= self.fixed:
            self.fixed.update(statement.defines)

    def statement(
        self,
        text: str,
        defines: Iterable[str],
        kind: str,
        *,
        lacks: Iterable[str] = (),
        guard: str = "",
        checked: str = "",
        changes: bool = False,
    ) -> None:
        """Add a statement; the names that it reads are found in its text."""
        names = frozenset(_NAME.findall(text)) & self.scopes[0].keys()
        self.add(
            Statement(
                text,
                tuple(defines),
                names - self.helpers,
                frozenset(lacks),
                (kind,),
                checked,
                guard,
                changes,
            )
        )

    def _check(self, values: Iterable[Any]) -> None:
        """Check that the values of a name at all points have the same form, and are of ordinary size."""
        forms = set()
        for value in values:
            if not _is_array(value):  # a function
                continue
            forms.add((value.shape, value.dtype, type(value)))
            if not self.limits.least <= value.size <= self.limits.size or value.ndim > 4:
                raise RejectedError
            if value.dtype.kind not in "fib":
                raise RejectedError
            if not np.all(np.abs(value) < self.limits.value):  # or nan
                raise RejectedError
        if len(forms) > 1:
            raise RejectedError

    def finished(
        self,
        parameters: tuple[Any, ...],
        shared: frozenset[int],
        results: Any,
        watched: bool = False,
    ) -> Program:
        return Program(
            parameters=parameters,
            points=tuple(self.points),
            shared=shared,
            constants=self.constants,
            statements=tuple(self.statements),
            results=results,
            watched=watched,
        )


def _is_array(value: Any) -> bool:
    return isinstance(value, (np.ndarray, np.generic))


def broadcasts(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether an array of this shape broadcasts to the target."""
    try:
        return np.broadcast_shapes(shape, target) == target
    except ValueError:
        return False
