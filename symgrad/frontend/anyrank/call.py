"""A call of an operation in an any-rank trace: is it known to be blind to the number of axes?

In: the operation's name and arguments.  Out: its result, if a rule admits the call.

A rule admits a call if, for every number of batch axes, the operation does to the batch axes what
it does here to the batch axis: the result is the same after the batch indices are flattened.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from symgrad.frontend.anyrank.session import AnyRankSession, Layout, is_batch_axis, layout_of
from symgrad.frontend.anyrank.shape import AnyRank, AnyRankShape
from symgrad.frontend.sizes import AnyRankSize
from symgrad.frontend.table import renamed
from symgrad.frontend.tensor import SelectedTensor, SymbolicTensor
from symgrad.ir.dim import Dim
from symgrad.ir.registry import registered
from symgrad.ops.record import get

RULES: dict[str, Callable[[Call], Any]] = {}
"""The rule of an operation that may meet a batch axis, by its name.  Elementwise ops need none."""


@dataclass(frozen=True)
class Call:
    """An operation called with something that has a batch axis."""

    session: AnyRankSession
    name: str
    raw: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    def run(self) -> Any:
        """Compute it."""
        return self.raw(*self.args, **self.kwargs)

    @cached_property
    def given(self) -> Mapping[str, Any]:
        """The arguments by parameter, with defaults.  Raises TypeError for what does not fit."""
        bound = _signature(self.raw).bind(*self.args, **self.kwargs)
        bound.apply_defaults()
        return bound.arguments

    @property
    def tensors(self) -> list[Any]:
        """All tensors and arrays among the arguments, inside of lists too."""
        kinds = (SymbolicTensor, np.ndarray)
        return [item for item in parts(self.given) if isinstance(item, kinds)]

    def refuse(self, why: str) -> None:
        """It may do something else for another number of batch axes."""
        self.session.observe(f"{self.name}() {why}")


@lru_cache(maxsize=1024)
def _signature(raw: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(raw)


def rule(names: str) -> Callable[[Callable[[Call], Any]], Callable[[Call], Any]]:
    """Enter a rule in the table under names that are separated by blanks."""

    def enter(admit: Callable[[Call], Any]) -> Callable[[Call], Any]:
        for name in names.split():
            RULES[name] = admit
        return admit

    return enter


def rule_of(name: str, raw: Callable[..., Any]) -> Callable[[Call], Any] | None:
    """The rule of an operation: its own, or that of all that is elementwise.

    An operation is elementwise if its definition is marked so, or if it is an elementwise op of the
    registry by one of its names, or by that of its definition.
    """
    if name in RULES:
        return RULES[name]
    if getattr(raw, "elementwise", False):
        return elementwise
    ops = (name.removesuffix("_"), inspect.unwrap(raw).__name__)
    known = any(registered(op) and get(op).kind == "elementwise" for op in ops)
    return elementwise if known else None


def guarded(
    session: AnyRankSession, name: str, raw: Callable[..., Any], args: Any, kwargs: Any
) -> Any:
    """Call an operation, if nothing that it is given has a batch axis or its rule admits that."""
    found = list(parts((args, kwargs)))
    session.redeem(item for item in found if type(item) is AnyRankSize)
    with session.computing():
        if not any(map(has_batch_axis, found)):
            return raw(*args, **kwargs)
        admit = rule_of(name, raw)
        if any(isinstance(one, SelectedTensor) and one.mask.rank != 1 for one in found):
            session.observe(f"{name}() takes what a mask of several axes selects")
        if admit is None:
            session.observe(f"{name}() is not known to be the same for any number of batch axes")
        try:
            result = admit(Call(session, name, raw, tuple(args), renamed(raw, kwargs)))
        except Exception as error:
            session.observe(f"{name}() raises {type(error).__name__} ({error})")
        for item in parts(result):
            if isinstance(item, SymbolicTensor) and not _well_formed(session, shape_of(item)):
                session.observe(f"{name}() gives a tensor whose axes are mixed with batch axes")
        return result


def _well_formed(session: AnyRankSession, shape: Sequence[Dim]) -> bool:
    batches = [size for size in shape if is_batch_axis(size)]
    return len(batches) <= 1 and all(
        is_batch_axis(size) or session.flat(size) == size for size in shape
    )


def parts(value: Any) -> Iterator[Any]:
    """A value, or what it holds: the items of tuples, lists, dicts and slices."""
    if type(value) in (AnyRankShape, AnyRankSize, AnyRank):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from parts(item)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from parts(item)
    elif isinstance(value, slice):
        yield from parts((value.start, value.stop, value.step))
    else:
        yield value


def has_batch_axis(value: Any) -> bool:
    """Is it a tensor with a batch axis, its shape, or the batch axis itself?"""
    if isinstance(value, SymbolicTensor):
        return layout_of(shape_of(value)) is not None
    return type(value) in (AnyRankShape, AnyRankSize, AnyRank)


def shape_of(tensor: Any) -> tuple[Any, ...]:
    """The shape of a tensor or array; of elements that a mask selects, that of the whole."""
    if isinstance(tensor, np.ndarray):
        return tuple(tensor.shape)
    node = tensor.whole if isinstance(tensor, SelectedTensor) else tensor.node
    shape: tuple[Any, ...] = node.shape
    return shape


def layout(tensor: Any) -> Layout | None:
    """Where the batch axis of a tensor stands; None where there is none."""
    return layout_of(shape_of(tensor))


# -- what rules ask


def broadcasts(call: Call, shapes: Sequence[Sequence[Any]]) -> None:
    """Shapes that meet: batch axes at one place from the right, and nothing else in their place."""
    found = [layout_of(shape) for shape in shapes]
    batches = {(one.batch, one.right) for one in found if one is not None}
    if len(batches) > 1:
        call.refuse("lets batch axes at different places meet")
    for shape, own in zip(shapes, found, strict=True):
        if batches and own is None and len(shape) > next(iter(batches))[1]:
            call.refuse(f"lets a tensor with {len(shape)} axes meet batch axes")


def elementwise(call: Call) -> Any:
    """Element by element: the operands need only meet at the same batch axes."""
    if any(has_batch_axis(item) and not isinstance(item, SymbolicTensor) for item in call.args):
        call.refuse("takes a shape")
    broadcasts(call, [shape_of(tensor) for tensor in call.tensors])
    return call.run()


def same_layout(call: Call, tensors: Sequence[Any]) -> None:
    """Tensors that must have their batch axes at one place, counted from both ends."""
    if len({layout(tensor) for tensor in tensors}) > 1:
        call.refuse("takes tensors whose batch axes are at different places")


def off_batch_axis(call: Call, axis: Any, found: Layout | None, added: int = 0) -> None:
    """An axis must be counted from the end at which it stands.  ``added``: axes put in there."""
    if found is None:
        return
    if not isinstance(axis, int) or isinstance(axis, bool):
        call.refuse(f"takes the axis {axis!r}")
    if not (0 <= axis < found.left + added or -found.right - added <= axis < 0):
        call.refuse(f"takes the axis {axis}, counted across {found.batch}")


def fits_right(call: Call, tensor: Any, axes: int) -> None:
    """The operation works on so many last axes, which must stand right of the batch axis."""
    found = layout(tensor)
    if found is not None and found.right < axes:
        call.refuse(f"works on the last {axes} axes")
