"""``sg.vmap``: a function of one element, for a whole batch at once.

In: a function of tensors.  Out: the function over one more axis.

Inside, each operation is traced on one element as outside of ``vmap``, and its graph is then
given the batch as its first axis; the tape records what is run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from symgrad.frontend.session import active
from symgrad.frontend.table import FUNCTIONS
from symgrad.tensor import creation, errors
from symgrad.tensor.batched import Level, batched, entered, inside, whole
from symgrad.tensor.trace.symbolic import is_tensor
from symgrad.tensor.vmap.structures import axes_of, broadcast, first_axes, leaves, mapped, size_of
from symgrad.tensor.vmap.trace import traced_vmap


def vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error",
    *, chunk_size: int | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """The function applied to each element along an axis of its arguments, all at once.

    ``in_dims``: the axis of each argument that counts elements, None for one that is the same for
    all; a number for all arguments, or a structure like that of the arguments.  ``out_dims``:
    where the axis stands in the results.  ``randomness``: ``"different"`` random numbers for each
    element, the ``"same"`` for all, or an ``"error"`` where any are drawn.  ``chunk_size``: so
    many elements at a time.  Raises VmapError for what needs values, TensorValueError for axes
    that do not fit, AutogradError for another ``randomness``.
    """
    if randomness not in ("error", "different", "same"):
        raise errors.AutogradError(
            "Only allowed values for randomness are 'error', 'different', or 'same'. Got "
            f"{randomness}"
        )

    @functools.wraps(func)
    def vectorized(*args: Any, **kwargs: Any) -> Any:
        if active() is not None:
            return traced_vmap(func, in_dims, out_dims, args, kwargs)
        axes = axes_of(in_dims, args)
        size = size_of(args, axes, kwargs)
        if chunk_size is not None and size > chunk_size:
            again = creation.again() if randomness == "same" else None
            return _in_chunks(
                vectorized_once, args, axes, size, chunk_size, out_dims, kwargs, again
            )
        return vectorized_once(args, axes, size, kwargs)

    def vectorized_once(args: Any, axes: Any, size: int, kwargs: Any) -> Any:
        with entered(size, randomness) as level:
            given = mapped(_enter(level), args, axes)
            named = mapped(_enter(level), kwargs, first_axes(kwargs))
            result = func(*given, **named)
            return mapped(_leave(level), result, broadcast(out_dims, result, "out_dims"))

    return vectorized


def _enter(level: Level) -> Callable[[Any, Any], Any]:
    def change(value: Any, axis: int | None) -> Any:
        if axis is None:
            return value
        return batched(value.movedim(axis, 0) if axis % value.ndim else value, level)

    return change


def _leave(level: Level) -> Callable[[Any, Any], Any]:
    def change(value: Any, axis: int | None) -> Any:
        if not is_tensor(value):
            raise errors.TensorValueError(
                f"vmap: the function must only return Tensors, got type {type(value).__name__}"
            )
        found, has = inside(value, level)
        if axis is None:
            if has:
                raise errors.TensorValueError(
                    "vmap: out_dims=None for a result that differs from element to element"
                )
            return found
        found = whole(value, level)
        if not -found.ndim <= axis < found.ndim:
            raise errors.TensorValueError(
                f"vmap: out_dim={axis} for a result of {found.ndim} dimensions, the batch included"
            )
        return found.movedim(0, axis) if axis % found.ndim else found

    return change


def _in_chunks(
    call: Callable[..., Any], args: Any, axes: Any, size: int, chunk: int, out_dims: Any,
    kwargs: Any, again: Callable[[], None] | None,
) -> Any:  # fmt: skip
    """Several smaller batches, one after the other, joined along the batch.

    ``again``: lets each draw the random numbers of the first.
    """
    if chunk < 1:
        raise errors.TensorValueError(f"vmap: chunk_size={chunk} is less than 1")
    parts = []
    for start in range(0, size, chunk):
        length = min(chunk, size - start)

        def part(value: Any, axis: Any, start: int = start, length: int = length) -> Any:
            return value if axis is None else value.narrow(axis, start, length)

        if again is not None:
            again()
        named = mapped(part, kwargs, first_axes(kwargs))
        parts.append(call(mapped(part, args, axes), axes, length, named))
    axes_out = broadcast(out_dims, parts[0], "out_dims")
    flat = [list(leaves(one, axes_out)) for one in parts]
    joined = iter(
        column[0][0] if column[0][1] is None else _concatenated(column)
        for column in zip(*flat, strict=True)
    )
    return mapped(lambda value, axis: next(joined), parts[0], axes_out)


def _concatenated(column: Sequence[tuple[Any, Any]]) -> Any:
    return FUNCTIONS["cat"]([value for value, _ in column], column[0][1])
