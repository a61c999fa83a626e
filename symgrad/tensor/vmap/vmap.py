"""``sg.vmap``: a function of one element, for a whole batch at once.

In: a function of tensors.  Out: the function over one more axis.

Inside, each operation is traced on one element as outside of ``vmap``, and its graph is then
given the batch as its first axis; the tape records what is run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from symgrad.frontend.session import active
from symgrad.tensor import creation, errors
from symgrad.tensor.batched import Level, batched, inside, levels, whole
from symgrad.tensor.modes import state
from symgrad.tensor.trace.symbolic import is_tensor


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
        if state.lifting or active() is not None:
            from symgrad.tensor.vmap.trace import traced_vmap

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


@contextmanager
def entered(size: int, randomness: str) -> Iterator[Level]:
    """A level of its own."""
    level = Level(size, len(levels.active), randomness)
    levels.active.append(level)
    try:
        yield level
    finally:
        levels.active.pop()


# -- structures


def broadcast(dims: Any, value: Any, name: str) -> Any:
    """``dims`` in the structure of ``value``; one number stands for all that lies below."""
    if dims is None or isinstance(dims, int):
        return _each(value, dims)
    if isinstance(value, dict) and isinstance(dims, dict) and set(value) == set(dims):
        return {key: broadcast(dims[key], value[key], name) for key in value}
    if (
        isinstance(value, (tuple, list)) and isinstance(dims, (tuple, list))
        and len(value) == len(dims)
    ):  # fmt: skip
        return [broadcast(dim, item, name) for dim, item in zip(dims, value, strict=True)]
    if name == "out_dims" and isinstance(dims, (tuple, list)) and len(dims) == 1:
        return broadcast(dims[0], value, name)
    raise errors.TensorValueError(
        f"vmap: {name}={dims!r} does not have the structure of what it is for",
        hint="a number or None, or numbers in the same tuples, lists and dicts",
    )


def _each(value: Any, dim: int | None) -> Any:
    if isinstance(value, (tuple, list)):
        return [_each(item, dim) for item in value]
    if isinstance(value, dict):
        return {key: _each(item, dim) for key, item in value.items()}
    return dim


def axes_of(in_dims: Any, args: Sequence[Any]) -> Any:
    """``in_dims`` in the structure of the arguments.  Raises TensorValueError."""
    if not args:
        raise errors.TensorValueError(
            "vmap: got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over "
            "a function with no inputs. The latter is unsupported."
        )
    found = broadcast(in_dims, args, "in_dims")
    _check_axes(args, found, given=not isinstance(in_dims, int))
    return found


def _check_axes(value: Any, axes: Any, *, given: bool) -> None:
    """Raises TensorValueError for an axis that a tensor does not have, or of no tensor."""
    if isinstance(axes, list):
        for item, axis in zip(value, axes, strict=True):
            _check_axes(item, axis, given=given)
    elif isinstance(axes, dict):
        for key in axes:
            _check_axes(value[key], axes[key], given=given)
    elif axes is not None and is_tensor(value):
        if not -value.ndim <= axes < value.ndim:
            raise errors.TensorValueError(
                f"vmap: got in_dim={axes} for an input, but that is a tensor of {value.ndim} "
                "dimensions"
            )
    elif axes is not None:
        raise errors.TensorValueError(
            f"vmap: got in_dim={axes} for an input that is a {type(value).__name__}; only "
            "tensors can be mapped over",
            hint="in_dims=None for an argument that is the same for all elements",
        )


def first_axes(kwargs: Any) -> Any:
    """Keyword arguments are mapped over their first axis, where they are tensors."""
    if isinstance(kwargs, dict):
        return {key: first_axes(item) for key, item in kwargs.items()}
    if isinstance(kwargs, (tuple, list)):
        return [first_axes(item) for item in kwargs]
    return 0 if is_tensor(kwargs) else None


def leaves(value: Any, axes: Any) -> Iterator[tuple[Any, int | None]]:
    """The leaves of a value with their axes, in order."""
    if isinstance(axes, list):
        for item, axis in zip(value, axes, strict=True):
            yield from leaves(item, axis)
    elif isinstance(axes, dict):
        for key in axes:
            yield from leaves(value[key], axes[key])
    else:
        yield value, axes


def size_of(args: Any, axes: Any, kwargs: Any) -> int:
    """How many elements there are.  Raises TensorValueError where arguments disagree."""
    pairs = [*leaves(args, axes), *leaves(kwargs, first_axes(kwargs))]
    sizes = [value.shape[axis] for value, axis in pairs if axis is not None]
    if not sizes:
        raise errors.TensorValueError(
            f"vmap: at least one of in_dims must be a number, got {axes!r}"
        )
    if len(set(sizes)) > 1:
        raise errors.TensorValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return int(sizes[0])


def mapped(change: Callable[[Any, Any], Any], value: Any, axes: Any) -> Any:
    """The value with ``change(leaf, axis)`` in place of each leaf."""
    if isinstance(axes, list):
        items = [mapped(change, item, axis) for item, axis in zip(value, axes, strict=True)]
        kind: Any = type(value)
        return kind(*items) if hasattr(kind, "_fields") else kind(items)
    if isinstance(axes, dict):
        return type(value)((key, mapped(change, value[key], axes[key])) for key in axes)
    return change(value, axes)


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
    from symgrad.tensor.functions import FUNCTIONS

    return FUNCTIONS["cat"]([value for value, _ in column], column[0][1])
