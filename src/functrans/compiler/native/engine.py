"""LLVM: from the text of a module to code in memory."""

from __future__ import annotations

import os
import threading
from functools import cache
from typing import Any

import llvmlite.binding as llvm

LOCK = threading.RLock()  # one thread at a time uses LLVM's objects
_LLVMLITES = llvm.ffi.lib._lock  # taken inside LOCK; alone when llvmlite frees an object


def _take_locks() -> None:
    LOCK.acquire()
    _LLVMLITES.__enter__()


def _give_locks() -> None:
    _LLVMLITES.__exit__()
    LOCK.release()


if hasattr(os, "register_at_fork"):
    # A child process must not inherit a lock held by a thread that it does not have: it would deadlock.
    os.register_at_fork(before=_take_locks, after_in_parent=_give_locks, after_in_child=_give_locks)


@cache
def _target() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple()


@cache
def processor() -> tuple[str, str]:
    """The processor and its features, as LLVM names them."""
    return str(llvm.get_host_cpu_name()), str(llvm.get_host_cpu_features().flatten())


def _new_machine() -> Any:
    name, features = processor()
    return _target().create_target_machine(cpu=name, features=features, opt=2, jit=True)


@cache
def _machine() -> Any:
    return _new_machine()


@cache
def vector_bytes() -> int:
    """The size of the processor's vectors."""
    features = llvm.get_host_cpu_features()
    if all(features.get(name) for name in ("avx512f", "avx512vl", "avx512dq", "avx512bw")):
        return 64
    return 32 if features.get("avx2") and features.get("fma") else 16


def _join(module: Any) -> None:
    """Inline what is marked, and drop what that makes superfluous.

    The passes are chosen one by one, because llvmlite never frees the managers of LLVM's own pipelines. What
    a builder has found out about one module must not be taken for what it knows of the next one.
    """
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    builder = llvm.create_pass_builder(_machine(), options)
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_combine_pass()
    passes.add_new_gvn_pass()
    passes.add_dead_store_elimination_pass()
    passes.add_simplify_cfg_pass()
    passes.run(module, builder)
    for each in (passes, builder, options):
        each.close()


JOINED = "; joined"  # the first line of a module whose functions are joined


def object_code(text: str) -> bytes:
    """The machine code of a module, as an object file.

    The text is written as it should run, so LLVM only selects instructions. In a module with loops, it also
    joins the functions of small bodies, whose calls would take longer than their work.
    """
    with LOCK:
        machine = _machine()
        module = llvm.parse_assembly(text)
        if text.startswith(JOINED):
            _join(module)
        return bytes(machine.emit_object(module))


class Code:
    """Machine code in memory, alive as long as this object."""

    def __init__(self, object_file: bytes) -> None:
        with LOCK:
            _target()
            self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _new_machine())
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(object_file))
            self._engine.finalize_object()

    def address(self, name: str) -> int:
        """The address of a function or a variable of the module."""
        with LOCK:
            engine = self._engine
            found = engine.get_function_address(name) or engine.get_global_value_address(name)
        if not found:
            raise LookupError(f"the compiled module has no {name}")
        return int(found)
