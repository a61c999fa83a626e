"""What backward alone reads, as backward takes it: other axes, labels, an index, a plain value."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from symgrad.errors import SymgradError
from symgrad.frontend.evidence import is_stated_tensor, parameters, saved_names
from symgrad.frontend.lift import IndexKindError
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.ir.dtype import int64
from symgrad.ir.function import FunctionGraphs
from symgrad.ir.graph import ancestors
from symgrad.shapes.candidates import Candidate
from symgrad.shapes.fitting import READING_TRIALS
from symgrad.shapes.outcomes import MISTAKE_PRICE, inputs_read, problem_of, takes_no_floats
from symgrad.shapes.refusals import has_parts
from symgrad.shapes.tracing import Search
from symgrad.shapes.trial import Trial, is_float, put
from symgrad.shapes.trying import attempt, cheapest_fitting


def as_labels(search: Search, found: Trial) -> Trial:
    """The same with labels, or a mask, for a tensor of floats that backward refuses as such."""
    graphs, _ = search.trace(found)
    refused = graphs is not None and takes_no_floats(graphs)
    for at, (unknown, own) in enumerate(search.rows(found)):
        if refused and own.rank is not None and is_float(own):
            every = [put(found.chosen, at, one)
                     for one in unknown.candidates if one.dtype is not None]  # fmt: skip
            if (other := cheapest_fitting(search, every)) is not None:
                return other
    return found


def as_read(search: Search, found: Trial) -> Trial:
    """The same with what backward alone reads as it does: other axes, an index, a plain value.

    Forward takes anything for it, and its true gradient is 0: that hides no mistake.  Raises
    SpecError where backward asks for a part of it that neither tensors nor numbers have.
    """
    todo, seen, last = deque([found]), {found.chosen}, search.trials + READING_TRIALS
    met: set[str] = set()
    while todo:
        trial = todo.popleft()
        graphs, _ = search.trace(trial)
        if graphs is None:
            continue
        problem = problem_of(graphs)
        _refuse_parts(search, trial, graphs, problem)
        for chosen in _read_otherwise(search, trial, graphs):
            if search.trials >= last:
                return found
            if chosen in seen:
                continue
            seen.add(chosen)
            other = attempt(search, chosen)
            if other is None or other.hidden:
                continue
            if not other.raising and other.failing <= MISTAKE_PRICE:
                return other
            again, _ = search.trace(other)
            after = again and problem_of(again)
            if after and str(after) not in {*met, str(problem)}:  # it came further
                met.add(str(after))
                todo.append(other)
    return found


def _refuse_parts(search: Search, trial: Trial, graphs: FunctionGraphs, problem: SymgradError | None
) -> None:  # fmt: skip
    """Raises SpecError where backward asks for what neither numbers nor tensors have.

    What is saved, or what forward computes with, is a tensor: that backward asks it for too
    much is a mistake.
    """
    cause = problem.__cause__ if problem is not None else None
    asked = getattr(cause, "obj", None) if isinstance(cause, AttributeError) else None
    node = asked.known_node() if isinstance(asked, SymbolicTensor) else None
    numbers = {unknown.name for unknown, one in search.rows(trial) if one.constant}
    if node is None or node.op != "input" or problem is None:
        return
    name, part = str(node.attributes["name"]), getattr(cause, "name", "")
    if name not in numbers and not _is_handed_on(search, name, graphs):
        return
    raise has_parts(search, name, part, "backward", problem.location)


def _is_handed_on(search: Search, name: str, graphs: FunctionGraphs) -> bool:
    """Does forward nothing with an argument of no stated kind but keep it as it is?"""
    used = {
        str(node.attributes["name"]) for case in graphs.cases
        for node in ancestors(case.outputs) if node.op == "input"
    }  # fmt: skip
    own = [one for one in parameters(search.function) if one.name == name]
    saved = saved_names(search.function)
    return name not in used | saved and not any(map(is_stated_tensor, own))


def _read_otherwise(
    search: Search, trial: Trial, graphs: FunctionGraphs
) -> Iterator[tuple[Candidate, ...]]:
    """One argument that forward does not read as something else; tensors that are read, first.

    An index comes first where backward takes something for one.
    """
    read, problem = inputs_read(graphs), problem_of(graphs)
    is_index = isinstance(problem, IndexKindError)
    shown = {one.rank for unknown, one in search.rows(trial)
             if unknown.name in read}  # fmt: skip

    def order(one: Candidate) -> tuple[bool, bool, int]:
        return (one.dtype == int64) is not is_index, one.rank not in shown, one.price

    for at, (unknown, own) in enumerate(search.rows(trial)):
        if unknown.name not in read and (own.rank is not None or own.constant):
            for one in sorted(unknown.candidates, key=order):
                if one != own:
                    yield put(trial.chosen, at, one)
