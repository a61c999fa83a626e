"""The same complex numbers in other places, in the same memory, or as pairs of reals.

In: a complex tensor.  Out: what its pairs are in these places.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from symgrad.errors import ShapeError
from symgrad.frontend.caller import here
from symgrad.frontend.complexes import ComplexTensor, Conjugate
from symgrad.frontend.sizes import Shape
from symgrad.frontend.tensor import SelectedTensor, SymbolicTensor
from symgrad.frontend.views import Slice
from symgrad.interop.torch import beneath
from symgrad.interop.torch.complexes.table import each, operation, operation_of, refused
from symgrad.interop.torch.dtypes import complex_of
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import DType


@operation("view_as_complex", of_reals=True)
def _view_as_complex(input: Any) -> ComplexTensor:
    if isinstance(input, ComplexTensor):
        raise refused("view_as_complex takes a real tensor")
    complex_of(input.storage.node.dtype)
    shape = input.node.shape
    if not shape or shape[-1] != 2:
        raise ShapeError(
            "view_as_complex takes pairs along the last axis", location=here(),
            equal=[(shape[-1], Dim.of(2))] if shape else (),
        )  # fmt: skip
    beneath.stride(input)  # prints what the strides rest on
    *others, last = input.strides
    if last.constant not in (1, None) or any((one.constant or 0) % 2 for one in others):
        raise ShapeError(
            f"the pairs do not lie side by side: the strides are {list(Shape.of(input.strides))}",
            location=here(), hint="contiguous() them first; sum().backward() expands a gradient",
        )  # fmt: skip
    starts = [step.start for step in input.steps if isinstance(step, Slice)]
    if last != 1 or any(one % 2 != 0 for one in (*others, *starts)):
        raise refused(
            "view_as_complex of pairs that may not lie side by side", "clone() them first"
        )
    return ComplexTensor.of(input.shared())


@operation("view_as_real")
def _view_as_real(input: ComplexTensor) -> SymbolicTensor:
    if input.is_conjugate:
        raise refused("torch refuses view_as_real of a conjugate", "write z.conj_physical()")
    return input.pairs.shared()


def _shown(place: int) -> Callable[[ComplexTensor], SymbolicTensor]:
    return lambda input: input.pairs.select(-1, place)


operation("get_real", "real")(_shown(0))
operation("get_imag", "imag")(_shown(1))


# -- what it is

operation("dim", "ndimension")(lambda input: input.ndim)
operation("is_complex")(lambda input: True)
operation("is_floating_point")(lambda input: False)
operation("is_contiguous")(lambda input: input.pairs.is_contiguous())


@operation("size")
def _size(input: ComplexTensor, dim: int | None = None) -> Any:
    return input.shape if dim is None else input.shape[dim]


@operation("numel", "nelement")
def _numel(input: ComplexTensor) -> Any:
    return input.pairs.select(-1, 0).numel()


# -- conjugates


@operation("conj")
def _conj(input: ComplexTensor) -> ComplexTensor:
    return ComplexTensor.of(input.pairs.shared(Conjugate()))


@operation("resolve_conj")
def _resolve_conj(input: ComplexTensor) -> ComplexTensor:
    return each(lambda part: part, input) if input.is_conjugate else input


operation("resolve_neg")(lambda input: input)


# -- other places


def _axes(input: Any, dim: Any) -> Any:
    """Axes counted from the first, where the pairs have one more at the end."""
    if isinstance(dim, (list, tuple)):
        return tuple(_axes(input, one) for one in dim)
    return dim if dim >= 0 else dim + input.ndim


def _moved(name: str, at: Sequence[str] = (), *, new: int = 0) -> None:
    """A method that moves the pairs; ``at``: its parameters that are axes, in order.

    ``new``: how many axes more there are to count from the end.
    """

    def move(input: ComplexTensor, *args: Any, **kwargs: Any) -> Any:
        def placed(key: str, value: Any) -> Any:
            if isinstance(value, (list, tuple)):
                return tuple(placed(key, one) for one in value)
            counted = bool(key) and value is not None and value < 0
            return value + input.ndim + new if counted else value

        if "channels_last" in str(kwargs.get("memory_format")):
            raise refused("complex numbers are put into another memory format")
        own = [placed(key, one) for key, one in itertools.zip_longest(at, args[: len(at)])]
        named = {key: placed(key if key in (*at, "dim") else "", kwargs[key]) for key in kwargs}
        found = getattr(input.pairs, name)(*own[: len(args)], *args[len(at) :], **named)
        if isinstance(found, tuple):
            return tuple(map(ComplexTensor.of, found))
        return ComplexTensor.of(found)

    operation(name)(move)


_moved("transpose", ("dim0", "dim1"))
_moved("swapaxes", ("axis0", "axis1"))
_moved("swapdims", ("dim0", "dim1"))
_moved("movedim", ("source", "destination"))
_moved("moveaxis", ("source", "destination"))
_moved("select", ("dim",))
_moved("narrow", ("dim",))
_moved("squeeze", ("dim",))
_moved("unsqueeze", ("dim",), new=1)
_moved("unflatten", ("dim",))
_moved("unbind", ("dim",))
for _name in ("chunk", "split", "tensor_split"):
    _moved(_name, ("", "dim"))
for _name in ("contiguous", "clone", "detach"):
    _moved(_name)


@operation("permute")
def _permute(input: ComplexTensor, *dims: Any) -> ComplexTensor:
    given = dims[0] if len(dims) == 1 and type(dims[0]) in (list, tuple) else dims
    return ComplexTensor.of(input.pairs.permute(*_axes(input, tuple(given)), input.ndim))


def _transposed(input: ComplexTensor, *dims: int) -> ComplexTensor:
    return ComplexTensor.of(input.pairs.transpose(*_axes(input, dims)))


@operation("t")
def _t(input: ComplexTensor) -> ComplexTensor:
    return _transposed(input, 0, 1) if input.ndim == 2 else input


@operation("get_T")
def _get_t(input: ComplexTensor) -> ComplexTensor:
    return _permute(input, *reversed(range(input.ndim)))


@operation("get_mT")
def _get_mt(input: ComplexTensor) -> ComplexTensor:
    return _transposed(input, -2, -1)


operation("get_H")(lambda input: _conj(_t(input)))
operation("get_mH", "adjoint")(lambda input: _conj(_get_mt(input)))


def shape_of(shape: Sequence[Any]) -> Sequence[Any]:
    """Sizes that are passed one by one, or as a tuple."""
    return shape[0] if len(shape) == 1 and isinstance(shape[0], (list, tuple)) else shape


def _reshaped(name: str) -> Callable[..., ComplexTensor]:
    def reshape(input: ComplexTensor, *shape: Any) -> ComplexTensor:
        if len(shape) == 1 and isinstance(shape[0], (torch.dtype, DType)):
            raise refused("complex numbers are viewed as another dtype")
        return ComplexTensor.of(getattr(input.pairs, name)(*shape_of(shape), 2))

    return reshape


for _name in ("reshape", "view", "expand"):
    operation(_name)(_reshaped(_name))
    operation(f"{_name}_as")(
        lambda input, other, name=_name: operation_of(name)(input, *other.shape)
    )


@operation("repeat")
def _repeat(input: ComplexTensor, *sizes: Any) -> ComplexTensor:
    return each(lambda part: part.repeat(*shape_of(sizes)), input)


@operation("flatten", "ravel")
def _flatten(input: ComplexTensor, start_dim: int = 0, end_dim: int = -1) -> ComplexTensor:
    if not input.ndim:
        return ComplexTensor.of(input.pairs.unsqueeze(0))
    first, last = _axes(input, (start_dim, end_dim))
    return ComplexTensor.of(input.pairs.flatten(first, last))


def key_of(input: ComplexTensor, key: Any) -> tuple[Any, ...]:
    """A key of the pairs.  Raises UnsupportedOpError where it has more axes than the tensor."""
    keys = key if isinstance(key, tuple) else (key,)
    if any(isinstance(one, SelectedTensor) for one in keys):
        raise refused("complex numbers are selected by a mask")
    used = sum(1 for one in keys if one is not None and one is not Ellipsis)
    if used > input.ndim or any(_is_mask(one) for one in keys):
        raise refused("complex numbers are selected by a mask, or by more indices than axes")
    if any(one is Ellipsis for one in keys):
        return (*keys, slice(None))
    return keys


def _is_mask(value: Any) -> bool:
    if isinstance(value, SymbolicTensor):
        return not value.storage.node.dtype.is_integer
    return isinstance(value, (bool, list, ComplexTensor))


@operation("__getitem__")
def _getitem(input: ComplexTensor, key: Any) -> ComplexTensor:
    return ComplexTensor.of(input.pairs[key_of(input, key)])
