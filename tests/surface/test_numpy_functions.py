"""Behavior of NumPy's functions beyond the table of laws: ties, errors, lanes, dtypes, no hooks."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.errors import ArrayConversionError, StagingError
from tests.support.oracles import assert_trees_close, loop_vmap, numerical_gradient

RNG = np.random.default_rng(7)


def gradient(function, x):
    return ft.grad(lambda v: np.sum(function(v)))(x)


# --- ties share evenly ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "x", "expected"),
    [
        (np.median, [1.0, 2.0, 2.0, 2.0, 5.0], [0, 1 / 3, 1 / 3, 1 / 3, 0]),
        (np.median, [1.0, 2.0, 3.0, 4.0], [0, 0.5, 0.5, 0]),
        (lambda x: np.quantile(x, 0.5), [3.0, 1.0, 3.0], [0.5, 0, 0.5]),
        (np.nanmax, [2.0, np.nan, 2.0, 1.0], [0.5, 0, 0.5, 0]),
        (np.fmin.reduce, [1.0, 1.0, np.nan], [0.5, 0.5, 0]),
        (lambda x: np.maximum.accumulate(x)[-1], [2.0, 1.0, 2.0, 2.0], [1 / 3, 0, 1 / 3, 1 / 3]),
        (lambda x: np.minimum.accumulate(x)[-1], [3.0, 1.0, 2.0, 1.0], [0, 0.5, 0, 0.5]),
        (lambda x: np.maximum.reduceat(x, [0, 2])[0], [1.0, 1.0, 9.0], [0.5, 0.5, 0]),
    ],
)
def test_ties_share_evenly_in_both_modes(function, x, expected):
    x = np.array(x)
    np.testing.assert_allclose(gradient(function, x), expected)
    np.testing.assert_allclose(ft.jacfwd(function)(x), expected)


def test_a_running_maximum_begins_anew_at_each_record():
    x = np.array([1.0, 3.0, 2.0, 3.0, 4.0])
    expected = np.zeros((5, 5))
    expected[0, 0] = expected[1, 1] = expected[2, 1] = expected[4, 4] = 1
    expected[3, [1, 3]] = 0.5
    np.testing.assert_allclose(ft.jacrev(np.maximum.accumulate)(x), expected)
    np.testing.assert_allclose(ft.jacfwd(np.maximum.accumulate)(x), expected)


# --- derivatives of high order --------------------------------------------------------------------


def test_i0_has_every_derivative_also_at_zero():
    derivatives, function = [], np.i0
    for _ in range(6):
        derivatives.append(float(function(0.0)))
        function = ft.grad(function)
    # I0(x) = 1 + x^2/4 + x^4/64 + ...: the coefficients times 0!, 2!, 4!
    np.testing.assert_allclose(derivatives, [1, 0, 1 / 2, 0, 3 / 8, 0], atol=1e-14)


def test_i0_far_out_grows_like_its_derivatives():
    x = np.array([-300.0, -45.0, 38.0, 300.0])
    slope = ft.vmap(ft.grad(np.i0))(x)
    curvature = ft.vmap(ft.grad(ft.grad(np.i0)))(x)
    # The differential equation x^2 y'' + x y' - x^2 y = 0.
    np.testing.assert_allclose(curvature, np.i0(x) - slope / x, rtol=1e-12)


def test_sinc_has_derivatives_of_every_order_at_and_near_zero():
    for x in (0.0, 1e-9, -1e-5):
        fourth = ft.grad(ft.grad(ft.grad(ft.grad(np.sinc))))(x)
        np.testing.assert_allclose(fourth, np.pi**4 / 5, rtol=1e-6)


def test_a_quantile_moves_with_q_between_two_entries():
    x = np.array([1.0, 4.0, 2.0])
    np.testing.assert_allclose(ft.grad(lambda q: np.quantile(x, q))(0.3), 2.0)
    np.testing.assert_allclose(ft.grad(lambda q: np.percentile(x, q))(80.0), 0.04)
    qs = np.array([0.1, 0.4, 0.9])
    np.testing.assert_allclose(ft.vmap(lambda q: np.quantile(x, q))(qs), np.quantile(x, qs))


# --- nan ------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "function",
    [np.nansum, np.nanmean, np.nanprod, np.nanmax, np.nanvar, np.nanmedian, np.median, np.nanmin],
)
def test_slices_of_nothing_but_nan_give_what_numpy_gives(function):
    x = np.array([[np.nan, np.nan], [1.0, np.nan], [2.0, 5.0]])
    along = lambda v: function(v, axis=1)
    np.testing.assert_allclose(ft.vjp(along, x)[0], along(x))
    np.testing.assert_allclose(ft.vmap(function)(x), along(x))


def test_no_derivative_reaches_nan():
    x = np.array([np.nan, 2.0, 3.0])
    for function in (np.nansum, np.nanmean, np.nanprod, np.nanstd, np.nanmedian, np.nancumsum):
        assert gradient(function, x)[0] == 0
        assert np.isfinite(gradient(function, x)).all()


def test_nanargmax_of_nan_raises_as_in_numpy():
    with pytest.raises(ValueError, match="All-NaN slice"):
        ft.grad(lambda x: x[np.nanargmax(x)])(np.full(2, np.nan))


# --- shapes that depend on data -------------------------------------------------------------------

DATA_DEPENDENT = {
    "nonzero": np.nonzero,
    "flatnonzero": np.flatnonzero,
    "argwhere": np.argwhere,
    "where": lambda x: np.where(x > 0),
    "unique": np.unique,
    "extract": lambda x: np.extract(x > 0, x),
    "compress": lambda x: np.compress(x > 0, x),
    "trim_zeros": np.trim_zeros,
    "union1d": lambda x: np.union1d(x, [1.0]),
    "intersect1d": lambda x: np.intersect1d(x, [1.0]),
    "setdiff1d": lambda x: np.setdiff1d(x, [1.0]),
    "setdiff1d of a plain array": lambda x: np.setdiff1d([1.0, 5.0], x),
    "setxor1d": lambda x: np.setxor1d(x, [1.0]),
    "piecewise": lambda x: np.piecewise(x, [x > 0], [np.sin]),
    "polymul": lambda x: np.polymul(x, x),
    "emath.sqrt": np.emath.sqrt,
}


@pytest.mark.parametrize("name", DATA_DEPENDENT)
def test_a_shape_that_depends_on_data_cannot_be_staged(name):
    with pytest.raises(StagingError):
        ft.make_graph(DATA_DEPENDENT[name])(np.array([1.0, 0.0, -2.0]))


@pytest.mark.parametrize("name", [n for n in DATA_DEPENDENT if n != "union1d"])
def test_lanes_part_where_a_shape_depends_on_data(name):
    function = lambda x: [np.sum(leaf * 1.0) for leaf in _as_list(DATA_DEPENDENT[name](x))]
    x = np.array([[1.0, 0.0, -2.0], [0.0, 0.0, 3.0], [4.0, 4.0, 1.0]])
    assert_trees_close(ft.vmap(function)(x), loop_vmap(function, 0)(x))


def _as_list(result):
    return list(result) if isinstance(result, tuple) else [result]


def test_sets_have_the_derivative_of_the_entries_they_take():
    x = np.array([3.0, 1.0, 3.0])
    np.testing.assert_allclose(gradient(lambda v: np.unique(v) * [10.0, 1.0], x), [1, 10, 0])
    values, counts = ft.vjp(lambda v: np.unique_counts(v)[0], x)[0], np.unique_counts(x).counts
    np.testing.assert_allclose(values, [1, 3])
    record = ft.grad(lambda v: (np.sum(np.unique_all(v).values), np.unique_all(v)), has_aux=True)
    slope, found = record(x)
    np.testing.assert_allclose(slope, [1, 1, 0])
    for mine, theirs in zip(found, np.unique_all(x), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(found.counts, counts)
    np.testing.assert_allclose(ft.vjp(np.unique_values, x)[0], np.unique_values(x))
    np.testing.assert_allclose(ft.vjp(lambda v: np.unique_inverse(v).values, x)[0], [1, 3])


def test_unique_returns_all_that_is_asked():
    x = np.array([[2.0, 1.0], [2.0, 1.0], [0.0, 3.0]])
    options = {"return_index": True, "return_inverse": True, "return_counts": True}
    for axis in (None, 0):
        expected = np.unique(x, axis=axis, **options)
        found = ft.jvp(lambda v, a=axis: np.unique(v, axis=a, **options), (x,), (x,))[0]
        for mine, theirs in zip(found, expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_lanes_of_different_lengths_are_refused():
    with pytest.raises(ValueError):
        ft.vmap(np.unique)(np.array([[1.0, 1.0], [1.0, 2.0]]))


def test_bins_by_rule_and_by_data():
    x = RNG.normal(size=20)
    for bins in ("auto", "sturges", 5, [-1.0, 0.0, 2.0]):
        function = lambda v, b=bins: np.histogram(v, bins=b, density=True)
        assert_trees_close(ft.vjp(function, x)[0], function(x), rtol=1e-12)
    edges = lambda v: np.sum(np.histogram_bin_edges(v, 4) * np.arange(5.0))
    assert_trees_close(ft.grad(edges)(x), numerical_gradient(edges, (x,))[0])
    heights, *grid = ft.vjp(lambda v: np.histogram2d(v, v**2, bins=3), x)[0]
    assert_trees_close((heights, *grid), np.histogram2d(x, x**2, bins=3))
    flat = np.full(3, 2.0)
    assert_trees_close(ft.vjp(np.histogram, flat)[0], np.histogram(flat))


# --- options and dtypes ---------------------------------------------------------------------------


def test_reductions_take_all_options_together():
    x = RNG.normal(size=(2, 3))
    mask = np.array([True, False, True])
    options = {"axis": 1, "dtype": np.float32, "keepdims": True, "initial": 2.0, "where": mask}
    for function in (np.sum, np.prod):
        call = lambda v, f=function: f(v, **options)
        assert_trees_close(ft.vjp(call, x)[0], call(x), rtol=1e-6, dtypes=True)
    empty = np.ones((2, 0))
    call = lambda v: np.max(v, axis=1, initial=3.0, keepdims=True)
    assert_trees_close(ft.vjp(call, empty)[0], call(empty), dtypes=True)


def test_a_traced_mask_selects_in_a_reduction():
    x = np.arange(6.0).reshape(2, 3)
    masks = x % 2 == 0
    for ufunc in (np.add, np.multiply, np.hypot):
        by_lane = ft.vmap(lambda v, m, u=ufunc: u.reduce(v, where=m, initial=1.0))(x, masks)
        np.testing.assert_allclose(by_lane, ufunc.reduce(x, axis=1, where=masks, initial=1.0))


@pytest.mark.parametrize(
    ("ufunc", "options", "error"),
    [
        (np.subtract, {"axis": None}, "not reorderable"),
        (np.divide, {"where": np.ones(3, bool)}, "does not have an identity"),
    ],
)
def test_reduce_refuses_what_numpy_refuses(ufunc, options, error):
    for x in (np.ones((2, 3)),):
        with pytest.raises(ValueError, match=error):
            ufunc.reduce(x, **options)
        with pytest.raises(ValueError, match=error):
            ft.vmap(lambda v: ufunc.reduce(v, **options))(x[None])


@pytest.mark.parametrize("ufunc", [np.add, np.logaddexp, np.subtract, np.maximum])
def test_reductions_of_nothing(ufunc):
    empty = np.ones((0, 2))
    if ufunc.identity is None:
        with pytest.raises(ValueError):
            ft.vjp(lambda x: ufunc.reduce(x), empty)
    else:
        np.testing.assert_array_equal(
            ft.vjp(lambda x: ufunc.reduce(x), empty)[0], ufunc.reduce(empty)
        )
    np.testing.assert_array_equal(
        ft.vjp(lambda x: ufunc.reduce(x, initial=2.0), empty)[0], ufunc.reduce(empty, initial=2.0)
    )


def test_integers_in_lanes_have_numpys_dtypes():
    n = np.array([[3, 1, 2], [0, 5, 4]], np.int32)
    for function in (
        np.add.reduce,
        np.add.accumulate,
        np.bitwise_xor.reduce,
        np.gcd.reduce,
        np.lcm.reduce,
        np.divide.reduce,
        np.maximum.accumulate,
        np.median,
        np.nansum,
        lambda v: np.quantile(v, 0.3),
        lambda v: np.quantile(v, 0.3, method="lower"),
        lambda v: np.quantile(v, 1),
        np.average,
        np.cov,
        lambda v: np.diff(v, append=7),
        np.gradient,
        lambda v: np.unwrap(v, period=4),
        lambda v: np.linspace(0, v[1], 4, dtype=int),
        lambda v: np.polyval([1, 2, 3], v),
        np.vander,
        lambda v: np.convolve(v, [1, 2]),
        lambda v: np.interp(v, [0, 5], [0.0, 1.0]),
        np.sort_complex,
        np.i0,
        np.sinc,
    ):
        assert_trees_close(ft.vmap(function)(n), loop_vmap(function, 0)(n), dtypes=True)


def test_float32_stays_float32():
    x = RNG.uniform(0.5, 2, (2, 4)).astype(np.float32)
    for function in (
        np.logaddexp.reduce,
        np.median,
        lambda v: np.quantile(v, 0.4),
        lambda v: np.nanquantile(v, 0.4),
        np.nanstd,
        np.gradient,
        np.unwrap,
        np.i0,
        lambda v: np.linspace(v, 1.0, 3),
        lambda v: np.average(v, axis=0),
    ):
        value, pullback = ft.vjp(lambda v, f=function: _as_list(f(v)), x)
        assert_trees_close(value, _as_list(function(x)), rtol=1e-5, dtypes=True)
        assert pullback(value)[0].dtype == np.float32


# --- errors are those of NumPy --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (lambda x: np.quantile(x, 1.5), ValueError),
        (lambda x: np.percentile(x, 50, method="best"), ValueError),
        (lambda x: np.quantile(x, 0.5, weights=np.ones(3)), ValueError),
        (lambda x: np.average(x, weights=np.zeros(3)), ZeroDivisionError),
        (lambda x: np.average(x, weights=np.zeros(2)), TypeError),
        (lambda x: np.cov(x, aweights=-np.ones(3)), ValueError),
        (lambda x: np.cov(x, ddof=0.5), ValueError),
        (lambda x: np.bincount(x), TypeError),
        (lambda x: np.bincount([0, 1], x), ValueError),
        (lambda x: np.histogram(x, bins=[2.0, 1.0]), ValueError),
        (lambda x: np.histogram(x, bins=0), ValueError),
        (lambda x: np.diff(x, -1), ValueError),
        (lambda x: np.gradient(x[:1]), ValueError),
        (lambda x: np.gradient(x, 1.0, 2.0), TypeError),
        (lambda x: np.interp(0.5, x, [1.0]), ValueError),
        (lambda x: np.convolve(x, []), ValueError),
        (lambda x: np.convolve(x, x, mode="some"), ValueError),
        (lambda x: np.searchsorted(x, 1.0, side="middle"), ValueError),
        (lambda x: np.choose([0, 5, 0], [x, x]), ValueError),
        (lambda x: np.cross(x, x[:1]), ValueError),
        (lambda x: np.polyder(x, -1), ValueError),
        (lambda x: np.vander(x[None]), ValueError),
        (lambda x: np.linspace(x, 1.0, -1), ValueError),
        (lambda x: np.geomspace(0.0, x), ValueError),
        (lambda x: np.lib.stride_tricks.sliding_window_view(x, 9), ValueError),
        (lambda x: np.block([[x], x]), ValueError),
        (lambda x: np.cumulative_sum(x[None]), ValueError),
        (lambda x: np.i0(x * 1j), TypeError),
        (lambda x: np.trim_zeros(x, "c"), ValueError),
        (lambda x: np.nonzero(x[0]), ValueError),
        (lambda x: np.piecewise(x, [x > 0], [1, 2, 3]), ValueError),
    ],
)
def test_mistakes_raise_as_in_numpy(function, kind):
    x = np.array([1.0, 2.0, 4.0])
    with pytest.raises(kind):
        function(x)
    with pytest.raises(kind):
        ft.vjp(function, x)


# --- functions of functions -----------------------------------------------------------------------


def test_vectorize_takes_branches_entry_by_entry():
    @fnp.vectorize
    def sawtooth(x, n):
        """Up and down."""
        return x * n if x > 0 else -x

    x = np.array([[-1.0, 2.0], [3.0, -4.0]])
    assert sawtooth.__doc__ == "Up and down."
    np.testing.assert_array_equal(sawtooth(x, [2.0, 5.0]), [[1.0, 10.0], [6.0, 4.0]])
    np.testing.assert_array_equal(
        gradient(lambda v: sawtooth(v, [2.0, 5.0]), x), [[-1, 5], [2, -1]]
    )
    np.testing.assert_array_equal(ft.vmap(lambda v: sawtooth(v, 3.0))(x), sawtooth(x, 3.0))
    assert ft.grad(lambda v: sawtooth(v, 3.0))(2.0) == 3.0


def test_vectorize_with_a_signature_maps_the_axes_before():
    product = fnp.vectorize(lambda a, x: a @ x, signature="(m,n),(n)->(m)")
    a, x = RNG.normal(size=(4, 2, 3)), RNG.normal(size=(5, 1, 3))
    np.testing.assert_allclose(product(a, x), np.einsum("kmn,jqn->jkm", a, x))
    loss = lambda a, x: np.sum(product(a, x) ** 2)
    grads = ft.grad(loss, (0, 1))(a, x)
    assert_trees_close(grads, numerical_gradient(loss, (a, x)))
    with pytest.raises(ValueError, match="core dimension 'n'"):
        product(a, x[..., :2])
    with pytest.raises(ValueError, match="gufunc signature"):
        fnp.vectorize(abs, signature="(n")


def test_vectorize_excludes_names_and_returns_several_results():
    def polynomial(p, x):
        return np.polyval(p, x), x > 0

    both = fnp.vectorize(polynomial, otypes=[float, int], excluded=["p"])
    value, sign = both(p=[1.0, 0.0, 2.0], x=np.array([-1.0, 3.0]))
    np.testing.assert_array_equal(value, [3.0, 11.0])
    assert sign.dtype == int
    with pytest.raises(ValueError, match="size 0"):
        both(p=[1.0], x=np.array([]))


@pytest.mark.usefixtures("without_hooks")
def test_numpys_own_vectorize_gives_no_hook():
    with pytest.raises(ArrayConversionError):
        ft.grad(lambda x: np.sum(np.vectorize(lambda v: v * v)(x)))(np.ones(2))


def test_piecewise_calls_each_function_with_its_entries_only():
    x = np.array([-4.0, 1.0, 9.0])

    def function(v):
        return np.piecewise(
            v, [v < 0, v > 5], [lambda u: np.sqrt(-u), lambda u: u - np.sum(u), 7.0]
        )

    np.testing.assert_allclose(ft.vjp(function, x)[0], function(x))
    np.testing.assert_allclose(gradient(function, x), [-0.25, 0, 0])
    single = lambda v: np.piecewise(v, v > 0, [1.0, 2.0])
    np.testing.assert_allclose(ft.vmap(single)(x[None])[0], single(x))


def test_poly1d_works_on_traced_coefficients():
    p = np.array([1.0, -3.0, 2.0])

    def square_at(p, x):
        return (np.poly1d(p) * np.poly1d(p))(x)

    assert_trees_close(
        ft.grad(square_at)(p, 3.0), numerical_gradient(lambda q: square_at(q, 3.0), (p,))[0]
    )


def test_zeros_in_conjugate_pairs_have_real_coefficients():
    def coefficients(x):
        zeros = x[:1] + 1j * x[1:]
        return np.poly(np.concatenate([zeros, np.conj(zeros)]))

    x = np.array([1.0, 2.0])
    np.testing.assert_allclose(ft.vjp(coefficients, x)[0], [1, -2, 5])
    np.testing.assert_allclose(ft.jacfwd(coefficients)(x), [[0, 0], [-2, 0], [2, 4]])


def test_real_if_close_and_complex_tests():
    z = np.array([1.0 + 1e-16j, 2.0])
    assert np.isrealobj(ft.jvp(np.real_if_close, (z,), (z,))[0])
    assert np.iscomplexobj(ft.jvp(np.real_if_close, (z * 1j,), (z,))[0])


def test_nan_to_num_of_complex_numbers():
    z = np.array([np.nan + 1j, 2.0 - np.inf * 1j])
    np.testing.assert_array_equal(
        ft.jvp(lambda v: np.nan_to_num(v, neginf=-9.0), (z,), (z,))[0],
        np.nan_to_num(z, neginf=-9.0),
    )


def test_views_between_complex_and_real():
    x = np.array([[1.0, 2.0, 3.0, 4.0]])
    assert_trees_close(ft.vjp(lambda v: v.view(complex), x)[0], x.view(complex), dtypes=True)
    z = x.view(complex)
    assert_trees_close(ft.vjp(lambda v: v.view(float), z)[0], x, dtypes=True)
    assert ft.grad(lambda v: np.sum(v.view(complex)[:, 1]).imag)(x).tolist() == [[0, 0, 0, 1]]
    with pytest.raises(TypeError, match="bytes of an array as another type"):
        ft.grad(lambda v: v.view(np.int64).sum())(x)


def test_methods_that_read():
    x = np.array([[0.0, 2.0], [3.0, 0.0]])

    def function(v):
        assert len(v.flat) == 4
        assert v.device == "cpu"
        rows, columns = v.nonzero()
        assert (rows.tolist(), columns.tolist()) == ([0, 1], [1, 0])
        assert v[0].argpartition(1).tolist() == [0, 1]
        return sum(entry**2 for entry in v.flat) + v.to_device("cpu").sum()

    np.testing.assert_allclose(ft.grad(function)(x), 2 * x + 1)


def test_questions_about_shapes_and_types():
    x = np.ones((3, 3), np.float32)

    def function(v):
        for mine, theirs in zip(np.tril_indices_from(v), np.tril_indices(3), strict=True):
            np.testing.assert_array_equal(mine, theirs)
        for mine, theirs in zip(np.triu_indices_from(v, 1), np.triu_indices(3, 1), strict=True):
            np.testing.assert_array_equal(mine, theirs)
        assert len(np.diag_indices_from(v)) == 2
        assert np.min_scalar_type(v) == np.float32
        assert np.shares_memory(v, v)
        assert not np.may_share_memory(v, v + 1)
        assert np.array_equiv(v, 1.0)
        assert not np.array_equiv(v, np.ones(2))
        assert np.einsum_path("ij,jk->ik", v, v)[0] == ["einsum_path", (0, 1)]
        assert "traced by grad" in np.array2string(v)
        return np.sum(np.astype(v, np.float64))

    assert ft.grad(function)(x).dtype == np.float32


def test_conditions_of_lexsort_and_partition():
    first, second = np.array([1.0, 1.0, 0.0, 0.0]), np.array([2.0, 1.0, 2.0, 1.0])
    order = ft.jvp(lambda a, b: np.lexsort((a, b)) * 1.0, (first, second), (first, second))[0]
    np.testing.assert_array_equal(order, np.lexsort((first, second)))
    x = np.array([5.0, 1.0, 4.0, 2.0])
    smallest = ft.grad(lambda v: np.sum(np.partition(v, 1)[:2] ** 2))(x)
    np.testing.assert_allclose(smallest, [0, 2, 0, 4])


def test_interp_of_complex_values_and_of_nan():
    x, z = np.array([0.25, np.nan, 3.0]), np.array([1.0 + 1j, 2.0, 3.0j])
    function = lambda v: np.interp(x, [0.0, 1.0, 2.0], v)
    np.testing.assert_allclose(ft.jvp(function, (z,), (z,))[0], function(z))


def test_many_lanes_search_in_arrays_of_their_own():
    edges = np.sort(RNG.normal(size=(5, 4)), axis=1)
    values = RNG.normal(size=(5, 3))
    found = ft.vmap(np.searchsorted)(edges, values)
    np.testing.assert_array_equal(found, loop_vmap(np.searchsorted, 0)(edges, values))


def test_reductions_by_ufuncs_take_a_number_for_an_array_of_one():
    for function in (np.sum, np.max, np.any, np.count_nonzero, np.argmax, np.hypot.reduce):
        call = lambda x, f=function: f(x, axis=0) * 1.0
        np.testing.assert_array_equal(ft.vjp(call, np.array(-3.0))[0], call(np.array(-3.0)))
    assert ft.grad(lambda x: np.hypot.reduce(x, axis=0))(-3.0) == -1.0
    assert ft.grad(lambda x: np.sum(x, axis=-1))(-3.0) == 1.0


def test_initial_values_take_the_dtype_of_the_result():
    n = np.array([[1, 2, 3]], np.int8)
    for function in (np.max, np.min, np.maximum.reduce):
        found = ft.vmap(lambda v, f=function: f(v, initial=2))(n)
        assert_trees_close(
            found, loop_vmap(lambda v, f=function: f(v, initial=2), 0)(n), dtypes=True
        )


@pytest.mark.parametrize("mode", ["reflect", "symmetric"])
def test_odd_padding_may_be_longer_than_the_array(mode):
    x = np.array([[1.0, 4.0, 2.0], [0.0, 3.0, 5.0]])
    function = lambda v: np.pad(v, ((0, 3), (7, 4)), mode=mode, reflect_type="odd")
    assert_trees_close(ft.vjp(function, x)[0], function(x))
    weights = RNG.normal(size=function(x).shape)
    loss = lambda v: np.sum(weights * function(v))
    assert_trees_close(ft.grad(loss)(x), numerical_gradient(loss, (x,))[0])


def test_einsum_computes_in_the_dtype_it_is_told():
    x = np.ones((2, 2), np.float32)
    value, pullback = ft.vjp(lambda v: np.einsum("ij,jk->ik", v, v, dtype=np.float64), x)
    assert value.dtype == np.float64
    assert pullback(value)[0].dtype == np.float32


@pytest.mark.parametrize("decimals", [-2, -1, 0, 1, 3])
def test_rounding_is_that_of_numpy_on_every_side_of_the_point(decimals):
    for x in (
        np.array([1234.5678, -55.5, 250.0]),
        np.array([1250, -55, 349]),
        np.array([12.345 + 67.85j]),
    ):
        function = lambda v: np.round(v, decimals)
        assert_trees_close(ft.vmap(function)(x), function(x), rtol=1e-15, dtypes=True)


def test_a_traced_array_names_its_namespace():
    assert ft.grad(lambda x: x.__array_namespace__().sum(x * x))(3.0) == 6.0


def test_no_lanes_are_a_number_of_lanes():
    empty = np.zeros((0, 3))
    for function in (
        lambda x: np.searchsorted(x, 0.5),
        lambda x: np.searchsorted([0.0, 1.0], x),
        np.median,
        lambda x: np.quantile(x, [0.1, 0.3]),
        np.maximum.accumulate,
        np.logaddexp.reduce,
        lambda x: np.convolve(x, [1.0, 2.0]),
        lambda x: np.interp(x, [0.0, 1.0], [2.0, 3.0]),
        np.nanvar,
        np.cov,
    ):
        expected = np.shape(function(np.zeros(3)))
        assert ft.vmap(function)(empty).shape == (0, *expected)


@pytest.mark.parametrize(
    "function",
    [np.mean, np.max, np.min, np.prod, np.sum, np.average, np.median, np.nanmax, np.ptp, np.var],
)
def test_a_python_number_is_reduced_to_itself(function):
    slope = 0.0 if function in (np.ptp, np.var) else 1.0
    assert ft.grad(lambda x: function(x))(0.5) == slope
    assert ft.jvp(lambda x: function(x), (0.5,), (2.0,)) == (function(0.5), 2 * slope)
    options = {} if function in (np.average, np.median) else {"keepdims": True}
    assert ft.grad(lambda x: np.sum(function(x, **options)))(0.5) == slope
