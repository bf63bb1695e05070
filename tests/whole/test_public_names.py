"""`dir` of every public module, and so tab completion, has the public names and nothing else."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from types import ModuleType

import numpy as np
import pytest

import functrans
from functrans.torch.namespace import MODULES

SMALL = ["checkpoint_policies", "debugging", "errors", "plot", "random", "testing", "tree"]
NUMPY = ["numpy", "numpy.fft", "numpy.linalg"]
SCIPY = ["scipy", *(f"scipy.{name}" for name in functrans.scipy.__all__), "scipy.signal.windows"]
SCIPY += [f"scipy.spatial.{name}" for name in functrans.scipy.spatial.__all__]
TORCH = ["torch", "torch.profiler", "torch.utils", *(f"torch.{name}" for name in MODULES)]
PUBLIC = ["functrans", *(f"functrans.{name}" for name in [*SMALL, *NUMPY, *SCIPY, *TORCH])]


@pytest.mark.parametrize("name", PUBLIC)
def test_dir_has_the_public_names_only(name):
    module = import_module(name)
    listed = dir(module)
    assert listed and listed == sorted(set(listed))
    for each in listed:
        value = getattr(module, each)
        assert not each.startswith("_") or each in np.__all__
        assert getattr(value, "__module__", None) not in ("typing", "importlib", "__future__")
        if isinstance(value, ModuleType) and not value.__name__.startswith("numpy"):
            assert value.__name__ in PUBLIC, f"{each} is not for users"


@pytest.mark.parametrize("name", PUBLIC)
def test_dir_has_all_that_the_module_exports(name):
    module = import_module(name)
    exported = getattr(module, "__all__", None)
    if exported is not None:
        assert {*exported, *parts_of(name)} == set(dir(module))
    assert parts_of(name) <= set(dir(module))


def parts_of(name):
    """The public modules in a public package."""
    inside = (each.removeprefix(f"{name}.") for each in PUBLIC if each.startswith(f"{name}."))
    return {part for part in inside if "." not in part}


def test_what_dir_does_not_list_is_still_there():
    assert functrans.__version__ and functrans.numpy.__version__ and functrans.torch.__version__


def test_import_functrans_leaves_out_what_is_slow_to_load():
    slow = [
        "functrans.torch",
        "hashlib",
        "llvmlite",
        "matplotlib",
        "numpy.random",
        "random",
        "scipy",
    ]
    slow += ["sysconfig", "functrans.compiler.jit", "functrans.random", "functrans.testing"]
    numpys = "import sys, numpy; before = set(sys.modules); import functrans"
    code = f"{numpys}; print(sorted((set(sys.modules) - before) & set({slow})))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
