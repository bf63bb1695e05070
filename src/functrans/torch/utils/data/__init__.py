"""torch.utils.data: examples, and batches of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from functrans.torch.creation import as_tensor, tensor
from functrans.torch.errors import OptionAssertionError, TensorIndexError, TensorValueError
from functrans.torch.random import Generator, randperm
from functrans.torch.shaping import stack
from functrans.torch.tensor import Tensor


class Dataset:
    """Examples by number: subclass it, and write `__getitem__` and `__len__`."""

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __len__(self) -> int:
        raise NotImplementedError("Subclasses of Dataset should implement __len__.")

    def __add__(self, other: Dataset) -> ConcatDataset:
        return ConcatDataset([self, other])


class TensorDataset(Dataset):
    """Tensors whose first dimension counts examples.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.utils.data.TensorDataset(torch.arange(3), torch.arange(3) ** 2)[2]
    (tensor(2), tensor(4))
    """

    def __init__(self, *tensors: Tensor) -> None:
        if any(each.shape[0] != tensors[0].shape[0] for each in tensors):
            raise OptionAssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(each[index] for each in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].shape[0]


class Subset(Dataset):
    """Some examples of a dataset."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> Any:
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


class ConcatDataset(Dataset):
    """Datasets one after the other."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)

    def __getitem__(self, index: Any) -> Any:
        index = range(len(self))[index]
        for dataset in self.datasets:
            if index < len(dataset):
                return dataset[index]
            index -= len(dataset)
        raise TensorIndexError(index)

    def __len__(self) -> int:
        return sum(map(len, self.datasets))


def random_split(
    dataset: Any, lengths: Sequence[Any], generator: Generator | None = None
) -> list[Subset]:
    """Parts of a dataset at random, of these lengths or fractions."""
    total = len(dataset)
    if np.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        sizes = [int(total * fraction) for fraction in lengths]
        for k in range(total - sum(sizes)):
            sizes[k % len(sizes)] += 1
    else:
        sizes = list(lengths)
    if sum(sizes) != total:
        raise TensorValueError(
            "Sum of input lengths does not equal the length of the input dataset!"
        )
    order = randperm(total, generator=generator).tolist()
    ends = np.cumsum(sizes).tolist()
    return [Subset(dataset, order[end - size : end]) for size, end in zip(sizes, ends, strict=True)]


def default_collate(batch: list[Any]) -> Any:
    """Examples as one batch: tensors are stacked, numbers become tensors."""
    first = batch[0]
    if isinstance(first, Tensor):
        return stack(batch)
    if isinstance(first, np.ndarray):
        return stack([as_tensor(each) for each in batch])
    if isinstance(first, dict):
        return {key: default_collate([each[key] for each in batch]) for key in first}
    if isinstance(first, (tuple, list)):
        return [default_collate(list(parts)) for parts in zip(*batch, strict=True)]
    if isinstance(first, (int, float, np.generic)):
        return tensor(batch)
    return batch


class DataLoader:
    """Batches of a dataset, in order or shuffled.

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
        shuffle: bool = False,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        generator: Generator | None = None,
        **options: Any,
    ) -> None:
        if sampler is not None and shuffle:
            raise TensorValueError("sampler option is mutually exclusive with shuffle")
        self.dataset, self.batch_size, self.shuffle = dataset, batch_size, shuffle
        self.sampler, self.batch_sampler = sampler, batch_sampler
        self.drop_last, self.generator = drop_last, generator
        self.collate_fn = collate_fn or default_collate

    def _order(self) -> Iterable[int]:
        if self.sampler is not None:
            return self.sampler  # type: ignore[no-any-return]
        if self.shuffle:
            return randperm(len(self.dataset), generator=self.generator).tolist()  # type: ignore[no-any-return]
        return range(len(self.dataset))

    def _batches(self) -> Iterator[list[int]]:
        if self.batch_sampler is not None:
            yield from (list(batch) for batch in self.batch_sampler)
            return
        batch: list[int] = []
        for index in self._order():
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __iter__(self) -> Iterator[Any]:
        if self.batch_size is None and self.batch_sampler is None:
            yield from (self.dataset[index] for index in self._order())
            return
        for batch in self._batches():
            yield self.collate_fn([self.dataset[index] for index in batch])

    def __len__(self) -> int:
        if self.batch_sampler is not None:
            return len(self.batch_sampler)
        total = len(self.dataset) if self.sampler is None else len(self.sampler)
        if self.batch_size is None:
            return total
        return total // self.batch_size if self.drop_last else -(-total // self.batch_size)
