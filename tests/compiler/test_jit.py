"""jit: what passes eagerly passes compiled, under every transform, for every kind of array."""

import importlib
import inspect
import pickle
import pkgutil
import threading
import warnings
from functools import partial
from importlib.util import find_spec
from operator import attrgetter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
from functrans import grad, jit, vmap
from functrans.errors import InputTypeError, OptionError, RetraceWarning, StagingError
from tests.support import programs
from tests.support.cases import CASES, DIFFERENTIABLE
from tests.support.cases_numpy import NUMPY_CASES
from tests.support.marks import of_constants, one_in
from tests.support.oracles import assert_trees_close
from tests.support.random_programs import programs_in_place

BACKENDS = ["numpy", pytest.param("native", marks=pytest.mark.skipif(
    find_spec("llvmlite") is None, reason="there is no llvmlite"))]  # fmt: skip
on_both = pytest.mark.parametrize("backend", BACKENDS)
few = settings(max_examples=1)
STAGED = [case for case in [*CASES, *NUMPY_CASES] if not case.needs_values]
# The other half is in test_source.py, which runs code by the same writer. Native code has all of them,
# in test_native_laws.py.
STAGED_DERIVATIVES = [case for case in DIFFERENTIABLE if not case.needs_values][::2]


def draw(case, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1), label="seed"))
    return case.sample(rng, data.draw(case.shapes, label="shapes"))


def loss(w, x, y):
    return np.mean((np.tanh(x @ w) - y) ** 2)


ARGS = (np.linspace(-1, 1, 3), np.linspace(0, 1, 15).reshape(5, 3), np.linspace(1, 2, 5))


@pytest.mark.parametrize("case", STAGED, ids=attrgetter("name"))
@few
@given(data=st.data())
def test_a_compiled_function_gives_the_same_values(case, data):
    args = draw(case, data)
    expected = ft.make_graph(case.function)(*args)(*args)
    compiled = jit(case.function, backend="numpy")
    for _ in range(2):
        assert_trees_close(compiled(*args), expected, rtol=1e-12, atol=1e-14, dtypes=True)


@pytest.mark.parametrize("case", one_in(3, STAGED_DERIVATIVES), ids=attrgetter("name"))
@few
@given(data=st.data())
def test_compiled_derivatives_and_derivatives_of_compiled_functions(case, data):
    function, reals = case.of_reals(draw(case, data))

    def total(*reals):
        return sum(np.sum(np.real(leaf) ** 2) for leaf in ft.tree.leaves(function(*reals)))

    numbers = tuple(range(len(reals)))
    expected = grad(total, numbers)(*reals)
    options = {"rtol": 1e-9, "atol": 1e-12, "dtypes": True}
    compiled = partial(jit, backend="numpy")
    assert_trees_close(compiled(grad(total, numbers))(*reals), expected, **options)
    assert_trees_close(grad(compiled(total), numbers)(*reals), expected, **options)
    assert_trees_close(compiled(grad(compiled(total), numbers))(*reals), expected, **options)


@on_both
def test_jit_composes_with_every_transform_on_either_side(backend):
    jit = partial(ft.jit, backend=backend)
    w, x, y = ARGS
    rows = (x[:, None], y[:, None])
    expected = vmap(grad(loss), in_axes=(None, 0, 0))(w, *rows)
    for function in (
        jit(vmap(grad(loss), in_axes=(None, 0, 0))),
        vmap(jit(grad(loss)), in_axes=(None, 0, 0)),
        vmap(grad(jit(loss)), in_axes=(None, 0, 0)),
        jit(vmap(grad(jit(loss)), in_axes=(None, 0, 0))),
        jit(vmap(jit(grad(jit(loss))), in_axes=(None, 0, 0))),
    ):
        np.testing.assert_allclose(function(w, *rows), expected, rtol=1e-13)
        np.testing.assert_allclose(function(w, *rows), expected, rtol=1e-13)
    hessian = ft.hessian(loss)(*ARGS)
    for function in (jit(ft.hessian(loss)), ft.hessian(jit(loss)), jit(ft.hessian(jit(loss)))):
        np.testing.assert_allclose(function(*ARGS), hessian, rtol=1e-12)
    direction = np.ones(3)
    out, tangent = ft.jvp(jit(lambda w: loss(w, x, y)), (w,), (direction,))
    np.testing.assert_allclose((out, tangent), ft.jvp(lambda w: loss(w, x, y), (w,), (direction,)))
    _, pull = ft.vjp(jit(lambda w: loss(w, x, y)), w)
    np.testing.assert_allclose(pull(1.0)[0], grad(loss)(*ARGS))
    _, push = ft.linearize(jit(lambda w: loss(w, x, y)), w)
    np.testing.assert_allclose(push(direction), tangent)


def test_a_jitted_function_is_inlined_in_graphs():
    graph = ft.make_graph(lambda x: jit(np.sin)(x) * 2)(np.ones(2))
    assert [e.primitive.name for e in graph.equations] == ["sin", "multiply"]
    assert ft.eval_shape(jit(loss), *ARGS) == ft.ArraySpec((), float)


@on_both
def test_values_of_a_transform_around_are_not_kept(backend):
    jit = partial(ft.jit, backend=backend)

    def outer(x):
        inner = jit(lambda y: x * y)
        return inner(2.0) * inner(x)

    assert grad(outer)(3.0) == 6 * 3.0**2
    scale = []
    inner = jit(lambda y: scale[-1] * y)

    def through_a_global(x):
        scale.append(x)
        return inner(5.0)

    assert grad(through_a_global)(3.0) == 5.0
    scale.append(7.0)
    assert inner(5.0) == 35.0


@on_both
def test_named_axes(backend):
    jit = partial(ft.jit, backend=backend)

    def share(x):
        return x / ft.psum(x, "i")

    x = np.array([1.0, 3.0])
    np.testing.assert_allclose(vmap(jit(share), axis_name="i")(x), [0.25, 0.75])
    np.testing.assert_allclose(jit(vmap(share, axis_name="i"))(x), [0.25, 0.75])
    number = jit(lambda x: x + ft.axis_index("i"))
    np.testing.assert_allclose(vmap(number, axis_name="i")(x), [1.0, 4.0])
    np.testing.assert_allclose(vmap(number, axis_name="i")(np.zeros(3)), [0.0, 1.0, 2.0])


NEEDS_VALUES = {"k_means", "lu_pivoting", "natural_spline", "time_warping"}
NAMES = sorted(module.name for module in pkgutil.iter_modules(programs.__path__))


@on_both
@pytest.mark.parametrize("name", NAMES)
def test_programs(name, backend):
    jit = partial(ft.jit, backend=backend)
    module = importlib.import_module(f"tests.support.programs.{name}")
    args = module.example()
    if name in NEEDS_VALUES:
        with pytest.raises(StagingError, match=f"{name}.py"):
            jit(module.program)(*args)
        return
    expected = module.program(*args)
    np.testing.assert_allclose(jit(module.program)(*args), expected, rtol=1e-10)
    if backend == "numpy":
        np.testing.assert_allclose(ft.source(module.program)(*args).function(*args), expected)

    def loss(*args):
        return np.sum(
            module.program(*args) * np.linspace(1, 2, expected.size).reshape(expected.shape)
        )

    slope = grad(loss, argnums=tuple(range(len(args))))
    compiled = jit(slope)
    for _ in range(2):
        for one, other in zip(compiled(*args), slope(*args), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-11)


# Assignment in compiled code: arrays that nobody looks at again are changed in place.


def test_assignments_change_dead_arrays_in_place():
    def function(x):
        y = x * 2
        for k in range(3):
            y[k] = y[k + 1] + 1
        return y

    compiled = jit(function, backend="numpy")
    x = np.arange(5.0)
    assert compiled.trace(x).code.count("np_array") == 0
    np.testing.assert_array_equal(compiled(x), function(x.copy()))
    np.testing.assert_array_equal(compiled(x), function(x.copy()))


@on_both
@pytest.mark.parametrize(
    "function",
    [
        lambda x: _assigned(x, 0, 5.0),
        lambda x: (_assigned(y := x * 2, 0, 5.0), y.sum()),
        lambda x: (y := x * 2, np.sum(y[:2]) * 3, _assigned(y.copy(), 0, y[1]))[1:],
        lambda x: (y := x * 2, v := y[:2], s := np.sin(v), _assigned(y, 0, 9.0), s * 2, v)[3:],
        lambda x: (y := x * 2, first := y[0] * 3, _assigned(y, 0, 9.0), first)[2:],
        lambda x: (y := x + 1, z := y.copy(), _assigned(y, slice(1, None), y[:-1]), z)[2:],
        lambda x: (y := x + 1, _assigned(y, slice(None), y[::-1]))[1],
        lambda x: (y := x + 1, _assigned(y, np.array([0, 1]), y[:2][::-1]))[1],
        lambda x: (y := x.T, _assigned(y, 0, 1.0), x)[1:],
    ],
)
def test_assignments_are_seen_where_they_should_be(function, backend):
    x = np.linspace(1, 2, 4)
    found, expected = jit(function, backend=backend)(x), function(x.copy())
    for one, other in zip(ft.tree.leaves(found), ft.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other)
    np.testing.assert_array_equal(x, np.linspace(1, 2, 4))


def _assigned(x, index, value):
    x[index] = value
    return x


def test_large_results_are_freed_when_they_are_dead():
    def function(x):
        for _ in range(6):
            x = np.sin(x) * np.cos(x)
        return x

    x = np.ones(1 << 16)
    compiled = jit(function, backend="numpy")
    assert compiled.trace(x).code.count("del ") >= 4
    np.testing.assert_allclose(compiled(x), function(x))


# Tracing.


@pytest.mark.filterwarnings("ignore::functrans.errors.RetraceWarning")
@on_both
def test_one_trace_for_each_kind_of_arguments(backend):
    jit = partial(ft.jit, backend=backend)

    calls = []

    @jit
    def function(x, scale=1.0):
        calls.append(ft.numpy.shape(x))
        return x * scale

    function(np.ones(2)), function(np.zeros(2)), function(np.ones(2), 3.0)
    assert len(calls) == 2
    function(np.ones(2, np.float32)), function(np.ones((2, 1))), function(2.0), function(2)
    function(True), function(np.float64(2.0))
    assert len(calls) == 8
    function(np.ones(()))
    assert len(calls) == 9  # a NumPy scalar is not an array without axes


@on_both
def test_python_numbers_stay_weak(backend):
    jit = partial(ft.jit, backend=backend)
    half = jit(lambda x, s: x * s)(np.ones(2, np.float32), 0.5)
    assert half.dtype == np.float32
    assert type(jit(lambda x: x * 2)(1.5)) is float
    assert jit(lambda x: x / 2)(3) == 1.5


@on_both
def test_containers(backend):
    jit = partial(ft.jit, backend=backend)

    @jit
    def step(params, data, *, rate):
        return {"w": params["w"] - rate * data[0], "rest": [params["rest"], None]}

    params = {"w": np.ones(2), "rest": (np.zeros(3), 1.0)}
    found = step(params, (np.ones(2), 3), rate=0.5)
    expected = {"w": np.full(2, 0.5), "rest": [(np.zeros(3), 1.0), None]}
    assert_trees_close(found, expected)


@on_both
def test_static_arguments(backend):
    jit = partial(ft.jit, backend=backend)

    @jit(static_argnums=1, static_argnames="flip")
    def power(x, n, flip=False):
        for _ in range(n):
            x = x * x
        return -x if flip else x

    assert power(2.0, 3) == 256.0
    assert power(2.0, n=2) == 16.0
    assert power(2.0, 1, True) == power(2.0, 1, flip=True) == -4.0
    assert jit(lambda x, n: x * n, static_argnums=(-1,))(2.0, 3) == 6.0
    with pytest.raises(InputTypeError, match="hashable"):
        power(2.0, [3])


@on_both
def test_equal_static_values_of_different_types_are_different(backend):
    jit = partial(ft.jit, backend=backend)
    typed = jit(lambda x, n: x * (2.0 if type(n) is float else 3.0), static_argnums=1)
    assert (typed(1.0, 1), typed(1.0, 1.0), typed(1.0, True)) == (3.0, 2.0, 3.0)


@on_both
def test_methods(backend):
    jit = partial(ft.jit, backend=backend)

    class Model:
        def __init__(self, scale):
            self.scale = scale

        @jit(static_argnums=0)
        def __call__(self, x):
            return x * self.scale

        apply = jit(lambda self, x: x + self.scale, static_argnums=0)

    assert Model(2.0).apply(1.0) == 3.0
    assert Model(3.0)(2.0) == 6.0


@on_both
def test_trace_tells_what_was_compiled(backend):
    jit = partial(ft.jit, backend=backend)
    traced = jit(grad(loss)).trace(*ARGS)
    assert len(traced.optimized.equations) < len(traced.graph.equations)
    if backend == "numpy":
        assert "np_tanh" in traced.code and traced.code.startswith("def compiled(")
        assert traced.kernels == 9
    else:
        assert "@ft_tanh" in traced.code and "define ptr @entry(" in traced.code
        assert 2 <= traced.kernels < 8  # two matrix products, and loops that hold the rest
    assert traced.flops > 60 and traced.bytes > 100
    assert traced.compile_seconds > 0 and traced.trace_seconds > 0
    product = jit(np.matmul).trace(ft.ArraySpec((20, 30), float), ft.ArraySpec((30, 4), float))
    assert product.flops == 2 * 20 * 30 * 4


def test_many_traces_warn_and_name_the_argument():
    function = jit(lambda x, y: x.sum() + y)
    with pytest.warns(RetraceWarning, match=r"the argument x came as float64\[1\], float64\[2\]"):
        for n in range(1, 20):
            function(np.ones(n), 1.0)
    counted = jit(lambda x, n: x * n, static_argnames=["n"])
    with pytest.warns(RetraceWarning, match="the argument n came as the static value 0"):
        for n in range(20):
            counted(1.0, n)


def test_a_few_traces_do_not_warn():
    function = jit(lambda x: x * 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(8):
            function(np.ones(n))


# Errors.


@on_both
def test_branches_on_values_name_the_line(backend):
    jit = partial(ft.jit, backend=backend)

    @jit
    def absolute(x):
        if x > 0:
            return x
        return -x

    with pytest.raises(StagingError, match=r"test_jit.py, line \d+, in absolute: `if x > 0:`"):
        absolute(1.0)
    with pytest.raises(StagingError, match=r"np\.where\(x > 0, x, 0\.0\)"):
        jit(lambda x: jit(lambda x: x[x > 0])(x))(np.ones(2))
    with pytest.raises(StagingError, match="jit traces") as caught:
        jit(lambda n: jit(lambda size: np.zeros(size))(n))(2)
    assert str(caught.value).endswith(
        "Make size a static argument: jit(f, static_argnames='size')."
    )
    with pytest.raises(StagingError):
        grad(jit(lambda x: x * float(x)))(2.0)


def test_wrong_arguments_and_options():
    with pytest.raises(InputTypeError, match=r"an argument is a str \('left'\).*static_argnums"):
        jit(lambda x, name: x)(1.0, "left")
    with pytest.raises(InputTypeError):
        jit(lambda x: x)(np.array(["left"]))
    with pytest.raises(InputTypeError):
        jit(3)
    with pytest.raises(OptionError, match="backend"):
        jit(loss, backend="cuda")
    with pytest.raises(
        OptionError, match=r"static_argnames names 'rate', .* are w, x, y, at test_jit"
    ):
        jit(loss, static_argnames=["rate"])
    with pytest.raises(OptionError, match="static_argnums names 3"):
        jit(loss, static_argnums=(0, 3))
    jit(lambda *args, **options: 1.0, static_argnums=7, static_argnames="any")


@on_both
def test_numpy_says_what_is_wrong(backend):
    jit = partial(ft.jit, backend=backend)
    with pytest.raises(np.linalg.LinAlgError):
        jit(np.linalg.cholesky)(-np.eye(2))
    with pytest.raises(ValueError):
        jit(loss)(np.ones(2), np.ones((5, 3)), np.ones(5))


# Memory.


@on_both
def test_results_are_the_callers_own(backend):
    jit = partial(ft.jit, backend=backend)

    table = np.arange(3.0)
    function = jit(lambda x: (x, x.T, x * 1, table, table[::-1], np.sin(x), 1 * np.sin(x)))
    x = np.ones((2, 3))
    results = function(x)
    for k, result in enumerate(results):
        assert not np.shares_memory(result, x)
        for other in results[k + 1 :]:
            assert not np.shares_memory(result, other)
        result[...] = 99.0
    np.testing.assert_array_equal(x, 1.0)
    np.testing.assert_array_equal(function(x)[3], [0.0, 1.0, 2.0])


@on_both
def test_arguments_are_not_changed(backend):
    jit = partial(ft.jit, backend=backend)

    @jit
    def function(x):
        x[0] = 5.0
        x *= 2
        return x

    x = np.ones(3)
    np.testing.assert_array_equal(function(x), [10.0, 2.0, 2.0])
    np.testing.assert_array_equal(x, 1.0)


def odd_arrays():
    base = np.arange(24.0).reshape(4, 6) / 10
    yield base[::2, ::-3]
    yield base.T
    yield np.broadcast_to(base[0], (3, 6))
    yield base.astype(">f8")
    yield base.astype(np.float16)
    yield base.astype(np.complex64)
    yield np.zeros((0, 3))
    yield np.float32(2.5)
    yield np.array(1.5)
    yield np.frombuffer(b"\0" + base.tobytes(), np.uint8)[1:].view(np.float64).reshape(4, 6)
    frozen = base.copy()
    frozen.flags.writeable = False
    yield frozen
    yield np.lib.stride_tricks.sliding_window_view(base[0], 3)


@on_both
@pytest.mark.parametrize("x", list(odd_arrays()), ids=lambda x: f"{x.dtype.str}{x.shape}")
def test_arrays_of_every_kind(x, backend):
    jit = partial(ft.jit, backend=backend)

    def function(x):
        return np.sin(x) * x + x.sum(), np.exp(x).T, x.reshape(-1)[:1]

    before = x.copy()
    for found, expected in zip(jit(function)(x), function(x), strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-3 if x.dtype == "f2" else 1e-6)
    np.testing.assert_array_equal(x, before)


def test_memory_maps(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(4.0))
    x = np.load(tmp_path / "x.npy", mmap_mode="r")
    found = jit(lambda x: x * 2)(x)
    np.testing.assert_array_equal(found, [0.0, 2.0, 4.0, 6.0])


# Threads and processes.


def test_eight_threads_compile_and_call_the_same_functions():
    functions = [jit(grad(loss)), grad(jit(loss)), jit(vmap(jit(np.tanh)))]
    expected = grad(loss)(*ARGS)
    start = threading.Barrier(8)
    failures = []

    def work():
        try:
            start.wait()
            for _ in range(20):
                np.testing.assert_allclose(functions[0](*ARGS), expected)
                np.testing.assert_allclose(functions[1](*ARGS), expected)
                np.testing.assert_allclose(functions[2](ARGS[0]), np.tanh(ARGS[0]))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@jit
def decorated(x):
    return np.sin(x) * 2


def test_jitted_functions_pickle():
    again = pickle.loads(pickle.dumps(decorated))
    assert again is decorated
    again = pickle.loads(pickle.dumps(jit(loss, static_argnums=(), static_argnames=[])))
    np.testing.assert_allclose(again(*ARGS), loss(*ARGS))
    assert pickle.loads(pickle.dumps(jit(np.sin)))(0.0) == 0.0


def test_the_name_and_docstring_are_kept():
    assert decorated.__name__ == "decorated"
    assert jit(np.sin).__doc__.endswith(inspect.cleandoc(np.sin.__doc__))


@of_constants
@settings(max_examples=60)
@given(program=programs_in_place())
def test_random_programs_with_assignments_and_views(program):
    jit = partial(ft.jit, backend="numpy")
    (x,) = program.arguments(0)
    before = x.copy()
    expected = program.run(x.copy())

    def last(x):  # what is not shown may be changed in place
        return program.run(x)[-1]

    for function, wanted in ((program.run, expected), (last, expected[-1])):
        try:
            found = jit(function)(x)
        except StagingError:  # the program looks at a value
            return
        assert_trees_close(found, wanted, rtol=1e-12, atol=1e-12)
        written = ft.source(function)(x).function(x.copy())
        assert_trees_close(written, wanted, rtol=1e-12, atol=1e-12)

    def loss(x):
        return np.sum(last(x) ** 2)

    assert_trees_close(jit(grad(loss))(x), grad(loss)(x), rtol=1e-9, atol=1e-10)
    assert_trees_close(grad(jit(loss))(x), grad(loss)(x), rtol=1e-9, atol=1e-10)
    np.testing.assert_array_equal(x, before)


@on_both
def test_subclasses_that_compute_plainly_are_taken_as_plain_arrays(backend):
    jit = partial(ft.jit, backend=backend)

    class Labeled(np.ndarray):
        def __array_finalize__(self, source):
            self.label = getattr(source, "label", "none")

    class Odd(np.ndarray):
        def __mul__(self, other):
            raise AssertionError

    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    square = jit(lambda x: x * x)
    for array in (x.view(Labeled), x, x.view(Labeled)):
        found = square(array)
        assert type(found) is np.ndarray
        np.testing.assert_array_equal(found, x * x)
    with pytest.raises(InputTypeError, match="class Odd, which computes in its own way"):
        square(x.view(Odd))


@on_both
def test_functions_of_nothing_and_results_without_arrays(backend):
    jit = partial(ft.jit, backend=backend)
    np.testing.assert_array_equal(jit(lambda: np.arange(3) * 2)(), [0, 2, 4])
    assert jit(lambda x: (None, 3.0, ()))(1.0) == (None, 3.0, ())


@on_both
def test_python_arithmetic_stays_pythons(backend):
    jit = partial(ft.jit, backend=backend)
    assert jit(lambda n: n * 10**10)(10**10) == 10**20
    with pytest.raises(ZeroDivisionError):
        jit(lambda x: x / 0.0)(1.0)
    with np.errstate(divide="ignore"):
        assert jit(lambda x: np.divide(x, 0.0))(1.0) == np.inf


@on_both
def test_long_functions(backend):
    jit = partial(ft.jit, backend=backend)

    def function(x):
        for _ in range(2000):
            x = np.sin(x) * 1.1 + 0.01
        return x

    assert jit(function)(0.5) == pytest.approx(function(0.5))
    assert jit(grad(function))(0.5) == pytest.approx(grad(function)(0.5))


# Control flow, checkpoints and custom rules are equations that hold functions.


def _scanned_and_chosen(x):
    def body(carry, t):
        return np.sin(carry) + t, carry * 2

    carry, ys = ft.scan(body, x, np.arange(3.0))
    chosen = ft.cond(np.sum(carry) > 0, lambda v: v * 2, lambda v: -v, carry)
    return np.sum(chosen + ys.sum(axis=0))


def _repeated(x):
    return np.sum(ft.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x), (0, x))[1])


def _checkpointed(x):
    return np.sum(ft.checkpoint(lambda x: np.tanh(x) * x)(x))


@on_both
@pytest.mark.parametrize("function", [_scanned_and_chosen, _repeated, _checkpointed])
def test_control_flow_and_checkpoints_compile(function, backend):
    jit = partial(ft.jit, backend=backend)
    x = np.array([0.3, 0.4])
    gradient = ft.grad(function)(x)
    np.testing.assert_allclose(jit(function)(x), function(x), rtol=1e-14)
    np.testing.assert_allclose(jit(ft.grad(function))(x), gradient, rtol=1e-13)
    np.testing.assert_allclose(ft.grad(jit(function))(x), gradient, rtol=1e-13)


@on_both
def test_a_custom_rule_is_used_when_compiled(backend):
    jit = partial(ft.jit, backend=backend)
    square = ft.custom_jvp(lambda x: x * x)
    square.defjvp(lambda primals, tangents: (primals[0] ** 2, 7.0 * tangents[0]))
    assert jit(square)(3.0) == 9.0
    assert jit(ft.grad(square))(3.0) == 7.0
