"""The cases that kernels for any number of batch axes are made of.

In: a Function that does the same for every number of batch axes but a few.  Out: the cases of one
trace, which say what axes of inputs and outputs stand for any number of axes.

The trace is that of the proof: one axis in place of the batch axes, or as few as the program does
not treat by themselves.  Where these are in an output shows in a trace with several of them, whose
sizes no other axes have.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from symgrad.errors import SpecError
from symgrad.frontend.request import Request
from symgrad.frontend.trace import batch_axes, trace_request
from symgrad.ir.dim import Atom, Dim, Size
from symgrad.ir.function import AnyRank, BatchAxes, FunctionCase
from symgrad.ir.graph import Node

Groups = Mapping[str, str]


def typical_rank(apart: Collection[int]) -> int:
    """The least number of batch axes, but 0, that the program does not treat by itself."""
    return next(rank for rank in range(1, len(apart) + 2) if rank not in apart)


def serving(request: Request, apart: Collection[int]) -> tuple[FunctionCase, ...]:
    """The cases for all numbers of batch axes but those ``apart``.

    Raises SpecError where their outputs cannot be told apart from their batch axes.
    """
    typical = typical_rank(apart)
    several = typical_rank({1, *apart})
    again = partial(trace_request, request)
    cases = again(batch_rank=None if typical == 1 else typical).cases
    wide = cases if several == typical else again(batch_rank=several).cases
    groups = request.batches
    inputs = tuple(
        BatchAxes(one.spec.batch, one.spec.position, typical) if one.spec.batch else None
        for one in request.tensors
        if one.spec is not None
    )
    if len(cases) != len(wide) or any(
        _shapes(case, groups, 1) != _shapes(other, groups, several)
        for case, other in zip(cases, wide, strict=True)
        if typical == 1
    ):
        raise SpecError(
            f"with {several} batch axes the outputs have other shapes than with one",
            hint='compile it for one number of axes: "n m", not "*batch m"',
        )
    return tuple(
        replace(
            case,
            any_rank=AnyRank(
                inputs, tuple(_found(one, groups, several, typical) for one in other.outputs),
                tuple(sorted(apart)),
            ),
        )
        for case, other in zip(cases, wide, strict=True)
    )  # fmt: skip


def _run(shape: Sequence[Dim], groups: Groups, rank: int) -> tuple[str, int] | None:
    """Which batch axes, so many of them, stand in a shape one after another, and where."""
    for group, name in groups.items():
        axes = batch_axes(name, rank)
        for start in range(len(shape) - rank + 1):
            if list(shape[start : start + rank]) == axes:
                return group, start
    return None


def _found(node: Node, groups: Groups, rank: int, written: int) -> BatchAxes | None:
    run = _run(node.shape, groups, rank)
    return None if run is None else BatchAxes(*run, written)


def _shapes(case: FunctionCase, groups: Groups, rank: int) -> list[Any]:
    """The shapes of outputs, with one axis for all batch axes; and the conditions."""
    whole: dict[Atom, Dim] = {
        Size(f"{name}_{axis}"): Dim.of(1) for name in groups.values() for axis in range(rank - 1)
    }
    if rank > 1:
        whole |= {Size(f"{name}_{rank - 1}"): Dim.size(name) for name in groups.values()}
    found: list[Any] = []
    for node in case.outputs:
        shape, run = node.shape, _run(node.shape, groups, rank) if rank > 1 else None
        if run is not None:
            shape = (*shape[: run[1]], *shape[run[1] + rank - 1 :])
        found.append([dim.substitute(whole) for dim in shape])
    for one in (*case.conditions, *case.requires):
        sides = [one.left.substitute(whole), one.right.substitute(whole)]
        found.append((one.relation, *sides))
    return found
