"""Dtypes, copies, and what cuts off differentiation.

In: tensors.  Out: tensors; the same one where nothing changes, as in torch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from symgrad.errors import ShapeError
from symgrad.frontend.caller import here
from symgrad.frontend.constants import known_number
from symgrad.frontend.dtypes import as_dtype
from symgrad.frontend.functions.movement import share
from symgrad.frontend.history import (
    DETACHED,
    Detached,
    detached,
    perhaps_copy,
    perhaps_itself,
)
from symgrad.frontend.lift import as_tensor, on_nodes, result_dtype
from symgrad.frontend.questions import questions
from symgrad.frontend.regions import PLAIN
from symgrad.frontend.session import active, current
from symgrad.frontend.table import FUNCTIONS, operation
from symgrad.frontend.tensor import (
    REQUIRES,
    TWIN,
    SelectedTensor,
    SymbolicTensor,
    TensorNumber,
    fresh,
    own_names,
)
from symgrad.ir.dim import product
from symgrad.ir.dtype import ALL, DType, bool_
from symgrad.ops.movement import bare

Tensor = SymbolicTensor


def converted(input: Tensor, dtype: DType) -> Tensor:
    """In another dtype: a new tensor; itself when it has that dtype."""
    if input.dtype == dtype:
        return input
    found = on_nodes(lambda node: current().cast(node, dtype), (input,), None)
    if dtype.is_float and input.dtype.is_float:  # a proof holds for inputs of that dtype, too
        current().uncertain(input.storage, found.storage)
    return found


def _conversion(name: str, dtype: DType) -> Callable[..., Tensor]:
    def call(self: Tensor, *, memory_format: Any = None, **ignored: Any) -> Tensor:
        return _in(self, name, (str(dtype),), memory_format=memory_format)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"The tensor in {dtype}."
    return call


for _dtype in ALL:
    operation(_dtype.method, function=False)(_conversion(_dtype.method, _dtype))


@operation("to", "astype", function=False)
def to(
    self: Tensor, *args: Any, dtype: Any = None, copy: bool = False, memory_format: Any = None,
    **ignored: Any,
) -> Tensor:  # fmt: skip
    """In another dtype, or that of another tensor; devices are ignored.

    Of two bools among the arguments the second one is ``copy``, the first one ``non_blocking``.
    """
    return _in(self, "to", args, dtype=dtype, copy=copy, memory_format=memory_format)


def _in(
    self: Tensor, name: str, args: tuple[Any, ...], *, memory_format: Any, dtype: Any = None,
    copy: bool = False,
) -> Tensor:  # fmt: skip
    """What the method of a name gives: ``to``, ``float``."""
    found = _to(self, *args, dtype=dtype, copy=copy)
    layout = layout_of(memory_format, self.ndim)
    alike(self, found, name)
    if layout == "kept" or found.storage is not self.storage:
        return laid_out(found, memory_format)
    if layout == "other" or not self.lies_contiguous:
        return _perhaps_copied(self, name, settled=False)
    return self.perhaps_copied(f"{name}() gives the tensor itself, and no copy")


def _to(self: Tensor, *args: Any, dtype: Any, copy: bool) -> Tensor:
    flags = [arg for arg in args if isinstance(arg, bool)]
    source: Tensor = clone(self) if copy or (len(flags) > 1 and flags[1]) else self
    for arg in (*args, *([dtype] if dtype is not None else [])):
        if isinstance(arg, Tensor):
            node = bare(arg.node)
            if node.op == "input" and node.attributes["name"] in current().declared(PLAIN):
                raise TypeError("to() takes a dtype, a device or a tensor, and no number")
            return converted(source, arg.dtype)
        if not isinstance(arg, bool) and not is_device(arg):
            return converted(source, as_dtype(arg))
    return source


_DEVICE = re.compile(r"(cpu|cuda|mps|xpu|xla|hpu|mtia|meta)(:\d+)?")
"""The devices that torch knows; whatever else is asked for is a dtype, or nothing."""


def is_device(value: Any) -> bool:
    """Is it a device and no dtype: ``"cuda:0"``, an object that is called a device?"""
    if isinstance(value, str):
        return _DEVICE.fullmatch(value) is not None
    return value is None or type(value).__name__ == "device"


@operation("type", function=False)
def type_(self: Tensor, dtype: Any = None, **ignored: Any) -> Any:
    """In another dtype; without one, the name of its own."""
    if dtype is None:
        return f"symgrad.{self.dtype}"
    return alike(self, converted(self, as_dtype(dtype)), "type")


@operation("type_as", function=False)
def type_as(self: Tensor, other: Tensor) -> Tensor:
    """In the dtype of another tensor."""
    return alike(self, converted(self, other.dtype), "type_as")


def alike(self: Tensor, found: Tensor, name: str) -> Tensor:
    """What a method gives; where that is the tensor itself, it may be a copy in other calls."""
    if found is self:
        perhaps_itself(self, name)
    return found


@operation("clone", "copy")
def clone(input: Any, *, memory_format: Any = None, **ignored: Any) -> Tensor:
    """A copy with memory of its own."""
    found = on_nodes(lambda node: node, (input,), None)
    return laid_out(found, memory_format)


@operation("contiguous", function=False)
def contiguous(self: Tensor, *, memory_format: Any = None, **ignored: Any) -> Tensor:
    """Itself where it lies contiguously, else a copy that does."""
    known, session = questions(), current()
    if layout_of(memory_format, self.ndim) == "other":
        return _perhaps_copied(self, "contiguous", settled=False)
    answer = self.surely_contiguous
    if answer is None and known is not None and known.identity:
        answer = self.is_contiguous()
    if answer is not None:
        return self if answer else fresh(self.node, settled=True)
    if not self.lies_contiguous:
        return _perhaps_copied(self, "contiguous", settled=True)
    if not session.strided:
        return self
    perhaps_itself(self, "contiguous")
    return self.perhaps_copied("contiguous() gives the tensor itself, and no copy", settled=True)


def _perhaps_copied(input: Tensor, name: str, *, settled: bool) -> Tensor:
    """A copy where the tensor lies otherwise, as contiguous inputs make it lie."""
    copied = fresh(input.node, settled=settled)
    current().uncertain(input.storage, copied.storage)
    perhaps_copy(input, copied, name)
    own_names(input)[TWIN] = own_names(copied)[TWIN] = True
    return copied


_RANKS = {"channels_last": 4, "channels_last_3d": 5}
"""Orders of axes in memory, and how many axes there have to be."""


def layout_of(memory_format: Any, rank: int) -> str:
    """What a format asks for: ``rows``, strides that are ``kept``, or any ``other`` ones.

    Raises ShapeError for one of another number of axes.
    """
    name = str(memory_format).removeprefix("torch.")
    if memory_format is None or name == "preserve_format":
        return "kept"
    if name in ("contiguous_format", "legacy_contiguous_format"):
        return "rows"
    if _RANKS.get(name, rank) != rank:
        raise ShapeError(
            f"required rank {_RANKS[name]} tensor to use {name} format", location=here()
        )
    return "other"


def laid_out(made: Tensor, memory_format: Any) -> Tensor:
    """New memory as a format asks for it."""
    layout = "kept" if isinstance(made, SelectedTensor) else layout_of(memory_format, made.ndim)
    if layout == "rows":
        made.lies_in_rows()
    elif layout == "other":
        made.lies_anyhow()
    return made


@operation("cpu", "cuda", function=False)
def cpu(self: Tensor, *args: Any, **ignored: Any) -> Tensor:
    """Itself: there are no devices here."""
    known = questions()
    if known is not None and known.identity and known.on_gpu(here()):
        return fresh(self.node)
    perhaps_itself(self, "cpu() or cuda")
    return self


@operation("detach")
def detach(input: Any) -> Tensor:
    """The tensor cut off from differentiation, in the same memory."""
    source, session = as_tensor(input), current()
    history = session.history
    following = session.cuts or (history is not None and history.following)
    if not session.cuts:
        session.note_detached()
    if isinstance(source, SelectedTensor):
        if not following:
            return source
        return source.with_whole(detached(session, source.whole, DETACHED))
    found = source.shared(Detached(DETACHED)) if following else share(source)
    own_names(found)[REQUIRES] = False
    return found


def item(self: Tensor) -> Any:
    """The number that a tensor of one element holds, cut off from differentiation.

    Python may compute with it; an integer that depends on no input is Python's own.  Raises
    ControlFlowError where it has to know the value of another one.
    """
    node, session = self.node, current()
    if not session.truth(product(node.shape), "==", 1):
        raise ShapeError(
            f"a Tensor with {product(node.shape)} elements cannot be converted to Scalar",
            location=here(),
        )
    alone = detach(fresh(session.reshape(node, ())))
    if node.dtype == bool_:
        return bool(alone)
    known = None if node.dtype.is_float else known_number(alone.node)
    return TensorNumber.of(alone) if known is None else known


def tolist(self: Tensor) -> Any:
    """Lists of such numbers.  Raises ControlFlowError for a size that is symbolic."""
    return self.item() if not self.ndim else [tolist(part) for part in self]


setattr(SymbolicTensor, "item", item)  # noqa: B010
setattr(SymbolicTensor, "tolist", tolist)  # noqa: B010


def constant(input: Tensor) -> Tensor:
    """The same values as a constant, also in the trace of an eager operation."""
    session = current()
    if session.history is not None:
        return detach(input)
    return fresh(session.apply("detach", input.node, why=DETACHED)) if session.eager else input


@operation("detach_", function=False)
def detach_(self: Tensor) -> Tensor:
    """The tensor itself, cut off from differentiation."""
    session = current()
    self.lasting("{} is detached in place")
    session.note_detached()
    if session.history is not None and session.history.following:
        session.history.give_up("detach_ is not followed")
    return self


SymbolicTensor.data = property(detach)  # type: ignore[attr-defined]


@operation("alias", function=False)
def alias(self: Tensor) -> Tensor:
    """The tensor in the same memory."""
    return share(self)


@operation("is_tensor", method=False)
def is_tensor(value: Any) -> bool:
    """Is it a tensor?"""
    return isinstance(value, Tensor)


@operation("is_floating_point", method=False)
def is_floating_point(input: Any) -> bool:
    """Is its dtype a float?"""
    return as_tensor(input).dtype.is_float


@operation("numel", method=False)
def numel(input: Any) -> Any:
    """The number of its elements."""
    return as_tensor(input).numel()


@operation("result_type", method=False)
def result_type(input: Any, other: Any) -> DType:
    """The dtype that arithmetic of both has."""
    return result_dtype((input, other))


@contextmanager
def no_grad() -> Iterator[None]:
    """A block that differentiation does not enter."""
    session = active()
    if session is not None:
        session.note_detached()
    with _recording(False):
        yield


@contextmanager
def enable_grad() -> Iterator[None]:
    """A block that differentiation enters, as it does outside ``no_grad``."""
    with _recording(True):
        yield


@contextmanager
def _recording(mode: bool) -> Iterator[None]:
    session = active()
    known = None if session is None else session.questions
    before = None if known is None else known.mode
    if known is not None:
        known.set_mode(mode)
    try:
        if session is None or session.history is None:
            yield
        else:
            with session.history.set_recording(mode):
                yield
    finally:
        if known is not None:
            known.mode = before


@contextmanager
def set_grad_enabled(mode: bool) -> Iterator[None]:
    """``no_grad`` or ``enable_grad``."""
    with enable_grad() if mode else no_grad():
        yield


FUNCTIONS.update(
    no_grad=no_grad, inference_mode=no_grad, enable_grad=enable_grad,
    set_grad_enabled=set_grad_enabled,
)  # fmt: skip
