"""Passes: small functions from graph to graph that preserve the meaning of the graph.

Each states its guarantee. The passes of level 1 give the same values bit for bit (a nan stays a nan, with
any payload). Those of level 2 may change the last digit. Derivatives are preserved too: a function that is
differentiated through its optimized graph has the derivatives, and the conventions at kinks, of the
original function.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from types import BuiltinFunctionType
from typing import Any

import numpy as np

from functrans.core.dispatch import Tracer, is_plain
from functrans.core.frozen import by_identity, frozen
from functrans.core.primitive import Collective, Elementwise
from functrans.core.shapes import ArraySpec, spec_of
from functrans.graph.graph import Equation, Graph, Variable
from functrans.ops import elementwise as ew
from functrans.ops import structure
from functrans.ops.contraction import einsum, matmul
from functrans.ops.indexing import index, update_in_place

_MOST_ROUNDS = 50  # a graph needs about three
FOLDED_BYTES = 1 << 16  # the maximum size of constants that are computed ahead


def optimize(graph: Graph, level: int = 2) -> Graph:
    """The graph after all passes up to this level, run until nothing changes; 0 changes nothing."""
    if level < 1:
        return graph
    rules = [rule for rank, rule in RULES if rank <= level]

    def first(walk: Rewriter, equation: Equation) -> Variable | None:
        for rule in rules:
            found = rule(walk, equation)
            if found is not None:
                return found
        return None

    graph = graph.pruned()
    for _ in range(_MOST_ROUNDS):
        walk = Rewriter(graph)
        smaller = common_subexpressions(walk.run(first))
        if not walk.replaced and len(smaller.equations) == len(graph.equations):
            return smaller
        graph = smaller
    return graph


# Building blocks of passes.


def rebuilt(
    graph: Graph, equations: list[Equation], constants: Any = None, outputs: Any = None
) -> Graph:
    """A graph with the interface of this one."""
    return Graph(
        graph.inputs,
        graph.constants if constants is None else constants,
        equations,
        graph.outputs if outputs is None else outputs,
        graph.in_tree,
        graph.out_tree,
        graph.input_names,
        graph.axes,
        graph.arrays,
    )


class Rewriter:
    """A walk over the equations, which may replace each by a variable or by another equation."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.numbers: dict[Variable, Any] = {}
        self.uses = Counter(v for equation in graph.equations for v in equation.inputs)
        self.uses.update(graph.outputs)
        self.constants = dict(graph.constants)
        self.equations: list[Equation] = []
        self.replaced: dict[Variable, Variable] = {}
        self.origin: dict[Variable, Equation] = {}

    def run(self, rule: Rule) -> Graph:
        """Apply a rule that returns a variable to replace an equation's result, or None."""
        replaced = self.replaced
        for equation in self.graph.equations:
            if not replaced.keys().isdisjoint(equation.inputs):
                inputs = tuple([replaced.get(v, v) for v in equation.inputs])
                equation = Equation(equation.primitive, inputs, equation.params, equation.outputs)
            found = None if equation.primitive.outputs else rule(self, equation)
            if found is not None and found.spec == equation.outputs[0].spec:
                self.replaced[equation.outputs[0]] = found
            else:
                self.add(equation)
        outputs = [self.replaced.get(v, v) for v in self.graph.outputs]
        return rebuilt(self.graph, self.equations, self.constants, outputs).pruned()

    def add(self, equation: Equation) -> None:
        self.equations.append(equation)
        for variable in equation.outputs:
            self.origin[variable] = equation

    def emit(self, primitive: Any, *inputs: Variable, **params: Any) -> Variable:
        """Add an equation, and return its result."""
        out = Variable(primitive.shape(tuple(v.spec for v in inputs), params))
        self.add(Equation(primitive, inputs, params, (out,)))
        return out

    def constant(self, value: Any) -> Variable:
        variable = Variable(spec_of(value))
        self.constants[variable] = value
        return variable

    def made_by(self, variable: Variable, primitive: Any) -> Equation | None:
        """The equation that made a variable, if it is one of this primitive."""
        equation = self.origin.get(variable)
        return equation if equation is not None and equation.primitive is primitive else None

    def number(self, variable: Variable) -> Any:
        """The scalar that all elements of a constant are equal to, or None."""
        value = self.constants.get(variable)
        if value is None:
            return None
        if variable not in self.numbers:
            self.numbers[variable] = _number(value)
        return self.numbers[variable]


def _number(value: Any) -> Any:
    if isinstance(value, Tracer) or np.size(value) == 0:
        return None
    if np.ndim(value) == 0:
        return value
    if not any(value.strides):
        return value.flat[0]
    flat = value.reshape(-1)
    for part in (flat[:16], flat):  # most arrays differ early
        bits = np.ascontiguousarray(part).view(np.uint8).reshape(-1, value.itemsize)
        if not (bits == bits[0]).all():
            return None
    return flat[0]


Rule = Callable[[Rewriter, Equation], Variable | None]


# The passes.


_COMMUTATIVE = frozenset({ew.add, ew.multiply})


def common_subexpressions(graph: Graph) -> Graph:
    """Compute common subexpressions once; a + b is b + a. Exact."""
    known: dict[Any, tuple[Variable, ...]] = {}
    same: dict[Variable, Variable] = {}
    constants: dict[Variable, Any] = {}
    seen: dict[Any, Variable] = {}
    for variable, value in graph.constants.items():
        key = _constant_key(value)
        same[variable] = seen.setdefault(key, variable)
        if same[variable] is variable:
            constants[variable] = value
    equations = []
    for equation in graph.equations:
        inputs = tuple([same.get(v, v) for v in equation.inputs])
        order = inputs
        if equation.primitive in _COMMUTATIVE:
            order = tuple(sorted(inputs, key=id))
        key = (equation.primitive, order, frozen(equation.params, by_identity))
        if equation.primitive is update_in_place:
            key = (equation,)
        found = known.setdefault(key, equation.outputs)
        if found is equation.outputs:
            equations.append(
                Equation(equation.primitive, inputs, equation.params, equation.outputs)
            )
        else:
            same.update(zip(equation.outputs, found, strict=True))
    return rebuilt(graph, equations, constants, [same.get(v, v) for v in graph.outputs])


def _constant_key(value: Any) -> Any:
    if isinstance(value, Tracer) or getattr(value, "nbytes", 0) > FOLDED_BYTES:
        return id(value)
    return frozen(value)


def _folded(walk: Rewriter, equation: Equation) -> Variable | None:
    """Compute ahead what depends only on constants, if the result is small. Exact."""
    if isinstance(equation.primitive, Collective) or not equation.inputs:
        return None
    values = [walk.constants.get(v) for v in equation.inputs]
    spec = equation.outputs[0].spec
    if any(value is None or isinstance(value, Tracer) for value in values):
        return None
    limit = FOLDED_BYTES
    if equation.primitive in (matmul, einsum):  # their cost justifies the memory of another operand
        limit = max(limit, *(np.asarray(value).nbytes for value in values))
    if spec.size * spec.dtype.itemsize > limit:
        return None
    try:
        with np.errstate(all="ignore"):
            value = equation.primitive.impl(*values, **equation.params)
    except Exception:  # it will fail again when the graph runs, where the user can see it
        return None
    return walk.constant(value.copy() if is_plain(value, np.ndarray) else value)


def _unspread(walk: Rewriter, equation: Equation) -> Variable | None:
    """Remove broadcasts of operands, which elementwise operations do themselves. Exact.

    A broadcast operand is replaced by the original, and one that holds the same number everywhere by that
    number, if the result keeps its shape and dtype.
    """
    if not isinstance(equation.primitive, Elementwise) or equation.params:
        return None
    inputs = list(equation.inputs)
    numbers = _takes_numbers(equation.primitive)
    for k, variable in enumerate(inputs):
        if k and equation.primitive in (ew.power, ew.clip):
            continue  # NumPy treats a Python number differently: x ** 0.5 is a square root
        for smaller in _smaller(walk, variable, numbers):
            specs = tuple(v.spec for v in (*inputs[:k], smaller, *inputs[k + 1 :]))
            if all(spec.weak or not spec.shape for spec in specs):
                continue  # Python's and NumPy's scalar arithmetic differ
            if equation.primitive.shape(specs, {}) == equation.outputs[0].spec:
                inputs[k] = smaller
                break
    if inputs == list(equation.inputs):
        return None
    return walk.emit(equation.primitive, *inputs)


def _takes_numbers(primitive: Any) -> bool:
    """Whether an operand may become a Python number; a user's rule may need arrays."""
    impl = primitive.impl
    return isinstance(impl, (np.ufunc, BuiltinFunctionType)) or primitive is structure.where


_PLAIN_KINDS = {"b": 1, "i": 8, "u": 8, "f": 8, "c": 16}


def _smaller(walk: Rewriter, variable: Variable, numbers: bool) -> list[Variable]:
    """Possible replacements of an operand, smallest first; Python numbers only if allowed."""
    found = []
    number = walk.number(variable)
    dtype = variable.spec.dtype
    if number is not None and not variable.spec.weak:
        if numbers and dtype.itemsize <= _PLAIN_KINDS.get(dtype.kind, 0):
            found.append(walk.constant(number.item()))  # a Python number, exactly
        if variable.spec.shape:
            found.append(walk.constant(number))
    broadcast = walk.made_by(variable, structure.broadcast_to)
    if broadcast is not None:
        found.append(broadcast.inputs[0])
    return found


def _simpler(walk: Rewriter, equation: Equation) -> Variable | None:
    """Identities that hold for every number, -0.0, infinities and nan included. Exact.

    x * 1, x / 1, x ** 1, x - 0, x + -0.0, +x, -(-x) are x; x * -1 is -x; x + x is 2 * x;
    a + (-b) is a - b; a * (-b) is -(a * b), and likewise for quotients; for integers x + 0 is x, too. Copies,
    casts to the same dtype, and real parts and conjugates of real numbers are removed. (x + 0.0 is not x: it
    turns -0.0 into 0.0. Nor is z * 1 for a complex z, which is z * (1 + 0j): it contains products with 0,
    which turn an infinity into nan. And -b of an integer may overflow: in the dtype of b, the least integer
    has no opposite, and unsigned integers wrap around.)
    """
    primitive, inputs = equation.primitive, equation.inputs
    x = inputs[0] if inputs else None
    if x is None:
        return None
    kind = x.spec.dtype.kind
    if primitive in (ew.positive, structure.copy) and kind != "b":
        return x
    if primitive in (structure.conjugate, ew.real) and kind in "iuf":
        return x
    if primitive is structure.astype:
        return x if not x.spec.weak else None
    if primitive is ew.negative:
        inner = walk.made_by(x, ew.negative)
        return None if inner is None else inner.inputs[0]
    if len(inputs) != 2 or primitive not in _ARITHMETIC:
        return None
    return _simpler_arithmetic(walk, primitive, x, inputs[1], equation.outputs[0].spec)


_ARITHMETIC = frozenset({ew.add, ew.subtract, ew.multiply, ew.divide, ew.power})


def _simpler_arithmetic(
    walk: Rewriter, primitive: Any, x: Variable, y: Variable, spec: ArraySpec
) -> Variable | None:
    a, b = walk.number(x), walk.number(y)
    fits = x.spec == spec
    real = spec.dtype.kind != "c"
    if primitive in (ew.multiply, ew.divide, ew.power) and fits and real and _is(b, 1):
        return x
    if primitive is ew.multiply:
        if _is(a, 1) and y.spec == spec and real:
            return y
        if _is(b, -1) and fits and spec.dtype.kind in "if":
            return walk.emit(ew.negative, x)
        if _is(a, -1) and y.spec == spec and spec.dtype.kind in "if":
            return walk.emit(ew.negative, y)
    if primitive in (ew.multiply, ew.divide) and spec.dtype.kind == "f":
        for operand in (x, y):
            negated = walk.made_by(operand, ew.negative)
            # Moved outside, the sign may cancel another; it costs no more there if all shapes are equal.
            if negated is not None and operand.spec == spec and walk.uses[operand] < 2:
                inner = negated.inputs[0]
                pair = (inner, y) if operand is x else (x, inner)
                return walk.emit(ew.negative, walk.emit(primitive, *pair))
    if primitive is ew.add:
        if fits and _is_neutral(b, spec):
            return x
        if y.spec == spec and _is_neutral(a, spec):
            return y
        if x is y and spec.dtype.kind in "iuf" and not spec.weak:
            return walk.emit(ew.multiply, walk.constant(2), x)
        for plus, minus in ((x, y), (y, x)):
            opposite = _opposite(walk, minus, spec)
            if opposite is not None:
                return walk.emit(ew.subtract, plus, opposite)
    if primitive is ew.subtract:
        if fits and _is(b, 0) and not np.signbit(b):
            return x
        opposite = _opposite(walk, y, spec)
        if opposite is not None:
            return walk.emit(ew.add, x, opposite)
    return None


def _opposite(walk: Rewriter, variable: Variable, spec: ArraySpec) -> Variable | None:
    """b, if a variable is -b and can be subtracted instead in a sum of this spec."""
    negated = walk.made_by(variable, ew.negative)
    if negated is None or spec.dtype.kind not in "if":
        return None
    dtype = variable.spec.dtype
    return negated.inputs[0] if dtype.kind == "f" or dtype == spec.dtype else None


def _is(number: Any, value: int) -> bool:
    return (
        number is not None
        and not isinstance(number, (complex, np.complexfloating))
        and bool(number == value)
    )


def _is_neutral(number: Any, spec: ArraySpec) -> bool:
    """Whether x + number is x for every x of this spec."""
    kind = spec.dtype.kind
    return _is(number, 0) and (kind in "iu" or (kind == "f" and bool(np.signbit(number))))


def _fewer_moves(walk: Rewriter, equation: Equation) -> Variable | None:
    """Merge consecutive reshapes, transposes and broadcasts into one, or none. Exact."""
    primitive, params = equation.primitive, equation.params
    spec = equation.outputs[0].spec
    if primitive is index and _keeps_all(equation):
        primitive, params = structure.reshape, {"shape": spec.shape}
        if equation.inputs[0].spec != spec:
            return walk.emit(primitive, *equation.inputs, **params)
    if primitive not in _MOVES:
        return None
    (x,) = equation.inputs
    if primitive is structure.transpose:
        axes = params["axes"]
        inner = walk.made_by(x, primitive)
        if inner is not None:
            axes = tuple(inner.params["axes"][a] for a in axes)
            (x,) = inner.inputs
        if tuple(axes) == tuple(range(len(axes))):
            return x
        return None if inner is None else walk.emit(primitive, x, axes=axes)
    if x.spec == spec:
        return x
    inner = walk.made_by(x, primitive)
    return None if inner is None else walk.emit(primitive, inner.inputs[0], **params)


def _keeps_all(equation: Equation) -> bool:
    """Whether an index selects every element in order: x[:, None], or x[0] of one row."""
    template, size = equation.params["template"], equation.outputs[0].spec.size
    if len(equation.inputs) > 1 or size != equation.inputs[0].spec.size or not size:
        return False
    return all(not isinstance(t, slice) or t.step is None or t.step > 0 for t in template)


_MOVES = frozenset({structure.reshape, structure.transpose, structure.broadcast_to})


def _product(walk: Rewriter, equation: Equation) -> Variable | None:
    """x ** 2 and x ** 3 as products. The last digit may differ."""
    if equation.primitive is ew.square:
        (x,) = equation.inputs
        return walk.emit(ew.multiply, x, x)
    if equation.primitive is not ew.power:
        return None
    x, y = equation.inputs
    exponent = walk.number(y)
    if x.spec != equation.outputs[0].spec or x.spec.dtype.kind not in "iuf":
        return None
    if _is(exponent, 2):
        return walk.emit(ew.multiply, x, x)
    if _is(exponent, 3):
        return walk.emit(ew.multiply, walk.emit(ew.multiply, x, x), x)
    return None


def _one_factor(walk: Rewriter, equation: Equation) -> Variable | None:
    """a * (b * x) as (a * b) * x for numbers a and b, both small or both large. The last digit may differ.

    Both numbers have to be small or large: of a small and a large one, b * x may be infinite or zero where
    the result is neither.
    """
    if equation.primitive is not ew.multiply:
        return None
    for outer, inner in (equation.inputs, equation.inputs[::-1]):
        product = walk.made_by(inner, ew.multiply)
        a = walk.number(outer)
        if a is None or product is None or not outer.spec.weak:
            continue
        for factor, x in (product.inputs, product.inputs[::-1]):
            b = walk.number(factor)
            if b is not None and factor.spec.weak and x.spec == equation.outputs[0].spec:
                merged = _merged(a, b, x.spec.dtype)
                if merged is not None:
                    return walk.emit(ew.multiply, walk.constant(merged), x)
    return None


def _merged(a: Any, b: Any, dtype: np.dtype[Any]) -> Any:
    """a * b, if one product with it gives the same digits as two."""
    if dtype.kind != "f" or isinstance(a, complex) or isinstance(b, complex):
        return None
    sizes, limits = (abs(a), abs(b)), np.finfo(dtype)
    merged = a * b
    same_way = max(sizes) <= 1 or min(sizes) >= 1
    if not any(math.isfinite(s) and math.frexp(s)[0] == 0.5 for s in sizes):
        return (
            None  # sin(9 * x) is far from sin(3 * (3 * x)) for a large x, whose last digit counts
        )
    return merged if same_way and limits.tiny <= abs(merged) <= limits.max else None


def _cheaper_order(walk: Rewriter, equation: Equation) -> Variable | None:
    """(A @ B) @ C as A @ (B @ C), or the reverse, where that is less work. The last digits may differ."""
    if equation.primitive is not matmul:
        return None
    x, y = equation.inputs
    left, right = walk.made_by(x, matmul), walk.made_by(y, matmul)
    if left is not None and walk.uses[x] == 1:
        a, b, c = (*left.inputs, y)
        if _work_left_minus_right(a, b, c) > 0:
            return walk.emit(matmul, a, walk.emit(matmul, b, c))
    if right is not None and walk.uses[y] == 1:
        a, b, c = (x, *right.inputs)
        if _work_left_minus_right(a, b, c) < 0:
            return walk.emit(matmul, walk.emit(matmul, a, b), c)
    return None


def _work_left_minus_right(a: Variable, b: Variable, c: Variable) -> int:
    """How many more multiplications (a b) c takes than a (b c); 0 if these are not matrices."""
    if b.spec.ndim != 2 or a.spec.ndim not in (1, 2) or c.spec.ndim not in (1, 2):
        return 0
    p = a.spec.shape[0] if a.spec.ndim == 2 else 1
    q, r = b.spec.shape
    s = c.spec.shape[1] if c.spec.ndim == 2 else 1
    return (p * q * r + p * r * s) - (q * r * s + p * q * s)


# The rules of these passes, with their levels; `optimize` runs all in one walk.
RULES: list[tuple[int, Rule]] = [
    (1, _folded),
    (1, _unspread),
    (1, _simpler),
    (1, _fewer_moves),
    (2, _product),
    (2, _one_factor),
    (2, _cheaper_order),
]
