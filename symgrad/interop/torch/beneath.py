"""ATen operations: what torch takes a function apart into that symgrad has no operation for.

In: a function of torch's, or an ATen operation, with traced tensors among its arguments.  Out: what
it gives, as part of the graph; or an error that names the operation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from symgrad.frontend.caller import here
from symgrad.frontend.questions import note_limit
from symgrad.frontend.unsupported import missing_op


def taken_apart(func: Any, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What torch makes of a function.  Raises MissingOperationError."""
    raise note_limit(missing_op(f"torch.{name}", here()))


def call(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """An ATen operation.  Raises MissingOperationError."""
    raise note_limit(missing_op(str(func), here()))
