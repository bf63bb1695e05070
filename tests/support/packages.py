"""Packages that some tests need."""

from importlib.util import find_spec

import pytest


def require_package(name):
    """Skip a test where a package is not installed."""
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
