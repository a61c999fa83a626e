"""Terms stand for sympy: the tables are sympy's, and records say the same of terms."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import mpmath
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

import symgrad.ops  # noqa: F401  (registers them)
from symgrad.ir.registry import in_order
from symgrad.ops.record import Constraint, Kink, Op, get, is_own
from symgrad.proof.normal.factor import _factor_shape, prime_powers
from symgrad.proof.scalars import bodies, symbolic, tables, terms, values
from symgrad.proof.scalars.terms import OPERANDS, Term, linear, term

OWN = [op for op in map(get, in_order()) if is_own(op)]


def test_tables_are_what_sympy_says() -> None:
    text = symbolic.tables()
    found: dict[str, Any] = {}
    exec(text, found)
    assert found["MEANINGS"] == tables.MEANINGS, "run `python -m symgrad regen`"
    assert found["FUNCTIONS"] == tables.FUNCTIONS, "run `python -m symgrad regen`"
    assert found["CONSTANTS"] == tables.CONSTANTS, "run `python -m symgrad regen`"
    assert set(tables.MEANINGS) == {op.name for op in OWN}


@pytest.mark.parametrize("op", OWN, ids=lambda op: op.name)
def test_terms_are_coded_and_decoded(op: Op) -> None:
    arity = op.arity or 1
    for found in (symbolic.body(op, arity), symbolic.partial(op, arity, 0)):
        same = symbolic.as_term(found)
        assert terms.decoded(terms.encoded(same)) == same


@pytest.mark.parametrize("op", OWN, ids=lambda op: op.name)
def test_texts_are_the_functions_that_sympy_makes(op: Op) -> None:
    arity = op.arity or 1
    expressions = [symbolic.body(op, arity)]
    expressions += [symbolic.partial(op, arity, place) for place in range(arity)]
    with mpmath.workdps(30):
        for expression, (_, text) in zip(expressions, tables.MEANINGS[op.name], strict=True):
            if text is None:
                continue
            ours, theirs = values.function_of(text, arity), symbolic.lambdified(expression, arity)
            for point in product(map(mpmath.mpf, ("-2.5", "-1", "0", "0.25", "1.5")), repeat=arity):
                one, other = ours(*point), theirs(*point)
                assert one == other or (mpmath.isnan(one) and mpmath.isnan(other)), point


NUMBERS = [None, Fraction(-2), Fraction(-1, 2), Fraction(0), Fraction(1, 2), Fraction(3)]


@pytest.mark.parametrize("op", OWN, ids=lambda op: op.name)
def test_constraints_and_kinks_say_the_same_of_terms(op: Op) -> None:
    scalar = op.scalar
    assert scalar is not None
    constraints, arity = (*scalar.domain, *(scalar.defined or ())), op.arity or 1
    cases: list[tuple[Constraint | Kink, Sequence[Fraction | None]]] = [
        *product(constraints, product(NUMBERS, repeat=arity)),
        *((kink, [None] * arity) for kink in scalar.kinks),
    ]
    for record, numbers in cases:
        operands = tuple(
            symbol if number is None else term(number)
            for symbol, number in zip(OPERANDS, numbers, strict=False)
        )
        wanted = symbolic.of_operands(record.expression, operands)
        found = bodies.of_operands(op, record.expression, operands)
        assert found.is_number == wanted.is_number
        assert sympy.simplify(symbolic.as_sympy(found) - symbolic.as_sympy(wanted)) == 0
        assert (found in OPERANDS) == (wanted in OPERANDS)


SMALL = st.fractions(-3, 3, max_denominator=4)
EXPRESSIONS = st.recursive(
    st.one_of(SMALL.map(term), st.sampled_from(OPERANDS[:1])),
    lambda inner: st.one_of(
        st.builds(lambda a, b: a + b, inner, inner), st.builds(lambda a, b: a * b, inner, inner),
        st.builds(lambda a, b: a - b, inner, inner), inner.map(lambda a: a**2),
    ),
    max_leaves=6,
)  # fmt: skip


@given(EXPRESSIONS)
def test_linear_terms_are_linear(found: Term) -> None:
    straight = linear(found, OPERANDS[0])
    x = symbolic.SYMBOLS[0]
    poly = sympy.Poly(symbolic.as_sympy(found), x)
    if straight is not None:
        slope, offset = (sympy.Rational(*one.as_integer_ratio()) for one in straight)
        assert slope != 0
        assert poly == sympy.Poly(slope * x + offset, x)


@given(SMALL.filter(bool), SMALL)
def test_a_line_is_seen_to_be_one(slope: Fraction, offset: Fraction) -> None:
    x = OPERANDS[0]
    for found in (x * term(slope) + term(offset), term(offset) - x * term(-slope)):
        assert linear(found, x) == (slope, offset)


@pytest.mark.parametrize(("name", "code", "digits"), tables.CONSTANTS, ids=str)
def test_constants_are_numbers(name: str, code: terms.Code, digits: str) -> None:
    with mpmath.workdps(40):
        found, known = values.number(terms.decoded(code)), mpmath.mpf(digits)
        assert abs(found - known) <= mpmath.mpf(10) ** -38 * known
        named = sympy.sympify(name, {"e": sympy.E})
        assert abs(mpmath.mpf(str(sympy.N(named, 40))) - known) <= mpmath.mpf(10) ** -38 * known


POLYNOMIALS = st.dictionaries(
    st.tuples(st.integers(0, 2), st.integers(0, 2)), st.integers(-4, 4).filter(bool),
    min_size=1, max_size=3,
)  # fmt: skip


@given(st.lists(POLYNOMIALS, min_size=1, max_size=3))
def test_factors_are_those_of_sympy(factors: list[dict[tuple[int, int], int]]) -> None:
    symbols = sympy.symbols("z0 z1")
    whole = sympy.Poly(1, *symbols, domain="ZZ")
    for one in factors:
        whole *= sympy.Poly(one, *symbols, domain="ZZ")
    _, whole = whole.primitive()
    shape = tuple(sorted((tuple(map(int, row)), int(value)) for row, value in whole.terms()))
    found = _factor_shape(shape)
    _, parts = whole.factor_list()
    if found is None:
        assert sum(times for _, times in parts) <= 1
        return
    sign, own = found
    theirs = [
        (tuple(sorted((tuple(row), int(value)) for row, value in part.terms())), times)
        for part, times in parts
    ]
    assert sorted(own) == sorted(theirs)
    again = sympy.Poly(sign, *symbols, domain="ZZ")
    for rows, times in own:
        again *= sympy.Poly(dict(rows), *symbols, domain="ZZ") ** times
    assert again == whole


@given(st.integers(1, 10**12))
def test_integers_are_the_products_of_their_primes(value: int) -> None:
    assert dict(prime_powers(Fraction(value))) == sympy.factorint(value)
