"""Filters that run along an axis: recursive ones, cascades of sections, and both ways in time."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.dispatch import concrete
from functrans.core.shapes import dtype_of, shape_of
from functrans.ops.structure import stop_gradient
from functrans.scipy import filters
from functrans.scipy.delegation import delegates, refuse_option
from functrans.scipy.filters import ss
from functrans.surface.table import as_array, axis_index, ndim_of


def _coefficients(b: Any, a: Any) -> tuple[Any, Any]:
    """Numerator and denominator, divided by the first coefficient of the latter."""
    taps, poles = np.atleast_1d(as_array(b)), np.atleast_1d(as_array(a))
    if ndim_of(taps) != 1 or ndim_of(poles) != 1:
        raise ValueError("the coefficients of a filter must be 1-dimensional")
    return taps / poles[0], poles / poles[0]


def _floating(x: Any) -> Any:
    array = as_array(x)
    return array if dtype_of(array).kind in "fc" else array.astype(np.float64)


def _run(taps: Any, poles: Any, x: Any, zi: Any) -> tuple[Any, Any]:
    """The filtered signal along the last axis, and the state at the end if one at the start is given."""
    if zi is None:
        return filters.lfilter(taps, poles, x), None
    # As polynomials in the delay, A Y + z^N Zf = B X + Zi: the states are what is left over.
    count, length = max(shape_of(taps)[0], shape_of(poles)[0]) - 1, shape_of(x)[-1]
    lead = shape_of(x)[:-1]
    dtype = np.result_type(*(dtype_of(each) for each in (taps, poles, x, zi)))
    zi = np.broadcast_to(zi, (*lead, count))
    if not count or not length:
        return filters.lfilter(taps, poles, x), zi
    start = np.concatenate([zi, np.zeros((*lead, max(length - count, 0)), dtype)], axis=-1)
    one = np.ones(1, dtype_of(poles))
    y = filters.lfilter(taps, poles, x) + filters.lfilter(one, poles, start[..., :length])
    tail = np.zeros((*lead, count), dtype)
    sums = []
    for factor, signal in ((taps, x), (poles, y)):
        whole = filters.convolve(factor, signal, ndim=1)
        missing = length + count - shape_of(whole)[-1]
        if missing:
            whole = np.concatenate([whole, tail[..., :missing]], axis=-1)
        sums.append(whole[..., length : length + count])
    left = sums[0] - sums[1]
    rest = start[..., length:]
    if shape_of(rest)[-1]:
        more = count - shape_of(rest)[-1]
        left = left + np.concatenate([rest, tail[..., :more]], axis=-1)
    return y, left


@delegates(ss.lfilter)
def lfilter(b: Any, a: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """A signal, filtered along an axis; with `zi`, also the state at the end.

    Coefficients, signal and states may be traced. The filter is run by SciPy, and so are its derivatives,
    which are filters as well.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import lfilter
    >>> grad(lambda x: lfilter([1.0], [1.0, -0.5], x)[-1])(np.ones(3))
    array([0.25, 0.5 , 1.  ])
    """
    taps, poles = _coefficients(b, a)
    signal = _floating(x)
    axis = axis_index(axis, ndim_of(signal))
    signal = np.moveaxis(signal, axis, -1)
    if zi is None:
        return np.moveaxis(filters.lfilter(taps, poles, signal), -1, axis)
    state = _floating(zi)
    if ndim_of(state) != ndim_of(signal):
        raise ValueError(
            f"object of too small depth for desired array: zi has shape {shape_of(state)}"
        )
    y, left = _run(taps, poles, signal, np.moveaxis(state, axis, -1))
    return np.moveaxis(y, -1, axis), np.moveaxis(left, -1, axis)


def sections_of(sos: Any) -> Any:
    rows = np.atleast_2d(as_array(sos))
    if ndim_of(rows) != 2 or shape_of(rows)[1] != 6:
        raise ValueError("sos array must be shape (n_sections, 6)")
    return rows


@delegates(ss.sosfilt)
def sosfilt(sos: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """A signal, filtered by a cascade of sections of second order.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import sosfilt
    >>> sos = np.array([[1.0, 0.0, 0.0, 1.0, -0.5, 0.0]])
    >>> grad(lambda x: sosfilt(sos, x)[-1])(np.ones(3))
    array([0.25, 0.5 , 1.  ])
    """
    rows, signal = sections_of(sos), _floating(x)
    axis = axis_index(axis, ndim_of(signal))
    signal = np.moveaxis(signal, axis, -1)
    states = None
    if zi is not None:
        states = np.moveaxis(_floating(zi), axis + 1, -1)
        wanted = (shape_of(rows)[0], *shape_of(signal)[:-1], 2)
        if shape_of(states) != wanted:
            raise ValueError(f"Invalid zi shape. Expected {wanted}, got {shape_of(states)}.")
    left = []
    for k in range(shape_of(rows)[0]):
        state = None if states is None else states[k]
        signal, end = _run(rows[k, :3], rows[k, 3:], signal, state)
        left.append(end)
    out = np.moveaxis(signal, -1, axis)
    return out if zi is None else (out, np.moveaxis(np.stack(left), -1, axis + 1))


@delegates(ss.lfilter_zi)
def lfilter_zi(b: Any, a: Any) -> Any:
    """The state in which the response to a unit step does not change any more.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import lfilter_zi
    >>> grad(lambda b: lfilter_zi(b, np.array([1.0, -0.5]))[0])(np.array([1.0, 0.0]))
    array([1., 2.])
    """
    taps, poles = _coefficients(b, a)
    n = max(shape_of(taps)[0], shape_of(poles)[0])
    taps, poles = (
        np.concatenate([each, np.zeros(n - shape_of(each)[0], dtype_of(each))])
        for each in (taps, poles)
    )
    # z = C^T z + b' with the companion matrix C of a, in the form that does not divide
    shift = np.eye(n - 1, k=1)
    first = np.zeros((1, n - 1))
    if n > 1:
        first[0, 0] = 1
    system = np.eye(n - 1) - shift + poles[1:, None] * first
    return np.linalg.solve(system, taps[1:] - poles[1:] * taps[0])


@delegates(ss.sosfilt_zi)
def sosfilt_zi(sos: Any) -> Any:
    """The states of a cascade in which the response to a unit step does not change any more.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import sosfilt_zi
    >>> sos = np.array([[1.0, 0.0, 0.0, 1.0, -0.5, 0.0]])
    >>> grad(lambda sos: sosfilt_zi(sos)[0, 0])(sos)[0, :3]
    array([1., 2., 2.])
    """
    rows = sections_of(sos)
    states, scale = [], np.ones(())
    for k in range(shape_of(rows)[0]):
        taps, poles = rows[k, :3], rows[k, 3:]
        states.append(scale * lfilter_zi(taps, poles))
        scale = scale * np.sum(taps) / np.sum(poles)
    return np.stack(states)


# Both ways in time. The signal is extended, so that the filters have settled where it begins.


def extended(x: Any, count: int, kind: str | None) -> Any:
    """A signal with `count` more samples at each end of the last axis."""
    if not count or kind is None:
        return x
    first, last = x[..., :1], x[..., -1:]
    before, after = x[..., count:0:-1], x[..., -2 : -count - 2 : -1]
    if kind == "odd":
        before, after = 2 * first - before, 2 * last - after
    elif kind == "constant":
        before, after = np.repeat(first, count, axis=-1), np.repeat(last, count, axis=-1)
    elif kind == "zeros":
        before = np.zeros((*shape_of(x)[:-1], count), dtype_of(x))
        after = before
    return np.concatenate([before, x, after], axis=-1)


def _padding(padtype: Any, padlen: Any, default: int, length: int) -> int:
    if padtype not in ("even", "odd", "constant", None):
        raise ValueError(f"Unknown value '{padtype}' given to padtype.")
    count = 0 if padtype is None else default if padlen is None else int(padlen)
    if length <= count:
        raise ValueError(
            f"The length of the input vector x must be greater than padlen, which is {count}."
        )
    return count


def _both_ways(run: Any, x: Any, count: int, padtype: Any) -> Any:
    """run(signal, first value) filters forward, and then what comes out of that backward."""
    signal = extended(x, count, padtype)
    for _ in range(2):
        signal = np.flip(run(signal, signal[..., :1]), -1)
    return signal[..., count : shape_of(signal)[-1] - count]


@delegates(ss.filtfilt)
def filtfilt(
    b: Any,
    a: Any,
    x: Any,
    axis: int = -1,
    padtype: str | None = "odd",
    padlen: int | None = None,
    method: str = "pad",
    irlen: int | None = None,
) -> Any:
    """A signal, filtered forward and backward, which does not shift it.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import filtfilt
    >>> f = lambda x: np.sum(filtfilt([0.5, 0.5], [1.0], x, padlen=2)[1:2])
    >>> grad(f)(np.ones(4))
    array([0.25, 0.5 , 0.25, 0.  ])
    """
    if method != "pad":
        refuse_option("scipy.signal.filtfilt", "Use method='pad'.", method=method)
    taps, poles = _coefficients(b, a)
    signal = _floating(x)
    axis = axis_index(axis, ndim_of(signal))
    signal = np.moveaxis(signal, axis, -1)
    default = 3 * max(shape_of(taps)[0], shape_of(poles)[0])
    count = _padding(padtype, padlen, default, shape_of(signal)[-1])
    state = lfilter_zi(taps, poles)

    def run(signal: Any, first: Any) -> Any:
        return _run(taps, poles, signal, state * first)[0]

    return np.moveaxis(_both_ways(run, signal, count, padtype), -1, axis)


@delegates(ss.sosfiltfilt)
def sosfiltfilt(
    sos: Any, x: Any, axis: int = -1, padtype: str | None = "odd", padlen: int | None = None
) -> Any:
    """A signal, filtered forward and backward by a cascade of sections of second order.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import sosfiltfilt
    >>> sos = np.array([[0.5, 0.5, 0.0, 1.0, 0.0, 0.0]])
    >>> grad(lambda x: sosfiltfilt(sos, x, padlen=2)[1])(np.ones(4))
    array([0.25, 0.5 , 0.25, 0.  ])
    """
    rows, signal = sections_of(sos), _floating(x)
    axis = axis_index(axis, ndim_of(signal))
    signal = np.moveaxis(signal, axis, -1)
    sections, default = shape_of(rows)[0], 0
    if padlen is None and padtype is not None:  # sections of first order are shorter
        zeros = np.sum(stop_gradient(rows)[:, np.array([2, 5])] == 0, axis=0)
        default = 3 * (2 * sections + 1 - int(concrete(np.min(zeros))))
    count = _padding(padtype, padlen, default, shape_of(signal)[-1])
    states = sosfilt_zi(rows)

    def run(signal: Any, first: Any) -> Any:
        for k in range(sections):
            signal = _run(rows[k, :3], rows[k, 3:], signal, states[k] * first)[0]
        return signal

    return np.moveaxis(_both_ways(run, signal, count, padtype), -1, axis)
