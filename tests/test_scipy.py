"""functrans.scipy: the functions on which SciPy gives no hook, held against SciPy and against the laws."""

import numpy as np
import pytest
import scipy.linalg
import scipy.special
from oracles import assert_trees_close
from scipy_cases import check_derivatives, check_lanes, check_staging

import functrans as ft
from functrans.scipy import linalg, special

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(size=shape)


def positive(*shape):
    x = normal(*shape)
    return x @ np.swapaxes(x, -1, -2) + 2 * np.eye(shape[-1])


WEIGHTS = normal(2, 3)
SQUARE = normal(3, 3) + 2 * np.eye(3)

# A name, a function of differentiated arrays, the same from SciPy, and the arrays.
CASES = {
    "logsumexp": (special.logsumexp, scipy.special.logsumexp, [normal(2, 3)]),
    "logsumexp axis": (
        lambda x: special.logsumexp(x, axis=1, keepdims=True),
        lambda x: scipy.special.logsumexp(x, axis=1, keepdims=True),
        [normal(2, 3)],
    ),
    "logsumexp weights": (
        lambda x, b: special.logsumexp(x, axis=0, b=b, return_sign=True),
        lambda x, b: scipy.special.logsumexp(x, axis=0, b=b, return_sign=True),
        [normal(2, 3), WEIGHTS],
    ),
    "softmax": (
        lambda x: special.softmax(x, axis=-1),
        lambda x: scipy.special.softmax(x, axis=-1),
        [normal(2, 3)],
    ),
    "log_softmax": (special.log_softmax, scipy.special.log_softmax, [normal(2, 3)]),
    "polygamma": (
        lambda x: special.polygamma([0, 1, 2], x),
        lambda x: scipy.special.polygamma([0, 1, 2], x),
        [np.array([0.4, 1.3, 2.6])],
    ),
    "multigammaln": (
        lambda x: special.multigammaln(x, 3),
        lambda x: scipy.special.multigammaln(x, 3),
        [np.array([1.4, 2.3, 3.6])],
    ),
    **{
        f"spherical_{kind} {derivative}": (
            lambda x, k=kind, d=derivative: getattr(special, f"spherical_{k}")(2, x, d),
            lambda x, k=kind, d=derivative: getattr(scipy.special, f"spherical_{k}")(2, x, d),
            [np.array([-1.3, 0.9, 2.6])],
        )
        for kind in ("jn", "yn", "in", "kn")
        for derivative in (False, True)
    },
    **{
        f"solve_triangular {trans} {lower} {unit}": (
            lambda a, b, o=(trans, lower, unit): linalg.solve_triangular(a, b, *o),
            lambda a, b, o=(trans, lower, unit): scipy.linalg.solve_triangular(a, b, *o),
            [normal(3, 3) + 3 * np.eye(3), normal(3, 2)],
        )
        for trans, lower, unit in ((0, False, False), ("T", True, False), (1, False, True))
    },
    "solve_triangular vector": (
        lambda a, b: linalg.solve_triangular(a, b, lower=True),
        lambda a, b: scipy.linalg.solve_triangular(a, b, lower=True),
        [normal(3, 3) + 3 * np.eye(3), normal(3)],
    ),
    "solve_triangular stack": (
        linalg.solve_triangular,
        scipy.linalg.solve_triangular,
        [normal(2, 1, 3, 3) + 3 * np.eye(3), normal(2, 3, 2)],
    ),
    "cholesky": (linalg.cholesky, scipy.linalg.cholesky, [positive(3, 3)]),
    "cholesky lower": (
        lambda a: linalg.cholesky(a, lower=True),
        lambda a: scipy.linalg.cholesky(a, lower=True),
        [positive(2, 3, 3)],
    ),
    "cho_solve": (
        lambda a, b: linalg.cho_solve(linalg.cho_factor(a), b),
        lambda a, b: scipy.linalg.cho_solve(scipy.linalg.cho_factor(a), b),
        [positive(3, 3), normal(3)],
    ),
    "cho_solve lower": (
        lambda a, b: linalg.cho_solve(linalg.cho_factor(a, lower=True), b),
        lambda a, b: scipy.linalg.cho_solve(scipy.linalg.cho_factor(a, lower=True), b),
        [positive(3, 3), normal(3, 2)],
    ),
    "lu": (linalg.lu, scipy.linalg.lu, [normal(3, 3)]),
    "lu tall": (
        lambda a: linalg.lu(a, permute_l=True),
        lambda a: scipy.linalg.lu(a, permute_l=True),
        [normal(4, 2)],
    ),
    "lu wide": (
        lambda a: linalg.lu(a, p_indices=True),
        lambda a: scipy.linalg.lu(a, p_indices=True),
        [normal(2, 2, 4)],
    ),
    "lu_factor": (linalg.lu_factor, scipy.linalg.lu_factor, [normal(3, 3)]),
    **{
        f"lu_solve {trans}": (
            lambda a, b, t=trans: linalg.lu_solve(linalg.lu_factor(a), b, t),
            lambda a, b, t=trans: scipy.linalg.lu_solve(scipy.linalg.lu_factor(a), b, t),
            [normal(3, 3), normal(3, 2)],
        )
        for trans in (0, 1)
    },
    "lu_solve stack": (
        lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b),
        lambda a, b: scipy.linalg.lu_solve(scipy.linalg.lu_factor(a), b),
        [normal(2, 3, 3), normal(3)],
    ),
    "expm": (linalg.expm, scipy.linalg.expm, [normal(3, 3)]),
    "expm stack": (linalg.expm, scipy.linalg.expm, [normal(2, 2, 2)]),
    "sqrtm": (linalg.sqrtm, scipy.linalg.sqrtm, [SQUARE @ SQUARE]),
    "solve_sylvester": (
        linalg.solve_sylvester,
        scipy.linalg.solve_sylvester,
        [positive(3, 3), positive(2, 2), normal(3, 2)],
    ),
    "block_diag": (linalg.block_diag, scipy.linalg.block_diag, [normal(2, 3), normal(2), normal(1, 1)]),
    "toeplitz": (linalg.toeplitz, scipy.linalg.toeplitz, [normal(3), normal(4)]),
    "toeplitz symmetric": (linalg.toeplitz, scipy.linalg.toeplitz, [normal(3)]),
}
for_each = pytest.mark.parametrize("function,reference,args", CASES.values(), ids=CASES)


@for_each
def test_values_are_those_of_scipy(function, reference, args):
    assert_trees_close(function(*args), reference(*args), rtol=1e-10, dtypes=True)


@for_each
def test_derivatives(function, reference, args):
    check_derivatives(function, tuple(args))


@for_each
def test_vmap_is_a_loop(function, reference, args):
    check_lanes(function, tuple(args))


@for_each
def test_graphs_compute_the_same(function, reference, args):
    check_staging(function, tuple(args))
