"""What a verdict leaves out is printed once, and only where it is something."""

from __future__ import annotations

from typing import Any

import pytest

import symgrad as sg
from symgrad.proof.report.distinct import distinct
from symgrad.proof.report.records import Condition


def excepted(*codes: str, kind: str = "null set") -> list[Condition]:
    return [Condition(kind, code, code=code) for code in codes]


ALIKE = [
    ("x == y", "y == x"),
    ("x.floor() - x == 0", "x == x.floor()"),
    ("2 * x == 3", "x == 1.5"),
    ("x / 2 == -y", "x + 2 * y == 0"),
    ("x[i] - n * y == 1", "-(n * y) == 1 - x[i]"),
    ("-x == 0.5 - y", "y - 0.5 == x"),
]
OTHERS = [
    ("x == y", "x == -y"),
    ("x == 1", "x == 2"),
    ("x == 0", "x * y == 0"),
    ("x[i] == 0", "x[j] == 0"),
    ("x == 1 / y", "x == y"),
    ("x == 0", "x.log() - x.log() + x == 0"),
    ("x == inf", "x == 1e999"),
    ("x == 0", "x >= 0"),
    ("x == 0", "(x == 0) & (y == 0)"),
]


@pytest.mark.parametrize("codes", ALIKE)
def test_one_set_is_left_out_once(codes: tuple[str, str]) -> None:
    first, second = excepted(*codes)
    assert distinct([first, second]) == (first,)


@pytest.mark.parametrize("codes", OTHERS)
def test_other_sets_are_left_out_beside_it(codes: tuple[str, str]) -> None:
    assert len(distinct(excepted(*codes))) == 2


def supposed(code: str) -> Condition:
    return Condition("domain", code, code=code)


@pytest.mark.parametrize("code", ["x * x > 1", "1 < x * x", "x * x - 1 != 0", "-(x * x) < -1"])
@pytest.mark.parametrize("first", [True, False])
def test_what_is_supposed_not_to_be_is_not_left_out_again(code: str, first: bool) -> None:
    kink = Condition("kink", "x * x == 1", code="x * x == 1")
    both = [supposed(code), kink]
    assert distinct(both if first else both[::-1]) == (both[0],)


@pytest.mark.parametrize("code", ["x * x >= 1", "x * x > 2", "x > 1", "y * y > 1", "x * x == 1"])
def test_what_is_supposed_besides_leaves_it_out(code: str) -> None:
    kink = Condition("kink", "x * x == 1", code="x * x == 1")
    assert distinct([supposed(code), kink]) == (supposed(code), kink)


def test_of_other_indices_it_is_left_out() -> None:
    one = Condition("domain", "i", code="x[i] > 0", indices=(("i", "n"),))
    other = Condition("kink", "j", code="x[i] == 0", indices=(("i", "m"),))
    assert distinct([one, other]) == (one, other)


def test_of_two_indices_each_has_its_set() -> None:
    one = Condition("null set", "i", code="x[i] == 0", indices=(("i", "n"),))
    other = Condition("null set", "j", code="x[i] == 0", indices=(("i", "m"),))
    assert distinct([one, other]) == (one, other)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("2 * (x > 0) * x - x == 0", "x == 0"),
        ("3 * x - x * (x > 0) == 0", "x == 0"),
        ("2 * x[i] * (x[i] > 0) - x[i] == 0", "x == 0"),
        ("2 * x[0] * (x[0] > 0) - x[0] == 0", "x[0] == 0"),
        ("(x > 0) * x == 0", ""),  # nor where x < 0
        ("x - x * (x > 0) == 0", ""),
        ("2 * (x > 0) * x - x == 1", ""),
        ("2 * (y > 0) * x - x == 0", ""),
        ("2 * (x > 1) * x - x == 0", ""),
        ("x * x - x * (x > 0) == 0", ""),
    ],
)
def test_both_sides_of_a_number_are_it(code: str, said: str) -> None:
    given = Condition("nonzero", code, code=code, indices=(("i", "n"),) if "i" in code else ())
    (found,) = distinct([given])
    assert found.code == found.text == (said or code)


def test_a_kink_that_forward_refuses_is_not_printed() -> None:
    class Bent(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            assert (x != 0).all()
            ctx.save_for_backward(x)
            return sg.relu(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return sg.where(x > 0, g, 0.0)

    report = sg.verify(Bent, "n")
    assert str(report.verdict) == "PROVED"
    assert [one.kind for one in report.inputs["x"].conditions] == ["index"]


@pytest.mark.parametrize("code", ["1 == 0", "2 == -2", "0.5 == 1", "x.relu() == x.relu() + 1"])
def test_what_is_never_true_leaves_out_nothing(code: str) -> None:
    assert distinct(excepted(code)) == ()


@pytest.mark.parametrize(
    "code", ["0 == 0", "n == 2", "1 == x", "", "x == x", "x.log() == y + x.log()", "1 - 1 == x - x"]
)
def test_what_may_be_true_is_printed(code: str) -> None:
    assert len(distinct(excepted(code))) == 1


def test_what_a_verdict_rests_on_is_always_printed() -> None:
    said = [*excepted("x == y", "y == x", kind="domain"), *excepted("1 == 0", kind="domain")]
    assert distinct(said) == tuple(said)


def test_of_two_stages_of_a_proof_that_leave_out_one_set_one_says_it() -> None:
    class Held(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return 3 * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return sg.where((x.floor() == x) & (x > 5), 0.0, g * 3)

    codes = [one.code for one in sg.verify(Held, "n").inputs["x"].conditions if one.excepted]
    assert len([code for code in codes if "floor" in code]) == 1
