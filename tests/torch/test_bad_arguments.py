"""Every public function, with each argument of a good call replaced by values it was not made for."""

import contextlib
import io
import pickle
import re
import warnings

import numpy as np
import pytest

import functrans.torch as torch
from functrans.errors import FunctransError
from tests.support.torch_calls import FUNCTIONS, find, fresh, record
from tests.support.torch_peer import pytorch


@pytest.fixture(autouse=True)
def in_a_temporary_folder(tmp_path, monkeypatch):
    """A bad argument may be the name of a file."""
    monkeypatch.chdir(tmp_path)


class Silent:
    """An object that answers nothing."""

    __slots__ = ()


BAD = {
    "text": lambda T: "a",
    "None": lambda T: None,
    "a number": lambda T: 1.5,
    "a negative number": lambda T: -100,
    "True": lambda T: True,
    "bytes": lambda T: b"x",
    "a list": lambda T: [1.0, "a"],
    "an empty list": lambda T: [],
    "a dict": lambda T: {"a": 1},
    "an object": lambda T: Silent(),
    "a function": lambda T: len,
    "another shape": lambda T: T.ones(7, 5),
    "integers": lambda T: T.arange(3),
    "no entries": lambda T: T.zeros(0),
}
NO_TENSORS = ("text", "bytes", "a dict", "an object", "a function")
ODD = (bytes, dict, Silent, type(len))

# What a user can understand. These are of no use to anybody.
USELESS = (AttributeError, AssertionError, KeyError, NameError, RecursionError, SystemError)
INTERNAL = re.compile(r"Tracer|<locals>|lambda|functrans\.|object has no attribute")


def is_ours(error):
    """Whether an error was raised on purpose, or by the function of an example."""
    on_purpose = isinstance(error, FunctransError) or getattr(error, "name", "") is None
    last = error.__traceback__
    while last.tb_next is not None:
        last = last.tb_next
    return on_purpose or last.tb_frame.f_code.co_filename.startswith("<doctest")


def outcome(function, args, options):
    """("value", result) or ("error", exception); what is printed is lost."""
    quiet = io.StringIO()
    with (
        contextlib.redirect_stdout(quiet),
        contextlib.redirect_stderr(quiet),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        try:
            return "value", function(*args, **options)
        except Exception as error:
            return "error", error


def spoiled(path, args, options, library=torch):
    """Calls with one bad argument each: its place, what it is, and the arguments."""
    method = path.startswith("Tensor.")
    layer = bool(args) and isinstance(args[0], torch.nn.Module)
    for label, bad in BAD.items():
        for k in range(method or layer, len(args)):
            yield k, label, [*args[:k], bad(library), *args[k + 1 :]], options
        for name in options:
            yield name, label, args, {**options, name: bad(library)}


def call(path, args, options, library=torch, convert=fresh):
    args, options = [convert(a) for a in args], {k: convert(v) for k, v in options.items()}
    if args and isinstance(args[0], torch.nn.Module):
        return outcome(args[0], args[1:], options)
    return outcome(find(library, path), args, options)


def state():
    return (
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.get_default_dtype(),
        torch.is_anomaly_enabled(),
        torch.is_autocast_enabled("cpu"),
    )


@pytest.mark.parametrize("path", FUNCTIONS)
def test_a_bad_argument_is_an_error_that_says_so_and_changes_nothing(path):
    recorded = record(path)
    if recorded is None:
        return
    before, wrong = state(), []
    kind, _ = call(path, *recorded)
    for place, label, args, options in spoiled(path, *recorded):
        answer, value = call(path, args, options)
        where = f"argument {place} is {label}"
        useless = answer == "error" and (
            isinstance(value, USELESS) or INTERNAL.search(str(value)) is not None
        )
        if value is NotImplemented or (useless and not is_ours(value)):
            wrong.append(f"{where}: {value!r}")
        assert state() == before, where
    assert not wrong, "\n".join(wrong)
    assert call(path, *recorded)[0] == kind  # the next good call is as good as before


def theirs(value):
    """An argument for PyTorch; LookupError if it is none that both libraries have."""
    peer = pytorch()
    if isinstance(value, torch.Tensor):
        tensor = peer.tensor(value.detach().numpy())
        return tensor.requires_grad_() if value.requires_grad else tensor
    if isinstance(value, torch.dtype):
        return getattr(peer, str(value).removeprefix("torch."))
    if type(value) in (tuple, list):
        return type(value)(map(theirs, value))
    if value is None or isinstance(value, (bool, int, float, complex, str, peer.Tensor, *ODD)):
        return value
    raise LookupError(f"PyTorch has no {type(value).__name__}")


@pytest.mark.peers
@pytest.mark.parametrize("path", FUNCTIONS)
def test_what_is_no_tensor_is_refused_where_pytorch_refuses_it(path):
    pytorch()
    recorded = record(path)
    if recorded is None:
        return
    wrong = []
    for place, label, args, options in spoiled(path, *recorded):
        good = recorded[0][place] if isinstance(place, int) else recorded[1][place]
        if label not in NO_TENSORS or not isinstance(good, torch.Tensor):
            continue
        try:
            _, refusal = call(path, args, options, pytorch(), theirs)
        except (LookupError, AttributeError):  # PyTorch has no such argument, or no such function
            continue
        if isinstance(refusal, TypeError):
            _, ours = call(path, args, options)
            if not isinstance(ours, TypeError):
                wrong.append(f"argument {place} is {label}: {ours!r} instead of {refusal!r}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (lambda t: torch.sum("a"), "sum(): argument 'input' (position 1) must be Tensor, not str"),
        (
            lambda t: torch.sin(1.0),
            "sin(): argument 'input' (position 1) must be Tensor, not float",
        ),
        (lambda t: t.sum(keepdim="yes"), "sum(): argument 'keepdim' must be bool, not str"),
        (
            lambda t: torch.narrow(t, 0, 0.5, 1),
            "narrow(): argument 'start' (position 3) must be int",
        ),
        (
            lambda t: torch.linalg.qr(1.0),
            "qr(): argument 'A' (position 1) must be Tensor, not float",
        ),
        (lambda t: torch.inverse(np.eye(2)), "not ndarray: convert it with torch.from_numpy(...)"),
        (
            lambda t: torch.matmul(1, t),
            "matmul() received an invalid combination of arguments - got (int, Tensor)",
        ),
        (
            lambda t: torch.maximum(t, None),
            "maximum(): argument 'other' (position 2) must be Tensor",
        ),
        (
            lambda t: torch.nn.Linear(2, 3)("a"),
            "Linear() received an invalid combination of arguments",
        ),
        (lambda t: t.backward("a"), "backward(): argument 'gradient' (position 1) must be Tensor"),
        (lambda t: torch.sum(), "sum() missing 1 required positional argument: 'input'"),
        (lambda t: torch.sum(t, end=1), "sum() got an unexpected keyword argument 'end'"),
        (lambda t: torch.save({}, 1), "expected 'f' to be a string, a path, or a file"),
        (lambda t: torch.tensor(np.ma.masked_array([1.0], [True])), "a masked array cannot become"),
        (
            lambda t: t + np.ma.masked_array([1.0, 2.0], [True, False]),
            "a masked array cannot become",
        ),
    ],
)
def test_the_message_names_the_function_and_the_argument(wrong, text):
    with pytest.raises(TypeError, match=re.escape(text)):
        wrong(torch.ones(2, requires_grad=True))


def test_errors_of_the_users_own_functions_stay_what_they_are():
    def forgetful(x):
        return x.no_such_method()

    class Model(torch.nn.Module):
        def forward(self, x):
            return self.no_such_layer(x)

    x = torch.ones(2)
    for call_it in (
        lambda: torch.func.grad(forgetful)(x),
        lambda: torch.autograd.functional.jacobian(forgetful, x),
        lambda: torch.nn.Sequential(Model())(x),
    ):
        with pytest.raises(AttributeError, match="no_such"):
            call_it()


def test_functions_can_be_pickled():
    for function in (torch.sum, torch.linalg.inv, torch.Tensor.to, torch.nn.functional.linear):
        assert pickle.loads(pickle.dumps(function)) is function


@pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad, torch.inference_mode])
def test_an_interruption_while_a_mode_begins_leaves_it_as_it_was(mode, monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    before = state()
    monkeypatch.setattr("functrans.torch.autograd.modes._silence_running", interrupted)
    with pytest.raises(KeyboardInterrupt), mode():
        pass
    assert state() == before


@pytest.mark.peers
@pytest.mark.parametrize(
    "program",
    [
        "y = x * 2; z = y**2; y.add_(1)",
        "y = x + 1; z = y.sin(); y[0] = 5",
        "y = x.exp(); z = y * 1; y.add_(1)",
        "y = x.clone(); z = y.log(); y.zero_()",
        "y = x * 2; y.add_(1); z = y**2; y.mul_(3)",
        "y = x * 1; part = y[1:]; z = y**3; part.add_(1)",
    ],
)
def test_the_version_error_names_the_operation_that_pytorch_names(program):
    texts = []
    for T in (torch, pytorch()):
        names = {"x": T.ones(3, requires_grad=True)}
        exec(program, names)
        with pytest.raises(RuntimeError) as caught:
            names["z"].sum().backward()
        texts.append(str(caught.value).partition("Hint")[0])
    assert texts[0] == texts[1]
