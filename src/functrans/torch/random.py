"""Random tensors: generators, seeds and distributions. The numbers are NumPy's, not PyTorch's."""

from __future__ import annotations

import secrets
import threading
from typing import Any

import numpy as np

from functrans.core.dispatch import running_interpreters
from functrans.core.draws import note_draw, time_now
from functrans.interpreters.batch import Batch, BatchTracer
from functrans.torch import dtypes, views
from functrans.torch.creation import chosen_dtype, finished, lengths
from functrans.torch.errors import TensorError
from functrans.torch.registry import export
from functrans.torch.tape import MODE
from functrans.torch.tensor import Tensor, make

__all__ = ["Generator", "manual_seed"]


@export("Generator", method=False)
class Generator:
    """A random number generator with its own state.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> first = torch.rand(3, generator=torch.Generator().manual_seed(0))
    >>> second = torch.rand(3, generator=torch.Generator().manual_seed(0))
    >>> torch.equal(first, second)
    True
    """

    def __init__(self, device: Any = "cpu") -> None:
        self.manual_seed(67280421310721)

    def manual_seed(self, seed: int) -> Generator:
        """Set the seed.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.Generator().manual_seed(3).initial_seed()
        3
        """
        self._seed = int(seed)
        self.source = np.random.default_rng(self._seed % (1 << 64))
        self.seeded = time_now()
        return self

    def seed(self) -> int:
        """Set a random seed, and return it.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.Generator().seed() > 0
        True
        """
        self.manual_seed(secrets.randbits(63))
        self.seeded = 0  # with a number that differs each time
        return self._seed

    def initial_seed(self) -> int:
        """The initial seed of the generator.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.Generator().manual_seed(3).initial_seed()
        3
        """
        return self._seed

    def get_state(self) -> Any:
        """The current state, for `set_state`.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.Generator().get_state() is not None
        True
        """
        return self.source.bit_generator.state

    def set_state(self, state: Any) -> None:
        """Restore a state.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> generator = torch.Generator()
        >>> generator.set_state(torch.Generator().get_state())
        """
        self.source.bit_generator.state = state


default_generator = Generator()
default_generator.seed()


@export(method=False)
def manual_seed(seed: int) -> Generator:
    """Seed the default generator.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> _ = torch.manual_seed(0)
    >>> first = torch.rand(2)
    >>> _ = torch.manual_seed(0)
    >>> torch.equal(first, torch.rand(2))
    True
    """
    return default_generator.manual_seed(seed)


export("seed", method=False)(default_generator.seed)
export("initial_seed", method=False)(default_generator.initial_seed)
export("get_rng_state", method=False)(default_generator.get_state)
export("set_rng_state", method=False)(default_generator.set_state)


def source(generator: Generator | None) -> np.random.Generator:
    """The NumPy generator of a generator, or of the default one, to draw from."""
    chosen = default_generator if generator is None else generator
    note_draw("functrans.torch's generator", chosen.seeded)
    return chosen.source


def _sampler(name: str, draw: Any) -> Any:
    def function(
        *size: Any,
        dtype: Any = None,
        generator: Generator | None = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> Tensor:
        wanted = chosen_dtype(dtype, dtypes.default.numpy)
        values = sample(draw, lengths(size, name), generator).astype(wanted)
        return finished(values, requires_grad, device)

    def like(input: Tensor, *, dtype: Any = None, generator: Any = None, **options: Any) -> Tensor:
        values = sample(draw, tuple(input.value.shape), generator)
        return finished(values.astype(chosen_dtype(dtype, input.value.dtype)), **options)

    function.__name__, like.__name__ = name, f"{name}_like"
    export(method=False)(function)
    export(method=False)(like)
    return function


rand = _sampler("rand", lambda rng, shape: rng.random(shape))
randn = _sampler("randn", lambda rng, shape: rng.standard_normal(shape))


@export(method=False)
def randint(
    low: int,
    high: Any = None,
    size: Any = None,
    *,
    generator: Any = None,
    dtype: Any = None,
    **options: Any,
) -> Tensor:
    """Random integers from low (0 by default) up to, but not including, high.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.randint(3, 4, (2,))
    tensor([3, 3])
    """
    if size is None:
        low, high, size = 0, low, high
    if low >= high:
        raise TensorError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )
    values = np.asarray(source(generator).integers(low, high, lengths((size,), "randint")))
    return finished(values.astype(chosen_dtype(dtype, dtypes.int64.numpy)), **options)


@export(method=False)
def randint_like(input: Tensor, low: int, high: Any = None, **options: Any) -> Tensor:
    """Random integers with the shape and dtype of a tensor.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.randint_like(torch.zeros(2), 1, 2)
    tensor([1., 1.])
    """
    low, high = (0, low) if high is None else (low, high)
    options.setdefault("dtype", input.dtype)
    return randint(low, high, tuple(input.shape), **options)


@export(method=False)
def randperm(n: int, *, generator: Any = None, dtype: Any = None, **options: Any) -> Tensor:
    """A random permutation of the numbers from 0 to n - 1.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> sorted(torch.randperm(4).tolist())
    [0, 1, 2, 3]
    """
    values = source(generator).permutation(n).astype(chosen_dtype(dtype, dtypes.int64.numpy))
    return finished(values, **options)


@export(method=False)
def normal(
    mean: Any, std: Any = 1.0, size: Any = None, *, generator: Any = None, **options: Any
) -> Tensor:
    """Normal random numbers with the given means and standard deviations.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.normal(2.0, 0.0, size=(2,))
    tensor([2., 2.])
    """
    if size is not None:
        return randn(*size, generator=generator, **options) * std + mean  # type: ignore[no-any-return]
    like = mean if isinstance(mean, Tensor) else std
    shape = np.broadcast_shapes(np.shape(_value(mean)), np.shape(_value(std)))
    noise = randn(*shape, generator=generator, dtype=like.dtype)
    return noise * _detached(std) + _detached(mean)  # type: ignore[no-any-return]


def _value(x: Any) -> Any:
    return x.value if isinstance(x, Tensor) else x


def _detached(x: Any) -> Any:
    return x.detach() if isinstance(x, Tensor) else x


@export()
def bernoulli(input: Tensor, *, generator: Any = None) -> Tensor:
    """Zeros and ones, where the input is the probability of a one.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.bernoulli(torch.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """
    drawn = source(generator).random(input.value.shape) < input.value
    return make(np.asarray(drawn).astype(input.value.dtype)[()])


@export()
def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None
) -> Tensor:
    """Indices sampled from the probabilities in each row.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.multinomial(torch.tensor([0.0, 1.0]), 1)
    tensor([1])
    """
    weights = np.asarray(input.detach().value, np.float64)
    rows = weights.reshape(-1, weights.shape[-1])
    rng = source(generator)
    drawn = [
        rng.choice(len(row), num_samples, replace=replacement, p=row / row.sum()) for row in rows
    ]
    return make(np.stack(drawn).reshape((*weights.shape[:-1], num_samples)))


def _filling(name: str, draw: Any) -> None:
    def method(self: Tensor, *parameters: Any, generator: Any = None, **named: Any) -> Tensor:
        views.check_in_place(self)
        array = views.memory(self)
        array[...] = draw(source(generator), array.shape, *parameters, **named)
        tracked = self.record is not None and MODE.enabled
        views.written(self, None)
        if tracked:
            self.mul_(0).add_(make(array.copy()))
        return self

    method.__name__ = name
    export(name, function=False)(method)


_filling("normal_", lambda rng, shape, mean=0.0, std=1.0: rng.normal(mean, std, shape))
_filling(
    "uniform_",
    lambda rng, shape, from_=0.0, to=1.0, **named: _uniform(rng, shape, from_, to, named),
)
_filling("bernoulli_", lambda rng, shape, p=0.5: rng.random(shape) < p)
_filling("exponential_", lambda rng, shape, lambd=1.0: rng.exponential(1 / lambd, shape))
_filling("random_", lambda rng, shape, *bounds: rng.integers(*_bounds(*bounds), shape))


def _bounds(low: int | None = None, high: int | None = None) -> tuple[int, int]:
    """The range from 0 to the bound, if one is given, or between two bounds."""
    if high is None:
        return 0, 1 << 24 if low is None else low
    return low or 0, high


def _uniform(rng: Any, shape: Any, low: float, high: float, named: dict[str, Any]) -> Any:
    low, high = named.get("a", named.get("from", low)), named.get("b", high)  # `from` is a keyword
    return rng.uniform(low, high, shape)


# Inside vmap: whether all lanes draw the same numbers, different ones, or none are allowed.


class _LanePolicy(threading.local):
    policy: str = "same"


lanes = _LanePolicy()


def sample(draw: Any, shape: tuple[int, ...], generator: Generator | None = None) -> Any:
    """Draw numbers with draw(rng, shape), for each lane separately if a running vmap wants them to differ."""
    batches = [each for each in running_interpreters() if isinstance(each, Batch)]
    if not batches or lanes.policy == "same":
        return np.asarray(draw(source(generator), shape))
    if lanes.policy == "error":
        raise TensorError(
            "vmap: called random operation while in randomness error mode. Please either use the "
            "'same' or 'different' randomness flags on vmap or perform the randomness operation out "
            "of vmap"
        )
    batch = batches[-1]
    return BatchTracer(batch, np.asarray(draw(source(generator), (batch.size, *shape))))


def keep_mask(shape: tuple[int, ...], keep: float, dtype: Any) -> Any:
    """A mask of ones, with probability `keep`, and zeros."""
    return sample(lambda rng, size: (rng.random(size) < keep).astype(dtype), shape)
