"""`get_window`, with traced parameters."""

from __future__ import annotations

from typing import Any

from functrans.core import errors
from functrans.scipy.delegation import delegates, is_traced
from functrans.scipy.filters import ss
from functrans.scipy.signal import windows


@delegates(ss.get_window)
def get_window(
    window: Any, Nx: int, fftbins: bool = True, *, xp: Any = None, device: Any = None
) -> Any:
    """A window by its name, or by (name, parameter); a number is the beta of Kaiser's.

    Examples
    --------
    >>> from functrans import grad
    >>> from functrans.scipy.signal import get_window
    >>> float(grad(lambda std: get_window(("gaussian", std), 3, fftbins=False)[0])(1.0).round(6))
    0.606531
    """
    name, *parameters = window if isinstance(window, tuple) else ("kaiser", window)
    sym = not fftbins
    for ending, periodic in (("_periodic", True), ("_symmetric", False)):
        if name.endswith(ending):
            name, sym = name.removesuffix(ending), not periodic
    names = {"gauss": "gaussian", "gss": "gaussian", "ksr": "kaiser", "tuk": "tukey"}
    known = names.get(name, name.replace(" ", "_"))
    if known not in windows.__all__:
        raise errors.MissingRuleError(
            f"scipy.signal.get_window: the window {name!r} has no rule for traced parameters, at "
            f"{errors.user_location()}. Those of {', '.join(windows.__all__)} have one."
        )
    assert is_traced(parameters)
    return getattr(windows, known)(Nx, *parameters, sym=sym)
