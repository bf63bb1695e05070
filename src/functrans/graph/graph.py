"""Graph: a program as data, a list of equations in order with typed inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.core import errors, tree
from functrans.core.evaluate import run_equations
from functrans.core.shapes import ArraySpec, cast, shape_of, spec_of
from functrans.graph.printing import format_graph
from functrans.graph.scopes import Scope

if TYPE_CHECKING:
    from functrans.drawing.picture import Drawing


class Variable:
    """A name for one value in a graph. Its identity is its name; printing chooses letters."""

    __slots__ = ("spec",)

    def __init__(self, spec: ArraySpec) -> None:
        self.spec = spec

    def __repr__(self) -> str:
        return f"<variable {self.spec}>"


class Equation:
    """One application of a primitive: outputs = primitive(*inputs, **params).

    `scope` has the calls of the user's functions that it comes from, outermost first, for pictures.
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

    Call it with the arguments that the traced function takes (of the same structure, shapes and
    dtypes). It runs on arrays, and under every transform.

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
    ) -> None:
        self.inputs = inputs
        self.constants = constants
        self.equations = equations
        self.outputs = outputs
        self.in_tree = in_tree
        self.out_tree = out_tree
        self.input_names = input_names

    def __str__(self) -> str:
        return format_graph(self)

    def __repr__(self) -> str:
        return (
            f"<Graph of {len(self.equations)} equations: ({', '.join(str(v.spec) for v in self.inputs)})"
            f" -> ({', '.join(str(v.spec) for v in self.outputs)})>"
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run on arguments of the structure, shapes and dtypes that were traced."""
        leaves, structure = tree.flatten((args, kwargs))
        if self.in_tree is not None and structure != self.in_tree:
            raise errors.GraphError(
                f"the graph was traced for arguments of structure {self.in_tree}, but was called "
                f"with {structure}. Call it like the function it was made from, or trace again."
            )
        results = self.run(leaves)
        return results if self.out_tree is None else tree.unflatten(self.out_tree, results)

    def run(self, leaves: list[Any]) -> list[Any]:
        """Run on flat inputs and return flat outputs."""
        if len(leaves) != len(self.inputs):
            raise errors.GraphError(
                f"the graph has {len(self.inputs)} inputs, but was given {len(leaves)} values."
            )
        environment: dict[Variable, Any] = dict(self.constants)
        for k, (variable, leaf) in enumerate(zip(self.inputs, leaves, strict=True)):
            environment[variable] = fitting(leaf, variable.spec, k)
        run_equations(self.equations, environment, self.outputs)
        seen = {id(value) for value in (*leaves, *self.constants.values())}
        results = []
        for variable in self.outputs:
            value = environment[variable]
            # An input or a constant that is returned is copied: the caller may change what it gets.
            if type(value) is np.ndarray and id(value) in seen:
                value = value.copy()
            seen.add(id(value))
            results.append(value)
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
        )

    def save(self, path: Any) -> None:
        """Write the graph to a file, which `functrans.load_graph` reads; it holds no code."""
        _storage().save_graph(self, path)

    def draw(
        self,
        collapse: str | bool | int | Sequence[str] = "auto",
        show_values: Sequence[Any] | None = None,
    ) -> Drawing:
        """A picture of the graph, which a notebook shows.

        Parameters
        ----------
        collapse : "auto", bool, int, or names of functions
            What to draw as one box: all calls of the functions with these names; with an int, the calls
            that deep (1 for those in the traced function itself, which True means as well); nothing for
            False. "auto" draws everything if it is at most 200 boxes, and as much as fits if not.
        show_values : sequence, optional
            Arguments to run the graph on. Each box then shows its value.

        Returns
        -------
        Drawing
            With the picture as `svg`, Graphviz text as `dot`, and `save(path)`.

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
                found = equation.primitive.shape(specs, equation.params)
            except (TypeError, ValueError, IndexError, KeyError) as error:
                raise errors.GraphError(f"{what} cannot take {specs}: {error}") from error
            found = tuple(found) if equation.primitive.outputs else (found,)
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


def _storage() -> Any:
    """The module that stores graphs, which is needed rarely and knows more than this one."""
    return import_module("functrans.compiler.storage")


def fitting(value: Any, spec: ArraySpec, position: int) -> Any:
    """The value as an input of this spec; weak and strong scalars of one dtype stand for each other."""
    if not tree.is_array(value) or shape_of(value) != spec.shape:
        found = spec_of(value) if tree.is_array(value) else type(value).__name__
        raise errors.GraphError(f"input {position} was traced as {spec}, but is {found}.")
    given = spec_of(value)
    # A Python number stands for any dtype that holds it: an int for a float, not a float for an int.
    holds = "biufc".index(given.dtype.kind) <= "biufc".index(spec.dtype.kind)
    if given.dtype != spec.dtype and not (given.weak and holds):
        raise errors.GraphError(f"input {position} was traced as {spec}, but is {given}.")
    if spec.weak:
        if isinstance(value, (np.ndarray, np.generic)):
            return value.item()
        return type(spec.dtype.type(0).item())(value) if given.dtype != spec.dtype else value
    if given.weak and not spec.weak:
        return cast(value, spec.dtype)
    return value


def trace_names(function: Callable[..., Any], args: Any, kwargs: Any) -> list[str]:
    """A name for every input leaf: the parameter's own name where the leaf is the whole argument."""
    while hasattr(function, "__wrapped__"):  # a transform keeps the parameters of what it wraps
        function = function.__wrapped__
    code = getattr(function, "__code__", None)
    parameters = code.co_varnames[: code.co_argcount] if code is not None else ()
    names = []
    for k, arg in enumerate(args):
        parameter = parameters[k] if k < len(parameters) else f"arg{k}"
        names += [parameter + path for path in tree.paths(arg)]
    for key in sorted(kwargs):
        names += [key + path for path in tree.paths(kwargs[key])]
    return names
