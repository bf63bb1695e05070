"""Graphs as files: JSON for structure and npz for constants, in one zip archive.

Reading a file runs no code from it: a file holds names of primitives, numbers and arrays without pickles, all
of which are checked. The time and memory to read it are bounded by its size.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from typing import Any

import numpy as np

from functrans.control import branching as _branching
from functrans.control import loops as _loops
from functrans.control import scanning as _scanning
from functrans.control.procedures import Procedure
from functrans.core import archives, errors, tree
from functrans.core.dispatch import Tracer, is_plain
from functrans.core.primitive import (
    HigherOrder,
    Primitive,
    is_registered,
    primitive_called,
)
from functrans.core.shapes import ArraySpec
from functrans.graph.graph import Equation, Graph, Variable
from functrans.ops import fourier as _fourier
from functrans.ops import normal as _normal
from functrans.ops import rejection as _rejection
from functrans.ops import special as _special
from functrans.ops.indexing import ARRAY
from functrans.transforms import spectral_functions as _spectral

# The modules, imported late, whose primitives a file may name.
_WORDS = (_branching, _fourier, _loops, _normal, _rejection, _scanning, _special, _spectral)

FORMAT = "functrans graph"
VERSION = 3
_STRUCTURE, _CONSTANTS = "graph.json", "constants.npz"
_PROCEDURE = "procedure"


def save_graph(graph: Graph, path: str | os.PathLike[str] | io.IOBase) -> None:
    """Write a graph to a file, or to anything that has `write`."""
    document, arrays = describe_graph(graph)
    document["in_tree"] = _tree_out(graph.in_tree)
    document["out_tree"] = _tree_out(graph.out_tree)
    held = io.BytesIO()
    np.savez(held, **arrays)
    target: Any = path
    with zipfile.ZipFile(target, "w") as archive:
        text = json.dumps(document, separators=(",", ":"))
        archives.add_member(archive, _STRUCTURE, text.encode())
        archive.writestr(_CONSTANTS, held.getvalue())


def load_graph(path: str | os.PathLike[str] | io.IOBase) -> Graph:
    """Read a graph that `graph.save(path)` wrote.

    The file is not trusted: no code in it is run, and a damaged or malicious file raises `GraphError`. The
    time and memory to read it are bounded by its size; running the graph is not bounded.

    Examples
    --------
    >>> import io, numpy as np, functrans
    >>> file = io.BytesIO()
    >>> functrans.make_graph(lambda x: np.sin(x) * 2.0)(np.ones(3)).save(file)
    >>> graph = functrans.load_graph(file)
    >>> graph(np.zeros(3))
    array([0., 0., 0.])
    """
    where = path if isinstance(path, (str, os.PathLike)) else "the stream"
    try:
        document, arrays = _read(path)
        graph = restore(document, arrays)
        graph.in_tree = _tree_in(document["in_tree"], len(graph.inputs))
        graph.out_tree = _tree_in(document["out_tree"], len(graph.outputs))
        graph.check()
    except (FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except _NewerVersion:
        raise
    except Exception as error:
        raise errors.GraphError(
            f"{where} is not a graph that functrans can read: {archives.reason(error)}. It may be "
            "damaged, or not written by graph.save."
        ) from error
    return graph


class _NewerVersion(errors.GraphError):
    """A file of an unknown version."""


def _read(path: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    parts = dict(archives.members(path, deflated=(_STRUCTURE,)))
    document = archives.json_in(parts.pop(_STRUCTURE))
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError("it is not marked as a graph")
    version = document.get("version")
    if version != VERSION:
        raise _NewerVersion(
            f"the graph was stored in version {archives.shortened(repr(version))} of the format, and "
            f"this functrans reads version {VERSION}. Use the functrans that wrote it, or a newer one."
        )
    held = io.BytesIO(parts.pop(_CONSTANTS))
    if parts:
        raise ValueError("it has members that no graph has")
    arrays = {}
    for name, content in archives.members(held):
        arrays[name.removesuffix(".npy")] = archives.array_in(content)
    return document, arrays


# A graph, without its containers, as JSON and arrays.


def describe_graph(
    graph: Graph, arrays: dict[str, Any] | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The graph as JSON and arrays, without the structures of arguments and results.

    The arrays of nested graphs, in parameters, are stored with them.
    """
    arrays = {} if arrays is None else arrays
    numbers: dict[Variable, int] = {}

    def number(variable: Variable) -> int:
        return numbers.setdefault(variable, len(numbers))

    inputs = [{"variable": number(v), "spec": _spec_out(v.spec)} for v in graph.inputs]
    constants = []
    for variable, value in graph.constants.items():
        if isinstance(value, Tracer):
            raise errors.GraphError(
                "a graph that uses a value traced by another transform cannot be stored. Store it "
                "after the transform has ended."
            )
        name = f"c{len(arrays)}"
        arrays[name] = np.asarray(value)
        if arrays[name].dtype.kind not in "biufc":
            raise errors.GraphError(f"a constant of dtype {arrays[name].dtype} cannot be stored.")
        constants.append(
            {
                "variable": number(variable),
                "name": name,
                "spec": _spec_out(variable.spec),
                "array": is_plain(value, np.ndarray),
            }
        )
    equations = []
    for equation in graph.equations:
        primitive = equation.primitive
        if not _is_storable(primitive):
            if isinstance(primitive, HigherOrder):
                raise errors.GraphError(
                    f"the operation {primitive.name} holds Python functions, so a graph that uses it "
                    "cannot be stored."
                )
            raise errors.GraphError(
                f"the operation {primitive.name} is not part of functrans, so a graph that uses it cannot be "
                "stored."
            )
        equations.append(
            {
                "primitive": primitive.name,
                "inputs": [number(v) for v in equation.inputs],
                "params": {
                    key: _value_out(value, arrays) for key, value in equation.params.items()
                },
                "outputs": [
                    {"variable": number(v), "spec": _spec_out(v.spec)} for v in equation.outputs
                ],
            }
        )
    document = {
        "format": FORMAT,
        "version": VERSION,
        "inputs": inputs,
        "input_names": graph.input_names,
        "constants": constants,
        "equations": equations,
        "outputs": [number(v) for v in graph.outputs],
        "arrays": None if graph.arrays is None else sorted(graph.arrays),
        "axes": [[_value_out(name, arrays), lanes] for name, lanes in graph.axes.items()],
    }
    return document, arrays


def restore(document: dict[str, Any], arrays: dict[str, Any]) -> Graph:
    """The graph that `describe_graph` described."""
    variables: list[Variable] = []

    def define(entry: dict[str, Any]) -> Variable:
        number = entry["variable"]
        if type(number) is not int or number != len(variables):
            raise ValueError("the variables are not numbered in the order of their definitions")
        variables.append(Variable(_spec_in(entry["spec"])))
        return variables[-1]

    def defined(number: Any) -> Variable:
        if type(number) is not int or not 0 <= number < len(variables):
            raise ValueError("a variable is used before it is defined")
        return variables[number]

    inputs = [define(entry) for entry in document["inputs"]]
    constants = {}
    for entry in document["constants"]:
        variable = define(entry)
        held = _constant(arrays[entry["name"]], variable.spec)
        constants[variable] = held if entry["array"] or variable.spec.weak else held[()]
    equations = []
    for entry in document["equations"]:
        primitive = primitive_called(entry["primitive"])
        if primitive is None or not _is_storable(primitive):
            raise ValueError(f"there is no operation {entry['primitive']!r}")
        given = tuple(map(defined, entry["inputs"]))
        params = {str(key): _value_in(value, arrays) for key, value in entry["params"].items()}
        results = tuple(define(each) for each in entry["outputs"])
        equations.append(Equation(primitive, given, params, results))
    outputs = list(map(defined, document["outputs"]))
    names = document["input_names"]
    if names is not None and (
        type(names) is not list
        or len(names) != len(inputs)
        or not all(isinstance(name, str) for name in names)
    ):
        raise ValueError("the names do not match the inputs")
    axes = archives.mapping((_key_in(name), lanes) for name, lanes in document.get("axes", ()))
    if not all(type(lanes) is int for lanes in axes.values()):
        raise ValueError("the number of lanes of an axis is not an integer")
    without_axes = document.get("arrays")
    if without_axes is not None:
        without_axes = frozenset(without_axes)
        if not without_axes.issubset(range(len(outputs))):
            raise ValueError("the number of outputs is wrong")
    return Graph(
        inputs, constants, equations, outputs, input_names=names, axes=axes, arrays=without_axes
    )


def _is_storable(primitive: Primitive) -> bool:
    """Whether its name identifies a primitive, and its parameters can be stored."""
    return is_registered(primitive) and (
        not isinstance(primitive, HigherOrder) or primitive.holds_graphs
    )


def _constant(array: Any, spec: ArraySpec) -> Any:
    if array.dtype != spec.dtype or array.shape != spec.shape:
        raise ValueError(f"a constant is described as {spec} but is {array.dtype}{array.shape}")
    return array.item() if spec.weak else array


def _spec_out(spec: ArraySpec) -> list[Any]:
    return [list(map(int, spec.shape)), spec.dtype.str, spec.weak]


def _spec_in(entry: Any) -> ArraySpec:
    shape, name, weak = entry
    dtype = archives.dtype_called(name)
    lengths = archives.lengths_of(shape, dtype.itemsize)
    if type(weak) is not bool:
        raise TypeError("the flag for Python numbers is not True or False")
    return ArraySpec(lengths, dtype, weak)


# Parameters: numbers, strings and None as they are, everything else as [kind, ...].


def _value_out(value: Any, arrays: dict[str, Any]) -> Any:
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return ["float", value.hex()]
    if type(value) is complex:
        return ["complex", value.real.hex(), value.imag.hex()]
    if is_plain(value, np.generic):
        return ["scalar", value.dtype.str, _value_out(value.item(), arrays)]
    if isinstance(value, (tuple, list)):
        return [type(value).__name__, *(_value_out(each, arrays) for each in value)]
    if isinstance(value, slice):
        return [
            "slice",
            *(_value_out(each, arrays) for each in (value.start, value.stop, value.step)),
        ]
    if isinstance(value, np.dtype):
        return ["dtype", value.str]
    if is_plain(value, np.ndarray):
        return [
            "array",
            value.dtype.str,
            list(value.shape),
            _value_out(value.reshape(-1).tolist(), arrays),
        ]
    if value is Ellipsis:
        return ["ellipsis"]
    if value is ARRAY:
        return ["place"]
    if isinstance(value, Procedure):
        return [_PROCEDURE, describe_graph(value.graph, arrays)[0]]
    raise errors.GraphError(f"a parameter of type {type(value).__name__} cannot be stored.")


def _value_in(value: Any, arrays: dict[str, Any]) -> Any:
    if value is None or type(value) in (bool, int, str):
        return value
    kind, *rest = value
    if kind == "float":
        return float.fromhex(rest[0])
    if kind == "complex":
        return complex(float.fromhex(rest[0]), float.fromhex(rest[1]))
    if kind == "scalar":
        return archives.dtype_called(rest[0]).type(_value_in(rest[1], arrays))
    if kind == "tuple":
        return tuple(_value_in(each, arrays) for each in rest)
    if kind == "list":
        return [_value_in(each, arrays) for each in rest]
    if kind == "slice":
        start, stop, step = (_value_in(each, arrays) for each in rest)
        return slice(start, stop, step)
    if kind == "dtype":
        return archives.dtype_called(rest[0])
    if kind == "array":
        dtype, shape, entries = rest
        values = np.array(_value_in(entries, arrays), archives.dtype_called(dtype))
        return values.reshape(archives.lengths_of(shape))
    if kind == "ellipsis":
        return Ellipsis
    if kind == "place":
        return ARRAY
    if kind == _PROCEDURE:
        graph = restore(rest[0], arrays)
        graph.check()
        return Procedure(graph)
    raise ValueError(f"unknown kind of parameter {kind!r}")


def _key_in(value: Any) -> Any:
    """A key of a dictionary, or the name of an axis."""
    if type(value) is list and value[:1] == [_PROCEDURE]:
        raise ValueError("a name must not be a graph")
    return _value_in(value, {})


# Built-in containers.


def _tree_out(structure: Any) -> Any:
    if structure is None:
        return None
    return _node_out(tree.unflatten(structure, [_LEAF] * structure.num_leaves))


_LEAF = object()


def _node_out(node: Any) -> Any:
    if node is _LEAF:
        return "leaf"
    if node is None:
        return "none"
    if type(node) in (tuple, list):
        return [type(node).__name__, *map(_node_out, node)]
    if type(node) is dict:
        return ["dict", *([_value_out(key, {}), _node_out(node[key])] for key in node)]
    raise errors.GraphError(
        f"a graph whose arguments or results are in a {type(node).__name__} cannot be stored: the "
        "file would need its class. Trace a function of tuples, lists and dictionaries."
    )


def _tree_in(entry: Any, leaves: int) -> Any:
    if entry is None:
        return None
    structure = tree.structure(_node_in(entry))
    if structure.num_leaves != leaves:
        raise ValueError("the containers do not match the arrays")
    return structure


def _node_in(entry: Any) -> Any:
    if entry == "leaf":
        return 0.0
    if entry == "none":
        return None
    kind, *rest = entry
    if kind == "tuple":
        return tuple(map(_node_in, rest))
    if kind == "list":
        return list(map(_node_in, rest))
    if kind == "dict":
        return archives.mapping((_key_in(key), _node_in(child)) for key, child in rest)
    raise ValueError(f"there is no container {kind!r}")


# Pickles.


def reduce_graph(graph: Graph) -> Any:
    """How a graph is pickled: like a stored graph, with any structures that pickle supports."""
    document, arrays = describe_graph(graph)
    return _from_pickle, (document, arrays, graph.in_tree, graph.out_tree)


def _from_pickle(document: Any, arrays: Any, in_tree: Any, out_tree: Any) -> Graph:
    graph = restore(document, arrays)
    graph.in_tree, graph.out_tree = in_tree, out_tree
    return graph
