"""Classes with SciPy's names, whose instances hold traced values and pass for SciPy's."""

from __future__ import annotations

import inspect
from typing import Any

from functrans.scipy.delegation import is_traced


class StandIn:
    """A class that makes SciPy's object if nothing is traced, and ours otherwise.

    `stands_for` is SciPy's class: `isinstance(ours, stands_for)` is true.
    """

    stands_for: Any = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in cls.__dict__:  # what help() shows, and not what __new__ takes
            signature = inspect.signature(cls.__dict__["__init__"])
            _, *parameters = signature.parameters.values()
            cls.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls.stands_for is None or is_traced(*args) or is_traced(*kwargs.values()):
            return super().__new__(cls)
        return cls.stands_for(*args, **kwargs)

    @property
    def __class__(self) -> Any:
        return type(self).stands_for or type(self)

    @__class__.setter
    def __class__(self, value: Any) -> None:
        raise TypeError(f"the class of {type(self).__name__} cannot be changed")
