"""Levels: who handles this call?

Every running transform is an `Interpreter` with a level, higher than the one around it. The
tracers it makes carry it. A call goes to the interpreter of the highest level among its arguments,
for which values of lower levels are constants; this alone rules out perturbation confusion.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import count
from typing import Any
from weakref import ref

from functrans.core import errors


class _Running(threading.local):
    """The interpreters at work in this thread, outermost first."""

    def __init__(self) -> None:
        self.stack: list[Interpreter] = []
        self.watchers: list[Watcher] = []


_running = _Running()
ALWAYS_ON = 1  # the level of the tape behind tensors, below every transform
_next_level = count(ALWAYS_ON + 1).__next__
_everywhere: dict[int, bool] = {}  # the levels at work in any thread


class Block:
    """What holds for the duration of a `with` block, however that ends."""

    __slots__ = ("block",)

    block: Any

    @property
    def __exit__(self) -> Any:
        """What ends the block, as an object that lives exactly as long as the block.

        An interruption (Ctrl-C) may come just before a line of `__enter__` or `leave`, so neither can be
        relied on. But Python asks for `__exit__` before it enters, and lets go of it when the block has
        ended in any way: a weak reference to it tells whether the block is still there.
        """
        leave = self.leave
        self.block = ref(leave)
        return leave

    def leave(
        self, kind: Any = None, error: BaseException | None = None, traceback: Any = None
    ) -> None:
        """End the block, or what an interruption has left of it."""
        raise NotImplementedError


class Interpreter(Block):
    """One meaning of the primitives, at one level, for the duration of a `with` block."""

    __slots__ = ("bottom", "closed", "function", "level")

    transform = "a transform"
    differentiates = False
    axis_name: Any = None

    def __init__(self, function: Callable[..., Any] | None = None) -> None:
        self.function = function
        self.closed = False
        self.block = None
        # Newer is higher, in all threads: a thread may close over tracers of the one that began it.
        self.level: int = _next_level()
        # At the bottom no value of a lower level can be traced, so interpreters need not look.
        self.bottom = not _everywhere

    def __enter__(self) -> Any:
        stack = _running.stack
        if stack:
            _last_of(stack)
        stack.append(self)
        _everywhere[self.level] = True
        if _running.watchers and (tool := watcher()) is not None:
            tool.attach(self)
        return self

    def leave(
        self, kind: Any = None, error: BaseException | None = None, traceback: Any = None
    ) -> None:
        self.closed = True
        stack = _running.stack
        if self in stack:
            while (last := stack[-1]) is not self:
                last.leave()
            _everywhere.pop(self.level, None)
            stack.pop()
        # NumPy hides the reason why `array[i] = tracer` failed behind an error of its own.
        if error is not None and isinstance(error.__cause__, errors.AssignmentError):
            raise error.__cause__.with_traceback(error.__traceback__) from None

    def process(self, primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Apply a primitive to arguments of which at least one is this interpreter's tracer."""
        raise NotImplementedError

    # Elementwise calls of one and two arguments are most of the calls there are; interpreters
    # may answer them faster.

    def process1(self, primitive: Any, x: Any) -> Any:
        return self.process(primitive, (x,), {})

    def process2(self, primitive: Any, x: Any, y: Any) -> Any:
        return self.process(primitive, (x, y), {})

    def concrete(self, tracer: Any) -> Any:
        """The plain value that Python control flow may look at."""
        raise NotImplementedError

    def escaped(self, *_: object) -> Any:
        """Raise the error for a tracer that outlived this interpreter."""
        raise escape_error(self.transform, self.function)


def escape_error(transform: str, function: Callable[..., Any] | None) -> errors.EscapedTracerError:
    """The error for a traced value that outlived its transform."""
    where = "" if function is None else f" while {errors.describe(function)} ran"
    return errors.EscapedTracerError(
        f"a traced value is used after the transform that made it has finished, at "
        f"{errors.user_location()}. It was made by {transform}{where}, and was kept in a global, a "
        "closure, an attribute or a generator. Return it from the function instead (has_aux=True "
        "carries extra results out as plain values)."
    )


class Watcher(Block):
    """A debugging tool that looks at all that happens in a thread: see functrans.debugging."""

    def __init__(self) -> None:
        self.block = None

    def __enter__(self) -> None:
        self.inside: list[tuple[Any, Any]] = [(each, type(each)) for each in running_interpreters()]
        watcher()  # ends those that an interruption has left
        _running.watchers.append(self)
        for interpreter, _ in self.inside:
            self.attach(interpreter)

    def leave(self, *exc_info: Any) -> None:
        for interpreter, kind in self.inside:
            interpreter.__class__ = kind
        watchers = _running.watchers
        if self in watchers:
            del watchers[watchers.index(self) :]

    def attach(self, interpreter: Interpreter) -> None:
        """Told of every interpreter that starts."""
        raise NotImplementedError

    def run(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Call a function that would be compiled, such that what it does can be seen."""
        raise NotImplementedError

    def look_on(self, function: Callable[..., Any], args: Any) -> Any:
        """Call a solver on plain values, such that what it does can be seen."""
        raise NotImplementedError


def watcher() -> Watcher | None:
    """The tool that watches this thread, if there is one."""
    watchers = _running.watchers
    return _last_of(watchers) if watchers else None


def _last_of(blocks: list[Any]) -> Any:
    """The last of the blocks that are still there; those that an interruption has left are ended."""
    while blocks and (block := blocks[-1].block) is not None and block() is None:
        blocks[-1].leave()
    return blocks[-1] if blocks else None


class Tracer:
    """A stand-in for an array: what every interpreter's own kind of tracer has in common.

    The operators, methods and protocols are in `functrans.core.tracer.ArrayTracer`; this class
    only says that a tracer belongs to an interpreter, which is all that dispatch needs, and lays
    out the slots. All kinds of tracer have the same, because an assignment can turn one kind into
    another: an array of zeros that is assigned a traced value is traced from then on.
    """

    __slots__ = (
        "__weakref__",
        "detail",  # what the interpreter keeps beside the value; each kind has its own name for it
        "interpreter",
        "layout",  # how an array that was assigned to lies in memory: see functrans.ops.access
        "origin",  # what this array is a view of, if it is one: see functrans.core.views
        "value",  # what the interpreter computes with, if it does
        "viewers",  # weak references to the views of this array
    )

    interpreter: Any
    value: Any
    detail: Any
    origin: Any
    layout: Any
    viewers: list[Any]

    def copy_to(self, other: Any) -> None:
        """Make another tracer, of any kind, mean what this one means."""
        raise NotImplementedError

    def snapshot(self) -> Any:
        """A tracer of the same value that a later assignment to this one does not change."""
        other = object.__new__(type(self))
        self.copy_to(other)
        return other


# Each kind of tracer calls the slot by its own name: `record: Any = DETAIL`.
DETAIL: Any = Tracer.__dict__["detail"]


def running_interpreters() -> list[Interpreter]:
    """The interpreters at work in this thread, outermost first."""
    stack = _running.stack
    if stack:
        _last_of(stack)
    return stack


def is_anything_running() -> bool:
    """Whether an interpreter is at work, in this thread or another: if not, no value is traced."""
    return bool(_everywhere)


def named_axis(name: Any) -> Any:
    """The running `vmap` that has this axis name."""
    stack = running_interpreters()
    for interpreter in reversed(stack):
        if name is not None and interpreter.axis_name == name:
            return interpreter
    known = [repr(i.axis_name) for i in stack if i.axis_name is not None]
    hint = f"the names in use are {', '.join(known)}" if known else "no running axis has a name"
    raise errors.AxisNameError(
        f"no running vmap has an axis named {name!r}, at {errors.user_location()}: {hint}. Call "
        f"the function inside vmap(..., axis_name={name!r})."
    )


def concrete(value: Any) -> Any:
    """The plain value behind a tracer of any depth, for a Python branch to look at."""
    while isinstance(value, Tracer):
        value = value.interpreter.concrete(value)
    return value
