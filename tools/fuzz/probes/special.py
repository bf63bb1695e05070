"""Probes of special values: signed zeros, infinities, nan, and the ends of the range.

The compiler may use a law of algebra only where it holds for these values as well. Compiled, staged or
traced, a function gives NumPy's result.
"""

from __future__ import annotations

from tools.fuzz.probes.probe import Probe, RejectedError, probe
from tools.fuzz.programs.choosing import Chooser

_CONSTANTS = ["0", "1", "2", "0.0", "1.0", "-1", "0.5", "-0.0", "3", "-2", "-0.5", "1.5", "np.inf"]
# Expressions of arrays x and y, and a number c.
_ALGEBRA = [
    "x * c",
    "x + c",
    "x - c",
    "c - x",
    "x / c",
    "c / x",
    "x ** c",
    "c * x + y",
    "c ** x",
    "x * y",
    "x / y",
    "x - x",
    "x / x",
    "x + y - y",
    "x * y / y",
    "x * (c / y)",
    "-x",
    "-(-x)",
    "-(x - y)",
    "x * c * c",
    "(x + c) - c",
    "(x * c) / c",
    "x * -1",
    "x ** 2",
    "x ** 0.5",
    "x ** -1",
    "x ** y",
    "np.square(x)",
    "np.power(x, c)",
    "np.float_power(x, c)",
    "np.sqrt(x) ** 2",
    "np.sqrt(x ** 2)",
    "np.sqrt(x) * np.sqrt(x)",
    "np.exp(np.log(x))",
    "np.log(np.exp(x))",
    "np.reciprocal(x)",
    "1 / (1 / x)",
    "x * 0 + y",
    "0 * x",
    "x + x",
    "2 * x - x",
    "x * x * x",
    "abs(x) * np.sign(x)",
    "np.abs(-x)",
    "np.positive(x)",
    "x ** 2 / x",
    "np.where(x == x, x, y)",
    "np.where(x > c, x, c)",
    "np.where(x > y, x, y)",
    "np.sum(x * 0)",
    "np.sum(x, keepdims=True) * c",
    "np.prod(x)",
    "np.stack([x, y]) * c",
    "np.multiply(x, True)",
    "np.add(x, False)",
    "x * np.ones_like(x)",
    "x + np.zeros_like(x)",
    "x * np.full(x.shape, c)",
    "x - np.zeros(())",
    "-0.0 + x",
    "0.0 * -x",
]
# Every step of these is exact, so a discontinuous function may be applied to them.
_EXACT = [
    "x * c",
    "x + c",
    "c - x",
    "-x",
    "x * y",
    "x / c",
    "-(x - y)",
    "x * c * c",
    "np.square(x)",
    "0 * x",
]
# NumPy may treat either of two zeros as the larger one, hence the 1.0.
_REAL = [
    "np.maximum(x, y) + 1.0",
    "np.minimum(x, c) + 1.0",
    "np.fmax(x, y) + 1.0",
    "np.fmin(x, c) + 1.0",
    "x % y",
    "x // y",
    "x % c",
    "np.fmod(x, y)",
    "np.remainder(x, c)",
    "np.hypot(x, y)",
    "np.arctan2(x, y)",
    "np.arctan2(x, c)",
    "np.copysign(x, y)",
    "np.copysign(c, np.nan_to_num(x))",
    "np.floor(x)",
    "np.ceil(x)",
    "np.rint(x)",
    "np.trunc(x)",
    "np.sign(x)",
    "np.clip(x, -1.0, 1.0) + 1.0",
    "np.clip(x, c, np.inf) + 1.0",
    "np.nan_to_num(x)",
    "np.heaviside(x, c)",
    "np.cbrt(x)",
    "np.logaddexp(x, y)",
    "np.max(x) + 1.0",
    "np.min(x) + 1.0",
    "np.nanmax(x) + 1.0",
    "np.argmax(x)",
    "np.isnan(x * c)",
    "np.signbit(np.nan_to_num(x * c))",
    "np.nextafter(x, y)",
    "np.spacing(x)",
    "np.ldexp(x, 2)",
    "np.frexp(x)[0]",
    "np.modf(x)[0]",
    "np.sinc(x)",
    "np.log2(x)",
    "np.log10(x)",
    "np.cosh(x)",
    "np.arcsinh(x)",
    "np.arccosh(x)",
    "np.arctanh(x)",
    "np.arcsin(x)",
]
_FUNCTIONS = [
    "np.exp(x)",
    "np.log(x)",
    "np.log1p(x)",
    "np.expm1(x)",
    "np.sqrt(x)",
    "np.sin(x)",
    "np.tanh(x)",
    "np.arctan(x)",
    "np.sinh(x)",
]
_DATA = {
    "np.float64": (
        "[0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.0, -2.5, 0.5, 1e300, -1e-300]",
        "[0.0, 1.0, -np.inf, 0.5, 2.0, -0.0, np.nan, np.inf, 3.0, -1.0, 1e300, 1e-300]",
    ),
    "np.float32": (
        "[0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.0, -2.5, 0.5, 1e30, -1e-30]",
        "[0.0, 1.0, -np.inf, 0.5, 2.0, -0.0, np.nan, np.inf, 3.0, -1.0, 1e30, 1e-30]",
    ),
    "np.float16": (
        "[0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.0, -2.5, 0.5]",
        "[0.0, 1.0, -np.inf, 0.5, 2.0, -0.0, np.nan, np.inf, 3.0, -1.0]",
    ),
    "complex": (
        "[complex(a, b) for a in SPECIAL for b in SPECIAL]",
        "[complex(b, -a) for a in SPECIAL for b in SPECIAL]",
    ),
    "np.complex64": (
        "[complex(a, b) for a in SPECIAL for b in SPECIAL]",
        "[complex(b, -a) for a in SPECIAL for b in SPECIAL]",
    ),
    "np.int64": ("[0, 1, -1, 2, -7, 2**62]", "[1, 0, 3, -2, 2, 5]"),
    "np.int8": ("[0, 1, -1, 127, -128, 7]", "[1, 0, 3, -1, 2, 127]"),
    "np.uint8": ("[0, 1, 255, 128, 7, 3]", "[1, 0, 3, 255, 2, 100]"),
    "bool": ("[True, False, True]", "[True, True, False]"),
}
_WRAPPERS = {
    "jit": 'ft.jit(f, backend="numpy")(x, y)',
    "native": 'ft.jit(f, backend="native")(x, y)',
    "graph": "ft.make_graph(f)(x, y)(x, y)",
    "source": "ft.source(f)(x, y).function(x, y)",
    "vjp": "ft.vjp(f, x, y)[0]",
    "jvp": "ft.jvp(f, (x, y), (x, y))[0]",
    "jit of jit": 'ft.jit(ft.jit(f, backend="numpy"), backend="numpy")(x, y)',
}
_DEFINITIONS = {
    "SPECIAL": "SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -2.0]",
}
_TOLERANCES = {"np.float32": "1e-4", "np.float16": "1e-2", "np.complex64": "1e-4"}


def write(chooser: Chooser) -> Probe:
    if chooser.chance(15):
        return _python_numbers(chooser)
    dtype = chooser.weighted(
        [
            (8, "np.float64"),
            (3, "np.float32"),
            (2, "complex"),
            (1, "np.complex64"),
            (1, "np.int64"),
            (1, "np.int8"),
            (1, "np.uint8"),
            (1, "np.float16"),
            (1, "bool"),
        ]
    )
    wrapper = chooser.weighted(
        [
            (4, "jit"),
            (3, "native"),
            (2, "graph"),
            (1, "source"),
            (2, "vjp"),
            (1, "jvp"),
            (1, "jit of jit"),
        ]
    )
    if wrapper in ("vjp", "jvp") and dtype in ("np.int64", "np.int8", "np.uint8", "bool"):
        raise RejectedError
    table = _ALGEBRA if dtype in ("complex", "np.complex64") else _ALGEBRA + _REAL
    table = table + _FUNCTIONS if dtype not in ("complex", "np.complex64") else table
    expressions = [_expression(chooser, table) for _ in range(1 + chooser.below(4))]
    c = chooser.pick(_CONSTANTS)
    if "int" in dtype and not c.lstrip("-").isdigit():
        c = "2"
    one, other = _DATA[dtype]
    tolerance = _TOLERANCES.get(dtype, "1e-9")
    text = f"""
c = {c}
f = lambda x, y: ({", ".join(expressions)},)
x = np.array({one}, {dtype})
y = np.array({other}, {dtype})
laws.as_numpy(lambda: {_WRAPPERS[wrapper]}, lambda: f(x, y), {tolerance})
"""
    return probe(text, wrapper, dtype, definitions=_DEFINITIONS)


def _expression(chooser: Chooser, table: list[str]) -> str:
    """An expression from the table, in which another one may take the place of x."""
    text = chooser.pick(table)
    if chooser.chance(40):
        text = _substituted(text, chooser.pick(_EXACT))
    return text


def _substituted(text: str, inner: str) -> str:
    parts = []
    for k, char in enumerate(text):
        alone = not (text[k - 1 : k].isalnum() or text[k + 1 : k + 2].isalnum())
        parts.append(f"({inner})" if char == "x" and alone and text[k - 1 : k] != "." else char)
    return "".join(parts)


def _python_numbers(chooser: Chooser) -> Probe:
    """Python's own numbers, which follow Python's rules outside of NumPy's functions."""
    expression = chooser.pick(_ALGEBRA[:40])
    values = ["0.0", "-0.0", "np.inf", "-np.inf", "np.nan", "2.0", "-1.5", "0", "1", "-3", "True"]
    if "**" not in expression:  # Python would compute all digits of a power
        values += ["2**53 + 1", "2**62", "-(2**63)", "1e308", "5e-324"]
    x, y = chooser.pick(values), chooser.pick(values)
    wrapper = chooser.pick(["jit", "graph", "jit of jit"])
    text = f"""
c = {chooser.pick(_CONSTANTS)}
f = lambda x, y: ({expression},)
x, y = {x}, {y}
laws.as_numpy(lambda: {_WRAPPERS[wrapper]}, lambda: f(x, y), 1e-9)
"""
    return probe(text, wrapper, "Python numbers")
