"""progress=True: bars for long work, which count to the end and change no result."""

import re
import sys

import numpy as np
import pytest

import functrans.torch as torch
from functrans import check_derivatives, custom_jvp, hessian, jacfwd, jacobian, jacrev, vmap

pytest.importorskip("tqdm")

X = np.linspace(0.1, 0.9, 7)


def bars(capsys):
    """By the title of each bar, how many parts of how many are done at last."""
    found = {}
    for line in re.split(r"[\r\n]", capsys.readouterr().err):
        if match := re.match(r"([^:]+): +\d+%\|.*?\| (\d+)/(\d+) ", line):
            found[match.group(1)] = (int(match.group(2)), int(match.group(3)))
    return found


def entries(x):
    return np.sin(x) * x[0]


@pytest.mark.parametrize("transform", [jacfwd, jacrev, jacobian], ids=lambda t: t.__name__)
@pytest.mark.parametrize("chunk_size", [None, 1, 3, 100])
def test_jacobians(transform, chunk_size, capsys):
    plain = transform(entries, chunk_size=chunk_size)(X)
    assert capsys.readouterr().err == ""
    shown = transform(entries, chunk_size=chunk_size, progress=True)(X)
    np.testing.assert_array_equal(shown, plain)
    mode = "jacrev" if transform is jacobian else transform.__name__
    assert bars(capsys) == {f"{mode} of entries": (7, 7)}


def test_hessians_in_chunks(capsys):
    def energy(x):
        return np.sum(np.sin(x) * x[0])

    shown = hessian(energy, chunk_size=2, progress=True)(X)
    np.testing.assert_allclose(shown, hessian(energy)(X), rtol=1e-14)
    assert bars(capsys) == {"hessian of energy": (7, 7)}
    hessian(energy, progress="my own title")(X)
    assert bars(capsys) == {"my own title": (7, 7)}


def test_lanes_that_branch_are_counted_once(capsys):
    def branch(x):
        return np.sin(x) if x > 0.5 else -x

    shown = vmap(branch, chunk_size=2, progress=True)(X)
    np.testing.assert_array_equal(shown, [branch(x) for x in X])
    assert bars(capsys) == {"vmap of branch": (7, 7)}


def test_check_derivatives(capsys):
    check_derivatives(entries, (X,), order=2)
    assert capsys.readouterr().err == ""
    check_derivatives(entries, (X,), order=2, progress=True)
    # Two modes of order 1, and two by two of order 2, at 7 entries each.
    assert bars(capsys) == {"check_derivatives": (42, 42)}
    check_derivatives(lambda z: np.real(z * z), (X[:2] + 1j,), order=1, progress=True)
    assert bars(capsys) == {"check_derivatives": (4, 4)}
    check_derivatives(np.sum, (np.ones((20, 20)),), order=1, progress=True)
    assert bars(capsys) == {"check_derivatives": (100, 100)}


def test_errors_are_the_same_with_a_bar(capsys):
    wrong = custom_jvp(lambda x: x * x)
    wrong.defjvp(lambda primals, tangents: (primals[0] ** 2, 3 * primals[0] * tangents[0]))
    with pytest.raises(AssertionError, match="differs from finite differences"):
        check_derivatives(wrong, (2.0,), progress=True)


def test_gradcheck(capsys):
    x = torch.ones(2, 3, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: (x**3).sum(), x)
    assert capsys.readouterr().err == ""
    assert torch.autograd.gradcheck(lambda x: (x**3).sum(), x, progress=True)
    assert bars(capsys) == {"gradcheck": (6, 6)}
    assert torch.autograd.gradgradcheck(lambda x: (x**3).sum(), x, progress=True)
    assert bars(capsys) == {"gradcheck": (7, 7)}  # the entries and the cotangent


def test_without_tqdm_the_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ImportError, match=r'pip install "functrans\[progress\]"'):
        jacfwd(entries, progress=True)(X)
    jacfwd(entries)(X)
