"""Which idiom of Python or NumPy a function failed on, told from the text of the error."""

import re

# The first pattern that matches decides. The text is the type and message of the exception.
_PATTERNS = (
    ("assignment", r"assign|written into|setting an array element|read-only|changed in place"),
    ("math", r"\b(c?math)\.\w+ gives|must be real number"),
    ("scipy", r"\bscipy\b"),
    (
        "type test",
        r"TypeTestError|isinstance|type\(|x must be|must be (a|an|of type|either) |is not supported",
    ),
    ("list argument", r"\blists?\b|\btuples?\b|'tuple'|'list'"),
    ("np.array", r"plain array of traced values|__array__|numpy\.\w*array"),
    (
        "float()",
        r"plain number|plain value|float\(\)|__float__|__index__|could not convert|only (0|length-1|size-1)|"
        r"interpreted as an integer|truth value",
    ),
    ("plain array", r"a plain array cannot|of a plain array"),
    ("memory", r"no memory for|reads the bytes|bytes-like|buffer"),
    ("cache or dict", r"unhashable"),
    ("staging", r"not known while|while it is traced|staged?\b"),
    ("no rule", r"has no rule|MissingRuleError|has no derivative"),
)

IDIOMS = (*(name for name, _ in _PATTERNS), "other")


def idiom(kind: str, message: str, trace: str) -> str:
    """The class of an error. `trace` is its traceback, for errors that SciPy raises."""
    text = f"{kind}: {message}"
    for name, pattern in _PATTERNS:
        if re.search(pattern, text):
            return name
    if re.search(r"site-packages/scipy/", trace):
        return "scipy"
    return "other"
