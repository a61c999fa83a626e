"""Products and normalisations that are blind to the number of batch axes, and when.

In: calls.  Out: ``RULES``, filled.
"""

from __future__ import annotations

from typing import Any

from symgrad.frontend.anyrank.call import (
    Call,
    broadcasts,
    fits_right,
    has_batch_axis,
    layout,
    rule,
    same_layout,
    shape_of,
)
from symgrad.frontend.tensor import SymbolicTensor


@rule("matmul __matmul__ linalg.matmul")
def _matmul(call: Call) -> Any:
    _check_product(call, call.args[0], call.args[1])
    return call.run()


@rule("__rmatmul__")
def _reflected(call: Call) -> Any:
    _check_product(call, call.args[1], call.args[0])
    return call.run()


def _check_product(call: Call, left: Any, right: Any) -> None:
    """Matrices right of the batch axis; or rows right of it, times one matrix or vector.

    Without batch axes, rows times a matrix are a vector times a matrix.
    """
    batches = [layout(side) for side in (left, right)]
    rows, table = batches
    if rows is not None and rows.right == 1 and table is None:
        if len(shape_of(right)) > 2:
            call.refuse("multiplies vectors by a batch of matrices")
        return
    if any(found is not None and found.right < 2 for found in batches):
        call.refuse("takes batch axes for rows or columns")
    broadcasts(call, [_batch(side) for side in (left, right)])


def _batch(side: Any) -> tuple[Any, ...]:
    shape = shape_of(side)
    return shape[: max(len(shape) - 2, 0)]


@rule("linear")
def _linear(call: Call) -> Any:
    """The weight and bias have no batch axes, and the vectors stand right of them."""
    fits_right(call, call.given["input"], 1)
    if has_batch_axis(call.given["weight"]) or has_batch_axis(call.given["bias"]):
        call.refuse("takes a weight with batch axes")
    bias = call.given["bias"]
    if bias is not None and len(shape_of(bias)) > 1:
        call.refuse("takes a bias with several axes")
    return call.run()


@rule("einsum")
def _einsum(call: Call) -> Any:
    """The ellipsis stands for the batch axes and for nothing else."""
    operands = call.given["operands"]
    if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        operands = operands[0]
    words = call.given["equation"].replace(" ", "").partition("->")[0].split(",")
    batches = set()
    for word, operand in zip(words, operands, strict=True):
        before, dots, after = word.partition("...")
        found = layout(operand)
        if found is None and dots and len(shape_of(operand)) != len(before) + len(after):
            call.refuse("has an ellipsis for axes other than the batch axes")
        if found is not None and not (
            dots and (found.left, found.right) == (len(before), len(after))
        ):
            call.refuse("labels batch axes")
        batches |= {found.batch} if found is not None else set()
    if len(batches) > 1:
        call.refuse("lets different batch axes meet")
    return call.run()


@rule("scaled_dot_product_attention")
def _attention(call: Call) -> Any:
    """Matrices right of the batch axis; the mask has the same batch axes or none."""
    matrices = [call.given[name] for name in ("query", "key", "value")]
    same_layout(call, matrices)
    for matrix in matrices:
        fits_right(call, matrix, 2)
    if isinstance(call.given["attn_mask"], SymbolicTensor):
        broadcasts(call, [shape_of(matrices[0]), shape_of(call.given["attn_mask"])])
    return call.run()


@rule("layer_norm rms_norm")
def _normalised(call: Call) -> Any:
    """Over last axes that are no batch axes."""
    found = layout(call.given["input"])
    shape = call.given["normalized_shape"]
    several = isinstance(shape, (tuple, list))
    if found is None or (several and (len(shape) > found.right)) or found.right < 1:
        call.refuse("reaches into the batch axes")
    broadcasts(call, [shape_of(tensor) for tensor in call.tensors])
    return call.run()


@rule(
    "inverse det logdet slogdet cholesky matrix_power "
    "linalg.inv linalg.det linalg.slogdet linalg.cholesky linalg.matrix_power"
)
def _matrices(call: Call) -> Any:
    """Of the last two axes."""
    fits_right(call, call.args[0], 2)
    return call.run()
