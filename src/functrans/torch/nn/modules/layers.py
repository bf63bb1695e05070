"""Layers: shapes, linear maps, dropout and embeddings."""

from __future__ import annotations

import math
from typing import Any

from functrans.torch.errors import OptionAssertionError, TensorValueError
from functrans.torch.nn import functional as F
from functrans.torch.nn import init
from functrans.torch.nn.functional import linear
from functrans.torch.nn.modules.module import Module
from functrans.torch.nn.parameter import Parameter, empty_parameter
from functrans.torch.random import randn
from functrans.torch.tensor import Tensor

__all__ = [
    "Bilinear",
    "CosineSimilarity",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Embedding",
    "EmbeddingBag",
    "Flatten",
    "Identity",
    "Linear",
    "PairwiseDistance",
    "PixelShuffle",
    "Unflatten",
    "Upsample",
    "ZeroPad2d",
]


class Identity(Module):
    """Returns its input; the arguments of the constructor are ignored.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.Identity()(torch.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Flatten(Module):
    """Merges a range of dimensions into one.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.Flatten()(torch.ones(2, 3, 4)).shape
    torch.Size([2, 12])
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits one dimension into several.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.Unflatten(1, (3, 4))(torch.ones(2, 12)).shape
    torch.Size([2, 3, 4])
    """

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class Linear(Module):
    """The linear map x W^T + b.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.Linear(3, 2)
    Linear(in_features=3, out_features=2, bias=True)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = empty_parameter(out_features, in_features, device=device, dtype=dtype)
        self.bias = empty_parameter(out_features, dtype=dtype) if bias else None
        if not bias:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the parameters again.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.nn.Linear(2, 1).reset_parameters()
        """
        bound = 1 / math.sqrt(self.in_features) if self.in_features else 0.0
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        own = self._parameters  # faster than the lookup in Module.__getattr__
        return linear(input, own["weight"], own["bias"])

    def extra_repr(self) -> str:
        bias = self.bias is not None
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={bias}"


class Bilinear(Module):
    """The bilinear map x1^T A x2 + b.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.Bilinear(2, 3, 4)(torch.ones(5, 2), torch.ones(5, 3)).shape
    torch.Size([5, 4])
    """

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True
    ) -> None:
        super().__init__()
        self.in1_features, self.in2_features = in1_features, in2_features
        self.out_features = out_features
        self.weight = empty_parameter(out_features, in1_features, in2_features)
        self.register_parameter("bias", empty_parameter(out_features) if bias else None)
        bound = 1 / math.sqrt(in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class Dropout(Module):
    """Sets entries to zero with probability p during training.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.Dropout(0.5).eval()(torch.ones(2))
    tensor([1., 1.])
    """

    function: Any = staticmethod(F.dropout)

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise TensorValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p, self.inplace = p, inplace

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(input, self.p, self.training, self.inplace)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout1d(Dropout):
    """Sets whole channels of sequences to zero with probability p during training.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.Dropout1d(0.5).eval()(torch.ones(1, 2, 2)).sum()
    tensor(4.)
    """

    function = staticmethod(F.dropout1d)


class Dropout2d(Dropout):
    """Sets whole channels of images to zero with probability p during training.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.Dropout2d(0.5).eval()(torch.ones(1, 2, 2, 2)).sum()
    tensor(8.)
    """

    function = staticmethod(F.dropout2d)


class Embedding(Module):
    """Looks up vectors by index.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.Embedding(10, 3)(torch.tensor([[1, 2], [4, 5]])).shape
    torch.Size([2, 2, 3])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise OptionAssertionError("Padding_idx must be within num_embeddings")
            padding_idx %= num_embeddings
        self.padding_idx, self.max_norm, self.norm_type = padding_idx, max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        given = _weight
        if given is None:
            given = randn(num_embeddings, embedding_dim, device=device, dtype=dtype)
        if padding_idx is not None and _weight is None:
            given[padding_idx] = 0.0
        self.weight = Parameter(given)

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, **options: Any) -> Embedding:
        """An `Embedding` with the given vectors, which are trained only if `freeze` is False.

        Examples
        --------
        >>> import functrans.torch as torch
        >>> torch.nn.Embedding.from_pretrained(torch.eye(2))(torch.tensor(1))
        tensor([0., 1.])
        """
        count, width = embeddings.shape
        module = cls(count, width, _weight=embeddings, **options)
        module.weight.requires_grad_(not freeze)
        return module

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        text += "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return text if self.max_norm is None else f"{text}, max_norm={self.max_norm}"


class EmbeddingBag(Module):
    """Looks up vectors by index, and sums or averages them.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> bag = torch.nn.EmbeddingBag(10, 3, mode="sum")
    >>> bag(torch.tensor([1, 2, 4, 5]), torch.tensor([0, 3])).shape
    torch.Size([2, 3])
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, mode: str = "mean") -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.mode = num_embeddings, embedding_dim, mode
        self.weight = Parameter(randn(num_embeddings, embedding_dim))

    def forward(self, input: Tensor, offsets: Tensor | None = None) -> Tensor:
        return F.embedding_bag(input, self.weight, offsets, mode=self.mode)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}, mode={self.mode!r}"


class CosineSimilarity(Module):
    """The cosine of the angle between vectors.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.CosineSimilarity()(torch.ones(2, 3), torch.ones(2, 3))
    tensor([1., 1.])
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The distances between vectors.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.PairwiseDistance()(torch.zeros(2, 4), torch.ones(2, 4))
    tensor([2.0000, 2.0000])
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class Upsample(Module):
    """Enlarges images.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.Upsample(scale_factor=2)(torch.arange(2.0).view(1, 1, 1, 2))
    tensor([[[[0., 0., 1., 1.],
              [0., 0., 1., 1.]]]])
    """

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
    ) -> None:
        super().__init__()
        self.size, self.mode, self.align_corners = size, mode, align_corners
        self.scale_factor = scale_factor
        if isinstance(scale_factor, (int, float)):
            self.scale_factor = float(scale_factor)

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(input, self.size, self.scale_factor, self.mode, self.align_corners)

    def extra_repr(self) -> str:
        name = "size" if self.scale_factor is None else "scale_factor"
        return f"{name}={getattr(self, name)}, mode={self.mode!r}"


class PixelShuffle(Module):
    """Rearranges channels into a finer grid of pixels.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.PixelShuffle(2)(torch.ones(1, 8, 3, 3)).shape
    torch.Size([1, 2, 6, 6])
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class ZeroPad2d(Module):
    """Pads images with zeros.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.nn.ZeroPad2d(1)(torch.ones(1, 1, 2, 2)).shape
    torch.Size([1, 1, 4, 4])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = (padding,) * 4 if isinstance(padding, int) else tuple(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding)

    def extra_repr(self) -> str:
        return str(self.padding)
