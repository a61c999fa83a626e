"""What follows from facts about sizes is true for all sizes that fit the facts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symgrad.frontend.facts import OPPOSITE, SizeFacts
from symgrad.ir.dim import Dim
from tests.frontend.support import compare

N, M, K = (Dim.size(name) for name in "nmk")
NAMES = ("n", "m", "k")

_linear = st.builds(
    lambda a, b, c, d: N * a + M * b + K * c + d,
    st.integers(-2, 2), st.integers(-2, 2), st.integers(-1, 1), st.integers(-4, 4),
)  # fmt: skip
_dims = st.one_of(
    _linear,
    st.builds(lambda dim, by: dim // by, _linear, st.integers(2, 3)),
    st.builds(lambda dim, by: dim % by + N, _linear, st.integers(2, 3)),
    st.builds(lambda left, right: left * right, st.sampled_from([N, M, K]), _linear),
)
_relations = st.tuples(_dims, st.sampled_from(sorted(OPPOSITE)), _dims)


def all_sizes(least: int = 1) -> Iterator[dict[str, int]]:
    for values in itertools.product(range(least, 6), repeat=len(NAMES)):
        yield dict(zip(NAMES, values, strict=True))


def fitting(facts: SizeFacts, least: int = 1) -> list[dict[str, int]]:
    """The sizes that meet all conditions, as people and kernels read them."""
    return [
        sizes
        for sizes in all_sizes(least)
        if all(compare(c.left.at(sizes), c.relation, c.right.at(sizes)) for c in facts.conditions)
    ]


def assume(facts: SizeFacts, relation: tuple[Dim, str, Dim]) -> SizeFacts | None:
    """A relation, with replaced sizes replaced, as a trace would ask it."""
    left, sign, right = relation
    mapping = facts.mapping
    return facts.assume(left.substitute(mapping), sign, right.substitute(mapping))


@given(st.lists(_relations, max_size=3), _relations)
def test_decisions_hold(known: list[tuple[Dim, str, Dim]], asked: tuple[Dim, str, Dim]) -> None:
    facts = SizeFacts(NAMES)
    for relation in known:
        facts = assume(facts, relation) or facts
    left, sign, right = asked
    mapping = facts.mapping
    decided = facts.decide(left.substitute(mapping), sign, right.substitute(mapping))
    for sizes in fitting(facts):
        truth = compare(left.at(sizes), sign, right.at(sizes))
        assert decided is None or decided == truth
        # A replaced size has its value in every case that the conditions admit.
        assert all(dim.at(sizes) == sizes[name] for name, dim in facts.substitution)
    zero = facts.including_zero()
    mapping = zero.mapping
    decided = zero.decide(left.substitute(mapping), sign, right.substitute(mapping))
    for sizes in fitting(facts, least=0):
        assert decided is None or decided == compare(left.at(sizes), sign, right.at(sizes))


@given(st.lists(_relations, max_size=2), _relations)
def test_branches_part_the_sizes(
    known: list[tuple[Dim, str, Dim]], asked: tuple[Dim, str, Dim]
) -> None:
    """Every size belongs to exactly one of the two branches."""
    facts = SizeFacts(NAMES)
    for relation in known:
        facts = assume(facts, relation) or facts
    left, sign, right = asked
    yes = assume(facts, asked)
    no = assume(facts, (left, OPPOSITE[sign], right))
    inside = [fitting(branch) if branch else [] for branch in (yes, no)]
    for sizes in fitting(facts):
        truth = compare(left.at(sizes), sign, right.at(sizes))
        assert (sizes in inside[0]) == truth
        assert (sizes in inside[1]) != truth


@pytest.mark.parametrize(
    ("known", "asked", "wanted"),
    [
        ((K, "!=", Dim.of(1)), (K, ">=", Dim.of(2)), True),
        ((K, "!=", Dim.of(1)), (K * N, "==", Dim.of(1)), False),
        ((N, ">", M), (N, "==", M), False),
        ((N, ">=", M), (N + 1, ">", M), True),
        ((N, "<", Dim.of(4)), (N, "<=", Dim.of(5)), True),
        ((N, "!=", M), (M, "==", N), False),
        ((N, ">=", Dim.of(1)), (N * 2, "==", Dim.of(3)), False),
        ((N, ">=", Dim.of(1)), ((N + M) // 2, "<=", N + M), True),
        ((N, ">=", Dim.of(1)), (N, "==", M), None),
    ],
    ids=str,
)
def test_implied(
    known: tuple[Dim, str, Dim], asked: tuple[Dim, str, Dim], wanted: bool | None
) -> None:
    facts = SizeFacts(NAMES).assume(*known)
    assert facts is not None
    assert facts.decide(*asked) is wanted


def test_equalities_replace_the_later_size() -> None:
    facts = SizeFacts(NAMES).assume(N, "==", K)
    assert facts is not None
    assert facts.substitution == (("k", N),)
    one = SizeFacts(NAMES).assume(N * M, "==", 1)
    assert one is not None
    assert dict(one.substitution) == {"n": Dim.of(1), "m": Dim.of(1)}
    assert [str(condition) for condition in one.conditions] == ["m == 1", "n == 1"]


def test_contradictions_have_no_branch() -> None:
    facts = SizeFacts(NAMES).assume(K, "!=", 1)
    assert facts is not None
    assert facts.assume(K, "==", 1) is None
    assert facts.assume(K, "<", 1) is None


def test_many_answers_about_one_size_are_one_fact() -> None:
    """``n in range(300)`` asks about each number by itself."""
    facts = SizeFacts(("n",))
    for number in range(300):
        found = facts.assume(Dim.size("n"), "!=", number)
        assert found is not None
        facts = found
    assert facts.decide(Dim.size("n"), ">=", 300)
    assert facts.decide(Dim.size("n"), ">=", 301) is None
    assert len(facts.nonnegative) == 1


@pytest.mark.parametrize("least", [0, 1])
def test_what_was_asked_of_equal_facts_is_not_worked_out_again(
    monkeypatch: pytest.MonkeyPatch, least: int
) -> None:
    def answers() -> list[bool | None]:
        """Of facts that are made anew, as each trace makes them."""
        facts = SizeFacts(NAMES, least=least).assume(N + 2 * M, ">=", K + 3)
        assert facts is not None
        zero = facts.including_zero()
        return [one.decide(N * by, ">", K - M) for one in (facts, zero) for by in (1, 2, 3)]

    first = answers()
    monkeypatch.delattr(Dim, "at_least")
    assert answers() == first


def test_facts_that_differ_in_the_least_size_alone_are_apart() -> None:
    for least in (0, 1, 2, 1, 0):
        facts = SizeFacts(NAMES, least=least)
        assert facts.decide(N, ">=", 1) is (True if least else None)
        assert facts.decide(N + M, ">=", 4) is (True if least == 2 else None)
