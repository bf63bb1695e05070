"""Every public function on bad input: an error that a user understands, or the right answer."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
from functrans.errors import InputTypeError
from tests.support import bad_values, public_calls

CALLS = public_calls.CALLS
TIMES = 20 if os.environ.get("FUNCTRANS_LOAD") == "full" else 1


def _public_names():
    modules = {"tree": ft.tree, "testing": ft.testing, "random": ft.random, "plot": ft.plot}
    # The other modules of functrans.scipy hand calls without traced values to SciPy.
    for name in ("integrate", "optimize", "special", "stats"):
        modules[f"scipy.{name}"] = getattr(ft.scipy, name)
    yield from ft.__all__
    for prefix, module in modules.items():
        for name in module.__all__:
            yield f"{prefix}.{name}"


def test_the_table_has_every_public_function():
    assert set(CALLS) - public_calls.METHODS == set(_public_names()) - public_calls.NO_FUNCTIONS


@pytest.mark.parametrize("name", sorted(set(CALLS) - {"tree.register_dataclass"}))
def test_the_good_arguments_are_good(name):
    call, good, *oracle = CALLS[name]
    found = call(*good)
    if oracle:
        _check_same(found, oracle[0](*good))


def _check_same(found, expected):
    found, expected = ft.tree.leaves(found), ft.tree.leaves(expected)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        if one is other:
            continue
        one, other = np.asanyarray(one), np.asanyarray(other)
        if isinstance(other, np.ma.MaskedArray):  # comparisons of masked entries are masked
            one, other = np.ma.getdata(one), np.ma.getdata(other)
        assert one.shape == other.shape
        if one.dtype.kind in "fc" and other.dtype.kind in "biufc":
            np.testing.assert_allclose(one, other, rtol=1e-6, equal_nan=True)
        else:
            assert np.array_equal(one, other)


def _bad_function(value):
    """A function that returns a bad value whatever it is given."""
    return lambda *args, **kwargs: value


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(CALLS))
@settings(max_examples=25 * TIMES)
@given(data=st.data())
def test_bad_input_has_a_fair_outcome(name, data):
    call, good, *oracle = CALLS[name]
    args = list(good)
    place = data.draw(st.integers(0, len(args) - 1))
    bad = bad_values.made(data.draw(bad_values.values(bad_values.ENORMOUS)))
    if callable(args[place]) and data.draw(st.booleans()):
        bad = _bad_function(bad)
    args[place] = bad
    kind, value = bad_values.outcome(call, *args)
    if kind == "returned" and oracle:
        with np.errstate(all="ignore"):
            try:
                expected = oracle[0](*args)
            except Exception:
                return  # plain NumPy has no answer to compare with
            _check_same(value, expected)


# The names of NumPy, with one argument traced: what both take has the same value.

# They read files, print, allocate what they are told to, or return what is in memory by chance; bmat and
# isscalar ask for NumPy's own types, setxor1d believes that entries are unique if it is told so, and
# powers of -inf make geomspace inf where NumPy's logarithms make it nan.
_UNLIKE = """
    array2string array_repr array_str bmat busday_count busday_offset diag_indices empty
    empty_like eye from_dlpack fromfile fromfunction fromiter fromregex full genfromtxt geomspace
    get_include get_printoptions identity indices info is_busday isscalar load loadtxt
    mask_indices ones printoptions repeat save savetxt savez savez_compressed set_printoptions
    setbufsize seterr seterrcall setxor1d show_config show_runtime test tile tri tril_indices
    triu_indices zeros
"""
_GOOD = {
    "a vector": lambda: np.array([0.3, 0.4, 0.5]),
    "a square": lambda: np.array([[2.0, 1.0], [1.0, 3.0]]),
    "a number": lambda: 1.0,
    "an axis": lambda: 0,
}


def _functions_of_numpy():
    for prefix, module in (("", ft.numpy), ("linalg.", ft.numpy.linalg), ("fft.", ft.numpy.fft)):
        for name in np.__all__ if not prefix else getattr(np, prefix[:-1]).__all__:
            function = getattr(module, name, None)
            if (
                callable(function)
                and not isinstance(function, type)
                and name not in _UNLIKE.split()
            ):
                yield prefix + name


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(_functions_of_numpy()))
@settings(max_examples=5 * TIMES)
@given(data=st.data())
def test_functions_of_numpy_on_bad_input(name, data):
    prefix, _, last = name.rpartition(".")
    function = getattr(getattr(ft.numpy, prefix) if prefix else ft.numpy, last)
    bad = {name: make for name, make in bad_values.BAD.items() if name not in bad_values.ENORMOUS}
    choices = {**bad, **_GOOD}
    drawn = data.draw(st.lists(st.sampled_from(list(choices)), max_size=2))
    traced = _GOOD[data.draw(st.sampled_from(["a vector", "a square", "a number"]))]()
    place = data.draw(st.integers(0, len(drawn)))

    def call(x):
        rest = [choices[each]() for each in drawn]
        return function(*rest[:place], x, *rest[place:])

    plain = _plain_outcome(call, traced)
    try:
        kind, value = bad_values.outcome(lambda x: ft.jvp(call, (x,), (x,))[0], traced)
    except AssertionError as error:
        # NumPy's own error for the same arguments is fair; it asks objects for methods named as ufuncs.
        method = getattr(getattr(np, last, None), "__name__", last)
        of_objects = isinstance(error.__cause__, AttributeError) and f"'{method}'" in str(error)
        if type(error.__cause__) is not type(plain) and not of_objects:
            raise
        return
    if kind == "returned" and not isinstance(plain, Exception):
        _check_same(value, plain)


def _plain_outcome(function, *args):
    with bad_values.no_hang(), np.errstate(all="ignore"):
        try:
            return function(*args)
        except Exception as error:
            return error


# Bugs found by these tests.


@pytest.mark.parametrize("array", ["masked", "a matrix", "a subclass of its own way"])
def test_arrays_that_compute_in_their_own_way_are_refused(array):
    """They had a gradient, but of another function: that of the plain array behind them."""
    value = bad_values.BAD[array]()
    square = lambda x: np.sum(x * x)
    for call in (ft.grad(square), ft.jit(square), ft.vmap(square), ft.jacrev(square)):
        with pytest.raises(InputTypeError, match="which computes in its own way"):
            call(value)
    with pytest.raises(InputTypeError, match="an operand is an array of the class"):
        ft.grad(lambda x: np.sum(x * value))(1.0)


def test_subclasses_that_compute_plainly_are_arrays(tmp_path):
    mapped = np.memmap(tmp_path / "numbers", float, "w+", shape=3)
    mapped[:] = [1.0, 2.0, 3.0]
    for array in (mapped, np.array([1.0, 2.0, 3.0]).view(bad_values.Carrying)):
        np.testing.assert_array_equal(ft.grad(lambda x: np.sum(x * x))(array), [2.0, 4.0, 6.0])
        np.testing.assert_array_equal(ft.vmap(lambda x: x * x)(array), [1.0, 4.0, 9.0])


@pytest.mark.parametrize("kind", ["list", "dict"])
@pytest.mark.parametrize("place", ["differentiated", "beside"])
def test_containers_that_hold_themselves_are_refused(kind, place):
    container = bad_values.BAD[f"a {kind} that holds itself"]()
    args = (container,) if place == "differentiated" else (1.0, container)
    with pytest.raises(InputTypeError, match="one of them holds itself"):
        ft.grad(lambda x, *_: x)(*args)
    with pytest.raises(InputTypeError, match="one of them holds itself"):
        ft.jit(lambda *_: 1.0)(*args)


def test_objects_have_no_tangents():
    """The tangent of their product was zero."""
    objects = np.array([1.0, 2.0], object)
    with pytest.raises(InputTypeError, match="array of Python objects"):
        ft.jvp(lambda x: x * objects, (np.ones(2),), (np.ones(2),))


def test_options_of_other_types_are_named():
    with pytest.raises(ft.errors.OptionError, match="static_argnums must be one int"):
        ft.jit(lambda x: x, static_argnums=1.0)
    with pytest.raises(ft.errors.OptionError, match="nondiff_argnums must be one int"):
        ft.custom_jvp(lambda x: x, nondiff_argnums=1.0)
    with pytest.raises(ft.errors.OptionError, match="axis_name must be"):
        ft.vmap(lambda x: x, axis_name=[])
    with pytest.raises(InputTypeError, match="switch needs a list of functions"):
        ft.switch(0, 3.0)
    with pytest.raises(InputTypeError, match="the predicate is None"):
        ft.cond(None, np.sin, np.cos, 1.0)
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
        ft.ArraySpec("abc", float)
    with pytest.raises(ValueError, match="must not be negative"):
        ft.ArraySpec((-1,), float)


def test_take_reads_truths_as_numbers_and_where_needs_both_values():
    """They were a mask, and an array of None."""
    x, truths = np.array([1.0, 2.0, 3.0]), np.array([True, False, True])
    np.testing.assert_array_equal(ft.jvp(lambda x: np.take(x, truths), (x,), (x,))[0], [2, 1, 2])
    with pytest.raises(ValueError, match="either both or neither"):
        ft.grad(lambda x: np.sum(ft.numpy.where(x > 1, x)))(x)


def test_points_of_trapezoid_may_have_more_axes_than_the_values():
    values, points = np.ones((2, 3)), np.arange(24.0).reshape(4, 2, 3)
    found = ft.jvp(lambda y: np.trapezoid(y, points), (values,), (values,))[0]
    np.testing.assert_array_equal(found, np.trapezoid(values, points))
