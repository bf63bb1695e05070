"""Sums of many products in single and half precision, without the loss of digits of np.einsum's own loops.

Where BLAS does the work, the error is that of BLAS. Sums that np.einsum would compute sequentially become a
product and a sum here (see core/summation.py), or a stack of matrix products.
"""

from __future__ import annotations

from functools import cache
from math import prod
from typing import Any

import numpy as np

from functrans.core.summation import FEW, WIDER, add_up

_FEW_PRODUCTS = 1024  # up to this many, another method would cost more to set up than it saves


LONG_BLOCK = 1024  # BLAS sums up to this many products accurately
_LONG = 8 * LONG_BLOCK


def is_long(rows: int, inner: int, columns: int) -> bool:
    """Whether a product of matrices of these sizes is a few sums of many products.

    BLAS splits larger ones itself.
    """
    return inner > _LONG and rows * columns <= 4 * LONG_BLOCK


def product(x: Any, y: Any) -> Any:
    """x @ y; a long one as a sum of shorter ones, where it would lose digits."""
    if type(x) is np.ndarray and type(y) is np.ndarray:
        if x.ndim == 2 and y.ndim == 2 and len(y) <= _LONG:
            return x.dot(y)  # the same call to BLAS with half the overhead
        if 0 < x.ndim < 3 and 0 < y.ndim < 3 and len(y) > _LONG:
            return _long_product(x, y)
    return x @ y


def _long_product(x: Any, y: Any) -> Any:
    rows = x if x.ndim == 2 else x[None]
    columns = y if y.ndim == 2 else y[:, None]
    inner = len(columns)
    fits = rows.shape[1] == inner and x.dtype == y.dtype and x.dtype in WIDER
    if not fits or not is_long(len(rows), inner, columns.shape[1]):
        return x @ y
    blocks = inner // LONG_BLOCK
    whole = blocks * LONG_BLOCK
    left = rows[:, :whole].reshape(len(rows), blocks, LONG_BLOCK).transpose(1, 0, 2)
    right = columns[:whole].reshape(blocks, LONG_BLOCK, columns.shape[1])
    total = add_up(left @ right, (0,))
    if whole < inner:
        total = total + rows[:, whole:] @ columns[whole:]
    return total.reshape(x.shape[:-1] + y.shape[1:])[()]


def loses_digits(operands: tuple[Any, ...], subscripts: str) -> bool:
    """Whether there are many terms for the precision in which they would be added up."""
    dtypes = [getattr(operand, "dtype", None) for operand in operands]
    if not all(dtype in WIDER for dtype in dtypes):
        return False
    terms = _terms(subscripts, tuple([operand.shape for operand in operands]))
    few = FEW if len(operands) == 1 else _FEW_PRODUCTS
    return terms > few or (terms > 1 and np.float16 in dtypes)


@cache
def _terms(subscripts: str, shapes: tuple[tuple[int, ...], ...]) -> int:
    """The number of products in one element of the result."""
    inputs, output = subscripts.split("->")
    lengths: dict[str, int] = {}
    for term, shape in zip(inputs.split(","), shapes, strict=True):
        for letter, n in zip(term, shape, strict=True):
            lengths[letter] = max(n, lengths.get(letter, 1))
    return prod(n for letter, n in lengths.items() if letter not in output)


Term = tuple[Any, str]  # an array, and a letter for each of its axes


def exact_einsum(operands: tuple[Any, ...], subscripts: str) -> Any:
    """np.einsum(subscripts, *operands), two operands at a time."""
    dtype = np.result_type(*operands)
    if dtype == np.float16:
        operands = tuple([operand.astype(np.float32) for operand in operands])
    inputs, output = subscripts.split("->")
    terms = [_diagonal(*term) for term in zip(operands, inputs.split(","), strict=True)]
    for step in _path(operands, subscripts):
        chosen = [terms.pop(place) for place in sorted(step, reverse=True)]
        while len(chosen) > 1:
            x, y = chosen.pop(), chosen.pop()
            others = "".join(letters for _, letters in (*terms, *chosen))
            chosen.append(_product(x, y, {*others, *output}))
        terms += chosen
    result = _ordered(_summed(*terms[0], set(output)), output)
    return result.astype(dtype, copy=False)[()]


def _path(operands: tuple[Any, ...], subscripts: str) -> list[tuple[int, ...]]:
    """Which operands to multiply, step by step; each product becomes the last operand."""
    if len(operands) < 3:
        return [tuple(range(len(operands)))]
    path: Any = np.einsum_path(subscripts, *operands, optimize="greedy")[0]
    return path[1:]  # type: ignore[no-any-return]


def _diagonal(x: Any, letters: str) -> Term:
    """The array with diagonals taken, so that every letter occurs once."""
    once = "".join(dict.fromkeys(letters))
    return (x, letters) if once == letters else (np.einsum(f"{letters}->{once}", x), once)


def _summed(x: Any, letters: str, wanted: set[str]) -> Term:
    """The array summed over letters that are not needed."""
    axis = tuple([k for k, letter in enumerate(letters) if letter not in wanted])
    if not axis:
        return x, letters
    return add_up(x, axis), "".join(letter for letter in letters if letter in wanted)


def _ordered(term: Term, letters: str) -> Any:
    """The array with its axes permuted to this order."""
    x, own = term
    return x if own == letters else x.transpose([own.index(letter) for letter in letters])


def _product(x: Term, y: Term, wanted: set[str]) -> Term:
    """The product of two arrays, summed over letters that are not needed."""
    x, y = _summed(*x, {*wanted, *y[1]}), _summed(*y, {*wanted, *x[1]})
    lengths = _lengths(x, y)
    both = [letter for letter in x[1] if letter in y[1]]
    summed = [letter for letter in both if letter not in wanted]
    lanes = [letter for letter in both if letter in wanted]
    rows = [letter for letter in x[1] if letter not in both]
    columns = [letter for letter in y[1] if letter not in both]
    result = "".join(lanes + rows + columns)
    if not summed or lengths is None:  # there is nothing to sum, or a length of 1 is broadcast
        return np.einsum(f"{x[1]},{y[1]}->{result}", x[0], y[0]), result
    if lanes and not rows and not columns:
        turned = _ordered(y, x[1])
        if both == lanes + summed and x[0].flags.c_contiguous and turned.flags.c_contiguous:
            # Dot products of contiguous rows.
            return np.einsum(f"{x[1]},{x[1]}->{result}", x[0], turned, optimize=True), result
        return _summed(x[0] * turned, x[1], wanted)
    left = _matrices(x, (lanes, rows, summed), lengths)
    right = _matrices(y, (lanes, summed, columns), lengths)
    shape = [lengths[letter] for letter in result]
    found = left @ right if lanes else product(left[0], right[0])
    return found.reshape(shape), result


def _lengths(x: Term, y: Term) -> dict[str, int] | None:
    """The length of every axis, or None if the arrays do not agree."""
    lengths = dict(zip(x[1], x[0].shape, strict=True))
    if any(lengths.setdefault(letter, n) != n for letter, n in zip(y[1], y[0].shape, strict=True)):
        return None
    return lengths


def _matrices(x: Term, groups: tuple[list[str], ...], lengths: dict[str, int]) -> Any:
    """The array as a stack of matrices, one axis per group, in a memory layout that BLAS accepts."""
    shape = [prod(lengths[letter] for letter in group) for group in groups]
    stack = _ordered(x, "".join("".join(group) for group in groups)).reshape(shape)
    unbroken = stack.itemsize in (stack.strides[-1], stack.strides[-2])
    return stack if unbroken else np.ascontiguousarray(stack)
