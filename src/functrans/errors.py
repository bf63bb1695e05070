"""Every error and warning that functrans raises. docs/gotchas.md explains their messages and remedies."""

from functrans.compiler.warnings import CacheWarning, PerformanceHint, RetraceWarning
from functrans.core.errors import (
    AnomalyError,
    ArgnumsError,
    ArrayConversionError,
    AssignmentError,
    AxisNameError,
    BranchError,
    CarryError,
    ClosureError,
    ConvergenceWarning,
    DerivativeError,
    DerivativeWarning,
    EscapedTracerError,
    FunctransError,
    GraphError,
    InputTypeError,
    LaneError,
    LinearityError,
    MappedAxisError,
    MemoryAccessError,
    MissingPackageError,
    MissingRuleError,
    OptionError,
    OutputShapeError,
    OutputTypeError,
    RandomnessWarning,
    RuleError,
    SingularError,
    StagingError,
    TangentError,
    TypeTestError,
)
from functrans.core.publishing import publish as _publish

__all__ = [
    "AnomalyError",
    "ArgnumsError",
    "ArrayConversionError",
    "AssignmentError",
    "AxisNameError",
    "BranchError",
    "CacheWarning",
    "CarryError",
    "ClosureError",
    "ConvergenceWarning",
    "DerivativeError",
    "DerivativeWarning",
    "EscapedTracerError",
    "FunctransError",
    "GraphError",
    "InputTypeError",
    "LaneError",
    "LinearityError",
    "MappedAxisError",
    "MemoryAccessError",
    "MissingPackageError",
    "MissingRuleError",
    "OptionError",
    "OutputShapeError",
    "OutputTypeError",
    "PerformanceHint",
    "RandomnessWarning",
    "RetraceWarning",
    "RuleError",
    "SingularError",
    "StagingError",
    "TangentError",
    "TypeTestError",
]


def __dir__() -> list[str]:
    return __all__


_publish(__name__, [globals()[name] for name in __all__])
