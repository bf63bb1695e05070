"""Probes of derivatives that are cut off, because a traced value becomes a plain number on the way.

Without hooks, only an explicit `float(x)`, `int(x)`, `x.item()` or `x.tolist()` in the user's own code may
cut off a derivative, with a `DerivativeWarning`. Everything else gives the right derivative, or an error.
"""

from __future__ import annotations

from tools.fuzz.probes.probe import Probe, RejectedError, probe
from tools.fuzz.programs.choosing import Chooser

# Functions of a number x around 0.6 that pass it to code which may need a plain number.
_NUMBERS = [
    "math.sin(x)",
    "math.exp(x)",
    "math.sqrt(x)",
    "math.pow(x, 2)",
    "math.hypot(x, 1.0)",
    "math.atan2(x, 2.0)",
    "math.log(x)",
    "math.fsum([x, x * x])",
    "math.prod([x, x])",
    "math.dist([x], [0.1])",
    "math.sumprod([x], [x])",
    "math.fma(x, x, x)",
    "math.copysign(x, 1.0)",
    "math.fabs(x)",
    "math.fmod(x, 0.5)",
    "math.modf(x)[0]",
    "math.frexp(x)[0]",
    "math.ldexp(x, 1)",
    "math.degrees(x)",
    "math.gamma(x)",
    "math.erf(x)",
    "cmath.exp(x).real",
    "np.float64(x) ** 2",
    "np.double(x) * 3.0",
    "np.longdouble(x) * 3.0",
    "np.complex128(x).real * 2.0",
    "complex(x).real * 2.0",
    "complex(x, 1.0).real * 2.0",
    "pow(x, 3)",
    "abs(x) * x",
    "max(x, 0.1) ** 2",
    "sorted([x, 0.1])[1] ** 2",
    "sum([x, x])",
    "divmod(x, 0.5)[1]",
    "statistics.mean([x, 2.0 * x])",
    "statistics.fmean([x, 2.0 * x])",
    "statistics.median([x, 2.0, x])",
    "statistics.NormalDist().cdf(x)",
    "statistics.NormalDist(x, 1.0).mean",
    "array.array('d', [x])[0] * 2.0",
    "struct.unpack('d', struct.pack('d', x))[0] * 2.0",
    "ctypes.c_double(x).value * 2.0",
    "np.array([x])[0] * 2.0",
    "np.asarray(x) * 2.0",
    "np.asarray([x, x]).sum()",
    "np.array(x).item() * 2.0",
    "np.full(2, x).sum()",
    "np.linspace(0.0, x, 3)[1]",
    "np.arange(0.0, x, 0.25).sum() * x",
    "np.fromiter([x, x], float).sum()",
    "np.vectorize(math.sin)(x)",
    "np.frompyfunc(math.sin, 1, 1)(x)",
    "np.interp(0.3, [0.0, x], [0.0, 1.0])",
    "np.polyval([1.0, x], 2.0)",
    "np.polyval([1.0, 2.0], x)",
    "np.poly1d([1.0, x])(2.0)",
    "np.polynomial.Polynomial([1.0, x])(2.0)",
    "np.random.default_rng(0).normal(x)",
    "np.repeat(x, 2).sum()",
    "np.eye(2)[0, 0] * x",
    "np.histogram([x], bins=[0.0, 1.0], weights=[x])[0][0]",
    "np.piecewise(x, [x > 0], [lambda t: t * t])",
    "np.apply_along_axis(lambda r: r * 2.0, 0, np.atleast_1d(x))[0]",
    "np.trapezoid([0.0, x], dx=1.0)",
    "np.meshgrid(x, 1.0)[0][0, 0] * 2.0",
    "np.nan_to_num(x) * 2.0",
    "np.block([x, x]).sum()",
    "np.convolve(np.atleast_1d(x), [1.0, 2.0]).sum()",
    "random.Random(0).gauss(x, 1.0)",
    "random.Random(0).uniform(0.0, x)",
    "time.mktime(time.gmtime(0)) * 0.0 + x * 2.0",
    "fractions.Fraction(x) * 2",
    "decimal.Decimal(x) * 2",
    "float.__mul__(x, 2.0)",
    "float.fromhex(float.hex(x)) * 2.0",
    "operator.mul(x, x)",
    "functools.reduce(operator.mul, [x, x])",
    "next(itertools.accumulate([x, x])) * 2.0",
    "list(itertools.accumulate([x, x]))[1]",
    "json.loads(json.dumps([x]))[0]",
    "copy.deepcopy(x) * 2.0",
    "copy.copy(x) ** 2",
    "pickle.loads(pickle.dumps(x)) * 2.0",
    "eval(repr(x)) * 2.0",
    "colorsys.rgb_to_hsv(x, 0.1, 0.2)[2]",
    "datetime.timedelta(seconds=x).total_seconds()",
    "scipy.integrate.quad(lambda t: x * t, 0.0, 1.0)[0]",
    "scipy.integrate.quad(lambda t: t * t, 0.0, x)[0]",
    "scipy.integrate.quad(lambda t, a: a * t, 0.0, 1.0, args=(x,))[0]",
    "scipy.optimize.brentq(lambda t: t - x, 0.0, 1.0)",
    "scipy.optimize.newton(lambda t: t * t - x, 1.0)",
    "scipy.optimize.minimize_scalar(lambda t: (t - x) ** 2).x",
    "scipy.integrate.trapezoid([0.0, x])",
    "scipy.integrate.simpson([0.0, x, 1.0])",
    "scipy.special.erf(x)",
    "scipy.special.gammaln(x)",
    "scipy.stats.norm.pdf(x)",
    "scipy.stats.norm.cdf(0.3, loc=x)",
    "scipy.interpolate.CubicSpline([0.0, 1.0, 2.0], [0.0, 1.0, 4.0])(x)",
    "scipy.interpolate.interp1d([0.0, 1.0], [0.0, 2.0])(x)",
    "scipy.special.comb(3.0, x)",
    "scipy.linalg.expm(x * np.eye(2))[0, 0]",
    "scipy.linalg.norm([x, 1.0])",
    "scipy.ndimage.gaussian_filter([x, 1.0, 2.0], 1.0).sum()",
    "scipy.signal.lfilter([1.0], [1.0, x], [1.0, 1.0])[1]",
    "scipy.integrate.solve_ivp(lambda t, y: -x * y, (0.0, 1.0), [1.0]).y[0, -1]",
    "scipy.integrate.dblquad(lambda s, t: x * s, 0.0, 1.0, 0.0, 1.0)[0]",
    "scipy.fft.fft([x, 1.0])[0].real",
]
# Functions of an array x of two entries.
_ARRAYS = [
    "np.sum([x[0], x[1]])",
    "np.sum(np.array(x))",
    "np.sum(np.asarray(x) ** 2)",
    "np.sum(np.float64(x) ** 2)",
    "math.sin(x[0])",
    "sum(map(math.sin, x))",
    "math.fsum(x)",
    "math.dist(x, [0.0, 0.0])",
    "sum(float.__mul__(t, 2.0) for t in x)",
    "np.random.default_rng(0).multivariate_normal(x, np.eye(2)).sum()",
    "np.fromiter(x, float).sum()",
    "np.vectorize(math.sin)(x).sum()",
    "np.ascontiguousarray(x).sum()",
    "np.asfortranarray(x).sum()",
    "np.frombuffer(x).sum()",
    "np.array(list(x)).sum()",
    "np.array(tuple(x)).sum()",
    "np.lib.stride_tricks.sliding_window_view(x, 1).sum()",
    "statistics.fmean(x)",
    "scipy.linalg.norm(x)",
    "scipy.optimize.minimize(lambda t: np.sum((t - x) ** 2), np.zeros(2)).x.sum()",
    "scipy.optimize.fsolve(lambda t: t - x, np.zeros(2)).sum()",
    "scipy.interpolate.CubicSpline([0.0, 1.0, 2.0], [0.0, 1.0, 4.0])(x).sum()",
    "scipy.spatial.distance.euclidean(x, [0.0, 0.0])",
    "scipy.signal.convolve(x, x).sum()",
    "scipy.integrate.trapezoid(x)",
    "scipy.special.logsumexp(x)",
    "scipy.stats.zscore(x)[0]",
    "scipy.cluster.vq.whiten(np.stack([x, 2.0 * x]))[0, 0]",
    "array.array('d', x)[0] * 2.0",
    "struct.unpack('2d', struct.pack('2d', *x))[0]",
    "copy.deepcopy(x).sum()",
    "pickle.loads(pickle.dumps(x)).sum()",
    "np.polynomial.Polynomial(x)(2.0)",
    "np.linalg.norm([x[0], x[1]])",
    "max(x) ** 2",
    "sorted(x)[0] ** 2",
    "np.cov(x)",
    "np.nditer(x).operands[0].sum()",
    "sum(t for t in np.nditer(x))",
    "sum(x.flat)",
    "np.ndenumerate(x).__next__()[1] * 2.0",
]
# Explicit conversions, and the function that is then differentiated, where c is the plain number.
_EXPLICIT = [
    ("x * float(x)", "x * c"),
    ("float(x) * 2.0 + x", "2.0 * c + x"),
    ("x * x.item()", "x * c"),
    ("x * x.tolist()", "x * c"),
    ("x * math.sin(float(x))", "x * math.sin(c)"),
    ("x * f'{float(x):.17g}'.count('.')", "x * f'{c:.17g}'.count('.')"),
]
_DERIVATIVES = {
    "grad": "ft.grad(f)(x)",
    "jacfwd": "ft.jacfwd(f)(x)",
    "jacrev": "ft.jacrev(f)(x)",
    "vjp": "ft.vjp(f, x)[1](1.0)[0]",
    "grad of checkpoint": "ft.grad(ft.checkpoint(f))(x)",
    "vmap of grad": "ft.vmap(ft.grad(f))(np.stack([x, x]))[0]",
    "grad of vmap": "ft.grad(lambda b: np.sum(ft.vmap(f)(b)))(np.stack([x, x]))[0]",
    "value_and_grad": "ft.value_and_grad(f)(x)[1]",
    "jit of grad": 'ft.jit(ft.grad(f), backend="numpy")(x)',
    "grad of jit": 'ft.grad(ft.jit(f, backend="numpy"))(x)',
    "linearize": "ft.linearize(f, x)[1](np.ones_like(x)) if np.ndim(x) == 0 else ft.jacfwd(f)(x)",
    "jvp": "ft.jvp(f, (x,), (np.ones_like(x),))[1] if np.ndim(x) == 0 else ft.jacfwd(f)(x)",
    "grad of cond": "ft.grad(lambda x: ft.cond(True, f, f, x))(x)",
    "grad of a loop": "ft.grad(lambda x: ft.fori_loop(0, 1, lambda i, c: f(x), 0.0))(x)",
    "make_graph": "ft.make_graph(ft.grad(f))(x)(x)",
}
_MODULES = [
    "math",
    "cmath",
    "statistics",
    "array",
    "struct",
    "ctypes",
    "random",
    "time",
    "fractions",
    "decimal",
    "operator",
    "functools",
    "itertools",
    "json",
    "copy",
    "pickle",
    "colorsys",
    "datetime",
    "scipy",
]
_SUBMODULES = [
    "integrate",
    "optimize",
    "special",
    "stats",
    "interpolate",
    "linalg",
    "ndimage",
    "signal",
    "fft",
    "cluster.vq",
    "spatial.distance",
]


def write(chooser: Chooser) -> Probe:
    form = chooser.weighted([(6, "number"), (3, "array"), (2, "explicit")])
    name = chooser.pick(list(_DERIVATIVES))
    if form == "explicit":
        return _explicit(chooser)
    body = chooser.pick(_NUMBERS if form == "number" else _ARRAYS)
    if "scipy" in body and chooser.chance(40):
        raise RejectedError
    numbers = ["0.6", "np.float64(0.6)", "np.array(0.6)"]
    x = chooser.pick(numbers) if form == "number" else "np.array([0.6, 0.4])"
    around = chooser.pick(["{}", "{}", "x * ({})" if form == "number" else "np.sum(x) * ({})"])
    text = f"""
f = lambda x: {around.format(body)}
x = {x}
laws.derivative_or_error(lambda: {_DERIVATIVES[name]}, f, x)
"""
    return probe(_imports(body) + text, body.split("(")[0], name)


def _explicit(chooser: Chooser) -> Probe:
    body, meant = chooser.pick(_EXPLICIT)
    x = chooser.pick(["np.float64(0.6)", "0.6", "np.array(0.6)"])
    if ".item" in body or ".tolist" in body:
        x = "np.float64(0.6)"
    derivative = chooser.pick(["ft.grad({})({})", "ft.jacfwd({})({})", "ft.jacrev({})({})"])
    text = f"""
x, c = {x}, 0.6
with warnings.catch_warnings(record=True) as caught, ft.use_hooks(False):
    warnings.simplefilter("always")
    found = {derivative.format(f"lambda x: {body}", "x")}
laws.same(found, {derivative.format(f"lambda x: {meant}", "x")}, 1e-12, "an explicit cut")
laws.warned(caught, ft.errors.DerivativeWarning)
"""
    return probe(_imports(body, "warnings") + text, "explicit")


def _imports(body: str, *more: str) -> str:
    modules = [name for name in _MODULES if f"{name}." in body and name != "scipy"]
    modules += [f"scipy.{name}" for name in _SUBMODULES if f"scipy.{name}." in body]
    return "".join(f"import {name}\n" for name in sorted([*modules, *more]))
