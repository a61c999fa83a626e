"""Size symbols that a Python function can have as local names.

In: ``OpSignature`` records.  Out: the same, a size called ``in`` or ``out`` renamed ``in_``,
``out_``.  Imports ``symgrad.ir``.

C parameters are positional, so the kernels need not know.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from symgrad.ir.abi import ArrayArgument, KernelSignature, OpSignature
from symgrad.ir.dim import Atom, Dim, Size

# What a wrapper needs for itself.
RESERVED = frozenset(
    (
        *keyword.kwlist,
        *("OP", "backward", "forward", "inference", "needs_input_grad", "out", "residuals"),
        *("annotations", "type", "tuple", "Any", "max", "min", "bool", "int", "zip"),
    )
)


def safe_name(wanted: str, taken: Collection[str]) -> str:
    """``wanted``, or the nearest name that is free and not private."""
    name = wanted
    while name in taken or name in RESERVED or name.startswith("_"):
        name = f"{name.lstrip('_') or 'value'}_"
    return name


def with_safe_sizes(signatures: Sequence[OpSignature]) -> tuple[OpSignature, ...]:
    """The signatures with every size symbol renamed that cannot be a local name."""
    names = sorted(set().union(*(size_names(one) for one in signatures)))
    renamed: dict[str, str] = {}
    for name in names:
        safe = safe_name(name, [other for other in (*names, *renamed.values()) if other != name])
        if safe != name:
            renamed[name] = safe
    if not renamed:
        return tuple(signatures)
    return tuple(_Renaming(renamed).signature(one) for one in signatures)


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
