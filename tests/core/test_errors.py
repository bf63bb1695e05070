"""Every error a user can meet: its class, and what its message says happened, where, and to do.

Each error is a FunctransError and also the built-in exception that NumPy users expect. The last
part checks that an exception leaves no state behind.
"""

import dataclasses
import math
import operator
import re
import warnings

import numpy as np
import pytest

import functrans
from functrans import (
    Graph,
    all_gather,
    axis_index,
    errors,
    eval_shape,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    jvp,
    linear_transpose,
    linearize,
    make_graph,
    pmax,
    pmean,
    pmin,
    psum,
    stop_gradient,
    value_and_grad,
    vjp,
    vmap,
)
from functrans.core.dispatch import running_interpreters
from functrans.graph.graph import Equation, Variable

HERE = r"test_errors\.py, line \d+"
THREE = np.array([1.0, 2.0, 3.0])


def raised(builtin, function, *patterns):
    """Call a function that must raise a FunctransError; every pattern must be in its message."""
    with pytest.raises(errors.FunctransError) as info:
        function()
    assert isinstance(info.value, builtin)
    message = str(info.value)
    for pattern in patterns:
        assert re.search(pattern, message), f"{pattern!r} is not in {message!r}"
    return info.value


def every_error_class():
    return [
        cls
        for cls in vars(errors).values()
        if isinstance(cls, type)
        and issubclass(cls, errors.FunctransError)
        and cls is not errors.FunctransError
    ]


def test_there_are_error_classes_to_check():
    assert len(every_error_class()) >= 14


@pytest.mark.parametrize("cls", every_error_class(), ids=lambda cls: cls.__name__)
def test_every_error_is_a_builtin_error_too(cls):
    builtins = (TypeError, ValueError, RuntimeError, NameError, NotImplementedError)
    builtins += (FloatingPointError, AssertionError, ImportError)
    assert issubclass(cls, builtins)
    assert cls.__doc__


# The output of a function given to grad.

DIFFERENTIATORS = [grad, value_and_grad]


@pytest.mark.parametrize("transform", DIFFERENTIATORS)
def test_grad_refuses_an_output_that_is_an_array(transform):
    def doubled(x):
        return 2 * x

    raised(
        TypeError,
        lambda: transform(doubled)(THREE),
        r"shape \(3,\)",
        rf"`doubled` \({HERE}",
        r"np\.sum.*jacrev",
    )


def test_a_function_of_a_notebook_is_found_in_its_cell():
    # Jupyter gives a cell the name of a file that is a number.
    source = "def residuals(x):\n    return x * x"
    namespace = {}
    exec(compile(source, "/tmp/ipykernel_123/771424586.py", "exec"), namespace)
    raised(
        TypeError,
        lambda: grad(namespace["residuals"])(THREE),
        r"`residuals` \(notebook cell, line 1\)",
    )


def test_grad_refuses_an_array_of_one_entry():
    raised(TypeError, lambda: grad(lambda x: x)(np.ones((1, 1))), r"shape \(1, 1\)", HERE)


def test_grad_refuses_an_array_output_that_does_not_depend_on_the_argument():
    raised(TypeError, lambda: grad(lambda x: THREE)(1.0), r"shape \(3,\)", HERE)


@pytest.mark.parametrize("transform", DIFFERENTIATORS)
def test_grad_refuses_a_complex_output(transform):
    raised(
        TypeError,
        lambda: transform(lambda x: x * 1j)(1.0),
        "complex128",
        HERE,
        r"np\.real.*holomorphic=True",
    )


@pytest.mark.parametrize("transform", DIFFERENTIATORS)
@pytest.mark.parametrize(
    ("f", "dtype"),
    [
        (lambda x: np.argmax(x), "int64"),
        (lambda x: 3, "int64"),
        (lambda x: np.sum(x) > 0, "bool"),
        (lambda x: np.sum(x).astype(int), "int64"),
    ],
)
def test_grad_refuses_an_output_without_derivative(transform, f, dtype):
    raised(
        TypeError,
        lambda: transform(f)(THREE),
        rf"floating point output.*{dtype}",
        HERE,
        "Return a float",
    )


@pytest.mark.parametrize(
    ("f", "name"),
    [
        (lambda x: None, "None"),
        (lambda x: (x, x), "tuple of 2"),
        (lambda x: [x], "list of 1"),
        (lambda x: {"loss": x}, "dict of 1"),
        (lambda x: "loss", "str"),
    ],
)
def test_grad_refuses_an_output_that_is_no_number(f, name):
    raised(TypeError, lambda: grad(f)(1.0), f"returned.*{name}", HERE, "has_aux=True")


@pytest.mark.parametrize("transform", [grad, value_and_grad, jacrev, jacfwd])
def test_has_aux_needs_a_pair(transform):
    raised(
        TypeError,
        lambda: transform(lambda x: x, has_aux=True)(1.0),
        r"pair \(value, aux\)",
        HERE,
    )


def test_has_aux_of_vjp_and_jvp_needs_a_pair():
    raised(TypeError, lambda: vjp(lambda x: x, 1.0, has_aux=True), r"pair \(value, aux\)", HERE)
    raised(
        TypeError,
        lambda: jvp(lambda x: (x, x, x), (1.0,), (1.0,), has_aux=True),
        r"pair \(value, aux\).*tuple of 3",
        HERE,
    )


def test_holomorphic_grad_refuses_a_real_argument():
    raised(
        TypeError,
        lambda: grad(lambda z: z * 1j, holomorphic=True)(1.0),
        "needs complex arguments.*argument 0.*float64",
        r"\.astype\(complex\)",
    )


def test_holomorphic_grad_refuses_a_real_output():
    raised(
        TypeError,
        lambda: grad(lambda z: np.abs(z), holomorphic=True)(1 + 1j),
        "needs a complex output.*float64",
        HERE,
        "Leave holomorphic out",
    )


def test_jacrev_refuses_an_integer_output():
    raised(
        TypeError,
        lambda: jacrev(lambda x: np.argsort(x))(THREE),
        "floating point outputs.*int64",
        HERE,
    )


# The arguments to differentiate by.


BY_ARGUMENT = {
    "grad": lambda f, x: grad(f)(x),
    "value_and_grad": lambda f, x: value_and_grad(f)(x),
    "vjp": lambda f, x: vjp(f, x),
    "linearize": lambda f, x: linearize(f, x),
    "jacfwd": lambda f, x: jacfwd(f)(x),
    "jacrev": lambda f, x: jacrev(f)(x),
    "jacobian": lambda f, x: jacobian(f)(x),
    "hessian": lambda f, x: hessian(f)(x),
}


@pytest.mark.parametrize("transform", BY_ARGUMENT)
@pytest.mark.parametrize(
    ("argument", "dtype"),
    [(2, "int64"), (True, "bool"), (np.arange(3), "int64"), (np.array([True]), "bool")],
)
def test_derivative_by_an_integer_or_bool_is_refused(transform, argument, dtype):
    raised(
        TypeError,
        lambda: BY_ARGUMENT[transform](lambda x: np.sum(x) * 1.0, argument),
        f"argument 0 has dtype {dtype}",
        HERE,
        r"Write \d\.0 instead of|x\.astype\(float\)",
    )


def test_derivative_by_the_second_argument_names_it():
    raised(TypeError, lambda: grad(lambda x, n: x * n, argnums=1)(1.0, 2), "argument 1.*int64")


def test_an_integer_deep_in_a_pytree_is_named_by_its_path():
    parameters = {"layers": [{"w": THREE}, {"w": THREE, "n": np.arange(2)}]}
    raised(
        TypeError,
        lambda: grad(lambda p: np.sum(p["layers"][0]["w"]))(parameters),
        r"argument 0\['layers'\]\[1\]\['n'\] has dtype int64",
    )


def test_an_integer_field_of_a_dataclass_is_named():
    @dataclasses.dataclass
    class Model:
        weight: float
        steps: int

    raised(TypeError, lambda: grad(lambda m: m.weight)(Model(1.0, 3)), r"argument 0\.steps.*int64")


@pytest.mark.parametrize("transform", BY_ARGUMENT)
@pytest.mark.parametrize(
    ("leaf", "kind"),
    [
        ("a", "str"),
        (object(), "object"),
        (np.array(["a"]), "dtype <U1"),
        (np.array([None]), "dtype object"),
    ],
)
def test_a_leaf_that_is_no_array_is_refused_and_named(transform, leaf, kind):
    raised(
        TypeError,
        lambda: BY_ARGUMENT[transform](lambda p: p["x"], {"name": leaf, "x": 1.0}),
        rf"argument 0\['name'\].*{kind}",
        HERE,
        "Convert it|Close over it|Make its class a container",
    )


def test_vmap_refuses_a_mapped_string():
    raised(
        TypeError,
        lambda: vmap(lambda p: p["x"])({"name": "a", "x": THREE}),
        r"vmap: argument 0\['name'\].*str",
        HERE,
        "Close over it",
    )


def test_vmap_refuses_an_output_that_is_no_array():
    raised(TypeError, lambda: vmap(lambda x: (x, "a"))(THREE), r"vmap: an output.*str", HERE)


def test_vjp_and_jvp_and_linearize_refuse_an_output_that_is_no_array():
    raised(TypeError, lambda: vjp(lambda x: (x, "a"), 1.0), r"the output\[1\].*str", HERE)
    raised(TypeError, lambda: jvp(lambda x: (x, "a"), (1.0,), (1.0,)), r"output.*str")
    raised(TypeError, lambda: linearize(lambda x: (x, "a"), 1.0), r"output.*str")


def test_make_graph_refuses_leaves_that_are_no_arrays():
    raised(TypeError, lambda: make_graph(lambda x: x)("a"), "make_graph: an argument.*str")
    raised(TypeError, lambda: make_graph(lambda x: (x, "a"))(1.0), "output.*str", HERE)


def test_ravel_pytree_refuses_a_string():
    raised(TypeError, lambda: functrans.ravel_pytree({"a": "b"}), "ravel_pytree.*str")


def test_ravel_pytree_refuses_to_unravel_a_vector_of_another_length():
    _, unravel = functrans.ravel_pytree({"a": THREE})
    raised(TypeError, lambda: unravel(np.ones(4)), r"3 entries.*\(4,\)")


def test_an_operand_that_is_no_number_is_refused():
    # A list is converted by us; an array of text meets NumPy's own error.
    raised(
        TypeError,
        lambda: grad(lambda x: np.sum(x * ["a", "b", "c"]))(THREE),
        "not a number",
        HERE,
    )
    with pytest.raises(TypeError, match="did not contain a loop"):
        grad(lambda x: np.sum(x * np.array(["a", "b", "c"])))(THREE)


# argnums.

WITH_ARGNUMS = [grad, value_and_grad, jacfwd, jacrev, jacobian, hessian]


@pytest.mark.parametrize("transform", WITH_ARGNUMS)
@pytest.mark.parametrize("argnums", [2, -3, (0, 2)])
def test_argnums_out_of_range(transform, argnums):
    def product(x, y):
        return x * y

    raised(
        ValueError,
        lambda: transform(product, argnums)(1.0, 2.0),
        rf"argnums={re.escape(repr(argnums))} names argument (2|-3)",
        rf"`product` \({HERE}",
        "2 positional arguments",
        HERE,
        "Pass the argument by position, and count from 0",
    )


def test_argnums_of_an_argument_passed_by_keyword():
    raised(ValueError, lambda: grad(lambda x: x)(x=1.0), "0 positional arguments", "by position")


@pytest.mark.parametrize("transform", WITH_ARGNUMS)
@pytest.mark.parametrize("argnums", [(0, 0), (1, -1)])
def test_argnums_that_name_an_argument_twice(transform, argnums):
    raised(ValueError, lambda: transform(lambda x, y: x * y, argnums)(1.0, 2.0), "twice")


@pytest.mark.parametrize("transform", WITH_ARGNUMS)
@pytest.mark.parametrize("argnums", ["x", (0.0,), 1.0, None, True, (True,)])
def test_argnums_of_a_wrong_type(transform, argnums):
    raised(
        TypeError,
        lambda: transform(lambda x, y: x * y, argnums)(1.0, 2.0),
        rf"argnums must be an int or a tuple of ints, not {re.escape(repr(argnums))}",
    )


def test_jacobian_refuses_an_unknown_mode():
    raised(ValueError, lambda: jacobian(np.sin, mode="forward"), "'forward'", '"fwd" or "rev"')


# Things that are not functions.

TAKE_A_FUNCTION = {
    "grad": grad,
    "value_and_grad": value_and_grad,
    "vjp": lambda f: vjp(f, 1.0),
    "jvp": lambda f: jvp(f, (1.0,), (1.0,)),
    "linearize": lambda f: linearize(f, 1.0),
    "linear_transpose": lambda f: linear_transpose(f, 1.0),
    "jacfwd": jacfwd,
    "jacrev": jacrev,
    "jacobian": jacobian,
    "hessian": hessian,
    "hvp": lambda f: hvp(f, (1.0,), (1.0,)),
    "vmap": vmap,
    "make_graph": make_graph,
    "eval_shape": lambda f: eval_shape(f, 1.0),
}


@pytest.mark.parametrize("transform", TAKE_A_FUNCTION)
def test_a_transform_of_no_function_is_named_in_the_error(transform):
    raised(
        TypeError,
        lambda: TAKE_A_FUNCTION[transform](np.float64(3.0)),
        rf"\b{transform} needs a function, not a float64",
        r"\(f\)\(x\)|\(f, ",
    )


# vmap: in_axes, out_axes, sizes.


def test_in_axes_of_another_length_than_the_arguments():
    raised(
        ValueError,
        lambda: vmap(np.add, in_axes=(0, 0, 0))(THREE, THREE),
        "in_axes has 3 entries.*2 positional arguments",
        "one entry per argument",
    )


@pytest.mark.parametrize("in_axes", ["0", 1.5, {"x": 0}, True])
def test_in_axes_of_a_wrong_type(in_axes):
    raised(
        ValueError,
        lambda: vmap(np.sin, in_axes=in_axes)(THREE),
        "in_axes must be an int, None, or a tuple",
        re.escape(repr(in_axes)),
    )


def test_in_axes_that_hold_no_axis():
    raised(
        ValueError,
        lambda: vmap(np.add, in_axes=(0, "a"))(THREE, THREE),
        r"in_axes\[1\] holds 'a'",
        "an axis is an int, or None",
    )


def test_in_axes_of_another_structure_than_the_argument():
    raised(
        ValueError,
        lambda: vmap(lambda p: p["w"], in_axes=({"v": 0},))({"w": THREE}),
        r"in_axes\[0\] = \{'v': 0\} does not match the structure of argument 0",
        "containers like those of argument 0",
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda: vmap(np.sin, in_axes=None)(THREE),
        lambda: vmap(np.add, in_axes=(None, None))(THREE, THREE),
        lambda: vmap(lambda: 1.0)(),
        lambda: vmap(lambda p: 1.0)({}),
    ],
)
def test_vmap_that_maps_nothing(call):
    raised(ValueError, call, "nothing to map", "Map at least one argument, or give axis_size")


@pytest.mark.parametrize("axis", [2, -3])
def test_in_axes_out_of_range(axis):
    raised(
        ValueError,
        lambda: vmap(lambda p: p["w"], in_axes=axis)({"w": np.ones((2, 3))}),
        rf"axis {axis} of argument 0\['w'\].*shape \(2, 3\)",
        HERE,
        "None if all lanes share it",
    )


def test_vmap_of_a_number_has_no_axis_to_map():
    raised(ValueError, lambda: vmap(np.add)(THREE, 1.0), r"axis 0 of argument 1.*shape \(\)")


def test_axis_sizes_that_differ_are_listed_by_argument():
    raised(
        ValueError,
        lambda: vmap(lambda x, p: x * p["w"], in_axes=(0, 1))(THREE, {"w": np.ones((2, 4))}),
        r"argument 0 has 3 along axis 0",
        r"argument 1\['w'\] has 4 along axis 1",
        "None in in_axes",
    )


def test_axis_sizes_of_keyword_arguments_are_listed_by_name():
    raised(
        ValueError,
        lambda: vmap(lambda x, scale: x * scale)(THREE, scale=np.ones(2)),
        "argument 0 has 3 along axis 0",
        "argument 'scale' has 2 along axis 0",
    )


def test_axis_size_that_differs_from_the_arguments():
    raised(
        ValueError,
        lambda: vmap(np.sin, axis_size=5)(THREE),
        "argument 0 has 3",
        "axis_size is 5",
    )


def test_out_axes_none_for_an_output_that_is_mapped():
    raised(
        ValueError,
        lambda: vmap(lambda x: 2 * x, out_axes=None)(THREE),
        "out_axes is None.*differs from lane to lane",
        HERE,
        HERE,
        "Use an int",
    )


def test_out_axes_out_of_range():
    raised(ValueError, lambda: vmap(np.sin, out_axes=1)(THREE), "out_axes.* 1.*only 1 axes")


def test_out_axes_of_another_structure_than_the_output():
    raised(
        ValueError,
        lambda: vmap(lambda x: (x, x), out_axes=(0, 0, 0))(THREE),
        r"out_axes = \(0, 0, 0\) does not match the structure of the output",
    )


def test_out_axes_none_for_a_shared_output_is_legal_in_chunks_too():
    mapped = vmap(lambda x, c: c, in_axes=(0, None), out_axes=None, chunk_size=2)
    assert mapped(THREE, 5.0) == 5.0


@pytest.mark.parametrize("chunk_size", [0, -1, 1.5, "all"])
def test_chunk_size_must_be_a_positive_int(chunk_size):
    with pytest.raises(errors.FunctransError, match="chunk_size must be a positive int") as info:
        vmap(np.sin, chunk_size=chunk_size)
    assert isinstance(info.value, (TypeError, ValueError))


@pytest.mark.parametrize("axis_size", [-1, 1.5, "all"])
def test_axis_size_must_be_an_int(axis_size):
    with pytest.raises(errors.FunctransError, match="axis_size"):
        vmap(lambda x: x, in_axes=None, axis_size=axis_size)(1.0)


# Lanes that cannot be put together again.


def test_lanes_that_return_different_structures():
    def f(x):
        return (x,) if x > 0 else [x]

    raised(
        ValueError,
        lambda: vmap(f)(np.array([1.0, -1.0])),
        "different branches.*different structures",
        rf"`f` \({HERE}",
        "same containers on every path",
    )


def test_lanes_that_return_different_shapes():
    def f(x):
        return np.ones(2) * x if x > 0 else np.ones(3) * x

    raised(
        ValueError,
        lambda: vmap(f)(np.array([1.0, -1.0])),
        r"different branches.*different shapes: \(2,\), \(3,\)",
        rf"`f` \({HERE}",
        "same shape on every path",
    )


# Tangents and cotangents.

PRIMALS = ({"w": THREE, "b": 1.0},)


def test_tangents_of_another_structure():
    raised(
        TypeError,
        lambda: jvp(lambda p: p["w"], PRIMALS, ({"w": THREE},)),
        "tangents do not have the structure of the primals",
        "one tangent for every array",
    )


def test_tangents_that_are_no_tuple():
    raised(
        TypeError,
        lambda: jvp(np.sin, 1.0, 1.0),
        "primals as a tuple.*float",
        r"jvp\(f, \(x,\), \(t,\)\)",
    )
    raised(TypeError, lambda: jvp(np.sin, (1.0,), 1.0), "tangents as a tuple")


def test_primals_of_hvp_that_are_no_tuple():
    raised(TypeError, lambda: hvp(np.sum, THREE, THREE), "hvp|jvp", r"\(f, \(x,\), \(t,\)\)")


def test_a_tangent_too_few():
    raised(TypeError, lambda: jvp(np.add, (1.0, 2.0), (1.0,)), "another structure")


def test_a_tangent_of_another_shape():
    raised(
        TypeError,
        lambda: jvp(lambda p: p["w"], PRIMALS, ({"w": np.ones(2), "b": 1.0},)),
        r"tangent of argument 0\['w'\] has shape \(2,\).*primal has shape \(3,\)",
        HERE,
        r"np\.broadcast_to\(tangent, \(3,\)\)",
    )


@pytest.mark.parametrize("dtype", ["float32", "int64", "complex128"])
def test_a_tangent_of_another_dtype(dtype):
    raised(
        TypeError,
        lambda: jvp(np.sin, (THREE,), (np.ones(3, dtype),)),
        rf"tangent of argument 0 has dtype {dtype}.*primal has dtype float64",
        r"\.astype\('float64'\)",
    )


def test_a_complex_number_as_tangent_of_a_real_primal():
    raised(TypeError, lambda: jvp(np.sin, (1.0,), (1j,)), "complex128.*float64")


def test_a_tangent_that_is_no_array():
    raised(TypeError, lambda: jvp(np.sin, (1.0,), ("a",)), "the tangent of argument 0.*str")


def test_linearize_checks_its_tangents():
    _, linear = linearize(lambda p: p["w"] * p["b"], *PRIMALS)
    raised(TypeError, lambda: linear({"w": THREE}), "tangents do not have the structure")
    raised(TypeError, lambda: linear(), "tangents do not have the structure")
    raised(
        TypeError,
        lambda: linear({"w": np.ones(2), "b": 1.0}),
        r"tangent of argument 0\['w'\] has shape \(2,\).*\(3,\)",
    )
    raised(
        TypeError,
        lambda: linear({"w": np.ones(3, np.float32), "b": 1.0}),
        r"argument 0\['w'\] has dtype float32.*float64",
    )


def test_a_pullback_checks_its_cotangents():
    _, pullback = vjp(lambda x: {"a": x, "b": np.sum(x)}, THREE)
    raised(
        TypeError,
        lambda: pullback(THREE),
        "cotangents do not have the structure of the outputs",
        "one cotangent for every array",
    )
    raised(
        TypeError,
        lambda: pullback({"a": np.ones(2), "b": 1.0}),
        r"cotangent of the output\['a'\] has shape \(2,\).*output has shape \(3,\)",
    )
    raised(
        TypeError,
        lambda: pullback({"a": np.ones(3, np.float32), "b": 1.0}),
        r"cotangent of the output\['a'\] has dtype float32.*float64",
        r"\.astype\('float64'\)",
    )


def test_a_transpose_checks_its_cotangents():
    transpose = linear_transpose(lambda x: 2 * x, THREE)
    raised(TypeError, lambda: transpose(np.ones(2)), r"cotangent.*\(2,\).*\(3,\)")


# Plain arrays cannot hold traced values.

TRACERS = {
    "grad": lambda f: grad(lambda x: np.sum(f(x)))(THREE),
    "jvp": lambda f: jvp(f, (THREE,), (THREE,)),
    "vmap": lambda f: vmap(f)(np.stack([THREE, -THREE])),
    "make_graph": lambda f: make_graph(f)(THREE),
    "linearize": lambda f: linearize(f, THREE),
    "vmap of grad": lambda f: vmap(grad(lambda x: np.sum(f(x))))(np.stack([THREE, -THREE])),
}


@pytest.mark.parametrize("transform", TRACERS)
@pytest.mark.parametrize(
    "convert",
    [
        lambda x: np.array([x[0], x[1]]),
        lambda x: np.array([[x[0]], [1.0]]),
        lambda x: np.array([x, x]),
        lambda x: np.array(x),
        lambda x: np.asarray(x),
        lambda x: np.asarray(x[0]),
        lambda x: np.asarray(x, dtype=float),
    ],
)
@pytest.mark.usefixtures("without_hooks")
def test_conversion_to_a_plain_array_names_the_alternatives(transform, convert):
    raised(
        TypeError,
        lambda: TRACERS[transform](convert),
        "would make a plain array of traced values",
        HERE,
        r"functrans\.numpy\.(as)?array",
    )


def assign_entry(x):
    out = np.zeros(3)
    out[0] = x[0]
    return out


def assign_slice(x):
    out = np.zeros(3)
    out[0:2] = x[0:2]
    return out


def assign_number_to_slice(x):
    out = np.zeros(3)
    out[0:2] = x[0]
    return out


def assign_row(x):
    out = np.zeros((2, 3))
    out[1] = x
    return out


def assign_by_mask(x):
    out = np.zeros(3)
    out[np.array([True, False, True])] = x[0]
    return out


@pytest.mark.parametrize("transform", TRACERS)
@pytest.mark.parametrize(
    "assign", [assign_entry, assign_slice, assign_number_to_slice, assign_row, assign_by_mask]
)
@pytest.mark.usefixtures("without_hooks")
def test_assignment_into_a_plain_array_names_the_alternatives(transform, assign):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.DerivativeWarning)
        raised(
            TypeError,
            lambda: TRACERS[transform](assign),
            "assigned into a plain array",
            rf"{HERE}, in assign_",
            r"functrans\.numpy\.zeros",
        )


@pytest.mark.parametrize("transform", ["vmap", "make_graph"])
@pytest.mark.parametrize("dtype", [bool, int])
@pytest.mark.usefixtures("without_hooks")
def test_assignment_of_a_traced_bool_or_integer_is_refused(transform, dtype):
    def f(x):
        out = np.zeros(3, dtype)
        out[0] = (x[0] > 0).astype(dtype)
        return out

    raised(TypeError, lambda: TRACERS[transform](f), "assigned into a plain array", HERE)


def write_by_fill(a, x):
    a.fill(x)


def write_by_put(a, x):
    a.put([0], x)


def write_by_method(a, x):
    a.__setitem__(0, x)


def write_by_operator(a, x):
    operator.setitem(a, 0, x)


def write_diagonal(a, x):
    np.fill_diagonal(a.reshape(1, 3), x)


def write_real_part(a, x):
    a.real = x


def write_flat(a, x):
    a.flat = x


@pytest.mark.parametrize("transform", TRACERS)
@pytest.mark.usefixtures("without_hooks")
def test_a_dtype_called_as_a_function_says_astype(transform):
    convert = lambda x: np.float32(x)
    raised(TypeError, lambda: TRACERS[transform](convert), r"x\.astype\(np\.float32\)", HERE)


@pytest.mark.usefixtures("without_hooks")
def test_a_function_of_scipy_is_blamed_on_its_caller():
    scipy_linalg = pytest.importorskip("scipy.linalg")
    f = lambda x: np.sum(scipy_linalg.expm(np.outer(x, x)))
    raised(
        TypeError,
        lambda: grad(f)(THREE),
        rf"scipy.linalg.expm .*{HERE}, in <lambda>: .*expm.*functrans.scipy",
    )


def test_hvp_without_tuples():
    for primals in (2.0, THREE):
        raised(TypeError, lambda x=primals: hvp(np.sum, x, x), r"hvp\(f, \(x,\), \(t,\)\)")


def test_a_list_is_no_array_to_vmap():
    raised(ValueError, lambda: vmap(np.sin)([1.0, 2.0]), r"argument 0\[0\]", r"np\.array\(list\)")


@pytest.mark.parametrize("transform", TRACERS)
@pytest.mark.parametrize(
    "write",
    [write_by_fill, write_by_put, write_by_method, write_by_operator, write_diagonal]
    + [write_real_part, write_flat],
)
@pytest.mark.usefixtures("without_hooks")
def test_every_way_to_write_into_a_plain_array_is_refused(write, transform):
    def f(x):
        out = np.zeros(3)
        write(out, x[0])
        return np.sum(out) * x[0]

    call = lambda: TRACERS[transform](f)
    raised(
        errors.AssignmentError,
        call,
        "assigned into a plain array",
        r"functrans\.numpy\.zeros",
        HERE,
    )


@pytest.mark.usefixtures("without_hooks")
def test_addition_in_place_to_a_plain_array_says_what_to_write():
    def f(x):
        total = np.zeros(3)
        total += x
        return np.sum(total)

    raised(
        TypeError,
        lambda: grad(f)(THREE),
        r"numpy\.add cannot be written into a plain array",
        rf"{HERE}, in f",
        r"functrans\.numpy\.zeros\(shape\)",
    )


def test_a_plain_array_indexed_by_a_traced_array_is_read_or_refused_with_advice_that_works():
    table = np.arange(10.0)
    rows = np.array([[1, 2], [3, 4]])
    try:
        read = vmap(lambda i: table[i])(rows)
    except errors.FunctransError as error:
        assert re.search(rf"a plain array cannot be indexed.*{HERE}", str(error))
        if "np.take(" in str(error):
            read = vmap(lambda i: np.take(table, i))(rows)
        else:
            read = vmap(lambda i: functrans.numpy.take(table, i))(rows)
    np.testing.assert_array_equal(read, table[rows])


# Tracers that outlive their transform.


def keep_from_grad(kept):
    grad(lambda x: (kept.append(x), np.sum(x * x))[1])(THREE)


def keep_from_vjp(kept):
    vjp(lambda x: (kept.append(x), x * x)[1], THREE)


def keep_from_jvp(kept):
    jvp(lambda x: (kept.append(x), x * x)[1], (THREE,), (THREE,))


def keep_from_vmap(kept):
    vmap(lambda x: (kept.append(x), x * x)[1])(np.stack([THREE, -THREE]))


def keep_from_make_graph(kept):
    make_graph(lambda x: (kept.append(x), x * x)[1])(THREE)


ESCAPES = {
    "grad": keep_from_grad,
    "grad|vjp": keep_from_vjp,
    "jvp": keep_from_jvp,
    "vmap": keep_from_vmap,
    "make_graph": keep_from_make_graph,
}

USES = {
    "product": lambda t: t * 2.0,
    "product from the left": lambda t: 2.0 * t,
    "sine": lambda t: np.sin(t),
    "sum": lambda t: np.sum(t),
    "index": lambda t: t[0],
    "concatenate": lambda t: np.concatenate([t, THREE]),
    "comparison": lambda t: t > 0,
    "item": lambda t: t.item(0),
}
ESCAPED = [f"has finished, at {HERE}", "Return it from the function instead", "has_aux=True"]


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("transform", ESCAPES)
def test_an_escaped_tracer_is_refused(transform, use):
    kept = []
    ESCAPES[transform](kept)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.DerivativeWarning)
        raised(RuntimeError, lambda: USES[use](kept[0]), f"made by ({transform})", *ESCAPED)


@pytest.mark.parametrize("inside", TRACERS)
@pytest.mark.parametrize("transform", ESCAPES)
def test_an_escaped_tracer_is_refused_inside_another_transform(transform, inside):
    kept = []
    ESCAPES[transform](kept)
    raised(RuntimeError, lambda: TRACERS[inside](lambda x: x * kept[0]), *ESCAPED)
    raised(RuntimeError, lambda: TRACERS[inside](lambda x: kept[0] * x), *ESCAPED)


def test_a_tracer_of_an_inner_transform_is_refused_in_the_outer_one():
    def outer(x):
        kept = []
        grad(lambda y: (kept.append(y), y * x)[1])(2.0)
        return kept[0] * x

    raised(RuntimeError, lambda: grad(outer)(1.0), *ESCAPED)


def test_a_tracer_returned_by_an_escaped_generator_is_refused():
    def f(x):
        generators.append(x * k for k in range(3))
        return x

    generators = []
    grad(f)(1.0)
    raised(RuntimeError, lambda: next(generators[0]), *ESCAPED)


def test_a_pullback_that_outlives_an_outer_transform_is_refused_where_it_is_called():
    kept = []

    def f(x):
        kept.append(vjp(lambda y: y * y * x, x)[1])
        return x

    grad(f)(2.0)
    raised(RuntimeError, lambda: kept[0](1.0), *ESCAPED)


# NumPy functions without a rule.


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: np.busday_offset(x, 1), r"numpy\.busday_offset"),
        (lambda x: np.datetime_as_string(x), r"numpy\.datetime_as_string"),
        (lambda x: np.frompyfunc(abs, 1, 1)(x), r"numpy\.abs \(vectorized\)"),
        (lambda x: np.isnat(x), r"numpy\.isnat"),
    ],
)
@pytest.mark.parametrize("transform", ["grad", "vmap", "make_graph"])
def test_a_numpy_function_without_rule_is_named_with_how_to_give_it_one(transform, call, name):
    remedy = "define_primitive" if transform == "grad" else "pure_callback"
    error = raised(
        NotImplementedError,
        lambda: TRACERS[transform](call),
        f"{name} has no rule",
        HERE,
        rf"functrans\.{remedy}\(",
    )
    assert isinstance(error, TypeError)


@pytest.mark.parametrize(
    ("call", "option"),
    [
        (lambda x: np.sin(x, out=np.zeros(3)), "out="),
        (lambda x: np.add(x, x, out=np.zeros(3)), "out="),
        (lambda x: np.sum(x, out=np.zeros(())), "out="),
        (lambda x: np.cumsum(x, out=np.zeros(3)), "out="),
        (lambda x: np.clip(x, 0.0, 1.0, out=np.zeros(3)), "out="),
        (lambda x: np.matmul(x, x, out=np.zeros(())), "out="),
        (lambda x: np.dot(x, x, out=np.zeros(())), "out="),
    ],
)
@pytest.mark.parametrize("transform", ["grad", "vmap"])
@pytest.mark.usefixtures("without_hooks")
def test_an_option_without_rule_is_named(transform, call, option):
    raised(
        TypeError,
        lambda: TRACERS[transform](call),
        f"with {option} has no rule|cannot be written into a plain array.*{option}",
        HERE,
    )


# Staging cannot look at values.

NEED_VALUES = {
    "if": lambda x: x if np.sum(x) > 0 else -x,
    "while": lambda x: halve(x),
    "float": lambda x: float(x[0]),
    "int": lambda x: int(x[0]),
    "complex": lambda x: complex(x[0]),
    "item": lambda x: x[0].item(),
    "tolist": lambda x: x.tolist(),
    "range": lambda x: sum(range(np.argmax(x))),
    "mask": lambda x: x[x > 0],
    "nonzero": lambda x: np.where(x > 0),
    "slice": lambda x: x[: np.argmax(x)],
    "max": lambda x: max(x[0], x[1]),
}


REMEDIES = {
    "if": r"Write np\.where\(np\.sum\(x\) > 0, x, -x\)\.",
    "while": r"Write functrans\.while_loop\(cond, body, init\)",
    "float": r"Leave the conversion out: arithmetic works on x\[0\]",
    "int": r"Write x\[0\]\.astype\(int\)",
    "complex": r"Write x\[0\]\.astype\(complex\)",
    "item": "Leave the conversion out",
    "tolist": "Leave the conversion out",
    "range": r"Write functrans\.fori_loop\(",
    "mask": r"Keep the size: np\.where\(x > 0, x, 0\.0\)",
    "nonzero": r"Keep the size, and use the mask: np\.where\(x > 0, 1\.0, 0\.0\)",
    "slice": r"Keep the size: np\.where\(np\.arange\(len\(x\)\) < n, x, 0\.0\)",
    "max": r"Write np\.maximum\(x\[0\], x\[1\]\)",
}


def halve(x):
    while np.sum(x) > 1:
        x = x / 2
    return x


@pytest.mark.parametrize("case", NEED_VALUES)
@pytest.mark.parametrize("transform", ["make_graph", "eval_shape"])
def test_staging_names_the_alternatives_to_looking_at_a_value(transform, case):
    stage = make_graph if transform == "make_graph" else lambda f: lambda *x: eval_shape(f, *x)
    raised(
        TypeError,
        lambda: stage(NEED_VALUES[case])(THREE),
        f"not known while {transform} traces",
        HERE,
        REMEDIES[case],
    )


# Collectives.

COLLECTIVES = {
    "psum": psum,
    "pmean": pmean,
    "pmax": pmax,
    "pmin": pmin,
    "all_gather": all_gather,
    "axis_index": lambda x, name: axis_index(name),
}


@pytest.mark.parametrize("name", COLLECTIVES)
def test_a_collective_over_an_unknown_axis(name):
    collective = COLLECTIVES[name]
    raised(
        NameError,
        lambda: vmap(lambda x: collective(x, "j"), axis_name="i")(THREE),
        "no running vmap has an axis named 'j'",
        "the names in use are 'i'",
        HERE,
        r"vmap\(f, axis_name='j'\)",
    )
    raised(NameError, lambda: collective(1.0, "i"), "no running axis has a name", HERE)


def test_nested_axes_of_one_name():
    raised(
        NameError,
        lambda: vmap(lambda r: vmap(lambda x: x, axis_name="i")(r), axis_name="i")(np.eye(2)),
        "axis named 'i' is already mapped",
        HERE,
        "its own axis_name",
    )


@pytest.mark.parametrize("name", [n for n in COLLECTIVES if n != "axis_index"])
def test_a_collective_after_the_lanes_have_split(name):
    collective = COLLECTIVES[name]

    def f(x):
        return collective(x, "i") if x > 0 else collective(-x, "i")

    raised(
        ValueError,
        lambda: vmap(f, axis_name="i")(np.array([1.0, -1.0, 2.0])),
        r"over axis 'i' needs all 3 lanes, but only 2 are in this run",
        rf"{HERE}, in f",
        r"np\.where instead of `if`",
    )


@pytest.mark.parametrize("name", [n for n in COLLECTIVES if n != "axis_index"])
def test_a_collective_in_chunks(name):
    collective = COLLECTIVES[name]
    raised(
        ValueError,
        lambda: vmap(lambda x: collective(x, "i"), axis_name="i", chunk_size=2)(THREE),
        "needs all 3 lanes",
        HERE,
        "leave chunk_size out",
    )


def test_a_collective_error_names_the_collective_that_was_called():
    for name in ("psum", "pmean", "pmax", "pmin", "all_gather"):
        collective = COLLECTIVES[name]
        mapped = vmap(lambda x: collective(x, "i"), axis_name="i", chunk_size=2)  # noqa: B023
        raised(ValueError, lambda: mapped(THREE), rf"^{name} over axis")  # noqa: B023


def test_a_collective_of_a_string():
    raised(
        TypeError,
        lambda: vmap(lambda x: psum("a", "i"), axis_name="i")(THREE),
        "psum: its argument.*str",
    )


# linear_transpose.


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * x,
        lambda x: np.sin(x),
        lambda x: np.exp(x) - 1,
        lambda x: x + 1.0,
        lambda x: 3.0 * np.ones(3),
    ],
)
def test_linear_transpose_refuses_a_function_that_is_not_linear(f):
    reason = "differs from its derivative at 0 times that point"
    raised(ValueError, lambda: linear_transpose(f, THREE), reason, HERE, "Use vjp")


@pytest.mark.parametrize("f", [lambda x: abs(x), lambda x: np.maximum(x, 0), lambda x: np.round(x)])
def test_linear_transpose_refuses_a_function_that_is_linear_only_in_pieces(f):
    raised(ValueError, lambda: linear_transpose(f, THREE), "needs a linear function", HERE)


def test_linear_transpose_refuses_an_integer_example():
    raised(TypeError, lambda: linear_transpose(lambda x: 2 * x, 3), "argument 0.*int64")


# Graphs.


def test_a_graph_called_with_another_structure():
    graph = make_graph(lambda p: p["a"] * 2.0)({"a": THREE})
    raised(
        ValueError,
        lambda: graph(THREE),
        r"traced for arguments \({'a': array}\), but was called with \(array\)",
        "trace again",
    )
    raised(ValueError, lambda: graph({"a": THREE}, 1.0), "called with .*, array", HERE)


@pytest.mark.parametrize(
    ("argument", "found"),
    [
        (np.ones(4), r"float64\[4\]"),
        (np.ones((3, 1)), r"float64\[3,1\]"),
        (np.ones(3, np.float32), r"float32\[3\]"),
        (1.0, r"float64\[\]"),
        ("abc", "str"),
    ],
)
def test_a_graph_called_with_an_argument_it_was_not_traced_for(argument, found):
    graph = make_graph(lambda x, y: x * y)(THREE, THREE)
    raised(
        ValueError,
        lambda: graph(THREE, argument),
        r"input 1 of the graph was traced as float64\[3\]",
        found,
    )


@pytest.mark.parametrize(
    ("traced", "given"), [(np.int64(1), 2.7), (1, 2.7), (1.0, 2j), (np.float64(1.0), 2j)]
)
def test_a_graph_does_not_truncate_a_number(traced, given):
    graph = make_graph(lambda x: x * 2)(traced)
    raised(ValueError, lambda: graph(given), "input 0 of the graph was traced as", HERE)


def test_a_graph_run_with_a_wrong_number_of_values():
    graph = make_graph(np.sin)(THREE)
    raised(ValueError, lambda: graph.run([]), "has 1 inputs, but got 0 values")


def fresh_graph():
    graph = make_graph(lambda x: np.sin(x) * 2.0 + x)(THREE)
    graph.check()
    return graph


def test_check_finds_a_variable_used_before_it_is_defined():
    graph = fresh_graph()
    graph.equations[0], graph.equations[1] = graph.equations[1], graph.equations[0]
    raised(ValueError, graph.check, r"equation 0 \(multiply\) uses a variable before it is defined")


def test_check_finds_an_unknown_output():
    graph = fresh_graph()
    graph.outputs.append(Variable(graph.outputs[0].spec))
    raised(ValueError, graph.check, "the outputs use.* a variable before it is defined")


def test_check_finds_a_variable_defined_twice():
    graph = fresh_graph()
    graph.equations.append(graph.equations[0])
    raised(ValueError, graph.check, r"equation 3 \(sin\) defines a variable.*already defined")


def test_check_finds_an_input_listed_twice():
    graph = fresh_graph()
    graph.inputs.append(graph.inputs[0])
    raised(ValueError, graph.check, "the inputs define.* a variable.*already defined")


def test_check_finds_a_constant_that_is_an_input():
    graph = fresh_graph()
    graph.constants[graph.inputs[0]] = THREE
    raised(ValueError, graph.check, "the constants define.* a variable.*already defined")


def test_check_finds_a_constant_of_another_type():
    graph = fresh_graph()
    variable = next(iter(graph.constants))
    graph.constants[variable] = np.ones(2)
    raised(ValueError, graph.check, r"constant is declared .* but holds float64\[2\]")


def test_check_finds_a_result_declared_with_another_type():
    graph = fresh_graph()
    graph.equations[0].outputs[0].spec = functrans.ArraySpec((3,), np.float32)
    raised(
        ValueError,
        graph.check,
        r"equation 0 \(sin\) is declared .*float32\[3\].* but gives .*float64\[3\]",
    )


def test_check_finds_arguments_that_do_not_fit_the_primitive():
    graph = fresh_graph()
    graph.constants[(short := Variable(functrans.ArraySpec((2,), float)))] = np.ones(2)
    old = graph.equations[1]
    graph.equations[1] = Equation(old.primitive, (old.inputs[0], short), old.params, old.outputs)
    raised(ValueError, graph.check, r"equation 1 \(multiply\) cannot take .*float64\[2\]")


def test_check_finds_a_wrong_number_of_arguments():
    graph = fresh_graph()
    old = graph.equations[1]
    graph.equations[1] = Equation(old.primitive, old.inputs[:1], old.params, old.outputs)
    raised(ValueError, graph.check, r"equation 1 \(multiply\) cannot take")


def test_check_finds_a_missing_parameter():
    graph = make_graph(lambda x: np.sum(x, axis=0))(THREE)
    old = graph.equations[0]
    graph.equations[0] = Equation(old.primitive, old.inputs, {}, old.outputs)
    raised(ValueError, graph.check, r"equation 0 \(sum\)")


def test_check_finds_a_wrong_number_of_results():
    graph = fresh_graph()
    old = graph.equations[0]
    extra = Variable(old.outputs[0].spec)
    graph.equations[0] = Equation(old.primitive, old.inputs, old.params, (*old.outputs, extra))
    raised(ValueError, graph.check, r"equation 0 \(sin\) is declared")


def test_check_accepts_an_empty_graph():
    Graph([], {}, [], []).check()


# Warnings where a derivative is lost.


@pytest.mark.parametrize(
    "convert",
    [
        lambda x: float(x),
        lambda x: int(x),
        lambda x: x.item(),
        lambda x: x.tolist(),
    ],
)
@pytest.mark.parametrize("mode", ["grad", "jvp", "vmap of grad"])
@pytest.mark.usefixtures("without_hooks")
def test_a_lost_derivative_is_warned_of(mode, convert):
    def f(x):
        return x * convert(x)

    with pytest.warns(errors.DerivativeWarning, match="no derivative flows") as record:
        if mode == "grad":
            grad(f)(0.5)
        elif mode == "jvp":
            jvp(f, (0.5,), (1.0,))
        else:
            vmap(grad(f))(np.array([0.5, 0.7]))
    message = str(record[0].message)
    assert re.search(HERE, message)
    assert re.search(r"Use the value itself.*functrans\.stop_gradient", message)
    assert record[0].filename.endswith("test_errors.py")


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * float(stop_gradient(x)),
        lambda x: x * math.sin(stop_gradient(x)),
        lambda x: x * math.floor(x) * round(x),
        lambda x: x * (2.0 if math.isfinite(x) else 0.0),
        lambda x: x * len("%.3f" % x),  # noqa: UP031
        lambda x: x if x > 0 else -x,
        lambda x: x * float(np.argmax(np.stack([x, x]))),
    ],
)
def test_no_warning_where_nothing_is_lost_unawares(f):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grad(f)(1.5)
        jvp(f, (1.5,), (1.0,))
        vmap(grad(f))(np.array([1.5, 2.5]))


def test_float_under_vmap_alone_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(vmap(lambda x: 2 * float(x))(THREE), 2 * THREE)


# An exception in the user's function leaves nothing behind.


class OwnError(Exception):
    """An exception that a user's function raises."""


RUNS = {
    "grad": lambda f: grad(lambda x: np.sum(f(x)))(THREE),
    "value_and_grad": lambda f: value_and_grad(lambda x: np.sum(f(x)))(THREE)[1],
    "vjp": lambda f: vjp(f, THREE)[1](np.ones(3))[0],
    "jvp": lambda f: jvp(f, (THREE,), (np.ones(3),))[1],
    "linearize": lambda f: linearize(f, THREE)[1](np.ones(3)),
    "jacfwd": lambda f: np.sum(jacfwd(f)(THREE), axis=1),
    "jacfwd in chunks": lambda f: np.sum(jacfwd(f, chunk_size=2)(THREE), axis=1),
    "jacrev": lambda f: np.sum(jacrev(f)(THREE), axis=1),
    "jacobian": lambda f: np.sum(jacobian(f)(THREE), axis=1),
    "vmap": lambda f: 2 * vmap(f)(THREE) / THREE,
    "vmap in chunks": lambda f: 2 * vmap(f, chunk_size=2)(THREE) / THREE,
    "vmap by name": lambda f: 2 * vmap(f, axis_name="i")(THREE) / THREE,
    "make_graph": lambda f: 2 * make_graph(f)(THREE)(THREE) / THREE,
    "vmap of grad": lambda f: vmap(grad(f))(THREE),
    "grad of vmap": lambda f: grad(lambda x: np.sum(vmap(f)(x)))(THREE),
    "jvp of grad of vmap": lambda f: (
        2 * jvp(grad(lambda x: np.sum(vmap(f)(x) * x) / 3), (THREE,), (THREE,))[1] / (2 * THREE)
    ),
}


@pytest.mark.parametrize("run", RUNS)
def test_an_exception_leaves_no_state_behind(run):
    def fails(x):
        x * 2.0
        raise OwnError

    assert running_interpreters() == []
    with pytest.raises(OwnError):
        RUNS[run](fails)
    assert running_interpreters() == []
    np.testing.assert_allclose(RUNS[run](lambda x: x * x), 2 * THREE)


def test_an_exception_in_hessian_and_hvp_and_linear_transpose_leaves_no_state_behind():
    def fails(x):
        raise OwnError

    for call in (
        lambda: hessian(fails)(THREE),
        lambda: hvp(fails, (THREE,), (THREE,)),
        lambda: linear_transpose(fails, THREE),
        lambda: eval_shape(fails, THREE),
    ):
        with pytest.raises(OwnError):
            call()
        assert running_interpreters() == []
    np.testing.assert_allclose(hvp(lambda x: np.sum(x**3), (THREE,), (THREE,)), 6 * THREE**2)


def test_an_exception_caught_inside_an_outer_transform_restores_its_level():
    def fails(x):
        raise OwnError

    def f(x):
        before = len(running_interpreters())
        for inner in (grad(fails), vmap(fails, in_axes=None, axis_size=2), make_graph(fails)):
            with pytest.raises(OwnError):
                inner(x)
        assert len(running_interpreters()) == before
        return x * grad(lambda y: x * y * y)(3.0)

    assert grad(f)(2.0) == 24.0


def test_an_exception_on_one_path_of_split_lanes_leaves_no_state_behind():
    def f(x):
        if x > 2:
            raise OwnError
        return x * x

    with pytest.raises(OwnError):
        vmap(grad(f))(THREE)
    assert running_interpreters() == []
    np.testing.assert_allclose(vmap(grad(f))(THREE[:2]), 2 * THREE[:2])


@pytest.mark.usefixtures("without_hooks")
def test_a_functrans_error_leaves_no_state_behind():
    for call in (
        lambda: grad(lambda x: x)(THREE),
        lambda: grad(np.sum)(np.arange(3)),
        lambda: vmap(lambda x: np.array([x]))(THREE),
        lambda: make_graph(lambda x: x if x > 0 else -x)(1.0),
        lambda: vjp(lambda x: np.is_busday(x), THREE),
    ):
        with pytest.raises(errors.FunctransError):
            call()
        assert running_interpreters() == []
    assert grad(lambda x: x * x)(3.0) == 6.0


def test_a_failed_call_of_a_pullback_does_not_spoil_it():
    _, pullback = vjp(lambda x: x * x, THREE)
    with pytest.raises(errors.FunctransError):
        pullback(np.ones(2))
    np.testing.assert_allclose(pullback(np.ones(3))[0], 2 * THREE)
    np.testing.assert_allclose(pullback(np.ones(3))[0], 2 * THREE)


@pytest.mark.parametrize("transform", ["grad", "jvp", "vmap", "make_graph"])
@pytest.mark.parametrize(
    ("draw", "name"),
    [
        (lambda x: np.random.default_rng(0).normal(loc=x), "normal"),
        (lambda x: np.random.default_rng(0).gamma(x), "gamma"),
        (lambda x: np.random.normal(x, 1.0), "normal"),
    ],
)
def test_a_generator_of_numpy_names_the_alternatives(transform, draw, name):
    raised(
        TypeError,
        lambda: TRACERS[transform](draw),
        f"the random {name} cannot take a traced parameter",
        HERE,
        r"rng\.normal\(size=.*functrans\.random",
    )
