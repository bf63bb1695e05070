"""Finds the code that needs a value which is not known, and what to write instead.

The current bytecode instruction has a position in the source. The expression or statement there shows
whether it is a branch, a loop, a conversion, a size or a call.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from functrans.core.places import Place

_LONG = 60  # the maximum length of a quoted expression
_LOGIC = (ast.BoolOp, ast.UnaryOp, ast.Compare)


class Asking(NamedTuple):
    """The beginning of a sentence, "... needs", and a sentence about what to do instead."""

    what: str
    remedy: str


class _Context(NamedTuple):
    """What is known about the value that the code needs."""

    kind: str  # of its dtype
    ndim: int
    static: str | None  # how to make it known, if `jit` can
    statement: Any = None  # in which it stands

    def known_before(self, what: str) -> str:
        """The remedy where only the value itself will do."""
        if self.static and self.kind in "iub" and not self.ndim:
            return self.static
        return f"Compute {what} outside of the traced function, and close over it."


def asking(place: Place | None, dtype: np.dtype[Any], ndim: int, static: str | None) -> Asking:
    """Which code needs a value, at a place in the user's code, while a function is traced."""
    context = _Context(dtype.kind, ndim, static)
    if place is not None and place.inside:
        remedy = "Call it with plain arrays: functrans.pure_callback(f, result_shape, x)."
        return Asking(f"{place.inside} needs", remedy)
    found = inner = None
    nodes = [] if place is None else list(nodes_at(place))
    statements = (node for node in nodes if isinstance(node, (ast.stmt, ast.Lambda)))
    context = context._replace(statement=next(statements, None))
    for k, node in enumerate(nodes):
        if found is not None:  # for `if a and b`, report the branch, and rewrite its test
            if getattr(node, "test", None) is inner:
                found = _AROUND[type(node)](node, context)
            elif not isinstance(node, _LOGIC):
                break
        else:
            read = _AROUND.get(type(node)) or (_AT.get(type(node)) if k == 0 else None)
            found = None if read is None else read(node, context)
        if isinstance(node, (ast.stmt, ast.Lambda)) or not (
            found is None or isinstance(node, _LOGIC)
        ):
            break
        inner = node
    if found is not None:
        return found
    if context.kind == "b" and not context.ndim:
        return Asking("a Python branch depends on", "Use np.where or functrans.cond instead.")
    return Asking("this line needs", context.known_before("it"))


def nodes_at(place: Place) -> Iterator[Any]:
    """The expressions and statements around the instruction at a place, innermost first."""
    positions = list(place.code.co_positions())
    if not 0 <= place.instruction // 2 < len(positions):
        return
    first, last, start, stop = positions[place.instruction // 2]
    if first is None or last is None or start is None or stop is None:
        return
    module = _parsed(tuple(linecache.getlines(place.code.co_filename)))
    around = [] if module is None else _around(module, (first, start), (last, stop))
    yield from reversed(around)


@lru_cache(8)
def _parsed(lines: tuple[str, ...]) -> ast.Module | None:
    try:
        return ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return None


def _around(node: Any, start: tuple[int, int], stop: tuple[int, int]) -> list[Any]:
    """The nodes that hold a part of the source, from outside to inside."""
    found = []
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if hasattr(node, "end_lineno"):
            first = node  # decorators come before the definition
            if getattr(node, "decorator_list", None):
                first = node.decorator_list[0]
            begin, end = (first.lineno, first.col_offset), (node.end_lineno, node.end_col_offset)
            if begin > start or end < stop:
                continue
            found.append(node)
            waiting.clear()  # only nodes inside this one can hold it, too
        waiting += ast.iter_child_nodes(node)
    return found


def _text(node: Any) -> str:
    text = ast.unparse(node)
    return text if len(text) <= _LONG else "..."


class _InNumpy(ast.NodeTransformer):
    """Python's logic as NumPy's, which takes arrays."""

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        self.generic_visit(node)
        name = "logical_and" if isinstance(node.op, ast.And) else "logical_or"
        result = node.values[0]
        for value in node.values[1:]:
            result = _called(name, result, value)
        return result

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        return _called("logical_not", node.operand) if isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        if isinstance(node.ops[0], (ast.In, ast.NotIn)):
            found = _called("any", _called("isin", node.left, node.comparators[0]))
            return found if isinstance(node.ops[0], ast.In) else _called("logical_not", found)
        sides = [node.left, *node.comparators]
        parts: list[Any] = [
            ast.Compare(left, [op], [right])
            for left, op, right in zip(sides, node.ops, sides[1:], strict=False)
        ]
        result = parts[0]
        for part in parts[1:]:
            result = _called("logical_and", result, part)
        return result


def _called(name: str, *args: Any) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Name("np"), name), list(args), [])


def _in_numpy(node: Any) -> str:
    """An expression with NumPy's logic in place of Python's."""
    again: Any = ast.parse(ast.unparse(node), mode="eval").body  # leaves the cached tree unchanged
    return _text(_InNumpy().visit(again))


# What each kind of expression needs.


def _conditional(node: Any, context: _Context) -> Asking:
    parts = f"{_in_numpy(node.test)}, {_text(node.body)}, {_text(node.orelse)}"
    return Asking(f"the branch `if {_text(node.test)}` depends on", f"Write np.where({parts}).")


def _if(node: Any, context: _Context) -> Asking:
    return Asking(
        f"the branch `if {_text(node.test)}` depends on",
        f"Write functrans.cond({_in_numpy(node.test)}, f, g, x), with functions for both cases.",
    )


def _while(node: Any, context: _Context) -> Asking:
    return Asking(
        f"the loop `while {_text(node.test)}` depends on",
        "Write functrans.while_loop(cond, body, init), with functions for the test and the body.",
    )


def _assert(node: Any, context: _Context) -> Asking:
    return Asking(
        "the assertion depends on",
        "Check the plain array: x = functrans.tap(x, check, backward=lambda g: None).",
    )


def _logic(node: Any, context: _Context) -> Asking | None:
    if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
        return None
    if isinstance(node, ast.BoolOp):
        what = f"Python's `{'and' if isinstance(node.op, ast.And) else 'or'}` needs"
    elif isinstance(node, ast.UnaryOp):
        what = "Python's `not` needs"
    elif isinstance(node.ops[0], (ast.In, ast.NotIn)):
        what = "Python's `in` needs"
    elif len(node.ops) > 1:
        what = "a chain of comparisons needs"
    else:
        return None
    return Asking(what, f"Write {_in_numpy(node)}.")


def _comprehension(node: Any, context: _Context) -> Asking | None:
    if context.kind != "b":
        return None
    remedy = "Keep all entries, and choose among them with np.where."
    return Asking("the condition of a comprehension depends on", remedy)


def _formatted(node: Any, context: _Context) -> Asking:
    return Asking("a text needs", _PRINT)


_PRINT = "Print the plain array: x = functrans.tap(x, print)."


def _subscript(node: Any, context: _Context) -> Asking:
    array, key = _text(node.value), _text(node.slice)
    size = f"the size of `{array}[{key}]` depends on"
    if context.kind == "b":
        changed = _masked_assignment(context.statement)
        return Asking(size, changed or f"Keep the size: np.where({key}, {array}, 0.0).")
    if isinstance(node.slice, (ast.Slice, ast.Tuple)):
        keep = "Keep the size: np.where(np.arange(len(x)) < n, x, 0.0)."
        return Asking(size, context.static or keep)
    remedy = f"Write functrans.numpy.array({array})[{key}]."
    return Asking(f"the index `{array}[{key}]` needs", remedy)


class _Unmasked(ast.NodeTransformer):
    """An expression with whole arrays in place of their entries under a mask."""

    def __init__(self, mask: str) -> None:
        self.mask = mask

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        self.generic_visit(node)
        return node.value if ast.unparse(node.slice) == self.mask else node


def _masked_assignment(statement: Any) -> str | None:
    """For y[mask] = value, and y[mask] *= value, the same with arrays that keep their sizes."""
    changes = isinstance(statement, ast.AugAssign)
    if not changes and not (isinstance(statement, ast.Assign) and len(statement.targets) == 1):
        return None
    target = statement.target if changes else statement.targets[0]
    if not isinstance(target, ast.Subscript):
        return None
    array, mask = _text(target.value), ast.unparse(target.slice)
    again: Any = ast.parse(ast.unparse(statement.value), mode="eval").body
    value = _Unmasked(mask).visit(again)
    if changes:
        value = ast.BinOp(target.value, statement.op, value)
    whole = ast.unparse(value)
    return f"Keep the size: {array}[...] = np.where({mask}, {whole}, {array})."


def _repeated(node: Any, context: _Context) -> Asking | None:
    if context.kind not in "iu":
        return None
    return Asking(f"the length of `{_text(node)}` depends on", context.known_before("the length"))


def _call(node: Any, context: _Context) -> Asking | None:
    function = node.func
    name = getattr(function, "attr", getattr(function, "id", ""))
    owner = getattr(getattr(function, "value", None), "id", "")
    given = [_text(arg) for arg in node.args]
    needs = f"`{_text(node)}` needs"
    if owner == "math":
        module = "np" if hasattr(np, name) else "scipy.special"
        return Asking(needs, f"Write {module}.{name}({', '.join(given)}).")
    kept = _kept_size(node, name)
    if kept is not None:
        return Asking(needs, kept)
    if name in _CALLS and owner != "np":
        what = _text(function.value) if isinstance(function, ast.Attribute) else (given or ["x"])[0]
        return Asking(needs, _CALLS[name](what, given))
    if name == "range":
        loop = "Write functrans.fori_loop(lower, upper, body, init) instead of the loop."
        return Asking(needs, context.static or loop)
    if context.kind in "iu" and not context.ndim:
        return Asking(f"the size of `{_text(node)}` depends on", context.known_before("the size"))
    return Asking(needs, context.known_before("the result of the call"))


# Calls whose results have a size that depends on values, or are one truth value, and what stays traced.


def _kept_size(node: Any, name: str) -> str | None:
    """The remedy for a call of the table below, if all its arguments are written out by position."""
    function, given = node.func, list(node.args)
    if isinstance(function, ast.Attribute) and getattr(function.value, "id", "") not in _MODULES:
        given.insert(0, function.value)  # a method
    if name not in _SIZES or any(isinstance(each, ast.Starred) for each in given):
        return None
    count, remedy = _SIZES[name]
    return remedy(*given) if len(given) == count else None


def _mask(node: Any) -> str:
    return _text(node) if isinstance(node, ast.Compare) else f"{_text(node)} != 0"


def _by_mask(x: Any) -> str:
    return f"Keep the size, and use the mask: np.where({_mask(x)}, 1.0, 0.0)."


def _selected(mask: Any, x: Any) -> str:
    return f"Keep the size: np.where({_mask(mask)}, {_text(x)}, 0.0)."


def _place(x: Any, mask: Any, values: Any) -> str:
    return f"Keep the size: {_text(x)}[...] = np.where({_mask(mask)}, {_text(values)}, {_text(x)})."


def _repeat(x: Any, counts: Any) -> str:
    places = f"np.searchsorted(np.cumsum({_text(counts)}), np.arange(length), side='right')"
    return f"Fix the length: functrans.numpy.take({_text(x)}, {places}, mode='clip')."


_MODULES = frozenset({"np", "numpy", "fnp"})
_SIZES: dict[str, tuple[int, Callable[..., str]]] = {
    "nonzero": (1, _by_mask),
    "flatnonzero": (1, _by_mask),
    "argwhere": (1, _by_mask),
    "where": (1, _by_mask),
    "extract": (2, _selected),
    "compress": (2, _selected),
    "place": (3, _place),
    "unique": (1, lambda x: f"Keep the size, and repeated entries: np.sort({_text(x)}, None)."),
    "repeat": (2, _repeat),
    "array_equal": (2, lambda x, y: f"Write np.all({_text(x)} == {_text(y)})."),
    "allclose": (2, lambda x, y: f"Write np.all(np.isclose({_text(x)}, {_text(y)}))."),
}


def _leave_out(what: str, given: list[str]) -> str:
    return f"Leave the conversion out: arithmetic works on {what} as it is."


def _extreme(name: str) -> Callable[[str, list[str]], str]:
    def remedy(what: str, given: list[str]) -> str:
        if len(given) == 1:
            return f"Write np.{name}({what})."
        return f"Write np.{name}imum({', '.join(given[:2])})."

    return remedy


_CALLS: dict[str, Callable[[str, list[str]], str]] = {
    "float": _leave_out,
    "item": _leave_out,
    "tolist": _leave_out,
    "int": lambda what, given: f"Write {what}.astype(int), which stays traced.",
    "complex": lambda what, given: f"Write {what}.astype(complex), which stays traced.",
    "bool": lambda what, given: f"Write {what}.astype(bool), which stays traced.",
    "round": lambda what, given: f"Write np.round({what}).",
    "max": _extreme("max"),
    "min": _extreme("min"),
    "sorted": lambda what, given: f"Write np.sort(np.stack({what})).",
    "any": lambda what, given: f"Write np.any({what}).",
    "all": lambda what, given: f"Write np.all({what}).",
    "format": lambda what, given: _PRINT,
}

# Nodes that need a value themselves, and nodes that need the truth of an expression in them.
_AT: dict[type, Callable[[Any, _Context], Asking | None]] = {
    ast.Call: _call,
    ast.Subscript: _subscript,
    ast.UnaryOp: _logic,
    ast.Compare: _logic,
    ast.BinOp: _repeated,
    ast.ListComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.SetComp: _comprehension,
    ast.DictComp: _comprehension,
}
_AROUND: dict[type, Callable[[Any, _Context], Asking | None]] = {
    ast.BoolOp: _logic,
    ast.FormattedValue: _formatted,
    ast.JoinedStr: _formatted,
    ast.IfExp: _conditional,
    ast.If: _if,
    ast.While: _while,
    ast.Assert: _assert,
}
