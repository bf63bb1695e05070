"""Probes of options: NumPy's functions with random keyword arguments, on traced arrays.

A function gives NumPy's result for the plain array, or an error of the library that names the option it does
not support.
"""

from __future__ import annotations

from tools.fuzz.probes.probe import Probe, RejectedError, probe
from tools.fuzz.programs.choosing import Chooser

_AXES = ["None", "0", "-1", "1", "(0, 1)", "(0,)", "()"]
_DTYPES = ["None", "float", "np.float32", "int", "complex", "'f4'", "np.dtype(float)", "bool"]
_COPY = ["None", "True", "False"]
_MODES = ["np._CopyMode.IF_NEEDED", "np._CopyMode.ALWAYS", "np._CopyMode.NEVER"]
_ORDERS = ["'C'", "'F'", "'A'", "'K'", "None"]
_BOOLS = ["False", "True"]
# Functions with the options that they accept; x is an array with two axes.
_FUNCTIONS = {
    "np.sum(x{o})": {
        "axis": _AXES,
        "dtype": _DTYPES,
        "keepdims": _BOOLS,
        "initial": ["0", "1.5"],
        "where": ["x > 0", "True"],
    },
    "np.prod(x{o})": {"axis": _AXES, "keepdims": _BOOLS, "initial": ["2.0"], "where": ["x > 0"]},
    "np.mean(x{o})": {"axis": _AXES, "dtype": _DTYPES, "keepdims": _BOOLS, "where": ["x > -9"]},
    "np.max(x{o})": {
        "axis": _AXES,
        "keepdims": _BOOLS,
        "initial": ["-5.0", "0.3"],
        "where": ["x > -9"],
    },
    "np.var(x{o})": {
        "axis": _AXES[:6],
        "ddof": ["0", "1", "0.5"],
        "keepdims": _BOOLS,
        "correction": ["0", "1"],
        "mean": ["np.mean(x)"],
    },
    "np.std(x{o})": {"axis": _AXES[:6], "ddof": ["0", "1"], "keepdims": _BOOLS, "dtype": _DTYPES},
    "np.cumsum(x{o})": {"axis": _AXES[:4], "dtype": _DTYPES},
    "np.sort(x{o})": {
        "axis": _AXES[:4],
        "kind": ["None", "'stable'", "'quicksort'"],
        "stable": ["None", "True"],
    },
    "np.argsort(x{o})": {"axis": _AXES[:4], "kind": ["None", "'stable'"]},
    "np.median(x{o})": {"axis": _AXES, "keepdims": _BOOLS, "overwrite_input": _BOOLS},
    "np.quantile(x, 0.3{o})": {
        "axis": _AXES,
        "keepdims": _BOOLS,
        "method": ["'linear'", "'lower'", "'nearest'", "'hazen'", "'weibull'"],
    },
    "np.linalg.norm(x{o})": {
        "axis": ["None", "0", "-1", "(0, 1)"],
        "ord": ["None", "1", "2", "np.inf", "'fro'", "'nuc'", "-1", "0", "3"],
        "keepdims": _BOOLS,
    },
    "np.pad(x, 1{o})": {
        "mode": [
            "'constant'",
            "'edge'",
            "'reflect'",
            "'wrap'",
            "'symmetric'",
            "'mean'",
            "'linear_ramp'",
            "'maximum'",
        ]
    },
    "np.repeat(x, 2{o})": {"axis": _AXES[:4]},
    "np.roll(x, 1{o})": {"axis": ["None", "0", "-1", "(0, 1)"]},
    "np.diff(x{o})": {
        "n": ["1", "2", "0"],
        "axis": ["0", "-1"],
        "prepend": ["0.0", "x[:, :1]"],
        "append": ["1.0"],
    },
    "np.take(x, [0, 1]{o})": {"axis": _AXES[:4], "mode": ["'raise'", "'wrap'", "'clip'"]},
    "np.clip(x, 0.1, 0.5{o})": {"dtype": _DTYPES[:3], "casting": ["'same_kind'", "'unsafe'"]},
    "np.clip(x{o})": {"min": ["0.1", "None", "x - 1"], "max": ["0.5", "None"]},
    "np.stack([x, x]{o})": {
        "axis": ["0", "-1", "1", "2"],
        "dtype": _DTYPES[:3],
        "casting": ["'same_kind'"],
    },
    "np.concatenate([x, x]{o})": {"axis": ["0", "-1", "None"], "dtype": _DTYPES[:3]},
    "np.add(x, x{o})": {
        "dtype": _DTYPES[:3],
        "where": ["True"],
        "casting": ["'same_kind'"],
        "order": _ORDERS[:4],
        "subok": _BOOLS,
    },
    "np.zeros_like(x{o})": {
        "dtype": _DTYPES,
        "order": _ORDERS,
        "subok": _BOOLS,
        "shape": ["None", "(3,)", "2"],
    },
    "np.full_like(x, 2.0{o})": {"dtype": _DTYPES, "order": _ORDERS, "shape": ["None", "(3,)"]},
    "np.trace(x{o})": {
        "offset": ["0", "1", "-1"],
        "dtype": _DTYPES[:3],
        "axis1": ["0"],
        "axis2": ["1", "-1"],
    },
    "np.diagonal(x{o})": {"offset": ["0", "1", "-1"], "axis1": ["0", "1"], "axis2": ["1", "0"]},
    "np.nan_to_num(x{o})": {"nan": ["1.0"], "posinf": ["None", "2.0"], "copy": _BOOLS},
    "np.average(x{o})": {
        "axis": _AXES,
        "weights": ["x * x", "np.ones_like(x)"],
        "returned": _BOOLS,
        "keepdims": _BOOLS,
    },
    "np.nanmean(x{o})": {"axis": _AXES, "keepdims": _BOOLS, "dtype": _DTYPES[:3]},
    "np.squeeze(x[None]{o})": {"axis": ["None", "0", "(0,)"]},
    "np.reshape(x, -1{o})": {"order": _ORDERS[:3], "copy": _COPY},
    "np.ravel(x{o})": {"order": _ORDERS[:4]},
    "np.copy(x{o})": {"order": _ORDERS[:4], "subok": _BOOLS},
    "np.array_split(x, 2{o})[0]": {"axis": ["0", "1", "-1"]},
    "np.einsum('ij,ij->i', x, x{o})": {
        "optimize": ["False", "True", "'greedy'"],
        "dtype": ["None", "float"],
        "order": _ORDERS[:4],
    },
    "np.tensordot(x, x{o})": {"axes": ["2", "0", "([0], [0])", "([1], [1])"]},
    "np.fft.fft(x{o})": {
        "n": ["None", "2", "4"],
        "axis": ["-1", "0"],
        "norm": ["None", "'ortho'", "'forward'"],
    },
    "np.linalg.svd(x{o})[1]": {"full_matrices": _BOOLS, "hermitian": ["False"]},
    "np.linalg.matrix_norm(x{o})": {"ord": ["'fro'", "'nuc'", "1", "np.inf"], "keepdims": _BOOLS},
    "np.cross(x, x[::-1]{o})": {"axis": ["-1"], "axisc": ["-1"]},
    "np.argmax(x{o})": {"axis": _AXES[:4], "keepdims": _BOOLS},
    "np.count_nonzero(x{o})": {"axis": _AXES[:5], "keepdims": _BOOLS},
    "np.any(x{o})": {"axis": _AXES, "keepdims": _BOOLS, "where": ["x > 0"]},
    "np.round(x{o})": {"decimals": ["0", "1", "-1"]},
    "np.gradient(x{o})": {"axis": ["0", "-1", "None", "(0, 1)"], "edge_order": ["1", "2"]},
    "np.trapezoid(x{o})": {
        "dx": ["0.5"],
        "axis": ["0", "-1"],
        "x": ["None", "np.array([0.0, 1.0, 3.0])"],
    },
    "np.cov(x{o})": {
        "rowvar": ["True", "False"],
        "bias": _BOOLS,
        "ddof": ["None", "0"],
        "dtype": ["None", "float"],
    },
    "np.flip(x{o})": {"axis": _AXES},
    "np.swapaxes(x{o})": {"axis1": ["0"], "axis2": ["-1"]},
    "np.moveaxis(x{o})": {"source": ["0", "[0, 1]"], "destination": ["-1", "[1, 0]"]},
    "np.ptp(x{o})": {"axis": _AXES, "keepdims": _BOOLS},
    "x.astype(float{o})": {
        "order": _ORDERS[:4],
        "casting": ["'unsafe'", "'same_kind'"],
        "copy": ["True", "False"],
        "subok": _BOOLS,
    },
    "x.sum({o})": {"axis": _AXES, "dtype": _DTYPES, "keepdims": _BOOLS},
    "x.reshape(-1{o})": {"order": _ORDERS[:3]},
    "x.copy({o})": {"order": _ORDERS[:4]},
    "np.tile(x{o})": {"reps": ["2", "(2, 1)", "(1,)"]},
    "np.insert(x, 0, 1.0{o})": {"axis": ["None", "0", "1"]},
    "np.delete(x, 0{o})": {"axis": ["None", "0", "1"]},
    "np.unwrap(x{o})": {"axis": ["-1", "0"], "period": ["6.0"]},
    "np.matmul(x, x.T{o})": {"dtype": ["None", "float"], "casting": ["'same_kind'"]},
    "np.vecdot(x, x{o})": {"axis": ["-1", "0"]},
    "np.percentile(x, [20, 50]{o})": {
        "axis": _AXES[:4],
        "keepdims": _BOOLS,
        "method": ["'linear'", "'midpoint'"],
    },
}
# These work on traced values only in functrans.numpy.
_CONSTRUCTORS = {
    "fnp.array(x{o})": {
        "copy": ["True", "None", "False", *_MODES],
        "order": _ORDERS,
        "dtype": _DTYPES,
        "ndmin": ["0", "3"],
        "subok": _BOOLS,
    },
    "fnp.asarray(x{o})": {
        "copy": [*_COPY, *_MODES],
        "order": _ORDERS,
        "dtype": _DTYPES,
        "device": ["None", "'cpu'"],
    },
    "fnp.asanyarray(x{o})": {"copy": [*_COPY, *_MODES], "order": _ORDERS, "dtype": _DTYPES},
    "fnp.array([x, x]{o})": {
        "copy": ["True", "None", *_MODES[:2]],
        "order": _ORDERS,
        "dtype": _DTYPES,
        "ndmin": ["0", "4"],
    },
    "fnp.ascontiguousarray(x{o})": {"dtype": _DTYPES[:3]},
    "fnp.astype(x, float{o})": {"copy": ["True", "False"], "device": ["None", "'cpu'"]},
    "fnp.reshape(x, (3, 2){o})": {"order": _ORDERS[:3], "copy": _COPY},
    "fnp.zeros(3{o})": {
        "dtype": _DTYPES,
        "order": ["'C'", "'F'"],
        "like": ["None", "x"],
        "device": ["None", "'cpu'"],
    },
    "fnp.full((2, 2), 3.0{o})": {"dtype": _DTYPES, "order": ["'C'", "'F'"]},
    "fnp.eye(3{o})": {
        "M": ["None", "2"],
        "k": ["0", "1"],
        "dtype": _DTYPES[1:],
        "order": ["'C'", "'F'"],
    },
    "fnp.arange(3{o})": {"dtype": _DTYPES[:4]},
    "fnp.linspace(0.0, 1.0{o})": {
        "num": ["3"],
        "endpoint": _BOOLS,
        "retstep": ["False"],
        "dtype": _DTYPES[:3],
        "axis": ["0", "-1"],
    },
}
_CALLS = {
    "vjp": "ft.vjp(f, x)[0]",
    "jvp": "ft.jvp(f, (x,), (x,))[0]",
    "vmap": "ft.tree.map(lambda y: y[0], ft.vmap(f)(np.stack([x, x])))",
    "jit": 'ft.jit(f, backend="numpy")(x)',
    "graph": "ft.make_graph(f)(x)(x)",
    "nothing": "f(x)",
}


def write(chooser: Chooser) -> Probe:
    table = _CONSTRUCTORS if chooser.chance(25) else _FUNCTIONS
    name = chooser.pick(list(table))
    chosen = [option for option in table[name] if chooser.chance(45)] or list(table[name])[:1]
    given = ", ".join(f"{option}={chooser.pick(table[name][option])}" for option in chosen)
    expression = name.format(o=given if "({o}" in name else f", {given}")
    call = chooser.pick(list(_CALLS))
    if call == "nothing" and table is _FUNCTIONS:
        raise RejectedError
    x = chooser.pick(
        ["[[0.3, 0.8, 0.5], [0.4, 0.2, 0.9]]", "[[0.3, 0.8, 0.5], [0.4, 0.2, 0.9]], np.float32"]
    )
    text = f"""
x = np.array({x})
f = lambda x: {expression}
plain = lambda x: {expression.replace("fnp.", "np.")}
laws.as_numpy(lambda: {_CALLS[call]}, lambda: plain(x), 1e-5)
"""
    return probe(text, name, call, definitions={"fnp": "import functrans.numpy as fnp"})
