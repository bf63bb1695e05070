"""The examples in the guides run as they are printed."""

import doctest
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"


@pytest.mark.parametrize("guide", ["control-flow.md", "custom-derivatives.md"])
def test_the_examples_of_a_guide_run(guide):
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    outcome = doctest.testfile(str(DOCS / guide), module_relative=False, optionflags=options)
    assert outcome.attempted > 5
    assert outcome.failed == 0
