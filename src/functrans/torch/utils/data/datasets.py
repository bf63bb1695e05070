"""Datasets: examples by index, or as a stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from functrans.torch.errors import OptionAssertionError, TensorIndexError, TensorValueError
from functrans.torch.random import Generator, randperm
from functrans.torch.tensor import Tensor


class Dataset:
    """The base class of datasets with an index: subclass it, and define `__getitem__` and `__len__`.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> class Squares(torch.utils.data.Dataset):
    ...     def __getitem__(self, index):
    ...         return index**2
    ...
    ...     def __len__(self):
    ...         return 3
    >>> next(iter(torch.utils.data.DataLoader(Squares(), batch_size=3)))
    tensor([0, 1, 4])
    """

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __len__(self) -> int:
        raise NotImplementedError("Subclasses of Dataset should implement __len__.")

    def __add__(self, other: Dataset) -> ConcatDataset:
        return ConcatDataset([self, other])


class TensorDataset(Dataset):
    """A dataset of tensors whose first dimension is that of the examples.

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
        return len(self.tensors[0])


class Subset(Dataset):
    """A subset of a dataset, given by indices.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> list(torch.utils.data.Subset(["a", "b", "c"], [2, 0]))
    ['c', 'a']
    """

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> Any:
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


class ConcatDataset(Dataset):
    """A concatenation of datasets.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.utils.data.ConcatDataset([["a"], ["b", "c"]])[2]
    'c'
    """

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
    """Split a dataset randomly into parts of the given lengths or fractions.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> [len(part) for part in torch.utils.data.random_split(range(10), [0.7, 0.3])]
    [7, 3]
    """
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


class IterableDataset:
    """The base class of datasets that are streams: subclass it, and define `__iter__`.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> class Count(torch.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(3))
    >>> list(torch.utils.data.DataLoader(Count(), batch_size=2))
    [tensor([0, 1]), tensor([2])]
    """

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")
