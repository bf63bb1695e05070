"""Compiled speed: functrans.jit against jax.jit, torch and hand-written NumPy, in one run.

    python benchmarks/compiled.py [--quick] [--only KEY,KEY] [--json FILE]

Every contestant runs the same mathematics in the same dtypes on all processors, and answers are
compared before anything is timed. Two times count: that of a call, and that of the first call, which
traces and compiles. The last table says how far the work is from the limits of the machine: the bytes
of arguments and results against a measured copy, and the flops of matrix products against a measured
product. How samples are taken is in timing.py.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_ENABLE_X64"] = "1"

import numpy as np

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.problems import (
    mlp_gradient_by_hand,
    mlp_loss,
    mlp_problem,
    rosenbrock,
    scalar_chain,
)
from benchmarks.timing import Thunk, Timing, measure

NATIVE, NUMPY, JAX, TORCH, HAND = "functrans", "functrans-numpy", "jax.jit", "torch", "numpy"

# --------------------------------------------------------------------------------------
# The contestants.


class Functrans:
    """functrans.jit, with one of its backends."""

    def __init__(self, name: str, backend: str) -> None:
        import functrans

        self.name, self.backend, self.library = name, backend, functrans
        self.xp: Any = np

    def array(self, value: Any) -> Any:
        return value

    def jit(self, f: Any) -> Any:
        return self.library.jit(f, backend=self.backend)

    def __getattr__(self, name: str) -> Any:  # grad, vmap, value_and_grad, hessian
        return getattr(self.library, name)

    def hvp(self, f: Any) -> Any:
        return lambda x, v: self.library.hvp(f, (x,), (v,))

    def wait(self, result: Any) -> Any:
        return result


class Jax:
    name = JAX

    def __init__(self) -> None:
        import jax
        import jax.numpy

        self.library = jax
        self.xp: Any = jax.numpy

    def array(self, value: Any) -> Any:
        return self.library.tree.map(self.xp.asarray, value)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.library, name)

    def hvp(self, f: Any) -> Any:
        return lambda x, v: self.library.jvp(self.library.grad(f), (x,), (v,))[1]

    def wait(self, result: Any) -> Any:
        return self.library.block_until_ready(result)


def torch_mlp(params: Any, inputs: Any, targets: Any) -> Thunk:
    """The gradient of the network with torch."""
    import torch

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    leaves = [torch.tensor(part, requires_grad=True) for pair in params for part in pair]
    x, y = torch.tensor(inputs), torch.tensor(targets)

    def backward() -> Any:
        for leaf in leaves:
            leaf.grad = None
        mlp_loss(torch, list(zip(leaves[::2], leaves[1::2], strict=True)), x, y).backward()
        return [leaf.grad for leaf in leaves]

    return backward


# --------------------------------------------------------------------------------------
# The mathematics. `xp` is the array namespace of the contestant.


def elementwise(xp: Any, x: Any) -> Any:
    return xp.sum(xp.tanh(x) * xp.exp(-x * x) + xp.sin(x) * x)


def logistic(xp: Any, w: Any, x: Any, y: Any) -> Any:
    return xp.mean(xp.logaddexp(0.0, -y * (x @ w)))


def lstm(xp: Any, params: Any, xs: Any) -> Any:
    """One hundred steps, unrolled."""
    w_in, w_hidden, bias = params
    sigmoid = lambda z: 1 / (1 + xp.exp(-z))
    hidden = cell = xp.zeros_like(w_hidden[:, 0])
    for x in xs:
        gates = x @ w_in + hidden @ w_hidden + bias
        keep_in, keep, out, new = xp.split(gates, 4)
        cell = sigmoid(keep) * cell + sigmoid(keep_in) * xp.tanh(new)
        hidden = sigmoid(out) * xp.tanh(cell)
    return xp.sum(hidden**2)


def softmax(xp: Any, x: Any, weights: Any) -> Any:
    powers = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return xp.sum(weights * powers / xp.sum(powers, axis=-1, keepdims=True))


def layer_norm(xp: Any, x: Any, gain: Any, shift: Any) -> Any:
    mean, var = xp.mean(x, axis=-1, keepdims=True), xp.var(x, axis=-1, keepdims=True)
    return xp.sum(((x - mean) / xp.sqrt(var + 1e-5) * gain + shift) ** 2)


def attention(xp: Any, q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.T / 8.0
    powers = xp.exp(scores - xp.max(scores, axis=-1, keepdims=True))
    return xp.sum((powers / xp.sum(powers, axis=-1, keepdims=True) @ v) ** 2)


# --------------------------------------------------------------------------------------
# The cases.


@dataclass(frozen=True)
class Case:
    """One row: `build(lib)` returns a new function to compile; `data` has its arguments."""

    key: str
    title: str
    build: Callable[[Any], Any]
    data: tuple[Any, ...]
    limit: float  # of the time of a call, against jax.jit
    torch: bool = False  # whether torch and NumPy by hand take part, and torch is a limit, too
    flops: float = 0.0  # of its matrix products
    tolerance: float = 1e-8


def mlp_cases(key: str, sizes: tuple[int, ...], batch: int, dtype: Any, limit: float) -> list[Case]:
    data = mlp_problem(sizes, batch, dtype)
    name = f"MLP {'-'.join(map(str, sizes))}, batch {batch}, {np.dtype(dtype).name}"
    flops = 6 * batch * sum(n * m for n, m in pairwise(sizes)) - 2 * batch * sizes[0] * sizes[1]
    tolerance = 1e-8 if dtype is np.float64 else 1e-3
    cases = [
        Case(
            f"{key}-grad",
            name,
            lambda lib: lib.grad(lambda p, x, y: mlp_loss(lib.xp, p, x, y)),
            data,
            limit,
            torch=True,
            flops=flops,
            tolerance=tolerance,
        )
    ]
    if dtype is np.float64:
        cases.append(
            Case(
                f"{key}-per-example",
                f"{name}, per-example gradients",
                lambda lib: lib.vmap(
                    lib.grad(lambda p, x, y: mlp_loss(lib.xp, p, x, y)), in_axes=(None, 0, 0)
                ),
                data,
                0.7,
            )
        )
    return cases


def all_cases() -> list[Case]:
    draw = np.random.default_rng(1).standard_normal
    x, head = draw(1_000_000), [draw((128, 64)) for _ in range(3)]
    of = lambda f, n=1: (
        lambda lib: lib.grad(
            lambda *args: f(lib.xp, *args), argnums=tuple(range(n)) if n > 1 else 0
        )
    )
    recurrent = ((draw((8, 64)) * 0.1, draw((16, 64)) * 0.1, draw(64)), draw((100, 8)))
    regression = (draw(100) * 0.1, draw((10_000, 100)), np.sign(draw(10_000)))
    return [
        Case("chain", "scalar chain, 60 operations", of(scalar_chain), (np.float64(0.7),), 0.3),
        *mlp_cases("small-mlp", (2, 16, 16, 2), 16, np.float64, 0.5),
        *mlp_cases("large-mlp", (784, 256, 256, 10), 128, np.float64, 1.0),
        *mlp_cases("large-mlp-32", (784, 256, 256, 10), 128, np.float32, 1.0),
        Case("elementwise", "elementwise, 1e6, float64", of(elementwise), (x,), 0.35),
        Case(
            "elementwise-32",
            "elementwise, 1e6, float32",
            of(elementwise),
            (x.astype(np.float32),),
            0.35,
            tolerance=1e-4,
        ),
        Case(
            "logistic",
            "logistic regression 10,000 x 100, value and gradient",
            lambda lib: lib.value_and_grad(lambda *args: logistic(lib.xp, *args)),
            regression,
            0.8,
        ),
        Case(
            "hvp",
            "Rosenbrock n = 1000, hvp",
            lambda lib: lib.hvp(lambda x: rosenbrock(lib.xp, x)),
            (draw(1000), draw(1000)),
            0.6,
        ),
        Case(
            "hessian",
            "Rosenbrock n = 1000, hessian",
            lambda lib: lib.hessian(lambda x: rosenbrock(lib.xp, x)),
            (draw(1000),),
            0.6,
        ),
        Case("lstm", "LSTM, 100 steps unrolled", of(lstm), recurrent, 0.8),
        Case("softmax", "softmax 128 x 64", of(softmax), (head[0], head[1]), 0.8),
        Case("layer-norm", "layer norm 128 x 64", of(layer_norm, 3), (head[0], *head[1][:2]), 0.8),
        Case("attention", "attention head 128 x 64", of(attention, 3), tuple(head), 0.8),
    ]


# --------------------------------------------------------------------------------------
# Running.

FIRST_LIMIT = 0.4


@dataclass
class Row:
    case: Case
    calls: dict[str, Timing]
    firsts: dict[str, float]  # seconds of the first call, the best of some
    errors: list[str]

    def ratio(self, other: str) -> float | None:
        if NATIVE not in self.calls or other not in self.calls:
            return None
        return self.calls[NATIVE].best / self.calls[other].best

    def first_ratio(self) -> float | None:
        if NATIVE not in self.firsts or JAX not in self.firsts:
            return None
        return self.firsts[NATIVE] / self.firsts[JAX]


def leaves(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [leaf for part in value for leaf in leaves(part)]
    return [value]


def run_case(case: Case, contestants: list[Any], quick: bool) -> Row:
    thunks: dict[str, Thunk] = {}
    firsts: dict[str, float] = {}
    errors: list[str] = []
    reference: list[Any] = []
    repeats = 1 if quick or case.key == "lstm" else 3
    arguments = {lib.name: tuple(map(lib.array, case.data)) for lib in contestants}
    for _ in range(repeats):
        for lib in contestants:  # in turns, like the calls
            data = arguments[lib.name]
            start = time.perf_counter()
            compiled = lib.jit(case.build(lib))
            answer = lib.wait(compiled(*data))
            firsts[lib.name] = min(firsts.get(lib.name, 1e9), time.perf_counter() - start)
            thunks[lib.name] = lambda lib=lib, f=compiled, data=data: lib.wait(f(*data))  # type: ignore[misc]
            found = [np.asarray(leaf) for leaf in leaves(answer)]
            reference = reference or found
            if not _agree(reference, found, case.tolerance):
                errors.append(f"{case.title}: {lib.name} disagrees with {contestants[0].name}")
    if case.torch:
        thunks[HAND] = lambda: mlp_gradient_by_hand(*case.data)
        if find_spec("torch") is not None:
            thunks[TORCH] = torch_mlp(*case.data)
        for name in (HAND, TORCH):
            if name in thunks:
                found = [np.asarray(leaf) for leaf in leaves(thunks[name]())]
                if not _agree(reference, found, case.tolerance):
                    errors.append(f"{case.title}: {name} disagrees")
    settings: dict[str, Any] = {"seconds": 1.0, "min_samples": 5}
    if quick:
        settings = {"seconds": 0.02, "min_samples": 2, "warmup_seconds": 0.0}
    return Row(case, measure(thunks, **settings), firsts, errors)


def _agree(expected: list[Any], found: list[Any], tolerance: float) -> bool:
    return len(expected) == len(found) and all(
        a.shape == b.shape and np.allclose(a, b, rtol=tolerance, atol=tolerance)
        for a, b in zip(expected, found, strict=True)
    )


# --------------------------------------------------------------------------------------
# Printing.


def print_table(header: list[str], lines: list[list[str]]) -> None:
    widths = [max(len(line[i]) for line in [header, *lines]) for i in range(len(header))]
    for line in [header, ["-" * width for width in widths], *lines]:
        cells = [line[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        print("  ".join(cells).rstrip())
    print()


def number(value: float | None, form: str = "{:.3f}") -> str:
    return "-" if value is None else form.format(value)


def verdict(ratio: float | None, limit: float, quick: bool) -> str:
    if ratio is None:
        return "not measured"
    return "not judged (quick)" if quick else "reached" if ratio <= limit else "MISSED"


def print_calls(rows: list[Row], quick: bool) -> None:
    names = [NATIVE, NUMPY, JAX, TORCH, HAND]
    print("Best time of one call, in microseconds; ratios are ours to jax.jit and to torch")
    lines = []
    for row in rows:
        times = [row.calls[n].best * 1e6 if n in row.calls else None for n in names]
        judged = verdict(row.ratio(JAX), row.case.limit, quick)
        if row.case.torch and row.case.limit == 1.0:
            judged += f", torch {verdict(row.ratio(TORCH), 1.0, quick)}"
        lines.append(
            [
                row.case.title,
                *(number(t, "{:,.1f}") for t in times),
                number(row.ratio(JAX)),
                number(row.ratio(TORCH)),
                f"<= {row.case.limit:g}: {judged}",
            ]
        )
    print_table(["case", *names, "/ jax.jit", "/ torch", "target"], lines)


def print_firsts(rows: list[Row], quick: bool) -> None:
    print("First call (trace and compile), in milliseconds")
    names = [NATIVE, NUMPY, JAX]
    lines = [
        [
            row.case.title,
            *(number(row.firsts.get(n, None), "{:.4f}") for n in names),
            number(row.first_ratio()),
            f"<= {FIRST_LIMIT:g}: {verdict(row.first_ratio(), FIRST_LIMIT, quick)}",
        ]
        for row in rows
    ]
    for line in lines:
        line[1:4] = ["-" if t == "-" else f"{float(t) * 1e3:,.1f}" for t in line[1:4]]
    print_table(["case", *names, "/ jax.jit", "target"], lines)


def print_limits(rows: list[Row]) -> None:
    """How close large computations are to the peak performance of the machine."""
    source, target = np.ones(1 << 22), np.empty(1 << 22)
    square = np.ones((512, 512))
    limits = measure(
        {"copy": lambda: np.copyto(target, source), "gemm": lambda: square @ square},
        seconds=0.3,
    )
    bandwidth = 2 * source.nbytes / limits["copy"].best
    speed = 2 * 512**3 / limits["gemm"].best
    print(
        f"Distance to the limits: copy {bandwidth / 1e9:.1f} GB/s, gemm {speed / 1e9:.1f} Gflop/s"
    )
    lines = []
    for row in rows:
        moved = sum(np.asarray(leaf).nbytes for leaf in leaves(row.case.data)) * 2
        if NATIVE not in row.calls or (moved < 1 << 20 and not row.case.flops):
            continue
        seconds = row.calls[NATIVE].best
        lines.append(
            [
                row.case.title,
                f"{moved / seconds / bandwidth:.2f}",
                f"{row.case.flops / seconds / speed:.2f}" if row.case.flops else "-",
            ]
        )
    print_table(["case", "of the copy's bandwidth", "of gemm's speed"], lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="Compiled speed of functrans and its peers.")
    parser.add_argument("--quick", action="store_true", help="few samples, to check that it runs")
    parser.add_argument("--only", help="comma-separated keys of cases")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="also write the numbers to this file"
    )
    options = parser.parse_args()
    contestants: list[Any] = []
    if find_spec("llvmlite") is not None:
        contestants.append(Functrans(NATIVE, "native"))
    contestants.append(Functrans(NUMPY, "numpy"))
    if find_spec("jax") is not None:
        contestants.append(Jax())
    packages = [p for p in ("numpy", "llvmlite", "jax", "torch") if find_spec(p) is not None]
    print(f"Python {platform.python_version()}, {os.cpu_count()} processors")
    print(", ".join(f"{p} {version(p)}" for p in packages), end="\n\n")
    for lib in contestants:  # loading a library is not part of a first call
        lib.wait(lib.jit(lambda x: x + 1.0)(lib.array(np.ones(3))))
    chosen = set(options.only.split(",")) if options.only else None
    rows = []
    for case in all_cases():
        if options.quick and case.key == "lstm":
            continue  # JAX needs minutes to compile it
        if chosen is None or case.key in chosen:
            print(f"measuring {case.title}", file=sys.stderr, flush=True)
            rows.append(run_case(case, contestants, options.quick))
    print_calls(rows, options.quick)
    print_firsts(rows, options.quick)
    print_limits(rows)
    errors = [error for row in rows for error in row.errors]
    for error in errors:
        print(f"ERROR  {error}")
    if options.json:
        found = {
            row.case.key: {
                "title": row.case.title,
                "call": {name: vars(timing) for name, timing in row.calls.items()},
                "first call": row.firsts,
                "limit": row.case.limit,
                "errors": row.errors,
            }
            for row in rows
        }
        options.json.write_text(json.dumps(found, indent=2) + "\n")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
