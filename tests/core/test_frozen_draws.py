"""Random numbers that are drawn while a function is traced: a warning with the line, and no false alarm."""

import dataclasses
import functools
import random
import threading
import types
import warnings

import numpy as np
import pytest

import functrans as ft
from functrans import grad, jit, make_graph, vmap
from functrans.core.draws import ObservedGenerator
from functrans.errors import RandomnessWarning

RNG = np.random.default_rng(0)
LEGACY = np.random.RandomState(0)
PYTHONS = random.Random(0)
REGISTRY = {"noise": [RNG]}
OTHER_MODULE = types.ModuleType("other_module")
OTHER_MODULE.generator = np.random.default_rng(3)
KEY = ft.random.key(0)
uniform = np.random.uniform


def helper(x):
    return x + RNG.normal()  # here


class Layer:
    def __init__(self):
        self.generator = np.random.default_rng(1)

    def forward(self, x):
        noise = self.generator.normal()  # here
        return x + noise

    def __call__(self, x):
        return self.forward(x)


class Derived(Layer):
    pass


def closure():
    rng = np.random.default_rng(2)

    def function(x):
        y = 2.0 * x
        z = rng.normal(size=3)  # here
        return np.sum(y + z)

    return function


def default_value(x, rng=RNG):
    return x * rng.uniform()  # here


def an_alias(x):
    rng = RNG
    y = x + 1.0
    return y * rng.uniform()  # here


def in_a_container(x):
    return x * REGISTRY["noise"][0].random()  # here


def of_another_module(x):
    return x * OTHER_MODULE.generator.random()  # here


def in_a_scan(x):
    def body(carry, row):
        return carry + RNG.normal() * row, carry  # here

    return ft.scan(body, x, np.ones(3))[0]


def in_a_branch(x):
    return ft.cond(
        x > 0,
        lambda x: x + RNG.normal(),  # here
        lambda x: x,
        x,
    )


def in_a_while_loop(x):
    return ft.while_loop(
        lambda x: x < 10.0,
        lambda x: x + 1.0 + RNG.uniform(),  # here
        x,
    )


def without_a_seed(x):
    rng = np.random.default_rng()  # here
    return x + rng.normal()


def legacy_without_a_seed(x):
    return x + np.random.RandomState().normal()  # here


DRAWING = {
    "global": lambda x: x + np.random.normal(),  # here
    "global, kept for the next call": lambda x: x + np.random.randn(),  # here
    "global, by name": lambda x: x * uniform(),  # here
    "RandomState": lambda x: x + LEGACY.normal(),  # here
    "random": lambda x: x + random.random(),  # here
    "random.gauss": lambda x: x + random.gauss(0, 1),  # here
    "Random": lambda x: x * PYTHONS.uniform(1, 2),  # here
    "integers": lambda x: x * int(RNG.integers(1, 5)),  # here
    "spawn": lambda x: x + RNG.spawn(1)[0].normal(),  # here
    "bits": lambda x: x * float(RNG.bit_generator.random_raw()),  # here
    "a function that is called": lambda x: helper(x) * 2.0,
    "jit inside": lambda x: jit(helper)(x) * 2.0,
    "grad": grad(lambda x: x * RNG.normal()),  # here
    "vmap": lambda x: np.sum(vmap(lambda y: y + RNG.normal())(np.ones(2) * x)),  # here
    "checkpoint": ft.checkpoint(lambda x: x * RNG.normal()),  # here
    "partial": functools.partial(lambda rng, x: x * rng.normal(), RNG),  # here
    "a method": Layer().forward,
    "an object": Layer(),
    "an inherited method": Derived().forward,
    "closure": closure(),
    "default value": default_value,
    "alias": an_alias,
    "container": in_a_container,
    "module": of_another_module,
    "scan": in_a_scan,
    "cond": in_a_branch,
    "while_loop": in_a_while_loop,
    "without a seed": without_a_seed,
    "RandomState()": legacy_without_a_seed,
}


def warnings_of(run):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        run()
    return [str(each.message) for each in found if each.category is RandomnessWarning]


TRANSFORMS = {
    "jit": lambda f: jit(f, backend="numpy")(1.5),
    "jit, native": lambda f: jit(f)(1.5),
    "jit under grad": lambda f: grad(lambda x: x * jit(f, backend="numpy")(2.0))(1.5),
    "trace": lambda f: jit(f, backend="numpy").trace(1.5),
    "make_graph": lambda f: make_graph(f)(1.5),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", DRAWING)
def test_a_draw_is_reported_with_its_line(name, transform):
    for _ in range(2):  # every second normal number of np.random was kept by the call before
        (message,) = warnings_of(lambda: TRANSFORMS[transform](DRAWING[name]))
        assert message.startswith(
            transform.split(",")[0].split()[0] if transform != "trace" else "jit"
        )
        assert "test_frozen_draws.py, line" in message and "# here`" in message
        assert "functrans.random" in message


def test_generators_among_the_arguments():
    @dataclasses.dataclass
    class Noisy:
        weight: float
        rng: object

        @functools.partial(jit, static_argnums=0, backend="numpy")
        def static(self, x):
            return x + self.rng.normal()  # here

        __hash__ = object.__hash__

    ft.tree.register_dataclass(Noisy, meta_fields=["rng"])
    rng = np.random.default_rng(4)

    def drawn(x, rng):
        return x + rng.normal()  # here

    static = jit(drawn, static_argnums=1, backend="numpy")
    metadata = jit(lambda noisy: noisy.weight * noisy.rng.normal(), backend="numpy")  # here
    for run in (
        lambda: static(1.0, rng),
        lambda: metadata(Noisy(1.0, rng)),
        lambda: Noisy(1.0, rng).static(2.0),
    ):
        (message,) = warnings_of(run)
        assert "# here`" in message


def test_a_library_that_draws_is_reported():
    stats = pytest.importorskip("scipy.stats")
    (message,) = warnings_of(lambda: jit(lambda x: x + stats.norm.rvs(), backend="numpy")(1.0))
    assert "NumPy's global generator" in message


@pytest.mark.parametrize("kind", ["MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"])
def test_every_bit_generator(kind):
    rng = np.random.Generator(getattr(np.random, kind)(0))
    for _ in range(4):
        assert warnings_of(lambda: make_graph(lambda x: x + rng.normal())(1.0))
        assert warnings_of(lambda: make_graph(lambda x: x + rng.integers(2, dtype=np.int8))(1.0))
        assert not warnings_of(
            lambda: make_graph(lambda x: x + rng.bit_generator.state["bit_generator"].find("x"))(
                1.0
            )
        )


def test_a_source_notices_every_kind_of_draw():
    draws = ["random", "normal", "standard_exponential", "bytes", "permutation", "choice"]
    rng = np.random.default_rng(0)
    for name in draws:
        source = ObservedGenerator(rng)
        assert not source.has_drawn()
        getattr(rng, name)(*([3] if name in ("bytes", "permutation", "choice") else []))
        assert source.has_drawn()


# No false alarm.

DRAWN = RNG.normal(size=2)


def seeded_inside(x):
    rng = np.random.default_rng(0)
    return x + rng.normal() + np.random.RandomState(1).normal() + random.Random(2).random()


def seeds_the_global_one(x):
    np.random.seed(0)
    random.seed(0)
    return x + np.random.normal() + random.random()


def calls_back(x):
    draw = lambda value: value + RNG.normal()
    return ft.pure_callback(draw, ft.ArraySpec((), float), x)


def taps(x):
    return ft.tap(x, lambda value: RNG.normal()) * 2.0


def imports_a_module_that_makes_a_generator(x):
    import functrans.torch.random  # noqa: F401

    return x


QUIET = {
    "nothing random": lambda x: np.sin(x) * 2.0,
    "drawn before": lambda x: x + DRAWN[0],
    "a generator that is only looked at": lambda x: x if RNG is not None else -x,
    "seeded inside": seeded_inside,
    "seeds the global one": seeds_the_global_one,
    "functrans.random": lambda x: x + ft.random.normal(KEY, ()),
    "a key of its own": lambda x: x + ft.random.normal(ft.random.key(3), ()),
    "callback": calls_back,
    "tap": taps,
    "linear_transpose": lambda x: ft.linear_transpose(lambda y: 2.0 * y, 1.0)(x)[0],
    "import": imports_a_module_that_makes_a_generator,
}


@pytest.mark.parametrize("name", QUIET)
def test_no_false_alarm(name):
    for transform in TRANSFORMS.values():
        compiled = QUIET[name]
        assert warnings_of(lambda compiled=compiled, transform=transform: transform(compiled)) == []


def test_running_a_compiled_function_reports_nothing():
    compiled = jit(lambda x: x * 2.0, backend="numpy")
    compiled(1.0)
    assert warnings_of(lambda: compiled(RNG.normal())) == []


@pytest.mark.parametrize("name", DRAWING)
def test_functions_that_run_anew_in_each_call_may_draw(name):
    function = DRAWING[name]
    if "jit" in name:
        return

    def eagerly():
        function(1.5)
        grad(function)(1.5)
        ft.jvp(function, (1.5,), (1.0,))
        ft.linearize(function, 1.5)[1](1.0)
        ft.eval_shape(function, 1.5)

    assert warnings_of(eagerly) == []


def test_a_trace_that_is_not_kept_may_draw():
    def outer(k):
        return jit(lambda x: x * k * RNG.normal(), backend="numpy")(2.0)

    assert warnings_of(lambda: grad(outer)(1.0)) == []
    assert grad(outer)(1.0) != grad(outer)(1.0)


def test_other_threads_may_draw():
    done = threading.Event()

    def draw():
        while not done.wait(0.0005):
            np.random.normal(), random.random(), np.random.default_rng()

    thread = threading.Thread(target=draw)
    thread.start()
    try:
        found = [
            m
            for _ in range(30)
            for m in warnings_of(lambda: make_graph(lambda x: np.tanh(x) * 2)(1.0))
        ]
    finally:
        done.set()
        thread.join()
    assert found == []


def test_numpys_own_functions_are_put_back():
    before = np.random.bit_generator.randbits
    make_graph(lambda x: x)(1.0)
    with pytest.raises(ZeroDivisionError):
        make_graph(lambda x: 1 / 0)(1.0)
    assert np.random.bit_generator.randbits is before
    assert "functrans" not in before.__func__.__module__


def test_tensors():
    torch = pytest.importorskip("functrans.torch")
    drawing = {
        "rand": lambda x: x + torch.rand(2).numpy(),  # here
        "dropout": lambda x: x * torch.nn.functional.dropout(torch.ones(3)).numpy(),  # here
        "in place": lambda x: x * torch.zeros(2).normal_().numpy(),  # here
    }
    for function in drawing.values():
        (message,) = warnings_of(lambda function=function: jit(function, backend="numpy")(1.0))
        assert "functrans.torch's generator" in message and "# here`" in message
    seeded = lambda x: x + torch.rand(2, generator=torch.Generator().manual_seed(0)).numpy()
    assert warnings_of(lambda: jit(seeded, backend="numpy")(1.0)) == []


def test_objects_of_all_kinds_can_be_searched():
    many = [object() for _ in range(5000)]
    holder = types.SimpleNamespace(many=many, lock=threading.Lock(), text="a" * 100, itself=None)
    holder.itself = holder
    loop = []
    loop.append(loop)

    class Slotted:
        __slots__ = ("missing", "rng")

        def __getattr__(self, name):
            raise AssertionError("no code of the user's runs")

    slotted = Slotted()
    slotted.rng = np.random.default_rng(0)

    def function(x):
        return x + (0.0 if holder is loop or slotted is many else 1.0)

    assert warnings_of(lambda: make_graph(function)(1.0)) == []
    assert warnings_of(lambda: make_graph(lambda x: x + slotted.rng.normal())(1.0))
