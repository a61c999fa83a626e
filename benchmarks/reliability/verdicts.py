"""Verdicts: a right backward is never REFUTED, one that differs never PROVED.

In: a ``Subject``.  Out: ``Notes``.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import symgrad as sg
from benchmarks.mutants import mutants_of_text
from benchmarks.reliability.loading import defined
from benchmarks.reliability.notes import Notes
from benchmarks.reliability.subject import Subject
from benchmarks.reliability.truth import as_tuple
from symgrad.errors import SymgradError
from symgrad.frontend.trace import trace
from symgrad.kernels import plan
from symgrad.numpy_op import NumpyOp

MUTANTS = 3
_DIFFERS = 1e-6  # of the size of the gradients: far beyond rounding


def right(subject: Subject, notes: Notes) -> None:
    """The verdict on the program as it is."""
    for absent in subject.points:
        notes.counts["verdict: programs"] += 1
        try:
            report = sg.verify(subject.defined, *subject.program.specs(absent), suggest=False)
        except SymgradError as error:
            notes.refuse("verdict", error)
            continue
        verdict = str(report.verdict)
        notes.counts[f"verdict: {verdict}"] += 1
        if verdict == "REFUTED":
            notes.fail("verdict", f"REFUTED though right:\n{report}", sorted(absent))


def mutated(subject: Subject, notes: Notes) -> None:
    """The verdict on slips of the written backward that change what it computes."""
    if not subject.program.written or not subject.generic:
        return
    found = mutants_of_text(subject.class_text, "random")
    choice = random.Random(f"{subject.seed} mutants")
    for mutant in choice.sample(found, min(MUTANTS, len(found))):
        text = f"{mutant.source}\n"
        function = defined("Program", text, f"<mutant {subject.seed}: {mutant.description}>")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                wrong = next(_differences(subject, function), None)
                verdict = str(sg.verify(function, *subject.program.specs(), suggest=False).verdict)
        except (SymgradError, ArithmeticError):
            notes.counts["mutants: not judged"] += 1
            continue
        notes.counts[f"mutants: {'differs' if wrong else 'same'}, {verdict}"] += 1
        if wrong and verdict == "PROVED":
            notes.fail("mutants", f"PROVED though wrong, {mutant.description}: {wrong}\n{text}")


def _differences(subject: Subject, function: Any) -> Iterator[str]:
    """Where the gradients of a changed backward differ from torch's."""
    op = NumpyOp(plan(trace(function, *subject.program.specs())))
    for point in subject.generic:
        truth = point.truth
        if truth is None or point.absent or point.empty or not truth.finite:
            continue
        try:
            outputs, residuals = op.forward(*point.arrays.values())
            cotangents = [
                point.cotangent(number, np.shape(one))
                if truth.outputs[number].dtype.kind == "f"
                else None
                for number, one in enumerate(as_tuple(outputs))
            ]
            found = op.backward(residuals, *cotangents)
        except SymgradError:
            continue
        for name, gradient in zip(point.arrays, found, strict=True):
            keys = [key for key in truth.gradients if key[1] == name]
            if not keys or gradient is None:
                continue
            total = sum((truth.gradients[key] for key in keys), np.zeros_like(gradient))
            size = (
                1
                + sum(truth.sensitive.get(key, 0) for key in keys)
                + np.max(np.abs(total), initial=0)
            )
            off = np.max(np.abs(gradient - total), initial=0)
            if off > _DIFFERS * size:
                yield f"the gradient of {name} is off by {off:.3g} at {point}"
