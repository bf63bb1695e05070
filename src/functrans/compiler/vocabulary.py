"""The primitives by name, for those who write them down and read them back."""

from __future__ import annotations

import pkgutil
import re
import sys
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from functrans import ops
from functrans.core.primitive import Primitive
from functrans.core.tracer import UFUNCS
from functrans.ops.special import bessel_i
from functrans.transforms.branching import branch
from functrans.transforms.loops import loop
from functrans.transforms.scanning import along


@cache
def _numpy_words() -> dict[str, Primitive]:
    """The primitives of `functrans.ops`; where two share a name, the second has its own variable's."""
    words: dict[str, Primitive] = {}
    for module in sorted(info.name for info in pkgutil.iter_modules(ops.__path__)):
        attributes = vars(import_module(f"{ops.__name__}.{module}"))
        for attribute, value in attributes.items():
            if isinstance(value, Primitive) and words.setdefault(value.name, value) is not value:
                words[attribute] = value
    for ufunc, value in UFUNCS.items():
        if isinstance(value, Primitive) and is_numpys(ufunc):
            words.setdefault(value.name, value)
    for value in _held_by("functrans.surface"):
        words.setdefault(value.name, value)
    return words


def _held_by(package: str) -> list[Primitive]:
    """The primitives that the modules of a package have names for, as far as they are imported."""
    modules = [vars(sys.modules[name]) for name in sorted(sys.modules) if name.startswith(package)]
    return [v for names in modules for v in list(names.values()) if isinstance(v, Primitive)]


def is_numpys(function: Any) -> bool:
    """Whether a function is the one that NumPy has under its name."""
    return getattr(np, getattr(function, "__name__", ""), None) is function


def _scipy_words() -> dict[str, Primitive]:
    """The primitives of `functrans.scipy`, as far as they have been imported."""
    words: dict[str, Primitive] = {}
    for value in _held_by("functrans.scipy"):
        words.setdefault(f"scipy.{value.name}", value)
    for ufunc, value in UFUNCS.items():
        if is_numpys(ufunc):
            continue
        if not isinstance(value, Primitive):  # a function that calls the primitive
            cells = getattr(value, "__closure__", None) or ()
            held = [c.cell_contents for c in cells if isinstance(c.cell_contents, Primitive)]
            if len(held) != 1:
                continue
            value = held[0]
        words.setdefault(f"scipy.{value.name}", value)
    return words


# Loops and branches, whose parameters hold graphs.
_CONTROL = {"control.scan": along, "control.switch": branch, "control.while_loop": loop}


def word_of(primitive: Primitive) -> str | None:
    """The name by which `primitive_called` finds a primitive, or None for one that is not ours."""
    if primitive.name.startswith("bessel_i"):
        return primitive.name
    for words in (_numpy_words(), _scipy_words(), _CONTROL):
        for name in (primitive.name, f"scipy.{primitive.name}"):
            if words.get(name) is primitive:
                return name
        for name, value in words.items():
            if value is primitive:
                return name
    return None


def primitive_called(name: str) -> Primitive | None:
    """The primitive of this name, or None."""
    bessel = re.fullmatch(r"bessel_i([0-9]{1,3})", name)
    if bessel is not None:  # these are made when they are asked for
        return bessel_i(int(bessel.group(1)))
    if name in _CONTROL:
        return _CONTROL[name]
    if not name.startswith("scipy."):
        return _numpy_words().get(name)
    import_module("functrans.scipy.rules")
    import_module("functrans.scipy.matrices")
    return _scipy_words().get(name)


def is_ours(primitive: Primitive) -> bool:
    """Whether a primitive is the one of `functrans.ops` that its name promises."""
    return _numpy_words().get(primitive.name) is primitive
