"""A mistake that more axes show is no condition where forward is written for any number of them."""

from __future__ import annotations

import pytest

import symgrad as sg
from tests.suite.adversarial.program import class_of, class_text

ROOT = "r = (x.square().mean(-1, keepdim=True) + 0.1).sqrt()"
NORM = "d = x.norm(); y = x / d"
KEPT = ", True"
PROGRAMS = {  # forward, backward, where {} is what a mistake forgets, and what a right one has
    "softmax": ("x.softmax(-1)", "y = x.softmax(-1); y * (g - (g * y).sum(-1{}))", KEPT),
    "centred": ("x - x.mean(-1, keepdim=True)", "g - g.mean(-1{})", KEPT),
    "logsumexp": ("x.logsumexp(-1)", "g{} * x.softmax(-1)", "[..., None]"),
    "root mean square": (
        f"{ROOT}; x / r", f"{ROOT}; g / r - x * (g * x).mean(-1{{}}) / r ** 3", KEPT,
    ),
    "normalised as a whole": (f"{NORM}; y", f"{NORM}; (g - y * (g * y).sum({{}})) / d", ""),
}  # fmt: skip
FORGOTTEN = {"normalised as a whole": "-1"}


def _verdict(name: str, part: str) -> sg.Report:
    forward, backward, _ = PROGRAMS[name]
    text = class_text("Any", forward, backward.format(part), ["x"])
    return sg.verify(class_of("Any", text, sg), timeout=None, suggest=False)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_forgotten_axis_is_refuted(name: str) -> None:
    right = _verdict(name, PROGRAMS[name][2])
    assert right.verdict == "PROVED", str(right)
    wrong = _verdict(name, FORGOTTEN.get(name, ""))
    assert wrong.verdict == "REFUTED", str(wrong)


def test_a_row_of_products_forgets_an_axis() -> None:
    def judged(part: str) -> sg.Report:
        text = class_text("Row", "(x * w).sum(-1)", f"t = g{part}; t * w, t * x", ["x", "w"])
        return sg.verify(class_of("Row", text, sg), timeout=None, suggest=False)

    assert judged("[..., None]").verdict == "PROVED"
    assert judged("").verdict == "REFUTED"


def test_a_backward_that_is_written_for_vectors_is_a_condition() -> None:
    text = class_text(
        "Vector", "x.softmax(-1)", "y = x.softmax(-1); (sg.diag(y) - sg.outer(y, y)) @ g", ["x"]
    )
    report = sg.verify(class_of("Vector", text, sg), timeout=None, suggest=False)
    assert report.verdict == "PROVED", str(report)
    (condition,) = report.conditions
    assert condition.text.startswith("the shapes are x[n] (backward fails for x[n, ")


def test_a_backward_for_one_matrix_is_a_condition() -> None:
    text = class_text("Determinant", "sg.logdet(a)", "g * sg.linalg.inv(a).mT", ["a"])
    report = sg.verify(class_of("Determinant", text, sg), timeout=None, suggest=False)
    assert report.verdict == "PROVED", str(report)
    assert "if the shapes are a[n, n] (" in str(report)


def test_forward_that_counts_from_the_first_axis_takes_more_by_accident() -> None:
    text = class_text(
        "Counted", "x / x.sum(1, keepdim=True)",
        "s = x.sum(1, keepdim=True); (g - (g * x).sum(-1)[:, None] / s) / s", ["x"],
    )  # fmt: skip
    report = sg.verify(class_of("Counted", text, sg), timeout=None, suggest=False)
    assert report.verdict == "PROVED", str(report)
    assert any(one.text.startswith("the shapes are x[n, m] (") for one in report.conditions)


def test_a_mask_of_fewer_axes_than_its_tensor_is_a_condition() -> None:
    text = class_text(
        "Selected", "x[mask].square().mean()",
        "z = sg.zeros_like(x); z[mask] = 2 * x[mask] * g {}/ mask.sum(); z, None", ["x", "mask"],
    )  # fmt: skip
    right = sg.verify(class_of("Selected", text.format(""), sg), timeout=None, suggest=False)
    assert right.verdict == "PROVED", str(right)
    assert "if the shapes are x[n, m], bool mask[n, m] (" in str(right)
    wrong = sg.verify(class_of("Selected", text.format("* 2 "), sg), timeout=None, suggest=False)
    assert wrong.verdict == "REFUTED", str(wrong)
