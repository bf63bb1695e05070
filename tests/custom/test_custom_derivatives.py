"""custom_jvp, custom_vjp, define_primitive, pure_callback and tap."""

import math

import numpy as np
import pytest

import functrans as ft
from tests.support.everywhere import EXACT, VECTOR, check_everywhere, lanes_like
from tests.support.oracles import assert_trees_close, loop_vmap


def raises(kind, *parts):
    return pytest.raises(kind, match="(?s)" + ".*".join(parts))


# Rules that are right, so that everything can be compared with the function without them.


def softplus_plain(x, scale=1.0):
    return np.log1p(np.exp(x * scale)) / scale


@ft.custom_jvp
def softplus(x, scale=1.0):
    return softplus_plain(x, scale)


@softplus.defjvp
def softplus_jvp(primals, tangents):
    x, scale = primals
    out = softplus(x, scale)
    slope = 1 / (1 + np.exp(-x * scale))
    return out, slope * tangents[0] + (slope * x - out) / scale * tangents[1]


@ft.custom_vjp
def product(tree):
    return {"p": tree["a"] * tree["b"], "s": np.sum(tree["a"])}


product.defvjp(
    lambda tree: (product(tree), (tree["a"], tree["b"])),
    lambda saved, g: ({"a": g["p"] * saved[1] + g["s"], "b": g["p"] * saved[0]},),
)


def product_list(x):
    out = product({"a": x, "b": np.cos(x)})
    return [out["p"], out["s"]]


def test_a_right_custom_jvp_is_right_everywhere():
    check_everywhere(
        lambda x: [softplus(x), softplus(x, scale=x[0] + 2.0), softplus(x[1], 3.0)],
        VECTOR,
        reference=lambda x: [
            softplus_plain(x),
            softplus_plain(x, x[0] + 2.0),
            softplus_plain(x[1], 3.0),
        ],
    )


def test_a_right_custom_vjp_is_right_in_reverse_mode():
    plain = lambda x: [x * np.cos(x), np.sum(x)]
    loss = lambda function: (
        lambda x: sum(np.sum(out**2 * (k + 1)) for k, out in enumerate(function(x)))
    )
    expected, ours = loss(plain), loss(product_list)
    gradient = ft.grad(expected)(VECTOR)
    batch = lanes_like(VECTOR)
    gradients = loop_vmap(ft.grad(expected))(batch)
    assert_trees_close(ft.grad(ours)(VECTOR), gradient, **EXACT)
    assert_trees_close(ft.vmap(ft.grad(ours))(batch), gradients, **EXACT)
    assert_trees_close(ft.grad(lambda b: np.sum(ft.vmap(ours)(b)))(batch), gradients, **EXACT)
    assert_trees_close(ft.grad(ft.make_graph(ours)(VECTOR))(VECTOR), gradient, **EXACT)
    assert_trees_close(ft.make_graph(ft.grad(ours))(VECTOR)(VECTOR), gradient, **EXACT)
    assert_trees_close(ft.make_graph(ft.vmap(ft.grad(ours)))(batch)(batch), gradients, **EXACT)
    assert_trees_close(ft.vmap(ft.grad(ft.make_graph(ours)(VECTOR)))(batch), gradients, **EXACT)
    hessian = ft.hessian(expected)(VECTOR)
    assert_trees_close(ft.jacrev(ft.grad(ours))(VECTOR), hessian, **EXACT)
    assert_trees_close(ft.make_graph(ft.jacrev(ft.grad(ours)))(VECTOR)(VECTOR), hessian, **EXACT)


# Rules that are wrong on purpose, so that the result shows which one was used.


def marked_jvp(factor):
    f = ft.custom_jvp(lambda x: x**2)
    f.defjvp(lambda primals, tangents: (f(primals[0]), factor * tangents[0]))
    return f


def marked_vjp(factor):
    f = ft.custom_vjp(lambda x: x**2)
    f.defvjp(lambda x: (f(x), None), lambda _, g: (factor * g,))
    return f


@pytest.mark.parametrize("make", [marked_jvp, marked_vjp])
def test_the_rule_is_what_counts(make):
    f = make(7.0)
    x = np.array([1.0, 2.0, 3.0])
    assert float(f(3.0)) == 9.0
    assert float(ft.grad(f)(3.0)) == 7.0
    np.testing.assert_array_equal(ft.vmap(ft.grad(f))(x), [7.0, 7.0, 7.0])
    np.testing.assert_array_equal(ft.grad(lambda x: np.sum(ft.vmap(f)(x)))(x), [7.0, 7.0, 7.0])
    graph = ft.make_graph(f)(3.0)
    graph.check()
    assert [e.primitive.name for e in graph.equations] == ["custom"]
    assert float(graph(4.0)) == 16.0
    assert float(ft.grad(graph)(3.0)) == 7.0
    np.testing.assert_array_equal(ft.vmap(ft.grad(graph))(x), [7.0, 7.0, 7.0])
    assert float(ft.make_graph(ft.grad(f))(3.0)(5.0)) == 7.0
    graph = ft.make_graph(ft.vmap(f))(x)
    np.testing.assert_array_equal(ft.grad(lambda x: np.sum(graph(x)))(x), [7.0, 7.0, 7.0])
    # In loops, branches and checkpoints.
    assert float(ft.grad(lambda x: ft.cond(x > 0, f, np.sin, x))(3.0)) == 7.0
    looped = lambda x: ft.scan(lambda c, _: (f(c), None), x, None, length=2)[0]
    assert float(ft.grad(looped)(3.0)) == 49.0
    assert float(ft.make_graph(ft.grad(looped))(3.0)(2.0)) == 49.0
    assert float(ft.grad(ft.checkpoint(lambda x: f(x)))(3.0)) == 7.0


def test_python_branches_in_rules_and_functions():
    @ft.custom_jvp
    def f(x):
        return x if x > 0 else -2 * x

    @f.defjvp
    def f_jvp(primals, tangents):
        return f(*primals), (10 * tangents[0] if primals[0] > 0 else 20 * tangents[0])

    x = np.array([1.0, -1.0, 2.0])
    np.testing.assert_array_equal(ft.vmap(f)(x), [1.0, 2.0, 2.0])
    np.testing.assert_array_equal(ft.vmap(ft.grad(f))(x), [10.0, 20.0, 10.0])
    np.testing.assert_array_equal(ft.grad(lambda x: np.sum(ft.vmap(f)(x)))(x), [10.0, 20.0, 10.0])


def test_nondiff_arguments():
    @ft.custom_jvp(nondiff_argnums=(0, 2))
    def apply(f, x, power):
        return f(x) ** power

    @apply.defjvp
    def apply_jvp(f, power, primals, tangents):
        assert power == 3
        (x,), (t,) = primals, tangents
        return apply(f, x, power), 100 * t

    assert float(ft.grad(lambda x: apply(np.sin, x, 3))(1.0)) == 100.0
    assert float(ft.grad(lambda x: apply(np.sin, power=3, x=x))(1.0)) == 100.0

    g = ft.custom_vjp(lambda name, x: x, nondiff_argnums=0)
    g.defvjp(lambda name, x: (x, x), lambda name, saved, g: (len(name) * g * saved,))
    assert float(ft.grad(lambda x: g("four", x))(2.0)) == 8.0
    np.testing.assert_array_equal(ft.vmap(ft.grad(lambda x: g("ab", x)))(np.ones(2)), [2.0, 2.0])


# x² k, with a rule that says 10 k x; k is not differentiated. The rule's factor shows that it was used.


def by_jvp():
    @ft.custom_jvp(nondiff_argnums=(1,))
    def function(x, k):
        return x * x * k["k"][0]

    @function.defjvp
    def rule(k, primals, tangents):
        return function(primals[0], k), 10.0 * k["k"][0] * primals[0] * tangents[0]

    return lambda x, k: function(x, {"k": (k, "a name")})


def by_vjp():
    function = ft.custom_vjp(lambda k, x, name: x * x * k, nondiff_argnums=(0, 2))
    function.defvjp(
        lambda k, x, name: (function(k, x, name), (x,)),
        lambda k, name, saved, g: (10.0 * k * saved[0] * g,),
    )
    return lambda x, k: function(k, x, "a name")


KS = np.arange(1.0, 4.0)


def total_of_scan(h, x, ks=KS):
    return ft.scan(lambda total, k: (total + h(x, k), None), 0.0, ks)[0]


def chosen(h, x, k):
    return ft.cond(k > 1.5, lambda x: h(x, k), lambda x: x, x)


# Where k is traced, by the transform that is named last, and what the derivative is at x = 1.5.
TRACED_ARGUMENTS = {
    "vmap": (lambda h: ft.vmap(lambda k: h(1.5, k))(KS), 2.25 * KS),
    "grad in vmap": (lambda h: ft.vmap(lambda k: ft.grad(lambda x: h(x, k))(1.5))(KS), 15 * KS),
    "vjp in vmap": (
        lambda h: ft.vmap(lambda k: ft.vjp(lambda x: h(x, k), 1.5)[1](1.0)[0])(KS),
        15 * KS,
    ),
    "grad of grad in vmap": (
        lambda h: ft.vmap(lambda k: ft.grad(ft.grad(lambda x: h(x, k)))(1.5))(KS),
        10 * KS,
    ),
    "vmap in grad": (
        lambda h: ft.grad(lambda x: np.sum(ft.vmap(lambda k: h(x, k))(KS)))(1.5),
        90.0,
    ),
    "vmap of both in grad": (
        lambda h: ft.grad(lambda x: np.sum(ft.vmap(lambda k, y: h(x * y, k))(KS, KS)))(1.5),
        540.0,
    ),
    "grad in vmap of both": (
        lambda h: ft.vmap(lambda x, k: ft.grad(lambda y: h(y, k))(x))(KS, KS),
        10 * KS * KS,
    ),
    "vmap in vmap": (
        lambda h: ft.vmap(lambda k: ft.vmap(lambda x: ft.grad(h)(x, k))(KS))(KS),
        10 * np.outer(KS, KS),
    ),
    "grad of vmap in vmap": (
        lambda h: ft.vmap(ft.grad(lambda x: np.sum(ft.vmap(lambda k: h(x, k))(KS))))(KS),
        60 * KS,
    ),
    "jit": (lambda h: ft.jit(lambda k: h(1.5, k))(2.0), 4.5),
    "grad in jit": (lambda h: ft.jit(lambda k: ft.grad(lambda x: h(x, k))(1.5))(2.0), 30.0),
    "jit in grad": (lambda h: ft.grad(lambda x: ft.jit(lambda k: h(x, k))(2.0))(1.5), 30.0),
    "jit of both in grad": (lambda h: ft.grad(lambda x: ft.jit(h)(x, 2.0))(1.5), 30.0),
    "vmap in jit": (
        lambda h: ft.jit(lambda ks: ft.vmap(lambda k: ft.grad(h)(1.5, k))(ks))(KS),
        15 * KS,
    ),
    "jit in vmap": (lambda h: ft.vmap(lambda k: ft.jit(ft.grad(h))(1.5, k))(KS), 15 * KS),
    "jit of what closes over it": (
        lambda h: ft.vmap(lambda k: ft.grad(lambda x: ft.jit(lambda y: h(y, k))(x))(1.5))(KS),
        15 * KS,
    ),
    "scan": (lambda h: ft.grad(lambda x: total_of_scan(h, x))(1.5), 90.0),
    "scan in jit": (lambda h: ft.jit(ft.grad(lambda x: total_of_scan(h, x)))(1.5), 90.0),
    "scan in vmap in jit": (
        lambda h: ft.jit(ft.vmap(ft.grad(lambda x: total_of_scan(h, x))))(KS),
        60 * KS,
    ),
    "scan and vmap": (
        lambda h: ft.vmap(lambda q: ft.grad(lambda x: total_of_scan(h, x, KS * q))(1.5))(KS),
        90 * KS,
    ),
    "checkpoint": (
        lambda h: ft.vmap(lambda k: ft.grad(ft.checkpoint(lambda x: h(x, k)))(1.5))(KS),
        15 * KS,
    ),
    "checkpoint of both": (
        lambda h: ft.jit(ft.grad(lambda x: ft.checkpoint(h)(x, 2.0)))(1.5),
        30.0,
    ),
    "cond": (
        lambda h: ft.vmap(lambda k: ft.grad(lambda x: chosen(h, x, k))(1.5))(KS),
        [1.0, 30.0, 45.0],
    ),
    "cond in jit": (
        lambda h: ft.jit(ft.vmap(lambda k: ft.grad(lambda x: chosen(h, x, k))(1.5)))(KS),
        [1.0, 30.0, 45.0],
    ),
    "stop_gradient": (lambda h: ft.grad(lambda x: h(x, ft.stop_gradient(x)))(1.5), 22.5),
}
FORWARD = {
    "jvp in vmap": (
        lambda h: ft.vmap(lambda k: ft.jvp(lambda x: h(x, k), (1.5,), (1.0,))[1])(KS),
        15 * KS,
    ),
    "vmap in jvp": (
        lambda h: ft.jvp(lambda x: np.sum(ft.vmap(lambda k: h(x, k))(KS)), (1.5,), (1.0,))[1],
        90.0,
    ),
    "hessian in vmap": (
        lambda h: ft.vmap(lambda k: ft.hessian(lambda x: h(x, k))(1.5))(KS),
        10 * KS,
    ),
    "linearize in vmap": (
        lambda h: ft.vmap(lambda k: ft.linearize(lambda x: h(x, k), 1.5)[1](1.0))(KS),
        15 * KS,
    ),
    "jit in jvp": (lambda h: ft.jvp(lambda x: ft.jit(h)(x, 2.0), (1.5,), (1.0,))[1], 30.0),
}


@pytest.mark.parametrize("rule", [by_jvp, by_vjp])
@pytest.mark.parametrize("name", TRACED_ARGUMENTS)
def test_an_argument_that_is_not_differentiated_may_be_traced(name, rule):
    function, expected = TRACED_ARGUMENTS[name]
    np.testing.assert_allclose(function(rule()), expected)


@pytest.mark.parametrize("name", FORWARD)
def test_an_argument_that_is_not_differentiated_may_be_traced_in_forward_mode(name):
    function, expected = FORWARD[name]
    np.testing.assert_allclose(function(by_jvp()), expected)


@pytest.mark.parametrize("rule", [by_jvp, by_vjp])
def test_an_argument_that_is_said_not_to_be_differentiated_is_not(rule):
    h = rule()
    for function in (
        lambda: ft.grad(lambda x: h(x, x))(1.5),
        lambda: ft.grad(lambda k: ft.grad(lambda x: h(x, k))(1.5))(2.0),
        lambda: ft.grad(lambda x: ft.grad(lambda k: h(x, k))(2.0))(1.5),
        lambda: ft.grad(lambda k: np.sum(ft.vmap(lambda x: h(x, k))(KS)))(2.0),
        lambda: ft.grad(ft.jit(lambda k: h(1.5, k)))(2.0),
        lambda: ft.grad(lambda q: np.sum(ft.vmap(lambda k: ft.grad(h)(1.5, k * q))(KS)))(2.0),
    ):
        with raises(ft.errors.ClosureError, "not among the arguments"):
            function()


def test_arguments_without_a_traced_value_are_handed_on_as_they_are():
    class Config:
        pass

    config, seen = Config(), []
    function = ft.custom_vjp(lambda config, x: x * 2.0, nondiff_argnums=0)
    function.defvjp(
        lambda config, x: (seen.append(config) or x * 2.0, None),
        lambda config, _, g: (seen.append(config) or 2.0 * g,),
    )
    ft.vmap(ft.grad(lambda x: function(config, x)))(np.ones(2))
    assert len(seen) == 2 and all(each is config for each in seen)


def test_what_rules_close_over_may_be_traced_by_a_vmap_around():
    def closing(w):
        f = ft.custom_jvp(lambda x: w * x * x)
        f.defjvp(lambda primals, tangents: (f(*primals), 10.0 * w * primals[0] * tangents[0]))
        return f

    np.testing.assert_allclose(ft.vmap(lambda w: ft.grad(closing(w))(1.5))(KS), 15 * KS)
    np.testing.assert_allclose(
        ft.vmap(lambda w: ft.jvp(closing(w), (1.5,), (1.0,))[1])(KS), 15 * KS
    )
    with raises(ft.errors.ClosureError, "not among the arguments"):  # a graph is finished by then
        ft.grad(lambda x: ft.jit(lambda w, x: closing(w)(x))(2.0, x))(1.5)
    with raises(ft.errors.ClosureError, "a custom rule closes over a traced value"):
        ft.vmap(lambda w: ft.grad(lambda x: ft.cond(w > 1.5, closing(w), lambda x: x, x))(1.5))(KS)


def test_a_traced_parameter_of_a_primitive_is_refused():
    scaled = ft.define_primitive(
        "scaled",
        lambda x, *, k: x * np.asarray(k),
        jvp=lambda out, primals, tangents, *, k: tangents[0] * k,
        shape=lambda x, *, k: x,
    )
    for function in (
        lambda: ft.grad(lambda x: ft.grad(lambda k: scaled(x, k=k))(2.0))(3.0),
        lambda: ft.vmap(lambda x, k: scaled(x, k=k))(KS, KS),
        lambda: ft.jit(lambda x, k: scaled(x, k=k))(1.0, 2.0),
        lambda: ft.vmap(lambda k: scaled(1.0, k=[k]))(KS),
    ):
        with raises(ft.errors.InputTypeError, "the parameter k of the primitive scaled is traced"):
            function()


def test_methods():
    class Model:
        def __init__(self, scale):
            self.scale = scale

        @ft.custom_jvp
        def out(self, x, power=2):
            """The output."""
            return self.scale * x**power

        @out.defjvp
        def out_jvp(primals, tangents):
            self, x, power = primals
            return self.out(x, power), 10 * tangents[1] + power

        @ft.custom_vjp
        def halved(self, x):
            return self.scale * x

        halved.defvjp(
            lambda self, x: (self.halved(x), self), lambda self, g: (None, self.scale * g / 2)
        )

    model = Model(3.0)
    assert float(model.out(2.0)) == 12.0
    assert Model.out.__doc__.endswith("The output.")
    assert float(ft.grad(model.out)(2.0)) == 10.0
    assert float(ft.jvp(lambda x: model.out(x, power=3), (2.0,), (1.0,))[1]) == 13.0
    assert float(ft.grad(model.halved)(2.0)) == 1.5
    assert float(ft.make_graph(ft.grad(model.halved))(2.0)(5.0)) == 1.5


def test_none_stands_for_a_zero_cotangent():
    f = ft.custom_vjp(lambda tree, n: tree["a"] * tree["b"] * n)
    f.defvjp(lambda tree, n: (f(tree, n), tree["b"]), lambda b, g: ({"a": g * b, "b": None}, None))
    gradient = ft.grad(lambda tree: f(tree, 3))({"a": 2.0, "b": 5.0})
    assert {key: float(value) for key, value in gradient.items()} == {"a": 5.0, "b": 0.0}


def test_unmapped_arguments_collect_cotangents_of_all_lanes():
    f = ft.custom_vjp(lambda w, x: w * x)
    f.defvjp(lambda w, x: (w * x, (w, x)), lambda s, g: (10 * g * s[1], g * s[0]))
    x = np.array([1.0, 2.0, 3.0])
    total = lambda w: np.sum(ft.vmap(f, (None, 0))(w, x))
    assert float(ft.grad(total)(2.0)) == 60.0
    np.testing.assert_array_equal(ft.vmap(ft.grad(f), (None, 0))(2.0, x), 10 * x)


def test_errors_of_custom_rules():
    no_rule = ft.custom_jvp(lambda x: x)
    with raises(ft.errors.RuleError, "without a rule", "defjvp"):
        no_rule(1.0)
    f = marked_vjp(2.0)
    for transform in (
        lambda: ft.jvp(f, (1.0,), (1.0,)),
        lambda: ft.jacfwd(f)(1.0),
        lambda: ft.hessian(f)(1.0),
    ):
        with raises(ft.errors.MissingRuleError, "forward mode", "custom_vjp", "defjvp"):
            transform()
    f.defjvp(lambda primals, tangents: (f(primals[0]), 5 * tangents[0]))
    assert float(ft.jvp(f, (1.0,), (1.0,))[1]) == 5.0
    assert float(ft.grad(f)(1.0)) == 2.0

    def with_jvp(rule):
        f = ft.custom_jvp(lambda x: x * np.ones(3))
        f.defjvp(rule)
        return lambda: ft.jvp(f, (1.0,), (1.0,))

    with raises(ft.errors.RuleError, r"pair \(out, tangent\)"):
        with_jvp(lambda p, t: t[0])()
    with raises(ft.errors.RuleError, r"float64\[3\]", r"float64\[2\]"):
        with_jvp(lambda p, t: (np.ones(3), np.ones(2)))()
    with raises(TypeError, r"float64\[3\]", r"\(float64\[3\], float64\[3\]\)"):
        with_jvp(lambda p, t: (np.ones(3), (np.ones(3), np.ones(3))))()

    def with_bwd(bwd, fwd=lambda x, y: (x[0] * y, None)):
        f = ft.custom_vjp(lambda x, y: x[0] * y)
        f.defvjp(fwd, bwd)
        return lambda: ft.grad(f)(np.ones(3), 2.0)

    with raises(ft.errors.RuleError, "each of its 2 arguments", "returned a tuple of 1"):
        with_bwd(lambda _, g: (g,))()
    with raises(ft.errors.RuleError, "argument 0", r"float64\[3\]", r"float64\[\]"):
        with_bwd(lambda _, g: (g, g))()
    with raises(ft.errors.RuleError, r"pair \(out, residuals\)"):
        with_bwd(None.__eq__, lambda x, y: x[0])()
    with raises(ft.errors.OptionError, "nondiff_argnums"):
        ft.custom_jvp(np.sin, nondiff_argnums=("x",))
    keyword = ft.custom_jvp(lambda x, *, scale: x * scale)
    keyword.defjvp(lambda p, t: (p[0], t[0]))
    with raises(ft.errors.InputTypeError, "keyword", "scale"):
        keyword(1.0, scale=2.0)


def test_what_a_custom_function_closes_over_is_an_error_where_it_would_be_wrong():
    def closing(w, x):
        f = ft.custom_jvp(lambda x: w * x)
        f.defjvp(lambda primals, tangents: (w * primals[0], 2 * w * tangents[0]))
        return f(x)

    w, x = np.array([2.0, 3.0]), np.array([5.0, 7.0])
    with raises(ft.errors.ClosureError, "not among the arguments"):
        ft.grad(closing, (0, 1))(2.0, 3.0)
    with raises(ft.errors.ClosureError, "not among the arguments"):
        ft.vmap(closing)(w, x)
    assert float(ft.grad(closing, 1)(2.0, 3.0)) == 4.0
    assert float(ft.grad(closing)(2.0, 3.0)) == 3.0  # an ordinary derivative: x is not traced
    assert float(ft.make_graph(closing)(2.0, 3.0)(4.0, 5.0)) == 20.0
    with raises(ft.errors.ClosureError, "not among the arguments"):
        ft.make_graph(ft.grad(closing, (0, 1)))(2.0, 3.0)


# define_primitive: `cube` by every selection of rules.

CUBE = {
    "impl": lambda x, y, *, k: np.asarray(x) ** 3 * y * k,
    "jvp": lambda out, p, t, *, k: k * (3 * p[0] ** 2 * p[1] * t[0] + p[0] ** 3 * t[1]),
    "vjp": lambda out, p, g, *, k: (3 * k * p[0] ** 2 * p[1] * g, k * p[0] ** 3 * g),
    "batch": lambda args, batched, *, k: ft.vmap(
        lambda x, y: x**3 * y * k, tuple(0 if b else None for b in batched)
    )(*args),
    "shape": lambda x, y, *, k: x,
}


@pytest.mark.parametrize("rules", ["jvp", "vjp", "jvp vjp", "jvp batch", "vjp batch"])
def test_a_primitive_of_ones_own_is_right_everywhere(rules):
    given = {name: CUBE[name] for name in ["impl", "shape", *rules.split()]}
    cube = ft.define_primitive("cube", **given)
    check_everywhere(
        lambda x: [cube(x, np.sin(x), k=2), cube(x, VECTOR, k=1)],
        VECTOR,
        reference=lambda x: [2 * x**3 * np.sin(x), x**3 * VECTOR],
    )
    graph = ft.make_graph(lambda x: cube(x, x, k=2))(VECTOR)
    assert [e.primitive.name for e in graph.equations] == ["cube"]


def test_a_primitive_with_several_results():
    polar = ft.define_primitive(
        "polar",
        lambda x, y: (np.hypot(x, y), np.arctan2(y, x)),
        jvp=lambda out, p, t: (
            (p[0] * t[0] + p[1] * t[1]) / out[0],
            (p[0] * t[1] - p[1] * t[0]) / out[0] ** 2,
        ),
        shape=lambda x, y: (x, x),
        outputs=2,
    )
    check_everywhere(
        lambda x: list(polar(x, x**2 + 1.0)),
        VECTOR,
        reference=lambda x: [np.hypot(x, x**2 + 1), np.arctan2(x**2 + 1, x)],
    )


def test_a_function_of_c_as_a_primitive():
    import ctypes

    libm = ctypes.CDLL(None)
    libm.j0.restype = libm.j1.restype = ctypes.c_double
    libm.j0.argtypes = libm.j1.argtypes = [ctypes.c_double]
    j1 = ft.define_primitive(
        "j1",
        libm.j1,
        jvp=lambda out, x, t: (j0(x[0]) - out / x[0]) * t[0],
        shape=lambda x: ft.ArraySpec((), float),
    )
    j0 = ft.define_primitive("j0", libm.j0, vjp=lambda out, x, g: -j1(x[0]) * g)
    special = pytest.importorskip("scipy.special")
    points = np.array([0.5, 1.0, 2.0])
    np.testing.assert_allclose(ft.vmap(ft.grad(j0))(points), -special.j1(points))
    np.testing.assert_allclose(
        ft.vmap(ft.grad(ft.grad(j0)))(points), -special.jvp(1, points), rtol=1e-12
    )
    np.testing.assert_allclose(ft.hessian(j0)(1.0), -special.jvp(1, 1.0), rtol=1e-12)


def test_errors_of_primitives():
    bare = ft.define_primitive("bare", np.sin)
    assert float(bare(0.0)) == 0.0
    with raises(ft.errors.MissingRuleError, "bare", "jvp= or vjp="):
        ft.grad(bare)(1.0)
    with raises(ft.errors.MissingRuleError, "bare", "jvp= or vjp="):
        ft.jvp(bare, (1.0,), (1.0,))
    with raises(ft.errors.MissingRuleError, "bare", "shape="):
        ft.make_graph(bare)(1.0)
    rounded = ft.define_primitive("rounded", lambda x: np.asarray(x).astype(int))
    assert float(ft.grad(lambda x: x * rounded(x))(2.5)) == 2.0  # an integer has no derivative
    wrong = ft.define_primitive("wrong", np.sin, jvp=lambda out, p, t: np.ones(2))
    with raises(ft.errors.RuleError, "jvp", r"float64\[\]", r"float64\[2\]"):
        ft.jvp(wrong, (1.0,), (1.0,))
    wrong = ft.define_primitive("wrong", np.add, vjp=lambda out, p, g: (g,))
    with raises(ft.errors.RuleError, "each of its 2 arrays", "returned a tuple of 1"):
        ft.grad(wrong)(1.0, 2.0)
    wrong = ft.define_primitive("wrong", np.sin, batch=lambda args, batched: np.sum(args[0]))
    with raises(ft.errors.RuleError, "batch", "3 lanes"):
        ft.vmap(wrong)(np.ones(3))
    wrong = ft.define_primitive("wrong", np.sin, shape=lambda x: (3,))
    with raises(ft.errors.RuleError, "ArraySpec"):
        ft.make_graph(wrong)(1.0)
    with raises(ft.errors.RuleError, "2 values"):
        ft.define_primitive("wrong", np.sin, outputs=2)(1.0)
    with raises(ft.errors.OptionError, "name"):
        ft.define_primitive("", np.sin)
    with raises(ft.errors.InputTypeError, "function"):
        ft.define_primitive("f", 3)


# pure_callback.


def test_callbacks_get_plain_arrays():
    seen = []

    def f(tree):
        seen.append(type(tree["x"]))
        return math.sin(tree["x"].sum()), np.asarray(tree["x"]) * 2

    specs = (ft.ArraySpec((), float), ft.ArraySpec((5,), float))
    call = lambda x: ft.pure_callback(f, specs, {"x": x})
    expected = (np.sin(VECTOR.sum()), 2 * VECTOR)
    assert_trees_close(call(VECTOR), expected, **EXACT)
    graph = ft.make_graph(call)(VECTOR)
    graph.check()
    assert seen == [np.ndarray]  # staging does not call it
    assert_trees_close(graph(VECTOR), expected, **EXACT)
    batch = lanes_like(VECTOR)
    assert_trees_close(ft.vmap(call)(batch), loop_vmap(call)(batch), **EXACT)
    assert_trees_close(ft.make_graph(ft.vmap(call))(batch)(batch), loop_vmap(call)(batch), **EXACT)
    stopped = lambda x: np.sum(x) * call(ft.stop_gradient(x))[0]
    np.testing.assert_allclose(ft.grad(stopped)(VECTOR), np.full(5, np.sin(VECTOR.sum())))
    assert set(seen) == {np.ndarray}


def test_errors_of_callbacks():
    spec = ft.ArraySpec((2,), float)
    with raises(ft.errors.MissingRuleError, "no derivative", "custom_jvp"):
        ft.grad(lambda x: ft.pure_callback(lambda x: np.ones(2) * x, spec, x)[0])(1.0)
    with raises(ft.errors.MissingRuleError, "no derivative"):
        ft.jvp(lambda x: ft.pure_callback(lambda x: np.ones(2) * x, spec, x), (1.0,), (1.0,))
    with raises(ft.errors.RuleError, r"float64\[2\]", r"float64\[3\]"):
        ft.pure_callback(lambda x: np.ones(3), spec, 1.0)
    with raises(ft.errors.RuleError, r"float64\[2\]", r"\(float64\[2\], float64\[2\]\)"):
        ft.pure_callback(lambda x: (np.ones(2), np.ones(2)), spec, 1.0)
    with raises(ft.errors.RuleError, r"float64\[2\]", r"int64\[2\]"):
        ft.pure_callback(lambda x: np.ones(2, int), spec, 1.0)
    with raises(ft.errors.InputTypeError, "ArraySpec"):
        ft.pure_callback(np.sin, float, 1.0)


# tap.


def test_tap_sees_values_forward_and_cotangents_backward():
    seen = []
    f = lambda x: np.sum(ft.tap(x**2, seen.append) * np.array([1.0, 10.0]))
    x = np.array([2.0, 3.0])
    np.testing.assert_array_equal(ft.grad(f)(x), [4.0, 60.0])
    assert_trees_close(seen, [np.array([4.0, 9.0]), np.array([1.0, 10.0])], **EXACT)
    seen.clear()
    assert f(x) == 94.0
    assert_trees_close(seen, [np.array([4.0, 9.0])], **EXACT)
    seen.clear()
    assert_trees_close(ft.jvp(f, (x,), (x,)), (94.0, 188.0), **EXACT)
    assert_trees_close(seen, [np.array([4.0, 9.0])], **EXACT)
    seen.clear()
    graph = ft.make_graph(ft.grad(f))(x)
    assert seen == []
    np.testing.assert_array_equal(graph(x), [4.0, 60.0])
    assert_trees_close(seen, [np.array([4.0, 9.0]), np.array([1.0, 10.0])], **EXACT)


def test_tap_of_trees_and_lanes():
    forward, backward = [], []
    f = lambda x: (lambda t: t["a"] * t["b"])(
        ft.tap({"a": x, "b": 2.0}, forward.append, backward=backward.append)
    )
    np.testing.assert_array_equal(ft.vmap(f)(np.array([1.0, 5.0])), [2.0, 10.0])
    forward.clear()
    np.testing.assert_array_equal(ft.vmap(ft.grad(f))(np.array([1.0, 5.0])), [2.0, 2.0])
    assert [(float(t["a"]), float(t["b"])) for t in forward] == [(1.0, 2.0), (5.0, 2.0)]
    assert [float(t["a"]) for t in backward] == [2.0, 2.0]
    assert float(ft.grad(ft.grad(lambda x: ft.tap(x**3, lambda v: None)))(2.0)) == 12.0
    with raises(ft.errors.InputTypeError, "function"):
        ft.tap(1.0, 2.0)


def test_every_leaf_of_a_tapped_tree_has_its_derivative():
    x = np.array([0.7, -0.4, 1.3])
    seen = []

    def f(x):
        t = ft.tap({"a": np.sin(x), "b": x**2}, lambda t: None, backward=seen.append)
        return np.sum(t["a"] * t["b"][::-1])

    plain = lambda x: np.sum(np.sin(x) * x[::-1] ** 2)
    expected = np.cos(x) * x[::-1] ** 2 + 2 * x * np.sin(x[::-1])
    np.testing.assert_allclose(ft.grad(f)(x), expected)
    assert_trees_close(seen, [{"a": x[::-1] ** 2, "b": np.sin(x[::-1])}], **EXACT)
    np.testing.assert_allclose(ft.grad(f)(x), ft.grad(plain)(x))
    np.testing.assert_allclose(ft.jvp(f, (x,), (x + 1,))[1], expected @ (x + 1))


@pytest.mark.peers
def test_custom_rules_against_jax():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)

    def program(m, np):
        @m.custom_jvp
        def f(x, y):
            return np.sin(x) * y

        @f.defjvp
        def f_jvp(primals, tangents):
            (x, y), (s, t) = primals, tangents
            return f(x, y), np.cos(3 * x) * y * s + x**2 * t

        @m.custom_vjp
        def g(x):
            return {"a": x**2, "b": x}

        def g_bwd(x, ct):
            return (x**3 * ct["a"] + np.sin(x) * ct["b"],)

        g.defvjp(lambda x: (g(x), x), g_bwd)
        return lambda x: f(x, g(x)["a"]) + g(f(x, x))["b"]

    ours, theirs = program(ft, np), program(jax, jax.numpy)
    for transform in ("grad", "grad grad", "vmap grad", "vmap grad grad"):
        one, other, x = ours, theirs, VECTOR if "vmap" in transform else 0.7
        for name in reversed(transform.split()):
            one, other = getattr(ft, name)(one), getattr(jax, name)(other)
        np.testing.assert_allclose(one(x), np.asarray(other(x)), rtol=1e-12)
        np.testing.assert_allclose(ft.make_graph(one)(x)(x), np.asarray(other(x)), rtol=1e-12)


def test_arguments_by_keyword_only_may_keep_their_defaults():
    @ft.custom_jvp
    def f(x, *, scale=2.0):
        return scale * np.sin(x)

    f.defjvp(lambda primals, tangents: (f(*primals), 5.0 * tangents[0]))
    assert f(0.5) == 2 * np.sin(0.5)
    assert ft.grad(f)(0.5) == 5.0
    with pytest.raises(ft.errors.InputTypeError, match="keyword-only"):
        f(0.5, scale=3.0)
    sine = ft.custom_jvp(np.sin)
    sine.defjvp(lambda primals, tangents: (np.sin(primals[0]), 3.0 * tangents[0]))
    assert ft.grad(sine)(0.5) == 3.0
