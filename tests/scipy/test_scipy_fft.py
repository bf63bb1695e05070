"""functrans.scipy.fft: all names and normalizations against SciPy, finite differences, lanes and graphs."""

import numpy as np
import pytest
import scipy.fft

import functrans as ft
from functrans.scipy import fft
from tests.support.oracles import assert_trees_close
from tests.support.scipy_cases import check_derivatives, check_lanes, check_staging

RNG = np.random.default_rng(11)
X = RNG.normal(size=(3, 4))
HALVES = ("hfft", "irfft", "hfft2", "irfft2", "hfftn", "irfftn")
CASES = {}
for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    for options in ({}, {"n": 5, "axis": 0, "norm": "ortho"}, {"n": 3, "norm": "forward"}):
        CASES[f"{name} {options}"] = (name, options, X)
for name in ("fft2", "ifft2", "rfft2", "irfft2", "hfft2", "ihfft2"):
    for options in ({}, {"s": (4, 3), "norm": "ortho"}, {"axes": (1, 0), "norm": "forward"}):
        CASES[f"{name} {options}"] = (name, options, X)
for name in ("fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn"):
    for options in ({}, {"s": (5,), "axes": (0,)}, {"axes": (0, 2), "norm": "ortho"}):
        CASES[f"{name} {options}"] = (name, options, RNG.normal(size=(2, 3, 4)))
for name in ("dct", "idct", "dst", "idst"):
    for kind in (1, 2, 3, 4):
        for norm in (None, "ortho", "forward"):
            for orthogonalize in (None, True, False):
                options = {"type": kind, "norm": norm, "orthogonalize": orthogonalize}
                CASES[f"{name} {options}"] = (name, options, X[0])
    CASES[f"{name} axis"] = (name, {"n": 5, "axis": 0}, X)
    CASES[f"{name} cropped"] = (name, {"n": 2, "type": 3}, X)
for name in ("dctn", "idctn", "dstn", "idstn"):
    for options in ({}, {"s": 2, "norm": "ortho"}, {"type": 3, "axes": (0,), "s": (-1,)}):
        CASES[f"{name} {options}"] = (name, options, X)
for name in ("fht", "ifht"):
    CASES[name] = (name, {"dln": 0.1, "mu": 0.5}, X)
    CASES[f"{name} bias"] = (name, {"dln": 0.1, "mu": 0.5, "offset": 0.2, "bias": 0.3}, X[:, :3])
for name in ("fftshift", "ifftshift"):
    CASES[name] = (name, {}, X)
    CASES[f"{name} axes"] = (name, {"axes": 0}, X)
for name in ("fftfreq", "rfftfreq"):
    CASES[name] = (name, {}, np.float64(0.3))


def functions(name, options):
    pair = []
    for module in (fft, scipy.fft):
        transform = getattr(module, name)
        if "freq" in name:
            pair.append(lambda d, f=transform: f(5, d))
        else:
            pair.append(lambda x, f=transform: f(x, **options))
    return pair


for_each = pytest.mark.parametrize("name,options,x", CASES.values(), ids=CASES)


def real(function):
    def parts(x):
        out = function(x)
        return (out.real, out.imag) if out.dtype.kind == "c" else out

    return parts


@for_each
def test_values_are_those_of_scipy(name, options, x):
    ours, theirs = functions(name, options)
    inputs = [x] if "freq" in name else [x, x.astype(np.float32)]
    if name not in (
        "rfft",
        "rfft2",
        "rfftn",
        "ihfft",
        "ihfft2",
        "ihfftn",
        "fht",
        "ifht",
        "fftfreq",
    ):
        inputs += [] if name == "rfftfreq" else [x + 1j * x[..., ::-1]]
    for each in inputs:
        expected = theirs(each)
        found = ft.jvp(ours, (each,), (np.zeros_like(each),))[0]
        single = each.dtype == np.float32
        assert_trees_close(found, expected, 1e-4 if single else 1e-10, 1e-5 if single else 1e-12)
        if not (single and name in ("fht", "ifht")):
            assert found.dtype == expected.dtype
        assert_trees_close(ours(each), expected, 0, 0, dtypes=True)


@for_each
def test_derivatives(name, options, x):
    check_derivatives(real(functions(name, options)[0]), (x,))


@for_each
def test_lanes_and_graphs(name, options, x):
    function = real(functions(name, options)[0])
    check_lanes(function, (x,))
    check_staging(function, (np.asarray(x),))


def test_every_name_has_a_case():
    assert set(fft.__all__) == {name.split()[0] for name in CASES}


def test_complex_derivatives():
    z = X + 1j * X[::-1]
    for f in (fft.fft, fft.ifft, fft.dct, lambda x: fft.idst(x, 3), fft.fftn):
        ft.check_derivatives(f, (z,))


@pytest.mark.parametrize("name", ["dct", "dst"])
@pytest.mark.parametrize("kind", [1, 2, 3, 4])
def test_orthogonal_transforms_are_transposed_by_their_inverses(name, kind):
    forward, back = getattr(fft, name), getattr(fft, f"i{name}")
    x, g = X[0], X[1]
    pulled = ft.vjp(lambda x: forward(x, kind, norm="ortho"), x)[1](g)[0]
    assert_trees_close(pulled, back(g, kind, norm="ortho"), 1e-10)


def test_errors():
    with pytest.raises(ValueError, match="norm"):
        ft.grad(lambda x: np.sum(fft.dct(x, norm="odd")))(X)
    with pytest.raises(ValueError, match="type"):
        ft.grad(lambda x: np.sum(fft.dct(x, 5)))(X)
    with pytest.raises(ft.errors.MissingRuleError, match="parameters"):
        ft.grad(lambda mu: np.sum(fft.fht(X, 0.1, mu)))(0.5)
