"""What the C computes of its own numbers is in floating point what it is over the reals."""

from __future__ import annotations

import re
from functools import cache

import pytest

from symgrad.ir.dtype import DType, float32, float64
from symgrad.kernels import KernelPlan
from symgrad.validate.symbolic.kernel import Outcome, validate
from tests.codegen.programs import Builder, N
from tests.validate.test_symbolic import Emitted, emitted


@cache
def product(dtype: DType) -> Emitted:
    b = Builder(dtype)
    return emitted(KernelPlan("k_product", b.outputs(z=b.input("x", N) * b.input("y", N))))


def outcome(dtype: DType, value: str) -> Outcome:
    text, record, graph = product(dtype)
    (old,) = re.findall(r"z\[i\] = (.*);", text)
    return validate(text.replace(f"z[i] = {old};", value), record, graph)


DOUBTFUL = {
    "overflows": "z[i] = x[i]*y[i] + (1e38f*10.0f - 1e38f*10.0f);",
    "underflows": "z[i] = x[i]*y[i]*(1.0f/1e30f/1e30f*1e30f*1e30f);",
    "loses a term": "z[i] = x[i]*y[i]*(16777216.0f + 1.0f - 16777216.0f);",
    "overflows and is nothing": "z[i] = x[i]*y[i] + 1e38f*10.0f*0.0f;",
    "through a variable": "const float a = 1e38f;\nconst float b = a*10.0f;\n"
    "z[i] = x[i]*y[i] + (b - b);",
    "through an array": "float a[1];\na[0] = 1e38f;\nz[i] = x[i]*y[i] + 0.0f*(a[0]*10.0f);",
    "a choice of constants": "z[i] = x[i]*y[i] + 0.0f*((x[i] > 0.0f ? 1e38f : 1.0f)*10.0f);",
    "a function": "z[i] = x[i]*y[i] + 0.0f*expf(1000.0f);",
    "a cast": "z[i] = x[i]*y[i] + 0.0f*(float)(1e300*1.0);",
    "a comparison": "z[i] = 0.1f*10.0f == 1.0f ? 2.0f : x[i]*y[i];",
    "a sum of a quotient": "z[i] = x[i]*y[i]*(1.0f/3.0f + 2.0f/3.0f);",
    "a difference that leaves the rest": "z[i] = x[i]*y[i] + (1.0f/41.0f*41.0f - 1.0f);",
}  # fmt: skip
OF_DOUBLES = {
    "overflows": "z[i] = x[i]*y[i] + 1e300*1e300*0.0;",
    "loses a term": "z[i] = x[i]*y[i]*(1e16 + 1.0 - 1e16);",
    "underflows": "z[i] = x[i]*y[i]*(1e-300*1e-300*1e300*1e300);",
}
EXACT = {
    "a product": "z[i] = x[i]*y[i]*(0.5f*2.0f);",
    "a sum": "z[i] = x[i]*y[i]*(0.75f + 0.25f);",
    "a number that is rounded": "z[i] = x[i]*y[i]*(0.1f*10.0f/10.0f/0.1f);",
    "nothing": "z[i] = x[i]*y[i] + 0.1f*0.0f;",
    "a comparison": "z[i] = 0.1f < 0.2f ? x[i]*y[i] : 1.0f;",
    "a large number": "z[i] = x[i]*y[i]*(1e19f*1e19f*1e-19f*1e-19f*0.0f + 1.0f);",
}


@pytest.mark.parametrize("what", DOUBTFUL)
def test_what_floats_make_another_number_of(what: str) -> None:
    assert not outcome(float32, DOUBTFUL[what]).validated


@pytest.mark.parametrize("what", OF_DOUBLES)
def test_what_doubles_make_another_number_of(what: str) -> None:
    assert not outcome(float64, OF_DOUBLES[what]).validated


@pytest.mark.parametrize("what", EXACT)
def test_what_is_the_same_number(what: str) -> None:
    found = outcome(float32, EXACT[what])
    assert found.validated, found.reason


@pytest.mark.parametrize("number", [1e16, 1e300])
def test_what_the_graph_computes_of_constants_the_c_does(number: float) -> None:
    b = Builder(float64)
    x = b.input("x", N)
    made = b.graph.binary("add", b.graph.lift(number, x), b.graph.lift(1.0, x))
    text, record, graph = emitted(KernelPlan("k_sum", b.outputs(z=x * made)))
    found = validate(text, record, graph)
    assert found.validated, (found.reason, text)
