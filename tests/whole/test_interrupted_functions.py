"""An exception in the middle of a transform leaves nothing behind: the next call is right.

Each entry of PLACES raises at one place of the library that calls code of the user's.
"""

import itertools
import sys

import numpy as np
import pytest

import functrans as ft
import functrans.torch as torch
from functrans.core import dispatch
from functrans.core.custody import watched_count
from functrans.interpreters import stage
from functrans.torch.tape import MODE

LARGE = np.ones(20_000)  # an array of this size is watched until its tape is done with
X = np.array([0.5, 1.5, 2.5])
ROWS = np.arange(3.0)


class Fuse:
    """Raises at its k-th call and all later ones; before that, it lets its argument pass."""

    def __init__(self, error, calls=1):
        self.error, self.left = error, calls

    def __call__(self, x=None):
        self.left -= 1
        if self.left <= 0:
            raise self.error
        return x

    def mend(self):
        self.left = float("inf")


def after(fuse, x):
    """Some arithmetic, and then the exception."""
    return fuse(np.sin(x) * np.sum(LARGE) + x)


def _custom_vjp(forward, backward):
    function = ft.custom_vjp(lambda x: x * 2)
    function.defvjp(lambda x: (forward(x * 2), None), lambda residuals, g: (backward(g * 2),))
    return function


def _custom_jvp(rule):
    function = ft.custom_jvp(lambda x: x * 2)
    function.defjvp(lambda primals, tangents: (primals[0] * 2, rule(tangents[0] * 2)))
    return function


def _identity(x):
    return x


def _total(x):
    return np.sum(x * x)


def _primitive(**rules):
    given = {"impl": np.exp, "jvp": lambda out, x, t: out * t[0], "shape": _identity, **rules}
    return ft.define_primitive("burning", **given)


def _generator_left_open(fuse):
    """A generator that is not run to its end holds a transform that was begun later."""

    def numbers():
        yield 1.0
        yield ft.grad(lambda x: after(fuse, x))(1.0)

    source = numbers()
    next(source)
    ft.grad(lambda x: x * next(source))(2.0)


def _suspended(fuse):
    """A transform that is inside of a generator when this is closed: GeneratorExit."""

    def steps():
        with ft.detect_anomaly():
            yield ft.grad(np.sin)(1.0)
            yield fuse(2.0)

    run = steps()
    next(run)
    run.close()
    fuse()


def _solved(matvec):
    return ft.linear_solve(matvec, X, lambda operator, b: operator(b) / 4)


TRANSFORMS = {
    "grad": lambda f: ft.grad(lambda x: np.sum(f(x)))(X),
    "value_and_grad": lambda f: ft.value_and_grad(lambda x: np.sum(f(x)))(X),
    "grad of grad": lambda f: ft.grad(ft.grad(f))(2.0),
    "grad of a loss around grad": lambda f: ft.grad(lambda x: x * ft.grad(f)(x))(2.0),
    "jvp": lambda f: ft.jvp(f, (X,), (X,)),
    "vjp": lambda f: ft.vjp(f, X),
    "linearize": lambda f: ft.linearize(f, X),
    "linear_transpose": lambda f: ft.linear_transpose(f, X),
    "jacfwd": lambda f: ft.jacfwd(f)(X),
    "jacrev": lambda f: ft.jacrev(f)(X),
    "hessian": lambda f: ft.hessian(lambda x: np.sum(f(x)))(X),
    "hvp": lambda f: ft.hvp(lambda x: np.sum(f(x)), (X,), (X,)),
    "vmap": lambda f: ft.vmap(f)(X),
    "vmap of a named axis": lambda f: ft.vmap(lambda x: f(ft.psum(x, "i")), axis_name="i")(X),
    "vmap in chunks": lambda f: ft.vmap(f, chunk_size=2)(X),
    "vmap of grad": lambda f: ft.vmap(ft.grad(f))(X),
    "a later branch of vmap": lambda f: ft.vmap(lambda x: f(x) if x > 1 else x)(X),
    "make_graph": lambda f: ft.make_graph(f)(X),
    "eval_shape": lambda f: ft.eval_shape(f, X),
    "source": lambda f: ft.source(f)(X),
    "jit": lambda f: ft.jit(f)(X),
    "jit by NumPy": lambda f: ft.jit(f, backend="numpy")(X),
    "jit of grad": lambda f: ft.jit(ft.grad(lambda x: np.sum(f(x))))(X),
    "grad of jit": lambda f: ft.grad(ft.jit(lambda x: np.sum(f(x))))(X),
    "checkpoint": lambda f: ft.grad(ft.checkpoint(lambda x: np.sum(f(x))))(X),
    "cond": lambda f: ft.grad(lambda x: ft.cond(x > 0, f, _identity, x))(2.0),
    "cond of lanes": lambda f: ft.vmap(lambda x: ft.cond(x > 1, f, _identity, x))(X),
    "switch": lambda f: ft.jit(lambda i: ft.switch(i, [_identity, f], 2.0))(1),
    "scan": lambda f: ft.scan(lambda c, x: (f(c), x), 1.0, ROWS),
    "scan staged": lambda f: ft.jit(lambda x: ft.scan(lambda c, r: (f(c), r), x, ROWS))(1.0),
    "grad of scan": lambda f: ft.grad(lambda x: ft.scan(lambda c, r: (f(c), r), x, ROWS)[0])(1.0),
    "vmap of scan": lambda f: ft.vmap(lambda x: ft.scan(lambda c, r: (f(c), r), x, ROWS)[0])(X),
    "while_loop": lambda f: ft.while_loop(lambda x: x < 9, f, 1.0),
    "the test of while_loop": lambda f: ft.while_loop(lambda x: f(x) > 0, _identity, 1.0),
    "while_loop of lanes": lambda f: ft.vmap(lambda x: ft.while_loop(lambda y: y < 9, f, x))(X),
    "fori_loop": lambda f: ft.grad(lambda x: ft.fori_loop(0, 3, lambda i, c: f(c), x))(1.0),
    "map": lambda f: ft.map(f, X),
    "associative_scan": lambda f: ft.associative_scan(lambda a, b: f(a + b), X),
    "cg": lambda f: ft.cg(f, X),
    "gmres": lambda f: ft.gmres(f, X),
    "bicgstab": lambda f: ft.bicgstab(f, X),
    "linear_solve": _solved,
    "fixed_point": lambda f: ft.fixed_point(f, X),
    "custom_root": lambda f: ft.custom_root(f, X, lambda g, x: x - g(x)),
    "the solver of custom_root": lambda f: ft.custom_root(_identity, X, lambda g, x: f(g(x))),
    "odeint": lambda f: ft.odeint(lambda y, t: f(y), 1.0, ROWS),
    "grad of odeint": lambda f: ft.grad(lambda x: ft.odeint(lambda y, t: f(y), x, ROWS)[-1])(1.0),
    "pure_callback": lambda f: ft.jit(lambda x: ft.pure_callback(f, ft.ArraySpec((3,), float), x))(
        X
    ),
    "tap": lambda f: ft.jit(lambda x: ft.tap(x, f))(X),
    "check_derivatives": lambda f: ft.check_derivatives(f, (X,)),
    "profile": lambda f: ft.profile(ft.grad(lambda x: np.sum(f(x))))(X),
    "detect_anomaly": lambda f: ft.detect_anomaly()(ft.grad(lambda x: np.sum(f(x))))(X),
    "detect_anomaly of jit": lambda f: ft.detect_anomaly()(ft.jit(f))(X),
    "custom_vjp, forward": lambda f: ft.grad(_custom_vjp(f, _identity))(2.0),
    "custom_vjp, backward": lambda f: ft.grad(_custom_vjp(_identity, f))(2.0),
    "custom_vjp, backward in jit": lambda f: ft.jit(ft.grad(_custom_vjp(_identity, f)))(2.0),
    "custom_vjp, backward of lanes": lambda f: ft.vmap(ft.grad(_custom_vjp(_identity, f)))(X),
    "custom_jvp, forward mode": lambda f: ft.jvp(_custom_jvp(f), (2.0,), (1.0,)),
    "custom_jvp, reverse mode": lambda f: ft.grad(_custom_jvp(f))(2.0),
    "a rule in a scan": lambda f: ft.grad(
        lambda x: ft.scan(lambda c, r: (_custom_vjp(_identity, f)(c), r), x, ROWS)[0]
    )(1.0),
    "a pullback": lambda f: ft.vjp(_custom_vjp(_identity, f), X)[1](X),
    "a primitive": lambda f: ft.grad(_primitive(impl=lambda x: f(np.exp(x))))(2.0),
    "the rule of a primitive": lambda f: ft.grad(_primitive(jvp=lambda out, x, t: f(out * t[0])))(
        2.0
    ),
    "a pytree": lambda f: ft.tree.map(f, {"a": X}),
}


def _second_run(fuse):
    fuse.left = 2
    burning = _primitive(impl=lambda x: fuse(np.exp(x)))
    ft.grad(ft.checkpoint(lambda x: np.sum(burning(np.sin(x)) ** 2)))(X)


# Exceptions in the contexts and hooks of tensors.


def _leaf():
    return torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)


def _within(context):
    def place(fuse):
        with context():
            fuse((_leaf() * 2).sum())

    return place


def _tensor_hook(fuse):
    y = _leaf() * 2
    y.register_hook(lambda g: fuse(g))
    y.sum().backward()


def _leaf_hook(fuse):
    x = _leaf()
    x.register_post_accumulate_grad_hook(lambda t: fuse())
    (x * 2).sum().backward()


def _function(forward, backward):
    class Burning(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return forward(x * 2)

        @staticmethod
        def backward(ctx, g):
            return backward(g * 2)

    Burning.apply(_leaf()).sum().backward()


def _functional_call(fuse):
    torch.func.functional_call(LAYER, {"weight": torch.zeros(1, 2)}, fuse(torch.ones(1, 2)))


class _Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1, 2))
        self.fuse = None

    def forward(self, x):
        y = x @ self.weight.T
        return y if self.fuse is None else self.fuse(y)


LAYER = _Layer()


def _swapped_parameters(fuse):
    LAYER.fuse = fuse
    try:
        torch.func.functional_call(LAYER, {"weight": torch.zeros(1, 2)}, torch.ones(1, 2))
    finally:
        LAYER.fuse = None


def _module_hook(fuse):
    layer = torch.nn.Linear(2, 1)
    layer.register_forward_hook(lambda module, args, out: fuse(out))
    layer(torch.ones(1, 2))


def _recomputed(fuse):
    fuse.left = 2
    out = torch.utils.checkpoint.checkpoint(lambda t: fuse(t.sin()), _leaf(), use_reentrant=False)
    out.sum().backward()


def _closure(fuse):
    x = _leaf()
    torch.optim.SGD([x], lr=0.1).step(lambda: fuse((x * 2).sum()))


def _packing(fuse):
    with torch.autograd.graph.saved_tensors_hooks(fuse, _identity):
        _leaf().exp()


def _unpacking(fuse):
    with torch.autograd.graph.saved_tensors_hooks(_identity, fuse):
        y = _leaf().exp().sum()
    y.backward()


TENSORS = {
    "torch.func.grad": lambda fuse: torch.func.grad(lambda t: fuse(t.sin().sum()))(torch.ones(3)),
    "torch.func.vmap": lambda fuse: torch.func.vmap(lambda t: fuse(t.sin()))(torch.ones(3)),
    "no_grad": _within(torch.no_grad),
    "enable_grad": _within(torch.enable_grad),
    "set_grad_enabled": _within(lambda: torch.set_grad_enabled(False)),
    "inference_mode": _within(torch.inference_mode),
    "autocast": _within(lambda: torch.autocast("cpu", dtype=torch.float16)),
    "torch.autograd.detect_anomaly": _within(torch.autograd.detect_anomaly),
    "torch.autograd.profiler.profile": _within(torch.autograd.profiler.profile),
    "dual_level": _within(torch.autograd.forward_ad.dual_level),
    "saved_tensors_hooks": _within(
        lambda: torch.autograd.graph.saved_tensors_hooks(_identity, _identity)
    ),
    "packing": _packing,
    "unpacking": _unpacking,
    "a hook of a tensor": _tensor_hook,
    "a hook of a leaf": _leaf_hook,
    "Function.forward": lambda fuse: _function(fuse, _identity),
    "Function.backward": lambda fuse: _function(_identity, fuse),
    "functional_call": _functional_call,
    "functional_call, inside": _swapped_parameters,
    "a hook of a module": _module_hook,
    "the second run of torch's checkpoint": _recomputed,
    "a closure of an optimizer": _closure,
}

PLACES = {
    **{
        name: (lambda fuse, run=run: run(lambda x: after(fuse, x)))
        for name, run in TRANSFORMS.items()
    },
    "the second run of a checkpoint": _second_run,
    "a generator within": _generator_left_open,
    "a generator that is closed": _suspended,
    **TENSORS,
}


def state():
    """All that a thread remembers between calls."""
    modes = [
        getattr(MODE, name)
        for name in ("enabled", "silenced", "inference", "autocast", "observers")
    ]
    return (
        list(dispatch.running_interpreters()),
        dispatch.is_anything_running(),
        dispatch.watcher(),
        watched_count(),
        modes,
        torch.is_anomaly_enabled(),
        np.geterr(),
        LAYER.weight.detach().numpy().tolist(),
    )


def check_answers():
    """One call of each transform that keeps something while it runs."""
    np.testing.assert_allclose(ft.grad(_total)(X), 2 * X)
    np.testing.assert_allclose(ft.jvp(np.sin, (X,), (X,))[1], X * np.cos(X))
    np.testing.assert_allclose(ft.hessian(_total)(X), 2 * np.eye(3))
    np.testing.assert_allclose(
        ft.vmap(lambda x: (x if x > 1 else -x) * 2)(X), np.where(X > 1, X, -X) * 2
    )
    np.testing.assert_allclose(ft.vmap(lambda x: ft.psum(x, "i"), axis_name="i")(X), [4.5] * 3)
    np.testing.assert_allclose(ft.jit(ft.grad(_total), backend="numpy")(X), 2 * X)
    np.testing.assert_allclose(ft.grad(ft.checkpoint(_total))(X), 2 * X)
    assert ft.scan(lambda c, r: (c + r, None), 0.0, ROWS)[0] == 3
    x = _leaf()
    (x * x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [2.0, 4.0])


class Unusual(BaseException):
    """Not an Exception: code that catches those does not see it."""


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, GeneratorExit, Unusual])
@pytest.mark.parametrize("place", PLACES)
def test_an_exception_leaves_nothing_behind(place, error):
    before = state()
    raised = error("burnt")
    fuse = Fuse(raised)
    with pytest.raises(error) as caught:
        PLACES[place](fuse)
    assert caught.value is raised
    assert fuse.left <= 0
    assert state() == before
    check_answers()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_compiled_function_works_after_its_trace_failed(error):
    fuse = Fuse(error("burnt"))
    for backend in ("auto", "numpy"):
        function = ft.jit(lambda x: fuse(x * x), backend=backend)
        fuse.left = 1
        with pytest.raises(error):
            function(X)
        fuse.mend()
        np.testing.assert_allclose(function(X), X * X)
        np.testing.assert_allclose(ft.jacrev(function)(X), np.diag(2 * X))


def test_a_pullback_works_after_it_failed():
    fuse = Fuse(ValueError("burnt"))
    _, pull = ft.vjp(_custom_vjp(_identity, fuse), X)
    with pytest.raises(ValueError, match="burnt"):
        pull(X)
    fuse.mend()
    np.testing.assert_allclose(pull(X)[0], 2 * X)


def test_a_backward_pass_after_one_that_failed():
    x = _leaf()
    fuse = Fuse(ValueError("burnt"))
    y = x * x
    y.register_hook(lambda g: fuse(g))
    with pytest.raises(ValueError, match="burnt"):
        y.sum().backward(retain_graph=True)
    assert x.grad is None
    fuse.mend()
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [2.0, 4.0])


BEGINNING_AND_ENDING = {module.__file__ for module in (dispatch, stage)}


def _interrupted(call, moment):
    """Interrupt a call at the moment-th line of the code that begins and ends transforms."""
    left = moment

    def trace(frame, event, arg):
        nonlocal left
        if frame.f_code.co_filename not in BEGINNING_AND_ENDING:
            return None
        if event in ("call", "line"):
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.mark.parametrize(
    "call",
    [
        lambda: ft.grad(_total)(X),
        lambda: ft.grad(lambda x: np.sum(x * LARGE))(1.0),
        lambda: ft.hessian(_total)(X),
        lambda: ft.vmap(lambda x: ft.psum(x, "i"), axis_name="i")(X),
        lambda: ft.make_graph(ft.grad(_total))(X),
        lambda: ft.grad(lambda x: np.sum(ft.vmap(ft.grad(np.sin))(x)))(X),
        lambda: ft.make_graph(ft.grad(lambda x: ft.cond(x > 0, np.sin, np.cos, x)))(1.0),
        lambda: ft.detect_anomaly()(ft.grad(_total))(X),
        lambda: ft.grad(lambda x: ft.detect_anomaly()(ft.grad(np.sin))(x))(1.0),
    ],
    ids=["grad", "watched arrays", "hessian", "vmap", "make_graph", "nested", "cond"]
    + ["detect_anomaly", "detect_anomaly within"],
)
def test_an_interruption_at_any_line_of_beginning_and_ending(call):
    before = state()
    for moment in itertools.count(1):
        interrupted = _interrupted(call, moment)
        # A list of arrays that were watched is let go of by the next tape.
        assert state()[:3] == before[:3], moment
        ft.grad(np.sin)(1.0)
        assert state() == before, moment
        if not interrupted:
            break
    assert moment > 15
    check_answers()
