"""One call of every function of the Python array API standard, as a library would write it.

Each takes the namespace and the arrays of `ARRAYS`, which a test makes with its own kind of array.
"""

import numpy as np

ARRAYS = {
    "x": np.array([[0.5, -1.25, 2.0], [0.75, 0.25, -0.5]]),
    "y": np.array([[1.5, 0.5, -2.5], [0.25, 1.25, 3.0]]),
    "p": np.array([0.75, 0.5, 0.25, 0.875]),
    "z": np.array([[0.5 + 1j, -1.0], [2.0 - 0.5j, 0.25j]]),
    "n": np.array([[3, 1, 2], [5, 1, 7]]),
    "m": np.array([1, 2, 2]),
    "b": np.array([[True, False, True], [False, False, True]]),
    "s": np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]]),
}

CALLS = {}
# Results whose shape depends on the values, or that Python asks for: not for staged functions.
NEED_VALUES = {
    "nonzero",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "repeat",
}


def call(name):
    def enter(function):
        CALLS[name] = function
        return function

    return enter


def entrywise(names, *arguments):
    for name in names.split():
        CALLS[name] = lambda xp, a, name=name: getattr(xp, name)(*(a[key] for key in arguments))


entrywise("abs ceil cos cosh exp expm1 floor isfinite isinf isnan negative positive", "x")
entrywise("round sign signbit sin sinh square tan tanh trunc asinh atan", "x")
entrywise("acos asin atanh log log10 log1p log2 sqrt reciprocal", "p")
entrywise("add atan2 copysign divide equal floor_divide greater greater_equal hypot less", "x", "y")
entrywise("less_equal logaddexp maximum minimum multiply nextafter not_equal remainder", "x", "y")
entrywise("subtract", "x", "y")
entrywise("bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift", "n", "m")
entrywise("bitwise_invert", "n")
entrywise("logical_and logical_or logical_xor", "b", "b")
entrywise("logical_not", "b")
entrywise("all any argmax argmin max min mean prod std sum var count_nonzero flip", "x")
entrywise("cumulative_sum cumulative_prod unique_all unique_counts", "m")
entrywise("unique_inverse", "n")
entrywise("zeros_like ones_like tril triu matrix_transpose sort", "x")
entrywise("matmul", "s", "s")
entrywise("broadcast_arrays", "x", "m")
entrywise("nonzero", "b")
entrywise("conj imag real", "z")


def both(first, second):
    """Two calls as one entry: with and without options."""
    return lambda xp, a: (first(xp, a), second(xp, a))


CALLS |= {
    "acosh": lambda xp, a: xp.acosh(xp.abs(a["x"]) + 1),
    "pow": lambda xp, a: (xp.pow(xp.abs(a["x"]), a["y"]), xp.pow(a["n"], 2)),
    "clip": lambda xp, a: (
        xp.clip(a["x"], min=-0.5, max=1.0),
        xp.clip(a["x"], max=1.0),
        xp.clip(a["x"], a["y"], None),
    ),
    # reductions
    "all": both(lambda xp, a: xp.all(a["b"]), lambda xp, a: xp.all(a["b"], axis=1, keepdims=True)),
    "any": both(lambda xp, a: xp.any(a["b"]), lambda xp, a: xp.any(a["x"] > 1, axis=(0, 1))),
    "argmax": both(
        lambda xp, a: xp.argmax(a["x"]), lambda xp, a: xp.argmax(a["x"], axis=0, keepdims=True)
    ),
    "argmin": both(
        lambda xp, a: xp.argmin(a["x"], axis=-1), lambda xp, a: xp.argmin(a["x"], keepdims=True)
    ),
    "count_nonzero": both(
        lambda xp, a: xp.count_nonzero(a["b"]),
        lambda xp, a: xp.count_nonzero(a["b"], axis=1, keepdims=True),
    ),
    "max": both(lambda xp, a: xp.max(a["x"]), lambda xp, a: xp.max(a["n"], axis=(0,))),
    "min": both(lambda xp, a: xp.min(a["x"], axis=1), lambda xp, a: xp.min(a["x"], keepdims=True)),
    "mean": both(
        lambda xp, a: xp.mean(a["x"]), lambda xp, a: xp.mean(a["x"], axis=0, keepdims=True)
    ),
    "prod": both(
        lambda xp, a: xp.prod(a["n"], axis=0),
        lambda xp, a: xp.prod(a["x"], dtype=xp.float32, keepdims=True),
    ),
    "std": both(lambda xp, a: xp.std(a["x"]), lambda xp, a: xp.std(a["x"], axis=1, correction=1.0)),
    "sum": both(
        lambda xp, a: xp.sum(a["n"]), lambda xp, a: xp.sum(a["x"], axis=(0, 1), dtype=xp.float32)
    ),
    "var": both(
        lambda xp, a: xp.var(a["x"], axis=0, keepdims=True),
        lambda xp, a: xp.var(a["x"], correction=1),
    ),
    "cumulative_sum": both(
        lambda xp, a: xp.cumulative_sum(a["m"]),
        lambda xp, a: xp.cumulative_sum(a["x"], axis=1, include_initial=True, dtype=xp.float32),
    ),
    "cumulative_prod": both(
        lambda xp, a: xp.cumulative_prod(a["p"]),
        lambda xp, a: xp.cumulative_prod(a["x"], axis=0, include_initial=True),
    ),
    "diff": both(
        lambda xp, a: xp.diff(a["x"]),
        lambda xp, a: xp.diff(a["x"], axis=0, n=2, prepend=a["y"], append=None),
    ),
    # making arrays
    "arange": both(
        lambda xp, a: xp.arange(3), lambda xp, a: xp.arange(1, stop=7, step=2, dtype=xp.float32)
    ),
    "asarray": both(
        lambda xp, a: xp.asarray(a["x"], copy=True),
        lambda xp, a: xp.asarray([[1, 2], [3, 4]], dtype=xp.float64, device=None),
    ),
    "empty": lambda xp, a: xp.empty((2, 3), dtype=xp.int64) * 0,
    "empty_like": lambda xp, a: xp.empty_like(a["n"], dtype=xp.int32) * 0,
    "eye": both(lambda xp, a: xp.eye(3), lambda xp, a: xp.eye(2, 3, k=1, dtype=xp.int64)),
    "from_dlpack": lambda xp, a: xp.from_dlpack(a["x"]),
    "full": both(lambda xp, a: xp.full((2,), 3), lambda xp, a: xp.full(4, 1.5, dtype=xp.float32)),
    "full_like": lambda xp, a: xp.full_like(a["x"], fill_value=2, dtype=xp.int64),
    "linspace": both(
        lambda xp, a: xp.linspace(0, 1, num=5),
        lambda xp, a: xp.linspace(0.0, 2.0, 4, endpoint=False, dtype=xp.float32),
    ),
    "meshgrid": lambda xp, a: tuple(xp.meshgrid(a["p"], a["p"], indexing="ij")),
    "ones": lambda xp, a: xp.ones((2, 3), dtype=xp.complex128),
    "ones_like": lambda xp, a: xp.ones_like(a["x"], dtype=xp.int64, device=None),
    "tril": both(lambda xp, a: xp.tril(a["x"]), lambda xp, a: xp.tril(a["x"], k=1)),
    "triu": both(lambda xp, a: xp.triu(a["x"]), lambda xp, a: xp.triu(a["x"], k=-1)),
    "zeros": lambda xp, a: xp.zeros((2,)),
    "zeros_like": lambda xp, a: xp.zeros_like(a["n"], dtype=xp.float32),
    "unique_values": lambda xp, a: xp.sort(xp.unique_values(a["n"])),  # their order is open
    # dtypes
    "astype": both(
        lambda xp, a: xp.astype(a["x"], xp.float32),
        lambda xp, a: xp.astype(a["n"], xp.float64, copy=False),
    ),
    "can_cast": lambda xp, a: (
        xp.can_cast(a["n"], xp.int64),
        xp.can_cast(a["x"].dtype, xp.float32),
    ),
    "finfo": lambda xp, a: (float(xp.finfo(a["x"]).eps), xp.finfo(xp.float32).bits),
    "iinfo": lambda xp, a: (xp.iinfo(a["n"]).max, xp.iinfo(xp.int8).min),
    "isdtype": lambda xp, a: (
        xp.isdtype(a["x"].dtype, "real floating"),
        xp.isdtype(a["n"].dtype, ("bool", xp.int64)),
    ),
    "result_type": lambda xp, a: (
        xp.result_type(a["x"], xp.float32) == xp.float64,
        xp.result_type(xp.float32, 1.0) == xp.float32,
    ),
    # products
    "matmul": both(lambda xp, a: xp.matmul(a["x"], a["s"]), lambda xp, a: a["x"] @ a["s"]),
    "tensordot": both(
        lambda xp, a: xp.tensordot(a["x"], a["s"], axes=1),
        lambda xp, a: xp.tensordot(a["x"], a["y"], axes=((0, 1), (0, 1))),
    ),
    "vecdot": both(
        lambda xp, a: xp.vecdot(a["z"], a["z"]), lambda xp, a: xp.vecdot(a["x"], a["y"], axis=-2)
    ),
    # shapes
    "broadcast_to": lambda xp, a: xp.broadcast_to(a["m"], shape=(2, 3)),
    "concat": both(
        lambda xp, a: xp.concat([a["x"], xp.astype(a["y"], xp.float32)], axis=1),
        lambda xp, a: xp.concat((a["x"], a["y"]), axis=None),
    ),
    "expand_dims": lambda xp, a: xp.expand_dims(a["x"], axis=-2),
    "flip": both(lambda xp, a: xp.flip(a["x"]), lambda xp, a: xp.flip(a["x"], axis=1)),
    "moveaxis": lambda xp, a: xp.moveaxis(a["x"][None, ...], (0, 1), (2, 0)),
    "permute_dims": lambda xp, a: xp.permute_dims(a["x"][None, ...], axes=(2, 0, 1)),
    "repeat": both(
        lambda xp, a: xp.repeat(a["x"], 2, axis=1), lambda xp, a: xp.repeat(a["m"], a["m"])
    ),
    "reshape": both(
        lambda xp, a: xp.reshape(a["x"], shape=(3, -1)),
        lambda xp, a: xp.reshape(a["x"], (6,), copy=True),
    ),
    "roll": both(
        lambda xp, a: xp.roll(a["x"], shift=1), lambda xp, a: xp.roll(a["x"], (1, 2), axis=(0, 1))
    ),
    "squeeze": lambda xp, a: xp.squeeze(a["x"][None, :, None, :], axis=(0, 2)),
    "stack": lambda xp, a: xp.stack([a["x"], a["y"]], axis=-1),
    "tile": lambda xp, a: xp.tile(a["m"], (2, 2)),
    "unstack": lambda xp, a: xp.unstack(a["x"], axis=1),
    # indexing, searching, sorting
    "take": lambda xp, a: xp.take(a["x"], a["m"], axis=1),
    "take_along_axis": lambda xp, a: xp.take_along_axis(a["x"], a["n"] % 3, axis=1),
    "searchsorted": both(
        lambda xp, a: xp.searchsorted(a["m"], a["n"], side="right"),
        lambda xp, a: xp.searchsorted(a["p"], a["x"], sorter=xp.argsort(a["p"])),
    ),
    "where": lambda xp, a: xp.where(a["b"], a["x"], a["y"]),
    "argsort": both(
        lambda xp, a: xp.argsort(a["n"]),
        lambda xp, a: xp.argsort(a["n"], axis=1, descending=True, stable=True),
    ),
    "sort": both(
        lambda xp, a: xp.sort(a["x"], axis=0, stable=False),
        lambda xp, a: xp.sort(a["x"], descending=True),
    ),
}

CALLS |= {
    "linalg.cholesky": lambda xp, a: xp.linalg.cholesky(a["s"], upper=True),
    "linalg.cross": lambda xp, a: xp.linalg.cross(a["x"], a["y"], axis=-1),
    "linalg.det": lambda xp, a: xp.linalg.det(a["s"]),
    "linalg.diagonal": lambda xp, a: xp.linalg.diagonal(a["x"], offset=1),
    "linalg.eigh": lambda xp, a: xp.linalg.eigh(a["s"]).eigenvalues,
    "linalg.eigvalsh": lambda xp, a: xp.linalg.eigvalsh(a["s"]),
    "linalg.inv": lambda xp, a: xp.linalg.inv(a["s"]),
    "linalg.matmul": lambda xp, a: xp.linalg.matmul(a["x"], a["s"]),
    "linalg.matrix_norm": lambda xp, a: (
        xp.linalg.matrix_norm(a["x"]),
        xp.linalg.matrix_norm(a["x"], keepdims=True, ord="nuc"),
        xp.linalg.matrix_norm(a["x"], ord=-2),
    ),
    "linalg.matrix_power": lambda xp, a: xp.linalg.matrix_power(a["s"], -2),
    "linalg.matrix_rank": lambda xp, a: xp.linalg.matrix_rank(a["s"], rtol=0.5),
    "linalg.matrix_transpose": lambda xp, a: xp.linalg.matrix_transpose(a["x"]),
    "linalg.outer": lambda xp, a: xp.linalg.outer(a["p"], a["m"]),
    "linalg.pinv": lambda xp, a: xp.linalg.pinv(a["x"], rtol=1e-9),
    "linalg.qr": lambda xp, a: (
        xp.abs(xp.linalg.qr(a["x"], mode="complete").R),
        xp.abs(xp.linalg.qr(a["s"]).Q),
    ),
    "linalg.slogdet": lambda xp, a: (
        xp.linalg.slogdet(a["s"]).sign,
        xp.linalg.slogdet(a["s"]).logabsdet,
    ),
    "linalg.solve": lambda xp, a: (
        xp.linalg.solve(a["s"], xp.matrix_transpose(a["x"])),
        xp.linalg.solve(a["s"], a["x"][0, :]),
    ),
    "linalg.svd": lambda xp, a: (
        xp.linalg.svd(a["x"], full_matrices=False).S,
        xp.abs(xp.linalg.svd(a["x"]).Vh),
    ),
    "linalg.svdvals": lambda xp, a: xp.linalg.svdvals(a["x"]),
    "linalg.tensordot": lambda xp, a: xp.linalg.tensordot(a["x"], a["s"], axes=1),
    "linalg.trace": lambda xp, a: xp.linalg.trace(a["s"], offset=1, dtype=xp.float32),
    "linalg.vecdot": lambda xp, a: xp.linalg.vecdot(a["x"], a["y"], axis=-2),
    "linalg.vector_norm": lambda xp, a: (
        xp.linalg.vector_norm(a["x"]),
        xp.linalg.vector_norm(a["x"], axis=1, keepdims=True, ord=3),
    ),
}
for name in ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]:
    CALLS[f"fft.{name}"] = lambda xp, a, name=name: getattr(xp.fft, name)(
        a["x"] if name in ("rfft", "ihfft") else xp.astype(a["x"], xp.complex128),
        n=4,
        axis=0,
        norm="ortho",
    )
for name in ["fftn", "ifftn", "rfftn", "irfftn"]:
    CALLS[f"fft.{name}"] = lambda xp, a, name=name: getattr(xp.fft, name)(
        a["x"] if name == "rfftn" else xp.astype(a["x"], xp.complex128),
        s=(2, 4),
        axes=(0, 1),
        norm="forward",
    )
CALLS |= {
    "fft.fftfreq": lambda xp, a: xp.fft.fftfreq(5, d=0.5, dtype=xp.float32),
    "fft.rfftfreq": lambda xp, a: xp.fft.rfftfreq(5, d=2.0),
    "fft.fftshift": lambda xp, a: xp.fft.fftshift(a["x"], axes=1),
    "fft.ifftshift": lambda xp, a: xp.fft.ifftshift(a["x"]),
}
