"""Verdicts for any number of batch axes: one proof where possible, and what is said otherwise."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symgrad as sg
from symgrad.frontend.trace import trace
from symgrad.kernels import with_backward
from symgrad.proof.verify import verify_function


class Square(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * g


class WrongSquare(Square):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return x * g


class WrongAcross(Square):
    """Right where there is one element only along the batch axes."""

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * g.reshape(-1, g.shape[-1]).sum(0)


class AsksForAxes(Square):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return (2 if len(g.shape) < 9 else 3) * x * g


class FailsWithoutAxes(Square):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        if x.ndim < 2:
            raise ValueError("a matrix is needed")
        return x * x


class FailsWithOneSize(Square):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        if len(x.shape) < 2:
            raise ValueError("a matrix is needed")
        return x * x


class WrongForMatrices(Square):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return (x if g.ndim == 2 else 2 * x) * g


class WrongFromThreeAxesOn(Square):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return (2 * x if g.dim() - 1 in (0, 1) else x) * g


class RightInTwoWays(Square):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * (x.t() + x.mT).t() if x.ndim == 2 else 2 * x * g


class ScaledRows(sg.Function):
    """A weight, whose gradient is summed over all batch axes, if it is asked for."""

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, w = ctx.saved_tensors
        grad_w = (g * x).reshape(-1, x.shape[-1]).sum(0) if ctx.needs_input_grad[1] else None
        return g * w, grad_w


@sg.surrogate(lambda x: x)
class Rounded(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return sg.round(x)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g


@sg.surrogate(lambda x: x.sum(0, keepdim=True).expand(x.shape))
class AsksInItsSurrogate(Rounded):
    pass


class TwoStars(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.shapes = x.shape, y.shape
        return x.sum() + y.sum()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        one, other = ctx.shapes
        return g.expand(one), g.expand(other)


def test_one_proof_for_all() -> None:
    report = sg.verify(Square, "*batch m")
    assert str(report.verdict) == "PROVED"
    assert report.domain.endswith("*batch: any number of axes, batch elements together")
    assert not report.notes


@pytest.mark.parametrize("spec", ["*batch", "...", "n *batch", "n *batch m", "*_ m"])
def test_the_batch_axis_stands_anywhere(spec: str) -> None:
    report = sg.verify(Square, spec)
    assert str(report.verdict) == "PROVED"
    assert "any number of axes" in report.domain


def test_a_size_of_the_same_name() -> None:
    report = sg.verify(Square, "*batch batch")
    assert str(report.verdict) == "PROVED"
    assert "for all batch, batch_all >= 1" in report.domain


class FirstAxis(sg.Function):
    """Its backward is right if the first batch axis is as long as ``y``."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.factor = y.shape[0] / x.shape[0] if len(x.shape) == 2 else 1.0
        return x * 2, y * 3

    @staticmethod
    def backward(ctx: Any, g: Any, h: Any) -> Any:
        return g * 2 * ctx.factor, h * 3


@pytest.mark.parametrize("size", ["k", "batch_0", "batch_1", "batch"])
def test_no_size_is_taken_for_a_batch_axis(size: str) -> None:
    """Whatever it is called: a size of the user's is none of those that ``*batch`` stands for."""
    assert str(sg.verify(FirstAxis, "*batch m", size, suggest=False).verdict) == "REFUTED"


def test_masks_and_second_order() -> None:
    report = sg.verify(ScaledRows, "*batch m", "m", order=2)
    assert str(report.verdict) == "PROVED"
    assert "any number of axes" in report.domain


def test_two_batch_axes() -> None:
    report = sg.verify(TwoStars, "*one 3", "*other")
    assert str(report.verdict) == "PROVED"
    assert "*one: any number of axes" in report.domain
    assert "*other: any number of axes" in report.domain


def test_surrogates() -> None:
    report = sg.verify(Rounded, "*batch m")
    assert str(report.verdict) == "PROVED"
    assert "any number of axes" in report.domain
    report = sg.verify(AsksInItsSurrogate, "n *batch")
    assert "any number of axes" in report.domain
    report = sg.verify(AsksInItsSurrogate, "*batch m")
    assert "batch axes only" in report.domain


def test_the_smallest_counterexample_has_no_batch_axes() -> None:
    report = sg.verify(WrongSquare, "*batch m")
    assert str(report.verdict) == "REFUTED"
    found = report.inputs["x"].counterexample
    assert found is not None
    assert np.ndim(found.inputs["x"]) == 1
    assert "batch" not in found.sizes


def test_a_counterexample_that_needs_a_batch_axis() -> None:
    report = sg.verify(WrongAcross, "*batch m")
    assert str(report.verdict) == "REFUTED"
    found = report.inputs["x"].counterexample
    assert found is not None
    assert np.ndim(found.inputs["x"]) == 2
    assert found.sizes["batch"] > 1


@pytest.mark.parametrize("function", [WrongSquare, WrongAcross])
def test_the_snippet_shows_it(function: Any) -> None:
    found = sg.verify(function, "*batch m").inputs["x"].counterexample
    assert found is not None
    exec(compile(found.snippet, "snippet", "exec"), {"__name__": "__main__"})


def test_repairs_say_what_they_are_for() -> None:
    suggestion = sg.verify(WrongAcross, "*batch m").inputs["x"].suggestion
    if suggestion is not None and re.search(r"\w\([^)]|@", suggestion):
        assert suggestion.startswith("# with 1 batch axis\n")


def test_what_was_read_and_where() -> None:
    report = sg.verify(AsksForAxes, "*batch m")
    assert str(report.verdict) == "PROVED"
    assert report.domain.endswith("for 0, 1, 2, 3 batch axes only, each judged separately")
    (note,) = report.notes
    assert note.startswith("not for every number of batch axes: len() of a shape")
    assert re.search(r"test_ranks\.py:\d+\)$", note)


@pytest.mark.parametrize("function", [FailsWithoutAxes, FailsWithOneSize])
def test_numbers_of_axes_that_forward_refuses(function: Any) -> None:
    report = sg.verify(function, "*batch m")
    assert str(report.verdict) == "PROVED"
    assert report.domain.endswith(
        "for 1, 2, 3 batch axes only, each judged separately" if function is FailsWithOneSize
        else "*batch: any number of axes, batch elements together, not accepted for 0"
    )  # fmt: skip
    said = "not accepted with 0 batch axes: forward raised ValueError"
    assert any(said in note for note in report.notes)


def test_numbers_of_axes_that_the_program_treats_apart() -> None:
    report = sg.verify(RightInTwoWays, "*batch m")
    assert str(report.verdict) == "PROVED"
    assert report.domain.endswith("*batch: any number of axes, judged with 2, 1 judged separately")
    report = sg.verify(WrongForMatrices, "*batch m", suggest=False)
    assert report.inputs["x"].reason.startswith("with 1 batch axis")
    report = sg.verify(WrongFromThreeAxesOn, "*batch m", suggest=False)
    assert report.inputs["x"].reason.startswith("with 2 batch axes")
    assert report.domain.endswith("judged with 2, 0, 1 judged separately")


def test_positional_assumptions() -> None:
    """The last axis of a tensor that may have batch axes only is one of these."""
    report = sg.verify(Square, "*batch", assume={"x": "one-hot"})
    assert "batch axes only" in report.domain
    report = sg.verify(Square, "*batch m", assume={"x": "one-hot"})
    assert "any number of axes" in report.domain


def test_kernels_are_compiled_for_any_spec() -> None:
    op = sg.compile(Square, "f64[*batch m]")
    x = np.arange(12.0).reshape(2, 3, 2)
    y, residuals = op.forward(x)
    np.testing.assert_array_equal(y, x * x)
    (grad_x,) = op.backward(residuals, np.ones_like(x))
    np.testing.assert_array_equal(grad_x, 2 * x)


# -- drawn programs: the verdict for all is the worst of those for some

BLOCKS: dict[str, tuple[Any, Any, Any]] = {
    "exp": (lambda x: x.exp(), lambda x, g: g * x.exp(), lambda x, g: g * x),
    "cube": (lambda x: x**3, lambda x, g: 3 * x * x * g, lambda x, g: 3 * x * g),
    "softmax": (
        lambda x: x.softmax(-1),
        lambda x, g: x.softmax(-1) * (g - (g * x.softmax(-1)).sum(-1, keepdim=True)),
        lambda x, g: x.softmax(-1) * (g - (g * x.softmax(-1)).sum()),
    ),
    "centre": (
        lambda x: x - x.mean(-1, keepdim=True),
        lambda x, g: g - g.mean(-1, keepdim=True),
        lambda x, g: g - g.sum(-1, keepdim=True),
    ),
    "mean": (
        lambda x: x - x.mean(),
        lambda x, g: g - g.sum() / x.numel(),
        lambda x, g: g - g.mean(-1, keepdim=True),
    ),
    "turn": (
        lambda x: x.reshape(-1, x.shape[-1]).cumsum(-1).view(*x.shape),
        lambda x, g: g.flip(-1).cumsum(-1).flip(-1),
        lambda x, g: g.cumsum(-1),
    ),
    "heads": (
        lambda x: (x.unsqueeze(-1) * x.unsqueeze(-2)).sum(-1),
        lambda x, g: g * x.sum(-1, keepdim=True) + (g * x).sum(-1, keepdim=True),
        lambda x, g: g * x.sum(-1, keepdim=True),
    ),
}


def drawn(names: list[str], wrong: int | None) -> Any:
    """A Function of these blocks in turn, with its backward, or a wrong one at one of them."""
    blocks = [BLOCKS[name] for name in names]

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        for compute, _, _ in blocks:
            x = compute(x)
        return x

    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        values = [x]
        for compute, _, _ in blocks[:-1]:
            values.append(compute(values[-1]))
        for number in reversed(range(len(blocks))):
            g = blocks[number][2 if number == wrong else 1](values[number], g)
        return g

    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Drawn", (sg.Function,), members)


def of_each_rank(function: Any) -> list[str]:
    """The verdicts for 0 to 3 batch axes."""
    return [
        str(verify_function(with_backward(trace(function, "*batch m", batch_rank=rank))).verdict)
        for rank in range(4)
    ]


@pytest.mark.parametrize("wrong", [None, 0])
@pytest.mark.parametrize("name", BLOCKS)
def test_blocks(name: str, wrong: int | None) -> None:
    report = sg.verify(drawn([name], wrong), "*batch m", suggest=False)
    assert "any number of axes" in report.domain
    assert str(report.verdict) == ("PROVED" if wrong is None else "REFUTED")


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(names=st.lists(st.sampled_from(sorted(BLOCKS)), min_size=1, max_size=2), data=st.data())
def test_the_worst_of_all_ranks(names: list[str], data: st.DataObject) -> None:
    wrong = data.draw(st.sampled_from([None, *range(len(names))]))
    function = drawn(names, wrong)
    report = sg.verify(function, "*batch m", suggest=False)
    assert "any number of axes" in report.domain
    verdicts = of_each_rank(function)
    if str(report.verdict) == "PROVED":
        assert "REFUTED" not in verdicts
    if set(verdicts) == {"PROVED"}:
        assert str(report.verdict) == "PROVED"
    assert (str(report.verdict) == "REFUTED") == ("REFUTED" in verdicts)
