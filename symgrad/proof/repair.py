"""Small changes of a hand-written gradient that make its numbers right.

In: a ``Subject``, a wrong gradient, points to try on.  Out: ``Fix`` records, likeliest first.
Imports: ``symgrad.errors``, ``symgrad.ir``, ``symgrad.proof``: ``rebuild``, ``subject``,
``trials``.

First the whole gradient is changed (shape, factor, sign, transposition), then one of its terms,
then one node inside it.  Nothing here is trusted: a fix is offered once it is proved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from symgrad.errors import SymgradError
from symgrad.ir.dim import Dim
from symgrad.ir.graph import Node, ancestors
from symgrad.proof.subject import Subject
from symgrad.proof.trials import Trials

MOST_NODES = 40
MOST_FACTORS = 24


@dataclass(frozen=True)
class Fix:
    """A node with the right numbers, and what was wrong.

    ``blamed``: the nodes whose code is to be put for ``{}`` in the words.
    """

    node: Node
    words: str
    blamed: tuple[Node, ...] = ()


# -- shapes


def shape_fixes(subject: Subject, name: str, returned: Node, trials: Trials) -> Iterator[Fix]:
    """A gradient of the wrong shape, summed, transposed or reshaped."""
    wanted = subject.by_name[name].shape
    graph = subject.graph
    extra = returned.rank - len(wanted)
    if extra > 0:
        for axes in combinations(range(returned.rank), extra):
            summed = _try(lambda axes=axes: graph.apply("sum", returned, axes=axes))
            yield from _checked(summed, wanted, trials, f"append .sum({_axes(axes)})")
    if returned.rank == len(wanted) and returned.rank >= 2:
        order = (*range(returned.rank - 2), returned.rank - 1, returned.rank - 2)
        turned = graph.apply("permute", returned, axes=order)
        yield from _checked(turned, wanted, trials, "append .mT")
    for axes in _stretched(returned.shape, wanted):
        summed = graph.apply("sum", returned, axes=axes)
        kept = _try(lambda summed=summed: graph.apply("reshape", summed, shape=wanted))
        yield from _checked(kept, wanted, trials, f"append .sum({_axes(axes)}, keepdim=True)")
    reshaped = _try(lambda: graph.apply("reshape", returned, shape=wanted))
    yield from _checked(reshaped, wanted, trials, "reshape it to the input's shape")
    for spread in _spread(returned, wanted):
        yield from _checked(spread, wanted, trials, "broadcast it to the input's shape")


def _stretched(shape: Sequence[Dim], wanted: Sequence[Dim]) -> Iterator[tuple[int, ...]]:
    if len(shape) == len(wanted):
        axes = tuple(
            axis for axis, (have, want) in enumerate(zip(shape, wanted, strict=True))
            if want == 1 and have != 1
        )  # fmt: skip
        if axes:
            yield axes


def _spread(returned: Node, wanted: Sequence[Dim]) -> Iterator[Node]:
    """``returned`` with new axes, expanded to the wanted shape."""
    graph = returned.graph
    missing = len(wanted) - returned.rank
    for axes in combinations(range(len(wanted)), missing) if missing > 0 else [()]:
        sizes = iter(returned.shape)
        shape = tuple(
            Dim.of(1) if axis in axes else next(sizes) for axis in range(len(wanted))
        )  # fmt: skip
        made = _try(lambda shape=shape: graph.expand(_reshaped(returned, shape), tuple(wanted)))
        if made is not None:
            yield made


def _reshaped(node: Node, shape: Sequence[Dim]) -> Node:
    wanted = tuple(shape)
    return node if node.shape == wanted else node.graph.apply("reshape", node, shape=wanted)


def _checked(node: Node | None, wanted: Sequence[Dim], trials: Trials, words: str) -> Iterator[Fix]:
    if node is not None and node.shape == tuple(wanted) and trials.node_is_true(node):
        yield Fix(node, f"the shape is not that of the input: {words}")


# -- the gradient as a whole


def fixes(subject: Subject, name: str, trials: Trials) -> Iterator[Fix]:
    """Changes of a gradient that make it right, likeliest first."""
    hand = subject.gradients[name]
    yield from _scaled(subject, hand, trials)
    yield from _moved(hand, trials)
    yield from _terms(hand, trials)
    yield from _inside(subject, hand, trials)


def _scaled(subject: Subject, hand: Node, trials: Trials) -> Iterator[Fix]:
    """A factor is missing or too many: a number, a size, or a tensor that backward knows."""
    for value, words in _NUMBERS:
        node = hand * value
        if trials.node_is_true(node):
            yield Fix(node if value != -1.0 else -hand, words)
    for factor, label, named in _factors(subject, hand):
        if trials.node_is_true(hand * factor):
            yield Fix(hand * factor, f"a factor is missing: multiply by {label}", named)
        if trials.node_is_true(hand / factor):
            yield Fix(hand / factor, f"a factor too many: divide by {label}", named)


_NUMBERS = (
    (-1.0, "the sign is wrong"), (2.0, "a factor 2 is missing"), (0.5, "it is twice too large"),
    (-2.0, "a factor -2 is missing"), (-0.5, "it is -2 times too large"),
    (3.0, "a factor 3 is missing"), (4.0, "a factor 4 is missing"),
    (0.25, "it is four times too large"),
)  # fmt: skip


def _factors(subject: Subject, like: Node) -> Iterator[tuple[Node, str, tuple[Node, ...]]]:
    """Sizes and known tensors, broadcast to the shape of ``like``, with words for them."""
    graph = subject.graph
    symbols = sorted({name for size in subject.sampler.shapes for name in size.sizes})
    for symbol in symbols:
        size = graph.expand(graph.size(Dim.size(symbol), like.dtype), like.shape)
        yield size, f"the size {symbol}", ()
        yield graph.apply("sqrt", size), f"the square root of the size {symbol}", ()
    seen: set[Node] = set()
    for node in _known(subject):
        for spread in _broadcasts(node, like):
            if spread not in seen and node is not like:
                seen.add(spread)
                yield spread, "{}", (node,)


def _known(subject: Subject) -> list[Node]:
    """The float tensors that backward can name, saved ones first."""
    cotangents = [cotangent for _, cotangent in subject.outputs]
    named = [node for node in subject.everything.nodes if node.name]
    every = [*cotangents, *subject.saved, *subject.inputs, *named]
    floats = [node for node in dict.fromkeys(every) if node.dtype.is_float]
    return floats[:MOST_FACTORS]


def _broadcasts(node: Node, like: Node) -> Iterator[Node]:
    """``node`` at the shape of ``like``: by the rule of operators, or with axes put in."""
    graph = node.graph
    missing = like.rank - node.rank
    if missing < 0:
        return
    if node.dtype != like.dtype:
        node = graph.apply("cast", node, dtype=like.dtype)
    for axes in list(combinations(range(like.rank), missing))[:6]:
        sizes = iter(node.shape)
        shape = [Dim.of(1) if axis in axes else next(sizes) for axis in range(like.rank)]
        if all(size in (1, full) for size, full in zip(shape, like.shape, strict=True)):
            made = _try(lambda shape=shape: graph.expand(_reshaped(node, shape), like.shape))
            if made is not None:
                yield made


def _moved(hand: Node, trials: Trials) -> Iterator[Fix]:
    if hand.rank >= 2 and hand.shape[-1] == hand.shape[-2]:
        order = (*range(hand.rank - 2), hand.rank - 1, hand.rank - 2)
        turned = hand.graph.apply("permute", hand, axes=order)
        if trials.node_is_true(turned):
            yield Fix(turned, "it is transposed")
    for axis in range(hand.rank):
        starts = tuple(size - 1 if a == axis else Dim.of(0) for a, size in enumerate(hand.shape))
        steps = tuple(-1 if a == axis else 1 for a in range(hand.rank))
        turned = hand.graph.apply("slice", hand, starts=starts, steps=steps, sizes=hand.shape)
        if trials.node_is_true(turned):
            yield Fix(turned, f"axis {axis} runs backwards")


# -- one term


def _terms(hand: Node, trials: Trials) -> Iterator[Fix]:
    """A term with the wrong sign, or one too many."""
    terms = _summands(hand)
    if not 1 < len(terms) <= 12:
        return
    for chosen in range(len(terms)):
        for sign, words in ((-1, "a term has the wrong sign"), (0, "a term is too many")):
            kept = [
                (term, -own if at == chosen and sign else own)
                for at, (term, own) in enumerate(terms) if at != chosen or sign
            ]  # fmt: skip
            node = _total(kept)
            if node is not None and trials.node_is_true(node):
                yield Fix(node, words)


def _summands(node: Node, sign: int = 1) -> list[tuple[Node, int]]:
    found: list[tuple[Node, int]] = []
    todo = [(node, sign)]
    while todo and len(found) + len(todo) <= 40:
        part, own = todo.pop()
        if part.op == "add":
            todo += [(part.args[1], own), (part.args[0], own)]
        elif part.op == "sub":
            todo += [(part.args[1], -own), (part.args[0], own)]
        elif part.op == "neg":
            todo.append((part.args[0], -own))
        else:
            found.append((part, own))
    return found + todo


def _total(terms: Sequence[tuple[Node, int]]) -> Node | None:
    ordered = sorted(terms, key=lambda item: -item[1])
    total: Node | None = None
    for term, sign in ordered:
        if total is None:
            total = term if sign > 0 else -term
        else:
            total = total + term if sign > 0 else total - term
    return total


# -- one node inside


def _inside(subject: Subject, hand: Node, trials: Trials) -> Iterator[Fix]:
    """One node of the backward replaced by a variant of itself."""
    forward = set(subject.forward.nodes)
    inner = [
        node for node in ancestors([hand])
        if node not in forward and node.op not in ("input", "constant", "size", "expand")
    ]  # fmt: skip
    for node in inner[-MOST_NODES:]:
        for variant, words, named in _variants(subject, node):
            made = _try(lambda n=node, v=variant: _replaced(hand, n, v))
            if made is not None and trials.node_is_true(made):
                yield Fix(made, words, (node, *named))


Variant = tuple[Node, str, tuple[Node, ...]]


def _variants(subject: Subject, node: Node) -> Iterator[Variant]:
    """Other nodes for one, with words in which the first ``{}`` stands for the node itself."""
    if node.dtype.is_float:
        yield -node, "the sign of {} is wrong", ()
        for value in (2.0, 0.5):
            yield node * value, f"{{}} is off by a factor {1 / value:g}", ()
        for made, words in _other_operation(node):
            yield made, words, ()
        if node.rank <= 4:
            yield from _other_factors(subject, node)
    if node.op == "sum":
        for made, words in _other_axes(node):
            yield made, words, ()


def _other_operation(node: Node) -> Iterator[tuple[Node, str]]:
    graph = node.graph
    if node.op in ("sub", "div"):
        yield graph.apply(node.op, *node.args[::-1]), "the operands of {} are exchanged"
    if node.op in _CONTRARY:
        other = _CONTRARY[node.op]
        yield (
            graph.apply(other, *node.args),
            f"in {{}}, {_VERBS[node.op]} should be {_VERBS[other]}",
        )
        for arg in node.args:
            yield arg, "an operand of {} is too many"
    if node.op in _UNARY:
        yield node.args[0], f"in {{}}, `{node.op}` is applied once too often"


def _other_factors(subject: Subject, node: Node) -> Iterator[Variant]:
    for factor, name, named in _factors(subject, node):
        yield node * factor, f"inside, a factor is missing: multiply {{}} by {name}", named
        yield node / factor, f"inside, a factor is too many: divide {{}} by {name}", named
        if node.op == "mul":
            for arg in node.args:
                yield factor * arg, f"inside, one factor of {{}} should be {name}", named


_VERBS = {"add": "`+`", "sub": "`-`", "mul": "`*`", "div": "`/`"}
_CONTRARY = {"add": "sub", "sub": "add", "mul": "div", "div": "mul"}
_UNARY = frozenset(
    ("exp", "log", "tanh", "sigmoid", "sqrt", "square", "sin", "cos", "abs", "relu",
     "reciprocal", "rsqrt")
)  # fmt: skip


def _other_axes(node: Node) -> Iterator[tuple[Node, str]]:
    (arg,) = node.args
    count = len(node.attributes["axes"])
    for axes in combinations(range(arg.rank), count):
        if axes != tuple(node.attributes["axes"]):
            made = node.graph.apply("sum", arg, axes=axes)
            if made.shape == node.shape:
                own = _axes(node.attributes["axes"])
                yield made, f"the sum in {{}} should run over {_axes(axes)}, not {own}"


def _replaced(root: Node, old: Node, new: Node) -> Node | None:
    """``root`` with ``old`` replaced by ``new``."""
    if new.shape != old.shape or new.dtype != old.dtype:
        return None
    made: dict[Node, Node] = {old: new}
    for node in ancestors([root], stop=[old]):
        if node is old:
            continue
        args = [made.get(arg, arg) for arg in node.args]
        if any(a is not b for a, b in zip(args, node.args, strict=True)):
            made[node] = node.graph.apply(node.op, *args, **node.attributes)
            made[node].location = made[node].location or node.location
    return made.get(root)


def _try(make: object) -> Node | None:
    assert callable(make)
    try:
        node = make()
    except (SymgradError, ValueError, TypeError):
        return None
    return node if isinstance(node, Node) else None


def _axes(axes: Sequence[int]) -> str:
    return str(axes[0]) if len(axes) == 1 else f"({', '.join(map(str, axes))})"
