"""Whatever is a view in NumPy sees a change in place, and whatever is a copy does not.

Each case is plain NumPy code: it makes arrays, changes some in place, and returns all that are alive.
"""

import numpy as np
import pytest

import functrans as ft
from tests.support.everywhere import (
    COMPLEX,
    CUBE,
    MATRIX,
    SQUARE,
    VECTOR,
    check_everywhere,
    collect,
)
from tests.support.oracles import leaves

CASES = []
case = collect(CASES)


# Views: a change of one is a change of the other.


@case(VECTOR)
def slice_is_a_view(x):
    y = x[0:2]
    y *= 3.0
    x[1] += 1.0
    return [x, y]


@case(VECTOR)
def view_of_a_view_of_a_view(x):
    y = x[1:]
    z = y[::-1]
    w = z[1:3]
    w[0] = x[0] * 2
    y[1] = 7.0
    z += 1.0
    return [x, y, z, w]


@case(VECTOR)
def siblings_see_each_other(x):
    left, right = x[:3], x[2:]
    left[2] = 10.0 * x[0]
    right *= right
    return [x, left, right]


@case(MATRIX)
def transpose_is_a_view(x):
    y = x.T
    y[0] = 1.0
    z = np.transpose(x)
    z[1] *= x[:, 2]
    w = x.transpose(1, 0)
    w[2, 1] = x[0, 2]
    return [x, y, z, w]


@case(CUBE)
def axes_moved_are_views(x):
    a = np.swapaxes(x, 0, 2)
    a[0] += 1.0
    b = np.moveaxis(x, -1, 0)
    b[1, :, 1] = x[0, 0]
    c = x.swapaxes(0, 1)
    c *= 2.0
    d = np.rollaxis(x, 2)
    d[0, 0, 0] = 5.0
    e = x.mT
    e[0, 1] -= 3.0
    return [x, a, b, c, d, e]


@case(MATRIX)
def reshape_of_a_contiguous_array_is_a_view(x):
    y = x.reshape(3, 2)
    y[0] = 8.0
    z = np.reshape(x, -1)
    z[::2] *= x[0, 2]
    w = x.ravel()
    w[5] = x[0, 0]
    v = np.ravel(x)
    v[4] += 1.0
    return [x, y, z, w, v]


@case(MATRIX)
def reshape_in_fortran_order(x):
    y = x.reshape(-1, order="F")  # a copy: the order of memory is C
    y[0] = 8.0
    z = x.T.ravel(order="F")  # a view of the transpose of the transpose
    z[1] = x[1, 1]
    return [x, y, z]


@case(MATRIX)
def ravel_of_a_transpose_is_a_copy(x):
    y = x.T.ravel()
    y[0] = 9.0
    z = x.T.reshape(-1)
    z *= 2.0
    x[0] += 1.0
    return [x, y, z]


@case(MATRIX)
def reshape_of_part_of_a_matrix(x):
    y = x[:, :2].reshape(-1)  # a copy: rows are not adjacent
    y += 1.0
    z = x[:, 1:].reshape(2, 1, 2)  # a view: no axes are joined
    z *= 3.0
    w = x[1:].reshape(-1)  # a view
    w[0] = x[0, 0]
    return [x, y, z, w]


@case(VECTOR)
def reshape_of_a_strided_slice_is_a_view_and_its_ravel_a_copy(x):
    y = x[::2].reshape(3, 1)
    y *= 2.0
    z = x[::2].ravel()
    z += 1.0
    w = x[::-1].reshape(5, 1)
    w[0] = x[0]
    return [x, y, z, w]


@case(MATRIX)
def flatten_is_a_copy(x):
    y = x.flatten()
    y *= 2.0
    x[0, 0] = y[5]
    return [x, y]


@case(MATRIX)
def axes_of_length_one_come_and_go_as_views(x):
    a = x[None]
    a[0, 0] += 1.0
    b = np.expand_dims(x, 1)
    b[1, 0, 1] = x[0, 0]
    c = b.squeeze()
    c[0] *= 2.0
    d = np.squeeze(b, axis=1)
    d[:, 2] = x[:, 0] * x[:, 1]
    e = x[:, np.newaxis, ::-1]
    e[1] -= 3.0
    f = np.atleast_3d(x)
    f[0, 0, 0] = 1.5
    return [x, a, b, c, d, e, f]


@case(CUBE)
def integer_and_ellipsis_are_views(x):
    y = x[..., 0]
    y *= 3.0
    z = x[1]
    z[2] = x[0, 0]
    w = x[0, 1, ...]
    w += z[2]
    return [x, y, z, w]


@case(VECTOR)
def zero_dimensional_view(x):
    s = x[1, ...]
    s *= 4.0
    t = s
    t += x[0]
    x[1] -= 1.0
    return [x, s, t]


@case(MATRIX)
def flipped_views(x):
    y = x[::-1, ::-1]
    y[0, 0] = 6.0
    z = np.flip(x, 1)
    z[0] *= x[1, 0]
    w = np.fliplr(x)
    w[1] += 1.0
    v = np.rot90(x)
    v[0] = x[0, 0]
    return [x, y, z, w, v]


@case(MATRIX)
def rows_of_a_loop_are_views(x):
    for row in x:
        row *= 2.0
    for i, row in enumerate(x):
        row[i] = x[1 - i, 0] + i
    first, second = x
    first += second
    return [x, first, second]


@case(MATRIX)
def columns_of_a_loop_are_views(x):
    for left, right in zip(x.T[:-1], x.T[1:], strict=True):
        right += left
    return [x]


@case(VECTOR)
def pieces_of_a_split_are_views(x):
    first, second, third = np.split(x, [1, 3])
    second *= 3.0
    third[0] = first[0] * second[1]
    for piece in np.array_split(x, 2):
        piece[0] += 1.0
    return [x, first, second, third]


@case(MATRIX)
def horizontal_pieces_are_views(x):
    for k, piece in enumerate(np.hsplit(x, 3)):
        piece *= k + x[0, 0]
    return [x]


@case(COMPLEX)
def real_and_imaginary_parts_are_views(x):
    x.real[0] = 2.0
    x.imag *= 3.0
    part = x[1:].real
    part += x.imag[:2]
    np.imag(x)[2] = x.real[0]
    return [x, part]


@case(COMPLEX)
def real_and_imaginary_parts_are_assigned(x):
    x.real = x.imag
    x[1:].imag = 0.5 * x[:2].real
    return [x]


@case(COMPLEX)
def complex_arrays_take_real_values(x):
    x[0] = x.real[1]
    x += x.imag
    x[1:] *= 1j
    return [x]


@case(VECTOR)
def real_part_of_a_real_array_is_the_array(x):
    y = x.real
    y[0] = x[1]
    return [x, y]


@case(SQUARE)
def einsum_diagonal_is_a_view(x):
    np.einsum("ii->i", x)[...] = x[0]
    return [x]


@case(SQUARE)
def views_that_cannot_be_written_see_changes_of_their_base(x):
    wide = np.broadcast_to(x[0], (2, 3))
    diagonal = np.diagonal(x)
    upper = x.diagonal(1)
    before = wide * 1.0
    x[0] = x[2] * 2
    x[1, 1] = 4.0
    x *= x
    return [x, wide, diagonal, upper, before]


@case(VECTOR)
def view_method_and_astype_without_a_copy(x):
    y = x.view()
    y[0] = 3.0
    z = x.astype(np.float64, copy=False)
    z[1] *= x[2]
    return [x, y, z]


@case(VECTOR)
def two_views_kept_in_containers(x):
    state = {"position": x[:2], "velocity": x[2:4]}
    for _ in range(3):
        state["velocity"] -= 0.1 * state["position"]
        state["position"] += 0.1 * state["velocity"]
    return [x, state["position"], state["velocity"]]


@case(VECTOR)
def view_outlives_the_name_of_its_base(x):
    y = x[:3]
    x = np.cos(x)
    y[0] = x[0]
    x[1] = y[2]
    return [x, y]


@case(MATRIX)
def helper_functions_change_their_argument(x):
    def scale(row, by):
        row *= by

    def center(a):
        a -= a.mean(axis=0)
        return a

    scale(x[0], x[1, 1])
    y = center(x)
    y[0, 0] = 2.0
    return [x, y]


# Copies: changing one does not change the other.


@case(VECTOR)
def copies_are_not_views(x):
    copies = [
        x.copy(),
        np.copy(x),
        x + 0,
        +x,
        1.0 * x,
        x[[0, 1, 2]],
        x[np.array([True, True, False, True, False])],
        x.astype(np.float64),
        np.roll(x, 1),
        np.concatenate([x, x]),
        np.take(x, [0, 1]),
        np.where(True, x, 0.0),
        np.stack([x]),
        np.sort(x),
        np.repeat(x, 1),
        np.tile(x, 1),
        np.clip(x, -9.0, 9.0),
    ]
    x *= 3.0
    for i, y in enumerate(copies):
        y[0] = x[i % 5] + i
    return [x, *copies]


@case(VECTOR)
def scalars_do_not_change(x):
    s = x[0]
    t = s
    s += 1.0
    total = np.sum(x)
    doubled = total
    doubled *= 2.0
    for entry in x:
        entry += 5.0
    x[0] = 9.0
    return [x, s, t, total, doubled]


@case(VECTOR)
def earlier_results_keep_their_values_and_derivatives(x):
    y = x * x
    z = x[1:] * 2
    s = np.sum(np.sin(x))
    x[0] = 5.0
    x *= x
    w = x * y
    y[1] = 3.0
    return [x, y, z, w, s * np.ones(1), x[0] * np.ones(1)]


@case(VECTOR)
def value_is_copied_on_assignment(x):
    y = np.zeros((2, 5), like=x)
    y[0] = x
    x *= 2.0
    y[1] = x
    return [x, y]


@case(VECTOR)
def snapshots_in_a_loop(x):
    history = []
    for _ in range(3):
        x[1:-1] += 0.3 * (x[2:] - 2 * x[1:-1] + x[:-2])
        history.append(x.copy())
    return [x, *history, np.stack(history)]


# Overlap: the right side is read in full before the left side is written.


@case(VECTOR)
def overlapping_assignment(x):
    x[1:] = x[:-1]
    x[:3] = x[2:5]
    x[:] = x[::-1]
    return [x]


@case(VECTOR)
def overlapping_in_place_operators(x):
    x[1:] += x[:-1]
    x[:-1] *= x[1:]
    x -= x[::-1]
    return [x]


@case(SQUARE)
def overlapping_transpose(x):
    x += x.T
    x[1:] = x.T[:2]
    np.multiply(x, x[0], out=x)
    np.add(x[:2], x[1:], out=x[1:])
    np.matmul(x, x, out=x)
    return [x]


@case(VECTOR)
def copyto_with_overlap(x):
    np.copyto(x[1:], x[:-1])
    return [x]


# The order of memory decides what is a view. Results keep the order of their operands.


@case(MATRIX, staged=False)  # results of staged operations are taken to be in C order
def results_keep_the_order_of_their_operands(x):
    y = x.T + 1.0
    y.ravel()[0] = 5.0  # a copy
    y.T.ravel()[1] = 6.0  # a view
    z = np.zeros_like(x.T)
    z.reshape(-1)[0] = x[0, 0]  # a copy
    z.T.reshape(-1)[1] = x[0, 1]  # a view
    return [x, y, z]


@case(MATRIX)
def copies_in_one_order_or_the_other(x):
    kept = np.copy(x.T)  # order K
    kept.T.ravel()[0] = 4.0
    fresh = x.T.copy()  # order C
    fresh.ravel()[1] = x[1, 1]
    columns = x.copy(order="F")
    columns.ravel()[2] = 6.0
    columns.ravel(order="F")[3] = x[0, 2]
    return [x, kept, fresh, columns]


@pytest.mark.parametrize(("function", "x", "options"), CASES)
def test_views_and_copies(function, x, options):
    check_everywhere(function, x, **options)


def test_views_of_views_to_any_depth():
    depth = 3000

    def f(x):
        y = x.copy()
        views = [y]
        for _ in range(depth):
            views.append(views[-1][1:])
        y[-1] = 5.0 * y[-2]  # every view sees it
        last = views[-1]
        assert last.base is y
        last *= 2.0
        return y[-1] + np.sum(last.reshape(-1, 1))

    value, gradient = ft.value_and_grad(f)(np.ones(depth + 2))
    assert value == f(np.ones(depth + 2)) == 10.0 + 2.0 + 10.0
    assert gradient[-3:].tolist() == [0.0, 22.0, 0.0]


def test_a_change_of_one_row_leaves_the_other_rows_alone():
    def f(x):
        y = x.copy()
        rows = list(y)
        for k, row in enumerate(rows):
            row *= 2.0
            y[k - 1, 0] = row[1]
        rows[-1][0] = 7.0
        kept = getattr(rows[0], "value", None)
        rows[1][1] = 5.0
        assert getattr(rows[0], "value", None) is kept  # the object that it was: not made anew
        return y, rows

    x = np.arange(8.0).reshape(4, 2) + 1
    for found, expected in zip(leaves(ft.jvp(f, (x,), (x,))[0]), leaves(f(x)), strict=True):
        np.testing.assert_array_equal(found, expected)


# Lanes of a vmap whose axis is not the slowest in memory: each is as if it were alone.


def reshaped(x):
    y = x.reshape(-1)
    y[0] = 100.0
    return [x, y]


def reshaped_results(x):
    return reshaped(np.sin(x)) + reshaped(x * 2.0)


def reshaped_products(x):
    return reshaped(x[:, None] * x) + reshaped(x.T + np.arange(len(x)))


def reshaped_stacks(x):
    pairs = [np.stack([x, 2 * x], axis=k) for k in range(3)]
    return [array for pair in pairs for array in reshaped(pair)]


def reshaped_rows(x):
    whole = np.concatenate([x[:1], np.zeros((1, x.shape[1])), x[-1:]])
    return reshaped(whole) + reshaped(np.concatenate([x.T[:1], x.T[:1]]))


def in_order_of_memory(x):
    return [np.stack([x, 2 * x]).ravel(order="K"), (x + 1).ravel(order="K")]


ORDERS = {"C": CUBE, "F": np.asfortranarray(CUBE), "mixed": CUBE.transpose(1, 2, 0)}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize(
    "function",
    [
        reshaped,
        reshaped_results,
        reshaped_products,
        reshaped_stacks,
        reshaped_rows,
        in_order_of_memory,
    ],
)
def test_lanes_in_any_order_of_memory(function, axis, order):
    batch = ORDERS[order]
    lanes = [np.copy(lane, order="K") for lane in np.moveaxis(batch, axis, 0)]
    each = [function(lane) for lane in lanes]
    for found, *expected in zip(ft.vmap(function, axis)(batch), *each, strict=True):
        np.testing.assert_array_equal(found, np.stack(expected))
    batch = ORDERS[order]
    twice = ft.vmap(ft.vmap(function, axis), 3)(np.stack([batch, 2 * batch], 3))
    for found, *expected in zip(
        twice, *map(ft.vmap(function, axis), (batch, 2 * batch)), strict=True
    ):
        np.testing.assert_array_equal(found, np.stack(expected))
