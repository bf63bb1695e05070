"""Numerical derivatives: complex steps, and central differences extrapolated to step zero.

Functions take and return flat lists of floating point arrays.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

Arrays = list[Any]
Function = Callable[..., Arrays]

_SHRINKING = 0.3
_STEPS = 0.03 * _SHRINKING ** np.arange(8)
_COMPLEX_STEP = 1e-30


class Differences:
    """The derivatives of a function at a point, along directions."""

    def __init__(self, function: Function, point: Arrays, random: np.random.Generator) -> None:
        self.function = function
        # in double precision, even if the function itself is evaluated in single precision
        self.point = [_widened(leaf) for leaf in point]
        self.scales = [np.maximum(np.abs(leaf), 0.05) for leaf in self.point]
        self.method = "central differences"
        trial = [
            random.standard_normal(np.shape(leaf)) * s for leaf, s in paired(point, self.scales)
        ]
        if self._is_holomorphic(trial):
            self.method = "complex step"

    def along(self, direction: Arrays) -> tuple[Arrays, Arrays]:
        """The derivative along a direction, and an estimate of its error, for every output.

        The direction should be about as large as the point, elementwise.
        """
        if self.method == "complex step":
            found = self._complex_step(direction)
            return found, [np.zeros(np.shape(leaf)) for leaf in found]
        return self._central(direction)

    def at(self, step: float, direction: Arrays) -> Arrays:
        """The function, evaluated at a distance from the point."""
        with np.errstate(all="ignore"):
            moved = [x + step * t for x, t in paired(self.point, direction)]
            return [np.asarray(leaf) for leaf in self.function(*moved)]

    def sides(self, direction: Arrays) -> tuple[Arrays, Arrays, Arrays]:
        """The slopes on the left and on the right, and their possible rounding error."""
        step = 1e-7
        left, here, right = (self.at(h, direction) for h in (-step, 0.0, step))
        return (
            [(b - a) / step for a, b in paired(left, here)],
            [(b - a) / step for a, b in paired(here, right)],
            [10 * np.finfo(a.dtype).eps * np.abs(a) / step for a in here],
        )

    def _central(self, direction: Arrays) -> tuple[Arrays, Arrays]:
        with np.errstate(all="ignore"):
            slopes = [
                [
                    (one - other) / (2 * step)
                    for one, other in paired(self.at(step, direction), self.at(-step, direction))
                ]
                for step in _STEPS
            ]
            results = [_extrapolated(list(leaf)) for leaf in zip(*slopes, strict=True)]
        return [value for value, _ in results], [error for _, error in results]

    def _complex_step(self, direction: Arrays) -> Arrays:
        # f(x + i h t) = f(x) + i h f'(x) t + O(h^2): no subtraction, so h can be tiny.
        moved = [x + 1j * _COMPLEX_STEP * t for x, t in paired(self.point, direction)]
        with np.errstate(all="ignore"):
            return [np.imag(leaf) / _COMPLEX_STEP for leaf in self.function(*moved)]

    def _is_holomorphic(self, direction: Arrays) -> bool:
        """Whether the function accepts complex numbers, and a complex step gives its derivative."""
        outputs = self.at(0.0, direction)
        if any(np.iscomplexobj(leaf) for leaf in (*self.point, *outputs)):
            return False
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", np.exceptions.ComplexWarning)
                found = self._complex_step(direction)
                # On a branch cut, as for the square root of -1, the two sides differ.
                back = self._complex_step([-t for t in direction])
        except Exception:  # functions not written for complex numbers may raise any error
            return False
        expected, error = self._central(direction)
        return len(found) == len(expected) and all(
            np.shape(a) == np.shape(b)
            and bool(np.all(np.abs(a - b) <= 10 * e + 1e-6 * (np.abs(b) + 1e-3)))
            for a, b, e in zip(
                [*found, *(-leaf for leaf in back)], 2 * expected, 2 * error, strict=True
            )
        )


def _extrapolated(slopes: Arrays) -> tuple[Any, Any]:
    """The limit of central differences D(h) = f' + a h^2 + b h^4 + ... for shrinking h, and its error.

    Each column of the table removes one more power of h (Richardson). Each row contributes the entry that
    changed least (Ridders), and is trusted as far as the next row agrees.
    """
    answers: list[tuple[Any, Any]] = []
    row: Arrays = []
    for slope in slopes:
        before, row = row, [slope]
        value, error = slope, np.full(np.shape(slope), np.inf)
        for column, previous in enumerate(before):
            ratio = _SHRINKING ** (-2 * (column + 1))
            new = (ratio * row[-1] - previous) / (ratio - 1)
            change = np.maximum(np.abs(new - row[-1]), np.abs(new - previous))
            better = change < error  # false for nan
            value, error = np.where(better, new, value), np.where(better, change, error)
            row.append(new)
        answers.append((value, error))
    best, least = answers[-1]
    for (value, error), (after, _) in pairwise(answers):
        error = np.maximum(error, np.abs(value - after))
        better = error < least
        best, least = np.where(better, value, best), np.where(better, error, least)
    return best, least


def _widened(leaf: Any) -> Any:
    return np.asarray(leaf).astype(complex if np.iscomplexobj(leaf) else float)


def paired(one: Sequence[Any], other: Sequence[Any]) -> Any:
    """zip for lists of the same length."""
    return zip(one, other, strict=True)
