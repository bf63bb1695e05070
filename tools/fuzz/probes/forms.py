"""Probes of the forms of results: dtypes, and whether a result without axes is an array or a number.

Eager, compiled, staged or under a transform, a function returns results of the same kinds. Control flow is
compared with Python's own statements.
"""

from __future__ import annotations

from tools.fuzz.probes.probe import Probe, RejectedError, indented, probe
from tools.fuzz.programs.choosing import Chooser

# Functions of an array x of three entries.
_OF_ARRAYS = [
    "np.sum(x)",
    "x[0]",
    "x.sum()",
    "np.mean(x)",
    "np.max(x)",
    "np.dot(x, x)",
    "x @ x",
    "x[:1].reshape(())",
    "np.squeeze(x[:1])",
    "np.linalg.norm(x)",
    "np.prod(x)",
    "np.add.reduce(x)",
    "np.argmax(x)",
    "np.any(x > 0)",
    "np.where(x[0] > 0, x[0], 0)",
    "np.einsum('i,i->', x, x)",
    "np.sum(x, keepdims=True)",
    "np.stack([x[0], 1.0])",
    "x * 2",
    "x * 2.0",
    "x + np.float32(1)",
    "x / 2",
    "x // 2",
    "x ** 2",
    "np.sqrt(abs(x))",
    "x > 0",
    "x.astype(np.float32)",
    "np.cumsum(x)",
    "np.zeros_like(x)",
    "np.ones(3)",
    "2.0",
    "3",
    "np.float32(2.0)",
    "np.array(2.0)",
    "len(x)",
    "x.shape[0] * x",
    "x.real",
    "np.asarray(np.sum(x))",
    "np.sum(x, dtype=np.float64)",
    "np.mean(x > 0)",
    "np.count_nonzero(x)",
    "x[0] + 1",
    "x[0] * np.float32(2)",
    "np.minimum(x[0], 5)",
    "np.trace(np.outer(x, x))",
    "np.vdot(x, x)",
    "np.inner(x, x)",
    "np.tensordot(x, x, 1)",
    "np.median(x)",
    "np.ptp(x)",
    "np.take(x, 1)",
    "np.transpose(x[0])",
    "np.reshape(x[0], ())",
    "np.broadcast_to(x[0], ())",
    "np.abs(x[0])",
    "np.copy(x[0])",
    "np.nansum(x)",
    "np.average(x)",
    "np.var(x)",
    "np.diff(x)",
    "np.full(2, 7)",
    "True",
    "[x[0], (x,)]",
    "{'a': x[0], 'b': 1}",
]
# Loops and branches, and the same with Python's own statements.
_CONTROL = [
    (
        "return ft.scan(lambda c, r: (c + r, c), init, x)",
        "c, ys = init, []\nfor r in x:\n    c, y = c + r, c\n    ys.append(y)\nreturn c, np.stack(ys)",
    ),
    (
        "return ft.scan(lambda c, r: (c, {out}), init, x)[1]",
        "c = init\nreturn np.stack([{out} for r in x])",
    ),
    (
        "return ft.scan(lambda c, r: (c + 1, c), init, x)[1]",
        "c, ys = init, []\nfor r in x:\n    ys.append(c)\n    c = c + 1\nreturn np.stack(ys)",
    ),
    ("return ft.map(lambda r: {out}, x)", "c = init\nreturn np.stack([{out} for r in x])"),
    (
        "return ft.fori_loop(0, 2, lambda i, c: c + x[0], init)",
        "c = init\nfor i in range(2):\n    c = c + x[0]\nreturn c",
    ),
    (
        "return ft.cond(True, lambda r: r * 2, lambda r: r * 3, x[0])",
        "return x[0] * 2",
    ),
    (
        "return ft.switch(1, [lambda r: r + 1, lambda r: r * 3], x)",
        "return x * 3",
    ),
    (
        "return ft.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, s[1] * x[0]), (0, init))[1]",
        "return init * x[0] * x[0]",
    ),
    (
        "return ft.associative_scan(np.add, x)",
        "return np.cumsum(x, dtype=x.dtype)",
    ),
    (
        "a = np.stack([x, x + 1, x + 2, x + 3])\n"
        "affine = lambda p, q: np.stack([p[..., 0] * q[..., 0], q[..., 0] * p[..., 1] + q[..., 1]], -1)\n"
        "return ft.associative_scan(affine, a[:, :2], reverse={reverse})",
        "a = np.stack([x, x + 1, x + 2, x + 3])[:, :2]\n"
        "affine = lambda p, q: np.stack([p[0] * q[0], q[0] * p[1] + q[1]])\n"
        "order = range(4)[::-1] if {reverse} else range(4)\n"
        "rows, total = {{}}, None\n"
        "for k in order:\n"
        "    total = a[k] if total is None else affine(total, a[k])\n"
        "    rows[k] = total\n"
        "return np.stack([rows[k] for k in range(4)])",
    ),
]
_OUTPUTS = ["r", "2.0", "1", "r > 0", "c", "r * 2", "np.float32(1)", "r / 2", "True", "r * r + c"]
_INITIAL = ["0.0", "0", "np.float32(0)", "np.float64(1)", "x[0] * 0", "np.array(1.0)", "1", "1.5"]
_ARRAYS = [
    "np.array([1.0, 2.0, 3.0])",
    "np.array([1.0, 2.0, 3.0], np.float32)",
    "np.array([1, 2, 3])",
    "np.array([1.0, 2.0, 3.0], np.float16)",
    "np.array([1, 2, 3], np.int8)",
    "np.array([True, False, True])",
    "np.array([1.0 + 1.0j, 2.0, 3.0])",
    "np.array([1.0 + 1.0j, 2.0, 3.0], np.complex64)",
    "np.array([1, 2, 3], np.uint8)",
]
_WRAPPERS = {
    "jit": 'ft.jit(f, backend="numpy")(x)',
    "native": 'ft.jit(f, backend="native")(x)',
    "graph": "ft.make_graph(f)(x)(x)",
    "checkpoint": "ft.checkpoint(f)(x)",
    "nothing": "f(x)",
    "second call": "[g(x) for g in [ft.jit(f, backend='numpy')] for _ in range(2)][1]",
    "cond": "ft.cond(True, f, f, x)",
    "vjp": "ft.vjp(f, x)[0]",
    "jvp": "ft.jvp(f, (x,), (x,))[0]",
    "linearize": "ft.linearize(f, x)[0]",
    "aux": "ft.grad(lambda r: (r * 2.0, f(x)), has_aux=True)(1.0)[1]",
    "unmapped": "ft.vmap(f, in_axes=None, out_axes=None, axis_size=2)(x)",
}


def write(chooser: Chooser) -> Probe:
    x = chooser.pick(_ARRAYS)
    wrapper = chooser.pick(list(_WRAPPERS))
    real = "int" not in x and "[1, 2" not in x and "True" not in x
    if wrapper in ("vjp", "jvp", "linearize") and not real:
        raise RejectedError
    if wrapper == "native" and chooser.chance(50):
        raise RejectedError
    if chooser.chance(40):
        looped, plain = chooser.pick(_CONTROL)
        slots = {
            "out": chooser.pick(_OUTPUTS),
            "reverse": chooser.pick(["False", "True"]),
        }
        if "r * r + c" in slots["out"] and "ft.map" in looped:
            raise RejectedError
        if "ft.map" in looped and slots["out"] == "c":
            raise RejectedError
        init = chooser.pick(_INITIAL)
        text = f"""
def f(x):
    init = {init}
{indented(looped.format(**slots))}


def plain(x):
    init = {init}
{indented(plain.format(**slots))}


x = {x}
laws.right_or_refused(lambda: {_WRAPPERS[wrapper]}, lambda: plain(x), 1e-2, law="control flow")
laws.same_form(lambda: {_WRAPPERS[wrapper]}, lambda: f(x))
"""
        return probe(text, wrapper, "control flow")
    if wrapper == "nothing":
        raise RejectedError
    text = f"""
f = lambda x: {chooser.pick(_OF_ARRAYS)}
x = {x}
laws.same_form(lambda: {_WRAPPERS[wrapper]}, lambda: f(x))
"""
    return probe(text, wrapper, "an expression")
