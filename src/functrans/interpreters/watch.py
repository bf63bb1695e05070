"""Watching: primitives run as they do one level below, and a tool observes them.

The debugging tools run functions on these tracers, so that every operation of the function, and of all
transforms inside it, is seen here when it is evaluated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core import tree
from functrans.core.custody import guarded, kept_in_tracer, own
from functrans.core.dispatch import Interpreter, Tracer
from functrans.core.evaluate import as_constant, compute
from functrans.core.primitive import HigherOrder
from functrans.core.shapes import dtype_of
from functrans.core.tracer import ConcreteTracer


class WatchTracer(ConcreteTracer):
    """A value that is watched. Nothing is lost if it is converted to the plain value it holds."""

    __slots__ = ()

    def __init__(self, interpreter: Watch, value: Any) -> None:
        self.interpreter = interpreter
        self.value = value

    def copy_to(self, other: Any) -> None:
        other.__class__ = WatchTracer
        other.interpreter = self.interpreter
        other.value = self.value

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        # Always a copy: an assignment to this array must not change a plain array that shares its memory.
        return np.array(self.interpreter.concrete(self), dtype=dtype)

    def __int__(self) -> int:
        return int(self.interpreter.concrete(self))

    def __float__(self) -> float:
        return float(self.interpreter.concrete(self))

    def __complex__(self) -> complex:
        return complex(self.interpreter.concrete(self))


class Watch(Interpreter):
    """Runs primitives; a tool observes them by overriding `evaluate`."""

    __slots__ = ()

    def process(self, primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if self.closed:
            self.escaped()
        if type(primitive) is HigherOrder and not primitive.plain:
            return primitive.impl(*args, **params)  # its inner operations are seen, too
        values = [
            arg.value if type(arg) is WatchTracer and arg.interpreter is self else as_constant(arg)
            for arg in args
        ]
        out = self.evaluate(primitive, values, params)
        if primitive.outputs:
            return tuple(WatchTracer(self, each) for each in out)
        return WatchTracer(self, out)

    def evaluate(self, primitive: Any, values: list[Any], params: dict[str, Any]) -> Any:
        return compute(primitive, *values, **params)

    def run(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Call a function on watched arguments; the results are plain."""
        with self:
            args, kwargs = tree.map(self._watched, (args, kwargs))
            leaves, structure = tree.flatten(function(*args, **kwargs))
            leaves = [self._plain(leaf) for leaf in leaves]
            del args, kwargs
        return tree.unflatten(structure, own(leaves))

    def _watched(self, leaf: Any) -> Any:
        # Integers count and index, and the arrays they index need not be traced.
        if tree.is_array(leaf) and dtype_of(leaf).kind in "fc":
            return WatchTracer(self, kept_in_tracer(leaf))
        return guarded(leaf)

    def _plain(self, leaf: Any) -> Any:
        ours = isinstance(leaf, Tracer) and leaf.interpreter is self
        value = leaf.value if ours else as_constant(leaf)
        # NumPy returns numbers where we may hold arrays without axes.
        return value[()] if ours and type(value) is np.ndarray and not value.ndim else value
