"""What `import functrans` leaves for later, so that it stays fast; all of it is loaded from here.

The NumPy surface says what np.f(tracer) and tracer.method() mean. It is built on the transforms, so nothing
below it can import it; `dispatch` loads it by name when the first interpreter is made, before there is any
traced value. Packages that are slow to import are stood in for (`later`) until one of their names is used.

Both are safe in threads: Python imports a module once, and other threads that import it wait until it is
complete. Neither costs anything after the first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def load_surface() -> None:
    """Load the tables of the NumPy surface, and the namespace that traced values belong to."""
    import_module("functrans.numpy")


class _StandIn:
    """Stands for a module under its name in a namespace; the first use puts the module there."""

    def __init__(self, name: str, namespace: dict[str, Any]) -> None:
        self._name = name
        self._namespace = namespace

    def __getattr__(self, name: str) -> Any:
        module = self._namespace[self._name] = import_module(self._name)
        return getattr(module, name)


def later(name: str, namespace: dict[str, Any]) -> Any:
    """A module that is imported when one of its names is first used; it then replaces the stand-in.

    `namespace` is the `globals()` of the module that uses it.

    >>> namespace = {}
    >>> namespace["colorsys"] = later("colorsys", namespace)
    >>> namespace["colorsys"].rgb_to_yiq(0.0, 0.0, 0.0)
    (0.0, 0.0, 0.0)
    >>> namespace["colorsys"]
    <module 'colorsys' from ...>
    """
    return _StandIn(name, namespace)
