"""Where forward asks for None in place of zeros, every pattern of None is judged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad.budgets import MOST_OUTPUTS
from symgrad.errors import NotProvedError
from symgrad.proof.verify import UNDEFINED


def two(only_first: Any, only_second: Any) -> Any:
    """The Function x -> x², 3 x, with its gradient for one cotangent alone as given."""

    class Two(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(x)
            return x * x, 3 * x

        @staticmethod
        def backward(ctx: Any, first: Any, second: Any) -> Any:
            (x,) = ctx.saved_tensors
            if first is None:
                return only_second(x, second)
            if second is None:
                return only_first(x, first)
            return 2 * x * first + 3 * second

    return Two


def nothing(x: Any, grad: Any) -> Any:
    return None


def doubled(x: Any, grad: Any) -> Any:
    return 2 * x * grad


def thrice(x: Any, grad: Any) -> Any:
    return 3 * grad


def raises(x: Any, grad: Any) -> Any:
    raise ValueError("both are needed")


def unknown(x: Any, grad: Any) -> Any:
    return sg.lu(grad)


@pytest.mark.parametrize("specs", ["n", "*batch"])
@pytest.mark.parametrize(
    ("first", "second", "verdict", "said"),
    [
        (doubled, thrice, "PROVED", ""),
        (doubled, nothing, "REFUTED", "first = None; grad_x"),
        (thrice, thrice, "REFUTED", "second = None; grad_x"),
        (raises, thrice, "REFUTED", "both are needed"),
        (unknown, thrice, "UNDECIDED", "no operation 'lu'"),
    ],
)
def test_every_pattern_is_judged(
    specs: str, first: Any, second: Any, verdict: str, said: str
) -> None:
    report = sg.verify(two(first, second), specs)
    assert str(report.verdict) == verdict, report
    (found,) = (one for one in report.protocol if one.name == UNDEFINED)
    assert said in found.text
    absent = found.counterexample is not None and None in found.counterexample.inputs.values()
    assert absent == ("grad_x" in said)


def test_a_kernel_takes_none_only_where_backward_does_the_same() -> None:
    op: Any = sg.compile(two(doubled, thrice), "f64[n]")
    x, ones = np.array([0.5, 2.0]), np.ones(2)
    _, residuals = op.forward(x)
    assert op.backward(residuals, None, ones)[0].tolist() == [3.0, 3.0]
    assert op.backward(residuals, ones, None)[0].tolist() == [1.0, 4.0]
    with pytest.raises(NotProvedError, match="take None for a cotangent of zeros"):
        sg.compile(two(doubled, nothing), "f64[n]", allow=("REFUTED",))


def test_of_many_outputs_some_patterns_are_judged_and_that_is_no_proof() -> None:
    count = MOST_OUTPUTS + 1

    class Many(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            return tuple(x * k for k in range(count))

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return sum(k * grad for k, grad in enumerate(grads) if grad is not None)

    report = sg.verify(Many, "n")
    assert report.verdict == sg.UNDECIDED
    (found,) = (one for one in report.protocol if one.name == UNDEFINED)
    assert f"of {count} cotangents" in found.text


def six(backward: Any) -> Any:
    """The Function x -> exp(x), exp(2 x) ... exp(6 x)."""

    class Six(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(x)
            return tuple((k * x).exp() for k in range(1, 7))

    Six.backward = staticmethod(backward)  # type: ignore[method-assign]
    return Six


def added(x: Any, grads: Any) -> Any:
    """The right gradient, from the cotangents that are given."""
    terms = [k * g * (k * x).exp() for k, g in enumerate(grads, 1) if g is not None]
    return sum(terms) if terms else None


def test_six_outputs_are_proved_for_every_pattern() -> None:
    report = sg.verify(six(lambda ctx, *grads: added(ctx.saved_tensors[0], grads)), "n")
    assert report.verdict == sg.PROVED, report


def factored(x: Any, grads: Any) -> Any:
    """The same in Horner's form, which is no sum of what single cotangents give."""
    found = 0
    for k in range(6, 0, -1):
        found = (found + (0 if grads[k - 1] is None else k * grads[k - 1])) * x.exp()
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "absent", [(0, 1), (2, 3, 5), (0, 2, 4), (1,), (1, 2, 3, 4, 5)]
)  # fmt: skip
@pytest.mark.parametrize("gradient", [added, factored])
def test_one_wrong_pattern_of_many_is_found(absent: Any, gradient: Any) -> None:
    def backward(ctx: Any, *grads: Any) -> Any:
        (x,) = ctx.saved_tensors
        found = gradient(x, grads)
        return 2 * found if [i for i, g in enumerate(grads) if g is None] == [*absent] else found

    report = sg.verify(six(backward), "n")
    assert report.verdict == sg.REFUTED
    (found,) = (one for one in report.protocol if one.name == UNDEFINED)
    assert all(f"grad_output_{i} = None" in found.text for i in absent), found.text
    assert found.counterexample is not None


def test_what_a_pattern_needs_is_printed() -> None:
    class Op(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(x)
            return x * x, x + 0

        @staticmethod
        def backward(ctx: Any, first: Any, second: Any) -> Any:
            (x,) = ctx.saved_tensors
            if first is None:
                return second * (x + 1e9).log().exp() / (x + 1e9)
            return 2 * x * first + (0 if second is None else second)

    report = sg.verify(Op, "n")
    assert report.verdict == sg.PROVED
    (found,) = (one for one in report.protocol if one.name == UNDEFINED)
    assert "if x > -1000000000" in found.text


def test_an_absent_cotangent_that_is_added_is_the_counterexample() -> None:
    class Op(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(x, y)
            return x * y, x + 0

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            x, y = ctx.saved_tensors
            return g * y + h, g * x

    report = sg.verify(Op, "n", "n")
    assert report.verdict == sg.REFUTED
    (found,) = (one for one in report.protocol if one.name == UNDEFINED)
    assert "= None" in found.text


def squares(count: int, backward: Any, base: Any = sg.Function) -> Any:
    """The Function x -> x², which the output is, or both outputs are."""

    class Squares(base):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(x)
            return x * x if count == 1 else (x * x, x * x)

    Squares.backward = staticmethod(backward)
    return Squares


def without(value: Any) -> Any:
    """The backward of ``squares`` that gives this where all cotangents are None."""

    def backward(ctx: Any, *grads: Any) -> Any:
        (x,) = ctx.saved_tensors
        given = [2 * grad * x for grad in grads if grad is not None]
        return sum(given[1:], given[0]) if given else value(x)

    return backward


NOTHING = {"None": lambda x: None, "zeros": lambda x: 0 * x, "difference": lambda x: x - x}
SOMETHING = {
    "more": lambda x: 5 * x, "input": lambda x: x, "ones": lambda x: 0 * x + 1,
    "masked": lambda x: (x - 1e6).relu(),
}  # fmt: skip
FAILING = {
    "number": lambda x: 0, "error": lambda x: x * None, "many": lambda x: (None, x),
    "said": lambda x: raises(x, None),
}  # fmt: skip


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("value", [*NOTHING])
def test_nothing_for_no_cotangent_is_right(count: int, value: str) -> None:
    report = sg.verify(squares(count, without(NOTHING[value])), "n")
    assert report.verdict == sg.PROVED, report
    assert "incoming gradient" not in str(report).replace("the incoming gradients are left", "")


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("value", [*SOMETHING])
def test_something_for_no_cotangent_is_refuted(count: int, value: str) -> None:
    report = sg.verify(squares(count, without(SOMETHING[value])), "n")
    assert report.verdict == sg.REFUTED, report
    (found,) = (one for one in report.protocol if one.name == UNDEFINED)
    said = "all incoming gradients are None" if count == 2 else " = None, the gradient of x"
    assert said in found.text
    assert found.counterexample is not None
    assert list(found.counterexample.inputs.values()).count(None) == count
    assert found.counterexample.true == 0


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("value", [*FAILING])
def test_failing_for_no_cotangent_is_a_condition(count: int, value: str) -> None:
    report = sg.verify(squares(count, without(FAILING[value])), "n")
    assert report.verdict == sg.PROVED, report
    said = "not all incoming gradients are" if count == 2 else "the incoming gradient is not"
    assert f"if {said} None (backward fails then)" in str(report)


def test_a_wrong_backward_that_fails_for_no_cotangent_is_refuted() -> None:
    assert sg.verify(squares(1, lambda ctx, g: 3 * g * ctx.saved_tensors[0]), "n") == sg.REFUTED


@pytest.mark.peers
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("value", [*SOMETHING, *NOTHING, *FAILING])
def test_torch_gives_the_same_for_no_cotangent(count: int, value: str) -> None:
    import torch

    made = {**SOMETHING, **NOTHING, **FAILING}[value]
    function = squares(count, without(made), torch.autograd.Function)
    report = sg.verify(function, "n", suggest=False)
    assert report.verdict == (sg.REFUTED if value in SOMETHING else sg.PROVED), report
    said = " ".join(one.text for one in report.protocol if one.name == UNDEFINED)
    assert ("confirmed in torch" in said) == (value in SOMETHING), said


def zeros_for_none(x: Any, grads: Any) -> list[Any]:
    return [sg.zeros_like(x) if grad is None else grad for grad in grads]


def hidden(x: Any, grads: Any) -> Any:
    """Divides by what is 0 where two cotangents are absent, and multiplies that with zeros."""
    absent = [k for k, grad in enumerate(grads) if grad is None]
    found = added(x, zeros_for_none(x, grads))
    return found + sg.zeros_like(x) * (x - x).log() if absent == [1, 4] else found


def nonlinear(x: Any, grads: Any) -> Any:
    """Right for generic cotangents; 0 / 0 where one is absent."""
    first, *others = zeros_for_none(x, grads)
    return first * first / first * x.exp() + added(x, [None, *others])


def paired(x: Any, grads: Any) -> Any:
    """Wrong for one pattern alone."""
    absent = [k for k, grad in enumerate(grads) if grad is None]
    return added(x, zeros_for_none(x, grads)) * (2 if absent == [0, 2, 3] else 1)


@pytest.mark.parametrize(
    ("gradient", "verdict"),
    [
        (lambda x, grads: added(x, zeros_for_none(x, grads)), "PROVED"),
        (lambda x, grads: factored(x, zeros_for_none(x, grads)), "PROVED"),
        (hidden, "not PROVED"),
        (nonlinear, "not PROVED"),
        (paired, "REFUTED"),
    ],
)
def test_zeros_in_place_of_none(gradient: Any, verdict: str) -> None:
    report = sg.verify(six(lambda ctx, *g: gradient(ctx.saved_tensors[0], g)), "n", suggest=False)
    assert (report.verdict == sg.PROVED) == (verdict == "PROVED"), report
    assert verdict != "REFUTED" or report.verdict == sg.REFUTED, report
