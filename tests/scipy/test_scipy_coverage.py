"""docs/scipy-coverage.md says what running SciPy's functions on traced values shows."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import scipy

from tests.support import scipy_runner
from tests.support.coverage_runner import Mistake
from tests.support.scipy_runner import examine
from tools.scipy_coverage import CLASSES, NOT, PARTLY, WORKS, committed, missing, row, sections

VERSION, TABLES = committed()
ROOT = Path(__file__).resolve().parents[2]
SAME_VERSION = scipy.__version__ == VERSION
NAMES = [(section, name) for section in sections() for name in section.names]
needs_version = pytest.mark.skipif(not SAME_VERSION, reason=f"the page is about SciPy {VERSION}")

# A name of every module, which is run each time; all of them are with the marker `slow`.
SHORT = {
    "scipy.linalg": ["cho_solve", "schur", "block_diag"],
    "scipy.integrate": ["simpson", "quad"],
    "scipy.optimize": ["brentq", "rosen", "linear_sum_assignment"],
    "scipy.interpolate": ["CubicSpline", "interp1d"],
    "scipy.fft": ["rfft"],
    "scipy.signal": ["lfilter", "butter"],
    "scipy.stats": ["gamma", "zscore", "alpha"],
    "scipy.ndimage": ["gaussian_filter", "median"],
    "scipy.spatial.distance": ["cdist"],
    "scipy.spatial.transform": ["Slerp"],
    "scipy.special": ["erf", "logsumexp"],
}


def kind_of(line):
    return line.split(" | ")[1].strip()


def check(section, name):
    expected = TABLES[section.title][name]
    if str(row(section, name)) != expected:
        # SciPy's functions learn from the calls before them, of other tests: the page is about the first.
        assert row_of_first_calls(section, name) == expected


def row_of_first_calls(section, name):
    """A row of the table, found in a fresh process."""
    program = (
        "from tools.scipy_coverage import row, sections\n"
        f"(section,) = [s for s in sections() if s.title == {section.title!r}]\n"
        f"print(row(section, {name!r}))"
    )
    command = [sys.executable, "-W", "ignore", "-c", program]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    return run.stdout.strip()


@needs_version
@pytest.mark.parametrize(
    ("section", "name"),
    [pytest.param(s, n, id=f"{s.title}.{n}") for s, n in NAMES if n in SHORT[s.title]],
)
def test_the_table_says_what_running_shows(section, name):
    check(section, name)


@pytest.mark.slow
@needs_version
@pytest.mark.parametrize("section", sections(), ids=lambda section: section.title)
def test_the_whole_table_says_what_running_shows(section):
    for name in section.names:
        check(section, name)


@needs_version
def test_every_name_has_a_call_or_a_reason_to_have_none():
    assert missing() == []
    assert {s.title: set(s.names) for s in sections()} == {
        title: set(rows) for title, rows in TABLES.items() if title.startswith("scipy")
    }


def test_the_counts_are_those_of_the_rows():
    from tools.scipy_coverage import PAGE

    rows = re.findall(r"^\| (.*) \|$", PAGE.read_text().split("## Counts")[1], re.MULTILINE)
    for title, lines in TABLES.items():
        if title.startswith("scipy"):
            count = Counter(map(kind_of, lines.values()))
            cells = [str(count[kind] or "") for kind in CLASSES]
            assert f"{title} | {' | '.join(cells)} | {count.total()}" in rows


# What people use most must work, under every transform but perhaps jit.
NAMED = {
    "scipy.linalg": "solve inv det lstsq pinv cholesky cho_factor cho_solve lu lu_factor lu_solve qr svd "
    "eigh eigvalsh eig solve_triangular solve_banded solve_toeplitz block_diag toeplitz expm logm sqrtm norm",
    "scipy.integrate": "quad quad_vec simpson trapezoid cumulative_trapezoid solve_ivp odeint",
    "scipy.optimize": "brentq bisect newton root root_scalar fsolve minimize minimize_scalar least_squares "
    "curve_fit linear_sum_assignment rosen",
    "scipy.interpolate": "interp1d CubicSpline PchipInterpolator make_interp_spline RegularGridInterpolator",
    "scipy.fft": "fft ifft rfft irfft fft2 fftn dct idct fftshift",
    "scipy.signal": "convolve fftconvolve lfilter sosfilt savgol_filter hilbert butter welch",
    "scipy.stats": "norm uniform expon gamma beta t chi2 f lognorm laplace logistic cauchy weibull_min "
    "pareto rayleigh poisson binom geom nbinom multivariate_normal dirichlet zscore gaussian_kde pearsonr",
    "scipy.ndimage": "gaussian_filter convolve map_coordinates sobel",
    "scipy.spatial.transform": "Slerp",
    "scipy.spatial.distance": "cdist pdist squareform euclidean",
    "scipy.special": "erf gammaln digamma expit logsumexp softmax jv betainc",
}


@pytest.mark.parametrize("title", NAMED)
def test_the_most_used_functions_work(title):
    for name in NAMED[title].split():
        line = TABLES[title][name]
        assert kind_of(line) != NOT, line
        if kind_of(line) == PARTLY and title not in ("scipy.stats",):
            errors = line.split(" | ")[2]
            assert not re.search(r"in [^;]*\b(grad|jvp|vmap)\b", errors), line


# The checks themselves: each of these must be noticed.


def test_a_wrong_value_is_noticed(monkeypatch):
    monkeypatch.setattr("functrans.scipy.linalg.det", lambda a: 2 * np.linalg.det(a))
    scipy_runner.sample.cache_clear()
    from functrans.core import hooks

    monkeypatch.delitem(hooks._known, id(scipy.linalg.det), raising=False)
    with pytest.raises(Mistake, match="grad"):
        examine("linalg.det(A)")


def test_a_derivative_that_is_cut_off_is_noticed(monkeypatch):
    import functrans as ft
    from functrans.core import hooks

    monkeypatch.setattr(
        "functrans.scipy.optimize.rosen", lambda x: ft.stop_gradient(np.sum(x * x) * 0 + 1)
    )
    monkeypatch.delitem(hooks._known, id(scipy.optimize.rosen), raising=False)
    with pytest.raises(Mistake, match="grad"):
        examine("optimize.rosen(b)")


def test_a_call_without_traced_arguments_is_no_example():
    with pytest.raises(Mistake, match="no argument"):
        examine("linalg.hilbert(3)")


def test_works_means_all_transforms():
    assert not examine("linalg.solve(A, b)").errors
    assert WORKS in CLASSES
