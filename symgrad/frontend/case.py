"""One case of a trace: forward, then backward on what forward saved, in one graph.

In: a ``Request``, what is known of the sizes.  Out: a ``FunctionCase``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from types import FrameType
from typing import Any, TypeVar

from symgrad.errors import ProtocolError, SymgradError, is_limit
from symgrad.frontend import gradients
from symgrad.frontend.advice import advised, listed
from symgrad.frontend.choices import for_all_values, passes
from symgrad.frontend.complexes import ComplexTensor, real_of
from symgrad.frontend.conversions import symbolic_conversions
from symgrad.frontend.facts import NeedsDecision, SizeFacts
from symgrad.frontend.function import (
    Context,
    class_location,
    class_of,
    has_backward,
    kept_tensors,
    new_context,
    raw_method,
    returns_of,
    run_backward,
    run_forward,
    state_of,
)
from symgrad.frontend.history import OWN_RULE, History, Mark, Returned
from symgrad.frontend.plain import PlainNumber
from symgrad.frontend.questions import AGAIN, NeedsInputGrad, Questions, noting_limits
from symgrad.frontend.reach import reached
from symgrad.frontend.regions import Region
from symgrad.frontend.request import Request
from symgrad.frontend.session import NeedsHistories, Session, activate
from symgrad.frontend.sizes import symbolic_math
from symgrad.frontend.spoken import unheard
from symgrad.frontend.state import Change, Later, State, changes_of, put_back
from symgrad.frontend.stated import relations
from symgrad.frontend.tables import Tables, hashes_sizes
from symgrad.frontend.tensor import GIVEN, SelectedTensor, SymbolicTensor, fresh, own_names
from symgrad.frontend.thresholds import region_of
from symgrad.frontend.unknown import between_calls, between_ways
from symgrad.frontend.unwritten import initialised
from symgrad.frontend.views import Expand
from symgrad.frontend.ways import Answers, Choice
from symgrad.ir.dim import Dim
from symgrad.ir.function import Asked, FunctionCase, Gradient, InnerCall, OtherCall
from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.ir.rewrite import rewrite
from symgrad.ir.types import TensorType
from symgrad.ops.markers import without_markers


def trace_case(
    request: Request,
    facts: SizeFacts,
    answers: Mapping[str, bool],
    given_cotangents: Sequence[bool] | None,
    *,
    caller: FrameType,
    inner: dict[Any, InnerCall] | None = None,
    histories: bool = False,
    new_session: Callable[..., Session] = Session,
) -> FunctionCase:
    """Trace one case.  Raises what forward raises, and NeedsDecision.

    ``answers``: to questions of the program's (``symgrad.frontend.questions``).
    ``inner`` collects the Functions that it applies.  ``histories``: follow what PyTorch would
    record, for differentiating backward again.  ``new_session``: makes the trace.
    """
    asked: list[Choice] = []

    def start(chosen: Answers) -> _Run:
        session = new_session(facts, assumed=request.assumptions, inner=inner)
        session.namer.start(caller)
        session.questions = Questions(answers, may_require(request), chosen=chosen)
        asked.clear()
        session.questions.choices = asked
        session.guest, session.cuts = request.cls.symgrad_guest, request.cls.symgrad_cuts
        session.questions.identity, session.questions.keeps = asks_identity, keeps
        session.questions.marked = marked
        known = unchanged.pop() if unchanged else None
        return _Run(session, request, session.questions, unchanged=known)

    def traced(between: Callable[[], None], restart: Callable[[], None]) -> FunctionCase:
        def once(chosen: Answers) -> FunctionCase:
            if chosen:
                restart()
            return _once(lambda: start(chosen), given_cotangents, between, histories)

        joins = request.cls.symgrad_guest is not None
        return for_all_values(once, asked, joins=joins, rounds=request.rounds)

    begun, unchanged = list[Change](), list[State]()
    asks_identity, keeps, marked = False, False, frozenset[str]()
    with put_back(request.function) as state:
        if state is None:
            return traced(lambda: None, lambda: None)

        unchanged.append(state)
        note_changes, restart = _noted(state, begun)
        asks_identity, keeps = bool(state.reach.tensors), state.reach.tells_saved
        marked = state.reach.marked
        case = traced(note_changes, restart)
        tables = Tables(state)
        if not (hashes_sizes(case) and tables.state.reach.may_keep) or case.chosen:
            return _for_later(case, traced, state, begun, request)
        with tables.in_place():
            begun.clear()
            other = traced(note_changes, restart)
            if not hashes_sizes(other):
                return _for_later(other, traced, state, begun, request, tables)
        return _for_later(case, traced, state, begun, request)


def _noted(state: State, begun: list[Change]) -> tuple[Callable[[], None], Callable[[], None]]:
    """What notes the changes of a call, and what undoes them before another way of it."""

    def note_changes() -> None:
        begun.extend(state.changes())

    def restart() -> None:
        note_changes()
        state.restore()

    return note_changes, restart


def _once(
    start: Callable[[], _Run], given_cotangents: Sequence[bool] | None,
    between: Callable[[], None], histories: bool,
) -> FunctionCase:  # fmt: skip
    """The case of a run, which follows histories if it has to."""
    with ExitStack() as quiet:
        run = start()
        run.questions.quiet = quiet
        if histories:
            return _traced(run, given_cotangents, between, follow=True)
        with suppress(NeedsHistories):
            return _traced(run, given_cotangents, between)
    with unheard():
        return unmarked(_traced(start(), given_cotangents, between, follow=True, twice=True))


def _for_later(
    case: FunctionCase, traced: Callable[..., FunctionCase], state: State, begun: list[Change],
    request: Request, tables: Tables | None = None,
) -> FunctionCase:  # fmt: skip
    """The case, with what later calls may do otherwise.

    ``traced``: traces it again; ``begun``: what forward had changed; ``tables``: those by sizes.
    """

    def again() -> bool:
        return _is_again(case, lambda: traced(between_calls, between_ways))

    later = Later(
        state, begun, lambda: State(reached(request.function)),
        again if tables is None else lambda: tables.again(again), whatever=tables is not None,
        shared=changes_of(request.function),
    )  # fmt: skip
    notes = [*case.state, *later.judge()]
    notes += [] if tables is None else tables.notes
    told = tuple(dict.fromkeys((*case.assumed, *state.reach.told)))
    asked = tuple(dict.fromkeys((*case.observed, *state.reach.asked)))
    return replace(case, state=tuple(dict.fromkeys(notes)), assumed=told, observed=asked)


def _is_again(case: FunctionCase, trace: Callable[[], FunctionCase]) -> bool:
    """Does another trace give the same case?"""
    try:
        other = trace()
    except (SymgradError, NeedsDecision):
        return False
    if (case.problem is None) != (other.problem is None) or case.changed != other.changed:
        return False
    if case.problem is not None and other.problem is not None:
        return case.problem.what == other.problem.what
    asked = {one.key for one in case.answers}
    if not {one.key for one in other.answers} <= asked or len(case.observed) < len(other.observed):
        return False
    graph, found = Graph(), []
    for one in (case, other):
        nodes = [*one.outputs, *(gradient.node for gradient in one.gradients)]
        new = rewrite(graph, [node for node in nodes if node is not None], named=False)
        found.append([None if node is None else new[node] for node in nodes])
    return found[0] == found[1] and case.materializes == other.materializes


def _traced(
    run: _Run, given_cotangents: Sequence[bool] | None, between: Callable[[], None], *,
    follow: bool = False, twice: bool = False,
) -> FunctionCase:  # fmt: skip
    """The case of a run that is yet to start.

    ``between``: is called between forward and backward.  ``follow``: with histories; ``twice``:
    then too, backward is run again to compare.
    """
    session, function = run.session, run.request.function
    run.twice = twice or not follow
    if follow:
        session.history = History(session)
        run.questions.given = {**run.questions.given, AGAIN: True}
    symbolic = _symbolic(run.request, run.unchanged)
    with activate(session), closing(session), symbolic, noting_limits() as limits:
        run.forward()
        between()
        run.name_outputs()
        cotangents = run.make_cotangents(given_cotangents)
        found: tuple[Gradient, ...] = ()
        problem: SymgradError | None = None
        if has_backward(function):
            if session.history is not None:
                run.follow(session.history, cotangents)
            found, problem = run.backward()
            if session.history is not None:
                session.history.own_rule(class_of(function).__name__, run.linked(cotangents), found)
        elif class_of(function).symgrad_unwritten:
            problem = run.unwritten(cotangents)
        elif session.detached is not None:
            raise ProtocolError(
                "a value is cut off from differentiation (detach, data, no_grad), and there is no "
                "backward to say what its gradient is meant to be",
                location=session.detached, hint="write the backward",
            )  # fmt: skip
        session.namer.finish(session)
    return _case(run, cotangents, found, problem, limits)


@contextmanager
def _symbolic(request: Request, unchanged: State | None) -> Iterator[None]:
    """A block in which Python functions take symbolic numbers.

    ``unchanged``: the state of the Function, if it has not run since.
    """
    values = (one.value for one in request.arguments)
    known = None if unchanged is None else unchanged.reach
    with symbolic_math(), symbolic_conversions(request.function, values, known):
        yield


def _case(
    run: _Run, cotangents: Sequence[_Cotangent], found: tuple[Gradient, ...],
    problem: SymgradError | None, limits: Sequence[SymgradError],
) -> FunctionCase:  # fmt: skip
    """What a run gives."""
    session, questions = run.session, run.questions
    marked = list(dict.fromkeys(questions.lasting_marks()))
    limited = problem is not None and is_limit(problem)
    asked = [] if limited else [*questions.observed, *marked]
    if not limited:
        asked += questions.handled(problem)
        asked += [Asked(limit.what, limit.location) for limit in limits]
    case = FunctionCase(
        conditions=session.facts.conditions,
        graph=session.graph,
        inputs=(*run.inputs.values(), *session.plain.values()),
        outputs=tuple(run.outputs),
        output_names=tuple(run.output_names),
        cotangents=tuple(slot.node for slot in cotangents),
        gradients=found,
        saved=tuple(dict.fromkeys(run.saved)),
        problem=problem,
        written=tuple(session.written),
        updated=tuple(session.updated),
        surplus=tuple(session.surplus),
        materializes=state_of(run.context).materialize,
        requires=tuple(session.requires),
        record=session.history.record if session.history is not None else None,
        answers=tuple(questions.answers.values()),
        observed=tuple(asked),
        assumed=tuple(questions.assumed),
        left_out=questions.left_out,
        plain=tuple(session.plain),
        where=tuple(region_of(one, session.assumed).condition for one in session.relied),
        relations=(*relations(run.request, run.inputs, session), *session.drawn),
        state=tuple(run.state),
        parameters=run.words_of_cotangents,
        demanded=session.demanded.left(run.request.assumptions),
        symmetric=frozenset(session.symmetric),
        by_default=session.by_default,
        expanded=any(map(questions.made_expanded, questions.cotangents)),
        selected=run.selected,
    )
    return initialised(case)


_Followed = TypeVar("_Followed")


def trace_beside(
    request: Request, facts: SizeFacts, answers: Mapping[str, bool], other: Request,
    sizes: Mapping[str, int], same: tuple[tuple[str, ...], ...], *, caller: FrameType, dtype: str,
    hooked: bool = False, other_default: bool = False, chosen: Answers = (),
) -> OtherCall:  # fmt: skip
    """A case, with another call between its forward and its backward; see ``OtherCall``.

    ``other``: the request of the other call, whose sizes are numbers, or else those of this;
    ``hooked``: its saved tensors are other objects; ``other_default``: its default dtype is;
    ``chosen``: what is answered where they ask of elements.
    Raises what forward raises, and NeedsDecision.
    """
    run = partial(
        _beside, request, facts, answers, other, sizes, same,
        caller=caller, dtype=dtype, hooked=hooked, other_default=other_default, chosen=chosen,
    )  # fmt: skip
    return _followed(run)


def trace_shown(
    case: FunctionCase, names: tuple[str, ...], answers: Mapping[str, bool], other: Request,
    sizes: Mapping[str, int], *, caller: FrameType, shown_as: str,
) -> OtherCall:  # fmt: skip
    """A case, and a call at numbers for its sizes that comes alone, whose floats have other dtypes.

    ``case``: in a graph that no proof adds to (``unmarked``).  ``names``: its size symbols;
    ``shown_as``: see ``Session``.  Raises what forward raises that is a limit, and NeedsDecision.
    """

    def run(follow: bool) -> OtherCall:
        second = _started(other, SizeFacts(), answers, caller, follow, case.chosen)
        second.session.shown_as = shown_as
        with put_back(other.function) as state, _symbolic(other, state), noting_limits(), unheard():
            second.questions.keeps = state is not None and state.reach.tells_saved
            try:
                begun = _forward_of(second)
            except SymgradError as error:
                if is_limit(error):
                    raise
                called = None
            else:
                called = _called(second, begun, _backward_of(second, begun), follow)
        asks, leaked = second.session.asks_dtypes, second.questions.leaked
        return OtherCall(case, called, sizes, shown_as, (), leaked, names, asks_dtypes=asks)

    return _followed(run)


def _followed(run: Callable[[bool], _Followed]) -> _Followed:
    """What a run gives, with histories if it has to follow them."""
    try:
        return run(False)
    except NeedsHistories:
        return run(True)


def _started(
    request: Request, facts: SizeFacts, answers: Mapping[str, bool], caller: FrameType,
    follow: bool, chosen: Answers,
) -> _Run:  # fmt: skip
    session = Session(facts, assumed=request.assumptions)
    session.namer.start(caller)
    session.questions = Questions(
        {**answers, AGAIN: True} if follow else answers, may_require(request), chosen=chosen
    )
    session.guest, session.cuts = request.cls.symgrad_guest, request.cls.symgrad_cuts
    session.history = History(session) if follow else None
    return _Run(session, request, session.questions)


def _called(
    run: _Run, begun: Sequence[_Cotangent],
    found: tuple[tuple[Gradient, ...], SymgradError | None], follow: bool,
) -> FunctionCase:  # fmt: skip
    with activate(run.session):
        case = _case(run, begun, *found, ())
        return unmarked(case) if follow else case


def _beside(
    request: Request, facts: SizeFacts, answers: Mapping[str, bool], other: Request,
    sizes: Mapping[str, int], same: tuple[tuple[str, ...], ...], follow: bool, *,
    caller: FrameType, dtype: str, hooked: bool, other_default: bool, chosen: Answers,
) -> OtherCall:  # fmt: skip
    first = _started(request, facts, answers, caller, follow, chosen)
    its_facts = SizeFacts() if other.sizes == () else facts
    second = _started(other, its_facts, answers, caller, follow, chosen)
    second.same = same
    second.session.other_default = other_default
    with put_back(request.function) as state, _symbolic(request, state), noting_limits(), unheard():
        keeps = state is not None and state.reach.tells_saved
        first.questions.keeps = second.questions.keeps = keeps
        second.questions.hooked = hooked
        begun = _forward_of(first)
        try:
            beside = _forward_of(second)
        except SymgradError:
            beside = None
        found, problem = _backward_of(first, begun)
        with activate(first.session):
            if problem is None and not first.same_for_others(begun, found):
                first.session.note_written("ctx")
        second_found = None if beside is None else _backward_of(second, beside)
        case = _called(first, begun, (found, problem), follow)
        called = None
        if beside is not None and second_found is not None:
            called = _called(second, beside, second_found, follow)
    kind = str(first.session.dtype) if other_default else dtype
    return OtherCall(
        replace(case, chosen=chosen), called, sizes, kind, same,
        first.questions.leaked or second.questions.leaked,
        facts.order, hooked, asks_dtypes=second.session.asks_dtypes,
    )  # fmt: skip


def trace_after(
    request: Request, facts: SizeFacts, answers: Mapping[str, bool], earlier: Request | None, *,
    caller: FrameType, between: bool, chosen: Answers,
) -> FunctionCase | None:  # fmt: skip
    """A case after another call; None where forward does not accept that.

    ``earlier``: the request of that call, whose sizes are numbers; None for no call.
    ``between``: it comes between forward and backward.  ``chosen``: what is answered where the case
    asks of elements; the earlier call goes one of its own ways.
    Raises what forward raises, and NeedsDecision.
    """
    run = partial(
        _after, request, facts, answers, earlier, caller=caller, between=between, chosen=chosen
    )
    return _followed(run)


def _after(
    request: Request, facts: SizeFacts, answers: Mapping[str, bool], earlier: Request | None,
    follow: bool, *, caller: FrameType, between: bool, chosen: Answers,
) -> FunctionCase | None:  # fmt: skip
    asked: list[Choice] = []

    def call(own: Answers) -> FunctionCase:
        assert earlier is not None
        run = _started(earlier, SizeFacts(), answers, caller, follow, own)
        asked.clear()
        run.questions.choices = asked
        begun = _forward_of(run)
        return _called(run, begun, _backward_of(run, begun), follow)

    def called() -> bool:
        with suppress(NeedsDecision):
            return earlier is None or passes(call, asked)
        return False

    first = _started(request, facts, answers, caller, follow, chosen)
    with put_back(request.function) as state, _symbolic(request, state), noting_limits(), unheard():
        first.questions.keeps = state is not None and state.reach.tells_saved
        if not between and not called():
            return None
        begun = _forward_of(first)
        if between and not called():
            return None
        return _called(first, begun, _backward_of(first, begun), follow)


def _forward_of(run: _Run) -> list[_Cotangent]:
    with activate(run.session), closing(run.session):
        run.forward()
        run.name_outputs()
        return run.make_cotangents(None)


def _backward_of(
    run: _Run, cotangents: Sequence[_Cotangent]
) -> tuple[tuple[Gradient, ...], SymgradError | None]:
    with activate(run.session), closing(run.session):
        run.twice = False
        if run.session.history is not None:
            run.follow(run.session.history, cotangents)
        return run.backward()


def may_require(request: Request) -> tuple[str, ...]:
    """The inputs that may require a gradient: floats that are not declared constant."""
    constant = {one.name for one in request.assumptions if one.kind == "constant"}
    return tuple(
        one.name for one in request.arguments
        if one.spec is not None and one.name not in constant
        and (one.spec.dtype is None or one.spec.dtype.is_float)
    )  # fmt: skip


def unmarked(case: FunctionCase) -> FunctionCase:
    """The same values in a graph of their own, without histories."""
    graph = Graph()
    parts = [node for g in case.gradients for node in (g.node, g.returned) if node is not None]
    cotangents = [node for node in case.cotangents if node is not None]
    stated = [node for one in case.relations for node in one.nodes]
    stated += [one.node for one in case.demanded]
    roots = [*case.inputs, *case.outputs, *case.saved, *cotangents, *parts, *stated]
    new = without_markers(graph, roots)

    def moved(node: Node | None) -> Node | None:
        return None if node is None else new[node]

    return replace(
        case,
        graph=graph,
        inputs=tuple(new[node] for node in case.inputs),
        outputs=tuple(new[node] for node in case.outputs),
        cotangents=tuple(map(moved, case.cotangents)),
        gradients=tuple(
            replace(g, node=moved(g.node), returned=moved(g.returned)) for g in case.gradients
        ),
        saved=tuple(dict.fromkeys(new[node] for node in case.saved)),
        record=None,
        relations=tuple(one.put(new) for one in case.relations),
        demanded=tuple(replace(one, node=new[one.node]) for one in case.demanded),
    )


@dataclass
class _Cotangent:
    """What backward gets for one output; ``node`` is None for an output that has none."""

    node: Node | None
    make: Callable[[], Any]


def _left_out(request: Request) -> list[str]:
    """The parameters behind the arguments that may be passed by position, and have defaults."""
    return [one.name for one in request.by_place[len(request.positional) :]]


@dataclass
class _Run:
    """The state of one case.

    ``inputs`` by name, ``outputs`` and their names, the ``saved`` nodes; ``slots``: whatever
    forward returned, one by one; ``handles``: whatever forward was given; ``given``: what makes
    backward's argument for each slot; ``drawn``: what forward has
    drawn at random; ``state``: why backward may do something else when it is
    called again; ``unchanged``: the state of the Function, if it has not run since.
    """

    session: Session
    request: Request
    questions: Questions
    inputs: dict[str, Node] = field(default_factory=dict)
    outputs: list[Node] = field(default_factory=list)
    output_names: list[str] = field(default_factory=list)
    saved: list[Node] = field(default_factory=list)
    slots: list[Any] = field(default_factory=list)
    handles: tuple[Any, ...] = ()
    begun: Mark = field(init=False)
    unchanged: State | None = None
    twice: bool = True
    drawn: int | None = None
    same: tuple[tuple[str, ...], ...] = ()
    context: Context = field(init=False)
    given: list[Callable[[], Any]] = field(default_factory=list)
    state: list[Asked] = field(default_factory=list)
    roles: dict[str, Any] = field(default_factory=dict)

    def forward(self) -> None:
        """Run forward on new inputs."""
        self.context = new_context(self.request.function, dict(self.request.init))
        handles = {arg.name: self._value(arg) for arg in self.request.arguments}
        for group in self.same:
            names = [name for name in group if name in handles]
            kinds = {type(handles[name]) for name in names}
            if len(kinds) == 1:  # real tensors are no complex ones
                handles |= dict.fromkeys(names, handles[names[0]])
        self.roles = dict(handles)
        self.handles = tuple(handles.values())
        if self.session.history is not None:
            self.begun = self.session.history.since = self.session.history.mark()
        positional = [handles[arg.name] for arg in self.request.positional]
        named = {arg.name: handles[arg.name] for arg in self.request.arguments if arg.keyword}
        wanted = self.questions.wanted
        self.context.needs_input_grad = NeedsInputGrad(
            self.questions,
            (arg.name if arg.name in wanted else "" for arg in self.request.positional),
            _left_out(self.request),
        )
        try:
            output = run_forward(self.request.function, self.context, positional, named)
        except (Exception, SystemExit) as error:
            found = advised(error, "forward")
            raise found from found.__cause__
        if isinstance(output, list) and type(self.context).symgrad_kind is not None:
            raise ProtocolError(
                "forward returns a list, which PyTorch takes for one output without a gradient",
                location=returns_of(self.request.cls, "forward"),
                hint="return a tuple",
            )
        self.slots = list(output) if isinstance(output, (tuple, list)) else [output]
        self.questions.begin_backward(self.slots)
        for slot in self.slots:
            if isinstance(slot, SymbolicTensor):
                own_names(slot)[GIVEN] = True
        self._take_dirty()
        self._keep()

    def _value(self, argument: Any) -> Any:
        if isinstance(argument.value, Region):
            return PlainNumber.of(argument.value)
        if argument.spec is None:
            return argument.value
        mapping = self.session.facts.mapping
        shape = tuple(dim.substitute(mapping) for dim in argument.spec.dims)
        node = self.session.graph.input(argument.name, TensorType(argument.spec.dtype, shape))
        self.session.namer.reserve(argument.name)
        self.inputs[argument.name] = node
        handle = fresh(node, argument.name)
        own_names(handle)[GIVEN] = True
        self.questions.inputs[id(handle.storage)] = argument.name
        return ComplexTensor.of(handle) if argument.spec.complex else handle

    def _take_dirty(self) -> None:
        """An input that forward says it changed has to be returned, and is no surprise."""
        for tensor in state_of(self.context).dirty:
            if not any(tensor is slot for slot in self.slots):
                raise ProtocolError(
                    "mark_dirty was called with a tensor that forward does not return",
                    location=state_of(self.context).dirty_at,
                    hint="return it, or leave out ctx.mark_dirty",
                )
            label = tensor.storage.label
            if label in self.session.written:
                self.session.written.remove(label)
        self.session.updated, self.session.written = self.session.written, []

    def _keep(self) -> None:
        for number, tensor in enumerate(kept_tensors(self.context)):
            if isinstance(tensor, SelectedTensor):
                self.saved.extend((tensor.whole, tensor.mask))
                continue
            self.saved.append(tensor.node)
            if not tensor.storage.label:
                tensor.storage.label = tensor.node.name or f"saved_{number}"

    # -- histories

    def follow(self, history: History, cotangents: Sequence[_Cotangent]) -> None:
        """Forward is over: what it made has the history that PyTorch would give it."""
        changed = state_of(self.context).dirty
        if any(isinstance(slot, ComplexTensor) for slot in self.slots):
            history.give_up("forward returns complex numbers")
        if any(isinstance(slot, SelectedTensor) for slot in self.slots):
            history.give_up("forward returns what a mask selects")
        for tensor in self.handles:
            written = isinstance(tensor, SymbolicTensor) and tensor.storage.version
            if written and not any(tensor is one for one in changed):
                history.give_up("forward changes an input in place")
        floats = tuple(node for node in self.inputs.values() if node.dtype.is_float)
        step = Returned(OWN_RULE, 0, floats)
        history.returned(self.begun, self.slots, self.linked(cotangents), step, changed)
        history.following, history.recording, history.in_forward = True, True, False

    def linked(self, cotangents: Sequence[_Cotangent]) -> list[Node | None]:
        """The cotangent of each slot, None for what has none."""
        nodes = iter(cotangents)
        return [
            next(nodes).node if isinstance(slot, SymbolicTensor) else None for slot in self.slots
        ]

    # -- outputs

    @property
    def selected(self) -> tuple[int, ...]:
        """The places of the outputs that are what a mask selects."""
        tensors = [slot for slot in self.slots if isinstance(slot, SymbolicTensor)]
        return tuple(at for at, one in enumerate(tensors) if isinstance(one, SelectedTensor))

    def name_outputs(self) -> None:
        """Find the outputs and name them: after backward's parameters, or forward's variables."""
        self.session.namer.finish(self.session)
        for number, tensor in enumerate(kept_tensors(self.context)):
            if tensor.storage.label == f"saved_{number}" and tensor.node.name:
                tensor.storage.label = tensor.node.name
        tensors = [slot for slot in self.slots if isinstance(slot, SymbolicTensor)]
        if not tensors:
            raise self._no_tensor()
        parameters = self._cotangent_parameters()
        for slot, parameter in zip(self.slots, parameters, strict=True):
            if isinstance(slot, SymbolicTensor):
                self._name_output(_whole(slot), parameter, len(tensors))

    def _no_tensor(self) -> ProtocolError:
        """The error for a forward that returns nothing to differentiate."""
        where = returns_of(self.request.cls, "forward")
        kinds = [type(slot).__name__ for slot in self.slots]
        nothing = kinds in ([], ["NoneType"])
        given = "returns nothing" if nothing else f"returns {listed(kinds)}"
        return ProtocolError(
            f"forward returned no tensor: it {given}", location=where,
            hint="return the result: a tensor, or a tuple with tensors in it",
        )  # fmt: skip

    def _name_output(self, node: Node, parameter: str, count: int) -> None:
        taken = {*self.inputs, *self.output_names}
        stem = parameter.removeprefix("grad_").removeprefix("d_")
        own = node.name if node.op != "input" else None
        if own and re.sub(r"_\d+$", "", own) in self.inputs:
            own = None  # a new value of a variable that held an input
        default = "output" if count == 1 else f"output_{len(self.output_names)}"
        candidates = [stem if stem != parameter else None, own, default]
        name = next((word for word in candidates if word and word not in taken), None)
        name = name or self.session.namer.unique(default)
        self._give_name(node, name)
        self.outputs.append(node)
        self.output_names.append(name)

    def _give_name(self, node: Node, name: str) -> None:
        """Name an output's node; an earlier holder of the name takes the node's own in exchange."""
        if node.op == "input" or node.name == name:
            return
        holder = next((other for other in self.session.graph.nodes if other.name == name), None)
        if holder is not None and holder not in self.outputs:
            holder.name, node.name = node.name, name
        elif holder is None:
            self.session.namer.reserve(name)
            node.name = name

    @property
    def words_of_cotangents(self) -> tuple[str, ...]:
        """What backward calls the cotangent of each tensor that forward returned."""
        words = zip(self.slots, self._cotangent_parameters(), strict=True)
        return tuple(word for slot, word in words if isinstance(slot, SymbolicTensor))

    def _cotangent_parameters(self) -> list[str]:
        """The names of backward's parameters, one for each thing that forward returned."""
        blank = [""] * len(self.slots)
        if not has_backward(self.request.function):
            return blank
        plain, hidden = raw_method(self.request.function, "backward")
        parameters = inspect.signature(plain).parameters.values()
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        names = [one.name for one in parameters if one.kind in kinds][hidden:]
        return names if len(names) == len(self.slots) else blank

    # -- backward

    def make_cotangents(self, given: Sequence[bool] | None) -> list[_Cotangent]:
        """A cotangent for each output: an input of the graph, or zeros, or None."""
        state = state_of(self.context)
        without = [_whole(tensor) for tensor in state.non_differentiable]
        found: list[_Cotangent] = []
        for slot in self.slots:
            if not isinstance(slot, SymbolicTensor):
                self.given.append(lambda: None)
                continue
            position = len(found)
            node = _whole(slot)
            asked = given is None or given[position]
            self.roles[f"output {position}"] = slot
            shared = self._shared(f"cotangent {position}")
            if shared is not None:
                slot_value = _Cotangent(real_of(shared).node, _always(shared))
            elif node.dtype.is_float and node not in without and asked:
                slot_value = self._given(position, node, real=type(slot) is type(fresh(node)))
            else:
                slot_value = _Cotangent(None, self._undefined(node, state.materialize))
            found.append(slot_value)
            self.given.append(_like(slot, slot_value.make))
        return found

    def _shared(self, role: str) -> Any:
        """The tensor that is given as a cotangent too; None where that is a tensor of its own."""
        group = next((group for group in self.same if role in group), ())
        output = self.roles[role.replace("cotangent", "output")]
        known = [self.roles[name] for name in group if name in self.roles]
        if known or not group:
            return known[0] if known and type(known[0]) is type(output) else None
        number = int(role.removeprefix("cotangent "))
        node = self._cotangent_input(_whole(output), self.output_names[number])
        self.roles[role] = _like(output, _always(fresh(node, node.label)))()
        return self.roles[role]

    def _given(self, position: int, node: Node, *, real: bool) -> _Cotangent:
        """The cotangent of an output; expanded, a number's, and the output is then its sum."""
        name = self.session.namer.unique(f"grad_{self.output_names[position]}")
        if real and node.rank and self.session.strided:
            self.questions.cotangents.add(name)
        if not self.questions.made_expanded(name):
            cotangent = self.session.graph.input(name, node.type)
            return _Cotangent(cotangent, _handle(cotangent, cotangent.label))
        self.outputs[position] = total = fresh(node).sum().node
        number = self.session.graph.input(name, total.type)

        def make() -> SymbolicTensor:
            found = fresh(number, number.label).shared(Expand(node.shape))
            found.lies_as((Dim.of(0),) * node.rank, None)
            own_names(found)[GIVEN] = True
            return found

        return _Cotangent(number, make)

    def _cotangent_input(self, node: Node, output: str) -> Node:
        name = self.session.namer.unique(f"grad_{output}")
        return self.session.graph.input(name, node.type)

    def _undefined(self, node: Node, materialize: bool) -> Callable[[], Any]:
        if not materialize:
            return lambda: None
        session = self.session
        return lambda: fresh(session.expand(session.constant(0, node.dtype), node.shape))

    def backward(self) -> tuple[tuple[Gradient, ...], SymgradError | None]:
        """Run backward; what it raises is the problem."""
        kept = self._kept()
        try:
            found = self._gradients()
        except (Exception, SystemExit) as error:
            problem = advised(error, "backward")
            if isinstance(problem, ProtocolError):  # of what it returned
                problem.location = problem.location or returns_of(self.request.cls, "backward")
            return (), problem
        if self.twice and not self.session.written:
            if not self._same_again(found):
                self.session.note_written("ctx")
            else:
                later = Later(kept, [], self._kept, lambda: self._same_again(found))
                self.state += later.judge()
        self.state += self._kept().reach.asked
        return found, None

    def unwritten(self, cotangents: Sequence[_Cotangent]) -> ProtocolError | None:
        """What goes wrong because there is no backward; None where no output asks for one."""
        if all(one.node is None for one in cotangents):
            return None
        cls = self.request.cls
        return ProtocolError(
            cls.symgrad_unwritten, location=class_location(cls),
            hint="write backward(ctx, ...), with @staticmethod",
        )  # fmt: skip

    def _kept(self) -> State:
        """What is on ctx."""
        return State.of_context(self.context)

    def _gradients(self) -> tuple[Gradient, ...]:
        if self.drawn is None:
            self.drawn = self.session.draws
        self.session.draws = self.drawn  # a second call is compared for the same draws
        values = [make() for make in self.given]
        returned = run_backward(self.request.function, self.context, values)
        return gradients.collect(self.session, returned, self.request, self.inputs)

    def same_for_others(
        self, cotangents: Sequence[_Cotangent], found: tuple[Gradient, ...]
    ) -> bool:
        """Does a second call with other cotangents give the gradients of the first for these?"""
        session, known = self.session, {}
        session.namer.finish(session)
        for slot, cotangent in zip(self._differentiated(), cotangents, strict=True):
            if cotangent.node is not None:
                name = session.namer.unique(f"{cotangent.node.label}_again")
                node = session.graph.input(name, cotangent.node.type)
                known[node] = cotangent.node
                self.given[slot] = _like(self.slots[slot], _handle(node, name))
        self.questions.other = known
        try:
            again = self._gradients()
        except Exception:
            return False
        nodes = self._values([gradient.node for gradient in again])
        present = [node for node in nodes if node is not None]
        if set(known.values()) & set(ancestors(present)):
            return False  # the cotangents of the first call
        new = rewrite(session.graph, present, known)
        before = self._values([gradient.node for gradient in found])
        return [None if node is None else new[node] for node in nodes] == before

    def _values(self, nodes: list[Node | None]) -> list[Node | None]:
        """The nodes without what histories mark them with."""
        if self.session.history is None:
            return nodes
        present = [node for node in nodes if node is not None]
        new = without_markers(self.session.graph, present)
        return [None if node is None else new[node] for node in nodes]

    def _differentiated(self) -> list[int]:
        """The numbers of the slots that are tensors."""
        return [
            number for number, slot in enumerate(self.slots) if isinstance(slot, SymbolicTensor)
        ]

    def _same_again(self, found: tuple[Gradient, ...]) -> bool:
        """Does a second call give the same gradients: is nothing that it reads used up?"""
        try:
            again = self._gradients()
        except Exception:
            return False
        nodes = [[gradient.node for gradient in one] for one in (again, found)]
        if self.session.history is not None:
            present = [node for one in nodes for node in one if node is not None]
            new = without_markers(Graph(), present)
            nodes = [[None if node is None else new[node] for node in one] for one in nodes]
        return nodes[0] == nodes[1]


def _whole(output: Any) -> Node:
    """The node of what forward returns; of what a mask selects, the whole with zeros elsewhere."""
    return output.or_else(0) if isinstance(output, SelectedTensor) else real_of(output).node


def _like(output: SymbolicTensor, make: Callable[[], Any]) -> Callable[[], Any]:
    """What makes the cotangent of an output: complex where that is, and selected by its mask."""
    if not isinstance(output, (ComplexTensor, SelectedTensor)):
        return make

    def made() -> Any:
        found = make()
        if found is None or isinstance(found, type(output)):
            return found
        if isinstance(output, ComplexTensor):
            return ComplexTensor.of(found)
        selected = output.with_whole(found.node)
        selected.storage.label = found.storage.label
        own_names(selected)[GIVEN] = True
        return selected

    return made


def _always(value: Any) -> Callable[[], Any]:
    return lambda: value


def _handle(node: Node, label: str) -> Callable[[], SymbolicTensor]:
    def make() -> SymbolicTensor:
        found = fresh(node, label)
        own_names(found)[GIVEN] = True
        return found

    return make
