"""The C between cffi and the kernels: it does the checks that are slow in Python.

In: an ``Op``.  Out: the declarations cffi reads and the C text behind them.

For each kernel there is one function ``call_<kernel>``, with the kernel's parameters and the size
of the workspace in bytes.  Before it calls the kernel it looks for a pointer that is not aligned
and for an output that overlaps another array, and asks for more workspace where there is too
little (``needed_<kernel>`` says how much); each time it returns a negative status and has done
nothing.  ``batch_<kernel>`` calls the kernel for each element of leading axes.

``symgrad_xla_<kernel>`` is the same for XLA, which JAX runs on: it takes a call frame of XLA's
foreign function interface.  The layout of these is stated here, so that no header of XLA is needed.
"""

from __future__ import annotations

from symgrad.abi import (
    C_TYPES,
    MISALIGNED,
    OVERLAP,
    WORKSPACE_OVERFLOW,
    WORKSPACE_TOO_SMALL,
    Array,
    Kernel,
    Op,
)
from symgrad.runtime.batch_c import BATCH, batch_call, batch_prototype
from symgrad.runtime.copy_c import COPY, COPY_PROTOTYPE
from symgrad.runtime.entry import entry
from symgrad.runtime.owned import OWNED, needed, needed_prototype, owned_call, runs
from symgrad.runtime.size_text import c_expression
from symgrad.runtime.team_c import SHARED, TEAM

_PRELUDE = """\
#include <stddef.h>
#include <stdint.h>
#ifdef _OPENMP
#include <omp.h>
#else
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
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

_XLA = """
/* Call frames of XLA: version 0 of its foreign function interface, xla/ffi/api/c_api.h. */
struct symgrad_xla_extension {
    size_t struct_size; int type; struct symgrad_xla_extension *next;
};
struct symgrad_xla_version {
    size_t struct_size; struct symgrad_xla_extension *extension; int major_version, minor_version;
};
struct symgrad_xla_metadata {
    size_t struct_size; struct symgrad_xla_version version; uint32_t traits;
};
struct symgrad_xla_about {
    struct symgrad_xla_extension base; struct symgrad_xla_metadata *metadata;
};
struct symgrad_xla_error {
    size_t struct_size; struct symgrad_xla_extension *extension; const char *message; int code;
};
struct symgrad_xla_api {
    size_t struct_size; struct symgrad_xla_extension *extension;
    struct symgrad_xla_version version; const void *internal;
    void *(*error_create)(struct symgrad_xla_error *);
};
struct symgrad_xla_buffer {
    size_t struct_size; struct symgrad_xla_extension *extension;
    int dtype; void *data; int64_t rank; int64_t *dims;
};
struct symgrad_xla_array { int dtype; size_t size; void *data; };
struct symgrad_xla_list {
    size_t struct_size; struct symgrad_xla_extension *extension;
    int64_t size; int *types; void **items;
};
struct symgrad_xla_attributes {
    size_t struct_size; struct symgrad_xla_extension *extension;
    int64_t size; int *types; void **names; void **items;
};
struct symgrad_xla_frame {
    size_t struct_size; struct symgrad_xla_extension *extension;
    const struct symgrad_xla_api *api; void *context; int stage;
    struct symgrad_xla_list inputs, outputs; struct symgrad_xla_attributes attributes;
};

static void *symgrad_xla_fail(const struct symgrad_xla_frame *frame, const char *message)
{
    struct symgrad_xla_error error = {
        offsetof(struct symgrad_xla_error, code) + sizeof(int), 0, message, 3};
    return frame->api->error_create(&error);
}

/* The first bytes of a workspace that are aligned, and how many there are. */
static void *symgrad_xla_aligned(const struct symgrad_xla_buffer *buffer, int64_t *bytes)
{
    const uintptr_t start = (uintptr_t)buffer->data, first = (start + 63)/64*64;
    *bytes = buffer->dims[0] - (int64_t)(first - start);
    return (void *)first;
}

/* Does a buffer hold so many elements? */
static int symgrad_xla_holds(const struct symgrad_xla_buffer *buffer, int64_t count)
{
    int64_t found = 1;
    for (int64_t axis = 0; axis < buffer->rank; axis++) found *= buffer->dims[axis];
    return found == count;
}

/* Is it a call, with so many arrays and numbers?  If not, result says what to return. */
static int symgrad_xla_is_call(
    const struct symgrad_xla_frame *frame, int inputs, int outputs, int reals, int integers,
    void **result)
{
    *result = 0;
    if (frame->extension && frame->extension->type == 1) {
        struct symgrad_xla_metadata *metadata =
            ((struct symgrad_xla_about *)frame->extension)->metadata;
        metadata->version.major_version = 0;
        metadata->version.minor_version = 1;
        metadata->traits = 0;
        return 0;
    }
    if (frame->stage != 3) return 0;
    const struct symgrad_xla_attributes *found = &frame->attributes;
    const int fits = frame->inputs.size == inputs && frame->outputs.size == outputs
        && found->size == 2 && found->types[0] == 1 && found->types[1] == 1
        && ((struct symgrad_xla_array *)found->items[0])->size == (size_t)integers
        && ((struct symgrad_xla_array *)found->items[1])->size == (size_t)reals;
    if (!fits) *result = symgrad_xla_fail(frame, "the call is not that of this kernel");
    return fits;
}
"""

_XLA_CALL = """
void *symgrad_xla_%(name)s(void *call)
{
    const struct symgrad_xla_frame *frame = call;
    void *result;
    if (!symgrad_xla_is_call(frame, %(inputs)d, %(outputs)d, %(reals)d, %(integers)d, &result))
        return result;
    struct symgrad_xla_buffer **in = (struct symgrad_xla_buffer **)frame->inputs.items;
    struct symgrad_xla_buffer **out = (struct symgrad_xla_buffer **)frame->outputs.items;
    const int64_t *integers = ((struct symgrad_xla_array *)frame->attributes.items[0])->data;
    const double *reals = ((struct symgrad_xla_array *)frame->attributes.items[1])->data;
%(sizes)s
    if (!(%(holds)s))
        return symgrad_xla_fail(frame, "%(name)s: the sizes are not those of the arrays");
    int64_t bytes;
    void *workspace = symgrad_xla_aligned(out[%(workspace)d], &bytes);
    (void)in; (void)integers; (void)reals;
    switch (call_%(name)s(%(arguments)s, workspace, bytes)) {
    case 0: return 0;
%(statuses)s
    default: return symgrad_xla_fail(frame, "%(name)s: the kernel refused the call");
    }
}
"""

_CALL = """
%(prototype)s
{
    const struct symgrad_span spans[] = {
%(spans)s
    };
    const int64_t needed = needed_%(name)s(%(sizes)s);
    const int refused = symgrad_refuse(spans, %(inputs)d, %(arrays)d, needed, bytes);
    if (refused) return refused;
    const int before = symgrad_enter();
    const int status = %(run)s(%(arguments)s);
    symgrad_leave(before);
    return status;
}
"""


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
        "run": runs(kernel),
        "sizes": _arguments(parameters[: len(kernel.sizes)]),
        "arguments": _arguments([*parameters, "void *workspace"]),
    }


def declarations(op: Op) -> str:
    """What cffi reads: the kernels' calls and the few variables around them."""
    lines = ["extern int symgrad_threads;", "int symgrad_max_threads(void);"]
    lines += ["uintptr_t symgrad_get_team(void);", "void symgrad_set_team(uintptr_t team);"]
    lines.append(f"{COPY_PROTOTYPE};")
    for kernel in op.kernels:
        lines += [f"{_prototype(kernel)};", f"{needed_prototype(kernel)};"]
        lines.append(f"{batch_prototype(kernel)};")
        lines.append(f"void *{xla_name(kernel)}(void *call);")
    return "\n".join(lines) + "\n"


def binding(op: Op) -> str:
    """The C text behind the declarations."""
    names = {"misaligned": MISALIGNED, "overlap": OVERLAP}
    names |= {"too_small": WORKSPACE_TOO_SMALL, "overflow": WORKSPACE_OVERFLOW}
    prelude = _PRELUDE % {"header": op.header, **names}
    calls = [
        needed(kernel) + owned_call(kernel, _parameters(kernel)) + _call(kernel)
        + batch_call(kernel) + _xla_call(kernel)
        for kernel in op.kernels
    ]  # fmt: skip
    return prelude + TEAM + SHARED + COPY + OWNED + BATCH + _XLA + "".join(calls) + entry(op)


def xla_name(kernel: Kernel) -> str:
    """The function that XLA calls."""
    return f"symgrad_xla_{kernel.name}"


def _xla_call(kernel: Kernel) -> str:
    """What unpacks a call frame: arrays in the order of the kernel, then its workspace.

    ``integers`` begin with a number that means nothing, so that they are never none, then come the
    sizes and the plain integers; ``reals`` are the plain floats behind such a number.
    """
    sizes = [
        f"    const int64_t size{index} = integers[{index + 1}];"
        for index in range(len(kernel.sizes))
    ]
    arguments = [f"size{index}" for index in range(len(kernel.sizes))]
    holds, count = [], {"real": 1, "integer": 1 + len(kernel.sizes), "array": 0}
    for array in kernel.inputs:
        if array.by_value:
            kind = "integer" if array.dtype == "int64" else "real"
            arguments.append(f"{kind}s[{count[kind]}]")
            count[kind] += 1
            continue
        dims = [f"({c_expression(dim, kernel.sizes)})" for dim in array.dims]
        arguments.append(f"in[{count['array']}]->data")
        arguments += ["*".join(dims[axis + 1 :]) or "1" for axis in array.strides]
        holds.append(f"symgrad_xla_holds(in[{count['array']}], {'*'.join(dims) or '1'})")
        count["array"] += 1
    for index, array in enumerate(kernel.outputs):
        dims = [f"({c_expression(dim, kernel.sizes)})" for dim in array.dims]
        arguments.append(f"out[{index}]->data")
        holds.append(f"symgrad_xla_holds(out[{index}], {'*'.join(dims) or '1'})")
    statuses = [
        f"    case {status}: return symgrad_xla_fail(frame, {_c_text(f'{kernel.name}: {text}')});"
        for status, text in kernel.reasons.items()
    ]
    return _XLA_CALL % {
        "name": kernel.name,
        "inputs": count["array"],
        "outputs": len(kernel.outputs) + 1,
        "reals": count["real"],
        "integers": count["integer"],
        "sizes": "\n".join(sizes),
        "holds": " && ".join(holds),
        "workspace": len(kernel.outputs),
        "arguments": ", ".join(arguments),
        "statuses": "\n".join(statuses),
    }


def _c_text(text: str) -> str:
    """A string literal of C."""
    plain = (chr(b) if 32 <= b < 127 and b not in b'"\\?' else f"\\{b:03o}" for b in text.encode())
    return f'"{"".join(plain)}"'


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
