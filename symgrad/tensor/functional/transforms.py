"""Derivatives of Python functions: ``grad``, ``vjp``, ``jvp``, ``jacrev``, ``jacfwd``, ``hessian``.

In: a function of tensors.  Out: functions that return derivatives, or derivatives at a point.

Arguments and results are tensors in tuples, lists and dicts.  Each derivative runs its function at
a level of its own (``level.py``), so that derivatives may be nested in any way, and functions may
close over what others differentiate by.  A result has a history where something
outside is differentiated.  In a trace (``sg.jit``) the graph so far is differentiated.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from symgrad.tensor import errors
from symgrad.tensor.functional.differentiated import (
    Places,
    columns,
    filled,
    linear,
    rows,
    run,
    vectors_like,
)
from symgrad.tensor.trace.symbolic import is_tensor


def grad_and_value(
    func: Callable[..., Any], argnums: Places = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """``(gradient, value)`` of a function whose value is one number.

    ``argnums``: the arguments to differentiate by.  ``has_aux``: the function returns
    ``(value, anything)``, and the result is ``(gradient, (value, anything))``.  Raises
    AutogradError for other values, TensorValueError for arguments that are no tensors.
    """

    @functools.wraps(func)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        made = run("grad_and_value(f)(*args)", func, args, kwargs, argnums, has_aux)
        if not is_tensor(made.inner):
            raise errors.AutogradError(
                "grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got "
                f"{type(made.inner)}"
            )
        if made.inner.numel() != 1:
            raise errors.AutogradError(
                "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor "
                f"with {made.inner.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs "
                "instead?"
            )
        found = made.pull(made.outputs, [None], keep=has_aux)
        return made.shaped(found), ((made.value, made.aux) if has_aux else made.value)

    return differentiated


def value_and_grad(
    func: Callable[..., Any], argnums: Places = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """``(value, gradient)``, in JAX's order: what ``grad_and_value`` gives, the other way round.

    With ``has_aux`` it is ``((value, anything), gradient)``.  It raises the same errors.
    """

    @functools.wraps(func)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        gradient, value = grad_and_value(func, argnums, has_aux)(*args, **kwargs)
        return value, gradient

    return differentiated


def grad(
    func: Callable[..., Any], argnums: Places = 0, has_aux: bool = False
) -> Callable[..., Any]:  # fmt: skip
    """The gradient of a function whose value is one number; ``(gradient, aux)`` if ``has_aux``.

    Raises what ``grad_and_value`` raises.
    """

    @functools.wraps(func)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        found, value = grad_and_value(func, argnums, has_aux)(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return differentiated


def vjp(
    func: Callable[..., Any], *primals: Any, has_aux: bool = False, strict: bool = False
) -> Any:
    """``(value, pull back)``: ``pull_back(v)`` is the tuple of the gradients v·J.

    ``has_aux``: the function returns ``(value, anything)``; the result is
    ``(value, pull back, anything)``.  ``strict``: raise AutogradError where an output does not
    depend on an input.
    """
    made = run("vjp(f, *primals)", func, primals, {}, range(len(primals)), has_aux)
    made.check_outputs(strict)

    def pull_back(*cotangents: Any) -> tuple[Any, ...]:
        given = cotangents[0] if len(cotangents) == 1 else cotangents
        vectors = vectors_like(made.inner, given, "cotangents", "outputs")
        return tuple(made.shaped(made.pull(made.outputs, vectors, keep=True)))

    return (made.value, pull_back, made.aux) if has_aux else (made.value, pull_back)


def jvp(
    func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False,
    has_aux: bool = False,
) -> Any:  # fmt: skip
    """``(value, J·t)``: the value, and its derivative along ``tangents``.

    ``has_aux``: the function returns ``(value, anything)``; the result is
    ``(value, J·t, anything)``.  ``strict``: raise AutogradError where an output does not depend on
    an input.  A Function that has a ``jvp`` is differentiated by that.
    """
    points, along = _several(primals), _several(tangents)
    found = linear("jvp(f, primals, tangents)", func, points, range(len(points)), has_aux)
    made = found.run
    made.check_outputs(strict)
    pushed = found.push(found.pulled, vectors_like(points, along, "tangents", "primals"))
    result = made.value, made.like_value(pushed)
    return (*result, made.aux) if has_aux else result


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """``(value, push forward)``: ``push_forward(*tangents)`` is J·t."""
    found = linear("linearize(f, *primals)", func, primals, range(len(primals)), False)

    def push_forward(*tangents: Any) -> Any:
        along = vectors_like(primals, tangents, "tangents", "primals")
        return found.run.like_value(found.push(found.pulled, along))

    return found.run.value, push_forward


def jacrev(
    func: Callable[..., Any], argnums: Places = 0, *, has_aux: bool = False,
    chunk_size: int | None = None, _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """The Jacobian, row by row.

    It has the structure of the value, and inside of that the one of the arguments in ``argnums``;
    a block has the shape of the output, then that of the input.  ``has_aux``: the function returns
    ``(value, anything)``; the result is ``(Jacobian, anything)``.  ``chunk_size``: taken and
    ignored, each row is computed by itself.
    """

    @functools.wraps(func)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        made = run("jacrev(f)(*args)", func, args, kwargs, argnums, has_aux)
        made.check_outputs()
        found = made.like_value([made.shaped(blocks) for blocks in rows(made)])
        return (found, made.aux) if has_aux else found

    return differentiated


def jacfwd(
    func: Callable[..., Any], argnums: Places = 0, has_aux: bool = False, *,
    randomness: str = "error",
) -> Callable[..., Any]:  # fmt: skip
    """The same Jacobian, column by column."""

    @functools.wraps(func)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        along = linear("jacfwd(f)(*args)", func, args, argnums, has_aux, kwargs)
        made = along.run
        found = made.like_value([made.shaped(blocks) for blocks in columns(along)])
        return (found, made.aux) if has_aux else found

    return differentiated


def hessian_of(func: Callable[..., Any], argnums: Places = 0) -> Callable[..., Any]:
    """``torch.func.hessian``: the columns of the Jacobian of the rows of the Jacobian."""
    return jacfwd(jacrev(func, argnums), argnums)


# -- at a point, as in torch.autograd.functional


def jacobian(
    func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False,
    vectorize: bool = False, strategy: str | None = None,
) -> Any:  # fmt: skip
    """The Jacobian: of the shape of the output, then that of the input, for each pair of them.

    ``strategy``: by rows (``reverse-mode``) or by columns (``forward-mode``); whichever are fewer
    by default.  ``strict``: raise AutogradError where an output does not depend on an input.
    ``create_graph``: taken and ignored, a result has a history where it may be needed.
    """
    points = _several(inputs)
    places: Places = range(len(points)) if isinstance(inputs, (tuple, list)) else 0
    name = "jacobian(f, inputs)"
    made = run(name, func, points, {}, places, False)
    made.check_outputs(strict)
    forward = sum(one.numel() for one in made.wanted) < sum(one.numel() for one in made.outputs)
    if strategy is not None:
        forward = strategy == "forward-mode"
    if not forward:
        return made.like_value([made.shaped(blocks) for blocks in rows(made)])
    along = linear(name, func, points, places, False)
    return made.like_value([made.shaped(blocks) for blocks in columns(along)])


def hessian(
    func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False,
    vectorize: bool = False, outer_jacobian_strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """The second derivatives of a function whose value is one number."""
    points = _several(inputs)
    places: Places = range(len(points)) if isinstance(inputs, (tuple, list)) else 0
    first = grad(_of_one_element(func, "hessian"), places)
    return jacobian(first, inputs, strict=strict, strategy=outer_jacobian_strategy)


def hvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """``(value, H·v)`` of a function whose value is one number."""
    points = _several(inputs)
    first = grad_and_value(_of_one_element(func, "hvp"), range(len(points)))
    _, pull_back, value = vjp(first, *points, has_aux=True, strict=strict)
    found = pull_back(filled(points[0], 1) if v is None else _several(v))
    return value, (found if isinstance(inputs, (tuple, list)) else found[0])


# -- parts


def _several(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (tuple, list)) else (value,)


def _of_one_element(func: Callable[..., Any], name: str) -> Callable[..., Any]:
    def checked(*points: Any) -> Any:
        value = func(*points)
        if not is_tensor(value) or value.numel() != 1:
            raise errors.AutogradError(
                f"The Tensor returned by the function given to {name} should contain a single "
                "element"
            )
        return value

    return checked
