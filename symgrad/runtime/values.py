"""Does a call pass the values that the op was compiled for?

In: an ``Op`` and what a call passes.  Out: the tensors among it, or an error.

A plain argument is part of a kernel, as the shape of a loop is.  A call may leave it out, or pass
the value that was compiled in, of the same type; a function or class only where it is the same.
A NumPy scalar counts as the bool, int or float of its value.  2 does not count as 2.0: a program
tells them apart, as the dtype of ``integers * alpha`` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from symgrad.abi import Op, Value
from symgrad.errors import KernelArgumentError, KernelTypeError
from symgrad.plain_values import described, is_same, literal, stated


class _AsCompiled:
    """The default of a plain argument: the value that was compiled in."""

    def __repr__(self) -> str:
        return "as compiled"


AS_COMPILED: Any = _AsCompiled()


def given(op: Op) -> str:
    """`` for alpha = 1.0``: the values of an op."""
    return stated((one.name, one.text) for one in op.values)


def _as_python(value: Any) -> Any:
    """A NumPy scalar as Python's number of this value; anything else as it is."""
    counts = isinstance(value, (numpy.bool_, numpy.integer, numpy.floating))
    return value.item() if counts else value


class Values:
    """The plain arguments of an op.  ``objects``: their values, where these are in this process."""

    def __init__(self, op: Op, objects: Mapping[str, Any]) -> None:
        self.op = op
        self.objects = objects
        self.by_name = {one.name: one for one in op.values}
        self.by_place = {one.place: one for one in op.values if one.place is not None}

    def check(self, where: str, name: str, value: Any) -> None:
        """Is it the value that was compiled in?

        Raises KernelArgumentError, and KernelTypeError where there is no such argument, which is a
        TypeError, as a function's is.
        """
        known = self._named(where, name)
        if value is AS_COMPILED or (known.exact and literal(_as_python(value)) == known.text):
            return
        if is_same(value, self.objects.get(name, AS_COMPILED)):
            return
        hint = f"leave {name} out, or compile the op for the other value"
        if known.exact:
            hint = f"pass {known.text}, {hint}"
        else:
            hint += "; its value is not a literal, so it cannot be compared"
        raise KernelArgumentError(
            f"{where}: {name} is {described(value)}, and the op is compiled for "
            f"{name} = {known.text}",
            hint=hint,
        )

    def without(self, where: str, inputs: Sequence[Any], named: Mapping[str, Any]) -> Sequence[Any]:
        """The tensors of a call, which passes these alone or what ``apply`` takes."""
        for name, value in named.items():
            self.check(where, name, value)
        if len(inputs) <= len(self.op.differentiable):
            return inputs
        tensors = []
        for place, value in enumerate(inputs):
            known = self.by_place.get(place)
            if known is None:
                tensors.append(value)
            elif known.name in named:
                raise KernelTypeError(f"{where}: {known.name} is given twice")
            else:
                self.check(where, known.name, value)
        return tensors

    def _named(self, where: str, name: str) -> Value:
        if name not in self.by_name:
            raise KernelTypeError(
                f"{where} has no plain argument {name!r}",
                hint=f"its plain arguments: {', '.join(self.by_name) or 'none'}; "
                "tensors go by position",
            )
        return self.by_name[name]
