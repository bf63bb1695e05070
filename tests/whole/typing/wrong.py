"""Typical mistakes, one on each line that says so. Type checkers must report these lines and no other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import functrans as ft
import functrans.numpy as fnp

Vector = NDArray[np.float64]


def loss(w: Vector, x: Vector) -> np.float64:
    return np.sum((x @ w) ** 2)


def loss_and_extra(w: Vector, x: Vector) -> tuple[np.float64, str]:
    return loss(w, x), "extra"


@ft.jit
def step(w: Vector, rate: float) -> Vector:
    return w - rate * w


@ft.checkpoint
def layer(w: Vector) -> Vector:
    return np.sin(w)


@ft.custom_jvp
def log1pexp(z: float) -> float:
    return float(np.log1p(np.exp(z)))


@ft.custom_vjp
def clipped(z: float, limit: float) -> float:
    return z


w, x = np.ones(2), np.ones((3, 2))

ft.grad(loss)(w)  # mistake: one argument is missing
ft.grad(loss, argnums="w")  # mistake: an argument has a position, not a name
ft.grad(loss, argnums=(0, 1))(w, x).shape  # mistake: a tuple of gradients has no shape
value, gradient, aux = ft.value_and_grad(loss_and_extra, has_aux=True)(w, x)  # mistake: two results
out, pullback, more = ft.vjp(loss, w, x)  # mistake: without has_aux there are two results
out, tangent = ft.jvp(loss_and_extra, (w, x), (w, x), has_aux=True)  # mistake: and with it three
ft.jacfwd(loss, modus="fwd")(w, x)  # mistake: no such option
ft.jacobian(loss, mode="forward")(w, x)  # mistake: no such mode
ft.hessian(loss)(w, y=x)  # mistake: no such argument
ft.vmap(loss, in_axes="0")(w, x)  # mistake: axes are numbers
step(w, "fast")  # mistake: a rate is a number
step(w, 0.1).append(1.0)  # mistake: an array is not a list
ft.jit(loss, backend="gpu")  # mistake: no such back end
layer(w, 3)  # mistake: it has one argument
log1pexp("1.0")  # mistake: not a number
log1pexp.defvjp(lambda z: (z, z), lambda z, g: (g,))  # mistake: that is for custom_vjp
clipped(1.0)  # mistake: the limit is missing
fnp.linspce(0.0, 1.0)  # mistake: misspelled
fnp.ones(3).shap  # mistake: misspelled
