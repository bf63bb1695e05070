"""Transforms as decorators: with options alone, `@grad(argnums=1)`, and without parentheses."""

import dataclasses
import inspect
import re

import numpy as np
import pytest

import functrans
from functrans import errors

THREE = np.array([1.0, 2.0, 3.0])


def product(x, y):
    return np.sum(x * y**2)


# Options for each transform, and arguments to call the result with.
OPTIONS = {
    "grad": ({"argnums": 1}, (THREE, THREE)),
    "value_and_grad": ({"argnums": (0, 1)}, (THREE, THREE)),
    "jacfwd": ({"argnums": 1, "chunk_size": 2}, (THREE, THREE)),
    "jacrev": ({"argnums": 1}, (THREE, THREE)),
    "jacobian": ({"argnums": 1, "mode": "fwd"}, (THREE, THREE)),
    "hessian": ({"argnums": 1}, (THREE, THREE)),
    "vmap": ({"in_axes": (0, None)}, (THREE, 2.0)),
    "jit": ({"static_argnums": 1}, (THREE, 2.0)),
    "checkpoint": ({"policy": functrans.checkpoint_policies.save_matmuls}, (THREE, 2.0)),
    "remat": ({}, (THREE, 2.0)),
    "make_graph": ({}, (THREE, 2.0)),
    "source": ({}, (THREE, 2.0)),
}


def same(found, expected):
    names = re.compile("def [a-z]+")  # a source has the name of its function
    assert names.sub("", str(found)) == names.sub("", str(expected))


@pytest.mark.parametrize("name", OPTIONS)
def test_options_alone_decorate(name):
    transform, (options, args) = getattr(functrans, name), OPTIONS[name]

    @transform(**options)
    def decorated(x, y):
        """What it does."""
        return product(x, y)

    same(decorated(*args), transform(product, **options)(*args))
    assert decorated.__name__ == "decorated" and decorated.__doc__.endswith("What it does.")


@pytest.mark.parametrize("name", [*OPTIONS, "profile"])
def test_empty_parentheses_decorate(name):
    transform = getattr(functrans, name)

    @transform()
    def decorated(x):
        return np.sum(x**2)

    args = () if name == "profile" else (THREE,)
    if args:
        same(decorated(*args), transform(lambda x: np.sum(x**2))(*args))
    assert decorated.__name__ == "decorated"


def test_every_transform_that_takes_one_function_is_among_them():
    """Those with a first parameter f, and nothing else that must be given, but their results."""
    found = set()
    for name in functrans.__all__:
        member = getattr(functrans, name)
        if callable(member) and not inspect.isclass(member):
            first, *rest = inspect.signature(member).parameters.values()
            if first.name == "f" and all(
                p.default is not p.empty for p in rest if p.kind is not p.VAR_POSITIONAL
            ):
                found.add(name)
    direct = {
        "vjp",
        "linearize",
        "linear_transpose",
        "eval_shape",
    }  # return no functions of f's arguments
    direct |= {"trace_steps"}
    assert found - direct == {*OPTIONS, "profile", "custom_jvp", "custom_vjp"}


@pytest.mark.parametrize("kind", [functrans.custom_jvp, functrans.custom_vjp])
def test_custom_rules_decorate_with_options(kind):
    @kind(nondiff_argnums=0)
    def power(n, x):
        return x**n

    if kind is functrans.custom_jvp:
        power.defjvp(lambda n, primals, tangents: (power(n, *primals), 10.0 * tangents[0]))
    else:
        power.defvjp(lambda n, x: (x**n, None), lambda n, residuals, g: (10.0 * g,))
    assert functrans.grad(power, argnums=1)(3, 2.0) == 10.0


def test_decorators_stack():
    @functrans.jit
    @functrans.vmap(in_axes=(None, 0))
    @functrans.grad(argnums=1)
    def slope(a, x):
        return a * x**2

    np.testing.assert_array_equal(slope(2.0, THREE), 4 * THREE)


def test_a_method_may_be_decorated_with_options():
    class Model:
        @functrans.grad(argnums=1)
        def slope(self, x):
            return x**2

    assert Model().slope(3.0) == 6.0


def test_detect_anomaly_decorates_with_and_without_parentheses():
    def log(x):
        return functrans.grad(np.log)(x)

    with np.errstate(all="ignore"):
        for decorated in (functrans.detect_anomaly(log), functrans.detect_anomaly(inf=True)(log)):
            assert decorated(1.0) == 1.0
            with pytest.raises(errors.AnomalyError):
                decorated(0.0)


def test_a_dataclass_is_registered_with_options():
    @functrans.tree.register_dataclass(meta_fields=("name",))
    @dataclasses.dataclass
    class Layer:
        weight: object
        name: str

    assert functrans.tree.leaves(Layer(1.0, "first")) == [1.0]


@pytest.mark.parametrize("name", [*OPTIONS, "profile", "custom_jvp", "custom_vjp"])
@pytest.mark.parametrize("wrong", [None, 1.5, THREE, "loss", (0, 1), 1])
def test_what_is_not_a_function_is_refused(name, wrong):
    with pytest.raises(errors.InputTypeError, match=f"{name.replace('remat', 'checkpoint')} needs"):
        getattr(functrans, name)(wrong)
