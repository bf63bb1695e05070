"""Transformed functions as objects: what they say of themselves, and that they act as functions do."""

from __future__ import annotations

import copy
import functools
import inspect
import pickle
import weakref

import numpy as np
import pytest

import functrans
from functrans import checkpoint_policies, cond, custom_jvp, custom_vjp, grad, hessian, jit, vmap

WITH_OPTIONS = ["checkpoint", "custom_jvp", "custom_vjp", "grad", "hessian", "jacfwd", "jacobian"]
WITH_OPTIONS += ["jacrev", "jit", "remat", "value_and_grad", "vmap"]
TRANSFORMS = [*WITH_OPTIONS, "make_graph", "profile", "source"]


def loss(w, x):
    """A squared error.

    In two arguments.
    """
    return np.sum((x @ w) ** 2)


@grad
def decorated(x):
    return x**3


class Model:
    """A class with transformed methods of all kinds."""

    def __init__(self):
        self.scale = 2.0

    def energy(self, x):
        return self.scale * x**2

    force = grad(energy, argnums=1)
    forces = vmap(energy, in_axes=(None, 0))
    compiled = jit(energy, static_argnums=0)
    kept = functrans.checkpoint(energy)

    @custom_jvp(nondiff_argnums=0)
    def ruled(self, x):
        return self.scale * x

    @grad(argnums=1)
    def slope(self, x):
        """A decorated method."""
        return self.scale * x


@Model.ruled.defjvp
def ruled_jvp(model, primals, tangents):
    return model.ruled(primals[0]), 10.0 * tangents[0]


def made(name, function=loss):
    return getattr(functrans, name)(function)


def test_the_transforms_here_are_all_that_return_functions_of_the_same_arguments():
    found = set()
    for name in functrans.__all__:
        transform = getattr(functrans, name)
        if not callable(transform):
            continue
        try:
            result = transform(loss)
        except Exception:
            continue  # it takes more than a function
        if getattr(result, "__wrapped__", None) is loss:
            found.add(name)
    # A context comes out of detect_anomaly, which decorates as contexts do.
    assert found - {"detect_anomaly"} == set(TRANSFORMS)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_its_repr_is_how_it_was_made(name):
    shown = "checkpoint" if name == "remat" else name
    assert repr(made(name)) == f"{shown}(loss)"
    assert repr(made(name, grad(loss))) == f"{shown}(grad(loss))"


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda: jit(grad(np.sin)), "jit(grad(sin))"),
        (
            lambda: grad(loss, argnums=(0, 1), has_aux=True),
            "grad(loss, argnums=(0, 1), has_aux=True)",
        ),
        (lambda: vmap(loss, (None, 0)), "vmap(loss, in_axes=(None, 0))"),
        (lambda: jit(loss, backend="numpy"), "jit(loss, backend='numpy')"),
        (lambda: grad(lambda x: x), "grad(<lambda>)"),
        (lambda: grad(functools.partial(loss, x=1.0)), "grad(loss)"),
        (lambda: grad(Model().energy), "grad(energy)"),
        (
            lambda: functrans.checkpoint(loss, checkpoint_policies.save_matmuls),
            "checkpoint(loss, policy=save_matmuls)",
        ),
    ],
)
def test_its_repr_has_the_options_that_were_given(function, text):
    assert repr(function()) == text


@pytest.mark.parametrize("name", TRANSFORMS)
def test_it_keeps_signature_and_name(name):
    function = made(name)
    assert inspect.signature(function) == inspect.signature(loss)
    assert function.__name__ == "loss"
    assert function.__module__ == __name__


@pytest.mark.parametrize("name", TRANSFORMS)
def test_its_docstring_says_what_it_is_and_goes_on_with_that_of_the_function(name):
    summary, text = made(name).__doc__.split("\n\n", 1)
    assert "`loss`" in summary and summary.endswith(".")
    assert text == inspect.cleandoc(loss.__doc__)
    assert made(name, lambda x: x).__doc__.count("\n") == 0


def test_the_docstring_names_the_arguments():
    assert grad(np.tanh).__doc__.startswith("The gradient of `tanh` with respect to argument 0.\n")
    assert "with respect to arguments 0 and 1." in grad(loss, argnums=(0, 1)).__doc__
    assert "The gradient of `jit(loss)`" in grad(jit(loss)).__doc__


def test_the_classes_of_custom_rules_have_their_own_docstrings():
    assert custom_jvp.__doc__.startswith("A function with a custom rule")
    assert custom_vjp.__doc__.startswith("A function with custom rules")


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda f: pickle.loads(pickle.dumps(f))]
)
def test_it_can_be_pickled_and_copied(name, again):
    function = made(name)
    found = again(function)
    assert type(found) is type(function)
    assert repr(found) == repr(function)
    assert found.__wrapped__ is loss


def test_pickles_keep_options_and_rules():
    found = pickle.loads(pickle.dumps(jit(grad(loss, argnums=1), static_argnames="x")))
    assert repr(found) == "jit(grad(loss, argnums=1), static_argnames=('x',))"
    ruled = custom_jvp(np.sin)
    ruled.defjvp(ruled_jvp)
    assert pickle.loads(pickle.dumps(ruled)).jvp is ruled_jvp
    g = pickle.loads(pickle.dumps(grad(np.sin)))
    assert g(0.0) == 1.0


@pytest.mark.parametrize("function", [decorated, Model.slope, Model.ruled, Model().compiled])
def test_what_has_a_name_is_pickled_by_it(function):
    found = pickle.loads(pickle.dumps(function))
    if "bound" in repr(function):
        assert found(3.0) == function(3.0)
    else:
        assert found is function


def test_methods():
    model = Model()
    assert model.force(3.0) == 12.0
    assert np.array_equal(model.forces(np.array([1.0, 2.0])), [2.0, 8.0])
    assert model.compiled(3.0) == 18.0
    assert model.kept(3.0) == 18.0
    assert grad(model.ruled)(3.0) == 10.0
    assert model.slope(3.0) == 2.0
    for method in (model.force, model.compiled, model.kept, model.ruled, model.slope):
        assert list(inspect.signature(method).parameters) == ["x"]
        assert "bound method" in repr(method)
    assert repr(Model.slope) == "grad(slope, argnums=1)"
    assert "graph(x: float64[]*)" in str(functrans.make_graph(model.compiled)(1.0))
    assert "graph(x: float64[]*)" in str(functrans.make_graph(model.force)(1.0))
    assert "graph(x: float64[]*)" in str(functrans.make_graph(model.energy)(1.0))


@pytest.mark.parametrize("name", TRANSFORMS)
def test_it_has_weak_references_and_attributes_and_is_hashable(name):
    function = made(name)
    function.note = "mine"
    assert function.note == "mine"
    assert weakref.ref(function)() is function
    assert {function: 1}[function] == 1


def test_attributes_of_the_function_are_kept_and_its_own_are_not_mixed_up():
    def f(x):
        return x**2

    f.note = "noted"
    assert grad(f).note == "noted"
    inner = grad(f, argnums=(0,))
    assert repr(vmap(inner)) == "vmap(grad(f, argnums=(0,)))"
    assert vmap(inner).__wrapped__ is inner
    wrapped = functools.wraps(inner)(lambda x: inner(x))
    assert repr(hessian(wrapped)) == "hessian(f)"


def test_an_object_that_can_be_called():
    class Square:
        def __call__(self, x):
            return x * x

    assert repr(grad(Square())) == "grad(Square)"
    assert grad(Square())(3.0) == 6.0
    assert grad(Square()).__name__ == "Square"


def test_branches_that_are_transformed_functions_are_told_apart():
    square, pair = (lambda x: x**2), (lambda x: np.array([x, x]).sum())
    assert cond(True, grad(square), grad(pair), 3.0) == 6.0
    wrong = lambda x: np.sum(x) * np.ones(2) @ np.ones(2)
    with pytest.raises(functrans.errors.FunctransError):
        cond(True, grad(square), functrans.jacfwd(lambda x: np.ones(2) * x), 3.0)
    assert cond(True, grad(square), grad(wrong), 3.0) == 6.0
