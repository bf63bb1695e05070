"""Derivatives from central differences, which nothing in functrans takes part in."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tools.corpus.values import Vector

STEP = 1e-4
SECOND_STEP = 1e-3


def scales(vector: Vector) -> Vector:
    """How far each coordinate may move, in units of the relative step.

    Tiny entries, such as the zeros of a rotation, move as far as the largest one.
    """
    largest = float(np.max(np.abs(vector))) or 1.0
    return np.where(np.abs(vector) > 1e-3 * largest, np.abs(vector), largest)


def central(f: Callable[[Vector], Vector], x: Vector, direction: Vector, step: float) -> Vector:
    return (f(x + step * direction) - f(x - step * direction)) / (2 * step)


@dataclass(frozen=True)
class Derivative:
    """A directional derivative, and whether differences of two step sizes agree about it."""

    value: Vector
    agree: bool


def derivative(f: Callable[[Vector], Vector], x: Vector, direction: Vector) -> Derivative:
    """The derivative along a direction, extrapolated from two step sizes."""
    coarse = central(f, x, direction, STEP)
    fine = central(f, x, direction, STEP / 2)
    # 1e-9 of the value is the rounding error of a difference, with a margin.
    tolerance = 1e-5 * np.max(np.abs(fine)) + 1e-9 * np.max(np.abs(f(x)))
    agree = bool(np.max(np.abs(coarse - fine)) <= tolerance)
    return Derivative((4 * fine - coarse) / 3, agree)


def is_twice_smooth(f: Callable[[Vector], Vector], x: Vector, direction: Vector) -> bool:
    """Whether second differences of two step sizes agree; they do not at a kink."""
    middle = f(x)

    def second(step: float) -> Vector:
        return (f(x + step * direction) - 2 * middle + f(x - step * direction)) / step**2

    coarse, fine = second(SECOND_STEP), second(SECOND_STEP / 2)
    tolerance = 1e-3 * np.max(np.abs(fine)) + 1e-8 * np.max(np.abs(middle))
    return bool(np.max(np.abs(coarse - fine)) <= tolerance)


def gradient(f: Callable[[Vector], float], x: Vector, scale: Vector) -> tuple[Vector, Vector]:
    """The gradient, in units of `scale`, and bounds on its error."""
    values, errors = [], []
    for row in np.diag(scale):
        coarse, fine = (
            (f(x + step * row) - f(x - step * row)) / (2 * step) for step in (STEP, STEP / 2)
        )
        values.append((4 * fine - coarse) / 3)
        errors.append(abs(fine - coarse))
    return np.array(values), np.array(errors)


def slope(
    gradient: Callable[[Vector], Vector], x: Vector, along: Vector, step: float, rtol: float
) -> Derivative:
    """The derivative of a gradient along a direction: a Hessian times a vector."""
    coarse, fine = central(gradient, x, along, step), central(gradient, x, along, step / 2)
    tolerance = rtol * np.max(np.abs(fine)) + 1e-7 * np.max(np.abs(gradient(x)))
    agree = bool(np.max(np.abs(coarse - fine)) <= tolerance)
    return Derivative((4 * fine - coarse) / 3, agree)
