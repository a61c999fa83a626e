"""``gradcheck`` and ``gradgradcheck``: gradients compared with central differences, as PyTorch's.

In: a function of tensors, and inputs.  Out: True; GradcheckError, or False, where they differ.

The numerical Jacobian holds ``(f(x + eps) - f(x - eps)) / (2 eps)`` in a row for each input
element; the analytical one is filled by a backward for each output element.  The fast mode
compares ``v·J·u`` for one random ``u`` and ``v`` instead.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symgrad.tensor import errors
from symgrad.tensor.gradients import grad
from symgrad.tensor.modes import enable_grad
from symgrad.tensor.tensor import Array, Tensor, wrap


@dataclass(frozen=True)
class _Settings:
    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    undefined: bool
    dtypes: bool
    fast: bool


def gradcheck(
    func: Callable[..., Any], inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5,
    rtol: float = 1e-3, raise_exception: bool = True, nondet_tol: float = 0.0,
    check_undefined_grad: bool = True, check_grad_dtypes: bool = False,
    check_batched_grad: bool = False, check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False, check_backward_ad: bool = True, fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:  # fmt: skip
    """Do the gradients of ``func(*inputs)`` agree with central differences of step ``eps``?

    Inputs that require a gradient should be float64.  Raises GradcheckError where they differ by
    more than ``atol + rtol * |numerical|``, or returns False unless ``raise_exception``.
    """
    settings = _Settings(
        eps, atol, rtol, nondet_tol, check_undefined_grad, check_grad_dtypes, fast_mode
    )
    try:
        _check(func, inputs if isinstance(inputs, (tuple, list)) else (inputs,), settings)
    except errors.GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any], inputs: Any, grad_outputs: Any = None, *, eps: float = 1e-6,
    atol: float = 1e-5, rtol: float = 1e-3, gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True, nondet_tol: float = 0.0, check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False, check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False, check_rev_over_rev: bool = True, fast_mode: bool = False,
    masked: bool = False,
) -> bool:  # fmt: skip
    """Do the gradients of the gradients agree with central differences of the gradients?"""
    given = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    with enable_grad():
        outputs = _differentiable(func(*given))
    if grad_outputs is None:
        random = np.random.default_rng(0)
        cotangents = [
            wrap(random.random(tuple(out.shape)).astype(out._array.dtype)).requires_grad_()
            for out in outputs
        ]
    else:
        several = isinstance(grad_outputs, (tuple, list))
        cotangents = list(grad_outputs) if several else [grad_outputs]
    count = len(given)

    def gradients(*arguments: Any) -> tuple[Tensor, ...]:
        values, vectors = arguments[:count], arguments[count:]
        found = _differentiable(func(*values))
        wanted = [value for value in values if _is_wanted(value)]
        several = grad(found, wanted, list(vectors), create_graph=True, allow_unused=True)
        return tuple(one for one in several if one is not None)

    return gradcheck(
        gradients, (*given, *cotangents), eps=eps, atol=atol, rtol=rtol,
        raise_exception=raise_exception, nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes,
        fast_mode=fast_mode,
    )  # fmt: skip


# -- the check


def _check(func: Callable[..., Any], inputs: Sequence[Any], settings: _Settings) -> None:
    wanted = [value for value in inputs if _is_wanted(value)]
    if not wanted:
        raise errors.TensorValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of the them "
            "have requires_grad=True."
        )
    for number, tensor in enumerate(wanted):
        if tensor._array.dtype != np.float64:
            warnings.warn(
                f"Input #{number} requires gradient and is not a double precision floating point "
                "or complex. This check will likely fail if all the inputs are not of double "
                "precision floating point or complex. ", UserWarning, stacklevel=4,
            )  # fmt: skip
    outputs = _differentiable(func(*inputs))
    if not outputs:
        _check_constant(func, inputs, wanted, settings)
        return
    for number, output in enumerate(outputs):
        _check_output(_Case(func, inputs, wanted, number, settings), output)
    if settings.undefined:
        _check_undefined(func, inputs, wanted)


@dataclass(frozen=True)
class _Case:
    """One output of the function."""

    func: Callable[..., Any]
    inputs: Sequence[Any]
    wanted: Sequence[Tensor]
    number: int
    settings: _Settings

    def output(self) -> Tensor:
        """The output, with its history."""
        return _differentiable(self.func(*self.inputs))[self.number]

    def value(self) -> Array:
        """The elements of the output."""
        result = self.func(*self.inputs)
        found = _differentiable(result) or _floats(result)
        return np.array(found[self.number]._array)


def _check_output(case: _Case, output: Tensor) -> None:
    analytical = _analytical(case, output)
    if output.numel():
        again = _analytical(case, case.output())
        for first, second in zip(analytical, again, strict=True):
            if not np.allclose(first, second, rtol=0, atol=case.settings.nondet_tol):
                raise errors.GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and "
                    "grad_output multiple times gives different values, although analytical "
                    "gradient matches numerical gradient."
                    f"The tolerance for nondeterminism was {case.settings.nondet_tol}."
                )
    numerical = [_numerical(case, tensor) for tensor in case.wanted]
    for place, (found, expected) in enumerate(zip(analytical, numerical, strict=True)):
        if case.settings.fast:
            found, expected = _projected(found), _projected(expected)
        close = np.allclose(
            found, expected, rtol=case.settings.rtol, atol=case.settings.atol, equal_nan=True
        )
        if not close:
            raise errors.GradcheckError(
                f"Jacobian mismatch for output {case.number} with respect to input {place},\n"
                f"numerical:{wrap(np.asarray(expected))}\nanalytical:{wrap(np.asarray(found))}\n"
            )


def _projected(matrix: Array) -> Array:
    rows, columns = np.random.default_rng(0), np.random.default_rng(1)
    left = rows.standard_normal(matrix.shape[0])
    right = columns.standard_normal(matrix.shape[1])
    norms = np.linalg.norm(left) * np.linalg.norm(right) or 1.0
    return np.asarray(left @ matrix @ right / norms)


def _analytical(case: _Case, output: Tensor) -> list[Array]:
    """A Jacobian for each input: a row for each of its elements, a column for each of output's."""
    found = [np.zeros((tensor.numel(), output.numel())) for tensor in case.wanted]
    for column in range(output.numel()):
        vector = np.zeros(tuple(output.shape), output._array.dtype)
        vector.reshape(-1)[column] = 1
        rows = grad([output], case.wanted, [wrap(vector)], retain_graph=True, allow_unused=True)
        for place, (row, tensor) in enumerate(zip(rows, case.wanted, strict=True)):
            if row is None:
                continue
            if row.shape != tensor.shape:
                raise errors.GradcheckError("Analytical gradient has incorrect size")
            if case.settings.dtypes and row.dtype != tensor.dtype:
                raise errors.GradcheckError("Gradient has dtype mismatch")
            found[place][:, column] = row._array.reshape(-1)
    return found


def _numerical(case: _Case, tensor: Tensor) -> Array:
    eps, array = case.settings.eps, tensor._array
    rows = []
    for place in np.ndindex(array.shape):
        original = array[place].copy()
        array[place] = original + eps
        above = case.value()
        array[place] = original - eps
        below = case.value()
        array[place] = original
        rows.append(((above - below) / (2 * eps)).reshape(-1))
    return np.array(rows, np.float64).reshape(array.size, -1)


def _check_constant(
    func: Callable[..., Any], inputs: Sequence[Any], wanted: Sequence[Tensor], settings: _Settings
) -> None:  # fmt: skip
    """Nothing requires a gradient: then the numerical one has to be zero."""
    for number, _ in enumerate(_floats(func(*inputs))):
        case = _Case(func, inputs, wanted, number, settings)
        for place, tensor in enumerate(wanted):
            if not np.allclose(_numerical(case, tensor), 0, atol=settings.atol):
                raise errors.GradcheckError(
                    f"Numerical gradient for function expected to be zero, but output {number} "
                    f"depends on input {place}"
                )


def _check_undefined(
    func: Callable[..., Any], inputs: Sequence[Any], wanted: Sequence[Tensor]
) -> None:  # fmt: skip
    """Backward has to do without the gradients of some outputs."""
    outputs = _differentiable(func(*inputs))
    if len(outputs) < 2:
        return
    for chosen in range(len(outputs)):
        outputs = _differentiable(func(*inputs))
        one = outputs[chosen]
        try:
            grad([one], wanted, [wrap(np.ones_like(one._array))], allow_unused=True)
        except (TypeError, AttributeError) as error:
            raise errors.GradcheckError(
                "Expected backward function to handle undefined output grads. Please look at "
                "'Notes about undefined output gradients' in 'tools/autograd/derivatives.yaml'"
            ) from error


def _is_wanted(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def _differentiable(result: Any) -> list[Tensor]:
    """The outputs that have a history."""
    return [one for one in _floats(result) if one.requires_grad]


def _floats(result: Any) -> list[Tensor]:
    """The outputs that hold floats."""
    several = result if isinstance(result, (tuple, list)) else (result,)
    return [one for one in several if isinstance(one, Tensor) and one.is_floating_point()]
