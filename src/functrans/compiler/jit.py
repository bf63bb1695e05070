"""`jit`: trace once for each kind of arguments, then run what was traced as compiled code."""

from __future__ import annotations

import inspect
import sys
import time
import warnings
import weakref
from collections.abc import Callable, Hashable, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from functrans.compiler.generated import Compiled, compile_graph
from functrans.compiler.passes import freeze, optimize
from functrans.compiler.subroutines import with_subroutines
from functrans.compiler.warning import RETRACES, PerformanceHint, warn_of_retracing
from functrans.core import errors, tree
from functrans.core.dispatch import Tracer, running_interpreters, watcher
from functrans.core.evaluate import as_constant, run_equations
from functrans.core.shapes import ArraySpec, spec_of
from functrans.graph.graph import Graph, trace_names
from functrans.transforms.arguments import check_callable, named_like, several
from functrans.transforms.staging import make_graph

_STATIC_HINT = (
    "Under jit, an argument that decides this can be static (static_argnums, static_argnames)."
)


class Traced:
    """What `jit(f).trace(*args)` tells of a function.

    graph, optimized: the graph before and after optimization.
    code: the Python source, or the LLVM IR, that runs.
    trace_seconds, compile_seconds: the time to trace, and to optimize and compile.
    kernels: the number of loops, matrix products or NumPy operations of one call.
    flops, bytes: estimates of the arithmetic of one call, and of the memory that it reads and writes.
    """

    __slots__ = (
        "bytes",
        "code",
        "compile_seconds",
        "compiled",
        "converts",
        "flops",
        "graph",
        "kernels",
        "optimized",
        "trace_seconds",
    )

    def __init__(self, graph: Graph, trace_seconds: float, backend: str, slow: Any) -> None:
        start = time.perf_counter()
        self.graph = graph
        self.optimized = optimize(graph)
        self.compiled: Compiled | None = None
        self.converts = False
        self.code = ""
        self.kernels = self.flops = self.bytes = 0
        # A value of a transform around is a constant of this call only: there is nothing to keep.
        if not any(isinstance(value, Tracer) for value in graph.constants.values()):
            if backend == "native":
                from functrans.compiler.native.backend import compile_native

                self.compiled = compile_native(self.optimized, slow)
            else:
                self.compiled = compile_in_numpy(self.optimized)
            self.code = self.compiled.code
            self.kernels, self.flops, self.bytes = self.compiled.cost
        self.trace_seconds = trace_seconds
        self.compile_seconds = time.perf_counter() - start

    def __repr__(self) -> str:
        return (
            f"<Traced: {len(self.graph.equations)} equations, {len(self.optimized.equations)} after "
            f"optimization, {self.kernels} kernels, about {self.flops} flops and {self.bytes} bytes>"
        )


def compile_in_numpy(graph: Graph) -> Compiled:
    """A graph, and the functions inside, as generated NumPy code."""
    return compile_graph(with_subroutines(graph, lambda part: compile_in_numpy(part).function))


class Jitted:
    """A function that `jit` made."""

    # Slots, because wrappers copy the __dict__ of what they wrap.
    __slots__ = (
        "__dict__",
        "__weakref__",
        "_backend",
        "_direct",
        "_function",
        "_kinds",
        "_static",
        "_static_argnames",
        "_static_argnums",
        "_traced",
        "_warned",
    )

    def __init__(
        self,
        function: Callable[..., Any],
        static_argnums: tuple[int, ...],
        static_argnames: tuple[str, ...],
        backend: str,
    ) -> None:
        self._function = function
        self._static_argnums = static_argnums
        self._static_argnames = static_argnames
        self._static = bool(static_argnums or static_argnames)
        self._backend = backend
        # The code of the trace that was used last, if it takes arguments as they come.
        self._direct: Callable[..., Any] | None = None
        self._traced: dict[Any, Traced] = {}
        self._kinds: list[dict[str, str]] = []  # what each argument was, for each trace
        self._warned = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        direct = self._direct
        if direct is not None and not kwargs and watcher() is None:
            return direct(*args)  # which calls _dispatch if they are of another kind
        return self._dispatch(*args, **kwargs)

    def _dispatch(self, *args: Any, **kwargs: Any) -> Any:
        """Find the trace for these arguments, or make it."""
        static: Any = None
        if self._static:
            args, kwargs, static = self._split(args, kwargs)
        if (tool := watcher()) is not None:  # the lines of the function itself are to be seen
            return tool.run(self._with_static(static), args, kwargs)
        leaves, structure = tree.flatten((args, kwargs))
        key = (structure, static, *[_kind(leaf) for leaf in leaves])
        if running_interpreters():
            return self._call_inside(key, leaves, structure, args, kwargs, static)
        traced = self._traced.get(key)
        if traced is None:
            traced = self._trace(key, leaves, args, kwargs, static)
        if traced.compiled is not None and not self._static:
            self._direct = traced.compiled.direct
        return _run(traced, leaves)

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Trace and compile for these arguments, and tell about it; nothing is computed.

        Arguments may be arrays, numbers, or `ArraySpec`s.
        """
        static: Any = None
        if self._static:
            args, kwargs, static = self._split(args, kwargs)
        leaves, structure = tree.flatten((args, kwargs))
        kinds = [_kind_of(leaf) if isinstance(leaf, ArraySpec) else _kind(leaf) for leaf in leaves]
        found = self._traced.get(key := (structure, static, *kinds))
        return self._trace(key, leaves, args, kwargs, static) if found is None else found

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """A jitted method is bound to its object, which is a static argument then."""
        return self if instance is None else _Bound(self, instance)

    def __reduce__(self) -> Any:
        name = getattr(self, "__qualname__", "")
        module = sys.modules.get(getattr(self, "__module__", ""))
        if getattr(module, name, None) is self:  # a decorated function is found by its name
            return name
        return jit, (self._function, self._static_argnums, self._static_argnames, self._backend)

    # Tracing.

    def _trace(self, key: Any, leaves: list[Any], args: Any, kwargs: Any, static: Any) -> Traced:
        # Without a lock: the function may wait for other threads. Of two that trace the same at once,
        # the first to finish is kept.
        start = time.perf_counter()
        function = self._with_static(static)
        try:
            graph = make_graph(function)(*args, **kwargs)
        except errors.StagingError as error:
            if _STATIC_HINT not in str(error):  # jit may be inside jit
                error.args = (f"{error} {_STATIC_HINT}",)
            raise
        graph.input_names = self._names(args, kwargs, static)
        traced = Traced(
            graph, time.perf_counter() - start, _chosen(self._backend), _dispatch_of(self)
        )
        # What was traced is about plain arrays; others, such as np.memmap, are taken as such.
        traced.converts = any(
            isinstance(leaf, np.ndarray) and type(leaf) is not np.ndarray for leaf in leaves
        )
        if traced.compiled is None:
            return traced
        kept = self._traced.setdefault(key, traced)
        if kept is traced:
            self._note(graph, static)
        return kept

    def _with_static(self, static: Any) -> Callable[..., Any]:
        if static is None:
            return self._function
        positions, names = static

        def function(*args: Any, **kwargs: Any) -> Any:
            every = list(args)
            for position, held in positions:
                every.insert(position, held.value)
            return self._function(*every, **{name: held.value for name, held in names}, **kwargs)

        return function

    def _split(self, args: Any, kwargs: Any) -> tuple[Any, Any, Any]:
        """The arguments that are traced, and those that are not."""
        positions, names = set(self._static_argnums), set(self._static_argnames)
        parameters = _parameter_names(self._function)
        positions |= {k for k, parameter in enumerate(parameters) if parameter in names}
        positions = {p + len(args) if p < 0 else p for p in positions}
        names |= {parameters[p] for p in positions if 0 <= p < len(parameters)}
        static = (
            tuple((k, _Held(args[k], f"argument {k}")) for k in sorted(positions) if k < len(args)),
            tuple((n, _Held(kwargs[n], f"argument {n}")) for n in sorted(names) if n in kwargs),
        )
        traced = tuple(arg for k, arg in enumerate(args) if k not in positions)
        return traced, {n: v for n, v in kwargs.items() if n not in names}, static

    def _names(self, args: Any, kwargs: Any, static: Any) -> list[str]:
        """The names of the inputs, as the function's own parameters."""
        if static is None:
            return trace_names(self._function, args, kwargs)
        every = list(args)
        for position, _ in static[0]:
            every.insert(position, None)  # a container of nothing
        return trace_names(self._function, every, kwargs)

    def _note(self, graph: Graph, static: Any) -> None:
        """Count the traces, and warn when there are many."""
        kinds = dict(zip(graph.input_names or (), (str(v.spec) for v in graph.inputs), strict=True))
        if static is not None:
            parameters = _parameter_names(self._function)
            for place, held in (*static[0], *static[1]):
                if type(place) is int:
                    place = parameters[place] if place < len(parameters) else f"number {place}"
                kinds[place] = f"the static value {held.value!r:.40}"
        self._kinds.append(kinds)
        if len(self._kinds) > RETRACES and not self._warned:
            self._warned = True
            warn_of_retracing(self._function, self._kinds)

    # Under other transforms.

    def _call_inside(
        self, key: Any, leaves: list[Any], structure: Any, args: Any, kwargs: Any, static: Any
    ) -> Any:
        """A transform is running: the names of its axes matter, and arguments may be its tracers."""
        axes = [i.axis_name for i in running_interpreters() if i.axis_name is not None]
        if axes:
            key = (key, *axes)
        traced = self._traced.get(key)
        if traced is None:
            traced = self._trace(key, leaves, args, kwargs, static)
        if traced.compiled is not None and not any(isinstance(leaf, Tracer) for leaf in leaves):
            return _run(traced, leaves)
        return _run_through_primitives(traced.optimized, leaves)


def jit(
    f: Callable[..., Any] | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    backend: str = "auto",
) -> Any:
    """Compile a function: trace it once for each kind of arguments, then run only what is needed.

    The function is traced on abstract values once for each structure, shape and dtype of its
    arguments. What was traced is optimized and runs as machine code, or as generated NumPy code, without
    the function's own Python. It must not depend on anything but its arguments, and Python branches on traced
    values raise a `StagingError`. Results share no memory with arguments. jit composes with every
    transform, inside and outside.

    Parameters
    ----------
    static_argnums, static_argnames
        Arguments that are not traced, by position or name. They must be hashable; each new value
        is traced anew.
    backend
        "native" for machine code, which needs llvmlite; "numpy" for generated NumPy code; or "auto" for
        the best there is.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad, jit
    >>> @jit
    ... def loss(w, x):
    ...     return np.sum(np.tanh(x @ w) ** 2)
    >>> slope = jit(grad(loss))
    >>> slope(np.zeros(2), np.ones((3, 2)))
    array([0., 0.])
    >>> jit(grad(loss), backend="numpy").trace(np.zeros(2), np.ones((3, 2)))
    <Traced: 11 equations, 7 after optimization, 7 kernels, about 39 flops and 464 bytes>
    """
    numbers = several(static_argnums, int, "jit: static_argnums")
    names = several(static_argnames, str, "jit: static_argnames")
    if backend not in ("auto", "numpy", "native"):
        raise errors.OptionError(
            f'jit: backend must be "auto", "native" or "numpy", not {backend!r}.'
        )
    if backend == "native" and not _native_is_there():
        raise errors.OptionError(
            'jit: the backend "native" needs llvmlite, which is not installed (or this is not '
            'CPython on a 64-bit machine). Install it with: pip install "functrans[jit]", or use '
            'backend="numpy".'
        )
    if f is None:
        return lambda function: jit(function, numbers, names, backend)
    check_callable(f, "jit")
    return named_like(f, "jit")(Jitted(f, numbers, names, backend))


@cache
def _native_is_there() -> bool:
    try:
        found = find_spec("llvmlite")
    except ImportError:  # a finder of this environment keeps it out
        found = None
    return (
        found is not None
        and sys.implementation.name == "cpython"
        and sys.maxsize > 2**32
        and sys.byteorder == "little"
        and getattr(sys, "_is_gil_enabled", lambda: True)()
    )


@cache
def _chosen(backend: str) -> str:
    """The backend that "auto" stands for."""
    if backend != "auto":
        return backend
    if _native_is_there():
        return "native"
    warnings.warn(
        "jit runs generated NumPy code, because llvmlite is not installed. For native code, which is "
        'several times faster: pip install "functrans[jit]". (backend="numpy" says that this is meant.)',
        PerformanceHint,
        stacklevel=errors.user_depth(),
    )
    return "numpy"


def _dispatch_of(jitted: Jitted) -> Callable[..., Any]:
    """What native code calls with arguments of another kind. It does not keep the function alive."""
    reference = weakref.ref(jitted)

    def dispatch(*args: Any) -> Any:
        owner = reference()
        assert owner is not None  # the code belongs to it
        return owner._dispatch(*args)

    return dispatch


class _Bound:
    """A jitted method of an object."""

    def __init__(self, method: Jitted, instance: Any) -> None:
        self.method = method
        self.instance = instance

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.method(self.instance, *args, **kwargs)

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        return self.method.trace(self.instance, *args, **kwargs)


class _Held:
    """A static value as part of a key: 1, 1.0 and True are not the same."""

    __slots__ = ("frozen", "value")

    def __init__(self, value: Any, what: str) -> None:
        try:
            hash(value)
        except TypeError:
            raise errors.InputTypeError(
                f"jit: the static {what} must be hashable, but is a {type(value).__name__}. Use a "
                "tuple instead of a list, or do not make it static."
            ) from None
        self.value = value
        self.frozen: Hashable = freeze(value)

    def __hash__(self) -> int:
        return hash(self.frozen)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and self.frozen == other.frozen


def _kind(leaf: Any) -> Any:
    """What a trace depends on: shape and dtype of an array, the type of a Python number."""
    if type(leaf) is np.ndarray:
        return leaf.shape, leaf.dtype
    if isinstance(leaf, (bool, int, float, complex)) and not isinstance(leaf, np.generic):
        return type(leaf)
    if isinstance(leaf, (np.ndarray, np.generic)):
        tree.check_array(leaf, "jit: an argument")
        kind = leaf.shape, leaf.dtype
        return kind if isinstance(leaf, np.generic) else (*kind, "subclass")
    if isinstance(leaf, Tracer):
        return _kind_of(spec_of(leaf))
    raise errors.InputTypeError(
        f"jit: an argument is {leaf!r:.40}, a value of type {type(leaf).__name__}, not a number or "
        "an array of numbers. Convert it to a NumPy array, close over it, or make the argument "
        "static (static_argnums, static_argnames)."
    )


def _kind_of(spec: ArraySpec) -> Any:
    return (spec.shape, spec.dtype) if not spec.weak else type(spec.dtype.type(0).item())


def _parameter_names(function: Callable[..., Any]) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [parameter.name for parameter in parameters if parameter.kind in kinds]


def _run(traced: Traced, leaves: list[Any]) -> Any:
    compiled = traced.compiled
    if compiled is None:
        return _run_through_primitives(traced.optimized, leaves)
    if traced.converts:
        leaves = [np.asarray(x) if isinstance(x, np.ndarray) else x for x in leaves]
    results = compiled.function(*leaves)
    if compiled.direct is not None:
        return results
    structure = compiled.structure
    return results[0] if structure is None else tree.unflatten(structure, results)


def _run_through_primitives(graph: Graph, leaves: list[Any]) -> Any:
    """Run the equations one by one, so that the transforms around see them."""
    environment: dict[Any, Any] = dict(graph.constants)
    environment.update(zip(graph.inputs, map(as_constant, leaves), strict=True))
    run_equations(graph.equations, environment)
    results = []
    for variable in graph.outputs:
        value = environment[variable]
        results.append(value.copy() if type(value) is np.ndarray else value)
    return tree.unflatten(graph.out_tree, results)
