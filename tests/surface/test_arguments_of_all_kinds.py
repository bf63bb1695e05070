"""Calls of every NumPy function with one argument traced, and the others of every kind NumPy takes.

The table of calls (coverage_runner.py) has all arguments traced. Here the others are lists, or arrays have
no entries or one, lie in memory in other ways, or are of other dtypes; what comes out is NumPy's own.
"""

import warnings
from functools import cache

import numpy as np
import pytest

import functrans as ft
from functrans.errors import FunctransError
from tests.support.coverage_runner import (
    SAMPLES,
    Call,
    NotInThisNumPyError,
    is_number,
    leaves,
    sample,
)
from tests.support.marks import one_in
from tools.numpy_coverage import sections

SOURCES = sorted(
    {call for section in sections() for calls in section.calls.values() for call in calls}
)
# NumPy's results here depend on uninitialized memory, or are a bug in NumPy.
NOT_COMPARED = ('mode="empty"', "np.isscalar", "x.base")
# NumPy has no hook on these: its own errors come out.
WITHOUT_HOOK = ("nditer", "nested_iters", "frombuffer", "fromiter", "initial=t", ".shape =")
KINDS = {
    "one entry": lambda x: x[(slice(0, 1),) * x.ndim].copy(),
    "no rows": lambda x: x[:0].copy(),
    "no columns": lambda x: x[..., :0].copy(),
    "Fortran order": np.asfortranarray,
    "backward in memory": lambda x: x[::-1].copy()[::-1],
    "integers": lambda x: np.rint(2 * x).astype(int) if x.dtype.kind == "f" else x,
    "single precision": lambda x: x.astype({"f": np.float32, "c": np.complex64}.get(x.dtype.kind)),
}
# Where NumPy's results for empty arrays follow no rule, or an integer `out=` accepts real numbers.
EXCEPTIONS = {
    "one entry": ("histogram(v, bins=s - 3)",),
    "no rows": ("histogram(v, bins=s - 3)", "nanquantile", "nanpercentile", '"ii->i"', "bincount")
    + ("np.cov(Z)", "np.corrcoef(Z)"),
    "no columns": ("histogram(v, bins=s - 3)", "nanquantile", "nanpercentile", "bincount"),
    "integers": ("out=", "np.divide.at"),
}


def numbers(result):
    return [leaf for leaf in leaves(result) if is_number(leaf)]


call_of = cache(Call)


def trials(source, change, traced):
    """(transform, thunk) for each way to run a call on changed arguments, of which `traced` are traced."""
    call = call_of(source)
    arguments = [change(np.asarray(sample(name, 0))) for name in call.names]

    def run(*values):
        full = list(arguments)
        for k, value in zip(places, values, strict=True):
            full[k] = value.copy()
        return numbers(call.run(*(x.copy("K") if type(x) is np.ndarray else x for x in full)))

    places = list(range(len(arguments)))[
        slice(None) if traced is None else slice(traced, traced + 1)
    ]
    if not places:
        return
    point = [
        np.asarray(arguments[k] if traced is None else sample(call.names[k], 0)) for k in places
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = run(*point)
    stacked = [np.stack([x, x]) for x in point]
    yield expected, "vmap", lambda: [out[0] for out in ft.vmap(run)(*stacked)]
    yield expected, "make_graph", lambda: ft.make_graph(run)(*point)(*point)
    if all(x.dtype.kind in "fc" for x in point):
        yield expected, "vjp", lambda: ft.vjp(run, *point)[0]
        yield expected, "jvp", lambda: ft.jvp(run, tuple(point), tuple(point))[0]


def complaints(source, change, traced, **tolerance):
    """A description of the differences, or an empty string if there are none."""
    try:
        runs = list(trials(source, change, traced))
    except NotInThisNumPyError:
        return
    except Exception:  # plain NumPy does not take such arguments
        return
    for expected, transform, run in runs:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = run()
        except FunctransError:
            continue
        except Exception as error:
            yield f"{source} under {transform}: {type(error).__name__}: {error}"
            continue
        same = len(found) == len(expected) and all(
            np.shape(a) == np.shape(b)
            and np.asarray(a).dtype == np.asarray(b).dtype
            and np.allclose(a, b, equal_nan=True, **tolerance)
            for a, b in zip(found, expected, strict=True)
        )
        wrong = f"{source} under {transform}: {found}, and NumPy gives {expected}"
        yield "" if same else wrong


def compared(*but):
    skipped = NOT_COMPARED + WITHOUT_HOOK + but
    return [source for source in SOURCES if not any(part in source for part in skipped)]


@pytest.mark.parametrize("part", range(4))
def test_lists_beside_a_traced_array(part):
    found = [
        complaint
        for source in compared()[part::4]
        for traced in range(len(SAMPLES))
        for complaint in complaints(source, np.ndarray.tolist, traced)
    ]
    assert list(filter(None, found)) == []
    assert len(found) > 400  # most did run


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", one_in(3, KINDS))
def test_arrays_of_every_kind(kind):
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if kind == "single precision" else {}

    def change(x):
        return KINDS[kind](x) if x.ndim else x

    found = [
        complaint
        for source in compared(*EXCEPTIONS.get(kind, ()))
        for complaint in complaints(source, change, None, **tolerance)
    ]
    assert list(filter(None, found)) == []
    assert len(found) > 1400  # most did run
