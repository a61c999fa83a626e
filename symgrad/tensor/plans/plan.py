"""What one call of an operation does, for arguments of these dtypes and shapes: made once, cached.

In: an operation of the frontend's table and its arguments.  Out: ``Plan``: the graph that the
operation traces to, and what becomes of its outputs.

The definition of an operation is the one that Functions are traced with: it is called once on
symbolic tensors whose sizes are all numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from symgrad.errors import DTypeError, Location, ShapeError
from symgrad.frontend.function import new_context, run_forward
from symgrad.frontend.session import Session, activate
from symgrad.frontend.tensor import SelectedTensor, SymbolicTensor
from symgrad.frontend.views import Step, Storage
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import DType
from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.ir.types import TensorType
from symgrad.tensor.batched import real_array
from symgrad.tensor.errors import DIVISION_BY_ZERO, DivisionError, EagerDTypeError, EagerShapeError
from symgrad.tensor.plans.derivative import Derivative, OwnRule, is_float
from symgrad.tensor.plans.program import Program, Runs
from symgrad.tensor.plans.shippedplan import ShippedDerivative, ShippedKernels, equip
from symgrad.tensor.tensor import DTYPES, Tensor


class EagerSession(Session):
    """A trace of one operation: it reads no variables of the user and notes no lines.

    ``rules``: the Functions whose backwards differentiate parts of it, in order.  ``warned``: what
    each call of the operation is to warn of.
    """

    eager = True

    def __init__(self, dtype: DType) -> None:
        super().__init__(dtype=dtype)
        self.rules: list[OwnRule] = []
        self.warned: list[str] = []
        self._inside = False

    def _enter(self) -> Location | None:
        return None

    @property
    def own_backwards(self) -> bool:
        """Not inside of a Function, which has a backward as a whole."""
        return not self._inside

    def applied(self, function: Any, args: Sequence[Any]) -> Any:
        """Trace a Function's forward, and note its backward."""
        ctx = new_context(function, {})
        inputs = tuple(arg.node for arg in args if is_float(arg))
        self._inside = True
        try:
            output = run_forward(function, ctx, args, {})
        finally:
            self._inside = False
        first, *rest = output if isinstance(output, tuple) else (output,)
        self.rules.append(OwnRule(self, function, ctx, tuple(args), inputs, first.node, len(rest)))
        return output

    def warn(self, message: str) -> None:
        """Let each call of the operation warn."""
        self.warned.append(message)


@dataclass(frozen=True)
class Slot:
    """An argument that is a tensor; ``strides`` in elements, None where it lies contiguously."""

    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None = None


def slot_of(tensor: Tensor) -> Slot:
    """Dtype, shape, and how the tensor, or one element of all its batches, lies in memory."""
    array, shape = real_array(tensor), tuple(tensor._array.shape)
    dtype, outer = DTYPES[array.dtype], array.ndim - len(shape)
    one = array[(0,) * outer] if outer and array.size else array
    if one.flags.c_contiguous or not array.size:
        return Slot(dtype, shape)
    return Slot(dtype, shape, tuple(step // array.itemsize for step in one.strides))


@dataclass(frozen=True)
class Output:
    """One tensor among the results.

    ``kind``: ``value``, computed; ``view`` of the argument at ``place``, after ``steps``;
    ``same``: that argument itself; ``written``: its new contents.
    """

    kind: str
    node: Node
    place: int = 0
    steps: tuple[Step, ...] = ()


class Plan:
    """``outputs``: all tensors that come out, those written in place last.

    ``computed``: the nodes that ``program`` computes: the values and the new contents.
    ``divisors``: the places of the inputs by which integers are divided.
    ``batched``: the plans over whole batches that were made of it (``batch.py``).
    ``rebuild``: makes the result, as the operation returns it, of the tensors that come out.
    ``session``: the trace of the operation.
    """

    def __init__(
        self, name: str, graph: Graph, inputs: Sequence[Node], outputs: Sequence[Output],
        rebuild: Callable[[list[Any]], Any], session: EagerSession | None = None,
    ) -> None:  # fmt: skip
        self.name = name
        self.session = session
        self.warned = () if session is None else tuple(session.warned)
        self.graph = graph
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.rebuild = rebuild
        self.divisors = _divisors(inputs, outputs)
        self.written = tuple(output.place for output in outputs if output.kind == "written")
        self.computed = tuple(
            output.node for output in outputs if output.kind in ("value", "written")
        )
        self.program: Runs = Program(self.inputs, self.computed)
        self._kernels: ShippedKernels | None = None
        self.simple = len(self.outputs) == 1 and self.outputs[0].kind == "value"
        self._derivatives: dict[tuple[bool, ...], Derivative] = {}
        self.batched: dict[tuple[tuple[bool, ...], int], Any] = {}

    @classmethod
    def computing(
        cls, name: str, graph: Graph, inputs: Sequence[Node], nodes: Sequence[Node]
    ) -> Plan:
        """A plan that computes nodes of a graph as they are: a list of tensors."""
        return cls(name, graph, inputs, [Output("value", node) for node in nodes], list)

    def use(self, kernels: ShippedKernels) -> None:
        """Compute with kernels in place of NumPy."""
        self.program = self._kernels = kernels

    def derivative(self, needs: tuple[bool, ...]) -> Derivative:
        """What backward needs when these inputs require a gradient."""
        found = self._derivatives.get(needs)
        if found is None:
            found = (
                Derivative(self, needs)
                if self._kernels is None
                else ShippedDerivative(self, needs, self._kernels)
            )
            self._derivatives[needs] = found
        return found


_DIVISIONS = ("floordiv", "fmod", "mod")


def _divisors(inputs: Sequence[Node], outputs: Sequence[Output]) -> tuple[int, ...]:
    """The places of the inputs by which integers are divided.

    Raises DivisionError where the divisor is the number 0, and there is something to divide.
    """
    places = {node.index: place for place, node in enumerate(inputs)}
    found: set[int] = set()
    for node in ancestors([output.node for output in outputs], stop=inputs):
        if node.op not in _DIVISIONS or not node.dtype.is_integer or 0 in node.shape:
            continue
        divisor = node.args[1]
        while divisor.op in ("cast", "expand", "reshape"):
            divisor = divisor.args[0]
        if divisor.op == "constant" and divisor.attributes["value"].value == 0:
            raise DivisionError(DIVISION_BY_ZERO)
        if divisor.index in places:
            found.add(places[divisor.index])
    return tuple(sorted(found))


def make_plan(
    name: str, call: Callable[..., Any], template: Any, keywords: Any, slots: Sequence[Slot],
    dtype: DType,
) -> Plan:  # fmt: skip
    """Call an operation on symbolic tensors in place of the tensors in its arguments.

    ``template`` and ``keywords`` hold ``Place`` where a tensor stands.  Raises what it raises,
    errors of shapes and dtypes as PyTorch's kind.
    """
    session = EagerSession(dtype)
    with activate(session):
        symbols = [_symbol(session, number, slot) for number, slot in enumerate(slots)]
        inputs = [symbol.storage.node for symbol in symbols]
        try:
            result = call(*_filled(template, symbols), **_filled(keywords, symbols))
            collected = _Collector(symbols)
            rebuild = collected.take(result)
            collected.take_written(inputs)
        except ShapeError as error:
            raise EagerShapeError(error.what, hint=error.hint) from None
        except DTypeError as error:
            raise EagerDTypeError(error.what, hint=error.hint) from None
    plan = Plan(name, session.graph, inputs, collected.outputs, rebuild, session)
    equip(plan, call, template, keywords, slots)
    return plan


@dataclass(frozen=True)
class Place:
    """Where the ``number``-th tensor stands among arguments."""

    number: int


def _symbol(session: Session, number: int, slot: Slot) -> SymbolicTensor:
    shape = tuple(map(Dim.of, slot.shape))
    node = session.graph.input(f"x{number}", TensorType(slot.dtype, shape))
    strides = None if slot.strides is None else tuple(map(Dim.of, slot.strides))
    return SymbolicTensor(Storage(node), strides=strides)


def _filled(template: Any, symbols: Sequence[SymbolicTensor]) -> Any:
    if isinstance(template, Place):
        return symbols[template.number]
    if isinstance(template, (tuple, list)):
        return type(template)(_filled(item, symbols) for item in template)
    if isinstance(template, dict):
        return {name: _filled(item, symbols) for name, item in template.items()}
    if isinstance(template, slice):
        ends = (template.start, template.stop, template.step)
        return slice(*(_filled(item, symbols) for item in ends))
    return template


class _Collector:
    """Finds the tensors in a result, and what each of them is to the arguments."""

    def __init__(self, symbols: Sequence[SymbolicTensor]) -> None:
        self.symbols = symbols
        self.outputs: list[Output] = []

    def take(self, result: Any) -> Callable[[list[Any]], Any]:
        """Note the tensors of a result; return how it is built again of others."""
        if isinstance(result, SymbolicTensor):
            place = len(self.outputs)
            self.outputs.append(self._output(result))
            return lambda tensors: tensors[place]
        if isinstance(result, (tuple, list)) and type(result).__name__ != "Shape":
            parts = [self.take(item) for item in result]
            kind: Any = type(result)
            if hasattr(kind, "_fields"):
                return lambda tensors: kind(*(part(tensors) for part in parts))
            return lambda tensors: kind(part(tensors) for part in parts)
        return lambda tensors: result

    def _output(self, tensor: SymbolicTensor) -> Output:
        assert not isinstance(tensor, SelectedTensor), "masks are looked at before"
        for place, symbol in enumerate(self.symbols):
            if tensor is symbol and not symbol.steps:
                return Output("same", tensor.node, place)
            if tensor.storage is symbol.storage:
                return Output("view", tensor.node, place, tensor.steps)
        return Output("value", tensor.node)

    def take_written(self, inputs: Sequence[Node]) -> None:
        """Note the arguments that were written in place."""
        for place, (symbol, before) in enumerate(zip(self.symbols, inputs, strict=True)):
            if symbol.storage.node is not before or symbol.storage.version:
                self.outputs.append(Output("written", symbol.storage.node, place))
