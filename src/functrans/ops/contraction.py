"""Sums of products: matmul and einsum."""

from __future__ import annotations

import string
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from functrans.core.custody import kept
from functrans.core.primitive import Primitive, bare
from functrans.core.shapes import ArraySpec, dtype_of, shape_of, sum_to_shape
from functrans.core.tracer import UFUNCS, as_operand, install_binary
from functrans.ops.families import insert_ones, result_spec, vjp_from_rules
from functrans.ops.long_products import LONG_BLOCK, exact_einsum, loses_digits, product

# matmul: c = x y, so that g y^T flows to x and x^T g to y; a vector has no row or column axis, and
# leading axes broadcast.


_SCALAR_OPERAND = "matmul: an operand has no dimensions; use * for scalars"


def swap(x: Any) -> Any:
    """The transpose of each matrix."""
    return np.swapaxes(x, -1, -2)


def _matmul_back_to_x(g: Any, x_shape: tuple[int, ...], y: Any) -> Any:
    if y.ndim == 1:
        return g * y if len(x_shape) == 1 else sum_to_shape(g[..., None] * y, x_shape)
    if len(x_shape) == 1:
        return product(y, g) if y.ndim == 2 else sum_to_shape((y @ g[..., None])[..., 0], x_shape)
    return product(g, y.T) if y.ndim == 2 else sum_to_shape(g @ swap(y), x_shape)


def _matmul_back_to_y(g: Any, x: Any, y_shape: tuple[int, ...]) -> Any:
    if len(y_shape) == 1:
        if x.ndim == 1:
            return g * x
        return (
            product(g, x)
            if x.ndim == 2
            else sum_to_shape((g[..., None, :] @ x)[..., 0, :], y_shape)
        )
    if x.ndim == 1:
        return sum_to_shape(x[:, None] * g[..., None, :], y_shape)
    if len(y_shape) == 2:
        if x.ndim == 2:
            return product(x.T, g)
        # A matrix that many matrices were multiplied with: one product of the stacked rows.
        rows = prod(x.shape[:-1])
        return product(x.reshape((rows, x.shape[-1])).T, g.reshape((rows, g.shape[-1])))
    return sum_to_shape(swap(x) @ g, y_shape)


def _matmul_jvp(out: Any, args: Any, tangents: Any, params: Any) -> Any:
    (x, y), (x_tangent, y_tangent) = args, tangents
    left = None if x_tangent is None else x_tangent @ y
    right = None if y_tangent is None else x @ y_tangent
    return left if right is None else right if left is None else left + right


def _matmul_pull_both(g: Any, saved: Any) -> Any:
    x, y = saved
    if (
        type(x) is type(y) is type(g) is np.ndarray
        and x.ndim == y.ndim == 2
        and len(x) <= LONG_BLOCK >= y.shape[1]
    ):
        return g.dot(y.T), x.T.dot(g)  # the common case, without the calls
    return _matmul_back_to_x(g, x.shape, y), _matmul_back_to_y(g, x, y.shape)


_matmul_pull_both.needs = ("x", "y")  # type: ignore[attr-defined]
_matmul_rules = (
    None,
    (lambda out, x, y: (x.shape, kept(y)), lambda g, saved: _matmul_back_to_x(g, *saved)),
    (lambda out, x, y: (kept(x), y.shape), lambda g, saved: _matmul_back_to_y(g, *saved)),
    (lambda out, x, y: (x, y), _matmul_pull_both),
)


def _matmul_batch(primitive: Any, args: Any, batched: Any, size: int, params: Any) -> Any:
    (x, y), (x_mapped, y_mapped) = args, batched
    x_ndim, y_ndim = len(shape_of(x)) - x_mapped, len(shape_of(y)) - y_mapped
    if x_ndim == 0 or y_ndim == 0:
        raise ValueError(_SCALAR_OPERAND)
    if not y_mapped and y_ndim <= 2:  # one product of the stacked rows
        if x_ndim <= 2 or y_ndim == 1:
            rows = x if x_ndim == 1 else x.reshape((prod(x.shape[:-1]), x.shape[-1]))
            return matmul(rows, y).reshape(x.shape[:-1] + y.shape[1:])
        return matmul(x, y)
    if not x_mapped and x_ndim <= 2 and y_ndim == 1:
        return matmul(y, x.T) if x_ndim == 2 else matmul(y, x)
    # Give vectors their row or column axis, line up the leading axes, multiply the stacks.
    if x_ndim == 1:
        x = x[..., None, :]
    if y_ndim == 1:
        y = y[..., None]
    lead = max(len(x.shape) - x_mapped, len(y.shape) - y_mapped)
    x = insert_ones(x, lead + 1 - len(x.shape)) if x_mapped else x
    y = insert_ones(y, lead + 1 - len(y.shape)) if y_mapped else y
    out = matmul(x, y)
    if y_ndim == 1:
        out = out[..., 0]
    if x_ndim == 1:
        out = out[..., 0] if y_ndim == 1 else out[..., 0, :]
    return out


def _matmul_spec(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> Any:
    x, y = specs
    if x.ndim == 0 or y.ndim == 0:
        raise ValueError(_SCALAR_OPERAND)
    inner = y.shape[-2] if y.ndim > 1 else y.shape[0]
    if x.shape[-1] != inner:
        raise ValueError(
            f"matmul: the shapes {x.shape} and {y.shape} do not match (size {inner} is different "
            f"from {x.shape[-1]})"
        )
    lead = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    shape = lead + x.shape[-2:-1] + (y.shape[-1:] if y.ndim > 1 else ())
    small = [ArraySpec((1, 1), x.dtype), ArraySpec((1, 1), y.dtype)]
    return result_spec(np.matmul, small, {}, shape)


matmul = Primitive(
    "matmul",
    product,
    jvp=_matmul_jvp,
    batch=_matmul_batch,
    shape=_matmul_spec,
    kind="linear algebra",
    views=False,
)
matmul.rules = _matmul_rules
matmul.vjp = vjp_from_rules(matmul)
UFUNCS[np.matmul] = matmul
install_binary("matmul", matmul)


# einsum: the subscripts are explicit and without ellipsis here; `canonical_subscripts` makes them so.


def _einsum(*operands: Any, subscripts: str) -> Any:
    if loses_digits(operands, subscripts):
        return exact_einsum(operands, subscripts)
    # The optimizing path calls BLAS, but takes about 20 microseconds to set up.
    large = len(operands) > 2 or (
        sum([np.size(operand) for operand in operands]) > 4096 and _sums(subscripts)
    )
    result = np.einsum(subscripts, *operands, optimize=large)
    return result if result.ndim else result[()]  # as NumPy does by default


@lru_cache(maxsize=1024)
def _sums(subscripts: str) -> bool:
    """Whether anything is added up."""
    inputs, output = subscripts.split("->")
    return not set(inputs) <= {*output, ","}


def _split(subscripts: str) -> tuple[list[str], str]:
    inputs, output = subscripts.split("->")
    return inputs.split(","), output


def _einsum_jvp(out: Any, args: Any, tangents: Any, params: Any) -> Any:
    total = None
    for k, tangent in enumerate(tangents):
        if tangent is not None:
            term = einsum(*args[:k], tangent, *args[k + 1 :], **params)
            total = term if total is None else total + term
    return total


@lru_cache(maxsize=1024)
def _adjoint(k: int, subscripts: str) -> tuple[str, tuple[int, ...], str, str]:
    """How the cotangent of operand k comes from that of the output and the other operands.

    The subscripts that contract these, in this order; the axes of the operand whose letter occurs before (a
    diagonal), each with one more operand, an identity matrix, which ties the second name of its letter to the
    first; the letters of the result; and a letter for each axis of the operand.
    """
    inputs, output = _split(subscripts)
    terms = [output, *inputs[:k], *inputs[k + 1 :]]
    spare = iter(letter for letter in string.ascii_letters if letter not in subscripts)
    target, twins = "", []
    for axis, letter in enumerate(inputs[k]):
        if letter in target:
            twin = next(spare)
            twins.append(axis)
            terms.append(letter + twin)
            letter = twin
        target += letter
    # A letter that occurs nowhere else was summed over: its axis is restored by broadcasting.
    present = set("".join(terms))
    reachable = "".join(letter for letter in target if letter in present)
    return f"{','.join(terms)}->{reachable}", tuple(twins), reachable, target


def _einsum_back(k: int, g: Any, args: tuple[Any, ...], spec: ArraySpec, subscripts: str) -> Any:
    """The cotangent of operand k: contract the output's cotangent with all other operands."""
    equation, twins, reachable, target = _adjoint(k, subscripts)
    shape = spec.shape
    identities = [np.eye(shape[axis], dtype=spec.dtype) for axis in twins]
    result = einsum(g, *args[:k], *args[k + 1 :], *identities, subscripts=equation)
    if reachable == target and shape_of(result) == shape:
        return result
    lengths = dict(zip(reachable, shape_of(result), strict=True))
    result = np.reshape(result, tuple(lengths.get(letter, 1) for letter in target))
    # If all others have length 1, they were broadcast to this operand's length.
    full = tuple(
        n if lengths.get(letter, 1) == 1 else lengths[letter]
        for letter, n in zip(target, shape, strict=True)
    )
    return sum_to_shape(np.broadcast_to(result, full), shape)


def _einsum_pull(g: Any, saved: Any) -> Any:
    mask, args, specs, subscripts = saved
    parts = tuple(
        _einsum_back(k, g, args, spec, subscripts) for k, spec in enumerate(specs) if mask >> k & 1
    )
    return bare(parts)


def _einsum_vjp(mask: int, out: Any, args: Any, params: Any) -> Any:
    specs = [ArraySpec(shape_of(arg), dtype_of(arg)) for arg in args]
    # With one operand differentiated, its own value is not needed.
    kept = tuple(None if mask == 1 << k else arg for k, arg in enumerate(args))
    return _einsum_pull, (mask, kept, specs, params["subscripts"])


def _einsum_batch(primitive: Any, args: Any, batched: Any, size: int, params: Any) -> Any:
    inputs, output = _split(params["subscripts"])
    lane = next(x for x in string.ascii_letters if x not in params["subscripts"])
    terms = [lane + term if mapped else term for term, mapped in zip(inputs, batched, strict=True)]
    return primitive(*args, subscripts=f"{','.join(terms)}->{lane}{output}")


def _einsum_spec(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> Any:
    inputs, output = _split(params["subscripts"])
    lengths: dict[str, int] = {}
    for term, spec in zip(inputs, specs, strict=True):
        for letter, n in zip(term, spec.shape, strict=True):
            if lengths.setdefault(letter, n) == 1:
                lengths[letter] = n
            elif n not in (1, lengths[letter]):
                raise ValueError(f"einsum: index {letter} has lengths {lengths[letter]} and {n}")
    shape = tuple(lengths[letter] for letter in output)
    small = [ArraySpec((1,) * spec.ndim, spec.dtype) for spec in specs]
    return result_spec(_einsum, small, params, shape)


einsum = Primitive(
    "einsum",
    _einsum,
    jvp=_einsum_jvp,
    vjp=_einsum_vjp,
    batch=_einsum_batch,
    shape=_einsum_spec,
    kind="linear algebra",
    views=True,
)


def canonical_subscripts(operands: tuple[Any, ...]) -> tuple[str, list[Any]]:
    """Any form that np.einsum takes, as explicit subscripts without ellipsis, and the arrays."""
    if isinstance(operands[0], str):
        text, arrays = operands[0].replace(" ", ""), list(operands[1:])
    else:
        text, arrays = _from_sublists(operands)
    arrays = [as_operand(array) for array in arrays]
    return _explicit(text, tuple([len(shape_of(array)) for array in arrays])), arrays


@lru_cache(maxsize=1024)
def _explicit(text: str, ndims: tuple[int, ...]) -> str:
    """Subscripts for operands with so many axes, explicit and without ellipsis."""
    inputs, arrow, output = text.partition("->")
    terms = inputs.split(",")
    if len(terms) != len(ndims):
        raise ValueError(f"einsum: {text!r} has {len(terms)} terms for {len(ndims)} operands")
    spare = [x for x in reversed(string.ascii_letters) if x not in text]
    longest = max(
        (n - len(t) + 3 for t, n in zip(terms, ndims, strict=True) if "..." in t), default=0
    )
    if longest < 0 or longest > len(spare):
        raise ValueError(f"einsum: {text!r} does not match operands with {list(ndims)} dimensions")
    dots = "".join(spare[:longest])
    for k, (term, ndim) in enumerate(zip(terms, ndims, strict=True)):
        if "..." in term:
            own = ndim - len(term) + 3
            if own < 0:
                raise ValueError(f"einsum: the term {term!r} needs more than {ndim} dimensions")
            terms[k] = term.replace("...", dots[longest - own :] if own else "")
        if len(terms[k]) != ndim:
            raise ValueError(f"einsum: the term {term!r} does not match {ndim} dimensions")
    if arrow:
        output = output.replace("...", dots)
    else:
        letters = "".join(terms)
        once = sorted(x for x in set(letters) if letters.count(x) == 1 and x not in dots)
        output = dots + "".join(once)
    for letter in output:
        if letter not in "".join(terms):
            raise ValueError(f"einsum: the output index {letter!r} does not occur in an operand")
    return f"{','.join(terms)}->{output}"


def _from_sublists(operands: tuple[Any, ...]) -> tuple[str, list[Any]]:
    """einsum(x, [0, 1], y, [1, 2], [0, 2]) as a string; labels keep NumPy's order."""
    *pairs, last = operands if len(operands) % 2 else (*operands, None)

    def word(labels: Any) -> str:
        return "".join("..." if x is Ellipsis else string.ascii_letters[x] for x in labels)

    text = ",".join(word(labels) for labels in pairs[1::2])
    return text if last is None else f"{text}->{word(last)}", list(pairs[::2])
