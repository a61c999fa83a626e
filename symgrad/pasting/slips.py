"""A backward that raises at one line: what is right without it, and with another name in it.

In: a Function, how it is traced and judged, the line.  Out: what was proved of the Function with
that statement left out, or with one of its names exchanged for another one that is bound there.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from symgrad.budgets import REPAIR_SECONDS, SLIP_TRIES
from symgrad.deadline import TimeUp, check, limited
from symgrad.ir.function import FunctionGraphs
from symgrad.pasting import patch
from symgrad.pasting.patch import Method
from symgrad.proof.report.distinct import distinct
from symgrad.proof.report.records import Condition
from symgrad.proof.report.rendering import supposing

Traced = Callable[[Method], FunctionGraphs | None]
"""The Function with another backward; None where that raises, too."""
Under = Callable[[FunctionGraphs, str], tuple[Condition, ...] | None]
"""What the gradient of an input is PROVED under; None where it is not."""


@dataclass(frozen=True)
class Failure:
    """What is known of a line at which backward raises.

    ``said``: of the gradients that need no repair of their own, what there is to say;
    ``repaired``: backward with another name in that line, with which all of them are PROVED.
    """

    said: Mapping[str, tuple[str, ...]]
    repaired: Method | None = None


def failure(graphs: FunctionGraphs, method: Method, traced: Traced, under: Under) -> Failure | None:
    """What is known of the line at which backward raises; None where that is nothing."""
    places = {case.problem.location for case in graphs.cases if case.problem is not None}
    place = places.pop() if len(places) == 1 else None
    statement = None
    if place is not None and place.file == method.file:
        statement = _statement(method, place.line - method.first + 1)
    if place is None or statement is None:
        return None
    constant = {one.name for one in graphs.assumptions if one.kind == "constant"}
    wanted = [name for name in graphs.differentiable if name not in constant]
    said: dict[str, tuple[str, ...]] = {}
    try:
        with limited(REPAIR_SECONDS):
            for words, changed in _exchanged(method, statement):
                found = _all(traced(changed), wanted, under)
                if found is not None:
                    told = f"{words} in line {place.line}: with that all gradients are PROVED"
                    return Failure(dict.fromkeys(wanted, (told + supposing(found),)), changed)
            left = traced(_without(method, statement))
            for name in wanted:
                rests = None if left is None else under(left, name)
                if rests is not None:
                    told = f"as it is written it is PROVED{supposing(rests)}: it does not need line"
                    said[name] = (f"{told} {place.line}, which fails",)
    except TimeUp:
        check()  # was it the limit of the verdict?
    return Failure(said) if said else None


def _all(
    graphs: FunctionGraphs | None, wanted: Iterable[str], under: Under
) -> tuple[Condition, ...] | None:
    """What all gradients are PROVED under; None where one is not."""
    said: list[Condition] = []
    for name in wanted:
        rests = None if graphs is None else under(graphs, name)
        if rests is None:
            return None
        said += rests
    return distinct(said)


def _statement(method: Method, row: int) -> ast.Assign | ast.Return | None:
    """The assignment to a variable, or the return, that a line is part of."""
    for node in ast.walk(method.tree):
        if not isinstance(node, (ast.Assign, ast.Return)) or node.value is None:
            continue
        if node.lineno <= row <= (node.end_lineno or node.lineno):
            return node
    return None


def _without(method: Method, statement: ast.Assign | ast.Return) -> Method:
    """The method with nothing where a statement computes something."""
    if isinstance(statement, ast.Return) or not isinstance(statement.targets[0], ast.Name):
        return method
    assert statement.value is not None
    return method.edited([patch.replacement(statement.value, "None")])


def _exchanged(method: Method, statement: ast.Assign | ast.Return) -> Iterator[tuple[str, Method]]:
    """The method with another name in the statement, and which is which."""
    for old, new in islice(_choices(method, statement), SLIP_TRIES):
        yield f"`{old.id}` should be `{new}`", method.edited([patch.replacement(old, new)])


def _choices(method: Method, statement: ast.stmt) -> Iterator[tuple[ast.Name, str]]:
    """A name in a statement and another one, those that are spelled alike first."""
    known = patch.names_before(method, statement.lineno) - {*patch.parameters(method)[:1]}
    used = [
        node for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in known
    ]  # fmt: skip
    pairs = [(old, new) for old in used for new in sorted(known) if new != old.id]
    yield from sorted(
        pairs, key=lambda pair: -difflib.SequenceMatcher(None, pair[0].id, pair[1]).ratio()
    )
