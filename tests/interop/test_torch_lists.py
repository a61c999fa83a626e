"""Tuples and lists among the arguments, of numbers and of tensors."""

from __future__ import annotations

import typing
from collections.abc import Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

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


class Given(Annotated):
    """A list has no gradient: torch raises."""

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * (ctx.xs[0] + ctx.xs[1]), g


class Looped(Function):
    """What a loop asks of the items shows that they are tensors; they are used in turn."""

    @staticmethod
    def forward(ctx: Any, x: Any, weights: Any) -> Any:
        ctx.weights = weights
        for one in weights:
            x = x @ one.t()
        return x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        for one in reversed(ctx.weights):
            g = g @ one
        return g, None


class Multiplied(Function):
    """What is multiplied in turn is a tensor, since its name says no number."""

    @staticmethod
    def forward(ctx: Any, x: Any, masks: Any) -> Any:
        ctx.masks = masks
        for mask in masks:
            x = x * mask
        return x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        for mask in ctx.masks:
            g = g * mask
        return g, None


class ByFactors(Function):
    """Numbers by their name."""

    @staticmethod
    def forward(ctx: Any, x: Any, factors: Any) -> Any:
        ctx.factors = factors
        for one in factors:
            x = x * one
        return x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        for one in ctx.factors:
            g = g * one
        return g, None


class LoopedForward(Looped):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        for one in ctx.weights:
            g = g @ one
        return g, None


class Needed(Function):
    """Places behind the list are those of the arguments as they are written."""

    @staticmethod
    def forward(ctx: Any, xs: typing.List[TENSOR], x: Any, w: Any) -> Any:  # noqa: UP006
        ctx.save_for_backward(x, w)
        ctx.first = xs[0]
        return x * w * xs[0]

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, w = ctx.saved_tensors
        assert not ctx.needs_input_grad[0]
        grad_x = g * w * ctx.first if ctx.needs_input_grad[1] else None
        return None, grad_x, g * x * ctx.first if ctx.needs_input_grad[2] else None


class Prepared(Function):
    @staticmethod
    def forward(x: Any, pair: typing.Tuple[TENSOR, TENSOR]) -> Any:  # noqa: UP006
        first, second = pair
        return x * first + second

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        _, pair = inputs
        assert type(pair) is tuple
        ctx.save_for_backward(*pair)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        first, _ = ctx.saved_tensors
        return g * first, None


@pytest.mark.parametrize(
    "function", [Annotated, Starred, Parts, Joined, Looped, Multiplied, Needed, Prepared]
)
def test_tensors_of_a_list_are_constants(function: Any) -> None:
    report = sg.verify(function, suggest=False)
    assert report.verdict == sg.PROVED, str(report)
    assert "is a list of 2 tensors" in str(report)
    lists = ("xs", "weights", "masks", "pair")
    assert not {name for name in report.inputs if name.startswith(lists)}


def test_a_name_says_that_items_are_numbers() -> None:
    report = sg.verify(ByFactors, suggest=False)
    assert report.verdict == sg.PROVED, str(report)
    assert "is a list of" not in str(report)


@pytest.mark.parametrize("function", [Given, LoopedForward])
def test_a_backward_that_is_wrong_beside_a_list_is_refuted(function: Any) -> None:
    assert sg.verify(function, suggest=False).verdict == sg.REFUTED


@pytest.mark.parametrize("function", [Slopes, SlopesUnscaled, SlopesStarred])
def test_items_that_backward_returns_are_tensors(function: Any) -> None:
    report = sg.verify(function, suggest=False)
    assert {"inputs_0", "inputs_1"} <= {*report.inputs}
    assert report.verdict == sg.REFUTED


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


class Transposed(Function):
    """The axes of a permutation, as annotated: one that is its own inverse hides the mistake."""

    @staticmethod
    def forward(ctx: Any, x: Any, dims: typing.Tuple[int, ...]) -> Any:  # noqa: UP006
        ctx.dims = dims
        return x.permute(dims)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g.permute(ctx.dims), None


class Padded(Function):
    """So many numbers as backward has names for, though the annotation leaves that open."""

    @staticmethod
    def forward(ctx: Any, x: Any, padding: Sequence[int]) -> Any:
        ctx.padding = padding
        return torch.nn.functional.pad(x, padding)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        left, right, top, bottom = ctx.padding
        return g[..., top : g.shape[-2] - bottom, left : g.shape[-1] - right], None


class Flipped(Function):
    """Axes by position."""

    @staticmethod
    def forward(ctx: Any, x: Any, dims: Any) -> Any:
        ctx.dims = dims
        return torch.flip(x, dims)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g.flip(ctx.dims), None


class SummedAlong(Function):
    """Several axes by their name and by position."""

    @staticmethod
    def forward(ctx: Any, x: Any, dims: Any) -> Any:
        ctx.shape = x.shape
        return x.sum(dims, True)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g.expand(ctx.shape), None


class Shaped(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, shape: Any) -> Any:
        ctx.old = x.shape
        return x.reshape(shape)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g.reshape(ctx.old), None


class Limited(Function):
    """Two limits: equal ones are no interval."""

    @staticmethod
    def forward(ctx: Any, x: Any, limits: Any) -> Any:
        low, high = ctx.limits = limits
        ctx.save_for_backward(x)
        return x.clamp(low, high)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        low, high = ctx.limits
        return g * ((x >= low) & (x <= high)), None


@pytest.mark.parametrize(
    ("function", "name", "value"),
    [
        (Padded, "padding", "(1, 2, 3, 4)"), (Flipped, "dims", "(0, 1)"),
        (SummedAlong, "dims", "(0, 1)"), (Shaped, "shape", "(3, -1)"),
        (Limited, "limits", "(1, 2)"),
    ],
)  # fmt: skip
def test_what_tuples_are_used_for_shows_their_items(function: Any, name: str, value: str) -> None:
    report = sg.verify(function, suggest=False)
    assert report.verdict == sg.PROVED, str(report)
    assert value in dict(report.values)[name]


def test_an_annotated_permutation_is_none_that_is_its_own_inverse() -> None:
    assert sg.verify(Transposed, suggest=False).verdict == sg.REFUTED


class KeptFlags(Function):
    """A flag by what backward asks of ctx, and one by a keyword of torch's."""

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any, detach: Any, keep: Any) -> Any:
        ctx.detach = detach
        ctx.save_for_backward(x, w)
        return (x * w).sum(-1, keepdim=keep)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, w = ctx.saved_tensors
        g = g if g.ndim == x.ndim else g.unsqueeze(-1)
        return g * w, None if ctx.detach else g * x, None, None


def test_flags_are_found_by_what_they_are_used_for() -> None:
    report = sg.verify(KeptFlags, suggest=False)
    assert report.verdict == sg.REFUTED
    assert dict(report.values)["detach"] == "True"


class RestOfAll(Function):
    """What ``*args`` holds, taken apart in two steps."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        x, w, *rest = args
        (eps,) = rest
        ctx.save_for_backward(x, w)
        return x * w + eps

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, w = ctx.saved_tensors
        return g * w, g * x, None


def test_names_of_the_rest_of_all_arguments() -> None:
    report = sg.verify(RestOfAll, suggest=False)
    assert report.verdict == sg.PROVED, str(report)
    assert [*report.inputs] == ["x", "w"]
