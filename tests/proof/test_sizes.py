"""What size conditions say of single sizes, and sizes that meet them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import symgrad as sg
from symgrad.budgets import SOUGHT_SIZES
from symgrad.ir.dim import Dim
from symgrad.ir.function import SizeCondition
from symgrad.proof.judge.equality import least_sizes
from symgrad.proof.oracle.sizes import completed, impossible, sought
from tests.suite.adversarial.program import class_of, class_text

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
    if impossible(conditions):
        assert not meeting
    if meeting:
        assert least_sizes(conditions).get("n", 1) <= meeting[0]


@given(CONDITIONS)
def test_bounded_sizes_are_all_tried(conditions: list[SizeCondition]) -> None:
    bounded = [*conditions, SizeCondition(Dim.of(7), ">=", N)]
    meeting = [n for n in range(1, 8) if all(_met(c, n) for c in bounded)]
    assert impossible(bounded) is not bool(meeting)


def test_conditions_on_several_sizes_say_nothing_here() -> None:
    several = [
        SizeCondition(N, "<", M),
        SizeCondition(N, ">", M),
        SizeCondition(N, "<=", Dim.of(3)),
    ]
    assert not impossible(several)
    assert least_sizes(several) == {}


def test_a_chain_of_inequalities_raises_the_least_size() -> None:
    chain = [SizeCondition(N, "!=", Dim.of(bound)) for bound in (3, 1, 2)]
    assert least_sizes(chain) == {"n": 4}
    assert least_sizes([SizeCondition(Dim.of(2), "<", N)]) == {"n": 3}


POLYNOMIALS = (N, N * N - M * M * 2, N * M, N + M * 3, N // 3 - M % 4, N % 7)


@given(
    st.lists(
        st.builds(
            SizeCondition, st.sampled_from(POLYNOMIALS), st.sampled_from(RELATIONS),
            st.integers(-2, 40).map(Dim.of),
        ),
        min_size=1, max_size=3,
    )
)  # fmt: skip
def test_sizes_that_are_found_meet_the_conditions_and_small_ones_are_found(
    conditions: list[SizeCondition],
) -> None:
    found = list(sought(("n", "m"), conditions))
    assert all(c.holds({"n": n, "m": m}) for n, m in found for c in conditions)
    assert found == sorted(found, key=sum)
    small = [
        (n, m) for n in range(1, 8) for m in range(1, 8)
        if all(c.holds({"n": n, "m": m}) for c in conditions)
    ]  # fmt: skip
    assert len(found) == SOUGHT_SIZES or {*small} <= {*found}


@given(
    st.lists(
        st.builds(
            SizeCondition, st.sampled_from(POLYNOMIALS), st.sampled_from(RELATIONS),
            st.sampled_from((*map(Dim.of, range(-1, 30)), M, M + 3, M * 2)),
        ),
        min_size=1, max_size=4,
    )
)  # fmt: skip
def test_what_is_impossible_no_sizes_meet(conditions: list[SizeCondition]) -> None:
    if impossible(conditions):
        sizes = ({"n": n, "m": m} for n in range(1, 40) for m in range(1, 40))
        assert not any(all(c.holds(one) for c in conditions) for one in sizes)


def test_sizes_that_a_case_has_replaced_are_computed() -> None:
    conditions = [
        SizeCondition(N * M, ">=", Dim.of(50)), SizeCondition(N, "==", M + 3),
        SizeCondition(Dim.size("k"), "==", N * 2),
    ]  # fmt: skip
    assert completed({"m": 4}, conditions) == {"m": 4, "n": 7, "k": 14}
    assert not impossible(conditions)
    assert impossible([*conditions, SizeCondition(M * (M + 3) // 8, "<=", Dim.of(2))])


@pytest.mark.parametrize(
    "asked", ["n * m >= 50 and n == m + 3", "n * m >= 16 and n == 4", "m * n >= 30 and m == 2 * n"]
)
def test_conditions_hold_at_counterexamples_in_sizes_that_are_replaced(asked: str) -> None:
    """Where the branch is taken ``n * m // 8`` is at least 1, elsewhere it may be 0."""
    forward = f"n, m = x.shape\ny = x * x\nif {asked}: y = x * x * min(n * m // 8, {{}})\ny"
    right = class_text("Large", forward.format(1), "2 * x * g", "x")
    assert str(sg.verify(class_of("Large", right, sg), "n m", timeout=None).verdict) == "PROVED"
    wrong = class_text("Large", forward.format(2), "2 * x * g", "x")
    found = sg.verify(class_of("Large", wrong, sg), "n m", suggest=False).inputs["x"]
    assert found.counterexample is not None
    assert eval(asked, {}, dict(found.counterexample.sizes))


@pytest.mark.parametrize(
    ("asked", "least"),
    [
        ("n * n - 2 * m * m == 1 and n >= 90", {"n": 99, "m": 70}),
        ("n * m >= 5000 and n == m + 3", {"n": 73, "m": 70}),
    ],
)
def test_a_branch_for_large_sizes_is_judged_at_large_sizes(
    asked: str, least: dict[str, int]
) -> None:
    forward = f"n, m = x.shape\ny = x * x\nif {asked}: y = x * x * {{}}\ny"
    right = class_text("Large", forward.format("1"), "2 * x * g", "x")
    assert str(sg.verify(class_of("Large", right, sg), "n m", timeout=None).verdict) == "PROVED"
    wrong = class_text("Large", forward.format("x"), "2 * x * g", "x")
    report = sg.verify(class_of("Large", wrong, sg), "n m", suggest=False, timeout=None)
    found = report.inputs["x"].counterexample
    assert found is not None
    assert dict(found.sizes) == least


@pytest.mark.parametrize("asked", ["x.numel() >= 100000", "n * n - 2 * 400 * 400 == n - 1"])
def test_a_branch_for_sizes_that_are_not_found_is_proved_for_all_or_named(asked: str) -> None:
    forward = f"n = x.shape[0]\ny = x * x\nif {asked}: y = x * x * {{}}\ny"
    right = class_text("Large", forward.format("1"), "2 * x * g", "x")
    assert str(sg.verify(class_of("Large", right, sg), "n", timeout=None).verdict) == "PROVED"
    wrong = class_text("Large", forward.format("x"), "2 * x * g", "x")
    report = sg.verify(class_of("Large", wrong, sg), "n", suggest=False, timeout=None)
    assert str(report.verdict) == "UNDECIDED"
    reason = report.inputs["x"].reason
    assert "elements of inputs were found" in reason
    assert "at other sizes the gradient would be wrong" in reason
