"""Long sums in blocks, so that their error does not grow with the number of terms.

A sum along the innermost loop of a kernel is compensated (see loops.py). Along other loops, the kernel adds
rows in memory. There, every block of iterations has its own partial sums, and a second, much smaller kernel
adds these up. Blocks are independent, so several threads can share them. In the same way, a matrix product
whose result is small, but whose sums are long, becomes a stack of shorter products.
"""

from __future__ import annotations

from math import prod
from typing import Any

from functrans.compiler.native.engine import vector_bytes
from functrans.compiler.native.kinds import FLOAT32, FLOAT64
from functrans.compiler.native.loops import KernelWriter
from functrans.compiler.native.plan import Item, Kernel, Places, Plan, PlannedValue
from functrans.compiler.native.products import Product
from functrans.compiler.native.strides import Buffer, BufferView
from functrans.core.shapes import ArraySpec
from functrans.core.summation import FEW
from functrans.graph.graph import Equation, Variable
from functrans.ops import reduction
from functrans.ops.long_products import LONG_BLOCK, is_long

_ROUNDS = 64  # of a block


def in_blocks(plan: Plan) -> Plan:
    """Split the long sums of a plan into blocks."""
    remaining: list[Any] = list(reversed(plan.steps))
    plan.steps = []
    while remaining:
        step = remaining.pop()
        if isinstance(step, Kernel):
            plan.steps.append(step)
            remaining += reversed(_divide(plan, step))
        elif not isinstance(step, Product):
            plan.steps.append(step)
        else:
            *products, kernels = _divide_product(plan, step)
            plan.steps += products
            remaining += reversed(kernels)
    return plan


def _divide(plan: Plan, kernel: Kernel) -> list[Kernel]:
    """Give the long sums of a kernel memory for their blocks; returns the kernels that add up the blocks."""
    loops = KernelWriter(kernel, plan.values, vector_bytes())
    lengths = [loop.length for loop in loops.loops]
    shares: dict[int, list[int]] = {}  # iterations of each loop that share a partial sum
    for k in range(len(kernel.items)):
        slow = loops.loops_in_memory(k)
        if prod(lengths[j] for j in slow) > FEW:
            shares[k] = _shares(lengths, slow)
    # All sums of a kernel divide a loop in the same way.
    for j, length in enumerate(lengths):
        divided = [share[j] for share in shares.values() if 1 < share[j] < length]
        for share in shares.values():
            if 1 < share[j] < length:
                share[j] = min(divided)
        if divided:
            kernel.rounds[j] = min(divided)
    return [step for k in shares for step in _add_blocks(plan, kernel, k, lengths, shares[k])]


def _shares(lengths: list[int], slow: list[int]) -> list[int]:
    """How many iterations of each loop form a block, so that a block is short."""
    shares, budget = list(lengths), _ROUNDS
    for j in reversed(slow):
        shares[j] = min(lengths[j], budget)
        budget = max(budget // shares[j], 1)
    return shares


def _add_blocks(
    plan: Plan, kernel: Kernel, k: int, lengths: list[int], shares: list[int]
) -> list[Kernel]:
    """Redirect an item to the memory of its blocks, and make the kernels that add them up."""
    item = kernel.items[k]
    assert item.view is not None
    out = item.view.buffer
    counts = [-(-n // share) for n, share in zip(lengths, shares, strict=True)]
    count, size = prod(counts), out.size
    places = Buffer("work", -1, out.kind, count * size)
    strides = [size * prod(counts[j + 1 :]) for j in range(len(counts))]
    kernel.places[k] = Places(tuple(shares), tuple(strides))
    kernel.items[k] = item._replace(view=item.view._replace(buffer=places))
    return _add_rows(plan, places, out)


def _divide_product(plan: Plan, product: Product) -> list[Any]:
    """Products for parts of a long sum of products, and the kernels that add up their results."""
    a, b, c = product
    rows, inner, columns = a.shape[-2], a.shape[-1], b.shape[-1]
    stacked = len(a.shape) > 2 and prod(a.shape[:-2]) > 1
    if c.buffer.kind is not FLOAT32 or stacked or not is_long(rows, inner, columns):
        return [product, []]
    count = inner // LONG_BLOCK
    whole = count * LONG_BLOCK
    size, (down, along), (over, across) = c.buffer.size, a.strides[-2:], b.strides[-2:]
    parts = Buffer("work", -1, FLOAT32, -(-inner // LONG_BLOCK) * size)
    products = [
        Product(
            BufferView(
                a.buffer, (count, rows, LONG_BLOCK), (LONG_BLOCK * along, down, along), a.offset
            ),
            BufferView(
                b.buffer, (count, LONG_BLOCK, columns), (LONG_BLOCK * over, over, across), b.offset
            ),
            BufferView(parts, (count, rows, columns), (size, *c.strides[-2:])),
        )
    ]
    if whole < inner:
        products.append(
            Product(
                BufferView(
                    a.buffer, (rows, inner - whole), (down, along), a.offset + whole * along
                ),
                BufferView(
                    b.buffer, (inner - whole, columns), (over, across), b.offset + whole * over
                ),
                BufferView(parts, (rows, columns), c.strides[-2:], count * size),
            )
        )
    return [*products, _add_rows(plan, parts, c.buffer)]


def _add_rows(plan: Plan, rows: Buffer, out: Buffer) -> list[Kernel]:
    """The kernels that add up the rows of a buffer; each row has the size of `out`."""
    size, count = out.size, rows.size // out.size
    if out.kind is not FLOAT32:
        return [_adding(_variable(plan, rows, (count, size)), rows, out, count)]
    # In float64, adding one row after the other is accurate enough.
    total = Buffer("work", -1, FLOAT64, size)
    rounded = Kernel((size,))
    sums = _variable(plan, total, (size,))
    rounded.loads[sums] = BufferView(total, (size,), (1,))
    rounded.add(Item("store", None, sums, BufferView(out, (size,), (1,))))
    return [_adding(_variable(plan, rows, (count, size)), rows, total, count), rounded]


def _variable(plan: Plan, buffer: Buffer, shape: tuple[int, ...]) -> Variable:
    """A variable for all elements of a buffer."""
    variable = Variable(ArraySpec(shape, buffer.kind.dtype))
    strides = (shape[1], 1) if len(shape) == 2 else (1,)
    plan.values[variable] = PlannedValue(-1, view=BufferView(buffer, shape, strides))
    return variable


def _adding(blocks: Variable, places: Buffer, total: Buffer, count: int) -> Kernel:
    """The kernel that adds up all rows."""
    shape, size = blocks.spec.shape, total.size
    kernel = Kernel(shape)
    kernel.loads[blocks] = BufferView(places, shape, (size, 1))
    out = Variable(ArraySpec((size,), total.kind.dtype))
    params: dict[str, Any] = {"axis": (0,), "keepdims": False}
    equation = Equation(reduction.sum, (blocks,), params, (out,))
    kernel.add(Item("reduce", equation, out, BufferView(total, shape, (0, 1))))
    return kernel
