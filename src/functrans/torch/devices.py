"""Size and device: the shape of a tensor, and its device, which is always the CPU."""

from __future__ import annotations

from typing import Any

from functrans.torch.errors import DeviceError, TensorError


class Size(tuple[int, ...]):
    """The shape of a tensor.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.ones(2, 3).shape
    torch.Size([2, 3])
    """

    def numel(self) -> int:
        """The number of entries of a tensor of this shape.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.ones(2, 3).shape.numel()
        6
        """
        total = 1
        for length in self:
            total *= length
        return total

    def __add__(self, other: Any) -> Size:
        return Size(super().__add__(tuple(other)))

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return Size(found) if isinstance(index, slice) else found

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"


class device:
    """The device of a tensor: always the CPU.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.device("cpu")
    device(type='cpu')
    """

    type = "cpu"
    index = None

    def __init__(self, type: Any = "cpu", index: int | None = None) -> None:
        check_device(type)

    def __repr__(self) -> str:
        return "device(type='cpu')"

    def __str__(self) -> str:
        return "cpu"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device)

    def __hash__(self) -> int:
        return hash("cpu")


def check_device(given: Any) -> None:
    """Refuse devices other than the CPU."""
    if given is None or isinstance(given, device):
        return
    name = given.partition(":")[0] if isinstance(given, str) else given
    if name == "cpu":
        return
    if name in ("cuda", "mps", "xpu"):
        raise DeviceError(
            f"there is no device {given!r}: functrans computes with NumPy, on the CPU. Leave device "
            'out, or write device="cpu".'
        )
    raise TensorError(f"Expected one of cpu device type at start of device string: {given}")
