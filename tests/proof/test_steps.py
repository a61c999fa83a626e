"""Recurrences are proved step by step, whatever their length, and no slip in one is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import symgrad as sg
from benchmarks.chains import perceptron
from symgrad.frontend.trace import trace_request
from symgrad.proof.judge.decide import proving
from symgrad.proof.judge.equality import Equality
from symgrad.proof.judge.prove import Prover
from symgrad.proof.judge.steps import Steps
from symgrad.proof.verify import subject_of
from symgrad.shapes import requested
from tests.proof.recurrences import (
    Written,
    clamped,
    gated,
    knopp,
    muon,
    newton_schulz,
    recurrent,
    scaling,
    shrunk,
    sines,
    sinkhorn,
    tiled_attention,
)

ROLLED = ("{} b d", "b h", "d h", "h h", "h")
GATED = ("{} n k", "n 2", "k 6", "2 6", "6")
RIGHT = {
    "newton-schulz-2": (newton_schulz(2), ("n m",)),
    "newton-schulz-4": (newton_schulz(4), ("n m",)),
    "muon-2": (muon(2), ("n m",)),
    "recurrent-5": (recurrent(5), tuple(one.format(5) for one in ROLLED)),
    "sinkhorn-4": (sinkhorn(4), ("n m",)),
    "knopp-12": (knopp(12), ("n m",)),
    "scaling-4": (scaling(4), ("n m", "n", "m")),
    "sines-60": (sines(60), ("n",)),
    "shrunk-3": (shrunk(3), ("m", "m n")),
    "clamped-2": (clamped(2), ("n d", "d d")),
    "tiled-slices": (tiled_attention(2, 4), ("n d", "8 d", "8 e")),
}
LONG = {
    "clamped-4": (clamped(4), ("n d", "d d")),
    "shrunk-6": (shrunk(6), ("m", "m n")),
    "newton-schulz-8": (newton_schulz(8), ("n m",)),
    "muon-5": (muon(5), ("n m",)),
    "recurrent-16": (recurrent(16), tuple(one.format(16) for one in ROLLED)),
    "sinkhorn-12": (sinkhorn(12), ("n m",)),
    "gated-16": (gated(16), tuple(one.format(16) for one in GATED)),
    "sines-400": (sines(400), ("n",)),
    "perceptron-32": perceptron(160),
}
OPEN = {
    "tiled-2": (tiled_attention(2), ("n d", "2 b d", "2 b e")),
}
"""Right, and shown but for terms with equal indices of a sum, which every input has."""
SLIPS = {
    "newton-schulz": (newton_schulz(2, "transpose"), ("n m",), ["x"]),
    "muon: symmetric": (muon(2, "symmetric"), ("n m",), ["w"]),
    "muon: norm": (muon(1, "norm"), ("n m",), ["w"]),
    "recurrent: state": (
        recurrent(3, "state"), tuple(one.format(3) for one in ROLLED), ["x", "h", "w", "u", "b"],
    ),
    "recurrent: matrix": (
        recurrent(3, "matrix"), tuple(one.format(3) for one in ROLLED), ["x", "h", "w", "u", "b"],
    ),
    "recurrent: order": (recurrent(3, "order"), tuple(o.format(3) for o in ROLLED), ["x"]),
    "sines": (sines(30, "one"), ("n",), ["x"]),
    "sinkhorn": (sinkhorn(2, "round"), ("n m",), ["x"]),
    "knopp: axis": (knopp(2, "axis"), ("n m",), ["x"]),
    "knopp: power": (knopp(2, "power"), ("n m",), ["x"]),
    "scaling": (scaling(3, "late"), ("n m", "n", "m"), ["c"]),
    "gated: gate": (
        gated(3, "gate"), tuple(one.format(3) for one in GATED), ["x", "h", "w", "u", "b"],
    ),
    "gated: reset": (
        gated(3, "reset"), tuple(one.format(3) for one in GATED), ["x", "h", "w", "u", "b"],
    ),
    "shrunk: side": (shrunk(3, "side"), ("m", "m n"), ["y", "a"]),
    "shrunk: rest": (shrunk(3, "rest"), ("m", "m n"), ["a"]),
    "tiled: mean": (tiled_attention(2, 0, "mean"), ("n d", "2 b d", "2 b e"), ["q", "k"]),
    "clamped: side": (clamped(2, "side"), ("n d", "d d"), ["x", "w"]),
    "clamped: after": (clamped(2, "after"), ("n d", "d d"), ["w"]),
    "clamped: matrix": (clamped(2, "matrix"), ("n d", "d d"), ["x", "w"]),
    "tiled: tile": (tiled_attention(2, 4, "tile"), ("n d", "8 d", "8 e"), ["q"]),
}  # fmt: skip


RARE = {
    "clamped: wide": (clamped(2, "wide"), ("n d", "d d"), ["x", "w"]),
    "clamped: turned": (clamped(2, "turned"), ("n d", "d d"), ["x", "w"]),
    "clamped: unclamped": (clamped(2, "unclamped"), ("n d", "d d"), ["w"]),
}


@pytest.mark.parametrize("name", RIGHT)
def test_recurrences_are_proved(name: str) -> None:
    function, specs = RIGHT[name]
    assert sg.verify(function, *specs, timeout=None).verdict == "PROVED"


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_long_ones_are_proved_too(name: str) -> None:
    function, specs = LONG[name]
    assert sg.verify(function, *specs, timeout=None).verdict == "PROVED"


@pytest.mark.parametrize("name", OPEN)
def test_what_is_not_shown_is_not_refuted(name: str) -> None:
    function, specs = OPEN[name]
    assert sg.verify(function, *specs, timeout=None).verdict == "UNDECIDED"


@pytest.mark.parametrize(
    "name", [*SLIPS, *(pytest.param(name, marks=pytest.mark.slow) for name in RARE)]
)
def test_slips_are_refuted(name: str) -> None:
    function, specs, wrong = {**SLIPS, **RARE}[name]
    report = sg.verify(function, *specs, suggest=False)
    assert [one.name for one in report.inputs.values() if one.verdict == "REFUTED"] == wrong


@pytest.mark.parametrize("name", ["newton-schulz", "recurrent: order", "sinkhorn", "tiled: mean"])
def test_no_slip_is_proved_by_steps_alone(name: str) -> None:
    function, specs, wrong = SLIPS[name]
    steps = made(function, specs)
    for one in wrong:
        assert not steps.prove(one).equal


def made(function: Written, specs: Sequence[str]) -> Steps:
    """The proof by steps alone."""
    graphs = trace_request(requested(function, specs))
    subject = subject_of(graphs.cases[0], graphs.assumptions)
    subject.settle()
    prover = proving(subject, 200_000).prover
    return Steps(prover.subject, prover.equal, prover.atoms, prover.facts)


def test_equal_values_at_points_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where everything looks equal, only what is equal is taken for one node."""
    from symgrad.proof.judge import steps

    monkeypatch.setattr(steps, "_alike", lambda marks, _: np.ones(len(marks), dtype=bool))
    monkeypatch.setattr(steps.Classes, "_vanishes", lambda *_: False)
    for function, specs, wrong in (SLIPS["sinkhorn"], SLIPS["newton-schulz"]):
        proof = made(function, specs)
        assert not any(proof.prove(name).equal for name in wrong)


@pytest.mark.slow
def test_no_proof_is_tried_of_nodes_that_balls_tell_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums over the layers of a deep network differ by less than doubles show."""
    from symgrad.proof.judge import steps

    failed = []
    tried = steps.Classes._equal_above

    def counted(self: Any, *given: Any) -> Any:
        found = tried(self, *given)
        failed.extend([] if found.equal else [given])
        return found

    monkeypatch.setattr(steps.Classes, "_equal_above", counted)
    proof = made(*perceptron(200))
    assert all(proof.prove(name).equal for name in ("x", "w", "b"))
    assert len(failed) <= 2


@pytest.mark.parametrize(("factor", "known"), [(0.5, True), (0.7071067811865476, False)])
def test_balls_tell_nothing_apart_where_literals_may_be_rounded(factor: float, known: bool) -> None:
    """With 1/sqrt(2) for that literal, equal nodes may be apart as it is written."""
    from symgrad.proof.judge import steps

    class Scaled(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * factor

        @staticmethod
        def backward(ctx: Any, grad_y: Any) -> Any:
            return grad_y * factor

    assert bool(steps._in_balls(made(Scaled, ("n",)))) == known


class DividedByNothing(sg.Function):
    """The adjoint of the shift is 0, and backward divides 0 by it."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x.softmax(-1)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        y = x.softmax(-1)
        own = (g - (g * y).sum(-1, keepdim=True)) * y
        nothing = own.sum(-1, keepdim=True)
        return own * nothing / nothing


def test_nothing_is_divided_by_a_node_that_vanishes() -> None:
    report = sg.verify(DividedByNothing, "n m", suggest=False)
    assert report.verdict != "PROVED"
    assert not made(DividedByNothing, ("n m",)).prove("x").equal


def hyperbolic(slip: str = "", *, clamped: bool = False) -> Written:
    """The distance in the Poincaré ball, with the gradient in closed form."""

    def slope(x: Any, y: Any, sx: Any, sy: Any, distance: Any) -> Any:
        alpha, beta = 1 - sx, 1 - sy
        cosh = 1 + 2 * distance / (alpha * beta)
        inner = (sy - (1 if slip == "inner" else 2) * (x * y).sum(-1) + 1) / alpha**2
        along = inner.unsqueeze(-1) * x - y / (beta if slip == "side" else alpha).unsqueeze(-1)
        return 4 * along / ((cosh**2 - 1).sqrt() * beta).unsqueeze(-1)

    class Distance(sg.Function):
        @staticmethod
        def forward(ctx: Any, u: Any, v: Any) -> Any:
            su, sv, distance = (u * u).sum(-1), (v * v).sum(-1), ((u - v) ** 2).sum(-1)
            if clamped:
                su, sv = su.clamp(0, 1), sv.clamp(0, 1)
            ctx.save_for_backward(u, v, su, sv, distance)
            x = distance / ((1 - su) * (1 - sv)) * 2 + 1
            return (x + (x**2 - 1).sqrt()).log()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            u, v, su, sv, distance = ctx.saved_tensors
            g = g.unsqueeze(-1)
            return g * slope(u, v, su, sv, distance), g * slope(v, u, sv, su, distance)

    return Distance


def recomputed(rounds: int) -> Written:
    """Backward goes through forward again, and asks for the gradient."""
    forward = sinkhorn(rounds).forward

    class Nothing:
        def save_for_backward(self, *kept: Any) -> None:
            pass

    class Recomputed(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return forward(Nothing(), x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return sg.vjp(lambda x: forward(Nothing(), x), x)[1](g)[0]

    return Recomputed


def test_what_is_made_by_the_records_is_proved_by_steps_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def taken(*_: Any) -> Equality:
        raise AssertionError("something else was tried first")

    for stage in ("_by_near_pieces_soon", "_by_near_pieces", "_by_pieces", "_cut", "_whole"):
        monkeypatch.setattr(Prover, stage, taken)
    report = sg.verify(recomputed(3), "n m", suggest=False)
    assert report.verdict == "PROVED", str(report)
    assert "0 equal nodes" in str(report)


@pytest.mark.slow
def test_squares_of_differences_are_unfolded_below_a_root_that_is_not() -> None:
    assert sg.verify(hyperbolic(), "n m", "n m", timeout=None).verdict == "PROVED"


@pytest.mark.slow
@pytest.mark.parametrize("clamped", [False, True])
def test_inside_the_ball_nothing_else_is_asked_of_the_norms(clamped: bool) -> None:
    ball = {one: f"({one} * {one}).sum(-1) < 1" for one in "uv"}
    report = sg.verify(hyperbolic(clamped=clamped), "n m", "n m", assume=ball, timeout=None)
    assert report.verdict == "PROVED"
    said = [str(one) for gradient in report.inputs.values() for one in gradient.conditions]
    assert not any("sum(1) == 1" in one for one in said)


@pytest.mark.slow
@pytest.mark.parametrize("slip", ["inner", "side"])
def test_slips_beside_the_root_are_refuted(slip: str) -> None:
    report = sg.verify(hyperbolic(slip), "n m", "n m", suggest=False, timeout=None)
    assert [one.verdict for one in report.inputs.values()] == ["REFUTED", "REFUTED"]
