"""associative_scan: all partial results of an associative operation, in a logarithmic number of steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core import errors, tree
from functrans.core.custody import lending_tree, own
from functrans.core.shapes import dtype_of, shape_of, spec_of
from functrans.transforms.arguments import check_callable
from functrans.transforms.leaves import described, flat


def associative_scan(
    fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0
) -> Any:
    """a, fn(a, b), fn(fn(a, b), c), ... along an axis, for an associative function.

    `fn` is called about 2 log2(n) times on slices of the arrays, so it must work elementwise along
    `axis`, as NumPy's functions do; wrap other functions in `vmap`.

    Parameters
    ----------
    fn : callable
        fn(left, right) -> a pytree like both; fn(fn(a, b), c) must equal fn(a, fn(b, c)).
    elems : pytree of arrays
        All have the same length along `axis`.
    reverse : bool
        Whether to start at the end: the last element comes first, then fn(last, the one before it), ...
    axis : int

    Examples
    --------
    >>> import numpy as np
    >>> from functrans import associative_scan
    >>> associative_scan(np.multiply, np.array([1.0, 2.0, 3.0, 4.0]))
    array([ 1.,  2.,  6., 24.])
    """
    fn = check_callable(fn, "associative_scan")
    leaves, structure = flat(elems, "associative_scan: an element")
    if not leaves:
        raise errors.InputTypeError(
            f"associative_scan needs at least one array, at {errors.user_location()}."
        )
    for leaf in leaves:
        ndim = len(shape_of(leaf))
        if not -ndim <= axis < ndim:
            raise errors.MappedAxisError(
                f"associative_scan: axis {axis} is out of range for an array of shape {shape_of(leaf)}, "
                f"at {errors.user_location()}. The first axis is 0."
            )
    moved = [np.moveaxis(leaf, axis, 0) for leaf in leaves]
    lengths = {shape_of(leaf)[0] for leaf in moved}
    if len(lengths) > 1:
        raise errors.MappedAxisError(
            f"associative_scan: the arrays have different lengths along axis {axis}: "
            f"{', '.join(str(spec_of(leaf)) for leaf in leaves)}, at {errors.user_location()}. Give all of "
            "them the same length."
        )
    if reverse:
        moved = [leaf[::-1] for leaf in moved]

    def combine(left: list[Any], right: list[Any]) -> list[Any]:
        turned = [
            tree.unflatten(structure, [np.moveaxis(leaf, 0, axis) for leaf in side])
            for side in (left, right)
        ]
        out = lending_tree(fn, *turned)
        found, found_structure = tree.flatten(out)
        like = [(shape_of(leaf), dtype_of(leaf)) for leaf in tree.leaves(turned[0])]
        if found_structure != structure or [(shape_of(x), dtype_of(x)) for x in found] != like:
            raise errors.CarryError(
                f"associative_scan: {errors.describe(fn)} must combine two elements into one of the "
                f"same structure, shapes and dtypes, at {errors.user_location()}.\n"
                f"  an element is  {described(turned[0])}\n"
                f"  it returns     {described(out)}"
            )
        return [np.moveaxis(leaf, axis, 0) for leaf in found]

    results = _prefixes(combine, moved)
    if reverse:
        results = [leaf[::-1] for leaf in results]
    results = [np.moveaxis(leaf, 0, axis) for leaf in results]
    return tree.unflatten(structure, own(results))


def _prefixes(combine: Callable[[Any, Any], Any], leaves: list[Any]) -> list[Any]:
    """Prefixes of pairs are the odd prefixes; the even ones add one element each (Ladner, Fischer)."""
    length = shape_of(leaves[0])[0]
    if length < 2:
        return [leaf.copy() for leaf in leaves]
    pairs = combine([x[: length - 1 : 2] for x in leaves], [x[1::2] for x in leaves])
    odd = _prefixes(combine, pairs)
    before = odd if length % 2 else [x[:-1] for x in odd]
    even = [x[:1] for x in leaves]
    if length > 2:
        later = combine(before, [x[2::2] for x in leaves])
        even = [np.concatenate(pair) for pair in zip(even, later, strict=True)]
    return [_interleave(*pair) for pair in zip(even, odd, strict=True)]


def _interleave(even: Any, odd: Any) -> Any:
    """even[0], odd[0], even[1], odd[1], ..."""
    short = shape_of(odd)[0]
    both = np.stack([even[:short], odd], axis=1).reshape((2 * short, *shape_of(odd)[1:]))
    return np.concatenate([both, even[short:]]) if shape_of(even)[0] > short else both
