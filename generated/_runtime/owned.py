"""The C that gives a kernel copies of its indices.

In: a ``Kernel``.  Out: the C text of ``needed_<kernel>``, the bytes of workspace of a call, and
of ``symgrad_run_<kernel>``, which copies the arrays ``Kernel.indices`` behind the kernel's own
workspace and calls it.  The indices that it checks are the ones that it uses, whatever other
threads write to the arrays meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence

from .abi import C_TYPES, Array, Kernel
from .size_text import c_expression

OWNED = """
static int64_t symgrad_rounded(int64_t bytes) { return (bytes + 63)/64*64; }

/* The bytes of a workspace with a copy behind it, or -1 where 64 bits do not count them. */
static inline int64_t symgrad_more(int64_t needed, int64_t bytes)
{
    return needed < 0 || needed > INT64_MAX - bytes - 128
        ? -1 : symgrad_rounded(needed) + symgrad_rounded(bytes);
}

/* A packed copy; steps, in elements, are those of the axes.  Return where the next one begins. */
static inline char *symgrad_own(
    char *to, const void *from, int64_t rank, const int64_t *extents, const int64_t *steps,
    int64_t size)
{
    int64_t count = 1, packed[rank + 2], found[rank + 2], all[rank + 2];
    int same = 1;
    for (int64_t axis = rank; axis-- > 0; count *= extents[axis]) {
        all[axis + 2] = extents[axis];
        packed[axis + 2] = count*size;
        found[axis + 2] = steps[axis]*size;
        same &= extents[axis] == 1 || steps[axis] == count;
    }
    if (same)
        memcpy(to, from, (size_t)(count*size));
    else if (count) {
        for (int axis = 0; axis < 2; axis++) {
            all[axis] = 1;
            packed[axis] = found[axis] = count*size;
        }
        symgrad_copy(to, from, rank + 2, all, packed, found, size);
    }
    return to + symgrad_rounded(count*size);
}
"""

_RUN = """
static int symgrad_run_%(name)s(%(parameters)s, void *workspace)
{
    char *own = (char *)workspace + symgrad_rounded(%(name)s_workspace(%(sizes)s));
%(copies)s
    return %(name)s(%(arguments)s, workspace);
}
"""


def runs(kernel: Kernel) -> str:
    """The function that runs a kernel on indices that nobody writes to."""
    return f"symgrad_run_{kernel.name}" if kernel.indices else kernel.name


def needed_prototype(kernel: Kernel) -> str:
    """The declaration of what says how large the workspace of a call is."""
    sizes = [f"int64_t size{index}" for index in range(len(kernel.sizes))]
    return f"int64_t needed_{kernel.name}({', '.join(sizes) or 'void'})"


def needed(kernel: Kernel) -> str:
    """How large the workspace of a call is, as C."""
    sizes = ", ".join(f"size{index}" for index in range(len(kernel.sizes)))
    text = f"{kernel.name}_workspace({sizes})"
    for _, array in _owned(kernel):
        size = f"(int64_t)sizeof({C_TYPES[array.dtype]})"
        text = f"symgrad_more({text}, {'*'.join([*_dims(kernel, array), size])})"
    return f"\nstatic {needed_prototype(kernel)}\n{{\n    return {text};\n}}\n"


def owned_call(kernel: Kernel, parameters: Sequence[str]) -> str:
    """The function that copies indices; none where a kernel has none.

    ``parameters``: those of the kernel but for the workspace, each with its type.
    """
    if not kernel.indices:
        return ""
    words = [one.split()[-1].lstrip("*") for one in parameters]
    arguments, copies = dict(zip(words, words, strict=True)), []
    for index, array in _owned(kernel):
        kind, dims = C_TYPES[array.dtype], _dims(kernel, array)
        packed = ["*".join(dims[axis + 1 :]) or "1" for axis in range(len(dims))]
        steps = [
            f"array{index}_s{axis}" if axis in array.strides else step
            for axis, step in enumerate(packed)
        ]
        name = f"own{index}"
        copies += [
            f"    const {kind} *const {name} = (const {kind} *)own;",
            f"    const int64_t extents{index}[] = {{{', '.join(dims) or '1'}}};",
            f"    const int64_t steps{index}[] = {{{', '.join(steps) or '1'}}};",
            f"    own = symgrad_own(own, array{index}, {len(dims)}, extents{index},"
            f" steps{index}, sizeof({kind}));",
        ]
        arguments[f"array{index}"] = name
        arguments.update({f"array{index}_s{axis}": packed[axis] for axis in array.strides})
        copies += [f"    (void)array{index}_s{axis};" for axis in array.strides]
    return _RUN % {
        "name": kernel.name,
        "parameters": ", ".join(parameters),
        "sizes": ", ".join(words[: len(kernel.sizes)]),
        "copies": "\n".join(copies),
        "arguments": ", ".join(arguments.values()),
    }


def _owned(kernel: Kernel) -> list[tuple[int, Array]]:
    """The inputs that are copied, with their places."""
    return [(i, one) for i, one in enumerate(kernel.inputs) if one.name in kernel.indices]


def _dims(kernel: Kernel, array: Array) -> list[str]:
    return [f"({c_expression(dim, kernel.sizes)})" for dim in array.dims]
