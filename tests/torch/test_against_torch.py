"""The same program with functrans.torch and with PyTorch: values, gradients, printed forms, errors."""

import itertools
import warnings

import numpy as np
import pytest

import functrans.torch as ours
from tests.support.torch_peer import pytorch

theirs = pytorch()
pytestmark = pytest.mark.peers

SHAPES = {"scalar": (), "vector": (3,), "matrix": (2, 3), "cube": (2, 3, 4)}


def numbers(shape, seed, low=-2.0, high=2.0):
    return np.random.default_rng(seed).uniform(low, high, shape)


def leaves(torch, arrays, dtype, grad=True):
    made = []
    for array in arrays:
        tensor = torch.tensor(array.tolist(), dtype=getattr(torch, dtype))
        made.append(tensor.requires_grad_() if grad else tensor)
    return made


def flat(result):
    """The tensors among the results."""
    if isinstance(result, (tuple, list)):
        return [each for part in result for each in flat(part)]
    return [result] if hasattr(result, "requires_grad") else []


def run(torch, expression, arrays, dtype):
    """The results of an expression, and the gradients of a weighted sum of them."""
    inputs = leaves(torch, arrays, dtype)
    names = dict(zip("xyzw", inputs, strict=False))
    result = eval(expression, {"T": torch, "F": torch.nn.functional, "np": np, **names})
    outputs = [out for out in flat(result) if out.requires_grad]
    gradients = [None] * len(inputs)
    if outputs:
        total = 0
        for k, out in enumerate(outputs):
            out = out.real + 2 * out.imag if out.is_complex() else out
            weights = numbers(tuple(out.shape), 100 + k)
            total = total + (out * torch.tensor(weights, dtype=out.dtype)).sum()
        gradients = torch.autograd.grad(total, inputs, allow_unused=True)
    return result, gradients


def same_numbers(a, b, dtype):
    assert tuple(a.shape) == tuple(b.shape)
    assert str(a.dtype) == str(b.dtype)
    tolerance = 2e-5 if dtype == "float32" else 1e-9
    np.testing.assert_allclose(
        a.detach().resolve_conj().numpy() if hasattr(a, "resolve_conj") else a.detach().numpy(),
        b.detach().numpy(),
        rtol=tolerance,
        atol=tolerance,
    )


def compare(expression, arrays, dtype="float64", printed=True):
    expected, expected_gradients = run(theirs, expression, arrays, dtype)
    found, found_gradients = run(ours, expression, arrays, dtype)
    assert len(flat(expected)) == len(flat(found)) or not flat(expected)
    if not flat(expected):
        assert str(found) == str(expected)
    for a, b in zip(flat(expected), flat(found), strict=True):
        same_numbers(a, b, dtype)
        assert a.requires_grad == b.requires_grad, (a.requires_grad, b.requires_grad)
        if printed and not a.is_complex():
            assert repr(b.detach()) == repr(a.detach())
    for a, b in zip(expected_gradients, found_gradients, strict=True):
        if a is None or b is None:
            zero = b if a is None else a
            assert zero is None or not zero.detach().abs().sum().item()
        else:
            same_numbers(a, b, dtype)


POINTWISE = """
-x
abs(x)
x + 2
x - 0.5
3 - x
x * 2.5
x / 4
2 / x
x ** 2
x ** 3.0
2.0 ** x
x.exp()
x.exp2()
x.expm1()
x.sin()
x.cos()
x.tan()
x.sinh()
x.cosh()
x.tanh()
x.atan()
x.asinh()
x.sigmoid()
x.relu()
x.square()
x.reciprocal()
x.floor()
x.ceil()
x.round()
x.trunc()
x.sign()
x.frac()
x.erf()
x.erfc()
x.clamp(-1, 1)
x.clamp(min=0)
x.clamp(max=0.5)
x.clone()
x.neg()
x > 0
x <= 0.5
x == x
x != 0
x.isnan()
x.double()
x.float()
x.to(T.float64) * 2
x.detach() * x
T.where(x > 0, x, 0.0)
T.where(x > 0, x * 2, x * 3)
x.masked_fill(x > 0, 7.0)
x.lerp(x * 2, 0.25)
T.nan_to_num(x / 0)
x.remainder(0.7)
x % 0.7
x.detach() // 0.7
x.fmod(0.7)
T.atan2(x, x + 3)
T.hypot(x, x + 3)
T.logaddexp(x, x * 2)
T.maximum(x, x * 0.5)
T.minimum(x, x * 0 + 0.5)
x.pow(2).sum()
x.deg2rad()
x.item() if x.numel() == 1 else 0
x.numel()
x.dim()
x.add(x, alpha=3)
x.sub(x * 2, alpha=0.5)
T.addcmul(x, x, x, value=0.5)
T.addcdiv(x, x, x + 5, value=0.5)
x.sinc()
F.gelu(x)
F.gelu(x, approximate="tanh")
F.silu(x)
F.elu(x)
F.selu(x)
F.leaky_relu(x, 0.1)
F.softplus(x)
F.logsigmoid(x)
F.hardtanh(x)
F.mish(x)
F.softsign(x)
""".strip().splitlines()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("expression", POINTWISE)
def test_pointwise(expression, dtype, shape):
    compare(expression, [numbers(SHAPES[shape], 1)], dtype)


POSITIVE = """
x.log()
x.log2()
x.log10()
x.log1p()
x.sqrt()
x.rsqrt()
x ** 0.5
x ** -1.5
x.lgamma()
x.digamma()
x ** x
x.acosh() if False else (x + 1).acosh()
(x / 3).asin()
(x / 3).acos()
(x / 3).atanh()
(x / 3).logit()
T.xlogy(x, x)
(x / 3).erfinv()
""".strip().splitlines()


@pytest.mark.parametrize("shape", ["scalar", "matrix"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("expression", POSITIVE)
def test_pointwise_of_positive_numbers(expression, dtype, shape):
    compare(expression, [numbers(SHAPES[shape], 1, 0.2, 2.5)], dtype, printed=dtype == "float64")


REDUCTIONS = """
x.sum()
x.sum(dim=0)
x.sum(-1, keepdim=True)
x.sum(dim=(0, 1))
x.mean()
x.mean(1)
x.mean(dim=(0, -1), keepdim=True)
x.prod()
x.prod(1)
x.max()
x.min()
x.max(dim=1)
x.min(0, keepdim=True)
x.amax(1)
x.amin((0, 1))
x.argmax()
x.argmax(dim=1)
x.argmin(0, keepdim=True)
x.var()
x.var(1)
x.var(dim=1, unbiased=False)
x.std()
x.std(0, keepdim=True)
x.std(correction=0)
x.norm()
x.norm(1)
x.norm(dim=1)
x.norm(2, dim=0, keepdim=True)
x.norm(float("inf"))
x.logsumexp(1)
x.logsumexp((0, 1))
x.softmax(0)
x.softmax(dim=-1)
x.log_softmax(1)
x.cumsum(0)
x.cumsum(-1)
x.cumprod(1)
x.logcumsumexp(1)
x.sort(1)
x.sort(0, descending=True)
x.argsort(1)
x.topk(2, dim=1)
x.topk(1, dim=1, largest=False)
x.kthvalue(2, dim=1)
x.median()
x.median(1)
x.any()
x.all(dim=1)
(x > 0).any(0)
(x > 0).sum()
(x > 0).sum(dim=1)
T.count_nonzero(x)
x.diff(dim=1)
x.quantile(0.3)
x.quantile(0.5, dim=1)
T.var_mean(x, dim=1)
x.nansum(1)
(x > 0).nonzero()
F.normalize(x, dim=1)
F.layer_norm(x, x.shape[-1:])
F.softmin(x, 1)
T.std_mean(x)
T.aminmax(x)
x.cummax(1)
x.cummin(0)
x.round().mode(1)
x.histc(4, -2, 2)
T.isin(x.round(), T.tensor([0.0, 1.0], dtype=x.dtype))
T.bucketize(x, T.tensor([-1.0, 0.0, 1.0], dtype=x.dtype))
T.dist(x, x * 2 + 1)
T.trapezoid(x, dim=1)
T.result_type(x, 2)
x.clone().index_put_((T.tensor([0, 1]),), T.tensor(5.0, dtype=x.dtype))
x.clone().index_put_((T.tensor([0, 0]), T.tensor([1, 1])), x[0, :1] * 2, accumulate=True)
""".strip().splitlines()


@pytest.mark.parametrize("shape", ["matrix", "cube"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("expression", REDUCTIONS)
def test_reductions(expression, dtype, shape):
    compare(expression, [numbers(SHAPES[shape], 2)], dtype)


SHAPING = """
x.reshape(6, 4)
x.reshape(-1)
x.view(3, 8)
x.view(-1, 2)
x.permute(2, 0, 1)
x.transpose(0, 2)
x.transpose(0, 1).reshape(-1)
x.mT
x.movedim(0, 2)
x.swapaxes(0, 1)
x.unsqueeze(0)
x.unsqueeze(-1).squeeze(-1)
x[:, :1].squeeze()
x[:, :1].squeeze(1)
x.flatten()
x.flatten(1)
x.unflatten(2, (2, 2))
x[0].expand(3, 3, 4)
x[:1].expand(5, -1, -1)
x.expand_as(x)
x.repeat(1, 2, 1)
x.repeat_interleave(2, dim=1)
x.tile(2)
x.flip(0)
x.flip([0, 2])
x.roll(1, 0)
x.roll(2)
x.rot90(1, (0, 1))
x.chunk(2, dim=2)
x.split(2, dim=1)
x.split([1, 3], dim=2)
x.unbind(1)
x.tensor_split(3, dim=2)
x.narrow(2, 1, 2)
x.select(1, 2)
x.tril()
x.triu(1)
x.diagonal(0, 1, 2)
x[0, 0].diag()
x[0, 0].diag(1)
x[0].diag_embed()
x[0, :, :3].trace()
x[0].cov()
x[0].corrcoef()
T.cartesian_prod(x[0, 0], x[1, 1])
x.contiguous()
T.cat([x, x * 2])
T.cat([x, x], dim=-1)
T.stack([x, x * 2], dim=1)
T.hstack([x, x])
T.vstack([x, x])
T.dstack([x, x])
T.meshgrid(x[0, 0], x[1, 1], indexing="ij")
T.broadcast_to(x[0], (5, 3, 4))
x.unfold(2, 2, 1)
T.block_diag(x[0], x[1])
x[0]
x[-1]
x[0, 1]
x[0, 1, 2]
x[:, 1]
x[..., 0]
x[1:, :2, ::2]
x[None]
x[:, None, 1]
x[[0, 1]]
x[[1, 0], [2, 0]]
x[:, [0, 2]]
x[T.tensor([1, 0])]
x[x > 0]
x[:, T.tensor([True, False, True])]
x[0, ..., 1:3]
x[T.tensor(1)]
x.index_select(1, T.tensor([2, 0]))
x.gather(2, T.tensor([[[0], [1], [2]], [[3], [0], [1]]]))
x.gather(1, T.tensor([[[0, 1, 2, 0]], [[2, 2, 0, 1]]]))
x.masked_select(x > 0.5)
x.take(T.tensor([0, 5]))
x.scatter(1, T.tensor([[[0, 1, 2, 0]], [[2, 2, 0, 1]]]), 9.0)
x.scatter(0, T.tensor([[[0, 1, 1, 0]]]), x[:1, :1] * 2)
x.scatter_add(1, T.tensor([[[0, 1, 2, 0]], [[2, 2, 0, 1]]]), x[:, :1])
x.index_add(1, T.tensor([0, 0]), x[:, :2])
x.index_copy(1, T.tensor([2, 0]), x[:, :2] * 2)
x.index_fill(2, T.tensor([1]), 3.0)
x.masked_scatter(x > 0, x * 10)
F.pad(x, (1, 2))
F.pad(x, (1, 0, 2, 1), value=5.0)
F.pad(x, (1, 1), mode="reflect")
F.pad(x, (-1, 1))
x.shape
x.size(1)
x.stride()
x.T if x.dim() == 2 else x.mT
""".strip().splitlines()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("expression", SHAPING)
def test_shaping_and_indexing(expression, dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compare(expression, [numbers((2, 3, 4), 3)], dtype)


PRODUCTS = [
    ("x @ y", (2, 3), (3, 4)),
    ("x @ y", (3,), (3,)),
    ("x @ y", (2, 3), (3,)),
    ("x @ y", (3,), (3, 2)),
    ("x @ y", (4, 2, 3), (4, 3, 2)),
    ("x @ y", (4, 2, 3), (3, 5)),
    ("x @ y", (2, 1, 2, 3), (5, 3, 2)),
    ("x @ y", (4, 2, 3), (3,)),
    ("x.mm(y)", (2, 3), (3, 4)),
    ("x.bmm(y)", (4, 2, 3), (4, 3, 2)),
    ("x.mv(y)", (2, 3), (3,)),
    ("x.dot(y)", (3,), (3,)),
    ("T.outer(x, y)", (3,), (2,)),
    ("T.einsum('ij,jk->ik', x, y)", (2, 3), (3, 4)),
    ("T.einsum('ij,ij->i', x, y)", (2, 3), (2, 3)),
    ("T.einsum('bi,bj->bij', x, y)", (2, 3), (2, 4)),
    ("T.tensordot(x, y, dims=1)", (2, 3), (3, 4)),
    ("T.kron(x, y)", (2, 2), (2, 3)),
    ("T.linalg.cross(x, y)", (2, 3), (2, 3)),
    ("T.cdist(x, y)", (3, 2), (4, 2)),
    ("F.linear(x, y)", (2, 3), (4, 3)),
    ("T.addmm(x, y, y.T, beta=0.5, alpha=2)", (2, 2), (2, 3)),
    ("x + y", (2, 3), (3,)),
    ("x * y", (2, 1), (1, 3)),
    ("x / y", (2, 3), (2, 1)),
    ("x - y", (1,), (2, 3)),
    ("T.where(x > y, x, y)", (2, 3), (3,)),
    ("F.mse_loss(x, y)", (2, 3), (2, 3)),
    ("F.l1_loss(x, y, reduction='sum')", (2, 3), (2, 3)),
    ("F.huber_loss(x, y, delta=0.7)", (2, 3), (2, 3)),
    ("F.smooth_l1_loss(x, y)", (2, 3), (2, 3)),
    ("F.cosine_similarity(x, y, dim=1)", (2, 3), (2, 3)),
    ("F.kl_div(x.log_softmax(1), y.softmax(1), reduction='batchmean')", (2, 3), (2, 3)),
    ("F.binary_cross_entropy_with_logits(x, y.sigmoid())", (2, 3), (2, 3)),
    ("F.binary_cross_entropy(x.sigmoid(), y.sigmoid())", (2, 3), (2, 3)),
    ("F.cross_entropy(x, T.tensor([0, 2]))", (2, 3), (1,)),
    ("F.cross_entropy(x, T.tensor([0, 2]), weight=y.detach().abs())", (2, 3), (3,)),
    ("F.cross_entropy(x, T.tensor([0, 2]), label_smoothing=0.1)", (2, 3), (1,)),
    ("F.cross_entropy(x, T.tensor([0, -100]))", (2, 3), (1,)),
    ("F.cross_entropy(x, y.softmax(1))", (2, 3), (2, 3)),
    ("F.cross_entropy(x, T.tensor([[0, 1], [2, 0]]), reduction='none')", (2, 3, 2), (1,)),
    ("F.nll_loss(x.log_softmax(1), T.tensor([1, 1]), reduction='sum')", (2, 3), (1,)),
    ("F.conv1d(x, y)", (2, 3, 7), (4, 3, 3)),
    ("F.conv1d(x, y, stride=2, padding=1)", (2, 3, 7), (4, 3, 3)),
    ("F.conv2d(x, y)", (2, 3, 5, 6), (4, 3, 3, 2)),
    ("F.conv2d(x, y, stride=(2, 1), padding=(1, 2), dilation=2)", (2, 3, 7, 6), (4, 3, 3, 2)),
    ("F.conv2d(x, y, groups=2)", (2, 4, 5, 5), (6, 2, 3, 3)),
    ("F.conv2d(x, y, padding='same')", (2, 3, 5, 5), (4, 3, 3, 3)),
    ("F.max_pool2d(x, 2)", (2, 3, 5, 6), (1,)),
    ("F.max_pool2d(x, 3, stride=2, padding=1)", (2, 3, 5, 6), (1,)),
    ("F.max_pool1d(x, 2)", (2, 3, 6), (1,)),
    ("F.avg_pool2d(x, 2)", (2, 3, 4, 6), (1,)),
    ("F.adaptive_avg_pool2d(x, (2, 3))", (2, 3, 5, 7), (1,)),
    ("F.unfold(x, 2)", (2, 3, 4, 5), (1,)),
    ("F.batch_norm(x, None, None, y[0], y[1], training=True)", (4, 3), (2, 3)),
    ("F.group_norm(x, 2, y[0], y[1])", (2, 4, 3), (2, 4)),
    ("F.scaled_dot_product_attention(x, y, y)", (2, 2, 3, 4), (2, 2, 5, 4)),
    ("F.scaled_dot_product_attention(x, x, y, is_causal=True)", (2, 3, 4), (2, 3, 4)),
    ("F.embedding(T.tensor([[0, 2], [1, 1]]), x)", (3, 4), (1,)),
    ("F.glu(x, 1)", (2, 4), (1,)),
    ("F.rms_norm(x, (4,), y)", (2, 4), (4,)),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("expression", "first", "second"), PRODUCTS)
def test_functions_of_two_tensors(expression, first, second, dtype):
    printed = dtype == "float64"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compare(expression, [numbers(first, 4), numbers(second, 5)], dtype, printed)


LINALG = """
T.linalg.inv(x)
T.linalg.det(x)
T.linalg.slogdet(x)[1]
T.linalg.solve(x, x[:, :2] * 2)
T.linalg.cholesky(x @ x.mT + 3 * T.eye(3, dtype=x.dtype))
T.linalg.qr(x)[1].abs()
T.linalg.svdvals(x)
T.linalg.eigvalsh(x + x.mT)
T.linalg.eigvalsh(x)
T.linalg.eigvalsh(x, UPLO="U")
T.linalg.eigh(x)[0]
T.linalg.eigh(x)[1] ** 2
T.linalg.cholesky(x + 9 * T.eye(3, dtype=x.dtype))
T.linalg.cholesky(x + 9 * T.eye(3, dtype=x.dtype), upper=True)
T.linalg.pinv(x)
T.linalg.matrix_power(x, 3)
T.linalg.norm(x)
T.linalg.norm(x, "fro")
T.linalg.norm(x, "nuc")
T.linalg.vector_norm(x, 3)
T.linalg.matrix_norm(x, 1)
T.linalg.multi_dot([x, x, x])
T.linalg.solve_triangular(x, x[:, :2], upper=True)
T.linalg.solve_triangular(x, x[:, :2], upper=False, unitriangular=True)
T.linalg.vecdot(x, x * 2)
T.linalg.lstsq(x, x[:, :1]).solution
T.inverse(x)
T.logdet(x @ x.mT)
T.fft.fft(x).abs()
T.fft.rfft(x)
T.fft.ifft(T.fft.fft(x)).real
T.fft.irfft(T.fft.rfft(x), n=3)
T.fft.fft2(x).abs()
T.fft.fftshift(x)
T.special.expit(x)
T.special.erf(x)
T.special.i0(x)
T.special.i1(x)
T.special.ndtr(x)
T.special.log_softmax(x, 1)
T.special.logsumexp(x, 0)
T.special.entr(x.abs())
T.special.erfcx(x)
""".strip().splitlines()


@pytest.mark.parametrize("expression", LINALG)
def test_linear_algebra_and_its_kin(expression):
    matrix = numbers((3, 3), 6) + 2 * np.eye(3)
    compare(expression, [matrix], "float64", printed=False)


COMPLEX = """
(x * x).abs().sum()
(x**2 + x.conj() * x.exp()).real.sum()
(x.sin() / (x + 3)).imag.sum()
(x @ x.mH).abs().sum()
T.fft.fft(x).abs().sum()
x.angle().sum()
T.linalg.inv(x + 2 * T.eye(2)).abs().sum()
(x * x.detach()).imag.sum()
"""


@pytest.mark.parametrize("expression", COMPLEX.strip().splitlines())
def test_complex_gradients(expression):
    def run(torch):
        values = numbers((2, 2), 1) + 1j * numbers((2, 2), 2)
        x = torch.tensor(values.tolist(), dtype=torch.complex128, requires_grad=True)
        seen = []
        y = x * (1 + 2j)
        y.register_hook(lambda g: seen.append(g.detach().numpy()))
        y.grad_fn.register_prehook(lambda gs: seen.append(gs[0].detach().numpy()))
        out = eval(expression, {"T": torch, "x": y})
        out.backward()
        w = torch.tensor(values.tolist(), dtype=torch.complex128, requires_grad=True)
        (w * w).backward(torch.tensor((values * 1j).tolist(), dtype=torch.complex128))
        return [x.grad.numpy(), w.grad.numpy(), *seen]

    for a, b in zip(run(theirs), run(ours), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-12)


# Second derivatives: the gradient of a weighted sum of gradients.


def second(torch, expression, arrays):
    inputs = leaves(torch, arrays, "float64")
    names = dict(zip("xyzw", inputs, strict=False))
    result = eval(expression, {"T": torch, "F": torch.nn.functional, "np": np, **names})
    outputs = [out for out in flat(result) if out.requires_grad]
    if not outputs:
        return None
    total = 0
    for k, out in enumerate(outputs):
        out = out.real + 2 * out.imag if out.is_complex() else out
        weights = torch.tensor(numbers(tuple(out.shape), 100 + k), dtype=out.dtype)
        total = total + (out * out * weights + out * weights).sum()
    gradients = torch.autograd.grad(total, inputs, create_graph=True, allow_unused=True)
    total = 0
    for k, gradient in enumerate(g for g in gradients if g is not None and g.requires_grad):
        total = total + (gradient * torch.tensor(numbers(tuple(gradient.shape), 200 + k))).sum()
    if isinstance(total, int):
        return None
    return torch.autograd.grad(total, inputs, allow_unused=True)


TWICE = [
    *((e, [numbers((2, 3), 1)]) for e in POINTWISE if "digamma" not in e),
    *((e, [numbers((2, 3), 1, 0.2, 2.5)]) for e in POSITIVE),
    *((e, [numbers((2, 3), 2)]) for e in REDUCTIONS),
    *((e, [numbers((2, 3, 4), 3)]) for e in SHAPING),
    *((e, [numbers(a, 4), numbers(b, 5)]) for e, a, b in PRODUCTS),
    *((e, [numbers((3, 3), 6) + 2 * np.eye(3)]) for e in LINALG),
]


@pytest.mark.parametrize(("expression", "arrays"), TWICE)
def test_second_derivatives(expression, arrays):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = second(theirs, expression, arrays)
        except (RuntimeError, NotImplementedError):
            pytest.skip("PyTorch has no second derivative of this")
        found = second(ours, expression, arrays)
    if expected is None or found is None:
        assert expected is None or all(e is None or not e.abs().sum().item() for e in expected)
        assert found is None or all(f is None or not f.abs().sum().item() for f in found)
        return
    for a, b in zip(expected, found, strict=True):
        if a is None or b is None:
            zero = b if a is None else a
            assert zero is None or not zero.abs().sum().item()
        else:
            np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=1e-7, atol=1e-8)


# Dtypes: what comes out of mixed operands.

KINDS = ["bool", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64"]
OPERATORS = ["x + y", "x * y", "x / y", "x == y", "T.where(x == x, x, y)", "T.stack([x, y])"]


@pytest.mark.parametrize("expression", OPERATORS)
@pytest.mark.parametrize(("first", "second"), list(itertools.product(KINDS, repeat=2)))
def test_promotion(expression, first, second):
    def dtype_of(torch, shapes):
        x = torch.ones(shapes[0], dtype=getattr(torch, first))
        y = torch.ones(shapes[1], dtype=getattr(torch, second))
        return str(eval(expression, {"T": torch, "x": x, "y": y}).dtype)

    shapes = [((2,), (2,)), ((), ())]
    if {first, second} == {"float16", "complex64"}:
        return  # PyTorch has complex numbers of two halves, NumPy has not
    if "stack" not in expression:
        shapes += [((2,), ()), ((), (2,))]
    for pair in shapes:
        assert dtype_of(ours, pair) == dtype_of(theirs, pair), pair


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", [True, 2, 2.5, 1j])
@pytest.mark.parametrize("operator", ["x + n", "n + x", "x * n", "x / n", "n / x", "x == n"])
def test_promotion_with_numbers(kind, number, operator):
    if kind == "float16" and isinstance(number, complex):
        return  # PyTorch has complex numbers of two halves, NumPy has not

    def dtype_of(torch):
        x = torch.ones(2, dtype=getattr(torch, kind))
        return str(eval(operator, {"x": x, "n": number}).dtype)

    assert dtype_of(ours) == dtype_of(theirs)


INTEGERS = """
x + 1
x * x
x / 2
x // 2
x % 3
-x
abs(x)
x.sum()
x.prod()
x.cumsum(0)
x.max()
x.min(0)
x.sort()
x.float().mean()
x.bool()
~x
x & 1
x | 1
x ^ 3
x << 1
x >> 1
x > 2
x.sin()
x.sqrt()
x.exp()
x.clamp(1, 2)
x.clamp(1.5, 2)
x.unique()
x.bincount()
F.one_hot(x)
x.tolist()
x ** 2
x.repeat(2)
T.arange(x.max().item())
T.gcd(x, x + 2)
x.element_size()
x.to(T.int8)
x.type()
T.zeros_like(x)
T.ones_like(x, dtype=T.float64)
T.full_like(x, 7)
x.new_zeros(2)
x.double().softmax(0)
T.triu_indices(3, 3)
T.tril_indices(2, 3)
""".strip().splitlines()


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
@pytest.mark.parametrize("expression", INTEGERS)
def test_integers(expression, dtype):
    def text(torch):
        x = torch.tensor([3, 0, 1, 2], dtype=getattr(torch, dtype))
        try:
            return repr(eval(expression, {"T": torch, "F": torch.nn.functional, "x": x}))
        except Exception as error:
            kinds = [kind for kind in type(error).__mro__ if kind.__module__ == "builtins"]
            return kinds[0].__name__

    assert text(ours) == text(theirs)


CREATED = """
T.tensor(1)
T.tensor(1.5)
T.tensor(True)
T.tensor([1, 2])
T.tensor([1.0, 2.0])
T.tensor([[1.5, 2], [3, 4]])
T.tensor([])
T.tensor([[]])
T.tensor([1.0, 2.0], dtype=T.float64)
T.tensor([1.0, 2.0], dtype=T.float16)
T.tensor([1, 2], dtype=T.int32)
T.tensor([1.0], requires_grad=True)
T.tensor([True, False])
T.tensor(1 + 2j)
T.tensor([1 + 2j, -3.5 - 1j])
T.tensor([1e10, 1.0])
T.tensor([1e-5, 1.0])
T.tensor([0.1, 1000.0])
T.tensor([0.1, 200.0])
T.tensor([1e-8])
T.tensor([123456789.0])
T.tensor([12345678.0, 1.0])
T.tensor([float("nan"), 1.0])
T.tensor([float("inf"), -1.5])
T.tensor([float("inf"), 2.0])
T.tensor([float("nan")])
T.tensor([-1.0, 2.0])
T.tensor([-0.0001, 2.0])
T.tensor(float("inf"))
T.tensor(3.14159)
T.tensor(-7)
T.tensor([100, -5, 20])
T.zeros(2, 3)
T.zeros(0)
T.zeros(2, 0)
T.zeros((2, 2), dtype=T.int64)
T.ones(2, 2, 2)
T.ones(2, 1, 2, 2)
T.full((2, 2), 3)
T.full((2,), 3.5)
T.full((2,), True)
T.eye(3)
T.eye(2, 3)
T.arange(5)
T.arange(1, 4)
T.arange(0, 1, 0.25)
T.arange(5.0)
T.arange(3, 0, -1)
T.linspace(0, 1, 5)
T.logspace(0, 2, 3)
T.arange(1001)
T.arange(2000.0)
T.arange(1200).reshape(30, 40)
T.arange(8000).reshape(20, 20, 20)
T.arange(30)
T.arange(30) * 0.37
T.arange(100) * 12345.678
(T.arange(60) * 1.1).reshape(3, 20)
T.zeros(3, requires_grad=True) + 1
T.ones(3, dtype=T.float64, requires_grad=True) * 2
T.ones(20, requires_grad=True) * 1.5
T.zeros(2, 2, dtype=T.complex64)
T.finfo(T.float32).eps
T.iinfo(T.int8).max
T.float32
T.Size([2, 3])
T.zeros(2).dtype
T.zeros(2, 3).shape
T.zeros(2).device
T.tensor([1.0, 2.0]).max(0)
T.tensor([3.0, 1.0]).sort()
T.nn.Linear(2, 3)
T.nn.Sequential(T.nn.Linear(2, 3), T.nn.ReLU(), T.nn.Linear(3, 1))
T.nn.Conv2d(1, 2, 3, padding=1)
T.nn.LSTM(2, 3, num_layers=2)
T.nn.Dropout(0.3)
T.nn.LayerNorm(4)
T.nn.BatchNorm1d(4)
T.nn.Embedding(3, 4)
T.nn.MaxPool2d(2)
T.nn.GELU()
T.nn.Softmax(dim=1)
T.nn.ModuleList([T.nn.Tanh()])
T.nn.Parameter(T.zeros(2))
T.promote_types(T.int64, T.float32)
""".strip().splitlines()


@pytest.mark.parametrize("expression", CREATED)
def test_printed_forms(expression):
    def text(torch):
        return repr(eval(expression, {"T": torch}))

    assert text(ours) == text(theirs)


NAMES = """
x + 1
x - 1
1 - x
x * x
x / 2
x ** 2
x ** x
-x
x.exp()
x.log()
x.sqrt()
x.sin()
x.tanh()
x.relu()
x.sigmoid()
x.abs()
x.sum()
x.sum(0)
x.mean()
x.max()
x.prod()
x.var()
x.std()
x.clone()
x.view(-1)
x.reshape(-1)
x.permute(1, 0)
x.transpose(0, 1)
x.t()
x.T
x.unsqueeze(0)
x[0]
x[0:1]
x[[0]]
x @ x
T.cat([x, x])
T.stack([x, x])
T.where(x > 0, x, x)
x.softmax(0)
x.log_softmax(0)
x.logsumexp(0)
x.norm()
x.double()
x.clamp(0, 1)
x.expand(2, 2, 2)
x.cumsum(0)
x.gather(0, T.tensor([[0, 1]]))
x.tril()
x.square()
x.float()
F.mse_loss(x, x * 2)
F.gelu(x)
F.linear(x, x)
F.cross_entropy(x, T.tensor([0, 1]))
""".strip().splitlines()


@pytest.mark.parametrize("expression", NAMES)
def test_names_of_grad_fn(expression):
    def name(torch):
        x = torch.ones(2, 2, requires_grad=True)
        out = eval(expression, {"T": torch, "F": torch.nn.functional, "x": x})
        return None if out.grad_fn is None else out.grad_fn.name()

    assert name(ours) == name(theirs)


ERRORS = """
T.ones(2) + T.ones(3)
T.ones(2, 3) @ T.ones(2, 3)
T.ones(2) @ T.ones(3)
T.ones(2, 3).mm(T.ones(2))
T.ones(2).sum(dim=3)
T.ones(2, 3).view(7)
T.ones(2, 3).t().view(6)
T.ones(3).reshape(2, 2)
T.ones(2)[5]
T.ones(2)[0, 0]
T.tensor(1.0)[0]
T.ones(2).item()
bool(T.ones(2))
T.ones(2, dtype=T.int64).add_(1.5)
T.cat([T.ones(2), T.ones(2, 2)])
T.cat([T.ones(2, 2), T.ones(2, 3)])
T.cat([])
T.stack([T.ones(2), T.ones(3)])
T.arange(3).mean()
T.tensor([1], requires_grad=True)
T.tensor([[1, 2], [3]])
T.tensor("a")
T.zeros(-1)
T.zeros(2) + "a"
T.zeros(2) + None
T.ones(2, 2).expand(3, 3)
T.ones(2, 2).permute(0)
T.ones(2, 2).permute(0, 0)
T.ones(2, 3).squeeze(5)
T.ones(2, 2).transpose(0, 5)
T.ones(2, device="cuda")
T.ones(2).to("cuda")
T.ones(2).cuda()
x.numpy()
x.backward()
(x * 2).backward()
(x * 2).backward(T.ones(3))
T.ones(2).backward()
x.add_(1)
x[0].add_(1)
x.__setitem__(0, 1.0)
T.autograd.grad(x.sum(), T.ones(2, requires_grad=True))
T.autograd.grad(x.sum(), T.ones(2))
T.autograd.grad(x * 2, x)
T.ones(2).retain_grad()
T.ones(2).register_hook(print)
setattr(x, "grad", 5)
setattr(x, "grad", T.ones(5))
setattr(x * 2, "requires_grad", False)
T.ones(2).scatter(0, T.tensor([5]), 1.0)
T.ones(2).gather(0, T.tensor([5]))
T.ones(2, 2).gather(0, T.tensor([0]))
T.ones(2).masked_fill(T.tensor([1, 0]), 1.0)
T.ones(3).index_select(0, T.tensor([9]))
T.ones(3).topk(5)
T.ones(3).split([1, 1])
T.ones(2)[1.5]
T.ones(4)[::-1]
T.arange(0, 5, -1)
T.nn.Linear(2, 3)(T.ones(2, 5))
T.nn.functional.cross_entropy(T.ones(2, 3), T.tensor([0, 7]))
T.nn.functional.cross_entropy(T.ones(2, 3), T.tensor([0, 1, 2]))
T.nn.functional.conv2d(T.ones(1, 2, 4, 4), T.ones(1, 3, 2, 2))
T.nn.functional.dropout(T.ones(2), 1.5)
T.nn.Module()(1)
T.nn.Linear(2, 2).load_state_dict({})
T.optim.SGD([], lr=0.1)
T.optim.SGD([x], lr=-1)
T.optim.SGD([x * 2], lr=1.0)
T.optim.Adam([x], betas=(1.5, 0.9))
T.linalg.inv(T.zeros(2, 2))
T.linalg.inv(T.zeros(2, 3))
T.linalg.cholesky(-T.eye(2))
T.einsum("ij,jk->ik", T.ones(2, 3), T.ones(2, 3))
T.set_default_dtype(T.int64)
len(T.tensor(1.0))
list(T.tensor(1.0))
T.where(T.tensor([1.0]), 1, 2)
T.ones(2, requires_grad=True).__deepcopy__({}).nothing
int(T.ones(2))
T.from_numpy([1, 2])
T.ones(2, 3).repeat(2)
T.randint(5, 2, (3,))
T.softmax(T.ones(2), dim=3)
T.ones(2, 2).softmax(2)
T.utils.data.TensorDataset(T.ones(2), T.ones(3))
T.nn.MultiheadAttention(5, 2)
T.func.vmap(lambda x: x, in_dims=3)(T.ones(2))
T.autograd.functional.hessian(lambda x: x, T.ones(2))
T.ones(2) @ 3
T.ones(2, dtype=T.float64) @ T.ones(2)
T.ones(2, 2).view(-1, -1)
T.tensor([1.0, 2.0]).view(3)
T.bmm(T.ones(2, 2), T.ones(2, 2))
T.dot(T.ones(2), T.ones(3))
T.clamp(T.ones(2))
T.tensor([1]) // 0
T.tensor(1) % 0
T.tensor(2) ** -1
T.zeros(2).expand(3, 2).add_(1)
T.ones(2)[T.tensor([0.5])]
T.ones(2).__setitem__(slice(None), T.ones(3))
""".strip().splitlines()


@pytest.mark.parametrize("expression", ERRORS)
def test_kinds_of_errors(expression):
    def kind(torch):
        x = torch.ones(2, requires_grad=True)
        try:
            eval(expression, {"T": torch, "x": x})
        except Exception as error:
            # A subclass counts as its base: ours are also what Python programmers expect.
            return type(error)
        return None

    expected, found = kind(theirs), kind(ours)
    assert expected is not None and found is not None, (expected, found)
    names = [base.__name__ for base in found.__mro__]
    public = expected if expected.__module__ == "builtins" else expected.__mro__[1]
    assert public.__name__ in names or expected.__name__ in names, (expected, found)
