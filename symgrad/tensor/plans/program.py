"""A graph of known sizes as a straight line of NumPy calls.

In: the nodes of a graph whose sizes are all numbers.  Out: ``Program``, which takes the arrays of
the inputs and returns those of the outputs.

What is decided once, when the program is made: the order, the attributes as plain numbers, which
broadcasts NumPy does by itself, and which outputs have to be copied because they would otherwise
share memory with an input.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from symgrad.ir.dim import Dim, DimLike
from symgrad.ir.graph import Node, ancestors
from symgrad.ops.contraction import parse
from symgrad.ops.record import get

Array = np.ndarray[Any, Any]
Step = tuple[Callable[..., Any], tuple[int, ...], int, Any]


class Runs(Protocol):
    """Anything that computes arrays from arrays."""

    def run(self, arrays: Sequence[Any]) -> list[Array]:
        """The arrays of the outputs for those of the inputs."""


class Program:
    """``run(arrays)``: the values of ``outputs``, none of which shares memory with an input."""

    __slots__ = ("_copied", "_count", "_inputs", "_outputs", "_preset", "_single", "_steps")

    def __init__(self, inputs: Sequence[Node], outputs: Sequence[Node]) -> None:
        order = ancestors(outputs, stop=inputs)
        lazy = _lazy_broadcasts(order, inputs, outputs)
        slots: dict[int, int] = {node.index: place for place, node in enumerate(inputs)}
        preset: list[tuple[int, Array]] = []
        steps: list[Step] = []
        count = len(inputs)
        for node in order:
            if node.index in slots:
                continue
            if node.index in lazy:
                slots[node.index] = slots[node.args[0].index]
                continue
            slots[node.index] = count
            if get(node.op).kind == "source":
                preset.append((count, np.asarray(_call(node)())))
            else:
                places = tuple(slots[arg.index] for arg in node.args)
                steps.append((_call(node), places, count, np.dtype(str(node.dtype))))
            count += 1
        self._inputs = len(inputs)
        self._count = count - len(inputs)
        self._preset = preset
        self._steps = tuple(steps)
        self._outputs = tuple(slots[node.index] for node in outputs)
        self._copied = tuple(_shares(node, inputs) for node in outputs)
        self._single = _single_step(self)

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """The arrays of the outputs for those of the inputs."""
        if self._single is not None:
            call, places, dtype = self._single
            with np.errstate(all="ignore"):
                return [np.asarray(call(*[arrays[place] for place in places]), dtype)]
        values: list[Any] = [*arrays, *[None] * self._count]
        for place, value in self._preset:
            values[place] = value
        with np.errstate(all="ignore"):
            for call, places, into, dtype in self._steps:
                values[into] = np.asarray(call(*[values[place] for place in places]), dtype)
        found = [values[place] for place in self._outputs]
        for place, copied in enumerate(self._copied):
            if copied:
                found[place] = np.array(found[place], order="C")
        return found


def _single_step(program: Program) -> tuple[Callable[..., Any], tuple[int, ...], Any] | None:
    """The one call of a program that is nothing else."""
    if len(program._steps) != 1 or program._preset or program._copied != (False,):
        return None
    call, places, into, dtype = program._steps[0]
    return (call, places, dtype) if program._outputs == (into,) else None


def number(size: DimLike) -> int:
    """A size that is a number, as one."""
    value = Dim.of(size).constant
    assert value is not None, "an eager graph has sizes that are numbers"
    return value


def sizes(shape: Sequence[DimLike]) -> tuple[int, ...]:
    """A shape of numbers."""
    return tuple(map(number, shape))


def _call(node: Node) -> Callable[..., Any]:
    """How one node is computed from the arrays of its arguments."""
    op = get(node.op)
    if op.ufunc is not None:
        return op.ufunc
    if node.op == "expand":
        return functools.partial(_filled, sizes(node.shape))
    if node.op == "einsum":
        return contraction(node)
    if node.op == "reshape":
        return operator.methodcaller("reshape", sizes(node.shape))
    return functools.partial(op.numpy, size=number, **node.attributes)


def _filled(shape: tuple[int, ...], array: Array) -> Array:
    """``array`` broadcast to ``shape``, in memory of its own."""
    result = np.empty(shape, array.dtype)
    result[...] = array
    return result


def _lazy_broadcasts(
    order: Sequence[Node], inputs: Sequence[Node], outputs: Sequence[Node]
) -> set[int]:
    """The ``expand`` nodes that may be left out, as NumPy broadcasts where they are used.

    Every use has to be a ufunc (or ``where``) that has its shape from its other arguments.
    """
    given = {node.index for node in inputs}
    kept = given | {node.index for node in outputs}
    lazy = {node.index for node in order if node.op == "expand" and node.index not in kept}
    users = [
        node for node in order
        if node.index not in given and any(arg.index in lazy for arg in node.args)
    ]  # fmt: skip
    changed = True
    while changed:
        found = {index for node in users for index in _needed(node, lazy)}
        changed = bool(found)
        lazy -= found
    return lazy


def _needed(node: Node, lazy: set[int]) -> list[int]:
    """The broadcasts among the arguments of ``node`` that it cannot do without."""
    expands = [arg.index for arg in node.args if arg.index in lazy]
    if not expands or (get(node.op).ufunc is None and node.op != "where"):
        return expands
    shown = [arg.args[0].shape if arg.index in lazy else arg.shape for arg in node.args]
    return expands[:1] if np.broadcast_shapes(*map(sizes, shown)) != sizes(node.shape) else []


def _shares(node: Node, inputs: Sequence[Node]) -> bool:
    """May the array of ``node`` show the memory of an input or of a constant?"""
    while node not in inputs:
        op = get(node.op)
        if op.kind == "source":
            return True
        if node.op == "expand" or (op.kind != "movement" and node.op != "cast"):
            return False
        node = node.args[0]
    return True


# -- contractions: one batched product of matrices


def contraction(node: Node) -> Callable[..., Any]:
    """How an ``einsum`` of two operands is computed: by ``matmul`` where its labels allow it."""
    left, right, result = parse(node.attributes["spec"])
    batch = [label for label in left if label in right and label in result]
    summed = [label for label in left if label in right and label not in result]
    rows = [label for label in left if label not in right]
    columns = [label for label in right if label not in left]
    if any(label not in result for label in (*rows, *columns)):
        return functools.partial(get("einsum").numpy, size=int, spec=node.attributes["spec"])
    return functools.partial(
        _multiplied,
        _Layout(left, (batch, rows, summed)),
        _Layout(right, (batch, summed, columns)),
        tuple((*batch, *rows, *columns).index(label) for label in result),
        len(batch), len(rows), len(columns),
    )  # fmt: skip


class _Layout:
    """An operand with its axes in three groups: the batch, then those of a matrix."""

    __slots__ = ("axes", "groups")

    def __init__(self, word: str, groups: Sequence[Sequence[str]]) -> None:
        order = tuple(word.index(label) for group in groups for label in group)
        self.axes = None if order == tuple(range(len(order))) else order
        self.groups = (len(groups[0]), len(groups[1]), len(groups[2]))

    def matrices(self, array: Array) -> tuple[Array, tuple[int, ...]]:
        """The array as a stack of matrices, and its sizes in the order of the groups."""
        moved = array if self.axes is None else array.transpose(self.axes)
        shape = moved.shape
        batch, first, second = self.groups
        if first == second == 1 and batch <= 1:
            return moved, shape
        split = batch + first
        sizes = *shape[:batch], math.prod(shape[batch:split]), math.prod(shape[split:])
        return moved.reshape(sizes), shape


def _multiplied(
    left: _Layout, right: _Layout, order: tuple[int, ...], batch: int, rows: int, columns: int,
    first: Array, second: Array,
) -> Array:  # fmt: skip
    one, left_shape = left.matrices(first)
    two, right_shape = right.matrices(second)
    found = np.matmul(one, two)
    outer = left_shape[batch : batch + rows]
    inner = right_shape[len(right_shape) - columns :] if columns else ()
    if rows != 1 or columns != 1:
        found = found.reshape((*left_shape[:batch], *outer, *inner))
    return (
        found if order == tuple(range(len(order))) else np.ascontiguousarray(found.transpose(order))
    )
