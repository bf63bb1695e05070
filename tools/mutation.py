"""The mutation check: every rule of every primitive is broken on purpose, and some test must notice.

    python -m tools.mutation                      all rules against the tests of laws and of control flow
    python -m tools.mutation --sample 50 -k sin   some of them, against the tests with that in their name
    python -m tools.mutation --only 'fft|svd'     the rules of the primitives of these names

First the tests run once, while it is noted which rules each of them uses. Then each rule is broken in one way
at a time, and the fastest tests that use it run until one fails. What survives is a hole in the net.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import random
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from _pytest.runner import runtestprotocol
from hypothesis import Phase, settings

import functrans
from functrans.core.accumulate import Deposit, settled
from functrans.core.dispatch import Tracer
from functrans.core.errors import MissingRuleError
from functrans.core.primitive import Elementwise, HigherOrder, Primitive
from functrans.core.shapes import dtype_of
from functrans.ops import gamma

ROOT = Path(__file__).parents[1]
# The files whose tests hold rules against numbers.
NET = [
    "tests/laws/test_laws.py",
    "tests/laws/test_laws_numpy.py",
    "tests/surface/test_linalg.py",
    "tests/surface/test_fft.py",
    "tests/transforms/test_collectives.py",
    "tests/custom/test_checkpoint.py",
    "tests/control/test_structured_control_flow.py",
    "tests/custom/test_custom_derivatives.py",
    "tests/core/test_assignment.py",
    "tests/core/test_assignment_rules.py",
    "tests/core/test_views.py",
    "tests/whole/test_fuzz_regressions.py",
    "tests/random/test_random.py",
    "tests/random/test_random_helpers.py",
    "tests/solvers/test_solutions.py",
    "tests/scipy/test_scipy.py",
    "tests/scipy/test_scipy_odeint.py",
    "tests/scipy/test_scipy_special.py",
    "tests/scipy/test_scipy_special_others.py",
    "tests/scipy/test_scipy_moments.py",
]
FAMILIES = [
    gamma.polygamma,
    gamma._moment,
]  # primitives by order; higher orders have the same rules
TRIES = 60  # tests that may notice one mutation
Damage = Callable[[Any], Any]
Place = tuple[str, str, int]  # a primitive, a slot, and which argument
Users = dict[Place, list[Any]]


# The changes of a tangent or cotangent.

DAMAGES: dict[str, Damage] = {
    "sign": lambda value: -value,
    "factor": lambda value: 1.25 * value,
    "missing": lambda value: 0 * value,
    "axis": lambda value: np.flip(value) if np.ndim(value) else value,
}


def damaged(values: Any, place: int, damage: Damage) -> Any:
    """A tuple of tangents with one of them damaged; None stands for zero and stays."""
    values = list(values)
    if place < len(values) and values[place] is not None:
        values[place] = damage(values[place])
    return tuple(values)


@dataclass(frozen=True)
class Mutation:
    """One rule, broken in one way."""

    name: str
    primitive: Primitive = field(repr=False, compare=False)
    slot: str  # "jvp", "vjp" or "batch"
    place: int
    kind: str
    # Whether it made a difference to a plain array, or None: nobody can say. A rule that gives zero, or
    # nothing at all, cannot be broken by a factor.
    effects: set[bool | None] = field(default_factory=set, repr=False, compare=False)

    def __str__(self) -> str:
        return f"{self.name}.{self.slot}[{self.place}] {self.kind}"

    @contextmanager
    def applied(self) -> Iterator[None]:
        with restored([self.primitive]):
            getattr(self, f"_break_{self.slot}")(self.primitive, DAMAGES[self.kind])
            yield

    def _noted(self, right: Any, wrong: Any) -> Any:
        """The wrong result, after a look at how it differs from the right one."""
        pairs = zip(_tuple(right), _tuple(wrong), strict=True)
        for one, other in pairs:
            one, other = (v.value if isinstance(v, Deposit) else v for v in (one, other))
            traced = isinstance(one, Tracer) or isinstance(other, Tracer)
            self.effects.add(None if traced else not np.array_equal(one, other))
        return wrong

    def _break_jvp(self, primitive: Any, damage: Damage) -> None:
        if isinstance(primitive, HigherOrder):
            push = primitive.push

            def wrapped_push(args: Any, tangents: Any, params: Any) -> Any:
                outs, pushed = push(args, tangents, params)
                return outs, self._noted(pushed, damaged(pushed, self.place, damage))

            primitive.push = wrapped_push
            return
        if hasattr(primitive, "pushes"):
            primitive.pushes = tuple(self._broken_push(p, k, damage) for k, p in _masks(primitive))
        jvp = primitive.jvp

        def wrapped(out: Any, args: Any, tangents: Any, params: Any) -> Any:
            # Some rules write into what they are given: the right result is a copy, and comes first.
            right = [_copied(each) for each in _tuple(jvp(out, args, tangents, params))]
            wrong = jvp(out, args, damaged(tangents, self.place, damage), params)
            return self._noted(right, wrong)

        if not hasattr(primitive, "pushes"):  # whose jvp reads `pushes`
            primitive.jvp = wrapped

    def _broken_push(self, push: Any, mask: int, damage: Damage) -> Any:
        if push is None or not mask >> self.place & 1:
            return push

        def wrapped(out: Any, *rest: Any) -> Any:
            arity = len(rest) // 2
            wrong = push(out, *rest[:arity], *damaged(rest[arity:], self.place, damage))
            return self._noted(push(out, *rest), wrong)

        return wrapped

    def _break_vjp(self, primitive: Any, damage: Damage) -> None:
        if isinstance(primitive, HigherOrder):
            trace = primitive.trace

            def wrapped_trace(mask: int, args: Any, params: Any) -> Any:
                outs, pull, saved = trace(mask, args, params)
                place = _among_tracked(mask, self.place)
                if pull is None or place is None:
                    return outs, pull, saved
                return outs, self._damaged_pull(pull, place, damage), saved

            primitive.trace = wrapped_trace
            return
        if hasattr(primitive, "rules"):
            rules = []
            for mask, rule in enumerate(primitive.rules):
                place = _among_tracked(mask, self.place)
                if rule is not None and place is not None:
                    save, pull = rule
                    rule = save, self._damaged_pull(pull, place, damage)
                rules.append(rule)
            primitive.rules = tuple(rules)
        vjp = primitive.vjp

        def wrapped(mask: int, out: Any, args: Any, params: Any) -> Any:
            found = vjp(mask, out, args, params)
            place = _among_tracked(mask, self.place)
            if found is None or place is None:
                return found
            pull, saved = found
            return self._damaged_pull(pull, place, damage), saved

        if not hasattr(primitive, "pushes"):  # whose vjp reads `rules`
            primitive.vjp = wrapped

    def _damaged_pull(self, pull: Any, place: int, damage: Damage) -> Any:
        """A pullback that damages the cotangent of one argument, counted among the tracked ones."""

        def changed(value: Any) -> Any:
            value = settled(value)
            if not isinstance(value, Deposit):
                return self._noted(value, damage(value))
            # A value with a place in the array, which the sweep adds up.
            value.value = self._noted(value.value, damage(value.value))
            return value

        def wrapped(cotangent: Any, saved: Any) -> Any:
            pulled = pull(cotangent, saved)
            if isinstance(pulled, (tuple, list)):
                return damaged(pulled, place, changed)
            return changed(pulled) if place == 0 and pulled is not None else pulled

        wrapped.__dict__.update(getattr(pull, "__dict__", {}))  # what it needs, and what it owns
        return wrapped

    def _break_batch(self, primitive: Any, damage: Damage) -> None:
        batch = primitive.batch

        def lanes(value: Any) -> Any:
            if self.kind == "axis":  # lanes in another order
                return value[::-1] if np.ndim(value) else value
            return damage(value) if dtype_of(value).kind != "b" else ~value

        def wrapped(*args: Any) -> Any:
            out = batch(*args)
            wrong = tuple(map(lanes, out)) if isinstance(out, (tuple, list)) else lanes(out)
            return self._noted(out, wrong)

        primitive.batch = wrapped


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def _tuple(values: Any) -> tuple[Any, ...]:
    return tuple(values) if isinstance(values, (tuple, list)) else (values,)


def _masks(primitive: Any) -> list[tuple[int, Any]]:
    return list(enumerate(primitive.pushes))


@contextmanager
def restored(primitives: Iterable[Primitive]) -> Iterator[None]:
    """Whatever happens to the rules of these primitives meanwhile is undone."""
    kept = [(each, slot, getattr(each, slot)) for each in primitives for slot in _slots(each)]
    try:
        yield
    finally:
        for each, slot, value in kept:
            setattr(each, slot, value)


def _slots(primitive: Any) -> list[str]:
    names = ["jvp", "vjp", "batch"]
    if hasattr(primitive, "pushes"):
        names.append("pushes")
    if isinstance(primitive, HigherOrder):
        names += ["push", "trace"]
    return [*names, "rules"] if hasattr(primitive, "rules") else names


def _among_tracked(mask: int, place: int) -> int | None:
    """The position of an argument among those in a mask."""
    if not mask >> place & 1:
        return None
    return (mask & ((1 << place) - 1)).bit_count()


def primitives() -> dict[str, Primitive]:
    """All primitives by name; two of one name are told apart by a number.

    Most are names of a module. Those of ufuncs are in the table of ufuncs, or called by a function there,
    and those of a family are made when they are first needed.
    """
    for module in pkgutil.walk_packages(functrans.__path__, "functrans."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found: dict[str, Primitive] = {}
    seen = set()
    modules = [sys.modules[name] for name in sorted(sys.modules) if name.startswith("functrans.")]
    values = [each for module in modules for held in vars(module).values() for each in _in(held)]
    for value in [*values, *(family(k) for family in FAMILIES for k in range(3))]:
        if isinstance(value, Primitive) and id(value) not in seen:
            seen.add(id(value))
            unique, k = value.name, 2
            while unique in found:
                unique, k = f"{value.name}#{k}", k + 1
            found[unique] = value
    return found


def _in(value: Any) -> list[Any]:
    """The values of a global name of a module: the value, those of a table, or those that a function uses."""
    if isinstance(value, dict):
        return [each for entry in value.values() for each in _in(entry)]
    if isinstance(value, FunctionType):
        return [cell.cell_contents for cell in value.__closure__ or ()]
    return [value]


class Recorder:
    """Notes which rules are used: names of (primitive, slot, place of an argument).

    A rule that does nothing but refuse, since there is no derivative, is in `refused`.
    """

    def __init__(self, primitives: dict[str, Primitive]) -> None:
        self.used: set[Place] = set()
        self.refused: set[tuple[str, str]] = set()
        for name, primitive in primitives.items():
            self._watch(name, primitive)

    def _note(self, name: str, slot: str, flags: Any) -> None:
        self.used.update((name, slot, k) for k, flag in enumerate(flags) if flag)

    @contextmanager
    def _noted(self, name: str, slot: str, flags: Any) -> Iterator[None]:
        """Note what is used meanwhile, or that it refuses."""
        try:
            yield
        except MissingRuleError:
            self.refused.add((name, slot))
            raise
        self._note(name, slot, flags)

    def _watch(self, name: str, primitive: Any) -> None:
        batch = primitive.batch

        def watched_batch(*args: Any) -> Any:
            self._note(name, "batch", [True])
            return batch(*args)

        primitive.batch = watched_batch
        if isinstance(primitive, HigherOrder):
            return self._watch_functions(name, primitive)
        if hasattr(primitive, "pushes"):
            flags = _flowing(primitive.pushes)
            primitive.pushes = tuple(
                self._noting(name, "jvp", flags(mask), push)
                for mask, push in enumerate(primitive.pushes)
            )
        elif primitive.jvp is not None:
            jvp = primitive.jvp

            def watched_jvp(out: Any, args: Any, tangents: Any, params: Any) -> Any:
                with self._noted(name, "jvp", [t is not None for t in tangents]):
                    return jvp(out, args, tangents, params)

            primitive.jvp = watched_jvp
        if hasattr(primitive, "rules"):
            flags = _flowing(primitive.rules)
            primitive.rules = tuple(
                rule and tuple(self._noting(name, "vjp", flags(mask), part) for part in rule)
                for mask, rule in enumerate(primitive.rules)
            )
        if primitive.vjp is not None and not hasattr(primitive, "pushes"):
            vjp = primitive.vjp

            def watched_vjp(mask: int, out: Any, args: Any, params: Any) -> Any:
                with self._noted(name, "vjp", _bits(mask)):
                    return vjp(mask, out, args, params)

            primitive.vjp = watched_vjp
        return None

    def _watch_functions(self, name: str, primitive: Any) -> None:
        push, trace = primitive.push, primitive.trace

        def watched_push(args: Any, tangents: Any, params: Any) -> Any:
            with self._noted(name, "jvp", []):
                outs, pushed = push(args, tangents, params)
            self._note(name, "jvp", [t is not None for t in pushed])
            return outs, pushed

        def watched_trace(mask: int, args: Any, params: Any) -> Any:
            with self._noted(name, "vjp", []):
                outs, pull, saved = trace(mask, args, params)
            self._note(name, "vjp", _bits(mask) if pull is not None else [])
            return outs, pull, saved

        primitive.push, primitive.trace = watched_push, watched_trace

    def _noting(self, name: str, slot: str, flags: list[bool], rule: Any) -> Any:
        if rule is None:
            return None

        def watched(*args: Any) -> Any:
            with self._noted(name, slot, flags):
                return rule(*args)

        watched.__dict__.update(getattr(rule, "__dict__", {}))
        return watched


@contextmanager
def recording(primitives: dict[str, Primitive]) -> Iterator[Recorder]:
    """Notes the rules that are used meanwhile."""
    with restored(primitives.values()):
        yield Recorder(primitives)


def _flowing(table: tuple[Any, ...]) -> Callable[[int], list[bool]]:
    """The arguments in a mask through which a derivative flows: those that have a rule."""
    return lambda mask: [bit and table[1 << k] is not None for k, bit in enumerate(_bits(mask))]


def _bits(mask: int) -> list[bool]:
    return [bool(mask >> k & 1) for k in range(mask.bit_length())]


class Check:
    """A plugin of pytest that runs the collected tests first as they are, and then against mutations."""

    def __init__(
        self, sample: int | None, seed: int, kinds: list[str], only: str, examples: int
    ) -> None:
        self.primitives = {
            name: each for name, each in primitives().items() if re.search(only, name)
        }
        self.sample = sample
        self.seed = seed
        self.kinds = kinds
        self.examples = examples
        self.killed: dict[Mutation, str] = {}
        self.survivors: dict[Mutation, list[str]] = {}
        self.harmless: dict[Mutation, list[str]] = {}  # the rule gives zero wherever it is used
        self.unused: list[tuple[str, str]] = []
        self.refused: set[tuple[str, str]] = set()

    def pytest_sessionstart(self) -> None:
        # Found is found: no need to make examples smaller.
        settings.register_profile(
            "mutation",
            settings.get_profile("functrans"),
            phases=[Phase.explicit, Phase.generate],
            max_examples=self.examples,
        )
        settings.load_profile("mutation")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: Any) -> bool:
        users = self._recorded(session.items)
        mutations = [
            Mutation(name, self.primitives[name], slot, place, kind)
            for name, slot, place in sorted(users)
            for kind in self.kinds
        ]
        self.unused = [
            (name, slot)
            for name, primitive in self.primitives.items()
            for slot in _rules_of(primitive)
            if (name, slot) not in self.refused and not any(u[:2] == (name, slot) for u in users)
        ]
        if self.sample is not None:
            count = min(self.sample, len(mutations))
            mutations = random.Random(self.seed).sample(mutations, count)
        for k, mutation in enumerate(mutations):
            key = mutation.name, mutation.slot, mutation.place
            self._try(mutation, users[key])
            if k % 50 == 49:
                print(f"{k + 1} of {len(mutations)}, {len(self.survivors)} survive", flush=True)
        return True

    def _recorded(self, items: list[Any]) -> Users:
        """For each rule the tests that use it, the fastest first."""
        users: dict[Place, list[tuple[float, Any]]] = {}
        with recording(self.primitives) as recorder:
            for item in items:
                recorder.used.clear()
                started = perf_counter()
                if message := _failure(item):
                    raise AssertionError(f"{item.nodeid} fails without any mutation: {message}")
                seconds = perf_counter() - started
                for rule in recorder.used:
                    users.setdefault(rule, []).append((seconds, item))
        self.refused = recorder.refused
        return {
            rule: [item for _, item in sorted(tests, key=lambda test: test[0])]
            for rule, tests in users.items()
        }

    def _try(self, mutation: Mutation, items: list[Any]) -> None:
        chosen = _varied(items)[:TRIES]
        with mutation.applied():
            for item in chosen:
                if message := _failure(item):
                    self.killed[mutation] = f"{item.nodeid}: {message.strip().splitlines()[-1]}"
                    return
        names = [item.nodeid for item in chosen]
        if mutation.effects <= {False}:
            self.harmless[mutation] = names
        else:
            self.survivors[mutation] = names
            print(f"survives: {mutation}", flush=True)


def _varied(items: list[Any]) -> list[Any]:
    """The first of each test function, then the second, and so on."""
    turns: dict[str, int] = {}
    keyed = []
    for place, item in enumerate(items):
        turn = turns[item.originalname] = turns.get(item.originalname, 0) + 1
        keyed.append((turn, place, item))
    return [item for _, _, item in sorted(keyed, key=lambda entry: entry[:2])]


def _rules_of(primitive: Any) -> list[str]:
    if isinstance(primitive, HigherOrder):
        return ["jvp", "vjp", "batch"]
    if isinstance(primitive, Elementwise):
        # They share one batching rule, and most lanes need none: NumPy broadcasts.
        return [slot for slot in ("jvp", "vjp") if getattr(primitive, slot) is not None]
    return [slot for slot in ("jvp", "vjp", "batch") if getattr(primitive, slot) is not None]


def _failure(item: Any) -> str:
    """The message of a test if it fails now; it may have run before."""
    item._initrequest()
    reports = runtestprotocol(item, log=False, nextitem=None)
    return "\n".join(str(report.longrepr) for report in reports if report.failed)


def check(
    files: list[str],
    keywords: str = "",
    sample: int | None = None,
    seed: int = 0,
    kinds: list[str] | None = None,
    only: str = "",
    examples: int = 3,
) -> Check:
    """Run the check in this process."""
    plugin = Check(sample, seed, kinds or list(DAMAGES), only, examples)
    arguments = [str(ROOT / name) for name in files]
    arguments += ["-o", "addopts=", "-p", "no:xdist", "-p", "no:cacheprovider", "-q"]
    pytest.main([*arguments, "-k", keywords] if keywords else arguments, plugins=[plugin])
    return plugin


def main() -> int:
    parser = argparse.ArgumentParser(description="Break every rule, and check that a test fails.")
    parser.add_argument("--files", nargs="*", default=NET)
    parser.add_argument("-k", dest="keywords", default="", help="which tests to run, as for pytest")
    parser.add_argument("--only", default="", help="primitives whose name matches this pattern")
    parser.add_argument("--kinds", nargs="*", default=list(DAMAGES), choices=list(DAMAGES))
    parser.add_argument("--examples", type=int, default=3, help="examples per test for hypothesis")
    parser.add_argument("--sample", type=int, help="try this many random mutations")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", action="store_true", help="show which test detects each mutation")
    options = vars(parser.parse_args())
    show = options.pop("show")
    found = check(**options)
    if show:
        for mutation, by in found.killed.items():
            print(f"{mutation}: {by}")
    print(
        f"{len(found.killed)} mutations are detected, {len(found.survivors)} survive, "
        f"{len(found.harmless)} change nothing"
    )
    for mutation in found.harmless:
        print(f"changes nothing: {mutation}")
    for mutation, tried in found.survivors.items():
        print(f"survives: {mutation}; tests that use it: {', '.join(tried[:3])}")
    if found.unused:
        print("rules that no test uses:", ", ".join(f"{n}.{s}" for n, s in sorted(found.unused)))
    return 1 if found.survivors else 0


if __name__ == "__main__":
    sys.exit(main())
