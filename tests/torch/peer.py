"""PyTorch, where it is installed."""

import importlib.util

import pytest


def pytorch():
    """PyTorch; the tests of a module that asks are skipped where it is absent."""
    spec = importlib.util.find_spec("torch")
    # This folder has the same name, and is found as a package without an origin.
    if spec is None or spec.origin is None:
        pytest.skip("PyTorch is not installed", allow_module_level=True)
    return importlib.import_module("torch")
