"""What ``torch.autograd.functional`` has: derivatives at a point.

In: a function of tensors, inputs, vectors.  Out: values and derivatives, which have a history only
with ``create_graph``, or inside of another derivative.  ``strict``: raise AutogradError where an
output does not depend on an input.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from symgrad.tensor.errors import AutogradError
from symgrad.tensor.functional import transforms as functional
from symgrad.tensor.functional.differentiated import filled
from symgrad.tensor.modes import no_grad, state
from symgrad.tensor.trace.symbolic import is_tensor

Function = Callable[..., Any]


def jacobian(
    func: Function, inputs: Any, create_graph: bool = False, strict: bool = False,
    vectorize: bool = False, strategy: str | None = None,
) -> Any:  # fmt: skip
    """``sg.jacobian``."""
    with _recorded(create_graph):
        return functional.jacobian(func, inputs, strict=strict, strategy=strategy)


def hessian(
    func: Function, inputs: Any, create_graph: bool = False, strict: bool = False,
    vectorize: bool = False, outer_jacobian_strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """``sg.hessian``."""
    with _recorded(create_graph):
        return functional.hessian(
            func, inputs, strict=strict, outer_jacobian_strategy=outer_jacobian_strategy
        )


def hvp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """``(value, H·v)``; ``v`` may be left out for an input of one element."""
    with _recorded(create_graph):
        return functional.hvp(func, inputs, _one(inputs) if v is None else v, strict=strict)


vhp = hvp
"""The same, since Hessians are symmetric."""


def vjp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """``(value, v·J)``; ``v`` may be left out for a value of one element."""
    several = isinstance(inputs, (tuple, list))
    with _recorded(create_graph):
        value, pull_back = functional.vjp(func, *(inputs if several else (inputs,)), strict=strict)
        found = pull_back(_one(value) if v is None else v)
    return value, (found if several else found[0])


def jvp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """``(value, J·v)``; ``v`` may be left out for an input of one element."""
    with _recorded(create_graph):
        value, pushed = functional.jvp(
            func, inputs, _one(inputs) if v is None else v, strict=strict
        )
    return value, pushed


def _recorded(create_graph: bool) -> AbstractContextManager[Any]:
    """A block in which derivatives get a history, if it is asked for or must not be lost."""
    return nullcontext() if create_graph or state.levels else no_grad()


def _one(value: Any) -> Any:
    if not is_tensor(value) or value.numel() != 1:
        raise AutogradError(
            "The vector v can only be None if the user-provided function returns a single Tensor "
            "with a single element"
        )
    return filled(value, 1)
