"""The source that is written for a function is plain NumPy, runs, and gives the same numbers."""

import ast
import collections
import dataclasses
from operator import attrgetter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
from functrans.errors import MissingRuleError, StagingError
from tests.support.cases import CASES, DIFFERENTIABLE
from tests.support.cases_numpy import NUMPY_CASES
from tests.support.marks import one_in
from tests.support.oracles import assert_trees_close

few = settings(max_examples=1)
STAGED = [case for case in [*CASES, *NUMPY_CASES] if not case.needs_values]
# The other half is in test_jit.py, which runs code by the same writer.
STAGED_DERIVATIVES = [case for case in DIFFERENTIABLE if not case.needs_values][1::2]


def draw(case, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1), label="seed"))
    return case.sample(rng, data.draw(case.shapes, label="shapes"))


def imported(text):
    """The modules that a piece of source imports."""
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import)]
    froms = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    return {alias.name for node in nodes for alias in node.names} | {n.module for n in froms}


@pytest.mark.parametrize("case", STAGED, ids=attrgetter("name"))
@few
@given(data=st.data())
def test_the_source_of_a_function_gives_its_values(case, data):
    args = draw(case, data)
    text = ft.source(case.function)(*args)
    assert imported(text) <= {"numpy", "math", "string"}
    expected = ft.make_graph(case.function)(*args)(*args)
    assert_trees_close(text.function(*args), expected, rtol=1e-9, atol=1e-12, dtypes=True)


@pytest.mark.parametrize("case", one_in(3, STAGED_DERIVATIVES), ids=attrgetter("name"))
@few
@given(data=st.data())
def test_the_source_of_a_gradient_gives_the_gradient(case, data):
    function, reals = case.of_reals(draw(case, data))

    def total(*reals):
        return sum(np.sum(np.real(leaf) ** 2) for leaf in ft.tree.leaves(function(*reals)))

    gradient = ft.grad(total, argnums=tuple(range(len(reals))))
    text = ft.source(gradient)(*reals)
    assert_trees_close(text.function(*reals), gradient(*reals), rtol=1e-9, atol=1e-12, dtypes=True)


def loss(w, x, y):
    return np.mean((np.tanh(x @ w) - y) ** 2)


def test_a_gradient_reads_as_a_person_would_write_it():
    text = ft.source(ft.grad(loss))(np.ones(3), np.ones((5, 3)), np.ones(5))
    assert text == (
        "import numpy as np\n"
        "\n"
        "\n"
        "def grad_loss(w, x, y):\n"
        "    # w: float64[3], x: float64[5,3], y: float64[5]\n"
        "    tanh = np.tanh(x @ w)  # float64[5]\n"
        "    return (0.2 * (2 * (tanh - y)) * (1 - tanh * tanh)) @ x  # float64[3]"
    )


Pair = collections.namedtuple("Pair", "first second")


@dataclasses.dataclass
class Line:
    slope: np.ndarray
    offset: np.ndarray


def test_containers_are_taken_apart_and_put_together():
    params = {"w": np.arange(6.0).reshape(2, 3), "b": [np.ones(3), (np.float32(2.0), None)]}

    def function(params, *, scale):
        w, (b, (c, _)) = params["w"], params["b"]
        return {"a": [w * scale + b, c], "b": Pair(b + 1, None)}, Line(w * 2, b)

    text = ft.source(function)(params, scale=2.0)
    found = text.function(params, scale=2.0)
    expected = function(params, scale=2.0)
    assert_trees_close(found[0], expected[0], dtypes=True)
    assert_trees_close(found[1], expected[1], dtypes=True)


def test_arguments_without_arrays_are_parameters_too():
    text = ft.source(lambda x, options, y, key=None: x * y)(2.0, None, 3.0, key=())
    assert "def function(x, options, y, key):" in text
    assert text.function(2.0, None, 3.0, ()) == 6.0


def test_names_do_not_clash():
    def function(np_, tanh, total):
        return ft.numpy.tanh(np_) * ft.numpy.tanh(np_ + tanh) + total.sum() + (total + tanh).sum()

    args = (np.ones(2), np.full(2, 0.5), np.arange(2.0))
    np.testing.assert_allclose(ft.source(function)(*args).function(*args), function(*args))


def test_large_constants_are_keyword_parameters():
    table = np.random.default_rng(0).normal(size=100)
    text = ft.source(lambda x: x * table)(np.ones(100))
    assert list(text.constants) == ["constant"]
    assert "def function(x, *, constant):" in text
    np.testing.assert_array_equal(text.function(np.ones(100)), table)


def test_constants_keep_their_values_and_types():
    odd = np.array([np.nan, np.inf, -np.inf, -0.0, 0.1])

    def function(x):
        return x * odd, x.astype(np.float32) * np.float32(0.1), x + (1 - 0.0j), x[:0] * np.ones(0)

    x = np.ones(5)
    for one, other in zip(ft.source(function)(x).function(x), function(x), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def test_python_numbers_stay_python_numbers():
    text = ft.source(lambda x, n: (x**n, -x * 3 // n, abs(-x)))(2.5, 3)
    assert text.function(2.5, 3) == (15.625, -3.0, 2.5)
    assert all(type(value) is float for value in text.function(2.5, 3))


def test_parentheses_stand_where_they_must():
    def function(a, b):
        return (
            a - (b - a),
            a / (b / a),
            (-a) ** 2.5 - (a**b) ** a + a ** (b**a) + (-a) ** b,
            a * (b @ b) + (a * b) @ a - a @ (a + b),
            ((a < b) == (b < a)) & ~(a > b) | (a == b),
            -(a + b) * -(a - b) % (a * 2),
            (a + b).sum()[None] * (a * b)[::-1].T,
        )

    args = (np.array([0.25, 0.5]), np.array([2.0, 3.0]))
    with np.errstate(all="ignore"):
        found, expected = ft.source(function)(*args).function(*args), function(*args)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other)


def test_scipy_functions_are_imported():
    special = pytest.importorskip("scipy.special")
    text = ft.source(lambda x: special.gammaln(x) * 2)(np.ones(2) * 3)
    assert "from scipy import special" in text
    np.testing.assert_allclose(text.function(np.full(2, 3.0)), 2 * special.gammaln(3.0))


@pytest.mark.parametrize(
    "function",
    [
        lambda key: ft.random.normal(key, (4,)),
        lambda key: ft.random.gamma(key, np.array([0.5, 2.5])),
        lambda key: ft.random.permutation(key, 5),
    ],
)
def test_random_numbers_need_only_numpy(function):
    key = ft.random.key(3)
    text = ft.source(function)(key)
    assert imported(text) <= {"numpy", "math"}
    np.testing.assert_allclose(text.function(key), function(key))


def test_source_wants_values_that_are_not_traced():
    with pytest.raises(StagingError, match="another transform"):
        ft.grad(lambda x: len(ft.source(lambda y: x * y)(1.0)) * x)(2.0)


def test_a_primitive_that_is_not_an_expression_says_so():
    from functrans.ops.families import elementwise

    mystery = elementwise(None, 1, impl=lambda x: x + 1, name="mystery")
    with pytest.raises(MissingRuleError, match="mystery"):
        ft.source(lambda x: mystery(x))(np.ones(2))


def test_a_copy_of_an_array_without_axes_is_one():
    x = np.array(0.3)
    copied = ft.source(lambda a: a.copy())(x).function(x)
    assert isinstance(copied, np.ndarray) and not np.shares_memory(copied, x)
