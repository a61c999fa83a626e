"""All that a value is made of.

In: index notation.  Out: its parts, those of its indices and of the ranges of its axes too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from symgrad.ir.dim import Axis, Dim
from symgrad.ir.expr import Access, Expr, IntValue, Reduce, postorder
from symgrad.validate.symbolic.values import Values, is_defined


def parts(values: Values, roots: Iterable[Expr]) -> Iterator[Expr]:
    """Each part once."""
    seen: set[Expr] = set()
    todo = list(roots)
    while todo:
        for one in postorder([todo.pop()]):
            if one not in seen:
                seen.add(one)
                yield one
                todo += [each for dim in _dims(one) for each in _defined(values, dim)]


def _dims(one: Expr) -> tuple[Dim, ...]:
    if isinstance(one, Access):
        return one.indices
    if isinstance(one, IntValue):
        return (one.value,)
    return (one.axis.extent,) if isinstance(one, Reduce) else ()


def _defined(values: Values, dim: Dim) -> Iterator[Expr]:
    """What the integers are that an index is made of."""
    for atom in dim.atoms:
        if is_defined(atom):
            yield values.definition(atom)
        elif isinstance(atom, Axis):
            yield from _defined(values, atom.extent)
