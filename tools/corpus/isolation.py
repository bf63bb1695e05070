"""Run code of others in forked processes with limits on time, memory and side effects."""

import io
import json
import os
import random
import select
import signal
import sys
import tempfile
import time
import traceback
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

MEMORY = 6 * 2**30

# What the functions of the corpus must not do. Reading a file is noted, not forbidden, because
# a first call may import a module.
_FORBIDDEN = (
    "os.exec",
    "os.fork",
    "os.kill",
    "os.mkdir",
    "os.posix_spawn",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.system",
    "shutil.",
    "socket.",
    "subprocess.Popen",
    "webbrowser.open",
)
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


@dataclass
class Watch:
    """The side effects of the calls in this process."""

    active: bool = False
    effects: list[str] = field(default_factory=list)

    def hook(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.active:
            return
        if event == "open":
            self.effects.append("opens a file")
            if isinstance(args[2], int) and args[2] & _WRITES:
                raise PermissionError("functions of the corpus must not write files")
        elif event.startswith(_FORBIDDEN):
            self.effects.append(event)
            raise PermissionError(f"functions of the corpus must not use {event}")


WATCH = Watch()


def _random_state() -> tuple[Any, ...]:
    _, keys, position, *_ = np.random.get_state()
    return zlib.crc32(keys.tobytes()), position, random.getstate()


@contextmanager
def watched() -> Iterator[Watch]:
    """Note files that are opened, text that is printed and random numbers that are drawn."""
    WATCH.effects.clear()
    state = _random_state()
    out, err = sys.stdout, sys.stderr
    sys.stdout = sys.stderr = io.StringIO()
    WATCH.active = True
    try:
        yield WATCH
    finally:
        WATCH.active = False
        if sys.stdout.getvalue():  # type: ignore[attr-defined]
            WATCH.effects.append("prints")
        sys.stdout, sys.stderr = out, err
        if state != _random_state():
            WATCH.effects.append("draws random numbers")


def forked(work: Callable[[Callable[[Any], None]], None], seconds: float) -> tuple[list[Any], str]:
    """Run `work(send)` in a forked process; return what it sent, and how it ended.

    The end is `done`, `timeout`, `crash` or, if `work` raised, the text of the exception. What was
    sent before a crash is not lost.
    """
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _run_child(work, writer)
    os.close(writer)
    received = b""
    limit = time.monotonic() + seconds
    end = ""
    while True:
        left = limit - time.monotonic()
        if left <= 0 or not select.select([reader], [], [], left)[0]:
            end = "timeout"
            break
        block = os.read(reader, 65536)
        if not block:
            break
        received += block
    if end:
        os.kill(child, signal.SIGKILL)
    os.close(reader)
    os.waitpid(child, 0)
    lines = [json.loads(line) for line in received.split(b"\n")[:-1]]
    if end:
        return lines, end
    if lines and isinstance(lines[-1], dict) and "end" in lines[-1]:
        return lines[:-1], lines[-1]["end"]
    return lines, "crash"


def _run_child(work: Callable[[Callable[[Any], None]], None], writer: int) -> None:
    """The life of a forked process; it never returns."""
    import resource  # not on Windows, which cannot fork, either

    def send(data: Any) -> None:
        os.write(writer, json.dumps(data).encode() + b"\n")

    end = "done"
    try:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        sys.addaudithook(WATCH.hook)
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                work(send)
            finally:
                os.chdir("/")
    except BaseException:
        end = traceback.format_exc()
    try:
        send({"end": end})
    finally:
        os._exit(0)
