"""What can go wrong with optimizers, in PyTorch's words.

In: what happened.  Out: SymgradErrors that are also the builtin error that PyTorch raises.
"""

from __future__ import annotations

from symgrad.errors import SymgradError


class OptimizerValueError(SymgradError, ValueError):
    """A setting, a parameter or a state that an optimizer does not take."""


class OptimizerTypeError(SymgradError, TypeError):
    """Something of another type stands where parameters are needed."""


class OptimizerStateError(SymgradError, RuntimeError):
    """An optimizer or a scheduler was used out of order."""
