"""Verdicts: what a transform makes of a function, against finite differences and loops.

This module does not know how functrans works. It uses its public functions only, through an
object with the names of `Transforms`, so that a test can hand in faulty ones.
"""

import importlib
import time
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np

from tools.corpus.differences import derivative, gradient, scales, slope
from tools.corpus.discovery import flat_function
from tools.corpus.idioms import idiom
from tools.corpus.isolation import forked
from tools.corpus.records import Record, bind, float_leaves
from tools.corpus.values import Vector, map_floats, split, to_vector

TRANSFORMS = ("grad", "jvp", "vmap", "hessian")
SECONDS_PER_TRANSFORM = 10.0
LANES = 3


class Transforms(Protocol):
    """The functions of functrans that are judged."""

    value_and_grad: Callable[..., Any]
    grad: Callable[..., Any]
    jvp: Callable[..., Any]
    vmap: Callable[..., Any]
    hessian: Callable[..., Any]
    jit: Callable[..., Any]


@dataclass
class Verdict:
    """What came of one transform.

    - `ok`: all numbers agree.
    - `WRONG`: a number differs, and nothing was said. `WARNED`: the same after a warning of functrans.
    - `nan`: a number is not finite, where the expected one is.
    - `point`: a number differs, but agrees at points nearby. The function tests for equality, or
      has a removable singularity, at exactly this point.
    - `error`, `crash`, `timeout`.
    - `unclear`: the finite differences themselves are not sharp, so nothing is known.
    """

    transform: str
    verdict: str
    detail: str = ""
    idiom: str = ""
    trace: str = ""
    seconds: float = 0.0


class Difference(Exception):
    """A number is not the expected one."""


class NotFinite(Difference):
    """A number is infinite or not a number."""


class Unclear(Exception):
    """The expected number is not known well enough."""


def weighted_sum(flat: Callable[..., list[Any]], weights: list[np.ndarray]) -> Callable[..., Any]:
    """The weighted sum of all results, which `grad` and `hessian` differentiate."""

    def scalar(*values: Any) -> Any:
        total: Any = 0.0
        for weight, leaf in zip(weights, flat(*values), strict=True):
            total = total + np.sum(weight * leaf)
        return total

    return scalar


class Problem:
    """A function of the corpus with all that is needed to judge transforms of it."""

    def __init__(self, record: Record, offset: float = 0.0) -> None:
        self.call, self.point = bind(record)
        self.flat = float_leaves(self.call, self.point)
        self.f = flat_function(self.flat, self.point)
        self.x = np.concatenate([to_vector(value) for value in self.point])
        self.scale = np.concatenate([scales(to_vector(value)) for value in self.point])
        # Another point nearby, if there is an offset.
        self.x = self.x + offset * self.scale * np.cos(np.arange(self.x.size))
        results = self.flat(*self.fresh())
        self.rng = np.random.default_rng(zlib.crc32(record.label.encode()))
        self.weights = [self.rng.uniform(0.5, 1.5, np.shape(leaf)) for leaf in results]
        self.scalar = weighted_sum(self.flat, self.weights)
        vector = np.concatenate([np.ravel(weight) for weight in self.weights])
        self.weigh = lambda values: float(vector @ values)
        # How large the terms of the weighted sum are: its rounding error is in proportion to them.
        self.size = float(vector @ np.abs(self.f(self.x)))
        self.argnums = tuple(range(len(self.point)))

    def fresh(self) -> list[Any]:
        """The differentiated arguments, made anew: the function may write into them."""
        return split(self.x, self.point)

    def number(self, vector: Vector) -> float:
        return self.weigh(self.f(vector))


def compare(name: str, actual: Any, expected: Any, rtol: float, atol: float | np.ndarray) -> None:
    """Raise unless arrays have the same shape and nearly the same numbers."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    if actual.shape != expected.shape:
        raise Difference(f"{name} has shape {actual.shape}, expected {expected.shape}")
    if actual.dtype.kind not in "fiub":
        raise Difference(f"{name} has dtype {actual.dtype}")
    error = np.abs(actual - expected)
    bad = ~(error <= rtol * np.abs(expected) + atol)
    if np.any(bad):
        at = int(np.argmax(np.where(bad, np.nan_to_num(error, nan=np.inf), -1.0)))
        got, wanted = np.ravel(actual)[at], np.ravel(expected)[at]
        kind = Difference if np.all(np.isfinite(actual)) else NotFinite
        raise kind(f"{name} is {got:.8g}, expected {wanted:.8g}")


def compare_value(problem: Problem, value: Any) -> None:
    expected = problem.number(problem.x)
    compare("the value", value, expected, 1e-9, 1e-11 * problem.size)


def compare_gradient(problem: Problem, found: Any) -> None:
    actual = np.concatenate([to_vector(item) for item in found]) * problem.scale
    expected, errors = gradient(problem.number, problem.x, problem.scale)
    largest = float(np.max(np.abs(expected)))
    tolerance = errors + 1e-7 * largest + 1e-8 * problem.size
    compare("the gradient", actual, expected, 1e-5, tolerance)


def judge_grad(ft: Transforms, problem: Problem) -> None:
    transformed = ft.value_and_grad(problem.scalar, argnums=problem.argnums)
    value, found = transformed(*problem.fresh())
    compare_value(problem, value)
    compare_gradient(problem, found)


def judge_jit(ft: Transforms, problem: Problem) -> None:
    transformed = ft.jit(ft.grad(problem.scalar, argnums=problem.argnums))
    compare_gradient(problem, transformed(*problem.fresh()))


def judge_jvp(ft: Transforms, problem: Problem) -> None:
    direction = problem.scale * problem.rng.uniform(-1, 1, problem.x.size)
    tangents = split(direction, problem.point)
    values, found = ft.jvp(problem.flat, tuple(problem.fresh()), tuple(tangents))
    flatten = lambda items: np.concatenate([np.ravel(to_vector(item)) for item in items])
    reference = derivative(problem.f, problem.x, direction)
    if not reference.agree:
        raise Unclear("differences of two step sizes differ")
    expected = reference.value
    plain = problem.f(problem.x)
    compare("the value", flatten(values), plain, 1e-9, 1e-11 * np.max(np.abs(plain)))
    largest = float(np.max(np.abs(expected)))
    size = float(np.max(np.abs(plain)))
    compare("the tangent", flatten(found), expected, 1e-5, 1e-7 * largest + 1e-8 * size)


def judge_vmap(ft: Transforms, problem: Problem) -> None:
    nudges = 1e-3 * problem.rng.uniform(-1, 1, (LANES, problem.x.size))
    lanes = [problem.x + nudge * problem.scale for nudge in nudges]
    expected = [problem.flat(*split(lane, problem.point)) for lane in lanes]
    stack = lambda *items: np.stack([np.asarray(item) for item in items])
    columns = zip(*(split(lane, problem.point) for lane in lanes), strict=True)
    found = ft.vmap(problem.flat)(*(map_floats(stack, *column) for column in columns))
    for position, leaf in enumerate(found):
        wanted = np.stack([np.asarray(results[position]) for results in expected])
        compare("a lane", leaf, wanted, 1e-9, 1e-11 * float(np.max(np.abs(wanted))))


def _matrix(blocks: Any, point: list[Any]) -> np.ndarray:
    """The Hessian with respect to all floats, from the blocks of the arguments."""
    sizes = [[to_vector(leaf).size for leaf in _floats(value)] for value in point]
    flat_sizes = [size for group in sizes for size in group]
    pieces = _floats(blocks)
    count = len(flat_sizes)
    rows = []
    for row in range(count):
        cells = pieces[row * count : (row + 1) * count]
        shape = [(flat_sizes[row], size) for size in flat_sizes]
        rows.append([np.reshape(np.asarray(c), s) for c, s in zip(cells, shape, strict=True)])
    return np.block(rows)


def _floats(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in _floats(item)]
    return [value]


def trusted_gradient(
    ft: Transforms, problem: Problem
) -> tuple[Callable[[Vector], Vector], float, float]:
    """A gradient to take differences of, the step for it, and how far to trust the result.

    The gradient of functrans is much sharper than differences. It is used if it is right here;
    the Hessian comes from other rules.
    """

    def sharp(vector: Vector) -> Vector:
        found = ft.grad(problem.scalar, argnums=problem.argnums)(*split(vector, problem.point))
        return np.concatenate([to_vector(item) for item in found]) * problem.scale

    try:
        judge_grad(ft, problem)
        sharp(problem.x)
    except Exception:
        return lambda x: gradient(problem.number, x, problem.scale)[0], 1e-3, 1e-3
    return sharp, 1e-4, 1e-5


def judge_hessian(ft: Transforms, problem: Problem) -> None:
    blocks = ft.hessian(problem.scalar, argnums=problem.argnums)(*problem.fresh())
    matrix = _matrix(blocks, problem.point)
    scaled = problem.scale[:, None] * matrix * problem.scale
    trusted, step, rtol = trusted_gradient(ft, problem)
    steep = float(np.max(np.abs(trusted(problem.x))))
    for _ in range(2):
        direction = problem.rng.uniform(-1, 1, problem.x.size)
        expected = slope(trusted, problem.x, problem.scale * direction, step, rtol)
        if not expected.agree:
            raise Unclear("second differences of two step sizes differ")
        tolerance = rtol * (np.max(np.abs(expected.value)) + steep)
        if step == 1e-3:
            tolerance += 1e-6 * problem.size
        compare(
            "the Hessian times a vector", scaled @ direction, expected.value, 10 * rtol, tolerance
        )


JUDGES: dict[str, Callable[[Transforms, Problem], None]] = {
    "grad": judge_grad,
    "jvp": judge_jvp,
    "vmap": judge_vmap,
    "hessian": judge_hessian,
    "jit": judge_jit,
}


def is_right_nearby(ft: Transforms, record: Record, transform: str) -> bool:
    """Whether the numbers agree at two points close to the one of the record."""
    try:
        for offset in (3e-3, -2e-3):
            JUDGES[transform](ft, Problem(record, offset))
    except Exception:
        return False
    return True


def judge(ft: Transforms, record: Record, transform: str) -> Verdict:
    """The verdict on one transform of one function, in this process."""
    start = time.perf_counter()
    verdict = Verdict(transform, "ok")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            # A new problem for each transform: an object may remember a traced value.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                problem = Problem(record)
            JUDGES[transform](ft, problem)
        except Difference as error:
            warned = [item for item in heard if item.category.__module__.startswith("functrans")]
            verdict.detail = str(error)
            if warned:
                verdict.verdict = "WARNED"
            elif is_right_nearby(ft, record, transform):
                verdict.verdict = "point"
            else:
                verdict.verdict = "nan" if isinstance(error, NotFinite) else "WRONG"
        except Unclear as error:
            verdict.verdict, verdict.detail = "unclear", str(error)
        except Exception as error:
            lines = str(error).strip().splitlines()
            verdict.verdict = "error"
            verdict.detail = f"{type(error).__name__}: {lines[0] if lines else ''}"
            verdict.trace = traceback.format_exc()
            verdict.idiom = idiom(type(error).__name__, str(error), verdict.trace)
    verdict.seconds = time.perf_counter() - start
    return verdict


def judge_all(
    ft: Transforms, records: list[Record], transforms: tuple[str, ...], seconds: float
) -> Iterator[tuple[Record, list[Verdict]]]:
    """Verdicts on all functions, each transform in a forked process of its own.

    What an earlier transform left behind, such as a warning that is given only once, must not
    change the verdict on a later one.
    """
    for record in records:
        # Here, so that the forked processes need not import it again.
        importlib.import_module(record.module)
        verdicts: list[Verdict] = []
        for transform in transforms:
            received, end = forked(_work(ft, record, transform), seconds)
            if received:
                verdicts.append(Verdict(**received[0]))
            elif end in ("timeout", "crash"):
                verdicts.append(Verdict(transform, end))
            else:
                # Exceptions that are not an Exception, such as SystemExit.
                lines = end.strip().splitlines()
                verdicts.append(Verdict(transform, "error", lines[-1], "other", end))
        yield record, verdicts


def _work(
    ft: Transforms, record: Record, transform: str
) -> Callable[[Callable[[Any], None]], None]:
    return lambda send: send(asdict(judge(ft, record, transform)))
