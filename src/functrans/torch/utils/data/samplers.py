"""Samplers: the order in which the examples of a dataset are taken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from functrans.torch.creation import tensor
from functrans.torch.errors import TensorValueError
from functrans.torch.random import Generator, multinomial, randint, randperm


class Sampler:
    """The base class of samplers, which yield indices: subclass it, and define `__iter__`.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> class Backward(torch.utils.data.Sampler):
    ...     def __iter__(self):
    ...         return iter([2, 1, 0])
    >>> list(torch.utils.data.DataLoader("abc", sampler=Backward(), batch_size=None))
    ['c', 'b', 'a']
    """

    def __init__(self, data_source: Any = None) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError


class SequentialSampler(Sampler):
    """Yields all indices in order.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> list(torch.utils.data.SequentialSampler("abc"))
    [0, 1, 2]
    """

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """Yields indices in random order, or sampled with replacement.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> sorted(torch.utils.data.RandomSampler("abc"))
    [0, 1, 2]
    """

    def __init__(
        self,
        data_source: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        super().__init__(data_source)
        self.replacement, self.generator = replacement, generator
        self.num_samples = len(data_source) if num_samples is None else num_samples
        if self.num_samples <= 0:
            raise TensorValueError(
                "num_samples should be a positive integer value, but got "
                f"num_samples={self.num_samples}"
            )

    def __iter__(self) -> Iterator[int]:
        total, left = len(self.data_source), self.num_samples
        if self.replacement:
            yield from randint(total, (left,), generator=self.generator).tolist()
            return
        while left > 0:
            order = randperm(total, generator=self.generator).tolist()[:left]
            left -= len(order)
            yield from order

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """Yields the given indices in random order.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> sorted(torch.utils.data.SubsetRandomSampler([4, 2]))
    [2, 4]
    """

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        super().__init__()
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        order = randperm(len(self.indices), generator=self.generator).tolist()
        return (self.indices[k] for k in order)

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """Yields indices sampled at random with the given weights.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> list(torch.utils.data.WeightedRandomSampler([0.0, 1.0], 3))
    [1, 1, 1]
    """

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        self.weights = tensor([float(w) for w in weights])
        self.num_samples, self.replacement = num_samples, replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        options = {"generator": self.generator}
        drawn = multinomial(self.weights, self.num_samples, self.replacement, **options)
        return iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
    """Groups the indices of a sampler into batches.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> list(torch.utils.data.BatchSampler(range(5), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        super().__init__()
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise TensorValueError(
                f"batch_size should be a positive integer value, but got batch_size={batch_size}"
            )
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[Any]]:
        batch: list[Any] = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        total = len(self.sampler)  # type: ignore[arg-type]
        return total // self.batch_size if self.drop_last else -(-total // self.batch_size)
