"""The dialect of C that symgrad emits: what is legal C, is in no kernel, and is easily misread.

In: a parsed unit.  Out: nothing, or ``Unsupported`` with the line.

Macros are those of the emitted files, with their meanings.  A function leaves at its end; a kernel
may also leave before its loops.  A loop counts in ``int64_t`` to an end that its body does not
change.  What a clause reduces is added to in the body, and nothing else.  The workspace is cut by
``carve``, outside of loops.  No two names of one array reach a function that writes through
either.  The products are those of the BLAS, declared as it has them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import combinations

from pycparser import c_ast, c_generator

from symgrad.validate.source import (
    CType,
    Directive,
    Node,
    Signature,
    Unit,
    Unsupported,
    canonical,
    line_of,
    type_of,
    walk,
)

MACROS = {"MIN": "min", "MAX": "max", "ROUND_UP": "round_up"}
"""The macros with parameters, and what they are."""
CONSTANTS = ("BLOCK", "SHORT_ROW", "SUM_BLOCK", "SUM_ROWS")
"""The macros that are numbers."""
STACK = 16384
"""Numbers that the arrays of one function may hold together."""
FLOORED = {
    "floor_divide": (
        "const int64_t quotient = x / y; "
        "return (((x % y) != 0) && ((x < 0) != (y < 0))) ? (quotient - 1) : (quotient);"
    ),
    "floor_modulo": (
        "const int64_t rest = x % y; "
        "return ((rest != 0) && ((rest < 0) != (y < 0))) ? (rest + y) : (rest);"
    ),
}
"""Functions of integers x and y that round quotients down."""
CARVE = "char * const piece = *space; *space += ROUND_UP(bytes); return piece;"


def check(unit: Unit, functions: Collection[str] | None = None) -> None:
    """Raises Unsupported for what symgrad does not emit.

    ``functions``: those that are looked into; None for all.  The rest of the file, and the names of
    the others, are looked at anyway.
    """
    for constant in unit.constants.values():
        if constant.name not in CONSTANTS:
            raise Unsupported(f"the macro {constant.name}", constant.line)
    for macro in unit.macros.values():
        if MACROS.get(macro.name) != macro.kind:
            raise Unsupported(f"the macro {macro.name}, as it is defined here", macro.line)
    for signature in unit.externals.values():
        _check_external(signature)
    for name, function in unit.functions.items():
        _check_name(unit.signatures[name])
        if functions is None or name in functions:
            _Function(unit, function, unit.signatures[name]).check()


def _check_name(signature: Signature) -> None:
    """The C library, which compilers know by name, has no names of this form."""
    name = signature.name
    if name != "carve" and not re.fullmatch(r"[a-z][a-z0-9]*_\w+", name):
        raise Unsupported(f"{name} may be a function of the C library", signature.line)
    if name.startswith("cblas_") and "__" not in name:
        raise Unsupported(f"{name} is a name of the BLAS", signature.line)


def _check_external(signature: Signature) -> None:
    kind = {"cblas_sgemm": "float", "cblas_dgemm": "double"}.get(signature.name)
    if kind is None:
        if not signature.name.startswith("symgrad_"):
            raise Unsupported(f"{signature.name} is declared, and not defined", signature.line)
        return
    whole, number, given = CType("int"), CType(kind), CType(kind, 1, const=True)
    wanted = [*[whole] * 6, number, given, whole, given, whole, number, CType(kind, 1), whole]
    if signature.result != CType("void") or [one for _, one in signature.parameters] != wanted:
        raise Unsupported(f"{signature.name} is declared as another function", signature.line)


class _Function:
    """One function."""

    def __init__(self, unit: Unit, node: c_ast.FuncDef, signature: Signature) -> None:
        self._unit, self._node, self._signature = unit, node, signature
        self._sources: dict[str, list[Node]] = {}
        for one in walk(node.body):
            if isinstance(one, c_ast.Decl) and type_of(one).pointers:
                self._sources.setdefault(one.name, []).append(one.init)

    def check(self) -> None:
        if self._signature.name == "carve":
            self._check_carve()
            return
        if self._signature.name in FLOORED:
            self._check_floored(FLOORED[self._signature.name])
            return
        self._check_pieces()
        self._check_cursor()
        self._check_stack()
        self._check_returns()
        for one in walk(self._node.body):
            if isinstance(one, c_ast.For):
                self._check_loop(one)
            elif isinstance(one, c_ast.Compound):
                self._check_block(one.block_items or [])
            elif isinstance(one, c_ast.FuncCall):
                self._check_call(one)

    def _text(self) -> str:
        return " ".join(c_generator.CGenerator().visit(self._node.body).strip("{} \n").split())

    def _check_floored(self, body: str) -> None:
        whole = CType("int64_t")
        if (
            self._text() != body
            or list(self._signature.parameters) != [("x", whole), ("y", whole)]
            or self._signature.result != whole
            or not self._signature.static
        ):
            raise Unsupported(f"{self._signature.name} does something else", self._signature.line)

    def _check_carve(self) -> None:
        kinds = [("space", CType("char", 2)), ("bytes", CType("int64_t"))]
        if (
            self._text() != CARVE
            or list(self._signature.parameters) != kinds
            or self._signature.result != CType("void", 1)
        ):
            raise Unsupported(
                "carve does something else than to cut off the next piece", self._signature.line
            )

    def _check_pieces(self) -> None:
        """``carve`` gives the value of a pointer that the function itself declares."""
        calls = [one for one in walk(self._node.body) if _is_call(one, "carve")]
        declared = [
            one.init for one in self._node.body.block_items or []
            if isinstance(one, c_ast.Decl) and _is_call(one.init, "carve")
        ]  # fmt: skip
        for one in calls:
            if not any(one is init for init in declared):
                raise Unsupported("carve is called inside of a statement", line_of(one))

    def _check_cursor(self) -> None:
        """One variable walks over the workspace, which nothing else is done with."""
        parameters = self._signature.parameters
        for place, (name, kind) in enumerate(parameters, 1):
            last = place == len(parameters) and not self._signature.static
            if kind.base in ("char", "void") and not (last and kind == CType("void", 1)):
                raise Unsupported(f"{name} points to bytes", self._signature.line)
        space = parameters[-1][0] if parameters and parameters[-1][1].base == "void" else None
        raw = [
            one for one in walk(self._node.body)
            if isinstance(one, c_ast.Decl) and type_of(one).base in ("char", "void")
        ]  # fmt: skip
        for place, one in enumerate(raw):
            if place or type_of(one) != CType("char", 1) or not _is_name(one.init, space or ""):
                raise Unsupported(f"{one.name} points to bytes", line_of(one))
        cursors = (space, *(one.name for one in raw))
        known = [one.init for one in raw]
        for one in walk(self._node.body):
            if isinstance(one, c_ast.Cast) and type_of(one.to_type) == CType("void"):
                known.append(one.expr)
            elif _is_call(one, "carve") and one.args is not None:
                known += [each.expr for each in one.args.exprs if isinstance(each, c_ast.UnaryOp)]
            elif isinstance(one, c_ast.FuncCall):
                known.append(one.name)
        for one in walk(self._node.body):
            used = isinstance(one, c_ast.ID) and one.name in cursors
            if used and not any(one is each for each in known):
                raise Unsupported(f"{one.name} is used beside carve", line_of(one))

    def _check_stack(self) -> None:
        """Arrays of a function, and no great ones; no address of a variable is kept."""
        numbers = 0
        given: list[Node] = []
        for one in walk(self._node.body):
            if isinstance(one, c_ast.FuncCall) and one.args is not None:
                given += one.args.exprs
            elif isinstance(one, c_ast.Decl) and isinstance(one.type, c_ast.ArrayDecl):
                numbers += int(one.type.dim.value)
                if numbers > STACK:
                    raise Unsupported(f"{one.name} is too long for the stack", line_of(one))
        for one in walk(self._node.body):
            address = isinstance(one, c_ast.UnaryOp) and one.op == "&"
            if address and not any(one is each for each in given):
                raise Unsupported("an address that is kept", line_of(one))

    def _check_returns(self) -> None:
        """It leaves with its last statement; a kernel may do so under conditions before."""
        items = self._node.body.block_items or []
        allowed: list[Node] = []
        if self._signature.result != CType("void"):
            if not items or not isinstance(items[-1], c_ast.Return):
                raise Unsupported(
                    f"{self._signature.name} has no return at its end", self._signature.line
                )
            allowed.append(items[-1])
            if not self._signature.static:
                allowed += [_only(one.iftrue) for one in items if isinstance(one, c_ast.If)]
        for one in walk(self._node.body):
            if isinstance(one, c_ast.Return) and not any(one is known for known in allowed):
                raise Unsupported(f"{self._signature.name} is left in its middle", line_of(one))

    def _check_loop(self, loop: c_ast.For) -> None:
        if not canonical(loop):
            raise Unsupported("a loop that does not count in int64_t to a fixed end", line_of(loop))
        heads = [loop.init.decls[0].init, loop.cond.right, getattr(loop.next, "rvalue", None)]
        for one in (part for head in heads if head is not None for part in walk(head)):
            if not isinstance(
                one,
                (
                    c_ast.ID,
                    c_ast.Constant,
                    c_ast.BinaryOp,
                    c_ast.TernaryOp,
                    c_ast.FuncCall,
                    c_ast.ExprList,
                ),
            ):
                raise Unsupported("the head of a loop that reads memory", line_of(loop))

    # -- OpenMP

    def _check_block(self, items: Sequence[Node]) -> None:
        for place, one in enumerate(items):
            if isinstance(one, c_ast.Pragma):
                self._check_clauses(self._unit.directive(one), items[place + 1])
            if isinstance(one, c_ast.Decl) and type_of(one).restrict:
                self._check_restrict(one, items[place + 1 :])

    def _check_clauses(self, directive: Directive, loop: Node) -> None:
        for one in () if directive.condition is None else walk(directive.condition):
            plain = isinstance(one, (c_ast.ID, c_ast.Constant, c_ast.TernaryOp))
            if isinstance(one, c_ast.BinaryOp):
                part = isinstance(one.right, c_ast.Constant) and one.right.value.strip("0") != ""
                plain = one.op in "*+-<>" or (one.op in "/%" and part)
            if not plain:
                raise Unsupported("the condition of a parallel loop", directive.line)
        for operator, name in directive.reductions:
            self._check_reduction(operator, name, loop.stmt, directive.line)

    def _check_reduction(self, operator: str, name: str, body: Node, line: int) -> None:
        """Each thread begins with nothing: what else reads it would see that."""
        uses = sum(isinstance(one, c_ast.ID) and one.name == name for one in walk(body))
        own = 0
        for one in walk(body):
            if isinstance(one, c_ast.Assignment) and _is_name(one.lvalue, name):
                again = sum(isinstance(x, c_ast.ID) and x.name == name for x in walk(one.rvalue))
                chosen = operator in ("max", "min") and one.op == "="
                if not chosen and (again or one.op != f"{operator}="):
                    raise Unsupported(f"{name} is in a clause, and not only added to", line_of(one))
                own += 1 + again
        if not own or own != uses:
            raise Unsupported(f"{name} is in a clause, and not only added to", line)

    # -- names of one array

    def _check_restrict(self, node: c_ast.Decl, behind: Sequence[Node]) -> None:
        """Where a pointer is restrict, what it comes from is not used any more."""
        if _is_call(node.init, "carve"):
            return
        sources = self._origins(self._root(node.init, node), node)
        others = {
            name for name in (*sources, *self._sources)
            for known in [self._origins(name, node)] if known & sources and node.name not in known
        }  # fmt: skip
        for one in (part for item in behind for part in walk(item)):
            if isinstance(one, c_ast.ID) and one.name in others:
                raise Unsupported(
                    f"{one.name} is used beside {node.name}, which is restrict", line_of(one)
                )

    def _check_call(self, node: c_ast.FuncCall) -> None:
        name = node.name.name
        signature = self._unit.signatures.get(name) or self._unit.externals.get(name)
        if signature is None or name == "carve":
            return
        pointers = [
            (self._root(one, node), kind)
            for one, (_, kind) in zip(
                node.args.exprs if node.args else [], signature.parameters, strict=True
            )
            if kind.pointers
        ]
        for (one, kind), (other, other_kind) in combinations(pointers, 2):
            shared = self._origins(one, node) & self._origins(other, node)
            if shared and not (kind.const and other_kind.const):
                raise Unsupported(f"{name} gets one array by two names", line_of(node))

    def _root(self, node: Node, where: Node) -> str:
        """The name that a pointer is computed from."""
        while not isinstance(node, c_ast.ID):
            if isinstance(node, c_ast.BinaryOp):
                node = node.left
            elif isinstance(node, c_ast.UnaryOp) and node.op == "&":
                node = node.expr
            elif isinstance(node, c_ast.ArrayRef):
                node = node.name
            else:
                raise Unsupported("a pointer of another form", line_of(where))
        return str(node.name)

    def _origins(self, name: str, where: Node) -> set[str]:
        """The parameters, pieces and variables that a name may lead to."""
        found: set[str] = set()
        todo = [name]
        while todo:
            one = todo.pop()
            if one not in found:
                found.add(one)
                made = [each for each in self._sources.get(one, ()) if not _is_call(each, "carve")]
                todo += [self._root(each, where) for each in made]
        return found


def _is_call(node: Node, name: str) -> bool:
    return isinstance(node, c_ast.FuncCall) and _is_name(node.name, name)


def _is_name(node: Node, name: str) -> bool:
    return isinstance(node, c_ast.ID) and node.name == name


def _only(node: Node) -> Node:
    """The only statement of a block."""
    items = node.block_items or [] if isinstance(node, c_ast.Compound) else [node]
    return items[0] if len(items) == 1 else None
