"""One call of a kernel: does each argument fit the C parameter that it goes to?

In: the header's signature, the record of its calls, the kernel's graph.  Out: what each parameter
is: sizes, inputs with their strides, outputs, the workspace.

The record says which parameter is which, by its place, as it does where the C is validated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from symgrad import abi
from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.validate.sizes import size_called
from symgrad.validate.source import CType, Header, Signature
from symgrad.validate.wrappers.values import NotShown, Wrong

_LONG = 40
"""Names that have more characters may have others in C."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel.

    ``kind``: ``size``, ``input``, ``stride``, ``number``, ``output`` or ``workspace``.
    ``name``: of the size, of the input or output of the graph.
    """

    kind: str
    name: str
    ctype: CType
    axis: int = 0


def parameters(
    header: Header, record: abi.Kernel, graph: Graph, line: int
) -> tuple[Parameter, ...]:  # fmt: skip
    """The parameters of a kernel; raises Wrong or NotShown where the header has others."""
    kernel = record.name
    signature = header.declarations.get(kernel)
    if signature is None:
        raise Wrong(f"the header does not declare {kernel}", line)
    if signature.result != CType("int"):
        raise Wrong(f"{kernel} returns {signature.result}", line)
    given = _Given(signature, line)
    found = tuple(_each(given, record, graph))
    if given.left:
        raise Wrong(f"{kernel} takes {given.left} parameters more than its record says", line)
    _check_complete(kernel, found, graph, line)
    _check_workspace(header, kernel, found, line)
    return found


class _Given:
    """The parameters of a signature, taken one after the other."""

    def __init__(self, signature: Signature, line: int) -> None:
        self.name, self.line = signature.name, line
        self._parameters = signature.parameters
        self._place = 0

    @property
    def left(self) -> int:
        """How many are left."""
        return len(self._parameters) - self._place

    def take(self, what: str, wanted: str, *kinds: CType) -> tuple[str, CType]:
        """The next, which is one of these kinds and is called ``wanted``, or nearly so."""
        if not self.left:
            raise Wrong(f"{self.name} has no parameter for {what}", self.line)
        name, ctype = self._parameters[self._place]
        self._place += 1
        if not any(_is(ctype, one) for one in kinds):
            raise Wrong(f"{name} of {self.name} is {ctype}, and not {what}", self.line)
        if wanted.isascii() and wanted.isidentifier() and not _is_near(name, wanted):
            raise Wrong(f"{what} is called {name} in the header of {self.name}", self.line)
        return name, ctype


def _is(found: CType, wanted: CType) -> bool:
    return (found.base, found.pointers, found.const) == (
        wanted.base, wanted.pointers, wanted.const,
    )  # fmt: skip


def _is_near(found: str, wanted: str) -> bool:
    """C has underscores, or a number, behind a name that it needs; long names it cuts."""
    bare = wanted.lstrip("_")
    return (
        len(bare) > _LONG or re.fullmatch(rf"{re.escape(bare)}(_+\d*)?|value_*", found) is not None
    )


def _each(given: _Given, record: abi.Kernel, graph: Graph) -> Iterator[Parameter]:
    whole = CType("int64_t")
    sizes = _sizes(graph)
    for size in record.sizes:
        _, ctype = given.take(f"the size {size}", size, whole)
        found = size_called(size, sizes)
        if len(found) != 1:
            raise NotShown(f"the size {size} of {record.name} is not of its graph", given.line)
        yield Parameter("size", found[0], ctype)
    for one in record.inputs:
        node = _node(one, graph.inputs, given)
        if one.by_value:
            _, ctype = given.take(f"the number {one.name}", one.name, CType(abi.C_TYPES[one.dtype]))
            yield Parameter("number", one.name, ctype)
            continue
        what = f"the input {one.name}"
        name, ctype = given.take(what, one.name, CType(node.dtype.c, 1, const=True))
        yield Parameter("input", one.name, ctype)
        for axis in one.strides:
            own = f"{name}_s{axis}"
            yield Parameter(
                "stride", one.name, given.take(f"a stride of {name}", own, whole)[1], axis
            )
    for one in record.outputs:
        node = _node(one, graph.outputs, given)
        _, ctype = given.take(f"the output {one.name}", one.name, CType(node.dtype.c, 1))
        yield Parameter("output", one.name, ctype)
    name, ctype = given.take("the workspace", "workspace", CType("void", 1))
    yield Parameter("workspace", name, ctype)


def _node(one: abi.Array, nodes: Mapping[str, Node], given: _Given) -> Node:
    if one.name not in nodes:
        raise NotShown(f"{one.name} of {given.name} is not of its graph", given.line)
    return nodes[one.name]


def _sizes(graph: Graph) -> list[str]:
    found: dict[str, None] = {}
    for node in (*graph.inputs.values(), *ancestors(graph.outputs.values())):
        for dim in node.shape:
            found.update(dict.fromkeys(dim.sizes))
        for value in node.attributes.values():
            if hasattr(value, "sizes"):
                found.update(dict.fromkeys(value.sizes))
    return list(found)


def _check_complete(kernel: str, found: Sequence[Parameter], graph: Graph, line: int) -> None:
    """Each input and each output is one parameter."""
    taken = [one.name for one in found if one.kind in ("input", "number")]
    written = [one.name for one in found if one.kind == "output"]
    read = set(ancestors(graph.outputs.values()))
    for name, node in graph.inputs.items():
        if taken.count(name) > 1 or (name not in taken and node in read):
            raise Wrong(f"{kernel} takes the input {name} {taken.count(name)} times", line)
    if sorted(written) != sorted(graph.outputs):
        raise Wrong(f"{kernel} writes {', '.join(written)}, not {', '.join(graph.outputs)}", line)
    for one in found:
        if one.kind == "number" and graph.inputs[one.name].rank:
            raise Wrong(f"{one.name} of {kernel} is an array, and passed as a number", line)


def _check_workspace(header: Header, kernel: str, found: Sequence[Parameter], line: int) -> None:
    """The function that tells the size of the workspace takes the sizes of the kernel."""
    companion = header.declarations.get(f"{kernel}_workspace")
    own = header.declarations[kernel].parameters
    sizes = own[: sum(one.kind == "size" for one in found)]
    if any(one.kind == "size" for one in found[len(sizes) :]):
        raise NotShown(f"the sizes of {kernel} do not come first", line)
    if companion is None or companion.result != CType("int64_t") or companion.parameters != sizes:
        raise Wrong(f"{kernel}_workspace does not take the sizes of {kernel}", line)
