"""Axis collapsing: axes that always go together become one.

In: a program.  Out: the same program with fewer axes.

Two axes are one wherever they are used when every array that has one has the other right behind
it, in full, and every reduction over one is a reduction over both.  Batch and position of a
sequence are then one row, and an elementwise chain on tensors of any rank is one flat loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from symgrad.budgets import COLLAPSE_ROUNDS
from symgrad.codegen.program.definitions import Definition, KernelProgram
from symgrad.codegen.program.equations import elements_in, elements_of
from symgrad.codegen.program.patterns import recognise
from symgrad.ir.dim import Atom, Axis, Dim, Element
from symgrad.ir.expr import Access, Expr, ExprPool, IntValue, Reduce, free_axes, postorder, rebuild

Pair = tuple[Axis, Axis]


@dataclass(frozen=True)
class _Use:
    """One way in which an array is indexed."""

    tensor: str
    indices: tuple[Dim, ...]


def collapse_axes(program: KernelProgram) -> KernelProgram:
    """Merge pairs of axes until there are none left."""
    for _ in range(COLLAPSE_ROUNDS):
        pairs = _pairs(program)
        if not pairs:
            break
        program = _Collapse(program, pairs).program()
    return program


# -- which


def _pairs(program: KernelProgram) -> dict[Axis, Axis]:
    """Disjoint pairs (outer: inner) that can be merged."""
    uses = list(_uses(program))
    neighbours = _neighbours(program, uses)
    banned = _banned(program, uses)
    found: dict[Axis, Axis] = {}
    for outer, inner in neighbours:
        apart = {outer, inner}.isdisjoint({*found, *found.values()})
        if apart and not banned & {outer, inner} and _together(uses, outer, inner):
            found[outer] = inner
    found = _reduced_together(program, found)
    while wrong := _partly_merged(uses, found):
        found = {outer: inner for outer, inner in found.items() if outer not in wrong}
    return found


def _uses(program: KernelProgram) -> Iterator[_Use]:
    """Every indexing of an array: reads, writes, and elements that serve as indices."""
    for definition in program.definitions:
        yield _Use(definition.tensor, definition.indices)
    for expr in _expressions(program):
        if isinstance(expr, Access):
            yield _Use(expr.tensor, expr.indices)
        for element in elements_of(expr):
            yield _Use(element.tensor, element.indices)
    for check in program.checks:
        for element in elements_in([check.index]):
            yield _Use(element.tensor, element.indices)


def _expressions(program: KernelProgram) -> list[Expr]:
    return postorder([definition.body for definition in program.definitions])


def _neighbours(program: KernelProgram, uses: Sequence[_Use]) -> list[Pair]:
    """Axes that follow each other in some array, in order of first mention."""
    found: dict[Pair, None] = {}
    for use in uses:
        for outer, inner in pairwise(_plain(program, use)):
            if outer is not None and inner is not None:
                found[outer, inner] = None
    return list(found)


def _plain(program: KernelProgram, use: _Use) -> list[Axis | None]:
    """The axis along each dimension that is longer than 1, None where it is none or not whole."""
    found: list[Axis | None] = []
    for index, size in zip(use.indices, program.arrays[use.tensor][1], strict=True):
        if size != 1:
            atom = index.atom
            found.append(atom if isinstance(atom, Axis) and atom.extent == size else None)
    return found


def _banned(program: KernelProgram, uses: Sequence[_Use]) -> set[Axis]:
    """Axes that are used otherwise than as the whole index of a whole dimension."""
    banned: set[Axis] = set()
    for use in uses:
        plain = {axis for axis in _plain(program, use) if axis is not None}
        nested = {
            a for index in use.indices if not isinstance(index.atom, Axis) for a in index.axes
        }
        inside = {a for element in elements_in(use.indices) for a in free_axes(element.indices)}
        whole = {a for index in use.indices for a in index.axes} - nested
        banned |= (nested - inside) | (whole - plain)
    for expr in _expressions(program):
        if isinstance(expr, IntValue):
            elements = {a for e in elements_in([expr.value]) for a in free_axes(e.indices)}
            direct = {a for monomial, _ in expr.value.terms for a, _ in monomial}
            banned |= {a for a in expr.free if a in direct or a not in elements}
        elif isinstance(expr, Reduce) and expr.kind.startswith("arg"):
            banned.add(expr.axis)
    for check in program.checks:
        elements = {a for e in elements_in([check.index]) for a in free_axes(e.indices)}
        banned |= set(check.index.axes) - elements
    return banned


def _together(uses: Sequence[_Use], outer: Axis, inner: Axis) -> bool:
    """Does each array that has one of the axes have the other right behind or before it?"""
    for use in uses:
        atoms = [index.atom for index in use.indices if index != 0]
        places = [place for place, atom in enumerate(atoms) if atom in (outer, inner)]
        if not places:
            continue
        if [atoms[place] for place in places] != [outer, inner] or places[1] != places[0] + 1:
            return False
    return True


def _reduced_together(program: KernelProgram, pairs: dict[Axis, Axis]) -> dict[Axis, Axis]:
    """The pairs of which no reduction takes one without the other."""
    parents: dict[Expr, int] = {}
    expressions = _expressions(program)
    for expr in expressions:
        for arg in expr.args:
            parents[arg] = parents.get(arg, 0) + 1
    inner_ones: set[Expr] = set()
    wrong: set[Axis] = set()
    for expr in reversed(expressions):
        if isinstance(expr, Reduce) and expr not in inner_ones:
            chain = _chain(expr, parents)
            inner_ones.update(chain)
            axes = {one.axis for one in chain}
            wrong |= {outer for outer, inner in pairs.items() if (outer in axes) != (inner in axes)}
    return {outer: inner for outer, inner in pairs.items() if outer not in wrong}


def _chain(expr: Reduce, parents: Mapping[Expr, int] | None = None) -> list[Reduce]:
    """Reductions of one kind directly inside each other, the outermost first."""
    chain = [expr]
    while True:
        body = chain[-1].body
        if not isinstance(body, Reduce) or body.kind != expr.kind:
            return chain
        if body.axis in {one.axis for one in chain} or (parents and parents[body] > 1):
            return chain
        chain.append(body)


def _partly_merged(uses: Sequence[_Use], pairs: Mapping[Axis, Axis]) -> set[Axis]:
    """The pairs in an array that is elsewhere indexed otherwise at the same place."""
    merged: dict[str, set[tuple[int, int]]] = {}
    for use in uses:
        merged.setdefault(use.tensor, set()).update(_places(use, pairs))
    wrong: set[Axis] = set()
    for use in uses:
        missing = merged[use.tensor] - set(_places(use, pairs))
        if missing:
            for other in uses:
                if other.tensor == use.tensor:
                    wrong |= {
                        axis for place, axis in _places(other, pairs).items() if place in missing
                    }
    return wrong


def _places(use: _Use, pairs: Mapping[Axis, Axis]) -> dict[tuple[int, int], Axis]:
    """Where the pairs stand, by the places of both axes."""
    at = {index.atom: place for place, index in enumerate(use.indices)}
    return {
        (at[outer], at[inner]): outer
        for outer, inner in pairs.items()
        if outer in at and inner in at
    }


# -- how


class _Collapse:
    """Rewrites a program with pairs of axes merged."""

    def __init__(self, old: KernelProgram, pairs: dict[Axis, Axis]) -> None:
        self._old = old
        self._pairs = pairs
        self._whole: dict[Axis, Axis] = {
            outer: Axis(f"{outer.name}{inner.name}", outer.extent * inner.extent)
            for outer, inner in pairs.items()
        }
        self._inner = set(pairs.values())
        self._new: dict[Expr, Expr] = {}

    def program(self) -> KernelProgram:
        """The new program."""
        old = self._old
        bodies = [definition.body for definition in old.definitions]
        rebuild(old.pool, bodies, self._rule, self._new)
        arrays = dict(old.arrays)
        for use in _uses(old):
            dtype, shape = old.arrays[use.tensor]
            arrays[use.tensor] = dtype, self._shape(shape, use)
        definitions = tuple(self._definition(old.pool, one) for one in old.definitions)
        names = {self._new.get(expr, expr): name for expr, name in old.names.items()}
        checks = tuple(replace(c, index=self._dim(c.index)) for c in old.checks)
        return replace(old, definitions=definitions, names=names, arrays=arrays, checks=checks)

    def _definition(self, pool: ExprPool, old: Definition) -> Definition:
        indices = self._indices(old.indices)
        body = self._new[old.body]
        axes = [axis for index in indices for axis in index.axes]
        pattern = recognise(pool, axes, body) if old.pattern is not None else None
        shape = self._shape(old.shape, _Use(old.tensor, old.indices))
        return replace(old, indices=indices, shape=shape, body=body, pattern=pattern)

    def _shape(self, shape: tuple[Dim, ...], use: _Use) -> tuple[Dim, ...]:
        new = list(shape)
        for first, second in _places(use, self._pairs):
            new[first] = shape[first] * shape[second]
            new[second] = Dim.of(1)
        return tuple(new)

    def _indices(self, indices: tuple[Dim, ...]) -> tuple[Dim, ...]:
        return tuple(
            Dim.of(0) if index.atom in self._inner else self._dim(index) for index in indices
        )

    def _dim(self, dim: Dim) -> Dim:
        if isinstance(dim.atom, Axis) and dim.atom in self._whole:
            return Dim.of(self._whole[dim.atom])
        put: dict[Atom, Dim] = {
            element: Dim.of(Element(element.tensor, self._indices(element.indices)))
            for element in elements_in([dim])
        }
        return dim.substitute(put)

    def _rule(self, expr: Expr, new: Mapping[Expr, Expr]) -> Expr | None:
        pool = self._old.pool
        if isinstance(expr, Access):
            return pool.access(expr.tensor, self._indices(expr.indices), expr.dtype)
        if isinstance(expr, IntValue):
            return pool.integer(self._dim(expr.value), expr.dtype)
        if isinstance(expr, Reduce) and expr.axis in self._inner:
            return new[expr.body]  # its outer axis, somewhere around or inside, is both
        if isinstance(expr, Reduce) and expr.axis in self._whole:
            return pool.reduce(expr.kind, self._whole[expr.axis], new[expr.body])
        return None
