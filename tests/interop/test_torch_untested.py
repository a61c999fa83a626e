"""Shapes that forward takes and that are not those inferred: judged, or a condition says so."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

pytestmark = pytest.mark.peers

FUNCTION: Any = torch.autograd.Function


def judged(cls: Any) -> sg.Report:
    return sg.verify(cls, suggest=False, timeout=None)


def shapes(report: sg.Report) -> set[str]:
    """The conditions on shapes, without those that the verdict is for."""
    return {
        one.text.split(" (", 1)[1][:-1] for one in report.conditions if one.kind == "shapes"
    }  # fmt: skip


# -- tensors with more axes


class RowSquares(FUNCTION):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x.sum(-1, keepdim=True)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * x.sum(-1, keepdim=True) + (g * x).sum(-1).unsqueeze(-1)


class RowsOfTwoAxes(RowSquares):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * x.sum(-1, keepdim=True) + (g * x).sum(-1).unsqueeze(1)


class Scores(FUNCTION):
    @staticmethod
    def forward(ctx: Any, q: Any, k: Any) -> Any:
        ctx.save_for_backward(q, k)
        return q @ k.transpose(-2, -1)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        q, k = ctx.saved_tensors
        return g @ k, g.transpose(-2, -1) @ q


class ScoresOfTwoAxes(Scores):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        q, k = ctx.saved_tensors
        return g @ k, g.transpose(0, 1) @ q


class Mirrored(FUNCTION):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x + 3 * x.transpose(-1, -2)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g + 3 * g.transpose(-1, -2)


class MirroredMatrix(Mirrored):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g + 3 * g.transpose(0, 1)


MORE_AXES = (
    (RowSquares, RowsOfTwoAxes, {"backward fails for x[n, m, k]",
                                 "the gradient of x is wrong for x[n, m, m]"}),
    (Scores, ScoresOfTwoAxes, {"backward fails for q[n, m, k], k[l, k]",
                               "the gradient of k is wrong for q[n, n, m], k[n, m]"}),
    (Mirrored, MirroredMatrix, {"backward fails for x[n, m, m]",
                                "the gradient of x is wrong for x[n, n, n]"}),
)  # fmt: skip


@pytest.mark.parametrize(("right", "wrong", "said"), MORE_AXES)
def test_more_axes_for_which_backward_fails_are_a_condition(
    right: Any, wrong: Any, said: set[str]
) -> None:
    report = judged(right)
    assert (str(report.verdict), shapes(report)) == ("PROVED", set())
    report = judged(wrong)
    assert str(report.verdict) == "PROVED"
    assert said <= shapes(report)


# -- tensors that broadcast


def averaged(g: Any, x: Any, w: Any) -> Any:
    both = x.shape != g.shape and w.shape != g.shape
    return g.mean(-1, keepdim=True) if both else g.sum_to_size(x.shape)


def cut(g: Any, x: Any, w: Any) -> Any:
    return g[:, :1] if x.shape != g.shape and w.shape != g.shape else g


def product(back: Any) -> Any:
    class Product(FUNCTION):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            return x * w

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, w = ctx.saved_tensors
            return back(g * w, x, w), (g * x).sum_to_size(w.shape)

    return Product


@pytest.mark.parametrize("back", [averaged, cut])
def test_a_mistake_where_both_operands_are_repeated_is_refuted(back: Any) -> None:
    report = judged(product(back))
    assert (str(report.verdict), report.guessed) == ("REFUTED", "x[n, 1], w[1, m]")


@pytest.mark.parametrize(
    "back", [lambda g, x, w: g, lambda g, x, w: g.sum_to_size(x.shape)], ids=["larger", "summed"]
)
def test_both_operands_may_be_repeated(back: Any) -> None:
    report = judged(product(back))
    assert (str(report.verdict), report.conditions) == ("PROVED", ())
    assert any(one in report.beside for one in ("x[n, 1], w[1, m]", "x[1, n], w[m, 1]"))


class Affine(FUNCTION):
    @staticmethod
    def forward(ctx: Any, x: Any, w: Any, b: Any) -> Any:
        ctx.save_for_backward(x, w, b)
        return x * w + b

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, w, b = ctx.saved_tensors
        half = 2 if w.shape != g.shape and b.shape != g.shape else 1
        return g * w, (g * x).sum_to_size(w.shape), (g / half).sum_to_size(b.shape)


def test_a_mistake_where_two_operands_are_repeated_beside_a_third_is_refuted() -> None:
    report = judged(Affine)
    assert (str(report.verdict), report.guessed) == ("REFUTED", "x[n, m], w[1, m], b[1, m]")


class Columns(FUNCTION):
    """x is repeated where it has one column: torch sums its gradient."""

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        ctx.save_for_backward(x, w)
        return x * w.view(1, -1)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, w = ctx.saved_tensors
        return g * w.view(1, -1), (g * x).sum(0)


class AveragedColumns(Columns):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, w = ctx.saved_tensors
        first = g * w.view(1, -1)
        return first.mean(1, keepdim=True) if x.shape[1] == 1 else first, (g * x).sum(0)


def test_operands_of_other_ranks_are_judged_where_they_are_repeated() -> None:
    report = judged(Columns)
    assert (str(report.verdict), shapes(report)) == ("PROVED", set())
    assert {"x[n, 1], w[m]", "x[n, m], w[1]"} <= set(report.beside)
    assert "the gradient of x is wrong for x[n, 1], w[m]" in shapes(judged(AveragedColumns))


class Gated(FUNCTION):
    """The bias has an even size, and may be repeated along the rows, but has no half of a 1."""

    @staticmethod
    def forward(ctx: Any, x: Any, bias: Any) -> Any:
        ctx.save_for_backward(x, bias)
        first, second = (x + bias).chunk(2, -1)
        return first * second

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        first, second = sum(ctx.saved_tensors).chunk(2, -1)
        part = torch.cat([g * second, g * first], -1)
        return part, part


def test_sizes_that_are_multiples_are_so_where_a_tensor_is_repeated() -> None:
    report = judged(Gated)
    assert str(report.verdict) == "PROVED"
    assert "x[n, 2*m], bias[2*m]" in report.beside


# -- plain values


def chunked(back: Any) -> Any:
    class Chunked(FUNCTION):
        @staticmethod
        def forward(ctx: Any, x: Any, k: Any) -> Any:
            ctx.k = k
            parts = x.chunk(k, -1)
            ctx.save_for_backward(*parts)
            return sum(part * part for part in parts)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return back(g, ctx.saved_tensors), None

    return Chunked


def all_parts(g: Any, parts: Any) -> Any:
    return torch.cat([2 * part * g for part in parts], -1)


def one_part(g: Any, parts: Any) -> Any:
    (part,) = parts
    return 2 * part * g


def first_part(g: Any, parts: Any) -> Any:
    return 2 * parts[0] * g


VALUES: Any = (
    (all_parts, set()), (one_part, {"backward fails for x[n, 2*m], k = 2"}),
    (first_part, {"the gradient of x is wrong for x[n, 2*m], k = 2"}),
)  # fmt: skip


@pytest.mark.parametrize(("back", "said"), VALUES)
def test_a_value_for_which_backward_fails_is_a_condition(back: Any, said: set[str]) -> None:
    report = judged(chunked(back))
    assert (str(report.verdict), shapes(report)) == ("PROVED", said)


# -- indices in rows


def picked(pick: Any, back: Any) -> Any:
    class Picked(FUNCTION):
        forward = staticmethod(pick)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, index = ctx.saved_tensors
            return back(g, torch.zeros_like(x), index), None

    return Picked


def in_pairs(ctx: Any, x: Any, index: Any) -> Any:
    ctx.save_for_backward(x, index)
    return x[index[0], index[1]]


def unpacked(ctx: Any, x: Any, index: Any) -> Any:
    row, column = index
    ctx.save_for_backward(x, index)
    return x[row, column]


def flat(ctx: Any, x: Any, index: Any) -> Any:
    ctx.save_for_backward(x, index)
    return x.reshape(-1)[index[0] * x.shape[1] + index[1]]


def accumulated(g: Any, zeros: Any, index: Any) -> Any:
    return zeros.index_put((index[0], index[1]), g, accumulate=True)


def assigned(g: Any, zeros: Any, index: Any) -> Any:
    zeros[index[0], index[1]] = g
    return zeros


@pytest.mark.parametrize("pick", [in_pairs, unpacked])
def test_pairs_of_indices_may_repeat(pick: Any) -> None:
    report = judged(picked(pick, accumulated))
    assert (str(report.verdict), shapes(report)) == ("PROVED", set())
    assert str(judged(picked(pick, assigned)).verdict) == "REFUTED"


def added_flat(g: Any, zeros: Any, index: Any) -> Any:
    places = index[0] * zeros.shape[1] + index[1]
    return zeros.reshape(-1).index_add(0, places.reshape(-1), g.reshape(-1)).reshape(zeros.shape)


def assigned_flat(g: Any, zeros: Any, index: Any) -> Any:
    row = zeros.reshape(-1)
    row[index[0] * zeros.shape[1] + index[1]] = g
    return row.reshape(zeros.shape)


def test_an_index_with_more_axes_is_judged() -> None:
    report = judged(picked(flat, added_flat))
    assert (str(report.verdict), shapes(report)) == ("PROVED", set())
    report = judged(picked(flat, assigned_flat))
    assert "the gradient of x is wrong for x[n, m], i64 index[k, l]" in shapes(report)


# -- sizes that are one where forward takes others, too


def tied(product: Any, back: Any) -> Any:
    class Tied(FUNCTION):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.save_for_backward(x, y)
            return product(x, y)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return back(g, *ctx.saved_tensors)

    return Tied


def on_diagonal(x: Any, v: Any) -> Any:
    return x.diagonal() * v


def put_on_diagonal(g: Any, x: Any, v: Any) -> Any:
    back = torch.zeros_like(x)
    back.diagonal().copy_(g * v)
    return back, g * x.diagonal()


def made_square(g: Any, x: Any, v: Any) -> Any:
    return torch.diag(g * v), g * x.diagonal()


def scaled_on_diagonal(g: Any, x: Any, v: Any) -> Any:
    by_x, by_v = put_on_diagonal(g, x, v)
    return by_x * x.shape[0] / x.shape[1], by_v


def of_elements(x: Any, y: Any) -> Any:
    return x.reshape(-1) * y.reshape(-1)


def reshaped(g: Any, x: Any, y: Any) -> Any:
    return (g * y.reshape(-1)).reshape(x.shape), (g * x.reshape(-1)).reshape(y.shape)


def taken_for_alike(g: Any, x: Any, y: Any) -> Any:
    return g.reshape(x.shape) * y, g.reshape(y.shape) * x


def scaled(g: Any, x: Any, y: Any) -> Any:
    by_x, by_y = reshaped(g, x, y)
    return by_x * x.shape[0] / y.shape[0], by_y


TIED = [
    (on_diagonal, put_on_diagonal, "PROVED", ""),
    (on_diagonal, made_square, "PROVED", "the gradient of x is wrong for x[3, 2], y[2]"),
    (on_diagonal, scaled_on_diagonal, "REFUTED", ""),
    (of_elements, reshaped, "PROVED", ""),
    (of_elements, taken_for_alike, "PROVED", "backward fails for x[n, m], y[m, n]"),
    (of_elements, scaled, "REFUTED", ""),
]


@pytest.mark.parametrize(("product", "back", "verdict", "said"), TIED)
def test_sizes_that_are_one_without_need_are_judged_apart(
    product: Any, back: Any, verdict: str, said: str
) -> None:
    report = judged(tied(product, back))
    assert str(report.verdict) == verdict
    loose = {one for one in shapes(report) if "x[3" in one or "x[n, m], y[m, n]" in one}
    assert loose == ({said} if said else set())


def test_what_is_proved_is_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from symgrad import compiler

    asked: list[Any] = []
    traced = compiler._traced

    def recorded(request: Any, suggest: bool) -> Any:
        asked.append(request.called)
        return traced(request, suggest)

    monkeypatch.setattr(compiler, "_traced", recorded)

    class WithBias(FUNCTION):
        @staticmethod
        def forward(ctx: Any, x: Any, weight: Any, bias: Any) -> Any:
            ctx.save_for_backward(x, weight)
            out = x @ weight.T
            return out if bias is None else out + bias

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, weight = ctx.saved_tensors
            by_bias = g.sum(0) if ctx.needs_input_grad[2] else None
            return g @ weight, g.T @ x, by_bias

    assert str(judged(WithBias).verdict) == "PROVED"
    assert len(asked) > 3
    assert len({*asked}) == len(asked)
