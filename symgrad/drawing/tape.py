"""A tensor's history as a picture: forward, what was saved, and what backward will run.

In: tensors, names of tensors.  Out: ``Picture``.

The tape holds only the nodes of backward.  For each of them the operation that it differentiates is
drawn too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

from symgrad.drawing.picture import BACKWARD, FORWARD, SAVED, Builder, Picture, Vertex
from symgrad.frontend.function import state_of
from symgrad.ir.dtype import BY_NAME
from symgrad.tensor.apply import FunctionNode
from symgrad.tensor.plans.run import OperationNode
from symgrad.tensor.tape.kernelnode import KernelNode
from symgrad.tensor.tape.node import AccumulateGrad, Node, SavedTensor, edge_of
from symgrad.tensor.tensor import Tensor

Source = tuple[Any, ...]


class Names:
    """The user's names of tensors: by the tensor itself, and by its place in the graph."""

    def __init__(self, given: Mapping[str, Any], frame: FrameType | None) -> None:
        self.parameters: set[int] = set()
        self._held: list[Any] = []  # keeps the ids valid
        self._names: dict[Any, str] = {}
        for name, value in given.items():
            self._note(name, value, parameter=True)
        while frame is not None and frame.f_globals.get("__name__", "").startswith("symgrad."):
            frame = frame.f_back
        if frame is not None:
            for scope in (frame.f_locals, frame.f_globals):
                for name, value in list(scope.items()):
                    if not name.startswith("_"):
                        self._observe(name, value)

    def _observe(self, name: str, value: Any) -> None:
        if isinstance(value, Tensor):
            self._note(name, value)
        elif callable(getattr(type(value), "named_parameters", None)):
            for inner, tensor in value.named_parameters():
                self._note(inner, tensor, parameter=True)

    def _note(self, name: str, value: Any, *, parameter: bool = False) -> None:
        if not isinstance(value, Tensor):
            return
        self._held.append(value)
        self._names.setdefault(id(value), name)
        edge = None if value.grad_fn is None else edge_of(value)
        if edge is not None:
            self._names.setdefault(edge, name)
        if parameter:
            self.parameters.add(id(value))

    def of(self, tensor: Tensor) -> str:
        """The name of a leaf, "" where it has none."""
        return self._names.get(id(tensor), "")

    def at(self, node: Node, number: int = 0) -> str:
        """The name of what a node computed."""
        return self._names.get((node, number), "")


def tape_picture(tensors: Sequence[Tensor], names: Names, title: str) -> Picture:
    """The picture of the history of tensors."""
    return _Drawer(names).picture(tensors, title)


class _Drawer:
    """Draws the nodes behind some tensors, oldest first."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.builder = Builder()
        self.computed: dict[Source, int] = {}
        self.undone: dict[Node, int] = {}
        self.pills: dict[Source, int] = {}

    def picture(self, tensors: Sequence[Tensor], title: str) -> Picture:
        """Forward from the leaves on, then backward."""
        roots = [tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None]
        nodes = _reachable(roots)
        saved = {node: list(_saved(node)) for node in nodes}
        for node in nodes:
            self._forward(node, saved[node])
        for tensor in tensors:
            self._output(tensor)
        for node in nodes:
            for source, tensor_ in saved[node]:
                self._pill(source, tensor_)
        starts = [(tensor, self._start(tensor)) for tensor in tensors if tensor.requires_grad]
        for node in reversed(nodes):
            self._backward(node)
        for node in nodes:
            self._join(node, [source for source, _ in saved[node]])
        for tensor, start in starts:
            if tensor.grad_fn is not None:
                self.builder.join(start, self.undone[tensor.grad_fn])
        return self.builder.picture(title)

    # -- forward

    def _forward(self, node: Node, saved: Sequence[tuple[Source, Any]]) -> None:
        if isinstance(node, AccumulateGrad):
            self._leaf(node.variable)
            return
        constants = [tensor for source, tensor in saved if source[0] == "constant"]
        given = [self._leaf(tensor) for tensor in constants]
        place = self.builder.add(
            Vertex(FORWARD, "operation", self.names.at(node), _computes(node), _types(node))
        )
        self.computed["computed", node] = place
        for edge in node.edges:
            if edge is not None:
                self.builder.join(self.computed[_source_of(edge[0])], place)
        for leaf in given:
            self.builder.join(leaf, place)

    def _leaf(self, tensor: Tensor) -> int:
        source = ("constant", id(tensor._array))
        if tensor.requires_grad:
            source = ("leaf", id(tensor))
        if source not in self.computed:
            parameter = id(tensor) in self.names.parameters or _is_parameter(tensor)
            kind = "parameter" if parameter else "leaf" if tensor.requires_grad else "data"
            name = self.names.of(tensor)
            label = "" if name else {"data": "constant"}.get(kind, "leaf")
            self.computed[source] = self.builder.add(
                Vertex(FORWARD, kind, name, label, _type(tensor.shape, tensor._array.dtype))
            )
        return self.computed[source]

    def _output(self, tensor: Tensor) -> None:
        if tensor.grad_fn is None:
            self._leaf(tensor)
            return
        name, kind = self.names.of(tensor), _type(tensor.shape, tensor._array.dtype)
        found = self.builder.add(Vertex(FORWARD, "output", name, "output", kind))
        self.builder.join(self.computed["computed", tensor.grad_fn], found)

    # -- what crosses

    def _pill(self, source: Source, tensor: Any) -> None:
        if source in self.pills:
            return
        name = self._saved_name(source)
        self.pills[source] = self.builder.add(
            Vertex(SAVED, "saved", name, "", _type(tensor.shape, tensor.dtype))
        )
        origin = ("computed", source[1]) if source[0] == "between" else source
        if origin in self.computed:
            self.builder.join(self.computed[origin], self.pills[source])

    def _saved_name(self, source: Source) -> str:
        if source[0] in ("computed", "between"):
            named = self.names.at(source[1]) if source[0] == "computed" else ""
            return named or f"of {_computes(source[1])}"
        vertex = self.builder.vertices[self.computed[source]]
        return vertex.name or vertex.label

    # -- backward

    def _start(self, tensor: Tensor) -> int:
        name = self.names.of(tensor) or "output"
        return self.builder.add(
            Vertex(
                BACKWARD, "cotangent", f"grad {name}", "", _type(tensor.shape, tensor._array.dtype)
            )
        )  # fmt: skip

    def _backward(self, node: Node) -> None:
        if isinstance(node, AccumulateGrad):
            tensor = node.variable
            name = self.names.of(tensor)
            vertex = Vertex(
                BACKWARD, "gradient", f"{name}.grad" if name else "grad", "", _types(node),
                "added to the leaf's .grad",
            )  # fmt: skip
        else:
            vertex = Vertex(BACKWARD, "operation", "", node.name(), _types(node))
        self.undone[node] = self.builder.add(vertex)

    def _join(self, node: Node, sources: Sequence[Source]) -> None:
        for edge in node.edges:
            if edge is not None:
                self.builder.join(self.undone[node], self.undone[edge[0]])
        for source in sources:
            self.builder.join(self.pills[source], self.undone[node])


# -- what the tape holds


def _reachable(roots: Sequence[Node]) -> list[Node]:
    """The nodes behind the roots: leaves first, then in order of creation."""
    found: dict[Node, None] = {}
    todo = list(roots)
    while todo:
        node = todo.pop()
        if node not in found:
            found[node] = None
            todo.extend(edge[0] for edge in reversed(node.edges) if edge is not None)
    leaves = [node for node in found if isinstance(node, AccumulateGrad)]
    others = [node for node in found if not isinstance(node, AccumulateGrad)]
    return leaves[::-1] + sorted(others, key=lambda node: node.number)


def _source_of(node: Node) -> Source:
    if isinstance(node, AccumulateGrad):
        return ("leaf", id(node.variable))
    return ("computed", node)


def _saved(node: Node) -> Iterator[tuple[Source, Any]]:
    """What a node saved: its source, and the tensor or array."""
    kept: Sequence[Any] = ()
    if isinstance(node, OperationNode):
        kept = node.saved
    elif isinstance(node, FunctionNode):
        kept = getattr(state_of(node.ctx), "packed", None) or ()
    elif isinstance(node, KernelNode) and node.residuals is not None:
        own = [saved.array for saved in node.checked]
        arrays = node.residuals.arrays.values()
        kept = [*node.checked, *(a for a in arrays if not any(a is one for one in own))]
    for number, one in enumerate(kept):
        if isinstance(one, SavedTensor):
            yield _saved_source(node, one)
        elif one is not None:
            yield ("between", node, number), one


def _saved_source(node: Node, saved: SavedTensor) -> tuple[Source, Any]:
    if saved.is_output:
        return ("computed", node), saved.array
    if saved.edge is not None:
        return ("computed", saved.edge[0]), saved.array
    leaf = saved.leaf
    assert leaf is not None
    if leaf.requires_grad:
        return ("leaf", id(leaf)), leaf
    return ("constant", id(leaf._array)), leaf


def _computes(node: Node) -> str:
    """The operation that a node differentiates: ``mul`` for ``MulBackward0``."""
    if isinstance(node, OperationNode):
        return node.derivative.plan.name.strip("_").removeprefix("true")
    return node.name().removesuffix("0").removesuffix("Backward")


def _is_parameter(tensor: Tensor) -> bool:
    return any(kind.__name__ == "Parameter" for kind in type(tensor).__mro__)


def _types(node: Node) -> str:
    return ", ".join(_type(*kind) for kind in node.outputs if kind is not None)


def _type(shape: Sequence[int], dtype: Any) -> str:
    short = BY_NAME[str(dtype)].short
    return f"{short}[{' '.join(map(str, shape))}]"
