"""Examples never contradict what follows."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from symgrad.ir.dim import Axis, Derived, Dim
from symgrad.validate.symbolic.integers import Integers

N, M = Dim.size("n"), Dim.size("m")
I = Dim.of(Axis("i", N))  # noqa: E741
Q = Dim.of(Derived("floordiv", N, Dim.of(3)))
LEAST = Dim.of(Derived("min", N, M))
ATOMS = (N, M, I, Q, LEAST, N * M)
NUMBERS = st.integers(-4, 4)
DIMS = st.builds(
    lambda factors, number: sum((f * a for f, a in zip(factors, ATOMS, strict=True)), Dim.of(0))
    + number,
    st.tuples(*[NUMBERS] * len(ATOMS)), NUMBERS,
)  # fmt: skip


def _at(dim: Dim, n: int, m: int, i: int) -> int:
    axis = I.atom
    return dim.evaluate(lambda one: i if one == axis else {"n": n, "m": m}[str(one)])


@settings(max_examples=200, deadline=None)
@given(st.lists(DIMS, max_size=3), DIMS)
def test_what_holds_for_small_numbers_is_not_disproved_by_them(facts: list[Dim], goal: Dim) -> None:
    integers = Integers()
    with integers.given(*facts, *integers.range_of(I.atom)):  # type: ignore[arg-type]
        shown = integers.entails(goal)
    found = [
        (n, m, i)
        for n, m in product(range(7), repeat=2)
        for i in range(n)
        if all(_at(one, n, m, i) >= 0 for one in facts) and _at(goal, n, m, i) < 0
    ]
    assert not (shown and found)


@settings(max_examples=100, deadline=None)
@given(st.lists(DIMS, max_size=3), st.integers(0, 3))
def test_an_example_satisfies_all_facts(facts: list[Dim], above: int) -> None:
    """What is more than a fact is never disproved."""
    integers = Integers()
    with integers.given(*facts, *integers.range_of(I.atom)):  # type: ignore[arg-type]
        for one in (*facts, I, N - 1 - I, N - LEAST, N * M - I * M, N - 3 * Q):
            assert integers.entails(one + above) or one.constant is not None
