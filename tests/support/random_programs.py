"""Random programs of the fuzzer, for tests: see tools/fuzz/programs."""

import numpy as np
from hypothesis import strategies as st

from tools.fuzz.programs import Seeded, in_place, random_program


@st.composite
def programs_in_place(draw, **options):
    """Programs of views and changes in place. One that fails shrinks to its first statements.

    They have one argument, and return a list of all arrays as they are after every statement.
    """
    length = min(12, draw(st.integers(1, 24)))  # most of them long
    return random_program(Seeded(draw(st.integers(0, 2**32 - 1))), in_place(**options), length)


def lanes_of(program):
    """The argument of a program at all of its points."""
    return np.stack([program.arguments(point)[0] for point in range(len(program.points))])
