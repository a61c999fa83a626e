"""A graph to the text of one C function.

In: a graph with named outputs, a name, what to say on top.  Out: ``EmittedKernel``.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from symgrad import abi
from symgrad.abi import OUT_OF_RANGE, STATUSES, TOO_LARGE, Kernel
from symgrad.codegen.calls import SizeNames
from symgrad.codegen.emit.context import Array, EmitContext
from symgrad.codegen.emit.ctree import (
    SUM,
    If,
    Line,
    Statement,
    Text,
    expression_text,
    statements_text,
    within,
)
from symgrad.codegen.emit.nests import Nests
from symgrad.codegen.emit.outer import OuterLoops
from symgrad.codegen.emit.reductions import Reduction
from symgrad.codegen.names import Names, comment_text
from symgrad.codegen.program.definitions import Definition, KernelProgram, build_program
from symgrad.codegen.program.equations import stored_node
from symgrad.codegen.program.patterns import Scatter
from symgrad.codegen.schedule.across import across_lanes
from symgrad.codegen.schedule.interchange import interchange
from symgrad.codegen.schedule.items import PRODUCT
from symgrad.codegen.schedule.lanes import along_lanes
from symgrad.codegen.schedule.owned import own_rows
from symgrad.codegen.schedule.rows import Rows, plan_rows
from symgrad.codegen.schedule.scheduler import Schedule, bodies, schedule
from symgrad.codegen.schedule.storage import Storage, allocate
from symgrad.index.text import IndexText
from symgrad.ir.dim import Element, product
from symgrad.ir.dtype import BY_NAME
from symgrad.ir.expr import Access, Reduce, postorder
from symgrad.ir.formula import formulas
from symgrad.ir.function import BatchAxes
from symgrad.ir.graph import Graph, Node, ancestors

WIDTH = 96  # characters of a line of a comment
_CALL = re.compile(r"\w+\((?:[^()]|\([^()]*\))*\)")


@dataclass(frozen=True)
class KernelDoc:
    """What stands above a kernel: what it is, its formula line by line, what is known of it."""

    title: str = ""
    formula: tuple[str, ...] = ()
    known: tuple[str, ...] = ()


@dataclass(frozen=True)
class SlotView:
    """A piece of the workspace: ``bytes`` is an expression over the sizes."""

    name: str
    type: str
    bytes: str


@dataclass(frozen=True)
class KernelView:
    """One C function, as its template sees it: nothing but text.

    ``prototype`` is its own, ``workspace`` that of the function that tells its workspace;
    ``comment`` stands above it in the source, ``promise`` in the header.
    """

    name: str
    comment: tuple[str, ...]
    promise: tuple[str, ...]
    parameters: tuple[str, ...]
    prototype: str
    workspace: str
    unused: tuple[str, ...]
    unused_sizes: tuple[str, ...]
    slots: tuple[SlotView, ...]
    body: str


@dataclass(frozen=True)
class EmittedKernel:
    """One C function and what its file must bring along.

    ``vector_functions``: functions of ``math.h`` with SIMD versions in libmvec; ``helpers``: C
    sources by name; ``combines``: the reductions whose parts are joined.
    """

    record: Kernel
    view: KernelView
    needs_blas: bool
    vector_functions: tuple[str, ...]
    helpers: tuple[tuple[str, str], ...]
    combines: tuple[Reduction, ...]


def emit_kernel(
    graph: Graph, name: str, doc: KernelDoc | None = None, sizes: SizeNames | None = None,
    numbers: Mapping[str, str] | None = None, *, derived: bool = False,
) -> EmittedKernel:  # fmt: skip
    """The kernel that computes the outputs of ``graph`` from its inputs.

    ``sizes``: the sizes in the order in which it takes them; others come behind, as shapes mention
    them.  ``numbers``: the inputs that are passed by value, with their dtypes.  ``derived``: its
    products may be grouped otherwise.  Raises CodegenError for a graph that has no outputs, or an
    op that has no C.
    """
    scheduled = schedule(build_program(graph), derived=derived)
    program = scheduled.program
    entries = scheduled.entries
    shapes = {tensor: shape for tensor, (_, shape) in program.arrays.items()}
    rows = plan_rows(entries, shapes)
    interchanged = {loop: made for loop in rows if (made := interchange(scheduled, loop))}
    others = {
        loop: other for loop in rows
        if (other := own_rows(scheduled, loop) or along_lanes(scheduled, loop)
            or across_lanes(scheduled, loop))
    }  # fmt: skip
    for one in others.values():
        rows.update(plan_rows(one.entries, shapes))
    storage = allocate(entries)
    sizes = sizes or SizeNames(_sizes(graph))
    context = _interface(graph, program, rows.values(), storage, sizes)
    for number, dtype in (numbers or {}).items():
        context.arrays[number] = replace(context.arrays[number], by_value=BY_NAME[dtype])
    _name_loops(context, scheduled, storage)
    nests = Nests(context, program, storage)
    statements = OuterLoops(nests, rows, interchanged, others).write(entries)
    statuses = (OUT_OF_RANGE,) if program.checks else ()
    if context.limits:
        statuses = (*statuses, TOO_LARGE)
    first = _leave_where_too_large(context)
    empty = [] if program.checks else _leave_where_empty(graph, context, rows.values())
    body = statements_text([*first, *empty, *statements])
    needed = _needed_sizes(graph, context, body)
    promise = _promise(graph, program, context, statuses)
    view = _view(graph, name, needed, context, body, doc or KernelDoc(), promise)
    record = Kernel(
        name,
        sizes=tuple(map(sizes.of, needed)),
        inputs=tuple(
            _record(one, node, context.arrays[one], sizes) for one, node in graph.inputs.items()
        ),
        outputs=tuple(sizes.array(one, node) for one, node in graph.outputs.items()),
        statuses=statuses,
        indices=_indices(graph, program),
    )
    return EmittedKernel(
        record,
        view,
        needs_blas=bool(context.products),
        vector_functions=tuple(sorted(context.used.vector)),
        helpers=tuple(sorted(context.used.helpers.items())),
        combines=tuple(sorted(context.combines, key=lambda reduction: reduction.combine)),
    )


def _indices(graph: Graph, program: KernelProgram) -> tuple[str, ...]:
    """The inputs whose elements serve as indices."""
    read = [check.index for check in program.checks]
    for definition in program.definitions:
        if isinstance(definition.pattern, Scatter):
            read += (target for _, target in definition.pattern.targets)
        for expr in postorder(bodies(definition)):
            read += expr.indices if isinstance(expr, Access) else ()
    atoms = {atom for index in read for atom in index.atoms}
    tensors = {atom.tensor for atom in atoms if isinstance(atom, Element)}
    return tuple(name for name in graph.inputs if name in tensors)


def _record(name: str, node: Node, array: Array, sizes: SizeNames) -> abi.Array:
    if array.by_value is not None:
        return abi.Array(name, str(array.by_value), (), by_value=True)
    return sizes.array(name, node, array.strided)


def _interface(
    graph: Graph, program: KernelProgram, rows: Iterable[Rows], storage: Storage, sizes: SizeNames
) -> EmitContext:
    """The names of everything that is handed in."""
    names = Names()
    order = sorted(_sizes(graph), key=lambda size: [*sizes.order, size].index(size))
    context = EmitContext(names, {size: names.fresh(size) for size in order})
    products = [item for item in storage.paths if item.role == PRODUCT]
    factors = [factor for item in products for factor in item.operands]
    whole = {tensor for one in rows for tensor in one.flat}
    whole.update(factor.tensor for factor in factors if isinstance(factor, Access))
    for tensor, node in graph.inputs.items():
        _input(context, program, tensor, node, strided=tensor not in whole)
    writing = {output: one for one in program.definitions for output in one.outputs}
    for output in graph.outputs:
        one = writing[output]
        array = Array(names.fresh(output), one.dtype, one.shape, constant=False)
        context.arrays[f"={output}"] = array
        context.arrays.setdefault(one.tensor, array)
    made = {item.definition for item in products}
    for definition in program.definitions:
        if not definition.outputs and definition not in made:
            _store(context, definition, program.names.get(definition.body, "stored"))
    return context


def _input(
    context: EmitContext, program: KernelProgram, tensor: str, node: Node, *, strided: bool
) -> None:
    """An input; strides are taken of all axes but the last, where the loops can use them.

    Of axes that are one to the loops, and so of all inside them, the strides are fixed.
    """
    c_name = context.names.fresh(tensor)
    shape = program.arrays[tensor][1]
    long = [axis for axis, size in enumerate(shape) if size != 1]
    single = list(takewhile(lambda axis: shape[axis] == node.shape[axis], long[:-1]))
    strides = _stride_names(c_name, node.rank, single if strided else [], context.names)
    context.arrays[tensor] = Array(c_name, node.dtype, shape, strides)


def _store(context: EmitContext, definition: Definition, wanted: str) -> None:
    """Memory for an array that is no output."""
    count = product(list(definition.shape))
    dtype, shape = definition.dtype, definition.shape
    array = Array(context.workspace(wanted, dtype, count), dtype, shape, constant=False)
    context.arrays[definition.tensor] = array


def _name_loops(context: EmitContext, scheduled: Schedule, storage: Storage) -> None:
    """Letters for the loops, the outermost first."""
    used = {axis for item in storage.paths for axis in item.axes}
    used |= {axis for d in scheduled.program.definitions for axis in d.axes}
    for axis in scheduled.order:
        if axis in used:
            context.variable(axis)


def _leave_where_empty(
    graph: Graph, context: EmitContext, rows: Iterable[Rows]
) -> list[Statement]:  # fmt: skip
    """Leave the kernel where every output is empty, rather than go through rows of nothing."""
    common = set.intersection(*(set(node.shape) for node in graph.outputs.values()))
    inside = {axis.extent for one in rows if not one.flat for axis in one.inner}
    sizes = sorted(common & inside, key=lambda size: size.key)
    tests = [f"{within(context.dim(size), SUM)} == 0" for size in sizes if size.constant is None]
    return [If(Text(" || ".join(tests)), (Line("return 0;"),))] if tests else []


def _leave_where_too_large(context: EmitContext) -> list[Statement]:
    """Leave the kernel where a matrix is too large for the integers of the BLAS."""
    large = [
        f"{within(context.dim(dim), SUM)} > INT32_MAX"
        for dim in sorted(context.limits, key=lambda dim: dim.key)
    ]
    leave = Line(f"return {STATUSES.index(TOO_LARGE) + 1};")
    return [If(Text(" || ".join(large)), (leave,))] if large else []


def _stride_names(
    c_name: str, rank: int, strides: Sequence[int], names: Names
) -> tuple[str, ...]:  # fmt: skip
    """A name for the stride of each axis that has one; the last long axis is contiguous."""
    given = {axis: names.fresh(f"{c_name}_s{axis}") for axis in strides}
    return tuple(given.get(axis, "") for axis in range(rank)) if strides else ()


def _sizes(graph: Graph) -> tuple[str, ...]:
    """Every size symbol, in the order in which shapes mention them."""
    found: dict[str, None] = {}
    shapes = [node.shape for node in (*graph.inputs.values(), *graph.outputs.values())]
    nodes = ancestors(graph.outputs.values())
    shapes += [node.shape for node in nodes]
    shapes += [(node.attributes["dim"],) for node in nodes if node.op == "size"]
    for shape in shapes:
        for dim in shape:
            found.update(dict.fromkeys(dim.sizes))
    return tuple(found)


def _needed_sizes(graph: Graph, context: EmitContext, body: str) -> list[str]:
    """The sizes but those that no array has and that nothing is computed from."""
    nodes = (*graph.inputs.values(), *graph.outputs.values())
    needed = {size for node in nodes for dim in node.shape for size in dim.sizes}
    slots = " ".join(_slot(context, place).bytes for place in range(len(context.slots)))
    words = set(re.findall(r"\w+", f"{body} {slots}"))
    known = ((size, word) for size, word in context.sizes.items() if not size.startswith("@"))
    return [size for size, word in known if size in needed or word in words]


def _view(
    graph: Graph, name: str, sizes: Sequence[str], context: EmitContext, body: str, doc: KernelDoc,
    promise: tuple[str, ...],
) -> KernelView:  # fmt: skip
    size_names = [context.sizes[size] for size in sizes]
    parameters: list[tuple[str, str]] = [(f"int64_t {size}", size) for size in size_names]
    for tensor in graph.inputs:
        array = context.arrays[tensor]
        if array.by_value is not None:
            parameters.append((f"{array.by_value.c} {array.name}", array.name))
            continue
        parameters.append((f"const {array.dtype.c} *restrict {array.name}", array.name))
        parameters += [(f"int64_t {stride}", stride) for stride in array.strides if stride]
    for output in graph.outputs:
        array = context.arrays[f"={output}"]
        parameters.append((f"{array.dtype.c} *restrict {array.name}", array.name))
    slots = tuple(_slot(context, position) for position in range(len(context.slots)))
    words = set(re.findall(r"\w+", body + " ".join(slot.bytes for slot in slots)))
    slot_words = set(re.findall(r"\w+", " ".join(slot.bytes for slot in slots)))
    unused = [word for _, word in parameters if word not in words]
    texts = [text for text, _ in parameters]
    sizes_text = ", ".join(texts[: len(size_names)])
    return KernelView(
        name=name,
        comment=_comment(doc, promise),
        promise=comment_lines(promise),
        parameters=(*texts, "void *workspace"),
        prototype=f"int {name}({', '.join((*texts, 'void *workspace')).replace('restrict ', '')})",
        workspace=f"int64_t {name}_workspace({sizes_text or 'void'})",
        unused=(*unused, *(() if slots else ("workspace",))),
        unused_sizes=tuple(size for size in size_names if size not in slot_words),
        slots=slots,
        body=body.rstrip("\n"),
    )


def _slot(context: EmitContext, position: int) -> SlotView:
    slot = context.slots[position]
    count = expression_text(context.dim(slot.count * slot.dtype.itemsize))
    tight = count if count.isdigit() else f"({count})"
    text = f"{slot.groups} * {tight}" if slot.groups else count
    return SlotView(slot.name, slot.dtype.c, text)


def _comment(doc: KernelDoc, promise: tuple[str, ...]) -> tuple[str, ...]:
    """What stands above the function."""
    lines = [doc.title] if doc.title else []
    lines += [f"    {line}" for line in doc.formula]
    lines += promise
    lines += doc.known
    return comment_lines(lines)


def _promise(
    graph: Graph, program: KernelProgram, context: EmitContext, statuses: Sequence[str]
) -> tuple[str, ...]:
    """What goes in, what comes out, and what the kernel returns beside 0."""
    lines = []
    for title, nodes in (("in:  ", graph.inputs), ("out: ", graph.outputs)):
        arrays = ", ".join(
            described(name, node) if by_value is None else f"{name} {by_value.short}"
            for name, node in nodes.items()
            for by_value in (context.arrays[name].by_value if title == "in:  " else None,)
        )
        lines.append(f"{title} {arrays or 'nothing'}")
    for reason in statuses:
        ranges = " and ".join(_ranges(graph, program, context)) if reason == OUT_OF_RANGE else ""
        unless = ranges and f", unless {ranges}"
        lines.append(f"returns {STATUSES.index(reason) + 1}: {reason}{unless}")
    return tuple(lines)


def _ranges(graph: Graph, program: KernelProgram, context: EmitContext) -> Iterator[str]:
    """What must hold of indices, in terms of the inputs."""
    names = {tensor: context.arrays[tensor].name for tensor in graph.inputs}
    inside = {}
    for one in program.definitions:
        call = _called(graph, one)
        if call:
            names[one.tensor] = call
        else:
            inside[one.tensor] = (one.indices, one.body)
    written = IndexText((), names, inside)
    for check in program.checks:
        yield f"0 <= {written.dim(check.index)} < {check.bound}"


def _called(graph: Graph, definition: Definition) -> str:
    """A tensor that is made of sums in one line of NumPy; "" for none."""
    node, name = stored_node(graph, definition.tensor), definition.tensor
    if node is None or not any(isinstance(one, Reduce) for one in postorder([definition.body])):
        return ""
    line, *more = formulas(graph, {name: node})
    text = line.removeprefix(f"{name} = ")
    return "" if more else text if _CALL.fullmatch(text) else f"({text})"


def comment_lines(lines: Sequence[str]) -> tuple[str, ...]:
    """Lines of a comment: none too long, none that ends the comment or goes on in the next."""
    found: list[str] = []
    for line in lines:
        safe = comment_text(line)
        indent = safe[: len(safe) - len(safe.lstrip())] + "    "
        wrapped = textwrap.wrap(
            safe, WIDTH, subsequent_indent=indent, break_on_hyphens=False, drop_whitespace=True
        )  # fmt: skip
        found += [part.rstrip("\\") for part in wrapped] or [""]
    return tuple(found)


def described(name: str, node: Node, batch: BatchAxes | None = None) -> str:
    """``x f32[*batch 2*m]``: its name, dtype and shape."""
    words = [str(dim).replace(" ", "") for dim in node.shape]
    if batch is not None:
        words[batch.axis : batch.axis + batch.number] = [f"*{batch.name}"]
    return f"{name} {node.dtype.short}[{' '.join(words)}]"
