"""What `jit` warns of: functions that are traced again and again, and a package that is missing."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from functrans.core import errors

RETRACES = 8  # so many traces of one function are not yet suspicious


class RetraceWarning(UserWarning):
    """A jitted function is traced again and again, because an argument keeps changing its kind.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from functrans import jit
    >>> total = jit(lambda x: np.sum(x), backend="numpy")
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error")
    ...     sums = [total(np.ones(n)) for n in range(20)]
    Traceback (most recent call last):
        ...
    functrans.compiler.warning.RetraceWarning: jit has traced `<lambda>` (...) 9 times: the ...
    """


class PerformanceHint(UserWarning):
    """`jit` could be faster with another package installed.

    Examples
    --------
    >>> import warnings
    >>> import functrans
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", functrans.errors.PerformanceHint)
    ...     float(functrans.jit(lambda x: x * x)(3.0))
    9.0
    """


def warn_of_retracing(function: Callable[..., Any], traces: list[dict[str, str]]) -> None:
    """Name the argument that keeps changing; `traces` has what each was, for every trace."""
    seen: dict[str, list[str]] = {}
    for kinds in traces:
        for name, kind in kinds.items():
            if kind not in seen.setdefault(name, []):
                seen[name].append(kind)
    changing = max(seen, key=lambda name: len(seen[name]), default="")
    if changing and len(seen[changing]) > 2:
        reason = f"the argument {changing} came as {', '.join(seen[changing][:4])}, ..."
    else:
        reason = "its arguments came in containers of different structure."
    warnings.warn(
        f"jit has traced {errors.describe(function)} {len(traces)} times: {reason} Each new shape, "
        "dtype or static value is traced and compiled anew. Pad arrays to a few shapes, or pass "
        "numbers as arrays instead of static arguments.",
        RetraceWarning,
        stacklevel=errors.user_depth(),
    )
