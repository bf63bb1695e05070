"""Explains errors that NumPy and Python raise about traced values: adds the reason and a remedy."""

from __future__ import annotations

import re
from typing import Any

from functrans.core import errors
from functrans.core.places import place_in

# Functions of the standard library's statistics that NumPy has, too.
STATISTICS = {
    "mean": "np.mean(x)",
    "fmean": "np.mean(x)",
    "stdev": "np.std(x, ddof=1)",
    "pstdev": "np.std(x)",
    "variance": "np.var(x, ddof=1)",
    "pvariance": "np.var(x)",
}
_RATIO = "to numerator/denominator"  # the standard library's statistics
_UNSUPPORTED = re.compile(r"array type (\w+) is unsupported in linalg")
_STORES = re.compile("JSON serializable|bytes-like|buffer|pickle")


def explain(error: BaseException, traceback: Any, interpreter: Any) -> None:
    """Raise a better error in place of one, or add a note to it."""
    if type(error) is ValueError and str(error).endswith("read-only"):
        place = place_in(traceback) if interpreter.differentiates else None
        if place is not None:
            better = errors.AssignmentError(
                f"an array that is assigned to is read-only, at {place}. While {interpreter.transform} "
                "runs, arguments that are not differentiated are read-only, to protect the caller's "
                "arrays, and so are plain copies of arrays that accept traced values, because a change of "
                "the copy would be lost. Change a copy of your own: y = functrans.numpy.array(y)."
            )
            raise better.with_traceback(error.__traceback__) from None
    elif type(error) is TypeError and (reason := _reason(str(error), traceback)) is not None:
        raise reason.with_traceback(error.__traceback__) from None
    elif isinstance(error, (TypeError, AttributeError)):
        noted = getattr(error, "__notes__", ())
        if "TracedArray" in str(error) and not noted:
            error.add_note(_note(error, traceback, interpreter))


def _reason(text: str, traceback: Any) -> errors.FunctransError | None:
    """A better error for one of the standard library's or NumPy's about the type of what they were given."""
    place = place_in(traceback)
    if "TracedArray" in text and text.endswith(_RATIO):
        name = _called_in_statistics(traceback)
        instead = STATISTICS.get(name, f"statistics.{name} with NumPy's functions")
        return errors.ArrayConversionError(
            f"statistics.{name} computes with plain numbers, without derivatives, at {place}. "
            f"Write {instead}."
        )
    unsupported = _UNSUPPORTED.fullmatch(text)
    if unsupported is not None and place is not None:
        return errors.InputTypeError(
            f"np.linalg does not compute with {unsupported[1]}, at {place}. Convert the array: "
            "x.astype(np.float64)."
        )
    return None


def _called_in_statistics(traceback: Any) -> str:
    """The outermost function of the standard library's statistics in a traceback."""
    while traceback.tb_frame.f_globals.get("__name__") != "statistics":
        traceback = traceback.tb_next
    name: str = traceback.tb_frame.f_code.co_name
    return name


def _note(error: BaseException, traceback: Any, interpreter: Any) -> str:
    function = errors.describe_users(interpreter.function)
    place = place_in(traceback)
    where = "" if place is None else f" This is at {place}."
    remedy = ""
    if _STORES.search(str(error)):
        remedy = " Return it, with has_aux=True if it is an extra result, and store it there."
    return f"A TracedArray stands for an array while {interpreter.transform} runs {function}.{where}{remedy}"
