"""Relations that are stated of the inputs: what is read, what is refused, what they decide.

Programs whose label torch confirms are in ``tests/suite/adversarial/kinds/relations.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad.errors import SpecError
from symgrad.frontend.trace import trace
from symgrad.ir.assume import parse
from symgrad.proof.judge.defined import outside
from symgrad.proof.judge.stated import exclusions, relations
from symgrad.proof.oracle.enclosure import surely_stated
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.verify import subject_of


class Identity(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 1

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g


class Pair(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        return x * 1 + y * 0

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g, g * 0


class Columns(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return (1 - (x * x).sum(0)).relu()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g


def _subject(cls: type[sg.Function], *specs: str, **assume: str) -> Subject:
    graphs = trace(cls, *specs, assume=assume)
    return subject_of(graphs.cases[0], graphs.assumptions)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("(x * x).sum(-1) < 1", ["(x * x).sum(-1) < 1"]),
        ("x.sum(-1) < y.sum() and positive", ["x.sum(-1) < y.sum()", "x > 0"]),
        ("positive, x.amax(-1, True) <= 2", ["x > 0", "x.amax(-1, True) <= 2"]),
        ("0 < x.sum(-1) < 1", ["0 < x.sum(-1)", "x.sum(-1) < 1"]),
        ("x > 0.5", ["x > 1/2"]), ("0 <= x < 1", ["x in [0, 1)"]), ("x != 0", ["x != 0"]),
        ("2 > x", ["x in (-inf, 2)"]), ("x < y", ["x < y"]), ("x[0, 1] < x[1, 0]",
         ["x[0, 1] < x[1, 0]"]),
    ],
)  # fmt: skip
def test_relations_are_read(text: str, said: list[str]) -> None:
    found = parse("x", text)
    assert sorted(str(one) for one in found) == sorted(said)
    again = [part for one in found for part in parse(one.name, one.text)]
    assert sorted(map(str, again)) == sorted(said)  # as a manifest keeps them


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("(z * z).sum(-1) < 1", "'z'"), ("grad_y < x", "'grad_y'"), ("output > x", "'output'"),
        ("q < x.sum()", "'q'"), ("y < 1", "does not name"), ("x in y", "no relation"),
        ("x.floor() < 1", "floor"), ("(x > 0).float() < 1", "nothing that a relation"),
        ("x.sqrt() < 1", "root of what may be negative"), ("x.shape[0] < 5", "no element"),
        ("x.nonsense() < 1", "nonsense"), ("nonsense(x) < 1", "nonsense"),
        ("x.__class__ < 1", "is no value"), ("x.add_(1) < 1", "is no value"),
        ("x.sum(7) < 1", "cannot be evaluated"), ("(lambda: x)() < 1", "nothing that a relation"),
        ("x.sum().item() < 1", "relation"), ("x.exp() == 1", "cannot be solved"),
        ("x.sign() < 2", "sign"), ("x ** 0.5 < 2", "pow|root"), ("x.argmax() < 3", "argmax|int"),
    ],
)  # fmt: skip
def test_what_is_no_relation_of_reals_is_refused(text: str, part: str) -> None:
    with pytest.raises(sg.SymgradError, match=part):
        sg.verify(Pair, "n m", "m", assume={"x": text})


def test_a_caret_points_at_a_name_that_is_no_input() -> None:
    with pytest.raises(SpecError) as caught:
        sg.verify(Identity, "n m", assume={"x": "(x * w).sum() < 1"})
    lines = str(caught.value).splitlines()
    assert lines[2].index("^") == lines[1].index("w")
    assert "the inputs are x" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "(x * x).sum(-1) < 0", "x < x", "x.sum(-1) < 1 and x.sum(-1) > 2", "x.exp() < 0",
        "x.abs() < -1", "1 + x * x <= 0", "positive and x.sum() < 0",
    ],
)  # fmt: skip
def test_what_nothing_meets_is_an_error(text: str) -> None:
    with pytest.raises(SpecError, match="nothing meets"):
        sg.verify(Identity, "n m", assume={"x": text})


def test_what_no_point_is_found_for_is_undecided() -> None:
    report = sg.verify(Identity, "n m", assume={"x": "(x * x).sum() + x.cos().sum() < 0.5"})
    assert report.verdict is sg.UNDECIDED
    assert "for which" in str(report)


@pytest.mark.parametrize(
    ("text", "left_out"),
    [
        ("(x * x).sum(-1) < 1", 0), ("(x * x).sum(-1) <= 1", 0), ("x.sum() <= 1", 0),
        ("(x * x).sum(-1) <= 0", 1), ("nonnegative and x.sum(-1) <= 1", 1),
        ("x.sum() <= 1 and x.sum() >= 0.5", 2),
    ],
)  # fmt: skip
def test_the_end_of_a_closed_relation_counts_where_it_is_a_limit(text: str, left_out: int) -> None:
    """[rule: stated-relation]."""
    assert len(exclusions(_subject(Identity, "n m", x=text))) == left_out


def test_a_relation_says_nothing_of_other_axes() -> None:
    """The index that a sum binds is no row of the relation.  [rule: stated-relation]."""
    for spec in ("n m", "n n"):
        subject = _subject(Columns, spec, x="(x * x).sum(-1) < 1")
        known = outside(subject)
        assert known is not None
        (kink,) = [node for node in subject.forward.nodes if node.op == "relu"]
        from symgrad.proof.judge.boundaries import kinked

        assert not any(known.excludes(boundary) for boundary in kinked(kink))


@pytest.mark.parametrize(
    "text",
    [
        "x.sum(-1) == 1", "x.mean(0) == 0", "positive and x.sum(-1) == 1", "x == x.T",
        "x == -x.T", "x[0] == x[-1]", "diagonal", "x.sum() == 3",
        "x.sum(-1) == 1 and x.sum(0) == 1",
    ],
)  # fmt: skip
def test_points_meet_equalities_exactly(text: str) -> None:
    subject = _subject(Identity, "n n", x=text)
    subject.settle()
    seen = 0
    for number, sizes in enumerate(subject.sampler.small_choices(3)):
        at = subject.draw(sizes, number)
        if at is not None:
            assert surely_stated(subject, at.point)
            seen += 1
    assert seen > 1


@pytest.mark.parametrize(
    ("text", "forward"),
    [
        ("x.sum(-1) == 1", lambda x: (x.sum(-1) - 1).relu()),
        ("x.sum(-1) == 1", lambda x: x.sum(-1).floor()),
        ("x.sum(-1) == 2", lambda x: sg.where(x.sum(-1) == 2, x.sum(-1), 3 * x.sum(-1))),
        ("x == 0", lambda x: x.abs()), ("x == x.T", lambda x: (x - x.T).abs() + x),
        ("x.mean(-1) == 0", lambda x: x.mean(-1).sign()),
    ],
)  # fmt: skip
def test_nothing_is_proved_where_the_equality_lies_on_a_boundary(text: str, forward: Any) -> None:
    class Edge(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return forward(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return x * 0

    assert sg.verify(Edge, "n n", assume={"x": text}).verdict is not sg.PROVED


def test_what_no_free_tensor_gives_is_undecided() -> None:
    text = "x.sum(-1) == 1 and x.sum(-1) == 2"
    assert sg.verify(Identity, "n m", assume={"x": text}).verdict is sg.UNDECIDED


def test_points_meet_what_is_stated() -> None:
    subject = _subject(Pair, "n m", "m", x="(x * x).sum(-1) < 0.25", y="x.sum(0) < y")
    subject.settle()
    seen = 0
    for number, sizes in enumerate(subject.sampler.small_choices(12)):
        at = subject.draw(sizes, number)
        if at is not None:
            x, y = (at.point.doubles()[name] for name in "xy")
            assert np.all((x * x).sum(-1) < 0.25)
            assert np.all(x.sum(0) < y)
            seen += 1
    assert seen


def test_bounds_of_wholes_are_bounds_of_parts() -> None:
    subject = _subject(Identity, "n m", x="x.norm() < 2")
    assert len(relations(subject)) > 4
    assert all(one.text == "x.norm() < 2" for one in relations(subject))


def test_relations_are_printed_and_audited() -> None:
    report = sg.verify(Identity, "n m", assume={"x": "(x * x).sum(-1) < 1"}, audit=True)
    assert report.verdict is sg.PROVED
    assert "if (x * x).sum(-1) < 1" in str(report)


def test_the_second_order_is_not_judged_on_an_equality() -> None:
    class Cube(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 3 * g * x * x * x.sum()

    stated = {"x": "x.sum() == 1"}
    assert sg.verify(Cube, "n", assume=stated).verdict is sg.PROVED
    assert sg.verify(Cube, "n", assume=stated, order=2).verdict is sg.UNDECIDED
    assert sg.verify(Cube, "n", order=2).verdict is sg.REFUTED


class Gap(sg.Function):
    """Over a power of what a relation says is negative."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.save_for_backward(x, y)
        return y * (((x * x).sum(-1) - 1) ** -3).abs()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        gap = 1 - (x * x).sum(-1)
        return 6 * (g * y / gap**4).unsqueeze(-1) * x, g / gap**3


@pytest.mark.parametrize(("relation", "verdict"), [("< 1", "PROVED"), ("> 1", "REFUTED")])
def test_odd_powers_have_the_sign_that_is_stated(relation: str, verdict: str) -> None:
    """[rule: signs]."""
    stated = {"x": f"(x * x).sum(-1) {relation}"}
    assert sg.verify(Gap, "n m", "n", assume=stated, suggest=False).verdict == verdict
