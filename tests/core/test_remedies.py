"""Remedies that messages print are run: they compute what the function computes that asked for a value."""

import itertools
import linecache
import math
import re
import statistics
from fractions import Fraction

import numpy as np
import pytest

import functrans
from functrans import (
    ArraySpec,
    cond,
    errors,
    fori_loop,
    grad,
    jit,
    jvp,
    make_graph,
    pure_callback,
    tap,
    value_and_grad,
    vmap,
    while_loop,
)

THREE = np.array([1.0, 2.0, 3.0])
_numbers = itertools.count()


def written(source, **names):
    """A function from source code that messages can quote."""
    file = f"<remedy {next(_numbers)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    scope = {"np": np, "math": math, "functrans": functrans, **names}
    exec(compile(source, file, "exec"), scope)
    return scope["f"]


def message_of(function, *args):
    with pytest.raises(errors.FunctransError) as info:
        function(*args)
    return str(info.value)


# The body of a function, which part of it the remedy stands for, and an argument.
EXPRESSIONS = {
    "if": ("x if x > 0 else -x", "x if x > 0 else -x", -2.0),
    "if not": ("x if not x > 0 else -x", "x if not x > 0 else -x", -2.0),
    "if and": ("x if x > 0 and x < 3 else -x", "x if x > 0 and x < 3 else -x", 2.0),
    "if chain": ("1.0 if 0 < x < 3 < 4 else 2.0", "1.0 if 0 < x < 3 < 4 else 2.0", 2.0),
    "and": ("np.where((x > 0) and (x < 3), x, 0.0)", "(x > 0) and (x < 3)", 2.0),
    "or": ("np.where((x > 0) or (x < -3), x, 0.0)", "(x > 0) or (x < -3)", -2.0),
    "not": ("np.where(not x, 1.0, x)", "not x", 0.0),
    "chain": ("np.where(0 < x < 3, x, 0.0)", "0 < x < 3", 2.0),
    "in a tuple": ("np.where(x in (1.0, 2.0), 1, 0)", "x in (1.0, 2.0)", 2.0),
    "not in": ("np.where(x not in (1.0, 2.0), 1, 0)", "x not in (1.0, 2.0)", 2.0),
    "in an array": ("np.where(2.0 in x, 1, 0)", "2.0 in x", THREE),
    "max of two": ("max(x, 0.0)", "max(x, 0.0)", -1.0),
    "min of two": ("min(x, 0.0)", "min(x, 0.0)", -1.0),
    "max": ("max(x)", "max(x)", THREE),
    "min": ("min(x)", "min(x)", THREE),
    "sorted": ("np.sum(sorted([x, x - 1.0])[0])", "sorted([x, x - 1.0])", 2.0),
    "any": ("np.where(any(x > 2), 1, 0)", "any(x > 2)", THREE),
    "all": ("np.where(all(x > 2), 1, 0)", "all(x > 2)", THREE),
    "int": ("int(x) * 2", "int(x)", 2.7),
    "bool": ("np.where(bool(x), 1, 0)", "bool(x)", 2.7),
    "complex": ("complex(x) * 1j", "complex(x)", 2.7),
    "round": ("round(x) * 2", "round(x)", 2.7),
    "floor": ("math.floor(x) * 2", "math.floor(x)", 2.7),
    "ceil": ("math.ceil(x) * 2", "math.ceil(x)", 2.7),
    "math": ("math.hypot(x, 1.0)", "math.hypot(x, 1.0)", 2.7),
    "special": ("math.gamma(x)", "math.gamma(x)", 2.7),
    "list": ("[1.0, 2.0, 3.0][x]", "[1.0, 2.0, 3.0][x]", 1),
}


@pytest.mark.parametrize("transform", [make_graph, jit])
@pytest.mark.parametrize("case", EXPRESSIONS)
@pytest.mark.usefixtures("without_hooks")
def test_an_expression_that_a_message_prints_is_as_good_as_the_one_it_stands_for(case, transform):
    body, part, argument = EXPRESSIONS[case]
    plain = written(f"def f(x):\n    return {body}\n")
    message = message_of(transform(plain), argument)
    remedy = re.search(r"Write (.*?)(, which stays traced)?\.$", message)
    assert remedy, message
    special = pytest.importorskip("scipy.special")
    source = f"def f(x):\n    return {body.replace(part, '(' + remedy[1] + ')')}\n"
    mended = written(source, scipy=type("scipy", (), {"special": special}))
    np.testing.assert_allclose(np.asarray(jit(mended)(argument)), np.asarray(plain(argument)))


@pytest.mark.parametrize("conversion", ["float(x)", "x.item()"])
def test_a_conversion_is_left_out(conversion):
    plain = written(f"def f(x):\n    return 2.0 * {conversion}\n")
    assert "Leave the conversion out: arithmetic works on x" in message_of(
        jit(plain), np.float64(3.0)
    )
    assert jit(written("def f(x):\n    return 2.0 * x\n"))(3.0) == 6.0


def test_a_mask_keeps_the_size():
    plain = written("def f(x):\n    return np.sum(x[x > 1])\n")
    message = message_of(jit(plain), THREE)
    assert message.endswith("Keep the size: np.where(x > 1, x, 0.0).")
    assert jit(lambda x: np.sum(np.where(x > 1, x, 0.0)))(THREE) == plain(THREE)


SIZES = {
    "zeros": "np.zeros(n)",
    "zeros of a tuple": "np.zeros((n, 2))",
    "ones": "np.ones(n)",
    "eye": "np.eye(n)",
    "reshape": "np.arange(6.0).reshape(n, 2)",
    "tile": "np.tile(np.ones(2), n)",
    "list": "np.sum([0.5] * n)",
    "range": "sum(i for i in range(n))",
    "slice": "np.arange(6.0)[:n]",
    "linspace": "np.linspace(0.0, 1.0, n)",
    "text": "float('1' * n)",
}


@pytest.mark.parametrize("case", SIZES)
def test_what_decides_a_size_is_made_static(case):
    plain = written(f"def f(n):\n    return {SIZES[case]}\n")
    message = message_of(jit(plain), 3)
    assert f"<remedy {next(_numbers) - 1}>, line 2, in f: `return" in message
    assert message.endswith("Make n a static argument: jit(f, static_argnames='n').")
    np.testing.assert_array_equal(jit(plain, static_argnames="n")(3), plain(3))


def test_a_size_that_is_computed_follows_from_static_arguments():
    plain = written("def f(x, n):\n    return np.zeros(n + 1) + x\n")
    message = message_of(jit(plain), 1.0, 3)
    assert message.endswith("jit(f, static_argnums=...), or from shapes.")
    np.testing.assert_array_equal(jit(plain, static_argnums=1)(1.0, 3), np.ones(4))


def test_without_jit_a_size_is_closed_over():
    plain = written("def f(n):\n    return np.zeros(n)\n")
    assert message_of(make_graph(plain), 3).endswith(
        "Compute the size outside of the traced function, and close over it."
    )
    assert make_graph(lambda x: x + plain(3))(1.0)(1.0).shape == (3,)


STATEMENTS = """
def f(x):
    if x > 1 and x < 5:
        return 2 * x
    return -x
"""


def test_a_branch_becomes_a_cond():
    plain = written(STATEMENTS)
    message = message_of(jit(plain), 3.0)
    assert "Write functrans.cond(np.logical_and(x > 1, x < 5), f, g, x)" in message
    mended = jit(lambda x: cond(np.logical_and(x > 1, x < 5), lambda x: 2 * x, lambda x: -x, x))
    assert mended(3.0) == plain(3.0)


def test_a_loop_becomes_a_while_loop():
    plain = written("def f(x):\n    while x < 10:\n        x = 2 * x\n    return x\n")
    message = message_of(jit(plain), 3.0)
    assert "the loop `while x < 10` depends on" in message and "functrans.while_loop(" in message
    assert jit(lambda x: while_loop(lambda x: x < 10, lambda x: 2 * x, x))(3.0) == plain(3.0)


def test_a_count_that_is_computed_becomes_a_fori_loop():
    plain = written("def f(x):\n    return sum(0.5 for _ in range(np.argmax(x)))\n")
    assert "functrans.fori_loop(lower, upper, body, init)" in message_of(make_graph(plain), THREE)
    mended = jit(lambda x: fori_loop(0, np.argmax(x), lambda i, total: total + 0.5, 0.0))
    assert mended(THREE) == plain(THREE)


@pytest.mark.parametrize(
    "statement", ["assert x > 0", "text = f'{x:.2f}'", "text = format(x, '.2f')"]
)
def test_what_looks_at_values_becomes_a_tap(statement):
    plain = written(f"def f(x):\n    {statement}\n    return x\n")
    assert "functrans.tap(x, " in message_of(jit(plain), 3.0)
    seen = []
    jit(value_and_grad(lambda x: 2 * tap(x, seen.append, backward=lambda g: None)))(3.0)
    assert seen == [3.0]


def test_a_function_that_looks_at_values_is_called_before_or_by_a_callback():
    plain = written("def f(x):\n    return np.trim_zeros(x)\n")
    assert "Compute the result of the call outside" in message_of(jit(plain), THREE)
    values = plain(THREE)
    assert jit(lambda x: np.sum(x * values))(THREE) == 14.0


# Statements on y, a copy of x, whose sizes depend on values; the remedy is a statement in their place.
MASKED = {
    "changed": "y[x > 1] *= 2",
    "changed by an expression": "y[x > 1] += x[x > 1] ** 2 - 1",
    "assigned": "y[x > 1] = -x[x > 1]",
    "placed": "np.place(y, x > 1, [5.0])",
}


@pytest.mark.parametrize("case", MASKED)
def test_an_assignment_under_a_mask_keeps_the_size(case):
    source = f"def f(x):\n    y = x * 1.0\n    {MASKED[case]}\n    return y\n"
    message = message_of(jit(written(source)), THREE)
    remedy = re.search(r"Keep the size: (y\[\.\.\.\] = .*)\.$", message)
    assert remedy, message
    mended = written(source.replace(MASKED[case], remedy[1]))
    np.testing.assert_array_equal(jit(mended)(THREE), written(source)(THREE.copy()))


# Calls whose results have a size that depends on values, and what both forms have in common.
SIZED = {
    "flatnonzero": ("np.flatnonzero(x > 1)", "len({})", "np.sum({})"),
    "nonzero": ("np.nonzero(x > 1)", "len({}[0])", "np.sum({})"),
    "method": ("x.nonzero()", "len({}[0])", "np.sum({})"),
    "argwhere": ("np.argwhere(x > 1)", "len({})", "np.sum({})"),
    "where": ("np.where(x > 1)", "len({}[0])", "np.sum({})"),
    "extract": ("np.extract(x > 1, x)", "np.sum({})", "np.sum({})"),
    "compress": ("np.compress(x > 1, x)", "np.sum({})", "np.sum({})"),
    "unique": ("np.unique(x)", "np.max({})", "np.max({})"),
    "array_equal": ("np.array_equal(x, x + 1)", "{}", "{}"),
    "allclose": ("np.allclose(x, x)", "{}", "{}"),
}


@pytest.mark.parametrize("case", SIZED)
def test_a_call_whose_size_depends_on_values_has_a_form_that_keeps_it(case):
    call, before, after = SIZED[case]
    plain = written(f"def f(x):\n    return {before.format(call)}\n")
    message = message_of(jit(plain), THREE)
    remedy = re.search(r"(?:Write|Keep the size[^:]*:) (np\..*)\.$", message)
    assert remedy, message
    mended = written(f"def f(x):\n    return {after.format(remedy[1])}\n")
    assert jit(mended)(THREE) == plain(THREE)


def test_traced_repetitions_have_a_fixed_length():
    plain = written("def f(x, n):\n    return np.repeat(x, n)\n")
    counts = np.array([1, 0, 3])
    remedy = re.search(r"Fix the length: (.*)\.$", message_of(jit(plain), THREE, counts))
    mended = written(f"def f(x, n, length=4):\n    return {remedy[1]}\n")
    np.testing.assert_array_equal(jit(mended)(THREE, counts), plain(THREE, counts))


@pytest.mark.usefixtures("without_hooks")
def test_a_buffer_is_made_inside_the_function():
    outside = functrans.numpy.zeros(2)

    def fill(buffer, x):
        buffer[0] = x
        return np.sum(buffer)

    for transform in (grad, jit):
        message = message_of(transform(lambda x: fill(outside, x)), 3.0)
        assert "Create the array inside the function with functrans.numpy" in message
    assert grad(lambda x: fill(functrans.numpy.zeros(2), x))(3.0) == 1.0


def test_ranges_and_fractions_are_operands():
    weights = np.arange(3)
    for function in (lambda x: x * range(3), lambda x: range(3) * x):
        np.testing.assert_array_equal(jit(function)(THREE), THREE * weights)
        np.testing.assert_array_equal(grad(lambda x, f=function: np.sum(f(x)))(THREE), weights)
    third = Fraction(1, 3)
    for function in (lambda x: x * third, lambda x: third * x):
        assert jit(function)(2.0) == 2.0 / 3
        assert grad(function)(2.0) == pytest.approx(1 / 3)
    np.testing.assert_allclose(grad(lambda x: np.sum(x * third))(THREE), 1 / 3)


@pytest.mark.parametrize("name", ["mean", "fmean", "stdev", "pstdev", "variance", "pvariance"])
@pytest.mark.usefixtures("without_hooks")
def test_statistics_of_the_standard_library_are_those_of_numpy(name):
    plain = written(f"def f(x):\n    return statistics.{name}(x)\n", statistics=statistics)
    remedy = re.search(r"Write (np\..*)\.$", message_of(grad(plain), THREE))
    mended = written(f"def f(x):\n    return {remedy[1]}\n")
    assert mended(THREE) == pytest.approx(plain(THREE))
    assert np.isfinite(grad(mended)(THREE)).all()


def test_grids_have_traced_limits():
    for key in ("np.s_[0:x:4j]", "np.s_[0:x:4j, 1:3]", "np.s_[x:3, 0:1:3j]"):
        for shortcut in ("mgrid", "ogrid"):
            plain = written(f"def f(x):\n    return np.{shortcut}[{key}]\n")
            ours = written(f"def f(x):\n    return functrans.numpy.{shortcut}[{key}]\n")
            found = jit(ours)(2.0) if "x:3," not in key else grad_free(ours)(2.0)
            for one, other in zip(found, plain(2.0), strict=True):
                np.testing.assert_allclose(one, other)


def grad_free(function):
    """Under a transform, by its values alone."""
    return lambda x: jvp(function, (x,), (1.0,))[0]


def test_a_library_that_looks_at_values_is_called_with_plain_arrays():
    optimize = pytest.importorskip("scipy.optimize")
    plain = written(
        "def f(a):\n    return brentq(lambda x: x - a, 0.0, 5.0)\n", brentq=optimize.brentq
    )
    message = message_of(jit(plain), 3.0)
    assert "functrans.pure_callback" in message or "functrans" in message
    mended = jit(lambda a: pure_callback(plain, ArraySpec((), float), a))
    np.testing.assert_allclose(mended(3.0), 3.0)


def test_an_error_that_numpy_raises_in_place_of_ours_is_taken_back():
    """np.zeros replaces every TypeError by its own, which names a traced value."""
    zeros = written("def f(n):\n    return np.zeros(n)\n")
    ones = written("def f(n):\n    return np.ones(n)\n")  # with a frame of NumPy's
    for transform in (
        jit,
        make_graph,
        lambda f: jit(lambda n: grad(lambda x: np.sum(x * f(n)))(1.0)),
    ):
        assert "the size of `np.zeros(n)` depends on" in message_of(transform(zeros), 3)
        assert "the size of `np.ones(n)` depends on" in message_of(transform(ones), 3)


def test_another_error_on_the_same_line_is_not_replaced():
    plain = written("def f(n):\n    return len(3)\n")
    with pytest.raises(TypeError, match="has no len"):
        jit(plain)(3)
    caught = written(
        "def f(n):\n    try: np.zeros(n)\n    except TypeError: pass\n    return len(3)\n"
    )
    with pytest.raises(TypeError, match="has no len"):
        jit(caught)(3)


def test_a_remedy_for_a_missing_rule_works():
    assert "functrans.define_primitive(name, function, jvp=...)" in message_of(
        grad(lambda x: np.frompyfunc(abs, 1, 1)(x)), -3.0
    )
    own = functrans.define_primitive(
        "own",
        lambda x: abs(x),
        jvp=lambda out, primals, tangents: np.sign(primals[0]) * tangents[0],
    )
    assert grad(own)(-3.0) == -1.0
    assert "functrans.pure_callback(function, result_shape, x)" in message_of(
        vmap(lambda x: np.frompyfunc(abs, 1, 1)(x)), -THREE
    )
    np.testing.assert_array_equal(
        vmap(lambda x: pure_callback(abs, ArraySpec((), float), x))(-THREE), THREE
    )


def test_what_is_saved_is_returned(tmp_path):
    file = str(tmp_path / "x.npy")
    for save in (lambda x: np.save(file, x), lambda x: x.tofile(file), lambda x: x.dump(file)):
        message = message_of(grad(lambda x, save=save: (save(x), np.sum(x))[1]), THREE)
        assert "Return x, with has_aux=True if it is an extra result" in message
        np.testing.assert_array_equal(
            save(grad(lambda x: (np.sum(x), x), has_aux=True)(THREE)[1]), None
        )
    np.save(file, grad(lambda x: (np.sum(x), x), has_aux=True)(THREE)[1])
    np.testing.assert_array_equal(np.load(file), THREE)


def test_a_list_is_repeated_by_a_traced_integer_as_by_a_plain_one():
    def mean(n):
        return np.mean([0.5, 1.5] * n) + len(n * (1, 2))

    counts = np.array([1, 3, 1])
    np.testing.assert_array_equal(vmap(mean)(counts), [mean(int(n)) for n in counts])
    np.testing.assert_array_equal(grad(lambda x: np.sum([2.0, 3.0] * x))(1.0), 5.0)


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")  # from NumPy 2.5 on
def test_the_shape_of_a_traced_array_can_be_set():
    def column(x):
        y = x * 1.0
        y.shape = (3, 1)
        y[0, 0] = 2.0 * x[1]
        return np.sum(y * np.arange(3.0))

    def expected(x):
        y = np.stack([2.0 * x[1], x[1], x[2]]).reshape(3, 1)
        return np.sum(y * np.arange(3.0))

    for transform in (grad, functrans.jacfwd, lambda f: jit(grad(f)), functrans.hessian):
        np.testing.assert_allclose(transform(column)(THREE), transform(expected)(THREE))
    np.testing.assert_allclose(
        vmap(column)(np.stack([THREE, -THREE])), [column(THREE), column(-THREE)]
    )
    assert column(THREE) == expected(THREE)


def test_the_shape_of_an_argument_can_be_set_and_the_caller_keeps_its_own():
    x = THREE.copy()

    def f(x):
        x.shape = (3, 1)
        assert x.shape == (3, 1)
        return np.sum(x**2)

    np.testing.assert_array_equal(grad(f)(x), 2 * x)
    assert x.shape == (3,)


@pytest.mark.parametrize("shape", [(2, 2), (-1, -1), "ab"])
def test_a_shape_that_does_not_fit_is_refused(shape):
    with pytest.raises((ValueError, TypeError)):
        grad(lambda x: setattr(x, "shape", shape))(THREE)


def test_python_calls_a_traced_value_by_a_name_that_says_what_it_is():
    for mistake in (lambda x: x + "a", lambda x: x.name, lambda x: x(1.0), lambda x: memoryview(x)):
        with pytest.raises((TypeError, AttributeError), match="TracedArray") as info:
            grad(mistake)(3.0)
        (note,) = info.value.__notes__
        assert "A TracedArray stands for an array while grad runs" in note
        assert "test_remedies.py, line" in note
