"""Products over part of a range, as scans have them, and chains of order relations."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest

from symgrad.proof.normal.atoms import Atom
from symgrad.proof.normal.numeric import Evaluation, Exact
from symgrad.proof.normal.poly import constant
from symgrad.proof.normal.zero import unchained
from tests.proof.normal_terms import Standard, Term

N = 5


class Scans(Standard):
    """Indices i, k, p, q over one size."""

    def __init__(self) -> None:
        super().__init__()
        self.p, self.q = self.index("p", self.n), self.index("q", self.n)

    def order(self, left: Term, right: Term) -> Term:
        return self.compare(left, "ge", right)

    def prefix(self, end: Term) -> Term:
        """The product of x up to and with ``end``."""
        kept = self.order(end, self.k)
        return self.prod(self.k, self.where(kept, self.at("x", self.k), 1))

    def value(self, term: Term, **indices: int) -> Fraction:
        """At sizes n = m = 5, ``x[k] = k + 2``."""
        places: dict[Atom, int] = {}
        for name, index in indices.items():
            atom = getattr(self, name).poly.atom
            places[atom] = index
        point = Evaluation({"n": N, "m": N}, _element, places, Exact())
        return Fraction(point.value(term.poly))


def _element(tensor: str, at: tuple[int, ...]) -> Fraction:
    return Fraction(at[0] + 2) if at[0] + 2 else Fraction(7)


def test_a_prefix_without_its_last_factor() -> None:
    """[rule: punched-product] [rule: orient]."""
    a = Scans()
    whole = a.prefix(a.i)
    before = a.prod(a.k, a.where(a.compare(a.k, "lt", a.i), a.at("x", a.k), 1))
    assert before * a.x == whole
    assert before * a.at("x", a.p) != whole
    for place in range(N):
        assert a.value(before * a.x - whole, i=place) == 0


def test_prefix_and_suffix_make_the_whole() -> None:
    """[rule: product-range]."""
    a = Scans()
    suffix = a.prod(a.k, a.where(a.compare(a.k, "gt", a.i), a.at("x", a.k), 1))
    everything = a.prod(a.k, a.at("x", a.k))
    assert a.prefix(a.i) * suffix == everything
    assert a.prefix(a.p) * suffix != everything
    both = a.prod(a.k, a.where(a.order(a.i, a.k), a.at("x", a.k), a.at("y", a.k)))
    assert both * a.prod(a.k, a.where(a.order(a.i, a.k), a.at("y", a.k), 1)) == a.prefix(
        a.i
    ) * a.prod(a.k, a.at("y", a.k))
    assert a.owed("inverse")


def _of_table(a: Scans, values: list[int]) -> Term:
    k = a.index("row", len(values))
    first, second, third = (a.term(constant(value)) for value in values)
    body = a.where(a.compare(k, "eq", 0), first, a.where(a.compare(k, "eq", 1), second, third))
    return a.prod(k, body)


def test_a_product_of_a_table() -> None:
    """[rule: product-table]."""
    a = Scans()
    assert _of_table(a, [2, 3, 7]) == a.term(constant(42))
    assert _of_table(a, [7, 2, 3]) == a.term(constant(42))
    assert _of_table(a, [2, 3, 8]) != a.term(constant(42))


@pytest.mark.parametrize("offset", [1, -1])
def test_a_shifted_product(offset: int) -> None:
    """[rule: product-range]."""
    a = Scans()
    inside = a.compare(a.k, "gt", 0) if offset < 0 else a.compare(a.k, "lt", a.n - 1)
    body = a.where(inside, a.at("x", a.k + offset), 1)
    shifted = a.prod(a.k, body)
    dropped = a.at("x", a.n - 1 if offset < 0 else 0)
    assert shifted * dropped == a.prod(a.k, a.at("x", a.k))
    assert shifted * a.at("x", 0 if offset < 0 else a.n - 1) != a.prod(a.k, a.at("x", a.k))


def test_a_product_that_runs_backwards() -> None:
    """[rule: reverse]."""
    a = Scans()
    backwards = a.prod(a.k, a.at("x", a.n - 1 - a.k))
    assert backwards == a.prod(a.k, a.at("x", a.k))
    kept = a.where(a.order(a.n - 1 - a.k, a.i), a.at("x", a.n - 1 - a.k), 1)
    assert a.prod(a.k, kept) * a.prefix(a.i) == a.prod(a.k, a.at("x", a.k)) * a.x
    mixed = a.prod(a.k, a.at("x", a.n - 1 - a.k) + a.at("x", a.k))
    assert mixed != a.prod(a.k, 2 * a.at("x", a.k))


def test_chains_of_order_relations() -> None:
    """[rule: order-chain]."""
    a = Scans()
    chain = a.order(a.i, a.k) * a.order(a.k, a.p)
    other = a.term(unchained(a.context, chain.poly))
    assert other == a.order(a.i, a.p) * (a.order(a.i, a.k) + a.order(a.k, a.p) - 1)
    for i, k, p in itertools.product(range(3), repeat=3):
        assert a.value(chain - other, i=i, k=k, p=p) == 0
    fork = a.order(a.i, a.k) * a.order(a.i, a.p)
    assert a.term(unchained(a.context, fork.poly)) == fork


def test_chains_inside_sums() -> None:
    """[rule: order-chain]."""
    a = Scans()
    weight = a.at("x", a.k) * a.at("y", a.p)
    chain = a.sum([a.k, a.p], weight * a.order(a.i, a.k) * a.order(a.k, a.p))
    against = a.sum([a.k, a.p], weight * a.order(a.i, a.p) * a.order(a.p, a.k + 1))
    fork = a.sum([a.k, a.p], weight * a.order(a.i, a.k) * a.order(a.i, a.p))
    whole = a.sum([a.k, a.p], weight * a.order(a.i, a.p))
    beyond = a.sum([a.k, a.p], weight * a.order(a.i, a.p) * a.order(a.k, a.i + 1))
    assert a.stage(whole - fork - beyond) is not None
    assert a.stage(fork - chain - (against - 0 * beyond)) is not None
    assert a.stage(fork - chain) is None
    assert a.stage(whole - chain - against) is None
