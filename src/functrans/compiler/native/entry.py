"""How Python calls native code: a function of CPython's own kind, written in LLVM IR.

It walks the containers of the arguments as they were when the function was traced, and looks at the
type, dtype, shape and order of every array. If all is as expected it makes the results' arrays, runs
the code, and puts the results into their containers. If not, it hands everything to a Python function,
the first of the context, which brings the arguments into the form expected here, or finds another trace.
If an index is out of range it hands everything to the second, which does the same in NumPy and raises.
"""

from __future__ import annotations

import ctypes
from importlib import import_module
from typing import Any

import numpy as np

from functrans.compiler.native.kinds import FLOAT64, kind_of
from functrans.compiler.native.writer import FunctionWriter
from functrans.core.shapes import ArraySpec

# The layout of CPython's objects and of NumPy's arrays, in bytes. NumPy promises it in its C API.
_TYPE, _TUPLE_SIZE, _TUPLE_ITEMS, _LIST_ITEMS, _NUMBER = 8, 16, 24, 24, 16
_DATA, _NDIM, _DIMENSIONS, _DTYPE, _FLAGS = 16, 24, 32, 56, 64
_C_ORDER_AND_ALIGNED = 0x0001 | 0x0100

_FASTCALL = 0x0080
_EMPTY, _SCALAR = 184, 60  # places in the table of NumPy's C API


class Context:
    """Addresses that the code finds in a table: objects, constants and functions."""

    def __init__(self) -> None:
        self.addresses: list[int] = []
        self.kept: list[Any] = []  # what must stay alive
        self._places: dict[int, int] = {}

    def address(self, address: int, owner: Any = None) -> int:
        """The place of an address in the table."""
        if address not in self._places:
            self._places[address] = len(self.addresses)
            self.addresses.append(address)
            self.kept.append(owner)
        return self._places[address]

    def object(self, value: Any) -> int:
        return self.address(id(value), value)

    def fill(self, table: int) -> None:
        array = (ctypes.c_void_p * max(len(self.addresses), 1)).from_address(table)
        for place, address in enumerate(self.addresses):
            array[place] = address


def _numpy_function(place: int) -> int:
    capsule = import_module("numpy._core._multiarray_umath")._ARRAY_API
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = get(capsule, None)
    return int((ctypes.c_void_p * (place + 1)).from_address(table)[place] or 0)


class EntryWriter:
    """Writes the function that Python calls.

    `arguments` and `results` are trees of tuples, lists and dicts with numbers of leaves in them.
    """

    def __init__(
        self,
        context: Context,
        arguments: tuple[Any, ...],
        results: Any,
        inputs: list[ArraySpec],
        outputs: list[ArraySpec],
        releases: bool,
    ) -> None:
        self.context = context
        self.arguments = arguments
        self.results = results
        self.inputs = inputs
        self.outputs = outputs
        self.releases = releases  # whether other threads may run meanwhile
        self.writer = FunctionWriter()
        self.globals: list[str] = []
        self.leaves: list[str] = []  # the arguments, out of their containers
        self.give_up = "failed"  # the block that frees what was made, and returns nothing

    def write(self) -> str:
        """The function `entry`, and the global `dims` that it needs."""
        writer = self.writer
        writer.start("entry")
        pointers = writer.op(f"alloca ptr, i64 {max(len(self.inputs), 1)}")
        targets = writer.op(f"alloca ptr, i64 {max(len(self.outputs), 1)}")
        numbers = writer.op(f"alloca [8 x i8], i64 {max(len(self.outputs), 1)}")
        self._require(writer.op(f"icmp eq i64 %count, {len(self.arguments)}"))
        for k, part in enumerate(self.arguments):
            self._open(part, self._read("%args", 8 * k), pointers)
        arrays = self._make_results(targets, numbers)
        if self.releases:
            # Meanwhile, another thread may take an array out of the list or dict that holds it.
            self._for_leaves("Py_IncRef")
            state = writer.call("ptr", "PyEval_SaveThread", [])
        failed = writer.op(f"call i32 @body(ptr {pointers}, ptr {targets})")
        if self.releases:
            writer.call("void", "PyEval_RestoreThread", [("ptr", state)])
            self._for_leaves("Py_DecRef")
        good, bad, memory, places = (writer.label() for _ in range(4))
        writer.branch(writer.op(f"icmp eq i32 {failed}, 0"), good, bad)
        writer.start(bad)
        writer.branch(writer.op(f"icmp eq i32 {failed}, 1"), memory, places)
        writer.start(memory)
        writer.call("ptr", "PyErr_NoMemory", [])
        writer.jump(self.give_up)
        writer.start(places)
        for array in arrays:
            if array:
                writer.call("void", "Py_DecRef", [("ptr", array)])
        self._hand_over(1)
        writer.start(good)
        writer.do(f"ret ptr {self._close(self.results, arrays, numbers)}")
        writer.start("slow")
        self._hand_over(0)
        writer.start("failed")
        writer.do("ret ptr null")
        body = "\n".join(writer.lines)
        return (
            f"define ptr @entry(ptr %self, ptr %args, i64 %count) noinline optnone {{\n{body}\n}}"
        )

    # Small steps.

    def _hand_over(self, place: int) -> None:
        """Return what a Python function of the context makes of the arguments."""
        function = self._from_context(place)
        arguments = [("ptr", function), ("ptr", "%args"), ("i64", "%count"), ("ptr", "null")]
        self.writer.do(f"ret ptr {self.writer.call('ptr', 'PyObject_Vectorcall', arguments)}")

    def _for_leaves(self, function: str) -> None:
        for leaf in self.leaves:
            self.writer.call("void", function, [("ptr", leaf)])

    def _read(self, pointer: str, offset: int, kind: str = "ptr") -> str:
        writer = self.writer
        place = writer.op(f"getelementptr i8, ptr {pointer}, i64 {offset}")
        return writer.op(f"load {kind}, ptr {place}")

    def _from_context(self, place: int) -> str:
        slot = self.writer.op(f"getelementptr ptr, ptr @context, i64 {place}")
        return self.writer.op(f"load ptr, ptr {slot}")

    def _object(self, value: Any) -> str:
        return self._from_context(self.context.object(value))

    def _require(self, condition: str) -> None:
        """Go on if it holds, and to the slow way if not."""
        further = self.writer.label()
        self.writer.branch(condition, further, "slow")
        self.writer.start(further)

    def _require_type(self, value: str, kind: type) -> None:
        found = self._read(value, _TYPE)
        self._require(self.writer.op(f"icmp eq ptr {found}, {self._object(kind)}"))

    # Arguments.

    def _open(self, part: Any, value: str, pointers: str) -> None:
        writer = self.writer
        if type(part) is int:
            self._check_leaf(part, value, pointers)
        elif type(part) is dict:
            self._require_type(value, dict)
            size = writer.call("i64", "PyDict_Size", [("ptr", value)])
            self._require(writer.op(f"icmp eq i64 {size}, {len(part)}"))
            for key, inner in part.items():
                found = writer.call(
                    "ptr", "PyDict_GetItem", [("ptr", value), ("ptr", self._object(key))]
                )
                self._require(writer.op(f"icmp ne ptr {found}, null"))
                self._open(inner, found, pointers)
        else:
            self._require_type(value, type(part))
            size = self._read(value, _TUPLE_SIZE, "i64")
            self._require(writer.op(f"icmp eq i64 {size}, {len(part)}"))
            items, start = value, _TUPLE_ITEMS
            if type(part) is list and part:
                items, start = self._read(value, _LIST_ITEMS), 0
            for k, inner in enumerate(part):
                self._open(inner, self._read(items, start + 8 * k), pointers)

    def _check_leaf(self, number: int, value: str, pointers: str) -> None:
        writer, spec = self.writer, self.inputs[number]
        self.leaves.append(value)
        if not spec.shape and spec.dtype == FLOAT64.dtype:
            # A Python float and np.float64 hold their number at the same place.
            self._require_type(value, float if spec.weak else np.float64)
            data = writer.op(f"getelementptr i8, ptr {value}, i64 {_NUMBER}")
        else:
            lengths = ", ".join(f"i64 {n}" for n in spec.shape)
            self.globals.append(
                f"@lengths{number} = internal constant [{len(spec.shape)} x i64] [{lengths}]"
            )
            data = writer.op(
                f"call ptr @data_of(ptr {value}, ptr {self._object(np.ndarray)}, "
                f"ptr {self._object(spec.dtype)}, i32 {len(spec.shape)}, ptr @lengths{number})"
            )
            self._require(writer.op(f"icmp ne ptr {data}, null"))
        slot = writer.op(f"getelementptr ptr, ptr {pointers}, i64 {number}")
        writer.do(f"store ptr {data}, ptr {slot}")

    # Results.

    def _make_results(self, targets: str, numbers: str) -> list[str]:
        """New arrays for results with axes; others are written to the stack first."""
        writer = self.writer
        arrays: list[str] = []
        for k, spec in enumerate(self.outputs):
            slot = writer.op(f"getelementptr ptr, ptr {targets}, i64 {k}")
            if not spec.shape:
                place = writer.op(f"getelementptr [8 x i8], ptr {numbers}, i64 {k}")
                writer.do(f"store ptr {place}, ptr {slot}")
                arrays.append("")
                continue
            dtype = self._object(spec.dtype)
            writer.call("void", "Py_IncRef", [("ptr", dtype)])  # the call takes one reference
            empty = self._from_context(self.context.address(_numpy_function(_EMPTY)))
            lengths = ", ".join(f"i64 {n}" for n in spec.shape)
            self.globals.append(
                f"@dims{k} = internal constant [{len(spec.shape)} x i64] [{lengths}]"
            )
            array = writer.op(
                f"call ptr {empty}(i32 {len(spec.shape)}, ptr @dims{k}, ptr {dtype}, i32 0)"
            )
            self._give_up_if_null(array)
            arrays.append(array)
            writer.do(f"store ptr {self._read(array, _DATA)}, ptr {slot}")
        return arrays

    def _give_up_if_null(self, array: str) -> None:
        """Go on with one more array to free if something fails, in a block before those so far."""
        writer = self.writer
        good, release = writer.label(), writer.label()
        writer.branch(writer.op(f"icmp ne ptr {array}, null"), good, self.give_up)
        writer.start(release)
        writer.call("void", "Py_DecRef", [("ptr", array)])
        writer.jump(self.give_up)
        self.give_up = release
        writer.start(good)

    def _close(self, part: Any, arrays: list[str], numbers: str) -> str:
        """The result: arrays and numbers in their containers. Only a lack of memory can go wrong."""
        writer = self.writer
        if type(part) is int:
            return arrays[part] or self._number(part, numbers)
        if type(part) is dict:
            made = writer.call("ptr", "PyDict_New", [])
            for key, inner in part.items():
                value = self._close(inner, arrays, numbers)
                key_object = self._object(key)
                writer.call(
                    "i32", "PyDict_SetItem", [("ptr", made), ("ptr", key_object), ("ptr", value)]
                )
                writer.call("void", "Py_DecRef", [("ptr", value)])
            return made
        values = [self._close(inner, arrays, numbers) for inner in part]
        kind = "Tuple" if type(part) is tuple else "List"
        made = writer.call("ptr", f"Py{kind}_New", [("i64", str(len(values)))])
        for k, value in enumerate(values):
            arguments = [("ptr", made), ("i64", str(k)), ("ptr", value)]
            writer.call("i32", f"Py{kind}_SetItem", arguments)
        return made

    def _number(self, k: int, numbers: str) -> str:
        """A result without axes: a NumPy scalar, or a Python number."""
        writer, spec = self.writer, self.outputs[k]
        place = writer.op(f"getelementptr [8 x i8], ptr {numbers}, i64 {k}")
        kind = kind_of(spec.dtype)
        assert kind is not None
        if spec.weak and kind.is_float:
            value = writer.op(f"load double, ptr {place}")
            return writer.call("ptr", "PyFloat_FromDouble", [("double", value)])
        if spec.weak:
            value = writer.op(f"load {kind.memory}, ptr {place}")
            if kind.is_bool:
                return writer.call(
                    "ptr", "PyBool_FromLong", [("i64", writer.op(f"zext i8 {value} to i64"))]
                )
            return writer.call("ptr", "PyLong_FromLongLong", [("i64", value)])
        scalar = self._from_context(self.context.address(_numpy_function(_SCALAR)))
        dtype = self._object(spec.dtype)
        return writer.op(f"call ptr {scalar}(ptr {place}, ptr {dtype}, ptr null)")


# Where the entries of an array begin, or null if it is not one of this dtype and shape in C order.
DATA_OF = f"""define internal ptr @data_of(ptr %value, ptr %type, ptr %dtype, i32 %ndim, ptr %lengths) {{
entry:
  %type_place = getelementptr i8, ptr %value, i64 {_TYPE}
  %its_type = load ptr, ptr %type_place
  %is_array = icmp eq ptr %its_type, %type
  br i1 %is_array, label %array, label %other
array:
  %dtype_place = getelementptr i8, ptr %value, i64 {_DTYPE}
  %its_dtype = load ptr, ptr %dtype_place
  %same_dtype = icmp eq ptr %its_dtype, %dtype
  %ndim_place = getelementptr i8, ptr %value, i64 {_NDIM}
  %its_ndim = load i32, ptr %ndim_place
  %same_ndim = icmp eq i32 %its_ndim, %ndim
  %flags_place = getelementptr i8, ptr %value, i64 {_FLAGS}
  %its_flags = load i32, ptr %flags_place
  %set = and i32 %its_flags, {_C_ORDER_AND_ALIGNED}
  %in_order = icmp eq i32 %set, {_C_ORDER_AND_ALIGNED}
  %alike = and i1 %same_dtype, %same_ndim
  %fits = and i1 %alike, %in_order
  br i1 %fits, label %axes, label %other
axes:
  %count = sext i32 %ndim to i64
  %lengths_place = getelementptr i8, ptr %value, i64 {_DIMENSIONS}
  %its_lengths = load ptr, ptr %lengths_place
  br label %axis
axis:
  %k = phi i64 [ 0, %axes ], [ %next, %same ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %compare, label %good
compare:
  %have_place = getelementptr i64, ptr %its_lengths, i64 %k
  %have = load i64, ptr %have_place
  %want_place = getelementptr i64, ptr %lengths, i64 %k
  %want = load i64, ptr %want_place
  %equal = icmp eq i64 %have, %want
  br i1 %equal, label %same, label %other
same:
  %next = add i64 %k, 1
  br label %axis
good:
  %data_place = getelementptr i8, ptr %value, i64 {_DATA}
  %data = load ptr, ptr %data_place
  ret ptr %data
other:
  ret ptr null
}}"""


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def python_function(address: int, owner: Any) -> Any:
    """The code at an address as a function that Python can call; `owner` stays alive with it."""
    definition = _MethodDef(b"compiled", address, _FASTCALL, b"Code that functrans has compiled.")
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return make(ctypes.addressof(definition), (definition, owner), None)
