"""The functions of the corpus: where they are, and which arguments they are called with."""

import importlib
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tools.corpus.values import decode, is_float_leaf, leaves

DATA = Path(__file__).with_name("functions.jsonl")


@dataclass(frozen=True)
class Record:
    """A function with arguments.

    `kind` is `function`, `method` or `property`. For the last two, `name` is `Class.attribute`, and
    `init` has the arguments of the class. The derivative is with respect to the arguments at
    the positions `wrt` of `of`, which is `args` or `init`.
    """

    package: str
    module: str
    name: str
    kind: str = "function"
    init: list[Any] = field(default_factory=list)
    args: list[Any] = field(default_factory=list)
    of: str = "args"
    wrt: list[int] = field(default_factory=list)

    @property
    def label(self) -> str:
        return f"{self.module}.{self.name}"


def load(path: Path = DATA) -> list[Record]:
    with path.open(encoding="utf-8") as lines:
        return [Record(**json.loads(line)) for line in lines if line.strip()]


def save(records: Iterable[Record], path: Path = DATA) -> None:
    ordered = sorted(records, key=lambda record: (record.package.lower(), record.label))
    with path.open("w", encoding="utf-8") as file:
        for record in ordered:
            kept = {name: value for name, value in asdict(record).items() if value != []}
            file.write(json.dumps(kept) + "\n")


def resolve(module: str, name: str) -> Any:
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def bind(record: Record) -> tuple[Callable[..., Any], list[Any]]:
    """The function of the differentiated arguments alone, and their values.

    An object whose constructor is not differentiated is built once, here: that is how such objects
    are used. The other arguments are made anew in each call, since the function may change them.
    """
    given = decode(getattr(record, record.of))
    point = [given[position] for position in record.wrt]

    def arguments(which: str, values: tuple[Any, ...]) -> list[Any]:
        made: list[Any] = decode(getattr(record, which))
        if which == record.of:
            for position, value in zip(record.wrt, values, strict=True):
                made[position] = value
        return made

    if record.kind == "function":
        function = resolve(record.module, record.name)

        def call(*values: Any) -> Any:
            return function(*arguments("args", values))

        return call, point

    owner, _, attribute = record.name.rpartition(".")
    cls = resolve(record.module, owner)
    shared = cls(*decode(record.init)) if record.of == "args" else None

    def call_method(*values: Any) -> Any:
        instance = shared if record.of == "args" else cls(*arguments("init", values))
        found = getattr(instance, attribute)
        return found if record.kind == "property" else found(*arguments("args", values))

    return call_method, point


def float_leaves(call: Callable[..., Any], point: list[Any]) -> Callable[..., list[Any]]:
    """The function with its floating-point results as a flat list.

    Which results are floats is decided by a plain call, since the type of a traced result is
    not known to this tool.
    """
    chosen = [position for position, leaf in enumerate(leaves(call(*point))) if is_float_leaf(leaf)]

    def flat(*values: Any) -> list[Any]:
        found = leaves(call(*values))
        return [found[position] for position in chosen]

    return flat
