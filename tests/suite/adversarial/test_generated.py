"""Programs that are drawn: nothing false is said of those families that are closed."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import symgrad as sg
from tests.suite.adversarial.generated import FAMILIES, drafts
from tests.suite.adversarial.known import OPEN_FAMILIES
from tests.suite.adversarial.program import RIGHT

CLOSED = tuple(name for name in FAMILIES if name not in OPEN_FAMILIES)
FEW = settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.peers
@pytest.mark.parametrize("family", CLOSED)
@FEW
@given(st.data())
def test_nothing_false_is_said(family: str, data: st.DataObject) -> None:
    from tests.suite.adversarial.judged import REFUTED, complaints, judge
    from tests.suite.adversarial.torch_truth import confirmed, labelled

    draft = data.draw(drafts((family,)))
    program = labelled(draft, sg)
    if program is None:
        return
    judged = judge(program)
    found = complaints(program, judged)
    if program.label == RIGHT and judged.verdict == REFUTED and confirmed(draft, judged.report):
        return
    assert not found, "\n".join([*found, draft.text, str(judged.report or judged.said)])


def test_open_families_are_families() -> None:
    assert {*OPEN_FAMILIES} <= {*FAMILIES}
