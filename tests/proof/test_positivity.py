"""Signs beyond those of the normal form: what is shown positive is positive at every point."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from symgrad.fitted import remembered
from symgrad.proof.judge import positivity
from symgrad.proof.judge.positivity import diagonal, holds, primitive
from symgrad.proof.normal.facts import POSITIVE_INTERVAL, Facts
from tests.proof.normal_terms import Standard, Term

SMALL = st.integers(-3, 3)


def _variance(s: Standard) -> Term:
    mean = s.sum([s.i], s.x) / s.n
    return s.sum([s.i], (s.x - mean) ** 2) / s.n


def _weighted(s: Standard) -> Term:
    weight = s.leaf("w", s.i)
    whole, first = s.sum([s.i], weight), s.sum([s.i], weight * s.x)
    return s.sum([s.i], weight * s.x**2) * whole - first**2


def _of_two_axes(s: Standard) -> Term:
    z = s.at("z", s.i, s.j)
    return s.sum([s.i, s.j], z**2) * s.n * s.m - s.sum([s.i, s.j], z) ** 2


ALWAYS: dict[str, Callable[[Standard], Term]] = {
    "variance": _variance,
    "weighted variance": _weighted,
    "of two axes": _of_two_axes,
    "distance": lambda s: s.sum([s.i], (s.x - s.y) ** 2),
    "form": lambda s: s.x**2 - s.x * s.y + s.y**2,
    "scalar product": lambda s: (
        s.sum([s.i], s.x**2) * s.sum([s.i], s.y**2) - s.sum([s.i], s.x * s.y) ** 2
    ),
    "covariance of sums": lambda s: (
        s.n * s.sum([s.i], (s.x + s.y) ** 2) - s.sum([s.i], s.x + s.y) ** 2
    ),
}


def _in_a_group(s: Standard, summand: Term, at: Term) -> Term:
    """The sum over the elements of the group of the element ``at``."""
    alike = s.compare(s.leaf("index", s.k, sort="int"), "eq", s.leaf("index", at, sort="int"))
    return s.sum([s.k], summand * alike)


@pytest.mark.parametrize("at", ["i", "j"])
def test_a_group_is_as_large_as_its_own_element(at: str) -> None:
    """Over the elements that ``i`` is one of; ``j`` runs as far as another size."""
    s = _standard()
    index = s.i if at == "i" else s.j
    for summand in (s.exp(s.leaf("x", s.k)), s.compare(s.k, "ge", 0)):
        whole = _in_a_group(s, summand, index)
        assert holds(s.context, whole.poly, ">=")
        assert holds(s.context, whole.poly, ">") == (at == "i")
        assert holds(s.context, (whole * 2 - whole).poly, "!=") == (at == "i")
    assert not holds(s.context, _in_a_group(s, s.leaf("x", s.k), index).poly, ">=")
    count = _in_a_group(s, s.compare(s.k, "ge", 0), index)
    assert not holds(s.context, (count - 1).poly, ">"), "it may be alone"


SOMETIMES: dict[str, Callable[[Standard], Term]] = {
    "variance by too much": lambda s: _variance(s) * s.n - s.sum([s.i], s.x**2),
    "sum": lambda s: s.sum([s.i], s.x) + 100,
    "indefinite form": lambda s: s.x**2 - 3 * s.x * s.y + s.y**2 + 1,
    "square of the sum": lambda s: s.sum([s.i], s.x**2) - s.sum([s.i], s.x) ** 2 + 1,
    "difference": lambda s: s.sum([s.i], s.x**2) - s.sum([s.i], s.y**2) + 1,
    "cube": lambda s: 1 + s.sum([s.i], s.x) ** 3,
}


def _standard() -> Standard:
    return Standard(Facts(intervals={"w": POSITIVE_INTERVAL}))


@pytest.mark.parametrize("name", ALWAYS)
def test_what_always_holds(name: str) -> None:
    s = _standard()
    term = ALWAYS[name](s)
    assert holds(s.context, term.poly, ">=")
    assert not holds(s.context, term.poly, ">"), "it may be 0"
    assert not holds(s.context, term.poly, "!=")
    more = (term + Fraction(1, 1000)).poly
    assert holds(s.context, more, ">")
    assert holds(s.context, more, "!=")


@pytest.mark.parametrize("name", SOMETIMES)
def test_what_does_not(name: str) -> None:
    s = _standard()
    assert not holds(s.context, SOMETIMES[name](s).poly, ">=")
    assert not holds(s.context, SOMETIMES[name](s).poly, "!=")


@given(st.lists(SMALL, min_size=7, max_size=7), st.integers(0, 1000))
@example([1, 0, -1, 0, 0, 0, 0], 0)
@example([1, -2, 0, 1, 0, 0, 1], 0)
def test_what_is_shown_holds_at_every_point(c: list[int], seed: int) -> None:
    s = _standard()
    sums = (s.sum([s.i], s.x), s.sum([s.i], s.y))
    term = (
        c[0] * s.n * s.sum([s.i], s.x**2) + c[1] * s.sum([s.i], s.x * s.y) * s.n
        + c[2] * sums[0] ** 2 + c[3] * s.n * s.sum([s.i], s.y**2) + c[4] * sums[0] * sums[1]
        + c[5] * sums[1] ** 2 + c[6] * s.n
    )  # fmt: skip
    for relation in (">", ">="):
        if holds(s.context, term.poly, relation):
            for n in (1, 2, 5):
                value = term.value(seed=seed, n=n)
                assert value > 0 or (relation == ">=" and value > -1e-9)


@given(st.integers(1, 4), st.data())
def test_semidefinite_is_what_numpy_says(size: int, data: st.DataObject) -> None:
    entries = [data.draw(SMALL) for _ in range(size * size)]
    matrix = np.array(entries, dtype=float).reshape(size, size)
    matrix = matrix + matrix.T if data.draw(st.booleans()) else matrix @ matrix.T
    least = float(np.min(np.linalg.eigvalsh(matrix)))
    exact = [[Fraction(int(value)) for value in row] for row in matrix]
    squares = diagonal(exact)
    semidefinite = squares is not None and all(scale >= 0 for scale, _ in squares)
    assert semidefinite == (least > -1e-9)


def test_one_way_to_write_a_condition() -> None:
    s = _standard()
    variance = _variance(s)
    assert primitive(s.context, variance.poly) == primitive(
        s.context, (variance * s.n * Fraction(2, 3)).poly
    )
    assert primitive(s.context, (s.x * 6 - 4).poly) == (s.x * 3 - 2).poly


@pytest.mark.parametrize(("extent", "filled"), [(0, True), (1, True), (-1, False), (-2, False)])
def test_a_sum_over_nothing_is_not_positive(extent: int, filled: bool) -> None:
    """Where ``n + extent`` may be 0, a sum of exponentials may be."""
    s = _standard()
    k = s.index("k", s.n + extent)
    total = s.sum([k], s.exp(s.leaf("x", k)))
    for term in (total, total * s.exp(s.y), total + total * s.exp(s.y), total * 2 / s.n):
        assert holds(s.context, term.poly, ">=")
        assert holds(s.context, term.poly, ">") == filled
        assert holds(s.context, term.poly, "!=") == filled
    assert holds(s.context, (total + 1).poly, ">")


def test_what_took_all_the_work_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(positivity, "POSITIVITY_WORK", 1)

    def work(s: Standard, relation: str = ">=") -> int:
        assert not holds(s.context, _weighted(s).poly, relation)
        return s.context.work

    with remembered():
        term = _standard()
        _weighted(term)
        made = term.context.work
        assert work(_standard()) > made
        assert work(_standard()) == made
        assert work(_standard(), ">") > made, "another question"
        assert work(Standard(Facts())) > made, "other facts"
    assert work(_standard()) > made, "another verdict"
