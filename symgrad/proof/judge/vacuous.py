"""Is there an input that meets what is stated?  A verdict on no input at all would be none.

In: a ``Subject``.  Out: ``SpecError`` where it is shown that there is none; whether there is one
that can be found, sampling shows.
"""

from __future__ import annotations

from symgrad.errors import SpecError
from symgrad.proof.judge.equality import facts_of
from symgrad.proof.judge.ranges import Ranges, of_inputs
from symgrad.proof.judge.stated import with_relations
from symgrad.proof.normal.algebra import is_nonnegative, is_positive
from symgrad.proof.normal.atoms import Undecided
from symgrad.proof.normal.context import Proof
from symgrad.proof.normal.from_expr import Conversion
from symgrad.proof.normal.rules import RULES
from symgrad.proof.normal.stated import Template
from symgrad.proof.oracle.subject import Subject


def check(subject: Subject) -> None:
    """Raises SpecError where no input meets the relations of a subject, whatever the others say."""
    if not subject.relations:
        return
    facts = facts_of(
        subject.assumptions, subject.sampler.uses, subject.conditions,
        shapes={name: node.shape for name, node in subject.by_name.items()},
    )  # fmt: skip
    ranges = Ranges(of_inputs(subject, facts), facts.least_sizes)
    for stated in subject.relations:
        if stated.kind not in (">", ">=") or not ranges.filled(stated.node.shape):
            continue  # what has no elements holds
        other = -ranges.of(stated.node)
        if other.positive or (stated.kind == ">" and other.nonnegative):
            raise _nothing(subject)
    known = [
        one for one in subject.relations
        if one.kind in (">", ">=") and ranges.filled(one.node.shape)
    ]  # fmt: skip
    context = Proof(RULES, with_relations(facts, known, {}))
    try:
        Conversion(context).state()
        templates = context.stated
        for one in templates:
            context.stated = tuple(other for other in templates if other is not one)
            context.memo.clear()
            if _fails(context, one):
                raise _nothing(subject)
    except Undecided:
        return


def _fails(context: Proof, one: Template) -> bool:
    return is_positive(context, -one.poly) or (one.strict and is_nonnegative(context, -one.poly))


def _nothing(subject: Subject) -> SpecError:
    sizes = " and ".join(map(str, subject.conditions))
    text = " and ".join(dict.fromkeys(one.text for one in subject.relations))
    return SpecError(
        f"nothing meets {text}{f' where {sizes}' if sizes else ''}",
        hint="a verdict on no input would be none: correct what is stated of the inputs",
    )
