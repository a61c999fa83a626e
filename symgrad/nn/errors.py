"""What can go wrong with modules and their functions, in PyTorch's words.

In: what happened.  Out: SymgradErrors that are also the builtin error that PyTorch raises.
"""

from __future__ import annotations

from symgrad.errors import ShapeError, SymgradError


class ModuleValueError(SymgradError, ValueError):
    """A value that a module or a function of modules does not take."""


class ModuleAssertionError(SymgradError, AssertionError):
    """A setting for which torch has an assertion."""


class ModuleTypeError(SymgradError, TypeError):
    """Something of another type stands where a module or a parameter is needed."""


class ModuleKeyError(SymgradError, KeyError):
    """A name that a parameter, a buffer or a module cannot have, or that there is not."""


class ModuleIndexError(SymgradError, IndexError):
    """An index outside of a container."""


class ModuleAttributeError(SymgradError, AttributeError):
    """An attribute that a module does not have."""


class ModuleCallError(SymgradError, RuntimeError):
    """Settings that a module or a function of modules cannot be called with."""


class ModuleSizeError(ShapeError):
    """Sizes for which torch raises a ValueError; a trace takes them for sizes that are refused."""


class ModuleShapeError(ShapeError, RuntimeError):
    """Shapes that do not fit each other, or a module."""


class StateDictError(SymgradError, RuntimeError):
    """A state that does not fit a module."""


class MissingForwardError(SymgradError, NotImplementedError):
    """A module has no forward."""


class UnsupportedOptionError(SymgradError, NotImplementedError):
    """An option of PyTorch that symgrad does not have."""
