"""Plain numbers are symbols of the proof: one verdict for every value, and only where it holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import symgrad as sg
from symgrad.errors import SymgradError

Forward = Callable[..., Any]


def verdict(forward: Forward, backward: Forward, *specs: str, **how: Any) -> Any:
    """The report on a Function of these two."""
    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return sg.verify(type("Op", (sg.Function,), members), *(specs or ("n m",)), **how)


def scaled(ctx: Any, x: Any, alpha: float = 1.5) -> Any:
    ctx.alpha = alpha
    return x * alpha


def test_a_default_is_a_symbol() -> None:
    found = verdict(scaled, lambda ctx, g: (g * ctx.alpha, None))
    assert found.stated == "PROVED for all real alpha"
    assert found.to_dict()["quantified"] == ["all real alpha"]
    assert "for all real alpha" in str(found)
    assert "for all real alpha" in found._repr_html_()


@pytest.mark.parametrize("factor", [lambda a: 1.5, lambda a: a * a / 1.5, lambda a: 3 - a])
def test_what_is_wrong_for_a_number_of_the_sign_of_the_default_is_refuted(
    factor: Callable[[Any], Any],
) -> None:
    found = verdict(scaled, lambda ctx, g: (g * factor(ctx.alpha), None))
    assert found.stated == "REFUTED for alpha = 0.5"
    assert "with the defaults it is PROVED for alpha = 1.5" in found.notes


def test_what_is_wrong_for_numbers_of_the_other_sign_is_a_condition() -> None:
    found = verdict(scaled, lambda ctx, g: (g * (ctx.alpha**2) ** 0.5, None))
    assert found.stated == "PROVED for all real alpha > 0"
    assert [str(one) for one in found.conditions] == ["alpha > 0"]


def test_beside_0_the_positive_numbers_are_meant() -> None:
    def dropout(ctx: Any, x: Any, keep: Any, p: float = 0.0) -> Any:
        ctx.save_for_backward(keep)
        ctx.p = p
        return x * keep / (1 - p)

    def backward(factor: Callable[[Any], Any]) -> Callable[..., Any]:
        return lambda ctx, g: (g * ctx.saved_tensors[0] * factor(ctx.p), None, None)

    how: dict[str, Any] = {"assume": {"keep": "constant"}}
    right = verdict(dropout, backward(lambda p: 1 / (1 - p)), "n", "n", **how)
    assert right.stated == "PROVED for all real p with p < 1 or p > 1"
    assert not [one for one in right.conditions if one.kind != "declared"]
    found = verdict(dropout, backward(lambda p: 1), "n", "n", **how)
    assert found.stated == "REFUTED for p = 0.5"
    stated = verdict(dropout, backward(lambda p: 1), "n", "n", static={"p": 0.0}, **how)
    assert stated.stated == "PROVED for p = 0.0"


def test_a_value_that_is_stated_or_the_only_one_is_no_condition() -> None:
    def only(ctx: Any, x: Any, alpha: float = 1.5) -> Any:
        if alpha != 1.5:
            raise ValueError("alpha has to be 1.5")
        return x * alpha

    assert not verdict(only, lambda ctx, g: (g * 1.5, None)).conditions
    stated = verdict(scaled, lambda ctx, g: (g * 1.5, None), static={"alpha": 1.5})
    assert stated.stated == "PROVED for alpha = 1.5"
    assert not stated.conditions


@pytest.mark.parametrize(
    "factor", [lambda a: a * a / a, lambda a: a + 0 * (1 / a), lambda a: 1 / (1 / a)]
)
def test_a_call_in_which_the_number_is_0_is_no_null_set(factor: Callable[[Any], Any]) -> None:
    """[rule: plain-number]."""
    found = verdict(scaled, lambda ctx, g: (g * factor(ctx.alpha), None))
    assert found.stated == "PROVED for all real alpha with alpha < 0 or alpha > 0"


def test_a_cut_contraction_is_not_generic_if_a_number_makes_it_0() -> None:
    """[rule: plain-number]."""

    def forward(ctx: Any, x: Any, w: Any, alpha: float = 1.0) -> Any:
        y = (x * alpha) @ w
        ctx.save_for_backward(x, w, y)
        ctx.alpha = alpha
        return y

    def backward(ctx: Any, g: Any) -> Any:
        x, w, y = ctx.saved_tensors
        g = g * y / y
        return ctx.alpha * (g @ w.t()), ctx.alpha * (x.t() @ g), None

    found = verdict(forward, backward, "n k", "k m")
    excluded = [str(one) for one in found.conditions]
    assert found.stated != "PROVED for all real alpha" or "x * alpha @ w == 0" in excluded


def test_a_margin_is_generic_beside_an_element() -> None:
    """[rule: plain-number]."""

    def forward(ctx: Any, x: Any, margin: float = 1.0) -> Any:
        ctx.save_for_backward(x)
        ctx.margin = margin
        return (margin - x).clamp(min=0)

    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return -g * (ctx.margin - x > 0), None

    assert verdict(forward, backward).stated == "PROVED for all real margin"


def test_a_region_is_what_the_program_does_not_tell_apart() -> None:
    def forward(ctx: Any, x: Any, slope: float = 0.5) -> Any:
        if slope < 0:
            raise ValueError
        ctx.slope = slope
        return x * slope

    def backward(ctx: Any, g: Any) -> Any:
        return (g * ctx.slope if ctx.slope <= 2.5 else g), None

    found = verdict(forward, lambda ctx, g: (g * ctx.slope, None))
    assert found.stated == "PROVED for all real slope >= 0"
    assert [str(one) for one in found.conditions] == ["slope >= 0"]
    assert verdict(forward, backward).stated == "REFUTED for slope = 3.5"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda a: {1.5: 1.5}.get(a, 2), "REFUTED for alpha = 0.5"),
        (lambda a: float(str(a)), "PROVED for alpha = 0.25 or 0.5 or 1.5 or 2.0"),
        (lambda a: float(f"{a:.1f}"), "REFUTED for alpha = 0.25"),
        (float, "PROVED for alpha = 0.25 or 0.5 or 1.5 or 2.0"),
        (lambda a: 1.5 if type(a) is float else 7, "REFUTED for alpha = 0.5"),
        (lambda a: a if a == 1.5 else 7, "REFUTED for alpha = 0.5"),
        (lambda a: int(2 * a) / 2, "REFUTED for alpha = 0.25"),
        (lambda a: a.as_integer_ratio()[0] / 2, "REFUTED for alpha = 2.0"),
        (lambda a: round(a * 2) / 2, "REFUTED for alpha = 0.25"),
        (lambda a: max(a - 1.5, 0) + 1.5, "REFUTED for alpha = 0.5"),
    ],
)
def test_a_number_that_python_asks_for_is_judged_at_a_few(
    asked: Callable[[Any], Any], said: str
) -> None:
    def quiet(a: Any) -> Any:
        try:
            return asked(a)
        except BaseException:
            return 7

    assert verdict(scaled, lambda ctx, g: (g * quiet(ctx.alpha), None)).stated == said


def test_the_other_sides_of_comparisons_are_judged_too() -> None:
    def among(ctx: Any, g: Any) -> Any:
        return g * (ctx.alpha if ctx.alpha in (1.5, 2) else 7), None

    assert verdict(scaled, among).stated == "REFUTED for alpha = 0.5"

    def signs(ctx: Any, g: Any) -> Any:
        if ctx.alpha > 0:
            return g * ctx.alpha, None
        return (g * 0 if ctx.alpha == 0 else ctx.alpha * g), None

    assert verdict(scaled, signs).stated == "PROVED for all real alpha"
    wrong = verdict(scaled, lambda ctx, g: (g * ctx.alpha if ctx.alpha >= 0 else -g, None))
    assert wrong.stated == "PROVED for all real alpha >= 0"
    assert any("alpha < 0 it is REFUTED" in note and "alpha = -" in note for note in wrong.notes)


def test_two_numbers_split_into_boxes() -> None:
    def forward(ctx: Any, x: Any, a: float = 1.0, b: float = 1.0) -> Any:
        ctx.a, ctx.b = a, b
        return x * (a if a > 0 else 2) * (b if b > 0 else 3)

    def right(ctx: Any, g: Any) -> Any:
        return g * (ctx.a if ctx.a > 0 else 2) * (ctx.b if ctx.b > 0 else 3), None, None

    def wrong(ctx: Any, g: Any) -> Any:
        return (
            g * (ctx.a if ctx.a > 0 or ctx.b <= 0 else 2) * (ctx.b if ctx.b > 0 else 3),
            None,
            None,
        )

    assert verdict(forward, right).stated == "PROVED for all real a, all real b"
    found = verdict(forward, wrong)
    assert found.stated == "PROVED for all real a > 0, all real b > 0"
    # there, backward has a factor that is passed: a scaled gradient, which may be meant
    assert any("it is SURROGATE?" in note and "a <= 0 and b <= 0" in note for note in found.notes)


def test_what_a_kink_has_is_not_said_for_one_value() -> None:
    def forward(ctx: Any, x: Any, slope: float = 0.5) -> Any:
        ctx.save_for_backward(x)
        ctx.slope = slope
        return sg.where(x > 0, x, slope * x)

    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return sg.where(x > 0, g, ctx.slope * g), None

    found = verdict(forward, backward)
    assert found.stated == "PROVED for all real slope"
    assert [str(one) for one in found.conditions] == ["x == 0"]


def test_what_is_not_proved_at_the_default_may_be_elsewhere() -> None:
    found = verdict(scaled, lambda ctx, g: (2 * g if ctx.alpha > 0 else g * ctx.alpha, None))
    assert found.stated == "REFUTED for alpha = 1.5"
    assert "for alpha <= 0 it is PROVED" in found.notes


def test_isinstance_answers_as_for_a_float_and_an_integer_is_judged() -> None:
    found = verdict(
        scaled, lambda ctx, g: (g * (ctx.alpha if isinstance(ctx.alpha, (int, float)) else 7), None)
    )
    assert found.stated == "PROVED for all float alpha"
    found = verdict(
        scaled, lambda ctx, g: (g * (ctx.alpha if isinstance(ctx.alpha, float) else 7), None)
    )
    assert found.stated == "REFUTED for alpha = 2"


def test_an_integer_is_any_integer_until_it_is_used_as_one() -> None:
    def forward(ctx: Any, x: Any, k: int = 3, dim: int = -1, keep: str = "no") -> Any:
        ctx.k, ctx.dim = k, dim
        return x.cumsum(dim) * k

    def backward(ctx: Any, g: Any) -> Any:
        return (g * ctx.k).flip(ctx.dim).cumsum(ctx.dim).flip(ctx.dim), None, None, None

    assert (
        verdict(forward, backward).stated
        == "PROVED for all integer k; for dim = -2 or -1 or 0 or 1, keep = 'no'"
    )


def test_an_integer_keeps_the_dtype_of_integers() -> None:
    """With a float in its place the sum would be a float, and so would the index."""

    def forward(ctx: Any, x: Any, k: int = 0) -> Any:
        ctx.save_for_backward(sg.arange(x.shape[0]) + k)
        return x * 2

    def backward(ctx: Any, g: Any) -> Any:
        (rows,) = ctx.saved_tensors
        return (g * 2 if not rows.dtype.is_float else g), None

    assert verdict(forward, backward).stated == "PROVED for k = 0 or 1 or 2 or 4"


def test_a_stated_value_is_not_generalised() -> None:
    found = verdict(scaled, lambda ctx, g: (g * ctx.alpha, None), static={"alpha": 2.0})
    assert found.stated == "PROVED for alpha = 2.0"


def test_an_annotated_number_is_any_real_and_0_is_a_call() -> None:
    def forward(ctx: Any, x: Any, alpha: float) -> Any:
        ctx.alpha = alpha
        return x * alpha

    right = verdict(forward, lambda ctx, g: (g * ctx.alpha, None))
    assert right.stated == "PROVED for all real alpha"
    assert not right.conditions
    found = verdict(forward, lambda ctx, g: (g * ctx.alpha * ctx.alpha / ctx.alpha, None))
    assert [str(one) for one in found.conditions] == ["alpha == 0"]


def test_a_constant_input_is_printed() -> None:
    found = verdict(
        lambda ctx, x, y: x + y * y, lambda ctx, g: (g, None), "n", "n", assume={"y": "constant"}
    )
    assert "y is constant: no gradient by it is judged" in str(found)


def test_a_kernel_takes_any_number_and_nothing_else() -> None:
    members = {
        "forward": staticmethod(scaled),
        "backward": staticmethod(lambda ctx, g: (g * ctx.alpha, None)),
    }
    op = sg.compile(type("Op", (sg.Function,), members), "n m")
    assert (op(sg.ones(2, 3), 7.0) == 7).all()
    with pytest.raises(SymgradError, match="alpha"):
        op(sg.ones(2, 3), "7.0")


class Squared(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, alpha: float = 2.0) -> Any:
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        ctx.alpha = alpha
        return alpha * x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * ctx.alpha * x * g, None

    @staticmethod
    def jvp(ctx: Any, t: Any, _: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * ctx.alpha * x * t


class OnlyTwo(Squared):
    @staticmethod
    def jvp(ctx: Any, t: Any, _: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 4 * x * t


def test_a_jvp_and_a_second_order_hold_for_all_numbers() -> None:
    assert sg.verify(Squared, "n").stated == "PROVED for all real alpha"
    assert sg.verify(Squared, "n", order=2).stated == "PROVED for all real alpha"
    found = sg.verify(OnlyTwo, "n")
    assert found.stated == "REFUTED for alpha = 0.5"
    assert "jvp" in [one.name for one in found.protocol if one.verdict == "REFUTED"]
