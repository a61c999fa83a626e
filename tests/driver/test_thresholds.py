"""Python asks for the truth of a plain number: each answer is judged; all values are covered."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad.errors import ControlFlowError, KernelArgumentError
from symgrad.proof.report.records import Report


class Floored(sg.Function):
    """Right on both sides."""

    @staticmethod
    def forward(ctx: Any, x: Any, scale: float) -> Any:
        ctx.scale = scale
        if scale < 1e-8:
            ctx.scale = 1e-8
        return x / ctx.scale

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad / ctx.scale, None


class Ignoring(sg.Function):
    """Backward ignores the branch."""

    @staticmethod
    def forward(ctx: Any, x: Any, scale: float) -> Any:
        ctx.scale = scale
        return x * max(scale, 1e-8)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * ctx.scale, None


class WrongBelow(sg.Function):
    """Wrong below the threshold alone, where forward does not use the number."""

    @staticmethod
    def forward(ctx: Any, x: Any, scale: float) -> Any:
        ctx.scale = scale
        return x / 1e-8 if scale < 1e-8 else x / scale

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad / ctx.scale, None


class AskedInBackward(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, scale: float) -> Any:
        ctx.scale = scale
        return x * sg.clamp(scale, min=1e-3)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        if ctx.scale < 1e-3:
            return grad * 1e-3, None
        return grad * ctx.scale, None


class WrongInBackward(AskedInBackward):
    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        if ctx.scale < 1e-3:
            return grad, None
        return grad * ctx.scale, None


class Refusing(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, scale: float) -> Any:
        if scale <= 0:
            raise ValueError("scale must be positive")
        ctx.scale = scale
        return x * scale

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * ctx.scale, None


class Linear(sg.Function):
    """Asks of what is linear in the number, of its absolute value, and of several at once."""

    @staticmethod
    def forward(ctx: Any, x: Any, scale: float) -> Any:
        ctx.factor = 1.0
        if 2 * abs(scale) - 1 > 3 and not (scale > 8 or -scale > 8):
            ctx.factor = 5.0
        return x * ctx.factor

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * ctx.factor, None


class Straight(sg.Function):
    """A straight-through gradient, whatever the answer."""

    @staticmethod
    def forward(ctx: Any, x: Any, scale: float) -> Any:
        return sg.round(x / max(scale, 0.5)) * max(scale, 0.5)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad, None


class Halving(sg.Function):
    """As many questions as the number wants."""

    @staticmethod
    def forward(ctx: Any, x: Any, scale: float) -> Any:
        while scale > 2:
            scale = scale / 2
        ctx.scale = scale
        return x * scale

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * ctx.scale, None


class OfElements(sg.Function):
    """One of the branches asks for an element."""

    @staticmethod
    def forward(ctx: Any, x: Any, scale: float) -> Any:
        ctx.scale = scale
        if scale < 1 and x.mean() > 0:
            ctx.scale = 2.0
        return x * ctx.scale

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * ctx.scale, None


class Flagging(sg.Function):
    """What calls below the threshold change, calls above it depend on."""

    flag = 1.0

    @staticmethod
    def forward(ctx: Any, x: Any, scale: float) -> Any:
        if scale < 0:
            Flagging.flag = 2.0
        ctx.scale = scale
        return x * scale * Flagging.flag

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        if ctx.scale < 0:
            return grad * ctx.scale * 2, None
        return grad * ctx.scale, None


def judged(function: type[sg.Function], **how: Any) -> Report:
    """The verdict for all shapes of two axes."""
    return sg.verify(function, "n m", **how)


class Skipping(sg.Function):
    """On one side nothing meets the scale: only the other one says which shape it has."""

    factor = 1.0

    @staticmethod
    def forward(ctx: Any, x: Any, scale: Any, bits: float) -> Any:
        ctx.bits = bits
        if bits >= 16:
            return x + 0
        ctx.save_for_backward(x, scale)
        return x * scale * bits

    @classmethod
    def backward(cls, ctx: Any, grad: Any) -> Any:
        if ctx.bits >= 16:
            return grad, None, None
        x, scale = ctx.saved_tensors
        return grad * scale * ctx.bits * cls.factor, grad * x * ctx.bits, None


class SkippingWrong(Skipping):
    """Wrong at the shapes that the other side does not need."""

    factor = 7.0


class Repeated(sg.Function):
    """On one side Python has to know the number."""

    @staticmethod
    def forward(ctx: Any, x: Any, scale: Any, bits: float) -> Any:
        ctx.bits = bits
        if bits >= 16:
            return x + 0
        ctx.save_for_backward(x, scale)
        return x * scale * sum(range(int(bits)))

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        if ctx.bits >= 16:
            return grad, None, None
        x, scale = ctx.saved_tensors
        factor = sum(range(int(ctx.bits)))
        return grad * scale * factor, grad * x * factor, None


class Clashing(sg.Function):
    """No shapes at all fit one side."""

    @staticmethod
    def forward(ctx: Any, x: Any, bits: float) -> Any:
        ctx.bits = bits
        if bits >= 16:
            return x * 2
        return sg.cat([x, x], dim=0) + sg.cat([x, x, x], dim=0)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 2, None


def test_both_sides_are_proved_and_printed() -> None:
    report = judged(Floored)
    assert report.verdict == "PROVED", str(report)
    assert report.quantified == ("all real scale",)
    assert "for scale >= 1e-08, scale < 1e-08, each judged separately" in report.domain
    assert not report.conditions


def test_shapes_are_inferred_for_the_number() -> None:
    report = sg.verify(Floored)
    assert report.verdict == "PROVED", str(report)
    assert report.quantified == ("all real scale",)
    assert "scale < 1e-08" in report.domain


@pytest.mark.parametrize("function", [Ignoring, WrongBelow, WrongInBackward])
def test_a_wrong_side_is_refuted(function: type[sg.Function]) -> None:
    report = judged(function)
    assert report.verdict == "REFUTED", str(report)
    found = report.inputs["x"].counterexample
    assert found is not None
    assert found.inputs["scale"] < 1e-3
    assert report.inputs["x"].reason.startswith("where scale < ")
    assert any(one.text.startswith("scale < ") for one in report.inputs["x"].suggested_under)
    assert not report.diff  # the repair is for one side


def test_what_backward_asks_is_split() -> None:
    report = judged(AskedInBackward)
    assert report.verdict == "PROVED", str(report)
    assert "for scale >= 0.001, scale < 0.001" in report.domain


def test_what_forward_refuses_is_a_condition() -> None:
    report = judged(Refusing)
    assert report.verdict == "PROVED", str(report)
    assert [one.text for one in report.conditions] == [
        "scale > 0 (forward does not accept other values)"
    ]
    assert any("scale must be positive" in one for one in report.notes)


def test_a_side_has_shapes_of_its_own() -> None:
    report = sg.verify(Skipping)
    assert report.verdict == "PROVED"
    text = str(report)
    assert "does not accept" not in text
    assert "scale[n, m], bits (any number" in text  # of the side that uses it
    report = sg.verify(SkippingWrong)
    assert report.verdict == "REFUTED"
    assert report.inputs["x"].counterexample is not None


def test_a_side_on_which_the_number_is_known_is_judged_for_one() -> None:
    report = sg.verify(Repeated)
    text = " ".join(str(report).split())
    assert report.verdict == "PROVED"
    assert "bits = 4 or bits >= 16 (others were not judged)" in text


def test_a_side_without_shapes_is_not_left_out() -> None:
    report = sg.verify(Clashing)
    assert report.verdict == "UNDECIDED"
    assert "where bits < 16:" in " ".join(str(report).split())


def test_a_stated_fact_answers() -> None:
    report = judged(Refusing, assume={"scale": "positive"})
    assert report.verdict == "PROVED", str(report)
    assert [one.text for one in report.conditions] == ["scale > 0"]
    assert "judged separately" not in report.domain


def test_a_stated_interval_is_split_and_stays_a_condition() -> None:
    report = judged(Floored, assume={"scale": "[0, 1)"})
    assert report.verdict == "PROVED", str(report)
    assert [one.text for one in report.conditions] == ["scale in [0, 1)"]
    assert "for 1e-08 <= scale < 1, 0 <= scale < 1e-08" in report.domain


def test_linear_questions_and_their_combinations() -> None:
    report = judged(Linear)
    assert report.verdict == "PROVED", str(report)
    for one in ("2 < scale <= 8", "scale > 8", "-8 <= scale < -2", "scale < -8"):
        assert one in report.domain, report.domain


def test_a_surrogate_on_each_side_is_declared_for_both() -> None:
    report = judged(Straight)
    assert report.verdict == "SURROGATE?", str(report)
    assert report.inputs["x"].declaration == 'surrogate = "x"'


def test_too_many_answers_are_an_error_with_the_line() -> None:
    with pytest.raises(ControlFlowError, match="again and again") as error:
        judged(Halving)
    assert error.value.location is not None


def test_elements_of_tensors_stay_an_error_with_the_line() -> None:
    with pytest.raises(ControlFlowError, match="cannot branch on a tensor") as error:
        judged(OfElements)
    assert error.value.location is not None


def test_what_one_side_changes_reaches_the_other() -> None:
    assert judged(Flagging).verdict != "PROVED"


def test_kernels_serve_the_side_that_is_stated() -> None:
    with pytest.raises(ControlFlowError, match="cannot branch"):
        sg.compile(Floored, "n m")
    op = sg.compile(Floored, "n m", assume={"scale": "(1, 3)"})
    x = np.ones((2, 3), np.float32)
    assert op.forward(x, scale=2.0)[0][0, 0] == 0.5
    with pytest.raises(KernelArgumentError, match="1 < scale < 3"):
        op.forward(x, scale=-2.0)
