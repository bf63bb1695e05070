"""`jit`: trace once for each kind of arguments, then run the trace as compiled code."""

from __future__ import annotations

import inspect
import sys
import time
import warnings
import weakref
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cache, partial, update_wrapper
from importlib.util import find_spec
from types import MethodType
from typing import Any, Concatenate, Generic, Literal, Self, overload

import numpy as np

from functrans.compiler.keys import Static, are_traced, containers_of, is_taken, keep, leaf_kind
from functrans.compiler.numpy.generated import Compiled, compile_graph
from functrans.compiler.passes import optimize
from functrans.compiler.subroutines import inlined, with_subroutines
from functrans.compiler.warnings import RETRACES, PerformanceHint, warn_of_retracing
from functrans.core import errors, tree
from functrans.core.custody import lending_tree, own, own_tree
from functrans.core.dispatch import Tracer, at_work, is_plain, surroundings, unusual, watcher
from functrans.core.draws import Draws
from functrans.core.evaluate import as_constant, run_equations
from functrans.core.floating_point import point, unpoint
from functrans.core.shapes import shape_of
from functrans.core.subclasses import plain_array
from functrans.graph.graph import Graph, trace_names
from functrans.interpreters.stage import Unknown
from functrans.ops.access import is_contiguous
from functrans.ops.structure import copy
from functrans.transforms.arguments import LATER, check_callable, several_values
from functrans.transforms.functions import Instance, P, Q, R, TransformedFunction, keep_name
from functrans.transforms.leaves import is_staging
from functrans.transforms.staging import staged_out

Backend = Literal["auto", "native", "numpy"]


class Traced:
    """The report of `jit(f).trace(*args)` on a function.

    graph, optimized: the graph before and after optimization.
    code: the Python source or the LLVM IR that runs.
    trace_seconds, compile_seconds: the time to trace, and to optimize and compile.
    kernels: the number of loops, matrix products or NumPy operations per call.
    flops, bytes: estimates of the arithmetic per call, and of the memory that it reads and writes.
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
        "takes_arguments",
        "trace_seconds",
    )

    def __init__(self, graph: Graph, trace_seconds: float, backend: str, slow: Any) -> None:
        start = time.perf_counter()
        self.graph = graph
        if backend == "native":
            from functrans.compiler.native.backend import rolled_up

            graph = rolled_up(graph)
        self.optimized = optimize(graph)
        self.compiled: Compiled | None = None
        self.converts = False
        self.takes_arguments = False  # whether the code takes them directly
        self.code = ""
        self.kernels = self.flops = self.bytes = 0
        # A value of an outer transform is a constant of this call only, so the trace is not kept.
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
    return compile_graph(
        with_subroutines(inlined(graph), lambda part: compile_in_numpy(part).function)
    )


class Jitted(TransformedFunction, Generic[P, R]):
    """A function that `jit` made."""

    # Slots, because wrappers copy the __dict__ of the wrapped function.
    __slots__ = (
        "__dict__",
        "__weakref__",
        "_backend",
        "_codes",
        "_direct",
        "_function",
        "_kinds",
        "_options",
        "_sees_order",
        "_static",
        "_static_argnames",
        "_static_argnums",
        "_summary",
        "_traced",
        "_transform",
        "_warned",
    )

    def __init__(
        self,
        function: Callable[P, R],
        static_argnums: tuple[int, ...],
        static_argnames: tuple[str, ...],
        backend: str,
    ) -> None:
        self._transform, self._summary = jit, "{f}, compiled."
        self._options = {
            "static_argnums": static_argnums,
            "static_argnames": static_argnames,
            "backend": backend,
        }
        keep_name(self, function)
        self._function = function
        self._static_argnums = static_argnums
        self._static_argnames = static_argnames
        self._static = bool(static_argnums or static_argnames)
        self._sees_order = _takes_any_keyword(function)
        self._backend = backend
        # The code of the last trace, if it takes arguments directly. `_codes` has the others.
        self._direct: Callable[..., Any] | None = None
        self._codes: dict[Any, Any] = {}
        self._traced: dict[Any, Traced] = {}
        self._kinds: list[dict[str, str]] = []  # the kind of each argument, for each trace
        self._warned = False

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        direct = self._direct
        if direct is not None and not kwargs:
            if at_work or unusual:
                direct = self._codes.get(surroundings(), self._dispatch)
            # It calls _dispatch for arguments of another kind.
            return direct(*args)  # type: ignore[no-any-return]
        return self._dispatch(*args, **kwargs)  # type: ignore[no-any-return]

    def _dispatch(self, *args: Any, **kwargs: Any) -> Any:
        """Find the trace for these arguments, or make it."""
        static: Any = None
        if self._static:
            args, kwargs, static = self._split(args, kwargs)
        if (tool := watcher()) is not None:  # the tool should see the lines of the function itself
            run, function = tool.run, self._with_static(static)
            return own_tree(
                lending_tree(lambda args, kwargs: run(function, args, kwargs), args, kwargs)
            )
        leaves, key = self._key(args, kwargs, static)
        traced = self._traced.get(key)
        if traced is None:
            traced = self._trace(key, leaves, args, kwargs, static)
        if traced.compiled is None or are_traced(leaves):
            return _run_through_primitives(traced.optimized, leaves)
        if traced.takes_arguments:
            self._codes[key[0]] = traced.compiled.direct
            if key[0] is None:
                self._direct = traced.compiled.direct
        return _run(traced, leaves)

    def _key(self, args: Any, kwargs: Any, static: Any) -> tuple[Any, tuple[Any, ...]]:
        """The leaves of the arguments, and the key of the trace for them."""
        if len(kwargs) > 1 and not self._sees_order:
            kwargs = dict(sorted(kwargs.items()))
        leaves, containers = containers_of(args, kwargs)
        return leaves, (surroundings(), containers, static, *[leaf_kind(leaf) for leaf in leaves])

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Trace and compile for these arguments, and report on it; nothing is computed.

        Arguments may be arrays, numbers, or `ArraySpec`s.
        """
        static: Any = None
        if self._static:
            args, kwargs, static = self._split(args, kwargs)
        leaves, key = self._key(args, kwargs, static)
        found = self._traced.get(key)
        return self._trace(key, leaves, args, kwargs, static) if found is None else found

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(
        self: Jitted[Concatenate[Instance, Q], R], instance: Instance, owner: Any = None
    ) -> BoundJitted[Q, R]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """A jitted method is bound to its object, which is a static argument then."""
        return self if instance is None else BoundJitted(self, instance)

    # Tracing.

    def _trace(self, key: Any, leaves: Any, args: Any, kwargs: Any, static: Any) -> Traced:
        # Without a lock, because the function may wait for other threads. If two threads make the same trace
        # at once, the first to finish is kept.
        start = time.perf_counter()
        function = self._with_static(static)
        held = [] if static is None else [part.value for _, part in (*static[0], *static[1])]
        draws = None if is_staging() else Draws(self._function, args, kwargs, *held)
        try:
            with draws or nullcontext():
                graph = staged_out(function, args, kwargs, "jit")
        except errors.StagingError as error:
            self._advise(error.args[0], args, kwargs, static)
            raise
        graph.input_names = self._names(args, kwargs, static)
        traced = Traced(
            graph, time.perf_counter() - start, _chosen(self._backend), _dispatch_of(self)
        )
        # The trace is for plain arrays; others, such as np.memmap, are converted to plain arrays.
        traced.converts = any(
            is_plain(leaf, np.ndarray) and type(leaf) is not np.ndarray for leaf in leaves
        )
        if traced.compiled is None:
            return traced
        if draws is not None:
            draws.warn("jit")
        direct = traced.compiled.direct is not None and not self._static
        traced.takes_arguments = direct and all(map(is_taken, leaves))
        keep(key[1])
        kept = self._traced.setdefault(key, traced)
        if kept is traced:
            self._note(graph, static, key[0])
        return kept

    def _advise(self, reason: Any, args: Any, kwargs: Any, static: Any) -> None:
        """Suggest a static argument, if it would help."""
        if not isinstance(reason, Unknown) or reason.static is not None:  # jit may be inside jit
            return
        reason.static = (
            "Compute it from static arguments, jit(f, static_argnums=...), or from shapes."
        )
        if reason.input is not None:
            name = self._names(args, kwargs, static)[reason.input]
            if name in _parameter_names(self._function):
                reason.static = f"Make {name} a static argument: jit(f, static_argnames={name!r})."

    def _with_static(self, static: Any) -> Callable[..., Any]:
        if static is None:
            return self._function
        positions, names, order = static
        held_names = dict(names)

        def function(*args: Any, **kwargs: Any) -> Any:
            every = list(args)
            for position, held in positions:
                every.insert(position, held.value)
            named = {n: held_names[n].value if n in held_names else kwargs[n] for n in order}
            return self._function(*every, **named)

        return update_wrapper(function, self._function)

    def _split(self, args: Any, kwargs: Any) -> tuple[Any, Any, Any]:
        """The arguments that are traced, and those that are not."""
        positions, names = set(self._static_argnums), set(self._static_argnames)
        parameters = _parameter_names(self._function)
        positions |= {k for k, parameter in enumerate(parameters) if parameter in names}
        positions = {p + len(args) if p < 0 else p for p in positions}
        names |= {parameters[p] for p in positions if 0 <= p < len(parameters)}
        static = (
            tuple(
                (k, Static(args[k], f"argument {k}")) for k in sorted(positions) if k < len(args)
            ),
            tuple((n, Static(kwargs[n], f"argument {n}")) for n in sorted(names) if n in kwargs),
            tuple(kwargs) if self._sees_order else tuple(sorted(kwargs)),
        )
        traced = tuple(arg for k, arg in enumerate(args) if k not in positions)
        return traced, {n: v for n, v in kwargs.items() if n not in names}, static

    def _names(self, args: Any, kwargs: Any, static: Any) -> list[str]:
        """The names of the inputs, as the function's own parameters."""
        if static is None:
            return trace_names(self._function, args, kwargs)
        every = list(args)
        for position, _ in static[0]:
            every.insert(position, None)  # an empty container
        return trace_names(self._function, every, kwargs)

    def _note(self, graph: Graph, static: Any, around: Any) -> None:
        """Count the traces, and warn when there are many."""
        kinds = {
            f"the argument {name}": str(variable.spec)
            for name, variable in zip(graph.input_names or (), graph.inputs, strict=True)
        }
        if static is not None:
            parameters = _parameter_names(self._function)
            for place, held in (*static[0], *static[1]):
                if type(place) is int:
                    place = parameters[place] if place < len(parameters) else f"number {place}"
                kinds[f"the argument {place}"] = f"the static value {held.value!r:.40}"
        for name, total, _ in around[0] if around else ():
            kinds[f"the axis {name!r}"] = f"{total} lanes"
        self._kinds.append(kinds)
        if len(self._kinds) > RETRACES and not self._warned:
            self._warned = True
            warn_of_retracing(self._function, self._kinds)


@overload
def jit(
    f: np.ufunc,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    backend: Backend = "auto",
) -> Any: ...
@overload
def jit(
    f: Callable[P, R],
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    backend: Backend = "auto",
) -> Jitted[P, R]: ...
@overload
def jit(
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    backend: Backend = "auto",
) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...
def jit(
    f: Callable[..., Any] = LATER,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    backend: Backend = "auto",
) -> Any:
    """Compile a function: trace it once for each kind of arguments, then run the optimized trace.

    The function is traced on abstract values once for each structure, shape and dtype of its arguments, and
    anything else it can see of them. The trace is optimized and runs as machine code, or as generated NumPy
    code, without the function's own Python. The function must depend on its arguments only: globals and
    closures keep the values they had when it was traced, and drawing random numbers raises a
    `RandomnessWarning`. Python branches on traced values raise a `StagingError`. Results share no memory
    with arguments. jit composes with every transform, inside and outside.

    Parameters
    ----------
    static_argnums, static_argnames
        Arguments that are not traced, by position or name. They must be hashable; the function is traced
        again for each new value, by type and bits. Objects compared by identity are not inspected.
    backend
        "native" for machine code, which needs llvmlite; "numpy" for generated NumPy code; or "auto" for
        the best one available.

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
    numbers = several_values(static_argnums, int, "jit: static_argnums")
    names = several_values(static_argnames, str, "jit: static_argnames")
    if backend not in ("auto", "numpy", "native"):
        raise errors.OptionError(
            f'jit: backend must be "auto", "native" or "numpy", not {backend!r}, at '
            f"{errors.user_location()}."
        )
    if backend == "native" and not _native_is_there():
        raise errors.OptionError(
            'jit: the backend "native" needs llvmlite, which is not installed (or this is not '
            f"CPython on a 64-bit machine), at {errors.user_location()}. Install it with "
            '`pip install "functrans[jit]"`, or use backend="numpy".'
        )
    if f is LATER:
        return partial(jit, static_argnums=numbers, static_argnames=names, backend=backend)
    f = check_callable(f, "jit")
    _check_static(f, numbers, names)
    return Jitted(f, numbers, names, backend)


def _check_static(f: Callable[..., Any], numbers: tuple[int, ...], names: tuple[str, ...]) -> None:
    """Refuse static arguments that the function does not have."""
    try:
        parameters = inspect.signature(f).parameters
    except (TypeError, ValueError):
        return  # a C function may have no signature
    kinds = {parameter.kind for parameter in parameters.values()}
    known = _parameter_names(f)
    wrong: list[Any] = []
    if inspect.Parameter.VAR_POSITIONAL not in kinds:
        wrong += [number for number in numbers if not -len(known) <= number < len(known)]
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        wrong += [name for name in names if name not in parameters]
    if wrong:
        option = "static_argnames" if isinstance(wrong[0], str) else "static_argnums"
        raise errors.OptionError(
            f"jit: {option} names {wrong[0]!r}, but the parameters of {errors.describe(f)} are "
            f"{', '.join(parameters) or 'none'}, at {errors.user_location()}."
        )


@cache
def _native_is_there() -> bool:
    try:
        found = find_spec("llvmlite")
    except ImportError:  # an import hook of this environment blocks it
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
        "jit runs generated NumPy code, because llvmlite is not installed. Machine code is several times "
        'faster: `pip install "functrans[jit]"`. To stay with NumPy code, use jit(f, backend="numpy").',
        PerformanceHint,
        stacklevel=errors.user_depth(),
    )
    return "numpy"


def _dispatch_of(jitted: Jitted[..., Any]) -> Callable[..., Any]:
    """The fallback of native code for arguments of another kind. It does not keep the function alive."""
    reference = weakref.ref(jitted)

    def dispatch(*args: Any) -> Any:
        owner = reference()
        assert owner is not None  # the code belongs to it
        return owner._dispatch(*args)

    return dispatch


class BoundJitted(Generic[P, R]):
    """A jitted method of an object."""

    __slots__ = ("instance", "method")

    def __init__(self, method: Jitted[..., R], instance: Any) -> None:
        self.method = method
        self.instance = instance

    def __repr__(self) -> str:
        return f"<bound method {self.method!r} of {self.instance!r}>"

    def __reduce__(self) -> Any:
        return getattr, (self.instance, self.method.__name__)

    @property
    def __wrapped__(self) -> MethodType:
        return MethodType(self.method._function, self.instance)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.method(self.instance, *args, **kwargs)

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        return self.method.trace(self.instance, *args, **kwargs)


def _takes_any_keyword(function: Callable[..., Any]) -> bool:
    """Whether a function can see the order of its keyword arguments."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return True
    return any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)


def _parameter_names(function: Callable[..., Any]) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [parameter.name for parameter in parameters if parameter.kind in kinds]


def _run(traced: Traced, leaves: Any) -> Any:
    compiled = traced.compiled
    assert compiled is not None
    if traced.converts:
        leaves = [np.asarray(x) if is_plain(x, np.ndarray) else x for x in leaves]
    if compiled.direct is not None:
        return compiled.function(*leaves)
    token = point()
    try:
        results = compiled.function(*leaves)
    finally:
        unpoint(token)
    structure = compiled.structure
    return results[0] if structure is None else tree.unflatten(structure, results)


def _run_through_primitives(graph: Graph, leaves: Any) -> Any:
    """Run the equations one by one, so that outer transforms see them."""
    environment: dict[Any, Any] = dict(graph.constants)
    plain = (plain_array(x) if is_plain(x, np.ndarray) else as_constant(x) for x in leaves)
    environment.update(zip(graph.inputs, plain, strict=True))
    run_equations(graph.equations, environment)
    results = graph.in_form([_in_rows(environment[variable]) for variable in graph.outputs])
    environment.clear()
    return tree.unflatten(graph.out_tree, own(results))


def _in_rows(value: Any) -> Any:
    """A result in C order, like those of compiled code: whether NumPy returns a view depends on it."""
    if len(shape_of(value)) < 2:
        return value
    in_order = is_contiguous(value) if isinstance(value, Tracer) else value.flags.c_contiguous
    return value if in_order else copy(value)
