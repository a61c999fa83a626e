"""Derivatives of Python functions: ``grad``, ``vjp``, ``jvp``, ``jacobian``, ``hessian``, ``hvp``.

In: a function of tensors.  Out: functions that return derivatives, or derivatives at a point.
Imports: numpy, this package's gradients, modes, symbolic gradients and tensors.

Each may be applied to the result of another: derivatives are recorded when their arguments are.
In a trace of a function of tensors (``sg.jit``) they differentiate the graph so far.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.frontend.table import FUNCTIONS
from symgrad.tensor import errors
from symgrad.tensor.batched import spread
from symgrad.tensor.dispatch import invoke
from symgrad.tensor.forward_mode import honouring_jvp
from symgrad.tensor.gradients import grad as gradients
from symgrad.tensor.modes import enable_grad, lifted, state
from symgrad.tensor.symbolic import basis, is_symbolic, is_tensor, renewed, zeros_like
from symgrad.tensor.tensor import Tensor, wrap

Places = int | Sequence[int]


def value_and_grad(
    func: Callable[..., Any], argnums: Places = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """``(gradient, value)`` of a function whose value is one number, as ``torch.func`` orders them.

    ``argnums``: the arguments to differentiate by.  ``has_aux``: the function returns
    ``(value, anything)``, and so does the result.  Raises AutogradError for other values.
    """

    @functools.wraps(func)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        with enable_grad():
            moved, wanted = _tracked(args, argnums)
            with honouring_jvp(False):
                result = func(*moved, **kwargs)
        value, aux = result if has_aux else (result, None)
        if not is_tensor(value) or value.numel() != 1:
            raise errors.AutogradError(
                "grad_and_value(f)(*args): Expected f(*args) to return a scalar tensor",
                hint="sum() it, or use sg.vjp or sg.jacobian",
            )
        found = _gradients([value], wanted, [None], _nested(args))
        chosen = found[0] if isinstance(argnums, int) else found
        value = value if _nested(args) else value.detach()
        return (chosen, (value, aux)) if has_aux else (chosen, value)

    return differentiated


def grad(
    func: Callable[..., Any], argnums: Places = 0, has_aux: bool = False
) -> Callable[..., Any]:  # fmt: skip
    """The gradient of a function whose value is one number; ``(gradient, aux)`` if ``has_aux``."""

    @functools.wraps(func)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        found, value = value_and_grad(func, argnums, has_aux)(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return differentiated


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """``(value, pull back)``: ``pull_back(v)`` is the tuple of the gradients v·J."""
    nested = _nested(primals)
    with enable_grad():
        moved, wanted = _tracked(primals, range(len(primals)))
        with honouring_jvp(False):
            result = func(*moved)
    value, aux = result if has_aux else (result, None)
    outputs = _outputs(value)

    def pull_back(*cotangents: Any) -> tuple[Any, ...]:
        given = cotangents[0] if len(cotangents) == 1 else cotangents
        vectors = [given] if is_tensor(given) else list(given)
        deep = nested or _nested(vectors)
        return tuple(_gradients(outputs, wanted, vectors, deep, keep=True))

    shown = value if nested else _detached(value)
    return (shown, pull_back, aux) if has_aux else (shown, pull_back)


def jvp(func: Callable[..., Any], primals: Any, tangents: Any) -> tuple[Any, Any]:
    """``(value, J·t)``: the value, and its derivative along ``tangents``.

    Computed as the gradient of v·J with respect to v, in which v·J is linear; a Function that
    has a ``jvp`` is differentiated by that.
    """
    points, directions = _several(primals), _several(tangents)
    nested = _nested([*points, *directions])
    with enable_grad():
        moved, wanted = _tracked(points, range(len(points)))
        with honouring_jvp():
            value = func(*moved)
        outputs = _outputs(value)
        vectors = [spread(_zeros(one)).requires_grad_() for one in outputs]
        pulled = _gradients(outputs, wanted, vectors, True)
        pairs = [
            (one, direction) for one, direction in zip(pulled, directions, strict=True)
            if one.requires_grad
        ]  # fmt: skip
        if not pairs:
            zeros = [_zeros(one) for one in outputs]
            return _detached(value), _like(value, zeros)
        found = gradients(
            [one for one, _ in pairs], vectors, [direction for _, direction in pairs],
            create_graph=nested, materialize_grads=True,
        )  # fmt: skip
    return (value if nested else _detached(value)), _like(value, found)


def jacobian(
    func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False,
    vectorize: bool = False, strategy: str | None = None,
) -> Any:  # fmt: skip
    """The Jacobian: of the shape of the output, then that of the input, for each pair of them.

    ``strategy``: by rows (``reverse-mode``) or by columns (``forward-mode``); whichever are fewer
    by default.
    """
    points = _several(inputs)
    deep = create_graph or _nested(points)
    with enable_grad():
        moved, wanted = _tracked(points, range(len(points)), connect=deep)
        value = func(*moved)
    outputs = _outputs(value)
    forward = sum(one.numel() for one in wanted) < sum(one.numel() for one in outputs)
    if strategy is not None:
        forward = strategy == "forward-mode"
    blocks = _columns(func, wanted, outputs, deep) if forward else _rows(outputs, wanted, deep)
    found = [tuple(row) if isinstance(inputs, (tuple, list)) else row[0] for row in blocks]
    return tuple(found) if isinstance(value, (tuple, list)) else found[0]


def hessian(
    func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False,
    vectorize: bool = False, outer_jacobian_strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """The second derivatives of a function whose value is one number."""
    several = isinstance(inputs, (tuple, list))

    def first(*points: Any) -> Any:
        value = _scalar(func(*points))
        found = gradients([value], list(points), create_graph=True, materialize_grads=True)
        return found if several else found[0]

    return jacobian(first, inputs, create_graph=create_graph, strategy=outer_jacobian_strategy)


def hvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """``(value, H·v)`` of a function whose value is one number."""
    points = _several(inputs)
    given = [_one(points[0])] if v is None else _several(v)
    deep = create_graph or _nested([*points, *given])
    with enable_grad():
        moved, wanted = _tracked(points, range(len(points)), connect=deep)
        value = _scalar(func(*moved))
        first = gradients([value], wanted, create_graph=True, materialize_grads=True)
        pairs = [
            (one, vector) for one, vector in zip(first, given, strict=True)
            if one.grad_fn or is_symbolic(one)
        ]  # fmt: skip
        found: Sequence[Any] = [_zeros(one) for one in wanted]
        if pairs:
            found = gradients(
                [one for one, _ in pairs], wanted, [vector for _, vector in pairs],
                create_graph=deep, materialize_grads=True,
            )  # fmt: skip
    chosen = tuple(found) if isinstance(inputs, (tuple, list)) else found[0]
    return (value if deep else value.detach()), chosen


# -- parts


def _several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _nested(values: Sequence[Any]) -> bool:
    """Is this derivative itself to be differentiated?"""
    return state.grad_enabled and any(is_tensor(v) and v.requires_grad for v in values)


def _tracked(
    args: Sequence[Any], argnums: Places | range, *, connect: bool = True
) -> tuple[list[Any], list[Tensor]]:
    """The arguments with fresh tensors in the places to differentiate by, and these.

    They are connected with what they were, for derivatives of derivatives.
    """
    places = [argnums] if isinstance(argnums, int) else list(argnums)
    moved, wanted = list(args), []
    for place in places:
        value = lifted(args[place]) if _is_lifted(args[place]) else args[place]
        if not is_tensor(value):
            raise errors.TensorTypeError(
                f"the argument {place} to differentiate by is no Tensor but a "
                f"{type(value).__name__}"
            )
        value = spread(value)
        fresh = connected(value) if connect and value.requires_grad else value.detach()
        if not fresh.requires_grad:
            fresh.requires_grad_()
        moved[place % len(moved)] = fresh
        wanted.append(fresh)
    return moved, wanted


def connected(value: Tensor) -> Tensor:
    """The same tensor, and one of its own to differentiate by."""
    traced: Any = value
    found: Tensor = renewed(traced) if is_symbolic(value) else traced.view_as(value)
    return found


def _is_lifted(value: Any) -> bool:
    """Is it a tensor that the trace in progress takes for an input?"""
    return state.lifting and isinstance(value, Tensor)


def _zeros(like: Any) -> Any:
    if is_symbolic(like):
        return zeros_like(like)
    return wrap(np.zeros(like._array.shape, like._array.dtype))


def _one(like: Any) -> Any:
    return wrap(np.ones((), str(like.dtype)))


def _gradients(
    outputs: Sequence[Tensor], wanted: Sequence[Tensor], vectors: Sequence[Any], deep: bool,
    keep: bool = False,
) -> list[Any]:  # fmt: skip
    """The gradients, zeros where an input is not used."""
    pairs = [(one, v) for one, v in zip(outputs, vectors, strict=True) if one.requires_grad]
    if not pairs:
        return [_zeros(one) for one in wanted]
    found = gradients(
        [one for one, _ in pairs], wanted, [vector for _, vector in pairs],
        retain_graph=keep or deep, create_graph=deep, materialize_grads=True,
    )  # fmt: skip
    return list(found)


def _outputs(value: Any) -> list[Tensor]:
    found = _several(value)
    for one in found:
        if not is_tensor(one):
            raise errors.TensorTypeError(
                f"the function returned a {type(one).__name__} where a Tensor is needed"
            )
    return found


def _detached(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(_detached(one) for one in value)
    return value.detach() if is_tensor(value) else value


def _like(value: Any, found: Sequence[Any]) -> Any:
    """The results as the function returns its values: one, or several."""
    return tuple(found) if isinstance(value, (tuple, list)) else found[0]


def _scalar(value: Any) -> Tensor:
    if not is_tensor(value) or value.numel() != 1:
        raise errors.AutogradError(
            "The Tensor returned by the function given to hessian should contain a single element"
        )
    found: Tensor = value
    return found


def _basis(tensor: Any) -> list[Any]:
    if is_symbolic(tensor):
        return list(basis(tensor))
    found = []
    for place in range(tensor.numel()):
        array = np.zeros(tensor._array.shape, tensor._array.dtype)
        array.reshape(-1)[place] = 1
        found.append(wrap(array))
    return found


def _stacked(tensors: Sequence[Tensor], axis: int, shape: Sequence[int]) -> Tensor:
    call = FUNCTIONS["stack"].__wrapped__
    found: Tensor = invoke("stack", call, (list(tensors), axis), {})
    return found.reshape(tuple(shape))  # type: ignore[no-any-return]


def _rows(outputs: Sequence[Tensor], wanted: Sequence[Tensor], deep: bool) -> list[list[Tensor]]:
    """For each output and input, one backward for each element of the output."""
    blocks = []
    for output in outputs:
        rows = [
            _gradients([output], wanted, [vector], deep, keep=True) for vector in _basis(output)
        ]
        blocks.append([
            _stacked([row[place] for row in rows], 0, (*output.shape, *one.shape)) if rows
            else wrap(np.zeros((*output.shape, *one.shape), str(one.dtype)))
            for place, one in enumerate(wanted)
        ])  # fmt: skip
    return blocks


def _columns(
    func: Callable[..., Any], wanted: Sequence[Tensor], outputs: Sequence[Tensor], deep: bool
) -> list[list[Tensor]]:
    """For each output and input, one derivative along each element of the input."""
    blocks: list[list[Tensor]] = [[] for _ in outputs]
    points = list(wanted) if deep else [one.detach() for one in wanted]
    for place, one in enumerate(wanted):
        columns: list[list[Any]] = []
        for direction in _basis(one):
            along = [_zeros(other) for other in wanted]
            along[place] = direction
            columns.append(_several(jvp(func, points, along)[1]))
        for number, output in enumerate(outputs):
            shape = (*output.shape, *one.shape)
            column = [each[number] for each in columns]
            blocks[number].append(
                _stacked(column, output.ndim, shape) if column
                else wrap(np.zeros(shape, str(one.dtype)))
            )  # fmt: skip
    return blocks
