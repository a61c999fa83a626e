"""The symbolic tensor: what forward and backward compute with while they are traced.

In: a storage and the steps from it to what this tensor shows.  Out: the node of its present value.

Its methods and operators are attached by ``symgrad.frontend.functions``, from the same table that
the functions ``sg.exp``, ``sg.where``... come from.  It has value semantics under mutation: a
write in place gives the storage a new node, which every view of the storage then reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from symgrad.errors import (
    ControlFlowError,
    DTypeError,
    ProtocolError,
    ShapeError,
    UnsupportedOpError,
)
from symgrad.frontend import unsupported
from symgrad.frontend.session import active, current, here
from symgrad.frontend.sizes import Shape, as_dim, as_size
from symgrad.frontend.views import Step, Storage, contiguous_strides
from symgrad.ir.dim import Dim, product
from symgrad.ir.dtype import DType
from symgrad.ir.graph import Node


class SymbolicTensor:
    """A tensor whose sizes are symbols and whose value is a node of the graph in progress.

    ``node``: its present value.
    """

    __array_priority__ = 1000
    requires_grad = True
    is_leaf = False
    is_cuda = False
    is_sparse = False
    is_quantized = False
    grad = None
    grad_fn = None
    device = "cpu"
    layout = "strided"
    is_cpu = True

    def __new__(cls, *args: Any, **kwargs: Any) -> SymbolicTensor:
        """An object of the class that the trace in progress asks for."""
        session = active() if cls is SymbolicTensor else None
        found: SymbolicTensor = object.__new__((session and session.tensor_class) or cls)
        return found

    def __init__(
        self,
        storage: Storage,
        steps: tuple[Step, ...] = (),
        *,
        strides: tuple[Dim, ...] | None = None,
    ) -> None:
        self.storage = storage
        self.steps = steps
        self.strides = contiguous_strides(storage.node.shape) if strides is None else strides
        self._cached: tuple[int, Node] | None = None
        session = active()
        if session is not None and session.history is not None:
            session.history.born(self)

    @property
    def node(self) -> Node:
        """Its present value."""
        node, session = self.storage.node, current()
        if node.graph is not session.graph:
            raise ProtocolError(
                "a tensor of another trace is used", location=here(),
                hint="keep tensors on ctx, not in globals or on the class",
            )  # fmt: skip
        if self._cached is None or self._cached[0] != self.storage.version:
            for step in self.steps:
                node = step.read(session, node)
            self._cached = (self.storage.version, node)
        return self._cached[1]

    def known_node(self) -> Node | None:
        """Its present value if it has been read since the last write."""
        if not self.steps:
            return self.storage.node
        if self._cached is None or self._cached[0] != self.storage.version:
            return None
        return self._cached[1]

    @property
    def lies_contiguous(self) -> bool:
        """Do its elements follow one another in memory, given that those of inputs do?"""
        plain = contiguous_strides(self.node.shape)
        return all(
            size == 1 or stride == wanted
            for size, stride, wanted in zip(self.node.shape, self.strides, plain, strict=True)
        )

    def shared(self, *steps: Step) -> SymbolicTensor:
        """A tensor that shares this one's memory and shows it after ``steps``.

        Raises ShapeError where the same memory cannot show that shape.
        """
        node, strides = self.node, self.strides
        session = current()
        if session.history is not None:
            steps = (*steps, *session.history.cuts())
        for step in steps:
            found = step.strides(node.shape, strides)
            if found is None:
                raise ShapeError(
                    f"a view of shape {list(Shape.of(node.shape))} cannot have another shape: its "
                    "elements do not follow one another in memory", location=here(),
                    hint="use reshape, which copies",
                )  # fmt: skip
            node, strides = step.read(session, node), found
        shown = SymbolicTensor(self.storage, (*self.steps, *steps), strides=strides)
        shown._cached = (self.storage.version, node)
        return shown

    def write(self, value: Node, *, convert: bool = False) -> None:
        """Replace its elements by those of ``value``, broadcast to its shape and in its dtype.

        Unless ``convert`` is set, a float result does not go into an integer tensor.
        """
        session = current()
        lower = value.dtype.category > self.dtype.category
        if lower and not convert:
            raise DTypeError(
                f"a {value.dtype} result cannot be written into a {self.dtype} tensor",
                location=here(), hint=f"convert the tensor first: .to(sg.{value.dtype})",
            )  # fmt: skip
        shape = self.node.shape
        if value.rank > len(shape):
            extra = value.rank - len(shape)
            if any(size != 1 for size in value.shape[:extra]):
                raise ShapeError(
                    f"a value of shape {Shape.of(value.shape)} cannot be written into a tensor of "
                    f"shape {self.shape}", location=here(),
                )  # fmt: skip
            value = session.reshape(value, value.shape[extra:])
        value = session.expand(session.cast(value, self.dtype), shape)
        if session.history is not None:
            value = session.history.written(self, value)
        self.storage.write(session, self.steps, value)

    # -- what it is

    @property
    def shape(self) -> Shape:
        """Its sizes: ints where they are known, symbolic sizes elsewhere."""
        return Shape.of(self.node.shape)

    @property
    def dtype(self) -> DType:
        """Its element type."""
        return self.storage.node.dtype

    @property
    def ndim(self) -> int:
        """The number of its axes."""
        return self.node.rank

    def dim(self) -> int:
        """The number of its axes."""
        return self.node.rank

    ndimension = dim

    def size(self, dim: int | None = None) -> Any:
        """Its shape, or one of its sizes."""
        return self.shape if dim is None else self.shape[dim]

    def numel(self) -> Any:
        """The number of its elements."""
        return as_size(product(self.node.shape))

    nelement = numel

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Does it lie contiguously, given that inputs do?"""
        return self.lies_contiguous

    def is_floating_point(self) -> bool:
        """Is its dtype a float?"""
        return self.dtype.is_float

    def is_complex(self) -> bool:
        """No: there are no complex dtypes."""
        return False

    def is_same_size(self, other: SymbolicTensor) -> bool:
        """Has the other tensor the same shape?  Asks about sizes where it must."""
        return bool(self.shape == other.shape)

    def element_size(self) -> int:
        """The bytes of one element."""
        return self.dtype.itemsize

    def get_device(self) -> int:
        """As torch says for the CPU: -1."""
        return -1

    def requires_grad_(self, requires_grad: bool = True) -> SymbolicTensor:
        """Itself; where histories are followed, a tensor of its own to differentiate by."""
        history = current().history
        if requires_grad and history is not None and history.following and self.dtype.is_float:
            history.make_leaf(self)
        return self

    def __repr__(self) -> str:
        return f"<symbolic {self.storage.node.dtype.short}{list(self.shape) if active() else ''}>"

    def __deepcopy__(self, memo: Any) -> SymbolicTensor:
        return fresh(self.node)

    __copy__ = None  # copy.copy would share the storage without saying so

    # -- what it cannot be

    def _no_value(self, what: str) -> ControlFlowError:
        return ControlFlowError(
            f"{what}: its value is unknown during tracing", location=here(),
            hint="use sg.where(cond, a, b); pass a number that must be known as a static argument",
        )  # fmt: skip

    def __bool__(self) -> bool:
        raise self._no_value(
            "Python cannot branch on a tensor here (if, while, and, or, not, assert)"
        )

    def __float__(self) -> float:
        raise self._no_value("float() cannot read a tensor here")

    def __int__(self) -> int:
        raise self._no_value("int() cannot read a tensor here")

    def __index__(self) -> int:
        raise self._no_value("a tensor cannot be a Python index or an argument of range() here")

    def item(self) -> Any:
        """Raises ControlFlowError: a trace has no values."""
        raise self._no_value(".item() cannot read a tensor here")

    def tolist(self) -> Any:
        """Raises ControlFlowError: a trace has no values."""
        raise self._no_value(".tolist() cannot read a tensor here")

    def equal(self, other: Any) -> Any:
        """Raises ControlFlowError: a trace has no values."""
        raise self._no_value(".equal() cannot compare tensors here")

    allclose = equal

    def numpy(self, *args: Any, **kwargs: Any) -> Any:
        """Raises ControlFlowError: a trace has no values."""
        raise self._no_value(".numpy() cannot read a tensor here")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise self._no_value("a tensor cannot become a NumPy array here")

    def __format__(self, spec: str) -> str:
        if spec:
            raise self._no_value("a tensor cannot be formatted here")
        return repr(self)

    def __len__(self) -> int:
        size = self._leading("len()")
        if not isinstance(size, int):
            raise _unknown_length("len()", size)
        return size

    def __iter__(self) -> Any:
        size = self._leading("iteration")
        if not isinstance(size, int):
            raise _unknown_length("a loop over a tensor", size)
        return iter([self.select(0, index) for index in range(size)])

    def _leading(self, wanted: str) -> Any:
        if not self.ndim:
            raise ShapeError(f"{wanted} of a tensor without axes", location=here())
        return self.shape[0]

    def __getattr__(self, name: str) -> Any:
        raise unsupported.missing_method(name, here())

    __hash__ = object.__hash__

    if TYPE_CHECKING:  # attached by symgrad.frontend.functions

        def __getitem__(self, key: Any) -> SymbolicTensor: ...
        def __setitem__(self, key: Any, value: Any) -> None: ...
        def __add__(self, other: Any) -> SymbolicTensor: ...
        def __radd__(self, other: Any) -> SymbolicTensor: ...
        def __sub__(self, other: Any) -> SymbolicTensor: ...
        def __rsub__(self, other: Any) -> SymbolicTensor: ...
        def __mul__(self, other: Any) -> SymbolicTensor: ...
        def __rmul__(self, other: Any) -> SymbolicTensor: ...
        def __truediv__(self, other: Any) -> SymbolicTensor: ...
        def __rtruediv__(self, other: Any) -> SymbolicTensor: ...
        def __pow__(self, other: Any) -> SymbolicTensor: ...
        def __matmul__(self, other: Any) -> SymbolicTensor: ...
        def __neg__(self) -> SymbolicTensor: ...
        def __invert__(self) -> SymbolicTensor: ...
        def __and__(self, other: Any) -> SymbolicTensor: ...
        def __or__(self, other: Any) -> SymbolicTensor: ...
        def __lt__(self, other: Any) -> SymbolicTensor: ...
        def __le__(self, other: Any) -> SymbolicTensor: ...
        def __gt__(self, other: Any) -> SymbolicTensor: ...
        def __ge__(self, other: Any) -> SymbolicTensor: ...


def fresh(node: Node, label: str = "") -> SymbolicTensor:
    """A tensor with memory of its own."""
    return SymbolicTensor(Storage(node, label))


def _unknown_length(wanted: str, size: Any) -> ControlFlowError:
    return ControlFlowError(
        f"{wanted} needs a number, and the size {size} is symbolic", location=here(),
        hint=f"write whole-tensor operations, or a number in place of {size} in the shape spec",
        number=as_dim(size),
    )  # fmt: skip


# -- elements that a mask selects


class SelectedTensor(SymbolicTensor):
    """``x[mask]``: the elements of ``whole`` where ``mask`` is True; both have one shape.

    How many these are depends on values, so it has no shape.  Elementwise operations compute with
    the whole tensor, and the mask says which elements count.  It can be summed, and assigned under
    the same mask.
    """

    def __init__(self, whole: Node, mask: Node) -> None:
        super().__init__(Storage(whole))
        self.mask = mask

    @property
    def whole(self) -> Node:
        """The tensor that the elements are selected from."""
        return self.storage.node

    def replace(self, whole: Node) -> None:
        """Put other elements in place of these."""
        self.storage.node = whole
        self.storage.version += 1

    @property
    def node(self) -> Node:
        """Raises UnsupportedOpError: as a tensor, it has no shape."""
        raise UnsupportedOpError(
            "x[mask] has a shape that depends on values", location=here(),
            hint="elementwise operations, sum(), mean() and assignment under the same mask work; "
            "for anything else keep the whole tensor and choose with sg.where",
        )  # fmt: skip

    def known_node(self) -> Node | None:
        """Nothing to name: the node is that of the whole."""
        return None

    def __repr__(self) -> str:
        return "<symbolic elements selected by a mask>"
