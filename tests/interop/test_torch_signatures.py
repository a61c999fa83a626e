"""What a Function hands to torch's own functions is what their signatures say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.frontend.evidence import evidence_of  # noqa: E402
from symgrad.frontend.guests import taken  # noqa: E402
from symgrad.interop.torch.signatures import kinds_of  # noqa: E402

pytestmark = pytest.mark.peers
Function: Any = torch.autograd.Function


class Dropout(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, p: Any, train: Any) -> Any:
        return torch.dropout(x, p, train)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g, None, None


class Several(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, first: Any, second: Any, third: Any, fourth: Any) -> Any:
        ctx.fourth = fourth
        return x.topk(first, second, third)[0]

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return torch.argsort(g, stable=ctx.fourth), None, None, None, None


class OfOtherModules(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, first: Any, second: Any) -> Any:
        ctx.scale = np.sum(first, second)
        return torch.linalg.norm(x, first, second) * ctx.scale

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g, None, None


def test_functions_of_other_modules_are_no_methods() -> None:
    found = evidence_of(taken(OfOtherModules))
    assert "switch" not in found.values(), found


def test_a_flag_of_torch_is_tried_as_one() -> None:
    report = sg.verify(Dropout)
    assert "train = False" in str(report), str(report)
    assert report.verdict == sg.PROVED


def values_of(matrix: Any, full: Any) -> Any:
    return torch.linalg.svd(matrix, full)[1]


class SingularValues(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, full: Any) -> Any:
        ctx.save_for_backward(x)
        return torch.linalg.svd(x, full_matrices=full)[1]

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        u, _, vh = torch.linalg.svd(*ctx.saved_tensors, full_matrices=False)
        return (u * g) @ vh, None


class BehindAFunction(SingularValues):
    @staticmethod
    def forward(ctx: Any, x: Any, full: Any) -> Any:
        ctx.save_for_backward(x)
        return values_of(x, full)


@pytest.mark.parametrize("function", [SingularValues, BehindAFunction])
def test_a_flag_that_torch_takes_for_no_number_is_found(function: Any) -> None:
    report = sg.verify(function)
    assert report.verdict == sg.PROVED
    assert "for full = False" in str(report)


def test_a_function_of_a_module_of_torch_has_a_signature_of_its_own() -> None:
    assert evidence_of(taken(SingularValues))["full"] == "switch"
    assert kinds_of("linalg.svd")["full_matrices"] == "switch"
    assert "full_matrices" not in kinds_of("svd")


def test_flags_axes_and_counts_are_evidence() -> None:
    found = evidence_of(taken(Several))
    assert (found["first"], found["second"], found["third"]) == ("count", "axis", "switch")


def test_what_overloads_and_tensors_differ_in_is_no_evidence() -> None:
    assert 1 not in kinds_of("sum")  # dim, or dtype
    assert kinds_of("dropout")["train"] == "switch"
    assert 1 not in kinds_of("dropout")
    assert kinds_of("searchsorted")["right"] == "switch"
    assert not kinds_of("no_function_of_torch")
