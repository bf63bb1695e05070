"""Archives from files that are not trusted: zip members, arrays, JSON and dictionaries.

Before anything is unpacked, the size of the file bounds how much it may become. Nothing here runs what a
file says, and everything raises an ordinary exception for a file that does not keep to the format.
"""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
from collections.abc import Collection, Iterable, Iterator
from math import prod
from typing import Any

import numpy as np

# A description may be this many times longer than the file. An honest one is compressed 20 times; one that is
# compressed more is stored as it is, so that whatever is written can be read.
_MOST_RATIO = 32
_MOST_AXES = 64
_MOST_ALIKE = 16  # keys of a dictionary for each different hash
_BYTES_OF_CONTAINER = 5  # in a description, at least, on average
_SHOWN = 300  # characters of a message
_DTYPE = r"[<>|][biufc][0-9]{1,2}"
_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(
    (
        rf"\{{'descr': '({_DTYPE})', 'fortran_order': (True|False), "
        r"'shape': \(((?:[0-9]{1,19}(?:,|, (?=[0-9])))*[0-9]{0,19})\), \} *\n"
    ).encode()
)


def add_member(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    """Add a member that may be `deflated` when it is read: compressed, unless that would seem hostile."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as trial:
        trial.writestr(name, content)
    believable = len(content) <= _MOST_RATIO * packed.getbuffer().nbytes
    archive.writestr(name, content, zipfile.ZIP_DEFLATED if believable else zipfile.ZIP_STORED)


def members(file: Any, deflated: Collection[str] = ()) -> Iterator[tuple[str, bytes]]:
    """The members of a zip archive, one at a time; those whose names are `deflated` may be compressed."""
    with zipfile.ZipFile(file) as archive:
        stream: Any = archive.fp
        size = stream.seek(0, os.SEEK_END)
        infos = archive.infolist()
        if len({info.filename for info in infos}) < len(infos):
            raise ValueError("two members have one name")
        if sum(info.compress_size for info in infos) > size:
            raise ValueError("the members overlap")
        for info in infos:
            most = _MOST_RATIO * size if info.filename in deflated else info.compress_size
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ValueError("a member is compressed in a way that is not used here")
            if info.file_size > most:
                raise ValueError(f"a member is too large for a file of {size} bytes")
            with archive.open(info) as member:
                # To ask for a number of bytes is what limits the decompressor: the archive may lie.
                content = member.read(info.file_size + 1)
            if len(content) != info.file_size:
                raise ValueError("a member is shorter than it says")
            yield info.filename, content


def dtype_called(name: Any) -> np.dtype[Any]:
    """A dtype of numbers from its `str`."""
    if not isinstance(name, str) or re.fullmatch(_DTYPE, name) is None:
        raise ValueError(f"{shortened(repr(name))} is not a dtype of numbers")
    return np.dtype(name)


def lengths_of(shape: Any, itemsize: int = 1) -> tuple[int, ...]:
    """A shape that an array with items of this size can have."""
    if type(shape) is not list or len(shape) > _MOST_AXES:
        raise ValueError("a shape is not a list of at most 64 lengths")
    if not all(type(n) is int and 0 <= n < 1 << 62 for n in shape):
        raise ValueError("a length is not an integer that an array can have")
    if prod(n or 1 for n in shape) * itemsize >= 1 << 62:
        raise ValueError("an array would be larger than memory can be")
    return tuple(shape)


def array_in(content: bytes) -> np.ndarray[Any, Any]:
    """The array of numbers that `np.save` wrote."""
    start = len(_MAGIC) + 2
    end = start + int.from_bytes(content[len(_MAGIC) : start], "little")
    header = _HEADER.fullmatch(content[start:end])
    if not content.startswith(_MAGIC) or header is None:
        raise ValueError("an array is not one of numbers")
    dtype = dtype_called(header[1].decode())
    shape = lengths_of([int(n) for n in header[3].split(b",") if n.strip()], dtype.itemsize)
    if prod(shape) * dtype.itemsize != len(content) - end:
        raise ValueError("an array has another number of entries than it says")
    order: Any = "F" if header[2] == b"True" else "C"
    entries = np.frombuffer(content, dtype, offset=end) if prod(shape) else np.empty(0, dtype)
    return entries.reshape(shape, order=order).copy(order=order)


def json_in(content: bytes) -> Any:
    """The value of a JSON text, in which no key comes twice, and which is not all brackets."""
    # A container takes some hundred bytes of memory, whatever is in it.
    if _BYTES_OF_CONTAINER * (content.count(b"[") + content.count(b"{")) > len(content) + 1000:
        raise ValueError("there are too many containers in a description")
    return json.loads(content.decode(), object_pairs_hook=mapping)


def mapping(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """A dictionary, of different keys that were not chosen so that looking for them takes long."""
    pairs = list(pairs)
    if len(pairs) > _MOST_ALIKE * len({hash(key) for key, _ in pairs}):
        raise ValueError("the keys of a dictionary have the same hash")
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a dictionary has a key twice")
    return found


def shortened(message: str) -> str:
    """The beginning of a message, which may quote a file."""
    return message if len(message) <= _SHOWN else f"{message[:_SHOWN]}..."


def reason(error: BaseException) -> str:
    """What is wrong with a file, from the error that reading it gave."""
    return shortened(f"{type(error).__name__}: {error}".replace("\n", " "))
