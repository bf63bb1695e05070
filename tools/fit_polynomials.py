"""Fits the polynomials of src/functrans/compiler/native/coefficients.py, and writes that file.

Each is the polynomial of its degree with the least maximum of weight · |polynomial - function| on an
interval, by Remez' exchange of reference points, and is then rounded to its format. The weight turns
the error of the polynomial into the relative error of the formula in which it stands. Run as a script:

    python -m tools.fit_polynomials
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import mpmath as mp
import numpy as np

TARGET = Path(__file__).parents[1] / "src/functrans/compiler/native/coefficients.py"
DIGITS = 60


@dataclass
class Fit:
    name: str
    meaning: str  # of the polynomial, as a comment
    function: Callable
    interval: tuple[float, float]
    weight: Callable
    degrees: dict[str, int]  # by kind
    interval_of_floats: tuple[float, float] | None = None  # for "f", if a shorter one will do

    def of_kind(self, kind):
        if kind == "f" and self.interval_of_floats is not None:
            return replace(self, interval=self.interval_of_floats)
        return self


def remez(fit, degree):
    low, high = (mp.mpf(end) for end in fit.interval)
    half, middle = (high - low) / 2, (high + low) / 2
    # Grid points crowd at the ends, as the extremes of the error do.
    grid = [middle - half * mp.cos(mp.pi * (i + 0.5) / 600) for i in range(600)]
    values = [fit.function(t) for t in grid]
    weights = [fit.weight(t) for t in grid]
    count = degree + 2
    reference = [round(600 * (i + 0.5) / count) for i in range(count)]
    for _ in range(30):
        rows = [
            [grid[i] ** k for k in range(degree + 1)] + [(-1) ** place / weights[i]]
            for place, i in enumerate(reference)
        ]
        solution = mp.lu_solve(mp.matrix(rows), mp.matrix([values[i] for i in reference]))
        coefficients = list(solution)[:-1]
        level = abs(solution[degree + 1])
        errors = [
            w * (mp.polyval(coefficients[::-1], t) - v)
            for t, v, w in zip(grid, values, weights, strict=True)
        ]
        # The largest error of each run of one sign; too many of them lose the smaller end.
        peaks = []
        for i, error in enumerate(errors):
            if peaks and errors[peaks[-1]] * error > 0:
                if abs(error) > abs(errors[peaks[-1]]):
                    peaks[-1] = i
            else:
                peaks.append(i)
        while len(peaks) > count:
            peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
        if len(peaks) < count or max(abs(e) for e in errors) < 1.001 * level:
            break
        reference = peaks
    return coefficients


def rounded(coefficients, kind):
    # Twice rounded, but a coefficient need not be the nearest number.
    return [float(np.float32(float(c))) if kind == "f" else float(c) for c in coefficients]


def worst(fit, coefficients):
    """The largest weighted error of the rounded polynomial, as a power of two."""
    low, high = fit.interval
    points = [mp.mpf(low) + (mp.mpf(high) - low) * (i + 0.5) / 2000 for i in range(2000)]
    error = max(
        fit.weight(t) * abs(mp.polyval(coefficients[::-1], t) - fit.function(t)) for t in points
    )
    return float(mp.log(error, 2))


def odd(function, at_zero=1):
    """(f(x)/x - f'(0))/x² of an odd f, by z = x²: then f(x) = f'(0) x + x z polynomial(z)."""

    def ratio(z):
        x = mp.sqrt(z)
        return (function(x) / x - at_zero) / z

    return ratio


def scaled_erfc(t):
    """(x + 4) exp(x²) erfc(x), which is smooth up to infinity in t = (x - 4)/(x + 4)."""
    x = 4 * (1 + t) / (1 - t)
    return (x + 4) * mp.exp(x * x) * mp.erfc(x)


FITS = [
    Fit(
        "EXP",
        "(exp(r) - 1 - r)/r² for |r| <= log(2)/2",
        lambda r: (mp.expm1(r) - r) / r**2,
        (-0.3468, 0.3468),
        lambda r: abs(r),
        {"d": 9, "f": 4},
    ),
    Fit(
        "EXP2",
        "(2^r - 1)/r for |r| <= 1/2",
        lambda r: mp.expm1(r * mp.log(2)) / r,
        (-0.5, 0.5),
        lambda r: abs(r),
        {"d": 10, "f": 5},
    ),
    Fit(
        "LOG",
        "(2 artanh(s)/s - 2)/z with z = s², for |s| <= (√2 - 1)/(√2 + 1)",
        odd(lambda s: 2 * mp.atanh(s), 2),
        (0.0, 0.02945),
        lambda z: z,
        {"d": 6, "f": 2},
    ),
    Fit(
        "LOG_FINE",
        "((2 artanh(s)/s - 2)/z - 2/3)/z with z = s², for |s| <= (√2 - 1)/(√2 + 1)",
        lambda z: (odd(lambda s: 2 * mp.atanh(s), 2)(z) - mp.mpf(2) / 3) / z,
        (0.0, 0.02945),
        lambda z: z * z,
        {"d": 8},
    ),
    Fit(
        "SIN_QUARTER",
        "(sin(r)/r - 1)/z with z = r², for |r| <= π/4 and a little more",
        odd(mp.sin),
        (0.0, 0.63),
        lambda z: z,
        {"d": 5, "f": 2},
    ),
    Fit(
        "COS_QUARTER",
        "(cos(r) - 1 + z/2)/z² with z = r², for |r| <= π/4 and a little more",
        lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2,
        (0.0, 0.63),
        lambda z: z * z,
        {"d": 5, "f": 2},
    ),
    Fit(
        "SINH",
        "(sinh(x)/x - 1)/z with z = x², for |x| <= 1",
        odd(mp.sinh),
        (0.0, 1.0),
        lambda z: z,
        {"d": 7, "f": 3},
    ),
    Fit(
        "ERF",
        "erf(x)/x - 1 with z = x², for |x| <= 1",
        lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1,
        (0.0, 1.0),
        lambda z: 1,
        {"d": 11, "f": 5},
    ),
    Fit(
        "LOG_ERFC",
        "log(erfc(x)), for 1 <= x <= 6 (4 in float32)",
        lambda x: mp.log(mp.erfc(x)),
        (1.0, 6.0),
        lambda x: mp.erfc(x),
        {"d": 16, "f": 6},
        (1.0, 4.0),
    ),
    Fit(
        "ERFC",
        "(g(t) - g(0))/t, g = (x + 4) exp(x²) erfc(x), t = (x - 4)/(x + 4), 3/4 <= x <= 27.5",
        lambda t: (scaled_erfc(t) - scaled_erfc(0)) / t,
        (-0.6843, 0.7461),
        lambda t: abs(t) / scaled_erfc(t),
        {"d": 18, "f": 8},
        (-0.6843, 0.4483),
    ),
    Fit(
        "CBRT",
        "the cube root of 1 + f, for √½ <= 1 + f <= √2",
        lambda f: mp.cbrt(1 + f),
        (-0.293, 0.4143),
        lambda f: 1,
        {"d": 8, "f": 3},
    ),
    Fit(
        "ARCTAN",
        "(arctan(x)/x - 1)/z with z = x², for |x| <= 1",
        odd(mp.atan),
        (0.0, 1.0),
        lambda z: z,
        {"d": 19, "f": 8},
    ),
    Fit(
        "ARCSIN",
        "(arcsin(x)/x - 1)/z with z = x², for |x| <= 1/2",
        odd(mp.asin),
        (0.0, 0.25),
        lambda z: z,
        {"d": 11, "f": 4},
    ),
]

HEADER = '''"""The polynomials of the elementary functions, by kind, each from its constant coefficient on.

tools/fit_polynomials.py writes this file. A comment says what is approximated, and the
weighted error: that of the formula relative to its result.
"""

Coefficients = dict[str, tuple[float, ...]]
'''


def main():
    mp.mp.dps = DIGITS
    text = [HEADER]
    for fit in FITS:
        entries, bounds = [], []
        for kind, degree in fit.degrees.items():
            fitted = fit.of_kind(kind)
            coefficients = rounded(remez(fitted, degree), kind)
            bounds.append(f'"{kind}" within 2^{worst(fitted, coefficients):.1f}')
            lines = "".join(f"        {c!r},\n" for c in coefficients)
            entries.append(f'    "{kind}": (\n{lines}    ),\n')
        text.append(f"# {fit.meaning};\n# {', '.join(bounds)}.\n")
        text.append(f"{fit.name}: Coefficients = {{\n{''.join(entries)}}}\n\n")
        print(fit.name, bounds)
    TARGET.write_text("".join(text).rstrip("\n") + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
