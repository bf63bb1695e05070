"""Training runs from the same weights on the same data: the loss curve is PyTorch's."""

import warnings

import numpy as np
import pytest

import functrans.torch as ours
from tests.support.torch_peer import pytorch

theirs = pytorch()
pytestmark = pytest.mark.peers

STEPS = 50


def copy_weights(source, target):
    state = {name: value.detach().numpy().copy() for name, value in source.state_dict().items()}
    target.load_state_dict({name: ours.tensor(value) for name, value in state.items()})


def curve(torch, model, loss, optimizer, inputs, targets):
    found = []
    x, y = torch.tensor(inputs), torch.tensor(targets)
    for _ in range(STEPS):
        optimizer.zero_grad()
        value = loss(model(x), y)
        value.backward()
        optimizer.step()
        found.append(value.item())
    return np.array(found)


def compare(build, loss, make_optimizer, inputs, targets, *, weights=True):
    theirs.set_num_threads(1)
    theirs.manual_seed(0)
    reference, model = build(theirs), build(ours)
    copy_weights(reference, model)
    curves = [
        curve(torch, m, loss(torch), make_optimizer(torch, m.parameters()), inputs, targets)
        for torch, m in ((theirs, reference), (ours, model))
    ]
    np.testing.assert_allclose(curves[1], curves[0], rtol=1e-4, atol=1e-4)
    assert curves[1][-1] < curves[1][0]
    if not weights:
        return
    for (name, a), (other, b) in zip(
        reference.state_dict().items(), model.state_dict().items(), strict=True
    ):
        assert name == other
        np.testing.assert_allclose(b.detach().numpy(), a.detach().numpy(), rtol=1e-2, atol=1e-3)


def data(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def classes(count, kinds, seed=1):
    return np.random.default_rng(seed).integers(0, kinds, count)


OPTIMIZERS = {
    "sgd": lambda torch, p: torch.optim.SGD(p, lr=0.05),
    "momentum": lambda torch, p: torch.optim.SGD(p, lr=0.02, momentum=0.9, weight_decay=1e-3),
    "nesterov": lambda torch, p: torch.optim.SGD(p, lr=0.02, momentum=0.9, nesterov=True),
    "adam": lambda torch, p: torch.optim.Adam(p, lr=0.01, weight_decay=1e-3),
    "amsgrad": lambda torch, p: torch.optim.Adam(p, lr=0.01, amsgrad=True),
    "adamw": lambda torch, p: torch.optim.AdamW(p, lr=0.01),
    "rmsprop": lambda torch, p: torch.optim.RMSprop(p, lr=0.005, momentum=0.5, centered=True),
    "adagrad": lambda torch, p: torch.optim.Adagrad(p, lr=0.05),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_linear_regression(name):
    x = data(64, 3)
    y = x @ np.array([[1.0], [-2.0], [0.5]], np.float32) + 0.1 * data(64, 1, seed=2)
    compare(
        lambda torch: torch.nn.Linear(3, 1),
        lambda torch: torch.nn.MSELoss(),
        OPTIMIZERS[name],
        x,
        y.astype(np.float32),
    )


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam", "adamw"])
def test_mlp_classifier(name):
    def build(torch):
        nn = torch.nn
        return nn.Sequential(
            nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 3)
        )

    compare(
        build,
        lambda torch: torch.nn.CrossEntropyLoss(),
        OPTIMIZERS[name],
        data(60, 4),
        classes(60, 3),
    )


def test_small_cnn():
    def build(torch):
        nn = torch.nn
        return nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(4, 6, 3),
            nn.GELU(),
            nn.Flatten(),
            nn.Linear(6 * 2 * 2, 3),
        )

    compare(
        build,
        lambda torch: torch.nn.CrossEntropyLoss(),
        OPTIMIZERS["momentum"],
        data(24, 1, 8, 8),
        classes(24, 3),
    )


def recurrent(kind, **options):
    def build(torch):
        class Last(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn = getattr(torch.nn, kind)(3, 8, batch_first=True, **options)
                self.head = torch.nn.Linear(8 * (2 if options.get("bidirectional") else 1), 2)

            def forward(self, x):
                out, _ = self.rnn(x)
                return self.head(out[:, -1])

        return Last()

    return build


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("LSTM", {}),
        ("LSTM", {"num_layers": 2, "bidirectional": True}),
        ("GRU", {"num_layers": 2}),
        ("RNN", {}),
        ("RNN", {"nonlinearity": "relu"}),
    ],
)
def test_recurrent(kind, options):
    compare(
        recurrent(kind, **options),
        lambda torch: torch.nn.CrossEntropyLoss(),
        OPTIMIZERS["adam"],
        data(16, 6, 3),
        classes(16, 2),
    )


@pytest.mark.parametrize("norm_first", [False, True])
def test_one_layer_transformer(norm_first):
    def build(torch):
        class Classifier(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.TransformerEncoderLayer(
                    8, 2, 16, dropout=0.0, batch_first=True, norm_first=norm_first
                )
                self.head = torch.nn.Linear(8, 3)

            def forward(self, x):
                return self.head(self.layer(x).mean(1))

        return Classifier()

    compare(
        build,
        lambda torch: torch.nn.CrossEntropyLoss(),
        OPTIMIZERS["adamw"],
        data(20, 5, 8),
        classes(20, 3),
        weights=False,  # the bias of keys has gradient 0 but for rounding, which Adam scales up
    )


def test_batch_norm():
    def build(torch):
        nn = torch.nn
        return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))

    compare(
        build,
        lambda torch: torch.nn.HuberLoss(delta=0.5),
        OPTIMIZERS["sgd"],
        data(32, 4),
        data(32, 1, seed=3),
    )


def test_embedding_and_layer_norm():
    def build(torch):
        nn = torch.nn
        return nn.Sequential(nn.Embedding(7, 4), nn.LayerNorm(4), nn.Flatten(), nn.Linear(12, 2))

    compare(
        build,
        lambda torch: torch.nn.BCEWithLogitsLoss(),
        OPTIMIZERS["adam"],
        classes((16, 3), 7),
        (data(16, 2) > 0).astype(np.float32),
    )


def test_lbfgs():
    def losses(torch):
        x = torch.tensor([-1.2, 1.0, 0.5], dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.LBFGS([x], lr=0.5, max_iter=5)
        found = []

        def closure():
            optimizer.zero_grad()
            loss = ((1 - x[:-1]) ** 2 + 2 * (x[1:] - x[:-1] ** 2) ** 2).sum()
            loss.backward()
            return loss

        for _ in range(10):
            found.append(optimizer.step(closure).item())
        return np.array(found)

    np.testing.assert_allclose(losses(ours), losses(theirs), rtol=1e-6, atol=1e-12)


def test_lbfgs_with_a_line_search_finds_the_minimum():
    x = ours.tensor([-1.2, 1.0], dtype=ours.float64, requires_grad=True)
    optimizer = ours.optim.LBFGS([x], max_iter=100, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)
    np.testing.assert_allclose(x.detach().numpy(), [1.0, 1.0], atol=1e-5)


@pytest.mark.parametrize(
    "make",
    [
        lambda torch, o: torch.optim.lr_scheduler.StepLR(o, 3, 0.5),
        lambda torch, o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 7, 0.1),
        lambda torch, o: torch.optim.lr_scheduler.ExponentialLR(o, 0.9),
        lambda torch, o: torch.optim.lr_scheduler.MultiStepLR(o, [2, 5], 0.1),
        lambda torch, o: torch.optim.lr_scheduler.LambdaLR(o, lambda epoch: 1 / (1 + epoch)),
    ],
)
def test_learning_rates(make):
    def rates(torch):
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        scheduler = make(torch, optimizer)
        found = []
        for _ in range(12):
            optimizer.step()
            scheduler.step()
            found.append(optimizer.param_groups[0]["lr"])
        return found

    np.testing.assert_allclose(rates(ours), rates(theirs), rtol=1e-9)


@pytest.mark.parametrize("masked", [False, True])
def test_attention_weights_and_masks(masked):
    theirs.manual_seed(0)
    reference = theirs.nn.MultiheadAttention(8, 2, batch_first=True)
    module = ours.nn.MultiheadAttention(8, 2, batch_first=True)
    copy_weights(reference, module)
    x = data(3, 5, 8)

    def call(torch, attention):
        options = {}
        if masked:
            options["attn_mask"] = torch.triu(torch.ones(5, 5), 1).bool()
            options["key_padding_mask"] = torch.tensor([[False] * 4 + [True]] * 3)
        return attention(*[torch.tensor(x)] * 3, **options)

    for a, b in zip(call(theirs, reference), call(ours, module), strict=True):
        np.testing.assert_allclose(b.detach().numpy(), a.detach().numpy(), atol=1e-5)


def test_grad_scaler_and_clipping():
    def run(torch):
        x = torch.tensor([1.0, -2.0], requires_grad=True)
        optimizer = torch.optim.SGD([x], lr=0.1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)
        seen = []
        for factor in (1.0, 1.0, float("inf"), 1.0):
            optimizer.zero_grad()
            scaler.scale((x * x * factor).sum()).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_([x], 0.5)
            scaler.step(optimizer)
            scaler.update()
            seen.append((x.tolist(), scaler.get_scale()))
        return seen

    for (a, scale), (b, other) in zip(run(theirs), run(ours), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-6)
        assert scale == other
