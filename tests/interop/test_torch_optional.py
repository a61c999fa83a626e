"""None is judged for an argument without a default, where the code asks whether it is None."""

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
