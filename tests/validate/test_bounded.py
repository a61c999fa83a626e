"""Bounded execution: each thing that no kernel may do is found, and where."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from symgrad import abi
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import float32, int64
from symgrad.ir.graph import Graph, Node
from symgrad.ir.types import TensorType
from symgrad.validate.bounded import Equal, Wrong, check
from symgrad.validate.source import parse

N, M = Dim.size("n"), Dim.size("m")
HEAD = """\
#include <math.h>
#include <stdint.h>
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define BLOCK 1024
#ifndef SHORT_ROW
#define SHORT_ROW 32
#endif
#if SHORT_ROW > 32
#error "SHORT_ROW is at most 32"
#endif
#define ROUND_UP(bytes) (((bytes) + 63) / 64 * 64)

static void *carve(char **space, int64_t bytes)
{
    char *const piece = *space;
    *space += ROUND_UP(bytes);
    return piece;
}

static void twice(int64_t n, const float *restrict from, float *restrict to)
{
    for (int64_t u = 0; u < n; u++)
        to[u] = from[u] + from[u];
}
"""


def graph_of(meaning: str) -> Graph:
    """One of the computations that the kernels below are for."""
    graph = Graph()
    x = graph.input("x", TensorType(float32, (N, M)))
    made: Mapping[str, Node]
    if meaning == "double":
        made = {"y": x + x}
    elif meaning == "rows":
        made = {"y": graph.apply("sum", x, axes=(1,))}
    elif meaning == "all":
        made = {"y": graph.apply("sum", x, axes=(0, 1))}
    elif meaning == "exp":
        made = {"y": graph.apply("exp", x) * x}
    else:
        made = {"y": graph.apply("amax", x, axes=(1,))}
    for name, node in made.items():
        graph.output(name, node)
    return graph


def record(graph: Graph, *, strided: bool = True, statuses: tuple[str, ...] = ()) -> abi.Kernel:
    def array(name: str, node: Node, strides: tuple[int, ...] = ()) -> abi.Array:
        return abi.Array(name, str(node.dtype), tuple(map(str, node.shape)), strides=strides)

    strides = (0,) if strided else ()
    return abi.Kernel(
        "k", sizes=("n", "m"),
        inputs=tuple(array(name, node, strides) for name, node in graph.inputs.items()),
        outputs=tuple(array(name, node) for name, node in graph.outputs.items()),
        statuses=statuses,
    )  # fmt: skip


def text_of(body: str, workspace: str = "0", head: str = HEAD) -> str:
    """A kernel ``k`` with this body."""
    unused = "" if re.search(r"\b(n|m)\b", workspace) else "(void)n;\n    (void)m;\n    "
    return (
        f"{head}\nint64_t k_workspace(int64_t n, int64_t m)\n{{\n    {unused}return {workspace};\n"
        "}\n\nint k(int64_t n, int64_t m, const float *restrict x, int64_t x_s0, "
        f"float *restrict y, void *workspace)\n{{\n{body}\n    return 0;\n}}\n"
    )


def run(meaning: str, body: str, *, workspace: str = "0", head: str = HEAD) -> Equal | Wrong:
    """A kernel ``k`` with this body, judged."""
    graph = graph_of(meaning)
    return check(parse(text_of(body, workspace, head)), record(graph), graph, most_sizes=12)


DOUBLE = """\
    #pragma omp parallel for schedule(static) if(parallel: n*m > 4096)
    for (int64_t i = 0; i < n; i++) {
        const float *x_i = x + i*x_s0;
        #pragma omp simd
        for (int64_t j = 0; j < m; j++)
            y[i*m + j] = x_i[j] + x_i[j];
    }"""
ROWS = """\
    #pragma omp parallel for schedule(static) if(parallel: n*m > 4096)
    for (int64_t i = 0; i < n; i++) {
        double sum = 0.0;
        for (int64_t j0 = 0; j0 < m; j0 += BLOCK) {
            const int64_t j1 = MIN(m, j0 + BLOCK);
            float block = 0.0f;
            #pragma omp simd reduction(+:block)
            for (int64_t j = j0; j < j1; j++)
                block += x[i*x_s0 + j];
            sum += block;
        }
        y[i] = (float)sum;
    }"""
MAXIMUM = """\
    for (int64_t i = 0; i < n; i++) {
        float greatest = -INFINITY;
        int greatest_nan = 0;
        #pragma omp simd reduction(max:greatest) reduction(|:greatest_nan)
        for (int64_t j = 0; j < m; j++) {
            const float value = x[i*x_s0 + j];
            greatest = value > greatest ? value : greatest;
            greatest_nan |= value != value;
        }
        if (greatest_nan)
            greatest = NAN;
        y[i] = greatest;
    }"""
PIECES = """\
    char *space = workspace;
    float *restrict kept = carve(&space, 4*n*m);
    float *restrict more = carve(&space, 4*n*m);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++)
            kept[i*m + j] = x[i*x_s0 + j];
    twice(n*m, kept, more);
    for (int64_t u = 0; u < n*m; u++)
        y[u] = more[u];"""
TILES = """\
    for (int64_t i0 = 0; i0 < n; i0 += 64) {
        const int64_t i1 = MIN(n, i0 + 64);
        float total[64];
        for (int64_t i = i0; i < i1; i++)
            total[i - i0] = 0.0f;
        for (int64_t j = 0; j < m; j++) {
            #pragma omp simd
            for (int64_t i = i0; i < i1; i++)
                total[i - i0] += x[i*x_s0 + j];
        }
        for (int64_t i = i0; i < i1; i++)
            y[i] = total[i - i0];
    }"""
EXP = """\
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++)
            y[i*m + j] = x[i*x_s0 + j] * expf(x[i*x_s0 + j]);"""
SPACE = "0 + ROUND_UP(4*n*m) + ROUND_UP(4*n*m)"
RIGHT = {
    "double": ("double", DOUBLE, "0"),
    "rows": ("rows", ROWS, "0"),
    "maximum": ("max", MAXIMUM, "0"),
    "pieces": ("double", PIECES, SPACE),
    "tiles": ("rows", TILES, "0"),
    "exp": ("exp", EXP, "0"),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_kernels(name: str) -> None:
    meaning, body, workspace = RIGHT[name]
    found = run(meaning, body, workspace=workspace)
    assert isinstance(found, Equal), found
    assert found.calls > 20
    assert not found.undecided


WRONG = {
    "a bound": ("double", "j < m;", "j < m - 1;", "never written"),
    "a bound that is too large": ("double", "j < m;", "j <= m;", "of|is read|race|not"),
    "a stride": ("double", "i*x_s0", "i*m", "never written|not"),
    "an index": ("double", "y[i*m + j]", "y[i*n + j]", r"race|y\[\d+\]"),
    "an operand": ("double", "x_i[j] + x_i[j]", "x_i[j] + x_i[0]", "not"),
    "an operator": ("double", "x_i[j] + x_i[j]", "x_i[j] * x_i[j]", "not"),
    "a constant array": ("double", "y[i*m + j] =", "x[i*m + j] =", "const"),
    "a race": ("double", "y[i*m + j]", "y[j]", "race: y is written by two iterations.*parallel"),
    "a race in lanes": ("double", "y[i*m + j] = x_i[j]", "y[i*m] = x_i[j]", "race.*simd"),
    "a read of another iteration": (
        "double", "x_i[j] + x_i[j];", "(j > 0 ? y[i*m + j - 1] : x_i[j]) + x_i[j];",
        "race: y is read where",
    ),
    "no clause": ("rows", " reduction(+:block)", "", "race: block"),
    "another clause": ("rows", "reduction(+:block)", "reduction(*:block)", "not"),
    "a start": ("rows", "block = 0.0f", "block = 1.0f", "not"),
    "a total that is overwritten": ("rows", "sum += block", "sum = block", "not"),
    "a tail": ("rows", "MIN(m, j0 + BLOCK)", "j0 + BLOCK", "x"),
    "no initialisation": ("rows", "float block = 0.0f;", "float block;", "block|never written"),
    "no start of a variable": ("rows", "double sum = 0.0;", "double sum;", "sum is read"),
    "a loop without an end": ("rows", "j0 += BLOCK", "j0 += 0", "iterations"),
    "a macro": ("rows", "(a) < (b) ? (a)", "(a) > (b) ? (a)", ""),
    "a lane that is overwritten": ("rows", "block += x[i*", "block = x[i*", "not"),
    "a comparison": ("maximum", "value > greatest", "value < greatest", "not"),
    "a clause of the other kind": ("maximum", "reduction(max:", "reduction(min:", "not"),
    "too little workspace": (
        "pieces", "return 0 + ROUND_UP(4*n*m) + ROUND_UP(4*n*m)", "return ROUND_UP(4*n*m)",
        "workspace",
    ),
    "pieces that overlap": ("pieces", "*space += ROUND_UP(bytes)", "*space += 4", "restrict"),
    "a piece that is not aligned": ("pieces", "*space += ROUND_UP", "*space += 1 + ROUND_UP", "al"),
    "one piece twice": ("pieces", "twice(n*m, kept, more)", "twice(n*m, kept, kept)", "restrict"),
    "workspace that was not written": ("pieces", "kept[i*m + j] =", "y[i*m + j] =", "workspace"),
    "another type of workspace": (
        "pieces", "float *restrict more", "double *restrict more", "float\\* as|double\\* as|float",
    ),
    "a tile that is too small": ("tiles", "float total[64]", "float total[63]", "of 63 elements"),
    "a tile of another length": ("tiles", "i0 += 64", "i0 += 65", "never written"),
    "an element of the tile": ("tiles", "total[i - i0] = 0.0f", "total[0] = 0.0f", "never written"),
    "a function": ("exp", "expf", "sinhf", "not"),
    "a status": ("exp", "    return 0;\n}\n", "    return 1;\n}\n", "returns 1"),
    "a division by zero": ("exp", "y[i*m + j]", "y[i*m + j/(n - n)]", "divided by zero"),
    "an overflow": ("exp", "y[i*m + j]", "y[i*m + j + (INT64_MAX + j + 1)]", "overflows"),
    "a cast": ("exp", "y[i*m + j]", "y[i*m + (int)(j + 4294967296)]", "does not fit an int"),
    "an early return": (
        "exp", "    for (int64_t i = 0; i < n; i++)\n        for (int64_t j",
        "    if (n == 3)\n        return 0;\n"
        "    for (int64_t i = 0; i < n; i++)\n        for (int64_t j", "never written",
    ),
    "a parameter of another type": ("exp", "float *restrict y", "double *restrict y", "takes"),
    "a parameter that may overlap": ("exp", "float *restrict y", "float *y", "takes"),
    "swapped sizes": ("exp", "int k(int64_t n, int64_t m", "int k(int64_t m, int64_t n", "x|y"),
    "an outer variable in a parallel loop": (
        "double", "        const float *x_i = x + i*x_s0;",
        "        last = i;\n        const float *x_i = x + last*x_s0;", "race: last",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_kernels(name: str) -> None:
    kind, old, new, told = WRONG[name]
    meaning, body, workspace = RIGHT[kind]
    if "last" in new:
        body = "    int64_t last = 0;\n" + body
    graph = graph_of(meaning)
    text = text_of(body, workspace)
    begin = text.rindex(old) if name == "a status" else text.index(old)
    changed = text[:begin] + new + text[begin + len(old) :]
    found = check(parse(changed), record(graph), graph)
    assert isinstance(found, Wrong), found
    assert re.search(told, str(found)), found
    if found.line:
        assert found.source == changed.split("\n")[found.line - 1].strip()


def test_where_the_graph_has_much_to_do_many_iterations_are_not_wrong() -> None:
    def found(body: str, most: int) -> Equal | Wrong:
        graph = graph_of("rows")
        return check(parse(text_of(body)), record(graph), graph, most_sizes=4, most_iterations=most)

    every, few = found(ROWS, 5000), found(ROWS, 20)
    assert isinstance(every, Equal)
    assert isinstance(few, Equal)
    assert every.undecided == 0 < few.undecided
    endless = found(ROWS.replace("j0 += BLOCK", "j0 += 0"), 5000)
    assert isinstance(endless, Wrong)
    assert "more than 5000 iterations" in endless.reason


def test_blocks_end_inside_of_small_arrays() -> None:
    wrong = ROWS.replace("sum += block;", "sum += j0 == 0 ? block : 0.0f;")
    found = run("rows", wrong)
    assert isinstance(found, Wrong)
    assert found.constants["BLOCK"] < 1024


def test_guards_are_what_lets_a_macro_be_another_number() -> None:
    body = f"    if (m > SHORT_ROW)\n        return 0;\n{EXP}"
    free = run("exp", body)
    assert isinstance(free, Wrong)
    fixed = HEAD.replace("#ifndef SHORT_ROW\n", "").replace("32\n#endif\n", "1024\n", 1)
    fixed = fixed.replace('#if SHORT_ROW > 32\n#error "SHORT_ROW is at most 32"\n#endif\n', "")
    open_head = fixed.replace("#define SHORT_ROW 1024\n", "")
    assert isinstance(run("exp", EXP, head=open_head), Equal)


def index_graph() -> Graph:
    graph = Graph()
    x = graph.input("x", TensorType(float32, (N,)))
    at = graph.input("at", TensorType(int64, (M,)))
    graph.output("y", graph.apply("index", x, at))
    return graph


GATHER = """\
    int outside = 0;
    for (int64_t k = 0; k < m; k++)
        outside |= (at[k] < 0) | (at[k] >= n);
    if (outside)
        return 1;
    for (int64_t k = 0; k < m; k++)
        y[k] = x[at[k]];"""


def gather(body: str) -> Equal | Wrong:
    text = (
        f"{HEAD}\nint64_t k_workspace(int64_t n, int64_t m)\n{{\n    (void)n;\n    (void)m;\n"
        "    return 0;\n}\n\nint k(int64_t n, int64_t m, const float *restrict x, "
        "const int64_t *restrict at, float *restrict y, void *workspace)\n"
        f"{{\n{body}\n    return 0;\n}}\n"
    )
    graph = index_graph()
    return check(parse(text), record(graph, strided=False, statuses=("out",)), graph)


def test_indices_that_are_out_of_range_are_refused() -> None:
    found = gather(GATHER)
    assert isinstance(found, Equal)
    assert found.refused


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    if (outside)\n        return 1;\n", "    (void)outside;\n"),
        ("at[k] >= n", "at[k] > n"),
        ("return 1", "return 0"),
        ("x[at[k]]", "x[k]"),
    ],
)
def test_a_wrong_check_of_indices(old: str, new: str) -> None:
    assert isinstance(gather(GATHER.replace(old, new)), Wrong)


PRODUCT = """\
enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 };

void cblas_sgemm(int order, int a_form, int b_form, int m, int n, int k, float alpha,
    const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);

int64_t k_workspace(int64_t n, int64_t m)
{
    (void)n;
    (void)m;
    return 0;
}

int k(int64_t n, int64_t m, const float *restrict x, const float *restrict w,
    float *restrict y, void *workspace)
{
    (void)workspace;
    if (n > INT32_MAX || m > INT32_MAX)
        return 1;
    cblas_sgemm(ROW_MAJOR, PLAIN, TRANSPOSED, (int)n, (int)n, (int)m, 1.0f, x, (int)MAX(m, 1),
        w, (int)MAX(m, 1), 0.0f, y, (int)MAX(n, 1));
    return 0;
}
"""


def multiply(text: str) -> Equal | Wrong:
    graph = Graph()
    x = graph.input("x", TensorType(float32, (N, M)))
    w = graph.input("w", TensorType(float32, (N, M)))
    graph.output("y", graph.apply("einsum", x, w, spec="ij,kj->ik"))
    head = f"{HEAD}#define MAX(a, b) ((a) > (b) ? (a) : (b))\n"
    return check(parse(head + text), record(graph, strided=False), graph)


def test_a_product_of_matrices() -> None:
    found = multiply(PRODUCT)
    assert isinstance(found, Equal), found


def test_a_workspace_that_overflows_only_where_results_are_too_long_for_an_array() -> None:
    assert isinstance(multiply(PRODUCT.replace("return 0;", "return 16*n*n;", 1)), Equal)
    wrong = multiply(PRODUCT.replace("return 0;", "return 4294967296*m;", 1))
    assert isinstance(wrong, Wrong)
    assert "overflows" in wrong.reason


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("PLAIN, TRANSPOSED, (int)n", "TRANSPOSED, TRANSPOSED, (int)n", "lda|x|not"),
        ("(int)n, (int)n, (int)m", "(int)n, (int)m, (int)n", "y|x|w|ld"),
        ("0.0f, y", "1.0f, y", "never written"),
        ("1.0f, x", "2.0f, x", "not"),
        ("w, (int)MAX(m, 1)", "w, (int)m", "ldb is 0"),
        ("y, (int)MAX(n, 1)", "y, (int)MAX(n - 1, 1)", "ldc"),
        ("n > INT32_MAX || ", "", "does not fit an int"),
        ("const float *b, int ldb", "float *b, int ldb", "declared as another"),
    ],
)
def test_a_wrong_product(old: str, new: str, told: str) -> None:
    found = multiply(PRODUCT.replace(old, new))
    assert isinstance(found, Wrong), found
    assert re.search(told, str(found)), found
