"""Python control flow on traced values: `if`, `while`, `for`, `float`, `int`, `item`, `range`.

Under derivatives values are concrete. Under vmap lanes that disagree go separate ways, and come
back in order.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
from functrans.errors import FunctransError
from tests.support.oracles import assert_trees_close, loop_vmap


def counted(f):
    """The function, and a list that grows by one with every call."""
    calls = []

    def counting(*args):
        calls.append(None)
        return f(*args)

    return counting, calls


def piecewise(x):
    if x > 1:
        return x**2
    elif x > 0:
        return np.sin(x)
    return -3 * x


def piecewise_slope(x):
    return np.where(x > 1, 2 * x, np.where(x > 0, np.cos(x), -3.0))


def heron(x):
    """The square root, by as many steps as it takes: differentiable through its while loop."""
    guess = 0.5 * (1.0 + x)
    while abs(guess * guess - x) > 1e-13 * x:
        guess = 0.5 * (guess + x / guess)
    return guess


def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def power_by_loop(x, n):
    result = 1.0
    for _ in range(n):
        result = result * x
    return result


# The library may warn that a number taken out of a value carries no derivative.
CONSTANT_CONVERSIONS = pytest.mark.filterwarnings("ignore::UserWarning")
LANES = np.array([0.5, -1.0, 2.0, -0.25, 3.0, 0.75, 1.5, -2.0])

# --- under derivatives ---------------------------------------------------------------------------


@pytest.mark.parametrize("x", LANES)
def test_branches_just_work_under_derivatives(x):
    expected = piecewise_slope(x)
    np.testing.assert_allclose(ft.grad(piecewise)(x), expected)
    np.testing.assert_allclose(ft.jvp(piecewise, (x,), (1.0,))[1], expected)
    np.testing.assert_allclose(ft.jacfwd(piecewise)(x), expected)
    np.testing.assert_allclose(ft.jacrev(piecewise)(x), expected)
    np.testing.assert_allclose(ft.linearize(piecewise, x)[1](1.0), expected)


def test_loops_just_work_under_derivatives():
    np.testing.assert_allclose(ft.grad(heron)(2.0), 0.5 / math.sqrt(2))
    np.testing.assert_allclose(ft.grad(ft.grad(heron))(2.0), -0.25 * 2.0**-1.5, rtol=1e-6)
    np.testing.assert_allclose(ft.jvp(lambda x: power_by_loop(x, 5), (1.5,), (1.0,))[1], 5 * 1.5**4)


@CONSTANT_CONVERSIONS
@pytest.mark.usefixtures("without_hooks")
def test_conversions_are_constants_under_derivatives():
    np.testing.assert_allclose(ft.grad(lambda x: x * float(x))(3.0), 3.0)
    np.testing.assert_allclose(ft.grad(lambda x: x * int(x))(3.5), 3.0)
    np.testing.assert_allclose(ft.grad(lambda x: x * x.item())(3.0), 3.0)
    np.testing.assert_allclose(ft.grad(lambda x: x * bool(x > 1))(3.0), 1.0)
    np.testing.assert_allclose(ft.grad(lambda x: power_by_loop(x, int(x)))(3.0), 27.0)


def test_predicates_of_arrays_are_concrete_under_derivatives():
    f = lambda x: np.sum(x**2) if (x > 0).all() else np.sum(x)
    np.testing.assert_allclose(ft.grad(f)(np.array([1.0, 2.0])), [2.0, 4.0])
    np.testing.assert_allclose(ft.grad(f)(np.array([1.0, -2.0])), [1.0, 1.0])


# --- under vmap ----------------------------------------------------------------------------------


def test_lanes_that_agree_share_one_call():
    f, calls = counted(piecewise)
    np.testing.assert_allclose(ft.vmap(f)(np.array([2.0, 3.0, 4.0])), [4.0, 9.0, 16.0])
    assert len(calls) == 1


def test_lanes_that_disagree_go_separate_ways_and_come_back_in_order():
    f, calls = counted(piecewise)
    np.testing.assert_allclose(ft.vmap(f)(LANES), [piecewise(x) for x in LANES])
    assert 1 < len(calls) <= 3


@given(data=st.data(), lanes=st.integers(1, 40))
@settings(max_examples=40)
def test_any_number_of_lanes_takes_no_more_calls_than_paths(data, lanes):
    signs = np.array(data.draw(st.lists(st.integers(0, 7), min_size=lanes, max_size=lanes)))

    def f(bits):
        total = 0.0
        for place in range(3):
            if (bits >> place) & 1:
                total = total + 10.0**place
        return total + 0.5 * bits

    counting, calls = counted(f)
    np.testing.assert_allclose(ft.vmap(counting)(signs), [f(n) for n in signs])
    assert len(calls) <= len(set(signs.tolist())) <= lanes


def test_nested_branches_take_one_call_for_each_path():
    def f(x, y):
        if x > 0:
            if y > 0:
                return x * y
            return x - y
        if y > 0 and x < -1:
            return y / x
        return 7.0 * x

    xs = np.array([1.0, -2.0, 3.0, -0.5, 1.0, -3.0, 2.0])
    ys = np.array([1.0, 1.0, -1.0, 2.0, -4.0, -1.0, 5.0])
    counting, calls = counted(f)
    np.testing.assert_allclose(
        ft.vmap(counting)(xs, ys), [f(x, y) for x, y in zip(xs, ys, strict=True)]
    )
    assert len(calls) <= 5


def test_many_lanes_on_two_paths_take_two_calls():
    xs = np.random.default_rng(3).normal(size=5000)
    counting, calls = counted(lambda x: x**2 if x > 0 else -x)
    np.testing.assert_allclose(ft.vmap(counting)(xs), np.where(xs > 0, xs**2, -xs))
    assert len(calls) <= 2


def test_every_lane_on_a_path_of_its_own_is_a_loop():
    xs = np.array([5, 3, 9, 0, 7, 1])
    counting, calls = counted(lambda n: power_by_loop(1.5, n))
    np.testing.assert_allclose(ft.vmap(counting)(xs), 1.5**xs)
    assert len(calls) <= len(xs)


def test_while_loops_end_at_their_own_time_in_each_lane():
    xs = np.array([1.0, 2.0, 100.0, 0.01, 2.0, 1e6])
    counting, calls = counted(heron)
    np.testing.assert_allclose(ft.vmap(counting)(xs), np.sqrt(xs))
    assert len(calls) <= 5


def test_while_loop_on_integers_counts_steps_in_each_lane():
    numbers = np.array([1, 2, 3, 6, 7, 27, 9, 3])
    counting, calls = counted(collatz)
    np.testing.assert_array_equal(ft.vmap(counting)(numbers), [0, 1, 7, 8, 16, 111, 19, 7])
    assert len(calls) <= 7


def test_break_and_continue():
    def f(x):
        total = 0.0
        for k in range(10):
            if k % 2:
                continue
            total = total + x
            if total > 4:
                break
        return total

    xs = np.array([0.1, 1.0, 3.0, 5.0, -1.0])
    np.testing.assert_allclose(ft.vmap(f)(xs), [f(x) for x in xs])


def test_any_and_all_of_a_vector_decide_by_lane():
    f = lambda v: v * 2 if (v > 0).all() else (v - 1 if np.any(v > 0) else v * 0)
    rows = np.array([[1.0, 2.0], [1.0, -2.0], [-1.0, -2.0], [3.0, 4.0]])
    np.testing.assert_allclose(ft.vmap(f)(rows), [[2.0, 4.0], [0.0, -3.0], [0.0, 0.0], [6.0, 8.0]])
    np.testing.assert_allclose(
        ft.vmap(f, 1, 1)(rows.T), np.array([[2.0, 4.0], [0.0, -3.0], [0.0, 0.0], [6.0, 8.0]]).T
    )


def test_python_min_max_and_chained_comparisons():
    f = lambda x, y: max(x, y) * 10 + min(x, y) + (1.0 if 0 < x < y else 0.0)
    xs, ys = np.array([1.0, 5.0, -1.0, 2.0]), np.array([2.0, 3.0, 4.0, 2.0])
    np.testing.assert_allclose(ft.vmap(f)(xs, ys), [22.0, 53.0, 39.0, 22.0])


def test_exceptions_raised_in_one_lane_reach_the_caller():
    def f(x):
        if x < 0:
            raise ValueError("no root of a negative number")
        return np.sqrt(x)

    with pytest.raises(ValueError, match="no root of a negative number"):
        ft.vmap(f)(np.array([4.0, -1.0]))
    np.testing.assert_allclose(ft.vmap(f)(np.array([4.0, 9.0])), [2.0, 3.0])


def test_branch_on_an_unmapped_value_does_not_split():
    counting, calls = counted(lambda x, flag: x * 2 if flag > 0 else x)
    np.testing.assert_allclose(ft.vmap(counting, (0, None))(LANES, 1.0), 2 * LANES)
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("convert", "values"),
    [
        (lambda x: float(x), np.array([1.5, 2.5, 1.5, -3.0, 2.5])),
        (lambda x: x.item(), np.array([1.5, 2.5, 1.5, -3.0, 2.5])),
        (lambda x: int(x), np.array([1.5, 2.5, 1.5, -3.0, 2.5])),
        (lambda n: float(n), np.array([3, 1, 3, 3, 1])),
        (lambda n: int(n), np.array([3, 1, 3, 3, 1])),
        (lambda n: n.item(), np.array([3, 1, 3, 3, 1])),
        (lambda n: len(range(n)), np.array([3, 1, 3, 3, 1])),
        (lambda n: [10, 20, 30, 40][n], np.array([3, 1, 3, 3, 1])),
    ],
    ids=[
        "float",
        "item",
        "int of float",
        "float of int",
        "int",
        "item of int",
        "range",
        "list index",
    ],
)
def test_conversions_split_by_value(convert, values):
    f = lambda x: convert(x) * 2 + x
    counting, calls = counted(f)
    np.testing.assert_allclose(ft.vmap(counting)(values), [f(x) for x in values])
    assert len(calls) <= len(set(values.tolist()))


def test_converted_value_is_a_plain_python_number():
    kinds = []

    def f(x):
        kinds.append((type(float(x)), type(int(x)), type(x.item())))
        return math.sin(float(x)) + x

    xs = np.array([1.0, 2.0, 1.0])
    np.testing.assert_allclose(ft.vmap(f)(xs), np.sin(xs) + xs)
    assert set(kinds) == {(float, int, float)}


def test_range_of_a_mapped_count_beside_a_mapped_base():
    xs, counts = np.array([2.0, 3.0, 0.5, 2.0]), np.array([3, 2, 3, 0])
    counting, calls = counted(power_by_loop)
    np.testing.assert_allclose(ft.vmap(counting)(xs, counts), xs**counts)
    assert len(calls) <= 3


@pytest.mark.parametrize("in_axis", [0, 1, -1])
@pytest.mark.parametrize("out_axis", [0, 1, -1])
def test_lanes_return_to_the_output_axis_asked_for(in_axis, out_axis):
    f = lambda v: np.stack([v, 2 * v]) if v[0] > 0 else np.stack([-v, v])
    values = np.random.default_rng(0).normal(size=(4, 4))
    expected = loop_vmap(f, in_axis, out_axis)(values)
    np.testing.assert_allclose(ft.vmap(f, in_axis, out_axis)(values), expected)


def test_pytree_outputs_of_different_paths_are_put_together():
    def f(p):
        if p["x"] > 0:
            return {"y": p["x"] ** 2, "flag": True, "pair": (p["x"], 1.0)}
        return {"y": -p["x"], "flag": False, "pair": (0.0, p["x"])}

    xs = np.array([1.0, -2.0, 3.0])
    expected = {
        "y": np.array([1.0, 2.0, 9.0]),
        "flag": np.array([True, False, True]),
        "pair": (np.array([1.0, 0.0, 3.0]), np.array([1.0, -2.0, 1.0])),
    }
    assert_trees_close(ft.vmap(f)({"x": xs}), expected)


def test_constant_and_mapped_outputs_of_different_paths():
    f = lambda x: x if x > 0 else 0.0
    np.testing.assert_allclose(ft.vmap(f)(np.array([-1.0, 2.0, -3.0])), [0.0, 2.0, 0.0])


def test_one_lane_needs_one_call():
    counting, calls = counted(piecewise)
    np.testing.assert_allclose(ft.vmap(counting)(np.array([-2.0])), [6.0])
    assert len(calls) == 1


# --- composed with derivatives -------------------------------------------------------------------


def test_vmap_of_grad_splits_lanes():
    counting, calls = counted(piecewise)
    np.testing.assert_allclose(ft.vmap(ft.grad(counting))(LANES), piecewise_slope(LANES))
    assert len(calls) <= 3


def test_grad_of_vmap_splits_lanes():
    counting, calls = counted(piecewise)
    weights = np.arange(1.0, 9.0)
    gradient = ft.grad(lambda x: np.sum(weights * ft.vmap(counting)(x)))(LANES)
    np.testing.assert_allclose(gradient, weights * piecewise_slope(LANES))
    assert len(calls) <= 3


def test_jvp_of_vmap_splits_lanes():
    counting, calls = counted(piecewise)
    tangents = np.linspace(-1, 1, 8)
    out, tangent = ft.jvp(ft.vmap(counting), (LANES,), (tangents,))
    np.testing.assert_allclose(out, [piecewise(x) for x in LANES])
    np.testing.assert_allclose(tangent, tangents * piecewise_slope(LANES))
    assert len(calls) <= 3


def test_vmap_of_jvp_splits_lanes():
    counting, calls = counted(piecewise)
    tangents = np.linspace(-1, 1, 8)
    out, tangent = ft.vmap(lambda x, v: ft.jvp(counting, (x,), (v,)))(LANES, tangents)
    np.testing.assert_allclose(out, [piecewise(x) for x in LANES])
    np.testing.assert_allclose(tangent, tangents * piecewise_slope(LANES))
    assert len(calls) <= 3


def test_derivative_flows_to_unmapped_arguments_through_every_path():
    def f(x, w):
        if x > 0:
            return w * x
        return w**2

    xs = np.array([1.0, -1.0, 3.0])
    gradient = ft.grad(lambda w: np.sum(ft.vmap(f, (0, None))(xs, w)))(5.0)
    np.testing.assert_allclose(gradient, 4.0 + 10.0)


def test_derivative_flows_to_captured_values_through_every_path():
    xs = np.array([1.0, -1.0, 3.0])
    total = lambda w: np.sum(ft.vmap(lambda x: w * x if x > 0 else w**2)(xs))
    np.testing.assert_allclose(ft.grad(total)(5.0), 14.0)
    np.testing.assert_allclose(ft.grad(ft.grad(total))(5.0), 2.0)
    np.testing.assert_allclose(ft.jvp(total, (5.0,), (1.0,))[1], 14.0)


def test_while_loop_is_differentiated_in_each_lane():
    xs = np.array([1.0, 2.0, 100.0, 0.01])
    np.testing.assert_allclose(ft.vmap(ft.grad(heron))(xs), 0.5 / np.sqrt(xs), rtol=1e-6)
    gradient = ft.grad(lambda x: np.sum(ft.vmap(heron)(x)))(xs)
    np.testing.assert_allclose(gradient, 0.5 / np.sqrt(xs), rtol=1e-6)


def test_jacobian_and_hessian_of_branches_by_lane():
    f = lambda x: np.sum(x**3) if x[0] > 0 else np.sum(x**2)
    rows = np.array([[1.0, 2.0], [-1.0, 3.0], [2.0, 0.5]])
    expected = np.stack([np.diag(6 * row) if row[0] > 0 else 2 * np.eye(2) for row in rows])
    np.testing.assert_allclose(ft.vmap(ft.hessian(f))(rows), expected)
    slopes = np.stack([3 * row**2 if row[0] > 0 else 2 * row for row in rows])
    jacobian = np.eye(3)[:, :, None] * slopes
    np.testing.assert_allclose(ft.jacrev(ft.vmap(f))(rows), jacobian)
    np.testing.assert_allclose(ft.jacfwd(ft.vmap(f))(rows), jacobian)


@CONSTANT_CONVERSIONS
@pytest.mark.parametrize("convert", [float, int, lambda x: x.item()])
@pytest.mark.usefixtures("without_hooks")
def test_conversions_split_under_grad_on_either_side(convert):
    f = lambda x: x * convert(x)
    xs = np.array([1.0, 2.0, 2.0, 3.0])
    np.testing.assert_allclose(ft.vmap(ft.grad(f))(xs), xs)
    np.testing.assert_allclose(ft.grad(lambda x: np.sum(ft.vmap(f)(x)))(xs), xs)


# --- nested vmap ---------------------------------------------------------------------------------

TABLE = np.array([[0.5, -1.0, 2.0], [-0.5, -1.0, -2.0], [1.5, 2.0, 3.0], [-1.0, 2.0, 0.25]])
PIECEWISE_TABLE = np.array([[piecewise(x) for x in row] for row in TABLE])


def test_nested_vmap_splits_every_lane_of_both():
    counting, calls = counted(piecewise)
    np.testing.assert_allclose(ft.vmap(ft.vmap(counting))(TABLE), PIECEWISE_TABLE)
    assert len(calls) <= TABLE.size
    np.testing.assert_allclose(ft.vmap(ft.vmap(piecewise, 0), 1, 1)(TABLE), PIECEWISE_TABLE)
    np.testing.assert_allclose(ft.vmap(ft.vmap(piecewise, 0, 0), 1, 0)(TABLE), PIECEWISE_TABLE.T)


def test_outer_branch_around_an_inner_vmap():
    def f(row):
        if np.sum(row) > 0:
            return ft.vmap(piecewise)(row)
        return row * 0.0

    np.testing.assert_allclose(
        ft.vmap(f)(TABLE), np.where(TABLE.sum(1, keepdims=True) > 0, PIECEWISE_TABLE, 0.0)
    )


def test_inner_branch_on_a_value_mapped_only_outside():
    f = lambda a: ft.vmap(lambda b: a * b if a > 0 else a + b)(np.arange(3.0))
    xs = np.array([2.0, -1.0])
    np.testing.assert_allclose(ft.vmap(f)(xs), [[0.0, 2.0, 4.0], [-1.0, 0.0, 1.0]])


def test_inner_branch_on_two_differently_mapped_values():
    f = lambda a, b: a - b if a > b else a * b
    xs, ys = np.array([1.0, 2.0, 3.0]), np.array([0.5, 2.5])
    table = ft.vmap(ft.vmap(f, (None, 0)), (0, None))(xs, ys)
    np.testing.assert_allclose(table, [[f(x, y) for y in ys] for x in xs])


def test_nested_vmap_around_and_inside_grad():
    slope = piecewise_slope(TABLE)
    np.testing.assert_allclose(ft.vmap(ft.vmap(ft.grad(piecewise)))(TABLE), slope)
    rows = ft.vmap(ft.grad(lambda row: np.sum(ft.vmap(piecewise)(row))))(TABLE)
    np.testing.assert_allclose(rows, slope)
    whole = ft.grad(lambda t: np.sum(ft.vmap(ft.vmap(piecewise))(t)))(TABLE)
    np.testing.assert_allclose(whole, slope)


def test_range_of_nested_mapped_counts():
    counts = np.array([[0, 1, 2], [2, 2, 3]])
    table = ft.vmap(ft.vmap(lambda n: power_by_loop(2.0, n)))(counts)
    np.testing.assert_allclose(table, 2.0**counts)


def test_chunks_and_splits_together():
    np.testing.assert_allclose(
        ft.vmap(piecewise, chunk_size=3)(LANES), [piecewise(x) for x in LANES]
    )


@given(data=st.data())
@settings(max_examples=25)
def test_random_programs_of_branches_are_a_loop(data):
    steps = data.draw(
        st.lists(st.tuples(st.floats(-2, 2), st.sampled_from("abcd")), min_size=1, max_size=4)
    )
    values = np.array(data.draw(st.lists(st.floats(-2, 2), min_size=1, max_size=8)))

    def f(x):
        for threshold, action in steps:
            if x > threshold:
                x = {"a": x * 0.5, "b": x - 1.0, "c": np.sin(x), "d": x * x}[action]
            else:
                x = x + 0.25
        return x

    expected = [f(x) for x in values]
    counting, calls = counted(f)
    np.testing.assert_allclose(ft.vmap(counting)(values), expected, rtol=1e-10, atol=1e-12)
    assert len(calls) <= len(values)
    slopes = [ft.grad(f)(x) for x in values]
    np.testing.assert_allclose(ft.vmap(ft.grad(f))(values), slopes, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(
        ft.grad(lambda x: np.sum(ft.vmap(f)(x)))(values), slopes, rtol=1e-10, atol=1e-12
    )


# --- while staging -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "remedy"),
    [
        (piecewise, "Write functrans.cond(x > 1, f, g, x)"),
        (heron, "Write functrans.while_loop(cond, body, init)"),
        (lambda x: x * float(x), "Leave the conversion out: arithmetic works on x"),
        (lambda x: x * int(x), "Write x.astype(int)"),
        (lambda x: x * x.item(), "Leave the conversion out: arithmetic works on x"),
        (lambda x: x * bool(x), "Write x.astype(bool)"),
        (lambda x: x * np.sum([1.0 for _ in range(x)]), "Write functrans.fori_loop("),
    ],
    ids=["if", "while", "float", "int", "item", "bool", "range"],
)
def test_control_flow_on_values_cannot_be_staged(f, remedy):
    with pytest.raises(FunctransError) as caught:
        ft.make_graph(f)(2.0)
    assert isinstance(caught.value, TypeError)
    assert "test_control_flow.py, line" in str(caught.value)
    assert remedy in str(caught.value)


def test_control_flow_on_shapes_and_static_values_is_staged():
    def f(x, repeat=3):
        for _ in range(repeat):
            x = x * 2 if x.ndim == 1 else x
        return x if len(x) > 2 else -x

    graph = ft.make_graph(f)(np.ones(3))
    np.testing.assert_allclose(graph(np.arange(3.0)), 8 * np.arange(3.0))
