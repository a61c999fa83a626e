"""The rules of triangular matrices, Cholesky factors and order relations, and what is no rule."""

from __future__ import annotations

import itertools

import pytest

from symgrad.ir.dim import Dim
from symgrad.proof.normal.atoms import Undecided
from symgrad.proof.normal.facts import Facts, Orthogonal, Spectrum
from tests.proof.normal_terms import Algebra, Term

LOW = Facts(
    lower=frozenset(("l", "m")), upper=frozenset(("u",)), inverses={"m": "l"},
    factors={"l": "a"}, lengths={"l": Dim.size("n"), "m": Dim.size("n")},
)  # fmt: skip
SYMMETRIC = Facts(
    lower=frozenset(("l",)),
    factors={"l": "a"},
    lengths={"l": Dim.size("n")},
    symmetric=frozenset(("a",)),
)


class Square(Algebra):
    """Indices i, j, k, p over the same size."""

    def __init__(self, facts: Facts | None = None) -> None:
        super().__init__(facts)
        n = self.size("n")
        self.i, self.j, self.k, self.p = (self.index(name, n) for name in "ijkp")

    def order(self, left: Term, right: Term) -> Term:
        return self.compare(left, "ge", right)


def test_two_order_relations_imply_the_third() -> None:
    """[rule: implied-relation]."""
    a = Square()
    two = a.order(a.i, a.j) * a.order(a.j, a.k)
    assert two * a.order(a.i, a.k) == two
    assert two * a.order(a.i + 1, a.k) == two
    assert two * a.order(a.k, a.i + 1) == 0
    assert two * a.order(a.i, a.k + 1) != two
    assert two * a.order(a.i, a.p) != two
    assert a.order(a.i, a.j) * a.order(a.i, a.k) != two


def test_opposite_order_relations_are_a_delta() -> None:
    """[rule: implied-relation]."""
    a = Square()
    same = a.compare(a.i, "eq", a.j)
    assert a.order(a.i, a.j) * a.order(a.j, a.i) == same
    assert a.order(a.i, a.j) * a.order(a.j, a.i + 1) == 0
    assert a.order(a.i + 1, a.j) * a.order(a.j, a.i) != same


def test_a_part_of_a_product_is_not_the_whole() -> None:
    """[rule: inverse-matrix] [rule: cholesky]: sums over fewer rows stay sums."""
    a = Square(LOW)
    whole, part = a.k, a.index("q", a.size("n") - 1)

    def product(left: str, right: str, k: Term) -> Term:
        return a.sum([k], a.leaf(left, a.i, k) * a.leaf(right, k, a.j))

    def square(k: Term) -> Term:
        return a.sum([k], a.leaf("l", a.i, k) * a.leaf("l", a.j, k))

    half = (a.leaf("a", a.i, a.j) + a.leaf("a", a.j, a.i)) / 2
    assert product("l", "m", whole) == a.compare(a.i, "eq", a.j)
    assert product("l", "m", part) != a.compare(a.i, "eq", a.j)
    assert square(whole) == half
    assert square(part) != half


def test_an_element_of_a_triangular_matrix_stands_for_its_half() -> None:
    """[rule: triangular]."""
    a = Square(LOW)
    low, up = a.leaf("l", a.i, a.k), a.leaf("u", a.i, a.k)
    assert low * a.order(a.i, a.k) == low
    assert up * a.order(a.k, a.i) == up
    assert low * a.order(a.k, a.i + 1) == 0
    assert low * a.order(a.k, a.i) == low * a.compare(a.i, "eq", a.k)
    assert low * up * a.order(a.i, a.k) == low * up
    assert a.leaf("l", a.i, a.i + 1) == 0
    assert a.leaf("u", a.i, a.i + 1) != 0


def test_what_a_triangular_matrix_does_not_imply() -> None:
    a = Square(LOW)
    low, free = a.leaf("l", a.i, a.k), a.leaf("x", a.i, a.k)
    assert low * a.order(a.i, a.k + 1) != low
    assert free * a.order(a.i, a.k) != free
    assert a.leaf("l", a.i + 1, a.i) != 0
    inside = a.sum([a.k], a.leaf("l", a.i, a.k) * a.leaf("x", a.k, a.j) * a.order(a.k, a.j))
    assert inside != a.sum([a.k], a.leaf("l", a.i, a.k) * a.leaf("x", a.k, a.j))


def test_the_diagonal_of_a_triangular_inverse() -> None:
    """[rule: triangular]."""
    a = Square(LOW)
    assert a.leaf("m", a.i, a.i) * a.leaf("l", a.i, a.i) == 1
    assert a.leaf("m", a.i, a.k) * a.leaf("l", a.i, a.k) != 1
    assert a.leaf("m", a.k, a.i) != a.leaf("m", a.i, a.k)


def test_an_element_of_a_triangular_matrix_is_not_generic() -> None:
    """[L > 0] + [-L > 0] is 0, not 1, above the diagonal."""
    a = Square(LOW)
    low = a.leaf("l", a.i, a.k)
    with pytest.raises(Undecided, match="triangular"):
        a.compare(low, "gt", 0)
    with pytest.raises(Undecided, match="triangular"):
        a.compare(low * a.leaf("x", a.i) + 1, "gt", 0)
    with pytest.raises(Undecided, match="triangular"):
        assert 1 / low
    assert a.compare(a.leaf("l", a.i, a.i), "gt", 0) == 1
    assert a.compare(a.leaf("m", a.i, a.i), "gt", 0) == 1


def test_a_factor_times_its_transpose() -> None:
    """[rule: cholesky]."""
    a = Square(LOW)
    product = a.sum([a.k], a.leaf("l", a.i, a.k) * a.leaf("l", a.j, a.k))
    assert 2 * product == a.leaf("a", a.i, a.j) + a.leaf("a", a.j, a.i)
    assert a.sum([a.k], a.leaf("l", a.i, a.k) * a.leaf("l", a.i, a.k)) == a.leaf("a", a.i, a.i)
    s = Square(SYMMETRIC)
    product = s.sum([s.k], s.leaf("l", s.i, s.k) * s.leaf("l", s.j, s.k))
    assert product == s.leaf("a", s.i, s.j)


def test_what_is_not_a_factor_times_its_transpose() -> None:
    a = Square(LOW)
    half = a.leaf("a", a.i, a.j) + a.leaf("a", a.j, a.i)
    for left, right in itertools.product((0, 1), repeat=2):
        first = a.leaf("l", *((a.i, a.k), (a.k, a.i))[left])
        second = a.leaf("l", *((a.j, a.k), (a.k, a.j))[right])
        assert (2 * a.sum([a.k], first * second) == half) is (not left and not right)
    cut = a.leaf("l", a.i, a.k) * a.leaf("l", a.j, a.k) * a.order(a.p, a.k)
    assert 2 * a.sum([a.k], cut) != half
    scaled = a.leaf("l", a.i, a.k) * a.leaf("l", a.j, a.k) * a.leaf("x", a.k)
    assert 2 * a.sum([a.k], scaled) != half * a.leaf("x", a.k)
    other = a.sum([a.k], a.leaf("m", a.i, a.k) * a.leaf("m", a.j, a.k))
    assert 2 * other != half


def test_sums_that_differ_by_the_direction_of_an_order_relation_meet() -> None:
    a = Square()
    body = a.leaf("x", a.i, a.k) * a.leaf("x", a.j, a.p) * a.leaf("g", a.i, a.j)
    up = a.sum([a.i, a.j, a.k, a.p], body * a.order(a.k, a.p))
    down = a.sum([a.i, a.j, a.k, a.p], body * a.order(a.p, a.k + 1))
    assert a.stage(up + down - a.sum([a.i, a.j, a.k, a.p], body)) is not None
    assert a.stage(up - down) is None


def _spectral(square: bool, left: str = "u", right: str = "v") -> Algebra:
    n, m = Dim.size("n"), Dim.size("n" if square else "m")
    known = Spectrum("a", left, "s", right, m, n, n)
    return Algebra(Facts(spectra={left: known, right: known}))


def test_columns_of_singular_vectors_are_orthonormal() -> None:
    """[rule: orthonormal]."""
    a = _spectral(square=False)
    n, m = a.size("n"), a.size("m")
    i, j, k, r = a.index("i", n), a.index("j", n), a.index("k", n), a.index("r", m)
    same = a.compare(i, "eq", j)
    assert a.sum([r], a.leaf("u", r, i) * a.leaf("u", r, j)) == same
    assert a.sum([k], a.leaf("v", k, i) * a.leaf("v", k, j)) == same
    assert a.sum([r], a.leaf("u", r, i) * a.leaf("u", r, i)) == 1
    q = a.index("q", m)
    assert a.sum([k], a.leaf("u", r, k) * a.leaf("u", q, k)) != a.compare(r, "eq", q)
    assert a.sum([k], a.leaf("v", i, k) * a.leaf("v", j, k)) == same
    assert a.sum([r], a.leaf("u", r, i) * a.leaf("v", r, j)) != same
    part = a.index("k", n + 1)
    assert a.sum([part], a.leaf("v", part, i) * a.leaf("v", part, j)) != same


def test_vectors_with_their_values_are_the_matrix() -> None:
    """[rule: spectrum]."""
    a = _spectral(square=False)
    n, m = a.size("n"), a.size("m")
    j, k, r = a.index("j", n), a.index("k", n), a.index("r", m)
    product = a.leaf("u", r, k) * a.leaf("v", j, k)
    assert a.sum([k], product * a.leaf("s", k)) == a.leaf("a", r, j)
    assert a.sum([k], product * a.leaf("s", k) * a.leaf("s", k)) != a.leaf("a", r, j)
    assert a.sum([k], product * a.leaf("t", k)) != a.leaf("a", r, j)
    e = _spectral(square=True, left="w", right="w")
    n = e.size("n")
    i, j, k = (e.index(name, n) for name in "ijk")
    found = e.sum([k], e.leaf("w", i, k) * e.leaf("w", j, k) * e.leaf("s", k))
    assert 2 * found == e.leaf("a", i, j) + e.leaf("a", j, i)
    squares = e.sum([k], e.leaf("w", i, k) * e.leaf("w", i, k) * e.leaf("s", k))
    assert squares == e.leaf("a", i, i)


def _orthogonal() -> Algebra:
    n, m = Dim.size("n"), Dim.size("m")
    known = Orthogonal("a", "q", "r", "s", m, n)
    return Algebra(Facts(
        orthogonal={"q": known}, upper=frozenset("rs"), inverses={"s": "r"},
        lengths={"r": n, "s": n},
    ))  # fmt: skip


def test_an_orthogonal_factor_has_orthonormal_columns() -> None:
    """[rule: orthonormal]."""
    a = _orthogonal()
    i, j = a.index("i", a.size("n")), a.index("j", a.size("n"))
    row, other = a.index("row", a.size("m")), a.index("other", a.size("m"))
    same = a.compare(i, "eq", j)
    assert a.sum([row], a.leaf("q", row, i) * a.leaf("q", row, j)) == same
    assert a.sum([i], a.leaf("q", row, i) * a.leaf("q", other, i)) != a.compare(row, "eq", other)
    assert a.sum([row], a.leaf("a", row, i) * a.leaf("a", row, j)) != same


def test_factors_and_their_matrix_make_each_other() -> None:
    """[rule: orthogonal-factor]."""
    a = _orthogonal()
    n, m = a.size("n"), a.size("m")
    i, j, k = (a.index(name, n) for name in "ijk")
    row = a.index("row", m)

    def product(left: str, right: str) -> Term:
        return a.sum([k], a.leaf(left, row, k) * a.leaf(right, k, j))

    assert product("q", "r") == a.leaf("a", row, j)
    assert product("a", "s") == a.leaf("q", row, j)
    assert product("a", "r") != a.leaf("q", row, j)
    assert product("q", "s") != a.leaf("a", row, j)
    assert a.sum([row], a.leaf("q", row, i) * a.leaf("a", row, j)) == a.leaf("r", i, j)
    assert a.sum([row], a.leaf("q", row, i) * a.leaf("a", row, j)) != a.leaf("r", j, i)
    part = a.index("part", n - 1)
    short = a.sum([part], a.leaf("q", row, part) * a.leaf("r", part, j))
    assert short != a.leaf("a", row, j)
    across = a.sum([k], a.leaf("q", row, k) * a.leaf("r", j, k))
    assert across != a.leaf("a", row, j)
