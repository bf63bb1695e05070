"""Tables of verdicts, and lists of failures."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tools.corpus.judge import Verdict
from tools.corpus.records import Record


@dataclass
class Result:
    """A function and the verdicts on its transforms."""

    record: Record
    verdicts: list[Verdict]


def load(path: Path) -> list[Result]:
    """Results that were written with `--results`."""
    with path.open(encoding="utf-8") as lines:
        stored = [json.loads(line) for line in lines]
    return [
        Result(Record(**each["record"]), [Verdict(**verdict) for verdict in each["verdicts"]])
        for each in stored
    ]


# Where the messages of functrans name a line of the function.
_PLACE = re.compile(r",? (?:at|in) [\w<>.]+\.py, line \d+")

Failure = tuple[Record, Verdict]


def transforms(results: list[Result]) -> list[str]:
    names = [verdict.transform for result in results for verdict in result.verdicts]
    return list(dict.fromkeys(names))


def share(results: Iterable[Result], transform: str) -> float | None:
    """The percentage of functions for which a transform is right; None if none was judged."""
    verdicts = [
        verdict.verdict
        for result in results
        for verdict in result.verdicts
        if verdict.transform == transform and verdict.verdict != "unclear"
    ]
    return 100 * verdicts.count("ok") / len(verdicts) if verdicts else None


def by_package(results: list[Result]) -> dict[str, list[Result]]:
    groups: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        groups[result.record.package].append(result)
    return dict(sorted(groups.items(), key=lambda item: item[0].lower()))


def rows(results: list[Result]) -> list[list[str]]:
    """The table by package, with the totals and the mean over packages in the last two rows."""
    names = transforms(results)
    form = lambda value: "" if value is None else f"{value:.1f}"
    table, columns = [], defaultdict(list)
    for package, group in by_package(results).items():
        shares = [share(group, name) for name in names]
        for name, value in zip(names, shares, strict=True):
            if value is not None:
                columns[name].append(value)
        table.append([package, str(len(group)), *map(form, shares)])
    table.append(["all functions", str(len(results)), *(form(share(results, n)) for n in names)])
    means = [form(sum(columns[n]) / len(columns[n])) if columns[n] else "" for n in names]
    table.append(["mean over packages", str(len(by_package(results))), *means])
    return table


def chosen(results: list[Result], *kinds: str) -> list[Failure]:
    return [
        (result.record, verdict)
        for result in results
        for verdict in result.verdicts
        if verdict.verdict in kinds
    ]


def groups(failures: list[Failure]) -> list[tuple[str, list[Failure]]]:
    """Errors by idiom, the most frequent first."""
    found: dict[str, list[Failure]] = defaultdict(list)
    for record, verdict in failures:
        found[verdict.idiom or "other"].append((record, verdict))
    return sorted(found.items(), key=lambda item: -len(item[1]))


def messages(failures: list[Failure]) -> list[tuple[str, list[Failure]]]:
    """Failures by the text of the message without its place, the most frequent first."""
    found: dict[str, list[Failure]] = defaultdict(list)
    for record, verdict in failures:
        found[_PLACE.split(verdict.detail)[0]].append((record, verdict))
    return sorted(found.items(), key=lambda item: -len(item[1]))


def functions(failures: list[Failure]) -> int:
    return len({record.label for record, _ in failures})


def text(results: list[Result], examples: int) -> str:
    """The report that is printed."""
    names = transforms(results)
    lines = [f"{'package':24}{'n':>6}" + "".join(f"{name:>10}" for name in names)]
    for row in rows(results):
        lines.append(f"{row[0]:24}{row[1]:>6}" + "".join(f"{cell:>10}" for cell in row[2:]))
    for kind in ("WRONG", "WARNED", "nan", "point", "crash", "timeout", "unclear"):
        found = chosen(results, kind)
        lines += ["", f"{kind}: {len(found)}"]
        lines += [f"  {v.transform:8} {r.label}: {v.detail}" for r, v in found]
    errors = chosen(results, "error")
    lines += ["", f"errors: {len(errors)}, of {functions(errors)} functions"]
    for name, group in groups(errors):
        lines += ["", f"{name}: {len(group)}, of {functions(group)} functions"]
        for message, same in messages(group)[: max(examples, 1) * 4]:
            lines.append(f"  {len(same):4} {message[:180]}")
            labels = list(dict.fromkeys(f"{r.label} ({v.transform})" for r, v in same))
            lines += [f"         {label}" for label in labels[:examples]]
    return "\n".join(lines)


def failures(results: list[Result]) -> str:
    """All failures with tracebacks: one for each message, and the names of the others."""
    lines = []
    for record, verdict in chosen(results, "WRONG", "WARNED", "nan", "point", "crash", "timeout"):
        lines.append(f"{verdict.verdict} {verdict.transform} {record.label}: {verdict.detail}")
        lines.append(f"    init={record.init} args={record.args} of={record.of} wrt={record.wrt}")
    for name, group in groups(chosen(results, "error")):
        lines += ["", "=" * 78, f"{name}: {len(group)}, of {functions(group)} functions", "=" * 78]
        for message, same in messages(group):
            record, verdict = same[0]
            lines += ["", f"--- {len(same)} times: {message}"]
            labels = dict.fromkeys(f"{r.label} ({v.transform})" for r, v in same)
            lines += [f"    {label}" for label in labels]
            lines.append(f"  the first: args={record.args} init={record.init}")
            lines.append(verdict.trace)
    return "\n".join(lines)
