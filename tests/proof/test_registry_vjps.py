"""The prover proves every VJP of the registry: a new op needs no new test."""

from __future__ import annotations

import pytest

from symgrad.errors import UnsupportedOpError
from symgrad.ir.registry import names
from symgrad.proof.decide import judge
from symgrad.proof.verdict import Verdict
from tests.proof.registry import Variant, subject_of, variants

# What the normal form cannot decide yet; an entry that is no longer needed fails.
UNDECIDED = {
    "cholesky": "the factor is an atom; that L times its transpose is the matrix is not known",
    "solve_triangular": "the solution is an atom; that the matrix times it is b is not known",
}
WITHOUT = {"tetragamma": "its derivative is not in the registry"}
ALL = [variant for name in names() for variant in variants(name)]


@pytest.mark.parametrize("variant", ALL, ids=str)
def test_the_vjp_is_proved(variant: Variant) -> None:
    if variant.op in WITHOUT:
        with pytest.raises(UnsupportedOpError):
            subject_of(variant)
        return
    subject = subject_of(variant)
    assert subject.gradients, "the VJP gives no cotangent"
    for name, judgement in judge(subject).items():
        if variant.op in UNDECIDED:
            assert judgement.verdict is Verdict.UNDECIDED, f"decided: remove {variant.op}"
            continue
        assert judgement.verdict is Verdict.PROVED, f"{name}: {judgement.reason}"
