"""Compiled loops, with their gradients, against jax.jit with scan and while_loop.

    python benchmarks/loops.py [--quick] [--only NAME ...]

Each problem is written once, for NumPy and functrans or for jax.numpy and JAX. All contestants run on one
thread and take turns; answers are compared before anything is timed. `particle` and `saddle` are those of
GradBench: a trajectory in a field of charges, and a minimum of a maximum, found by gradient descent with a
step that adapts; their names end with the modes of the outer and the inner derivative, r or f. JAX has no
reverse mode for while_loop, so it takes forward mode there; the answer is the same.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

# These are read when a library loads, so they come before the import of NumPy.
for variable in ("OMP", "OPENBLAS", "MKL", "VECLIB_MAXIMUM", "NUMEXPR", "FUNCTRANS"):
    os.environ[f"{variable}_NUM_THREADS"] = "1"
os.environ["NPROC"] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_ENABLE_X64"] = "1"

import numpy as np

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import functrans
from benchmarks.gradbench import lstm as lstm_problem
from benchmarks.gradbench import ode as ode_problem
from benchmarks.timing import measure

Lib = Any  # xp, scan, while_loop, cond, vmap, grad, jvp, value_and_grad, reverse_through_while


def ours() -> Lib:
    return SimpleNamespace(
        xp=np,
        scan=functrans.scan,
        while_loop=functrans.while_loop,
        cond=lambda p, f, g, x: functrans.cond(p, f, g, x),
        vmap=functrans.vmap,
        jvp=functrans.jvp,
        grad=functrans.grad,
        value_and_grad=functrans.value_and_grad,
        jacfwd=functrans.jacfwd,
        jit=functrans.jit,
        through_while=functrans.grad,
    )


def theirs() -> Lib:
    import jax
    import jax.numpy as jnp

    return SimpleNamespace(
        xp=jnp,
        scan=jax.lax.scan,
        while_loop=jax.lax.while_loop,
        cond=lambda p, f, g, x: jax.lax.cond(p, f, g, x),
        vmap=jax.vmap,
        jvp=jax.jvp,
        grad=jax.grad,
        value_and_grad=jax.value_and_grad,
        jacfwd=jax.jacfwd,
        jit=jax.jit,
        through_while=jax.jacfwd,
    )


class Problem(NamedTuple):
    """A function to call, made for a library, its arguments, and the ratio to reach."""

    make: Callable[[Lib], Callable[..., Any]]
    data: Callable[[bool], tuple[Any, ...]]  # given whether the run is quick
    limit: float


def draw(*shape: int) -> Any:
    return np.random.default_rng(0).normal(size=shape)


# Loops of known length.


def scalar_scan(lib: Lib) -> Callable[..., Any]:
    def f(x: Any, rows: Any) -> Any:
        last, states = lib.scan(lambda c, r: (lib.xp.sin(c) * 0.9 + r * x, c), x, rows)
        return last + lib.xp.sum(states)

    return lib.value_and_grad(f)


def three_bodies(lib: Lib) -> Callable[..., Any]:
    xp = lib.xp

    def force(q: Any) -> Any:
        apart = q[None, :, :] - q[:, None, :]
        squared = xp.sum(apart * apart, -1) + 1e-2
        return xp.sum(apart / (squared * xp.sqrt(squared))[:, :, None], 1)

    def f(start: Any, hs: Any) -> Any:
        def moved(state: Any, slope: Any, h: Any) -> Any:
            return state[0] + h * slope[0], state[1] + h * slope[1]

        def step(state: Any, h: Any) -> Any:
            slope = lambda s: (s[1], force(s[0]))
            k1 = slope(state)
            k2 = slope(moved(state, k1, h / 2))
            k3 = slope(moved(state, k2, h / 2))
            k4 = slope(moved(state, k3, h))
            total = tuple(a + 2 * b + 2 * c + d for a, b, c, d in zip(k1, k2, k3, k4, strict=True))
            return moved(state, total, h / 6), None

        (q, _), _ = lib.scan(step, (start[0], start[1]), hs)
        return xp.sum(q * q)

    return lib.value_and_grad(f)


def kalman(lib: Lib) -> Callable[..., Any]:
    xp = lib.xp
    move, seen = np.eye(4) + np.diag([0.1, 0.1], 2), np.eye(2, 4)

    def f(theta: Any, ys: Any) -> Any:
        step, noise = move * theta[0], np.eye(4) * 0.01 * theta[1]

        def update(carry: Any, y: Any) -> Any:
            mean, cov, total = carry
            mean, cov = step @ mean, step @ cov @ step.T + noise
            spread = seen @ cov @ seen.T + np.eye(2) * 0.1
            error = y - seen @ mean
            gain = xp.linalg.solve(spread, seen @ cov).T
            fit = error @ xp.linalg.solve(spread, error) + xp.log(xp.linalg.det(spread))
            return (mean + gain @ error, cov - gain @ seen @ cov, total - 0.5 * fit), None

        start = (xp.zeros(4), xp.eye(4), xp.zeros(()))
        return lib.scan(update, start, ys)[0][2]

    return lib.value_and_grad(f)


def heat(lib: Lib) -> Callable[..., Any]:
    xp = lib.xp

    def f(u: Any, ks: Any) -> Any:
        def step(u: Any, k: Any) -> Any:
            inner = u[1:-1, 1:-1]
            around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * inner
            rows = xp.concatenate([u[1:-1, :1], inner + k * around, u[1:-1, -1:]], 1)
            return xp.concatenate([u[:1], rows, u[-1:]], 0), None

        last, _ = lib.scan(step, u, ks)
        return xp.sum(last * last)

    return lib.value_and_grad(f)


def big_lstm(lib: Lib) -> Callable[..., Any]:
    xp, n = lib.xp, 64

    def f(weights: Any, rows: Any) -> Any:
        into, again, bias = weights
        bent = lambda x: 1 / (1 + xp.exp(-x))

        def step(carry: Any, row: Any) -> Any:
            hidden, cell = carry
            gates = row @ into + hidden @ again + bias
            a, b, c, d = (gates[:, k * n : (k + 1) * n] for k in range(4))
            cell = bent(c) * cell + bent(a) * xp.tanh(d)
            return (bent(b) * xp.tanh(cell), cell), None

        (hidden, _), _ = lib.scan(step, (xp.zeros((16, n)), xp.zeros((16, n))), rows)
        return xp.sum(hidden * hidden)

    return lib.value_and_grad(f)


def gaussian_process(lib: Lib) -> Callable[..., Any]:
    xp = lib.xp

    def f(theta: Any, x: Any) -> Any:
        distance = (x[:, None] - x[None, :]) ** 2
        kernel = theta[0] * xp.exp(-distance / theta[1]) + xp.eye(x.shape[0]) * theta[2]
        factor, y = xp.linalg.cholesky(kernel), xp.sin(x)
        fit = y @ xp.linalg.solve(kernel, y)
        return 0.5 * fit + xp.sum(xp.log(xp.diagonal(factor)))

    return lib.value_and_grad(f)


def gradbench(problem: Any) -> Callable[[Lib], Callable[..., Any]]:
    def make(lib: Lib) -> Callable[..., Any]:
        loop = lambda step, carry, rows: lib.scan(lambda c, r: (step(c, r), None), carry, rows)[0]
        bound = SimpleNamespace(xp=lib.xp, loop=loop)
        return lib.value_and_grad(lambda *args: problem.objective(bound, *args))

    return make


# Loops that end by a test.


def _root(lib: Lib) -> Callable[[Any], Any]:
    def root(x: Any) -> Any:
        far = lambda y: lib.xp.abs(y * y - x) > 1e-12 * x
        return lib.while_loop(far, lambda y: (y + x / y) / 2, x)

    return root


def newton(lib: Lib) -> Callable[..., Any]:
    return lambda x: lib.jvp(lib.vmap(_root(lib)), (x,), (x,))


def minimum(lib: Lib, f: Callable[[Any], Any], gradient: Callable[[Any], Any], start: Any) -> Any:
    """The argument at which f is least, by gradient descent."""
    xp = lib.xp
    size = lambda v: xp.sqrt(xp.sum(v * v))

    def state(x: Any, eta: Any, count: Any, over: Any) -> Any:
        return x, f(x), gradient(x), eta, count, over

    def goes_on(s: Any) -> Any:
        return (size(s[2]) > 1e-5) & xp.logical_not(s[5])

    def faster(s: Any) -> Any:
        return s[0], s[1], s[2], 2 * s[3], s[4] * 0, s[5]

    def move(s: Any) -> Any:
        x, value, slope, eta, count, _ = s
        new = x - eta * slope
        close = size(new - x) <= 1e-5
        lower = f(new)

        def accept(_: Any) -> Any:
            return state(new, eta, count + 1.0, close)

        def refuse(_: Any) -> Any:
            return x, value, slope, eta / 2, count * 0, close

        return lib.cond((lower < value) & xp.logical_not(close), accept, refuse, new)

    def step(s: Any) -> Any:
        return lib.cond(s[4] >= 10.0, faster, move, s)

    begin = state(start, xp.sum(start) * 0 + 1e-5, xp.sum(start) * 0, xp.sum(start) > np.inf)
    return lib.while_loop(goes_on, step, begin)[0]


def particle(outer: str, inner: str) -> Callable[[Lib], Callable[..., Any]]:
    def make(lib: Lib) -> Callable[..., Any]:
        xp = lib.xp
        of_field = lib.grad if inner == "r" else lib.jacfwd

        def landing(w: Any) -> Any:
            """Where the particle hits the ground, squared."""
            first = xp.stack([w[0] * 0 + 10.0, 10.0 - w[0]])
            second = xp.stack([w[0] * 0 + 10.0, w[0] * 0])

            def potential(x: Any) -> Any:
                away = lambda c: xp.sqrt(xp.sum((x - c) ** 2))
                return 1 / away(first) + 1 / away(second)

            def fly(s: Any) -> Any:
                x, v = s
                return x + 0.1 * v, v - 0.1 * of_field(potential)(x)

            above = lambda s: (s[0] + 0.1 * s[1])[1] > 0
            start = xp.stack([w[0] * 0, w[0] * 0 + 8.0]), xp.stack([w[0] * 0 + 0.75, w[0] * 0])
            x, v = lib.while_loop(above, fly, start)
            return (x - x[1] / v[1] * v)[0] ** 2

        gradient = lib.through_while(landing) if outer == "r" else lib.jacfwd(landing)
        return lambda w: minimum(lib, landing, gradient, w)

    return make


def saddle(outer: str, inner: str) -> Callable[[Lib], Callable[..., Any]]:
    def make(lib: Lib) -> Callable[..., Any]:
        xp = lib.xp
        of_inner = lib.grad if inner == "r" else lib.jacfwd

        def f(start: Any) -> Any:
            def best_answer(x: Any) -> Any:
                height = lambda y: xp.sum(y * y) - xp.sum(x * x)  # minus the function
                return minimum(lib, height, of_inner(height), start + xp.sum(x) * 0)

            def most(x: Any) -> Any:
                y = best_answer(x)
                return xp.sum(x * x) - xp.sum(y * y)

            gradient = lib.through_while(most) if outer == "r" else lib.jacfwd(most)
            x = minimum(lib, most, gradient, start)
            return x, best_answer(x)

        return f

    return make


MODES = [(outer, inner) for outer in "rf" for inner in "rf"]
PROBLEMS = {
    "scalar scan": Problem(
        scalar_scan, lambda q: (np.float64(0.3), np.linspace(0, 1, 100 if q else 100_000)), 1.5
    ),
    "three bodies": Problem(
        three_bodies, lambda q: (draw(2, 3, 2), np.full(10 if q else 1000, 1e-3)), 0.5
    ),
    "kalman": Problem(kalman, lambda q: (np.array([0.99, 1.0]), draw(5 if q else 500, 2)), 0.5),
    "heat": Problem(heat, lambda q: (draw(128, 128), np.full(5 if q else 200, 0.1)), 0.8),
    "lstm of matrices": Problem(
        big_lstm,
        lambda q: (
            (draw(64, 256) / 10, draw(64, 256) / 10, np.zeros(256)),
            draw(3 if q else 256, 16, 64),
        ),
        1.0,
    ),
    "gaussian process": Problem(
        gaussian_process,
        lambda q: (np.array([1.0, 2.0, 0.1]), np.linspace(0, 10, 20 if q else 500)),
        0.9,
    ),
    **{
        f"lstm l = {l}, c = {c}": Problem(
            gradbench(lstm_problem.PROBLEM),
            lambda q, l=l, c=c: lstm_problem.data(l, 5 if q else c),
            0.9,
        )
        for l, c in ((2, 1024), (6, 4096))
    },
    "ode n = 1,000, s = 100": Problem(
        gradbench(ode_problem.PROBLEM), lambda q: ode_problem.data(1000, 5 if q else 100), 0.9
    ),
    "newton, 10,000 lanes": Problem(
        newton, lambda q: (np.geomspace(0.01, 1e4, 10 if q else 10_000),), 0.7
    ),
    **{
        f"particle {a}{b}": Problem(particle(a, b), lambda q: (np.zeros(1),), 0.9) for a, b in MODES
    },
    **{f"saddle {a}{b}": Problem(saddle(a, b), lambda q: (np.ones(2),), 0.9) for a, b in MODES},
}


def compare(name: str, problem: Problem, quick: bool) -> str:
    """One row: the times of both, their ratio, and those of their first calls."""
    import jax

    calls, firsts, answers = {}, {}, {}
    for who, lib in (("functrans", ours()), ("jax.jit", theirs())):
        arguments = problem.data(quick)
        if who == "jax.jit":
            arguments = jax.tree.map(jax.numpy.asarray, arguments)
        f = lib.jit(problem.make(lib))
        begin = time.perf_counter()
        answers[who] = jax.tree.leaves(jax.block_until_ready(f(*arguments)))
        firsts[who] = time.perf_counter() - begin
        calls[who] = lambda f=f, a=arguments: jax.block_until_ready(f(*a))
    for one, other in zip(*answers.values(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4 if "saddle" in name else 1e-6)
    times = measure(calls, seconds=0.02 if quick else 1.0, min_samples=1 if quick else 5)
    ratio = times["functrans"].best / times["jax.jit"].best
    first = firsts["functrans"] / firsts["jax.jit"]
    verdict = "" if quick or ratio <= problem.limit else "  over"
    micro = [f"{times[who].best * 1e6:12.1f}" for who in calls]
    return f"{name:24}{''.join(micro)}{ratio:10.3f}  (≤ {problem.limit}){first:12.2f}{verdict}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="small sizes, too noisy to judge by")
    parser.add_argument("--only", nargs="+", default=[""], help="problems whose names begin so")
    options = parser.parse_args()
    heads = ("functrans µs", "jax.jit µs", "ratio", "first calls")
    print(f"{'':24}{heads[0]:>12}{heads[1]:>12}{heads[2]:>10}{heads[3]:>21}")
    for name, problem in PROBLEMS.items():
        if name.startswith(tuple(options.only)):
            print(compare(name, problem, options.quick), flush=True)


if __name__ == "__main__":
    main()
