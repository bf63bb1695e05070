"""Random calls of a function that sees all there is to see, and calls that differ from them in one thing.

A call consists of slots. Each has several values, of which a function can tell any two apart, although many
are equal to Python. `see` returns numbers that depend on everything it sees.
"""

import contextlib
import dataclasses
import decimal
import enum
import zlib
from collections import OrderedDict, defaultdict, deque, namedtuple

import numpy as np

import functrans as ft

First = namedtuple("Pair", ["left", "right"])
Second = namedtuple("Pair", ["right", "left"])


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 1


class Length(float):
    pass


@dataclasses.dataclass(frozen=True)
class Options:
    rate: object
    mode: object = "same"


@dataclasses.dataclass
class Model:
    weight: object
    settings: object


ft.tree.register_dataclass(Model, meta_fields=["settings"])


class Box:
    def __init__(self, content, label):
        self.content, self.label = content, label


ft.tree.register(Box, lambda box: ((box.content,), box.label), lambda label, c: Box(*c, label))

NUMBERS = [0.0, -0.0, 0, False, 1, True, 1.0, 2**63, -(2**63), float("nan"), float("inf"), 1e300]
NUMBERS += [
    complex(0.0, 0.0),
    complex(0.0, -0.0),
    complex(-0.0, 0.0),
    np.float64(1.0),
    np.float64(-0.0),
]
NUMBERS += [
    np.float64(0.0),
    np.float32(1.0),
    np.int64(1),
    np.int32(1),
    np.bool_(True),
    np.longlong(1),
]
TEXTS = ["a", "b", "", b"a", np.str_("a"), np.bytes_(b"a")]
DTYPES = [np.dtype(d) for d in ("f8", ">f8", "f4", "l", "q", [("a", "f8")], [("b", "f8")])]
DTYPES += [np.dtype("f8", metadata={"unit": unit}) for unit in (1, 1.0, "m")]
DTYPES += [np.dtype([("a", "i1"), ("b", "f8")]), np.dtype([("a", "i1"), ("b", "f8")], align=True)]
OTHERS = [
    None,
    ...,
    float,
    np.float64,
    int,
    Color.RED,
    Color.BLUE,
    Level.LOW,
    Length(0.0),
    Length(-0.0),
]
OTHERS += [range(0), range(1, 1), range(2), decimal.Decimal("1.0"), decimal.Decimal("1.00"), slice]
ATOMS = [*NUMBERS, *TEXTS, *DTYPES, *OTHERS]
STATIC = [
    *ATOMS,
    *[(atom,) for atom in NUMBERS],
    *[Options(atom) for atom in NUMBERS if atom == atom],
    *[Options((1,), mode) for mode in (1, 1.0, True)],
    *[frozenset({atom}) for atom in (1, 1.0, True, "a", np.str_("a"), 0.0, -0.0)],
    *[kind(*pair) for pair in ((1, 2), (1.0, 2)) for kind in (First, Second)],
    (1, 2),
    (1.0, 2),
    ((0.0,), 1),
    ((-0.0,), 1),
]
METADATA = [
    *STATIC,
    *[[atom] for atom in NUMBERS],
    *[{atom} for atom in (1, 1.0, True)],
    *[{key: 1} for key in (1, 1.0, True, "a")],
    {"a": 1, "b": 2},
    {"b": 2, "a": 1},
    *[
        np.array(value)
        for value in (0.0, -0.0, [0.0], [-0.0], [1.0, 2.0], [1.0, 3.0], [[1.0, 2.0]], [1, 2])
    ],
    np.zeros(200),
    np.ones(200),
    [np.zeros(2)],
    [np.ones(2)],
    np.array([1.0, 2.0], ">f8"),
]
LEAVES = [
    2.0,
    2,
    True,
    2j,
    np.float64(2.0),
    np.float32(2.0),
    np.int8(2),
    np.array(2.0),
    np.arange(3.0),
    np.arange(3.0, dtype=np.float32),
    np.arange(3.0, dtype=">f8"),
    np.arange(3, dtype="l"),
    np.arange(3, dtype="q"),
    np.arange(3.0).astype(np.dtype("f8", metadata={"unit": 1})),
    np.arange(3.0).astype(np.dtype("f8", metadata={"unit": 2})),
    np.ones((1, 3)),
    np.ones((3, 1)),
    np.ones((0, 3)),
    np.arange(3) + 1j,
]


def in_order(*keys):
    return lambda a, b, c: {key: {"a": a, "b": b, "c": c}[key] for key in keys}


def with_key(key):
    return lambda a, b, c: {key: a, "b": b, "c": c}


CONTAINERS = [
    in_order("a", "b", "c"),
    in_order("c", "b", "a"),
    in_order("b", "a", "c"),
    in_order("".join(["x", "b"])[1:], "a", "c"),
    lambda a, b, c: OrderedDict(a=a, b=b, c=c),
    lambda a, b, c: OrderedDict(c=c, b=b, a=a),
    lambda a, b, c: defaultdict(int, a=a, b=b, c=c),
    lambda a, b, c: defaultdict(float, a=a, b=b, c=c),
    lambda a, b, c: defaultdict(float, c=c, b=b, a=a),
    *map(
        with_key, (1, True, 1.0, np.int64(1), 0.0, -0.0, (1,), (1.0,), np.str_("a"), np.str_("b"))
    ),
    lambda a, b, c: [a, b, c],
    lambda a, b, c: (a, b, c),
    lambda a, b, c: [a, (b, c)],
    lambda a, b, c: First(a, [b, c]),
    lambda a, b, c: Second(a, [b, c]),
    lambda a, b, c: deque([a, b, c], 3),
    lambda a, b, c: deque([a, b, c], 4),
    lambda a, b, c: [a, None, b, c],
    lambda a, b, c: {"a": {"z": a, "y": b}, "c": c},
    lambda a, b, c: {"a": {"y": b, "z": a}, "c": c},
    lambda a, b, c: [{"z": a, "y": b}, c],
    lambda a, b, c: [{"y": b, "z": a}, c],
    lambda a, b, c: Box({"z": a, "y": b, "x": c}, 1),
    lambda a, b, c: Box({"x": c, "y": b, "z": a}, 1),
    lambda a, b, c: Model([a, b, c], 1),
    lambda a, b, c: Model((a, b, c), 1),
]
AXES = [
    (),
    (("i", 2),),
    (("i", 3),),
    (("i", 1),),
    (("j", 2),),
    (("i", 2), ("j", 3)),
    (("i", 3), ("j", 2)),
]
AXES += [(("j", 3), ("i", 2)), ((None, 2),), ((None, 2), ("i", 3))]
SLOTS = {
    "leaf": LEAVES,
    "other leaf": LEAVES,
    "container": CONTAINERS,
    "metadata": METADATA,
    "static": STATIC,
    "named static": STATIC,
    "keywords": [("p", "q"), ("q", "p"), ("p",), ("q",), ()],
    "axes": AXES,
}


class Call:
    """One value for each slot, by its number."""

    def __init__(self, chooser):
        self.chosen = {slot: chooser.randrange(len(values)) for slot, values in SLOTS.items()}

    def changed(self, chooser):
        """The same call with another value in one slot."""
        other = Call(chooser)
        other.chosen = dict(self.chosen)
        slot = chooser.choice(list(SLOTS))
        other.chosen[slot] = chooser.randrange(len(SLOTS[slot]))
        return other

    def __repr__(self):
        return f"Call({self.chosen})"

    def run(self, function):
        """Call a function of (lane, tree, model, static, named=static, **keywords) within the named axes."""
        found = {slot: SLOTS[slot][number] for slot, number in self.chosen.items()}
        tree = found["container"](found["leaf"], 3.0, found["other leaf"])
        model = Model(5.0, found["metadata"])
        keywords = {name: 7.0 + len(name) for name in found["keywords"]}

        def call(lane):
            return function(
                lane, tree, model, found["static"], named=found["named static"], **keywords
            )

        sizes = []
        for name, size in reversed(found["axes"]):
            call = ft.vmap(call, axis_name=name)
            sizes.insert(0, size)
        return call(np.arange(float(np.prod(sizes))).reshape(sizes) if sizes else 1.0)


def see(lane, tree, model, static, named=None, **keywords):
    """Numbers that depend on all that is seen, in a dict whose order does, too."""
    texts = [describe(static), describe(named), describe(model.settings), *keywords]
    leaves = []
    _look(tree, texts, leaves)
    for name in ("i", "j"):
        with contextlib.suppress(ft.errors.AxisNameError):
            texts.append(f"{name}{ft.psum(1.0, name)}")
    weight = zlib.crc32(" ".join(texts).encode()) % 997 / 997
    out = {f"leaf {k}": np.ones(1, np.float32) * leaf for k, leaf in enumerate(leaves)}
    out["weight"] = lane * 0.0 + weight + model.weight
    for name, value in keywords.items():
        out[name] = value * lane
    if "i" in {text[:1] for text in texts[-2:]}:
        out["mean"] = ft.pmean(lane, "i")
    return {**dict(reversed(out.items())), "model": Model(lane * 2.0, model.settings)}


def _look(node, texts, leaves):
    is_leaf = any(leaf is node for leaf in ft.tree.leaves(node))
    texts.append("leaf" if is_leaf else type(node).__name__)
    if isinstance(node, dict):
        texts.append(describe(tuple(node)))
        texts.append(str(getattr(node, "default_factory", "")))
        children = node.values()
    elif isinstance(node, tuple) and hasattr(node, "_fields"):
        texts += node._fields
        children = node
    elif isinstance(node, (list, tuple, deque)):
        texts.append(str(getattr(node, "maxlen", "")))
        children = node
    elif isinstance(node, Box):
        texts.append(describe(node.label))
        children = [node.content]
    elif isinstance(node, Model):
        children = [node.weight]
    elif node is None:
        children = []
    else:
        children = []
        leaves.append(node)
        texts.append(str(getattr(node, "shape", ())))
        dtype = getattr(node, "dtype", None)
        if getattr(node, "shape", ()):
            texts.append(describe(dtype))
    for child in children:
        _look(child, texts, leaves)


def describe(value):
    """A text that is the same only for values that cannot be told apart."""
    kind = type(value).__name__
    if isinstance(value, np.dtype):
        return f"dtype {value!r} {value.char} {value.metadata} {value.isalignedstruct}"
    if isinstance(value, np.ndarray):
        return f"array {value.shape} {value.dtype.str} {value.tobytes().hex()}"
    if isinstance(value, np.generic):
        return f"{kind} {value.dtype.char} {value.tobytes().hex()}"
    if isinstance(value, (tuple, list, set, frozenset)):
        return f"{kind} {getattr(value, '_fields', '')} [{' '.join(map(describe, value))}]"
    if isinstance(value, dict):
        return f"{kind} [{' '.join(describe(item) for item in value.items())}]"
    if isinstance(value, Options):
        return f"{kind} {describe(value.rate)} {describe(value.mode)}"
    return f"{kind} {value!r}"
