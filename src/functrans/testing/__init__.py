"""Tools for tests: derivatives against finite differences."""

from functrans.testing.derivatives import check_derivatives

__all__ = ["check_derivatives"]
