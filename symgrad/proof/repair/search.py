"""Small changes of a hand-written gradient that make its numbers right.

In: a ``Subject``, a wrong gradient, points to try on.  Out: ``Fix`` records, likeliest first.

First the whole gradient is changed (shape, factor, sign, transposition), then one of its terms,
then one node inside it.  Nothing here is trusted: a fix is offered once it is proved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations

from symgrad.ir.dim import Dim
from symgrad.ir.graph import Node
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.repair.fix import Fix, attempt
from symgrad.proof.repair.trials import Trials
from symgrad.proof.repair.variations import Variations, axes_text

# -- shapes


def shape_fixes(subject: Subject, name: str, returned: Node, trials: Trials) -> Iterator[Fix]:
    """A gradient of the wrong shape, summed, transposed or reshaped."""
    wanted = subject.by_name[name].shape
    graph = subject.graph
    extra = returned.rank - len(wanted)
    if extra > 0:
        for axes in combinations(range(returned.rank), extra):
            summed = attempt(partial(graph.apply, "sum", returned, axes=axes))
            yield from _checked(summed, wanted, trials, f"append .sum({axes_text(axes)})")
    if returned.rank == len(wanted) and returned.rank >= 2:
        order = (*range(returned.rank - 2), returned.rank - 1, returned.rank - 2)
        turned = graph.apply("permute", returned, axes=order)
        yield from _checked(turned, wanted, trials, "append .mT")
    for axes in _stretched(returned.shape, wanted):
        summed = graph.apply("sum", returned, axes=axes)
        kept = attempt(partial(graph.apply, "reshape", summed, shape=wanted))
        yield from _checked(kept, wanted, trials, f"append .sum({axes_text(axes)}, keepdim=True)")
    reshaped = attempt(lambda: graph.apply("reshape", returned, shape=wanted))
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
    missing = len(wanted) - returned.rank
    for axes in combinations(range(len(wanted)), missing) if missing > 0 else [()]:
        sizes = iter(returned.shape)
        shape = tuple(
            Dim.of(1) if axis in axes else next(sizes) for axis in range(len(wanted))
        )  # fmt: skip
        made = attempt(partial(_expanded, returned, shape, tuple(wanted)))
        if made is not None:
            yield made


def _expanded(node: Node, shape: Sequence[Dim], wanted: tuple[Dim, ...]) -> Node:
    return node.graph.expand(_reshaped(node, shape), wanted)


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
    variations = Variations(subject, hand, trials)
    yield from variations.of_whole()
    yield from _moved(hand, trials)
    yield from _terms(hand, trials)
    yield from variations.of_nodes()


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
