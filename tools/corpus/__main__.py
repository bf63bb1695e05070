"""Measure how many functions of public packages work under the transforms of functrans."""

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tools.corpus import records, report
from tools.corpus.judge import SECONDS_PER_TRANSFORM, TRANSFORMS, Verdict, judge_all
from tools.corpus.packages import (
    ENVIRONMENT,
    PACKAGES,
    SUPPORT,
    Package,
    default_cache,
    install,
    site_folder,
)
from tools.corpus.records import Record

ROOT = Path(__file__).resolve().parents[2]


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.corpus", description=__doc__)
    add = parser.add_argument
    add("--cache", type=Path, default=default_cache(), help="the folder of the packages")
    add("--only", action="append", metavar="PACKAGE", help="only this package; may be repeated")
    add("--jobs", type=int, default=os.cpu_count() or 1, help="packages at a time")
    add("--jit", action="store_true", help="judge jit(grad), too")
    add("--show", metavar="FAILS", type=int, default=3, help="examples of each kind of failure")
    add("--traces", type=Path, help="write failures with tracebacks to this file")
    add("--results", type=Path, help="write all verdicts to this file, as JSON lines")
    add("--from", dest="stored", type=Path, nargs="+", help="report these results, and run nothing")
    add("--write-docs", action="store_true", help="write docs/corpus.md")
    add("--discover", action="store_true", help="find functions and arguments anew")
    add("--data", type=Path, default=records.DATA, help="the file of functions and arguments")
    add("--worker", choices=["discover", "judge"], help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def select(names: list[str] | None) -> list[Package]:
    """The packages with these names, or all."""
    if not names:
        return list(PACKAGES)
    known = {package.name.lower(): package for package in PACKAGES}
    unknown = [name for name in names if name.lower() not in known]
    if unknown:
        sys.exit(f"unknown: {', '.join(unknown)}. Packages: {', '.join(sorted(known))}")
    return [known[name.lower()] for name in names]


def run_worker(options: argparse.Namespace) -> None:
    """What one process does for one package: it prints a line of JSON per function."""
    (package,) = select(options.only)
    # At the end, so that NumPy and SciPy are those of the environment.
    sys.path.append(str(site_folder(options.cache)))
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # packages may print when they are imported
    if options.worker == "discover":
        from tools.corpus.discovery import discover

        for record in discover(package):
            print(json.dumps(asdict(record)), file=out, flush=True)
        return
    import functrans

    chosen = [record for record in records.load(options.data) if record.package == package.name]
    transforms = (*TRANSFORMS, "jit") if options.jit else TRANSFORMS
    for record, verdicts in judge_all(functrans, chosen, transforms, SECONDS_PER_TRANSFORM):
        line = {"record": asdict(record), "verdicts": [asdict(verdict) for verdict in verdicts]}
        print(json.dumps(line), file=out, flush=True)


def spawn(options: argparse.Namespace, package: Package, kind: str) -> list[Any]:
    """Run a worker for one package and return what it printed."""
    command = [sys.executable, "-m", "tools.corpus", "--worker", kind, "--only", package.name]
    command += ["--cache", str(options.cache.resolve()), "--data", str(options.data.resolve())]
    if options.jit:
        command.append("--jit")
    environment = {**os.environ, **ENVIRONMENT}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode:
        print(f"{package.name}: {done.stderr.strip()[-500:]}", file=sys.stderr)
    print(f"{package.name}: {len(lines)} functions", file=sys.stderr)
    return lines


def run_all(options: argparse.Namespace, packages: list[Package], kind: str) -> list[Any]:
    """Run workers for several packages at a time; the results are in the order of the packages."""
    with ThreadPoolExecutor(options.jobs) as pool:
        found = pool.map(lambda package: spawn(options, package, kind), packages)
        return [line for lines in found for line in lines]


def discover_all(options: argparse.Namespace, packages: list[Package]) -> None:
    """Find the functions of packages, and store them after each package: discovery is slow."""
    stored = records.load(options.data) if options.data.exists() else []
    with ThreadPoolExecutor(options.jobs) as pool:
        works = {pool.submit(spawn, options, package, "discover"): package for package in packages}
        for work in as_completed(works):
            name = works[work].name
            found = [Record(**line) for line in work.result()]
            stored = [record for record in stored if record.package != name] + found
            records.save(stored, options.data)
    print(f"{len(stored)} functions in {len({record.package for record in stored})} packages")


def main(argv: list[str] | None = None) -> int:
    options = parse(argv)
    if options.worker:
        run_worker(options)
        return 0
    packages = select(options.only)
    if options.stored:
        return finish(options, [result for path in options.stored for result in report.load(path)])
    failed = install(options.cache, [*SUPPORT, *(package.pin for package in packages)])
    if failed:
        print(f"could not install: {', '.join(failed)}", file=sys.stderr)
    if options.discover:
        discover_all(options, packages)
        return 0
    results = [
        report.Result(Record(**line["record"]), [Verdict(**item) for item in line["verdicts"]])
        for line in run_all(options, packages, "judge")
    ]
    return finish(options, results)


def finish(options: argparse.Namespace, results: list[report.Result]) -> int:
    """Print and write what the options ask for; the result is the exit status."""
    if options.results:
        with options.results.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(asdict(result)) + "\n" for result in results)
    print(report.text(results, options.show))
    if options.traces:
        options.traces.write_text(report.failures(results), encoding="utf-8")
    if options.write_docs:
        from tools.corpus.page import page

        (ROOT / "docs" / "corpus.md").write_text(page(results), encoding="utf-8")
    # A wrong number is a fault of functrans; an error only says that something is not supported.
    return int(any(verdict.verdict == "WRONG" for result in results for verdict in result.verdicts))


if __name__ == "__main__":
    sys.exit(main())
