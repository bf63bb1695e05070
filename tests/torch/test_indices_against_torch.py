"""Random indices of all kinds, read and assigned, with functrans.torch and with PyTorch."""

from random import Random

import numpy as np
import pytest

import functrans.torch as ours
from tests.support.torch_peer import pytorch

theirs = pytorch()
pytestmark = pytest.mark.peers

SHAPE = (3, 2, 4)


def entry(choice, length):
    """How one entry of an index is made with either library."""
    number = choice.randrange(-length, length)
    return choice.choice(
        [
            lambda torch: slice(None),
            lambda torch: slice(1, None),
            lambda torch: number,
            lambda torch: None,
            lambda torch: Ellipsis,
            lambda torch: torch.tensor([0, 1]),
            lambda torch: [0, 1],
            lambda torch: torch.tensor([[0], [1]]),
            lambda torch: torch.tensor(1),
            lambda torch: torch.tensor([], dtype=torch.int64),
            lambda torch: True,
            lambda torch: False,
            lambda torch: torch.tensor(True),
            lambda torch: torch.tensor([k % 2 == 0 for k in range(length)]),
            lambda torch: [k == 0 for k in range(length)],
        ]
    )


def outcomes(torch, entries, use):
    """The result of a use of an index, and the gradient of a weighted sum of it; None if it is refused."""
    x = torch.arange(24, dtype=torch.float64).reshape(SHAPE).requires_grad_()
    key = tuple(make(torch) for make in entries)
    key = key[0] if len(key) == 1 else key
    y = x * 1.0
    try:
        part = y[key]
        if use == "read":
            y = part
        elif use == "assign":
            numbers = torch.arange(part.numel(), dtype=torch.float64)
            y[key] = numbers.reshape(part.shape) * y[0, 0, 0]
        else:
            y[key] *= 2.0
    except (IndexError, RuntimeError):
        return None
    weights = torch.arange(y.numel(), dtype=torch.float64).reshape(y.shape)
    (y * weights).sum().backward()
    return [np.reshape(each.tolist(), tuple(each.shape)) for each in (y.detach(), x.grad)]


@pytest.mark.parametrize("seed", range(4))
def test_random_indices(seed):
    choice = Random(seed)
    for _ in range(150):
        count = choice.randrange(1, 5)
        entries = [entry(choice, SHAPE[min(k, 2)]) for k in range(count)]
        shown = [make(theirs) for make in entries]
        if sum(each is Ellipsis for each in shown) > 1:  # which PyTorch takes, and we refuse
            continue
        for use in ("read", "assign", "scale"):
            expected, found = outcomes(theirs, entries, use), outcomes(ours, entries, use)
            assert (found is None) == (expected is None), (shown, use)
            for one, other in zip(found or (), expected or (), strict=True):
                assert one.shape == other.shape, (shown, use)
                np.testing.assert_array_equal(one, other, err_msg=f"{shown} {use}")
