"""Machine code that was made before: in memory, and in files if FUNCTRANS_CACHE_DIR names a folder.

A file is named by everything that the code depends on, is written under another name first, and holds a
checksum: writers do not disturb each other, and a damaged file is made anew.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

import llvmlite

from functrans.compiler.native.engine import Code, object_code, processor

_VERSION = 1  # of what a file holds


def load_code(text: str) -> Code:
    """The code of a module."""
    folder = os.environ.get("FUNCTRANS_CACHE_DIR")
    if not folder:
        return Code(object_code(text))
    path = Path(folder) / f"{_key(text)}.o"
    data = _read(path)
    if data is None:
        data = object_code(text)
        _write(path, data)
    return Code(data)


def _key(text: str) -> str:
    parts = (str(_VERSION), llvmlite.__version__, *processor(), text)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _read(path: Path) -> bytes | None:
    """What was written, or None if there is nothing or it is damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, data = content[:32], content[32:]
    return data if hashlib.sha256(data).digest() == digest else None


def _write(path: Path, data: bytes) -> None:
    """Write a file that appears whole or not at all; a folder that cannot be written to is ignored."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            try:
                file.write(hashlib.sha256(data).digest() + data)
                file.close()
                os.replace(file.name, path)
            except OSError:
                os.unlink(file.name)
    except OSError:
        pass
