"""spectral_function: V f(w) V^H for a Hermitian matrix V diag(w) V^H, even where eigenvalues coincide.

Its derivative along E is V (Γ * V^H E V) V^H, where Γ_ij = f[w_i, w_j] is a divided difference: the slope of
f between two eigenvalues, and f' where they coincide (Daleckii and Krein 1965). The derivative of order n
has divided differences of n + 1 eigenvalues. In V's basis,

    spectral_form(a, E_1, ..., E_n)_ij = Σ f[w_i, w_k, ..., w_j] (E_1)_ik ... (E_n)_.j

and its derivative with respect to a is the sum of such forms with the direction in one more place. So one
primitive has derivatives of all orders, and no rule divides by a gap.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from string import ascii_lowercase
from typing import Any

import numpy as np

from functrans.core import errors, tree
from functrans.core.dispatch import Tracer
from functrans.core.primitive import Primitive, bare
from functrans.core.shapes import ArraySpec, dtype_of, shape_of
from functrans.ops.factorization import H, from_triangle
from functrans.ops.families import batch_spreading
from functrans.ops.gaps import smallest_gap
from functrans.transforms.arguments import check_callable
from functrans.transforms.batching import vmap
from functrans.transforms.forward_mode import jvp


def spectral_function(f: Callable[[Any], Any], a: Any, UPLO: str = "L") -> Any:
    """A function of a Hermitian matrix: V f(w) V^H, where the matrix is V diag(w) V^H.

    It has derivatives of all orders, even where eigenvalues coincide. A function composed of the results of
    `np.linalg.eigh` has no derivatives there: they are nan.

    Parameters
    ----------
    f : callable
        A function of one real number, written in plain NumPy, with real or complex results. It must not close
        over traced values.
    a : array
        A matrix, or a stack of matrices in the last two axes.
    UPLO : {"L", "U"}
        The triangle to read, lower or upper, as in `np.linalg.eigh`.

    Returns
    -------
    array
        A matrix of the same shape.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import jvp, spectral_function
    >>> root = lambda a: spectral_function(np.sqrt, a)
    >>> jvp(root, (4 * np.eye(2),), (np.array([[0.0, 1.0], [1.0, 0.0]]),))[1]
    array([[0.  , 0.25],
           [0.25, 0.  ]])

    The projector on the eigenspace of the eigenvalues above 2, where those above and below coincide:

    >>> above = lambda a: spectral_function(lambda w: np.where(w > 2, 1.0, 0.0), a)
    >>> direction = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    >>> jvp(above, (np.diag([3.0, 3.0, 1.0]),), (direction,))[1]
    array([[0. , 0. , 0.5],
           [0. , 0. , 0. ],
           [0.5, 0. , 0. ]])
    """
    f = check_callable(f, "spectral_function")
    if not isinstance(UPLO, str) or UPLO.upper() not in ("L", "U"):
        raise errors.OptionError(
            f"spectral_function: UPLO must be 'L' or 'U', not {UPLO!r}, at {errors.user_location()}."
        )
    tree.check_array(a, "spectral_function: the matrix")
    matrix: Any = a if isinstance(a, Tracer) else np.asarray(a)
    if dtype_of(matrix).kind not in "fc":
        matrix = matrix.astype(np.float64)
    shape = shape_of(matrix)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise errors.InputTypeError(
            f"spectral_function: expected square matrices in the last two axes, got shape {shape}, at "
            f"{errors.user_location()}. Use np.stack for several."
        )
    return spectral_form(from_triangle(matrix, UPLO.upper()), f=f)


def _evaluate(a: Any, *directions: Any, f: Any) -> Any:
    w, v = np.linalg.eigh(a)
    differences = _divided_differences(f, w, len(directions))
    if not directions:
        return (v * differences[..., None, :]) @ H(v)
    # "...ikj,...ik,...kj->...ij" for two directions
    letters = ascii_lowercase[: len(directions) + 1]
    steps = [f"...{letters[k : k + 2]}" for k in range(len(directions))]
    path = f"...{letters},{','.join(steps)}->...{letters[0]}{letters[-1]}"
    inner = np.einsum(path, differences, *(H(v) @ each @ v for each in directions))
    return v @ inner @ H(v)


# Divided differences.


def _divided_differences(f: Any, w: Any, order: int) -> Any:
    """f[w_i, ..., w_j] for all choices of order + 1 eigenvalues.

    There are two formulas. The quotient: the difference of two divided differences of lower order, divided by
    the difference of the two eigenvalues that are farthest apart. The integral: the mean of f^(order) over
    the simplex between the eigenvalues (Hermite and Genocchi), times its volume. The mean is computed from a
    few points, which is exact if the eigenvalues are close. The integral is used where it agrees with the
    quotient up to the quotient's rounding error.
    """
    values = _derivative(f, w, order)
    if not order:
        return values(w)
    lead, n = w.shape[:-1], w.shape[-1]
    lower = _divided_differences(f, w, order - 1)
    places = range(order + 1)

    def along(x: Any, axes: list[int]) -> Any:
        """x with its axes after the stack at these places among order + 1."""
        return x.reshape(*lead, *(n if k in axes else 1 for k in places))

    nodes = [along(w, [k]) for k in places]
    shape = (*lead, *(n for _ in places))
    with np.errstate(all="ignore"):
        shares, weights = _simplex(order)
        everywhere = np.stack(np.broadcast_arrays(*nodes), axis=-1)
        mean = values((everywhere @ shares.T).astype(w.dtype)) @ weights
        gap = np.full(shape, -1, w.dtype)
        above, scale = np.zeros(shape, lower.dtype), np.zeros(shape, w.dtype)
        for p, q in combinations(places, 2):
            without_p = along(lower, [k for k in places if k != p])
            without_q = along(lower, [k for k in places if k != q])
            distance = np.broadcast_to(nodes[q] - nodes[p], shape)
            wider = np.abs(distance) > gap
            gap = np.where(wider, np.abs(distance), gap)
            above = np.where(wider, (without_p - without_q) * np.sign(distance), above)
            # from rounding the results and the arguments of f
            size = np.maximum(np.abs(nodes[p]), np.abs(nodes[q])) * np.abs(mean)
            scale = np.where(wider, np.abs(without_p) + np.abs(without_q) + size, scale)
        quotient = above / gap
        difference = np.abs(above - mean * gap)
        local = np.max(np.abs(everywhere), axis=-1)
        eps = np.finfo(w.dtype).eps
        # If the gap is tiny, the quotient is dominated by rounding, and right only at a jump of f.
        tiny = (gap <= smallest_gap(w.dtype) * local) & (difference <= eps**0.4 * scale)
        takes_mean = (difference <= 64 * eps * scale) | tiny | (gap == 0)
    return np.where(takes_mean, mean, quotient).astype(lower.dtype, copy=False)


def _derivative(f: Any, w: Any, order: int) -> Any:
    """The derivative of f of this order, as a function of arrays."""

    def differentiated(function: Any) -> Any:
        return lambda x: jvp(function, (x,), (np.ones_like(x),))[1]

    derivative = f
    for _ in range(order):
        derivative = differentiated(derivative)

    def values(points: Any) -> Any:
        with np.errstate(all="ignore"):
            found = vmap(derivative)(points.reshape(-1)) if points.size else points.reshape(-1)
        if isinstance(found, Tracer):
            raise errors.ClosureError(
                f"spectral_function: {errors.describe(f)} depends on a traced value that it closes over, "
                f"at {errors.user_location()}. Let the matrix depend on it instead: for exp(t x) of a "
                "matrix a, take exp of t * a."
            )
        found = np.asarray(found)
        if found.shape != (points.size,) or found.dtype.kind not in "fciub":
            raise errors.InputTypeError(
                f"spectral_function: {errors.describe(f)} must return a number for a number, but returned "
                f"an array of shape {found.shape[1:]} and dtype {found.dtype}, at {errors.user_location()}."
            )
        if found.dtype.kind not in "fc":
            found = found.astype(w.dtype)
        return found.reshape(points.shape)

    return values


_POINTS = 8


def _simplex(order: int) -> tuple[Any, Any]:
    """Quadrature points, in barycentric coordinates, and weights on the simplex with order + 1 corners.

    Gauss's rule for each of the coordinates t_1, t_2, ..., where t_1 is the share of the first corner, t_2
    that of the second in the remainder, and so on. The weights add up to the volume 1 / order!.
    """
    roots, weights = np.polynomial.legendre.leggauss(max(_POINTS - order + 1, 3))
    roots, weights = (roots + 1) / 2, weights / 2
    shares, totals, left = np.zeros((1, 0)), np.ones(1), np.ones(1)
    for k in range(order):
        share, left = np.outer(left, roots).reshape(-1), np.outer(left, 1 - roots).reshape(-1)
        shares = np.column_stack([np.repeat(shares, len(roots), axis=0), share])
        # the remainder shrinks in all of its directions
        totals = np.outer(totals, weights * (1 - roots) ** (order - 1 - k)).reshape(-1)
    return np.column_stack([shares, left]), totals


# The primitive.


def _form_jvp(out: Any, args: Any, tangents: Any, params: Any) -> Any:
    (a, *directions), (a_tangent, *moved) = args, tangents
    terms = []
    if a_tangent is not None:
        for k in range(len(directions) + 1):
            terms.append(spectral_form(a, *directions[:k], a_tangent, *directions[k:], **params))
    for k, tangent in enumerate(moved):
        if tangent is not None:
            terms.append(spectral_form(a, *directions[:k], tangent, *directions[k + 1 :], **params))
    return sum(terms[1:], terms[0])


def _form_pull(g: Any, saved: Any) -> Any:
    # The trace of G^H (the form) is one sum around a circle, G^H, E_1, ..., E_n, in which all places are
    # alike: the adjoint with respect to E_k is the form of the other factors, from E_(k-1)^H back to
    # E_(k+1)^H.
    mask, (a, *directions), f = saved
    given, f = np.conj(g), _conjugate(f)
    around = [H(each) for each in directions]

    def adjoint(before: int, after: int) -> Any:
        return spectral_form(a, *around[:before][::-1], given, *around[after:][::-1], f=f)

    parts = []
    if mask & 1:
        terms = [adjoint(k, k) for k in range(len(directions) + 1)]
        parts.append(np.conj(sum(terms[1:], terms[0])))
    for k in range(len(directions)):
        if mask >> (k + 1) & 1:
            parts.append(np.conj(adjoint(k, k + 1)))
    return bare(parts)


class _Conjugate:
    """The complex conjugate of a function."""

    def __init__(self, f: Any) -> None:
        self.f = f

    def __call__(self, x: Any) -> Any:
        return np.conj(self.f(x))


def _conjugate(f: Any) -> Any:
    return f.f if isinstance(f, _Conjugate) else _Conjugate(f)


def _form_spec(specs: tuple[ArraySpec, ...], params: Any) -> ArraySpec:
    dtype = np.result_type(*(spec.dtype for spec in specs))
    with np.errstate(all="ignore"):
        value = _derivative(params["f"], np.ones(1, dtype).real, 0)(np.ones(1, dtype).real)
    return ArraySpec(specs[0].shape, np.result_type(dtype, dtype_of(value)))


spectral_form = Primitive(
    "spectral_form",
    _evaluate,
    jvp=_form_jvp,
    vjp=lambda mask, out, args, params: (_form_pull, (mask, args, params["f"])),
    batch=batch_spreading,
    shape=_form_spec,
    kind="linear algebra",
)
