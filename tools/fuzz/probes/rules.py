"""Probes of rules that write: user-defined functions that assign to their arguments.

A rule cannot change the caller's arrays, or the other branches of the program, by writing to its arguments.
The result is that of the same rule writing to a copy, or there is an error that says that the array cannot
be written.
"""

from __future__ import annotations

from tools.fuzz.probes.probe import Probe, RejectedError, indented, probe
from tools.fuzz.programs.choosing import Chooser

# Lines that change an array `{a}` in place.
_WRITES = [
    "{a} *= 3.0",
    "{a}[...] = 0.0",
    "{a} += 1.0",
    "{a}[0] = 2.0",
    "{a}[1:] *= 0.5",
    "{a} -= {a}",
    "{a}[::-1] *= 2.0",
    "np.multiply({a}, 3.0, out={a})",
    "b = {a}[:1]\nb *= 4.0",
    "b = {a}.reshape(-1)\nb[0] = 7.0",
    "b = {a}.T\nb *= 2.0",
    "{a} /= 2.0",
    "{a}.fill(1.5)",
    "{a}.sort()",
    "np.copyto({a}, 0.5)",
    "np.add.at({a}, [0], 1.0)",
    "np.put({a}, [0], 9.0)",
]
# Functions with rules. At {w} in the definition, the rule writes to an array.
_FUNCTIONS = {
    "the cotangent of custom_vjp": (
        "g",
        """
h = ft.custom_vjp(lambda u: np.sin(u))

def forward(u):
    return np.sin(u), u

def backward(u, g):
    g = own(g)
{w}
    return (g * np.cos(u),)

h.defvjp(forward, backward)
""",
    ),
    "what custom_vjp saved": (
        "u",
        """
h = ft.custom_vjp(lambda u: np.sin(u))

def forward(u):
    return np.sin(u), u

def backward(u, g):
    u = own(u)
{w}
    return (g * np.cos(u),)

h.defvjp(forward, backward)
""",
    ),
    "a primal of custom_vjp": (
        "u",
        """
h = ft.custom_vjp(lambda u: np.sin(u))

def forward(u):
    u = own(u)
    y = np.sin(u)
{w}
    return y, u

def backward(u, g):
    return (g * np.cos(u),)

h.defvjp(forward, backward)
""",
    ),
    "a tangent of custom_jvp": (
        "t",
        """
h = ft.custom_jvp(lambda u: np.sin(u))

@h.defjvp
def rule(primals, tangents):
    u, t = primals[0], own(tangents[0])
{w}
    return np.sin(u), t * np.cos(u)
""",
    ),
    "a primal of custom_jvp": (
        "u",
        """
h = ft.custom_jvp(lambda u: np.sin(u))

@h.defjvp
def rule(primals, tangents):
    u, t = own(primals[0]), tangents[0]
    y = np.sin(u)
{w}
    return y, t * np.cos(u)
""",
    ),
    "a tangent of a primitive": (
        "t",
        """
def tangent(out, primals, tangents):
    u, t = primals[0], own(tangents[0])
{w}
    return t * np.cos(u)

h = ft.define_primitive("h", np.sin, jvp=tangent, shape=lambda u: u)
""",
    ),
    "a primal in the jvp of a primitive": (
        "u",
        """
def tangent(out, primals, tangents):
    u, t = own(primals[0]), tangents[0]
    slope = np.cos(u)
{w}
    return t * slope

h = ft.define_primitive("h", np.sin, jvp=tangent, shape=lambda u: u)
""",
    ),
    "the output in the jvp of a primitive": (
        "out",
        """
def tangent(out, primals, tangents):
    out = own(out)
    slope = out * 2.0
{w}
    return tangents[0] * slope

h = ft.define_primitive("h", lambda u: u * u, jvp=tangent, shape=lambda u: u)
""",
    ),
    "the cotangent of a primitive": (
        "g",
        """
def cotangent(out, primals, g):
    g = own(g)
{w}
    return (g * np.cos(primals[0]),)

h = ft.define_primitive("h", np.sin, vjp=cotangent, shape=lambda u: u)
""",
    ),
    "a primal in the vjp of a primitive": (
        "u",
        """
def cotangent(out, primals, g):
    u = own(primals[0])
    slope = np.cos(u)
{w}
    return (g * slope,)

h = ft.define_primitive("h", np.sin, vjp=cotangent, shape=lambda u: u)
""",
    ),
    "the output in the vjp of a primitive": (
        "out",
        """
def cotangent(out, primals, g):
    out = own(out)
    slope = 2.0 * out
{w}
    return (g * slope,)

h = ft.define_primitive("h", lambda u: u * u, vjp=cotangent, shape=lambda u: u)
""",
    ),
    "an argument of a primitive": (
        "u",
        """
def evaluate(u):
    u = own(u)
    y = np.sin(u)
{w}
    return y

h = ft.define_primitive(
    "h", evaluate, jvp=lambda out, p, t: t[0] * np.cos(p[0]), shape=lambda u: u
)
""",
    ),
    "a batch of a primitive": (
        "u",
        """
def batched(arrays, mapped):
    u = own(arrays[0])
    y = np.sin(u)
{w}
    return y

h = ft.define_primitive(
    "h",
    np.sin,
    jvp=lambda out, p, t: t[0] * np.cos(p[0]),
    batch=batched,
    shape=lambda u: u,
)
""",
    ),
    "an argument of a callback": (
        "u",
        """
def called(u):
    u = own(u)
    y = np.sin(u)
{w}
    return y

def h(u):
    v = ft.stop_gradient(u)
    return ft.pure_callback(called, ft.ArraySpec(np.shape(u), float), v) * u
""",
    ),
    "what a tap sees": (
        "v",
        """
def seen(v):
    v = own(v)
{w}

def h(u):
    return ft.tap(np.sin(u), seen)
""",
    ),
    "a residual in a list": (
        "u",
        """
h = ft.custom_vjp(lambda u: np.sin(u))

def forward(u):
    return np.sin(u), [u, {{"k": u * 1.0}}]

def backward(saved, g):
    u = own(saved[0])
{w}
    return (g * np.cos(saved[1]["k"]),)

h.defvjp(forward, backward)
""",
    ),
    "the state of a loop": (
        "c",
        """
def body(i, c):
    c = own(c)
    y = np.sin(c)
{w}
    return y

def h(u):
    return ft.fori_loop(0, 2, body, u)
""",
    ),
    "a row of a scan": (
        "r",
        """
def body(c, r):
    r = own(r)
    y = np.sin(r)
{w}
    return c, y

def h(u):
    return ft.scan(body, 0.0, np.stack([u, u]))[1][0]
""",
    ),
    "an argument of a solver": (
        "b",
        """
def solve(matvec, b):
    b = own(b)
    y = b / 2.0
{w}
    return y

def h(u):
    return ft.linear_solve(lambda x: 2.0 * x, u, solve)
""",
    ),
    "the start of a root": (
        "x",
        """
def solve(f, x):
    x = own(x)
    y = x - f(x) / 2.0
{w}
    return y

def h(u):
    return ft.custom_root(lambda x: 2.0 * x - u, u * 0.0, solve)
""",
    ),
    "a mapped row": (
        "r",
        """
def row(r):
    r = own(r)
    y = np.sin(r)
{w}
    return y

def h(u):
    return ft.map(row, np.stack([u, u]))[1]
""",
    ),
}
# Programs that use the same values before and after the call.
_PROGRAMS = [
    "h(x)",
    "h(x) + 2.0 * x",
    "h(a) * a + h(a)",
    "h(h(a)) + a",
    "h(a)[::-1] + a",
    "np.concatenate([h(a), a, h(a)])",
    "a * a + h(a) - c * x",
    "h(a + 0.0) + h(a)",
    "h(x) * h(x)",
    "h(c * x) + c",
    "(h(a), a)",
    "h(x[...]) + x",
]
_LOSS = "lambda x: total(f(x))"
# Calls with the caller's arrays: x, tangents t, and cotangents w like the result.
_CALLS = {
    "nothing": "f(x)",
    "grad": f"ft.grad({_LOSS})(x)",
    "vjp": "pulled(x)",
    "pulled twice": "pulled(x, 2)",
    "jvp": "ft.jvp(f, (x,), (t,))",
    "vmap": "ft.vmap(f)(xs)",
    "vmap of grad": f"ft.vmap(ft.grad({_LOSS}))(xs)",
    "grad of vmap": "ft.grad(lambda xs: total(ft.vmap(f)(xs)))(xs)",
    "jit": 'ft.jit(f, backend="numpy")(x)',
    "jit of grad": f'ft.jit(ft.grad({_LOSS}), backend="numpy")(x)',
    "grad of jit": 'ft.grad(lambda x: total(ft.jit(f, backend="numpy")(x)))(x)',
    "jacrev": "ft.jacrev(f)(x)",
    "jacfwd": "ft.jacfwd(f)(x)",
    "linearize": "pushed(x, t)",
    "grad of checkpoint": "ft.grad(lambda x: total(ft.checkpoint(f)(x)))(x)",
    "graph": "ft.make_graph(f)(x)(x)",
    "graph of grad": f"ft.make_graph(ft.grad({_LOSS}))(x)(x)",
    "second order": f"ft.grad(lambda x: total(ft.grad({_LOSS})(x)))(x)",
    "hvp": f"ft.hvp({_LOSS}, (x,), (t,))",
    "hessian": f"ft.hessian({_LOSS})(x)",
    "jvp of grad": f"ft.jvp(ft.grad({_LOSS}), (x,), (t,))",
    "vmap of jvp": "ft.vmap(lambda x, t: ft.jvp(f, (x,), (t,)))(xs, 2.0 * xs)",
    "value_and_grad": f"ft.value_and_grad({_LOSS})(x)",
    "pullbacks of lanes": "ft.vmap(ft.vjp(f, x)[1])(ft.tree.map(lambda y: np.stack([y, 2.0 * y]), f(x)))",
}
_HELPERS = {
    "total": """
def total(tree):
    return sum(np.sum(np.sin(leaf) * leaf) for leaf in ft.tree.leaves(tree))
""",
    "pulled": """
def pulled(x, times=1):
    y, pull = ft.vjp(f, x)
    w = ft.tree.map(lambda leaf: np.ones(leaf.shape), y)
    before = laws.copied(w)
    results = [pull(w) for _ in range(times)]
    laws.same(w, before, 0.0, "cotangents are unchanged")
    return y, results
""",
    "pushed": """
def pushed(x, t):
    y, push = ft.linearize(f, x)
    return y, push(t), push(2.0 * t)
""",
}


def write(chooser: Chooser) -> Probe:
    name = chooser.pick(list(_FUNCTIONS))
    target, definition = _FUNCTIONS[name]
    lines = chooser.pick(_WRITES).format(a=target)
    call = chooser.pick(list(_CALLS))
    if name.endswith(("callback", "root", "solver")) and "order" in call:
        raise RejectedError
    expression = chooser.pick(_PROGRAMS)
    rule = definition.strip().format(w=indented(lines))
    body = (
        f"a = 2.0 * x\nreturn {expression}" if "a" in _words(expression) else f"return {expression}"
    )
    text = f"""
def program(own):
{indented(rule)}

    def f(x):
{indented(body, 2)}

{_helpers(_CALLS[call])}    return {_CALLS[call]}


x, t, c = np.array([0.3, 0.8, 0.5]), np.array([1.0, -1.0, 2.0]), np.array([0.7, 0.6, 0.2])
xs = np.array([[0.3, 0.8, 0.5], [0.4, 0.2, 0.9]])
laws.writes_to_its_own(program, x=x, t=t, c=c, xs=xs)
"""
    return probe(text, name, call)


def _words(text: str) -> list[str]:
    return text.replace("(", " ").replace(")", " ").replace(",", " ").replace("[", " ").split()


def _helpers(call: str) -> str:
    """The definitions that a call needs; they are inside the program because they use its f."""
    used = [text for name, text in _HELPERS.items() if f"{name}(" in call]
    return "".join(f"{indented(text.strip())}\n\n" for text in used)
