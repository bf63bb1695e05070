"""Imports SciPy together with a module of `functrans.scipy`; an error says how to install it."""

from __future__ import annotations

import importlib
from typing import Any


def load(name: str) -> Any:
    """A module of SciPy."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != "scipy":
            raise
        raise ModuleNotFoundError(
            f"functrans.scipy needs {name}, but SciPy is not installed. Install it with "
            "pip install 'functrans[scipy]'.",
            name="scipy",
        ) from None
