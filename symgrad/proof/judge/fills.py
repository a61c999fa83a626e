"""Large negative numbers that mask logits, read as minus infinity.

In: a subject.  Out: the same with ``-inf`` for them, and what to print.

``softmax(x.masked_fill(mask, -1e9))`` stands for what ``-inf`` says: an entry that is masked has
no weight.  In doubles the two are one: ``exp`` of what is more than 745 below the greatest of its
row is 0.  Over the reals they are not, and differ by less than ``exp(-745)`` of a row; in a row
that is masked throughout they are two functions, of which the one with ``-inf`` is not defined.
What is proved is proved of that one, so that an entry of each row that is not masked is a
condition; the number, and how far above it the greatest of a row has to be, is printed.

A number is read so where it is a branch of a ``where``, and where nothing but exponentials, the
greatest value of a row and its place read that, moved along its axes, scaled, or with something
added or subtracted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from symgrad.ir.graph import Graph, Node
from symgrad.ir.rewrite import rewrite
from symgrad.ops.movement import bare
from symgrad.proof.oracle.subject import Subject

GREATEST_FILL = -1e4
"""A number above it may be a logit."""
UNDERFLOW = 746
"""``exp(-746)`` is 0 in doubles."""
_MOVED = frozenset(("expand", "reshape", "permute", "slice", "shift", "concat"))


def filled(subject: Subject) -> Subject | None:
    """The subject with -inf for what masks logits; None where nothing does."""
    fills = [node for node in subject.everything.nodes if _branches(node)]
    if not fills:
        return None
    readers = _readers(subject)
    read = {node for node in fills if _is_for_exponentials(node, readers)}
    if not read:
        return None
    graph, said = Graph(), dict[str, None]()

    def rule(node: Node, args: Sequence[Node]) -> Node | None:
        if node not in read:
            return None
        branches = list(args)
        for place, value in _branches(node):
            said[_sentence(value)] = None
            infinity = graph.constant(float("-inf"), node.dtype)
            branches[place] = graph.expand(infinity, node.shape)
        return graph.apply("where", *branches)

    roots = [*subject.inputs, *(node for pair in subject.outputs for node in pair)]
    new = rewrite(graph, [*roots, *subject.gradients.values()], None, rule)
    found = subject.changed(graph=graph, new=new)
    found.read_as = (*subject.read_as, *said)
    return found


def _sentence(value: float) -> str:
    above = value + UNDERFLOW
    said = "it" if above == value else f"{above:.12g}"
    return (
        f"{value:g}, where it masks, is -inf: its exponential is 0 in doubles in a row with an "
        f"entry above {said}"
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


def _is_for_exponentials(fill: Node, readers: dict[Node, list[Node | None]]) -> bool:
    """Is all that is made of it an exponential, or the greatest value of a row, or its place?"""
    todo, seen = [fill], {fill}
    while todo:
        node = todo.pop()
        for reader in readers.get(node, ()):
            if reader is None or not (reader.op in _ENDS or _keeps(reader, node)):
                return False
            if reader.op not in _ENDS and reader not in seen:
                seen.add(reader)
                todo.append(reader)
    return True


_ENDS = frozenset(("exp", "amax", "max", "argmax"))


def _keeps(reader: Node, node: Node) -> bool:
    """Is what reads it -inf, or near it, where it is?"""
    if reader.op in _MOVED or (reader.op == "cast" and reader.dtype.is_float):
        return True
    if reader.op in ("mul", "div"):
        factor = bare(reader.args[1] if reader.args[0] is node else reader.args[0])
        above = reader.op == "mul" or reader.args[0] is node
        return above and factor.op == "constant" and factor.attributes["value"].value > 0
    return reader.op == "add" or (reader.op == "sub" and reader.args[1] is not node)
