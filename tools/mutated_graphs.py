"""Equations of all primitives with one thing changed; test_mutated_graphs.py runs this in its own process.

python -m tools.mutated_graphs [NUMBER OF]: does part NUMBER of OF, prints what is wrong, and a count.

Whatever `Graph.check` lets pass must run, and give what the graph says, by NumPy and as machine code.
"""

import random
import sys
import warnings

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from scipy import special

import functrans as ft
import functrans.scipy.linalg as linalg
from functrans.control.procedures import Procedure
from functrans.core.shapes import ArraySpec, spec_of
from functrans.graph.graph import Equation, Graph, Variable
from tests.support.cases import CASES
from tests.support.cases_numpy import NUMPY_CASES

DTYPES = [
    np.dtype(name) for name in ("?", "i1", "i4", "i8", "u1", "u4", "f2", "f4", "f8", "c8", "c16")
]
EACH = 3  # equations of one primitive
VALUES = (-1, 0, 1, 2, 3, 100, True, 1.5, None, "x", (), (0,), (1, 0), slice(None), Ellipsis)
# Errors that depend on values: an index out of range, a matrix without an inverse.
OF_VALUES = (
    *("out of bounds", "out of range", "coordinates array", "cannot unravel"),
    *("Singular matrix", "positive definite", "did not converge", "infs or NaNs"),
)


# Programs.

X = np.linspace(0.1, 0.9, 6)
A = np.array([[2.0, 0.3, 0.1], [0.4, 3.0, 0.2], [0.1, 0.5, 4.0]])
KEY = ft.random.key(3)
MORE = [
    (lambda x: ft.scan(lambda c, y: (c * y, c + y), x[0], x), (X,)),
    (lambda x: ft.fori_loop(0, 3, lambda k, v: v * 2.0 + k, x), (X,)),
    (lambda x: ft.while_loop(lambda v: np.sum(v) < 9.0, lambda v: v * 2.0, x), (X,)),
    (lambda x: ft.cond(np.sum(x) > 0, np.sin, np.cos, x), (X,)),
    (lambda x: ft.switch(np.argmax(x), [np.sin, np.cos, np.tanh], x), (X,)),
    (ft.grad(lambda x: np.sum(x[np.array([0, 2, 0])] * x[1:4])), (X,)),
    (ft.grad(lambda x: np.sum(x[1:] * x[:-1])), (X,)),
    (lambda x, k: np.sum(x[:, k] * x[:, :2]), (A, np.array([0, 2]))),
    (ft.hessian(lambda a: np.sum(np.linalg.eigvalsh(a + a.T) ** 3)), (A,)),
    (ft.grad(lambda a: np.sum(np.linalg.eigh(a + a.T)[1] ** 3)), (A,)),
    (ft.grad(lambda a: np.sum(np.linalg.svd(a)[0] ** 3)), (A,)),
    (ft.hessian(lambda a: np.sum(np.linalg.svd(a, compute_uv=False) ** 3)), (A,)),
    (ft.grad(lambda a: np.sum(np.linalg.qr(a, mode="complete")[0] ** 3)), (A[:, :2],)),
    (lambda a: (np.linalg.det(a), np.linalg.slogdet(a), np.linalg.cholesky(a @ a.T)), (A,)),
    (lambda a, b: (np.linalg.solve(a, b), np.linalg.inv(a), np.linalg.pinv(a)), (A, A[:, :2])),
    (lambda a: np.abs(np.linalg.eig(a.astype(complex))[0]), (A,)),
    (lambda x: (np.fft.fft(x), np.fft.rfft(x), np.fft.irfft(x.astype(complex))), (X,)),
    (lambda k: (np.packbits(k), np.unpackbits(k)), (np.arange(9, dtype=np.uint8),)),
    (lambda k: ft.random.normal(k, (2, 3)), (KEY,)),
    (lambda k: ft.random.poisson(k, np.full(3, 2.0)), (KEY,)),
    (lambda k: ft.random.gamma(k, np.full(3, 2.0)), (KEY,)),
    (lambda x: (np.median(x), np.maximum.accumulate(x), np.partition(x, 2)), (X,)),
    (lambda x: (np.cumsum(x), np.cumprod(x), np.convolve(x, x)), (X,)),
    (lambda x: np.searchsorted(x, x[:2]), (X,)),
    (lambda x: np.einsum("i,ij,j->i", x[:3], x[:3, None] * x[:4], x[:4]), (X,)),
]

S = np.array([[2.0, 0.3], [0.3, 1.0]])
SPECIAL = (special.gammaln, special.erf, special.expit, special.i0, special.airy, special.sici)
MORE += [(function, (X,)) for function in SPECIAL]
MORE += [
    (lambda x, y: (special.beta(x, y), special.xlogy(x, y), special.gammainc(x, y)), (X, X)),
    (ft.grad(lambda a: np.sum(np.abs(np.linalg.eig(a.astype(complex))[0]))), (A,)),
    (ft.hessian(lambda a: np.sum(np.linalg.eigh(a + a.T)[1] ** 3)), (A,)),
    (ft.grad(lambda a: np.sum(np.linalg.qr(a)[0] ** 3)), (A[:, :2],)),
    (ft.grad(lambda a: np.sum(np.linalg.svd(a)[2] ** 3)), (A[:2],)),
    (linalg.expm, (A,)),
    (linalg.sqrtm, (S,)),
    (lambda a: linalg.lu_factor(a), (A,)),
    (ft.grad(lambda a: np.sum(linalg.lu(a)[1])), (A,)),
    (lambda a, b: linalg.solve_triangular(a, b, lower=True), (A, A[:, :2])),
    (lambda a, b, q: linalg.solve_sylvester(a, b, q), (A, S, A[:, :2])),
    (lambda a: linalg.polar(a)[0], (A,)),
]


def _assigned(x):
    x = x.copy()
    x[1:3] = x[0]
    x[np.array([0, 0, 4])] = x[:3] * 2.0
    return x * x


def _put(x, k):
    out = x * 1.0
    out[k] = x[:3]
    return out


MORE += [(_assigned, (X,)), (ft.grad(lambda x: np.sum(_assigned(x))), (X,))]
MORE += [(ft.grad(lambda x, k: np.sum(_put(x, k) ** 2)), (X, np.array([0, 2, 0])))]


def _sampled(case):
    """Arguments of a case."""
    found = []

    @settings(
        max_examples=1,
        database=None,
        derandomize=True,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case.shapes)
    def draw(shapes):
        found.append(case.sample(np.random.default_rng(0), shapes))

    draw()
    return found[0]


def programs():
    yield from MORE
    for case in [*CASES, *NUMPY_CASES]:
        if not case.needs_values:
            args = _sampled(case)
            yield case.function, args
            if case.differentiable:
                reals, given_args = case.of_reals(args)
                yield ft.grad(lambda *xs, f=reals: np.sum(np.real(f(*xs)))), given_args


def equations():
    """A few equations of each primitive, each with values of its inputs."""
    found = {}
    for function, args in programs():
        try:
            graph = ft.make_graph(function)(*args)
        except ft.errors.FunctransError:
            continue
        values = dict(graph.constants)
        values |= zip(graph.inputs, ft.tree.leaves(args), strict=True)
        for equation in graph.equations:
            given_values = [values[v] for v in equation.inputs]
            results = equation.primitive(*given_values, **equation.params)
            results = results if equation.primitive.outputs else (results,)
            values |= zip(equation.outputs, results, strict=True)
            kept = found.setdefault(equation.primitive, [])
            if len(kept) < EACH:
                kept.append((equation, given_values))
    return [(*pair, name.name) for name, pairs in found.items() for pair in pairs]


# Changes.


def _other_specs(draw, spec):
    shape = spec.shape
    yield ArraySpec(shape, draw.choice(DTYPES))
    yield ArraySpec(shape, draw.choice(DTYPES))
    yield ArraySpec((*shape, 1), spec.dtype)
    yield ArraySpec((2, *shape), spec.dtype)
    yield ArraySpec(shape[1:], spec.dtype)
    for k in range(len(shape)):
        for n in (0, 1, shape[k] + 1):
            yield ArraySpec((*shape[:k], n, *shape[k + 1 :]), spec.dtype)
    if not shape:
        yield ArraySpec((), spec.dtype, not spec.weak)


def _other_values(draw, value):
    yield from draw.sample(VALUES, 4)
    if isinstance(value, (bool, np.bool_)):
        yield not value
    elif isinstance(value, (int, np.integer)):
        yield from (value + 1, value - 1, -value - 1)
    elif isinstance(value, (tuple, list)):
        kind = type(value)
        yield kind(value[1:])
        yield kind([*value, *value[:1]])
        yield kind(value[::-1])
        for k in range(len(value)):
            for other in _other_values(draw, value[k]):
                yield kind([*value[:k], other, *value[k + 1 :]])
    elif isinstance(value, slice):
        for other in draw.sample(VALUES, 3):
            yield slice(other, value.stop, value.step)
            yield slice(value.start, other, value.step)
            yield slice(value.start, value.stop, other)
    elif isinstance(value, str):
        yield from ("", value[1:], value[::-1], value + value, "a->a", "L")
    elif isinstance(value, np.dtype):
        yield from (*draw.sample(DTYPES, 3), "f8", np.dtype("O"), np.dtype("M8[s]"), np.dtype("U3"))
    elif isinstance(value, Procedure):
        graph = value.graph
        for k in range(len(graph.outputs)):
            yield Procedure(_like(graph, outputs=graph.outputs[:k] + graph.outputs[k + 1 :]))
        yield Procedure(_like(graph, outputs=graph.outputs[::-1]))
        yield Procedure(_like(graph, inputs=graph.inputs[::-1]))


def _like(graph, **changes):
    parts = {key: getattr(graph, key) for key in ("inputs", "constants", "equations", "outputs")}
    return Graph(**(parts | changes))


def changes(draw, equation):
    """(specs of the inputs, parameters, specs of the outputs or None for those that fit)."""
    specs = [v.spec for v in equation.inputs]
    outs = [v.spec for v in equation.outputs]
    params = equation.params
    for k, spec in enumerate(specs):
        for other in _other_specs(draw, spec):
            yield [*specs[:k], other, *specs[k + 1 :]], params, None
    for k, spec in enumerate(outs):
        for other in _other_specs(draw, spec):
            yield specs, params, [*outs[:k], other, *outs[k + 1 :]]
    yield specs, params, outs[1:]
    yield specs, params, [*outs, outs[0]]
    for other in (specs[1:], [*specs, specs[-1]], specs[::-1], specs[:1] * len(specs)):
        yield other, params, None
    yield specs, params | {"out": None}, None
    yield specs, params | {"dtype": np.dtype("f4")}, None
    for key, value in params.items():
        yield specs, {k: v for k, v in params.items() if k != key}, None
        for other in _other_values(draw, value):
            yield specs, params | {key: other}, None


def _graph(primitive, specs, params, outs):
    """A graph of one equation; None if its outputs cannot be known."""
    if outs is None:
        try:
            outs = primitive.shape(tuple(specs), params)
        except Exception:
            return None
        outs = list(outs) if primitive.outputs else [outs]
    inputs, outputs = list(map(Variable, specs)), tuple(map(Variable, outs))
    return Graph(inputs, {}, [Equation(primitive, tuple(inputs), params, outputs)], list(outputs))


# Judging.


def _fitted(spec, values, k):
    """A value of a spec, of the numbers that an input has had."""
    old = np.asarray(values[k] if k < len(values) else 1)
    if spec.dtype.kind != "c" and old.dtype.kind == "c":
        old = old.real
    new = (
        np.resize(old, spec.shape).astype(spec.dtype)
        if old.size
        else np.ones(spec.shape, spec.dtype)
    )
    return new.item() if spec.weak else new


def _differs(found, stated):
    """Whether a value is not what a spec states; NumPy's scalars and arrays without axes are alike."""
    spec = spec_of(found)
    return (spec.shape, spec.dtype) != (stated.shape, stated.dtype)


def judge(graph, values):
    """The mistake in a graph; None for a graph that is refused or right."""
    if graph.equations[0].primitive.name == "power" and graph.inputs[0].spec.dtype == bool:
        return None  # here NumPy's dtype depends on the value of the exponent
    try:
        graph.check()
    except ft.errors.GraphError:
        return None
    if any(v.spec.size > 1 << 20 for v in (*graph.inputs, *graph.outputs)):
        return None
    args = [_fitted(v.spec, values, k) for k, v in enumerate(graph.inputs)]
    by_numpy = None
    for way in "numpy", "native":
        run = graph.run if way == "numpy" else ft.jit(lambda *xs: graph.run(list(xs)), backend=way)
        try:
            results = run(args) if way == "numpy" else run(*args)
        except Exception as error:
            if any(words in str(error) for words in OF_VALUES):
                results = None
                continue
            return f"{way}: {type(error).__name__}: {str(error)[:200]}"
        for found, variable in zip(results, graph.outputs, strict=True):
            if _differs(found, variable.spec):
                return f"{way}: {spec_of(found)} is stated as {variable.spec}"
        if way == "numpy":
            by_numpy = results
    if by_numpy is None or results is None:
        return None
    for one, other in zip(by_numpy, results, strict=True):
        if not np.allclose(one, other, rtol=1e-3, atol=1e-5, equal_nan=True):
            return f"native: {other} instead of {one}"
    return None


def main(part, parts):
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    draw = random.Random(part)
    made, wrong, primitives = 0, 0, set()
    for number, (equation, values, name) in enumerate(equations()):
        if number % parts != part:
            continue
        primitives.add(name)
        for specs, params, outs in changes(draw, equation):
            graph = _graph(equation.primitive, specs, params, outs)
            if graph is None:
                continue
            made += 1
            text = f"{name}: {specs} {params} -> {outs}"
            print(text, file=sys.stderr)  # the last one, if it ends the process
            problem = judge(graph, values)
            if problem is not None:
                wrong += 1
                print(f"{text}\n    {problem}", flush=True)
    print(f"{made} graphs of {len(primitives)} primitives, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:] or ("0", "1"))))
