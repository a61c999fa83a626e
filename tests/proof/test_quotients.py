"""Difference quotients in balls: they agree only where mpmath's numbers do."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from symgrad.ir.graph import Node
from symgrad.ir.registry import names
from symgrad.ops.record import get
from symgrad.proof.judge.decide import judge
from symgrad.proof.oracle import quotients
from symgrad.proof.oracle.quotients import Undecided, certainly_agree
from symgrad.proof.oracle.refute import tolerance
from symgrad.proof.oracle.subject import Subject, precisely
from symgrad.proof.report.verdict import Verdict
from symgrad.proof.scalars.bodies import value_function, value_text
from tests.proof.builders import M, N, chain, elementwise, softmax, subject, tensor

OPS = [
    op.name for op in map(get, sorted(names()))
    if op.scalar is not None and value_text(op.name, op.arity or 1) is not None
    and not op.name.startswith(("wrap_", "logical_")) and op.name not in ("cast", "where")
    and op.name not in quotients._RELATIONS
]  # fmt: skip
LEFT_TO_MPMATH = {"ceil", "copysign", "floor", "floordiv", "fmod", "mod", "round", "trunc"}


@pytest.mark.parametrize("name", [name for name in OPS if name not in LEFT_TO_MPMATH])
def test_a_plain_number_is_a_ball(name: str) -> None:
    """What a constant gives may be the integer 0, for which methods of balls crash."""
    count = get(name).arity or 1
    text = value_text(name, count)
    assert text is not None
    function = quotients._function(text, count)
    assert function is not None
    with ctx.workprec(quotients.BITS):
        try:
            found = arb(function(*[0] * count))
        except (*quotients._NO_VALUE, ZeroDivisionError):
            return
        expected = arb(function(*[arb(0)] * count))
        assert found.overlaps(expected) or not expected.is_finite()


@pytest.mark.parametrize("name", OPS)
@settings(max_examples=6, deadline=None)
@given(st.lists(st.fractions(-4, 4, max_denominator=97), min_size=2, max_size=2))
def test_balls_contain_what_mpmath_says(name: str, numbers: list[Fraction]) -> None:
    count = get(name).arity or 1
    text = value_text(name, count)
    assert text is not None
    function = quotients._function(text, count)
    assert (function is None) == (name in LEFT_TO_MPMATH)
    if function is None:
        return
    with mpmath.workdps(60), ctx.workprec(quotients.BITS):
        points = numbers[:count]
        value = value_function(name, count)(
            *(mpmath.mpf(p.numerator) / p.denominator for p in points)
        )
        try:
            found = arb(function(*(arb(p.numerator) / p.denominator for p in points)))
        except Undecided:
            return
        if not found.is_finite():
            return
        assert not isinstance(value, mpmath.mpc)
        assert mpmath.isfinite(value)
        near = arb(mpmath.nstr(value, 58)) + arb(0, 1e-45) * (1 + abs(arb(float(value))))
        assert found.overlaps(near), (found, value)


def _softmax(factor: float) -> Subject:
    def backward(g: Node, y: Node, x: Node) -> list[Node]:
        inner = g.graph.apply("sum", g * y, axes=(1,))
        kept = g.graph.apply("reshape", inner, shape=(*g.shape[:-1], 1))
        return [y * (g - g.graph.expand(kept, g.shape)) * factor]

    return subject({"x": tensor(N, M)}, softmax, backward)


def _relu(factor: float) -> Subject:
    def backward(g: Node, y: Node, x: Node) -> list[Node]:
        zero = g.graph.expand(g.graph.constant(0.0, g.dtype), g.shape)
        above = g.graph.apply("gt", x, zero)
        return [g.graph.apply("where", above, g * factor, zero)]

    return subject({"x": tensor(N, M)}, lambda x: x.graph.apply("relu", x), backward)


SUBJECTS = {
    "sin": lambda f: elementwise("sin", lambda x, y: x.graph.apply("cos", x) * f),
    "lgamma": lambda f: elementwise("lgamma", lambda x, y: x.graph.apply("digamma", x) * f),
    "softmax": _softmax,
    "relu": _relu,
}


@pytest.mark.parametrize("name", SUBJECTS)
@pytest.mark.parametrize("factor", [1.0, 1.0 + 2.0**-50, 1.5])
def test_they_agree_where_mpmath_does(name: str, factor: float) -> None:
    one = SUBJECTS[name](factor)
    one.settle()
    said = []
    for number, sizes in enumerate(one.sampler.small_choices(9)[-3:]):
        at = one.draw(sizes, number)
        if at is None:
            continue
        with precisely():
            precise = one.evaluate_precise(at.point)
            gap = one.compare(precise, {"x": one.direction("x", precise)}).gap
            said.append(certainly_agree(one, at.point, ["x"]))
            assert said[-1] <= bool(gap <= tolerance(one))
    assert any(said) if factor == 1.0 else not all(said)


def test_a_chain_of_contractions_agrees_in_all_its_gradients() -> None:
    for forget in (None, 1):
        one = chain(3, forget=forget)
        one.settle()
        at = one.draw({"m": 2, "n": 2}, 0)
        assert at is not None
        with precisely():
            assert certainly_agree(one, at.point, list(one.gradients)) == (forget is None)
            assert certainly_agree(one, at.point, ["w2"])


def test_what_balls_do_not_decide_is_asked_of_mpmath(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without them the verdicts are the same."""
    right, wrong = _softmax(1.0), _softmax(1.5)
    found = [judge(one)["x"].verdict for one in (right, wrong)]
    monkeypatch.setattr(quotients, "certainly_agree", lambda *_: False)
    assert [judge(one)["x"].verdict for one in (_softmax(1.0), _softmax(1.5))] == found
    assert found == [Verdict.PROVED, Verdict.REFUTED]
