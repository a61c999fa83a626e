"""What a proof was about, as digests: both sides of every gradient in normal form.

In: a traced Function.  Out: SHA-256 of canonical text, for the manifest of a package.

Contractions are cut where there are some, as in the first stage of the proof.  Where both digests
of a gradient are equal, its two sides have the same normal form, term by term; a later stage of
the proof may have been needed where they are not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from symgrad.budgets import DIGEST_WORK
from symgrad.errors import SymgradError
from symgrad.ir.expr import Expr
from symgrad.ir.function import FunctionGraphs
from symgrad.ir.graph import Node
from symgrad.ir.printer import graph_text
from symgrad.proof.judge.decide import Proving, proving
from symgrad.proof.normal.atoms import Atom, Undecided
from symgrad.proof.normal.context import Proof
from symgrad.proof.normal.from_expr import Conversion
from symgrad.proof.normal.poly import Poly
from symgrad.proof.normal.rules import RULES
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.verify import subject_of


@dataclass(frozen=True)
class Sides:
    """Digests of the hand-written gradient and of the true one; None where one is too large."""

    hand: str | None
    true: str | None


def forward_digest(graphs: FunctionGraphs) -> str:
    """Of the traced forward: what each output is computed from."""
    return _of_results(
        graphs, lambda case: dict(zip(case.output_names, case.outputs, strict=True))
    )  # fmt: skip


def backward_digest(graphs: FunctionGraphs) -> str:
    """Of the traced backward: what each gradient is computed from, None for what has none."""
    return _of_results(
        graphs, lambda case: {one.input: one.node for one in case.gradients if one.node is not None}
    )  # fmt: skip


def normal_forms(graphs: FunctionGraphs) -> dict[str, Sides]:
    """Digests of both sides, by input; cases of sizes one after another."""
    declared = graphs.assumptions
    hand: dict[str, list[str | None]] = {}
    true: dict[str, list[str | None]] = {}
    for case in graphs.cases:
        if case.problem is not None:
            continue
        subject = subject_of(case, declared)
        for name, sides in _case(subject).items():
            hand.setdefault(name, []).append(sides.hand)
            true.setdefault(name, []).append(sides.true)
    return {name: Sides(_joined(hand[name]), _joined(true[name])) for name in hand}


def _of_results(graphs: FunctionGraphs, results: Any) -> str:
    texts = []
    for case in graphs.cases:
        found: Mapping[str, Node] = results(case)
        conditions = " and ".join(map(str, case.conditions))
        text = graph_text(case.graph, found) if found else "nothing\n"
        texts.append(f"if {conditions or 'always'}\n{text}")
    return _digest("".join(texts))


def _case(subject: Subject) -> dict[str, Sides]:
    try:
        ready = proving(subject, DIGEST_WORK)
    except SymgradError:
        return {name: Sides(None, None) for name in subject.gradients}
    return {name: _sides(ready, name) for name in subject.gradients}


def _sides(ready: Proving, name: str) -> Sides:
    prover = ready.prover
    try:
        goal = prover.goal(name, [*prover.contractions, *prover.atoms], DIGEST_WORK)
    except SymgradError:
        return Sides(None, None)
    context = Proof(RULES, ready.facts, budget=2 * DIGEST_WORK)
    conversion = Conversion(context, goal.define)
    return Sides(_normal(conversion, goal.hand), _normal(conversion, goal.reference))


def _normal(conversion: Conversion, expr: Expr | None) -> str | None:
    """One side; both are read in one context, so that equal ones have equal names inside."""
    if expr is None:
        return _digest("sum()")
    try:
        return _canonical(conversion.poly(expr))
    except (Undecided, SymgradError):
        return None


def _canonical(poly: Poly) -> str:
    """The digest of a polynomial, made of those of its atoms; their order is by digest."""
    known: dict[int, str] = {}
    stack: list[Any] = [poly]
    while stack:
        item = stack[-1]
        missing = [part for part in _parts(item) if id(part) not in known]
        if missing:
            stack += missing
            continue
        stack.pop()
        known[id(item)] = _digest(_spelled(item, known))
    return known[id(poly)]


def _parts(item: Any) -> list[Any]:
    """The polynomials and atoms right inside one."""
    if isinstance(item, Poly):
        return [atom for monomial in item.terms for atom, _ in monomial]
    return _nested(item.data) if isinstance(item, Atom) else []


def _nested(data: Any) -> list[Any]:
    if isinstance(data, (Atom, Poly)):
        return [data]
    if isinstance(data, (tuple, frozenset)):
        return [found for part in data for found in _nested(part)]
    return []


def _spelled(item: Any, known: Mapping[int, str]) -> str:
    if isinstance(item, Poly):
        terms = [
            f"{value}*{'*'.join(sorted(f'{known[id(a)]}^{e}' for a, e in monomial))}"
            for monomial, value in item.terms.items()
        ]
        return f"sum({' + '.join(sorted(terms))})"
    assert isinstance(item, Atom)
    return f"{item.kind}{_data(item.data, known)}"


def _data(data: Any, known: Mapping[int, str]) -> str:
    if isinstance(data, (Atom, Poly)):
        return known[id(data)]
    if isinstance(data, frozenset):
        return f"{{{', '.join(sorted(_data(part, known) for part in data))}}}"
    if isinstance(data, tuple):
        return f"({', '.join(_data(part, known) for part in data)})"
    return repr(data) if isinstance(data, str) else str(data)


def _joined(digests: list[str | None]) -> str | None:
    """One digest for all cases; that of the only one where there is one."""
    known = [digest for digest in digests if digest is not None]
    if len(known) < len(digests):
        return None
    return known[0] if len(known) == 1 else _digest(" ".join(known))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
