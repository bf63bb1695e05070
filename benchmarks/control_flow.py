"""The eager `scan` of 1,000 small steps, forward and gradient, against Python loops.

    python benchmarks/control_flow.py [--quick] [--no-jax]

The plain loop calls the same body on the same operations, and np.stack for the ys. JAX runs the same loop
without jit; each timing includes block_until_ready. Answers are compared before anything is timed. A step is
s = tanh(w s + x), on numbers or on vectors of 4, and gives its state as y, or nothing.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

# These are read when a library loads, so they come before the import of NumPy.
for variable in ("OMP", "OPENBLAS", "MKL", "VECLIB_MAXIMUM", "NUMEXPR"):
    os.environ[f"{variable}_NUM_THREADS"] = "1"
os.environ["NPROC"] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_ENABLE_X64"] = "1"

import numpy as np

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.timing import Thunk, Timing, measure
from functrans import grad, scan

LIMITS = {"plain loop": 1.1, "JAX loop": 0.5}


def loop(xp: Any) -> Callable[..., Any]:
    """The meaning of `scan`, as a Python loop."""

    def run(body: Callable[..., Any], state: Any, xs: Any) -> Any:
        ys = []
        for x in xs:
            state, y = body(state, x)
            ys.append(y)
        return state, None if ys[0] is None else xp.stack(ys)

    return run


def total(xp: Any, along: Callable[..., Any], gives_ys: bool) -> Callable[..., Any]:
    """A number that depends on all results of the steps."""

    def run(weight: Any, state: Any, xs: Any) -> Any:
        def body(state: Any, x: Any) -> Any:
            state = xp.tanh(weight * state + x)
            return state, state if gives_ys else None

        last, ys = along(body, state, xs)
        return xp.sum(last) + (xp.sum(ys) if gives_ys else 0.0)

    return run


def contestants(size: tuple[int, ...], steps: int, gives_ys: bool, jax: bool) -> Any:
    """The functions to call for the value and for the gradient, by name."""
    arguments = (
        np.full(size, 0.5)[()],
        np.zeros(size)[()],
        np.linspace(0.0, 1.0, steps * int(np.prod(size))).reshape(steps, *size),
    )
    values: dict[str, Thunk] = {}
    gradients: dict[str, Thunk] = {}
    for name, along in (("scan", scan), ("plain loop", loop(np))):
        f = total(np, along, gives_ys)
        values[name] = lambda f=f: f(*arguments)
        gradient = grad(f, (0, 1))
        gradients[name] = lambda gradient=gradient: gradient(*arguments)
    if jax:
        import jax.numpy as jnp
        from jax import grad as jax_grad

        theirs = tuple(map(jnp.asarray, arguments))
        f = total(jnp, loop(jnp), gives_ys)
        values["JAX loop"] = lambda: f(*theirs).block_until_ready()
        slope = jax_grad(f, (0, 1))
        gradients["JAX loop"] = lambda: [g.block_until_ready() for g in slope(*theirs)]
    return {"value": values, "gradient": gradients}


def agree(calls: dict[str, Thunk]) -> None:
    expected: Any = calls["plain loop"]()
    for call in calls.values():
        found: Any = call()
        for one, other in zip(np.atleast_1d(found), np.atleast_1d(expected), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-10)


def row(what: str, times: dict[str, Timing], judge: bool) -> str:
    cells = [f"{times['scan'].best * 1e3:9.2f} ms"]
    for name, limit in LIMITS.items():
        if name in times:
            ratio = times["scan"].best / times[name].best
            verdict = ("" if ratio <= limit else " over") if judge else ""
            cells.append(f"{ratio:.3f}{verdict}")
    return f"{what:32}" + "".join(f"{cell:>22}" for cell in cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--quick", action="store_true", help="few steps and samples, too noisy to judge by"
    )
    parser.add_argument("--no-jax", action="store_true", help="leave JAX out")
    options = parser.parse_args()
    steps = 50 if options.quick else 1000
    jax = not options.no_jax and importlib.util.find_spec("jax") is not None
    heads = [f"/ {name} (≤ {limit})" for name, limit in LIMITS.items() if jax or "JAX" not in name]
    print(f"{f'{steps} steps':32}" + "".join(f"{head:>22}" for head in ("scan", *heads)))
    for size, state in (((), "a number"), ((4,), "a vector of 4")):
        for gives_ys in (False, True):
            both = contestants(size, steps, gives_ys, jax)
            for what, calls in both.items():
                agree(calls)
                times = measure(
                    calls,
                    seconds=0.05 if options.quick else 1.0,
                    min_samples=1 if options.quick else 5,
                )
                print(
                    row(
                        f"{what}, {state}{', ys' if gives_ys else ''}",
                        times,
                        judge=not options.quick,
                    )
                )


if __name__ == "__main__":
    main()
