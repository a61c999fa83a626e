"""Arguments and results of ``vmap``: which axis of which tensor counts elements.

In: values, ``in_dims`` and ``out_dims``.  Out: axes in the structure of the values; the number of
elements; values with each leaf changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from symgrad.tensor import errors
from symgrad.tensor.pytree import each
from symgrad.tensor.trace.symbolic import is_tensor


def broadcast(dims: Any, value: Any, name: str) -> Any:
    """``dims`` in the structure of ``value``; one number stands for all that lies below."""
    if dims is None or isinstance(dims, int):
        return each(lambda _: dims, value)
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


def axes_of(in_dims: Any, args: Sequence[Any]) -> Any:
    """``in_dims`` in the structure of the arguments.  Raises TensorValueError."""
    if not args:
        raise errors.TensorValueError(
            "vmap: got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over "
            "a function with no inputs. The latter is unsupported."
        )
    found = broadcast(in_dims, args, "in_dims")
    for value, axis in leaves(args, found):
        if axis is not None and not is_tensor(value):
            raise errors.TensorValueError(
                f"vmap: got in_dim={axis} for an input that is a {type(value).__name__}; only "
                "tensors can be mapped over",
                hint="in_dims=None for an argument that is the same for all elements",
            )
        if axis is not None and not -value.ndim <= axis < value.ndim:
            raise errors.TensorValueError(
                f"vmap: got in_dim={axis} for an input, but that is a tensor of {value.ndim} "
                "dimensions"
            )
    return found


def first_axes(kwargs: Any) -> Any:
    """Keyword arguments are mapped over their first axis, where they are tensors."""
    return each(lambda value: 0 if is_tensor(value) else None, kwargs)


def leaves(value: Any, axes: Any) -> Iterator[tuple[Any, int | None]]:
    """The leaves of a value with their axes, in order."""
    if isinstance(axes, (tuple, list)):
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
    if isinstance(axes, (tuple, list)):
        items = [mapped(change, item, axis) for item, axis in zip(value, axes, strict=True)]
        kind: Any = type(value)
        return kind(*items) if hasattr(kind, "_fields") else kind(items)
    if isinstance(axes, dict):
        return type(value)((key, mapped(change, value[key], axes[key])) for key in axes)
    return change(value, axes)
