"""The notebooks run from top to bottom, print what they show, and hold nothing but what they teach.

What a notebook claims, it asserts in its cells. Outputs are compared as well, apart from those of cells
with the tag `varies`: times, for example. `python -m tools.run_notebooks` stores them anew.
"""

import ast
import re

import pytest

nbformat = pytest.importorskip("nbformat")
for needed in ("nbclient", "ipykernel", "matplotlib"):
    pytest.importorskip(needed)

from tools import run_notebooks  # noqa: E402

pytestmark = pytest.mark.notebooks

PATHS = run_notebooks.paths()
LARGEST = 400_000  # bytes
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?", re.I)
# Where a machine shows through: folders of a user or a system, and addresses of objects.
MACHINE = re.compile(r"(?:/(?:home|root|tmp|usr|opt|work|Users)/)|[A-Z]:\\\\|\bat 0x[0-9a-f]+")

each_notebook = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def texts(cell):
    """The printed output of a cell and the value of its last line, as text."""
    found = []
    for output in cell.outputs:
        if output.output_type == "stream":
            found.append(output.text)
        elif "text/plain" in output.get("data", {}):
            found.append(output.data["text/plain"])
    return " ".join(" ".join(found).split())


def pages(cell):
    """The HTML pages and drawings that a cell displayed."""
    data = [output.get("data", {}) for output in cell.outputs]
    return " ".join(each.get(kind, "") for each in data for kind in ("text/html", "image/svg+xml"))


def assert_same_text(stored, new):
    """Equal words, and numbers that differ at most as other processors make them differ."""
    assert NUMBER.sub("#", new) == NUMBER.sub("#", stored)
    pairs = zip(NUMBER.findall(stored), NUMBER.findall(new), strict=True)
    for old_number, new_number in pairs:
        assert float(new_number) == pytest.approx(float(old_number), rel=1e-4, abs=1e-9), (
            stored,
            new,
        )


def test_there_are_notebooks():
    assert PATHS


@each_notebook
def test_it_runs_and_prints_what_it_shows(path):
    stored = run_notebooks.read(path)
    new = run_notebooks.clean(run_notebooks.execute(stored))
    for old_cell, new_cell in zip(code_cells(stored), code_cells(new), strict=True):
        assert_quiet(new_cell)
        if "varies" not in run_notebooks.tags(old_cell):
            assert_same_text(texts(old_cell), texts(new_cell))


def assert_quiet(cell):
    for output in cell.outputs:
        assert output.output_type != "error", cell.source
        assert output.get("name") != "stderr", output.text


@each_notebook
def test_it_is_stored_with_outputs_and_without_traces_of_a_machine(path):
    notebook = run_notebooks.read(path)
    nbformat.validate(notebook)
    assert path.stat().st_size < LARGEST
    assert notebook.metadata == run_notebooks.METADATA
    numbers = [cell.execution_count for cell in code_cells(notebook)]
    assert numbers == list(range(1, len(numbers) + 1))
    for cell in notebook.cells:
        assert set(cell.metadata) <= {"tags"}
        assert set(run_notebooks.tags(cell)) <= {"varies"}
    for cell in code_cells(notebook):
        assert cell.source.strip()
        assert_quiet(cell)
        assert not MACHINE.search(cell.source), cell.source
        assert not MACHINE.search(texts(cell)), texts(cell)
        assert not MACHINE.search(pages(cell)), cell.source


@each_notebook
def test_it_teaches(path):
    notebook = run_notebooks.read(path)
    opening = notebook.cells[0]
    assert opening.cell_type == "markdown"
    assert opening.source.startswith("# ")
    assert "you will be able to" in opening.source

    trees = [ast.parse(cell.source) for cell in code_cells(notebook)]
    claims = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    assert len(claims) >= 5

    exercises = [cell for cell in notebook.cells if re.search(r"\*\*Exercise", cell.source)]
    assert len(exercises) >= 2
    for cell in exercises:
        hidden = run_notebooks.solutions(cell)
        assert hidden, cell.source
        # A solution shows that it is right, too.
        assert any("assert" in code for code in hidden), cell.source

    images = [
        output
        for cell in code_cells(notebook)
        for output in cell.outputs
        if {"image/png", "image/svg+xml", "text/html"} & set(output.get("data", {}))
    ]
    assert images


def test_the_comparison_of_texts_can_fail():
    assert_same_text("loss 0.12345678 after 10 steps", "loss 0.12345679 after 10 steps")
    for stored, new in [
        ("loss 0.1234", "loss 0.1236"),
        ("loss 0.1234", "cost 0.1234"),
        ("loss 0.1234", "loss 0.1234 0.1"),
    ]:
        with pytest.raises(AssertionError):
            assert_same_text(stored, new)


def test_solutions_are_found_and_run_where_they_stand():
    text = "**Exercise.** Add.\n<details><summary>Solution</summary>\n\n```python\nx = 1\n```\n</details>"
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_markdown_cell(text), nbformat.v4.new_code_cell("x")]
    codes = [cell.source for cell in run_notebooks.with_solutions(notebook).cells]
    assert codes == [text, "x = 1\n", "x"]
