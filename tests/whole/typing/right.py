"""User code without mistakes, as type checkers must see it. It is also run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import functrans as ft
import functrans.numpy as fnp
import functrans.torch as torch

Vector = NDArray[np.float64]


def loss(w: Vector, x: Vector, scale: float = 1.0) -> np.float64:
    return np.float64(scale) * np.sum((x @ w) ** 2)


def loss_and_extra(w: Vector, x: Vector) -> tuple[np.float64, str]:
    return loss(w, x), "extra"


w, x = np.ones(2), np.ones((3, 2))

# One gradient, or a tuple of them, with an extra result or without.
gradient = ft.grad(loss)(w, x, scale=2.0)
print(gradient.shape)
for each in ft.grad(loss, argnums=(0, 1))(w, x):
    print(each.shape)
gradient, extra = ft.grad(loss_and_extra, has_aux=True)(w, x)
(first, second), extra = ft.grad(loss_and_extra, (0, 1), has_aux=True)(w, x)
value, gradient = ft.value_and_grad(loss)(w, x)
assert_type(value, np.float64)
(value, text), gradients = ft.value_and_grad(loss_and_extra, (0, 1), has_aux=True)(w, x)
assert_type(text, str)
first, second = gradients


def chosen(has_aux: bool) -> Any:
    return ft.grad(loss_and_extra if has_aux else loss, has_aux=has_aux)


# Lambdas and NumPy's functions.
print(ft.grad(lambda z: z**2)(3.0), ft.grad(np.sin)(1.0), ft.vmap(np.dot)(x, x))
print(ft.jit(np.tanh)(w), ft.jit(lambda z: z + 1)(w), ft.grad(ft.grad(np.tanh))(1.0))

print(
    ft.jit(np.sum)(x),  # overloaded
    ft.grad(np.sum)(w),
    ft.jit(np.linalg.norm)(x),
    ft.jacrev(np.cumsum)(w),
)
unknown: Any = np.tanh
print(ft.jit(unknown)(w), ft.jacrev(unknown)(w), ft.grad(unknown)(1.0), ft.checkpoint(unknown)(w))
print(ft.custom_jvp(np.sin).defjvp, ft.profile(np.sin)(w).seconds)

# Jacobians.
print(
    ft.jacfwd(loss)(w, x),
    ft.jacrev(loss, argnums=(0, 1))(w, x),
    ft.jacobian(loss, mode="rev")(w, x),
)
jacobian, extra = ft.jacrev(loss_and_extra, has_aux=True)(w, x)
((_, _), (_, _)) = ft.hessian(loss, argnums=(0, 1))(w, x)
print(ft.hessian(loss)(w, x).shape)

# Products with Jacobians.
out, pullback = ft.vjp(loss, w, x)
assert_type(out, np.float64)
first, second = pullback(out)
out, pullback, extra = ft.vjp(loss_and_extra, w, x, has_aux=True)
out, tangent = ft.jvp(loss, (w, x), (w, x))
out, tangent, extra = ft.jvp(loss_and_extra, (w, x), (w, x), has_aux=True)
out, linear = ft.linearize(loss, w, x)
print(linear(w, x))

# Batches.
print(ft.vmap(loss, in_axes=(None, 0))(w, x).shape, ft.vmap(ft.grad(loss), in_axes=[None, 0])(w, x))


# The signature stays the same.
@ft.jit
def step(w: Vector, rate: float) -> Vector:
    return w - rate * w


assert_type(step(w, rate=0.1), Vector)
print(step.trace(w, 0.1).code)


@ft.jit(static_argnums=1)
def power(w: Vector, n: int) -> Vector:
    return w**n


assert_type(power(w, 2), Vector)


@ft.checkpoint
def layer(w: Vector) -> Vector:
    return np.sin(w)


@ft.checkpoint(policy=ft.checkpoint_policies.save_matmuls)
def matmuls(w: Vector) -> Vector:
    return x @ w


assert_type(layer(w), Vector)
assert_type(matmuls(w), Vector)


@ft.custom_jvp
def log1pexp(z: float) -> float:
    return float(np.log1p(np.exp(z)))


@log1pexp.defjvp
def log1pexp_jvp(primals: Any, tangents: Any) -> Any:
    return log1pexp(*primals), tangents[0]


@ft.custom_vjp(nondiff_argnums=1)
def clipped(z: float, limit: float) -> float:
    return z


clipped.defvjp(lambda z, limit: (z, limit), lambda limit, residual, g: (g,))
assert_type(log1pexp(1.0), float)
assert_type(clipped(1.0, limit=2.0), float)


@ft.grad(argnums=1)
def slope(a: float, b: float) -> float:
    return a * b


print(slope(1.0, 2.0))


class Model:
    scale = 2.0

    @ft.jit(static_argnums=0)
    def run(self, w: Vector) -> Vector:
        return self.scale * w

    @ft.checkpoint
    def kept(self, w: Vector) -> Vector:
        return self.scale * w

    @ft.grad(argnums=1)
    def force(self, z: float) -> float:
        return self.scale * z


model = Model()
assert_type(model.run(w), Vector)
assert_type(model.kept(w), Vector)
print(model.force(1.0), ft.make_graph(loss)(w, x).equations, ft.profile(loss)(w, x).seconds)
wrapped: Callable[[Vector, float], Vector] = step

# NumPy's names have NumPy's types.
ones: Vector = fnp.ones(3)
print(fnp.linalg.norm(fnp.zeros((2, 2))), fnp.fft.fft(fnp.arange(4.0)), fnp.vectorize(np.sin)(w))
print(fnp.sum(w) + fnp.pi, fnp.random.default_rng(0).normal())

# PyTorch's names.
t = torch.tensor([1.0, 2.0], requires_grad=True)
(t * t).sum().backward()
print(t.grad, torch.nn.Linear(2, 1)(t), torch.sin(t), torch.float32, torch.linalg.norm(t))
