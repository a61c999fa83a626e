"""What Python asks of a traced tensor, size or ctx besides what the graph holds.

In: the answers that this trace is to give.  Out: what was asked, and where.

A question is treated in one of three ways.

- It **splits the trace**: does an input require a gradient, is it a leaf, does it lie contiguously?
  The trace gives one answer and remembers the question; the driver traces again for the other one,
  as far as the program comes to ask (``compiler``).
- It is **assumed**: the trace gives the only answer that it has, and the verdict prints it.
- It is **observed**: there is no answer that holds for all calls, so the verdict is UNDECIDED.  The
  first observation stays, also where the program handles the exception.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from symgrad.errors import (
    ControlFlowError,
    Location,
    ProtocolError,
    SymgradError,
    UnsupportedOpError,
    counted,
)
from symgrad.frontend.caller import asker, here
from symgrad.frontend.choices import MOST_CHOICES, MOST_REPEATED
from symgrad.frontend.session import RAISED_AS, active
from symgrad.frontend.spoken import only_said, unheard
from symgrad.frontend.ways import Answers, Choice
from symgrad.ir.function import Answer, Asked
from symgrad.ir.graph import Node
from symgrad.ir.rewrite import rewrite

_LIMITS = (UnsupportedOpError, ControlFlowError)
_RAISED = (NotImplementedError, IndexError, ValueError, TypeError)
_REQUIRES = "{} requires a gradient"
AGAIN = "backward is differentiated again"
GPU = "the tensors are on a GPU"
EXPANDED = "{} is expanded from a number, as sum().backward() makes it"
CPU, CUDA = "cpu", "cuda"
CPU_OR_GPU = "the tensors are on the CPU or on a GPU of CUDA"


def requires(name: str) -> str:
    """The question whether an input requires a gradient."""
    return _REQUIRES.format(name)


_NEGATIVES = (
    (" requires a gradient", " requires no gradient"), (" is a leaf", " is no leaf"),
    ("inputs are Parameters", "inputs are no Parameters"),
    (" is contiguous", " is not contiguous"), (" is expanded", " is not expanded"),
    ("are on a GPU", "are on the CPU"),
    (" is differentiated again", " is not differentiated again"),
)  # fmt: skip


def said(question: str, value: bool) -> str:
    """An answer as a sentence: ``w requires no gradient``."""
    for positive, negative in () if value else _NEGATIVES:
        question = question.replace(positive, negative)
    return question


@dataclass
class Questions:
    """The questions of one trace.

    ``given``: the answers that are decided already.  ``answers``: all that were asked for, in
    order.  ``observed``: what has no answer; ``assumed``: what the verdict has to print.
    ``leaked``: where the program met a tensor of another call.  ``identity``: it may ask which
    object a tensor is.  ``keeps``: ``saved_tensors`` has the tensors that were saved, and not
    other objects for them; ``hooked``: other tensors in the same memory, as hooks of saved tensors
    make.
    ``inputs``: the names of the inputs by the identity of their memory; ``outputs``: the memory of
    what forward ``returned``.  ``wanted``: the inputs that may require a gradient.
    ``marks``: attributes that the program sets on tensors; ``read`` and ``lacking``: those that it
    finds there, and does not find; ``marked``: those that its code sets somewhere.
    ``mode``: what forward says of recording (``enable_grad``), if it does; ``recorded``: it has.
    ``views``: how many other tensors were asked whether they lie contiguously.
    ``choices``: what is asked of elements, with the answers: those ``chosen``, and yes after them;
    there are none where that is None.  ``repeated``: how often it asked.
    ``quiet``: left where what is said is heard again.
    ``other``: cotangents of another call, and those of which is answered what is asked of them.
    ``raised``: the errors of operations of another library's, which words them otherwise.
    ``devices``: what was answered where the program asked for one kind of device.
    ``cotangents``: the names of those that may be numbers that are expanded.
    ``passed``: so many arguments are passed, by what backward reads; ``left_out``: those that are
    not, by what it returns.
    """

    given: Mapping[str, bool]
    wanted: tuple[str, ...] = ()
    answers: dict[str, Answer] = field(default_factory=dict)
    observed: list[Asked] = field(default_factory=list)
    assumed: list[Asked] = field(default_factory=list)
    inputs: dict[int, str] = field(default_factory=dict)
    outputs: set[int] = field(default_factory=set)
    returned: tuple[Any, ...] = ()
    backward: bool = False
    leaked: Asked | None = None
    identity: bool = False
    keeps: bool = False
    hooked: bool = False
    marks: list[tuple[Any, str, Location | None]] = field(default_factory=list)
    read: set[str] = field(default_factory=set)
    lacking: set[str] = field(default_factory=set)
    marked: frozenset[str] = frozenset()
    raised: list[SymgradError] = field(default_factory=list)
    mode: bool | None = None
    recorded: bool = False
    views: int = 0
    choices: list[Choice] = field(default_factory=list)
    chosen: Answers | None = None
    repeated: int = 0
    quiet: ExitStack | None = None
    other: Mapping[Node, Node] = field(default_factory=dict)
    devices: set[bool] = field(default_factory=set)
    cotangents: set[str] = field(default_factory=set)
    passed: int = 0
    left_out: tuple[str, ...] = ()

    def answer(
        self, question: str, usual: bool, where: Location | None, *, real: bool = True
    ) -> bool:
        """The answer to a question.  ``real``: calls of both kinds exist."""
        known = self.answers.get(question)
        if known is None:
            value = self.given.get(question, usual)
            known = Answer(question, value, question in self.given, real, where)
            self.answers[question] = known
        return known.value

    def requires(self, name: str, where: Location | None) -> bool:
        """Does an input require a gradient?  In a call that comes to backward one of them does."""
        if name not in self.wanted:
            return False
        if requires(name) in self.given:
            return self.answer(requires(name), True, where)
        others = [self._known(requires(other)) for other in self.wanted if other != name]
        if all(known is False for known in others):
            return True
        return self.answer(requires(name), True, where)

    def _known(self, question: str) -> bool | None:
        found = self.answers.get(question)
        return self.given.get(question) if found is None else found.value

    def number(self, node: Node, low: int, high: int, where: Location | None) -> int | None:
        """Which whole number is it, from ``low`` to ``high``?  None where too many are asked."""
        for value in () if low == high else (low, *range(high, low + 1, -1)):
            wanted = node.graph.expand(node.graph.constant(value, node.dtype), node.shape)
            op, said = ("ne", False) if value == low else ("eq", True)
            chosen = self.chooses(node.graph.apply(op, node, wanted), where, is_value=True)
            if chosen is None:
                return None
            if chosen is said:
                return int(value)
        return min(low + 1, high)

    def chooses(
        self, node: Node, where: Location | None, *, is_value: bool = False
    ) -> bool | None:  # fmt: skip
        """Is it so of a node, or of a mask that it selects anything?  See ``frontend.choices``."""
        if self.chosen is None:
            return None
        if self.other:
            node = rewrite(node.graph, [node], self.other)[node]
        known = next((one for one in self.choices if one.node is node), None)
        if known is None:
            asked = len(self.choices)
            if asked == MOST_CHOICES:
                return None
            holds = self.chosen[asked] if asked < len(self.chosen) else True
            if not asked and self.quiet is not None:
                self.quiet.enter_context(unheard())
            known = Choice(node, holds, where, is_value)
            self.choices.append(known)
        self.repeated += not is_value
        return None if self.repeated > MOST_REPEATED else known.holds

    def observe(self, what: str, where: Location | None) -> None:
        """Something is asked that has no answer for all calls."""
        self.observed.append(Asked(what, where))

    def assume(self, text: str, where: Location | None) -> None:
        """Something is asked that is taken to be so."""
        if all(one.what != text for one in self.assumed):
            self.assumed.append(Asked(text, where))

    def assume_here(self, text: str, where: Location | None) -> None:
        """Something is taken to be so at a place, which is part of what is printed."""
        self.assume(str(Asked(text, where)), None)

    def leave_out(self, defaults: Mapping[str, Any]) -> None:
        """Backward returns no gradient for arguments that have these defaults."""
        self.left_out = tuple(defaults)
        many = "are" if len(defaults) > 1 else "is"
        none = all(one is None for one in defaults.values())
        said = f"{' and '.join(defaults)} {many} left out"
        self.assume(f"{said} rather than None" if none else said, None)

    # -- attributes that the program sets on tensors

    def outliving(self, tensor: Any) -> str:
        """What a tensor is that stays when the call is over; "" for one of the call itself."""
        if not tensor._given:
            return ""
        name = self.inputs.get(id(tensor.storage))
        if name is None and id(tensor.storage) in self.outputs:
            name = "an output"
        if name is None and tensor.storage.node.op == "input" and not tensor.steps:
            name = tensor.storage.label
        return name or ""

    def mark(self, tensor: Any, name: str, where: Location | None) -> None:
        """An attribute is set on a tensor."""
        self.marks.append((tensor, name, where))

    def lacks(self, name: str, where: Location | None) -> None:
        """An attribute is asked for that a tensor has not: some tensor may have it."""
        self.lacking.add(name)
        if name in self.marked:
            self.observe(_mark_text(name), where)
        else:
            self.assume(f"no tensor has an attribute {name!r}", where)

    def lasting_marks(self) -> Iterator[Asked]:
        """The attributes that are set and may be read in another call.

        One that is set on a tensor of the call itself is no other one in another call, unless the
        program looks for it before that.
        """
        for tensor, name, where in self.marks:
            if name in self.lacking or (name in self.read and self.outliving(tensor)):
                yield Asked(_mark_text(name), where)

    def handled(self, problem: BaseException | None) -> Iterator[Asked]:
        """The errors that the program has handled, but for the one that ended it."""
        ended: list[BaseException | None] = []
        while problem is not None and problem not in ended:
            ended.append(problem)
            problem = problem.__cause__
        for error in dict.fromkeys(self.raised):
            if not any(error is one for one in ended) and not isinstance(error, _LIMITS):
                yield Asked(f"an error is handled, whose class may be another: {error.what}",
                            error.location)  # fmt: skip

    # -- flags of tensors, as PyTorch has them in calls of forward and backward

    def tensor_requires(
        self, storage: Any, whole: bool, given: bool, where: Location | None
    ) -> bool:
        """Does a tensor require a gradient?

        ``given``: forward was given it, or has returned it; ``whole``: and it was not written.
        """
        name = self.inputs.get(id(storage)) if whole else None
        if name is not None:
            return self.requires(name, where)
        return self._has_history(storage, given, where)

    def tensor_is_leaf(
        self, storage: Any, whole: bool, given: bool, where: Location | None
    ) -> bool:
        """Is it a leaf of the history: has nothing recorded how it was computed?"""
        name = self.inputs.get(id(storage)) if whole else None
        if name is None:
            return not self._has_history(storage, given, where)
        if name not in self.wanted or not self.requires(name, where):
            return True
        return self.answer(f"{name} is a leaf", True, where)

    def begin_backward(self, returned: Iterable[Any]) -> None:
        """Forward is over and has returned these."""
        self.backward, self.mode = True, None
        self.returned = tuple(one for one in returned if hasattr(type(one), "known_node"))
        self.outputs = {id(one.storage) for one in self.returned}

    def _has_history(self, storage: Any, given: bool, where: Location | None) -> bool:
        """Forward and backward record nothing, unless backward is to be differentiated."""
        if not self.backward:
            if self.recorded:
                self.observe("what forward records under enable_grad is asked", where)
            return False
        if given and id(storage) in self.outputs:
            return True
        return self.answer(AGAIN, False, where, real=False)

    def set_mode(self, mode: bool) -> None:
        """The program says whether what follows is recorded."""
        if not self.backward:
            self.mode, self.recorded = mode, self.recorded or mode

    def recording(self, where: Location | None) -> bool:
        """Does PyTorch record what is computed now?"""
        return self.backward and self.answer(AGAIN, False, where, real=False)

    def on_gpu(self, where: Location | None) -> bool:
        """Are the tensors on a GPU?"""
        return self.answer(GPU, False, where)

    def put_on_gpu(self, where: Location | None) -> None:
        """A tensor is moved to a GPU, or made there: the others are there, too."""
        if not self._known(GPU):
            self.assume("all tensors are on a GPU of CUDA", where)

    def are_on(self, kind: str, where: Location | None) -> bool:
        """Are the tensors on a device of this kind?  None of a third kind is in any trace.

        Asked for ``cpu`` or ``cuda``, one of a third kind does what the trace does that says no;
        asked for both in one trace, it does neither.
        """
        if kind not in (CPU, CUDA):
            self.assume(CPU_OR_GPU, where)
            return False
        answer = self.on_gpu(where) is (kind == CUDA)
        self.devices.add(answer)
        if len(self.devices) > 1:
            self.assume(CPU_OR_GPU, where)
        return answer

    def parameters(self, where: Location | None) -> bool:
        """Are the inputs Parameters?"""
        return self.answer("the inputs are Parameters", False, where)

    def view_contiguous(self, usual: bool, where: Location | None) -> bool:
        """Does a tensor lie contiguously that does not for all sizes and strides?"""
        self.views += 1
        place = "" if where is None else f" at {where}"
        number = "" if self.views == 1 else f" (no. {self.views})"
        question = f"the tensor{number} that is asked{place} is contiguous"
        return self.answer(question, usual, where, real=False)  # there may be no such call

    def contiguous(self, storage: Any, where: Location | None) -> bool:
        """Does the memory of an input, or of a cotangent, lie contiguously?"""
        name = self.name_of(storage)
        return not name or self.answer(f"{name} is contiguous", True, where)

    def expanded(self, name: str, where: Location | None) -> bool:
        """Is a cotangent a number that is expanded, as ``sum().backward()`` makes it?"""
        return self.answer(EXPANDED.format(name), False, where)

    def made_expanded(self, name: str) -> bool:
        """Is this the trace in which a cotangent is such a one?"""
        return self.given.get(EXPANDED.format(name), False) and self.expanded(name, None)

    def known_contiguous(self, storage: Any) -> bool | None:
        """What is answered already of the memory of an input or of a cotangent; None: nothing."""
        found = self.answers.get(f"{self.name_of(storage)} is contiguous")
        return None if found is None else found.value

    def name_of(self, storage: Any) -> str:
        """The name of the memory of an input or of a cotangent; "" for any other."""
        name: str = self.inputs.get(id(storage)) or storage.label
        return name


def _mark_text(name: str) -> str:
    return f"the attribute {name!r} is set on a tensor and read, and may stay from another call"


class NeededIndexError(ProtocolError, IndexError):
    """``ctx.needs_input_grad`` has no such item."""


class NeedsInputGrad(tuple[bool, ...]):
    """``ctx.needs_input_grad``: for each argument, whether its gradient is asked for.

    An item is decided when it is read, so that the trace splits on those that are read, and on no
    others.
    """

    _questions: Questions
    _names: tuple[str, ...]
    _left_out: tuple[str, ...]

    def __new__(
        cls, questions: Questions, names: Iterable[str], left_out: Iterable[str] = ()
    ) -> NeedsInputGrad:
        """One item for each argument; "" for what is no tensor that may require a gradient.

        ``left_out``: the parameters behind them that have their defaults in this call.  An item of
        theirs is there in calls that pass them, which the verdict states where one is read.
        """
        wanted = tuple(names)
        found = super().__new__(cls, map(bool, wanted))
        found._questions, found._names, found._left_out = questions, wanted, tuple(left_out)
        return found

    def changed(self, change: Callable[[Sequence[str]], Iterable[str]]) -> NeedsInputGrad:
        """The same of other arguments: ``change`` makes their names of those that there are."""
        return NeedsInputGrad(self._questions, change(self._names), self._left_out)

    def _bit(self, name: str) -> bool:
        return bool(name) and self._questions.requires(name, here())

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return NeedsInputGrad(self._questions, self._names[key])
        beyond = key - len(self._names) if type(key) is int else -1
        if 0 <= beyond < len(self._left_out):
            name = self._left_out[beyond]
            self._questions.passed = max(self._questions.passed, key + 1)
            self._questions.assume(f"the call passes {name}, if by its default", here())
            return False
        count = len(self._names)
        if type(key) is int and not -count <= key < count:
            raise NeededIndexError(
                f"ctx.needs_input_grad[{key}]: forward has {counted(count, 'argument')}",
                location=here(), hint=f"the items are those of its arguments: 0 to {count - 1}",
            )  # fmt: skip
        return self._bit(self._names[key])

    def __iter__(self) -> Iterator[bool]:
        return map(self._bit, self._names)

    def __reversed__(self) -> Iterator[bool]:
        return map(self._bit, reversed(self._names))

    def __contains__(self, value: object) -> bool:
        return any(one == value for one in self)

    def _all(self) -> tuple[bool, ...]:
        return tuple(iter(self))

    def index(self, *args: Any) -> int:
        """As of a tuple."""
        return self._all().index(*args)

    def count(self, value: Any) -> int:
        """As of a tuple."""
        return self._all().count(value)

    def __eq__(self, other: object) -> bool:
        return self._all() == (other._all() if isinstance(other, NeedsInputGrad) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: Any) -> bool:
        return self._all() < tuple(other)

    def __le__(self, other: Any) -> bool:
        return self._all() <= tuple(other)

    def __gt__(self, other: Any) -> bool:
        return self._all() > tuple(other)

    def __ge__(self, other: Any) -> bool:
        return self._all() >= tuple(other)

    def __hash__(self) -> int:
        return hash(self._all())

    def __add__(self, other: Any) -> Any:
        return self._all() + tuple(other)

    def __radd__(self, other: Any) -> Any:
        return tuple(other) + self._all()

    def __mul__(self, times: Any) -> Any:
        return self._all() * times

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return repr(self._all())

    def __reduce_ex__(self, protocol: Any) -> Any:
        return tuple, (self._all(),)

    def __copy__(self) -> NeedsInputGrad:
        return self

    def __deepcopy__(self, memo: Any) -> NeedsInputGrad:
        return self


_AS_A_TENSOR = " is passed as a tensor"


def passed_as_a_tensor(names: Iterable[str]) -> str:
    """What is printed where a program asks whether what stands for numbers is a tensor."""
    return " and ".join(sorted(names)) + _AS_A_TENSOR


def asked_for_tensors(assumed: Iterable[Asked]) -> frozenset[str]:
    """The numbers of which it asks that."""
    said = [one.what for one in assumed if one.what.endswith(_AS_A_TENSOR)]
    return frozenset(name for text in said for name in text[: -len(_AS_A_TENSOR)].split(" and "))


def questions() -> Questions | None:
    """The questions of the trace in progress, if it watches them."""
    session = active()
    return None if session is None else session.questions


def observed(what: str) -> None:
    """The program asks something that has no answer for all calls; what we ask ourselves is not."""
    known = questions()
    if known is not None and asker(3) is not None:
        known.observe(what, here())


def text_asked(of: str) -> None:
    """The program asks for a text that has another wording in each call; a message says nothing."""
    known = questions()
    if known is not None and asker(3) is not None and not only_said():
        known.observe(f"the text of {of} is asked for", here())


def assumed(text: str) -> None:
    """The program asks something that is taken to be so, and is printed."""
    known = questions()
    if known is not None and asker(3) is not None:
        known.assume(text, here())


EACH_IS_STRIDED = "the layout of every tensor is strided"


def none_is(kind: str) -> str:
    """What is printed where a program asks for tensors of a kind that no trace has."""
    return f"no tensor is {kind}"


class GradFn:
    """What ``grad_fn`` of a tensor with a history is; whatever is asked of it is observed."""

    def __getattribute__(self, name: str) -> Any:
        known = questions()
        if known is not None:
            known.observe(f"grad_fn.{name} is read", here())
        return object.__getattribute__(self, name)

    def __eq__(self, other: object) -> bool:
        observed("grad_fn is compared")
        return self is other

    def __hash__(self) -> int:
        observed("the hash of grad_fn is asked for")
        return object.__hash__(self)


# -- limits that the program may handle


_noted: ContextVar[list[SymgradError] | None] = ContextVar("symgrad_limits", default=None)


def note_limit(error: SymgradError) -> SymgradError:
    """The error, which is remembered however it is handled: it tells nothing of real calls."""
    noted = _noted.get()
    if noted is not None and isinstance(error, _LIMITS):
        noted.append(error)
    return error


@contextmanager
def noting_limits() -> Iterator[list[SymgradError]]:
    """A block of the user's program.  Out: the limits that it met."""
    found: list[SymgradError] = []
    token = _noted.set(found)
    try:
        yield found
    finally:
        _noted.reset(token)


def note_raised(error: SymgradError) -> SymgradError:
    """The error of an operation of another library's, which the program may handle.

    It is of all classes that the library may raise there, so that no handler lets it pass.
    """
    known = questions()
    if known is not None:
        known.raised.append(error)
        kind: Any = type(error)
        error.__class__ = _of_all_classes(kind)
    return error


@functools.lru_cache(maxsize=64)
def _of_all_classes(kind: type[SymgradError]) -> type[SymgradError]:
    others = [one for one in _RAISED if not issubclass(kind, one)]
    members = {"__module__": kind.__module__, "__doc__": kind.__doc__, RAISED_AS: kind}
    return type(kind.__name__, (kind, *others), members) if others else kind
