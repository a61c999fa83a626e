"""An op whose kernels cannot be compiled: a warning, or an error where the caller is strict.

In: what was to be compiled, and why it was not.  Out: NumpyBackendWarning, or the error.

``SYMGRAD_STRICT=1`` is strict for the whole process, ``strict=True`` for one op.
"""

from __future__ import annotations

import os
import warnings

from .errors import BuildError, SymgradError

_told: set[str] = set()


class NumpyBackendWarning(RuntimeWarning):
    """Something runs on NumPy because its C could not be compiled."""


def is_strict() -> bool:
    """Is ``SYMGRAD_STRICT`` set, to anything but 0?"""
    return os.environ.get("SYMGRAD_STRICT", "") not in ("", "0")


def fall_back(
    what: str, error: Exception, *, strict: bool = False, once: bool = False, stacklevel: int = 1
) -> None:
    """Say that ``what`` runs on NumPy because of ``error``, which is raised where strict.

    ``once``: in this process.
    """
    if strict or is_strict():
        raise error if isinstance(error, SymgradError) else BuildError(str(error)) from error
    if once and what in _told:
        return
    _told.add(what)
    why = error.what if isinstance(error, SymgradError) else str(error)
    warnings.warn(f"{what} on NumPy: {why}", NumpyBackendWarning, stacklevel=stacklevel + 1)
