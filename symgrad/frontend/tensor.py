"""The symbolic tensor: what forward and backward compute with while they are traced.

In: a storage and the steps from it to what this tensor shows.  Out: the node of its present value.

Its methods and operators are attached by ``symgrad.frontend.functions``, from the same table that
the functions ``sg.exp``, ``sg.where``... come from.  It has value semantics under mutation: a
write in place gives the storage a new node, which every view of the storage then reads.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from symgrad.errors import (
    ControlFlowError,
    DTypeError,
    EscapeError,
    ProtocolError,
    ShapeError,
    SymgradError,
    TruthError,
    UnsupportedOpError,
)
from symgrad.frontend import unsupported
from symgrad.frontend.asserted import asserted
from symgrad.frontend.caller import asker, asks_for_a_class, here
from symgrad.frontend.choices import MOST_CHOICES
from symgrad.frontend.compared import compared
from symgrad.frontend.constants import is_computed_of_sizes, known_number, known_truth
from symgrad.frontend.devices import Device, are_on
from symgrad.frontend.questions import (
    EACH_IS_STRIDED,
    GradFn,
    assumed,
    none_is,
    note_limit,
    observed,
    passed_as_a_tensor,
    questions,
    text_asked,
)
from symgrad.frontend.regions import PLAIN
from symgrad.frontend.session import PERHAPS_ONE, Session, active, current
from symgrad.frontend.sizes import (
    Shape,
    SymFloat,
    SymInt,
    ValuedNumber,
    as_dim,
    as_size,
    computed,
)
from symgrad.frontend.thresholds import answered
from symgrad.frontend.views import (
    Packed,
    Perhaps,
    Step,
    Storage,
    certain_strides,
    contiguous_strides,
    possible_copies,
    unknown_strides,
)
from symgrad.ir.dim import Dim, product
from symgrad.ir.dtype import DType, bool_, float64, int64
from symgrad.ir.function import Asked
from symgrad.ir.graph import Node, ancestors, input_names
from symgrad.ir.rewrite import rewrite


def _leak(session: Session) -> ProtocolError:
    """The error where a tensor of another call is used."""
    if session.questions is not None:
        session.questions.leaked = session.questions.leaked or Asked("a tensor", here())
    return ProtocolError(
        "a tensor of another trace is used", location=here(),
        hint="keep tensors on ctx, not in globals or on the class",
    )  # fmt: skip


class _Held:
    """What keeps the attributes of a tensor; ``__dict__`` of a tensor shows the program's alone."""


own_names: Callable[[Any], dict[str, Any]] = vars(_Held)["__dict__"].__get__
"""All attributes of a tensor, symgrad's among them."""
_share_names: Callable[[Any, dict[str, Any]], None] = vars(_Held)["__dict__"].__set__
"""Let an object have the attributes of another one, whatever happens to these."""
_CAPSULES = ("_sym_sizes_capsule", "_sym_strides_capsule")
"""Attributes that torch's C code keeps on a tensor whose sizes it has asked for."""
FIELDS = ("steps", "strides", "certain", "_cached")
"""Attributes of symgrad's that torch has not."""
_MARKS, _CONTIGUOUS = "_marks", "_is_said_to_be_contiguous"
TWIN = "_may_be_another_object"
"""Of a tensor that may be the same object as another one of the trace."""
GIVEN, REQUIRES = "_given_to_calls", "_is_said_to_require"
"""Attributes of what comes from outside, and of what is said to require a gradient or none."""


class Hidden(property):
    """An attribute of symgrad's that the program does not see."""


class SymbolicTensor(_Held):
    """A tensor whose sizes are symbols and whose value is a node of the graph in progress.

    ``node``: its present value.  Attributes that the program sets are kept as marks
    (``Questions.marks``): a tensor may outlive the call, and what is set on it as well.
    """

    storage: Storage
    steps: tuple[Step, ...]
    strides: tuple[Dim, ...]
    certain: tuple[Dim, ...] | None
    _cached: tuple[int, Node] | None
    __array_priority__ = 1000

    def __new__(cls, *args: Any, **kwargs: Any) -> SymbolicTensor:
        """An object of the class that the trace in progress asks for."""
        session = active()
        if session is None:
            return object.__new__(cls)
        wanted = session.tensor_class if cls is SymbolicTensor else None
        kind: type[SymbolicTensor] = wanted or cls
        if session.guest is None:
            return object.__new__(kind)
        made = session.guest.variant(kind)
        if "__new__" not in vars(made) or made is SymbolicTensor:
            return object.__new__(made)
        found: SymbolicTensor = made.__new__(made, *args, **kwargs)
        return found

    def __init__(
        self,
        storage: Storage,
        steps: tuple[Step, ...] = (),
        *,
        strides: tuple[Dim, ...] | None = None,
    ) -> None:
        names, session = own_names(self), active()
        names["storage"], names["steps"] = storage, steps
        names["strides"] = contiguous_strides(storage.node.shape) if strides is None else strides
        names["_cached"] = None
        certain = storage.settled or session is None or not session.strided
        names["certain"] = None if certain else unknown_strides(storage.node.shape)
        if session is not None and session.history is not None:
            session.history.born(self)

    @property
    def node(self) -> Node:
        """Its present value."""
        node, session = self.storage.node, current()
        if self.storage.doubt and session.questions is not None:
            session.questions.observe(PERHAPS_ONE, self.storage.doubt[0])
        if node.graph is not session.graph:
            if not any(one.op == "input" for one in ancestors([node])):
                return self._of_another_call(session)
            raise _leak(session)
        if self.storage.written:
            self.storage.check_read(self.steps)
        if self._cached is None or self._cached[0] != self.storage.version:
            for step in self.steps:
                node = step.read(session, node)
            self._cached = (self.storage.version, node)
        return self._cached[1]

    def _of_another_call(self, session: Session) -> Node:
        """The value of a tensor of another call that depends on sizes alone."""
        node = rewrite(session.graph, [self.storage.node], named=False)[self.storage.node]
        for step in self.steps:
            node = step.read(session, node)
        return node

    def known_node(self) -> Node | None:
        """Its present value if it has been read since the last write."""
        if not self.steps:
            return self.storage.node
        if self._cached is None or self._cached[0] != self.storage.version:
            return None
        return self._cached[1]

    @property
    def lies_contiguous(self) -> bool:
        """Do its elements follow one another in memory, given that those of inputs do?"""
        plain = contiguous_strides(self.node.shape)
        return all(
            size == 1 or stride == wanted
            for size, stride, wanted in zip(self.node.shape, self.strides, plain, strict=True)
        )

    @property
    def surely_contiguous(self) -> bool | None:
        """Does it lie contiguously in all calls, or in none of this trace?  None: in some."""
        if self.certain is None and current().strided:
            return self.lies_contiguous or None
        answer: bool | None = own_names(self).get(_CONTIGUOUS)
        known = questions()
        if answer is not None or known is None or not self._given:
            return answer
        return known.known_contiguous(self.storage)

    @property
    def is_expanded(self) -> bool:
        """Is its memory a cotangent that is an expanded number?  The trace splits on it."""
        known = questions()
        if known is None or self.storage.label not in known.cotangents:
            return False
        return known.expanded(self.storage.label, here())

    def perhaps_copied(self, said: str, *, settled: bool = False) -> SymbolicTensor:
        """Itself as another name, which is the same memory under a condition."""
        step = Perhaps(said, here(), self.storage.version)
        if current().history is not None:
            self.storage.copied.append(step)
            return self
        own_names(self)[TWIN] = True
        found = self.unmarked()
        found.steps = (*self.steps, step)
        if settled:
            found.lies_as(self.strides, None)
        return found

    def lies_anyhow(self) -> None:
        """Note that nothing is known of where its elements lie."""
        if current().strided and not _is_row(self.node):
            self.lies_as(self.strides, unknown_strides(self.node.shape))

    def lies_in_rows(self) -> None:
        """Note that its elements follow one another, whatever the strides of inputs are."""
        self.lies_as(contiguous_strides(self.node.shape), None)

    def lies_as(self, strides: tuple[Dim, ...], certain: tuple[Dim, ...] | None) -> None:
        """Note where its elements lie now."""
        self.strides, self.certain = strides, certain
        own_names(self).pop(_CONTIGUOUS, None)

    def shared(self, *steps: Step) -> SymbolicTensor:
        """A tensor that shares this one's memory and shows it after ``steps``.

        Raises ShapeError where the same memory cannot show that shape.
        """
        node, strides, certain = self.node, self.strides, self.certain
        session = current()
        if session.history is not None:
            steps = (*steps, *session.history.cuts())
        for step in steps:
            found = step.strides(node.shape, strides)
            if found is None:
                raise ShapeError(
                    f"a view of shape {list(Shape.of(node.shape))} cannot have another shape: its "
                    "elements do not follow one another in memory", location=here(),
                    hint="use reshape, which copies",
                )  # fmt: skip
            shape, node, strides = node.shape, step.read(session, node), found
            if certain is not None:
                certain = certain_strides(step, shape, certain) or unknown_strides(node.shape)
        shown = SymbolicTensor(self.storage, (*self.steps, *steps), strides=strides)
        shown.certain, shown._cached = certain, (self.storage.version, node)
        return shown

    def surely_shows(self, step: Step) -> bool:
        """Can a step be a view of it whatever its strides are?"""
        if self.certain is None:
            return True
        return certain_strides(step, self.node.shape, self.certain) is not None

    def again(self, kind: Any = None) -> Any:
        """Another object for the same tensor, of another class if asked; the rest is shared."""
        kind = kind or type(self)
        made = kind.__new__(kind, self.storage)
        _share_names(made, own_names(self))
        return made

    def unmarked(self) -> SymbolicTensor:
        """Another object in the same memory, without what the program has set on this one."""
        made: SymbolicTensor = type(self).__new__(type(self), self.storage)
        kept = own_names(self)
        own_names(made).update({name: kept[name] for name in kept if name != _MARKS})
        return made

    def write(self, value: Node, *, convert: bool = False, trim: bool = False) -> None:
        """Replace its elements by those of ``value``, broadcast to its shape and in its dtype.

        Unless ``convert`` is set, a float result does not go into an integer tensor.  ``trim``:
        axes of size 1 in front of those that it has are left out, as where items are set.
        """
        session = current()
        if self.storage.node.graph is not session.graph:
            raise _leak(session)
        lower = value.dtype.category > self.dtype.category
        if lower and not convert:
            raise DTypeError(
                f"a {value.dtype} result cannot be written into a {self.dtype} tensor",
                location=here(), hint=f"convert the tensor first: .to(sg.{value.dtype})",
            )  # fmt: skip
        shape = self.node.shape
        if value.rank > len(shape):
            extra = value.rank - len(shape)
            if not trim or any(size != 1 for size in value.shape[:extra]):
                raise ShapeError(
                    f"a value of shape {Shape.of(value.shape)} cannot be written into a tensor of "
                    f"shape {self.shape}", location=here(),
                )  # fmt: skip
            value = session.reshape(value, value.shape[extra:])
        value = session.expand(session.cast(value, self.dtype), shape)
        if session.history is not None:
            value = session.history.written(self, value)
        self.storage.write(session, self.steps, value)

    # -- what it is

    @property
    def shape(self) -> Shape:
        """Its sizes: ints where they are known, symbolic sizes elsewhere."""
        return Shape.of(self.node.shape)

    @property
    def device(self) -> Device:
        """Where it is: another object each time, as torch's is."""
        return Device("cpu")

    @property
    def dtype(self) -> DType:
        """Its element type."""
        return self.storage.node.dtype

    @property
    def ndim(self) -> int:
        """The number of its axes."""
        return self.node.rank

    def dim(self) -> int:
        """The number of its axes."""
        return self.node.rank

    ndimension = dim

    def size(self, dim: int | None = None) -> Any:
        """Its shape, or one of its sizes."""
        return self.shape if dim is None else self.shape[dim]

    def numel(self) -> Any:
        """The number of its elements."""
        return as_size(product(self.node.shape))

    nelement = numel

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Does it lie contiguously?  The trace splits on it for inputs and cotangents."""
        known = questions()
        if known is None:
            return self.lies_contiguous
        if memory_format is not None and "contiguous_format" not in str(memory_format):
            known.observe(f"is_contiguous({memory_format}) is asked", here())
        answer = self.surely_contiguous
        if answer is None:
            if self.is_expanded:
                answer = self._fills_its_memory()
            elif self.lies_contiguous and (known.name_of(self.storage) or not current().strided):
                answer = known.contiguous(self.storage, here())
            else:
                answer = known.view_contiguous(self.lies_contiguous, here())
            own_names(self)[_CONTIGUOUS] = answer
        return answer

    def _fills_its_memory(self) -> bool:
        """Do its elements follow one another at its strides?  The trace splits on sizes of 1."""
        plain = contiguous_strides(self.node.shape)
        return not any(
            stride != wanted and current().truth(size, "!=", 1)
            for size, stride, wanted in zip(self.node.shape, self.strides, plain, strict=True)
        )

    def is_floating_point(self) -> bool:
        """Is its dtype a float?"""
        return self.dtype.is_float

    def is_complex(self) -> bool:
        """No: there are no complex dtypes."""
        return False

    def is_same_size(self, other: SymbolicTensor) -> bool:
        """Has the other tensor the same shape?  Asks about sizes where it must."""
        return bool(self.shape == other.shape)

    def element_size(self) -> int:
        """The bytes of one element."""
        return self.dtype.itemsize

    def get_device(self) -> int:
        """As torch says: -1 for the CPU."""
        return 0 if self.is_cuda else -1

    # -- what PyTorch knows of it beside its value

    @property
    def requires_grad(self) -> bool:
        """Does it require a gradient?  The trace splits on it."""
        known, said = questions(), own_names(self).get(REQUIRES)
        if known is None or not self.dtype.is_float or said is not None:
            return known is None or bool(said)
        return known.tensor_requires(self.storage, self._whole, self._given, here())

    @requires_grad.setter
    def requires_grad(self, value: Any) -> None:
        self.requires_grad_(bool(value))

    @property
    def is_leaf(self) -> bool:
        """Is nothing recorded of how it was computed?  The trace splits on it."""
        known = questions()
        if known is None:
            return False
        if not self.dtype.is_float or REQUIRES in own_names(self):
            return True
        return known.tensor_is_leaf(self.storage, self._whole, self._given, here())

    @property
    def grad_fn(self) -> Any:
        """None for a leaf."""
        return None if questions() is None or self.is_leaf else GradFn()

    @property
    def grad(self) -> Any:
        """What was put there in this trace; else None, which the verdict states of inputs."""
        if "_grad" in own_names(self):
            return own_names(self)["_grad"]
        known = questions()
        name = known.inputs.get(id(self.storage)) if known is not None else None
        if known is not None and name:
            known.assume(f"{name}.grad is None", here())
        return None

    @grad.setter
    def grad(self, value: Any) -> None:
        self.lasting(".grad of {} is set")
        own_names(self)["_grad"] = value

    @property
    def is_sparse(self) -> bool:
        """Is it made of places and elements?  That none of the program's is, is printed."""
        assumed(none_is("sparse"))
        return False

    @property
    def is_quantized(self) -> bool:
        """Does it hold integers for floats?  That none does is printed."""
        assumed(none_is("quantized"))
        return False

    @property
    def layout(self) -> Any:
        """Where its elements lie: each at its strides, which is printed."""
        assumed(EACH_IS_STRIDED)
        return "strided"

    @property
    def is_cuda(self) -> bool:
        """Is it on a GPU?  The trace splits on it."""
        return are_on("cuda")

    @property
    def is_cpu(self) -> bool:
        """Is it on the CPU?"""
        return are_on("cpu")

    @property
    def _is_param(self) -> bool:
        """Is it a Parameter, as torch's own asks by this name?"""
        return self.is_parameter

    @property
    def is_parameter(self) -> bool:
        """Is it a Parameter?  The trace splits on it."""
        known = questions()
        if own_names(self).get(_MARKS, {}).get("_is_param"):
            return True  # made by the program
        if known is None or id(self.storage) not in known.inputs or not self._whole:
            return False
        return known.parameters(here())

    @property
    def _given(self) -> bool:
        """Is it what forward was given, or what it returned, and no other view of that?"""
        if GIVEN not in own_names(self):
            return False
        for one in possible_copies(self.steps):
            one.assume()
        return True

    @property
    def _whole(self) -> bool:
        """Is it so, and shows its memory as that was made?"""
        return self._given and not self.storage.version

    def requires_grad_(self, requires_grad: bool = True) -> SymbolicTensor:
        """Itself; where histories are followed, a tensor of its own to differentiate by."""
        if not requires_grad:
            self.lasting("{} is made to require no gradient")
        known = questions()
        if known is not None and not known.outliving(self):
            own_names(self)[REQUIRES] = bool(requires_grad)
        history = current().history
        if requires_grad and history is not None and self.dtype.is_float:
            history.record_in_forward()
            history.make_leaf(self)
        return self

    def __repr__(self) -> str:
        text_asked("a tensor")
        return f"<symbolic {self.storage.node.dtype.short}{list(self.shape) if active() else ''}>"

    def __format__(self, spec: str) -> str:
        text_asked("a tensor")
        return object.__repr__(self)

    def __deepcopy__(self, memo: Any) -> SymbolicTensor:
        return fresh(self.node)

    __copy__ = None  # copy.copy would share the storage without saying so

    # -- what it cannot be

    def _no_value(self, what: str, hint: str = "") -> ControlFlowError:
        said = f"{what}: its value is unknown during tracing"
        return no_value(said, hint, self.known_node())

    def _no_truth(self) -> ControlFlowError:
        return self._no_value(
            "Python cannot branch on a tensor here (if, while, and, or, not, assert)"
        )

    def __bool__(self) -> bool:
        """What is computed of numbers alone has a value; a plain number is on a side of a literal.

        Anything else is so in one trace and not in another.  Raises ControlFlowError where there
        can be no other.
        """
        value = known_truth(self.node)
        if value is not None:
            return value
        session = active()
        if session is not None and session.guest is not None:
            self._check_single(session)
        if self.node.dtype == bool_ and asserted(self.node):
            return True
        answer = None if session is None else answered(session, self.node, self._no_truth)
        if answer is not None:
            return answer
        known = questions()
        if known is None or any(size != 1 for size in self.node.shape):
            raise self._no_truth()
        found = asks_of_mask(self.node)
        node, wanted = (self._truth(), True) if found is None else found
        if _holds_nowhere(node) or (not node.rank and _holds_everywhere(node)):
            return wanted is not _holds_nowhere(node)
        chosen = known.chooses(node, here())
        if chosen is None:
            raise self._no_truth()
        return chosen == wanted

    def _check_single(self, session: Session) -> None:
        """Raises ShapeError for several elements, of which the library takes no truth value."""
        if not session.truth(product(self.node.shape), "==", 1):
            said = "Boolean value of Tensor with more than one value is ambiguous"
            error = TruthError(said, location=here())
            error.inputs = frozenset(input_names([self.node]))
            raise error

    def _truth(self) -> Node:
        """Whether its one element is not 0."""
        node: Node = self.reshape(()).node
        return node if node.dtype == bool_ else node.graph.binary("ne", node, 0)

    def _known(self, what: str, hint: str = "") -> Any:
        """The number that it holds whatever the inputs are, or as it is on a way of the trace.

        Raises ControlFlowError.
        """
        found = value_of(self.node)
        if found is None:
            raise self._no_value(what, hint)
        return found

    def __float__(self) -> float:
        return float(self._known("float() cannot read a tensor here", _ITEM))

    def __int__(self) -> int:
        return int(self._known("int() cannot read a tensor here", _ITEM))

    def __index__(self) -> int:
        if self.node.dtype.is_float:
            raise DTypeError(
                "a tensor of floats cannot be a Python index, an argument of range(), or how often "
                "a sequence is repeated", location=here(),
            )  # fmt: skip
        return int(self._known("a tensor cannot be a Python index or an argument of range() here"))

    def numpy(self, *args: Any, **kwargs: Any) -> Any:
        """Raises ControlFlowError: a trace has no values."""
        raise self._escape(".numpy() cannot read a tensor here")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise self._escape("a tensor cannot become a NumPy array here")

    def _escape(self, what: str) -> ControlFlowError:
        said = f"{what}: its value is unknown during tracing"
        return no_value(said, _NUMPY, self.known_node(), EscapeError)

    def __len__(self) -> int:
        size = self._leading("len()")
        if not isinstance(size, int):
            raise _unknown_length("len()", size)
        return size

    def __iter__(self) -> Any:
        size = self._leading("iteration")
        if not isinstance(size, int):
            raise _unknown_length("a loop over a tensor", size)
        return iter([self.select(0, index) for index in range(size)])

    def _leading(self, wanted: str) -> Any:
        if not self.ndim:
            raise ShapeError(f"{wanted} of a tensor without axes", location=here())
        return self.shape[0]

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        """The attributes that the program has set; which there are is not known of all calls."""
        if asker() is None:
            return own_names(self)
        observed("the attributes of a tensor are asked for")
        found: dict[str, Any] = own_names(self).setdefault(_MARKS, {})
        return found

    def __getstate__(self) -> Any:
        observed("the state of a tensor is asked for")

    def __dir__(self) -> Iterable[str]:
        observed("the attributes of a tensor are asked for")
        return super().__dir__()

    def lasting(self, said: str) -> None:
        """Something is changed that stays with an input, a cotangent or an output."""
        known = questions()
        name = None if known is None else known.outliving(self)
        if known is not None and name:
            known.observe(said.format(name) + ", which is so after the call, too", here())

    def __setattr__(self, name: str, value: Any) -> None:
        kind: Any = type(self)
        ours = asker() is None
        if ours or _is_settable(kind, name):
            if not ours and not hasattr(SymbolicTensor, name):
                self.lasting(f".{name} of {{}} is set")
            super().__setattr__(name, value)
            return
        known = questions()
        if known is not None and not _is_of_torch(name, value):
            known.mark(self, name, here())
        own_names(self).setdefault(_MARKS, {})[name] = value

    def __delattr__(self, name: str) -> None:
        if name not in own_names(self).get(_MARKS, ()):
            return super().__delattr__(name)
        known = questions()
        if known is not None:
            known.mark(self, name, here())
            known.lacking.add(name)
        del own_names(self)[_MARKS][name]
        return None

    def __getattr__(self, name: str) -> Any:
        marks, known = own_names(self).get(_MARKS, {}), questions()
        if name in marks:
            if known is not None:
                known.read.add(name)
            return marks[name]
        error = self._missing(name)
        if isinstance(error, SymgradError):
            note_limit(error)
        elif asker() is not None and _is_hidden(name):
            observed(f".{name} of a tensor is asked for")
        elif known is not None and asker() is not None and not name.startswith(("__", *_CAPSULES)):
            known.lacks(name, here())
        raise error

    def _missing(self, name: str) -> Exception:
        error, session = unsupported.missing_method(name, here()), active()
        if session is None or session.guest is None or isinstance(error, SymgradError):
            return error
        kind = session.guest.public(parameter=False).__name__
        return AttributeError(f"{kind!r} object has no attribute {name!r}")

    def __hash__(self) -> int:
        observed("the hash of a tensor is asked for")
        if (node := self.known_node()) is not None and asker() is not None:
            compared(node, None)
        return object.__hash__(self)

    @property
    def __class__(self) -> type:
        """What ``isinstance`` asks: the program's tensors are tensors."""
        frame = asker()
        if frame is None:
            return type(self)
        if asks_for_a_class(frame):
            self.type_is_asked()
        return public_class(parameter=self.is_parameter)

    @__class__.setter
    def __class__(self, value: type) -> None:
        raise TypeError("the class of a tensor cannot be set")

    def type_is_asked(self) -> None:
        """Called where the program asks whether it is something else than a tensor.

        What stands for a plain number is answered to be one: for numbers this says nothing.
        """
        known, node = questions(), self.known_node()
        if known is not None and node is not None and not node.rank:
            names = {*input_names([node])}
            if names and names <= current().declared(PLAIN):
                known.assume(passed_as_a_tensor(names), here())

    if TYPE_CHECKING:  # attached by symgrad.frontend.functions

        def __getitem__(self, key: Any) -> SymbolicTensor: ...
        def __setitem__(self, key: Any, value: Any) -> None: ...
        def __add__(self, other: Any) -> SymbolicTensor: ...
        def __radd__(self, other: Any) -> SymbolicTensor: ...
        def __sub__(self, other: Any) -> SymbolicTensor: ...
        def __rsub__(self, other: Any) -> SymbolicTensor: ...
        def __mul__(self, other: Any) -> SymbolicTensor: ...
        def __rmul__(self, other: Any) -> SymbolicTensor: ...
        def __truediv__(self, other: Any) -> SymbolicTensor: ...
        def __rtruediv__(self, other: Any) -> SymbolicTensor: ...
        def __pow__(self, other: Any) -> SymbolicTensor: ...
        def __matmul__(self, other: Any) -> SymbolicTensor: ...
        def __neg__(self) -> SymbolicTensor: ...
        def __invert__(self) -> SymbolicTensor: ...
        def __and__(self, other: Any) -> SymbolicTensor: ...
        def __or__(self, other: Any) -> SymbolicTensor: ...
        def __lt__(self, other: Any) -> SymbolicTensor: ...
        def __le__(self, other: Any) -> SymbolicTensor: ...
        def __gt__(self, other: Any) -> SymbolicTensor: ...
        def __ge__(self, other: Any) -> SymbolicTensor: ...


@functools.lru_cache(maxsize=1024)
def _is_settable(kind: type, name: str) -> bool:
    """Has the class something that takes what is set?"""
    found = inspect.getattr_static(kind, name, None)
    return hasattr(found, "__set__") and not isinstance(found, Hidden)


def _is_of_torch(name: str, value: Any) -> bool:
    """Is it what torch's C code keeps on a tensor: its sizes, as it was asked for them?"""
    return name.startswith(_CAPSULES) and (
        type(value).__name__ == "PyCapsule" or type(value) is int
    )


def _is_hidden(name: str) -> bool:
    """Is it a name that tensors of other libraries may have, and no mere attribute of a user's?"""
    return name.startswith(("_base", "_version", "_is_view", "__cuda", "__dlpack",
                            "__torch"))  # fmt: skip


_TENSORS = {"symgrad.tensor.tensor": "Tensor"}
_PARAMETERS = {"symgrad.nn.parameter": "Parameter"}


def public_class(*, parameter: bool) -> type:
    """The class that the program knows tensors by: symgrad's, as when it runs on values.

    Never torch's: torch's C code reads the memory of what says that it is a ``torch.Tensor``.
    A Parameter is a Tensor, also where no class of that name is loaded.  Where a Function of
    another library is traced, they are that library's, and so are the tensors.
    """
    session = active()
    if session is not None and session.guest is not None:
        return session.guest.public(parameter=parameter)
    tensors = loaded_tensors()
    if not parameter:
        return _joined("Tensor", tensors)
    found = _loaded(_PARAMETERS)
    others = tuple(one for one in tensors if not any(issubclass(known, one) for known in found))
    return _joined("Parameter", (*found, *others))


def loaded_tensors() -> tuple[type, ...]:
    """The classes of eager tensors that are loaded."""
    return _loaded(_TENSORS)


def _loaded(names: Mapping[str, str]) -> tuple[type, ...]:
    """The classes of these names that are loaded."""
    found = [getattr(sys.modules.get(module), name, None) for module, name in names.items()]
    return tuple(one for one in found if isinstance(one, type))


@functools.lru_cache(maxsize=8)
def _joined(name: str, classes: tuple[type, ...]) -> type:
    """A class of that name that is all of these, or the first where none can be.

    Where none is loaded, the program can ask for no more than the name.
    """
    if len(classes) == 1 and classes[0].__name__ == name:
        return classes[0]
    try:
        kind = type(classes[0]) if classes else type
        made: type = kind(name, classes, {"__module__": "symgrad"})
    except TypeError:
        return classes[0]
    return made


class TensorNumber(ValuedNumber):
    """The number that a tensor of one element holds, or what was computed from some.

    It is computed with as a Python number is: in doubles, and rounded where it meets a tensor.
    """

    __slots__ = ("tensor",)

    def __init__(
        self, op: str, args: tuple[Any, ...], tensor: SymbolicTensor | None, *, whole: bool
    ) -> None:  # fmt: skip
        super().__init__(op, args)
        self.tensor, self.value, self.is_whole = tensor, None, whole

    @classmethod
    def of(cls, tensor: SymbolicTensor) -> TensorNumber:
        """The number of a tensor without axes that nothing is written into."""
        return cls("item", (), tensor, whole=not tensor.dtype.is_float)

    def node(self, dtype: DType) -> Node:
        """It as a number of the graph in progress."""
        found = self.tensor
        if found is None:
            made = super().node(int64 if self.is_whole else float64)
            return current().cast(made, dtype)
        return current().cast(found.node, dtype)

    def derived(self, op: str, args: tuple[Any, ...]) -> SymFloat:
        """What ``op`` makes of it and other numbers."""
        whole = op in ("add", "sub", "mul", "neg") and all(map(_is_whole, args))
        return TensorNumber(op, args, None, whole=whole)

    def settle(self) -> Any:
        """The value, if the inputs have no part in it, or few are possible.

        Raises ControlFlowError.
        """
        found = value_of(self.node(int64 if self.is_whole else float64))
        if found is None:
            raise no_value(
                "Python has to know the value of .item(), which is unknown during tracing",
                node=self.node(int64 if self.is_whole else float64),
            )
        return found

    def _known(self) -> Any:
        return known_number(self.node(int64 if self.is_whole else float64))

    @property
    def stands_for(self) -> Any:
        """What describes it when the trace is over."""
        return self.op

    def __repr__(self) -> str:
        found = self._known()
        if found is None:
            text_asked("a tensor")
        return "<symbolic number>" if found is None else repr(found)

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        found = self._known()
        if found is None:
            text_asked("a tensor")
        return "<symbolic number>" if found is None else format(found, spec)

    def _asked(self, other: Any = None) -> Any:
        return self.settle()

    def _compare(self, relation: str, other: Any) -> Any:
        """It is compared as its tensor is: a question about elements."""
        session = current()
        if isinstance(other, SymbolicTensor):
            return NotImplemented
        if self.tensor is not None and type(other) in (int, float):
            node = self.tensor.node
            if type(other) is float and not node.dtype.is_float:
                node = session.cast(node, float64)
            right = session.constant(other, node.dtype)
        elif isinstance(other, ValuedNumber) and self._known() is None:
            node, right = self.node(float64), other.node(float64)
        else:
            return self.settle()
        return bool(fresh(session.apply(relation, node, right)))

    def __eq__(self, other: object) -> Any:
        return self._compare("eq", other)

    def __ne__(self, other: object) -> Any:
        return self._compare("ne", other)

    def __lt__(self, other: Any) -> Any:
        return self._compare("lt", other)

    def __le__(self, other: Any) -> Any:
        return self._compare("le", other)

    def __gt__(self, other: Any) -> Any:
        return self._compare("gt", other)

    def __ge__(self, other: Any) -> Any:
        return self._compare("ge", other)

    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __divmod__ = __rdivmod__ = _asked
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __invert__ = _asked
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _asked
    __hash__ = ValuedNumber.__hash__

    def __bool__(self) -> bool:
        return bool(self._compare("ne", 0))

    def __pos__(self) -> TensorNumber:
        return self

    def __abs__(self) -> Any:
        return self.settle() if self.is_whole else computed("abs", (self,))


def value_of(node: Node) -> Any:
    """The number of a node: known, or a whole one of few, of which there is a way for each.

    None where there are many.
    """
    found, known = known_number(node), questions()
    if found is not None or known is None or current().guest is None:
        return found
    if not node.dtype.is_integer or any(size != 1 for size in node.shape):
        return None
    lows, highs = current().demanded.ends(node)
    low = max((end.constant for end in lows if end.constant is not None), default=None)
    high = min((end.constant for end in highs if end.constant is not None), default=None)
    if low is None or high is None or high - low > MOST_CHOICES:
        return None
    return known.number(node, low, high, here())


def number_of_rows(tensor: SymbolicTensor) -> Any:
    """What ``len`` gives, which may be symbolic here."""
    return tensor._leading("len()")


def _is_whole(value: Any) -> bool:
    if isinstance(value, SymFloat):
        return value.is_whole
    return isinstance(value, (int, SymInt, np.integer))


def fresh(node: Node, label: str = "", *, settled: bool = False) -> SymbolicTensor:
    """A tensor with memory of its own.

    ``settled``: it is made with contiguous strides, whatever those of the inputs are.
    """
    return SymbolicTensor(Storage(node, label, settled=settled or (not label and _is_row(node))))


def _is_row(node: Node) -> bool:
    """Has it no more than one axis that could lie before or behind others in memory?"""
    session = active()
    if session is None or not session.strided:
        return False
    sizes = [size for size in node.shape if size != 1]
    return len(sizes) < 2 and all(session.flat(size) == size for size in sizes)


def asks_of_mask(node: Node) -> tuple[Node, bool] | None:
    """A mask, and whether the node says that it selects something, or else nothing."""
    negated = False
    while node.op in ("logical_not", "reshape", "detach"):
        negated ^= node.op == "logical_not"
        node = node.args[0]
    if node.rank or node.dtype != bool_:
        return None
    if node.op in ("any", "all"):
        mask = node.args[0]
        while mask.op == node.op:
            mask = mask.args[0]
        if node.op == "any":
            return mask, not negated
        opposite = mask.op == "logical_not"
        return (mask.args[0] if opposite else mask.graph.apply("logical_not", mask)), negated
    if node.op not in _COMPARED:
        return None
    counted, number = _counted(node.args[0]), node.args[1]
    while number.op in ("cast", "expand", "reshape"):
        number = number.args[0]
    if counted is None or number.op != "constant":
        return None
    some = _COMPARED[node.op].get(number.attributes["value"].value)
    return None if some is None else (counted, some != negated)


def _holds_nowhere(mask: Node) -> bool:
    """Is it False for all reals: ``x != x``, ``abs(x) == inf``?"""
    if mask.op == "logical_or":
        return all(map(_holds_nowhere, mask.args))
    if mask.op == "logical_not":
        return _holds_everywhere(mask.args[0])
    if mask.op in ("ne", "lt", "gt") and mask.args[0] is mask.args[1]:
        return True
    return mask.op == "eq" and mask.args[0].dtype.is_float and _is_infinite(mask.args[1])


def _holds_everywhere(mask: Node) -> bool:
    """Is it True for all reals: ``x == x``, ``abs(x) < inf``?"""
    if mask.op == "logical_or":
        return any(map(_holds_everywhere, mask.args))
    if mask.op in ("eq", "le", "ge"):
        return mask.args[0] is mask.args[1]
    return mask.op == "lt" and _is_infinite(mask.args[1])


def _is_infinite(node: Node) -> bool:
    while node.op in ("expand", "cast", "reshape"):
        node = node.args[0]
    return node.op == "constant" and node.attributes["value"].value == float("inf")


_COMPARED = {
    "gt": {0: True}, "ge": {1: True}, "ne": {0: True}, "eq": {0: False}, "le": {0: False},
    "lt": {1: False},
}  # fmt: skip
"""What a comparison of a count with a number says: that there are some, or none."""


def _counted(node: Node) -> Node | None:
    """The mask whose elements a node without axes counts; None where it is something else."""
    while node.op in ("sum", "cast", "reshape", "detach") and node.dtype != bool_:
        node = node.args[0]
    return node if node.dtype == bool_ else None


_WHERE = "use sg.where(cond, a, b); pass a number that must be known as a static argument"
_NUMPY = (
    "NumPy computes outside of the trace: write it with functions of tensors, or put a reference in"
    " its place (replace in symgrad.toml, --replace)"
)
_ITEM = "x.item() is a number that can be computed with, as long as Python need not know its value"


def no_value(
    what: str, hint: str = "", node: Node | None = None,
    kind: type[ControlFlowError] = ControlFlowError,
) -> ControlFlowError:  # fmt: skip
    """The error where Python has to know a value, that of a node, which a trace has not.

    Where numbers for the sizes leave few values, it says so.
    """
    inputs = [] if node is None else input_names([node])
    number = None if node is None else _size_that_bounds(node)
    error = kind(
        what, location=here(), hint=hint or _WHERE, asked=inputs, number=number,
        ways=node is not None and not is_computed_of_sizes(node),
    )  # fmt: skip
    note_limit(error)
    return error


def _size_that_bounds(node: Node) -> Dim | None:
    """A size that a number would have to stand for, so that whole numbers are few."""
    session = active()
    if session is None or session.guest is None or not node.dtype.is_integer:
        return None
    lows, highs = session.demanded.ends(node)
    if all(end.constant is None for end in lows):
        return None
    names = [name for end in highs for name in end.sizes]
    return Dim.size(names[0]) if names else None


def _unknown_length(wanted: str, size: Any) -> ControlFlowError:
    error = ControlFlowError(
        f"{wanted} needs a number, and the size {size} is symbolic", location=here(),
        hint=f"write whole-tensor operations, or a number in place of {size} in the shape spec",
        number=as_dim(size),
    )  # fmt: skip
    note_limit(error)
    return error


# -- elements that a mask selects


class SelectedShapeError(UnsupportedOpError):
    """How many elements a mask selects would have to be known."""


_PACKED = "_packed"
"""The attribute of what a mask selects that keeps it as a tensor with a shape."""


class SelectedTensor(SymbolicTensor):
    """``x[mask]``: what ``whole`` holds where ``mask`` is True.

    ``mask`` has the shape of the axes of ``whole`` from ``start`` on; ``x[mask]`` has one axis in
    their place, of a size that depends on values, and the others.  Elementwise operations compute
    with the whole tensor, and the mask says which elements count.  It can be summed, and assigned
    under the same mask.  Whatever else needs their number gets them ``packed``: where the mask has
    numbers for sizes, there is a way through the program for each number of them.
    """

    mask: Node
    start: int

    def __init__(self, whole: Node, mask: Node, start: int) -> None:
        super().__init__(Storage(whole))
        own_names(self).update(mask=mask, start=start)

    @property
    def whole(self) -> Node:
        """The tensor that the elements are selected from."""
        return self.storage.node

    @property
    def rank(self) -> int:
        """The number of its axes; ``ndim`` is what the program reads."""
        return self.whole.rank - self.mask.rank + 1

    @property
    def behind(self) -> int:
        """The number of axes behind that of the selected."""
        return self.whole.rank - self.start - self.mask.rank

    @property
    def whole_mask(self) -> Node:
        """The mask as large as the whole."""
        return spread_mask(self.mask, self.start, self.whole.shape)

    def or_else(self, value: Any) -> Node:
        """The whole with a number in place of the elements that are not selected."""
        session = current()
        fill = session.expand(session.constant(value, self.dtype), self.whole.shape)
        return session.apply("where", self.whole_mask, self.whole, fill)

    def with_whole(self, whole: Node) -> SelectedTensor:
        """What the same mask selects of another tensor, which has as many axes behind the mask's.

        Raises ShapeError where the sizes of the mask's axes differ.
        """
        return SelectedTensor(whole, self.mask, whole.rank - self.behind - self.mask.rank)

    def replace(self, whole: Node) -> None:
        """Put other elements in place of these."""
        if whole.shape != self.whole.shape:
            raise ShapeError(
                "what is computed in place has another shape than the elements that a mask "
                "selects", location=here(),
            )  # fmt: skip
        self.storage.write(current(), (), whole)

    def packed(self) -> SymbolicTensor:
        """The same memory as a tensor with a shape.  Raises SelectedShapeError."""
        known, session, count = own_names(self).get(_PACKED), current(), None
        if known is not None:
            return known  # type: ignore[no-any-return]
        sizes = [size.constant for size in self.mask.shape]
        if session.guest is not None and None not in sizes:
            row = session.cast(self.mask, int64)
            total = session.apply("sum", row, axes=tuple(range(row.rank))) if row.rank else row
            count = value_of(total)
        if count is None:
            raise self.unshaped()
        step = Packed(self.mask, self.start, count)
        shape = step.read(session, self.whole).shape
        made = SymbolicTensor(self.storage, (step,), strides=contiguous_strides(shape))
        own_names(self)[_PACKED] = made
        return made

    @property
    def is_counted(self) -> bool:
        """Has the program asked for their number?"""
        return _PACKED in own_names(self)

    @property
    def node(self) -> Node:
        """Its present value as a tensor with a shape.  Raises SelectedShapeError."""
        return self.packed().node

    def shared(self, *steps: Step) -> SymbolicTensor:
        """A view of it as a tensor with a shape.  Raises SelectedShapeError."""
        return self.packed().shared(*steps)

    def write(self, value: Node, *, convert: bool = False, trim: bool = False) -> None:
        """Replace its elements.  Raises SelectedShapeError."""
        self.packed().write(value, convert=convert, trim=trim)

    def unshaped(self) -> SelectedShapeError:
        """The error for what needs its shape."""
        return SelectedShapeError(
            "x[mask] has a shape that depends on values", location=here(),
            hint="elementwise operations, sum(), mean() and assignment under the same mask work; "
            "for anything else keep the whole tensor and choose with sg.where",
            **self.size_to_know(),
        )  # fmt: skip

    def size_to_know(self) -> dict[str, Any]:
        """What errors say of the size for which a number would have to stand.

        A mask that depends on sizes alone is known then; any other can be packed.
        """
        known = is_computed_of_sizes(self.mask)
        names = [name for size in self.mask.shape for name in size.sizes]
        possible = names and (known or current().guest is not None)
        return {"number": Dim.size(names[0]) if possible else None, "ways": not known}

    def known_node(self) -> Node | None:
        """Nothing to name: the node is that of the whole."""
        return None

    @property
    def ndim(self) -> int:
        """The number of its axes."""
        return self.rank

    def dim(self) -> int:
        """The number of its axes."""
        return self.rank

    ndimension = dim

    def __repr__(self) -> str:
        return "<symbolic elements selected by a mask>"


def packed(values: Any, error: SelectedShapeError) -> Any:
    """Values with tensors that have a shape in place of what masks select; or raises ``error``."""
    if isinstance(values, SelectedTensor):
        try:
            return values.packed()
        except SelectedShapeError:
            raise error from None
    if type(values) not in (tuple, list):
        return values
    found = [packed(one, error) for one in values]
    same = all(one is other for one, other in zip(found, values, strict=True))
    return values if same else type(values)(found)


def spread_mask(mask: Node, start: int, shape: tuple[Dim, ...]) -> Node:
    """A mask of the axes from ``start`` on, as large as all of ``shape``."""
    session = current()
    end = start + mask.rank
    lined = (Dim.of(1),) * start + mask.shape + (Dim.of(1),) * (len(shape) - end)
    return session.expand(session.reshape(mask, lined), shape)
