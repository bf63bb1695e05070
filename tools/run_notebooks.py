"""Run the notebooks with the solutions of their exercises, and store them with their outputs.

    python -m tools.run_notebooks                      # all of notebooks/
    python -m tools.run_notebooks 02_autodiff 04_vmap  # those whose names begin so

A stored notebook holds what a reader sees and nothing of the machine that ran it. What the outputs have
to be like is in test_notebooks.py.
"""

import base64
import io
import os
import re
import sys
from pathlib import Path

import nbformat
from nbformat import NotebookNode

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
SECONDS_PER_CELL = 120
# One thread for products of matrices: times then depend less on what else the machine does.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

DETAILS = re.compile(r"<details>(.*?)</details>", re.S)
FENCE = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)


def paths() -> list[Path]:
    return sorted(NOTEBOOKS.glob("*.ipynb"))


def read(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def solutions(cell: NotebookNode) -> list[str]:
    """The code that a text cell hides in <details>."""
    if cell.cell_type != "markdown":
        return []
    return [code for hidden in DETAILS.findall(cell.source) for code in FENCE.findall(hidden)]


def with_solutions(notebook: NotebookNode) -> NotebookNode:
    """A copy in which every hidden solution is a cell, where a reader would write it."""
    cells = []
    for cell in notebook.cells:
        cells.append(nbformat.from_dict(cell))
        for code in solutions(cell):
            solution = nbformat.v4.new_code_cell(code)
            solution.metadata["tags"] = ["solution"]
            cells.append(solution)
    copy = nbformat.v4.new_notebook(metadata=METADATA)
    copy.cells = cells
    return copy


def execute(notebook: NotebookNode) -> NotebookNode:
    """A copy with new outputs, from a fresh kernel; an error in a cell or in a solution is raised."""
    # Matplotlib says so when it builds its font cache, once on a machine: not in a notebook, please.
    import matplotlib.font_manager  # noqa: F401
    from nbclient import NotebookClient

    copy = with_solutions(notebook)
    client = NotebookClient(
        copy,
        timeout=SECONDS_PER_CELL,
        kernel_name="python3",
        record_timing=False,
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(NOTEBOOKS)}},
    )
    client.execute(env={**os.environ, **ONE_THREAD})
    for cell in copy.cells:
        if "solution" in tags(cell):
            complain_of_errors(cell)
    copy.cells = [cell for cell in copy.cells if "solution" not in tags(cell)]
    return copy


def complain_of_errors(solution: NotebookNode) -> None:
    for output in solution.outputs:
        if output.output_type == "stream" and output.name == "stderr":
            raise RuntimeError(f"a solution wrote to stderr:\n{output.text}\n{solution.source}")


def tags(cell: NotebookNode) -> list[str]:
    found: list[str] = cell.metadata.get("tags", [])
    return found


def clean(notebook: NotebookNode) -> NotebookNode:
    """The executed notebook as it is stored: cells numbered in order, no trace of the machine."""
    notebook.metadata = nbformat.from_dict(METADATA)
    number = 0
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({"tags": tags(cell)} if tags(cell) else {})
        if cell.cell_type == "code":
            number += 1
            cell.execution_count = number
            cell.outputs = joined(cell.outputs)
            for output in cell.outputs:
                if output.output_type == "execute_result":
                    output.execution_count = number
                if "image/png" in output.get("data", {}):
                    output.data["image/png"] = with_few_colors(output.data["image/png"])
    return notebook


def with_few_colors(picture: str) -> str:
    """A figure in 256 colors, which is enough for it, and a third of the size."""
    from PIL import Image

    image = Image.open(io.BytesIO(base64.b64decode(picture)))
    if image.mode != "P":
        # Figures are drawn on white.
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image.convert("RGBA"))
        image = image.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return base64.b64encode(file.getvalue()).decode("ascii")


def joined(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Text that was printed in pieces, as one output, however the pieces arrived."""
    kept: list[NotebookNode] = []
    for output in outputs:
        last = kept[-1] if kept else None
        if last and last.output_type == output.output_type == "stream" and last.name == output.name:
            last.text += output.text
        else:
            kept.append(output)
    return kept


def store(path: Path) -> None:
    notebook = clean(execute(read(path)))
    nbformat.validate(notebook)
    nbformat.write(notebook, path)


def main(beginnings: list[str]) -> None:
    for path in paths():
        if not beginnings or any(path.name.startswith(beginning) for beginning in beginnings):
            store(path)
            print(f"stored {path.name}, {path.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main(sys.argv[1:])
