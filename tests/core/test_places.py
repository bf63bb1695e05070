"""Messages and warnings name a line of the user's own code, not one of a library that it calls."""

import dataclasses
import importlib
import statistics
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest

from functrans import errors, grad, jit, make_graph, vmap
from functrans.core import places

THREE = np.array([1.0, 2.0, 3.0])


def message_of(function, *args):
    with pytest.raises(errors.FunctransError) as info:
        function(*args)
    return str(info.value)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Write a package to a folder of installed ones, and import it."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    names = []

    def install(name, **files):
        (folder / name).mkdir()
        for file, text in {"__init__": "", **files}.items():
            (folder / name / f"{file}.py").write_text(textwrap.dedent(text))
        names.append(name)
        return importlib.import_module(name)

    yield install
    for module in [m for m in sys.modules if m.split(".")[0] in names]:
        del sys.modules[module]


BAD = """
    def branch(x):
        return x if x > 0 else -x
"""


def test_a_mistake_inside_of_a_library_is_at_the_line_that_calls_it(installed):
    library = installed("somelib", _impl=BAD, __init__="from somelib._impl import branch")

    def model(x):
        return library.branch(x) * 2  # the user's line

    message = message_of(make_graph(model), 1.0)
    assert "at test_places.py" in message and "in model" in message
    assert "`return library.branch(x) * 2  # the user's line` (inside somelib.branch)" in message


def test_a_function_of_a_library_under_a_transform_is_at_the_line_of_the_transform(installed):
    library = installed("somelib", __init__=BAD)
    message = message_of(lambda: make_graph(library.branch)(1.0))
    assert "`message = message_of(lambda: make_graph(library.branch)(1.0))`" in message
    assert "(inside somelib.branch)" in message


def test_a_callback_of_the_users_inside_of_a_library_is_the_users_line(installed):
    library = installed("somelib", __init__="def apply(f, x):\n    return f(x)")

    def callback(x):
        return x if x > 0 else -x

    message = message_of(make_graph(lambda x: library.apply(callback, x)), 1.0)
    assert "in callback: `return x if x > 0 else -x`." in message


def test_a_package_that_transforms_its_own_functions_is_the_user(installed):
    library = installed(
        "owner",
        helpers=BAD,
        __init__="""
            from functrans import make_graph
            from owner.helpers import branch

            def train():
                return make_graph(lambda x: 2 * branch(x))(1.0)
        """,
    )
    assert "at helpers.py, line 3, in branch: `return x if x > 0 else -x`" in message_of(
        library.train
    )


def test_where_all_code_is_installed_the_innermost_package_is_the_user(installed):
    start = "from functrans import make_graph\n\ndef start(f):\n    make_graph(f)(1.0)\n\nstart(branch)\n"
    installed("alone", tool=textwrap.dedent(BAD) + start)
    # In a separate process, so that the stack has no frame of this test.
    result = subprocess.run(
        [sys.executable, "-m", "alone.tool"],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert "at tool.py, line 3, in branch: `return x if x > 0 else -x`" in result.stderr


@pytest.mark.usefixtures("without_hooks")
def test_scipy_is_never_the_user():
    interpolate = pytest.importorskip("scipy.interpolate")

    def curve(y):
        return interpolate.CubicSpline(np.arange(3.0), y)(1.5)

    message = message_of(grad(curve), THREE)
    assert "in curve: `return interpolate.CubicSpline(np.arange(3.0), y)(1.5)`" in message
    assert "(inside scipy.interpolate.CubicSpline)" in message


def test_the_standard_library_is_not_the_user():
    def centered(x):
        return x - sum(sorted(x, key=lambda each: each)) / statistics.fmean(x)

    message = message_of(make_graph(centered), THREE)
    assert "in centered" in message and "statistics.py" not in message


@pytest.mark.parametrize("file", ["<stdin>", "<string>", "<ipython-input-3-abc>", "<doctest x[0]>"])
def test_code_without_a_file_is_the_users(file):
    names = {"make_graph": make_graph}
    code = "def f(x):\n    return 1 if x > 0 else 2\ndef run():\n    return make_graph(f)(1.0)\n"
    exec(compile(code, file, "exec"), names)
    assert f"at {file}, line 2, in f" in message_of(names["run"])


def test_methods_that_python_writes_are_not_the_users():
    @dataclasses.dataclass
    class Pair:
        a: object
        b: object

    def equal(x):
        return Pair(x, x + 1) == Pair(x + 1, x)  # the user's line

    message = message_of(make_graph(equal), 1.0)
    assert "the user's line" in message


def test_a_warning_points_at_the_users_line_and_not_at_a_library(installed):
    library = installed("somelib", __init__="def total(f, xs):\n    return [f(x) for x in xs]")
    f = jit(lambda x: np.sum(x), backend="numpy")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        library.total(f, [np.ones(n) for n in range(20)])
    (warning,) = [each for each in caught if each.category is errors.RetraceWarning]
    assert warning.filename == __file__


def test_frames_can_be_told_apart():
    assert places.calling_frame() is sys._getframe()
    assert places.user_frame() is sys._getframe()
    assert vmap(lambda x: x * (places.user_frame().f_code.co_name == "<lambda>"))(THREE)[2] == 3
