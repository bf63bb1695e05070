"""check_derivatives: both modes, to any order, against finite differences.

Functions take and return flat lists of floating point arrays. A derivative of order k, contracted with fixed
random vectors, is such a function again; its first derivative is the derivative of order k + 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from functrans.core import errors, tree
from functrans.core.progress import progress_bar
from functrans.core.shapes import dtype_of, shape_of
from functrans.testing.differences import Arrays, Differences, Function, paired
from functrans.transforms.arguments import check_callable
from functrans.transforms.derivatives import vjp
from functrans.transforms.forward_mode import jvp

_NAMES = {"fwd": "forward", "rev": "reverse"}
_MODES = tuple(_NAMES)
# The number of entries of inputs, and of outputs in reverse mode, that are compared one by one; and the
# number if a random direction shows that some entry is wrong.
_ENTRIES, _MANY_ENTRIES = (50, 50), (1000, 200)
# The tolerances for rounding in AD itself, by the size of a real number in bytes.
_TOLERANCES = {2: (5e-2, 5e-2), 4: (1e-3, 1e-4), 8: (1e-6, 1e-8), 16: (1e-6, 1e-8)}


def check_derivatives(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int = 2,
    modes: Sequence[str] = _MODES,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    seed: int = 0,
    progress: bool = False,
) -> None:
    """Compare the derivatives of a function at a point with finite differences.

    Raises a `DerivativeError` that names the worst entry, with both numbers. If the function accepts complex
    numbers and is holomorphic, the reference comes from complex steps, otherwise from extrapolated central
    differences. Single precision is compared with differences in double precision.

    Parameters
    ----------
    f : callable
        A function of pytrees that returns a pytree of arrays. It is called many times.
    args : tuple or list
        The arguments. Derivatives are with respect to floating and complex leaves; others are constants.
    order : int
        The highest order of derivatives.
    modes : sequence of "fwd" and "rev"
        The modes. From the second order on, all their combinations are compared.
    rtol, atol : float, optional
        Relative and absolute tolerance. By default 1e-6 and 1e-8, and 1e-3 and 1e-4 in single precision.
    seed : int
        The seed for the random directions, and for the choice of entries in large arrays: up to 50 are
        compared one by one, the others along random directions.
    progress : bool
        Whether to show a progress bar, using tqdm.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import check_derivatives, custom_jvp
    >>> check_derivatives(lambda x, y: np.sin(x) * y, (np.ones(2), 3.0))
    >>> square = custom_jvp(lambda x: x * x)
    >>> @square.defjvp
    ... def rule(primals, tangents):
    ...     return primals[0] ** 2, 3 * primals[0] * tangents[0]
    >>> check_derivatives(square, (2.0,))
    Traceback (most recent call last):
        ...
    functrans.errors.DerivativeError: check_derivatives: the derivative of `<lambda>` ... differs ...
    """
    f = check_callable(f, "check_derivatives")
    if not isinstance(args, (tuple, list)):
        raise errors.InputTypeError(
            "check_derivatives needs the arguments as a tuple, one entry per argument, not "
            f"{tree.with_article(args)}, at {errors.user_location()}. Write check_derivatives(f, (x,))."
        )
    if not isinstance(order, int) or order < 1:
        raise errors.OptionError(
            f"order must be a positive int, not {order!r}, at {errors.user_location()}."
        )
    if not modes or any(mode not in _MODES for mode in modes):
        raise errors.OptionError(
            f'modes must be some of "fwd" and "rev", not {modes!r}, at {errors.user_location()}.'
        )
    problem = _Problem(f, tuple(args), rtol, atol, np.random.default_rng(seed))
    entries = min(sum(int(np.size(leaf)) for leaf in problem.point), _ENTRIES[0])
    comparisons = sum(len(modes) ** k for k in range(1, order + 1))
    with progress_bar(progress, entries * comparisons, "check_derivatives") as problem.bar:
        _check(problem, problem.function, problem.point, order, tuple(modes), ())


def _check(
    problem: _Problem,
    function: Function,
    point: Arrays,
    order: int,
    modes: tuple[str, ...],
    path: tuple[str, ...],
) -> None:
    """Check all derivatives of a function, which is itself a derivative taken with the modes in `path`."""
    comparison = _Comparison(problem, function, point, path)
    for mode in modes:
        if not path:
            comparison.check_value(mode)
        comparison.check(mode)
    if order > 1:
        for mode in modes:
            derived = _pushed if mode == "fwd" else _pulled
            next_function = derived(function, point, problem.random)
            _check(problem, next_function, point, order - 1, modes, (mode, *path))


def _pushed(function: Function, point: Arrays, random: np.random.Generator) -> Function:
    """The derivative of a function along a fixed direction."""
    direction = [_random_like(leaf, random) for leaf in point]

    def pushed(*leaves: Any) -> Arrays:
        tangents = [_like(t, leaf) for t, leaf in paired(direction, list(leaves))]
        found: Arrays = jvp(function, leaves, tangents)[1]
        return found

    return pushed


def _pulled(function: Function, point: Arrays, random: np.random.Generator) -> Function:
    """A fixed combination of the outputs' gradients."""
    weights = [_random_like(leaf, random) for leaf in function(*point)]

    def pulled(*leaves: Any) -> Arrays:
        out, pullback = vjp(function, *leaves)
        return list(pullback([_like(w, leaf) for w, leaf in paired(weights, out)]))

    return pulled


class _Problem:
    """The user's function as one of flat floating point arrays, and the names of its leaves."""

    def __init__(
        self,
        f: Callable[..., Any],
        args: tuple[Any, ...],
        rtol: float | None,
        atol: float | None,
        random: np.random.Generator,
    ) -> None:
        self.f = f
        self.random = random
        self.bar: Any = None  # the progress bar, while there is one
        leaves, self.structure = tree.flatten(args)
        self.leaves = leaves
        self.point = _floating(leaves)
        names = [f"argument {k}{path}" for k, arg in enumerate(args) for path in tree.paths(arg)]
        self.input_names = [name for name, x in paired(names, leaves) if _is_floating(x)]
        if not self.point:
            raise errors.InputTypeError(
                "check_derivatives: no argument is a floating point array or number, at "
                f"{errors.user_location()}. Write 1.0 instead of 1, or x.astype(float)."
            )
        out = f(*args)
        outputs = _floating(tree.leaves(out))
        names = [f"the output{path}" for path in tree.paths(out)]
        self.output_names = [name for name, x in paired(names, tree.leaves(out)) if _is_floating(x)]
        if not outputs:
            raise errors.OutputTypeError(
                f"check_derivatives: {errors.describe(f)} returns no floating point array or number, at "
                f"{errors.user_location()}. Return one: comparisons, rounding and argmax give constants."
            )
        for name, leaf in paired(self.output_names, outputs):
            if not np.isfinite(leaf).all():
                raise errors.DerivativeError(
                    f"check_derivatives: {name} of {errors.describe(f)} is not finite at this point, at "
                    f"{errors.user_location()}. Choose another point."
                )
        size = min(np.finfo(dtype_of(x)).dtype.itemsize for x in (*self.point, *outputs))
        default = _TOLERANCES[size]
        self.rtol = default[0] if rtol is None else rtol
        self.atol = default[1] if atol is None else atol

    def function(self, *leaves: Any) -> Arrays:
        each = iter(leaves)
        args = [next(each) if _is_floating(x) else x for x in self.leaves]
        return _floating(tree.leaves(self.f(*tree.unflatten(self.structure, args))))


class _Comparison:
    """The derivative of one function at a point, numerically and from functrans."""

    def __init__(
        self, problem: _Problem, function: Function, point: Arrays, path: tuple[str, ...]
    ) -> None:
        self.problem = problem
        self.function = function
        self.point = point
        self.path = path
        self.numbers = Differences(function, point, problem.random)
        self.output_names = problem.output_names
        for mode in reversed(path):  # the outputs of a pullback are the inputs of the function
            self.output_names = problem.input_names if mode == "rev" else self.output_names

    def check(self, mode: str) -> None:
        with np.errstate(all="ignore"):
            wrong = list(self._wrong_entries(mode, *_ENTRIES))
            if not wrong:
                if self._agree_along_random_directions(mode):
                    return
                wrong = list(self._wrong_entries(mode, *_MANY_ENTRIES))
            if not wrong:
                raise self._error(mode, "They differ along a random direction of all arguments.")
            # Prefer to report a wrong rule, then a point without a derivative, then the effect of a nan on
            # other entries.
            unexplained = [
                entry for entry in wrong if entry.is_finite() and not entry.explanation()
            ]
            explained = [entry for entry in wrong if entry.explanation()]
            worst = max(unexplained or explained or wrong, key=lambda entry: entry.excess)
            differ = "differs" if len(wrong) == 1 else "differ"
            raise self._error(mode, f"{worst}\n  {len(wrong)} of the compared entries {differ}.")

    def check_value(self, mode: str) -> None:
        """Check the value that a user's rule returns along with the derivative."""
        with np.errstate(all="ignore"):
            if mode == "fwd":
                tangents = [_like(np.zeros(shape_of(x)), x) for x in self.point]
                found = jvp(self.function, self.point, tangents)[0]
            else:
                found = vjp(self.function, *self.point)[0]
        for name, one, other in zip(
            self.output_names, found, self.function(*self.point), strict=True
        ):
            distance = np.abs(np.asarray(one) - other)
            wrong = ~(distance <= self._allowed(one, other, 0.0))
            if np.any(wrong):
                index = np.unravel_index(
                    np.argmax(np.where(wrong, distance, 0)), np.shape(distance)
                )
                place = f"[{', '.join(map(str, index))}]" if index else ""
                raise errors.DerivativeError(
                    f"check_derivatives: {name}{place} of {errors.describe(self.problem.f)} is "
                    f"{_number(complex(np.asarray(other)[index]))}, but "
                    f"{_number(complex(np.asarray(one)[index]))} under {_NAMES[mode]} mode, at "
                    f"{errors.user_location()}. The rule must return the function's value along with the "
                    "derivative."
                )

    def _places(self, leaves: Arrays, limit: int, imaginary: complex) -> Iterator[_Coordinate]:
        """The coordinates of entries, chosen at random if there are many; a complex entry has two."""
        sizes = [int(np.prod(shape_of(leaf), dtype=int)) for leaf in leaves]
        starts = np.cumsum([0, *sizes])
        picks = np.arange(starts[-1])
        if len(picks) > limit:
            picks = np.sort(self.problem.random.choice(len(picks), limit, replace=False))
        for pick in picks:
            k = int(np.searchsorted(starts, pick, "right")) - 1
            index = tuple(map(int, np.unravel_index(pick - starts[k], shape_of(leaves[k]))))
            for unit in (1.0, imaginary) if dtype_of(leaves[k]).kind == "c" else (1.0,):
                yield _Coordinate(k, index, unit)

    def _wrong_entries(self, mode: str, inputs: int, outputs: int) -> Iterator[_Entry]:
        wrong = self._wrong_in_column if mode == "fwd" else self._wrong_in_rows(outputs)
        for by in self._places(self.point, inputs, 1j):
            scale = float(self.numbers.scales[by.leaf][by.index])
            expected, error = self.numbers.along(by.direction(self.point, scale))
            yield from wrong(by, [x / scale for x in expected], [x / scale for x in error])
            if by.unit == 1.0:  # a complex entry has two parts
                self.problem.bar.update()

    def _wrong_in_column(
        self, by: _Coordinate, expected: Arrays, error: Arrays
    ) -> Iterator[_Entry]:
        """The derivatives of all outputs with respect to one input, computed at once by forward mode."""
        tangents = [_like(t, x) for t, x in paired(by.direction(self.point, 1.0), self.point)]
        found = jvp(self.function, self.point, tangents)[1]
        for k, one in enumerate(map(np.asarray, found)):
            allowed = self._allowed(one, expected[k], error[k])
            for place in np.argwhere(~(np.abs(one - expected[k]) <= allowed)):
                index = tuple(map(int, place))
                numbers = (x[index] for x in (one, expected[k], np.asarray(allowed)))
                yield _Entry(self, by, _Coordinate(k, index, 1.0), *numbers)

    def _wrong_in_rows(self, limit: int) -> Callable[..., Iterator[_Entry]]:
        """The same in reverse mode: each output is pulled back once, for all inputs."""
        out, pullback = vjp(self.function, *self.point)
        rows = []
        for output in self._places(out, limit, -1j):  # Re(-i z) is the imaginary part
            weights = [_like(w, leaf) for w, leaf in paired(output.direction(out, 1.0), out)]
            rows.append((output, pullback(weights)))

        def wrong(by: _Coordinate, expected: Arrays, error: Arrays) -> Iterator[_Entry]:
            for output, cotangents in rows:
                # The pairing of cotangents with tangents is the real part of the product.
                one = np.real(np.asarray(cotangents[by.leaf])[by.index] * by.unit)
                other = np.real(expected[output.leaf][output.index] * output.unit)
                allowed = self._allowed(one, other, error[output.leaf][output.index])
                if not abs(one - other) <= allowed:
                    yield _Entry(self, by, output, one, other, allowed)

        return wrong

    def _agree_along_random_directions(self, mode: str) -> bool:
        random = self.problem.random
        for _ in range(2):
            direction = [
                _random_like(x, random) * s
                for x, s in paired(self.numbers.point, self.numbers.scales)
            ]
            expected, error = self.numbers.along(direction)
            tangents = [_like(t, x) for t, x in paired(direction, self.point)]
            if mode == "fwd":
                found = jvp(self.function, self.point, tangents)[1]
            else:
                out, pullback = vjp(self.function, *self.point)
                weights = [_random_like(leaf, random) for leaf in out]
                pulled = pullback([_like(w, leaf) for w, leaf in paired(weights, out)])
                found = [_pairing(pulled, tangents)]
                error = [sum(np.sum(np.abs(w) * e) for w, e in paired(weights, error))]
                expected = [_pairing(weights, expected)]
            for one, other, slack in zip(found, expected, error, strict=True):
                size = np.max(np.abs(other), initial=0.0)
                # Sums of many terms lose more to rounding than a single one.
                if not np.all(np.abs(one - other) <= 10 * self._allowed(size, size, slack)):
                    return False
        return True

    def _allowed(self, one: Any, other: Any, error: Any) -> Any:
        """The tolerance for two numbers; it does not grow when the differences do not converge."""
        larger = np.maximum(np.abs(one), np.abs(other))
        tolerance = self.problem.rtol * larger + self.problem.atol
        return tolerance + np.minimum(2 * error, 1e-4 * larger + 10 * tolerance)

    def _error(self, mode: str, what: str) -> errors.DerivativeError:
        modes = " over ".join(_NAMES[m] for m in (mode, *self.path))
        order = len(self.path) + 1
        return errors.DerivativeError(
            f"check_derivatives: the derivative of {errors.describe(self.problem.f)} differs from finite "
            f"differences in {modes} mode, order {order}.\n  {what}"
        )


class _Coordinate:
    """One entry of one array, in the direction of 1, or of i or -i for the imaginary part."""

    def __init__(self, leaf: int, index: tuple[int, ...], unit: complex) -> None:
        self.leaf = leaf
        self.index = index
        self.unit = unit
        self.sides: Any = None  # see _Entry.explanation

    def direction(self, likes: Arrays, length: float) -> Arrays:
        """A direction of the given length along this one entry."""
        arrays = [
            np.zeros(shape_of(x), complex if dtype_of(x).kind == "c" else float) for x in likes
        ]
        arrays[self.leaf][self.index] = length * self.unit
        return arrays

    def named(self, names: list[str]) -> str:
        index = f"[{', '.join(map(str, self.index))}]" if self.index else ""
        part = "the imaginary part of " if isinstance(self.unit, complex) else ""
        return f"{part}{names[self.leaf]}{index}"


class _Entry:
    """A wrong entry of a derivative."""

    def __init__(
        self,
        comparison: _Comparison,
        by: _Coordinate,
        output: _Coordinate,
        found: Any,
        expected: Any,
        allowed: Any,
    ) -> None:
        self.comparison = comparison
        self.by = by
        self.output = output
        self.found = complex(found)
        self.expected = complex(expected)
        distance = abs(self.found - self.expected)
        self.relative = distance / max(abs(self.found), abs(self.expected))
        self.excess = float(distance / allowed) if np.isfinite(distance) else np.inf

    def __str__(self) -> str:
        comparison, problem = self.comparison, self.comparison.problem
        what, by = self.output.named(comparison.output_names), self.by.named(problem.input_names)
        lines = [
            f"{what} with respect to {by}:",
            f"    functrans gives         {_number(self.found)}",
            f"    {comparison.numbers.method:23} {_number(self.expected)}",
            f"    relative error {self.relative:.3g} (rtol={problem.rtol:g}, atol={problem.atol:g})",
        ]
        if comparison.path:
            lines.append(
                "    (The outputs are those of the derivative one order lower, "
                f"{_contracted(comparison.path[0])}.)"
            )
        return "\n".join([*lines, *self.explanation()])

    def is_finite(self) -> bool:
        return bool(np.isfinite([self.found, self.expected]).all())

    def explanation(self) -> list[str]:
        """An explanation, if the function has no derivative at this point."""
        if self.by.sides is None:
            direction = self.by.direction(self.comparison.point, 1.0)
            self.by.sides = self.comparison.numbers.sides(direction)
        place = self.output
        left, right, noise = (complex(x[place.leaf][place.index]) for x in self.by.sides)
        if not np.isfinite([left, right]).all():
            return [
                "    The function is not finite next to this point, which is at the edge of its",
                "    domain. Choose a point inside.",
            ]
        if abs(left - right) > 1e-2 * max(abs(left), abs(right), 1e-3) + abs(noise):
            return [
                f"    The function has no derivative at this point: the slope is {_number(left)} on the "
                f"left and {_number(right)} on the",
                "    right. Either answer may be intended; choose a point away from the kink or jump.",
            ]
        return []


def _is_floating(leaf: Any) -> bool:
    return tree.is_array(leaf) and dtype_of(leaf).kind in "fc"


def _floating(leaves: Arrays) -> Arrays:
    return [leaf for leaf in leaves if _is_floating(leaf)]


def _contracted(mode: str) -> str:
    return "along a random direction" if mode == "fwd" else "pulled back from random cotangents"


def _number(value: complex) -> str:
    real = value.imag == 0 or np.isnan(value.imag)
    return f"{value.real:.12g}" if real else f"{value:.12g}"


def _like(value: Any, leaf: Any) -> Any:
    return np.asarray(value).astype(dtype_of(leaf))[()]


def _random_like(leaf: Any, random: np.random.Generator) -> Any:
    values: Any = random.standard_normal(shape_of(leaf))
    if dtype_of(leaf).kind == "c":
        values = values + 1j * random.standard_normal(shape_of(leaf))
    return values


def _pairing(cotangents: Any, tangents: Any) -> Any:
    return sum(np.sum(np.real(g * t)) for g, t in zip(cotangents, tangents, strict=True))
