"""Values as parts of cache keys: equal only if a function cannot tell them apart.

Python's `==` is coarser: 1, 1.0 and True are equal, and so are 0.0 and -0.0, two named tuples with different
fields, dictionaries in different order, and frozen dataclasses that hold any of these. A cache of what a
function did with a value must use `frozen`, not the value, as its key.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import struct
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core import errors

_ATOMS = frozenset({type(None), bool, int, str, bytes, type(...), type(NotImplemented), type})
_DIGESTED = 64  # bytes; longer ones are represented by a digest


def frozen(value: Any, otherwise: Callable[[Any], Any] | None = None) -> Any:
    """A hashable stand-in for a value, made from its type and its bits.

    Numbers, strings, dtypes, arrays, containers, and classes that compare their fields are inspected. Objects
    of other classes are compared by their own `==`, which by default means identity. `otherwise` gives the
    stand-in for objects that are not hashable; without it they raise a TypeError.
    """
    kind = type(value)
    if kind in _ATOMS:
        return kind, value
    look = _LOOKS.get(kind)
    if look is not None:
        return kind, look(value, otherwise)
    if isinstance(value, np.dtype):
        return np.dtype, dtype_key(value, otherwise)
    if isinstance(value, enum.Enum):
        return kind, value
    for base, look in _LOOKS.items():
        if issubclass(kind, base):  # of a class derived from it, perhaps with attributes
            attributes = frozen(getattr(value, "__dict__", None) or None, otherwise)
            return kind, look(value, otherwise), attributes
    names = _fields(kind)
    if names is not None:
        return kind, tuple([frozen(getattr(value, name, None), otherwise) for name in names])
    try:
        hash(value)
    except TypeError:
        if otherwise is None:
            raise
        return kind, otherwise(value)
    return kind, value


def by_identity(value: Any) -> Any:
    """The stand-in for an object that is not hashable, valid as long as the object is alive."""
    return "object", id(value)


def _bits(value: Any, _: Any) -> Any:
    return struct.pack("d", value)


def _complex_bits(value: Any, _: Any) -> Any:
    return struct.pack("dd", value.real, value.imag)


def _entries(value: Any, otherwise: Any) -> Any:
    """The entries of a container in the order in which a loop over it meets them."""
    return tuple([frozen(entry, otherwise) for entry in value])


def _items(value: Any, otherwise: Any) -> Any:
    return tuple([(frozen(k, otherwise), frozen(v, otherwise)) for k, v in value.items()])


def _ends(value: Any, otherwise: Any) -> Any:
    return _entries((value.start, value.stop, value.step), otherwise)


def _state(value: Any, otherwise: Any) -> Any:
    """What is pickled of it: Decimal("1.0") and Decimal("1.00"), or one time in two zones, differ."""
    return frozen(value.__reduce_ex__(4)[1], otherwise)


def _scalar(value: Any, otherwise: Any) -> Any:
    return dtype_key(value.dtype, otherwise), value.tobytes()


def _array(value: Any, otherwise: Any) -> Any:
    if value.dtype.hasobject:
        data: Any = _entries(value.reshape(-1).tolist(), otherwise)
    else:
        data = value.tobytes()
        if len(data) > _DIGESTED:
            import hashlib  # which loads OpenSSL

            data = hashlib.blake2b(data).digest()
    return value.shape, dtype_key(value.dtype, otherwise), data


# Classes whose instances are inspected, including those of derived classes; np.float64 is a float, so NumPy's
# classes come first.
_LOOKS: dict[type, Callable[[Any, Any], Any]] = {
    np.generic: _scalar,
    np.ndarray: _array,
    float: _bits,
    complex: _complex_bits,
    tuple: _entries,
    list: _entries,
    frozenset: _entries,
    set: _entries,
    dict: _items,
    types.MappingProxyType: _items,
    slice: _ends,
    range: _ends,
    bytearray: lambda value, _: bytes(value),
    decimal.Decimal: _state,
    datetime.datetime: _state,
    datetime.time: _state,
    int: lambda value, _: int(value),
    str: lambda value, _: str.__str__(value),
    bytes: lambda value, _: bytes.__getitem__(value, slice(None)),
}


def _fields(kind: type) -> list[str] | None:
    """The fields of a class with a generated `__eq__`, or None if it has one of another kind.

    Also those that it does not compare: a function can look at them.
    """
    code = getattr(kind.__eq__, "__code__", None)
    if code is None or not code.co_filename.startswith("<"):
        return None
    if "__dataclass_fields__" in kind.__dict__:
        return list(kind.__dataclass_fields__)  # type: ignore[attr-defined]
    if "__attrs_attrs__" in kind.__dict__:
        return [field.name for field in kind.__attrs_attrs__]  # type: ignore[attr-defined]
    return None


# Dtypes. NumPy's `==` ignores metadata, and that long and long long have two names.

# The dtypes that exist once and for ever, by their addresses.
SINGLE_DTYPES = {id(dtype): dtype for dtype in map(np.dtype, "?bhilqBHILQefdgFDG")}


def dtype_key(dtype: np.dtype[Any], otherwise: Callable[[Any], Any] | None = by_identity) -> Any:
    """A stand-in for a dtype: an address, if it is one of those that exist once."""
    address = id(dtype)
    if address in SINGLE_DTYPES:
        return address
    if dtype.metadata is None and dtype.isnative and dtype.num in _ADDRESSES:
        return _ADDRESSES[dtype.num]  # a copy, such as one that was pickled
    inner: Any = None
    if dtype.fields is not None:
        inner = tuple(
            [
                (name, dtype_key(found, otherwise), *rest)
                for name in dtype.names or ()
                for found, *rest in [dtype.fields[name]]
            ]
        )
    elif dtype.subdtype is not None:
        inner = dtype_key(dtype.subdtype[0], otherwise), dtype.subdtype[1]
    metadata = None if dtype.metadata is None else frozen(dict(dtype.metadata), otherwise)
    return dtype, type(dtype), dtype.num, dtype.type, dtype.isalignedstruct, inner, metadata


_ADDRESSES = {dtype.num: address for address, dtype in SINGLE_DTYPES.items()}


# Metadata of containers.


class Metadata:
    """The data of a container other than its entries, as part of a structure.

    Structures are compared and cached, and the value may be a list or an array that its owner changes later.
    Once sealed, this object stands for the value at that time.
    """

    __slots__ = ("_frozen", "_value")

    def __init__(self, value: Any) -> None:
        self._value = value
        self._frozen: Any = None

    def get(self) -> Any:
        """The value, for a new container."""
        return self._value if self._frozen is None else own_copy(self._value)

    def seal(self) -> None:
        """Keep the value as it is now."""
        if self._frozen is None:
            self._frozen = frozen(self._value, by_identity)
            self._value = own_copy(self._value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Metadata):
            return NotImplemented
        return self._value is other._value or self._stand_in() == other._stand_in()

    def __hash__(self) -> int:
        return hash(self._stand_in())

    def _stand_in(self) -> Any:
        return frozen(self._value, by_identity) if self._frozen is None else self._frozen

    def __repr__(self) -> str:
        return repr(self._value)

    def __reduce__(self) -> Any:
        return Metadata, (self._value,)


def metadata_key(value: Any) -> Any:
    """The stand-in for metadata in the key of a trace."""
    try:
        return frozen(value)
    except TypeError as error:
        raise errors.InputTypeError(
            f"the metadata of a container is {value!r:.60}, for which no trace can be kept ({error}), at "
            f"{errors.user_location()}. Traces are kept for each value of it. Give its class __eq__ and "
            "__hash__, or make it a frozen dataclass."
        ) from None


def own_copy(value: Any) -> Any:
    """The value, with copies of the lists, dicts, sets and arrays in it."""
    kind = type(value)
    if kind is np.ndarray or kind is bytearray:
        return value.copy()
    if kind in (list, set):
        return kind(map(own_copy, value))
    if kind is tuple:
        copies = tuple(map(own_copy, value))
        unchanged = all(one is other for one, other in zip(copies, value, strict=True))
        return value if unchanged else copies
    if kind is dict:
        return {key: own_copy(entry) for key, entry in value.items()}
    return value
