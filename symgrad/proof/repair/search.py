"""Small changes of a hand-written gradient that make its numbers right.

In: a ``Subject``, a wrong gradient, points to try on.  Out: ``Fix`` records, likeliest first.

First the whole gradient is changed (shape, factor, sign, transposition), then one of its terms,
then one node inside it.  A variant of a node is first tried in doubles at one point (``Probe``); a
graph is built only for a variant that fits there.  Nothing here is trusted: a fix is offered only
after it is proved.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np

from symgrad.budgets import (
    FACTOR_DEPTH,
    REPAIR_TERMS,
    VARIANTS_BUILT,
    VARIED_FACTORS,
    VARIED_NODES,
    VARIED_SPREADS,
)
from symgrad.errors import SymgradError
from symgrad.ir.dim import Dim
from symgrad.ir.graph import Node, ancestors
from symgrad.ir.rewrite import rewrite
from symgrad.ops.movement import bare, transposed_axes
from symgrad.proof.oracle.numbers import Array
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.repair.probe import Probe
from symgrad.proof.repair.trials import Trials
from symgrad.proof.words.spelling import averaged


@dataclass(frozen=True)
class Fix:
    """A node with the right numbers, and what was wrong.

    ``blamed``: the nodes whose code is to be put for ``{}`` in the words.
    """

    node: Node
    words: str
    blamed: tuple[Node, ...] = ()


def attempt(make: Callable[[], Node | None]) -> Node | None:
    """What ``make`` makes; None where shapes or types do not fit."""
    try:
        return make()
    except (SymgradError, ValueError, TypeError):
        return None


def complexity(node: Node) -> int:
    """The number of operations and constants; a mean is one, expansions, -1, 0, 1, 2 are none."""
    count = 0
    for part in ancestors([node]):
        if part.op == "constant":
            count += part.attributes["value"].value not in (0, 1, 2, -1)
        elif part.op not in ("expand", "input"):
            mean = averaged(part, {})
            count += 1 if mean is None else -mean[2]
    return count


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
        yield from _checked(_transposed(returned), wanted, trials, "append .mT")
    for axes in _stretched(returned.shape, wanted):
        summed = graph.apply("sum", returned, axes=axes)
        kept = attempt(partial(graph.apply, "reshape", summed, shape=wanted))
        yield from _checked(kept, wanted, trials, f"append .sum({axes_text(axes)}, keepdim=True)")
    reshaped = attempt(lambda: graph.apply("reshape", returned, shape=wanted))
    yield from _checked(reshaped, wanted, trials, "reshape it to the input's shape")
    for spread in _spread_to(returned, wanted):
        yield from _checked(spread, wanted, trials, "broadcast it to the input's shape")


def _stretched(shape: Sequence[Dim], wanted: Sequence[Dim]) -> Iterator[tuple[int, ...]]:
    if len(shape) == len(wanted):
        axes = tuple(
            axis for axis, (have, want) in enumerate(zip(shape, wanted, strict=True))
            if want == 1 and have != 1
        )  # fmt: skip
        if axes:
            yield axes


def _spread_to(returned: Node, wanted: Sequence[Dim]) -> Iterator[Node]:
    """``returned`` with new axes, expanded to the wanted shape."""
    missing = len(wanted) - returned.rank
    for axes in combinations(range(len(wanted)), missing) if missing > 0 else [()]:
        made = attempt(partial(_spread, returned, axes, wanted))
        if made is not None:
            yield made


def _spread(node: Node, axes: Sequence[int], wanted: Sequence[Dim]) -> Node:
    """A node with new axes, expanded to the wanted shape."""
    graph, shape = node.graph, _with_axes(node, axes, len(wanted))
    if node.shape != shape:
        node = graph.apply("reshape", node, shape=shape)
    return graph.expand(node, tuple(wanted))


def _with_axes(node: Node, axes: Sequence[int], rank: int) -> tuple[Dim, ...]:
    """The shape of a node with new axes of size 1, ``rank`` axes in all."""
    sizes = iter(node.shape)
    return tuple(Dim.of(1) if axis in axes else next(sizes) for axis in range(rank))


def _transposed(node: Node) -> Node:
    """A node with its last two axes exchanged."""
    return node.graph.apply("permute", node, axes=transposed_axes(node.rank))


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
        turned = _transposed(hand)
        if trials.node_is_true(turned):
            yield Fix(turned, "it is transposed")
    for axis in range(hand.rank):
        starts = tuple(size - 1 if a == axis else Dim.of(0) for a, size in enumerate(hand.shape))
        steps = tuple(-1 if a == axis else 1 for a in range(hand.rank))
        turned = hand.graph.apply("slice", hand, starts=starts, steps=steps, sizes=hand.shape)
        if trials.node_is_true(turned):
            yield Fix(turned, f"axis {axis} is reversed")


# -- one term


def _terms(hand: Node, trials: Trials) -> Iterator[Fix]:
    """A term with the wrong sign, or a superfluous one."""
    terms = _summands(hand)
    if not 1 < len(terms) <= REPAIR_TERMS:
        return
    for chosen in range(len(terms)):
        for sign, words in ((-1, "a term has the wrong sign"), (0, "there is an extra term")):
            kept = [
                (term, -own if at == chosen and sign else own)
                for at, (term, own) in enumerate(terms) if at != chosen or sign
            ]  # fmt: skip
            node = _total(kept)
            if node is not None and trials.node_is_true(node):
                yield Fix(node, words)


def _summands(node: Node) -> list[tuple[Node, int]]:
    """The terms of a sum with their signs."""
    found: list[tuple[Node, int]] = []
    todo = [(node, 1)]
    while todo and len(found) + len(todo) <= REPAIR_TERMS:
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


def without_dead_terms(node: Node, trials: Trials) -> Node | None:
    """A sum without the terms that are 0 at all points, alone or with one other.

    None where there are none of these.
    """
    terms = _summands(node)
    if not 1 < len(terms) <= REPAIR_TERMS:
        return None
    kept: list[tuple[Node, int]] = []
    for term, own in terms:
        if trials.is_zero(term):
            continue
        sums = ((one, _total([one, (term, own)])) for one in kept)
        other = next((one for one, both in sums if both and trials.is_zero(both)), None)
        if other is None:
            kept.append((term, own))
        else:
            kept.remove(other)
    return _total(kept) if 0 < len(kept) < len(terms) else None


def _total(terms: Sequence[tuple[Node, int]]) -> Node | None:
    total: Node | None = None
    for term, sign in sorted(terms, key=lambda item: -item[1]):
        if total is None:
            total = term if sign > 0 else -term
        else:
            total = total + term if sign > 0 else total - term
    return total


# -- one node of a gradient, or the whole of it, replaced by a variant


_SKIPPED = ("input", "constant", "size", "expand")


@dataclass(frozen=True)
class Variant:
    """``build`` makes the node; the first ``{}`` in ``words`` stands for the node it replaces."""

    build: Callable[[], Node | None]
    words: str
    named: tuple[Node, ...] = ()


@dataclass(frozen=True)
class Factor:
    """A size or a tensor, broadcast to a shape: its values, how to build its node, its name."""

    value: Array
    build: Callable[[], Node]
    words: str
    named: tuple[Node, ...] = ()


@dataclass(frozen=True)
class Factors:
    """All factors for one shape; ``rows`` are their values, flat."""

    every: tuple[Factor, ...]
    rows: Array


class Variations:
    """Tries variants of the nodes of one gradient."""

    def __init__(self, subject: Subject, root: Node, trials: Trials) -> None:
        self.subject, self.root, self.trials = subject, root, trials
        forward = set(subject.forward.nodes)
        order = [node for node in ancestors([root]) if node not in forward]
        inner = [node for node in order if node.op not in _SKIPPED]
        self.inner = inner[-VARIED_NODES:]
        self.probe = Probe(trials, root, [node for node in order if node.op != "input"])
        self._factors: dict[tuple[Dim, ...], Factors] = {}
        self._left = VARIANTS_BUILT

    def of_whole(self) -> Iterator[Fix]:
        """Variants of the whole gradient."""
        yield from self._of([self.root], whole=True)

    def of_nodes(self) -> Iterator[Fix]:
        """Variants of one node inside."""
        yield from self._of(self.inner, whole=False)

    def _of(self, nodes: Sequence[Node], *, whole: bool) -> Iterator[Fix]:
        for node in nodes:
            for variant in self._fitting(node, whole):
                if self._left == 0:
                    return
                self._left -= 1
                new = attempt(variant.build)
                made = None if new is None else self._rebuilt(node, new)
                if made is not None and self.trials.node_is_true(made):
                    blamed = () if whole else (node,)
                    yield Fix(made, variant.words, (*blamed, *variant.named))

    def _rebuilt(self, node: Node, new: Node) -> Node | None:
        """The gradient with one node replaced; its readers lose the user's names."""
        if node is self.root:
            return new
        if new.type != node.type:
            return None
        graph = node.graph
        return attempt(lambda: rewrite(graph, [self.root], {node: new}, named=False)[self.root])

    def _fitting(self, node: Node, whole: bool) -> Iterator[Variant]:
        if not node.dtype.is_float:
            return
        own = self.probe.values[node]
        for number, words in _NUMBERS if whole else _INNER_NUMBERS:
            if self._fits(node, own * number):
                yield Variant(partial(_times, node, number), words)
        if not whole:
            yield from self._other_operations(node)
        if node.rank <= FACTOR_DEPTH:
            yield from self._by_factors(node, whole)

    def _fits(self, node: Node, value: Array) -> bool:
        if self.probe.knows(node):
            return self.probe.fits(node, value)
        return self.trials.fits_at_first(self.root, node, value)

    def _other_operations(self, node: Node) -> Iterator[Variant]:
        for made, words in [*_other_operation(node), *_other_axes(node)]:
            value = None if made is None else self.trials.local_value(made)
            if made is not None and value is not None and self._fits(node, value):
                yield Variant(partial(_times, made, 1.0), words)

    # -- factors

    def _by_factors(self, node: Node, whole: bool) -> Iterator[Variant]:
        factors = self._factors_for(node)
        if not factors.every:
            return
        bases: list[tuple[Node, bool]] = [(node, False)]
        if node.op == "mul" and not whole:
            bases += [(arg, True) for arg in node.args if arg.shape == node.shape]
        for base, instead in bases:
            for row in self._fitting_rows(node, base, factors.rows):
                yield _with_factor(node, base, factors.every[row], instead, False, whole)
            if not instead:
                with np.errstate(all="ignore"):
                    inverse = np.where(factors.rows == 0, np.nan, 1 / factors.rows)
                for row in self._fitting_rows(node, base, inverse):
                    yield _with_factor(node, base, factors.every[row], False, True, whole)

    def _fitting_rows(self, node: Node, base: Node, rows: Array) -> list[int]:
        value = self.probe.values[base]
        if self.probe.knows(node):
            return self.probe.fitting(node, value, rows)
        with np.errstate(all="ignore"):
            return [
                number for number, row in enumerate(rows)
                if self.trials.fits_at_first(self.root, node, value * row.reshape(value.shape))
            ]  # fmt: skip

    def _factors_for(self, like: Node) -> Factors:
        if like.shape not in self._factors:
            shape = self.probe.values[like].shape
            every = tuple(self._all_factors(like, shape))
            rows = np.array([factor.value.ravel() for factor in every]).reshape(
                len(every), math.prod(shape)
            )
            self._factors[like.shape] = Factors(every, rows)
        return self._factors[like.shape]

    def _all_factors(self, like: Node, shape: tuple[int, ...]) -> Iterator[Factor]:
        """Sizes and known tensors at the shape of ``like``."""
        at = self.trials.points[0]
        symbols = sorted({n for size in self.subject.sampler.shapes for n in size.sizes})
        for symbol in symbols:
            size, number = Dim.size(symbol), float(at.point.sizes[symbol])
            build = partial(_size_like, size, like)
            yield Factor(np.full(shape, number), build, f"the size {symbol}")
            yield Factor(
                np.full(shape, number**0.5),
                partial(_root_of, build),
                f"the square root of the size {symbol}",
            )
        for node in self._known():
            for axes in _spreads(node, like):
                value = np.expand_dims(self.probe.values[node], axes)
                yield Factor(
                    np.broadcast_to(value, shape),
                    partial(_like, node, axes, like), "{}", (node,),
                )  # fmt: skip

    def _known(self) -> list[Node]:
        """The float tensors that backward can name, saved ones first."""
        subject = self.subject
        cotangents = [cotangent for _, cotangent in subject.outputs]
        named = [node for node in subject.everything.nodes if node.name]
        every = [*cotangents, *subject.saved, *subject.inputs, *named]
        floats = [node for node in dict.fromkeys(every) if node.dtype.is_float]
        return [node for node in floats if node in self.probe.values][:VARIED_FACTORS]


def _with_factor(
    node: Node, base: Node, factor: Factor, instead: bool, divides: bool, whole: bool
) -> Variant:
    """``instead``: of another factor.  ``whole``: ``node`` is the gradient itself."""
    if instead:
        words = f"inside, one factor of {{}} should be {factor.words}"
        return Variant(lambda: factor.build() * base, words, factor.named)
    if divides:
        return _divided(base, factor, whole)
    words = f"a factor is missing: multiply by {factor.words}"
    if not whole:
        words = f"inside, a factor is missing: multiply {{}} by {factor.words}"
    return Variant(lambda: base * factor.build(), words, factor.named)


def _divided(base: Node, factor: Factor, whole: bool) -> Variant:
    """A node without a factor: left out where it stands there, divided by it elsewhere."""
    left = attempt(lambda: _without_factor(base, bare(factor.build())))
    if left is not None:
        where = "" if whole else " in {}"
        words = f"there is an extra factor{where}: leave out {factor.words}"
        return Variant(lambda: left, words, factor.named)
    quotient = attempt(lambda: base / factor.build())
    if quotient is not None and averaged(quotient, {}) is not None:
        return Variant(lambda: quotient, f"{'it' if whole else '{}'} should be a mean, not a sum")
    words = f"there is an extra factor: divide by {factor.words}"
    if not whole:
        words = f"inside, there is an extra factor: divide {{}} by {factor.words}"
    return Variant(lambda: quotient, words, factor.named)


def _without_factor(node: Node, factor: Node) -> Node | None:
    """A product, in the same shape, without one factor; None where that is none of its factors."""
    if node.op == "neg":
        inner = _without_factor(node.args[0], factor)
        return None if inner is None else -inner
    if node.op not in ("mul", "div"):
        return None
    left, right = node.args
    if node.op == "mul":
        for one, other in ((left, right), (right, left)):
            if bare(one) is factor and other.shape == node.shape:
                return other
    inner = _without_factor(left, factor)
    if inner is not None:
        return node.graph.apply(node.op, inner, right)
    inner = _without_factor(right, factor) if node.op == "mul" else None
    return None if inner is None else node.graph.apply("mul", left, inner)


def _times(node: Node, number: float) -> Node:
    if number == -1.0:
        return node.args[0] if node.op == "neg" else -node
    return node if number == 1.0 else node * number


def _size_like(size: Dim, like: Node) -> Node:
    return like.graph.expand(like.graph.size(size, like.dtype), like.shape)


def _root_of(build: Callable[[], Node]) -> Node:
    node = build()
    return node.graph.apply("sqrt", node)


def _spreads(node: Node, like: Node) -> Iterator[tuple[int, ...]]:
    """The axes to insert into ``node`` so that it can be broadcast to the shape of ``like``."""
    missing = like.rank - node.rank
    if missing < 0:
        return
    for axes in list(combinations(range(like.rank), missing))[:VARIED_SPREADS]:
        shape = _with_axes(node, axes, like.rank)
        if all(size in (1, full) for size, full in zip(shape, like.shape, strict=True)):
            yield axes


def _like(node: Node, axes: tuple[int, ...], like: Node) -> Node:
    """A node with new axes, in the shape and dtype of another."""
    if node.dtype != like.dtype:
        node = node.graph.apply("cast", node, dtype=like.dtype)
    return _spread(node, axes, like.shape)


_NUMBERS = (
    (-1.0, "the sign is wrong"), (2.0, "a factor 2 is missing"), (0.5, "it is twice too large"),
    (-2.0, "a factor -2 is missing"), (-0.5, "it is -2 times too large"),
    (3.0, "a factor 3 is missing"), (4.0, "a factor 4 is missing"),
    (0.25, "it is four times too large"),
)  # fmt: skip
_INNER_NUMBERS = (
    (-1.0, "the sign of {} is wrong"), (2.0, "{} is off by a factor 0.5"),
    (0.5, "{} is off by a factor 2"),
)  # fmt: skip
_CONTRARY = {"add": "sub", "sub": "add", "mul": "div", "div": "mul"}
_SIGNS = {"add": "`+`", "sub": "`-`", "mul": "`*`", "div": "`/`"}
_UNARY = frozenset(
    ("exp", "log", "tanh", "sigmoid", "sqrt", "square", "sin", "cos", "abs", "relu",
     "reciprocal", "rsqrt")
)  # fmt: skip


def _other_operation(node: Node) -> Iterator[tuple[Node | None, str]]:
    graph = node.graph
    if node.op in ("sub", "div"):
        yield graph.apply(node.op, *node.args[::-1]), "the operands of {} are exchanged"
    if node.op in _CONTRARY:
        other = _CONTRARY[node.op]
        words = f"in {{}}, {_SIGNS[node.op]} should be {_SIGNS[other]}"
        yield graph.apply(other, *node.args), words
        for arg in node.args:
            yield arg, _superfluous(node, arg)
    if node.op == "div":
        squared = graph.apply("div", node.args[0], graph.apply("square", node.args[1]))
        yield squared, "the divisor in {} should be squared"
    if node.op in _UNARY:
        yield node.args[0], f"in {{}}, `{node.op}` is applied once too often"


def _superfluous(node: Node, kept: Node) -> str:
    """What to say where one operand alone is right."""
    mean = averaged(node, {})
    if mean is not None and kept is node.args[0]:
        return "{} should be a sum, not a mean"
    if node.op == "div":
        return "{} should not be a quotient"
    return "{} has an extra factor" if node.op == "mul" else "{} has an extra term"


def _other_axes(node: Node) -> Iterator[tuple[Node | None, str]]:
    if node.op != "sum":
        return
    (arg,) = node.args
    own = tuple(node.attributes["axes"])
    for axes in combinations(range(arg.rank), len(own)):
        if axes != own:
            made = node.graph.apply("sum", arg, axes=axes)
            if made.shape == node.shape:
                words = f"the sum in {{}} should run over {axes_text(axes)}, not {axes_text(own)}"
                yield made, words


def axes_text(axes: tuple[int, ...]) -> str:
    """Axes as an argument: ``1`` or ``(0, 2)``."""
    return str(axes[0]) if len(axes) == 1 else f"({', '.join(map(str, axes))})"
