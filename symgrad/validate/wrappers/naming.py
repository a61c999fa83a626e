"""What callers know the parameters of a wrapper as.

In: what the traced Function calls its inputs, plain values and outputs; the parameters of the text,
and the table by which callers know them.  Raises Wrong or NotShown.

A parameter has the name of its argument.  Where Python has no such parameter (``class``, ``a b``),
or where the name is taken (``out``), it is the word that is nearest to it, with so many underscores
behind it that it is the name of nothing else.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping, Sequence

from symgrad.validate.wrappers.values import NotShown, Wrong

TAKEN = ("out",)
"""Parameters of ``inference`` and ``forward`` that are no arguments of the Function."""


def parameter_names(names: Sequence[str]) -> dict[str, str]:
    """What callers have to know each argument of ``names`` as."""
    return {name: name if _is_usual(name) else _nearest(name, names) for name in names}


def _is_usual(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name) and name not in TAKEN


def _nearest(name: str, names: Sequence[str]) -> str:
    word = re.sub(r"\W+", "_", name).lstrip("_")
    while keyword.iskeyword(word) or word in (*TAKEN, *names):
        word += "_"
    return word


def known_as(
    parameters: Sequence[str], table: Sequence[tuple[object, object]], line: int
) -> dict[str, str]:
    """What callers know each of ``parameters`` as.

    ``table``: names for callers, and the parameters that they stand for, as ``by_name`` has them.
    """
    found = {own: own for own in parameters}
    if len({name for name, _ in table}) < len(table):
        raise Wrong("two parameters are one name for callers", line)
    for name, own in table:
        if not isinstance(name, str) or not isinstance(own, str) or own not in found:
            raise Wrong(f"{own} is not a parameter that {name} can stand for", line)
        if name == own or found[own] != own:
            raise Wrong(f"the name {name} for {own} is not needed", line)
        found[own] = name
    if len(set(found.values())) < len(found):
        raise Wrong("callers know two parameters by one name", line)
    return found


def check_name(found: str, name: str, wanted: Mapping[str, str], line: int) -> None:
    """The argument ``name`` is known to callers as ``found``."""
    if found != wanted[name]:
        kind = Wrong if wanted[name] == name else NotShown
        raise kind(f"{found} is what callers know as {wanted[name]}", line)


def check_cotangents(found: Sequence[str], outputs: Sequence[str], line: int) -> None:
    """The cotangents that ``backward`` takes are called by the outputs."""
    names = [f"grad_{one}" for one in outputs]
    wanted = parameter_names(names)
    for one, name in zip(found, names, strict=True):
        check_name(one, name, wanted, line)
