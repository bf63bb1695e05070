"""Probes of the keys of compiled code: `jit` called again, with one visible thing changed.

Everything that a function can see while it is traced is part of the key: axis sizes, the order of
dictionaries, types and bits of static values, metadata, dtypes, kinds of Python numbers. So every call must
give the result of the function without `jit`. Values that a function closes over are documented as not
part of the key.
"""

from __future__ import annotations

from tools.fuzz.probes.probe import Probe, indented, probe
from tools.fuzz.programs.choosing import Chooser

# Values that are equal, or have the same hash, or nearly so, but that a function can tell apart.
_STATIC = [
    ["0.0", "-0.0", "0", "False", "np.float64(0.0)", "np.float64(-0.0)", "0j", "np.int64(0)"],
    ["1", "1.0", "True", "np.float64(1)", "np.float32(1)", "np.int64(1)", "1 + 0j", "np.True_"],
    ["(1,)", "(1.0,)", "(True,)", "((1,),)", "[1]"],
    ["(0.0, 1)", "(-0.0, 1)", "(0, 1)", "(0.0, 1.0)", "(0.0, True)"],
    ["frozenset([1])", "frozenset([1.0])", "frozenset([True])"],
    ["frozenset([0.0])", "frozenset([-0.0])", "frozenset([0])"],
    ["range(0, 3, 2)", "range(0, 4, 2)", "range(0)", "range(1, 1)", "range(2, 1, 3)"],
    ["float('nan')", "-float('nan')", "np.float64('nan')", "np.nan"],
    ["'a'", "b'a'", "'A'", "('a',)"],
    ["None", "0", "()", "''"],
    ["Fraction(1)", "Decimal(1)", "1", "Decimal('1.0')"],
    ["Plain.ONE", "Whole.ONE", "1", "Other.ONE"],
    ["slice(0, 1)", "slice(0.0, 1)", "slice(0, True)", "slice(False, 1)"],
    ["np.dtype(float)", "np.float64", "float", "np.dtype('>f8')"],
    ["Point(1, 2)", "Point(1.0, 2)", "Pair(1, 2)", "(1, 2)", "Turned(1, 2)"],
    ["Frozen(0.0)", "Frozen(-0.0)", "Frozen(0)", "Frozen(False)"],
    ["Frozen((1, 2))", "Frozen((1.0, 2))", "Frozen(frozenset([1]))", "Frozen(frozenset([1.0]))"],
    ["partial(pow, 2)", "partial(pow, 2.0)", "partial(pow, True)"],
    ["2**53", "float(2**53)", "2**53 + 1"],
    ["Text('a')", "'a'", "Text('b')"],
    ["MappingProxyType({'a': 1})", "MappingProxyType({'a': 1.0})"],
]
# Arguments with the same leaves, or nearly so, in containers that a function can tell apart.
_CONTAINERS = [
    ["{'a': x, 'b': y}", "{'b': y, 'a': x}", "{'b': x, 'a': y}", "{'a': x, 'c': y}"],
    ["{1: x, 2: y}", "{2: y, 1: x}", "{1.0: x, 2: y}", "{True: x, 2: y}"],
    ["{'a': {'c': x, 'd': y}}", "{'a': {'d': y, 'c': x}}"],
    ["(x, y)", "[x, y]", "Point(x, y)", "Pair(x, y)", "Turned(x, y)", "Long(x, y)"],
    ["OrderedDict(a=x, b=y)", "OrderedDict(b=y, a=x)", "{'a': x, 'b': y}"],
    ["defaultdict(list, a=x, b=y)", "defaultdict(int, a=x, b=y)", "defaultdict(list, b=y, a=x)"],
    ["(x, None, y)", "(None, x, y)", "(x, y, None)", "(x, y)"],
    ["(x, (), y)", "(x, [], y)", "((), x, y)", "(x, {}, y)"],
    ["Model(x, y, 1)", "Model(x, y, 1.0)", "Model(x, y, True)", "Model(x, y, 2)"],
    ["Model(x, y, 0.0)", "Model(x, y, -0.0)", "Model(x, y, 0)"],
    ["Model(x, y, [1])", "Model(x, y, [1.0])", "Model(x, y, [1, 2])", "Model(x, y, (1,))"],
    ["Model(x, y, np.arange(2))", "Model(x, y, np.arange(3))", "Model(x, y, np.arange(2.0))"],
    ["Model(x, y, np.zeros(2))", "Model(x, y, -np.zeros(2))", "Model(x, y, np.ones(2))"],
    ["Model(x, y, {'k': 1})", "Model(x, y, {'k': 1.0})", "Model(x, y, {'k': [1]})"],
    ["Model(x, y, {'k': 1, 'j': 2})", "Model(x, y, {'j': 2, 'k': 1})"],
    ["Model(x, y, {1})", "Model(x, y, {1.0})", "Model(x, y, {2})"],
    ["Model(x, y, None)", "Model(x, y, 'a')", "Model(x, y, b'a')", "Kin(x, y, None)"],
    ["Model(x, y, (0.0,))", "Model(x, y, (-0.0,))", "Model(x, y, (0,))"],
    ["Model(x, y, float('nan'))", "Model(x, y, np.nan)"],
    ["deque([x, y])", "deque([x, y], maxlen=2)", "deque([x, y], maxlen=5)"],
]
_DEFINITIONS = {
    "Point Pair Turned Long": "from collections import namedtuple",
    "OrderedDict": "from collections import OrderedDict",
    "defaultdict": "from collections import defaultdict",
    "deque": "from collections import deque",
    "Frozen Model Kin": "from dataclasses import dataclass",
    "Decimal": "from decimal import Decimal",
    "Enum Plain Other": "from enum import Enum",
    "IntEnum Whole": "from enum import IntEnum",
    "Fraction": "from fractions import Fraction",
    "partial": "from functools import partial",
    "MappingProxyType": "from types import MappingProxyType",
    "Point": 'Point = namedtuple("Point", "x y")',
    "Pair": 'Pair = namedtuple("Pair", "x y")',
    "Turned": 'Turned = namedtuple("Point", "y x")',
    "Long": 'Long = namedtuple("Point", "xx yy")',
    "Text": """
class Text(str):
    def __repr__(self):
        return f"Text({str(self)!r})"
""",
    "Plain": """
class Plain(Enum):
    ONE = 1
""",
    "Other": """
class Other(Enum):
    ONE = 1
""",
    "Whole": """
class Whole(IntEnum):
    ONE = 1
""",
    "Frozen": """
@dataclass(frozen=True)
class Frozen:
    value: object
""",
    "Model": """
@dataclass
class Model:
    x: object
    y: object
    meta: object


ft.tree.register_dataclass(Model, meta_fields=("meta",))
""",
    "Kin": """
@dataclass
class Kin:
    x: object
    y: object
    meta: object


ft.tree.register_dataclass(Kin, meta_fields=("meta",))
""",
    # A function sees a static value through its text, which tells types and bits apart.
    "look": """
def look(value):
    return float(sum(k * ord(c) for k, c in enumerate(repr(value), 1)) % 17)
""",
    # The leaves in the order in which a function sees them, and everything else that it can see.
    "parts": """
def parts(tree):
    if isinstance(tree, dict):
        return [part for key in tree for part in parts(tree[key])]
    if hasattr(tree, "meta"):
        return [tree.x, tree.y]
    if not hasattr(tree, "dtype") and hasattr(tree, "__iter__"):
        return [part for child in tree for part in parts(child)]
    return [] if tree is None else [tree]
""",
    "outline": """
def outline(tree):
    name = type(tree).__name__
    if isinstance(tree, dict):
        children = [(key, outline(tree[key])) for key in tree]
        return f"{name} {getattr(tree, 'default_factory', None)} {children}"
    if hasattr(tree, "meta"):
        return f"{name} {tree.meta!r}"
    if not hasattr(tree, "dtype") and hasattr(tree, "__iter__"):
        children = [outline(child) for child in tree]
        return f"{name} {getattr(tree, '_fields', getattr(tree, 'maxlen', None))} {children}"
    return "None" if tree is None else "leaf"
""",
    "of_tree": """
def of_tree(tree):
    weighted = sum(k * part for k, part in enumerate(parts(tree), 1))
    return weighted * (1 + look(outline(tree)))
""",
}

# Equal numbers of different kinds.
_NUMBERS = [
    ["1", "1.0", "True", "1 + 0j", "np.float64(1)", "np.float32(1)", "np.int64(1)", "np.int8(1)"],
    ["2", "2.0", "np.array(2)", "np.array(2.0)", "np.array(2.0, np.float32)", "np.float16(2)"],
    ["np.arange(3)", "np.arange(3.0)", "np.arange(3, dtype=np.float32)", "np.arange(3) > 0"],
    ["np.arange(3.0)", "np.arange(4.0)", "np.arange(3.0)[None]", "np.arange(3.0)[:, None]"],
    ["np.ones((2, 3))", "np.ones((3, 2))", "np.ones(6)", "np.ones((2, 3), complex)"],
    ["np.uint8(200)", "np.int16(200)", "200", "200.0", "np.uint8(3)"],
    ["np.zeros(0)", "np.zeros((0, 2))", "np.zeros(1)", "np.zeros(0, int)"],
    ["-1", "-1.0", "np.int8(-1)", "-1 + 0j", "np.float32(-1)"],
    ["np.ones(2, '>f8')", "np.ones(2)", "np.ones(2, '<f4')", "np.ones(2, '>i4')"],
    ["2**53", "2**53 + 1", "2**62", "float(2**53)", "np.int64(2**62)"],
    ["np.asfortranarray(np.ones((2, 3)))", "np.ones((2, 3))", "np.ones((3, 2)).T"],
]
_FUNCTIONS_OF_NUMBERS = [
    "x + x",
    "x / 3",
    "x * 100",
    "x * 2.5",
    "x ** 2",
    "np.sum(x)",
    "x + np.float32(0.1)",
    "x + True",
    "np.sqrt(abs(x))",
    "np.multiply(x, x)",
    "-x if np.ndim(x) else x",
    "np.asarray(np.shape(x)) * 1.0",
    "x * (1.0 if np.ndim(x) else 2)",
    "np.mean(x)",
    "np.stack([x, x])",
    "np.where(x > 0, x, 0.5)",
    "np.zeros_like(x)",
    "np.result_type(x).itemsize * 1.0",
    "2.0 * x if isinstance(x, float) else 3.0 * x",
    "x * (1 + isinstance(x, int))",
    "x if np.isscalar(x) else 4.0 * x",
    "x * (5 if isinstance(x, np.ndarray) else 7)",
    "x * (2 if hasattr(x, 'dtype') else 3)",
    "x * (2 if isinstance(x, np.generic) else 3)",
    "x + 1",
    "x // 2",
]

# Functions of a lane that see the number of lanes.
_OF_LANES = [
    "ft.pmean(x, 'i')",
    "ft.psum(x, 'i')",
    "x - ft.pmean(x, 'i')",
    "ft.psum(1.0, 'i') * x",
    "ft.all_gather(x, 'i')[0] * x",
    "x * ft.axis_index('i')",
    "x * ft.all_gather(x, 'i').shape[0]",
    "x / ft.psum(x * x, 'i')",
    "ft.pmax(x, 'i') - x",
    "np.sum(ft.all_gather(x, 'i')) + x",
    "ft.psum(x, 'i') + ft.psum(1, 'i')",
]
_LANE_WRAPPERS = [
    "g",
    "ft.checkpoint(g)",
    "lambda x: ft.grad(lambda y: np.sum(g(y)))(x)",
    "lambda x: ft.jvp(g, (x,), (x,))[1]",
    "lambda x: ft.cond(True, g, g, x)",
    "lambda x: ft.vmap(g)(np.ones(2) * x)",
    "lambda x: ft.fori_loop(0, 2, lambda i, c: g(c), x)",
    "lambda x: ft.jit(g, backend='numpy')(x)",
]


def write(chooser: Chooser) -> Probe:
    subjects = [_static, _containers, _numbers, _lanes, _arguments, _mutated]
    return chooser.pick(subjects)(chooser)


def _backend(chooser: Chooser) -> str:
    return "native" if chooser.chance(8) else "numpy"


def _calls(chooser: Chooser, options: list[str]) -> list[str]:
    """Some of the options in turn, then one of them again."""
    calls = [chooser.pick(options)]
    for _ in range(1 + chooser.below(3)):
        calls.append(chooser.pick([option for option in options if option != calls[-1]]))
    return calls if calls[-1] == calls[0] else [*calls, calls[0]]


def _static(chooser: Chooser) -> Probe:
    calls = _calls(chooser, chooser.pick(_STATIC))
    option = chooser.pick(["static_argnums=1", 'static_argnames="s"', "static_argnums=(1,)"])
    call = chooser.pick(["(x, s)", "(x, s=s)"])
    if option.startswith("static_argnums"):
        call = "(x, s)"
    body = f"""
def f(x, s):
    return x * (1 + look(s))


g = ft.jit(f, {option}, backend="{_backend(chooser)}")
x = np.array([1.0, 2.0])
for s in [{", ".join(calls)}]:
    laws.right_or_refused(lambda: g{call}, lambda: f{call}, law="static values")
"""
    return probe(body, "static values", definitions=_DEFINITIONS)


def _containers(chooser: Chooser) -> Probe:
    calls = _calls(chooser, chooser.pick(_CONTAINERS))
    call = chooser.pick(
        [
            "g(tree)",
            "g(tree)",
            "ft.vmap(g, in_axes=None, axis_size=2)(tree)[0]",
            "ft.make_graph(of_tree)(tree)(tree)",
            "ft.vjp(g, tree)[0]",
        ]
    )
    body = f"""
g = ft.jit(of_tree, backend="{_backend(chooser)}")
x, y = np.array([1.0, 2.0]), np.array([3.0, 5.0])
for tree in [{", ".join(calls)}]:
    laws.right_or_refused(lambda: {call}, lambda: of_tree(tree), law="containers")
"""
    return probe(body, "containers", definitions=_DEFINITIONS)


def _mutated(chooser: Chooser) -> Probe:
    """Metadata that is changed in place between two calls."""
    start, change = chooser.pick(
        [
            ("[1, 2]", "meta.append(3)"),
            ("[1, 2]", "meta[0] = 1.0"),
            ("{'k': 1}", "meta['k'] = 2"),
            ("{'k': [1]}", "meta['k'].append(2)"),
            ("np.zeros(2)", "meta[0] = 1.0"),
            ("np.zeros(2)", "meta *= -1"),
            ("{1}", "meta.add(2)"),
            ("([1],)", "meta[0].append(2)"),
            ("bytearray(b'a')", "meta.append(98)"),
        ]
    )
    body = f"""
g = ft.jit(of_tree, backend="{_backend(chooser)}")
x, y = np.array([1.0, 2.0]), np.array([3.0, 5.0])
meta = {start}
tree = Model(x, y, meta)
laws.right_or_refused(lambda: g(tree), lambda: of_tree(tree), law="metadata")
{change}
laws.right_or_refused(lambda: g(tree), lambda: of_tree(tree), law="metadata changed in place")
"""
    return probe(body, "metadata changed in place", definitions=_DEFINITIONS)


def _numbers(chooser: Chooser) -> Probe:
    calls = _calls(chooser, chooser.pick(_NUMBERS))
    expression = chooser.pick(_FUNCTIONS_OF_NUMBERS)
    body = f"""
f = lambda x: {expression}
g = ft.jit(f, backend="{_backend(chooser)}")
for x in [{", ".join(calls)}]:
    laws.right_or_refused(lambda: g(x), lambda: f(x), dtypes=True, law="numbers")
"""
    return probe(body, "kinds of numbers")


def _lanes(chooser: Chooser) -> Probe:
    counts = [chooser.pick([3, 5, 2, 4, 1]) for _ in range(2 + chooser.below(2))]
    expression, wrapper = chooser.pick(_OF_LANES), chooser.pick(_LANE_WRAPPERS)
    names = chooser.pick(["'i'", "'i'", "'i'", "('i', 'j')"])
    maps = [f"ft.vmap(h, axis_name='i')(np.arange(1.0, {n} + 1))" for n in counts]
    if names != "'i'":
        maps = [
            f"ft.vmap(ft.vmap(h, axis_name='i'), axis_name='j')(np.arange(1.0, {2 * n + 1}).reshape(2, {n}))"
            for n in counts
        ]
        maps[-1] = maps[-1].replace("'i'", "'k'").replace("'j'", "'i'")
    checks = "\n".join(f"    lambda h: {text}," for text in maps)
    body = f"""
f = lambda x: {expression}
compiled = ft.jit(f, backend="{_backend(chooser)}")
over = lambda g: {wrapper if wrapper == "g" else f"({wrapper})"}
for mapped in [
{checks}
]:
    laws.same(mapped(over(compiled)), mapped(over(f)), 1e-12, "lanes")
"""
    return probe(body, "lanes")


def _arguments(chooser: Chooser) -> Probe:
    """Arguments by position and by name, in another order, with defaults, traced or not."""
    signature, expression, options = chooser.pick(
        [
            (
                "x, y=2.0",
                "x * y + 1",
                ["(x)", "(x, 2.0)", "(x, y=2.0)", "(y=x, x=2.0)", "(x, 3)", "(x, y=True)"],
            ),
            (
                "*args",
                "sum(k * a for k, a in enumerate(args, 1))",
                ["(x)", "(x, x)", "(x, 1.0, x)"],
            ),
            (
                "**named",
                "sum(k * named[n] for k, n in enumerate(named, 1))",
                ["(a=x, b=y)", "(b=y, a=x)", "(b=x, a=y)", "(a=x)", "(a=x, c=y)"],
            ),
            (
                "x, **named",
                "x + look(list(named)) * sum(named.values())",
                ["(x, a=x, b=y)", "(x, b=y, a=x)", "(x)", "(x, a=y)"],
            ),
            (
                "x, y=None",
                "x if y is None else x * y",
                ["(x)", "(x, None)", "(x, y)", "(x, y=None)", "(x, 2)"],
            ),
        ]
    )
    calls = _calls(chooser, options)
    around = chooser.pick(
        [
            "{}",
            "{}",
            "ft.vmap(lambda x, y: {})(x, y)",
            "ft.grad(lambda x: np.sum({}))(x)",
            "ft.jvp(lambda x: {}, (x,), (y,))",
        ]
    )
    lines = []
    for call in calls:
        one, other = (around.format(f"{name}{call}") for name in "gf")
        lines.append(f'laws.same({one}, {other}, 1e-12, "arguments")')
    body = f"""
def f({signature}):
{indented(f"return {expression}")}


g = ft.jit(f, backend="{_backend(chooser)}")
x, y = np.array([1.0, 2.0]), np.array([3.0, 5.0])
"""
    return probe(body + "\n".join(lines), "arguments", definitions=_DEFINITIONS)
