"""Helper functions above generated source, for primitives that need more than an expression.

They are functions of the library, read from its files, without annotations, and with the functions
that they call.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from itertools import count
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from functrans.compiler.numpy.lowering import numpy_path
from functrans.core import errors
from functrans.core.primitive import HigherOrder, Primitive


class Helpers:
    """The helper functions, constants and imports that a piece of source needs."""

    def __init__(self) -> None:
        self.imports: set[str] = set()
        self.definitions: dict[str, str] = {}  # name -> definition, in order
        self.known: dict[Any, str] = {}  # the names of the functions and constants defined so far

    def add(self, primitive: Primitive) -> str:
        """Define a function that evaluates the primitive, and return its name."""
        impl = primitive.impl
        if isinstance(primitive, HigherOrder):
            raise errors.MissingRuleError(
                f"the operation {primitive.name} cannot be written as plain NumPy source, because it "
                f"holds functions, at {errors.user_location()}. Compile it with functrans.jit."
            )
        if not isinstance(impl, FunctionType) or impl.__name__ == "<lambda>":
            raise errors.MissingRuleError(
                f"the operation {primitive.name} cannot be written as plain NumPy source, at "
                f"{errors.user_location()}. Compile it with functrans.jit."
            )
        return self._function(impl, primitive.name)

    def _function(self, function: FunctionType, owner: str) -> str:
        if function in self.known:
            return self.known[function]
        name = self.known[function] = self._fresh("_" + function.__name__.lstrip("_"))
        self.definitions[name] = ""
        definition: Any = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        definition = _Bare().visit(definition)
        definition.name = name
        outer = _outer_names(function)
        renamed = {function.__name__: name}
        for node in ast.walk(definition):
            if isinstance(node, ast.Name) and node.id in outer:
                if node.id not in renamed:
                    renamed[node.id] = self._provide(node.id, outer[node.id], owner)
                node.id = renamed[node.id]
        del self.definitions[name]  # below the definitions that it uses
        self.definitions[name] = ast.unparse(definition)
        return name

    def _fresh(self, base: str) -> str:
        numbered = (f"{base}_{k}" for k in count(2))
        return base if base not in self.definitions else next(numbered)

    def _provide(self, name: str, value: Any, owner: str) -> str:
        """The name in the source for a global name of the library."""
        if isinstance(value, ModuleType):
            alias = "" if value.__name__ == name else f" as {name}"
            self.imports.add(f"import {value.__name__}{alias}")
            return name
        if isinstance(value, Primitive):
            ufunc: Any = value.impl
            if isinstance(ufunc, np.ufunc):
                return f"np.{ufunc.__name__}"
            return self.add(value)
        if isinstance(value, FunctionType) and value.__module__.split(".")[0] == "functrans":
            return self._function(value, owner)
        if isinstance(value, np.ufunc) and numpy_path(value):
            return f"np.{value.__name__}"
        if isinstance(value, FunctionType) or getattr(value, "__module__", None) == "math":
            self.imports.add(f"from {value.__module__} import {name}")
            return name
        text = _literal(value, owner)
        key = name, text
        if key not in self.known:
            self.known[key] = self._fresh(name)
            self.definitions[self.known[key]] = f"{self.known[key]} = {text}"
        return self.known[key]


def _literal(value: Any, owner: str) -> str:
    if isinstance(value, tuple):
        inner = ", ".join(_literal(each, owner) for each in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, np.generic):
        return f"np.{value.dtype.name}({value.item()!r})"
    if isinstance(value, np.ndarray):
        return f"np.array({value.tolist()!r}, dtype=np.{value.dtype.name})"
    if isinstance(value, (bool, int, float, str)) or value is None:
        return repr(value)
    raise errors.MissingRuleError(
        f"the operation {owner} cannot be written as plain NumPy source, because it uses {value!r}, at "
        f"{errors.user_location()}. Compile it with functrans.jit."
    )


def _outer_names(function: FunctionType) -> dict[str, Any]:
    """The values of the global names that a function uses."""
    code = function.__code__
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    names = {**function.__globals__, **dict(zip(code.co_freevars, cells, strict=True))}
    return {name: value for name, value in names.items() if name not in code.co_varnames}


class _Bare(ast.NodeTransformer):
    """Remove annotations and docstrings."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.returns = None
        first = node.body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            del node.body[0]  # the docstring
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> Any:
        node.annotation = None
        return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        # A primitive is written as the function that evaluates it.
        self.generic_visit(node)
        return node.value if node.attr == "impl" else node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None:
            return None
        return ast.copy_location(ast.Assign([node.target], node.value, lineno=node.lineno), node)
