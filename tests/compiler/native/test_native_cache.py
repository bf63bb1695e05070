"""FUNCTRANS_CACHE_DIR: machine code on disk, and what may happen to its files."""

import errno
import hashlib
import hmac
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest

from functrans import grad, jit
from functrans.errors import CacheWarning
from tests.support import ROOT

pytest.importorskip("llvmlite")
from functrans.compiler.native import cache, engine

FULL = os.environ.get("FUNCTRANS_LOAD") == "full"
ROOT_USER = hasattr(os, "geteuid") and os.geteuid() == 0

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


def codes(folder):
    """The files with code; there is a secret as well."""
    assert {path.name for path in folder.iterdir() if path.suffix != ".o"} <= {"secret"}
    return sorted(folder.glob("*.o"))


def finish(process):
    """How many modules a process has compiled itself."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return int(out)


@pytest.fixture(autouse=True, scope="module")
def shared_functions():
    """Code that all modules share is compiled once per process: before anything is counted."""
    use()
    jit(grad(np.sin), backend="native")(1.0)


@pytest.fixture(autouse=True)
def nothing_was_said(monkeypatch):
    monkeypatch.setattr(cache, "_refused", [])


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
    assert len(codes(folder)) == first
    assert finish(start(folder)) == 0


def test_processes_that_write_at_the_same_time(folder):
    processes = [start(folder) for _ in range(3)]
    assert all(finish(process) >= 0 for process in processes)
    assert finish(start(folder)) == 0
    assert len(codes(folder)) >= 3


def test_nothing_is_written_unless_a_folder_is_named(tmp_path, monkeypatch, made):
    monkeypatch.delenv("FUNCTRANS_CACHE_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    use()
    use()
    assert len(made) == 2 and not list(tmp_path.iterdir())


def test_files_are_found_again(folder, made):
    use()
    use()
    assert len(made) == 1 and len(codes(folder)) == 1
    jit(grad(np.sin), backend="native")(1.0)
    assert len(made) == len(codes(folder)) == 2


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
    (path,) = codes(folder)
    good = path.read_bytes()
    path.write_bytes(DAMAGE[damage](good))
    use()
    assert len(made) == 2
    assert path.read_bytes()[32:] == good[32:]
    use()
    assert len(made) == 2


def test_a_folder_in_place_of_a_file(folder, made):
    use()
    (path,) = codes(folder)
    path.unlink()
    path.mkdir()
    use()
    use()
    assert len(made) == 3
    assert codes(folder) == [path]  # and nothing is left of what could not be written


def test_a_folder_that_cannot_be_written_to(tmp_path, monkeypatch, made):
    (tmp_path / "file").write_text("")
    for name in ("file", "file/below", "/proc/nothing/here"):
        monkeypatch.setenv("FUNCTRANS_CACHE_DIR", str(tmp_path / name))
        with pytest.warns(CacheWarning, match="no machine code is read from it"):
            use()
    assert len(made) == 3


@pytest.mark.skipif(ROOT_USER, reason="root may write anywhere")
def test_a_read_only_folder(folder, made):
    use()
    folder.chmod(0o500)
    use()
    jit(lambda x: x - 1.0, backend="native")(X)  # which is not kept
    folder.chmod(0o700)
    assert len(made) == 2 and len(codes(folder)) == 1


@pytest.mark.parametrize(
    "target, value",
    [
        ("functrans.compiler.native.cache._VERSION", 10**6),
        ("llvmlite.__version__", "0.0.0"),
        ("functrans.compiler.native.cache.processor", lambda: ("another", "+features")),
        ("functrans.compiler.native.cache._own_code", lambda: "another"),
        ("sys.version", "4.0.0"),
        ("numpy.__version__", "3.0.0"),
        ("numpy._core._multiarray_umath._get_ndarray_c_version", lambda: 1),
    ],
)
def test_code_for_another_version_or_processor_is_not_used(
    target, value, folder, made, monkeypatch
):
    use()
    monkeypatch.setattr(target, value)
    use()
    assert len(made) == 2 and len(codes(folder)) == 2


def test_constants_are_not_in_the_files(folder, made):
    # Two functions that differ in an array alone share their code, not their values.
    for scale in (2.0, 3.0):
        table = np.linspace(1.0, scale, 7)
        found = jit(lambda x, t=table: x * t + 1.0, backend="native")(X)
        np.testing.assert_allclose(found, X * table + 1.0)
    assert len(made) == 1


# Files that were made to deceive, and folders that others could have put them into.

OTHER = lambda x: (x * 5.0 - 1.0)[::-1]


def test_files_that_are_exchanged_are_not_used(folder, made):
    use()
    (first,) = codes(folder)
    jit(OTHER, backend="native")(X)
    (second,) = set(codes(folder)) - {first}
    one, two = first.read_bytes(), second.read_bytes()
    first.write_bytes(two)
    second.write_bytes(one)
    use()
    np.testing.assert_allclose(jit(OTHER, backend="native")(X), OTHER(X), rtol=1e-14)
    assert len(made) == 4  # both were made anew


@pytest.mark.parametrize("key", ["", "identity", "another secret"])
def test_content_with_a_checksum_that_anyone_can_compute_is_not_used(key, folder, made):
    use()
    (path,) = codes(folder)
    tampered = changed(path.read_bytes()[32:], 700)
    identity = bytes.fromhex(path.stem)
    digest = {
        "": lambda: hashlib.sha256(tampered).digest(),
        "identity": lambda: hashlib.sha256(identity + tampered).digest(),
        "another secret": lambda: hmac.digest(bytes(32), identity + tampered, "sha256"),
    }[key]()
    path.write_bytes(digest + tampered)
    use()
    assert len(made) == 2


def test_only_this_user_can_read_the_files(folder, made):
    old = os.umask(0)
    try:
        use()
    finally:
        os.umask(old)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


@pytest.mark.parametrize("mode", [0o770, 0o777, 0o702, 0o1777])
@pytest.mark.parametrize("which", ["the folder", "its parent"])
def test_a_folder_that_others_can_write_to_is_refused_and_said_once(mode, which, folder, made):
    use()
    place = folder if which == "the folder" else folder.parent
    before = sorted(folder.iterdir())
    place.chmod(mode)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        use()
        use()
    place.chmod(0o700)
    assert sorted(folder.iterdir()) == before
    if which == "its parent" and mode == 0o1777:  # sticky, as /tmp is: others cannot exchange it
        assert not caught and len(made) == 1
        return
    (warning,) = caught
    assert warning.category is CacheWarning and warning.filename == __file__
    assert f"other users can write to {place}" in str(warning.message)
    assert f"{mode:04o}" in str(warning.message) and "chmod go-w" in str(warning.message)
    assert len(made) == 3
    use()  # it is used again once that is mended
    assert len(made) == 3


@pytest.mark.skipif(not ROOT_USER, reason="only root can give a file away")
@pytest.mark.parametrize(
    "which", ["the folder", "its parent", "a link to it", "a file", "the secret"]
)
def test_what_belongs_to_another_user_is_not_used(which, tmp_path, folder, made, monkeypatch):
    use()
    link = tmp_path / "link"
    link.symlink_to(folder)
    places = {"the folder": folder, "its parent": tmp_path, "a link to it": link}
    places |= {"a file": codes(folder)[0], "the secret": folder / "secret"}
    place = places[which]
    os.lchown(place, 12345, 12345)
    if which in ("a file", "the secret"):
        use()
        assert len(made) == 2 and place.stat().st_uid == 0  # another one has its place
        return
    monkeypatch.setenv("FUNCTRANS_CACHE_DIR", str(link if place is link else folder))
    with pytest.warns(CacheWarning, match="belongs to another user"):
        use()
    os.lchown(place, 0, 0)
    assert len(made) == 2


def test_a_folder_behind_links_and_dots(tmp_path, made, monkeypatch):
    (tmp_path / "a" / "b").mkdir(parents=True, mode=0o700)
    (tmp_path / "link").symlink_to("a/b")
    monkeypatch.chdir(tmp_path)
    for name in ("link/../b/./new", str(tmp_path / "link" / "new"), "a//b/new/"):
        monkeypatch.setenv("FUNCTRANS_CACHE_DIR", name)
        use()
    assert len(made) == 1 and len(codes(tmp_path / "a" / "b" / "new")) == 1
    (tmp_path / "loop").symlink_to("loop")
    monkeypatch.setenv("FUNCTRANS_CACHE_DIR", "loop/new")
    with pytest.warns(CacheWarning, match="symbolic links"):
        use()


def test_missing_parents_are_made_for_this_user_alone(tmp_path, made, monkeypatch):
    old = os.umask(0o002)
    try:
        monkeypatch.setenv("FUNCTRANS_CACHE_DIR", str(tmp_path / "no" / "home" / "code"))
        use()
        use()
    finally:
        os.umask(old)
    assert len(made) == 1
    assert (tmp_path / "no").stat().st_mode & 0o777 == 0o700


def _without_space(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("step", ["open", "fdopen", "replace", "link"])
def test_a_full_disk(step, folder, made, monkeypatch):
    use()
    if step == "link":  # by which the secret is put in its place
        (folder / "secret").unlink()
    for path in codes(folder):
        path.unlink()
    plain = getattr(os, step)

    def fails(*args, **kwargs):
        writing = {"open": lambda: args[1] & os.O_CREAT, "fdopen": lambda: args[1] == "wb"}
        writes = writing.get(step, lambda: True)()
        return _without_space() if writes else plain(*args, **kwargs)

    with monkeypatch.context() as context, warnings.catch_warnings():
        warnings.simplefilter("ignore", CacheWarning)
        context.setattr(os, step, fails)
        use()
    assert len(made) == 2
    codes(folder)  # nothing unfinished is left
    use()
    use()
    assert len(made) <= 3


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))  # a file is cut there, as on a full disk
"""


def test_files_that_cannot_grow(folder):
    done = subprocess.run(
        [sys.executable, "-c", LIMITED + PROGRAM],
        env=os.environ | {"FUNCTRANS_CACHE_DIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert not codes(folder)


@pytest.mark.parametrize("home", ["missing", "read-only"])
def test_without_a_home(home, tmp_path):
    place = tmp_path / "home"
    if home == "read-only":
        place.mkdir(mode=0o500)
    environment = os.environ | {"HOME": str(place), "FUNCTRANS_CACHE_DIR": str(place / "code")}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0 and int(done.stdout) >= 3, done.stderr


def _use_in_child(queue):
    use()
    queue.put(True)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_fork_while_another_thread_writes(folder):
    stop = threading.Event()

    def write():
        number = 0.0
        while not stop.is_set():
            number += 1.0
            jit(lambda x, n=number: x * n, backend="native")(X)
            for path in folder.glob("*.o"):
                path.unlink(missing_ok=True)

    writer = threading.Thread(target=write)
    writer.start()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    try:
        for _ in range(20 if FULL else 5):
            child = context.Process(target=_use_in_child, args=(queue,))
            child.start()
            assert queue.get(timeout=60)
            child.join(60)
            assert child.exitcode == 0
    finally:
        stop.set()
        writer.join()


def test_processes_that_are_killed_while_they_write(folder, made, monkeypatch):
    for k in range(20 if FULL else 4):
        process = start(folder)
        time.sleep(0.3 + 0.05 * k)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    use()
    assert made or codes(folder)
    # Files that they have left are removed gradually.
    left = folder / "unfinished-0123456789abcdef"
    left.write_bytes(b"half")
    os.utime(left, (0, 0))
    fresh = folder / "unfinished-fedcba9876543210"
    fresh.write_bytes(b"half")
    monkeypatch.setattr(cache, "_tidied", [])
    jit(lambda x: x * 3.0 - 7.0, backend="native")(X)
    assert not left.exists() and fresh.exists()


@pytest.mark.slow
def test_nothing_in_the_folder_crashes_or_misleads():
    """Exchanged, cut, flipped, linked, foreign, huge and vanished files, and folders alike."""
    attacks = 10_000 if FULL else 320
    done = subprocess.run(
        [sys.executable, "-m", "tools.hostile_folder", "--attacks", str(attacks)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=3600 if FULL else 300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failed" in done.stdout
    loaded = int(re.search(r"(\d+) of them from a file", done.stdout)[1])
    assert loaded > attacks // 10  # the files that were still good are used
