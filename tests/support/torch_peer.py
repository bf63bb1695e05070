"""PyTorch, where it is installed."""

import pytest


def pytorch():
    """PyTorch; the tests of a module that asks are skipped where it is absent."""
    return pytest.importorskip("torch")
