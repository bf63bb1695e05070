"""Shrinking of failures: fewer layers, statements and results, as long as the failure is of the same sort."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tools.fuzz.cases import Failure, restacked
from tools.fuzz.judging import RATES, DisagreementError, Judge
from tools.fuzz.nests import leaves
from tools.fuzz.programs.choosing import Simplest
from tools.fuzz.programs.program import Program, Statement
from tools.fuzz.programs.writer import RejectedError, Writer

Kinds = tuple[str, ...]


def shrunk(failure: Failure, library: Any, tries: int = 400) -> Failure:
    """The smallest failure of the same sort found in a number of tries."""
    best, left = failure, tries
    improved = True
    while improved and left > 0:
        improved = False
        for program, kinds in _smaller(best.program, best.kinds):
            left -= 1
            found = _failure(program, kinds, failure.error, library)
            if found is not None:
                best, improved = found, True
                break
            if left <= 0:
                break
    return best


def signature(error: DisagreementError) -> str:
    """The sort of a failure: another answer, or an exception of some type."""
    return type(error.__cause__).__name__ if error.__cause__ is not None else "another answer"


def _failure(
    program: Program, kinds: Kinds, like: DisagreementError, library: Any
) -> Failure | None:
    rates = {name: 100.0 for name in RATES if name not in ("jax", "torch") or name == like.oracle}
    rates = {name: rates.get(name, 0.0) for name in RATES}
    try:
        with np.errstate(all="ignore"):
            Writer.of(program)
            stack = restacked(program, kinds, Simplest(), library)
            judge = Judge(stack, Simplest(), rates)
            judge.thorough = True
            judge.judge()
    except DisagreementError as error:
        if signature(error) == signature(like):
            return Failure(program, tuple(stack.layers), error)
    except Exception:  # a layer below fails, or the program is not a valid one
        return None
    return None


def _smaller(program: Program, kinds: Kinds) -> Iterator[tuple[Program, Kinds]]:
    for k in range(len(kinds)):
        if len(kinds) > 1:
            yield program, kinds[:k] + kinds[k + 1 :]
    for name in leaves(program.results):
        if program.results != name:
            yield replace(program, results=name), kinds
    for k in reversed(range(len(program.statements))):
        for statements, results in _without(program, k):
            yield replace(program, statements=statements, results=results), kinds


def _without(program: Program, k: int) -> Iterator[tuple[tuple[Statement, ...], Any]]:
    """The statements without one of them, if its results are not needed, or others can replace them."""
    before, gone, after = program.statements[:k], program.statements[k], program.statements[k + 1 :]
    needed = set(leaves(program.results)).union(*(s.reads for s in after)) & set(gone.defines)
    if not needed:
        yield before + after, program.results
        return
    if len(needed) > 1:
        return
    (name,) = needed
    try:
        known = Writer.of(replace(program, statements=program.statements[: k + 1]))
    except RejectedError:
        return
    shape, dtype = known.shape(name), np.asarray(known.value(name)).dtype
    for other in known.names:
        same = known.shape(other) == shape and np.asarray(known.value(other)).dtype == dtype
        if same and other not in gone.defines:
            renamed = tuple(_renamed(statement, name, other) for statement in after)
            yield before + renamed, _substituted(program.results, name, other)


def _renamed(statement: Statement, name: str, other: str) -> Statement:
    def change(text: str) -> str:
        return re.sub(rf"\b{name}\b", other, text)

    return replace(
        statement,
        text=change(statement.text),
        checked=change(statement.checked),
        guard=change(statement.guard),
        reads=frozenset(other if read == name else read for read in statement.reads),
    )


def _substituted(results: Any, name: str, other: str) -> Any:
    if isinstance(results, dict):
        return {key: _substituted(value, name, other) for key, value in results.items()}
    if isinstance(results, (tuple, list)):
        return type(results)([_substituted(value, name, other) for value in results])
    return other if results == name else results
