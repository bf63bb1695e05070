"""The two forms that a rule for a ufunc of SciPy takes.

rule      a ufunc with one result, and one partial derivative per argument
several   a ufunc with several results; a partial gives the derivatives of all of them

A partial of UNKNOWN stands for a derivative that has no closed form: differentiating by that argument
is an error, never silently zero. The arguments of a partial are called x, y, z, w, v in this order.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.primitive import PRIMITIVES, Primitive, bare
from functrans.core.shapes import ArraySpec, dtype_of
from functrans.core.tracer import UFUNCS
from functrans.ops.families import batch_elementwise, elementwise, elementwise_spec
from functrans.scipy.loading import load
from functrans.surface.table import as_array


class _Unknown:
    """The partial derivative with respect to an argument for which there is no formula."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = _Unknown()
_PLACES = ("first", "second", "third", "fourth", "fifth")
_ONLY_ARGUMENT = "argument"


def _no_derivative(ufunc: Any, place: int) -> Callable[..., Any]:
    """A function that says by which argument scipy.special.f cannot be differentiated."""
    argument = f"{_PLACES[place]} argument" if ufunc.nin > 1 else _ONLY_ARGUMENT

    def refuse() -> Any:
        raise errors.MissingRuleError(
            f"scipy.special.{ufunc.__name__} has no derivative with respect to its {argument}, at "
            f"{errors.user_location()}. Hold it constant with functrans.stop_gradient(x)."
        )

    return refuse


def refuse_complex(ufunc: Any, x: Any) -> None:
    """For a ufunc that is not holomorphic, like exp(-|z|) f(z): only real arguments have a rule."""
    if dtype_of(x).kind == "c":
        raise errors.MissingRuleError(
            f"scipy.special.{ufunc.__name__} of a complex number has no complex derivative, at "
            f"{errors.user_location()}. Use the function without the exponential scaling."
        )


def rule(ufunc: Any, *partials: Any) -> None:
    """State the partial derivatives of a ufunc with one result."""
    if not isinstance(ufunc, np.ufunc):  # SciPy wraps it if the variable SCIPY_ARRAY_API is set
        ufunc = getattr(load("scipy.special._ufuncs"), ufunc.__name__)
    unknown = {
        k: _no_derivative(ufunc, k) for k, partial in enumerate(partials) if partial is UNKNOWN
    }
    name = ufunc.__name__
    primitive = elementwise(
        ufunc,
        *(unknown.get(k, each) for k, each in enumerate(partials)),
        name=f"special_{name}" if name in PRIMITIVES else name,  # NumPy has some of them, too
    )
    # Refuse where the operation is recorded, in the user's code, and not later in the sweep.
    if unknown:
        rules = list(primitive.rules)
        for mask in range(len(rules)):
            for k, refuse in unknown.items():
                if mask >> k & 1:
                    rules[mask] = (lambda *_, refuse=refuse: refuse(), rules[mask][1])
        primitive.rules = tuple(rules)
    if ufunc.nin > 2:  # the protocol converts lists for one and two arguments
        UFUNCS[ufunc] = _accepting_lists(primitive)


def several(ufunc: Any, *partials: Any) -> None:
    """State the partial derivatives of a ufunc with several results.

    Each is a function (out, *args) that returns the derivative of every result, in a tuple.
    """
    known = tuple(
        _no_derivative(ufunc, k) if partial is UNKNOWN else partial
        for k, partial in enumerate(partials)
    )
    refused = sum(1 << k for k, partial in enumerate(partials) if partial is UNKNOWN)

    def derivatives(k: int, out: Any, args: Any) -> Any:
        return known[k]() if refused >> k & 1 else known[k](out, *args)

    def jvp(out: Any, args: Any, tangents: Any, params: Any) -> Any:
        total: Any = None
        for k, tangent in enumerate(tangents):
            if tangent is not None:
                terms = [each * tangent for each in derivatives(k, out, args)]
                total = terms if total is None else list(map(operator.add, total, terms))
        return total

    def pull(cotangents: Any, saved: Any) -> Any:
        mask, out, args = saved
        totals = []
        for k in range(len(args)):
            if mask >> k & 1:
                pairs = zip(cotangents, derivatives(k, out, args), strict=True)
                terms = [g * each for g, each in pairs if g is not None]
                totals.append(sum(terms[1:], terms[0]))
        return bare(totals)

    def vjp(mask: int, out: Any, args: Any, params: Any) -> Any:
        for k in range(len(args)):
            if mask & refused & 1 << k:
                known[k]()
        return pull, (mask, out, args)

    def shape(specs: tuple[ArraySpec, ...], params: dict[str, Any]) -> tuple[ArraySpec, ...]:
        return tuple(elementwise_spec(part, specs, params, found) for part, found in parts)

    # One result of several, and the dtypes that were found for it.
    parts: list[tuple[Any, dict[Any, ArraySpec]]] = [
        (lambda *args, k=k: ufunc(*args)[k], {}) for k in range(ufunc.nout)
    ]
    primitive = Primitive(
        ufunc.__name__,
        ufunc,
        jvp=jvp,
        vjp=vjp,
        batch=batch_elementwise,
        shape=shape,
        outputs=ufunc.nout,
    )
    UFUNCS[ufunc] = _accepting_lists(primitive)


def _accepting_lists(primitive: Primitive) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        return primitive(*(as_array(x) if isinstance(x, (list, tuple)) else x for x in args))

    return call
