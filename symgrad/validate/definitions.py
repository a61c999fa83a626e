"""Functions of C that are ops by definition: each stands, word for word, in the record of its op.

In: the text of a file.  Out: the text with declarations in their place, and which op each is.

Such a function approximates what no C library has (``erfinv``), or has worse (``exp``), or is the
user's own.  That it is close to its op is tested by points, where the op is defined, or proved
(``tests/ops/test_exponential.py``); nothing is proved of it here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from symgrad.ops.exponential_c import FLOATS
from symgrad.ops.products_c import FLUSHED, MEANING
from symgrad.ops.record import get, helpers


@dataclass(frozen=True)
class Defined:
    """What a function of C is: the op ``op`` on numbers of the type ``ctype``.

    ``proved``: that it is as close to it as is said there.
    """

    op: str
    ctype: str
    proved: bool


def without_definitions(
    text: str, *, proved_only: bool = False
) -> tuple[str, Mapping[str, Defined]]:
    """``text`` with a declaration for each such function that is defined there.

    The products of matrices, which set a mode of the processor, are replaced by what they mean.

    ``proved_only``: for those alone that are proved.  All else keeps its line.
    """
    found: dict[str, Defined] = {}
    if text.count(FLUSHED) == 1:
        text = text.replace(FLUSHED, MEANING + "\n" * FLUSHED.count("\n"))
    if text.count(FLOATS) == 1:
        text = text.replace(FLOATS, "\n" * FLOATS.count("\n"))
    for op, helper in helpers():
        source = helper.source.strip("\n")
        if text.count(source) != 1 or (proved_only and not helper.shared):
            continue
        arity = get(op).arity or 1
        lines = []
        for kind in helper.types:
            name = f"symgrad_{helper.name}{'f' if kind == 'float' else ''}"
            found[name] = Defined(op, kind, helper.shared)
            lines.append(f"{kind} {name}({', '.join([kind] * arity)});")
        text = text.replace(source, " ".join(lines) + "\n" * source.count("\n"))
    return text, found
