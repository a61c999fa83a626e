"""Faults of the code generator, each with a kernel that it makes wrong.

``KERNELS``: programs by name.  ``FAULTS``: where a fault is planted, and of which kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import symgrad as sg
from symgrad import emission
from symgrad.codegen import calls, wrapper
from symgrad.codegen.emit import ctree, gemm, kernel, reductions, spelling
from symgrad.codegen.emit.accumulators import Scans, Sums
from symgrad.codegen.emit.context import Array, EmitContext
from symgrad.codegen.emit.groups import Groups, Tiles
from symgrad.codegen.emit.nests import Nests
from symgrad.codegen.emit.outer import OuterLoops
from symgrad.codegen.emit.scalars import ScalarWriter
from symgrad.codegen.program import (
    axes,
    collapse,
    definitions,
    guards,
    patterns,
    rewrite,
)
from symgrad.codegen.schedule import contraction, items, loops, rows, storage
from symgrad.codegen.wrapper import CaseMaker
from symgrad.frontend.trace import trace
from symgrad.ir.graph import Graph
from symgrad.kernels import OpPlan, plan
from tests.codegen import programs
from tests.validate.test_wrappers import planned


def _centred(x: Any) -> Any:
    """Values that are read three times in a row."""
    e = sg.exp(x)
    return (e - e.mean(1, keepdim=True)).square().sum(1)


def _twice(x: Any) -> Any:
    """Values that lie in the output that is written over them, and that are needed again."""
    e = sg.sin(x)
    total = e.sum(1, keepdim=True)
    return e / total, e - total


def _greatest(x: Any) -> Any:
    t = sg.exp(x)
    return sg.where(t == t.amax(1, keepdim=True), 1.0, 0.0)


def _greatest_and_more(x: Any) -> Any:
    t = sg.exp(x)
    return _greatest(x), ((t + 1) * (t + 1)).sum(1)


def _both_ways(x: Any, w: Any) -> Any:
    y = x @ w
    return y + y.flip(1)


def _counted(x: Any, i: Any, y: Any) -> Any:
    """Places outside are in no column."""
    return sg.where(i.unsqueeze(1) == sg.arange(y.shape[0]), x.unsqueeze(1), 0.0).sum(0)


def _chosen(x: Any, i: Any) -> Any:
    places = sg.where(i != -100, i, 0)
    return x.gather(1, places.unsqueeze(1)).squeeze(1) * 2


def _running_back(b: programs.Builder) -> Graph:
    x = b.input("x", programs.N, programs.M)
    return b.outputs(y=b.apply("cumsum", x, axis=1, reverse=True))


Program = tuple[Callable[..., Any], tuple[str, ...]]
_PROGRAMS: dict[str, Program] = {
    "elementwise": (lambda x, y: sg.exp(x * y), ("n m", "n m")),
    "transposed": (lambda x: x.T * 2, ("n m",)),
    "both ways": (lambda x: x + x.T, ("n n",)),
    "rows": (lambda x: x / x.sum(1, keepdim=True), ("n m",)),
    "sums of rows": (lambda x: x.sum(1), ("n m",)),
    "sums of tables": (lambda x: x.sum((1, 2)), ("n m k",)),
    "flat and in rows": (lambda x: (x / x.sum()).cumsum(1), ("n m",)),
    "softmax": (lambda x: sg.softmax(x, 1), ("n m",)),
    "centred": (_centred, ("n m",)),
    "twice": (_twice, ("n m",)),
    "compared": (_greatest, ("n m",)),
    "compared and more": (_greatest_and_more, ("n m",)),
    "compared with all": (lambda x: sg.where(sg.exp(x) == sg.exp(x).amax(), 1.0, 0.0), ("n m",)),
    "rows of pairs": (lambda x, y: (x * y).sum(2), ("n m k", "m k")),
    "total": (lambda x: x.sum(), ("n",)),
    "weighted": (lambda x, w: (x * w).sum(), ("n m", "m")),
    "columns": (lambda x, y: (x * y).sum(0), ("n 64", "n 64")),
    "short columns": (lambda x: x.sum(0), ("n 8",)),
    "greatest": (lambda x: x.amax(), ("n m",)),
    "product of all": (lambda x: x.prod(), ("n",)),
    "place": (lambda x: x.argmax(1), ("n m",)),
    "running": (lambda x: x.cumsum(1), ("n m",)),
    "running down": (lambda x: x.cumsum(0), ("n m",)),
    "picked": (lambda x, i: x[i] * 2, ("n m", "i64[k]")),
    "chosen": (_chosen, ("n m", "i64[n]")),
    "added at": (lambda x, i: sg.zeros(5).index_add(0, i, x.sum(1)), ("n m", "i64[n]")),
    "added to rows": (lambda w, x, i: w.index_add(0, i, x), ("v m", "n m", "i64[n]")),
    "counted": (_counted, ("n", "i64[n]", "m")),
    "joined": (lambda x, y: sg.cat([x, y], 1) * 2, ("n m", "n k")),
    "joined columns": (
        lambda x, y, z: sg.cat([x * x, y], 0).unsqueeze(1) * z, ("n", "k", "n+k m"),
    ),
    "product": (lambda x, w: x @ w, ("n k", "k m")),
    "product of turned": (lambda x, w: x @ w.T, ("n k", "m k")),
    "products of a batch": (lambda x, w: x @ w, ("b n k", "b k m")),
    "product of a part": (lambda x, w: x[:, 1:] @ w, ("b 5 64", "64 32")),
    "product of rows read backwards": (lambda x, w: x.flip(0) @ w, ("n 64", "64 32")),
    "product of what is copied": (lambda x, w: sg.exp(x) @ w, ("n 64", "64 32")),
    "sum of products": (lambda x, y: sg.exp(x).T @ y, ("n 64", "n 32")),
    "product of a product": (lambda x, w, v: sg.tanh(x @ w) @ v, ("n 64", "64 32", "32 16")),
    "product read both ways": (_both_ways, ("n 64", "64 32")),
    "less": (lambda x, y, z: x - (y - z), ("n", "n", "n")),
    "reciprocal": (lambda x, y: sg.reciprocal(x - y), ("n", "n")),
    "one of three": (lambda x: x[:, ::3] * 2, ("n m",)),
}  # fmt: skip
_GRAPHS: dict[str, Callable[[], Graph]] = {
    "each sample": programs.each_sample,
    "cross entropy": programs.cross_entropy,
    "running back": lambda: _running_back(programs.Builder()),
}


@cache
def graph_of(name: str) -> Graph:
    """The graph of a kernel that one of the programs has."""
    if name in _GRAPHS:
        return _GRAPHS[name]()
    forward, specs = _PROGRAMS[name]
    body = {"forward": staticmethod(lambda ctx, *args: forward(*args))}
    return plan(trace(type("Op", (sg.Function,), body), *specs)).cases[0].inference.graph


@dataclass(frozen=True)
class Fault:
    """In the source of ``place``, ``new`` stands where ``old`` should: ``kernel`` is wrong."""

    kernel: str
    place: Any
    old: str
    new: str
    more: tuple[tuple[Any, str, str], ...] = ()


FAULTS: dict[str, Fault] = {
    # -- the program
    "axes of one node are one": Fault(
        "both ways", axes._Classes.join, " or not small.isdisjoint(large)", ""),
    "axes are merged that are reduced apart": Fault(
        "rows", collapse._reduced_together, "if outer not in wrong", "if True"),
    "axes are merged that are not neighbours": Fault(
        "transposed", collapse._together, "[atoms[place] for place in places] != [outer, inner]",
        "False"),
    "a scan in the other direction": Fault(
        "running", patterns.match_scan, 'function == "ge"', 'function == "le"'),
    "an index of the other sign": Fault(
        "added at", rewrite.solve, "rest * -factor", "rest * factor"),
    "a condition is lost with a delta": Fault(
        "cross entropy", rewrite._without_condition,
        "[other for other in conjuncts(choice.operands[0]) if other is not condition]", "[]"),
    "indices are not checked": Fault(
        "picked", definitions._checks, "if not in_range(index, bound, least_size=0)", "if False"),
    "a read is moved out of its guard": Fault(
        "joined columns", guards._within,
        "return _follows(index, facts) and _follows(size - 1 - index, facts)", "return True"),
    # -- the schedule
    "read before the index is checked": Fault(
        "chosen", items.Items._needs_of, "self._checking.get(tensor, ())", "()"),
    "read before it is written in the same loop": Fault(
        "compared and more", items.batches, "if any(need.item in found",
        "if False and any(need.item in found"),
    "a product before its operand is written": Fault(
        "product of what is copied", loops._phases, "need.item.role != PRODUCT)", "False)"),
    "a product read backwards while it is overwritten": Fault(
        "product read both ways", storage._read_elsewhere, "return any(", "return False and any("),
    "a value in memory that is too small": Fault(
        "each sample", storage._shared_place, "same and set(place.axes) <= set(other.axes)",
        "same", ((Groups._share, "if not held.issuperset(", "if False and not held.issuperset("),)),
    "upwards in place of downwards": Fault(
        "running back", loops.arrange, "body, downwards,", "body, False,"),
    "a loop that builds on itself in parallel": Fault(
        "running down", loops.arrange, "sequential=alone >= 0", "sequential=False"),
    "sums into places in parallel": Fault(
        "added at", Nests._in_sequence, "return loop.axis in item.pattern(Scatter).axes",
        "return False"),
    "rows of sums flattened": Fault(
        "columns", rows._reduced_alike, "together.issubset(item.reduced)", "True"),
    "an array is read as it does not lie": Fault(
        "transposed", rows._lies_flat, "own == axes", "set(own) == set(axes)"),
    "a matrix that is read backwards": Fault(
        "product of rows read backwards", contraction._matrix,
        "across == 1 and down.at_least(columns[1])", "across == 1"),
    "a matrix of the other form": Fault(
        "product of turned", contraction._matrix, "across, True", "across, False"),
    "a matrix with a wrong leading dimension": Fault(
        "product", contraction._matrix, "down, False", "columns[1] + 1, False"),
    "rows that are not at equal distances": Fault(
        "product of a part", contraction._joins, "far != near * inner.extent", "False"),
    "products that overwrite each other": Fault(
        "sum of products", contraction.plan_gemm, "not {*around, first} & set(contraction.summed)",
        "True"),
    "all products of the first rows": Fault(
        "product", contraction.plan_gemm, "ranges.get(axis, (Dim.of(0),))[0]", "Dim.of(0)"),
    "a product of too many rows": Fault(
        "product", contraction._count, "stop - start", "stop"),
    # -- the loops
    "a block with a tail that is too long": Fault(
        "elementwise", OuterLoops._blocks,
        'least(extent, Binary("+", name(start), name("BLOCK")))',
        'Binary("+", name(start), name("BLOCK"))'),
    "a gap between blocks": Fault(
        "elementwise", OuterLoops._blocks, 'step="BLOCK"', 'step="BLOCK + 1"'),
    "blocks from 1": Fault("elementwise", OuterLoops._blocks, "number(0)", "number(1)"),
    "the first row is left out": Fault(
        "place", OuterLoops._by_itself, "self.context.dim(start)", "self.context.dim(start + 1)"),
    "an index of rows without its remainder": Fault(
        "rows of pairs", OuterLoops._indices, 'Binary("%", rest, extent)', "rest"),
    "an index of rows divided by another extent": Fault(
        "rows of pairs", OuterLoops._indices, 'Binary("/", rest, extent)', "rest"),
    # -- groups
    "the last rows are in no group": Fault(
        "columns", Groups.write, 'Binary("/", rounded, name(self.groups))',
        'Binary("/", extent, name(self.groups))'),
    "groups that overlap": Fault(
        "columns", Groups._one_group, "least(extent, end)", "extent"),
    "a group beyond the rows": Fault(
        "columns", Groups._one_group, "least(extent, end)", "end"),
    "groups all from the first row": Fault(
        "columns", Groups._one_group, 'Binary("*", name(self.group), name(self.size))',
        "number(0)"),
    "memory for one group": Fault(
        "columns", Groups._part, "count, self.count)", "count)"),
    "groups share their memory": Fault(
        "columns", Groups._own, 'Binary("*", name(self.group), count)', "name(self.group)"),
    "sums of a group are not zeroed": Fault(
        "columns", Groups._open_part, "self.nests.fill(own, indices, axes, reduction.total_start)",
        "pass"),
    "sums of some rows are not zeroed": Fault(
        "columns", Groups._summed,
        "self.nests.fill(array, indices, self._array_axes(item), reduction_of(item).start)",
        "pass"),
    "sums of some rows replace those before": Fault(
        "columns", Groups._summed, '"+="', '"="'),
    "some rows are summed beyond the group": Fault(
        "columns", Groups._rows, "least(name(stop), end)", "end"),
    "some rows are not summed": Fault(
        "columns", Groups._rows, 'step="SUM_ROWS"', 'step="2 * SUM_ROWS"'),
    "only empty rows are summed": Fault(
        "weighted", Groups._unless_empty, " != 0", " == 0"),
    "the part of the wrong group": Fault(
        "total", Groups._keep_part, "Element(slot, name(self.group))", "Element(slot, number(0))"),
    "parts of one element are joined": Fault(
        "columns", Groups._combine, "self.context.count(axes)", "self.context.count(())"),
    "groups of another number are joined": Fault(
        "total", Groups._combine, "({self.groups}, {count}", "({self.groups} - 1, {count}"),
    "rows of a block where one row has memory": Fault(
        "product of a product", Groups._buffer, 'f"{self.count} * {self.block_count}" if local',
        "self.count if local"),
    "blocks of groups overlap": Fault(
        "product of a product", Groups._buffer, 'Binary("*", name(self.block), count) if local',
        "count if local"),
    "a block beyond the group": Fault(
        "product of a product", Groups._blocks, "least(name(stop), end)", "end"),
    "rows of a block are not counted from its first": Fault(
        "product of a product", Groups._origin, "start if index.atom == axis else Dim.of(0)",
        "Dim.of(0)"),
    # -- tiles
    "a tile beyond the rows": Fault("softmax", Tiles._tile, "least(extent, end)", "end"),
    "a gap between tiles": Fault(
        "softmax", Tiles.write_tiles, "step=str(TILE)", "step=str(TILE + 1)"),
    "tiles that overlap": Fault(
        "short columns", Tiles._blocks, "step=str(TILE)", "step=str(TILE // 2)"),
    "a tile with memory for one element of a row": Fault(
        "centred", Tiles._local, "TILE * (SHORT_ROW if lane in place.axes else 1)", "TILE"),
    "rows of a tile are not counted from its first": Fault(
        "softmax", Tiles._local, "start if a == axis else Dim.of(0)", "Dim.of(0)"),
    "a tile that goes through all rows": Fault(
        "softmax", Nests.range_of, "self.ranges.get(axis, (Dim.of(0), axis.extent))",
        "(Dim.of(0), axis.extent)"),
    # -- nests
    "a clause is missing": Fault(
        "rows", Nests.simd, "if item in self.variables", "if False"),
    "lanes where there is an order": Fault(
        "running", Nests._in_sequence, "return item.finds_place or", "return item.finds_place and"),
    "a row of sums is not zeroed": Fault(
        "softmax", Nests.start, "self.fill(array, indices, item.inside, reduction_of(item).start)",
        "pass"),
    "sums into places start from nothing": Fault(
        "added to rows", Nests.start, "self._clear(item)", "pass"),
    "sums into places replace those before": Fault("added to rows", Nests._scatter, '"+="', '"="'),
    "a negative index is let through": Fault(
        "picked", Nests._check, "({index} < 0) | ", ""),
    "an index of the size is let through": Fault(
        "picked", Nests._check, "({index} >= {bound})", "({index} > {bound})"),
    "the first index is not checked": Fault(
        "picked", Nests._check, "For(variable, number(0), stop", "For(variable, number(1), stop"),
    "a wrong index changes nothing": Fault(
        "picked", Nests._check, 'f"return {STATUSES.index(OUT_OF_RANGE) + 1};"', '"{}"'),
    "the last of the best": Fault("place", Nests._take_place, '">" if', '">=" if'),
    "written over before it is read": Fault(
        "twice", Nests._batch, "self._load_before(self.storage.overwrites[item])", "pass"),
    "fill leaves out the first": Fault(
        "columns", Nests.fill, "self.context.dim(start)", "number(1)"),
    # -- addresses
    "strides of the next axis": Fault(
        "sums of tables", EmitContext.address, "array.shape[axis + 1 :]", "array.shape[axis:]"),
    "a product of sizes too few": Fault(
        "transposed", EmitContext.address, 'Binary("*", total, self.dim(size))', "total"),
    "strides that nobody passes": Fault(
        "flat and in rows", kernel._interface, "strided=tensor not in whole", "strided=True"),
    "swapped strides": Fault(
        "rows of pairs", kernel._view, "for stride in array.strides if",
        "for stride in reversed(array.strides) if"),
    "counted from another element": Fault(
        "product of a product", Array.place, "index - origin", "index"),
    "the row of another index": Fault(
        "running down", ScalarWriter._row, "self.context.address(kept, base)",
        "self.context.address(kept, base[:-1] if False else tuple(Dim.of(0) for _ in base))"),
    # -- the text
    "no parentheses in a template": Fault(
        "reciprocal", spelling._template, 'CHOICE if around == "()" else ATOM', "CHOICE"),
    "no parentheses": Fault("less", ctree._binary, "own + 1)", "own)"),
    "another sign in an index": Fault(
        "joined", spelling.dim_expression, '"+" if value > 0 else "-"', '"+"'),
    "a factor that is lost": Fault(
        "one of three", spelling.dim_expression, "abs(value) != 1", "False"),
    "a loop down that leaves out the first": Fault(
        "running back", ctree._head, "{variable} >= {start}", "{variable} > {start}"),
    "a maximum from 0": Fault(
        "greatest", reductions.Reduction.start, "literal(-math.inf if", "literal(0.0 if"),
    "a minimum for a maximum": Fault(
        "greatest", reductions.Reduction._better, '">" if', '"<" if'),
    "a sum in place of a product": Fault(
        "product of all", reductions.Reduction.take, 'f"{_OPERATORS[self.kind]}="', '"+="'),
    "a part that is joined twice": Fault("total", "kernel.c.j2", "int64_t g = 1", "int64_t g = 0"),
    "a part of another group": Fault(
        "columns", reductions.combine_view, "part[g * n + u]", "part[g + u]"),
    "totals are not rounded into place": Fault(
        "columns", reductions.combine_view, "reduction.rounded(whole)", 'Text("whole[u]")'),
    # -- sums and scans
    "a block of a sum beyond its rows": Fault(
        "total", Sums.in_blocks, 'least(stop, Binary("+", low, name("SUM_BLOCK")))',
        'Binary("+", low, name("SUM_BLOCK"))'),
    "a block of a sum is forgotten": Fault(
        "total", Sums.in_blocks, "self.add(item, name(variables.pop(item)))",
        "variables.pop(item)"),
    "a block of a sum from the last one's value": Fault(
        "total", Sums.add, '"+="', '"="'),
    "a scan that begins in the middle": Fault(
        "running down", Scans.take, 'Binary(">", index, number(0))',
        'Binary(">", index, number(1))'),
    "a scan that begins outside": Fault(
        "running down", Scans.take, 'Binary(">", index, number(0))',
        'Binary(">=", index, number(0))'),
    "a scan of the next element": Fault(
        "running down", Scans.take, "1 if pattern.reverse else -1", "-1 if pattern.reverse else 1"),
    # -- the BLAS
    "rows and columns of a product exchanged": Fault(
        "product", gemm._call, "(gemm.rows, gemm.columns, gemm.summed)",
        "(gemm.columns, gemm.rows, gemm.summed)"),
    "a product added to what was there": Fault(
        "product", gemm._call, "0.0 if gemm.fresh else 1.0", "1.0"),
    "a batch of products but for its last": Fault(
        "products of a batch", gemm.multiply,
        "statement = For(nests.context.variable(axis), start, stop,",
        "statement = For(nests.context.variable(axis), nests.context.dim(Dim.of(1)), stop,"),
    "a matrix that is too large": Fault(
        "product", gemm._note_limits, "context.limits[whole] = None", "pass"),
    "the factors of a product exchanged": Fault(
        "product", "prelude.h.j2", "(int)m, (int)n, (int)k", "(int)n, (int)m, (int)k"),
    # -- the workspace, and what a kernel is called with
    "a workspace of elements, not of bytes": Fault(
        "columns", kernel._slot, "slot.count * slot.dtype.itemsize", "slot.count"),
    "a workspace without the ends of its pieces": Fault(
        "compared with all", "kernel.c.j2", "+ ROUND_UP({{ slot.bytes }})", "+ {{ slot.bytes }}"),
    "pieces of the workspace that overlap": Fault(
        "compared with all", "prelude.h.j2", "(((bytes) + 63) / 64 * 64)", "((bytes) / 64 * 64)"),
    "a piece of the workspace that stays": Fault(
        "columns", "prelude.h.j2", "*space += ROUND_UP(bytes)", "*space = piece + 64"),
    "it leaves where it has something to do": Fault(
        "sums of rows", kernel._leave_where_empty, "common & inside", "inside"),
    "sizes in another order": Fault(
        "product", kernel._view, "[context.sizes[size] for size in sizes]",
        "[context.sizes[size] for size in reversed(sizes)]"),
    "a workspace that goes by another's size": Fault(
        "columns", "kernel.c.j2", "carve(&space, {{ slot.bytes }})", "carve(&space, 8)"),
    "rows longer than their tiles are let through": Fault(
        "centred", "prelude.h.j2", "#if SHORT_ROW > {{ prelude.short_row }}", "#if SHORT_ROW > 64"),
}  # fmt: skip


# -- wrappers


class Scaled(sg.Function):
    """Two outputs; a backward of ``w`` alone does not read the second cotangent."""

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        ctx.save_for_backward(x, w)
        return x * w, x.sum(1)

    @staticmethod
    def backward(ctx: Any, grad_y: Any, grad_total: Any) -> Any:
        x, w = ctx.saved_tensors
        return grad_y * w + grad_total.unsqueeze(1), (grad_y * x).sum(0)


class Cased(sg.Function):
    """Another formula for one row, and another for one column."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        factor = 2 if x.shape[0] == 1 else 3
        return sg.exp(x) * factor, x * x

    @staticmethod
    def backward(ctx: Any, grad_y: Any, grad_z: Any) -> Any:
        (x,) = ctx.saved_tensors
        factor = 2 if x.shape[0] == 1 else 3
        return sg.exp(x) * grad_y * factor + x * grad_z * 2


class Numbered(sg.Function):
    """With a number that calls pass."""

    @staticmethod
    def forward(ctx: Any, x: Any, alpha: float) -> Any:
        ctx.alpha = alpha
        ctx.save_for_backward(x)
        return sg.exp(x * alpha)

    @staticmethod
    def backward(ctx: Any, grad_y: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad_y * sg.exp(x * ctx.alpha) * ctx.alpha, None


class Floored(sg.Function):
    """For one element, with a gradient that is zero."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.one = x.shape[0] == 1
        return (sg.floor(x) if ctx.one else x) + y

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return None if ctx.one else grad, grad


class Shifted(sg.Function):
    """With a size that is read off an axis of one more."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x[1:] - x[:-1]

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return sg.cat([sg.zeros(1), grad]) - sg.cat([grad, sg.zeros(1)])


class Batched(sg.Function):
    """For any number of axes."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        return x + sg.softmax(y, -1).sum(-1, keepdim=True)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad, sg.zeros_like(grad)


_OPS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "scaled": (Scaled, ("n m", "m")),
    "cased": (Cased, ("n m",)),
    "numbered": (Numbered, ("n",)),
    "floored": (Floored, ("n", "n")),
    "shifted": (Shifted, ("n+1",)),
    "batched": (Batched, ("*batch m", "*batch m")),
}


@cache
def op_of(name: str) -> OpPlan:
    """The plan of an op whose wrapper a fault makes wrong."""
    function, specs = _OPS[name]
    return planned(function, *specs)


FAULTS_OF_WRAPPERS: dict[str, Fault] = {
    "the cotangents of a case": Fault(
        "cased", CaseMaker._backward, "self.cotangents[position]",
        'self.names.of(f"grad_{array.name}", f"cotangent{self.position}")'),
    "cotangents in another order": Fault(
        "scaled", CaseMaker._backward, "self.cotangents[position]",
        "self.cotangents[-1 - position]"),
    "residuals in another order": Fault(
        "scaled", CaseMaker._backward, "locals_[index]) for index in backward.residuals",
        "locals_[index]) for index in reversed(backward.residuals)"),
    "names of residuals in another order": Fault(
        "scaled", CaseMaker._backward, "_targets((*needed,", "_targets((*reversed(needed),"),
    "the result without its order": Fault(
        "scaled", CaseMaker._backward, "for p in range(len(case.inputs))",
        "for p in reversed(range(len(case.inputs)))"),
    "zeros for what is computed": Fault(
        "floored", CaseMaker._backward, "zeros=tuple(gradients[p] for p in backward.zeros)",
        "zeros=()"),
    "the mask of another backward": Fault(
        "scaled", CaseMaker._backward, "mask=repr(backward.mask)",
        "mask=repr(tuple(reversed(backward.mask)))"),
    "sizes of residuals in another order": Fault(
        "scaled", CaseMaker.forward, "(*kept, *axes)", "(*kept, *reversed([*axes]))"),
    "another input is kept": Fault(
        "scaled", CaseMaker._kept, "[residual.position]", "[0]"),
    "a stride of another axis": Fault(
        "scaled", CaseMaker._arguments, "dims[axis + 1 :]", "dims[: axis + 1]"),
    "sizes behind the arrays": Fault(
        "scaled", CaseMaker._arguments, "words += outputs",
        "words = [*words[1:], words[0], *outputs]"),
    "sizes in another order": Fault(
        "scaled", CaseMaker._arguments, "map(self.names.local, kernel.sizes)",
        "map(self.names.local, reversed(kernel.sizes))"),
    "outputs in another order": Fault(
        "scaled", CaseMaker._forward_call, "for array in kernel.outputs]",
        "for array in reversed(kernel.outputs)]"),
    "gradients in another order": Fault(
        "scaled", CaseMaker._backward_call, "for view in written.values()]",
        "for view in reversed(written.values())]"),
    "a shape that is not compared": Fault(
        "scaled", CaseMaker._differs, "if found != dim and axis not in inside", "if False"),
    "conditions of a case that are not asked": Fault(
        "cased", CaseMaker._differs, "for condition in self.case.conditions",
        "for condition in ()"),
    "batch axes that are not counted": Fault(
        "batched", CaseMaker._together, "_prod({self.names.local(group)})", "1"),
    "batch axes of two inputs that differ": Fault(
        "batched", CaseMaker._differs, "if self._axes(index) != local(f\"*{group}\")", "if False"),
    "a size without its offset": Fault(
        "shifted", CaseMaker._solved, "if binding.offset else extent", "if False else extent",
        ((CaseMaker._differs, "if found != dim and axis not in inside", "if False"),)),
    "a negative size": Fault("shifted", CaseMaker._differs, "if binding.offset > 0", "if False"),
    "a size off another axis": Fault(
        "scaled", calls.size_bindings, "axis=axis,", "axis=len(shape) - 1 - axis,"),
    "a factor for an offset": Fault(
        "shifted", calls._linear, "(name, factor, offset) if", "(name, factor, -offset) if"),
    "kernels of the other case": Fault(
        "cased", emission._case_record, "kernel_of(case.inference.name)",
        "kernel_of(op.cases[-1].inference.name)"),
    "zeros that are not told": Fault(
        "floored", emission._backward_records, "if wanted and position not in one.gradients",
        "if False"),
    "empty memory for zeros": Fault(
        "floored", "wrapper.py.j2", "{{ zero.name }} = _zeros(", "{{ zero.name }} = _empty("),
    "a residual of another dtype": Fault(
        "scaled", "wrapper.py.j2",
        "    if type({{ array.name }}) is not _Array or "
        "{{ array.name }}.dtype is not _{{ array.dtype }}:",
        "    if type({{ array.name }}) is not _Array:"),
    "a residual of another shape": Fault(
        "scaled", "wrapper.py.j2", "{{ array.name }}.shape != {{ array.shape }}", "False"),
    "an input of another dtype": Fault(
        "scaled", "wrapper.py.j2", " or {{ input.name }}.dtype is not _{{ input.dtype }}", ""),
    "a cotangent that is not looked at": Fault(
        "scaled", "wrapper.py.j2",
        "type({{ cotangent.name }}) is not _Array or {{ cotangent.name }}.dtype is not "
        "_{{ cotangent.dtype }}", "False"),
    "what a kernel returns is not looked at": Fault(
        "scaled", "wrapper.py.j2", "    if _call_{{ call.kernel }}({{ call.arguments }}):",
        "    if _call_{{ call.kernel }}({{ call.arguments }}) > 1:"),
    "a refused call is returned": Fault(
        "scaled", "wrapper.py.j2", "        if not _call_", "        if _call_"),
    "a number of another type": Fault(
        "numbered", "wrapper.py.j2",
        "        if type({{ number.local }}) is not {{ number.type }}:\n"
        "            raise _Unusual\n", ""),
    "a backward of all that serves others": Fault(
        "scaled", "wrapper.py.j2", "{% if backward.full %}", "{% if not backward.full %}"),
    "the backward of another case": Fault(
        "cased", "wrapper.py.j2", "({{ case.residuals_class }}, None): {{ backward.name }}",
        "(Residuals, None): {{ backward.name }}"),
    "another pointer": Fault(
        "scaled", wrapper.Names.of, "key = (kind, wanted)", "key = (kind, wanted[:5])"),
}  # fmt: skip
