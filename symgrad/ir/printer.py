"""A graph as text, one line a node, with the user's names.

In: a graph.  Out: a string.

    graph(x: f32[n m], w: f32[m])
      t: f32[n m] = mul(x, %3)              model.py:12
      y: f32[n] = sum(t, axes=(1,))         model.py:13
      return y

Numbers, and numbers broadcast to a shape, stand where they are used.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from symgrad.ir.dim import Dim
from symgrad.ir.dtype import DType
from symgrad.ir.graph import ConstantValue, Graph, Node, ancestors

if TYPE_CHECKING:
    from symgrad.ir.function import FunctionGraphs


def graph_text(
    graph: Graph, results: Mapping[str, Node] | None = None, *, locations: bool = False
) -> str:
    """The nodes that ``results`` need (by default the graph's outputs; all where it has none).

    ``locations``: with the user's file and line behind each node.
    """
    wanted = dict(graph.outputs if results is None else results)
    nodes = ancestors(wanted.values()) if wanted else graph.nodes
    names = node_names(nodes)
    inputs = ", ".join(f"{names[node]}: {node.type}" for node in nodes if node.op == "input")
    lines: list[tuple[str, str]] = []
    for node in nodes:
        if node.op != "input" and _inline(node) is None:
            place = str(node.location) if locations and node.location else ""
            lines.append((f"  {names[node]}: {node.type} = {_application(node, names)}", place))
    if wanted:
        parts = [_result(name, names[node]) for name, node in wanted.items()]
        lines.append((f"  return {', '.join(parts)}", ""))
    return "\n".join([f"graph({inputs})", *_in_columns(lines)]) + "\n"


def function_text(graphs: FunctionGraphs) -> str:
    """What a Function computes, forward and hand-written backward; nothing else of its graphs."""
    texts = []
    for case in graphs.cases:
        results = dict(zip(case.output_names, case.outputs, strict=True))
        for one in () if graphs.derived else case.gradients:
            if one.node is not None:
                results[f"grad_{one.input}"] = one.node
        texts.append(graph_text(case.graph, results))
    return "".join(texts)


def fresh_name(wanted: str, taken: Collection[str | None]) -> str:
    """``wanted``, or the first of ``wanted_2``, ``wanted_3`` and so on that is not taken."""
    found, number = wanted, 1
    while found in taken:
        number += 1
        found = f"{wanted}_{number}"
    return found


def node_names(nodes: list[Node]) -> dict[Node, str]:
    """A name for each node: the user's, told apart where several have it; else ``%<index>``."""
    names: dict[Node, str] = {}
    taken: set[str] = set()
    for node in sorted(nodes, key=lambda node: (node.op != "input", node.index)):
        name = _inline(node) or node.label
        if _inline(node) is None:
            name = fresh_name(name, taken)
            taken.add(name)
        names[node] = name
    return names


def _inline(node: Node) -> str | None:
    """The text of a number; None for other nodes."""
    if node.op == "expand" and node.args[0].rank == 0:
        return _inline(node.args[0])
    if node.op == "constant":
        return str(node.attributes["value"])
    if node.op == "size":
        return str(node.attributes["dim"].grouped)
    return None


def _application(node: Node, names: Mapping[Node, str]) -> str:
    arguments = [names[arg] for arg in node.args]
    arguments += [f"{name}={_value(value)}" for name, value in node.attrs]
    return f"{node.op}({', '.join(arguments)})"


def _value(value: Any) -> str:
    if isinstance(value, tuple):
        inner = ", ".join(map(_value, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, Dim | DType | ConstantValue):
        return str(value)
    return repr(value)


def _result(name: str, node: str) -> str:
    return name if name == node else f"{name}={node}"


def _in_columns(lines: list[tuple[str, str]]) -> list[str]:
    width = max((len(text) for text, place in lines if place), default=0)
    return [f"{text:<{width}}  # {place}" if place else text for text, place in lines]
