"""Kinds of probes, by name. Each checks laws that random programs do not cover."""

from __future__ import annotations

from tools.fuzz.probes import (
    aliasing,
    arrays,
    customs,
    cuts,
    forms,
    kinks,
    leaks,
    options,
    retracing,
    rules,
    special,
    spectral,
    sums,
    typetests,
    warned,
)
from tools.fuzz.probes.probe import Write

__all__ = ["PROBES"]

# How often each kind is written, relative to the others. Slow ones are rare.
PROBES: dict[str, tuple[int, Write]] = {
    "aliasing": (12, aliasing.write),
    "retracing": (8, retracing.write),
    "leaks": (10, leaks.write),
    "rules": (6, rules.write),
    "arrays": (8, arrays.write),
    "typetests": (5, typetests.write),
    "cuts": (4, cuts.write),
    "spectral": (3, spectral.write),
    "sums": (1, sums.write),
    "special": (6, special.write),
    "forms": (4, forms.write),
    "kinks": (3, kinks.write),
    "options": (6, options.write),
    "customs": (2, customs.write),
    "warned": (2, warned.write),
}
