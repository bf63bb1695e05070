"""Adding rows at indices is np.add.at, whichever way is chosen for the shape."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from functrans.ops.scatter_add import sum_rows


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.complex128, np.int64])
@given(data=st.data())
def test_adding_rows_is_add_at(dtype, data):
    lead = data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=2).map(tuple))
    tail = data.draw(st.sampled_from([(), (1,), (3,), (2, 4)]))
    count = data.draw(st.sampled_from([(), (0,), (1,), (3,), (7,), (60,), (5, 12)]))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    arrays = tuple(np.asarray(rng.integers(-n, n, count)) for n in lead)
    value = rng.integers(-9, 9, (*count, *tail)).astype(dtype)
    expected = np.zeros((*lead, *tail), dtype)
    np.add.at(expected, arrays, value)
    found = sum_rows(expected.shape, dtype, arrays, value)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, expected)  # small integers: sums are exact


@pytest.mark.parametrize("tail", [(), (3,)])
@pytest.mark.parametrize("lead", [(4,), (4, 5)])
def test_an_index_out_of_range_is_refused(lead, tail):
    arrays = tuple(np.array([0, 1, 2, 3, n]) for n in lead)
    with pytest.raises((IndexError, ValueError)):
        sum_rows((*lead, *tail), float, arrays, np.ones((5, *tail)))
