"""Whether operations are recorded: no_grad, enable_grad, set_grad_enabled, inference_mode."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Self

from functrans.core.dispatch import running_interpreters
from functrans.torch.tape import MODE


def _now() -> tuple[bool, bool, int]:
    return MODE.enabled, MODE.inference, MODE.silenced


def _put_back(before: tuple[bool, bool, int]) -> None:
    MODE.enabled, MODE.inference, MODE.silenced = before


def _silence_running() -> None:
    """Apply the mode to transforms that are already running, but not to those that begin inside."""
    running = running_interpreters()
    MODE.silenced = running[-1].level if running else 0


class _Switch:
    """A context manager and decorator, for functions and generators, that sets the grad mode."""

    def __init__(self) -> None:
        self._before: list[tuple[bool, bool, int]] = []

    def _set(self) -> None:
        raise NotImplementedError

    def _again(self) -> Self:
        """A new instance, for each call of a decorated function."""
        return type(self)()

    def _mode_before(self) -> tuple[bool, bool, int]:
        return _now()

    def __enter__(self) -> None:
        before = self._mode_before()
        self._before.append(before)
        try:
            self._set()
            _silence_running()
        except BaseException:  # such as Ctrl-C; __exit__ would not be called
            self._before.pop()
            _put_back(before)
            raise

    def __exit__(self, *exc_info: Any) -> None:
        # Restore the mode before calling anything: Ctrl-C may interrupt after a call.
        MODE.enabled, MODE.inference, MODE.silenced = self._before[-1]
        self._before.pop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.isgeneratorfunction(function):
            return self._around_generator(function)

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self._again():
                return function(*args, **kwargs)

        return wrapper

    def _around_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Apply the mode while the generator runs, but not while its caller does."""

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            try:
                with self._again():
                    value = generator.send(None)
                while True:
                    try:
                        request = yield value
                    except GeneratorExit:
                        with self._again():
                            generator.close()
                        raise
                    except BaseException as error:
                        with self._again():
                            value = generator.throw(error)
                    else:
                        with self._again():
                            value = generator.send(request)
            except StopIteration as stop:
                return stop.value

        return wrapper


class no_grad(_Switch):
    """Do not record the operations inside, so that no gradients are computed for them.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    def __new__(cls, function: Any = None) -> Any:
        if function is None:
            return super().__new__(cls)
        return cls()(function)  # @no_grad without parentheses

    def __init__(self, function: Any = None) -> None:
        super().__init__()

    def _set(self) -> None:
        MODE.enabled = False


class enable_grad(no_grad):
    """Record the operations inside, even within `no_grad`.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.no_grad(), torch.enable_grad():
    ...     (x * 2).requires_grad
    True
    """

    def _set(self) -> None:
        MODE.enabled = True


class set_grad_enabled(_Switch):
    """Turn the recording of operations on or off, as a function or as a context manager.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.set_grad_enabled(False):
    ...     (x * 2).requires_grad
    False
    """

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self.mode = bool(mode)
        self._first: Any = _now()
        MODE.enabled = self.mode
        _silence_running()

    def _again(self) -> Self:
        return type(self)(self.mode)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        _put_back(self._first)
        return super().__call__(function)

    def _mode_before(self) -> tuple[bool, bool, int]:
        """The mode before this object was made; when it is entered again, the current one."""
        before: tuple[bool, bool, int] = self._first or _now()
        self._first = None
        return before

    def _set(self) -> None:
        MODE.enabled = self.mode


class inference_mode(_Switch):
    """Like `no_grad`, but new tensors cannot take part in autograd later.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> with torch.inference_mode():
    ...     x = torch.ones(2) * 2
    >>> x.is_inference()
    True
    """

    def __new__(cls, mode: Any = True) -> Any:
        return cls()(mode) if callable(mode) else super().__new__(cls)

    def __init__(self, mode: Any = True) -> None:
        super().__init__()
        self.mode = bool(mode)

    def _again(self) -> Self:
        return type(self)(self.mode)

    def _set(self) -> None:
        if self.mode:
            MODE.enabled = False
        MODE.inference = self.mode
        if not self.mode and self._before[-1][1]:
            MODE.enabled = True


def is_grad_enabled() -> bool:
    """Whether operations are recorded in this thread.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.is_grad_enabled()
    True
    """
    return MODE.enabled


def is_inference_mode_enabled() -> bool:
    """Whether new tensors are inference tensors in this thread.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> torch.is_inference_mode_enabled()
    False
    """
    return MODE.inference
