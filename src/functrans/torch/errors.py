"""Errors of tensor operations: PyTorch's classes and messages, with functrans' base class."""

from __future__ import annotations

import numpy as np

from functrans.core.errors import FunctransError


class TensorError(FunctransError, RuntimeError):
    """PyTorch's RuntimeError: shapes, dtypes, graphs and versions that do not match.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> try:
    ...     torch.ones(2) + torch.ones(3)
    ... except torch.errors.TensorError as error:
    ...     print(error)
    The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0
    """


class TensorTypeError(FunctransError, TypeError):
    """An argument of a type that a tensor function does not accept.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> issubclass(torch.errors.TensorTypeError, TypeError)
    True
    """


class TensorValueError(FunctransError, ValueError):
    """An argument with an invalid value.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> issubclass(torch.errors.TensorValueError, ValueError)
    True
    """


class TensorIndexError(FunctransError, IndexError):
    """An index or a dimension that is out of range.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> issubclass(torch.errors.TensorIndexError, IndexError)
    True
    """


class DeviceError(FunctransError, AssertionError):
    """A device that does not exist: only the CPU does.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> issubclass(torch.errors.DeviceError, AssertionError)
    True
    """


class OptionAssertionError(FunctransError, AssertionError):
    """Options that contradict each other, where PyTorch asserts.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> issubclass(torch.errors.OptionAssertionError, AssertionError)
    True
    """


class GradcheckError(TensorError):
    """A gradient that differs from finite differences.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> issubclass(torch.errors.GradcheckError, RuntimeError)
    True
    """


class LinAlgError(TensorError, np.linalg.LinAlgError):
    """A matrix on which an operation fails, such as a singular one.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> issubclass(torch.errors.LinAlgError, RuntimeError)
    True
    """
