"""Levels: which interpreter handles a call.

Every running transform is an `Interpreter` with a level, higher than that of the transform around it. Its
tracers refer to it. A call goes to the interpreter of the highest level among its arguments, to which
values of lower levels are constants; this alone rules out perturbation confusion.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable
from itertools import count
from typing import Any
from weakref import ref

from functrans.core import errors
from functrans.core.explaining import explain
from functrans.core.floating_point import point, unpoint
from functrans.core.hooks import Again, HookPlan, install, is_first_run, plan_of, uninstall
from functrans.core.loading import load_surface


class _Running(threading.local):
    """The interpreters at work in this thread, outermost first."""

    def __init__(self) -> None:
        self.stack: list[Interpreter] = []
        self.watchers: list[Watcher] = []


running = _Running()  # see also running_interpreters
ALWAYS_ON = 1  # the level of the tape behind tensors, below every transform
_levels = count(ALWAYS_ON + 1)


def _first_level() -> int:
    """The level of the first interpreter: what NumPy's functions mean is loaded before anything is traced."""
    global _next_level
    load_surface()
    _next_level = _levels.__next__
    return _next_level()


_next_level: Callable[[], int] = _first_level  # replaced by itself: later levels are only counted
at_work: dict[int, bool] = {}  # the levels at work in any thread
unusual: list[Any] = []  # tools that watch a thread, and modes; if empty, no call checks for them


class Block:
    """State that holds for the duration of a `with` block, however that ends."""

    __slots__ = ("block",)

    block: Any

    @property
    def __exit__(self) -> Any:
        """The function that ends the block, as an object that lives exactly as long as the block.

        An interruption (Ctrl-C) may come just before a line of `__enter__` or `leave`, so neither is
        reliable. But Python looks `__exit__` up before it enters, and releases it when the block has ended
        in any way: a weak reference to it shows whether the block is still running.
        """
        leave = self.leave
        self.block = ref(leave)
        return leave

    def leave(
        self, kind: Any = None, error: BaseException | None = None, traceback: Any = None
    ) -> None:
        """End the block, or clean up after an interruption."""
        raise NotImplementedError


class Interpreter(Block):
    """One meaning of the primitives, at one level, for the duration of a `with` block."""

    __slots__ = (
        "bottom",
        "closed",
        "declined",
        "function",
        "level",
        "plan",
        "plan_size",
        "pointing",
        "reruns",
        "starting",
    )

    transform: Any = "a transform"
    differentiates = False
    axis_name: Any = None

    def __init__(
        self, function: Callable[..., Any] | None = None, level: int | None = None
    ) -> None:
        self.function = function
        self.closed = False
        self.block = None
        self.pointing: Any = None
        self.plan: HookPlan | None = None  # of the outermost one: see functrans.core.hooks
        self.plan_size = 0  # at the start of this run
        self.starting: Any = None  # the states of generators, if this run may be repeated
        # The first error about a plain value that was asked for.
        self.declined: Exception | None = None
        self.reruns = False  # whether the transform handles `Again`
        # Newer is higher, in all threads: a thread may close over tracers of the one that began it.
        self.level: int = _next_level() if level is None else level
        # At the bottom no value of a lower level can be traced, so interpreters need not look.
        self.bottom = not at_work

    def __enter__(self) -> Any:
        stack = running.stack
        if stack:
            _last_of(stack)
        stack.append(self)
        at_work[self.level] = True
        if len(stack) == 1:  # while it runs, NumPy's warnings point at the user's line
            self.pointing = point()
            plan = plan_of(self.function)
            if is_first_run():  # which may have to be repeated
                self.starting = _starting_states(self.function)
            if plan is not None:
                if plan.starting is not None:
                    self.starting, plan.starting = plan.starting, None
                self.plan, self.plan_size = plan, plan.size
                install(plan, self.level, self.function)
        if running.watchers and (tool := watcher()) is not None:
            tool.attach(self)
        return self

    def leave(
        self, kind: Any = None, error: BaseException | None = None, traceback: Any = None
    ) -> None:
        self.closed = True
        stack = running.stack
        if self in stack:
            while (last := stack[-1]) is not self:
                last.leave()
            at_work.pop(self.level, None)
            if self.pointing is not None:
                unpoint(self.pointing)
            if error is not None and len(stack) == 1 and isinstance(error, Exception):
                _learn_from(error, traceback)
            plan, problem, grown = self.plan, None, False
            if plan is not None:
                problem = uninstall(plan, self.level)
                grown = plan.size > self.plan_size
                self.plan = None
            stack.pop()
            if grown or problem is not None or self.declined is not None:
                self._check_plan(plan, grown, kind, problem)
        # NumPy hides the reason why `array[i] = tracer` failed behind its own error, and some C functions
        # do not check whether float(tracer) failed.
        if error is not None and isinstance(error, (TypeError, ValueError, SystemError)):
            cause = error.__cause__
            if isinstance(cause, (errors.AssignmentError, errors.ArrayConversionError)):
                raise cause.with_traceback(error.__traceback__) from None
        if error is not None:
            explain(error, traceback, self)

    def _check_plan(
        self, plan: HookPlan | None, grown: bool, kind: Any, problem: Exception | None
    ) -> None:
        """Run again if this run has shown that more hooks are needed."""
        declined, self.declined = self.declined, None
        if kind is not None and not issubclass(kind, Exception):
            return
        # The next run must find the larger plan, or it would end like this one.
        if grown and self.reruns and plan_of(self.function) is plan:
            if plan is not None and self.starting is not None:
                self.starting.restore()
                plan.starting = self.starting
            raise Again
        if problem is not None and kind is None:
            raise problem
        # The function has caught an error that the plain function does not raise, and gone another way.
        if declined is not None and kind is None and self.reruns:
            raise declined

    def process(self, primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Apply a primitive to arguments of which at least one is this interpreter's tracer."""
        raise NotImplementedError

    # Most calls are elementwise, of one or two arguments; interpreters may handle these faster.

    def process1(self, primitive: Any, x: Any) -> Any:
        return self.process(primitive, (x,), {})

    def process2(self, primitive: Any, x: Any, y: Any) -> Any:
        return self.process(primitive, (x, y), {})

    def concrete(self, tracer: Any) -> Any:
        """The plain value that Python control flow may read."""
        return tracer.value if not self.closed else self.escaped()

    def carries_derivative(self, tracer: Any) -> bool:
        """Whether a tracer has a derivative, at this level or below, that its plain value has not."""
        return self.differentiates or carries_derivative(getattr(tracer, "value", None))

    @property
    def axis_key(self) -> Hashable:
        """What code inside can find out about the named axis of this interpreter, if it has one."""
        return None

    def strong(self, x: Any) -> Any:
        """A traced Python scalar as a NumPy scalar."""
        return x.astype(x.dtype)

    def note_axis(self, axis: Any) -> None:
        """Called when code reads the number of lanes of a named axis around this interpreter."""

    def escaped(self, *_: object) -> Any:
        """Raise the error for a tracer that outlived this interpreter."""
        raise escape_error(self.transform, self.function)


def _starting_states(function: Any) -> Any:
    from functrans.core.draws import StartingStates  # which needs what is here

    return StartingStates(function)


def _learn_from(error: Exception, traceback: Any) -> None:
    from functrans.core.learning import learn_from  # which needs what is here

    learn_from(error, traceback)


def escape_error(transform: str, function: Callable[..., Any] | None) -> errors.EscapedTracerError:
    """The error for a traced value that outlived its transform."""
    where = "" if function is None else f" while {errors.describe(function)} ran"
    return errors.EscapedTracerError(
        f"a traced value is used after the transform that made it has finished, at "
        f"{errors.user_location()}. It was made by {transform}{where}, and was kept in a global, a "
        "closure, an attribute or a generator. Return it from the function instead, with has_aux=True "
        "if it is an extra result."
    )


class Watcher(Block):
    """A debugging tool that sees everything that happens in a thread: see functrans.debugging."""

    def __init__(self) -> None:
        self.block = None

    def __enter__(self) -> None:
        self.inside: list[tuple[Any, Any]] = [(each, type(each)) for each in running_interpreters()]
        watcher()  # ends those left over by an interruption
        unusual.append(self)
        running.watchers.append(self)
        for interpreter, _ in self.inside:
            self.attach(interpreter)

    def leave(self, *exc_info: Any) -> None:
        for interpreter, kind in self.inside:
            interpreter.__class__ = kind
        watchers = running.watchers
        if self in watchers:
            del watchers[watchers.index(self) :]
        if self in unusual:
            unusual.remove(self)

    def attach(self, interpreter: Interpreter) -> None:
        """Called for every interpreter that starts."""
        raise NotImplementedError

    def run(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Call a function that would be compiled, so that the tool sees its operations."""
        raise NotImplementedError

    def look_on(self, function: Callable[..., Any], args: Any) -> Any:
        """Call a solver on plain values, so that the tool sees its operations."""
        raise NotImplementedError


def watcher() -> Watcher | None:
    """The tool that watches this thread, if there is one."""
    watchers = running.watchers
    return _last_of(watchers) if watchers else None


def _last_of(blocks: list[Any]) -> Any:
    """The last block that is still running; those left over by an interruption are ended."""
    while blocks and (block := blocks[-1].block) is not None and block() is None:
        blocks[-1].leave()
    return blocks[-1] if blocks else None


class Tracer:
    """A stand-in for an array: the base class of every interpreter's tracers.

    The operators, methods and protocols are in `functrans.core.tracer.ArrayTracer`; this class only says
    that a tracer belongs to an interpreter, which is all that dispatch needs, and lays out the slots. All
    kinds of tracer have the same slots, because an assignment can turn one kind into another: an array of
    zeros that is assigned a traced value is traced from then on.
    """

    __slots__ = (
        "__weakref__",
        "detail",  # the interpreter's data about the value; each kind has its own name for it
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
        """Give another tracer, of any kind, the meaning of this one."""
        raise NotImplementedError

    def snapshot(self) -> Any:
        """A tracer of the same value that a later assignment to this one does not change."""
        other = object.__new__(type(self))
        self.copy_to(other)
        if hasattr(self, "viewers"):
            other.viewers = []  # marks an array without axes: see functrans.core.views
        return other


# Each kind of tracer calls the slot by its own name: `record: Any = DETAIL`.
DETAIL: Any = Tracer.__dict__["detail"]


def running_interpreters() -> list[Interpreter]:
    """The interpreters at work in this thread, outermost first."""
    stack = running.stack
    if stack:
        _last_of(stack)
    return stack


def has_run_others(interpreter: Interpreter) -> bool:
    """Whether another interpreter has started since this one did."""
    return _next_level() != interpreter.level + 1


def is_anything_running() -> bool:
    """Whether an interpreter is at work, in this thread or another: if not, no value is traced."""
    return bool(at_work)


# What a function can see in addition to its arguments.

_modes: list[Callable[[], Hashable]] = []
_WATCHED = object()


def add_mode(mode: Callable[[], Hashable]) -> None:
    """Make `surroundings` report a mode that changes what functions do; None is the default mode."""
    unusual.append(mode)
    _modes.append(mode)


def surroundings() -> Hashable:
    """The named axes and modes that a function can see around its call; None if there are none.

    A cache of what a function did needs them in its key. While a tool watches, they equal no others.
    """
    if not at_work and not unusual:  # most calls end here
        return None
    if watcher() is not None:
        return _WATCHED
    axes = tuple([i.axis_key for i in running_interpreters() if i.axis_name is not None])
    modes = tuple([mode() for mode in _modes])
    return (axes, modes) if axes or any(mode is not None for mode in modes) else None


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
        f"the function inside vmap(f, axis_name={name!r})."
    )


def check_alive(values: Iterable[Any]) -> None:
    """Refuse tracers that have outlived their transform, before they are used."""
    for value in values:
        if isinstance(value, Tracer) and value.interpreter.closed:
            value.interpreter.escaped()


def carries_derivative(value: Any) -> bool:
    """Whether a value is being differentiated, at any level."""
    return isinstance(value, Tracer) and value.interpreter.carries_derivative(value)


def is_traced_for_derivatives(value: Any) -> bool:
    """Whether a value is a tracer of a transform that differentiates, or holds one."""
    while isinstance(value, Tracer):
        if value.interpreter.differentiates:
            return True
        value = getattr(value, "value", None)
    return False


def is_plain(value: Any, classes: Any) -> bool:
    """Whether a value itself is of a class: `isinstance` of a tracer answers for the value behind it."""
    return issubclass(type(value), classes)


def concrete(value: Any) -> Any:
    """The plain value behind a tracer of any depth, for a Python branch to read."""
    while isinstance(value, Tracer):
        value = value.interpreter.concrete(value)
    return value
