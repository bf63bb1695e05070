"""Keys of traces hold all that a function can see while it is traced: jit is right on later calls, too."""

import collections
import dataclasses
import datetime
import pickle
import random
import warnings
from importlib.util import find_spec

import numpy as np
import pytest

import functrans as ft
from functrans import jit, make_graph, pmean, psum, vmap
from functrans.core.frozen import frozen
from tests.support import visible_calls
from tests.support.visible_calls import Call, First, Model, Second, see

BACKENDS = ["numpy", pytest.param("native", marks=pytest.mark.skipif(
    find_spec("llvmlite") is None, reason="there is no llvmlite"))]  # fmt: skip
on_both = pytest.mark.parametrize("backend", BACKENDS)
pytestmark = pytest.mark.filterwarnings("ignore::functrans.errors.RetraceWarning")


def assert_same(found, expected):
    """The same containers, in the same order, of the same numbers and dtypes."""
    assert type(found) is type(expected), (found, expected)
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        for key in expected:
            assert_same(found[key], expected[key])
    elif isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, Model):
        assert_same(found.weight, expected.weight)
        assert visible_calls.describe(found.settings) == visible_calls.describe(expected.settings)
    elif isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-15)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-15)


@on_both
@pytest.mark.parametrize("seed", range(30))
def test_a_call_that_differs_in_one_visible_thing_is_not_taken_for_another(seed, backend):
    chooser = random.Random(seed)
    compiled = jit(see, static_argnums=3, static_argnames="named", backend=backend)
    first = call = Call(chooser)
    calls = [first]
    for _ in range(8):
        call = call.changed(chooser)
        calls += [call, first]
    for call in calls:
        assert_same(call.run(compiled), call.run(see))


@on_both
@pytest.mark.parametrize("slot", visible_calls.SLOTS)
def test_every_value_of_a_slot_has_its_own_trace(slot, backend):
    chooser = random.Random(slot)
    compiled = jit(see, static_argnums=3, static_argnames="named", backend=backend)
    call = Call(chooser)
    numbers = list(range(len(visible_calls.SLOTS[slot])))
    if backend == "native":
        numbers = chooser.sample(numbers, min(len(numbers), 12))
    for number in (*numbers, *numbers[:3]):
        call.chosen[slot] = number
        assert_same(call.run(compiled), call.run(see))


def test_no_two_values_of_a_slot_share_a_stand_in():
    for values in (visible_calls.STATIC, visible_calls.METADATA):
        found = [frozen(value) for value in values]
        assert len(set(found)) == len(values)
        assert found == [frozen(value) for value in values]


# The faults that were found, and their relatives.


@on_both
def test_the_number_of_lanes_of_a_named_axis(backend):
    mean = jit(lambda x: pmean(x, "i"), backend=backend)
    for lanes in (3, 5, 3):
        np.testing.assert_array_equal(
            vmap(mean, axis_name="i")(np.full(lanes, 2.0)), np.full(lanes, 2.0)
        )
    counted = jit(lambda x: x * psum(1.0, "i"), backend=backend)
    gathered = jit(lambda x: np.sum(ft.all_gather(1.0, "i")) * x, backend=backend)
    for lanes in (2, 4):
        for function in (counted, gathered):
            out = vmap(lambda x, f=function: f(3.0) + 0 * x, axis_name="i")(np.ones(lanes))
            np.testing.assert_array_equal(out, np.full(lanes, 3.0 * lanes))


@on_both
def test_a_named_axis_around_a_call_that_was_compiled_outside(backend):
    def seen(x):
        try:
            return x * psum(1.0, "i")
        except ft.errors.AxisNameError:
            return -x

    compiled = jit(seen, backend=backend)
    for _ in range(2):
        assert float(compiled(2.0)) == -2.0
        for lanes in (3, 4):
            out = vmap(lambda x: compiled(2.0) + 0 * x, axis_name="i")(np.ones(lanes))
            np.testing.assert_array_equal(out, np.full(lanes, 2.0 * lanes))


def test_lanes_that_are_not_all_there_are_not_taken_for_all():
    mean = jit(lambda x: pmean(x, "i"), backend="numpy")
    vmap(mean, axis_name="i")(np.ones(4))
    with pytest.raises(ft.errors.LaneError):
        vmap(mean, axis_name="i", chunk_size=2)(np.ones(4))
    with pytest.raises(ft.errors.LaneError):
        vmap(lambda x: mean(x) if x > 2 else x, axis_name="i")(np.arange(4.0))


def weighted(entries):
    return sum((k + 1.0) * value for k, value in enumerate(entries.values()))


@on_both
def test_the_order_of_keys(backend):
    compiled = jit(weighted, backend=backend)
    x = np.ones(3)
    for _ in range(2):
        np.testing.assert_array_equal(compiled({"a": x, "b": 10 * x}), 21 * x)
        np.testing.assert_array_equal(compiled({"b": 10 * x, "a": x}), 12 * x)
    names = jit(lambda **named: weighted(named), backend=backend)
    assert float(names(a=1.0, b=10.0)) == 21.0
    assert float(names(b=10.0, a=1.0)) == 12.0
    static = jit(lambda **named: weighted(named), static_argnames="b", backend=backend)
    assert float(static(a=1.0, b=10.0)) == 21.0
    assert float(static(b=10.0, a=1.0)) == 12.0


def test_the_order_of_keywords_does_not_matter_to_a_function_with_names():
    calls = []

    def function(x, *, low, high):
        calls.append(1)
        return x + low - high

    compiled = jit(function, backend="numpy")
    assert compiled(1.0, low=2.0, high=3.0) == compiled(1.0, high=3.0, low=2.0) == 0.0
    assert len(calls) == 1


@on_both
def test_results_have_the_order_that_the_function_gives_them(backend):
    compiled = jit(lambda x: {"z": 2 * x, "a": {"y": x, "b": x}}, backend=backend)
    for _ in range(3):
        out = compiled(np.ones(2))
        assert list(out) == ["z", "a"] and list(out["a"]) == ["y", "b"]
    swapped = jit(lambda d: dict(reversed(d.items())), backend=backend)
    assert list(swapped({"a": 1.0, "b": 2.0})) == ["b", "a"]
    assert list(swapped({"b": 1.0, "a": 2.0})) == ["a", "b"]


@on_both
def test_equal_keys_that_are_other_objects_take_the_fast_path(backend):
    calls = []

    def function(d):
        calls.append(1)
        return d["weight"] * 2.0

    compiled = jit(function, backend=backend)
    for _ in range(3):
        key = "".join(["wei", "ght"])  # not the object that was traced
        np.testing.assert_array_equal(compiled({key: np.ones(2)}), [2.0, 2.0])
    assert len(calls) == 1


@on_both
def test_static_values_by_type_and_bits(backend):
    signs = jit(lambda x, s: x * np.copysign(1.0, s), static_argnums=1, backend=backend)
    assert float(signs(1.0, 0.0)) == 1.0
    assert float(signs(1.0, -0.0)) == -1.0
    kinds = jit(
        lambda x, s: x + isinstance(next(iter(s)), float), static_argnums=1, backend=backend
    )
    assert float(kinds(1.0, frozenset({1}))) == 1.0
    assert float(kinds(1.0, frozenset({1.0}))) == 2.0
    left = jit(lambda x, pair: x * pair.left, static_argnums=1, backend=backend)
    assert float(left(1.0, First(2, 3))) == 2.0
    assert float(left(1.0, Second(2, 3))) == 3.0


def test_a_nan_as_static_value_is_traced_once():
    calls = []

    def function(x, fill):
        calls.append(fill)
        return x if fill != fill else x + fill

    compiled = jit(function, static_argnames="fill", backend="numpy")
    compiled(1.0, fill=float("nan")), compiled(1.0, fill=np.nan), compiled(1.0, fill=float("nan"))
    assert len(calls) == 1


def test_times_that_are_equal_in_two_zones_are_not_the_same_static_value():
    there = datetime.timezone(datetime.timedelta(hours=2))
    times = [
        datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.UTC),
        datetime.datetime(2024, 1, 1, 14, tzinfo=there),
    ]
    assert times[0] == times[1]
    compiled = jit(lambda x, time: x * time.hour, static_argnums=1, backend="numpy")
    assert [float(compiled(1.0, time)) for time in times] == [12.0, 14.0]


@on_both
def test_metadata_that_changes_is_seen(backend):
    calls = []

    def function(model):
        calls.append(1)
        return model.weight * model.settings[0]

    compiled = jit(function, backend=backend)
    settings = [2.0]
    assert float(compiled(Model(3.0, settings))) == 6.0
    settings[0] = 5.0
    assert float(compiled(Model(3.0, settings))) == 15.0
    assert float(compiled(Model(3.0, [2.0]))) == 6.0
    settings[0] = 2.0
    assert float(compiled(Model(3.0, settings))) == 6.0
    assert len(calls) == 2
    for array in (np.array([1.0, 2.0]), np.array([4.0, 2.0]), np.array([7.0, 1.0, 1.0])):
        assert float(compiled(Model(3.0, array))) == 3.0 * array[0]


@on_both
def test_metadata_of_a_result_is_the_callers_own(backend):
    compiled = jit(lambda model: Model(2 * model.weight, model.settings), backend=backend)
    settings = {"names": ["a"], "scale": np.ones(2)}
    first = compiled(Model(1.0, settings))
    first.settings["names"].append("b")
    first.settings["scale"][0] = 9.0
    settings["names"].append("c")
    second = compiled(Model(1.0, {"names": ["a"], "scale": np.ones(2)}))
    assert second.settings["names"] == ["a"]
    np.testing.assert_array_equal(second.settings["scale"], np.ones(2))


def test_arrays_as_metadata_under_every_transform():
    def function(model):
        return Model(np.sum(model.weight**2) * model.settings[0], model.settings)

    model = Model(np.arange(3.0), np.array([2.0, 3.0, 4.0]))
    gradient = ft.grad(lambda model: function(model).weight)(model)
    np.testing.assert_array_equal(gradient.weight, 4 * np.arange(3.0))
    _, tangent = ft.jvp(function, (model,), (Model(np.ones(3), model.settings.copy()),))
    assert float(tangent.weight) == 12.0
    assert vmap(lambda m: function(Model(m.weight * np.ones(2), m.settings)))(
        model
    ).weight.shape == (3,)
    halves = vmap(lambda x: Model(x, np.ones(2)) if x > 1 else Model(-x, np.ones(2)))(
        np.arange(3.0)
    )
    np.testing.assert_array_equal(halves.weight, [0.0, -1.0, 2.0])
    carry, _ = ft.scan(
        lambda m, x: (Model(m.weight + x, m.settings * 1.0), None), model, np.ones(2)
    )
    np.testing.assert_array_equal(carry.weight, np.arange(3.0) + 2)
    with pytest.raises(ft.errors.CarryError):
        ft.scan(lambda m, x: (Model(m.weight + x, m.settings + 1.0), None), model, np.ones(2))
    with pytest.raises(ft.errors.CarryError):
        ft.scan(lambda m, x: (Model(m.weight + x, m.settings[1:]), None), model, np.ones(2))


def test_metadata_without_a_value_to_compare_is_an_error():
    class Unhashable:
        __hash__ = None

        def __eq__(self, other):
            return True

    with pytest.raises(ft.errors.InputTypeError, match="the metadata of a container"):
        jit(lambda model: model.weight)(Model(1.0, Unhashable()))
    model = Model(1.0, Unhashable())
    assert float(ft.grad(lambda model: model.weight**2)(model).weight) == 2.0
    assert ft.eval_shape(lambda model: model, model).settings is model.settings
    assert float(make_graph(lambda model: 2 * model.weight)(model)(model)) == 2.0


def test_a_graph_notices_other_metadata():
    settings = [2.0]
    graph = make_graph(lambda model: model.weight * model.settings[0])(Model(1.0, settings))
    assert float(graph(Model(3.0, [2.0]))) == 6.0
    settings[0] = 5.0
    with pytest.raises(ft.errors.GraphError, match="was traced for arguments"):
        graph(Model(3.0, settings))


def test_a_graph_notices_another_number_of_lanes():
    def traced_for_three(function):
        graphs = []
        vmap(lambda x: (graphs.append(make_graph(function)(x)), x)[1], axis_name="i")(np.ones(3))
        return graphs[0]

    for function in (lambda y: pmean(y, "i"), lambda y: y * psum(1.0, "i")):
        graph = traced_for_three(function)
        for again in (graph, pickle.loads(pickle.dumps(graph)), graph.pruned()):
            expected = vmap(function, axis_name="i")(np.full(3, 2.0))
            np.testing.assert_array_equal(vmap(again, axis_name="i")(np.full(3, 2.0)), expected)
            with pytest.raises(ft.errors.GraphError, match="3 lanes of the axis 'i'"):
                vmap(again, axis_name="i")(np.full(5, 2.0))
    added = traced_for_three(lambda y: psum(y, "i"))  # does not ask how many there are
    np.testing.assert_array_equal(vmap(added, axis_name="i")(np.ones(5)), np.full(5, 5.0))


@pytest.mark.parametrize(
    "value", [[1], {"a": 1}, {1}, np.ones(2), ([1],), Model(1.0, 2), visible_calls.Options([1])]
)
def test_a_static_value_that_is_not_hashable_is_an_error(value):
    compiled = jit(lambda x, s: x, static_argnums=1)
    with pytest.raises(ft.errors.InputTypeError, match="the static argument 1 must be hashable"):
        compiled(1.0, value)


@pytest.mark.parametrize("wrap", [lambda k: k, lambda k: (k,), lambda k: (1, {"a": k})])
def test_a_static_value_that_is_traced_is_an_error(wrap):
    compiled = jit(lambda x, s: x, static_argnums=1)
    for transform in (ft.grad, jit, lambda f: lambda x: vmap(f)(np.full(2, x))):
        with pytest.raises(ft.errors.InputTypeError, match="the static argument 1 is traced"):
            transform(lambda k: compiled(2.0, wrap(k)))(3.0)


def test_the_class_of_an_array_and_the_kind_of_a_number():
    calls = []
    compiled = jit(lambda x: calls.append(1) or x * 2, backend="numpy")
    for value in (2.0, np.float64(2.0), np.array(2.0), np.float32(2.0), np.array(2.0, np.float32)):
        assert float(compiled(value)) == 4.0
    assert len(calls) == 5
    compiled(np.ones(2)), compiled(np.ones(2).view(np.memmap))
    assert len(calls) == 7


@on_both
def test_machine_code_for_one_kind_of_number_does_not_take_another(backend):
    def kinds(values):
        seen = []
        compiled = jit(lambda x: seen.append(1) or x * 2.0, backend=backend)
        for value in values:
            compiled(value)
        return len(seen)

    for dtype in (np.float64, np.float32, np.int32):
        scalar, array = dtype(2), np.array(2, dtype)
        assert kinds([scalar, array, scalar, array]) == kinds([array, scalar, array]) == 2


def test_integers_of_two_names():
    compiled = jit(lambda x: x * (2 if x.dtype.char == "l" else 3), backend="numpy")
    np.testing.assert_array_equal(compiled(np.ones(2, "l")), [2, 2])
    np.testing.assert_array_equal(compiled(np.ones(2, "q")), [3, 3])


@on_both
def test_constants_that_are_not_the_same_are_not_merged(backend):
    out = jit(lambda x: (x * 2**63, x * -(2**63)), backend=backend)(1.0)
    assert list(map(float, out)) == [2.0**63, -(2.0**63)]

    def function(x):
        zero = np.zeros(2)
        first = x * zero
        zero[:] = -0.0
        return first, x * zero

    first, second = jit(function, backend=backend)(np.ones(2))
    assert not np.signbit(first).any() and np.signbit(second).all()


def test_parameters_of_primitives_that_are_not_the_same_are_not_merged():
    sign = ft.define_primitive(
        "sign", lambda x, *, s: x * np.copysign(1.0, s), shape=lambda x, *, s: x
    )
    out = jit(lambda x: (sign(x, s=0.0), sign(x, s=-0.0), sign(x, s=0)), backend="numpy")(
        np.ones(1)
    )
    assert [float(x[0]) for x in out] == [1.0, -1.0, 1.0]


@on_both
def test_modes_of_functrans_torch(backend):
    torch = pytest.importorskip("functrans.torch")
    square = jit(lambda x: x @ x, backend=backend)
    ones = jit(lambda x: x * torch.ones(2).numpy(), backend=backend)
    enabled = jit(lambda x: x * 2.0 if torch.is_grad_enabled() else x, backend=backend)
    x = np.ones(2, np.float32)
    for _ in range(2):
        assert square(torch.eye(2)).dtype == torch.float32
        with torch.autocast("cpu"):
            assert square(torch.eye(2)).dtype == torch.float16
        assert ones(x).dtype == np.float32
        torch.set_default_dtype(torch.float64)
        try:
            assert ones(x).dtype == np.float64
        finally:
            torch.set_default_dtype(torch.float32)
        assert float(enabled(3.0)) == 6.0
        with torch.no_grad():
            assert float(enabled(3.0)) == 3.0


@on_both
def test_tensors_that_require_grad_go_through_compiled_functions(backend):
    torch = pytest.importorskip("functrans.torch")
    x = torch.ones(2, requires_grad=True)
    jit(lambda x: (x * x).sum(), backend=backend)(x).backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2.0, 2.0])


@pytest.mark.parametrize("loop", ["scan", "while_loop", "fori_loop"])
def test_all_steps_of_a_loop_see_the_keys_in_one_order(loop):
    def step(carry):
        return {
            "b": carry["a"] + weighted({k: carry[k] for k in carry if k != "n"}),
            "a": carry["b"],
        }

    def function(x):
        start = {"a": x, "b": 2 * x}
        if loop == "scan":
            return ft.scan(lambda c, _: (step(c), None), start, None, length=3)[0]
        if loop == "fori_loop":
            return ft.fori_loop(0, 3, lambda i, c: step(c), start)
        start["n"] = 0
        return ft.while_loop(lambda c: c["n"] < 3, lambda c: {"n": c["n"] + 1} | step(c), start)

    eager = function(np.float64(1.5))
    assert list(eager)[:2] == ["a", "b"]
    for backend in ("numpy", "auto"):
        assert_same(jit(function, backend=backend)(np.float64(1.5)), eager)
    assert_same(vmap(function)(np.full(2, 1.5)), {k: np.full(2, v) for k, v in eager.items()})


def test_a_retrace_warning_names_the_axis():
    compiled = jit(lambda x: pmean(x, "i"), backend="numpy")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ft.errors.RetraceWarning, match="the axis 'i' came as 1 lanes, 2 lanes"):
            for lanes in range(1, 12):
                vmap(compiled, axis_name="i")(np.ones(lanes))


def test_an_object_that_is_its_own_key_is_traced_once():
    class Config:
        scale = 2.0

    config, calls = Config(), []
    compiled = jit(lambda x, c: calls.append(1) or x * c.scale, static_argnums=1, backend="numpy")
    assert float(compiled(1.0, config)) == 2.0
    config.scale = 3.0
    assert float(compiled(1.0, config)) == 2.0  # as documented: its attributes are not in the key
    assert float(compiled(1.0, Config())) == 2.0
    assert len(calls) == 2


def test_fields_that_a_class_does_not_compare_are_part_of_the_key():
    @dataclasses.dataclass(frozen=True)
    class Config:
        scale: float
        table: dict = dataclasses.field(default_factory=dict, compare=False)
        shift: float = dataclasses.field(default=0.0, compare=False)

    calls = []
    compiled = jit(
        lambda x, c: calls.append(1) or x * c.scale + c.shift + len(c.table),
        static_argnums=1,
        backend="numpy",
    )
    assert float(compiled(1.0, Config(2.0))) == 2.0
    assert float(compiled(1.0, Config(2.0, {"a": 1}))) == 3.0
    assert float(compiled(1.0, Config(2.0, shift=0.5))) == 2.5
    assert float(compiled(1.0, Config(2.0))) == 2.0
    assert len(calls) == 3


def test_structures_in_other_containers():
    pairs = collections.namedtuple("pairs", "a b")
    compiled = jit(lambda p: weighted(p.a) + p.b, backend="numpy")
    assert float(compiled(pairs({"x": 1.0, "y": 10.0}, 0.0))) == 21.0
    assert float(compiled(pairs({"y": 10.0, "x": 1.0}, 0.0))) == 12.0
