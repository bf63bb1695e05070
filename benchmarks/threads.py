"""The same number of threads for every library: set before any of them is imported.

This module imports no library itself. Libraries read these settings when they load.
"""

from __future__ import annotations

import os

_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "FUNCTRANS_NUM_THREADS",
    "NPROC",  # XLA's pool
)


def thread_settings(threads: int) -> dict[str, str]:
    """The environment in which every library uses this many threads, and JAX float64 on the CPU."""
    eigen = "true" if threads > 1 else "false"
    return {
        **dict.fromkeys(_VARIABLES, str(threads)),
        "XLA_FLAGS": f"--xla_cpu_multi_thread_eigen={eigen}",
        "JAX_PLATFORMS": "cpu",
        "JAX_ENABLE_X64": "1",
    }


def use_threads(threads: int) -> None:
    """Set them for this process; NumPy and the others must not have been imported."""
    os.environ.update(thread_settings(threads))


def threads_in_use() -> int:
    return int(os.environ["OMP_NUM_THREADS"])
