"""The trace in progress: its graph, what is known of its sizes, and where the user's code is.

In: ops to apply, relations between sizes to decide.  Out: nodes with the user's line on them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

import symgrad.ops  # noqa: F401  (registers the ops)
from symgrad.errors import (
    Location,
    OperationError,
    ProtocolError,
    RefusalError,
    ShapeError,
    SymgradError,
    TraceError,
    UnreadyError,
)
from symgrad.frontend.caller import frame_location, here, place, user_frame, warn_user
from symgrad.frontend.demands import Demands
from symgrad.frontend.facts import OPPOSITE, NeedsDecision, SizeFacts
from symgrad.frontend.spoken import is_raised
from symgrad.frontend.unready import lacks_setup
from symgrad.interpreters import ATTRIBUTE
from symgrad.ir.assume import Assumption
from symgrad.ir.dim import Dim, DimLike
from symgrad.ir.dtype import DType, float32, float64
from symgrad.ir.function import InnerCall, Relation, SizeCondition
from symgrad.ir.graph import Graph, Node, current_location
from symgrad.ir.types import TensorType

if TYPE_CHECKING:
    from symgrad.frontend.guests import Guest
    from symgrad.frontend.history import History
    from symgrad.frontend.questions import Questions


class Namer:
    """Gives nodes the names of the user's variables that hold them, unique in their graph.

    It looks at the variables whenever an op is applied: a tensor that was bound to one since the
    last look gives its node that name.  Frames are held until the trace ends, when the last
    assignments of a function are seen.
    """

    def __init__(self) -> None:
        self._frames: dict[int, FrameType] = {}
        self._seen: dict[tuple[int, str], tuple[Any, Node]] = {}
        self._taken: set[str] = set()
        self._last: dict[str, int] = {}
        self._outer: set[int] | None = None

    def start(self, frame: FrameType | None) -> None:
        """Leave ``frame`` and its callers alone: they called the trace, they are not traced."""
        self._outer = set()
        while frame is not None:
            self._outer.add(id(frame))
            frame = frame.f_back

    def reserve(self, name: str) -> None:
        """Keep a name for an input or an output."""
        self._taken.add(name)

    def observe(self, frame: FrameType, session: Session) -> None:
        """Look at the variables of a frame that applies an op."""
        if self._outer is not None and id(frame) in self._outer:
            return
        self._frames.setdefault(id(frame), frame)
        self._look(frame, session.graph)

    def finish(self, session: Session) -> None:
        """Look at every frame a last time and let go of them."""
        for frame in self._frames.values():
            self._look(frame, session.graph)
        self._frames.clear()
        self._seen.clear()

    def _look(self, frame: FrameType, graph: Graph) -> None:
        for name, value in frame.f_locals.items():
            node = getattr(type(value), "known_node", _nothing)(value)
            if node is None or node.graph is not graph:
                continue
            key = (id(frame), name)
            seen = self._seen.get(key)
            if seen is None or seen[1] is not node:
                self._seen[key] = (value, node)
                self.name(node, name)

    def name(self, node: Node, name: str) -> None:
        """Name a node, unless it has a name; numbers and sizes need none."""
        if node.name is None and node.op not in ("constant", "size", "input"):
            node.name = self.unique(name)

    def unique(self, name: str) -> str:
        """``name``, or ``name_2``, ``name_3``... when it is taken; taken from now on."""
        found = name
        while found in self._taken:
            self._last[name] = self._last.get(name, 1) + 1
            found = f"{name}_{self._last[name]}"
        self._taken.add(found)
        return found


def _nothing(value: Any) -> Node | None:
    return None


class NeedsHistories(BaseException):
    """Gradients are asked for inside backward: the trace is to be done again with histories.

    Not an ``Exception``, so that no handler in the traced program catches it.
    """


@dataclass(frozen=True)
class Order:
    """What an integer tensor is the order of: ``axis``, and the rank of each of its elements."""

    axis: int
    ranks: Node


class Session:
    """One trace of forward and backward into one graph.

    ``requires``: relations that were taken to hold because sizes are at least 1.
    ``written``: what was mutated in place, by name, in order of first mutation.
    ``surplus``: integer inputs of which backward returned a gradient.
    ``detached``: the first place where a value was cut off from differentiation.
    ``assumed``: what is declared of the inputs.
    ``orders``: integer tensors that sort an axis.  ``inner``: Functions applied inside.
    ``plain``: the inputs that plain numbers are, by name, where they are symbols; ``numbers``: what
    Python knows nodes as that are computed of these.
    ``history``: what PyTorch would record, where that is followed.
    ``questions``: what the program asks beside the graph, where that is watched.
    ``any_rank``: does one axis stand for any number of them (``symgrad.frontend.anyrank``)?
    ``tensor_class``: the class of its tensors where that is not ``SymbolicTensor``.
    ``guest``: the library whose Function is traced, if it is not symgrad's own.
    ``eager``: is it the trace of one eager operation?
    ``cuts``: what forward detaches is a constant in what it gives, and marked as one.
    ``draws``: how many random tensors it has drawn.
    ``demanded``: what its operations raise without.  ``drawn``: what holds of random draws.
    ``relied``: the plain numbers of which facts of the request have answered what Python asked.
    ``symmetric``: the inputs that operations take to be symmetric.
    ``by_default``: it has floats of the default dtype; ``other_default``: that is the other one.
    ``asks_dtypes``: has the program asked for one?
    ``shown_as``: the float dtype of 16 bits that the program takes float32 for; empty for itself.
    """

    any_rank = False
    tensor_class: type[Any] | None = None
    eager = cuts = False
    shown_as = ""
    asks_dtypes = False
    guest: Guest | None = None

    @property
    def own_backwards(self) -> bool:
        """Are operations differentiated by the Functions that are attached to them?"""
        return False

    def declared(self, kind: str) -> frozenset[str]:
        """The inputs of which an assumption of a kind is declared."""
        return frozenset(one.name for one in self.assumed if one.kind == kind)

    def applied(self, function: Any, args: Sequence[Any]) -> Any:
        """Apply the Function that is attached to an operation."""
        return function.apply(*args)

    def __init__(
        self,
        facts: SizeFacts | None = None,
        dtype: DType = float32,
        assumed: Sequence[Assumption] = (),
        inner: dict[Any, InnerCall] | None = None,
    ) -> None:
        self.graph = Graph()
        self.facts = facts or SizeFacts()
        self.requires: list[SizeCondition] = []
        self._with_zero = self.facts.including_zero()
        self._dtype = dtype
        self.by_default = self.other_default = False
        self.namer = Namer()
        self.written: list[str] = []
        self.updated: list[str] = []
        """What forward has written in place, without saying so."""
        self.surplus: list[str] = []
        self.assumed = tuple(assumed)
        self.symmetric: set[str] = set()
        self.relied: dict[str, None] = {}
        self.orders: dict[Node, Order] = {}
        self.inner = {} if inner is None else inner
        self.plain: dict[str, Node] = {}
        self.numbers: dict[Node, Any] = {}
        self.detached: Location | None = None
        self.history: History | None = None
        self.questions: Questions | None = None
        self.draws = 0
        self.demanded = Demands(self)
        self.drawn: list[Relation] = []
        self._perhaps_one: list[tuple[Any, Any]] = []

    @property
    def dtype(self) -> DType:
        """The default dtype, which something is made in."""
        self.by_default = True
        if self.other_default:
            return float32 if self._dtype == float64 else float64
        return self._dtype

    @dtype.setter
    def dtype(self, dtype: DType) -> None:
        self._dtype = dtype

    def draw(self, kind: str, type: TensorType) -> Node:
        """What a trace draws at random: the next unknown, ``unit``, ``real`` or ``binary``."""
        self.draws += 1
        return self.apply("draw", number=self.draws, kind=kind, shape=type.shape, dtype=type.dtype)

    def apply(self, op: str, *args: Node, **attrs: Any) -> Node:
        """The node ``op(*args, **attrs)``, stamped with the user's line; so are its errors."""
        location = self._enter()
        token = current_location.set(location)
        try:
            found = self.graph.apply(op, *args, **attrs)
            self.demanded.of(found)
            return found
        except SymgradError as error:
            error.location = error.location or location
            raise
        finally:
            current_location.reset(token)

    @contextmanager
    def building(self) -> Iterator[Graph]:
        """The graph, for functions that build nodes on their own, which then bear the line."""
        location = self._enter()
        token = current_location.set(location)
        try:
            yield self.graph
        except SymgradError as error:
            error.location = error.location or location
            raise
        finally:
            current_location.reset(token)

    def _enter(self) -> Location | None:
        known = place()
        if known is not None:
            return known
        frame = user_frame()
        if frame is not None:
            self.namer.observe(frame, self)
        return frame_location(frame)

    def constant(self, value: bool | int | float, dtype: DType) -> Node:
        """A number of rank 0."""
        if isinstance(value, bool) and dtype.category:
            value = int(value)
        return self.graph.constant(value, dtype)

    def plain_number(self, name: str) -> Node:
        """The input of rank 0 that a plain number is, in the precision of Python's floats."""
        if name not in self.plain:
            self.namer.reserve(name)
            self.plain[name] = self.graph.input(name, TensorType(float64, ()))
        return self.plain[name]

    def size(self, dim: DimLike, dtype: DType) -> Node:
        """A size as a number of rank 0."""
        return self.graph.size(dim, dtype)

    def expand(self, node: Node, shape: Sequence[DimLike]) -> Node:
        """``node`` broadcast to ``shape``; itself when it has that shape."""
        wanted = tuple(Dim.of(size) for size in shape)
        return node if node.shape == wanted else self.apply("expand", node, shape=wanted)

    def reshape(self, node: Node, shape: Sequence[DimLike]) -> Node:
        """``node`` with another shape of as many elements; itself when it has that shape."""
        wanted = tuple(Dim.of(size) for size in shape)
        return node if node.shape == wanted else self.apply("reshape", node, shape=wanted)

    def cast(self, node: Node, dtype: DType) -> Node:
        """``node`` in another dtype; itself when it has that dtype."""
        return node if node.dtype == dtype else self.apply("cast", node, dtype=dtype)

    def truth(self, left: DimLike, relation: str, right: DimLike) -> bool:
        """Whether a relation between sizes holds in this case; splits the trace to find out."""
        decided = self.facts.decide(left, relation, right)
        if decided is None:
            raise NeedsDecision(Dim.of(left), relation, Dim.of(right))
        self._require(Dim.of(left), relation if decided else OPPOSITE[relation], Dim.of(right))
        return decided

    def holds(self, left: DimLike, relation: str, right: DimLike) -> bool:
        """``truth`` of what Python would raise for otherwise: a call for no elements does not."""
        decided = self.facts.decide(left, relation, right)
        return self.truth(left, relation, right) if decided is None else decided

    def _require(self, left: Dim, relation: str, right: Dim) -> None:
        """Remember a relation that holds only because sizes are at least 1."""
        if self._with_zero.decide(left, relation, right) is None:
            self.requires.append(SizeCondition(left, relation, right))
            self._with_zero = self._with_zero.assume(left, relation, right) or self._with_zero

    def flat(self, dim: Dim) -> Dim:
        """A size in the symbols that the program may see."""
        return dim

    def check_dtype(self, compute: Callable[[bool], DType]) -> DType:
        """``compute(False)``; with True, tensors that may have no axes have none."""
        return compute(False)

    def check_gradient(self, input: Sequence[Dim], returned: Sequence[Dim]) -> None:
        """A gradient of the shape ``returned`` is about to be summed to that of its input."""

    def uncertain(self, one: Any, other: Any) -> None:
        """Remember memory that is one for some sizes, strides or dtypes, and two for others."""
        if self.questions is not None:
            self._perhaps_one.append((one, other))

    @property
    def strided(self) -> bool:
        """Is it to hold whatever strides the tensors have that the program is given?"""
        return self.guest is not None and self.guest.strided and self.questions is not None

    def perhaps_one(self, storage: Any) -> list[Any]:
        """Some memory, and all that may be the same memory."""
        met = [storage]
        for known in met:
            for pair in self._perhaps_one:
                if any(one is known for one in pair):
                    met += [one for one in pair if not any(one is other for other in met)]
        return met

    def note_write(self, storage: Any) -> None:
        """Some memory is about to be written: what may lie in the same memory has no value then."""
        for one in self.perhaps_one(storage)[1:]:
            one.doubt = one.doubt or (here(),)
            if one.label and self.questions is not None:
                self.questions.observe(PERHAPS_ONE, here())

    def taken(self, value: Any) -> Any:
        """The value with operands of other classes as this trace takes them.

        They are looked for in tuples, lists and dicts.
        """
        kind = type(value)
        if kind is tuple or kind is list:
            return kind(map(self.taken, value))
        if kind is dict:
            return {name: self.taken(item) for name, item in value.items()}
        return self.foreign(value) if hasattr(kind, ATTRIBUTE) else value

    def foreign(self, value: Any) -> Any:
        """An operand of another class: a constant of this trace."""
        return getattr(type(value), ATTRIBUTE).constant(value)

    def call(self, name: str, raw: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Call the operation of a name."""
        return raw(*args, **kwargs)

    def close(self) -> None:
        """The traced program has ended."""

    def note_written(self, name: str) -> None:
        """Remember that ``name`` was mutated in place."""
        if name not in self.written:
            self.written.append(name)

    def warn(self, message: str) -> None:
        """An operation warns of something."""
        warn_user(message)

    def note_detached(self) -> None:
        """Remember where a value was first cut off from differentiation."""
        self.detached = self.detached or here()


PERHAPS_ONE = (
    "what is written is a copy for some sizes, strides or dtypes, and the tensor itself for others"
)
_current: ContextVar[Session | None] = ContextVar("symgrad_session", default=None)


def active() -> Session | None:
    """The trace in progress, or None."""
    return _current.get()


def current() -> Session:
    """The trace in progress.  Raises ProtocolError when there is none."""
    session = _current.get()
    if session is None:
        raise ProtocolError(
            "symbolic tensors and sizes exist only while a Function is traced",
            location=here(),
            hint="call this inside forward or backward; outside, use NumPy arrays and sg.compile",
        )
    return session


@contextmanager
def activate(session: Session) -> Iterator[Session]:
    """Make ``session`` the trace in progress."""
    token = _current.set(session)
    try:
        with nullcontext() if session.guest is None else session.guest.running(session):
            yield session
    finally:
        _current.reset(token)


# -- errors of the user's own code


_TOOLS = ("numpy", "sympy", "torch", "jax", "jaxlib", "contextlib")
_ARITHMETIC = tuple(
    f"symgrad.frontend.{name}" for name in ("sizes", "refusals", "plain", "conversions")
)
"""What computes with symbols: what it refuses is refused where the program computes."""
_REFUSALS = (ValueError, AssertionError, RuntimeError, IndexError, ArithmeticError)


def blame(error: BaseException) -> tuple[Location | None, bool]:
    """The innermost line outside symgrad that an exception passed, and whether it arose there.

    What NumPy, SymPy, torch and JAX raise arose where they were called, and a name that is not
    there where it was asked for.  What Python's own modules raise may be about what a trace gave
    them.
    """
    location: Location | None = None
    own = False
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__") or ""
        code = trace.tb_frame.f_code
        root, _, _ = module.partition(".")
        asked_for = root == "symgrad" and (code.co_name == "__getattr__" or module in _ARITHMETIC)
        if root not in _TOOLS and not asked_for:
            own = root != "symgrad" and root not in sys.stdlib_module_names
            if root != "symgrad" and not code.co_filename.startswith("<frozen "):
                location = Location.of(code, trace.tb_lasti, trace.tb_lineno)
        trace = trace.tb_next
    return location, own


RAISED_AS = "symgrad_raised_as"
"""Of the class of an error that is of other classes as well for the program: its own class."""
_OURS = re.compile(
    r"\b(SymInt|SymFloat|SymbolicTensor|AnyRank\w+|NeedsInputGrad|GradFn|PlainNumber|TensorNumber|"
    r"NotImplementedType)\b"
)
"""Classes that no program meets outside of a trace: an error about them tells nothing of it.

NotImplemented is what methods of int give for a symbol, as ``(1).__add__(n)`` does.

None is an operand of nothing, beside whatever it stands.
"""


_KNOWN_AS = {
    "SymbolicTensor": "Tensor", "SelectedTensor": "Tensor", "ComplexTensor": "Tensor",
    "SymInt": "int", "SymFloat": "float", "PlainNumber": "float", "TensorNumber": "float",
    "NeedsInputGrad": "tuple", "GradFn": "Node", "Shape": "Size",
}  # fmt: skip
"""What a program knows the classes of a trace by."""
_OF_A_TRACE = re.compile(
    rf"(?<=')(?:AnyRank)?({'|'.join(_KNOWN_AS)})(?=')|"
    r"\b(?:AnyRank)?(SymbolicTensor|SelectedTensor|ComplexTensor)\b"
)
"""Their names where Python quotes them, and those that nothing else is called."""
REFERENCE = (
    "put a reference in the place of the function that {} (replace in symgrad.toml, --replace "
    "module.fn=reference.fn)"
)
"""A hint, after what calls what cannot be traced."""


def spoken(text: str) -> str:
    """A text in which the classes of a trace have the names that a program knows them by."""
    return _OF_A_TRACE.sub(lambda found: _KNOWN_AS[found[1] or found[2]], text)


def as_symgrad_error(error: Exception | SystemExit, stage: str) -> SymgradError:
    """The error itself where it is ours; otherwise one that quotes it and says where it arose."""
    location, own = blame(error)
    if isinstance(error, SymgradError):
        error.location = error.location or location
        error.__class__ = vars(type(error)).get(RAISED_AS, type(error))
        session = active()
        if session is not None and session.guest is not None:
            error.what = session.guest.worded(spoken(error.what))
            error.hint = session.guest.worded(error.hint)
        return error
    text = str(error) or type(error).__name__
    hint = ""
    if isinstance(error, ModuleNotFoundError) and error.name:
        hint = f"pip install {error.name}, or {REFERENCE.format('needs it')}"
    lacking = isinstance(error, ImportError) or lacks_setup(error)
    if stage in ("backward", "jvp") and lacking:
        said = f"{stage} refuses to run here: {type(error).__name__}: {text}"
        unready = UnreadyError(said, location=location, hint=hint)
        unready.__cause__ = error
        return unready
    about_ours = _OURS.search(text) and "'NoneType'" not in text
    kind = TraceError if own and not about_ours else OperationError
    if kind is TraceError and stage == "backward" and is_raised(error):
        kind = RefusalError
    said = f"{stage} raised {type(error).__name__}: {spoken(text)}"
    found = kind(said, location=location, hint=hint)
    found.__cause__ = error
    return found


@contextmanager
def told(stage: str) -> Iterator[None]:
    """Whatever goes wrong inside leaves as a ``SymgradError``."""
    try:
        yield
    except SymgradError:
        raise
    except Exception as error:
        found = as_symgrad_error(error, stage)
        raise found from found.__cause__


def refuses_sizes(error: SymgradError) -> bool:
    """Does forward not accept the sizes of this case: shapes that do not fit, or its own raise?"""
    if isinstance(error, ShapeError):
        return True
    cause = error.__cause__
    return isinstance(cause, _REFUSALS) and blame(cause)[1]
