"""Univariate distributions: each states facts in standard form, and its methods are derived from them here.

For a continuous distribution they are the logarithm of the density, the distribution function, or another
function that determines it, the support, and a point inside it. Outside the support a density is 0 and its
logarithm -inf, with derivative 0; of nan, and of parameters that do not exist, everything is nan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from functrans.core import errors
from functrans.core.shapes import shape_of
from functrans.ops.families import elementwise
from functrans.scipy.distributions.methods import FrozenDistribution, Method, read_parameters
from functrans.scipy.loading import load
from functrans.surface.table import as_array
from functrans.transforms.forward_mode import jvp

ss = load("scipy.stats")
Formula = Callable[..., Any]


@dataclass(frozen=True)
class Facts:
    """A distribution in standard form: functions of a point (or a probability) and the shape parameters."""

    shapes: tuple[str, ...]
    log_density: Formula
    support: Formula
    inside: Formula
    valid: Formula
    density: Formula | None = None
    cdf: Formula | None = None
    sf: Formula | None = None
    logcdf: Formula | None = None
    logsf: Formula | None = None
    ppf: Formula | None = None
    isf: Formula | None = None
    mean: Formula | None = None
    var: Formula | None = None
    entropy: Formula | None = None
    symmetric: bool = False
    open: bool = False  # the density is not that of the formula at the lower end
    vanishes: bool = True  # the density is 0 at infinity

    def pdf_at(self, z: Any, *shapes: Any) -> Any:
        if self.density is not None:
            return self.density(z, *shapes)
        return np.exp(self.log_density(z, *shapes))

    def cdf_at(self, z: Any, *shapes: Any) -> Any:
        if self.cdf is not None:
            return self.cdf(z, *shapes)
        if self.logcdf is not None:
            return np.exp(self.logcdf(z, *shapes))
        return -np.expm1(self.logsf(z, *shapes))  # type: ignore[misc]

    def sf_at(self, z: Any, *shapes: Any) -> Any:
        if self.sf is not None:
            return self.sf(z, *shapes)
        if self.symmetric:
            return self.cdf_at(-z, *shapes)
        if self.logsf is not None:
            return np.exp(self.logsf(z, *shapes))
        if self.cdf is None:
            return -np.expm1(self.logcdf(z, *shapes))  # type: ignore[misc]
        return 1 - self.cdf(z, *shapes)

    def logcdf_at(self, z: Any, *shapes: Any) -> Any:
        if self.logcdf is not None:
            return self.logcdf(z, *shapes)
        return _log_of(self.cdf_at(z, *shapes), self.sf_at(z, *shapes))

    def logsf_at(self, z: Any, *shapes: Any) -> Any:
        if self.logsf is not None:
            return self.logsf(z, *shapes)
        if self.symmetric:
            return self.logcdf_at(-z, *shapes)
        return _log_of(self.sf_at(z, *shapes), self.cdf_at(z, *shapes))

    def ppf_at(self, q: Any, *shapes: Any) -> Any:
        return self.ppf(q, *shapes)  # type: ignore[misc]

    def isf_at(self, q: Any, *shapes: Any) -> Any:
        if self.isf is not None:
            return self.isf(q, *shapes)
        return -self.ppf_at(q, *shapes) if self.symmetric else self.ppf_at(1 - q, *shapes)


def _log_of(p: Any, rest: Any) -> Any:
    """log p, from 1 - p where p is near 1."""
    large = p > 0.5
    return np.where(large, np.log1p(-np.where(large, rest, 0.5)), np.log(np.where(large, 0.5, p)))


def positive(*shapes: Any) -> Any:
    """Whether the shape parameters exist: most have to be positive."""
    valid: Any = True
    for shape in shapes:
        valid = valid & (shape > 0)
    return valid


def whole_line(*shapes: Any) -> tuple[float, float]:
    return -np.inf, np.inf


def half_line(*shapes: Any) -> tuple[float, float]:
    return 0.0, np.inf


def _floating(x: Any) -> Any:
    """An array in SciPy's precision: distributions compute in double precision."""
    return as_array(x).astype(np.float64)


class _Univariate(FrozenDistribution):
    facts: Facts

    @classmethod
    def _parameters(cls, args: Any, kwds: Any) -> tuple[list[Any], Any, Any, Any]:
        """The shape parameters, the location and the scale, and 1, or nan where there are none such."""
        names = (*cls.facts.shapes, *cls.placing)
        found = read_parameters(cls.name, names, cls.placing, args, kwds)
        values = [_floating(each) for each in found]
        count = len(cls.facts.shapes)
        shapes, loc, scale = values[:count], values[count], [*values[count + 1 :], 1.0][0]
        valid = cls.facts.valid(*shapes)
        if "scale" in cls.placing:
            valid = valid & (scale > 0)
        return shapes, loc, scale, np.where(valid, 1.0, np.nan)

    placing: ClassVar[dict[str, Any]]

    @property
    def _placed(self) -> tuple[list[Any], Any, Any, Any]:
        return self._parameters(self.args, self.kwds)

    @property
    def dist(self) -> Any:
        """SciPy's distribution."""
        return self.scipys

    @property
    def a(self) -> Any:
        """The lower end of the support, in standard form."""
        return self.facts.support(*self._placed[0])[0]

    @property
    def b(self) -> Any:
        """The upper end of the support, in standard form."""
        return self.facts.support(*self._placed[0])[1]

    @classmethod
    def _fact(cls, name: str) -> Formula:
        fact: Formula | None = getattr(cls.facts, name)
        if fact is None:
            raise errors.MissingRuleError(
                f"scipy.stats.{cls.name}.{name} has no formula for traced values, at "
                f"{errors.user_location()}. Integrate over the quantiles: np.mean of a function of "
                f"{cls.name}.ppf at points in (0, 1)."
            )
        return fact

    @Method
    def ppf(cls: Any, q: Any, *args: Any, **kwds: Any) -> Any:
        """The quantile function, the inverse of `cdf`."""
        return cls._quantile(cls.facts.ppf_at, False, q, args, kwds)

    @Method
    def isf(cls: Any, q: Any, *args: Any, **kwds: Any) -> Any:
        """The inverse of `sf`."""
        return cls._quantile(cls.facts.isf_at, True, q, args, kwds)

    @Method
    def mean(cls: Any, *args: Any, **kwds: Any) -> Any:
        """The expected value."""
        shapes, loc, scale, mark = cls._parameters(args, kwds)
        return (mark * cls._fact("mean")(*shapes) * scale + loc)[()]

    @Method
    def var(cls: Any, *args: Any, **kwds: Any) -> Any:
        """The variance."""
        shapes, loc, scale, mark = cls._parameters(args, kwds)
        return (mark * cls._fact("var")(*shapes) * scale * scale + 0 * loc)[()]

    @Method
    def std(cls: Any, *args: Any, **kwds: Any) -> Any:
        """The standard deviation."""
        return np.sqrt(cls.var(*args, **kwds))

    @Method
    def median(cls: Any, *args: Any, **kwds: Any) -> Any:
        """The point with probability 1/2 on either side."""
        return cls.ppf(0.5, *args, **kwds)

    @Method
    def support(cls: Any, *args: Any, **kwds: Any) -> tuple[Any, Any]:
        """The ends of the support."""
        shapes, loc, scale, mark = cls._parameters(args, kwds)
        ends = cls.facts.support(*shapes)
        return tuple(((mark * end) * scale + loc)[()] for end in ends)

    @Method
    def stats(cls: Any, *args: Any, moments: str = "mv", **kwds: Any) -> Any:
        """Mean and variance: "m", "v" or "mv"."""
        if set(moments) - {"m", "v"}:
            raise errors.MissingRuleError(
                f'scipy.stats.{cls.name}.stats of traced values knows the moments "m" and "v", not '
                f"{moments!r}, at {errors.user_location()}. Ask for these."
            )
        found = tuple({"m": cls.mean, "v": cls.var}[each](*args, **kwds) for each in moments)
        return found if len(found) != 1 else found[0]

    @Method
    def interval(cls: Any, confidence: Any, *args: Any, **kwds: Any) -> tuple[Any, Any]:
        """The interval around the median that has this probability."""
        rest = (1 - as_array(confidence)) / 2
        return cls.ppf(rest, *args, **kwds), cls.ppf(1 - rest, *args, **kwds)

    @Method
    def cdf(cls: Any, x: Any, *args: Any, **kwds: Any) -> Any:
        """The distribution function: the probability of values up to x."""
        return cls._cumulative(cls.facts.cdf_at, 0.0, 1.0, x, args, kwds)

    @Method
    def sf(cls: Any, x: Any, *args: Any, **kwds: Any) -> Any:
        """The probability of values above x, 1 - cdf(x) without its rounding."""
        return cls._cumulative(cls.facts.sf_at, 1.0, 0.0, x, args, kwds)

    @Method
    def logcdf(cls: Any, x: Any, *args: Any, **kwds: Any) -> Any:
        """The logarithm of `cdf`."""
        return cls._cumulative(cls.facts.logcdf_at, -np.inf, 0.0, x, args, kwds)

    @Method
    def logsf(cls: Any, x: Any, *args: Any, **kwds: Any) -> Any:
        """The logarithm of `sf`."""
        return cls._cumulative(cls.facts.logsf_at, 0.0, -np.inf, x, args, kwds)


class Continuous(_Univariate):
    """A continuous distribution with location and scale."""

    placing: ClassVar[dict[str, Any]] = {"loc": 0, "scale": 1}

    @classmethod
    def _standard(cls, x: Any, args: Any, kwds: Any) -> tuple[Any, list[Any], Any]:
        shapes, loc, scale, mark = cls._parameters(args, kwds)
        return (_floating(x) - loc) / (scale * mark), shapes, scale

    @classmethod
    def _density(cls, formula: Formula, outside: float, x: Any, args: Any, kwds: Any) -> Any:
        """The formula inside the support; the points elsewhere borrow one that is inside."""
        z, shapes, scale = cls._standard(x, args, kwds)
        low, high = cls.facts.support(*shapes)
        within = (z > low if cls.facts.open else z >= low) & (z <= high)
        if cls.facts.vanishes:
            within = within & ~np.isinf(z)
        within = within | np.isnan(z)
        inner = np.where(within, z, cls.facts.inside(*shapes))
        return np.where(within, formula(inner, scale, *shapes), outside)[()]

    @Method
    def logpdf(cls: Any, x: Any, *args: Any, **kwds: Any) -> Any:
        """The logarithm of the density."""
        formula = cls.facts.log_density
        of = lambda z, scale, *shapes: formula(z, *shapes) - np.log(scale)
        return cls._density(of, -np.inf, x, args, kwds)

    @Method
    def pdf(cls: Any, x: Any, *args: Any, **kwds: Any) -> Any:
        """The density."""
        formula = cls.facts.pdf_at
        return cls._density(lambda z, scale, *s: formula(z, *s) / scale, 0.0, x, args, kwds)

    @classmethod
    def _cumulative(
        cls, formula: Formula, below: float, above: float, x: Any, args: Any, kwds: Any
    ) -> Any:
        z, shapes, _ = cls._standard(x, args, kwds)
        low, high = cls.facts.support(*shapes)
        left, right = z <= low, z >= high
        inner = np.where(left | right, cls.facts.inside(*shapes), z)
        return np.where(left, below, np.where(right, above, formula(inner, *shapes)))[()]

    @classmethod
    def _quantile(cls, formula: Formula, falling: bool, q: Any, args: Any, kwds: Any) -> Any:
        shapes, loc, scale, mark = cls._parameters(args, kwds)
        q = _floating(q)
        low, high = cls.facts.support(*shapes)
        if falling:
            low, high = high, low
        known = ((q > 0) & (q < 1)) | np.isnan(q)
        z = formula(np.where(known, q, 0.5), *shapes)
        ends = np.where(q == 0, low, np.where(q == 1, high, np.nan))
        return (np.where(known, z, ends) * (scale * mark) + loc)[()]

    @Method
    def entropy(cls: Any, *args: Any, **kwds: Any) -> Any:
        """The differential entropy, in nats."""
        shapes, loc, scale, mark = cls._parameters(args, kwds)
        return (mark * cls._fact("entropy")(*shapes) + np.log(scale) + 0 * loc)[()]


class Discrete(_Univariate):
    """A distribution of integers with location."""

    placing: ClassVar[dict[str, Any]] = {"loc": 0}

    @classmethod
    def _counted(cls, k: Any, args: Any, kwds: Any) -> tuple[Any, list[Any]]:
        shapes, loc, _, mark = cls._parameters(args, kwds)
        return _count(_floating(k) - loc) * mark, shapes

    @classmethod
    def _mass(cls, formula: Formula, outside: float, k: Any, args: Any, kwds: Any) -> Any:
        count, shapes = cls._counted(k, args, kwds)
        low, high = cls.facts.support(*shapes)
        within = (count >= low) & (count <= high) & (count == np.floor(count)) & ~np.isinf(count)
        within = within | np.isnan(count)
        inner = np.where(within, count, cls.facts.inside(*shapes))
        return np.where(within, formula(inner, *shapes), outside)[()]

    @Method
    def logpmf(cls: Any, k: Any, *args: Any, **kwds: Any) -> Any:
        """The logarithm of the probability of k."""
        return cls._mass(cls.facts.log_density, -np.inf, k, args, kwds)

    @Method
    def pmf(cls: Any, k: Any, *args: Any, **kwds: Any) -> Any:
        """The probability of k."""
        return cls._mass(cls.facts.pdf_at, 0.0, k, args, kwds)

    @classmethod
    def _cumulative(
        cls, formula: Formula, below: float, above: float, k: Any, args: Any, kwds: Any
    ) -> Any:
        count, shapes = cls._counted(k, args, kwds)
        count = np.floor(count)
        low, high = cls.facts.support(*shapes)
        left, right = count < low, count >= high
        inner = np.where(left | right, cls.facts.inside(*shapes), count)
        return np.where(left, below, np.where(right, above, formula(inner, *shapes)))[()]

    @classmethod
    def _quantile(cls, formula: Formula, falling: bool, q: Any, args: Any, kwds: Any) -> Any:
        """Quantiles are whole: their derivative with respect to all but the location is 0."""
        shapes, loc, _, mark = cls._parameters(args, kwds)
        return (formula(_floating(q), *shapes) * mark + loc)[()]

    @Method
    def entropy(cls: Any, *args: Any, **kwds: Any) -> Any:
        """The entropy, in nats."""
        shapes, loc, _, mark = cls._parameters(args, kwds)
        return (mark * cls._fact("entropy")(*shapes) + 0 * loc)[()]


def _no_slope() -> Any:
    raise errors.MissingRuleError(
        "a discrete distribution has no derivative with respect to the count, its location or another "
        f"whole number, at {errors.user_location()}. Hold it constant with functrans.stop_gradient(k)."
    )


# A count is the number itself, without a derivative; refused where it is recorded.
_count = elementwise(None, lambda: _no_slope(), impl=lambda k: k + 0.0, name="count")
_count.rules = (_count.rules[0], (lambda *_: _no_slope(), _count.rules[1][1]))


def whole(formula: Formula, *places: int) -> Formula:
    """A formula whose arguments at these places are whole numbers."""

    def of_counts(*args: Any) -> Any:
        return formula(*(_count(x) if j in places else x for j, x in enumerate(args)))

    return of_counts


def derivative(function: Formula, place: int, *args: Any) -> Any:
    """The derivative of an elementwise function with respect to one of its arguments."""
    spread = np.broadcast_to(args[place], np.broadcast_shapes(*map(shape_of, args)))

    def of_one(x: Any) -> Any:
        return function(*args[:place], x, *args[place + 1 :])

    return jvp(of_one, (spread,), (np.ones(shape_of(spread)),))[1]


def implicit_quantile(name: str, facts: dict[str, Any]) -> Formula:
    """SciPy's quantile function of a distribution with one shape parameter.

    F(z, s) = q, so dz = (dq - F_s ds) / density.
    """

    def density(z: Any, s: Any) -> Any:
        return np.exp(facts["log_density"](z, s))

    return elementwise(
        None,
        lambda out, y: 1 / density(out, y),
        lambda out, y: -derivative(facts["cdf"], 1, out, y) / density(out, y),
        impl=lambda q, s: getattr(ss, name).ppf(q, s),
        name=f"{name}_quantile",
    )


def constant_quantiles(name: str, arity: int) -> tuple[Formula, Formula]:
    """SciPy's quantile functions of a discrete distribution, which are constant almost everywhere."""
    pair = [
        elementwise(
            None,
            *[None] * (1 + arity),
            impl=lambda *args, method=method: getattr(getattr(ss, name), method)(*args),
            name=f"{name}_{method}",
        )
        for method in ("ppf", "isf")
    ]
    return pair[0], pair[1]


KNOWN: dict[str, Any] = {}  # the distributions by name


def distribution(base: Any, name: str, summary: str, example: str, **facts: Any) -> Any:
    """Define a distribution by its facts."""
    facts["shapes"] = tuple(facts.get("shapes", "").split())
    facts.setdefault("valid", positive)
    names = ", ".join((*facts["shapes"], *base.placing))
    if base is Continuous:
        law = [
            ">>> # The derivative of the distribution function is the density.",
            f">>> bool(np.isclose(grad({name}.cdf)({example}), {name}.pdf({example})))",
            "True",
        ]
    else:
        law = [
            f">>> every = vmap(lambda k: {name}.pmf(k, {example}))(np.arange(100.0))",
            ">>> float(np.sum(every).round(6))",
            "1.0",
        ]
    lines = [
        f"{summary}.",
        "",
        f"Its methods are those of `scipy.stats.{name}`, with the parameters {names}, all of which may be",
        f"traced; `{name}({names})` holds them.",
        "",
        "Examples",
        "--------",
        ">>> import numpy as np",
        f">>> from functrans import {'grad' if base is Continuous else 'vmap'}",
        f">>> from functrans.scipy.stats import {name}",
        *law,
    ]
    KNOWN[name] = type(
        name,
        (base,),
        {
            "__doc__": "\n".join(lines),
            "__module__": "functrans.scipy.stats",
            "__slots__": (),
            "name": name,
            "scipys": getattr(ss, name),
            "facts": Facts(**facts),
        },
    )
    return KNOWN[name]
