"""Probes of arrays of all kinds: files, views, strides, orders, subclasses, other bytes.

The kind of an array does not matter: results are those for a plain copy of it, and are the caller's own, and
the array itself does not change.
"""

from __future__ import annotations

from tools.fuzz.probes.probe import Probe, RejectedError, probe
from tools.fuzz.probes.sharing import (
    HELPERS,
    IDENTITIES,
    RESHAPED,
    SHAPED,
    WRAPPERS,
)
from tools.fuzz.programs.choosing import Chooser

# Arrays with the values of `v`, a plain array of dtype {d}.
_KINDS = {
    "Fortran order": "np.asfortranarray(v)",
    "memmap": 'in_file(v, "r+")',
    "memmap for reading": 'in_file(v, "r")',
    "memmap, copy on write": 'in_file(v, "c")',
    "negative strides": "v[::-1].copy()[::-1] if v.ndim else v",
    "every other": "np.repeat(v, 2, axis=0)[::2] if v.ndim else v",
    "transposed": "v.T.copy().T",
    "broadcast": "np.broadcast_to(v[:1] if v.ndim else v, (2, *v.shape))",
    "broadcast in the middle": "np.broadcast_to(v[..., None], (*v.shape, 3))",
    "subclass": "v.view(Tagged)",
    "subclass with a note": "noted(v)",
    "read-only": "read_only(v)",
    "unaligned": "unaligned(v)",
    "swapped bytes": "v.astype(v.dtype.newbyteorder())",
    "of bytes": "np.frombuffer(v.tobytes(), v.dtype).reshape(v.shape)",
    "of a bytearray": "np.frombuffer(bytearray(v.tobytes()), v.dtype).reshape(v.shape)",
    "a field": "field(v)",
    "windows": "np.lib.stride_tricks.sliding_window_view(np.arange(4.0), 2)",
    "strided by hand": "np.lib.stride_tricks.as_strided(np.arange(6.0), (2, 3), (8, 8))",
    "a column": "np.stack([v, v], axis=-1)[..., 0]",
    "no axes": "np.array(0.7)",
    "no entries": "np.zeros((0, 3))",
    "no entries inside": "np.zeros((2, 0))",
    "a NumPy scalar": "np.float64(0.7)",
    "the diagonal": "np.diagonal(np.diag(np.arange(1.0, 4.0)))",
    "the real part": "(v + 1j * v).real",
    "record array": "np.rec.array([(0.5, 1), (0.7, 2)], names='a,b').a",
    "shared by two": "(lambda big: big[:2] if big.ndim else big)(np.concatenate([v, v]) if v.ndim else v)",
    "chararray's neighbor": "np.asarray(memoryview(v.copy()))",
    "long doubles": "v.astype(np.longdouble)",
    "dates": "np.array(['2020-01-01', '2021-01-01'], 'datetime64[D]')",
    "strings": "np.array(['a', 'b'])",
    "records": "np.zeros(2, [('a', float), ('b', int)])",
    "matrix": "np.matrix(np.ones((2, 2)))",
    "masked": "np.ma.array(v, mask=v > 0.5)",
    "objects": "v.astype(object)",
}
# Kinds with arithmetic of their own, which are refused where they would be traced.
_REFUSED = ("matrix", "masked", "objects", "long doubles", "dates", "strings", "records")
_TRACED = (
    "vmapped",
    "gradient",
    "jacobian",
    "forward jacobian",
    "tangent",
    "cotangent",
    "in chunks",
)
_DEFINITIONS = {
    "in_file": "import tempfile",
    "in_file ": """
def in_file(v, mode):
    file = tempfile.NamedTemporaryFile()
    np.memmap(file.name, v.dtype, "w+", shape=v.shape or (1,))[...] = v
    return np.memmap(file.name, v.dtype, mode, shape=v.shape or (1,)).reshape(v.shape)
""",
    "Tagged": """
class Tagged(np.ndarray):
    pass
""",
    "noted": """
class Noted(np.ndarray):
    def __array_finalize__(self, source):
        self.note = getattr(source, "note", "none")


def noted(v):
    array = v.view(Noted)
    array.note = "from a test"
    return array
""",
    "read_only": """
def read_only(v):
    array = v.copy()
    array.flags.writeable = False
    return array
""",
    "unaligned": """
def unaligned(v):
    memory = np.zeros(v.nbytes + 1, np.uint8)
    array = memory[1:].view(v.dtype).reshape(v.shape)
    array[...] = v
    return array
""",
    "field": """
def field(v):
    records = np.zeros(v.shape, [("a", np.int8), ("b", v.dtype)])
    records["b"] = v
    return records["b"]
""",
}
_VALUES = [
    "np.array([[0.3, 0.8, 0.5], [0.4, 0.2, 0.9]])",
    "np.array([0.3, 0.8, 0.5])",
    "np.array([[0.3, 0.8], [0.4, 0.2]])",
    "np.array([[[0.3, 0.8], [0.4, 0.2]], [[0.1, 0.7], [0.6, 0.5]]])",
]
_EXPRESSIONS = [
    "np.sum(a, axis=0)",
    "np.sum(a)",
    "a @ a.T",
    "np.sort(a, axis=-1)",
    "np.cumsum(a, axis=0)",
    "a.reshape(-1)[:2]",
    "np.stack([a, a])",
    "np.max(a, axis=-1)",
    "a * a[:1]",
    "np.where(a > 0.4, a, -a)",
    "np.mean(a, axis=0) + a",
    "np.einsum('i...,i...->...', a, a)",
    "np.prod(a)",
    "np.dot(a, a[0])",
    "a.ravel()[::-1]",
    "np.take(a, [0, 0], axis=0)",
    "a[[0, -1]]",
    "np.linalg.norm(a)",
    "np.exp(a) / np.sum(np.exp(a))",
    "np.fft.ifft(np.fft.fft(a)).real",
    "np.float32(2.0) * a",
    "np.concatenate([a, a], axis=-1)",
    "np.roll(a, 1)",
    "np.pad(a, 1)",
    "np.outer(a, a)",
]
# Ways to pass an array in. `y` is a plain array like x.
_PLACES = {
    "tangent": "lambda x: ft.jvp(f, (np.ones(x.shape),), (x,))",
    "cotangent": "lambda x: ft.vjp(np.sin, np.ones(x.shape))[1](x)",
    "linearized": "lambda x: ft.linearize(np.sin, np.ones(x.shape))[1](x)",
    "unmapped": "lambda x: ft.vmap(lambda r, a: r * f(a), in_axes=(0, None))(np.ones(2), x)",
    "closed over by vmap": "lambda x: ft.vmap(lambda r: r * f(x))(np.ones(2))",
    "closed over by grad": "lambda x: ft.grad(lambda r: np.sum(r * f(x)))(1.5)",
    "closed over by jit": 'lambda x: ft.jit(lambda r: r * f(x), backend="numpy")(1.5)',
    "returned by jit": 'lambda x: ft.jit(lambda r: x, backend="numpy")(1.5)',
    "returned by vmap": "lambda x: ft.vmap(lambda r: x)(np.ones(2))",
    "returned by vjp": "lambda x: ft.vjp(lambda r: x, 1.5)[0]",
    "scanned": "lambda x: ft.scan(lambda c, r: (c, r), 0.0, x)",
    "mapped": "lambda x: ft.map(lambda r: r, x)",
    "vmapped": "lambda x: ft.vmap(lambda r: r)(x)",
    "vmapped last": "lambda x: ft.vmap(lambda r: r * 1.0, in_axes=-1, out_axes=-1)(x)",
    "vmapped and moved": "lambda x: ft.vmap(lambda r: r, in_axes=-1)(x)",
    "in chunks": "lambda x: ft.vmap(lambda r: r, chunk_size=1)(x)",
    "gradient": "lambda x: ft.grad(lambda a: np.sum(np.sin(f(a))))(x)",
    "value and gradient": "lambda x: ft.value_and_grad(lambda a: np.sum(np.sin(f(a))))(x)",
    "jacobian": "lambda x: ft.jacrev(f)(x)",
    "forward jacobian": "lambda x: ft.jacfwd(f)(x)",
    "accumulated": "lambda x: ft.associative_scan(np.add, x)",
    "hessian product": "lambda x: ft.hvp(lambda a: np.sum(f(a) ** 3), (np.ones(x.shape),), (x,))",
    "auxiliary": "lambda x: ft.grad(lambda r: (r * 2.0, x), has_aux=True)(1.5)",
    "raveled": "lambda x: ft.ravel_pytree([x, x])[0]",
    "assigned": "lambda x: ft.vmap(assigning)(x)",
    "assigned under grad": "lambda x: ft.grad(lambda a: np.sum(assigning(a)))(x)",
    "a native call": 'lambda x: ft.jit(f, backend="native")(x)',
    "a jitted gradient": 'lambda x: ft.jit(ft.grad(lambda a: np.sum(np.sin(f(a)))), backend="numpy")(x)',
    "called back": "lambda x: ft.pure_callback(np.sin, ft.ArraySpec(x.shape, x.dtype), x)",
    "a loop's start": "lambda x: ft.fori_loop(0, 2, lambda i, c: c, x)",
    "a branch's operand": "lambda x: ft.cond(True, f, f, x)",
    "a solution": "lambda x: ft.linear_solve(lambda u: u, x, lambda matvec, b: b)",
}
_ASSIGNING = """
def assigning(a):
    a[...] *= 2.0
    return a
"""


def write(chooser: Chooser) -> Probe:
    kind = chooser.pick(list(_KINDS))
    values = chooser.pick(_VALUES)
    dtype = chooser.pick(["", "", "", ".astype(np.float32)", ".astype(complex)", ".astype(int)"])
    if kind in _REFUSED or chooser.chance(60):
        place = chooser.pick(_TRACED if kind in _REFUSED else list(_PLACES))
        call = _PLACES[place]
        if "native" in call and chooser.chance(60):
            raise RejectedError
    else:
        group = chooser.pick(["any", "linear", "state", "rows"])
        place = chooser.pick(list(WRAPPERS[group]))
        call = f"({WRAPPERS[group][place]})(f)"
        if place == "native":
            raise RejectedError
    bodies = IDENTITIES
    if "f(" in call or call.endswith("(f)"):
        bodies = chooser.pick([IDENTITIES, _EXPRESSIONS, SHAPED, RESHAPED])
        if place in ("linear", "rows", *WRAPPERS["linear"], *WRAPPERS["rows"], *WRAPPERS["state"]):
            bodies = IDENTITIES
    body = chooser.pick(bodies)
    law = "right_or_refused" if kind in _REFUSED else "any_kind_of_array"
    text = f"v = {values}{dtype}\nx = {_KINDS[kind]}\nf = lambda a: {body}\n"
    if law == "any_kind_of_array":
        text += f"laws.any_kind_of_array({call}, x)"
    else:
        text += f"call = {call}\nlaws.right_or_refused(lambda: call(x), lambda: plainly(call, x))"
    return probe(text, kind, place, definitions=_DEFINITIONS | HELPERS | _MORE)


_MORE = {
    "assigning": _ASSIGNING,
    "plainly": """
def plainly(call, x):
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError("a mask has no meaning here")
    return call(np.array(x) if x.dtype.kind in "MUV" or x.dtype == np.longdouble else np.array(x.tolist()))
""",
}
