"""Files that are made to deceive: refused by the documented error, at once, in little memory."""

import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import functrans as ft
import functrans.torch as torch
from functrans.core import archives
from tests.support import ROOT

pytest.importorskip("resource")

SECONDS, MEGABYTES = 20, 300  # what a file of half a megabyte may take, at most


def _run(*options, **settings):
    command = [sys.executable, "-m", "tools.hostile_files", *options]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=600, cwd=ROOT, **settings
    )


@pytest.mark.slow
def test_hostile_files_are_refused_in_little_time_and_memory():
    made = _run()
    assert made.returncode == 0, made.stderr
    read = _run("read", input=made.stdout)
    assert read.returncode == 0, (read.returncode, read.stdout[-1000:], read.stderr[-1000:])
    outcomes = [json.loads(line) for line in read.stdout.splitlines()]
    assert len(outcomes) == len(json.loads(made.stdout))
    bad = [
        outcome
        for outcome in outcomes
        if outcome[4] != "is refused" or outcome[2] > SECONDS or outcome[3] > MEGABYTES
    ]
    assert not bad


def test_what_is_written_can_be_read_however_well_it_is_compressed():
    graph = ft.make_graph(lambda xs: list(xs))([np.ones(3)] * 20_000)
    file = io.BytesIO()
    graph.save(file)
    assert len(ft.load_graph(file).inputs) == 20_000
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archives.add_member(archive, "x", b" " * (1 << 20))
    assert dict(archives.members(file, deflated=("x",))) == {"x": b" " * (1 << 20)}


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0), (4,), (2, 3), (2, 3, 4)])
@pytest.mark.parametrize("dtype", ["?", "i1", "<u8", ">f8", "f2", "c8", "g"])
def test_arrays_come_back(dtype, shape, order):
    array = np.asarray(np.arange(np.prod(shape)).reshape(shape), dtype, order=order)
    file = io.BytesIO()
    np.save(file, array)
    found = archives.array_in(file.getvalue())
    assert found.dtype == array.dtype and found.shape == shape and found.flags.writeable
    np.testing.assert_array_equal(found, array)
    assert found.strides == array.strides


def test_every_truncated_or_flipped_file_of_tensors_is_an_error_or_the_tensors():
    file = io.BytesIO()
    torch.save({"w": torch.ones(2, 3), "k": [1, None, "x", torch.arange(3)]}, file)
    data = file.getvalue()
    for length in range(0, len(data), 23):
        with pytest.raises(torch.errors.TensorValueError, match=r"torch\.save"):
            torch.load(io.BytesIO(data[:length]))
    rng = np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(data)
        damaged[rng.integers(len(data))] ^= 1 << rng.integers(8)
        try:
            found = torch.load(io.BytesIO(bytes(damaged)))
        except torch.errors.TensorValueError:
            continue
        assert str(found) == str(torch.load(io.BytesIO(data)))


def test_files_that_cannot_be_opened_say_so(tmp_path):
    for load in ft.load_graph, torch.load:
        with pytest.raises(FileNotFoundError):
            load(tmp_path / "nothing")
        with pytest.raises(IsADirectoryError):
            load(tmp_path)
    if Path(os.devnull).exists():
        with pytest.raises(ft.errors.GraphError):
            ft.load_graph(os.devnull)
