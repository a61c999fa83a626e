"""What torch says of a program at a point: values, and the gradient of each output.

In: a program and NumPy arrays.  Out: a ``Truth``, or None where forward raises.

Gradients are those of torch's own tape through the plain function, in float64.  How far a right
answer may lie off is measured: the same program at inputs that differ in the tenth digit.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from benchmarks.reliability.program import FLOAT, Program, class_text, function_text

Array = Any
_STEP = 1e-10  # of the inputs, relative
_ROUNDINGS = 4096  # so many roundings in a row may add up, at worst
_POLYGAMMA = 1e-8  # torch's polygamma is off by 5e-10; that of symgrad by 2e-15, against mpmath
RAISED = (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError)


class NoGradient(Exception):
    """Torch has a value and no gradient: what its tape needs was overwritten."""


@dataclass
class Truth:
    """``gradients[output, input]``; ``sensitive``: the change of each for a change of the inputs.

    Keys of ``sensitive``: the number of an output, or such a pair.  ``inexact``: the relative error
    of torch's own functions.
    """

    outputs: list[Array]
    gradients: dict[tuple[int, str], Array]
    sensitive: dict[Any, float] = field(default_factory=dict)
    inexact: float = 0.0

    @property
    def finite(self) -> bool:
        """Are all outputs and gradients finite?"""
        values = [*self.outputs, *self.gradients.values()]
        return all(bool(np.isfinite(value).all()) for value in values)

    def tolerance(self, key: Any, dtype: str) -> float:
        """How far off a right answer may lie."""
        value = self.outputs[key] if isinstance(key, int) else self.gradients[key]
        finite = value[np.isfinite(value)] if value.dtype.kind == "f" else value
        size = float(np.max(np.abs(finite), initial=0.0))
        relative = max(self.inexact, _ROUNDINGS * float(np.finfo(dtype).eps))
        return relative * (1 + size + self.sensitive.get(key, 0))


def plain(program: Program) -> Callable[..., Any]:
    """The program as a function of torch's tensors."""
    names: dict[str, Any] = {"T": torch}
    exec(function_text(program), names)
    return names["program"]


def applied(program: Program) -> Any:
    """The program as a ``torch.autograd.Function``."""
    names: dict[str, Any] = {"T": torch, "Base": torch.autograd.Function}
    exec(class_text(program), names)
    return names["Program"]


def truth(
    program: Program, function: Callable[..., Any], arrays: Mapping[str, Array | None],
    cotangents: Callable[[int, tuple[int, ...]], Array], *, exact: bool = False,
) -> Truth | None:  # fmt: skip
    """Values and gradients; ``exact``: at a point with ties, which a small step would undo.

    Raises NoGradient.
    """
    found = _at(program, function, arrays, cotangents)
    if found is None or exact:
        return found
    source = np.random.default_rng(7)
    moved = {
        name: value * (1 + _STEP * source.choice([-1.0, 1.0], value.shape))
        if value is not None and value.dtype.kind == "f" else value
        for name, value in arrays.items()
    }  # fmt: skip
    other = _at(program, function, moved, cotangents)
    if other is not None:
        for number, (a, b) in enumerate(zip(found.outputs, other.outputs, strict=True)):
            if a.dtype.kind == "f":
                found.sensitive[number] = _distance(a, b) / _STEP
        for key, a in found.gradients.items():
            found.sensitive[key] = _distance(a, other.gradients[key]) / _STEP
    return found


def _distance(a: Array, b: Array) -> float:
    if a.shape != b.shape:
        return float("inf")
    with np.errstate(invalid="ignore"):
        return float(np.nanmax(np.where(a == b, 0.0, np.abs(a - b)), initial=0.0))


def _at(
    program: Program, function: Callable[..., Any], arrays: Mapping[str, Array | None],
    cotangents: Callable[[int, tuple[int, ...]], Array],
) -> Truth | None:  # fmt: skip
    inputs = {name: tensor(value) for name, value in arrays.items()}
    floats = {
        one.value.name: inputs[one.value.name] for one in program.inputs
        if one.value.kind == FLOAT and inputs[one.value.name] is not None
    }  # fmt: skip
    for value in floats.values():
        value.requires_grad_()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outputs = as_tuple(function(*inputs.values()))
    except RAISED:
        return None
    try:
        gradients = dict(_gradients(outputs, floats, cotangents))
    except RuntimeError as error:
        raise NoGradient(str(error)) from error
    inexact = _POLYGAMMA if "gamma(" in function_text(program) else 0.0
    return Truth([one.detach().numpy() for one in outputs], gradients, inexact=inexact)


def _gradients(
    outputs: Sequence[Any], floats: Mapping[str, Any], cotangents: Callable[..., Array]
) -> Any:  # fmt: skip
    for number, output in enumerate(outputs):
        if not output.dtype.is_floating_point:
            continue
        found: Sequence[Any] = [None] * len(floats)
        if output.requires_grad:
            cotangent = torch.from_numpy(cotangents(number, tuple(output.shape)))
            found = torch.autograd.grad(
                output, list(floats.values()), cotangent, retain_graph=True, allow_unused=True
            )
        for (name, value), gradient in zip(floats.items(), found, strict=True):
            gradient = torch.zeros_like(value) if gradient is None else gradient
            yield (number, name), gradient.detach().numpy()


def tensor(value: Array | None) -> Any:
    """A tensor of a copy, None for None."""
    return None if value is None else torch.from_numpy(np.array(value, copy=True))


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Several results or one."""
    return tuple(value) if isinstance(value, tuple | list) else (value,)
