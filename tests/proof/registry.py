"""Ops of the registry with arguments to try them on.

In: the name of an op.  Out: argument types and attributes; subjects whose gradients are the op's
own VJP.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from symgrad.ir.dim import Dim
from symgrad.ir.dtype import bool_, float64, int64
from symgrad.ir.graph import Graph
from symgrad.ir.types import TensorType
from symgrad.ops.record import get
from symgrad.proof.oracle.subject import Subject
from tests.proof.builders import K, M, N, tensor


@dataclass(frozen=True)
class Variant:
    """An op, the types of its arguments, its attributes."""

    op: str
    types: tuple[TensorType, ...]
    attributes: dict[str, Any] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        details = "-".join(f"{key}={value}" for key, value in self.attributes.items())
        return f"{self.op}-{'-'.join(map(str, self.types))}-{details}"


_ROW = tensor(N, M)
_INDEX = tensor(K, dtype=int64)
_ONE, _ZERO = Dim.of(1), Dim.of(0)
_STRUCTURAL: dict[str, list[tuple[tuple[TensorType, ...], dict[str, Any]]]] = {
    "where": [((tensor(N, M, dtype=bool_), _ROW, _ROW), {})],
    "cast": [((_ROW,), {"dtype": float64})],
    "cumsum": [((_ROW,), {"axis": 1, "reverse": reverse}) for reverse in (False, True)],
    "cumprod": [((_ROW,), {"axis": 1, "reverse": reverse}) for reverse in (False, True)],
    "expand": [((tensor(1, M),), {"shape": (K, N, M)})],
    "reshape": [
        ((tensor(N, M, 1),), {"shape": (N, _ONE, M)}), ((_ROW,), {"shape": (N * M,)}),
        ((tensor(N * M),), {"shape": (N, M)}),
    ],
    "permute": [((tensor(N, M, K),), {"axes": (2, 0, 1)})],
    "slice": [
        ((tensor(N + 2, M),), {"starts": (_ONE, M - 1), "steps": (1, -1), "sizes": (N, M)}),
        ((tensor(2 * N),), {"starts": (_ONE,), "steps": (2,), "sizes": (N,)}),
    ],
    "unslice": [
        ((tensor(N),), {"shape": (2 * N,), "starts": (_ZERO,), "steps": (2,)}),
        ((_ROW,), {"shape": (N + 2, M), "starts": (_ONE, _ZERO), "steps": (1, 1)}),
    ],
    "concat": [
        ((_ROW, tensor(K, M)), {"axis": 0}), ((_ROW, tensor(N, 1), tensor(N, K)), {"axis": 1}),
    ],
    "diagonal": [((tensor(N, N),), {"offset": 0, "axes": (0, 1)})],
    "index": [((_ROW, _INDEX), {}), ((_ROW, _INDEX, _INDEX), {})],
    "index_add": [((tensor(K, M), _INDEX), {"shape": (N, M)})],
    "inverse": [((tensor(N, N),), {})],
    "det": [((tensor(N, N),), {})],
    "logdet": [((tensor(N, N),), {})],
    "cholesky": [((tensor(N, N),), {})],
    "eigenvalues": [((tensor(N, N),), {})],
    "eigenvectors": [((tensor(N, N),), {})],
    "left_vectors": [((tensor(N, N + M),), {"count": N})],
    "right_vectors": [((tensor(N, N + M),), {"count": N})],
    "singular_values": [
        ((tensor(N, N + M),), {"count": N}), ((tensor(N + M, N),), {"count": N}),
    ],
    "orthogonal_factor": [((tensor(N + M, N),), {})],
    "triangular_factor": [((tensor(N + M, N),), {})],
    "solve_triangular": [
        ((tensor(N, N), tensor(N, M)), {"upper": upper}) for upper in (False, True)
    ],
}  # fmt: skip
_REDUCTIONS = ("sum", "prod", "amax", "amin")
_PRODUCTS = ("ik,kj->ij", "ik,jk->ij", "bik,bkj->bij", "i,i->", "i,j->ij")


def variants(name: str) -> list[Variant]:
    """What to try an op on; nothing for an op without a derivative."""
    op = get(name)
    if op.vjp is None:
        return []
    if name in _STRUCTURAL:
        return [Variant(name, types, attributes) for types, attributes in _STRUCTURAL[name]]
    if name in _REDUCTIONS:
        single = [Variant(name, (_ROW,), {"axes": (axis,)}) for axis in (0, 1)]
        return [*single, Variant(name, (tensor(N, M, K),), {"axes": (0, 2)})]
    if name in ("max", "min"):
        return [Variant(name, (_ROW,), {"axes": (axis,)}) for axis in (0, 1)]
    if name == "einsum":
        return [_product(spec) for spec in _PRODUCTS]
    if op.scalar is not None and isinstance(op.arity, int):
        return [Variant(name, (_ROW,) * op.arity)]
    return []


def _product(spec: str) -> Variant:
    left, right = spec.split("->")[0].split(",")
    sizes = {letter: Dim.size(letter) for letter in "bijk"}
    types = tuple(tensor(*(sizes[letter] for letter in word)) for word in (left, right))
    return Variant("einsum", types, {"spec": spec})


def subject_of(variant: Variant, *, gradients: bool = True) -> Subject:
    """The op as a forward, its VJP as the hand-written backward."""
    graph = Graph()
    inputs = [graph.input(f"x{i}", type) for i, type in enumerate(variant.types)]
    output = graph.apply(variant.op, *inputs, **variant.attributes)
    cotangent = graph.input("grad", output.type)
    found = {}
    if gradients:
        rule = get(variant.op).vjp
        assert rule is not None
        parts = enumerate(rule(output, cotangent))
        found = {f"x{i}": part for i, part in parts if part is not None}
    return Subject(graph, inputs, [(output, cotangent)], found)
