"""A traced value that has outlived its transform is an error, wherever it surfaces."""

import math
import operator
import warnings

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import (
    ArraySpec,
    associative_scan,
    checkpoint,
    cond,
    custom_jvp,
    custom_vjp,
    eval_shape,
    fori_loop,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacrev,
    jit,
    jvp,
    linear_transpose,
    linearize,
    make_graph,
    pure_callback,
    scan,
    stop_gradient,
    switch,
    value_and_grad,
    vjp,
    vmap,
    while_loop,
)
from functrans.errors import EscapedTracerError

VECTOR = np.array([1.0, 2.0])

# How a value gets out of a transform: each calls `keep` on it.
ROUTES = {
    "grad": lambda keep: grad(lambda x: np.sum(keep(x)))(VECTOR),
    "vjp": lambda keep: vjp(keep, VECTOR),
    "jvp": lambda keep: jvp(keep, (VECTOR,), (VECTOR,)),
    "linearize": lambda keep: linearize(keep, VECTOR),
    "vmap": lambda keep: vmap(keep)(np.ones((2, 2))),
    "vmap of numbers": lambda keep: vmap(keep)(VECTOR),
    "jit": lambda keep: jit(keep)(VECTOR),
    "make_graph": lambda keep: make_graph(keep)(VECTOR),
    "jit of scan": lambda keep: jit(lambda x: scan(lambda c, v: (c, keep(v)), 0.0, x))(VECTOR),
    "jit of cond": lambda keep: jit(lambda x: cond(x[0] > 0, keep, lambda v: v, x))(VECTOR),
    "checkpoint": lambda keep: grad(checkpoint(lambda x: np.sum(keep(x))))(VECTOR),
    "vmap of grad": lambda keep: vmap(grad(lambda x: np.sum(keep(x))))(np.ones((2, 2))),
}


def identity(x):
    return x


def with_jvp(function, rule):
    f = custom_jvp(function)
    f.defjvp(rule)
    return f


def with_vjp(function, fwd, bwd):
    f = custom_vjp(function)
    f.defvjp(fwd, bwd)
    return f


# Where it surfaces: each is given the value.
PLACES = {
    "grad": lambda v: grad(lambda x: v)(1.0),
    "grad aux": lambda v: grad(lambda x: (x, {"a": [v]}), has_aux=True)(1.0),
    "value_and_grad": lambda v: value_and_grad(lambda x: v)(1.0),
    "vjp": lambda v: vjp(lambda x: v, 1.0),
    "vjp of a list": lambda v: vjp(lambda x: [x, v], 1.0),
    "vjp aux": lambda v: vjp(lambda x: (x, v), 1.0, has_aux=True),
    "jvp": lambda v: jvp(lambda x: v, (1.0,), (1.0,)),
    "jvp aux": lambda v: jvp(lambda x: (x, v), (1.0,), (1.0,), has_aux=True),
    "jacfwd": lambda v: jacfwd(lambda x: v)(1.0),
    "jacfwd aux": lambda v: jacfwd(lambda x: (x, v), has_aux=True)(1.0),
    "jacrev": lambda v: jacrev(lambda x: v)(1.0),
    "jacrev aux": lambda v: jacrev(lambda x: (x, v), has_aux=True)(1.0),
    "hessian": lambda v: hessian(lambda x: v)(1.0),
    "hvp": lambda v: hvp(lambda x: v, (1.0,), (1.0,)),
    "linearize": lambda v: linearize(lambda x: v, 1.0),
    "linear_transpose": lambda v: linear_transpose(lambda x: v, 1.0),
    "vmap": lambda v: vmap(lambda x: v)(VECTOR),
    "vmap, out_axes None": lambda v: vmap(lambda x: v, out_axes=None)(VECTOR),
    "jit": lambda v: jit(lambda x: v)(1.0),
    "jit of a tuple": lambda v: jit(lambda x: (x, v))(1.0),
    "make_graph": lambda v: make_graph(lambda x: v)(1.0),
    "eval_shape": lambda v: eval_shape(lambda x: v, 1.0),
    "cond": lambda v: cond(True, lambda x: v, lambda x: v, 1.0),
    "cond operand": lambda v: cond(True, identity, identity, v),
    "switch": lambda v: switch(0, [lambda x: (v, x)], 1.0),
    "scan": lambda v: scan(lambda c, x: (c, v), 0.0, VECTOR),
    "scan carry": lambda v: scan(lambda c, x: (v, x), 0.0, VECTOR),
    "scan start": lambda v: scan(lambda c, x: (c, x), v, VECTOR),
    "scan of nothing": lambda v: scan(lambda c, x: (c, x), v, np.ones(0)),
    "while_loop": lambda v: while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, v), (0, 0.0)),
    "while_loop start": lambda v: while_loop(lambda c: c[0] < 0, identity, (0, v)),
    "fori_loop": lambda v: fori_loop(0, 2, lambda i, c: v, 0.0),
    "fori_loop start": lambda v: fori_loop(0, 0, lambda i, c: c, v),
    "map": lambda v: ft.map(lambda x: v, VECTOR),
    "associative_scan": lambda v: associative_scan(lambda a, b: v, np.ones(3)),
    "checkpoint": lambda v: checkpoint(lambda x: v)(1.0),
    "checkpoint under grad": lambda v: grad(checkpoint(lambda x: v))(1.0),
    "stop_gradient": lambda v: stop_gradient(v),
    "custom_jvp": lambda v: with_jvp(lambda x: v, lambda p, t: (p[0], t[0]))(1.0),
    "custom_jvp rule": lambda v: grad(with_jvp(identity, lambda p, t: (p[0], v)))(1.0),
    "custom_vjp": lambda v: with_vjp(lambda x: v, lambda x: (x, None), lambda r, g: (g,))(1.0),
    "custom_vjp fwd": lambda v: grad(with_vjp(identity, lambda x: (v, None), lambda r, g: (g,)))(
        1.0
    ),
    "custom_vjp residual": lambda v: grad(
        with_vjp(identity, lambda x: (x, v), lambda r, g: (r * g,))
    )(1.0),
    "custom_vjp bwd": lambda v: grad(with_vjp(identity, lambda x: (x, None), lambda r, g: (v,)))(
        1.0
    ),
    "an argument of grad": lambda v: grad(lambda x: 1.0)(v),
    "another argument of grad": lambda v: grad(lambda x, y: (x, y), has_aux=True)(1.0, v),
    "an argument of vjp": lambda v: vjp(identity, v),
    "a tangent": lambda v: jvp(identity, (1.0,), (v,)),
    "an argument of vmap": lambda v: vmap(identity, in_axes=None, axis_size=2)(v),
    "an argument of jit": lambda v: jit(identity)(v),
    "an argument of make_graph": lambda v: make_graph(identity)(v),
    "an argument of a graph": lambda v: make_graph(identity)(1.0)(v),
    "a cotangent": lambda v: vjp(identity, 1.0)[1](v),
    "a tangent of linearize": lambda v: linearize(identity, 1.0)[1](v),
    "pure_callback": lambda v: pure_callback(lambda x: 1.0, ArraySpec((), float), v),
    "a result of pure_callback": lambda v: pure_callback(lambda x: v, ArraySpec((), float), 1.0),
    "tree.map": lambda v: ft.tree.map(identity, [v]),
    "ravel_pytree": lambda v: ft.ravel_pytree([v]),
    "addition": lambda v: v + 1,
    "comparison": lambda v: v > 0,
    "a branch": lambda v: bool(np.all(v)),
    "float": lambda v: float(np.sum(v)),
    "np.sin": lambda v: np.sin(v),
    "np.asarray": lambda v: np.asarray(v),
    "np.stack": lambda v: np.stack([v, v]),
    "functrans.numpy.array": lambda v: fnp.array([v, v]),
    "item": lambda v: v.item() if not v.shape else v[0].item(),
    "astype": lambda v: v.astype(np.float32),
    "an assignment": lambda v: operator.setitem(np.zeros(2), 0, np.sum(v)),
    "a format": lambda v: f"{v:.3f}",
    "abs": lambda v: abs(v),
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("route", ROUTES.values(), ids=ROUTES)
def test_an_escaped_value_is_an_error_wherever_it_surfaces(route, place):
    kept = []
    route(lambda x: (kept.append(x), x)[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(EscapedTracerError, match=r"test_escaped_values\.py"):
            place(kept[0])


@pytest.mark.parametrize("outer", ["grad", "vmap", "jit", "jvp"])
@pytest.mark.parametrize("route", ROUTES.values(), ids=ROUTES)
def test_it_does_not_get_from_one_transform_into_another_around_it(route, outer):
    def f(x):
        kept = []
        route(lambda v: (kept.append(v), v)[1])
        return kept[0]

    call = {
        "grad": lambda: grad(f)(1.0),
        "vmap": lambda: vmap(f)(VECTOR),
        "jit": lambda: jit(f)(1.0),
        "jvp": lambda: jvp(f, (1.0,), (1.0,)),
    }[outer]
    with pytest.raises(EscapedTracerError):
        call()


def test_what_is_known_without_the_value_can_still_be_asked():
    kept = []
    grad(lambda x: (kept.append(x), np.sum(x))[1])(VECTOR)
    assert kept[0].shape == (2,) and "grad" in repr(kept[0])


def kept_by_rules(place):
    """A function y = 2 x with custom rules, one of which keeps a value that depends on x."""
    kept = []

    def keep(here, x):
        if here == place:
            kept.append(x * 2.0)
        return x * 2

    if "jvp" in place:
        f = custom_jvp(lambda x: keep("function of custom_jvp", x))
        rule = lambda p, t: (f(p[0]), keep("jvp rule", p[0]) * 0 + 2 * t[0])
        f.defjvp(rule)
        return f, kept
    f = custom_vjp(lambda x: keep("function of custom_vjp", x))
    f.defvjp(lambda x: (f(x), keep("vjp fwd", x)), lambda r, g: (2 * g,))
    return f, kept


@pytest.mark.parametrize("transform", ["grad", "jit grad", "vmap grad", "grad grad", "jacfwd"])
@pytest.mark.parametrize(
    "place", ["function of custom_jvp", "jvp rule", "function of custom_vjp", "vjp fwd"]
)
def test_what_a_rule_keeps_does_not_cut_a_derivative(place, transform):
    if transform == "jacfwd" and "vjp" in place:
        pytest.skip("it has no rule for forward mode")
    f, kept = kept_by_rules(place)

    def leak(x):
        kept.clear()
        return f(x) * kept[0]

    call = leak
    for name in reversed(transform.split()):
        call = getattr(ft, name)(call)
    with pytest.raises(EscapedTracerError):
        call(VECTOR if "vmap" in transform else 1.0)


def test_rules_may_do_what_they_like_with_what_they_are_given():
    """Plain conversions, functions of C, opaque residuals: none of it is an error in a rule."""

    class Opaque:
        def __init__(self, value):
            self.value = value

    def fwd(x):
        assert math.sin(x) == float(np.asarray(x) * 0 + math.sin(x))
        return x * math.cos(x), Opaque(math.cos(x) - x * math.sin(x))

    f = custom_vjp(lambda x: x * math.cos(x))
    f.defvjp(fwd, lambda r, g: (g * r.value,))
    for _ in range(2):
        np.testing.assert_allclose(grad(f)(0.5), math.cos(0.5) - 0.5 * math.sin(0.5))
    h = custom_vjp(lambda x: x * 3)
    h.defvjp(lambda x: (x * 3, lambda g: g * 3 * x), lambda r, g: (r(g),))
    assert grad(h)(2.0) == 6.0
    only_arrays = custom_vjp(lambda x: x)
    only_arrays.defvjp(lambda x: (np.frombuffer(x.tobytes()), None), lambda r, g: (g,))
    np.testing.assert_array_equal(grad(lambda x: np.sum(only_arrays(x)))(VECTOR), np.ones(2))


@pytest.mark.parametrize("convert", [float, int, complex, np.asarray, np.float64, bool])
def test_a_value_that_has_left_a_tool_is_not_converted(convert):
    kept = []
    ft.profile(lambda u: (kept.append(u), u)[1])(np.float64(0.5))
    with pytest.raises(ft.errors.EscapedTracerError):
        convert(kept[0])
