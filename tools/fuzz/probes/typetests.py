"""Probes of type tests: a traced value answers like the value that it stands for.

That is the array, the NumPy scalar or the Python number that the caller passed; a lane stands for an item of
Python's iteration over the batch. `type(x)` is not tested, because Python has no hook for it.
"""

from __future__ import annotations

from tools.fuzz.probes.probe import Probe, RejectedError, probe
from tools.fuzz.programs.choosing import Chooser

_TESTS = [
    "isinstance(x, np.ndarray)",
    "isinstance(x, float)",
    "np.isscalar(x)",
    "isinstance(x, (int, float))",
    "isinstance(x, np.generic)",
    "isinstance(x, np.floating)",
    "isinstance(x, np.number)",
    "isinstance(x, np.float64)",
    "isinstance(x, np.float32)",
    "isinstance(x, numbers.Real)",
    "isinstance(x, numbers.Number)",
    "isinstance(x, numbers.Integral)",
    "isinstance(x, numbers.Complex)",
    "isinstance(x, complex)",
    "isinstance(x, int)",
    "isinstance(x, bool)",
    "isinstance(x, (list, tuple))",
    "isinstance(x, str)",
    "isinstance(x, abc.Iterable)",
    "isinstance(x, abc.Sized)",
    "isinstance(x, abc.Sequence)",
    "isinstance(x, abc.Callable)",
    "isinstance(x, abc.Collection)",
    "isinstance(x, abc.Mapping)",
    "np.ndim(x)",
    "np.shape(x)",
    "np.size(x)",
    "np.iterable(x)",
    "np.isrealobj(x)",
    "np.iscomplexobj(x)",
    "np.result_type(x).name",
    "callable(x)",
    "hasattr(x, 'shape')",
    "hasattr(x, 'dtype')",
    "hasattr(x, 'ndim')",
    "hasattr(x, '__len__')",
    "hasattr(x, '__iter__')",
    "hasattr(x, 'item')",
    "hasattr(x, 'keys')",
    "hasattr(x, '__array__')",
    "hasattr(x, 'requires_grad')",
    "hasattr(x, '__index__')",
    "hasattr(x, '__int__')",
    "hasattr(x, '__float__')",
    "hasattr(x, '__complex__')",
    "hasattr(x, 'is_integer')",
    "hasattr(x, 'as_integer_ratio')",
    "hasattr(x, 'bit_length')",
    "getattr(x, 'dtype', None)",
    "getattr(x, 'ndim', -1)",
    "issubclass(x.__class__, np.ndarray)",
    "issubclass(x.__class__, float)",
    "kind_of(x)",
    "matched(x)",
    "x is None",
    "x.dtype.kind if hasattr(x, 'dtype') else 'none'",
    "np.issubdtype(np.result_type(x), np.floating)",
    "isinstance(x, np.ndarray) and x.ndim == 0",
    "isinstance(x, np.ndarray) or np.isscalar(x)",
    "len(x) if hasattr(x, '__len__') and np.ndim(x) else -1",
    "isinstance(x, (np.ndarray, np.generic))",
    "isinstance(x, np.inexact)",
    "isinstance(x, np.integer)",
]
_DEFINITIONS = {
    "numbers": "import numbers",
    "abc": "from collections import abc",
    "singledispatch kind_of": "from functools import singledispatch",
    "kind_of": """
@singledispatch
def kind_of(x):
    return "something"


kind_of.register(float, lambda x: "float")
kind_of.register(np.ndarray, lambda x: "array")
kind_of.register(int, lambda x: "int")
kind_of.register(np.generic, lambda x: "NumPy scalar")
""",
    "matched": """
def matched(x):
    match x:
        case float():
            return "float"
        case int():
            return "int"
        case np.ndarray():
            return "array"
        case [*_]:
            return "sequence"
    return "something"
""",
}
# Arguments, and batches whose items are such arguments.
_FLOATS = {
    "a Python float": "3.0",
    "a NumPy scalar": "np.float64(3.0)",
    "an array": "np.array([3.0, 2.0])",
    "an array without axes": "np.array(3.0)",
    "a matrix": "np.array([[3.0, 2.0], [1.0, 4.0]])",
    "a single scalar": "np.float32(3.0)",
    "a single array": "np.array([3.0, 2.0], np.float32)",
    "an array without entries": "np.zeros(0)",
}
_OTHERS = {
    "a Python int": "3",
    "a Python bool": "True",
    "a Python complex": "3.0 + 1.0j",
    "a NumPy int": "np.int64(3)",
    "integers": "np.array([3, 2])",
    "booleans": "np.array([True, False])",
    "complex numbers": "np.array([3.0 + 1.0j])",
}
_TRANSFORMS = {
    "grad": "ft.grad(lambda x: np.sum(f(x)))(x)",
    "jvp": "ft.jvp(f, (x,), (x,))",
    "vjp": "ft.vjp(f, x)",
    "jacfwd": "ft.jacfwd(f)(x)",
    "jacrev": "ft.jacrev(f)(x)",
    "linearize": "ft.linearize(f, x)",
    "hessian": "ft.hessian(lambda x: np.sum(f(x)))(x)",
    "checkpoint": "ft.grad(lambda x: np.sum(ft.checkpoint(f)(x)))(x)",
    "value_and_grad": "ft.value_and_grad(lambda x: np.sum(f(x)))(x)",
    "grad of grad": "ft.grad(lambda x: np.sum(ft.grad(lambda x: np.sum(f(x)))(x)))(x)",
    "cond under grad": "ft.grad(lambda x: np.sum(ft.cond(True, f, f, x)))(x)",
    "jvp of vjp": "ft.jvp(lambda x: ft.vjp(f, x)[0], (x,), (x,))",
}
_ANY_ARGUMENT = {
    "jit": 'ft.jit(f, backend="numpy")(x)',
    "make_graph": "ft.make_graph(f)(x)",
    "unmapped": "ft.vmap(lambda y, x: f(x) * y, in_axes=(0, None))(np.ones(2), x)",
    "not differentiated": "ft.grad(lambda y, x: np.sum(y * f(x)))(1.0, x)",
    "closed over": "ft.grad(lambda y: np.sum(y * f(x)))(1.0)",
}
_LANES = {
    "vmap": "ft.vmap(f)(batch)",
    "vmap of grad": "ft.vmap(ft.grad(lambda x: np.sum(f(x))))(batch)",
    "grad of vmap": "ft.grad(lambda b: np.sum(ft.vmap(f)(b)))(batch)",
    "map": "ft.map(f, batch)",
    "scan": "ft.scan(lambda c, x: (c, f(x)), 0.0, batch)",
    "jit of vmap": 'ft.jit(ft.vmap(f), backend="numpy")(batch)',
    "grad of scan": "ft.grad(lambda b: np.sum(ft.scan(lambda c, x: (c, f(x)), 0.0, b)[1]))(batch)",
    "grad of a loop": "ft.grad(lambda b: sum(np.sum(f(x)) for x in b))(batch)",
    "jit of scan": 'ft.jit(lambda b: ft.scan(lambda c, x: (c, f(x)), 0.0, b), backend="numpy")(batch)',
}


def write(chooser: Chooser) -> Probe:
    tests = [chooser.pick(_TESTS) for _ in range(1 + chooser.below(3))]
    form = chooser.below(4)
    if form == 0:
        return _branching(chooser)
    if form == 1:
        batch = chooser.pick(
            [
                "np.array([3.0, 2.0])",
                "np.array([[3.0, 2.0], [1.0, 4.0]])",
                "np.array([3.0, 2.0], np.float32)",
            ]
        )
        name = chooser.pick(list(_LANES))
        given, plain, call = f"batch = {batch}", "f(batch[0])", _LANES[name]
    elif form == 2:
        arguments = _FLOATS | _OTHERS
        kind = chooser.pick(list(arguments))
        name = chooser.pick(list(_ANY_ARGUMENT))
        given, plain, call = f"x = {arguments[kind]}", "f(x)", _ANY_ARGUMENT[name]
    else:
        kind = chooser.pick(list(_FLOATS))
        name = chooser.pick(list(_TRANSFORMS))
        given, plain, call = f"x = {_FLOATS[kind]}", "f(x)", _TRANSFORMS[name]
    listed = ", ".join(tests)
    text = f"""
answers = []


def f(x):
    answers.append(({listed},))
    return x * 2.0


{given}
laws.answers(answers, lambda: {plain}, lambda: {call})
"""
    return probe(text, f"under {name}", *tests, definitions=_DEFINITIONS)


def _branching(chooser: Chooser) -> Probe:
    """The branch that a function takes in such a test, as seen in its derivative."""
    branches = chooser.pick(
        [
            ("np.isscalar(x)", "x * x", "np.sum(x)"),
            ("isinstance(x, np.ndarray)", "np.sum(x * x)", "5.0 * np.sum(x)"),
            ("isinstance(x, float)", "x ** 3", "np.sum(x)"),
            ("isinstance(x, (int, float))", "x * 4.0", "np.sum(np.sin(x))"),
            ("isinstance(x, np.generic)", "x * x", "3.0 * np.sum(x)"),
            ("hasattr(x, '__len__')", "np.sum(x * x)", "7.0 * np.sum(x)"),
            ("isinstance(x, numbers.Real)", "x * x", "np.sum(x)"),
            ("np.iterable(x)", "sum(y * y for y in x)", "3.0 * np.sum(x)"),
            ("callable(x)", "x * 0.0", "np.sum(x * x)"),
            ("isinstance(x, abc.Iterable)", "sum(y * y for y in x)", "3.0 * np.sum(x)"),
            ("kind_of(x) == 'float'", "x * x", "3.0 * np.sum(x)"),
        ]
    )
    test, yes, no = branches
    kind = chooser.pick(list(_FLOATS))
    if "single" in kind or "without entries" in kind:
        raise RejectedError
    wrapped = chooser.pick(
        [
            "ft.grad(f)(x)",
            "ft.jacfwd(f)(x)",
            "ft.jacrev(f)(x)",
            'ft.jit(ft.grad(f), backend="numpy")(x)',
            "ft.grad(ft.checkpoint(f))(x)",
            "ft.vjp(f, x)[1](1.0)[0]",
        ]
    )
    text = f"""
def f(x):
    return {yes} if {test} else {no}


x = {_FLOATS[kind]}
laws.derivative_or_error(lambda: {wrapped}, f, x)
"""
    return probe(text, "branches", kind, definitions=_DEFINITIONS)
