"""Tuples and lists among the arguments: of numbers they are judged, of tensors refused."""

from __future__ import annotations

import typing
from collections.abc import Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.errors import SpecError  # noqa: E402

pytestmark = pytest.mark.peers
Function: Any = torch.autograd.Function
TENSOR: Any = torch.Tensor


class Scaled(Function):
    """By items of a list and of a pair."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Any,
        pad: typing.List[int],  # noqa: UP006
        scale: typing.Tuple[float, float],  # noqa: UP006
    ) -> Any:
        ctx.factor = pad[0] * scale[1]
        return x * pad[0] * scale[1]

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.factor, None, None


class ScaledOnce(Scaled):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g, None, None


class MaybeScaled(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, by: Sequence[int] | None) -> Any:
        ctx.by = by
        return x if by is None else x * by[0]

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g, None


def test_annotated_numbers_are_no_tensors() -> None:
    report = sg.verify(Scaled, suggest=False)
    assert report.verdict == sg.PROVED, str(report)
    assert [*report.inputs] == ["x"]
    assert len(dict(report.values)["scale"].split(" or ")) > 1
    assert sg.verify(ScaledOnce, suggest=False).verdict == sg.REFUTED


def test_a_list_that_is_optional_is_judged_as_such() -> None:
    assert sg.verify(MaybeScaled, suggest=False).verdict == sg.REFUTED
    assert sg.verify(MaybeScaled, "n", static={"by": None}, suggest=False).verdict == sg.PROVED


class Annotated(Function):
    @staticmethod
    def forward(ctx: Any, w: Any, xs: list[TENSOR]) -> Any:
        ctx.xs = xs
        return w * (xs[0] + xs[1])

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * (ctx.xs[0] + ctx.xs[1]), None


class Starred(Function):
    @staticmethod
    def forward(ctx: Any, w: Any, xs: Any) -> Any:
        ctx.save_for_backward(*xs)
        return w * sum(xs)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * sum(ctx.saved_tensors), None


class Parts(Starred):
    @staticmethod
    def forward(ctx: Any, w: Any, xs: Any) -> Any:
        first, second = xs
        ctx.save_for_backward(first, second)
        return w * (first + second)


class Joined(Starred):
    @staticmethod
    def forward(ctx: Any, w: Any, xs: Any) -> Any:
        ctx.xs = xs
        return w * torch.cat(xs).sum()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * torch.cat(ctx.xs).sum(), None


class Slopes(Function):
    """Forward only keeps xs, whose items are gradients."""

    @staticmethod
    def forward(ctx: Any, value: Any, xs: Any, *inputs: Any) -> Any:
        ctx.xs = xs
        return value

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return (None, None) + tuple(x * g for x in ctx.xs)  # noqa: RUF005


class SlopesUnscaled(Slopes):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return (None, None) + ctx.xs  # noqa: RUF005


class SlopesStarred(Slopes):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return (None, None, *[x * g for x in ctx.xs])


@pytest.mark.parametrize(
    "function",
    [Annotated, Starred, Parts, Joined, Slopes, SlopesUnscaled, SlopesStarred],
)
def test_a_list_of_tensors_is_refused(function: Any) -> None:
    with pytest.raises(SpecError, match="xs is a list of tensors") as error:
        sg.verify(function, suggest=False)
    assert "*xs" in error.value.hint


class Edges(Function):
    """The rows of an index are no list."""

    @staticmethod
    def forward(ctx: Any, x: Any, edges: Any) -> Any:
        row, column = edges
        ctx.save_for_backward(row, column)
        ctx.count = x.shape[0]
        return x[row] - x[column]

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        row, column = ctx.saved_tensors
        found = g.new_zeros((ctx.count, *g.shape[1:]))
        return found.index_add(0, row, g).index_add(0, column, -g), None


class Beside(Function):
    """What is joined with something else is a tensor."""

    @staticmethod
    def forward(ctx: Any, x: Any, mask: Any) -> Any:
        ctx.size = x.shape[0]
        return torch.cat([x, mask])

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g[: ctx.size], None


class Summed(Starred):
    """Of tensors or of numbers: the latter, whose gradient is None."""

    @staticmethod
    def forward(ctx: Any, w: Any, xs: Any) -> Any:
        ctx.xs = xs
        return w * sum(xs)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * sum(ctx.xs), None


@pytest.mark.parametrize("function", [Edges, Summed])
def test_what_else_has_items(function: Any) -> None:
    assert sg.verify(function, suggest=False).verdict == sg.PROVED


def test_what_is_joined_with_another_is_a_tensor() -> None:
    assert "mask" in str(sg.verify(Beside, suggest=False))


class Kept(Function):
    """A number that forward only keeps is no list."""

    @staticmethod
    def forward(ctx: Any, x: Any, scale: Any) -> Any:
        ctx.scale = scale
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.scale, None


class KeptAndAdded(Kept):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g + 0 * ctx.scale, None


@pytest.mark.parametrize(("function", "verdict"), [(Kept, sg.SURROGATE), (KeptAndAdded, sg.PROVED)])
def test_a_number_that_is_kept_is_judged(function: Any, verdict: Any) -> None:
    assert sg.verify(function, suggest=False).verdict == verdict
