"""Tensors against PyTorch: small graphs, a training step, the cost of not recording, and memory.

    python benchmarks/tensor.py [--quick] [--json FILE]

Both run the same program, in float32, on two threads; answers are compared before anything is timed. How
samples are taken is in timing.py. Memory is measured in a separate process for each library: the peak of its
resident memory during a step, less what was resident before.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

THREADS = 2

# These are read when a library loads, so they come before the import of NumPy.
for variable in ("OMP", "OPENBLAS", "MKL", "VECLIB_MAXIMUM", "NUMEXPR"):
    os.environ[f"{variable}_NUM_THREADS"] = str(THREADS)

import numpy as np

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.problems import scalar_chain as chain
from benchmarks.timing import Thunk, measure

LIBRARIES = {"functrans": "functrans.torch", "torch": "torch"}


def library(name: str) -> Any:
    torch = importlib.import_module(LIBRARIES[name])
    if name == "torch":
        torch.set_num_threads(THREADS)
    return torch


def numbers(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


# --------------------------------------------------------------------------------------
# The programs. Each returns a thunk that gives an answer to compare.


def scalar_chain(torch: Any) -> Thunk:
    """Sixty operations on a scalar, forward and backward."""
    x = torch.tensor(0.7, requires_grad=True)

    def run() -> Any:
        y = chain(torch, x)
        x.grad = None
        y.backward()
        return x.grad

    return run


def mlp(torch: Any, sizes: tuple[int, ...]) -> Any:
    layers: list[Any] = []
    for seed, (n, m) in enumerate(pairwise(sizes)):
        layer = torch.nn.Linear(n, m)
        with torch.no_grad():
            layer.weight.copy_(torch.tensor(numbers(m, n, seed=seed) / np.sqrt(n)))
            layer.bias.copy_(torch.tensor(numbers(m, seed=seed)))
        layers += [layer, torch.nn.Tanh()]
    return torch.nn.Sequential(*layers[:-1])


def small_network(torch: Any) -> Thunk:
    """A 2-16-16-2 network on 32 examples, forward and backward."""
    model = mlp(torch, (2, 16, 16, 2))
    x, y = torch.tensor(numbers(32, 2, seed=8)), torch.tensor(numbers(32, 2, seed=9))
    parameters = list(model.parameters())

    def run() -> Any:
        for parameter in parameters:
            parameter.grad = None
        ((model(x) - y) ** 2).mean().backward()
        return parameters[0].grad

    return run


def training_step(torch: Any) -> Thunk:
    """A step of a 784-256-256-10 classifier on 64 examples, with SGD."""
    model = mlp(torch, (784, 256, 256, 10))
    x = torch.tensor(numbers(64, 784, seed=8))
    y = torch.tensor(np.random.default_rng(9).integers(0, 10, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loss_fn = torch.nn.CrossEntropyLoss()

    def run() -> Any:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return run


CASES = {
    "scalar chain, 60 operations": (scalar_chain, 0.8),
    "MLP 2-16-16-2, batch 32": (small_network, 0.8),
    "MLP 784-256-256-10, batch 64, training step": (training_step, 1.5),
}


def compare(seconds: float) -> list[dict[str, Any]]:
    rows = []
    for title, (build, limit) in CASES.items():
        thunks = {name: build(library(name)) for name in LIBRARIES}
        answers = [np.asarray(thunk().detach().numpy()) for thunk in thunks.values()]  # type: ignore[attr-defined]
        np.testing.assert_allclose(*answers, rtol=1e-3, atol=1e-5)
        timings = measure(thunks, seconds=seconds)
        ratio = timings["functrans"].best / timings["torch"].best
        rows.append(
            {
                "case": title,
                "functrans": timings["functrans"].best,
                "torch": timings["torch"].best,
                "ratio": ratio,
                "limit": limit,
            }
        )
    return rows


def overhead(seconds: float) -> dict[str, float]:
    """Microseconds per operation above NumPy, where nothing is recorded."""
    torch = library("functrans")
    array = numbers(16)
    x = torch.tensor(array)
    y = torch.tensor(array, requires_grad=True)
    count = 1000

    def plain() -> None:
        for _ in range(count):
            array * array

    def empty() -> None:
        with torch.no_grad():
            for _ in range(count):
                y * y

    def inferred() -> None:
        with torch.inference_mode():
            for _ in range(count):
                x * x

    def recorded() -> None:
        for _ in range(count):
            y * y

    def changed() -> None:
        with torch.no_grad():
            for _ in range(count):
                x.add_(x)

    def changed_in_inference() -> None:
        with torch.inference_mode():
            z = torch.tensor(array)
            for _ in range(count):
                z.add_(z)

    array[:] = 0
    timings = measure(
        {
            "numpy": plain,
            "no_grad": empty,
            "inference_mode": inferred,
            "recorded": recorded,
            "in place, no_grad": changed,
            "in place, inference_mode": changed_in_inference,
        },
        seconds=seconds,
    )
    each = {name: timing.best / count * 1e6 for name, timing in timings.items()}
    return {name: value - each["numpy"] for name, value in each.items() if name != "numpy"}


# --------------------------------------------------------------------------------------
# Memory, in separate processes.


def _status(field: str) -> int:
    """A field of this process' status in kilobytes."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(field))


def deep_step(name: str, checkpointed: bool) -> int:
    """Kilobytes at the peak of a step of a 50-layer MLP, above what was resident before."""
    torch = library(name)
    checkpoint = importlib.import_module(f"{LIBRARIES[name]}.utils.checkpoint").checkpoint
    model = mlp(torch, (256,) * 51)
    blocks = [torch.nn.Sequential(*list(model)[k : k + 10]) for k in range(0, len(list(model)), 10)]
    x = torch.tensor(numbers(2048, 256))
    (model(x[:8]) ** 2).mean().backward()  # so that libraries and gradients are in memory
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")  # reset the peak
    before = _status("VmRSS")
    out = x
    for block in blocks:
        out = checkpoint(block, out, use_reentrant=False) if checkpointed else block(out)
    (out**2).mean().backward()
    return _status("VmHWM") - before


def memory() -> list[dict[str, Any]]:
    rows = []
    for checkpointed in (False, True):
        peaks = {}
        for name in LIBRARIES:
            command = [sys.executable, __file__, "--measure-memory", name]
            command += ["--checkpointed"] if checkpointed else []
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            peaks[name] = int(done.stdout) / 1024
        title = "50-layer MLP, batch 2048" + (", checkpoints" if checkpointed else "")
        rows.append({"case": title, **peaks, "ratio": peaks["functrans"] / peaks["torch"]})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--quick", action="store_true", help="a short run, too noisy to judge by")
    parser.add_argument("--json", help="write the numbers to this file")
    parser.add_argument("--measure-memory", help=argparse.SUPPRESS)
    parser.add_argument("--checkpointed", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure_memory:
        print(deep_step(options.measure_memory, options.checkpointed))
        return
    seconds = 0.05 if options.quick else 2.0
    times, costs, peaks = compare(seconds), overhead(seconds), memory()
    print(f"{'forward and backward':45} {'functrans':>12} {'torch':>12} {'ratio':>7} {'limit':>6}")
    for row in times:
        ours, theirs = (f"{row[name] * 1e6:.1f} us" for name in LIBRARIES)
        print(f"{row['case']:45} {ours:>12} {theirs:>12} {row['ratio']:7.2f} {row['limit']:6.1f}")
    print("\nmicroseconds per operation on 16 numbers above NumPy's 16-number product")
    for name, cost in costs.items():
        print(f"{name:45} {cost:12.2f}" + (" (limit 1.3)" if name == "no_grad" else ""))
    print("\nmegabytes at the peak of a step")
    for row in peaks:
        limit = "" if "checkpoints" in row["case"] else "    1.1"
        print(
            f"{row['case']:45} {row['functrans']:12.0f} {row['torch']:12.0f} {row['ratio']:7.2f}{limit}"
        )
    if options.json:
        Path(options.json).write_text(
            json.dumps({"times": times, "overhead": costs, "memory": peaks}, indent=2),
            encoding="utf-8",
        )


if __name__ == "__main__":
    main()
