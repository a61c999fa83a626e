"""What size conditions say of single sizes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from symgrad.ir.dim import Dim
from symgrad.ir.function import SizeCondition
from symgrad.proof.judge.equality import contradictory, least_sizes

N, M = Dim.size("n"), Dim.size("m")
RELATIONS = ("==", "!=", "<", "<=", ">", ">=")
HOLDS = {
    "==": int.__eq__, "!=": int.__ne__, "<": int.__lt__, "<=": int.__le__, ">": int.__gt__,
    ">=": int.__ge__,
}  # fmt: skip


def _condition(relation: str, bound: int, turned: bool) -> SizeCondition:
    left, right = (Dim.of(bound), N) if turned else (N, Dim.of(bound))
    return SizeCondition(left, relation, right)


def _met(condition: SizeCondition, size: int) -> bool:
    sizes = {"n": size}
    return bool(HOLDS[condition.relation](condition.left.at(sizes), condition.right.at(sizes)))


CONDITIONS = st.lists(
    st.builds(_condition, st.sampled_from(RELATIONS), st.integers(-1, 6), st.booleans()), max_size=6
)


@given(CONDITIONS)
def test_least_sizes_and_contradictions_are_true(conditions: list[SizeCondition]) -> None:
    meeting = [n for n in range(1, 20) if all(_met(c, n) for c in conditions)]
    if contradictory(conditions):
        assert not meeting
    if meeting:
        assert least_sizes(conditions).get("n", 1) <= meeting[0]


@given(CONDITIONS)
def test_bounded_sizes_are_all_tried(conditions: list[SizeCondition]) -> None:
    bounded = [*conditions, SizeCondition(Dim.of(7), ">=", N)]
    meeting = [n for n in range(1, 8) if all(_met(c, n) for c in bounded)]
    assert contradictory(bounded) is not bool(meeting)


def test_conditions_on_several_sizes_say_nothing_here() -> None:
    several = [
        SizeCondition(N, "<", M),
        SizeCondition(N, ">", M),
        SizeCondition(N, "<=", Dim.of(3)),
    ]
    assert not contradictory(several)
    assert least_sizes(several) == {}


def test_a_chain_of_inequalities_raises_the_least_size() -> None:
    chain = [SizeCondition(N, "!=", Dim.of(bound)) for bound in (3, 1, 2)]
    assert least_sizes(chain) == {"n": 4}
    assert least_sizes([SizeCondition(Dim.of(2), "<", N)]) == {"n": 3}
