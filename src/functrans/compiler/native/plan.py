"""From a graph to steps: which equations share a loop, and which values are stored in memory.

A `Kernel` is one loop nest over a shape. An elementwise equation joins the first kernel of its shape that
comes after everything it reads; values that it reads from the same kernel stay in registers. Reshapes,
transposes, slices and broadcasts are views of memory and cost nothing. Reductions join the kernel of
their argument, and matrix products are separate steps.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from functrans.compiler.native.gathers import IndexedAxis, indexed_layout
from functrans.compiler.native.kinds import NumberKind, is_python_integer, number_kind_of
from functrans.compiler.native.lowering import (
    MATMUL,
    Control,
    Parts,
    Reduction,
    Strides,
    lowers,
    operand_kinds,
)
from functrans.compiler.native.products import (
    Product,
    arranged,
    find_blas,
    gemm_arguments,
    is_loop,
    is_small,
)
from functrans.compiler.native.python_integers import Bounds, constant_bounds
from functrans.compiler.native.strides import (
    Buffer,
    BufferView,
    broadcast,
    c_strides,
    indexed,
    whole,
)
from functrans.core.shapes import ArraySpec
from functrans.graph.graph import Equation, Graph, Variable
from functrans.ops import elementwise, reduction, structure
from functrans.ops.indexing import ARRAY, index, scatter, update
from functrans.ops.scatter_add import wide_dtype

# Of one kernel. With more, LLVM takes long to allocate registers, and its time grows as their square.
_ARRAYS, _ITEMS = 40, 256


def is_native(
    equation: Equation,
    constants: Mapping[Variable, Any],
    integers: Mapping[Variable, Bounds] = MappingProxyType({}),
) -> bool:
    """Whether an equation can be compiled to native code.

    `integers` are the bounds of the Python integers of the graph that are known.
    """
    entry = lowers.of(equation.primitive)
    if entry is None:
        return False
    variables = (*equation.inputs, *equation.outputs)
    if any(not v.spec.size or number_kind_of(v.spec.dtype) is None for v in variables):
        return False
    if isinstance(entry, Control):
        return entry.takes(equation, {**constant_bounds(constants), **integers})
    if any(
        is_python_integer(v.spec) and v not in constants and v not in integers for v in variables
    ):
        return False
    if isinstance(entry, (Strides, Parts)):
        templates = equation.params.get("templates", (equation.params.get("template", ()),))
        entries = [entry for template in templates for entry in template]
        values = equation.inputs
        if ARRAY in entries:
            values = values[: 2 if equation.primitive is update else 1]
        kind = number_kind_of(equation.outputs[0].spec.dtype)
        if kind is None or not _all_fit(values, [kind] * len(values), constants, integers):
            return False
        if ARRAY in entries:
            return all(
                entry is ARRAY or isinstance(entry, (slice, type(None))) for entry in entries
            )
        return all(isinstance(entry, (int, slice, type(None), type(...))) for entry in entries)
    if isinstance(entry, Reduction):
        kind = number_kind_of(equation.outputs[0].spec.dtype)
        return kind is not None and (not kind.is_bool or entry.takes_bool)
    if entry is MATMUL:
        dtypes = {v.spec.dtype for v in variables}
        kind = number_kind_of(equation.outputs[0].spec.dtype)
        if len(dtypes) != 1 or kind is None or not kind.is_float:
            return False
        left, right = (v.spec.shape for v in equation.inputs)
        rows = left[-2] if len(left) > 1 else 1
        columns = right[-1] if len(right) > 1 else 1
        return is_loop(rows, left[-1], columns, kind.size) or find_blas() is not None
    kinds = operand_kinds(equation)
    return kinds is not None and _all_fit(equation.inputs, kinds, constants, integers)


def _all_fit(
    variables: Sequence[Variable],
    kinds: Sequence[NumberKind],
    constants: Mapping[Variable, Any],
    integers: Mapping[Variable, Bounds],
) -> bool:
    """Whether the Python integers among some variables fit into the kinds that they are converted to."""
    return all(
        _fits(bound, kind)
        for v, kind in zip(variables, kinds, strict=True)
        if is_python_integer(v.spec)
        for bound in (integers[v] if v in integers else (constants[v],))
    )


def _fits(number: int, kind: NumberKind) -> bool:
    """Whether a kind holds a Python integer; NumPy compares with larger ones, too."""
    if kind.is_float or kind.is_bool:
        return True
    bounds = np.iinfo(kind.dtype)
    return bool(bounds.min <= number <= bounds.max)


class Item(NamedTuple):
    """One action of a kernel at every point of its shape."""

    # "compute" or "reduce"; "store" or "accumulate", at every point of a view; or "gather", "scatter"
    # (which adds) or "put", at indexed places
    action: str
    equation: Equation | None
    variable: Variable
    view: BufferView | None = None  # what it reads or writes, over the shape of the kernel
    places: tuple[IndexedAxis, ...] = ()


class Places(NamedTuple):
    """Where a reduction in blocks adds, for each loop (see blocks.py)."""

    shares: tuple[int, ...]  # how many consecutive iterations share a partial sum
    strides: tuple[int, ...]  # of the partial sums


class Kernel:
    """A loop nest over a shape."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.items: list[Item] = []
        self.loads: dict[Variable, BufferView] = {}  # what it reads from memory, over its shape
        self.arrays = 0  # how many arrays the items write
        self.cleared: list[BufferView] = []  # what is set to zero before it runs
        self.begun: set[Buffer] = set()  # those of them that it alone adds to
        self.rounds: dict[int, int] = {}  # of the loops that are divided into blocks
        self.places: dict[int, Places] = {}  # of the items that reduce in blocks

    def add(self, item: Item) -> None:
        self.items.append(item)
        self.arrays += item.view is not None

    @property
    def is_full(self) -> bool:
        """Whether it is large enough to begin another one."""
        return len(self.loads) + self.arrays >= _ARRAYS or len(self.items) >= _ITEMS


class PlannedValue:
    """What is known of a variable: where it is, and after which step."""

    __slots__ = ("kernel", "literal", "step", "view")

    def __init__(
        self,
        step: int,
        kernel: Kernel | None = None,
        view: BufferView | None = None,
        literal: Any = None,
    ) -> None:
        self.step = step
        self.kernel = kernel  # the one that computes it in registers
        self.view = view
        self.literal = literal


class Plan:
    """The steps of a graph, and the memory they use."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.steps: list[Any] = []  # kernels, products, and those of control.py
        self.values: dict[Variable, PlannedValue] = {}
        self.constants: list[Any] = []
        self.outputs: list[Buffer] = []
        self._kernels: dict[tuple[int, ...], list[int]] = {}  # their numbers, by shape
        self._uses = Counter(v for equation in graph.equations for v in equation.inputs)
        self._uses.update(graph.outputs)
        self._order = self._wanted_orders()
        self._copies: dict[Variable, BufferView] = {}
        self._copy_steps: dict[Variable, int] = {}
        for k, variable in enumerate(graph.inputs):
            self.values[variable] = PlannedValue(-1, view=self._whole("input", k, variable))
        for variable, value in graph.constants.items():
            self.values[variable] = self._constant(variable, value)
        for equation in graph.equations:
            self.add(equation)
        for k, variable in enumerate(graph.outputs):
            self._finish(k, variable)

    # Values.

    def _whole(self, role: str, index: int, variable: Variable) -> BufferView:
        kind = number_kind_of(variable.spec.dtype)
        assert kind is not None
        return whole(Buffer(role, index, kind, variable.spec.size), variable.spec.shape)

    def _constant(self, variable: Variable, value: Any) -> PlannedValue:
        if not variable.spec.shape:
            return PlannedValue(-1, literal=value.item() if hasattr(value, "item") else value)
        diagonal = _diagonal(value)
        if diagonal is not None:
            view = self._whole("identity", -1, variable)
            offset, view.buffer.scale = diagonal
            return PlannedValue(-1, view=view._replace(strides=(1, -1), offset=offset))
        self.constants.append(np.require(value, requirements=("C", "A")))
        return PlannedValue(-1, view=self._whole("constant", len(self.constants) - 1, variable))

    def _wanted_orders(self) -> dict[Variable, tuple[int, ...]]:
        """Values whose transpose is a result: they are laid out so that the transpose is in C order."""
        results = set(self.graph.outputs)
        return {
            equation.inputs[0]: equation.params["axes"]
            for equation in self.graph.equations
            if equation.primitive is structure.transpose
            and equation.outputs[0] in results
            and self._uses[equation.inputs[0]] == 1
        }

    def memory(self, variable: Variable) -> BufferView:
        """A value as an array in memory; from now on it is stored."""
        value = self.values[variable]
        if value.view is None:
            value.view = self.fresh(variable)
            if value.kernel is not None:
                value.kernel.add(Item("store", None, variable, value.view))
            else:  # a number
                kernel, value.step = self._kernel(variable.spec.shape, 0)
                kernel.add(Item("store", None, variable, value.view))
        return value.view

    def block(self, variable: Variable) -> BufferView:
        """New memory for a value, in C order."""
        return self._whole("work", -1, variable)

    def fresh(self, variable: Variable) -> BufferView:
        """New memory for a value, in the order in which it is wanted."""
        view = self.block(variable)
        axes = self._order.get(variable)
        if axes is None:
            return view
        target = c_strides(tuple(variable.spec.shape[axis] for axis in axes))
        strides = [0] * len(axes)
        for axis, stride in zip(axes, target, strict=True):
            strides[axis] = stride
        return view._replace(strides=tuple(strides))

    def broadcast_number(self, number: float, out: Variable) -> None:
        """An array of one number."""
        variable = Variable(ArraySpec((), out.spec.dtype))
        self.values[variable] = PlannedValue(-1, literal=number)
        self.add(Equation(structure.broadcast_to, (variable,), {"shape": out.spec.shape}, (out,)))

    # Steps.

    def _kernel(self, shape: tuple[int, ...], earliest: int) -> tuple[Kernel, int]:
        """The first kernel of this shape, not before `earliest`, and its number."""
        numbers = self._kernels.setdefault(shape, [])
        place = bisect_left(numbers, earliest)
        while place < len(numbers) and self.steps[numbers[place]].is_full:
            del numbers[place]
        if place == len(numbers):
            numbers.append(len(self.steps))
            self.steps.append(Kernel(shape))
        step = self.steps[numbers[place]]
        assert isinstance(step, Kernel)
        return step, numbers[place]

    def _earliest(self, variables: tuple[Variable, ...], shape: tuple[int, ...]) -> int:
        """The first step in which an operation over `shape` can see these values."""
        earliest = 0
        for variable in variables:
            value = self.values[variable]
            same = value.kernel is not None and value.kernel.shape == shape
            earliest = max(earliest, value.step + (0 if same else 1))
        return earliest

    def _read(self, kernel: Kernel, variable: Variable) -> None:
        """Make a value visible in a kernel, broadcast to the kernel's shape."""
        value = self.values[variable]
        if value.kernel is kernel or (value.view is None and value.kernel is None):
            return  # in registers, or a number
        kernel.loads[variable] = broadcast(self.memory(variable), kernel.shape)

    def _place(
        self, variables: tuple[Variable, ...], shape: tuple[int, ...], after: int = 0
    ) -> Any:
        """The kernel for an operation over `shape` on these values, with all of them visible."""
        for variable in variables:
            value = self.values[variable]
            if value.kernel is not None and value.kernel.shape != shape:
                self.memory(variable)
        earliest = max(after, self._earliest(variables, shape))
        kernel, step = self._kernel(shape, earliest)
        for variable in variables:
            self._read(kernel, variable)
        return kernel, step

    def add(self, equation: Equation) -> None:
        """Plan one equation."""
        entry = lowers.of(equation.primitive)
        if isinstance(entry, Control):
            entry.plan(self, equation)
            return
        (out,) = equation.outputs
        if ARRAY in equation.params.get("template", ()):
            self._at_places(equation)
        elif isinstance(entry, Strides):
            self.values[out] = self._view(equation, entry)
        elif isinstance(entry, Parts):
            self._write(equation)
        elif equation.primitive is reduction.mean:
            total = Variable(out.spec)
            self._reduce(Equation(reduction.sum, equation.inputs, equation.params, (total,)))
            count = Variable(ArraySpec((), float, True))
            entries = equation.inputs[0].spec.size / out.spec.size
            self.values[count] = PlannedValue(-1, literal=entries)
            self.add(Equation(elementwise.divide, (total, count), {}, (out,)))
        elif isinstance(entry, Reduction):
            self._reduce(equation)
        elif entry is MATMUL:
            self._multiply(equation)
        else:
            kernel, step = self._place(equation.inputs, out.spec.shape)
            kernel.add(Item("compute", equation, out))
            self.values[out] = PlannedValue(step, kernel)

    def _view(self, equation: Equation, entry: Strides) -> PlannedValue:
        (x,) = equation.inputs
        shape = equation.outputs[0].spec.shape
        source = self.values[x]
        result = entry.see(self.memory(x), equation)
        if result is None:  # a reshape that needs a copy
            copied = self._whole("work", -1, x)
            step = self._put("store", x, copied, 0)
            return PlannedValue(step, view=whole(copied.buffer, shape))
        return PlannedValue(source.step, view=result)

    def _write(self, equation: Equation) -> None:
        """Operations that concatenate values, or write one into a part of another."""
        primitive, params, inputs = equation.primitive, equation.params, equation.inputs
        (out,) = equation.outputs
        target = self.fresh(out)
        last = 0
        if primitive is structure.concatenate:
            start, axis = 0, params["axis"]
            for part in inputs:
                stop = start + part.spec.shape[axis]
                template = (slice(None),) * axis + (slice(start, stop),)
                last = max(last, self._put("store", part, _part(target, template), 0))
                start = stop
        elif primitive is update:
            base, part = inputs
            first = self._put("store", base, target, 0)
            last = self._put("store", part, _part(target, params["template"]), first + 1)
        else:
            templates = params.get("templates") or (params["template"],)
            added = self._added(inputs, templates)
            if len(added) == 1 and len(target.shape) == 1 and added[0][0].spec.size > 1:
                ((part, template),) = added
                if (rest := _outside(target, _part(target, template))) is not None:
                    last = self._put("store", part, _part(target, template), 0)
                    self.steps[last].cleared += rest
                    self.values[out] = PlannedValue(last, view=target)
                    return
            steps = [
                self._put("accumulate", part, _part(target, template), 0)
                for part, template in added
            ]
            first_kernel = self.steps[min(steps)]
            assert isinstance(first_kernel, Kernel)
            first_kernel.cleared.append(target)
            last = max(steps)
            if min(steps) == last:
                first_kernel.begun.add(target.buffer)
        self.values[out] = PlannedValue(last, view=target)

    def _added(self, parts: Any, templates: Any) -> list[tuple[Variable, Any]]:
        """Parts with their templates; consecutive parts with the same template are added up."""
        found: list[tuple[Variable, Any]] = []
        for part, template in zip(parts, templates, strict=True):
            if found and found[-1][1] == template and found[-1][0].spec == part.spec:
                total = Variable(part.spec)
                self.add(Equation(elementwise.add, (found[-1][0], part), {}, (total,)))
                found[-1] = total, template
            else:
                found.append((part, template))
        return found

    def _at_places(self, equation: Equation) -> None:
        """Reading and writing with integer arrays as indices."""
        primitive, template = equation.primitive, equation.params["template"]
        (out,) = equation.outputs
        dtype = wide_dtype(out.spec.dtype, equation.inputs[0].spec.size, out.spec.size)
        if primitive is scatter and dtype is not None:
            wide = Variable(ArraySpec(out.spec.shape, dtype))
            self._at_places(Equation(primitive, equation.inputs, equation.params, (wide,)))
            self.add(Equation(structure.astype, (wide,), {"dtype": out.spec.dtype}, (out,)))
            return
        count = 2 if primitive is update else 1
        array, *parts = equation.inputs[:count]
        indices = equation.inputs[count:]
        first = 0
        if primitive is index:
            target = self.memory(array)
            if target.buffer.role == "identity":
                target = self.copied(array)
        else:
            target = self.fresh(out)
            if primitive is update:
                first = self._put("store", array, target, 0) + 1
            else:
                parts = [array]
        indexed_view, index_views, axes = indexed_layout(
            target, template, [self.memory(v) for v in indices]
        )
        places = []
        for variable, view, (length, stride) in zip(indices, index_views, axes, strict=True):
            spread = Variable(ArraySpec(view.shape, variable.spec.dtype))
            self.values[spread] = PlannedValue(self.values[variable].step, view=view)
            places.append(IndexedAxis(spread, length, stride))
        read = [place.variable for place in places]
        if primitive is index:
            first = max(first, self.values[array].step + 1)
            if array in self._copies:
                first = max(first, self._copy_steps[array] + 1)
        kernel, step = self._place((*parts, *read), indexed_view.shape, first)
        action = {index: "gather", scatter: "scatter", update: "put"}[primitive]
        variable = out if primitive is index else parts[0]
        kernel.add(Item(action, None, variable, indexed_view, tuple(places)))
        if primitive is index:
            self.values[out] = PlannedValue(step, kernel)
            return
        if primitive is scatter:
            kernel.cleared.append(target)
        self.values[out] = PlannedValue(step, view=target)

    def _put(self, action: str, variable: Variable, view: BufferView, after: int) -> int:
        kernel, step = self._place((variable,), view.shape, after)
        kernel.add(Item(action, None, variable, view))
        return int(step)

    def _reduce(self, equation: Equation) -> None:
        (x,), (out,) = equation.inputs, equation.outputs
        kernel, step = self._place((x,), x.spec.shape)
        view = self.fresh(out)
        # Over the shape of the argument, a result has stride 0 along the reduced axes.
        axes = equation.params["axis"]
        kept = iter(view.strides)
        strides = []
        for axis in range(len(x.spec.shape)):
            if axis not in axes:
                strides.append(next(kept))
            else:
                strides.append(0)
                if equation.params["keepdims"]:
                    next(kept)
        spread = BufferView(view.buffer, x.spec.shape, tuple(strides))
        kernel.add(Item("reduce", equation, out, spread))
        self.values[out] = PlannedValue(step, view=view)

    def _multiply(self, equation: Equation) -> None:
        (x, y), (out,) = equation.inputs, equation.outputs
        target = self.fresh(out)
        a, b = (
            self.copied(v) if self.memory(v).buffer.role == "identity" else self.memory(v)
            for v in (x, y)
        )
        product = self._matrices(a, b, target)
        small = is_small(product.a, product.b)
        # Small products read contiguous rows of b several times; BLAS needs contiguous rows or columns.
        if not small and gemm_arguments(arranged(product)) is None:
            product = self._matrices(self.copied(x), self.copied(y), target)
        elif small and product.a.shape[-2] > 4 and _is_broken(arranged(product).b):
            product = self._matrices(a, self.copied(y), target)
        self.steps.append(product)
        self.values[out] = PlannedValue(len(self.steps) - 1, view=target)

    def copied(self, variable: Variable) -> BufferView:
        """A copy of a value in C order."""
        if variable not in self._copies:
            view = self._copies[variable] = self._whole("work", -1, variable)
            self._copy_steps[variable] = self._put("store", variable, view, 0)
        return self._copies[variable]

    @staticmethod
    def _matrices(a: BufferView, b: BufferView, c: BufferView) -> Product:
        """Vectors are matrices with one row, or one column."""
        if len(a.shape) == 1:
            a = _with_axis(a, 0)
            c = _with_axis(c, len(c.shape) - (len(b.shape) > 1))
        if len(b.shape) == 1:
            b = _with_axis(b, 1)
            c = _with_axis(c, len(c.shape))
        lanes = c.shape[:-2]
        a = broadcast(a, (*lanes, *a.shape[-2:]))
        return Product(a, broadcast(b, (*lanes, *b.shape[-2:])), c)

    def _finish(self, k: int, variable: Variable) -> None:
        """Make sure that a result has its own buffer, in C order."""
        shape = variable.spec.shape
        value = self.values[variable]
        if value.view is None and value.kernel is not None:
            self.memory(variable)
        view = value.view
        mine = (
            view is not None
            and view.buffer.role == "work"
            and view.buffer.size == prod(shape)
            and _is_c_order(view)
        )
        if mine and view is not None:
            view.buffer.role, view.buffer.index = "output", k
            self.outputs.append(view.buffer)
            return
        target = self._whole("output", k, variable)
        self._put("store", variable, target, 0)
        self.outputs.append(target.buffer)


def _diagonal(value: Any) -> tuple[int, float] | None:
    """(k, s) for a matrix that is s where row + k = column and 0 elsewhere, like a basis of Jacobians."""
    if value.ndim != 2 or value.size < 1 << 10 or value.dtype.kind != "f":
        return None
    places = np.flatnonzero(value[0])
    offset = int(places[0]) if len(places) else -int(np.argmax(value[:, 0] != 0))
    entries = np.diagonal(value, offset)
    if not len(entries) or np.count_nonzero(value) != len(entries):
        return None
    negative = np.count_nonzero(np.signbit(value))  # zeros may be negative, too
    if not np.all(entries == entries[0]) or negative != (len(entries) if entries[0] < 0 else 0):
        return None
    return offset, float(entries[0])


def _part(view: BufferView, template: tuple[Any, ...]) -> BufferView:
    part = indexed(view, template)
    assert part is not None
    return part


def _outside(vector: BufferView, part: BufferView) -> list[BufferView] | None:
    """What is before and after a part of a vector, if the part has no gaps."""
    if part.strides != (1,) or vector.strides != (1,):
        return None
    end = part.offset + part.shape[0]
    pieces = ((vector.offset, part.offset), (end, vector.offset + vector.shape[0]))
    return [
        BufferView(vector.buffer, (stop - start,), (1,), start)
        for start, stop in pieces
        if start < stop
    ]


def _is_broken(matrix: BufferView) -> bool:
    """Whether the rows of a matrix do not lie in memory in one piece."""
    return matrix.shape[-1] > 1 and matrix.strides[-1] != 1


def _with_axis(view: BufferView, axis: int) -> BufferView:
    shape, strides = list(view.shape), list(view.strides)
    shape.insert(axis, 1)
    strides.insert(axis, 0)
    return view._replace(shape=tuple(shape), strides=tuple(strides))


def _is_c_order(view: BufferView) -> bool:
    expected = c_strides(view.shape)
    return not view.offset and all(
        have == want or n == 1
        for n, have, want in zip(view.shape, view.strides, expected, strict=True)
    )
