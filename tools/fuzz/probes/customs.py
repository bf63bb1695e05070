"""Probes of custom rules that give the ordinary derivatives: a function with them behaves as without.

They use `nondiff_argnums`, keywords and defaults, values traced by outer transforms, pytrees and methods. As
long as no derivative is needed that the rules do not define, there is no error, and no other answer.
"""

from __future__ import annotations

from tools.fuzz.probes.probe import Probe, RejectedError, probe
from tools.fuzz.programs.choosing import Chooser

# Functions of x and k, differentiated with respect to x only.
_BODIES = ["np.sin(x) * k", "x ** 2 + k * x", "np.exp(-x) + k", "k * k * x", "np.sum(x) * k + x"]
_WITHOUT = {
    "custom_jvp": """
def with_rule(f):
    h = ft.custom_jvp(f, nondiff_argnums=(1,))
    h.defjvp(lambda k, primals, tangents: ft.jvp(lambda x: f(x, k), primals, tangents))
    return h
""",
    "custom_vjp": """
def with_rule(f):
    h = ft.custom_vjp(f, nondiff_argnums=(1,))
    h.defvjp(
        lambda x, k: (f(x, k), x),
        lambda k, x, g: ft.vjp(lambda x: f(x, k), x)[1](g),
    )
    return h
""",
}
# Rules for all arguments.
_WITH = {
    "custom_jvp": """
def with_rule(f):
    h = ft.custom_jvp(f)
    h.defjvp(lambda primals, tangents: ft.jvp(f, primals, tangents))
    return h
""",
    "custom_vjp": """
def with_rule(f):
    h = ft.custom_vjp(f)
    h.defvjp(lambda x, k: (f(x, k), (x, k)), lambda saved, g: ft.vjp(f, *saved)[1](g))
    return h
""",
}
# Calls in which k is a plain number, or traced without being differentiated.
_CALLS = [
    "ft.grad(lambda x: np.sum(h(x, 2.0)))(x)",
    "ft.vmap(lambda k: ft.grad(lambda x: np.sum(h(x, k)))(1.0))(np.array([1.0, 2.0]))",
    "ft.vmap(lambda x, k: h(x, k))(xs, np.array([1.0, 2.0]))",
    "ft.vmap(ft.grad(lambda x, k: np.sum(h(x, k))))(xs, np.array([1.0, 2.0]))",
    'ft.jit(lambda k: ft.grad(lambda x: np.sum(h(x, k)))(1.0), backend="numpy")(2.0)',
    'ft.jit(ft.grad(lambda x, k: np.sum(h(x, k))), backend="numpy")(x, 2.0)',
    "ft.make_graph(lambda k: ft.grad(lambda x: np.sum(h(x, k)))(1.0))(2.0)(2.0)",
    "ft.grad(lambda x: np.sum(h(x, ft.stop_gradient(2.0 * x[0]))))(x)",
    "ft.grad(lambda x: np.sum(h(x, k=2.0)))(x)",
    "ft.grad(lambda x: np.sum(h(k=2.0, x=x)))(x)",
    "ft.scan(lambda c, k: (c, ft.grad(lambda x: np.sum(h(x, k)))(1.0)), 0.0, np.array([1.0, 2.0]))[1]",
    "ft.fori_loop(0, 2, lambda i, c: c + ft.grad(lambda x: np.sum(h(x, i * 1.0)))(1.0), 0.0)",
    "ft.vmap(lambda k: ft.vmap(lambda x: h(x, k))(xs))(np.array([1.0, 2.0]))",
    "ft.cond(True, lambda k: ft.grad(lambda x: np.sum(h(x, k)))(1.0), lambda k: 0.0 * k, 2.0)",
    "ft.grad(lambda x: np.sum(ft.checkpoint(lambda x: h(x, 2.0))(x)))(x)",
    "ft.jacrev(lambda x: h(x, 2.0))(x)",
    "ft.map(lambda k: ft.grad(lambda x: np.sum(h(x, k)))(1.0), np.array([1.0, 2.0]))",
    "ft.vmap(lambda k: ft.jacrev(lambda x: h(x, k))(x))(np.array([1.0, 2.0]))",
    "ft.vmap(lambda k: ft.vjp(lambda x: h(x, k), x)[1](x)[0])(np.array([1.0, 2.0]))",
    "ft.vmap(lambda k: ft.value_and_grad(lambda x: np.sum(h(x, k)))(x)[1])(np.array([1.0, 2.0]))",
    'ft.jit(ft.vmap(lambda k: ft.grad(lambda x: np.sum(h(x, k)))(1.0)), backend="numpy")(np.ones(2))',
]
_FORWARD = [
    "ft.jvp(lambda x: h(x, 2.0), (x,), (x,))",
    "ft.jacfwd(lambda x: h(x, 2.0))(x)",
    "ft.hessian(lambda x: np.sum(h(x, 2.0)))(x)",
    "ft.vmap(lambda k: ft.jvp(lambda x: h(x, k), (x,), (x,))[1])(np.array([1.0, 2.0]))",
    "ft.linearize(lambda x: h(x, 2.0), x)[1](x)",
    "ft.vmap(lambda k: ft.hvp(lambda x: np.sum(h(x, k)), (x,), (x,)))(np.array([1.0, 2.0]))",
]
# Derivatives with respect to k, which only rules for all arguments define.
_BY_BOTH = [
    "ft.grad(lambda k: np.sum(h(x, k)))(2.0)",
    "ft.grad(lambda k: ft.grad(lambda x: np.sum(h(x, k)))(1.0))(2.0)",
    "ft.grad(lambda x, k: np.sum(h(x, k)), argnums=(0, 1))(x, 2.0)",
    "ft.grad(lambda k: np.sum(ft.vmap(lambda x: h(x, k))(xs)))(2.0)",
]


def write(chooser: Chooser) -> Probe:
    body = chooser.pick(_BODIES)
    rule = chooser.pick(["custom_jvp", "custom_vjp"])
    table = chooser.pick([_WITHOUT, _WITH])
    calls = _CALLS + (_FORWARD if rule == "custom_jvp" else [])
    call = chooser.pick(calls + (_BY_BOTH if table is _WITH else []))
    if "x[0]" in call and table is _WITH:
        raise RejectedError
    text = f"""
f = lambda x, k: {body}
x, xs = np.array([0.3, 0.8]), np.array([[0.3, 0.8], [0.5, 0.1]])
call = lambda h: {call}
laws.same(call(with_rule(f)), call(f), 1e-10, "rules that say nothing new")
"""
    return probe(text, rule, call, definitions={"with_rule": table[rule]})
