"""Arguments to try for a function, from the names, defaults and descriptions of its parameters.

Nothing here is about one package or function: the same recipes are tried for all of them.
"""

import inspect
import itertools
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tools.corpus.values import smooth

# Ranges of floats, in the order in which they are tried. "named" takes them from the name of the
# parameter where that is a usual one, such as T for a temperature in kelvin.
RANGES = {"named": (0.2, 0.95), "unit": (0.2, 0.95), "more": (1.1, 2.9), "large": (15.0, 60.0)}

_NAMED_RANGES = (
    (r"T[a-z]{0,3}\d?|T_\w+|tas|temp(erature)?(_k)?|t2m?_?k?|kelvin", (290.0, 340.0)),
    (r"t_?(db|wb|dp|r|o|air|dry\w*|wet\w*|dew\w*)|TDry\w*|TDew\w*|TWet\w*", (15.0, 35.0)),
    (r"[Pp]|P\w{1,3}|pressure|press|Pressure|p_atm", (8e4, 1.1e5)),
    (r"rho\w*|density", (700.0, 1000.0)),
    (r"mu[a-z]?|viscosity|nu[lgf]", (0.0005, 0.002)),
    (r"rh|relhum|RelHum|humidity|relative_humidity", (0.3, 0.7)),
    (r"lat\w*|phi\d?|latitude", (20.0, 60.0)),
    (r"lon\w*|lng|longitude|az\w*|heading", (10.0, 80.0)),
    (r"el(ev\w*)?|zenith|\w*zenith", (20.0, 60.0)),
    (r"alt(itude)?|h(eight)?|altitude\w*", (50.0, 900.0)),
    (r"jd\w*|julian\w*|mjd", (2458000.2, 2459000.7)),
    (r"freq\w*|fs|sample_?rate|samplerate", (20.0, 90.0)),
    (r"wl|wavelength\w*|lam(bda)?", (0.4, 0.7)),
    (r"Re|Reynolds", (2e4, 9e4)),
    (r"Pr|Sc", (0.8, 5.0)),
)
_INTEGERS = (
    r"n|m|k|i|j|l|N|M|n_\w+|num\w*|count|order|degree|deg|dims?|ndims?|n?size|idx|index|axis|"
    r"dimensions?|D|length|steps|window\w*|seed|level|year|month|day|hour|doy|\w*_count|nfft|NFFT|points?_n"
)
_QUATERNIONS = r"q\w{0,3}|quat\w*|Q|q_\w+|quaternion\d?"
_ROTATIONS = r"R\d?|R_\w+|rot\w*|dcm|DCM|C|rotation\w*"
_TRANSFORMS = r"T\d?|A2B|\w?2\w|transform\w*|pose\d?|H|M|mat\d?|matrix\d?|m\d"
_SYMMETRIC = r"P|Q|cov\w*|Sigma|S|sigma_matrix|covariance"
_VECTORS = (
    r"x|X|x0|v\d?|vec\w*|p\d?|point\w*|pos\w*|xyz\w*|position\w*|solution|individual|params|a|b|u|w|"
    r"\w*vector\w*|\w*_vec|data|y|z|XYZ\w*|RGB\w*|Lab\w*|arr\w*|values|signal|acc|gyr|mag|sample\w*|axis|"
    r"omega|euler\w*|angles|rpy|nodes|weights|coords\w*|a1|b1|v_\w+|theta|array"
)
_FUNCTIONS = r"f|fun|func|function|fx|hx|callback|fn"

# What a parameter without a telling name may be, in the order in which it is tried.
_ANY = ("float", "vector3", "vector2", "list3", "int", "rotation", "transform", "points")
_AFTER_VECTOR = ("vector2", "vector4", "vector5", "vector6", "list3", "list2", "points", "float")

# All parameters of one kind; functions of several vectors or matrices are mostly of this form.
_UNIFORM = (
    "float",
    "vector3",
    "vector2",
    "vector4",
    "vector5",
    "list3",
    "list2",
    "quaternion",
    "exact quaternion",
    "rotation",
    "exact rotation",
    "transform",
    "exact transform",
    "symmetric",
    "points",
    "points2",
    "vector1",
    "vector6",
    "tuple3",
)


@dataclass(frozen=True)
class Parameter:
    """A parameter that gets a value, with what is known about it."""

    name: str
    annotation: str
    description: str
    default: Any = inspect.Parameter.empty

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty


def parameters(function: Callable[..., Any], skip: int = 0) -> list[Parameter] | None:
    """The parameters that get values: the required ones, and those after them with a float default.

    None if the function cannot be called with positional arguments.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    doc = inspect.getdoc(function) or ""
    chosen = []
    for parameter in list(signature.parameters.values())[skip:]:
        if parameter.kind == parameter.KEYWORD_ONLY and parameter.default is parameter.empty:
            return None
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            break
        default = parameter.default
        if default is not parameter.empty and (
            type(default) is not float or re.search("tol|eps|rate|delta", parameter.name)
        ):
            break
        annotation = (
            ""
            if parameter.annotation is parameter.empty
            else inspect.formatannotation(parameter.annotation)
        )
        described = re.search(
            rf"^\s*(?::param(?:eter)?\s+(?P<t>[^:]*?)\s*)?`*{re.escape(parameter.name)}`*\s*(?:\(|:)(?P<d>.*)$",
            doc,
            re.M,
        )
        description = f"{described['t'] or ''} {described['d']}" if described else ""
        chosen.append(Parameter(parameter.name, annotation, description, default))
    return chosen


def kinds(parameter: Parameter) -> list[str]:
    """What the parameter may be, the likeliest first."""
    if not parameter.required:
        return ["default"]
    name, text = parameter.name, f"{parameter.annotation} {parameter.description}".lower()
    found: list[str] = []
    shape = re.search(r"\(\s*(?:\w+\s*,\s*)?(\d)\s*,?\s*(\d?)\s*\)", text)
    if shape and ("shape" in text or "array" in text or "matrix" in text):
        rows, columns = shape.groups()
        if rows == columns == "3":
            found += ["rotation", "exact rotation"]
        elif rows == columns == "4":
            found += ["transform", "exact transform"]
        elif not columns and rows in "123456":
            found.append(f"vector{rows}")
    if re.search(r"\bcallable\b|\bfunction\b", text) or re.fullmatch(_FUNCTIONS, name):
        found.append("function")
    if re.search(r"\bint\b|\binteger\b", text) and "float" not in text:
        found.append("int")
    if "list" in text:
        found += ["list3", "vector3"]
    if re.search(r"ndarray|array|vector|tensor", text):
        found += ["vector3", *_AFTER_VECTOR]
    if re.search(r"\bfloat\b|\bscalar\b|\bnumber\b|\bnumeric\b|\breal\b|[\[(](?:k|pa|m|-|°)", text):
        found.append("float")
    for pattern, likely in (
        (_QUATERNIONS, ["quaternion", "exact quaternion"]),
        (_ROTATIONS, ["rotation", "exact rotation"]),
        (_TRANSFORMS, ["transform", "exact transform", "rotation"]),
        (_SYMMETRIC, ["symmetric"]),
    ):
        if re.fullmatch(pattern, name):
            found += likely
    if re.fullmatch(_INTEGERS, name):
        found += ["int", "float"]
    if re.fullmatch(_VECTORS, name):
        found += ["vector3", *_AFTER_VECTOR]
    return list(dict.fromkeys([*found, *_ANY]))


def _floats(parameter: Parameter, scale: str, size: int, key: str) -> list[float]:
    low, high = RANGES[scale]
    if scale == "named":
        for pattern, limits in _NAMED_RANGES:
            if re.fullmatch(pattern, parameter.name):
                low, high = limits
                break
    generator = np.random.default_rng(zlib.crc32(f"{key}.{parameter.name}.{size}".encode()))
    return [float(f"{value:.4g}") for value in generator.uniform(low, high, size)]


def _rotation(values: list[float]) -> np.ndarray:
    a, b, c = values
    turn = lambda angle: (np.cos(angle), np.sin(angle))
    (ca, sa), (cb, sb), (cc, sc) = turn(a), turn(b), turn(c)
    x = np.array([[1, 0, 0], [0, ca, -sa], [0, sa, ca]])
    y = np.array([[cb, 0, sb], [0, 1, 0], [-sb, 0, cb]])
    z = np.array([[cc, -sc, 0], [sc, cc, 0], [0, 0, 1]])
    return z @ y @ x


def make(kind: str, parameter: Parameter, scale: str, key: str) -> Any:
    """A value of a kind. The same key gives the same value."""
    floats = lambda size: _floats(parameter, scale, size, key)
    if kind == "default":
        return 1.1 * parameter.default if parameter.default else 0.1
    if kind == "float":
        return floats(1)[0]
    if kind == "int":
        return {"named": 3, "unit": 2, "more": 1, "large": 10}[scale]
    if kind == "function":
        return smooth
    if kind.startswith("vector"):
        return np.array(floats(int(kind[-1])))
    if kind.startswith("list"):
        return floats(int(kind[-1]))
    if kind.startswith("tuple"):
        return tuple(floats(int(kind[-1])))
    # Rounded, a quaternion is a little off the unit sphere, and a matrix is not quite a rigid motion.
    # Exactly on it, a branch such as `if norm == 1` holds at a single point, where the derivative
    # of the branch is not that of the function.
    digits = 12 if kind.startswith("exact") else 2
    if kind.endswith("quaternion"):
        vector = np.array(floats(4))
        return np.round(vector / np.linalg.norm(vector), digits)
    if kind.endswith("rotation"):
        return np.round(_rotation(floats(3)), digits)
    if kind.endswith("transform"):
        matrix = np.eye(4)
        matrix[:3, :3] = np.round(_rotation(floats(3)), digits)
        matrix[:3, 3] = floats(3)
        if digits == 2:
            matrix[3] = 0.01, -0.02, 0.03, 0.99
        return matrix
    if kind == "symmetric":
        values = np.array(floats(9)).reshape(3, 3)
        return np.round(values @ values.T, 6) + np.eye(3)
    if kind == "points":
        return np.array(floats(12)).reshape(4, 3)
    if kind == "points2":
        return np.array(floats(10)).reshape(5, 2)
    raise ValueError(kind)


def _combinations(choices: list[list[str]]) -> Iterator[tuple[str, ...]]:
    """Kinds for all parameters, the likeliest first."""
    yield tuple(choice[0] for choice in choices)
    for kind in _UNIFORM:
        # Counts stay integers, and functions stay functions.
        yield tuple(
            choice[0] if choice[0] in ("int", "default", "function") else kind for choice in choices
        )
    depth = 6 if len(choices) <= 2 else 3
    short = [choice[:depth] for choice in choices[:5]]
    rest = tuple(choice[0] for choice in choices[5:])
    ranked = sorted(
        itertools.product(*(range(len(choice)) for choice in short)),
        key=lambda ranks: (sum(ranks), max(ranks)),
    )
    for ranks in ranked[:60]:
        yield tuple(choice[rank] for choice, rank in zip(short, ranks, strict=True)) + rest


def arguments(chosen: list[Parameter], key: str) -> Iterator[list[Any]]:
    """Lists of arguments to try, the likeliest first."""
    required = [parameter for parameter in chosen if parameter.required]
    for scale in RANGES:
        seen = set()
        for given in (chosen, required) if len(chosen) > len(required) else (required,):
            for combination in _combinations([kinds(parameter) for parameter in given]):
                if combination in seen:
                    continue
                seen.add(combination)
                pairs = zip(given, combination, strict=True)
                yield [make(kind, parameter, scale, key) for parameter, kind in pairs]
        if not required and not chosen:
            return
