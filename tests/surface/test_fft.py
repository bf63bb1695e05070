"""np.fft on traced values: NumPy's results, the transposes of linear maps, and lanes."""

from functools import partial

import numpy as np
import pytest

import functrans as ft
from tests.support.oracles import (
    assert_trees_close,
    inner_product,
    loop_vmap,
    numerical_gradient,
    numerical_jvp,
)

RNG = np.random.default_rng(7)
NORMS = (None, "backward", "ortho", "forward")


def real(*shape):
    return RNG.uniform(-1, 1, shape)


def complexes(*shape):
    return real(*shape) + 1j * real(*shape)


CASES = {}
for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    function = getattr(np.fft, name)
    for n in (None, 1, 2, 4, 5, 6, 8):
        for norm in NORMS if n in (None, 5) else (None,):
            CASES[f"{name} n={n} norm={norm}"] = lambda x, f=function, n=n, norm=norm: f(
                x, n, norm=norm
            )
    CASES[f"{name} axis=0"] = lambda x, f=function: f(x, axis=0)
    CASES[f"{name} axis=0 n=3"] = lambda x, f=function: f(x, 3, axis=0)
for name in ("fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2"):
    function = getattr(np.fft, name)
    for norm in NORMS:
        CASES[f"{name} norm={norm}"] = lambda x, f=function, norm=norm: f(x, norm=norm)
    for s, axes in (
        ((2, 3), (0, 1)),
        ((6, 4), (1, 0)),
        ((-1, 7), (-1, -2)),
        (None, (1,)),
        (None, (0, -1)),
        ((4, 3), (1, 1)),
    ):
        CASES[f"{name} s={s} axes={axes}"] = lambda x, f=function, s=s, axes=axes: f(
            x, s=s, axes=axes
        )
for name in ("fftshift", "ifftshift"):
    function = getattr(np.fft, name)
    for axes in (None, 0, -1, (0, 1), (1,)):
        CASES[f"{name} axes={axes}"] = lambda x, f=function, axes=axes: f(x, axes)

# Functions for which NumPy accepts only real numbers.
REAL_ONLY = ("rfft", "ihfft", "rfftn", "rfft2")
EVERY_CASE = pytest.mark.parametrize("name", CASES)


def inputs(name, *shape):
    """Real and complex arrays for a case, as far as NumPy takes them."""
    arrays = [real(*shape)]
    return arrays if name.split()[0] in REAL_ONLY else [*arrays, complexes(*shape)]


@EVERY_CASE
def test_values_and_tangents_are_those_of_a_linear_map(name):
    f = CASES[name]
    for x in inputs(name, 4, 5):
        tangent = x[::-1] * 2 - 0.3
        value, pushed = ft.jvp(f, (x,), (tangent,))
        assert_trees_close(value, f(x), rtol=1e-13, atol=1e-14, dtypes=True)
        assert_trees_close(pushed, f(tangent), rtol=1e-13, atol=1e-13, dtypes=True)


@EVERY_CASE
def test_the_pullback_is_the_numerical_gradient_and_the_transpose(name):
    f = CASES[name]
    for x in inputs(name, 3, 4):
        out, pull = ft.vjp(f, x)
        g = complexes(*out.shape) if np.iscomplexobj(out) else real(*out.shape)
        (pulled,) = pull(g)
        assert pulled.dtype == x.dtype
        loss = lambda x, g=g: inner_product(f(x), g).real
        assert_trees_close(pulled, numerical_gradient(loss, (x,))[0], rtol=1e-8, atol=1e-9)
        tangent = real(*x.shape) + (1j * real(*x.shape) if np.iscomplexobj(x) else 0)
        np.testing.assert_allclose(
            inner_product(f(tangent), g).real, inner_product(tangent, pulled).real, rtol=1e-12
        )


@EVERY_CASE
def test_lanes_and_graphs(name):
    f = CASES[name]
    for x in inputs(name, 4, 5, 2):
        for axis in (0, 1, 2):
            assert_trees_close(
                ft.vmap(f, axis)(x), loop_vmap(f, axis)(x), rtol=1e-13, atol=1e-14, dtypes=True
            )
        one = x[..., 0]
        graph = ft.make_graph(f)(one)
        graph.check()
        assert_trees_close(graph(one), f(one), rtol=1e-14, atol=1e-15, dtypes=True)
        foreseen = ft.eval_shape(f, one)
        assert (foreseen.shape, foreseen.dtype) == (f(one).shape, f(one).dtype)


@EVERY_CASE
def test_second_derivatives_and_gradients_in_lanes(name):
    f = CASES[name]
    x = real(3, 4)

    def loss(x):
        power = np.abs(f(x)) ** 2
        return np.sum(power * power)

    gradient = ft.grad(loss)
    along = real(3, 4)
    assert_trees_close(gradient(x), numerical_gradient(loss, (x,))[0], rtol=1e-6, atol=1e-7)
    expected = numerical_jvp(gradient, (x,), (along,))
    assert_trees_close(ft.jvp(gradient, (x,), (along,))[1], expected, rtol=1e-6, atol=1e-6)
    by_reverse = ft.grad(lambda x: np.sum(gradient(x) * along))(x)
    assert_trees_close(by_reverse, expected, rtol=1e-6, atol=1e-6)
    lanes = real(2, 3, 4)
    assert_trees_close(ft.vmap(gradient)(lanes), loop_vmap(gradient)(lanes), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@EVERY_CASE
def test_single_precision_stays(name, dtype):
    if dtype == np.complex64 and name.split()[0] in REAL_ONLY:
        with pytest.raises(TypeError):
            ft.vjp(CASES[name], np.ones((3, 4), dtype))
        return
    f, x = CASES[name], real(3, 4).astype(dtype)
    out, pull = ft.vjp(f, x)
    assert_trees_close(out, f(x), rtol=1e-5, atol=1e-6, dtypes=True)
    (pulled,) = pull(np.ones_like(out))
    assert pulled.dtype == dtype


def test_what_numpy_refuses_is_refused():
    for f in (
        lambda x: np.fft.fft(x, 0),
        lambda x: np.fft.irfft(x[:1]),
        lambda x: np.fft.fft(x, norm="unitary"),
        lambda x: np.fft.hfft(x, norm="unitary"),
        lambda x: np.fft.fftn(x, s=(2, 3), axes=(0,)),
        lambda x: np.fft.fft(x, axis=1),
    ):
        with pytest.raises((ValueError, IndexError)) as expected:
            f(np.ones(4))
        with pytest.raises(type(expected.value)):
            ft.vjp(f, np.ones(4))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forms_of_lengths_that_numpy_still_takes():
    x = real(4, 5)
    for name in ("fftn", "ifftn", "rfftn", "irfftn"):
        for options in ({"s": (None, 6), "axes": (0, 1)}, {"s": (3,)}, {"s": np.array([3, 4])}):
            f = partial(getattr(np.fft, name), **options)
            assert_trees_close(ft.vjp(f, x)[0], f(x), rtol=1e-13, atol=1e-14, dtypes=True)


def test_integers_become_floats_in_lanes():
    x = np.arange(6).reshape(2, 3)
    assert_trees_close(ft.vmap(np.fft.fft)(x), np.fft.fft(x), dtypes=True)


def test_a_lost_constant_has_no_derivative():
    # The imaginary part of frequency 0 does not reach a real signal.
    x = complexes(4)
    _, pull = ft.vjp(lambda x: np.fft.irfft(x, 6), x)
    (pulled,) = pull(real(6))
    assert pulled[0].imag == 0
    assert pulled[3].imag == pytest.approx(0, abs=1e-15)


@pytest.mark.peers
def test_gradients_are_those_of_jax():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    for name, options in (
        ("fft", {"n": 6, "norm": "ortho"}),
        ("ifft", {"n": 3, "axis": 0}),
        ("rfft", {"n": 5, "norm": "forward"}),
        ("irfft", {"n": 7}),
        ("hfft", {"n": 6}),
        ("ihfft", {"norm": "ortho"}),
        ("rfftn", {"s": (3, 6), "axes": (0, 1)}),
        ("irfftn", {"norm": "forward"}),
    ):
        for x in inputs(name, 4, 5):
            ours = partial(getattr(np.fft, name), **options)
            theirs = partial(getattr(jax.numpy.fft, name), **options)
            out, pull = jax.vjp(theirs, x)
            g = complexes(*out.shape) if np.iscomplexobj(out) else real(*out.shape)
            pulled = ft.vjp(ours, x)[1](g)[0]
            assert_trees_close(pulled, np.asarray(pull(g)[0]), rtol=1e-10, atol=1e-12)
