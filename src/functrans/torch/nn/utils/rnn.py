"""torch.nn.utils.rnn: sequences of different lengths as one tensor."""

from __future__ import annotations

from collections.abc import Sequence

from functrans.torch.joining import stack
from functrans.torch.nn.resizing import pad
from functrans.torch.tensor import Tensor


def pad_sequence(
    sequences: Sequence[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Stack sequences into one tensor, with the shorter ones padded.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> parts = [torch.tensor([1, 2, 3]), torch.tensor([4])]
    >>> torch.nn.utils.rnn.pad_sequence(parts, batch_first=True)
    tensor([[1, 2, 3],
            [4, 0, 0]])
    """
    longest = max(each.shape[0] for each in sequences)
    rows = []
    for each in sequences:
        missing = longest - each.shape[0]
        ends = (missing, 0) if padding_side == "left" else (0, missing)
        rows.append(pad(each, (0, 0) * (each.dim() - 1) + ends, value=padding_value))
    return stack(rows, 0 if batch_first else 1)


def unpad_sequence(padded: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The reverse of `pad_sequence`.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> padded = torch.tensor([[1, 2], [3, 0]])
    >>> torch.nn.utils.rnn.unpad_sequence(padded, torch.tensor([2, 1]), batch_first=True)
    [tensor([1, 2]), tensor([3])]
    """
    rows = padded if batch_first else padded.transpose(0, 1)
    return [row[:n] for row, n in zip(rows, lengths.tolist(), strict=True)]
