"""What declares a surrogate: the line of ``symgrad.toml`` against which backward was PROVED.

In: a report, and how its Function is judged again.  Out: the report, with that line beside each
gradient that it is for.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from symgrad.deadline import TimeUp, check
from symgrad.declarations import OWN_FILE, Declared
from symgrad.errors import Location, SymgradError
from symgrad.frontend.function import Function
from symgrad.proof.report.records import Report


def with_declaration(
    report: Report, function: type[Function], judge: Callable[[], Report]
) -> Report:
    """The report with the first proposal that makes ``judge`` report PROVED once it is declared."""
    inputs = report.inputs
    for code in dict.fromkeys(one.surrogate_code for one in inputs.values() if one.surrogate_code):
        declared = Declared(report.name, Location(OWN_FILE, 1), surrogate=code)
        try:
            with declared.applied(function):
                proved = bool(judge())
        except (SymgradError, TimeUp):
            check()  # was it the limit of the verdict?
            continue
        if proved:
            line = f"surrogate = {json.dumps(code)}"
            return replace(report, inputs={
                name: replace(one, declaration=line) if one.surrogate else one
                for name, one in inputs.items()
            })  # fmt: skip
    return report
