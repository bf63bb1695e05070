"""The laws that probes check. Each function raises `BrokenLawError` if its law is broken.

Results are compared with those of plain NumPy code, never with those of the library itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.core.errors import (
    AssignmentError,
    ClosureError,
    EscapedTracerError,
    FunctransError,
    MissingRuleError,
)
from tools.fuzz.nests import leaves, mapped, structure
from tools.fuzz.numeric import Numeric

Function = Callable[..., Any]


_ROUGHLY = 1e-5  # the accuracy of finite differences


class BrokenLawError(AssertionError):
    """A law does not hold."""

    def __init__(self, law: str, message: str) -> None:
        super().__init__(f"{law}: {message}")
        self.law = law


# Values.


def distance(found: Any, expected: Any) -> float:
    """The largest distance between two entries, relative to 1 and to the largest expected entry.

    Infinity if structures, shapes or the places of nan and infinity differ.
    """
    pairs = _paired(found, expected)
    if pairs is None:
        return np.inf
    worst = 0.0
    for one, other in pairs:
        a, b = np.asarray(one, complex), np.asarray(other, complex)
        finite = np.isfinite(b)
        if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
            return np.inf
        if not np.all(np.isfinite(a[finite])):
            return np.inf
        if np.any(finite):
            scale = 1.0 + np.max(np.abs(b[finite]))
            worst = max(worst, float(np.max(np.abs(a - b)[finite]) / scale))
    return worst


def same(found: Any, expected: Any, tolerance: float = 1e-9, law: str = "values") -> None:
    """Values are equal, up to a tolerance."""
    error = distance(found, expected)
    if not error <= tolerance:
        raise BrokenLawError(law, f"{_shown(found)}\ninstead of\n{_shown(expected)}")


def identical(found: Any, expected: Any, law: str = "values", tolerance: float = 0.0) -> None:
    """Types, dtypes and values are equal, including the signs of zeros; finite entries up to a tolerance."""
    pairs = _paired(found, expected)
    if pairs is None:
        raise BrokenLawError(law, f"{_shown(found)}\ninstead of\n{_shown(expected)}")
    for one, other in pairs:
        a, b = np.asarray(one), np.asarray(other)
        if a.dtype != b.dtype:
            raise BrokenLawError(f"{law}, dtypes", f"{a.dtype} instead of {b.dtype}")
        if isinstance(one, np.ndarray) != isinstance(other, np.ndarray):
            message = f"{type(one).__name__} instead of {type(other).__name__}"
            raise BrokenLawError(f"{law}, types", message)
        if distance(one, other) > tolerance or not _same_signs(a, b):
            raise BrokenLawError(law, f"{_shown(found)}\ninstead of\n{_shown(expected)}")


def _same_signs(a: Any, b: Any) -> bool:
    """Whether zeros have the same signs."""
    if a.dtype.kind == "c":
        return _same_signs(a.real, b.real) and _same_signs(a.imag, b.imag)
    if a.dtype.kind != "f":
        return True
    zeros = b == 0
    return bool(np.array_equal(np.signbit(a[zeros]), np.signbit(b[zeros])))


def _paired(found: Any, expected: Any) -> list[tuple[Any, Any]] | None:
    """The leaves of both in pairs, or None if the structures or shapes differ."""
    if structure(found) != structure(expected):
        return None
    pairs = list(zip(leaves(found), leaves(expected), strict=True))
    return None if any(np.shape(a) != np.shape(b) for a, b in pairs) else pairs


def _shown(nest: Any) -> str:
    text = repr(nest)
    return text if len(text) < 600 else f"{text[:600]} ..."


# Memory.


class Plain(Numeric):
    """Reference transforms for functions that may assign to their arguments."""

    def jit(self, f: Function, backend: str = "") -> Function:
        return by_value(f)

    def make_graph(self, f: Function) -> Function:
        return lambda *examples: by_value(f)

    def vmap(self, f: Function, in_axes: Any = 0, out_axes: Any = 0) -> Function:
        return super().vmap(by_value(f), in_axes, out_axes)

    def checkpoint(self, f: Function) -> Function:
        return by_value(f)

    def jvp(self, f: Function, primals: Any, tangents: Any) -> Any:
        return super().jvp(by_value(f), primals, tangents)

    def vjp(self, f: Function, *primals: Any) -> Any:
        return super().vjp(by_value(f), *primals)

    def linearize(self, f: Function, *primals: Any) -> Any:
        return super().linearize(by_value(f), *primals)

    def jacfwd(self, f: Function, argnums: Any = 0) -> Function:
        return super().jacfwd(by_value(f), argnums)

    grad = jacrev = jacfwd


def copied(nest: Any) -> Any:
    """Copies of the arrays."""
    return mapped(lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf, nest)


def transparent(function: Function) -> Function:
    """One reading of a wrapper: it calls the plain function, and shares memory as that does."""
    return function


def by_value(function: Function) -> Function:
    """Another reading: arguments and results are values that share memory with nothing."""
    return lambda *args: copied(function(*copied(args)))


def on_copies(function: Function) -> Function:
    """A third reading: the plain function is called on copies of the arguments."""
    return lambda *args: function(*copied(args))


def handed_on(function: Function) -> Function:
    """A fourth reading: the results of the plain function are copied."""
    return lambda *args: copied(function(*args))


READINGS = (by_value, transparent, on_copies, handed_on)


def recorded(f: Function, slope: Function, a: Any) -> Function:
    """A derivative at the point where the function was recorded, even if `a` changes later."""
    factor = slope(np.copy(a))
    return lambda t: factor * t


def one_meaning(
    library: Any,
    program: Function,
    wrappers: Sequence[Function],
    derivatives: Sequence[Function] = (),
    **looks: Function,
) -> None:
    """A program that assigns to its arrays has one meaning, traced or not.

    `program(*wrappers, *derivatives)` returns a function that calls others through wrappers, such as `jit`.
    Each look applies a transform to that function, given a namespace of transforms:
    `lambda ft, f: ft.jvp(f, x, t)`. There must be one way to replace each wrapper by one of the `READINGS`,
    and each derivative by `recorded`, so that the reference transforms give the results of all looks. A
    program that the library refuses proves nothing.
    """
    found: dict[str, Any] = {}
    for name, look in looks.items():
        try:
            found[name] = look(library, program(*wrappers, *derivatives))
        except (AssignmentError, ClosureError):
            continue
    nearest: tuple[int, dict[str, Any]] = (-1, {})
    for reading in itertools.product(READINGS, repeat=len(wrappers)):
        made = program(*reading, *[recorded] * len(derivatives))
        expected = {name: looks[name](Plain(), made) for name in found}
        wrong = [
            name
            for name in found
            if distance(found[name], expected[name]) > _ROUGHLY
            and not _within_error(found[name], expected[name], looks[name](Plain(step=2e-3), made))
        ]
        if not wrong:
            return
        if len(found) - len(wrong) > nearest[0]:
            nearest = len(found) - len(wrong), {name: expected[name] for name in wrong}
    lines = [
        f"{name}: {_shown(found[name])}\ninstead of\n{_shown(value)}"
        for name, value in nearest[1].items()
    ]
    message = "no reading of the wrappers explains all results. With most of them,\n"
    raise BrokenLawError("one meaning, traced or not", message + "\n".join(lines))


def _within_error(found: Any, coarse: Any, fine: Any) -> bool:
    """Whether differences with a smaller step come as close as their own error allows.

    The error of an extrapolated difference is of fourth order: halving the step divides it by 16.
    """
    return distance(found, fine) <= _ROUGHLY + distance(coarse, fine) / 4


def own_results(wrapped: Function, plain: Function | None, *args: Any) -> None:
    """Results are the caller's own: they share memory only where those of the plain function do.

    Without a plain function, they share none. Each of their entries can be written separately, and writing to
    them changes nothing else: no argument, no other result, and not the result of the next call.
    """
    given = copied(args)
    result = wrapped(*given)
    same(given, args, 0.0, "arguments are unchanged")
    inputs, outputs = _arrays(given), _arrays(result)
    plainly = copied(args)
    plain_result = copied(result) if plain is None else plain(*plainly)
    if len(_arrays(plain_result)) == len(outputs):
        _apart(outputs, inputs, _arrays(plain_result), _arrays(plainly))
    first = copied(result)
    for output in outputs:
        if output.flags.writeable:
            output[...] = 77.0
    for array in inputs:
        array[...] = 55.0
    # An array that a plain function closes over and returns may have changed by now.
    second = wrapped(*copied(args))
    now = first if plain is None else plain(*copied(args))
    if distance(second, first) > 0 and distance(second, now) > 0:
        raise BrokenLawError("the next call gives the same", f"{_shown(second)}, {_shown(first)}")


def _apart(outputs: Any, inputs: Any, plain_outputs: Any, plain_inputs: Any) -> None:
    for k, output in enumerate(outputs):
        if plain_outputs[k].flags.writeable and not output.flags.writeable:
            raise BrokenLawError("results can be written", f"result {k} is read-only")
        strides = zip(output.shape, output.strides, strict=True)
        overlapping = output.size > 0 and any(n > 1 and step == 0 for n, step in strides)
        if overlapping and output.flags.writeable:
            raise BrokenLawError("results can be written", f"entries of result {k} overlap")
        for j, other in enumerate(inputs):
            shared = np.shares_memory(output, other)
            if shared and not np.shares_memory(plain_outputs[k], plain_inputs[j]):
                message = f"result {k} shares memory with argument {j}"
                raise BrokenLawError("results are apart from arguments", message)
        for j in range(k):
            shared = np.shares_memory(output, outputs[j])
            if shared and not np.shares_memory(plain_outputs[k], plain_outputs[j]):
                message = f"result {k} shares memory with result {j}"
                raise BrokenLawError("results are apart from each other", message)


def _arrays(nest: Any) -> list[Any]:
    return [leaf for leaf in leaves(nest) if isinstance(leaf, np.ndarray)]


# Errors.


def right_or_refused(
    call: Function,
    plain: Function,
    tolerance: float = 1e-12,
    dtypes: bool = False,
    law: str = "values",
) -> None:
    """A call gives the result of the plain call, or an error of the library that explains why not."""
    try:
        expected = plain()
    except Exception:
        return  # plain NumPy does not support it
    try:
        found = call()
    except FunctransError:
        return
    same(found, expected, tolerance, law)
    if dtypes:
        kinds = [np.asarray(leaf).dtype for leaf in leaves(found)]
        wanted = [np.asarray(leaf).dtype for leaf in leaves(expected)]
        if kinds != wanted:
            raise BrokenLawError(f"{law}, dtypes", f"{kinds} instead of {wanted}")


def escaped(call: Function) -> None:
    """Using a value traced by a transform that has finished raises an `EscapedTracerError`."""
    try:
        result = call()
    except EscapedTracerError:
        return
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        raise BrokenLawError("an escaped value, another error", message) from error
    raise BrokenLawError("an escaped value, a result", _shown(result))


def writes_to_its_own(program: Function, **arrays: Any) -> None:
    """A rule that writes to its arguments changes nothing else.

    `program(own)` calls `own` on the array that the rule writes to. The result must be the same whether `own`
    returns the array itself or a copy; or an error must say that the array cannot be written. The caller's
    arrays must not change.
    """
    before = copied(arrays)
    try:
        expected = program(lambda a: a.copy())
    except (FunctransError, ValueError) as error:
        if _refuses_writing(error) or isinstance(error, MissingRuleError):
            return  # such rules never support it
        raise
    same(arrays, before, 0.0, "the caller's arrays are unchanged, by a copy")
    try:
        found = program(lambda a: a)
    except (FunctransError, ValueError) as error:
        same(arrays, before, 0.0, "the caller's arrays are unchanged")
        if not _refuses_writing(error):
            raise
        return
    same(arrays, before, 0.0, "the caller's arrays are unchanged")
    same(found, expected, 1e-12, "a rule writes to its own")


def _refuses_writing(error: Exception) -> bool:
    return isinstance(error, AssignmentError) or "read-only" in str(error)


def any_kind_of_array(call: Function, x: Any) -> None:
    """A call gives the same for an array of any kind as for a plain copy of it.

    Results are the caller's own, as those for the plain copy are, and the array itself does not change.
    A call refused for plain arrays need not work; one that works for them may be refused for others.
    """
    plain = np.array(x, x.dtype.newbyteorder("="), order="C", copy=True, subok=False)
    if isinstance(x, np.generic):
        plain = plain[()]
    before = np.array(plain)
    try:
        expected = call(plain)
    except Exception:
        return
    try:
        found = call(x)
    except FunctransError:
        return
    if not np.array_equal(x, before):
        raise BrokenLawError("arrays of all kinds are unchanged", f"{_shown(x)}, not {before}")
    same(found, expected, 1e-12 if x.dtype.itemsize >= 8 else 1e-5, "arrays of all kinds, values")
    outputs, plain_outputs = leaves(found), leaves(expected)
    kinds = [np.asarray(leaf).dtype.newbyteorder("=") for leaf in outputs]
    wanted = [np.asarray(leaf).dtype for leaf in plain_outputs]
    if kinds != wanted:
        raise BrokenLawError("arrays of all kinds, dtypes", f"{kinds} instead of {wanted}")
    for output, other in zip(outputs, plain_outputs, strict=True):
        if isinstance(output, np.ndarray) and isinstance(x, np.ndarray):
            _own(output, other, x, plain)
    if not np.array_equal(x, before):
        raise BrokenLawError("arrays of all kinds are the caller's own", "a result writes to x")


def _own(output: Any, other: Any, x: Any, plain: Any) -> None:
    """Check that a result for x is as much the caller's own as that for a plain copy."""
    if np.shares_memory(output, x) and not np.shares_memory(other, plain):
        raise BrokenLawError("arrays of all kinds are the caller's own", "a result shares memory")
    if np.shares_memory(other, plain) or output.size == 0:
        return
    if other.flags.writeable and not output.flags.writeable:
        raise BrokenLawError("arrays of all kinds can be written", "a result is read-only")
    if output.flags.writeable:
        output[...] = 77


# Types and derivatives.


def answers(log: list[Any], plain: Function, traced: Function) -> None:
    """A function notes the same answers for a traced value as for the value that it stands for.

    Each call of the function appends to the log. A call that the library refuses proves nothing.
    """
    plain()
    expected = log[-1]
    log.clear()
    try:
        traced()
    except FunctransError:
        if not log:
            return
    for found in log:
        if found != expected:
            raise BrokenLawError(
                "a traced value answers as what it stands for", f"{found}, {expected}"
            )


def derivative_or_error(derivative: Function, f: Function, x: Any) -> None:
    """A derivative agrees with finite differences, or is an error; it is never another number."""
    try:
        expected = _slopes(f, x)
    except Exception:
        return  # plain NumPy does not support it
    try:
        found = derivative()
    except Exception:
        return
    same(found, expected, 1e-5, "the right derivative, or an error")


def _slopes(f: Function, x: Any) -> Any:
    """The gradient from finite differences, calling f with the type of x."""
    flat = np.ravel(np.asarray(x, float))

    def at(values: Any) -> float:
        array = values.reshape(np.shape(x))
        return float(f(array if type(x) is np.ndarray else type(x)(array)))

    steps = 1e-4 * np.eye(flat.size)
    slopes = [(at(flat + step) - at(flat - step)) / 2e-4 for step in steps]
    return np.reshape(slopes, np.shape(x))


def warned(
    caught: Sequence[Any], category: type[Warning], *words: str, law: str = "a warning"
) -> None:
    """One of the recorded warnings has this category, and these words in its message."""
    fitting = [
        record
        for record in caught
        if issubclass(record.category, category)
        and all(word in str(record.message) for word in words)
    ]
    if not fitting:
        seen = [f"{record.category.__name__}: {record.message}" for record in caught]
        raise BrokenLawError(law, f"no {category.__name__} about {words} among {seen}")


def silent(caught: Sequence[Any]) -> None:
    """No warning was recorded where there is nothing to warn about."""
    if caught:
        seen = [f"{record.category.__name__}: {record.message}" for record in caught]
        raise BrokenLawError("no needless warning", str(seen))


def accurate_or_unknown(call: Function, direct: Function, tolerance: float) -> None:
    """A call gives the direct result, up to a tolerance, or nan, or an error; never a finite wrong number."""
    expected = direct()
    try:
        found = call()
    except (FunctransError, np.linalg.LinAlgError):
        return
    if np.shape(found) != np.shape(expected):
        raise BrokenLawError("accurate, or unknown", f"shape {np.shape(found)}")
    known = np.isfinite(found)
    gap = np.abs(np.where(known, found, expected) - expected)
    if not np.all(gap <= tolerance * (1.0 + np.max(np.abs(expected)))):
        raise BrokenLawError(
            "accurate, or unknown", f"{_shown(found)}\ninstead of\n{_shown(expected)}"
        )


def accurate_sums(call: Function, dtype: Any, tolerance: float, *arrays: Any) -> None:
    """A call in low precision agrees with double precision, relative to each entry."""
    narrow = [array.astype(dtype) for array in arrays]
    expected = call(*(array.astype(np.float64) for array in narrow))
    if not np.all(np.abs(leaves(expected)[0]) < np.finfo(dtype).max / 4):
        return
    found = call(*narrow)
    gap = np.abs(np.asarray(found, float) - expected)
    if not np.all(gap <= tolerance * np.abs(expected)):
        raise BrokenLawError("accurate sums", f"{found} instead of {expected}")


def as_numpy(call: Function, plain: Function, tolerance: float) -> None:
    """A call agrees with NumPy: same dtypes, nan, infinities and signs of zeros; nearly the same numbers."""
    try:
        expected = plain()
    except Exception:
        return
    try:
        found = call()
    except (FunctransError, ZeroDivisionError):
        return
    if structure(found) != structure(expected):
        raise BrokenLawError("as NumPy", f"{structure(found)} instead of {structure(expected)}")
    for k, (one, other) in enumerate(zip(leaves(found), leaves(expected), strict=True)):
        a, b = np.asarray(one), np.asarray(other)
        if a.dtype != b.dtype or a.shape != b.shape:
            message = f"result {k} is {a.dtype}{a.shape} instead of {b.dtype}{b.shape}"
            raise BrokenLawError("as NumPy, dtypes", message)
        parts = [(a.real, b.real), (a.imag, b.imag)] if a.dtype.kind == "c" else [(a, b)]
        if not all(_alike(one, other, tolerance) for one, other in parts):
            raise BrokenLawError("as NumPy", f"result {k} is\n{one}\ninstead of\n{other}")


def _alike(a: Any, b: Any, tolerance: float) -> bool:
    """Whether entries are equal up to a tolerance, and exactly where they are zero or not finite."""
    if a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    plain = np.isfinite(b) & (b != 0)
    close = np.abs(a - b) <= tolerance * (1e-3 + np.abs(b))
    same_bits = (np.isnan(a) & np.isnan(b)) | ((a == b) & (np.signbit(a) == np.signbit(b)))
    return bool(np.all(np.where(plain, close, same_bits)))


def same_form(call: Function, plain: Function) -> None:
    """Results have the values and dtypes of plain Python; arrays stay arrays, and numbers stay numbers."""
    try:
        expected = plain()
    except Exception:
        return
    try:
        found = call()
    except FunctransError:
        return
    same(found, expected, 1e-2, "forms, values")
    for one, other in zip(leaves(found), leaves(expected), strict=True):
        a, b = np.asarray(one), np.asarray(other)
        if a.dtype != b.dtype:
            raise BrokenLawError("forms, dtypes", f"{a.dtype} instead of {b.dtype}")
        if isinstance(one, np.ndarray) != isinstance(other, np.ndarray):
            message = f"{type(one).__name__} instead of {type(other).__name__}"
            raise BrokenLawError("forms, array or number", message)


def one_rule(one: Function, other: Function) -> None:
    """Two ways to compute the same derivative give the same number, including nan."""
    try:
        first, second = (np.asarray(call(), float) for call in (one, other))
    except (FunctransError, TypeError):
        return  # not supported in this form
    if not np.allclose(first, second, rtol=1e-6, atol=1e-6, equal_nan=True):
        raise BrokenLawError("one rule", f"{first} and {second}")


def refused_in_words(call: Function) -> None:
    """A call works, or is refused with an error of the library or of NumPy's linear algebra."""
    try:
        call()
    except (FunctransError, np.linalg.LinAlgError):
        return
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        raise BrokenLawError("an error that says why", message) from error
