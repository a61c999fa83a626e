"""The oracle: both arithmetics agree, and so do its two derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import islice

import mpmath
import numpy as np
import pytest

from symgrad.errors import UnsupportedOpError
from symgrad.ir.registry import names
from symgrad.ops.record import get
from symgrad.ops.spectral import VALUES, VECTORS
from symgrad.proof.oracle.numbers import Array, Double, Precise, as_object
from symgrad.proof.oracle.subject import Subject, precisely
from symgrad.proof.oracle.values import PRECISE_TOLERANCE_DIGITS, DomainError, Evaluator
from tests.ops.cases import OPS, SPECIAL, Case, for_uses
from tests.proof.registry import Variant, subject_of, variants

_ITERATED = (*VECTORS, *VALUES)


def _known() -> list[Variant]:
    return [variant for name in names() for variant in variants(name)]


@pytest.mark.parametrize("variant", _known(), ids=str)
def test_arithmetics_and_derivatives_agree(variant: Variant) -> None:
    """Each op: 60 digits agree with doubles, sympy's derivative with the difference quotient."""
    subject = subject_of(variant, gradients=False)
    subject.settle()
    checked = 0
    for number, sizes in enumerate(islice(subject.sampler.size_choices(), 6)):
        at = subject.draw(sizes, number)
        if at is None:
            continue
        with precisely():
            exact = subject.evaluate_precise(at.point)
            for node, _ in subject.outputs:
                rounded = np.vectorize(float, otypes=[float])(exact.values[node])
                assert np.allclose(rounded, at.values[node], rtol=1e-9, atol=1e-12)
            directions = {
                node.attributes["name"]: subject.direction(node.attributes["name"], exact)
                for node in subject.inputs if node.dtype.is_float
            }  # fmt: skip
            quotient = exact.differences.along(directions)
            derivative = subject.sympy_derivative(exact, directions)
            gap = abs(quotient - derivative) / (1 + abs(derivative))
            assert gap < mpmath.mpf(10) ** (2 - PRECISE_TOLERANCE_DIGITS)
        checked += 1
    assert checked >= 2


def test_every_differentiable_op_has_a_variant() -> None:
    """The registry is the matrix: an op that nobody can try is noticed."""
    missing = [
        name for name in names()
        if get(name).vjp is not None and not variants(name)
    ]  # fmt: skip
    assert missing == []


def test_known_nodes_are_not_computed_again() -> None:
    subject = subject_of(variants("exp")[0], gradients=False)
    (output, _) = subject.outputs[0]
    feeds = subject.sampler.point({"n": 2, "m": 2}, 0).doubles()
    program = Evaluator([output], known=[output])
    assert program.nodes == []
    values = program.run(Double(), feeds, {"n": 2, "m": 2}, {output: np.zeros((2, 2))})
    assert (values[output] == 0).all()


def test_subjects_of_all_variants_can_be_built() -> None:
    built = 0
    for variant in _known():
        try:
            built += isinstance(subject_of(variant), Subject)
        except UnsupportedOpError:
            assert variant.op == "tetragamma"
    assert built > 80


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name in _ITERATED)) for name in OPS],
)
def test_each_op_has_a_value_or_none_whatever_the_numbers(name: str) -> None:
    """A few numbers, many times: matrices are singular, and integers are out of all range."""

    @for_uses(name)
    def check(case: Case) -> None:
        source = case.source()
        for numbers in ((0.0, 1.0, -1.0), (*SPECIAL, 1e-30, 1e30)):
            feeds = {
                key: _filled(array, numbers, source) if array.dtype.kind == "f" else array
                for key, array in case.feeds.items()
            }
            evaluator = Evaluator([case.node])
            with precisely(), suppress(DomainError):
                evaluator.run(Precise(mpmath.mpf), feeds, case.sizes)

    check()


def _filled(array: Array, numbers: Sequence[float], source: np.random.Generator) -> Array:
    found = as_object(np.zeros(array.shape))
    for at in np.ndindex(array.shape):
        found[at] = mpmath.mpf(float(source.choice(numbers)))
    return found
