"""Probes of escaped values: values traced by a transform that are kept, and used after it has finished.

Any use of such a value raises an `EscapedTracerError`: it never gives a number, or another error.
"""

from __future__ import annotations

from tools.fuzz.probes.probe import Probe, RejectedError, indented, probe
from tools.fuzz.programs.choosing import Chooser

# Ways to trace a function `inner`; it is called with an array of three entries, or with a number.
_TRACERS = {
    "grad": "ft.grad(lambda u: np.sum(inner(u)))({x})",
    "vmap": "ft.vmap(inner)({batch})",
    "jvp": "ft.jvp(inner, ({x},), ({x},))",
    "vjp": "ft.vjp(inner, {x})",
    "pullback": "ft.vjp(inner, {x})[1]({x})",
    "jit": 'ft.jit(inner, backend="numpy")({x})',
    "native": 'ft.jit(inner, backend="native")({x})',
    "make_graph": "ft.make_graph(inner)({x})",
    "eval_shape": "ft.eval_shape(inner, {x})",
    "jacfwd": "ft.jacfwd(inner)({x})",
    "jacrev": "ft.jacrev(inner)({x})",
    "hessian": "ft.hessian(lambda u: np.sum(inner(u)))({x})",
    "hvp": "ft.hvp(lambda u: np.sum(inner(u)), ({x},), ({x},))",
    "linearize": "ft.linearize(inner, {x})",
    "linear_transpose": "ft.linear_transpose(inner, {x})",
    "value_and_grad": "ft.value_and_grad(lambda u: np.sum(inner(u)))({x})",
    "source": "ft.source(inner)({x})",
    "profile": "ft.profile(inner)({x})",
    "grad of vmap": "ft.grad(lambda u: np.sum(ft.vmap(inner)(u)))({batch})",
    "vmap of grad": "ft.vmap(ft.grad(lambda u: np.sum(inner(u))))({batch})",
    "grad of checkpoint": "ft.grad(lambda u: np.sum(ft.checkpoint(inner)(u)))({x})",
    "grad of cond": "ft.grad(lambda u: np.sum(ft.cond(True, inner, inner, u)))({x})",
    "grad of fori_loop": "ft.grad(lambda u: np.sum(ft.fori_loop(0, 1, lambda i, c: inner(c), u)))({x})",
    "grad of scan": "ft.grad(lambda u: np.sum(ft.scan(lambda c, _: (inner(c), None), u, None, 1)[0]))({x})",
    "jit of cond": "ft.jit(lambda u: ft.cond(np.sum(u) > 0, inner, inner, u), backend='numpy')({x})",
    "graph of scan": "ft.make_graph(lambda u: ft.scan(lambda c, _: (inner(c), None), u, None, 1))({x})",
    "graph of while_loop": "ft.make_graph(lambda u: ft.while_loop(lambda c: np.sum(c) < 0, inner, u))({x})",
    "vmap of scan": "ft.vmap(lambda u: ft.scan(lambda c, _: (inner(c), None), u, None, 1)[0])({batch})",
    "vmap of map": "ft.vmap(lambda u: ft.map(inner, np.stack([u, u])))({batch})",
    "a rule of custom_jvp": "ft.grad(lambda u: np.sum(with_jvp(u)))({x})",
    "a rule of custom_vjp": "ft.vmap(ft.grad(lambda u: np.sum(with_vjp(u))))({batch})",
    "a second derivative": "ft.grad(lambda u: np.sum(ft.grad(lambda w: np.sum(inner(w)))(u)))({x})",
    "a tap under grad": "ft.vmap(lambda u: ft.tap(inner(u), lambda v: None))({batch})",
    "associative_scan": (
        "ft.vmap(lambda u: ft.associative_scan(lambda a, b: inner(a[0]) + b, np.stack([u, u])))({batch})"
    ),
}
_RULES = {
    "with_jvp": """
with_jvp = ft.custom_jvp(lambda u: np.sin(u))
with_jvp.defjvp(lambda primals, tangents: (np.sin(primals[0]), inner(tangents[0])))
""",
    "with_vjp": """
with_vjp = ft.custom_vjp(lambda u: np.sin(u))
with_vjp.defvjp(lambda u: (np.sin(inner(u)), u), lambda u, w: (w * np.cos(u),))
""",
}
# Ways to keep the value, as lines of `inner`, and to get it back.
_ROUTES = {
    "list": ("kept = []", "kept.append({v})", "kept[-1]"),
    "dict": ("kept = {}", "kept['v'] = {v}", "kept['v']"),
    "attribute": ("class Kept:\n    pass", "Kept.v = {v}", "Kept.v"),
    "global": ("kept = None", "global kept\nkept = {v}", "kept"),
    "first of several": ("kept = []", "kept.append({v})", "kept[0]"),
    "closure": ("kept = []", "w = {v}\nkept.append(lambda: w)", "kept[-1]()"),
    "late operation": ("kept = []", "kept.append(lambda: {v})", "kept[-1]()"),
    "generator": ("kept = []", "def g():\n    yield {v}\nkept.append(g)", "next(kept[-1]())"),
    "default argument": ("kept = []", "def g(w={v}):\n    return w\nkept.append(g)", "kept[-1]()"),
    "bound method": ("kept = []", "kept.append(({v}).copy)", "kept[-1]()"),
    "partial": (
        "from functools import partial\nkept = []",
        "kept.append(partial(np.add, {v}))",
        "kept[-1](0.0)",
    ),
    "exception": (
        "kept = []",
        "try:\n    raise KeyError({v})\nexcept KeyError as error:\n    kept.append(error)",
        "kept[-1].args[0]",
    ),
    "nested": ("kept = [{'a': ()}]", "kept[0]['a'] += ({v},)", "kept[0]['a'][-1]"),
    "view": ("kept = []", "kept.append(({v})[...])", "kept[-1]"),
    "tuple": ("kept = []", "kept.append((1, {v}))", "kept[-1][1]"),
    "context variable": (
        "from contextvars import ContextVar\nkept = ContextVar('kept')",
        "kept.set({v})",
        "kept.get()",
    ),
}
# The value to keep, computed from the argument `u`, so that it is traced as well.
_VALUES = ["u", "2.0 * u", "np.sin(u)", "u * u + 1.0", "u[...]", "np.sum(u) * u"]

# Uses of the escaped value `y`, where `x` is the argument of the outer function.
_USES = {
    "returned": "return y",
    "added": "return x + y",
    "a factor": "return y * x",
    "reflected": "return 2.0 - y",
    "a ufunc": "return np.sin(y) + x",
    "a ufunc with out of x": "return np.add(x, y)",
    "a reduction": "return x * np.sum(y)",
    "a method": "return x * y.sum()",
    "negated": "return -y",
    "a power": "return y ** 2",
    "an exponent": "return x ** y",
    "compared": "return np.where(y > 0, x, -x)",
    "equal": "return x * (y == y)",
    "a branch": "if np.sum(y) > 0:\n    return x\nreturn -x",
    "truth": "return x if np.any(y) else -x",
    "float": "return x * float(np.sum(y))",
    "int": "return x * int(np.sum(y))",
    "item": "return x * np.sum(y).item()",
    "bool": "return x * bool(np.all(y))",
    "formatted": "return x * len(f'{np.sum(y):.3f}')",
    "in a list": "return np.stack([x, y])",
    "concatenated": "return np.concatenate([np.ravel(x), np.ravel(y)])",
    "indexed": "return y[...] + x",
    "assigned": "z = x * 1.0\nz[...] = y\nreturn z",
    "assigned to": "z = y\nz[...] = x\nreturn z",
    "added in place": "z = x * 1.0\nz += y\nreturn z",
    "changed in place": "y += x\nreturn y",
    "a maximum": "return np.maximum(x, y)",
    "Python's max": "return max(np.sum(x), np.sum(y))",
    "zeros like": "return x + np.ones_like(y) * y",
    "a shape function": "return np.reshape(y, (-1,))",
    "transposed": "return y.T",
    "a product": "return np.dot(x, y)",
    "an einsum": "return np.einsum('...,...->...', x, y)",
    "isnan": "return x * np.isnan(y)",
    "rounded": "return x * np.round(y)",
    "cast": "return y.astype(float)",
    "copied": "return y.copy()",
    "stopped": "return x * ft.stop_gradient(y)",
    "an argument of grad": "return ft.grad(lambda w: np.sum(w * w))(y)",
    "an argument of jit": 'return ft.jit(lambda w: w * w, backend="numpy")(y)',
    "an argument of vmap": "return ft.vmap(lambda w: w * w)(y[None])",
    "an unmapped argument": "return ft.vmap(lambda w, v: w * v, in_axes=(0, None))(np.ones(2), y)",
    "an argument of jvp": "return ft.jvp(np.sin, (y,), (y,))[1]",
    "a tangent": "return ft.jvp(np.sin, (x,), (y,))[1]",
    "a cotangent": "return ft.vjp(np.sin, x)[1](y)[0]",
    "an argument of a graph": "return ft.make_graph(np.sin)(x)(y)",
    "closed over by grad": "return ft.grad(lambda w: np.sum(w * y))(x)",
    "returned by grad": "return ft.grad(lambda w: np.sum(y))(x)",
    "returned by jvp": "return ft.jvp(lambda w: y, (x,), (x,))[0]",
    "a tangent by jvp": "return ft.jvp(lambda w: y, (x,), (x,))[1]",
    "returned by vjp": "return ft.vjp(lambda w: y, x)[0]",
    "closed over by vmap": "return ft.vmap(lambda w: w * y)(np.ones(2))",
    "returned by vmap": "return ft.vmap(lambda w: y)(np.ones(2))",
    "closed over by jit": 'return ft.jit(lambda w: w * y, backend="numpy")(x)',
    "returned by jit": 'return ft.jit(lambda w: y, backend="numpy")(x)',
    "returned by a graph": "return ft.make_graph(lambda w: y)(x)(x)",
    "returned by linearize": "return ft.linearize(lambda w: y, x)[0]",
    "returned by jacfwd": "return ft.jacfwd(lambda w: y)(x)",
    "returned by jacrev": "return ft.jacrev(lambda w: y)(x)",
    "returned by hessian": "return ft.hessian(lambda w: np.sum(y))(x)",
    "returned by checkpoint": "return ft.checkpoint(lambda w: y)(x)",
    "aux": "return ft.grad(lambda w: (np.sum(w), y), has_aux=True)(x)[1]",
    "aux of vjp": "return ft.vjp(lambda w: (w, y), x, has_aux=True)[2]",
    "aux of jvp": "return ft.jvp(lambda w: (w, y), (x,), (x,), has_aux=True)[2]",
    "aux of value_and_grad": "return ft.value_and_grad(lambda w: (np.sum(w), [y]), has_aux=True)(x)[0][1][0]",
    "returned by a branch": "return ft.cond(True, lambda: y, lambda: x)",
    "returned by the other branch": "return ft.cond(np.sum(x) > 9.0, lambda: y, lambda: x) * y",
    "a predicate": "return ft.cond(np.sum(y) > 0, lambda: x, lambda: -x)",
    "an operand": "return ft.cond(True, np.sin, np.cos, y)",
    "an index": "return ft.switch(y.astype(int), [np.sin, np.cos], x)",
    "carried": "return ft.scan(lambda c, _: (y, None), x, None, length=2)[0]",
    "scanned": "return ft.scan(lambda c, r: (c, r), 0.0, y[None])[1]",
    "an output of scan": "return ft.scan(lambda c, _: (c, y), 0.0, None, length=2)[1]",
    "the start of a loop": "return ft.fori_loop(0, 2, lambda i, c: c * 2.0, y)",
    "in a loop": "return ft.fori_loop(0, 2, lambda i, c: c * y, x)",
    "the end of a loop": "return ft.while_loop(lambda c: np.sum(c) < np.sum(y), lambda c: c + 9.0, x)",
    "mapped": "return ft.map(lambda w: w * y, np.stack([x, x]))",
    "tapped": "return ft.tap(y, lambda v: None)",
    "given to a callback": "return ft.pure_callback(np.sin, ft.ArraySpec(np.shape(x), float), y)",
    "a pytree": "return {'a': x, 'b': [y]}",
    "all of a pytree": "return [y, (y, x)]",
    "raveled": "return ft.ravel_pytree([y, x])[0]",
    "mapped over a tree": "return ft.tree.map(lambda w: w * 2.0, [y])[0]",
}
# Transforms of the outer function, called with x, a number or an array of three entries.
_OUTER = {
    "grad": "ft.grad(lambda x: total(outer(x)))({x})",
    "nothing": "outer({x})",
    "grad, as it is": "ft.grad(outer)({x})",
    "vjp": "ft.vjp(outer, {x})",
    "pullback": "ft.vjp(lambda x: total(outer(x)), {x})[1](1.0)",
    "jvp": "ft.jvp(outer, ({x},), ({x},))",
    "vmap": "ft.vmap(outer)({batch})",
    "jit": 'ft.jit(outer, backend="numpy")({x})',
    "make_graph": "ft.make_graph(outer)({x})",
    "run of a graph": "ft.make_graph(outer)({x})({x})",
    "jacfwd": "ft.jacfwd(outer)({x})",
    "jacrev": "ft.jacrev(outer)({x})",
    "hessian": "ft.hessian(lambda x: total(outer(x)))({x})",
    "hvp": "ft.hvp(lambda x: total(outer(x)), ({x},), ({x},))",
    "linearize": "ft.linearize(outer, {x})",
    "value_and_grad": "ft.value_and_grad(lambda x: total(outer(x)))({x})",
    "aux": "ft.grad(lambda x: (total(x), outer(x)), has_aux=True)({x})",
    "aux of value_and_grad": "ft.value_and_grad(lambda x: (total(x), outer(x)), has_aux=True)({x})",
    "aux of vjp": "ft.vjp(lambda x: (x, outer(x)), {x}, has_aux=True)",
    "aux of jvp": "ft.jvp(lambda x: (x, outer(x)), ({x},), ({x},), has_aux=True)",
    "aux of jacrev": "ft.jacrev(lambda x: (x, outer(x)), has_aux=True)({x})",
    "aux of jacfwd": "ft.jacfwd(lambda x: (x, outer(x)), has_aux=True)({x})",
    "checkpoint": "ft.checkpoint(outer)({x})",
    "grad of checkpoint": "ft.grad(lambda x: total(ft.checkpoint(outer)(x)))({x})",
    "cond": "ft.cond(True, outer, outer, {x})",
    "switch": "ft.switch(0, [outer, outer], {x})",
    "scan": "ft.scan(lambda c, _: (c, outer({x})), 0.0, None, length=2)",
    "fori_loop": "ft.fori_loop(0, 1, lambda i, c: outer(c), {x})",
    "while_loop": "ft.while_loop(lambda s: s[0] < 1, lambda s: (s[0] + 1, outer(s[1])), (0, {x}))",
    "map": "ft.map(outer, {batch})",
    "vmap of grad": "ft.vmap(ft.grad(lambda x: total(outer(x))))({batch})",
    "jit of grad": 'ft.jit(ft.grad(lambda x: total(outer(x))), backend="numpy")({x})',
    "grad of jit": 'ft.grad(lambda x: total(ft.jit(outer, backend="numpy")(x)))({x})',
    "jit of cond": 'ft.jit(lambda x: ft.cond(total(x) > 0, outer, outer, x), backend="numpy")({x})',
    "graph of scan": "ft.make_graph(lambda x: ft.scan(lambda c, _: (c, outer(x)), 0.0, None, length=2))({x})",
    "eval_shape": "ft.eval_shape(outer, {x})",
    "source": "ft.source(outer)({x})",
    "linear_transpose": "ft.linear_transpose(outer, {x})",
    "vmap, unmapped": "ft.vmap(outer, in_axes=None, axis_size=2)({x})",
    "vmap, unmapped output": "ft.vmap(outer, out_axes=None)({batch})",
    "a rule of custom_jvp": "ft.jvp(ruled_jvp, ({x},), ({x},))",
    "a rule of custom_vjp": "ft.grad(lambda x: total(ruled_vjp(x)))({x})",
    "the way back of custom_vjp": "ft.grad(lambda x: total(ruled_back(x)))({x})",
    "odeint": "ft.odeint(lambda y, t: -total(outer(y)) * y, {x}, np.array([0.0, 0.1]))",
    "fixed_point": "ft.fixed_point(lambda u: 0.1 * total(outer(u)) + {x}, {x})",
    "associative_scan": "ft.associative_scan(lambda a, b: a + total(outer(b[0])), {batch})",
    "native": 'ft.jit(outer, backend="native")({x})',
}
_OUTER_RULES = {
    "total": """
def total(tree):
    return sum(np.sum(leaf) for leaf in ft.tree.leaves(tree))
""",
    "ruled_jvp": """
ruled_jvp = ft.custom_jvp(lambda x: x * 2.0)
ruled_jvp.defjvp(lambda primals, tangents: (primals[0] * 2.0, outer(tangents[0])))
""",
    "ruled_vjp": """
ruled_vjp = ft.custom_vjp(lambda x: x * 2.0)
ruled_vjp.defvjp(lambda x: (outer(x), None), lambda saved, g: (g,))
""",
    "ruled_back": """
ruled_back = ft.custom_vjp(lambda x: x * 2.0)
ruled_back.defvjp(lambda x: (x * 2.0, None), lambda saved, g: (outer(g),))
""",
}
# Without an outer transform, the library does not see such a result.
_SILENT = ("returned", "a pytree", "all of a pytree", "transposed", "copied", "a shape function")
# A number has no entries to assign to.
_OF_ARRAYS = ("assigned", "assigned to")
# These transforms need results like x, and may check that first.
_LIKE_X = ("fori_loop", "while_loop", "associative_scan", "grad, as it is", "vmap, unmapped output")
_UNLIKE_X = (
    "a_pytree all_of_a_pytree in_a_list concatenated a_shape_function transposed raveled scanned "
    "returned_by_jacfwd returned_by_jacrev returned_by_hessian returned_by_vmap closed_over_by_vmap "
    "an_argument_of_vmap an_unmapped_argument an_output_of_scan mapped a_product Python's_max"
)
# These run their function on plain values as well.
_RUN_TWICE = ("linear_transpose", "profile", "associative_scan", "vmap of map")


def _fits(vector: bool, tracer: str, route: str, use: str, outer: str) -> bool:
    """Whether the escaped value is the first error in the script."""
    if outer == "nothing" and use in _SILENT:
        return False
    if not vector and use in _OF_ARRAYS:
        return False
    if route == "first of several" and tracer in _RUN_TWICE:
        return False
    if outer in _LIKE_X or outer.startswith(("a rule", "the way back")):
        if outer == "grad, as it is" and vector:
            return False
        return use.replace(" ", "_") not in _UNLIKE_X.split()
    return True


def write(chooser: Chooser) -> Probe:
    vector = chooser.chance(50)
    slots = {"x": "np.float64(0.5)", "batch": "np.array([0.5, 0.7])"}
    if vector:
        slots = {
            "x": "np.array([0.5, 0.7, 0.9])",
            "batch": "np.array([[0.5, 0.7, 0.9], [0.6, 0.8, 1.0]])",
        }
    tracer = chooser.pick([name for name in _TRACERS if name != "native"] + ["native"])
    route = chooser.pick(list(_ROUTES))
    use = chooser.pick(list(_USES))
    outer = chooser.pick(list(_OUTER))
    if "native" in (tracer, outer) and chooser.chance(80):
        raise RejectedError
    if not _fits(vector, tracer, route, use, outer):
        raise RejectedError
    value = chooser.pick(_VALUES)
    before = chooser.chance(50)  # the inner transform runs before the outer one, or within it
    start, keeping, having = _ROUTES[route]
    inner = f"def inner(u):\n{indented(keeping.format(v=value))}\n    return u * 1.0"
    run = _TRACERS[tracer].format(**slots)
    body = "" if before else f"{run}\n"
    body += f"y = {having}\n{_USES[use]}"
    lines = [f"{start}\n", f"{inner}\n"]
    lines += [text.strip() + "\n" for name, text in _RULES.items() if name in run]
    if before:
        lines.append(f"{run}\n")
    lines.append(f"def outer(x):\n{indented(body)}\n")
    call = _OUTER[outer].format(**slots)
    lines.append(f"laws.escaped(lambda: {call})")
    return probe(
        "\n".join(lines),
        f"from {tracer}",
        f"by {route}",
        f"used: {use}",
        f"under {outer}",
        definitions=_OUTER_RULES,
    )
