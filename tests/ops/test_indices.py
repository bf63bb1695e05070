"""All kinds of indices in all combinations: reading, assignment and change in place, as NumPy does them.

Every function here is linear in the array, so a tangent is the same function of the tangent, and a pullback
its transpose. Random indices come from a generator with a seed, and NumPy says which are valid.
"""

from random import Random

import numpy as np
import pytest

import functrans as ft
from tests.support.marks import one_in

SHAPE = (3, 2, 4)
PART = np.arange(np.prod(SHAPE), dtype=float).reshape(SHAPE) + 1


def entry(choice, length):
    """One entry of an index, for an axis that is likely of this length."""
    return choice.choice(
        [
            lambda: slice(None),
            lambda: slice(None, None, -1),
            lambda: slice(1, None),
            lambda: choice.randrange(-length, length),
            lambda: None,
            lambda: Ellipsis,
            lambda: [0, 1, -1],
            lambda: [choice.randrange(length)],
            lambda: np.array([[0], [1]]),
            lambda: np.array(1),
            lambda: np.array([], int),
            lambda: np.int64(0),
            lambda: np.uint8([0, 1, 0]),
            lambda: True,
            lambda: choice.random() < 0.7,
            lambda: np.array(True),
            lambda: np.arange(length) % 2 == 0,
            lambda: [k % 2 == 0 for k in range(length)],
            lambda: np.add.outer(np.arange(length), np.arange(2)) % 3 == 0,
        ]
    )()


def draw(choice):
    """An index that NumPy takes, and an array that it takes it of."""
    while True:
        ndim = choice.randrange(1, 4)
        x = np.cos(PART[tuple(slice(n) for n in SHAPE[:ndim]) + (0,) * (3 - ndim)])
        lengths = [SHAPE[min(k, ndim - 1)] for k in range(5)]
        index = tuple(entry(choice, n) for n in lengths[: choice.randrange(1, 6)])
        index = index[0] if len(index) == 1 and choice.random() < 0.5 else index
        try:
            x[index]
        except (IndexError, ValueError):
            continue
        return x, index


def uses(x, index):
    """The functions of an array, by name."""
    size, shape = np.size(x[index]), np.shape(x[index])
    values = np.sin(np.arange(size)).reshape(shape)
    first = (0,) * x.ndim

    def put(y):
        y = y * 1.0
        y[index] = values * y[first]
        return y

    def put_one(y):
        y = y * 1.0
        y[index] = y[first]
        return y

    def double(y):
        y = y * 1.0
        y[index] *= 2 + values
        return y

    return {"read": lambda y: y[index], "put": put, "put one": put_one, "double": double}


def matrix_of(function, x):
    """A linear function of an array, as a matrix."""
    units = np.eye(x.size).reshape(x.size, *x.shape)
    return np.stack([np.ravel(function(unit.copy())) for unit in units], axis=-1)


def same(actual, expected, what):
    assert np.shape(actual) == np.shape(expected), what
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12, err_msg=str(what))


def check(x, index, name, function, backends):
    what = (x.shape, index, name)
    expected = function(x.copy())
    direction = np.sin(x + 0.3)
    matrix = matrix_of(function, x)

    out, tangent = ft.jvp(function, (x,), (direction,))
    same(out, expected, (*what, "jvp"))
    same(tangent, function(direction.copy()), (*what, "tangent"))

    out, pull = ft.vjp(function, x)
    same(out, expected, (*what, "vjp"))
    cotangent = np.cos(np.arange(np.size(out)) + 0.5).reshape(np.shape(out))
    back = (np.ravel(cotangent) @ matrix).reshape(x.shape)
    same(pull(cotangent)[0], back, (*what, "pullback"))

    same(ft.make_graph(function)(x)(x), expected, (*what, "graph"))
    lanes = np.stack([x, direction])
    looped = np.stack([function(lane.copy()) for lane in lanes])
    same(ft.vmap(function)(lanes), looped, (*what, "vmap"))
    graph = ft.make_graph(ft.vmap(ft.grad(lambda y: np.sum(cotangent * function(y)))))(lanes)
    same(graph(lanes), np.stack([back, back]), (*what, "graph of gradients in lanes"))
    for backend in backends:
        same(ft.jit(function, backend=backend)(x), expected, (*what, backend))


@pytest.mark.parametrize("seed", one_in(4, range(8)))
def test_random_indices(seed):
    choice = Random(seed)
    for k in range(150):
        x, index = draw(choice)
        for name, function in uses(x, index).items():
            check(x, index, name, function, [] if k % 30 else ["numpy", "native"])


EMPTY_ELLIPSES = [
    np.s_[:, [0, 1, 1], ..., [0, 1, 2]],
    np.s_[:, 0, ..., [0, 1, 2]],
    np.s_[[0, 1], ..., :, [0, 1]],
    np.s_[:, [0, 1], None, ..., [0, 1]],
    np.s_[:, True, ..., 0, [0, 1]],
    np.s_[:, np.array([True, False]), ..., np.array(1)],
    np.s_[:, np.array([[0], [1]]), ..., [0, 1, 2]],
]


@pytest.mark.parametrize("index", EMPTY_ELLIPSES, ids=str)
def test_an_ellipsis_of_no_axes_parts_the_arrays_beside_it(index):
    for name, function in uses(PART, index).items():
        check(PART, index, name, function, ["numpy", "native"])


@pytest.mark.parametrize("seed", range(3))
def test_lanes_with_indices_of_their_own(seed):
    """Integers of the index are traced, each lane with its own."""
    choice = Random(seed)
    tried = 0
    while tried < 60:
        x, index = draw(choice)
        entries = index if isinstance(index, tuple) else (index,)
        numbers = [k for k, e in enumerate(entries) if isinstance(e, list) and type(e[0]) is int]
        if not numbers:
            continue
        tried += 1
        moving = choice.choice(numbers)

        def pick(y, places, entries=entries, moving=moving):
            return y[(*entries[:moving], places, *entries[moving + 1 :])]

        def put(y, places, entries=entries, moving=moving):
            y = y * 1.0
            y[(*entries[:moving], places, *entries[moving + 1 :])] *= 3.0
            return y

        places = np.stack([entries[moving], np.zeros(len(entries[moving]), int)])
        lanes = np.stack([x, 2 * x])
        for function in (pick, put):
            looped = [function(lane.copy(), p) for lane, p in zip(lanes, places, strict=True)]
            same(ft.vmap(function)(lanes, places), np.stack(looped), (x.shape, index, "lanes"))
            shared = np.stack([function(x.copy(), p) for p in places])
            out = ft.vmap(function, in_axes=(None, 0))(x, places)
            same(out, shared, (x.shape, index, "places in lanes"))
            graph = ft.make_graph(function)(x, places[0])
            same(graph(x, places[1]), shared[1], (x.shape, index, "graph"))


@pytest.mark.parametrize("places", [(), (1,)])
def test_of_values_assigned_to_one_element_the_last_remains_in_every_lane(places):
    """NumPy walks backwards through arrays that all lie backwards in memory, as those of all lanes do."""
    labels = np.array([[0, 1, 0, 1, 2, 2], [2, 1, 0, 1, 0, 2]])
    values = np.random.default_rng(0).normal(size=(2, 6))

    def filled(labels, values):
        out = np.zeros((2, 4) if places else 4)
        out[(*places, labels[::-1])] = values[::-1]
        return out

    expected = np.array([filled(*each) for each in zip(labels, values, strict=True)])
    np.testing.assert_array_equal(ft.vmap(filled)(labels, values), expected)
    np.testing.assert_array_equal(ft.jit(ft.vmap(filled))(labels, values), expected)

    loss = lambda labels, values: np.sum(filled(labels, values) * np.arange(4.0))
    gradients = [ft.grad(loss, 1)(*each) for each in zip(labels, values, strict=True)]
    np.testing.assert_array_equal(ft.vmap(ft.grad(loss, 1))(labels, values), gradients)
