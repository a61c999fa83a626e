"""Generated wrappers call their kernels as the graphs say, and what is wrong in them is found."""

from __future__ import annotations

import dataclasses
import random
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import ops
import pytest

from symgrad import compiler
from symgrad.emission import emit
from symgrad.frontend.plain import with_passed
from symgrad.frontend.trace import trace_request
from symgrad.kernels import OpPlan, plan
from symgrad.nn import functions
from symgrad.tensor.plans.shippedplan import SHIPPED
from symgrad.validate.source import parse_header
from symgrad.validate.symbolic.kernel import Outcome
from symgrad.validate.wrappers.wrapper import validate
from symgrad.validation import validation
from tests.nn.test_functions import VARIANTS
from tests.validate.wrapper_mutants import KINDS, mutant, sites

GENERATED = Path(__file__).resolve().parents[2] / "generated"
OF_THE_SAME_CALLS = {
    "another name": "zeros and empty memory are both written",
    "statement dropped": "a docstring",
    "statements swapped": "independent ones",
    "check dropped": "the runtime does what no kernel is called for",
    "table of another": "the runtime does what is not in the table",
    "word": "a local name of the record",
    "record with less": "a backward of more gradients serves; which files there are",
    "tuple in another order": "an annotation, local names of the record",
    "tuple with something else": "an annotation",
    "record with other strides": "of what no kernel takes",
    "integer": "a size is read off another array of that size",
}


def planned(function: Any, *specs: Any, static: Any = None, name: str = "") -> OpPlan:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        request = compiler._requested(function, None, specs, static, None)
    graphs = trace_request(request)
    served = compiler._served(request, graphs, compiler._ranks(request, graphs))
    return plan(with_passed(request, served), name=name)


def judged(op: OpPlan, text: str = "") -> Outcome:
    emitted = emit(op, "")
    header = next(one for file, one in emitted.texts.items() if file.endswith(".h"))
    kernels = {one.name: one.graph for one in op.kernels}
    return validate(text or emitted.wrapper(), parse_header(header), emitted.op, op.graphs, kernels)


@pytest.mark.parametrize("name", SHIPPED)
def test_wrappers_that_are_shipped_are_validated(name: str) -> None:
    text = (GENERATED / f"{name}.py").read_text(encoding="utf-8")
    outcome = judged(planned(SHIPPED[name], name=name), text)
    assert outcome.validated, f"line {outcome.line}: {outcome.reason}"


@pytest.mark.parametrize(
    ("name", "specs", "static"), [*((name, (), None) for name in functions.__all__), *VARIANTS]
)
def test_wrappers_of_nn_are_validated(name: str, specs: Any, static: Any) -> None:
    outcome = judged(planned(getattr(functions, name), *specs, static=static))
    assert outcome.validated, f"line {outcome.line}: {outcome.reason}"


@cache
def original(name: str) -> tuple[OpPlan, str]:
    op = planned(SHIPPED[name], name=name)
    return op, emit(op, "").wrapper()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_faults_are_found(kind: str) -> None:
    """Of the kinds that leave some calls as they are, the others are found."""
    draw = random.Random(0)
    found = 0
    for name in ("nn_softmax", "nn_cross_entropy", "nn_mse_loss"):
        op, text = original(name)
        where = sites(text)[kind]
        for site in draw.sample(where, min(3, len(where))):
            changed = mutant(text, kind, site)
            if changed is None:
                continue
            outcome = judged(op, changed.text)
            found += not outcome.validated
            assert not outcome.validated or kind in OF_THE_SAME_CALLS, changed.line
    assert found or not any(sites(original("nn_mse_loss")[1])[kind]) or kind in OF_THE_SAME_CALLS


SOFTMAX = {
    "a size of another axis": ("n, m = x.shape", "m, n = x.shape"),
    "residuals in another order": ("Residuals((y, n, m))", "Residuals((y, m, n))"),
    "a dtype that is not checked": (" or x.dtype is not _float32", ""),
    "out that may be read-only": ("_pointer(_c_float32, y, True)", "_pointer(_c_float32, y)"),
    "out that is not written": ("y = out\n", "y = _empty((n, m), _float32)\n"),
    "memory of another shape": ("_leased((n, m)", "_leased((m, n)"),
    "memory of another dtype": ("_leased((n, m), _float32)", "_leased((n, m), _dtype)"),
    "memory in place of less": ("_empty((n, m), _float32) if", "_leased((n, m), _float32) if"),
    "a test that is none": ("if n*m < 32768 else", "if _float32 else"),
    "a stride": ("_p_x, m, _p_y", "_p_x, n, _p_y"),
    "a gradient that is missing": ("return (grad_x,)", "return (None,)"),
}


AFTER = "_library = _beside(__file__, OP)\n"
FRAME = {
    "an import over a function": ("$", "from math import prod as forward\n"),
    "an import over the record": ("$", "from math import prod as OP\n"),
    "an import over a builtin": ("$", "from math import prod as type\n"),
    "a function that no call reaches": (
        "$", "def _more(a=exec('global forward; forward = None')):\n    pass\n",
    ),
    "a function of modules": ("$", "def __getattr__(name):\n    return None\n"),
    "a second function of a name": ("$", "def forward(x):\n    return x\n"),
    "annotations that are evaluated": ("from __future__ import annotations\n", ""),
    "a default that is computed": ("out: Any = None", "out: Any = exec('forward = None')"),
    "an attribute with two names": ("    op = OP.name", "    op = fields = OP.name"),
    "slots with two names": ("    __slots__ = ()", "    __slots__ = __iter__ = ()"),
    "slots": ("    __slots__ = ()", "    __slots__ = ('y',)"),
    "another op": ("    op = OP.name", "    op = 'nn_gelu'"),
    "a module of another place": ("from symgrad.runtime.workspace import", "from workspace import"),
    "records of another place": ("from symgrad.abi import", "from abi import"),
    "two runtimes": (
        "from symgrad.runtime.support import Unusual", "from ._runtime.support import Unusual",
    ),
    "an argument that nothing takes": (AFTER, "_library = _beside(__file__, OP, op=OP)\n"),
    "another file": (AFTER, f"__file__ = 'elsewhere/w.py'\n{AFTER}"),
    "a coding": ('"""nn_softmax', '# coding: utf-7\n"""nn_softmax'),
    "a coding on the second line": ('"""nn_softmax', '\n# vim: fileencoding=utf-7\n"""nn_softmax'),
    "what does not compile": ("$", "from __future__ import division\n"),
    "a page": ("\n__all__", "\f\n__all__"),
    "another library": ('files=("nn_softmax.c",)', 'files=("nn_gelu.c",)'),
    "another header": ('header="nn_softmax.h"', 'header="nn_gelu.h"'),
    "another name": ('name="nn_softmax"', 'name="nn_gelu"'),
    "another BLAS": ('header="nn_softmax.h"', 'header="nn_softmax.h", blas=True'),
}  # fmt: skip


@pytest.mark.parametrize("what", FRAME)
def test_what_stands_around_the_functions_is_what_symgrad_writes(what: str) -> None:
    op, text = original("nn_softmax")
    old, new = FRAME[what]
    assert old == "$" or old in text
    changed = text + new if old == "$" else text.replace(old, new, 1)
    outcome = judged(op, changed)
    assert not outcome.validated
    assert not outcome.reason.startswith("not understood"), outcome.reason


def test_headers_declare_the_functions_of_the_c() -> None:
    """With the record and the calls of the wrapper changed alike, only the C says otherwise."""
    op, _ = original("nn_softmax")
    emitted = emit(op, "")
    file = emitted.op.header
    assert validation(op, emitted, cached=False).verdict == "VALIDATED"
    for old, new in (
        ("int64_t n, int64_t m", "int64_t m, int64_t n"), (", int64_t x_s0", ""),
        ("float *y", "float *const y"), ("SYMGRAD_NN_SOFTMAX_H", "SYMGRAD_STDINT"),
        ("int nn_softmax_forward(", "int nn_softmax_more(int64_t n);\nint nn_softmax_forward("),
    ):  # fmt: skip
        header = " ".join(emitted.texts[file].split(" "))
        assert old in header, (old, header)
        texts = {**emitted.texts, file: header.replace(old, new)}
        found = validation(op, dataclasses.replace(emitted, texts=texts), cached=False)
        assert found.wrapper.verdict != "VALIDATED", (old, new)


@pytest.mark.parametrize("what", SOFTMAX)
def test_what_is_wrong_is_told(what: str) -> None:
    op, text = original("nn_softmax")
    old, new = SOFTMAX[what]
    assert old in text
    outcome = judged(op, text.replace(old, new))
    assert not outcome.validated
    assert outcome.line


@pytest.mark.parametrize("name", ["Linear", "Tanh", "Gelu", "LayerNorm", "SoftmaxCrossEntropy"])
def test_wrappers_of_the_examples_are_validated(name: str) -> None:
    outcome = judged(planned(getattr(ops, name)))
    assert outcome.validated, f"line {outcome.line}: {outcome.reason}"
