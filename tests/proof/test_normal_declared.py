"""Functions of which only the derivative is declared, in the normal form."""

from __future__ import annotations

from typing import Any

import pytest
import sympy

from symgrad.proof.normal.atoms import Undecided
from symgrad.proof.normal.context import Proof
from symgrad.proof.normal.from_expr import apply_body
from symgrad.proof.normal.functions import apply
from symgrad.proof.normal.poly import Poly, constant
from symgrad.proof.normal.rules import RULES
from symgrad.proof.scalars import bodies, uninterpreted
from symgrad.proof.scalars.symbolic import as_term


def _known(name: str) -> Any:
    kind = type(
        bodies.PREFIX + name, (sympy.Function,),
        {"nargs": 1, "fdiff": lambda self, argindex=1: self.args[0] ** 2},
    )  # fmt: skip
    uninterpreted.declare(name, kind, lambda x: x**3 / 3)
    return kind


def _value(context: Proof, kind: Any, argument: Poly) -> Poly:
    x = sympy.Symbol("x", real=True)
    return apply_body(context, as_term(kind(x)), {as_term(x): argument})


def test_it_is_an_atom_of_its_argument() -> None:
    """[rule: declared-derivative]: equal arguments make equal atoms, nothing else is known."""
    kind = _known("declared_for_a_test")
    try:
        context = Proof(RULES)
        two, minus = constant(2), constant(-2)
        assert _value(context, kind, two) == _value(context, kind, two)
        assert _value(context, kind, two) != _value(context, kind, minus)
        assert _value(context, kind, two) + _value(context, kind, minus) != constant(0)
        assert _value(context, kind, constant(0)) != constant(0)
    finally:
        uninterpreted.withdraw("declared_for_a_test")
    with pytest.raises(Undecided, match="nothing is known"):
        apply(Proof(RULES), "custom_declared_for_a_test", constant(2))
