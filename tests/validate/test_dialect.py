"""C that compiles, that symgrad does not emit, and that means something else than it seems to."""

from __future__ import annotations

import contextlib
import random
import re
from pathlib import Path

import pytest

from symgrad.codegen.emit.file import included, prelude
from symgrad.validate import conversions, dialect
from symgrad.validate.source import Unsupported, parse

GENERATED = sorted((Path(__file__).parents[2] / "generated").glob("*.c"))

TEXT = """\
#include <math.h>
#include <stdint.h>
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define BLOCK 4096
#define ROUND_UP(bytes) (((bytes) + 63) / 64 * 64)

static void *carve(char **space, int64_t bytes)
{
    char *const piece = *space;
    *space += ROUND_UP(bytes);
    return piece;
}

void cblas_dgemm(int order, int a_form, int b_form, int m, int n, int k, double alpha,
    const double *a, int lda, const double *b, int ldb, double beta, double *c, int ldc);

static void add_up(int64_t n, double *restrict part, float *restrict whole)
{
    for (int64_t u = 0; u < n; u++)
        whole[u] = (float)part[u];
}

static int64_t row_groups(int64_t rows, int64_t least, int64_t most)
{
    return rows < 2 * least ? 1 : MIN(rows / least, most);
}

int64_t k_forward_workspace(int64_t n, int64_t m)
{
    return ROUND_UP(8*n) + ROUND_UP(8*m);
}

int k_forward(
    int64_t n,
    int64_t m,
    const double *restrict x,
    int64_t x_s0,
    const int64_t *restrict labels,
    const uint8_t *restrict mask,
    const int16_t *restrict short_,
    float *restrict y,
    double *restrict z,
    void *workspace)
{
    char *space = workspace;
    double *restrict part = carve(&space, 8*n);
    double *restrict other = carve(&space, 8*m);
    int outside = 0;
    for (int64_t i = 0; i < n; i++)
        outside |= (labels[i] < 0) | (labels[i] >= m);
    if (outside)
        return 1;
    double total = 0.0;
    const int64_t end = MIN(n, m);
    #pragma omp simd reduction(+:total)
    for (int64_t i = 0; i < end; i++)
        total += x[i*x_s0];
    #pragma omp parallel for schedule(static) if(parallel: n*m > 4096)
    for (int64_t i0 = 0; i0 < n; i0 += BLOCK) {
        const int64_t i1 = MIN(i0 + BLOCK, n);
        for (int64_t i = i0; i < i1; i++) {
            const int large = x[i*x_s0] > 2.0f;
            part[i] = large ? x[i*x_s0] : total;
        }
    }
    add_up(n, part, y);
    for (int64_t j = m - 1; j >= 0; j--)
        other[j] = 2 * z[j] + (mask[j] ? 1.0 : (double)short_[j]);
    cblas_dgemm(101, 111, 111, (int)m, 1, 1, 1.0, part, 1, part, 1, 0.0, other, 1);
    return 0;
}
"""

EDITS = {
    # what a variable counts in, and how far
    "a counter of one byte": (
        "(int64_t i = 0; i < n; i++)\n        outside",
        "(uint8_t i = 0; i < n; i++)\n        outside",
    ),
    "a signed counter of one byte": ("(int64_t i = 0; i < end", "(int8_t i = 0; i < end"),
    "an unsigned counter": ("(int64_t u = 0", "(uint64_t u = 0"),
    "a counter of floats": ("(int64_t u = 0", "(double u = 0"),
    "a counter of int": ("(int64_t u = 0", "(int u = 0"),
    "an end that the body changes": (
        "        part[i] = large",
        "        n += 0;\n            part[i] = large",
    ),
    "an end of the inner loop that its body changes": (
        "const int64_t i1 = MIN(i0 + BLOCK, n);\n        for (int64_t i = i0; i < i1; i++) {",
        "int64_t i1 = MIN(i0 + BLOCK, n);\n        for (int64_t i = i0; i < i1; i++) {\n"
        "            i1 -= 1;",
    ),
    "a step that the body changes": (
        "for (int64_t i = 0; i < n; i++)\n        outside |=",
        "int64_t by = 1;\n    for (int64_t i = 0; i < n; i += by) {\n        by += 1;\n"
        "        outside |=",
        "(labels[i] >= m);",
        "(labels[i] >= m);\n    }",
    ),
    "an end that is read from memory": ("i < end; i++", "i < labels[0]; i++"),
    "a variable that the body changes": ("outside |= (labels", "i += (labels"),
    # integers
    "an unsigned number": ("(labels[i] < 0)", "(0u - 1 < labels[i])"),
    "a product of ints": ("(int64_t n, double *restrict part", "(int n, double *restrict part"),
    "an end that is narrowed": ("const int64_t end = MIN(n, m)", "const int end = MIN(n, m)"),
    "a sum of ints": ("8*n) +", "8*n + 2147483647 * 2) +"),
    "arithmetic of narrow integers": ("2 * z[j]", "short_[j] * short_[j] * short_[j]"),
    "int64 becomes double": ("2 * z[j]", "n * z[j]"),
    "double becomes an index": ("other[j] = 2", "other[z[j] > 0.0 ? 1.0 : 0.0] = 2"),
    "a truth of a float": ("large ? x", "x[i] ? x"),
    "a float of three states in an int": ("x[i*x_s0] > 2.0f", "2 * (x[i*x_s0] > 2.0f)"),
    "an int that counts": ("outside |= (labels[i] < 0)", "outside += (labels[i] < 0)"),
    "an inexact number": ("x[i*x_s0] > 2.0f", "x[i*x_s0] > 16777217 * n"),
    # what functions return, and take
    "a function that rounds what it returns": (
        "static int64_t row_groups(int64_t rows",
        "static int row_groups(int64_t rows",
    ),
    "a function that rounds to bytes": (
        "static int64_t row_groups(int64_t rows",
        "static uint8_t row_groups(int64_t rows",
    ),
    "a function that makes a double whole": (
        "return rows < 2 * least ? 1 : MIN(rows / least, most);",
        "return 0.5;",
    ),
    "float for double": (
        "total += x[i*x_s0]",
        "total += x[i*x_s0] * (float)z[0] * (float)x[0]",
        "double total",
        "float total",
    ),
    "a sum in float of doubles": ("double total = 0.0", "float total = 0.0f"),
    "a double that is stored as a float": ("(float)part[u]", "part[u]"),
    "carve with fewer bytes": ("char **space, int64_t bytes", "char **space, int bytes"),
    "carve that goes back": ("*space += ROUND_UP(bytes)", "*space -= ROUND_UP(bytes)"),
    "carve in a loop": (
        "const int64_t i1 = MIN",
        "double *restrict more = carve(&space, 8);\n        const int64_t i1 = MIN",
    ),
    "carve under a condition": (
        "    double *restrict other = carve(&space, 8*m);",
        "    if (n > 1) {\n        double *restrict more = carve(&space, 8);\n    }\n"
        "    double *restrict other = carve(&space, 8*m);",
    ),
    "a second pointer into the workspace": (
        "char *space = workspace;",
        "char *space = workspace;\n    char *again = workspace;\n    char *third = space;",
    ),
    "a step of the pointer into the workspace": (
        "char *space = workspace;",
        "char *space = workspace;\n    space += 64;",
    ),
    # where functions are left
    "a return in a loop": (
        "outside |= (labels[i] < 0) | (labels[i] >= m);",
        "if (labels[i] < 0)\n            return 1;",
    ),
    "a return in a helper": (
        "        whole[u] = (float)part[u];",
        "        if (part[u] > 0.0)\n            return;",
    ),
    "a return in the middle of a helper": (
        "    return rows < 2",
        "    if (rows < 1)\n        return 1;\n    return rows < 2",
    ),
    "no return": ("    return ROUND_UP(8*n) + ROUND_UP(8*m);", "    (void)n;"),
    "a return on some ways": (
        "    return ROUND_UP(8*n) + ROUND_UP(8*m);",
        "    if (n > m)\n        return 8*n;",
    ),
    # OpenMP
    "a clause over what is only read": ("reduction(+:total)", "reduction(+:outside)"),
    "a clause over what is read, too": (
        "        total += x[i*x_s0];",
        "        total += x[i*x_s0] * total;",
    ),
    "another operator": ("reduction(+:total)", "reduction(*:total)"),
    "a parallel clause over what is only read": (
        "schedule(static) if",
        "schedule(static) reduction(+:total) if",
    ),
    "a condition that reads memory": ("if(parallel: n*m > 4096)", "if(parallel: x[n] > 4096)"),
    "a condition that divides": ("if(parallel: n*m > 4096)", "if(parallel: 4096 / (n*m) > 1)"),
    # pointers
    "doubles as floats": ("add_up(n, part, y)", "add_up(n, part, (float *)z)"),
    "another type of elements": ("add_up(n, part, y)", "add_up(n, part, z)"),
    "a pointer that is cast": (
        "double *restrict part = carve",
        "float *restrict floats = (float *)workspace;\n    double *restrict part = carve",
    ),
    "two names of one array": (
        "float *restrict whole)",
        "double *restrict whole)",
        "add_up(n, part, y)",
        "add_up(n, part, part + n)",
    ),
    "two names by a pointer": (
        "float *restrict whole)",
        "double *restrict whole)",
        "add_up(n, part, y)",
        "double *own = part + n;\n    add_up(n, part, own)",
    ),
    "a restrict pointer beside its source": (
        "    add_up(n, part, y);",
        "    double *restrict own = part + n;\n    part[n] = 1.0;\n    add_up(n, own, y);",
    ),
    "a restrict pointer beside what its source comes from": (
        "    add_up(n, part, y);",
        "    double *first = part;\n    double *restrict own = first + n;\n"
        "    part[n] = 1.0;\n    add_up(n, own, y);",
    ),
    "a second cursor": (
        "    double *restrict other = carve(&space",
        "    char *again = workspace;\n    double *restrict other = carve(&again",
    ),
    "a cursor that goes back": (
        "    double *restrict other",
        "    space = workspace;\n    double *restrict other",
    ),
    "bytes in a helper": ("const double *restrict x,", "const char *restrict x,"),
    "bytes that are given to a helper": (
        "float *restrict whole)",
        "void *whole)",
        "    add_up(n, part, y);",
        "    add_up(n, part, workspace);",
        "whole[u] = (float)part[u];",
        "(void)whole;",
    ),
    "an address that is kept": (
        "double total = 0.0;",
        "double total = 0.0;\n    double *kept = &total;",
    ),
    "the address of an element that is kept": (
        "add_up(n, part, y);",
        "double *kept = &part[1];\n    add_up(n, part, y);",
    ),
    "an array that is too long for the stack": (
        "double total = 0.0;",
        "double total = 0.0;\n    double many[20000];",
    ),
    "arrays that are too long for the stack": (
        "double total = 0.0;",
        "double total = 0.0;\n    double a[9000];\n    double b[9000];",
    ),
    "const that is lost": ("add_up(n, part, y)", "double *own = x;\n    add_up(n, own, y)"),
    "pointers that are compared": ("large ? x[i*x_s0]", "part == other ? x[i*x_s0]"),
    # the BLAS
    "a product of floats": (
        "const double *a, int lda, const double *b, int ldb, double beta, double *c",
        "const float *a, int lda, const float *b, int ldb, float beta, float *c",
    ),
    "a product with a scale of float": ("int k, double alpha", "int k, float alpha"),
    "a product that is written where it is read": ("0.0, other, 1)", "0.0, part, 1)"),
    "a dimension that is narrowed": ("(int)m, 1, 1,", "m, 1, 1,"),
    "another external function": (
        "void cblas_dgemm(int",
        "void cblas_dsyrk(int",
        "    cblas_dgemm(",
        "    cblas_dsyrk(",
    ),
    # names
    "a macro of a function": (
        "#define BLOCK 4096",
        "#define BLOCK 4096\n#define tanh(x) (2 * (x))",
    ),
    "a macro of a word": ("#define BLOCK 4096", "#define BLOCK 4096\n#define return(a) return (a)"),
    "a macro of the standard": (
        "#include <stdint.h>\n",
        "#define INT8_MAX 3\n#include <stdint.h>\n",
    ),
    "a macro of math.h": (
        "#include <stdint.h>\n",
        "#define isless(a, b) ((a) > (b))\n#include <stdint.h>\n",
    ),
    "another MIN": ("((a) < (b) ? (a) : (b))", "((a) > (b) ? (a) : (b))"),
    "another ROUND_UP": ("+ 63) / 64 * 64)", "+ 31) / 64 * 64)"),
    "a function of the C library": (
        "static void add_up(",
        "static void memset(",
        "    add_up(n",
        "    memset(n",
    ),
    "a function that compilers call": (
        "static void add_up(",
        "static void sincos(",
        "    add_up(n",
        "    sincos(n",
    ),
    "a function in capital letters": (
        "static void add_up(",
        "static void GOMP_barrier(",
        "    add_up(n",
        "    GOMP_barrier(n",
    ),
    "a variable that is a macro of math.h": ("    int outside = 0", "    int M_PI = 0"),
    "a parameter that is a macro of math.h": ("restrict y,", "restrict math_errhandling,"),
    "a variable that is a macro of the compiler": ("    int outside = 0", "    int linux = 0"),
    "an enumerator": ("void cblas_dgemm(int", "enum { INT8_C = 3 };\n\nvoid cblas_dgemm(int"),
    "an octal guard": (
        "#define BLOCK 4096",
        '#ifndef BLOCK\n#define BLOCK 4096\n#endif\n#if BLOCK < 010\n#error "no"\n#endif',
    ),
    "a character that ends strings": ("    int outside = 0", "    int outside\0 = 0"),
    "a character that ends pages": ("    int outside = 0", "    int outside\f = 0"),
    "a letter that is not ASCII": ("    int outside = 0", "    int \u00e9 = 0"),
    "a quotient that is rounded otherwise": (
        "static int64_t row_groups(",
        "static int64_t floor_divide(int64_t x, int64_t y)\n{\n    return x / y;\n}\n\n"
        "static int64_t row_groups(",
    ),
    "a name that is reserved": (
        "static void add_up(",
        "static void __builtin_trap(",
        "    add_up(n",
        "    __builtin_trap(n",
    ),
}


def _check(text: str) -> None:
    unit = parse(text)
    dialect.check(unit)
    conversions.check(unit)


def test_the_text_itself_is_in_the_dialect() -> None:
    _check(TEXT)


@pytest.mark.parametrize("path", GENERATED, ids=lambda path: path.stem)
def test_what_is_generated_is_in_the_dialect(path: Path) -> None:
    _check(included(path.read_text(encoding="utf-8"), prelude()))


@pytest.mark.parametrize("edits", EDITS.values(), ids=EDITS.keys())
def test_what_is_not(edits: tuple[str, ...]) -> None:
    text = TEXT
    for old, new in zip(edits[::2], edits[1::2], strict=True):
        assert old in text
        text = text.replace(old, new, 1)
    with pytest.raises(Unsupported) as caught:
        _check(text)
    assert 0 < caught.value.line <= text.count("\n"), caught.value


@pytest.mark.parametrize("seed", range(4))
def test_whatever_the_text_is_it_has_an_outcome(seed: int) -> None:
    drawn = random.Random(seed)
    words = re.findall(r"\w+|\s+|[^\w\s]", TEXT)
    others = [
        *filter(str.strip, words),
        "9" * 5000,
        "1e999",
        "'a'",
        "struct a",
        "sizeof",
        "goto",
        '_Pragma("omp simd")',
        "9223372036854775808",
        "1e39f",
        "*",
    ]
    for _ in range(60):
        edited = list(words)
        for _ in range(drawn.randint(1, 3)):
            edited[drawn.randrange(len(edited))] = drawn.choice(["", *drawn.choices(others, k=4)])
        with contextlib.suppress(Unsupported):
            _check("".join(edited))


OF_ANOTHER = """#include <math.h>
#include <stdint.h>

{other}
int64_t one_forward_workspace(int64_t n)
{{
    (void)n;
    return 0;
}}

int one_forward(int64_t n, const float *restrict x, float *restrict y, void *workspace)
{{
    (void)workspace;
    for (int64_t i = 0; i < n; i++)
        y[i] = {value};
    return 0;
}}
"""
ELSEWHERE = """
static float of_another(float x)
{
    const int n = 3;
    int k = n * 2;
    k = k + 1;
    return x * k;
}
"""


def test_only_what_a_kernel_calls_is_its_own() -> None:
    text = OF_ANOTHER.format(other=ELSEWHERE, value="2.0f * x[i]")
    unit = parse(text)
    own = unit.called_by("one_forward", "one_forward_workspace")
    assert own == {"one_forward", "one_forward_workspace"}
    dialect.check(unit, own)
    conversions.check(unit, own)
    called = parse(OF_ANOTHER.format(other=ELSEWHERE, value="of_another(x[i])"))
    own = called.called_by("one_forward")
    assert own == {"one_forward", "of_another"}
    with pytest.raises(Unsupported):
        conversions.check(called, own)


def test_the_names_of_all_functions_are_looked_at() -> None:
    """What the compiler makes of a loop may be a call of memcpy."""
    other = ELSEWHERE.replace("of_another", "memcpy")
    unit = parse(OF_ANOTHER.format(other=other, value="2.0f * x[i]"))
    with pytest.raises(Unsupported, match="memcpy"):
        dialect.check(unit, unit.called_by("one_forward"))
