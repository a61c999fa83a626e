"""Operands: Python numbers, sizes, NumPy arrays and tensors brought to one dtype and shape.

In: what the user passed to an operation.  Out: nodes that an elementwise op takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.budgets import MOST_CONSTANTS
from symgrad.errors import DTypeError, ShapeError, TraceError
from symgrad.frontend.caller import here
from symgrad.frontend.dtypes import as_dtype, number_category, promoted
from symgrad.frontend.kinds import OperationTypeError, class_name, tensor_hint
from symgrad.frontend.session import Session, current
from symgrad.frontend.sizes import Shape, SymFloat, SymInt
from symgrad.frontend.tensor import (
    SelectedShapeError,
    SelectedTensor,
    SymbolicTensor,
    fresh,
    packed,
)
from symgrad.frontend.views import concatenate, lies_without_gaps
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import DType, bool_, int32, int64
from symgrad.ir.graph import Node


class IndexKindError(ShapeError):
    """An index that holds no integers."""


def is_number(value: Any) -> bool:
    """A Python or NumPy number, or a symbolic size or a float computed from one."""
    return isinstance(value, (bool, int, float, np.number, np.bool_, SymInt, SymFloat))


def is_operand(value: Any) -> bool:
    """Anything that arithmetic with a tensor accepts."""
    return isinstance(value, (SymbolicTensor, np.ndarray)) or is_number(value)


def as_node(value: Any, dtype: DType | None = None) -> Node:
    """Anything that is an operand, as a node; numbers have rank 0 and ``dtype`` (or their own)."""
    session = current()
    if isinstance(value, SelectedTensor):
        node = value.whole
    elif isinstance(value, SymbolicTensor):
        node = value.node
    elif isinstance(value, (SymInt, SymFloat)):
        if dtype is None and isinstance(value, SymFloat):
            value.type_is_asked()
        return value.node(dtype or (int64 if value.is_whole else session.dtype))
    elif isinstance(value, (bool, int, float, np.number, np.bool_)):
        return number_node(session, value, dtype)
    elif isinstance(value, np.ndarray):
        node = array_node(session, value)
    elif isinstance(value, complex):
        raise DTypeError("complex numbers are not supported", location=here())
    else:
        raise OperationTypeError(
            f"a tensor or a number is needed here, not {class_name(value)}", location=here(),
            hint=tensor_hint(value),
        )  # fmt: skip
    return node if dtype is None else session.cast(node, dtype)


def as_index(node: Node, *others: DType) -> Node:
    """An index as a node of int64 (or of one of ``others``): int32 and int64 are indices.

    A mask of uint8, as of bool, is one where it is not 0.  Raises ShapeError, as torch does.
    """
    session = current()
    if node.dtype in (int32, int64):
        return session.cast(node, int64)
    if node.dtype not in others:
        kinds = ", ".join(str(dtype) for dtype in (int32, int64, *others))
        raise IndexKindError(
            f"an index must be of {kinds}, not {node.dtype}", location=here(),
            hint="convert it with .long()",
        )  # fmt: skip
    return session.cast(node, bool_)


def as_tensor(value: Any) -> SymbolicTensor:
    """An operand as a tensor; a tensor is itself, anything else a new constant."""
    return value if isinstance(value, SymbolicTensor) else fresh(as_node(value))


def setting(value: Any, dtype: DType) -> Any:
    """A number as an op on tensors of ``dtype`` takes it: cut off at the point for integers."""
    cut = is_number(value) and not dtype.is_float
    return fresh(as_node(value, dtype)) if cut else value


def number_node(session: Session, value: Any, dtype: DType | None = None) -> Node:
    """A plain number; without a dtype bools are bool, integers int64, floats the default."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, complex):
        raise DTypeError("complex numbers are not supported", location=here())
    if dtype is None:
        category = number_category(plain)
        dtype = (bool_, int64)[category] if category < 2 else session.dtype
    return session.constant(plain, dtype)


def array_node(session: Session, value: Any, dtype: DType | None = None) -> Node:
    """A small NumPy array or nested list of numbers (symbolic sizes among them) as constants."""
    if isinstance(value, (list, tuple)) and any(_holds_symbols(item) for item in value):
        nodes = [
            array_node(session, one) if isinstance(one, (list, tuple)) else as_node(one)
            for one in value
        ]
        return _stacked(session, nodes, dtype)
    array = np.asarray(value)
    if array.size > MOST_CONSTANTS:
        raise TraceError(
            f"an array of {array.size} numbers is too large to be a constant", location=here(),
            hint="pass it as an input",
        )  # fmt: skip
    is_list = not isinstance(value, np.ndarray)
    kind = dtype or (session.dtype if is_list and array.dtype.kind == "f" else None)
    kind = kind or as_dtype(array.dtype)
    nodes = [session.constant(item, kind) for item in array.reshape(-1).tolist()]
    if not nodes:
        shape = tuple(map(Dim.of, array.shape))
        return session.expand(session.constant(0, kind), shape)
    if len({node.index for node in nodes}) == 1:
        return session.expand(nodes[0], array.shape)
    single = [session.reshape(node, (1,)) for node in nodes]
    return session.reshape(concatenate(session, single, 0), array.shape)


def _holds_symbols(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_holds_symbols, value))
    return isinstance(value, (SymbolicTensor, SymInt, SymFloat))


def _stacked(session: Session, nodes: list[Node], dtype: DType | None) -> Node:
    kind = dtype or promoted([node.dtype for node in nodes], [], [], lambda: session.dtype)
    rows = [session.reshape(session.cast(node, kind), (Dim.of(1), *node.shape)) for node in nodes]
    return concatenate(session, rows, 0)


def result_dtype(operands: Sequence[Any]) -> DType:
    """The common dtype of tensors, arrays and numbers, as in torch."""
    return current().check_dtype(lambda bare: _result_dtype(operands, bare))


def _result_dtype(operands: Sequence[Any], bare: bool) -> DType:
    """``bare``: tensors whose only axes are batch axes have none."""
    dimensioned: list[DType] = []
    scalars: list[DType] = []
    numbers: list[int] = []
    for operand in operands:
        if isinstance(operand, SymbolicTensor):
            # What a mask selects is one-dimensional, whatever else is known of it.
            ranked = isinstance(operand, SelectedTensor) or _ranked(operand.node, bare)
            (dimensioned if ranked else scalars).append(operand.dtype)
        elif isinstance(operand, np.ndarray):
            (dimensioned if operand.ndim else scalars).append(as_dtype(operand.dtype))
        elif isinstance(operand, (SymInt, SymFloat)):
            numbers.append(1 if operand.is_whole else 2)
        else:
            plain = operand.item() if isinstance(operand, np.generic) else operand
            numbers.append(number_category(plain))
    return promoted(dimensioned, scalars, numbers, lambda: current().dtype)


def _ranked(node: Node, bare: bool) -> bool:
    only_batch = bare and node.rank == 1 and current().flat(node.shape[0]) != node.shape[0]
    return node.rank > 0 and not only_batch


def broadcast_shapes(*shapes: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """The common shape by torch's rule: sizes are equal, or 1, or absent on the left.

    Two symbolic sizes are equal only when they are written the same.  Raises ShapeError.
    """
    rank = max(map(len, shapes))
    result: list[Dim] = []
    for axis in range(-rank, 0):
        sizes = [shape[axis] for shape in shapes if len(shape) >= -axis and shape[axis] != 1]
        for size in sizes[1:]:
            if size != sizes[0]:
                raise _mismatch(shapes, sizes[0], size)
        result.append(sizes[0] if sizes else Dim.of(1))
    return tuple(result)


def broadcast_axes(small: Sequence[Dim], large: Sequence[Dim]) -> tuple[int, ...] | None:
    """The axes of ``large`` along which ``small`` broadcasts to it; None where it does not.

    A gradient of shape ``large`` is summed over them (``is_expandable_to`` in PyTorch).
    """
    added = len(large) - len(small)
    if added < 0:
        return None
    stretched = []
    for axis, size in enumerate(small):
        if size == large[added + axis]:
            continue
        if size != 1:
            return None
        stretched.append(added + axis)
    return (*range(added), *stretched)


def _mismatch(shapes: Sequence[tuple[Dim, ...]], left: Dim, right: Dim) -> ShapeError:
    texts = " and ".join(str(list(Shape.of(shape))) for shape in dict.fromkeys(shapes))
    hint = ""
    if left.constant is None or right.constant is None:
        hint = (
            f"if {left} and {right} are always equal, say so: write one name for both in the "
            "shape specs"
        )
    return ShapeError(
        f"shapes {texts} do not broadcast: {left} meets {right}", location=here(), hint=hint,
        equal=[(left, right)],
    )  # fmt: skip


def aligned(operands: Sequence[Any], dtype: DType | None) -> list[Node]:
    """Operands as nodes of one shape; and of ``dtype`` unless that is None."""
    session = current()
    nodes = [as_node(operand, dtype) for operand in operands]
    shape = broadcast_shapes(*(node.shape for node in nodes))
    return [session.expand(node, shape) for node in nodes]


def elementwise(op: str, *operands: Any, floats: bool = False) -> SymbolicTensor:
    """The op applied to operands brought to their common dtype and shape.

    ``floats``: integers and bools become the default float first.
    """
    dtype = result_dtype(operands)
    if floats and not dtype.is_float:
        dtype = current().dtype
    return on_nodes(lambda *nodes: current().apply(op, *nodes), operands, dtype)


def on_nodes(
    compute: Callable[..., Node], operands: Sequence[Any], dtype: DType | None
) -> SymbolicTensor:
    """``compute`` applied to operands brought to ``dtype`` and one shape.

    Operands that a mask selects (``x[mask]``) are computed whole and stay selected, as long as they
    are selected alike.
    """
    try:
        selected = common_selection(operands)
        lined = [] if selected is None else [lined_up(one, selected) for one in operands]
    except SelectedShapeError as error:
        operands, selected = packed(operands, error), None
    if selected is None:
        made, strides = compute(*aligned(operands, dtype)), _common_strides(operands)
        if strides is None:
            return fresh(made)
        found = fresh(made, settled=True)
        if strides:
            found.lies_as(strides, None)
        return found
    return selected.with_whole(compute(*aligned(lined, dtype)))


def _common_strides(operands: Sequence[Any]) -> tuple[Dim, ...] | None:
    """The strides of an elementwise result where they are certain; empty for contiguous ones.

    torch keeps those of operands that have all axes, in whatever order, and lie without gaps.
    """
    tensors = [one for one in operands if isinstance(one, SymbolicTensor)]
    if any(one.certain is not None for one in tensors):
        return None
    if all(one.lies_contiguous for one in tensors):
        return ()
    wide = [one for one in tensors if one.node.shape]
    alike = {(one.node.shape, one.strides) for one in wide}
    (shape, strides), *others = alike
    if others or not all(isinstance(one, SymbolicTensor) or is_number(one) for one in operands):
        return None
    return strides if lies_without_gaps(shape, strides) else None


def common_selection(operands: Sequence[Any]) -> SelectedTensor | None:
    """One of the operands that a mask selects; None where none is.

    Raises UnsupportedOpError where one is not selected by the same mask.
    """
    selected = [operand for operand in operands if isinstance(operand, SelectedTensor)]
    if not selected:
        return None
    first = selected[0]
    if any(one.mask is not first.mask or one.behind != first.behind for one in selected):
        raise not_selected(first)
    return first


def lined_up(operand: Any, selected: SelectedTensor) -> Any:
    """An operand beside what a mask selects, as it broadcasts beside the whole.

    What is not selected has size 1 along their axis, or only the axes behind it.
    """
    if isinstance(operand, SelectedTensor) or not isinstance(operand, (SymbolicTensor, np.ndarray)):
        return operand
    node = as_node(operand)
    at = node.rank - 1 - selected.behind
    if at < 0:
        return operand
    if node.shape[at] != 1:
        raise not_selected(selected)
    ones = (Dim.of(1),) * selected.mask.rank
    return fresh(current().reshape(node, (*node.shape[:at], *ones, *node.shape[at + 1 :])))


def not_selected(selected: SelectedTensor) -> SelectedShapeError:
    """The error where what a mask selects meets something else."""
    return SelectedShapeError(
        "elements that a mask selects meet a tensor that is not selected by the same mask",
        location=here(), hint="select from it too, as in x[mask] = y[mask]; or compute with whole "
        "tensors, and choose with sg.where last", **selected.size_to_know(),
    )  # fmt: skip
