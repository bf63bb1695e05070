"""Type checkers accept right user code, report typical mistakes, and know the structure of results."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import functrans

SOURCE = Path(functrans.__file__).parents[1]
CODE = Path(__file__).parent / "typing"
RIGHT, WRONG = CODE / "right.py", CODE / "wrong.py"


def mypy_lines(file: Path, folder: Path) -> dict[int, str]:
    """The lines that mypy reports, in strict mode."""
    pytest.importorskip("mypy")
    configuration = folder / "mypy.ini"
    configuration.write_text("[mypy]\nstrict = true\n")
    options = ["--config-file", str(configuration), "--cache-dir", str(folder / "cache")]
    command = [sys.executable, "-m", "mypy", *options, "--no-pretty", file.name]
    environment = {**os.environ, "MYPYPATH": str(SOURCE)}
    run = subprocess.run(command, capture_output=True, text=True, cwd=CODE, env=environment)
    assert run.returncode in (0, 1), run.stdout + run.stderr
    reported = re.findall(rf"^{file.name}:(\d+): error: (.*)$", run.stdout, re.MULTILINE)
    assert bool(reported) == run.returncode, run.stdout
    return {int(line): message for line, message in reported}


def pyright_lines(file: Path, folder: Path) -> dict[int, str]:
    """The lines that pyright reports, in its standard mode."""
    pytest.importorskip("basedpyright")
    configuration = folder / "pyrightconfig.json"
    options = {"typeCheckingMode": "standard", "include": [str(file)], "extraPaths": [str(SOURCE)]}
    configuration.write_text(json.dumps(options))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "-p", str(configuration)]
    command += ["--pythonpath", sys.executable]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode in (0, 1), run.stdout + run.stderr
    found = json.loads(run.stdout)
    assert found["summary"]["filesAnalyzed"] == 1
    reports = [each for each in found["generalDiagnostics"] if each["severity"] == "error"]
    return {each["range"]["start"]["line"] + 1: each["message"] for each in reports}


CHECKERS = pytest.mark.parametrize(
    "lines", [pytest.param(mypy_lines, marks=pytest.mark.slow), pyright_lines]
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("types")


@CHECKERS
def test_right_code_passes(lines, folder):
    reported = lines(RIGHT, folder)
    if np.lib.NumpyVersion(np.__version__) >= "2.5.0":
        # A jitted function has the first of several signatures. In NumPy 2.5, that of np.sum is for lists.
        text = RIGHT.read_text().splitlines()
        reported = {k: v for k, v in reported.items() if not text[k - 1].endswith("# overloaded")}
    assert reported == {}


@CHECKERS
def test_every_mistake_is_reported_and_nothing_else(lines, folder):
    text = WRONG.read_text().splitlines()
    marked = [number for number, line in enumerate(text, 1) if "# mistake: " in line]
    assert len(marked) >= 8
    assert sorted(lines(WRONG, folder)) == marked


def test_right_code_runs(capsys):
    runpy.run_path(str(RIGHT))
