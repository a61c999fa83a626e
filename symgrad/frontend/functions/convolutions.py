"""Convolutions and their transposes, and what lies under each place of a window.

In: tensors (batch, channel, places); the batch may be missing.  Out: tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symgrad.errors import DTypeError, ShapeError, UnsupportedOpError
from symgrad.frontend.caller import here
from symgrad.frontend.functions.arithmetic import add
from symgrad.frontend.functions.movement import reshape
from symgrad.frontend.lift import as_tensor
from symgrad.frontend.session import current
from symgrad.frontend.sizes import Shape, as_dim, as_size
from symgrad.frontend.table import OperationCallError, operation
from symgrad.frontend.tensor import SymbolicTensor, fresh
from symgrad.frontend.views import concatenate
from symgrad.frontend.windows import (
    Dims,
    Window,
    convolved,
    kernel_gradient,
    padded,
    shared,
    spread,
    too_large,
)
from symgrad.ir.dim import Dim, product
from symgrad.ir.graph import Node

Tensor = SymbolicTensor


def each_axis(name: str, value: Any, count: int, least: int = 1) -> tuple[int, ...]:
    """A setting for each of the axes, none of them less than ``least``.

    Raises UnsupportedOpError for one that is no number.
    """
    given = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    found = given * count if len(given) == 1 else given
    for one in found:
        size = as_dim(one)
        if size.constant is None:
            raise UnsupportedOpError(
                f"{name} {one} is symbolic", location=here(), hint="give it as a number",
                number=size,
            )  # fmt: skip
    if len(found) != count:
        raise OperationCallError(f"{name} has {len(found)} numbers, not {count}", location=here())
    numbers = tuple(int(as_dim(one).constant or 0) for one in found)
    if min(numbers) < least:
        raise OperationCallError(
            f"{name} is at least {least}, and not {min(numbers)}", location=here()
        )
    return numbers


def positions(node: Node, window: Window) -> Dims:
    """How many places the window takes along each of the last axes, which hold what pads them."""
    found = []
    own = node.shape[-len(window.sizes) :]
    for whole, size, step, gap in zip(own, window.sizes, window.steps, window.gaps, strict=True):
        left = whole - (size - 1) * gap - 1
        if size.constant is None and left.constant is None:
            raise too_large(window.sizes)
        if current().truth(left, "<", 0):
            raise ShapeError(
                f"a window over {as_size((size - 1) * gap + 1)} elements is longer than an axis of "
                f"{as_size(whole)}", location=here(),
            )  # fmt: skip
        found.append((left // step if step != 1 else left) + 1)
    return tuple(found)


def with_batch(name: str, node: Node, count: int) -> tuple[Node, bool]:
    """A node with a batch, and whether that was added."""
    if node.rank == count + 2:
        return node, False
    if node.rank != count + 1:
        raise ShapeError(
            f"{name} takes {count + 1} or {count + 2} axes, not the {node.rank} of "
            f"{list(Shape.of(node.shape))}", location=here(),
        )  # fmt: skip
    return current().reshape(node, (1, *node.shape)), True


def without_batch(node: Node, added: bool) -> Tensor:
    """What ``with_batch`` added taken away."""
    return fresh(current().reshape(node, node.shape[1:]) if added else node)


def _operands(name: str, input: Any, weight: Any, count: int) -> tuple[Node, Node]:
    x, w = as_tensor(input).node, as_tensor(weight).node
    if x.dtype != w.dtype or not x.dtype.is_float:
        raise DTypeError(
            f"{name} takes floats of one dtype, not {x.dtype} and {w.dtype}", location=here()
        )
    if w.rank != count + 2:
        raise ShapeError(f"{name} takes a weight of {count + 2} axes", location=here())
    return x, w


def _with_bias(name: str, found: Tensor, bias: Any, count: int) -> Tensor:
    if bias is None:
        return found
    own = as_tensor(bias)
    if own.ndim != 1:
        raise ShapeError(f"{name} takes a bias of one axis, not of {own.ndim}", location=here())
    if own.dtype != found.dtype:
        raise DTypeError(
            f"{name} takes floats of one dtype, not {found.dtype} and a bias of {own.dtype}",
            location=here(),
        )  # fmt: skip
    _check_channels(f"the bias of {name}", own.node.shape[0], found.node.shape[-count - 1])
    return add(found, reshape(own, own.shape[0], *(1 for _ in range(count))))


def _check_channels(name: str, found: Dim, wanted: Dim) -> None:
    if found != wanted:
        raise ShapeError(
            f"{name}: {as_size(found)} channels where there are {as_size(wanted)}",
            location=here(), equal=[(found, wanted)],
        )  # fmt: skip


def _padding(padding: Any, window: Window) -> list[tuple[int, int]]:
    """Zeros before and behind each axis; ``"same"``: as many as keep its size."""
    if padding == "valid":
        padding = 0
    if padding != "same":
        return [(one, one) for one in each_axis("padding", padding, len(window.sizes), 0)]
    if set(window.steps) != {1}:
        raise OperationCallError("padding='same' takes no stride but 1", location=here())
    if any(size.constant is None for size in window.sizes):
        raise too_large(window.sizes)
    spans = [
        ((size.constant or 1) - 1) * gap
        for size, gap in zip(window.sizes, window.gaps, strict=True)
    ]
    return [(span // 2, span - span // 2) for span in spans]


def _convolution(count: int) -> Callable[..., Tensor]:
    name = f"conv{count}d"

    def call(
        input: Tensor, weight: Tensor, bias: Any = None, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: Any = 1,
    ) -> Tensor:  # fmt: skip
        x, w = _operands(name, input, weight, count)
        x, added = with_batch(name, x, count)
        steps, gaps = each_axis("stride", stride, count), each_axis("dilation", dilation, count)
        window, session, parts = Window(w.shape[2:], steps, gaps), current(), as_dim(groups)
        _check_channels(name, shared(x.shape[1], parts), w.shape[1])
        shared(w.shape[0], parts)
        wide = padded(session, x, _padding(padding, window))
        found = convolved(session, wide, w, window, positions(wide, window), parts)
        return _with_bias(name, without_batch(found, added), bias, count)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"The sums of products of ``weight`` and what lies under it, along {count} axes."
    return call


def _transposed(count: int) -> Callable[..., Tensor]:
    name = f"conv_transpose{count}d"

    def call(
        input: Tensor, weight: Tensor, bias: Any = None, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, groups: Any = 1, dilation: Any = 1,
    ) -> Tensor:  # fmt: skip
        x, w = _operands(name, input, weight, count)
        x, added = with_batch(name, x, count)
        _check_channels(name, x.shape[1], w.shape[0])
        steps, gaps = each_axis("stride", stride, count), each_axis("dilation", dilation, count)
        window, session = Window(w.shape[2:], steps, gaps), current()
        edges = [(one, one) for one in each_axis("padding", padding, count, 0)]
        behind = each_axis("output_padding", output_padding, count, 0)
        if any(more >= max(each) for more, *each in zip(behind, steps, gaps, strict=True)):
            raise OperationCallError(
                f"{name} takes an output_padding smaller than stride or dilation", location=here()
            )
        whole = tuple(
            (size - 1) * step + (own - 1) * gap + 1 + more
            for size, own, step, gap, more in zip(
                x.shape[2:], window.sizes, steps, gaps, behind, strict=True
            )
        )
        for size, (low, high) in zip(whole, edges, strict=True):
            if session.truth(size - low - high, "<", 1):
                raise ShapeError(f"{name} leaves no elements of an axis", location=here())
        found = spread(session, x, w, window, whole, as_dim(groups))
        cut = padded(session, found, [(-low, -high) for low, high in edges])
        return _with_bias(name, without_batch(cut, added), bias, count)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"The transpose of a convolution along {count} axes: its gradient by the input."
    return call


for _count in (1, 2, 3):
    operation(f"conv{_count}d", method=False)(_convolution(_count))
    operation(f"conv_transpose{_count}d", method=False)(_transposed(_count))


def convolution_gradients(
    grad: Tensor, input: Tensor, weight: Tensor, stride: Any, padding: Any, dilation: Any,
    groups: Any, wanted: tuple[bool, bool],
) -> tuple[Tensor | None, Tensor | None]:  # fmt: skip
    """The gradients of a convolution with a batch by its input and its weight, as far as wanted."""
    x, w, g, session = input.node, weight.node, as_tensor(grad).node, current()
    count = w.rank - 2
    steps, gaps = each_axis("stride", stride, count), each_axis("dilation", dilation, count)
    window, parts = Window(w.shape[2:], steps, gaps), as_dim(groups)
    edges = [(one, one) for one in each_axis("padding", padding, count, 0)]
    wide = padded(session, x, edges)
    for one, other in zip(positions(wide, window), g.shape[2:], strict=True):
        _check_sizes(other, one)
    by_input = by_weight = None
    if wanted[0]:
        whole = spread(session, g, w, window, wide.shape[2:], parts)
        by_input = fresh(padded(session, whole, [(-low, -high) for low, high in edges]))
    if wanted[1]:
        by_weight = fresh(kernel_gradient(session, wide, g, window, parts))
    return by_input, by_weight


def _check_sizes(found: Dim, wanted: Dim) -> None:
    if found != wanted:
        raise ShapeError(
            f"the gradient of a convolution has {as_size(found)} places, and not "
            f"{as_size(wanted)}", location=here(), equal=[(found, wanted)],
        )  # fmt: skip


# -- columns


def _window(kernel_size: Any, stride: Any, dilation: Any) -> Window:
    sizes = tuple(map(Dim.of, each_axis("kernel_size", kernel_size, 2)))
    return Window(sizes, each_axis("stride", stride, 2), each_axis("dilation", dilation, 2))


@operation("unfold", method=False)
def unfold(
    input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """What lies under each place of a window, as columns: (batch, channel * window, place)."""
    node, added = with_batch("unfold", as_tensor(input).node, 2)
    session, window = current(), _window(kernel_size, stride, dilation)
    wide = padded(session, node, [(one, one) for one in each_axis("padding", padding, 2, 0)])
    count = positions(wide, window)
    flat = (*node.shape[:2], Dim.of(1), product(count))
    pieces = [
        session.reshape(window.read(session, wide, place, count), flat) for place in window.places()
    ]
    found = concatenate(session, pieces, 2)
    rows = node.shape[1] * len(pieces)
    return without_batch(session.reshape(found, (node.shape[0], rows, flat[-1])), added)


@operation("fold", method=False)
def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0,
    stride: Any = 1,
) -> Tensor:  # fmt: skip
    """The transpose of ``unfold``: columns added up where they lie."""
    node, added = with_batch("fold", as_tensor(input).node, 1)
    session, window = current(), _window(kernel_size, stride, dilation)
    edges = each_axis("padding", padding, 2, 0)
    sizes = output_size if isinstance(output_size, (list, tuple)) else (output_size, output_size)
    if len(sizes) != 2:
        raise OperationCallError(f"fold takes 2 output sizes, not {len(sizes)}", location=here())
    whole = tuple(as_dim(size) + 2 * edge for size, edge in zip(sizes, edges, strict=True))
    places, batch = window.places(), node.shape[0]
    channels = shared(node.shape[1], Dim.of(len(places)))
    blank = session.expand(session.constant(0.0, node.dtype), (batch, channels, *whole))
    count = positions(blank, window)
    _check_sizes(node.shape[2], product(count))
    parted = session.reshape(node, (batch, channels, len(places), *count))
    total = None
    for at, place in enumerate(places):
        row = session.apply(
            "slice", parted, starts=tuple(map(Dim.of, (0, 0, at, 0, 0))), steps=(1,) * 5,
            sizes=(batch, channels, Dim.of(1), *count),
        )  # fmt: skip
        row = session.reshape(row, (batch, channels, *count))
        one = window.written(session, row, place, whole)
        total = one if total is None else session.apply("add", total, one)
    assert total is not None
    return without_batch(padded(session, total, [(-edge, -edge) for edge in edges]), added)
