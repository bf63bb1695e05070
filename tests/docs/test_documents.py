"""The examples in the documents run and print what they show."""

import doctest
import re
import subprocess
import sys

import pytest

from tests.support import ROOT

DOCS = ROOT / "docs"
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(DOCS.glob("*.md")),
    *sorted(DOCS.glob("how-to/*.md")),
]
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


def examples(text):
    """The text with everything but the sessions blanked out, so that line numbers stay."""
    kept = []
    position = 0
    for match in FENCE.finditer(text):
        kept.append(re.sub(r"[^\n]", "", text[position : match.start(2)]))
        session = match.group(2)
        kept.append(session if match.group(1) == "pycon" else re.sub(r"[^\n]", "", session))
        position = match.end(2)
    return "".join(kept)


RUN = """
import doctest, sys
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
test = doctest.DocTestParser().get_doctest(sys.stdin.read(), {}, sys.argv[1], sys.argv[1], 0)
sys.exit(doctest.DocTestRunner(optionflags=FLAGS).run(test).failed)
"""


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_the_examples_in_the_documents(path):
    # In a separate process: examples may add rules to the tables.
    command = [sys.executable, "-c", RUN, path.name]
    text = examples(path.read_text(encoding="utf-8"))
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, encoding="utf-8", cwd=ROOT
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_readme_has_examples():
    assert examples((ROOT / "README.md").read_text(encoding="utf-8")).count(">>>") > 10


def test_the_readme_is_one_screen():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 120


def anchors(path):
    """The anchors of a document's headings, in which a link may end."""
    text = re.sub(FENCE, "", path.read_text(encoding="utf-8"))
    for title in re.findall(r"^#+ (.*)$", text, re.M):
        yield re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


@pytest.mark.parametrize(
    "path",
    [*DOCUMENTS, ROOT / "notebooks" / "README.md"],
    ids=lambda path: path.name,
)
def test_links_between_documents_lead_somewhere(path):
    text = re.sub(r"`[^`\n]+`(?!\])", "", re.sub(FENCE, "", path.read_text(encoding="utf-8")))
    for link in LINK.findall(text):
        if not link.startswith(("http", "#")):
            name, _, anchor = link.partition("#")
            target = (path.parent / name).resolve()
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


def test_the_stored_pictures_are_those_that_the_code_beside_them_draws():
    pytest.importorskip("matplotlib").use("Agg")
    pytest.importorskip("tqdm")
    text = examples((DOCS / "pictures.md").read_text(encoding="utf-8"))
    session = doctest.DocTestParser().get_doctest(text, {}, "pictures", None, 0)
    doctest.DocTestRunner().run(session, out=lambda text: None, clear_globs=False)
    names = session.globs
    for name, picture in (
        ("loss", names["drawing"]),
        ("layers", names["closed"]),
        ("steps", names["steps"][-1]),
    ):
        stored = (DOCS / "pictures" / f"{name}.svg").read_text(encoding="utf-8")
        assert stored == picture.svg + "\n"
