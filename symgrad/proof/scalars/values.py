"""Texts over mpmath's names as functions of mpmath numbers.

In: a text in ``u0``, ``u1``, ...  Out: a function, NaN where it has a pole.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import mpmath

from symgrad.proof.scalars.terms import Term

OWN: dict[str, Callable[..., Any]] = {
    "Heaviside": lambda value, *_: mpmath.mpf(1 if value > 0 else 0),
    "sign": mpmath.sign,
    "Abs": abs,
    "loggamma": lambda value: mpmath.log(abs(mpmath.gamma(value))),
}
"""Functions that mpmath lacks, or has another way."""


def function_of(text: str, arity: int) -> Callable[..., Any]:
    """The function that a text says."""
    operands = ", ".join(f"u{place}" for place in range(arity))
    found: Callable[..., Any] = eval(f"lambda {operands}: {text}", {**_names(), **OWN})
    return guarded(found)


@cache
def _names() -> dict[str, Any]:
    return {name: value for name, value in vars(mpmath).items() if not name.startswith("_")}


def number(constant: Term) -> Any:
    """A term without symbols at the working precision of mpmath."""
    if constant.number is not None:
        return mpmath.mpf(constant.number.numerator) / constant.number.denominator
    values = list(map(number, constant.args))
    if constant.kind in _CONSTANTS:
        return _CONSTANTS[constant.kind]()
    return _OF_NUMBERS[constant.kind](*values)


_CONSTANTS: dict[str, Callable[[], Any]] = {"pi": lambda: +mpmath.pi, "E": lambda: +mpmath.e}
_OF_NUMBERS: dict[str, Callable[..., Any]] = {
    "Add": lambda *values: mpmath.fsum(values), "Mul": lambda *values: mpmath.fprod(values),
    "Pow": mpmath.power, "log": mpmath.log, "exp": mpmath.exp,
}  # fmt: skip
"""What constants are made of."""


def guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, NaN where it has a pole."""

    def call(*numbers: Any) -> Any:
        try:
            result = function(*numbers)
            return mpmath.mpf(result) if isinstance(result, (int, float)) else result
        except (ZeroDivisionError, ValueError, OverflowError):
            return mpmath.mp.nan

    return call


def add_function(name: str, model: Callable[[Any], Any]) -> None:
    """Make a sympy class known by its name: ``model`` gives its values as mpmath numbers."""
    OWN[name] = model


def remove_function(name: str) -> None:
    """Forget a class that was made known."""
    OWN.pop(name, None)
