"""The judge of random cases: each result is compared with at least two independent answers.

It works by induction over the layers of a stack. The result of the top layer is compared with one computed
from the layer below using loops and differences; the layer below is a separate case. If the order of the
derivatives is low, the whole stack is also computed numerically, without the library. In addition, forward
mode is compared with reverse mode, and eager evaluation with graphs, generated code, machine code, and other
libraries.

Tolerances only allow for rounding. If a comparison fails, the answer is computed again at slightly perturbed
arguments: if that changes the answer as much, the case is too ill-conditioned for this oracle to decide.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from functrans.core.errors import MissingRuleError
from tools.fuzz.nests import is_float, leaves, mapped, structure
from tools.fuzz.numeric import NOT_ANALYTIC, Numeric
from tools.fuzz.peers import PEERS, NotExpressibleError
from tools.fuzz.programs.choosing import Chooser
from tools.fuzz.programs.layers import Derivative, Layer
from tools.fuzz.programs.program import STAGING
from tools.fuzz.programs.stack import Stack

# How often, in percent, a case is compared with slower oracles.
RATES = {"jit numpy": 4.0, "source": 1.0, "jit native": 0.6, "jax": 0.3, "torch": 0.3}
_TOLERANCE = 1e-9
_SHAKES = 5  # the number of perturbations to test how certain a disagreeing oracle is
_SLOW = 6e-3

Reference = Callable[..., Any]


class DisagreementError(AssertionError):
    """An oracle disagrees."""

    def __init__(self, oracle: str, message: str) -> None:
        super().__init__(f"{oracle}: {message}")
        self.oracle = oracle


class Judge:
    """Judges the top layer of a stack. `agreed` names the oracles that agree; `undecided`, the others.

    `rates` says how often, in percent, the slower oracles are used. If that is always, all oracles are.
    """

    def __init__(self, stack: Stack, chooser: Chooser, rates: dict[str, float] = RATES) -> None:
        self.stack = stack
        self.chooser = chooser
        self.rates = rates
        self.thorough = min(rates.values()) >= 100
        self.library = stack.library
        self.agreed: list[str] = []
        self.undecided: list[str] = []
        self.level = len(stack.layers)
        self.layer: Layer = stack.layers[-1]
        self.args = stack.args
        self.staged = STAGING not in stack.program.lacks

    def judge(self) -> None:
        """Run the top layer, and compare its result in all ways; raises a `DisagreementError`."""
        f = self.stack.wide[f"f{self.level}"]
        before = mapped(np.copy, self.args)
        started = perf_counter()
        result = self._run("running", f, self.args)
        self.seconds = perf_counter() - started
        for one, other in zip(leaves(before), leaves(self.args), strict=True):
            if not np.array_equal(one, other):
                raise DisagreementError("arguments", "the caller's arrays were changed")
        self.result = result
        self._compare_dtypes(result)
        self.stack.result = self._in_single_precision() if self.stack.program.narrow else result
        if self.layer.derivative is not None:
            self._judge_derivative(self.layer.derivative)
        else:
            self._judge_same()
        self._more()

    # How results are compared.

    def _run(self, what: str, function: Reference, args: Any) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return function(*args)
        except DisagreementError:
            raise
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
            raise DisagreementError(f"error in {what}", message) from error

    def compare(
        self, oracle: str, actual: Any, reference: Reference, tolerance: float = _TOLERANCE
    ) -> None:
        """Compare with the result of a reference for the arguments of the top layer."""
        expected = self._run(oracle, reference, self.args)
        self._settle(oracle, actual, expected, tolerance, reference)

    def _settle(
        self,
        oracle: str,
        actual: Any,
        expected: Any,
        tolerance: float,
        reference: Reference,
        floor: float = 1e-2,
    ) -> None:
        worst, message = distance(actual, expected, floor)
        if worst <= tolerance:
            self.agreed.append(oracle)
            return
        if np.isfinite(worst):
            # Rounding is about 1e-16: how far does a perturbation 1e5 times as large move the answer?
            generator = np.random.default_rng(0)
            for _ in range(_SHAKES):
                moved = mapped(lambda leaf: _shaken(leaf, generator, tolerance / 100), self.args)
                noise, _ = distance(self._run(oracle, reference, moved), expected, floor)
                if worst <= tolerance + noise:
                    self.undecided.append(oracle)
                    return
        raise DisagreementError(oracle, message)

    def _compare_dtypes(self, result: Any) -> None:
        wrong = [leaf for leaf in leaves(result) if np.asarray(leaf).dtype == np.float32]
        if wrong:
            raise DisagreementError("dtypes", "a result of double precision became single")

    # Layers that compute the same as the layer below, for all lanes.

    def _judge_same(self) -> None:
        below = self.stack.wide[f"f{self.level - 1}"]
        lanes = self.layer.lanes
        if lanes is None:
            self.compare("the layer below", self.result, below)
        else:
            loop = self.stack.numeric().vmap(below, lanes.in_axes, lanes.out_axis)
            self.compare("loop over lanes", self.result, loop)
        few = self.stack.order == 0 or (self.stack.order == 1 and self._input_size() <= 24)
        if few and (self.stack.order == 0 or self.thorough or self.chooser.chance(50)):
            self._by_numbers()
        if not few or self.chooser.chance(50) or len(self.agreed) < 2:
            self._on_top()

    def _input_size(self) -> int:
        return sum(np.size(leaf) for leaf in leaves(self.args) if is_float(leaf))

    def _by_numbers(self) -> None:
        """Compute the whole stack without the library."""
        f = self.stack.plain[f"f{self.level}"]
        self.stack.plain["ft"].exact = True
        expected = self._run("numbers alone", f, self.args)
        if self.stack.plain["ft"].exact:
            return self._settle("numbers alone", self.result, expected, _TOLERANCE, f)
        finer = self.stack.space(np, self.stack.numeric(1e-3))[f"f{self.level}"]
        other = self._run("numbers alone", finer, self.args)
        error, _ = distance(other, expected)
        if error > 1e-3:
            self.undecided.append("numbers alone")
        else:
            self._settle("numbers alone", self.result, other, 2 * error + 1e-7, finer)
        return None

    def _on_top(self) -> None:
        """Compute the same result with one more transform around it."""
        f, library = self.stack.wide[f"f{self.level}"], self.library
        floats = [k for k, arg in enumerate(self.args) if all(map(is_float, leaves(arg)))]

        def of_floats(*values: Any, args: Any) -> Any:
            full = list(args)
            for k, value in zip(floats, values, strict=True):
                full[k] = value
            return f(*full)

        def recorded(*args: Any) -> Any:
            function = lambda *values: of_floats(*values, args=args)
            return library.vjp(function, *(args[k] for k in floats))[0]

        def moving(*args: Any) -> Any:
            primals = tuple(args[k] for k in floats)
            tangents = mapped(np.ones_like, primals)
            return library.jvp(lambda *values: of_floats(*values, args=args), primals, tangents)[0]

        ways = {"tape": recorded, "dual": moving}
        if self.staged:
            ways["graph"] = lambda *args: library.make_graph(f)(*args)(*args)
        for name in ways if self.thorough else [self.chooser.pick(list(ways))]:
            self.compare(name, self.result, ways[name])

    # Derivatives.

    def _judge_derivative(self, derivative: Derivative) -> None:
        tangents = self.stack.wide[derivative.tangents]
        result = self.result
        wide_base = eval(derivative.of, self.stack.wide)
        if derivative.with_value:
            value, result = result
            self.compare("value", value, wide_base)
        pushed = contracted(derivative, result, tangents)
        if self.thorough or self.seconds < _SLOW or self.stack.order == derivative.order:
            self._by_differences(derivative, pushed, tangents)
        self._other_mode(derivative, pushed, tangents)
        if self.thorough or len(self.agreed) - derivative.with_value < 2:
            self._on_top()

    def _of_chosen(self, base: Reference, derivative: Derivative, args: Any) -> Reference:
        def function(*values: Any) -> Any:
            full = list(args)
            for k, value in zip(derivative.positions, values, strict=True):
                full[k] = value
            return base(*full)

        return function

    def _by_differences(self, derivative: Derivative, pushed: Any, tangents: Any) -> None:
        # If no layer below is a derivative, the function itself runs without the library.
        first = self.stack.order == derivative.order == 1
        space = self.stack.plain if first else self.stack.wide
        base = eval(derivative.of, space)

        def along(method: Callable[..., Any]) -> Reference:
            return lambda *args: method(
                self._of_chosen(base, derivative, args),
                tuple(args[k] for k in derivative.positions),
                tangents,
            )

        numeric = self.stack.numeric()
        if first and numeric.analytic:
            try:
                expected = along(numeric.complex_step)(*self.args)
            except NOT_ANALYTIC:
                pass
            else:
                reference = along(numeric.complex_step)
                return self._settle("complex step", pushed, expected, _TOLERANCE, reference)
        for step in (4e-3, 5e-4, 6e-5):
            method = Numeric(step=step).extrapolated
            value, coarser = self._run("differences", along(method), self.args)
            error, _ = distance(value, coarser)
            if error < 1e-4:
                reference = along(lambda *a, method=method: method(*a)[0])
                return self._settle("differences", pushed, value, error + 1e-7, reference)
        self.undecided.append("differences")
        return None

    def _other_mode(self, derivative: Derivative, pushed: Any, tangents: Any) -> None:
        library = self.library
        base = eval(derivative.of, self.stack.wide)

        def forward(*args: Any) -> Any:
            primals = tuple(args[k] for k in derivative.positions)
            return library.jvp(self._of_chosen(base, derivative, args), primals, tangents)[1]

        def backward(*args: Any) -> Any:
            primals = tuple(args[k] for k in derivative.positions)
            out, pull = library.vjp(self._of_chosen(base, derivative, args), *primals)
            return inner(pull(weights(out)), tangents)

        if derivative.reverse:
            self.compare("forward mode", pushed, forward)
        else:
            self.compare("reverse mode", inner(weights(pushed), pushed), backward)

    # Oracles that are used less often.

    def _more(self) -> None:
        library, f = self.library, self.stack.wide[f"f{self.level}"]
        if self.staged:
            staged = {
                "jit numpy": lambda *args: library.jit(f, backend="numpy")(*args),
                "jit native": lambda *args: library.jit(f, backend="native")(*args),
                "source": lambda *args: library.source(f)(*args).function(*args),
            }
            for name, reference in staged.items():
                if self.chooser.chance(self.rates[name]):
                    try:
                        self.compare(name, self.result, reference)
                    except DisagreementError as error:
                        # Not every function can be written as plain source.
                        if not isinstance(error.__cause__, MissingRuleError):
                            raise
                        self.undecided.append(name)
        for name, peer in PEERS.items():
            if name not in self.stack.program.lacks and self.chooser.chance(self.rates[name]):
                try:
                    self._ask(name, peer(self.stack))
                except NotExpressibleError:
                    self.undecided.append(name)

    def _ask(self, name: str, answer: Callable[[str, Any], Any]) -> None:
        def reference(*args: Any) -> Any:
            return answer(f"f{self.level}", args)

        self._settle(name, self.result, reference(*self.args), 1e-8, reference)

    def _in_single_precision(self) -> Any:
        """Compare the result in the precision of the program with that in double precision."""
        name = f"f{self.level}"
        result = self._run("single precision", self.stack.own[name], self.stack.points[-1][0])
        wide = self.stack.wide[name]
        self._settle("single precision", result, self.result, 3e-4, wide, floor=1.0)
        expected = dtypes_of(self.stack)
        if expected is not None:
            found = [np.asarray(leaf).dtype for leaf in leaves(result)]
            if found != expected:
                raise DisagreementError("dtypes", f"{found} instead of {expected}")
        return result


def dtypes_of(stack: Stack) -> list[Any] | None:
    """The dtypes that the result of a stack must have in single precision; None if there is no rule."""
    space = stack.space(np, stack.numeric(), wide=False)
    with np.errstate(all="ignore"):
        below = [np.asarray(leaf).dtype for leaf in leaves(space["f0"](*stack.points[0][0]))]
    for layer in stack.layers:
        derivative = layer.derivative
        if derivative is None:
            continue
        if derivative.form == "pushed" and derivative.order == 1:
            below = below * (2 if derivative.with_value else 1)
        elif derivative.form == "gradient" and not derivative.with_value:
            args = [stack.points[0][0][k] for k in derivative.positions]
            below = [np.asarray(leaf).dtype for leaf in leaves(args)]
        else:
            return None
    return below


def distance(actual: Any, expected: Any, floor: float = 1e-2) -> tuple[float, str]:
    """How far apart two results are, relative to the size of each leaf, and where they differ most.

    The size of a leaf counts as at least `floor`, because small numbers may be rounding errors of larger
    ones. The distance is infinite if structures or shapes differ.
    """
    if structure(actual) != structure(expected):
        return np.inf, f"{structure(actual)} instead of {structure(expected)}"
    worst, message = 0.0, ""
    for k, (one, other) in enumerate(zip(leaves(actual), leaves(expected), strict=True)):
        if np.shape(one) != np.shape(other):
            return np.inf, f"leaf {k} has shape {np.shape(one)} instead of {np.shape(other)}"
        if np.size(one) == 0:
            continue
        gap = np.abs(np.asarray(one, complex) - np.asarray(other, complex))
        scale = floor + np.max(np.abs(other))
        own = np.max(gap) / scale
        if not own <= worst:  # or nan
            worst = float(own) if np.isfinite(own) else np.inf
            message = f"leaf {k} is\n{one}\ninstead of\n{other}\nrelative distance {own:.3g}"
    return worst, message


def _shaken(leaf: Any, generator: np.random.Generator, size: float) -> Any:
    return leaf * (1 + size * generator.standard_normal(np.shape(leaf))) if is_float(leaf) else leaf


def weights(nest: Any) -> Any:
    """Fixed weights of the same structure, to reduce it to one number."""
    return mapped(lambda leaf: np.cos(1.0 + np.arange(np.size(leaf))).reshape(np.shape(leaf)), nest)


def inner(left: Any, right: Any) -> Any:
    pairs = zip(leaves(left), leaves(right), strict=True)
    return sum((np.sum(np.asarray(a) * np.asarray(b)) for a, b in pairs), np.float64(0))


def contracted(derivative: Derivative, result: Any, tangents: Any) -> Any:
    """The derivative along the direction, computed from the form that the result has."""
    if derivative.form == "pushed":
        return result
    if derivative.form == "gradient":
        return inner(result, tangents)
    directions = leaves(tangents)

    def blocks(nest: Any) -> Any:
        """A Jacobian has a tuple like the inputs in place of each leaf of the output."""
        if structure(nest) == structure(tangents):
            rows = zip(leaves(nest), directions, strict=True)
            return sum(np.tensordot(j, t, axes=np.ndim(t)) for j, t in rows)
        if isinstance(nest, dict):
            return {key: blocks(nest[key]) for key in sorted(nest)}
        return type(nest)([blocks(part) for part in nest])

    return blocks(result)
