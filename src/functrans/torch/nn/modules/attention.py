"""Multi-head attention and transformer layers."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from functrans.torch import creation, dtypes
from functrans.torch.errors import OptionAssertionError, TensorError
from functrans.torch.joining import cat
from functrans.torch.nn import functional as F
from functrans.torch.nn import init
from functrans.torch.nn.modules.containers import ModuleList
from functrans.torch.nn.modules.layers import Dropout, Linear
from functrans.torch.nn.modules.module import Module
from functrans.torch.nn.modules.normalization import LayerNorm
from functrans.torch.nn.parameter import empty_parameter
from functrans.torch.tensor import Tensor

__all__ = [
    "MultiheadAttention",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]


def _blocking(mask: Any) -> Any:
    """A boolean mask, in which True blocks an entry, as numbers to add to scores."""
    if mask is None or mask.dtype is not dtypes.bool_:
        return mask
    return creation.zeros(*mask.shape).masked_fill(mask, float("-inf"))


class NonDynamicallyQuantizableLinear(Linear):
    """The output layer of attention, with the class name that PyTorch prints.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.MultiheadAttention(4, 2).out_proj
    NonDynamicallyQuantizableLinear(in_features=4, out_features=4, bias=True)
    """


class MultiheadAttention(Module):
    """Multi-head attention.

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
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
    ) -> None:
        super().__init__()
        if embed_dim % num_heads:
            raise OptionAssertionError("embed_dim must be divisible by num_heads")
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.batch_first, self.head_dim = batch_first, embed_dim // num_heads
        self.add_zero_attn = add_zero_attn
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        # One matrix for all three projections, if their inputs have the same size.
        joint = self.kdim == self.vdim == embed_dim
        shapes = {
            "q_proj_weight": (embed_dim, embed_dim),
            "k_proj_weight": (embed_dim, self.kdim),
            "v_proj_weight": (embed_dim, self.vdim),
            "in_proj_weight": (3 * embed_dim, embed_dim),
        }
        for name, shape in shapes.items():
            wanted = joint == (name == "in_proj_weight")
            self.register_parameter(name, empty_parameter(*shape) if wanted else None)
            if wanted:
                init.xavier_uniform_(getattr(self, name))
        self.register_parameter("in_proj_bias", empty_parameter(3 * embed_dim) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias)
        if self.out_proj.bias is not None:
            init.zeros_(self.out_proj.bias)
        for name in ("bias_k", "bias_v"):
            self.register_parameter(name, empty_parameter(1, 1, embed_dim) if add_bias_kv else None)
            if add_bias_kv:
                init.xavier_normal_(getattr(self, name))

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
        if self.in_proj_weight is not None:
            weights: Any = self.in_proj_weight.chunk(3)
        else:
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        q, k, v = (
            F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True)
        )
        mask = _blocking(attn_mask)
        if mask is not None and mask.dim() == 3:
            mask = mask.reshape(-1, self.num_heads, *mask.shape[1:])
        if key_padding_mask is not None:
            padding = _blocking(key_padding_mask).reshape(-1, 1, 1, key.shape[0])
            mask = padding if mask is None else mask + padding
        k, v, more = self._extended(k, v)
        if mask is not None and more:  # the added entries are not masked
            mask = F.pad(mask, (0, more))
        q, k, v = map(self._heads, (q, k, v))
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

    def _extended(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, int]:
        """Append a learned and a zero key and value, as the options say; returns how many were added."""
        shape = (1, k.shape[1], self.embed_dim)
        more = []
        if self.bias_k is not None:
            more.append((self.bias_k.expand(*shape), self.bias_v.expand(*shape)))
        if self.add_zero_attn:
            zeros = creation.zeros(*shape, dtype=k.dtype)
            more.append((zeros, zeros))
        if more:
            keys, values = zip(*more, strict=True)
            k, v = cat([k, *keys]), cat([v, *values])
        return k, v, len(more)

    def _heads(self, x: Tensor) -> Tensor:
        """Reshape (length, batch, width) to (batch, heads, length, width of a head)."""
        length, batch, _ = x.shape
        return x.reshape(length, batch, self.num_heads, self.head_dim).permute(1, 2, 0, 3)  # type: ignore[no-any-return]


def _activation(given: str | Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    known = {"relu": F.relu, "gelu": F.gelu}
    if isinstance(given, str) and given not in known:
        raise TensorError(f"activation should be relu/gelu, not {given}")
    return known[given] if isinstance(given, str) else given


class TransformerEncoderLayer(Module):
    """Self-attention and two linear layers, each part with a residual connection and a norm.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> layer = torch.nn.TransformerEncoderLayer(8, nhead=2, dim_feedforward=16)
    >>> layer(torch.ones(5, 3, 8)).shape
    torch.Size([5, 3, 8])
    """

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
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first)
        self.linear1 = Linear(d_model, dim_feedforward, bias)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias)
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)
        self.activation = _activation(activation)

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
        return self.dropout1(_attended(self.self_attn, x, x, mask, padding, is_causal))

    def _feed(self, x: Tensor) -> Any:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoder(Module):
    """A stack of copies of an encoder layer.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> layer = torch.nn.TransformerEncoderLayer(8, nhead=2, dim_feedforward=16)
    >>> torch.nn.TransformerEncoder(layer, num_layers=2)(torch.ones(5, 3, 8)).shape
    torch.Size([5, 3, 8])
    """

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


class TransformerDecoderLayer(Module):
    """Self-attention, attention to the output of an encoder, and two linear layers.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> layer = torch.nn.TransformerDecoderLayer(8, nhead=2, dim_feedforward=16)
    >>> layer(torch.ones(4, 3, 8), torch.ones(5, 3, 8)).shape
    torch.Size([4, 3, 8])
    """

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
        options: Any = {"batch_first": batch_first}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, **options)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, bias, **options)
        self.linear1 = Linear(d_model, dim_feedforward, bias)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias)
        self.norm_first = norm_first
        for k in (1, 2, 3):
            setattr(self, f"norm{k}", LayerNorm(d_model, layer_norm_eps, bias=bias))
        for k in (1, 2, 3):
            setattr(self, f"dropout{k}", Dropout(dropout))
        self.activation = _activation(activation)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        def to_itself(x: Tensor) -> Any:
            masks = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
            return self.dropout1(_attended(self.self_attn, x, x, *masks))

        def to_memory(x: Tensor) -> Any:
            masks = (memory_mask, memory_key_padding_mask, memory_is_causal)
            return self.dropout2(_attended(self.multihead_attn, x, memory, *masks))

        def feed(x: Tensor) -> Any:
            return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))

        x = tgt
        for norm, part in zip(
            (self.norm1, self.norm2, self.norm3), (to_itself, to_memory, feed), strict=True
        ):
            x = x + part(norm(x)) if self.norm_first else norm(x + part(x))
        return x


def _attended(
    attention: Module, x: Tensor, memory: Tensor, mask: Any, padding: Any, is_causal: bool
) -> Any:
    out, _ = attention(
        x,
        memory,
        memory,
        key_padding_mask=padding,
        need_weights=False,
        attn_mask=mask,
        is_causal=is_causal,
    )
    return out


class TransformerDecoder(Module):
    """A stack of copies of a decoder layer.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> layer = torch.nn.TransformerDecoderLayer(8, nhead=2, dim_feedforward=16)
    >>> decoder = torch.nn.TransformerDecoder(layer, num_layers=2)
    >>> decoder(torch.ones(4, 3, 8), torch.ones(5, 3, 8)).shape
    torch.Size([4, 3, 8])
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(decoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def forward(self, tgt: Tensor, memory: Tensor, *masks: Any, **named_masks: Any) -> Tensor:
        for layer in self.layers:
            tgt = layer(tgt, memory, *masks, **named_masks)
        return tgt if self.norm is None else self.norm(tgt)
