"""Where an op bends or jumps of what is computed, not of an input alone, the report names it."""

from __future__ import annotations

import pytest

import symgrad as sg
from tests.proof.written import function_from

ANGLE = """
def forward(ctx, re, im):
    ctx.save_for_backward(re, im)
    return sg.atan2({im}, re)

def backward(ctx, g):
    re, im = ctx.saved_tensors
    g = g / (re.square() + {im}.square())
    return -{im} * g, {slope} * re * g
"""
STEPS = """
def forward(ctx, x):
    ctx.save_for_backward(x)
    return x * x + {step}

def backward(ctx, g):
    (x,) = ctx.saved_tensors
    return 2 * g * x
"""


@pytest.mark.parametrize(("im", "slope"), [("im", "1"), ("(2 * im)", "2")])
def test_the_branch_cut_of_an_angle_is_named(im: str, slope: str) -> None:
    found = sg.verify(function_from(ANGLE.format(im=im, slope=slope)), "n; n", suggest=False)
    assert found.verdict is sg.PROVED, str(found)
    for one in found.inputs.values():
        kinks = [str(each) for each in one.conditions if each.kind == "kink"]
        assert len(kinks) == 1
        assert "re.clamp(min=0)" in kinks[0]


@pytest.mark.parametrize(
    ("step", "kink"),
    [("x // 2", "x / 2 == (x / 2).floor()"),
     ("(x + 1) // 2", "(x + 1) / 2 == ((x + 1) / 2).floor()")],
)  # fmt: skip
def test_the_steps_of_a_quotient_are_named(step: str, kink: str) -> None:
    found = sg.verify(function_from(STEPS.format(step=step)), "n", suggest=False)
    assert found.verdict is sg.PROVED, str(found)
    assert [one.text for one in found.conditions if one.kind == "kink"] == [kink]


def test_the_end_of_a_domain_is_no_kink_of_its_own() -> None:
    source = STEPS.replace("x * x + {step}", "sg.sqrt(x + 1)").replace(
        "2 * g * x", "g / (2 * sg.sqrt(x + 1))"
    )
    found = sg.verify(function_from(source), "n", suggest=False)
    assert found.verdict is sg.PROVED, str(found)
    assert not [one for one in found.conditions if one.kind == "kink"]
