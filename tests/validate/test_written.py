"""What the C reassociates is said; what is said to be evaluated as written has the same bits."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
import pytest

from benchmarks.c_mutants import Case, alone
from symgrad.ir.dtype import DType, float32, float64
from symgrad.ir.graph import Graph, Node
from symgrad.ir.rewrite import extract
from symgrad.passes.evaluate import evaluate
from symgrad.validate.symbolic.kernel import Outcome, validate
from symgrad.validate.symbolic.written import DIFFERENCES, MERGED, OTHER, WIDER, sentence
from tests.codegen import programs
from tests.codegen.programs import B, Builder, M, N
from tests.codegen.support import FAST, compile_graphs
from tests.validate.rewritten import NAMES, evaluated, formula, rewritten, text, value
from tests.validate.test_symbolic import kernels

LANES, BLOCKS, GROUPS = "sums in lanes", "sums in blocks", "sums in groups of rows"
DOUBLE, TERMS = "sums of floats in double", "sums of several terms in another order"
FACTORS = "products of several factors in another order"
RECIPROCAL = "divisions as products with a reciprocal"
ROWS = (LANES, BLOCKS, DOUBLE)
ALL = (LANES, BLOCKS, GROUPS, DOUBLE)


def outcome(case: Case, *edits: tuple[str, str]) -> Outcome:
    text = case.text
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return validate(text, case.record, case.graph, case.conditions)


SHIPPED: dict[str, dict[str, tuple[str, ...]]] = {
    "nn_gelu": {"forward": (), "backward": ()},
    "nn_silu": {"forward": (), "backward": ()},
    "nn_softplus": {"forward": (), "backward": ()},
    "nn_softmax": {"forward": ROWS, "backward": ROWS},
    "nn_log_softmax": {"forward": ROWS, "backward": ROWS},
    "nn_mse_loss": {"forward": ALL, "backward": ()},
    "nn_layer_norm": {"forward": ROWS, "backward_100": ROWS, "backward_001": ALL},
}


@pytest.mark.parametrize("name", SHIPPED)
def test_of_shipped_kernels_it_is_said_what_is_summed_how(name: str) -> None:
    for kernel, differences in SHIPPED[name].items():
        found = validate(*kernels(name)[f"{name}_{kernel}"])
        assert (found.validated, found.written) == (True, differences), kernel


def test_products_of_matrices_are_summed_by_the_blas() -> None:
    found = outcome(alone("linear", programs.linear()))
    assert found.validated
    assert "sums by the BLAS" in found.written
    assert OTHER not in found.written


# -- elementwise kernels


def elementwise(dtype: DType = float32) -> Graph:
    b = Builder(dtype)
    x, y, z = (b.input(name, N, M) for name in "xyz")
    return b.outputs(
        sums=(x + y) + z,
        factors=(x * y) * z,
        ratio=x / y,
        share=(x - y) / (z * z + 1.5),
        powers=b.apply("exp", x) * b.apply("exp", y),
        gate=x * b.apply("sigmoid", y) + b.apply("softplus", z),
        near=x * 0.1 - y,
    )


@cache
def case(dtype: DType = float32) -> Case:
    return alone("k", elementwise(dtype))


@cache
def mixed() -> Case:
    b = Builder(float32)
    x = b.input("x", N, M)
    wide = b.apply("exp", b.apply("cast", x, dtype=float64))
    return alone("k", b.outputs(
        narrow=b.apply("cast", wide * 2.0, dtype=float32),
        total=b.total(b.apply("cast", x * x, dtype=float64)),
        plain=b.total(x),
    ))  # fmt: skip


@pytest.mark.parametrize("dtype", [float32, float64])
def test_what_has_no_sums_over_an_axis_is_evaluated_as_written(dtype: DType) -> None:
    found = outcome(case(dtype))
    assert found.validated, found.reason
    assert found.written == ()
    assert sentence(found.written) == "Evaluated as written."


SAME = {
    "a sum's operands exchanged": ("x_i + y_i + z_i", "z_i + (y_i + x_i)"),
    "a product's operands exchanged": ("x_i*y_i*z_i", "z_i*(y_i*x_i)"),
    "a difference": ("x_i*0.1f - y_i", "-y_i + x_i*0.1f"),
    "a sign outside": ("x_i/y_i;", "-(x_i/-y_i);"),
}  # fmt: skip


@pytest.mark.parametrize("what", SAME)
def test_what_keeps_each_bit_is_as_written(what: str) -> None:
    found = outcome(case(), SAME[what])
    assert found.validated, found.reason
    assert found.written == ()


MOVED = {
    "terms": (("x_i + y_i + z_i", "x_i + (y_i + z_i)"), TERMS),
    "terms that cancel": (("x_i + y_i + z_i", "x_i + y_i + z_i + x_i - x_i"), OTHER),
    "factors": (("x_i*y_i*z_i", "x_i*(y_i*z_i)"), FACTORS),
    "a reciprocal": (("x_i/y_i;", "x_i*(1.0f/y_i);"), RECIPROCAL),
    "a number beside both": (("x_i/y_i;", "x_i*3.0f/(y_i*3.0f);"), OTHER),
    "numbers that overflow": (("x_i*y_i*z_i", "x_i*1e20f*y_i*1e20f/1e20f/1e20f*z_i"), OTHER),
    "numbers in another order": (("x_i*0.1f", "x_i*0.1f/2.0f*2.0f"), OTHER),
    "a quotient of a difference": (("(x_i - y_i) / (", "x_i / (z_i*z_i + 1.5f) - y_i / ("), OTHER),
    "a difference from the other end": (("x_i*0.1f - y_i", "0.0f - (y_i - x_i*0.1f)"), TERMS),
    "double": (("x_i/y_i;", "(float)((double)x_i/(double)y_i);"), WIDER),
    "a sum in double": (
        ("x_i + y_i + z_i", "(float)((double)x_i + (double)y_i + (double)z_i)"), WIDER,
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", MOVED)
def test_what_is_reassociated_is_said(what: str) -> None:
    edit, said = MOVED[what]
    found = outcome(case(), edit)
    assert found.validated, found.reason
    assert found.written == (said,)


WRONG = {
    "a sum of exponents": ("symgrad_expf(x_i) * symgrad_expf(y_i)", "symgrad_expf(x_i + y_i)"),
    "a difference turned": ("x_i*0.1f - y_i", "y_i - x_i*0.1f"),
    "a quotient turned": ("x_i/y_i;", "y_i/x_i;"),
    "another number": ("0.1f", "0.1"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_what_is_another_number_is_not_validated(what: str) -> None:
    assert not outcome(case(), WRONG[what]).validated


FLOAT = {
    "a function": ("symgrad_exp(x_i)", "(double)symgrad_expf((float)x_i)"),
    "a function without a cast": ("symgrad_exp(x_i)", "symgrad_expf(x_i)"),
    "a local": ("const double x_i = x[i];", "const double x_i = (double)(float)x[i];"),
    "an operand": ("x_i/y_i;", "(double)((float)x_i/(float)y_i);"),
    "a result": ("x_i + y_i + z_i", "(double)(float)(x_i + y_i + z_i)"),
    "a number": ("x_i*0.1 - y_i", "x_i*0.1f - y_i"),
    "a type": ("const double y_i = y[i];", "const float y_i = (float)y[i];"),
}  # fmt: skip


@pytest.mark.parametrize("what", FLOAT)
def test_float_does_not_stand_for_float64(what: str) -> None:
    assert not outcome(case(float64), FLOAT[what]).validated


# -- sums


@pytest.mark.parametrize("dtype", [float32, float64])
def test_an_accumulator_of_rows_is_said(dtype: DType) -> None:
    b = Builder(dtype)
    x = b.input("x", N, M)
    found = outcome(alone("k", b.outputs(y=b.total(x))))
    assert found.validated
    assert found.written == (ROWS if dtype == float32 else (LANES, BLOCKS))


OF_ROWS = {
    "lanes": (((" reduction(+:z_block)", ""), ("#pragma omp simd\n", "\n")), (BLOCKS, DOUBLE)),
    "double": ((("double z_sum = 0.0;", "float z_sum = 0.0f;"),), (LANES, BLOCKS)),
    "double in blocks": (
        (("float z_block = 0.0f;", "double z_block = 0.0;"),), (LANES, BLOCKS, DOUBLE),
    ),
    "blocks": (
        (("float z_block = 0.0f;", ""), ("(+:z_block)", "(+:z_sum)"), ("z_block +=", "z_sum +="),
         ("z_sum += z_block;", "")),
        (LANES, DOUBLE),
    ),
    "all": (
        (("float z_block = 0.0f;", ""), (" reduction(+:z_block)", ""), ("#pragma omp simd\n", "\n"),
         ("z_block +=", "z_sum +="), ("z_sum += z_block;", ""),
         ("double z_sum = 0.0;", "float z_sum = 0.0f;")),
        (),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", OF_ROWS)
def test_what_is_said_of_a_sum_is_what_its_loops_do(what: str) -> None:
    b = Builder(float32)
    one = alone("k", b.outputs(z=b.total(b.input("x", N, M))))
    edits, said = OF_ROWS[what]
    found = outcome(one, *edits)
    assert found.validated, found.reason
    assert found.written == said


def test_a_sum_of_two_terms_in_each_iteration() -> None:
    b = Builder(float32)
    x, y = b.input("x", N, M), b.input("y", N, M)
    one = alone("k", b.outputs(z=b.total(x + y)))
    assert outcome(one).written == ROWS
    rows = "z[i] += x[i*x_s0 + j] + y[i*y_s0 + j];"
    found = outcome(one, (rows, rows.replace("+=", "= z[i] +")))
    assert found.validated, found.reason
    assert TERMS in found.written


def test_a_sum_that_begins_with_another_term() -> None:
    b = Builder(float32)
    x, y = b.input("x", N, M), b.input("y", N)
    one = alone("k", b.outputs(z=y + b.total(x)))
    assert outcome(one).written == ROWS
    begun = ("z_total[i - i0] = 0.0f;", "z_total[i - i0] = y[i];")
    found = outcome(one, begun, ("z[i] = y[i] + z_total[i - i0];", "z[i] = z_total[i - i0];"))
    assert found.validated, found.reason
    assert "sums that begin with what they are added to" in found.written


@pytest.mark.parametrize("start", ["0.0f", "c[i]"])
def test_a_sum_of_sums_is_not_one_sum(start: str) -> None:
    """The graph adds the sums of all rows of each table; or has the sum over both axes."""
    b = Builder(float32)
    x, y = b.input("x", N, M, B), b.input("c", N)
    apart = b.apply("sum", b.apply("sum", x, axes=(2,)), axes=(1,))
    whole = b.apply("sum", x, axes=(1, 2))
    c = """
        for (int64_t i = 0; i < n; i++) {
            float one = START;
            for (int64_t j = 0; j < m; j++) {
                PART
                for (int64_t k = 0; k < b; k++)
                    SUM += x[i*ROW + j*b + k];
                WHOLE
            }
            z[i] = one;
        }
    """.replace("START", start)
    rows, flat = c, c
    for name, own, none in (
        ("PART", "float row = 0.0f;", ""), ("SUM", "row", "one"), ("WHOLE", "one += row;", ""),
    ):  # fmt: skip
        rows, flat = rows.replace(name, own), flat.replace(name, none)
    said = [
        _of_body(b, y + total if start != "0.0f" else total, body).written
        for total, body in ((apart, rows), (apart, flat), (whole, rows), (whole, flat))
    ]
    begun = ("sums that begin with what they are added to",) if start != "0.0f" else ()
    assert said == [begun, (*begun, MERGED), (BLOCKS, *begun), begun]


def _of_body(b: Builder, output: Node, body: str) -> Outcome:
    """A kernel with the output ``z``, and with this text in the place of its loops."""
    graph = extract({"z": output}, list(b.graph.inputs.values()))
    one = alone("k", graph)
    head = one.text.partition("(void)workspace;\n")[0]
    body = body.replace("ROW", "x_s0" if "x_s0" in head else "m*b")
    found = validate(f"{head}(void)workspace;\n{body}\n    return 0;\n}}\n", one.record, graph)
    assert found.validated, (found.reason, one.text)
    return found


def test_types_of_a_graph_with_both() -> None:
    found = outcome(mixed())
    assert found.validated, found.reason
    assert found.written == ROWS


MIXED = {
    "a function": (("symgrad_exp((double)x_ij)", "(double)symgrad_expf(x_ij)"),),
    "an operand": (
        ("(float)(symgrad_exp((double)x_ij) * 2.0)", "(float)symgrad_exp((double)x_ij) * 2.0f"),
    ),
    "an accumulator": (
        ("double total_block = 0.0", "float total_block = 0.0f"),
        ("(double)(x_ij*x_ij)", "x_ij*x_ij"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", MIXED)
def test_float_does_not_stand_for_the_float64_of_a_graph_with_both(what: str) -> None:
    assert not outcome(mixed(), *MIXED[what]).validated


def test_double_for_the_float32_of_a_graph_with_both_is_said() -> None:
    wide = "(double)(float)((double)x_ij*(double)x_ij)"
    found = outcome(mixed(), ("(double)(x_ij*x_ij)", wide))
    assert found.validated, found.reason
    assert WIDER in found.written


def test_names_are_each_one_text() -> None:
    assert len(set(DIFFERENCES)) == len(DIFFERENCES)
    assert sentence(ROWS) == (
        "Evaluated as written but for: sums in lanes, sums in blocks, sums of floats in double."
    )


# -- the numbers


@pytest.mark.parametrize("dtype", [float32, float64])
def test_what_is_as_written_has_the_bits_of_numpy(dtype: DType, tmp_path: Path) -> None:
    b = Builder(dtype)
    x, y, z = (b.input(name, N, M) for name in "xyz")
    graph = b.outputs(
        sums=(x + y) + z, factors=(x * y) * z, share=(x - y) / (z * z + 1.5),
        near=x * 0.1 - y / 3.0, root=b.apply("sqrt", x * x + y) * b.apply("maximum", x, z),
    )  # fmt: skip
    found = outcome(alone("k", graph))
    assert (found.validated, found.written) == (True, ())
    kernel = compile_graphs({"k": graph}, tmp_path, FAST)["k"]
    random = np.random.default_rng(0)
    feeds = {name: random.uniform(0.1, 3, (37, 41)).astype(dtype.name) for name in "xyz"}
    wanted = evaluate(list(graph.outputs.values()), feeds)
    for got, one in zip(kernel(feeds, {}), wanted, strict=True):
        assert got.tobytes() == one.tobytes()


def test_a_running_sum_as_written_has_the_bits_of_numpy(tmp_path: Path) -> None:
    b = Builder(float64)
    graph = b.outputs(y=b.apply("cumsum", b.input("x", N, M), axis=1, reverse=False))
    found = outcome(alone("k", graph))
    assert (found.validated, found.written) == (True, ())
    kernel = compile_graphs({"k": graph}, tmp_path, FAST)["k"]
    x = np.random.default_rng(0).uniform(-3, 3, (7, 501))
    (got,) = kernel({"x": x}, {})
    total = np.zeros(7)
    for place in range(x.shape[1]):
        total = total + x[:, place]
        assert got[:, place].tobytes() == total.tobytes()


@pytest.mark.parametrize(
    "part", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 6))]
)
def test_what_has_other_bits_is_never_as_written(part: int) -> None:
    draw, random = Random(part), np.random.default_rng(part)
    values = {name: random.uniform(-3, 3, 4000).astype("f4") for name in NAMES}
    counts = Counter[tuple[bool, bool]]()
    while sum(counts.values()) < 50:
        tree = ("add", formula(draw, draw.choice([2, 3, 4])), ("name", "x"))
        b = Builder(float32)
        graph = b.outputs(out=evaluated(tree, {name: b.input(name, N, M) for name in NAMES}))
        one = alone("k", graph)
        other = tree
        for _ in range(draw.choice([1, 2, 4])):
            other = rewritten(other, draw)
        statement = re.search(r"out\[i\] = [^;]*;", one.text)
        assert statement is not None
        found = outcome(one, (statement[0], f"out[i] = {text(other)};"))
        if found.validated:
            with np.errstate(all="ignore"):
                same = np.array_equal(value(tree, values), value(other, values), equal_nan=True)
            assert same or found.written, (tree, other)
            counts[same, bool(found.written)] += 1
    assert counts[True, False] > 10
    assert counts[False, True] > 10
