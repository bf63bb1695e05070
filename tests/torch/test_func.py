"""Transforms of functions of tensors: torch.func, and functrans' own on tensors and arrays."""

import numpy as np
import pytest

import functrans
import functrans.torch as torch
from functrans.torch.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    vjp,
    vmap,
)


def close(tensor, expected, tolerance=1e-6):
    np.testing.assert_allclose(
        tensor.detach().numpy(), np.asarray(expected), rtol=tolerance, atol=tolerance
    )


def energy(x):
    return (x.sin() * x.pow(2)).sum(dim=0)


X = np.array([0.5, -1.0, 2.0])
SLOPE = np.cos(X) * X**2 + 2 * X * np.sin(X)
CURVE = -np.sin(X) * X**2 + 4 * X * np.cos(X) + 2 * np.sin(X)


def test_gradients_of_tensor_programs():
    x = torch.tensor(X)
    close(grad(energy)(x), SLOPE)
    gradient, value = grad_and_value(energy)(x)
    close(gradient, SLOPE)
    close(value, np.sum(np.sin(X) * X**2))
    gradient, aux = grad(lambda x: (energy(x), x * 2), has_aux=True)(x)
    close(aux, 2 * X)
    close(hessian(energy)(x), np.diag(CURVE))
    close(jacfwd(jacrev(energy))(x), np.diag(CURVE))
    _out, pullback = vjp(torch.sin, x)
    close(pullback(torch.ones(3, dtype=torch.float64))[0], np.cos(X))
    value, tangent = jvp(torch.sin, (x,), (torch.tensor(X),))
    close(tangent, np.cos(X) * X)
    value, linear = linearize(torch.sin, x)
    close(linear(torch.ones(3, dtype=torch.float64)), np.cos(X))


def test_several_arguments():
    a, b = torch.tensor(2.0), torch.tensor(3.0)
    by_a, by_b = grad(lambda a, b: a * b**2, argnums=(0, 1))(a, b)
    assert (by_a.item(), by_b.item()) == (9.0, 12.0)
    found = grad(lambda params: params["w"] * params["b"] ** 2)({"w": a, "b": b})
    assert {name: value.item() for name, value in found.items()} == {"w": 9.0, "b": 12.0}


def test_vmap():
    matrix = torch.tensor(np.arange(6.0).reshape(2, 3))
    close(vmap(torch.sum)(matrix), [3.0, 12.0])
    close(vmap(lambda row, w: row @ w, in_dims=(0, None))(matrix, torch.ones(3).double()), [3, 12])
    close(vmap(lambda c: c.sum(), in_dims=1)(matrix), [3.0, 5.0, 7.0])
    assert vmap(lambda r: r * 2, out_dims=1)(matrix).shape == (3, 2)
    close(vmap(torch.sum, chunk_size=1)(matrix), [3.0, 12.0])
    close(vmap(lambda r: r.clone().add_(1).masked_fill(r > 2, 0.0))(matrix), [[1, 2, 3], [0, 0, 0]])
    # Branches see the value of each lane.
    close(vmap(lambda r: r.sum() if r[0] > 1 else r.prod())(matrix), [0.0, 12.0])


def test_randomness_in_vmap():
    x = torch.zeros(4)
    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(lambda t: t + torch.rand(()))(x)
    same = vmap(lambda t: t + torch.rand(()), randomness="same")(x)
    assert len(set(same.tolist())) == 1
    different = vmap(lambda t: t + torch.rand(()), randomness="different")(x)
    assert len(set(different.tolist())) == 4
    with pytest.raises(RuntimeError, match="Only allowed values for randomness"):
        vmap(torch.sum, randomness="sometimes")


def test_transforms_inside_backward():
    """A transform of a tensor that requires grad is itself part of the graph."""
    x = torch.tensor(X, requires_grad=True)
    grad(energy)(x).sum().backward()
    close(x.grad, CURVE)
    w = torch.tensor(2.0, requires_grad=True)
    inner = grad(lambda t: (t**2 * w).sum())(torch.tensor([1.0, 3.0]))
    close(inner, [4.0, 12.0])
    inner.sum().backward()
    assert w.grad.item() == 8.0
    x.grad = None
    vmap(lambda t: t**3)(x).sum().backward()
    close(x.grad, 3 * X**2)


def test_functrans_transforms_take_tensors():
    x = torch.tensor(X)
    found = functrans.grad(energy)(x)
    assert isinstance(found, torch.Tensor)
    close(found, SLOPE)
    value, _gradient = functrans.value_and_grad(energy)(x)
    assert isinstance(value, torch.Tensor)
    close(functrans.vmap(lambda t: t * 2)(x), 2 * X)
    close(functrans.jacrev(torch.sin)(x), np.diag(np.cos(X)))
    close(functrans.hvp(energy, (x,), (torch.ones(3, dtype=torch.float64),)), CURVE)


def test_tensors_and_arrays_mix():
    t = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    close(t * np.ones(3), [1, 2, 3])
    close(np.ones(3) * t, [1, 2, 3])
    assert isinstance(np.sin(t), torch.Tensor)
    # An array that functrans differentiates meets a tensor, and becomes one.
    gradient = functrans.grad(lambda a: torch.sum(torch.as_tensor(a) * t))(np.zeros(3))
    np.testing.assert_allclose(gradient, [1, 2, 3])
    gradient = functrans.grad(lambda a: (a * t).sum())(np.zeros(3))
    np.testing.assert_allclose(gradient, [1, 2, 3])
    w = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    functrans.grad(lambda a: ((a * w) ** 2).sum())(torch.ones(3).double()).sum().backward()
    close(w.grad, [4.0, 8.0, 12.0])


def test_numpy_functions_on_tensors_are_differentiated():
    x = torch.tensor(X, requires_grad=True)
    np.sum(np.tanh(x) ** 2).backward()
    close(x.grad, 2 * np.tanh(X) * (1 - np.tanh(X) ** 2))


def test_functional_calls_and_ensembles():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    x = torch.randn(5, 3)
    params = {name: p.detach() for name, p in model.named_parameters()}

    def loss(params, x):
        return (functional_call(model, params, (x,)) ** 2).mean()

    found = grad(loss)(params, x)
    (model(x) ** 2).mean().backward()
    for name, parameter in model.named_parameters():
        close(found[name], parameter.grad.numpy(), 1e-5)
    assert model[0].weight.grad is not None  # the module has its own parameters again
    close(functional_call(model, {"nothing": x}, (x,)), model(x).detach().numpy())
    with pytest.raises(RuntimeError, match=r"unexpected keys \['nothing'\]"):
        functional_call(model, {"nothing": x}, (x,), strict=True)

    models = [torch.nn.Linear(3, 2) for _ in range(4)]
    stacked, buffers = stack_module_state(models)
    outputs = vmap(lambda p, x: functional_call(models[0], p, (x,)), in_dims=(0, None))(stacked, x)
    for k, each in enumerate(models):
        close(outputs[k], each(x).detach().numpy(), 1e-5)
    assert buffers == {}


def test_per_sample_gradients_of_a_module():
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 1)
    params = {name: p.detach() for name, p in model.named_parameters()}
    xs = torch.randn(6, 3)
    loss = lambda params, x: (functional_call(model, params, (x,)) ** 2).sum()
    found = vmap(grad(loss), in_dims=(None, 0))(params, xs)
    for k in range(6):
        close(found["weight"][k], grad(loss)(params, xs[k])["weight"].numpy(), 1e-5)


def test_what_belongs_to_a_transform_stays_in_it():
    kept = []
    grad(lambda x: (kept.append(x), (x * x).sum())[1])(torch.ones(2))
    with pytest.raises(functrans.errors.EscapedTracerError):
        kept[0] * 2
    with pytest.raises(RuntimeError, match="inside of a function being transformed"):
        grad(lambda x: x.requires_grad_().sum())(torch.ones(2))
    with pytest.raises(RuntimeError, match="inside of a function being transformed"):
        grad(lambda x: x.sum() * x.numpy().sum())(torch.ones(2))
    with pytest.raises(RuntimeError, match=r"use torch\.func\.grad or"):
        grad(lambda x: ((x * x).sum().backward(), x.sum())[1])(torch.ones(2))


def test_assignment_inside_a_transform():
    def f(x):
        y = torch.zeros(3)
        y[1:] = x
        y[0] = x[0] * x[1]
        y.mul_(2)
        return y.sum()

    close(grad(f)(torch.tensor([3.0, 5.0])), [12.0, 8.0])


def test_no_grad_inside_and_around_a_transform():
    def f(x):
        with torch.no_grad():
            c = x**2
        return (x * 3 - c).sum()

    close(grad(f)(torch.tensor([5.0])), [3.0])
    with torch.no_grad():  # around it: grad is asked for all the same
        close(grad(lambda x: (x**2).sum())(torch.tensor([5.0])), [10.0])
        assert not torch.ones(1, requires_grad=True).mul(2).requires_grad
    inner = lambda x: grad(lambda y: (y**3).sum())(x).sum()
    close(grad(inner)(torch.tensor([2.0])), [12.0])


def test_detach_inside_a_transform():
    close(grad(lambda x: (x * x.detach()).sum())(torch.tensor([3.0])), [3.0])


def test_per_sample_gradients_of_a_classifier():
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 4)
    params = {name: p.detach() for name, p in model.named_parameters()}
    xs, ys = torch.randn(5, 3), torch.tensor([0, 3, 1, -100, 2])

    def loss(params, x, y):
        out = functional_call(model, params, (x.unsqueeze(0),))
        return torch.nn.functional.cross_entropy(out, y.unsqueeze(0), reduction="sum")

    found = vmap(grad(loss), in_dims=(None, 0, 0))(params, xs, ys)
    for k in range(5):
        close(found["weight"][k], grad(loss)(params, xs[k], ys[k])["weight"].numpy(), 1e-5)
    assert float(found["weight"][3].abs().sum()) == 0.0


def test_staging_compiling_and_control_flow():
    x = torch.tensor(X)
    close(functrans.jit(functrans.grad(energy))(x), SLOPE)
    graph = functrans.make_graph(energy)(x)
    close(graph(x), np.sum(np.sin(X) * X**2))
    doubled = functrans.while_loop(lambda t: t.sum() < 100, lambda t: t * 2, torch.ones(3))
    close(doubled, [64.0, 64.0, 64.0])
    chosen = functrans.cond(x.sum() > 0, lambda t: t * 2, lambda t: t * 3, x)
    close(chosen, 2 * X)
    last, running = functrans.scan(lambda c, t: (c + t, c * t), torch.zeros((), dtype=x.dtype), x)
    close(last, X.sum())
    assert isinstance(running, torch.Tensor)
