"""The same programs and stacks in JAX and PyTorch, if they are installed and can express them.

A peer takes a stack, and returns a function of a name and its arguments. `NotExpressibleError` stands for any
error that a library raises for code that was not written for it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np

from tools.fuzz.nests import mapped
from tools.fuzz.numeric import WithoutRules
from tools.fuzz.programs.stack import Stack


class NotExpressibleError(Exception):
    """The other library cannot run the program."""


Answer = Callable[[str, Any], Any]


def _answer(space: dict[str, Any], convert: Callable[[Any], Any]) -> Answer:
    def answer(name: str, args: Any) -> Any:
        try:
            return mapped(np.asarray, space[name](*mapped(convert, args)))
        except Exception as error:
            raise NotExpressibleError(str(error)) from error

    return answer


def in_jax(stack: Stack) -> Answer:
    """A stack in JAX, in double precision."""
    import jax

    def convert(leaf: Any) -> Any:
        return jax.numpy.asarray(leaf) if isinstance(leaf, (np.ndarray, np.generic)) else leaf

    def hvp(f: Any, primals: Any, tangents: Any) -> Any:
        argnums = 0 if len(primals) == 1 else tuple(range(len(primals)))
        return jax.jvp(jax.grad(f, argnums), primals, tangents)[1]

    lax = jax.lax
    library = SimpleNamespace(
        **{name: getattr(jax, name) for name in ("grad", "value_and_grad", "jvp", "vjp", "vmap")},
        **{name: getattr(jax, name) for name in ("jacfwd", "jacrev", "hessian", "linearize")},
        **{name: getattr(lax, name) for name in ("cond", "switch", "scan", "while_loop")},
        fori_loop=lax.fori_loop,
        checkpoint=jax.checkpoint,
        jit=lambda f, backend: jax.jit(f),
        hvp=hvp,
        custom_jvp=WithoutRules,
        custom_vjp=WithoutRules,
    )

    def answer(name: str, args: Any) -> Any:
        with jax.enable_x64(True):
            try:
                space = stack.space(jax.numpy, library, convert=convert)
            except Exception as error:
                raise NotExpressibleError(str(error)) from error
            return _answer(space, convert)(name, args)

    return answer


def forget() -> None:
    """Free the code that JAX has compiled; it would keep about 10 MB per case."""
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()


def in_torch(stack: Stack) -> Answer:
    """A stack in torch.func, with the few NumPy functions that have an equivalent there."""
    import torch

    def convert(leaf: Any) -> Any:
        if isinstance(leaf, (np.ndarray, np.generic)):
            return torch.tensor(np.asarray(leaf))
        return torch.tensor(leaf, dtype=torch.float64) if isinstance(leaf, float) else leaf

    func = torch.func

    def vmap(f: Any, in_axes: Any, out_axes: int) -> Any:
        # Without out_dims: torch gives other shapes for unmapped results if the axis is not the first.
        lanes = func.vmap(f, in_axes)
        return lambda *args: mapped(lambda leaf: leaf.movedim(0, out_axes), lanes(*args))

    library = SimpleNamespace(
        **{name: getattr(func, name) for name in ("grad", "jvp", "vjp", "jacfwd", "jacrev")},
        hessian=func.hessian,  # no linearize: the vjp of one with a matmul returns uninitialized memory
        value_and_grad=lambda f, argnums: (
            lambda *args: func.grad_and_value(f, argnums)(*args)[::-1]
        ),
        vmap=vmap,
        hvp=lambda f, primals, tangents: func.jvp(
            func.grad(f, 0 if len(primals) == 1 else tuple(range(len(primals)))), primals, tangents
        )[1],
        checkpoint=lambda f: f,
        jit=lambda f, backend: f,
        custom_jvp=WithoutRules,
        custom_vjp=WithoutRules,
    )
    try:
        space = stack.space(_torch_numpy(), library, convert=convert)
    except Exception as error:
        raise NotExpressibleError(str(error)) from error
    return _answer(space, convert)


def _torch_numpy() -> Any:
    """The functions of `np` that random programs use, in torch; others cannot be expressed."""
    import torch

    def reduced(function: Any) -> Any:
        def reduce(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
            return function(a) if axis is None else function(a, dim=axis, keepdim=keepdims)

        return reduce

    def of_numbers(function: Any) -> Any:
        """A function of two tensors, one of which may be a number."""

        def call(a: Any, b: Any) -> Any:
            a, b = (torch.as_tensor(x, dtype=torch.float64) for x in (a, b))
            return function(a, b)

        return call

    same = (
        "sin cos tan tanh exp exp2 expm1 log log2 log10 log1p sqrt square sinh cosh arctan arcsin"
    )
    same += (
        " arccos arcsinh arccosh arctanh reciprocal abs sign floor matmul tril triu diagonal trace"
    )
    same += " where broadcast_to ravel squeeze outer flip moveaxis real imag conj deg2rad diag"
    pairs = "maximum minimum fmax arctan2 hypot logaddexp copysign divide"
    names = {name: getattr(torch, name) for name in same.split()}
    names |= {name: of_numbers(getattr(torch, name)) for name in pairs.split()}
    return SimpleNamespace(
        **names,
        pi=np.pi,
        power=torch.pow,
        mod=torch.remainder,
        swapaxes=torch.swapaxes,
        expand_dims=torch.unsqueeze,
        transpose=lambda a, axes: a.permute(axes),
        clip=lambda a, low, high: torch.clamp(a, low, high),
        roll=lambda a, shift, axis: torch.roll(a, shift, axis),
        take=lambda a, index, axis: torch.index_select(a, axis, torch.tensor(index)),
        concatenate=lambda parts, axis=0: torch.concatenate(parts, axis),
        stack=lambda parts, axis=0: torch.stack(list(parts), axis),
        dot=lambda a, b: a @ b,
        sum=reduced(torch.sum),
        mean=reduced(torch.mean),
        prod=reduced(torch.prod),
        max=reduced(torch.amax),
        min=reduced(torch.amin),
        var=lambda a, axis, keepdims: torch.var(a, axis, correction=0, keepdim=keepdims),
        std=lambda a, axis, keepdims: torch.std(a, axis, correction=0, keepdim=keepdims),
        cumsum=lambda a, axis: torch.cumsum(a, axis),
        cumprod=lambda a, axis: torch.cumprod(a, axis),
        eye=lambda n: torch.eye(n, dtype=torch.float64),
        linalg=torch.linalg,
    )


PEERS: dict[str, Callable[[Stack], Answer]] = {
    name: peer
    for name, peer in {"jax": in_jax, "torch": in_torch}.items()
    if (spec := find_spec(name)) is not None
    and spec.origin is not None  # a package, not just a folder
}
