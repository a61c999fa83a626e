"""Functions that take lists of tensors, as ones that take the tensors one by one.

In: a class whose forward takes a list of tensors as one argument, and how many there are.  Out: a
class of the same name whose forward takes ``xs_0, xs_1`` in the place of ``xs``.

PyTorch gives no gradient to tensors in a list: they are constants, and backward returns None for
the list.  What it returns else is an error there, and so it is here.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from symgrad.errors import ProtocolError
from symgrad.frontend.annotated import items_of
from symgrad.frontend.evidence import AnyFunction, Parameter, listed, parameters
from symgrad.frontend.function import (
    Function,
    class_of,
    is_instance_style,
    separate_setup,
)
from symgrad.frontend.questions import NeedsInputGrad
from symgrad.frontend.starred import number_of

ORIGINAL = "symgrad_original"


def lists_of(function: AnyFunction, static: Mapping[str, Any]) -> dict[str, int]:
    """The arguments that are lists of tensors, by annotation or use, and how many each holds."""
    used = listed(function)
    return {
        one.name: number_of(function, one.name) for one in parameters(function)
        if one.name not in static and one.default is Parameter.empty
        and (_is_stated(function, one) or (one.name in used and not _are_numbers(function, one)))
    }  # fmt: skip


def _is_stated(function: AnyFunction, parameter: Parameter) -> bool:
    items = items_of(function, parameter)
    return items is not None and not items.optional and all(
        getattr(one, "__name__", "").endswith("Tensor") for one in items.types
    )  # fmt: skip


def _are_numbers(function: AnyFunction, parameter: Parameter) -> bool:
    items = items_of(function, parameter)
    return items is not None and items.are_numbers


def with_lists_opened(function: AnyFunction, static: Mapping[str, Any]) -> AnyFunction:
    """The Function with tensors in the place of lists of them; itself where it takes none."""
    found = class_of(function)
    if not isinstance(function, type) or is_instance_style(found) or found.symgrad_leaves:
        return function
    numbers = lists_of(function, static)
    own = vars(found)
    if not numbers or (found.symgrad_guest is not None and ORIGINAL not in own):
        return function
    rows = _Rows(parameters(function), numbers, _are_tuples(function, numbers))
    members: dict[str, Any] = {"symgrad_leaves": rows.leaves, "symgrad_written": found}
    if ORIGINAL in own:
        members[ORIGINAL] = _opened(own[ORIGINAL], rows, {}, separate_setup(found))
    made: type[Function] = _opened(found, rows, members, separate_setup(found))
    return made


def _are_tuples(function: AnyFunction, names: Mapping[str, int]) -> frozenset[str]:
    own = {one.name: one for one in parameters(function)}
    stated = {name: items_of(function, own[name]) for name in names}
    return frozenset(name for name, one in stated.items() if one is not None and one.is_tuple)


class _Rows:
    """Which arguments stand for which: ``leaves`` by the name of their list."""

    def __init__(
        self, own: Sequence[Parameter], numbers: Mapping[str, int], tuples: frozenset[str]
    ) -> None:
        self.own, self.tuples = own, tuples
        self.leaves = {
            name: tuple(f"{name}_{at}" for at in range(number)) for name, number in numbers.items()
        }

    @property
    def parameters(self) -> list[Parameter]:
        """Those of the opened forward."""
        return [
            one.replace(name=name, annotation="Tensor" if own else one.annotation)
            for one in self.own for own in [self.leaves.get(one.name, ())]
            for name in own or (one.name,)
        ]  # fmt: skip

    def closed(self, values: Sequence[Any]) -> list[Any]:
        """The arguments with lists of tensors; what ``*args`` holds comes last."""
        found, rest = [], list(values)
        for one in self.own:
            if one.kind is Parameter.VAR_POSITIONAL or not rest:
                break
            number = len(self.leaves.get(one.name, ()))
            if not number:
                found.append(rest.pop(0))
                continue
            held, rest = rest[:number], rest[number:]
            found.append(tuple(held) if one.name in self.tuples else held)
        return [*found, *rest]

    def opened(self, gradients: Sequence[Any], *, real: bool) -> list[Any]:
        """None for each tensor of a list.

        Raises ProtocolError for a gradient; in a real call RuntimeError, with the words of torch.
        """
        found: list[Any] = []
        for at, value in enumerate(gradients):
            name = self.own[at].name if at < len(self.own) else ""
            if name in self.leaves and value is not None and real:
                raise RuntimeError(
                    f"backward returned a gradient different from None at position {at + 1}, but "
                    "the corresponding forward input was not a Variable"
                )
            if name in self.leaves and value is not None:
                raise ProtocolError(
                    f"backward returned a gradient for {name!r} (position {at}), which is a list",
                    hint="return None there; tensors in a list have no gradient in PyTorch",
                )
            found += [None] * len(self.leaves[name]) if name in self.leaves else [value]
        return found

    def needed(self, wanted: Any) -> Any:
        """``ctx.needs_input_grad`` of the arguments as they are written."""
        if isinstance(wanted, NeedsInputGrad):
            return wanted.changed(lambda names: [_name(one) for one in self.closed(names)])
        return tuple(
            False if isinstance(one, (list, tuple)) else one for one in self.closed(wanted)
        )


def _name(one: Any) -> str:
    """The name of an argument; that of a list is none that has a gradient."""
    return one if isinstance(one, str) else ""


def _opened(base: Any, rows: _Rows, members: dict[str, Any], separate: bool) -> Any:
    """A class that derives from another one, and takes tensors for its lists."""
    first = [] if separate else [Parameter("ctx", Parameter.POSITIONAL_ONLY)]

    def forward(*args: Any, **kwargs: Any) -> Any:
        if separate:
            return base.forward(*rows.closed(args), **kwargs)
        ctx, *values = args
        ctx.needs_input_grad = rows.needed(ctx.needs_input_grad)
        return base.forward(ctx, *rows.closed(values), **kwargs)

    def setup_context(ctx: Any, inputs: Any, output: Any) -> Any:
        ctx.needs_input_grad = rows.needed(ctx.needs_input_grad)
        return base.setup_context(ctx, tuple(rows.closed(inputs)), output)

    def backward(ctx: Any, *cotangents: Any) -> Any:
        found = base.backward(ctx, *cotangents)
        several = found if isinstance(found, tuple) else (found,)
        return tuple(rows.opened(several, real=not issubclass(base, Function)))

    made = {"forward": forward, "backward": backward}
    made |= {"setup_context": setup_context} if separate else {}
    for name, method in made.items():
        members[name] = staticmethod(_like(base, name, method))
    own = members["forward"].__func__
    own.__signature__ = inspect.Signature([*first, *rows.parameters])
    names = {"__module__": base.__module__, "__qualname__": base.__qualname__}
    return type(base)(base.__name__, (base,), {**names, "__doc__": base.__doc__, **members})


def _like(base: Any, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that is read as the one that it calls."""
    found = inspect.getattr_static(base, name)
    plain = found.__func__ if isinstance(found, (staticmethod, classmethod)) else found
    return functools.wraps(plain)(method)
