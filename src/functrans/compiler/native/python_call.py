"""How Python calls native code: a CPython function written in LLVM IR.

It walks the containers of the arguments, and checks the type, dtype, shape and memory order of every array.
If all are as they were when the function was traced, it creates the result arrays, runs the code, and puts
the results into their containers. If not, it passes everything to the first Python function of the context,
which converts the arguments, or finds another trace. If an index is out of range, it passes everything to the
second, which does the same in NumPy and raises an error.
"""

from __future__ import annotations

import ctypes
from importlib import import_module
from typing import Any

import numpy as np

from functrans.compiler.native.instructions import FunctionWriter
from functrans.compiler.native.kinds import FLOAT64, is_python_integer, number_kind_of
from functrans.compiler.native.unpacking import TYPE
from functrans.core.shapes import ArraySpec

_FASTCALL = 0x0080
_EMPTY, _SCALAR = 184, 60  # places in the table of NumPy's C API


class AddressTable:
    """Addresses that the code finds in a table: objects, constants and functions."""

    def __init__(self) -> None:
        self.addresses: list[int] = []
        self.kept: list[Any] = []  # objects to keep alive
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

    `arguments` and `results` are trees of tuples, lists and dicts with numbers of leaves in them. The code
    that all modules share is in unpacking.py; this function only says what is where.
    """

    def __init__(
        self,
        context: AddressTable,
        arguments: tuple[Any, ...],
        results: Any,
        inputs: list[ArraySpec],
        outputs: list[ArraySpec],
        without_axes: frozenset[int],
        releases: bool,
    ) -> None:
        self.context = context
        self.arguments = arguments
        self.results = results
        self.inputs = inputs
        self.outputs = outputs
        # Whether each result is an array; those in `without_axes` are, and all that have axes.
        self.is_array = [bool(v.shape) or k in without_axes for k, v in enumerate(outputs)]
        self.releases = releases  # whether to release Python's lock
        self.writer = FunctionWriter()
        self.globals: list[str] = []
        # Tables on the stack: the data pointers of arguments and results, and the objects.
        self.pointers = self.leaves = self.targets = self.arrays = self.numbers = ""
        self.integers = ""  # the numbers of arguments that are Python integers

    def write(self) -> str:
        """The function `entry`."""
        writer = self.writer
        writer.start("entry")
        self.pointers, self.leaves = (self._table("ptr", self.inputs) for _ in range(2))
        self.targets, self.arrays = (self._table("ptr", self.outputs) for _ in range(2))
        self.numbers = self._table("[8 x i8]", self.outputs)
        self.integers = self._table("i64", self.inputs)
        self._require(writer.op(f"icmp eq i64 %count, {len(self.arguments)}"))
        for k, part in enumerate(self.arguments):
            self._open(part, self._read("%args", 8 * k))
        self._make_results()
        count = ("i64", str(len(self.inputs)))
        if self.releases:
            # Another thread may remove an array from its list or dict while the code runs.
            writer.call("void", "ft_hold", [("ptr", self.leaves), count])
            state = writer.call("ptr", "PyEval_SaveThread", [])
        failed = writer.op(f"call i32 @body(ptr {self.pointers}, ptr {self.targets})")
        if self.releases:
            writer.call("void", "PyEval_RestoreThread", [("ptr", state)])
            writer.call("void", "ft_release", [("ptr", self.leaves), count])
        good, bad, memory, other, places, raised = (writer.label() for _ in range(6))
        writer.branch(writer.op(f"icmp eq i32 {failed}, 0"), good, bad)
        writer.start(bad)
        self._release_results()
        writer.branch(writer.op(f"icmp eq i32 {failed}, 1"), memory, other)
        writer.start(memory)
        writer.call("ptr", "PyErr_NoMemory", [])
        writer.do("ret ptr null")
        writer.start(other)
        writer.branch(writer.op(f"icmp eq i32 {failed}, 3"), raised, places)
        writer.start(raised)
        writer.do("ret ptr null")
        writer.start(places)
        self._hand_over(1)
        writer.start(good)
        writer.do(f"ret ptr {self._close(self.results)}")
        writer.start("slow")
        self._hand_over(0)
        writer.start("large")
        self._hand_over(1)
        writer.start("failed")
        self._release_results()
        writer.do("ret ptr null")
        body = "\n".join(writer.lines)
        return (
            f"define ptr @entry(ptr %self, ptr %args, i64 %count) noinline optnone {{\n{body}\n}}"
        )

    # Small steps.

    def _table(self, kind: str, leaves: list[ArraySpec]) -> str:
        return self.writer.op(f"alloca {kind}, i64 {max(len(leaves), 1)}")

    def _hand_over(self, place: int) -> None:
        """Return the result of a Python function of the context for these arguments."""
        function = self._from_context(place)
        arguments = [("ptr", function), ("ptr", "%args"), ("i64", "%count"), ("ptr", "null")]
        self.writer.do(f"ret ptr {self.writer.call('ptr', 'PyObject_Vectorcall', arguments)}")

    def _release_results(self) -> None:
        count = str(len(self.outputs))
        self.writer.call("void", "ft_release", [("ptr", self.arrays), ("i64", count)])

    def _read(self, pointer: str, offset: int, kind: str = "ptr") -> str:
        writer = self.writer
        place = writer.op(f"getelementptr i8, ptr {pointer}, i64 {offset}")
        return writer.op(f"load {kind}, ptr {place}")

    def _from_context(self, place: int) -> str:
        slot = self.writer.op(f"getelementptr ptr, ptr @context, i64 {place}")
        return self.writer.op(f"load ptr, ptr {slot}")

    def _object(self, value: Any) -> str:
        return self._from_context(self.context.object(value))

    def _place(self, value: Any) -> tuple[str, str]:
        """The place of an object in the context, as an argument."""
        return ("i64", str(self.context.object(value)))

    def _require(self, condition: str, otherwise: str = "slow") -> None:
        """Continue if the condition holds, otherwise go to the slow path."""
        further = self.writer.label()
        self.writer.branch(condition, further, otherwise)
        self.writer.start(further)

    def _lengths(self, name: str, shape: tuple[int, ...]) -> list[tuple[str, str]]:
        """A shape as two arguments: the number of axes, and the address of their lengths."""
        lengths = ", ".join(f"i64 {n}" for n in shape)
        self.globals.append(f"@{name} = internal constant [{len(shape)} x i64] [{lengths}]")
        return [("i32", str(len(shape))), ("ptr", f"@{name}")]

    # Arguments.

    def _open(self, part: Any, value: str) -> None:
        writer = self.writer
        if type(part) is int:
            self._take(part, value)
        elif type(part) is dict:
            found = self._read(value, TYPE)
            self._require(writer.op(f"icmp eq ptr {found}, {self._object(dict)}"))
            size = writer.call("i64", "PyDict_Size", [("ptr", value)])
            self._require(writer.op(f"icmp eq i64 {size}, {len(part)}"))
            position = writer.op("alloca i64")
            writer.do(f"store i64 0, ptr {position}")
            for key, inner in part.items():
                arguments = [("ptr", value), ("ptr", position), ("ptr", "@context")]
                found = writer.call("ptr", "ft_entry", [*arguments, self._place(key)])
                self._require(writer.op(f"icmp ne ptr {found}, null"))
                self._open(inner, found)
        else:
            kind = type(part)
            arguments = [("ptr", value), ("ptr", "@context"), self._place(kind)]
            arguments += [("i64", str(len(part))), ("i1", "true" if kind is list else "false")]
            items = writer.call("ptr", "ft_items", arguments)
            self._require(writer.op(f"icmp ne ptr {items}, null"))
            for k, inner in enumerate(part):
                self._open(inner, self._read(items, 8 * k))

    def _take(self, number: int, value: str) -> None:
        writer, spec = self.writer, self.inputs[number]
        arguments = [("ptr", value), ("ptr", "@context")]
        tables = [("ptr", self.pointers), ("ptr", self.leaves), ("i64", str(number))]
        if is_python_integer(spec):
            place = writer.op(f"getelementptr i64, ptr {self.integers}, i64 {number}")
            arguments += [self._place(int), *tables, ("ptr", place)]
            taken = writer.call("i32", "ft_take_integer", arguments)
            self._require(writer.op(f"icmp ne i32 {taken}, 0"))
            self._require(writer.op(f"icmp eq i32 {taken}, 1"), "large")
            return
        if not spec.shape and spec.dtype == FLOAT64.dtype:
            # A Python float and np.float64 hold their number at the same offset.
            arguments.append(self._place(float if spec.weak else np.float64))
            taken = writer.call("i1", "ft_take_number", [*arguments, *tables])
        else:
            arguments += [self._place(np.ndarray), self._place(spec.dtype)]
            arguments += self._lengths(f"lengths{number}", spec.shape)
            taken = writer.call("i1", "ft_take_array", [*arguments, *tables])
        self._require(taken)

    # Results.

    def _make_results(self) -> None:
        """New arrays for results; numbers are written to the stack first."""
        writer = self.writer
        for k in range(len(self.outputs)):
            slot, place = (
                writer.op(f"getelementptr ptr, ptr {table}, i64 {k}")
                for table in (self.arrays, self.targets)
            )
            writer.do(f"store ptr null, ptr {slot}")
            if not self.is_array[k]:
                number = writer.op(f"getelementptr [8 x i8], ptr {self.numbers}, i64 {k}")
                writer.do(f"store ptr {number}, ptr {place}")
        for k, spec in enumerate(self.outputs):
            if self.is_array[k]:
                empty = ("i64", str(self.context.address(_numpy_function(_EMPTY))))
                arguments = [("ptr", "@context"), empty, self._place(spec.dtype)]
                arguments += self._lengths(f"dims{k}", spec.shape)
                arguments += [("ptr", self.targets), ("ptr", self.arrays), ("i64", str(k))]
                self._require(writer.call("i1", "ft_make_array", arguments), "failed")

    def _close(self, part: Any) -> str:
        """The result: arrays and numbers in their containers. It fails only for lack of memory."""
        writer = self.writer
        if type(part) is int:
            return self._read(self.arrays, 8 * part) if self.is_array[part] else self._number(part)
        if type(part) is dict:
            made = writer.call("ptr", "PyDict_New", [])
            for key, inner in part.items():
                value = self._close(inner)
                key_object = self._object(key)
                writer.call(
                    "i32", "PyDict_SetItem", [("ptr", made), ("ptr", key_object), ("ptr", value)]
                )
                writer.call("void", "Py_DecRef", [("ptr", value)])
            return made
        values = [self._close(inner) for inner in part]
        kind = "Tuple" if type(part) is tuple else "List"
        made = writer.call("ptr", f"Py{kind}_New", [("i64", str(len(values)))])
        for k, value in enumerate(values):
            arguments = [("ptr", made), ("i64", str(k)), ("ptr", value)]
            writer.call("i32", f"Py{kind}_SetItem", arguments)
        return made

    def _number(self, k: int) -> str:
        """A result without axes: a NumPy scalar, or a Python number."""
        writer, spec = self.writer, self.outputs[k]
        place = writer.op(f"getelementptr [8 x i8], ptr {self.numbers}, i64 {k}")
        kind = number_kind_of(spec.dtype)
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


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def python_function(address: int, owner: Any) -> Any:
    """The code at an address as a function that Python can call; it keeps `owner` alive."""
    definition = _MethodDef(b"compiled", address, _FASTCALL, b"Code that functrans has compiled.")
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return make(ctypes.addressof(definition), (definition, owner), None)
