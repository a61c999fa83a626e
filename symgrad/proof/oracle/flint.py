"""What the proof uses of python-flint, or an error that says that it is missing.

In: nothing.  Out: FLINT's numbers.  Importing this raises DependencyError where python-flint is
missing or broken.
"""

from __future__ import annotations

from symgrad.errors import DependencyError

try:
    from flint import acb, acb_mat, arb, arb_series, ctx, fmpq, fmpz
except ImportError as error:
    raise DependencyError(
        f"python-flint, which refutations and audits are computed with, cannot be used: {error}",
        hint="install it: python -m pip install --force-reinstall python-flint",
    ) from error

__all__ = ["acb", "acb_mat", "arb", "arb_series", "ctx", "fmpq", "fmpz"]
