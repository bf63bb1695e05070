"""Random programs of reads, views, copies and changes in place, as source code.

A program is written one statement at a time, and each statement is run on plain arrays at once. So the
writer knows which names are alive, which of them NumPy lets one write to, and which values fit.
"""

import math
from random import Random

import numpy as np
from hypothesis import strategies as st

CONSTANTS = ["0.5", "-1.25", "2.0"]
NAMES = "abcdefghijklmnopqrstuvw"
LARGEST = 24


class Program:
    """A function of one array that returns all live arrays, as they were after every statement."""

    def __init__(self, shape, statements):
        self.shape = shape
        body = ["a = x.copy()"]
        alive = ["a"]
        for name, statement in statements:
            body.append(statement)
            if name not in alive:
                alive.append(name)
            body.append(f"seen += [{', '.join(f'{name}.copy()' for name in alive)}]")
        lines = ["def program(x):", "    seen = []", *(f"    {line}" for line in body)]
        self.source = "\n".join([*lines, "    return seen"])
        scope = {"np": np}
        exec(self.source, scope)  # this is how the program, as it is printed, gets to run
        self.run = scope["program"]

    def __repr__(self):
        lines = [line for line in self.source.splitlines() if "seen" not in line]
        return "\n".join(["", f"# x has shape {self.shape}", *lines, ""])


class Writer:
    """Writes statements; `scope` has the live arrays, for the argument `x`."""

    def __init__(self, random, x, keep_order=False, scalars=False):
        self.random = random
        self.smallest = 0 if scalars else 1  # axes of what is read and changed
        self.keep_order = keep_order
        self.x = x
        self.scope = {"np": np, "x": x, "a": x.copy()}
        self.statements = []

    def pick(self, options):
        return self.random.choice(list(options))

    def value(self, expression):
        return eval(expression, dict(self.scope))

    def names(self, condition=lambda value: True):
        return [n for n in NAMES if n in self.scope and condition(self.scope[n])]

    def new_name(self):
        return next(n for n in NAMES if n not in self.scope)

    def write(self, statement, name):
        exec(statement, self.scope)
        self.statements.append((name, statement))

    # Expressions.

    def index(self, shape):
        """A basic index that selects something."""
        parts = []
        for length in shape:
            stop = self.pick([None, length - 1, length])
            ways = [slice(None), slice(None, None, -1), slice(None, None, 2), slice(1, stop)]
            ways += [slice(None, -1), slice(None, None, -2)]
            ways = [way for way in ways if len(range(length)[way]) > 0]
            parts.append(self.pick([*ways, self.pick(range(-length, length))]))
        kept = self.pick(range(min(1, len(parts)), len(parts) + 1))
        parts = parts[:kept]
        if self.pick([False, False, True]):
            parts.insert(self.pick(range(len(parts) + 1)), None)
        if self.pick([False, False, True]):
            parts.append(...)
        return ", ".join(map(_written, parts)) if parts else "..."

    def operand(self, shape):
        """An expression that broadcasts to `shape`; it may well overlap with what it is assigned to."""
        fitting = self.names(lambda value: _fits(np.shape(value), shape))
        if not fitting or self.pick([False] * 4 + [True]):
            return self.pick(CONSTANTS)
        name = self.pick(fitting)
        forms = ["{}", "np.sin({})", "0.5 * {}"]
        if np.ndim(self.scope[name]):
            forms += ["{}[::-1]", "{}[:1]"]
        if np.ndim(self.scope[name]) == 2 and _fits(np.shape(self.scope[name].T), shape):
            forms += ["{}.T"]
        return self.pick(forms).format(name)

    def view(self, name):
        """Expressions that may be views: for a reshaped array this depends on its memory layout."""
        shape, size = np.shape(self.scope[name]), np.size(self.scope[name])
        parts = [f"{name}[{self.index(shape)}]" for _ in range(2)]
        moved = [f"{name}.T", f"np.flip({name})", f"{name}[None]", f"np.squeeze({name})"]
        joined = [f"{name}.ravel()", f"{name}.reshape(-1)", f"{name}.reshape(1, -1)"]
        joined += [f"{name}.reshape({k}, -1)" for k in (2, 3) if size % k == 0]
        read_only = [f"np.broadcast_to({name}, {(2, *shape)})"]
        if shape:
            k = self.pick(range(shape[0]))
            parts.append(f"list({name})[{k}]")
            parts += [f"np.split({name}, [{k}])[{j}]" for j in (0, 1) if k > 0]
            moved.append(f"np.expand_dims({name}, -1)")
        if len(shape) >= 2:
            moved += [f"np.swapaxes({name}, 0, -1)", f"np.moveaxis({name}, 0, -1)"]
            read_only.append(f"np.diagonal({name})")
        return self.pick(self.pick([parts] * 3 + [moved] * 3 + [joined] * 3 + [read_only]))

    def copy(self, name):
        shape = np.shape(self.scope[name])
        plain = [f"{name}.copy()", f"{name}.flatten()", f"np.zeros({shape}, x.dtype, like=x)"]
        if shape:
            # NumPy says nothing of the order in memory of what an index array selects.
            plain.append(f"{name}[[0, -1, 0]].copy()")
        keeping = [f"np.copy({name})", f"np.zeros_like({name})", f"np.full_like({name}, 0.25)"]
        other = self.pick(self.names())
        if _fits(np.shape(self.scope[other]), shape):
            keeping += [f"np.sin({name} * {other})", f"({name} + {other})", f"(1.0 * {name})"]
        # Results keep the order in memory of their operands, and it decides what is a view of them.
        if not self.keep_order:
            keeping = [f"{expression}.copy()" for expression in keeping]
        return self.pick(plain + keeping)

    # Statements.

    def read(self):
        names = self.names(lambda value: np.ndim(value) >= self.smallest)
        name = self.pick([self.pick(names), names[-1]])  # views of views of views
        expression = self.view(name) if self.pick([True, True, True, False]) else self.copy(name)
        if np.size(self.value(expression)) <= LARGEST:
            new = self.new_name()
            self.write(f"{new} = {expression}", new)

    def alias(self):
        new = self.new_name()
        self.write(f"{new} = {self.pick(self.names())}", new)

    def assign(self, name):
        shape = np.shape(self.scope[name])
        index = self.index(shape)
        selected = np.shape(self.value(f"{name}[{index}]"))
        options = [f"{name}[{index}] = {self.operand(selected)}"]
        options.append(f"{name}[{name} > 0.1] = {self.pick(CONSTANTS)}")
        if shape:
            positions = [0, -1] if self.pick([True, False]) else [shape[0] - 1]
            values = self.operand((len(positions), *shape[1:]))
            options.append(f"{name}[{positions}] = {values}")
            options.append(f"{name}[{positions}] += {values}")
            # A position that depends on the values, and differs between the lanes of a batch.
            position = f"np.argmax({self.pick(self.names())}) % {shape[0]}"
            options.append(f"{name}[{position}] = {self.operand(shape[1:])}")
            options.append(f"{name}[{position}] += {self.operand(shape[1:])}")
            mask = [k % 2 == 0 for k in range(shape[0])]
            options.append(f"{name}[{mask}] *= {self.pick(CONSTANTS)}")
        self.write(self.pick(options), name)

    def augment(self, name):
        index = self.index(np.shape(self.scope[name]))
        target = self.pick([name, f"{name}[{index}]"])
        operand = self.operand(np.shape(self.value(target)))
        change = self.pick(["+= {}", "-= {}", "*= np.cos({})", "/= 2.0 + np.sin({})", "*= 1.5"])
        self.write(f"{target} {change.format(operand)}", name)

    def out(self, name):
        target = self.pick([name, f"{name}[{self.index(np.shape(self.scope[name]))}]"])
        if isinstance(self.value(target), np.ndarray):
            shape = np.shape(self.value(target))
            left, right = self.operand(shape), self.operand(shape)
            where = ""
            if target == name and self.pick([False, True]):
                # An operand of the target's own dtype: by complex steps that is complex, and NumPy
                # would cast the entries that are left alone to a real dtype and back.
                left, where = name, f", where={name} > 0"
            function = self.pick(["np.add", "np.subtract"])
            self.write(f"{function}({left}, {right}, out={target}{where})", name)

    def call(self, name):
        shape = np.shape(self.scope[name])
        fresh = f"np.sin({self.operand(shape)})"  # these functions say nothing of overlap
        options = [
            f"np.copyto({name}, {self.operand(shape)}, where={name} > 0.1)",
            f"np.copyto({name}, {self.operand(shape)})",
            f"np.putmask({name}, {name} < 0.1, {fresh})",
            f"{name}.fill({self.pick(CONSTANTS)})",
            f"np.put({name}, [0, -1], {fresh})",
        ]
        if shape:
            part = f"np.sin({self.operand((3, *shape[1:]))})"
            options += [f"{name}.sort()", f"{name}.sort(axis=0)"]
            options.append(f"np.add.at({name}, [0, -1, 0], {part})")
        if len(shape) == 2:
            options.append(f"np.fill_diagonal({name}, {self.pick(CONSTANTS)})")
        self.write(self.pick(options), name)

    def statement(self):
        # Some views first, so that there is something to see when one of them changes.
        reads = 6 if len(self.names()) > 4 else 24
        changes = [self.assign, self.augment] * 2 + [self.out, self.call]
        kind = self.pick([self.read] * reads + [self.alias] + changes)
        if kind in (self.read, self.alias):
            return kind()
        writable = self.names(lambda v: isinstance(v, np.generic) or v.flags.writeable)
        arrays = [n for n in writable if isinstance(self.scope[n], np.ndarray)]
        arrays = [n for n in arrays if np.ndim(self.scope[n]) >= self.smallest]
        # An operator changes an array without axes, and binds the name of a scalar anew.
        without_axes = [n for n in writable if np.ndim(self.scope[n]) == 0]
        if without_axes and self.pick([False] * 5 + [True]):
            name = self.pick(without_axes)
            return self.write(f"{name} += {self.pick(CONSTANTS)}", name)
        kind(self.pick(arrays))


def _written(part):
    if part is None or isinstance(part, int):
        return repr(part)
    if part is ...:
        return "..."
    bounds = ["" if bound is None else str(bound) for bound in (part.start, part.stop, part.step)]
    return ":".join(bounds[:2] if part.step is None else bounds)


def _fits(shape, target):
    """Whether a value of this shape broadcasts to the target, without additional leading axes."""
    try:
        return len(shape) <= len(target) and np.broadcast_shapes(shape, target) == target
    except ValueError:
        return False


def example_values(shape):
    """Numbers of both signs, none of them close to another."""
    count = math.prod(shape)
    values = np.linspace(-1.1, 1.3, count) + 0.017 * np.cos(np.arange(count))
    return values[np.random.default_rng(count).permutation(count)].reshape(shape)


SHAPES = [(2, 3), (3, 3), (6,), (2, 1, 3), (2, 2, 2)]


def program_of(seed, length, **options):
    """The program of a seed: some statements on an array with one to three axes."""
    random = Random(seed)
    shape = random.choice(SHAPES)
    writer = Writer(random, example_values(shape), **options)
    while len(writer.statements) < length:
        writer.statement()
    return Program(shape, writer.statements)


@st.composite
def programs(draw, **options):
    """Programs of up to twelve statements. One that fails shrinks to its first statements.

    With `keep_order`, some arrays are in Fortran order. With `scalars`, arrays are made of scalars, and
    arrays without axes are changed in all ways.
    """
    length = min(12, draw(st.integers(1, 24)))  # most of them long
    return program_of(draw(st.integers(0, 2**32 - 1)), length, **options)
