"""NumPy's functions that call a function: vectorize, apply_along_axis, piecewise."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from math import prod
from typing import Any

import numpy as np

from functrans.core import errors
from functrans.core.hooks import meant_by
from functrans.core.shapes import dtype_of, shape_of
from functrans.ops import indexing
from functrans.surface.searching import nonzero
from functrans.surface.table import as_array, axis_index, implements, ndim_of
from functrans.transforms.batching import vmap

_ARGUMENT = re.compile(r"\(([^()]*)\)")


class vectorize:
    """Apply a function of numbers to arrays, like `np.vectorize`, but for traced values too.

    The function runs on all entries at once, using `vmap`: its Python branches are taken elementwise, and
    its results have derivatives.

    Parameters
    ----------
    pyfunc : callable
        A function of numbers, or of the arrays that `signature` names.
    otypes : str or list of dtype, optional
        The dtypes of the results; by default, those that the function returns.
    doc : str, optional
        The docstring; that of `pyfunc` by default.
    excluded : iterable of int and str, optional
        Positions and names of arguments that are passed unchanged.
    cache : bool, optional
        Accepted for compatibility, without effect: the function is called once for each path through it.
    signature : str, optional
        Such as ``"(m,n),(n)->(m)"``: the axes of the arguments and results of one call of the function.

    Examples
    --------
    >>> import numpy as np
    >>> import functrans
    >>> import functrans.numpy
    >>> @functrans.numpy.vectorize
    ... def leaky(x):
    ...     return x if x > 0 else 0.1 * x
    >>> functrans.grad(lambda x: np.sum(leaky(x)))(np.array([-1.0, 2.0]))
    array([0.1, 1. ])
    """

    def __init__(
        self,
        pyfunc: Callable[..., Any],
        otypes: Any = None,
        doc: str | None = None,
        excluded: Iterable[int | str] | None = None,
        cache: bool = False,
        signature: str | None = None,
    ) -> None:
        self.pyfunc = pyfunc
        self.otypes = None if otypes is None else [np.dtype(kind) for kind in otypes]
        self.excluded = frozenset(excluded or ())
        self.cache = cache
        self.signature = signature
        self._core = None if signature is None else _parse(signature)
        self.__doc__ = pyfunc.__doc__ if doc is None else doc
        self.__name__ = getattr(pyfunc, "__name__", "vectorize")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function with every combination of entries, broadcast against each other."""
        places: list[int | str] = [k for k in range(len(args)) if k not in self.excluded]
        places += [name for name in kwargs if name not in self.excluded]
        arrays = [as_array(args[k] if isinstance(k, int) else kwargs[k]) for k in places]
        if not arrays:
            return self.pyfunc(*args, **kwargs)

        function = meant_by(self.pyfunc)

        def one(*entries: Any) -> Any:
            positional, named = list(args), dict(kwargs)
            for place, entry in zip(places, entries, strict=True):
                if isinstance(place, int):
                    positional[place] = entry
                else:
                    named[place] = entry
            return function(*positional, **named)

        ranks = [0] * len(arrays) if self._core is None else [len(dims) for dims in self._core]
        if len(ranks) != len(arrays):
            raise TypeError(f"wrong number of positional arguments: expected {len(ranks)}")
        for x, rank in zip(arrays, ranks, strict=True):
            if ndim_of(x) < rank:
                raise ValueError(f"{ndim_of(x)}-dimensional argument for {self.signature!r}")
        split = [
            (shape_of(x)[: ndim_of(x) - rank], shape_of(x)[ndim_of(x) - rank :])
            for x, rank in zip(arrays, ranks, strict=True)
        ]
        if self._core is not None:
            _check_core(self.signature, self._core, [core for _, core in split])
        lead = np.broadcast_shapes(*(own for own, _ in split))
        if not prod(lead):
            raise ValueError("cannot call `vectorize` on size 0 inputs")
        flat = [
            np.broadcast_to(x, lead + core).reshape((prod(lead), *core))
            for x, (_, core) in zip(arrays, split, strict=True)
        ]
        results = vmap(one)(*flat)
        if isinstance(results, tuple):
            return tuple(self._shaped(k, x, lead) for k, x in enumerate(results))
        return self._shaped(0, results, lead)

    def _shaped(self, k: int, result: Any, lead: tuple[int, ...]) -> Any:
        shaped = np.reshape(result, lead + shape_of(result)[1:])
        return shaped if self.otypes is None else shaped.astype(self.otypes[k])


def _parse(signature: str) -> list[tuple[str, ...]]:
    """The names of the axes of each argument."""
    inputs, arrow, _ = signature.replace(" ", "").partition("->")
    arguments = _ARGUMENT.findall(inputs)
    if not arrow or ",".join(f"({dims})" for dims in arguments) != inputs:
        raise ValueError(f"not a valid gufunc signature: {signature}")
    return [tuple(name for name in dims.split(",") if name) for dims in arguments]


def _check_core(signature: Any, names: list[tuple[str, ...]], shapes: list[Any]) -> None:
    lengths: dict[str, int] = {}
    for dims, shape in zip(names, shapes, strict=True):
        for name, n in zip(dims, shape, strict=True):
            if lengths.setdefault(name, n) != n:
                raise ValueError(
                    f"inconsistent size for core dimension {name!r} of {signature!r}: {n} vs "
                    f"{lengths[name]}"
                )


@implements(np.apply_along_axis)
def apply_along_axis(func1d: Any, axis: Any, arr: Any, *args: Any, **kwargs: Any) -> Any:
    x = as_array(arr)
    axis = axis_index(axis, ndim_of(x))
    lined_up = np.moveaxis(x, axis, -1)
    lead = shape_of(lined_up)[:-1]
    if not prod(lead):
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    rows = lined_up.reshape((prod(lead), shape_of(x)[axis]))
    function = meant_by(func1d)
    results = np.stack([as_array(function(row, *args, **kwargs)) for row in rows])
    core = shape_of(results)[1:]
    order = (*range(axis), *range(len(lead), len(lead) + len(core)), *range(axis, len(lead)))
    return np.transpose(results.reshape(lead + core), order)


@implements(np.piecewise)
def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """Each function sees only the entries for which its condition holds."""
    array = as_array(x)
    single = ndim_of(array) == 0
    flat = array.reshape(-1)
    conditions = _conditions(condlist, array)
    functions = [meant_by(function) for function in funclist]
    if len(functions) == len(conditions) + 1:
        covered = np.any(np.stack(conditions), axis=0)
        conditions = [~covered, *conditions]
        functions = [functions[-1], *functions[:-1]]
    elif len(functions) != len(conditions):
        raise ValueError(
            f"with {len(conditions)} condition(s), either {len(conditions)} or "
            f"{len(conditions) + 1} functions are expected"
        )
    result: Any = np.zeros(shape_of(flat), dtype_of(flat))
    for condition, function in zip(conditions, functions, strict=True):
        (places,) = nonzero(condition)
        if not len(places):
            continue
        part = function(flat[places], *args, **kw) if callable(function) else function
        part = np.broadcast_to(as_array(part).astype(dtype_of(flat)), (len(places),))
        put = indexing.scatter(part, places, shape=shape_of(flat), template=(indexing.ARRAY,))
        chosen = np.zeros(shape_of(flat), bool)
        chosen[places] = True
        result = np.where(chosen, put, result)
    return result.reshape(()) if single else result.reshape(shape_of(array))


def _conditions(condlist: Any, x: Any) -> list[Any]:
    """One flat mask for each function. A single mask need not be in a list."""
    if not isinstance(condlist, (list, tuple)):
        table = as_array(condlist)
        condlist = [table] if ndim_of(table) <= ndim_of(x) else list(table)
    elif condlist and ndim_of(as_array(condlist[0])) < ndim_of(x):
        condlist = [condlist]
    masks = []
    for condition in condlist:
        mask = as_array(condition)
        if dtype_of(mask).kind != "b":
            mask = mask != 0
        if shape_of(mask) != shape_of(x):
            raise errors.InputTypeError(
                f"a condition of np.piecewise has shape {shape_of(mask)}, but the array has shape "
                f"{shape_of(x)}, at {errors.user_location()}. Pass one mask for each function."
            )
        masks.append(mask.reshape(-1))
    return masks
