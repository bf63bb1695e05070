"""Compiles the vector functions of the native backend into loops over arrays, for their tests."""

import ctypes
import time

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir

from functrans.compiler.native import mathematics
from functrans.compiler.native.vectors import FORMATS

DTYPES = {"d": np.float64, "f": np.float32}

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()


def machine():
    target = llvm.Target.from_default_triple()
    features = llvm.get_host_cpu_features().flatten()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=2, jit=True
    )


def loop_module(name, kind, width):
    """The text of a module with `loop(n, out, x...)`, which fills n lanes; width divides n."""
    module = ir.Module("loop")
    function = mathematics.function(module, name, kind, width)
    function.attributes.add("alwaysinline")
    vector = ir.VectorType(FORMATS[kind].real, width)
    count = ir.IntType(64)
    pointers = [vector.as_pointer()] * (1 + mathematics.arity(name))
    loop = ir.Function(module, ir.FunctionType(ir.VoidType(), [count, *pointers]), "loop")
    size, out, *arrays = loop.args
    entry, body, done = (loop.append_basic_block() for _ in range(3))
    builder = ir.IRBuilder(entry)
    builder.branch(body)
    builder.position_at_end(body)
    place = builder.phi(count)
    alignment = 4 if kind == "f" else 8
    values = [builder.load(builder.gep(array, [place]), align=alignment) for array in arrays]
    builder.store(builder.call(function, values), builder.gep(out, [place]), align=alignment)
    following = builder.add(place, count(1))
    place.add_incoming(count(0), entry)
    place.add_incoming(following, builder.block)
    ended = builder.icmp_unsigned("==", builder.mul(following, count(width)), size)
    builder.cbranch(ended, done, body)
    builder.position_at_end(done)
    builder.ret_void()
    return str(module)


def optimized(text, tuned):
    """The parsed module with its functions inlined: there is little else to gain."""
    module = llvm.parse_assembly(text)
    module.verify()
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_simplify_cfg_pass()
    passes.add_new_gvn_pass()
    passes.run(module, llvm.create_pass_builder(tuned, llvm.create_pipeline_tuning_options()))
    return module


class Compiled:
    """A vector function as a function of arrays."""

    def __init__(self, name, kind, width=None):
        self.dtype = DTYPES[kind]
        self.width = width or (4 if kind == "d" else 8)
        tuned = machine()
        module = optimized(loop_module(name, kind, self.width), tuned)
        self.engine = llvm.create_mcjit_compiler(module, tuned)
        self.engine.finalize_object()
        pointers = [ctypes.c_void_p] * (1 + mathematics.arity(name))
        signature = ctypes.CFUNCTYPE(None, ctypes.c_int64, *pointers)
        self.loop = signature(self.engine.get_function_address("loop"))

    def run(self, out, *arrays):
        """Fill `out`, whose length the width divides."""
        self.loop(out.size, out.ctypes.data, *(array.ctypes.data for array in arrays))

    def nanoseconds(self, *arrays, rounds=300):
        """The least time for an element of one run over the arrays."""
        out = np.empty_like(arrays[0])
        pointers = [out.ctypes.data, *(array.ctypes.data for array in arrays)]
        times = []
        for _ in range(rounds):
            start = time.perf_counter_ns()
            self.loop(out.size, *pointers)
            times.append(time.perf_counter_ns() - start)
        return min(times) / out.size

    def __call__(self, *arrays):
        size = arrays[0].size
        padding = -size % self.width
        padded = [np.concatenate([a, np.ones(padding, self.dtype)]) for a in arrays]
        out = np.empty(size + padding, self.dtype)
        self.run(out, *padded)
        return out[:size]


def compile_milliseconds(name, kind, width):
    """The least time from nothing to machine code, for the loop with this function in it."""
    tuned = machine()
    times = []
    for _ in range(5):
        start = time.perf_counter()
        tuned.emit_object(optimized(loop_module(name, kind, width), tuned))
        times.append(time.perf_counter() - start)
    return min(times) * 1e3
