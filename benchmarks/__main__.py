"""All benchmarks with one command.

    python -m benchmarks --peers all --out results/              # everything, about twenty minutes
    python -m benchmarks --quick --out results/                  # a minute or two, which judges nothing
    python -m benchmarks --only gmm,lstm --out results/          # some parts
    python -m benchmarks --from results/results.json --write-docs   # docs/benchmarks.md from a run

The results are written as results.json, results.md and charts (these need matplotlib, the extra `plot`).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks import charts, machine, page, suite
from benchmarks.contestants import parse_peers


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--peers", type=parse_peers, default="all", help="all, none, or a,b,c")
    parser.add_argument("--out", type=Path, default=Path("results"), metavar="FOLDER")
    parser.add_argument("--quick", action="store_true", help="small sizes and few samples")
    parser.add_argument("--only", help="comma-separated parts; gradbench: all problems")
    parser.add_argument(
        "--progress", action="store_true", help="show a progress bar, if tqdm is installed"
    )
    parser.add_argument("--threads", type=int, default=1, help="threads per library (default 1)")
    parser.add_argument("--limit", type=float, help="time limit per process, in seconds")
    parser.add_argument(
        "--from", dest="source", type=Path, help="read this results.json instead of running"
    )
    parser.add_argument("--write-docs", action="store_true", help="also write docs/benchmarks.md")
    return parser.parse_args()


def reporter(bar: bool) -> Callable[[list[str]], Iterator[str]]:
    """How to iterate over the parts and show progress: with a bar, or a line for each."""
    if bar:
        try:
            from tqdm import tqdm
        except ImportError:
            print("tqdm is not installed: progress is printed line by line", file=sys.stderr)
        else:

            def with_bar(names: list[str]) -> Iterator[str]:
                steps = tqdm(names, unit="part")
                for name in steps:
                    steps.set_postfix_str(name)
                    yield name

            return with_bar

    def with_lines(names: list[str]) -> Iterator[str]:
        start = time.monotonic()
        for k, name in enumerate(names, 1):
            clock = time.monotonic() - start
            print(f"[{clock:5.0f} s] {k} of {len(names)}: {name}", file=sys.stderr, flush=True)
            yield name

    return with_lines


def measure(options: argparse.Namespace, names: list[str]) -> dict[str, Any]:
    """Run these parts, and save the results after each, in case the run is interrupted."""
    limit = options.limit or (180.0 if options.quick else 300.0)
    settings = suite.Settings(tuple(options.peers), options.quick, options.threads, limit)
    head = {"machine": machine.describe(options.threads), "quick": options.quick}
    results: dict[str, Any] = {}
    for found in suite.run(names, settings, reporter(options.progress)):
        results = {**head, **found}
        save(results, options.out)
    return results


def save(results: dict[str, Any], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(results, indent=1) + "\n"
    (folder / "results.json").write_text(text, encoding="utf-8")


def write(results: dict[str, Any], text: Path, pictures: Path) -> None:
    """The page, and the charts that it shows."""
    drawn = charts.draw(results, pictures)
    links = {name: path.relative_to(text.parent).as_posix() for name, path in drawn.items()}
    text.write_text(page.write(results, links), encoding="utf-8")


def main() -> int:
    options = parse()
    if not charts.is_available():
        print(charts.ABSENT, file=sys.stderr)
    if options.source:
        results = json.loads(options.source.read_text(encoding="utf-8"))
        save(results, options.out)
    else:
        try:
            names = suite.parts(options.only.split(",") if options.only else None)
        except ValueError as error:
            print(f"python -m benchmarks: {error}", file=sys.stderr)
            return 2
        results = measure(options, names)
    write(results, options.out / "results.md", options.out / "charts")
    if options.write_docs:
        docs = suite.ROOT / "docs"
        write(results, docs / "benchmarks.md", docs / "benchmarks")
    failures = suite.failures(results)
    for failure in failures:
        print(f"ERROR  {failure}", file=sys.stderr)
    print(f"written: results.json, results.md and charts in {options.out}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
