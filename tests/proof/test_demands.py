"""Places that a program computes: the ends of integers, and conditions where one may be off."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad.frontend.facts import SizeFacts
from symgrad.frontend.session import Session, activate
from symgrad.frontend.tensor import fresh
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import float64, int64, uint8
from symgrad.ir.graph import Node
from symgrad.ir.types import TensorType
from symgrad.ops.integers import Ends, Integers, up_to
from symgrad.passes.evaluate import evaluate
from tests.suite.adversarial.program import class_of, class_text

BOUNDED = [
    "x.argmax(0)", "x.argmin(0) - 1", "n - 1 - x.argmax(0)", "-x.argmax(0) * 3 + n", "x.argsort(0)",
    "x.argsort(0, descending=True) + 1", "x.topk(1, 0)[1]", "(x > 1).long() * 7 - 2",
    "(x > 0).long().sum(0)", "(x > 0).long().cumsum(0)", "sg.arange(n)", "sg.arange(n) // 2",
    "(sg.arange(n) * 2 - n) % n", "k % n", "k.clamp(0, n - 1)", "(k - 5).clamp(-1, 3)",
    "sg.where(x > 0, sg.arange(n), n)", "x.sign().long() * 2", "x.round().clamp(0, 3).long()",
    "sg.maximum(sg.arange(n) - 3, x.argmax(0))", "abs(x.argmax(0) - n)", "idx + 1",
    "idx[x.argmax(0)]",
    "sg.where(idx - 2 < 0, idx - 2 + n, idx - 2)", "sg.cat([idx, x.argsort(0) + 2])", "idx * idx",
    "(x.sigmoid() * 5).long()", "sg.zeros(n, dtype=sg.int64) - 3", "x.argsort(0).flip(0) - n",
    "sg.where((k < 0) | (k >= n), 0, k)", "sg.where((k >= 3) & (k < n + 3), k - 3, n)",
    "(k * 2 + 1).masked_fill(~((k > -4) & (n > k)), 0)", "sg.where(~((k < -2) | (2 < k)), -k, 1)",
    "sg.where(((k < 0) | (k >= n)).reshape(n, 1), 0, k.reshape(n, 1) + 1)",
    "sg.where(k < 0, 0, sg.where(k >= n, n, k) - 1)",
    "sg.where((k >= 0).reshape(1, n) & (k.reshape(1, n) < 5), k.reshape(1, n), 4)",
]  # fmt: skip
"""Integers that have ends; ``k`` is any integer, ``idx`` lies in ``0..n - 1``."""
FREE = [
    "k", "(x * 3).long()", "x.argmax(0) + k", "k * n", "x.floor().long()",
    "sg.where((k < 0) & (k >= n), 0, k)", "sg.where((k < 0) | (k >= n), k, 0)",
    "sg.where((k < 0) | (k >= n), 0, k.flip(0))", "sg.where(~((k >= 0) | (k < n)), 0, k)",
    "sg.where(((k < 0) | (k >= n)).reshape(n, 1), 0, k.reshape(1, n))",
    "sg.where(byte < 5, byte - 1, 0)", "sg.where(byte > 5, (byte + 1).long(), 0).clamp(min=0)",
    "sg.where((k < 0) ^ (k >= n), 0, k)", "sg.where((k < 0) | (k >= n), 0, k) + k",
]  # fmt: skip


def ends_of(text: str) -> tuple[Ends, Node]:
    session = Session(SizeFacts(), dtype=float64)
    n = Dim.size("n")
    with activate(session):
        names = {
            name: fresh(session.graph.input(name, TensorType(dtype, (n,))))
            for name, dtype in (("x", float64), ("k", int64), ("idx", int64), ("byte", uint8))
        }
        made = eval(text, {"sg": sg, **names, "n": names["x"].shape[0]}).node
    known = Integers(session.facts.decide, lambda name: up_to(n if name == "idx" else None))
    return known.of(made), made


@pytest.mark.parametrize("text", BOUNDED)
def test_all_elements_lie_between_the_ends(text: str) -> None:
    ends, node = ends_of(text)
    assert ends.lows
    assert ends.highs
    for n in (1, 2, 3, 5, 8):
        for seed in range(6):
            random = np.random.default_rng(seed)
            feeds = {
                "x": random.normal(size=n) * 3, "k": random.integers(-9, 9, n),
                "idx": random.integers(0, n, n),
            }  # fmt: skip
            used = {name: feeds[name] for name in feeds if name in text}
            (found,) = evaluate([node], used, {"n": n})
            assert all(low.at({"n": n}) <= found.min() for low in ends.lows)
            assert all(found.max() <= high.at({"n": n}) for high in ends.highs)


@pytest.mark.parametrize("text", FREE)
def test_what_may_be_anything_has_no_ends(text: str) -> None:
    ends, _ = ends_of(text)
    assert not (ends.lows and ends.highs)


def judged(forward: str, backward: str, *inputs: str) -> sg.Report:
    """Of the inputs ``x``, ``y`` ... of the shapes ``inputs``, or of ``x`` alone."""
    text = class_text("Judged", forward, backward, "xyz"[: len(inputs) or 1])
    return sg.verify(class_of("Judged", text, sg), *(inputs or "n"))


SQUARE = "x * x"
RIGHT = {
    "x[x.argmax(0)] | sg.zeros_like(x).index_add(0, x.argmax(0).reshape(1), g.reshape(1))",
    "x[x.argmax(0)] | g * sg.one_hot(x.argmax(0), x.shape[0])",
    "x[x.argmax(0) - 1] | made = sg.zeros_like(x)\nmade[x.argmax(0) - 1] = g\nmade",
    "x * x | 2 * g * x + 0 * x[x.argsort(0)]",
    "x * x | 2 * g * x + 0 * x[sg.arange(x.shape[0]) // 2]",
    "x * x | 2 * g * x + 0 * x.gather(0, sg.arange(x.shape[0]).flip(0))",
    "x * x | 2 * g * x + 0 * sg.one_hot((x > 1).long(), 2).sum()",
    "x.topk(1, 0)[0] | g * sg.one_hot(x.argmax(0), x.shape[0])",
    "x.sort(0)[0] | sg.zeros_like(x).scatter(0, x.argsort(0), g)",
}
"""Forward and backward, right at every place, and without a place that may be off."""
COMPUTED = {
    "x[x.argmax(0) + 1] | 0": "x.argmax(0) + 1 < n",
    "x[[0, -2]] | 0": "0 <= n - 2",
    "x[[0, 5, 7]] | 0": "7 < n",
    "x.gather(0, (x > 1).long()) | 0": "(x > 1).to(sg.int64) < n",
    "x.index_select(0, x.max(0)[1] - 1) | 0": "0 <= x.argmax(0) - 1",
    "x[(x * 3).long()] | 0": "-n <= (x * 3).to(sg.int64) < n",
    "x.index_select(0, (x * 3).long()) | 0": "0 <= (x * 3).to(sg.int64) < n",
    "x.index_select(0, (x * 3).long().clamp(0, x.shape[0] - 2)) | 0": "0 <= n - 2",
    "x.index_select(0, sg.minimum(x.argmax(0), sg.tensor(x.shape[0] - 3))) | 0": "0 <= n - 3",
    "x.index_select(0, (x * 3).long().clamp(min=2)) | 0": "(x * 3).to(sg.int64).clamp(min=2) < n",
    "sg.one_hot(x.argmax(0) - 1, x.shape[0]) | 0": "0 <= x.argmax(0) - 1",
    "sg.arange(x.shape[0]) // (sg.arange(x.shape[0]) - 1) | 0": (
        "no element of sg.arange(n) - 1 is 0"
    ),
    "sg.arange(x.shape[0]) % (x > 1).long() | 0": "no element of (x > 1).to(sg.int64) is 0",
}
"""What backward computes for nothing, and the condition of that."""


@pytest.mark.parametrize("program", sorted(RIGHT))
def test_right_code_has_no_condition_on_its_places(program: str) -> None:
    report = judged(*program.split(" | "))
    assert report.verdict is sg.PROVED, str(report)
    assert not [one for one in report.conditions if one.kind == "index"]


@pytest.mark.parametrize("program", COMPUTED)
def test_a_place_that_may_be_off_is_a_condition_although_nobody_reads_it(program: str) -> None:
    made = program.split(" | ")[0]
    report = judged(SQUARE, f"unused = {made}\n2 * g * x")
    assert report.verdict is sg.PROVED, str(report)
    assert [one.text for one in report.conditions if one.kind == "index"] == [COMPUTED[program]]


@pytest.mark.parametrize("program", COMPUTED)
def test_what_forward_raises_without_is_a_condition_too(program: str) -> None:
    made = program.split(" | ")[0]
    report = judged(f"unused = {made}\nx * x", "2 * g * x")
    assert report.verdict is sg.PROVED, str(report)
    assert [one.text for one in report.conditions if one.kind == "index"] == [COMPUTED[program]]


@pytest.mark.parametrize(
    "place", ["x.argmax(0) - 1", "(x > 1).long().sum(0) - 1", "-1 - x.argmin(0)"]
)  # fmt: skip
def test_a_negative_place_in_brackets_counts_from_the_end(place: str) -> None:
    nowhere = judged(f"x[{place}]", f"g * (sg.arange(x.shape[0]) == {place})")
    assert nowhere.verdict is sg.REFUTED, str(nowhere)
    counted = judged(f"x[{place}]", f"made = sg.zeros_like(x)\nmade[{place}] += g\nmade")
    assert counted.verdict is sg.PROVED, str(counted)
    assert not [one for one in counted.conditions if one.kind == "index"]


@pytest.mark.parametrize(
    "place", ["x.argmax(0) + x.shape[0]", "-1 - x.argmax(0) - x.shape[0]", "(x > 9).long() - 2000"]
)
def test_a_place_that_is_never_right_leaves_nothing_to_prove(place: str) -> None:
    report = judged(SQUARE, f"unused = x.gather(0, ({place}).reshape(-1))\n2 * g * x")
    fits = "2000" not in place  # of 2001 elements, it would be
    assert report.verdict is (sg.UNDECIDED if fits else report.verdict), str(report)
    assert report.verdict is not sg.PROVED, str(report)


def test_an_input_of_two_axes_lies_in_both() -> None:
    report = judged(
        "x[z] + y[z]",
        "x.new_zeros(x.shape).index_add(0, z, g), y.new_zeros(y.shape).index_add(0, z, g), None",
        "n", "m", "i64[k]",
    )  # fmt: skip
    assert report.verdict is sg.PROVED, str(report)
    found = {one.text for one in report.conditions if one.kind == "index"}
    assert found == {"0 <= z < n", "z < m"}


@pytest.mark.parametrize(
    ("place", "said"), [("r.argmax(0)", set()), ("r.argmax(0) + 1", {"x.argmax(1) + 1 < m"})]
)
def test_places_inside_vmap_are_those_of_the_whole_batch(place: str, said: set[str]) -> None:
    made = f"sg.vmap(lambda r: sg.one_hot({place}, x.shape[1]))(x)"
    report = judged(SQUARE, f"unused = {made}\n2 * g * x", "n m")
    assert report.verdict is sg.PROVED, str(report)
    assert {one.text for one in report.conditions if one.kind == "index"} == said


def test_that_all_places_of_an_axis_lie_in_another_is_said_of_sizes() -> None:
    class Picked(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, i: Any) -> Any:
            ctx.save_for_backward(x, i)
            return x[sg.arange(i.shape[0]), i]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, i = ctx.saved_tensors
            return sg.zeros_like(x).index_put((sg.arange(i.shape[0]), i), g, accumulate=True), None

    report = sg.verify(Picked, "n m", "i64[k]", suggest=False)
    assert report.verdict == sg.PROVED
    assert [one.text for one in report.conditions] == ["0 <= i < m", "k <= n"]


def test_an_element_of_places_is_one_of_them() -> None:
    made = "sg.vmap(lambda r, place: r[place])(x, x.argmax(1))"
    report = judged(SQUARE, f"unused = {made}\n2 * g * x", "n m")
    assert report.verdict is sg.PROVED, str(report)
    assert not [one for one in report.conditions if one.kind == "index"]


TABLE = """place = y.floor().long().clamp(0, x.shape[0] - 2)
part = y - place.to(y.dtype)
"""
READ = TABLE + "x[place] * (1 - part) + x[place + 1] * part"
ADDED = """made = sg.zeros_like(x)
made.index_add_(0, place, g * (1 - part))
made.index_add_(0, place + {step}, g * part)
made, g * (x[place + 1] - x[place])"""


def test_what_operations_demand_of_sizes_is_used_where_it_is_printed() -> None:
    """A table of one number has no place to the left of another."""
    report = judged(READ, TABLE + ADDED.format(step=1), "k", "n")
    assert report.verdict is sg.PROVED, str(report)
    assert [one.text for one in report.conditions if one.kind == "index"] == ["0 <= k - 2"]
    assert judged(READ, TABLE + ADDED.format(step=0), "k", "n").verdict is sg.REFUTED


@pytest.mark.parametrize("factor", ["(n != 1)", "(n > 1)", "sg.sign(n - 1)"])
def test_what_no_operation_demands_of_sizes_is_not_used(factor: str) -> None:
    """In brackets the place -1 is the last, so that one element is read of one."""
    place = "(y * 3).long().clamp(0, x.shape[0] - 2)"
    added = f"made = sg.zeros_like(x)\nmade[{place}] += g\nn = x.shape[0]\n"
    report = judged(f"x[{place}]", f"{added}made * {factor}, 0 * y", "n", "")
    assert report.inputs["x"].verdict is not sg.PROVED, str(report)
    assert judged(f"x[{place}]", f"{added}made, 0 * y", "n", "").verdict is sg.PROVED
