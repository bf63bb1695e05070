"""Requirements on every function of functrans.scipy, whatever it computes."""

import numpy as np

import functrans as ft
from tests.support.oracles import (
    assert_trees_close,
    central_difference_jvp,
    inner_product,
    leaves,
    loop_vmap,
    map_leaves,
)


def direction(rng, tree):
    return map_leaves(lambda leaf: rng.uniform(-1.0, 1.0, np.shape(leaf)), tree)


def inexact(out):
    return [leaf for leaf in leaves(out) if np.asarray(leaf).dtype.kind in "fc"]


def check_derivatives(function, args, second=True, rtol=1e-6, atol=1e-8, step=5e-4):
    """Forward mode is the numerical derivative, reverse mode its transpose, and so again for the second.

    `function` takes real arrays, and its floating results are differentiated.
    """
    rng = np.random.default_rng(len(args))

    def outputs(*args):
        out = function(*args)
        return list(out) if isinstance(out, (list, tuple)) else [out]

    tangents = direction(rng, args)
    out, tangent = ft.jvp(outputs, args, tangents)
    assert_trees_close(inexact(out), inexact(outputs(*args)), rtol=1e-12)
    expected = central_difference_jvp(outputs, args, tangents, step)
    for one, other in zip(tangent, expected, strict=True):
        if one.dtype.kind in "fc":
            np.testing.assert_allclose(one, other, rtol=rtol, atol=atol)
    _, pullback = ft.vjp(outputs, *args)
    weights = [rng.uniform(0.5, 1.5, np.shape(leaf)).astype(leaf.dtype) for leaf in tangent]
    left = sum(inner_product(t, w) for t, w in zip(tangent, weights, strict=True))
    np.testing.assert_allclose(left, inner_product(tangents, pullback(weights)), rtol=1e-9)
    if second:
        everything = tuple(range(len(args)))

        def gradient(*args):
            return ft.grad(
                lambda *a: sum(np.sum(np.sin(out)) for out in outputs(*a) if out.dtype.kind == "f"),
                everything,
            )(*args)

        curvature = ft.jvp(gradient, args, tangents)[1]
        expected = central_difference_jvp(gradient, args, tangents, step)
        assert_trees_close(curvature, expected, rtol=10 * rtol, atol=10 * atol)
        reverse = ft.vjp(gradient, *args)[1](tangents)  # the Hessian is symmetric
        assert_trees_close(reverse, curvature, rtol=1e-7, atol=1e-9)


def check_lanes(function, args, rtol=1e-9, atol=1e-11):
    """vmap is a loop, with one, all but one, or all arguments mapped, and so is vmap of a gradient."""
    rng = np.random.default_rng(7)
    lanes = [
        args,
        *(map_leaves(lambda x: x + 0.01 * rng.uniform(-1, 1, np.shape(x)), args) for _ in range(2)),
    ]
    count = len(args)
    alone = [tuple(0 if j == k else None for j in range(count)) for k in range(count)]
    but_one = [tuple(None if j == k else 0 for j in range(count)) for k in range(count)]
    for axes in {(0,) * count, *alone, *(but_one if count > 1 else [])}:
        mapped = tuple(
            args[k] if axis is None else map_leaves(lambda *x: np.stack(x), *(a[k] for a in lanes))
            for k, axis in enumerate(axes)
        )
        looped = loop_vmap(function, axes)(*mapped)
        assert_trees_close(ft.vmap(function, axes)(*mapped), looped, rtol, atol)

    def loss(*args):
        return sum(np.sum(out * out) for out in inexact_traced(function(*args)))

    everything = tuple(range(len(args)))
    gradient = ft.grad(loss, everything)
    stacked = tuple(map_leaves(lambda *x: np.stack(x), *(a[k] for a in lanes)) for k in everything)
    looped = loop_vmap(gradient, (0,) * len(args), (0,) * len(args))(*stacked)
    assert_trees_close(ft.vmap(gradient)(*stacked), looped, rtol, atol)


def inexact_traced(out):
    parts = out if isinstance(out, (list, tuple)) else [out]
    return [part for part in parts if part.dtype.kind == "f"]


def check_staging(function, args):
    """A graph computes the same values, shapes and dtypes, also of the gradient."""
    out = function(*args)
    assert_trees_close(ft.make_graph(function)(*args)(*args), out, rtol=1e-12, dtypes=True)

    def loss(*args):
        return sum(np.sum(out * out) for out in inexact_traced(function(*args)))

    gradient = ft.grad(loss, tuple(range(len(args))))
    assert_trees_close(ft.make_graph(gradient)(*args)(*args), gradient(*args), rtol=1e-12)
