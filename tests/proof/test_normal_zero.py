"""The zero test never says zero of what is not, and says it of what should be."""

from __future__ import annotations

import random
from collections.abc import Iterator

import mpmath
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from symgrad.ir.dim import Axis, Dim
from symgrad.ir.dtype import bool_, float32
from symgrad.ir.expr import Expr, ExprPool
from symgrad.proof.normal.atoms import SIZE
from symgrad.proof.normal.context import Proof
from symgrad.proof.normal.facts import Facts
from symgrad.proof.normal.from_expr import Conversion
from symgrad.proof.normal.poly import of_atom
from symgrad.proof.normal.rules import RULES
from symgrad.proof.normal.zero import ZeroResult, adopt_domain, attempt, is_zero, prove_equal
from tests.proof.normal_expressions import COLUMN, FACTS, ROW, M, Maker, Point, close, mutate

SEEDS = st.integers(0, 2**32 - 1)


@pytest.fixture(autouse=True)
def digits() -> Iterator[None]:
    with mpmath.workdps(50):
        yield


def differs(left: Expr, right: Expr, seed: int, result: ZeroResult) -> bool:
    """Do two expressions differ at a point that breaks no obligation of ``result``?"""
    for n, m in ((2, 3), (1, 2), (3, 1)):
        point = Point(seed, n, m)
        for at in point.places():
            first, second = point.of_expr(left, at), point.of_expr(right, at)
            finite = mpmath.isfinite(first) and mpmath.isfinite(second)
            if not finite or close(first, second, 12):
                continue
            if abs(first) < 1e12 and point.owes_nothing(result.context):
                return True
    return False


@settings(max_examples=150)
@given(seed=SEEDS, depth=st.integers(2, 5), factored=st.booleans())
def test_what_differs_is_never_zero(seed: int, depth: int, factored: bool) -> None:
    """A part of an expression is changed; where values differ, the test must not say zero."""
    maker = Maker(seed)
    expr = maker.scalar(depth)
    changed = mutate(maker.pool, expr, random.Random(seed))
    assume(changed is not expr)
    result = attempt(changed, expr, FACTS, budget=6000, factored=factored)
    assert not (result.is_zero and differs(changed, expr, seed, result))


@given(seed=SEEDS, depth=st.integers(2, 4))
def test_sums_of_what_differs_are_never_zero(seed: int, depth: int) -> None:
    """The same under sums over both axes, where the stages open sums."""
    maker = Maker(seed)
    expr = maker.scalar(depth)
    changed = mutate(maker.pool, expr, random.Random(seed))
    wrapped = [
        maker.pool.reduce("sum", ROW, maker.call("mul", e, maker.pool.access(
            "g", (Dim.of(ROW), Dim.of(COLUMN)), float32)))
        for e in (expr, changed)
    ]  # fmt: skip
    assume(wrapped[0] is not wrapped[1])
    result = attempt(wrapped[1], wrapped[0], FACTS, budget=6000)
    assert not (result.is_zero and differs(wrapped[1], wrapped[0], seed, result))


@given(seed=SEEDS)
def test_an_expression_equals_itself_regrouped(seed: int) -> None:
    """(a + b) c - c a - b c is zero, whatever a, b, c are."""
    maker = Maker(seed)
    first, second, third = (maker.scalar(2) for _ in range(3))
    whole = maker.call("mul", maker.call("add", first, second), third)
    parts = maker.call("add", maker.call("mul", third, first), maker.call("mul", second, third))
    result = prove_equal(whole, parts, FACTS, budget=20_000)
    assume("steps" not in result.reason)
    assert result.is_zero


# -- expressions written out


class Formulas:
    """Index notation with operators."""

    def __init__(self) -> None:
        self.pool = ExprPool()
        self.row, self.column = Dim.of(ROW), Dim.of(COLUMN)
        self.row_number = self.pool.integer(self.row)
        self.x = self.pool.access("x", (self.row, self.column), float32)
        self.g = self.pool.access("g", (self.row, self.column), float32)

    def call(self, name: str, *operands: Expr | float) -> Expr:
        given_ = [o if isinstance(o, Expr) else self.number(o) for o in operands]
        return self.pool.call(name, *given_, dtype=float32)

    def number(self, value: float) -> Expr:
        return self.pool.literal(float(value), float32)

    def sum(self, axis: Axis, body: Expr) -> Expr:
        return self.pool.reduce("sum", axis, body)


def test_softmax_is_stable_and_its_gradient_is_known() -> None:
    f = Formulas()
    shifted = f.call("exp", f.call("sub", f.x, f.pool.reduce("max", COLUMN, f.x)))
    stable = f.call("div", shifted, f.sum(COLUMN, shifted))
    plain = f.call("div", f.call("exp", f.x), f.sum(COLUMN, f.call("exp", f.x)))
    assert prove_equal(stable, plain).stage == "normal form"
    assert prove_equal(f.sum(COLUMN, stable), f.number(1)).is_zero
    assert not prove_equal(stable, f.call("mul", plain, 2)).is_zero


@pytest.mark.parametrize(
    ("name", "derived"),
    [
        ("tanh", lambda f, y, x: f.call("sub", 1, f.call("mul", y, y))),
        ("sigmoid", lambda f, y, x: f.call("mul", y, f.call("sub", 1, y))),
        ("softplus", lambda f, y, x: f.call("sub", 1, f.call("exp", f.call("neg", y)))),
        ("relu", lambda f, y, x: f.pool.select(
            f.pool.call("gt", y, f.number(0), dtype=bool_), f.number(1), f.number(0))),
        ("sqrt", lambda f, y, x: f.call("div", 0.5, y)),
        ("rsqrt", lambda f, y, x: f.call("div", f.call("mul", -0.5, y), x)),
        ("asinh", lambda f, y, x: f.call("rsqrt", f.call("add", f.call("square", x), 1))),
        ("log1p", lambda f, y, x: f.call("exp", f.call("neg", y))),
        ("reciprocal", lambda f, y, x: f.call("neg", f.call("square", y))),
        ("erf", lambda f, y, x: f.call("mul", 1.1283791670955126,
                                       f.call("exp", f.call("neg", f.call("square", x))))),
    ],
)  # fmt: skip
def test_derivatives_in_terms_of_the_result(name: str, derived: object) -> None:
    from symgrad.proof.scalars.bodies import partial_expr

    f = Formulas()
    y = f.call(name, f.x)
    reference = partial_expr(f.pool, name, [f.x], 0, float32)
    assert reference is not None
    assert callable(derived)
    by_hand = derived(f, y, f.x)
    result = prove_equal(by_hand, reference, Facts(recognise=True))
    assert result.is_zero
    assert bool(result.readings) == (name == "erf")
    twice = f.call("mul", by_hand, 2)
    assert not prove_equal(twice, reference, Facts(recognise=True)).is_zero


def test_printed_conditions_may_be_used_as_signs() -> None:
    """[rule: domain]."""
    f = Formulas()
    above, below = f.call("add", f.x, 1), f.call("sub", f.x, 1)
    apart = f.call("mul", f.call("sqrt", above), f.call("sqrt", below))
    whole = f.call("sqrt", f.call("sub", f.call("square", f.x), 1))
    result = prove_equal(apart, whole)
    assert result.is_zero
    printed = {a.poly for a in result.requirements if a.relation == ">="}
    assert len(printed) == 3
    root = f.call("sqrt", f.x)
    clipped = f.call("add", root, f.call("relu", f.x))
    assert not prove_equal(clipped, f.call("add", root, f.x)).is_zero  # conditions stay
    assert not prove_equal(f.call("abs", f.x), f.x).is_zero
    assert not prove_equal(f.call("sqrt", f.call("square", f.x)), f.x).is_zero


def test_a_printed_condition_is_a_sign_at_all_values_of_its_indices() -> None:
    """[rule: domain]."""
    f = Formulas()
    other = Axis("other", Dim.size("n"))
    met = f.pool.call("eq", f.row_number, f.pool.integer(Dim.of(other)), dtype=bool_)
    elsewhere = f.pool.access("x", (Dim.of(other), f.column), float32)

    def picked(body: Expr) -> Expr:
        return f.sum(other, f.pool.select(met, body, f.number(0)))

    def roots(x: Expr, second: float = -1) -> Expr:
        return f.call(
            "mul", f.call("sqrt", f.call("add", x, 1)), f.call("sqrt", f.call("add", x, second))
        )

    whole = f.call("sqrt", f.call("sub", f.call("square", f.x), 1))
    weights = f.call("exp", f.g)
    summed = f.call("mul", weights, picked(roots(elsewhere)))
    assert prove_equal(summed, f.call("mul", weights, whole)).is_zero
    assert not prove_equal(
        f.call("mul", weights, picked(roots(elsewhere, -2))), f.call("mul", weights, whole)
    ).is_zero
    assert not prove_equal(summed, f.call("mul", f.call("exp", f.x), whole)).is_zero


def test_conditions_that_exclude_each_other_are_no_signs() -> None:
    """[rule: domain]: also where one is a multiple of the other at another index."""
    f = Formulas()
    context = Proof(RULES, FACTS)
    conversion = Conversion(context)
    here = conversion.poly(f.x)
    there = conversion.poly(
        f.pool.access("x", (Dim.of(Axis("other", Dim.size("n"))), f.column), float32)
    )
    context.require("log", ">", here)
    assert adopt_domain(context)
    context.require("log", ">", there.scaled(-2))
    assert not adopt_domain(context)


def test_literals_are_decimals() -> None:
    f = Formulas()
    tenths = f.call("add", f.number(0.9), f.number(0.1))
    assert prove_equal(tenths, f.number(1)).is_zero
    root = f.call("sqrt", f.number(2))
    assert not prove_equal(root, f.number(1.4142135623730951)).is_zero
    read = prove_equal(root, f.number(1.4142135623730951), Facts(recognise=True))
    assert read.is_zero
    (reading,) = read.readings
    assert "sqrt(2)" in reading


def test_computed_indices_are_looked_through() -> None:
    """An argmax that was cut because it serves as an index."""
    from symgrad.ir.dim import Element

    f = Formulas()
    best = f.pool.reduce("argmax", COLUMN, f.x)
    named = f.pool.access("x", (f.row, Dim.of(Element("%7", (f.row,)))), float32)
    top = f.pool.reduce("max", COLUMN, f.x)
    met = f.pool.call("eq", f.pool.integer(f.column), best, dtype=bool_)
    hand = f.pool.select(met, f.number(1), f.number(0))
    reference = f.pool.call("eq", f.x, top, dtype=bool_)
    reference = f.pool.select(reference, f.number(1), f.number(0))
    assert prove_equal(hand, reference).is_zero

    def definitions(tensor: str, indices: tuple[Dim, ...]) -> Expr | None:
        return best if (tensor, indices) == ("%7", (f.row,)) else None

    picked = f.sum(COLUMN, f.call("mul", hand, f.x))
    assert not prove_equal(picked, named).is_zero
    assert prove_equal(picked, named, definitions=definitions).is_zero


def test_the_budget_is_kept() -> None:
    """What is too large is undecided for a reason, and soon."""
    f = Formulas()
    total = f.x
    for name in ("w", "y"):
        axis = COLUMN if name == "w" else ROW
        total = f.call("add", total, f.pool.access(name, (Dim.of(axis),), float32))
    body = f.call("mul", total, total)
    for _ in range(6):
        body = f.call("mul", body, f.call("add", body, 1))
    result = prove_equal(body, None, budget=2000)
    assert not result.is_zero
    assert "2000 steps" in result.reason
    assert result.context.work < 2000 * 60


def test_deep_expressions_do_not_recurse() -> None:
    f = Formulas()
    flat = f.x
    for _ in range(20_000):
        flat = f.call("add", flat, 1)
    assert prove_equal(flat, f.call("add", f.x, 20_000)).is_zero
    nested = f.x
    for _ in range(2000):
        nested = f.call("sin", nested)
    result = prove_equal(nested, f.x)
    assert not result.is_zero
    assert "deep" in result.reason


def chain(f: Formulas, depth: int, *, left_first: bool) -> Expr:
    """The gradient of a chain of tanh layers, the cotangent multiplied in from either end."""
    axes = [Axis(f"k{layer}", M) for layer in range(depth)]
    factors = []
    for layer, axis in enumerate(axes):
        before = Dim.of(axes[layer - 1]) if layer else f.column
        hidden = f.call("tanh", f.pool.access(f"h{layer}", (f.row, Dim.of(axis)), float32))
        slope = f.call("sub", 1, f.call("square", hidden))
        weight = f.pool.access(f"w{layer}", (before, Dim.of(axis)), float32)
        factors.append((axis, f.call("mul", slope, weight)))
    result = f.pool.access("g", (f.row, Dim.of(axes[-1])), float32)
    if left_first:
        for axis, factor in reversed(factors):
            result = f.sum(axis, f.call("mul", factor, result))
        return result
    for _, factor in factors:
        result = f.call("mul", result, factor)
    for axis, _ in factors:
        result = f.sum(axis, result)
    return result


@pytest.mark.parametrize("depth", [1, 4, 8, 12, 24])
def test_deep_chains_stay_small(depth: int) -> None:
    """Let-atoms: the cost of a chain of tanh layers grows no worse than quadratically."""
    f = Formulas()
    inside, outside = chain(f, depth, left_first=True), chain(f, depth, left_first=False)
    result = attempt(inside, outside, factored=True)
    assert result.is_zero
    assert result.context.work < 60 * (depth + 4) ** 2
    wrong = f.call("mul", inside, 2)
    assert not attempt(wrong, outside, factored=True, budget=20_000).is_zero


def test_results_of_is_zero_carry_the_reason() -> None:
    context = Proof(RULES)
    result = is_zero(context, of_atom(context.atom(SIZE, "n")))
    assert not result.is_zero
    assert "left of the difference" in result.reason


def test_extents_that_depend_on_an_axis_are_undecided() -> None:
    f = Formulas()
    ragged = Axis("r", Dim.of(ROW) + 1)
    body = f.pool.access("y", (Dim.of(ragged),), float32)
    result = prove_equal(f.sum(ragged, body), None)
    assert not result.is_zero
    assert "depends on another axis" in result.reason
