"""Primitive: a name, and the slots its rules hang on.

The slots, with `params` the keyword parameters of the call (never traced):

impl(*args, **params)                    the NumPy evaluation
jvp(out, args, tangents, params)         the tangent of `out`; a tangent of None stands for zero
vjp(mask, out, args, params)             (pull, saved) for the arguments whose bit is set in mask;
                                         pull(cotangent, saved) is a tuple with one cotangent for
                                         each of these arguments, or the bare one if there is one
batch(primitive, args, batched, size, params)
                                         the call on arguments whose first axis is the hidden one
                                         where `batched`; the result's first axis is the hidden one
shape(specs, params)                     the ArraySpec of the result

A primitive with `jvp` and `vjp` both None is constant: it has no derivative, and differentiating
interpreters return its plain result. A primitive with `outputs` > 0 returns a tuple.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functrans.core.dispatch import Tracer

Rule = Callable[..., Any]


class Primitive:
    """One word of the vocabulary that every interpreter understands."""

    __slots__ = ("batch", "impl", "jvp", "name", "outputs", "rules", "shape", "vjp")

    broadcasts = False

    # A primitive of one or two arrays and no parameters may state its vjp as a table: rules[mask]
    # is (save, pull), with save(out, *args) giving what to save, or save None if it is nothing; or
    # rules[mask] is None, if no derivative flows. The tape reads it faster than it calls `vjp`.
    rules: tuple[Any, ...]

    def __init__(
        self,
        name: str,
        impl: Rule,
        *,
        batch: Rule,
        shape: Rule,
        jvp: Rule | None = None,
        vjp: Rule | None = None,
        outputs: int = 0,
    ) -> None:
        self.name = name
        self.impl = impl
        self.jvp = jvp
        self.vjp = vjp
        self.batch = batch
        self.shape = shape
        self.outputs = outputs

    def __repr__(self) -> str:
        return self.name

    def __call__(self, *args: Any, **params: Any) -> Any:
        """Hand the call to the interpreter of the highest level among the arguments."""
        top = None
        for arg in args:
            if isinstance(arg, Tracer):
                interpreter = arg.interpreter
                if top is None or interpreter.level > top.level:
                    top = interpreter
        if top is None:
            return self.impl(*args, **params)
        return top.process(self, args, params)

    def call1(self, x: Any) -> Any:
        """The same for one argument and no parameters."""
        return x.interpreter.process1(self, x) if isinstance(x, Tracer) else self.impl(x)

    def call2(self, x: Any, y: Any) -> Any:
        """The same for two arguments and no parameters, the most frequent call of all."""
        if isinstance(x, Tracer):
            top = x.interpreter
            if isinstance(y, Tracer) and y.interpreter.level > top.level:
                top = y.interpreter
        elif isinstance(y, Tracer):
            top = y.interpreter
        else:
            return self.impl(x, y)
        return top.process2(self, x, y)


class Elementwise(Primitive):
    """A primitive that works entry by entry, with NumPy's broadcasting.

    Its derivatives are tables: beside `rules`, the tangents `pushes`. For arguments x and y,
    pushes[mask](out, x, y, dx, dy) is the tangent of the result if those in `mask` move; or
    pushes[mask] is None, if it does not. `functrans.ops.families.elementwise` derives both.
    """

    __slots__ = ("pushes",)

    broadcasts = True
    pushes: tuple[Any, ...]


class Collective(Primitive):
    """A primitive across the lanes of the `vmap` whose name is its parameter `axis_name`.

    `collect(value)` is its meaning there: `value` has the lanes as first axis, and the result is the
    same for all lanes. The other slots say what it means to everyone else.
    """

    __slots__ = ("collect",)

    collect: Rule


class HigherOrder(Primitive):
    """A primitive whose parameters hold functions, such as a loop; it returns a tuple.

    Its result and what a derivative needs come from one run, so it has other slots:

    push(args, tangents, params)     (outs, tangents): both in forward mode
    trace(mask, args, params)        (outs, pull, saved), with pull as `vjp` gives it, or None
    batch(args, batched, batch, params)
                                     the results, all with the lanes of `batch` as first axis
    runs(args)                       whether `impl` may be called on these arguments as they are,
                                     traced or not, so that each interpreter sees what it does inside
    plain                            whether its functions are to be given plain values only

    The results' cotangents reach `pull` as a list, in which None stands for zero.
    """

    __slots__ = ("plain", "push", "runs", "trace")

    def __init__(
        self,
        name: str,
        impl: Rule,
        *,
        push: Rule,
        trace: Rule,
        batch: Rule,
        shape: Rule,
        runs: Callable[[tuple[Any, ...]], bool] = lambda args: False,
        plain: bool = False,
    ) -> None:
        super().__init__(name, impl, batch=batch, shape=shape, outputs=1)
        self.push = push
        self.trace = trace
        self.runs = runs
        self.plain = plain

    def __call__(self, *args: Any, **params: Any) -> Any:
        if self.runs(args):
            return self.impl(*args, **params)
        return super().__call__(*args, **params)
