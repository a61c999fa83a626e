"""What can go wrong with tensors and the graph behind them, in PyTorch's words.

In: what happened.  Out: SymgradErrors that are also the builtin error that PyTorch raises.
"""

from __future__ import annotations

from symgrad.errors import DTypeError, ProtocolError, ShapeError, SymgradError


class AutogradError(SymgradError, RuntimeError):
    """The graph behind a tensor does not allow what was asked for."""


class InPlaceError(AutogradError):
    """A tensor is modified in place where its history does not allow it."""


class SavedTensorError(AutogradError):
    """What backward needs was modified after it was saved."""


class FreedGraphError(AutogradError):
    """Backward goes through a graph whose saved tensors were freed."""


class MissingBackwardError(AutogradError, NotImplementedError):
    """A Function has no backward, and none can be derived."""


class GradcheckError(AutogradError):
    """Numerical and analytical gradients differ."""


class VmapError(AutogradError, NotImplementedError):
    """Something that cannot be done for all elements of a batch at once."""


class ForeignOperand(Exception):
    """An operand of an operation is no array with a tape: another interpreter applies it."""


class DivisionError(AutogradError, ZeroDivisionError):
    """An integer is divided by zero."""


class TensorTypeError(SymgradError, TypeError):
    """A tensor, a dtype or a number is needed, and something else was given."""


class TensorValueError(SymgradError, ValueError):
    """A value that an operation on tensors does not take."""


class TensorIndexError(SymgradError, IndexError):
    """An index outside of its axis."""


class NotATensorError(ProtocolError, TypeError):
    """Something else stands where a tensor is needed; PyTorch raises now one, now the other."""


class EagerShapeError(ShapeError, RuntimeError, IndexError):
    """Shapes that do not fit: PyTorch raises a RuntimeError, for axes an IndexError."""


class EagerDTypeError(DTypeError, RuntimeError):
    """Dtypes that do not fit: PyTorch raises a RuntimeError or a TypeError."""


DIVISION_BY_ZERO = "ZeroDivisionError: an integer is divided by zero"
LEAF_IN_PLACE = "a leaf Variable that requires grad is being used in an in-place operation."
LEAF_VIEW_IN_PLACE = (
    "a view of a leaf Variable that requires grad is being used in an in-place operation."
)
SECOND_BACKWARD = (
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been freed). Saved intermediate values of the graph are freed when you call "
    ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
    "graph a second time or if you need to access saved tensors after calling backward."
)
BACKWARD_INSIDE = (
    "backward() called inside a function that is being differentiated by sg.grad, sg.vjp, sg.jvp "
    "or their like. This is not supported: it adds to .grad, which nothing outside can follow."
)
NO_GRAD_FN = "element {number} of tensors does not require grad and does not have a grad_fn"
NOT_SCALAR = "grad can be implicitly created only for scalar outputs"
UNUSED = (
    "The differentiated Tensor at index {number} appears to not have been used in the graph. Set "
    "allow_unused=True if this is the desired behavior."
)
NON_LEAF_GRAD = (
    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad "
    "attribute won't be populated during autograd.backward(). If you indeed want the .grad field "
    "to be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. If you "
    "access the non-leaf Tensor by mistake, make sure you access the leaf Tensor instead."
)
CREATE_GRAPH = (
    "Using backward() with create_graph=True will create a reference cycle between the parameter "
    "and its gradient which can cause a memory leak. We recommend using autograd.grad when "
    "creating the graph to avoid this. If you have to use this function, make sure to reset the "
    ".grad fields of your parameters to None after use to break the cycle and avoid the leak."
)
NUMPY_NEEDS_DETACH = (
    "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
)
