"""The kinds of statements in random programs. Each function writes one, or raises `RejectedError`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tools.fuzz.programs import tables
from tools.fuzz.programs.program import COMPLEX_STEPS, JAX, STAGING, TORCH
from tools.fuzz.programs.writer import RejectedError, Writer, broadcasts

# Expressions with the shape of {c}: of {c} alone, and with another array {b} that broadcasts to it.
_ALONE = ["np.sin({c})", "0.5 * {c}", "np.tanh({c}) + 0.3", "{c} * {c} * 0.4", "np.cos({c}) * {c}"]
_PAIRED = ["np.sin({c}) * {b}", "0.4 * {c} + {b}", "np.tanh({c} - {b})", "{b} * {c} * 0.5"]


def _form(w: Writer, forms: list[tables.Form], kind: str, **slots: Any) -> None:
    text, guard, lacks = w.chooser.pick(forms)
    if not w.narrow and "NARROW" in text:
        raise RejectedError
    name = w.new_name()
    w.statement(
        f"{name} = {text.format(**slots)}",
        [name],
        kind,
        lacks=lacks,
        guard=guard.format(**slots),
    )


def _axes(w: Writer, name: str) -> dict[str, Any]:
    """An axis of an array, an index along it, and so on, for forms of one array."""
    shape = w.shape(name)
    axis = w.chooser.below(len(shape)) if shape else 0
    length = shape[axis] if shape else 1
    axes = list(range(len(shape)))
    order = [axes.pop(w.chooser.below(len(axes))) for _ in shape]
    signed = axis - len(shape) if w.chooser.chance(30) and shape else axis
    return {
        "a": name,
        "x": signed,
        "k": w.chooser.chance(40),
        "n": length,
        "i": w.chooser.below(max(1, min(shape, default=1))),
        "p": tuple(order),
        "s": tuple(order[: w.chooser.below(len(order) + 1)]) or None,
        "l": ":, " * axis,
    }


def unary(w: Writer) -> None:
    _form(w, tables.UNARY, "elementwise", a=w.pick())


def binary(w: Writer) -> None:
    first = w.pick()
    shape = w.shape(first)
    second = w.pick(lambda own: broadcasts(own, shape) or broadcasts(shape, own))
    # The result would be rejected, but only after it is computed.
    if math.prod(np.broadcast_shapes(shape, w.shape(second))) > w.limits.size:
        raise RejectedError
    if w.chooser.chance(30):
        first, second = second, first
    _form(w, tables.BINARY, "broadcasting", a=first, b=second)


def reduction(w: Writer) -> None:
    _form(w, tables.REDUCTIONS, "reduction", **_axes(w, w.pick(lambda shape: len(shape) > 0)))


def along_axis(w: Writer) -> None:
    _form(w, tables.ALONG_AXES, "along an axis", **_axes(w, w.pick(lambda shape: len(shape) > 0)))


def shaping(w: Writer) -> None:
    _form(w, tables.SHAPING, "shaping", **_axes(w, w.pick()))


def indexing(w: Writer) -> None:
    indices = [n for n in w.names if np.asarray(w.value(n)).dtype.kind == "i"]
    name = w.pick(lambda shape: len(shape) > 0)
    # A plain array cannot be indexed by a traced one, and unmapped arrays may be plain.
    if indices and name not in w.fixed and w.chooser.chance(60):
        index = w.chooser.pick(indices)
        forms = [f"{name}[{index}]", f"np.take({name}, {index}, axis=-1)", f"{name}[..., {index}]"]
        new = w.new_name()
        # NumPy does not check the indices of an array without entries.
        guard = f"np.all({index} < min({name}.shape))"
        text = f"{new} = {w.chooser.pick(forms)}"
        return w.statement(text, [new], "indexing", lacks=[TORCH], guard=guard)
    _form(w, tables.INDEXING, "indexing", **_axes(w, name))
    return None


def product(w: Writer) -> None:
    first = w.pick(lambda shape: len(shape) > 0)
    last = w.shape(first)[-1]
    second = w.pick(lambda own: len(own) > 0 and last in own)
    # A sum over one axis of each: the result would be rejected, but only after it is computed.
    if math.prod(w.shape(first) + w.shape(second)) > w.limits.size * last**2:
        raise RejectedError
    _form(w, tables.PRODUCTS, "linear algebra", a=first, b=second)


def square(w: Writer) -> None:
    name = w.pick(lambda shape: len(shape) == 2 and shape[0] == shape[1] > 0)
    _form(w, tables.SQUARE, "linear algebra", **_axes(w, name))


def _body(w: Writer, variable: str, shape: tuple[int, ...]) -> str:
    """An expression of a variable, with its shape, that may close over another array."""
    if w.chooser.below(2) == 0:
        return w.chooser.pick(_ALONE).format(c=variable)
    return w.chooser.pick(_PAIRED).format(c=variable, b=w.fitting(shape))


def _condition(w: Writer, name: str) -> tuple[str, str]:
    """A condition on an array, and the same with a check that it is not a close call."""
    number = f"np.{w.chooser.pick(['sum', 'mean'])}({name}) - {w.chooser.pick([0.2, -0.3, 0.7])}"
    return f"{number} > 0", f"positive({number})"


def assignment(w: Writer) -> None:
    """A copy of an array, or zeros, changed in some places, directly and through views."""
    name = w.pick(lambda shape: len(shape) > 0 and 0 not in shape)
    shape = w.shape(name)
    copy, view = w.new_name(), w.new_name("w")
    index = w.chooser.pick(["0", "1:", ":-1", "::2", "..., 0", "[0, -1]", "..., :1", "::-1"])
    source = w.fitting(np.shape(np.zeros(shape)[_index(index)]))
    # A traced value cannot be assigned to a plain array, so the array depends on all values assigned to it.
    forms = ["{a}.copy()", "np.zeros_like({a})", "np.copy({a})"]
    if source != name:
        forms = [
            "({a} + 0.5 * np.sum({b})).copy()",
            "{a} + 0.5 * np.sum({b})",
            "np.zeros_like({a} * np.sum({b}))",
        ]
    form = w.chooser.pick(forms)
    lines = [f"{copy} = {form.format(a=name, b=source)}"]
    change = w.chooser.pick(["= {}", "+= {}", "*= {}", "-= np.sin({})", "/= 1.5 + {} ** 2"])
    lines.append(f"{copy}[{index}] {change.format(source)}")
    if w.chooser.chance(60):
        views = ["{}[1:]", "{}[::-1]", "{}.T", "{}[..., 0]", "{}[None]"]
        # Results other than copies keep the memory order of their operands, which decides whether reshape
        # gives a view. The order is unknown while a function is staged, and may differ between lanes.
        if form.endswith(".copy()"):
            views.append("{}.reshape(-1)")
        lines.append(f"{view} = {w.chooser.pick(views).format(copy)}")
        lines.append(f"{view} {w.chooser.pick(['*= 1.5', '+= 0.3', '-= 0.5 * ' + view, '/= 2.0'])}")
        if w.chooser.chance(40):
            lines.append(f"{copy}[0] += np.cos({copy}[-1])")
        if w.chooser.chance(30):
            lines.append(f"np.add.at({copy}, [0, -1, 0], 0.5)")
        defined = [copy, view]
    else:
        defined = [copy]
    w.statement("\n".join(lines), defined, "assignment", lacks=[JAX, TORCH])


def _index(text: str) -> Any:
    return eval(f"np.s_[{text}]", {"np": np})


def branch(w: Writer) -> None:
    name, new = w.pick(), w.new_name()
    text, checked = _condition(w, name)
    target = w.pick()
    ways = [_body(w, target, w.shape(target)) for _ in range(2)]
    lines = "if {}:\n" + f"    {new} = {ways[0]}\nelse:\n    {new} = {ways[1]}"
    lacks = [STAGING, JAX, TORCH]
    w.statement(lines.format(text), [new], "branch", lacks=lacks, checked=lines.format(checked))
    if target in w.fixed:  # the choice of the branch makes no array traced
        w.fixed.add(new)


def loop(w: Writer) -> None:
    name, new = w.pick(), w.new_name()
    shape = w.shape(name)
    body = _body(w, new, shape)
    if w.chooser.below(2) == 0:
        count = w.chooser.pick([2, 1, 3, 0])
        text = f"{new} = {name}\nfor _ in range({count}):\n    {new} = {body}"
        return w.statement(text, [new], "loop")
    number = f"np.sum({new} * {new}) - 0.8"
    lines = f"{new} = {name}\nwhile {{}}:\n    {new} = 0.6 * {new}"
    w.statement(
        lines.format(f"{number} > 0"),
        [new],
        "loop",
        lacks=[STAGING, JAX, TORCH],
        checked=lines.format(f"positive({number})"),
    )
    return None


def rows(w: Writer) -> None:
    """Python's own iteration over an array."""
    name, new = w.pick(lambda shape: len(shape) > 0 and shape[0] > 0), w.new_name()
    body = _body(w, "r", w.shape(name)[1:])
    forms = [
        f"sum({body} for r in {name})",
        f"np.stack([{body} for r in {name}])",
        f"np.stack([k * r for k, r in enumerate({name})])",
        f"max(({body} for r in {name}), key=lambda r: float(np.sum(r)))",
    ]
    chosen = w.chooser.below(4)
    lacks = [STAGING, JAX, TORCH] if chosen == 3 else [TORCH]
    guard = f"apart([np.sum({body}) for r in {name}])" if chosen == 3 else ""
    if chosen == 2 and w.narrow:
        raise RejectedError  # where staged, the integer count turns single precision into double
    w.statement(f"{new} = {forms[chosen]}", [new], "loop", lacks=lacks, guard=guard)


def closure(w: Writer) -> None:
    name, new, helper = w.pick(), w.new_name(), w.new_name("h")
    body = _body(w, "u", w.shape(name))
    text = f"def {helper}(u):\n    return {body}\n{new} = {helper}({name}) + {helper}(2.0 * {name})"
    w.statement(text, [helper, new], "closure")


def structured(w: Writer) -> None:
    """Control flow that can be staged."""
    new = w.new_name()
    kind = w.chooser.pick([_cond, _fori, _scan, _while, _switch])
    kind(w, new)


def _cond(w: Writer, new: str) -> None:
    condition, checked = _condition(w, w.pick())
    name = w.pick()
    ways = [_body(w, "u", w.shape(name)) for _ in range(2)]
    line = f"{new} = ft.cond({{}}, lambda u: {ways[0]}, lambda u: {ways[1]}, {name})"
    w.statement(
        line.format(condition), [new], "structured", lacks=[TORCH], checked=line.format(checked)
    )


def _fori(w: Writer, new: str) -> None:
    name = w.pick()
    body = _body(w, "c", w.shape(name))
    if not w.narrow and w.chooser.chance(40):
        body += " * (i + 1)"
    count = w.chooser.pick([2, 1, 3])
    text = f"{new} = ft.fori_loop(0, {count}, lambda i, c: {body}, {name})"
    w.statement(text, [new], "structured", lacks=[TORCH])


def _scan(w: Writer, new: str) -> None:
    name = w.pick(lambda shape: len(shape) > 0 and shape[0] > 0)
    shape = w.shape(name)[1:]
    carry, rows = _body(w, "c", shape), w.new_name("w")
    step = f"lambda c, r: ({carry} + 0.5 * r, np.sin(r) * c)"
    reverse = ", reverse=True" if w.chooser.chance(30) else ""
    text = f"{new}, {rows} = ft.scan({step}, 0.3 * {name}[-1], {name}{reverse})"
    w.statement(text, [new, rows], "structured", lacks=[TORCH])


def _while(w: Writer, new: str) -> None:
    name = w.pick()
    if w.chooser.below(2) == 0:
        body = _body(w, "s[1]", w.shape(name))
        line = f"lambda s: s[0] < 2, lambda s: (s[0] + 1, {body}), (0, {name}))[1]"
        text = f"{new} = ft.while_loop({line}"
        return w.statement(text, [new], "structured", lacks=[TORCH])
    line = f"{new} = ft.while_loop(lambda c: {{}}, lambda c: 0.6 * c, {name})"
    number = "np.sum(c * c) - 0.8"
    w.statement(
        line.format(f"{number} > 0"),
        [new],
        "structured",
        lacks=[TORCH],
        checked=line.format(f"positive({number})"),
    )
    return None


def _switch(w: Writer, new: str) -> None:
    counts = [n for n in w.names if w.shape(n) == () and np.asarray(w.value(n)).dtype.kind == "i"]
    if not counts:
        raise RejectedError
    name = w.pick()
    ways = ", ".join(f"lambda u: {_body(w, 'u', w.shape(name))}" for _ in range(3))
    text = f"{new} = ft.switch({w.chooser.pick(counts)}, [{ways}], {name})"
    w.statement(text, [new], "structured", lacks=[TORCH])


def transformed(w: Writer) -> None:
    """A transform within the program, which may close over its arrays."""
    if w.narrow:
        raise RejectedError  # the reference does not determine the dtype of a derivative
    name, new = w.pick(), w.new_name()
    shape = w.shape(name)
    body = _body(w, "u", shape)
    forms = [
        f"ft.grad(lambda u: np.sum({body}))({name})",
        f"ft.jvp(lambda u: {body}, ({name},), ({name},))[1]",
        f"ft.checkpoint(lambda u: {body})({name})",
        f"ft.vjp(lambda u: {body}, {name})[1](0.7 * {name})[0]",
        f'ft.jit(lambda u: {body}, backend="numpy")({name})',
    ]
    if shape and shape[0]:
        row = _body(w, "u", shape[1:])
        forms += [f"ft.vmap(lambda u: {row})({name})"]
    chosen = w.chooser.pick(forms)
    lacks = (
        [TORCH, COMPLEX_STEPS] if chosen.startswith(("ft.grad", "ft.jvp", "ft.vjp")) else [TORCH]
    )
    w.statement(f"{new} = {chosen}", [new], "transform inside", lacks=lacks)


def custom(w: Writer) -> None:
    """A function with a custom rule."""
    name, new, helper = w.pick(), w.new_name(), w.new_name("h")
    if w.chooser.below(2) == 0:
        lines = [
            f"{helper} = ft.custom_jvp(lambda u: np.sin(u) * u)",
            f"{helper}.defjvp(lambda p, t: "
            f"({helper}(p[0]), (np.cos(p[0]) * p[0] + np.sin(p[0])) * t[0]))",
        ]
    else:
        lines = [
            f"{helper} = ft.custom_vjp(lambda u: np.tanh(u))",
            f"{helper}.defvjp(lambda u: (np.tanh(u), u), "
            f"lambda u, g: (g * (1.0 - np.tanh(u) ** 2),))",
            f"{helper}.defjvp(lambda p, t: ({helper}(p[0]), (1.0 - np.tanh(p[0]) ** 2) * t[0]))",
        ]
    lines.append(f"{new} = {helper}({name})")
    w.statement("\n".join(lines), [helper, new], "custom rule", lacks=[TORCH])


KINDS = [
    (26, unary),
    (24, binary),
    (7, reduction),
    (7, along_axis),
    (12, indexing),
    (12, shaping),
    (10, product),
    (8, square),
    (8, assignment),
    (4, branch),
    (4, loop),
    (3, rows),
    (3, closure),
    (6, structured),
    (3, transformed),
    (2, custom),
]
