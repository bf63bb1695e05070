"""The time of `import functrans`, compared with that of `import numpy`.

python benchmarks/import_time.py prints the best times over fresh processes, in milliseconds: of importing
NumPy, of importing functrans after it, and of the first gradient, which loads the rest. Bytecode is cached,
as it is after an installation. BLAS runs on one thread, because starting more would add to NumPy's time.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src"
STEPS = ("import numpy", "import functrans", "first gradient")
PROGRAM = """
from time import perf_counter
start = perf_counter()
import numpy as np
numpy = perf_counter()
import functrans
imported = perf_counter()
functrans.grad(lambda x: np.sum(np.sin(x)))(np.ones(3))
print(numpy - start, imported - numpy, perf_counter() - imported)
"""


def measure(runs: int) -> list[float]:
    """The best time of each step, in seconds."""
    with tempfile.TemporaryDirectory() as bytecode:
        environment = {
            **os.environ,
            "PYTHONPATH": str(SOURCE),
            "PYTHONPYCACHEPREFIX": bytecode,
            "OPENBLAS_NUM_THREADS": "1",
        }
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        samples = []
        for _ in range(runs + 1):  # the first one fills the cache
            command = [sys.executable, "-c", PROGRAM]
            run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
            samples.append([float(time) for time in run.stdout.split()])
    return [min(times) for times in zip(*samples[1:], strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    times = measure(parser.parse_args().runs)
    for step, time in zip(STEPS, times, strict=True):
        print(f"{step}: {1e3 * time:.1f} ms; ratio to NumPy {time / times[0]:.2f}")


if __name__ == "__main__":
    main()
