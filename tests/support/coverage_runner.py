"""One call of a NumPy function under every transform, and the class that is found by running it.

A call is Python source such as `np.where(b, x, y)`. The names in it that `SAMPLES` knows are its
arguments, and all of them are traced. Values are compared with plain NumPy, derivatives with finite
differences, vmap with a loop. What a call does not do is an error on purpose, which is part of the
answer, or else a mistake, which raises `Mistake`.
"""

from __future__ import annotations

import ast
import copy
import io
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import numpy as np

import functrans as ft
from functrans.core.dispatch import Tracer
from tests.support.oracles import (
    assert_trees_close,
    is_inexact,
    leaves,
    loop_vmap,
    map_leaves,
    numerical_gradient,
    numerical_jvp,
)

LANES = 3
CLOSE = {"rtol": 1e-9, "atol": 1e-11}
NUMERICAL = {"rtol": 1e-6, "atol": 1e-7}
NUMERICAL_SECOND = {"rtol": 1e-5, "atol": 1e-6}


class Mistake(AssertionError):
    """A wrong number, or an error that is not one of functrans' own."""


class NotInThisNumPyError(Exception):
    """A call that plain NumPy refuses: another version takes it."""


# --- what the names in a call stand for -----------------------------------------------------------


def _reals(*shape, low=-1.9, high=1.9):
    """Numbers that no rounding, sorting or branch at 0 or at a half is close to."""

    def sample(rng):
        while True:
            x = rng.uniform(low, high, shape)
            gaps = np.diff(np.sort(x, axis=None))
            if np.all(np.abs(x * 2 - np.rint(x * 2)) > 0.05) and np.all(gaps > 0.02):
                return x

    return sample


def _complexes(*shape):
    parts = _reals(*shape)
    return lambda rng: parts(rng) + 1j * parts(rng)


def _integers(*shape, low, high):
    return lambda rng: rng.integers(low, high, shape)


def _matrix(rng):
    """Well conditioned, with real eigenvalues that are far apart."""
    return np.diag([1.0, 2.5, 4.0]) + rng.uniform(-0.35, 0.35, (3, 3))


SAMPLES: dict[str, Callable] = {
    "t": lambda rng: _reals(1)(rng)[0],
    "v": _reals(4),
    "w": _reals(4),
    "s": lambda rng: np.cumsum(_reals(4, low=0.4, high=1.4)(rng)),  # increasing
    "x": _reals(2, 3),
    "y": _reals(2, 3),
    "o": _reals(2, 3),  # where `out=` goes
    "u": _reals(2, 3, low=-0.9, high=0.9),
    "p": _reals(2, 3, low=0.3, high=2.9),
    "q": _reals(2, 3, low=0.3, high=2.9),
    "g": _reals(2, 3, low=1.1, high=2.9),
    "c": _reals(2, 3, 2),
    "A": _matrix,
    "B": _matrix,
    "z": _complexes(3),
    "Z": _complexes(2, 3),
    "n": _integers(2, 3, low=1, high=9),
    "m": _integers(2, 3, low=1, high=9),
    "k": _integers(4, low=0, high=3),
    "b": lambda rng: rng.permuted([[True, False, True], [False, True, False]], axis=1),
}


@cache
def sample(name: str, lane: int):
    """An argument, the same one in every run."""
    seed = 1000 * list(SAMPLES).index(name) + lane
    value = SAMPLES[name](np.random.default_rng(seed))
    return value


# --- calls ----------------------------------------------------------------------------------------


class Call:
    """The source of a call as a function of its arguments. Its result is a list of numbers.

    The function works on copies. An argument that NumPy changes is part of the result; so is None
    of a function that only changes its argument. What is not a number (a dtype, a string) is left in
    `others` by the last run, to be compared apart.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.__name__ = "f"
        tree = ast.parse(source)
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        self.names = [name for name in SAMPLES if name in used]
        if isinstance(tree.body[-1], ast.Expr):
            tree.body[-1] = ast.Return(tree.body[-1].value)
        template = ast.parse(f"def call({', '.join(self.names)}): pass")
        template.body[0].body = tree.body
        ast.fix_missing_locations(template)
        scope = {"np": np, "copy": copy, "io": io, "os": os}
        exec(compile(template, f"<{source}>", "exec"), scope)
        self.run = scope["call"]
        self.others: list = []
        self.changed: list[int] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            args = self.arguments(0)
            copies = [np.copy(arg)[()] for arg in args]
            try:
                self.run(*copies)
            except Exception as error:
                raise NotInThisNumPyError(f"{source}: {error}") from error
        pairs = enumerate(zip(args, copies, strict=True))
        self.changed = [k for k, (a, b) in pairs if np.asarray(a).tobytes() != b.tobytes()]

    def arguments(self, lane):
        return tuple(sample(name, lane) for name in self.names)

    def __call__(self, *args):
        copies = [arg.copy() for arg in args]
        result = self.run(*copies)
        found = leaves(result) + [copies[k] for k in self.changed]
        self.others = [leaf for leaf in found if not is_number(leaf)]
        return [leaf for leaf in found if is_number(leaf)]


def is_number(leaf):
    if isinstance(leaf, (np.ndarray, np.generic)):
        return leaf.dtype.kind in "biufc"
    return isinstance(leaf, (Tracer, bool, int, float, complex))


# --- the checks -----------------------------------------------------------------------------------


class Check:
    """A call, its arguments, and what plain NumPy makes of them."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.args = call.arguments(0)
        self.expected = call(*self.args)
        self.others = call.others
        self.inexact = [k for k, arg in enumerate(self.args) if is_inexact(arg)]
        self.differentiable = bool(self.inexact) and any(map(is_inexact, self.expected))
        rng = np.random.default_rng(7)
        self.weights = direction(rng, [leaf for leaf in self.expected if is_inexact(leaf)])
        self.point = tuple(self.args[k] for k in self.inexact)
        self.tangents = direction(rng, self.point)
        self.all = tuple(range(len(self.point)))
        self.zero = False  # whether the derivative is 0, when it has been computed

    def of(self, args):
        """The call as a function of the inexact arguments; the rest are those of `args`."""

        def function(*inexact):
            full = list(args)
            for k, value in zip(self.inexact, inexact, strict=True):
                full[k] = value
            return self.call(*full)

        return function

    def loss_of(self, args):
        """A real number that depends on every inexact result, curved even if the call is linear."""
        function = self.of(args)

        def loss(*point):
            outs = [out for out in function(*point) if is_inexact(out)]
            return sum(_part(w, out) for w, out in zip(self.weights, outs, strict=True))

        return loss

    def values(self, actual, expected=None):
        expected = self.expected if expected is None else expected
        assert_trees_close(actual, expected, **CLOSE, dtypes=True)
        assert list(map(repr, self.call.others)) == list(map(repr, self.others))

    def inexact_lanes(self, lane):
        args = self.call.arguments(lane)
        return tuple(args[k] for k in self.inexact)

    # One method for each column of the table.

    def grad(self):
        function = self.of(self.args)
        self.values(ft.vjp(function, *self.point)[0])
        if not self.differentiable:
            return
        loss = self.loss_of(self.args)
        gradient = ft.grad(loss, self.all)(*self.point)
        expected = numerical_gradient(loss, self.point)
        assert_trees_close(gradient, expected, **NUMERICAL)
        self.zero = not any(map(np.any, expected))

    def jvp(self):
        function = self.of(self.args)
        out, pushed = ft.jvp(function, self.point, self.tangents)
        self.values(out)
        if not self.differentiable:
            return
        numerical = numerical_jvp(function, self.point, self.tangents)
        for one, other, leaf in zip(pushed, numerical, self.expected, strict=True):
            if is_inexact(leaf):
                assert_trees_close(one, np.asarray(other), **NUMERICAL)

    def vmap(self):
        lanes = [self.call.arguments(lane) for lane in range(LANES)]
        count = len(self.args)
        mapped_sets = [range(count)] + ([[k] for k in range(count)] if count > 1 else [])
        for mapped in mapped_sets:
            in_axes = tuple(0 if k in mapped else None for k in range(count))
            args = tuple(
                np.stack(column) if k in mapped else column[0]
                for k, column in enumerate(zip(*lanes, strict=True))
            )
            self.same_as_loop(in_axes, args)
        last = tuple(np.stack(column, axis=-1) for column in zip(*lanes, strict=True))
        self.same_as_loop(-1, last)

    def same_as_loop(self, in_axes, args):
        try:
            expected = loop_vmap(self.call, in_axes)(*args)
        except ValueError:  # the lanes have different shapes: vmap must say so
            out = ft.vmap(self.call, in_axes)(*args)
            raise AssertionError(f"vmap stacked lanes that a loop cannot: {out}") from None
        self.values(ft.vmap(self.call, in_axes)(*args), expected)

    def make_graph(self):
        graph = ft.make_graph(self.call)(*self.args)
        graph.check()
        self.values(graph(*self.args))
        others = self.call.arguments(1)
        assert_trees_close(graph(*others), self.call(*others), **CLOSE, dtypes=True)

    def second_order(self):
        gradient = ft.grad(self.loss_of(self.args), self.all)
        expected = numerical_jvp(gradient, self.point, self.tangents)
        _, curvature = ft.jvp(gradient, self.point, self.tangents)
        assert_trees_close(curvature, expected, **NUMERICAL_SECOND)

        def slope(*point):
            return np.real(
                sum(np.sum(t * g) for t, g in zip(self.tangents, gradient(*point), strict=True))
            )

        assert_trees_close(ft.grad(slope, self.all)(*self.point), expected, **NUMERICAL_SECOND)

    def vmap_of_grad(self):
        gradient = ft.grad(self.loss_of(self.args), self.all)
        batch = self.batch()
        assert_trees_close(ft.vmap(gradient)(*batch), loop_vmap(gradient)(*batch), **CLOSE)

    def grad_of_vmap(self):
        loss = self.loss_of(self.args)
        batch = self.batch()
        total = ft.grad(lambda *xs: np.sum(ft.vmap(loss)(*xs)), self.all)(*batch)
        assert_trees_close(total, loop_vmap(ft.grad(loss, self.all))(*batch), **CLOSE)

    def vmap_of_jvp(self):
        """For results without a derivative: their values, two transforms deep."""
        push = lambda *point: ft.jvp(self.of(self.args), point, point)[0]
        batch = self.batch()
        expected = loop_vmap(self.of(self.args))(*batch)
        self.values(ft.vmap(push)(*batch), expected)

    def batch(self):
        columns = zip(*(self.inexact_lanes(lane) for lane in range(LANES)), strict=True)
        return tuple(np.stack(column) for column in columns)

    def checks(self):
        """The checks that mean something for this call, by the name of the transform."""
        either = {"vmap": self.vmap, "make_graph": self.make_graph}
        if not self.inexact:
            return either
        first = {"grad": self.grad, "jvp": self.jvp, **either}
        if not self.differentiable:
            return {**first, "vmap of jvp": self.vmap_of_jvp}
        return {
            **first,
            "second order": self.second_order,
            "vmap of grad": self.vmap_of_grad,
            "grad of vmap": self.grad_of_vmap,
        }


def direction(rng, tree):
    """Random leaves of the same structure, shapes and kinds."""

    def along(leaf):
        real = rng.uniform(-1.0, 1.0, np.shape(leaf))
        return real + 1j * rng.uniform(-1.0, 1.0, np.shape(leaf)) if np.iscomplexobj(leaf) else real

    return map_leaves(along, tree)


def _part(weight, out):
    """Sums of functions of one leaf of the result; nan is a constant."""
    out = np.where(np.isfinite(out), out, 0.0)
    if np.iscomplexobj(out):
        return np.sum((weight * out).real + (out * np.conj(out)).real)
    return np.sum(weight * out + out * out)


# --- the class ------------------------------------------------------------------------------------

DIFFERENTIABLE = "differentiable"
CONSTANT = "constant"
IN_PLACE = "in place"


@dataclass
class Finding:
    """The findings from running a call."""

    source: str
    kind: str  # DIFFERENTIABLE, CONSTANT or IN_PLACE
    errors: dict[str, str] = field(default_factory=dict)  # the error of each transform that has one
    reasons: dict[str, str] = field(default_factory=dict)  # what each of these errors says
    everywhere: bool = False  # whether every transform has an error
    zero: bool = False  # whether the numerical derivative is 0


def examine(source: str) -> Finding:
    """Run a call under every transform."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", ft.errors.DerivativeWarning)
        # Rounding and comparing give constants, and their gradients are zero.
        warnings.filterwarnings("ignore", "the output of .* does not depend on")
        call = Call(source)
        check = Check(call)
        if not call.names:
            raise Mistake(f"{source}: no argument is traced")
        kind = IN_PLACE if call.changed else DIFFERENTIABLE if check.differentiable else CONSTANT
        finding = Finding(source, kind)
        checks = check.checks()
        for transform, run in checks.items():
            try:
                run()
            except Exception as error:
                cause = _on_purpose(error)
                if cause is None:
                    kind = type(error).__name__
                    raise Mistake(f"{source} under {transform}: {kind}: {error}") from error
                finding.errors[transform] = type(cause).__name__
                finding.reasons[type(cause).__name__] = str(cause)
        finding.everywhere = len(finding.errors) == len(checks)
        finding.zero = check.zero
    return finding


def _on_purpose(error):
    """The error of functrans itself, which NumPy may have wrapped in its own; None if there is none."""
    while error is not None:
        if isinstance(error, (ft.errors.FunctransError, ft.errors.DerivativeWarning)):
            return error
        error = error.__cause__
    return None
