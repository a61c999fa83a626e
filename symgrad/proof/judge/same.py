"""Is a node, wherever it is defined, the same real number as another one?

In: two nodes of one graph.  Out: yes, or that it was not shown.

What both are computed from stands for itself, and the shift of a sum of exponentials is any number:
so derivatives, for which it is a constant, are the same as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from symgrad.budgets import FIRST_NORMAL_FORM_WORK
from symgrad.index.lower import Lowering
from symgrad.ir.expr import Call, Expr, postorder
from symgrad.ir.graph import Node, ancestors
from symgrad.ops.record import get
from symgrad.proof.normal.algebra import is_positive, primitive
from symgrad.proof.normal.atoms import Undecided
from symgrad.proof.normal.context import EXACT, Proof
from symgrad.proof.normal.from_expr import Conversion
from symgrad.proof.normal.poly import Poly
from symgrad.proof.normal.rules import RULES
from symgrad.proof.normal.zero import is_zero

_DEMANDS = {"div": ("!=", 1), "reciprocal": ("!=", 0), "log": (">", 0)}
"""What the ops that may be put demand of an operand, and of which."""
_Demand = tuple[str, Poly]


def is_same(node: Node, other: Node) -> bool:
    """Is ``other`` what ``node`` is, and smooth, for all values of what both are computed from?"""
    if node.type != other.type:
        return False
    shifts = {one for one in ancestors([node, other]) if one.op == "shift"}
    return any(
        all(_is_smooth(one) for one in _above(border, node, other))
        and all(_is_told(one) for one in _above(border, other))
        and _is_equal(node, other, border)
        for border in (shifts | _border(node, other), shifts)
    )


def _is_equal(node: Node, other: Node, border: Collection[Node]) -> bool:
    """Is it so for all values of ``border``?"""
    lowering = Lowering(node.graph, border)
    place = lowering.home(node)
    left, right = lowering.element(node, place), lowering.element(other, place)
    context = Proof(RULES, budget=FIRST_NORMAL_FORM_WORK, reading=EXACT)
    conversion = Conversion(context)
    try:
        wanted = conversion.poly(left)
        met = _relied_on(context) | set(_demands(conversion, left))
        if not is_zero(context, wanted - conversion.poly(right)).is_zero:
            return False
        return met >= _relied_on(context) | set(_demands(conversion, right))
    except Undecided:
        return False


def _relied_on(context: Proof) -> set[_Demand]:
    """What the rules that were applied need, but of divisors, which are demanded anyway."""
    if any(one.rule != "inverse" for one in context.obligations.values()):
        raise Undecided("it holds almost everywhere only")
    return {(one.relation, primitive(context, one.poly)) for one in context.requirements.values()}


def _demands(conversion: Conversion, expr: Expr) -> Iterator[_Demand]:
    """The signs that operands must have, of which it is not seen that they have them."""
    context = conversion.context
    for one in postorder([expr]):
        if isinstance(one, Call) and one.function in _DEMANDS:
            relation, place = _DEMANDS[one.function]
            operand = conversion.poly(one.operands[place])
            if is_positive(context, operand) or (
                relation == "!=" and is_positive(context, -operand)
            ):
                continue
            base = primitive(context, operand)
            if relation == "!=" and base.terms:
                base = max(base, -base, key=lambda poly: poly.terms[poly.lead])
            yield relation, base


def _border(node: Node, other: Node) -> set[Node]:
    """What both are computed from: what is below both, and read by what is below one."""
    left, right = set(ancestors([node])), set(ancestors([other]))
    shared = (left & right) - {node, other}
    read = {arg for one in (left | right) - shared for arg in one.args}
    return {one for one in shared & read if _varies(one)}


def _above(border: Collection[Node], *nodes: Node) -> list[Node]:
    """What is computed from ``border``."""
    return [one for one in ancestors(nodes, stop=border) if one not in border]


def _varies(node: Node) -> bool:
    """Is it no number?"""
    while node.op == "expand":
        (node,) = node.args
    return node.op != "constant"


def _is_smooth(node: Node) -> bool:
    """Does it have a derivative wherever it is defined?"""
    op = get(node.op)
    if op.scalar is not None:
        return (
            all(one.dtype.is_float for one in (node, *node.args))
            and op.vjp is not None and not op.scalar.kinks
        )  # fmt: skip
    return op.kind in ("movement", "source") or node.op == "sum"


def _is_told(node: Node) -> bool:
    """Is it defined everywhere, or is it known where?"""
    scalar = get(node.op).scalar
    return scalar is None or not scalar.domain or node.op in _DEMANDS
