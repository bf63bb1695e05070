"""RNN, LSTM and GRU, and their cells."""

from __future__ import annotations

import functools
import math
from typing import Any

from functrans.torch import creation
from functrans.torch.errors import TensorError, TensorValueError
from functrans.torch.joining import cat, stack
from functrans.torch.nn import functional as F
from functrans.torch.nn import init
from functrans.torch.nn.modules.module import Module
from functrans.torch.nn.parameter import Parameter, empty_parameter
from functrans.torch.tensor import Tensor

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNCell"]


class _Recurrent(Module):
    """Layers of cells that run along a sequence, in one or both directions."""

    gates = 1
    states = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
    ) -> None:
        super().__init__()
        if proj_size and self.states != 2:
            raise TensorValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if proj_size < 0 or (proj_size and proj_size >= hidden_size):
            raise TensorValueError(
                "proj_size has to be a positive integer, smaller than hidden_size, or zero to disable "
                "projections"
            )
        self.proj_size = proj_size
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, dropout
        self.bidirectional = bidirectional
        bound = 1 / math.sqrt(hidden_size) if hidden_size else 0.0
        rows = self.gates * hidden_size
        for layer in range(num_layers):
            width = input_size if not layer else self._output_size * self._directions
            for suffix in self._suffixes(layer):
                shapes: dict[str, tuple[int, ...]] = {
                    "weight_ih": (rows, width),
                    "weight_hh": (rows, self._output_size),
                }
                if bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                for name, shape in shapes.items():
                    parameter = Parameter(creation.zeros(*shape))
                    init.uniform_(parameter, -bound, bound)
                    setattr(self, name + suffix, parameter)

    @property
    def _output_size(self) -> int:
        return self.proj_size or self.hidden_size

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    def _suffixes(self, layer: int) -> list[str]:
        return [f"_l{layer}", f"_l{layer}_reverse"][: self._directions]

    @property
    def _sizes(self) -> tuple[int, ...]:
        """The sizes of the parts of the state; the first part is the output."""
        return (self._output_size, self.hidden_size)[: self.states]

    @staticmethod
    def _cell(projected: Tensor, state: tuple[Any, ...], recurrent: Any) -> tuple[Any, ...]:
        """The next state; its first part is the output."""
        raise NotImplementedError

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        if input.dim() not in (2, 3):
            raise TensorValueError(
                f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.dim()}D instead"
            )
        if input.shape[-1] != self.input_size:
            raise TensorError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got "
                f"{input.shape[-1]}"
            )
        single = input.dim() == 2
        x = input.unsqueeze(1) if single else input.transpose(0, 1) if self.batch_first else input
        total = self.num_layers * self._directions
        if hx is None:
            starts: tuple[Any, ...] = tuple(
                creation.zeros(total, x.shape[1], size, dtype=input.dtype) for size in self._sizes
            )
        else:
            starts = hx if isinstance(hx, tuple) else (hx,)
            starts = tuple(s.unsqueeze(1) if single else s for s in starts)
            for k, (start, size) in enumerate(zip(starts, self._sizes, strict=True)):
                if tuple(start.shape) != (total, x.shape[1], size):
                    which = f"hidden[{k}]" if self.states > 1 else "hidden"
                    raise TensorError(
                        f"Expected {which} size {(total, x.shape[1], size)}, got {list(start.shape)}"
                    )
        ends: list[tuple[Any, ...]] = []
        for layer in range(self.num_layers):
            outputs = []
            for direction, suffix in enumerate(self._suffixes(layer)):
                place = layer * self._directions + direction
                state = tuple(s[place] for s in starts)
                sequence, state = self._run(x, state, suffix, backward=bool(direction))
                outputs.append(sequence)
                ends.append(state)
            x = outputs[0] if len(outputs) == 1 else cat(outputs, -1)
            if self.dropout and layer + 1 < self.num_layers:
                x = F.dropout(x, self.dropout, self.training)
        finals: Any = tuple(stack(list(parts)) for parts in zip(*ends, strict=True))
        if single:
            x, finals = x.squeeze(1), tuple(f.squeeze(1) for f in finals)
        elif self.batch_first:
            x = x.transpose(0, 1)
        return x, finals if self.states > 1 else finals[0]

    def _run(self, x: Tensor, state: Any, suffix: str, backward: bool) -> tuple[Tensor, Any]:
        weight, recurrent = getattr(self, "weight_ih" + suffix), getattr(self, "weight_hh" + suffix)
        bias = getattr(self, "bias_ih" + suffix) if self.bias else None
        recurrent_bias = getattr(self, "bias_hh" + suffix) if self.bias else None
        projected = F.linear(x, weight, bias).unbind(0)
        turned = recurrent.T
        steps = range(len(projected))
        outputs: list[Any] = [None] * len(projected)

        def hidden(h: Tensor) -> Tensor:
            out = h @ turned
            return out if recurrent_bias is None else out + recurrent_bias  # type: ignore[no-any-return]

        for t in reversed(steps) if backward else steps:
            state = self._cell(projected[t], state, hidden)
            if self.proj_size:
                shorter = F.linear(state[0], getattr(self, "weight_hr" + suffix))
                state = (shorter, *state[1:])
            outputs[t] = state[0]
        return stack(outputs), state

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        text += f", proj_size={self.proj_size}" if self.proj_size else ""
        text += f", num_layers={self.num_layers}" if self.num_layers != 1 else ""
        text += f", batch_first={self.batch_first}" if self.batch_first else ""
        text += f", dropout={self.dropout}" if self.dropout else ""
        return text + (f", bidirectional={self.bidirectional}" if self.bidirectional else "")


def _rnn(projected: Tensor, state: tuple[Any, ...], recurrent: Any, relu: bool) -> Any:
    total = projected + recurrent(state[0])
    return (F.relu(total) if relu else F.tanh(total),)


def _lstm(projected: Tensor, state: tuple[Any, ...], recurrent: Any) -> tuple[Any, ...]:
    hidden, memory = state
    i, f, g, o = (projected + recurrent(hidden)).chunk(4, -1)
    memory = F.sigmoid(f) * memory + F.sigmoid(i) * F.tanh(g)
    return F.sigmoid(o) * F.tanh(memory), memory


def _gru(projected: Tensor, state: tuple[Any, ...], recurrent: Any) -> tuple[Any, ...]:
    (hidden,) = state
    x_r, x_z, x_n = projected.chunk(3, -1)
    h_r, h_z, h_n = recurrent(hidden).chunk(3, -1)
    z = F.sigmoid(x_z + h_z)
    n = F.tanh(x_n + F.sigmoid(x_r + h_r) * h_n)
    return ((1 - z) * n + z * hidden,)


def _check_nonlinearity(name: str) -> None:
    if name not in ("tanh", "relu"):
        raise TensorValueError(f"Unknown nonlinearity '{name}'. Select from 'tanh' or 'relu'.")


class RNN(_Recurrent):
    """A recurrent network: h' = tanh(W x + b + U h + c), or relu in place of tanh.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> outputs, hidden = torch.nn.RNN(3, 4)(torch.ones(5, 2, 3))
    >>> outputs.shape, hidden.shape
    (torch.Size([5, 2, 4]), torch.Size([1, 2, 4]))
    """

    def __init__(self, *args: Any, nonlinearity: str = "tanh", **options: Any) -> None:
        super().__init__(*args, **options)
        _check_nonlinearity(nonlinearity)
        self.nonlinearity = nonlinearity

    def _cell(self, projected: Tensor, state: tuple[Any, ...], recurrent: Any) -> Any:  # type: ignore[override]
        return _rnn(projected, state, recurrent, self.nonlinearity == "relu")


class LSTM(_Recurrent):
    """A recurrent network with memory, and input, forget and output gates (Hochreiter and Schmidhuber 1997).

    Examples
    --------
    >>> import functrans.torch as torch
    >>> outputs, (hidden, memory) = torch.nn.LSTM(3, 4)(torch.ones(5, 2, 3))
    >>> outputs.shape, memory.shape
    (torch.Size([5, 2, 4]), torch.Size([1, 2, 4]))
    """

    gates = 4
    states = 2
    _cell = staticmethod(_lstm)


class GRU(_Recurrent):
    """A recurrent network with a reset and an update gate (Cho et al. 2014).

    Examples
    --------
    >>> import functrans.torch as torch
    >>> outputs, hidden = torch.nn.GRU(3, 4, batch_first=True)(torch.ones(2, 5, 3))
    >>> outputs.shape, hidden.shape
    (torch.Size([2, 5, 4]), torch.Size([1, 2, 4]))
    """

    gates = 3
    _cell = staticmethod(_gru)


class _Cell(Module):
    """One step of a recurrent layer."""

    gates = 1
    states = 1

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        super().__init__()
        self.input_size, self.hidden_size = input_size, hidden_size
        rows = self.gates * hidden_size
        self.weight_ih = empty_parameter(rows, input_size)
        self.weight_hh = empty_parameter(rows, hidden_size)
        self.register_parameter("bias_ih", empty_parameter(rows) if bias else None)
        self.register_parameter("bias_hh", empty_parameter(rows) if bias else None)
        bound = 1 / math.sqrt(hidden_size) if hidden_size else 0.0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    @staticmethod
    def _cell(projected: Tensor, state: tuple[Any, ...], recurrent: Any) -> tuple[Any, ...]:
        raise NotImplementedError

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        if input.shape[-1] != self.input_size:
            raise TensorError(
                f"input has inconsistent input_size: got {input.shape[-1]} expected {self.input_size}"
            )
        if hx is None:
            zeros = creation.zeros(*input.shape[:-1], self.hidden_size, dtype=input.dtype)
            hx = (zeros,) * self.states
        projected = F.linear(input, self.weight_ih, self.bias_ih)
        state = hx if isinstance(hx, tuple) else (hx,)
        recurrent = functools.partial(F.linear, weight=self.weight_hh, bias=self.bias_hh)
        out = self._cell(projected, state, recurrent)
        return out if self.states > 1 else out[0]

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        return text if self.bias_ih is not None else f"{text}, bias=False"


class RNNCell(_Cell):
    """One step of `RNN`.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.RNNCell(3, 4)(torch.ones(2, 3), torch.zeros(2, 4)).shape
    torch.Size([2, 4])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh"
    ) -> None:
        super().__init__(input_size, hidden_size, bias)
        _check_nonlinearity(nonlinearity)
        self.nonlinearity = nonlinearity

    def _cell(self, projected: Tensor, state: tuple[Any, ...], recurrent: Any) -> Any:  # type: ignore[override]
        return _rnn(projected, state, recurrent, self.nonlinearity == "relu")

    def extra_repr(self) -> str:
        text = super().extra_repr()
        return text if self.nonlinearity == "tanh" else f"{text}, nonlinearity={self.nonlinearity}"


class LSTMCell(_Cell):
    """One step of `LSTM`: the next hidden state and memory.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> hidden, memory = torch.nn.LSTMCell(3, 4)(torch.ones(2, 3))
    >>> hidden.shape, memory.shape
    (torch.Size([2, 4]), torch.Size([2, 4]))
    """

    gates = 4
    states = 2
    _cell = staticmethod(_lstm)


class GRUCell(_Cell):
    """One step of `GRU`.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.GRUCell(3, 4)(torch.ones(2, 3), torch.zeros(2, 4)).shape
    torch.Size([2, 4])
    """

    gates = 3
    _cell = staticmethod(_gru)
