"""Writing to tensors in place: what is allowed, and the plans of what it does to histories.

In: a tensor that an operation writes to.  Out: nothing, or an error; plans of views and writes.
"""

from __future__ import annotations

import functools

import numpy as np

from symgrad.budgets import MOST_WRITE_PLANS
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.frontend.views import Step
from symgrad.tensor import errors
from symgrad.tensor.modes import state
from symgrad.tensor.plans.plan import Place, Plan, Slot, make_plan
from symgrad.tensor.plans.program import sizes
from symgrad.tensor.tensor import Array, Tensor


def check(tensor: Tensor) -> None:
    """May this tensor be written in place?  Raises InPlaceError."""
    if not tensor._array.flags.writeable:
        raise errors.InPlaceError(
            "unsupported operation: more than one element of the written-to tensor refers to a "
            "single memory location. Please clone() the tensor before performing the operation."
        )
    if not state.grad_enabled:
        return
    base = tensor._base
    if base is not None and tensor._creation and base.requires_grad:
        raise errors.InPlaceError(_forbidden(tensor))
    if not tensor.requires_grad:
        return
    if base is not None and base.is_leaf and base._requires_grad:
        raise errors.InPlaceError(errors.LEAF_VIEW_IN_PLACE)
    if tensor.is_leaf:
        raise errors.InPlaceError(errors.LEAF_IN_PLACE, hint=_LEAF_HINT)


_LEAF_HINT = "write under sg.no_grad(), or to a clone()"
_SEVERAL = (
    "Output {number} of {name} is a view and is being modified inplace. This view is the output of "
    "a function that returns multiple views. Such functions do not allow the output views to be "
    "modified inplace. You should replace the inplace operation by an out-of-place one."
)
_NOT_RECORDED = (
    "A view was created in no_grad mode and is being modified inplace with grad mode enabled. "
    "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your "
    "code by moving both the view and the inplace either both inside the no_grad block (if you "
    "don't want the inplace to be tracked) or both outside (if you want the inplace to be tracked)."
)


def _forbidden(tensor: Tensor) -> str:
    """Why a view may not be written."""
    if tensor._creation == "no_grad":
        return _NOT_RECORDED
    node = tensor._grad_fn
    name = "a function" if node is None else node.name().removesuffix("Backward0")
    return _SEVERAL.format(number=tensor._output_number, name=name)


def write(tensor: Tensor, contents: Array) -> None:
    """Replace its elements, and count the write for those that saved it."""
    np.copyto(tensor._array, contents, casting="unsafe")
    before = tensor.counter().value
    tensor.counter().value = before + 1
    if tensor._base is None:
        tensor._seen = before + 1


@functools.lru_cache(maxsize=MOST_WRITE_PLANS)
def view_plan(base: Slot, steps: tuple[Step, ...]) -> Plan:
    """The view of a base after ``steps``."""

    def call(whole: SymbolicTensor) -> SymbolicTensor:
        return whole.shared(*steps)

    return make_plan("as_strided", call, (Place(0),), {}, [base], base.dtype)


@functools.lru_cache(maxsize=MOST_WRITE_PLANS)
def slices_plan(base: Slot, steps: tuple[Step, ...]) -> Plan:
    """The base with the part that ``steps`` lead to replaced."""

    def call(whole: SymbolicTensor, part: SymbolicTensor) -> SymbolicTensor:
        copy = SymbolicTensor(type(whole.storage)(whole.node), strides=whole.strides)
        copy.shared(*steps).write(part.node)
        return copy

    shape = _shape_after(base, steps)
    slots = [base, Slot(base.dtype, shape)]
    return make_plan("copy_slices", call, (Place(0), Place(1)), {}, slots, base.dtype)


def _shape_after(base: Slot, steps: tuple[Step, ...]) -> tuple[int, ...]:
    return sizes(view_plan(base, steps).outputs[0].node.shape)
