"""The examples of HIPS autograd: with `numpy` for `autograd.numpy`, functrans computes the same gradients."""

import subprocess

import pytest

pytest.importorskip("autograd")
pytest.importorskip("matplotlib")

from tools.autograd_examples import compare, download, names

pytestmark = pytest.mark.peers


@pytest.fixture(scope="module")
def examples(tmp_path_factory):
    try:
        return download(tmp_path_factory.mktemp("autograd"))
    except (subprocess.SubprocessError, OSError) as error:
        pytest.skip(f"the source of autograd cannot be downloaded: {error}")


def test_the_examples_agree(examples):
    assert len(names(examples)) > 20
    outcomes = [compare(examples, name) for name in names(examples)]
    for outcome in outcomes:
        assert not outcome.error, outcome
        assert outcome.compared > 0, outcome
        # It integrates with rtol=0.01, and the two derivatives are of different approximations.
        tolerance = 0.02 if outcome.name == "ode_net" else 1e-10
        assert outcome.difference < tolerance, outcome
