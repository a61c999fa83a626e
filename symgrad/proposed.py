"""What declares a surrogate: the lines of ``symgrad.toml`` against which backward was PROVED.

In: a report, and how its Function is judged again.  Out: the report, with these lines beside each
gradient that they are for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from symgrad.deadline import TimeUp, check
from symgrad.declarations import OWN_FILE, Declared, inline
from symgrad.errors import Location, SymgradError
from symgrad.frontend.function import Function
from symgrad.proof.report.records import Report


def with_declaration(
    report: Report, function: type[Function],
    judge: Callable[[Mapping[str, str], Sequence[str]], Report],
    defaults: Mapping[str, Any],
) -> Report:  # fmt: skip
    """The report with the first proposal that makes ``judge`` report PROVED once it is declared.

    ``judge``: with facts about inputs, and plain arguments stated to be their ``defaults``.
    """
    fixed = dict.fromkeys(n for one in report.inputs.values() for n in one.surrogate_fixed)
    if not defaults.keys() >= fixed.keys():
        return report
    facts = {name: fact for one in report.inputs.values() for name, fact in one.surrogate_facts}
    for meant in _proposals(report):
        declared = Declared(report.name, Location(OWN_FILE, 1), surrogate=meant)
        try:
            with declared.applied(function):
                proved = bool(judge(facts, [*fixed]))
        except (SymgradError, TimeUp):
            check()  # was it the limit of the verdict?
            continue
        if proved:
            line = f"surrogate = {_written(meant)}"
            line = f"assume = {_written(facts)}\n{line}" if facts else line
            line = f"static = {inline({n: defaults[n] for n in fixed})}\n{line}" if fixed else line
            return replace(report, inputs={
                name: replace(one, declaration=line) if one.surrogate else one
                for name, one in report.inputs.items()
            })  # fmt: skip
    return report


def _proposals(report: Report) -> Iterator[str | Mapping[str, str]]:
    """One function for all gradients, or one for each that is a surrogate."""
    codes = {name: one.surrogate_code for name, one in report.inputs.items() if one.surrogate}
    yield from dict.fromkeys(filter(None, codes.values()))
    if codes and all(codes.values()):
        yield codes


def _written(meant: str | Mapping[str, str]) -> str:
    if isinstance(meant, str):
        return json.dumps(meant)
    return f"{{ {', '.join(f'{name} = {json.dumps(code)}' for name, code in meant.items())} }}"
