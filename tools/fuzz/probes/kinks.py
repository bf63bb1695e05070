"""Probes of kinks: each function has one rule at a kink, whatever the kind of the other operand.

A Python number, a NumPy scalar, an array with or without axes, and a traced value give the same derivative,
in both modes, eager and compiled.
"""

from __future__ import annotations

from tools.fuzz.probes.probe import Probe, RejectedError, probe
from tools.fuzz.programs.choosing import Chooser

# Functions of x and a second operand c, with values of both at which the function has a kink.
_KINKS = [
    ("np.maximum(x, c)", "0.0", "0.0"),
    ("np.minimum(x, c)", "0.0", "0.0"),
    ("np.maximum(c, x)", "0.0", "0.0"),
    ("np.fmax(x, c)", "0.0", "0.0"),
    ("np.fmin(c, x)", "0.0", "0.0"),
    ("np.maximum(x, c)", "1.0", "1.0"),
    ("np.minimum(c, x)", "2.0", "2.0"),
    ("np.clip(x, c, 5.0)", "1.0", "1.0"),
    ("np.clip(x, -5.0, c)", "1.0", "1.0"),
    ("x ** c", "0.0", "2.0"),
    ("x ** c", "0.0", "1.0"),
    ("x ** c", "0.0", "0.0"),
    ("x ** c", "0.0", "3.0"),
    ("np.power(x, c)", "0.0", "2.0"),
    ("np.power(x, c)", "0.0", "0.0"),
    ("np.power(x, c)", "-1.5", "2.0"),
    ("x ** c", "-1.5", "3.0"),
    ("np.float_power(x, c)", "-1.5", "2.0"),
    ("np.hypot(x, c)", "0.0", "0.0"),
    ("np.arctan2(x, c)", "0.0", "1.0"),
    ("np.logaddexp(x, c)", "1.0", "1.0"),
    ("np.copysign(x, c)", "0.0", "1.0"),
    ("np.copysign(x, c)", "2.0", "-0.0"),
    ("np.where(x > c, x, c)", "1.0", "1.0"),
    ("np.where(x >= c, x * 2, c)", "1.0", "1.0"),
    ("abs(x - c)", "1.0", "1.0"),
    ("np.abs(x - c)", "1.0", "1.0"),
    ("np.fabs(x - c)", "1.0", "1.0"),
    ("np.sqrt((x - c) ** 2)", "1.0", "1.0"),
    ("np.mod(x, c)", "2.0", "1.0"),
    ("x % c", "2.0", "1.0"),
    ("np.fmod(x, c)", "2.0", "1.0"),
    ("np.heaviside(x, c) * x", "0.0", "0.5"),
    ("np.sign(x - c) * x", "1.0", "1.0"),
    ("x * c", "0.0", "0.0"),
    ("x / c", "0.0", "2.0"),
    ("c / x", "1.0", "0.0"),
    ("np.sinc(x * c)", "0.0", "1.0"),
    ("np.nan_to_num(x * c)", "0.0", "0.0"),
    ("np.max(np.stack([x + 0 * c, c + 0 * x]))", "1.0", "1.0"),
    ("np.logaddexp2(x, c)", "1.0", "1.0"),
    ("max(x, c)", "1.0", "1.0"),
    ("min(c, x)", "1.0", "1.0"),
    ("c ** x", "0.0", "2.0"),
    ("c ** x", "2.0", "0.0"),
    ("np.power(c, x)", "1.0", "1.0"),
    ("np.remainder(c, x)", "1.0", "2.0"),
    ("x // c + x", "2.0", "1.0"),
    ("np.add(x, c)", "0.0", "0.0"),
    ("np.arctan2(c, x)", "1.0", "0.0"),
    ("np.ldexp(x, np.int64(c))", "1.0", "2.0"),
    ("np.interp(x, [-1.0, 1.0], [0.0, 2.0]) + c", "1.0", "0.0"),
]
# Kinds of the other operand, which all represent the same number.
_KINDS = [
    "{c}",
    "np.float64({c})",
    "np.array({c})",
    "np.full(2, {c})[0]",
    # A whole number may be an integer, and keeps its sign when something is added.
    "int({c})",
    "np.array([{c}])",
    "np.float32({c})",
    "np.int64({c})",
    "ft.stop_gradient(x * 0 + {c})",
]
# The derivative of a function {f} with respect to x.
_SLOPES = {
    "grad": "ft.grad({f})(x)",
    "jvp": "ft.jvp({f}, (x,), (1.0,))[1]",
    "jacfwd": "ft.jacfwd({f})(x)",
    "jacrev": "ft.jacrev({f})(x)",
    "vmap of grad": "ft.vmap(ft.grad({f}))(np.array([x, x]))[0]",
    "jit of grad": 'ft.jit(ft.grad({f}), backend="numpy")(x)',
    "grad of jit": 'ft.grad(ft.jit({f}, backend="numpy"))(x)',
    "native": 'ft.jit(ft.grad({f}), backend="native")(x)',
    "graph": "ft.make_graph(ft.grad({f}))(x)(x)",
    "linearize": "ft.linearize({f}, x)[1](1.0)",
    "of an entry": "ft.grad(lambda a: ({f})(a[0]))(np.array([x]))[0]",
    "without axes": "ft.grad({f})(np.array(x))",
    "grad of vmap": "ft.grad(lambda a: np.sum(ft.vmap({f})(a)))(np.array([x, x]))[0]",
}


def write(chooser: Chooser) -> Probe:
    expression, x, c = chooser.pick(_KINKS)
    whole = float(c).is_integer() and c != "-0.0"
    kind = chooser.pick(_KINDS if whole else _KINDS[:4]).format(c=c)
    one, other = chooser.pick(list(_SLOPES)), chooser.pick(list(_SLOPES))
    if "native" in (one, other) and chooser.chance(70):
        raise RejectedError
    text = f"""
f = lambda x, c: np.sum({expression})
x = {x}
laws.one_rule(
    lambda: {_SLOPES[one].format(f=f"lambda x: f(x, {c})")},
    lambda: {_SLOPES[other].format(f=f"lambda x: f(x, {kind})")},
)
"""
    return probe(text, expression, kind, one, other)
