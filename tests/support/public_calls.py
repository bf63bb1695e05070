"""How to call each public function: good arguments, of which tests replace one by a bad value.

An entry is a function and its good arguments. Where there is an oracle in plain NumPy, a third part gives
what comes out for arguments of any kind, if NumPy takes them.
"""

import io

import matplotlib
import numpy as np

import functrans as ft
import functrans.plot as plot
import functrans.random as random
from functrans.scipy import integrate, optimize, special, stats

matplotlib.use("Agg")
X = np.array([0.5, 1.5, 2.5])
T = np.array([1.0, -1.0, 2.0])
SPD = np.array([[4.0, 1.0], [1.0, 3.0]])
KEY = random.key(0)


def loss(x):
    return np.sum(x * x)


def square(x):
    return x * x


def double(x):
    return 2 * x


def _falling(x):
    return -x


def _box(args):  # with nan as a limit, SciPy takes hours
    return integrate.tplquad(lambda z, y, x, *_: x * y, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, args)


def _cubic(x):
    return x**3 - 2


def _limited(test, steps=30):
    """A test of a loop that a wrong one cannot keep running."""
    left = iter(range(steps))
    return lambda state: test(state) if next(left, None) is not None else False


def _while(test, body, init):
    return ft.while_loop(_limited(test) if callable(test) else test, body, init)


def _custom_vjp(f, forward, backward, x):
    function = ft.custom_vjp(f)
    function.defvjp(forward, backward)
    return ft.grad(function)(x)


def _custom_jvp(f, rule, x):
    function = ft.custom_jvp(f)
    function.defjvp(rule)
    return ft.grad(function)(x)


def _primitive(name, impl, jvp, x):
    return ft.grad(lambda x: np.sum(ft.define_primitive(name, impl, jvp)(x)))(x)


def _lanes(collective):
    return lambda x, name: ft.vmap(lambda _: collective(x, name), axis_name="i")(T)


def _anomaly(nan, inf, x):
    with ft.detect_anomaly(nan, inf):
        return ft.grad(loss)(x)


def _stored(data):
    return ft.load_graph(io.BytesIO(data) if isinstance(data, bytes) else data)


def _saved():
    file = io.BytesIO()
    ft.make_graph(loss)(X).save(file)
    return file.getvalue()


def _figure(draw):
    """A plot without an end: its figure is closed again."""

    def call(*args):
        try:
            return draw(*args) and None
        finally:
            matplotlib.pyplot.close("all")

    return call


def _array(x):
    """An array or a number; there is no oracle for other values."""
    if not isinstance(x, (np.ndarray, np.generic, float, int)):
        raise TypeError
    return np.asarray(x)


def _prefixes(x, reverse, axis):
    """The sums of np.add, which is `or` for truths."""
    if not reverse:
        return np.add.accumulate(x, axis, x.dtype)
    return np.flip(np.add.accumulate(np.flip(x, axis), axis, x.dtype), axis)


def _looped(f, x):
    return np.stack([_array(f(row)) for row in _array(x)])


def _solver(operator, b):
    return np.linalg.solve(ft.jacfwd(operator)(b), b)


CALLS = {
    "ArraySpec": (ft.ArraySpec, ((3,), float, False)),
    "Graph": (lambda *parts: ft.Graph(*parts).check(), ([], {}, [], [])),
    "all_gather": (_lanes(ft.all_gather), (X, "i")),
    "associative_scan": (
        ft.associative_scan,
        (np.add, X, False, 0),
        lambda f, x, reverse, axis: _prefixes(_array(x), reverse, axis),
    ),
    "axis_index": (lambda name: _lanes(lambda x, n: ft.axis_index(n))(X, name), ("i",)),
    "bicgstab": (ft.bicgstab, (SPD, np.ones(2), None)),
    "cg": (ft.cg, (SPD, np.ones(2), None)),
    "check_derivatives": (ft.check_derivatives, (loss, (X,), 1, ("fwd", "rev"))),
    "checkpoint": (lambda f, x: ft.grad(ft.checkpoint(f))(x), (loss, X)),
    "checkpoint_name": (ft.checkpoint_name, (X, "name"), lambda x, name: x),
    "checkpoint_policies": (
        lambda names, x: ft.grad(ft.checkpoint(loss, ft.checkpoint_policies.save_names(names)))(x),
        ("name", X),
    ),
    "cond": (ft.cond, (True, square, double, X)),
    "custom_jvp": (_custom_jvp, (loss, lambda p, t: (loss(p[0]), np.sum(2 * p[0] * t[0])), X)),
    "custom_root": (ft.custom_root, (lambda x: x * x - 2, 1.0, lambda f, x: np.sqrt(2.0))),
    "custom_vjp": (_custom_vjp, (loss, lambda x: (loss(x), x), lambda x, g: (2 * x * g,), X)),
    "define_primitive": (_primitive, ("new", np.exp, lambda out, x, t: out * t[0], X)),
    "detect_anomaly": (_anomaly, (True, True, X)),
    "eval_shape": (ft.eval_shape, (loss, X)),
    "fixed_point": (ft.fixed_point, (np.cos, 1.0, 1e-8, 100)),
    "fori_loop": (ft.fori_loop, (0, 3, lambda i, c: c * 2, X)),
    "gmres": (ft.gmres, (SPD, np.ones(2), None)),
    "grad": (lambda f, n, x: ft.grad(f, n)(x), (loss, 0, X)),
    "hessian": (lambda f, n, x: ft.hessian(f, n)(x), (loss, 0, X)),
    "hvp": (ft.hvp, (loss, (X,), (T,))),
    "jacfwd": (lambda f, n, x, c: ft.jacfwd(f, n, chunk_size=c)(x), (square, 0, X, None)),
    "jacobian": (lambda f, n, mode, x: ft.jacobian(f, n, mode)(x), (square, 0, "auto", X)),
    "jacrev": (lambda f, n, x, c: ft.jacrev(f, n, chunk_size=c)(x), (square, 0, X, None)),
    "jit": (
        lambda f, numbers, names, backend, x: ft.jit(f, numbers, names, backend)(x),
        (square, (), (), "numpy", X),
        lambda f, numbers, names, backend, x: f(x),
    ),
    "jvp": (
        lambda f, x, t: ft.jvp(f, (x,), (t,))[0],
        (square, X, T),
        lambda f, x, t: f(x),
    ),
    "linear_solve": (ft.linear_solve, (double, X, lambda operator, b: b / 2)),
    "linear_transpose": (lambda f, x, y: ft.linear_transpose(f, x)(y), (double, X, T)),
    "linearize": (lambda f, x, t: ft.linearize(f, x)[1](t), (square, X, T)),
    "load_graph": (_stored, (_saved(),)),
    "make_graph": (
        lambda f, x: ft.make_graph(f)(x)(x),
        (square, X),
        lambda f, x: f(x),
    ),
    "map": (ft.map, (square, X, None), lambda f, x, size: _looped(f, x)),
    "odeint": (ft.odeint, (lambda y, t: -y, X, np.linspace(0.0, 1.0, 3))),
    "pmax": (_lanes(ft.pmax), (X, "i")),
    "pmean": (_lanes(ft.pmean), (X, "i")),
    "pmin": (_lanes(ft.pmin), (X, "i")),
    "profile": (lambda f, x: ft.profile(f)(x), (loss, X)),
    "psum": (_lanes(ft.psum), (X, "i"), lambda x, name: np.stack([3 * _array(x)] * 3)),
    "pure_callback": (ft.pure_callback, (square, ft.ArraySpec((3,), float), X)),
    "ravel_pytree": (lambda x: ft.ravel_pytree(x)[0], (X,)),
    "remat": (lambda f, x: ft.grad(ft.remat(f))(x), (loss, X)),
    "scan": (ft.scan, (lambda c, x: (c + 1.0, x * x), 0.0, X, None, False, 1)),
    "source": (lambda f, x: str(ft.source(f)(x)), (square, X)),
    "spectral_function": (ft.spectral_function, (np.exp, SPD, "L")),
    "use_hooks": (ft.use_hooks, (True,)),
    "stop_gradient": (ft.stop_gradient, (X,), lambda x: x),
    "switch": (ft.switch, (1, [square, double], X)),
    "tap": (lambda x, f: ft.tap(x, f), (X, lambda x: None), lambda x, f: x),
    "trace_steps": (lambda f, x: ft.trace_steps(f, x).html and None, (loss, X)),
    "value_and_grad": (
        lambda f, n, x: ft.value_and_grad(f, n)(x)[0],
        (loss, 0, X),
        lambda f, n, x: f(x),
    ),
    "vjp": (lambda f, x, g: ft.vjp(f, x)[1](g), (square, X, T)),
    "vmap": (
        lambda f, i, o, name, size, chunk, x: ft.vmap(f, i, o, name, size, chunk)(x),
        (square, 0, 0, None, None, None, X),
        lambda f, i, o, name, size, chunk, x: _looped(f, np.moveaxis(x, i or 0, 0)),
    ),
    "while_loop": (_while, (lambda x: np.all(x < 9), double, X)),
    # The public modules.
    "Graph.draw": (
        lambda collapse, values: ft.make_graph(loss)(X).draw(collapse, values).svg and None,
        ("auto", (X,)),
    ),
    "Graph.run": (lambda leaves: ft.make_graph(loss)(X).run(leaves), ([X],)),
    "Graph.__call__": (lambda x: ft.make_graph(loss)(X)(x), (X,)),
    "profile.table": (lambda sort_by: ft.profile(loss)(X).table(sort_by), ("time",)),
    "tree.all": (ft.tree.all, ({"a": True},)),
    "tree.flatten": (ft.tree.flatten, ({"a": X}, None)),
    "tree.leaves": (ft.tree.leaves, ({"a": X}, None)),
    "tree.map": (ft.tree.map, (square, {"a": X}, {"a": X})[:2]),
    "tree.paths": (ft.tree.paths, ({"a": X}, None)),
    "tree.ravel_pytree": (ft.tree.ravel_pytree, ({"a": X},)),
    "tree.reduce": (ft.tree.reduce, (np.add, [X, X])),
    "tree.register_dataclass": (lambda cls: ft.tree.register_dataclass(cls) and None, (int,)),
    "tree.structure": (ft.tree.structure, ({"a": X}, None)),
    "tree.unflatten": (ft.tree.unflatten, (ft.tree.structure([X]), [X])),
    "plot.growth": (_figure(plot.growth), ([1, 2, 4], {"a": [1.0, 2.0, 4.0]}, None)),
    "plot.matrix": (_figure(plot.matrix), (SPD, None)),
    "plot.memory_curve": (_figure(plot.memory_curve), ([1, 2, 4], {"a": [1.0, 2.0, 4.0]}, None)),
    "plot.sparsity": (_figure(plot.sparsity), (SPD, None)),
    "plot.speed": (_figure(plot.speed), ({"a": 1.0, "b": 2.0}, None, "a")),
    "testing.check_derivatives": (ft.testing.check_derivatives, (loss, (X,), 1)),
    "random.bernoulli": (random.bernoulli, (KEY, 0.5, (3,))),
    "random.beta": (random.beta, (KEY, 1.0, 2.0, (3,))),
    "random.bits": (random.bits, (KEY, (3,))),
    "random.categorical": (random.categorical, (KEY, X, -1)),
    "random.cauchy": (random.cauchy, (KEY, (3,), float)),
    "random.chisquare": (random.chisquare, (KEY, 2.0, (3,))),
    "random.choice": (random.choice, (KEY, X, (2,))),
    "random.dirichlet": (random.dirichlet, (KEY, X)),
    "random.exponential": (random.exponential, (KEY, (3,), float)),
    "random.fold_in": (random.fold_in, (KEY, 1)),
    "random.gamma": (random.gamma, (KEY, 2.0, (3,))),
    "random.geometric": (random.geometric, (KEY, 0.5, (3,))),
    "random.gumbel": (random.gumbel, (KEY, (3,), float)),
    "random.key": (random.key, (0,)),
    "random.laplace": (random.laplace, (KEY, (3,), float)),
    "random.loggamma": (random.loggamma, (KEY, 2.0, (3,))),
    "random.logistic": (random.logistic, (KEY, (3,), float)),
    "random.lognormal": (random.lognormal, (KEY, 1.0, (3,))),
    "random.multivariate_normal": (random.multivariate_normal, (KEY, np.zeros(2), SPD)),
    "random.normal": (random.normal, (KEY, (3,), float)),
    "random.pareto": (random.pareto, (KEY, 2.0, (3,))),
    "random.permutation": (random.permutation, (KEY, X, 0)),
    "random.poisson": (random.poisson, (KEY, 2.0, (3,))),
    "random.rademacher": (random.rademacher, (KEY, (3,))),
    "random.randint": (random.randint, (KEY, (3,), 0, 5)),
    "random.rayleigh": (random.rayleigh, (KEY, 1.0, (3,))),
    "random.split": (random.split, (KEY, 2)),
    "random.student_t": (random.student_t, (KEY, 2.0, (3,))),
    "random.t": (random.t, (KEY, 2.0, (3,))),
    "random.truncated_normal": (random.truncated_normal, (KEY, -1.0, 1.0, (3,))),
    "random.uniform": (random.uniform, (KEY, (3,), float, 0.0, 1.0)),
    "random.weibull_min": (random.weibull_min, (KEY, 1.0, 2.0, (3,))),
    "scipy.integrate.cumulative_simpson": (integrate.cumulative_simpson, (X,)),
    "scipy.integrate.cumulative_trapezoid": (integrate.cumulative_trapezoid, (X, X)),
    "scipy.integrate.dblquad": (integrate.dblquad, (lambda y, x: x * y, 0.0, 1.0, 0.0, 1.0)),
    "scipy.integrate.fixed_quad": (integrate.fixed_quad, (square, 0.0, 1.0)),
    "scipy.integrate.nquad": (integrate.nquad, (square, [(0.0, 1.0)])),
    "scipy.integrate.quad": (integrate.quad, (square, 0.0, 1.0)),
    "scipy.integrate.quad_vec": (integrate.quad_vec, (square, 0.0, 1.0)),
    "scipy.integrate.romb": (integrate.romb, (X, 0.5)),
    "scipy.integrate.simpson": (integrate.simpson, (X, X)),
    "scipy.integrate.solve_bvp": (
        integrate.solve_bvp,
        (lambda x, y: -y, lambda a, b: a - 1.0, X, np.ones((1, 3))),
    ),
    "scipy.integrate.solve_ivp": (integrate.solve_ivp, (lambda t, y: -y, (0.0, 1.0), X)),
    "scipy.integrate.tplquad": (_box, ((),)),
    "scipy.integrate.trapezoid": (integrate.trapezoid, (X, X)),
    "scipy.integrate.odeint": (integrate.odeint, (lambda y, t: -y, X, np.linspace(0.0, 1.0, 3))),
    "scipy.optimize.approx_fprime": (optimize.approx_fprime, (X, loss)),
    "scipy.optimize.basinhopping": (optimize.basinhopping, (loss, X, 2)),
    "scipy.optimize.bisect": (optimize.bisect, (_cubic, 0.0, 3.0)),
    "scipy.optimize.brent": (optimize.brent, (square,)),
    "scipy.optimize.brenth": (optimize.brenth, (_cubic, 0.0, 3.0)),
    "scipy.optimize.brentq": (optimize.brentq, (_cubic, 0.0, 3.0)),
    "scipy.optimize.check_grad": (optimize.check_grad, (loss, double, X)),
    "scipy.optimize.curve_fit": (optimize.curve_fit, (lambda x, a: a * x, X, X)),
    "scipy.optimize.differential_evolution": (
        optimize.differential_evolution,
        (loss, [(-1.0, 2.0)]),
    ),
    "scipy.optimize.direct": (optimize.direct, (loss, [(-1.0, 2.0)])),
    "scipy.optimize.dual_annealing": (optimize.dual_annealing, (loss, [(-1.0, 2.0)], (), 5)),
    "scipy.optimize.fixed_point": (optimize.fixed_point, (np.cos, 1.0)),
    "scipy.optimize.brute": (optimize.brute, (loss, [(-1.0, 1.0), (-1.0, 1.0)])),
    "scipy.optimize.anderson": (optimize.anderson, (double, X)),
    "scipy.optimize.broyden1": (optimize.broyden1, (double, X)),
    "scipy.optimize.broyden2": (optimize.broyden2, (double, X)),
    "scipy.optimize.diagbroyden": (optimize.diagbroyden, (double, X)),
    "scipy.optimize.excitingmixing": (optimize.excitingmixing, (_falling, X)),
    "scipy.optimize.linearmixing": (optimize.linearmixing, (_falling, X)),
    "scipy.optimize.newton_krylov": (optimize.newton_krylov, (double, X)),
    "scipy.optimize.fmin": (optimize.fmin, (loss, X)),
    "scipy.optimize.fmin_bfgs": (optimize.fmin_bfgs, (loss, X)),
    "scipy.optimize.fmin_cg": (optimize.fmin_cg, (loss, X)),
    "scipy.optimize.fmin_cobyla": (optimize.fmin_cobyla, (loss, X, [np.sum])),
    "scipy.optimize.fmin_l_bfgs_b": (optimize.fmin_l_bfgs_b, (loss, X, double)),
    "scipy.optimize.fmin_ncg": (optimize.fmin_ncg, (loss, X, double)),
    "scipy.optimize.fmin_powell": (optimize.fmin_powell, (loss, X)),
    "scipy.optimize.fmin_slsqp": (optimize.fmin_slsqp, (loss, X)),
    "scipy.optimize.fmin_tnc": (optimize.fmin_tnc, (loss, X, double)),
    "scipy.optimize.fminbound": (optimize.fminbound, (square, -1.0, 2.0)),
    "scipy.optimize.fsolve": (optimize.fsolve, (_cubic, 1.0)),
    "scipy.optimize.golden": (optimize.golden, (square,)),
    "scipy.optimize.leastsq": (optimize.leastsq, (double, X)),
    "scipy.optimize.linear_sum_assignment": (optimize.linear_sum_assignment, (SPD,)),
    "scipy.optimize.linprog": (optimize.linprog, (X, [-X], [-1.0])),
    "scipy.optimize.lsq_linear": (optimize.lsq_linear, (SPD, np.ones(2))),
    "scipy.optimize.minimize_scalar": (optimize.minimize_scalar, (square,)),
    "scipy.optimize.newton": (optimize.newton, (_cubic, 1.0)),
    "scipy.optimize.nnls": (optimize.nnls, (SPD, np.ones(2))),
    "scipy.optimize.ridder": (optimize.ridder, (_cubic, 0.0, 3.0)),
    "scipy.optimize.root": (optimize.root, (_cubic, X)),
    "scipy.optimize.root_scalar": (optimize.root_scalar, (_cubic, (), "brentq", (0.0, 3.0))),
    "scipy.optimize.rosen": (optimize.rosen, (X,)),
    "scipy.optimize.rosen_der": (optimize.rosen_der, (X,)),
    "scipy.optimize.rosen_hess": (optimize.rosen_hess, (X,)),
    "scipy.optimize.rosen_hess_prod": (optimize.rosen_hess_prod, (X, T)),
    "scipy.optimize.shgo": (optimize.shgo, (loss, [(-1.0, 2.0)])),
    "scipy.optimize.toms748": (optimize.toms748, (_cubic, 0.0, 3.0)),
    "scipy.optimize.least_squares": (optimize.least_squares, (double, X)),
    "scipy.optimize.minimize": (optimize.minimize, (loss, X)),
    "scipy.special.assoc_legendre_p": (special.assoc_legendre_p, (2, 1, X / 3)),
    "scipy.special.comb": (special.comb, (X + 2, 2)),
    "scipy.special.diric": (special.diric, (X, 3)),
    "scipy.special.factorial": (special.factorial, (X,)),
    "scipy.special.legendre_p": (special.legendre_p, (2, X)),
    "scipy.special.perm": (special.perm, (X + 2, 2)),
    "scipy.special.sph_harm_y": (special.sph_harm_y, (2, 1, X, 0.5)),
    "scipy.special.sph_legendre_p": (special.sph_legendre_p, (2, 1, X)),
    "scipy.special.log_softmax": (special.log_softmax, (X, 0)),
    "scipy.special.logsumexp": (special.logsumexp, (X, 0, None)),
    "scipy.special.multigammaln": (special.multigammaln, (X + 2, 2)),
    "scipy.special.polygamma": (special.polygamma, (1, X)),
    "scipy.special.softmax": (special.softmax, (X, 0)),
    "scipy.special.spherical_in": (special.spherical_in, (1, X)),
    "scipy.special.spherical_jn": (special.spherical_jn, (1, X)),
    "scipy.special.spherical_kn": (special.spherical_kn, (1, X)),
    "scipy.special.spherical_yn": (special.spherical_yn, (1, X)),
    "scipy.stats.boxcox_llf": (stats.boxcox_llf, (0.5, X)),
    "scipy.stats.dirichlet": (stats.dirichlet.logpdf, (np.array([0.4, 0.6]), np.ones(2))),
    "scipy.stats.entropy": (stats.entropy, (X, X + 1)),
    "scipy.stats.gaussian_kde": (lambda data, x: stats.gaussian_kde(data)(x), (X, X)),
    "scipy.stats.multivariate_normal": (
        stats.multivariate_normal.logpdf,
        (np.ones(2), np.zeros(2), SPD),
    ),
    "scipy.stats.multivariate_t": (stats.multivariate_t.logpdf, (np.ones(2), np.zeros(2), SPD)),
    "scipy.stats.pearsonr": (lambda x, y: stats.pearsonr(x, y).statistic, (X, T)),
    "scipy.stats.pmean": (stats.pmean, (X, 2)),
    "scipy.stats.trim_mean": (stats.trim_mean, (X, 0.1)),
    "scipy.stats.wishart": (stats.wishart.logpdf, (SPD, 3.0, SPD)),
    "scipy.stats.zmap": (stats.zmap, (X, T)),
    **{
        f"scipy.stats.{name}": (getattr(stats, name), (X, 0))
        for name in ("gmean", "hmean", "kurtosis", "sem", "skew", "variation", "zscore", "iqr")
    },
    "scipy.stats.moment": (stats.moment, (X, 2)),
    **{
        f"scipy.stats.{name}": (getattr(stats, name).logpdf, (X / 4, *shapes, 0.0, 1.0))
        for shapes, names in {
            (): "cauchy expon gumbel_l gumbel_r halfcauchy halfnorm laplace logistic maxwell norm",
            (0.5,): "dweibull genextreme genpareto invgauss lognorm loggamma skewnorm",
            (2.0,): "chi2 gamma invgamma pareto powerlaw t vonmises weibull_max weibull_min",
            (0.5, 2.0): "beta exponweib f truncnorm",
            (0.4,): "triang",
        }.items()
        for name in names.split()
    },
    "scipy.stats.rayleigh": (stats.rayleigh.logpdf, (X, 0.0, 1.0)),
    "scipy.stats.uniform": (stats.uniform.logpdf, (X / 4, 0.0, 1.0)),
    **{
        f"scipy.stats.{name}": (getattr(stats, name).logpmf, (np.arange(3), *shapes))
        for name, shapes in {
            "bernoulli": (0.4,),
            "binom": (5, 0.4),
            "geom": (0.4,),
            "nbinom": (2.5, 0.4),
            "poisson": (2.0,),
            "randint": (0, 5),
        }.items()
    },
}
# Public names that are not functions, or that take only classes.
NO_FUNCTIONS = {
    "errors",
    "numpy",
    "plot",
    "testing",
    "tree",
    "tree.TreeDef",
    "tree.register",
}
# Methods of what public functions return.
METHODS = {"Graph.draw", "Graph.run", "Graph.__call__", "profile.table"}
