"""What backward returned, by PyTorch's rules: one gradient an argument, of that argument's shape.

In: the value that backward returned, the tensor inputs.  Out: ``Gradient`` records.

A gradient that is larger than its input only where the input was broadcast is summed down without
a word, as in PyTorch; any other shape is recorded as a problem.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symgrad.errors import Location, ProtocolError, ShapeError, counted
from symgrad.frontend.complexes import ComplexTensor, pairs_of, real_of
from symgrad.frontend.lift import broadcast_axes
from symgrad.frontend.request import Argument, Request
from symgrad.frontend.session import Session
from symgrad.frontend.sizes import Shape
from symgrad.frontend.tensor import SymbolicTensor, fresh
from symgrad.ir.dim import Dim
from symgrad.ir.function import Gradient
from symgrad.ir.graph import Node


class SurplusError(ProtocolError):
    """Backward returned gradients, those of ``names``, for arguments that the call leaves out."""

    def __init__(self, what: str, names: Sequence[str], **said: Any) -> None:
        super().__init__(what, **said)
        self.names = tuple(names)


def collect(
    session: Session, returned: Any, request: Request, inputs: dict[str, Node]
) -> tuple[Gradient, ...]:
    """The gradients of the float inputs, in order.  Raises ProtocolError.

    The arguments behind those that have one are left out by all calls, which is assumed.
    """
    known = session.questions
    passed = max(request.passed, 0 if known is None else known.passed)
    arguments = request.by_place
    values = list(returned) if isinstance(returned, tuple) else [returned]
    left = arguments[len(values) :]
    while len(values) > passed and values[-1] is None:
        values.pop()
    if len(values) != passed:
        behind = zip(arguments[passed:], values[passed:], strict=False)
        raise SurplusError(
            f"backward returned {counted(len(values), 'gradient')} for"
            f" {counted(passed, 'argument')} of forward",
            [one.name for one, value in behind if value is not None],
            hint="return one for each argument, None for those that have none",
        )
    if known is not None and left:
        known.leave_out({one.name: one.value for one in left})
    gradients = []
    for position, (argument, value) in enumerate(zip(arguments, values, strict=False)):
        _check(position, argument, value)
        node = inputs.get(argument.name)
        if node is not None and node.dtype.is_float:
            own = _as_declared(session, argument, value)
            location = None if value is None else real_of(value).node.location
            gradients.append(_gradient(session, argument.name, node, own, location))
        elif value is not None and argument.name not in session.surplus:
            session.surplus.append(argument.name)
    return tuple(gradients)


def collect_by_position(
    session: Session, returned: Any, args: Sequence[Any]
) -> tuple[Gradient, ...]:
    """The gradients of the float tensors among ``args``, in order.  Raises ProtocolError."""
    values = list(returned) if isinstance(returned, (tuple, list)) else [returned]
    if len(values) < len(args) or any(value is not None for value in values[len(args) :]):
        raise ProtocolError(
            f"backward returned {counted(len(values), 'gradient')} for"
            f" {counted(len(args), 'argument')} of forward"
        )
    found = []
    for position, (arg, value) in enumerate(zip(args, values, strict=False)):
        if isinstance(arg, SymbolicTensor) and arg.dtype.is_float:
            if value is not None and not isinstance(value, SymbolicTensor):
                raise ProtocolError(f"the gradient at position {position} is not a tensor")
            location = None if value is None else value.node.location
            found.append(_gradient(session, str(position), arg.node, value, location))
    return tuple(found)


def _check(position: int, argument: Argument, value: Any) -> None:
    if value is None:
        return
    if not isinstance(value, SymbolicTensor):
        raise ProtocolError(
            f"the gradient of {argument.name!r} is of type {type(value).__name__}, not a tensor",
            hint="return a tensor or None; several gradients in a tuple",
        )
    if not argument.is_tensor:
        raise ProtocolError(
            f"backward returned a gradient for {argument.name!r} (position {position}), which is "
            "not a tensor",
            hint="return None there",
        )


def _as_declared(session: Session, argument: Argument, value: Any) -> Any:
    """Pairs for an argument of complex numbers.  Raises ProtocolError for those of a real one."""
    declared = argument.spec is not None and argument.spec.complex
    if isinstance(value, ComplexTensor):
        if not declared:
            raise ProtocolError(
                f"the gradient of {argument.name!r} is complex, {argument.name} is real",
                hint=f"return its real part, or state that {argument.name} is complex: c64[n m]",
                real=(argument.name,),
            )
        return value.pairs
    if not declared or value is None:
        return value
    zeros = session.expand(session.constant(0, value.node.dtype), value.node.shape)
    return fresh(pairs_of(session, (value.node, zeros)))


def _gradient(
    session: Session, name: str, input: Node, value: Any, location: Location | None
) -> Gradient:
    if value is None:
        return Gradient(name, None)
    returned = _as_equal(session, value.node, input.shape)
    session.check_gradient(input.shape, returned.shape)
    axes = broadcast_axes(input.shape, returned.shape)
    if axes is None:
        problem = _wrong_shape(name, input, returned, location)
        return Gradient(name, None, returned, location, problem)
    node = session.apply("sum", returned, axes=axes) if axes else returned
    node = session.cast(session.reshape(node, input.shape), input.dtype)
    return Gradient(name, node, returned, location)


def _as_equal(session: Session, node: Node, wanted: Sequence[Dim]) -> Node:
    """The same, with the sizes that are wanted where the case makes its own equal to them.

    In the case ``2*m - 2*(m//2) == m`` no size stands for another.
    """
    if node.rank != len(wanted) or node.shape == tuple(wanted):
        return node
    sizes = tuple(
        size if session.facts.decide(own, "==", size) else own
        for own, size in zip(node.shape, wanted, strict=True)
    )
    if sizes == node.shape:
        return node
    starts, steps = (Dim.of(0),) * node.rank, (1,) * node.rank
    return session.apply("slice", node, starts=starts, steps=steps, sizes=sizes)


def _wrong_shape(
    name: str, input: Node, returned: Node, location: Location | None
) -> ShapeError:  # fmt: skip
    shape, wanted = list(Shape.of(returned.shape)), list(Shape.of(input.shape))
    alike = returned.rank == input.rank
    return ShapeError(
        f"the gradient of {name} has shape {shape}, {name} has {wanted}", location=location,
        gradient=name, equal=zip(returned.shape, input.shape, strict=True) if alike else (),
    )  # fmt: skip
