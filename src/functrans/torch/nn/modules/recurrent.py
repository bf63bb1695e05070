"""RNN, LSTM and GRU."""

from __future__ import annotations

import math
from typing import Any

from functrans.torch import creation
from functrans.torch.errors import TensorError, TensorValueError
from functrans.torch.nn import functional as F
from functrans.torch.nn import init
from functrans.torch.nn.modules.module import Module
from functrans.torch.nn.parameter import Parameter
from functrans.torch.shaping import cat, stack
from functrans.torch.tensor import Tensor


class _Recurrent(Module):
    """Layers of cells that go along a sequence, in one or both directions."""

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
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, dropout
        self.bidirectional = bidirectional
        bound = 1 / math.sqrt(hidden_size) if hidden_size else 0.0
        rows = self.gates * hidden_size
        for layer in range(num_layers):
            width = input_size if not layer else hidden_size * self._directions
            for suffix in self._suffixes(layer):
                shapes: dict[str, tuple[int, ...]] = {
                    "weight_ih": (rows, width),
                    "weight_hh": (rows, hidden_size),
                }
                if bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
                for name, shape in shapes.items():
                    parameter = Parameter(creation.zeros(*shape))
                    init.uniform_(parameter, -bound, bound)
                    setattr(self, name + suffix, parameter)

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    def _suffixes(self, layer: int) -> list[str]:
        return [f"_l{layer}", f"_l{layer}_reverse"][: self._directions]

    def cell(self, projected: Tensor, state: tuple[Any, ...], recurrent: Any) -> tuple[Any, ...]:
        """The next state, of which the first part is the output."""
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
            zeros = creation.zeros(total, x.shape[1], self.hidden_size, dtype=input.dtype)
            starts: tuple[Any, ...] = (zeros,) * self.states
        else:
            starts = hx if isinstance(hx, tuple) else (hx,)
            starts = tuple(s.unsqueeze(1) if single else s for s in starts)
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
            state = self.cell(projected[t], state, hidden)
            outputs[t] = state[0]
        return stack(outputs), state

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        text += f", num_layers={self.num_layers}" if self.num_layers != 1 else ""
        text += f", batch_first={self.batch_first}" if self.batch_first else ""
        text += f", dropout={self.dropout}" if self.dropout else ""
        return text + (f", bidirectional={self.bidirectional}" if self.bidirectional else "")


class RNN(_Recurrent):
    """h' = tanh(W x + b + U h + c), or relu."""

    def __init__(self, *args: Any, nonlinearity: str = "tanh", **options: Any) -> None:
        super().__init__(*args, **options)
        if nonlinearity not in ("tanh", "relu"):
            raise TensorValueError(
                f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        self.nonlinearity = nonlinearity

    def cell(self, projected: Tensor, state: tuple[Any, ...], recurrent: Any) -> tuple[Any, ...]:
        total = projected + recurrent(state[0])
        return (F.tanh(total) if self.nonlinearity == "tanh" else F.relu(total),)


class LSTM(_Recurrent):
    """Cells with a memory: input, forget and output gates."""

    gates = 4
    states = 2

    def cell(self, projected: Tensor, state: tuple[Any, ...], recurrent: Any) -> tuple[Any, ...]:
        hidden, memory = state
        i, f, g, o = (projected + recurrent(hidden)).chunk(4, -1)
        memory = F.sigmoid(f) * memory + F.sigmoid(i) * F.tanh(g)
        return F.sigmoid(o) * F.tanh(memory), memory


class GRU(_Recurrent):
    """Cells with a reset and an update gate."""

    gates = 3

    def cell(self, projected: Tensor, state: tuple[Any, ...], recurrent: Any) -> tuple[Any, ...]:
        (hidden,) = state
        x_r, x_z, x_n = projected.chunk(3, -1)
        h_r, h_z, h_n = recurrent(hidden).chunk(3, -1)
        z = F.sigmoid(x_z + h_z)
        n = F.tanh(x_n + F.sigmoid(x_r + h_r) * h_n)
        return ((1 - z) * n + z * hidden,)
