"""Large negative numbers that mask logits, read as minus infinity.

In: a subject.  Out: the same with ``-inf`` for them, and what to print.

``softmax(x.masked_fill(mask, -1e9))`` stands for what ``-inf`` says: an entry that is masked has
no weight.  In doubles the two are one: ``exp`` of what is more than 745 below the greatest of its
row is 0.  Over the reals they are not, and differ by less than ``exp(-745)`` of a row; in a row
that is masked throughout they are two functions, of which the one with ``-inf`` is not defined.
What is proved is proved of that one, so that an entry of each row that is not masked is a
condition; the number, and how far above it the greatest of a row has to be, is printed.

A number is read so where it is a branch of a ``where``, and where nothing but exponentials, and
beside these the greatest value of a row and its place, read that, moved along its axes, scaled by a
number, or with something added or subtracted.  What numbers make of it on the way has to be far
below, too: ``softmax(1e-4 * x.masked_fill(mask, -1e4))`` masks nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from symgrad.ir.graph import Graph, Node
from symgrad.ir.rewrite import rewrite
from symgrad.ops.movement import bare
from symgrad.proof.oracle.subject import Subject

GREATEST_FILL = -1e4
"""A number above it may be a logit."""
UNDERFLOW = 746
"""``exp(-746)`` is 0 in doubles."""
GREATEST_EXPONENT = -2.0 * UNDERFLOW
"""What the exponential is taken of, where the rest is 0; half of it is left for the logits."""
_MOVED = frozenset(("expand", "reshape", "permute", "slice", "shift", "concat"))


def filled(subject: Subject) -> Subject | None:
    """The subject with -inf for what masks logits; None where nothing does."""
    fills = [node for node in subject.everything.nodes if _branches(node)]
    if not fills:
        return None
    readers = _readers(subject)
    read = {
        node: exponents
        for node in fills if (exponents := _exponents(node, readers)) is not None
    }  # fmt: skip
    if not read:
        return None
    graph, said = Graph(), dict[str, None]()

    def rule(node: Node, args: Sequence[Node]) -> Node | None:
        if node not in read:
            return None
        branches = list(args)
        for place, value in _branches(node):
            said[_sentence(value, read[node][place])] = None
            infinity = graph.constant(float("-inf"), node.dtype)
            branches[place] = graph.expand(infinity, node.shape)
        return graph.apply("where", *branches)

    roots = [*subject.inputs, *(node for pair in subject.outputs for node in pair)]
    new = rewrite(graph, [*roots, *subject.gradients.values()], None, rule)
    found = subject.changed(graph=graph, new=new)
    found.read_as = (*subject.read_as, *said)
    return found


def _sentence(value: float, exponent: float) -> str:
    above = exponent + UNDERFLOW
    said = "it" if above == value else f"{above:.12g}"
    scaled = "" if exponent == value else f" (as {exponent:.12g} there)"
    return (
        f"{value:g}, where it masks, is -inf: its exponential{scaled} is 0 in doubles in a row "
        f"with an entry above {said}"
    )


def _branches(node: Node) -> list[tuple[int, float]]:
    """The branches of a ``where`` that are large negative numbers, with these."""
    if node.op != "where" or not node.dtype.is_float:
        return []
    numbers = [(place, bare(node.args[place])) for place in (1, 2)]
    values = [
        (place, float(one.attributes["value"].value))
        for place, one in numbers if one.op == "constant"
    ]  # fmt: skip
    found = [(place, value) for place, value in values if float("-inf") < value <= GREATEST_FILL]
    return found if len(values) == 1 else []


def _readers(subject: Subject) -> dict[Node, list[Node | None]]:
    """What reads each node; None for what leaves the program."""
    found: dict[Node, list[Node | None]] = {}
    for node in subject.everything.nodes:
        for arg in node.args:
            found.setdefault(arg, []).append(node)
    for node in _results(subject):
        found.setdefault(node, []).append(None)
    return found


def _results(subject: Subject) -> Iterable[Node]:
    yield from (node for node, _ in subject.outputs)
    yield from subject.gradients.values()


def _exponents(fill: Node, readers: Mapping[Node, list[Node | None]]) -> dict[int, float] | None:
    """What is made of the number of each branch, at most, where it is read.

    None where anything but exponentials, the greatest value of a row and its place read it, where
    no exponential does, or where that may be a logit.
    """
    branches = _branches(fill)
    found = {place: -math.inf for place, _ in branches}
    start = (fill, tuple(value for _, value in branches))
    todo, seen, exponential = [start], {start}, False
    while todo:
        node, values = todo.pop()
        if len(seen) > MOST_READERS:
            return None
        for reader in readers.get(node, ()):
            if reader is not None and reader.op in _ENDS:
                exponential |= reader.op == "exp"
                found = {
                    place: max(found[place], value)
                    for (place, _), value in zip(branches, values, strict=True)
                }
                continue
            kept = None if reader is None else _kept(reader, node, values)
            if reader is None or kept is None:
                return None
            if (reader, kept) not in seen:
                seen.add((reader, kept))
                todo.append((reader, kept))
    far = all(value <= GREATEST_EXPONENT for value in found.values())
    return found if exponential and far else None


MOST_READERS = 1000
_ENDS = frozenset(("exp", "amax", "max", "argmax"))


def _kept(reader: Node, node: Node, values: tuple[float, ...]) -> tuple[float, ...] | None:
    """What numbers are in what reads them; None where it is not near to -inf where they are."""
    if reader.op in _MOVED or (reader.op == "cast" and reader.dtype.is_float):
        return values
    if reader.op not in ("add", "sub", "mul", "div"):
        return None
    other = bare(reader.args[1] if reader.args[0] is node else reader.args[0])
    number = float(other.attributes["value"].value) if other.op == "constant" else None
    if reader.op == "add" or (reader.op == "sub" and reader.args[1] is not node):
        moved = 0.0 if number is None else number if reader.op == "add" else -number
        return tuple(value + moved for value in values)
    above = reader.op == "mul" or (reader.op == "div" and reader.args[0] is node)
    if number is None or number <= 0 or not above:
        return None
    factor = number if reader.op == "mul" else 1 / number
    return tuple(value * factor for value in values)
