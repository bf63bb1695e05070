"""`Graph.check` is exact: what it lets pass runs, and gives the shapes and dtypes that the graph states."""

import os
import subprocess
import sys

import numpy as np
import pytest

import functrans as ft
from functrans.core.shapes import ArraySpec
from functrans.errors import GraphError
from functrans.graph.graph import Equation, Graph, Variable
from functrans.ops.indexing import ARRAY, scatter, scatter_sum, update
from tests.support import ROOT

FULL = os.environ.get("FUNCTRANS_LOAD") == "full"
PARTS = 1 if FULL else 12  # of all equations, one is done


@pytest.mark.slow
@pytest.mark.parametrize("part", [0] if FULL else [0, 5])
def test_what_the_check_lets_pass_is_right_and_crashes_nothing(part):
    """In a separate process: machine code of an inconsistent graph would crash it."""
    pytest.importorskip("llvmlite")
    pytest.importorskip("scipy")
    done = subprocess.run(
        [sys.executable, "-m", "tools.mutated_graphs", str(part), str(PARTS)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=3600 if FULL else 300,
    )
    assert done.returncode == 0, (done.returncode, done.stdout[-3000:], done.stderr[-500:])
    assert ", 0 wrong" in done.stdout


def _checked(primitive, specs, params, out):
    inputs, output = [Variable(spec) for spec in specs], Variable(out)
    equation = Equation(primitive, tuple(inputs), params, (output,))
    Graph(inputs, {}, [equation], [output]).check()


F = ArraySpec((3,), np.float64)
K = ArraySpec((3,), np.int64)


@pytest.mark.parametrize(
    ("primitive", "specs", "params"),
    [
        (scatter, [F], {"shape": (3,), "template": (slice(0, 2),)}),
        (scatter, [F], {"shape": (3,), "template": ("print()",)}),
        (scatter, [F], {"shape": (3,), "template": (slice("print()", None),)}),
        (scatter, [F, F], {"shape": (3,), "template": (ARRAY,)}),
        (scatter, [F, K, K], {"shape": (3,), "template": (ARRAY,)}),
        (scatter, [F], {"shape": (3,), "template": (ARRAY,)}),
        (scatter, [F, K], {"shape": [3], "template": (ARRAY,)}),
        (scatter_sum, [F, F], {"shape": (3,), "templates": ((slice(None),), (slice(1, None),))}),
        (scatter_sum, [F, F], {"shape": (3,), "templates": ((slice(None),),)}),
        (update, [F, F, F], {"template": (ARRAY,)}),
        (update, [F, F, K], {"template": (ARRAY, ARRAY)}),
        (update, [F, F], {"template": (slice(0, 2),)}),
        (update, [F, F], {"template": (np.zeros(3, int),)}),
        (update, [F, F], {"template": (True,)}),
    ],
)
def test_parts_that_do_not_fit(primitive, specs, params):
    with pytest.raises(GraphError, match="cannot take"):
        _checked(primitive, specs, params, F)


def test_numbers_of_python_are_of_its_kinds():
    for spec in (ArraySpec((), np.float32, True), ArraySpec((2,), np.float64, True)):
        variable = Variable(spec)
        with pytest.raises(GraphError, match="not a number of Python's"):
            Graph([variable], {}, [], [variable]).check()


def test_loops_take_procedures_that_fit_them():
    x = np.ones(4)
    graph = ft.make_graph(lambda x: ft.scan(lambda c, y: (c * y, c + y), x[0], x))(x)
    equation = next(e for e in graph.equations if e.primitive.name == "scan")
    for name, value in (("length", 3), ("counts", (1, 1)), ("counts", (0, 3)), ("body", None)):
        kept = equation.params[name]
        equation.params[name] = value
        with pytest.raises(GraphError, match="scan"):
            graph.check()
        equation.params[name] = kept
    graph.check()
