"""functrans.numpy: NumPy's names on arrays and on traced values, and the array API standard."""

import copy
import inspect
import os
import pickle
import subprocess
import sys
import types
import warnings

import array_api_compat
import array_api_extra as xpx
import array_api_strict
import numpy as np
import pytest
from hypothesis import Phase, find, settings
from hypothesis.errors import NoSuchExample

import functrans as ft
import functrans.numpy as fnp
from functrans.errors import ArrayConversionError
from tests.support import ROOT, cases, cases_numpy
from tests.support.array_api_calls import ARRAYS, CALLS, NEED_VALUES
from tests.support.everywhere import check_everywhere
from tests.support.oracles import assert_trees_close, leaves, map_leaves, numerical_jvp

VECTOR = np.array([0.5, -1.25, 2.0])
DIRECTION = np.array([1.0, 0.5, -0.25])


def transformed(function, x):
    """The value of a function of one array under every transform, and without one."""
    yield function(x)
    yield ft.jvp(function, (x,), (np.ones_like(x),))[0]
    yield ft.vjp(function, x)[0]
    yield map_leaves(lambda leaf: leaf[0], ft.vmap(function)(x[None]))
    yield ft.make_graph(function)(x)(x)


# Names.


@pytest.mark.parametrize("module", ["", "linalg", "fft"])
def test_every_public_name_of_numpy_is_there(module):
    theirs = getattr(np, module) if module else np
    ours = getattr(fnp, module) if module else fnp
    public = {name for name in dir(theirs) if not name.startswith("_")} | set(theirs.__all__)
    for name in public:
        assert hasattr(ours, name), name
    assert set(theirs.__all__) <= set(ours.__all__) == set(dir(ours))


def test_what_is_no_function_is_that_of_numpy():
    for name in (
        "pi",
        "newaxis",
        "float64",
        "ndarray",
        "random",
        "polynomial",
        "errstate",
        "ufunc",
    ):
        assert getattr(fnp, name) is getattr(np, name)


def test_names_can_be_imported():
    names = {}
    exec("from functrans.numpy import *", names)
    assert names["sin"] is fnp.sin and names["linalg"] is fnp.linalg
    exec("from functrans.numpy import cos as c; import functrans.numpy.linalg as la", names)
    assert names["c"](0.0) == 1.0 and names["la"].det is fnp.linalg.det


def test_a_name_that_numpy_has_not_is_missed_like_any():
    for module in (fnp, fnp.linalg, fnp.fft):
        with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute"):
            module.no_such_name
    assert not hasattr(fnp.linalg, "__path__")  # Python would look for modules there


def test_functions_tell_what_they_are():
    assert fnp.sum.__name__ == "sum" and "axis" in inspect.signature(fnp.sum).parameters
    assert fnp.dot.__doc__.startswith(np.dot.__doc__[:40])
    assert (fnp.hypot.nin, fnp.hypot.identity, fnp.add.identity) == (2, 0, 0)


@pytest.mark.parametrize("name", ["sum", "sin", "zeros", "array", "linalg.norm", "fft.rfft"])
def test_functions_can_be_pickled_and_copied(name):
    function = fnp
    for part in name.split("."):
        function = getattr(function, part)
    assert pickle.loads(pickle.dumps(function)) is function
    assert copy.deepcopy(function) is function


# The same code, by another name.


def other_cases(name):
    """The cases of a module, written with `import functrans.numpy as np`."""
    source = (ROOT / "tests" / "support" / f"{name}.py").read_text()
    source = source.replace("import numpy as np", "import functrans.numpy as np")
    source = source.replace("from tests.support import cases\n", "import other_cases as cases\n")
    source = source.replace("from tests.support.cases import", "from other_cases import")
    module = types.ModuleType(f"other_{name}")
    sys.modules[module.__name__] = module
    exec(compile(source, f"{module.__name__}.py", "exec"), module.__dict__)
    return module


PAIRS = [
    *zip(cases.CASES, other_cases("cases").CASES, strict=True),
    *zip(cases_numpy.NUMPY_CASES, other_cases("cases_numpy").NUMPY_CASES, strict=True),
]


def pair_name(value):
    return value[0].name


def arguments(case):
    def with_axes(shapes):
        return all(shape and 0 not in shape for shape in shapes)

    quickly = settings(phases=[Phase.generate], derandomize=True, database=None)
    try:
        shapes = find(case.shapes, with_axes, settings=quickly)
    except NoSuchExample:
        shapes = find(case.shapes, lambda shapes: True, settings=quickly)
    return case.sample(np.random.default_rng(3), shapes)


@pytest.mark.parametrize("pair", PAIRS, ids=pair_name)
def test_code_written_with_this_namespace_computes_the_same(pair):
    theirs, ours = pair
    args = arguments(theirs)
    expected = theirs.function(*args)
    assert_trees_close(ours.function(*args), expected, dtypes=True)
    if not theirs.differentiable:
        return
    function, reals = theirs.of_reals(args)
    same, _ = ours.of_reals(args)
    tangents = tuple(np.cos(np.arange(real.size)).reshape(real.shape) for real in reals)
    expected = ft.jvp(function, reals, tangents)
    assert_trees_close(ft.jvp(same, reals, tangents), expected, dtypes=True)

    def nested(x):
        return [nested(row) for row in x] if np.ndim(x) else x

    try:
        of_lists = theirs.function(*map(nested, args))
        assert_trees_close(of_lists, expected[0])
    except Exception:
        return  # it does not take lists, or means something else by them
    if theirs.name in OF_LISTS_ELSEWHERE:
        return
    assert_trees_close(ft.jvp(lambda *x: same(*map(nested, x)), reals, tangents), expected)


# Operators with a list on one side, and functions of modules that are NumPy's own.
OF_LISTS_ELSEWHERE = {
    *(f"{name} times x" for name in ("floor", "ceil", "trunc", "rint", "sign")),
    *(f"array {operator} x" for operator in ("+", "-", "*", "/", "**", "@", "%")),
    *("heaviside times y", "x / array", "np.imag", "zeros_like"),
    *("sliding_window_view", "sliding_window_view axes"),
    *(f"emath.{name}" for name in ("sqrt", "log", "arcsin", "power")),
}


# Lists of traced values, and arguments that NumPy does not ask.

TABLE = np.array([10.0, 20.0, 30.0, 40.0])
OF_LISTS = {
    "sum": lambda xp, x: xp.sum([x[0], x[1] * x[2], 1.0]),
    "max of a tuple": lambda xp, x: xp.max((x[0], x[2])),
    "dot": lambda xp, x: xp.dot([x[0], 1.0, 2], VECTOR),
    "ufunc": lambda xp, x: xp.exp([x[0], [x[1]][0]]),
    "ufunc of two": lambda xp, x: xp.arctan2([x[0], x[1]], x[2]),
    "ufunc out": lambda xp, x: xp.add([x[0], x[1]], [1, 2], dtype=float),
    "ufunc.reduce": lambda xp, x: xp.multiply.reduce([x[0], x[1], x[2]]),
    "ufunc.outer": lambda xp, x: xp.subtract.outer([x[0], x[1]], x),
    "linalg": lambda xp, x: xp.linalg.norm([x[0], x[1]]),
    "matrix": lambda xp, x: xp.linalg.det([[x[0], 1.0], [x[1], x[2]]]),
    "fft": lambda xp, x: xp.fft.rfft([x[0], x[1], 0.0, 1.0]),
    "keyword": lambda xp, x: xp.average(VECTOR, weights=[x[0], 4.0, x[2]]),
    "ragged parts": lambda xp, x: xp.concatenate([[x[0]], [1.0, x[1]], x]),
    "scalars": lambda xp, x: xp.hstack([x[0], 1.0, x[2]]),
    "block": lambda xp, x: xp.block([[x[:2], 1.0], [2.0, x[1:]]]),
    "where": lambda xp, x: xp.where([True, False], [x[0], x[1]], 0.0),
    "select": lambda xp, x: xp.select([x > 1, x > 0], [[x[0], 1.0, x[2]], x], 7.0),
    "clip": lambda xp, x: xp.clip(VECTOR, [x[1], x[1] + 1.0, 0.0], x[2] - 1.0),
    "interp": lambda xp, x: xp.interp([0.25, 0.75], [0.0, 1.0], [x[0], x[1]]),
    "shape": lambda xp, x: xp.reshape([x[0], x[1], x[2], x[0]], (2, 2)),
    "array": lambda xp, x: xp.array([[x[0], 1], [2, x[1] * x[2]]]),
    "array of rows": lambda xp, x: xp.array([x, VECTOR, [1, 2, x[0]]]),
    "array dtype": lambda xp, x: xp.array([x[0], 1], dtype=np.complex64),
    "array ndmin": lambda xp, x: xp.array([x[0], 1], ndmin=3),
    "asarray": lambda xp, x: xp.asarray((x[0], x[1]), dtype=complex),
    "ascontiguousarray": lambda xp, x: xp.ascontiguousarray(x[0]),
    "asanyarray": lambda xp, x: xp.asanyarray([x, x]),
    "asarray_chkfinite": lambda xp, x: xp.asarray_chkfinite([x[0], x[1]]),
    "fromiter": lambda xp, x: xp.fromiter((x[k] ** 2 for k in range(3)), float, 2),
    "r_": lambda xp, x: xp.r_[x, 0:2, x[0], 5, [1.0, 2.0]],
    "r_ directive": lambda xp, x: xp.r_["0,2", x, VECTOR],
    "c_": lambda xp, x: xp.c_[x, VECTOR, x * x],
    "full": lambda xp, x: xp.full((2, 2), x[1]),
    "pad": lambda xp, x: xp.pad(VECTOR, 1, constant_values=x[0]),
    "take": lambda xp, x: xp.take(TABLE, [1, 2]) * x[:2],
    "ndenumerate": lambda xp, x: [k[0] * value for k, value in xp.ndenumerate(x)],
    "linspace": lambda xp, x: xp.linspace([x[0], 0.0], x[2], 4),
    "meshgrid": lambda xp, x: xp.meshgrid([x[0], x[1]], VECTOR),
    "polyval": lambda xp, x: xp.polyval([x[0], 1.0, x[2]], 2.0),
}


@pytest.mark.parametrize("function", OF_LISTS.values(), ids=OF_LISTS)
def test_traced_values_are_found_in_lists_and_options(function):
    expected = function(np, VECTOR)
    tangent = numerical_jvp(lambda x: function(np, x), (VECTOR,), (DIRECTION,))
    needs_values = function is OF_LISTS["asarray_chkfinite"]

    def ours(x):
        return function(fnp, x)

    value, derivative = ft.jvp(ours, (VECTOR,), (DIRECTION,))
    assert_trees_close(value, expected, dtypes=True)
    assert_trees_close(derivative, tangent, rtol=1e-4, atol=1e-6)
    out, pull = ft.vjp(ours, VECTOR)
    weights = map_leaves(lambda leaf: np.ones(np.shape(leaf), np.asarray(leaf).dtype), out)
    (gradient,) = pull(weights)
    pushed = sum(np.sum(leaf) for leaf in leaves(derivative))
    np.testing.assert_allclose(gradient @ DIRECTION, np.real(pushed), rtol=1e-5)
    lanes = ft.vmap(ours)(np.stack([VECTOR, VECTOR + 0.125]))
    assert_trees_close(map_leaves(lambda leaf: leaf[0], lanes), expected, dtypes=True)
    assert_trees_close(map_leaves(lambda leaf: leaf[1], lanes), function(np, VECTOR + 0.125))
    if not needs_values:
        assert_trees_close(ft.make_graph(ours)(VECTOR)(VECTOR), expected, dtypes=True)
    assert_trees_close(ours(VECTOR), expected, dtypes=True)


def test_second_derivatives_through_lists():
    def function(x):
        return fnp.linalg.norm([x[0] * x[1], x[2], 1.0]) + fnp.prod([x[0], x[1], x[1]])

    def plain(x):
        return np.linalg.norm(np.stack([x[0] * x[1], x[2], 1.0])) + x[0] * x[1] * x[1]

    np.testing.assert_allclose(ft.hessian(function)(VECTOR), ft.hessian(plain)(VECTOR))


def test_traced_indices_pick_from_plain_arrays():
    rows = np.array([[0, 2], [1, 3]])
    picked = ft.vmap(lambda i: fnp.take(TABLE, i))(rows)
    np.testing.assert_array_equal(picked, TABLE[rows])
    picked = ft.make_graph(lambda i: fnp.take(TABLE, i, axis=0))(rows)(rows)
    np.testing.assert_array_equal(picked, TABLE[rows])


def test_whole_numbers_in_a_tuple_remain_a_shape():
    def function(n):
        return fnp.broadcast_to(fnp.ones(2), (n, 2)).sum() + fnp.reshape(TABLE, (n, 4 // n)).sum()

    assert_trees_close(ft.vmap(function)(np.array([2, 4])), np.array([104.0, 108.0]))


@pytest.mark.usefixtures("without_hooks")
def test_numpy_itself_still_refuses_lists():
    with pytest.raises(ArrayConversionError):
        ft.grad(lambda x: np.sum([x, x]))(1.0)


def test_ragged_lists_are_refused():
    with pytest.raises(ValueError):
        ft.grad(lambda x: fnp.array([[x, 1.0], [x]]).sum())(1.0)


def test_copy_false_is_refused_where_a_copy_is_needed():
    def function(x):
        assert fnp.array(x, copy=False) is x
        with pytest.raises(ValueError, match="copy"):
            fnp.array([x, x], copy=False)
        with pytest.raises(ValueError, match="copy"):
            fnp.asarray(x, dtype=np.float32, copy=False)
        return np.sum(fnp.asarray(x, copy=True))

    ft.grad(function)(VECTOR)


# Sequences.


def test_arange_of_traced_values():
    def function(xp, x):
        return xp.arange(x[0], x[2] + 1, x[0] / 2)

    expected = function(np, VECTOR)
    value, tangent = ft.jvp(lambda x: function(fnp, x), (VECTOR,), (DIRECTION,))
    assert_trees_close(value, expected, dtypes=True)
    steps = np.arange(len(expected))
    assert_trees_close(tangent, DIRECTION[0] + steps * DIRECTION[0] / 2)
    assert_trees_close(
        ft.vmap(lambda n: fnp.arange(n, n + 3))(np.array([1, 5])),
        np.array([[1, 2, 3], [5, 6, 7]]),
        dtypes=True,
    )
    for arguments in ((3,), (3.0,), (1, 3), (0.5, 3), (5, 0, -2), (3, 0)):
        got = ft.vmap(lambda *a: fnp.arange(*a))(*(np.array([a]) for a in arguments))
        assert_trees_close(got[0], np.arange(*arguments), dtypes=True)


# Arrays to be assigned.

MAKERS = {
    "zeros": lambda xp: xp.zeros(5),
    "zeros dtype": lambda xp: xp.zeros((5,), dtype=np.float32),
    "ones": lambda xp: xp.ones(5),
    "empty": lambda xp: xp.empty(5) * 0,
    "full": lambda xp: xp.full(5, 2.5),
    "zeros_like": lambda xp: xp.zeros_like(np.arange(5.0)),
    "ones_like": lambda xp: xp.ones_like(np.arange(5.0)),
    "full_like": lambda xp: xp.full_like(np.arange(5.0), 3.0),
    "copy": lambda xp: xp.copy(np.arange(5.0)),
    "array": lambda xp: xp.array([1.0, 2.0, 3.0, 4.0, 5.0]),
    "array of an array": lambda xp: xp.array(np.arange(5.0)),
    "asarray": lambda xp: xp.asarray([1.0, 2.0, 3.0, 4.0, 5.0]),
    "ascontiguousarray": lambda xp: xp.ascontiguousarray([1.0, 2.0, 3.0, 4.0, 5.0]),
    "arange": lambda xp: xp.arange(5.0),
    "linspace": lambda xp: xp.linspace(0.0, 1.0, 5),
    "linspace retstep": lambda xp: xp.linspace(0.0, 1.0, 5, retstep=True)[0],
    "logspace": lambda xp: xp.logspace(0.0, 1.0, 5),
    "geomspace": lambda xp: xp.geomspace(1.0, 2.0, 5),
    "eye": lambda xp: xp.eye(5)[2],
    "identity": lambda xp: xp.identity(5)[2],
    "tri": lambda xp: xp.tri(5)[2],
    "meshgrid": lambda xp: xp.meshgrid(np.arange(5.0), np.arange(5.0))[0][1],
    "mgrid": lambda xp: xp.mgrid[0.0:5.0],
    "r_": lambda xp: xp.r_[0.0:5.0],
    "fromiter": lambda xp: xp.fromiter(range(5), float),
    "tile": lambda xp: xp.tile(0.5, 5),
    "repeat": lambda xp: xp.repeat(0.5, 5),
    "diag": lambda xp: xp.diag(np.arange(5.0))[1],
    "fftfreq": lambda xp: xp.fft.fftfreq(5),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_new_arrays_may_be_assigned_traced_values(make):
    def filled(xp):
        def function(x):
            y = make(xp)
            y[1:3] = x[:2]
            y[3] += x[2] * y[1]
            view = y[::2]
            view *= 2
            return y

        return function

    check = filled(fnp)
    expected = filled(np)(VECTOR)
    for value in transformed(check, VECTOR):
        assert_trees_close(value, expected, dtypes=True)
    tangent = ft.jvp(check, (VECTOR,), (DIRECTION,))[1]
    tolerance = {"rtol": 1e-2, "atol": 1e-3} if expected.dtype == np.float32 else {}
    numerical = numerical_jvp(filled(np), (VECTOR,), (DIRECTION,))
    assert_trees_close(tangent, numerical, **tolerance)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_outside_a_transform_arrays_are_plain(make):
    assert type(make(fnp)) is np.ndarray


def test_programs_that_fill_arrays_have_all_derivatives():
    def cumulated(x):
        np = fnp
        out = np.zeros((2, 3))
        out[0, :] = np.cumsum([x[0], x[1], x[2]])
        for k in range(3):
            out[1, k] = np.sin(out[0, k]) * x[k]
        grid = np.linspace(0.0, 1.0, 3)
        grid[-1] = x[0]
        return [out, np.outer(grid, [x[1], 2.0])]

    check_everywhere(cumulated, VECTOR)


def test_asarray_of_a_plain_array_is_that_array():
    data = np.arange(3.0)

    def function(x):
        for convert in (fnp.asarray, fnp.asanyarray, fnp.ascontiguousarray):
            assert convert(data) is data
        fnp.asarray(data)[0] = 5.0
        return x * data[0]

    assert ft.grad(function)(2.0) == 5.0
    assert data[0] == 5.0


# The array API standard.

STANDARD = {
    name
    for name in array_api_strict.__all__
    if inspect.isfunction(getattr(array_api_strict, name)) and "flags" not in name
} - {"__array_namespace_info__", "isin", "broadcast_shapes"}  # the last two are of 2025.12
STANDARD |= {f"linalg.{name}" for name in array_api_strict.linalg.__all__} - {
    "linalg.eig",
    "linalg.eigvals",
}
STANDARD |= {f"fft.{name}" for name in array_api_strict.fft.__all__}


def find_in(namespace, name):
    for part in name.split("."):
        namespace = getattr(namespace, part)
    return namespace


def test_every_function_of_the_standard_is_tried():
    assert set(CALLS) == STANDARD


@pytest.mark.parametrize("name", sorted(STANDARD))
def test_functions_take_the_arguments_of_the_standard(name):
    wanted = inspect.signature(find_in(array_api_strict, name)).parameters.values()
    signature = inspect.signature(find_in(fnp, name))
    parameters = signature.parameters
    kinds = {parameter.kind for parameter in parameters.values()}
    for parameter in wanted:
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.VAR_KEYWORD not in kinds:
            assert parameter.name in parameters, signature
    if inspect.Parameter.VAR_POSITIONAL not in kinds:
        positional = [p for p in parameters.values() if p.kind is not p.KEYWORD_ONLY]
        assert len(positional) >= sum(p.kind is not p.KEYWORD_ONLY for p in wanted), signature


@pytest.mark.parametrize("name", sorted(STANDARD))
def test_functions_of_the_standard_on_traced_arrays(name):
    call = CALLS[name]
    strict = {key: array_api_strict.asarray(value) for key, value in ARRAYS.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = list(map(np.asarray, leaves(call(array_api_strict, strict))))

    def ours(arrays):
        return leaves(call(arrays["x"].__array_namespace__(), arrays))

    results = [
        leaves(call(fnp, ARRAYS)),
        ft.jvp(lambda x: ours({**ARRAYS, "x": x}), (ARRAYS["x"],), (ARRAYS["y"],))[0],
        [leaf[0] for leaf in ft.vmap(ours)({key: value[None] for key, value in ARRAYS.items()})],
    ]
    if name not in NEED_VALUES:
        results.append(ft.make_graph(ours)(ARRAYS)(ARRAYS))
    for result in results:
        assert_trees_close(list(map(np.asarray, result)), expected, dtypes=True)


def test_results_with_names():
    def function(s):
        xp = s.__array_namespace__()
        fields = [
            *(xp.linalg.eigh(s)._fields, xp.linalg.qr(s)._fields, xp.linalg.slogdet(s)._fields),
            *(xp.linalg.svd(s)._fields, xp.unique_all(s)._fields, xp.unique_counts(s)._fields),
            xp.unique_inverse(s)._fields,
        ]
        assert fields == [
            *(("eigenvalues", "eigenvectors"), ("Q", "R"), ("sign", "logabsdet")),
            *(("U", "S", "Vh"), ("values", "indices", "inverse_indices", "counts")),
            *(("values", "counts"), ("values", "inverse_indices")),
        ]
        return xp.sum(s)

    ft.grad(function)(ARRAYS["s"])


def test_constants_and_dtypes_of_the_standard():
    names = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64"
    for name in f"{names} complex64 complex128 e inf nan newaxis pi".split():
        assert hasattr(fnp, name)
    assert fnp.__array_api_version__ == "2024.12"


def test_the_namespace_describes_itself():
    ours, strict = fnp.__array_namespace_info__(), array_api_strict.__array_namespace_info__()
    assert ours.default_device() == "cpu" and ours.devices() == ["cpu"]
    assert set(ours.capabilities()) == set(strict.capabilities())
    assert set(ours.default_dtypes()) == set(strict.default_dtypes())
    kinds = ["bool", "signed integer", "unsigned integer", "integral", "real floating"]
    for kind in (None, *kinds, "complex floating", "numeric", ("bool", "real floating")):
        assert set(ours.dtypes(kind=kind)) == set(strict.dtypes(kind=kind))
    with pytest.raises(ValueError):
        ours.dtypes(device="gpu")


def test_traced_arrays_name_their_namespace():
    def function(x):
        for version in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
            assert x.__array_namespace__(api_version=version) is fnp
        with pytest.raises(ValueError, match=r"2020\.01"):
            x.__array_namespace__(api_version="2020.01")
        assert array_api_compat.array_namespace(x, x + 1, fnp.zeros(3)) is fnp
        assert array_api_compat.is_array_api_obj(x)
        return np.sum(x)

    ft.grad(function)(VECTOR)
    ft.vmap(function)(VECTOR[None])
    ft.make_graph(function)(VECTOR)


@pytest.mark.usefixtures("without_hooks")
def test_attributes_and_methods_of_the_standard():
    def function(x):
        assert (x.device, x.ndim, x.shape, x.size, x.dtype) == ("cpu", 2, (2, 3), 6, np.float64)
        assert x.T.shape == x.mT.shape == (3, 2)
        assert x.to_device("cpu") is x and x.to_device(x.device, stream=None) is x
        with pytest.raises(ValueError, match="cpu"):
            x.to_device("gpu")
        with pytest.raises(ValueError, match="stream"):
            x.to_device("cpu", stream=1)
        assert x.__dlpack_device__() == (1, 0)
        with pytest.raises(ArrayConversionError):
            x.__dlpack__()
        with pytest.raises(ValueError, match="cpu"):
            fnp.asarray(x, device="gpu")
        return x.__array_namespace__().sum(x.mT @ x)

    ft.grad(function)(ARRAYS["x"])


OPERATORS = [
    *("a + a", "a - a", "a * a", "a / a", "a // a", "a % a", "a @ a", "a**2", "2**a"),
    *("1 + a", "1 - a", "2 * a", "1 / a", "2 // a", "7 % a", "abs(a)", "-a", "+a"),
    *("a < a", "a <= a", "a > a", "a >= a", "a == a", "a != a"),
    *("n & n", "n | n", "n ^ n", "n << n", "n >> n", "~n"),
    *("3 & n", "4 | n", "5 ^ n", "9 << n", "64 >> n", "b & b", "b | b", "b ^ b", "~b"),
]


@pytest.mark.parametrize("expression", OPERATORS)
def test_operators_of_the_standard(expression):
    def function(a, n, b):
        return eval(expression, {"a": a, "n": n, "b": b, "abs": abs})

    args = (ARRAYS["s"], ARRAYS["n"], ARRAYS["b"])
    strict = function(*map(array_api_strict.asarray, args))
    graph = ft.make_graph(function)(*args)
    lanes = ft.vmap(function)(*(arg[None] for arg in args))
    for result in (graph(*args), lanes[0]):
        assert_trees_close(result, np.asarray(strict), dtypes=True)


def test_in_place_operators_of_the_standard():
    def function(x):
        y = x.__array_namespace__().asarray(x, copy=True)
        for operator in ("+=", "-=", "*=", "/="):
            exec(f"y {operator} x[1, 0] + 2", {"y": y, "x": x})
        y[0, ...] **= 2
        return y

    expected = array_api_strict.asarray(ARRAYS["x"])
    for value in transformed(function, ARRAYS["x"]):
        assert_trees_close(value, np.asarray(function(expected)))


# Libraries that are written to the standard.

EXTRA = {
    "atleast_nd": lambda x: xpx.atleast_nd(x, ndim=3),
    "cov": xpx.cov,
    "kron": lambda x: xpx.kron(x, x),
    "sinc": xpx.sinc,
    "pad": lambda x: xpx.pad(x, 1),
    "create_diagonal": lambda x: xpx.create_diagonal(x[0, :]),
    "nan_to_num": xpx.nan_to_num,
    "at set": lambda x: xpx.at(x)[0, :].set(x[1, :], copy=True),
    "at add": lambda x: xpx.at(x)[..., 0].add(x[..., 1] ** 2, copy=True),
}


@pytest.mark.parametrize("function", EXTRA.values(), ids=EXTRA)
def test_array_api_extra_runs_on_traced_arrays(function):
    x, direction = ARRAYS["x"], ARRAYS["y"]
    expected = function(x)
    for value in transformed(function, x):
        assert_trees_close(value, expected, dtypes=True)
    tangent = ft.jvp(function, (x,), (direction,))[1]
    assert_trees_close(tangent, numerical_jvp(function, (x,), (direction,)), rtol=1e-5, atol=1e-6)


SCIPY = """
import numpy as np
import scipy.cluster.vq, scipy.integrate, scipy.special, scipy.stats
from scipy.spatial.transform import Rotation
import functrans as ft

x = np.array([[0.5, -1.25, 2.0], [0.75, 0.25, -0.5]])
v = np.array([[1.0, 0.5, -0.5], [0.25, 1.25, 0.75]])
for function in (
    lambda x: scipy.special.logsumexp(x, axis=1),
    lambda x: scipy.stats.zscore(x, axis=1),
    lambda x: scipy.integrate.cumulative_simpson(x, axis=1),
    lambda x: scipy.stats.directional_stats(x).mean_direction,
    lambda x: Rotation.from_rotvec(x).as_matrix(),
    scipy.cluster.vq.whiten,
):
    value, tangent = ft.jvp(function, (x,), (v,))
    np.testing.assert_allclose(value, function(x))
    numerical = (function(x + 1e-5 * v) - function(x - 1e-5 * v)) / 2e-5
    np.testing.assert_allclose(tangent, numerical, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(ft.vmap(function)(x[None])[0], function(x))
    gradient = ft.grad(lambda x: np.sum(function(x) ** 2))(x)
    np.testing.assert_allclose(np.sum(gradient * v), 2 * np.sum(value * tangent), atol=1e-9)
print("ok")
"""


def test_scipy_runs_on_traced_arrays_by_the_standard():
    environment = os.environ | {"SCIPY_ARRAY_API": "1"}  # read when SciPy is imported
    command = [sys.executable, "-W", "ignore", "-c", SCIPY]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ran.stdout == "ok\n", ran.stderr
