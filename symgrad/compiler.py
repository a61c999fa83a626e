"""The driver: the stages in order, once.

In: a Function and the shapes of its inputs.  Out: verdicts, compiled ops, packages, the text of
any stage.

    Function --trace--> FunctionGraphs --plan--> forward and backward graphs --emit--> C --> op
                              |
                              +--verify--> PROVED | REFUTED | UNDECIDED
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symgrad.errors import BuildError, CacheError, NotProvedError, SpecError, SymgradError
from symgrad.forks import forks_wait
from symgrad.frontend.anyrank.judge import batch_groups, missing_axes, rank_dependence
from symgrad.frontend.anyrank.observation import Observation
from symgrad.frontend.anyrank.serving import serving, typical_rank
from symgrad.frontend.forward_mode import JvpError, has_jvp, pushing
from symgrad.frontend.function import Function
from symgrad.frontend.outcome import refuses_sizes, told
from symgrad.frontend.presence import Presence, presences
from symgrad.frontend.request import positions
from symgrad.frontend.surrogate import surrogate_of
from symgrad.frontend.trace import BATCH_RANK, trace
from symgrad.ir.function import FunctionGraphs
from symgrad.kernels import OpPlan, masks, plan, with_backward
from symgrad.runtime.strict import fall_back

if TYPE_CHECKING:
    from symgrad.fallback import NumpyOp
    from symgrad.proof.report.records import Report
    from symgrad.runtime.op import CompiledOp

RANKS = (0, 1, 2, 3)
"""The numbers of batch axes that are judged where the program depends on their number."""

STAGES = ("graph", "reverse", "index", "schedule", "c")
AnyFunction = type[Function] | Function
Specs = Sequence[Any]
Static = Mapping[str, Any] | None
Assume = Mapping[str, str] | None


def verify(
    function: AnyFunction, *specs: str | None, static: Static = None, assume: Assume = None,
    order: int = 1, suggest: bool = True,
) -> Report:  # fmt: skip
    """Is the hand-written backward the vector-Jacobian product of forward, for all shapes?

    ``specs``: one a tensor input, in jaxtyping's notation (``"n m"``), None for an absent one;
    the annotations of forward when omitted.  Tensors whose parameter has the default None are
    judged absent as well, as far as forward accepts that.  ``static``: values of non-tensor
    arguments.  ``assume``: facts about inputs, such as ``{"x": "positive"}``.  ``order=2``: the
    backward of the backward too.  ``suggest=False``: do not look for a repair of what is refuted.
    Raises SpecError and what tracing forward raises.
    """
    if order not in (1, 2):
        raise SpecError(f"order={order!r} is not supported", hint="1, or 2 for its derivative too")
    with told(f"judging {getattr(function, '__name__', type(function).__name__)}"):
        every = presences(function, specs, static)
        if not every:
            return _verified(function, specs, static, assume, order, suggest)
        return _for_presences(function, every, assume, order, suggest)


def compile(
    function: AnyFunction, *specs: str | None, static: Static = None, assume: Assume = None,
    allow: Sequence[str] = (), strict: bool = False,
) -> CompiledOp | NumpyOp:  # fmt: skip
    """Kernels for every size of these shapes, forward and backward.

    A backward that is not PROVED is refused with NotProvedError, unless ``allow`` names its
    verdict (``allow=("UNDECIDED",)``).  Where no C compiler works, the op runs on NumPy, with a
    NumpyBackendWarning; with ``strict``, or SYMGRAD_STRICT=1, BuildError or CacheError is raised.
    """
    with forks_wait():
        from symgrad.emission import emit
        from symgrad.fallback import NumpyOp
        from symgrad.manifest import proof_line
        from symgrad.runtime.op import make_op

    planned, report = judged_plan(function, specs, static, assume, allow)
    emitted = emit(planned, proof_line(report))
    try:
        return make_op(
            emitted.wrapper(), emitted.texts, key_extra=planned.graphs.source,
            origin=(function, specs, static), values=planned.graphs.values,
        )  # fmt: skip
    except (BuildError, CacheError) as error:
        fall_back(f"{planned.name} runs", error, strict=strict, stacklevel=2)
        return NumpyOp(planned, origin=(function, specs, static))


def build(
    functions: Sequence[AnyFunction], folder: Path, *, specs: Sequence[str | None] = (),
    static: Static = None, assume: Assume = None, allow: Sequence[str] = (), check: bool = False,
    compiled: bool = True, root: Path | None = None, names: Mapping[Any, str] | None = None,
) -> str:  # fmt: skip
    """Write a package of kernels that imports without symgrad; return what differs.

    ``check``: write nothing.  ``compiled``: also build the shared objects.  ``root``: paths in the
    manifest are written relative to it.  ``names``: other names for the ops of some Functions.
    Raises NotProvedError, BuildError.
    """
    from symgrad.manifest import Asked, packaged
    from symgrad.runtime.package import build_package, difference, write_package

    named = names or {}
    ops = [judged_plan(one, specs, static, assume, allow, named.get(one, "")) for one in functions]
    files = packaged(ops, Asked(tuple(specs), root), folder)
    if check:
        return difference(folder, files)
    write_package(folder, files)
    if compiled:
        build_package(folder, [planned.name for planned, _ in ops])
    return ""


def show(
    function: AnyFunction, *specs: str | None, stage: str, static: Static = None,
    assume: Assume = None,
) -> str:  # fmt: skip
    """The text of a stage: one of ``STAGES``, in the names of the user's source."""
    from symgrad import stages

    if stage not in STAGES:
        raise SpecError(f"there is no stage {stage!r}", hint=f"one of {', '.join(STAGES)}")
    graphs = trace(function, *specs, static=static, assume=assume)
    ranks = _ranks(function, graphs, specs, static, assume)
    graphs = _served(function, graphs, ranks, specs, static, assume)
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

    report = _as_asked(function, graphs, ranks, specs, static, assume)
    return stages.c(planned, proof_line(report))


def _verified(
    function: AnyFunction, specs: Specs, static: Static, assume: Assume, order: int, suggest: bool
) -> Report:
    """The verdict for just these tensors."""
    graphs = trace(function, *specs, static=static, assume=assume)
    ranks = _ranks(function, graphs, specs, static, assume, order)
    return _judged(function, graphs, ranks, specs, static, assume, order, suggest)


def _for_presences(
    function: AnyFunction, every: Sequence[Presence], assume: Assume, order: int, suggest: bool
) -> Report:
    """The worst verdict for all that optional tensors may be, the first as it was asked for.

    A repair is written into the file only for the first: it is judged for all of them.
    """
    from symgrad.proof.report.merge import for_presences

    def judge(one: Presence) -> Report:
        return _verified(function, one.specs, one.static, one.about(assume), order, suggest)

    return for_presences(every, judge)


def _as_asked(
    function: AnyFunction, graphs: FunctionGraphs, ranks: Ranks | None, specs: Specs,
    static: Static, assume: Assume, suggest: bool = True,
) -> Report:  # fmt: skip
    """The verdict on what is compiled: optional tensors as the specs have them, and no others."""
    report = _judged(function, graphs, ranks, specs, static, assume, suggest=suggest)
    return replace(report, presences=tuple(map(str, presences(function, specs, static)[:1])))


def _judged(
    function: AnyFunction, graphs: FunctionGraphs, ranks: Ranks | None, specs: Specs,
    static: Static, assume: Assume, order: int = 1, suggest: bool = True,
) -> Report:  # fmt: skip
    """The verdict on a traced Function; where it takes any number of batch axes, for all.

    If the program does not depend on their number, one axis stands for them; otherwise several
    numbers are judged, and no others.
    """
    from symgrad.proof.report.merge import for_any_rank, for_ranks, with_smallest

    def traced(rank: int | None) -> FunctionGraphs:
        return trace(function, *specs, static=static, assume=assume, batch_rank=rank)

    def judge(one: FunctionGraphs, rank: int | None, mended: bool = suggest) -> Report:
        return _judged_rank(function, one, specs, static, assume, order, mended, rank)

    if ranks is None:
        return judge(graphs, BATCH_RANK)
    reports = {rank: judge(one, rank) for rank, one in ranks.apart.items()}
    if ranks.looked_at is not None:
        return for_ranks(reports, str(ranks.looked_at), ranks.refused)
    typical = typical_rank(ranks.numbers)
    written = typical if typical > 1 else None
    report = judge(traced(written), written)
    if 0 not in ranks.numbers and str(report.verdict) != "PROVED":
        report = with_smallest(report, judge(traced(0), 0, False))
    return for_any_rank(report, ranks.groups, typical, reports, ranks.refused)


@dataclass(frozen=True)
class Ranks:
    """What a Function makes of the number of batch axes, which its specs leave open.

    ``groups``: the name of the number of elements by that of the batch axes.  ``looked_at``: what
    depends on their number, if that is not for a few numbers only.  ``apart``: traces for the
    numbers that are judged by themselves.  ``refused``: why forward does not accept a number.
    """

    groups: Mapping[str, str]
    looked_at: Observation | None
    apart: Mapping[int, FunctionGraphs]
    refused: Mapping[int, str]

    @property
    def numbers(self) -> frozenset[int]:
        """The numbers of batch axes that no trace for all numbers stands for."""
        return frozenset((*self.apart, *self.refused))


def _ranks(
    function: AnyFunction, graphs: FunctionGraphs, specs: Specs, static: Static, assume: Assume,
    order: int = 1,
) -> Ranks | None:  # fmt: skip
    """None where no spec leaves the number of batch axes open."""
    groups = batch_groups(function, specs, static)
    if not groups:
        return None
    found = _rank_dependence(function, graphs, specs, static, assume, order)
    looked_at = found if isinstance(found, Observation) else None
    apart, refused = {}, {}
    for rank in RANKS if isinstance(found, Observation) else sorted(found):
        short = missing_axes(function, specs, static, assume, rank)
        try:
            one = trace(function, *specs, static=static, assume=assume, batch_rank=rank)
        except SymgradError as error:
            if not refuses_sizes(error):
                raise
            short = error.what
        if short is None:
            apart[rank] = one
        else:
            refused[rank] = short
    return Ranks(groups, looked_at, apart, refused)


def _served(
    function: AnyFunction, graphs: FunctionGraphs, ranks: Ranks | None, specs: Specs,
    static: Static, assume: Assume,
) -> FunctionGraphs:  # fmt: skip
    """What kernels are made of: the cases for all sizes and numbers of batch axes judged."""
    if ranks is None:
        return graphs
    cases = [case for one in ranks.apart.values() for case in one.cases]
    if ranks.looked_at is None:
        cases += serving(function, specs, static, assume, ranks.numbers)
    return replace(graphs, cases=tuple(cases))


def _rank_dependence(
    function: AnyFunction, graphs: FunctionGraphs, specs: Specs, static: Static, assume: Assume,
    order: int,
) -> Observation | frozenset[int]:  # fmt: skip
    """What depends on the number of batch axes, in any of the traces that a verdict rests on.

    If nothing does: the numbers that some of them treat by themselves.
    """
    from symgrad.proof.verify import patterns

    apart: frozenset[int] = frozenset()
    programs: list[tuple[AnyFunction, Mapping[str, Any]]] = [(function, {})]
    programs += [(function, {"needs_input_grad": mask}) for mask in _masks_asked_for(graphs)]
    programs += [(function, {"given_cotangents": given}) for given in patterns(graphs)]
    declared = surrogate_of(function)
    programs += [(declared, {})] if declared is not None else []
    twice = order > 1 and not (graphs.derived or graphs.once)
    if has_jvp(function):
        made = pushing(function, specs, static, reference=declared)
        with suppress(JvpError):
            found = rank_dependence(made.function, *made.specs, static=made.static, apart=apart)
            if isinstance(found, Observation):
                return found
            apart = found
    for program, how in programs:
        for histories in (False, True) if twice and program is function else (False,):
            found = rank_dependence(
                program, *specs, static=static, histories=histories, apart=apart,
                assume=assume if program is function else None, **how,
            )  # fmt: skip
            if isinstance(found, Observation):
                return found
            apart = found
    return apart


def _judged_rank(
    function: AnyFunction, graphs: FunctionGraphs, specs: Specs, static: Static, assume: Assume,
    order: int, suggest: bool, rank: int | None,
) -> Report:  # fmt: skip
    """The verdict for one number of batch axes, against the surrogate where one is declared."""
    from symgrad.proof.verify import VerifyOptions, patterns, verify_function

    declared = surrogate_of(function)
    surrogate = (
        trace(declared, *specs, static=static, batch_rank=rank) if declared is not None else None
    )

    def traced(
        mask: dict[str, bool] | None, histories: bool = False, given: Sequence[bool] | None = None
    ) -> FunctionGraphs:
        return trace(
            function, *specs, static=static, assume=assume, needs_input_grad=mask,
            given_cotangents=given, batch_rank=rank, histories=histories,
        )  # fmt: skip

    asked_for = _masks_asked_for(graphs)
    masks_twice = [None, *asked_for] if order > 1 and not (graphs.derived or graphs.once) else []
    options = VerifyOptions(
        assume=assume or {}, surrogate=surrogate, variants=[traced(mask) for mask in asked_for],
        undefined=[traced(None, given=given) for given in patterns(graphs)],
        order=order, suggest=suggest, histories=[traced(mask, True) for mask in masks_twice],
        pushes=_pushes(function, specs, static, assume, rank),
    )  # fmt: skip
    if not suggest or graphs.derived:
        return verify_function(with_backward(graphs), options)
    from symgrad.pasting.repairs import Pasting, verify_and_mend

    def again(changed: AnyFunction) -> FunctionGraphs:
        return trace(changed, *specs, static=static, assume=assume, batch_rank=rank)

    def whole(changed: AnyFunction) -> Report:
        return verify(changed, *specs, static=static, assume=assume, order=order, suggest=False)

    pasting = Pasting(function, again, options, positions(function, specs, static))
    return verify_and_mend(graphs, options, pasting, whole)


def _pushes(
    function: AnyFunction, specs: Specs, static: Static, assume: Assume, rank: int | None
) -> FunctionGraphs | SymgradError | None:  # fmt: skip
    """Forward and its ``jvp`` traced together; None where there is no ``jvp``."""
    if not has_jvp(function):
        return None
    made = pushing(function, specs, static, reference=surrogate_of(function))
    try:
        return trace(made.function, *made.specs, static=made.static, assume=assume, batch_rank=rank)
    except JvpError as error:
        return error


def _masks_asked_for(graphs: FunctionGraphs) -> list[dict[str, bool]]:
    """The sets of wanted gradients under which a backward that asks about them may differ."""
    if "needs_input_grad" not in graphs.source:
        return []
    wanted = tuple(name in graphs.differentiable for name in graphs.input_names)
    return [
        dict(zip(graphs.input_names, mask, strict=True)) for mask in masks(wanted) if mask != wanted
    ]


def judged_plan(
    function: AnyFunction, specs: Sequence[str | None], static: Static, assume: Assume,
    allow: Sequence[str], name: str = "", suggest: bool = True,
) -> tuple[OpPlan, Report]:  # fmt: skip
    """The graphs of an op's kernels, and the report on its backward.

    Raises NotProvedError where the verdict is neither PROVED nor in ``allow``.
    """
    from symgrad.proof.verify import check_none

    unknown = set(allow) - {"UNDECIDED", "REFUTED"}
    if isinstance(allow, str) or unknown:
        raise SpecError(f"allow={allow!r}", hint='a tuple of "UNDECIDED" and "REFUTED"')
    graphs = trace(function, *specs, static=static, assume=assume)
    ranks = _ranks(function, graphs, specs, static, assume)
    report = _as_asked(function, graphs, ranks, specs, static, assume, suggest)
    verdict = str(report.verdict)
    if verdict != "PROVED" and verdict not in allow:
        raise NotProvedError(
            f"the backward of {graphs.name} is {verdict}:\n{report}",
            location=graphs.location,
            hint=f'mend it, or compile it all the same with allow=("{verdict}",)',
        )
    check_none(report)
    return plan(_served(function, graphs, ranks, specs, static, assume), name=name), report
