"""The table of docs/numpy-coverage.md: what every public name of NumPy does on traced values.

    python -m tools.numpy_coverage

runs every call of the files coverage_calls*.py under every transform and writes the page. Classes are
found, not declared; only names that are not array operations are listed by hand.
"""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from tests.support import coverage_calls as calls
from tests.support import coverage_calls_arrays as array_calls
from tests.support import coverage_calls_more as more_calls
from tests.support import coverage_calls_submodules as submodule_calls
from tests.support.coverage_runner import (
    CONSTANT,
    DIFFERENTIABLE,
    IN_PLACE,
    Finding,
    Mistake,
    NotInThisNumPyError,
    examine,
)

PAGE = Path(__file__).parent.parent / "docs" / "numpy-coverage.md"

# --- the names ------------------------------------------------------------------------------------

# Names that are not array operations, and why. A name of which NumPy makes float arrays from float arrays has
# no place here: `hidden` calls them.
NOT_ARRAY_OPERATIONS = {
    "numpy": {
        "printing": "array2string array_repr array_str base_repr binary_repr format_float_positional "
        "format_float_scientific get_printoptions info printoptions set_printoptions typename",
        "files": "fromfile fromregex genfromtxt load loadtxt memmap save savetxt savez savez_compressed",
        "settings": "errstate getbufsize geterr geterrcall get_include setbufsize seterr seterrcall "
        "show_config show_runtime test",
        "dates": "busday_count busday_offset busdaycalendar datetime64 datetime_as_string "
        "datetime_data is_busday isnat timedelta64",
        "types": "bytes_ character complexfloating dtype finfo flexible floating generic iinfo "
        "inexact integer isdtype issubdtype mintypecode number object_ promote_types record "
        "signedinteger str_ unsignedinteger void",
        "classes": "flatiter ndarray recarray ufunc",
        "built from a shape or a length": "bartlett blackman broadcast_shapes diag_indices hamming "
        "hanning indices tril_indices triu_indices",
    },
    "numpy.linalg": {"an exception": "LinAlgError", "settings": "test"},
    "numpy.fft": {"settings": "test"},
    "operators": {
        "Python and NumPy protocols": "__array_finalize__ __array_function__ __array_interface__ "
        "__array_priority__ __array_struct__ __array_ufunc__ __array_wrap__ __buffer__ __class__ "
        "__class_getitem__ __delattr__ __delitem__ __dir__ __doc__ __getattribute__ __getstate__ "
        "__hash__ __init__ __init_subclass__ __new__ __reduce__ __reduce_ex__ __setattr__ "
        "__setstate__ __sizeof__ __subclasshook__",
        "printing": "__format__ __repr__ __str__",
    },
}
_NOT_PROBED = ("files", "settings")  # these would write files and change how NumPy runs

# NumPy gives no hook on these, so that what they do with a traced value is not ours to say.
WITHOUT_HOOK = {
    "np.frombuffer(x)": "TypeError from NumPy",
    "[a * 1 for a in np.nditer(x)]": "TypeError from NumPy",
    "[a * 1 for i in np.nested_iters(x, [[0], [1]]) for a in i]": "TypeError from NumPy",
}


@dataclass(frozen=True)
class Section:
    """One table of the page: its title, the names NumPy has, and the calls of each."""

    title: str
    names: tuple[str, ...]
    calls: dict[str, list[str]]
    not_operations: dict[str, str]  # the names that are none, and why


def _calls(*texts, prefix="np."):
    """Calls by the name that they are an example of."""
    found: dict[str, list[str]] = {}
    for line in "\n".join(texts).split("\n"):
        if line.strip():
            name, bar, call = line.partition(" | ")
            if not bar or not re.fullmatch(r"[\w,`= ]+", name):
                call = line
                name = re.search(re.escape(prefix) + r"(\w+)", line)[1]
            found.setdefault(name, []).append(call)
    return found


def _public(module):
    """The public callables of a module, and the objects that make arrays by indexing."""
    makers = ("c_", "r_", "mgrid", "ogrid", "s_", "index_exp")
    return tuple(
        name
        for name in dir(module)
        if not name.startswith("_") and (callable(getattr(module, name)) or name in makers)
    )


def _section(title, names, found):
    by_category = NOT_ARRAY_OPERATIONS.get(title, {})
    nots = {name: why for why, listed in by_category.items() for name in listed.split()}
    present = {name: found[name] for name in found if names is None or name in names}
    return Section(title, tuple(present) if names is None else names, present, nots)


@cache
def sections() -> tuple[Section, ...]:
    of_numpy = [calls.UFUNCS, calls.CREATION, calls.SHAPING, calls.REDUCTIONS, calls.CALCULUS]
    of_numpy += [calls.PRODUCTS, calls.SELECTING, calls.TESTS, calls.IN_PLACE, calls.FUNCTIONAL]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        of_module = _public(np)
    dunders = tuple(name for name in dir(np.ndarray) if name.startswith("__"))
    attributes = tuple(name for name in dir(np.ndarray) if not name.startswith("_"))
    tricks = ("as_strided", "sliding_window_view")
    return (
        _section("numpy", of_module, _calls(*of_numpy, more_calls.FUNCTIONS, array_calls.TYPES)),
        _section(
            "numpy.linalg",
            _public(np.linalg),
            _calls(submodule_calls.LINALG, prefix="np.linalg."),
        ),
        _section("numpy.fft", _public(np.fft), _calls(submodule_calls.FFT, prefix="np.fft.")),
        _section(
            "numpy.emath",
            _public(np.emath),
            _calls(submodule_calls.EMATH, prefix="np.emath."),
        ),
        _section(
            "numpy.lib.stride_tricks",
            tricks,
            _calls(submodule_calls.STRIDE_TRICKS, prefix="np.lib.stride_tricks."),
        ),
        _section(
            "methods and attributes of arrays",
            attributes,
            _calls(array_calls.METHODS, more_calls.METHODS),
        ),
        _section("operators", dunders, _calls(array_calls.OPERATORS, more_calls.OPERATORS)),
        _section("methods of ufuncs", None, _calls(array_calls.UFUNC_METHODS)),
        _section("options", None, _calls(array_calls.OPTIONS)),
    )


def missing() -> list[str]:
    """The names that have neither a call nor a reason to have none."""
    return [
        f"{section.title}: {name}"
        for section in sections()
        for name in section.names
        if name not in section.calls and name not in section.not_operations
    ]


def hidden() -> list[str]:
    """The names that are listed as no array operations, but make float arrays from float arrays."""
    x = np.array([[1.5, 2.5], [0.5, 3.5]])
    found = []
    for why, names in NOT_ARRAY_OPERATIONS["numpy"].items():
        for name in names.split():
            for args in ((x,), (x, x), (x[0],), (x[0], x[0])):
                with (
                    contextlib.suppress(Exception),
                    contextlib.redirect_stdout(io.StringIO()),
                    np.printoptions(),
                    warnings.catch_warnings(),
                ):
                    warnings.simplefilter("ignore")
                    if why in _NOT_PROBED:
                        break
                    result = getattr(np, name)(*args)
                    if isinstance(result, np.ndarray) and result.dtype.kind in "fc":
                        found.append(name)
    return found


# --- the rows -------------------------------------------------------------------------------------

NOT_AN_OPERATION = "not an array operation"
ERROR = "error"
ZERO = "derivative 0"
IN_PART = ", in part"
WITHOUT_DERIVATIVE = "no derivative"

CLASSES = {
    DIFFERENTIABLE: "differentiable in both modes to second order; can be batched and staged",
    ZERO: "the same; the derivative is 0 wherever it exists",
    CONSTANT: "returns integers, booleans or non-numbers; can be batched and staged",
    IN_PLACE: "assigns to an argument; can be differentiated, batched and staged",
    DIFFERENTIABLE + IN_PART: "differentiable, but the listed transforms raise an error",
    CONSTANT + IN_PART: "constant, but the listed transforms raise an error",
    IN_PLACE + IN_PART: "in place, but the listed transforms raise an error",
    WITHOUT_DERIVATIVE: "raises an explanatory error or warning when differentiated",
    ERROR: "raises an explanatory error under every transform",
    NOT_AN_OPERATION: "printing, files, settings, types, and arrays built from a length alone",
}


@dataclass(frozen=True)
class Row:
    """One line of a table."""

    name: str
    kind: str
    errors: str
    source: str

    def __str__(self) -> str:
        return f"| `{self.name}` | {self.kind} | {self.errors} | {self.source} |"


def _code(source):
    return "`" + source.replace("|", "\\|") + "`"


def row(section: Section, name: str, lenient: bool = False) -> Row:
    """Run the calls of a name; if lenient, those that this NumPy takes."""
    if name in section.not_operations:
        return Row(name, NOT_AN_OPERATION, "", section.not_operations[name])
    if name not in section.calls:
        raise Mistake(f"{section.title}: {name} has no call in the tables of calls")
    sources = section.calls[name]
    findings = []
    for source in sources:
        with contextlib.suppress(*[NotInThisNumPyError] * lenient):
            findings.append(_finding(source))
    complaints = [_complaint(finding) for finding in findings]
    if len(set(complaints)) == 1:
        errors = complaints[0]
    else:
        told = zip(findings, complaints, strict=True)
        errors = "; ".join(f"{_code(f.source)}: {told}" for f, told in told if told)
    return Row(name.replace("`", ""), _kind(findings), errors, ", ".join(map(_code, sources)))


@cache
def _finding(source: str) -> Finding:
    if source not in WITHOUT_HOOK:
        return examine(source)
    with contextlib.suppress(Mistake):
        examine(source)
        raise AssertionError(f"{source} works now: it has no place in WITHOUT_HOOK")
    return Finding(source, CONSTANT, {"everything": WITHOUT_HOOK[source]}, everywhere=True)


def _complaint(finding):
    """Which errors a call has, and under which transforms."""
    by_error: dict[str, list[str]] = {}
    for transform, error in finding.errors.items():
        by_error.setdefault(error, []).append(transform)
    if finding.everywhere and len(by_error) == 1:
        return next(iter(by_error))
    return ", ".join(f"{error} in {', '.join(where)}" for error, where in by_error.items())


def _kind(findings):
    """The class of a name: what its calls do that have no error, or else what is left of one."""
    whole = [finding for finding in findings if not finding.errors]
    parts = [finding for finding in findings if finding.errors and not finding.everywhere]
    if not whole and not parts:
        return ERROR
    if not whole and all("grad" in finding.errors for finding in parts):
        return WITHOUT_DERIVATIVE
    kinds = [finding.kind for finding in whole or parts if "grad" not in finding.errors]
    best = next(kind for kind in (DIFFERENTIABLE, IN_PLACE, CONSTANT) if kind in kinds)
    if not whole:
        return best + IN_PART
    if best == DIFFERENTIABLE and all(f.zero for f in whole if f.kind == DIFFERENTIABLE):
        return ZERO
    return best


# --- the page -------------------------------------------------------------------------------------


def page() -> str:
    """The whole page, from running everything."""
    absent = missing() + [f"{name} is hidden" for name in hidden()]
    if absent:
        raise Mistake("names without a call: " + ", ".join(absent))
    tables = {s.title: [row(s, name) for name in s.names] for s in sections()}
    lines = [
        "# NumPy coverage",
        "",
        "This page shows how every public NumPy callable, and every method, attribute and operator of",
        "arrays, behaves on traced values.",
        f"It was generated with NumPy {np.__version__} by running each call; see [the end](#counts).",
        "",
        "A name gets its class from those of its calls that raise no error. The last column lists the calls.",
        "In it, `x`, `y` and `o` are real matrices; `p` and `q` are positive; the entries of `u` are below",
        "1 and those of `g` above 1; `v` and `w` are vectors, and `s` is an increasing vector; `t` is a",
        "scalar; `c` has three axes; `A` and `B` are square; `z` and `Z` are complex; `n`, `m` and `k` hold",
        "integers; `b` holds booleans. All of them are traced, except that integers and booleans are plain",
        "arrays under differentiation.",
        "",
        "| class | meaning |",
        "| --- | --- |",
        *[f"| {kind} | {meaning} |" for kind, meaning in CLASSES.items()],
        "",
    ]
    for title, rows in tables.items():
        head = f"`{title}`" if title.startswith("numpy") else title.capitalize()
        lines += [
            f"## {head}",
            "",
            "| name | class | errors | calls |",
            "| --- | --- | --- | --- |",
        ]
        lines += [*map(str, rows), ""]
    lines += ["## Error messages", "", *_reasons(), ""]
    lines += ["## Counts", "", *_counts(tables), "", _summary(tables), ""]
    lines += [
        "`python -m tools.numpy_coverage` generates this page. It runs each call on traced values under",
        "`grad`, `jvp`, `vmap` and `make_graph`, under second derivatives, and under `vmap` inside and",
        "outside `grad`. It compares values with plain NumPy, derivatives with finite differences, and",
        "`vmap` with a loop. `tests/surface/test_numpy_coverage.py` fails if the page differs from a new",
        "run.",
    ]
    return "\n".join(lines) + "\n"


def _summary(tables):
    """The counts in one sentence, which the README has too."""
    count = Counter(row.kind for rows in tables.values() for row in rows)
    derivatives = count[DIFFERENTIABLE] + count[ZERO]
    return (
        f"Of {count.total()} names, {derivatives} can be differentiated to second order, batched and "
        f"staged, and {count[DIFFERENTIABLE + IN_PART]} more in part; {count[IN_PLACE]} work in "
        f"place, {count[CONSTANT]} return constants, and {count[NOT_AN_OPERATION]} are not array "
        "operations."
    )


def _counts(tables):
    used = [
        kind for kind in CLASSES if any(r.kind == kind for rows in tables.values() for r in rows)
    ]
    lines = ["| where | " + " | ".join(used) + " | all |", "| --- " * (len(used) + 2) + "|"]
    total: Counter = Counter()
    for title, rows in tables.items():
        count = Counter(r.kind for r in rows)
        total += count
        cells = [str(count[kind] or "") for kind in used]
        lines.append(f"| {title} | {' | '.join(cells)} | {len(rows)} |")
    lines.append(f"| all | {' | '.join(str(total[kind]) for kind in used)} | {total.total()} |")
    return lines


def _reasons():
    """The shortest message of each kind of error, up to where it happened."""
    said: dict[str, str] = {}
    for section in sections():
        for sources in section.calls.values():
            for finding in map(_finding, sources):
                for error, message in finding.reasons.items():
                    beginning = re.split(r", at [<\w]+[.>]|\. ", message)[0]
                    if len(beginning) < len(said.get(error, beginning + " ")):
                        said[error] = beginning
    return [f"- {error}: {said[error]}." for error in sorted(said)]


def committed() -> tuple[str, dict[str, dict[str, str]]]:
    """The version of NumPy that the page was made with, and its rows by section and name."""
    text = PAGE.read_text()
    tables: dict[str, dict[str, str]] = {}
    for part in text.split("\n## ")[1:]:
        title = part.split("\n", 1)[0].strip("`")
        rows = re.findall(r"^(\| `(.+?)` \| .*\|)$", part, re.MULTILINE)
        tables[title.lower()] = {name: line for line, name in rows}
    return re.search(r"NumPy (\d[^ ]*) by", text)[1], tables


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"wrote {PAGE}")
