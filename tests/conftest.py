"""Settings shared by the whole test suite: how hypothesis draws, what is collected, where tests may write."""

import gc
import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

# Tests run on all cores already: more threads for products of matrices would only wait for each other.
# NumPy reads this when it is first imported, which no module above does.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

settings.register_profile(
    "functrans",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=3,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("functrans")

# Modules that import what may be absent, by their marker: without it, they are not even imported.
_OPTIONAL = {"peers": "_against_torch.py", "notebooks": "test_notebooks.py"}


def pytest_ignore_collect(collection_path, config):
    for marker, ending in _OPTIONAL.items():
        if f"not {marker}" in config.option.markexpr and collection_path.name.endswith(ending):
            return True
    return None


def pytest_collection_finish():
    """The tests themselves are no garbage: collections need not look at them again and again."""
    gc.collect()
    gc.freeze()


ROOT = Path(__file__).resolve().parents[1]
_CACHES = ("__pycache__", ".pytest_cache", ".hypothesis", ".mypy_cache", ".ruff_cache")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_written: list[str] = []


def _watch(event, args):
    """Note every file of the repository that this process opens to write."""
    if event != "open" or not isinstance(args[0], (str, bytes)) or not args[2] & _WRITES:
        return
    path = os.path.abspath(os.fsdecode(args[0]))
    inside = path.startswith(f"{ROOT}{os.sep}") and not any(part in path for part in _CACHES)
    if inside:
        _written.append(path)


sys.addaudithook(_watch)


@pytest.fixture(autouse=True)
def only_temporary_files_are_written():
    """A file that a test leaves in the repository is committed sooner or later."""
    _written.clear()
    yield
    # A path may be relative to another folder than the current one: only what is there counts.
    left = [path for path in _written if os.path.lexists(path)]
    assert not left, f"the test wrote {left}: use tmp_path, or change to it"


@pytest.fixture
def without_hooks():
    """The messages about what only works with hooks: see functrans.core.hooks."""
    import functrans

    with functrans.use_hooks(False):
        yield
