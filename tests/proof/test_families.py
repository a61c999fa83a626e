"""For which sizes and indices a polynomial is shown not to vanish identically."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symgrad.proof.judge.exceptional import exceptional_sizes
from symgrad.proof.judge.families import Families
from symgrad.proof.judge.witness import discharge, exceptional
from symgrad.proof.normal.context import Obligation, Requirement
from symgrad.proof.normal.facts import Facts, Interval
from symgrad.proof.normal.poly import Poly, of_atom
from symgrad.proof.words.polytext import PolyText
from tests.proof.normal_terms import Standard, Term

REALS = 10
INTEGERS = st.tuples(*[st.integers(-2, 2)] * 3, st.integers(-6, 6))


def exceptions(a: Standard, base: Term, *apart: Term) -> list[Poly] | None:
    return Families(a.context).exceptions(base.poly, tuple(one.poly for one in apart))


def upward(polys: list[Poly] | None) -> set[Poly]:
    """The polynomials up to their signs."""
    assert polys is not None
    return {poly if poly.terms[poly.lead] > 0 else -poly for poly in polys}


def real(a: Standard, number: int) -> Term:
    """Elements that coincide for some indices, sums over all of them, functions of them."""
    choices = [
        lambda: a.x * 0 + 1,
        lambda: a.x,
        lambda: a.at("x", 0),
        lambda: a.at("x", a.n - 1 - a.i),
        lambda: a.y**2,
        lambda: a.exp(a.x),
        lambda: a.apply("sin", a.y),
        lambda: a.sum([a.k], a.at("x", a.k)),
        lambda: a.sum([a.k], a.at("x", a.k) ** 2),
        lambda: a.exp(a.at("y", 0)),
    ]
    assert len(choices) == REALS
    return choices[number]()


def linear(a: Standard, numbers: tuple[int, ...]) -> Term:
    of_n, of_m, of_i, offset = numbers
    return of_n * a.n + of_m * a.m + of_i * a.i + offset


Parts = list[tuple[tuple[int, ...], int]]


@given(st.lists(st.tuples(INTEGERS, st.integers(0, REALS - 1)), min_size=1, max_size=3), INTEGERS)
def test_nothing_vanishes_outside_of_the_exceptions(parts: Parts, factor: tuple[int, ...]) -> None:
    a = Standard()
    base = sum((linear(a, numbers) * real(a, which) for numbers, which in parts), a.x * 0)
    base = base * linear(a, factor)
    found = exceptions(a, base)
    if found is None:
        return
    for n, m in itertools.product(range(1, 6), (1, 3)):
        for i in range(n):
            at, sizes = {"i": i, "j": 0}, {"n": n, "m": m}
            if any(not a.term(one).value(at, **sizes) for one in found):
                continue
            assert any(abs(base.value(at, seed, **sizes)) > 1e-9 for seed in range(4)), (sizes, at)


def table(a: Standard) -> list[tuple[Term, list[Term]]]:
    """Bases, and what is 0 where they vanish identically."""
    n, m, i, x, y = a.n, a.m, a.i, a.x, a.y
    whole = a.sum([a.k], a.at("x", a.k))
    return [
        (n - 29, [n - 29]),
        (n + 29, []),
        (2 * n - 57, []),
        (n * n - 10, []),
        (n * n - 3 * n - 10, [n - 5]),
        ((n - 10) * (n - 20) * x, [n - 20, n - 10]),
        (i - 33, [i - 33]),
        (i + Fraction(1, 2), []),
        (4 * i - 6 * n + 3, []),
        ((n - 7 * m) * (a.exp(x) - 2), [n - 7 * m]),
        ((i - 57) * (x * x - 2), [i - 57]),
        (n * x - 3 * x + n - 3, [n - 3]),
        (n * x - 3 * x + n - 4, []),
        (x - whole / n, [n - 1]),
        (x + a.at("x", n - 1 - i), []),
        (a.exp(y) * (n - 2) + a.exp(a.at("x", 0)), []),
        (a.apply("sin", x) * n - a.apply("sin", x) * 5, [n - 5]),
        (x * a.compare(i, "ge", a.index("l", n)) + y * a.compare(i, "lt", a.index("l", n)), []),
        (a.sum([a.k], a.at("x", a.k) ** 2) ** Fraction(1, 2) - 1, []),
        ((i - 7) * (a.sum([a.k], a.at("x", a.k) ** 2) ** Fraction(1, 2) - x * 2), [i - 7]),
        (a.prod(a.k, a.at("x", a.k) - 2), []),
        (whole * whole - n * a.sum([a.k], a.at("x", a.k) ** 2), [n - 1]),
    ]


@pytest.mark.parametrize("number", range(len(table(Standard()))))
def test_the_exceptions_are_found(number: int) -> None:
    a = Standard()
    base, expected = table(a)[number]
    found = exceptions(a, base)
    assert upward(found) == upward([one.poly for one in expected])


def test_what_is_declared_of_sizes_and_elements_counts() -> None:
    a = Standard(Facts(least_sizes={"n": 2}, intervals={"x": Interval(low=Fraction(3))}))
    assert exceptions(a, a.n - 1) == []
    assert exceptions(a, a.x - 1) == []
    short = a.index("s", 4)
    assert exceptions(a, short - 4) == []
    assert exceptions(a, short - 3) == [(short - 3).poly]


def test_elements_that_are_apart() -> None:
    a = Standard()
    difference = a.exp(a.at("x", a.k)) - a.exp(a.at("x", a.l))
    assert exceptions(a, difference, a.k - a.l) == []
    assert upward(exceptions(a, difference)) == upward([(a.k - a.l).poly])


def test_nothing_is_shown_of_what_vanishes_or_has_pieces() -> None:
    a = Standard()
    relu = a.positive(a.x) * a.x
    assert exceptions(a, a.x * 0) is None
    assert exceptions(a, relu + a.at("x", 0)) is None
    assert exceptions(a, relu + a.y) == []


def test_a_function_with_branches_needs_a_connected_domain() -> None:
    """atan(x) + atan(1/x) is constant on each side of 0, and not the same on both."""
    a = Standard()
    turned = a.apply("atan", a.x) + a.apply("atan", 1 / a.x) - 2 * a.apply("atan", a.x * 0 + 1)
    assert exceptions(a, turned) is None
    root = a.at("x", a.i) ** 2 + a.y
    rest = a.log(root * root - 3) - a.log(root) - 1
    assert exceptions(a, rest) is None
    root = a.sum([a.k], a.at("x", a.k) ** 2) ** Fraction(1, 2) - a.sum([a.k], a.at("x", a.k))
    assert exceptions(a, root) == [(a.n - 1).poly]
    assert exceptions(a, a.exp(1 / a.x) - 3) == []


def test_an_element_of_a_cut_node_is_what_it_is_computed_from() -> None:
    """A row sum that was cut, less the same row sum: only the size is left."""
    a = Standard()
    cut, whole = a.leaf("%7", a.i), a.sum([a.j], a.at("x", a.i, a.j))
    base = cut - whole + a.n - 29
    where = of_atom(next(iter(a.i.poly.free)))
    known = Families(a.context, lambda context, name: ((where,), whole.poly))
    assert known.exceptions(base.poly) == [(a.n - 29).poly]
    assert exceptions(a, base) is None


def test_what_is_not_shown_is_printed() -> None:
    a = Standard()
    relu = a.positive(a.x) * a.x
    paid = discharge(Obligation("inverse", relu.poly, piecewise=True), Families(a.context), TEXT)
    assert paid.nonzero
    assert not paid.conditions
    paid = discharge(Obligation("inverse", (a.x * (a.n - 29)).poly), Families(a.context), TEXT)
    assert not paid.conditions
    said = exceptional(paid.exceptions, [], a.context, TEXT)
    assert [str(one) for one in said] == ["n == 29"]
    positive = Requirement("log", ">", ((a.n - 29) * a.y).poly)
    assert exceptional(paid.exceptions, [positive], a.context, TEXT) == []
    owed = Obligation("inverse", (a.n * a.x - a.x * a.n).poly)
    assert discharge(owed, Families(a.context), TEXT).problem


TEXT = PolyText()


def test_sizes_at_which_a_polynomial_is_zero() -> None:
    a = Standard()
    far = a.n - 15 - 16 * a.floordiv(a.n, 16)
    for base in (a.n - 29, a.i - 33, a.n - 7 * a.m, a.i - a.j - 19, far, a.n * a.n - 49):
        found = exceptional_sizes([base.poly], a.context.facts)
        assert found
        for sizes in found:
            whole = {"n": 1, "m": 1, **sizes}
            places = itertools.product(range(whole["n"]), range(whole["m"]))
            assert any(not base.value({"i": i, "j": j}, **whole) for i, j in places)
    assert not exceptional_sizes([(a.n + 1).poly], a.context.facts)
