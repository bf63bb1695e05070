"""Primitive: a name, facts about the operation, and slots for its rules.

A primitive registers itself in `PRIMITIVES` by its name, which is unique. It states two facts about itself:

kind     what sort of operation it is, one of `KINDS`: pictures are colored by it, and costs estimated
views    whether its result lies in the memory of an argument: True, False (the result is a new array), or
         None if that is not known. Code that needs to know then inspects the memory, which is always safe.

Each back end keeps its knowledge about primitives in its own table, keyed by the primitive: see `Rules`.

The slots of its rules, with `params` the keyword parameters of the call (never traced):

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

`form(params)` says what `impl` returns where the result has no axes: AS_NUMBER, as most do, AS_ARRAY, or
AS_FIRST, what the first argument is. Only staging asks: where values are known, they show it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from functrans.core.dispatch import Tracer

Rule = Callable[..., Any]
Form = Callable[[Any], Any]

KINDS = (
    "elementwise",
    "reduction",
    "shape",  # moves entries without computing
    "linear algebra",
    "control flow",
    "operation",  # none of these
)

PRIMITIVES: dict[str, Primitive] = {}
AS_NUMBER, AS_ARRAY, AS_FIRST = "a number", "an array", "as the first argument"


def always_number(params: Any) -> str:
    return AS_NUMBER


def always_array(params: Any) -> str:
    return AS_ARRAY


def as_first_argument(params: Any) -> str:
    return AS_FIRST


class Primitive:
    """One operation of the set that every interpreter understands."""

    __slots__ = (
        "batch",
        "form",
        "impl",
        "jvp",
        "kind",
        "name",
        "outputs",
        "rules",
        "shape",
        "views",
        "vjp",
    )

    broadcasts = False

    # A primitive of one or two arrays and no parameters may state its vjp as a table: rules[mask]
    # is (save, pull), where save(out, *args) gives the values to save, or save is None if there are none;
    # or rules[mask] is None, if no derivative flows. The tape reads it faster than it calls `vjp`.
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
        kind: str = "operation",
        views: bool | None = None,
        form: Form = always_number,
        register: bool = True,
    ) -> None:
        if kind not in KINDS:
            raise ValueError(f"the primitive {name} has an unknown kind: {kind}")
        if register and PRIMITIVES.setdefault(name, self) is not self:
            raise ValueError(f"there is already a primitive called {name}")
        self.name = name
        self.kind = kind
        self.views = views
        self.form = form
        self.impl = impl
        self.jvp = jvp
        self.vjp = vjp
        self.batch = batch
        self.shape = shape
        self.outputs = outputs

    def __repr__(self) -> str:
        return self.name

    @property
    def is_constant(self) -> bool:
        """Whether no derivative flows through it."""
        return self.jvp is None and self.vjp is None

    def __call__(self, *args: Any, **params: Any) -> Any:
        """Pass the call to the interpreter of the highest level among the arguments."""
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
        """The same for two arguments and no parameters, the most frequent call."""
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
    """A primitive that works elementwise, with NumPy's broadcasting.

    Its derivatives are two tables: `rules` for reverse mode, and `pushes` for tangents. For arguments x and
    y, pushes[mask](out, x, y, dx, dy) is the tangent of the result if the arguments in `mask` have tangents;
    or pushes[mask] is None, if the result has none. `functrans.ops.families.elementwise` derives
    each when it is first read.
    `ufunc` is the NumPy or SciPy function that it implements, or None.
    """

    __slots__ = ("pushes", "ufunc")

    broadcasts = True
    pushes: tuple[Any, ...]

    def __init__(self, name: str, impl: Rule, *, ufunc: Any = None, **facts: Any) -> None:
        super().__init__(name, impl, **{"kind": "elementwise", **facts})
        self.ufunc = ufunc


class Collective(Primitive):
    """A primitive across the lanes of the `vmap` whose name is its parameter `axis_name`.

    `collect(value)` computes it there: `value` has the lanes as first axis, and the result is the same for
    all lanes. The other slots are for all other interpreters.
    """

    __slots__ = ("collect",)

    collect: Rule


class InAllLanes(NamedTuple):
    """A result of a `batch` rule that is the same in all lanes, and has no axis for them."""

    value: Any


class HigherOrder(Primitive):
    """A primitive whose parameters hold functions, such as a loop; it returns a tuple.

    One run gives both its result and the residuals of its derivative, so it has different slots:

    push(args, tangents, params)     (outs, tangents): both in forward mode
    trace(mask, args, params)        (outs, pull, saved), with pull as `vjp` gives it, or None
    batch(args, batched, batch, params)
                                     the results, with the lanes of `batch` as first axis, or `InAllLanes`
    runs(args)                       whether `impl` may be called on these arguments as they are,
                                     traced or not, so that each interpreter sees what it does inside
    plain                            whether its functions must get plain values only
    holds_graphs                     whether the functions are graphs, which can be stored
    form(params)                     the places of results that are arrays even if they have no axes

    The results' cotangents reach `pull` as a list, in which None stands for zero.
    """

    __slots__ = ("holds_graphs", "plain", "push", "runs", "trace")

    is_constant = False

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
        holds_graphs: bool = False,
        form: Form = lambda params: (),
    ) -> None:
        super().__init__(
            name, impl, batch=batch, shape=shape, outputs=1, kind="control flow", form=form
        )
        self.push = push
        self.trace = trace
        self.runs = runs
        self.plain = plain
        self.holds_graphs = holds_graphs

    def __call__(self, *args: Any, **params: Any) -> Any:
        if self.runs(args):
            return self.impl(*args, **params)
        return super().__call__(*args, **params)


# What rules return.


def bare(cotangents: Sequence[Any]) -> Any:
    """The cotangents of the arguments in a mask, as a `pull` returns them: a tuple, or the only one."""
    return cotangents[0] if len(cotangents) == 1 else tuple(cotangents)


def of_mask(mask: int, *cotangents: Any) -> Any:
    """Of the cotangents of the first arguments, those in the mask; None for all further arguments in it."""
    found = [each for k, each in enumerate(cotangents) if mask >> k & 1]
    return bare([*found, *[None] * (mask >> len(cotangents)).bit_count()])


# Primitives that are not there yet.

_families: dict[str, Callable[[int], Primitive]] = {}
_sources: list[Callable[[], None]] = []
F = TypeVar("F", bound=Callable[[int], Any])


def family(name: str) -> Callable[[F], F]:
    """Decorate a function of n that makes the primitive called `name` + n on first use."""

    def decorate(make: F) -> F:
        _families[name] = make
        return make

    return decorate


def add_source(load: Callable[[], None]) -> None:
    """Register a function that imports further primitives, for names that are not known yet."""
    _sources.append(load)


def primitive_called(name: str) -> Primitive | None:
    """The primitive of this name, or None."""
    if name not in PRIMITIVES:
        member = re.fullmatch(r"(.*[^0-9])([0-9]{1,3})", name)
        if member is not None and member[1] in _families:
            _families[member[1]](int(member[2]))
    while name not in PRIMITIVES and _sources:
        _sources.pop()()
    return PRIMITIVES.get(name)


def is_registered(primitive: Primitive) -> bool:
    """Whether a primitive is the one that its name stands for, and not a user's own."""
    return PRIMITIVES.get(primitive.name) is primitive


R = TypeVar("R")


class Rules(Generic[R]):
    """A table of what one part of the library, such as a back end, knows about primitives.

    The keys are the primitives themselves. For a primitive without an entry, `derive` may make one from the
    facts that the primitive states; otherwise there is none, and that part takes its general path.

    >>> from functrans.ops import elementwise
    >>> spoken = Rules(
    ...     lambda primitive: primitive.name if primitive.kind == "elementwise" else None
    ... )
    >>> spoken.state(elementwise.multiply, entry="times")
    >>> spoken.of(elementwise.multiply), spoken.of(elementwise.sin)
    ('times', 'sin')
    """

    def __init__(self, derive: Callable[[Any], R | None] = lambda primitive: None) -> None:
        self._entries: dict[Primitive, R] = {}
        self._derive = derive

    def state(self, *primitives: Primitive, entry: R) -> None:
        """Set the entry of some primitives."""
        for primitive in primitives:
            if primitive in self._entries:
                raise ValueError(f"there is already an entry for {primitive}")
            self._entries[primitive] = entry

    def __call__(self, *primitives: Primitive) -> Callable[[R], R]:
        """The same as a decorator: the decorated function is the entry."""

        def decorate(entry: R) -> R:
            self.state(*primitives, entry=entry)
            return entry

        return decorate

    def of(self, primitive: Any) -> R | None:
        """The entry for a primitive, or None."""
        found = self._entries.get(primitive)
        return self._derive(primitive) if found is None else found
