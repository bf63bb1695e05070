"""The examples in the documents run and print what they show."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
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


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_the_examples_in_the_documents(path):
    text = examples(path.read_text())
    test = doctest.DocTestParser().get_doctest(text, {}, path.name, str(path), 0)
    failures = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=failures.append)
    assert not failures, "".join(failures)


def test_the_readme_has_examples():
    assert examples((ROOT / "README.md").read_text()).count(">>>") > 20
