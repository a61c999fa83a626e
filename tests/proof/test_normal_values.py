"""The normal form means what the expression means: values agree at random points and sizes."""

from __future__ import annotations

from collections.abc import Iterator

import mpmath
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from symgrad.ir.dim import Axis, Dim
from symgrad.ir.expr import Access, Call, Expr, ExprPool, IntValue, Reduce
from symgrad.proof.normal.algebra import Substitution
from symgrad.proof.normal.atoms import Undecided
from symgrad.proof.normal.context import Proof
from symgrad.proof.normal.from_expr import Conversion
from symgrad.proof.normal.numeric import Enclosure, Evaluation, Exact, NotEvaluable
from symgrad.proof.normal.poly import Poly
from symgrad.proof.normal.rules import RULES
from tests.proof.normal_expressions import (
    COLUMN,
    FACTS,
    ROW,
    Maker,
    N,
    Point,
    close,
    rebuild,
)

SEEDS = st.integers(0, 2**32 - 1)
SIZES = ((2, 3), (1, 2), (3, 1))
MANY = settings(max_examples=120)


@pytest.fixture(autouse=True)
def digits() -> Iterator[None]:
    with mpmath.workdps(50):
        yield


def convert(expr: Expr, *, factored: bool = False) -> tuple[Conversion, Poly]:
    """The normal form within a small budget; without one the example is not counted."""
    context = Proof(RULES, FACTS, budget=4000, factored=factored)
    conversion = Conversion(context)
    try:
        return conversion, conversion.poly(expr)
    except Undecided:
        assume(False)
        raise


def check_values(expr: Expr, seed: int, *, factored: bool) -> int:
    """Compare at all points where no obligation is broken; how many there were."""
    conversion, poly = convert(expr, factored=factored)
    checked = 0
    for n, m in SIZES:
        point = Point(seed, n, m)
        for at in point.places():
            expected = point.of_expr(expr, at)
            if not mpmath.isfinite(expected) or abs(expected) > 1e12:
                continue
            try:
                found = point.of_poly(conversion, poly, at)
            except NotEvaluable:
                continue
            assert close(expected, found, 12) or not point.owes_nothing(conversion.context)
            checked += 1
    return checked


@MANY
@given(seed=SEEDS, depth=st.integers(1, 5))
def test_values_agree(seed: int, depth: int) -> None:
    """For sums, extrema, products, conditions, gathers, at three pairs of sizes."""
    assume(check_values(Maker(seed).scalar(depth), seed, factored=False))


@MANY
@given(seed=SEEDS, depth=st.integers(1, 5))
def test_values_agree_with_lets(seed: int, depth: int) -> None:
    assume(check_values(Maker(seed).scalar(depth), seed, factored=True))


@given(seed=SEEDS)
def test_the_normal_form_is_its_own_normal_form(seed: int) -> None:
    """Rebuilding every atom by its rule changes nothing."""
    conversion, poly = convert(Maker(seed).scalar(4))
    index = conversion.index(Axis("unused", N))
    task = Substitution(conversion.context, {index: Poly({})})
    task.indices_only = False
    assert task.poly(poly) == poly


@given(seed=SEEDS)
def test_construction_order_does_not_matter(seed: int) -> None:
    """The keys of atoms do not depend on what was made before."""
    maker = Maker(seed)
    first, second = maker.scalar(3), maker.scalar(3)
    forwards = Conversion(Proof(RULES, FACTS, budget=4000))
    backwards = Conversion(Proof(RULES, FACTS, budget=4000))
    try:
        keys = [forwards.poly(first).key, forwards.poly(second).key]
        others = [backwards.poly(second).key, backwards.poly(first).key]
    except Undecided:
        assume(False)
        return
    assert keys == others[::-1]


@given(seed=SEEDS)
def test_names_of_bound_axes_do_not_matter(seed: int) -> None:
    maker = Maker(seed)
    expr = maker.scalar(4)
    renamed = rename_axes(maker.pool, expr)
    conversion, poly = convert(expr)
    assert conversion.poly(renamed) == poly


def rename_axes(pool: ExprPool, expr: Expr) -> Expr:
    """``expr`` with other names for its bound axes."""

    def other(dim: Dim) -> Dim:
        bound = [axis for axis in dim.axes if axis not in (ROW, COLUMN)]
        return dim.substitute({a: Dim.of(Axis(f"zz{a.name[::-1]}", a.extent)) for a in bound})

    def change(part: Expr, args: list[Expr]) -> Expr | None:
        if isinstance(part, Access):
            return pool.access(part.tensor, tuple(map(other, part.indices)), part.dtype)
        if isinstance(part, IntValue):
            return pool.integer(other(part.value), part.dtype)
        if isinstance(part, Reduce):
            axis = Axis(f"zz{part.axis.name[::-1]}", part.axis.extent)
            return pool.reduce(part.kind, axis, args[0])
        return None

    return rebuild(pool, expr, change)


@given(seed=SEEDS)
def test_operands_commute(seed: int) -> None:
    maker = Maker(seed)
    expr = maker.scalar(4)
    pool = maker.pool

    def change(part: Expr, args: list[Expr]) -> Expr | None:
        if isinstance(part, Call) and part.function in ("add", "mul"):
            return pool.call(part.function, *args[::-1], dtype=part.dtype)
        if isinstance(part, Call) and part.function == "sub":
            opposite = pool.call("neg", args[1], dtype=part.dtype)
            return pool.call("add", opposite, args[0], dtype=part.dtype)
        return None

    conversion, poly = convert(expr)
    assert conversion.poly(rebuild(pool, expr, change)) == poly


@given(seed=SEEDS)
def test_intervals_enclose_the_value(seed: int) -> None:
    """A value in interval arithmetic holds the value in floating arithmetic."""
    conversion, poly = convert(Maker(seed).scalar(3))
    point = Point(seed, 2, 3)
    at = {conversion.index(ROW): 1, conversion.index(COLUMN): 2}

    def interval(tensor: str, indices: tuple[int, ...]) -> object:
        element = point.tensors[tensor][indices]
        return mpmath.iv.mpf(element) if isinstance(element, mpmath.mpf) else element

    try:
        enclosure = Evaluation(point.sizes, interval, at, Enclosure()).value(poly)
        value = point.of_poly(conversion, poly, {ROW: 1, COLUMN: 2})
    except (NotEvaluable, OverflowError):
        assume(False)
        return
    slack = mpmath.ldexp(1 + abs(value), -100)
    assert enclosure.a - slack <= value <= enclosure.b + slack


def test_exact_arithmetic_refuses_what_is_not_rational() -> None:
    maker = Maker(0)
    _, poly = convert(maker.call("exp", maker.number(1)))
    with pytest.raises(NotEvaluable):
        Evaluation({}, lambda tensor, indices: 0, field=Exact()).value(poly)
