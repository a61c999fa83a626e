"""The plain arguments of a call: numbers that kernels take, values that are part of them.

In: an ``Op`` and what a call passes.  Out: the tensors among it and the plain numbers, or an error.

A number for which the op was proved whatever it is goes to the kernels.  Where it is a float, an
integer or a bool counts as the float of its value; where it is an integer of 64 bits, a float does
not count.  NaN and infinities are floats, but meet no condition.

Any other plain argument is part of a kernel, as the shape of a loop is.  A call may leave it out,
or pass the value that was compiled in, of the same type; a function or class only where it is the
same.  Then 2 does not count as 2.0: a program tells them apart, as the dtype of ``integers *
alpha`` does.  A NumPy scalar counts as the bool, int or float of its value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from symgrad.abi import Case, Op, Value, evaluate
from symgrad.errors import KernelArgumentError, KernelTypeError
from symgrad.plain_values import described, is_same, literal, stated


class _AsCompiled:
    """The default of a plain argument: the value that was compiled in."""

    def __repr__(self) -> str:
        return "as compiled"


AS_COMPILED: Any = _AsCompiled()


def _called(value: Any) -> str:
    """What a value of a wrong type is called in a message."""
    kind = type(value).__name__
    literally = isinstance(value, (str, float, complex, type(None)))
    return described(value) if literally else f"a {kind}"


def is_symbol(value: Any) -> bool:
    """Is it a plain number of a trace in progress?"""
    return getattr(type(value), "is_number_of_a_trace", False) is True


def given(op: Op) -> str:
    """`` for all real beta; for alpha = 1.0``: what an op takes, and the values that it has."""
    kinds = {"float64": "real", "int64": "integer"}
    taken = [f"all {kinds[one.number]} {one.condition or one.name}" for one in op.numbers]
    fixed = ((one.name, one.text) for one in op.values if not one.number)
    separate = ";" if taken and len(taken) < len(op.values) else ""
    return stated((), [", ".join(taken)]) + separate + stated(fixed)


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

    def numbers(self, where: str, given: Sequence[Any]) -> dict[str, Any]:
        """The plain numbers that the kernels take, by name; ``given``: all of them, or none.

        Raises KernelTypeError and KernelArgumentError.
        """
        known = self.op.numbers
        values = given or [AS_COMPILED] * len(known)
        return {
            one.name: self._number(where, one, value)
            for one, value in zip(known, values, strict=True)
        }

    def cases(self, where: str, numbers: Mapping[str, Any]) -> list[Case]:
        """The cases for these plain numbers.  Raises KernelArgumentError where there is none."""
        found = [
            case for case in self.op.cases
            if all(evaluate(condition, numbers) for condition in case.where)
        ]  # fmt: skip
        if not found:
            given = ", ".join(f"{name} is {described(value)}" for name, value in numbers.items())
            served = dict.fromkeys(" and ".join(case.where) for case in self.op.cases)
            raise KernelArgumentError(
                f"{where}: {given}, and the op is compiled for {' or '.join(served)}",
                hint="pass numbers for which that holds",
            )
        return found

    def _number(self, where: str, known: Value, value: Any) -> Any:
        """The number that a kernel takes for a value."""
        whole = known.number == "int64"
        if is_symbol(value) and (value.is_whole or not whole):
            self._check(where, known, value)
            return value
        if value is AS_COMPILED:
            if not known.text:
                raise KernelTypeError(
                    f"{where}: {known.name} is missing", hint=f"pass a number, {known.name}=1.0"
                )
            return int(known.text) if whole else float(known.text)
        if isinstance(value, numpy.ndarray) and value.ndim == 0:
            value = value[()]
        value = float(value) if isinstance(value, numpy.floating) else _as_python(value)
        if not isinstance(value, (int, float) if not whole else int):
            raise KernelTypeError(
                f"{where}: {known.name} is {_called(value)}, and "
                f"{'an integer' if whole else 'a number'} is expected",
                hint=f"pass {'an int' if whole else 'a float'}, such as {known.text or '1.0'}",
            )
        try:
            found = int(value) if whole else float(value)
            fits = not whole or -(1 << 63) <= found < 1 << 63
        except OverflowError:
            fits = False
        if not fits:
            raise KernelArgumentError(
                f"{where}: {known.name} is {described(value)}, which {known.number} does not hold",
                hint="pass a smaller number",
            )
        self._check(where, known, found)
        return found

    def _check(self, where: str, known: Value, value: Any) -> None:
        """Is it a number that the op is compiled for?  Raises KernelArgumentError."""
        if known.condition and not evaluate(known.condition, {known.name: value}):
            raise KernelArgumentError(
                f"{where}: {known.name} is {described(value)}, and the op is compiled for "
                f"{known.condition}",
                hint=f"pass a number for which that holds, or compile the op for this one: "
                f"static={{{known.name!r}: {described(value)}}}",
            )

    def check(self, where: str, name: str, value: Any) -> None:
        """Is it the value that was compiled in?

        Raises KernelArgumentError, and KernelTypeError where there is no such argument, which is a
        TypeError, as a function's is.
        """
        known = self.named(where, name)
        if is_symbol(value):
            value = value.settle()
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

    def taken(
        self, where: str, inputs: Sequence[Any], named: Mapping[str, Any]
    ) -> tuple[Sequence[Any], tuple[Any, ...]]:
        """The tensors of a call, and the plain numbers in the order of ``Op.numbers``.

        A call passes the tensors alone, or what ``apply`` takes.
        """
        passed = dict(named)
        tensors = inputs
        if len(inputs) > len(self.op.differentiable):
            tensors = []
            for place, value in enumerate(inputs):
                known = self.by_place.get(place)
                if known is None:
                    tensors.append(value)
                elif known.name in named:
                    raise KernelTypeError(f"{where}: {known.name} is given twice")
                else:
                    passed[known.name] = value
        for name, value in passed.items():
            if not self.named(where, name).number:
                self.check(where, name, value)
        given = [passed.get(one.name, AS_COMPILED) for one in self.op.numbers]
        return tensors, tuple(self.numbers(where, given).values())

    def named(self, where: str, name: str) -> Value:
        """The plain argument of this name.  Raises KernelTypeError."""
        if name not in self.by_name:
            raise KernelTypeError(
                f"{where} has no plain argument {name!r}",
                hint=f"its plain arguments: {', '.join(self.by_name) or 'none'}; "
                "tensors go by position",
            )
        return self.by_name[name]
