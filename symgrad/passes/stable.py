"""Forms that are finite where the true value is: ``log(1 + exp(x))`` overflows, softplus does not.

In: a node whose arguments are in such forms.  Out: a node of the same value over the reals.

The rules are the table ``RULES``.  The bits are others, so that each replacement has to be proved
(``proof.judge.same``) before it is made.  What is put has a derivative wherever the true value has
one, so that derivatives are taken of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, permutations
from typing import Any

import numpy as np

from symgrad.ir.dim import Dim
from symgrad.ir.graph import Node, ancestors
from symgrad.ops.record import apply
from symgrad.passes.rules import number, simplest

CAUSES = frozenset(("exp", "expm1", "sigmoid", "tanh", "cosh"))
"""The ops without which no rule applies."""
DEEPEST, MOST_FACTORS = 24, 64
"""How many products in each other are looked through, and how many factors are looked at."""
_TELLING = ("exp", "expm1", "sigmoid", "sinh", "cosh", "add", "sub", "sum")
"""The ops of factors that rules are about."""
_MOVES = ("expand", "reshape")
_PRODUCTS = ("mul", "div", "neg", "square", "reciprocal", *_MOVES)
_Replaced = dict[tuple[Node, bool], Node]
"""What stands for factors, by where they are: above or below."""


@dataclass(frozen=True)
class Factor:
    """A node that a product has as a factor, or is divided by.

    ``path``: how it is moved on the way to the product, the last move first.
    """

    node: Node
    above: bool
    path: tuple[Node, ...]


class Forms:
    """Finds stable forms.

    ``admits``: may the second node be put for the first?  ``steps``: what was put for what.
    """

    def __init__(self, admits: Callable[[Node, Node], bool]) -> None:
        self._admits = admits
        self._readers: Mapping[Node, int] = {}
        self._steady: dict[Node, Node] = {}
        self.steps: dict[Node, Node] = {}

    def __call__(self, node: Node, readers: Mapping[Node, int]) -> Node:
        """What is put for a simple node of stable arguments; ``readers``: how many read a node."""
        if node in self.steps:
            return self.steps[node]
        self._readers = readers
        found = self.steady(node)
        if found is not node and not self._admits(node, found):
            found = self._steady[node] = node
        if found is not node:
            self.steps[node] = found
        return found

    def build(self, op: str, *args: Node, **attributes: Any) -> Node:
        """A new node, in its stable form."""
        return self.steady(simplest(apply(op, *args, **attributes)))

    def steady(self, node: Node) -> Node:
        """Its stable form by the rules."""
        found = self._steady.get(node)
        if found is None:
            found = self._steady[node] = self._made(node)
        return found

    def _made(self, node: Node) -> Node:
        for rule in RULES.get(node.op, ()) if node.dtype.is_float else ():
            found = rule(self, node)
            if found is not None and found.type == node.type:
                return found
        return node

    def of(self, node: Node, *ops: str) -> Node | None:
        """The argument of a node that is one of ``ops``, of one argument."""
        return node.args[0] if node.op in ops else None

    def operands(self, node: Node, op: str) -> Sequence[Node]:
        """The arguments of a node that is ``op``."""
        return node.args if node.op == op else ()

    def alone(self, *nodes: Node) -> bool:
        """Has each one reader?  Then what replaces this one costs no function call more."""
        return all(self._readers.get(node, 0) <= 1 for node in nodes)

    # -- patterns

    def exponentials(self, node: Node) -> tuple[Node | None, Node | None] | None:
        """``x`` and ``y`` of ``exp(x) + exp(y)``; None stands for 0, whose exponential is 1.

        A positive number is the exponential of its logarithm.
        """
        pair = self.operands(node, "add")
        return self._of_exponentials(pair) if pair else None

    def difference(self, node: Node) -> tuple[Node | None, Node | None] | None:
        """``x`` and ``y`` of ``exp(x) - exp(y)``."""
        if (x := self.of(node, "expm1")) is not None:
            return x, None
        pair = self.operands(node, "sub")
        return self._of_exponentials(pair) if pair else None

    def _of_exponentials(self, pair: Sequence[Node]) -> tuple[Node | None, Node | None] | None:
        if all(number(one) is not None for one in pair):
            return None
        first, second = (self._logarithm(one) for one in pair)
        if first is pair[0] or second is pair[1]:
            return None
        return first, second

    def _logarithm(self, node: Node) -> Node | None:
        """``x`` of ``exp(x)``, None for 1; the node itself where it is neither."""
        value = number(node)
        if value is None:
            return self.of(node, "exp") or node
        if value == 1:
            return None
        return apply("log", node) if value > 0 else node

    def less(self, x: Node | None, y: Node | None) -> Node:
        """``x - y``, where None is 0."""
        if x is None:
            assert y is not None
            return self.build("neg", y)
        return x if y is None else self.build("sub", x, y)

    def complement(self, node: Node) -> Node | None:
        """``x`` of ``1 - x``."""
        pair = self.operands(node, "sub")
        return pair[1] if pair and _is_one(pair[0]) else None

    def factors(self, node: Node) -> list[Factor]:
        """The factors of a product that rules are about."""
        found = islice(self._factors(node), MOST_FACTORS)
        return [one for one in found if one.node.op in _TELLING]

    def _factors(
        self, node: Node, above: bool = True, path: tuple[Node, ...] = (), depth: int = 0
    ) -> Iterator[Factor]:
        yield Factor(node, above, path)
        if node.op not in _PRODUCTS or depth == DEEPEST:
            return
        if node.op in _MOVES:
            path = (*path, node)
        for place, arg in enumerate(node.args):
            yield from self._factors(arg, above == _is_above(node, place), path, depth + 1)

    def put(self, node: Node, replaced: _Replaced, above: bool = True, depth: int = 0) -> Node:
        """A product with other factors.  Each is replaced once, and then taken out of the table."""
        if (node, above) in replaced:
            return replaced.pop((node, above))
        if not replaced or node.op not in _PRODUCTS or depth == DEEPEST:
            return node
        args = [
            self.put(arg, replaced, above == _is_above(node, place), depth + 1)
            for place, arg in enumerate(node.args)
        ]
        if node.op == "square" and args != [*node.args]:
            return self.build("mul", *args, *node.args)
        return self._rebuilt(node, *args)

    def _rebuilt(self, node: Node, *args: Node) -> Node:
        if args == node.args:
            return node
        if node.op == "reciprocal" and _is_one(args[0]):
            return args[0]
        return self.build(node.op, *args, **node.attributes)

    def sum_of_exponentials(self, node: Node) -> Node | None:
        """``x`` of ``sum(exp(x)*y)`` that is not shifted by the greatest ``x`` yet."""
        inner = self.of(node, "sum")
        if inner is None:
            return None
        found = (one.node for one in self.factors(inner) if one.above and not one.path)
        x = next((one.args[0] for one in found if one.op == "exp"), None)
        return None if x is None or _is_shifted(x) else x

    def shift(self, total: Node, x: Node) -> tuple[Node, Node]:
        """The greatest ``x`` of a sum, as a finite number, and ``exp(x)`` shifted by it."""
        axes = total.attributes["axes"]
        greatest = apply("amax", x, axes=axes)
        end = float(np.finfo(str(x.dtype)).max)
        for op, value in (("minimum", end), ("maximum", -end)):
            greatest = x.graph.binary(op, greatest, value)
        shift = apply("shift", greatest)
        kept = tuple(Dim.of(1) if axis in axes else size for axis, size in enumerate(x.shape))
        wide = x.graph.expand(apply("reshape", shift, shape=kept), x.shape)
        return shift, apply("exp", x - wide)

    def shifted(self, node: Node, x: Node, exp: Node) -> Node:
        """``exp(x)`` or ``sum(exp(x)*y)`` with ``exp`` for ``exp(x)``."""
        if node.op == "exp":
            return exp
        (inner,) = node.args
        return apply("sum", self.put(inner, {(apply("exp", x), True): exp}), **node.attributes)


Rule = Callable[[Forms, Node], "Node | None"]


# -- logarithms


def _log1p(forms: Forms, node: Node) -> Node | None:
    """``log1p(exp(x))``, ``log1p(-sigmoid(x))``."""
    (arg,) = node.args
    if (x := forms.of(arg, "exp")) is not None:
        return forms.build("softplus", x)
    inner = forms.of(arg, "neg")
    x = None if inner is None else forms.of(inner, "sigmoid")
    return None if x is None else forms.build("log_sigmoid", forms.build("neg", x))


def _log(forms: Forms, node: Node) -> Node | None:
    """Of ``1 + exp(x)``, ``exp(x) + exp(y)``, ``sigmoid(x)`` and ``1 - sigmoid(x)``."""
    (arg,) = node.args
    if (found := forms.exponentials(arg)) is not None:
        x, y = found
        if x is not None and y is not None:
            return forms.build("logaddexp", x, y)
        return forms.build("softplus", next(one for one in found if one is not None))
    if (x := forms.of(arg, "sigmoid")) is not None:
        return forms.build("log_sigmoid", x)
    inner = forms.complement(arg)
    if inner is not None and (x := forms.of(inner, "sigmoid")) is not None:
        return forms.build("log_sigmoid", forms.build("neg", x))
    return None


def _log_of_product(forms: Forms, node: Node) -> Node | None:
    """``log(exp(x)*y)`` is ``x + log(y)``; ``log(sum(exp(x)))`` is that of the shifted sum."""
    (arg,) = node.args
    for one in forms.factors(arg):
        x = None if one.path else forms.of(one.node, "exp")
        if x is not None:
            rest = forms.put(arg, {(one.node, one.above): _ones(one.node)})
            x = x if one.above else forms.build("neg", x)
            return x if _is_one(rest) else forms.build("add", x, forms.build("log", rest))
        x = forms.sum_of_exponentials(one.node)
        if x is not None:
            shift, exp = forms.shift(one.node, x)
            total = forms.shifted(one.node, x, exp)
            rest = forms.build("log", forms.put(arg, {(one.node, one.above): total}))
            for move in reversed(one.path):
                shift = apply(move.op, shift, **move.attributes)
            return forms.build("add" if one.above else "sub", rest, shift)
    return None


def _log_of_excess(forms: Forms, node: Node) -> Node | None:
    """``log(exp(x) - 1)`` is ``x + log(-expm1(-x))``."""
    x = forms.of(node.args[0], "expm1")
    if x is None:
        return None
    rest = forms.build("neg", forms.build("expm1", forms.build("neg", x)))
    return forms.build("add", x, forms.build("log", rest))


def _log_of_cosh(forms: Forms, node: Node) -> Node | None:
    """``log(cosh(x))`` is ``logaddexp(x, -x) - log(2)``."""
    x = forms.of(node.args[0], "cosh")
    if x is None:
        return None
    two = apply("log", x.graph.lift(2.0, x))
    return forms.build("sub", forms.build("logaddexp", x, forms.build("neg", x)), two)


def _log_of_reciprocal(forms: Forms, node: Node) -> Node | None:
    inner = forms.of(node.args[0], "reciprocal")
    return None if inner is None else forms.build("neg", forms.build("log", inner))


# -- quotients


def _quotient(forms: Forms, node: Node) -> Node | None:
    """A factor and what it is divided by, as one factor: ``_PAIRS``, and shifted sums."""
    factors = forms.factors(node)
    above = [one for one in factors if one.above]
    below = [one for one in factors if not one.above]
    for one, other in permutations(above, 2):
        found = None if one.path or other.path else _share_of(forms, one.node, other.node)
        if found is not None:
            return forms.put(node, {(one.node, True): found, (other.node, True): _ones(other.node)})
    for one in above:
        for other in below:
            for pair in _PAIRS if not one.path and not other.path else ():
                found = pair(forms, one.node, other.node)
                if found is not None:
                    return forms.put(
                        node, {(one.node, True): found, (other.node, False): _ones(other.node)}
                    )
            if (found := _shifted(forms, node, one, other)) is not None:
                return found
    return None


def _logistic(forms: Forms, node: Node) -> Node | None:
    """``1/(1 + exp(x))`` is ``sigmoid(-x)``."""
    pair = forms.exponentials(node.args[0])
    if pair is None or None not in pair:
        return None
    return forms.build("sigmoid", forms.less(None, pair[0] or pair[1]))


def _share_of(forms: Forms, one: Node, other: Node) -> Node | None:
    """``exp(x)*sigmoid(-x)`` is ``sigmoid(x)``."""
    x, y = forms.of(one, "exp"), forms.of(other, "sigmoid")
    if x is None or y is None or (forms.of(x, "neg") is not y and forms.of(y, "neg") is not x):
        return None
    return forms.build("sigmoid", x)


def _share(forms: Forms, above: Node, below: Node) -> Node | None:
    """``exp(x)/(exp(x) + exp(y))`` is ``sigmoid(x - y)``."""
    pair = forms.exponentials(below)
    if pair is None:
        return None
    x = None if _is_one(above) else forms.of(above, "exp")
    if x is None or x not in pair:
        return None
    return forms.build("sigmoid", forms.less(x, pair[1] if pair[0] is x else pair[0]))


def _tangent(forms: Forms, above: Node, below: Node) -> Node | None:
    """``(exp(x) - exp(y))/(exp(x) + exp(y))`` is ``tanh((x - y)/2)``, as is ``sinh/cosh``."""
    if above.op == "sinh" and forms.of(below, "cosh") is above.args[0]:
        return forms.build("tanh", above.args[0])
    pair = forms.exponentials(below)
    found = None if pair is None else forms.difference(above)
    if pair is None or found is None or set(pair) != set(found):
        return None
    gap = forms.less(*found)
    return forms.build("tanh", gap.graph.binary("mul", gap, 0.5))


def _bose(forms: Forms, above: Node, below: Node) -> Node | None:
    """``exp(x)/(exp(x) - 1)`` is ``-1/expm1(-x)``."""
    x = forms.of(below, "expm1")
    is_exp = forms.of(above, "exp") is x or (
        above.op == "add" and below in above.args and any(map(_is_one, above.args))
    )
    if x is None or not is_exp:
        return None
    return forms.build(
        "neg", forms.build("reciprocal", forms.build("expm1", forms.build("neg", x)))
    )


def _shifted(forms: Forms, node: Node, one: Factor, other: Factor) -> Node | None:
    """``exp(x)`` or ``sum(exp(x)*z)``, divided by ``sum(exp(x)*y)``: those of the shifted ``x``."""
    x = forms.sum_of_exponentials(other.node)
    if x is None or x not in (forms.of(one.node, "exp"), forms.sum_of_exponentials(one.node)):
        return None
    _, exp = forms.shift(other.node, x)
    above, below = (forms.shifted(each.node, x, exp) for each in (one, other))
    return forms.put(node, {(one.node, True): above, (other.node, False): below})


# -- what cancels, where nothing more is computed


def _less_sigmoid(forms: Forms, node: Node) -> Node | None:
    """``1 - sigmoid(x)`` is ``sigmoid(-x)``."""
    inner = forms.complement(node)
    x = None if inner is None or not forms.alone(inner) else forms.of(inner, "sigmoid")
    return None if x is None else forms.build("sigmoid", forms.build("neg", x))


def _less_exponential(forms: Forms, node: Node) -> Node | None:
    """``exp(x) - 1`` is ``expm1(x)``."""
    pair = forms.operands(node, "sub")
    if not pair or not _is_one(pair[1]) or not forms.alone(pair[0]):
        return None
    x = forms.of(pair[0], "exp")
    return None if x is None else forms.build("expm1", x)


def _less_tanh(forms: Forms, node: Node) -> Node | None:
    """``1 - tanh(x)**2`` is four times the slope of sigmoid at ``2*x``."""
    square = forms.complement(node)
    inner = None if square is None or not forms.alone(square) else forms.of(square, "square")
    x = None if inner is None or not forms.alone(inner) else forms.of(inner, "tanh")
    if x is None:
        return None
    slope = _slope(forms, x.graph.binary("mul", x, 2.0))
    return slope.graph.binary("mul", slope, 4.0)


def _beside_tanh(forms: Forms, node: Node) -> Node | None:
    """``1 + tanh(x)`` and ``1 - tanh(x)`` are ``2*sigmoid(2*x)`` and ``2*sigmoid(-2*x)``."""
    one, inner = node.args if node.op == "sub" or _is_one(node.args[0]) else node.args[::-1]
    x = forms.of(inner, "tanh") if _is_one(one) and forms.alone(inner) else None
    if x is None:
        return None
    twice = _scaled(x, -2.0 if node.op == "sub" else 2.0)
    return twice.graph.binary("mul", forms.build("sigmoid", twice), 2.0)


def _scaled(x: Node, factor: float) -> Node:
    """``x*factor``; of a product with a number, with one number."""
    other = number(x.args[1]) if x.op == "mul" else None
    if other is None:
        return x.graph.binary("mul", x, factor)
    return x.graph.binary("mul", x.args[0], factor * other)


def _slope(forms: Forms, x: Node) -> Node:
    """The derivative of sigmoid."""
    return apply("mul", forms.build("sigmoid", x), forms.build("sigmoid", forms.build("neg", x)))


def _less_softplus(forms: Forms, node: Node) -> Node | None:
    """``x - softplus(x)`` is ``log_sigmoid(x)``."""
    x, other = node.args
    if forms.of(other, "softplus") is x:
        return forms.build("log_sigmoid", x)
    if forms.of(x, "softplus") is other:
        return forms.build("softplus", forms.build("neg", other))
    return None


_PAIRS: tuple[Callable[[Forms, Node, Node], Node | None], ...] = (
    _share, _tangent, _bose,
)  # fmt: skip
RULES: dict[str, tuple[Rule, ...]] = {
    "log1p": (_log1p,),
    "log": (_log, _log_of_excess, _log_of_cosh, _log_of_product, _log_of_reciprocal),
    "mul": (_quotient,), "div": (_quotient,), "reciprocal": (_logistic,),
    "add": (_beside_tanh,),
    "sub": (_less_sigmoid, _less_exponential, _less_tanh, _beside_tanh, _less_softplus),
}  # fmt: skip
"""The rules by the op they apply to.  Each is an identity of the real numbers."""


def _is_above(node: Node, place: int) -> bool:
    """Is an argument of a product a factor, not what is divided by?"""
    return (node.op, place) not in (("div", 1), ("reciprocal", 0))


def _is_one(node: Node) -> bool:
    return number(node) == 1


def _ones(like: Node) -> Node:
    return like.graph.lift(1.0, like)


def _is_shifted(x: Node) -> bool:
    """Is it something less its greatest element?"""
    if x.op != "sub":
        return False
    start, shift = x.args
    return any(
        node.op in ("amax", "max") and node.args[0] is start
        for node in ancestors([shift], stop=[start])
    )
