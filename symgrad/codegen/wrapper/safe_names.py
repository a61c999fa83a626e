"""Signatures as Python can spell them out.

In: ``OpSignature`` records.  Out: the same, a size called ``in`` renamed ``in_`` (and one called
``out`` renamed where it is to be a local name), and conditions in terms of sizes that are there.

C parameters are positional, so the kernels need not know.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from symgrad.codegen.names import identifier
from symgrad.errors import CodegenError
from symgrad.ir.abi import ArrayArgument, KernelSignature, OpSignature
from symgrad.ir.dim import Atom, Dim, Size

# What cannot stand for a size in an expression.
WORDS = frozenset((*keyword.kwlist, "max", "min"))
# What a wrapper needs for itself as well; its classes are Residuals, Residuals1 and so on.
RESERVED = WORDS.union(
    ("OP", "backward", "forward", "inference", "needs_input_grad", "out", "residuals"),
    ("annotations", "type", "tuple", "Any", "bool", "int", "zip"),
)
_RESIDUALS = re.compile(r"Residuals\d*")


def safe_name(wanted: str, taken: Collection[str], reserved: Collection[str] = RESERVED) -> str:
    """``wanted``, or the nearest name that is free and not private."""
    name = wanted if wanted.isidentifier() else identifier(wanted)
    while (
        name in taken or name in reserved or name.startswith("_") or _RESIDUALS.fullmatch(name)
    ):  # fmt: skip
        name = f"{name.lstrip('_') or 'value'}_"
    return name


def with_readable_sizes(signatures: Sequence[OpSignature]) -> tuple[OpSignature, ...]:
    """The signatures with only those size symbols renamed that no expression can hold.

    Conditions come out as ``with_known_conditions`` makes them.
    """
    return _with_sizes_outside(signatures, WORDS)


def with_safe_sizes(signatures: Sequence[OpSignature]) -> tuple[OpSignature, ...]:
    """The signatures with every size symbol renamed that cannot be a local of a wrapper.

    Conditions come out as ``with_known_conditions`` makes them.
    """
    return _with_sizes_outside(signatures, RESERVED)


def _with_sizes_outside(
    signatures: Sequence[OpSignature], reserved: Collection[str]
) -> tuple[OpSignature, ...]:
    signatures = [with_known_conditions(one) for one in signatures]
    names = sorted(set().union(*(size_names(one) for one in signatures)))
    renamed: dict[str, str] = {}
    for name in names:
        others = [other for other in (*names, *renamed.values()) if other != name]
        safe = safe_name(name, others, reserved)
        if safe != name:
            renamed[name] = safe
    if not renamed:
        return tuple(signatures)
    return tuple(_Renaming(renamed).signature(one) for one in signatures)


def with_known_conditions(signature: OpSignature) -> OpSignature:
    """The signature with its conditions over the sizes of its inputs alone.

    In a case for ``k == 1`` the 1 already stands in the shapes: the condition goes, and another
    one that mentions k has 1 in its place.  Raises CodegenError where a size stays unknown.
    """
    known = {size for array in signature.inputs for dim in array.shape for size in dim.sizes}
    pending = list(signature.conditions)
    while True:
        found = next(((c, d) for c in pending if (d := _definition(c, known)) is not None), None)
        if found is None:
            break
        condition, (name, value) = found
        pending.remove(condition)
        word = re.compile(rf"\b{re.escape(name)}\b")
        pending = [word.sub(f"({value})", other) for other in pending]
    for condition in pending:
        unknown = [word for word in _words(condition) if word not in known]
        if unknown:
            raise CodegenError(
                f"{signature.name}: the condition {condition} is about the size {unknown[0]},"
                " which no input has",
                hint="give some input an axis of that size",
            )
    return replace(signature, conditions=tuple(pending))


def _definition(condition: str, known: Collection[str]) -> tuple[str, str] | None:
    """``(name, value)`` where the condition says what a size is that no input has."""
    left, equals, right = condition.partition(" == ")
    if not equals:
        return None
    for name, value in ((left.strip(), right.strip()), (right.strip(), left.strip())):
        if name.isidentifier() and name not in known and name not in _words(value):
            return name, value
    return None


def _words(text: str) -> list[str]:
    return [word for word in re.findall(r"[^\W\d]\w*", text) if word not in ("min", "max")]


def size_names(signature: OpSignature) -> set[str]:
    """The names of all size symbols in it."""
    kernels = (signature.inference, signature.forward, *(b.kernel for b in signature.backward))
    found = {size for kernel in kernels for size in kernel.sizes}
    for array in (*signature.inputs, *signature.outputs):
        found.update(size for dim in array.shape for size in dim.sizes)
    return found


class _Renaming:
    """Applies one renaming to everything in a signature."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names
        self.atoms: dict[Atom, Dim] = {Size(old): Dim.size(new) for old, new in names.items()}
        words = "|".join(map(re.escape, names))
        self.words = re.compile(rf"\b({words})\b")

    def array(self, array: ArrayArgument) -> ArrayArgument:
        return replace(array, shape=tuple(dim.substitute(self.atoms) for dim in array.shape))

    def kernel(self, kernel: KernelSignature) -> KernelSignature:
        return replace(
            kernel,
            sizes=tuple(self.names.get(size, size) for size in kernel.sizes),
            inputs=tuple(map(self.array, kernel.inputs)),
            outputs=tuple(map(self.array, kernel.outputs)),
        )

    def signature(self, one: OpSignature) -> OpSignature:
        return replace(
            one,
            inputs=tuple(map(self.array, one.inputs)),
            outputs=tuple(map(self.array, one.outputs)),
            residuals=tuple(replace(r, array=self.array(r.array)) for r in one.residuals),
            inference=self.kernel(one.inference),
            forward=self.kernel(one.forward),
            backward=tuple(replace(b, kernel=self.kernel(b.kernel)) for b in one.backward),
            conditions=tuple(self._condition(text) for text in one.conditions),
        )

    def _condition(self, text: str) -> str:
        return self.words.sub(lambda match: self.names[match.group(1)], text)
