"""Names that mean more while a transform runs: np.array, np.zeros, math.sin, scipy.linalg.solve and others.

NumPy's protocols lead most functions of traced values to the tables. Some functions offer no protocol: they
would make a plain array or number. A *hook* is a function that takes the place of such a function, under its
own name, while a transform runs that needs it, and calls the original if nothing is traced.

Each transformed function has a `HookPlan`: which names it needs, and in which namespaces. Most functions need
none, and pay only for the look-up. The plan is found by reading the code (`core/mentions.py` reads names),
and grows when a run asks for a plain value that a hook would have kept traced (`core/learning.py`). Such a
run is given up, and starts again with the larger plan: `Again`.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple, ParamSpec, TypeVar
from weakref import ref

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")


class Again(Exception):
    """Raised at the end of a run that has shown which hooks it needs: the transform runs again."""


def runs_again(run: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function that traces a user's function: it runs again as often as `Again` is raised."""

    @wraps(run)
    def running(*args: P.args, **kwargs: P.kwargs) -> R:
        while True:
            try:
                return run(*args, **kwargs)
            except Again:  # each time with a larger plan, so this ends
                continue

    return running


class Hook(NamedTuple):
    """What takes the place of a function, and when."""

    function: Any
    # Whether to install it for code that mentions the function. If not, only for a call that failed without
    # it: most calls of np.sum have no list of traced values.
    when_mentioned: bool
    # What to call if a transform is given the function itself; None if that is the hook.
    direct: Any = None
    # For a class that stays as it is: its methods to replace, as arguments of `HookPlan.add`.
    methods: tuple[tuple[Any, str, Any, Any], ...] = ()


# The packages with hooks, and the modules that have them, which are imported when first needed. Such a module
# has a function `find`, which returns the hook for a function by its public module ("scipy.linalg") and name,
# and may have `counterpart`, which prepares the hooks for the methods of a module's objects.
PACKAGES: dict[str, str] = {}
_known: dict[int, tuple[Any, Hook | None]] = {}  # by id; the functions are kept, so ids stay theirs
_originals: dict[int, Any] = {}  # by the id of their hook
# Methods of classes, which objects made outside of the transform have: the class and the name of the method,
# by the code of the method.
METHODS: dict[CodeType, tuple[type, str, Any]] = {}


def hook_of(original: Any) -> Hook | None:
    """The hook for a function or a class, or None."""
    found = _known.get(id(original))
    if found is None:
        module, name = _public_name(original)
        package = module.split(".")[0]
        if package not in PACKAGES:
            return None  # nothing to remember about functions of other packages
        hook = import_module(PACKAGES[package]).find(module, name, original)
        found = _known[id(original)] = (original, hook)
        if hook is not None:
            _originals[id(hook.function)] = original
            if hook.direct is not None:
                _originals[id(hook.direct)] = original
    return found[1]


def meant_by(function: Any) -> Any:
    """What our code calls if the user has given it a function that has a hook."""
    original = original_of(function)
    if not _State.enabled or type(original) not in _OF_PACKAGES:
        return function
    hook = hook_of(original)
    return function if hook is None else hook.direct or hook.function


_OF_PACKAGES = (BuiltinFunctionType, FunctionType)


def knows(package: str) -> bool:
    """Whether there are hooks for functions of a package."""
    return package in PACKAGES


def prepare(module: str) -> None:
    """Load the hooks for the methods of a module's objects; it may be private: scipy.stats._distn."""
    parts = module.split(".")
    if parts[0] in PACKAGES:
        counterpart = getattr(import_module(PACKAGES[parts[0]]), "counterpart", None)
        for length in range(2, len(parts) + 1):
            if counterpart is not None:
                counterpart(".".join(parts[:length]))


def original_of(value: Any) -> Any:
    """The function that a hook has replaced; any other value unchanged."""
    return _originals.get(id(value), value)


def _public_name(original: Any) -> tuple[str, str]:
    from functrans.core.calls import module_of

    if isinstance(original, np.ufunc):
        return ("numpy", original.__name__)
    try:
        name = getattr(original, "__name__", None)
    except Exception:  # some packages have objects that stand for what is not installed, and raise
        return "", ""
    if not isinstance(name, str):
        return ("numpy", _NAMELESS[id(original)]) if id(original) in _NAMELESS else ("", "")
    return module_of(original), name


# Objects of NumPy's that are not functions, by id.
_NAMELESS = {id(getattr(np, name)): name for name in ("r_", "c_", "mgrid", "ogrid", "s_")}


ABSENT: Any = object()  # stands for a name of Python's own, which a module's globals do not have
BUILTINS: dict[str, Any] = {}  # the hooks for float and complex, by name
MENTIONED_BUILTINS: dict[str, Any] = {}  # the same for `type`, installed for code that mentions it


class Target:
    """A name in a namespace (the globals of a module, or a class), and what to put there."""

    __slots__ = ("hook", "name", "namespace", "original")

    def __init__(self, namespace: Any, name: str, original: Any, hook: Any) -> None:
        self.namespace, self.name, self.original, self.hook = namespace, name, original, hook

    @property
    def key(self) -> tuple[int, str]:
        return id(self.namespace), self.name

    def put(self, value: Any, in_place_of: Any) -> None:
        """Set the name, unless somebody else has set it to another value."""
        namespace = self.namespace
        if type(namespace) is dict:
            if namespace.get(self.name, ABSENT) is not in_place_of:
                return
            if value is ABSENT:
                del namespace[self.name]
            else:
                namespace[self.name] = value
        elif namespace.__dict__.get(self.name) is in_place_of:
            setattr(namespace, self.name, value)


class HookPlan:
    """The hooks that a transformed function needs, and the arrays that its code has made in this run."""

    __slots__ = (
        "deciding",
        "made",
        "notes",
        "opens_arguments",
        "other",
        "quick",
        "size",
        "stand_ins",
        "starting",
        "targets",
        "texts",
    )

    def __init__(self) -> None:
        self.starting: Any = None  # states of generators, if the function is about to run again
        self.deciding: set[int] = (
            set()
        )  # code of packages that has decided by a traced value, by id
        self.targets: dict[tuple[int, str], Target] = {}
        # The targets again: names that modules have, with what `install` needs, and all others.
        self.quick: list[tuple[dict[str, Any], str, Any, Any]] = []
        self.other: list[Target] = []
        self.size = 0  # increases with everything that is added
        self.opens_arguments = False  # whether plain arguments accept traced values
        self.notes = (
            False  # whether calls that make arrays are noted: after an assignment has failed
        )
        # Arrays by id, and the calls that made them: code, instruction, and globals.
        self.made: dict[int, tuple[CodeType, int, dict[str, Any]]] = {}
        self.texts: dict[str, Any] = {}  # traced numbers by the texts that they were formatted as
        self.stand_ins: Any = None  # see functrans.core.stand_ins

    def add(self, namespace: Any, name: str, original: Any, hook: Any) -> None:
        target = Target(namespace, name, original, hook)
        if target.key not in self.targets:
            self.targets[target.key] = target
            self.size += 1
            if type(namespace) is dict and original is not ABSENT:
                self.quick.append((namespace, name, original, hook))
            else:
                self.other.append(target)

    def __bool__(self) -> bool:
        return bool(self.targets) or self.opens_arguments


# Installing.

_lock = threading.RLock()  # ending an interrupted transform may install and uninstall within
_users: dict[
    tuple[int, str], set[int]
] = {}  # the levels of the transforms that need an installed name


noting: set[int] = set()  # the levels of the transforms whose plans note arrays


def _renew_lock() -> None:
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):  # another thread may have held it
    os.register_at_fork(after_in_child=_renew_lock)


# The transform whose hooks are in place, if it is the only one. Most are: they need no entries in `_users`.
_sole: tuple[HookPlan, int] | None = None


def install(plan: HookPlan, level: int, function: Any) -> None:
    """Put the hooks of a plan in place, for the transform of this level."""
    global _sole
    with _lock:
        if _sole is None and not _users:
            _sole = (plan, level)
        else:
            if _sole is not None:
                first, _sole = _sole, None
                _note_users(*first)
            _note_users(plan, level)
        for namespace, name, original, hook in plan.quick:
            if namespace.get(name) is original:
                namespace[name] = hook
        for target in plan.other:
            target.put(target.hook, target.original)
        if plan.notes:
            noting.add(level)
        if plan.stand_ins is not None:
            plan.stand_ins.install(level, traced_function(function))


def _note_users(plan: HookPlan, level: int) -> None:
    for key in plan.targets:
        _users.setdefault(key, set()).add(level)


def uninstall(plan: HookPlan, level: int) -> Exception | None:
    """Put the originals back, where no other transform needs the hook; returns an error to raise, if any."""
    global _sole
    with _lock:
        if _sole is not None and _sole[1] == level:
            _sole = None
            for namespace, name, original, hook in plan.quick:
                if namespace.get(name) is hook:
                    namespace[name] = original
            for target in plan.other:
                target.put(target.original, target.hook)
        else:
            _remove_shared(plan, level)
        if plan.notes:
            noting.discard(level)
            plan.made.clear()
        if plan.texts:
            plan.texts.clear()
        return None if plan.stand_ins is None else plan.stand_ins.uninstall(level)


def _remove_shared(plan: HookPlan, level: int) -> None:
    """The same if there are hooks of other transforms, too."""
    for key, target in list(plan.targets.items()):
        users = _users.get(key)
        if users is None:
            continue
        users.discard(level)
        if not users:
            target.put(target.original, target.hook)
            del _users[key]


# Plans by the code of functions.

_ufunc = np.ufunc
_plans: dict[
    int, tuple[Any, HookPlan | None]
] = {}  # by the id of a code object, which is referenced weakly
# The same for code whose globals are not a module's, such as those of `exec`: plans would keep them alive.
_passing: OrderedDict[int, tuple[Any, HookPlan | None]] = OrderedDict()
_MOST_PASSING = 64


_OURS = HookPlan()  # marks a function of the library, which calls the one that has a plan


class _State:
    has_new_plan = False  # whether a function was read that has not been run since
    enabled = os.environ.get("FUNCTRANS_HOOKS", "1") != "0"


def plan_of(function: Any) -> HookPlan | None:
    """The plan for a function that is about to be traced; None if it needs no hooks."""
    if not _State.enabled:
        return None
    kind = type(function)
    if kind is not FunctionType:
        if kind is _ufunc:
            return None
        function = traced_function(function)
        if type(function) is not FunctionType:
            return None
    code = function.__code__
    found = _plans.get(id(code)) or _passing.get(id(code))
    if found is None or found[0]() is not code:
        return _new_plan(function, code)
    return found[1] if found[1] is not _OURS else _inner_plan(function)


def is_first_run() -> bool:
    """Whether the function that is about to run was read just now, so that its plan may have to grow."""
    is_first, _State.has_new_plan = _State.has_new_plan, False
    return is_first


def _inner_plan(function: Any) -> HookPlan | None:
    """The plan of the function that a function of the library calls."""
    inner = traced_function(function)
    return None if inner is function or is_ours(inner) else plan_of(inner)


def _new_plan(function: Any, code: CodeType) -> HookPlan | None:
    from functrans.core.learning import read

    if is_ours(function):
        _remember(code, function.__globals__, _OURS)
        return _inner_plan(function)
    plan = HookPlan()
    read(function, plan)
    _State.has_new_plan = True
    _remember(code, function.__globals__, plan if plan else None)
    return plan if plan else None


def forgetting(store: Any, key: int) -> Callable[[Any], Any]:
    """A function that removes a key. At the end of the process, it may outlive the names of its module."""
    return lambda _: store.pop(key, None)


def _remember(code: CodeType, namespace: dict[str, Any], plan: HookPlan | None) -> None:
    key = id(code)
    if is_module(namespace):
        _plans[key] = (ref(code, forgetting(_plans, key)), plan)
        return
    _passing.pop(key, None)  # it becomes the newest
    _passing[key] = (ref(code, forgetting(_passing, key)), plan)
    if len(_passing) > _MOST_PASSING:
        _passing.popitem(last=False)


def enlarged(function: Any) -> HookPlan:
    """A new plan for a function that was found to need hooks, although its code does not mention any."""
    plan = HookPlan()
    function = traced_function(function)
    if type(function) is FunctionType:  # one in C has no code to find the plan by
        _remember(function.__code__, function.__globals__, plan)
    return plan


def is_module(namespace: Any) -> bool:
    """Whether a dict holds the globals of a module that has been imported."""
    import sys

    module = sys.modules.get(namespace.get("__name__") or "")
    return module is not None and getattr(module, "__dict__", None) is namespace


def traced_function(function: Any) -> Any:
    """The Python function behind partials, methods, transformed functions and functions of the library."""
    for _ in range(20):
        if isinstance(function, FunctionType):
            if not is_ours(function):
                return function
            cells = function.__closure__ or ()
            inner = next((f for cell in cells if _is_outside(f := _content(cell))), None)
            if inner is None:
                return function
            function = inner
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif isinstance(function, MethodType):
            function = function.__func__
        elif hasattr(function, "func"):  # a partial
            function = function.func
        elif isinstance(function, (BuiltinFunctionType, np.ufunc, type, ModuleType)):
            return function
        else:
            call = vars(type(function)).get("__call__")
            if not isinstance(call, FunctionType):
                return function
            function = call
    return function


def is_ours(function: Any) -> bool:
    """Whether a function is one of the library's own."""
    from functrans.core import places

    return isinstance(function, FunctionType) and places.is_ours(function.__code__)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _is_outside(value: Any) -> bool:
    return callable(value) and not isinstance(value, (type, np.ufunc))


class use_hooks:
    """Switch off, or on again, what lets np.array, math.sin and similar functions take traced values.

    While a transform runs, functions for which NumPy's protocols do not apply are replaced under their own
    names: np.array([x, y]), out = np.zeros(3); out[0] = x, math.sin(x), scipy.linalg.solve(a, b). With
    `use_hooks(False)`, they raise errors instead. It takes effect at once, for all threads; as a context
    manager, it holds until the end of the block. The environment variable FUNCTRANS_HOOKS=0 does the same for
    the whole process.

    Examples
    --------
    >>> import math
    >>> from functrans import grad, use_hooks
    >>> grad(math.exp)(0.0)
    np.float64(1.0)
    >>> with use_hooks(False):
    ...     grad(math.exp)(0.0)
    Traceback (most recent call last):
        ...
    functrans.errors.ArrayConversionError: math.exp gives a plain number, without a derivative, ...
    """

    __slots__ = ("before",)

    def __init__(self, enabled: bool) -> None:
        self.before = _State.enabled
        _State.enabled = bool(enabled)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info: Any) -> None:
        _State.enabled = self.before


def are_enabled() -> bool:
    return _State.enabled
