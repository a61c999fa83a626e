"""What is said where the judge itself fails: never a verdict, never a traceback.

In: an exception of symgrad's own code.  Out: words, for what becomes UNDECIDED.
"""

from __future__ import annotations

import traceback
from pathlib import Path

from symgrad.errors import GraphError, SymgradError


def failure(error: Exception) -> str:
    """Why nothing can be said: what went wrong, and where in symgrad."""
    if isinstance(error, SymgradError) and not isinstance(error, GraphError):
        return error.what
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    said = " ".join(str(error).split())
    return f"the judge failed with {type(error).__name__}{where}{': ' if said else ''}{said}"
