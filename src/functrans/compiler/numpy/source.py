"""`source`: the optimized computation of a function, as a NumPy function to read and to run."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import FunctionType
from typing import Any, overload

import numpy as np

from functrans.compiler.numpy import control  # noqa: F401  (states how loops are written)
from functrans.compiler.numpy.generated import shared_outputs
from functrans.compiler.numpy.helpers import Helpers
from functrans.compiler.numpy.writer import GraphWriter
from functrans.compiler.passes import optimize
from functrans.compiler.subroutines import inlined
from functrans.core import errors, tree
from functrans.core.dispatch import Tracer
from functrans.graph.graph import Graph, trace_names
from functrans.transforms.arguments import LATER, check_callable
from functrans.transforms.functions import transform_name, transformed
from functrans.transforms.staging import make_graph

_WIDTH = 60  # a longer expression gets a name
_LINE = 92


class Source(str):
    """The text of a function that needs only NumPy.

    Arrays that are too large to write down are keyword parameters without a default. `constants`
    has their values, and `function` is the function with these values filled in.
    """

    name: str
    constants: dict[str, Any]

    @property
    def function(self) -> Callable[..., Any]:
        """The function that the text defines."""
        namespace: dict[str, Any] = {}
        exec(compile(self, f"<source of {self.name}>", "exec"), namespace)
        defined: FunctionType = namespace[self.name]
        if self.constants:
            defined.__kwdefaults__ = dict(self.constants)
        return defined


@overload
def source(f: Callable[..., Any]) -> Callable[..., Source]: ...
@overload
def source() -> Callable[[Callable[..., Any]], Callable[..., Source]]: ...
def source(f: Callable[..., Any] = LATER) -> Any:
    """Write a function as plain NumPy source, for arguments with given shapes and dtypes.

    The text is a Python function of the same arguments that needs only NumPy (and SciPy, if the
    function uses its special functions). Derivatives and batches are written out, and unused
    operations are left out. Arguments may be arrays, numbers, or `ArraySpec`s.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad, source
    >>> def loss(w, x, y):
    ...     return np.mean((np.tanh(x @ w) - y) ** 2)
    >>> print(source(grad(loss))(np.ones(3), np.ones((5, 3)), np.ones(5)))
    import numpy as np
    <BLANKLINE>
    <BLANKLINE>
    def grad_loss(w, x, y):
        # w: float64[3], x: float64[5,3], y: float64[5]
        tanh = np.tanh(x @ w)  # float64[5]
        return (0.2 * (2 * (tanh - y)) * (1 - tanh * tanh)) @ x  # float64[3]
    """
    if f is LATER:
        return source
    f = check_callable(f, "source")
    staged = make_graph(f)

    def written(*args: Any, **kwargs: Any) -> Source:
        graph = inlined(optimize(staged(*args, **kwargs)))
        parameters = trace_names(f, [0.0] * len(args), dict.fromkeys(kwargs, 0.0))
        return write_source(graph, _function_name(f), parameters)

    return transformed(written, f, source, "The NumPy source of {f}.")


def write_source(graph: Graph, name: str, parameters: list[str]) -> Source:
    """The graph as a function of this name and these parameters."""
    if any(isinstance(value, Tracer) for value in graph.constants.values()):
        raise errors.StagingError(
            "source cannot write a function that uses a value traced by another transform, at "
            f"{errors.user_location()}. Apply the transform inside: source(grad(f))(x)."
        )
    helpers = Helpers()
    writer = GraphWriter(graph, _WIDTH, helpers)
    writer.taken.add(name)
    parameters, unpacking = _parameters(graph, writer, parameters)
    writer.write()
    imports: set[str] = {"import numpy as np"}
    result = _result(graph, writer, imports)
    body = [*unpacking, *writer.lines, result]
    constants = writer.bound
    helper_text = _spaced(list(helpers.definitions.values()))
    if any("special." in line for line in body):
        imports.add("from scipy import special")
    if constants:
        parameters += ["*", *constants]
    described = ", ".join(f"{writer.texts[v].code}: {v.spec}" for v in graph.inputs)
    header = [f"def {name}({', '.join(parameters)}):"]
    header += _comment(described) if described and not unpacking else []
    for constant, value in constants.items():
        header.append(f"    # {constant}: {value.dtype}[{','.join(map(str, value.shape))}]")
    lines = sorted(imports | helpers.imports, key=lambda line: (line.startswith("from"), line))
    text = "\n".join(lines) + "\n" + helper_text + "\n\n"
    text += "\n".join(header + [piece for line in body for piece in _broken(line)]) + "\n"
    found = Source(text.rstrip("\n"))
    found.name = name
    found.constants = {key: np.array(value) for key, value in constants.items()}
    return found


def _function_name(f: Callable[..., Any]) -> str:
    """loss for a function loss, grad_loss for grad(loss)."""
    names = []
    function: Any = f
    while hasattr(function, "__wrapped__"):
        names.append(transform_name(function) or "")
        function = function.__wrapped__
    names.append(getattr(function, "__name__", "function"))
    name = "_".join(part for part in names if part.isidentifier())
    return name or "function"


def _parameters(
    graph: Graph, writer: GraphWriter, wanted: list[str]
) -> tuple[list[str], list[str]]:
    """The parameters of the function, and statements that take containers apart."""
    names = graph.input_names or []
    parameters = dict.fromkeys(wanted, "")
    unpacking = []
    roots = [re.match(r"\w*", name).group() or "x" for name in names]  # type: ignore[union-attr]
    for root in parameters:
        if root not in names:  # a container, possibly empty
            parameters[root] = writer.fresh(root)
    for variable, root, name in zip(graph.inputs, roots, names, strict=True):
        path = name[len(root) :]
        if not path:
            parameters[root] = writer.name_input(variable, root)
            continue
        words = re.findall(r"[A-Za-z_]\w*", path)
        base = words[-1] if words else f"{root}{''.join(re.findall(r'[0-9]+', path))}"
        leaf = writer.name_input(variable, base)
        unpacking.append(f"{leaf} = {parameters[root]}{path}  # {variable.spec}")
    return list(parameters.values()), unpacking


class _Leaf:
    """A leaf whose repr is the text of its value."""

    def __init__(self, code: str) -> None:
        self.code = code

    def __repr__(self) -> str:
        return self.code


def _result(graph: Graph, writer: GraphWriter, imports: set[str]) -> str:
    shared = shared_outputs(graph)
    leaves = [
        f"np.array({writer.texts[v].code})"
        if copied and (v.spec.shape or k in (graph.arrays or ()))
        else writer.texts[v].code
        for k, (v, copied) in enumerate(zip(graph.outputs, shared, strict=True))
    ]
    specs = ", ".join(str(v.spec) for v in graph.outputs)
    result: Any = tuple(map(_Leaf, leaves))
    if graph.out_tree is not None:
        result = tree.unflatten(graph.out_tree, [_Leaf(code) for code in leaves])
        for name in set(re.findall(r"\b([A-Za-z_]\w*)\(\w+=", repr(result))):
            for node in _containers(result):
                if type(node).__name__ == name:
                    imports.add(f"from {type(node).__module__} import {name}")
    text = _formatted(result, len("return ") + 4)
    if type(result) is tuple and len(result) > 1 and "\n" not in text:
        text = text[1:-1]
    return f"return {text}  # {specs}" if specs else f"return {text}"


def _formatted(node: Any, indent: int) -> str:
    """A container of leaves, on several lines if it does not fit on one."""
    text = repr(node)
    if indent + len(text) <= _LINE or type(node) not in (dict, list, tuple) or not node:
        return text
    if isinstance(node, dict):
        entries = [f"{key!r}: {_formatted(node[key], 8)}" for key in node]
    else:
        entries = [_formatted(child, 8) for child in node]
    inner = "".join(f"    {line}\n" for entry in entries for line in f"{entry},".split("\n"))
    opening, closing = text[0], text[-1]
    return f"{opening}\n{inner}{closing}"


def _containers(node: Any) -> list[Any]:
    below = []
    if isinstance(node, dict):
        below = list(node.values())
    elif isinstance(node, (list, tuple)):
        below = list(node)
    elif hasattr(node, "__dataclass_fields__"):
        below = [getattr(node, name) for name in node.__dataclass_fields__]
    return [node, *(inner for child in below for inner in _containers(child))]


def _spaced(definitions: list[str]) -> str:
    """Join definitions: two empty lines around functions, none between constants."""
    text, after_constant = "", False
    for definition in definitions:
        constant = not definition.startswith("def ")
        text += f"{definition}\n" if constant and after_constant else f"\n\n{definition}\n"
        after_constant = constant
    return text


def _comment(text: str) -> list[str]:
    """A comment, broken between words."""
    lines = [""]
    for word in text.split(", "):
        if len(lines[-1]) + len(word) > _LINE - 8:
            lines.append("")
        lines[-1] += f", {word}" if lines[-1] else word
    return [f"    # {line}" for line in lines]


def _broken(line: str) -> list[str]:
    """A statement of the body; its comment goes on the line above if it does not fit."""
    if line.lstrip().startswith("# "):
        indent, _, text = line.partition("# ")
        return [indent + each for each in _comment(text)]
    code, mark, comment = line.partition("  # ")
    if mark and (len(line) + 4 > _LINE or "\n" in code):
        indent = " " * (4 + len(code) - len(code.lstrip()))
        return [f"{indent}# {comment}", *(f"    {each}" for each in code.split("\n"))]
    return [f"    {line}" if line else ""]
