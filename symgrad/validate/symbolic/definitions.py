"""Functions of C that are ops by definition: each stands, word for word, in the record of its op.

In: the text of a file.  Out: the text with declarations in their place, and which op each is.

Such a function approximates what no C library has (``erfinv``), or is the user's own.  That it is
close to its op is tested by points, where the op is defined; nothing is proved of it here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from symgrad.ir.registry import names
from symgrad.ops.record import Helper, get


@dataclass(frozen=True)
class Defined:
    """What a function of C is: the op ``op`` on numbers of the type ``ctype``."""

    op: str
    ctype: str


def without_definitions(text: str) -> tuple[str, Mapping[str, Defined]]:
    """``text`` with a declaration for each such function that is defined there.

    All else keeps its line.
    """
    found: dict[str, Defined] = {}
    for op, helper, whole in _helpers():
        source = helper.source.strip("\n")
        if text.count(source) != 1:
            continue
        arity = get(op).arity or 1
        kinds = ["int64_t"] if whole else ["double", *(["float"] if helper.single else [])]
        lines = []
        for kind in kinds:
            name = f"symgrad_{helper.name}{'f' if kind == 'float' else ''}"
            found[name] = Defined(op, kind)
            lines.append(f"{kind} {name}({', '.join([kind] * arity)});")
        text = text.replace(source, " ".join(lines) + "\n" * source.count("\n"))
    return text, found


def _helpers() -> Iterator[tuple[str, Helper, bool]]:
    """The op, the record of its function, and whether it is on integers."""
    for op in names():
        scalar = get(op).scalar
        for one in (scalar.c, scalar.c_integer) if scalar is not None else ():
            if isinstance(one, Helper):
                yield op, one, scalar is not None and one is scalar.c_integer
