"""Functions that all modules share: each is compiled once per process, and never freed."""

from __future__ import annotations

import ctypes
import os
import platform
import re
from collections.abc import Callable, Iterable
from functools import partial

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir

from functrans.compiler.native import mathematics
from functrans.compiler.native.cache import load_code
from functrans.compiler.native.engine import LOCK, Code
from functrans.compiler.native.kinds import FLOAT32, FLOAT64, number_kind_of
from functrans.compiler.native.pool import pool_text
from functrans.compiler.native.running import running_function
from functrans.compiler.native.small_matrices import matrix_function
from functrans.compiler.native.tiles import TileWriter
from functrans.compiler.native.unpacking import ARGUMENTS
from functrans.compiler.native.unpacking import FUNCTIONS as ARGUMENT_FUNCTIONS
from functrans.compiler.native.workspace import WORKSPACE

# Whether Python has a signal to handle, such as Ctrl-C: then it raises the exception, and returns 3.
INTERRUPTED = """
declare i32 @PyGILState_Ensure()
declare i32 @PyErr_CheckSignals()
declare void @PyGILState_Release(i32)

define i64 @ft_interrupted() {
  %state = call i32 @PyGILState_Ensure()
  %found = call i32 @PyErr_CheckSignals()
  call void @PyGILState_Release(i32 %state)
  %raised = icmp ne i32 %found, 0
  %status = select i1 %raised, i64 3, i64 0
  ret i64 %status
}
"""

_codes: dict[str, Code] = {}  # by the name of each function


def provide_vector_function(name: str, letter: str, width: int) -> None:
    """Make a vector function available to modules."""

    def text() -> str:
        module = ir.Module("function")
        mathematics.function(module, name, letter, width).linkage = "external"
        return str(module)

    _provide((f"ft_{name}_{letter}x{width}",), text)


def provide_declared(declarations: Iterable[str]) -> None:
    """Provide the other library functions that a module declares."""
    for declaration in declarations:
        found = re.search(r"@(ft_\w+)", declaration)
        name = found[1] if found else ""
        if name in ARGUMENT_FUNCTIONS:
            _provide(ARGUMENT_FUNCTIONS, lambda: ARGUMENTS)
        elif name in ("ft_take_workspace", "ft_give_workspace"):
            _provide(("ft_take_workspace", "ft_give_workspace"), lambda: WORKSPACE)
        elif name == "ft_interrupted":
            _provide((name,), lambda: INTERRUPTED)
        elif name == "ft_run":
            _provide(("ft_run", "ft_forget"), _pool)
        elif found and (matrix := re.fullmatch(r"ft_(solve|det|slogdet|cholesky)_([df])", name)):
            kind = FLOAT64 if matrix[2] == "d" else FLOAT32
            _provide((name,), partial(matrix_function, matrix[1], kind))
        elif chain := re.fullmatch(r"ft_running_(\w+)_(plain|wide)_(\w+)", name):
            running_kind = number_kind_of(np.dtype(chain[3]))
            assert running_kind is not None
            _provide((name,), partial(running_function, chain[1], chain[2], running_kind))
        elif name.startswith("ft_product_"):
            _provide((name,), lambda name=name: _product(name))  # type: ignore[misc]


def _provide(names: tuple[str, ...], text: Callable[[], str]) -> None:
    """Compile the functions of one module, if that has not been done."""
    with LOCK:
        if names[0] in _codes:
            return
        code = load_code(text())
        # A thread may run its code until the process ends, when all modules are already freed.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(code))
        for name in names:
            _codes[name] = code
            llvm.add_symbol(name, code.address(name))
        if "ft_forget" in names:
            forget = ctypes.CFUNCTYPE(None)(code.address("ft_forget"))
            os.register_at_fork(after_in_child=forget)


def _pool() -> str:
    """The thread pool, with the processor's pause instruction for waiting loops."""
    machine = platform.machine().lower()
    if machine in ("x86_64", "amd64"):
        return pool_text("void @llvm.x86.sse2.pause()")
    if machine in ("aarch64", "arm64"):
        return pool_text("void @llvm.aarch64.hint(i32 1)")
    return pool_text("void @llvm.donothing()")


def product_function(letter: str, vector_bytes: int) -> str:
    """The name of the matrix product."""
    return f"ft_product_{letter}{vector_bytes}"


def _product(name: str) -> str:
    found = re.fullmatch(r"ft_product_([df])(\d+)", name)
    assert found is not None
    kind = FLOAT64 if found[1] == "d" else FLOAT32
    return TileWriter(name, kind, int(found[2])).text()
