"""Series and DataFrames of pandas, and DataArrays of xarray, as arguments of transforms."""

import gc
import weakref

import numpy as np
import pytest

import functrans as ft

pd = pytest.importorskip("pandas")
xr = pytest.importorskip("xarray")
pytestmark = pytest.mark.peers

SERIES = pd.Series([1.0, 2.0, 3.0], index=["a", "b", "c"], name="weights")
FRAME = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [4.0, 5.0, 6.0]}, index=[10, 20, 30])
GRID = xr.DataArray(
    np.arange(6.0).reshape(2, 3),
    dims=("t", "k"),
    coords={"t": [0.1, 0.2], "k": ["u", "v", "w"], "run": ("t", [5, 6])},
    name="height",
    attrs={"unit": "m"},
)
LABELLED = pytest.mark.parametrize("value", [SERIES, FRAME, GRID], ids=lambda v: type(v).__name__)


def loss(x):
    return np.sum(x**3)


def same_labels(one, other):
    """The same kind of object with the same labels, whatever its numbers are."""
    if isinstance(other, xr.DataArray):
        return one.copy(data=np.zeros(one.shape)).identical(other.copy(data=np.zeros(other.shape)))
    if type(one) is not type(other) or not one.index.identical(other.index):
        return False
    if isinstance(other, pd.Series):
        return one.name == other.name
    return one.columns.identical(other.columns)


@LABELLED
@pytest.mark.parametrize(
    "gradient",
    [
        ft.grad(loss),
        lambda x: ft.value_and_grad(loss)(x)[1],
        lambda x: ft.vjp(loss, x)[1](1.0)[0],
        ft.jacrev(loss),
        ft.jacfwd(loss),
        ft.grad(ft.checkpoint(loss)),
        ft.grad(ft.jit(loss)),
        lambda x: ft.grad(lambda tree: loss(tree["x"][0]))({"x": [x]})["x"][0],
        lambda x: ft.grad(lambda y, x: loss(x) * y, (0, 1))(1.0, x)[1],
    ],
    ids=["grad", "value_and_grad", "vjp", "jacrev", "jacfwd", "checkpoint", "jit", "dict", "two"],
)
def test_a_gradient_has_the_labels_of_the_argument(value, gradient):
    found = gradient(value)
    assert same_labels(found, value)
    np.testing.assert_allclose(np.asarray(found), 3 * np.asarray(value) ** 2)


@LABELLED
def test_transforms_take_the_array(value):
    array = np.asarray(value)
    np.testing.assert_allclose(ft.jit(loss)(value), loss(array))
    np.testing.assert_allclose(ft.jit(ft.grad(loss))(value), 3 * array**2)
    np.testing.assert_allclose(
        ft.vmap(lambda row: np.sum(row**2))(value), [np.sum(r**2) for r in array]
    )
    np.testing.assert_allclose(ft.hessian(loss)(value), ft.hessian(loss)(array))
    np.testing.assert_allclose(ft.jvp(loss, (value,), (value,))[1], np.sum(3 * array**3))
    np.testing.assert_allclose(ft.linearize(loss, value)[1](value), np.sum(3 * array**3))
    np.testing.assert_allclose(ft.make_graph(loss)(value)(value), loss(array))
    np.testing.assert_allclose(ft.scan(lambda c, x: (c + np.sum(x), c), 0.0, value)[0], array.sum())


@LABELLED
def test_the_function_gets_a_traced_array(value):
    seen = []

    def look(x):
        seen.append((x.shape, isinstance(x, (pd.Series, pd.DataFrame, xr.DataArray))))
        return np.sum(x)

    ft.grad(look)(value)
    assert seen == [(value.shape, False)]


def test_another_index_is_not_mistaken_for_the_first():
    gradient = ft.grad(loss)
    other = pd.Series([1.0, 2.0, 3.0], index=["d", "e", "f"])
    for series in (SERIES, other, SERIES):
        assert same_labels(gradient(series), series)


def test_results_of_other_shapes_are_arrays():
    assert type(ft.jacrev(lambda x: x[:2] ** 2)(SERIES)) is np.ndarray
    assert type(ft.hessian(loss)(SERIES)) is np.ndarray


def test_trees_of_labelled_arrays_keep_their_labels():
    params = {"w": SERIES, "b": 1.0}
    gradients = ft.grad(lambda p: loss(p["w"]) * p["b"])(params)
    updated = ft.tree.map(lambda p, g: p - 0.1 * g, params, gradients)
    assert same_labels(updated["w"], SERIES)
    np.testing.assert_allclose(updated["w"], SERIES - 0.1 * gradients["w"])


def test_an_extra_result_keeps_its_labels():
    _, aux = ft.grad(lambda x: (loss(x), {"table": FRAME}), has_aux=True)(SERIES)
    assert same_labels(aux["table"], FRAME)


def test_an_argument_that_is_not_differentiated_stays_as_it_is():
    table = pd.DataFrame({"x": [1.0, 2.0], "name": ["a", "b"]})
    slope = ft.grad(lambda w, table: w * np.sum(table["x"].to_numpy()))(2.0, table)
    assert slope == 3.0


def test_data_that_the_function_closes_over():
    np.testing.assert_allclose(ft.grad(lambda w: np.sum(FRAME @ w))(np.ones(2)), [6.0, 15.0])
    gradient = ft.grad(lambda w: np.sum((w * FRAME.y - FRAME.x) ** 2))(np.zeros(3))
    np.testing.assert_allclose(gradient, [-8.0, -20.0, -36.0])


def test_numbers_of_pandas_own_dtypes():
    gradient = ft.grad(loss)(pd.Series([1.0, 2.0], dtype="Float64"))
    np.testing.assert_allclose(gradient, [3.0, 12.0])
    mixed = pd.DataFrame({"a": [1, 2], "b": [0.5, 1.5]})
    np.testing.assert_allclose(ft.grad(loss)(mixed), 3 * mixed.to_numpy() ** 2)
    single = ft.grad(loss)(SERIES.astype(np.float32))
    assert single.dtype == np.float32


@pytest.mark.parametrize("transform", [ft.grad, ft.jit, ft.vmap, ft.hessian])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (pd.DataFrame({"x": [1.0], "name": ["a"]}), "column 'name'"),
        (pd.Series(["a", "b"]), "a Series of dtype"),
        (pd.Series(pd.date_range("2020", periods=2)), "a Series of dtype datetime"),
        (xr.DataArray(np.array(["a", "b"])), "a DataArray of dtype"),
    ],
    ids=["frame", "strings", "dates", "grid"],
)
def test_values_that_are_not_numbers_are_refused(transform, value, message):
    with pytest.raises(ft.errors.InputTypeError, match=message):
        transform(loss)(value)


def test_integers_are_refused_as_in_arrays():
    with pytest.raises(ft.errors.InputTypeError, match="int64"):
        ft.grad(loss)(pd.Series([1, 2]))


def test_a_pullback_does_not_keep_the_argument():
    series = pd.Series(np.ones(1000))
    _, pullback = ft.vjp(lambda x: np.sum(2.0 * x), series)
    watched = weakref.ref(series)
    del series
    gc.collect()
    assert watched() is None
    assert isinstance(pullback(1.0)[0], pd.Series)
