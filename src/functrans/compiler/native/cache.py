"""Machine code in files, if FUNCTRANS_CACHE_DIR names a folder.

The key of a file, its identity, is a digest of everything that the code depends on. A file holds a tag and
the code. The tag authenticates both the identity and the code (HMAC), with a secret stored in the same
folder. So a file that is damaged, swapped with another one, or made without the secret is not used, and the
code is compiled again. Anyone who can write to the folder could read the secret or replace it, so a folder
that others can write to is refused.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import struct
import sys
import sysconfig
import time
import warnings
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from functrans.compiler.native.engine import Code, object_code, processor
from functrans.compiler.native.private_folder import PrivateFolder, RefusedError
from functrans.compiler.warnings import CacheWarning
from functrans.core import errors

_VERSION = 2  # of the content of a file
_SECRET = "secret"
_SECRET_BYTES = _TAG_BYTES = 32
_MOST_BYTES = 1 << 26  # of a file; thousands of equations compile to about a million
_UNFINISHED = 3600.0  # seconds after which an incomplete file counts as abandoned


def load_code(text: str) -> Code:
    """The code of a module."""
    folder = os.environ.get("FUNCTRANS_CACHE_DIR")
    if not folder:
        return Code(object_code(text))
    data: bytes | None = None
    try:
        with PrivateFolder(folder) as files:
            data = _found_or_made(files, text)
    except RefusedError as error:
        _warn(folder, str(error))
    except OSError as error:
        _warn(folder, f"{error}")
    return Code(object_code(text) if data is None else data)


def _found_or_made(files: PrivateFolder, text: str) -> bytes:
    identity = _identity(text)
    secret = _secret(files)
    name = f"{identity.hex()}.o"
    content = files.read(name, _MOST_BYTES)
    if content is not None:
        tag, data = content[:_TAG_BYTES], content[_TAG_BYTES:]
        if hmac.compare_digest(tag, _tag(secret, identity, data)):
            return data
    data = object_code(text)
    if len(data) + _TAG_BYTES <= _MOST_BYTES:
        _tidy(files)
        files.write(name, _tag(secret, identity, data) + data)
    return data


def _tag(secret: bytes, identity: bytes, data: bytes) -> bytes:
    return hmac.digest(secret, identity + data, "sha256")


def _secret(files: PrivateFolder) -> bytes:
    """The secret that authenticates the files of a folder; the first process creates it."""
    for replace in (False, True):  # a damaged one is replaced
        found = files.read(_SECRET, _SECRET_BYTES)
        if found is not None and len(found) == _SECRET_BYTES:
            return found
        files.write(_SECRET, secrets.token_bytes(_SECRET_BYTES), replace=replace)
    found = files.read(_SECRET, _SECRET_BYTES)
    if found is None or len(found) != _SECRET_BYTES:
        raise RefusedError(f"the file {_SECRET!r} of {_SECRET_BYTES} bytes cannot be written in it")
    return found


# Identities of code.


def _identity(text: str) -> bytes:
    """A digest of a module's text, and of everything else that the code depends on."""
    return _digest(str(_VERSION), *_versions(), *processor(), text)


def _digest(*parts: str) -> bytes:
    """A digest of several parts, including where each part ends."""
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode()
        digest.update(struct.pack("<Q", len(encoded)) + encoded)
    return digest.digest()


def _versions() -> tuple[str, ...]:
    """The compiler, and the layouts of the Python and NumPy objects that the code accesses."""
    numpy_core: Any = import_module("numpy._core._multiarray_umath")
    return (
        _own_code(),
        llvmlite.__version__,
        repr(llvm.llvm_version_info),
        llvm.get_process_triple(),
        sys.version,
        str(sysconfig.get_config_var("SOABI")),
        f"{sys.byteorder} {struct.calcsize('P')}",
        np.__version__,
        str(numpy_core._get_ndarray_c_version()),
    )


@cache
def _own_code() -> str:
    """A digest of the files next to this one, which define the contents of the table of addresses."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)} ".encode() + content)
    return digest.hexdigest()


# The folder.

_refused: list[str] = []  # the last folder that was refused, and why
_tidied: list[str] = []  # once in a process


def _warn(folder: str, reason: str) -> None:
    """Warn that a folder is not used, and why; once per folder."""
    if _refused == [folder, reason]:
        return
    _refused[:] = [folder, reason]
    warnings.warn(
        f"FUNCTRANS_CACHE_DIR names {folder}, but no machine code is read from it or written to it: "
        f"{reason}. Anyone who can write to that folder can run code in this process, so you must own it "
        "and only you may have write access. Name another folder; it is created if it does not exist.",
        CacheWarning,
        stacklevel=errors.user_depth(),
    )


def _tidy(files: PrivateFolder) -> None:
    if not _tidied:
        _tidied.append("done")
        files.remove_unfinished(time.time() - _UNFINISHED)
