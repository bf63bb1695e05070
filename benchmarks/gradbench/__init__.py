"""The problems of GradBench and ADBench, written from their published definitions.

One file for each problem: the objective in terms of an array namespace, a seeded generator of data in
the published sizes, and the derivative by hand. How they are run is in `benchmarks/worker.py`.
"""

from __future__ import annotations

from benchmarks.gradbench import (
    bundle_adjustment,
    determinant,
    gaussian_mixture,
    kmeans,
    least_squares,
    logsumexp,
    lstm,
    ode,
)
from benchmarks.gradbench.problem import Problem

PROBLEMS: dict[str, Problem] = {
    module.PROBLEM.name: module.PROBLEM
    for module in (
        gaussian_mixture,
        bundle_adjustment,
        lstm,
        kmeans,
        logsumexp,
        least_squares,
        ode,
        determinant,
    )
}
