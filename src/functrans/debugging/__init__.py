"""Tools to inspect what a function does: where a nan comes from, and where the time goes."""

from functrans.debugging.anomaly import detect_anomaly
from functrans.debugging.profiling import profile

__all__ = ["detect_anomaly", "profile"]


def __dir__() -> list[str]:
    return __all__
