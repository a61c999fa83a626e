"""The prover proves every VJP of the registry: a new op needs no new test."""

from __future__ import annotations

import pytest

from symgrad.errors import UnsupportedOpError
from symgrad.ir.registry import names
from symgrad.proof.judge.decide import judge
from symgrad.proof.report.verdict import Verdict
from tests.proof.registry import Variant, subject_of, variants

WITHOUT = {"tetragamma": "its derivative is not in the registry"}
ALL = [variant for name in names() for variant in variants(name)]


OPEN = ("left_vectors", "right_vectors")
"""Vectors by themselves: what is proved are functions of them that their signs do not change."""


@pytest.mark.parametrize("variant", ALL, ids=str)
def test_the_vjp_is_proved(variant: Variant) -> None:
    if variant.op in WITHOUT:
        with pytest.raises(UnsupportedOpError):
            subject_of(variant)
        return
    subject = subject_of(variant)
    assert subject.gradients, "the VJP gives no cotangent"
    for name, judgement in judge(subject).items():
        if variant.op in OPEN:
            assert judgement.verdict is Verdict.UNDECIDED
            assert "no difference was found" in judgement.reason
            continue
        assert judgement.verdict is Verdict.PROVED, f"{name}: {judgement.reason}"
