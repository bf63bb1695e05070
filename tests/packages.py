"""Packages that some tests need."""

from importlib.util import find_spec

import pytest


def require_package(name):
    """Skip a test where a package is not installed; a folder of this name does not count."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:  # tests/torch is found as a package without an origin
        pytest.skip(f"{name} is not installed")
