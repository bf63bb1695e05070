"""FUNCTRANS_CACHE_DIR: machine code on disk, and what may happen to its files."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest

from functrans import grad, jit

pytest.importorskip("llvmlite")
from functrans.compiler.native import cache, engine

X = np.linspace(0, 1, 7)
EXPECTED = np.sin(X) * 2.0 + X

PROGRAM = """
import numpy as np
import functrans as ft
from functrans.compiler.native import cache
made = []
compile = cache.object_code
cache.object_code = lambda text: made.append(text) or compile(text)
x = np.linspace(0, 1, 7)
function = ft.jit(lambda x: np.sin(x) * 2.0 + x, backend="native")
np.testing.assert_allclose(function(x), np.sin(x) * 2 + x, rtol=1e-14)
slope = ft.jit(ft.grad(lambda x: np.sum(np.sort(np.exp(x)) @ np.ones((7, 3)))), backend="native")
np.testing.assert_allclose(slope(x), 3 * np.exp(x), rtol=1e-13)
print(len(made))
"""


def start(folder):
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | {"FUNCTRANS_CACHE_DIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    """How many modules a process has compiled itself."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return int(out)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FUNCTRANS_CACHE_DIR", str(tmp_path / "code"))
    return tmp_path / "code"


@pytest.fixture
def made(monkeypatch):
    """The modules that were compiled, not loaded."""
    texts = []

    def compile_and_tell(text):
        texts.append(text)
        return engine.object_code(text)

    monkeypatch.setattr(cache, "object_code", compile_and_tell)
    return texts


def use():
    np.testing.assert_allclose(
        jit(lambda x: np.sin(x) * 2.0 + x, backend="native")(X), EXPECTED, rtol=1e-14
    )


def test_a_second_process_compiles_nothing(folder):
    first = finish(start(folder))
    assert first >= 3  # the function, and the native parts of the gradient
    assert len(list(folder.iterdir())) == first
    assert finish(start(folder)) == 0


def test_processes_that_write_at_the_same_time(folder):
    processes = [start(folder) for _ in range(3)]
    assert all(finish(process) >= 0 for process in processes)
    assert finish(start(folder)) == 0
    assert all(path.suffix == ".o" for path in folder.iterdir())


def test_nothing_is_written_unless_a_folder_is_named(tmp_path, monkeypatch, made):
    monkeypatch.delenv("FUNCTRANS_CACHE_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    use()
    use()
    assert len(made) == 2 and not list(tmp_path.iterdir())


def test_files_are_found_again(folder, made):
    use()
    use()
    assert len(made) == 1 and len(list(folder.iterdir())) == 1
    jit(grad(np.sin), backend="native")(1.0)
    assert len(made) == len(list(folder.iterdir())) == 2


def changed(data, k):
    return data[:k] + bytes([data[k] ^ 1]) + data[k + 1 :]


DAMAGE = {
    "empty": lambda data: b"",
    "cut within the checksum": lambda data: data[:20],
    "cut after the checksum": lambda data: data[:32],
    "cut in half": lambda data: data[: len(data) // 2],
    "without its last byte": lambda data: data[:-1],
    "with one byte more": lambda data: data + b"\0",
    "another checksum": lambda data: changed(data, 3),
    "one bit of code": lambda data: changed(data, len(data) // 2),
    "zeros": lambda data: bytes(len(data)),
    "text": lambda data: b"this is not code" * 100,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_made_anew(damage, folder, made):
    use()
    (path,) = folder.iterdir()
    good = path.read_bytes()
    path.write_bytes(DAMAGE[damage](good))
    use()
    assert len(made) == 2
    assert hashlib.sha256(path.read_bytes()[32:]).digest() == path.read_bytes()[:32]
    use()
    assert len(made) == 2


def test_a_folder_in_place_of_a_file(folder, made):
    use()
    (path,) = folder.iterdir()
    path.unlink()
    path.mkdir()
    use()
    use()
    assert len(made) == 3
    assert list(folder.iterdir()) == [path]  # and nothing is left of what could not be written


def test_a_folder_that_cannot_be_written_to(tmp_path, monkeypatch, made):
    (tmp_path / "file").write_text("")
    for name in ("file", "file/below", "/proc/nothing/here"):
        monkeypatch.setenv("FUNCTRANS_CACHE_DIR", str(tmp_path / name))
        use()
    assert len(made) == 3


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere"
)
def test_a_read_only_folder(folder, made):
    folder.mkdir()
    folder.chmod(0o500)
    use()
    folder.chmod(0o700)
    assert len(made) == 1 and not list(folder.iterdir())


@pytest.mark.parametrize(
    "target, value",
    [
        ("functrans.compiler.native.cache._VERSION", 10**6),
        ("llvmlite.__version__", "0.0.0"),
        ("functrans.compiler.native.cache.processor", lambda: ("another", "+features")),
    ],
)
def test_code_for_another_version_or_processor_is_not_used(
    target, value, folder, made, monkeypatch
):
    use()
    monkeypatch.setattr(target, value)
    use()
    assert len(made) == 2 and len(list(folder.iterdir())) == 2


def test_constants_are_not_in_the_files(folder, made):
    # Two functions that differ in an array alone share their code, not their values.
    for scale in (2.0, 3.0):
        table = np.linspace(1.0, scale, 7)
        found = jit(lambda x, t=table: x * t + 1.0, backend="native")(X)
        np.testing.assert_allclose(found, X * table + 1.0)
    assert len(made) == 1
