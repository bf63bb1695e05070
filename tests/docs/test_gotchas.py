"""docs/gotchas.md: its messages are raised by its examples, and no message of the library is missing."""

import ast
import doctest
import itertools
import re
import warnings

import pytest

from functrans import errors
from tests.support import ROOT

PAGE = (ROOT / "docs" / "gotchas.md").read_text(encoding="utf-8")
SOURCE = ROOT / "src" / "functrans"
SECTION = re.compile(r"^(##|###) (.*)$", re.M)
SESSION = re.compile(r"^```pycon\n(.*?)^```$", re.M | re.S)
SESSIONS = itertools.count()
ROW = re.compile(r"^\| (.*?) \| `(.*?)` \| `(.*)` \|$", re.M)
PLACE = re.compile(r"(<doctest gotchas|<string>).*?, line \d+")  # a line of the session

# Messages that no user can cause: internal checks of the library.
INTERNAL = (
    "native code was called with arguments that it was not compiled for.",
    "native code for … was given an array of shape ….",
    "a parameter of type … cannot be stored.",
    "a constant of dtype … cannot be stored.",
    "… define …, which is not a number of Python's.",  # in a graph that is made by hand, or damaged
    "the operation … cannot be written as plain NumPy source: it uses ….",
    # Where llvmlite is absent; tests/compiler/native/test_native_absent.py is about that.
    'jit: the backend "native" needs llvmlite',
)


def sections():
    """Each heading of third rank with the text below it."""
    parts = SECTION.split(PAGE)
    return [
        (title, body)
        for rank, title, body in zip(parts[1::3], parts[2::3], parts[3::3], strict=True)
        if rank == "###"
    ]


def rows():
    """The messages of the table with the calls that raise them, and those that work."""
    return ROW.findall(PAGE)


def pattern(message):
    """A message of the page as a regular expression: … stands for anything."""
    return re.compile(".*?".join(map(re.escape, message.split("…"))), re.S)


class Recorder(doctest.DocTestRunner):
    """Runs sessions and keeps what they raise and print; whether it is right is checked elsewhere."""

    def __init__(self):
        super().__init__(verbose=False)
        self.seen = []

    def report_start(self, out, test, example):
        pass

    def report_success(self, out, test, example, got):
        self.seen.append(got)

    def report_failure(self, out, test, example, got):
        self.seen.append(got)

    def report_unexpected_exception(self, out, test, example, exc_info):
        self.seen.append(str(exc_info[1]))


def run(session, scope):
    recorder = Recorder()
    name = f"gotchas {next(SESSIONS)}"  # doctest finds the source of a line by it
    test = doctest.DocTestParser().get_doctest(session, scope, name, None, 0)
    for example in test.examples:
        example.want, example.exc_msg = "", None  # every exception is unexpected, and recorded
    recorder.run(test, clear_globs=False)
    scope.update(test.globs)
    return recorder.seen


pytestmark = pytest.mark.usefixtures("without_hooks")  # as the page begins


@pytest.fixture(scope="module")
def scope():
    """The names that the sessions of the page leave."""
    names = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for session in SESSION.findall(PAGE):
            run(session, names)
    return names


@pytest.mark.parametrize(("heading", "body"), sections(), ids=lambda text: text[:40])
def test_the_heading_is_what_the_example_raises(heading, body, scope):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seen = [text for session in SESSION.findall(body) for text in run(session, scope)]
    assert any(pattern(heading).search(text) for text in seen), seen


def examples_after_the_error(body):
    """The examples of a section that follow the one that raises."""
    found, raised = [], False
    for session in SESSION.findall(body):
        for example in doctest.DocTestParser().get_examples(session):
            if example.exc_msg is not None:
                found, raised = [], True
            elif raised:
                found.append(example)
    return found


# Here nothing but a package is missing.
NOT_IN_CODE = ("… needs …, which is not installed", "jit runs generated NumPy code")


@pytest.mark.parametrize(("heading", "body"), sections(), ids=lambda text: text[:40])
def test_a_section_shows_what_works_instead(heading, body):
    # That it does, test_documents.py finds out: it runs the page.
    assert examples_after_the_error(body) or heading.startswith(NOT_IN_CODE)


@pytest.mark.parametrize(("message", "code", "instead"), rows(), ids=lambda text: text[:40])
def test_the_message_in_the_table_is_what_its_call_raises(message, code, instead, scope):
    seen = run(f">>> {code}\n", dict(scope))
    assert seen and pattern(message).match(seen[-1]), seen


@pytest.mark.parametrize(("message", "code", "instead"), rows(), ids=lambda text: text[:40])
def test_the_remedy_in_the_table_works(message, code, instead, scope):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        eval(compile(instead, "<string>", "eval"), dict(scope))


# Errors about graphs that somebody has changed by hand, and files, are not about a line.
WITHOUT_A_LINE = (
    *(
        "FUNCTRANS_CACHE_DIR names",
        "… defines a variable",
        "… uses a variable",
        "a constant is declared",
        "… is declared",
    ),
    *("… cannot take", "… has a … where", "a graph ", "the operation … is not part of functrans"),
    "the operation … holds Python functions",
    *(
        "… is not a graph",
        "… needs …, which is not installed",
        "jit runs generated",
        "jit has traced",
    ),
)


@pytest.mark.parametrize(
    ("message", "code"),
    [(message, f">>> {code}\n") for message, code, _ in rows()]
    + [(heading, session) for heading, body in sections() for session in SESSION.findall(body)[:1]],
    ids=lambda text: text[:40],
)
def test_a_message_names_a_line_of_the_user(message, code, scope):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seen = [text for text in run(code, dict(scope)) if pattern(message).search(text)]
    assert message.startswith(WITHOUT_A_LINE) or any(PLACE.search(text) for text in seen), seen


PRIVATE = re.compile(
    r"functrans\.(core|ops|surface|interpreters|compiler|transforms|graph)\b|\b_[a-z]\w+"
)


def test_no_message_names_what_is_private():
    found = [(path, line, text) for path, line, text in messages() if PRIVATE.search(text)]
    assert not found


def test_no_message_shows_a_structure_of_optree(scope):
    calls = [f">>> {code}\n" for _, code, _ in rows()] + SESSION.findall(PAGE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seen = [text for call in calls for text in run(call, dict(scope))]
    assert len(seen) > 200
    assert not [text for text in seen if "PyTreeSpec" in text]


def messages():
    """Every message of an error in the source, with … for what is filled in."""
    names = set(errors.__all__)
    for path in sorted(SOURCE.rglob("*.py")):
        if "torch" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and node.args:
                function = node.func
                name = getattr(function, "attr", getattr(function, "id", None))
                text = written(node.args[0])
                # A message without words is composed of other messages.
                if name in names and re.search("[a-z]{3}", text or ""):
                    yield path.relative_to(SOURCE), node.lineno, text


def written(node):
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(v.value if isinstance(v, ast.Constant) else "…" for v in node.values)
    return None


def test_every_message_of_the_library_is_on_the_page():
    known = [pattern(heading) for heading, _ in sections()]
    known += [pattern(message) for message, _, _ in rows()]
    found = list(messages())
    assert len(found) > 150
    missing = [
        f"{path}:{line}: {text}"
        for path, line, text in found
        if not text.startswith(INTERNAL) and not any(each.match(text) for each in known)
    ]
    assert not missing, "\n".join(missing)


def test_every_class_of_errors_is_on_the_page():
    kinds = [name for name in errors.__all__ if name not in ("FunctransError", "OptionError")]
    missing = [name for name in kinds if name not in PAGE]
    assert not missing, missing
