"""What PyTorch would record of a trace, for differentiating backward again.

In: the tensors that forward and backward make.  Out: ``detach`` and ``applied`` markers in the
graph, and an ``AppliedRule`` for each Function that was applied.

PyTorch runs forward without recording, but for ``enable_grad``, where its arguments require a
gradient.  Of what it made, the outputs get the Function itself as their history; everything else is
a constant, wherever it was kept: saved, on ctx, in a list, in a global.  In backward, ``detach``,
``data`` and ``no_grad`` make constants, and a Function applied there is differentiated by its own
backward, not by what its forward does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from symgrad.autodiff.reverse import reached
from symgrad.errors import SymgradError, UnsupportedOpError
from symgrad.frontend import gradients
from symgrad.frontend.caller import here
from symgrad.frontend.function import (
    Context,
    Function,
    class_of,
    is_once,
    run_backward,
    run_forward,
    state_of,
)
from symgrad.frontend.session import Session, as_symgrad_error, current
from symgrad.frontend.tensor import SymbolicTensor, fresh
from symgrad.frontend.views import Perhaps, Shape, Storage
from symgrad.ir.function import AppliedRule, HistoryRecord
from symgrad.ir.graph import Node, ancestors
from symgrad.ops.markers import recorded_args

SAVED, DETACHED, UNRECORDED, GRADIENT = "saved", "detached", "unrecorded", "gradient"
"""Why a value is a constant: made in forward and kept; by ``detach``; under ``no_grad``; a gradient
that backward asked for without ``create_graph``."""
OWN_RULE = 0
AnyFunctionType = type[Function] | Function


@dataclass(frozen=True)
class Detached:
    """A step to the same elements, cut off from differentiation."""

    why: str

    def read(self, session: Session, whole: Node) -> Node:
        """The same elements."""
        return detached(session, whole, self.why)

    def write(self, session: Session, whole: Node, part: Node) -> Node:
        """What is written, which the record of the whole does not know of."""
        said = "a tensor that is cut off from differentiation is written"
        if session.cuts:
            raise UnsupportedOpError(said, location=here(), hint="clone() it before")
        if session.history is not None:
            session.history.give_up(said)
        return part

    def strides(self, shape: Shape, strides: Shape) -> Shape | None:
        """The same strides."""
        return strides


@dataclass(frozen=True)
class Returned:
    """A step to the same elements, with a Function as their history."""

    rule: int
    output: int
    inputs: tuple[Node, ...]

    def read(self, session: Session, whole: Node) -> Node:
        """The same elements."""
        return session.apply("applied", whole, *self.inputs, rule=self.rule, output=self.output)

    def write(self, session: Session, whole: Node, part: Node) -> Node:
        """What is written, which the record of the whole does not know of."""
        if session.history is not None:
            session.history.give_up("an output that shares memory is written")
        return part

    def strides(self, shape: Shape, strides: Shape) -> Shape | None:
        """The same strides."""
        return strides


@dataclass(frozen=True)
class Kept:
    """A step to the same elements, whose history rests on what forward gave for a tensor."""

    perhaps: Perhaps

    def read(self, session: Session, whole: Node) -> Node:
        """The same elements, in backward: what they rest on is printed."""
        self.perhaps.assume()
        return whole

    def write(self, session: Session, whole: Node, part: Node) -> Node:
        """What is written."""
        return part

    def strides(self, shape: Shape, strides: Shape) -> Shape | None:
        """The same strides."""
        return strides


def perhaps_itself(tensor: SymbolicTensor, name: str) -> None:
    """In forward, an operation gives a tensor itself, or a copy, which has no history."""
    history = current().history
    if history is not None and history.in_forward and tensor.dtype.is_float:
        said = f"{name}() gives the tensor itself, and no copy"
        history.rests(tensor.storage, Perhaps(said, here(), tensor.storage.version))


def perhaps_copy(tensor: SymbolicTensor, copied: SymbolicTensor, name: str) -> None:
    """In forward, an operation gives a copy of a tensor, or the tensor itself."""
    history = current().history
    if history is not None and history.in_forward and tensor.dtype.is_float:
        said = f"{name}() gives a copy, and not the tensor itself"
        step = Perhaps(said, here(), tensor.storage.version)
        history.rests(copied.storage, step, returned=tensor)


def detached(session: Session, node: Node, why: str) -> Node:
    """``node`` as a constant; itself where it is one anyway."""
    if not node.dtype.is_float or node.op in ("detach", "constant", "size"):
        return node
    return session.apply("detach", node, why=why)


def unlinked(tensor: SymbolicTensor, why: str = DETACHED) -> SymbolicTensor:
    """A tensor with memory of its own, as a constant where histories are followed."""
    session = current()
    if session.history is not None and session.history.following:
        _set_node(tensor.storage, Detached(why).read)
    return tensor


@dataclass(frozen=True)
class Mark:
    """How much had been made at some time."""

    tensors: int
    storages: int


class History:
    """What a trace would have recorded so far.

    ``following``: markers are put into the graph, as in backward, not as in forward, whose values
    get them when it is over; where forward itself records (``enable_grad``), from there on, and
    ``in_forward`` says that it is that.  ``recording``: not inside ``no_grad``.  ``reason``: why
    the record cannot be told; empty where it can.  ``leaves``: constants that were made to be
    differentiated by, whose ``grad`` a backward inside fills.  ``since``: when forward began.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.following = False
        self.recording = True
        self.in_forward = True
        self.since = Mark(0, 0)
        self.reason = ""
        self.leaves: list[SymbolicTensor] = []
        self._rules: list[AppliedRule | None] = [None]
        self._made: list[SymbolicTensor] = []
        self._storages: dict[int, tuple[Storage, list[SymbolicTensor]]] = {}
        self._overwritten: dict[Node, None] = {}
        self._writes: dict[Node, None] = {}
        self._passing: set[int] = set()
        self._resting: list[tuple[Storage, Perhaps, SymbolicTensor | None]] = []

    @property
    def record(self) -> HistoryRecord:
        """What the proof needs to know beside the markers."""
        held = {
            storage.node for key, (storage, _) in self._storages.items() if key not in self._passing
        }
        return HistoryRecord(
            rules=tuple(rule for rule in self._rules if rule is not None),
            overwritten=tuple(node for node in self._overwritten if node not in held),
            writes=tuple(self._writes),
            reason=self.reason,
        )

    @property
    def records(self) -> bool:
        """Does what is computed now get a history?"""
        return self.following and self.recording

    def give_up(self, reason: str) -> None:
        """Remember the first thing that is not followed."""
        self.reason = self.reason or f"{reason} ({here()})"

    def rests(
        self, storage: Storage, on: Perhaps, *, returned: SymbolicTensor | None = None
    ) -> None:
        """The history of some memory rests on a condition.

        ``returned``: only if forward returns that tensor; any other has no history anyway.
        """
        self._resting.append((storage, on, returned))

    # -- tensors

    def born(self, tensor: SymbolicTensor) -> None:
        """A tensor was made."""
        self._made.append(tensor)
        key = id(tensor.storage)
        new = key not in self._storages
        self._storages.setdefault(key, (tensor.storage, []))[1].append(tensor)
        if new and self.following and not self.recording:
            tensor.storage.node = detached(self.session, tensor.storage.node, UNRECORDED)

    def cuts(self) -> tuple[Detached, ...]:
        """The last steps to a view that is made now."""
        return () if self.recording or not self.following else (Detached(UNRECORDED),)

    def written(self, tensor: SymbolicTensor, value: Node) -> Node:
        """A tensor is about to be written in place; what is then written in place of ``value``."""
        if not self.following:
            return value
        whole = tensor.storage.node
        if self.recording:
            shown = self._storages[id(tensor.storage)][1]
            old = [whole, *(one.known_node() for one in shown)]
            self._overwritten.update(dict.fromkeys(node for node in old if node is not None))
            bare = _bare(value)
            self._writes.update(dict.fromkeys(bare))
            if self._made[-1].storage.node in bare:  # the result that is written and then forgotten
                self._passing.add(id(self._made[-1].storage))
            return value
        if _has_history(whole):
            self.give_up("what has a history is written under no_grad")
        return detached(self.session, value, UNRECORDED)

    @contextmanager
    def set_recording(self, mode: bool) -> Iterator[None]:
        """A block inside or outside ``no_grad``."""
        if mode:
            self.record_in_forward()
        before, self.recording = self.recording, mode
        try:
            yield
        finally:
            self.recording = before

    def record_in_forward(self) -> None:
        """Forward begins to record, or makes a leaf: what it made so far are constants."""
        if self.following:
            return
        self.following, self.recording = True, False
        self.give_up("forward records a part of what it computes")
        new = list(self._storages)[self.since.storages :]
        for tensor in self._made[self.since.tensors :]:
            if id(tensor.storage) not in new:
                _add_step(tensor, Detached(UNRECORDED))
        for key in new:
            _set_node(self._storages[key][0], Detached(UNRECORDED).read)

    @contextmanager
    def forward(self) -> Iterator[Mark]:
        """A forward runs, which does not record where it does not say so."""
        before = self.following, self.recording, self.in_forward, self.since
        self.following, self.in_forward, self.since = False, True, self.mark()
        try:
            yield self.since
        finally:
            self.following, self.recording, self.in_forward, self.since = before

    # -- Functions

    def mark(self) -> Mark:
        """How much there is now."""
        return Mark(len(self._made), len(self._storages))

    def returned(
        self,
        since: Mark,
        slots: Sequence[Any],
        cotangents: Sequence[Node | None],
        returned: Returned,
        changed: Sequence[Any] = (),
    ) -> list[Any]:
        """Cut off what a forward made, and put its Function behind what it returned.

        ``slots``: all that it returned; ``cotangents``: None for a slot without a derivative.
        ``returned``: its rule and inputs.  ``changed``: the inputs that it says it changed.  The
        result: the slots as their receiver sees them.
        """
        made = self._made[since.tensors :]
        own = {leaf.storage.node for leaf in self.leaves}
        if self.following:  # forward records: there its inputs require a gradient
            own.update(returned.inputs)
        new = set(list(self._storages)[since.storages :])
        linked = {
            id(slot): place for place, slot in enumerate(slots) if cotangents[place] is not None
        }
        shown = [tensor for tensor in made if id(tensor) in linked]
        beneath = {id(tensor.storage) for tensor in shown}
        for tensor in made:
            if (
                id(tensor) not in linked
                and (id(tensor.storage) not in new or id(tensor.storage) in beneath)
                and not _is_recorded(tensor.node, own)
            ):
                _add_step(tensor, Detached(SAVED))
        for key in list(self._storages)[since.storages :]:
            if key not in beneath and not _is_recorded(self._storages[key][0].node, own):
                _set_node(self._storages[key][0], Detached(SAVED).read)
        for tensor in shown:
            step = Returned(returned.rule, linked[id(tensor)], returned.inputs)
            alone = id(tensor.storage) in new and _count(shown, tensor) == 1
            alone = alone and not _is_recorded(tensor.storage.node, own)
            _link(tensor, step, alone=alone)
        self._rest(slots)
        return [
            self._as_returned(slot, place, made, cotangents, returned, changed)
            for place, slot in enumerate(slots)
        ]

    def _rest(self, slots: Sequence[Any]) -> None:
        """Note on tensors what their history rests on."""
        for storage, on, only in self._resting:
            if only is None or any(slot is only for slot in slots):
                for tensor in self._storages[id(storage)][1]:
                    _add_step(tensor, Kept(on))
        self._resting.clear()

    def _as_returned(
        self,
        slot: Any,
        place: int,
        made: Sequence[SymbolicTensor],
        cotangents: Sequence[Node | None],
        returned: Returned,
        changed: Sequence[Any],
    ) -> Any:
        """A slot; where it is an input, a view of it, or itself where it was changed."""
        own = any(slot is tensor for tensor in made)
        if own or cotangents[place] is None:
            return slot
        step = Returned(returned.rule, place, returned.inputs)
        if any(slot is tensor for tensor in changed):
            _add_step(slot, step)
            return slot
        return slot.shared(step)

    def call(
        self,
        function: AnyFunctionType,
        ctx: Context,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any:
        """Apply a Function in backward: its outputs are differentiated by its backward."""
        inputs = [arg for arg in args if isinstance(arg, SymbolicTensor) and arg.dtype.is_float]
        nodes = tuple(tensor.node for tensor in inputs)
        number = len(self._rules)
        self._rules.append(None)
        with self.forward() as since:
            output = run_forward(function, ctx, args, kwargs)
            self.following = False
            several = isinstance(output, (tuple, list))
            slots = list(output) if several else [output]
            self._check_written(function, ctx, inputs, nodes)
            cotangents = [self._cotangent(ctx, slot, number) for slot in slots]
            step = Returned(number, 0, nodes)
            self._rules[number] = AppliedRule(class_of(function).__name__, (), ())
            found = self.returned(since, slots, cotangents, step, state_of(ctx).dirty)
            self._rules[number] = self._rule(function, ctx, args, slots, cotangents)
        return type(output)(found) if several else found[0]

    def _check_written(
        self, function: AnyFunctionType, ctx: Context, inputs: Sequence[Any], nodes: Sequence[Node]
    ) -> None:
        if any(t.node is not node for t, node in zip(inputs, nodes, strict=True)):
            self.give_up(f"{class_of(function).__name__} changes its argument in place")

    def _cotangent(self, ctx: Context, slot: Any, number: int) -> Node | None:
        if not isinstance(slot, SymbolicTensor) or not slot.dtype.is_float:
            return None
        if any(slot is tensor for tensor in state_of(ctx).non_differentiable):
            return None
        name = self.session.namer.unique(f"grad_{number}")
        return self.session.graph.input(name, slot.node.type)

    def _rule(
        self,
        function: AnyFunctionType,
        ctx: Context,
        args: Sequence[Any],
        slots: Sequence[Any],
        cotangents: Sequence[Node | None],
    ) -> AppliedRule:
        """Run backward on cotangents of its own."""
        name, location = class_of(function).__name__, here()
        given = tuple(cotangents)
        if is_once(function):
            return AppliedRule(name, given, (), location, once=True)
        zero = state_of(ctx).materialize
        values = [
            fresh(cotangent) if cotangent is not None else self._undefined(slot, zero)
            for slot, cotangent in zip(slots, cotangents, strict=True)
        ]
        try:
            result = run_backward(function, ctx, values)
            found = gradients.collect_by_position(self.session, result, args)
        except Exception as error:
            return AppliedRule(name, given, (), location, as_symgrad_error(error, "backward"))
        problem: SymgradError | None = next((g.problem for g in found if g.problem), None)
        return AppliedRule(name, given, tuple(g.node for g in found), location, problem)

    def _undefined(self, slot: Any, materialize: bool) -> Any:
        if not materialize or not isinstance(slot, SymbolicTensor):
            return None
        node = slot.node
        return fresh(self.session.expand(self.session.constant(0, node.dtype), node.shape))

    def rule(self, number: int) -> AppliedRule:
        """How the ``applied`` nodes of that number are differentiated.

        Raises its problem; UnsupportedOpError for the Function that is traced itself.
        """
        found = self._rules[number]
        if found is None:
            raise UnsupportedOpError("backward differentiates its own Function's output")
        if found.problem is not None:
            raise found.problem
        return found

    def renewed(self, node: Node) -> Node:
        """The same value, and a node of its own to differentiate by."""
        graph, name = self.session.graph, f"renewed {len(self._rules)}"
        cotangent = graph.input(name, node.type)
        del graph.inputs[name]
        self._rules.append(AppliedRule("renewed", (cotangent,), (cotangent,)))
        return self.session.apply("applied", node, node, rule=len(self._rules) - 1, output=0)

    def make_leaf(self, tensor: SymbolicTensor) -> None:
        """Give a constant a node of its own to differentiate by."""
        if not _has_history(tensor.node):
            tensor.storage = Storage(self.renewed(tensor.node))
            tensor.steps, tensor._cached = (), None
            self._storages[id(tensor.storage)] = (tensor.storage, [tensor])
            self.leaves.append(tensor)

    def own_rule(self, name: str, cotangents: Sequence[Node | None], found: Sequence[Any]) -> None:
        """What differentiates the outputs of the traced Function itself."""
        nodes = tuple(gradient.node for gradient in found)
        self._rules[OWN_RULE] = AppliedRule(name, tuple(cotangents), nodes)


def _add_step(tensor: SymbolicTensor, step: Detached | Returned | Kept) -> None:
    tensor.steps = (*tensor.steps, step)
    tensor._cached = None


def _set_node(storage: Storage, change: Any) -> None:
    """Other contents of the same values, which is no write."""
    storage.node = change(current(), storage.node)
    storage.version += 1


def _is_recorded(node: Node, leaves: set[Node]) -> bool:
    """Does forward itself record what a node is computed from, back to one of its leaves?"""
    return bool(leaves) and node in reached(ancestors([node]), leaves, recorded_args)


def _count(shown: Sequence[SymbolicTensor], tensor: SymbolicTensor) -> int:
    return sum(other.storage is tensor.storage for other in shown)


def _link(tensor: SymbolicTensor, step: Returned, *, alone: bool) -> None:
    """Put a Function behind a tensor: behind its memory where nothing else returned shows it."""
    if alone and not tensor.steps:
        _set_node(tensor.storage, step.read)
    else:
        _add_step(tensor, step)


def _bare(node: Node) -> list[Node]:
    """A node and what it is only another shape or dtype of."""
    found = [node]
    while found[-1].op in ("expand", "cast", "reshape", "permute"):
        found.append(found[-1].args[0])
    return found


def _has_history(node: Node) -> bool:
    """Does a node depend, through floats, on what is differentiated by?"""
    cut = [one for one in ancestors([node]) if one.op == "detach" or not one.dtype.is_float]
    return any(one.op == "input" for one in ancestors([node], stop=cut) if one.dtype.is_float)
