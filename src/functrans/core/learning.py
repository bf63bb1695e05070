"""Which hooks a function needs: read from its code, and learned from a run that failed without them."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from functools import cached_property, lru_cache
from inspect import getattr_static
from types import CodeType, FrameType, FunctionType, MethodType, ModuleType, TracebackType
from typing import Any
from weakref import ref

import numpy as np

from functrans.core import hooks
from functrans.core.calls import assigned_at, called_at, called_name, called_path, module_of
from functrans.core.dispatch import running, running_interpreters
from functrans.core.hooks import HookPlan, hook_of, original_of
from functrans.core.places import is_in_standard_library, is_ours, takes_hooks

_MOST_FUNCTIONS = 400  # that are read for one plan
_CACHED: Any = type(lru_cache(lambda: None))
_COMPILED = ("numpy", "scipy")  # what their functions need is learned when they are called


# Reading.


def read(function: FunctionType, plan: HookPlan) -> None:
    """Add the hooks for all functions that a function mentions, and those that functions it calls do."""
    seen: set[CodeType] = set()
    waiting: deque[Any] = deque([function])
    while waiting and len(seen) < _MOST_FUNCTIONS:
        each = waiting.popleft()  # the nearest first
        code = each.__code__
        if id(code) in seen or is_in_standard_library(code):
            continue
        seen.add(id(code))  # type: ignore[arg-type]
        waiting += _read_code(code, each.__globals__, plan)
        for value in (*_cells(each), *(each.__defaults__ or ())):
            waiting += _functions_of(value)


def _cells(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # it is empty
            continue


def _read_code(
    code: CodeType, namespace: dict[str, Any], plan: HookPlan, everything: bool = False
) -> list[FunctionType]:
    """Add the hooks for what a piece of code mentions, and return the functions that it may call.

    With `everything`, these are all functions that make arrays, and not only those that often need it.
    """
    found: list[FunctionType] = []
    names = _names(code)
    for name in names:
        value = namespace.get(name)
        if value is None:
            if name in hooks.MENTIONED_BUILTINS and not _tells_arrays_apart(namespace):
                plan.add(namespace, name, hooks.ABSENT, hooks.MENTIONED_BUILTINS[name])
            value = sys.modules.get(name)  # `import numpy` inside the function
            if value is None or not hooks.knows(name.split(".")[0]):
                continue
        if isinstance(value, ModuleType):
            _read_module(value, names, plan, found, everything)
        elif _add(namespace, name, value, plan, everything) is None:
            found += _functions_of(value)
    return found


def _tells_arrays_apart(namespace: dict[str, Any]) -> bool:
    """Whether a module asks arrays for their namespace, as the array API standard has it."""
    codes = [value.__code__ for value in namespace.values() if type(value) is FunctionType]
    return any("__array_namespace__" in (*code.co_names, *code.co_consts) for code in codes)


def _read_module(
    module: ModuleType, names: list[str], plan: HookPlan, found: list[Any], everything: bool = False
) -> None:
    known = hooks.knows(module.__name__.split(".")[0])
    members = vars(module)
    for name in names:
        value = members.get(name)
        if value is None and known:
            value = sys.modules.get(f"{module.__name__}.{name}")  # a module that is imported lazily
        if isinstance(value, ModuleType):
            if known and value.__name__.startswith(module.__name__ + "."):
                _read_module(value, names, plan, found, everything)
        elif value is not None and known:
            _add(members, name, value, plan, everything)
        elif value is not None:
            found += _functions_of(value)


def _add(
    namespace: dict[str, Any], name: str, value: Any, plan: HookPlan, everything: bool = False
) -> Any:
    """Add the hook for a name, if its function has one that is installed when mentioned."""
    original = original_of(value)
    hook = hook_of(original) if callable(original) or id(original) in hooks._NAMELESS else None
    wanted = hook is not None and (
        hook.when_mentioned or (everything and not isinstance(original, (type, np.ufunc)))
    )
    if hook is None or not wanted:
        return None
    for method in hook.methods:
        plan.add(*method)
    if _is_home(namespace, original):
        return None
    if hook.function is not original:
        plan.add(namespace, name, original, hook.function)
    return hook


def _is_home(namespace: dict[str, Any], original: Any) -> bool:
    """Whether a class is mentioned by the code of its own module, which makes its objects."""
    return isinstance(original, type) and namespace.get("__name__") == original.__module__


def _names(code: CodeType) -> list[str]:
    """The names of globals and attributes in a piece of code and in the functions inside of it."""
    names = dict.fromkeys(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= dict.fromkeys(_names(constant))
        elif type(constant) is str and "getattr" in code.co_names:  # getattr(np, "array")
            names[constant] = None
    return list(names)


def _functions_of(value: Any) -> list[FunctionType]:
    """The Python functions that code may call through a value, if they are worth reading."""
    if isinstance(value, MethodType):
        value = value.__func__
    if not isinstance(value, (FunctionType, type)):
        value = getattr_static(value, "__wrapped__", None) or type(value)
    if not isinstance(value, (FunctionType, type)):
        return []
    module = value.__module__
    if isinstance(module, str) and module.split(".")[0] in (*_COMPILED, "functrans", "builtins"):
        return []
    if isinstance(value, FunctionType):
        return [value]
    found = []
    for kind in value.__mro__[:-1]:
        for member in vars(kind).values():
            if isinstance(member, (staticmethod, classmethod)):
                member = member.__func__
            elif isinstance(member, (property, cached_property)):
                member = member.fget if isinstance(member, property) else member.func
            if isinstance(member, FunctionType) and not is_ours(member.__code__):
                found.append(member)
    return found


# Learning.


def learn_from(error: Exception, traceback: TracebackType | None) -> None:
    """The same after an error of compiled code that does not take traced values."""
    frames = []
    while traceback is not None:
        frames.append(traceback.tb_frame)
        traceback = traceback.tb_next
    if "TracedArray" in str(error) or any(map(_is_compiled, frames)):
        learn(frames[::-1])


def learn(frames: list[FrameType] | None = None) -> bool:
    """Add what the calls on the stack need, after one of them has asked for a plain value.

    Returns whether the transform will run again because of it.
    """
    plan = _growing_plan()
    if plan is None:
        return False
    for frame in _frames() if frames is None else frames:
        code = frame.f_code
        hooks.prepare(frame.f_globals.get("__name__") or "")
        method = hooks.METHODS.get(code)
        if method is not None:
            plan.add(*method[:2], method[0].__dict__[method[1]], method[2])
        if not takes_hooks(code):
            continue
        _read_code(code, frame.f_globals, plan)
        for value in list(frame.f_locals.values()):  # xp = array_namespace(x)
            if isinstance(value, ModuleType):
                _read_module(value, _names(code), plan, [])
        _add_called(frame, plan)
        for name, hook in hooks.BUILTINS.items():
            if name in code.co_names and name not in frame.f_globals:
                plan.add(frame.f_globals, name, hooks.ABSENT, hook)
    outermost = running_interpreters()[0]
    return outermost.reruns and plan.size > outermost.plan_size


def learn_assignment(array: Any = None) -> None:
    """Let the array that was assigned a traced value be made as one that accepts it."""
    plan = _growing_plan()
    if plan is None:
        return
    has_learned = learn()
    frame = next((f for f in _frames() if takes_hooks(f.f_code)), None)
    if frame is None:
        return
    if not plan.notes:  # the next run will know which call has made the array
        plan.notes = True
        plan.size += 1
        return
    for found in (array, assigned_at(frame)):
        root = _root(found)
        site = None if root is None else plan.made.get(id(root))
        if site is not None and _open(*site, plan):
            return
    if has_learned or _read_methods(plan):
        return  # the next run may not assign to it, or note the call that has made it
    # It comes from elsewhere, or was computed from others. So everything that the function can reach is made
    # to accept traced values.
    for each in _frames():
        if takes_hooks(each.f_code):
            _read_code(each.f_code, each.f_globals, plan, everything=True)
    for site in plan.made.values():
        _open(*site, plan)
    if not plan.opens_arguments:
        plan.opens_arguments = True
        plan.size += 1
    _add_stand_ins(plan, _frames())


def _add_stand_ins(plan: HookPlan, frames: list[FrameType], arrays: bool = True) -> None:
    from functrans.core.stand_ins import add_stand_ins  # which is seldom needed

    add_stand_ins(plan, frames, arrays)


def _read_methods(plan: HookPlan) -> bool:
    """Read all methods of objects of SciPy whose methods are running; whether that adds hooks."""
    size = plan.size
    for frame in _frames():
        code, namespace = frame.f_code, frame.f_globals
        if not code.co_argcount or not _is_compiled(frame):
            continue
        for kind in type(frame.f_locals.get(code.co_varnames[0])).__mro__[:-1]:
            for method in vars(kind).values():
                if isinstance(method, FunctionType) and method.__globals__ is namespace:
                    _read_code(method.__code__, namespace, plan)
    return plan.size > size


def learn_decision() -> None:
    """Add hooks when code of SciPy reads a traced value to decide what to do next.

    A search that runs on traced values gives a solution that does not depend on them. Its hook, if it has
    one, gives the solution with its derivative. Most searches are hooked from the beginning, because the
    user's code mentions them; this is for those that were called in a way that cannot be read.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not takes_hooks(frame.f_code):
        frame = frame.f_back
    if frame is None or not _is_compiled(frame):
        return
    plan = _growing_plan()
    if plan is not None and id(frame.f_code) not in plan.deciding:
        plan.deciding.add(id(frame.f_code))
        learn()


def _is_compiled(frame: FrameType) -> bool:
    """Whether a frame is in the Python code of a package such as SciPy."""
    package: str = (frame.f_globals.get("__name__") or "").partition(".")[0]
    return package in _COMPILED


def _growing_plan() -> HookPlan | None:
    """The plan of the outermost transform in this thread."""
    if not hooks.are_enabled():
        return None
    interpreters = running_interpreters()
    if not interpreters:
        return None
    outermost = interpreters[0]
    if outermost.plan is None:
        outermost.plan = hooks.enlarged(outermost.function)
    return outermost.plan


def _frames() -> list[FrameType]:
    """The frames between this call and the outermost transform, innermost first."""
    frames = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    while frames and not is_ours(frames[-1].f_code):
        frames.pop()
    return frames


def _add_called(frame: FrameType, plan: HookPlan) -> None:
    """Add the hook for the function that a frame calls, under every name that the code may use."""
    name, value = called_at(frame)
    original = original_of(value)
    hook = hook_of(original) if value is not None else None
    path = called_path(frame)
    owner = None if path is None else _owner(path, frame)
    if not isinstance(owner, ModuleType) and (hook is not None or name is None):
        # The function is stored elsewhere: self.solve = np.linalg.solve, or FUNCTIONS["sin"](x).
        _add_stand_ins(plan, [frame], arrays=False)
    for method in () if hook is None else hook.methods:
        plan.add(*method)
    if hook is None or hook.function is original:
        return
    public = sys.modules.get(module_of(original))
    if public is None:  # the name is hooked already, or private
        public = owner
    if isinstance(public, ModuleType):
        _add_everywhere(vars(public), original, hook.function, plan)
    if not _is_home(frame.f_globals, original):
        _add_everywhere(frame.f_globals, original, hook.function, plan)


def _add_everywhere(namespace: dict[str, Any], original: Any, hook: Any, plan: HookPlan) -> None:
    """Add a hook under all names of a function: np.double is np.float64."""
    for alias, value in list(namespace.items()):
        if value is original or value is hook:
            plan.add(namespace, alias, original, hook)


def _owner(path: tuple[str, ...], frame: FrameType) -> Any:
    """The module in whose namespace the last name of a path is."""
    if len(path) == 1:
        is_global = path[0] in frame.f_globals and path[0] not in frame.f_locals
        return sys.modules.get(frame.f_globals.get("__name__") or "") if is_global else None
    value: Any = frame.f_locals.get(path[0], frame.f_globals.get(path[0]))
    for name in path[1:-1]:
        value = vars(value).get(name) if isinstance(value, ModuleType) else None
    return value


def _root(array: Any) -> Any:
    """The array whose memory a view shows."""
    if isinstance(array, np.flatiter):
        array = array.base
    if type(array) is not np.ndarray:
        return None
    while type(array.base) is np.ndarray:
        array = array.base
    return array


# Calls that make arrays. An array that receives a traced value is made again as one that accepts it; those
# made by all other calls stay plain, and as fast as before.

open_sites: dict[
    int, tuple[Any, set[int]]
] = {}  # by the id of the code, which is referenced weakly


def _open(code: CodeType, instruction: int, namespace: dict[str, Any], plan: HookPlan) -> bool:
    """Let a call make arrays that accept traced values from now on; False if it does already."""
    key = id(code)
    reference, offsets = open_sites.get(key, (None, None))
    if reference is None or reference() is not code:
        offsets = set()
        open_sites[key] = (ref(code, hooks.forgetting(open_sites, key)), offsets)
    assert offsets is not None
    names = {target.name for target in plan.targets.values()}
    called = called_name(code, instruction)
    # Compiled code, such as np.random.uniform, makes arrays with np.empty, too, and needs plain ones.
    if instruction in offsets or called not in names or not takes_hooks(code):
        return False
    if _is_cached(code, namespace):
        return False
    offsets.add(instruction)
    plan.size += 1
    return True


def _is_cached(code: CodeType, namespace: dict[str, Any]) -> bool:
    """Whether a piece of code is that of a function or method whose results lru_cache keeps."""
    values = list(namespace.values())
    for kind in [value for value in values if isinstance(value, type)]:
        values += vars(kind).values()
    return any(type(value) is _CACHED and value.__wrapped__.__code__ is code for value in values)


def is_open(frame: FrameType) -> bool:
    """Whether the call at which a frame is makes arrays that accept traced values."""
    found = open_sites.get(id(frame.f_code))
    is_known = found is not None and frame.f_lasti in found[1] and found[0]() is frame.f_code
    return is_known and not _runs_plainly(frame)


def _runs_plainly(frame: FrameType) -> bool:
    """Whether a frame is in code of SciPy that our function of the same name runs on plain values."""
    caller: FrameType | None = frame
    while caller is not None and _is_compiled(caller):
        caller = caller.f_back
    name = "" if caller is None or caller is frame else caller.f_globals.get("__name__") or ""
    return name.startswith("functrans.scipy")


def note_made(array: Any, frame: FrameType) -> None:
    """Remember which call has made an array, for this run."""
    stack = running.stack
    if stack and (plan := stack[0].plan) is not None and plan.notes:
        plan.made[id(array)] = (frame.f_code, frame.f_lasti, frame.f_globals)
