"""The C loop over a batch: a kernel for each element of the leading axes, in one call.

In: a ``Kernel``.  Out: the C text of ``batch_<kernel>``, and its declaration for cffi.

The parameters of a kernel go by arrays: ``integers`` (sizes, plain integers and strides, in the
order of the kernel's parameters), ``reals`` (plain floats) and ``arrays`` (inputs, then outputs).
``extents`` and ``steps`` say how long each leading axis is, and how many bytes lie from element to
element along it in each array.  An output whose step is 0 along some axis is one for all elements
there: the gradient of an input that was broadcast.  Its parts are added in double, those of each
of ``groups`` parts of the batch apart, so that the sum does not depend on the threads.
``summed`` has three numbers for each output: the elements that the kernel writes, those of the
whole output, and the bytes of one, which are 0 where nothing is added.
"""

from __future__ import annotations

from symgrad.abi import C_TYPES, WORKSPACE_OVERFLOW, WORKSPACE_TOO_SMALL, Kernel
from symgrad.runtime.owned import runs

PARAMETERS = (
    "const int64_t *integers, const double *reals, char *const *arrays, int64_t rank,"
    " const int64_t *extents, const int64_t *steps, const int64_t *summed, int64_t groups,"
    " int64_t threads, char *workspace, int64_t bytes"
)

BATCH = f"""
typedef int (*symgrad_kernel)(
    const int64_t *integers, const double *reals, char *const *arrays, void *workspace);

/* One call over leading axes.  needed: the bytes of workspace of one element; own: all bytes that a
   thread has, its parts of sums included; sums: the doubles of a group. */
struct symgrad_batch {{
    symgrad_kernel kernel;
    const int64_t *integers; const double *reals; char *const *arrays;
    int64_t inputs, outputs, rank;
    const int64_t *extents, *steps, *summed;
    int64_t needed, own, sums;
}};

/* Call the kernel for one element; add what is summed. */
static int symgrad_element(
    const struct symgrad_batch *batch, int64_t place, char *own, double *sums)
{{
    const int64_t count = batch->inputs + batch->outputs, *summed = batch->summed;
    char *at[count], *to[count], *scratch = own + batch->needed;
    for (int64_t a = 0; a < count; a++) at[a] = batch->arrays[a];
    for (int64_t axis = batch->rank; axis-- > 0; place /= batch->extents[axis])
        for (int64_t a = 0; a < count; a++)
            at[a] += place%batch->extents[axis]*batch->steps[a*batch->rank + axis];
    for (int64_t a = 0; a < count; a++) {{
        to[a] = at[a];
        if (a < batch->inputs || !summed[3*(a - batch->inputs) + 2]) continue;
        to[a] = scratch;
        scratch += symgrad_rounded(
            summed[3*(a - batch->inputs)]*summed[3*(a - batch->inputs) + 2]);
    }}
    const int status = batch->kernel(batch->integers, batch->reals, to, own);
    if (status) return status;
    for (int64_t o = 0; o < batch->outputs; o++, summed += 3) {{
        if (!summed[2]) continue;
        const char *part = to[batch->inputs + o];
        double *sum = sums + (at[batch->inputs + o] - batch->arrays[batch->inputs + o])/summed[2];
        if (summed[2] == sizeof(float))
            for (int64_t i = 0; i < summed[0]; i++) sum[i] += ((const float *)part)[i];
        else
            for (int64_t i = 0; i < summed[0]; i++) sum[i] += ((const double *)part)[i];
        sums += summed[1];
    }}
    return 0;
}}

/* The sums of all groups, always in the same order. */
static void symgrad_combine(const struct symgrad_batch *batch, int64_t groups, double *sums)
{{
    const int64_t *summed = batch->summed;
    for (int64_t o = 0; o < batch->outputs; o++, summed += 3) {{
        if (!summed[2]) continue;
        char *whole = batch->arrays[batch->inputs + o];
        for (int64_t g = 1; g < groups; g++)
            for (int64_t i = 0; i < summed[1]; i++) sums[i] += sums[g*batch->sums + i];
        if (summed[2] == sizeof(float))
            for (int64_t i = 0; i < summed[1]; i++) ((float *)whole)[i] = (float)sums[i];
        else
            for (int64_t i = 0; i < summed[1]; i++) ((double *)whole)[i] = sums[i];
        sums += summed[1];
    }}
}}

/* The kernel for all elements: 0, or a status of one of them, or why there was no call. */
static int symgrad_over_batch(
    struct symgrad_batch *batch, int64_t groups, int64_t threads, char *workspace, int64_t bytes)
{{
    int64_t count = 1;
    for (int64_t axis = 0; axis < batch->rank; axis++) count *= batch->extents[axis];
    if (batch->needed < 0) return {WORKSPACE_OVERFLOW};
    batch->needed = batch->own = symgrad_rounded(batch->needed);
    batch->sums = 0;
    for (int64_t o = 0; o < batch->outputs; o++)
        if (batch->summed[3*o + 2]) {{
            batch->own += symgrad_rounded(batch->summed[3*o]*batch->summed[3*o + 2]);
            batch->sums += batch->summed[3*o + 1];
        }}
    if (threads*batch->own + groups*batch->sums*(int64_t)sizeof(double) > bytes)
        return {WORKSPACE_TOO_SMALL};
    double *const sums = (double *)(workspace + threads*batch->own);
    int status = 0;
    #pragma omp parallel for schedule(static) reduction(max: status) \\
        num_threads((int)threads) if(threads > 1)
    for (int64_t g = 0; g < groups; g++) {{
#ifdef _OPENMP
        char *const own = workspace + omp_get_thread_num()*batch->own;
#else
        char *const own = workspace;
#endif
        const int64_t least = count/groups, more = count%groups;
        int64_t place = g*least + (g < more ? g : more);
        const int64_t stop = place + least + (g < more);
        for (int64_t i = 0; i < batch->sums; i++) sums[g*batch->sums + i] = 0;
        for (; place < stop; place++) {{
            const int found = symgrad_element(batch, place, own, sums + g*batch->sums);
            status = found > status ? found : status;
        }}
    }}
    if (!status) symgrad_combine(batch, groups, sums);
    return status;
}}
"""

_CALL = """
static int symgrad_one_%(name)s(
    const int64_t *integers, const double *reals, char *const *arrays, void *workspace)
{
    (void)integers; (void)reals;
    return %(run)s(%(arguments)s);
}

%(prototype)s
{
    struct symgrad_batch batch = {
        symgrad_one_%(name)s, integers, reals, arrays, %(inputs)d, %(outputs)d, rank, extents,
        steps, summed, needed_%(name)s(%(sizes)s), 0, 0};
    const int before = symgrad_enter();
    const int status = symgrad_over_batch(&batch, groups, threads, workspace, bytes);
    symgrad_leave(before);
    return status;
}
"""


def batch_prototype(kernel: Kernel) -> str:
    """The declaration of what calls a kernel for a whole batch."""
    return f"int batch_{kernel.name}({PARAMETERS})"


def batch_call(kernel: Kernel) -> str:
    """What calls a kernel for a whole batch, as C."""
    sizes = [f"integers[{index}]" for index in range(len(kernel.sizes))]
    arguments, integers, reals, arrays = list(sizes), len(sizes), 0, 0
    for array in kernel.inputs:
        if array.by_value and array.dtype != "int64":
            arguments.append(f"reals[{reals}]")
            reals += 1
            continue
        if array.by_value:
            arguments.append(f"integers[{integers}]")
            integers += 1
            continue
        arguments.append(f"(const {C_TYPES[array.dtype]} *)arrays[{arrays}]")
        arrays += 1
        arguments += [f"integers[{integers + place}]" for place in range(len(array.strides))]
        integers += len(array.strides)
    for place, array in enumerate(kernel.outputs, arrays):
        arguments.append(f"({C_TYPES[array.dtype]} *)arrays[{place}]")
    return _CALL % {
        "name": kernel.name,
        "run": runs(kernel),
        "arguments": ", ".join([*arguments, "workspace"]),
        "prototype": f"static {batch_prototype(kernel)}",
        "inputs": arrays,
        "outputs": len(kernel.outputs),
        "sizes": ", ".join(sizes),
    }
