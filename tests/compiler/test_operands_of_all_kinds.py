"""Operators on numbers and arrays of all kinds, compiled: the values and dtypes of the plain call.

Python's numbers, NumPy's and arrays without axes are three kinds of numbers, whose operators differ: a
np.float64 is a float to Python's `complex`, whose result is Python's.
"""

import operator
import warnings
from itertools import product
from random import Random

import numpy as np
import pytest

from functrans import jit, source
from tests.support.marks import one_in

KINDS = [
    *(True, 3, 2.5, 1.5 + 1j),
    *(np.bool_(True), np.int64(3), np.int32(3), np.uint8(3), np.float64(2.5), np.float32(2.5)),
    *(np.float16(2.5), np.complex128(1 + 1j), np.complex64(1 + 1j)),
    *(np.array(2.5), np.array(3), np.array(1 + 2j), np.array([2.5, 1.0]), np.float32([1, 2])),
]
NAMES = "add sub mul truediv floordiv mod pow eq ne lt le and_ or_ xor lshift"
OPERATORS = {name: getattr(operator, name) for name in NAMES.split()}
OPERATORS |= {
    "quotient": lambda x, y: divmod(x, y)[0],
    "rest": lambda x, y: divmod(x, y)[1],
    "multiply": np.multiply,
    "power": np.power,
    "maximum": np.maximum,
    "arctan2": np.arctan2,
}
AFTERWARDS = {
    "stack": lambda v: np.stack([v, v]),
    "stack beside a number": lambda v: np.stack([np.ravel(v)[0], 2]),
    "reshape": lambda v: np.reshape(v, (1, *np.shape(v))),
    "transpose": np.transpose,
    "expand_dims": lambda v: np.expand_dims(v, 0),
    "broadcast_to": lambda v: np.broadcast_to(v, (2, 2)),
    "sum": np.sum,
    "ravel": np.ravel,
    "where": lambda v: np.where(True, v, 0),
    "concatenate": lambda v: np.concatenate([np.atleast_1d(v), np.ones(1)]),
    "cumsum": np.cumsum,
    "tile": lambda v: np.tile(v, 2),
    "squeeze": np.squeeze,
    "flip": lambda v: np.flip(np.atleast_1d(v)),
    "copy": np.copy,
}


def check(function, args, backend="numpy"):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            expected = function(*args)
        except (TypeError, ValueError, OverflowError):
            return
        found = jit(function, backend=backend)(*args)
    what = f"{args}: {found!r} instead of {expected!r}"
    assert np.shape(found) == np.shape(expected), what
    assert np.asarray(found).dtype == np.asarray(expected).dtype, what
    if type(expected) in (int, float):
        assert type(found) is type(expected), what
    tolerance = 2e-3 if np.asarray(expected).dtype == np.float16 else 1e-6
    np.testing.assert_allclose(found, expected, rtol=tolerance, err_msg=what)


@pytest.mark.parametrize("name", one_in(3, OPERATORS))
def test_operators_on_all_pairs(name):
    f = OPERATORS[name]
    for x, y in product(KINDS, KINDS):
        check(f, (x, y))
        check(lambda x, y=y: f(x, y), (x,))
        check(lambda x, y=y: f(y, x), (x,))


@pytest.mark.parametrize("name", one_in(3, AFTERWARDS))
def test_what_is_done_with_the_results(name):
    then, choice = AFTERWARDS[name], Random(name)
    for k in range(150):
        f = OPERATORS[choice.choice(list(OPERATORS))]
        x, y = choice.choice(KINDS), choice.choice(KINDS)
        backend = "numpy" if k % 15 else "native"
        check(lambda x, y, f=f: then(f(x, y)), (x, y), backend)
        check(lambda x, y=y, f=f: then(f(x, y)), (x,), backend)
        check(lambda x, y=y, f=f: then(f(y, x)), (x,), backend)


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("f", [*map(OPERATORS.get, ["add", "sub", "mul", "truediv", "pow", "eq"])])
def test_a_complex_number_of_python_before_a_number_of_numpy(f, backend):
    def joined(x):
        return np.stack([f(1.5 + 1j, np.sum(x)), 2])

    check(joined, (np.array([1.0, 2.0]),), backend)
    assert_same_source(joined, np.array([1.0, 2.0]))


def assert_same_source(function, x):
    np.testing.assert_allclose(source(function)(x).function(x), function(x))
