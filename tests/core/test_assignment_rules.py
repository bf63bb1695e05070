"""Changes in place that must raise, as in NumPy or with an error that shows the way; and dtypes."""

import numpy as np
import pytest

import functrans as ft
from functrans.errors import AssignmentError
from tests.support.oracles import assert_trees_close

VECTOR = np.array([0.7, -0.4, 1.3])


def under_grad(function, x):
    return ft.grad(lambda x: np.sum(np.real(function(x))))(x)


def under_jvp(function, x):
    return ft.jvp(function, (x,), (np.ones_like(x),))


def under_vmap(function, x):
    return ft.vmap(function)(np.stack([x, x]))


def under_make_graph(function, x):
    return ft.make_graph(function)(x)


def under_vmap_of_grad(function, x):
    return ft.vmap(ft.grad(lambda x: np.sum(np.real(function(x)))))(np.stack([x, x]))


def under_jvp_of_grad(function, x):
    gradient = ft.grad(lambda x: np.sum(np.real(function(x))))
    return ft.jvp(gradient, (x,), (np.ones_like(x),))


TRANSFORMS = [
    under_grad,
    under_jvp,
    under_vmap,
    under_make_graph,
    under_vmap_of_grad,
    under_jvp_of_grad,
]
everywhere = pytest.mark.parametrize("transform", TRANSFORMS, ids=[t.__name__ for t in TRANSFORMS])


# Errors that NumPy raises too.


def write_to_broadcast(x):
    np.broadcast_to(x, (2, 3))[0] = 1.0


def write_to_broadcast_in_place(x):
    y = np.broadcast_to(x, (2, 3))
    y += 1.0


def write_to_view_of_broadcast(x):
    np.broadcast_to(x, (2, 3))[0, 1:][0] = 1.0


def write_to_diagonal(x):
    np.diagonal(np.outer(x, x))[0] = 1.0


def write_to_diagonal_method(x):
    np.outer(x, x).diagonal().fill(0.0)


def write_to_diag(x):
    y = np.diag(np.outer(x, x))
    y *= 2.0


def out_is_read_only(x):
    np.add(x, 1.0, out=np.broadcast_to(x[0], (3,)))


def value_does_not_fit(x):
    x.copy()[:2] = np.ones(3)


def operand_does_not_fit(x):
    y = x.copy()
    y += np.ones((2, 3))


def out_does_not_fit(x):
    np.add(x, 1.0, out=np.zeros((2,), like=x))


def index_out_of_range(x):
    x.copy()[3] = 1.0


def index_array_out_of_range(x):
    x.copy()[[0, -4]] = 1.0


def too_many_indices(x):
    x.copy()[0, 0] = 1.0


def mask_does_not_fit(x):
    x.copy()[np.array([True, False])] = 1.0


def complex_item(x):
    x.copy()[0] = 1j


def complex_operand(x):
    y = x.copy()
    y += 1j


def complex_array_operand(x):
    y = x.copy()
    y *= np.array([1j, 2.0, 3.0])


def complex_out(x):
    np.multiply(x, 1j, out=np.zeros_like(x))


def complex_copyto(x):
    np.copyto(x.copy(), x * 1j)


def integer_takes_no_float_operand(x):
    y = np.zeros_like(x, dtype=np.int64)
    y += 0.5


def integer_takes_no_float_out(x):
    np.add(x, 1.0, out=np.zeros_like(x, dtype=np.int64))


def scalar_takes_no_item(x):
    x[0][...] = 1.0


def result_of_a_sum_takes_no_item(x):
    np.sum(x)[...] = 1.0


ERRORS = {
    write_to_broadcast: ValueError,
    write_to_broadcast_in_place: ValueError,
    write_to_view_of_broadcast: ValueError,
    write_to_diagonal: ValueError,
    write_to_diagonal_method: ValueError,
    write_to_diag: ValueError,
    out_is_read_only: ValueError,
    value_does_not_fit: ValueError,
    operand_does_not_fit: ValueError,
    out_does_not_fit: ValueError,
    index_out_of_range: IndexError,
    index_array_out_of_range: IndexError,
    too_many_indices: IndexError,
    mask_does_not_fit: IndexError,
    complex_item: TypeError,
    complex_operand: TypeError,
    complex_array_operand: TypeError,
    complex_out: TypeError,
    complex_copyto: TypeError,
    integer_takes_no_float_operand: TypeError,
    integer_takes_no_float_out: TypeError,
    scalar_takes_no_item: TypeError,
    result_of_a_sum_takes_no_item: TypeError,
}


@everywhere
@pytest.mark.parametrize(("function", "error"), ERRORS.items(), ids=[f.__name__ for f in ERRORS])
def test_what_numpy_refuses_is_refused(transform, function, error):
    def refused(x):
        y = x.copy()
        y[0] = 2.0  # what is allowed is allowed
        with pytest.raises(error):
            function(x)
        return x * y

    refused(VECTOR)
    transform(refused, VECTOR)


# dtypes: the target keeps its own.


def dtypes_and_values(function, x):
    """The dtypes a function sees while it runs, and its values, under several transforms."""
    seen = []

    def noting(x):
        outs = function(x)
        seen.append([out.dtype for out in outs])
        return outs

    expected = function(x.copy())
    for run in (
        lambda: ft.jvp(noting, (x,), (np.ones_like(x),))[0],
        lambda: ft.vjp(noting, x)[0],
        lambda: [out[0] for out in ft.vmap(noting)(x[None])],
        lambda: ft.make_graph(noting)(x)(x),
    ):
        seen.clear()
        assert_trees_close(run(), expected, dtypes=True)
        assert all(dtypes == [out.dtype for out in expected] for dtypes in seen)


def test_the_target_keeps_its_dtype():
    def function(x):
        y = x.copy()
        y[0] = np.float64(0.1)
        y[1:] = np.array([0.1, 0.2]) * np.sum(x.astype(np.float64))
        y += np.array([1.0, 2.0, 3.0])
        np.multiply(y, np.float64(1.1), out=y)
        wide = np.zeros_like(x, dtype=np.float64)
        wide[:] = y
        wide *= x
        narrow = np.zeros((3,), dtype=np.float16, like=x)
        narrow[...] = wide
        return [y, wide, narrow]

    dtypes_and_values(function, VECTOR.astype(np.float32))


def test_a_complex_target_takes_real_values():
    def function(x):
        z = np.zeros_like(x, dtype=np.complex128)
        z[:] = x
        z += 1j * x
        z[0] = x[1] * 2
        return [z, np.abs(z)]

    dtypes_and_values(function, VECTOR)


def test_a_complex_array_in_a_real_one_loses_its_imaginary_part_with_a_warning():
    def function(x):
        y = x.copy()
        with pytest.warns(np.exceptions.ComplexWarning):
            y[:] = x * (2 + 3j)
        return [y]

    dtypes_and_values(function, VECTOR)


def test_an_integer_target_truncates_what_is_assigned_and_ends_the_derivative():
    def function(x):
        n = np.zeros_like(x, dtype=np.int64)
        n[:] = 3 * x
        n[0] = 7.9
        n += 2
        return x * n

    assert_trees_close(ft.jvp(function, (VECTOR,), (np.ones(3),))[0], function(VECTOR))
    expected = np.array([9.0, 1.0, 5.0])
    assert_trees_close(ft.jvp(function, (VECTOR,), (np.ones(3),))[1], expected)
    assert_trees_close(ft.grad(lambda x: np.sum(function(x)))(VECTOR), expected)
    batch = np.stack([VECTOR, -VECTOR])
    assert_trees_close(ft.vmap(function)(batch), np.stack([function(row) for row in batch]))
    assert_trees_close(ft.make_graph(function)(VECTOR)(-VECTOR), function(-VECTOR))


def test_the_result_of_an_in_place_call_is_the_target():
    def function(x):
        y = np.zeros_like(x)
        assert np.add(x, 1.0, out=y) is y
        same = y
        y += x
        y[...] *= 2.0
        assert y is same
        assert x.copy().sort() is None
        assert np.copyto(y, x) is None
        assert y.fill(1.0) is None
        return y * x

    for transform in TRANSFORMS:
        transform(function, VECTOR)


# Plain arrays cannot hold traced values.


def assign_item(a, x):
    a[0] = x[0]


def assign_slice(a, x):
    a[1:] = x[1:]


def assign_everything(a, x):
    a[:] = x


def add_in_place(a, x):
    a += x


def add_a_part_in_place(a, x):
    a[:2] += x[:2]


def ufunc_out(a, x):
    np.multiply(x, 2.0, out=a)


def ufunc_at(a, x):
    np.add.at(a, [0, 0], x[:2])


def copyto(a, x):
    np.copyto(a, x)


def put(a, x):
    np.put(a, [0], x[:1])


def sum_out(a, x):
    np.sum(np.outer(x, x), axis=0, out=a)


INTO_PLAIN = [
    assign_item,
    assign_slice,
    assign_everything,
    add_in_place,
    add_a_part_in_place,
    ufunc_out,
    ufunc_at,
    copyto,
    put,
    sum_out,
]


@everywhere
@pytest.mark.parametrize("assign", INTO_PLAIN, ids=[f.__name__ for f in INTO_PLAIN])
@pytest.mark.usefixtures("without_hooks")
def test_a_traced_value_in_a_plain_array_is_an_error_that_shows_the_way(transform, assign):
    a = np.zeros(3)

    def function(x):
        assign(a, x)
        return x

    # NumPy hides some errors behind its own, and the transform brings them back.
    with pytest.raises(AssignmentError) as caught:
        transform(function, VECTOR)
    assert "functrans.numpy.zeros" in str(caught.value)
    assert np.all(a == 0.0), "the plain array was changed before the error"


def test_plain_values_may_be_assigned_to_plain_arrays_in_a_transform():
    def function(x):
        weights = np.zeros(3)
        weights[1] = 2.0
        weights += 1.0
        weights[::2] *= 5.0
        return np.sum(x * x * weights)

    assert_trees_close(ft.grad(function)(VECTOR), 2 * VECTOR * np.array([5.0, 3.0, 5.0]))
