"""Warnings of `jit`: functions that are traced again and again, and resources it cannot use."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from functrans.core import errors

RETRACES = 8  # up to this many traces of one function are not suspicious


class RetraceWarning(UserWarning):
    """A jitted function is traced again and again, because an argument keeps changing.

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
    functrans.errors.RetraceWarning: jit has traced `<lambda>` (...) 9 times: the ...
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


class CacheWarning(UserWarning):
    """The folder that FUNCTRANS_CACHE_DIR names is not used, because others could put code there.

    Examples
    --------
    >>> import os, tempfile, warnings
    >>> import functrans
    >>> folder = tempfile.mkdtemp()
    >>> os.chmod(folder, 0o777)
    >>> os.environ["FUNCTRANS_CACHE_DIR"] = folder
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", functrans.errors.CacheWarning)
    ...     functrans.jit(lambda x: x * 2.0)(3.0)
    Traceback (most recent call last):
        ...
    functrans.errors.CacheWarning: FUNCTRANS_CACHE_DIR names ..., but no machine code is ...
    >>> del os.environ["FUNCTRANS_CACHE_DIR"]
    """


def warn_of_retracing(function: Callable[..., Any], traces: list[dict[str, str]]) -> None:
    """Name the argument that keeps changing; `traces` describes each argument for every trace."""
    seen: dict[str, list[str]] = {}
    for kinds in traces:
        for name, kind in kinds.items():
            if kind not in seen.setdefault(name, []):
                seen[name].append(kind)
    changing = max(seen, key=lambda name: len(seen[name]), default="")
    if changing and len(seen[changing]) > 2:
        reason = f"{changing} came as {', '.join(seen[changing][:4])}, ..."
    else:
        reason = (
            "its arguments came in containers of different structure, metadata or order of keys."
        )
    warnings.warn(
        f"jit has traced {errors.describe(function)} {len(traces)} times: {reason} Each new shape, "
        "dtype or static value is traced and compiled again. Pad arrays to a few shapes, and pass "
        "changing numbers as traced arguments.",
        RetraceWarning,
        stacklevel=errors.user_depth(),
    )
