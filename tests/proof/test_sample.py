"""Points lie inside the declared domain: shapes, thresholds, index ranges, reproducibility."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.assume import parse_all
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import int64
from symgrad.ir.function import SizeCondition, strongest
from symgrad.ir.graph import Graph, Node
from symgrad.proof.judge.decide import judge
from symgrad.proof.oracle.sample import (
    DENOMINATOR,
    Sampler,
    Unsatisfiable,
    _few_draws,
    impose,
    integer_uses,
)
from symgrad.proof.oracle.subject import Subject
from tests.proof.builders import K, M, N, elementwise, tensor
from tests.proof.builders import subject as build
from tests.suite.adversarial.program import class_of, class_text


def _sampler(**options: object) -> Sampler:
    graph = Graph()
    x = graph.input("x", tensor(N, M))
    clamped = graph.binary("maximum", x, 0.75)
    return Sampler([x], [x, *graph.nodes, clamped], **options)  # type: ignore[arg-type]


def test_every_size_goes_by_itself_over_1_2_3_5() -> None:
    choices = list(islice(_sampler().size_choices(), 40))
    for name, other in (("n", "m"), ("m", "n")):
        seen = {(sizes[name], sizes[other]) for sizes in choices}
        for value in (1, 2, 3, 5):
            assert any(a == value and b != a for a, b in seen)


@pytest.mark.parametrize(("least", "relation"), [(4, "<="), (7, "<"), (12, "==")])
def test_small_sizes_are_the_least_that_the_conditions_allow(least: int, relation: str) -> None:
    sampler = _sampler(conditions=[SizeCondition(Dim.of(least), relation, N)])
    found = sampler.small_choices(8)
    assert found[0] == {"n": least + (relation == "<"), "m": 1}
    assert {"n": found[0]["n"], "m": 2} in found
    assert all(map(sampler.allows, found))


def test_conditions_that_others_imply_are_not_printed() -> None:
    def bound(left: Dim | int, relation: str, right: Dim | int) -> SizeCondition:
        return SizeCondition(Dim.of(left), relation, Dim.of(right))

    given = [bound(2, "<=", N), bound(N, ">", 3), bound(4, "<=", N), bound(M, "!=", 1)]
    given += [bound(N, "<=", 9), bound(5, "<=", N + M)]
    kept = strongest([*given, given[0]])
    assert kept == given[2:]
    grid = [{"n": n, "m": m} for n in range(12) for m in range(4)]
    assert all(all(c.holds(s) for c in kept) == all(c.holds(s) for c in given) for s in grid)


@pytest.mark.parametrize("number", range(4))
def test_a_point_is_the_same_in_every_case_that_draws_it(number: int) -> None:
    sampler, sizes = _sampler(), {"n": 3, "m": 2}
    first = sampler.point(sizes, number).numerators["x"]
    _few_draws.cache_clear()
    again = _sampler().point(sizes, number).numerators["x"]
    assert again is not first
    assert np.array_equal(again, first)


def test_conditions_on_sizes_hold() -> None:
    condition = SizeCondition(N, "!=", Dim.of(1))
    choices = list(islice(_sampler(conditions=[condition]).size_choices(), 30))
    assert choices
    assert all(sizes["n"] != 1 for sizes in choices)


def test_thresholds_are_approached_but_never_hit() -> None:
    sampler = _sampler()
    near = 0
    for seed in range(40):
        point = sampler.point({"n": 3, "m": 4}, seed)
        values = point.numerators["x"] / DENOMINATOR
        assert not np.isin(point.numerators["x"], (0, int(0.75 * DENOMINATOR))).any()
        near += int((np.abs(values - 0.75) < 0.3).sum())
    assert near > 60


def test_points_are_reproducible_and_differ_by_seed() -> None:
    one, two = (_sampler().point({"n": 2, "m": 3}, 5) for _ in range(2))
    other = _sampler().point({"n": 2, "m": 3}, 6)
    assert (one.numerators["x"] == two.numerators["x"]).all()
    assert (one.numerators["x"] != other.numerators["x"]).any()


def test_both_arithmetics_see_the_same_point() -> None:
    point = _sampler().point({"n": 2, "m": 2}, 3)
    precise = np.vectorize(float)(point.precise()["x"])
    assert np.allclose(point.doubles()["x"], precise, rtol=1e-15)
    assert [float(f) for f in point.fractions("x")] == point.doubles()["x"].ravel().tolist()


def _indexed() -> tuple[Graph, Sampler]:
    graph = Graph()
    table, index = graph.input("w", tensor(N, M)), graph.input("i", tensor(K, dtype=int64))
    graph.apply("index", table, index)
    return graph, Sampler([table, index], graph.nodes)


def test_indices_stay_in_the_range_that_they_index() -> None:
    graph, sampler = _indexed()
    assert integer_uses(graph.nodes)["i"].bounds == [N]
    repeated = False
    for seed in range(12):
        indices = sampler.point({"n": 3, "m": 1, "k": 5}, seed).integers["i"]
        assert ((indices >= 0) & (indices < 3)).all()
        repeated = repeated or len(set(indices.tolist())) < 5
    assert repeated


def test_unique_indices_need_room() -> None:
    graph, _ = _indexed()
    nodes = [graph.inputs["w"], graph.inputs["i"]]
    sampler = Sampler(nodes, graph.nodes, assumptions=parse_all({"i": "unique"}))
    for sizes in islice(sampler.size_choices(), 20):
        indices = sampler.point(sizes, 1).integers["i"].tolist()
        assert len(set(indices)) == len(indices)
    with pytest.raises(Unsatisfiable):
        sampler.point({"n": 2, "m": 1, "k": 3}, 0)


@pytest.mark.parametrize("op", ["log", "sqrt", "acosh", "atanh", "lgamma"])
def test_domains_are_found(op: str) -> None:
    subject = elementwise(op, lambda x, y: x)
    subject.settle()
    drawn = [subject.draw(sizes, 0) for sizes in islice(subject.sampler.size_choices(), 6)]
    assert sum(at is not None for at in drawn) >= 4


@pytest.mark.parametrize("op", ["log", "sqrt", "rsqrt"])
def test_domains_of_negative_numbers_are_found(op: str) -> None:
    subject = of_negated(op, lambda g, y, x: g)
    subject.settle()
    assert subject.sampler.modes["x"] == "negative"
    drawn = [subject.draw(sizes, 0) for sizes in islice(subject.sampler.size_choices(), 6)]
    assert all(at is not None and np.all(at.point.numerators["x"] < 0) for at in drawn)


def test_gradients_that_exist_for_negative_numbers_only_are_judged() -> None:
    right = judge(of_negated("log", lambda g, y, x: g / x))["x"]
    assert right.verdict == "PROVED"
    wrong = judge(of_negated("log", lambda g, y, x: -g / x))["x"]
    assert wrong.verdict == "REFUTED"
    assert wrong.counterexample is not None
    assert np.all(wrong.counterexample.point.numerators["x"] < 0)


def of_negated(op: str, gradient: Callable[[Node, Node, Node], Node]) -> Subject:
    return build(
        {"x": tensor(N, M)},
        lambda x: x.graph.apply(op, -x),
        lambda g, y, x: [gradient(g, y, x)],
    )


FAR = [("(-1e30, inf)", False), ("(-inf, 1e30)", False), ("(1e30, inf)", True)]


@pytest.mark.parametrize(("declared", "far"), FAR)
def test_ends_of_intervals_may_be_beyond_all_samples(declared: str, far: bool) -> None:
    (assumption,) = parse_all({"x": declared})
    values = np.array([-(10**12), 10**12])
    if far:
        with pytest.raises(Unsatisfiable):
            impose(assumption, values, np.random.default_rng(0))
    else:
        assert np.array_equal(impose(assumption, values, np.random.default_rng(0)), values)


MASKED = "sg.where(m, float('-inf'), x).softmax(-1)"


@pytest.mark.parametrize("shapes", [("", "n m"), ("n m k", "n m k"), ("a b c 2", "a b c 2")])
def test_masks_are_drawn_that_leave_each_row_an_entry(shapes: tuple[str, str]) -> None:
    for inner, verdict in (("g * y", sg.PROVED), ("g", sg.REFUTED)):
        backward = f"y = {MASKED}; y * (g - ({inner}).sum(-1, keepdim=True)), None"
        made = class_of("Masked", class_text("Masked", MASKED, backward, "xm"), sg)
        report = sg.verify(made, shapes[0], f"bool[{shapes[1]}]", suggest=False)
        assert report.verdict == verdict, str(report)
        assert (verdict == sg.REFUTED) or "every row has an entry" in str(report)
