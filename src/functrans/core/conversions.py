"""What to say when NumPy or Python asks a tracer for a plain value, which would lose its derivative."""

from __future__ import annotations

import dis
import warnings
from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.dispatch import Tracer

_STORES = (dis.opmap["STORE_SUBSCR"], dis.opmap["STORE_ATTR"])  # array[i] = x, array.real = x
_CALLS = [code for name, code in dis.opmap.items() if name.startswith(("CALL", "PRECALL"))]
_STORING = frozenset({"fill", "put", "__setitem__", "setitem", "fill_diagonal"})  # by a call


def refuse_assignment() -> None:
    """NumPy's `array[i] = tracer` asks for float(tracer): refuse, since it drops the derivative."""
    frame = errors.user_frame()
    if frame is None or frame.f_lasti < 0:
        return
    instruction = frame.f_code.co_code[frame.f_lasti]
    if instruction in _STORES or (
        instruction in _CALLS
        and not _STORING.isdisjoint(frame.f_code.co_names)
        and _called_name(frame) in _STORING
    ):
        raise errors.AssignmentError(
            f"a traced value cannot be assigned into a plain array, at {errors.user_location()}. "
            "The plain array cannot hold the derivative. Make the array with "
            "np.zeros_like(x, shape=...) or np.zeros(shape, like=x) of a traced x, or "
            "functrans.numpy.zeros(shape), which may be assigned traced values; or collect the values "
            "in a list and call np.stack(list) or functrans.numpy.array(list)."
        )


def warn_of_lost_derivative(tracer: Tracer, conversion: str) -> None:
    value: Any = tracer
    while isinstance(value, Tracer):
        if value.interpreter.differentiates and value.dtype.kind in "fc":  # type: ignore[attr-defined]
            warnings.warn(
                f"{conversion} of a value that is being differentiated gives a plain number, at "
                f"{errors.user_location()}: no derivative flows through it. Use NumPy's functions "
                "(np.sin, not math.sin), or functrans.stop_gradient(x) to say that it is meant.",
                errors.DerivativeWarning,
                stacklevel=3,
            )
            return
        value = getattr(value, "value", None)


def conversion_error() -> errors.ArrayConversionError:
    """The error for np.asarray(tracer), and for those who call it without our knowing."""
    where = errors.user_location()
    frame = errors.user_frame()
    # Functions in C have no frame: the user's stands at their call.
    name = None if frame is None else _called_name(frame)
    if name is not None and hasattr(np.random.Generator, name) and not hasattr(np, name):
        return errors.ArrayConversionError(
            f"NumPy's random {name} cannot take a traced parameter, at {where}. Draw standard "
            "numbers and transform them, loc + scale * rng.normal(size=...), or use "
            "functrans.random, whose functions have derivatives by their parameters."
        )
    scalar = None if name is None else getattr(np, name, None)
    if isinstance(scalar, type) and issubclass(scalar, np.generic):
        return errors.ArrayConversionError(
            f"np.{name}(x) makes a plain array, which a traced value cannot become, at {where}. Write "
            f"x.astype(np.{name})."
        )
    return errors.ArrayConversionError(
        f"a traced value cannot become a plain array, at {where}. np.array and np.asarray would cut "
        "it off from its derivative. To build an array from traced values use "
        "functrans.numpy.array([...]) or np.stack([...]); to fill one, np.zeros_like(x); to index a "
        "plain array with a traced one, functrans.numpy.take(array, x); for array.dot(x), "
        "array @ x; for functions of SciPy, see functrans.scipy; to look at the value, "
        "functrans.stop_gradient(x)."
    )


def _called_name(frame: Any) -> str | None:
    """The last name in the call at which a frame stands: `f` in a.f(x); None if it is no call."""
    import ast
    import linecache

    first, last, start, stop = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    if first is None or last is None or start is None or stop is None:
        return None
    source = linecache.getlines(frame.f_code.co_filename, frame.f_globals)[first - 1 : last]
    lines = [line.encode() for line in source]
    try:
        lines[-1] = lines[-1][:stop]
        lines[0] = lines[0][start:]
        call: Any = ast.parse(b"(" + b"".join(lines) + b")", mode="eval").body
    except (IndexError, SyntaxError):
        return None
    function = getattr(call, "func", None)
    return getattr(function, "attr", getattr(function, "id", None))
