"""Probes of large sums in single and half precision, compared with double precision.

Sums are at least as accurate as pairwise sums: over every axis, in gradients of broadcast arguments, eager
and compiled.
"""

from __future__ import annotations

from tools.fuzz.probes.probe import Probe, RejectedError, probe
from tools.fuzz.programs.choosing import Chooser

# Sums of an array x with n rows, 3 columns and positive entries. The bounds that entries are compared with
# are exact in all precisions, so that comparisons give the same in all of them.
_SUMS = [
    "np.sum(x, axis=0)",
    "np.sum(x)",
    "np.mean(x, axis=0)",
    "np.sum(x * x, axis=0)",
    "np.sum(np.exp(-x), axis=0)",
    "x.sum(0)",
    "np.add.reduce(x, axis=0)",
    "np.sum(x.T, axis=1)",
    "np.sum(x[::-1], axis=0)",
    "np.sum(x[::2], axis=0)",
    "np.sum(x, axis=0, keepdims=True)",
    "np.sum(x.reshape(-1, 2, 3), axis=(0, 1))",
    "np.sum(x.reshape(2, -1, 3), axis=1)",
    "np.sum(x[:, :1], axis=0)",
    "np.sum(x[:, 0])",
    "np.nansum(x, axis=0)",
    "np.average(x, axis=0)",
    "np.linalg.norm(x, axis=0)",
    "np.einsum('ij->j', x)",
    "np.einsum('ij,ij->j', x, x)",
    "np.log(np.sum(np.exp(x), axis=0))",
    "np.sum(np.where(x > 0.5, x, 0.5), axis=0)",
    "np.sum(np.sqrt(x) / x, axis=0)",
    "np.trapezoid(x, axis=0)",
    "np.sum(np.broadcast_to(x[0], x.shape), axis=0)",
    "np.mean(x, axis=0, where=x > 0.0)",
    "np.count_nonzero(x > 0.25, axis=0) + np.sum(x, axis=0)",
    "np.sum(np.ones_like(x) * x[0, 0], axis=0)",
    "np.bincount(np.arange(x.shape[0]) % 2, weights=x[:, 0])",
]
_OF_SUMS = {
    "vjp": "lambda x: ft.vjp(f, x)[0]",
    "jvp": "lambda x: ft.jvp(f, (x,), (x,))[1]",
    "jit": 'lambda x: ft.jit(f, backend="numpy")(x)',
    "native": 'lambda x: ft.jit(f, backend="native")(x)',
    "vmap": "lambda x: ft.vmap(f)(np.stack([x, x]))",
    "vmap last": "lambda x: ft.vmap(f, in_axes=-1)(np.stack([x, x], axis=-1))",
    "graph": "lambda x: ft.make_graph(f)(x)(x)",
    "linearize": "lambda x: ft.linearize(f, x)[1](x)",
    "checkpoint": "lambda x: ft.jvp(ft.checkpoint(f), (x,), (x,))[0]",
}
# Functions of an argument b, which is broadcast against x.
_BROADCAST = [
    "np.sum((x + b) * x)",
    "np.sum(x * b)",
    "np.sum(np.exp(-(x + b)))",
    "np.sum((x + b) ** 2)",
    "np.mean((x + b) ** 2) * 1.0",
    "np.sum(np.broadcast_to(b, x.shape) * x)",
    "np.sum(x * b[None, :])",
    "np.sum(x / (1.0 + b))",
    "np.sum(np.maximum(x + b, 0.0))",
    "np.sum(np.where(x > 0.0, b, x))",
    "np.sum(np.tile(b, (x.shape[0], 1)) * x)",
    "np.sum(np.repeat(b[None], x.shape[0], axis=0) * x)",
    "np.sum(b[np.arange(x.shape[0]) % 3] * x[:, 0])",
    "np.sum(np.take(b, np.zeros(x.shape[0], int)) * x[:, 0])",
    "np.sum(b[0] * x)",
    "np.sum(np.sum(b) * x)",
    "np.sum(ft.vmap(lambda row: row * b)(x))",
    "np.sum(ft.vmap(lambda row, b: row + b * row, in_axes=(0, None))(x, b))",
    "np.sum(ft.vmap(lambda row: np.sum(row * b))(x))",
    "np.sum(np.einsum('ij,j->ij', x, b))",
    "np.sum(np.stack([x + b, x * b]))",
    "np.sum(np.concatenate([x + b, x]))",
    "np.sum((x.T * b[:, None]).T)",
    "np.sum(np.multiply(x, b, dtype=x.dtype))",
    "np.sum(np.outer(x[:, 0], b))",
    "np.sum(np.log1p(np.exp(x + b)))",
]
_OF_BROADCAST = {
    "grad": "ft.grad(f)(b, x)",
    "jit of grad": 'ft.jit(ft.grad(f), backend="numpy")(b, x)',
    "native grad": 'ft.jit(ft.grad(f), backend="native")(b, x)',
    "grad of jit": 'ft.grad(ft.jit(f, backend="numpy"))(b, x)',
    "graph of grad": "ft.make_graph(ft.grad(f))(b, x)(b, x)",
    "hvp": "ft.hvp(lambda b: f(b, x) ** 2 / x.shape[0], (b,), (b,))",
    "vmap of grad": "ft.vmap(ft.grad(f), in_axes=(0, None))(np.stack([b, b]), x)",
    "grad of checkpoint": "ft.grad(ft.checkpoint(f))(b, x)",
}
_COLLECTIVES = [
    "ft.vmap(lambda r: ft.psum(r, 'i'), axis_name='i', out_axes=None)(x)",
    "ft.vmap(lambda r: ft.pmean(r, 'i'), axis_name='i', out_axes=None)(x)",
    "ft.vmap(np.sum, in_axes=1)(x)",
    "ft.vmap(np.sum)(x.T)",
    "ft.vmap(lambda c: np.sum(c[:, None] * 1.0, axis=0), in_axes=1)(x)",
]
_DATA = [
    "np.full((n, 3), 0.1)",
    "np.random.default_rng(0).uniform(0.1, 1.0, (n, 3))",
    "np.full((n, 3), 1 / 3)",
    "np.asfortranarray(np.random.default_rng(0).uniform(0.1, 1.0, (n, 3)))",
    "np.random.default_rng(0).uniform(0.1, 1.0, (3, n)).T",
    "1.0 / np.arange(1.0, 3 * n + 1).reshape(n, 3) ** 0.5",
]


def write(chooser: Chooser) -> Probe:
    half = chooser.chance(15)
    n = chooser.pick([4096, 8192]) if half else chooser.pick([30_000, 60_000, 200_000])
    data = chooser.pick(_DATA)
    dtype, tolerance = ("np.float16", "2e-2") if half else ("np.float32", "5e-6")
    form = chooser.weighted([(5, "sums"), (5, "broadcast"), (1, "collectives")])
    if form == "sums":
        name = chooser.pick(list(_OF_SUMS))
        definition = f"f = lambda x: {chooser.pick(_SUMS)}\n"
        call = f"call = {_OF_SUMS[name]}"
        given = "x"
    elif form == "broadcast":
        name = chooser.pick(list(_OF_BROADCAST))
        definition = f"f = lambda b, x: {chooser.pick(_BROADCAST)}\nb = np.array([0.3, 0.2, 0.4])\n"
        call = f"call = lambda b, x: {_OF_BROADCAST[name]}"
        given = "b, x"
    else:
        name, definition, given = form, "", "x"
        call = f"call = lambda x: {chooser.pick(_COLLECTIVES)}"
    if half and ("hvp" in name or "** 2" in definition):
        raise RejectedError
    if "native" in name and chooser.chance(50):
        raise RejectedError
    text = f"""
n = {n}
x = {data}
{definition}{call}
laws.accurate_sums(call, {dtype}, {tolerance}, {given})
"""
    return probe(text, form, name, dtype)
