"""NumPy's warnings about floating point name the user's line under every transform."""

import inspect
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

import functrans.numpy as fnp
from functrans import (
    checkpoint,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jit,
    jvp,
    linearize,
    make_graph,
    scan,
    value_and_grad,
    vjp,
    vmap,
)

NEGATIVE = np.array([-1.0, 2.0])


def total_log(x):
    return np.sum(np.log(x))  # forward


FORWARD = inspect.getsourcelines(total_log)[1] + 1


def caught(function, *args, **modes):
    """The warnings of a call: their category, text, and place."""
    with warnings.catch_warnings(record=True) as found, np.errstate(**modes):
        warnings.simplefilter("always")
        function(*args)
    return found


TRANSFORMED = {
    "grad": lambda: grad(total_log)(NEGATIVE),
    "value_and_grad": lambda: value_and_grad(total_log)(NEGATIVE),
    "vjp": lambda: vjp(total_log, NEGATIVE),
    "jvp": lambda: jvp(total_log, (NEGATIVE,), (NEGATIVE,)),
    "linearize": lambda: linearize(total_log, NEGATIVE),
    "jacfwd": lambda: jacfwd(total_log)(NEGATIVE),
    "jacrev": lambda: jacrev(total_log)(NEGATIVE),
    "hessian": lambda: hessian(total_log)(NEGATIVE),
    "vmap": lambda: vmap(total_log)(NEGATIVE[None]),
    "grad of vmap": lambda: grad(lambda x: np.sum(vmap(total_log)(x)))(NEGATIVE[None]),
    "vmap of grad": lambda: vmap(grad(total_log))(NEGATIVE[None]),
    "has_aux": lambda: grad(lambda x: (total_log(x), x), has_aux=True)(NEGATIVE),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_a_warning_points_at_the_line_of_the_operation(name):
    found = caught(TRANSFORMED[name])
    assert "invalid value encountered in log" in [str(each.message) for each in found]
    for each in found:
        assert (each.filename, each.category) == (__file__, RuntimeWarning)
        if str(each.message).endswith("in log"):
            assert each.lineno == FORWARD


LINE = inspect.currentframe().f_lineno
LATER = {
    "sweep": lambda: grad(lambda x: np.sum(np.sqrt(x)))(np.zeros(2)),
    "pullback": lambda: vjp(np.sqrt, np.zeros(2))[1](np.ones(2)),
    "linear": lambda: linearize(np.sqrt, 0.0)[1](1.0),
    "graph": lambda: make_graph(np.log)(NEGATIVE)(NEGATIVE),
    "numpy code": lambda: jit(np.log, backend="numpy")(NEGATIVE),
    "checkpoint": lambda: grad(checkpoint(np.log))(-1.0),
    "scan": lambda: grad(lambda x: scan(lambda c, y: (np.sqrt(c), y), x, NEGATIVE)[0])(0.0),
    "compiled steps": lambda: jit(lambda x: np.sort(np.linalg.inv(x) * 1e300 * 1e300))(np.eye(2)),
}


@pytest.mark.parametrize("name", LATER)
def test_where_no_line_of_the_function_runs_a_warning_points_at_the_call(name):
    found = caught(LATER[name])
    assert found or name == "compiled steps"
    for each in found:
        assert each.filename == __file__ and LINE < each.lineno <= LINE + len(LATER) + 1


def test_every_line_has_its_own_warning():
    def twice(x):
        return (
            np.log(x)  # one
            + np.log(x)  # and another
        )

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")  # once for each line
        for _ in range(3):
            grad(twice)(np.float64(-1.0))
    assert len({each.lineno for each in found}) == len(found) == 2


def test_warnings_may_be_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="in log") as info:
            grad(total_log)(NEGATIVE)
    assert any(frame.name == "total_log" for frame in info.traceback)
    assert np.geterr()["invalid"] == "warn"


def test_the_modes_of_the_user_hold():
    assert caught(grad(total_log), NEGATIVE, invalid="ignore") == []
    with pytest.raises(FloatingPointError, match="in log"):
        caught(grad(total_log), NEGATIVE, invalid="raise")

    calls, written = [], []

    class Log:
        def __call__(self, kind, flag):
            calls.append(kind)

        def write(self, message):
            written.append(message)

    modes = {"divide": "warn", "over": "log", "invalid": "call", "call": Log()}

    def f(x):
        return np.sum(np.log(x)) + np.sum(np.exp(x * 1e4)) + np.sum(1 / (x + 1.0))

    found = caught(value_and_grad(f), NEGATIVE, **modes)
    assert calls[0] == "invalid value"
    assert written[0] == "Warning: overflow encountered in exp\n"
    assert {str(each.message) for each in found} == {"divide by zero encountered in divide"}
    assert {each.filename for each in found} == {__file__}


def test_modes_inside_of_the_function_hold():
    def quiet(x):
        with np.errstate(invalid="ignore"):
            return np.sum(np.log(x)) + grad(total_log)(x)[0]

    assert caught(grad(quiet), NEGATIVE) == []


def test_a_transform_leaves_no_mode_behind():
    before = np.geterr(), np.geterrcall()
    grad(total_log)(np.ones(2))
    with pytest.raises(ZeroDivisionError):
        grad(lambda x: x / 0)(1.0)
    assert (np.geterr(), np.geterrcall()) == before


def test_what_the_function_sets_for_good_stays():
    with np.errstate():

        def setting(x):
            np.seterr(divide="raise")
            return x * 2

        grad(setting)(1.0)
        modes = np.geterr()
        assert modes["divide"] == "raise" and modes["invalid"] == "warn"
        assert np.geterrcall() is None


def test_threads_have_their_own():
    found = []

    def run():
        found.extend(caught(grad(total_log), NEGATIVE))

    def outer(x):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        return x

    grad(outer)(1.0)
    assert [each.filename for each in found] == [__file__]


def test_a_lost_imaginary_part_is_warned_of_at_the_users_line():
    def real(z):
        return np.sum(z.astype(float))  # here

    def assigned(z):
        out = fnp.zeros(2)
        out[:] = z  # here
        return np.sum(out)

    for f in (real, assigned):
        lines, start = inspect.getsourcelines(f)
        here = start + next(k for k, line in enumerate(lines) if "# here" in line)
        for transformed in (grad(f), make_graph(f), lambda z, f=f: vmap(f)(z[None])):
            found = caught(transformed, np.ones(2, complex))
            places = [(each.category, each.filename, each.lineno) for each in found]
            assert places == [(np.exceptions.ComplexWarning, __file__, here)]
    with pytest.warns(np.exceptions.ComplexWarning):
        np.testing.assert_array_equal(grad(assigned)(np.ones(2, complex)), [1.0, 1.0])


def test_a_library_that_divides_by_zero_is_not_named(tmp_path, monkeypatch):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "dividing.py").write_text("def invert(x):\n    return 1.0 / x\n")
    monkeypatch.syspath_prepend(str(folder))
    import dividing

    (each,) = caught(grad(lambda x: dividing.invert(x)), np.float64(0.0))[:1]
    assert each.filename == __file__


def test_tensors_divide_by_zero_in_silence():
    program = (
        "import functrans.torch as t; x = t.zeros(2, requires_grad=True); (1 / x).sum().backward()"
    )
    program += "; t.func.grad(lambda x: (1 / x).sum())(t.zeros(2))"
    result = subprocess.run(
        [sys.executable, "-W", "always", "-c", program], capture_output=True, text=True
    )
    assert result.returncode == 0 and result.stderr == ""
