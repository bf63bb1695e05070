"""Layers with their options: values and gradients as PyTorch's, and as finite differences."""

import numpy as np
import pytest

import functrans.torch as ours
from tests.support.torch_peer import pytorch

theirs = pytorch()
pytestmark = pytest.mark.peers

# A module, and the shapes of its inputs.
CASES = [
    ("nn.Bilinear(2, 3, 4)", (5, 2), (5, 3)),
    ("nn.Conv1d(2, 4, 4, groups=2, padding='same')", (2, 2, 9)),
    ("nn.Conv1d(2, 4, 3, padding='same', padding_mode='circular')", (2, 2, 9)),
    ("nn.Conv2d(2, 4, 3, padding='valid', padding_mode='reflect', bias=False)", (2, 2, 6, 5)),
    ("nn.Conv2d(2, 4, 3, padding=(1, 2), padding_mode='replicate')", (2, 6, 5)),
    ("nn.ConvTranspose1d(2, 3, 3, stride=2)", (2, 2, 3)),
    ("nn.ConvTranspose2d(2, 4, 3, 2, 1, output_padding=1, groups=2)", (2, 2, 3, 3)),
    ("nn.ConvTranspose2d(2, 3, 2, padding=2, dilation=3)", (2, 2, 4, 4)),
    ("nn.MaxPool1d(2, ceil_mode=True)", (2, 2, 5)),
    ("nn.MaxPool2d(3, 2, 1, ceil_mode=True, return_indices=True)", (1, 2, 6, 6)),
    ("nn.MaxPool2d(2, dilation=2)", (2, 2, 5, 5)),
    ("nn.AvgPool1d(2, padding=1)", (2, 2, 5)),
    ("nn.AvgPool2d(2, padding=1, count_include_pad=False)", (2, 2, 5, 5)),
    ("nn.AvgPool2d(3, 2, 1, ceil_mode=True)", (2, 2, 6, 6)),
    ("nn.AvgPool2d(2, divisor_override=3)", (2, 2, 4, 4)),
    ("nn.AdaptiveAvgPool2d((None, 3))", (2, 2, 5, 5)),
    ("nn.AdaptiveMaxPool2d(2)", (2, 2, 5, 5)),
    ("nn.AdaptiveAvgPool1d(2)", (2, 2, 5)),
    ("nn.InstanceNorm1d(3, affine=True)", (2, 3, 4)),
    ("nn.GroupNorm(2, 4)", (3, 4, 2)),
    ("nn.Upsample(scale_factor=2)", (1, 2, 2, 3)),
    ("nn.Upsample(size=(5, 4), mode='bilinear')", (1, 2, 2, 3)),
    ("nn.Upsample(scale_factor=2, mode='bilinear', align_corners=True)", (1, 2, 2, 3)),
    ("nn.PixelShuffle(2)", (1, 8, 2, 2)),
    ("nn.LSTM(3, 4, num_layers=2, proj_size=2, bidirectional=True)", (5, 2, 3)),
    ("nn.RNNCell(3, 4, nonlinearity='relu')", (2, 3)),
    ("nn.GRUCell(3, 4)", (2, 3), (2, 4)),
    ("nn.LSTMCell(3, 4, bias=False)", (3,)),
    (
        "nn.MultiheadAttention(4, 2, kdim=3, vdim=5, batch_first=True)",
        (2, 3, 4),
        (2, 5, 3),
        (2, 5, 5),
    ),
    ("nn.MultiheadAttention(4, 2, add_bias_kv=True, add_zero_attn=True)", *[(3, 2, 4)] * 3),
    ("nn.TransformerDecoderLayer(4, 2, 8, dropout=0.0)", (3, 2, 4), (5, 2, 4)),
    ("nn.TransformerDecoderLayer(4, 2, 8, dropout=0.0, norm_first=True)", (3, 2, 4), (5, 2, 4)),
    ("nn.Hardswish()", (3, 4)),
    ("nn.Softshrink()", (3, 4)),
    ("nn.CELU(0.5)", (3, 4)),
    ("nn.GLU(0)", (4, 3)),
]


def built(torch, text, dtype):
    """A module whose parameters are the same in both."""
    module = eval(text, {"nn": torch.nn}).to(dtype)
    random = np.random.default_rng(1)
    with torch.no_grad():
        for parameter in module.parameters():
            values = random.standard_normal(tuple(parameter.shape)) * 0.3
            parameter.copy_(torch.tensor(values, dtype=dtype))
    return module


def results(torch, text, shapes):
    random = np.random.default_rng(2)
    module = built(torch, text, torch.float64)
    inputs = [torch.tensor(random.standard_normal(shape), requires_grad=True) for shape in shapes]
    out = module(*inputs)
    parts = [p for p in out if not isinstance(p, tuple)] if isinstance(out, tuple) else [out]
    (parts[0] ** 2).sum().backward()
    grads = [each.grad for each in (*inputs, *module.parameters())]
    return [p.detach().numpy() for p in parts], [g.numpy() for g in grads if g is not None]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_values_and_gradients(case):
    text, *shapes = case
    for mine, peers in zip(results(ours, text, shapes), results(theirs, text, shapes), strict=True):
        for a, b in zip(mine, peers, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    "case", [c for c in CASES if "MaxPool" not in c[0]][:24], ids=lambda c: c[0]
)
def test_finite_differences(case):
    text, *shapes = case
    random = np.random.default_rng(3)
    module = built(ours, text, ours.float64)
    inputs = [ours.tensor(random.standard_normal(s), requires_grad=True) for s in shapes]

    def first(*tensors):
        out = module(*tensors)
        return out[0] if isinstance(out, tuple) else out

    assert ours.autograd.gradcheck(first, tuple(inputs))


@pytest.mark.parametrize("options", [{"max_norm": 0.3}, {"scale_grad_by_freq": True}])
def test_embeddings(options):
    found = []
    for torch in (ours, theirs):
        weight = torch.tensor(np.random.default_rng(0).standard_normal((5, 3)))
        module = torch.nn.Embedding(5, 3, _weight=weight, **options)
        out = module(torch.tensor([[0, 1], [4, 4]]))
        (out**2).sum().backward()
        found.append([x.detach().numpy() for x in (out, module.weight.grad, module.weight)])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_embeddings(mode):
    found = []
    for torch in (ours, theirs):
        weight = torch.tensor(np.random.default_rng(0).standard_normal((5, 3)), requires_grad=True)
        bags = torch.tensor([0, 1, 4, 4]), weight, torch.tensor([0, 3])
        out = torch.nn.functional.embedding_bag(*bags, mode=mode)
        (out**2).sum().backward()
        found.append([out.detach().numpy(), weight.grad.numpy()])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
