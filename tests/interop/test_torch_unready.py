"""A backward that stops for want of a set-up says nothing of its gradient."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

pytest.importorskip("torch")

import symgrad as sg
from tests.interop import unready

pytestmark = pytest.mark.peers


@pytest.mark.parametrize(
    "name", ["Asserted", "InHelper", "ByName", "Nested", "Missing", "Else", "InLibrary"]
)
def test_a_missing_set_up_is_undecided_and_nothing_is_suggested(name: str) -> None:
    report = sg.verify(getattr(unready, name), "n m")
    assert report.verdict == sg.UNDECIDED, str(report)
    (found,) = report.inputs.values()
    assert found.reason.startswith("backward refuses to run here: ")
    assert str(inspect.getsourcefile(unready)) in found.reason
    assert not found.suggestion


@pytest.mark.parametrize(
    "name",
    ["OfShape", "OfSaved", "OfLocal", "OfClosure", "Always", "NotWritten", "False_", "Unkept",
     "Removed", "Unknown", "Count"],
)  # fmt: skip
def test_what_depends_on_the_call_or_stops_all_of_them_is_refuted(name: str) -> None:
    report: Any = sg.verify(getattr(unready, name), "n m")
    assert report.verdict == sg.REFUTED, str(report)


def test_it_is_judged_where_the_set_up_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unready, "READY", True)
    for name in ("Nested", "Else"):
        report = sg.verify(getattr(unready, name), "n m")
        assert report.verdict == sg.PROVED, str(report)


@pytest.mark.parametrize("name", ["NotInstalled", "WithoutName"])
def test_what_cannot_be_imported_is_undecided(name: str) -> None:
    report = sg.verify(getattr(unready, name))
    assert report.verdict == sg.UNDECIDED, str(report)
    (found,) = report.inputs.values()
    assert found.reason.startswith("backward refuses to run here: ")
    assert not found.suggestion


def test_what_may_be_installed_is_named() -> None:
    (found,) = sg.verify(unready.NotInstalled, "n m").inputs.values()
    assert "pip install package_that_is_missing" in found.reason


def test_a_backward_that_handles_it_is_judged() -> None:
    assert sg.verify(unready.HandlesImport, "n m").verdict == sg.REFUTED
