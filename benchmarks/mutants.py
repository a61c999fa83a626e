"""Small wrong edits of right backwards: what a slip of the keyboard or of the mind makes.

In: the source of a Function's class.  Out: ``Mutant`` records, each the class's text with one
node of its ``backward`` changed, in a fixed order.
"""

from __future__ import annotations

import ast
import copy
import inspect
import random
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Edit = tuple[str, ast.AST | None]  # what was done, and the node that takes the old one's place

_OPERATORS: dict[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub, ast.Mult),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Add, ast.Div),
    ast.Div: (ast.Mult,),
    ast.Pow: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
}
_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Gt: (ast.Lt, ast.GtE),
    ast.Lt: (ast.Gt, ast.LtE),
    ast.GtE: (ast.LtE,),
    ast.LtE: (ast.GtE,),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
}
_METHODS = {
    "sum": ("mean",),
    "mean": ("sum",),
    "sigmoid": ("tanh",),
    "tanh": ("sigmoid",),
    "sin": ("cos",),
    "cos": ("sin",),
    "exp": ("log1p",),
    "log": ("log1p",),
    "sqrt": ("rsqrt",),
    "tril": ("triu",),
    "abs": ("sign",),
    "sign": ("abs",),
    "scatter_add": ("scatter",),
    "index_add": ("index_copy",),
    "maximum": ("minimum",),
    "minimum": ("maximum",),
    "zeros_like": ("ones_like",),
    "softmax": ("log_softmax",),
    "logical_and": ("logical_or",),
    "cumsum": ("cumprod",),
}
_DROPPABLE = {
    "sum", "mean", "exp", "log", "sqrt", "tanh", "sigmoid", "sign", "abs", "t", "transpose",
    "permute", "flip", "roll", "clone", "tril", "triu", "square", "neg", "clamp", "detach",
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One changed class: whose it is, what was changed where, and its whole text."""

    category: str
    name: str
    description: str
    source: str


def mutants_of(function: Any, category: str) -> list[Mutant]:
    """Every single edit of a class's own ``backward``, without repetition."""
    return _mutants(_class_tree(function), category)


def class_text(function: Any) -> str:
    """The text of a class without its decorators and docstrings."""
    return ast.unparse(_class_tree(function))


def mutants_of_text(source: str, category: str) -> list[Mutant]:
    """The same of a class of which there is only the text."""
    tree = ast.parse(source).body[0]
    assert isinstance(tree, ast.ClassDef)
    return _mutants(tree, category)


def _mutants(tree: ast.ClassDef, category: str) -> list[Mutant]:
    if _backward(tree) is None:
        return []
    original = ast.unparse(tree)
    found: dict[str, str] = {}
    for edit in _all_edits(tree):
        text = ast.unparse(_replaced(tree, edit))
        if text != original:
            found.setdefault(text, edit.description)
    return [Mutant(category, tree.name, what, text) for text, what in found.items()]


def mutated_again(mutant: Mutant, choice: random.Random) -> Mutant:
    """A second edit of what was edited already."""
    tree = ast.parse(mutant.source).body[0]
    assert isinstance(tree, ast.ClassDef)
    edit = choice.choice(list(_all_edits(tree)))
    what = f"{mutant.description}; {edit.description}"
    return Mutant(mutant.category, mutant.name, what, ast.unparse(_replaced(tree, edit)))


def _class_tree(function: Any) -> ast.ClassDef:
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(tree, ast.ClassDef)
    tree.decorator_list = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
    return tree


def _backward(tree: ast.ClassDef) -> ast.FunctionDef | None:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "backward":
            return node
    return None


@dataclass(frozen=True)
class _Edit:
    """What would be put for a node of the class; None: nothing."""

    description: str
    old: ast.AST
    new: ast.AST | None


def _all_edits(tree: ast.ClassDef) -> Iterator[_Edit]:
    """Every edit of the class's backward, in the order of the text."""
    backward = _backward(tree)
    assert backward is not None
    names = _Names(tree, backward)
    for statement in backward.body:
        for node in ast.walk(statement):
            for description, replacement in _edits(node, names):
                line = f"line {getattr(node, 'lineno', statement.lineno)}"
                yield _Edit(f"{line}: {description}", node, replacement)


def _replaced(tree: ast.ClassDef, edit: _Edit) -> ast.ClassDef:
    """The class with one edit made."""
    new = edit.new if edit.new is not None else ast.Pass()
    changed = copy.deepcopy(tree, {id(edit.old): new})
    return ast.fix_missing_locations(changed)


class _Names:
    """Which tensors and attributes of ctx a backward may confuse with one another."""

    def __init__(self, tree: ast.ClassDef, backward: ast.FunctionDef) -> None:
        arguments = [*backward.args.args, *filter(None, [backward.args.vararg])]
        self.context = {"ctx", "self", "cls"}
        self.bound = {one.arg: 0 for one in arguments if one.arg not in self.context}
        for node in ast.walk(backward):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.bound.setdefault(node.id, node.lineno)
        self.attributes = sorted(
            {
                node.attr
                for node in ast.walk(tree)
                if isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id in self.context
                and isinstance(node.ctx, ast.Store)
            }
        )

    def others(self, node: ast.Name) -> list[str]:
        """The other names that are bound above a use."""
        known = [name for name, line in self.bound.items() if line < node.lineno]
        return [name for name in known if name != node.id] if node.id in known else []


def _edits(node: ast.AST, names: _Names) -> Iterator[Edit]:
    """All edits of one node."""
    for kind, rule in _RULES:
        if isinstance(node, kind):
            yield from rule(node, names)


def _binary(node: Any, names: _Names) -> Iterator[Edit]:
    text = ast.unparse(node)
    for other in _OPERATORS.get(type(node.op), ()):
        changed = ast.BinOp(node.left, other(), node.right)
        yield f"{text} -> {ast.unparse(changed)}", changed
    if isinstance(node.op, ast.Sub | ast.Div | ast.MatMult):
        changed = ast.BinOp(node.right, node.op, node.left)
        yield f"{text} -> {ast.unparse(changed)}", changed
    yield f"{text} -> {ast.unparse(node.left)}", node.left
    if not isinstance(node.op, ast.Pow):
        yield f"{text} -> {ast.unparse(node.right)}", node.right


def _unary(node: Any, names: _Names) -> Iterator[Edit]:
    yield f"{ast.unparse(node)} -> {ast.unparse(node.operand)}", node.operand


def _constant(node: Any, names: _Names) -> Iterator[Edit]:
    value = node.value
    if isinstance(value, bool):
        yield f"{value} -> {not value}", ast.Constant(not value)
    elif isinstance(value, int):
        for other in (value + 1, value - 1):
            yield f"{value} -> {other}", ast.Constant(other)
    elif isinstance(value, float):
        for changed in (2 * value, -value, value + 1):
            yield f"{value} -> {changed}", ast.Constant(changed)


def _name(node: Any, names: _Names) -> Iterator[Edit]:
    if isinstance(node.ctx, ast.Load):
        for other in names.others(node):
            yield f"{node.id} -> {other}", ast.Name(other, ast.Load())
        if node.id in names.bound:
            negative = ast.UnaryOp(ast.USub(), ast.Name(node.id, ast.Load()))
            yield f"{node.id} -> -{node.id}", negative


def _attribute(node: Any, names: _Names) -> Iterator[Edit]:
    if not isinstance(node.ctx, ast.Load) or not isinstance(node.value, ast.Name):
        return
    if node.value.id in names.context and node.attr in names.attributes:
        for other in names.attributes:
            if other != node.attr:
                changed = ast.Attribute(node.value, other, ast.Load())
                yield f"{node.attr} -> {other}", changed
    if node.attr in ("T", "mT"):
        yield f"{ast.unparse(node)} not transposed", node.value


def _call(node: Any, names: _Names) -> Iterator[Edit]:
    function = node.func
    if not isinstance(function, ast.Attribute):
        return
    for other in _METHODS.get(function.attr, ()):
        renamed = ast.Attribute(function.value, other, ast.Load())
        yield f"{function.attr} -> {other}", ast.Call(renamed, node.args, node.keywords)
    if function.attr in _DROPPABLE:
        library = isinstance(function.value, ast.Name) and function.value.id == "sg"
        inner = node.args[0] if library and node.args else function.value
        if not library or node.args:
            yield f"{function.attr}() dropped", inner
    for keyword in node.keywords:
        fewer = [one for one in node.keywords if one is not keyword]
        yield f"{keyword.arg}= dropped", ast.Call(function, node.args, fewer)


def _compare(node: Any, names: _Names) -> Iterator[Edit]:
    for other in _COMPARISONS.get(type(node.ops[0]), ()):
        changed = ast.Compare(node.left, [other()], node.comparators)
        yield f"{ast.unparse(node)} -> {ast.unparse(changed)}", changed


def _augmented(node: Any, names: _Names) -> Iterator[Edit]:
    for other in _OPERATORS.get(type(node.op), ()):
        changed = ast.AugAssign(node.target, other(), node.value)
        yield f"{ast.unparse(node)} -> {ast.unparse(changed)}", changed
    yield f"{ast.unparse(node)} -> plain assignment", ast.Assign([node.target], node.value)
    yield f"{ast.unparse(node)} deleted", None


def _return(node: Any, names: _Names) -> Iterator[Edit]:
    value = node.value
    if not isinstance(value, ast.Tuple):
        return
    elements = value.elts
    for index, element in enumerate(elements):
        if not (isinstance(element, ast.Constant) and element.value is None):
            fewer = [*elements[:index], ast.Constant(None), *elements[index + 1 :]]
            changed = ast.Return(ast.Tuple(fewer, ast.Load()))
            yield f"gradient {index} -> None", changed
    for index in range(len(elements) - 1):
        order = list(elements)
        order[index], order[index + 1] = order[index + 1], order[index]
        changed = ast.Return(ast.Tuple(order, ast.Load()))
        yield f"gradients {index} and {index + 1} swapped", changed


_RULES: tuple[tuple[type[ast.AST], Callable[[Any, _Names], Iterator[Edit]]], ...] = (
    (ast.BinOp, _binary),
    (ast.UnaryOp, _unary),
    (ast.Constant, _constant),
    (ast.Name, _name),
    (ast.Attribute, _attribute),
    (ast.Call, _call),
    (ast.Compare, _compare),
    (ast.AugAssign, _augmented),
    (ast.Return, _return),
)
