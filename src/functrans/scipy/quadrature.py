"""Integrals of functions: quad, dblquad, tplquad, nquad, quad_vec and fixed_quad of scipy.integrate.

QUADPACK computes the value. The derivative of an integral is the integral of the derivative, summed over
nodes (nodes.py), plus the integrand at limits that move.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from functrans.core.dispatch import concrete
from functrans.scipy.loading import load
from functrans.scipy.nodes import Subintervals, beyond, integral, values_at
from functrans.scipy.solutions import arguments, is_differentiated, plain, with_value
from functrans.surface.table import as_array

si = load("scipy.integrate")
_scipy = load("scipy")


class _Mode(threading.local):
    """Inside of integrals that need only values, integrals are plain, and note that they have "
    "derivatives."""

    values_only = False
    seen = False


_mode = _Mode()


@contextmanager
def _values_only() -> Iterator[None]:
    before = _mode.values_only
    _mode.values_only = True
    try:
        yield
    finally:
        _mode.values_only = before


class _Integrand:
    """A user's function as SciPy calls it, which notes whether its values are differentiated."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.function = function
        self.args = args
        self.seen = False

    def __call__(self, *x: Any) -> Any:
        before, _mode.seen = _mode.seen, False
        try:
            with _values_only():
                out = self.function(*x, *self.args)
            self.seen = self.seen or _mode.seen or is_differentiated(out)
        finally:
            _mode.seen = before
        return plain(out)


def _finish(traced: bool) -> bool:
    """Whether to go on from the value to the derivatives."""
    if traced and _mode.values_only:
        _mode.seen = True
        return False
    return traced


def quad(
    func: Callable[..., Any],
    a: Any,
    b: Any,
    args: Any = (),
    full_output: Any = 0,
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
    limit: int = 50,
    points: Any = None,
    weight: str | None = None,
    wvar: Any = None,
    wopts: Any = None,
    maxp1: int = 50,
    limlst: int = 50,
    complex_func: bool = False,
) -> Any:
    """The integral of a function from a to b, and an estimate of its error; SciPy's `quad`.

    The integral has derivatives with respect to the limits, `wvar`, the values that `func` closes over,
    and those in `args`. A jump of the integrand must not move with them: pass such a point as a limit of
    two integrals.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.integrate import quad
    >>> def gaussian(k):
    ...     return quad(lambda x: np.exp(-k * x**2), -np.inf, np.inf)[0]
    >>> round(float(grad(gaussian)(np.pi)), 6)  # d/dk √(π/k) at π
    -0.159155
    """
    given = arguments(args)
    if complex_func:
        return _complex_quad(
            func,
            given,
            full_output,
            a,
            b,
            (epsabs, epsrel, limit, points, weight, wvar, wopts, maxp1, limlst),
        )
    settings = (
        epsabs,
        epsrel,
        limit,
        plain(points),
        weight,
        plain(wvar),
        plain(wopts),
        maxp1,
        limlst,
    )
    if isinstance(func, _scipy.LowLevelCallable):
        return si.quad(func, plain(a), plain(b), given, full_output, *settings)
    integrand = _Integrand(func, given)
    low, high = plain(a), plain(b)
    out = si.quad(integrand, low, high, (), 1, *settings)
    if not _finish(integrand.seen or is_differentiated(a, b, wvar)):
        if full_output:
            return out
        # With a full output, SciPy does not warn.
        return out[:2] if len(out) == 3 else si.quad(integrand, low, high, (), 0, *settings)
    traced = _traced_quad(lambda x: func(x, *given), integrand, (a, b), weight, wvar, out, epsabs)
    value = with_value(out[0], traced)
    if not full_output and len(out) > 3:
        si.quad(integrand, low, high, (), 0, *settings)
    return (value, *out[1:]) if full_output else (value, out[1])


def _moves(limit: Any) -> bool:
    """Whether a limit has a derivative: an infinite one stays where it is."""
    return is_differentiated(limit) and bool(np.isfinite(plain(limit)))


def _number(limit: Any) -> Any:
    return (
        limit if isinstance(limit, (int, float)) and type(limit) in (int, float) else plain(limit)
    )


def _complex_quad(func: Any, args: Any, full_output: Any, a: Any, b: Any, settings: Any) -> Any:
    parts = [
        quad(lambda x: part(as_array(func(x, *args))), a, b, (), full_output, *settings)  # noqa: B023
        for part in (np.real, np.imag)
    ]
    value, error = (parts[0][k] + 1j * parts[1][k] for k in (0, 1))
    if not full_output:
        return value, error
    return value, error, {"real": parts[0][2:], "imag": parts[1][2:]}


def _traced_quad(
    function: Any, value_only: Any, limits: Any, weight: Any, wvar: Any, out: Any, epsabs: float
) -> Any:
    """The sum that has the derivatives of an integral with SciPy's result `out`."""
    a, b = limits
    low, high = (float(plain(each)) for each in limits)
    sum_up = partial(integral, result=out[0], tolerance=max(out[1], epsabs), name="quad")
    info = out[2]
    count = int(info.get("last", 0))
    edges = list(zip(info["alist"][:count], info["blist"][:count], strict=True)) if count else []
    sign = 1.0 if low <= high else -1.0
    if weight in ("alg", "alg-loga", "alg-logb", "alg-log"):
        return _algebraic(function, limits, weight, wvar, edges or [(low, high)], sum_up)
    if weight == "cauchy":
        return _principal_value(function, limits, wvar, sum_up)
    if weight in ("cos", "sin"):
        wave = np.cos if weight == "cos" else np.sin
        frequency = float(plain(wvar))
        bare = function
        whole = lambda x: wave(wvar * x) * bare(x)
        plain_whole = lambda x: wave(frequency * x) * value_only(x)
        if np.isinf(low) or np.isinf(high):
            total = _fourier(whole, low, high, frequency)
        else:
            # Each piece has at most one period.
            parts = int(np.ceil(abs((high - low) * frequency) / (2 * np.pi))) or 1
            at = np.linspace(min(low, high), max(low, high), parts + 1)
            pieces = Subintervals(list(itertools.pairwise(at)), sign=sign)
            total = sum_up(whole, plain_whole, pieces)
        function = whole
    else:
        pieces = _pieces(low, high, edges)
        total = sum_up(function, value_only, pieces)
    for edge, side in ((a, -1.0), (b, 1.0)):
        if _moves(edge):
            total = total + side * beyond(function, edge)
    return total


def _pieces(low: float, high: float, edges: list[Any]) -> Subintervals:
    """The intervals on which QUADPACK integrates, in its variable: t in (0, 1), if a limit is infinite."""
    if not (np.isinf(low) or np.isinf(high)):
        return Subintervals(
            edges or [(min(low, high), max(low, high))], sign=1.0 if low <= high else -1.0
        )
    # x = ±(1 - t)/t from the finite limit, or from 0 to both sides.
    edges = edges or [(0.0, 0.5), (0.5, 1.0)]
    both = np.isinf(low) and np.isinf(high)
    if both and low == high:
        return Subintervals([])
    finite = 0.0 if both else (high if np.isinf(low) else low)
    infinite = low if np.isinf(low) else high
    direction = np.sign(infinite)
    orientation = 1.0 if low < high else -1.0

    def away(t: Any) -> Any:
        distance, slope = (1 - t) / t, 1 / t**2
        if both:
            return np.concatenate([distance, -distance]), orientation * np.concatenate(
                [slope, slope]
            )
        return finite + direction * distance, orientation * slope

    return _Both(edges, away) if both else Subintervals(edges, away)


class _Both(Subintervals):
    """Subintervals whose nodes stand for two points each."""

    def _mapped(self, s: Any, weights: Any, *more: Any) -> Any:
        keep = weights != 0
        x, slope = self.map_to_x(s[keep])  # type: ignore[misc]
        return (x, np.tile(weights[keep], 2) * slope, *(np.tile(each[keep], 2) for each in more))


def _algebraic(function: Any, limits: Any, weight: str, wvar: Any, edges: Any, sum_up: Any) -> Any:
    """∫ (x - a)^α (b - x)^β f(x), with logarithms, in u = (x - a) / (b - a)."""
    a, b = limits
    low, high = float(plain(a)), float(plain(b))
    length = high - low
    alpha, beta = wvar
    middle = 0.5

    def weighted(a: Any, b: Any, alpha: Any, beta: Any, f: Any) -> Any:
        def integrand(at: Any) -> Any:
            # Nodes of the upper half are given by their distance to its end, as negative numbers.
            u = np.where(at > 0, at, 1 + at)
            v = np.where(at > 0, 1 - at, -at)
            width = b - a
            below, above = width * u, width * v
            out = width * below**alpha * above**beta * f(np.where(at > 0, a + below, b - above))
            if weight in ("alg-loga", "alg-log"):
                out = out * np.log(below)
            if weight in ("alg-logb", "alg-log"):
                out = out * np.log(above)
            return out

        return integrand

    inner = sorted({(edge[0] - low) / length for edge in edges} | {middle})
    at = [u for u in inner if 0 < u < 1]
    lower = [0.0, *(u for u in at if u <= middle)]
    upper = [*(u - 1 for u in at if u >= middle), 0.0]
    pieces = Subintervals([*itertools.pairwise(lower), *itertools.pairwise(upper)])
    plain_f = lambda x: plain(function(x))
    plain_weighted = weighted(low, high, plain(alpha), plain(beta), plain_f)
    return sum_up(weighted(a, b, alpha, beta, function), plain_weighted, pieces)


def _principal_value(function: Any, limits: Any, c: Any, sum_up: Any) -> Any:
    """∫ f(x) / (x - c): the part around c is ∫ (f(c + s) - f(c - s)) / s, and the rest has no pole."""
    a, b = limits
    low, high, pole = (float(plain(each)) for each in (a, b, c))
    half = 0.5 * min(abs(pole - low), abs(high - pole))
    sign = 1.0 if low < high else -1.0

    def whole(a: Any, b: Any, c: Any, f: Any) -> Any:
        def integrand(s: Any) -> Any:
            u = s / half
            near = (f(c + s) - f(c - s)) / s
            left_end, right_end = c - sign * half, c + sign * half
            left, right = a + (left_end - a) * u, right_end + (b - right_end) * u
            outer = (left_end - a) * f(left) / (left - c) + (b - right_end) * f(right) / (right - c)
            return sign * near + outer / half

        return integrand

    return sum_up(
        whole(a, b, c, function),
        whole(low, high, pole, lambda x: plain(function(x))),
        Subintervals([(0.0, half / 2), (half / 2, half)]),
    )


def _fourier(whole: Any, low: float, high: float, frequency: float) -> Any:
    """∫ of a wave that goes on forever: half periods form an alternating series.

    It is summed with the weights of Cohen, Rodriguez Villegas and Zagier (2000): n terms give 0.77 n
    digits.
    """
    start, direction = (low, 1.0) if np.isinf(high) else (high, -1.0)
    half = np.pi / abs(frequency)
    # The terms alternate from one zero of the wave to the next.
    direct, terms = 12, 24
    at, weight = np.polynomial.legendre.leggauss(24)
    edges = start + direction * half * np.arange(direct + terms + 1)
    first = Subintervals([tuple(sorted((edges[0], edges[1])))]).nodes(16)[
        :2
    ]  # it may be singular at the limit
    d = (3 + np.sqrt(8)) ** terms
    d = (d + 1 / d) / 2
    coefficient, term, factors = -1.0, -d, []
    for k in range(terms):
        term = coefficient - term
        factors.append(term / d)
        coefficient *= (k + terms) * (k - terms) / ((k + 0.5) * (k + 1))
    # Σ (-1)^k a_k = Σ factor_k a_k, and the integrals carry the sign already.
    signs = (-1.0) ** np.arange(terms)
    multipliers = np.concatenate([np.ones(direct - 1), np.array(factors) * signs])
    centers, radius = (edges[1:-1] + edges[2:]) / 2, half / 2
    x = (centers[:, None] + radius * at).ravel()
    weights = (multipliers[:, None] * radius * weight).ravel()
    x, weights = np.concatenate([first[0], x]), np.concatenate([first[1], weights])
    return np.tensordot(weights, values_at(whole, x, False), 1)


def nquad(
    func: Callable[..., Any],
    ranges: Any,
    args: Any = None,
    opts: Any = None,
    full_output: bool = False,
) -> Any:
    """The integral of a function over several variables, and an estimate of its error; SciPy's `nquad`.

    It has derivatives with respect to the limits, and the values that the functions close over or get in
    `args`.

    Examples
    --------
    >>> from functrans import grad
    >>> from functrans.scipy.integrate import nquad
    >>> def total(a):
    ...     return nquad(lambda x, y: a * x * y, [(0.0, a), (0.0, 1.0)])[0]
    >>> round(float(grad(total)(2.0)), 6)  # d/da a³/4
    3.0
    """
    given = () if args is None else arguments(args)
    levels = [each if callable(each) else (lambda *_, each=each: each) for each in ranges]
    if opts is None:
        opts = [{}] * len(levels)
    elif isinstance(opts, dict) or callable(opts):
        opts = [opts] * len(levels)
    options = [each if callable(each) else (lambda *_, each=each: each) for each in opts]
    integrand = _Integrand(func, given)
    limits = [_Integrand(each, given) for each in levels]
    plain_options = [_Integrand(each, given) for each in options]
    out = si.nquad(integrand, limits, None, plain_options, full_output)
    if not _finish(any(each.seen for each in (integrand, *limits, *plain_options))):
        return out

    def inner(depth: int, *outer: Any) -> Any:
        low, high = levels[depth](*outer, *given)
        settings = dict(options[depth](*outer, *given))
        if depth == 0:
            return quad(func, low, high, (*outer, *given), **settings)[0]
        return _outer_quad(lambda x: inner(depth - 1, x, *outer), low, high, settings)

    return (with_value(out[0], inner(len(levels) - 1)), *out[1:])


def _outer_quad(function: Any, low: Any, high: Any, settings: dict[str, Any]) -> Any:
    """An integral of integrals, each of which is computed on its own."""
    integrand = _Integrand(function, ())
    settings = plain(settings)
    out = si.quad(integrand, plain(low), plain(high), full_output=1, **settings)
    if not _finish(integrand.seen or is_differentiated(low, high)):
        return out[0]
    info, start, stop = out[2], float(plain(low)), float(plain(high))
    if settings.get("weight") is not None:
        out = _traced_quad(
            function, integrand, (low, high), settings["weight"], settings["wvar"], out, 1.49e-8
        )
        return out
    count = int(info["last"])
    edges = list(zip(info["alist"][:count], info["blist"][:count], strict=True))
    total = integral(
        function, integrand, _pieces(start, stop, edges), out[0], max(out[1], 1.49e-8), "nquad", True
    )  # fmt: skip
    for edge, side in ((low, -1.0), (high, 1.0)):
        if _moves(edge):
            total = total + side * beyond(function, edge)
    return with_value(out[0], total)


def dblquad(
    func: Callable[..., Any],
    a: Any,
    b: Any,
    gfun: Any,
    hfun: Any,
    args: Any = (),
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
) -> Any:
    """The integral of func(y, x) for x from a to b and y from gfun(x) to hfun(x); SciPy's `dblquad`.

    Examples
    --------
    >>> from functrans import grad
    >>> from functrans.scipy.integrate import dblquad
    >>> def triangle(a):
    ...     return dblquad(lambda y, x: x * y, 0.0, a, 0.0, lambda x: x)[0]
    >>> round(float(grad(triangle)(2.0)), 6)  # d/da a⁴/8
    4.0
    """
    inner = lambda x, *_: [_at(gfun, x), _at(hfun, x)]
    tolerances = {"epsabs": epsabs, "epsrel": epsrel}
    return nquad(func, [inner, [a, b]], arguments(args), tolerances)


def tplquad(
    func: Callable[..., Any],
    a: Any,
    b: Any,
    gfun: Any,
    hfun: Any,
    qfun: Any,
    rfun: Any,
    args: Any = (),
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
) -> Any:
    """The integral of func(z, y, x), for z from qfun(x, y) to rfun(x, y) innermost; SciPy's `tplquad`.

    Examples
    --------
    >>> from functrans import grad
    >>> from functrans.scipy.integrate import tplquad
    >>> def box(a):
    ...     return tplquad(lambda z, y, x: a * z, 0.0, 1.0, 0.0, 1.0, 0.0, a)[0]
    >>> round(float(grad(box)(2.0)), 6)  # d/da a³/2
    6.0
    """
    innermost = lambda y, x, *_: [_at(qfun, x, y), _at(rfun, x, y)]
    inner = lambda x, *_: [_at(gfun, x), _at(hfun, x)]
    tolerances = {"epsabs": epsabs, "epsrel": epsrel}
    return nquad(func, [innermost, inner, [a, b]], arguments(args), tolerances)


def _at(limit: Any, *x: Any) -> Any:
    return limit(*x) if callable(limit) else limit


def quad_vec(
    f: Callable[..., Any],
    a: Any,
    b: Any,
    epsabs: float = 1e-200,
    epsrel: float = 1e-8,
    norm: Any = "2",
    cache_size: float = 100e6,
    limit: float = 10000,
    workers: Any = 1,
    points: Any = None,
    quadrature: Any = None,
    full_output: bool = False,
    *,
    args: Any = (),
) -> Any:
    """The integral of a function whose values are arrays, and an estimate of its error; SciPy's `quad_vec`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import jacfwd
    >>> from functrans.scipy.integrate import quad_vec
    >>> jacfwd(lambda a: quad_vec(lambda x: np.stack([a * x, x**a]), 0.0, 1.0)[0])(1.0).round(6)
    array([ 0.5 , -0.25])
    """
    given = arguments(args)
    integrand = _Integrand(f, given)
    low, high = plain(a), plain(b)
    more = {"args": ()} if _TAKES_ARGS else {}
    out = si.quad_vec(
        integrand,
        low,
        high,
        epsabs,
        epsrel,
        norm,
        cache_size,
        limit,
        workers,
        plain(points),
        quadrature,
        True,
        **more,
    )
    if _finish(integrand.seen or is_differentiated(a, b)):
        low, high = float(low), float(high)
        infinite = np.isinf(low) or np.isinf(high)
        edges = [] if infinite else [tuple(sorted(edge)) for edge in out[2].intervals.tolist()]
        function = lambda x: as_array(f(x, *given))
        tolerance = float(max(epsabs, epsrel * np.max(np.abs(out[0])), out[1]))
        total = integral(
            function, integrand, _pieces(low, high, edges), out[0], tolerance, "quad_vec"
        )
        for edge, side in ((a, -1.0), (b, 1.0)):
            if _moves(edge):
                total = total + side * beyond(function, edge)
        out = (with_value(out[0], total), *out[1:])
    return out if full_output else out[:2]


_TAKES_ARGS = "args" in si.quad_vec.__code__.co_varnames


def fixed_quad(
    func: Callable[..., Any], a: Any, b: Any, args: Any = (), n: int = 5
) -> tuple[Any, None]:
    """The integral of a vectorized function by n nodes of Gauss and Legendre; SciPy's `fixed_quad`.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.integrate import fixed_quad
    >>> round(float(grad(lambda b: fixed_quad(np.exp, 0.0, b)[0])(1.0)), 6)
    2.718282
    """
    at, weights = np.polynomial.legendre.leggauss(n)
    if np.isinf(concrete(a)) or np.isinf(concrete(b)):
        raise ValueError("Gaussian quadrature is only available for finite limits.")
    y = (b - a) * (at + 1) / 2 + a
    return (b - a) / 2.0 * np.sum(weights * as_array(func(y, *arguments(args))), axis=-1), None
