"""One call of a SciPy function under every transform, and what running it shows.

A call is Python source such as `linalg.solve(A, b)`. The names in it that `SAMPLES` knows are its arguments,
and all of them are traced. Everything else is as in plain code: SciPy's modules have SciPy's own functions.
Values are compared with plain SciPy, derivatives with finite differences, and vmap with a loop. A wrong
number raises `Mistake`; an error is part of the answer.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from types import FunctionType

import numpy as np
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.optimize
import scipy.signal
import scipy.spatial.distance
import scipy.spatial.transform
import scipy.special
import scipy.stats

import functrans as ft
from functrans.core.dispatch import Tracer
from tests.support.coverage_runner import Mistake
from tests.support.oracles import (
    assert_trees_close,
    central_difference_jvp,
    is_inexact,
    leaves,
    loop_vmap,
)

LANES = 2


class NotInThisSciPyError(Exception):
    """A call that plain SciPy refuses: another version takes it."""


# --- what the names in a call stand for -----------------------------------------------------------


def _reals(*shape, low=-1.9, high=1.9):
    """Numbers that no sorting or rounding is close to."""

    def sample(rng):
        while True:
            x = rng.uniform(low, high, shape)
            gaps = np.diff(np.sort(x, axis=None))
            if np.all(np.abs(x * 2 - np.rint(x * 2)) > 0.02) and np.all(gaps > 0.01):
                return x

    return sample


def _matrix(rng):
    """Well conditioned, with real eigenvalues that are far apart."""
    return np.diag([1.0, 2.5, 4.0]) + rng.uniform(-0.35, 0.35, (3, 3))


SAMPLES: dict[str, Callable] = {
    "t": lambda rng: _reals(1, low=0.1, high=0.9)(rng)[0],  # a number between 0 and 1
    "r": lambda rng: _reals(1, low=0.9, high=1.1)(rng)[0],  # a number near 1
    "x": _reals(6),
    "y": _reals(6),
    "p": _reals(6, low=0.3, high=2.9),
    "u": _reals(6, low=0.05, high=0.95),
    "s": lambda rng: np.cumsum(_reals(6, low=0.4, high=1.4)(rng)),  # increasing
    "b": _reals(3),
    "A": _matrix,
    "B": _matrix,
    "M": _reals(5, 3),
    "N": _reals(4, 3),
    "I": _reals(6, 5),  # an image
    "z": lambda rng: _reals(6)(rng) + 1j * _reals(6)(rng),
    "k": lambda rng: rng.integers(1, 5, 6),
}


@cache
def sample(name: str, lane: int):
    """An argument, the same one in every run."""
    return SAMPLES[name](np.random.default_rng(1000 * list(SAMPLES).index(name) + lane))


# --- calls ----------------------------------------------------------------------------------------

MODULES = {
    "fft": scipy.fft,
    "integrate": scipy.integrate,
    "interpolate": scipy.interpolate,
    "linalg": scipy.linalg,
    "ndimage": scipy.ndimage,
    "optimize": scipy.optimize,
    "signal": scipy.signal,
    "distance": scipy.spatial.distance,
    "transform": scipy.spatial.transform,
    "special": scipy.special,
    "stats": scipy.stats,
}


class Call:
    """The source of a call as a function of its arguments. Its result is a list of numbers."""

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
        scope = {"np": np, **MODULES}
        exec(compile(template, f"<{source}>", "exec"), scope)
        self.run = scope["call"]

    def arguments(self, lane):
        return tuple(sample(name, lane) for name in self.names)

    def numbers(self, *args):
        return numbers_of(self.run(*args))


def numbers_of(result):
    return [leaf for leaf in leaves(result) if _is_number(leaf)]


def _is_number(leaf):
    if isinstance(leaf, (np.ndarray, np.generic)):
        return leaf.dtype.kind in "biufc"
    return isinstance(leaf, (Tracer, bool, int, float, complex))


# --- the checks -----------------------------------------------------------------------------------


class Check:
    """A call, its arguments, and what plain SciPy makes of them."""

    def __init__(self, call: Call, tolerance: float = 1.0) -> None:
        self.call = call
        self.args = call.arguments(0)
        try:
            self.expected = call.numbers(*self.args)
        except Exception as error:
            raise NotInThisSciPyError(f"{call.source}: {type(error).__name__}: {error}") from error
        self.inexact = [k for k, arg in enumerate(self.args) if is_inexact(arg)]
        self.point = tuple(self.args[k] for k in self.inexact)
        self.outputs = [k for k, leaf in enumerate(self.expected) if is_inexact(leaf)]
        self.differentiable = bool(self.inexact) and bool(self.outputs)
        self.all = tuple(range(len(self.point)))
        rng = np.random.default_rng(7)
        self.tangents = [_direction(rng, leaf) for leaf in self.point]
        self.weights = [_direction(rng, self.expected[k]) for k in self.outputs]
        # Solvers and quadrature are exact up to a tolerance, and differences divide it by the step.
        self.values_close = {"rtol": 1e-9 * tolerance, "atol": 1e-10 * tolerance}
        self.slopes_close = {"rtol": 1e-6 * tolerance, "atol": 1e-7 * tolerance}
        self.codes: dict[str, object] = {}

    def named(self, function, name):
        """The function with its own code, so that the hooks of one call do not help another."""
        code = self.codes.setdefault(name, function.__code__.replace(co_name=name))
        return FunctionType(
            code, function.__globals__, name, function.__defaults__, function.__closure__
        )

    def function(self):
        run = self.call.run  # which the transform reads, as it reads what a user's function calls

        def of_the_inexact(*inexact):
            full = list(self.args)
            for k, value in zip(self.inexact, inexact, strict=True):
                full[k] = value
            return numbers_of(run(*full))

        return self.named(of_the_inexact, "of_the_inexact")

    def everything(self):
        run = self.call.run

        def of_all(*args):
            return numbers_of(run(*args))

        return self.named(of_all, "of_all")

    def loss(self):
        """A real number that depends on every inexact result, curved even if the call is linear."""
        function = self.function()

        def weighted(*point):
            out = function(*point)
            return sum(_part(w, out[k]) for w, k in zip(self.weights, self.outputs, strict=True))

        return self.named(weighted, "weighted")

    def same_values(self, actual, expected):
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            assert np.shape(one) == np.shape(other)
            np.testing.assert_allclose(one, other, **self.values_close)

    def grad(self):
        self.same_values(ft.vjp(self.function(), *self.point)[0], self.expected)
        if not self.differentiable:
            return
        loss = self.loss()
        gradient = ft.grad(loss, self.all)(*self.point)
        rng = np.random.default_rng(3)
        # Along each entry of small arguments, and in some directions through all of them.
        for tangents in [
            self.tangents,
            *([_direction(rng, p) for p in self.point] for _ in range(2)),
        ]:
            slope = sum(np.sum(t * g) for t, g in zip(tangents, gradient, strict=True)).real
            np.testing.assert_allclose(slope, self.difference(loss, tangents), **self.slopes_close)
        for k, leaf in enumerate(self.point):
            for position in list(np.ndindex(np.shape(leaf)))[:3]:
                unit = [np.zeros_like(other) for other in self.point]
                unit[k] = np.asarray(unit[k])
                unit[k][position] = 1.0
                slope = np.real(np.asarray(gradient[k])[position])
                np.testing.assert_allclose(slope, self.difference(loss, unit), **self.slopes_close)

    def difference(self, function, tangents):
        return central_difference_jvp(function, self.point, tuple(tangents), 1e-3)

    def jvp(self):
        function = self.function()
        out, pushed = ft.jvp(function, self.point, tuple(self.tangents))
        self.same_values(out, self.expected)
        if self.differentiable:
            numerical = self.difference(function, self.tangents)
            for k in self.outputs:
                np.testing.assert_allclose(pushed[k], numerical[k], **self.slopes_close)

    def vmap(self):
        lanes = [self.call.arguments(lane) for lane in range(LANES)]
        stacked = tuple(np.stack(column) for column in zip(*lanes, strict=True))
        function = self.everything()
        self.same_values(ft.vmap(function)(*stacked), loop_vmap(function)(*stacked))
        if len(stacked) > 1:
            axes = (0,) + (None,) * (len(stacked) - 1)
            args = (stacked[0], *self.args[1:])
            self.same_values(ft.vmap(function, axes)(*args), loop_vmap(function, axes)(*args))

    def jit(self):
        compiled = ft.jit(self.everything())
        for lane in (0, 1):
            args = self.call.arguments(lane)
            self.same_values(compiled(*args), self.call.numbers(*args))

    def second_order(self):
        gradient = ft.grad(self.loss(), self.all)
        curvature = ft.jvp(gradient, self.point, tuple(self.tangents))[1]
        expected = self.difference(gradient, self.tangents)
        close = {key: 10 * value for key, value in self.slopes_close.items()}
        assert_trees_close(curvature, expected, **close)

    def vmap_of_grad(self):
        gradient = ft.grad(self.loss(), self.all)
        lanes = [self.call.arguments(lane) for lane in range(LANES)]
        stacked = tuple(np.stack([lane[k] for lane in lanes]) for k in self.inexact)
        close = {key: 10 * value for key, value in self.values_close.items()}
        assert_trees_close(ft.vmap(gradient)(*stacked), loop_vmap(gradient)(*stacked), **close)

    def checks(self):
        """The checks that mean something for this call, by the name of the transform."""
        checks = {"vmap": self.vmap, "jit": self.jit}
        if self.inexact:
            checks = {"grad": self.grad, "jvp": self.jvp, **checks}
        if self.differentiable:
            checks |= {"second order": self.second_order, "vmap of grad": self.vmap_of_grad}
        return checks


def _direction(rng, leaf):
    real = rng.uniform(-1.0, 1.0, np.shape(leaf))
    return real + 1j * rng.uniform(-1.0, 1.0, np.shape(leaf)) if np.iscomplexobj(leaf) else real


def _part(weight, out):
    """Sums of functions of one leaf of the result; nan and infinity are constants."""
    out = np.where(np.isfinite(out), out, 0.0)
    if np.iscomplexobj(out):
        return np.sum((weight * out).real + (out * np.conj(out)).real)
    return np.sum(weight * out + out * out)


# --- the findings ---------------------------------------------------------------------------------


@dataclass
class Finding:
    """The findings from running a call."""

    source: str
    constant: (
        bool  # whether the result has no derivative: integers, or nothing inexact to depend on
    )
    errors: dict[str, str] = field(default_factory=dict)  # the error of each transform that has one
    everywhere: bool = False  # whether every transform has an error
    messages: dict[str, str] = field(default_factory=dict)


def examine(source: str, tolerance: float = 1.0) -> Finding:
    """Run a call under every transform."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", ft.errors.DerivativeWarning)
        warnings.filterwarnings("ignore", "the output of .* does not depend on")
        call = Call(source)
        if not call.names:
            raise Mistake(f"{source}: no argument is traced")
        check = Check(call, tolerance)
        finding = Finding(source, not check.differentiable)
        checks = check.checks()
        for transform, run in checks.items():
            try:
                run()
            except AssertionError as error:
                raise Mistake(f"{source} under {transform}: {error}") from error
            except Exception as error:
                cause = on_purpose(error)
                finding.errors[transform] = type(cause or error).__name__
                finding.messages[transform] = str(cause or error)
                if cause is None:
                    finding.errors[transform] += " from SciPy"
        finding.everywhere = len(finding.errors) == len(checks)
    return finding


def on_purpose(error):
    """The error of functrans itself, which SciPy may have wrapped in its own; None if there is none."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, (ft.errors.FunctransError, ft.errors.DerivativeWarning)):
            return error
        error = error.__cause__ or error.__context__
    return None
