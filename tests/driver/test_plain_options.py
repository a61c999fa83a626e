"""Texts, truth values and integers that nobody stated: judged at what the program tells apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import symgrad as sg
from symgrad import compiler, deadline

Forward = Callable[..., Any]


def verdict(forward: Forward, backward: Forward, *specs: str, **how: Any) -> Any:
    """The report on a Function of these two."""
    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return sg.verify(type("Op", (sg.Function,), members), *(specs or ("n m",)), **how)


def reduced(x: Any, reduction: str) -> Any:
    if reduction == "mean":
        return x.mean()
    return x.sum() if reduction == "sum" else x


def squares(ctx: Any, x: Any, reduction: str = "mean") -> Any:
    ctx.save_for_backward(x)
    ctx.reduction = reduction
    return reduced(x * x, reduction)


def of_squares(divided: Callable[[str], bool]) -> Forward:
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * g * x / (x.numel() if divided(ctx.reduction) else 1), None

    return backward


@pytest.mark.slow
def test_a_text_is_judged_at_each_literal() -> None:
    right = verdict(squares, of_squares(lambda name: name == "mean"))
    assert right.stated == "PROVED for reduction = 'mean' or 'sum' or 'none'"
    wrong = verdict(squares, of_squares(lambda name: True))
    assert wrong.stated == "REFUTED for reduction = 'sum'"
    assert "with the defaults it is PROVED for reduction = 'mean'" in wrong.notes
    for_none = verdict(squares, of_squares(lambda name: name != "sum"))
    assert for_none.stated == "REFUTED for reduction = 'none'"


def test_a_text_that_is_stated_is_not_varied() -> None:
    found = verdict(squares, of_squares(lambda name: True), static={"reduction": "mean"})
    assert found.stated == "PROVED for reduction = 'mean'"


CURVES = {"square": lambda x: x * x, "cube": lambda x: x * x * x}
SLOPES = {"square": lambda x: 2 * x, "cube": lambda x: 3 * x * x}
WRONG = {"square": lambda x: 2 * x, "cube": lambda x: 3 * x}


@pytest.mark.parametrize(
    ("slopes", "said"),
    [(SLOPES, "PROVED for name = 'square' or 'cube'"), (WRONG, "REFUTED for name = 'cube'")],
)
def test_the_keys_of_a_dict_are_literals(slopes: dict[str, Any], said: str) -> None:
    def forward(ctx: Any, x: Any, name: str = "square") -> Any:
        ctx.save_for_backward(x)
        ctx.name = name
        return CURVES[name](x)

    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * slopes[ctx.name](x), None

    assert verdict(forward, backward).stated == said


@pytest.mark.parametrize("slope", [2, 3])
def test_a_text_that_forward_refuses_is_not_counted(slope: int) -> None:
    def forward(ctx: Any, x: Any, name: str = "double") -> Any:
        ctx.name = name
        if name == "double":
            return 2 * x
        if name in ("triple", "ternary"):
            return 3 * x
        raise ValueError(name)

    def backward(ctx: Any, g: Any) -> Any:
        return g * (2 if ctx.name == "double" else slope), None

    said = (
        "REFUTED for name = 'triple'" if slope == 2
        else "PROVED for name = 'double' or 'triple' or 'ternary'"
    )  # fmt: skip
    assert verdict(forward, backward).stated == said


def test_a_text_beside_the_only_literal_is_judged() -> None:
    def forward(ctx: Any, x: Any, mode: str = "fast") -> Any:
        ctx.mode = mode
        return 2 * x if mode == "fast" else 3 * x

    found = verdict(forward, lambda ctx, g: (g * (2 if ctx.mode == "fast" else 3), None))
    assert found.stated == "PROVED for mode = 'fast' or 'other'"
    assert verdict(forward, lambda ctx, g: (2 * g, None)).stated == "REFUTED for mode = 'other'"


def test_a_text_that_nothing_is_compared_with_stays() -> None:
    found = verdict(lambda ctx, x, name="a": 2 * x, lambda ctx, g: (2 * g, None))
    assert found.stated == "PROVED for name = 'a'"


@pytest.mark.parametrize("default", [True, False])
def test_both_truth_values_are_judged(default: bool) -> None:
    def forward(ctx: Any, x: Any, doubled: bool = default) -> Any:
        ctx.doubled = doubled
        return 2 * x if doubled else x.sum() + x

    def backward(doubled: bool, g: Any) -> Any:
        return 2 * g if doubled else g + g.sum()

    found = verdict(forward, lambda ctx, g: (backward(ctx.doubled, g), None))
    assert found.stated == f"PROVED for doubled = {default} or {not default}"
    found = verdict(forward, lambda ctx, g: (backward(default, g), None))
    assert found.stated == f"REFUTED for doubled = {not default}"


def test_an_option_that_is_none() -> None:
    def forward(ctx: Any, x: Any, *, scale: str | None = None) -> Any:
        ctx.scale = scale
        return 2 * x if scale == "twice" else x

    right = verdict(forward, lambda ctx, g: 2 * g if ctx.scale == "twice" else g)
    assert right.stated == "PROVED for scale = None or 'twice' or 'other'"
    assert verdict(forward, lambda ctx, g: g).stated == "REFUTED for scale = 'twice'"


def softmax(ctx: Any, x: Any, dim: int = -1) -> Any:
    p = sg.softmax(x, dim)
    ctx.save_for_backward(p)
    ctx.dim = dim
    return p


def of_softmax(dim: Callable[[int], int]) -> Forward:
    def backward(ctx: Any, g: Any) -> Any:
        (p,) = ctx.saved_tensors
        return p * (g - (g * p).sum(dim(ctx.dim), keepdim=True)), None

    return backward


def test_an_axis_is_judged_at_every_axis() -> None:
    assert verdict(softmax, of_softmax(lambda dim: dim)).stated == (
        "PROVED for dim = -2 or -1 or 0 or 1"
    )
    found = verdict(softmax, of_softmax(lambda dim: -1))
    assert found.stated == "REFUTED for dim = -2"
    assert verdict(softmax, of_softmax(lambda dim: -1), "n").stated == "PROVED for dim = -1 or 0"


def test_numbers_stay_symbols_at_other_values() -> None:
    def forward(ctx: Any, x: Any, alpha: float = 1.0, reduction: str = "mean") -> Any:
        ctx.alpha, ctx.reduction, ctx.count = alpha, reduction, x.numel()
        return reduced(alpha * x, reduction)

    def backward(ctx: Any, g: Any) -> Any:
        scale = ctx.alpha / ctx.count if ctx.reduction == "mean" else ctx.alpha
        return (g * scale).expand(*ctx.shape) if ctx.reduction != "none" else g * scale, None, None

    def kept(ctx: Any, x: Any, alpha: float = 1.0, reduction: str = "mean") -> Any:
        ctx.shape = x.shape
        return forward(ctx, x, alpha, reduction)

    found = verdict(kept, backward)
    assert found.stated == "PROVED for all real alpha; for reduction = 'mean' or 'sum' or 'none'"


def pair(ctx: Any, x: Any, doubled: bool = False, negative: bool = False) -> Any:
    ctx.doubled, ctx.negative = doubled, negative
    return x * (2 if doubled else 1) * (-1 if negative else 1)


def test_a_few_combinations_are_judged() -> None:
    def right(ctx: Any, g: Any) -> Any:
        return g * (2 if ctx.doubled else 1) * (-1 if ctx.negative else 1), None, None

    assert verdict(pair, right).stated == (
        "PROVED for doubled = False or True, negative = False or True"
    )

    def wrong(ctx: Any, g: Any) -> Any:
        if ctx.doubled and ctx.negative:
            return 2 * g, None, None
        return right(ctx, g)

    assert verdict(pair, wrong).stated in (
        "REFUTED for doubled = True, negative = True",
        "SURROGATE? for doubled = True, negative = True",
    )


def test_of_many_combinations_each_argument_is_varied_alone() -> None:
    def forward(ctx: Any, x: Any, dim: int = -1, name: str = "mean", twice: bool = False) -> Any:
        ctx.dim, ctx.twice, ctx.factor = dim, twice, 3 if name == "large" else 1
        return x.cumsum(dim) * (2 if twice else 1) * (3 if name == "large" else 1)

    def backward(ctx: Any, g: Any) -> Any:
        back = g.flip(ctx.dim).cumsum(ctx.dim).flip(ctx.dim)
        return back * (2 if ctx.twice else 1) * ctx.factor, None, None, None

    found = verdict(forward, backward)
    assert found.stated == "PROVED for dim = -1, name = 'mean', twice = False"
    assert "for twice = True it is PROVED, the other arguments being their defaults" in found.notes


def means(ctx: Any, x: Any, k: int) -> Any:
    n, m = x.shape
    ctx.k = k
    return x.reshape(n, m // k, k).mean(-1)


def means_by(divisor: Callable[[int], int]) -> Forward:
    def backward(ctx: Any, g: Any) -> Any:
        return g.repeat_interleave(ctx.k, -1) / divisor(ctx.k), None

    return backward


@pytest.mark.parametrize("default", [1, 2])
@pytest.mark.parametrize("specs", [(), ("n 2*m",)])
def test_groups_are_judged_at_sizes_that_they_divide(default: int, specs: Any) -> None:
    def forward(ctx: Any, x: Any, k: int = default) -> Any:
        return means(ctx, x, k)

    def judged(divisor: Callable[[int], int]) -> Any:
        members = {"forward": staticmethod(forward), "backward": staticmethod(means_by(divisor))}
        return sg.verify(type("Op", (sg.Function,), members), *specs, suggest=False, timeout=None)

    values = (default, default + 1, default + 2, default + 4)
    right = judged(lambda k: k)
    assert right.stated == f"PROVED for k = {' or '.join(map(str, values))}"
    texts = [str(one) for one in right.conditions if one.kind == "shapes"]
    assert "the shapes are x[n, 3*m] (for k = 3)" in texts or specs
    assert any(text.endswith("(for k = 3)") for text in texts)
    for wrong in values[1:]:
        found = judged({one: 7 if one == wrong else one for one in values}.__getitem__)
        assert found.stated == f"REFUTED for k = {wrong}"


def test_a_number_of_groups_may_be_the_tail_of_a_view() -> None:
    def forward(ctx: Any, x: Any, k: int) -> Any:
        ctx.k = k
        return x.unflatten(-1, (-1, k)).sum(-1)

    def right(ctx: Any, g: Any) -> Any:
        return g.repeat_interleave(ctx.k, -1), None

    def wrong(ctx: Any, g: Any) -> Any:
        return sg.cat([g] * ctx.k, -1), None

    for backward, stated in (
        (right, "PROVED for k = 1 or 2 or 3 or 5"), (wrong, "REFUTED for k = 2"),
    ):  # fmt: skip
        members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
        found = sg.verify(type("Op", (sg.Function,), members), suggest=False, timeout=None)
        assert found.stated == stated


def powers(most: int) -> Any:
    """Sums of powers up to a count; the derivative is cut short."""

    def forward(ctx: Any, x: Any, steps: int) -> Any:
        ctx.save_for_backward(x)
        ctx.steps = steps
        return sum(x**k for k in range(1, steps + 1))

    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * sum(k * x ** (k - 1) for k in range(1, min(ctx.steps, most) + 1)), None

    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Op", (sg.Function,), members)


def test_a_loop_over_a_count_is_judged_beyond_the_usual_ones() -> None:
    found = sg.verify(powers(9), suggest=False, timeout=None)
    assert found.stated == "PROVED for steps = 1 or 2 or 3 or 5"
    assert sg.verify(powers(3), suggest=False, timeout=None).stated == "REFUTED for steps = 5"


@pytest.mark.parametrize("late", [(5,), (3, 5), (1, 3, 5)])
def test_more_counts_are_left_out_where_they_take_too_long(
    monkeypatch: pytest.MonkeyPatch, late: tuple[int, ...]
) -> None:
    judged = compiler._traced

    def slow(request: Any, suggest: bool) -> Any:
        if dict(request.static)["steps"] in late:
            raise deadline.TimeUp(1.0, "a loop")
        return judged(request, suggest)

    monkeypatch.setattr(compiler, "_traced", slow)
    found = sg.verify(powers(9), suggest=False, timeout=3600.0)
    if late == (1, 3, 5):  # one value is too few
        assert str(found.verdict) == "UNDECIDED"
    else:
        known = [one for one in (1, 2, 3, 5) if one not in late]
        assert found.stated == f"PROVED for steps = {' or '.join(map(str, known))}"
        assert "Not judged in time: x[n, m], steps = " in found.inferred


def _flagged(ctx: Any, x: Any, doubled: bool = False, mode: int = 0) -> Any:
    ctx.doubled, ctx.mode = doubled, mode
    return 2 * x if doubled else x * 1


def _refuses_one(ctx: Any, g: Any) -> Any:
    if ctx.doubled:
        raise RuntimeError("not doubled")
    return g * 1, None, None


def _raises(ctx: Any, g: Any) -> Any:
    if ctx.mode != 0:
        raise NotImplementedError("only mode 0 has a gradient")
    return g * (2 if ctx.doubled else 1), None, None


def _fails(ctx: Any, g: Any) -> Any:
    return (g.nothing_like_it() if ctx.doubled else g * 1), None, None


def _refuses(ctx: Any, g: Any) -> Any:
    raise NotImplementedError("for inference")


def test_values_for_which_backward_raises_by_its_own_raise_are_not_judged() -> None:
    report = verdict(_flagged, _refuses_one)
    assert report.ok
    assert dict(report.values)["doubled"] == "False"
    assert any("not judged for doubled = True: " in note for note in report.notes)
    report = verdict(_flagged, _raises)
    assert report.ok
    assert dict(report.values)["doubled"] == "False or True"
    assert any("only mode 0 has a gradient" in note for note in report.notes)


def test_a_backward_that_fails_otherwise_is_wrong() -> None:
    report = verdict(_flagged, _fails)
    assert report == sg.REFUTED
    assert dict(report.values)["doubled"] == "True"
    assert verdict(_flagged, _refuses) == sg.REFUTED


def test_a_value_that_backward_refuses_hides_no_wrong_one() -> None:
    def backward(ctx: Any, g: Any) -> Any:
        if ctx.mode > 2:
            raise RuntimeError(ctx.mode)
        return g * (2 if ctx.doubled else 1) * (1 if ctx.mode < 2 else 3), None, None

    assert verdict(_flagged, backward).stated.startswith("SURROGATE? for mode = 2")


_OF_TYPE: dict[str, Callable[[Any], bool]] = {
    "isinstance": lambda beta: isinstance(beta, int),
    "type": lambda beta: type(beta) is int,
    "type of another": lambda beta: type(2 * beta) is int,
}
_ASKED: dict[str, Callable[[Any], bool]] = {
    **_OF_TYPE,
    "attribute": lambda beta: hasattr(beta, "numerator"),
}


_OF_DTYPE: dict[str, Callable[[Any], bool]] = {
    "tensor": lambda beta: sg.tensor(beta).dtype == sg.int64,
    "full": lambda beta: sg.full((1,), beta).dtype == sg.int64,
}


def scaled(ctx: Any, x: Any, beta: float = 2.0) -> Any:
    ctx.beta = beta
    return x * beta


def of_scaled(factor: Callable[[Any], Any]) -> Forward:
    return lambda ctx, g: (g * factor(ctx.beta), None)


def one_where(asks: Callable[[Any], bool]) -> Forward:
    return of_scaled(lambda beta: 1 if asks(beta) else beta)


@pytest.mark.parametrize("asks", _OF_DTYPE)
def test_an_integer_is_judged_where_its_type_decides_a_dtype(asks: str) -> None:
    assert verdict(scaled, one_where(_OF_DTYPE[asks]), "n").verdict == "REFUTED"


@pytest.mark.parametrize("asks", _ASKED)
def test_an_integer_in_the_place_of_a_float_is_judged_where_its_type_is_asked(asks: str) -> None:
    report = verdict(scaled, one_where(_ASKED[asks]), "n")
    assert report.verdict == "REFUTED"
    assert "for beta = 2\n" in f"{report.stated}\n"


@pytest.mark.parametrize("asks", _ASKED)
def test_what_is_right_where_a_type_is_asked_is_proved_for_floats(asks: str) -> None:
    def forward(ctx: Any, x: Any, beta: float = 2.0) -> Any:
        ctx.beta = float(beta) if _ASKED[asks](beta) else beta
        return x * beta

    report = verdict(forward, of_scaled(lambda beta: beta), "n")
    assert report.verdict == "PROVED"
    assert "for all float beta" in report.stated
    assert any("for beta = -2 or 2 or 3 or 20 it is PROVED" in note for note in report.notes)


@pytest.mark.parametrize(
    "factor", [abs, lambda k: 1 if k > 5 else k, lambda k: 2 * (k // 2)], ids=["sign", "5", "odd"]
)
def test_several_integers_are_judged_in_the_place_of_a_float(factor: Any) -> None:
    backward = of_scaled(lambda beta: factor(beta) if isinstance(beta, int) else beta)
    assert verdict(scaled, backward, "n").verdict == "REFUTED"


@pytest.mark.parametrize("asks", _OF_TYPE)
def test_any_number_is_judged_at_an_integer_where_its_type_is_asked(asks: str) -> None:
    def forward(ctx: Any, x: Any, beta: float) -> Any:
        return scaled(ctx, x, beta)

    members = {
        "forward": staticmethod(forward),
        "backward": staticmethod(one_where(_OF_TYPE[asks])),
    }
    report = sg.verify(type("Op", (sg.Function,), members))
    assert report.verdict == "REFUTED"
    assert "for beta = " in report.stated
