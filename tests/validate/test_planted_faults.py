"""Faults planted in the code generator are found, and without them the same texts are validated."""

from __future__ import annotations

import pytest

from symgrad.emission import emit
from symgrad.kernels import KernelPlan
from symgrad.validate.bounded import Wrong, check
from symgrad.validate.source import parse, without_comments
from symgrad.validate.symbolic.kernel import validate
from tests.validate.planted import FAULTS, FAULTS_OF_WRAPPERS, Fault, graph_of, op_of
from tests.validate.planting import plant
from tests.validate.test_symbolic import Emitted, emitted
from tests.validate.test_wrappers import judged


def kernel(name: str) -> Emitted:
    return emitted(KernelPlan("k_one", graph_of(name)))


def planted(monkeypatch: pytest.MonkeyPatch, fault: Fault) -> None:
    for one in ((fault.place, fault.old, fault.new), *fault.more):
        plant(monkeypatch, *one)


@pytest.mark.slow
@pytest.mark.parametrize("name", dict.fromkeys(fault.kernel for fault in FAULTS.values()))
def test_kernels_without_faults_are_validated(name: str) -> None:
    outcome = validate(*kernel(name))
    assert outcome.validated, f"line {outcome.line}: {outcome.reason}"


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_faults_of_kernels_are_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a line, or by a call that gives something else."""
    fault = FAULTS[name]
    right, _, _ = kernel(fault.kernel)
    planted(monkeypatch, fault)
    text, record, graph = kernel(fault.kernel)
    assert without_comments(text).split() != without_comments(right).split()
    outcome = validate(text, record, graph)
    assert not outcome.validated
    assert outcome.line or isinstance(check(parse(text), record, graph), Wrong)


@pytest.mark.parametrize(
    "name", dict.fromkeys(fault.kernel for fault in FAULTS_OF_WRAPPERS.values())
)
def test_wrappers_without_faults_are_validated(name: str) -> None:
    outcome = judged(op_of(name))
    assert outcome.validated, f"line {outcome.line}: {outcome.reason}"


@pytest.mark.parametrize("name", FAULTS_OF_WRAPPERS)
def test_faults_of_wrappers_are_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fault = FAULTS_OF_WRAPPERS[name]
    op = op_of(fault.kernel)
    right = emit(op, "").wrapper()
    planted(monkeypatch, fault)
    text = emit(op, "").wrapper()
    monkeypatch.undo()
    assert text != right
    outcome = judged(op, text)
    assert not outcome.validated
    assert outcome.line
