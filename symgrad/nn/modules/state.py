"""Loading a ``state_dict``: what fits is copied, what does not is told.

In: a module and a mapping of names to tensors.  Out: the names that did not fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from symgrad.nn.errors import ModuleTypeError, StateDictError
from symgrad.tensor import Tensor, as_tensor
from symgrad.tensor.modes import no_grad


class Incompatible(NamedTuple):
    """The names that ``load_state_dict`` missed, and those it had no use for."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (
            f"_IncompatibleKeys(missing_keys={self.missing_keys}, "
            f"unexpected_keys={self.unexpected_keys})"
        )


def load_state(module: Any, given: Mapping[str, Any], strict: bool) -> Incompatible:
    """Copy every tensor into that of the same name.  Raises ModuleTypeError, StateDictError."""
    if not isinstance(given, Mapping):
        raise ModuleTypeError(f"Expected state_dict to be dict-like, got {type(given)}.")
    own = module.state_dict(keep_vars=True)
    missing = [name for name in own if name not in given]
    unexpected = [name for name in given if name not in own]
    problems = []
    if strict and unexpected:
        problems.append(f"Unexpected key(s) in state_dict: {_quoted(unexpected)}. ")
    if strict and missing:
        problems.insert(0, f"Missing key(s) in state_dict: {_quoted(missing)}. ")
    problems += _copied({name: (own[name], given[name]) for name in own if name in given})
    if problems:
        lines = "\n\t".join(problems)
        raise StateDictError(
            f"Error(s) in loading state_dict for {type(module).__name__}:\n\t{lines}"
        )
    return Incompatible(missing, unexpected)


def _quoted(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _copied(pairs: Mapping[str, tuple[Tensor, Any]]) -> Iterator[str]:
    """Copy the tensors of the right shapes, as torch does, and say which are not."""
    for name, (tensor, value) in pairs.items():
        if not isinstance(value, (Tensor, np.ndarray)):
            yield (
                f'While copying the parameter named "{name}", expected symgrad.Tensor or '
                f"Tensor-like object from checkpoint but received {type(value)}"
            )
        elif tuple(value.shape) != tuple(tensor.shape):
            yield (
                f"size mismatch for {name}: copying a param with shape "
                f"{_shape(value)} from checkpoint, the shape in current model is "
                f"{_shape(tensor)}."
            )
        else:
            with no_grad():
                tensor.copy_(as_tensor(value))


def _shape(value: Any) -> str:
    return f"symgrad.Size({list(value.shape)})"
