"""One call of a kernel: does each argument fit the C parameter that it goes to?

In: the header's signature, the kernel's graph, the arguments in their order.  Out: what each input
of the graph is given, and the array that each of its outputs is written to.

A parameter is known by its name, as the validation of the C knows it: the input or output of the
graph that is called so, ``name_s<axis>`` for the stride of an axis, else a size.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from symgrad.ir.graph import Graph, ancestors
from symgrad.validate.source import CType, Header, Signature
from symgrad.validate.wrappers.values import NotShown, Wrong


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


def parameters(header: Header, kernel: str, graph: Graph, line: int) -> tuple[Parameter, ...]:
    """The parameters of a kernel; raises NotShown where the header has others than the graph."""
    signature = header.declarations.get(kernel)
    if signature is None:
        raise Wrong(f"the header does not declare {kernel}", line)
    if signature.result != CType("int"):
        raise Wrong(f"{kernel} returns {signature.result}", line)
    found = tuple(_each(signature, graph, line))
    _check_complete(kernel, found, graph, line)
    _check_workspace(header, kernel, found, line)
    return found


def _each(signature: Signature, graph: Graph, line: int) -> Iterator[Parameter]:
    sizes = _sizes(graph)
    array = ""
    for place, (name, ctype) in enumerate(signature.parameters, 1):
        if place == len(signature.parameters):
            if (name, ctype) != ("workspace", CType("void", 1)):
                raise Wrong(f"the last parameter of {signature.name} is no workspace", line)
            yield Parameter("workspace", name, ctype)
            continue
        if ctype.pointers == 1:
            array = name
            nodes = graph.inputs if ctype.const else graph.outputs
            kind = "input" if ctype.const else "output"
            yield Parameter(kind, _one_of(name, nodes, signature, line), ctype)
            continue
        stride = re.fullmatch(r"(.*)_s(\d+)", name)
        if stride and array and stride[1] == array and ctype == CType("int64_t"):
            own = _one_of(array, graph.inputs, signature, line)
            yield Parameter("stride", own, ctype, int(stride[2]))
        elif not array and name not in graph.inputs and ctype == CType("int64_t"):
            yield Parameter("size", _one_of(name, sizes, signature, line), ctype)
        else:
            yield Parameter("number", _one_of(name, graph.inputs, signature, line), ctype)


def _sizes(graph: Graph) -> list[str]:
    found: dict[str, None] = {}
    for node in (*graph.inputs.values(), *ancestors(graph.outputs.values())):
        for dim in node.shape:
            found.update(dict.fromkeys(dim.sizes))
        for value in node.attributes.values():
            if hasattr(value, "sizes"):
                found.update(dict.fromkeys(value.sizes))
    return list(found)


def _one_of(name: str, known: Iterable[str], signature: Signature, line: int) -> str:
    """What a parameter is called in the graph: C has an underscore where its words forbid it."""
    names = list(known)
    if name in names:
        return name
    close = [one for one in names if one.strip("_") == name.strip("_")]
    if len(close) != 1:
        raise NotShown(f"the parameter {name} of {signature.name} is nothing of its graph", line)
    return close[0]


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
        nodes = graph.outputs if one.kind == "output" else graph.inputs
        if one.kind in ("input", "output") and nodes[one.name].dtype.c != one.ctype.base:
            raise Wrong(f"{one.name} of {kernel} is {one.ctype} in C", line)
        if one.kind == "number" and nodes[one.name].rank:
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
