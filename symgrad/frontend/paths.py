"""The other ways that a program takes where it asks about its call.

In: a trace, and how to trace again with other answers.  Out: a trace for every way that exists.

A question is answered otherwise only in those traces that come to ask it, so that there are as many
traces as ways, not one for each combination of answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from symgrad.budgets import MOST_PATHS
from symgrad.errors import SymgradError
from symgrad.frontend.questions import requires, said
from symgrad.frontend.session import refuses_sizes
from symgrad.frontend.thresholds import ThresholdError
from symgrad.ir.function import Answer, FunctionGraphs

Answers = Mapping[str, bool]


@dataclass(frozen=True)
class Paths:
    """All ways but the first.  ``answers``: those of each; ``traced``: the graphs of each.

    ``failed``: what tracing one raised, which the program itself did not raise.  ``complete``: are
    these all?
    """

    answers: tuple[Answers, ...] = ()
    traced: tuple[FunctionGraphs, ...] = ()
    failed: tuple[tuple[Answers, SymgradError], ...] = ()
    complete: bool = True


def other_paths(first: FunctionGraphs, trace: Callable[[Answers], FunctionGraphs]) -> Paths:
    """The other ways of a program.  ``first``: the way with the usual answers."""
    unreal = {one.question for one in _asked(first) if not one.real}
    todo = list(_flipped(first, {}))
    answers: list[Answers] = []
    traced: list[FunctionGraphs] = []
    failed: list[tuple[Answers, SymgradError]] = []
    while todo and len(traced) < MOST_PATHS:
        given = todo.pop(0)
        try:
            graphs = trace(given)
        except ThresholdError:
            raise
        except SymgradError as error:
            if not refuses_sizes(error):
                failed.append((given, error))
            continue
        unreal |= {one.question for one in _asked(graphs) if not one.real}
        answers.append(given)
        traced.append(replace(graphs, told=told(given), real=not unreal & set(given)))
        todo += _flipped(graphs, given)
    return Paths(tuple(answers), tuple(traced), tuple(failed), not todo)


def _asked(graphs: FunctionGraphs) -> Iterator[Answer]:
    for case in graphs.cases:
        yield from case.answers


def _flipped(graphs: FunctionGraphs, given: Answers) -> Iterator[Answers]:
    """The same answers as far as each question that is new, and the other answer to that."""
    prefix = dict(given)
    for one in _asked(graphs):
        if one.question not in prefix:
            yield {**prefix, one.question: not one.value}
            prefix[one.question] = one.value


def unjudged(paths: Paths) -> str:
    """Why not all ways can be judged; empty where they can."""
    if not paths.complete:
        return f"it takes more than {MOST_PATHS} ways, as it asks about its call"
    for answers, error in paths.failed:
        return f"where {told(answers)}: {error}"
    return ""


def told(answers: Answers) -> str:
    """The answers in a sentence, but that inputs require gradients, which is usual."""
    return " and ".join(
        said(question, value) for question, value in answers.items()
        if not (value and question == requires(question.partition(" ")[0]))
    )  # fmt: skip
