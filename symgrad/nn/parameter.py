"""``Parameter``: a tensor that a module counts among its own.

In: a tensor.  Out: a leaf in the same memory.
"""

from __future__ import annotations

from symgrad.nn.errors import ModuleTypeError
from symgrad.tensor import Tensor


class Parameter(Tensor):
    """A leaf that requires grad; as an attribute of a ``Module`` it is one of its parameters.

    ``data``: a tensor, whose memory is shared.  Raises ModuleTypeError for anything else.
    """

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True) -> None:
        if data is None:
            super().__init__(())
        elif isinstance(data, Tensor):
            self._array = data._array
        else:
            raise ModuleTypeError(
                f"a Parameter is made of a Tensor, not of a {type(data).__name__}",
                hint="sg.nn.Parameter(sg.tensor(...))",
            )
        if requires_grad:
            self.requires_grad_()

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"

    __str__ = __repr__
