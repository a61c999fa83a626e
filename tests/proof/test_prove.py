"""The stages of a proof: deep chains piece by piece, residuals, constants, conditions."""

from __future__ import annotations

from cProfile import Profile

import pytest

import symgrad as sg
from symgrad.budgets import DEEP_NODES
from symgrad.ir.assume import parse_all
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import int64
from symgrad.ir.expr import postorder
from symgrad.ir.function import SizeCondition
from symgrad.ir.graph import Node
from symgrad.proof.judge.decide import judge
from symgrad.proof.judge.equality import Equality, decide_equal, facts_of
from symgrad.proof.judge.goals import Goal
from symgrad.proof.judge.prove import Pieces
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.report.verdict import Verdict
from tests.proof.builders import K, M, N, chain, elementwise, row_sum, softmax, subject, tensor
from tests.suite.adversarial.program import class_of


def _verdicts(one: Subject) -> dict[str, Verdict]:
    return {name: judgement.verdict for name, judgement in judge(one).items()}


def test_a_deep_chain_is_proved_in_pieces() -> None:
    found = judge(chain(12))
    assert {judgement.verdict for judgement in found.values()} == {Verdict.PROVED}
    assert not any(judgement.method.startswith("whole") for judgement in found.values())


def _steps(count: int) -> int:
    """The calls of Python functions that judging so many nested sines takes."""

    def sines(x: Node) -> list[Node]:
        found = [x]
        for _ in range(count):
            found.append(x.graph.apply("sin", found[-1]))
        return found

    def backward(g: Node, y: Node, x: Node) -> list[Node]:
        for inner in reversed(sines(x)[:-1]):
            g = g * g.graph.apply("cos", inner)
        return [g]

    one = subject({"x": tensor(N)}, lambda x: sines(x)[-1], backward)
    profile = Profile()
    found = profile.runcall(judge, one)
    assert {judgement.verdict for judgement in found.values()} == {Verdict.PROVED}
    return sum(entry.callcount for entry in profile.getstats())


def test_the_work_of_a_long_chain_is_linear_in_it() -> None:
    _steps(DEEP_NODES + 10)  # what is made once
    short, long = _steps(DEEP_NODES + 10), _steps(3 * (DEEP_NODES + 10))
    assert long < 4 * short


def test_a_deep_chain_with_one_slip_is_refuted_below_it() -> None:
    found = _verdicts(chain(8, forget=3))
    wrong = {name for name, verdict in found.items() if verdict is Verdict.REFUTED}
    assert wrong == {"x", "w0", "w1", "w2", "w3"}
    assert {found[f"w{i}"] for i in range(4, 8)} == {Verdict.PROVED}


def test_pieces_of_a_wrong_backward_stop_at_the_slip() -> None:
    """Nothing behind the slip is taken for an adjoint, and nothing is proved there."""
    one = chain(6, forget=2)
    one.settle()

    def equal(goal: Goal) -> Equality:
        return decide_equal(
            goal.hand, goal.reference, facts_of((), {}), goal.leaves, goal.define
        )  # fmt: skip

    pieces = Pieces(one, equal, [node for node in one.forward.nodes if node.op == "einsum"])
    tanh = [node for node in one.forward.nodes if node.op == "tanh"]
    assert {node for node in pieces.proved if node.op == "tanh"} == set(tanh[2:])
    assert not pieces.prove("w0").equal
    assert pieces.prove("w5").equal


@pytest.mark.parametrize("layers", [20, 40])
def test_the_cost_grows_no_worse_than_quadratically(layers: int) -> None:
    """The number of goals, and the size of each, counted rather than timed."""
    one = chain(layers)
    one.settle()
    sizes: list[int] = []

    def equal(goal: Goal) -> Equality:
        assert goal.reference is not None
        sizes.append(len(postorder([goal.hand])) + len(postorder([goal.reference])))
        return Equality(True)

    pieces = Pieces(one, equal, [node for node in one.forward.nodes if node.op == "einsum"])
    assert pieces.prove("w0").equal
    assert len(sizes) <= 2 * layers + 1
    assert max(sizes) < 60


def test_saved_outputs_may_stand_for_what_they_are() -> None:
    found = judge(elementwise("tanh", lambda x, y: 1 - y * y))
    assert found["x"].verdict is Verdict.PROVED


def test_recognised_constants_are_printed() -> None:
    scale = 0.7071067811865476
    one = subject(
        {"x": tensor(N)},
        lambda x: x.graph.apply("erf", x * scale),
        lambda g, y, x: [
            g * x.graph.apply("exp", -(x * x) / 2) * 0.7978845608028654,
        ],
    )
    found = judge(one)["x"]
    assert found.verdict is Verdict.PROVED
    assert found.recognised
    readings = [condition.text for condition in found.conditions if condition.kind == "literal"]
    assert any("sqrt(2/pi)" in text for text in readings)


def test_a_wrong_digit_is_no_constant() -> None:
    one = subject(
        {"x": tensor(N)},
        lambda x: x.graph.apply("erf", x),
        lambda g, y, x: [g * x.graph.apply("exp", -(x * x)) * 1.1283791670],
    )
    assert judge(one)["x"].verdict is Verdict.PROVED
    one = subject(
        {"x": tensor(N)},
        lambda x: x.graph.apply("erf", x),
        lambda g, y, x: [g * x.graph.apply("exp", -(x * x)) * 1.1283791770],
    )
    assert judge(one)["x"].verdict is Verdict.REFUTED


def test_exact_decimals_add_up() -> None:
    one = subject({"x": tensor(N)}, lambda x: x, lambda g, y, x: [g * 0.9 + g * 0.1])
    found = judge(one)["x"]
    assert found.verdict is Verdict.PROVED
    assert not found.recognised


def test_conditions_of_the_case_are_used() -> None:
    """``x / (n - 1)``-like: wrong at n = 1 only."""

    def spread(x: Node) -> Node:
        size = x.graph.expand(x.graph.size(N), x.shape)
        return x.graph.apply("where", x.graph.binary("eq", size, 1), x * x, x)

    for conditions, verdict in (
        ((), Verdict.REFUTED), ((SizeCondition(N, "!=", Dim.of(1)),), Verdict.PROVED),
    ):  # fmt: skip
        one = subject({"x": tensor(N)}, spread, lambda g, y, x: [g], conditions=conditions)
        assert judge(one)["x"].verdict is verdict


def test_declared_assumptions_are_used() -> None:
    def root(x: Node) -> Node:
        return x.graph.apply("sqrt", x * x)

    plain = subject({"x": tensor(N)}, root, lambda g, y, x: [g])
    assert judge(plain)["x"].verdict is Verdict.REFUTED
    declared = parse_all({"x": "positive"})
    positive = subject({"x": tensor(N)}, root, lambda g, y, x: [g], assumptions=declared)
    assert judge(positive)["x"].verdict is Verdict.PROVED


def test_repeated_indices_are_added_up() -> None:
    types = {"w": tensor(N, M), "i": tensor(K, dtype=int64)}
    right = subject(
        types,
        lambda w, i: w.graph.apply("index", w, i),
        lambda g, y, w, i: [w.graph.apply("index_add", g, i, shape=w.shape), None],
    )
    assert judge(right)["w"].verdict is Verdict.PROVED


def test_softmax_in_two_spellings() -> None:
    for backward in (
        lambda g, y, x: [y * (g - row_sum(g * y))],
        lambda g, y, x: [y * g - y * row_sum(y * g)],
    ):
        found = judge(subject({"x": tensor(N, M)}, softmax, backward))["x"]
        assert found.verdict is Verdict.PROVED


def test_no_point_no_verdict() -> None:
    """A forward that is defined nowhere is UNDECIDED, whatever the backward says."""
    one = subject(
        {"x": tensor(N)},
        lambda x: x.graph.apply("log", -(x * x) - 1),
        lambda g, y, x: [g],
    )
    found = judge(one)["x"]
    assert found.verdict is Verdict.UNDECIDED
    assert "finite" in found.reason


GATED = """class Gated(sg.Function):
    @staticmethod
    def forward(ctx, x, y, z):
        ctx.save_for_backward(x, y, z)
        h = x @ sg.cat([y, z], 0).t()
        a, b = h.chunk(2, 1)
        return a * b.tanh()

    @staticmethod
    def backward(ctx, g):
        x, y, z = ctx.saved_tensors
        h = x @ sg.cat([y, z], 0).t()
        a, b = h.chunk(2, 1)
        t = b.tanh()
        da, db = g * t, g * a * (1 - t * t)
        t0 = (x @ sg.cat([y, z], 0).mT)[:, g.shape[1]:].tanh()
        t1 = g * (x @ sg.cat([y, z], 0).mT)[:, :g.shape[1]] * (1 - t0.square())
        t2 = g.new_zeros(g.shape[0], 2 * g.shape[1])
        t2[:, g.shape[1]:] = t1
        t3 = sg.zeros_like(t2)
        t3[:, :g.shape[1]] = g * t0
        return (t2 + t3) @ sg.cat([y, z], 0), da.t() @ x, db.t() @ x
"""


def test_what_is_proved_by_itself_is_proved_beside_others() -> None:
    """The pieces of other gradients hide none of its own."""
    report = sg.verify(class_of("Gated", GATED, sg), "n k", "m k", "m k", suggest=False)
    assert report.verdict == sg.PROVED, str(report)
