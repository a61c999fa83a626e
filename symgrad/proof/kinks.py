"""Where a forward is not differentiable, in the user's names.

In: the nodes of a forward.  Out: conditions to print beside a verdict.
Imports: ``symgrad.ops``, ``symgrad.ir``, ``symgrad.proof.code``, ``symgrad.proof.report``.
"""

from __future__ import annotations

from collections.abc import Iterable

from symgrad.ir.graph import Node
from symgrad.ops.record import get
from symgrad.proof.code import CodeWriter
from symgrad.proof.report import Condition

MOST = 6
_TIES = {"amax": "maximum", "amin": "minimum"}
_JUMPS = frozenset(("lt", "le", "gt", "ge"))


def kinks(nodes: Iterable[Node], names: Iterable[Node] = ()) -> list[Condition]:
    """The kinks and ties of the ops of a forward, at most a handful.

    ``names``: nodes to be printed by their names.
    """
    writer = CodeWriter(names)
    found: list[Condition] = []
    for node in nodes:
        for condition in _of(node, writer):
            if condition not in found:
                found.append(condition)
    if len(found) > MOST:
        rest = len(found) - MOST
        return [*found[:MOST], Condition("kink", f"and {rest} more like these")]
    return found


def _of(node: Node, writer: CodeWriter) -> list[Condition]:
    op = get(node.op)
    if op.scalar is not None and op.scalar.kinks and node.dtype.is_float:
        args = [writer.text(arg) for arg in node.args]
        where = f"{args[0]} == 0" if len(args) == 1 else f"{args[0]} == {args[1]}"
        return [
            Condition("kink", f"{where} ({node.op}, {kink.convention})" if kink.convention
                      else f"{where} ({node.op})")
            for kink in op.scalar.kinks
        ]  # fmt: skip
    if node.op in _TIES:
        said = f"the {_TIES[node.op]} of {writer.text(node.args[0])} is reached more than once"
        return [Condition("ties", said)]
    if node.op == "where" and node.dtype.is_float and node.args[0].op in _JUMPS:
        left, right = node.args[0].args
        if left.dtype.is_float:
            return [Condition("kink", f"{writer.text(left)} == {writer.text(right)} (where)")]
    return []
