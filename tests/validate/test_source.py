"""The language of the emitted C: what is read from it, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from pycparser import c_ast

from symgrad.codegen.emit.file import included, prelude
from symgrad.validate.source import (
    CType,
    Unsupported,
    differences,
    line_of,
    parse,
    parse_header,
    walk,
)

GENERATED = Path(__file__).parents[2] / "generated"
HEAD = "#include <math.h>\n#include <stdint.h>\n"
KERNEL = """\
int k(
    int64_t n,
    const float *restrict x,
    int64_t x_s0,
    float *restrict y,
    void *workspace)
{
    (void)workspace;
    #pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i*x_s0];
    return 0;
}
"""


def body(text: str, head: str = "") -> str:
    """A file with one function of this body."""
    return (
        f"{HEAD}#define MIN(a, b) ((a) < (b) ? (a) : (b))\n{head}"
        f"static void add(double *x)\n{{\n    x[0] += 1.0;\n}}\n"
        f"int k(int64_t n, const double *restrict x, double *restrict y)\n{{\n{text}\n"
        "    return 0;\n}\n"
    )


@pytest.mark.parametrize("header", sorted(GENERATED.glob("[!_]*.h")), ids=lambda path: path.stem)
def test_what_is_generated_is_read_and_its_header_declares_it(header: Path) -> None:
    files = sorted(GENERATED.glob(f"{header.stem}.c")) + sorted(
        GENERATED.glob(f"{header.stem}_pruned.c")
    )
    units = [parse(included(path.read_text(encoding="utf-8"), prelude())) for path in files]
    declared = parse_header(header.read_text(encoding="utf-8"))
    assert differences(declared, units) == []
    for unit in units:
        loops = [one for f in unit.functions.values() for one in walk(f)]
        pragmas = [one for one in loops if isinstance(one, c_ast.Pragma)]
        assert unit.text.count("#pragma omp") == len(pragmas)
        for one in pragmas:
            assert f"#pragma {one.string}" == unit.source(unit.line(one))
            assert unit.directive(one).parallel == ("parallel for" in one.string)


def test_lines_are_those_of_the_text() -> None:
    text = f"/* two\n   lines */\n{HEAD}\n{KERNEL}"
    unit = parse(text)
    (assignment,) = (one for one in walk(unit.functions["k"]) if isinstance(one, c_ast.Assignment))
    assert unit.source(unit.line(assignment)) == "y[i] = x[i*x_s0];"
    assert unit.signatures["k"].parameters[1] == ("x", CType("float", 1, True, True))
    assert unit.source(unit.signatures["k"].line) == "int k("


def test_macros() -> None:
    text = (
        f"{HEAD}#ifndef SHORT /* of a row */\n#define SHORT 32 /* elements */\n#endif\n"
        '#if SHORT > 32\n#error "too long"\n#endif\n#define BLOCK 4096\n'
        "#define LEAST(u, v) ((u) < (v) ? (u) : (v))\n#define MAX(a, b) ((b) > (a) ? (b) : (a))\n"
        "#define ROUND_UP(bytes) (((bytes) + 63) / 64 * 64)\n"
    )
    unit = parse(text)
    short, block = unit.constants["SHORT"], unit.constants["BLOCK"]
    assert [short.admits(value) for value in (-1, 0, 32, 33)] == [True, True, True, False]
    assert [block.admits(value) for value in (4096, 64)] == [True, False]
    kinds = {name: macro.kind for name, macro in unit.macros.items()}
    assert kinds == {"LEAST": "min", "MAX": "", "ROUND_UP": "round_up"}


def test_clauses() -> None:
    loop = "    for (int64_t i = 0; i < n; i++)\n        t += x[i];\n    (void)u;"
    unit = parse(body(f"double t = 0.0, u = 0.0;\n#pragma omp simd reduction(+:t)\n{loop}"))
    (pragma,) = (one for one in walk(unit.functions["k"]) if isinstance(one, c_ast.Pragma))
    directive = unit.directive(pragma)
    assert (directive.parallel, directive.reductions) == (False, (("+", "t"),))


_LOOP = "for (int64_t i = 0; i < n; i++)\n        y[i] = x[i];"
REFUSED = {
    "a comma": "y[0] = (n, x[0]);",
    "an assignment inside an expression": "y[0] = (y[1] = 2.0);",
    "a step inside an expression": "int64_t i = 0;\n    y[i++] = 1.0;",
    "a step of an expression": "for (int64_t i = 0; i < n; (i + 1)++)\n        y[i] = 1.0;",
    "while": "while (n > 0)\n        y[0] = 1.0;",
    "goto": "goto end;\nend:\n    y[0] = 1.0;",
    "break": "for (int64_t i = 0; i < n; i++)\n        break;",
    "a static variable": "static int count = 0;\n    count += 1;",
    "an array whose extent varies": "double t[n];\n    y[0] = 0.0;",
    "a cast to a struct": "y[0] = *(struct s *)x;",
    "an unknown name": "y[0] = z;",
    "an unknown function": "y[0] = frobnicate(x[0]);",
    "another number of arguments": "y[0] = exp(x[0], x[1]);",
    "an effect inside an expression": "y[0] = 1.0 + add(y);",
    "an octal number": "y[0] = 010;",
    "a hexadecimal number": "y[0] = 0x10;",
    "a long number": "y[0] = 10L;",
    "a text": 'y[0] = "a"[0];',
    "sizeof": "y[0] = sizeof(double);",
    "a macro as a variable": "double MIN = 0.0;\n    y[0] = MIN;",
    "a macro without its arguments": "y[0] = MIN;",
    "a variable read in its own declaration": "double t = t + 1.0;\n    y[0] = t;",
    "two variables of one name": "double t = 0.0;\n    double t = 1.0;\n    y[0] = t;",
    "a variable of a parameter's name": "double x = 0.0;\n    y[0] = x;",
    "a loop whose variable changes": "for (int64_t i = 0; i < n; i++) {\n        i += 1;\n    }",
    "a loop without a condition": "for (int64_t i = 0;; i++)\n        y[i] = 0.0;",
    "an unknown pragma": f"#pragma unroll\n    {_LOOP}",
    "a loop that is unrolled and is none": "#pragma GCC unroll 4\n    y[0] = 0.0;",
    "an unknown clause": f"#pragma omp simd safelen(4)\n    {_LOOP}",
    "a private clause": f"#pragma omp simd private(n)\n    {_LOOP}",
    "another schedule": f"#pragma omp parallel for schedule(dynamic)\n    {_LOOP}",
    "a pragma before no loop": "#pragma omp simd\n    y[0] = 0.0;",
    "a reduction of no variable": f"#pragma omp simd reduction(+:nothing)\n    {_LOOP}",
    "a parallel loop that is left": (
        "#pragma omp parallel for schedule(static)\n"
        "    for (int64_t i = 0; i < n; i++) {\n        return 1;\n    }"
    ),
    "a parallel loop of another form": (
        "#pragma omp parallel for schedule(static)\n"
        "    for (int64_t i = 0; n > i; i++)\n        y[i] = 0.0;"
    ),
    "a directive": "#undef MIN\n    y[0] = 0.0;",
    "an include": "#include <string.h>\n    y[0] = 0.0;",
    "a spliced line": "y[0] = \\\n    1.0;",
    "a trigraph": "y[0] = 1.0; //??/\n    y[0] = 2.0;",
    "a comment without an end": "y[0] = 1.0; /* and",
    "code under a condition": "#ifdef _OPENMP\n    y[0] = 1.0;\n#endif",
    "an array of arrays": "y[0] = x[0][0];",
    "no value": "return;",
    "an integer beyond all types": "y[0] = (double)18446744073709551616;",
    "an integer of no signed type": "y[0] = (double)9223372036854775808;",
    "an integer beyond its macro": "y[0] = (double)INT64_C(9223372036854775808);",
    "the least integer, which is no number": "y[0] = (double)-9223372036854775808;",
    "a float beyond its type": "y[0] = 1e39f;",
    "a negative float beyond its type": "y[0] = -1e39f;",
    "a float that rounds to what is beyond": "y[0] = 3.4028236e38f;",
    "a double beyond its type": "y[0] = 1e309;",
    "a value that goes nowhere": "(void)x[n];",
    "a quotient that goes nowhere": "(void)(n / 0);",
    "a condition that is empty": (
        "#pragma omp parallel for schedule(static) if(parallel: )\n"
        "    for (int64_t i = 0; i < n; i++)\n        y[i] = 0.0;"
    ),
    "an operator for a pragma": f'_Pragma("omp simd")\n    {_LOOP}',
    **{
        f"a variable {word}": f"const double {word} = 0.0;\n    y[0] = {word};"
        for word in (
            "asm",
            "typeof",
            "typeof_unqual",
            "bool",
            "true",
            "false",
            "nullptr",
            "constexpr",
            "thread_local",
            "alignas",
            "alignof",
            "static_assert",
        )
    },
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_not_in_the_language(text: str) -> None:
    with pytest.raises(Unsupported) as caught:
        parse(body(f"    {text}"))
    begin = body("").count("\n") - 3
    assert caught.value.line == 0 or caught.value.line >= begin - 1, caught.value


VECTORS = (
    "#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && "
    "defined(__GLIBC_PREREQ)\n#if __GLIBC_PREREQ(2, 35)\n"
    '__attribute__((simd("notinbranch"))) float expf(float);\n#endif\n#endif\n'
)
QUIET = '#ifndef _OPENMP\n#pragma GCC diagnostic ignored "-Wunknown-pragmas"\n#endif\n'
HEADS = {
    "a macro that is no number": "#define SIZE n\n",
    "a macro with bare parameters": "#define TWICE(a) (a + a)\n",
    "a macro without parentheses": "#define LESS(a, b) (a) - (b)\n",
    "a macro with names of its own": "#define ADD(a) ((a) + n)\n",
    "a macro defined twice": "#define ONE 1\n#define ONE 2\n",
    "a number of the standard": "#define INT32_MAX 5\n",
    "a guard that refuses the number itself": '#define T 64\n#if T > 32\n#error "no"\n#endif\n',
    "a guard without an error": "#define T 16\n#if T > 32\n#endif\n",
    "a directive behind a comment": "#define T 16 /* so\n many */ + 1\n",
    "another function of math.h": "double exp(double);\n",
    "a SIMD version of another type": (
        '#ifdef __GNUC__\n__attribute__((simd("notinbranch"))) double expf(double);\n#endif\n'
    ),
    "a condition without an end": "#ifdef __GNUC__\n",
    "a condition on the library of another year": VECTORS.replace("35", "17"),
    "a condition on libmvec alone": VECTORS.replace("defined(__GNUC__) && ", ""),
    "a condition on libmvec that is half": VECTORS.partition("\n")[2].removesuffix("#endif\n"),
    "a SIMD version that libmvec has not": VECTORS.replace("expf", "lgammaf"),
    "another condition": "#ifndef __GNUC__\n#endif\n",
    "another condition on OpenMP": "#ifdef _OPENMP\n" + QUIET.partition("\n")[2],
    "a macro of a word": "#define ADD(asm, b) ((asm) + (b))\n",
    "a variable of the file": "static double state;\n",
    "a type": "typedef float int64_t;\n",
    "a function defined behind its use": (
        "static double one(void)\n{\n    return two();\n}\n"
        "static double two(void)\n{\n    return 2.0;\n}\n"
    ),
    "a function that calls itself": "static int f(int n)\n{\n    return f(n - 1);\n}\n",
}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS.keys())
def test_what_is_refused_outside_of_functions(head: str) -> None:
    with pytest.raises(Unsupported):
        parse(body("    y[0] = x[0];", head))


def test_what_stands_under_the_known_conditions() -> None:
    assert set(parse(body("    y[0] = x[0];", QUIET + VECTORS)).vectors) == {"expf"}


@pytest.mark.parametrize("name", ["math.h", "stdint.h"])
def test_headers_are_included_before_all_else(name: str) -> None:
    line, text = f"#include <{name}>\n", body("    y[0] = x[0];")
    for changed in (text.replace(line, ""), text.replace(line, "") + line):
        with pytest.raises(Unsupported, match=f"#include <{name}> is missing"):
            parse(changed)


def test_a_macro_is_known_only_behind_its_definition() -> None:
    late = "int k(int64_t n)\n{\n    return n < SIZE;\n}\n#define SIZE 4\n"
    with pytest.raises(Unsupported, match="before its #define"):
        parse(HEAD + late)


HEADER = (
    "#ifndef SYMGRAD_K_H\n#define SYMGRAD_K_H\n\n#include <stdint.h>\n\n"
    '#ifdef __cplusplus\nextern "C" {\n#endif\n'
    "\nint k(int64_t n, const float *x, int64_t x_s0, float *y, void *workspace);\n"
    "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n"
)  # fmt: skip


def test_a_header_may_leave_out_restrict() -> None:
    assert differences(parse_header(HEADER), [parse(HEAD + KERNEL)]) == []


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("int64_t n, ", "", "has 5 parameters, declared with 4"),
        ("const float *x", "const double *x", "parameter x of k is const float"),
        ("const float *x", "float *x", "parameter x of k is const float"),
        ("float *y", "float *z", "parameter 4 of k is y, declared as z"),
        ("int k", "int64_t k", "k returns int, declared as int64_t"),
        ("int k", "int other", "other is declared and not defined"),
    ],
)
def test_a_header_that_declares_something_else(old: str, new: str, told: str) -> None:
    found = differences(parse_header(HEADER.replace(old, new)), [parse(HEAD + KERNEL)])
    assert any(told in one for one in found), found


def test_a_header_of_another_frame() -> None:
    with pytest.raises(Unsupported, match="frame"):
        parse_header(HEADER.replace("#define SYMGRAD_K_H", "#define SYMGRAD_OTHER_H"))


def test_nodes_have_lines() -> None:
    unit = parse(HEAD + KERNEL)
    assert all(line_of(one) for one in walk(unit.functions["k"]) if isinstance(one, c_ast.ID))
