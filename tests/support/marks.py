"""Marks: which part of a long test runs by default, and which with `-m slow`; warnings that are expected."""

import pytest


def one_in(every, values):
    """Parameters of which one in `every` runs by default, and the others with `-m slow`."""
    return [
        pytest.param(
            *(value if isinstance(value, tuple) else (value,)),
            marks=[pytest.mark.slow] if k % every else [],
        )
        for k, value in enumerate(values)
    ]


def thin(step):
    """Every `step`-th of some things, by default, and all of them with `-m slow`."""
    return pytest.mark.parametrize("step", [step, pytest.param(1, marks=pytest.mark.slow)])


# Derivatives of constants, and of what float() cuts off, are zeros, with a warning.
of_constants = pytest.mark.filterwarnings("ignore::functrans.errors.DerivativeWarning")
