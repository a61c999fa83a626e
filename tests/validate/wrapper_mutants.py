"""Faults planted in the text of wrappers, each at every place where it can be.

In: the text of a wrapper.  Out: ``Mutant``s: texts that differ from it in one place.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Edit = Callable[[], None]
Kind = Callable[[ast.AST], Iterator[Edit]]


@dataclass(frozen=True)
class Mutant:
    """A wrapper with one fault of a ``kind``.  ``line``: where it was planted."""

    kind: str
    line: int
    text: str


def mutants(text: str) -> Iterator[Mutant]:
    """Every fault of every kind."""
    original = ast.unparse(ast.parse(text))
    count = sum(1 for _ in ast.walk(ast.parse(text)))
    for name, kind in KINDS.items():
        for place in range(count):
            number = 0
            while True:
                tree = ast.parse(text)
                node = _at(tree, place)
                edits = list(kind(node))
                if number >= len(edits):
                    break
                edits[number]()
                number += 1
                changed = ast.unparse(ast.fix_missing_locations(tree))
                if changed != original:
                    yield Mutant(name, getattr(node, "lineno", 0), changed)


def sites(text: str) -> dict[str, list[tuple[int, int]]]:
    """Where faults of each kind can be planted: the place of a node, the number of the edit."""
    nodes = list(ast.walk(ast.parse(text)))
    return {
        name: [(place, number) for place, node in enumerate(nodes)
               for number in range(sum(1 for _ in kind(node)))]
        for name, kind in KINDS.items()
    }  # fmt: skip


def mutant(text: str, kind: str, site: tuple[int, int]) -> Mutant | None:
    """The fault at one of ``sites``; None where it changes nothing."""
    tree = ast.parse(text)
    node = _at(tree, site[0])
    list(KINDS[kind](node))[site[1]]()
    changed = ast.unparse(ast.fix_missing_locations(tree))
    if changed == ast.unparse(ast.parse(text)):
        return None
    return Mutant(kind, getattr(node, "lineno", 0), changed)


def _at(tree: ast.AST, place: int) -> ast.AST:
    return next(node for i, node in enumerate(ast.walk(tree)) if i == place)


# -- edits


def _swap(parts: list[Any], first: int, second: int) -> Edit:
    def edit() -> None:
        parts[first], parts[second] = parts[second], parts[first]

    return edit


def _put(node: Any, attribute: str, value: Any) -> Edit:
    return lambda: setattr(node, attribute, value)


def _in(parts: list[Any], place: int, value: Any) -> Edit:
    def edit() -> None:
        parts[place] = value

    return edit


def _drop(parts: list[Any], place: int) -> Edit:
    def edit() -> None:
        del parts[place]
        if not parts:
            parts.append(ast.Pass())

    return edit


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _calls_kernel(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).startswith("_call_")


def _record(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == name


def _keyword(node: Any, name: str) -> ast.keyword | None:
    return next((one for one in node.keywords if one.arg == name), None)


def _bodies(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse"):
        found = getattr(node, name, None)
        if isinstance(found, list):
            yield found


def _statements(node: ast.AST) -> Iterator[tuple[list[ast.stmt], int]]:
    if isinstance(node, (ast.FunctionDef, ast.Try, ast.If)):
        for body in _bodies(node):
            for place in range(len(body)):
                yield body, place


# -- kinds


def arguments_swapped(node: ast.AST) -> Iterator[Edit]:
    if _calls_kernel(node):
        assert isinstance(node, ast.Call)
        for place in range(len(node.args) - 1):
            yield _swap(node.args, place, place + 1)


def another_argument(node: ast.AST) -> Iterator[Edit]:
    if _calls_kernel(node):
        assert isinstance(node, ast.Call)
        for place in range(len(node.args)):
            for other in (0, len(node.args) - 3, len(node.args) - 1):
                yield _in(node.args, place, copy.deepcopy(node.args[other]))


def argument_dropped(node: ast.AST) -> Iterator[Edit]:
    if _calls_kernel(node):
        assert isinstance(node, ast.Call)
        for place in range(len(node.args)):
            yield _drop(node.args, place)


def size_off_by_one(node: ast.AST) -> Iterator[Edit]:
    if _calls_kernel(node):
        assert isinstance(node, ast.Call)
        for place, one in enumerate(node.args):
            if isinstance(one, (ast.Name, ast.BinOp)) and "_p_" not in ast.unparse(one):
                yield _in(node.args, place, _expression(f"{ast.unparse(one)} + 1"))


def another_kernel(node: ast.AST) -> Iterator[Edit]:
    """The call of a forward or backward of other gradients."""
    if isinstance(node, ast.Attribute) and ast.unparse(node).startswith("_library.lib.call_"):
        for old, new in (("forward", "inference"), ("backward", "forward"), ("_case0", "_case1")):
            if old in node.attr:
                yield _put(node, "attr", node.attr.replace(old, new))
        for bits in ("_10", "_01", "_110", "_011", "_100"):
            yield _put(node, "attr", f"{node.attr.rstrip('01_')}{bits}")


def check_dropped(node: ast.AST) -> Iterator[Edit]:
    for body, place in _statements(node):
        if isinstance(body[place], ast.If):
            yield _drop(body, place)


def half_of_a_check_dropped(node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, ast.BoolOp):
        for place in range(len(node.values)):
            yield lambda place=place: node.values.__setitem__(place, _expression("False"))  # type: ignore[misc]


def check_of_another_relation(node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        other = {
            ast.NotEq: ast.Eq, ast.Eq: ast.NotEq, ast.IsNot: ast.Is, ast.Is: ast.IsNot,
            ast.Lt: ast.LtE, ast.In: ast.NotIn, ast.Gt: ast.GtE,
        }.get(type(node.ops[0]))  # fmt: skip
        if other is not None:
            yield _in(node.ops, 0, other())


def statement_dropped(node: ast.AST) -> Iterator[Edit]:
    for body, place in _statements(node):
        if isinstance(body[place], (ast.Assign, ast.Expr)):
            yield _drop(body, place)


def axes_in_another_order(node: ast.AST) -> Iterator[Edit]:
    """Also of residuals that are taken apart, and of ``out``."""
    if isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Store):
        for place in range(len(node.elts) - 1):
            yield _swap(node.elts, place, place + 1)


def tuple_in_another_order(node: ast.AST) -> Iterator[Edit]:
    """A shape, what is kept, what is returned, a mask, what the runtime is given."""
    if isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load):
        for place in range(len(node.elts) - 1):
            yield _swap(node.elts, place, place + 1)


def tuple_with_something_else(node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load):
        for place in range(len(node.elts)):
            yield _in(node.elts, place, copy.deepcopy(node.elts[place - 1]))
            yield _in(node.elts, place, ast.Constant(None))


def another_dtype(node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        known = {
            "float32": "float64",
            "float64": "float32",
            "int64": "int32",
            "float[]": "double[]",
        }
        if node.value in known:
            yield _put(node, "value", known[node.value])


def another_name(node: ast.AST) -> Iterator[Edit]:
    """The dtype or C type of other arrays, zeros for memory that is empty."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        known = {
            "_float32": "_int64", "_int64": "_float32", "_c_float32": "_c_int64",
            "_c_int64": "_c_float32", "_empty": "_zeros", "_zeros": "_empty",
            "Residuals": "Residuals1", "Residuals1": "Residuals",
        }  # fmt: skip
        if node.id in known:
            yield _put(node, "id", known[node.id])


def read_only_out(node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "_pointer" and len(node.args) == 3:
        yield _drop(node.args, 2)


def out_that_is_not_used(node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, ast.Compare) and ast.unparse(node) == "out is None":
        yield lambda: setattr(node, "comparators", [ast.Name("out", ast.Load())])
    if isinstance(node, ast.Name) and node.id == "out" and isinstance(node.ctx, ast.Load):
        yield lambda: setattr(node, "id", "None")


def status_taken_for_another(node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, ast.If):
        test = node.test
        if isinstance(test, ast.UnaryOp) and _calls_kernel(test.operand):
            yield _put(node, "test", test.operand)
        elif _calls_kernel(test):
            yield _put(node, "test", ast.UnaryOp(ast.Not(), test))


def call_after_return(node: ast.AST) -> Iterator[Edit]:
    """The kernel is not called, or its status is not looked at."""
    for body, place in _statements(node):
        one = body[place]
        if isinstance(one, ast.If) and "_call_" in ast.unparse(one.test):
            call = one.test.operand if isinstance(one.test, ast.UnaryOp) else one.test
            yield _in(body, place, one.body[0])
            yield lambda body=body, place=place, call=call, one=one: body.__setitem__(  # type: ignore[misc]
                slice(place, place + 1), [ast.Expr(call), one.body[0]]
            )


def table_of_another(node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, ast.Dict):
        for place in range(len(node.values) - 1):
            yield _swap(node.values, place, place + 1)
        for place in range(len(node.keys)):
            yield lambda place=place: (node.keys.pop(place), node.values.pop(place))  # type: ignore[misc]


def truth(node: ast.AST) -> Iterator[Edit]:
    """A mask, ``differentiable``, ``exact``."""
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield _put(node, "value", not node.value)


def integer(node: ast.AST) -> Iterator[Edit]:
    """Positions, axes, factors, sizes that are numbers."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield _put(node, "value", node.value + 1)
        yield _put(node, "value", max(node.value - 1, 0))


def word(node: ast.AST) -> Iterator[Edit]:
    """A name or a size of the record, the name of a plain value."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        known = {"n": "m", "m": "n", "x": "weight", "input": "output", "output": "input"}
        if node.value in known:
            yield _put(node, "value", known[node.value])
        elif node.value.isidentifier() and len(node.value) > 1:
            yield _put(node, "value", f"{node.value}_")


def parameters_swapped(node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, ast.FunctionDef):
        for place in range(len(node.args.args) - 1):
            yield _swap(node.args.args, place, place + 1)


def parameter_with_another_default(node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, ast.FunctionDef):
        for place in range(len(node.args.defaults)):
            yield _in(node.args.defaults, place, ast.Constant(2.0))
        for place in range(len(node.args.kw_defaults)):
            yield _in(node.args.kw_defaults, place, ast.Constant(False))


def call_passes_something_else(node: ast.AST) -> Iterator[Edit]:
    """Calls of the runtime and of the text."""
    if isinstance(node, ast.Call) and not _calls_kernel(node):
        for place in range(len(node.args) - 1):
            yield _swap(node.args, place, place + 1)


def record_with_another_kernel(node: ast.AST) -> Iterator[Edit]:
    if _record(node, "Kernel"):
        assert isinstance(node, ast.Call)
        name = ast.literal_eval(node.args[0])
        for old, new in (("forward", "backward"), ("backward", "forward")):
            if old in name:
                yield _in(node.args, 0, ast.Constant(name.replace(old, new)))


def record_with_other_strides(node: ast.AST) -> Iterator[Edit]:
    if _record(node, "Array"):
        assert isinstance(node, ast.Call)
        strides = _keyword(node, "strides")
        if strides is not None:
            yield _put(strides, "value", _expression("(1,)"))
            yield _drop(node.keywords, node.keywords.index(strides))
        else:
            yield lambda: node.keywords.append(ast.keyword("strides", _expression("(0,)")))


def record_with_less(node: ast.AST) -> Iterator[Edit]:
    """An array, a binding, a residual, a backward or a condition less."""
    if isinstance(node, ast.keyword) and isinstance(node.value, ast.Tuple):
        for place in range(len(node.value.elts)):
            yield lambda place=place: node.value.elts.pop(place)  # type: ignore[misc]


def arithmetic(node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, ast.BinOp):
        other = {ast.Mult: ast.Add, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.FloorDiv: ast.Mult}
        if type(node.op) in other:
            yield _put(node, "op", other[type(node.op)]())


def cases_in_another_order(node: ast.AST) -> Iterator[Edit]:
    for body, place in _statements(node):
        later = [i for i in range(place + 1, len(body)) if isinstance(body[i], ast.Try)]
        if isinstance(body[place], ast.Try) and later:
            yield _swap(body, place, later[0])


def statements_swapped(node: ast.AST) -> Iterator[Edit]:
    for body, place in _statements(node):
        if place + 1 < len(body):
            yield _swap(body, place, place + 1)


def handler_of_less(node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, ast.ExceptHandler):
        yield _put(node, "type", ast.Name("_Unusual", ast.Load()))


def workspace_of_another(node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "_workspace":
        yield _put(node, "attr", "size" if node.attr == "pointer" else "pointer")
        yield _put(node, "value", ast.Name("_library", ast.Load()))


KINDS: dict[str, Kind] = {
    one.__name__.replace("_", " "): one
    for one in (
        arguments_swapped, another_argument, argument_dropped, size_off_by_one, another_kernel,
        check_dropped, half_of_a_check_dropped, check_of_another_relation, statement_dropped,
        axes_in_another_order, tuple_in_another_order, tuple_with_something_else, another_dtype,
        another_name, read_only_out, out_that_is_not_used, status_taken_for_another,
        call_after_return, table_of_another, truth, integer, word, parameters_swapped,
        parameter_with_another_default, call_passes_something_else, record_with_another_kernel,
        record_with_other_strides, record_with_less, arithmetic, cases_in_another_order,
        statements_swapped, handler_of_less, workspace_of_another,
    )
}  # fmt: skip
