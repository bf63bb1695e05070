"""The same programs with PyTorch and with functrans.torch: what they print, and the kinds of errors."""

import ast
import contextlib
import io
import re
import warnings

import numpy as np
import pytest

import functrans.torch as ours
from tests.support.torch_peer import pytorch

theirs = pytorch()
pytestmark = pytest.mark.peers


# Statements whose value is printed if they are expressions; errors are printed by their kind.
PROGRAMS = {
    "names of operations": """
x = torch.tensor([1.0, 2.0], requires_grad=True)
(x.log1p(), x.median(), x.diag(), x.flatten() is x, x.repeat_interleave(2), x.quantile(0.5), x.sgn())
(x.nanmean(), x.std(), x.var_mean if 0 else torch.var_mean(x), torch.std_mean(x), torch.aminmax(x))
m = torch.ones(2, 3, requires_grad=True)
(torch.einsum("ij,kj->ik", m, m), torch.einsum("ij->i", m), torch.einsum("ij->ji", m))
(torch.linalg.slogdet(torch.eye(2, requires_grad=True)), torch.kron(m, m), torch.block_diag(m, m))
(torch.linalg.matrix_norm(m), torch.meshgrid(x, x, indexing="ij")[0], torch.tensor_split(m, 2, 1))
(torch.fft.rfft(torch.tensor([1.0, 2.0], requires_grad=True)), m.split([1, 2], 1), m.chunk(3, 1))
F = torch.nn.functional
(F.selu(x), F.mish(x), F.glu(x), F.prelu(x, torch.tensor([0.2])), F.hardsigmoid(x), F.hardswish(x))
(F.celu(x), F.softshrink(x), F.threshold(x, 1.5, 0.0), F.tanhshrink(x), F.pairwise_distance(m, m + 1))
(F.max_pool1d(m, 2), F.cross_entropy(m, torch.tensor([0, 1]), label_smoothing=0.1))
""",
    "True and False as indices": """
x = torch.arange(6.0).reshape(2, 3).requires_grad_()
(x[True], x[False], x[True, 0], x[:, True], torch.tensor(5.0)[True], torch.tensor(5.0)[True, 0])
y, z = x * 2, torch.tensor(3.0, requires_grad=True)
y[True, 0] = z
(y * y).sum().backward()
(y, x.grad, z.grad)
""",
    "flags that are integers": """
x = torch.arange(6.0).reshape(2, 3).requires_grad_()
(x * x).sum().backward(retain_graph=1)
torch.autograd.grad((x * x).sum(), [x], create_graph=0, allow_unused=None)
torch.nn.functional.relu(x, inplace=0)
""",
    "what an operation leads to": """
def names(node):
    return [type(each).__name__ for each, _ in node.next_functions]
x = torch.arange(6.0).reshape(2, 3).requires_grad_()
linear = torch.nn.Linear(3, 2)
out = linear(x)
names(out.grad_fn)
F = torch.nn.functional
loss = F.cross_entropy(out, torch.tensor([0, 1]))
(names(loss.grad_fn), names(loss.grad_fn.next_functions[0][0]))
[names(F.mse_loss(out, torch.zeros(2, 2)).grad_fn), names(x.softmax(1).grad_fn), names(x.std().grad_fn)]
[names(x.norm().grad_fn), names(x.sigmoid().grad_fn), names(torch.stack([x, x]).grad_fn)]
[names(torch.addmm(torch.ones(2), x, torch.ones(3, 2)).grad_fn), names(x.logsumexp(1).grad_fn)]
[names(F.layer_norm(x, (3,), torch.ones(3, requires_grad=True)).grad_fn), names((x * 2).grad_fn)]
""",
    "saved values": """
x = torch.tensor([1.0, 2.0], requires_grad=True)
((x**2).grad_fn._saved_self is x, (x**2).grad_fn._saved_exponent, x.exp().grad_fn._saved_result)
hooks = torch.autograd.graph.saved_tensors_hooks(lambda t: print(t) or t, lambda t: print(t) or t)
with hooks: y = x * x
y.sum().backward()
with torch.no_grad(): print(x.numpy())
""",
    "views": """
x = torch.zeros(3, 3)
x.diagonal().fill_(1)
x.diagonal()[0] = 7
x.diagonal(1).add_(2)
x
w = torch.ones(2, 2, requires_grad=True)
y = w * 1
y.diagonal().mul_(5)
y.sum().backward()
(y, w.grad)
base = torch.arange(6.0)
windows = base.unfold(0, 2, 2)
base[0] = 9
windows[1] = -1
(base, windows, windows._is_view())
row = torch.zeros(1, 3)
wide = row.expand(2, 3)
row[0, 0] = 4
(wide, wide._is_view())
wide.add_(1)
z = torch.ones(2, requires_grad=True)
kept = (z * 1).exp()
kept.data.add_(1)
kept.sum().backward()
(kept.data._version, z.grad)
""",
    "assignment in place": """
x = torch.ones(3, requires_grad=True)
for change in (lambda y: y.fill_(0), lambda y: y.zero_(), lambda y: y.copy_(torch.ones(3))):
    print(change(x * 1))
y = torch.zeros(3)
y.copy_(x)
y = x * 1
y[[0, 1]] = torch.tensor([5.0, 6.0])
y
y.index_put_((torch.tensor([0, 0]),), torch.tensor([3.0, 4.0]), accumulate=True)
torch.nn.functional.relu(x, inplace=True)
y = x * -1
torch.nn.functional.leaky_relu(y, 0.1, inplace=True).sum().backward()
x.grad
""",
    "hooks": """
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x * 2
_ = y.grad_fn.register_hook(lambda inputs, outputs: print(inputs, outputs))
y.sum().backward()
y = x * 2
_ = y.register_hook(lambda g: torch.ones(5))
y.sum().backward()
y = x * 2
_ = y.register_hook(lambda g: 5)
y.sum().backward()
x.grad = torch.ones(3)
""",
    "functions of the user": """
class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x + 1
    @staticmethod
    def backward(ctx, g):
        return torch.ones(5)
x = torch.tensor([1.0, 2.0], requires_grad=True)
Wrong.apply(x).sum().backward()
class Wide(Wrong):
    @staticmethod
    def backward(ctx, g):
        return torch.ones(3, 2)
Wide.apply(x).sum().backward()
x.grad
class Dirty(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.add_(1)
Dirty.apply(x)
class Mapped(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x * 2
    @staticmethod
    def setup_context(ctx, inputs, output):
        pass
    @staticmethod
    def backward(ctx, g):
        return g * 2
    @staticmethod
    def jvp(ctx, t):
        return t * 2
    @staticmethod
    def vmap(info, in_dims, x):
        print("asked", info.batch_size, info.randomness, in_dims, x.shape)
        return Mapped.apply(x), in_dims[0]
z = torch.tensor([1.0, 2.0])
torch.func.vmap(Mapped.apply)(z)
torch.func.vmap(torch.func.grad(Mapped.apply))(z)
torch.func.vmap(Mapped.apply, randomness="same")(z)
torch.func.grad(lambda x: torch.func.vmap(Mapped.apply)(x).sum())(z)
torch.func.vmap(lambda x: torch.func.jvp(Mapped.apply, (x,), (x,)))(z)
""",
    "transforms of complex functions": """
z = torch.tensor([1 + 2j, 3 - 1j])
torch.func.grad(lambda z: (z * z.conj()).real.sum())(z)
torch.func.grad(lambda z: z.abs().sum())(torch.tensor([3 + 4j]))
torch.func.vjp(lambda z: z**2, z)[1](torch.tensor([1j, 1.0 + 0j]))
torch.func.jvp(lambda z: z**2, (z,), (z,))
torch.func.vmap(torch.func.grad(lambda z: z.abs()))(torch.tensor([3 + 4j, 1j]))
torch.func.jacrev(lambda z: z * z)(z)
torch.func.grad(lambda z: (z * z).sum())(z)
""",
    "errors of transforms": """
x = torch.tensor([1.0, 2.0])
torch.func.grad(lambda x: x * 2)(x)
torch.func.grad(lambda x: x.sum().item())(x)
torch.func.grad(lambda x: (x.sum(), 1))(x)
torch.func.grad(lambda x: x.sum())(torch.tensor([1, 2]))
torch.func.grad(lambda x, y: (x * y).sum(), argnums=5)(x, x)
torch.func.vjp(lambda x: x**2, x)[1](torch.ones(3))
torch.func.jvp(lambda x: x**2, (x,), (torch.ones(3),))
torch.func.jvp(lambda x: x**2, x, x)
torch.func.vmap(lambda x: x * 2)(torch.tensor(1.0))
torch.func.vmap(lambda x: 5)(x)
torch.func.vmap(lambda x: x, randomness="often")
torch.func.grad(lambda x: x[5])(x)
""",
    "tensors inside transforms": """
x = torch.tensor([1.0, 2.0])
torch.func.grad(lambda x: print(x) or x.sum())(x)
torch.func.vmap(lambda x: print(x) or x)(x)
torch.func.vmap(torch.func.grad(lambda x: print(x) or x * x))(x)
forward = torch.autograd.forward_ad
with forward.dual_level():
    dual = forward.make_dual(x, torch.ones(2))
    out = dual**2
    print(out)
forward.unpack_dual(out)
""",
    "gradcheck of complex outputs": """
double = torch.ones(2, dtype=torch.float64, requires_grad=True)
torch.autograd.gradcheck(lambda x: torch.complex(x, x**2), double)
torch.autograd.gradcheck(lambda x: torch.polar(x, x * 2), double)
torch.autograd.gradcheck(lambda z: z**2, torch.ones(2, dtype=torch.complex128, requires_grad=True))
class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x**2
    @staticmethod
    def backward(ctx, g):
        return g
z = torch.tensor([1 + 1j], dtype=torch.complex128, requires_grad=True)
try: torch.autograd.gradcheck(Wrong.apply, z)
except RuntimeError as error: print(error)
""",
    "modules as text": """
nn = torch.nn
nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 2)
(nn.ParameterList([torch.ones(2)]), nn.ParameterList([torch.ones(2), torch.ones(1, 3)]))
(nn.ParameterDict({"a": torch.ones(2)}), nn.Bilinear(2, 3, 4), nn.GroupNorm(2, 4), nn.RMSNorm(3))
(nn.MaxPool1d(2), nn.AvgPool1d(2), nn.Unflatten(1, (2, 2)), nn.GRUCell(2, 3), nn.LSTM(3, 4, proj_size=2))
(nn.ConvTranspose2d(1, 2, 3, 2, output_padding=1), nn.Conv2d(1, 2, 3, padding_mode="reflect"))
(nn.Upsample(scale_factor=2), nn.EmbeddingBag(3, 4), nn.InstanceNorm2d(3), nn.Threshold(1, 2))
(nn.Hardtanh(), nn.CELU(), nn.ReLU(inplace=True), nn.LeakyReLU(0.1, inplace=True), nn.Softmin(1))
s = nn.Sequential(nn.Linear(1, 1), nn.ReLU()).append(nn.Tanh()).insert(0, nn.GELU())
del s[1]
(s, s[-1], s.pop(0), s + nn.Sequential(nn.SiLU()), s.extend([nn.ReLU()]), len(s))
s[10]
torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)
torch.optim.Adam([torch.ones(1, requires_grad=True)])
torch.optim.AdamW([torch.ones(1, requires_grad=True)]).state_dict()
""",
    "loading states": """
model = torch.nn.Linear(2, 1)
model.load_state_dict({"zz": torch.ones(1)})
model.load_state_dict({"weight": torch.ones(3, 3)}, strict=False)
model.load_state_dict({"weight": torch.ones(1, 2), "bias": torch.ones(1)}, assign=True)
(model.weight, model.get_parameter("bias"))
model.weight = torch.ones(2)
model.get_buffer("nothing")
_ = model.register_forward_hook(lambda m, a, k, o: print(a, k), with_kwargs=True)
model(input=torch.ones(1, 2))
x = torch.zeros(1, 2, requires_grad=True)
model = torch.nn.Linear(2, 1)
_ = model.load_state_dict({"weight": torch.ones(1, 2), "bias": torch.ones(1)})
_ = model.register_full_backward_pre_hook(lambda m, g: (g[0] * 5,))
model(x).sum().backward()
x.grad
""",
    "functional calls": """
model = torch.nn.Linear(2, 1)
w = {"weight": torch.ones(1, 2), "bias": torch.zeros(1)}
torch.func.functional_call(model, {**w, "other": torch.ones(1)}, torch.ones(2))
class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(1, 1, bias=False)
        self.b = torch.nn.Linear(1, 1, bias=False)
        self.b.weight = self.a.weight
    def forward(self, x):
        return self.a(x) + self.b(x)
torch.func.functional_call(Tied(), {"a.weight": torch.full((1, 1), 3.0)}, torch.ones(1))
""",
    "data": """
data = torch.utils.data
list(data.DataLoader([(1, 2.5), (2, 3.5)], batch_size=2))
data.DataLoader(range(3), batch_size=0)
list(data.DataLoader(range(4), batch_sampler=[[0, 3], [1]]))
list(data.BatchSampler(data.SequentialSampler(range(5)), 2, True))
class Count(data.IterableDataset):
    def __iter__(self):
        return iter(range(5))
list(data.DataLoader(Count(), batch_size=2))
data.DataLoader(Count(), shuffle=True)
sorted(data.RandomSampler(range(3), num_samples=3))
list(data.SubsetRandomSampler([7]))
torch.nn.utils.rnn.pad_sequence([torch.tensor([1, 2]), torch.tensor([3])], padding_value=9)
""",
    "schedules": """
L = torch.optim.lr_scheduler
def rates(make, count=8):
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    scheduler, found = make(optimizer), []
    for _ in range(count):
        found.append(round(optimizer.param_groups[0]["lr"], 6))
        optimizer.step()
        scheduler.step()
    return found
rates(lambda o: L.LinearLR(o, 0.1, 1.0, 4))
rates(lambda o: L.ConstantLR(o, 0.5, 3))
rates(lambda o: L.CosineAnnealingWarmRestarts(o, 2, T_mult=2, eta_min=0.1))
rates(lambda o: L.OneCycleLR(o, 1.0, total_steps=10))
rates(lambda o: L.OneCycleLR(o, 1.0, total_steps=10, anneal_strategy="linear"))
rates(lambda o: L.SequentialLR(o, [L.ConstantLR(o, 0.1, 2), L.ExponentialLR(o, 0.9)], [2]))
optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
plateau = L.ReduceLROnPlateau(optimizer, patience=1, cooldown=1)
for value in (5.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0):
    plateau.step(value)
    print(round(optimizer.param_groups[0]["lr"], 6))
L.StepLR(5, 1)
""",
    "words of NumPy, and old ones": """
x = torch.arange(6.0).reshape(2, 3)
(x.sum(axis=1), x.mean(axis=0, keepdims=True), x.std(axis=1), x.argmax(axis=1), x.max(axis=1).values)
(torch.cat([x, x], axis=1).shape, torch.stack([x, x], axis=2).shape, x.softmax(axis=1), x.cumsum(axis=0))
(torch.FloatTensor([1, 2]), torch.LongTensor([1]), torch.BoolTensor([True]), torch.IntTensor(2, 3).shape)
(x.shape[:1], x.shape + (4,), f"{torch.tensor(2.5):.3f}", f"{x[0]}")
(torch.tensor([1], dtype=torch.uint8) + 300, torch.finfo(torch.float32), torch.newaxis)
""",
    "small functions": """
x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
(torch.atleast_1d(torch.tensor(1)), torch.atleast_2d(x[0]), torch.atleast_3d(x).shape)
(torch.hsplit(x, 2), torch.vsplit(x, 2), torch.diagflat(x[0], 1), torch.argwhere(x > 2))
torch.hsplit(x, 3)
(torch.unique_consecutive(torch.tensor([1, 1, 2]), return_inverse=True, return_counts=True))
(torch.isposinf(x), torch.isneginf(x), torch.isreal(torch.tensor([1j, 1])), x.adjoint(), x.is_cpu)
(torch.view_as_real(torch.tensor([1 + 2j])), torch.view_as_complex(x), torch.polar(x, x))
(torch.hann_window(4), torch.hamming_window(5, periodic=False), torch.is_nonzero(torch.tensor(2.0)))
(torch.cuda.is_available(), torch.accelerator.is_available(), torch.tensor([np.float64(3)]))
with torch.autocast("cpu", dtype=torch.float16):
    print(torch.is_autocast_enabled("cpu"), torch.einsum("ij,jk->ik", x, x).dtype)
import io
file = io.BytesIO()
torch.save([torch.nn.Parameter(torch.ones(2)), torch.ones(1, requires_grad=True)], file)
_ = file.seek(0)
torch.load(file)
""",
}


def printed(program, torch):
    """What a program prints, and its errors by kind, without addresses and PyTorch's own words."""
    names = {"torch": torch, "np": np}
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for node in ast.parse(program).body:
            try:
                if isinstance(node, ast.Expr):
                    value = eval(compile(ast.Expression(node.value), "program", "eval"), names)
                    print(repr(value))
                else:
                    exec(compile(ast.Module([node], []), "program", "exec"), names)
            except Exception as error:
                kinds = [k.__name__ for k in type(error).__mro__ if k.__module__ == "builtins"]
                print("error:", kinds[0])
    return re.sub(r"<(\w+) object at 0x\w+>", r"<\1>", out.getvalue())


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_program_prints_the_same(name):
    assert printed(PROGRAMS[name], ours) == printed(PROGRAMS[name], theirs)
