"""An elementwise update -> one kernel that writes its results where it read its arguments.

In: a Function of vectors whose outputs are new values of inputs.  Out: a compiled op.

The C that symgrad emits for such a Function says ``restrict``: outputs lie apart from inputs.  Here
they are the same memory, so the keyword is removed, and the text is checked: there must be one
loop, and each array that is written is read in one place, at the same index, before it is written
there.  Then no iteration reads what another one wrote.  The kernel's arguments are the inputs that
are kept, its outputs those that change; whether these overlap is checked at each call, as always.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from symgrad.abi import C_TYPES, Array, Case, Kernel, Op
from symgrad.codegen.calls import SizeNames, size_bindings
from symgrad.codegen.emit.file import PRELUDE, FileDoc, emit_file, prelude
from symgrad.codegen.emit.kernel import EmittedKernel, KernelDoc, emit_kernel
from symgrad.codegen.wrapper import render_wrapper, wrapper_view
from symgrad.errors import CodegenError
from symgrad.frontend.function import Function
from symgrad.frontend.trace import trace
from symgrad.ir.formula import formulas
from symgrad.ir.function import FunctionCase, FunctionGraphs
from symgrad.ir.rewrite import extract
from symgrad.kernels import op_name
from symgrad.passes.simplify import simplify
from symgrad.runtime.op import CompiledOp, make_op


def compile_in_place(
    update: type[Function], specs: Sequence[str], written: Sequence[str], static: Mapping[str, Any]
) -> CompiledOp:
    """``op(*inputs that stay, out=(those that change))``.

    ``specs``: one an input; ``written``: for each output, the input that it replaces.  Raises
    CodegenError where it cannot work in place, BuildError where no compiler works.
    """
    return make_op(*in_place_texts(update, specs, written, static))


def in_place_texts(
    update: type[Function], specs: Sequence[str], written: Sequence[str], static: Mapping[str, Any]
) -> tuple[str, dict[str, str]]:
    """The wrapper, and C and header by file name.  Raises CodegenError."""
    graphs = trace(update, *specs, static=static)
    name = op_name(graphs.name)
    if len(graphs.cases) > 1:
        raise CodegenError(f"{graphs.name} has several cases of sizes", location=graphs.location)
    emitted = _emitted(graphs.cases[0], graphs.input_names, name)
    check_in_place(emitted, written)
    inner = emitted.record
    outer = _outer(inner, f"{name}_in_place", written)
    lines = (f"{graphs.name}, in place, written by symgrad.",)
    file = emit_file([emitted], FileDoc(name, lines))
    texts = {
        f"{name}.c": file.source.replace("*restrict ", "*") + _entry(inner, outer, written),
        f"{name}.h": file.header.replace(
            "#include <stdint.h>\n", f"#include <stdint.h>\n\n{_prototypes(outer)}", 1
        ),
        PRELUDE: prelude(),
    }
    op = Op(
        name=name,
        differentiable=(False,) * len(outer.inputs),
        cases=(_case(graphs, outer),),
        files=(f"{name}.c",),
        header=f"{name}.h",
        includes=(PRELUDE,),
    )
    return render_wrapper(wrapper_view(op, summary=lines)), texts


def _case(graphs: FunctionGraphs, outer: Kernel) -> Case:
    nodes = dict(zip(graphs.input_names, graphs.cases[0].inputs, strict=True))
    shapes = [nodes[array.name].shape for array in outer.inputs]
    return Case(
        inputs=outer.inputs,
        outputs=outer.outputs,
        bindings=size_bindings(outer.name, shapes, outer.sizes, SizeNames()),
        residuals=(),
        inference=outer,
        forward=outer,
        backward=(),
    )


def _emitted(case: FunctionCase, names: Sequence[str], name: str) -> EmittedKernel:
    """The kernel of forward alone."""
    outputs = {
        f"new_{output}" if output in names else output: node
        for output, node in zip(case.output_names, case.outputs, strict=True)
    }
    graph = simplify(extract(outputs, case.inputs))
    return emit_kernel(graph, name, KernelDoc(name.replace("_", " "), formulas(graph)))


def check_in_place(emitted: EmittedKernel, written: Sequence[str]) -> None:
    """Is the text right if each output is the memory of an input?  Raises CodegenError."""
    record = emitted.record
    source = emit_file([emitted], FileDoc(record.name)).source
    body = source[source.index(f"int {record.name}(") :]
    body = body[body.index("{") :]
    if body.count("for (") != 2:  # blocks, and the elements of a block
        raise CodegenError(f"{record.name} does not have exactly one loop")
    loop = body[body.rindex("for (") :]
    for output, name in zip(record.outputs, written, strict=True):
        pattern = r"\b{}\[(\w+)\]"
        reads = list(re.finditer(pattern.format(name), loop))
        writes = list(re.finditer(pattern.format(output.name), loop))
        if len(reads) != 1 or len(writes) != 1 or f"{name}[" in body[: -len(loop)]:
            raise CodegenError(f"{record.name} does not read {name} once and write it once")
        done = loop.index(";", writes[0].start())  # a statement reads before it writes
        if reads[0].group(1) != writes[0].group(1) or reads[0].start() > done:
            raise CodegenError(f"{record.name} may read {name} after it has been written")
    if len(set(written)) != len(record.outputs):
        raise CodegenError(f"{record.name} writes an input twice")


def _outer(inner: Kernel, name: str, written: Sequence[str]) -> Kernel:
    """The kernel as it is called: what changes is an output alone."""
    arrays = {array.name: array for array in inner.inputs}
    outputs = tuple(replace(arrays[one], strides=()) for one in written)
    inputs = tuple(array for array in inner.inputs if array.name not in written)
    return replace(inner, name=name, inputs=inputs, outputs=outputs)


def _parameters(outer: Kernel) -> str:
    def pointer(array: Array, const: str) -> str:
        return f"{const}{C_TYPES[array.dtype]} *{array.name}"

    words = [f"int64_t {size}" for size in outer.sizes]
    words += [pointer(array, "const ") for array in outer.inputs]
    words += [pointer(array, "") for array in outer.outputs]
    return ", ".join([*words, "void *workspace"])


def _sizes(outer: Kernel) -> str:
    return ", ".join(f"int64_t {size}" for size in outer.sizes)


def _prototypes(outer: Kernel) -> str:
    return (
        f"int64_t {outer.name}_workspace({_sizes(outer)});\n"
        f"int {outer.name}({_parameters(outer)});\n"
    )


def _entry(inner: Kernel, outer: Kernel, written: Sequence[str]) -> str:
    """The C function that calls the kernel with the same memory twice."""
    arguments = [*inner.sizes, *(array.name for array in inner.inputs), *written, "workspace"]
    return (
        f"\nint64_t {outer.name}_workspace({_sizes(outer)})\n"
        f"{{\n    return {inner.name}_workspace({', '.join(outer.sizes)});\n}}\n"
        "\n/* In place: each output is the memory of the input that it replaces. */\n"
        f"int {outer.name}({_parameters(outer)})\n"
        f"{{\n    return {inner.name}({', '.join(arguments)});\n}}\n"
    )
