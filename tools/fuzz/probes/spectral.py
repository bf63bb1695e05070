"""Probes of spectral functions where eigenvalues or singular values coincide, or nearly do.

A function computed from the eigenvectors of a matrix is compared with the same function written with powers,
inverses and series, whose derivatives do not depend on gaps. Its derivative is accurate, or nan, or an error,
but never a finite wrong number.
"""

from __future__ import annotations

from tools.fuzz.probes.probe import Probe, indented, probe
from tools.fuzz.programs.choosing import Chooser

# Functions of a symmetric matrix M with eigenvalues between 0.4 and 4, and of S, which is M as it is read.
_SYMMETRIC = [
    ("w, V = np.linalg.eigh(M)\nreturn (V * w**2) @ V.T", "return S @ S"),
    ("w, V = np.linalg.eigh(M)\nreturn (V * np.sqrt(w)) @ V.T", "return root(S)"),
    ("w, V = np.linalg.eigh(M)\nreturn (V / w) @ V.T", "return np.linalg.inv(S)"),
    ("w, V = np.linalg.eigh(M)\nreturn (V * np.exp(w)) @ V.T", "return exponential(S)"),
    ("w, V = np.linalg.eigh(M)\nreturn (V * w**3) @ V.T", "return S @ S @ S"),
    ("w, V = np.linalg.eigh(M)\nreturn (V * np.log(w)) @ V.T", "return logarithm(S)"),
    ("w, V = np.linalg.eigh(M)\nreturn V @ np.diag(w) @ V.T", "return S"),
    ("w, V = np.linalg.eigh(M)\nreturn V @ V.T", "return S @ np.linalg.inv(S)"),
    ("w, V = np.linalg.eigh(M)\nreturn (V / np.sqrt(w)) @ V.T", "return np.linalg.inv(root(S))"),
    ("w, V = np.linalg.eigh(M)\nreturn (V * (w + 1 / w)) @ V.T", "return S + np.linalg.inv(S)"),
    ("return np.sum(np.linalg.eigvalsh(M) ** 3)", "return np.trace(S @ S @ S)"),
    ("return np.sum(np.exp(np.linalg.eigvalsh(M)))", "return np.trace(exponential(S))"),
    ("return np.sum(np.sqrt(np.linalg.eigvalsh(M)))", "return np.trace(root(S))"),
    ("return np.prod(np.linalg.eigvalsh(M))", "return np.linalg.det(S)"),
    ("return np.sum(np.log(np.linalg.eigvalsh(M)))", "return np.linalg.slogdet(S)[1]"),
    ("return np.sum(1 / np.linalg.eigh(M)[0])", "return np.trace(np.linalg.inv(S))"),
    (
        "w = np.linalg.eigvalsh(M)\nreturn np.sum((w[:, None] - w) ** 2)",
        "n = S.shape[0]\nreturn 2 * n * np.trace(S @ S) - 2 * np.trace(S) ** 2",
    ),
    (
        "w, V = np.linalg.eigh(M)\nreturn np.sum(w**2) * (V * w) @ V.T",
        "return np.trace(S @ S) * S",
    ),
    ("return np.linalg.cholesky(M)", "return triangular(S)"),
    ("L = np.linalg.cholesky(M)\nreturn L @ L.T", "return S"),
    ("return np.sum(np.log(np.diag(np.linalg.cholesky(M))))", "return np.linalg.slogdet(S)[1] / 2"),
    ("return np.linalg.matrix_power(M, 3)", "return M @ M @ M"),
    ("return np.sum(np.linalg.svd(M, compute_uv=False) ** 3)", "return np.trace(M @ M @ M)"),
    (
        "U, s, Vt = np.linalg.svd(M, hermitian=True)\nreturn (U * s**2) @ Vt",
        "return S @ S",
    ),
    ("return np.linalg.pinv(M, hermitian=True)", "return np.linalg.inv(S)"),
    ("return sqrtm(M)", "return root(M)"),
    ("return expm(M)", "return exponential(M)"),
    ("return cholesky(M, lower=True)", "return triangular(S)"),
    ("return np.sum(np.linalg.eigvals(M) ** 3).real", "return np.trace(M @ M @ M)"),
]
# Functions of any matrix M, real or complex.
_GENERAL = [
    (
        "return np.sum(np.linalg.svd(M, compute_uv=False) ** 2)",
        "return np.sum((M * M.conj()).real)",
    ),
    ("U, s, Vt = np.linalg.svd(M, full_matrices=False)\nreturn (U * s) @ Vt", "return M"),
    (
        "U, s, Vt = np.linalg.svd(M, full_matrices=False)\nreturn (U * s**3) @ Vt",
        "return M @ M.conj().T @ M",
    ),
    (
        "U, s, Vt = np.linalg.svd(M, full_matrices=False)\nreturn U @ Vt",
        "return M @ np.linalg.inv(root(M.conj().T @ M))",
    ),
    ("return np.linalg.norm(M, 'nuc')", "return np.trace(root(M.conj().T @ M))"),
    (
        "U, s, Vt = np.linalg.svd(M, full_matrices=False)\nreturn (Vt.conj().T / s) @ U.conj().T",
        "return np.linalg.inv(M.conj().T @ M) @ M.conj().T",
    ),
    ("return np.linalg.pinv(M)", "return np.linalg.inv(M.conj().T @ M) @ M.conj().T"),
    ("return np.sum(np.linalg.svd(M)[1] ** 4)", "return np.trace(M.conj().T @ M @ M.conj().T @ M)"),
    (
        "return np.prod(np.linalg.svd(M, compute_uv=False)) ** 2",
        "return np.linalg.det(M.conj().T @ M)",
    ),
    (
        "w, V = np.linalg.eigh(M.conj().T @ M)\nreturn (V * np.sqrt(w)) @ V.conj().T",
        "return root(M.conj().T @ M)",
    ),
    ("return np.linalg.norm(M)", "return np.sqrt(np.sum((M * M.conj()).real))"),
    (
        "U, s, Vt = np.linalg.svd(M, full_matrices=False)\nreturn np.sum(np.exp(s**2))",
        "return np.trace(exponential(M.conj().T @ M))",
    ),
]
_DEFINITIONS = {
    "sqrtm": "from functrans.scipy.linalg import sqrtm",
    "expm": "from functrans.scipy.linalg import expm",
    "cholesky": "from functrans.scipy.linalg import cholesky",
    "turned": """
def turned(n, seed=0):  # an orthogonal matrix
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]
""",
    "unitary": """
def unitary(n):
    numbers = np.random.default_rng(2)
    return np.linalg.qr(numbers.standard_normal((n, n)) + 1j * numbers.standard_normal((n, n)))[0]
""",
    "root": """
def root(S):  # by the iteration of Denman and Beavers
    X, Y = S, np.eye(S.shape[0])
    for _ in range(12):
        X, Y = (X + np.linalg.inv(Y)) / 2, (Y + np.linalg.inv(X)) / 2
    return X
""",
    "exponential": """
def exponential(S):  # by Taylor's series, and squares of it
    T, total = np.eye(S.shape[0]), np.eye(S.shape[0])
    for k in range(1, 19):
        T = T @ S / (8 * k)
        total = total + T
    for _ in range(3):
        total = total @ total
    return total
""",
    "logarithm": """
def logarithm(S):  # 2 artanh((S - 1) / (S + 1))
    one = np.eye(S.shape[0])
    Z = (S - one) @ np.linalg.inv(S + one)
    T, total = Z, Z
    for k in range(1, 40):
        T = T @ Z @ Z
        total = total + T / (2 * k + 1)
    return 2 * total
""",
    "triangular": """
def triangular(S):
    L = np.zeros_like(S)
    for i in range(S.shape[0]):
        for j in range(i + 1):
            rest = S[i, j] - np.sum(L[i, :j] * L[j, :j])
            L[i, j] = np.sqrt(rest) if i == j else rest / L[j, j]
    return L
""",
}
_GAPS = ["0.0", "1e-3", "1e-9", "1e-6", "1e-12", "1e-15", "1e-5", "1e-4", "1e-7", "1e-8", "0.3"]
_VALUES = {
    2: ["[1.0, 1.0 + gap]", "[0.5, 0.5 + gap]"],
    3: ["[1.0, 1.0 + gap, 2.0]", "[1.0, 1.0 + gap, 1.0 + 2 * gap]", "[0.7, 1.5, 1.5 + gap]"],
    4: ["[1.0, 1.0 + gap, 2.0, 2.0 + gap]", "[1.0, 1.0 + gap, 1.0 + 2 * gap, 2.7]"],
}
# M, the matrix passed to the function, and S, the matrix as it is read, both in terms of x. For a symmetric
# matrix, either both triangles depend on x, or the upper triangle contains other numbers.
_READ = {
    "symmetric": ("(x + x.T) / 2", "(x + x.T) / 2"),
    "products": ("x @ x.T", "x @ x.T"),
    "one triangle": (
        "np.tril(x) + np.triu(np.full(x.shape, 7.0), 1)",
        "np.tril(x) + np.tril(x, -1).T",
    ),
}
# Calls with the matrix A, a direction E and weights W.
_LOSS = "lambda x: np.sum(W * f(x))"
_LOOKS = {
    "jvp": (1, "ft.jvp(f, (A,), (E,))[1]"),
    "grad": (1, f"ft.grad({_LOSS})(A)"),
    "jacfwd": (1, "ft.jacfwd(f)(A)"),
    "jacrev": (1, "ft.jacrev(f)(A)"),
    "hessian along": (2, f"ft.hvp({_LOSS}, (A,), (E,))"),
    "second along": (2, "ft.jvp(lambda x: ft.jvp(f, (x,), (E,))[1], (A,), (E,))[1]"),
    "grad of jvp": (2, "ft.grad(lambda x: np.sum(W * ft.jvp(f, (x,), (E,))[1]))(A)"),
    "lanes": (1, f"ft.vmap(ft.grad({_LOSS}))(np.stack([A, A + 0.1 * E]))"),
    "jit": (1, f'ft.jit(ft.grad({_LOSS}), backend="numpy")(A)'),
    "third along": (
        3,
        "ft.jvp(lambda x: ft.jvp(lambda x: ft.jvp(f, (x,), (E,))[1], (x,), (E,))[1], (A,), (E,))[1]",
    ),
}
_TOLERANCES = {1: "1e-6", 2: "1e-4", 3: "1e-2"}


def write(chooser: Chooser) -> Probe:
    if chooser.chance(4):
        return _without_root(chooser)
    n = chooser.pick([2, 3, 4])
    gap, values = chooser.pick(_GAPS), chooser.pick(_VALUES[n])
    turned = chooser.pick(["np.eye({n})", "turned({n})"]).format(n=n)
    look = chooser.weighted(
        [(6 if order == 1 else 3 if order == 2 else 1, name) for name, (order, _) in _LOOKS.items()]
    )
    order, call = _LOOKS[look]
    if chooser.below(3):
        by_vectors, direct = chooser.pick(_SYMMETRIC)
        reading = chooser.pick(list(_READ))
        # These functions do not read one triangle alone, or read it as another function does.
        if reading == "one triangle" and ("return M" in direct or "(M" in direct):
            reading = "symmetric"
        m, s = _READ[reading]
        matrix = f"A = ({turned} * np.array({values})) @ {turned}.T\nA = (A + A.T) / 2"
        if reading == "products":
            matrix = f"A = ({turned} * np.sqrt({values})) @ {turned}.T"
    else:
        by_vectors, direct = chooser.pick(_GENERAL)
        reading = chooser.pick(["general", "complex"])
        m = s = f"x @ unitary({n})" if reading == "complex" else "x"
        rows = chooser.pick(["", f"\nA = np.concatenate([A, np.zeros((1, {n}))])"])
        matrix = f"A = ({turned} * np.sqrt({values})) @ turned({n}, 1).T{rows}"
    text = f"""
def by_vectors(x):
    M = {m}
{indented(by_vectors)}


def direct(x):
    M = S = {s}
{indented(direct)}


def look(function):
    f = lambda x: np.real(function(x))
    return {call}


gap = {gap}
{matrix}
E = np.cos(np.arange(A.size)).reshape(A.shape)
W = np.cos(1.0 + np.arange(np.size(direct(A)))).reshape(np.shape(direct(A)))
laws.accurate_or_unknown(lambda: look(by_vectors), lambda: look(direct), {_TOLERANCES[order]})
"""
    return probe(text, look, reading, f"gap {gap}", definitions=_DEFINITIONS)


def _without_root(chooser: Chooser) -> Probe:
    """A function without a real result for this matrix: a complex result, or an error that says so."""
    function, matrix = chooser.pick(
        [
            ("sqrtm", "np.array([[-1.0, 0.3], [0.3, 2.0]])"),
            ("sqrtm", "np.array([[0.0, 1.0], [-1.0, 0.0]])"),
            ("sqrtm", "-np.eye(2)"),
            ("cholesky", "-np.eye(2)"),
            ("np.linalg.cholesky", "np.array([[1.0, 2.0], [2.0, 1.0]])"),
            ("np.linalg.inv", "np.zeros((2, 2))"),
        ]
    )
    call = chooser.pick(
        [
            "ft.jvp({f}, (A,), (A,))",
            "ft.vjp({f}, A)",
            "ft.grad(lambda x: np.sum(np.abs({f}(x))))(A)",
            'ft.jit({f}, backend="numpy")(A)',
            "ft.vmap({f})(np.stack([A, A]))",
            "{f}(A)",
        ]
    ).format(f=function)
    text = f"A = {matrix}\nlaws.refused_in_words(lambda: {call})"
    return probe(text, "without a root", definitions=_DEFINITIONS)
