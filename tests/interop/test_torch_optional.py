"""What may be None is judged as None, and as a tensor where it is meant as one."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")

import symgrad as sg
from tests.interop import optional

pytestmark = pytest.mark.peers


@pytest.mark.parametrize("shapes", [(), ("n m", "n m")])
@pytest.mark.parametrize(
    ("name", "verdict", "where"),
    [("Missing", "REFUTED", "weight absent"), ("Right", "PROVED", "weight absent"),
     ("Required", "PROVED", "")],
)  # fmt: skip
def test_none_is_judged_where_forward_takes_it(
    shapes: Any, name: str, verdict: str, where: str
) -> None:
    report = sg.verify(getattr(optional, name), *shapes)
    assert report.verdict == verdict, str(report)
    assert where in " ".join(report.presences)
    if not where:
        assert "absent" not in str(report)


@pytest.mark.parametrize(
    "name",
    ["Unsaid", "ByDefault", "Renamed", "InPlace", "Annotated", "Piped", "Kept", "Bias"],
)
def test_the_forgotten_gradient_of_what_may_be_none_is_found(name: str) -> None:
    report = sg.verify(getattr(optional, name), suggest=False)
    other = report.inputs["bias" if name == "Bias" else "y"]
    assert str(other.verdict) == "REFUTED", str(report)


def test_a_tensor_that_may_be_none_is_proved_given_and_absent() -> None:
    report = sg.verify(optional.Given, suggest=False)
    assert report.verdict == "PROVED", str(report)
    assert "for y given or absent" in str(report)


@pytest.mark.parametrize("name", ["Number", "Scaled", "OneByDefault", "SetUp", "Epsilon", "Summed"])
def test_a_number_that_may_be_none_stays_one(name: str) -> None:
    report = sg.verify(getattr(optional, name), suggest=False)
    assert report.verdict == "PROVED", str(report)
    assert " for all real " in str(report) or "for dim = " in str(report)
