"""Mistakes that were made once, each pinned by the program that showed it."""

import dataclasses
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import errors
from functrans.errors import FunctransError
from tests.support.marks import of_constants


def test_a_transform_in_another_thread_may_close_over_a_tracer():
    def f(x):
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(lambda: ft.grad(lambda y: x * y * y)(3.0)).result()

    value, slope = ft.value_and_grad(f)(2.0)
    assert value == 12.0 and slope == 6.0


def test_where_sums_over_what_its_mask_broadcasts():
    gradient = ft.grad(lambda x: np.sum(np.where(np.eye(2) > 0, x, 0.0)))(np.ones(2))
    np.testing.assert_array_equal(gradient, [1.0, 1.0])


def test_several_reads_of_one_array_under_vmap_and_an_outer_gradient():
    def inner(x, w):
        return np.sum(ft.grad(lambda v: np.sum(v[:2] * x + v[1:] * w))(np.ones(3)) ** 2)

    xs = np.array([0.1, 0.2, 0.3])
    gradient = ft.grad(lambda w: np.sum(ft.vmap(lambda x: inner(x, w))(xs)))(np.array([1.0, 2.0]))
    np.testing.assert_allclose(gradient, [7.2, 12.0])


@pytest.mark.parametrize(
    "reduce",
    [
        lambda n: np.sum(n, dtype=np.int16),
        lambda n: np.sum(n > 4, axis=0, dtype=np.int8),
        lambda n: np.prod(n, axis=1, dtype=np.int32),
        lambda n: np.cumprod(n, dtype=np.int16),
        lambda n: np.cumsum(n > 4, dtype=np.uint8),
        lambda n: np.add.reduce(n, dtype=np.int8),
        lambda n: np.add.accumulate(n, dtype=np.int8),
    ],
)
def test_reductions_give_the_dtype_that_was_asked_for(reduce):
    n = np.arange(2, 8).reshape(2, 3)
    expected, found = reduce(n), ft.vmap(reduce)(n[None])[0]
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def test_an_initial_value_of_a_masked_extreme_may_be_traced():
    mask = np.array([True, False, True])
    lowest = lambda t: np.min(np.array([3.0, 1.0, 2.0]) * t, where=mask, initial=1.5 * t)
    assert ft.grad(lowest)(2.0) == 1.5


def test_reduceat_leaves_an_entry_alone_as_it_is():
    """Also if the ufunc would change it: hypot(0, x) is |x|."""
    x = np.array([-3.0, 4.0, -2.0])
    apart = lambda x: np.hypot.reduceat(x, [0, 2, 1])
    np.testing.assert_array_equal(ft.vmap(apart)(x[None])[0], apart(x))
    np.testing.assert_allclose(ft.jacrev(apart)(x)[1], [0.0, 0.0, 1.0])


def test_the_sign_of_a_complex_number_has_a_derivative():
    """z / |z| = exp(i φ), and turning z by an angle turns it by the same angle."""
    z = np.array([1.0 + 2.0j, -0.5 + 0.1j])
    sign, turned = ft.jvp(np.sign, (z,), (1j * z,))
    np.testing.assert_allclose(turned, 1j * sign)
    np.testing.assert_allclose(ft.jvp(np.sign, (z,), (z,))[1], 0.0, atol=1e-15)
    special = np.array([0.0, np.inf, complex(0.0, -np.inf)])
    np.testing.assert_array_equal(ft.vmap(np.sign)(special), np.sign(special))


def test_nan_to_num_without_a_copy_changes_its_argument():
    def f(x):
        y = np.where([False, True, False], np.nan, x * x)
        same = np.nan_to_num(y, copy=False, nan=5.0)
        assert same is y
        return np.sum(y * y)

    value, gradient = ft.value_and_grad(f)(np.ones(3))
    assert value == 27.0
    np.testing.assert_array_equal(gradient, [4.0, 0.0, 4.0])


def test_products_with_axes():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(3, 4, 2)), rng.normal(size=(5, 4, 3))
    product = lambda x: np.matmul(x, y, axes=[(2, 1), (1, 0), (0, 2)])
    np.testing.assert_allclose(ft.vmap(product)(x[None])[0], product(x))
    tangent = rng.normal(size=x.shape)
    np.testing.assert_allclose(ft.jvp(product, (x,), (tangent,))[1], product(tangent))
    wide = lambda x: np.vecdot(x, x, axis=0, keepdims=True, dtype=complex)
    np.testing.assert_allclose(ft.vmap(wide)(x[None])[0], wide(x))


def test_a_fit_is_staged():
    x, y = np.array([0.0, 1.0, 2.0, 4.0]), np.array([1.0, 0.5, 2.0, -1.0])
    fit = lambda y: np.polyfit(x, y, 1, cov=True)
    for found, expected in zip(ft.make_graph(fit)(x)(y), fit(y), strict=True):
        np.testing.assert_allclose(found, expected)


def test_a_range_has_the_derivatives_of_its_start_and_step():
    def f(start, step):
        return np.arange(start, 5.0, step, like=np.zeros(1) * start)

    jacobians = ft.jacrev(f, argnums=(0, 1))(0.5, 1.5)
    np.testing.assert_array_equal(jacobians[0], [1.0, 1.0, 1.0])
    np.testing.assert_array_equal(jacobians[1], [0.0, 1.0, 2.0])


def test_views_share_memory_with_what_they_show():
    def f(x):
        z = x + 1j
        assert np.shares_memory(x, x[0]) and not np.shares_memory(x[0], x[1])
        assert x[0].base is x and x.T[0].base is x and x.copy().base is None
        assert not np.shares_memory(x[:, ::2], x[:, 1::2])
        assert np.may_share_memory(x[:, ::2], x[:, 1::2])
        assert np.shares_memory(z, z.imag) and not np.shares_memory(z.real, z.imag)
        assert not np.shares_memory(x, x + 0) and not np.shares_memory(x, np.ones(2))
        return x

    ft.vmap(f)(np.ones((2, 3, 4)))
    ft.make_graph(f)(np.ones((3, 4)))


@pytest.mark.usefixtures("without_hooks")
def test_what_is_about_bytes_in_memory_is_refused():
    def f(x):
        assert not hasattr(x, "strides") and getattr(x, "flags", None) is None
        for ask in (lambda: x.tobytes(), lambda: x.data, lambda: np.from_dlpack(x)):
            with pytest.raises(FunctransError, match=r"no memory for x|plain value|plain array"):
                ask()
        return x

    ft.vmap(f)(np.ones((2, 3)))


def test_padding_with_traced_values():
    x = np.arange(1.0, 5.0).reshape(2, 2)
    for options in (
        lambda t: {"mode": "linear_ramp", "end_values": t},
        lambda t: {"constant_values": ((t, 1), (2.0, t * t))},
    ):
        padded = lambda t, options=options: np.pad(x * t, ((1, 2), (0, 2)), **options(t))
        np.testing.assert_allclose(ft.jvp(padded, (3.0,), (1.0,))[0], padded(3.0))
        numerical = (padded(3.0 + 1e-6) - padded(3.0 - 1e-6)) / 2e-6
        np.testing.assert_allclose(ft.jacrev(padded)(3.0), numerical, atol=1e-8)


@of_constants
def test_a_conversion_to_integers_has_no_derivative():
    assert ft.grad(lambda x: x.astype(int).astype(float) * 2.5)(np.float64(1.7)) == 0.0
    picked = ft.grad(lambda x: np.sum(x[x.astype(int)]))(np.array([1.0, 0.0, 1.0]))
    np.testing.assert_array_equal(picked, [1.0, 2.0, 0.0])


def test_jacobians_of_complex_functions_say_what_they_cannot_tell():
    np.testing.assert_allclose(ft.jacfwd(lambda x: x * 1j)(1.0), 1j)
    np.testing.assert_allclose(ft.jacrev(np.abs)(3 + 4j), 0.6 - 0.8j)
    np.testing.assert_allclose(ft.jacobian(lambda x: x * 1j)(np.ones(2)), 1j * np.eye(2))
    z = np.array([1 + 2j, 0.5j])
    for transform in (ft.jacfwd, ft.jacrev):
        np.testing.assert_allclose(transform(np.exp, holomorphic=True)(z), np.diag(np.exp(z)))
        with pytest.raises(FunctransError, match="holomorphic=True"):
            transform(np.exp)(z)
    with pytest.raises(FunctransError, match="jacrev if"):
        ft.jacfwd(np.abs)(3 + 4j)
    with pytest.raises(FunctransError, match="jacfwd if"):
        ft.jacrev(lambda x: x * 1j)(1.0)


def test_a_graph_keeps_the_constants_it_was_traced_with():
    def f(x):
        weight = np.ones(3)
        y = x * weight
        weight[:] = 2
        return np.sum(y * weight)

    graph = ft.make_graph(f)(np.ones(3))
    assert graph(np.ones(3)) == 6.0
    constant = ft.make_graph(lambda x: np.arange(3.0))(1.0)
    constant(1.0)[:] = 7
    np.testing.assert_array_equal(constant(1.0), [0.0, 1.0, 2.0])


def test_python_loops_over_rounded_values():
    def f(x):
        total = x
        for _ in range(math.floor(x)):
            total = total * x
        return total + 0.0 * round(x)

    assert ft.grad(f)(2.5) == 3 * 2.5**2
    np.testing.assert_allclose(ft.vmap(f)(np.array([1.5, 2.5, 1.2])), [1.5**2, 2.5**3, 1.2**2])


def test_a_branch_under_vmap_without_lanes_comes_to_an_end():
    def f(x):
        while not x > 5:
            x = x + 1
        return x, np.stack([x, x])

    lengths = [out.shape for out in ft.vmap(f)(np.zeros(0))]
    assert lengths == [(0,), (0, 2)]


def test_the_truth_of_a_number_splits_lanes_in_two():
    runs = []

    def f(x):
        runs.append(1)
        return 1.0 if x else 0.0

    np.testing.assert_array_equal(ft.vmap(f)(np.arange(50.0)), np.arange(50.0) != 0)
    assert len(runs) == 2


def test_results_of_vmap_are_not_views_of_its_arguments():
    a = np.ones((3, 2))
    for f in (lambda x: x, lambda x: x[0], lambda x: x.reshape(2, 1)):
        assert not np.shares_memory(ft.vmap(f)(a), a)


def test_tangents_can_be_written_to():
    tangent = ft.jvp(lambda x: x + np.ones((2, 3)), (1.0,), (1.0,))[1]
    tangent += 1
    np.testing.assert_array_equal(tangent, np.full((2, 3), 2.0))


def test_a_table_that_lanes_share_is_indexed_by_mapped_arrays():
    table, rows = np.arange(12.0).reshape(4, 3), np.array([[0, 1], [2, 3]])
    runs = []

    def lookup(table, i):
        runs.append(1)
        return table[i], np.take(table, i, axis=0), (table * 2)[i[0]], table.dot(i[0] * np.ones(3))

    found = ft.vmap(lookup, in_axes=(None, 0))(table, rows)
    np.testing.assert_array_equal(found[0], table[rows])
    np.testing.assert_array_equal(found[1], table[rows])
    np.testing.assert_array_equal(found[2], 2 * table[rows[:, 0]])
    np.testing.assert_array_equal(found[3], [table @ (i * np.ones(3)) for i in rows[:, 0]])
    assert len(runs) == 1
    assert all(type(each) is np.ndarray for each in found)


def test_a_dataclass_may_be_registered_after_it_was_met():
    @dataclasses.dataclass
    class Layer:
        weight: float
        name: str

    assert ft.tree.leaves(Layer(1.0, "a")) == [1.0, "a"]
    ft.tree.register_dataclass(Layer, meta_fields=["name"])
    assert ft.tree.leaves(Layer(1.0, "a")) == [1.0]
    assert ft.grad(lambda layer: layer.weight**2)(Layer(3.0, "a")).weight == 6.0


def test_dataclasses_are_met_by_many_threads_at_once():
    for _ in range(20):
        point = dataclasses.make_dataclass("Point", ["x", "y"])
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _, p=point: ft.tree.leaves(p(1.0, 2.0)), range(16)))
        assert found == [[1.0, 2.0]] * 16


def test_integer_and_bool_lanes_keep_their_dtype():
    x = np.array([-1, 0, 2])
    assert ft.vmap(lambda v: (v > 0).copy())(x).dtype == bool
    assert ft.vmap(lambda v: np.round(v, 1))(x).dtype == x.dtype
    assert ft.vmap(lambda v: np.maximum(v, 0.0))(x).dtype == np.float64


def test_einsum_broadcasts_a_label_of_length_one():
    gradient = ft.grad(lambda y: np.einsum("ij,jk->ki", np.ones((2, 1)), y).sum())(np.ones((3, 2)))
    np.testing.assert_array_equal(gradient, np.full((3, 2), 2.0))


def test_division_by_a_literal_zero_is_infinite_as_in_numpy():
    with np.errstate(all="ignore"):
        gradient = ft.grad(lambda x: np.sum(x / 0.0))(np.ones(2))
    np.testing.assert_array_equal(gradient, [np.inf, np.inf])


def test_linearize_under_vmap_keeps_the_array_that_lanes_share_as_it_was():
    weight = np.ones(2)
    kept = []

    def f(weight, x):
        kept.append(ft.linearize(lambda y: y * weight, np.ones(2))[1])
        return x

    ft.vmap(f, in_axes=(None, 0))(weight, np.ones(3))
    weight[:] = 7
    np.testing.assert_array_equal(kept[0](np.ones(2)), [1.0, 1.0])


# Found by a review of assignment.


def test_lanes_of_gradients_of_code_that_assigns():
    def loss(w, d):
        s = w.copy()
        s[0] = d
        return s[1] * 2.0 + s[2] * 3.0

    rows = ft.vmap(ft.grad(loss), in_axes=(None, 0))(np.ones(3), np.ones(4))
    np.testing.assert_array_equal(rows, np.tile([0.0, 2.0, 3.0], (4, 1)))
    assert ft.jacfwd(lambda d: ft.grad(loss)(np.ones(3), d))(1.0).tolist() == [0.0, 0.0, 0.0]


def test_an_assignment_does_not_change_how_an_array_lies_in_memory():
    def reversed_rows(a):
        a = a.copy()
        v = a[::-1]
        v[0] = 5.0
        v.reshape(-1)[0] = 100.0  # a copy
        return a

    def after_lanes_part(a):
        a = a.copy()
        v = a[::-1]
        if a[0, 0] > 0:
            a[0, 1] = 3.0
        v.reshape(-1)[0] = 100.0
        return a

    x = np.arange(4.0).reshape(2, 2)
    np.testing.assert_array_equal(ft.jvp(reversed_rows, (x,), (x,))[0], reversed_rows(x))
    lanes = np.arange(12.0).reshape(3, 2, 2) - 3
    expected = np.stack([after_lanes_part(lane) for lane in lanes])
    np.testing.assert_array_equal(ft.vmap(after_lanes_part)(lanes), expected)


def test_an_assignment_that_is_refused_changes_nothing():
    def f(x):
        x = x.copy()
        z = np.broadcast_to(x, (3, 2))[0]
        with pytest.raises(ValueError, match="read-only"):
            z[0] = 5.0
        return z * x

    np.testing.assert_array_equal(ft.jvp(f, (np.ones(2),), (np.ones(2),))[0], np.ones(2))


def test_the_real_part_of_an_array_without_axes_can_be_assigned():
    def f(x):
        z = np.zeros_like(x, shape=(), dtype=complex)
        z.real[...] = 3.0
        return z.real * x

    assert ft.grad(f)(2.0) == 3.0


def test_a_large_plain_array_that_changed_after_its_use_is_refused():
    def work(x):
        buffer, total = np.empty(x.size), 0.0
        for k in range(3):
            buffer[:] = k + 1
            total = total + np.sum(x * x * buffer)
        return total

    np.testing.assert_array_equal(ft.grad(work)(np.ones(100)), np.full(100, 12.0))
    with pytest.raises(errors.AssignmentError, match="changed in place after it was used"):
        ft.grad(work)(np.ones(10_000))
    assert ft.grad(lambda x: np.sum(x * x))(np.ones(3)).tolist() == [2.0, 2.0, 2.0]
    out, pullback = ft.vjp(np.exp, np.zeros(10_000))
    out *= 0  # it is the caller's own
    np.testing.assert_array_equal(pullback(np.ones(10_000))[0], np.ones(10_000))


def test_tangents_are_nobody_elses_arrays():
    tangent = np.ones(3)
    _, pushed = ft.jvp(lambda x: (x + 1, x + 2), (np.ones(3),), (tangent,))
    pushed[0][0] = 9.0
    assert pushed[1].tolist() == tangent.tolist() == [1.0, 1.0, 1.0]
    linear = ft.linearize(lambda x: (x + 1, x + 2), np.ones(3))[1]
    pushed = linear(tangent)
    pushed[0][0] = 9.0
    assert pushed[1].tolist() == tangent.tolist() == [1.0, 1.0, 1.0]


def test_a_graph_lets_go_of_values_after_their_last_use():
    import tracemalloc

    def f(x):
        for _ in range(50):
            x = np.sin(x)
        return x

    x = np.ones(100_000)
    graph = ft.make_graph(f)(x)
    tracemalloc.start()
    graph(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 * x.nbytes


def test_windows_are_views():
    windows = np.lib.stride_tricks.sliding_window_view

    def f(a):
        a = a.copy()
        w = windows(a, 2)
        a[0] = 50.0
        with pytest.raises(ValueError, match="read-only"):
            w[0, 0] = 1.0
        windows(a, 2, writeable=True)[1] = a[:2] * 2
        return w * a[1]

    x = np.arange(3.0)
    np.testing.assert_array_equal(ft.jvp(f, (x,), (x,))[0], f(x))
    np.testing.assert_array_equal(ft.make_graph(f)(x)(x), f(x))


def test_empty_lists_as_indices():
    x = np.ones(3)
    assert ft.grad(lambda x: np.sum(np.delete(x, [], 0)))(x).tolist() == [1.0, 1.0, 1.0]
    assert ft.grad(lambda x: np.sum(np.bincount([], x[:0], 2)))(x).tolist() == [0.0, 0.0, 0.0]


def test_tangents_of_assigned_arrays_are_changed_in_place_only_if_nobody_sees_them():
    def f(x):
        y = np.zeros_like(x)
        y[0] = x[0]  # from here on, y is a separate dual number
        z = y * 1.0
        seen = [z.copy()]
        for i in range(1, 3):
            z[i] = x[i] * z[i - 1]
            seen.append(z.copy())
        z[0] = 0.0
        return seen, z

    x, t = np.array([2.0, 3.0, 5.0]), np.array([1.0, 10.0, 100.0])
    (seen, _), (seen_t, z_t) = ft.jvp(f, (x,), (t,))
    assert [s.tolist() for s in seen] == [[2, 0, 0], [2, 6, 0], [2, 6, 30]]
    assert [s.tolist() for s in seen_t] == [[1, 0, 0], [1, 23, 0], [1, 23, 715]]
    assert z_t.tolist() == [0, 23, 715]
    assert t.tolist() == [1.0, 10.0, 100.0]


def test_the_flattened_diagonal_of_a_staged_array_is_a_copy():
    def f(x):
        a = x.copy()
        d = np.diagonal(a).ravel()
        d[0] = 7.0
        return a[0, 0] + d

    x = np.arange(4.0).reshape(2, 2)
    np.testing.assert_array_equal(ft.make_graph(f)(x)(x), f(x))


FLAGGED = [
    (True, 0),
    (0, True),
    (..., False),
    (..., True, 0),
    (False, True),
    (slice(None), True, 1),
    (True, slice(None), np.array([0, 1])),
    (np.array([0, 1]), True),
    (None, True, 0),
    (True, np.arange(24).reshape(2, 3, 4) > 5),
    ([True, False], True),
    (np.array(True), 1),
    True,
    False,
]


@pytest.mark.parametrize("key", FLAGGED, ids=repr)
def test_true_and_false_beside_other_keys(key):
    def f(x):
        y = x.copy()
        y[key] *= 3.0
        y[key] += x[key] ** 2
        np.add.at(y, key, 1.0)
        return y, x[key]

    x = np.arange(24.0).reshape(2, 3, 4)
    expected = f(x)
    runs = [ft.make_graph(f)(x)(x), ft.jvp(f, (x,), (x,))[0]]
    runs += [[leaf[0] for leaf in ft.vmap(f)(x[None])]]
    for found in runs:
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)
    gradient = np.zeros_like(x)
    np.add.at(gradient, key, 2 * x[key])
    np.testing.assert_array_equal(ft.grad(lambda x: np.sum(x[key] ** 2))(x), gradient)


@pytest.mark.parametrize(
    "value", [None, [None, 1.0], "3.5", np.array([None, 2.0], object)], ids=repr
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_values_that_numpy_converts_are_assigned_as_numpy_does(value, dtype):
    def f(x):
        y = x.copy()
        y[: np.size(value)] = value
        return y

    x = np.ones(3, dtype)
    for found in (ft.jvp(f, (x,), (x,))[0], ft.make_graph(f)(x)(x), ft.vmap(f)(x[None])[0]):
        np.testing.assert_array_equal(found, f(x))
    assert np.isnan(ft.jvp(f, (x,), (x,))[0]).any() == np.isnan(f(x)).any()


def test_values_that_numpy_does_not_convert_are_refused():
    def f(x, value):
        y = x.copy()
        y[0] = value
        return np.sum(y)

    for value, error in (("many", ValueError), ({}, TypeError), (object(), TypeError)):
        with pytest.raises(error):
            f(np.ones(2), value)
        with pytest.raises(error):
            ft.grad(lambda x, value=value: f(x, value))(np.ones(2))


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x,
        lambda x: x.T,
        lambda x: x[:, ::-1].transpose(1, 0, 2),
        lambda x: x[:, :, ::2].T,
        lambda x: np.broadcast_to(x[:1], (2, 3, 4)).transpose(2, 0, 1),
        lambda x: x.copy("F"),
        lambda x: np.sin(x.T),
        lambda x: x[:0].T,
    ],
)
@pytest.mark.parametrize("start", [np.ascontiguousarray, np.asfortranarray])
def test_order_in_memory(view, start):
    def f(x):
        v = view(x)
        flat = [v.ravel("K"), np.ravel(v, "A"), v.flatten("K"), v.flatten("A"), v.ravel("F")]
        copies = [v.copy("K").ravel("K"), v.copy("A").ravel("K"), np.copy(v).ravel("K")]
        return [*flat, *copies, np.reshape(v, v.shape[::-1], order="A")]

    def written(x):
        y = x.copy("K")
        flat = view(y).ravel("K")
        if flat.size and not np.shares_memory(flat, np.zeros(1)):
            try:
                flat[0] = 100.0
            except ValueError as error:
                assert "read-only" in str(error)
        return y

    x = start(np.arange(24.0).reshape(2, 3, 4))
    for found, expected in zip(ft.vjp(f, x)[0], f(x), strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(ft.jvp(written, (x,), (x,))[0], written(x))


def test_order_in_memory_is_not_known_while_staging():
    with pytest.raises(errors.StagingError, match=r"memory layout.*order='C' or order='F'"):
        ft.make_graph(lambda x: x.ravel("K"))(np.ones((2, 3)))
    with pytest.raises(ValueError, match="'K' is not permitted"):
        ft.grad(lambda x: np.sum(x.reshape(-1, order="K")))(np.ones((2, 3)))


def test_infinities_share_the_derivative_of_logaddexp():
    inf = np.inf
    for function in (np.logaddexp, np.logaddexp2):
        slopes = ft.grad(function, (0, 1))
        assert slopes(-inf, -inf) == slopes(inf, inf) == (0.5, 0.5)
        assert slopes(inf, 1.0) == slopes(2.0, -inf) == slopes(inf, -inf) == (1.0, 0.0)
        assert slopes(1.0, inf) == slopes(-inf, 2.0) == (0.0, 1.0)
        for x, y in ((0.0, 0.0), (3.0, 3.0), (800.0, 801.0)):
            assert sum(slopes(x, y)) == pytest.approx(1.0)
        second = ft.hessian(lambda v, f=function: f(v[0], v[1]))
        assert second(np.array([-inf, -inf])).tolist() == [[0.0, 0.0], [0.0, 0.0]]
        gradient = ft.grad(lambda v, f=function: f.reduce(v))(np.full(4, -inf))
        assert gradient.tolist() == [0.25, 0.25, 0.25, 0.25]


def test_interpolation_between_points_at_one_place():
    xp, fp = np.array([0.0, 1.0, 1.0]), np.array([1.0, 2.0, 5.0])
    x = np.array([-1.0, 0.5, 1.0, 3.0])
    value, slope = ft.jvp(lambda x: np.interp(x, xp, fp), (x,), (np.ones(4),))
    np.testing.assert_array_equal(value, np.interp(x, xp, fp))
    assert slope.tolist() == [0.0, 1.0, 0.0, 0.0]
    gradient = ft.grad(lambda xp, fp: np.sum(np.interp(x, xp, fp)), (0, 1))(xp, fp)
    assert np.isfinite(gradient).all()
    np.testing.assert_allclose(gradient[1], [1.5, 0.5, 2.0])


def test_an_empty_mask_is_a_mask():
    x = np.ones((2, 0))
    assert ft.grad(lambda x: np.sum(x[x > 0]))(x).shape == (2, 0)
    assert ft.jvp(lambda x: x[np.zeros((2, 0), bool)], (x,), (x,))[0].shape == (0,)


def test_out_keeps_its_own_precision_where_nothing_is_written():
    def f(x):
        out = np.full_like(x, 0.1, dtype=np.float64)
        np.sqrt(x, where=np.array([True, False]), out=out)
        return out

    x = np.ones(2, np.float32)
    for found in (ft.jvp(f, (x,), (x,))[0], ft.vmap(f)(x[None])[0], ft.make_graph(f)(x)(x)):
        np.testing.assert_array_equal(found, f(x))


def test_out_of_a_reduction_has_the_shape_of_the_result():
    def into(function):
        def f(x):
            out = np.zeros_like(x)
            function(x, out)
            return out

        return f

    x = np.ones(3)
    for function in (
        lambda x, out: np.sum(x, out=out),
        lambda x, out: x.mean(out=out),
        lambda x, out: np.add.reduce(x, out=out),
        lambda x, out: np.cumsum(x[:1], out=out),
    ):
        with pytest.raises(ValueError):
            into(function)(x)
        with pytest.raises(ValueError, match="out has shape"):
            ft.jvp(into(function), (x,), (x,))
    wide = into(lambda x, out: np.clip(np.add(x[0], x[:1], out=out), 0.0, 5.0, out=out))
    np.testing.assert_array_equal(ft.jvp(wide, (x,), (x,))[0], wide(x))


def test_numbers_where_numpy_takes_them_for_vectors():
    for function in (
        lambda t: np.cumsum(t, axis=0),
        lambda t: np.cumprod(t, axis=-1),
        lambda t: np.repeat(t, 2, axis=0),
        lambda t: np.arctan2(np.array([True, False]), t),
        lambda t: np.ravel(t * np.eye(2), order="f"),
    ):
        t = np.float64(1.5)
        value, slope = ft.jvp(function, (t,), (np.float64(1.0),))
        np.testing.assert_array_equal(value, function(t))
        numerical = (function(t + 1e-6) - function(t - 1e-6)) / 2e-6
        np.testing.assert_allclose(slope, numerical, atol=1e-8)


def test_splits_and_masks_that_do_not_fit_are_refused_as_in_numpy():
    for function in (
        lambda x: np.vsplit(x, 2),
        lambda x: np.dsplit(x, 2),
        lambda x: np.place(x.copy(), np.ones(3, bool), [1.0]),
    ):
        x = np.ones(4)
        for run in (function, lambda x, f=function: ft.jvp(f, (x,), (x,))):
            with pytest.raises(ValueError):
                run(x)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 1j,
        lambda x: 1j * x,
        lambda x: 1 / (x * 1j),
        lambda x: x / (2 + 1j),
        lambda x: np.exp(1j * x),
        lambda x: (1j * x).real + (x * (1j * 2.0)).imag,
    ],
)
@pytest.mark.parametrize("x", [2.0, np.float64(2.0), np.float32(2.0), np.array(2.0)], ids=repr)
def test_complex_numbers_of_python_beside_numbers_of_numpy(function, x):
    one = np.ones((), np.asarray(x).dtype)[()]
    value, slope = ft.jvp(function, (x,), (one,))
    h = 1e-6
    numerical = (function(2.0 + h) - function(2.0 - h)) / (2 * h)
    np.testing.assert_allclose(value, function(x), rtol=1e-6)
    np.testing.assert_allclose(slope, numerical, rtol=1e-5)
    second = ft.jvp(lambda x: ft.jvp(function, (x,), (one,))[1], (x,), (one,))[1]
    numerical = (function(2.0 + 1e-3) - 2 * function(2.0) + function(2.0 - 1e-3)) / 1e-6
    np.testing.assert_allclose(second, numerical, rtol=1e-4, atol=1e-6)


def test_division_by_a_complex_zero_is_nan_as_in_numpy():
    x = np.float64(2.0)
    with np.errstate(all="ignore"):
        for value, slope in (
            ft.jvp(lambda x: x / 0j, (x,), (x,)),
            (x / 0j, ft.grad(lambda x: np.real(x / 0j))(x)),
        ):
            assert not np.isfinite(value) and np.isnan(slope)


@pytest.mark.parametrize("product", [np.dot, np.inner, np.kron])
def test_products_with_a_number_of_python_have_its_dtype(product):
    y = np.ones(2, np.float32)
    for f in (lambda x: product(x, y), lambda x: product(y, x)):
        found = [ft.jvp(f, (2.0,), (1.0,))[0], ft.vjp(f, 2.0)[0], ft.make_graph(f)(2.0)(2.0)]
        assert [each.dtype for each in found] == [f(2.0).dtype] * 3


def test_a_change_of_one_entry_of_a_large_plain_array_is_noticed():
    weights = np.ones(100_000)

    def loss(x):
        total = np.sum(x * weights)
        weights[7] = 5.0
        return total

    with pytest.raises(errors.AssignmentError, match="was changed in place"):
        ft.grad(loss)(np.ones(100_000))


@pytest.mark.parametrize("result", ["text", object()])
def test_a_loop_whose_body_returns_no_array_says_so(result):
    with pytest.raises(errors.InputTypeError, match=r"scan: a y is an? (str|object), not"):
        ft.scan(lambda carry, x: (carry, result), 1.0, np.ones(3))


@pytest.mark.filterwarnings("ignore:(divide by zero|invalid value):RuntimeWarning")
@pytest.mark.parametrize(
    ("f", "args"),
    [
        (lambda x: x**0.5, (0.0,)),
        (lambda x: abs(x) ** 0.5, (0.0,)),
        (lambda x, y: x**y, (0.0, 0.5)),
        (lambda x, y: x / y, (np.float64(1.0), 0.0)),
        (ft.grad(lambda x: x**1.5), (0.0,)),
        (lambda x: (x - 1.0) ** 0.5, (0.0,)),
    ],
)
def test_singular_derivatives_of_python_numbers_are_numpys_in_graphs(f, args):
    strong = ft.grad(f)(*map(np.float64, args))
    assert not np.isfinite(strong)
    for found in (
        ft.jit(ft.grad(f))(*args),
        ft.make_graph(ft.grad(f))(*args)(*args),
        ft.jit(lambda *xs: ft.jvp(lambda x: f(x, *xs[1:]), xs[:1], (1.0,))[1])(*args),
    ):
        np.testing.assert_array_equal(found, strong)


def test_a_complex_power_of_a_python_number_is_named_by_jit():
    with pytest.raises(errors.GraphError, match=r"traced for real numbers.*np\.float64\(x\)"):
        ft.jit(lambda x: (x - 1.0) ** 0.5 * 2.0 + x * x)(0.0)


@pytest.mark.parametrize(
    "read",
    [
        lambda x, i: x[i],
        lambda x, i: x[i, 0],
        lambda x, i: x[i, i],
        lambda x, i: x[0, i],
        lambda x, i: x[:, i],
        lambda x, i: np.take(x, i, axis=1),
    ],
)
def test_python_ints_are_indices_in_graphs(read):
    x = np.arange(6.0).reshape(2, 3)
    loss = lambda x, i: np.sum(read(x, i) ** 2)
    expected = ft.grad(loss)(x, 1)
    for found in (
        ft.jit(ft.grad(loss))(x, 1),
        ft.make_graph(ft.grad(loss))(x, 1)(x, 1),
        ft.jit(ft.grad(lambda x, i: ft.cond(i > 0, lambda: loss(x, i), lambda: 0.0)))(x, 1),
        # The directional derivative along x of a sum of squares is twice that sum.
        ft.jit(ft.grad(lambda x, i: ft.jvp(lambda x: loss(x, i), (x,), (x,))[1] / 2))(x, 1),
    ):
        np.testing.assert_allclose(found, expected)
    mapped = ft.jit(ft.vmap(ft.grad(loss), (None, 0)))(x, np.array([1, 0]))
    np.testing.assert_allclose(mapped, [expected, ft.grad(loss)(x, 0)])


@of_constants
@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
@pytest.mark.parametrize(
    ("shape", "indices", "axis"),
    [
        ((0,), [0], None),
        ((0,), 0, 0),
        ((0, 3), [[0, 1]], 0),
        ((2, 0), [0], None),
        ((0,), [], 0),
        ((0, 3), np.zeros((0, 2), int), 0),
        ((0, 3), [5], 1),  # nothing is taken, and no index is looked at
        ((0, 0), [5], 1),
        ((2, 0, 3), [7], 2),
        ((3, 0), [1], 0),
    ],
)
def test_what_is_taken_of_nothing(shape, indices, axis, mode):
    x, indices = np.ones(shape), np.array(indices, int)
    take = lambda x: np.take(x, indices, axis=axis, mode=mode)
    forms = [
        lambda: ft.jvp(take, (x,), (x,))[0],
        lambda: ft.vjp(take, x)[0],
        lambda: ft.vmap(take)(np.stack([x, x]))[0],
        lambda: ft.make_graph(take)(x)(x),
        lambda: ft.vmap(lambda i: fnp.take(x, i, axis=axis, mode=mode))(np.stack([indices] * 2))[0],
    ]
    try:
        expected = take(x)
    except IndexError as error:
        for form in forms:
            with pytest.raises(IndexError) as raised:
                form()
            assert (
                str(raised.value)
                == str(error)
                == ("cannot do a non-empty take from an empty axes.")
            )
        return
    for form in forms:
        found = form()
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert ft.grad(lambda x: np.sum(take(x)))(x).shape == shape


@pytest.mark.parametrize(
    "function", [lambda x, out: np.frexp(x, out), lambda x, out: np.modf(x, out)]
)
def test_a_second_result_has_the_shape_of_the_target_of_the_first(function):
    x = np.array([0.3, 1.4, 2.5])
    expected = function(x, np.zeros((2, 3)))
    found = ft.jvp(lambda x: function(x, ft.numpy.zeros((2, 3))), (x,), (x,))[0]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)
