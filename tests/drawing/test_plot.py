"""functrans.plot: each figure shows the numbers that it is given."""

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

from functrans import hessian, jacfwd, plot

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    pyplot.close("all")


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def drawn(ax):
    """The figure as pixels, which fails if anything in it cannot be drawn."""
    ax.figure.canvas.draw()
    return np.asarray(ax.figure.canvas.buffer_rgba())


def test_sparsity_shows_what_is_not_zero():
    jacobian = jacfwd(np.diff)(np.arange(6.0))
    ax = plot.sparsity(jacobian)
    np.testing.assert_array_equal(ax.images[0].get_array(), jacobian != 0)
    assert ax.get_title() == "10 of 30 entries are not zero (33%)"
    assert ax.get_xlabel() == "input" and ax.get_ylabel() == "output"
    assert drawn(ax).std() > 0


def test_outputs_come_first_where_there_are_more_axes():
    jacobian = jacfwd(lambda x: x * 2)(np.ones((2, 3)))
    ax = plot.sparsity(jacobian)
    np.testing.assert_array_equal(ax.images[0].get_array(), np.eye(6))
    assert plot.matrix(jacfwd(np.sum)(np.ones(4))).images[0].get_array().shape == (1, 4)


def test_matrix_is_symmetric_around_zero():
    h = hessian(lambda x: x[0] ** 2 * x[1] - x[1] ** 3)(np.array([1.0, 3.0]))
    ax = plot.matrix(h)
    np.testing.assert_array_equal(ax.images[0].get_array(), h)
    assert ax.images[0].get_clim() == (-18.0, 18.0)
    assert [text.get_text() for text in ax.texts] == ["6", "2", "2", "-18"]
    assert len(ax.figure.axes) == 2  # and the color bar
    drawn(ax)
    assert plot.matrix(np.zeros((2, 2))).images[0].get_clim() == (-1.0, 1.0)
    large = plot.matrix(np.arange(1e4).reshape(100, 100))
    assert not large.texts
    drawn(plot.matrix(np.array([[np.nan, 1.0], [np.inf, -2.0]])))


def test_growth_fits_powers():
    ns = np.array([10, 100, 1000])
    ax = plot.growth(ns, {"sort": 3.0 * ns**1.1, "product": 1e-6 * ns**3.0})
    assert legend(ax) == ["sort, slope 1.10", "product, slope 3.00"]
    assert ax.get_xscale() == ax.get_yscale() == "log"
    fits, points = ax.lines[::2], ax.lines[1::2]
    np.testing.assert_allclose(fits[0].get_ydata(), 3.0 * ns[[0, -1]] ** 1.1)
    np.testing.assert_allclose(points[1].get_ydata(), 1e-6 * ns**3.0)
    drawn(ax)


def test_memory_curve():
    ax = plot.memory_curve([10, 1000], {"kept": [1e3, 1e5], "checkpoints": [1e3, 1e4]})
    assert legend(ax) == ["kept, slope 1.00", "checkpoints, slope 0.50"]
    assert ax.yaxis.get_major_formatter()(2.5e6, 0) == "2.5 MB"
    assert ax.yaxis.get_major_formatter()(12.0, 0) == "12 B"
    assert ax.get_xlabel() == "depth" and ax.get_ylabel() == "memory"
    drawn(ax)


def test_ticks_of_a_short_range_are_numbers_that_do_not_crowd():
    ax = plot.growth([16, 36, 64, 100, 144, 256], {"cost": [16, 36, 64, 100, 144, 256]})
    ax.figure.canvas.draw()
    shown = [label.get_text() for label in ax.get_xticklabels(which="both") if label.get_text()]
    assert {"20", "50", "100", "200"} <= set(shown)
    boxes = [
        label.get_window_extent()
        for label in ax.get_xticklabels(which="both")
        if label.get_text() and ax.get_xlim()[0] <= label.get_position()[0] <= ax.get_xlim()[1]
    ]
    boxes.sort(key=lambda box: box.x0)
    assert len(boxes) >= 4
    assert all(one.x1 < other.x0 for one, other in pairwise(boxes))


def test_speed_is_relative_to_the_baseline():
    ax = plot.speed({"grad": 2.5, "jit": 0.5})
    assert [bar.get_width() for bar in ax.patches] == [2.5, 0.5]
    assert [text.get_text() for text in ax.texts] == ["2.50×", "0.50×"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["grad", "jit"]
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), [1.0, 1.0])
    times = plot.speed({"NumPy": 4.0, "grad": 10.0, "jit": 2.0}, baseline="NumPy")
    assert [bar.get_width() for bar in times.patches] == [2.5, 0.5]
    assert times.get_xlabel() == "time, relative to NumPy"
    drawn(times)


def test_axes_can_be_given():
    figure, axes = pyplot.subplots(1, 5)
    returned = [
        plot.sparsity(np.eye(2), axes[0]),
        plot.matrix(np.eye(2), ax=axes[1]),
        plot.growth([1, 2], {"a": [1, 2]}, ax=axes[2]),
        plot.memory_curve([1, 2], {"a": [1, 2]}, ax=axes[3]),
        plot.speed({"a": 1.0}, ax=axes[4]),
    ]
    assert all(a is b for a, b in zip(returned, axes, strict=True))
    assert pyplot.get_fignums() == [figure.number]
    drawn(axes[0])


def test_errors():
    with pytest.raises(TypeError, match="draws one array of numbers with at least one axis"):
        plot.sparsity({"w": np.eye(2)})
    with pytest.raises(TypeError, match="draws one array of numbers"):
        plot.matrix(1.0)
    with pytest.raises(TypeError, match=r"draws real numbers.*np.real"):
        plot.matrix(1j * np.eye(2))
    with pytest.raises(TypeError, match="'a' has 1 values for 2 sizes"):
        plot.growth([1, 2], {"a": [1]})
    with pytest.raises(TypeError, match="the baseline 'NumPy' is not one of grad"):
        plot.speed({"grad": 1.0}, baseline="NumPy")


def test_without_matplotlib_the_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "functrans\[plot\]"'):
        plot.speed({"a": 1.0})


def test_nothing_is_loaded_before_it_is_used():
    code = (
        "import sys, functrans; functrans.make_graph(lambda x: x + 1)(1.0); functrans.plot; "
        "print([m for m in ('matplotlib', 'tqdm', 'functrans.drawing') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
