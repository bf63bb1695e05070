"""Find functions that the corpus can use, and arguments for them.

A function is in if its plain call is quick and deterministic, has no side effects, and returns
floats that depend smoothly on floats among the arguments.
"""

import functools
import importlib
import inspect
import io
import pkgutil
import re
import sys
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass
from types import FunctionType
from typing import Any

import numpy as np

from tools.corpus import recipes
from tools.corpus.differences import derivative, is_twice_smooth, scales
from tools.corpus.isolation import WATCH, forked, watched
from tools.corpus.packages import Package
from tools.corpus.records import Record, bind, float_leaves
from tools.corpus.soundness import is_sound
from tools.corpus.values import Vector, encode, is_floating, leaves, split, to_vector

PER_PACKAGE = 60
PER_CLASS = 4
SECONDS_PER_FUNCTION = 8.0
FAILURES_PER_METHOD = 4
SECONDS_PER_CALL = 0.05
MOST_INPUTS = 40
MOST_OUTPUTS = 400

_SKIPPED_MODULES = re.compile(
    r"(^|[._])(tests?|testing|conftest|examples?|__main__|plot\w*|gui|cli|numba\w*|setup|vis\w*|"
    r"viewer|demos?|docs?|benchmarks?_?cli|io|download\w*|units|vectorized|_?version)($|[._])"
)
_SKIPPED_NAMES = re.compile(
    r"(^|_)(test|plot|print|show|draw|save|load|read|write|random|rand|sample|main|demo|open|"
    r"export|import|download|animate|render)(_|s$|$)|^__(?!call__)"
)


@dataclass(frozen=True)
class Candidate:
    module: str
    name: str
    kind: str
    # The class that defines the method, if there is one.
    origin: str = ""

    @property
    def label(self) -> str:
        return f"{self.module}.{self.name}"


class CacheCalled(Exception):
    """A cache with float keys would remember traced values of an earlier call."""


def watch_caches() -> None:
    """Refuse floats and arrays as keys of `functools.lru_cache`, in packages imported from now on."""
    original = functools.lru_cache

    def lru_cache(maxsize: Any = 128, typed: bool = False) -> Any:
        if callable(maxsize):
            return lru_cache()(maxsize)

        def decorate(function: Callable[..., Any]) -> Any:
            cached = original(maxsize, typed)(function)

            @functools.wraps(function)
            def call(*args: Any, **kwargs: Any) -> Any:
                if WATCH.active and any(map(is_floating, (*args, *kwargs.values()))):
                    raise CacheCalled
                return cached(*args, **kwargs)

            call.cache_clear = cached.cache_clear  # type: ignore[attr-defined]
            call.cache_info = cached.cache_info  # type: ignore[attr-defined]
            call.cache_parameters = cached.cache_parameters  # type: ignore[attr-defined]
            return call

        return decorate

    functools.lru_cache = lru_cache  # type: ignore[assignment]
    functools.cache = lambda function: lru_cache(None)(function)  # type: ignore[assignment]


def module_names(roots: Iterable[str]) -> Iterator[str]:
    """The modules under the roots that can be imported here."""
    for root in roots:
        try:
            found = importlib.import_module(root)
        except BaseException as error:
            print(f"cannot import {root}: {error}", file=sys.__stderr__)
            continue
        yield root
        if not hasattr(found, "__path__"):
            continue
        for info in pkgutil.walk_packages(found.__path__, root + ".", onerror=lambda name: None):
            if _SKIPPED_MODULES.search(info.name[len(root) :]):
                continue
            try:
                importlib.import_module(info.name)
            except BaseException:
                continue
            yield info.name


def candidates(roots: tuple[str, ...]) -> list[Candidate]:
    """All functions, methods and properties under the roots, in an order that mixes modules."""
    found: list[Candidate] = []
    seen: set[int] = set()
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        names = list(module_names(roots))
    for module in names:
        for name, value in list(vars(sys.modules[module]).items()):
            # By type first: modules may contain stand-ins for what is not installed.
            if not issubclass(type(value), (FunctionType, type)):
                continue
            if getattr(value, "__module__", None) != module or id(value) in seen:
                continue
            seen.add(id(value))
            if inspect.isfunction(value):
                if not name.startswith("_") and usable(name, value):
                    found.append(Candidate(module, name, "function"))
            elif inspect.isclass(value):
                found += members(module, name, value)
    # The order is random but fixed. It decides who is in if a package has more than enough.
    return sorted(found, key=lambda candidate: zlib.crc32(candidate.label.encode()))


def usable(name: str, value: Any) -> bool:
    # Generators and coroutines return objects; a cache would be asked for traced keys.
    return not (
        _SKIPPED_NAMES.search(name)
        or hasattr(value, "cache_info")
        or inspect.isgeneratorfunction(value)
        or inspect.iscoroutinefunction(value)
    )


def members(module: str, name: str, cls: type) -> Iterator[Candidate]:
    """The methods and properties of a class, and those inherited from classes of the package.

    An inherited method counts if the class changes what it computes. That is not known here: those
    with the same results as in another class are dropped later.
    """
    if name.startswith("_") or issubclass(cls, BaseException) or inspect.isabstract(cls):
        return
    overridden: set[str] = set()
    for base in cls.__mro__:
        origin = f"{base.__module__}.{base.__qualname__}"
        if base is object or base.__module__.partition(".")[0] != module.partition(".")[0]:
            continue
        if base is not cls and all(member.startswith("__") for member in vars(cls)):
            continue
        for member, value in vars(base).items():
            label = f"{name}.{member}"
            if (member.startswith("_") and member != "__call__") or member in overridden:
                continue
            overridden.add(member)
            if isinstance(value, (staticmethod, classmethod)):
                if base is cls and usable(member, value.__func__):
                    yield Candidate(module, label, "function", origin)
            elif isinstance(value, property):
                if usable(member, value.fget):
                    yield Candidate(module, label, "property", origin)
            elif inspect.isfunction(value) and usable(member, value):
                yield Candidate(module, label, "method", origin)


def flat_function(call: Callable[..., list[Any]], point: list[Any]) -> Callable[[Vector], Vector]:
    """The function from a vector to a vector."""

    def f(vector: Vector) -> Vector:
        results = call(*split(vector, point))
        return np.concatenate([np.ravel(np.asarray(leaf, dtype=float)) for leaf in results])

    return f


def smooth_positions(record: Record, given: list[Any]) -> list[int]:
    """The positions of the arguments on which the result depends, and depends smoothly."""
    chosen = []
    for position, value in enumerate(given):
        if not is_floating(value) or to_vector(value).size > MOST_INPUTS:
            continue
        if is_smooth(replace(record, wrt=[position])):
            chosen.append(position)
    return chosen


def is_smooth(record: Record) -> bool:
    """Whether the result depends, and depends smoothly, on the differentiated arguments."""
    try:
        call, point = bind(record)
        f = flat_function(float_leaves(call, point), point)
        x = np.concatenate([to_vector(value) for value in point])
        if x.size > MOST_INPUTS:
            return False
        scale = np.concatenate([scales(to_vector(value)) for value in point])
        middle = f(x)
        size = np.max(np.abs(middle))
        depends = False
        mixed = np.random.default_rng(0).uniform(-1, 1, (4, x.size))
        directions = [*np.diag(scale), *(scale * mixed)]
        for direction in directions:
            found = derivative(f, x, direction)
            if not (np.all(np.isfinite(found.value)) and found.agree):
                return False
            if not is_twice_smooth(f, x, direction):
                return False
            depends = depends or bool(np.max(np.abs(found.value)) > 1e-6 * size)
        return depends and is_sound(record, f, x, scale)
    except Exception:
        return False


def replace(record: Record, **changes: Any) -> Record:
    return Record(**{**asdict(record), **changes})


def returns_floats(result: Any) -> bool:
    """Whether a result has floats, all finite, and nothing but numbers and arrays of them."""
    found = leaves(result)
    if not 0 < len(found) <= MOST_OUTPUTS:
        return False
    floats = 0
    for leaf in found:
        if isinstance(leaf, (bool, np.bool_, int, np.integer)):
            continue
        if not isinstance(leaf, (float, np.floating, np.ndarray)) or isinstance(leaf, np.matrix):
            return False
        array = np.asarray(leaf)
        if array.dtype.kind not in "fbi" or not 0 < array.size <= MOST_OUTPUTS:
            return False
        if array.dtype.kind == "f":
            if array.dtype != float or not np.all(np.isfinite(array)):
                return False
            floats += array.size
    return floats > 0


def same(first: Any, second: Any) -> bool:
    pairs = zip(leaves(first), leaves(second), strict=True)
    return all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in pairs)


def examine(record: Record, first: Any) -> bool:
    """Whether a call that worked once is repeatable, quick and without side effects."""
    results = [first]
    quickest = np.inf
    for seed in (1, 2):
        np.random.seed(seed)
        call, point = bind(record)
        with watched() as watch:
            start = time.perf_counter()
            results.append(call(*point))
            quickest = min(quickest, time.perf_counter() - start)
        if watch.effects:
            return False
        # The second call of the same object, or with what the first call left behind.
        with watched():
            results.append(call(*bind(record)[1]))
    return quickest < SECONDS_PER_CALL and all(same(first, other) for other in results)


def constructors(cls: type) -> Iterator[list[Any]]:
    """Up to four lists of arguments with which the class can be built."""
    chosen = recipes.parameters(cls)
    if chosen is None:
        return
    built = 0
    start = time.monotonic()
    # Subclasses with the same constructor get the same arguments, so that duplicates can be told.
    owner = next(base for base in cls.__mro__ if "__init__" in vars(base))
    for arguments in recipes.arguments(chosen, owner.__qualname__):
        if time.monotonic() - start > SECONDS_PER_FUNCTION / 4:
            return
        try:
            with watched():
                cls(*arguments)
        except Exception:
            continue
        yield [encode(argument) for argument in arguments]
        built += 1
        if built == 4:
            return


def attempts(package: str, candidate: Candidate) -> Iterator[Record]:
    """Records of a candidate with all arguments to try."""
    owner: Any = sys.modules[candidate.module]
    parts = candidate.name.split(".")
    for part in parts[:-1]:
        owner = getattr(owner, part)
    base = Record(package, candidate.module, candidate.name, candidate.kind)
    if candidate.kind == "function":
        chosen = recipes.parameters(getattr(owner, parts[-1]))
        for arguments in recipes.arguments(chosen, candidate.label) if chosen else ():
            yield replace(base, args=[encode(argument) for argument in arguments])
        return
    for init in constructors(owner):
        if candidate.kind == "property":
            if init:
                yield replace(base, init=init, of="init")
            continue
        chosen = recipes.parameters(getattr(owner, parts[-1]), skip=1)
        if chosen is None:
            return
        if chosen:
            for arguments in recipes.arguments(chosen, candidate.origin):
                yield replace(base, init=init, args=[encode(argument) for argument in arguments])
        elif init:
            yield replace(base, init=init, of="init")


def explore(package: str, candidate: Candidate, send: Callable[[Any], None]) -> None:
    """Send a record with arguments that work, if there are any, and a digest of its result."""
    warnings.simplefilter("ignore")
    start = time.monotonic()
    for record in attempts(package, candidate):
        if time.monotonic() - start > SECONDS_PER_FUNCTION / 2:
            return
        try:
            with watched():
                call, point = bind(record)
                result = call(*point)
            if not returns_floats(result):
                continue
            given = bind(replace(record, wrt=_all(record)))[1]
            positions = smooth_positions(record, given)
            if not positions:
                continue
            record = replace(record, wrt=positions)
            # Each argument alone was smooth; all of them together must be, too.
            if is_smooth(record) and examine(record, result):
                numbers = [np.asarray(leaf).tolist() for leaf in leaves(result)]
                send({"record": asdict(record), "digest": zlib.crc32(repr(numbers).encode())})
                return
        except Exception:
            continue


def _all(record: Record) -> list[int]:
    return list(range(len(getattr(record, record.of))))


def discover(package: Package, limit: int = PER_PACKAGE, seconds: float = 900.0) -> list[Record]:
    """The functions of an installed package that the corpus can use, at most `limit`."""
    watch_caches()
    found: list[Record] = []
    digests: set[tuple[str, int]] = set()
    classes: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    start = time.monotonic()
    for candidate in candidates(package.modules):
        owner = f"{candidate.module}.{candidate.name.rpartition('.')[0]}"
        method = f"{candidate.origin}.{candidate.name.rpartition('.')[2]}"
        if "." in candidate.name and (
            classes[owner] >= PER_CLASS or failures[method] >= FAILURES_PER_METHOD
        ):
            continue
        work = functools.partial(explore, package.name, candidate)
        received, _ = forked(work, SECONDS_PER_FUNCTION)
        # A method that fails for several subclasses fails for the others, too.
        failures[method] += 1 if not received else -1
        for item in received:
            # The same numbers from a method of the same class are an inherited copy, or another
            # name of the method.
            key = candidate.origin or candidate.label, item["digest"]
            if key not in digests:
                digests.add(key)
                classes[owner] += 1
                found.append(Record(**item["record"]))
        if len(found) >= limit or time.monotonic() - start > seconds:
            break
    return found
