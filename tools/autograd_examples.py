"""The examples of HIPS autograd, run with functrans and with autograd itself.

    python -m tools.autograd_examples            # downloads the source of the installed version of autograd
    python -m tools.autograd_examples FOLDER     # that has been downloaded before

An example is run twice: as it is, and with other imports, which are all that is changed. `autograd.numpy`
becomes `numpy`, `autograd.scipy` becomes `scipy`, and `grad` and others come from functrans. The first
gradients that it computes must agree. The examples are not part of this repository.
"""

from __future__ import annotations

import importlib.abc
import importlib.metadata
import importlib.util
import re
import subprocess
import sys
import tarfile
import tempfile
import types
import warnings
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

import functrans as ft
from functrans.core.dispatch import Tracer

CALLS = 4  # gradients of each example that are compared

# Examples of autograd's own extensions and internals, which code for functrans does not have.
OTHER = {
    "convnet": "scipy.signal.convolve of autograd has other arguments than SciPy's",
    "define_gradient": "defines a gradient with autograd.extend",
    "dot_graph": "reads autograd's nodes",
    "fixed_points": "autograd.misc.fixed_points is defined with autograd.extend",
    "print_trace": "reads autograd's nodes",
    "rkhs": "defines a vector space with autograd.extend",
    "data": "no program",
    "data_mnist": "no program",
}
_IMPORTS = [
    (r"import autograd\.scipy\.stats\.(\w+) as (\w+)", r"from scipy.stats import \1 as \2"),
    (r"\bautograd\.(numpy|scipy)\b", r"\1"),
    (r"from autograd\.builtins import", "from builtins import"),
    (r"from autograd\.misc import flatten\b", "from ported.flatten import flatten"),
    (r"from autograd\.misc\.flatten import", "from ported.flatten import"),
    (r"from autograd\.misc\.optimizers import", "from ported.optimizers import"),
    (r"from autograd\.wrap_util import wraps", "from functools import wraps as _wraps"),
    (r"from autograd\.test_util import", "from ported import"),
    (r"from autograd import", "from ported import"),
]


def port(source: str) -> str:
    """The source of an example with functrans instead of autograd."""
    for pattern, replacement in _IMPORTS:
        source = re.sub(pattern, replacement, source)
    return source


# --- what autograd has under other names ----------------------------------------------------------


def _grad(f: Any, argnum: Any = 0) -> Any:
    return ft.grad(_number(f), argnum)


def _value_and_grad(f: Any, argnum: Any = 0) -> Any:
    return ft.value_and_grad(_number(f), argnum)


def _number(f: Any) -> Any:
    """autograd takes an array of one number as a number."""
    number = lambda *args, **kwargs: np.reshape(f(*args, **kwargs), ())
    # Hooks are planned for code, and examples do not share theirs.
    code = number.__code__.replace(co_name=getattr(f, "__name__", "f"))
    return types.FunctionType(code, globals(), code.co_name, None, number.__closure__)


def _elementwise_grad(f: Any, argnum: int = 0) -> Any:
    return ft.grad(lambda *args: np.sum(f(*args)), argnum)


def _hessian_vector_product(f: Any, argnum: int = 0) -> Any:
    gradient = _grad(f, argnum)

    def product(*args: Any) -> Any:
        *args_of_f, vector = args
        along = lambda *args: np.sum(gradient(*args) * vector)
        return ft.grad(along, argnum)(*args_of_f)

    return product


def _make_vjp(f: Any, argnum: int = 0) -> Any:
    def pulled(*args: Any) -> Any:
        of_one = lambda x: f(*args[:argnum], x, *args[argnum + 1 :])
        value, pullback = ft.vjp(of_one, args[argnum])
        return (lambda cotangent: pullback(cotangent)[0]), value

    return pulled


def _flatten(tree: Any) -> Any:
    """A vector of everything in a tree, and the function that turns such a vector into a tree."""
    leaves, structure = ft.tree.flatten(tree)
    shapes = [np.shape(leaf) for leaf in leaves]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])

    def unflatten(vector: Any) -> Any:
        parts = np.split(vector, ends[:-1])
        return ft.tree.unflatten(
            structure, [np.reshape(p, s) for p, s in zip(parts, shapes, strict=True)]
        )

    return np.concatenate([np.ravel(leaf) for leaf in leaves]), unflatten


def _flatten_func(f: Any, example: Any) -> Any:
    vector, unflatten = _flatten(example)
    return (
        lambda x, *args: _flatten(f(unflatten(x), *args))[0],
        unflatten,
        vector,
    )


_TRANSFORMS = {
    "grad": _grad,
    "value_and_grad": _value_and_grad,
    "jacobian": ft.jacrev,
    "hessian": ft.hessian,
    "elementwise_grad": _elementwise_grad,
    "hessian_vector_product": _hessian_vector_product,
    "make_vjp": _make_vjp,
}


# --- running --------------------------------------------------------------------------------------


class Enough(Exception):
    """Ends an example after its first gradients."""


class _Sources(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports examples by their names, ported or as they are, and a data set in place of a download."""

    def __init__(self, folder: Path, ported: bool) -> None:
        self.folder, self.ported = folder, ported

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        known = name == "data_mnist" or (self.folder / f"{name}.py").exists()
        return importlib.util.spec_from_loader(name, self) if known else None

    def create_module(self, spec: Any) -> Any:
        return None

    def exec_module(self, module: Any) -> None:
        if module.__name__ == "data_mnist":
            return
        source = (self.folder / f"{module.__name__}.py").read_text()
        source = source.replace("import data_mnist", "")
        exec(
            compile(port(source) if self.ported else source, f"<{module.__name__}>", "exec"),
            vars(module),
        )
        if module.__name__ == "data":
            module.load_mnist = _images


def _images() -> tuple[Any, ...]:
    """Something in the form of the data set of handwritten digits."""
    rng = np.random.RandomState(0)
    images = rng.rand(300, 784)
    labels = np.eye(10)[rng.randint(10, size=300)]
    return 300, images, labels, images[:50], labels[:50]


def _logging(transform: Any, log: list[Any]) -> Any:
    """A transform whose functions log their results, unless they are called by others of them."""
    from autograd.tracer import isbox

    def transformed(f: Any, *options: Any, **named: Any) -> Any:
        function = transform(f, *options, **named)

        def call(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            leaves = ft.tree.leaves(result)
            if not any(isinstance(leaf, Tracer) or isbox(leaf) for leaf in leaves):
                log.append([np.array(leaf) for leaf in leaves])
            if len(log) >= CALLS:
                raise Enough
            return result

        return call

    return transformed


@contextmanager
def _modules(folder: Path, log: list[Any], ported: bool) -> Any:
    """What the imports of an example find."""
    before = dict(sys.modules)
    path = list(sys.meta_path)
    sys.meta_path.insert(0, _Sources(folder, ported))
    replaced = []
    if ported:
        shim = types.ModuleType("ported")
        vars(shim).update({name: _logging(t, log) for name, t in _TRANSFORMS.items()})
        shim.check_grads = lambda *args, **kwargs: lambda *args: None
        flatten = types.ModuleType("ported.flatten")
        vars(flatten).update(flatten=_flatten, flatten_func=_flatten_func)
        sys.modules |= {"ported": shim, "ported.flatten": flatten}
        sys.modules["ported.optimizers"] = _optimizers()
    else:
        import autograd
        import autograd.misc.optimizers  # they keep what they import
        import autograd.scipy.integrate

        for name in _TRANSFORMS:
            replaced.append((name, getattr(autograd, name)))
            setattr(autograd, name, _logging(getattr(autograd, name), log))
    try:
        yield
    finally:
        sys.meta_path[:] = path
        for name, original in replaced:
            setattr(autograd, name, original)
        for name in set(sys.modules) - set(before):
            if (
                name.startswith("ported")
                or (folder / f"{name}.py").exists()
                or name == "data_mnist"
            ):
                del sys.modules[name]


def _optimizers() -> types.ModuleType:
    """autograd's optimizers, ported as well."""
    import autograd.misc.optimizers as original

    module = types.ModuleType("ported.optimizers")
    source = Path(original.__file__).read_text()
    source = source.replace(
        "from autograd.wrap_util import wraps", "wraps = lambda *_, **__: lambda f: f"
    )
    exec(compile(port(source), "<optimizers>", "exec"), vars(module))
    return module


def gradients(folder: Path, name: str, ported: bool) -> list[Any]:
    """The first gradients that an example computes."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    log: list[Any] = []
    source = (folder / f"{name}.py").read_text()
    np.random.seed(0)
    scope = {"__name__": "__main__", "__file__": str(folder / f"{name}.py")}
    with (
        _modules(folder, log, ported),
        tempfile.TemporaryDirectory() as temporary,
        chdir(temporary),  # some save pictures
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
        redirect_stdout(StringIO()),
        redirect_stderr(StringIO()),
    ):
        warnings.simplefilter("ignore")
        try:
            exec(compile(port(source) if ported else source, f"<{name}>", "exec"), scope)
        except Enough:
            pass
        finally:
            plt.close("all")
    return log


@dataclass(frozen=True)
class Outcome:
    """How an example fared."""

    name: str
    compared: int = 0
    difference: float = 0.0  # the largest, relative to the size of the gradient
    error: str = ""


def compare(folder: Path, name: str) -> Outcome:
    """Run an example both ways."""
    expected = gradients(folder, name, ported=False)
    try:
        found = gradients(folder, name, ported=True)
    except Exception as error:
        return Outcome(name, error=f"{type(error).__name__}: {error}")
    if len(found) != len(expected):
        return Outcome(name, error=f"{len(found)} gradients instead of {len(expected)}")
    worst = 0.0
    for ours, theirs in zip(found, expected, strict=True):
        flat = [np.concatenate([np.ravel(leaf) for leaf in leaves]) for leaves in (ours, theirs)]
        if flat[0].shape != flat[1].shape:
            return Outcome(name, error=f"shapes {flat[0].shape} and {flat[1].shape}")
        scale = np.max(np.abs(flat[1])) or 1.0
        worst = max(worst, float(np.max(np.abs(flat[0] - flat[1])) / scale))
    return Outcome(name, len(found), worst)


def download(folder: Path) -> Path:
    """The examples of the installed version of autograd, from its source distribution."""
    version = importlib.metadata.version("autograd")
    command = [sys.executable, "-m", "pip", "download", f"autograd=={version}"]
    command += ["--no-binary", ":all:", "--no-deps", "--quiet", "--dest", str(folder)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    (archive,) = folder.glob("autograd-*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return folder / f"autograd-{version}" / "examples"


def names(folder: Path) -> list[str]:
    found = sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")
    return [name for name in found if name not in OTHER]


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else download(Path(temporary))
        for name in names(folder):
            outcome = compare(folder, name)
            told = outcome.error or f"{outcome.compared} gradients, {outcome.difference:.0e} apart"
            print(f"{name}: {told}", flush=True)


if __name__ == "__main__":
    main()
