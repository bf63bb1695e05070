"""The vocabulary of the aliasing probes: functions that may share memory, and wrappers of them."""

from __future__ import annotations

# Expressions of an array `a`. These equal `a` elementwise, and their derivative is the identity.
IDENTITIES = [
    "a",
    "a * 1.0",
    "a + 0.0",
    "+a",
    "a[...]",
    "a / 1.0",
    "a ** 1",
    "a - 0.0",
    "-(-a)",
    "1 * a",
    "np.real(a)",
    "a.real",
    "np.conj(a)",
    "np.positive(a)",
    "np.multiply(a, 1.0)",
    "a * np.ones_like(a)",
    "a + np.zeros_like(a)",
    "a.copy()",
    "np.copy(a)",
    "a.astype(float)",
    "a.astype(float, copy=False)",
    "np.where(True, a, a)",
    "np.maximum(a, a)",
    "np.clip(a, -99.0, 99.0)",
    "np.nan_to_num(a)",
    "np.reshape(a, a.shape)",
    "np.broadcast_to(a, a.shape)",
]
# These keep the shape, of arrays with axes.
SHAPED = [
    "a[:]",
    "np.sin(a)",
    "a[::-1]",
    "a[::-1][::-1]",
    "a.T.T",
    "np.flip(a)",
    "np.flip(a, 0)",
    "np.roll(a, 0)",
    "np.roll(a, 1)",
    "np.concatenate([a])",
    "np.stack([a])[0]",
    "np.pad(a, 0)",
    "np.tile(a, 1)",
    "np.repeat(a, 1, axis=0)",
    "np.split(a, 1)[0]",
    "np.take(a, range(len(a)), axis=0)",
    "a[list(range(len(a)))]",
    "np.atleast_1d(a)",
    "a.view()",
    "np.cumsum(a, axis=0)",
    "np.flipud(a)",
    "np.reshape(np.ravel(a), a.shape)",
    "np.array_split(a, 1)[0]",
    "np.broadcast_arrays(a, a)[0]",
    "np.expand_dims(a, 0)[0]",
    "np.moveaxis(np.expand_dims(a, 0), 0, -1)[..., 0]",
    "np.triu(a) + np.tril(a, -1)",
]
# And these do not.
RESHAPED = [
    "a[1:]",
    "a[0]",
    "a.T",
    "a.reshape(-1)",
    "np.ravel(a)",
    "a[None]",
    "a[..., None]",
    "a.flatten()",
    "np.expand_dims(a, 0)",
    "np.broadcast_to(a, (2,) + a.shape)",
    "np.transpose(a)",
    "np.swapaxes(a, 0, -1)",
    "np.diagonal(a)",
    "np.diag(a)",
    "np.split(a, [1])[0]",
    "np.array_split(a, 2)[0]",
    "np.atleast_2d(a)",
    "np.squeeze(a)",
    "np.squeeze(a[None])",
    "np.rot90(a)",
    "a[a.shape[0]:]",
    "np.outer(a, a)",
    "np.repeat(a, 2)",
]
# Several results.
SEVERAL = [
    "(a, a)",
    "(a * 1.0, a * 1.0)",
    "(np.sin(a), np.sin(a))",
    "(a, a * 1.0)",
    "(a[::-1], a)",
    "(a + 0.0, a[1:])",
    "(2.0 * a, (2.0 * a)[::-1])",
    "(a.T, a.reshape(-1))",
    "(np.zeros_like(a), np.zeros_like(a))",
    "(np.ones_like(a), a)",
]
# Lines that assign to the argument.
ASSIGNING = [
    ("a[0] = 2.5", "a * 2.0"),
    ("a *= 2.0", "a"),
    ("a[...] = 1.5 * a", "a * 1.0"),
    ("b = a[::-1]\nb[0] = 4.0", "a + b"),
    ("b = a * 1.0\nb[0] = 4.0", "b"),
    ("b = a\nb += 1.0", "b"),
]

# A dictionary or list of two arrays, lines that change it, a result, and the changed entry.
FILLING = [
    ("{{'k': {x}, 'j': {y}}}", "a['k'] = a['k'] * 2.0", "a['k'] + a['j']", "['k']"),
    ("{{'k': {x}, 'j': {y}}}", "a['k'] *= 2.0", "a['k']", "['k']"),
    ("{{'k': {x}, 'j': {y}}}", "a['k'], a['j'] = a['j'], a['k']", "a['k'] * 1.0", "['j']"),
    ("[{x}, {y}]", "a[0] = a[1] * 3.0", "a[0]", "[0]"),
    ("[{x}, {y}]", "a.append(a[0] * 2.0)", "a[-1]", "[-1]"),
    ("[{x}, {y}]", "a.reverse()", "a[0] * 1.0", "[0]"),
    ("[{x}, {y}]", "a[1][0] = 4.0", "a[0] + 0.0", "[1]"),
]
# Wrappers that take such an argument.
FILLED = [
    "jit",
    "graph",
    "checkpoint",
    "vjp_value",
    "jvp_value",
    "linearized_value",
    "cond",
    "switch",
    "with_jvp",
    "with_vjp",
]

# Wrappers of functions, by name: those for "any" function, those for functions that keep the shape, those
# that map over rows, and those that give the function itself only if its derivative is the identity.
WRAPPERS = {
    "any": {
        "jit": 'lambda f: ft.jit(f, backend="numpy")',
        "graph": "lambda f: lambda *a: ft.make_graph(f)(*a)(*a)",
        "specified": (
            "lambda f: lambda *a: ft.make_graph(f)(*(ft.ArraySpec(b.shape, b.dtype) for b in a))(*a)"
        ),
        "checkpoint": "ft.checkpoint",
        "vjp_value": "lambda f: lambda *a: ft.vjp(f, *a)[0]",
        "jvp_value": "lambda f: lambda *a: ft.jvp(f, a, a)[0]",
        "linearized_value": "lambda f: lambda *a: ft.linearize(f, *a)[0]",
        "cond": "lambda f: lambda *a: ft.cond(True, f, f, *a)",
        "switch": "lambda f: lambda *a: ft.switch(1, [f, f], *a)",
        "aux": "lambda f: lambda *a: ft.grad(lambda *b: (np.sum(b[0]), f(*b)), has_aux=True)(*a)[1]",
        "vjp_aux": "lambda f: lambda *a: ft.vjp(lambda *b: (b, f(*b)), *a, has_aux=True)[2]",
        "with_jvp": "with_jvp",
        "with_vjp": "with_vjp",
        "stopped": "lambda f: lambda *a: ft.tree.map(ft.stop_gradient, f(*a))",
        "tapped": "lambda f: lambda *a: ft.tree.map(lambda b: ft.tap(b, lambda c: None), f(*a))",
        "named": "lambda f: lambda *a: ft.tree.map(lambda b: ft.checkpoint_name(b, 'b'), f(*a))",
        "profiled": "lambda f: lambda *a: ft.profile(f)(*a).value",
        "mapped_once": "lambda f: lambda *a: ft.tree.map(lambda b: b[0], ft.vmap(f)(*(b[None] for b in a)))",
        "unmapped": "lambda f: lambda *a: ft.vmap(f, in_axes=None, out_axes=None, axis_size=2)(*a)",
        "native": 'lambda f: ft.jit(f, backend="native")',
        "source": "lambda f: lambda *a: ft.source(f)(*a).function(*a)",
    },
    "state": {
        "fori": "lambda f: lambda a: ft.fori_loop(0, 1, lambda i, c: f(c), a)",
        "never": "lambda f: lambda a: f(ft.fori_loop(0, 0, lambda i, c: f(c), a))",
        "loop": (
            "lambda f: lambda a: ft.while_loop(lambda s: s[0] < 1, lambda s: (s[0] + 1, f(s[1])), (0, a))[1]"
        ),
        "carried": "lambda f: lambda a: ft.scan(lambda c, _: (f(c), None), a, None, length=1)[0]",
    },
    "rows": {
        "vmap": "ft.vmap",
        "lanes": "lambda f: ft.vmap(f, in_axes=-1, out_axes=-1)",
        "each": "lambda f: lambda a: ft.map(f, a)",
        "scanned": "lambda f: lambda a: ft.scan(lambda c, r: (c, f(r)), 0.0, a)[1]",
        "accumulated": "lambda f: lambda a: ft.associative_scan(lambda b, c: f(c), a)",
        "vectorized": "lambda f: ft.numpy.vectorize(f)",
    },
    "linear": {
        "pulled": "lambda f: lambda a: ft.vjp(f, a)[1](a)[0]",
        "pushed": "lambda f: lambda a: ft.jvp(f, (a,), (a,))[1]",
        "linearized": "lambda f: lambda a: ft.linearize(f, a)[1](a)",
        "transposed": "lambda f: lambda a: ft.linear_transpose(f, a)(a)[0]",
        "batched_pull": "lambda f: lambda a: ft.vmap(ft.vjp(f, a)[1])(a[None])[0][0]",
    },
}
HELPERS = {
    "twice": """
twice = ft.custom_vjp(lambda a, b: a + b)
twice.defvjp(lambda a, b: (a + b, None), lambda saved, g: (g, g))
twice.defjvp(lambda primals, tangents: (primals[0], tangents[1]))
""",
    "with_jvp": """
def with_jvp(f):
    g = ft.custom_jvp(f)
    g.defjvp(lambda primals, tangents: ft.jvp(f, primals, tangents))
    return g
""",
    "with_vjp": """
def with_vjp(f):
    g = ft.custom_vjp(f)
    g.defvjp(lambda *a: (f(*ft.tree.map(lambda x: x, a)), a), lambda a, w: ft.vjp(f, *a)[1](w))
    g.defjvp(lambda primals, tangents: ft.jvp(f, primals, tangents))
    return g
""",
}
# Calls that pass arrays through: their results share no memory with anything.
HANDED_ON = [
    "ft.grad(lambda a, b: np.sum(a + b), argnums=(0, 1))(x, y)",
    "ft.grad(lambda a, b: np.sum((a + b) * np.arange(a.size).reshape(a.shape)), argnums=(0, 1))(x, y)",
    "ft.grad(lambda d: np.sum(d['a'] + d['b']) + np.sum(d['a'] * y))({'a': x, 'b': y})",
    "ft.grad(lambda d: np.sum(d[0] * y) + np.sum(d[1] * y))([x, y])",
    "ft.vjp(lambda a, b: a + b, x, y)[1](x)",
    "ft.vjp(lambda a: (a, a), x)[1]((x, y))",
    "ft.vjp(lambda a: (a, a.T), x)[0]",
    "ft.vjp(lambda a: a.T, x)[1](y.T)",
    "ft.vjp(lambda a: a.reshape(-1), x)[1](y.reshape(-1))",
    "ft.vjp(lambda a: a[::-1], x)[1](y)",
    "ft.vjp(lambda a: np.stack([a, a]), x)[1](np.stack([x, y]))",
    "ft.vjp(lambda a, b: (b, a), x, y)[1]((x, y))",
    "ft.vjp(lambda a: np.broadcast_to(a, (2, *a.shape)), x)[0]",
    "ft.vjp(lambda a: {'p': a, 'q': [a]}, x)[1]({'p': x, 'q': [y]})",
    "ft.jvp(lambda a: a, (x,), (y,))",
    "ft.jvp(lambda a: (a, a), (x,), (y,))",
    "ft.jvp(lambda a: (a.T, a.reshape(-1)), (x,), (y,))",
    "ft.jvp(lambda a, b: (b, a), (x, y), (x, y))",
    "ft.linearize(lambda a: (a, a), x)[1](y)",
    "ft.linearize(lambda a: a[::-1], x)[1](y)",
    "ft.linear_transpose(lambda a: (a, a), x)((x, y))",
    "ft.linear_transpose(lambda a: a, x)(y)",
    "ft.value_and_grad(lambda a: (np.sum(a * y), (a, a)), has_aux=True)(x)",
    "ft.value_and_grad(lambda a, b: (np.sum(a * b), (a, b)), has_aux=True)(x, y)",
    "ft.hvp(lambda a: np.sum(a * a) / 2, (x,), (y,))",
    "ft.hvp(lambda a, b: np.sum(a * b), (x, y), (x, y))",
    "ft.jacrev(lambda a: (a, a))(x)",
    "ft.jacfwd(lambda a: (a, a))(x)",
    "ft.jacrev(lambda a, b: a + b, argnums=(0, 1))(x, y)",
    "ft.jacfwd(lambda a, b: a + b, argnums=(0, 1))(x, y)",
    "ft.hessian(lambda a, b: np.sum((a + b) ** 2), argnums=(0, 1))(x, y)",
    "ft.vmap(lambda a: (a, a))(x)",
    "ft.vmap(lambda a, b: (b, a), in_axes=(0, None))(x, y)",
    "ft.vmap(lambda a, b: b, in_axes=(0, None), out_axes=None)(x, y)",
    "ft.vmap(lambda a: (a, a), out_axes=(0, -1))(x)",
    "ft.vmap(lambda a: a, in_axes=-1, out_axes=-1)(x)",
    "ft.vmap(lambda a: a, chunk_size=1)(x)",
    "ft.vmap(lambda a: {'p': a, 'q': y})(x)",
    "ft.vmap(lambda a: ft.all_gather(a, 'i'), axis_name='i', out_axes=None)(x)",
    "ft.vmap(lambda a: ft.psum(a, 'i'), axis_name='i', out_axes=None)(x[:1])",
    "ft.vmap(ft.grad(lambda a: np.sum(a * 1.0)))(x)",
    "ft.scan(lambda c, r: (c, c), x, None, length=2)",
    "ft.scan(lambda c, r: (r, r), x[0], x)",
    "ft.scan(lambda c, r: (c, (r, y)), 0.0, x)",
    "ft.map(lambda r: (r, r), x)",
    "ft.fori_loop(0, 0, lambda i, c: c, (x, y))",
    "ft.fori_loop(0, 1, lambda i, c: (c[1], c[0]), (x, y))",
    "ft.while_loop(lambda c: False, lambda c: c, (x, y))",
    "ft.associative_scan(np.add, x[:1])",
    "ft.associative_scan(lambda p, q: q, x)",
    "ft.linear_solve(lambda u: u, x, lambda matvec, b: b)",
    "ft.custom_root(lambda u: u - x, y, lambda f, start: x)",
    "ft.fixed_point(lambda u: x, y)",
    "ft.cg(lambda u: u, x.reshape(-1), y.reshape(-1))[0]",
    "ft.odeint(lambda u, t: 0.0 * u, x, np.array([0.0, 0.0, 1.0]))",
    "ft.pure_callback(lambda a: a, ft.ArraySpec(x.shape, x.dtype), x)",
    'ft.jit(lambda a, b: (a, b, a), backend="numpy")(x, y)',
    'ft.jit(lambda a: (a, a.T, a.reshape(-1)), backend="numpy")(x)',
    'ft.jit(lambda a: (2.0 * a, (2.0 * a).T), backend="numpy")(x)',
    'ft.jit(ft.grad(lambda a, b: np.sum(a + b), argnums=(0, 1)), backend="numpy")(x, y)',
    'ft.jit(lambda a, b: (b, a, np.ones(3), np.ones(3)), backend="native")(x, y)',
    'ft.jit(ft.grad(lambda a, b: np.sum(a + b), argnums=(0, 1)), backend="native")(x, y)',
    "ft.make_graph(lambda a, b: (b, a, a))(x, y)(x, y)",
    "ft.grad(lambda a, b: np.sum(twice(a, b)), argnums=(0, 1))(x, y)",
    "ft.vjp(twice, x, y)[1](x)",
    "ft.jvp(twice, (x, y), (x, y))",
    "ft.grad(lambda a: np.sum(ft.checkpoint(lambda b: b)(a)))(x)",
    "ft.vjp(ft.checkpoint(lambda a, b: (b, a)), x, y)[1]((x, y))",
    "ft.ravel_pytree(x)[0]",
]
