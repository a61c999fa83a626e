"""Every op has every fact that the product asks its record for, or the record says why not.

Tests over the registry: a new op is tested because it is there.  A fact is not only there: what
it says is compared with the op's NumPy meaning.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import symgrad as sg
from symgrad.ir.dtype import float32
from symgrad.ops.record import Op, get
from symgrad.proof.oracle.snippet import Writer
from symgrad.proof.words.code import CodeWriter
from symgrad.proof.words.spelling import WRITING
from tests.ops.cases import OPS, Case, cases
from tests.ops.test_meanings import assert_close

FACTS = ("program", "code")
"""What a record may lack, if it says why."""


def _lacking(name: str, fact: str) -> bool:
    return fact in get(name).lacks


@pytest.mark.parametrize("name", OPS)
def test_what_a_record_lacks_it_says_why(name: str) -> None:
    op: Op = get(name)
    for fact, why in op.lacks.items():
        assert fact in FACTS
        assert len(why.split()) > 3
        assert getattr(op, fact) is None


@pytest.mark.parametrize("name", [name for name in OPS if not _lacking(name, "program")])
def test_the_numpy_program_computes_the_op(name: str) -> None:
    """What a counterexample is shown with."""

    @given(cases(name, least=1))
    def check(case: Case) -> None:
        names = {arg: f"x{place}" for place, arg in enumerate(case.args)}
        text = Writer(case.sizes, names).expression(case.node)
        scope: dict[str, Any] = dict(zip(names.values(), case.arrays, strict=True))
        with np.errstate(all="ignore"):
            found = eval(text, {"np": np, "math": math, **scope})
        dtype = str(case.node.dtype)
        assert_close(np.asarray(found).astype(dtype), case.numpy(), dtype)

    check()


def _written(case: Case) -> bool:
    """Tensors have no slices that go backwards, zeros are float32, and 1 // 0 raises."""
    op, dtype = case.node.op, case.node.dtype
    if op in ("floordiv", "mod", "fmod"):
        return dtype.is_float or bool(np.all(case.arrays[1]))
    backwards = min(case.node.attributes.get("steps", ()), default=1) < 0
    return not backwards and (op not in WRITING or dtype == float32)


@pytest.mark.parametrize("name", [name for name in OPS if not _lacking(name, "code")])
def test_the_tensor_code_computes_the_op(name: str) -> None:
    """What repairs and conditions are written in."""

    @given(cases(name, least=1))
    def check(case: Case) -> None:
        names = {arg: f"x{place}" for place, arg in enumerate(case.args)}
        if not _written(case):
            return
        *before, last = CodeWriter(names).program(case.node).splitlines()
        scope: dict[str, Any] = {"sg": sg, **case.sizes}
        scope |= {
            name: sg.tensor(array) for name, array in zip(names.values(), case.arrays, strict=True)
        }
        exec("\n".join([*before, f"found = {last}"]), scope)
        dtype = str(case.node.dtype)
        assert_close(scope["found"].numpy(), case.numpy(), dtype)

    check()
