"""Tensors out of data: ``tensor``, ``as_tensor``, ``from_numpy``, random numbers, ``LongTensor``.

In: numbers, lists, arrays.  Out: leaves.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.errors import DTypeError, ShapeError
from symgrad.frontend.dtypes import as_dtype, check_fits
from symgrad.frontend.functions.creation import triangle_places
from symgrad.frontend.kinds import checked
from symgrad.frontend.session import active
from symgrad.frontend.sizes import Shape, is_size
from symgrad.frontend.table import FUNCTIONS, check_ignored
from symgrad.ir.dtype import ALL, LISTED, DType
from symgrad.ops.record import get
from symgrad.tensor import errors
from symgrad.tensor.batched import drawn
from symgrad.tensor.modes import state
from symgrad.tensor.tensor import DTYPES, Size, Tensor, new_array, wrap

EAGER: dict[str, Callable[..., Any]] = {}
"""The functions that are not traced operations outside of traces, by public name."""


def entered(*names: str) -> Callable[[Any], Any]:
    """Enter a function under ``names`` (its own name when none is given)."""

    def enter(call: Any) -> Any:
        EAGER.update(dict.fromkeys(names or (call.__name__,), checked(call)))
        return call

    return enter


def _array(data: Any, dtype: Any) -> np.ndarray[Any, Any]:
    """A new array of the data, in the dtype that torch infers."""
    kind = None if dtype is None else as_dtype(dtype)
    wanted = None if kind is None else str(kind)
    if isinstance(data, Tensor):
        return converted(data._array, kind)
    is_array = isinstance(data, (np.ndarray, np.generic))
    whole = kind is not None and kind.is_integer
    try:
        array = np.array(_plain(data), None if whole else wanted)
    except ValueError as error:
        raise errors.TensorValueError(f"cannot make a tensor from this: {error}") from None
    if kind is not None and kind.is_integer:
        try:
            check_fits(data, kind)
        except DTypeError as error:
            raise errors.EagerDTypeError(error.what) from None
        return converted(array, kind)
    if wanted is None and not is_array:
        if array.dtype.kind == "f" or not array.size:
            array = array.astype(str(state.dtype))
        elif array.dtype.kind in "iu":
            array = array.astype(np.int64)
    return known(array)


def converted(array: np.ndarray[Any, Any], dtype: DType | None) -> np.ndarray[Any, Any]:
    """A copy in another dtype, as ``.to`` converts it."""
    if dtype is None:
        return np.array(array)
    found: np.ndarray[Any, Any] = np.array(get("cast").numpy(array, size=None, dtype=dtype))
    return found


def known(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array.  Raises TensorTypeError for a dtype that there is not."""
    if array.dtype not in DTYPES:
        raise errors.TensorTypeError(
            f"can't convert an array of {array.dtype} to a tensor",
            hint=f"the dtypes are {LISTED}",
        )
    return array


def _plain(data: Any) -> Any:
    """Nested lists with numbers in place of tensors of one element."""
    if isinstance(data, Tensor):
        return data._array
    if isinstance(data, (list, tuple)):
        return [_plain(item) for item in data]
    return data


@entered()
def tensor(
    data: Any, *, dtype: Any = None, requires_grad: bool = False, device: Any = None,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """A leaf with a copy of the data; floats get the default dtype."""
    if isinstance(data, Tensor):
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach()."
            "clone() or sourceTensor.detach().clone().requires_grad_(True), rather than "
            "sg.tensor(sourceTensor).", UserWarning, stacklevel=3,
        )  # fmt: skip
    found = wrap(_array(data, dtype))
    if requires_grad and not found.is_floating_point():
        raise errors.AutogradError(
            "Only Tensors of floating point and complex dtype can require gradients"
        )
    return found.requires_grad_() if requires_grad else found


@entered("as_tensor", "asarray")
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """The data as a tensor, in the same memory where that is possible."""
    wanted: DType | None = None if dtype is None else as_dtype(dtype)
    if isinstance(data, Tensor):
        found: Tensor = data if wanted in (None, data.dtype) else data.to(wanted)
        return found
    if isinstance(data, np.ndarray) and (wanted is None or data.dtype == str(wanted)):
        return wrap(known(data))
    return wrap(_array(data, dtype))


@entered()
def from_numpy(array: Any) -> Tensor:
    """A tensor in the memory of an array.  Raises TensorTypeError for anything else."""
    if not isinstance(array, np.ndarray):
        raise errors.TensorTypeError(f"expected np.ndarray (got {type(array).__name__})")
    return wrap(known(array))


@entered()
def scalar_tensor(value: Any, *, dtype: Any = None, **ignored: Any) -> Tensor:
    """A number of rank 0, in the default dtype."""
    check_ignored("scalar_tensor", ignored)
    return wrap(_array(value, dtype or state.dtype))


@entered()
def is_tensor(value: Any) -> bool:
    """Is it a tensor?"""
    return isinstance(value, Tensor)


@entered()
def empty(*size: Any, dtype: Any = None, requires_grad: bool = False, **ignored: Any) -> Tensor:
    """A tensor without initial values: zeros here."""
    check_ignored("empty", ignored)
    shape = _shape(size or (ignored.get("size", ()),))
    found = wrap(np.zeros(shape, str(as_dtype(dtype or state.dtype))))
    return found.requires_grad_() if requires_grad else found


def _triangle(name: str) -> None:
    def call(
        row: int, col: int, offset: int = 0, *, dtype: Any = "int64", **ignored: Any
    ) -> Tensor:
        check_ignored(name, ignored)
        try:
            places = triangle_places(name, row, col, offset)
        except ShapeError as error:
            raise errors.EagerShapeError(error.what) from None
        return wrap(converted(places, as_dtype(dtype)))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = "The rows and columns of the elements of a triangle of a matrix, row by row."
    EAGER[name] = call


_triangle("tril_indices")
_triangle("triu_indices")


# -- random numbers

_generator = np.random.default_rng()


@entered()
def manual_seed(seed: int) -> None:
    """Restart the sequence of random numbers."""
    global _generator
    _generator = np.random.default_rng(seed)


def again() -> Callable[[], None]:
    """A call that sets the generator of random numbers back to its present state."""
    before = _generator.bit_generator.state

    def begin() -> None:
        _generator.bit_generator.state = before

    return begin


def _shape(size: Sequence[Any]) -> tuple[int, ...]:
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = size[0]
    return tuple(int(length) for length in size)


def _drawn(name: str, draw: Callable[[Any, Any], Any]) -> None:
    def call(
        *size: Any, dtype: Any = None, requires_grad: bool = False, generator: Any = None,
        device: Any = None,
    ) -> Tensor:  # fmt: skip
        kind = str(as_dtype(dtype or state.dtype))
        given = generator or _generator
        found = drawn(lambda shape: np.asarray(draw(given, shape), kind), _shape(size))
        return found.requires_grad_() if requires_grad else found

    def like(input: Tensor, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
        kind = input.dtype if dtype is None else dtype
        return call(tuple(input.shape), dtype=kind, requires_grad=requires_grad)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = "Random numbers of this shape."
    EAGER[name] = call
    EAGER[f"{name}_like"] = like


_drawn("rand", lambda generator, shape: generator.random(shape))
_drawn("randn", lambda generator, shape: generator.standard_normal(shape))


@entered()
def randint(low: int, high: Any = None, size: Any = None, *, dtype: Any = None) -> Tensor:
    """Random integers from ``low`` (0 if only one bound is given) up to ``high``, without it."""
    if size is None:
        low, high, size = 0, low, high
    kind = str(as_dtype(dtype or "int64"))
    return drawn(
        lambda shape: np.asarray(_generator.integers(low, high, shape), kind), _shape((size,))
    )


@entered()
def randperm(n: int) -> Tensor:
    """The numbers below ``n`` in random order."""

    def permuted(shape: tuple[int, ...]) -> Any:
        return _generator.permuted(np.broadcast_to(np.arange(n), shape), axis=-1)

    return drawn(permuted, (n,))


@entered()
def normal(mean: Any, std: Any, size: Any = None) -> Tensor:
    """Normally distributed random numbers."""
    plain = [value._array if isinstance(value, Tensor) else value for value in (mean, std)]
    shape = np.broadcast_shapes(*map(np.shape, plain)) if size is None else _shape((size,))
    kind = str(state.dtype)
    return drawn(
        lambda whole: np.asarray(_generator.normal(plain[0], plain[1], whole), kind), shape
    )


# -- torch's old classes: ``LongTensor([1, 2])``, ``isinstance(x, FloatTensor)``


class TensorClass(type):
    """A class whose instances are the tensors of one dtype."""

    dtype: DType

    def __call__(cls, *data_or_sizes: Any) -> Any:
        """Zeros of these sizes, or the numbers of a sequence, array or tensor in its dtype.

        Raises TensorTypeError for a tensor of another dtype, DTypeError for what does not fit.
        """
        data = data_or_sizes[0] if len(data_or_sizes) == 1 else None
        kind = getattr(data, "dtype", cls.dtype)
        if isinstance(kind, DType) and kind != cls.dtype:
            raise errors.TensorTypeError(
                f"expected {cls.dtype} (got {kind})", hint=f"convert it with .{cls.dtype.method}()"
            )
        if active() is not None:
            return cls._traced(*data_or_sizes)
        if isinstance(data, (list, tuple, np.ndarray)) and not isinstance(data, (Shape, Size)):
            return tensor(data, dtype=cls.dtype)
        return wrap(new_array(data_or_sizes, cls.dtype))

    def _traced(cls, *data_or_sizes: Any) -> Any:
        sizes = all(isinstance(part, (Shape, Size)) or is_size(part) for part in data_or_sizes)
        name = "zeros" if sizes else "tensor"
        return FUNCTIONS[name](*(data_or_sizes or (0,)), dtype=cls.dtype)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, Tensor) and value.dtype == cls.dtype


CLASSES = {
    one.tensor_class: TensorClass(one.tensor_class, (), {"dtype": one, "__module__": "symgrad"})
    for one in ALL
}
"""By name, one for every dtype."""
