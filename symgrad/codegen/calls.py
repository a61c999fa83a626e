"""Records of a call, made from nodes: arrays, the sizes that shapes tell, conditions.

In: nodes and shapes.  Out: records of ``symgrad.abi``, in which sizes are Python expressions.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection, Iterable, Sequence

from symgrad.abi import Array, Binding, with_names
from symgrad.codegen.names import identifier
from symgrad.errors import CodegenError
from symgrad.ir.dim import Atom, Dim, Size
from symgrad.ir.function import BatchAxes, SizeCondition
from symgrad.ir.graph import Node

# What cannot stand for a size in an expression.
WORDS = frozenset((*keyword.kwlist, "max", "min"))
_WORD = re.compile(r"[^\W\d]\w*")


class SizeNames:
    """What the sizes of an op are called in expressions: as users call them, but ``in`` ``in_``.

    ``order``: of the sizes, as kernels take them.
    """

    def __init__(self, order: Iterable[str] = ()) -> None:
        self.order = tuple(order)
        self._names = renamed(self.order, WORDS)
        self._atoms: dict[Atom, Dim] = {Size(a): Dim.size(b) for a, b in self._names.items()}

    def of(self, size: str) -> str:
        """The name of a size symbol."""
        return self._names.get(size, size)

    def text(self, dim: Dim) -> str:
        """A size as an expression."""
        return str(dim.substitute(self._atoms) if self._atoms else dim)

    def array(
        self, name: str, node: Node, strides: tuple[int, ...] = (), batch: BatchAxes | None = None
    ) -> Array:
        """The record of a node."""
        dims = tuple(map(self.text, node.shape))
        return Array(name, str(node.dtype), dims, strides=strides, batch=batch)

    def condition(self, condition: SizeCondition) -> str:
        """A condition as an expression."""
        return f"{self.text(condition.left)} {condition.relation} {self.text(condition.right)}"


def renamed(names: Iterable[str], reserved: Collection[str]) -> dict[str, str]:
    """Other names for those that are reserved or private, each once."""
    names = sorted(set(names))
    found: dict[str, str] = {}
    for name in names:
        others = [other for other in (*names, *found.values()) if other != name]
        safe = safe_name(name, others, reserved)
        if safe != name:
            found[name] = safe
    return found


def safe_name(wanted: str, taken: Collection[str], reserved: Collection[str]) -> str:
    """``wanted``, or the nearest name that is free and not private."""
    name = wanted if wanted.isidentifier() else identifier(wanted)
    while name in taken or name in reserved or name.startswith("_"):
        name = f"{name.lstrip('_') or 'value'}_"
    return name


def words_of(expression: str) -> list[str]:
    """The sizes that an expression names."""
    return [word for word in _WORD.findall(expression) if word not in ("min", "max")]


def size_bindings(
    op: str, shapes: Sequence[tuple[Dim, ...]], needed: Collection[str], names: SizeNames
) -> tuple[Binding, ...]:
    """How each size is read off the shapes of the inputs.

    An axis that is the bare size is preferred, then one that is linear in it alone.  Raises
    CodegenError for a size of a shape, or one that is ``needed``, that no axis determines.
    """
    found: dict[str, Binding] = {}
    mentioned = set(needed)
    for position, shape in enumerate(shapes):
        for axis, dim in enumerate(shape):
            mentioned.update(map(names.of, dim.sizes))
            solved = _linear(dim)
            if solved is None:
                continue
            size, factor, offset = names.of(solved[0]), *solved[1:]
            binding = Binding(size, input=position, axis=axis, factor=factor, offset=offset)
            if size not in found or (binding.plain and not found[size].plain):
                found[size] = binding
    missing = sorted(mentioned - found.keys())
    if missing:
        raise CodegenError(
            f"{op}: no input's shape tells the size {missing[0]}",
            hint="give some input an axis of that size",
        )
    return tuple(sorted(found.values(), key=lambda binding: not binding.plain))


def _linear(dim: Dim) -> tuple[str, int, int] | None:
    """``(name, factor, offset)`` where ``dim`` is ``factor*name + offset``, factor positive."""
    if len(dim.sizes) != 1 or any(not isinstance(atom, Size) for atom in dim.atoms):
        return None
    (name,) = dim.sizes
    offset = dim.at({name: 0})
    factor = dim.at({name: 1}) - offset
    linear = factor > 0 and dim == Dim.size(name) * factor + offset
    return (name, factor, offset) if linear else None


def known_conditions(
    op: str, conditions: Iterable[str], known: Collection[str]
) -> tuple[str, ...]:  # fmt: skip
    """The conditions in terms of the sizes ``known`` alone, which the inputs have.

    In a case for ``k == 1`` the 1 already stands in the shapes: the condition goes, and another
    one that mentions k has 1 in its place, and goes where that makes it true for all sizes.
    Raises CodegenError where a size stays unknown.
    """
    pending = list(conditions)
    while True:
        found = next(((c, d) for c in pending if (d := _definition(c, known)) is not None), None)
        if found is None:
            break
        condition, (name, value) = found
        pending.remove(condition)
        pending = [with_names(other, {name: f"({value})"}) for other in pending]
    for condition in pending:
        unknown = [word for word in words_of(condition) if word not in known]
        if unknown:
            raise CodegenError(
                f"{op}: the condition {condition} is about the size {unknown[0]},"
                " which no input has",
                hint="give some input an axis of that size",
            )
    return tuple(one for one in pending if words_of(one) or not eval(one, {"__builtins__": {}}))


def _definition(condition: str, known: Collection[str]) -> tuple[str, str] | None:
    """``(name, value)`` where the condition says what a size is that no input has."""
    left, equals, right = condition.partition(" == ")
    if not equals:
        return None
    for name, value in ((left.strip(), right.strip()), (right.strip(), left.strip())):
        if name.isidentifier() and name not in known and name not in words_of(value):
            return name, value
    return None
