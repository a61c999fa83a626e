"""The entry of the proof: a traced Function in, a report out.

In: ``FunctionGraphs`` and ``VerifyOptions``.  Out: ``Report``, in the user's names: each case is
judged, then the judgements of all cases are put together into one report for each input.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial

import numpy as np

from symgrad import deadline
from symgrad.budgets import (
    CONDITION_SCREEN,
    CONDITION_SECONDS,
    GRADIENT_WORK,
    LEAST_CONDITION_SECONDS,
    MOST_OUTPUTS,
    PROOF_SHARE,
    REPAIR_TOTAL_WORK,
    REPAIR_WORK,
    SURROGATE_SECONDS,
)
from symgrad.deadline import TimeUp, check, limited
from symgrad.errors import (
    DependencyError,
    Location,
    NotProvedError,
    RefusalError,
    ShapeError,
    SymgradError,
    UnreadyError,
    UnsupportedOpError,
    counted,
    is_limit,
)
from symgrad.ir.assume import Assumption, check_square, narrowed
from symgrad.ir.function import (
    FunctionCase,
    FunctionGraphs,
    Gradient,
    SizeCondition,
    strongest,
)
from symgrad.ir.graph import Graph, Node, ancestors, input_names
from symgrad.ir.rewrite import rewrite
from symgrad.ops.record import get
from symgrad.proof import fixed_points
from symgrad.proof.held import as_written, held_subject, holds
from symgrad.proof.judge import vacuous
from symgrad.proof.judge.approximations import smoothed
from symgrad.proof.judge.boundaries import Boundary
from symgrad.proof.judge.calls import REAL, STATE, Calls, Trace, judge_calls
from symgrad.proof.judge.conditions import FoundCondition, find_conditions
from symgrad.proof.judge.decide import Judgement, beside, judge
from symgrad.proof.judge.demands import Raised, index_ranges, where_it_runs
from symgrad.proof.judge.directions import KIND as DIRECTIONS
from symgrad.proof.judge.directions import judge_declared
from symgrad.proof.judge.equality import OPEN_WHERE
from symgrad.proof.judge.initialised import vanishes
from symgrad.proof.judge.jvp import NAME as JVP
from symgrad.proof.judge.jvp import failed, judge_jvp
from symgrad.proof.judge.kinks import kinks
from symgrad.proof.judge.opinions import NAME as AUDIT
from symgrad.proof.judge.opinions import Opinions
from symgrad.proof.judge.protocol import (
    LINEAR,
    VARIANTS,
    findings,
    is_zero,
    structurally_linear,
    variants_agree,
)
from symgrad.proof.judge.tiny import without_inside
from symgrad.proof.oracle.refute import Counterexample
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.repair.diagnose import Diagnosis, diagnose
from symgrad.proof.repair.formulas import Formulas
from symgrad.proof.repair.suggest import Paste
from symgrad.proof.report.distinct import distinct
from symgrad.proof.report.records import (
    CaseReport,
    Condition,
    CounterexampleReport,
    Finding,
    InputReport,
    Report,
)
from symgrad.proof.report.verdict import (
    AGAINST,
    DIFFERS,
    FAILED,
    REFUSED,
    Verdict,
    failure,
    worst,
)  # fmt: skip
from symgrad.proof.scalars import uninterpreted
from symgrad.proof.second.order import NAME as SECOND_ORDER
from symgrad.proof.second.order import ONCE, second_order
from symgrad.proof.surrogates import Meant, surrogate
from symgrad.proof.words.snippet import counterexample_report


@dataclass(frozen=True)
class VerifyOptions:
    """How to verify.

    ``surrogate``: the traced function that backward is meant to be the derivative of, with the
    same inputs.  ``surrogates``: those of single gradients, by the names of their inputs.
    ``variants``: the same Function traced with other answers to what it asks about its call;
    ``untraced``: why these are not all, where they are not.  ``undefined``: for each pattern of
    cotangents that backward gets None for.  ``budget``: work for one normal form.  ``suggest``:
    look for a repair of what is refuted.  ``order``: 2 where the backward of the backward is judged
    as well, from ``histories``: the Function and its variants traced with what PyTorch would
    record.  ``paste``: tries repairs in the user's own text; ``explained``: what is known already
    of gradients that need none; ``repairs``: False of one that is meant to be what it is.
    ``calls``: traces other calls beside the cases; None where the code is plain.  ``wide``: traces
    the Function for float64.  ``asked``: conditions that were found by other calls; ``runs``: those
    on sizes for which some operation raises otherwise.
    ``pushes``: forward and its hand-written ``jvp`` traced on inputs and tangents, or why not;
    ``jvp_asks``: the code of that may keep something, or ask what no trace sees.
    ``audit``: evaluate both sides of what is PROVED at random points as well.  ``brief``: look for
    neither conditions nor reasons of what is refuted.
    """

    surrogate: FunctionGraphs | None = None
    surrogates: Mapping[str, FunctionGraphs] = field(default_factory=dict)
    variants: Sequence[FunctionGraphs] = ()
    untraced: str = ""
    undefined: Sequence[FunctionGraphs] = ()
    budget: int = GRADIENT_WORK
    suggest: bool = True
    order: int = 1
    histories: Sequence[FunctionGraphs] = ()
    paste: Paste | None = None
    explained: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    repairs: bool = True
    pushes: FunctionGraphs | SymgradError | None = None
    jvp_asks: bool = False
    audit: bool = False
    brief: bool = False
    calls: Trace | None = None
    wide: Callable[[], FunctionGraphs] | None = None
    asked: tuple[Condition, ...] = ()
    runs: frozenset[SizeCondition | Assumption | str] = frozenset()

    @property
    def declared(self) -> list[FunctionGraphs]:
        """All surrogates."""
        whole = [] if self.surrogate is None else [self.surrogate]
        return [*whole, *self.surrogates.values()]

    def meant(self, case: FunctionCase, name: str = "") -> FunctionCase | None:
        """The surrogate's case that holds in this one, where there is a surrogate.

        ``name``: of that gradient alone.  Raises UnsupportedOpError where it asks more about the
        sizes than the Function does.
        """
        surrogate = self.surrogates.get(name, self.surrogate)
        if surrogate is None:
            return None
        known = {*map(str, case.conditions)}
        for one in surrogate.cases:
            if known.issuperset(map(str, one.conditions)):
                return one
        raise UnsupportedOpError(
            "the surrogate asks about sizes that the Function does not ask about",
            location=surrogate.location, hint="write a surrogate without if on its sizes",
        )  # fmt: skip


@dataclass(frozen=True)
class JudgedCase:
    """A case with its subject and judgements.

    ``true_subject``: with a surrogate, the same gradients against the forward itself.
    ``alone``: the subjects of gradients with surrogates of their own, by name.
    """

    case: FunctionCase
    subject: Subject
    judgements: Mapping[str, Judgement]
    true_subject: Subject | None = None
    alone: Mapping[str, Subject] = field(default_factory=dict)

    def subject_for(self, name: str) -> Subject:
        """The subject in which a gradient was judged."""
        return self.alone.get(name, self.subject)


@np.errstate(all="ignore")
def verify_function(graphs: FunctionGraphs, options: VerifyOptions | None = None) -> Report:
    """Judge the backward of a traced Function, input by input.

    What the judge itself fails at is UNDECIDED, with the reason.  Raises SpecError for an
    assumption that does not fit the shapes, ShapeError for a surrogate of other shapes.
    """
    try:
        return _verified(graphs, options or VerifyOptions())
    except SymgradError:
        raise
    except (Exception, TimeUp) as error:  # whatever it is, it is no verdict
        return _failed(graphs, failure(error))


def _calls(graphs: FunctionGraphs, declared: Sequence[Assumption], options: VerifyOptions) -> Calls:
    """What other calls beside the judged one show."""
    if options.calls is None:
        return Calls()

    def judge_other(case: FunctionCase) -> Finding | None:
        if case.problem is not None:
            return Finding(REAL, Verdict.UNDECIDED, f"backward fails: {case.problem}")
        one = JudgedCase(case, subject := subject_of(case, declared), judge_declared(subject))
        for name, outcome in one.judgements.items():
            if outcome.verdict is not Verdict.PROVED:
                point = shown(one, outcome.counterexample)
                said = f"the gradient of {name} is wrong: {point or outcome.reason}"
                return Finding(REAL, outcome.verdict, said, point)
        return None

    return judge_calls(graphs, options.calls, judge_other)


def _stateful(graphs: FunctionGraphs, findings: Sequence[Finding]) -> Report:
    """The report on a Function whose calls see each other: its gradients are those of no call."""
    verdict, text, point = findings[0].verdict, findings[0].text, findings[0].counterexample
    inputs = {name: InputReport(name, verdict, text) for name in graphs.differentiable}
    if point is not None:  # which is of one input alone
        wrong = point.element.removeprefix("grad_").partition("[")[0]
        said = text.replace(f": {point}", "")
        inputs = {name: InputReport(name, Verdict.UNDECIDED, said) for name in inputs}
        inputs[wrong] = InputReport(wrong, verdict, said, counterexample=point)
    return Report(
        name=graphs.name,
        location=graphs.location,
        inputs=inputs,
        protocol=tuple(findings),
        values=graphs.texts,
        derived=graphs.derived,
    )


def _failed(graphs: FunctionGraphs, reason: str) -> Report:
    """The report where nothing could be judged."""
    places = {g.input: g.location for case in graphs.cases for g in case.gradients}
    return Report(
        name=graphs.name,
        location=graphs.location,
        inputs={
            name: InputReport(
                name, Verdict.UNDECIDED, reason, location=places.get(name) or graphs.location
            )
            for name in graphs.differentiable
        },
        protocol=(Finding("the verdict", Verdict.UNDECIDED, reason),),
        values=graphs.texts,
        derived=graphs.derived,
    )


def _verified(graphs: FunctionGraphs, options: VerifyOptions) -> Report:
    declared = graphs.assumptions
    options, failing = without_failing(graphs, options)
    for case in graphs.cases:
        check_square(declared, {str(node.attributes["name"]): node.shape for node in case.inputs})
        if case.relations:
            vacuous.check(subject_of(case, declared))
    calls = _calls(graphs, declared, options)
    if any(finding.name == STATE for finding in calls.findings):
        return _stateful(graphs, calls.findings)
    traced = (graphs, *options.variants, *options.undefined)
    observed = _observed(traced) or _unwritten(traced)
    if observed:
        return _failed(graphs, observed)
    pushes = [options.pushes] if isinstance(options.pushes, FunctionGraphs) else []
    raised = Raised([*traced, *pushes, *options.declared], subject_of)
    if raised.reason:
        return _failed(graphs, raised.reason)
    if calls.wide and options.wide is not None:
        wide = replace(options.wide(), told=_WIDE)
        options = replace(options, variants=(*options.variants, wide))
    asked = (*calls.conditions, *failing, *raised.conditions)
    options = replace(options, asked=asked, runs=raised.known)
    judged = [_judge_case(case, declared, options) for case in graphs.cases]
    inputs = input_reports(graphs, judged, declared, options)
    protocol = _protocol(graphs, judged, inputs, calls.findings, options)
    return Report(
        name=graphs.name,
        location=graphs.location,
        inputs=inputs,
        values=graphs.texts,
        quantified=tuple(
            f"all real {name}" for name in _plain_numbers(declared) if name in graphs.input_names
        ),
        derived=graphs.derived,
        protocol=tuple(protocol),
        notes=tuple(_notes(graphs, options, judged)),
        domain=_domain(judged),
        details={"formulas": Formulas([one.subject for one in judged])},
    )


def _protocol(
    graphs: FunctionGraphs, judged: Sequence[JudgedCase], inputs: Mapping[str, InputReport],
    calls: Sequence[Finding], options: VerifyOptions,
) -> list[Finding]:  # fmt: skip
    """What holds of backward whatever it computes, of other calls, of second order and ``jvp``.

    ``calls``: what is known of other calls.
    """
    declared = graphs.assumptions
    protocol = [*calls]
    printed = frozenset(condition for one in inputs.values() for condition in one.conditions)
    if any(case.problem is None for case in graphs.cases):
        subjects = [one.subject for one in judged if one.judgements]
        judgements = [one.judgements for one in judged]
        found = _found("protocol", lambda: findings(graphs.cases, subjects, judgements))
        found += _other_calls(graphs, judged, options, declared, printed)
        protocol += _as_meant(found, worst(one.verdict for one in inputs.values()))
    opinions = Opinions() if options.audit else None
    protocol += _found(JVP, lambda: _pushes(options, declared, opinions))
    if options.order > 1:
        verdicts = [*(one.verdict for one in inputs.values()), *(one.verdict for one in protocol)]
        first = worst(verdicts)
        protocol += _found(
            SECOND_ORDER, lambda: [_twice(graphs, options, declared, first, printed, opinions)]
        )
    if opinions is not None:
        protocol += _found(AUDIT, lambda: _hear(opinions, graphs, judged, declared, options))
        protocol += opinions.finding()
    return protocol


def _as_meant(found: Sequence[Finding], gradients: Verdict) -> list[Finding]:
    """What is meant where the gradients are a surrogate's.

    A backward that is not linear: clipped, for example; and one that is another surrogate's for
    float64, with whose precision forward computes.
    """
    meant = gradients is Verdict.SURROGATE
    return [
        replace(one, verdict=Verdict.SURROGATE)
        if meant and one.verdict is Verdict.REFUTED
        and (one.name == LINEAR or one.text.endswith(f" where {_WIDE}")) else one
        for one in found
    ]  # fmt: skip


_WIDE = "float inputs have 64 bits"


def _other_calls(
    graphs: FunctionGraphs, judged: Sequence[JudgedCase], options: VerifyOptions,
    declared: Sequence[Assumption], printed: frozenset[Condition],
) -> list[Finding]:  # fmt: skip
    """Findings on calls in which other inputs require gradients or cotangents are absent."""
    wrong = {
        name for one in judged for name, found in one.judgements.items()
        if found.verdict is not Verdict.PROVED
    }  # fmt: skip
    return [
        *_found(
            VARIANTS,
            lambda: variants_agree(
                graphs,
                options.variants,
                partial(_judge_some, declared, options),
                printed,
                options.untraced,
                partial(_in_a_call, declared, options),
                wrong,
            ),
        ),
        *_found(
            UNDEFINED,
            lambda: with_none(
                graphs, options.undefined,
                lambda variant, number, case: _judge_case(case, declared, options),
                printed,
                judged,
            ),
        ),
    ]  # fmt: skip


def _observed(traced: Sequence[FunctionGraphs]) -> str:
    """What the program asks that has no answer for all calls, and where; empty for nothing."""
    asked = dict.fromkeys(
        str(one)
        for graphs in traced for case in graphs.cases for one in (*case.observed, *case.state)
    )  # fmt: skip
    if not asked:
        return ""
    return f"the program may do something else in a real call: {'; '.join(asked)}"


def _unwritten(traced: Sequence[FunctionGraphs]) -> str:
    """Who reads memory that nobody wrote, and where; empty where it is shown that nobody does."""
    for graphs in traced:
        for case in graphs.cases:
            if not case.unwritten:
                continue
            subject = subject_of(case, graphs.assumptions)
            for one in case.unwritten:
                if not vanishes(subject, one.node):
                    return f"{one.asked}, as far as is shown: make it with zeros"
    return ""


def _found(name: str, findings: Callable[[], list[Finding]]) -> list[Finding]:
    """Findings; where finding them fails, or takes too long, one that says so."""
    try:
        with deadline.step(f"{name} was judged"):
            return findings()
    except SymgradError:
        raise
    except (Exception, TimeUp) as error:  # whatever it is, it is no verdict
        return [Finding(name, Verdict.UNDECIDED, failure(error))]


def _pushes(
    options: VerifyOptions, declared: Sequence[Assumption], opinions: Opinions | None
) -> list[Finding]:
    """The finding on a hand-written ``jvp``, where there is one."""
    if options.pushes is None:
        return []
    if isinstance(options.pushes, SymgradError):
        return [failed(options.pushes)]
    found = judge_jvp(
        options.pushes, declared, options.runs, budget=options.budget, opinions=opinions
    )
    if found.verdict is Verdict.PROVED and options.jvp_asks:
        said = "its code may keep something for a later call, or ask what no trace sees"
        found = replace(found, verdict=Verdict.UNDECIDED, text=said)
    return [found]


# -- a second opinion on what is proved


def _hear(
    opinions: Opinions, graphs: FunctionGraphs, judged: Sequence[JudgedCase],
    declared: Sequence[Assumption], options: VerifyOptions,
) -> list[Finding]:  # fmt: skip
    """Opinions on all gradients that are PROVED, on those of backward without cotangents too."""
    cases = [(one, "") for one in judged]
    for variant in options.undefined:
        for case in variant.cases:
            one = _judge_case(case, declared, options)
            cases.append((one, f" with {' and '.join(_absent(graphs, case))} = None"))
    for one, where in cases:
        hear(opinions, one, where)
    return []


def hear(opinions: Opinions, one: JudgedCase, where: str = "") -> None:
    """An opinion on the gradients of a case."""
    sizes = " and ".join(map(str, strongest(one.case.conditions)))
    apart: dict[Subject, dict[str, Judgement]] = {}
    for name, outcome in one.judgements.items():
        apart.setdefault(one.subject_for(name), {})[name] = outcome
    for subject, outcomes in apart.items():
        opinions.on_gradients(
            subject, outcomes, f"{f' ({sizes})' if sizes else ''}{where}",
            show=lambda found: shown(one, found),
        )  # fmt: skip


def _twice(
    graphs: FunctionGraphs, options: VerifyOptions, declared: Sequence[Assumption], first: Verdict,
    printed: Collection[Condition], opinions: Opinions | None,
) -> Finding:  # fmt: skip
    """The finding on the backward of the backward.

    ``first``: the verdict of first order; ``printed``: the conditions beside it.
    """
    if graphs.once:
        return Finding(SECOND_ORDER, Verdict.REFUTED, f"there is none: backward {ONCE}")
    if graphs.derived:
        return Finding(SECOND_ORDER, Verdict.PROVED, "the derived backward keeps every dependence")
    equalities = [one.text for case in graphs.cases for one in case.relations if one.kind == "=="]
    if equalities:
        said = f"backward need not be right beside the points where {equalities[0]}, and so its"
        return Finding(SECOND_ORDER, Verdict.UNDECIDED, f"{said} derivative there is not judged")
    if first > Verdict.UNDECIDED:
        said = "not judged, since the backward itself is wrong"
        return Finding(SECOND_ORDER, Verdict.UNDECIDED, said)
    along = any(one.kind == DIRECTIONS for one in printed)
    trusted = first is Verdict.PROVED and not options.declared and not along
    return second_order(
        options.histories, declared, trusted=trusted, budget=options.budget, printed=printed,
        opinions=opinions,
    )  # fmt: skip


def _judge_case(
    case: FunctionCase, declared: Sequence[Assumption], options: VerifyOptions
) -> JudgedCase:
    meant = options.meant(case)
    if meant is not None and fixed_points.unknown_of(meant) is not None and case.problem is None:
        with deadline.part(PROOF_SHARE):
            ways = [replace(one, conditions=case.conditions) for one in case.ways] or [case]
            step, judgements = fixed_points.judged(ways, meant, declared, options.budget)
        return JudgedCase(case, step, judgements)
    runs = where_it_runs(case, options.runs)
    subject = subject_of(runs, declared, meant)
    true_subject = subject_of(runs, declared) if options.declared else None
    judged = case.problem is None and subject.gradients
    with deadline.part(PROOF_SHARE):
        if judged and options.surrogates:
            alone = _judged_alone(runs, declared, options)
            found = {name: alone[name][1] for name in subject.gradients}
            apart = {name: one for name, (one, _) in alone.items()}
            return JudgedCase(case, subject, found, true_subject, apart)
        found = judge_declared(subject, budget=options.budget) if judged else {}
    return JudgedCase(case, subject, found, true_subject)


def _judged_alone(
    case: FunctionCase, declared: Sequence[Assumption], options: VerifyOptions
) -> dict[str, tuple[Subject, Judgement]]:
    """Gradients with surrogates of their own, each in its subject, and the others in another."""
    found: dict[str, tuple[Subject, Judgement]] = {}
    for only in ("", *options.surrogates):
        subject = subject_of(case, declared, options.meant(case, only))
        subject.gradients = {
            name: node for name, node in subject.gradients.items()
            if (name == only if only else name not in options.surrogates)
        }  # fmt: skip
        if subject.gradients:
            outcomes = judge_declared(subject, budget=options.budget)
            found |= {name: (subject, one) for name, one in outcomes.items()}
    return found


def _judge_some(
    declared: Sequence[Assumption],
    options: VerifyOptions,
    case: FunctionCase,
    names: Sequence[str],
) -> Mapping[str, Judgement]:
    """Judge some gradients of a case."""
    if not names:
        return {}
    subject = subject_of(where_it_runs(case, options.runs), declared)
    subject.gradients = {name: subject.gradients[name] for name in names}
    return judge_declared(subject, budget=options.budget)


def _in_a_call(
    declared: Sequence[Assumption], options: VerifyOptions, case: FunctionCase, judged: Judgement
) -> CounterexampleReport | None:
    """The point of a refutation for cotangents that are numbers: a call can be made of it."""
    if not case.expanded:
        return None
    ran = where_it_runs(case, options.runs)
    return shown(JudgedCase(ran, subject_of(ran, declared), {}), judged.counterexample)


def proved_under(
    graphs: FunctionGraphs, name: str, options: VerifyOptions,
    modes: Mapping[str, str] | None = None,
) -> tuple[Condition, ...] | None:  # fmt: skip
    """The conditions that a report prints beside a gradient that is PROVED in all cases.

    None where it is not PROVED.  ``modes``: those in which another backward of the same forward
    was judged.
    """
    if _observed([graphs]):
        return None
    declared = graphs.assumptions
    judge_one = partial(
        judge, budget=min(options.budget, REPAIR_WORK), screen=CONDITION_SCREEN,
        total=REPAIR_TOTAL_WORK,
    )  # fmt: skip
    judged = []
    for case in graphs.cases:
        meant = options.meant(case, name)
        if case.problem is not None or (meant and fixed_points.unknown_of(meant) is not None):
            return None
        subject = subject_of(where_it_runs(case, options.runs), declared, meant)
        if name not in subject.gradients:
            return None
        subject.gradients = {name: subject.gradients[name]}
        subject.settle_as(modes or {})
        one = JudgedCase(case, subject, judge_one(subject))
        if one.judgements[name].verdict is not Verdict.PROVED:
            return None
        judged.append(one)
    known = [(one, one.judgements[name]) for one in judged]
    conditions = _stated(graphs, known[0][0].subject, known, declared, options)
    return distinct([*conditions, *_kinks(judged, name, conditions)])


def subject_of(
    case: FunctionCase, declared: Sequence[Assumption], surrogate: FunctionCase | None = None
) -> Subject:
    """The subject of a case; a gradient that backward left None is judged as zero.

    ``surrogate``: whose outputs the gradients are judged against, in place of forward's.  Raises
    ShapeError where they have other shapes.
    """
    graph, new, gradients, drawn = _copied_case(case, declared)
    declared = [*narrowed(declared, case.bounds), *drawn.values()]
    outputs = [new[node] for node in case.outputs]
    if surrogate is not None:
        outputs = _surrogate_outputs(case, surrogate, graph, new)
    pairs = [
        (node, new[cotangent])
        for node, cotangent in zip(outputs, case.cotangents, strict=True)
        if cotangent is not None
    ]
    subject = Subject(
        graph, [*(new[node] for node in case.inputs), *drawn], pairs, gradients,
        conditions=case.conditions, assumptions=declared,
        relations=[one.put(new) for one in case.relations],
    )  # fmt: skip
    if holds([node for node, _ in pairs]):
        subject = held_subject(subject)
    subject.saved = tuple(new[node] for node in case.saved)
    subject.demand([replace(one, node=new[one.node]) for one in case.demanded])
    subject.copies = new
    subject.returned = {
        gradient.input: new[gradient.returned]
        for gradient in case.gradients
        if gradient.problem is not None and gradient.returned is not None
    }
    return subject


def _copied_case(
    case: FunctionCase, declared: Sequence[Assumption]
) -> tuple[Graph, dict[Node, Node], dict[str, Node], dict[Node, Assumption]]:
    given = [g.node for g in case.gradients if g.node is not None]
    cotangents = [node for node in case.cotangents if node is not None]
    returned = [g.returned for g in case.gradients if g.returned is not None]
    stated = [node for one in case.relations for node in one.nodes]
    stated += [one.node for one in case.demanded]
    roots = [*case.inputs, *case.outputs, *cotangents, *case.saved, *given, *returned, *stated]
    graph = Graph()
    drawn: dict[Node, Assumption] = {}

    def rule(node: Node, args: Sequence[Node]) -> Node | None:
        if node.op != "draw":
            return None
        name = f"draw_{node.attributes['number']}"
        while name in names:
            name += "_"
        made = graph.input(name, node.type)
        drawn[made] = _of_draw(name, node.attributes["kind"])
        return made

    names = {*input_names(roots)}
    new = rewrite(graph, roots, rule=rule)
    inputs = {node.attributes["name"]: node for node in case.inputs}
    constant = {a.name for a in declared if a.kind == "constant"}
    gradients: dict[str, Node] = {}
    for gradient in case.gradients:
        if gradient.problem is not None:
            continue
        if gradient.node is not None:
            gradients[gradient.input] = new[gradient.node]
        elif gradient.input not in constant:
            gradients[gradient.input] = graph.lift(0.0, new[inputs[gradient.input]])
    return graph, new, gradients, drawn


def _of_draw(name: str, kind: str) -> Assumption:
    """What is known of a random draw."""
    if kind == "unit":
        low, high = Fraction(0), Fraction(1)
        return Assumption(name, "interval", "[0, 1)", low, high, low_open=False, high_open=True)
    return Assumption(name, "binary" if kind == "binary" else "constant", kind)


def _draws(graphs: FunctionGraphs) -> list[str]:
    """What is drawn at random, and what is taken for granted of it."""
    kinds: dict[str, None] = {}
    where: dict[str, None] = {}
    for case in graphs.cases:
        given = [one.node for one in case.gradients if one.node is not None]
        for node in ancestors([*case.outputs, *given]):
            if node.op == "draw":
                kinds[_DRAWN[node.attributes["kind"]]] = None
                where[str(node.location)] = None
    if not kinds:
        return []
    return [
        f"random numbers are taken for unknowns, each {' or '.join(kinds)}, the same ones wherever "
        f"a draw is kept: the verdict is for all draws ({', '.join(where)})"
    ]


_DRAWN = {"unit": "in [0, 1)", "binary": "0 or 1", "real": "any number"}


def _surrogate_outputs(
    case: FunctionCase, surrogate: FunctionCase, graph: Graph, new: Mapping[Node, Node]
) -> list[Node]:
    """The outputs of the surrogate on the inputs of a case.  Raises ShapeError."""
    inputs = {node.attributes["name"]: new[node] for node in case.inputs}
    known = {node: inputs[node.attributes["name"]] for node in surrogate.inputs}
    copies = rewrite(graph, surrogate.outputs, known)
    outputs = [copies[node] for node in surrogate.outputs]
    if len(outputs) != len(case.outputs):
        raise ShapeError(
            f"the surrogate has {counted(len(outputs), 'output')}, forward has {len(case.outputs)}",
            hint="let the surrogate take what forward takes and return as many tensors",
        )
    for node, own in zip(outputs, case.outputs, strict=True):
        if node.shape != own.shape:
            raise ShapeError(f"the surrogate's output is {node.type}, forward's is {own.type}")
    return outputs


def _domain(judged: Sequence[JudgedCase]) -> str:
    symbols = sorted({name for one in judged for name in one.subject.sampler.symbols})
    reals = "over the reals"
    return f"for all {', '.join(symbols)} >= 1, {reals}" if symbols else reals


def _notes(
    graphs: FunctionGraphs, options: VerifyOptions, judged: Sequence[JudgedCase]
) -> list[str]:
    notes = _draws(graphs)
    for case in graphs.refused:
        sizes = " and ".join(map(str, strongest(case.conditions))) or "any sizes"
        notes.append(f"forward does not accept {sizes}: {case.reason.what}")
    if not graphs.differentiable:
        notes.append("no input has a gradient: nothing was judged")
    elif all(one is None for case in graphs.cases for one in case.cotangents):
        notes.append(
            "no output of forward has a gradient (they are integers, or ctx.mark_non_differentiable"
            " names them): backward is never called"
        )
    for name in dict.fromkeys(name for case in graphs.cases for name in case.surplus):
        notes.append(
            f"{name} is not a float tensor: the gradient that backward returns for it is ignored"
        )
    if options.surrogate is not None:
        notes.append(AGAINST)
    for name in options.surrogates:
        notes.append(f"the gradient of {name} is {AGAINST}")
    if options.declared:
        notes += _surrogate_notes(judged, options.surrogates)
    return notes


def _surrogate_notes(judged: Sequence[JudgedCase], names: Collection[str]) -> list[str]:
    """Where a surrogate's derivative is not the true one; of the gradients ``names`` alone."""
    notes = []
    for one in judged:
        if one.true_subject is None or not one.judgements:
            continue
        try:
            true = judge(one.true_subject)
        except SymgradError:
            continue
        for name, judgement in true.items():
            if names and name not in names:
                continue
            if judgement.counterexample is not None:
                found = judgement.counterexample
                notes.append(
                    f"{DIFFERS}, for example at {found.element}: "
                    f"{found.hand_text} instead of {found.true_text}"
                )
            elif judgement.verdict is Verdict.PROVED:
                notes.append(f"for {name} it is the true derivative")
    return list(dict.fromkeys(notes))


# -- the report on each input


def input_reports(
    graphs: FunctionGraphs,
    judged: Sequence[JudgedCase],
    declared: Sequence[Assumption],
    options: VerifyOptions,
) -> dict[str, InputReport]:
    """The report of every differentiable input, in order.

    What a refuted gradient is the derivative of is asked first: where that is known, no repair is.
    """
    constant = {assumption.name for assumption in declared if assumption.kind == "constant"}
    known = {name: [outcome_of(one, name) for one in judged] for name in graphs.differentiable}
    meant = {} if options.declared else _meant(known, judged)
    reports: dict[str, InputReport] = {}
    for name, outcomes in known.items():
        if all(outcome is None for outcome in outcomes) and name in constant:
            continue
        own = replace(options, repairs=name not in meant)
        try:
            with deadline.step(f"conditions for {name} were looked for"):
                reports[name] = _report(graphs, name, judged, outcomes, declared, own)
        except DependencyError:
            raise
        except (Exception, TimeUp) as error:  # a verdict without its conditions is none
            reports[name] = _unreported(graphs, name, outcomes, error)
        if name in meant:
            reports[name] = _as_surrogate(reports[name], meant[name])
    return reports


def _unreported(
    graphs: FunctionGraphs,
    name: str,
    outcomes: Iterable[Judgement | None],
    error: BaseException,
) -> InputReport:
    """What is left where the report on an input cannot be made: nothing that passes."""
    known = [outcome for outcome in outcomes if outcome is not None]
    verdict = max(worst(outcome.verdict for outcome in known), Verdict.UNDECIDED)
    said = next((one.reason for one in known if one.verdict is verdict), "") or failure(error)
    return InputReport(name, verdict, reason=said, location=graphs.location)


def outcome_of(one: JudgedCase, name: str) -> Judgement | None:
    """The judgement of an input in a case, also where backward gave nothing to judge."""
    if name in one.judgements:
        return one.judgements[name]
    if isinstance(one.case.problem, UnreadyError):
        said = f"{one.case.problem.what}, {one.case.problem.location}"
        said += f"; {one.case.problem.hint}" if one.case.problem.hint else ""
        return Judgement(Verdict.UNDECIDED, reason=said)
    if one.case.problem is not None:
        verdict = Verdict.UNDECIDED if is_limit(one.case.problem) else Verdict.REFUTED
        why = REFUSED if isinstance(one.case.problem, RefusalError) else FAILED
        return Judgement(verdict, reason=f"{why}: {one.case.problem}")
    gradient = _gradient(one, name)
    if gradient is not None and gradient.problem is not None:
        return Judgement(Verdict.REFUTED, reason=gradient.problem.what)
    return None


def _gradient(one: JudgedCase, name: str) -> Gradient | None:
    return next((g for g in one.case.gradients if g.input == name), None)


def _blamed(one: JudgedCase, gradient: Gradient | None) -> Location | None:
    """The line that made a gradient, or at which backward failed."""
    if one.case.problem is not None:
        return one.case.problem.location
    return None if gradient is None else gradient.location


def _report(
    graphs: FunctionGraphs,
    name: str,
    judged: Sequence[JudgedCase],
    outcomes: Sequence[Judgement | None],
    declared: Sequence[Assumption],
    options: VerifyOptions,
) -> InputReport:
    known = [(one, o) for one, o in zip(judged, outcomes, strict=True) if o is not None]
    if not known:
        return InputReport(name, Verdict.UNDECIDED, "there is no gradient to judge")
    chosen, decided = max(
        known, key=lambda pair: (pair[1].verdict, pair[1].counterexample is not None)
    )
    verdict = decided.verdict
    conditions = _stated(graphs, chosen.subject_for(name), known, declared, options)
    gradient = _gradient(chosen, name)
    diagnosis = Diagnosis()
    if verdict is Verdict.REFUTED:
        found, diagnosis = _explained(chosen, name, decided, options)
        conditions += [Condition("found", str(condition)) for condition in found]
    elif verdict is Verdict.UNDECIDED:
        found = _elsewhere(chosen, name, decided, options)
        conditions += [Condition("found", str(condition)) for condition in found]
    else:
        conditions += _kinks(judged, name, conditions)
    return InputReport(
        name=name,
        verdict=verdict,
        reason=decided.reason,
        method=decided.method,
        conditions=distinct(conditions),
        counterexample=shown(chosen, decided.counterexample),
        diagnosis=diagnosis.words,
        suggestion=diagnosis.suggestion,
        suggested_under=(
            *(one for one in diagnosis.conditions if one not in conditions),
            *(Condition("value", f"{name} = {text}") for name, text in graphs.texts),
        ),
        derived=diagnosis.derived,
        derived_but=diagnosis.derived_but,
        location=_blamed(chosen, gradient) or graphs.location,
        cases=tuple(
            CaseReport(
                " and ".join(map(str, strongest(one.case.conditions))) or "always",
                outcome.verdict,
                outcome.reason,
                outcome.method,
                _of_case(one, name, outcome, conditions),
            )
            for one, outcome in known
        ),
    )


def _meant(
    outcomes: Mapping[str, Sequence[Judgement | None]], judged: Sequence[JudgedCase]
) -> dict[str, Mapping[str, Meant]]:
    """What refuted gradients are the derivatives of, by its words, of those where that is known.

    All are looked at together.  Where that fails, what one of them is alone is said only beside
    another one that is a mistake: two names are none.
    """
    wrong = [
        name for name, own in outcomes.items()
        if any(one is not None and one.verdict is Verdict.REFUTED for one in own)
    ]  # fmt: skip
    meant: dict[str, Mapping[str, Meant]] = {}
    try:
        with limited(SURROGATE_SECONDS):
            together = _recognised(wrong, judged)
            meant = {name: together for name in wrong if together}
            if len(wrong) > 1 and not together:
                alone = {name: _recognised([name], judged, alone=True) for name in wrong}
                if not all(alone.values()):
                    meant = {name: own for name, own in alone.items() if own}
    except DependencyError:
        raise
    except (Exception, TimeUp):  # the refutation stands without it, also where no time is left
        pass
    return meant


def _recognised(
    names: Sequence[str], judged: Sequence[JudgedCase], *, alone: bool = False
) -> dict[str, Meant]:
    """What gradients are the derivatives of in the cases in which they are wrong, by its words.

    Nothing where that is not known for all of these cases.
    """
    known: dict[str, Meant] = {}
    for one in judged:
        own = [name for name in names if not _passes(one, name)]
        if not own:
            continue
        found = _surrogate(own, one, alone=alone) if {*own} <= {*one.judgements} else None
        if found is None:
            return {}
        known[found.text] = found
    return known


def _as_surrogate(report: InputReport, known: Mapping[str, Meant]) -> InputReport:
    codes = {one.codes.get(report.name, one.code) for one in known.values()}
    facts = dict.fromkeys(fact for one in known.values() for fact in one.facts)
    fixed = dict.fromkeys(name for one in known.values() for name in one.fixed)
    return replace(
        report, verdict=Verdict.SURROGATE, surrogate=" or ".join(known),
        surrogate_code="" if len(codes) > 1 else codes.pop(),
        surrogate_facts=tuple(facts), surrogate_fixed=tuple(fixed), suggestion=None,
    )  # fmt: skip


def _surrogate(names: Sequence[str], one: JudgedCase, *, alone: bool = False) -> Meant | None:
    subject = one.subject
    return surrogate(
        one.case, names, subject.assumptions, subject.sampler.modes, subject_of, recognised=alone
    )


def _passes(one: JudgedCase, name: str) -> bool:
    outcome = outcome_of(one, name)
    return outcome is None or bool(outcome.verdict)


def _stated(
    graphs: FunctionGraphs, subject: Subject, known: Iterable[tuple[JudgedCase, Judgement]],
    declared: Sequence[Assumption], options: VerifyOptions,
) -> list[Condition]:  # fmt: skip
    """What the verdicts on an input rest on in all cases, but for the kinks of forward.

    ``subject``: of the case that decides.
    """
    return [
        *_declared(graphs),
        *index_ranges(subject, declared),
        *_axioms(subject),
        *_assumed(graphs, options),
        *(condition for _, outcome in known for condition in outcome.conditions),
    ]


def _of_case(
    one: JudgedCase, name: str, outcome: Judgement, printed: Sequence[Condition]
) -> tuple[Condition, ...]:  # fmt: skip
    """What a case is proved under that is not printed for all cases."""
    if outcome.verdict is not Verdict.PROVED:
        return ()
    found = [*outcome.conditions, *_kinks([one], name, outcome.conditions)]
    known = distinct(printed)
    return tuple(one for one in distinct([*known, *found]) if one not in known)


def _kinks(
    judged: Iterable[JudgedCase], name: str, printed: Iterable[Condition]
) -> list[Condition]:
    """The kinks of forward on sets that no other condition leaves out."""
    known = {one.code for one in printed if one.excepted and one.code}
    read = any(one.kind == "reading" for one in printed)
    pairs = [
        (subject, _smooth(one, name)) if (subject := one.subject_for(name)).apart is None
        else (subject.apart, frozenset())
        for one in judged
    ]  # fmt: skip
    found = [
        kink for subject, smooth in pairs
        for kink in kinks((smoothed(subject) if read else None) or subject, name, smooth)
    ]  # fmt: skip
    return without_inside((one for one in found if one.code not in known), printed)


def _smooth(one: JudgedCase, name: str) -> frozenset[Boundary]:
    return one.judgements[name].smooth if name in one.judgements else frozenset()


def _explained(
    chosen: JudgedCase, name: str, decided: Judgement, options: VerifyOptions
) -> tuple[Sequence[FoundCondition], Diagnosis]:
    """Under which conditions a refuted gradient is right, what is wrong with it, and a repair.

    One that is left out is right where its input has no influence, which nobody need be told.  The
    refutation stands without them: where looking for them fails, the report says so.
    """
    found: Sequence[FoundCondition] = ()
    if options.brief or chosen.subject_for(name).apart is not None:
        return found, Diagnosis()
    try:
        written = _gradient(chosen, name)
        if name in chosen.judgements and not (written is not None and written.node is None):
            refuted = [one for one in chosen.judgements.values() if one.verdict is Verdict.REFUTED]
            share = max(CONDITION_SECONDS / len(refuted or [name]), LEAST_CONDITION_SECONDS)
            seconds = min(CONDITION_SECONDS, share)
            found = _conditions(chosen.subject_for(name), name, decided, options, seconds)
        if not options.suggest or name in options.explained:
            return found, Diagnosis(options.explained.get(name, ()))
        return found, diagnose(
            chosen.subject_for(name), name, _gradient(chosen, name), chosen.case,
            budget=options.budget, paste=options.paste, counterexample=decided.counterexample,
            repairs=options.repairs and not chosen.case.selected,
        )  # fmt: skip
    except DependencyError:
        raise
    except (Exception, TimeUp) as error:  # whatever it is, the report says it
        return found, Diagnosis((f"no explanation was found: {failure(error)}",))


def _elsewhere(
    chosen: JudgedCase, name: str, decided: Judgement, options: VerifyOptions
) -> Sequence[FoundCondition]:
    """Under which conditions a gradient is right that is open in a region alone."""
    if options.brief or OPEN_WHERE not in decided.reason:
        return ()
    try:
        return _conditions(chosen.subject_for(name), name, decided, options, CONDITION_SECONDS)
    except DependencyError:
        raise
    except (Exception, TimeUp):  # it is UNDECIDED without them, also where no time is left
        return ()


def _conditions(
    subject: Subject, name: str, decided: Judgement, options: VerifyOptions, seconds: float
) -> Sequence[FoundCondition]:
    """Under which conditions a gradient is right, as far as so many seconds allow.

    The true gradient and the repair, which come after it, are of more use.
    """
    try:
        with limited(seconds):
            return find_conditions(subject, name, decided, budget=options.budget)
    except TimeUp:
        check()  # was it the limit of the verdict?
        return ()


def _declared(graphs: FunctionGraphs) -> Iterator[Condition]:
    """What was declared; of plain numbers the verdict itself says for which values it holds."""
    plain = _plain_numbers(graphs.assumptions)
    for one in graphs.assumptions:
        implied = one.name in plain and one.kind in ("constant", "plain")
        if not implied and (one.name in graphs.input_names or one.name not in plain):
            yield Condition("declared", str(one), code=one.code)


def _plain_numbers(declared: Sequence[Assumption]) -> list[str]:
    return [one.name for one in declared if one.kind == "plain"]


def _assumed(graphs: FunctionGraphs, options: VerifyOptions) -> list[Condition]:
    """What the program asks of its call that is taken to be so."""
    return [*options.asked] + [
        Condition("asked", str(one))
        for traced in (graphs, *options.variants, *options.undefined)
        for case in traced.cases for one in case.assumed
    ]  # fmt: skip


def _axioms(subject: Subject) -> list[Condition]:
    """What was declared of functions that came with C of their own."""
    nodes = subject.everything.nodes
    found = [Condition("axiom", one.axiom) for one in uninterpreted.among(nodes)]
    return found + [Condition("axiom", said) for said in uninterpreted.meanings(nodes)]


def shown(one: JudgedCase, found: Counterexample | None) -> CounterexampleReport | None:
    """A counterexample as a report shows it; None for None."""
    if found is None:
        return None
    subject = one.subject_for(found.input)
    return counterexample_report(
        subject, as_written(subject, found), f"grad_{found.element}", one.case.conditions,
        one.case.aliases, one.case.cotangents,
    )  # fmt: skip


# -- backward without the cotangents of some outputs, where it is given None for them.  PyTorch
# gives zeros for the cotangent of an output that nobody used, or None, if forward said
# ``ctx.set_materialize_grads(False)``.  Backward may then take another way for each pattern.  It
# gets None for all outputs where a Function that is applied to these gives None for each; the
# gradient is 0 then.  Backwards that raise there are common: that is a condition of the verdict.


UNDEFINED = "None for outputs that are not used"

Pattern = tuple[bool, ...]


def without_failing(
    graphs: FunctionGraphs, options: VerifyOptions
) -> tuple[VerifyOptions, list[Condition]]:
    """Leave out that backward raises where all cotangents are None, and the condition for that."""

    def fails(case: FunctionCase) -> bool:
        raised = case.problem is not None and not is_limit(case.problem)
        return raised and not _given(case)

    kept = [
        replace(variant, cases=tuple(case for case in variant.cases if not fails(case)))
        for variant in options.undefined
    ]
    if [variant.cases for variant in kept] == [variant.cases for variant in options.undefined]:
        return options, []
    single = all(len(_given(case)) == 1 for case in graphs.cases)
    said = "the incoming gradient is not None" if single else "not all incoming gradients are None"
    left = tuple(variant for variant in kept if variant.cases)
    return replace(options, undefined=left), [Condition("asked", f"{said} (backward fails then)")]


def with_none(
    graphs: FunctionGraphs, variants: Sequence[FunctionGraphs],
    judge_case: Callable[[FunctionGraphs, int, FunctionCase], JudgedCase],
    printed: Collection[Condition] = (), judged_whole: Sequence[JudgedCase] = (),
) -> list[Finding]:  # fmt: skip
    """The finding on the ``variants``: the same Function, traced for each of the patterns.

    A gradient that is what the PROVED one for all cotangents is with zeros for those that are
    absent is PROVED; so is one that is, term by term, the sum of those for single cotangents that
    are.  Any other is judged.  ``printed``: conditions that are said already.  ``judged_whole``:
    the cases with all cotangents.
    """
    if not variants:
        return []
    many = max(sum(node is not None for node in case.cotangents) for case in graphs.cases)
    worst = Finding(UNDEFINED, Verdict.PROVED)
    if many > MOST_OUTPUTS:
        said = f"of {many} cotangents, only patterns with one given or one missing were judged"
        worst = Finding(UNDEFINED, Verdict.UNDECIDED, said)
    alone, whole = _Alone(), _WithZeros(judged_whole)
    judged: list[Judgement] = []
    for variant in variants:
        for number, case in enumerate(variant.cases):
            deadline.check()
            if whole.is_known(case) or alone.adds_up_to(case):
                continue
            one = judge_case(variant, number, case)
            judged += one.judgements.values()
            found = [_undefined_finding(graphs, one, name) for name in graphs.differentiable]
            for finding in found:
                if finding is not None and finding.verdict > worst.verdict:
                    worst = finding
            if not any(finding is not None for finding in found):
                alone.take(case)
    return [replace(worst, text=worst.text or beside(judged, printed))]


class _WithZeros:
    """PROVED gradients for all cotangents, with zeros in place of some of these.

    They are right for cotangents of zeros, too, where everything that depends on cotangents is
    linear in them: nothing is divided by one, and no function is taken of one.
    """

    def __init__(self, judged: Iterable[JudgedCase]) -> None:
        self.graph = Graph()
        self.cases: dict[tuple[object, ...], FunctionCase] = {
            one.case.conditions: one.case
            for one in judged
            if one.judgements
            and all(found.verdict is Verdict.PROVED for found in one.judgements.values())
            and structurally_linear(one.subject)
        }

    def is_known(self, case: FunctionCase) -> bool:
        """Does backward compute what it does of zeros for the absent cotangents?

        What may fail to have a value in it has to be computed there as well.
        """
        full = self.cases.get(case.conditions)
        if full is None or case.problem is not None or full.problem is not None:
            return False
        if any(gradient.problem is not None for gradient in (*case.gradients, *full.gradients)):
            return False
        absent = {
            cotangent: self.graph.lift(0.0, cotangent)
            for cotangent, given in zip(full.cotangents, case.cotangents, strict=True)
            if cotangent is not None and given is None
        }
        wanted, reference = self._rewritten(full, absent)
        found, own = self._rewritten(case, {})
        return found == wanted and all(not _may_fail(node) or node in reference for node in own)

    def _rewritten(
        self, case: FunctionCase, known: Mapping[Node, Node]
    ) -> tuple[dict[str, Node | None], set[Node]]:
        """The gradients without what zeros make zero, None for zero; and all that is computed."""
        roots = [one.node for one in case.gradients if one.node is not None]
        plain = rewrite(self.graph, roots, known, named=False)
        folded = rewrite(self.graph, [plain[root] for root in roots], rule=_folded, named=False)
        found = {
            one.input: None
            if one.node is None or is_zero(made := folded[plain[one.node]])
            else made
            for one in case.gradients
        }
        return found, {plain[root] for root in ancestors(roots, stop=known)}


def _folded(node: Node, args: Sequence[Node]) -> Node | None:
    """A sum without zeros, and zero for what is linear in a zero."""
    zeros = [is_zero(arg) for arg in args]
    if not any(zeros):
        return None
    if node.op == "add" or (node.op == "sub" and zeros[1]):
        kept = args[0] if zeros[1] else args[1]
        return kept if kept.shape == node.shape and kept.dtype == node.dtype else None
    numerator = node.op == "div" and zeros[0]
    linear = any(zeros[place] for place in get(node.op).linear)
    if node.op in ("mul", "neg") or numerator or linear:
        return args[0].graph.lift(0.0, node)
    return None


def _may_fail(node: Node) -> bool:
    """Are there operands for which the node has no value?"""
    op = get(node.op)
    scalar = op.scalar
    return op.kind == "linalg" or (scalar is not None and bool(scalar.domain or scalar.defined))


class _Alone:
    """The gradients for single cotangents that are PROVED, in one graph, each as a sum of terms."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.known: dict[tuple[object, ...], dict[str, Counter[Node]]] = {}

    def take(self, case: FunctionCase) -> None:
        """Remember the gradients of a case, if it has one cotangent."""
        given = _given(case)
        if len(given) == 1:
            self.known[case.conditions, given[0]] = self._terms(case)

    def adds_up_to(self, case: FunctionCase) -> bool:
        """Are its gradients, term by term, the sums of those for its cotangents alone?

        The reference is linear in the cotangents, so that these sums are PROVED with their terms.
        """
        given = _given(case)
        parts = [self.known.get((case.conditions, place)) for place in given]
        if len(given) < 2 or case.problem is not None or any(one is None for one in parts):
            return False
        if any(gradient.problem is not None for gradient in case.gradients):
            return False
        whole = self._terms(case)
        return all(
            whole[name] == sum((one[name] for one in parts if one is not None), Counter())
            for name in whole
        )

    def _terms(self, case: FunctionCase) -> dict[str, Counter[Node]]:
        roots = [gradient.node for gradient in case.gradients if gradient.node is not None]
        new = rewrite(self.graph, roots, named=False)
        return {
            gradient.input: Counter(() if gradient.node is None else _addends(new[gradient.node]))
            for gradient in case.gradients
        }


def _given(case: FunctionCase) -> list[int]:
    return [place for place, node in enumerate(case.cotangents) if node is not None]


def _addends(node: Node) -> Iterator[Node]:
    """The terms of a sum, but zeros."""
    todo = [node]
    while todo:
        one = todo.pop()
        if one.op == "add":
            todo.extend(one.args)
        elif not is_zero(one):
            yield one


def _undefined_finding(graphs: FunctionGraphs, one: JudgedCase, name: str) -> Finding | None:
    outcome = outcome_of(one, name)
    if outcome is None or outcome.verdict is Verdict.PROVED:
        return None
    absent = _absent(graphs, one.case)
    verdict = outcome.verdict
    if verdict is Verdict.REFUTED and name in one.judgements and _surrogate([name], one):
        verdict = Verdict.SURROGATE
    said = f"with {' and '.join(f'{name} = None' for name in absent)}, the gradient of {name} is "
    if len(absent) > 1 and not _given(one.case):
        said = f"where all incoming gradients are None, the gradient of {name} is "
    said += "not proved" if verdict is Verdict.UNDECIDED else "wrong"
    point = shown(one, outcome.counterexample)
    if point is None:
        return Finding(UNDEFINED, verdict, f"{said}: {outcome.reason}")
    point = replace(point, inputs={**point.inputs, **dict.fromkeys(absent)})
    return Finding(UNDEFINED, verdict, f"{said}: {point}", point)


def _absent(graphs: FunctionGraphs, case: FunctionCase) -> list[str]:
    """What backward calls the cotangents that it is not given."""
    names = [node.label for full in graphs.cases[:1] for node in full.cotangents if node]
    given = {node.label for node in case.cotangents if node is not None}
    words = graphs.cases[0].aliases if graphs.cases else {}
    return [words.get(name, name) for name in names if name not in given]


def check_none(report: Report) -> None:
    """Kernels take None for zeros.  Raises NotProvedError where backward may not."""
    for finding in report.protocol:
        if finding.name == UNDEFINED and not finding:
            raise NotProvedError(
                f"{report.name}: kernels take None for a cotangent of zeros, and backward, which "
                f"is given None, is not proved to do the same: {finding.text}",
                location=report.location,
                hint="correct it, or leave out ctx.set_materialize_grads(False)",
            )
