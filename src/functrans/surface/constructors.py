"""Arrays for `functrans.numpy`: from lists that hold traced values, or to assign traced values to.

While a transform runs, these functions return arrays that accept traced values; at other times, NumPy
arrays. np.zeros(..., like=x) and np.zeros_like(x) are in creation.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from functrans.core.dispatch import Tracer, concrete, running_interpreters
from functrans.core.shapes import PYTHON_SCALARS, dtype_of, shape_of
from functrans.surface import creation
from functrans.surface.shaping import concatenate, ravel, take
from functrans.surface.table import as_array, holds_tracer
from functrans.surface.unhooked import any_traced, fresh, open_all


def array(
    object: Any,
    dtype: Any = None,
    *,
    copy: Any = True,
    order: Any = "K",
    subok: bool = False,
    ndmin: int = 0,
    like: Any = None,
) -> Any:
    """Make an array from nested lists, which may hold traced values.

    Inside a transform, you can assign traced values to it.

    Examples
    --------
    >>> import functrans
    >>> import functrans.numpy as np
    >>> functrans.grad(lambda x: np.sum(np.array([x, x * x])))(3.0)
    np.float64(7.0)
    """
    if isinstance(copy, np._CopyMode):
        copy = _COPY_MODES[copy]
    if not holds_tracer(object):
        made = np.array(object, dtype, copy=copy, order=order, subok=subok, ndmin=ndmin)
        return open_all(made, (object,)) if running_interpreters() else made
    if copy is False and not (isinstance(object, Tracer) and _has_dtype(object, dtype)):
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    made = creation.array(object, dtype) if copy else creation.asarray(object, dtype)
    return made[(None,) * (ndmin - made.ndim)] if made.ndim < ndmin else made


_COPY_MODES: dict[Any, bool | None] = {
    np._CopyMode.ALWAYS: True,
    np._CopyMode.IF_NEEDED: None,
    np._CopyMode.NEVER: False,
}


def _has_dtype(x: Any, dtype: Any) -> bool:
    return dtype is None or x.dtype == np.dtype(dtype)


def asarray(
    a: Any,
    dtype: Any = None,
    order: Any = None,
    *,
    device: Any = None,
    copy: Any = None,
    like: Any = None,
) -> Any:
    """Like `array`, but arrays are not copied.

    Examples
    --------
    >>> import functrans.numpy as np
    >>> x = np.ones(2)
    >>> np.asarray(x) is x
    True
    """
    check_device(device)
    return array(a, dtype, copy=copy, order=order or "K")


def asanyarray(
    a: Any,
    dtype: Any = None,
    order: Any = None,
    *,
    device: Any = None,
    copy: Any = None,
    like: Any = None,
) -> Any:
    """Like `asarray`, but subclasses of NumPy's array pass through.

    Examples
    --------
    >>> import functrans
    >>> import functrans.numpy as np
    >>> functrans.grad(lambda x: np.sum(np.asanyarray([x, x * x])))(3.0)
    np.float64(7.0)
    """
    check_device(device)
    return array(a, dtype, copy=copy, order=order or "K", subok=True)


def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """Like `asarray`, in C order and with at least one axis.

    Examples
    --------
    >>> import functrans.numpy as np
    >>> np.ascontiguousarray(2.0)
    array([2.])
    """
    return array(a, dtype, copy=None, order="C", ndmin=1)


def asfortranarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """Like `asarray`, in Fortran order and with at least one axis.

    Examples
    --------
    >>> import functrans.numpy as np
    >>> np.asfortranarray([[1.0, 2.0], [3.0, 4.0]]).flags.f_contiguous
    True
    """
    return array(a, dtype, copy=None, order="F", ndmin=1)


def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> Any:
    """Like `asarray`, but raise an error if an entry is not finite.

    Examples
    --------
    >>> import functrans.numpy as np
    >>> np.asarray_chkfinite([1.0, np.inf])
    Traceback (most recent call last):
        ...
    ValueError: array must not contain infs or NaNs
    """
    made = asarray(a, dtype, order)
    if made.dtype.char in np.typecodes["AllFloat"] and not np.isfinite(made).all():
        raise ValueError("array must not contain infs or NaNs")
    return made


def check_device(device: Any) -> None:
    """Refuse devices other than "cpu", as NumPy does."""
    if device not in (None, "cpu"):
        raise ValueError(f'Device not understood. Only "cpu" is allowed, but received: {device}')


_arange = fresh(np.arange)


def arange(*args: Any, **options: Any) -> Any:
    """Evenly spaced numbers; start and step may be traced, and have derivatives.

    Examples
    --------
    >>> import functrans
    >>> import functrans.numpy as np
    >>> functrans.jvp(lambda x: np.arange(x, 3.0), (0.5,), (1.0,))
    (array([0.5, 1.5, 2.5]), array([1., 1., 1.]))
    """
    if not any_traced((*args, *options.values())):
        return _arange(*args, **options)
    return _traced_arange(*args, **options)


def _traced_arange(
    start: Any,
    /,
    stop: Any = None,
    step: Any = None,
    dtype: Any = None,
    *,
    device: Any = None,
    like: Any = None,
) -> Any:
    check_device(device)
    found = np.result_type(*(as_array(v) for v in (start, stop, step) if v is not None))
    first, last = (0, start) if stop is None else (start, stop)
    step = 1 if step is None else step
    # Lanes need to agree on the length, not on the values.
    count = max(0, int(concrete(np.ceil((last - first) / step))))
    # The step is the difference of the first two, as in NumPy.
    made: Any = first + np.arange(count) * ((first + step) - first)
    return made.astype(found if dtype is None else np.dtype(dtype))


def fromiter(iter: Iterable[Any], dtype: Any, count: int = -1, *, like: Any = None) -> Any:
    """Make a vector from the values of an iterator, which may be traced.

    Examples
    --------
    >>> import functrans
    >>> import functrans.numpy as np
    >>> functrans.jacfwd(lambda x: np.fromiter((x**k for k in range(3)), float))(2.0)
    array([0., 1., 4.])
    """
    if not running_interpreters():
        return np.fromiter(iter, dtype, count)
    values = list(iter if count < 0 else islice(iter, count))
    if not holds_tracer(values):
        return open_all(np.fromiter(values, dtype, count), ())
    if len(values) < count:
        raise ValueError(
            f"iterator too short: Expected {count} but iterator had only {len(values)}"
        )
    return array(values, dtype)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    """Convert an array of another library; a traced value is returned unchanged.

    Examples
    --------
    >>> import functrans.numpy as np
    >>> np.from_dlpack(np.ones(2))
    array([1., 1.])
    """
    if isinstance(x, Tracer):
        return asarray(x, device=device, copy=copy)
    options = {"device": device, "copy": copy}
    return np.from_dlpack(x, **{key: v for key, v in options.items() if v is not None})


def ndenumerate(arr: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Pairs of an index and its entry, like `np.ndenumerate`.

    Examples
    --------
    >>> import functrans
    >>> import functrans.numpy as np
    >>> functrans.grad(lambda x: np.sum([i[0] * v for i, v in np.ndenumerate(x)]))(np.ones(3))
    array([0., 1., 2.])
    """
    if not holds_tracer(arr):
        return np.ndenumerate(arr)
    x = as_array(arr)
    return ((index, x[index]) for index in np.ndindex(shape_of(x)))


class _Subscripted:
    """np.mgrid and np.ogrid, with arrays that accept traced values."""

    __slots__ = ("numpy",)

    def __init__(self, numpy: Any) -> None:
        self.numpy = numpy

    def __getitem__(self, key: Any) -> Any:
        made = self.numpy[key]
        return open_all(made, ()) if running_interpreters() else made


class _Grid(_Subscripted):
    """The same for traced limits of the axes; their lengths must be known."""

    __slots__ = ("sparse",)

    def __init__(self, numpy: Any, sparse: bool) -> None:
        super().__init__(numpy)
        self.sparse = sparse

    def __getitem__(self, key: Any) -> Any:
        ranges = key if isinstance(key, tuple) else (key,)
        limits = [(each.start, each.stop, each.step) for each in ranges if isinstance(each, slice)]
        if not any(map(any_traced, limits)):
            return super().__getitem__(key)
        axes = [_points(*limit) for limit in limits]
        common = np.result_type(*map(dtype_of, axes))
        axes = [axis.astype(common) for axis in axes]
        if not isinstance(key, tuple):
            return axes[0]
        grids = np.meshgrid(*axes, indexing="ij", sparse=self.sparse)
        return tuple(grids) if self.sparse else np.stack(grids)


def _points(start: Any, stop: Any, step: Any) -> Any:
    """The axis for start:stop:step in np.mgrid, where an imaginary step is a number of points."""
    start = 0 if start is None else start
    if isinstance(step, complex):
        return np.linspace(start, stop, int(abs(step)))
    return arange(start, stop, 1 if step is None else step)


class _Joined(_Subscripted):
    """np.r_ and np.c_, which join the values between the brackets."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        if not holds_tracer(key):
            return super().__getitem__(key)
        # NumPy arranges the indices of the entries, and the entries are taken by index.
        parts: list[Any] = []
        numbered: list[Any] = []
        typed: list[Any] = []
        count = 0
        for item in key if isinstance(key, tuple) else (key,):
            if isinstance(item, str):
                numbered.append(item)
                continue
            part = as_array(np.r_[item] if isinstance(item, slice) else item)
            places = np.arange(count, count + part.size).reshape(shape_of(part))
            numbered.append(places if places.shape else int(places))
            parts.append(part)
            typed.append(item if type(item) in PYTHON_SCALARS else part)
            count += part.size
        flat = concatenate([ravel(part) for part in parts]).astype(np.result_type(*typed))
        return take(flat, self.numpy[tuple(numbered)])


CONSTRUCTORS: dict[str, Any] = {
    "arange": arange,
    "array": array,
    "asanyarray": asanyarray,
    "asarray": asarray,
    "asarray_chkfinite": asarray_chkfinite,
    "ascontiguousarray": ascontiguousarray,
    "asfortranarray": asfortranarray,
    "c_": _Joined(np.c_),
    "from_dlpack": from_dlpack,
    "fromiter": fromiter,
    "mgrid": _Grid(np.mgrid, False),
    "ndenumerate": ndenumerate,
    "ogrid": _Grid(np.ogrid, True),
    "r_": _Joined(np.r_),
}
_make: Any
for _make in (
    *(np.zeros, np.ones, np.empty, np.full, np.eye, np.identity, np.tri, np.indices),
    *(np.zeros_like, np.ones_like, np.empty_like, np.full_like, np.copy, np.tile, np.repeat),
    *(np.linspace, np.logspace, np.geomspace, np.meshgrid, np.vander, np.fromfunction),
    *(np.diag, np.diagflat, np.tril, np.triu),
    *(np.frombuffer, np.fromfile, np.fromstring, np.loadtxt, np.genfromtxt),
):
    CONSTRUCTORS[_make.__name__] = fresh(_make)
