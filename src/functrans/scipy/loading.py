"""SciPy is imported when a module of `functrans.scipy` is, and an error says what to do without it."""

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
            f"functrans.scipy needs {name}, and SciPy is not installed. Install it with "
            "pip install 'functrans[scipy]'.",
            name="scipy",
        ) from None
