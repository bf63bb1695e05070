"""Values that no function was made for, and what may come of calling one with them."""

import contextlib
import decimal
import fractions
import signal
import traceback

import numpy as np
from hypothesis import strategies as st

from functrans.errors import FunctransError


class Carrying(np.ndarray):
    """A subclass that computes as plain arrays do."""


class Doubling(np.ndarray):
    """A subclass that computes in its own way."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        inputs = [np.asarray(each) for each in inputs]
        # Also the arrays to write to: NumPy would call this method for them again, without end.
        if "out" in kwargs:
            kwargs["out"] = tuple(
                each if each is None else np.asarray(each) for each in kwargs["out"]
            )
        return 2 * getattr(ufunc, method)(*inputs, **kwargs)


class Silent:
    """An object that answers nothing."""

    __slots__ = ()


class Shaped:
    """An object that has a shape, but is not an array."""

    shape = "round"


def _holding_itself(kind):
    container = kind()
    if kind is list:
        container.append(container)
    else:
        container["self"] = container
    return container


def _matrix():
    return np.array([[1.0, 2.0], [3.0, 4.0]]).view(np.matrix)


def _read_only():
    array = np.arange(3.0)
    array.setflags(write=False)
    return array


# Factories, since some values can be used up, or changed.
BAD = {
    "None": lambda: None,
    "text": lambda: "text",
    "bytes": lambda: b"bytes",
    "an object": Silent,
    "a shaped object": Shaped,
    "a class": lambda: float,
    "a function": lambda: len,
    "an ellipsis": lambda: ...,
    "a slice": lambda: slice(3),
    "a set": lambda: {1.0},
    "a generator": lambda: (x for x in (1.0, 2.0)),
    "a range": lambda: range(3),
    "a decimal": lambda: decimal.Decimal(1),
    "a fraction": lambda: fractions.Fraction(1, 2),
    "a list that holds itself": lambda: _holding_itself(list),
    "a dict that holds itself": lambda: _holding_itself(dict),
    "keys of several types": lambda: {1: 1.0, "a": 2.0},
    "an empty list": list,
    "an empty dict": dict,
    "nested containers": lambda: [[1.0], {"a": (2.0, None)}],
    "a ragged list": lambda: [[1.0], [2.0, 3.0]],
    "True": lambda: True,
    "an int": lambda: 3,
    "minus one": lambda: -1,
    "a huge int": lambda: 10**400,
    "a huge negative int": lambda: -(10**30),
    "a float": lambda: 0.5,
    "nan": lambda: np.nan,
    "inf": lambda: np.array([np.inf, -np.inf, 1.0]),
    "a complex number": lambda: 1j,
    "half precision": lambda: np.float16(1.5),
    "extended precision": lambda: np.longdouble(2),
    "integers": lambda: np.arange(3),
    "unsigned bytes": lambda: np.arange(3, dtype=np.uint8),
    "truths": lambda: np.array([True, False, True]),
    "no entries": lambda: np.zeros(0),
    "no rows": lambda: np.zeros((0, 3)),
    "no columns": lambda: np.zeros((3, 0)),
    "an array of no axes": lambda: np.array(2.0),
    "another length": lambda: np.arange(5.0),
    "more axes": lambda: np.ones((2, 3, 4)),
    "many axes": lambda: np.ones((1,) * 40),
    "the other byte order": lambda: np.arange(3.0).astype(">f8"),
    "not in one piece": lambda: np.arange(6.0)[::-2],
    "out of line": lambda: np.zeros(25, np.uint8)[1:].view(float),
    "read-only": _read_only,
    "broadcast": lambda: np.broadcast_to(1.0, (3,)),
    "huge and broadcast": lambda: np.broadcast_to(1.0, (10**9, 10**6)),
    "objects": lambda: np.array([1.0, 2.0, 3.0], object),
    "words": lambda: np.array(["a", "b", "c"]),
    "dates": lambda: np.array(["2020-01-01"], "M8[D]"),
    "records": lambda: np.zeros(3, [("a", float), ("b", int)]),
    "a record array": lambda: np.zeros(3, [("a", float)]).view(np.recarray),
    "masked": lambda: np.ma.masked_array([1.0, 2.0, 3.0], mask=[False, True, False]),
    "masked altogether": lambda: np.ma.masked,
    "a matrix": _matrix,
    "a subclass": lambda: np.arange(3.0).view(Carrying),
    "a subclass of its own way": lambda: np.arange(3.0).view(Doubling),
}
# These would take all memory, or all time, as the size of something.
ENORMOUS = {"a huge int", "huge and broadcast"}


def values(without=frozenset()):
    """A strategy of names of bad values, sometimes with a container around the value."""
    names = st.sampled_from([name for name in BAD if name not in without])
    return st.tuples(names, st.sampled_from(["", "", "", "list", "tuple", "dict"]))


def made(drawn):
    """The value that was drawn."""
    name, container = drawn
    value = BAD[name]()
    wrappers = {"list": lambda x: [x], "tuple": lambda x: (x, 1.0), "dict": lambda x: {"k": x}}
    return wrappers[container](value) if container else value


@contextlib.contextmanager
def no_hang(seconds=60):
    """Raise if the block does not come to an end."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def give_up(*_):
        raise TimeoutError("it hangs")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


_OF_NUMPY = (TypeError, ValueError, IndexError, ArithmeticError, MemoryError, OSError)
_OF_NUMPY += (NotImplementedError, np.ma.MaskError, BufferError)


def is_fair(error):
    """Whether a user can understand an error, and it is not a bug of the library."""
    if isinstance(error, FunctransError):
        return True
    if isinstance(error, _OF_NUMPY):
        return not isinstance(error, (UnicodeError, TimeoutError))
    if isinstance(error, (RecursionError, SystemError, TimeoutError)):
        return False
    # An AttributeError, say, of the user's function, of NumPy or of SciPy is theirs.
    innermost = traceback.extract_tb(error.__traceback__)[-1].filename
    return "functrans" not in innermost.rsplit("site-packages", 1)[-1].replace("\\", "/").split("/")


def outcome(call, *args):
    """("returned", value), or ("raised", error) if the error is fair; others pass through."""
    with no_hang(), np.errstate(all="ignore"):
        try:
            return "returned", call(*args)
        except Exception as error:
            if is_fair(error):
                return "raised", error
            raise AssertionError(f"{type(error).__name__} is not a clear error: {error}") from error
