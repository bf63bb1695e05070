"""Which call or assignment a line is at. The bytecode that says so differs between versions of Python."""

import math
import sys

import numpy as np
import pytest

import functrans as ft
from functrans.core.calls import assigned_at, called_at


class Target:
    """Notes what `assigned_at` finds for every change."""

    def __init__(self):
        self.found = []

    def note(self, *args):
        self.found.append(assigned_at(sys._getframe(1)))

    __setitem__ = fill = note

    def __getitem__(self, index):
        return 1.0


class Holder:
    """An object with the target as an attribute."""

    def __init__(self, target):
        self.target = target


def by_index(a, i, j, x, holder):
    a[i] = x
    a[i, j] = x
    a[0] = x


def by_slice(a, i, j, x, holder):
    a[i:j] = x
    a[:] = x


def by_operator(a, i, j, x, holder):
    a[i] += x


def of_an_attribute(a, i, j, x, holder):
    holder.target[i] = x
    holder.target.fill(x)


def by_method(a, i, j, x, holder):
    a.fill(x)


def several(a, i, j, x, holder):
    y = a[i] = x
    a[j] = a[i] = y
    a[i], a[j] = x, y


def after_another_statement(a, i, j, x, holder):
    y = x; a[i] = y  # fmt: skip  # noqa: E702


def of_a_choice(a, i, j, x, holder):
    a[i] = x if i else j


@pytest.mark.parametrize(
    "function",
    [by_index, by_slice, by_operator, of_an_attribute, by_method, several]
    + [after_another_statement, of_a_choice],
)
def test_the_target_of_an_assignment_is_found(function):
    target = Target()
    function(target, 1, 2, 3.0, Holder(target))
    assert target.found and all(found is target for found in target.found)


def asked(*args, **kwargs):
    """The name and the function of the call that the caller is at."""
    return called_at(sys._getframe(1))


class Module:
    """Something with `asked` as an attribute."""

    asked = staticmethod(asked)


def test_the_called_function_is_found():
    x, y, local, module = 1.0, 2.0, asked, Module
    others, keywords = [3.0], {"word": 4.0}
    calls = [
        asked(x),
        asked(x, y),
        asked(x, key=y),
        local(x),
        local(x, key=y),
        (x, local(y))[1],
        (x, local(y, key=x))[1],
        module.asked(x),
        module.asked(x, y, key=x),
        (x, module.asked(y))[1],
        (x, module.asked(y, key=x))[1],
        asked(*others, x),
        asked(*others, **keywords),
        module.asked(x, *others, key=y, **keywords),
    ]
    assert [found for _, found in calls] == [asked] * 14
    assert [name for name, _ in calls] == [*["asked"] * 3, *["local"] * 4, *["asked"] * 7]


def test_functions_of_math_in_local_modules_are_hooked():
    def f(x, m=math):
        return x * m.sin(x)

    assert ft.grad(f)(0.5) == pytest.approx(math.sin(0.5) + 0.5 * math.cos(0.5))
    assert ft.jit(f)(0.5) == pytest.approx(0.5 * math.sin(0.5))


def test_messages_name_functions_by_their_own_names(without_hooks):
    with pytest.raises(ft.errors.ArrayConversionError, match=r"^math\.sin gives .* Write np\.sin"):
        ft.grad(lambda x, f=math.sin: x * f(x))(0.5)
    with pytest.raises(ft.errors.ArrayConversionError, match=r"Write functrans\.numpy\.asarray"):
        ft.grad(lambda x, f=np.asarray: x * f([x, x], dtype=float)[0])(0.5)
