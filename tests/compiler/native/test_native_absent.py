"""Without llvmlite: one hint on first use, the same results, and an error for who insists."""

import os
import subprocess
import sys

BLOCKED = """
import sys, warnings

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "llvmlite":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
import numpy as np
import functrans as ft
"""
# find_spec itself says None for a package that is not there.
HIDDEN = """
import importlib.util, warnings
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: (
    None if name.partition(".")[0] == "llvmlite" else found(name, package)
)
import numpy as np
import functrans as ft
"""

BODY = """
from functrans.errors import OptionError

def loss(x):
    return np.sum(np.tanh(x) ** 2)

x = np.linspace(0, 1, 5)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    slope = ft.jit(ft.grad(loss))
    assert not caught  # not before it is used
    for _ in range(3):
        np.testing.assert_allclose(slope(x), ft.grad(loss)(x), rtol=1e-13)
    ft.jit(np.sin)(x), ft.jit(np.cos)(x)
    assert slope.trace(x).code.startswith("def compiled(")
assert [w.category.__name__ for w in caught] == ["PerformanceHint"], caught
assert 'pip install "functrans[jit]"' in str(caught[0].message)
with warnings.catch_warnings():
    warnings.simplefilter("error")
    np.testing.assert_allclose(ft.jit(loss, backend="numpy")(x), loss(x), rtol=1e-13)
try:
    ft.jit(loss, backend="native")
except OptionError as error:
    assert 'the backend "native" needs llvmlite' in str(error), error
    assert 'pip install "functrans[jit]"' in str(error), error
else:
    raise AssertionError
assert "llvmlite" not in sys.modules
print("fine")
"""


def run(source, **variables):
    done = subprocess.run(
        [sys.executable, "-c", source],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr


def test_a_hint_and_the_same_results_without_llvmlite():
    run("import sys\n" + HIDDEN + BODY)


def test_a_finder_that_refuses_llvmlite():
    run(BLOCKED + BODY)


def test_the_hint_is_not_given_where_native_code_runs():
    run(
        "import warnings\nwarnings.simplefilter('error')\nimport numpy as np, functrans as ft\n"
        "assert ft.jit(np.sin)(0.0) == 0.0\nprint('fine')"
    )


def test_importing_functrans_does_not_import_llvmlite():
    run("import sys, functrans\nassert 'llvmlite' not in sys.modules\nprint('fine')")
