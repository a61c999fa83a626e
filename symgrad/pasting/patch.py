"""Edits of the text of a method, only where a gradient is returned or assigned.

In: plain functions whose source can be read, tensor code.  Out: changed methods as text, as a
Function that has them, and as a unified diff of their file.

Positions are those of ``ast``: lines from 1 within the method, columns in bytes of UTF-8.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import linecache
import os
import tokenize
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from types import CodeType
from typing import Any

from symgrad.frontend.evidence import AnyFunction
from symgrad.frontend.function import Function, class_of, raw_method

Position = tuple[int, int]
Binding = ast.Assign | ast.AnnAssign
Note = Callable[[int, dict[str, Any], Any], Any]
_NOTE, _LOCALS = "__symgrad_note__", "__symgrad_locals__"


@dataclass(frozen=True)
class Edit:
    """Replaces the text between two positions; ``start == end`` inserts."""

    start: Position
    end: Position
    text: str


@dataclass(frozen=True)
class Snippet:
    """Tensor code: statements, then an expression."""

    statements: tuple[str, ...]
    expression: str

    @classmethod
    def of(cls, code: str) -> Snippet:
        """The lines of ``code``, the last of which is the expression."""
        *statements, expression = code.splitlines()
        return cls(tuple(statements), expression)


@dataclass(frozen=True)
class Method:
    """A method's source: ``lines`` with their ends, the first of which is line ``first``."""

    file: str
    first: int
    lines: tuple[str, ...]

    @cached_property
    def tree(self) -> ast.FunctionDef:
        """The definition, with positions in ``lines``.  Raises SyntaxError."""
        return self.parsed()

    def parsed(self) -> ast.FunctionDef:
        """A new tree of the definition.  Raises SyntaxError."""
        text = "".join(self.lines)
        with unwarned():
            tree = ast.parse(text if not text[:1].isspace() else "if 1:\n" + text)
        found: ast.AST = tree.body[0]
        if isinstance(found, ast.If):
            found = ast.increment_lineno(found, -1).body[0]
        if not isinstance(found, ast.FunctionDef):
            raise SyntaxError("no def")
        return found

    @property
    def line(self) -> int:
        """The line of the ``def`` in its file."""
        return self.first + self.tree.lineno - 1

    @cached_property
    def returns(self) -> tuple[ast.Return, ...]:
        """The return statements, without those of functions inside."""
        return _returns(self.tree)

    def edited(self, edits: Sequence[Edit]) -> Method:
        """The method after edits that do not overlap.  Raises SyntaxError."""
        data = [line.encode() for line in self.lines]
        order = sorted(range(len(edits)), key=lambda i: (edits[i].start, edits[i].end, i))
        for edit in (edits[i] for i in reversed(order)):
            (row, column), (last, end) = edit.start, edit.end
            head, tail = data[row - 1][:column], data[last - 1][end:]
            data[row - 1 : last] = [head + edit.text.encode() + tail]
        text = b"".join(data).decode()
        method = Method(self.file, self.first, tuple(text.splitlines(keepends=True)))
        _ = method.tree
        return method

    def segment(self, node: ast.expr) -> str:
        """The text of an expression."""
        rows = [line.encode() for line in self.lines[node.lineno - 1 : node.end_lineno]]
        rows[-1] = rows[-1][: node.end_col_offset]
        rows[0] = rows[0][node.col_offset :]
        return b"".join(rows).decode()

    def free_at(self, row: int, column: int) -> str | None:
        """The indentation before a statement; None where it shares its line."""
        before = self.lines[row - 1].encode()[:column].decode()
        return before if not before.strip() else None


@contextmanager
def unwarned() -> Iterator[None]:
    """Without Python's warnings about a text: the user has seen them, or has not written it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def read(function: Any) -> Method | None:
    """The source of a function; None where it cannot be read or is no ``def``."""
    plain = inspect.unwrap(function)
    try:
        lines, first = inspect.getsourcelines(plain)
        method = Method(plain.__code__.co_filename, max(first, 1), tuple(lines))
        return method if method.tree.name else None
    except (OSError, TypeError, SyntaxError, IndexError, AttributeError):
        return None


# -- analysis


def own_nodes(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """The nodes of a function in the order of the text, without those of functions inside."""
    todo: list[ast.AST] = list(reversed(function.body))
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            todo.extend(reversed(list(ast.iter_child_nodes(node))))


def _returns(function: ast.FunctionDef) -> tuple[ast.Return, ...]:
    return tuple(node for node in own_nodes(function) if isinstance(node, ast.Return))


def parameters(method: Method) -> list[str]:
    """The names of the parameters."""
    given = method.tree.args
    starred = [one for one in (given.vararg, given.kwarg) if one is not None]
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, *starred]
    return [one.arg for one in every]


def attributes(method: Method, name: str) -> frozenset[str]:
    """The attributes of a variable that a method names, and those that torch's ctx has."""
    return _OF_CONTEXT | {
        node.attr for node in ast.walk(method.tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        and node.value.id == name
    }  # fmt: skip


_OF_CONTEXT = frozenset(
    ("saved_tensors", "saved_variables", "needs_input_grad", "dirty_tensors", "non_differentiable",
     "to_save", "saved_for_forward", "materialize_grads", "metadata", "name", "next_functions",
     "register_hook", "register_prehook", "save_for_backward", "save_for_forward", "mark_dirty",
     "mark_non_differentiable", "set_materialize_grads", "mark_shared_storage", "apply",
     "maybe_clear_saved_tensors", "generate_vmap_rule", "saved_input", "requires_grad")
)  # fmt: skip


def names_before(method: Method, row: int) -> set[str]:
    """Variables that are bound before a line, and not again at it or after it."""
    bound: dict[str, int] = dict.fromkeys(parameters(method), 0)
    for node in ast.walk(method.tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound[node.id] = max(bound.get(node.id, 0), node.lineno)
    return {name for name, last in bound.items() if last < row}


def taken_apart(method: Method, given: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters, and what the first statements take out of them (``a, b = residuals``).

    Variables that are bound more than once are left out.
    """
    variables = dict(given)
    for statement in method.tree.body:
        if _is_docstring(statement):
            continue
        parts = list(ast.walk(statement))
        if not isinstance(statement, ast.Assign) or not all(
            isinstance(one, _PLAIN) for one in parts
        ):
            break
        try:
            exec(compile(ast.Module([statement], []), method.file, "exec"), {}, variables)
        except Exception:  # it does not fit
            break
    stores = [
        node.id for node in ast.walk(method.tree)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    ]  # fmt: skip
    return {
        name: value
        for name, value in variables.items()
        if stores.count(name) <= (name not in given)
    }


_PLAIN = (
    ast.Assign, ast.Name, ast.Tuple, ast.List, ast.Subscript, ast.Attribute, ast.Constant,
    ast.expr_context,
)  # fmt: skip


def only_assignment(method: Method, name: str) -> Binding | None:
    """The only assignment to a variable, assignments of ``None`` aside."""
    stores = [
        node for node in ast.walk(method.tree)
        if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)
    ]  # fmt: skip
    found: Binding | None = None
    nothing = 0
    for node in own_nodes(method.tree):
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if not any(isinstance(one, ast.Name) and one.id == name for one in targets):
            continue
        if isinstance(node.value, ast.Constant) and node.value.value is None:
            nothing += 1
        elif found is None and len(targets) == 1:
            found = node
        else:
            return None
    return found if found is not None and len(stores) == nothing + 1 else None


# -- edits


def in_return(method: Method, number: int, new: Mapping[int, Snippet]) -> list[Edit] | None:
    """Edits that replace gradients in a return statement; None where that is impossible."""
    statement = method.returns[number]
    value = statement.value
    lines = [line for snippet in new.values() for line in snippet.statements]
    indent = method.free_at(statement.lineno, statement.col_offset)
    if value is None or (indent is None and lines):
        return None
    before = _inserted(statement, indent or "", lines)
    elements = value.elts if isinstance(value, ast.Tuple) else [value]
    if any(isinstance(one, ast.Starred) for one in elements[: max(new) + 1]) or (
        not isinstance(value, ast.Tuple) and max(new)
    ):
        return _listed(method, statement, new)
    if max(new) >= len(elements):
        return None
    return [*before, *(replacement(elements[at], one.expression) for at, one in new.items())]


def _listed(
    method: Method, statement: ast.Return, new: Mapping[int, Snippet]
) -> list[Edit] | None:  # fmt: skip
    """Edits that return through a list, where the elements are not written one by one."""
    indent = method.free_at(statement.lineno, statement.col_offset)
    if indent is None or statement.value is None:
        return None
    text = method.segment(statement.value)
    if isinstance(statement.value, ast.Tuple) and not text.startswith("("):
        text = f"({text})"
    lines = [f"gradients = list({text})"]
    for position, snippet in new.items():
        lines += [*snippet.statements, f"gradients[{position}] = {snippet.expression}"]
    lines.append("return tuple(gradients)")
    end = statement.end_lineno or statement.lineno, statement.end_col_offset or 0
    return [Edit((statement.lineno, statement.col_offset), end, f"\n{indent}".join(lines))]


def in_assignment(method: Method, binding: Binding, new: Snippet) -> list[Edit] | None:
    """Edits that replace the value of an assignment."""
    indent = method.free_at(binding.lineno, binding.col_offset)
    if binding.value is None or (indent is None and new.statements):
        return None
    return [
        *_inserted(binding, indent or "", new.statements),
        replacement(binding.value, new.expression),
    ]


def _inserted(statement: ast.stmt, indent: str, lines: Sequence[str]) -> list[Edit]:
    at = statement.lineno, 0
    return [Edit(at, at, "".join(f"{indent}{line}\n" for line in lines))] if lines else []


def replacement(old: ast.expr, text: str) -> Edit:
    """The edit that puts a text for an expression."""
    end = old.end_lineno or old.lineno, old.end_col_offset or old.col_offset
    return Edit((old.lineno, old.col_offset), end, text)


def emptied(method: Method, count: int) -> Method | None:
    """The first statements, which only read ctx, then a return of ``count`` times None."""
    given = parameters(method)
    body = list(method.tree.body)
    kept = 0
    while kept < len(body) and given and _only_reads(body[kept], given[0]):
        kept += 1
    first, last = body[0], body[-1]
    if not kept and _is_docstring(first):
        kept = 1
    indent = method.free_at(first.lineno, first.col_offset)
    if indent is None or not count:
        return None
    start = (body[kept - 1].end_lineno or 0) + 1 if kept else first.lineno
    if kept == len(body) or body[kept].lineno < start:
        return None
    returned = ", ".join(["None"] * count)
    end = last.end_lineno or last.lineno, last.end_col_offset or 0
    try:
        return method.edited([Edit((start, 0), end, f"{indent}return {returned}")])
    except SyntaxError:
        return None


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _only_reads(statement: ast.stmt, ctx: str) -> bool:
    """Is it a docstring, or an assignment of attributes of ctx?"""
    if _is_docstring(statement):
        return True
    if not isinstance(statement, ast.Assign):
        return False
    value = statement.value
    parts = value.elts if isinstance(value, ast.Tuple) else [value]
    while any(isinstance(part, ast.Subscript) for part in parts):
        parts = [part.value if isinstance(part, ast.Subscript) else part for part in parts]
    return all(
        isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name)
        and part.value.id == ctx for part in parts
    )  # fmt: skip


def returned_name(method: Method, number: int, position: int) -> str | None:
    """The variable that a return statement has at a position; None for any other expression."""
    value = method.returns[number].value
    if isinstance(value, ast.Tuple):
        early = value.elts[: position + 1]
        plain = len(early) == position + 1 and not any(isinstance(e, ast.Starred) for e in early)
        value = early[position] if plain else None
    elif position:
        return None
    return value.id if isinstance(value, ast.Name) else None


def saving(method: Method, names: Sequence[str]) -> list[Edit] | None:
    """Edits that save ``names`` too, in the only call of ``save_for_backward`` or in a new one."""
    calls = [
        node for node in own_nodes(method.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        and node.func.attr == "save_for_backward"
    ]  # fmt: skip
    if not calls and parameters(method):
        call = f"{parameters(method)[0]}.save_for_backward({', '.join(names)})"
        return at_start(method, [call])
    if len(calls) != 1 or not calls[0].args:
        return None
    return [_after(calls[0].args[-1], "".join(f", {name}" for name in names))]


def saves(method: Method) -> bool:
    """Does it call ``save_for_backward``?"""
    return any(
        isinstance(node, ast.Attribute) and node.attr == "save_for_backward"
        for node in own_nodes(method.tree)
    )


def unpacking(method: Method, names: Sequence[str], *, others: bool) -> list[Edit] | None:
    """Edits that read ``names`` too, in the only ``a, b = ctx.saved_tensors`` or in a new one.

    ``others``: other tensors are saved before them.
    """
    saved = ("saved_tensors", "saved_variables")
    reads = [
        node for node in own_nodes(method.tree)
        if isinstance(node, ast.Attribute) and node.attr in saved
    ]  # fmt: skip
    found = [
        node.targets[0] for node in own_nodes(method.tree)
        if isinstance(node, ast.Assign) and node.value in reads
    ]  # fmt: skip
    if not reads and parameters(method):
        target = ", ".join(["*_", *names] if others else names)
        target = f"({target},)" if len(names) == 1 and not others else target
        return at_start(method, [f"{target} = {parameters(method)[0]}.saved_tensors"])
    if len(found) != 1 or not isinstance(found[0], (ast.Tuple, ast.List)):
        return None
    return [_after(found[0].elts[-1], "".join(f", {name}" for name in names))]


def at_start(method: Method, lines: Sequence[str]) -> list[Edit] | None:
    """Edits that insert lines at the start; None where the body shares the line of the def."""
    body = method.tree.body
    first = body[1] if _is_docstring(body[0]) and len(body) > 1 else body[0]
    indent = method.free_at(first.lineno, first.col_offset)
    return None if indent is None else _inserted(first, indent, lines)


def _after(node: ast.expr, text: str) -> Edit:
    at = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
    return Edit(at, at, text)


# -- results


def _factory(method: Method, given: Sequence[str], note: tuple[str, str] | None = None) -> CodeType:
    """Code that defines ``make(*given)``, which returns the decorated method.

    ``note``: names of two functions, ``note`` and ``locals``.  With them each return statement
    returns ``note(number, locals(), value)``.
    """
    definition = method.parsed()
    for number, statement in enumerate(_returns(definition) if note else ()):
        assert note is not None
        own = statement.value or ast.Constant(None)
        statement.value = ast.Call(
            ast.Name(note[0], ast.Load()),
            [ast.Constant(number), ast.Call(ast.Name(note[1], ast.Load()), [], []), own], [],
        )  # fmt: skip
    make = ast.parse(
        f"def make({', '.join([*given, *(note or ())])}):\n    return {definition.name}"
    ).body[0]
    assert isinstance(make, ast.FunctionDef)
    make.body.insert(0, ast.increment_lineno(definition, method.first - 1))
    with unwarned():
        return compile(ast.fix_missing_locations(ast.Module([make], [])), method.file, "exec")


def changed(
    function: AnyFunction, methods: Mapping[str, Method], note: Note | None = None
) -> AnyFunction | None:
    """The Function with other methods; None where one of them cannot be compiled.

    ``note``: called whenever one of them returns, with the number of the return statement, the
    local variables and the value; it returns the value.
    """
    found = class_of(function)
    members: dict[str, Any] = {"__module__": found.__module__, "__doc__": found.__doc__}
    for name, method in methods.items():
        made = _compiled(found, name, method, note)
        if made is None:
            return None
        members[name] = made
    if found.symgrad_rewritten is not None:
        rule: AnyFunction = found.symgrad_rewritten(members["backward"].__func__)
        return rule
    kind: Any = type(found.__name__, (found,), members)
    if isinstance(function, type):
        return kind  # type: ignore[no-any-return]
    instance = object.__new__(kind)
    instance.__dict__.update(function.__dict__)
    return instance  # type: ignore[no-any-return]


def _compiled(found: type[Function], name: str, method: Method, note: Note | None) -> Any:
    """The method as a member of a class; None where it cannot be compiled."""
    wrapped = inspect.getattr_static(found, name)
    plain = inspect.unwrap(raw_method(found, name)[0])
    cells = plain.__closure__ or ()
    try:
        closed = dict(
            zip(plain.__code__.co_freevars, (c.cell_contents for c in cells), strict=True)
        )
        names = (_NOTE, _LOCALS) if note is not None else None
        scope: dict[str, Any] = {}
        exec(_factory(method, list(closed), names), plain.__globals__, scope)
        extra = {_NOTE: note, _LOCALS: locals} if note is not None else {}
        made = scope["make"](**closed, **extra)
    except Exception:  # decorators and names of the class's body may be out of reach
        return None
    if isinstance(made, (staticmethod, classmethod)):
        return made
    kind = type(wrapped)
    return kind(made) if kind in (staticmethod, classmethod) else made


def _as_stored(file: str, known: Sequence[str]) -> list[str]:
    """The lines of a file with the ends that they have there, which Python reads as newlines.

    ``known``: the lines as Python reads them; they stand where the file has changed since, where
    it cannot be read, and where a line ends as ``patch`` does not know it.
    """
    try:
        with open(file, "rb") as stream:
            encoding, _ = tokenize.detect_encoding(stream.readline)
        with open(file, encoding=encoding, newline="") as stored:
            lines = stored.readlines()
    except (OSError, SyntaxError, UnicodeDecodeError):
        return list(known)
    plain = [line.replace("\r\n", "\n") for line in lines]
    if plain and not plain[-1].endswith("\n"):
        plain[-1] += "\n"
    return lines if plain == list(known) else list(known)


def difference(changed: Sequence[tuple[Method, Method]]) -> str:
    """A unified diff of the file of all methods; empty where it cannot be read.

    Lines end as they do in the file, which ``patch`` asks for.
    """
    files = {old.file for old, _ in changed}
    if len(files) != 1:
        return ""
    (file,) = files
    known = linecache.getlines(file)
    before = _as_stored(file, known)
    after = list(before)
    for old, new in sorted(changed, key=lambda pair: pair[0].first, reverse=True):
        start = old.first - 1
        if tuple(known[start : start + len(old.lines)]) != old.lines:
            return ""
        end = before[start][len(before[start].rstrip("\r\n")) :] or "\n"
        after[start : start + len(old.lines)] = [
            line.removesuffix("\n") + (end if line.endswith("\n") else "") for line in new.lines
        ]
    name = os.path.relpath(file) if os.path.isabs(file) else file
    name = (file if name.startswith("..") else name).replace(os.sep, "/").lstrip("/")
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        for line in difflib.unified_diff(before, after, f"a/{name}", f"b/{name}")
    )
