"""Waveforms: functions of time with traced times and parameters."""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np

from functrans.core.shapes import shape_of
from functrans.ops.structure import stop_gradient
from functrans.scipy.delegation import delegates, refuse_option
from functrans.scipy.filters import ss
from functrans.surface.table import as_array, in_array, known


def _of_turn(t: Any) -> Any:
    return np.mod(as_array(t), 2 * pi)


@delegates(ss.sawtooth)
def sawtooth(t: Any, width: Any = 1) -> Any:
    """A wave that rises from -1 to 1 in the first `width` of a period, and falls in the rest.

    Examples
    --------
    >>> from functrans import grad
    >>> from functrans.scipy.signal import sawtooth
    >>> float(grad(sawtooth)(1.0).round(6))  # 1 / π
    0.31831
    """
    turn, rise = _of_turn(t), as_array(width)
    up = stop_gradient(turn) < stop_gradient(rise) * 2 * pi
    rising = turn / (pi * np.where(up, rise, 1)) - 1
    falling = (pi * (rise + 1) - turn) / (pi * (1 - np.where(up, 0, rise)))
    outside = (stop_gradient(rise) > 1) | (stop_gradient(rise) < 0)
    return in_array(np.where(outside, np.nan, np.where(up, rising, falling)))


@delegates(ss.square)
def square(t: Any, duty: Any = 0.5) -> Any:
    """A wave that is 1 in the first `duty` of a period, and -1 in the rest; its derivative is 0.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import vmap
    >>> from functrans.scipy.signal import square
    >>> vmap(square)(np.array([1.0, 4.0]))
    array([ 1., -1.])
    """
    turn, share = _of_turn(t), as_array(duty)
    outside = (share > 1) | (share < 0)
    high = np.where(turn < share * 2 * pi, 1.0, -1.0)
    return in_array(np.where(outside, np.nan, high))


@delegates(ss.chirp)
def chirp(
    t: Any,
    f0: Any,
    t1: Any,
    f1: Any,
    method: str = "linear",
    phi: Any = 0,
    vertex_zero: bool = True,
    *,
    complex: bool = False,
) -> Any:
    """A cosine whose frequency goes from f0 to f1 at time t1.

    Examples
    --------
    >>> from functrans import grad
    >>> from functrans.scipy.signal import chirp
    >>> float(grad(lambda t: chirp(t, 1.0, 1.0, 1.0))(0.25).round(6))  # -2π
    -6.283185
    """
    phase = _chirp_phase(as_array(t), f0, t1, f1, method, vertex_zero) + phi * (pi / 180)
    return np.exp(1j * phase) if complex else np.cos(phase)


def _chirp_phase(t: Any, f0: Any, t1: Any, f1: Any, method: str, vertex_zero: bool) -> Any:
    if method in ("linear", "lin", "li"):
        return 2 * pi * (f0 * t + 0.5 * ((f1 - f0) / t1) * t * t)
    if method in ("quadratic", "quad", "q"):
        rate = (f1 - f0) / t1**2
        if vertex_zero:
            return 2 * pi * (f0 * t + rate * t**3 / 3)
        return 2 * pi * (f1 * t + rate * ((t1 - t) ** 3 - t1**3) / 3)
    if method in ("logarithmic", "log", "lo"):
        if known(as_array(f0 * f1 <= 0)):
            raise ValueError(
                "For a logarithmic chirp, f0 and f1 must be nonzero with the same sign."
            )
        if known(as_array(f0 == f1)):
            return 2 * pi * f0 * t
        return 2 * pi * (t1 / np.log(f1 / f0)) * f0 * ((f1 / f0) ** (t / t1) - 1)
    if method in ("hyperbolic", "hyp"):
        if known(as_array(f0 == 0)) or known(as_array(f1 == 0)):
            raise ValueError("For a hyperbolic chirp, f0 and f1 must be nonzero.")
        if known(as_array(f0 == f1)):
            return 2 * pi * f0 * t
        singular = -f1 * t1 / (f0 - f1)
        return 2 * pi * (-singular * f0) * np.log(np.abs(1 - t / singular))
    raise ValueError(
        f"method must be 'linear', 'quadratic', 'logarithmic', or 'hyperbolic', but a value of "
        f"{method!r} was given."
    )


@delegates(ss.gausspulse)
def gausspulse(
    t: Any,
    fc: Any = 1000,
    bw: Any = 0.5,
    bwr: Any = -6,
    tpr: Any = -60,
    retquad: bool = False,
    retenv: bool = False,
) -> Any:
    """A sinusoid of frequency fc in the shape of a Gaussian.

    Examples
    --------
    >>> from functrans import grad
    >>> from functrans.scipy.signal import gausspulse
    >>> float(grad(lambda t: gausspulse(t, fc=5.0))(0.0))
    -0.0
    """
    if isinstance(t, str):
        refuse_option("scipy.signal.gausspulse", "Pass times.", t=t)
    time = as_array(t)
    level = 10 ** (bwr / 20)
    rate = -((pi * fc * bw) ** 2) / (4 * np.log(level))
    envelope = np.exp(-rate * time * time)
    wave = envelope * np.cos(2 * pi * fc * time)
    out = [wave]
    if retquad:
        out.append(envelope * np.sin(2 * pi * fc * time))
    if retenv:
        out.append(envelope)
    return wave if len(out) == 1 else tuple(out)


@delegates(ss.sweep_poly)
def sweep_poly(t: Any, poly: Any, phi: Any = 0) -> Any:
    """A cosine whose frequency is a polynomial of time, given by coefficients, highest power first.

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import grad
    >>> from functrans.scipy.signal import sweep_poly
    >>> float(grad(lambda t: sweep_poly(t, np.array([1.0])))(0.25).round(6))  # -2π
    -6.283185
    """
    coefficients = np.asarray(poly.coeffs) if isinstance(poly, np.poly1d) else as_array(poly)
    time, count = as_array(t), shape_of(coefficients)[0]
    turns: Any = 0.0
    for k in range(count):  # the integral of the frequency
        turns = (turns + coefficients[k] / (count - k)) * time
    return np.cos(2 * pi * turns + phi * (pi / 180))
