"""The contestants: functrans on each of its paths, its peers, NumPy by hand, finite differences.

A contestant makes thunks. `native` brings NumPy data into its library, which is not timed; `xp` is its
array namespace, and `loop(step, state, xs)` the way it goes along an axis. `thunk` decides how a
function of arrays is run: as it is, or compiled. What is computed belongs in the problems.
"""

from __future__ import annotations

import importlib
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from benchmarks.threads import threads_in_use
from benchmarks.timing import Thunk

Function = Callable[..., Any]


def leaves(value: Any) -> list[Any]:
    """The arrays in nested lists and tuples, in order."""
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in leaves(item)]
    return [value]


def map_leaves(function: Function, value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(map_leaves(function, item) for item in value)
    return function(value)


def as_arrays(answer: Any) -> list[Any]:
    """An answer of any contestant as NumPy arrays."""
    return [
        np.asarray(leaf.detach() if hasattr(leaf, "detach") else leaf) for leaf in leaves(answer)
    ]


def agree(expected: list[Any], answer: list[Any], tolerance: float = 1e-8) -> bool:
    """Whether two answers are equal up to rounding, on the scale of each array's largest entry."""
    if [part.shape for part in expected] != [part.shape for part in answer]:
        return False
    for one, other in zip(expected, answer, strict=True):
        scale = float(np.max(np.abs(one), initial=0.0))
        if not np.allclose(one, other, rtol=tolerance, atol=tolerance * max(scale, 1e-2)):
            return False
    return True


def plain_loop(step: Function, state: Any, xs: Iterable[Any]) -> Any:
    for x in xs:
        state = step(state, x)
    return state


def one_hot_rows(shape: tuple[int, int]) -> list[Any]:
    """For every row of an array of this shape, ones in that row and zeros elsewhere."""
    seeds = np.zeros((shape[0], *shape))
    for k, seed in enumerate(seeds):
        seed[k] = 1.0
    return list(seeds)


class Contestant:
    name: str  # its key in `CONTESTANTS`
    xp: Any = np
    loop = staticmethod(plain_loop)
    unrolls = False  # whether loops and recursion become code to compile

    def native(self, value: Any) -> Any:
        return value

    def thunk(self, function: Function, *arguments: Any) -> Thunk:
        return lambda: function(*arguments)

    def value(self, f: Function, x: Any, *data: Any) -> Thunk:
        return self.thunk(f, x, *data)

    def evaluations(self, kind: str, x: Any) -> int:
        """How many times a derivative evaluates the function, where that is known to be many."""
        return 0


class Functrans(Contestant):
    name = "functrans"

    def __init__(self) -> None:
        import functrans

        self.library = functrans

    def gradient(self, f: Function, x: Any, *data: Any) -> Thunk:
        return self.thunk(self.library.grad(f), x, *data)

    def per_example(self, f: Function, params: Any, inputs: Any, targets: Any) -> Thunk:
        gradients = self.library.vmap(self.library.grad(f), in_axes=(None, 0, 0))
        return self.thunk(gradients, params, inputs, targets)

    def hvp(self, f: Function, x: Any, v: Any) -> Thunk:
        return self.thunk(lambda x, v: self.library.hvp(f, (x,), (v,)), x, v)

    def hessian(self, f: Function, x: Any) -> Thunk:
        return self.thunk(self.library.hessian(f), x)

    def jacobian_reverse(self, f: Function, x: Any) -> Thunk:
        return self.thunk(self.library.jacrev(f), x)

    def jacobian_forward(self, f: Function, x: Any) -> Thunk:
        return self.thunk(self.library.jacfwd(f), x)

    def newton_direction(self, f: Function, x: Any, *data: Any) -> Thunk:
        """gradient / diagonal of the Hessian, for a Hessian that is diagonal: H 1 is its diagonal."""

        def direction(x: Any, *data: Any) -> Any:
            gradient = self.library.grad(lambda x: f(x, *data))
            slope, curvature = self.library.jvp(gradient, (x,), (self.xp.ones_like(x),))
            return slope / curvature

        return self.thunk(direction, x, *data)

    def row_jacobian(self, f: Function, x: Any, *data: Any) -> Thunk:
        """For f whose column k depends on row k of its arguments only: one pullback for each row of f."""

        def jacobian(x: Any, *data: Any) -> Any:
            out, pull = self.library.vjp(lambda x: f(x, *data), x)
            return [pull(self.native(seed))[0] for seed in one_hot_rows(out.shape)]

        return self.thunk(jacobian, x, *data)


class Compiled(Functrans):
    """functrans.jit, with one of its backends."""

    unrolls = True

    def __init__(self, backend: str) -> None:
        super().__init__()
        self.backend = backend
        self.name = f"functrans-{backend}"

    def loop(self, step: Function, state: Any, xs: Any) -> Any:  # type: ignore[override]
        return self.library.scan(lambda state, x: (step(state, x), None), state, xs)[0]

    def thunk(self, function: Function, *arguments: Any) -> Thunk:
        compiled = self.library.jit(function, backend=self.backend)
        return lambda: compiled(*arguments)


class Autograd(Contestant):
    name = "autograd"

    def __init__(self) -> None:
        import autograd
        import autograd.numpy

        self.library = autograd
        self.xp = autograd.numpy

    def gradient(self, f: Function, x: Any, *data: Any) -> Thunk:
        return self.thunk(self.library.grad(f), x, *data)

    def per_example(self, f: Function, params: Any, inputs: Any, targets: Any) -> Thunk:
        gradient = self.library.grad(f)

        def loop() -> Any:
            gradients = [gradient(params, *pair) for pair in zip(inputs, targets, strict=True)]
            return [
                tuple(np.stack(part) for part in zip(*layer, strict=True))
                for layer in zip(*gradients, strict=True)
            ]

        return loop

    def hvp(self, f: Function, x: Any, v: Any) -> Thunk:
        return self.thunk(self.library.hessian_vector_product(f), x, v)

    def hessian(self, f: Function, x: Any) -> Thunk:
        return self.thunk(self.library.hessian(f), x)

    def jacobian_reverse(self, f: Function, x: Any) -> Thunk:
        return self.thunk(self.library.jacobian(f), x)

    def jacobian_forward(self, f: Function, x: Any) -> Thunk:
        jvp = self.library.make_jvp(f)
        basis = np.eye(x.size)
        return lambda: np.stack([jvp(x)(direction)[1] for direction in basis], axis=1)

    def newton_direction(self, f: Function, x: Any, *data: Any) -> Thunk:
        gradient = self.library.grad(f)

        def direction() -> Any:
            pull, slope = self.library.make_vjp(gradient, 0)(x, *data)
            return slope / pull(np.ones_like(x))

        return direction

    def row_jacobian(self, f: Function, x: Any, *data: Any) -> Thunk:
        def jacobian() -> Any:
            pull, out = self.library.make_vjp(f, 0)(x, *data)
            return [pull(seed) for seed in one_hot_rows(out.shape)]

        return jacobian


class Torch(Contestant):
    """The code that both contestants from torch share."""

    def __init__(self) -> None:
        import torch

        torch.set_num_threads(threads_in_use())
        self.library: Any = torch
        self.xp = torch

    def native(self, value: Any) -> Any:
        return map_leaves(lambda leaf: self.library.tensor(np.asarray(leaf)), value)


class TorchBackward(Torch):
    """torch's engine in C++, and torch.autograd.functional on top of it."""

    name = "torch-backward"

    def _tracked(self, x: Any) -> list[Any]:
        tracked = leaves(x)
        for leaf in tracked:
            leaf.requires_grad_()
        return tracked

    def gradient(self, f: Function, x: Any, *data: Any) -> Thunk:
        tracked = self._tracked(x)

        def backward() -> Any:
            for leaf in tracked:
                leaf.grad = None
            f(x, *data).backward()
            return [leaf.grad for leaf in tracked]

        return backward

    def per_example(self, f: Function, params: Any, inputs: Any, targets: Any) -> Thunk:
        pairs = list(zip(inputs, targets, strict=True))
        tracked = self._tracked(params)

        def loop() -> Any:
            gradients = []
            for pair in pairs:
                for leaf in tracked:
                    leaf.grad = None
                f(params, *pair).backward()
                gradients.append([leaf.grad for leaf in tracked])
            return [self.library.stack(part) for part in zip(*gradients, strict=True)]

        return loop

    def hvp(self, f: Function, x: Any, v: Any) -> Thunk:
        x.requires_grad_()
        grad = self.library.autograd.grad

        def double_backward() -> Any:
            (gradient,) = grad(f(x), x, create_graph=True)
            return grad(gradient, x, v)

        return double_backward

    def hessian(self, f: Function, x: Any) -> Thunk:
        return lambda: self.library.autograd.functional.hessian(f, x, vectorize=True)

    def jacobian_reverse(self, f: Function, x: Any) -> Thunk:
        return lambda: self.library.autograd.functional.jacobian(f, x, vectorize=True)

    def jacobian_forward(self, f: Function, x: Any) -> Thunk:
        return lambda: self.library.autograd.functional.jacobian(
            f, x, vectorize=True, strategy="forward-mode"
        )

    def newton_direction(self, f: Function, x: Any, *data: Any) -> Thunk:
        x.requires_grad_()
        grad = self.library.autograd.grad

        def direction() -> Any:
            (slope,) = grad(f(x, *data), x, create_graph=True)
            (curvature,) = grad(slope.sum(), x)
            return slope.detach() / curvature

        return direction

    def row_jacobian(self, f: Function, x: Any, *data: Any) -> Thunk:
        tracked = self._tracked(x)
        grad = self.library.autograd.grad

        def jacobian() -> Any:
            out = f(x, *data)
            seeds = map(self.native, one_hot_rows(tuple(out.shape)))
            return [grad(out, tracked, seed, retain_graph=True) for seed in seeds]

        return jacobian


class FunctransTensor(TorchBackward):
    """functrans.torch, with the same calls."""

    name = "functrans-tensor"

    def __init__(self) -> None:
        self.library = self.xp = importlib.import_module("functrans.torch")


class TorchFunc(Torch):
    name = "torch-func"

    def gradient(self, f: Function, x: Any, *data: Any) -> Thunk:
        return self.thunk(self.library.func.grad(f), x, *data)

    def per_example(self, f: Function, params: Any, inputs: Any, targets: Any) -> Thunk:
        func = self.library.func
        return self.thunk(func.vmap(func.grad(f), in_dims=(None, 0, 0)), params, inputs, targets)

    def hvp(self, f: Function, x: Any, v: Any) -> Thunk:
        gradient = self.library.func.grad(f)
        return lambda: self.library.func.jvp(gradient, (x,), (v,))[1]

    def hessian(self, f: Function, x: Any) -> Thunk:
        return self.thunk(self.library.func.hessian(f), x)

    def jacobian_reverse(self, f: Function, x: Any) -> Thunk:
        return self.thunk(self.library.func.jacrev(f), x)

    def jacobian_forward(self, f: Function, x: Any) -> Thunk:
        return self.thunk(self.library.func.jacfwd(f), x)

    def newton_direction(self, f: Function, x: Any, *data: Any) -> Thunk:
        gradient = self.library.func.grad(lambda x: f(x, *data))
        ones = self.library.ones_like(x)

        def direction() -> Any:
            slope, curvature = self.library.func.jvp(gradient, (x,), (ones,))
            return slope / curvature

        return direction

    def row_jacobian(self, f: Function, x: Any, *data: Any) -> Thunk:
        def jacobian() -> Any:
            out, pull = self.library.func.vjp(lambda x: f(x, *data), x)
            return [pull(self.native(seed))[0] for seed in one_hot_rows(tuple(out.shape))]

        return jacobian


class Jax(Functrans):
    """The names are those of functrans; every call waits for its results."""

    name = "jax"

    def __init__(self) -> None:
        import jax
        import jax.numpy

        self.library = jax
        self.xp = jax.numpy

    def native(self, value: Any) -> Any:
        return map_leaves(self.xp.asarray, value)

    def loop(self, step: Function, state: Any, xs: Any) -> Any:  # type: ignore[override]
        return self.library.lax.scan(lambda state, x: (step(state, x), None), state, xs)[0]

    def thunk(self, function: Function, *arguments: Any) -> Thunk:
        wait = self.library.block_until_ready
        return lambda: wait(function(*arguments))

    def hvp(self, f: Function, x: Any, v: Any) -> Thunk:
        product = lambda x, v: self.library.jvp(self.library.grad(f), (x,), (v,))[1]
        return self.thunk(product, x, v)


class JaxCompiled(Jax):
    name = "jax-jit"
    unrolls = True

    def thunk(self, function: Function, *arguments: Any) -> Thunk:
        return super().thunk(self.library.jit(function), *arguments)


class ByHand(Contestant):
    """NumPy without any library; takes part if a problem has a derivative by hand."""

    name = "numpy"


class Differences(Contestant):
    """Central differences, one coordinate at a time: the derivative that needs no library."""

    name = "differences"
    step = 1e-5

    def evaluations(self, kind: str, x: Any) -> int:
        if kind == "row_jacobian":
            return 2 * sum(int(np.prod(leaf.shape[1:])) for leaf in leaves(x))
        return 2 * sum(np.size(leaf) for leaf in leaves(x))

    def gradient(self, f: Function, x: Any, *data: Any) -> Thunk:
        def differences() -> Any:
            point = map_leaves(np.array, x)
            slopes = []
            for leaf in leaves(point):
                slope = np.empty(leaf.shape)
                for index in np.ndindex(leaf.shape):
                    below, above = self._around(f, point, data, leaf, index, self.step)
                    slope[index] = (above - below) / (2 * self.step)
                slopes.append(slope)
            return slopes

        return differences

    def newton_direction(self, f: Function, x: Any, *data: Any) -> Thunk:
        step = 1e-6  # small, so that hardly any nearest centroid changes within it

        def direction() -> Any:
            point, middle = np.array(x), f(x, *data)
            found = np.empty(x.shape)
            for index in np.ndindex(x.shape):
                below, above = self._around(f, point, data, point, index, step)
                found[index] = step * (above - below) / 2 / (above - 2 * middle + below)
            return found

        return direction

    def row_jacobian(self, f: Function, x: Any, *data: Any) -> Thunk:
        """All rows move together, so there is one difference for each column of the arguments."""

        def jacobian() -> Any:
            point = map_leaves(np.array, x)
            slopes = [np.empty((2, *leaf.shape)) for leaf in leaves(point)]
            for leaf, slope in zip(leaves(point), slopes, strict=True):
                for column in np.ndindex(leaf.shape[1:]):
                    where = (slice(None), *column)
                    below, above = self._around(f, point, data, leaf, where, self.step)
                    slope[:, *where] = (above - below) / (2 * self.step)
            return [[slope[k] for slope in slopes] for k in range(2)]

        return jacobian

    @staticmethod
    def _around(f: Function, x: Any, data: Any, leaf: Any, index: Any, step: float) -> Any:
        """f below and above, where `leaf`, a part of x, is moved at `index`."""
        before = np.array(leaf[index])
        leaf[index] = before - step
        below = f(x, *data)
        leaf[index] = before + step
        above = f(x, *data)
        leaf[index] = before
        return below, above


class Entry(NamedTuple):
    title: str
    package: str  # that it needs
    make: Callable[[], Contestant]


# In the order in which answers are compared: the first is the reference.
CONTESTANTS: dict[str, Entry] = {
    "numpy": Entry("NumPy by hand", "numpy", ByHand),
    "autograd": Entry("HIPS autograd", "autograd", Autograd),
    "jax": Entry("JAX eager", "jax", Jax),
    "jax-jit": Entry("JAX jit", "jax", JaxCompiled),
    "torch-backward": Entry("torch backward", "torch", TorchBackward),
    "torch-func": Entry("torch.func", "torch", TorchFunc),
    "functrans": Entry("functrans eager", "functrans", Functrans),
    "functrans-native": Entry("functrans jit native", "llvmlite", partial(Compiled, "native")),
    "functrans-numpy": Entry("functrans jit numpy", "functrans", partial(Compiled, "numpy")),
    "functrans-tensor": Entry("functrans Tensor", "functrans", FunctransTensor),
    "differences": Entry("finite differences", "numpy", Differences),
}
PEERS = ("autograd", "jax", "torch")


def available(peers: Sequence[str]) -> list[str]:
    """All contestants that are installed, with only these peers."""
    return [
        name
        for name, entry in CONTESTANTS.items()
        if (entry.package not in PEERS or entry.package in peers) and find_spec(entry.package)
    ]


def parse_peers(text: str) -> list[str]:
    """The value of --peers: all, none, or names joined by commas."""
    if text in ("all", "none"):
        return list(PEERS) if text == "all" else []
    peers = text.split(",")
    for peer in peers:
        if peer not in PEERS:
            raise ArgumentTypeError(f"unknown peer {peer!r}; choose from {', '.join(PEERS)}")
    return peers
