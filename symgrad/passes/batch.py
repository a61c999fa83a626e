"""One more axis in front of everything: what ``vmap`` does to a graph.

In: a graph, and which of its inputs have the axis.  Out: the graph over whole batches.

Each kind of op has one rule; what depends on no input that has the axis is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from symgrad.errors import UnsupportedOpError
from symgrad.ir.dim import Dim
from symgrad.ir.graph import Graph, Node
from symgrad.ir.rewrite import rewrite
from symgrad.ops.contraction import parse
from symgrad.ops.record import apply, get

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class Batched:
    """A node over the whole batch; ``whole``: it has the axis in front."""

    node: Node
    whole: bool


Rule = Callable[[Node, Sequence[Batched], Dim], Node]


def batch(
    outputs: Sequence[Node],
    inputs: Mapping[Node, Batched],
    size: Dim,
    rules: Mapping[str, Rule] | None = None,
) -> list[Batched]:
    """``outputs`` for a batch of ``size``, in the graph of the nodes that ``inputs`` gives.

    ``rules``: for ops that have none here.  Raises UnsupportedOpError for an op without a rule.
    """
    graph = next((one.node.graph for one in inputs.values()), None) or Graph()
    whole = {node for node, one in inputs.items() if one.whole}
    own = rules or {}

    def rule(node: Node, args: Sequence[Node]) -> Node | None:
        given = [Batched(arg, old in whole) for old, arg in zip(node.args, args, strict=True)]
        if not any(arg.whole for arg in given):
            return None
        whole.add(node)
        return (own.get(node.op) or _rule(node))(node, given, size)

    new = rewrite(graph, outputs, {node: one.node for node, one in inputs.items()}, rule)
    return [Batched(new[node], node in whole) for node in outputs]


def widened(arg: Batched, size: Dim) -> Node:
    """The node with the axis in front, repeated where it has none."""
    if arg.whole:
        return arg.node
    return arg.node.graph.expand(arg.node, (size, *arg.node.shape))


def moved(node: Node, source: int, target: int) -> Node:
    """The node with one axis put at another place."""
    order = [axis for axis in range(node.rank) if axis != source]
    order.insert(target, source)
    return node if source == target else apply("permute", node, axes=tuple(order))


def _rule(node: Node) -> Rule:
    rule = _RULES.get(node.op) or _KINDS.get(get(node.op).kind)
    if rule is None:
        raise UnsupportedOpError(
            f"vmap has no batching rule for {node.op!r}", location=node.location,
            hint="compute it outside of vmap, or one after the other and stack",
        )  # fmt: skip
    return rule


# -- rules


def _in_front(node: Node, args: Sequence[Batched], size: Dim) -> Node:
    """Ops that treat leading axes alike: elementwise ones, and matrices."""
    return apply(node.op, *(widened(arg, size) for arg in args), **node.attributes)


def _along_axes(node: Node, args: Sequence[Batched], size: Dim) -> Node:
    """Ops that run over axes that an attribute counts."""
    attributes = dict(node.attributes)
    for name in ("axis", "axes"):
        if name in attributes:
            value = attributes[name]
            several = isinstance(value, tuple)
            attributes[name] = tuple(axis + 1 for axis in value) if several else value + 1
    return apply(node.op, *(widened(arg, size) for arg in args), **attributes)


def _permute(node: Node, args: Sequence[Batched], size: Dim) -> Node:
    axes = tuple(axis + 1 for axis in node.attributes["axes"])
    return apply("permute", args[0].node, axes=(0, *axes))


def _reshape(node: Node, args: Sequence[Batched], size: Dim) -> Node:
    return apply("reshape", args[0].node, shape=(size, *node.shape))


def _expand(node: Node, args: Sequence[Batched], size: Dim) -> Node:
    (arg,) = args
    added = node.rank - (arg.node.rank - 1)
    whole = arg.node
    if added:
        ones = (Dim.of(1),) * added
        whole = apply("reshape", whole, shape=(size, *ones, *whole.shape[1:]))
    return whole.graph.expand(whole, (size, *node.shape))


def _slice(node: Node, args: Sequence[Batched], size: Dim) -> Node:
    starts, steps = (0, *node.attributes["starts"]), (1, *node.attributes["steps"])
    sizes = (size, *node.shape)
    return apply("slice", args[0].node, starts=starts, steps=steps, sizes=sizes)


def _unslice(node: Node, args: Sequence[Batched], size: Dim) -> Node:
    starts, steps = (0, *node.attributes["starts"]), (1, *node.attributes["steps"])
    shape = (size, *node.shape)
    return apply("unslice", args[0].node, shape=shape, starts=starts, steps=steps)


def _einsum(node: Node, args: Sequence[Batched], size: Dim) -> Node:
    words = parse(node.attributes["spec"])
    letter = next(letter for letter in _LETTERS if letter not in "".join(words))
    left, right = (
        letter + word if arg.whole else word for word, arg in zip(words, args, strict=False)
    )
    return apply("einsum", *(arg.node for arg in args), spec=f"{left},{right}->{letter}{words[2]}")


def _index(node: Node, args: Sequence[Batched], size: Dim) -> Node:
    whole, *places = args
    count = len(places)
    if not any(place.whole for place in places):
        # The axis is moved behind those that are indexed, and to the front of the result.
        behind = moved(whole.node, 0, count)
        found = apply("index", behind, *(place.node for place in places))
        return moved(found, places[0].node.rank, 0)
    wide = [widened(place, size) for place in places]
    if whole.whole:
        wide = [_batch_places(wide[0], size), *wide]
    return apply("index", whole.node, *wide)


def _index_add(node: Node, args: Sequence[Batched], size: Dim) -> Node:
    part, *places = args
    count, shape = len(places), tuple(map(Dim.of, node.attributes["shape"]))
    if not any(place.whole for place in places):
        behind = moved(part.node, 0, places[0].node.rank)
        found = apply(
            "index_add", behind, *(place.node for place in places),
            shape=(*shape[:count], size, *shape[count:]),
        )  # fmt: skip
        return moved(found, count, 0)
    wide = [widened(place, size) for place in places]
    places_of_batch = _batch_places(wide[0], size)
    given = widened(part, size)
    return apply("index_add", given, places_of_batch, *wide, shape=(size, *shape))


def _batch_places(like: Node, size: Dim) -> Node:
    """The number of the batch's element, in the shape of index tensors."""
    graph = like.graph
    ramp = graph.apply("iota", length=size)
    ones = (Dim.of(1),) * (like.rank - 1)
    return graph.expand(apply("reshape", ramp, shape=(size, *ones)) if ones else ramp, like.shape)


_KINDS: dict[str, Rule] = {
    "elementwise": _in_front, "linalg": _in_front, "reduction": _along_axes,
}  # fmt: skip
_RULES: dict[str, Rule] = {
    "concat": _along_axes, "diagonal": _along_axes, "permute": _permute, "reshape": _reshape,
    "expand": _expand, "slice": _slice, "unslice": _unslice, "einsum": _einsum, "index": _index,
    "index_add": _index_add, "detach": _in_front,
}  # fmt: skip
"""By op; by its kind otherwise."""
