"""Whose memory is it? Results belong to the caller, whatever the transform, the function and the array.

One program runs with a function as it is, whose results are copied by hand, and with the same function
jitted, checkpointed, batched, branched to, ...: it has to mean the same, in plain NumPy and under every
transform.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from tests.support.marks import of_constants, one_in
from tests.support.oracles import numerical_gradient

VECTOR = np.array([0.7, -0.4, 1.3])
CONSTANT = np.array([2.0, -1.0, 0.5])


def leaves(tree):
    return ft.tree.leaves(tree)


# --- functions whose results share memory in NumPy, or after the passes of jit ---------------------

CONSTANT_BY_ROWS = np.array([[1.0, 2.0], [3.0, 4.0]])

FUNCTIONS = {
    "the argument": lambda a: a,
    "times one": lambda a: a * 1.0,
    "plus minus zero": lambda a: a + (-0.0),
    "a copy": lambda a: a.copy(),
    "twice negated": lambda a: -(-a),  # noqa: B002
    "the same dtype": lambda a: a.astype(float),
    "all of it": lambda a: a[:],
    "a part": lambda a: a[1:],
    "reversed": lambda a: a[::-1],
    "reshaped": lambda a: a.reshape(3, 1),
    "transposed": lambda a: np.multiply.outer(a, a).T,
    "the real part": lambda a: a.real,
    "spread": lambda a: np.broadcast_to(a, (2, 3)),
    "spread from one": lambda a: np.broadcast_to(a[0], (3,)),
    "spread from a new one": lambda a: (
        np.broadcast_to(np.sum(a), (3,)),
        np.broadcast_to(a * 2.0, (2, 3)),
    ),
    "no longer differentiated": lambda a: ft.stop_gradient(a) * 1.0 + a - a,
    "twice": lambda a: (a, a),
    "two equal ones": lambda a: (a * 2.0, a * 2.0),
    "one and its part": lambda a: (lambda b: [b, b[1:], b[::-1]])(a + 1.0),
    "in containers": lambda a: {"one": [a], "other": (a * 1.0, a.T)},
    "a constant": lambda a: CONSTANT,
    "a constant twice": lambda a: (CONSTANT, a, CONSTANT),
    "a view of a constant": lambda a: (CONSTANT_BY_ROWS.T, a),
    "chosen": lambda a: np.where(np.array([True, True, True]), a, CONSTANT),
}


# --- ways to call them -----------------------------------------------------------------------------


def with_rules(f):
    function = ft.custom_vjp(f)
    function.defvjp(lambda a: (f(a), None), lambda _, g: (_pulled(f, g),))
    function.defjvp(lambda primals, tangents: ft.jvp(f, primals, tangents))
    return function


def _pulled(f, g):
    """All functions here but one are linear or constant."""
    return ft.vjp(f, VECTOR.copy())[1](g)[0]


def with_jvp(f):
    function = ft.custom_jvp(f)
    function.defjvp(lambda primals, tangents: ft.jvp(f, primals, tangents))
    return function


def as_primitive(f):
    """A primitive with as many results as the function has, all of them floating."""
    like = f(VECTOR.copy())
    specs = [ft.ArraySpec(np.shape(leaf), float) for leaf in leaves(like)]
    apply = ft.define_primitive(
        "wrapped",
        lambda a: leaves(f(a)),
        jvp=lambda out, primals, tangents: leaves(ft.jvp(f, primals, tangents)[1]),
        shape=lambda a: specs,
        outputs=len(specs),
    )
    return lambda a: list(apply(a))


def of_lanes(f):
    """With vmap, over one lane."""
    return lambda a: [leaf[0] for leaf in leaves(ft.vmap(f)(a[None]))]


def of_no_lane(f):
    """With vmap, of an argument that is not mapped, unmapped again."""
    return lambda a: ft.vmap(lambda a, b: f(a), (None, 0), None)(a, np.zeros(2))


def branch(f, a):
    return ft.cond(a[0] > 0.0, f, f, a)


def carried(f, a):
    like = f(np.zeros(3))
    return ft.scan(lambda carry, x: (f(a), None), ft.tree.map(np.zeros_like, like), np.zeros(2))[0]


def carried_in(f, a):
    like = ft.tree.map(np.zeros_like, f(np.zeros(3)))
    return ft.fori_loop(0, 2, lambda i, state: f(a), like)


def carried_while(f, a):
    like = ft.tree.map(np.zeros_like, f(np.zeros(3)))
    start = (np.float64(0.0), like)
    return ft.while_loop(lambda s: s[0] < 2.0, lambda s: (s[0] + 1.0, f(a)), start)[1]


def not_at_all(f, a):
    """The result of a loop without steps."""
    return ft.scan(lambda carry, x: (carry, None), f(a), np.zeros(0))[0]


CALLS = {
    "jit": lambda f: ft.jit(f),
    "jit, in NumPy": lambda f: ft.jit(f, backend="numpy"),
    "a graph": lambda f: ft.make_graph(f)(VECTOR),
    "checkpoint": ft.checkpoint,
    "checkpoint with a policy": lambda f: ft.checkpoint(
        f, policy=ft.checkpoint_policies.save_matmuls
    ),
    "custom_jvp": with_jvp,
    "custom_vjp": with_rules,
    "define_primitive": as_primitive,
    "vmap": of_lanes,
    "vmap of what is shared": of_no_lane,
    "cond": lambda f: lambda a: ft.cond(True, f, f, a),
    "cond on a value": lambda f: lambda a: branch(f, a),
    "switch": lambda f: lambda a: ft.switch(1, [f, f, f], a),
    "scan": lambda f: lambda a: carried(f, a),
    "scan of no steps": lambda f: lambda a: not_at_all(f, a),
    "fori_loop": lambda f: lambda a: carried_in(f, a),
    "while_loop": lambda f: lambda a: carried_while(f, a),
    "map": lambda f: lambda a: [y[0] for y in leaves(ft.map(f, a[None]))],
    "vjp": lambda f: lambda a: ft.vjp(f, a)[0],
    "aux of vjp": lambda f: lambda a: ft.vjp(lambda a: (np.sum(a), f(a)), a, has_aux=True)[2],
    "jvp": lambda f: lambda a: ft.jvp(f, (a,), (a,))[0],
    "aux of jvp": lambda f: (
        lambda a: ft.jvp(lambda a: (np.sum(a), f(a)), (a,), (a,), has_aux=True)[2]
    ),
    "linearize": lambda f: lambda a: ft.linearize(f, a)[0],
    "aux of grad": lambda f: lambda a: ft.grad(lambda a: (np.sum(a), f(a)), has_aux=True)(a)[1],
    "aux of value_and_grad": lambda f: (
        lambda a: ft.value_and_grad(lambda a: (np.sum(a), f(a)), has_aux=True)(a)[0][1]
    ),
    "aux of jacfwd": lambda f: lambda a: ft.jacfwd(lambda a: (a, f(a)), has_aux=True)(a)[1],
    "aux of jacrev": lambda f: lambda a: ft.jacrev(lambda a: (a, f(a)), has_aux=True)(a)[1],
    "tap": lambda f: lambda a: ft.tap(f(a), lambda seen: None),
    "stop_gradient": lambda f: lambda a: ft.stop_gradient(f(a)),
    "checkpoint_name": lambda f: lambda a: ft.checkpoint_name(f(a), "name"),
    "pure_callback": lambda f: (
        lambda a: ft.pure_callback(f, ft.eval_shape(f, a), ft.stop_gradient(a))
    ),
    "jit in jit": lambda f: ft.jit(lambda a: ft.jit(f)(a)),
    "vmap of jit": lambda f: of_lanes(ft.jit(f)),
    "jit of vmap": lambda f: ft.jit(of_lanes(f)),
    "detect_anomaly": lambda f: ft.detect_anomaly()(ft.jit(f)),
}
# Through these no derivative passes, or another one, on purpose.
WITHOUT_DERIVATIVE = {"stop_gradient", "pure_callback"}


# --- programs --------------------------------------------------------------------------------------


def total(values):
    weights = itertools.count(1.0)
    return sum(next(weights) * np.sum(leaf * leaf + leaf) for leaf in leaves(values))


def argument_changes(call, a):
    results = call(a)
    a[0] = 5.0
    return total(results) + 0.1 * np.sum(a)


def argument_is_scaled(call, a):
    results = call(a)
    a *= 3.0
    return total(results) + 0.1 * np.sum(a)


def results_change(call, a):
    for leaf in leaves(call(a)):
        leaf[...] = 7.0
    return total(a)


def one_result_changes(call, a):
    first, *others = leaves(call(a))
    first[...] = 7.0
    return total((first, others))


def one_entry_changes(call, a):
    for leaf in (results := leaves(call(a))):
        leaf[(0,) * leaf.ndim] = 7.0
    return total(results)


def results_are_forgotten(call, a):
    for leaf in leaves(call(a)):
        leaf *= 0.0
    return total(call(a))


PROGRAMS = [
    argument_changes,
    argument_is_scaled,
    results_change,
    one_result_changes,
    one_entry_changes,
    results_are_forgotten,
]


def copying(f):
    """The function with its results copied one by one, as it is meant everywhere."""
    return lambda a: [np.array(leaf) for leaf in leaves(f(a))]


# --- transforms ------------------------------------------------------------------------------------


def in_lanes(program, a):
    return ft.vmap(program)(np.stack([a, a]))[1]


TRANSFORMS = {
    "plain": lambda program, a: program(a),
    "vjp": lambda program, a: ft.vjp(program, a)[0],
    "jvp": lambda program, a: ft.jvp(program, (a,), (a,))[0],
    "vmap": in_lanes,
    "make_graph": lambda program, a: ft.make_graph(program)(a)(a),
    "jit": lambda program, a: ft.jit(program)(a),
    "jit, in NumPy": lambda program, a: ft.jit(program, backend="numpy")(a),
    "value_and_grad": lambda program, a: ft.value_and_grad(program)(a)[0],
    "jvp of grad": lambda program, a: ft.jvp(ft.value_and_grad(program), (a,), (a,))[0][0],
    "vmap of jvp": lambda program, a: in_lanes(lambda a: ft.jvp(program, (a,), (a,))[0], a),
    "grad of vmap": lambda program, a: ft.value_and_grad(lambda a: in_lanes(program, a))(a)[0],
    "jit of grad": lambda program, a: ft.jit(ft.value_and_grad(program))(a)[0],
    "linearize": lambda program, a: ft.linearize(program, a)[0],
    "checkpoint": lambda program, a: ft.value_and_grad(ft.checkpoint(program))(a)[0],
    "scan": lambda program, a: ft.scan(lambda c, row: (c + program(row), None), 0.0, a[None])[0],
    "cond": lambda program, a: ft.cond(True, program, program, a),
    "of an array that is open": lambda program, a: ft.vjp(
        lambda t: program(fnp.array(a)) + 0.0 * np.sum(t), a
    )[0],
}
ALWAYS = ("plain", "vjp")
SOMETIMES = [name for name in TRANSFORMS if name not in ALWAYS]


def check(call, f, program, transforms):
    expected = program(copying(f), VECTOR.copy())
    for name in transforms:
        a = VECTOR.copy()
        of_a_copy = lambda a: program(call, a.copy())
        found = TRANSFORMS[name](of_a_copy, a)
        np.testing.assert_allclose(found, expected, rtol=1e-10, err_msg=name)
        np.testing.assert_array_equal(a, VECTOR, err_msg=name)
    np.testing.assert_array_equal(CONSTANT, [2.0, -1.0, 0.5])


PAIRS = list(itertools.product(CALLS, FUNCTIONS))


@pytest.mark.parametrize(
    ("number", "call", "f"),
    one_in(6, [(k, *pair) for k, pair in enumerate(PAIRS)]),
    ids=lambda x: str(x),
)
@of_constants
def test_results_are_nobody_elses(number, call, f):
    function = FUNCTIONS[f]
    called = CALLS[call](function)
    rotating = itertools.cycle(SOMETIMES)
    for _ in range(number % len(SOMETIMES)):
        next(rotating)
    for program in PROGRAMS:
        check(called, function, program, (*ALWAYS, next(rotating), next(rotating)))
    if call not in WITHOUT_DERIVATIVE and f != "no longer differentiated":
        check_gradients(called, function, PROGRAMS[number % len(PROGRAMS)])


def check_gradients(call, f, program):
    plain = lambda a: program(copying(f), a.copy())
    (expected,) = numerical_gradient(plain, (VECTOR,))
    traced = lambda a: program(call, a.copy())
    np.testing.assert_allclose(ft.grad(traced)(VECTOR), expected, rtol=1e-6, atol=1e-7)
    (pulled,) = ft.vjp(traced, VECTOR)[1](1.0)
    np.testing.assert_allclose(pulled, expected, rtol=1e-6, atol=1e-7)
    slope = ft.jvp(traced, (VECTOR,), (CONSTANT,))[1]
    np.testing.assert_allclose(slope, expected @ CONSTANT, rtol=1e-6, atol=1e-7)
