"""The errors of tensors: PyTorch's kinds and words, and functrans' base class."""

from __future__ import annotations

import numpy as np

from functrans.core.errors import FunctransError


class TensorError(FunctransError, RuntimeError):
    """What PyTorch reports as a RuntimeError: shapes, dtypes, graphs and versions that do not fit.

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
    """An argument of a type that a function of tensors does not take.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> issubclass(torch.errors.TensorTypeError, TypeError)
    True
    """


class TensorValueError(FunctransError, ValueError):
    """An argument with a value that it must not have.

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
    """A device that is not there: there is only the CPU.

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
    """A gradient that is not the one that finite differences give.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> issubclass(torch.errors.GradcheckError, RuntimeError)
    True
    """


class LinAlgError(TensorError, np.linalg.LinAlgError):
    """A matrix that cannot be worked on, such as a singular one.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> issubclass(torch.errors.LinAlgError, RuntimeError)
    True
    """
