"""Functions of matrices, and the equations of Sylvester, Lyapunov and Riccati."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.dispatch import Tracer
from functrans.core.shapes import dtype_of, shape_of
from functrans.ops.factorization import H
from functrans.ops.structure import astype
from functrans.scipy import matrices, matrix_functions
from functrans.scipy.delegation import delegates, refuse_option
from functrans.scipy.linalg.arguments import matrix_of
from functrans.scipy.matrices import sl

_NOT_GIVEN: Any = object()


@delegates(sl.expm)
def expm(A: Any) -> Any:
    """The exponential of a square matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import jvp
    >>> from functrans.scipy.linalg import expm
    >>> generator = np.array([[0.0, -1.0], [1.0, 0.0]])
    >>> _, velocity = jvp(lambda angle: expm(angle * generator), (0.0,), (1.0,))
    >>> velocity
    array([[ 0., -1.],
           [ 1.,  0.]])
    """
    return matrices.expm(matrix_of(A, "expm"))


@delegates(sl.sqrtm)
def sqrtm(A: Any, disp: Any = _NOT_GIVEN, blocksize: Any = _NOT_GIVEN) -> Any:
    """The principal square root of a square matrix; complex if a real matrix has no real one.

    Where values are not known, as under `jit`, the root of a real matrix is assumed to be real, and an error
    is raised if it is not; pass a complex matrix in that case. The derivative at a singular matrix is nan.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import sqrtm
    >>> float(grad(lambda s: np.trace(sqrtm(s * np.eye(2))))(4.0))
    0.5
    >>> float(grad(lambda s: np.trace(sqrtm(s * np.eye(2))).imag)(-4.0))
    -0.5
    """
    matrix = matrix_of(A, "sqrtm")
    if disp is not _NOT_GIVEN and not disp:
        refuse_option("scipy.linalg.sqrtm", "Leave it out.", disp=disp)
    return _real_or_complex(matrices.sqrtm, matrix)


@delegates(sl.logm)
def logm(A: Any, disp: Any = _NOT_GIVEN) -> Any:
    """The principal logarithm of a square matrix; complex if a real matrix has no real one.

    Where values are not known, as under `jit`, the logarithm of a real matrix is assumed to be real, and an
    error is raised if it is not; pass a complex matrix in that case.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import logm
    >>> float(grad(lambda s: np.trace(logm(s * np.eye(2))))(4.0).round(6))
    0.5
    """
    if disp is not _NOT_GIVEN and not disp:
        refuse_option("scipy.linalg.logm", "Leave it out.", disp=disp)
    return _real_or_complex(matrix_functions.logm, matrix_of(A, "logm"))


def _real_or_complex(function: Any, matrix: Any, **params: Any) -> Any:
    try:
        return function(matrix, **params)
    except errors.StagingError:  # a complex result, of values that are known
        complexes = np.result_type(dtype_of(matrix), np.complex64)
    return function(astype(matrix, dtype=complexes), **params)


@delegates(sl.fractional_matrix_power)
def fractional_matrix_power(A: Any, t: Any) -> Any:
    """The power A^t of a square matrix, for any real t.

    The derivative with respect to t uses the logarithm of A, which must be regular.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import fractional_matrix_power
    >>> float(grad(lambda s: fractional_matrix_power(s * np.eye(2), 0.5)[0, 0])(4.0).round(6))
    0.25
    """
    matrix = matrix_of(A, "fractional_matrix_power")
    if isinstance(t, Tracer):
        return expm(t * logm(matrix))
    if float(t).is_integer():
        return np.linalg.matrix_power(matrix, int(t))
    return _real_or_complex(matrix_functions.matrix_power, matrix, power=float(t))


@delegates(sl.expm_frechet)
def expm_frechet(
    A: Any,
    E: Any,
    method: str | None = None,
    compute_expm: bool = True,
    check_finite: bool = True,
) -> Any:
    """The exponential of A, and its derivative in the direction E; only the latter unless `compute_expm`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import expm_frechet
    >>> e = np.eye(2)
    >>> float(grad(lambda s: expm_frechet(s * e, e, compute_expm=False)[0, 0])(0.0))
    1.0
    """
    matrix, direction = matrix_of(A, "expm_frechet"), matrix_of(E, "expm_frechet")
    dtype = np.result_type(dtype_of(matrix), dtype_of(direction))
    matrix, direction = matrix.astype(dtype), direction.astype(dtype)
    change = matrices.corner(matrices.expm, matrix, direction)
    return (matrices.expm(matrix), change) if compute_expm else change


def _of_circle(A: Any, name: str, part: Any) -> Any:
    """The real or imaginary part of e^(iA), where it is analytic in A."""
    matrix = matrix_of(A, name)
    forward = expm(1j * matrix)
    if dtype_of(matrix).kind != "c":
        return forward.real if part == 1 else forward.imag
    return (forward + part * expm(-1j * matrix)) / (2 if part == 1 else 2j)


@delegates(sl.cosm)
def cosm(A: Any) -> Any:
    """The cosine of a square matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import cosm
    >>> float(grad(lambda s: cosm(s * np.eye(2))[0, 0])(0.5).round(6))
    -0.479426
    """
    return _of_circle(A, "cosm", 1)


@delegates(sl.sinm)
def sinm(A: Any) -> Any:
    """The sine of a square matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import sinm
    >>> float(grad(lambda s: sinm(s * np.eye(2))[0, 0])(0.0))
    1.0
    """
    return _of_circle(A, "sinm", -1)


@delegates(sl.tanm)
def tanm(A: Any) -> Any:
    """The tangent of a square matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import tanm
    >>> float(grad(lambda s: tanm(s * np.eye(2))[0, 0])(0.0))
    1.0
    """
    return np.linalg.solve(cosm(A), sinm(A))


@delegates(sl.coshm)
def coshm(A: Any) -> Any:
    """The hyperbolic cosine of a square matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import coshm
    >>> float(grad(lambda s: coshm(s * np.eye(2))[0, 0])(0.0))
    0.0
    """
    matrix = matrix_of(A, "coshm")
    return (expm(matrix) + expm(-matrix)) / 2


@delegates(sl.sinhm)
def sinhm(A: Any) -> Any:
    """The hyperbolic sine of a square matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import sinhm
    >>> float(grad(lambda s: sinhm(s * np.eye(2))[0, 0])(0.0))
    1.0
    """
    matrix = matrix_of(A, "sinhm")
    return (expm(matrix) - expm(-matrix)) / 2


@delegates(sl.tanhm)
def tanhm(A: Any) -> Any:
    """The hyperbolic tangent of a square matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import tanhm
    >>> float(grad(lambda s: tanhm(s * np.eye(2))[0, 0])(0.0))
    1.0
    """
    return np.linalg.solve(coshm(A), sinhm(A))


# Matrix equations.


@delegates(sl.solve_sylvester)
def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    """Solve a x + x b = q.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import solve_sylvester
    >>> identity, q = np.eye(2), np.ones((2, 2))
    >>> float(grad(lambda s: np.sum(solve_sylvester(s * identity, identity, q)))(1.0))
    -1.0
    """
    left, right = matrix_of(a, "solve_sylvester"), matrix_of(b, "solve_sylvester")
    given = matrix_of(q, "solve_sylvester", square=False)
    if shape_of(given)[-2:] != (shape_of(left)[-1], shape_of(right)[-1]):
        raise ValueError(
            f"solve_sylvester: the shapes {shape_of(left)}, {shape_of(right)} and "
            f"{shape_of(given)} do not match"
        )
    return matrices.sylvester(left, right, given)


@delegates(sl.solve_continuous_lyapunov)
def solve_continuous_lyapunov(a: Any, q: Any) -> Any:
    """Solve a x + x a^H = q.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import solve_continuous_lyapunov
    >>> float(grad(lambda s: solve_continuous_lyapunov(s * np.eye(2), np.eye(2))[0, 0])(1.0))
    -0.5
    """
    matrix = matrix_of(a, "solve_continuous_lyapunov")
    return solve_sylvester(matrix, H(matrix), q)


@delegates(sl.solve_lyapunov)
def solve_lyapunov(a: Any, q: Any) -> Any:
    """Solve a x + x a^H = q: another name of `solve_continuous_lyapunov`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import solve_lyapunov
    >>> float(grad(lambda s: solve_lyapunov(s * np.eye(2), np.eye(2))[0, 0])(1.0))
    -0.5
    """
    return solve_continuous_lyapunov(a, q)


@delegates(sl.solve_discrete_lyapunov)
def solve_discrete_lyapunov(a: Any, q: Any, method: str | None = None) -> Any:
    """Solve x = a x a^H + q.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import solve_discrete_lyapunov
    >>> f = lambda s: solve_discrete_lyapunov(s * np.eye(2), np.eye(2))[0, 0]
    >>> float(grad(f)(0.5).round(6))  # 1 / (1 - s²)
    1.777778
    """
    matrix, given = matrix_of(a, "solve_discrete_lyapunov"), matrix_of(q, "solve_discrete_lyapunov")
    n = shape_of(matrix)[-1]
    if method is None:
        method = "bilinear" if n >= 10 else "direct"
    if method == "direct":
        return matrix_functions.discrete_lyapunov(matrix, given)
    if method != "bilinear":
        raise ValueError(f"Unknown solver {method}")
    # With b = (a^H - 1) (a^H + 1)⁻¹, b^H x + x b = -2 (a + 1)⁻¹ q (a^H + 1)⁻¹.
    identity = np.eye(n, dtype=dtype_of(matrix))
    inverse = np.linalg.inv(H(matrix) + identity)
    turned = (H(matrix) - identity) @ inverse
    return solve_sylvester(H(turned), turned, -2 * (H(inverse) @ given @ inverse))


@delegates(sl.solve_continuous_are)
def solve_continuous_are(
    a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: bool = True
) -> Any:
    """Solve a^H x + x a - x b r⁻¹ b^H x + q = 0, and its form with e and s, for the stabilizing x.

    `q` and `r` are Hermitian, and derivatives are those with respect to Hermitian changes.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import solve_continuous_are
    >>> one = np.eye(1)
    >>> float(grad(lambda q: solve_continuous_are(0 * one, one, q * one, one)[0, 0])(4.0).round(6))
    0.25
    """
    return matrix_functions.continuous_are(*_riccati_arguments(a, b, q, r, e, s))


@delegates(sl.solve_discrete_are)
def solve_discrete_are(
    a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: bool = True
) -> Any:
    """Solve x = a^H x a - a^H x b (r + b^H x b)⁻¹ b^H x a + q, and its form with e and s.

    `q` and `r` are Hermitian, and derivatives are those with respect to Hermitian changes.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.linalg import solve_discrete_are
    >>> one = np.eye(1)
    >>> float(grad(lambda q: solve_discrete_are(0 * one, one, q * one, one)[0, 0])(4.0).round(6))
    1.0
    """
    return matrix_functions.discrete_are(*_riccati_arguments(a, b, q, r, e, s))


def _riccati_arguments(a: Any, b: Any, q: Any, r: Any, e: Any, s: Any) -> tuple[Any, ...]:
    """a, b, q and r of the equation without e and s that has the same solution."""
    name = "the Riccati equation"
    a, q, r = (matrix_of(each, name) for each in (a, q, r))
    b = matrix_of(b, name, square=False)
    if e is not None:
        # Of e^H x a and so on, the factors e^H on the left and e on the right are divided out.
        mass = matrix_of(e, name)
        a = np.swapaxes(np.linalg.solve(np.swapaxes(mass, -1, -2), np.swapaxes(a, -1, -2)), -1, -2)
        half = np.linalg.solve(H(mass), q)
        q = H(np.linalg.solve(H(mass), H(half)))
    if s is not None:
        cross = matrix_of(s, name, square=False)
        if e is not None:
            cross = np.linalg.solve(H(mass), cross)
        gain = np.linalg.solve(r, H(cross))
        a, q = a - b @ gain, q - cross @ gain
    if e is not None or s is not None:
        q = (q + H(q)) / 2  # SciPy checks it
    return a, b, q, r
