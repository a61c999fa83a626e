"""The eager tensor: a NumPy array, and its place in the graph that backward walks.

In: an array.  Out: what it is, what it holds, where it comes from.

Its operations are attached by ``symgrad.tensor.methods``, out of the frontend's table, and what
concerns backward by ``symgrad.tensor.gradients``.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from symgrad.errors import DTypeError
from symgrad.frontend.dtypes import check_fits
from symgrad.frontend.views import Step
from symgrad.ir.dtype import BY_NAME, DType
from symgrad.tensor import errors
from symgrad.tensor.modes import check_readable, lifted, state

if TYPE_CHECKING:
    from symgrad.tensor.tape.node import Node

Array = np.ndarray[Any, Any]

DTYPES = {np.dtype(name): dtype for name, dtype in BY_NAME.items()}


class Tensor:
    """An array with ``requires_grad``, ``grad`` and ``grad_fn``, as in PyTorch.

    dtypes: float32, float64, int8, int16, int32, int64, uint8, bool.  ``Tensor(data)`` holds
    floats of the default dtype, ``Tensor(2, 3)`` six zeros, where torch leaves what was there.
    """

    __array_priority__ = 1000
    is_cuda = False
    is_sparse = False
    is_quantized = False
    is_cpu = True
    device = "cpu"
    layout = "strided"

    __symgrad_interpreter__: Any  # set by symgrad.tensor.interpreters
    _array: Array
    _requires_grad = False
    _grad_fn: Node | None = None
    _output_number = 0
    _grad: Tensor | None = None
    _retains = False
    _counter: Version | None = None
    _base: Tensor | None = None  # of a view: whose memory it shows, after _steps
    _steps: tuple[Step, ...] = ()
    _viewed = False  # has it views, which know how to get from its shape to theirs?
    _seen = 0  # of a view: the version at which its _grad_fn was made
    _creation = ""  # of a view: why it may not be written in place
    _hooks: dict[int, Any] | None = None
    _after_hooks: dict[int, Any] | None = None
    _accumulator: Any = None

    def __init__(self, *data_or_sizes: Any, device: Any = None, **named: Any) -> None:
        self._array = new_array(given(data_or_sizes, named), state.dtype)

    # -- what it is

    @property
    def shape(self) -> Size:
        """Its sizes."""
        return Size(self._array.shape)

    @property
    def dtype(self) -> DType:
        """Its element type."""
        return DTYPES[self._array.dtype]

    @property
    def ndim(self) -> int:
        """The number of its axes."""
        return self._array.ndim

    def dim(self) -> int:
        """The number of its axes."""
        return self._array.ndim

    ndimension = dim

    def size(self, dim: int | None = None) -> Any:
        """Its shape, or one of its sizes."""
        return self.shape if dim is None else self.shape[dim]

    def numel(self) -> int:
        """The number of its elements."""
        return int(self._array.size)

    nelement = numel

    def stride(self, dim: int | None = None) -> Any:
        """How many elements apart neighbours along each axis lie in memory."""
        return element_strides(self._array, dim)

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Do its elements follow one another in memory?"""
        return bool(self._array.flags.c_contiguous)

    def is_floating_point(self) -> bool:
        """Is its dtype a float?"""
        return bool(self._array.dtype.kind == "f")

    def is_complex(self) -> bool:
        """No: there are no complex dtypes."""
        return False

    def is_same_size(self, other: Tensor) -> bool:
        """Has the other tensor the same shape?"""
        return bool(self._array.shape == other._array.shape)

    def element_size(self) -> int:
        """The bytes of one element."""
        return int(self._array.itemsize)

    def data_ptr(self) -> int:
        """The address of its first element."""
        return int(self._array.ctypes.data)

    def get_device(self) -> int:
        """As torch says for the CPU: -1."""
        return -1

    def type(self, dtype: Any = None) -> Any:
        """The name of its type; with a dtype, the tensor in that dtype."""
        return self.to(dtype) if dtype is not None else f"symgrad.{self.dtype.tensor_class}"

    # -- its place in the graph

    @property
    def requires_grad(self) -> bool:
        """Are operations on it recorded?"""
        if self._requires_grad or self._grad_fn is not None:
            return True
        return self._base is not None and self._stale() and self._base.requires_grad

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        self.requires_grad_(wanted)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Say whether a leaf is differentiated.  Raises AutogradError for others."""
        if not self.is_leaf and not requires_grad:
            raise errors.AutogradError(
                "you can only change requires_grad flags of leaf variables. If you want to use a "
                "computed variable in a subgraph that doesn't require differentiation use "
                "var_no_grad = var.detach()."
            )
        if requires_grad and not self.is_floating_point():
            raise errors.AutogradError("only Tensors of floating point dtype can require gradients")
        self._requires_grad = bool(requires_grad)
        return self

    @property
    def is_leaf(self) -> bool:
        """Was it made by the user (or does nothing need its history)?"""
        return self.grad_fn is None

    @property
    def grad_fn(self) -> Node | None:
        """The node that computed it; None for a leaf."""
        if self._base is not None and self._stale():
            self.__symgrad_interpreter__.renew_history(self)
        return self._grad_fn

    def _stale(self) -> bool:
        """Is it a view of memory that was written since its history was made?"""
        return self._counter is not None and self._counter.value != self._seen

    @property
    def output_nr(self) -> int:
        """Which output of its ``grad_fn`` it is."""
        return self._output_number

    @property
    def grad(self) -> Tensor | None:
        """The gradient that backward added up; None before.  Warns for what is no leaf."""
        if self._grad is None and self.requires_grad and not self.is_leaf and not self._retains:
            warnings.warn(errors.NON_LEAF_GRAD, UserWarning, stacklevel=2)
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            if not isinstance(value, Tensor):
                raise errors.TensorTypeError(
                    "assigned grad expected to be a Tensor or None but got grad of type "
                    f"'{type(value).__name__}'"
                )
            if value is self:
                raise errors.AutogradError("can't assign Variable as its own grad")
            if value.shape != self.shape:
                raise errors.AutogradError(
                    f"attempting to assign a gradient of size '{list(value.shape)}' to a tensor of "
                    f"size '{list(self.shape)}'. Please ensure that the gradient and the tensor "
                    "are the same size"
                )
            if value.dtype != self.dtype:
                raise errors.AutogradError(
                    f"attempting to assign a gradient with dtype '{value.dtype}' to a tensor with "
                    f"dtype '{self.dtype}'"
                )
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    @property
    def retains_grad(self) -> bool:
        """Is it no leaf, and keeps its gradient all the same?"""
        return self._retains and not self.is_leaf

    @property
    def _version(self) -> int:
        return 0 if self._counter is None else self._counter.value

    def counter(self) -> Version:
        """The counter of writes to its memory, from now on shared."""
        if self._counter is None:
            self._counter = Version()
        return self._counter

    @property
    def data(self) -> Tensor:
        """The same memory, without history; writes to it are not noticed."""
        return lifted(self).detach() if state.lifting else wrap(self._array)

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise errors.TensorTypeError(
                f"Variable data has to be a tensor, but got {type(value).__name__}"
            )
        self._array = value._array

    def detach(self) -> Tensor:
        """The same memory, without history; writes to it are noticed by backward."""
        if state.lifting:
            return lifted(self).detach()  # type: ignore[no-any-return]
        found = wrap(self._array)
        found._counter = self.counter()
        found._seen = found._counter.value
        return found

    def detach_(self) -> Tensor:
        """Itself, cut off from its history.  Raises InPlaceError for a view."""
        if self._base is not None:
            raise errors.InPlaceError("Can't detach views in-place. Use detach() instead.")
        self._grad_fn, self._requires_grad, self._output_number = None, False, 0
        return self

    # -- its values

    def numpy(self, *, force: bool = False) -> Array:
        """Its array, in the same memory.  Raises AutogradError if it is recorded."""
        check_readable()
        if state.grad_enabled and self.requires_grad and not force:
            raise errors.AutogradError(errors.NUMPY_NEEDS_DETACH)
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        array = self.numpy()
        if dtype is not None and np.dtype(dtype) != array.dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __array_wrap__(self, array: Array, context: Any = None, return_scalar: bool = False) -> Any:
        return wrap(np.asarray(array))

    def item(self) -> Any:
        """Its one element as a Python number.  Raises AutogradError if there are more."""
        check_readable()
        if self._array.size != 1:
            raise errors.AutogradError(
                f"a Tensor with {self._array.size} elements cannot be converted to Scalar"
            )
        return self._array.item()

    def tolist(self) -> Any:
        """Its elements as nested lists."""
        check_readable()
        return self._array.tolist()

    def __bool__(self) -> bool:
        check_readable()
        if self._array.size != 1:
            none = "no values" if not self._array.size else "more than one value"
            raise errors.AutogradError(f"Boolean value of Tensor with {none} is ambiguous")
        return bool(self._array.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        check_readable()
        if self._array.size != 1 or self._array.dtype.kind not in "iub":
            raise errors.TensorTypeError(
                "only integer tensors of a single element can be converted to an index"
            )
        return int(self._array.item())

    def __len__(self) -> int:
        if not self._array.ndim:
            raise errors.TensorTypeError("len() of a 0-d tensor")
        return len(self._array)

    def __iter__(self) -> Any:
        if not self._array.ndim:
            raise errors.TensorTypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __contains__(self, value: Any) -> bool:
        check_readable()
        return bool((self._array == getattr(value, "_array", value)).any())

    def __format__(self, spec: str) -> str:
        if not self._array.ndim and spec:
            return format(self.item(), spec)
        return format(str(self), spec) if spec else str(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if not self.is_leaf:
            raise errors.AutogradError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
                "protocol at the moment."
            )
        found = object.__new__(type(self))
        memo[id(self)] = found
        found._array = self._array.copy()
        found._requires_grad = self._requires_grad
        found._grad = None if self._grad is None else self._grad.__deepcopy__(memo)
        return found

    def __reduce_ex__(self, protocol: Any) -> Any:
        if not self.is_leaf:
            raise errors.AutogradError("only leaf tensors can be pickled; detach() it first")
        return restore, (type(self), self._array, self._requires_grad)

    __hash__ = object.__hash__

    if TYPE_CHECKING:  # attached by this package's other modules

        def __getattr__(self, name: str) -> Any: ...
        def __getitem__(self, key: Any) -> Tensor: ...
        def __setitem__(self, key: Any, value: Any) -> None: ...
        def __add__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __pow__(self, other: Any) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __lt__(self, other: Any) -> Tensor: ...
        def __le__(self, other: Any) -> Tensor: ...
        def __gt__(self, other: Any) -> Tensor: ...
        def __ge__(self, other: Any) -> Tensor: ...


Tensor.__module__ = "symgrad"


def wrap(array: Array) -> Tensor:
    """A tensor of this very array, without history."""
    found = object.__new__(Tensor)
    found._array = array
    return found


def restore(kind: type[Tensor], array: Array, requires_grad: bool) -> Tensor:
    """A leaf, out of what was pickled."""
    found = object.__new__(kind)
    found._array = array
    found._requires_grad = requires_grad
    return found


# -- sizes and versions


class Size(tuple[int, ...]):
    """The shape of a tensor: a tuple of ints."""

    __slots__ = ()

    def numel(self) -> int:
        """The number of elements."""
        return math.prod(self)

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return Size(found) if isinstance(key, slice) else found

    def __add__(self, other: Any) -> Size:
        return Size((*self, *other))

    def __repr__(self) -> str:
        return f"symgrad.Size({list(self)})"


class Version:
    """How often a piece of memory was written in place."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


Size.__module__ = "symgrad"


# -- memory


def given(parts: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """What a constructor is given, ``data`` or ``size`` by name too.  Raises TensorTypeError."""
    for word in ("data", "size"):
        if word in named and not parts:
            parts = (Size(named.pop(word)) if word == "size" else named.pop(word),)
    if named:
        raise errors.TensorTypeError(
            f"new() received an invalid combination of arguments: {', '.join(named)}",
            hint="sg.tensor(data, dtype=...) takes a dtype",
        )
    return parts


def new_array(parts: tuple[Any, ...], dtype: DType) -> Array:
    """What ``Tensor(...)`` and ``x.new(...)`` make: of sizes, of a sequence, of a tensor a copy.

    Raises TensorTypeError for anything else, TensorValueError for rows of several lengths.
    """
    if not parts:
        return np.zeros(0, str(dtype))
    data: Any = parts[0] if len(parts) == 1 else None
    if isinstance(getattr(data, "_array", None), np.ndarray):
        return np.array(data._array)
    if all(isinstance(size, (int, np.integer)) and type(size) is not bool for size in parts):
        data = Size(parts)
    if isinstance(data, Size):
        if any(size < 0 for size in data):
            least = min(data)
            raise errors.EagerShapeError(
                f"Trying to create tensor with negative dimension {least}: {list(data)}"
            )
        return np.zeros(data, str(dtype))
    if len(parts) > 1:
        raise errors.TensorTypeError("new(): argument 'size' failed to unpack: sizes are ints")
    if isinstance(data, str):
        raise errors.TensorTypeError("new(): invalid data type 'str'")
    if not isinstance(data, (list, tuple, np.ndarray)):
        raise errors.TensorTypeError(f"new(): data must be a sequence (got {type(data).__name__})")
    try:
        if dtype.is_integer:
            check_fits(data, dtype)
    except DTypeError as error:
        raise errors.EagerDTypeError(error.what) from None
    try:
        return np.asarray(np.array(data), str(dtype))
    except ValueError as error:
        raise errors.TensorValueError(f"cannot make a tensor from this: {error}") from None


def element_strides(array: Array, dim: int | None = None) -> Any:
    """How many elements apart neighbours along each axis, or one, lie.

    Without elements they are counted as in torch: as if every axis had one.
    """
    found = tuple(step // array.itemsize for step in array.strides)
    if not array.size:
        later = (array.shape[axis + 1 :] for axis in range(array.ndim))
        found = tuple(math.prod(max(size, 1) for size in sizes) for sizes in later)
    if dim is None:
        return found
    rank = max(array.ndim, 1)
    if not -rank <= dim < rank:
        raise errors.TensorIndexError(
            f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but "
            f"got {dim})"
        )
    return found[dim]
