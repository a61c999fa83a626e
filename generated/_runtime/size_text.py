"""Size expressions as C, and how large they can get.

In: expressions of Python over sizes.  Out: text; bounds.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .abi import with_names


class _ToC(ast.NodeTransformer):
    """Python's ``//`` and ``%`` round down, C's do not: spell them as calls."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """Replace the two operators that differ."""
        self.generic_visit(node)
        names: dict[type[ast.operator], str] = {ast.FloorDiv: "floor_div", ast.Mod: "floor_mod"}
        name = names.get(type(node.op))
        if name is None:
            return node
        return ast.Call(ast.Name(f"symgrad_{name}", ast.Load()), [node.left, node.right], [])

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """``min`` and ``max`` of two."""
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in ("min", "max"):
            node.func = ast.Name(f"symgrad_{node.func.id}", ast.Load())
        return node


def c_expression(expression: str, sizes: Sequence[str]) -> str:
    """A size expression as C, the sizes called ``size0``, ``size1`` and so on.

    Names in C are positional: a user's size may be called ``double`` or ``β``.
    """
    names = {size: f"size{index}" for index, size in enumerate(sizes)}
    renamed = with_names(expression, names)
    if not any(mark in renamed for mark in ("//", "%", "min", "max")):
        return renamed
    return ast.unparse(_ToC().visit(ast.parse(renamed, mode="eval")))


class Unbounded(Exception):
    """No bound is known, or Python's value may not be that of C."""


def bound(expression: str, most: int) -> int:
    """What no part of an expression exceeds while every size is from 0 to ``most``.

    Raises Unbounded.
    """
    return _bound(ast.parse(expression, mode="eval").body, most)


def _bound(node: ast.expr, most: int) -> int:
    if isinstance(node, ast.Name):
        return most
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return abs(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _bound(node.operand, most)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return max(_bound(node.left, most), _bound(node.comparators[0], most))
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("min", "max"):
        return max(_bound(one, most) for one in node.args)
    if isinstance(node, ast.BinOp):
        left, right = _bound(node.left, most), _bound(node.right, most)
        if isinstance(node.op, (ast.Add, ast.Sub)):
            return left + right
        if isinstance(node.op, ast.Mult):
            return max(left, right, left * right)
        divides = isinstance(node.op, (ast.FloorDiv, ast.Mod))
        if divides and isinstance(node.right, ast.Constant) and right > 0:
            return max(left, right)
    raise Unbounded(ast.unparse(node))
