"""Multi-head attention and transformer layers."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from functrans.torch import creation, dtypes
from functrans.torch.errors import OptionAssertionError, TensorError
from functrans.torch.nn import functional as F
from functrans.torch.nn import init
from functrans.torch.nn.modules.containers import ModuleList
from functrans.torch.nn.modules.layers import Dropout, LayerNorm, Linear
from functrans.torch.nn.modules.module import Module
from functrans.torch.nn.parameter import Parameter
from functrans.torch.tensor import Tensor


def _blocking(mask: Any) -> Any:
    """A mask in which True forbids, as numbers to add to scores."""
    if mask is None or mask.dtype is not dtypes.bool_:
        return mask
    return creation.zeros(*mask.shape).masked_fill(mask, float("-inf"))


class MultiheadAttention(Module):
    """Several attentions side by side.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> out, weights = torch.nn.MultiheadAttention(4, 2)(*[torch.ones(3, 1, 4)] * 3)
    >>> out.shape, weights.shape
    (torch.Size([3, 1, 4]), torch.Size([1, 3, 3]))
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        batch_first: bool = False,
    ) -> None:
        super().__init__()
        if embed_dim % num_heads:
            raise OptionAssertionError("embed_dim must be divisible by num_heads")
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.batch_first, self.head_dim = batch_first, embed_dim // num_heads
        self.in_proj_weight = Parameter(creation.zeros(3 * embed_dim, embed_dim))
        init.xavier_uniform_(self.in_proj_weight)
        self.in_proj_bias = Parameter(creation.zeros(3 * embed_dim)) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias)
        if self.out_proj.bias is not None:
            init.zeros_(self.out_proj.bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        single = query.dim() == 2
        if single:
            query, key, value = (x.unsqueeze(1) for x in (query, key, value))
        elif self.batch_first:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        weights = self.in_proj_weight.chunk(3)
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        q, k, v = (
            self._heads(F.linear(x, w, b))
            for x, w, b in zip((query, key, value), weights, biases, strict=True)
        )
        mask = _blocking(attn_mask)
        if mask is not None and mask.dim() == 3:
            mask = mask.reshape(-1, self.num_heads, *mask.shape[1:])
        if key_padding_mask is not None:
            padding = _blocking(key_padding_mask).reshape(-1, 1, 1, key.shape[0])
            mask = padding if mask is None else mask + padding
        causal = is_causal and attn_mask is None
        attention = F.attention_weights(q, k, mask, causal, None)
        looked = F.dropout(attention, self.dropout, self.training) @ v
        batch, _, length, _ = looked.shape
        joined = looked.permute(2, 0, 1, 3).reshape(length, batch, self.embed_dim)
        out = self.out_proj(joined)
        shown: Any = None
        if need_weights:
            shown = attention.mean(1) if average_attn_weights else attention
            shown = shown.squeeze(0) if single else shown
        if single:
            return out.squeeze(1), shown
        return (out.transpose(0, 1) if self.batch_first else out), shown

    def _heads(self, x: Tensor) -> Tensor:
        """(length, batch, width) as (batch, heads, length, width of a head)."""
        length, batch, _ = x.shape
        return x.reshape(length, batch, self.num_heads, self.head_dim).permute(1, 2, 0, 3)  # type: ignore[no-any-return]


class TransformerEncoderLayer(Module):
    """Self-attention and two linear layers, each with a residual connection and a norm."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first)
        self.linear1 = Linear(d_model, dim_feedforward, bias)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias)
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)
        known = {"relu": F.relu, "gelu": F.gelu}
        if isinstance(activation, str) and activation not in known:
            raise TensorError(f"activation should be relu/gelu, not {activation}")
        self.activation = known[activation] if isinstance(activation, str) else activation

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        masks = (src_mask, src_key_padding_mask, is_causal)
        if self.norm_first:
            x = src + self._attend(self.norm1(src), *masks)
            return x + self._feed(self.norm2(x))  # type: ignore[no-any-return]
        x = self.norm1(src + self._attend(src, *masks))
        return self.norm2(x + self._feed(x))  # type: ignore[no-any-return]

    def _attend(self, x: Tensor, mask: Any, padding: Any, is_causal: bool) -> Any:
        out, _ = self.self_attn(
            x,
            x,
            x,
            key_padding_mask=padding,
            need_weights=False,
            attn_mask=mask,
            is_causal=is_causal,
        )
        return self.dropout1(out)

    def _feed(self, x: Tensor) -> Any:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoder(Module):
    """Copies of an encoder layer, one after the other."""

    def __init__(self, encoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, is_causal)
        return src if self.norm is None else self.norm(src)
