"""Operations in terms of others that kernels know."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np

from functrans.compiler.native.kinds import number_kind_of
from functrans.compiler.passes import Rewriter
from functrans.core.primitive import Rules
from functrans.graph.graph import Equation, Graph, Variable
from functrans.ops import contraction, reduction, running, sorting, structure
from functrans.ops import elementwise as ew
from functrans.ops.indexing import index

Expansion = Callable[[Rewriter, Equation], Variable | None]

expands: Rules[Expansion] = Rules()


def expanded(graph: Graph) -> Graph:
    """The graph with such operations expanded."""
    if all(expands.of(equation.primitive) is None for equation in graph.equations):
        return graph

    def rule(walk: Rewriter, equation: Equation) -> Variable | None:
        expansion = expands.of(equation.primitive)
        return None if expansion is None else expansion(walk, equation)

    return Rewriter(graph).run(rule)


@expands(reduction.argmax, reduction.argmin)
def _place_of_extreme(walk: Rewriter, equation: Equation) -> Variable | None:
    """The least index at which the extreme value is; a nan is more extreme than any number."""
    (x,), params = equation.inputs, equation.params
    axis, keepdims = params["axis"], params["keepdims"]
    if not isinstance(axis, int) or not x.spec.size:
        return None
    kind, axis = x.spec.dtype.kind, axis % x.spec.ndim
    if kind not in "biuf":
        return None
    largest = equation.primitive is reduction.argmax
    if kind == "b":
        hits = x if largest else walk.emit(ew.logical_not, x)
        most = walk.emit(reduction.any, hits, axis=(axis,), keepdims=True)
        hits = walk.emit(ew.equal, hits, most)
    else:
        extreme = reduction.max if largest else reduction.min
        most = walk.emit(extreme, x, axis=(axis,), keepdims=True)
        hits = walk.emit(ew.equal, x, most)
        if kind == "f":
            hits = walk.emit(ew.logical_or, hits, walk.emit(ew.isnan, x))
    length = x.spec.shape[axis]
    shape = [1] * x.spec.ndim
    shape[axis] = length
    places = walk.constant(np.arange(length).reshape(shape))
    none = walk.constant(np.asarray(length))
    found = walk.emit(structure.where, hits, places, none)
    return walk.emit(reduction.min, found, axis=(axis,), keepdims=keepdims)


_LARGEST_POWER = 64


@expands(ew.power)
def _integer_power(walk: Rewriter, equation: Equation) -> Variable | None:
    """A power of integers by a known number, as products. They wrap, so their order does not matter."""
    (x, exponent), out = equation.inputs, equation.outputs[0].spec
    number = walk.number(exponent)
    if out.dtype.kind not in "iu" or number is None or exponent.spec.shape:
        return None
    if not 0 < number <= _LARGEST_POWER:
        return None
    if x.spec.dtype != out.dtype:
        x = walk.emit(structure.astype, x, dtype=out.dtype)
    total: Variable | None = None
    for digit in bin(number)[2:]:
        if total is not None:
            total = walk.emit(ew.multiply, total, total)
        if digit == "1":
            total = x if total is None else walk.emit(ew.multiply, total, x)
    return total


# einsum as products and sums.


class _Term(NamedTuple):
    """A value, and a letter for each of its axes; no letter occurs twice."""

    variable: Variable
    letters: str

    @property
    def lengths(self) -> dict[str, int]:
        return dict(zip(self.letters, self.variable.spec.shape, strict=True))


@expands(contraction.einsum)
def _einsum(walk: Rewriter, equation: Equation) -> Variable | None:
    """Diagonals as slices, then products of two operands at a time."""
    dtype = equation.outputs[0].spec.dtype
    variables = equation.inputs
    if dtype.kind not in "iuf" or number_kind_of(dtype) is None:
        return None
    if not all(v.spec.size and number_kind_of(v.spec.dtype) for v in variables):
        return None
    letters, output = equation.params["subscripts"].split("->")
    terms = [
        _without_repetition(walk, walk.emit(structure.astype, v, dtype=dtype), each)
        if v.spec.dtype != dtype
        else _without_repetition(walk, v, each)
        for v, each in zip(variables, letters.split(","), strict=True)
    ]
    for step in _order(variables, equation.params["subscripts"]):
        chosen = [terms.pop(place) for place in sorted(step, reverse=True)]
        while len(chosen) > 1:
            x, y = chosen.pop(), chosen.pop()
            others = "".join(term.letters for term in (*terms, *chosen))
            chosen.append(_product(walk, x, y, {*others, *output}))
        terms += chosen
    return _ordered(walk, _summed(walk, terms[0], set(output)), output)


def _order(variables: tuple[Variable, ...], subscripts: str) -> list[tuple[int, ...]]:
    """Which operands NumPy multiplies, step by step; each product becomes the last operand."""
    if len(variables) < 3:
        return [tuple(range(len(variables)))]
    shapes = [np.broadcast_to(np.float64(0), v.spec.shape) for v in variables]
    path: Any = np.einsum_path(subscripts, *shapes, optimize="greedy")[0]
    return path[1:]  # type: ignore[no-any-return]


def _without_repetition(walk: Rewriter, x: Variable, letters: str) -> _Term:
    """The diagonals of axes with the same letter: every (n + 1)th entry of both as one axis."""
    for letter in dict.fromkeys(letters):
        while letters.count(letter) > 1:
            first = letters.index(letter)
            second = letters.index(letter, first + 1)
            rest = [k for k in range(len(letters)) if k not in (first, second)]
            shape, n = x.spec.shape, x.spec.shape[first]
            if shape[second] != n:  # a length of 1 is broadcast
                n = max(n, shape[second])
                wide = tuple(n if k in (first, second) else m for k, m in enumerate(shape))
                x = walk.emit(structure.broadcast_to, x, shape=wide)
            if rest:
                x = walk.emit(structure.transpose, x, axes=(*rest, first, second))
            x = walk.emit(structure.reshape, x, shape=(*[shape[k] for k in rest], n * n))
            template = (*[slice(None)] * len(rest), slice(None, None, n + 1))
            x = walk.emit(index, x, template=template)
            letters = "".join(letters[k] for k in rest) + letter
    return _Term(x, letters)


def _summed(walk: Rewriter, term: _Term, wanted: set[str]) -> _Term:
    """Without the letters that are not needed."""
    axes = tuple(k for k, letter in enumerate(term.letters) if letter not in wanted)
    if not axes:
        return term
    total = walk.emit(reduction.sum, term.variable, axis=axes, keepdims=False)
    if total.spec.dtype != term.variable.spec.dtype:  # np.sum adds small integers in large ones
        total = walk.emit(structure.astype, total, dtype=term.variable.spec.dtype)
    return _Term(total, "".join(letter for letter in term.letters if letter in wanted))


def _ordered(walk: Rewriter, term: _Term, letters: str) -> Variable:
    axes = tuple(term.letters.index(letter) for letter in letters)
    if axes == tuple(range(len(axes))):
        return term.variable
    return walk.emit(structure.transpose, term.variable, axes=axes)


def _product(walk: Rewriter, x: _Term, y: _Term, wanted: set[str]) -> _Term:
    """The product of two operands, summed over the letters that are not needed."""
    x = _summed(walk, x, wanted | set(y.letters))
    y = _summed(walk, y, wanted | set(x.letters))
    both = [letter for letter in x.letters if letter in y.letters]
    summed = [letter for letter in both if letter not in wanted]
    lanes = [letter for letter in both if letter in wanted]
    rows = [letter for letter in x.letters if letter not in both]
    columns = [letter for letter in y.letters if letter not in both]
    lengths = x.lengths | y.lengths
    agree = all(x.lengths[letter] == y.lengths[letter] for letter in both)
    # Where lanes are the last axes, vectors run along them; matrices would be taken apart.
    vectors = bool(lanes) and (x.letters[-1] in lanes or y.letters[-1] in lanes)
    if not summed or not agree or vectors or not (rows or columns) or not _is_float(x):
        return _multiplied(walk, x, y, lanes + rows + columns, summed)
    if lanes and not (rows and columns):
        return _multiplied(walk, x, y, lanes + rows + columns, summed)
    groups = (lanes, rows, summed), (lanes, summed, columns)
    a, b = (
        _matrices(walk, term, group, lengths) for term, group in zip((x, y), groups, strict=True)
    )
    letters = "".join(lanes + rows + columns)
    out = walk.emit(contraction.matmul, a, b)
    shape = tuple(lengths[letter] for letter in letters)
    if out.spec.shape != shape:
        out = walk.emit(structure.reshape, out, shape=shape)
    return _Term(out, letters)


def _is_float(term: _Term) -> bool:
    return term.variable.spec.dtype.kind == "f"


def _multiplied(walk: Rewriter, x: _Term, y: _Term, kept: list[str], summed: list[str]) -> _Term:
    """The elementwise product of both, each with axes of length 1 where it lacks a letter, then its sum."""
    letters = "".join(kept + summed)
    parts = []
    for term in (x, y):
        own = "".join(letter for letter in letters if letter in term.letters)
        part, lengths = _ordered(walk, term, own), term.lengths
        shape = tuple(lengths.get(letter, 1) for letter in letters)
        if part.spec.shape != shape:
            part = walk.emit(structure.reshape, part, shape=shape)
        parts.append(part)
    product = _Term(walk.emit(ew.multiply, *parts), letters)
    return _summed(walk, product, set(kept))


def _matrices(
    walk: Rewriter, term: _Term, groups: tuple[list[str], ...], lengths: dict[str, int]
) -> Variable:
    """A stack of matrices, with an axis for each group of letters that is not empty."""
    part = _ordered(walk, term, "".join("".join(group) for group in groups))
    shape = tuple(prod(lengths[letter] for letter in group) for group in groups if group)
    return part if part.spec.shape == shape else walk.emit(structure.reshape, part, shape=shape)


# Sorting.


# Entries along the axis, and comparisons of each with each. With more, sorting in NumPy gains more than it
# costs to leave machine code.
_FEW, _COMPARISONS = 32, 1 << 14


@expands(sorting.argsort)
def _order_of_few(walk: Rewriter, equation: Equation) -> Variable | None:
    """The order is the inverse of the ranks."""
    (x,) = equation.inputs
    axis = equation.params["axis"] % x.spec.ndim
    ranks = _ranks(walk, x, axis)
    if ranks is None:
        return None
    length, rest = x.spec.shape[axis], (1,) * (x.spec.ndim - axis - 1)
    numbers = np.arange(length)
    places = walk.constant(numbers.reshape(length, *rest))
    hits = walk.emit(ew.equal, _spread(walk, ranks, axis + 1), places)
    own = walk.constant(numbers.reshape(length, 1, *rest))
    found = walk.emit(structure.where, hits, own, walk.constant(np.asarray(0)))
    return walk.emit(reduction.sum, found, axis=(axis,), keepdims=False)


@expands(running.ranked)
def _ranked_of_few(walk: Rewriter, equation: Equation) -> Variable | None:
    """Of each row, the entry that has the rank."""
    x, wanted = equation.inputs
    known, dtype = walk.constants.get(wanted), x.spec.dtype
    if known is None or dtype.kind not in "iuf":
        return None
    if np.any(known < 0) or np.any(known >= x.spec.shape[-1]):
        return None  # an error in NumPy
    ranks = _ranks(walk, x, x.spec.ndim - 1)
    if ranks is None:
        return None
    least = -np.inf if dtype.kind == "f" else np.iinfo(dtype).min
    hits = walk.emit(ew.equal, _spread(walk, ranks, 0), _spread(walk, wanted, wanted.spec.ndim))
    others = walk.constant(np.asarray(least, dtype))
    found = walk.emit(structure.where, hits, _spread(walk, x, 0), others)
    return walk.emit(reduction.max, found, axis=(found.spec.ndim - 1,), keepdims=False)


def _ranks(walk: Rewriter, x: Variable, axis: int) -> Variable | None:
    """How many entries come before each; None if there are many. Equal entries keep their order."""
    length = x.spec.shape[axis]
    if length > _FEW or not 0 < x.spec.size * length <= _COMPARISONS:
        return None
    if number_kind_of(x.spec.dtype) is None:
        return None
    if x.spec.dtype.kind == "b":
        x = walk.emit(structure.astype, x, dtype=np.dtype(np.uint8))
    own, other = _spread(walk, x, axis + 1), _spread(walk, x, axis)
    numbers, rest = np.arange(length), (1,) * (x.spec.ndim - axis - 1)
    earlier = walk.constant((numbers < numbers[:, None]).reshape(length, length, *rest))
    not_after = walk.emit(ew.logical_not, _precedes(walk, own, other))
    before = walk.emit(structure.where, earlier, not_after, _precedes(walk, other, own))
    return walk.emit(reduction.sum, before, axis=(axis + 1,), keepdims=False)


def _precedes(walk: Rewriter, x: Variable, y: Variable) -> Variable:
    """x < y, where nan is the largest."""
    less = walk.emit(ew.less, x, y)
    if x.spec.dtype.kind != "f":
        return less
    number = walk.emit(ew.logical_not, walk.emit(ew.isnan, x))
    return walk.emit(ew.logical_or, less, walk.emit(ew.logical_and, number, walk.emit(ew.isnan, y)))


def _spread(walk: Rewriter, x: Variable, axis: int) -> Variable:
    """With a new axis."""
    shape = (*x.spec.shape[:axis], 1, *x.spec.shape[axis:])
    return walk.emit(structure.reshape, x, shape=shape)
