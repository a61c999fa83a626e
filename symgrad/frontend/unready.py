"""A ``raise`` or an ``assert`` of Python code that asks nothing about the call it is met in.

In: what backward raised.  Out: whether a set-up is missing, as where no process group is
initialised: that says nothing of the gradient.

What a ``raise`` depends on is the nearest of: its own ``assert``, what stands before it and leaves,
the ``if`` that it stands in.  Where its function has none of these, it is the same of the call of
that function.  A parameter depends on the call where it is given what does, and so does what is
assigned from it.  What cannot be read depends on the call.
"""

from __future__ import annotations

import ast
import dis
import inspect
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import CodeType, TracebackType

from symgrad.frontend.source_text import source_text

_Def = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class _Place:
    """A line of a function that was left by an error.

    ``path``: the statements around it, from the function on, empty where it cannot be read;
    ``depends``: the names that depend on the call.
    """

    path: tuple[ast.AST, ...]
    depends: frozenset[str]


def lacks_setup(error: BaseException) -> bool:
    """Does a ``raise`` or an ``assert`` give it up for what no call has to do with?"""
    trace = error.__traceback__
    places: list[_Place] = []
    outer: _Place | None = None
    raised = False
    while trace is not None:
        frame = trace.tb_frame
        if (frame.f_globals.get("__name__") or "").partition(".")[0] == "symgrad":
            outer, raised = None, False
        else:
            outer = _place(trace, outer, places)
            places.append(outer)
            raised = is_raise(frame.f_code, trace.tb_lasti)
        trace = trace.tb_next
    if not raised:
        return False
    for place in reversed(places):
        asked = list(_asked(place.path, own=place is places[-1]))
        if asked or not place.path:
            return bool(asked) and place.depends.isdisjoint(set().union(*map(_names, asked)))
    return False


def is_raise(code: CodeType, at: int) -> bool:
    """Is there a ``raise`` at an instruction?"""
    return any(
        one.offset == at and one.opname == "RAISE_VARARGS" for one in dis.get_instructions(code)
    )


def _place(trace: TracebackType, outer: _Place | None, before: Iterable[_Place]) -> _Place:
    """Where an error left a function that was called from ``outer``; None: by something else."""
    code = trace.tb_frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    every = frozenset(code.co_varnames[:count])
    given = every if outer is None else _given(outer, code, every)
    given = given.union(*(one.depends.intersection(code.co_freevars) for one in before))
    function = _function(code)
    if function is None:
        return _Place((), every)
    own = {*code.co_varnames, *code.co_cellvars, *code.co_freevars} - _imported(function)
    return _Place(_path(function, trace.tb_lineno), _dependent(function, given, own))


def _function(code: CodeType) -> _Def | None:
    """What defines it, with the numbers of its lines; None where it is not found."""
    try:
        tree = ast.parse(source_text(code))
    except (OSError, TypeError, SyntaxError):
        return None
    found = tree.body[0]
    if not isinstance(found, _Def) or found.name != code.co_name:
        return None
    ast.increment_lineno(found, code.co_firstlineno - 1)
    return found


def _path(function: _Def, line: int) -> tuple[ast.AST, ...]:
    """The statements, and handlers and cases of such, that a line stands in."""
    path: list[ast.AST] = [function]
    while True:
        inner = [
            one for one in _blocks(path[-1])
            if one.lineno <= line <= (one.end_lineno or one.lineno)
            and (path[-1] is function or not isinstance(path[-1], (_Def, ast.ClassDef)))
        ]  # fmt: skip
        if not inner:
            return tuple(path)
        path.append(inner[0])


def _blocks(node: ast.AST) -> Iterator[ast.stmt | ast.excepthandler]:
    """The statements and handlers right inside of one; of a ``match`` those of its cases."""
    for one in ast.iter_child_nodes(node):
        if isinstance(one, (ast.stmt, ast.excepthandler)):
            yield one
        elif isinstance(one, ast.match_case):
            yield from one.body


def _asked(path: tuple[ast.AST, ...], *, own: bool) -> Iterator[ast.AST]:
    """The nearest conditions of the last statement of a path; of an ``assert`` its ``own``."""
    for at in range(len(path) - 1, 0, -1):
        inner, outer = path[at], path[at - 1]
        found: list[ast.AST] = []
        if own and isinstance(inner, ast.Assert):
            found = [inner.test]
            own = False
        if not any(map(_names, found)):
            found = [test for one in _before(inner, outer) for test in _leaving(one)]
        if not any(map(_names, found)):
            found = _around(path[: at + 1])
        found = [one for one in found if _names(one) or isinstance(one, ast.stmt)]
        if found:
            yield from found
            return


def _before(inner: ast.AST, outer: ast.AST) -> list[ast.stmt]:
    """The statements of the same block before one."""
    cases = outer.cases if isinstance(outer, ast.Match) else [outer]
    for block in (getattr(one, name, []) for one in cases
                  for name in ("body", "orelse", "finalbody")):  # fmt: skip
        if inner in block:
            found: list[ast.stmt] = block[: block.index(inner)]
            return found
    return []


def _leaving(statement: ast.stmt) -> Iterator[ast.AST]:
    """What is asked before a statement leaves the block, or the function."""
    for one in ast.walk(statement):
        if isinstance(one, (ast.If, ast.While)) and any(
            isinstance(part, (ast.Return, ast.Raise, ast.Break, ast.Continue))
            for part in ast.walk(one)
        ):
            yield one.test


def _around(path: tuple[ast.AST, ...]) -> list[ast.AST]:
    """What the statement before the last of a path asks before it comes to the last."""
    inner, outer = path[-1], path[-2]
    if isinstance(outer, ast.If):
        found: list[ast.AST] = [outer.test]
        for above in reversed(path[:-2]):  # an else after more than one question
            if inner not in getattr(outer, "orelse", []) or getattr(above, "orelse", 0) != [outer]:
                break
            if isinstance(above, ast.If):
                found.append(above.test)
            inner, outer = outer, above
        return found
    if isinstance(outer, ast.While):
        return [outer.test]
    if isinstance(outer, (ast.For, ast.AsyncFor)):
        return [outer.iter]
    if isinstance(outer, ast.Match):
        return [outer.subject]
    if isinstance(inner, ast.excepthandler) and isinstance(outer, ast.Try):
        return [*outer.body]
    return []


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _imported(function: _Def) -> set[str]:
    return {
        (one.asname or one.name).partition(".")[0] for statement in ast.walk(function)
        if isinstance(statement, (ast.Import, ast.ImportFrom)) for one in statement.names
    }  # fmt: skip


def _dependent(function: _Def, given: Iterable[str], own: set[str]) -> frozenset[str]:
    """The names of a function that depend on what these parameters are; ``own``: all but globals.

    What is assigned more than once depends on what is asked before it is.
    """
    flows = list(_flows(function))
    found = set(given)
    while True:
        more = {name for target, source in flows if not found.isdisjoint(source) for name in target}
        if more.intersection(own) <= found:
            return frozenset(found)
        found |= more.intersection(own)


def _flows(function: _Def) -> Iterator[tuple[set[str], set[str]]]:
    """Names that something is put into, and those that it is made of, or is chosen by."""
    every = Counter([*_stored(function), *(one.arg for one in ast.walk(function.args)
                                           if isinstance(one, ast.arg))])  # fmt: skip
    for one in ast.walk(function):
        if isinstance(one, ast.Assign):
            yield set().union(*map(_names, one.targets)), _names(one.value)
        elif isinstance(one, (ast.AugAssign, ast.AnnAssign, ast.NamedExpr)):
            yield _names(one.target), _names(one.value) if one.value else set()
        elif isinstance(one, (ast.For, ast.AsyncFor, ast.comprehension)):
            yield _names(one.target), _names(one.iter)
        elif isinstance(one, ast.withitem) and one.optional_vars is not None:
            yield _names(one.optional_vars), _names(one.context_expr)
        elif isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute):
            yield _names(one.func), _names(one)
        if isinstance(one, (ast.If, ast.While)):
            more = {name for name in _stored(one) if every[name] > 1}
            yield more, _names(one.test)


def _stored(node: ast.AST) -> list[str]:
    """The names that something is put into, as often as it is."""
    return [
        one.id for one in ast.walk(node)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    ]  # fmt: skip


def _given(outer: _Place, code: CodeType, every: frozenset[str]) -> frozenset[str]:
    """The parameters that are given what depends on the call; all where no call is found."""
    calls = [
        one for one in ast.walk(outer.path[-1]) if isinstance(one, ast.Call)
        and getattr(one.func, "attr", getattr(one.func, "id", "")) == code.co_name
    ] if outer.path else []  # fmt: skip
    if not calls:
        return every
    return frozenset().union(*(_given_by(one, outer.depends, code, every) for one in calls))


def _given_by(
    call: ast.Call, depends: frozenset[str], code: CodeType, every: frozenset[str]
) -> frozenset[str]:
    """The same for one call."""
    parameters = code.co_varnames[: code.co_argcount]
    named = {one.arg or "**": one.value for one in call.keywords}
    given: list[ast.expr] = [*call.args]
    if isinstance(call.func, ast.Attribute) and parameters[:1] in (("self",), ("cls",)):
        given.insert(0, call.func.value)
    found = {name for name, part in named.items() if not depends.isdisjoint(_names(part))}
    places = {at for at, part in enumerate(given) if not depends.isdisjoint(_names(part))}
    spread = places and any(isinstance(one, ast.Starred) for one in given)
    if spread or not found <= every or max(places, default=-1) >= len(parameters):
        return every  # *args or **kwargs
    return frozenset({*found, *(parameters[at] for at in places)})
