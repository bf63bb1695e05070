"""Probes of warnings: a transform warns where it does not do what the user may expect.

A jitted function that draws random numbers draws them once, while it is traced. The gradient of a function
that does not depend on its argument is zero.
"""

from __future__ import annotations

from tools.fuzz.probes.probe import Probe, indented, probe
from tools.fuzz.programs.choosing import Chooser

# Draws of random numbers, with the lines that they need above them.
_DRAWS = [
    ("np.random.normal()", ""),
    ("np.random.rand(3)", ""),
    ("np.random.uniform(0.0, 1.0, 3)", ""),
    ("np.random.random()", ""),
    ("np.random.randint(5)", ""),
    ("np.random.choice([1.0, 2.0])", ""),
    ("np.random.permutation(3)", ""),
    ("np.random.standard_normal(3)", ""),
    ("rng.normal()", "rng = np.random.default_rng(0)"),
    ("rng.random(3)", "rng = np.random.default_rng(0)"),
    ("rng.standard_normal(3)", "rng = np.random.default_rng(0)"),
    ("rng.integers(5)", "rng = np.random.default_rng(0)"),
    ("rng.permutation(3)", "rng = np.random.default_rng(0)"),
    ("rng.uniform(size=3)", "rng = np.random.RandomState(0)"),
    ("rng.choice(3)", "rng = np.random.default_rng(0)"),
    ("state['rng'].normal()", "state = {'rng': np.random.default_rng(0)}"),
    ("Holder.rng.normal()", "class Holder:\n    rng = np.random.default_rng(0)\n"),
    ("draw()", "rng = np.random.default_rng(0)\n\n\ndef draw():\n    return rng.normal()\n"),
    ("draw(3)", "draw = np.random.default_rng(0).random"),
    ("next(draws)", "rng = np.random.default_rng(0)\ndraws = (rng.normal() for _ in range(9))"),
    ("random.random()", "import random"),
    ("random.gauss(0.0, 1.0)", "import random"),
    ("source.random()", "import random\nsource = random.Random(0)"),
    ("partial(rng.normal, 1.0)()", "from functools import partial\nrng = np.random.default_rng(0)"),
]
_COMPILED = {
    "jit": "ft.jit(f, backend='numpy')(np.ones(3))",
    "native": "ft.jit(f, backend='native')(np.ones(3))",
    "jit of grad": "ft.jit(ft.grad(lambda x: np.sum(f(x))), backend='numpy')(np.ones(3))",
    "jit of vmap": "ft.jit(ft.vmap(f), backend='numpy')(np.ones((2, 3)))",
    "jit of a loop": (
        "ft.jit(lambda x: ft.fori_loop(0, 2, lambda i, c: f(c), x), backend='numpy')(np.ones(3))"
    ),
    "grad of jit": "ft.grad(lambda x: np.sum(ft.jit(f, backend='numpy')(x)))(np.ones(3))",
    "jit of jit": "ft.jit(ft.jit(f, backend='numpy'), backend='numpy')(np.ones(3))",
    "jit of checkpoint": "ft.jit(ft.checkpoint(f), backend='numpy')(np.ones(3))",
    "a method": "Model().step(np.ones(3))",
}
# These draw no random numbers that would be frozen.
_INNOCENT = [
    ("1.0", ""),
    ("ft.random.normal(ft.random.key(0), (3,))", ""),
    ("noise", "noise = np.random.default_rng(0).normal(size=3)"),
    ("len(str(rng))", "rng = np.random.default_rng(0)"),
]
_CONSTANT = [
    "1.0",
    "np.float64(2.0)",
    "np.sum(np.ones(3))",
    "c",
    "np.sum(np.floor(x)) if False else 3.0",
    "float(np.shape(x)[0]) if np.ndim(x) else 4.0",
    "c * 2.0",
    "np.array(1.0)",
]
_DEPENDENT = ["np.sum(x)", "np.sum(x * x)", "np.sum(0.0 * x)", "np.sum(np.sin(x))", "c * np.sum(x)"]


def write(chooser: Chooser) -> Probe:
    return chooser.pick([_frozen, _frozen, _innocent, _constant, _dependent])(chooser)


def _recorded(call: str) -> str:
    return f"""
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    {call}
"""


def _frozen(chooser: Chooser) -> Probe:
    draw, above = chooser.pick(_DRAWS)
    name = chooser.pick(list(_COMPILED))
    if name == "native" and chooser.chance(70):
        name = "jit"
    model = ""
    if name == "a method":
        model = "class Model:\n    step = ft.jit(lambda self, x: f(x), static_argnums=0, backend='numpy')\n"
    text = f"""
import warnings

{above}


def f(x):
    return x + {draw}

{model}
{_recorded(_COMPILED[name])}
laws.warned(caught, Warning, "functrans.random", law="frozen randomness")
"""
    return probe(text, "frozen randomness", name)


def _innocent(chooser: Chooser) -> Probe:
    value, above = chooser.pick(_INNOCENT)
    text = f"""
import warnings

{above}


def f(x):
    return x + {value}

{_recorded(_COMPILED["jit"])}
laws.silent(caught)
"""
    return probe(text, "no random numbers")


def _constant(chooser: Chooser) -> Probe:
    body = chooser.pick(_CONSTANT)
    call = chooser.pick(["ft.grad(f)({x})", "ft.value_and_grad(f)({x})"])
    x = chooser.pick(["2.0", "np.ones(3)"])
    text = f"""
import warnings

c = 3.0


def f(x):
{indented(f"return {body}")}

{_recorded(call.format(x=x))}
laws.warned(caught, Warning, law="a constant function")
"""
    return probe(text, "constant function")


def _dependent(chooser: Chooser) -> Probe:
    body = chooser.pick(_DEPENDENT)
    text = f"""
import warnings

c = 3.0
f = lambda x: {body}
{_recorded("ft.grad(f)(np.ones(3))")}
laws.silent(caught)
"""
    return probe(text, "dependent function")
