"""Graph: a program as data, a list of equations in order with typed inputs and outputs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from importlib import import_module
from types import MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.core import errors, tree
from functrans.core.custody import own
from functrans.core.dispatch import is_plain, named_axis
from functrans.core.evaluate import run_equations
from functrans.core.floating_point import point, unpoint
from functrans.core.primitive import Elementwise
from functrans.core.shapes import ArraySpec, cast, is_python_number, shape_of, spec_of
from functrans.core.subclasses import plain_array
from functrans.core.views import in_form
from functrans.graph.printing import format_graph
from functrans.graph.scopes import Scope

if TYPE_CHECKING:
    from functrans.drawing.picture import Drawing


class Variable:
    """A variable of a graph. It is identified by object identity; printing chooses its letters."""

    __slots__ = ("spec",)

    def __init__(self, spec: ArraySpec) -> None:
        self.spec = spec

    def __repr__(self) -> str:
        return f"<variable {self.spec}>"


class Equation:
    """One application of a primitive: outputs = primitive(*inputs, **params).

    `scope` lists the calls of the user's functions that it comes from, outermost first, for pictures.
    """

    __slots__ = ("inputs", "outputs", "params", "primitive", "scope")

    def __init__(
        self,
        primitive: Any,
        inputs: tuple[Variable, ...],
        params: dict[str, Any],
        outputs: tuple[Variable, ...],
        scope: Scope = (),
    ) -> None:
        self.primitive = primitive
        self.inputs = inputs
        self.params = params
        self.outputs = outputs
        self.scope = scope


class Graph:
    """A traced function: typed inputs, constants, equations in order, outputs.

    Call it like the traced function, with arguments of the same structure, shapes and dtypes. It runs on
    arrays, and under every transform.

    Examples
    --------
    >>> import numpy as np, functrans
    >>> graph = functrans.make_graph(lambda x: np.sin(x) * 2.0)(np.ones(3))
    >>> print(graph)
    graph(x: float64[3]) -> float64[3]:
        a: float64[3] = sin(x)
        b: float64[3] = multiply(a, 2.0)
        return b
    >>> graph(np.zeros(3))
    array([0., 0., 0.])
    """

    __slots__ = (
        "arrays",
        "axes",
        "constants",
        "equations",
        "in_tree",
        "input_names",
        "inputs",
        "out_tree",
        "outputs",
    )

    def __init__(
        self,
        inputs: list[Variable],
        constants: dict[Variable, Any],
        equations: list[Equation],
        outputs: list[Variable],
        in_tree: Any = None,
        out_tree: Any = None,
        input_names: list[str] | None = None,
        axes: dict[Any, int] | None = None,
        arrays: frozenset[int] | None = None,
    ) -> None:
        self.inputs = inputs
        self.constants = constants
        self.equations = equations
        self.outputs = outputs
        self.in_tree = in_tree
        self.out_tree = out_tree
        self.input_names = input_names
        self.axes = axes or {}  # the number of lanes of named axes that the graph is for
        # The outputs without axes that are arrays, by their places, where the others are numbers; or None if
        # it does not matter.
        self.arrays = arrays

    def __str__(self) -> str:
        return format_graph(self)

    def __repr__(self) -> str:
        return (
            f"<Graph of {len(self.equations)} equations: ({', '.join(str(v.spec) for v in self.inputs)})"
            f" -> ({', '.join(str(v.spec) for v in self.outputs)})>"
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run on arguments with the traced structure, shapes and dtypes."""
        leaves, structure = tree.flatten((args, kwargs))
        if self.in_tree is not None and structure != self.in_tree:
            raise errors.GraphError(
                f"the graph was traced for arguments {arguments_of(self.in_tree)}, but was called with "
                f"{arguments_of(structure)}, at {errors.user_location()}. Call it like the function it was "
                "made from, or trace again."
            )
        results = self.run(leaves)
        return results if self.out_tree is None else tree.unflatten(self.out_tree, results)

    def run(self, leaves: list[Any]) -> list[Any]:
        """Run on flat inputs and return flat outputs."""
        if len(leaves) != len(self.inputs):
            raise errors.GraphError(
                f"the graph has {len(self.inputs)} inputs, but got {len(leaves)} values, at "
                f"{errors.user_location()}. Pass one value for each leaf of the arguments."
            )
        for name, lanes in self.axes.items():
            if named_axis(name).total != lanes:
                raise errors.GraphError(
                    f"the graph was traced for {lanes} lanes of the axis {name!r}, but was called with "
                    f"{named_axis(name).total}, at {errors.user_location()}. Trace again."
                )
        environment: dict[Variable, Any] = dict(self.constants)
        for k, (variable, leaf) in enumerate(zip(self.inputs, leaves, strict=True)):
            environment[variable] = fitting(leaf, variable.spec, k)
        token = point()
        try:
            run_equations(self.equations, environment, self.outputs)
        finally:
            unpoint(token)
        results = self.in_form([environment[variable] for variable in self.outputs])
        environment.clear()
        return own(results)

    def in_form(self, results: list[Any]) -> list[Any]:
        """The results, those without axes as arrays or as numbers, as the function returned them."""
        if self.arrays is not None:
            for k, variable in enumerate(self.outputs):
                if not variable.spec.shape and not variable.spec.weak:
                    results[k] = in_form(results[k], k in self.arrays)
        return results

    def pruned(self) -> Graph:
        """The same graph without the equations and constants that no output needs."""
        needed = set(self.outputs)
        kept = []
        for equation in reversed(self.equations):
            if not needed.isdisjoint(equation.outputs):
                needed.update(equation.inputs)
                kept.append(equation)
        constants = {v: value for v, value in self.constants.items() if v in needed}
        return Graph(
            self.inputs,
            constants,
            kept[::-1],
            self.outputs,
            self.in_tree,
            self.out_tree,
            self.input_names,
            self.axes,
            self.arrays,
        )

    def save(self, path: Any) -> None:
        """Write the graph to a file, to be read with `functrans.load_graph`; it contains no code."""
        _storage().save_graph(self, path)

    def draw(
        self,
        collapse: str | bool | int | Sequence[str] = "auto",
        show_values: Sequence[Any] | None = None,
    ) -> Drawing:
        """Draw the graph, as a picture that notebooks display.

        Parameters
        ----------
        collapse : "auto", bool, int, or names of functions
            What to draw as one box: all calls of the functions with these names; with an int, the calls at
            that depth (1, or True, for those in the traced function itself); nothing for False. "auto"
            draws everything if that takes at most 200 boxes, and otherwise as much as fits.
        show_values : sequence, optional
            Arguments to run the graph on. Each box then shows its value.

        Returns
        -------
        Drawing
            It has the picture as `svg`, Graphviz text as `dot`, and `save(path)`.

        Examples
        --------
        >>> import numpy as np, functrans
        >>> graph = functrans.make_graph(lambda x: np.sum(np.sin(x)))(np.ones(3))
        >>> drawing = graph.draw()
        >>> drawing
        <Drawing of 4 boxes>
        >>> drawing.svg[:4]
        '<svg'
        """
        draw_graph = import_module("functrans.drawing.graphs").draw_graph
        drawing: Drawing = draw_graph(self, collapse, show_values)
        return drawing

    def _repr_html_(self) -> str:
        html: str = import_module("functrans.drawing.graphs").graph_page(self)
        return html

    def __reduce__(self) -> Any:
        return _storage().reduce_graph(self)

    def check(self) -> None:
        """Raise GraphError unless every variable is defined once, before its use, and well typed."""
        defined: set[Variable] = set()

        def define(variable: Variable, what: str) -> None:
            _check_kind(variable, Variable, what)
            if variable in defined:
                raise errors.GraphError(f"{what} defines a variable that is already defined.")
            if variable.spec.weak and not is_python_number(variable.spec):
                raise errors.GraphError(
                    f"{what} define {variable.spec}, which is not a number of Python's."
                )
            defined.add(variable)

        def use(variable: Variable, what: str) -> None:
            if variable not in defined:
                raise errors.GraphError(f"{what} uses a variable before it is defined.")

        _check_kind(self.constants, dict, "a graph")
        for variable in self.inputs:
            define(variable, "the inputs")
        for variable, value in self.constants.items():
            define(variable, "the constants")
            if spec_of(value) != variable.spec:
                raise errors.GraphError(
                    f"a constant is declared {variable.spec} but holds {spec_of(value)}."
                )
        for number, equation in enumerate(self.equations):
            _check_kind(equation, Equation, f"equation {number}")
            what = f"equation {number} ({equation.primitive.name})"
            for variable in equation.inputs:
                use(variable, what)
            specs = tuple(variable.spec for variable in equation.inputs)
            try:
                _check_call(equation)
                found = equation.primitive.shape(specs, equation.params)
                found = tuple(found) if equation.primitive.outputs else (found,)
            except Exception as error:
                from functrans.core import archives  # which loads json and zipfile

                raise errors.GraphError(
                    f"{what} cannot take {specs}: {archives.reason(error)}"
                ) from error
            declared = tuple(variable.spec for variable in equation.outputs)
            if found != declared:
                raise errors.GraphError(f"{what} is declared {declared} but gives {found}.")
            for variable in equation.outputs:
                define(variable, what)
        for variable in self.outputs:
            use(variable, "the outputs")


def _check_kind(part: Any, kind: type, what: str) -> None:
    if not isinstance(part, kind):
        raise errors.GraphError(
            f"{what} has a {type(part).__name__} where a {kind.__name__} belongs."
        )


def _check_call(equation: Equation) -> None:
    """Raise TypeError for another number of arguments or other parameters than the primitive takes."""
    impl, inputs, params = equation.primitive.impl, equation.inputs, equation.params
    if isinstance(equation.primitive, Elementwise) and params:
        raise TypeError("it takes no parameters")
    if isinstance(impl, np.ufunc):
        if len(inputs) != impl.nin or params:
            raise TypeError(f"it takes {impl.nin} arguments and no parameters")
    else:
        inspect.signature(impl).bind(*inputs, **params)


def _storage() -> Any:
    """The module that stores graphs, imported late because it is rarely needed."""
    return import_module("functrans.compiler.storage")


def arguments_of(structure: Any) -> str:
    """The arguments of a call, as a message shows them."""
    args, kwargs = structure.children()
    named = [
        f"{name}={tree.shown(part)}"
        for name, part in zip(kwargs.entries(), kwargs.children(), strict=True)
    ]
    return f"({', '.join([*map(tree.shown, args.children()), *named])})"


def _another_kind(position: int, spec: ArraySpec, found: Any) -> errors.GraphError:
    return errors.GraphError(
        f"input {position} of the graph was traced as {spec}, but is {found}, at "
        f"{errors.user_location()}. Trace again for such arguments: make_graph(f)(*args)."
    )


def fitting(value: Any, spec: ArraySpec, position: int) -> Any:
    """The value as an input of this spec; weak and strong scalars of one dtype are interchangeable."""
    if not tree.is_array(value) or shape_of(value) != spec.shape:
        found = spec_of(value) if tree.is_array(value) else type(value).__name__
        raise _another_kind(position, spec, found)
    given = spec_of(value)
    # A Python number fits any dtype that can hold it: an int fits a float, but not a float an int.
    holds = "biufc".index(given.dtype.kind) <= "biufc".index(spec.dtype.kind)
    if given.dtype != spec.dtype and not (given.weak and holds):
        raise _another_kind(position, spec, given)
    if spec.weak:
        if is_plain(value, (np.ndarray, np.generic)):
            return value.item()
        return type(spec.dtype.type(0).item())(value) if given.dtype != spec.dtype else value
    if given.weak and not spec.weak:
        return cast(value, spec.dtype)
    return plain_array(value) if is_plain(value, np.ndarray) else value


def trace_names(function: Callable[..., Any], args: Any, kwargs: Any) -> list[str]:
    """A name for every input leaf: the parameter's own name where the leaf is the whole argument."""
    bound = 0  # arguments, as the first one of a method
    while True:
        if isinstance(function, MethodType):
            bound, function = bound + 1, function.__func__
        elif hasattr(function, "__wrapped__"):  # a transform keeps the parameters of what it wraps
            function = function.__wrapped__
        else:
            break
    code = getattr(function, "__code__", None)
    parameters = code.co_varnames[bound : code.co_argcount] if code is not None else ()
    names = []
    for k, arg in enumerate(args):
        parameter = parameters[k] if k < len(parameters) else f"arg{k}"
        names += [parameter + path for path in tree.paths(arg)]
    for key in sorted(kwargs):
        names += [key + path for path in tree.paths(kwargs[key])]
    return names
