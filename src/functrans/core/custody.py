"""Custody of memory: which arrays are lent to the user's functions, and which the user or the library keeps.

There are four words for it. Each promises one thing, for plain arrays and for traced ones, at every depth of
transforms:

own    A result belongs to the caller alone. It shares no memory with an argument, with another result, or
       with anything that the library or the user's function keeps, and it can be written to. The result of a
       user's rule belongs to the library in the same way: if the rule keeps it, we take a copy.
lend   The arguments of a user's rule, and the first state of a loop, behave like copies: nothing else sees
       what the rule writes.
guard  The other arguments of a function that is transformed cannot be written to.
keep   A value that is needed later stays what it was, or an error says that it has changed.

None of them copies without need. Whether a copy is needed is a question of references: an array that nothing
else refers to has no other owner. Extra references can cause an unnecessary copy, but never a missing one.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from sys import getrefcount
from types import CodeType
from typing import Any
from weakref import WeakSet

import numpy as np

from functrans.core import errors, tree
from functrans.core.dispatch import Tracer, is_plain, running_interpreters
from functrans.core.evaluate import OpenArray
from functrans.core.hooks import plan_of
from functrans.core.subclasses import plain_array
from functrans.core.views import detached, view_of

_ndarray = np.ndarray
COPIED_BYTES = 1 << 16  # smaller arrays are copied wherever that is simpler


# References.


def _base_references(array: np.ndarray[Any, Any]) -> int:
    base = array.base
    return getrefcount(base)


def _references_in(values: list[Any]) -> int:
    value = values[0]
    return getrefcount(value)


# Reference counts: of an array that only one view refers to; and of a value with one place, in a list, a
# tuple or a dict, and a name in the function that counts.
_ONE_VIEW = _base_references(np.zeros(2).view())
_ONE_PLACE = _references_in([np.zeros(2)])


def references_in_slot(holder: Any, slot: str) -> int:
    """The references to what an object has in a slot; `ONE_SLOT` if there are no others."""
    value = getattr(holder, slot)
    return getrefcount(value)


ONE_SLOT = references_in_slot(OpenArray(np.zeros(1)), "value")


def is_private(tracer: Any, slot: str) -> bool:
    """Whether only this tracer can see the array in its slot: no record, no view, no user."""
    array = getattr(tracer, slot, None)
    if type(array) is not _ndarray or array.base is not None or not array.flags.writeable:
        return False
    del array
    return references_in_slot(tracer, slot) <= ONE_SLOT


def is_sole_view(view: np.ndarray[Any, Any]) -> bool:
    """Whether an array shows all of a plain array that nothing else refers to, each entry once."""
    base = view.base
    if type(base) is not _ndarray or base.base is not None or base.nbytes != view.nbytes:
        return False
    del base
    return (
        _base_references(view) <= _ONE_VIEW
        and view.flags.writeable
        and (view.flags.forc or _has_no_gaps(view))
    )


def _has_no_gaps(array: np.ndarray[Any, Any]) -> bool:
    """Whether an array is contiguous in memory, whichever axis comes first."""
    expected = array.itemsize
    steps = zip(array.strides, array.shape, strict=True)
    for step, length in sorted((step, length) for step, length in steps if length != 1):
        if step != expected:
            return False
        expected *= length
    return True


# Results, which the caller keeps.


def _check_alive(tracer: Any) -> None:
    if tracer.interpreter.closed:
        tracer.interpreter.escaped()


def own(values: list[Any], ours: Sequence[Any] = ()) -> list[Any]:
    """Make the caller the only owner of results: nothing else refers to their memory, and it is writable.

    Only the list may refer to the values: a value with other references is replaced by a copy, in the list.
    A value that lies in the memory of one of `ours` may stay there.
    """
    for k in range(len(values)):
        value = values[k]
        if type(value) is _ndarray:
            if getrefcount(value) <= _ONE_PLACE and (
                value.flags.writeable if value.base is None else is_sole_view(value)
            ):
                continue
            if not ours or not _lies_in(value, ours):
                values[k] = value.copy("K")
        elif isinstance(value, Tracer):
            _check_alive(value)
            if getrefcount(value) > _ONE_PLACE or view_of(value) is not None:
                values[k] = detached(value)
        elif is_plain(value, _ndarray):  # a subclass, such as np.memmap
            values[k] = np.array(value, order="K")
    return values


def _lies_in(array: np.ndarray[Any, Any], others: Sequence[Any]) -> bool:
    root = memory_owner(array)
    return any(is_plain(each, _ndarray) and memory_owner(each) is root for each in others)


def memory_owner(array: Any) -> Any:
    """The array in whose memory another one lies."""
    while is_plain(array.base, _ndarray):
        array = array.base
    return array


def own_tree(value: Any) -> Any:
    """The same for a tree, of which the caller keeps no reference."""
    if type(value) in CONSTANTS:
        return value
    place = [value]
    del value
    own_place(place)
    return place[0]


def own_place(place: list[Any]) -> None:
    """The same for the one tree in a list, which stays there."""
    value = place[0]
    kind = type(value)
    if kind is _ndarray:
        if getrefcount(value) > _ONE_PLACE or value.base is not None or not value.flags.writeable:
            del value
            own(place)
    elif kind in CONSTANTS:
        return
    elif isinstance(value, Tracer):
        _check_alive(value)
        if getrefcount(value) > _ONE_PLACE or view_of(value) is not None:
            place[0] = detached(value)
    elif getrefcount(value) > _ONE_PLACE or not _holds_own(value):
        leaves, structure = tree.flatten(value)
        place[0] = value = None
        place[0] = tree.unflatten(structure, own(leaves))


# The kinds of values that cannot be changed.
CONSTANTS = frozenset(
    {
        type(None),
        float,
        int,
        bool,
        complex,
        str,
        *(np.dtype(code).type for code in "?bhilqBHILQefdgFDG"),
    }
)


def _holds_own(container: Any) -> bool:
    """Whether only the container, a tuple, a list or a dict, refers to the arrays in it."""
    kind = type(container)
    if kind is not tuple and kind is not list and kind is not dict:
        return False
    for part in container.values() if kind is dict else container:
        kind = type(part)
        if kind is _ndarray:
            if getrefcount(part) > _ONE_PLACE or part.base is not None or not part.flags.writeable:
                return False
        elif kind in CONSTANTS:
            continue
        elif getrefcount(part) > _ONE_PLACE:
            return False
        elif isinstance(part, Tracer):
            _check_alive(part)
            if view_of(part) is not None:
                return False
        elif not _holds_own(part):
            return False
    return True


def own_apart(
    results: tuple[Any, ...], places: tuple[int, ...], inputs: tuple[Any, ...]
) -> tuple[Any, ...]:
    """The results; those at `places` may lie in the memory of an input, a constant or another result.

    For compiled code, where nothing else can share memory: constants are read-only there.
    """
    others = [result for k, result in enumerate(results) if k not in places]
    seen = {id(memory_owner(each)) for each in (*inputs, *others) if is_plain(each, _ndarray)}
    own = list(results)
    for k in places:
        array = own[k]
        if is_plain(array, _ndarray):
            root = memory_owner(array)
            mine = id(root) not in seen and root.base is None and array.flags.writeable
            if not mine or (array is not root and not array.flags.forc):
                own[k] = array = np.array(array, order="C")
            seen.add(id(memory_owner(array)))
    return tuple(own)


def own_distinct(value: Any, seen: set[int]) -> Any:
    """A result that is new or a view, and shared at most with one of `seen` (by id), or of its base's.

    For the cotangents of a backward pass, where reference counts say nothing; `seen` grows.
    """
    if type(value) is _ndarray:
        if id(value) in seen or not (value.base is None or is_sole_view(value)):
            value = value.copy("K")
    elif isinstance(value, Tracer) and id(value) in seen:
        value = detached(value)
    seen.add(id(value))
    return value


# Arguments, which are lent to the user's functions.


def guarded(argument: Any) -> Any:
    """An argument that is passed on so that the function cannot change the caller's array."""
    if is_plain(argument, _ndarray):
        if argument.flags.writeable:
            # A ufunc's `at` writes even where it must not, so small arrays are copied.
            small = argument.nbytes <= COPIED_BYTES
            argument = argument.copy("K") if small else argument.view()
            argument.setflags(False)
        return argument
    if isinstance(argument, Tracer):
        return detached(argument)
    copied = _CONTAINERS.get(type(argument)) or (hasattr(argument, "_fields") and _namedtuple)
    if copied:
        try:
            return copied(argument)
        except RecursionError:
            raise tree.too_deep() from None
    return argument


def lent(argument: Any, function: Any) -> Any:
    """The same for an argument of a function that may need it to accept traced values."""
    running = running_interpreters()
    plan = running[0].plan if running else plan_of(function)
    if plan is None or not plan.opens_arguments:
        return guarded(argument)
    leaves, structure = tree.flatten(argument)
    opened = [OpenArray(x.copy("K")) if type(x) is _ndarray else guarded(x) for x in leaves]
    return tree.unflatten(structure, opened)


def _namedtuple(values: Any) -> Any:
    return values._make(map(guarded, values)) if is_plain(values, tuple) else values


def _items(mapping: Any) -> Any:
    return ((key, guarded(value)) for key, value in mapping.items())


# Python's own containers are copied with what they hold. An object of a user's class is the same object.
_CONTAINERS: dict[type, Callable[[Any], Any]] = {
    tuple: lambda values: tuple(map(guarded, values)),
    list: lambda values: list(map(guarded, values)),
    dict: lambda mapping: dict(_items(mapping)),
    OrderedDict: lambda mapping: OrderedDict(_items(mapping)),
    defaultdict: lambda mapping: defaultdict(mapping.default_factory, _items(mapping)),
    deque: lambda values: deque(map(guarded, values), values.maxlen),
}


def lent_copy(leaf: Any) -> Any:
    """A value that the user's function may change in place without changing the caller's."""
    if type(leaf) is _ndarray:
        return leaf.copy()
    return leaf.snapshot() if isinstance(leaf, Tracer) else leaf


def lending(run: Callable[[list[Any]], Any], leaves: Sequence[Any], function: Any) -> Any:
    """Call run(leaves), which calls a user's `function`, with leaves that it may overwrite.

    Small arrays are copied. Large ones are read-only views: a function that tries to write is called again
    with copies, and from then on gets copies at once. A function that does not write costs nothing.
    """
    lent = []
    for leaf in leaves:
        if is_plain(leaf, _ndarray):
            if leaf.nbytes > COPIED_BYTES:
                break
            leaf = leaf.copy("K")
        elif isinstance(leaf, Tracer):
            leaf = leaf.snapshot()
        lent.append(leaf)
    else:
        return run(lent)
    key = getattr(function, "__code__", function)
    if not _is_writer(key):
        try:
            return run([_lent(leaf) for leaf in leaves])
        except (ValueError, TypeError) as error:
            if not _REFUSAL.search(str(error)):
                raise
        _note_writer(key)
    return run([_copied(leaf) for leaf in leaves])


def lending_tree(function: Callable[..., Any], *args: Any) -> Any:
    """function(*args) of trees, with their arrays lent."""
    for arg in args:
        kind = type(arg)
        if kind is not _ndarray and kind not in CONSTANTS and not isinstance(arg, Tracer):
            break
    else:  # arrays and numbers only
        return lending(lambda lent: function(*lent), args, function)
    leaves, structure = tree.flatten(args)
    return lending(lambda lent: function(*tree.unflatten(structure, lent)), leaves, function)


# The messages of NumPy, Cython, Numba and pybind11 about read-only memory.
_REFUSAL = re.compile("read-?only|writ(e)?able", re.IGNORECASE)

_writers: WeakSet[Any] = WeakSet()


def _is_writer(key: Any) -> bool:
    try:
        return key in _writers or (type(key) is CodeType and _calls_at(key))
    except TypeError:  # not hashable or weakly referable: not remembered
        return False


def _note_writer(key: Any) -> None:
    with suppress(TypeError):  # no weak references
        _writers.add(key)


@lru_cache(maxsize=1024)
def _calls_at(code: CodeType) -> bool:
    """Whether a function may call a ufunc's `at`, which writes even into read-only arrays."""
    return "at" in code.co_names or any(
        _calls_at(each) for each in code.co_consts if type(each) is CodeType
    )


def _lent(value: Any) -> Any:
    if is_plain(value, _ndarray) and value.nbytes > COPIED_BYTES:
        value = value.view()
        value.flags.writeable = False
        return value
    return _copied(value)


def _copied(value: Any) -> Any:
    if is_plain(value, _ndarray):
        return value.copy("K")
    return value.snapshot() if isinstance(value, Tracer) else value


# Values, which the library keeps.


def kept_in_tracer(value: Any) -> Any:
    """A value as a tracer keeps it: later assignments to a traced one do not change it."""
    if isinstance(value, Tracer):
        if value.interpreter.closed:
            value.interpreter.escaped()
        return value.value if type(value) is OpenArray else value.snapshot()
    return plain_array(value) if is_plain(value, _ndarray) else value


def kept(value: Any) -> Any:
    """A value that the backward pass will read, after the user may have changed it.

    Large plain arrays are not copied, which would cost more than most operations on them. Instead, the
    backward pass raises an error if they have changed.
    """
    if type(value) is float or type(value) is int:  # most constants are
        return value
    if not is_plain(value, _ndarray):
        return kept_in_tracer(value)
    if value.nbytes <= COPIED_BYTES:
        # A read-only array that owns its memory is safe, such as an argument that a transform passes on.
        return value if value.base is None and not value.flags.writeable else np.array(value)
    value = plain_array(value)
    if value.flags.writeable:
        _watched.arrays.append((value, _fingerprint(value)))
    return value


class _Fingerprinted(threading.local):
    """Large arrays that records of this thread refer to, with a fingerprint of each."""

    def __init__(self) -> None:
        self.arrays: list[tuple[Any, Any]] = []


_watched = _Fingerprinted()


def _fingerprint(array: np.ndarray[Any, Any]) -> tuple[int, bytes]:
    """The sum of all bits, which detects changed entries, and some 500 entries, which detect moved ones."""
    flat: Any = np.ascontiguousarray(array).reshape(-1)
    words = flat.view(np.uint8 if flat.nbytes % 8 else np.uint64)
    step = array.size // 509 + 1
    return int(np.add.reduce(words, dtype=np.uint64)), flat[::step].tobytes()


def watched_since(mark: int) -> list[tuple[Any, Any]]:
    """The arrays kept since there were `mark` of them; forgotten if that is all of them."""
    arrays = _watched.arrays[mark:]
    if not mark:
        _watched.arrays.clear()
    return arrays


def watched_count() -> int:
    """The number of arrays kept for the enclosing tapes."""
    arrays = _watched.arrays
    if arrays and not running_interpreters():
        arrays.clear()  # left over by an interruption
    return len(arrays)


def check_unchanged(arrays: list[tuple[Any, Any]]) -> None:
    """Raise an error if arrays have changed."""
    for array, fingerprint in arrays:
        if _fingerprint(array) != fingerprint:
            raise errors.AssignmentError(
                f"a plain array ({array.dtype}{list(array.shape)}) was changed in place after it was "
                f"used with traced values, in the function that is differentiated at "
                f"{errors.user_location()}. The derivative needs its old values: use array.copy() where you "
                "combine it with traced values. (Arrays of up to 64 KB are copied for you.)"
            )
