"""Complex tensors that are written, made of nothing, or put into another dtype.

In: a tensor and what is written into it; sizes; a dtype.  Out: the tensor.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from symgrad.frontend.complexes import ComplexTensor
from symgrad.frontend.table import functions as sg
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.interop.torch import overlaps
from symgrad.interop.torch.complexes.movement import key_of, shape_of
from symgrad.interop.torch.complexes.table import (
    as_complex,
    operation,
    operation_of,
    parts,
    refused,
)
from symgrad.interop.torch.dtypes import of_parts, ours
from symgrad.ir.dtype import DType

# -- writes


def _check(name: str, input: Any, *args: Any) -> None:
    """Raises UnsupportedOpError for a real tensor; observes what is written and read elsewhere."""
    if not isinstance(input, ComplexTensor):
        raise refused("complex numbers are written into a real tensor")
    written = [one.pairs if isinstance(one, ComplexTensor) else one for one in args]
    overlaps.check_written(name, (input.pairs, *written), {})


def _into(input: ComplexTensor, found: ComplexTensor) -> ComplexTensor:
    input.pairs.copy_(found.pairs)
    return input


def _in_place(name: str) -> Callable[..., ComplexTensor]:
    def write(input: Any, *args: Any, **kwargs: Any) -> ComplexTensor:
        _check(f"{name}_", input, *args, *kwargs.values())
        return _into(input, operation_of(name)(input, *args, **kwargs))

    return write


for _name in ("add", "sub", "mul", "div", "neg", "square", "exp", "conj_physical", "reciprocal"):
    operation(f"{_name}_")(_in_place(_name))
for _name, _operator in (("add", "__iadd__"), ("sub", "__isub__"), ("mul", "__imul__"),
                         ("div", "__itruediv__"), ("div", "__idiv__")):  # fmt: skip
    operation(_operator)(_in_place(_name))


@operation("copy_")
def _copy(input: Any, src: Any, non_blocking: bool = False) -> ComplexTensor:
    _check("copy_", input, src)
    return _into(input, as_complex(src))


@operation("zero_")
def _zero(input: ComplexTensor) -> ComplexTensor:
    input.pairs.zero_()
    return input


@operation("fill_")
def _fill(input: Any, value: Any) -> ComplexTensor:
    _check("fill_", input, value)
    return _into(input, as_complex(value))


@operation("__setitem__")
def _setitem(input: Any, key: Any, value: Any) -> None:
    if isinstance(input, ComplexTensor):
        key = key_of(input, key)
    _check("__setitem__", input, key, value)
    input.pairs[key] = as_complex(value).pairs


# -- made of nothing


def _made(name: str) -> Callable[..., Any]:
    """A function that makes a tensor of a dtype."""

    def make(*args: Any, dtype: Any = None, **kwargs: Any) -> Any:
        given = [parts(one)[0] if isinstance(one, ComplexTensor) else one for one in args]
        wanted = dtype if dtype is None or not dtype.is_complex else of_parts(dtype)
        if dtype is not None and wanted is None:
            raise refused(f"{dtype} is not traced")
        call: Any = getattr(sg, name, None) or functools.partial(_method, name)
        made = call(*given, **kwargs, **({} if wanted is None else {"dtype": ours(wanted)}))
        if dtype is not None and not dtype.is_complex:
            return made
        return ComplexTensor.of(sg.stack([made, sg.zeros_like(made)], -1))

    return make


def _method(name: str, input: Any, *args: Any, **kwargs: Any) -> Any:
    return getattr(input, name)(*args, **kwargs)


@operation("empty")
def _empty(*size: Any, dtype: Any, **kwargs: Any) -> ComplexTensor:
    return ComplexTensor.of(sg.empty(*shape_of(size), 2, dtype=_parts_of(dtype), **kwargs))


@operation("empty_like")
def _empty_like(input: Any, *, dtype: Any = None, **kwargs: Any) -> Any:
    if dtype is not None and not dtype.is_complex:
        return sg.empty_like(parts(input)[0], dtype=ours(dtype), **kwargs)
    pairs = as_complex(input).pairs
    kind = pairs.node.dtype if dtype is None else _parts_of(dtype)
    return ComplexTensor.of(sg.empty(*pairs.shape, dtype=kind, **kwargs))


def _parts_of(dtype: Any) -> DType:
    """The dtype of the parts of complex numbers.  Raises UnsupportedOpError."""
    found = of_parts(dtype)
    if found is None:
        raise refused(f"{dtype} is not traced")
    return ours(found)


for _name in ("zeros", "ones", "eye", "arange", "zeros_like", "ones_like", "new_zeros", "new_ones"):
    operation(_name)(_made(_name))


@operation("to")
def _to(input: Any, *args: Any, **kwargs: Any) -> ComplexTensor:
    def of_pairs(value: Any) -> Any:
        if isinstance(value, ComplexTensor):
            return value.pairs
        if isinstance(value, SymbolicTensor) or (
            isinstance(value, torch.dtype) and of_parts(value) is None
        ):
            raise refused("complex numbers become another dtype", "take z.real, or z.abs()")
        return ours(of_parts(value)) if isinstance(value, torch.dtype) else value

    if kwargs.get("memory_format") is not None:
        raise refused("complex numbers are put into another memory format")
    named = {key: of_pairs(kwargs[key]) for key in kwargs}
    return ComplexTensor.of(as_complex(input).pairs.to(*map(of_pairs, args), **named))


# -- other dtypes


@operation("cfloat", of_reals=True)
def _cfloat(input: Any) -> ComplexTensor:
    return _to(input, torch.complex64)


@operation("cdouble", of_reals=True)
def _cdouble(input: Any) -> ComplexTensor:
    return _to(input, torch.complex128)
