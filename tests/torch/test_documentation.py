"""Every public name of functrans.torch has a sentence, an example that runs, and a line in the reference."""

import doctest
import inspect

import pytest

import functrans.torch as torch
from functrans.torch import namespace, reference
from tests.support import ROOT

PAGE = ROOT / "docs" / "torch-reference.md"
INHERITED = {"forward", "extra_repr"}  # those of modules say what Module's say


def public_objects():
    """All names with their objects, each object once."""
    found = dict(namespace.functions())
    found |= {f"Tensor.{name}": each for name, each in namespace.members(torch.Tensor).items()}
    for module, _, names in namespace.modules():
        for name, each in names.items():
            found[f"{module}.{name}"] = each
            if inspect.isclass(each) and each is not torch.Tensor:
                for member, method in namespace.members(each).items():
                    if member not in INHERITED or name in ("Module", "Function"):
                        found[f"{module}.{name}.{member}"] = method
    unique = {}
    for name, each in found.items():
        plain = each.fget if isinstance(each, property) else each
        unique.setdefault(id(plain), (name, plain))
    return dict(unique.values())


OBJECTS = public_objects()


def test_there_are_many_names():
    assert len(OBJECTS) > 700


@pytest.mark.filterwarnings("ignore:Anomaly Detection:UserWarning")
@pytest.mark.parametrize("name", sorted(OBJECTS))
def test_the_example(name):
    text = inspect.getdoc(OBJECTS[name]) or ""
    assert text.strip(), f"{name} has no docstring"
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    assert test.examples, f"{name} has no example"
    messages = []
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    doctest.DocTestRunner(optionflags=flags).run(test, out=messages.append)
    assert not messages, "".join(messages)


@pytest.mark.parametrize("name", sorted(OBJECTS))
def test_the_types(name):
    value = OBJECTS[name]
    if inspect.isclass(value):
        return
    signature = inspect.signature(inspect.unwrap(value))
    assert signature.return_annotation is not inspect.Signature.empty, name
    for parameter in signature.parameters.values():
        if parameter.name not in ("self", "cls"):
            assert parameter.annotation is not inspect.Parameter.empty, (name, parameter.name)


def test_the_reference_is_up_to_date():
    wanted = reference.page()
    assert PAGE.read_text(encoding="utf-8") == wanted, (
        "run: python -m functrans.torch.reference > docs/torch-reference.md"
    )
