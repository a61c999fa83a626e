"""The report on a loop that waits for a value, by those on all rounds and on the later ones alone.

In: both reports, the loop.  Out: the one that counts, which says of what.
"""

from __future__ import annotations

from dataclasses import replace

from symgrad.ir.function import Loop
from symgrad.proof.report.records import Condition, InputReport, Report
from symgrad.proof.report.rendering import supposing
from symgrad.proof.report.verdict import AGAINST, Verdict

ITERATED = (
    "forward repeats line {} until a value is reached; if backward is meant to be that of the "
    'point to which this converges, declare it: surrogate = "the fixed point of z = f(z, x)" in '
    "symgrad.toml, with what a round computes as f"
)


def for_rounds(report: Report, later: Report | None, loop: Loop) -> Report:
    """The report on a loop that is not proved for all rounds that are judged.

    ``later``: that with no end in the first rounds, None where there is none.  Where forward gives
    a constant in these, nobody means them: they are a condition.  So they are where nothing is
    wrong in them.  Else what is proved for the later ones stands beside the mistake.
    """
    if later is None or later.verdict not in (Verdict.PROVED, Verdict.SURROGATE):
        return _iterated(report, loop)
    if report.verdict is Verdict.UNDECIDED:
        return later
    wrong = [name for name, one in report.inputs.items() if one.verdict is Verdict.REFUTED]
    if loop.constant and wrong:
        several = "gradients" if wrong[1:] else "gradient"
        note = (
            f"where the loop of line {loop.location.line} ends before, forward gives a constant, "
            f"and the {several} of {' and '.join(wrong)} would be wrong"
        )
        return replace(later, notes=(*later.notes, note))
    inputs = {
        name: _beside(one, later.inputs[name]) if name in wrong and name in later.inputs else one
        for name, one in report.inputs.items()
    }  # fmt: skip
    return replace(report, inputs=inputs)


def _beside(one: InputReport, later: InputReport) -> InputReport:
    """What is wrong in the first rounds, with what is proved for the later ones."""
    if later.verdict is not Verdict.PROVED:
        return one
    found = Condition("found", f"PROVED{supposing(later.conditions)}")
    return replace(one, conditions=(*one.conditions, found))


def _iterated(report: Report, loop: Loop) -> Report:
    if AGAINST in report.notes:
        return report
    return replace(report, notes=(*report.notes, ITERATED.format(loop.location.line)))
