"""JAX's symbolic sizes, and ours.

In: the size of an axis, as ``Dim`` or as ``jax.export.symbolic_shape`` has it.  Out: the other.

All sizes of a trace are of one scope, and no two traces share one, so that nothing that JAX keeps
of one trace is found in another one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any
from weakref import WeakKeyDictionary

from jax import export

from symgrad.errors import UnsupportedOpError
from symgrad.frontend.session import Session, current
from symgrad.ir.dim import Atom, Derived, Dim, Size, maximum, minimum

_SYMBOL = "symgrad_size"
JaxDim: Any = type(export.symbolic_shape("n")[0])
"""The class of JAX's symbolic sizes."""


def _greater(left: Any, right: Any) -> Any:
    return left.max(right) if isinstance(left, JaxDim) else right.rmax(left)


def _lesser(left: Any, right: Any) -> Any:
    return left.min(right) if isinstance(left, JaxDim) else right.rmin(left)


_MAKE: dict[str, Callable[[Any, Any], Any]] = {
    "floordiv": operator.floordiv, "mod": operator.mod, "max": _greater, "min": _lesser,
}  # fmt: skip
_MADE: dict[str, Callable[[Dim, Dim], Dim]] = {
    "floordiv": operator.floordiv, "mod": operator.mod, "max": maximum, "min": minimum,
}  # fmt: skip


class Sizes:
    """The sizes of one trace.

    ``unequal``: those that JAX took for unequal, in order.  ``numbers``: our numbers for floats
    that are made of sizes, by the identity of what JAX traces.
    """

    def __init__(self) -> None:
        self.scope = export.SymbolicScope()
        self.unequal: list[tuple[Any, Any]] = []
        self.numbers: dict[int, tuple[Any, Any]] = {}
        self._names: dict[str, str] = {}
        self._symbols: dict[str, Any] = {}

    def theirs(self, dim: Dim) -> Any:
        """JAX's size; an int for a number."""
        total: Any = 0
        for monomial, factor in dim.terms:
            powers = [self._atom(atom) for atom, power in monomial for _ in range(power)]
            total = total + reduce(operator.mul, powers, factor)
        return total

    def _atom(self, atom: Atom) -> Any:
        if isinstance(atom, Size):
            if atom.name not in self._symbols:
                name = f"{_SYMBOL}_{len(self._symbols)}"
                self._symbols[atom.name] = export.symbolic_shape(name, scope=self.scope)[0]
                self._names[name] = atom.name
            return self._symbols[atom.name]
        if isinstance(atom, Derived):
            return _MAKE[atom.function](self.theirs(atom.left), self.theirs(atom.right))
        raise UnsupportedOpError(f"the size {atom} has no counterpart in JAX")

    def ours(self, value: Any) -> Dim:
        """Our size."""
        if not isinstance(value, JaxDim):
            return Dim.of(operator.index(value))
        total = Dim.of(0)
        for term, factor in value._sorted_terms:
            product = Dim.of(factor)
            for one, power in term._factors:
                for _ in range(power):
                    product = product * self._factor(one)
            total = total + product
        return total

    def _factor(self, factor: Any) -> Dim:
        if factor.var is not None:
            return Dim.size(self._names[factor.var])
        left, right = map(self.ours, factor.operands)
        return _MADE[factor.operation](left, right)

    def shape(self, sizes: Sequence[Any]) -> tuple[Dim, ...]:
        """Our sizes of a shape of JAX's."""
        return tuple(map(self.ours, sizes))

    def shown(self, text: str) -> str:
        """A text of JAX's with the names of sizes as the user writes them."""
        for name in sorted(self._names, key=len, reverse=True):
            text = text.replace(name, self._names[name])
        return text


_known: WeakKeyDictionary[Session, Sizes] = WeakKeyDictionary()


def sizes() -> Sizes:
    """The sizes of the trace in progress."""
    session = current()
    found = _known.get(session)
    if found is None:
        found = _known[session] = Sizes()
    return found
