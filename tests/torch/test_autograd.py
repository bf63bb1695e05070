"""The graph behind tensors: hooks, modes, freed graphs, in-place changes, functions of users' own."""

import gc
import sys
import threading
import tracemalloc
import warnings
import weakref

import numpy as np
import pytest

import functrans
import functrans.torch as torch
from functrans.torch.autograd import Function, forward_ad, functional, gradcheck, gradgradcheck
from functrans.torch.autograd.function import once_differentiable
from functrans.torch.utils.checkpoint import checkpoint, checkpoint_sequential


def close(tensor, expected, tolerance=1e-6):
    np.testing.assert_allclose(
        tensor.detach().numpy(), np.asarray(expected), rtol=tolerance, atol=tolerance
    )


def leaf(*values):
    return torch.tensor(list(values), dtype=torch.float64, requires_grad=True)


# Graphs live as long as tensors do.


@pytest.mark.slow
def test_a_million_operations_are_swept_and_freed_without_recursion():
    x = torch.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(1_000_000):
        y = y + 1
    y.backward()
    assert x.grad.item() == 1.0
    del y


def test_what_no_tensor_refers_to_is_freed():
    x = torch.ones(10, requires_grad=True)
    y = x.exp()
    record = weakref.ref(y.record)
    z = y * 2
    del y
    assert record() is not None
    del z
    assert record() is None


def test_backward_lets_go_of_saved_values_while_the_loss_lives():
    x = torch.ones(10, requires_grad=True)
    y = x.exp()
    saved = weakref.ref(y.value)
    loss = y.sum()
    del y
    gc.collect()
    assert saved() is not None
    loss.backward()
    assert saved() is None and loss.requires_grad


def test_linear_operations_can_be_swept_again():
    x = leaf(1.0, 2.0)
    y = (x + 3).sum()
    y.backward()
    y.backward()
    close(x.grad, [2.0, 2.0])


def test_retain_graph_defaults_to_create_graph():
    x = leaf(2.0)
    y = (x**3).sum()
    torch.autograd.grad(y, x, create_graph=True)
    torch.autograd.grad(y, x)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        torch.autograd.grad(y, x)


def test_an_error_leaves_gradients_as_they_were():
    x = leaf(2.0)
    y = (x**3).sum()
    y.backward()
    with pytest.raises(RuntimeError):
        y.backward()
    close(x.grad, [12.0])


def test_gradients_share_no_memory():
    x, y = leaf(1.0), leaf(1.0)
    seed = torch.ones(1, dtype=torch.float64)
    (x + y).backward(seed)
    x.grad.zero_()
    close(y.grad, [1.0])
    close(seed, [1.0])


def test_backward_for_some_inputs():
    x, w = leaf(2.0), leaf(3.0)
    y = x * w
    z = (y * y).sum()
    z.backward(inputs=[w, y])
    assert x.grad is None
    close(w.grad, [2 * 6 * 2])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        close(y.grad, [12.0])


def test_gradients_by_a_tensor_and_by_what_it_was_made_of():
    x = leaf(3.0)
    y = x * 2
    z = (y**2).sum()
    by_y, by_x = torch.autograd.grad(z, [y, x])
    close(by_y, [12.0])
    close(by_x, [24.0])


def test_batched_gradients():
    x = leaf(1.0, 2.0, 3.0)
    y = x**2
    (rows,) = torch.autograd.grad(
        y, x, torch.eye(3, dtype=torch.float64), is_grads_batched=True, retain_graph=True
    )
    close(rows, np.diag([2.0, 4.0, 6.0]))


def test_materialized_gradients():
    x, unused = leaf(1.0), leaf(1.0, 2.0)
    found = torch.autograd.grad((x * 2).sum(), [x, unused], materialize_grads=True)
    close(found[1], [0.0, 0.0])


def test_a_detached_twin_is_a_constant_in_second_derivatives():
    x = leaf(1.0, 2.0)
    y = torch.einsum("i,i,i->", x, x, x.detach())
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    close(h, [2.0, 4.0])  # the derivative of 2 x_i c_i, with c_i = x_i a constant

    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return 10 * g

    (g,) = torch.autograd.grad(torch.einsum("i,i->", x, Same.apply(x)), x, create_graph=True)
    close(g, [11.0, 22.0])
    close(torch.autograd.grad(g.sum(), x)[0], [20.0, 20.0])


# Hooks.


def test_tensor_hooks_replace_gradients_and_can_be_removed():
    x = leaf(1.0)
    y = x * 2
    handle = y.register_hook(lambda g: g * 10)
    (y * 3).sum().backward(retain_graph=True)
    close(x.grad, [60.0])
    handle.remove()
    x.grad = None
    (y * 3).sum().backward()
    close(x.grad, [6.0])


def test_hooks_outlive_their_tensor():
    x = leaf(1.0)
    seen = []

    def inner():
        y = x * 2
        y.register_hook(lambda g: seen.append(g.item()))
        return y * 3

    inner().sum().backward()
    assert seen == [3.0]


def test_hooks_on_leaves_and_after_accumulation():
    x = leaf(1.0)
    x.register_hook(lambda g: g + 1)
    seen = []
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.item()))
    (x * 2).sum().backward()
    (x * 2).sum().backward()
    assert seen == [3.0, 6.0]
    with pytest.raises(RuntimeError, match="non-leaf"):
        (x * 2).register_post_accumulate_grad_hook(print)


def test_hooks_on_nodes():
    x = leaf(2.0)
    y = x * 3
    z = (y + 1).sum()
    seen = []
    y.grad_fn.register_prehook(lambda outputs: seen.append(("before", outputs[0].item())))
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append(("after", inputs[0].item())))
    z.backward(retain_graph=True)
    assert seen == [("before", 1.0), ("after", 3.0)]
    # The number 3 has a place, too, and no gradient.
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 2, inputs[1]))
    x.grad = None
    z.backward(retain_graph=True)
    close(x.grad, [6.0])
    y.grad_fn.register_hook(lambda inputs, outputs: inputs[:1])
    with pytest.raises(RuntimeError, match=r"incorrect number of values \(got 1, but expected 2\)"):
        z.backward()


def test_retained_gradients_also_after_use():
    x = leaf(2.0)
    y = x * 3
    z = (y**2).sum()
    y.retain_grad()
    z.backward()
    close(y.grad, [12.0])


def test_nodes_show_what_they_are():
    x = torch.tensor(2.0, requires_grad=True)
    y = x * x
    node = y.grad_fn
    assert node is y.grad_fn and node.name() == "MulBackward0" and repr(node) == "<MulBackward0>"
    node.metadata["note"] = 1
    assert y.grad_fn.metadata == {"note": 1}
    assert node._saved_self.item() == 2.0 and node._saved_other.item() == 2.0
    y.backward()
    with pytest.raises(RuntimeError, match="directly access saved tensors"):
        node.saved_tensors


# Modes.


def test_modes_nest_and_decorate():
    x = leaf(1.0)

    @torch.no_grad
    def plain():
        with torch.enable_grad():
            inner = (x * 2).requires_grad
        return inner, (x * 2).requires_grad

    assert plain() == (True, False)

    @torch.inference_mode()
    def inferred():
        return (x * 2).is_inference(), torch.is_inference_mode_enabled()

    assert inferred() == (True, True)

    @torch.set_grad_enabled(False)
    def disabled():
        return torch.is_grad_enabled()

    assert torch.is_grad_enabled() and disabled() is False and torch.is_grad_enabled()


def test_a_mode_holds_while_a_generator_runs_and_not_while_its_user_does():
    @torch.no_grad()
    def counting():
        for k in range(2):
            got = yield k, torch.is_grad_enabled()
            assert got is None or got == "sent"
        return "end"

    generator = counting()
    assert next(generator) == (0, False)
    assert torch.is_grad_enabled()
    assert generator.send("sent") == (1, False)
    with pytest.raises(StopIteration) as stop:
        next(generator)
    assert stop.value.value == "end"


def test_modes_are_local_to_threads():
    seen = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: seen.append(torch.is_grad_enabled()))
        thread.start()
        thread.join()
        assert not torch.is_grad_enabled()
    assert seen == [True]


def test_a_mode_ends_with_an_exception():
    with pytest.raises(ValueError), torch.no_grad():
        raise ValueError
    assert torch.is_grad_enabled()


def test_inference_tensors_stay_out_of_autograd():
    x = leaf(1.0, 2.0)
    with torch.inference_mode():
        i = torch.ones(2, dtype=torch.float64)
        i.add_(1)
    with pytest.raises(RuntimeError, match="cannot be saved for backward"):
        x * i
    (x + i).sum().backward()  # nothing is saved
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        i.add_(1)
    with pytest.raises(RuntimeError, match="requires_grad=True on inference tensor"):
        i.requires_grad_()
    with pytest.raises(RuntimeError, match="do not track version counter"):
        i._version
    close(x * i.clone(), [2.0, 4.0])


def test_tensors_of_several_threads():
    x = leaf(1.0)
    results = []

    def work(factor):
        results.append(torch.autograd.grad((x * factor).sum(), x)[0].item())

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [0.0, 1.0, 2.0, 3.0]


# Changes in place.


def test_versions_count_changes_of_shared_memory():
    x = torch.zeros(3)
    view = x[1:]
    assert x._version == 0
    view.add_(1)
    x[0] = 5.0
    assert x._version == view._version == 2
    assert x.tolist() == [5.0, 1.0, 1.0]
    scalar = torch.tensor(1.0)
    scalar.add_(1)
    assert scalar._version == 1 and scalar.item() == 2.0


@pytest.mark.parametrize("shape", [(), (2,)])
def test_a_saved_value_that_was_changed_is_refused(shape):
    x = torch.ones(shape, requires_grad=True)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="output 0 of Exp, is at version 1; expected"):
        y.sum().backward()
    a = x * 1
    z = a * a
    a.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_a_constant_that_was_changed_is_refused():
    x = leaf(1.0, 2.0)
    b = torch.ones(2, dtype=torch.float64)
    z = (x * b).sum()
    b.add_(1)
    with pytest.raises(
        RuntimeError, match=r"DoubleTensor \[2\]\] is at version 1; expected version 0"
    ):
        z.backward()


def test_changes_before_recording_and_of_others_do_no_harm():
    x = leaf(1.0, 2.0)
    other = torch.zeros(2)
    other.add_(1)
    y = x.exp()
    other.add_(1)
    y.sum().backward()


def test_in_place_operations_are_differentiated():
    x = leaf(1.0, 2.0)
    y = x * 2
    y.mul_(x)
    y.add_(1).pow_(2)
    y.sum().backward()
    plain = x.detach().numpy()
    close(x.grad, 2 * (2 * plain**2 + 1) * 4 * plain)


def test_assignment_is_differentiated():
    x = leaf(1.0, 2.0, 3.0)
    y = torch.zeros(3, 2, dtype=torch.float64)
    y[:, 0] = x
    y[0, 1] = x[2] * 10
    y[torch.tensor([1, 2]), 1] = x[:2]
    y[y > 25] = 0.0
    assert y.requires_grad
    y.sum().backward()
    close(x.grad, [2.0, 2.0, 1.0])


def test_a_change_of_a_view_reaches_the_base_and_other_views():
    x = leaf(1.0, 2.0, 3.0, 4.0)
    y = x * 2
    square = y.view(2, 2)
    row, transposed = square[0], square.t()
    row.mul_(10)
    close(y, [20.0, 40.0, 6.0, 8.0])
    close(transposed, [[20.0, 6.0], [40.0, 8.0]])
    (transposed * torch.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    close(x.grad, [20.0, 60.0, 4.0, 8.0])


def test_a_base_becomes_differentiable_by_its_view():
    x = leaf(5.0)
    base = torch.zeros(3, dtype=torch.float64)
    base[1:2].copy_(x)
    assert base.requires_grad
    (base * torch.tensor([1.0, 10.0, 100.0], dtype=torch.float64)).sum().backward()
    close(x.grad, [10.0])


def test_leaves_must_not_be_changed_while_recording():
    x = leaf(1.0, 2.0)
    for change in (lambda: x.add_(1), lambda: x[0].mul_(2), lambda: x.__setitem__(0, 1.0)):
        with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
            change()
    close(x, [1.0, 2.0])
    with torch.no_grad():
        x.add_(1)
    close(x, [2.0, 3.0])


def test_a_detached_tensor_shares_memory():
    x = leaf(1.0, 2.0)
    x.detach()[0] = 7.0
    assert x[0].item() == 7.0
    scalar = torch.tensor(1.0, requires_grad=True)
    scalar.detach().fill_(3.0)
    assert scalar.item() == 3.0


def test_numpy_shares_memory():
    x = torch.zeros(3)
    x.numpy()[1] = 4.0
    assert x.tolist() == [0.0, 4.0, 0.0]
    array = np.zeros(2)
    t = torch.from_numpy(array)
    t.add_(1)
    assert array.tolist() == [1.0, 1.0]


def test_detach_in_place():
    x = leaf(1.0)
    y = x * 2
    y.detach_()
    assert not y.requires_grad and y.is_leaf


# Functions of users' own.


class Cube(Function):
    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        (x,) = inputs
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 3 * x**2

    @staticmethod
    def jvp(ctx, tangent):
        (x,) = ctx.saved_tensors
        return tangent * 3 * x**2


def test_functions_differentiate_twice():
    x = leaf(2.0, 3.0)
    assert gradcheck(Cube.apply, (x,)) and gradgradcheck(Cube.apply, (x,))
    y = Cube.apply(x)
    assert y.grad_fn.name() == "CubeBackward"
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    close(torch.autograd.grad(g.sum(), x)[0], [12.0, 18.0])


def test_functions_have_a_gradient_for_each_argument():
    class TimesSquare(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y**2

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * y**2, g * 2 * x * y

    x, y, weights = leaf(1.0, 2.0, 3.0), leaf(0.5, -1.0, 2.0), torch.tensor([1.0, 10.0, -2.0])
    assert gradcheck(TimesSquare.apply, (x, y)) and gradgradcheck(TimesSquare.apply, (x, y))
    TimesSquare.apply(x, y).backward(weights)
    close(x.grad, [0.25, 10.0, -8.0])
    close(y.grad, [1.0, -40.0, -24.0])
    (alone,) = torch.autograd.grad(TimesSquare.apply(x.detach(), y), y, weights)
    close(alone, y.grad)


def test_functions_under_transforms():
    x = torch.tensor([2.0, 3.0])
    total = lambda x: Cube.apply(x).sum()
    close(torch.func.grad(total)(x), [12.0, 27.0])
    close(torch.func.grad(lambda x: torch.func.grad(total)(x).sum())(x), [12.0, 18.0])
    close(torch.func.vmap(torch.func.grad(Cube.apply))(x), [12.0, 27.0])
    close(torch.func.jacrev(Cube.apply)(x), np.diag([12.0, 27.0]))
    _value, tangent = torch.func.jvp(Cube.apply, (x,), (torch.ones(2),))
    close(tangent, [12.0, 27.0])


def test_a_rule_for_vmap_of_the_users_own():
    class Row(Function):
        @staticmethod
        def forward(x, scale):
            raise AssertionError("vmap is to be asked")

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, in_dims, x, scale):
            assert info.batch_size == 2 and in_dims == (0, None)
            return (x * scale).movedim(0, 1), 1

    found = torch.func.vmap(lambda x: Row.apply(x, 3.0) + 1)(torch.arange(6.0).reshape(2, 3))
    close(found, [[1, 4, 7], [10, 13, 16]])


def test_a_saved_output_makes_no_cycle():
    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            out = x.exp()
            ctx.save_for_backward(out)
            return out

        @staticmethod
        def backward(ctx, grad_output):
            (out,) = ctx.saved_tensors
            return grad_output * out

    x = leaf(0.5)
    assert gradgradcheck(Exp.apply, (x,))
    y = Exp.apply(x)
    record = weakref.ref(y.record)
    gc.disable()
    try:
        del y
        assert record() is None
    finally:
        gc.enable()


def test_several_outputs_and_options():
    class Both(Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.scale = scale
            ctx.set_materialize_grads(False)
            count = torch.tensor([len(x)])
            ctx.mark_non_differentiable(count)
            return x * scale, x + scale, count

        @staticmethod
        def backward(ctx, first, second, count):
            assert ctx.needs_input_grad == (True, False)
            assert second is None
            return first * ctx.scale, None

    x = leaf(1.0, 2.0)
    first, second, count = Both.apply(x, 3.0)
    assert second.requires_grad and not count.requires_grad
    first.sum().backward()
    close(x.grad, [3.0, 3.0])


def test_dirty_inputs():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * 2

    x = leaf(1.0)
    y = x * 3
    z = Double.apply(y)
    assert z is y and y.item() == 6.0
    y.sum().backward()
    close(x.grad, [6.0])


def test_once_differentiable():
    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return 2 * x * grad_output

    x = leaf(3.0)
    y = Twice.apply(x * 1)
    (g,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="marked with @once_differentiable"):
        g.sum().backward()


def test_saved_tensors_are_freed_and_checked():
    x = leaf(1.0)
    a = x * 1
    y = Cube.apply(a)
    a.add_(1)
    with pytest.raises(RuntimeError, match="is at version 1; expected version 0"):
        y.sum().backward()
    y = Cube.apply(x)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.sum().backward()


# Checks and tools.


class WrongCube(Cube):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x**2


def test_gradcheck_shows_both_jacobians():
    x = leaf(1.0, 2.0)
    with pytest.raises(torch.autograd.GradcheckError) as error:
        gradcheck(WrongCube.apply, (x,))
    text = str(error.value)
    assert "Jacobian mismatch for output 0 with respect to input 0" in text
    assert "numerical:tensor([[ 3.0000,  0.0000]" in text
    assert "analytical:tensor([[2., 0.]" in text
    assert not gradcheck(WrongCube.apply, (x,), raise_exception=False)
    with pytest.warns(UserWarning, match="not a double precision"):
        gradcheck(lambda x: x, torch.ones(1, requires_grad=True), atol=0.1)
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(lambda x: x, torch.ones(1))


def test_saved_tensor_hooks():
    x = leaf(1.0, 2.0)
    packed = []

    def pack(t):
        packed.append(t.shape)
        return t.numpy().tobytes()

    def unpack(data):
        return torch.from_numpy(np.frombuffer(data).copy())

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = (x.exp() * x).sum()
    assert packed
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    plain = np.array([1.0, 2.0])
    close(g, np.exp(plain) * (1 + plain))
    close(torch.autograd.grad(g.sum(), x)[0], np.exp(plain) * (2 + plain))


def test_forward_mode_levels():
    with forward_ad.dual_level():
        x = forward_ad.make_dual(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.0]))
        y = (x**2).sum()
        assert forward_ad.unpack_dual(y).tangent.item() == 2.0
        assert forward_ad.unpack_dual(torch.ones(1)).tangent is None
        with pytest.raises(RuntimeError, match="Nested forward mode"), forward_ad.dual_level():
            pass
    with pytest.raises(RuntimeError, match="no level exists"):
        forward_ad.make_dual(torch.ones(1), torch.ones(1))
    with pytest.raises(functrans.errors.EscapedTracerError):
        y * 2


def test_functional_api():
    x, v = torch.tensor([1.0, 2.0]), torch.tensor([1.0, -1.0])
    f = lambda x: (x**3).sum()
    close(functional.jacobian(lambda x: x**2, x), np.diag([2.0, 4.0]))
    both = functional.jacobian(lambda x, y: x * y, (x, v))
    close(both[0], np.diag([1.0, -1.0]))
    close(both[1], np.diag([1.0, 2.0]))
    close(functional.hessian(f, x), np.diag([6.0, 12.0]))
    value, product = functional.hvp(f, x, v)
    assert value.item() == 9.0
    close(product, [6.0, -12.0])
    close(functional.vhp(f, x, v)[1], [6.0, -12.0])
    close(functional.vjp(lambda x: x**2, x, v)[1], [2.0, -4.0])
    close(functional.jvp(lambda x: x**2, x, v)[1], [2.0, -4.0])
    close(functional.jacobian(lambda x: x**2, x, strategy="forward-mode"), np.diag([2.0, 4.0]))
    y = leaf(2.0)
    found = functional.jacobian(lambda x: x**3, y, create_graph=True)
    close(torch.autograd.grad(found.sum(), y)[0], [12.0])


def test_checkpoints_keep_less_and_give_the_same():
    weights = [torch.randn(50, 50, requires_grad=True) for _ in range(12)]
    x = torch.randn(2000, 50)

    def layer(weight):
        return lambda x: torch.tanh(torch.tanh(torch.tanh(x @ weight * 0.1) * 2) * 3)

    def run(wrap):
        gc.collect()
        tracemalloc.start()
        out = x
        for weight in weights:
            out = wrap(layer(weight), out)
        held = tracemalloc.get_traced_memory()[0]
        out.sum().backward()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        gradients = [weight.grad for weight in weights]
        for weight in weights:
            weight.grad = None
        return held, peak, gradients

    plain = run(lambda f, x: f(x))
    saved = run(lambda f, x: checkpoint(f, x, use_reentrant=False))
    assert saved[0] < 0.45 * plain[0] and saved[1] < 0.6 * plain[1]
    for a, b in zip(plain[2], saved[2], strict=True):
        close(a, b.numpy(), 1e-4)


def test_checkpoints_in_higher_derivatives_and_of_sequences():
    x = leaf(0.5)
    f = lambda x: checkpoint(lambda t: t.exp().sin(), x, use_reentrant=False)
    assert gradcheck(f, (x,)) and gradgradcheck(f, (x,))
    model = torch.nn.Sequential(*(torch.nn.Linear(3, 3) for _ in range(4)))
    data = torch.ones(2, 3)
    close(checkpoint_sequential(model, 2, data), model(data).detach().numpy())
    close(
        torch.func.grad(lambda t: f(t).sum())(torch.tensor([0.5])),
        np.exp(0.5) * np.cos(np.exp(0.5)),
    )


def test_a_checkpoint_draws_the_same_numbers_again():
    x = torch.ones(1000, requires_grad=True)
    y = checkpoint(lambda t: torch.nn.functional.dropout(t, 0.5), x, use_reentrant=False)
    y.sum().backward()
    close(x.grad, y.detach().numpy())


def test_reading_n_entries_costs_n():
    import time

    def cost(n):
        x = torch.ones(n, requires_grad=True)
        start = time.perf_counter()
        total = 0.0
        for k in range(n):
            total = total + x[k] * x[k]
        total.backward()
        return time.perf_counter() - start

    cost(100)
    assert cost(8000) < 12 * cost(2000)


def test_the_tape_is_imported_on_use_only():
    import subprocess

    code = "import functrans, sys; sys.exit('functrans.torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
