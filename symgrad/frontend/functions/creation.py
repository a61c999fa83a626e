"""New tensors: zeros, ones, ramps, identity matrices, constants.

In: sizes (symbolic ones too), numbers, dtypes.  Out: tensors.
Where a device or layout is asked for, it is
ignored.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.errors import DTypeError, ShapeError, UnsupportedOpError
from symgrad.frontend.caller import here
from symgrad.frontend.dtypes import as_dtype, check_fits
from symgrad.frontend.functions.casting import alike, clone, converted, laid_out
from symgrad.frontend.functions.movement import shape_of, share, whole_shape
from symgrad.frontend.history import unlinked
from symgrad.frontend.kinds import is_tensor, refused
from symgrad.frontend.lift import array_node, as_node, as_tensor, is_number, result_dtype
from symgrad.frontend.session import current
from symgrad.frontend.sizes import Shape, SymFloat, SymInt, as_dim, is_size
from symgrad.frontend.table import OperationCallError, operation
from symgrad.frontend.tensor import SymbolicTensor, fresh
from symgrad.frontend.views import Expand, Reshape, iota_along
from symgrad.ir.dim import Dim, product
from symgrad.ir.dtype import DType, float64, int64
from symgrad.ir.graph import Node

Tensor = SymbolicTensor


def filled(
    value: Any, shape: tuple[Dim, ...], dtype: DType | None = None, *, settled: bool = True
) -> Tensor:  # fmt: skip
    """A tensor of one number (or of one rank-0 tensor)."""
    whole_shape(shape)
    if dtype is not None:
        check_fits(value, dtype)
    return fresh(current().expand(as_node(value, dtype), shape), settled=settled)


def _kind(dtype: Any, default: DType | None = None) -> DType:
    return as_dtype(dtype) if dtype is not None else default or current().dtype


def unwritten(name: str, made: Tensor) -> Tensor:
    """The tensor as memory that nobody wrote, which only what writes it may show."""
    session = current()
    node = session.apply("unwritten", made.storage.node, made=name)
    node.location = node.location or here()
    return fresh(node, settled=made.storage.settled)


def _made(name: str, made: Tensor, memory_format: Any) -> Tensor:
    return laid_out(unwritten(name, made) if "empty" in name else made, memory_format)


def _like(name: str, value: Any, default: DType | None = None) -> Callable[..., Tensor]:
    def call(
        input: Any, *, dtype: Any = None, memory_format: Any = None, **ignored: Any
    ) -> Tensor:  # fmt: skip
        return _made(f"{name}_like", full_like(input, value, dtype=dtype), memory_format)

    call.__name__ = call.__qualname__ = f"{name}_like"
    call.__doc__ = f"A tensor of {name} in the shape and dtype of another."
    return call


def _sized(name: str, value: Any) -> Callable[..., Tensor]:
    def call(
        *size: Any, dtype: Any = None, memory_format: Any = None, **ignored: Any
    ) -> Tensor:  # fmt: skip
        if not size and "size" in ignored:
            size = (ignored["size"],)
        return _made(name, filled(value, shape_of(size), _kind(dtype)), memory_format)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"A tensor of {name}."
    return call


def _new(name: str, value: Any) -> Callable[..., Tensor]:
    def call(self: Tensor, *size: Any, dtype: Any = None, **ignored: Any) -> Tensor:
        if not size and "size" in ignored:
            size = (ignored["size"],)
        made = filled(value, shape_of(size), _kind(dtype, self.dtype))
        return _made(f"new_{name}", made, None)

    call.__name__ = call.__qualname__ = f"new_{name}"
    call.__doc__ = f"A tensor of {name} in the dtype of this one."
    return call


# What is not initialised holds zeros in a trace; that nobody reads them is proved.
for _name, _value in (("zeros", 0), ("ones", 1), ("empty", 0)):
    operation(_name, method=False)(_sized(_name, _value))
    operation(f"{_name}_like", method=False)(_like(_name, _value))
    operation(f"new_{_name}", function=False)(_new(_name, _value))


@operation("full", method=False)
def full(size: Any, fill_value: Any, *, dtype: Any = None, **ignored: Any) -> Tensor:
    """A tensor of one number."""
    if dtype is None and isinstance(fill_value, SymFloat):
        fill_value.type_is_asked()
    kind = as_dtype(dtype) if dtype is not None else result_dtype([fill_value])
    return filled(fill_value, shape_of((size,)), kind)


@operation("full_like", method=False)
def full_like(
    input: Any, fill_value: Any, *, dtype: Any = None, memory_format: Any = None, **ignored: Any
) -> Tensor:  # fmt: skip
    """A tensor of one number in the shape and dtype of another."""
    source = as_tensor(input)
    settled = source.certain is None and source.lies_contiguous
    kind = _kind(dtype, source.dtype)
    made = filled(fill_value, source.node.shape, kind, settled=settled)
    return laid_out(made, memory_format)


@operation("new_full", function=False)
def new_full(
    self: Tensor, size: Any, fill_value: Any, *, dtype: Any = None, **ignored: Any
) -> Tensor:  # fmt: skip
    """A tensor of one number in the dtype of this one."""
    return filled(fill_value, shape_of((size,)), _kind(dtype, self.dtype))


@operation("new_tensor", function=False)
def new_tensor(self: Tensor, data: Any, *, dtype: Any = None, **ignored: Any) -> Tensor:
    """A constant in the dtype of this tensor."""
    return unlinked(as_tensor_(data, dtype=_kind(dtype, self.dtype), copy=True))


@operation("new", function=False)
def new(self: Tensor, *size: Any, **ignored: Any) -> Tensor:
    """A tensor of these sizes, or of these numbers (in a list), in the dtype of this one.

    Of a tensor, that tensor in the same memory.
    """
    if len(size) == 1 and isinstance(size[0], Tensor):
        if size[0].dtype != self.dtype:
            raise DTypeError(f"new() of {self.dtype} takes no {size[0].dtype}", location=here())
        return share(size[0])
    if len(size) == 1 and isinstance(size[0], (list, tuple)) and not isinstance(size[0], Shape):
        return new_tensor(self, size[0])
    return unwritten("new", filled(0, shape_of(size), self.dtype))


@operation("tensor", "scalar_tensor", method=False)
def tensor(data: Any, *, dtype: Any = None, **ignored: Any) -> Tensor:
    """A constant: a number, a nested list of numbers, a NumPy array; or a detached copy."""
    return unlinked(as_tensor_(data, dtype=dtype, copy=True))


@operation("as_tensor", "asarray", method=False)
def as_tensor_(data: Any, *, dtype: Any = None, copy: Any = None, **ignored: Any) -> Tensor:
    """The same of numbers; a tensor itself, where it has that dtype, unless it is to be a copy."""
    kind = as_dtype(dtype) if dtype is not None else None
    if isinstance(data, Tensor):
        source = clone(data) if copy else data
        return source if kind is None else alike(source, converted(source, kind), "as_tensor")
    if kind is not None and kind.is_integer:
        check_fits(data, kind)
    if is_number(data):
        return fresh(as_node(data, kind))
    return fresh(array_node(current(), data, kind), settled=True)


# -- ramps


@operation("arange", method=False)
def arange(
    start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None, **ignored: Any
) -> Tensor:  # fmt: skip
    """The numbers from ``start`` (0) up to ``end``, without it, by ``step``."""
    if end is None:
        start, end = 0, start
    for name, value in (("start", start), ("end", end), ("step", step)):
        if not isinstance(value, Tensor) and not is_number(value):
            raise refused("arange", name, "Number", value)
    whole = all(is_size(value) for value in (start, end, step))
    kind = as_dtype(dtype) if dtype is not None else (int64 if whole else current().dtype)
    if kind == int64:  # torch cuts off its bounds, and counts then
        start, end, step = (
            int(one) if isinstance(one, float) else one for one in (start, end, step)
        )
    length = _ramp_length(start, end, step)
    return fresh(_ramp(length, start, step, kind))


def _ramp_length(start: Any, end: Any, step: Any) -> Dim:
    """How many numbers there are; sizes are divided with floor, which is exact for integers."""
    if isinstance(step, (int, float)) and step == 0:
        raise ShapeError("arange: the step must not be 0", location=here())
    plain = all(isinstance(value, (int, float)) for value in (start, end, step))
    if plain and (end - start if step > 0 else start - end) < 0:
        raise OperationCallError(
            "upper bound and lower bound inconsistent with step sign", location=here()
        )
    if any(isinstance(value, SymFloat) for value in (start, end, step)):
        raise ShapeError("arange: the length is not an integer", location=here())
    start, end, step = (
        int(value) if isinstance(value, float) and value.is_integer() else value
        for value in (start, end, step)
    )
    if all(is_size(value) for value in (start, end, step)):
        length = -((as_dim(start) - as_dim(end)) // as_dim(step))
        return length if current().truth(length, ">=", 0) else Dim.of(0)
    if plain:
        return Dim.of(max(0, math.ceil((end - start) / step)))
    raise ShapeError(
        "arange cannot mix symbolic sizes and floats", location=here(),
        hint="use integers, and convert the result",
    )  # fmt: skip


def _ramp(length: Dim, start: Any, step: Any, kind: DType) -> Node:
    session = current()
    node = session.cast(session.apply("iota", length=length), kind)
    if not (isinstance(step, (int, float)) and step == 1):
        node = session.apply("mul", node, session.expand(as_node(step, kind), node.shape))
    if not (isinstance(start, (int, float)) and start == 0):
        node = session.apply("add", node, session.expand(as_node(start, kind), node.shape))
    return node


@operation("linspace", method=False)
def linspace(start: Any, end: Any, steps: Any, *, dtype: Any = None, **ignored: Any) -> Tensor:
    """``steps`` numbers from ``start`` to ``end``, both included."""
    count = as_dim(steps)
    if count == 1:
        return filled(start, (count,), _kind(dtype))
    if not current().truth(count, ">", 1):
        return filled(start, (count,), _kind(dtype))
    kind = _kind(dtype)
    if not kind.is_float:
        return fresh(current().cast(_whole_ramp(count, start, end, steps, kind), kind))
    return fresh(_ramp(count, start, (end - start) / (steps - 1), kind))


def _whole_ramp(count: Dim, start: Any, end: Any, steps: Any, kind: DType) -> Node:
    """Evenly spaced in float64, from both ends to the middle, as torch counts whole numbers."""
    session = current()
    if not kind.is_integer:
        raise DTypeError("linspace does not take bools", location=here())
    for value in (start, end):
        check_fits(value, kind)
    first, last = (int(end) if isinstance(end, float) else end for end in (start, end))
    step = (last - first) / (steps - 1)
    rising = _ramp(count, first, step, float64)
    falling = _ramp(count, last - step * (steps - 1), step, float64)
    places = session.apply("iota", length=count)
    middle = session.expand(as_node(steps // 2, int64), places.shape)
    return session.apply("where", session.apply("lt", places, middle), rising, falling)


@operation("eye", method=False)
def eye(n: Any, m: Any = None, *, dtype: Any = None, **ignored: Any) -> Tensor:
    """The identity matrix; ``n`` rows, ``m`` columns."""
    session = current()
    shape = (as_dim(n), as_dim(n if m is None else m))
    whole_shape(shape)
    rows, columns = (iota_along(session, shape, axis) for axis in (0, 1))
    return fresh(session.cast(session.apply("eq", rows, columns), _kind(dtype)))


def triangle_places(name: str, row: Any, col: Any, offset: int = 0) -> Any:
    """The rows and columns of the elements of a triangle, row by row: an array [2, elements]."""
    for word, size in (("row", row), ("col", col)):
        if isinstance(size, SymInt):
            raise UnsupportedOpError(
                f"{name} of the symbolic size {size}", location=here(),
                hint=f"write a number in place of {size} in the shape spec", number=as_dim(size),
            )  # fmt: skip
        if not isinstance(size, int) or size < 0:
            raise ShapeError(f"{word} must be non-negative, got {size}", location=here())
    side = np.tril_indices if name.startswith("tril") else np.triu_indices
    return np.stack(side(row, offset, col)).astype(np.int64)


def _triangle(name: str) -> Callable[..., Tensor]:
    def call(row: Any, col: Any, offset: int = 0, *, dtype: Any = int64, **ignored: Any) -> Tensor:
        kind, places = as_dtype(dtype), triangle_places(name, row, col, offset)
        return fresh(array_node(current(), places, kind))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = "The rows and columns of the elements of a triangle of a matrix, row by row."
    return call


for _name in ("tril_indices", "triu_indices"):
    operation(_name, method=False)(_triangle(_name))


@operation("meshgrid", method=False)
def meshgrid(*tensors: Any, indexing: str | None = "ij") -> tuple[Tensor, ...]:
    """Coordinates of a grid: each vector broadcast along the axes of the others."""
    if indexing is None:
        indexing = "ij"
    if indexing not in ("ij", "xy"):
        raise OperationCallError(
            'torch.meshgrid: indexing must be one of "xy" or "ij", but received: ' + indexing,
            location=here(),
        )
    vectors = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    for vector in vectors:
        if not is_tensor(vector):
            raise refused("meshgrid", "tensors", "Tensor", vector)
    sources = [as_tensor(vector) for vector in vectors]
    for source in sources:
        if source.node.rank > 1:
            raise ShapeError(
                f"meshgrid takes vectors, but got {source.node.type}", location=here(),
                hint="flatten it first: x.flatten()",
            )  # fmt: skip
    order = list(range(len(sources)))
    if indexing == "xy" and len(sources) > 1:
        order[:2] = [1, 0]
    sizes = [product(source.node.shape) for source in sources]
    shape = tuple(sizes[place] for place in order)
    grids = []
    for number, source in enumerate(sources):
        lined = tuple(sizes[number] if place == number else Dim.of(1) for place in order)
        grids.append(source.shared(Reshape(lined), Expand(shape)))
    return tuple(grids)
