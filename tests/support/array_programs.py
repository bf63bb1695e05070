"""Random programs of whole-array operations, as source code: what a compiler fuses, views and reuses.

A program is a list of assignments. Each is run on plain arrays as it is written, so the writer knows
all shapes and dtypes, and keeps to values that stay of ordinary size.
"""

import math
from random import Random

import numpy as np

LENGTHS = [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 65]
LARGEST = 20_000
UNARY = ["np.sin({})", "np.tanh({})", "-{}", "np.abs({})", "{} * {}", "np.exp(-np.abs({}))"]
UNARY += ["np.sqrt(np.abs({}))", "np.floor({})", "np.arctan({})", "({} + 0.5)", "(2 * {})"]
UNARY += ["np.maximum({}, 0)", "np.clip({}, -1, 1)", "np.log1p({} * {})", "np.sign({})"]
BINARY = ["({} + {})", "({} - {})", "({} * {})", "np.maximum({}, {})", "np.minimum({}, {})"]
BINARY += ["({} / (2 + np.abs({})))", "np.where({} > 0.1, {}, 0.25)", "np.hypot({}, {})"]
BINARY += ["np.where({0} < {1}, {0}, {1} * 0.5)", "(({} > {}) * 1.5)", "np.arctan2({}, {})"]
REDUCTIONS = ["sum", "mean", "max", "min", "prod"]


class ArrayProgram:
    """A function of some arrays that returns some of the values it computes."""

    def __init__(self, seed, dtypes=(np.float64,), statements=12):
        self.random = Random(seed)
        self.statements = []
        self.results = []
        rank = self.random.choice([0, 1, 1, 2, 2, 2, 3, 3])
        shape = self._shape(rank)
        rng = np.random.default_rng(seed)
        self.arguments = []
        for k in range(self.random.choice([1, 2, 3])):
            own = shape if not k else tuple(self.random.choice([n, n, 1]) for n in shape)
            own = own[self.random.choice([0, 0, 0, len(own) // 2]) :]
            dtype = self.random.choice(list(dtypes))
            self.arguments.append(np.asarray(rng.uniform(-2, 2, own)).astype(dtype))
        self.scope = {"np": np} | {f"x{k}": x for k, x in enumerate(self.arguments)}
        for _ in range(statements):
            self._statement()
        self._finish()

    def _shape(self, rank):
        while math.prod(shape := tuple(self.random.choice(LENGTHS) for _ in range(rank))) > 4000:
            pass
        return shape

    def _finish(self):
        made = [name for name, _ in self.statements] or ["x0"]
        count = self.random.choice([1, 1, 2, 4])
        self.results = sorted({made[-1], *self.random.choices(made, k=count)})
        names = ", ".join(f"x{k}" for k in range(len(self.arguments)))
        lines = [f"def program({names}):"]
        lines += [f"    {name} = {expression}" for name, expression in self.statements]
        lines += [f"    return ({', '.join(self.results)},)"]
        self.source = "\n".join(lines)
        scope = {"np": np}
        exec(self.source, scope)  # this is how the program, as it is printed, gets to run
        self.run = scope["program"]

    def __repr__(self):
        shapes = ", ".join(f"{x.dtype}{x.shape}" for x in self.arguments)
        return f"\n# {shapes}\n{self.source}\n"

    # Writing.

    def _names(self):
        return [name for name in self.scope if name != "np"]

    def _pick(self):
        names = self._names()
        return self.random.choice([*names, *names[-3:]])

    def _statement(self):
        writer = self.random.choice(
            [self._unary] * 2 + [self._binary] * 4 + [self._view] * 3 + [self._reduction] * 3
            + [self._joined, self._assigned, self._product]
        )  # fmt: skip
        expression = writer()
        if expression is None:
            return
        try:
            with np.errstate(all="ignore"):
                value = eval(expression, dict(self.scope))
        except TypeError:  # NumPy does not compute this with bools
            return
        finite = np.all(np.isfinite(value)) and np.all(np.abs(value) < 1e4)
        if np.size(value) > LARGEST or not np.size(value) or not finite:
            return
        name = f"v{len(self.statements)}"
        self.scope[name] = value
        self.statements.append((name, expression))

    def _unary(self):
        return self.random.choice(UNARY).replace("{}", self._pick())

    def _binary(self):
        first = self._pick()
        shape = np.shape(self.scope[first])

        def fits(name):
            try:
                return math.prod(np.broadcast_shapes(shape, np.shape(self.scope[name]))) <= LARGEST
            except ValueError:
                return False

        return self.random.choice(BINARY).format(
            first, self.random.choice([n for n in self._names() if fits(n)])
        )

    def _view(self):
        name = self._pick()
        shape = np.shape(self.scope[name])
        if not shape:
            return f"np.broadcast_to({name}, (3, 5))"
        k, axes = self.random.randrange(len(shape)), len(shape)
        spread = (self.random.choice([1, 2, 3]), *shape)
        index = ["::-1", "::2", "1:", ":-1", ":1", "0", "-1", "None, :", "..., None", "3:0:-1"]
        ways = [f"{name}[{':, ' * k}{self.random.choice(index)}]" for _ in range(4)]
        ways += [f"{name}.reshape(-1)", f"{name}.T", f"np.broadcast_to({name}, {spread})"]
        ways += [f"np.transpose({name}, {self.random.sample(range(axes), axes)})"]
        divisors = [n for n in (2, 3, 4, 5) if math.prod(shape) % n == 0]
        if divisors:
            ways.append(f"{name}.reshape({self.random.choice(divisors)}, -1)")
            ways.append(f"{name}.reshape(-1, {self.random.choice(divisors)})")
        return self.random.choice(ways)

    def _reduction(self):
        name = self._pick()
        axes = np.ndim(self.scope[name])
        chosen = self.random.sample(range(axes), self.random.randint(0, axes))
        axis = tuple(chosen) if chosen else None
        keep = self.random.choice([True, False])
        function = self.random.choice(REDUCTIONS)
        argument = f"np.sin({name}) + 1.0" if function == "prod" else name
        return f"np.{function}({argument}, axis={axis}, keepdims={keep})"

    def _joined(self):
        name = self._pick()
        shape = np.shape(self.scope[name])
        same = [n for n in self._names() if np.shape(self.scope[n]) == shape]
        parts = self.random.choices(same, k=self.random.choice([2, 3]))
        if not shape:
            return f"np.stack([{', '.join(parts)}])"
        axis = self.random.randrange(len(shape))
        form = self.random.choice(["np.concatenate([{}], axis={})", "np.stack([{}], axis={})"])
        return form.format(", ".join(parts), axis)

    def _assigned(self):
        name = self._pick()
        shape = np.shape(self.scope[name])
        if not shape:
            return None
        width = self.random.randint(0, shape[0])
        return f"np.pad({name}, [({width}, 1)] + [(0, 2)] * {len(shape) - 1})"

    def _product(self):
        name = self._pick()
        left = self.scope[name]
        if not np.ndim(left) or not np.issubdtype(left.dtype, np.floating):
            return None
        fitting = [
            n
            for n in self._names()
            if np.ndim(self.scope[n]) in (1, 2) and np.shape(self.scope[n])[0] == left.shape[-1]
        ]
        if fitting and self.random.choice([True, False]):
            return f"{name} @ {self.random.choice(fitting)}"
        return f"{name}.T @ {name}" if left.ndim == 2 else None
