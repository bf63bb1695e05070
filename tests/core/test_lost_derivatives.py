"""A derivative is never cut off in silence: only what the user writes out may do so, with a warning."""

import cmath
import logging
import math
import operator
import random
import re
import statistics
import warnings

import numpy as np
import pytest

import functrans as ft
from functrans import checkpoint, cond, custom_jvp, fixed_point, grad, jvp, linearize, scan, vmap
from functrans.errors import ArrayConversionError, DerivativeWarning

MODES = {
    "grad": lambda f: grad(f)(0.5),
    "jvp": lambda f: jvp(f, (0.5,), (1.0,))[1],
    "linearize": lambda f: linearize(f, 0.5)[1](1.0),
    "grad of grad": lambda f: grad(grad(f))(0.5),
    "vmap of grad": lambda f: vmap(grad(f))(np.array([0.5, 0.7])),
    "grad of vmap": lambda f: grad(lambda x: np.sum(vmap(f)(x)))(np.array([0.5, 0.7])),
    "checkpoint": lambda f: grad(checkpoint(f))(0.5),
    "cond": lambda f: grad(lambda x: cond(True, f, f, x))(0.5),
    "scan": lambda f: grad(lambda x: scan(lambda c, _: (f(c), None), x, np.ones(2))[0])(0.5),
}


def by_name(value):
    """A function in C that the user's line does not name."""
    return operator.methodcaller("__float__")(value)


CUTS = {
    "math.sin": (lambda x: math.sin(x), r"math\.sin .*Write np\.sin instead"),
    "math.pow": (lambda x: math.pow(x, 2.0), r"Write np\.pow instead"),
    "math.erf": (lambda x: math.erf(x), r"Write scipy\.special\.erf instead"),
    "math.lgamma": (lambda x: math.lgamma(x), r"Write scipy\.special\.gammaln instead"),
    "math.fsum": (lambda x: math.fsum([x, x]), r"Write np\.sum instead"),
    "cmath.exp": (lambda x: cmath.exp(x).real, r"Write np\.exp instead"),
    "np.float64": (lambda x: np.float64(x), r"Write x\.astype\(np\.float64\)"),
    "complex": (lambda x: complex(x).real, r"Write x \+ 0j"),
    "another function": (by_name, r"no derivative"),
    "map(float)": (lambda x: sum(map(float, [x])), r"no derivative"),
    "statistics": (lambda x: statistics.fmean([x, x]), r"no derivative|without a derivative"),
}


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
@pytest.mark.parametrize(("convert", "remedy"), CUTS.values(), ids=CUTS)
@pytest.mark.usefixtures("without_hooks")
def test_what_would_cut_a_derivative_off_is_an_error(mode, convert, remedy):
    def f(x):
        return x * convert(x)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as pipelines do
        with pytest.raises(ArrayConversionError, match=remedy) as info:
            mode(f)
    assert "test_lost_derivatives.py" in str(info.value)


@pytest.mark.usefixtures("without_hooks")
def test_the_function_that_a_transform_is_given_may_be_in_c():
    with pytest.raises(ArrayConversionError, match=r"math\.sin .*np\.sin"):
        grad(math.sin)(0.5)
    with pytest.raises(ArrayConversionError, match=r"math\.sin .*np\.sin"):
        ft.jacfwd(math.sin)(0.5)


@pytest.mark.usefixtures("without_hooks")
def test_scipys_compiled_code_is_named_with_the_users_line():
    integrate = pytest.importorskip("scipy.integrate")
    for f, name in (
        (lambda x: integrate.quad(lambda s: s * x, 0.0, 1.0)[0], "integrate.quad"),
        (lambda x: integrate.quad(lambda s: s, 0.0, x)[0], "integrate.quad"),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(ArrayConversionError) as info:
                grad(f)(2.0)
        message = str(info.value)
        assert f"scipy.{name}" in message and "test_lost_derivatives.py" in message


@pytest.mark.usefixtures("without_hooks")
def test_a_derivative_through_a_root_finder_in_c_is_never_a_number():
    # SciPy calls the function again while the error of its first call is pending, and Python then may fail
    # in any attribute. So the kind of error is not ours to promise.
    optimize = pytest.importorskip("scipy.optimize")
    with pytest.raises((ArrayConversionError, AttributeError, SystemError, TypeError)):
        grad(lambda x: optimize.brentq(lambda s: s * s - x, 0.0, 5.0))(2.0)


@pytest.mark.parametrize("mode", ["grad", "jvp", "vmap of grad", "checkpoint"])
@pytest.mark.parametrize(
    "convert", [lambda x: float(x), lambda x: int(x), lambda x: x.item(), lambda x: x.tolist()]
)
@pytest.mark.usefixtures("without_hooks")
def test_what_the_user_writes_out_warns(mode, convert):
    def f(x):
        return x * convert(x)

    with pytest.warns(DerivativeWarning, match="no derivative flows") as record:
        result = MODES[mode](f)
    expected = [convert(v) for v in (np.float64(0.5), np.float64(0.7))]
    np.testing.assert_allclose(result, expected if "vmap" in mode else expected[0])
    assert record[0].filename.endswith("test_lost_derivatives.py")


@pytest.mark.usefixtures("without_hooks")
def test_a_library_may_not_write_it_out_for_the_user(tmp_path, monkeypatch):
    site = tmp_path / "site-packages"
    site.mkdir()
    (site / "somebodys_library.py").write_text(
        "def rounded(x):\n    return float(x)\n\ndef item(x):\n    return x.item()\n"
    )
    monkeypatch.syspath_prepend(str(site))
    import somebodys_library

    for convert in (somebodys_library.rounded, somebodys_library.item):
        with pytest.raises(ArrayConversionError, match=r"test_lost_derivatives\.py"):
            grad(lambda x: x * convert(x))(0.5)  # noqa: B023


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * (2.0 if math.isnan(x) else 3.0),
        lambda x: x * (3.0 if math.isclose(x, x) and math.isfinite(x) else 2.0),
        lambda x: x * (3.0 if "%.3f" % x else 2.0),  # noqa: UP031
        lambda x: x * (3.0 if f"{x:.3f} {x}" and format(x, "e") else 2.0),
        lambda x: x * (3 + 0 * math.floor(x) + 0 * round(x) + 0 * math.ceil(x)),
        lambda x: (logging.getLogger("test").debug("%f", x), 3.0 * x)[1],
        lambda x: x * float(3 + 0 * np.argmax(x)),
    ],
)
def test_predicates_formats_and_roundings_lose_nothing(mode, f):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = mode(f)
    reference = mode(lambda x: 3.0 * x)
    np.testing.assert_allclose(found, reference)


def test_without_a_derivative_there_is_nothing_to_lose():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lanes = np.array([0.5, 0.7])
        np.testing.assert_allclose(vmap(lambda x: math.sin(x))(lanes), np.sin(lanes))
        constant = grad(lambda x: x * math.sin(ft.stop_gradient(x)))(0.5)
        assert constant == math.sin(0.5)


@pytest.mark.usefixtures("without_hooks")
def test_a_function_with_a_rule_may_compute_as_it_likes():
    f = custom_jvp(lambda x: math.sin(x))
    f.defjvp(lambda primals, tangents: (f(*primals), math.cos(primals[0]) * tangents[0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert grad(f)(0.5) == math.cos(0.5)
        assert grad(checkpoint(f))(0.5) == math.cos(0.5)
    with pytest.raises(ArrayConversionError, match=r"math\.cos"):
        grad(grad(f))(0.5)


@pytest.mark.usefixtures("without_hooks")
def test_an_equation_that_is_solved_is_differentiated_too():
    with pytest.raises(ArrayConversionError, match=r"math\.cos"):
        grad(lambda a: fixed_point(lambda y: math.cos(y) * a, 1.0))(0.5)


def test_random_numbers_of_the_standard_library():
    with pytest.raises(ArrayConversionError, match=r"random .*functrans\.random"):
        grad(lambda x: np.random.default_rng(0).normal(x))(0.5)
    random.seed(0)
    assert grad(lambda x: random.gauss(x, 1.0))(0.5) == 1.0  # in Python: it is differentiated


@pytest.mark.usefixtures("without_hooks")
def test_code_without_source_is_understood():
    scope = {"math": math}
    exec("def good(x):\n    return x * float(x)\ndef bad(x):\n    return math.sin(x)", scope)
    with pytest.warns(DerivativeWarning):
        assert grad(scope["good"])(0.5) == 0.5
    with pytest.raises(ArrayConversionError, match=re.escape("math.sin")):
        grad(scope["bad"])(0.5)
    # Called so often that the interpreter has specialized the call.
    scope["many"] = 0.0
    exec("def loop(x):\n    for _ in range(50): y = float(x)\n    return x * y", scope)
    with pytest.warns(DerivativeWarning):
        assert grad(scope["loop"])(0.5) == 0.5
