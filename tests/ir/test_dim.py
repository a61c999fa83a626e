"""Integer expressions mean what Python's integers do, whatever form they are brought to."""

from __future__ import annotations

import operator
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from symgrad.ir.dim import Axis, Dim, Element, Size, maximum, minimum, product

SIZES = ("n", "m", "k")
AXES = tuple(Axis(f"i_{name}", Dim.size(name)) for name in SIZES)
Draw = Callable[[st.SearchStrategy[Any]], Any]
Pair = tuple[Dim, Callable[[dict[str, int]], int]]

ATOMS: list[Pair] = [(Dim.size(name), operator.itemgetter(name)) for name in SIZES]
ATOMS += [(Dim.of(axis), operator.itemgetter(axis.name)) for axis in AXES]
OPERATIONS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "+": (operator.add, operator.add), "-": (operator.sub, operator.sub),
    "*": (operator.mul, operator.mul), "//": (operator.floordiv, operator.floordiv),
    "%": (operator.mod, operator.mod), "min": (minimum, min), "max": (maximum, max),
}  # fmt: skip


def _combine(children: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    def build(name: str, left: Pair, right: Pair) -> Pair:
        symbolic, concrete = OPERATIONS[name]
        if name in ("//", "%") and not right[0].terms:
            return left
        return symbolic(left[0], right[0]), lambda at: concrete(left[1](at), right[1](at))

    return st.builds(build, st.sampled_from(sorted(OPERATIONS)), children, children)


LEAVES = st.sampled_from(ATOMS) | st.integers(-3, 6).map(lambda v: (Dim.of(v), lambda at: v))
EXPRESSIONS = st.recursive(LEAVES, _combine, max_leaves=6)


@st.composite
def points(draw: Draw) -> dict[str, int]:
    """Sizes from 1, and indices in range."""
    at = {name: draw(st.integers(1, 7)) for name in SIZES}
    return at | {axis.name: draw(st.integers(0, at[str(axis.extent)] - 1)) for axis in AXES}


def _value(dim: Dim, at: dict[str, int]) -> int:
    return dim.evaluate(lambda atom: at[str(atom)])


@given(EXPRESSIONS, points())
def test_value(pair: Pair, at: dict[str, int]) -> None:
    dim, meaning = pair
    try:
        wanted = meaning(at)
    except ZeroDivisionError:
        assume(False)
    assert _value(dim, at) == wanted


@given(EXPRESSIONS, EXPRESSIONS, points())
def test_equal_dims_are_equal_numbers(left: Pair, right: Pair, at: dict[str, int]) -> None:
    if left[0] == right[0]:
        assert hash(left[0]) == hash(right[0])
        assert left[0].key == right[0].key
    else:
        assert left[0].key != right[0].key


@given(EXPRESSIONS, points(), st.integers(-3, 3), st.integers(0, 3))
def test_bounds_hold(pair: Pair, at: dict[str, int], bound: int, slack: int) -> None:
    dim, _ = pair
    try:
        value = _value(dim, at)
    except ZeroDivisionError:
        assume(False)
    if dim.least is not None:
        assert value >= dim.least
    for least_size in (1, lambda size: max(at[size.name] - slack, 0)):
        if dim.at_least(bound, least_size=least_size):
            assert value >= bound


@given(EXPRESSIONS, EXPRESSIONS, points())
def test_substitution_is_substitution(pair: Pair, other: Pair, at: dict[str, int]) -> None:
    dim, put = pair[0], other[0]
    try:
        there = dict(at, n=_value(put, at))
        wanted = dim.evaluate(lambda atom: there[str(atom)])
        found = _value(dim.substitute({Size("n"): put}), at)
    except ZeroDivisionError:
        assume(False)
    assume(there["n"] >= 1)  # rules may use that sizes are at least 1
    assume(not any(axis.extent == Dim.size("n") for axis in dim.axes))
    assert found == wanted


@given(EXPRESSIONS, EXPRESSIONS)
def test_exact_quotients_multiply_back(left: Pair, right: Pair) -> None:
    assume(bool(right[0].terms))
    whole = left[0] * right[0]
    quotient = whole.exact_quotient(right[0])
    if quotient is not None:
        assert quotient * right[0] == whole


def test_what_reshape_needs_reduces() -> None:
    n, m = Dim.size("n"), Dim.size("m")
    i, j = Dim.of(Axis("i", n)), Dim.of(Axis("j", m))
    flat = i * m + j
    assert flat // m == i
    assert flat % m == j
    assert (n * m) // m == n
    assert product((n, m, 2)) == 2 * n * m


def test_elements_are_atoms() -> None:
    i = Dim.of(Axis("i", Dim.size("n")))
    element = Dim.of(Element("index", (i,)))
    moved = element.substitute({Axis("i", Dim.size("n")): i + 1})
    assert str(moved) == "index[i + 1]"
    assert element.axes == i.axes
    assert element != moved


def test_a_symbolic_size_has_no_truth_value() -> None:
    with pytest.raises(TypeError, match="not known"):
        bool(Dim.size("n"))
    assert not Dim.of(0)
    assert Dim.of(3) == 3
    assert hash(Dim.of(3)) == hash(3)


def test_quotient_by_a_negative_size_has_no_lower_bound() -> None:
    assert (Dim.size("n") // (0 - Dim.size("m"))).least is None


def test_a_remainder_by_a_size_may_be_zero() -> None:
    """1 % n is 0 where n is 1."""
    assert not (Dim.of(1) % Dim.size("n")).at_least(1, least_size=1)


@given(EXPRESSIONS, points())
def test_a_shortened_dim_has_the_same_value(pair: Pair, at: dict[str, int]) -> None:
    dim, _ = pair
    try:
        wanted = _value(dim, at)
    except ZeroDivisionError:
        assume(False)
    assert _value(dim.shortened, at) == wanted


def test_remainders_and_quotients_by_one_number_are_joined() -> None:
    m = Dim.size("m")
    assert (m - m % 2 - m // 2).shortened == m // 2
    assert (m - m % 3).shortened == m // 3 * 3
    assert (m // 4 * 4 + m % 4).shortened == m
    assert (m % 2).shortened == m % 2


def test_atoms_are_carried_elsewhere_whatever_was_asked_of_them() -> None:
    n, m = Dim.size("n"), Dim.size("m")
    element = Dim.of(Element("index", (Dim.of(Axis("i", n)),)))
    for one in (n, Dim.of(Axis("i", n * m)), n // m, n % m, minimum(n, m), element + n // 2):
        assert one.atoms
        assert str(one)
        again = pickle.loads(pickle.dumps(one))
        assert again == one
        assert hash(again) == hash(one)
        assert again.atoms == one.atoms
