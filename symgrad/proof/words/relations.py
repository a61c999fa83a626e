"""Relations between nodes as text, in the names of the user's source.

In: nodes and numbers.  Out: ``Said``: ``x > -3``, ``(x * x).sum(0) == 1``.

What is added to a side, or multiplies it, goes to the other side: ``x + 3 == 6`` is ``x == 3``.
So do increasing functions, and what cannot be 0 where something is: ``x / (x.abs() + 1) == 0`` is
``x == 0``, and ``x.sigmoid() > 0.5`` is ``x > 0``.
The text is in terms of the inputs, or of the locals of forward where that is long; the code is
in terms of the inputs, the sizes and the plain numbers alone, so that it can be evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from symgrad.budgets import LONGEST_CONDITION
from symgrad.errors import Location
from symgrad.ir.graph import Node, ancestors
from symgrad.ops.movement import bare
from symgrad.proof.scalars import literals
from symgrad.proof.words.code import CodeWriter, NoSpelling
from symgrad.proof.words.spelling import axes

REVERSED = {">": "<", ">=": "<=", "<": ">", "<=": ">=", "==": "=="}
_SIDE = 5
"""How tightly a side of a comparison binds."""
MOST_OPERATIONS = 60
"""Longer code is not written."""
LONGEST = 90
"""Characters of a value in a condition."""
_AGAIN = re.compile(r"(.+)_\d+")


@dataclass(frozen=True)
class Said:
    """``text``: as it is printed.  ``code``: Python in terms of the inputs; empty: none."""

    text: str
    code: str


def related(node: Node, relation: str, right: Fraction | Node = Fraction(0)) -> Said:
    """A relation between a node and a number, or another node.  Raises NoSpelling."""
    if isinstance(right, Node):
        one, other = spelled(node), spelled(right)
        return _joined(one, relation, other)
    node, relation, right = solved(node, relation, right)
    if node.op == "sub" and not right:
        one, other = (spelled(arg) for arg in node.args)
        return _joined(one, relation, other)
    value = decimal(right)
    return _joined(spelled(node), relation, Said(value, value))


def reached_twice(node: Node, extreme: str, over: Sequence[int]) -> Said:
    """That the maximum (minimum) of a node along axes has two places.  Raises NoSpelling."""
    said, where = spelled(node), axes(over)
    attained = f"({said.code}).{_ATTAINED[extreme]}({where}, keepdim=True)"
    code = f"(({said.code}) == {attained}).sum({where}) > 1" if said.code else ""
    along = f" along axis {where}" if len(over) < node.rank else ""
    return Said(f"the {extreme} of {said.text}{along} is reached more than once", code)


_ATTAINED = {"maximum": "amax", "minimum": "amin"}


def _joined(left: Said, relation: str, right: Said) -> Said:
    code = f"{left.code} {relation} {right.code}" if left.code and right.code else ""
    return Said(f"{left.text} {relation} {right.text}", code)


def solved(node: Node, relation: str, right: Fraction) -> tuple[Node, str, Fraction]:
    """The same relation with numbers brought to the right."""
    while True:
        if node.op in ("expand", "reshape", "shift"):
            node = node.args[0]
            continue
        values = [number(arg) for arg in node.args]
        if node.op == "neg":
            node, right, relation = node.args[0], -right, REVERSED[relation]
        elif node.op == "add" and None in values and values != [None, None]:
            right -= next(value for value in values if value is not None)
            node = node.args[values.index(None)]
        elif node.op == "sub" and values[1] is not None and values[0] is None:
            node, right = node.args[0], right + values[1]
        elif node.op == "sub" and values[0] is not None and values[1] is None:
            node, right, relation = node.args[1], values[0] - right, REVERSED[relation]
        elif node.op in ("mul", "div") and (factor := _factor(node, values)):
            node, right = node.args[values.index(None)], right / factor
            relation = relation if factor > 0 else REVERSED[relation]
        elif (right, node.op) in _INCREASING:
            node, right = node.args[0], Fraction(_INCREASING[right, node.op])
        elif relation == "==" and not right and (zero := _zero_with(node)) is not None:
            node = zero
        else:
            return node, relation, right


_INCREASING: Mapping[tuple[Fraction, str], int] = {
    **{(Fraction(0), op): 0 for op in (
        "expm1", "log1p", "tanh", "sinh", "asinh", "atan", "atanh", "asin", "erf")},
    **{(Fraction(0), op): 1 for op in ("log", "log2", "log10")},
    **{(Fraction(1), op): 0 for op in ("exp", "exp2")},
    (Fraction(1, 2), "sigmoid"): 0,
}  # fmt: skip
"""Of increasing functions the number at which they are another number."""


def _zero_with(node: Node) -> Node | None:
    """An operand that is 0 exactly where a node is, with which the node is defined; else None."""
    if node.op in ("square", "abs", "sqrt"):
        return node.args[0]
    if node.op == "div":
        return node.args[0]
    if node.op == "mul":
        first, second = node.args
        if first is second or _is_positive(second):
            return first
        return second if _is_positive(first) else None
    return None


def _is_positive(node: Node) -> bool:
    """Is it greater than 0, by how it is written?"""
    node = bare(node)
    value = number(node)
    if value is not None:
        return value > 0
    if node.op in ("exp", "exp2", "sigmoid", "softplus", "cosh"):
        return True
    if node.op in ("add", "maximum"):
        first, second = node.args
        one = _is_positive(first) or _is_positive(second)
        return one and (node.op == "maximum" or all(map(_is_not_negative, node.args)))
    if node.op in ("mul", "div"):
        return all(map(_is_positive, node.args))
    return node.op in ("sqrt", "rsqrt", "reciprocal", "square", "abs") and _is_positive(
        node.args[0]
    )


def _is_not_negative(node: Node) -> bool:
    node = bare(node)
    if node.op in ("square", "abs", "relu", "sqrt") or _is_positive(node):
        return True
    if node.op == "mul" and node.args[0] is node.args[1]:
        return True
    return node.op in ("add", "mul", "sum") and all(map(_is_not_negative, node.args))


def _factor(node: Node, values: list[Fraction | None]) -> Fraction | None:
    """The number that a node multiplies its other operand by."""
    if values[1] is not None and values[0] is None and values[1]:
        return values[1] if node.op == "mul" else 1 / values[1]
    return values[0] if node.op == "mul" and values[1] is None else None


def number(node: Node) -> Fraction | None:
    """The number that a node is everywhere, as it was written."""
    node = bare(node)
    if node.op != "constant" or isinstance(node.attributes["value"].value, bool):
        return None
    value = node.attributes["value"].value
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return Fraction(value) if isinstance(value, int) else Fraction(literals.exact(value))


def decimal(value: Fraction) -> str:
    """A number as it is written: of a dozen digits, or of a double such as ``math.pi``."""
    texts = f"{float(value):.12g}", repr(float(value))
    return next((text for text in texts if Fraction(text) == value), str(value))


def spelled(node: Node, level: int = _SIDE) -> Said:
    """A node in terms of the inputs, or with locals where that is long.

    What is too long either way is named by its line.  Raises NoSpelling.
    """
    while node.op in ("expand", "shift"):
        node = node.args[0]
    code = _written(node, (), level)
    if code and len(code) <= LONGEST_CONDITION:
        return Said(code, code)
    short = _written(node, own_names(ancestors([node])), level)
    text = min((text for text in (code, short) if text), key=len, default="")
    where = _place(node) if not text or len(text) > LONGEST else None
    if where is not None:
        text = f"(the value of line {where.line})"
    if not text:
        raise NoSpelling(node.op)
    return Said(text, code)


def _place(node: Node) -> Location | None:
    """The line that made a node; of one that no line made, the last one that it is made of."""
    found = (one.location for one in reversed(ancestors([node])))
    return next((where for where in found if where is not None), None)


def _written(node: Node, names: Iterable[Node], level: int) -> str:
    """A node as code; empty where it has no spelling, or one that nobody reads."""
    if _operations(node, frozenset(names)) > MOST_OPERATIONS:
        return ""
    try:
        return CodeWriter(names).text(node, level)
    except NoSpelling:
        return ""


def _operations(node: Node, names: frozenset[Node]) -> int:
    """How many operations the code has, each as often as it is written."""
    found: dict[Node, int] = {}
    for part in ancestors([node], stop=names):
        leaf = part in names or not part.args
        found[part] = 0 if leaf else 1 + sum(found.get(arg, 0) for arg in part.args)
    return found[node]


def own_names(nodes: Iterable[Node]) -> list[Node]:
    """Nodes with names that stand for one value in the user's source, inputs left out.

    Where a variable is bound twice, a trace calls its second value ``t_2``.
    """
    named = [node for node in nodes if node.name and node.op != "input"]
    if not named:
        return []
    every = {node.name for node in named[0].graph.nodes if node.name}
    every |= set(named[0].graph.inputs)
    again = {match[1] for name in every if (match := _AGAIN.fullmatch(name)) and match[1] in every}
    return [
        node for node in named
        if node.name not in again
        and not ((match := _AGAIN.fullmatch(node.name or "")) and match[1] in every)
    ]  # fmt: skip
