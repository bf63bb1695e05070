"""Probes of aliasing, which assign to arguments and results to see which of them share memory.

A result of a transformed, staged or compiled function shares memory with an argument or another result only
where that of the plain function does; and a program that assigns has one meaning, traced or not.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from tools.fuzz import laws
from tools.fuzz.nests import written
from tools.fuzz.probes.probe import Probe, RejectedError, indented, probe
from tools.fuzz.probes.sharing import (
    ASSIGNING,
    FILLED,
    FILLING,
    HANDED_ON,
    HELPERS,
    IDENTITIES,
    RESHAPED,
    SEVERAL,
    SHAPED,
    WRAPPERS,
)
from tools.fuzz.programs.choosing import Chooser

# These run once, outside of transforms, or have no derivative.
_EAGER_ONLY = ("source", "stopped", "profiled", "unmapped", "native")

_INDICES = ["[0]", "[...]", "[-1]", "[1:]", "[::2]", "[:1]"]
_CHANGES = ["= 5.0", "+= 1.0", "*= 2.0", "= 3.0 * {b}[0]", "-= 0.5 * {b}"]
_WHOLE_CHANGES = ["+= 1.5", "*= 3.0", "-= 0.5 * {b}"]
# Elementwise functions with their derivatives.
_CURVES = [("a * a", "2.0 * a"), ("a", "1.0"), ("np.sin(a)", "np.cos(a)"), ("a * 1.0", "1.0")]
_LATE = [
    "lambda f, slope, a: (lambda pull: lambda t: pull(t)[0])(ft.vjp(f, a)[1])",
    "lambda f, slope, a: ft.linearize(f, a)[1]",
    "lambda f, slope, a: (lambda pull: lambda t: pull(t)[0])(ft.vjp(ft.checkpoint(f), a)[1])",
    'lambda f, slope, a: (lambda pull: lambda t: pull(t)[0])(ft.vjp(ft.jit(f, backend="numpy"), a)[1])',
]


def write(chooser: Chooser) -> Probe:
    """Assignments within a program under a transform, or to the results of a call."""
    return chooser.weighted([(6, _within), (2, _outside), (2, _handed_on)])(chooser)


# A program that assigns.


_NAME = re.compile(r"\w+")


class _Draft:
    """A program being written; its lines are run in all readings of the wrappers, so that shapes fit."""

    def __init__(self, names: list[str], shape: tuple[int, ...]) -> None:
        self.lines: list[str] = []
        self.wrappers: dict[str, str] = {}
        self.derivatives: dict[str, str] = {}
        self.names = list(names)
        self.recent = list(names)  # the names that the last line is about
        size = int(np.prod(shape))
        self.values = {
            name: np.round(0.3 + 0.37 * k + 0.41 * np.arange(size), 2).reshape(shape)
            for k, name in enumerate(names)
        }
        self.scopes = [{"np": np, **laws.copied(self.values)} for _ in laws.READINGS]

    def use(self, name: str, text: str) -> None:
        """Register a wrapper."""
        self.wrappers[name] = text
        for scope, reading in zip(self.scopes, laws.READINGS, strict=True):
            scope[name] = reading

    def use_derivative(self, name: str, text: str) -> None:
        self.derivatives[name] = text
        for scope in self.scopes:
            scope[name] = laws.recorded

    def shape(self, name: str) -> tuple[int, ...]:
        return np.shape(self.scopes[0][name])

    def add(self, text: str, *names: str) -> None:
        for scope in self.scopes:
            try:
                exec(text, scope)
            except (ValueError, IndexError, TypeError) as error:
                raise RejectedError from error
        self.lines.append(text)
        fit = [n for n in names if all(_is_array(scope[n]) for scope in self.scopes)]
        self.names += [name for name in fit if name not in self.names]
        words = set(_NAME.findall(text))
        self.recent = [name for name in self.names if name in words] or self.recent

    def new(self, letter: str = "v") -> str:
        return f"{letter}{len(self.lines)}"


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim > 0 and value.size > 0


def _within(chooser: Chooser) -> Probe:
    shape = chooser.pick([(3,), (2, 2), (2, 3), (1,)])
    parameters = chooser.pick([["x"], ["x", "y"]])
    draft = _Draft(parameters, shape)
    features: list[str] = []
    # A call is followed by an assignment, which shows which arrays share memory.
    for kind in (_call, *[None] * chooser.below(5), _change):
        chosen = kind or chooser.weighted(
            [(4, _call), (5, _change), (1, _plain), (1, _late), (1, _fill)]
        )
        try:
            features += chosen(draft, chooser)
        except RejectedError:
            continue
    if not draft.wrappers and not draft.derivatives:
        raise RejectedError
    result = f"({', '.join(draft.names)},)"
    body = "\n".join([*draft.lines, f"return {result}"])
    head = ", ".join([*draft.wrappers, *draft.derivatives])
    lines = [HELPERS[name] for name in draft.wrappers if name in HELPERS]
    lines += [f"def program({head}):", f"    def f({', '.join(parameters)}):", indented(body, 2)]
    lines += ["", "    return f", "", ""]
    lines.append(f"args = {written(tuple(draft.values[name] for name in parameters))}")
    looks = [("eager", "lambda ft, f: f(*laws.copied(args))")]
    if not set(draft.wrappers) & set(_EAGER_ONLY):
        looks.append(chooser.pick(_LOOKS))
        features.append(f"under {looks[-1][0]}")
    lines += ["laws.one_meaning(", "    ft,", "    program,"]
    lines += ["    [", *(f"        {text}," for text in draft.wrappers.values()), "    ],"]
    if draft.derivatives:
        lines += ["    [", *(f"        {text}," for text in draft.derivatives.values()), "    ],"]
    lines += [*(f"    {name}={look}," for name, look in looks), ")"]
    return probe("\n".join(lines), *features)


_LOSS = "lambda *a: sum(np.sum(np.sin(b)) for b in f(*a))"
_ALL = "tuple(range(len(args)))"
_TANGENTS = "laws.copied(tuple(0.5 * a for a in args))"
_BATCH = "*(np.stack([a, 1.5 * a]) for a in args)"
_LOOKS = [
    ("vjp", "lambda ft, f: ft.vjp(f, *args)[0]"),
    ("jvp", f"lambda ft, f: ft.jvp(f, args, {_TANGENTS})"),
    ("grad", f"lambda ft, f: ft.grad({_LOSS}, argnums={_ALL})(*args)"),
    ("vmap", f"lambda ft, f: ft.vmap(f)({_BATCH})"),
    ("jit", 'lambda ft, f: ft.jit(f, backend="numpy")(*args)'),
    ("graph", "lambda ft, f: ft.make_graph(f)(*args)(*args)"),
    ("linearize", f"lambda ft, f: ft.linearize(f, *args)[1](*{_TANGENTS})"),
    ("checkpoint", f"lambda ft, f: ft.jvp(ft.checkpoint(f), args, {_TANGENTS})"),
    ("checkpointed_grad", f"lambda ft, f: ft.grad(ft.checkpoint({_LOSS}), argnums={_ALL})(*args)"),
    ("vmap_grad", f"lambda ft, f: ft.vmap(ft.grad({_LOSS}, argnums={_ALL}))({_BATCH})"),
    (
        "jit_grad",
        f'lambda ft, f: ft.jit(ft.grad({_LOSS}, argnums={_ALL}), backend="numpy")(*args)',
    ),
    ("vmap_jvp", f"lambda ft, f: ft.vmap(lambda *a: ft.jvp(f, a, a))({_BATCH})"),
    (
        "vjp_vmap",
        "lambda ft, f: ft.vjp(ft.vmap(lambda *a: f(*a)[0]), "
        f"{_BATCH})[1](np.ones_like(ft.vmap(lambda *a: f(*a)[0])({_BATCH})))",
    ),
    ("jacfwd", f"lambda ft, f: ft.jacfwd(lambda *a: f(*a)[-1], argnums={_ALL})(*args)"),
    ("jacrev", f"lambda ft, f: ft.jacrev(lambda *a: f(*a)[-1], argnums={_ALL})(*args)"),
    ("native", 'lambda ft, f: ft.jit(f, backend="native")(*args)'),
]


def _call(draft: _Draft, chooser: Chooser) -> list[str]:
    """A function called through a wrapper."""
    group = chooser.weighted([(10, "any"), (3, "linear"), (3, "state"), (3, "rows")])
    name = chooser.pick(list(WRAPPERS[group]))
    if name == "native" and chooser.chance(80):
        raise RejectedError
    known = dict(draft.wrappers)
    draft.use(name, WRAPPERS[group][name])
    try:
        _write_call(draft, chooser, group, name)
    except RejectedError:
        draft.wrappers = known
        raise
    return [name]


def _write_call(draft: _Draft, chooser: Chooser, group: str, wrapper: str) -> None:
    new, source = draft.new(), chooser.pick(draft.names)
    if group in ("linear", "rows"):
        body = chooser.pick(IDENTITIES)
        return draft.add(f"{new} = {wrapper}(lambda a: {body})({source})", new)
    if group == "state":
        body = chooser.pick(IDENTITIES + SHAPED)
        if _shape_of(body, draft.shape(source)) != draft.shape(source):
            raise RejectedError
        return draft.add(f"{new} = {wrapper}(lambda a: {body})({source})", new)
    form = chooser.below(6)
    if form == 0:
        body = chooser.pick(IDENTITIES + SHAPED + RESHAPED)
        return draft.add(f"{new} = {wrapper}(lambda a: {body})({source})", new)
    if form == 1:
        pair = [f"{new}p", f"{new}q"]
        body = chooser.pick(SEVERAL)
        return draft.add(f"{', '.join(pair)} = {wrapper}(lambda a: {body})({source})", *pair)
    if form == 2:
        lines, value = chooser.pick(ASSIGNING)
        helper = draft.new("h")
        text = f"def {helper}(a):\n{indented(lines)}\n    return {value}"
        return draft.add(f"{text}\n{new} = {wrapper}({helper})({source})", new)
    if form == 3:
        closed = chooser.pick(draft.names)
        body = chooser.pick([closed, f"{closed} * 1.0", f"a * 0.0 + {closed}"])
        return draft.add(f"{new} = {wrapper}(lambda a: {body})({source})", new)
    if form == 4:
        other = chooser.pick(draft.names)
        names, body = chooser.pick([("pq", "b, a"), ("pq", "a * 1.0, b"), ("pqr", "a, b, a")])
        results = [f"{new}{letter}" for letter in names]
        text = f"{', '.join(results)} = {wrapper}(lambda a, b: ({body}))({source}, {other})"
        return draft.add(text, *results)
    body = chooser.pick(IDENTITIES)
    return draft.add(f"{new} = {wrapper}(lambda a: {body})({source})", new)


def _shape_of(body: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of an expression of an array; () for a tuple."""
    try:
        value = eval(body, {"np": np, "a": np.ones(shape)})
    except (ValueError, IndexError, TypeError) as error:
        raise RejectedError from error
    return () if isinstance(value, tuple) else np.shape(value)


def _fill(draft: _Draft, chooser: Chooser) -> list[str]:
    """A function called through a wrapper, which changes the container passed to it."""
    name = chooser.pick(FILLED)
    container, lines, value, place = chooser.pick(FILLING)
    source, other = chooser.pick(draft.names), chooser.pick(draft.names)
    if draft.shape(source) != draft.shape(other):
        raise RejectedError
    known, helper, held = dict(draft.wrappers), draft.new("h"), draft.new("c")
    result, seen = draft.new(), draft.new("s")
    draft.use(name, WRAPPERS["any"][name])
    text = f"def {helper}(a):\n{indented(lines)}\n    return {value}\n"
    text += f"{held} = {container.format(x=source, y=other)}\n{result} = {name}({helper})({held})\n"
    try:
        draft.add(f"{text}{seen} = {held}{place}", result, seen)
    except RejectedError:
        draft.wrappers = known
        raise
    return [name, "a container"]


def _change(draft: _Draft, chooser: Chooser) -> list[str]:
    """An assignment to an array."""
    target = chooser.pick(draft.recent if chooser.below(3) else draft.names)
    other = chooser.pick(draft.names)
    if chooser.chance(25):
        draft.add(f"{target} {chooser.pick(_WHOLE_CHANGES).format(b=other)}")
    else:
        change = chooser.pick(_CHANGES).format(b=other)
        draft.add(f"{target}{chooser.pick(_INDICES)} {change}")
    return []


def _plain(draft: _Draft, chooser: Chooser) -> list[str]:
    """An array that may share memory, made without a wrapper."""
    new, source = draft.new(), chooser.pick(draft.names)
    forms = ["{a}", "{a}[::-1]", "{a} * 2.0", "np.zeros_like({a})", "{a}.copy()", "{a}[:1]"]
    draft.add(f"{new} = {chooser.pick(forms).format(a=source)}", new)
    return []


def _late(draft: _Draft, chooser: Chooser) -> list[str]:
    """A derivative that is used after the arrays were changed."""
    text = chooser.pick(_LATE)
    curve, slope = chooser.pick(_CURVES)
    new, source = draft.new("d"), chooser.pick(draft.names)
    fitting = [name for name in draft.names if draft.shape(name) == draft.shape(source)]
    name = f"late{_LATE.index(text)}"
    draft.use_derivative(name, text)
    draft.add(f"{new} = {name}(lambda a: {curve}, lambda a: {slope}, {source})")
    if chooser.below(3):
        _change(draft, chooser)
    result = draft.new()
    draft.add(f"{result} = {new}({chooser.pick(fitting)})", result)
    return ["late derivative"]


# A call from outside.


def _outside(chooser: Chooser) -> Probe:
    group = chooser.weighted([(10, "any"), (3, "linear"), (3, "state"), (3, "rows")])
    name = chooser.pick(list(WRAPPERS[group]))
    if name == "native" and chooser.chance(70):
        raise RejectedError
    shape = chooser.pick([(3,), (2, 2), (2, 3), (1,), (3, 1), ()])
    constant = ""
    if group in ("linear", "rows"):
        body = chooser.pick(IDENTITIES)
    elif group == "state":
        body = chooser.pick(IDENTITIES + SHAPED)
    elif chooser.chance(25):
        constant = f"c = {written(np.arange(3.0))}\n"
        body = chooser.pick(["c", "c * 1.0", "(a, c)", "(c, c)", "(c[::-1], a)", "c[:1] * 2.0"])
    else:
        body = chooser.pick(IDENTITIES + SHAPED + RESHAPED + SEVERAL)
    if not constant:
        kept = _shape_of(body, shape) == shape
        if (group == "rows" and not shape) or (group == "state" and not kept):
            raise RejectedError
    x = np.round(0.3 + 0.41 * np.arange(int(np.prod(shape))), 2).reshape(shape)
    lines = f"{HELPERS.get(name, '')}\n{constant}f = lambda a: {body}\nx = {written(x)}\n"
    lines += f"laws.own_results(({WRAPPERS[group][name]})(f), f, x)"
    return probe(lines, name, "outside")


def _handed_on(chooser: Chooser) -> Probe:
    """Calls that return an argument, or a computed array, more than once."""
    call = chooser.pick(HANDED_ON)
    if "native" in call and chooser.chance(60):
        raise RejectedError
    shape = chooser.pick([(3,), (2, 2), (3, 3), (1,), (1, 3)])
    x = np.round(0.3 + 0.41 * np.arange(int(np.prod(shape))), 2).reshape(shape)
    text = f"x = {written(x)}\ny = 2.0 * x\nlaws.own_results(lambda x, y: {call}, None, x, y)"
    return probe(text, call, "handed on", definitions=HELPERS)
