"""Modules, data, files, and pictures of graphs."""

import copy
import io
import pickle

import numpy as np
import pytest

import functrans.torch as torch
from functrans.torch import nn
from functrans.torch.utils.data import (
    ConcatDataset,
    DataLoader,
    TensorDataset,
    random_split,
)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.blocks = nn.ModuleList([nn.Linear(3, 3) for _ in range(2)])
        self.heads = nn.ModuleDict({"a": nn.Linear(3, 1)})
        self.scale = nn.Parameter(torch.ones(1))
        self.register_buffer("offset", torch.zeros(1))
        self.register_buffer("scratch", torch.zeros(1), persistent=False)

    def forward(self, x):
        x = torch.relu(self.first(x))
        for block in self.blocks:
            x = torch.relu(block(x))
        return self.heads["a"](x) * self.scale + self.offset


def test_names_of_parameters_and_state():
    net = Net()
    names = [name for name, _ in net.named_parameters()]
    assert names[:3] == ["scale", "first.weight", "first.bias"]
    assert "blocks.1.weight" in names and "heads.a.bias" in names
    assert [name for name, _ in net.named_buffers()] == ["offset", "scratch"]
    state = net.state_dict()
    assert "offset" in state and "scratch" not in state
    assert [type(m).__name__ for m in net.children()] == ["Linear", "ModuleList", "ModuleDict"]
    assert net.get_submodule("blocks.0") is net.blocks[0]
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        net.nothing
    with pytest.raises(TypeError, match="cannot assign"):
        net.scale = torch.ones(1)


def test_states_are_copied_and_checked():
    a, b = Net(), Net()
    x = torch.ones(4, 2)
    assert repr(b.load_state_dict(a.state_dict())) == "<All keys matched successfully>"
    assert torch.equal(a(x), b(x))
    state = a.state_dict()
    del state["scale"]
    state["more"] = torch.ones(1)
    with pytest.raises(RuntimeError, match=r'Missing key.*"scale"(?s:.*)Unexpected key.*"more"'):
        b.load_state_dict(state)
    assert b.load_state_dict(state, strict=False).missing_keys == ["scale"]
    with pytest.raises(RuntimeError, match="size mismatch for scale"):
        b.load_state_dict({**a.state_dict(), "scale": torch.ones(2)})


def test_training_and_evaluation():
    model = nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1d(3))
    x = torch.randn(8, 3)
    model.eval()
    assert not model[0].training
    assert torch.equal(model[0](x), x)
    model.train()
    before = model[1].running_mean.clone()
    model(x)
    assert not torch.equal(before, model[1].running_mean)
    assert model[1].num_batches_tracked.item() == 1


def test_hooks_of_modules():
    layer = nn.Linear(2, 1)
    seen = []
    handles = [
        layer.register_forward_pre_hook(lambda m, args: (args[0] * 2,)),
        layer.register_forward_hook(lambda m, args, out: out + 1),
        layer.register_full_backward_hook(lambda m, gi, go: seen.append((gi[0], go[0]))),
    ]
    x = torch.ones(1, 2, requires_grad=True)
    out = layer(x)
    expected = 2 * layer.weight.detach().numpy().sum() + layer.bias.item() + 1
    np.testing.assert_allclose(out.item(), expected, rtol=1e-6)
    out.sum().backward()
    ((grad_input, grad_output),) = seen
    np.testing.assert_allclose(grad_input.numpy(), layer.weight.detach().numpy())
    assert grad_output.item() == 1.0
    for handle in handles:
        handle.remove()
    np.testing.assert_allclose(
        layer(x).item(), layer.weight.detach().numpy().sum() + layer.bias.item(), rtol=1e-6
    )


def test_a_large_linear_layer_is_differentiated_like_a_small_one():
    torch.manual_seed(0)
    x = torch.randn(4, 80, dtype=torch.float64, requires_grad=True)
    w = torch.randn(60, 80, dtype=torch.float64, requires_grad=True)
    g = torch.randn(4, 60, dtype=torch.float64)
    found = torch.autograd.grad(nn.functional.linear(x, w) ** 2, (x, w), g, create_graph=True)
    expected = torch.autograd.grad((x @ w.T) ** 2, (x, w), g, create_graph=True)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-10)
    assert found[1].is_contiguous()
    second = [
        torch.autograd.grad(sum((h * h).sum() for h in grads), (x, w))
        for grads in (found, expected)
    ]
    for a, b in zip(*second, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9)
    with torch.no_grad():
        w.add_(1)
    out = nn.functional.linear(x, w)
    with torch.no_grad():
        w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_apply_and_conversions():
    net = Net()
    net.apply(lambda m: nn.init.constant_(m.weight, 0.5) if isinstance(m, nn.Linear) else None)
    assert float(net.first.weight.min()) == 0.5
    net.to(torch.float64)
    assert (
        net.first.weight.dtype is torch.float64
        and net(torch.ones(1, 2).double()).dtype is torch.float64
    )
    with pytest.raises(AssertionError, match="there is no device 'cuda'"):
        net.to("cuda")
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())


def test_copies_are_independent():
    net = Net()
    other = copy.deepcopy(net)
    with torch.no_grad():
        other.scale.fill_(5.0)
    assert net.scale.item() == 1.0 and other.scale.requires_grad
    assert other.scale is dict(other.named_parameters())["scale"]


def test_tensors_are_copied_and_pickled():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    same = copy.copy(x)
    assert same.requires_grad and same.is_leaf and np.shares_memory(same.detach(), x.detach())
    again = pickle.loads(pickle.dumps(x))
    assert torch.equal(again, x) and again.requires_grad
    with pytest.raises(RuntimeError, match="support the deepcopy protocol"):
        copy.deepcopy(x * 2)


def test_shared_parameters_are_counted_once():
    layer = nn.Linear(2, 2)
    assert len(list(nn.Sequential(layer, layer).parameters())) == 2


@pytest.mark.parametrize(
    ("fill", "variance"),
    [
        (lambda w: nn.init.xavier_uniform_(w), 2 / 500),
        (lambda w: nn.init.xavier_normal_(w), 2 / 500),
        (lambda w: nn.init.kaiming_uniform_(w, nonlinearity="relu"), 2 / 300),
        (lambda w: nn.init.kaiming_normal_(w, mode="fan_out", nonlinearity="relu"), 2 / 200),
        (lambda w: nn.init.normal_(w, std=0.3), 0.09),
        (lambda w: nn.init.uniform_(w, -1, 1), 1 / 3),
    ],
)
def test_initial_variances(fill, variance):
    torch.manual_seed(0)
    weight = torch.zeros(200, 300)
    fill(weight)
    assert abs(float(weight.var()) / variance - 1) < 0.05 and abs(float(weight.mean())) < 0.01


def test_orthogonal_and_truncated():
    weight = nn.init.orthogonal_(torch.zeros(3, 5))
    np.testing.assert_allclose((weight @ weight.T).numpy(), np.eye(3), atol=1e-6)
    assert float(nn.init.trunc_normal_(torch.zeros(1000), std=5.0).abs().max()) <= 2.0


def test_parameters_as_a_vector():
    net = Net()
    vector = nn.utils.parameters_to_vector(net.parameters())
    assert vector.numel() == sum(p.numel() for p in net.parameters())
    nn.utils.vector_to_parameters(vector * 2, net.parameters())
    np.testing.assert_allclose(
        nn.utils.parameters_to_vector(net.parameters()).detach().numpy(),
        2 * vector.detach().numpy(),
    )


def test_data_loaders():
    data = TensorDataset(torch.arange(10), torch.arange(10) * 2.0)
    batches = list(DataLoader(data, batch_size=4))
    assert [len(x) for x, _ in batches] == [4, 4, 2]
    assert len(DataLoader(data, batch_size=4, drop_last=True)) == 2
    shuffled = DataLoader(data, 5, shuffle=True, generator=torch.Generator().manual_seed(0))
    first = torch.cat([x for x, _ in shuffled])
    assert sorted(first.tolist()) == list(range(10)) and first.tolist() != list(range(10))
    parts = random_split(data, [0.7, 0.3])
    assert [len(p) for p in parts] == [7, 3]
    assert len(ConcatDataset([data, data])) == 20
    (row,) = DataLoader([{"a": 1, "b": np.ones(2)}, {"a": 2, "b": np.zeros(2)}], batch_size=2)
    assert row["a"].tolist() == [1, 2] and row["b"].shape == (2, 2)


def test_files_hold_states_without_pickle(tmp_path):
    net = Net()
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    path = tmp_path / "model.npz"
    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, path)
    loaded = torch.load(path)
    assert loaded["epoch"] == 3
    other = Net()
    other.load_state_dict(loaded["net"])
    assert torch.equal(other.first.weight, net.first.weight)
    fresh = torch.optim.Adam(other.parameters())
    fresh.load_state_dict(loaded["optimizer"])
    for model, each in ((net, optimizer), (other, fresh)):
        model.zero_grad()
        model(torch.ones(1, 2)).sum().backward()
        each.step()
    assert torch.equal(other.first.weight, net.first.weight)
    with pytest.raises(TypeError, match=r"save module.state_dict\(\) instead of a module"):
        torch.save(net, io.BytesIO())
    with np.load(path, allow_pickle=False) as file:  # nothing in it needs pickle
        assert all(file[name].dtype.kind in "iufb" for name in file)


def test_pictures_of_graphs():
    model = nn.Linear(2, 1)
    loss = (model(torch.ones(3, 2)) ** 2).mean()
    dot = torch.viz.make_dot(loss, params=dict(model.named_parameters()))
    assert repr(dot) == f"<Digraph of {len(dot.nodes)} boxes>"
    text = dot.source
    assert text.count("->") >= 6 and 'label="weight\\n(1, 2)"' in text and "MeanBackward0" in text
    picture = dot.svg()
    assert (
        picture.startswith("<svg") and picture.rstrip().endswith("</svg>") and ">bias<" in picture
    )
    with pytest.raises(ValueError, match="needs Graphviz"):
        dot.render("graph", format="pdf")


def test_seeds_and_generators():
    torch.manual_seed(7)
    first = torch.randn(3), torch.randint(0, 9, (3,)), torch.randperm(4)
    torch.manual_seed(7)
    second = torch.randn(3), torch.randint(0, 9, (3,)), torch.randperm(4)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    x = torch.empty(10000).normal_(1.0, 2.0)
    assert abs(float(x.mean()) - 1) < 0.1 and abs(float(x.std()) - 2) < 0.1
    y = torch.empty(1000).uniform_(3.0, 4.0)
    assert float(y.min()) >= 3.0 and float(y.max()) <= 4.0


def test_the_default_dtype():
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.tensor(1.5).dtype is torch.float64
        assert (torch.arange(3) / 2).dtype is torch.float64
        assert repr(torch.tensor([1.5])) == "tensor([1.5000])"
    finally:
        torch.set_default_dtype(torch.float32)


def test_autocast():
    x, w = torch.ones(2, 3), torch.ones(3, 2, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.float16):
        out = x @ w
        assert out.dtype is torch.float16
        loss = nn.functional.mse_loss(out, torch.zeros(2, 2))
        assert loss.dtype is torch.float32
        with torch.autocast("cpu", enabled=False):
            assert (x @ w).dtype is torch.float32
    loss.backward()
    assert w.grad.dtype is torch.float32
    assert (x @ w).dtype is torch.float32
    with pytest.raises(RuntimeError, match="unsupported autocast device_type"):
        torch.autocast("toaster")
