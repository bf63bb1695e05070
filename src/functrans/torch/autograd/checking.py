"""Checks of gradients against finite differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core.errors import user_depth
from functrans.core.progress import progress_bar
from functrans.torch.autograd.backward_pass import grad
from functrans.torch.autograd.modes import enable_grad, no_grad
from functrans.torch.errors import GradcheckError as GradcheckError
from functrans.torch.errors import TensorValueError
from functrans.torch.tensor import Tensor, make


def _inputs(inputs: Any) -> tuple[Any, ...]:
    return (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)


def _outputs(func: Callable[..., Any], inputs: tuple[Any, ...]) -> tuple[Tensor, ...]:
    out = func(*inputs)
    outputs = out if isinstance(out, (tuple, list)) else (out,)
    return tuple(each for each in outputs if isinstance(each, Tensor) and each.dtype.category > 1)


_WHICH = {"imag": "imaginary", "real": "real"}


def _parts(outputs: tuple[Tensor, ...]) -> list[tuple[int, str, Tensor]]:
    """The outputs as real tensors: each with its position, a note on which part it is, and the part."""
    parts = []
    for k, out in enumerate(outputs):
        if not out.is_complex():
            parts.append((k, "", out))
            continue
        for name, word in _WHICH.items():
            note = f"While considering the {word} part of complex outputs only, "
            parts.append((k, note, getattr(out, name)))
    return parts


def _numerical(
    func: Callable[..., Any], inputs: tuple[Any, ...], place: int, eps: float, bar: Any
) -> list[np.ndarray[Any, Any]]:
    """The Jacobian matrix of each output, with a row for each entry of the input."""
    target = inputs[place]
    base = np.array(target.detach().value)
    rows: list[list[np.ndarray[Any, Any]]] = []
    steps: list[Any] = [eps, 1j * eps] if base.dtype.kind == "c" else [eps]
    with no_grad():
        for k in range(base.size):
            moved = []
            for step in steps:
                sides = []
                for sign in (1, -1):
                    values = base.copy()
                    values.reshape(-1)[k] += sign * step
                    given = list(inputs)
                    given[place] = make(values[()] if not values.ndim else values)
                    outs = _parts(_outputs(func, tuple(given)))
                    sides.append([np.array(o.value).reshape(-1) for _, _, o in outs])
                moved.append([(up - down) / (2 * eps) for up, down in zip(*sides, strict=True)])
            if len(moved) == 1:
                rows.append(moved[0])
            else:  # du/dx + i du/dy, the convention of PyTorch's gradients
                rows.append([a + 1j * b for a, b in zip(*moved, strict=True)])
            bar.update()
    return [np.stack(column) for column in zip(*rows, strict=True)]


def _analytical(out: Tensor, target: Tensor) -> np.ndarray[Any, Any]:
    """The Jacobian matrix, computed with `grad`, with a row for each entry of the input."""
    columns = []
    for k in range(out.numel()):
        seed = np.zeros(out.value.shape, out.value.dtype)
        seed.reshape(-1)[k] = 1
        (g,) = grad(out, target, make(seed[()]), retain_graph=True, allow_unused=True)
        empty = np.zeros(target.value.shape, target.value.dtype)
        columns.append((empty if g is None else np.array(g.value)).reshape(-1))
    return np.stack(columns, axis=1) if columns else np.zeros((target.numel(), 0))


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    progress: bool = False,
) -> bool:
    """Whether the gradients of a function agree with finite differences.

    With progress=True, tqdm shows how many entries of the inputs are done.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> x = torch.ones(2, dtype=torch.double, requires_grad=True)
    >>> torch.autograd.gradcheck(lambda x: (x**3).sum(), x)
    True
    """
    given = _inputs(inputs)
    tracked = [k for k, x in enumerate(given) if isinstance(x, Tensor) and x.requires_grad]
    if not tracked:
        raise TensorValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them "
            "have requires_grad=True."
        )
    for k in tracked:
        if given[k].value.dtype.name not in ("float64", "complex128"):
            warnings.warn(
                f"Input #{k} requires gradient and is not a double precision floating point or "
                "complex. This check will likely fail if all the inputs are not of double precision "
                "floating point or complex.",
                stacklevel=user_depth(),
            )
    with enable_grad():
        outputs = _parts(_outputs(func, given))
    entries = sum(given[k].numel() for k in tracked)
    try:
        with progress_bar(progress, entries, "gradcheck") as bar:
            for k in tracked:
                by_hand = _numerical(func, given, k, eps, bar)
                for (j, note, out), expected in zip(outputs, by_hand, strict=True):
                    if not out.requires_grad:
                        if np.abs(expected).max(initial=0.0) > atol:
                            raise GradcheckError(
                                f"Numerical gradient for function expected to be zero: output {j} "
                                "does not require grad"
                            )
                        continue
                    rule = _analytical(out, given[k])
                    if not np.allclose(rule, expected, rtol, atol):
                        raise GradcheckError(
                            f"{note}Jacobian mismatch for output {j} with respect to input {k},\n"
                            f"numerical:{make(expected)}\nanalytical:{make(rule)}\n"
                        )
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    progress: bool = False,
    **options: Any,
) -> bool:
    """Whether second derivatives agree with finite differences of the first.

    Examples
    --------
    >>> import functrans.torch as torch
    >>> x = torch.ones(2, dtype=torch.double, requires_grad=True)
    >>> torch.autograd.gradgradcheck(lambda x: (x**3).sum(), x)
    True
    """
    given = _inputs(inputs)
    tracked = [k for k, x in enumerate(given) if isinstance(x, Tensor) and x.requires_grad]
    with no_grad():
        outputs = _outputs(func, given)
    if grad_outputs is None:
        random = np.random.default_rng(0)
        seeds = tuple(
            make(random.standard_normal(o.value.shape).astype(o.value.dtype)[()]).requires_grad_()
            if o.value.ndim
            else make(o.value.dtype.type(random.standard_normal())).requires_grad_()
            for o in outputs
        )
    else:
        seeds = _inputs(grad_outputs)

    def first(*arguments: Any) -> Any:
        xs, gs = arguments[: len(given)], arguments[len(given) :]
        with enable_grad():
            leaves = [
                x if k not in tracked or x.requires_grad else x.requires_grad_()
                for k, x in enumerate(xs)
            ]
            outs = _outputs(func, tuple(leaves))
            pairs = [(o, g) for o, g in zip(outs, gs, strict=True) if o.requires_grad]
            return grad(
                [o for o, _ in pairs],
                [leaves[k] for k in tracked],
                [g for _, g in pairs],
                create_graph=True,
                materialize_grads=True,
            )

    return gradcheck(
        first,
        (*given, *seeds),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        progress=progress,
    )
