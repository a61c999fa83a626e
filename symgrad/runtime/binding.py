"""The C between cffi and the kernels: it does the checks that are slow in Python.

In: an ``Op``.  Out: the declarations cffi reads and the C text behind them.

For each kernel there is one function ``call_<kernel>``, with the kernel's parameters and the size
of the workspace in bytes.  Before it calls the kernel it looks for a pointer that is not aligned
and for an output that overlaps another array, and asks for more workspace where there is too
little; each time it returns a negative status and has done nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from symgrad.abi import (
    C_TYPES,
    MISALIGNED,
    OVERLAP,
    WORKSPACE_OVERFLOW,
    WORKSPACE_TOO_SMALL,
    Array,
    Kernel,
    Op,
    with_names,
)

_PRELUDE = """\
#include <stdint.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#include "%(header)s"

/* The number of threads that kernels use; 0 leaves the choice to OpenMP. */
static int symgrad_threads = 0;

struct symgrad_span { uintptr_t start; int64_t itemsize, count; };

static int64_t symgrad_floor_div(int64_t a, int64_t b)
{
    return b == 0 ? 0 : a/b - ((a%%b != 0) && ((a < 0) != (b < 0)));
}

static int64_t symgrad_floor_mod(int64_t a, int64_t b) { return a - symgrad_floor_div(a, b)*b; }
static int64_t symgrad_min(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t symgrad_max(int64_t a, int64_t b) { return a > b ? a : b; }

/* 0, or the reason why a kernel cannot be called: the arrays are inputs, then outputs. */
static int symgrad_refuse(
    const struct symgrad_span *spans, int inputs, int arrays, int64_t needed, int64_t given)
{
    for (int i = 0; i < arrays; i++)
        if (spans[i].count > 0 && spans[i].start %% (uintptr_t)spans[i].itemsize)
            return %(misaligned)d;
    for (int i = inputs; i < arrays; i++)
        for (int j = 0; j < i; j++) {
            const uintptr_t i_bytes = (uintptr_t)(spans[i].count*spans[i].itemsize);
            const uintptr_t j_bytes = (uintptr_t)(spans[j].count*spans[j].itemsize);
            if (i_bytes && j_bytes && spans[i].start < spans[j].start + j_bytes
                && spans[j].start < spans[i].start + i_bytes) return %(overlap)d;
        }
    if (needed < 0) return %(overflow)d;
    return needed > given ? %(too_small)d : 0;
}

/* Set the number of threads for one call; return what it was, 0 where nothing was set. */
static int symgrad_enter(void)
{
#ifdef _OPENMP
    if (symgrad_threads > 0) {
        const int before = omp_get_max_threads();
        omp_set_num_threads(symgrad_threads);
        return before;
    }
#endif
    return 0;
}

static void symgrad_leave(int before)
{
#ifdef _OPENMP
    if (before > 0) omp_set_num_threads(before);
#endif
    (void)before;
}

static int symgrad_max_threads(void)
{
    if (symgrad_threads > 0) return symgrad_threads;
#ifdef _OPENMP
    return omp_get_max_threads();
#else
    return 1;
#endif
}
"""

_CALL = """
%(prototype)s
{
    const struct symgrad_span spans[] = {
%(spans)s
    };
    const int64_t needed = %(name)s_workspace(%(sizes)s);
    const int refused = symgrad_refuse(spans, %(inputs)d, %(arrays)d, needed, bytes);
    if (refused) return refused;
    const int before = symgrad_enter();
    const int status = %(name)s(%(arguments)s);
    symgrad_leave(before);
    return status;
}
"""


class _ToC(ast.NodeTransformer):
    """Python's ``//`` and ``%`` round down, C's do not: spell them as calls."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """Replace the two operators that differ."""
        self.generic_visit(node)
        names: dict[type[ast.operator], str] = {ast.FloorDiv: "floor_div", ast.Mod: "floor_mod"}
        name = names.get(type(node.op))
        if name is None:
            return node
        return ast.Call(ast.Name(f"symgrad_{name}", ast.Load()), [node.left, node.right], [])

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """``min`` and ``max`` of two."""
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in ("min", "max"):
            node.func = ast.Name(f"symgrad_{node.func.id}", ast.Load())
        return node


def c_expression(expression: str, sizes: Sequence[str]) -> str:
    """A size expression as C, the sizes called ``size0``, ``size1`` and so on.

    Names in C are positional: a user's size may be called ``double`` or ``β``.
    """
    names = {size: f"size{index}" for index, size in enumerate(sizes)}
    renamed = with_names(expression, names)
    if not any(mark in renamed for mark in ("//", "%", "min", "max")):
        return renamed
    return ast.unparse(_ToC().visit(ast.parse(renamed, mode="eval")))


def _parameters(kernel: Kernel) -> list[str]:
    """The kernel's parameters but for the workspace, with names by their position."""
    found = [f"int64_t size{index}" for index in range(len(kernel.sizes))]
    for index, array in enumerate(kernel.inputs):
        if array.by_value:
            found.append(f"{C_TYPES[array.dtype]} array{index}")
            continue
        found.append(f"const {C_TYPES[array.dtype]} *array{index}")
        found += [f"int64_t array{index}_s{axis}" for axis in array.strides]
    first = len(kernel.inputs)
    for index, array in enumerate(kernel.outputs, first):
        found.append(f"{C_TYPES[array.dtype]} *array{index}")
    return found


def _arguments(parameters: list[str]) -> str:
    return ", ".join(parameter.split()[-1].lstrip("*") for parameter in parameters)


def _prototype(kernel: Kernel) -> str:
    parameters = [*_parameters(kernel), "void *workspace", "int64_t bytes"]
    return f"int call_{kernel.name}({', '.join(parameters)})"


def _workspace_prototype(kernel: Kernel) -> str:
    sizes = _parameters(kernel)[: len(kernel.sizes)]
    return f"int64_t {kernel.name}_workspace({', '.join(sizes) or 'void'})"


def _count(kernel: Kernel, index: int, array: Array) -> str:
    """How many elements lie from the first to the last, as C."""
    dims = [f"({c_expression(dim, kernel.sizes)})" for dim in array.dims]
    product = "*".join(dims) or "1"
    if not array.strides:
        return product
    steps = []
    for axis, dim in enumerate(dims):
        trailing = "*".join(dims[axis + 1 :]) or "1"
        stride = f"array{index}_s{axis}" if axis in array.strides else trailing
        steps.append(f"({dim} - 1)*{stride}")
    return f"{product} == 0 ? 0 : 1 + {' + '.join(steps)}"


def _call(kernel: Kernel) -> str:
    arrays = (*kernel.inputs, *kernel.outputs)
    spans = [
        f"        {{(uintptr_t)array{index}, sizeof({C_TYPES[array.dtype]}),"
        f" {_count(kernel, index, array)}}},"
        for index, array in enumerate(arrays) if not array.by_value
    ]  # fmt: skip
    parameters = _parameters(kernel)
    return _CALL % {
        "prototype": f"static {_prototype(kernel)}",
        "spans": "\n".join(spans),
        "inputs": len(spans) - len(kernel.outputs),
        "arrays": len(spans),
        "name": kernel.name,
        "sizes": _arguments(parameters[: len(kernel.sizes)]),
        "arguments": _arguments([*parameters, "void *workspace"]),
    }


def declarations(op: Op) -> str:
    """What cffi reads: the kernels' calls and the few variables around them."""
    lines = ["extern int symgrad_threads;", "int symgrad_max_threads(void);"]
    for kernel in op.kernels:
        lines += [f"{_prototype(kernel)};", f"{_workspace_prototype(kernel)};"]
    return "\n".join(lines) + "\n"


def binding(op: Op) -> str:
    """The C text behind the declarations."""
    names = {"misaligned": MISALIGNED, "overlap": OVERLAP}
    names |= {"too_small": WORKSPACE_TOO_SMALL, "overflow": WORKSPACE_OVERFLOW}
    prelude = _PRELUDE % {"header": op.header, **names}
    return prelude + "".join(_call(kernel) for kernel in op.kernels)


def dispatch(op: Op, levels: tuple[str, ...]) -> str:
    """C that gives each kernel its plain name, choosing among builds for several x86-64 levels.

    ``levels`` are suffixes, the most demanding first; the last one runs everywhere.
    """
    tests = "".join(
        f'    if (__builtin_cpu_supports("x86-64-{level}")) return {rank};\n'
        for rank, level in enumerate(levels[:-1])
    )
    head = f"#include <stdint.h>\n\nstatic int level(void)\n{{\n{tests}    return -1;\n}}\n"
    return head + "".join(_dispatched(kernel, levels) for kernel in op.kernels)


def _dispatched(kernel: Kernel, levels: tuple[str, ...]) -> str:
    parameters = [*_parameters(kernel), "void *workspace"]
    listed, arguments = ", ".join(parameters), _arguments(parameters)
    text = "".join(f"int {kernel.name}_{level}({listed});\n" for level in levels)
    cases = "".join(
        f"    case {rank}: return {kernel.name}_{level}({arguments});\n"
        for rank, level in enumerate(levels[:-1])
    )
    cases += f"    default: return {kernel.name}_{levels[-1]}({arguments});\n"
    text += f"int {kernel.name}({listed})\n{{\n    switch (level()) {{\n{cases}    }}\n}}\n"
    sizes = _arguments(parameters[: len(kernel.sizes)])
    plain = _workspace_prototype(kernel)
    chosen = plain.replace(f"{kernel.name}_workspace", f"{kernel.name}_workspace_{levels[-1]}")
    text += f"{chosen};\n{plain} {{ return {kernel.name}_workspace_{levels[-1]}({sizes}); }}\n"
    return f"\n{text}"
