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
    return sg.svd(grad)


@pytest.mark.parametrize("specs", ["n", "*batch"])
@pytest.mark.parametrize(
    ("first", "second", "verdict", "said"),
    [
        (doubled, thrice, "PROVED", ""),
        (doubled, nothing, "REFUTED", "grad_output_0 = None; grad_x"),
        (thrice, thrice, "REFUTED", "grad_output_1 = None; grad_x"),
        (raises, thrice, "REFUTED", "both are needed"),
        (unknown, thrice, "UNDECIDED", "no operation 'svd'"),
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
