"""Between the places of an axis: quantiles, places among boundaries, images at other places.

In: tensors.  Out: tensors.

Which two elements a place lies between is computed in whole numbers where it is made of sizes; both
are read, and weighted.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from symgrad.errors import DTypeError, ShapeError, UnsupportedOpError
from symgrad.frontend.caller import here
from symgrad.frontend.constants import known_values
from symgrad.frontend.functions.arithmetic import (
    add,
    div,
    floor_divide,
    mul,
    remainder,
    sub,
)
from symgrad.frontend.functions.casting import converted
from symgrad.frontend.functions.comparisons import logical_and, logical_not, logical_or, where
from symgrad.frontend.functions.creation import arange
from symgrad.frontend.functions.gathering import gather
from symgrad.frontend.functions.joining import stack
from symgrad.frontend.functions.mathematics import clamp
from symgrad.frontend.functions.movement import axis_of, movedim
from symgrad.frontend.functions.reductions import sum
from symgrad.frontend.functions.sorting import sort
from symgrad.frontend.lift import as_tensor, elementwise, is_number
from symgrad.frontend.questions import questions
from symgrad.frontend.session import current
from symgrad.frontend.sizes import as_dim, as_size
from symgrad.frontend.table import OperationCallError, operation
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import int32, int64
from symgrad.ops.integers import truth

Tensor = SymbolicTensor


# -- places among boundaries


@operation("searchsorted", method=False)
def searchsorted(
    sorted_sequence: Any, input: Any, *, out_int32: bool = False, right: bool = False,
    side: str | None = None, sorter: Any = None,
) -> Tensor:  # fmt: skip
    """How many elements of each row come before a value; with ``right``, its equals do too."""
    if side not in (None, "left", "right"):
        raise OperationCallError("side can only be 'left' or 'right'", location=here())
    if sorter is not None:
        raise UnsupportedOpError(
            "searchsorted does not take a sorter", location=here(), hint="gather the boundaries"
        )
    rows, values = as_tensor(sorted_sequence), as_tensor(input)
    if rows.ndim > 1 and rows.node.shape[:-1] != values.node.shape[:-1]:
        raise ShapeError(
            f"searchsorted: rows {rows.node.type} and values {values.node.type}", location=here(),
            equal=zip(rows.node.shape[:-1], values.node.shape[:-1], strict=False),
        )  # fmt: skip
    return _counted(rows, values, right or side == "right", out_int32)


@operation("bucketize", method=False)
def bucketize(
    input: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False
) -> Tensor:  # fmt: skip
    """How many boundaries come before each value; with ``right``, its equals do too."""
    rows = as_tensor(boundaries)
    if rows.ndim != 1:
        raise ShapeError("bucketize: the boundaries are of one axis", location=here())
    return _counted(rows, as_tensor(input), right, out_int32)


_IN_ORDER = "the boundaries among which values are placed are in ascending order"


def _counted(rows: Tensor, values: Tensor, right: bool, out_int32: bool) -> Tensor:
    """NaN comes after all numbers."""
    _ascend(rows)
    relation = "gt" if right else "ge"
    across = rows if rows.ndim == 1 else rows.unsqueeze(-2)
    before = logical_not(elementwise(relation, across, values.unsqueeze(-1)))
    return converted(sum(converted(before, int64), -1), int32 if out_int32 else int64)


def _ascend(rows: Tensor) -> None:
    """Raises UnsupportedOpError for constants that are not in order; of others it is demanded."""
    values = known_values(rows.node)
    if values is None and questions() is not None:
        places = arange(rows.shape[-1])
        later = elementwise("ge", places.unsqueeze(-1), places)
        ascend = elementwise("ge", rows.unsqueeze(-1), rows.unsqueeze(-2))
        demand = truth(logical_or(logical_not(later), ascend).node)
        current().demanded.note(demand, here(), _IN_ORDER)
    if values is not None and bool((np.diff(values) < 0).any()):
        raise UnsupportedOpError(
            "values are placed among boundaries that are not in ascending order", location=here()
        )


# -- quantiles

_BETWEEN: dict[str, Callable[[Any, Any, Any], Any]] = {
    "linear": lambda low, high, part: add(low, mul(sub(high, low), part)),
    "lower": lambda low, high, part: low,
    "higher": lambda low, high, part: where(elementwise("gt", part, 0), high, low),
    "midpoint": lambda low, high, part: where(
        elementwise("gt", part, 0), mul(add(low, high), 0.5), low
    ),
}


@operation("quantile")
def quantile(
    input: Any, q: Any, dim: Any = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:  # fmt: skip
    """What the part ``q`` of the elements along an axis lies below."""
    source = as_tensor(input)
    if interpolation not in _BETWEEN:
        raise UnsupportedOpError(
            f"quantile has no interpolation {interpolation!r}", location=here(),
            hint=f"there are {', '.join(_BETWEEN)}",
        )  # fmt: skip
    if not source.dtype.is_float:
        raise DTypeError("quantile() input tensor must be either float or double dtype",
                         location=here())  # fmt: skip
    if not is_number(q):
        values = known_values(as_tensor(q).node)
        if values is None or values.ndim > 1:
            raise UnsupportedOpError("quantile takes numbers as q", location=here())
        parts = [
            quantile(source, float(one), dim, keepdim, interpolation=interpolation)
            for one in values.reshape(-1)
        ]
        return stack(parts) if values.ndim else parts[0]
    if not 0 <= q <= 1:
        raise OperationCallError(f"quantile() q values must be in the range [0, 1], not {q}",
                                 location=here())  # fmt: skip
    rank = source.ndim
    row = source.flatten() if dim is None else movedim(source, axis_of(dim, rank), -1)
    found = _quantile(row if rank else source.reshape(1), q, interpolation)
    if not keepdim:
        return found.squeeze(-1)  # type: ignore[no-any-return]
    if dim is None:
        return found.reshape(*(1 for _ in range(rank)))  # type: ignore[no-any-return]
    return movedim(found, -1, axis_of(dim, rank))


def _quantile(row: Tensor, q: float, interpolation: str) -> Tensor:
    """The last axis has size 1 then."""
    last = as_size(row.node.shape[-1] - 1)
    place = mul(elementwise("add", last, 0.0, floats=True), q)
    under = elementwise("floor", place)
    at = converted(under, int64)
    ordered = sort(row, -1).values
    low, high = (_element(ordered, one) for one in (at, clamp(add(at, 1), None, last)))
    found: Tensor = _BETWEEN[interpolation](low, high, sub(place, under))
    return found


def _element(row: Tensor, place: Tensor) -> Tensor:
    """The element at a place, in each row."""
    places = place.expand(*row.shape[:-1], 1)
    return gather(row, -1, places)


# -- images at other places


def linearly(
    source: Tensor, axis: int, wanted: Any, align_corners: bool, ratio: Fraction | None = None
) -> Tensor:  # fmt: skip
    """An axis with ``wanted`` elements, each a mean of the two that lie nearest to its place.

    The first and the last elements keep their places with ``align_corners``, else the edges do.
    ``ratio``: from one place to the next, in elements, where it does not follow from the sizes.
    """
    row = movedim(source, axis, -1)
    size = as_size(row.node.shape[-1])
    far, over = _places(size, wanted, align_corners, ratio)
    far = far if align_corners else clamp(far, 0)
    at = floor_divide(far, over)
    part = div(converted(remainder(far, over), row.dtype), over)
    low, high = (
        row[(..., clamp(one, None, size - 1) if side or ratio is not None else one)]
        for side, one in enumerate((at, add(at, 1)))
    )
    return movedim(add(low, mul(sub(high, low), part)), -1, axis)


def cubically(
    source: Tensor, axis: int, wanted: Any, align_corners: bool, ratio: Fraction | None = None
) -> Tensor:  # fmt: skip
    """The same by cubic polynomials through four elements; the outermost stand beyond the edges."""
    row = movedim(source, axis, -1)
    size = as_size(row.node.shape[-1])
    far, over = _places(size, wanted, align_corners, ratio)
    at = floor_divide(far, over)
    part = div(converted(remainder(far, over), row.dtype), over)
    pieces = [
        mul(row[(..., clamp(add(at, place - 1), 0, size - 1))], share)
        for place, share in enumerate(_cubic(part))
    ]
    return movedim(functools.reduce(add, pieces), -1, axis)


def _places(
    size: Any, wanted: Any, align_corners: bool, ratio: Fraction | None
) -> tuple[Tensor, Any]:  # fmt: skip
    """Where the elements lie that are wanted: whole numbers, over a whole number."""
    steps = arange(wanted)
    if align_corners:
        return mul(steps, size - 1), clamp(as_tensor(wanted) - 1, 1)
    along, over = (size, wanted) if ratio is None else (ratio.numerator, ratio.denominator)
    return sub(mul(add(mul(steps, 2), 1), along), over), as_tensor(over) * 2


_BEND = -0.75
"""The parameter of torch's cubic polynomials."""


def _cubic(part: Tensor) -> tuple[Tensor, ...]:
    """What four elements count for a place between the second and the third of them."""

    def near(x: Tensor) -> Tensor:
        return ((_BEND + 2) * x - (_BEND + 3)) * x * x + 1

    def far(x: Tensor) -> Tensor:
        return ((_BEND * x - 5 * _BEND) * x + 8 * _BEND) * x - 4 * _BEND

    return far(part + 1), near(part), near(1 - part), far(2 - part)


@operation("affine_grid", method=False)
def affine_grid(theta: Any, size: Any, align_corners: bool | None = None) -> Tensor:
    """The places that an affine map has for those of an image: batch, height, width, 2."""
    maps = as_tensor(theta)
    count = len(size) - 2
    fits = maps.ndim == 3 and maps.shape[1:] == (count, count + 1)
    if count not in (2, 3) or not fits or maps.node.shape[0] != as_dim(size[0]):
        known = maps.ndim == 3 and count in (2, 3)
        shape = maps.node.shape
        raise ShapeError(
            f"affine_grid: maps {maps.node.type} for {count} axes", location=here(),
            equal=zip(shape, (as_dim(size[0]), Dim.of(count), Dim.of(count + 1)), strict=True)
            if known else (),
        )  # fmt: skip
    found: Tensor = maps[:, :, count].reshape(maps.shape[0], *(1,) * count, count)
    for axis, one in enumerate(reversed(size[2:])):
        steps = converted(arange(one), maps.dtype)
        ends = clamp(as_tensor(one) - 1, 1) if align_corners else one
        lined = [-1 if at == count - 1 - axis else 1 for at in range(count)]
        ramp = div(sub(mul(steps, 2), one - 1), ends).reshape(*lined, 1)
        found = add(found, mul(maps[:, :, axis].reshape(-1, *(1,) * count, count), ramp))
    return found


@operation("grid_sample", method=False)
def grid_sample(
    input: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:  # fmt: skip
    """An image at the places of a grid, from -1 to 1; 0, its edge or its reflection beyond."""
    source, places = as_tensor(input), as_tensor(grid)
    if mode not in ("bilinear", "nearest") or padding_mode not in _PADDINGS:
        raise UnsupportedOpError(
            f"grid_sample has no mode {mode!r} with {padding_mode!r}", location=here(),
            hint=f"bilinear and nearest are there, with {', '.join(_PADDINGS)}",
        )  # fmt: skip
    if source.ndim != 4 or places.ndim != 4:
        raise UnsupportedOpError(
            "grid_sample takes images of two axes, and a grid of their places", location=here()
        )
    sizes = [(places.node.shape[-1], Dim.of(2)), (places.node.shape[0], source.node.shape[0])]
    if any(one != other for one, other in sizes):
        raise ShapeError(
            f"grid_sample: a grid {places.node.type} for images {source.node.type}",
            location=here(), equal=sizes,
        )  # fmt: skip
    across, down = (
        _placed(places[..., axis], source.shape[-1 - axis], padding_mode, bool(align_corners))
        for axis in (0, 1)
    )
    if mode == "nearest":
        near = (elementwise("round", one) for one in (across, down))
        return _at_places(source, *near)
    left, top = (elementwise("floor", one) for one in (across, down))
    right, low = sub(across, left), sub(down, top)
    corners = [
        mul(_at_places(source, add(left, x), add(top, y)), mul(_share(right, x), _share(low, y))
            .unsqueeze(1))
        for y in (0, 1) for x in (0, 1)
    ]  # fmt: skip
    return functools.reduce(add, corners)


def _share(part: Tensor, side: int) -> Tensor:
    """What the first or second of two elements counts."""
    return part if side else sub(1.0, part)


_PADDINGS = ("zeros", "border", "reflection")


def _placed(place: Tensor, size: Any, padding_mode: str, align_corners: bool) -> Tensor:
    """A place from -1 to 1 in elements."""
    found = mul(add(place, 1), 0.5)
    found = mul(found, size - 1) if align_corners else sub(mul(found, size), 0.5)
    if padding_mode == "reflection":
        found = _reflected(found, size, align_corners)
    return found if padding_mode == "zeros" else clamp(found, 0, size - 1)


def _reflected(place: Tensor, size: Any, align_corners: bool) -> Tensor:
    """A place folded between the first and the last element, or the outer edges of both."""
    if align_corners and size == 1:
        return mul(place, 0)
    low, span = (0, size - 1) if align_corners else (-0.5, size)
    beyond = elementwise("abs", sub(place, low))
    folds = elementwise("floor", div(beyond, span))
    rest = sub(beyond, mul(folds, span))
    return add(where(elementwise("eq", remainder(folds, 2), 0), rest, sub(span, rest)), low)


def _at_places(source: Tensor, across: Tensor, down: Tensor) -> Tensor:
    """The elements at whole places, and 0 outside."""
    batch, _, height, width = source.shape
    inside = functools.reduce(
        logical_and,
        (elementwise(relation, one, bound)
         for one, size in ((across, width), (down, height))
         for relation, bound in (("ge", 0), ("lt", size))),
    )  # fmt: skip
    column, row = (
        clamp(converted(where(inside, one, 0.0), int64), 0, size - 1)
        for one, size in ((across, width), (down, height))
    )
    lines = arange(batch).reshape(-1, 1, 1)
    found = source.permute(0, 2, 3, 1)[lines, row, column].permute(0, 3, 1, 2)
    return where(inside.unsqueeze(1), found, 0.0)
