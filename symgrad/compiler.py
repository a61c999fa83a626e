"""The driver: the stages in order, once.

In: a Function and the shapes of its inputs.  Out: verdicts, compiled ops, packages, the text of
any stage.

    Function --request--> Request --trace--> FunctionGraphs --plan--> forward and backward graphs
                                                  |                            |
                                                  |                          emit --> C --> op
                                                  +--verify--> PROVED | REFUTED | ...
"""

from __future__ import annotations

import dataclasses
import math
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from symgrad.budgets import (
    DECLARATION_SECONDS,
    LONGEST_PIECE,
    MOST_STATE_ROUNDS,
    OTHER_NUMBERS_SHARE,
    VERDICT_SECONDS,
    WIDER_REPAIR_SECONDS,
)
from symgrad.deadline import TimeUp, limited, part, processor_time
from symgrad.declarations import Declared, read, specs_in
from symgrad.errors import (
    BuildError,
    CacheError,
    CasesError,
    ControlFlowError,
    InferredShapesWarning,
    NotProvedError,
    ShapeError,
    SpecError,
    SymgradError,
)
from symgrad.fitted import remembered
from symgrad.forks import forks_wait
from symgrad.frames import in_one_piece
from symgrad.frontend.anyrank.judge import missing_axes, rank_dependence
from symgrad.frontend.anyrank.serving import serving, typical_rank
from symgrad.frontend.anyrank.session import Observation
from symgrad.frontend.branches import branches, is_of_shapes
from symgrad.frontend.calls import asks_nothing, leaving_out, other_calls
from symgrad.frontend.evidence import AnyFunction
from symgrad.frontend.forward_mode import JvpError, failure, has_jvp, pushing
from symgrad.frontend.function import (
    Function,
    class_location,
    class_of,
    surrogate_of,
    surrogates_of,
)
from symgrad.frontend.guests import taken
from symgrad.frontend.paths import Answers, Paths, other_paths, unjudged
from symgrad.frontend.plain import as_numbers, defaults, passed_numbers, with_passed
from symgrad.frontend.plain_code import has_plain_jvp
from symgrad.frontend.replaced import Replace, replaced
from symgrad.frontend.request import Request, presences
from symgrad.frontend.session import blame, refuses_sizes, told
from symgrad.frontend.starred import is_one_of, plain_items, starred_name
from symgrad.frontend.state import changes_of
from symgrad.frontend.thresholds import ThresholdError
from symgrad.frontend.trace import BATCH_RANK, trace_request
from symgrad.garbage import fewer_collections
from symgrad.ir.assume import Assumption, Stated, joined
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import DType, float32, float64
from symgrad.ir.function import FunctionGraphs, Loop, OtherCall, patterns
from symgrad.kernels import OpPlan, plan, preferred, with_backward
from symgrad.plain_values import either
from symgrad.replay import replayed
from symgrad.runtime.strict import fall_back
from symgrad.shapes import requested
from symgrad.stages import ALLOWED, PREFERENCES, STAGES
from symgrad.verdicts import report_on, used

if TYPE_CHECKING:
    from symgrad.accuracy.records import Accuracy
    from symgrad.emission import EmittedOp
    from symgrad.numpy_op import NumpyOp
    from symgrad.proof.report.records import Condition, Report
    from symgrad.runtime.op import CompiledOp
    from symgrad.runtime.package import PackagedOp
    from symgrad.sheet import Sheet
    from symgrad.validation import Validation

Told = Callable[[str, "Report", "Validation | None"], None]
RANKS = (0, 1, 2, 3)
"""The numbers of batch axes that are judged where the program depends on their number."""

Static = Mapping[str, Any] | None
Assume = Stated | None
Proved: TypeAlias = "dict[tuple[Any, ...], tuple[Request, Report]]"
"""What is PROVED already, by what forward is called with; the requests hold the values."""
Config = str | Path | Callable[[type[Function]], Declared | None] | None
"""A file of declarations, or what finds those of a class."""


def verify(
    function: AnyFunction, *specs: Any, static: Static = None, assume: Assume = None,
    order: int = 1, suggest: bool = True, audit: bool = False,
    timeout: float | None = VERDICT_SECONDS, cache: bool = False,
    config: Config = None, replace: Replace | None = None,
) -> Report:  # fmt: skip
    """Is the hand-written backward the vector-Jacobian product of forward, for all shapes?

    ``specs``: one a tensor input, in jaxtyping's notation (``"n m"``), None for an absent one;
    by default the annotations of forward, or else shapes inferred from what forward accepts, which
    the report then names.  A tensor whose parameter has the default None is judged absent as well,
    where forward accepts that.  ``static``: values of non-tensor arguments.  ``assume``: facts
    about inputs, such as ``{"x": "positive"}``.  ``order=2``: the backward of the backward too.
    ``suggest=False``: do not look for a repair.  ``audit=True``: evaluate both sides of what is
    PROVED at random points as well.  ``timeout``: seconds of processor time; what is not decided
    by then is UNDECIDED; None for no limit.  ``cache=True``: what was PROVED before, by this
    version and from the same traces, is not proved again; the command line and pytest do so
    too.  ``config``: a file of declarations (``symgrad.toml``), whose table for the class stands
    for what is not said here.  ``replace``: what to call in the place of functions that cannot be
    traced, by their names (``{"kernels.swish": swish_reference}``, or the name of one): the verdict
    holds if these compute the same, which it says.  Raises SpecError, and the errors of tracing
    forward.
    """
    found = class_of(taken(function))
    declared = _declared(config, found)

    def judge() -> Report:
        request = asked_for(function, declared, specs, static, assume, order)
        with used() if cache else nullcontext():
            return _judged_request(dataclasses.replace(request, audit=audit), suggest)

    with _applied(declared, found), replaced(found, replace):
        return in_time(function, timeout, judge)


def _declared(config: Config, function: type[Function]) -> Declared | None:
    """What is declared of a class.  Raises SpecError."""
    if config is None:
        return None
    if callable(config):
        return config(function)
    if not isinstance(config, (str, os.PathLike)):
        raise SpecError(
            f"config={config!r} is no file of declarations", hint='give a path: "symgrad.toml"'
        )
    return read(Path(config)).of(function)


def _applied(declared: Declared | None, function: type[Function]) -> AbstractContextManager[None]:
    """A block in which a class has the surrogate, and calls the references, declared of it."""
    return nullcontext() if declared is None else declared.applied(function)


def asked_for(
    function: AnyFunction, declared: Declared | None, specs: Any = (), static: Static = None,
    assume: Assume = None, order: int = 1,
) -> Request:  # fmt: skip
    """The request for what is stated, and for what is declared in a file where nothing is.

    One text may state the shapes of all tensors, as in the shell: ``"n m; m"``.
    """
    if len(specs) == 1 and isinstance(specs[0], str) and ";" in specs[0]:
        specs = specs_in(specs[0])
    if declared is None:
        return requested(function, specs, static, assume, order)
    facts = {**joined(declared.assume), **joined(assume)}
    try:
        values = {**declared.values(function), **(static or {})}
        return requested(
            function, specs or declared.specs, values, facts, max(order, declared.order or 1)
        )
    except SpecError as error:
        error.location = error.location or declared.where
        raise


def verify_request(
    request: Request, *, suggest: bool = True, timeout: float | None = VERDICT_SECONDS
) -> Report:
    """The verdict for optional tensors given and absent, and for all inferred shapes.

    ``timeout``: as for ``verify``.  Raises the errors of tracing forward.
    """
    return in_time(request.function, timeout, lambda: _judged_request(request, suggest))


def in_time(function: AnyFunction, timeout: float | None, judge: Callable[[], Report]) -> Report:
    """What ``judge`` reports within so many seconds; UNDECIDED where it comes to no report.

    Raises SpecError for a limit that is no positive number.
    """
    number = isinstance(timeout, (int, float)) and not isinstance(timeout, bool)
    if timeout is not None and not (number and 0 < timeout < math.inf):
        raise SpecError(f"timeout={timeout!r}", hint="a positive number of seconds, None for none")
    started, stopped = processor_time(), True
    try:
        with fewer_collections(), remembered(), limited(timeout) as limit:
            report = in_one_piece(judge)
            stopped = limit is not None and limit.passed
    except TimeUp as error:
        report = _unfinished(function, f"{error}{_line_of(error)}; {_IN_TIME}")
    except CasesError as error:
        stopped = False
        report = _unfinished(function, f"{error.what}: {error.hint}")
    timed_out, seconds = report.timed_out or stopped, processor_time() - started
    unjudged = class_of(taken(function)).symgrad_unjudged
    notes = dict.fromkeys([*report.notes, unjudged] if unjudged else report.notes)
    return replace(report, notes=tuple(notes), timed_out=timed_out, repaired=None, seconds=seconds)


_IN_TIME = (
    "to need less, state the shapes and the values of plain arguments (--shapes, --static); "
    "--timeout gives more"
)
"""What to do where nothing was judged in time."""


def _line_of(error: TimeUp) -> str:
    """At which line of the program the time ran out; empty where that was at none of its lines."""
    place, _ = blame(error)
    ours = place is None or Path(place.file).parent == Path(__file__).parent
    return "" if ours else f", at {place}"


def _unfinished(function: AnyFunction, why: str) -> Report:
    """The report where nothing was judged, for want of time or of shapes."""
    from symgrad.proof.report.records import Finding, Report
    from symgrad.proof.report.verdict import Verdict

    found = class_of(function)
    finding = Finding("the verdict", Verdict.UNDECIDED, why)
    return Report(found.__name__, class_location(found), inputs={}, protocol=(finding,))


def _judged_request(request: Request, suggest: bool) -> Report:
    """The verdict for all sizes; where a program needs the number of one, for some of it."""
    try:
        return _for_answers(request, suggest)
    except (ControlFlowError, ShapeError) as error:
        name = _size_needed(request, error)
        if not name:
            raise
        return _at_small_sizes(request, name, error)


def _for_answers(request: Request, suggest: bool) -> Report:
    """The verdict for each answer to what a program asks of plain numbers."""
    from symgrad.proof.report.merge import for_answers

    for _ in range(MOST_STATE_ROUNDS):
        known = len(changes_of(request.function))
        judged = branches(request, lambda one: _for_all_sizes(one, suggest))
        branch, found = next(judged)
        if not branch.text and not isinstance(found, SymgradError):
            return found
        every = chain([(branch, found)], judged)
        report = for_answers(every, lambda error: is_of_shapes(request, error))
        if len(changes_of(request.function)) == known:
            break  # what calls with some numbers change, calls with others may depend on
    with used(False):
        return _with_declaration(request, report) if suggest else report


def _size_needed(request: Request, error: SymgradError) -> str:
    """The size, of those that are stated, whose number the program needs; empty for none."""
    number = getattr(error, "number", None)
    stated = [one.spec.sizes for one in request.tensors if one.spec is not None]
    known = {name for sizes in stated for name in sizes}
    asked = [] if number is None or request.guess is not None else sorted(number.sizes)
    return next((name for name in asked if name in known), "")


def _at_small_sizes(request: Request, name: str, error: SymgradError) -> Report:
    """The verdicts for some numbers in the place of a size: of one piece of a loop, and of more.

    Raises the error where forward accepts none of them.
    """
    from symgrad.proof.report.merge import for_sizes

    reports: dict[int, Report] = {}
    refused, late = dict[int, str](), dict[int, str]()
    for number in _small_sizes(request):
        put = {name: Dim.of(number)}
        try:
            with part(OTHER_NUMBERS_SHARE if reports else 1.0):
                reports[number] = _judged_request(request.with_sizes(put), suggest=False)
        except SymgradError as other:
            if not refuses_sizes(other):
                raise
            refused[number] = other.what
        except TimeUp as over:
            if not reports:
                raise
            late[number] = str(over)
    if not reports:
        raise error
    return for_sizes(reports, name, str(error.what), refused, late)


def _small_sizes(request: Request) -> list[int]:
    """A number below and above each plain integer, which may be the length of a piece."""
    given = [
        value for _, value in request.static if type(value) is int and 0 < value <= LONGEST_PIECE
    ]
    found = {1, 2, 3, 5} if not given else {1}
    for length in given:
        found |= {length, length + 1, 2 * length + 1}
    return sorted(found)


def _for_all_sizes(request: Request, suggest: bool) -> Report:
    """The verdict for all sizes, with repairs for all that is judged."""
    with told(f"judging {request.cls.__name__}"):
        request = leaving_out(request)
        report = _for_values(replace(request, whole=request), suggest)
        if not suggest:
            return report
        with used(False):  # a program that nobody wrote yet, a surrogate that nobody declared
            return _with_declaration(request, _with_repairs_for_all(request, report))


def _for_values(request: Request, suggest: bool) -> Report:
    """The verdict for all values of plain numbers, and for those that are told apart."""
    from symgrad.arguments import with_other_values
    from symgrad.quantify import for_all_values, with_named_numbers

    def judge(one: Request) -> Report:
        return _for_guesses(one, suggest=False)

    def first(one: Request) -> Report:
        return _for_guesses(one, suggest=suggest)

    for _ in range(MOST_STATE_ROUNDS):
        found = for_all_values(
            request, lambda repaired: _for_guesses(request, suggest and repaired), judge, first
        )  # fmt: skip
        known = len(changes_of(request.function))
        report = with_other_values(request, found, judge, first)
        if len(changes_of(request.function)) == known:
            break  # what calls with some values change, calls with others may depend on
    return with_named_numbers(request, report, judge, first) if suggest else report


def _with_repairs_for_all(request: Request, report: Report) -> Report:
    """The report with repairs that hold for all that is judged, or that say for what they do."""
    from symgrad.everywhere import checked, holds, is_more, with_repairs

    def judge(one: Request) -> Report:
        return _judged_request(one, suggest=False)

    if not is_more(request, report):
        return report
    assert report.repaired is not None
    again = request.of(report.repaired.function)
    found = checked(report, again, judge, _part)
    others = () if again.guess is None else again.guess.others
    if holds(found) or not others:
        return found
    try:
        with limited(WIDER_REPAIR_SECONDS):
            wider = _for_values(replace(request, whole=request, beside=others), True)
            other = with_repairs(report, wider)
            if other is None or other.repaired is None:
                return found
            other = checked(other, request.of(other.repaired.function), judge, _part)
    except (SymgradError, TimeUp):  # the verdict stands, also where no time is left
        return found
    return other if holds(other) else found


def _with_declaration(request: Request, report: Report) -> Report:
    """The report with what declares a surrogate, if there is one and time is left to prove it."""
    from symgrad.proposed import with_declaration

    values = defaults(request)

    def judge(facts: Mapping[str, str], fixed: Sequence[str]) -> Report:
        given = [Assumption(name, fact, fact) for name, fact in facts.items()]
        asked = replace(request.assuming(given).fixing(fixed, values), brief=True)
        return _judged_request(asked, suggest=False)

    try:
        with limited(DECLARATION_SECONDS):
            return with_declaration(report, request.cls, judge, values)
    except TimeUp:
        return report


def _part(request: Request) -> Report:
    """The verdict for the shapes of a request alone."""
    return _for_presences(request, suggest=False)


def _for_guesses(request: Request, suggest: bool) -> Report:
    """The verdict for all inferred shapes; as far as forward takes no other that is not traced."""
    from symgrad.proof.report.merge import if_meant, if_passed

    report, guess = _for_traced_guesses(request, suggest), request.guess
    if guess is not None:
        report = if_passed(report, guess.passed)
    if guess is None or guess.unread is None or str(report.verdict) == "PROVED":
        return report
    return if_meant(report, guess.unread(), guess.text)


def _for_traced_guesses(request: Request, suggest: bool) -> Report:
    """The verdict for optional tensors given and absent, and for all inferred shapes."""
    proved: Proved = {}
    first = _for_presences(request, suggest, proved)
    if request.guess is None:
        return first
    from symgrad.proof.report.merge import for_narrower

    fitting = request.guess.fitting if str(first.verdict) == "REFUTED" else None
    if fitting is not None and fitting.guess is not None:
        with suppress(SymgradError):
            near = _for_presences(replace(fitting, audit=request.audit), suggest, proved)
            narrower = for_narrower(near, fitting.guess, first, request.guess)
            if narrower is not None:
                return narrower
    # With other shapes, forward may not take each of its optional tensors: a mistake may not show.
    whole = not first.presences
    if whole and str(first.verdict) == "REFUTED":
        longer = _with_axes_more(request, first, suggest, proved)
        if longer is not None:
            return longer
    return _for_others(request, first, suggest, proved)


def _for_others(request: Request, first: Report, suggest: bool, proved: Proved) -> Report:
    """The verdict for all inferred shapes, and for the other values of plain arguments."""
    from symgrad.proof.report.merge import for_guesses, under_shapes
    from symgrad.proof.report.together import Judged

    assert request.guess is not None
    whole, own = not first.presences, request.guess
    judged, late, equal = {own: first}, list[str](), set[str]()
    cells = Judged(own.values, own.place, dict(request.static), own.void)
    values = [request.static]
    for other in own.others:
        if str(list(judged.values())[-1].verdict) == "REFUTED":
            break
        its = other.guess
        assert its is not None
        more = its.combined or (other.static not in values and len(values) > 1)
        share = OTHER_NUMBERS_SHARE if more else 1.0
        accident = _is_accident(other, request, whole)
        # of what is no worse than what is known, and of accidents, nobody reads the words
        known = max(one.verdict for one in judged.values())
        brief = request.brief or accident or str(known) != "PROVED"
        report, is_late = (
            (None, False)  # a condition says that this shape is the inferred one
            if not equal.isdisjoint(its.summed.split(" and "))
            or (its.combined and its.place not in cells.judged)
            else _beside(replace(request, brief=brief), other, suggest, share, proved)
        )
        if report is None:
            continue
        if more and is_late and not its.combined:
            late.append(its.text)
        if more and (is_late or (its.combined and str(report.verdict) == "UNDECIDED")):
            continue
        values.append(other.static)
        cells.add(its.place, dict(other.static))
        judged[its] = report
        beside = its.accident or its.summed
        lacking = ("REFUTED", "UNDECIDED") if beside else ("REFUTED",)
        if str(report.verdict) in lacking and accident:
            fewer = under_shapes(judged[own], own, report, its)
            if fewer is not None and fewer.verdict < report.verdict:
                del judged[its]
                judged[own] = fewer
                equal.update(filter(None, its.summed.split(" and ")))
                cells.leave_out(its.place)
        if brief and not request.brief and its in judged and report.verdict > known:
            full, _ = _beside(request, other, suggest, share, proved)
            if full is not None and full.verdict >= report.verdict:
                judged[its] = full
    taken = [request, *(one for one in own.others if one.guess in judged)]
    return for_guesses(judged, late, (*cells.conditions, *_numbers_of_tensors(taken)))


def _numbers_of_tensors(judged: Sequence[Request]) -> Sequence[Condition]:
    """How many tensors ``*args`` stands for in what was judged."""
    from symgrad.proof.report.records import Condition

    name = starred_name(judged[0].function)
    held = [
        Condition("asked", f"{one} is a list of {len(leaves)} tensors")
        for one, leaves in judged[0].cls.symgrad_leaves.items()
    ]
    if not name:
        return held
    items = [[it for it in one.arguments if is_one_of(it.name, name)] for one in judged]
    plain = plain_items(judged[0].function) or not all(it.is_tensor for row in items for it in row)
    what, numbers = "argument" if plain else "tensor", sorted({*map(len, items)})
    told = f"is 1 {what}" if numbers == [1] else f"are {either(map(str, numbers))} {what}s"
    return [*held, Condition("asked", f"*{name} {told}")]


def _asked_alike(other: Request, request: Request) -> Request:
    """A request for other shapes, to be judged as this one is."""
    return replace(other, audit=request.audit, whole=request.whole, brief=request.brief)


def _beside(
    request: Request, other: Request, suggest: bool, share: float, proved: Proved
) -> tuple[Report | None, bool]:  # fmt: skip
    """The report for other inferred shapes, and is it UNDECIDED for want of its share of the time?

    None where the assumptions do not fit other ranks.
    """
    try:
        with part(share) as limit:
            asked = _asked_alike(other, request)
            accident = other.guess is not None and other.guess.accident
            report = _for_presences(asked, suggest and not (accident or request.brief), proved)
    except ThresholdError:
        raise
    except SymgradError:
        return None, False
    except TimeUp as error:
        return _unfinished(request.function, str(error)), True
    passed = limit is not None and limit.passed
    return report, passed and str(report.verdict) == "UNDECIDED"


def _is_accident(other: Request, request: Request, whole: bool) -> bool:
    """Are these shapes that forward takes beside inferred ones, but is not written for?

    ``whole``: with fewer axes it takes as many of its tensors.  Other values of plain arguments are
    another call, whose shapes are what they need; and backward may be written for repeated tensors.
    It is written for none for which it returns gradients of other shapes.
    """
    if other.guess is not None and (other.guess.accident or other.guess.summed):
        return True
    own, its = request.guess, other.guess
    elsewhere = own is not None and its is not None and its.combined and its.place != own.place
    if other.static != request.static and not elsewhere:
        return False
    if its is not None and its.written:
        return False
    if own is not None and its is not None and own.fits and not its.fits:
        return True
    counted = own is not None and own.counted
    return other.is_more_special(request) or (
        whole and (counted or request.has_more_axes_in_some(other))
    )


def _with_axes_more(
    request: Request, first: Report, suggest: bool, proved: Proved
) -> Report | None:
    """The report for inferred shapes in which some tensors have more axes, if that is PROVED.

    A vector where a matrix is meant is a wrong guess of the shapes, as far as forward takes both:
    ``g @ v.T`` is an inner product then.  All such shapes have to be PROVED: with fewer axes, with
    more in every tensor, or with an axis of size 1, a mistake may not show.
    """
    from symgrad.proof.report.merge import for_narrower

    assert request.guess is not None
    found = None
    for other in request.guess.others:
        if other.guess is None or other.guess.accident or other.most_axes > request.most_axes:
            continue
        if not other.has_more_axes_in_some(request):
            continue
        if other.is_more_special(request):
            return None
        try:
            report = _for_presences(replace(other, audit=request.audit), suggest, proved)
        except (SymgradError, TimeUp):
            return None
        if str(report.verdict) != "PROVED":
            return None
        found = found or for_narrower(report, other.guess, first, request.guess)
    return found


def compile(
    function: AnyFunction, *specs: Any, static: Static = None, assume: Assume = None,
    allow: Sequence[str] = (), strict: bool = False, timeout: float | None = VERDICT_SECONDS,
    config: Config = None, validate: bool = False, prefer: str = "hand",
) -> CompiledOp | NumpyOp:  # fmt: skip
    """Kernels for every size of these shapes, forward and backward.

    ``specs``, ``static``, ``assume``, ``timeout``, ``config``: as for ``verify``; where shapes are
    inferred, an InferredShapesWarning says which: those that fit backward, where ``verify`` names
    them.  A backward that is not PROVED is refused with
    NotProvedError, unless ``allow`` names its verdict (``allow=("UNDECIDED",)``).  Where no C
    compiler works, the op runs on NumPy, with a NumpyBackendWarning; with ``strict``, or
    SYMGRAD_STRICT=1, BuildError or CacheError is raised.  ``validate``: the C is validated against
    what was traced, for all sizes, which may take seconds a kernel the first time; C that is not
    VALIDATED is refused with NotValidatedError, unless ``allow`` names ``"NOT VALIDATED"``.
    ``prefer``: kernels compute the backward as written ("hand"), or in its place the derivative of
    forward: "derived", where it is PROVED; "auto", where it is so without exceptions, and dearer.
    """
    with forks_wait():
        from symgrad.emission import fallback
        from symgrad.numpy_op import NumpyOp
        from symgrad.runtime.carried import Parts
        from symgrad.runtime.op import make_op

    found = class_of(taken(function))
    declared = _declared(config, found)
    with _applied(declared, found):
        request = _requested(function, declared, specs, static, assume, timeout)
        planned, report = judged_plan(request, allow, timeout=timeout, prefer=prefer)
    emitted, _ = texts(planned, report, allow, validate=validate)
    programs = partial(fallback, planned, "symgrad.runtime")
    try:
        return make_op(
            emitted.wrapper(), emitted.texts, key_extra=planned.graphs.source, origin=request,
            values=planned.graphs.values, programs=programs,
        )  # fmt: skip
    except (BuildError, CacheError) as error:
        fall_back(f"{planned.name} runs", error, strict=strict, stacklevel=2)
        parts = Parts(emitted.wrapper(), emitted.texts, programs, planned.graphs.source)
        return NumpyOp(planned, origin=request, parts=parts)


def texts(
    planned: OpPlan, report: Report, allow: Sequence[str] = (), *, validate: bool,
    cached: bool = True,
) -> tuple[EmittedOp, Validation | None]:  # fmt: skip
    """The texts of an op; with ``validate`` they say what became of them.

    ``cached``: what was validated before is not validated again.  Raises NotValidatedError.
    """
    with forks_wait():
        from symgrad.emission import emit
        from symgrad.manifest import proof_line

    line = proof_line(report, replaced=planned.judged is not None)
    if not validate:
        return emit(planned, line), None
    from symgrad.validation import validated

    emitted, found = validated(planned, line, cached=cached)
    found.check(planned.name, allow)
    return emitted, found


def _into_cache(emitted: EmittedOp) -> None:
    """Compile a kernel, in whatever process this is; the last step says what is wrong."""
    from symgrad.runtime.build import build_cached

    with suppress(BuildError, CacheError):
        build_cached(emitted.op, emitted.texts, portable=True)


def build(
    functions: Sequence[AnyFunction], folder: Path, *, specs: Sequence[str | None] = (),
    static: Static = None, assume: Assume = None, allow: Sequence[str] = (), check: bool = False,
    compiled: bool = True, root: Path | None = None, names: Mapping[Any, str] | None = None,
    timeout: float | None = VERDICT_SECONDS, fixed: bool = False, config: Config = None,
    validate: bool = True, package: str | None = None, on_numpy: bool = True, cached: bool = False,
    prefer: str = "hand", each: Callable[..., Iterable[Any]] = map,
    told: Told = lambda name, report, validation: None,
    sheets: Callable[[Sequence[Sheet]], None] | None = None, scaling: bool = False,
) -> str:  # fmt: skip
    """Write a package of kernels that imports without symgrad; return the difference.

    ``specs``, ``static``, ``assume``, ``timeout``, ``config``: as for ``compile``.  ``check``:
    write nothing.  ``compiled``: also build the shared objects, or check those that are there.
    ``root``: paths in the manifest are written relative to it.  ``names``: other names for the ops
    of some Functions.  ``fixed``: no kernel takes a plain number.  ``validate``: as for
    ``compile``.  ``package``: ``folder`` is the project of a package of this name, with what
    ``pip`` and ``pytest`` read.  ``on_numpy``: with programs for NumPy, which compute where no
    library can be loaded.  ``cached``: what was PROVED before is not proved again.  ``prefer``: as
    for ``compile``.  ``each``: goes through the Functions, as ``map`` does, in several processes
    maybe.  ``told`` is called with the name of each op once it is judged.  ``sheets`` is given what
    each op costs and how accurate it is, ``scaling``: with its time on more threads.  Raises
    NotProvedError, NotValidatedError, BuildError.
    """
    from symgrad.manifest import packaged, packaged_op

    if package is not None:
        from symgrad import project
        from symgrad.samples import samples

        project.check_name(package)
    named = names or {}

    def make(one: AnyFunction) -> tuple[PackagedOp, list[dict[str, Any]], Sheet | None]:
        found = class_of(taken(one))
        declared = _declared(config, found)
        with _applied(declared, found), used() if cached else nullcontext():
            request = _requested(one, declared, specs, static, assume, timeout)
            planned, report = judged_plan(
                request, allow, named.get(one, ""), timeout=timeout, fixed=fixed, prefer=prefer
            )  # fmt: skip
        emitted, validation = texts(planned, report, allow, validate=validate)
        told(planned.name, report, validation)
        if compiled and not check:
            _into_cache(emitted)
        op = packaged_op(request, planned, report, emitted, validation, root, on_numpy=on_numpy)
        shown = None
        if sheets is not None and not check:
            shown = _sheet(planned, report, emitted, validation, scaling=scaling)
        return op, samples(planned) if package else [], shown

    made = list(each(make, functions))
    place = project.source_folder(folder, package) if package else folder
    files = packaged([op for op, *_ in made], place)
    if check:
        return _difference(place, files, [op for op, *_ in made] if compiled else [])
    _write(folder, place, package, files, made, compiled)
    if sheets is not None:
        sheets([one for *_, one in made if one is not None])
    return ""


def _difference(place: Path, files: Mapping[str, str], ops: Sequence[PackagedOp]) -> str:
    """What writing would change; a line for each library of ``ops`` that would be built again."""
    from symgrad.runtime.contents import stale
    from symgrad.runtime.libraries import read_op
    from symgrad.runtime.package import difference

    libraries = (stale(place, read_op(op.wrapper), op.texts) for op in ops)
    lines = (f"{place.name}/{said}\n" for said in libraries if said)
    return difference(place, files) + "".join(lines)


def _sheet(*facts: Any, scaling: bool) -> Sheet:
    from symgrad.sheet import sheet

    return sheet(*facts, scaling=scaling)


def _write(
    folder: Path, place: Path, package: str | None, files: Mapping[str, str],
    made: Sequence[tuple[PackagedOp, list[dict[str, Any]], Any]], compiled: bool,
) -> None:  # fmt: skip
    """Write a package, and its project where it has one; compile it."""
    from symgrad.project import project_files, write_project
    from symgrad.runtime.libraries import build_package
    from symgrad.runtime.package import write_package

    write_package(place, files)
    if package:
        write_project(folder, project_files(package, [(op, calls) for op, calls, _ in made]))
    if compiled:
        build_package(place, [op.stem for op, *_ in made])


def show(
    function: AnyFunction, *specs: Any, stage: str, static: Static = None,
    assume: Assume = None, config: Config = None,
) -> str:  # fmt: skip
    """The text of a stage: one of ``STAGES``, in the names of the user's source.

    ``specs``, ``static``, ``assume``, ``config``: as for ``compile``.
    """
    if stage not in STAGES:
        raise SpecError(f"unknown stage {stage!r}", hint=f"one of {', '.join(STAGES)}")
    found = class_of(taken(function))
    declared = _declared(config, found)
    with _applied(declared, found):
        return _shown(_requested(function, declared, specs, static, assume), stage)


def _shown(request: Request, stage: str) -> str:
    """The text of a stage for a request."""
    from symgrad import stage_text as stages

    graphs = trace_request(request)
    ranks = _ranks(request, graphs)
    graphs = _served(request, graphs, ranks)
    if stage == "graph":
        return stages.graph(graphs)
    planned = plan(graphs)
    if stage == "reverse":
        return stages.reverse(planned)
    if stage == "index":
        return stages.index(planned)
    if stage == "schedule":
        return stages.schedule(planned)
    from symgrad.manifest import proof_line

    return stages.c(planned, proof_line(_as_asked(request, graphs, ranks)))


def plan_in(request: Request, dtype: DType) -> OpPlan:
    """The graphs of the kernels with all floats in one precision; backward is not judged."""
    asked = request.with_specs(
        lambda spec: replace(spec, dtype=dtype)
        if spec.dtype is None or spec.dtype.is_float else spec
    )  # fmt: skip
    graphs = trace_request(asked)
    return plan(_served(asked, graphs, _ranks(asked, graphs)), pruned=False)


def accuracy(
    function: AnyFunction, *specs: Any, static: Static = None, assume: Assume = None,
    config: Config = None, dtypes: Sequence[DType] = (float32, float64),
    sizes: Sequence[Mapping[str, int]] = (),
) -> Accuracy:  # fmt: skip
    """How far the kernels of an op are from its formulas, as ``accuracy.measure`` says.

    ``specs``, ``static``, ``assume``, ``config``: as for ``compile``.  ``sizes``: at which ops
    with reductions are looked at.  Raises BuildError where no C compiler works.
    """
    from symgrad.accuracy.measure import measure
    from symgrad.emission import emit
    from symgrad.runtime.op import make_op

    found = class_of(taken(function))
    declared = _declared(config, found)
    kernels = []
    with _applied(declared, found):
        request = _requested(function, declared, specs, static, assume)
        for dtype in dtypes:
            planned = plan_in(request, dtype)
            emitted = emit(planned, "")
            values = planned.graphs.values
            kernels.append((planned, make_op(emitted.wrapper(), emitted.texts, values=values)))
    return measure(found.__name__, kernels, sizes)


def judged_plan(
    request: Request,
    allow: Sequence[str],
    name: str = "",
    suggest: bool = True,
    timeout: float | None = VERDICT_SECONDS,
    fixed: bool = False,
    prefer: str = "hand",
) -> tuple[OpPlan, Report]:
    """The graphs of an op's kernels, and the report on its backward.

    The kernels take the plain numbers for which the proof holds whatever they are, unless all are
    to be ``fixed``.  Raises NotProvedError where the verdict is neither PROVED nor in ``allow``, or
    where a derived backward is to take the place of one that is not PROVED.
    """
    from symgrad.proof.verify import check_none

    _check_choices(allow, prefer)
    if "REFUTED" in allow:
        allow = (*allow, "SURROGATE?")
    request = leaving_out(request)
    graphs = trace_request(request)
    ranks = _ranks(request, graphs)
    general: list[FunctionGraphs] = []

    def default() -> Report:
        return _as_asked(request, graphs, ranks, suggest)

    def judge() -> Report:
        return default() if fixed else _for_all_values(request, default, general)

    report = in_time(request.function, timeout, judge)
    verdict = str(report.verdict)
    if verdict != "PROVED" and (verdict not in allow or prefer == "derived"):
        anyway = f'compile it anyway with allow=("{verdict}",)'
        raise NotProvedError(
            f"the backward of {graphs.name} is {verdict}:\n{report}",
            location=graphs.location,
            hint=f"fix it{'' if prefer == 'derived' else f', or {anyway}'}",
        )
    if prefer == "auto" and (
        verdict != "PROVED" or any(one.kind != "declared" for one in report.conditions)
    ):
        prefer = "hand"
    check_none(report)
    served = general or [_served(request, graphs, ranks)]
    return preferred(plan(with_passed(request, served[0]), name=name), prefer), report


def _check_choices(allow: Sequence[str], prefer: str) -> None:
    if isinstance(allow, str) or not set(allow) <= {*ALLOWED}:
        hint = f"a tuple of {', '.join(map(repr, ALLOWED))}"
        raise SpecError(f"allow={allow!r}", hint=hint)
    if prefer not in PREFERENCES:
        hint = f"one of {', '.join(map(repr, PREFERENCES))}"
        raise SpecError(f"prefer={prefer!r}", hint=hint)


def _for_all_values(
    request: Request, default: Callable[[], Report], general: list[FunctionGraphs]
) -> Report:
    """The verdict; the cases in which plain numbers are symbols are put into ``general``."""
    from symgrad.quantify import for_all_values

    def judge(one: Request) -> Report:
        graphs = trace_request(one)
        return _as_asked(one, graphs, _ranks(one, graphs), suggest=False)

    found = for_all_values(request, lambda repaired: default(), judge)
    if not found.pieces:
        return found.report
    served, alone = [], len(found.pieces) == 1
    for piece in found.pieces:
        before = {name: one.copy() for name, one in piece.regions.items()}
        graphs = trace_request(piece.request)
        graphs = _served(piece.request, graphs, _ranks(piece.request, graphs))
        if piece.regions != before:
            return default()
        where = () if alone else (piece.condition,)
        served += [replace(case, where=(*case.where, *where)) for case in graphs.cases]
    values = as_numbers(found.pieces[0].request, found.unions)
    graphs = trace_request(found.pieces[0].request)
    general.append(replace(graphs, cases=tuple(served), values=values))
    return found.report


def _requested(
    function: AnyFunction, declared: Declared | None, specs: Sequence[Any], static: Static,
    assume: Assume, timeout: float | None = VERDICT_SECONDS,
) -> Request:  # fmt: skip
    """The request to compile; a warning names inferred shapes.

    Raises SpecError where a plain argument has no value: none is chosen for a kernel.
    """
    request = asked_for(function, declared, specs, static, assume)
    if request.guess is not None and request.guess.as_tensors is not None:
        request = request.guess.as_tensors
    if request.guess is not None:
        if names := request.guess.values:
            raise _no_value(request, names)
        request = _that_fits(request, timeout)
        what = f"{request.cls.__name__}: {request.inferred} The kernels serve only these shapes."
        warnings.warn(what, InferredShapesWarning, stacklevel=3)
    return request


def _that_fits(request: Request, timeout: float | None) -> Request:
    """The request for the near shapes that fit backward, where it is refuted for the inferred ones.

    ``verify`` judges these too, and prints them as a condition.
    """
    fitting = None if request.guess is None else request.guess.fitting
    if fitting is None or fitting.guess is None or fitting.guess.values:
        return request

    def judge() -> Report:
        graphs = trace_request(request)
        return _as_asked(request, graphs, _ranks(request, graphs), suggest=False)

    report = in_time(request.function, timeout, judge)
    return fitting if str(report.verdict) == "REFUTED" else request


def _no_value(request: Request, names: Sequence[str]) -> SpecError:
    told = ", ".join(f'"{name}": ...' for name in names)
    options = " ".join(f"--static {name}=..." for name in names)
    return SpecError(
        f"{request.cls.__name__}: nothing says the value of {', '.join(names)}, and there is no"
        " default",
        location=class_location(request.cls),
        hint=f"static={{{told}}}, on the command line {options}; or write a default in forward",
    )


def _for_presences(request: Request, suggest: bool, proved: Proved | None = None) -> Report:
    """The worst verdict for optional tensors given and absent, first as requested.

    Only the first looks for a repair, which is then judged for all of them.  ``proved``: what need
    not be judged again; what is PROVED here is put into it.
    """
    from symgrad.proof.report.merge import at_multiples, for_presences

    known: Proved = {} if proved is None else proved

    def judge(one: Request) -> Report:
        key = one.called
        report = known[key][1] if key in known else _traced(one, suggest)
        if str(report.verdict) == "PROVED":
            known[key] = one, report
        if one.guess is not None and one.guess.resized is not None:
            report = _at_other_numbers(one, report, suggest)
        return at_multiples(report, () if one.guess is None else one.guess.multiples)

    every = presences(request)
    if not every:
        return judge(request)
    guess = request.guess
    return for_presences(
        every,
        lambda one: judge(
            request if one is every[0]
            else replace(one.request, audit=request.audit, brief=request.brief)
        ),
        guess if guess is not None and guess.presences else None,
    )  # fmt: skip


def _traced(request: Request, suggest: bool) -> Report:
    """The verdict for these shapes and these optional tensors alone."""
    graphs = trace_request(request)
    report = _judged(request, graphs, _ranks(request, graphs), suggest)
    loop = next((case.loop for case in graphs.cases if case.loop is not None), None)
    if loop is None or request.rounds or str(report.verdict) in ("PROVED", "SURROGATE?"):
        return report
    return _in_later_rounds(request, loop, report, suggest)


def _in_later_rounds(request: Request, loop: Loop, report: Report, suggest: bool) -> Report:
    """The report on a loop that waits for a value; what is right in later rounds alone is said."""
    from symgrad.proof.report.rounds import for_rounds

    later = None
    with suppress(SymgradError):  # it may not go on
        later = _traced(replace(request, rounds=max(loop.constant, loop.least)), suggest)
    return for_rounds(report, later, loop)


def _at_other_numbers(request: Request, report: Report, suggest: bool) -> Report:
    """The worst of a report at numbers for sizes and of one at others that forward takes.

    Smaller ones are judged where the preferred ones take too long.
    """
    from symgrad.proof.report.merge import at_sizes

    assert request.guess is not None
    assert request.guess.resized is not None
    others = request.guess.resized()
    found: dict[tuple[str, ...], Report] = {}
    late: list[str] = []
    while str(report.verdict) != "REFUTED":
        try:
            with part(OTHER_NUMBERS_SHARE):
                other = next(others, None)
                if other is None or other.guess is None:
                    break
                if request.guess.fits and not other.guess.fits:
                    continue  # forward takes it, and backward is not written for it
                found = {other.guess.sizes: _traced(_asked_alike(other, request), suggest)}
        except SymgradError:  # the assumptions may not fit other sizes
            continue
        except TimeUp as error:
            late.append(str(error))
            continue
        if str(next(iter(found.values())).verdict) != "UNDECIDED":
            break
        late.append(f"UNDECIDED for {' and '.join(other.guess.sizes)}")
    return at_sizes({request.guess.sizes: report, **found}, late)


def _as_asked(
    request: Request, graphs: FunctionGraphs, ranks: Ranks | None, suggest: bool = True
) -> Report:
    """The verdict on what is compiled: optional tensors only as the specs state them."""
    report = _judged(request, graphs, ranks, suggest)
    presence = tuple(map(str, presences(request)[:1]))
    return replace(report, presences=presence, inferred=request.inferred)


def _judged(
    request: Request, graphs: FunctionGraphs, ranks: Ranks | None, suggest: bool = True
) -> Report:
    """The verdict on a traced Function, for every number of batch axes that it takes.

    If the program does not depend on their number, one axis stands for them.  Otherwise only a few
    numbers are judged.
    """
    from symgrad.proof.report.merge import for_any_rank, for_ranks, with_smallest

    def judge(one: FunctionGraphs, rank: int | None, suggest: bool = suggest) -> Report:
        return _judged_rank(request, one, suggest, rank)

    if ranks is None:
        return judge(graphs, BATCH_RANK)
    reports = {rank: judge(one, rank) for rank, one in ranks.apart.items()}
    if ranks.looked_at is not None:
        return for_ranks(reports, str(ranks.looked_at), ranks.refused)
    typical = typical_rank(ranks.numbers)
    written = typical if typical > 1 else None
    report = judge(trace_request(request, batch_rank=written), written)
    if 0 not in ranks.numbers and str(report.verdict) != "PROVED":
        report = with_smallest(report, judge(trace_request(request, batch_rank=0), 0, False))
    return for_any_rank(report, ranks.groups, typical, reports, ranks.refused)


@dataclass(frozen=True)
class Ranks:
    """How a Function depends on the number of batch axes, which its specs leave open.

    ``groups``: by name of the batch axes, the size that counts their elements.  ``looked_at``: what
    in the program depends on their number, unless only a few numbers differ.  ``apart``: traces for
    the numbers that are judged by themselves.  ``refused``: why forward does not accept a number.
    """

    groups: Mapping[str, str]
    looked_at: Observation | None
    apart: Mapping[int, FunctionGraphs]
    refused: Mapping[int, str]

    @property
    def numbers(self) -> frozenset[int]:
        """The numbers of batch axes that the trace for all numbers does not cover."""
        return frozenset((*self.apart, *self.refused))


def _ranks(request: Request, graphs: FunctionGraphs) -> Ranks | None:
    """None where no spec leaves the number of batch axes open."""
    groups = request.batches
    if not groups:
        return None
    found = _rank_dependence(request, graphs)
    looked_at = found if isinstance(found, Observation) else None
    apart, refused = {}, {}
    for rank in RANKS if isinstance(found, Observation) else sorted(found):
        short = missing_axes(request, rank)
        try:
            one = trace_request(request, batch_rank=rank)
        except SymgradError as error:
            if not refuses_sizes(error):
                raise
            short = error.what
        if short is None:
            apart[rank] = one
        else:
            refused[rank] = short
    return Ranks(groups, looked_at, apart, refused)


def _served(request: Request, graphs: FunctionGraphs, ranks: Ranks | None) -> FunctionGraphs:
    """The cases that kernels are made for: all sizes and numbers of batch axes that were judged."""
    if ranks is None:
        return graphs
    cases = [case for one in ranks.apart.values() for case in one.cases]
    if ranks.looked_at is None:
        cases += serving(request, ranks.numbers)
    return replace(graphs, cases=tuple(cases))


def _rank_dependence(request: Request, graphs: FunctionGraphs) -> Observation | frozenset[int]:
    """What depends on the number of batch axes in any of the traces that a verdict rests on.

    If nothing does: the numbers that some traces treat by themselves.
    """
    apart: frozenset[int] = frozenset()
    programs: list[tuple[Request, Mapping[str, Any]]] = [(request, {})]
    paths = _paths(request, graphs, lambda answers: trace_request(request, answers=answers))
    programs += [(request, {"answers": answers}) for answers in paths.answers]
    programs += [(request, {"given_cotangents": given}) for given in patterns(graphs)]
    declared = _surrogates(request)
    programs += [(one, {}) for one in declared.values()]
    if has_jvp(request.function):
        made = pushing(request, reference=surrogate_of(request.function))
        with suppress(JvpError):
            found = rank_dependence(made, apart=apart)
            if isinstance(found, Observation):
                return found
            apart = found
    for program, how in programs:
        twice = _is_judged_twice(request, graphs) and program is request
        for histories in (False, True) if twice else (False,):
            found = rank_dependence(program, histories=histories, apart=apart, **how)
            if isinstance(found, Observation):
                return found
            apart = found
    return apart


def _is_judged_twice(request: Request, graphs: FunctionGraphs) -> bool:
    """Is the backward of the backward judged too?"""
    return request.order > 1 and not (graphs.derived or graphs.once)


def _surrogates(request: Request) -> dict[str, Request]:
    """The requests for declared surrogates, by the gradient that each is of; "" of all."""
    whole = surrogate_of(request.function)
    declared = surrogates_of(request.function) | ({} if whole is None else {"": whole})
    return {name: replace(request, function=one, assumptions=()) for name, one in declared.items()}


def _judged_rank(
    request: Request, graphs: FunctionGraphs, suggest: bool, rank: int | None
) -> Report:
    """The verdict for one number of batch axes, against the surrogate where one is declared."""
    known = len(changes_of(request.function))
    guest = request.cls.symgrad_guest
    suggest = suggest and (guest is None or guest.repairs)
    report = _judged_once(request, graphs, suggest, rank)
    for _ in range(MOST_STATE_ROUNDS):
        if len(changes_of(request.function)) == known:
            break  # what calls of one kind change, calls of another kind may depend on
        known = len(changes_of(request.function))
        report = _judged_once(request, trace_request(request, batch_rank=rank), suggest, rank)
    return report if guest is None else guest.completed(request, report, rank)


def _judged_once(
    request: Request, graphs: FunctionGraphs, suggest: bool, rank: int | None
) -> Report:
    surrogates = {
        name: trace_request(one, batch_rank=rank) for name, one in _surrogates(request).items()
    }

    def traced(
        answers: Answers | None, histories: bool = False, given: Sequence[bool] | None = None
    ) -> FunctionGraphs:
        return trace_request(
            request, answers=answers, given_cotangents=given, batch_rank=rank,
            histories=histories,
        )  # fmt: skip

    def calls(aspects: frozenset[str]) -> Sequence[OtherCall]:
        return other_calls(request, graphs, rank, aspects)

    paths = _paths(request, graphs, traced)
    twice = [None, *paths.answers] if _is_judged_twice(request, graphs) else []
    seen: dict[str, Any] = {
        "surrogate": surrogates.pop("", None),
        "surrogates": surrogates,
        "variants": paths.traced,
        "untraced": unjudged(paths),
        "undefined": [traced(None, given=given) for given in patterns(graphs)],
        "order": request.order,
        "pushes": _pushes(request, rank),
        "jvp_asks": has_jvp(request.function) and not has_plain_jvp(request.function),
        "audit": request.audit,
        "brief": request.brief,
        "histories": [traced(answers, True) for answers in twice],
    }
    traces: dict[str, Callable[..., Any]] = {
        "wide": lambda: trace_request(request, batch_rank=rank, dtype=float64)
    }
    if not (graphs.derived or asks_nothing(request)):
        traces["calls"] = calls
    report = report_on(
        (graphs, seen, sorted(traces)), traces,
        lambda traces: _proved(request, graphs, rank, {**seen, **traces, "suggest": suggest}),
    )  # fmt: skip
    return replace(report, values=graphs.texts)


def _proved(
    request: Request, graphs: FunctionGraphs, rank: int | None, options: Mapping[str, Any]
) -> Report:
    """The verdict that the proof gives, and a repair of what is refuted, where one is wanted.

    What is refuted of another library's class is run there as well.
    """
    return replayed(request, graphs, _judged_by_proof(request, graphs, rank, options))


def _judged_by_proof(
    request: Request, graphs: FunctionGraphs, rank: int | None, options: Mapping[str, Any]
) -> Report:
    from symgrad.proof.verify import VerifyOptions, verify_function

    how = VerifyOptions(**options)
    if not how.suggest or graphs.derived:
        return verify_function(with_backward(graphs), how)
    from symgrad.everywhere import wrong_for
    from symgrad.pasting.repairs import Pasting, verify_and_repair

    def again(changed: AnyFunction) -> FunctionGraphs:
        return trace_request(replace(request, function=changed), batch_rank=rank)

    def whole(changed: AnyFunction) -> Report:
        return _judged_request((request.whole or request).of(changed), suggest=False)

    def elsewhere(changed: AnyFunction, name: str) -> str:
        return wrong_for(request.beside, changed, name, _part)

    def runs(changed: AnyFunction) -> bool:
        try:
            cases = trace_request(replace(plain, function=changed), batch_rank=rank).cases
        except SymgradError:
            return False
        return all(case.problem is None for case in cases)

    places = {argument.name: place for place, argument in enumerate(request.positional)}
    numbers, plain = passed_numbers(request)
    pasting = Pasting(
        request.function, again, how, places, numbers, runs,
        elsewhere if request.beside else None,
    )  # fmt: skip
    return verify_and_repair(graphs, how, pasting, whole)


def _pushes(request: Request, rank: int | None) -> FunctionGraphs | SymgradError | None:
    """Forward and its ``jvp`` traced together; None where there is no ``jvp``."""
    if not has_jvp(request.function):
        return None
    made = pushing(request, reference=surrogate_of(request.function))
    try:
        return trace_request(made, batch_rank=rank)
    except JvpError as error:
        return error
    except ControlFlowError as error:  # of jvp: forward alone was traced
        return failure(error, undecided=True)


def _paths(
    request: Request, graphs: FunctionGraphs, trace: Callable[[Answers], FunctionGraphs]
) -> Paths:
    """The other ways of a hand-written backward that asks about its call."""
    return Paths() if graphs.derived else other_paths(graphs, trace)
