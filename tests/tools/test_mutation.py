"""A short form of the mutation check: some rules are broken, and the tests of laws notice each."""

import re
import subprocess
import sys

from tests.support import ROOT

LAWS = "test_jvp_and_linearize or test_vjp_is_the or test_vmap_over_every"
FUNCTIONS = "arctan2 or cumprod or concatenate"


def test_the_laws_notice_broken_rules():
    command = [sys.executable, "-m", "tools.mutation", "--files", "tests/laws/test_laws.py"]
    command += ["-k", f"({LAWS}) and ({FUNCTIONS})", "--sample", "40", "--seed", "1"]
    command += ["--examples", "10"]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    found = re.search(r"(\d+) mutations are detected, (\d+) survive", ran.stdout)
    assert found is not None, ran.stdout + ran.stderr
    assert int(found[1]) >= 30, ran.stdout
    assert found[2] == "0", ran.stdout
    assert ran.returncode == 0
