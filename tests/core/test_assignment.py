"""Changes in place mean what they mean in NumPy, under every transform.

Each case is plain NumPy code: it makes arrays, changes some in place, and returns all that are alive.
What is a view and what is a copy is in test_views.py; what must raise is in test_assignment_rules.py,
and what must not change in test_caller_arrays.py.
"""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from tests.support.everywhere import CUBE, MATRIX, SQUARE, VECTOR, check_everywhere, collect
from tests.support.oracles import assert_trees_close, loop_vmap

CASES = []
case = collect(CASES)


# Reading, of which the derivative adds up.


@case(VECTOR)
def many_slices(x):
    return [sum(np.sin((k + 1) * x[k % 4 : k % 4 + 2]) for k in range(45))]


# Assignment to items.


@case(VECTOR)
def item(x):
    x[1] = 3.0
    x[-1] = x[0] * x[2]
    return [x]


@case(VECTOR)
def slice_by_scalar_and_by_array(x):
    x[:2] = np.sin(x[3])
    x[2:] = x[:3] * np.array([1.0, 2.0, 3.0])
    return [x]


@case(VECTOR)
def an_array_with_the_tangent_of_another(x):
    y = x + 1.0
    y[:3] = x[2:] ** 2
    return [x, y]


@case(VECTOR)
def strided_slices(x):
    x[::2] = -x[::2]
    x[::-2] *= x[:3]
    x[3:0:-1] += 1.0
    return [x]


@case(MATRIX)
def broadcast_value(x):
    y = x.copy()
    y[...] = x[0]
    x[:, 1:] = x[:, :1]
    x[0] = np.ones((1, 1, 3))  # leading axes of length one fall away
    return [x, y]


@case(CUBE)
def ellipsis_newaxis_and_integers(x):
    x[..., 0] = x[..., 1] ** 2
    x[0, ..., 1] += 1.0
    x[:, None, 1, :] = 2 * x[:, None, 2, :]
    return [x]


@case(VECTOR)
def everything(x):
    y = np.zeros_like(x)
    y[:] = x
    x[...] = y * y
    x[()] *= 2.0
    return [x, y]


@case(VECTOR)
def integer_array(x):
    x[[3, 0]] = x[[1, 2]] * 2
    x[np.array([[1], [4]])] += 1.0
    return [x]


@case(VECTOR)
def repeated_integers_take_the_last_value(x):
    x[[0, 0, 1]] = x[[2, 3, 4]]
    return [x]


@case(VECTOR)
def repeated_integers_that_depend_on_values(x):
    places = np.argsort(x)[[0, 1, 0, 4, 1]]
    x[places] = np.exp(x)
    return [x]


@case(CUBE)
def repeated_pairs_that_depend_on_values(x):
    order = np.argsort(x[0, :, 0])
    x[[1, 0, 1, 1], order[[0, 1, 0, 2]]] = x[0, [0, 1, 2, 1]] ** 2
    return [x]


@case(VECTOR)
def repeated_integers_add_once(x):
    x[[0, 0, 1]] += np.array([10.0, 20.0, 30.0]) * x[4]
    return [x]


@case(SQUARE)
def pairs_of_integer_arrays(x):
    x[[0, 1, 2], [2, 1, 0]] = x[[0, 1, 2], [0, 1, 2]]
    x[np.ix_([0, 2], [1, 2])] *= 3.0
    x[1:, [0, 2]] += x[:2, :2]
    return [x]


@case(VECTOR)
def plain_mask(x):
    mask = np.array([True, False, False, True, True])
    x[mask] += np.array([1.0, 2.0, 3.0]) * x[1]
    x[~mask] = x[mask][:2]
    return [x]


@case(VECTOR)
def mask_from_values_by_scalar(x):
    y = x * x
    x[x < 0] = 0.5
    y[y > 0.4] = x[0]
    return [x, y]


@case(MATRIX)
def mask_of_rows(x):
    x[np.array([False, True])] = np.cos(x[0])
    x[:, np.array([True, False, True])] *= 2.0
    return [x]


# The numbers of true entries differ between the lanes of the batch, so while a function is staged the
# shape of x[mask] is not known.
@case(VECTOR, staged=False)
def mask_from_values_augmented(x):
    x[x > 0] += 2.0
    x[x < 0] *= x[x < 0]
    return [x]


@case(VECTOR)
def swap_of_scalars(x):
    x[0], x[1] = x[1], x[0]
    return [x]


@case(MATRIX)
def swap_of_rows_that_are_views(x):
    x[0], x[1] = x[1], x[0]  # the first row is gone before it is read
    return [x]


@case(MATRIX)
def swap_of_rows_by_index(x):
    x[[0, 1]] = x[[1, 0]]
    return [x]


@case(SQUARE)
def loop_over_entries(x):
    for i in range(3):
        for j in range(i):
            x[i, j] -= x[j, i] * x[i, i]
    return [x]


@case(VECTOR)
def recurrence(x):
    y = np.empty_like(x)
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = np.tanh(y[i - 1]) + x[i] * y[i - 1]
    return [x, y]


@case(VECTOR)
def overwritten_values_have_no_derivative(x):
    y = x * x
    y[:] = 1.0
    return [y, x]


# In-place operators, out=, and where=.


@case(VECTOR)
def in_place_operators(x):
    same = x
    x += 2.0
    x -= np.sin(x)
    x *= x
    x /= 1.0 + x
    x **= 2
    x %= 5.0
    return [x, same]


@case(np.abs(VECTOR))
def in_place_matmul(x):
    m = np.outer(x, x)
    alias = m
    m @= m + np.eye(5)
    return [x, m, alias]


@case(MATRIX)
def ufunc_out(x):
    z = np.zeros_like(x)
    result = np.add(x, np.sin(x), out=z)
    result *= 2.0
    np.multiply(z, x, out=(x,))
    np.exp(x, x)
    return [x, z, result]


@case(MATRIX)
def ufunc_out_to_a_view(x):
    z = np.zeros((3, 4), like=x)
    np.multiply(x, x[1], out=z[1:, 1:])
    np.negative(x[0], out=z[:, 0])
    return [x, z]


@case(MATRIX)
def ufunc_out_broadcasts(x):
    z = np.ones_like(x)
    np.add(x[0], 1.0, out=z)
    return [z]


@case(MATRIX)
def ufunc_where(x):
    z = np.full_like(x, 3.0)
    np.add(x, 1.0, out=z, where=np.array([True, False, True]))
    np.sin(x, out=z, where=x > 0)
    np.multiply(x, x, out=x, where=x < 0.5)
    return [x, z]


@case(MATRIX)
def ufunc_where_does_not_compute_elsewhere(x):
    z = np.full_like(x, 3.0)
    np.sqrt(x, out=z, where=x > 0)  # no nan and no warning for the others
    return [z]


@case(VECTOR)
def ufunc_with_two_outputs(x):
    fraction, whole = np.empty_like(x), np.empty_like(x)
    np.modf(3 * x, out=(fraction, whole))
    return [fraction * x, whole * x]


@case(SQUARE)
def functions_with_out(x):
    z = np.zeros_like(x)
    np.sum(x, axis=0, out=z[0])
    x.mean(axis=1, out=z[:, 1])
    np.cumsum(x[1], out=z[2])
    y = np.empty_like(x)
    np.matmul(x, z, out=y)
    np.dot(y, z, out=x)
    np.clip(x, -1.05, 2.0, out=y)
    w = np.empty((6, 3), like=x)
    np.concatenate([x, y], out=w)
    return [x, y, z, w]


@case(VECTOR)
def ufunc_at(x):
    z = np.zeros_like(x)
    np.add.at(z, [0, 0, 3, 0], x[:4])
    np.subtract.at(z, np.array([4, 4]), x[1])
    np.add.at(x, slice(1, 3), 2.0)
    np.multiply.at(x, [1, 1, 2], z[[0, 3, 0]])
    return [x, z]


@case(MATRIX)
def ufunc_at_in_two_dimensions(x):
    z = np.zeros((3, 3), like=x)
    np.add.at(z, ([0, 0, 2], [1, 1, 2]), x[0])
    np.add.at(z, [1, 1], x)
    return [z]


# Functions and methods that change an array.


@case(MATRIX)
def copyto(x):
    y = np.zeros_like(x)
    np.copyto(y, x[1])
    np.copyto(x, 7.0, where=np.array([False, True, False]))
    np.copyto(x[0], y[0] * x[1], where=x[0] > 0)
    return [x, y]


@case(SQUARE)
def put(x):
    np.put(x, [0, 4, -1], x[0])
    x.put([1, 2], [5.0])
    np.put(x.T[1:], [0, 1], x[2, 2])
    return [x]


@case(VECTOR)
def put_with_modes(x):
    np.put(x, [7, -8], x[:2] * 2, mode="wrap")
    np.put(x, [9], 4.0, mode="clip")
    return [x]


@case(VECTOR)
def place_with_a_plain_mask(x):
    values = x[:2] * x[1]
    np.place(x, np.array([True, False, True, True, True]), values)  # the values start over
    return [x]


@case(VECTOR, staged=False)
def place_with_a_mask_from_values(x):
    values = np.sin(x[:2])
    np.place(x, x > 0, values)
    return [x]


@case(VECTOR)
def putmask(x):
    np.putmask(x, x > 0.5, np.sin(x))
    np.putmask(x, np.array([True, False, True, False, False]), x[3:5].copy())
    return [x]


@case(MATRIX)
def put_along_axis(x):
    order = np.array([[2, 0], [1, 1]])
    np.put_along_axis(x, order[:, :1], x[:, :1] * 2, axis=1)
    np.put_along_axis(x, np.array([[0, 1, 0]]), 9.0, axis=0)
    return [x]


@case(SQUARE)
def fill_diagonal(x):
    np.fill_diagonal(x, x[0, 1] * 2)
    tall = np.zeros((7, 3), like=x)
    np.fill_diagonal(tall, x[1], wrap=True)
    np.fill_diagonal(x[1:, :2], np.sin(x[2, :2]))
    return [x, tall]


@case(SQUARE)
def fill(x):
    row = x[1]
    row.fill(4.0)
    x[:, 0].fill(x[2, 2])
    return [x, row]


@case(SQUARE)
def sort(x):
    column = x[:, 1]
    column.sort()
    y = x.copy()
    y.sort(axis=0)
    x.sort()
    return [x, y, column]


@case(VECTOR)
def partition(x):
    kept = x
    x.partition(2)
    return [kept[2] * np.ones(1), np.sum(kept[:2] ** 2), np.sum(kept[3:] ** 3)]


@case(VECTOR)
def flat(x):
    y = np.zeros((2, 2), like=x)
    y.flat[1] = x[0]
    y.flat[2:] = x[1:3]
    y.T.flat[0] = x[4]
    return [x, y]


@case(VECTOR)
def arrays_as_accumulators_in_a_list(x):
    sums = [np.zeros_like(x) for _ in range(2)]
    for i in range(4):
        sums[i % 2] += x * i
        sums[0][i] -= sums[1][i + 1]
    return sums


@pytest.mark.parametrize(("function", "x", "options"), CASES)
def test_in_place(function, x, options):
    check_everywhere(function, x, **options)


# Arrays that traced values may be assigned to.

MAKERS = {
    "zeros_like": lambda x: np.zeros_like(x),
    "zeros_like_dtype": lambda x: np.zeros_like(x, dtype=np.float64),
    "ones_like": lambda x: np.ones_like(x),
    "empty_like": lambda x: np.empty_like(x),
    "full_like": lambda x: np.full_like(x, 2.5),
    "full_like_traced": lambda x: np.full_like(x, x[0]),
    "zeros_like_shape": lambda x: np.zeros_like(x, shape=(5,)),
    "ones_like_shape": lambda x: np.ones_like(x, shape=5),
    "zeros": lambda x: np.zeros(5, like=x),
    "zeros_dtype": lambda x: np.zeros((5,), dtype=np.float64, like=x),
    "ones": lambda x: np.ones(5, like=x),
    "empty": lambda x: np.empty((5,), like=x),
    "full": lambda x: np.full((5,), 2.5, like=x),
    "full_traced": lambda x: np.full(5, x[1], like=x),
    "arange": lambda x: np.arange(5.0, like=x),
    "array": lambda x: np.array([1.0, 2.0, 3.0, 4.0, 5.0], like=x),
    "array_of_zeros": lambda x: np.array(np.zeros(5), like=x),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_arrays_made_like_a_traced_one_take_traced_values(make):
    def function(x):
        y = make(x)
        y[:2] = 0.25
        y[1:] = x[:4]
        view = y[2:4]
        view *= x[4]
        y[0] = np.sum(x)
        return [y, view]

    check_everywhere(function, VECTOR)


@pytest.mark.parametrize("filler", ["zeros", "ones", "full", "array"])
def test_arrays_of_functrans_numpy_take_traced_values(filler):
    made = {
        "zeros": lambda: fnp.zeros(5),
        "ones": lambda: fnp.ones((5,)),
        "full": lambda: fnp.full((5,), 2.5),
        "array": lambda: fnp.array([1.0, 2.0, 3.0, 4.0, 5.0]),
    }
    plain = {
        "zeros": lambda: np.zeros(5),
        "ones": lambda: np.ones(5),
        "full": lambda: np.full(5, 2.5),
        "array": lambda: np.array([1.0, 2.0, 3.0, 4.0, 5.0]),
    }

    def filled(make):
        def function(x):
            y = make[filler]()
            y[1:3] = x[:2]
            y[3] += x[2] * y[1]
            return [y, x * y]

        return function

    check_everywhere(filled(made), VECTOR, reference=filled(plain))


def test_an_array_without_axes_is_an_array():
    def function(x):
        total = np.zeros((), like=x)
        alias = total
        for entry in x:
            total += entry * entry
        alias[...] = alias * 2
        return [total, alias]

    check_everywhere(function, VECTOR)


def test_shape_of_the_new_array_may_differ():
    def function(x):
        y = np.zeros((2, 3, 5), like=x)
        y[1, 2] = x
        z = np.zeros_like(x, shape=(3, 5))
        z[:] = y[1]
        y[0] += z
        return [y, z]

    check_everywhere(function, VECTOR)


# Traced indices, masks, and values under vmap and make_graph.


def fill_by_position(x, position):
    y = np.zeros_like(x)
    y[position] = 10.0
    y[position - 1] += x[position]
    return y


def scatter(x, positions):
    y = np.zeros_like(x)
    y[positions] = x[:3]
    np.add.at(y, positions, x[1:4])
    return y


def blank(x, mask):
    y = x.copy()
    y[mask] = 0.0
    np.copyto(y, x * 2, where=mask)
    np.putmask(y, ~mask, x * x)
    return y


TRACED_INDICES = [
    pytest.param(fill_by_position, np.array([1, 4, 2]), id="integer"),
    pytest.param(scatter, np.array([[0, 1, 1], [4, 2, 2], [3, 3, 3]]), id="integers"),
    pytest.param(blank, np.arange(15).reshape(3, 5) % 4 == 0, id="mask"),
]


@pytest.mark.parametrize(("function", "where"), TRACED_INDICES)
@pytest.mark.parametrize("in_axes", [(0, 0), (0, None)], ids=str)
def test_lanes_may_assign_to_places_of_their_own(function, where, in_axes):
    batch = np.stack([VECTOR, 2 * VECTOR, VECTOR[::-1]])
    args = (batch, where if in_axes[1] == 0 else where[1])
    expected = loop_vmap(function, in_axes)(*args)
    assert_trees_close(ft.vmap(function, in_axes)(*args), expected, dtypes=True)
    loss = lambda x, i: np.sum(function(x, i) ** 2)
    gradients = loop_vmap(ft.grad(loss), in_axes)(*args)
    assert_trees_close(ft.vmap(ft.grad(loss), in_axes)(*args), gradients)


@pytest.mark.parametrize(("function", "where"), TRACED_INDICES)
def test_a_graph_assigns_to_the_places_it_is_given(function, where):
    graph = ft.make_graph(function)(VECTOR, where[0])
    graph.check()
    for other in where:
        assert_trees_close(graph(2 * VECTOR, other), function(2 * VECTOR, other), dtypes=True)


def test_integer_and_boolean_arrays_change_in_place_too():
    def count(values):
        counts = np.zeros_like(values, shape=(4,))
        np.add.at(counts, values, 1)
        counts[0] *= 10
        small = values < 2
        small[0] = False
        small |= values == 3
        values = values.copy()
        values[::2] //= 2
        values[small] += 100
        return counts, small, values

    batch = np.array([[0, 1, 2, 3, 3], [1, 1, 1, 0, 2], [3, 0, 3, 0, 3]])
    assert_trees_close(ft.vmap(count)(batch), loop_vmap(count)(batch), dtypes=True)


def test_lanes_that_branch_change_arrays_of_their_own():
    def function(x):
        y = x.copy()
        view = y[1:]
        if x[0] > 0:
            view *= 2.0
        else:
            view[:] = x[0]
        y[0] = 7.0
        return y

    batch = np.stack([VECTOR, -VECTOR, 2 * VECTOR])
    assert_trees_close(ft.vmap(function)(batch), loop_vmap(function)(batch))
    loss = lambda x: np.sum(function(x) ** 3)
    assert_trees_close(ft.vmap(ft.grad(loss))(batch), loop_vmap(ft.grad(loss))(batch))


def test_an_inner_transform_may_be_assigned_to_an_array_of_the_outer_one():
    def function(x):
        y = np.zeros_like(x)
        for i in range(len(x)):
            y[i] = ft.grad(lambda z: np.sin(z) * x[0])(x[i])
        y[1:] *= ft.vmap(lambda z: z * x[1])(x[1:])
        return [y]

    def closed_form(x):
        y = np.cos(x) * x[0]
        return [np.concatenate([y[:1], y[1:] * x[1:] * x[1]])]

    check_everywhere(function, VECTOR, reference=closed_form)


def test_an_inner_transform_may_fill_an_array_that_depends_on_the_outer_one():
    def function(x):
        def inner(z):
            y = np.zeros_like(z)
            y[:2] = x[:2] * z[:2]
            y[2:] = x[2:] ** 2 * z[2:]
            y[0] += y[1] * y[2]
            return np.sum(y * y)

        return [ft.grad(inner)(x)]

    def by_hand(x):
        z = x
        y = np.concatenate([x[:2] * z[:2], x[2:] ** 2 * z[2:]])
        product = x[1] * z[1] * x[2] ** 2 * z[2]
        slope = 2 * y * np.concatenate([x[:2], x[2:] ** 2])
        first = 2 * (y[0] + product)
        return [
            np.stack(
                [
                    first * x[0],
                    slope[1] + first * x[1] * x[2] ** 2 * z[2],
                    slope[2] + first * x[1] * z[1] * x[2] ** 2,
                    slope[3],
                    slope[4],
                ]
            )
        ]

    check_everywhere(function, VECTOR, reference=by_hand)
