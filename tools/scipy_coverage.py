"""The table of docs/scipy-coverage.md: what the public names of SciPy do on traced values.

    python -m tools.scipy_coverage

runs every call of the files scipy_calls*.py under every transform and writes the page. Classes are found, not
declared; only names that are not functions of arrays are listed by hand.
"""

from __future__ import annotations

import importlib
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import scipy

from tests.support import scipy_calls as calls
from tests.support import scipy_calls_signals as signal_calls
from tests.support import scipy_calls_special as special_calls
from tests.support import scipy_calls_stats as stats_calls
from tests.support.coverage_runner import Mistake
from tests.support.scipy_runner import Finding, examine

PAGE = Path(__file__).parent.parent / "docs" / "scipy-coverage.md"

# --- the names ------------------------------------------------------------------------------------

# Names without numbers to differentiate, and why.
NOT_FUNCTIONS_OF_ARRAYS = {
    "scipy.linalg": {
        "built from a length": "dft hadamard helmert hilbert invhilbert invpascal pascal",
        "an exception": "LinAlgError LinAlgWarning",
        "gives routines": "find_best_blas_type get_blas_funcs get_lapack_funcs",
    },
    "scipy.integrate": {
        "a base class": "DenseOutput OdeSolver",
        "built from a length": "lebedev_rule",
        "a warning": "IntegrationWarning ODEintWarning",
    },
    "scipy.optimize": {
        "an approximation that solvers use": "BFGS BroydenFirst HessianUpdateStrategy InverseJacobian "
        "KrylovJacobian LbfgsInvHessProduct SR1",
        "an exception": "NoConvergence OptimizeWarning",
        "a result": "OptimizeResult RootResults",
        "a check, which gives a plain number": "check_grad",
        "printing": "linprog_verbose_callback show_options",
    },
    "scipy.interpolate": {
        "a base class": "BivariateSpline",
        "removed from SciPy": "interp2d",
        "on a sphere, with options of their own": "LSQSphereBivariateSpline SmoothSphereBivariateSpline",
    },
    "scipy.fft": {
        "settings": "get_workers register_backend set_backend set_global_backend set_workers skip_backend",
        "gives a length": "next_fast_len prev_fast_len",
    },
    "scipy.signal": {
        "an exception": "BadCoefficients",
        "built from a length": "besselap buttap correlation_lags firwin_2d max_len_seq unit_impulse",
        "a base class": "dlti lti",
    },
    "scipy.stats": {
        "an exception": "ConstantInputWarning DegenerateDataWarning FitError NearConstantInputWarning",
        "options of tests": "BootstrapMethod CensoredData MonteCarloMethod PermutationMethod",
        "draws numbers": "ortho_group random_correlation special_ortho_group uniform_direction "
        "unitary_group",
        "makes distributions": "power rv_continuous rv_discrete",
        "plots": "boxcox_normplot yeojohnson_normplot",
        "runs a function many times, on its own samples": "fit sobol_indices",
    },
    "scipy.ndimage": {
        "built from a length": "generate_binary_structure iterate_structure",
    },
    "scipy.spatial.distance": {},
    "scipy.spatial.transform": {},
    "scipy.special": {
        "settings": "errstate geterr seterr",
        "an exception": "SpecialFunctionError SpecialFunctionWarning",
        "built from a length": "ai_zeros bei_zeros beip_zeros ber_zeros bernoulli berp_zeros bi_zeros "
        "erf_zeros euler fresnel_zeros fresnelc_zeros fresnels_zeros jn_zeros jnjnp_zeros jnp_zeros "
        "jnyn_zeros kei_zeros keip_zeros kelvin_zeros ker_zeros kerp_zeros y0_zeros y1_zeros y1p_zeros "
        "yn_zeros ynp_zeros roots_legendre roots_chebyt roots_chebyu roots_chebyc roots_chebys "
        "roots_laguerre roots_hermite roots_hermitenorm roots_sh_legendre roots_sh_chebyt "
        "roots_sh_chebyu p_roots t_roots u_roots c_roots s_roots l_roots h_roots he_roots ps_roots "
        "ts_roots us_roots",
        "another name of roots_...": "cg_roots j_roots js_roots la_roots",
    },
}
# The prefix of calls of each module.
_PREFIXES = {
    "scipy.spatial.distance": "distance.",
    "scipy.spatial.transform": "transform.",
}
_TEXTS = {
    "scipy.linalg": [calls.LINALG],
    "scipy.integrate": [calls.INTEGRATE],
    "scipy.optimize": [calls.OPTIMIZE],
    "scipy.interpolate": [calls.INTERPOLATE],
    "scipy.fft": [signal_calls.FFT],
    "scipy.signal": [signal_calls.SIGNAL],
    "scipy.stats": [
        stats_calls.CONTINUOUS,
        stats_calls.DISCRETE,
        stats_calls.MULTIVARIATE,
        stats_calls.STATISTICS,
    ],
    "scipy.ndimage": [signal_calls.NDIMAGE],
    "scipy.spatial.distance": [signal_calls.DISTANCE],
    "scipy.spatial.transform": [signal_calls.TRANSFORM],
    "scipy.special": [special_calls.UFUNCS, special_calls.FUNCTIONS],
}


@dataclass(frozen=True)
class Example:
    """A call, and by how much its tolerances are multiplied."""

    source: str
    tolerance: float


@dataclass(frozen=True)
class Section:
    """One table of the page: a module, its names, and the calls of each."""

    title: str
    names: tuple[str, ...]
    calls: dict[str, list[Example]]
    not_functions: dict[str, str]


def _examples(title: str) -> dict[str, list[Example]]:
    """The calls of a module, by the name that they are an example of."""
    prefix = _PREFIXES.get(title, title.removeprefix("scipy.") + ".")
    found: dict[str, list[Example]] = {}
    for line in "\n".join(_TEXTS[title]).split("\n"):
        if not line.strip():
            continue
        head = re.match(r"(\w+)? ?(?:~ ([\d.e]+) )?\| ", line)
        source = line[head.end() :] if head else line
        name = head[1] if head and head[1] else re.search(re.escape(prefix) + r"(\w+)", source)[1]
        found.setdefault(name, []).append(Example(source, float((head and head[2]) or 1)))
    return found


@cache
def sections() -> tuple[Section, ...]:
    made = []
    for title in _TEXTS:
        module = importlib.import_module(title)
        names = tuple(
            sorted({n for n in module.__all__ if not isinstance(getattr(module, n), ModuleType)})
        )
        by_reason = NOT_FUNCTIONS_OF_ARRAYS[title]
        nots = {name: why for why, listed in by_reason.items() for name in listed.split()}
        found = {name: made for name, made in _examples(title).items() if name in names}
        made.append(Section(title, names, found, nots))
    return tuple(made)


def missing() -> list[str]:
    """The names that have neither a call nor a reason to have none."""
    return [
        f"{section.title}.{name}"
        for section in sections()
        for name in section.names
        if name not in section.calls and name not in section.not_functions
    ]


# --- the rows -------------------------------------------------------------------------------------

WORKS, CONSTANT, PARTLY, NOT, NOTHING = (
    "works",
    "constant",
    "partly",
    "not",
    "no function of arrays",
)
CLASSES = {
    WORKS: "every call has SciPy's values and right derivatives under every transform",
    CONSTANT: "works; the results have no derivative, because they are integers, booleans or constants",
    PARTLY: "the listed calls or transforms raise an error; everything else works",
    NOT: "every call raises an error under every transform",
    NOTHING: "exceptions, settings, and arrays that are built from a length alone",
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


def _code(source: str) -> str:
    return "`" + source.replace("|", "\\|") + "`"


def row(section: Section, name: str) -> Row:
    """Run the calls of a name."""
    if name in section.not_functions:
        return Row(name, NOTHING, "", section.not_functions[name])
    if name not in section.calls:
        raise Mistake(f"{section.title}.{name} has no call in the tables of calls")
    findings = [examine(e.source, e.tolerance) for e in section.calls[name]]
    complaints = [_complaint(finding) for finding in findings]
    if len(set(complaints)) == 1:
        errors = complaints[0]
    else:
        told = zip(findings, complaints, strict=True)
        errors = "; ".join(f"{_code(f.source)}: {told}" for f, told in told if told)
    sources = [e.source for e in section.calls[name]]
    shown = sources if len(sources) < 4 else [*sources[:2], f"and {len(sources) - 2} more"]
    return Row(
        name,
        _kind(findings),
        errors,
        ", ".join(s if s.startswith("and ") else _code(s) for s in shown),
    )


def _complaint(finding: Finding) -> str:
    """Which errors a call has, and under which transforms."""
    by_error: dict[str, list[str]] = {}
    for transform, error in finding.errors.items():
        by_error.setdefault(error, []).append(transform)
    if finding.everywhere and len(by_error) == 1:
        return next(iter(by_error))
    return ", ".join(f"{error} in {', '.join(where)}" for error, where in by_error.items())


def _kind(findings: list[Finding]) -> str:
    if all(finding.everywhere for finding in findings):
        return NOT
    if any(finding.errors for finding in findings):
        return PARTLY
    return CONSTANT if all(finding.constant for finding in findings) else WORKS


# --- the page -------------------------------------------------------------------------------------


def page() -> str:
    """The whole page, from running everything."""
    absent = missing()
    if absent:
        raise Mistake("names without a call: " + ", ".join(absent))
    tables = {s.title: [row(s, name) for name in s.names] for s in sections()}
    lines = [
        "# SciPy coverage",
        "",
        "This page shows how SciPy's own functions behave on traced values, in code that imports nothing but",
        "SciPy: `scipy.linalg.cho_factor(K)` inside a function that is differentiated, for example.",
        f"It was generated with SciPy {scipy.__version__} by running each call; see [the end](#counts).",
        "",
        "The last column lists calls. In them, `t` is a number between 0 and 1, and `r` is one near 1.",
        "`x`, `y`, `p`, `u` and `s` are vectors: `p` is positive, `u` between 0 and 1, and `s` increasing.",
        "`b` has three entries; `A` and `B` are square; `M`, `N` and `I` are matrices; `z` is complex; `k`",
        "holds integers. All of them are traced, and so are the values that functions close over.",
        "",
        "| class | meaning |",
        "| --- | --- |",
        *[f"| {kind} | {meaning} |" for kind, meaning in CLASSES.items()],
        "",
        "Most of the functions in the class *partly* work under every transform but `jit`: SciPy's code,",
        "or its solver, needs to know values, which are not known while a graph is traced. Errors that",
        "functrans defines say what to do instead; the others are marked *from SciPy*.",
        "",
    ]
    for title, rows in tables.items():
        lines += [
            f"## `{title}`",
            "",
            "| name | class | errors | calls |",
            "| --- | --- | --- | --- |",
        ]
        lines += [*map(str, rows), ""]
    lines += ["## Counts", "", *_counts(tables), ""]
    lines += [
        "`python -m tools.scipy_coverage` generates this page. It runs each call on traced values under",
        "`grad`, `jvp`, `vmap`, `jit`, second derivatives, and `vmap` of `grad`. It compares values with",
        "SciPy, derivatives with finite differences, and `vmap` with a loop.",
        "`tests/scipy/test_scipy_coverage.py` fails if the page differs from a new run.",
    ]
    return "\n".join(lines) + "\n"


def _counts(tables: dict[str, list[Row]]) -> list[str]:
    lines = ["| where | " + " | ".join(CLASSES) + " | all |", "| --- " * (len(CLASSES) + 2) + "|"]
    total: Counter[str] = Counter()
    for title, rows in tables.items():
        count = Counter(r.kind for r in rows)
        total += count
        cells = [str(count[kind] or "") for kind in CLASSES]
        lines.append(f"| {title} | {' | '.join(cells)} | {len(rows)} |")
    lines.append(f"| all | {' | '.join(str(total[kind]) for kind in CLASSES)} | {total.total()} |")
    return lines


def committed() -> tuple[str, dict[str, dict[str, str]]]:
    """The version of SciPy that the page was made with, and its rows by module and name."""
    text = PAGE.read_text()
    tables: dict[str, dict[str, str]] = {}
    for part in text.split("\n## ")[1:]:
        title = part.split("\n", 1)[0].strip("`")
        rows = re.findall(r"^(\| `(.+?)` \| .*\|)$", part, re.MULTILINE)
        tables[title] = {name: line for line, name in rows}
    return re.search(r"SciPy (\d[^ ]*) by", text)[1], tables


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"wrote {PAGE}")
