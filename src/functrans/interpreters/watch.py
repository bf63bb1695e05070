"""Watching: primitives mean what they mean one level below, and somebody looks on.

The debugging tools run functions on these tracers, so that every operation of the function, and of all
transforms inside it, passes by here when it is evaluated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core import tree
from functrans.core.dispatch import Interpreter, Tracer
from functrans.core.evaluate import as_constant, captured, compute
from functrans.core.primitive import HigherOrder
from functrans.core.shapes import dtype_of
from functrans.core.tracer import ConcreteTracer


class WatchTracer(ConcreteTracer):
    """A value that is looked at. Nothing is lost where it is taken for the plain value it holds."""

    __slots__ = ()

    def __init__(self, interpreter: Watch, value: Any) -> None:
        self.interpreter = interpreter
        self.value = value

    def copy_to(self, other: Any) -> None:
        other.__class__ = WatchTracer
        other.interpreter = self.interpreter
        other.value = self.value

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        # A copy always: assignments to this array must not show in one that cannot see them.
        return np.array(self.value, dtype=dtype)

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __complex__(self) -> complex:
        return complex(self.value)


class Watch(Interpreter):
    """Runs primitives; a tool looks on by overriding `evaluate`."""

    __slots__ = ()

    def process(self, primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if self.closed:
            self.escaped()
        if type(primitive) is HigherOrder and not primitive.plain:
            return primitive.impl(*args, **params)  # what it does inside is seen, too
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

    def concrete(self, tracer: Any) -> Any:
        return tracer.value if not self.closed else self.escaped()

    def run(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Call a function on watched arguments; the results are plain."""
        with self:
            args, kwargs = tree.map(self._watched, (args, kwargs))
            return tree.map(self._plain, function(*args, **kwargs))

    def _watched(self, leaf: Any) -> Any:
        # Integers count and index, and what they index need not be traced.
        if tree.is_array(leaf) and dtype_of(leaf).kind in "fc":
            return WatchTracer(self, captured(leaf))
        return leaf

    def _plain(self, leaf: Any) -> Any:
        ours = isinstance(leaf, Tracer) and leaf.interpreter is self
        value = leaf.value if ours else as_constant(leaf)
        # NumPy gives numbers where we may hold arrays without axes.
        return value[()] if ours and type(value) is np.ndarray and not value.ndim else value
