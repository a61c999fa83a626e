"""What depends on values: masks as indices, ``nonzero``, ``unique``, comparisons of whole tensors.

In: tensors.  Out: tensors whose shape their elements decide; for masks, the index tensors that
select the same elements.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.errors import KernelArgumentError
from symgrad.frontend.functions.layers import attended, check_probability, kept
from symgrad.frontend.session import active
from symgrad.frontend.table import FUNCTIONS
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.ir.dtype import int64
from symgrad.tensor import creation, errors
from symgrad.tensor.batched import BatchedTensor, real_array
from symgrad.tensor.creation import entered
from symgrad.tensor.modes import state
from symgrad.tensor.plans.dispatch import invoke
from symgrad.tensor.tensor import Array, Tensor, wrap

_MASKS = (np.dtype(np.bool_), np.dtype(np.uint8))
_PLACES = (np.dtype(np.int32), np.dtype(np.int64))


def _array(value: Any) -> Array:
    return value._array if isinstance(value, Tensor) else np.asarray(value)


def _is_mask(item: Any) -> bool:
    if isinstance(item, (Tensor, np.ndarray)):
        return _array(item).dtype in _MASKS
    return isinstance(item, list) and bool(item) and isinstance(item[0], bool)


def _mask(item: Any) -> Array:
    """A mask as bools; one of uint8 is deprecated in torch."""
    array = _array(item)
    if array.dtype == np.uint8:
        warnings.warn(
            "indexing with dtype uint8 is now deprecated, please use a dtype bool instead.",
            UserWarning, stacklevel=5,
        )  # fmt: skip
        return np.not_equal(array, 0)
    return array


def _mask_tensor(item: Any) -> Tensor:
    return item.bool() if isinstance(item, BatchedTensor) else _made_of(item, _mask(item))


def _made_of(source: Any, array: Array) -> Tensor:
    """An index tensor; backward notices if the tensor that it was made of is written since."""
    found = wrap(array)
    if isinstance(source, Tensor):
        found._counter = source.counter()
        found._seen = found._counter.value
    return found


def _without_masks(tensor: Tensor, key: Any) -> Any:
    """The key with index tensors in place of masks; integer lists as index tensors."""
    items = key if isinstance(key, tuple) else (key,)
    if isinstance(key, list) and any(isinstance(item, (slice, list, Tensor)) for item in key):
        items = tuple(key)
    found: list[Any] = []
    axis = 0
    for item in items:
        if _is_mask(item):
            mask = _mask(item)
            _check_mask(tensor, mask, axis)
            found.extend(_made_of(item, place.astype(np.int64)) for place in np.nonzero(mask))
            axis += mask.ndim
            continue
        if isinstance(item, (list, np.ndarray)) or (isinstance(item, tuple) and item):
            item = wrap(_whole(item))
        elif isinstance(item, Tensor) and not item._array.ndim and item.dtype.is_integer:
            item = item.long() if isinstance(item, BatchedTensor) else int(item)
        elif isinstance(item, Tensor) and item._array.dtype not in _PLACES:
            raise errors.TensorIndexError(
                "tensors used as indices must be long, int, byte or bool tensors"
            )
        found.append(item)
        axis += item is not None
    return tuple(found)


def _whole(item: Any) -> Array:
    array = np.asarray([int(entry) if isinstance(entry, Tensor) else entry for entry in item])
    if array.size and array.dtype.kind not in "iu":
        raise errors.TensorIndexError("tensors used as indices must be long or bool tensors")
    return array.astype(np.int64)


def _check_mask(tensor: Tensor, mask: Array, axis: int) -> None:
    covered = tensor._array.shape[axis : axis + mask.ndim]
    if mask.ndim and covered != mask.shape and Ellipsis not in (covered,):
        raise errors.TensorIndexError(
            f"The shape of the mask {list(mask.shape)} at index 0 does not match the shape of the "
            f"indexed tensor {list(tensor.shape)} at index {axis}"
        )


def _has_mask(key: Any) -> bool:
    items = key if isinstance(key, tuple) else (key,)
    return any(map(_is_mask, items))


def getitem(self: Tensor, key: Any) -> Tensor:
    """``x[key]``."""
    found: Tensor = invoke("__getitem__", _GET, (self, _resolved(self, key)), {})
    return found


def setitem(self: Tensor, key: Any, value: Any) -> None:
    """``x[key] = value``."""
    if state.grad_enabled and self._requires_grad and self.is_leaf:
        raise errors.InPlaceError(errors.LEAF_VIEW_IN_PLACE)
    if active() is None and _has_mask(key) and _array(value).ndim == 0:
        items = key if isinstance(key, tuple) else (key,)
        key = tuple(_mask_tensor(item) if _is_mask(item) else item for item in items)
    else:
        key = _resolved(self, key)
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, (Tensor, SymbolicTensor, bool, int, float)):
        value = creation.as_tensor(value, self.dtype)
    invoke("__setitem__", _SET, (self, key, value), {})


def _resolved(tensor: Tensor, key: Any) -> Any:
    if type(key) is int:
        _check_place(tensor, key)
        return key
    if type(key) is slice:
        return _slice(key)
    if active() is not None:
        return key
    found = _without_masks(tensor, key)
    found = tuple(_slice(item) if isinstance(item, slice) else item for item in found)
    return _checked(tensor, found)


def _slice(item: slice) -> slice:
    """A slice of numbers, in place of tensors of one element."""
    ends = (item.start, item.stop, item.step)
    return slice(*(int(end) if isinstance(end, Tensor) else end for end in ends))


def _check_place(tensor: Tensor, place: int, axis: int = 0) -> None:
    shape = tensor._array.shape
    if not shape:
        raise errors.TensorIndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` to convert a 0-dim tensor to a "
            "number"
        )
    if axis < len(shape) and not -shape[axis] <= place < shape[axis]:
        raise errors.TensorIndexError(
            f"index {place} is out of bounds for dimension {axis} with size {shape[axis]}"
        )


def _checked(tensor: Tensor, items: tuple[Any, ...]) -> tuple[Any, ...]:
    """The key; index tensors counted from the front.  Raises TensorIndexError."""
    used = sum(item is not None and item is not Ellipsis for item in items)
    shape = tensor._array.shape
    if used > len(shape):
        raise errors.TensorIndexError(f"too many indices for tensor of dimension {len(shape)}")
    found: list[Any] = []
    axis = 0
    for item in items:
        if item is Ellipsis:
            axis += len(shape) - used
        elif type(item) is int:
            _check_place(tensor, item, axis)
        elif isinstance(item, Tensor):
            item = _from_the_front(item, axis, shape[axis])
        found.append(item)
        axis += item is not None and item is not Ellipsis
    return tuple(found)


def _from_the_front(places: Tensor, axis: int, size: int) -> Tensor:
    if isinstance(places, BatchedTensor):
        places = places.long()
        call = FUNCTIONS["where"].__wrapped__
        found: Tensor = invoke("where", call, (places < 0, places + size, places), {})
        return found
    array = places._array.astype(np.int64, copy=False)
    if not array.size:
        return _made_of(places, array)
    low, high = int(array.min()), int(array.max())
    if low < -size or high >= size:
        raise errors.TensorIndexError(
            f"index {low if low < -size else high} is out of bounds for dimension {axis} with size "
            f"{size}"
        )
    return _made_of(places, np.where(array < 0, array + size, array) if low < 0 else array)


_GET = SymbolicTensor.__getitem__
_SET = SymbolicTensor.__setitem__


# -- functions


@entered("nonzero", "argwhere")
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The places of the elements that are not 0: one row each."""
    places = np.nonzero(input._array)
    if as_tuple:
        return tuple(wrap(place.astype(np.int64)) for place in places)
    return wrap(np.stack(places, axis=-1).astype(np.int64).reshape(-1, input._array.ndim))


@entered()
def where(condition: Any, *choices: Any, **named: Any) -> Any:
    """``where(c, a, b)`` chooses elements; ``where(c)`` is the places where ``c`` is True."""
    if not choices and not named:
        return nonzero(condition, as_tuple=True)
    return invoke("where", FUNCTIONS["where"].__wrapped__, (condition, *choices), named)


def _naming_places(name: str, outside: Callable[..., str]) -> None:
    """Let an operation say in torch's words which of its places lie outside."""
    plain = FUNCTIONS[name].__wrapped__

    @functools.wraps(plain)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return invoke(name, plain, args, kwargs)
        except KernelArgumentError:
            given = inspect.signature(plain).bind(*args, **kwargs)
            given.apply_defaults()
            raise errors.TensorIndexError(outside(**given.arguments)) from None

    creation.EAGER[name] = call


def _target_outside(input: Any, target: Any, ignore_index: int, **others: Any) -> str:
    array = real_array(target)
    classes = input.shape[1] if input.ndim > 1 else input.shape[0]
    wrong = array[(array != ignore_index) & ((array < 0) | (array >= classes))]
    return f"Target {int(wrong[0])} is out of bounds."


_naming_places("nll_loss", _target_outside)
_naming_places("cross_entropy", _target_outside)
_naming_places("embedding", lambda **given: "index out of range in self")


def _bce() -> None:
    """Let ``binary_cross_entropy`` refuse what is no probability, as torch does on its CPU."""
    plain = FUNCTIONS["binary_cross_entropy"].__wrapped__

    @functools.wraps(plain)
    def call(input: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
        for name, value in (("input", input), ("target", target)):
            if isinstance(value, Tensor):
                array = real_array(value)
                if not bool(((array >= 0) & (array <= 1)).all()):
                    raise errors.AutogradError(f"all elements of {name} should be between 0 and 1")
        return invoke("binary_cross_entropy", plain, (input, target, *args), kwargs)

    creation.EAGER["binary_cross_entropy"] = call


_bce()


@entered()
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """int64: 1 at the index that each element gives, along a new last axis."""
    array = real_array(tensor)
    if tensor.dtype == int64:
        if array.size and array.min() < 0:
            raise errors.TensorValueError("Class values must be non-negative.")
        if num_classes > 0 and array.size and array.max() >= num_classes:
            raise errors.TensorValueError("Class values must be smaller than num_classes.")
        if num_classes <= 0:
            if not array.size:
                words = "Can not infer total number of classes from empty tensor."
                raise errors.TensorValueError(words)
            num_classes = int(tensor._array.max()) + 1
    args = (tensor, num_classes)
    return invoke("one_hot", FUNCTIONS["one_hot"].__wrapped__, args, {})  # type: ignore[no-any-return]


@entered()
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Each element is 0 with probability ``p``, else divided by ``1 - p``.

    The mask comes from the generator that ``sg.manual_seed`` restarts.
    """
    check_probability(p)
    if not training or p == 0:
        return input
    keep = creation.EAGER["rand"](input.shape) >= p
    found = invoke("dropout", kept, (input, keep, p if p < 1 else 0.0), {})
    return input.copy_(found) if inplace else found


@entered()
def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    """``softmax(scale Q Kᵀ + mask) V``: (…, n, k), (…, m, k), (…, m, d) to (…, n, d).

    ``attn_mask``: bool (True: takes part) or float (added to the scores).  ``scale``:
    ``1 / sqrt(k)`` when None.  ``enable_gqa``: keys and values serve several heads each.
    """
    check_probability(dropout_p)
    keep = None
    if dropout_p:
        batch = np.broadcast_shapes(*(tuple(one.shape[:-2]) for one in (query, key, value)))
        keep = creation.EAGER["rand"](*batch, query.shape[-2], key.shape[-2]) >= dropout_p
        keep = keep.to(query.dtype) * (0.0 if dropout_p == 1 else 1 / (1 - dropout_p))
    args = (query, key, value, attn_mask, keep, is_causal, scale, enable_gqa)
    return invoke("scaled_dot_product_attention", attended, args, {})


@entered()
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements where the mask is True, in a row."""
    shape = np.broadcast_shapes(input._array.shape, mask._array.shape)
    whole = input if input._array.shape == shape else input.expand(shape)
    return getitem(whole, _made_of(mask, np.broadcast_to(mask._array, shape)))


@entered()
def unique(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
    dim: int | None = None,
) -> Any:  # fmt: skip
    """The different elements, or slices of an axis, in order, ``sorted`` or not.

    With ``return_inverse``, ``return_counts`` also where each one went, and how many there were.
    """
    found, inverse, counts = np.unique(
        input._array, return_inverse=True, return_counts=True, axis=dim
    )
    places = inverse.reshape(input._array.shape if dim is None else -1)
    rest = [places] * return_inverse + [counts] * return_counts
    if not rest:
        return wrap(found)
    return (wrap(found), *(wrap(item.astype(np.int64)) for item in rest))


@entered()
def bincount(input: Tensor, weights: Any = None, minlength: int = 0) -> Tensor:
    """How often each number occurs."""
    given = None if weights is None else _array(weights)
    return wrap(np.bincount(input._array, given, minlength))


@entered()
def equal(input: Tensor, other: Tensor) -> bool:
    """Have both the same shape and the same elements?"""
    return bool(np.array_equal(_array(input), _array(other)))


@entered()
def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Are all elements close to each other?"""
    return bool(np.allclose(_array(input), _array(other), rtol, atol, equal_nan))


@entered()
def isclose(
    input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """Which elements are close to each other?"""
    return wrap(np.isclose(_array(input), _array(other), rtol, atol, equal_nan))
