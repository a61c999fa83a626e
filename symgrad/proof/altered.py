"""Gradients that were altered on purpose: the parts that they are made of.

In: the node of a gradient, and the cotangents.  Out: what it is where a comparison of the incoming
gradient holds, and where not; what it is without one; what it is before it is scaled by its norm.
These are identities of graphs.  Whether the parts are derivatives is for the judge
(``surrogates``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from symgrad.ir.dtype import bool_
from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.ir.rewrite import rewrite
from symgrad.ops.record import get

_COMPARED = frozenset(("gt", "ge", "lt", "le"))
_CARRIED = frozenset(("where", "cast"))


@dataclass(frozen=True)
class Gate:
    """A gradient that asks about the incoming one: ``holds`` where ``condition`` does."""

    condition: Node
    holds: Node
    fails: Node


def gate(gradient: Node, cotangents: Collection[Node]) -> Gate | None:
    """The comparison of an incoming gradient that a gradient asks for, if that is a single one."""
    depends = _depending(gradient, cotangents)
    asked = [node for node in depends if node.dtype == bool_ and not _is_never(node)]
    first = [node for node in asked if not any(arg in asked for arg in node.args)]
    if len(first) != 1 or first[0].op not in _COMPARED:
        return None
    (condition,) = first
    true, false = (
        _put(gradient, condition, condition.graph.lift(answer, condition))
        for answer in (True, False)
    )
    return Gate(condition, true, false)


Factor = tuple[Node, bool]
"""A factor of a product; is it divided by?"""


@dataclass(frozen=True)
class Rescaled:
    """A gradient that is ``inner`` times the factors of ``scale``, where ``condition`` holds."""

    inner: Node
    scale: tuple[Factor, ...]
    condition: Node | None = None


def rescaled(gradient: Node, cotangents: Collection[Node]) -> Iterator[Rescaled]:
    """How a gradient is another one times a function of norms: ``g * (1 / g.norm()).clamp(max=1)``.

    Norms are sums and maxima of squares and absolute values.  Numbers beside them belong to the
    scale, or else to the other gradient.
    """
    norms = _norms(gradient, cotangents)
    depends = {*_depending(gradient, cotangents), *cotangents}
    if gradient.op == "where" and gradient.args[0] in norms:
        condition, *arms = gradient.args
        for changed, kept in (arms, arms[::-1]):
            asked = (
                condition if changed is arms[0] else condition.graph.apply("logical_not", condition)
            )
            for one in _by_norms(changed, norms, depends):
                if one.inner is kept:
                    yield replace(one, condition=asked)
        return
    yield from _by_norms(gradient, norms, depends)


def _by_norms(node: Node, norms: Collection[Node], depends: Collection[Node]) -> Iterator[Rescaled]:
    factors = [*_factors(node)]
    scale = [one for one in factors if one[0] in norms]
    rest = [one for one in factors if one[0] not in norms]
    if not scale or sum(one in depends for one, _ in rest) != 1:
        return
    numbers = [one for one in rest if one[0] not in depends and _is_number(one[0])]
    yield Rescaled(_product([one for one in rest if one not in numbers]), (*numbers, *scale))
    if numbers:
        yield Rescaled(_product(rest), (*scale,))


def _factors(node: Node, inverted: bool = False) -> Iterator[Factor]:
    if node.op in ("mul", "div"):
        left, right = node.args
        yield from _factors(left, inverted)
        yield from _factors(right, inverted != (node.op == "div"))
    else:
        yield node, inverted


def _product(factors: Sequence[Factor]) -> Node:
    """The product of some factors, of which one is not divided by."""
    ordered = sorted(factors, key=lambda one: one[1])
    made = ordered[0][0]
    for node, inverted in ordered[1:]:
        made = made / node if inverted else made * node
    return made


def _is_number(node: Node) -> bool:
    while node.op in ("expand", "cast"):
        node = node.args[0]
    return not node.rank


def _norms(root: Node, cotangents: Collection[Node]) -> set[Node]:
    """The nodes that depend on the incoming gradients through norms alone."""
    even: set[Node] = set()
    norms: set[Node] = set()
    depends = {*cotangents}
    for node in _depending(root, cotangents):
        through = [arg for arg in node.args if arg in depends]
        depends.add(node)
        is_square = node.op in ("abs", "square") or (node.op == "mul" and len({*node.args}) == 1)
        if is_square or all(arg in even for arg in through):
            even.add(node)
        summed = node.op in _SUMMED and through[0] in even
        number = not node.rank and node in even  # the sum of itself
        if summed or number or all(arg in norms for arg in through):
            norms.add(node)
    return norms


_SUMMED = frozenset(("sum", "amax"))


def without(gradient: Node, cotangents: Iterable[Node]) -> Node:
    """What a gradient is where the incoming ones are 0."""
    known = {node: node.graph.lift(0.0, node) for node in cotangents}
    plain = rewrite(gradient.graph, [gradient], known, named=False)[gradient]
    return rewrite(gradient.graph, [plain], rule=folded, named=False)[plain]


def is_curved(node: Node, argument: Node) -> bool:
    """Does a node depend on an argument by more than comparisons?"""
    depends = {*_depending(node, [argument])}
    todo, seen = [node], {node}
    while todo:
        one = todo.pop()
        if one in depends and one.op not in (*_CARRIED, "expand"):
            return True
        inside = {arg for arg in one.args if arg in depends and arg.dtype.is_float} - seen
        seen |= inside
        todo += inside
    return False


def _depending(root: Node, goals: Collection[Node]) -> list[Node]:
    """The nodes below one that depend on others, but for these."""
    found: dict[Node, None] = {}
    for node in ancestors([root]):
        if any(arg in found or arg in goals for arg in node.args):
            found[node] = None
    return [*found]


def _is_never(node: Node) -> bool:
    """Does it ask whether a number is itself?  There is no NaN among the reals."""
    return node.op == "ne" and node.args[0] is node.args[1]


def _put(root: Node, old: Node, new: Node) -> Node:
    """A node with another one in place of one that is below it."""
    plain = rewrite(root.graph, [root], {old: new}, named=False)[root]
    return rewrite(root.graph, [plain], rule=folded, named=False)[plain]


def literal_value(node: Node) -> float | None:
    """The number that all elements of a node are, if it is a literal."""
    while node.op in ("expand", "cast"):
        node = node.args[0]
    return float(node.attributes["value"].value) if node.op == "constant" else None


def folded(node: Node, args: Sequence[Node]) -> Node | None:
    """A rule: what numbers and truth values decide, without them."""
    known = [literal_value(arg) for arg in args]
    made = _decided(node, args, known)
    if made is None or made.type == node.type:
        return made
    return None


def _decided(node: Node, args: Sequence[Node], known: Sequence[float | None]) -> Node | None:
    graph: Graph = args[0].graph if args else node.graph
    if _is_never(node):
        return graph.lift(False, node)
    if node.op == "where" and known[0] is not None:
        return args[1] if known[0] else args[2]
    if node.op == "where" and args[1] is args[2]:
        return args[1]
    if node.op == "cast" and known[0] is not None and node.dtype.is_float:
        return graph.lift(known[0], node)
    if node.op == "cast" and args[0].op == "cast" and args[0].args[0].dtype == node.dtype == bool_:
        return args[0].args[0]
    if node.op == "logical_not" and known[0] is not None:
        return graph.lift(not known[0], node)
    if node.op in ("logical_and", "logical_or"):
        neutral = float(node.op == "logical_and")
        for one, other in zip(known, reversed(args), strict=True):
            if one is not None:
                return other if one == neutral else graph.lift(not neutral, node)
    return _with_number(node, args, known, graph) if any(one is not None for one in known) else None


def _with_number(
    node: Node, args: Sequence[Node], known: Sequence[float | None], graph: Graph
) -> Node | None:
    """A product or a sum with 0 or 1, and what is linear in 0."""
    if node.op == "mul" and 1.0 in known:
        return args[1 - known.index(1.0)]
    if node.op == "add" and 0.0 in known:
        return args[1 - known.index(0.0)]
    if node.op == "sub" and known[1] == 0:
        return args[0]
    if node.op == "div" and known[1] == 1:
        return args[0]
    linear = [0] if node.op in ("div", "neg") else get(node.op).linear
    if any(known[place] == 0 for place in linear) or (node.op == "mul" and 0.0 in known):
        return graph.lift(0.0, node)
    return None
