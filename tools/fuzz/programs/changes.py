"""Statements that view, copy and change arrays in place, so that it matters which arrays share memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tools.fuzz.programs.writer import RejectedError, Writer, broadcasts

_CONSTANTS = ["0.5", "-1.25", "2.0"]


@dataclass(frozen=True)
class Changes:
    """Writes such statements.

    keep_order: whether results may have the memory order of their operands, which decides whether
                reshaping them gives a view.
    smallest:   the least number of axes of arrays that are viewed, and changed in all ways.
    """

    keep_order: bool = False
    smallest: int = 1

    def statement(self, w: Writer) -> None:
        # Some views first, so that there is something to see when one of them changes.
        reads = 6 if len(w.names) > 4 else 24
        w.chooser.weighted([(reads, self._read), (1, _alias), (6, self._change)])(w)

    def _read(self, w: Writer) -> None:
        names = w.operands(lambda shape: len(shape) >= self.smallest)
        name = names[0] if w.chooser.below(2) == 0 else w.chooser.pick(names)  # views of views
        expression = _view(w, name) if w.chooser.below(4) < 3 else self._copy(w, name)
        new = w.new_name()
        w.statement(f"{new} = {expression}", [new], "view")

    def _copy(self, w: Writer, name: str) -> str:
        shape = w.shape(name)
        plain = [f"{name}.copy()", f"{name}.flatten()", f"np.zeros({shape}, x0.dtype, like=x0)"]
        if shape:
            # NumPy does not say which memory order the result of indexing with an array has.
            plain.append(f"{name}[[0, -1, 0]].copy()")
        keeping = [f"np.copy({name})", f"np.zeros_like({name})", f"np.full_like({name}, 0.25)"]
        other = w.chooser.pick(w.names)
        if _fits(w.shape(other), shape):
            keeping += [f"np.sin({name} * {other})", f"({name} + {other})", f"(1.0 * {name})"]
        if not self.keep_order:
            keeping = [f"{expression}.copy()" for expression in keeping]
        return w.chooser.pick(plain + keeping)

    def _change(self, w: Writer) -> None:
        values = {name: w.value(name) for name in w.names}
        writable = [n for n, v in values.items() if isinstance(v, np.generic) or v.flags.writeable]
        # An operator changes an array without axes, and binds the name of a scalar to a new one.
        without_axes = [name for name in writable if w.shape(name) == ()]
        if without_axes and w.chooser.below(6) == 5:
            name = w.chooser.pick(without_axes)
            return _changed(w, name, f"{name} += {w.chooser.pick(_CONSTANTS)}")
        arrays = [name for name in writable if isinstance(values[name], np.ndarray)]
        name = w.chooser.pick([name for name in arrays if len(w.shape(name)) >= self.smallest])
        change = w.chooser.weighted([(2, _assignment), (2, _operator), (1, _out), (1, _call)])
        return _changed(w, name, change(w, name))


def _changed(w: Writer, name: str, text: str) -> None:
    w.statement(text, [name], "change in place", changes=True)


def _alias(w: Writer) -> None:
    new = w.new_name()
    w.statement(f"{new} = {w.chooser.pick(w.names)}", [new], "alias")


# Expressions.


def _index(w: Writer, shape: tuple[int, ...]) -> str:
    """A basic index that selects something."""
    chooser = w.chooser
    parts: list[Any] = []
    for length in shape:
        stop = chooser.pick([None, length - 1, length])
        ways = [slice(None), slice(None, None, -1), slice(None, None, 2), slice(1, stop)]
        ways += [slice(None, -1), slice(None, None, -2)]
        ways = [way for way in ways if len(range(length)[way]) > 0]
        place = chooser.below(2 * length) - length
        parts.append(chooser.pick([*ways, place]))
    least = min(1, len(parts))
    parts = parts[: least + chooser.below(len(parts) + 1 - least)]
    if chooser.below(3) == 2:
        parts.insert(chooser.below(len(parts) + 1), None)
    if chooser.below(3) == 2:
        parts.append(...)
    return ", ".join(map(_written, parts)) if parts else "..."


def _written(part: Any) -> str:
    if part is ...:
        return "..."
    if not isinstance(part, slice):
        return repr(part)
    bounds = ["" if bound is None else str(bound) for bound in (part.start, part.stop, part.step)]
    return ":".join(bounds[:2] if part.step is None else bounds)


def _operand(w: Writer, shape: tuple[int, ...]) -> str:
    """An expression that broadcasts to a shape; it may overlap with the array that it is assigned to."""
    fitting = w.operands(lambda own: _fits(own, shape))
    if not fitting or w.chooser.below(5) == 4:
        return w.chooser.pick(_CONSTANTS)
    name = w.chooser.pick(fitting)
    own = w.shape(name)
    forms = ["{}", "np.sin({})", "0.5 * {}"]
    if own:
        forms += ["{}[::-1]", "{}[:1]"]
    if len(own) == 2 and _fits(own[::-1], shape):
        forms += ["{}.T"]
    return w.chooser.pick(forms).format(name)


def _view(w: Writer, name: str) -> str:
    """An expression that may be a view: for a reshaped array, this depends on its memory layout."""
    shape, size = w.shape(name), np.size(w.value(name))
    parts = [f"{name}[{_index(w, shape)}]" for _ in range(2)]
    moved = [f"{name}.T", f"np.flip({name})", f"{name}[None]", f"np.squeeze({name})"]
    joined = [f"{name}.ravel()", f"{name}.reshape(-1)", f"{name}.reshape(1, -1)"]
    joined += [f"{name}.reshape({k}, -1)" for k in (2, 3) if size % k == 0]
    read_only = [f"np.broadcast_to({name}, {(2, *shape)})"]
    if shape:
        k = w.chooser.below(shape[0])
        parts.append(f"list({name})[{k}]")
        parts += [f"np.split({name}, [{k}])[{j}]" for j in (0, 1) if k > 0]
        moved.append(f"np.expand_dims({name}, -1)")
    if len(shape) >= 2:
        moved += [f"np.swapaxes({name}, 0, -1)", f"np.moveaxis({name}, 0, -1)"]
        read_only.append(f"np.diagonal({name})")
    return w.chooser.pick(w.chooser.weighted([(3, parts), (3, moved), (3, joined), (1, read_only)]))


def _fits(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether a value of this shape can be assigned to an array: NumPy adds no leading axes to the array."""
    return len(shape) <= len(target) and broadcasts(shape, target)


# Changes of an array, as text.


def _selected(w: Writer, name: str, index: str) -> Any:
    return eval(f"{name}[{index}]", dict(w.scopes[0]))


def _assignment(w: Writer, name: str) -> str:
    chooser, shape = w.chooser, w.shape(name)
    index = _index(w, shape)
    options = [f"{name}[{index}] = {_operand(w, np.shape(_selected(w, name, index)))}"]
    options.append(f"{name}[{name} > 0.1] = {chooser.pick(_CONSTANTS)}")
    if shape:
        positions = chooser.pick([[0, -1], [shape[0] - 1]])
        values = _operand(w, (len(positions), *shape[1:]))
        options.append(f"{name}[{positions}] = {values}")
        options.append(f"{name}[{positions}] += {values}")
        # A position that depends on the values, and differs between the lanes of a batch.
        position = f"np.argmax({chooser.pick(w.names)}) % {shape[0]}"
        options.append(f"{name}[{position}] = {_operand(w, shape[1:])}")
        options.append(f"{name}[{position}] += {_operand(w, shape[1:])}")
        mask = [k % 2 == 0 for k in range(shape[0])]
        options.append(f"{name}[{mask}] *= {chooser.pick(_CONSTANTS)}")
    return chooser.pick(options)


def _operator(w: Writer, name: str) -> str:
    target, selected = name, w.value(name)
    if w.chooser.below(2):
        index = _index(w, w.shape(name))
        target, selected = f"{name}[{index}]", _selected(w, name, index)
    changes = ["+= {}", "-= {}", "*= np.cos({})", "/= 2.0 + np.sin({})", "*= 1.5"]
    return f"{target} {w.chooser.pick(changes).format(_operand(w, np.shape(selected)))}"


def _out(w: Writer, name: str) -> str:
    target, selected, where = name, w.value(name), ""
    if w.chooser.below(2):
        index = _index(w, w.shape(name))
        target, selected = f"{name}[{index}]", _selected(w, name, index)
    if not isinstance(selected, np.ndarray):
        raise RejectedError
    left, right = (_operand(w, np.shape(selected)) for _ in range(2))
    if target == name and w.chooser.below(2):
        # An operand of the dtype of the target. In a complex step, the target is complex, and NumPy would
        # convert the entries that it skips to a real dtype and back.
        left, where = name, f", where={name} > 0"
    return f"{w.chooser.pick(['np.add', 'np.subtract'])}({left}, {right}, out={target}{where})"


def _call(w: Writer, name: str) -> str:
    chooser, shape = w.chooser, w.shape(name)
    fresh = (
        f"np.sin({_operand(w, shape)})"  # these functions do not say what they do if arrays overlap
    )
    options = [
        f"np.copyto({name}, {_operand(w, shape)}, where={name} > 0.1)",
        f"np.copyto({name}, {_operand(w, shape)})",
        f"np.putmask({name}, {name} < 0.1, {fresh})",
        f"{name}.fill({chooser.pick(_CONSTANTS)})",
        f"np.put({name}, [0, -1], {fresh})",
    ]
    if shape:
        part = f"np.sin({_operand(w, (3, *shape[1:]))})"
        options += [f"{name}.sort()", f"{name}.sort(axis=0)"]
        options.append(f"np.add.at({name}, [0, -1, 0], {part})")
    if len(shape) == 2:
        options.append(f"np.fill_diagonal({name}, {chooser.pick(_CONSTANTS)})")
    return chooser.pick(options)
