"""Cases in which each element is computed from those at its own place and from numbers alone.

In: a traced case.  Out: the same without its shape, as a key: what is proved of gradients of one
shape holds for every shape with this key, since each element is the same function of numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import fields
from typing import Any

from symgrad.ir.function import FunctionCase
from symgrad.ir.graph import Node, ancestors, intern_key
from symgrad.ops.record import get

_NODES = ("graph", "inputs", "outputs", "cotangents", "gradients", "saved")
"""The fields that hold nodes; no other one may, nor sizes."""
_SOURCES = ("input", "constant")


def without_shape(case: FunctionCase, names: Sequence[str]) -> Hashable | None:
    """What a case computes, whatever its shape; None where an axis counts.

    ``names``: the inputs of whose gradients something is to be proved, which have that shape.
    """
    shape = case.outputs[0].shape if case.outputs else ()
    own = [node for node in case.inputs if node.attributes["name"] in names]
    ends = [one for one in (*own, *case.outputs, *case.cotangents) if one is not None]
    given = [one for gradient in case.gradients for one in (gradient.node, gradient.returned)]
    ends += [one for one in given if one is not None]
    said = _said(case)
    if said is None or any(one.shape != shape for one in ends):
        return None
    places, nodes = dict[Node | None, int]({None: -1}), list[Hashable]()
    for node in ancestors([*case.inputs, *ends, *case.saved]):
        if node.shape not in (shape, ()):
            return None
        if node.op == "expand":
            places[node] = places[node.args[0]]
            continue
        if node.op not in _SOURCES and get(node.op).scalar is None:
            return None
        attrs = node.attributes["name"] if node.op == "input" else _typed(node)
        places[node] = len(nodes)
        args = tuple(places[one] for one in node.args)
        nodes.append((node.op, args, attrs, node.dtype, node.name, node.location))
    groups = (case.inputs, case.outputs, case.cotangents, given, case.saved)
    found = said, tuple(nodes), tuple(tuple(places[one] for one in group) for group in groups)
    return found if _is_key(found) else None


def _said(case: FunctionCase) -> tuple[Hashable, ...] | None:
    """What a case says in words and truth values; None where it says more."""
    said = [getattr(case, one.name) for one in fields(case) if one.name not in _NODES]
    if any(one.problem is not None for one in case.gradients):
        return None
    plain = all(
        isinstance(one, bool) or not one
        or (isinstance(one, tuple) and all(isinstance(word, str) for word in one))
        for one in said
    )  # fmt: skip
    if not plain:
        return None
    return *((one or None) for one in said), *(one.input for one in case.gradients)


def _typed(node: Node) -> Any:
    return intern_key(node.op, (), node.attrs)


def _is_key(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:  # an array
        return False
    return True
