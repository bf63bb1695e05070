"""docs/numpy-coverage.md says what running NumPy's functions on traced values shows."""

import re
import warnings
from collections import Counter

import numpy as np
import pytest

from tests.support.coverage_runner import Mistake, examine
from tools import numpy_coverage
from tools.numpy_coverage import committed, hidden, missing, row, sections

VERSION, TABLES = committed()
SAME_VERSION = np.__version__ == VERSION
NAMES = [(section, name) for section in sections() for name in section.names]


def line_of(section, name):
    return TABLES.get(section.title, {}).get(name.replace("`", ""))


def kind_of(line):
    return line.split(" | ")[1].strip()


@pytest.mark.parametrize(
    ("section", "name"), [pytest.param(s, n, id=f"{s.title}: {n}") for s, n in NAMES]
)
def test_the_table_says_what_running_shows(section, name):
    """On another version of NumPy, only the class is compared, and only of names in both."""
    line = line_of(section, name)
    if SAME_VERSION:
        assert line is not None, f"{name} is not in the table: run tests/numpy_coverage.py"
        assert str(row(section, name)) == line
    elif line is None:
        warnings.warn(f"{section.title}.{name} is new: it is not in the table", stacklevel=1)
    else:
        assert row(section, name, lenient=True).kind == kind_of(line)


def test_every_name_has_a_call_or_a_reason_to_have_none():
    if SAME_VERSION:
        assert missing() == []
    for name in missing():
        warnings.warn(f"{name} is new: it has no call in the tables of calls", stacklevel=1)


def test_no_function_of_float_arrays_is_listed_as_no_array_operation():
    assert hidden() == []


def test_the_table_has_no_names_that_numpy_does_not_have():
    known = {(section.title, name.replace("`", "")) for section, name in NAMES}
    listed = {(title, name) for title, rows in TABLES.items() for name in rows}
    if SAME_VERSION:
        assert listed == known


def test_the_counts_are_those_of_the_rows():
    text = numpy_coverage.PAGE.read_text().split("## Counts")[1]
    head, *rows = re.findall(r"^\| (.*) \|$", text, re.MULTILINE)
    kinds = head.split(" | ")[1:-1]
    total = Counter()
    for title, rows_of_section in TABLES.items():
        if rows_of_section:
            count = Counter(map(kind_of, rows_of_section.values()))
            total += count
            cells = [str(count[kind] or "") for kind in kinds]
            assert f"{title} | {' | '.join(cells)} | {count.total()}" in rows
    assert f"all | {' | '.join(str(total[kind]) for kind in kinds)} | {total.total()}" in rows


def test_the_readme_has_the_counts():
    (summary,) = re.findall(r"^Of \d+ names, .*$", numpy_coverage.PAGE.read_text(), re.MULTILINE)
    readme = (numpy_coverage.PAGE.parent.parent / "README.md").read_text()
    assert summary in " ".join(readme.split())


# The checks themselves: each of these must be noticed.


def test_a_wrong_value_is_noticed(monkeypatch):
    from functrans.core.tracer import FUNCTIONS

    monkeypatch.setitem(FUNCTIONS, np.flip, lambda m, axis=None: m)
    with pytest.raises(Mistake, match="grad"):
        examine("np.flip(v)")


def test_a_wrong_derivative_is_noticed(monkeypatch):
    from functrans.core.tracer import UFUNCS
    from functrans.ops.families import elementwise

    wrong = elementwise(None, lambda x: -np.sinh(x), impl=np.cosh, name="wrong")
    monkeypatch.setitem(UFUNCS, np.cosh, wrong)
    with pytest.raises(Mistake, match="grad"):
        examine("np.cosh(x)")


def test_a_wrong_second_derivative_is_noticed(monkeypatch):
    from functrans import stop_gradient
    from functrans.core.tracer import UFUNCS
    from functrans.ops.families import elementwise

    once = elementwise(None, lambda x: np.cos(stop_gradient(x)), impl=np.sin, name="once")
    monkeypatch.setitem(UFUNCS, np.sin, once)
    with pytest.raises(Mistake, match="second order"):
        examine("np.sin(x)")


def test_a_wrong_batch_is_noticed(monkeypatch):
    from functrans.core.tracer import FUNCTIONS
    from functrans.ops.families import linear

    everything = linear(
        "everything",
        lambda x: np.sum(x),
        lambda g, shape: np.broadcast_to(g, shape),
        batch=lambda primitive, args, batched, size, params: np.broadcast_to(args[0].sum(), size),
        shape=lambda specs, params: np.sum(specs[0]),
    )
    monkeypatch.setitem(FUNCTIONS, np.sum, lambda a: everything(a))
    with pytest.raises(Mistake, match="vmap"):
        examine("np.sum(v)")


def test_an_error_without_a_reason_is_noticed(monkeypatch):
    from functrans.core.tracer import FUNCTIONS

    monkeypatch.setitem(FUNCTIONS, np.flip, lambda m, axis=None: m.no_such_method())
    with pytest.raises(Mistake, match="AttributeError"):
        examine("np.flip(v)")


def test_a_call_without_traced_arguments_is_no_example():
    with pytest.raises(Mistake, match="no argument"):
        examine("np.zeros(3)")
