"""Functions of torch on tensors of symgrad: an error that names the operation to write instead.

In: a function of torch's, called with a traced or an eager tensor.  Out: TorchFunctionError.

torch asks the class of each argument for ``__torch_function__`` before it reads the argument.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symgrad.errors import UnsupportedOpError
from symgrad.frontend.caller import frame_location, user_frame
from symgrad.frontend.questions import note_limit
from symgrad.frontend.table import FUNCTIONS
from symgrad.frontend.tensor import SymbolicTensor


class TorchFunctionError(UnsupportedOpError):
    """A function of torch's was called with a tensor of symgrad's."""


def torch_function(
    cls: type, function: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
) -> Any:
    """Raises TorchFunctionError at the user's line."""
    name = getattr(function, "__name__", "")
    given = (*args, *(kwargs or {}).values())
    what, hint = f"torch's {name} takes no tensor of symgrad", f"write sg.{name}"
    if any(type(one).__module__.partition(".")[0] == "torch" for one in given):
        what = f"{name} of a tensor of torch and a tensor of symgrad"
        hint = "make both tensors of symgrad: sg.tensor(w.numpy())"
    elif name not in FUNCTIONS:
        hint = "write it with operations of symgrad"
    place = frame_location(user_frame(("symgrad.", "torch.")))
    error = TorchFunctionError(what, location=place, hint=hint)
    note_limit(error)
    raise error


setattr(SymbolicTensor, "__torch_function__", classmethod(torch_function))  # noqa: B010
