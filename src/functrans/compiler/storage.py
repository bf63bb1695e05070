"""Graphs as files: JSON for structure and npz for constants, in one zip archive.

Opening a file runs nothing that the file says: it holds names of primitives, numbers and arrays
without pickles, all of which are checked.
"""

from __future__ import annotations

import inspect
import io
import json
import os
import zipfile
from types import FunctionType
from typing import Any

import numpy as np

from functrans.compiler.vocabulary import primitive_called, word_of
from functrans.core import errors, tree
from functrans.core.dispatch import Tracer
from functrans.core.primitive import Elementwise, Primitive
from functrans.core.shapes import ArraySpec
from functrans.graph.graph import Equation, Graph, Variable
from functrans.ops.indexing import ARRAY
from functrans.transforms.procedures import Procedure

FORMAT = "functrans graph"
VERSION = 2
_STRUCTURE, _CONSTANTS = "graph.json", "constants.npz"
_MOST_JSON = 1 << 28
_PROCEDURE = "procedure"


def save_graph(graph: Graph, path: str | os.PathLike[str] | io.IOBase) -> None:
    """Write a graph to a file, or to anything that has `write`."""
    document, arrays = describe(graph)
    document["in_tree"] = _tree_out(graph.in_tree)
    document["out_tree"] = _tree_out(graph.out_tree)
    held = io.BytesIO()
    np.savez(held, **arrays)
    target: Any = path
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_STRUCTURE, json.dumps(document, indent=1))
        archive.writestr(_CONSTANTS, held.getvalue(), zipfile.ZIP_STORED)


def load_graph(path: str | os.PathLike[str] | io.IOBase) -> Graph:
    """Read a graph that `graph.save(path)` wrote.

    The file is not trusted: nothing in it is run, and one that is damaged, or was made to deceive,
    raises `GraphError`.

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
    except (Exception, RecursionError) as error:
        raise errors.GraphError(
            f"{where} is not a graph that functrans can read: {type(error).__name__}: {error}. It "
            "may be damaged, or not written by graph.save."
        ) from error
    return graph


class _NewerVersion(errors.GraphError):
    """A file of a version that is not known here."""


def _read(path: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    with zipfile.ZipFile(path) as archive:
        if archive.getinfo(_STRUCTURE).file_size > _MOST_JSON:
            raise ValueError("the description is too large")
        document = json.loads(archive.read(_STRUCTURE))
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise ValueError("it does not say that it is a graph")
        if document.get("version") != VERSION:
            raise _NewerVersion(
                f"the graph was stored in version {document.get('version')!r} of the format, and this "
                f"functrans reads version {VERSION}. Use the functrans that wrote it, or a newer one."
            )
        # The sizes that the description promises bound what is unpacked.
        promised = sum(_size(entry["spec"]) + 1024 for entry in _all_constants(document))
        if archive.getinfo(_CONSTANTS).file_size > promised + 65536:
            raise ValueError("the constants are larger than described")
        held = io.BytesIO(archive.read(_CONSTANTS))
    arrays = {}
    with zipfile.ZipFile(held) as inner:
        if sum(info.file_size for info in inner.infolist()) > promised + 65536:
            raise ValueError("the constants are larger than described")
    with np.load(held, allow_pickle=False) as loaded:
        for name in loaded.files:
            arrays[name] = loaded[name]
    return document, arrays


def _all_constants(document: dict[str, Any]) -> list[Any]:
    """The constants of a graph and of those in its parameters."""
    found = list(document["constants"])

    def search(value: Any) -> None:
        if isinstance(value, list):
            if value[:1] == [_PROCEDURE]:
                found.extend(_all_constants(value[1]))
            else:
                for each in value:
                    search(each)

    for entry in document["equations"]:
        for value in entry["params"].values():
            search(value)
    return found


def _size(spec: Any) -> int:
    found = _spec_in(spec)
    return found.size * found.dtype.itemsize


# A graph, without its containers, as JSON and arrays.


def describe(
    graph: Graph, arrays: dict[str, Any] | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The graph as JSON and arrays; the structures of arguments and results are left out.

    The arrays of graphs in its parameters are put with its own.
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
                "array": isinstance(value, np.ndarray),
            }
        )
    equations = []
    for equation in graph.equations:
        word = word_of(equation.primitive)
        if word is None:
            raise errors.GraphError(
                f"the operation {equation.primitive.name} is not one of functrans' own, so a graph "
                "that uses it cannot be stored."
            )
        equations.append(
            {
                "primitive": word,
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
    }
    return document, arrays


def restore(document: dict[str, Any], arrays: dict[str, Any]) -> Graph:
    """The graph that `describe` described."""
    variables: dict[int, Variable] = {}

    def define(entry: dict[str, Any]) -> Variable:
        variable = Variable(_spec_in(entry["spec"]))
        number = entry["variable"]
        if type(number) is not int or variables.setdefault(number, variable) is not variable:
            raise ValueError("a variable is defined twice")
        return variable

    inputs = [define(entry) for entry in document["inputs"]]
    constants = {}
    for entry in document["constants"]:
        variable = define(entry)
        held = _constant(arrays[entry["name"]], variable.spec)
        constants[variable] = held if entry["array"] or variable.spec.weak else held[()]
    equations = []
    for entry in document["equations"]:
        primitive = primitive_called(entry["primitive"])
        if primitive is None:
            raise ValueError(f"there is no operation {entry['primitive']!r}")
        given = tuple(variables[number] for number in entry["inputs"])
        params = {str(key): _value_in(value, arrays) for key, value in entry["params"].items()}
        _check_call(primitive, given, params)
        results = tuple(define(each) for each in entry["outputs"])
        equations.append(Equation(primitive, given, params, results))
    outputs = [variables[number] for number in document["outputs"]]
    names = document["input_names"]
    if names is not None and (
        len(names) != len(inputs) or not all(isinstance(name, str) for name in names)
    ):
        raise ValueError("the names do not fit the inputs")
    return Graph(inputs, constants, equations, outputs, input_names=names)


def _check_call(primitive: Primitive, inputs: tuple[Any, ...], params: dict[str, Any]) -> None:
    """Raise TypeError for arguments or parameters that the primitive does not take."""
    if isinstance(primitive, Elementwise) and params:
        raise TypeError(f"{primitive.name} takes no parameters")
    impl: Any = primitive.impl
    if isinstance(impl, FunctionType):
        inspect.signature(impl).bind(*inputs, **params)


def _constant(array: Any, spec: ArraySpec) -> Any:
    if array.dtype != spec.dtype or array.shape != spec.shape:
        raise ValueError(f"a constant is described as {spec} but is {array.dtype}{array.shape}")
    return array.item() if spec.weak else array


def _spec_out(spec: ArraySpec) -> list[Any]:
    return [list(map(int, spec.shape)), spec.dtype.str, spec.weak]


def _spec_in(entry: Any) -> ArraySpec:
    shape, name, weak = entry
    if not all(type(n) is int and 0 <= n < 1 << 62 for n in shape) or type(weak) is not bool:
        raise ValueError(f"{entry!r} is no shape and dtype")
    return ArraySpec(tuple(shape), _dtype_in(name), weak)


def _dtype_in(name: Any) -> np.dtype[Any]:
    dtype = np.dtype(str(name))
    if dtype.kind not in "biufc":
        raise ValueError(f"{name!r} is no dtype of numbers")
    return dtype


# Parameters: numbers, strings and None as they are, everything else as [kind, ...].


def _value_out(value: Any, arrays: dict[str, Any]) -> Any:
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return ["float", value.hex()]
    if type(value) is complex:
        return ["complex", value.real.hex(), value.imag.hex()]
    if isinstance(value, np.generic):
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
    if isinstance(value, np.ndarray):
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
        return [_PROCEDURE, describe(value.graph, arrays)[0]]
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
        return _dtype_in(rest[0]).type(_value_in(rest[1], arrays))
    if kind == "tuple":
        return tuple(_value_in(each, arrays) for each in rest)
    if kind == "list":
        return [_value_in(each, arrays) for each in rest]
    if kind == "slice":
        start, stop, step = (_value_in(each, arrays) for each in rest)
        return slice(start, stop, step)
    if kind == "dtype":
        return _dtype_in(rest[0])
    if kind == "array":
        return np.array(_value_in(rest[2], arrays), _dtype_in(rest[0])).reshape(rest[1])
    if kind == "ellipsis":
        return Ellipsis
    if kind == "place":
        return ARRAY
    if kind == _PROCEDURE:
        graph = restore(rest[0], arrays)
        graph.check()
        return Procedure(graph)
    raise ValueError(f"there is no kind of parameter {kind!r}")


# Containers: Python's own.


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
        raise ValueError("the containers do not fit the arrays")
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
        return {_value_in(key, {}): _node_in(child) for key, child in rest}
    raise ValueError(f"there is no container {kind!r}")


# Pickles.


def reduce_graph(graph: Graph) -> Any:
    """How a graph is pickled: as it is stored, with the structures that pickle can hold."""
    document, arrays = describe(graph)
    return _from_pickle, (document, arrays, graph.in_tree, graph.out_tree)


def _from_pickle(document: Any, arrays: Any, in_tree: Any, out_tree: Any) -> Graph:
    graph = restore(document, arrays)
    graph.in_tree, graph.out_tree = in_tree, out_tree
    return graph
