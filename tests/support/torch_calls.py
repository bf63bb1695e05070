"""Good calls of the public functions of functrans.torch, recorded while their examples run."""

import contextlib
import doctest
import inspect
import warnings

import functrans.torch as torch
from functrans.torch import namespace

# They change the state of the library, wait for a program, or are about files and pictures.
LEFT_OUT = ("cuda.", "viz.", "errors.", "set_", "use_deterministic", "autograd.set_", "random.")
LEFT_OUT += ("autograd.forward_ad.enter_dual", "autograd.forward_ad.exit_dual")


def public_functions():
    """Functions, methods and classes by their paths."""
    found = dict(namespace.functions())
    for name, each in namespace.members(torch.Tensor).items():
        found[f"Tensor.{name}"] = each
    for module, _, names in namespace.modules():
        found |= {f"{module}.{name}": each for name, each in names.items()}
    return {
        path: each
        for path, each in sorted(found.items())
        if callable(each) and not path.startswith(LEFT_OUT) and each is not torch.Tensor
    }


FUNCTIONS = public_functions()


def find(library, path):
    """The object at a path such as "nn.functional.relu"."""
    for name in path.split("."):
        library = getattr(library, name)
    return library


def fresh(value):
    """The same argument for another call."""
    if isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if type(value) in (tuple, list):
        return type(value)(map(fresh, value))
    return value


@contextlib.contextmanager
def _replaced(owner, name, value):
    own = vars(owner).get(name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if own is None:
            delattr(owner, name)
        else:
            setattr(owner, name, own)


def record(path):
    """The first call of a function in its example: (args, options); None if there is none.

    A class that is a module is recorded as the call of the module, with the module as first argument.
    """
    function = FUNCTIONS[path]
    calls = []
    layer = inspect.isclass(function) and issubclass(function, torch.nn.Module)
    member = "__call__" if layer else "__init__"
    original = getattr(function, member) if inspect.isclass(function) else function

    def recorder(*args, **options):
        first = args[0] if args else None
        if not inspect.isclass(function) or type(first) is function:
            given = args if layer or not inspect.isclass(function) else args[1:]
            calls.append((fresh(list(given)), {k: fresh(v) for k, v in options.items()}))
        return original(*args, **options)

    with contextlib.ExitStack() as stack:
        if inspect.isclass(function):
            stack.enter_context(_replaced(function, member, recorder))
        else:
            owner, _, name = path.rpartition(".")
            owner = find(torch, owner) if owner else torch
            stack.enter_context(_replaced(owner, name, recorder))
            for alias, method in vars(torch.Tensor).copy().items():
                if method is function:  # the example may call it as a method, or by another name
                    stack.enter_context(_replaced(torch.Tensor, alias, recorder))
            for alias, value in vars(torch).copy().items():
                if value is function:
                    stack.enter_context(_replaced(torch, alias, recorder))
        warnings.simplefilter("ignore")
        text = inspect.getdoc(function) or ""
        test = doctest.DocTestParser().get_doctest(text, {}, path, None, None)
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        doctest.DocTestRunner(optionflags=flags).run(test, out=lambda text: None)
    return calls[0] if calls else None
