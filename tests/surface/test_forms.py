"""Results have the form that plain NumPy gives: the dtype, and an array or a number if there are no axes."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pytest

import functrans as ft
from functrans.core.tracer import UFUNCS
from tests.support import (
    coverage_calls,
    coverage_calls_arrays,
    coverage_calls_more,
    coverage_calls_submodules,
)
from tests.support.coverage_runner import Call, NotInThisNumPyError, is_number
from tests.support.marks import thin
from tests.support.oracles import leaves

pytestmark = pytest.mark.filterwarnings("ignore")

# NumPy's results here depend on details of its implementation, or are Python numbers, which need a known
# value.
_OTHERS = (
    'np.einsum("ij,ij", x, y, optimize=True)',
    "np.linalg.matrix_rank",
    "z.conjugate()",
    "A.dot(B, out=A)",
    "np.dot(x, A, out=o)",
    "np.frombuffer",
    "np.nditer",
    "np.nested_iters",
    "x.fill(t)",
)


def _sources():
    modules = (
        coverage_calls,
        coverage_calls_arrays,
        coverage_calls_more,
        coverage_calls_submodules,
    )
    for module in modules:
        for name, text in vars(module).items():
            if name.isupper() and not name.startswith("_") and isinstance(text, str):
                for line in text.strip().splitlines():
                    source = line.partition("|")[2].strip() if line[:40].count("| ") else line
                    if not any(other in source for other in _OTHERS):
                        yield source


def _calls():
    for source in dict.fromkeys(_sources()):
        try:
            yield Call(source)
        except (NotInThisNumPyError, SyntaxError):
            continue


def form(value):
    if isinstance(value, np.ndarray):
        kind = "array"
    else:
        kind = "NumPy scalar" if isinstance(value, np.generic) else type(value).__name__
    return kind, str(np.asarray(value).dtype), np.shape(value)


def forms(tree):
    return [form(leaf) for leaf in leaves(tree)]


def _of(call):
    def function(*args):
        out = call.run(*[arg.copy() if hasattr(arg, "copy") else arg for arg in args])
        return [leaf for leaf in leaves(out) if is_number(leaf)]

    return function


_ARGUMENTS = {
    "arrays": lambda x: x,
    "scalars": lambda x: np.ravel(x)[0],
    "arrays without axes": lambda x: np.array(np.ravel(x)[0]),
    "Python numbers": lambda x: np.ravel(x)[0].item(),
}


def _of_inexact(transform):
    """A transform of the inexact arguments alone, with the others as they are."""

    def run(f, args):
        moving = [k for k, arg in enumerate(args) if np.asarray(arg).dtype.kind in "fc"]

        def g(*point):
            full = list(args)
            for k, value in zip(moving, point, strict=True):
                full[k] = value
            return f(*full)

        return transform(g, tuple(args[k] for k in moving)) if moving else f(*args)

    return run


_TRANSFORMS = {
    "vjp": _of_inexact(lambda f, point: ft.vjp(f, *point)[0]),
    "jvp": _of_inexact(lambda f, point: ft.jvp(f, point, point)[0]),
    "linearize": _of_inexact(lambda f, point: ft.linearize(f, *point)[0]),
    "vmap": lambda f, args: ft.vmap(f, in_axes=None, out_axes=None, axis_size=2)(*args),
    "make_graph": lambda f, args: ft.make_graph(f)(*args)(*args),
    "jit": lambda f, args: ft.jit(f, backend="numpy")(*args),
    "native": lambda f, args: ft.jit(f)(*args),
    "jit of vjp": _of_inexact(
        lambda f, point: ft.jit(lambda *p: ft.vjp(f, *p)[0], backend="numpy")(*point)
    ),
    "vjp of jit": _of_inexact(lambda f, point: ft.vjp(ft.jit(f, backend="numpy"), *point)[0]),
    "cond in jit": lambda f, args: ft.jit(
        lambda c, *rest: ft.cond(c > 0, f, f, *rest), backend="numpy"
    )(1.0, *args),
    "checkpoint in jit": lambda f, args: ft.jit(ft.checkpoint(f), backend="numpy")(*args),
    "loop in jit": lambda f, args: ft.jit(
        lambda *rest: ft.fori_loop(0, 2, lambda i, c: f(*rest), f(*rest)), backend="numpy"
    )(*args),
}


_NUMBERS = ("float(", "complex(", "x.item", "x.tolist")


@pytest.mark.parametrize("kind", _ARGUMENTS)
@pytest.mark.parametrize("name", _TRANSFORMS)
@thin(10)
def test_every_numpy_call_gives_arrays_and_numbers_as_numpy_does(name, kind, step):
    wrong = []
    for call in list(_calls())[::step]:
        f = _of(call)
        args = tuple(_ARGUMENTS[kind](np.copy(arg)[()]) for arg in call.arguments(0))
        try:
            expected = forms(f(*args))
        except Exception:  # what NumPy does not do with such arguments
            continue
        try:
            found = forms(_TRANSFORMS[name](f, args))
        except ft.errors.FunctransError:
            continue
        if name == "jit of vjp" and call.source.startswith(_NUMBERS):
            # What is staged is a NumPy scalar instead of a Python number.
            expected, found = ([form[1:] for form in forms] for forms in (expected, found))
        if found != expected:
            wrong.append(f"{call.source}: {found}, not {expected}")
    assert not wrong, "\n".join(wrong)


_DTYPES = ["?", "b", "B", "h", "i", "l", "L", "e", "f", "d", "F", "D"]


@pytest.mark.parametrize("code", _DTYPES)
def test_compiled_ufuncs_give_the_dtypes_of_numpy(code):
    x = np.array([0, 1, 1], code)
    for ufunc in UFUNCS:
        if getattr(np, getattr(ufunc, "__name__", ""), None) is not ufunc or ufunc.nin > 1:
            continue
        for f in (lambda x, u=ufunc: u(x), lambda x, u=ufunc: u(x**2)):
            try:
                expected = forms(f(x))
            except TypeError:
                continue
            assert forms(ft.jit(f)(x)) == expected, ufunc
            assert forms(ft.make_graph(f)(x)(x)) == expected, ufunc


_REDUCTIONS = (
    np.sum,
    np.prod,
    np.mean,
    np.var,
    np.std,
    np.nansum,
    np.nanmean,
    np.nanvar,
    np.nanstd,
)


@pytest.mark.parametrize("dtype", [float, complex, int, np.int8, bool, np.float32, np.complex64])
@pytest.mark.parametrize("reduce", _REDUCTIONS)
def test_reductions_give_the_dtype_that_is_asked_for(reduce, dtype):
    for code in _DTYPES:
        x = np.array([1, 3, 0], code)
        for options in ({}, {"keepdims": True}):
            f = lambda x, options=options: reduce(x, dtype=dtype, **options)
            try:
                expected = f(x)
            except TypeError:
                continue
            found = ft.jit(f, backend="numpy")(x)
            assert forms(found) == forms(expected)
            np.testing.assert_allclose(found, expected, rtol=2e-3)


def test_a_square_of_booleans_has_the_dtype_of_numpys():
    flags = np.array([True, False])
    square = lambda b: b**2
    assert ft.jit(square)(flags).dtype == (flags**2).dtype
    assert ft.vmap(square)(flags).dtype == (flags[0] ** 2).dtype
    assert ft.vmap(square)(flags[None]).dtype == (flags**2).dtype


# Loops.

_BODIES = {
    "the carry": lambda c, r: (c + r, c),
    "a function of it": lambda c, r: (c + r, np.sqrt(c)),
    "a row": lambda c, r: (c * r, r),
    "no row": lambda c, r: (c + 1, {"twice": c * 2.0}),
}


@pytest.mark.parametrize("length", [1, 3])
@pytest.mark.parametrize("code", ["f", "d", "b", "l", "F"])
@pytest.mark.parametrize("start", [0, 0.0, np.float32(0), np.array(1.0), True])
@pytest.mark.parametrize("body", _BODIES)
def test_a_loop_has_one_dtype_eager_and_compiled(body, start, code, length):
    xs = np.ones(length, code)
    f = _BODIES[body]
    loops = {
        "scan": lambda xs: ft.scan(f, start, xs),
        "reverse": lambda xs: ft.scan(f, start, xs, reverse=True),
        "fori_loop": lambda xs: ft.fori_loop(0, length, lambda i, c: f(c, xs[0])[0], start),
        "while_loop": lambda xs: ft.while_loop(
            lambda s: s[0] < length, lambda s: (s[0] + 1, f(s[1], xs[0])[0]), (0, start)
        ),
    }
    for name, loop in loops.items():
        try:
            expected = forms(loop(xs))
        except ft.errors.CarryError:
            with pytest.raises(ft.errors.CarryError):
                ft.jit(loop, backend="numpy")(xs)
            continue
        assert forms(ft.jit(loop, backend="numpy")(xs)) == expected, name
        assert forms(ft.make_graph(loop)(xs)(xs)) == expected, name
        assert forms(ft.vmap(loop, in_axes=None, out_axes=None, axis_size=2)(xs)) == expected
        if xs.dtype.kind in "fc":
            assert forms(ft.vjp(loop, xs)[0]) == expected, name


def test_the_first_y_of_a_scan_takes_the_dtype_of_the_others():
    xs = np.ones(3, np.float32)
    total, before = ft.scan(lambda c, x: (c + x, c), 0, xs)
    assert total.dtype == before.dtype == np.float32
    np.testing.assert_array_equal(before, [0, 1, 2])


def test_the_body_of_a_loop_sees_an_array_that_it_keeps():
    seen = []

    def body(i, c):
        seen.append(isinstance(c, np.ndarray))
        return np.copy(c)

    ft.jit(lambda c: ft.fori_loop(0, 3, body, c), backend="numpy")(np.array(1.0))
    assert all(seen)


# Graphs.


def test_one_value_may_be_returned_as_a_number_and_as_an_array():
    def f(x):
        total = np.sum(x)
        return total, np.copy(total), np.sum(x)

    x = np.ones(3)
    for backend in ("numpy", "auto"):
        found = ft.jit(f, backend=backend)(x)
        assert forms(found) == forms(f(x))
        found[1][...] = 7.0  # an array of the caller's own
        assert found[0] == ft.jit(f, backend=backend)(x)[1] == 3.0


def test_stored_graphs_know_which_results_are_arrays():
    f = lambda x: (np.sum(x), np.copy(np.sum(x)))
    x = np.ones(3)
    graph = ft.make_graph(f)(x)
    file = io.BytesIO()
    graph.save(file)
    for other in (ft.load_graph(file), pickle.loads(pickle.dumps(graph))):
        assert forms(other(x)) == forms(f(x))


def test_numbers_in_a_list_are_points_for_histogramdd():
    f = lambda a, b: np.histogramdd([a, b], bins=2)[0]
    np.testing.assert_array_equal(ft.jvp(f, (1.0, 2.0), (1.0, 1.0))[0], f(1.0, 2.0))
