"""Refutations run again by the library that a Function was written for.

What is refuted without a point is run where backward failed in the trace; for the rest the report
says that it was not run.

In: a request, its trace, a report on it.  Out: the report, in which each refutation at a point says
what the class itself gives there, in a real call.  What the library does not confirm is UNDECIDED.

The call runs in a child process with limits on its time and memory, so that what the class changes
outside of its tensors changes no verdict after it.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import replace
from io import StringIO
from itertools import chain, islice
from traceback import walk_tb
from typing import Any

import numpy as np

from symgrad.budgets import REPLAY_MEMORY, REPLAY_REST, REPLAY_SECONDS, REPLAY_WAIT
from symgrad.children import POSSIBLE, ChildEnded, in_child
from symgrad.deadline import TimeUp
from symgrad.errors import SymgradError
from symgrad.frontend.evidence import parameters
from symgrad.frontend.function import surrogate_of
from symgrad.frontend.guests import Call, Given, Measured, NotMeasured
from symgrad.frontend.regions import Region
from symgrad.frontend.request import Request
from symgrad.frontend.starred import is_one_of
from symgrad.frontend.state import as_at_first
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import DType
from symgrad.ir.function import FunctionCase, FunctionGraphs
from symgrad.ir.graph import ancestors
from symgrad.ir.types import TensorType
from symgrad.passes.evaluate import evaluate
from symgrad.proof.oracle.refute import counterexample_at
from symgrad.proof.oracle.sizes import sought
from symgrad.proof.report.records import (
    CounterexampleReport,
    Finding,
    InputReport,
    Replayed,
    Report,
)
from symgrad.proof.report.verdict import Verdict
from symgrad.proof.words.snippet import counterexample_report

_BAD_FORK = "fork-based multiprocessing"
"""What torch's autograd says in a fork of a process whose own threads it has started."""
_UNDECIDED = Verdict.UNDECIDED
_SHOWN = 1e-5
"""A relative difference that no rounding makes, however the class computes."""


_FAILING_CALLS = 3
_DIFFERENT = (2, 3, 5, 7, 4, 6)


def replayed(request: Request, graphs: FunctionGraphs, report: Report) -> Report:
    """The report with what the library of the class gives at each counterexample.

    As it is where the Function is symgrad's own.
    """
    own = vars(request.cls)
    original = own.get("symgrad_original", own.get("symgrad_real"))
    guest = request.cls.symgrad_guest
    if original is None or guest is None:
        return report
    if report.verdict is Verdict.PROVED:
        return _met(request, graphs, report, original)
    if report.verdict <= Verdict.UNDECIDED:
        return report
    if any(_draws(case) for case in graphs.cases):
        return _not_run(
            report, f"not run in {guest.library}: it would draw other random numbers"
        )  # fmt: skip
    calls = {
        id(point): None if point.beside and guest.spawns else call_at(request, graphs, point)
        for point in _points(report)
    }
    failed = {name: [*_failing(request, graphs, one)] for name, one in report.inputs.items()}
    known = [call for call in (*calls.values(), *chain(*failed.values())) if call is not None]
    answers = iter(_measure(guest, original, known, request.function))
    measured = {at: None if call is None else next(answers) for at, call in calls.items()}
    runs = {name: [next(answers) for _ in several] for name, several in failed.items()}

    def run(point: CounterexampleReport) -> Replayed:
        found = measured[id(point)]
        if found is None:
            said = "the call of the counterexample is not known"
            return Replayed(None, f"not run in {guest.library}: {said}")
        return _told(point, found, guest.library)

    def elsewhere(one: InputReport) -> InputReport | None:
        point = one.counterexample
        call = None if point is None else calls[id(point)]
        narrow = _refuted_narrow(request, one, call, original)
        if narrow is not None:  # a report is true only where it is proved
            return narrow
        return _refuted_elsewhere(request, graphs, report, one, original)

    inputs = {
        name: _input(_ran(one, runs[name], guest.library), run, elsewhere, guest.library)
        for name, one in report.inputs.items()
    }
    protocol = tuple(_finding(one, run) for one in report.protocol)
    changed = any(one.verdict is not report.inputs[name].verdict for name, one in inputs.items())
    found = replace(report, inputs=inputs, protocol=protocol)
    return replace(found, repair=None, repaired=None) if changed else found


# -- what is proved


_PLAIN_CONDITIONS = frozenset(
    ("kink", "ties", "null set", "nonzero", "index", "declared", "domain", "value", "size")
)
"""Kinds of conditions that hold where forward runs and is finite, but at special points."""
_NARROW = 1e-4
"""A relative difference of what is computed in float32 and what is meant."""
_APART = 1e-3
"""A relative difference that no constants of an approximation make."""
_OF_MACHINES = re.compile(r"\b(cuda|nvidia|gpus?|hip|xpu|mps|npu|device)\b", re.IGNORECASE)
"""Words of errors about what this machine lacks, which tell nothing of a Function."""
_AS_IT_IS = ("by autograd through forward", "by difference quotients")
"""How a derivative is measured without changing what the class does."""
_OTHER_POINTS = 6
"""How many points, of different sizes, are tried where the library fails at each."""
_GENERIC = 4
"""The number of a point without equal elements and literals of the program."""


def _met(request: Request, graphs: FunctionGraphs, report: Report, original: Any) -> Report:
    """The report on a proof that the library agrees with at one point of each case.

    The proof is about the trace: where it is not what the library computes, or where the library
    fails at each point that is tried, nothing is decided.
    """
    guest: Any = request.cls.symgrad_guest
    formulas = report.details.get("formulas")
    if guest.spawns or formulas is None or surrogate_of(request.function) is not None:
        return report
    if any(_draws(case) for case in graphs.cases):
        return report
    wanted = [
        name for name, one in report.inputs.items()
        if one.verdict is Verdict.PROVED
        and all(condition.kind in _PLAIN_CONDITIONS for condition in one.conditions)
    ]  # fmt: skip
    calls = {
        (name, at): call for at in range(len(graphs.cases)) for name in wanted
        if (call := next(_generic_calls(request, graphs, formulas.subjects[at], at, name), None))
    }  # fmt: skip
    inputs = dict(report.inputs)
    for (name, at), run in _all_tried(guest, original, calls).items():
        if isinstance(run, str):
            run = _elsewhere(request, graphs, formulas.subjects[at], at, name, run, original)
        said = _against(run, guest.library)
        if said:
            inputs[name] = InputReport(name, Verdict.UNDECIDED, said)
    return replace(report, inputs=inputs) if inputs != report.inputs else report


def _against(run: Measured | str | None, library: str) -> str:
    """What a real call, or that it fails, says against what is proved of the trace."""
    if isinstance(run, str):
        return (
            f"the trace of the Function is proved, but {library} runs it at no point that was "
            f"tried: {run}"
        )
    if run is None:
        return ""
    size = 1 + abs(run.derivative)
    if abs(run.backward - run.derivative) <= max(run.error, _APART * size):
        return ""
    numbers = f"{_number(run.backward, run.derivative)}, the derivative is "
    numbers += _number(run.derivative, run.backward)
    return (
        f"the trace of the Function is proved, but in {library} backward gives {numbers} at a point"
    )


def _elsewhere(
    request: Request, graphs: FunctionGraphs, subject: Any, at: int, name: str, said: str,
    original: Any,
) -> Measured | str | None:  # fmt: skip
    """What the library gives at other points of a case, of other sizes too, after it failed at one.

    ``said`` where it fails at each of them; None where it says nothing at one.
    """
    guest = request.cls.symgrad_guest
    others = islice(_generic_calls(request, graphs, subject, at, name), 1, _OTHER_POINTS)
    for call in others:
        run = _all_tried(guest, original, {0: call}).get(0)
        if not isinstance(run, str):
            return run
    return said


def _all_tried(guest: Any, original: Any, calls: Mapping[Any, Call]) -> dict[Any, Any]:
    """What ``_tried`` finds for each call, in one child process; nothing where that ends badly."""
    if not calls:
        return {}
    found = _in_fork(lambda: [_tried(guest, original, call) for call in calls.values()])
    return dict(zip(calls, found, strict=True)) if isinstance(found, list) else {}


def _generic_calls(
    request: Request, graphs: FunctionGraphs, subject: Any, at: int, name: str
) -> Iterator[Call]:
    """Real calls at generic points of a case, each of other sizes."""
    for sizes in islice(subject.sampler.size_choices(), _OTHER_POINTS):
        point = _generic(subject, graphs.cases[at], name, sizes)
        call = None if point is None else call_at(request, graphs, point)
        if call is not None:
            yield call


def _generic(
    subject: Any, case: FunctionCase, name: str, sizes: Mapping[str, int]
) -> CounterexampleReport | None:
    """A generic point of a case, and the element of a gradient that is farthest from 0 there.

    It meets what is declared of the inputs, and what forward demands of them; None where the one
    that is drawn does not.
    """
    at = subject.draw(sizes, _GENERIC) if name in subject.gradients else None
    if at is None or not subject.is_as_demanded(at.point):
        return None
    gradient = np.asarray(at.values[subject.gradients[name]], float)
    if not gradient.size:
        return None
    place = np.unravel_index(np.argmax(abs(gradient)), gradient.shape)
    inside = ", ".join(map(str, place))
    return CounterexampleReport(
        at.point.sizes, {key: value.tolist() for key, value in at.point.doubles().items()},
        f"grad_{name}[{inside}]" if inside else f"grad_{name}", 0.0, 0.0, "", "",
        cotangents=tuple(
            None if one is None else str(one.attributes["name"]) for one in case.cotangents
        ),
    )  # fmt: skip


def _tried(guest: Any, original: Any, call: Call) -> Measured | str | None:
    """What the library gives for a call as it is, or what it raises in the class's own methods.

    None where it says nothing.
    """
    try:
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            found = _measured(guest, original, call)
    except NotMeasured:
        return None
    except Exception as error:
        where = _raised_in(original, error)
        said = f"{type(error).__name__}: {' '.join(str(error).split())}"
        return f"{where} raises {said}" if where and not _OF_MACHINES.search(said) else None
    return found if found.how in _AS_IT_IS and math.isfinite(found.backward) else None


def _raised_in(original: Any, error: Exception) -> str:
    """The method of a class that an error of a call came out of; empty where it is not known."""
    codes: dict[Any, str] = {}
    for name in ("forward", "setup_context", "backward", "vjp"):
        raw: Any = inspect.getattr_static(original, name, None)
        raw = getattr(raw, "__func__", raw)
        while raw is not None:
            if hasattr(raw, "__code__"):
                codes[raw.__code__] = name
            raw = getattr(raw, "__wrapped__", None)
    passed = (frame.f_code for frame, _ in walk_tb(error.__traceback__))
    return next((codes[code] for code in passed if code in codes), "")


def _points(report: Report) -> list[CounterexampleReport]:
    """The counterexamples to run."""
    inputs = [one.counterexample for one in report.inputs.values() if one.verdict > _UNDECIDED]
    findings = [one.counterexample for one in report.protocol if one.verdict > _UNDECIDED]
    return [
        *(point for point in inputs if point is not None),
        *(point for point in findings if point is not None and point.cotangents),
    ]


def _failing(request: Request, graphs: FunctionGraphs, one: InputReport) -> Iterator[Call]:
    """Real calls of a case in which backward fails where it is traced, at some of its sizes."""
    if one.verdict is not Verdict.REFUTED or one.counterexample is not None:
        return
    for case in graphs.cases:
        own = next((given for given in case.gradients if given.input == one.name), None)
        if case.problem is None and (own is None or own.problem is None):
            continue
        if case.answers or case.where:
            return
        wanted = next(node for node in case.inputs if node.attributes["name"] == one.name)
        names = [None if n is None else str(n.attributes["name"]) for n in case.cotangents]
        for sizes in islice(_sizes(case), _FAILING_CALLS):
            values = {
                str(node.attributes["name"]): _filled(node.dtype, node.shape, sizes)
                for node in (*case.inputs, *case.cotangents) if node is not None
            }  # fmt: skip
            element = f"grad_{one.name}"
            point = CounterexampleReport(
                sizes, values, element, 0.0, 0.0, "", "", cotangents=tuple(names)
            )
            call = call_at(request, graphs, point)
            if call is not None:
                yield replace(call, at=(0,) * wanted.rank, mirror=None)
        return


def _sizes(case: FunctionCase) -> Iterator[dict[str, int]]:
    """Sizes of a case: different ones, then the least."""
    dims = [dim for node in case.inputs for dim in node.shape]
    symbols = tuple(dict.fromkeys(size for dim in dims for size in dim.sizes))
    conditions = (*case.conditions, *case.requires)
    for values in chain([_DIFFERENT[: len(symbols)]], sought(symbols, conditions)):
        sizes = dict(zip(symbols, values, strict=False))
        with suppress(KeyError, ZeroDivisionError):
            if all(one.holds(sizes) for one in conditions) and all(d.at(sizes) > 0 for d in dims):
                yield sizes


def _filled(dtype: DType, dims: Sequence[Dim], sizes: Mapping[str, int]) -> Any:
    """Numbers of a tensor that are neither 0 nor 1; zeros, of integers."""
    shape = [dim.at(sizes) for dim in dims]
    places = np.arange(math.prod(shape)).reshape(shape)
    values = (places * 7 % 11 + 3) / 16 if dtype.is_float else places * 0
    return values.astype(dtype.name.rstrip("_")).tolist()


def _ran(one: InputReport, found: Sequence[Measured | str], library: str) -> InputReport:
    """A refutation because backward failed where it was traced, after real calls of it.

    UNDECIDED where each of them gave the derivative.
    """
    for run in found:
        if isinstance(run, str):
            return replace(one, replayed=Replayed(None, f"run in {library}: {run}"))
        gap = abs(run.backward - run.derivative)
        if not gap <= max(run.error, _SHOWN * (1 + abs(run.derivative))):
            hand, true = run.backward, run.derivative
            numbers = (
                f"backward gives {_number(hand, true)}, the derivative is {_number(true, hand)}"
            )
            return replace(one, replayed=Replayed(True, f"run in {library}: {numbers}", hand, true))
    if not found:
        return one
    said = f"{one.reason}; but {library} runs it, and the gradient is right there"
    return replace(one, verdict=Verdict.UNDECIDED, reason=said, suggestion=None, diagnosis=())


def _draws(case: FunctionCase) -> bool:
    """Does a result depend on random draws?"""
    given = [one.node for one in case.gradients if one.node is not None]
    return any(node.op == "draw" for node in ancestors([*case.outputs, *given]))


def _not_run(report: Report, why: str) -> Report:
    """The report with the reason why no call is made beside each counterexample."""
    inputs = {
        name: one if one.counterexample is None else replace(one, replayed=Replayed(None, why))
        for name, one in report.inputs.items()
    }
    return replace(report, inputs=inputs)


def _input(one: InputReport, run: Any, elsewhere: Any, library: str) -> InputReport:
    if one.verdict <= Verdict.UNDECIDED:
        return one
    if one.counterexample is None:
        if one.replayed is not None:
            return one
        said = f"not run in {library}: it is refuted without a point"
        return replace(one, replayed=Replayed(None, said))
    found = run(one.counterexample)
    if found:
        return replace(one, replayed=found)
    other: InputReport | None = elsewhere(one) if found.confirmed is False else None
    if other is not None:
        return other
    said = f"the trace of the Function is refuted at a point at which {library} does not confirm it"
    return replace(
        one, verdict=Verdict.UNDECIDED, reason=said, surrogate="", replayed=found, suggestion=None,
        diagnosis=(), derived=None,
    )  # fmt: skip


def _refuted_narrow(
    request: Request, one: InputReport, call: Call | None, original: Any
) -> InputReport | None:
    """The same where the library gives both numbers in float32, in which a trace is made.

    A program that asks for a dtype may do something else in float64.
    """
    guest: Any = request.cls.symgrad_guest
    point = one.counterexample
    if guest.spawns or call is None or point is None:
        return None
    found = _answer(guest, original, replace(call, narrow=True), request.function)
    if isinstance(found, str) or found.dtype != "float32":
        return None
    pairs = ((found.backward, point.hand), (found.derivative, point.true))
    close = all(abs(own - said) <= _NARROW * (1 + abs(said)) for own, said in pairs)
    apart = abs(point.hand - point.true) > 10 * _NARROW * (1 + abs(point.true))
    told = _told(point, found, guest.library)
    return replace(one, replayed=told) if close and apart and told else None


def _refuted_elsewhere(
    request: Request, graphs: FunctionGraphs, report: Report, one: InputReport, original: Any
) -> InputReport | None:
    """The same with a counterexample of other sizes that the library confirms; None for none.

    What is right at a point of few elements may be so by a symmetry that larger ones do not have.
    """
    guest: Any = request.cls.symgrad_guest
    formulas, shown = report.details.get("formulas"), one.counterexample
    case = None if shown is None else _case_of(graphs, shown)
    if guest.spawns or formulas is None or case is None:
        return None
    subject = formulas.subjects[graphs.cases.index(case)]
    if one.name not in subject.gradients:
        return None
    with suppress(TimeUp):
        for sizes in islice(subject.sampler.size_choices(), _OTHER_POINTS):
            at = subject.draw(sizes, _GENERIC)
            found = None if at is None else counterexample_at(subject, one.name, at.point)
            if found is None:
                continue
            point = counterexample_report(
                subject, found, f"grad_{found.element}", case.conditions, case.aliases,
                case.cotangents,
            )  # fmt: skip
            call = call_at(request, graphs, point)
            run = None if call is None else _answer(guest, original, call, request.function)
            told = None if run is None else _told(point, run, guest.library)
            if told:
                return replace(one, counterexample=point, replayed=told)
    return None


def _finding(one: Finding, run: Any) -> Finding:
    point = one.counterexample
    if point is None or not point.cotangents or one.verdict <= Verdict.UNDECIDED:
        return one
    found = run(point)
    verdict = one.verdict if found else Verdict.UNDECIDED
    return replace(one, verdict=verdict, text=f"{one.text}; {found}")


# -- the call


def call_at(
    request: Request, graphs: FunctionGraphs, point: CounterexampleReport
) -> Call | None:  # fmt: skip
    """The real call that a counterexample is about; None where not all of it is known."""
    case = _case_of(graphs, point)
    name, at = _element(point.element)
    if case is None or not name:
        return None
    arguments = _arguments(request, case, point)
    if arguments is None:
        return None
    declared = surrogate_of(request.function)
    meant = getattr(request.cls, "symgrad_surrogates", {}).get(name)
    if declared is not None:
        meant = request.cls.symgrad_surrogate  # type: ignore[attr-defined]
    cotangents = _cotangents(case, point)
    if cotangents is None:
        return None
    return Call(
        arguments, frozenset(graphs.asked), cotangents, name, at, meant,
        _beside(request, point), point.between, _mirror(request, graphs, name, at),
    )  # fmt: skip


def _cotangents(case: FunctionCase, point: CounterexampleReport) -> list[Any] | None:
    """The incoming gradients; None where it is not known which elements of one a mask selects."""
    found = [None if one is None else point.inputs[one] for one in point.cotangents]
    for place in case.selected:
        output = case.outputs[place]
        if found[place] is None:
            continue
        if output.op != "where":
            return None
        given = {
            name: np.asarray(point.inputs[name], node.dtype.of_numpy)
            for node in ancestors([output.args[0]])
            if node.op == "input" and (name := str(node.attributes["name"])) in point.inputs
        }
        try:
            (mask,) = evaluate([output.args[0]], given, point.sizes)
        except SymgradError:
            return None
        found[place] = np.asarray(found[place], float)[mask].tolist()
    return found


def _mirror(
    request: Request, graphs: FunctionGraphs, name: str, at: tuple[int, ...]
) -> tuple[int, ...] | None:  # fmt: skip
    """The element that is always the same number, of a symmetric matrix; None for none."""
    known = any(one.name == name and one.kind == "symmetric" for one in graphs.assumptions)
    if not known or _is_complex(request, name) or at[-1:] == at[-2:-1]:
        return None
    return (*at[:-2], at[-1], at[-2])


def _beside(request: Request, point: CounterexampleReport) -> list[tuple[str, Any]]:
    """The arguments of the call that comes beside that of a counterexample."""
    known = dict(point.beside)
    return [
        (name, Given(_filled(value.dtype, value.shape, {}), str(value.dtype),
                     _is_complex(request, name)))
        if isinstance(value, TensorType) else (name, value)
        for name, default in (_names(request, known, {*known}) if known else ())
        for value in (known.get(name, default),)
    ]  # fmt: skip


def _is_complex(request: Request, name: str) -> bool:
    """Is an argument declared to hold complex numbers?"""
    return any(one.name == name and one.spec and one.spec.complex for one in request.arguments)


def _element(text: str) -> tuple[str, tuple[int, ...]]:
    """The input and the element in ``grad_x[0, 1]``."""
    match = re.fullmatch(r"grad_(\w+)(?:\[([\d, ]*)\])?", text)
    if match is None:
        return "", ()
    return match[1], tuple(int(part) for part in (match[2] or "").split(",") if part.strip())


def _case_of(graphs: FunctionGraphs, point: CounterexampleReport) -> FunctionCase | None:
    """The case whose tensors the counterexample has values for."""
    for case in graphs.cases:
        if all(
            name in point.inputs and _rank(point.inputs[name]) == node.rank
            for node in case.inputs if (name := str(node.attributes["name"])) not in case.plain
        ):  # fmt: skip
            return case
    return None


def _rank(value: Any) -> int:
    rank = 0
    while isinstance(value, list):
        rank += 1
        value = value[0] if value else 0.0
    return rank


def _arguments(
    request: Request, case: FunctionCase, point: CounterexampleReport
) -> list[tuple[str, Any]] | None:
    """The arguments in the order of forward's parameters, those with values of their own."""
    dtypes = {str(node.attributes["name"]): str(node.dtype) for node in case.inputs}
    numbers = {*case.plain} | {one.name for one in request.assumptions if one.kind == "plain"}
    known = {one.name: one for one in request.arguments}
    found: list[tuple[str, Any]] = []
    passed = {one.name for one in request.by_place[: request.passed]}
    passed |= {one.name for one in request.arguments if one.keyword}
    for name, default in _names(request, known, passed):
        one = known.get(name)
        value: Any = default if one is None else one.value
        if name in point.inputs:
            whole = isinstance(value, Region) and value.whole
            value = point.inputs[name]
            if name not in numbers:
                value = Given(value, dtypes[name], _is_complex(request, name))
            elif whole:
                value = int(value)
        elif isinstance(value, Region):
            value = value.value
        elif one is not None and one.is_tensor:
            return None
        found.append((name, value))
    return found


def _names(
    request: Request, known: Mapping[str, Any], passed: set[str]
) -> Sequence[tuple[str, Any]]:
    """The names and defaults of what is passed, up to the last argument that is not a default."""
    every: list[tuple[str, Any]] = []
    for one in parameters(request.function):
        if one.kind is one.VAR_POSITIONAL:
            every += [(name, None) for name in known if is_one_of(name, one.name)]
        elif one.kind is not one.VAR_KEYWORD:
            every.append((one.name, one.default))
    while every and every[-1][0] not in passed:
        every.pop()
    return every


# -- the answer


def _measure(
    guest: Any, original: Any, calls: Sequence[Call], function: Any
) -> list[Measured | str]:
    """What the library gives for each call, or why nothing is known of it."""
    if guest.spawns:
        found: list[Measured | str] = guest.measured_all(original, calls) if calls else []
        return found
    return [_answer(guest, original, call, function) for call in calls]


def _measured(guest: Any, original: Any, call: Call) -> Measured:
    """The call with numbers as numbers; as tensors, where these alone are taken."""
    try:
        found: Measured = guest.measured(original, call)
    except (AttributeError, TypeError):
        given = [
            (name, Given(value, "float32") if isinstance(value, float) else value)
            for name, value in call.arguments
        ]
        if given == [*call.arguments]:
            raise
        found = guest.measured(original, replace(call, arguments=given))
    return found


def _answer(guest: Any, original: Any, call: Call, function: Any) -> Measured | str:
    """What the library gives for a call, or why nothing is known of it."""

    def work() -> Measured | str:
        try:
            if call.beside:
                as_at_first(function)
            return _measured(guest, original, call)
        except Exception as error:
            said = " ".join(str(error).split())
            known = type(error).__name__ == "NotMeasured"
            return said if known else f"{type(error).__name__}: {said}"

    found: Measured | str = _in_fork(work)
    return found


def _in_fork(work: Callable[[], Any]) -> Any:
    """What a call returns in a child process, or why nothing is known of it."""
    if not POSSIBLE:
        return work()
    try:
        found = in_child(
            work, cpu=REPLAY_SECONDS, wall=REPLAY_WAIT, rest=REPLAY_REST, memory=REPLAY_MEMORY
        )  # fmt: skip
    except ChildEnded as error:
        return str(error)
    return work() if _BAD_FORK in str(found) else found


def _told(point: CounterexampleReport, found: Measured | str, library: str) -> Replayed:
    """What is said of a real call beside the counterexample."""
    if isinstance(found, str):
        return Replayed(None, f"not confirmed in {library}: {found}")
    hand, true = found.backward, found.derivative
    gap = abs(hand - true)
    claimed = abs(point.hand - point.true)
    size = 1 + abs(true) + (abs(hand) if math.isfinite(hand) else 0)
    as_claimed = gap > found.error and claimed / 2 <= gap <= 2 * claimed
    confirmed = not gap <= max(found.error, _SHOWN * size) or as_claimed
    numbers = f"backward gives {_number(hand, true)}, the derivative is {_number(true, hand)}"
    kind = "" if found.dtype == "float64" else f" in {found.dtype}"
    if confirmed:
        other = abs(true - point.true) > max(found.error, _APART * size)
        said = "wrong by another derivative" if other else "confirmed"
        text = f"{said} in {library}{kind}: {numbers} ({found.how})"
        return Replayed(True, text, hand, true)
    close = max(abs(hand - point.hand), abs(true - point.true))
    if claimed <= max(found.error, _SHOWN * size) and close <= max(found.error, _SHOWN * size):
        where = f"{library}{kind}, where both are too close to be told apart"
        text = f"not confirmed in {where}: {numbers}"
        return Replayed(False, text, hand, true)
    text = f"not confirmed in {library}{kind}: {numbers} ({found.how})"
    return Replayed(False, text, hand, true)


def _number(value: float, other: float) -> str:
    """So many digits that it differs from the other one."""
    for digits in range(6, 17):
        text = f"{value:.{digits}g}"
        if text != f"{other:.{digits}g}" or digits == 16:
            break
    return text
