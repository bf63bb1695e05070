"""Every public name has types, a docstring with an example, and a place in the reference."""

import doctest
import inspect
import pickle
import re
import subprocess
import sys

import pytest

import functrans
from tests.support import ROOT

pytest.importorskip("scipy")
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS))
import generate  # noqa: E402

sys.path.remove(str(DOCS))
MODULES = generate.public_modules()
NAMES = [(name, each) for name, module in MODULES.items() for each in generate.documented(module)]


def test_there_are_names_to_check():
    assert {"functrans", "functrans.tree", "functrans.errors", "functrans.random"} <= set(MODULES)
    assert {f"functrans.scipy.{name}" for name in functrans.scipy.__all__} <= set(MODULES)
    assert len(NAMES) > 150


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_a_public_name_has_a_docstring_with_an_example(module, name):
    text = inspect.getdoc(getattr(MODULES[module], name)) or ""
    assert text.split("\n")[0].endswith((".", ":")), "the first line is a sentence"
    assert ">>> " in text


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_a_public_function_has_types(module, name):
    member = getattr(MODULES[module], name)
    if inspect.isclass(member) and issubclass(member, BaseException):
        return
    signature = inspect.signature(member)
    missing = [p.name for p in signature.parameters.values() if p.annotation is p.empty]
    assert not missing
    assert inspect.isclass(member) or signature.return_annotation is not signature.empty


@pytest.mark.parametrize("name", MODULES)
def test_a_public_module_says_what_it_is(name):
    assert MODULES[name].__doc__


def test_every_name_of_functrans_is_in_the_tables_of_the_reference():
    text = (DOCS / "reference.md").read_text(encoding="utf-8")
    written = set(re.findall(r"\b\w+\b", text))
    assert not {*functrans.__all__, *functrans.tree.__all__, *functrans.errors.__all__} - written


def test_every_documented_name_gets_an_entry_of_its_own():
    grouped = [name for _, names in generate.groups() for name in names]
    assert sorted(grouped) == sorted(generate.documented(functrans))


def test_names_of_numpy_are_on_the_page_about_numpy():
    text = (DOCS / "numpy-coverage.md").read_text(encoding="utf-8")
    written = set(re.findall(r"`(\w+)`", text))
    ours = set(generate.documented(functrans.numpy))
    newer = {"astype", "cumulative_prod", "cumulative_sum", "unstack"}  # of the array API standard
    private = {name for name in functrans.numpy.__all__ if name.startswith("_")}
    missing = set(functrans.numpy.__all__) - written - ours - newer - private
    assert not {name for name in missing if callable(getattr(functrans.numpy, name))}


def test_docstrings_are_read_as_plain_text_with_code_in_backticks():
    lines = ["Calls f(*args), or `f(**options)`s.", "", ">>> print(2 * 3)", "6 * 1", "", "a * b"]
    generate.read_docstring(None, "function", "f", None, None, lines)
    assert lines[0] == r"Calls f(\*args), or `f(**options)`\ s."
    assert lines[2:] == [">>> print(2 * 3)", "6 * 1", "", r"a \* b"]


def test_links_of_notebooks_lead_to_pages_or_are_left_out():
    text = "[a](../docs/solutions.md#roots) [b](../docs) [c](../src/functrans) [d](https://e.org)"
    expected = "[a](../solutions.md#roots) [b](../index.md) c [d](https://e.org)"
    assert generate.with_pages(text) == expected


def test_links_to_notebooks_lead_to_their_copies():
    source = [
        "[a](../notebooks/01_quickstart.ipynb) [b](../../notebooks/04_vmap.ipynb)\nnowhere*\n"
    ]
    generate.read(None, "graphs", source)
    assert source == ["[a](notebooks/01_quickstart.ipynb) [b](../notebooks/04_vmap.ipynb)\n"]


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_a_public_name_says_where_users_find_it(module, name):
    member = getattr(MODULES[module], name)
    assert member.__module__ in MODULES
    assert getattr(MODULES[member.__module__], member.__name__) is member
    assert pickle.loads(pickle.dumps(member)) is member


@pytest.mark.parametrize("name", functrans.errors.__all__)
def test_an_error_is_known_by_its_public_name_and_goes_between_processes(name):
    kind = getattr(functrans.errors, name)
    assert repr(kind) == f"<class 'functrans.errors.{name}'>"
    again = pickle.loads(pickle.dumps(kind("what happened")))
    assert type(again) is kind and str(again) == "what happened"


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # what an anomaly is
@pytest.mark.parametrize(("module", "name"), NAMES)
def test_the_examples_of_a_public_class_run(module, name):
    member = getattr(MODULES[module], name)
    if not inspect.isclass(member):
        return  # pytest --doctest-modules finds those of functions
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    finder = doctest.DocTestFinder(recurse=False)
    runner = doctest.DocTestRunner(optionflags=flags)
    for test in finder.find(member, name, module=False, globs={"__name__": "__main__"}):
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0


PARTS = ["debugging", "errors", "numpy", "plot", "random", "scipy", "testing", "torch", "tree"]


@pytest.mark.parametrize("name", [*PARTS, "checkpoint_policies"])
def test_a_part_is_reachable_after_import_functrans(name):
    program = f"import functrans; assert functrans.{name}.__name__ == 'functrans.{name}'"
    assert name in dir(functrans)
    subprocess.run([sys.executable, "-c", program], check=True)


def test_import_functrans_imports_no_part_that_may_not_be_used():
    program = "import sys, functrans; print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    loaded = set(result.stdout.split())
    assert "functrans.transforms.derivatives" in loaded
    assert not loaded & {"scipy", "matplotlib", "llvmlite"}
    assert not loaded & {f"functrans.{part}" for part in ("debugging", "plot", "random", "scipy")}
    assert not loaded & {"functrans.testing", "functrans.torch", "functrans.compiler.jit"}
