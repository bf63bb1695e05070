"""DataLoader: batches of a dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from functrans.core.dispatch import is_plain
from functrans.torch import dtypes
from functrans.torch.creation import as_tensor, tensor
from functrans.torch.errors import TensorError, TensorValueError
from functrans.torch.joining import stack
from functrans.torch.random import Generator
from functrans.torch.tensor import Tensor
from functrans.torch.utils.data.datasets import IterableDataset
from functrans.torch.utils.data.samplers import BatchSampler, RandomSampler, SequentialSampler


def default_collate(batch: list[Any]) -> Any:
    """Collate examples into a batch: tensors are stacked, and numbers become tensors.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.utils.data.default_collate([{"a": 1}, {"a": 2}])
    {'a': tensor([1, 2])}
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return stack(batch)
    if is_plain(first, (np.ndarray, np.generic)):
        return stack([as_tensor(each) for each in batch])
    if isinstance(first, dict):
        return {key: default_collate([each[key] for each in batch]) for key in first}
    if isinstance(first, tuple) and hasattr(first, "_fields"):  # a named tuple
        return type(first)(*(default_collate(list(parts)) for parts in zip(*batch, strict=True)))
    if isinstance(first, (tuple, list)):
        if any(len(each) != len(first) for each in batch):
            raise TensorError("each element in list of batch should be of equal size")
        return [default_collate(list(parts)) for parts in zip(*batch, strict=True)]
    if isinstance(first, float):
        return tensor(batch, dtype=dtypes.float64)
    return tensor(batch) if isinstance(first, int) else batch


class DataLoader:
    """Iterates over a dataset in batches, in order or shuffled.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> data = torch.utils.data.TensorDataset(torch.arange(3))
    >>> [batch for (batch,) in torch.utils.data.DataLoader(data, batch_size=2)]
    [tensor([0, 1]), tensor([2])]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
    ) -> None:
        if sampler is not None and shuffle:
            raise TensorValueError("sampler option is mutually exclusive with shuffle")
        self.streams = isinstance(dataset, IterableDataset)
        if self.streams and (shuffle or sampler is not None or batch_sampler is not None):
            raise TensorValueError(
                "DataLoader with IterableDataset: expected unspecified shuffle and samplers"
            )
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler or drop_last):
            raise TensorValueError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and "
                "drop_last"
            )
        self.dataset, self.drop_last, self.generator = dataset, drop_last, generator
        self.num_workers, self.pin_memory = num_workers, pin_memory
        if sampler is None and not self.streams:
            sampler = (
                RandomSampler(dataset, generator=generator)
                if shuffle
                else SequentialSampler(dataset)
            )
        self.sampler = dataset if self.streams else sampler
        self.batch_size = batch_size if batch_sampler is None else None
        if batch_sampler is None and batch_size is not None:
            batch_sampler = BatchSampler(self.sampler, batch_size, drop_last)
        self.batch_sampler = batch_sampler
        self.collate_fn = collate_fn or (
            default_collate if batch_sampler is not None else _as_it_is
        )

    def _example(self, index: Any) -> Any:
        return index if self.streams else self.dataset[index]

    def __iter__(self) -> Iterator[Any]:
        if self.batch_sampler is None:
            for index in self.sampler:
                yield self.collate_fn(self._example(index))
            return
        for batch in self.batch_sampler:
            yield self.collate_fn([self._example(index) for index in batch])

    def __len__(self) -> int:
        return len(self.sampler if self.batch_sampler is None else self.batch_sampler)


def _as_it_is(example: Any) -> Any:
    """Convert a single example: arrays become tensors, everything else is unchanged."""
    return as_tensor(example) if is_plain(example, (np.ndarray, np.generic)) else example
