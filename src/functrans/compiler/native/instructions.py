"""LLVM IR as text, one function at a time.

A function is written from top to bottom; every operation returns the name of its result. LLVM
parses text in a fraction of the time that it takes to build the same code as objects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence


class FunctionWriter:
    """The lines of one function."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.block = "entry"
        self._count = 0
        self.declarations: set[str] = set()  # of intrinsics and external functions
        self.constants: dict[tuple[str, str], str] = {}  # numbers in memory: (type, value) -> name
        self.functions: set[tuple[str, str, int]] = set()  # vector functions: name, letter, width

    def fresh(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def op(self, text: str) -> str:
        """Write an instruction with a result; returns the name of the result."""
        name = self.fresh()
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """Write an instruction without a result."""
        self.lines.append(f"  {text}")

    def label(self) -> str:
        self._count += 1
        return f"b{self._count}"

    def start(self, label: str) -> None:
        """Begin a block."""
        self.lines.append(f"{label}:")
        self.block = label

    def jump(self, label: str) -> None:
        self.do(f"br label %{label}")

    def branch(self, condition: str, yes: str, no: str) -> None:
        self.do(f"br i1 {condition}, label %{yes}, label %{no}")

    def loop(
        self,
        start: str,
        stop: str,
        step: int | str,
        body: Callable[[str, list[str]], Sequence[str]],
        carried: Sequence[tuple[str, str]] = (),
        once: bool = True,
    ) -> list[str]:
        """A loop from `start` to `stop`; with `once`, it is known to run at least once.

        `carried` has the types and initial values of the loop-carried values. body(index, values) writes one
        iteration and returns the next values. Returns the final ones.
        """
        before, head, done = self.block, self.label(), self.label()
        index, following = self.fresh(), self.fresh()
        names = [self.fresh() for _ in carried]
        self.jump(head)
        self.start(head)
        place = len(self.lines)
        if not once:
            inside = self.label()
            self.branch(self.op(f"icmp slt i64 {index}, {stop}"), inside, done)
            self.start(inside)
        values = body(index, names)
        self.do(f"{following} = add i64 {index}, {step}")
        end = self.block
        if once:
            self.branch(self.op(f"icmp slt i64 {following}, {stop}"), head, done)
        else:
            self.jump(head)
        phis = [f"  {index} = phi i64 [ {start}, %{before} ], [ {following}, %{end} ]"]
        for name, (kind, first), value in zip(names, carried, values, strict=True):
            phis.append(f"  {name} = phi {kind} [ {first}, %{before} ], [ {value}, %{end} ]")
        self.lines[place:place] = phis
        self.start(done)
        return list(values) if once else names

    def call(self, result: str, name: str, arguments: list[tuple[str, str]]) -> str:
        """A call of a function, which is declared on first use."""
        types = ", ".join(kind for kind, _ in arguments)
        self.declarations.add(f"declare {result} @{name}({types})")
        text = f"call {result} @{name}({', '.join(f'{kind} {value}' for kind, value in arguments)})"
        if result == "void":
            self.do(text)
            return ""
        return self.op(text)

    def constant(self, kind: str, value: str) -> str:
        """The address of a number in memory."""
        text = "".join(c if c.isalnum() else "_" for c in f"{kind}_{value}")
        return self.constants.setdefault((kind, value), f"@number_{text}")
