"""Values that are lent to a rule, and must not be used after it has returned.

A rule computes with values of the transforms outside the one that calls it, mostly plain arrays. If it stores
one in a global or a closure, and the function that is differentiated uses it, the derivative through it is
lost silently. So a rule gets values that raise an error when they are used after it has returned. They
convert to plain values wherever these are needed, so a rule may do anything with them.

This costs time, and a rule that stores values does so in its first call already. So a rule is trusted after
its first call, and gets the values themselves, unless a value that it was lent is used again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any
from weakref import WeakSet

from functrans.core import errors
from functrans.core.dispatch import Tracer, watcher
from functrans.core.evaluate import as_constant, compute
from functrans.core.primitive import HigherOrder
from functrans.core.shapes import dtype_of
from functrans.interpreters.watch import Watch, WatchTracer


class Loan(Watch):
    """Runs a rule on values that it must not keep."""

    __slots__ = ()

    transform = "a transform, for a custom rule"

    def escaped(self, *_: object) -> Any:
        with suppress(TypeError):
            _trusted.discard(self.function)
        super().escaped()

    def process(self, primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if type(primitive) is HigherOrder and not self.closed:
            values = [
                arg.value
                if isinstance(arg, Tracer) and arg.interpreter is self
                else as_constant(arg)
                for arg in args
            ]
            if any(isinstance(value, Tracer) for value in values):  # it may have rules for them
                results = compute(primitive, *values, **params)
                return tuple(WatchTracer(self, result) for result in results)
        return super().process(primitive, args, params)

    def call(self, run: Callable[..., list[Any]], leaves: Sequence[Any]) -> list[Any]:
        """run(*leaves) with the numbers among them lent; the results are values of the level below."""
        with self:
            lent = [
                WatchTracer(self, leaf) if dtype_of(leaf).kind in "fc" else leaf for leaf in leaves
            ]
            return [self._plain(result) for result in run(*lent)]


_trusted: WeakSet[Any] = WeakSet()  # trusted rules, which get the values themselves


def run_on_loan(
    run: Callable[..., list[Any]],
    leaves: Sequence[Any],
    rule: Any,
    is_transparent: Callable[[], bool],
) -> list[Any]:
    """run(*leaves), which calls a user's `rule`; a rule that is not trusted yet gets lent values.

    Some rules need real arrays: they call C functions, or pass on opaque objects, which `is_transparent`
    reports afterward. They are called again with arrays, and errors come from that call.
    """
    if watcher() is not None or _is_trusted(
        rule
    ):  # a debugging tool is to see the rule's own lines
        return run(*leaves)
    try:
        results = Loan(rule).call(run, leaves)
        transparent = is_transparent()
    except errors.EscapedTracerError:
        raise
    except Exception:
        transparent = False
    if not transparent:
        results = run(*leaves)
    with suppress(TypeError):  # no weak references: it is lent values each time
        _trusted.add(rule)
    return results


def _is_trusted(rule: Any) -> bool:
    try:
        return rule in _trusted
    except TypeError:  # not hashable, or no weak references
        return False
