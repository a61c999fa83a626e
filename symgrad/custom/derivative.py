"""Derivatives of custom ops: as the user declares them, or sympy's of the meaning.

In: a function of symbolic tensors, or a sympy expression.  Out: nodes in any graph, sympy
expressions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import sympy

from symgrad.custom.source import CustomOpError
from symgrad.errors import counted
from symgrad.frontend.lift import as_node
from symgrad.frontend.session import Session, activate
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.frontend.views import Storage
from symgrad.ir.dtype import DType, float64
from symgrad.ir.graph import Node, ancestors
from symgrad.ir.rewrite import rewrite
from symgrad.ir.types import TensorType
from symgrad.ops.record import apply, get
from symgrad.proof.scalars import bodies, literals, symbolic


class Template:
    """Derivatives written with symgrad's operations, traced on numbers and used on any nodes."""

    def __init__(self, name: str, call: Callable[..., Any], arity: int) -> None:
        session = Session(dtype=float64)
        with activate(session):
            nodes = [session.graph.input(f"x{n}", TensorType(float64)) for n in range(arity)]
            returned = call(*(SymbolicTensor(Storage(node)) for node in nodes))
            several = isinstance(returned, (tuple, list))
            parts = list(returned) if several else [returned]
            if len(parts) != arity:
                raise CustomOpError(
                    f"the derivative of {name!r} gives "
                    f"{counted(len(parts), 'expression')} for {counted(arity, 'operand')}",
                    hint="return one for each operand",
                )
            self.results = [as_node(part, float64) for part in parts]
        self.inputs = nodes
        self.order = ancestors(self.results)
        for node in self.order:
            if node.rank or (node.args and get(node.op).scalar is None):
                raise CustomOpError(
                    f"the derivative of {name!r} applies {node.op!r}, which is not elementwise"
                )

    def nodes(self, operands: Sequence[Node]) -> list[Node]:
        """The derivatives at these operands."""
        like = operands[0]

        def rule(node: Node, args: Sequence[Node]) -> Node | None:
            if node.op == "constant":
                dtype = like.dtype if node.dtype.is_float else node.dtype
                return _literal(node.attributes["value"].value, dtype, like)
            if node.op == "cast" and node.dtype.is_float:
                return apply("cast", *args, dtype=like.dtype)
            return None

        known = dict(zip(self.inputs, operands, strict=True))
        found = rewrite(like.graph, self.results, known, rule, named=False)
        return [found[node] for node in self.results]

    def expressions(self, operands: Sequence[Any]) -> list[Any]:
        """The derivatives as sympy expressions."""
        new: dict[Node, Any] = dict(zip(self.inputs, operands, strict=True))
        for node in self.order:
            if node in new:
                continue
            if node.op == "constant":
                new[node] = _number(node.attributes["value"].value)
            elif node.op == "cast":
                new[node] = new[node.args[0]]
            else:
                body = symbolic.body(get(node.op), len(node.args))
                symbols = symbolic.SYMBOLS[: len(node.args)]
                pairs = {s: new[arg] for s, arg in zip(symbols, node.args, strict=True)}
                new[node] = body.xreplace(pairs)
        return [new[node] for node in self.results]


def _literal(value: Any, dtype: DType, like: Node) -> Node:
    """A number in the shape of a node."""
    return like.graph.expand(like.graph.constant(value, dtype), like.shape)


def _number(value: Any) -> Any:
    if isinstance(value, float):
        known = literals.recognise(value)
        return (
            symbolic.as_sympy(known.term)
            if known is not None
            else sympy.Rational(literals.exact(value))
        )
    return sympy.true if value is True else sympy.false if value is False else sympy.Integer(value)


class _NodePool:
    """What ``bodies.translated`` builds with, here nodes over one shape."""

    def __init__(self, like: Node) -> None:
        self.like = like

    def call(self, name: str, *operands: Node, dtype: DType) -> Node:
        """An op applied."""
        if name == "pi":
            return self.literal(math.pi, dtype)
        return apply(name, *operands)

    def literal(self, value: Any, dtype: DType) -> Node:
        """A number in the shape of the operands."""
        return _literal(value, dtype, self.like)

    def select(self, condition: Node, chosen: Node, other: Node) -> Node:
        """A choice, element by element."""
        return apply("where", condition, chosen, other)


def from_meaning(body: Any, arity: int) -> Callable[[Sequence[Node]], list[Node]]:
    """The derivatives of a sympy expression in ``u0``, ... at nodes, by ``sympy.diff``."""
    partials = [
        symbolic.as_term(sympy.diff(body, symbolic.SYMBOLS[place])) for place in range(arity)
    ]

    def nodes(operands: Sequence[Node]) -> list[Node]:
        pool = _NodePool(operands[0])
        return [
            bodies.translated(pool, partial, operands, operands[0].dtype) for partial in partials
        ]

    return nodes
