"""Calls of the methods, attributes and operators of np.ndarray, and of options: see coverage_calls.py."""

import numpy as np

METHODS = """
T | x.T
T | c.T
all | b.all(axis=1)
any | b.any()
argmax | x.argmax(axis=0)
argmin | x.argmin()
argpartition | v.argpartition(2)[2]
argsort | x.argsort(axis=0)
astype | x.astype(complex)
astype | x.astype(np.float32).astype(float)[:0]
astype | x.astype(int)
base | x.base is None
byteswap | x.byteswap()
choose | k.choose([v, w, 0.0])
clip | x.clip(-0.5, 0.5)
clip | x.clip(max=u)
compress | x.compress([True, False, True], axis=1)
conj | z.conj()
conjugate | z.conjugate()
copy | x.copy()
copy | x.T.copy(order="F")
ctypes | x.ctypes.shape[0]
cumprod | x.cumprod(axis=1)
cumsum | x.cumsum()
data | x.data.shape
device | x.device
diagonal | A.diagonal()
dot | x.dot(A)
dot | v.dot(w)
dtype | x.dtype
dump | x.dump(io.BytesIO())
dumps | len(x.dumps()) > 0
fill | x.fill(t)
flags | x.flags.c_contiguous
flat | x.flat[1:4]
flat | x.flat = v
flat | x.flat[[0, 3]] = t
flat | [a for a in x.flat]
flatten | x.flatten()
flatten | x.flatten("F")
getfield | x.getfield(float)
imag | z.imag
imag | z.imag = v[:3]
item | x.item(0)
item | n.item(0)
itemsize | x.itemsize
mT | c.mT
max | x.max(axis=1)
mean | x.mean(axis=0)
min | x.min()
nbytes | x.nbytes
ndim | x.ndim
nonzero | b.nonzero()
partition | v.partition(2); v[2]
prod | x.prod(axis=1)
put | x.put([0, 4], v[:2])
ravel | x.ravel()
ravel | x.T.ravel("K")
real | z.real
real | z.real = v[:3]
repeat | x.repeat(2, axis=0)
reshape | x.reshape(3, 2)
reshape | x.reshape((-1, 2), order="F")
resize | x.resize((3, 2), refcheck=False)
round | x.round()
searchsorted | s.searchsorted(x)
setfield | x.setfield(y, float)
setflags | x.setflags(write=True)
shape | x.shape
shape | x.shape = (3, 2); x
size | x.size
sort | x.sort(axis=0)
squeeze | x[None].squeeze(axis=0)
std | x.std(axis=1, ddof=1)
strides | x.strides
sum | x.sum()
sum | x.sum(axis=1, keepdims=True)
swapaxes | c.swapaxes(0, 2)
take | v.take(k)
to_device | x.to_device("cpu")
tobytes | x.tobytes()
tofile | x.tofile(os.devnull)
tolist | x.tolist()
tolist | n.tolist()
trace | A.trace()
transpose | c.transpose(2, 0, 1)
transpose | x.transpose()
var | x.var(axis=0)
view | x.view()
view | Z.view(float)
view | x.view(np.int64)
"""

_BINARY = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%"}
_BINARY_OF_INTEGERS = {"and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>"}
OPERATORS = "\n".join(
    [
        f"__{r}{name}__ | {call}"
        for name, sign in _BINARY.items()
        for r, call in (
            ("", f"x {sign} p"),
            ("r", f"2.5 {sign} p"),
            ("r", f"np.ones((2, 3)) {sign} p"),
            ("i", f"x {sign}= p"),
        )
    ]
    + [
        f"__{r}{name}__ | {call}"
        for name, sign in _BINARY_OF_INTEGERS.items()
        for r, call in (("", f"n {sign} m"), ("r", f"3 {sign} n"), ("i", f"n {sign}= m"))
    ]
    + [
        f"__{name}__ | x {sign} y"
        for name, sign in {
            "lt": "<",
            "le": "<=",
            "gt": ">",
            "ge": ">=",
            "eq": "==",
            "ne": "!=",
        }.items()
    ]
)
OPERATORS += """
__abs__ | abs(x)
__abs__ | abs(z)
__neg__ | -x
__pos__ | +x
__invert__ | ~b
__pow__ | p ** y
__pow__ | x ** 2
__rpow__ | 2.0 ** x
__ipow__ | p **= y
__divmod__ | divmod(x, p)
__rdivmod__ | divmod(2.5, p)
__matmul__ | x @ A
__rmatmul__ | np.ones((2, 3)) @ A
__imatmul__ | A @= B
__getitem__ | x[1]
__getitem__ | x[:, ::-2]
__getitem__ | x[..., None, 0]
__getitem__ | x[[0, 1, 1], [2, 0, 2]]
__getitem__ | v[k]
__getitem__ | x[b]
__setitem__ | x[0] = t
__setitem__ | x[:, 1:] = y[:, :2]
__setitem__ | x[[1, 0], [2, 2]] = v[:2]
__setitem__ | v[k] = t
__setitem__ | x[b] = t
__iter__ | [row * 2 for row in x]
__len__ | len(x)
__contains__ | 1 in n
__bool__ | bool(t)
__int__ | int(n[0, 0])
__index__ | [0.0, 1.0, 2.0][k[0]]
__float__ | float(t)
__float__ | float(n[0, 0])
__complex__ | complex(z[0])
__copy__ | copy.copy(x)
__deepcopy__ | copy.deepcopy(x)
__array__ | x.__array__()
__array_namespace__ | x.__array_namespace__().sin(x)
__dlpack__ | x.__dlpack__() is None
__dlpack_device__ | x.__dlpack_device__()
"""

# Arguments for the methods of every binary ufunc: of numbers on which it is smooth, or of integers.
_REAL = "add subtract multiply divide maximum minimum fmax fmin hypot logaddexp logaddexp2 arctan2"
_REAL += " copysign nextafter"
_POSITIVE = "power float_power floor_divide remainder fmod heaviside"
_LOGIC = "greater greater_equal less less_equal equal not_equal logical_and logical_or logical_xor"
_INTEGER = "gcd lcm bitwise_and bitwise_or bitwise_xor left_shift right_shift"
_CALLS = {
    "reduce": "np.{f}.reduce({a}, axis=1)",
    "accumulate": "np.{f}.accumulate({a}, axis=1)",
    "outer": "np.{f}.outer({a}, {b})",
    "reduceat": "np.{f}.reduceat({a}, [0, 2, 1], axis=1)",
    "at": "np.{f}.at({a}, (0, [2, 1, 2]), {b}[0])",
}
# NumPy's own reductions along rows by these are wrong where it uses AVX-512 (seen with NumPy 2.4.6).
_WRONG_ALONG_ROWS = ("power", "arctan2")
_KINDS = {_REAL: ("x", "y"), _POSITIVE: ("p", "q"), _LOGIC: ("x", "y"), _INTEGER: ("n", "m")}


def _of_every_ufunc(method, template):
    for ufuncs, (a, b) in _KINDS.items():
        for f in ufuncs.split():
            # Comparisons give booleans: NumPy has no reduction of numbers by them.
            if (
                ufuncs != _LOGIC
                or method == "outer"
                or (f.startswith("logical") and method != "at")
            ):
                call = template.format(f=f, a=a, b=b)
                if method == "reduce" and f in _WRONG_ALONG_ROWS:
                    call = call.replace("axis=1", "axis=0")
                yield f"{method} | {call}"


UFUNC_METHODS = "\n".join(
    line for method, template in _CALLS.items() for line in _of_every_ufunc(method, template)
)
UFUNC_METHODS += """
outer | np.divmod.outer(x, p)
at | np.negative.at(x, (0, [2, 1, 2]))
at | np.exp.at(x, (0, [2, 1]))
at | np.add.at(v, k, w)
at | np.maximum.at(v, k, w)
"""

OPTIONS = """
ufunc, `out=` | np.add(x, y, out=o)
ufunc, `out=` | np.add(x, y, o)
ufunc, `out=` | np.sin(x, out=x)
ufunc, `out=` | np.multiply(x, y, out=(o,))
ufunc, `out=` | np.matmul(A, B, out=A)
ufunc, `out=` | np.modf(x, out=(o, y))
ufunc, `out=` | np.greater(x, y, out=b)
method, `out=` | x.mean(axis=1, out=v[:2]); v
method, `out=` | x.sum(0, None, o[0]); o
method, `out=` | A.dot(B, out=A)
method, `out=` | v.take(k, out=w)
method, `out=` | x.clip(-0.5, 0.5, out=o)
ufunc, `where=` | np.add(x, y, out=o, where=b)
ufunc, `where=` | np.sqrt(x, out=np.zeros_like(x), where=x > 0)
ufunc, `where=` | np.divide(x, y, out=o, where=[True, False, True])
ufunc, `dtype=` | np.add(x, n, dtype=complex)
ufunc, `dtype=` | np.sin(n, dtype=np.float64)
ufunc, `casting=` | np.add(x, y, out=n, casting="unsafe")
ufunc, `casting=` | np.add(x, y, casting="same_kind")
ufunc, `order=`, `subok=` | np.add(x, y, order="F", subok=False)
matmul, `axes=` | np.matmul(x, A, axes=[(-2, -1), (-2, -1), (-2, -1)])
matmul, `axes=` | np.matmul(x, y, axes=[(-1, -2), (0, 1), (1, 0)])
vecdot, `axis=` | np.vecdot(x, y, axis=0)
vecdot, `keepdims=`, `axes=` | np.vecdot(x, y, axis=0, keepdims=True)
vecdot, `keepdims=`, `axes=` | np.vecdot(x, y, axes=[0, 0, ()])
reduction, `out=` | np.sum(x, axis=1, out=v[:2]); v
reduction, `out=` | np.max(x, axis=0, out=z.real); z
reduction, `out=` | np.mean(x, axis=0, out=o[0]); o
reduction, `out=` | np.cumsum(x, axis=1, out=o)
reduction, `out=` | np.add.reduce(x, axis=0, out=o[0]); o
reduction, `out=` | np.multiply.accumulate(x, axis=1, out=o)
reduction, `out=` | np.median(x, axis=0, out=o[0]); o
reduction, `out=` | np.quantile(x, 0.3, axis=0, out=o[0]); o
reduction, `out=` | np.nanmean(x, axis=0, out=o[0]); o
reduction, `out=` | np.ptp(x, axis=0, out=o[0]); o
reduction, `out=` | np.add.reduceat(x, [0, 1], axis=0, out=o)
reduction, `out=` | np.trace(c, axis1=0, axis2=2, out=v[:3]); v
reduction, `where=` | np.sum(x, axis=1, where=b)
reduction, `where=` | np.prod(x, where=b)
reduction, `where=` | np.mean(x, axis=1, where=b)
reduction, `where=` | np.std(x, where=b)
reduction, `where=` | np.var(x, axis=1, ddof=0.5, where=b)
reduction, `where=` | np.max(x, where=b, initial=-9.0)
reduction, `where=` | np.min(x, axis=1, where=b, initial=t)
reduction, `where=` | np.any(b, where=x > 0)
reduction, `where=` | np.all(b, axis=0, where=x > 0)
reduction, `where=` | np.nansum(np.where(b, x, np.nan), where=y > 0)
reduction, `where=` | np.hypot.reduce(x, axis=1, where=b)
reduction, `where=` | np.add.reduce(x, axis=1, where=b, initial=t)
reduction, `initial=` | np.sum(x, axis=0, initial=2.0)
reduction, `initial=` | np.sum(x, initial=t)
reduction, `initial=` | np.prod(x, axis=1, initial=t)
reduction, `initial=` | np.max(x, initial=0.1)
reduction, `initial=` | np.min(x, axis=1, initial=t)
reduction, `initial=` | np.subtract.reduce(x, axis=1, initial=t)
reduction, `dtype=` | np.sum(x, dtype=complex)
reduction, `dtype=` | np.sum(n, dtype=float)
reduction, `dtype=` | np.sum(n, dtype=np.int16)
reduction, `dtype=` | np.prod(n, axis=1, dtype=np.int32)
reduction, `dtype=` | np.sum(b, axis=0, dtype=np.int8)
reduction, `dtype=` | np.sum(x, dtype=int)
reduction, `dtype=` | np.mean(x, dtype=complex)
reduction, `dtype=` | np.mean(n, dtype=np.float32)
reduction, `dtype=` | np.std(n, dtype=np.float32)
reduction, `dtype=` | np.cumsum(n, dtype=float)
reduction, `dtype=` | np.cumprod(n, dtype=np.int16)
reduction, `dtype=` | np.cumsum(b, dtype=np.uint8)
reduction, `dtype=` | np.trace(n @ m.T, dtype=np.int16)
reduction, `dtype=` | np.add.reduce(n, dtype=np.int8)
reduction, `dtype=` | np.add.accumulate(n, dtype=np.int8)
reduction, `dtype=` | np.nansum(n, dtype=np.int16)
reduction, `keepdims=` | np.sum(x, axis=1, keepdims=True)
reduction, `keepdims=` | np.mean(x, keepdims=True)
reduction, `keepdims=` | np.var(x, axis=0, keepdims=True)
reduction, `keepdims=` | np.max(c, axis=(0, 2), keepdims=True)
reduction, `keepdims=` | np.median(x, axis=1, keepdims=True)
reduction, `keepdims=` | np.quantile(x, 0.3, axis=1, keepdims=True)
reduction, `keepdims=` | np.argmax(x, axis=1, keepdims=True)
reduction, `keepdims=` | np.average(x, axis=1, keepdims=True)
reduction, `keepdims=` | np.hypot.reduce(x, axis=1, keepdims=True)
reduction, `keepdims=` | np.nanmean(np.where(b, x, np.nan), axis=1, keepdims=True)
reduction, `mean=` | np.var(x, axis=1, mean=np.mean(x, axis=1, keepdims=True))
reduction, `mean=` | np.std(x, mean=np.mean(x, keepdims=True))
function, `out=` | np.clip(x, -0.5, 0.5, out=o)
function, `out=` | np.concatenate([v[:2], w[:1]], out=x[0]); x
function, `out=` | np.stack([v[:3], w[:3]], out=o)
function, `out=` | np.dot(x, A, out=o)
function, `out=` | np.einsum("ij,jk->ik", x, A, out=o)
function, `out=` | np.take(v, k, out=w)
function, `out=` | np.round(x, out=o)
function, `out=` | np.outer(x[0, :2], y[1], out=o)
function, `out=` | np.choose(k, [v, 0.0, 1.0], out=w)
function, `out=` | np.multiply.outer(v[:2], w[:3], out=o)
function, `out=` | np.linalg.multi_dot([x, A, B], out=o)
function, `out=` | np.compress([True, True], x, axis=0, out=o)
function, `out=` | np.fix(x, out=o)
function, `out=` | np.fft.fft(z, out=Z[0]); Z
function, `where=` | np.clip(x, -0.5, 0.5, out=o, where=b)
function, `copy=` | x[0, 0] = np.nan; np.nan_to_num(x, copy=False)
"""

# Differences of numbers with few digits are no test: only an empty part of the result is compared.
LOW_PRECISION = ("half", "float16", "single", "float32", "csingle", "complex64")
TYPES = "\n".join(
    f"{name} | np.{name}(x){'.astype(complex)[:0]' if name in LOW_PRECISION else ''}"
    for name in dir(np)
    if isinstance(getattr(np, name), type)
    and issubclass(getattr(np, name), (np.number, np.bool_))
    and getattr(np, name) not in (np.number, np.integer, np.signedinteger, np.unsignedinteger)
    and getattr(np, name) not in (np.inexact, np.floating, np.complexfloating)
    and getattr(np, name) is not np.timedelta64
)
