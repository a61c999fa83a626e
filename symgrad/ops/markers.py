"""Markers: what PyTorch's record of a computation says beside its values.

In: nothing.  Out: records.

All are the identity of their first argument.  ``unwritten`` are zeros that stand for memory that
nobody wrote; a trace that is over has none.  ``detach`` cuts its value off from
differentiation; ``applied`` is what a Function returned: its derivative by the other arguments is
that Function's own backward.  Only a trace that follows histories has markers, and only the proof
of second order reads them: it takes them out before anything is judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from symgrad.ir.dim import Dim
from symgrad.ir.expr import Expr
from symgrad.ir.graph import Graph, Node
from symgrad.ir.rewrite import rewrite
from symgrad.ir.types import TensorType
from symgrad.ops.record import Array, Reader, structural

KIND = "marker"
MARKERS = ("detach", "applied")


def _rule(args: Sequence[TensorType], attrs: Mapping[str, Any]) -> TensorType:
    return args[0]


def _first(array: Array, *others: Array, **attrs: Any) -> Array:
    return array


def _lower(reader: Reader, node: Node, indices: tuple[Dim, ...]) -> Expr:
    return reader.read(0, *indices)


structural(
    "unwritten", KIND, rule=_rule, numpy=_first, lower=_lower, vjp=None,
    program="{0}",
)  # fmt: skip
structural(
    "detach", KIND, rule=_rule, numpy=_first, lower=_lower, vjp=None, program="{0}",
    code="{0}.detach()",
)  # fmt: skip
structural(
    "applied", KIND, rule=_rule, numpy=_first, lower=_lower, vjp=None, arity=None, program="{0}"
)


def value_args(node: Node) -> Sequence[Node]:
    """The arguments that the value of a node is computed from."""
    return node.args[:1] if node.op in MARKERS else node.args


def recorded_args(node: Node) -> Sequence[Node]:
    """The arguments that a node is recorded to depend on."""
    if node.op == "detach":
        return ()
    return node.args[1:] if node.op == "applied" else node.args


def without_markers(
    graph: Graph, roots: Iterable[Node], known: Mapping[Node, Node] | None = None
) -> dict[Node, Node]:
    """What the values of ``roots`` need, in ``graph``, markers left out: where each node went.

    ``known``: what stands for some nodes in ``graph``.
    """

    def rule(node: Node, args: Sequence[Node]) -> Node | None:
        return args[0] if node.op in MARKERS else None

    return rewrite(graph, roots, known, rule, follow=value_args)
