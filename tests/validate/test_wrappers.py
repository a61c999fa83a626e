"""Generated wrappers call their kernels as the graphs say, and what is wrong in them is found."""

from __future__ import annotations

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
    return validate(text or emitted.wrapper(), parse_header(header), op.graphs, kernels)


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
    "a stride": ("_p_x, m, _p_y", "_p_x, n, _p_y"),
    "a gradient that is missing": ("return (grad_x,)", "return (None,)"),
}


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
