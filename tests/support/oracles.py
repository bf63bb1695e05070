"""The meaning of the transforms, computed without them: finite differences, complex steps and loops.

Nothing here imports the library under test. A pytree is walked by hand, so that the library's own
flattening is not what its results are compared with.
"""

import dataclasses

import numpy as np

STEP = 5e-4
COMPLEX_STEP = 1e-30


def is_namedtuple(tree):
    return isinstance(tree, tuple) and hasattr(tree, "_fields")


def children(tree):
    """The direct children of a container, or `None` if `tree` is a leaf."""
    if tree is None:
        return []
    if isinstance(tree, dict):
        return [tree[key] for key in sorted(tree)]
    if isinstance(tree, (list, tuple)):
        return list(tree)
    if dataclasses.is_dataclass(tree):
        return [getattr(tree, field.name) for field in dataclasses.fields(tree)]
    return None


def rebuild(tree, new_children):
    """A container like `tree` that holds `new_children`."""
    if tree is None:
        return None
    if isinstance(tree, dict):
        return dict(zip(sorted(tree), new_children, strict=True))
    if is_namedtuple(tree):
        return type(tree)(*new_children)
    if isinstance(tree, (list, tuple)):
        return type(tree)(new_children)
    names = [field.name for field in dataclasses.fields(tree)]
    return type(tree)(**dict(zip(names, new_children, strict=True)))


def leaves(tree):
    below = children(tree)
    if below is None:
        return [tree]
    return [leaf for child in below for leaf in leaves(child)]


def map_leaves(function, tree, *others):
    below = children(tree)
    if below is None:
        return function(tree, *others)
    rows = zip(below, *(children(other) for other in others), strict=True)
    return rebuild(tree, [map_leaves(function, *row) for row in rows])


def is_inexact(leaf):
    return np.issubdtype(np.result_type(leaf), np.inexact)


def inner_product(left, right):
    """The sum of the products of all leaves, without conjugation."""
    pairs = zip(leaves(left), leaves(right), strict=True)
    return sum((np.sum(np.asarray(a) * np.asarray(b)) for a, b in pairs), np.float64(0))


def _shifted(primals, tangents, step):
    return map_leaves(lambda p, t: np.asarray(p) + step * np.asarray(t), primals, tangents)


def complex_step_jvp(function, primals, tangents):
    """Im f(x + i h v) / h: exact to rounding, for analytic code that is real on the real line."""
    out = function(*_shifted(primals, tangents, 1j * COMPLEX_STEP))
    return map_leaves(lambda leaf: np.imag(leaf) / COMPLEX_STEP, out)


def central_difference_jvp(function, primals, tangents, step=STEP):
    """Central differences at h, h/2, h/4, extrapolated twice (Richardson): the error is O(h^6)."""

    def difference(h):
        above = function(*_shifted(primals, tangents, h))
        below = function(*_shifted(primals, tangents, -h))
        return map_leaves(
            lambda a, b: (np.asarray(a) - b) / (2 * h) if is_inexact(a) else np.zeros(np.shape(a)),
            above,
            below,
        )

    coarse, middle, fine = (difference(step / 2**level) for level in range(3))
    better = map_leaves(lambda c, m: (4 * m - c) / 3, coarse, middle)
    best = map_leaves(lambda m, f: (4 * f - m) / 3, middle, fine)
    return map_leaves(lambda b, f: (16 * f - b) / 15, better, best)


def numerical_jvp(function, primals, tangents, analytic=False):
    """The derivative of `function` at the tuple `primals` in the direction `tangents`."""
    method = complex_step_jvp if analytic else central_difference_jvp
    return method(function, primals, tangents)


def numerical_gradient(function, primals, analytic=False):
    """The gradient of a real scalar `function`: du/dx, and du/dx - i du/dy for complex leaves."""

    def along(index, position, unit):
        count = iter(range(len(leaves(primals))))

        def tangent(leaf):
            direction = np.zeros(np.shape(leaf), dtype=np.asarray(leaf).dtype)
            if next(count) == index:
                direction[position] = unit
            return direction

        tangents = map_leaves(tangent, primals)
        return numerical_jvp(function, primals, tangents, analytic)

    def gradient_of_leaf(index, leaf):
        gradient = np.zeros(np.shape(leaf), dtype=np.asarray(leaf).dtype)
        for position in np.ndindex(np.shape(leaf)):
            gradient[position] = along(index, position, 1.0)
            if np.iscomplexobj(leaf):
                gradient[position] -= 1j * along(index, position, 1j)
        return gradient

    gradients = iter([gradient_of_leaf(i, leaf) for i, leaf in enumerate(leaves(primals))])
    return map_leaves(lambda _: next(gradients), primals)


def numerical_jacobian(function, x):
    """The Jacobian of an array function of one real array: shape(out) + shape(x)."""
    columns = [
        central_difference_jvp(function, (x,), (unit.reshape(np.shape(x)),))
        for unit in np.eye(np.size(x))
    ]
    return np.stack(columns, axis=-1).reshape(np.shape(columns[0]) + np.shape(x))


def _lane(axes, tree, index):
    if axes is None:
        return tree
    if isinstance(axes, int):
        return map_leaves(lambda leaf: np.take(leaf, index, axis=axes), tree)
    rows = zip(children(axes), children(tree), strict=True)
    return rebuild(tree, [_lane(axis, child, index) for axis, child in rows])


def _lane_counts(axes, tree):
    if axes is None:
        return set()
    if isinstance(axes, int):
        return {np.shape(leaf)[axes] for leaf in leaves(tree)}
    rows = zip(children(axes), children(tree), strict=True)
    return set().union(*(_lane_counts(axis, child) for axis, child in rows))


def _stacked(axes, lanes):
    if axes is None:
        return lanes[0]
    if isinstance(axes, int):
        return map_leaves(lambda *values: np.stack(values, axis=axes), *lanes)
    rows = zip(children(axes), *(children(lane) for lane in lanes), strict=True)
    return rebuild(lanes[0], [_stacked(row[0], row[1:]) for row in rows])


def loop_vmap(function, in_axes=0, out_axes=0):
    """The meaning of vmap: call `function` on each lane, and stack what it returns."""

    def mapped(*args):
        axes = tuple(in_axes) if isinstance(in_axes, (tuple, list)) else (in_axes,) * len(args)
        (count,) = _lane_counts(axes, args)
        return _stacked(out_axes, [function(*_lane(axes, args, i)) for i in range(count)])

    return mapped


def assert_trees_close(actual, expected, rtol=1e-6, atol=1e-7, dtypes=False):
    """Same containers, plain leaves, same shapes, close values (and equal dtypes if asked)."""
    below = children(expected)
    if below is not None:
        assert type(actual) is type(expected)
        if isinstance(expected, dict):
            assert set(actual) == set(expected)
        found = children(actual)
        assert len(found) == len(below)
        for one, other in zip(found, below, strict=True):
            assert_trees_close(one, other, rtol, atol, dtypes)
        return
    assert isinstance(actual, (np.ndarray, np.generic, int, float, complex)), type(actual)
    assert np.shape(actual) == np.shape(expected)
    if dtypes:
        assert np.asarray(actual).dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol)
