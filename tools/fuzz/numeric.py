"""Reference transforms: loops for `vmap`, differences for derivatives, Python for control flow.

A `Numeric` has the functions of functrans that random programs use. Nothing here calls the library, so the
answers are independent of it. Functions take and return nests of plain arrays.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from tools.fuzz.nests import is_float, leaves, mapped, refilled

Function = Callable[..., Any]

_COMPLEX_STEP = 1e-30


class NotAnalyticError(Exception):
    """A complex step was tried on a function that takes complex steps itself."""


# The function contains a derivative, or a value that must be real.
NOT_ANALYTIC = (NotAnalyticError, np.exceptions.ComplexWarning, TypeError)


class ChangedStateError(Exception):
    """The state of a loop changes its shape or dtype, or branches differ, which staged ones cannot."""


class Numeric:
    """Reference transforms. `analytic` functions are differentiated with complex steps.

    `step` is the step of central differences, which are extrapolated once. `exact` says whether all
    derivatives so far could do without them.
    """

    def __init__(self, analytic: bool = False, step: float = 4e-3) -> None:
        self.analytic = analytic
        self.step = step
        self.exact = True

    # Control flow.

    def cond(self, pred: Any, true_fn: Function, false_fn: Function, *operands: Any) -> Any:
        return self.switch(bool(pred), [false_fn, true_fn], *operands)

    def switch(self, index: Any, branches: Any, *operands: Any) -> Any:
        results = [branch(*operands) for branch in branches]
        for result in results:
            _same_kind(results[0], result)
        return results[min(max(int(index), 0), len(branches) - 1)]

    def while_loop(self, cond: Function, body: Function, init: Any) -> Any:
        state = init
        while cond(state):
            state = _same_kind(state, body(state))
        return state

    def fori_loop(self, lower: int, upper: int, body: Function, init: Any) -> Any:
        state = init
        for i in range(lower, upper):
            state = _same_kind(state, body(i, state))
        return state

    def scan(self, f: Function, init: Any, xs: Any, reverse: bool = False) -> Any:
        carry, outputs = init, []
        rows = range(len(leaves(xs)[0]))
        for k in reversed(rows) if reverse else rows:
            after, y = f(carry, mapped(lambda x, k=k: x[k], xs))
            carry = _same_kind(carry, after)
            outputs.append(y)
        if reverse:
            outputs.reverse()
        return carry, mapped(lambda *ys: np.stack(ys), *outputs)

    # Transforms that do not change the results.

    def jit(self, f: Function, backend: str = "") -> Function:
        return f

    def checkpoint(self, f: Function) -> Function:
        return f

    def custom_jvp(self, f: Function) -> Any:
        return WithoutRules(f)

    custom_vjp = custom_jvp

    # Lanes.

    def vmap(self, f: Function, in_axes: Any = 0, out_axes: Any = 0) -> Function:
        def each_lane(*args: Any) -> Any:
            axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
            count = max(
                np.shape(leaf)[axis]
                for arg, own in zip(args, axes, strict=True)
                for leaf, axis in zip(leaves(arg), axes_of(own, arg), strict=True)
                if axis is not None
            )
            results = [f(*(_lane(a, own, k) for a, own in zip(args, axes, strict=True)))
                       for k in range(count)]  # fmt: skip
            return mapped(lambda *lanes: np.stack(lanes, axis=out_axes), *results)

        return each_lane

    # Derivatives.

    def jvp(self, f: Function, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
        return f(*primals), self.along(f, primals, tangents)

    def linearize(self, f: Function, *primals: Any) -> Any:
        return f(*primals), lambda *tangents: self.along(f, primals, tangents)

    def jacfwd(self, f: Function, argnums: Any = 0) -> Function:
        def jacobian(*args: Any) -> Any:
            chosen = argnums if isinstance(argnums, tuple) else (argnums,)
            inputs = tuple(args[k] for k in chosen)

            def of_chosen(*values: Any) -> Any:
                full = list(args)
                for k, value in zip(chosen, values, strict=True):
                    full[k] = value
                return f(*full)

            out = f(*args)
            units = _unit_tangents(inputs)
            columns = [leaves(self.along(of_chosen, inputs, unit)) for unit in units]
            return refilled(
                out,
                [
                    _matrix(leaf, inputs if isinstance(argnums, tuple) else inputs[0], column)
                    for leaf, column in zip(leaves(out), _transposed(columns, out), strict=True)
                ],
            )

        return jacobian

    jacrev = jacfwd
    grad = jacfwd

    def value_and_grad(self, f: Function, argnums: Any = 0) -> Function:
        return lambda *args: (f(*args), self.grad(f, argnums)(*args))

    def vjp(self, f: Function, *primals: Any) -> Any:
        def pull(cotangent: Any) -> Any:
            def weighted(*args: Any) -> Any:
                pairs = zip(leaves(f(*args)), leaves(cotangent), strict=True)
                return sum(np.sum(value * weight) for value, weight in pairs)

            return self.grad(weighted, tuple(range(len(primals))))(*primals)

        return f(*primals), pull

    def hessian(self, f: Function, argnums: Any = 0) -> Function:
        return self.jacfwd(self.grad(f, argnums), argnums)

    def hvp(self, f: Function, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
        out = self.along(self.grad(f, tuple(range(len(primals)))), primals, tangents)
        return out if len(primals) > 1 else out[0]

    def along(self, f: Function, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
        """The derivative along a direction."""
        if any(np.iscomplexobj(leaf) for leaf in leaves(primals)):
            raise NotAnalyticError
        if self.analytic:
            try:
                return self.complex_step(f, primals, tangents)
            except NOT_ANALYTIC:
                pass
        return self.extrapolated(f, primals, tangents)[0]

    def extrapolated(self, f: Function, primals: Any, tangents: Any) -> tuple[Any, Any]:
        """The same with central differences, and the value before the extrapolation."""
        self.exact = False
        wide, narrow = (self._central(f, primals, tangents, h) for h in (self.step, self.step / 2))
        # D(h) = f' + a h^2 + b h^4 + ...: this leaves b h^4 / 4.
        return mapped(lambda a, b: (4 * b - a) / 3, wide, narrow), narrow

    def complex_step(self, f: Function, primals: Any, tangents: Any) -> Any:
        """The same with a complex step, which is exact up to rounding: Im f(x + i h t) / h."""
        moved = mapped(lambda x, t: x + 1j * _COMPLEX_STEP * t, primals, tangents)
        with warnings.catch_warnings():
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            out = f(*moved)
        return mapped(lambda leaf: np.imag(leaf) / _COMPLEX_STEP, out)

    def _central(self, f: Function, primals: Any, tangents: Any, step: float) -> Any:
        above, below = (
            f(*mapped(lambda x, t, h=h: x + h * t, primals, tangents)) for h in (step, -step)
        )
        return mapped(lambda a, b: _difference(a, b) / (2 * step), above, below)


class WithoutRules:
    """A function that ignores its custom rules, which give its ordinary derivatives."""

    def __init__(self, function: Function) -> None:
        self.function = function

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)

    def defjvp(self, rule: Function) -> None:
        pass

    def defvjp(self, forward: Function, backward: Function) -> None:
        pass


def axes_of(axes: Any, nest: Any) -> list[Any]:
    """An axis for each leaf: `axes` is either one for all leaves, or a nest of axes."""
    if axes is None or isinstance(axes, int):
        return [axes] * len(leaves(nest))
    return leaves(axes)


def _lane(nest: Any, axes: Any, k: int) -> Any:
    values = [
        leaf if axis is None else np.take(leaf, k, axis=axis)
        for leaf, axis in zip(leaves(nest), axes_of(axes, nest), strict=True)
    ]
    return refilled(nest, values)


def _difference(a: Any, b: Any) -> Any:
    return a - b if is_float(a) or np.iscomplexobj(a) else np.zeros(np.shape(a))


def _same_kind(before: Any, after: Any) -> Any:
    for one, other in zip(leaves(before), leaves(after), strict=True):
        one, other = np.asarray(one), np.asarray(other)
        # Complex steps run through code written for real numbers.
        complexes = np.iscomplexobj(one) or np.iscomplexobj(other)
        if one.shape != other.shape or (one.dtype != other.dtype and not complexes):
            raise ChangedStateError
    return after


def _unit_tangents(inputs: Any) -> list[Any]:
    """All unit directions, each along one entry of one leaf."""
    values = leaves(inputs)
    units = []
    for place, leaf in enumerate(values):
        for k in range(np.size(leaf)):
            tangents = [np.zeros(np.shape(value)) for value in values]
            tangents[place].reshape(-1)[k] = 1.0
            units.append(refilled(inputs, tangents))
    return units


def _transposed(columns: list[list[Any]], out: Any) -> list[list[Any]]:
    return [[column[k] for column in columns] for k in range(len(leaves(out)))]


def _matrix(leaf: Any, inputs: Any, column: list[Any]) -> Any:
    """The derivatives of a leaf with respect to every input, from those along every entry."""
    rest = iter(column)

    def block(value: Any) -> Any:
        entries = [next(rest) for _ in range(np.size(value))]
        stacked = np.stack(entries, axis=-1) if entries else np.zeros((*np.shape(leaf), 0))
        return stacked.reshape((*np.shape(leaf), *np.shape(value)))

    return mapped(block, inputs)
