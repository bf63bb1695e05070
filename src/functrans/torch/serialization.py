"""save and load: nested containers of tensors in npz files. Nothing is pickled."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from functrans.core import archives
from functrans.core.dispatch import is_plain
from functrans.torch.errors import TensorTypeError, TensorValueError
from functrans.torch.nn.parameter import Parameter
from functrans.torch.registry import export
from functrans.torch.tensor import Tensor, make

_STRUCTURE = "structure"


def _written(value: Any, arrays: dict[str, Any]) -> Any:
    """Convert a value to JSON, and put its tensors into `arrays`."""
    if isinstance(value, (Tensor, np.ndarray)):
        name = f"tensor{len(arrays)}"
        arrays[name] = np.asarray(value.detach().value if isinstance(value, Tensor) else value)
        kind = "tensor" if isinstance(value, Tensor) else "array"
        if isinstance(value, Parameter):
            kind = "parameter"
        wanted = isinstance(value, Tensor) and value.is_leaf and value.requires_grad
        return {"kind": kind, "name": name, "requires_grad": wanted}
    if isinstance(value, dict):
        items = [[_written(k, arrays), _written(v, arrays)] for k, v in value.items()]
        return {"kind": "dict", "items": items}
    if isinstance(value, (list, tuple)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {"kind": kind, "items": [_written(each, arrays) for each in value]}
    if is_plain(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return {"kind": "value", "value": value}
    raise TensorTypeError(
        f"torch.save writes dicts, lists, tuples, numbers, strings and tensors, not "
        f"{type(value).__name__}: save module.state_dict() instead of a module."
    )


def _read(node: Any, arrays: dict[str, Any]) -> Any:
    kind = node["kind"]
    if kind in ("tensor", "array", "parameter"):
        array, wanted = arrays.pop(node["name"]), node["requires_grad"]  # each for one node
        if kind == "array":
            return array
        if type(wanted) is not bool:
            raise TypeError("requires_grad is not True or False")
        tensor = make(array if array.ndim else array[()])
        return Parameter(tensor, wanted) if kind == "parameter" else tensor.requires_grad_(wanted)
    if kind == "dict":
        return archives.mapping((_read(k, arrays), _read(v, arrays)) for k, v in node["items"])
    if kind in ("list", "tuple"):
        parts = [_read(each, arrays) for each in node["items"]]
        return tuple(parts) if kind == "tuple" else parts
    value = node["value"]
    if kind != "value" or not (value is None or isinstance(value, (bool, int, float, str))):
        raise ValueError("it contains a value that torch.save does not write")
    return value


def _check_file(f: Any, method: str) -> None:
    """Check the file argument: Python would take a number for an open file, such as standard output."""
    if not isinstance(f, (str, os.PathLike)) and not hasattr(f, method):
        raise TensorTypeError(
            f"expected 'f' to be a string, a path, or a file with a method {method!r}, not "
            f"{type(f).__name__}"
        )


@export(method=False)
def save(obj: Any, f: Any) -> None:
    """Save a state dict, or another container of tensors, to an npz file.

    Examples
    --------
    >>> import io
    >>> import functrans.torch as torch
    >>> file = io.BytesIO()
    >>> torch.save({"x": torch.ones(2)}, file)
    >>> _ = file.seek(0)
    >>> torch.load(file)
    {'x': tensor([1., 1.])}
    """
    _check_file(f, "write")
    arrays: dict[str, Any] = {}
    structure = json.dumps(_written(obj, arrays))
    arrays[_STRUCTURE] = np.frombuffer(structure.encode(), np.uint8)
    if hasattr(f, "write"):
        np.savez(f, **arrays)
        return
    with open(f, "wb") as file:
        np.savez(file, **arrays)


@export(method=False)
def load(f: Any, map_location: Any = None, *, weights_only: bool = True, **options: Any) -> Any:
    """Load an object that `save` wrote.

    The file is not trusted. No code in it is run, a damaged or malicious file raises `TensorValueError`,
    and the time and memory that loading takes are bounded by the size of the file.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> import io
    >>> file = io.BytesIO()
    >>> torch.save([1, 2], file)
    >>> _ = file.seek(0)
    >>> torch.load(file)
    [1, 2]
    """
    _check_file(f, "read")
    try:
        arrays = {
            name.removesuffix(".npy"): archives.array_in(content)
            for name, content in archives.members(f)
        }
        structure = archives.json_in(arrays.pop(_STRUCTURE).tobytes())
        return _read(structure, arrays)
    except (FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except Exception as error:
        raise TensorValueError(
            "torch.load: this file was not written by functrans' torch.save, or is damaged: "
            f"{archives.reason(error)}"
        ) from error
