"""The rules of primitives return one cotangent for each requested argument, for every set of arguments."""

import numpy as np
import pytest

pytest.importorskip("scipy")

from functrans.core.primitive import HigherOrder
from functrans.core.shapes import dtype_of, shape_of
from tools.mutated_graphs import equations

EQUATIONS = [
    (equation.primitive, values, equation.params)
    for equation, values, _ in equations()
    if not isinstance(equation.primitive, HigherOrder) and not equation.primitive.is_constant
]


def masks_of(values):
    """All sets of arguments with a derivative, as bits; of many arguments, only the small sets."""
    places = [k for k, value in enumerate(values) if dtype_of(value).kind in "fc"][:6]
    return [
        sum(1 << place for k, place in enumerate(places) if chosen >> k & 1)
        for chosen in range(1, 1 << len(places))
    ]


def cotangents_of(primitive, values, params, mask):
    """The cotangents of the arguments in a mask, by position; None if no derivative flows."""
    with np.errstate(all="ignore"):
        out = primitive(*values, **params)
        found = primitive.vjp(mask, out, tuple(values), params)
        if found is None:
            return None
        pull, saved = found
        ones = lambda x: np.ones(shape_of(x), dtype_of(x))[()]
        pulled = pull([ones(x) for x in out] if primitive.outputs else ones(out), saved)
    places = [k for k in range(len(values)) if mask >> k & 1]
    if len(places) == 1:
        assert not isinstance(pulled, (tuple, list))
        return {places[0]: pulled}
    assert len(pulled) == len(places)
    return dict(zip(places, pulled, strict=True))


@pytest.mark.parametrize("number", range(len(EQUATIONS)), ids=lambda k: EQUATIONS[k][0].name)
def test_each_argument_gets_its_own_cotangent(number):
    primitive, values, params = EQUATIONS[number]
    masks = masks_of(values)
    alone = {}
    for mask in (m for m in masks if m.bit_count() == 1):
        alone |= cotangents_of(primitive, values, params, mask) or {}
    for mask in (m for m in masks if m.bit_count() > 1):
        for place, cotangent in (cotangents_of(primitive, values, params, mask) or {}).items():
            expected = alone.get(place)
            assert (cotangent is None) == (expected is None)
            if isinstance(cotangent, (np.ndarray, np.generic, float)):
                np.testing.assert_allclose(cotangent, expected, rtol=1e-10, atol=1e-12)
