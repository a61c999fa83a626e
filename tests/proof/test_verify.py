"""verify on Functions as users write them: verdicts, conditions, protocol, reports, suggestions."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import symgrad as sg
from symgrad.errors import NotProvedError, SpecError
from symgrad.proof.report.records import Report
from symgrad.proof.report.verdict import Verdict, worst
from tests.proof.written import function_from


def _verify(source: str, *specs: str | None, **options: object) -> Report:
    return sg.verify(function_from(source), *specs, **options)  # type: ignore[arg-type]


SOFTPLUS = """
def forward(ctx, x):
    ctx.save_for_backward(x)
    return sg.log1p(sg.exp(x))

def backward(ctx, grad_y):
    x, = ctx.saved_tensors
    return {}
"""


def test_the_example_of_the_readme() -> None:
    report = _verify(SOFTPLUS.format("grad_y * sg.sigmoid(x)"), "n m")
    assert report.verdict is sg.PROVED
    report.raise_for_verdict()
    assert "for all m, n >= 1" in str(report)


@pytest.fixture(scope="module")
def wrong() -> Report:
    return _verify(SOFTPLUS.format("grad_y * sg.sigmoid(-x)"), "n m")


def test_a_wrong_backward_is_refuted(wrong: Report) -> None:
    assert wrong.verdict is sg.REFUTED
    found = wrong.inputs["x"].counterexample
    assert found is not None
    assert found.sizes == {"m": 1, "n": 1}
    assert found.true == pytest.approx(1 - found.hand)
    with pytest.raises(NotProvedError, match="x is REFUTED"):
        wrong.raise_for_verdict()


def test_the_report_reads_well(wrong: Report) -> None:
    text = str(wrong)
    assert text.startswith("Written: REFUTED")
    for part in ("smallest counterexample", "yours", "write instead (proved)", "protocol"):
        assert part in text
    assert all(len(line) <= 110 for line in text.splitlines())


def test_the_report_is_data_and_html(wrong: Report) -> None:
    found = json.loads(json.dumps(wrong.to_dict()))
    assert found["verdict"] == "REFUTED"
    assert found["inputs"]["x"]["counterexample"]["element"] == "grad_x[0, 0]"
    page = wrong._repr_html_()
    assert "REFUTED" in page
    assert "<table>" in page


def test_the_snippet_recomputes_the_counterexample(wrong: Report) -> None:
    found = wrong.inputs["x"].counterexample
    assert found is not None
    run = subprocess.run(
        [sys.executable, "-c", found.snippet], capture_output=True, text=True, check=True
    )
    written, quotient = (float(line.rpartition(" ")[2]) for line in run.stdout.splitlines())
    assert written == pytest.approx(found.hand)
    assert quotient == pytest.approx(found.true, rel=1e-5)


REPAIRED = {
    "sign": ("x.sin()", "-grad_y * x.cos()", "n"),
    "factor": ("x * x", "grad_y * x", "n m"),
    "upstream": ("x.exp()", "y", "n m"),
    "size": ("x.mean(-1)", "grad_y.unsqueeze(-1).expand_as(x)", "n m"),
    "term": ("x.tanh()", "grad_y * (1 + y * y)", "n"),
    "softmax": ("x.softmax(-1)", "y * grad_y", "n m"),
    "norm": (
        "x / (x * x).sum(-1, keepdim=True).sqrt()",
        "grad_y / (x * x).sum(-1, keepdim=True).sqrt()", "n m",
    ),
    "cumsum": ("x.cumsum(-1)", "grad_y.cumsum(-1)", "n m"),
}  # fmt: skip
TEMPLATE = """
def forward(ctx, x):
    y = {}
    ctx.save_for_backward(x, y)
    return y

def backward(ctx, grad_y):
    x, y = ctx.saved_tensors
    return {}
"""


@pytest.mark.parametrize("name", sorted(REPAIRED))
def test_suggestions_can_be_pasted(name: str) -> None:
    """What is suggested, put in the place of what was wrong, is proved."""
    forward, backward, spec = REPAIRED[name]
    report = _verify(TEMPLATE.format(forward, backward), spec)
    assert report.verdict is sg.REFUTED
    suggestion = report.inputs["x"].suggestion
    assert suggestion is not None, str(report)
    *statements, result = suggestion.splitlines()
    body = "".join(f"{line}\n    " for line in statements) + "return "
    text = TEMPLATE.replace("return {}", "{}").format(forward, body + result)
    assert _verify(text, spec).verdict is sg.PROVED, suggestion


@pytest.mark.parametrize(
    ("forward", "backward", "text"),
    [
        ("x.sum(0)", "g.expand_as(x) / x.shape[0]", "PROVED if n == 1, a sufficient condition"),
        ("x.t() @ x", "x @ g + x @ g", "PROVED if m == 1"),
        ("(x * x).sqrt()", "g", "PROVED if x > 0, a sufficient condition"),
        ("x.mean(0)", "g.expand_as(x) / 4", "PROVED if n == 4, a sufficient condition"),
        ("x / x.shape[0]", "g / x.shape[1]", "PROVED if m == n, a sufficient condition"),
    ],
)
def test_conditions_are_found(forward: str, backward: str, text: str) -> None:
    source = TEMPLATE.replace("grad_y", "g").format(forward, backward)
    report = _verify(source, "n m")
    assert report.verdict is sg.REFUTED
    assert any(text in str(condition) for condition in report.conditions), str(report)


def test_a_squeeze_that_goes_too_far() -> None:
    """squeeze() for squeeze(dim): wrong only where another size is 1."""
    source = """
def forward(ctx, x, b):
    return x + b

def backward(ctx, g):
    return g, g.sum(0).squeeze(0)
"""
    report = _verify(source, "n k", "k")
    cases = {case.when: case.verdict for case in report.inputs["b"].cases}
    assert cases == {"k != 1": sg.PROVED, "k == 1": sg.REFUTED}
    assert "PROVED if k != 1" in str(report)


def test_assumptions_are_needed_and_printed() -> None:
    source = TEMPLATE.format("(x * x).sqrt()", "grad_y")
    assert _verify(source, "n").verdict is sg.REFUTED
    report = _verify(source, "n", assume={"x": "positive"})
    assert report.verdict is sg.PROVED
    assert "x > 0" in str(report)


def test_assumptions_about_nothing_are_refused() -> None:
    with pytest.raises(SpecError):
        _verify(TEMPLATE.format("x * 1", "grad_y"), "n", assume={"z": "positive"})


def test_a_missing_gradient_is_refuted() -> None:
    source = """
def forward(ctx, x, w):
    ctx.save_for_backward(x, w)
    return x * w

def backward(ctx, g):
    x, w = ctx.saved_tensors
    return g * w, None
"""
    report = _verify(source, "n", "n")
    assert report.inputs["x"].verdict is sg.PROVED
    assert report.inputs["w"].verdict is sg.REFUTED
    assert report.inputs["w"].counterexample is not None
    assert report.inputs["w"].counterexample.hand == 0.0


def test_none_is_right_where_the_gradient_is_zero() -> None:
    source = """
def forward(ctx, x, w):
    return x * 2 + w.floor() * 0

def backward(ctx, g):
    return g * 2, None
"""
    assert _verify(source, "n", "n").verdict is sg.PROVED


PROTOCOL = {
    "a second call agrees": """
def forward(ctx, x):
    ctx.save_for_backward(x)
    return x * x

def backward(ctx, g):
    x, = ctx.saved_tensors
    return x.mul_(2) * g
""",
    "the incoming gradients are left alone": """
def forward(ctx, x):
    return x * 2

def backward(ctx, g):
    return g.mul_(2)
""",
    "linear in the cotangents": """
def forward(ctx, x):
    return x * 2

def backward(ctx, g):
    return g * 2 + g * g
""",
    "shapes of the gradients": """
def forward(ctx, x):
    return x.sum(-1)

def backward(ctx, g):
    return g
""",
}


@pytest.mark.parametrize("theorem", sorted(PROTOCOL))
def test_protocol_theorems(theorem: str) -> None:
    report = _verify(PROTOCOL[theorem], "n m")
    found = {finding.name: finding.verdict for finding in report.protocol}
    assert found[theorem] is sg.REFUTED
    assert report.verdict is sg.REFUTED


def test_a_sum_down_to_the_inputs_shape_is_said() -> None:
    source = """
def forward(ctx, x, b):
    return x + b

def backward(ctx, g):
    return g, g
"""
    report = _verify(source, "n m", "m")
    assert report.verdict is sg.PROVED
    assert "summed down" in " ".join(str(report).split())


def test_second_order() -> None:
    source = """
def forward(ctx, x):
    slope = {}
    ctx.save_for_backward(x, slope)
    return x ** 3

def backward(ctx, g):
    x, slope = ctx.saved_tensors
    return g * {}
"""
    assert _verify(source.format("3 * x * x", "slope"), "n").verdict is sg.PROVED
    lost = _verify(source.format("3 * x * x", "slope"), "n", order=2)
    assert lost.verdict is sg.REFUTED
    assert "slope" in str(lost)
    kept = _verify(source.format("3 * x * x", "3 * x * x"), "n", order=2)
    assert kept.verdict is sg.PROVED


def test_verdicts_are_ordered() -> None:
    assert worst([]) is Verdict.PROVED
    assert worst([sg.PROVED, sg.UNDECIDED]) is sg.UNDECIDED
    assert worst([sg.REFUTED, sg.UNDECIDED, sg.PROVED]) is sg.REFUTED


@pytest.mark.slow
def test_the_report_does_not_depend_on_the_hash_seed(tmp_path: Path) -> None:
    program = (
        "import symgrad as sg\n"
        "from tests.proof.test_verify import TEMPLATE, REPAIRED, _verify\n"
        "forward, backward, spec = REPAIRED['norm']\n"
        "print(_verify(TEMPLATE.format(forward, backward), spec))\n"
    )
    outputs = set()
    for seed in ("0", "1", "77"):
        run = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True,
            env={"PYTHONHASHSEED": seed, "PATH": "", "HOME": str(tmp_path)},
        )  # fmt: skip
        outputs.add(run.stdout)
    assert len(outputs) == 1


def test_what_is_scattered_into_zeros_is_linear_in_the_cotangents() -> None:
    source = """
def forward(ctx, x, place):
    ctx.save_for_backward(place)
    ctx.shape = x.shape
    return x[place]

def backward(ctx, g):
    place, = ctx.saved_tensors
    return sg.zeros(ctx.shape).scatter_add(0, place, 2 * g), None
"""
    report = _verify(source, "n", "i64[k]")
    assert report.verdict is sg.REFUTED
    linear = next(one for one in report.protocol if one.name == "linear in the cotangents")
    assert linear.verdict is sg.PROVED


VALUES = """
def forward(ctx, x, beta=1.5, mode="plain"):
    ctx.save_for_backward(x)
    ctx.beta = beta
    return beta * x

def backward(ctx, grad_y):
    return ctx.beta * grad_y, None, None
"""


def test_the_values_that_a_verdict_holds_for_are_printed() -> None:
    assert "PROVED for all real beta; for mode = 'plain' " in str(_verify(VALUES, "n"))
    assert "PROVED for beta = -2, mode = 'plain' " in str(_verify(VALUES, "n", static={"beta": -2}))
    assert not _verify(SOFTPLUS.format("grad_y * sg.sigmoid(x)"), "n m").values


@pytest.mark.parametrize(("low", "high"), [(-1, 1), (0, 3)])
def test_the_kinks_of_a_clamp_are_told_of_the_input(low: int, high: int) -> None:
    report = _verify(
        """
def forward(ctx, x):
    ctx.save_for_backward(x)
    return sg.clamp(x, LOW, HIGH)

def backward(ctx, grad_y):
    x, = ctx.saved_tensors
    return grad_y * sg.logical_and(x >= LOW, x <= HIGH)
""".replace("LOW", str(low)).replace("HIGH", str(high)),
        "n",
    )
    assert report.verdict is sg.PROVED
    told = [str(condition) for condition in report.inputs["x"].conditions]
    assert told == [f"x == {at} (yours gives 1 there)" for at in (low, high)]


def test_a_branch_that_is_constant_has_no_kink() -> None:
    report = _verify(
        """
def forward(ctx, x):
    ctx.save_for_backward(x)
    inner = sg.where(x < -1, 1.0, x)
    return sg.where(inner > 1, 2 * inner, inner)

def backward(ctx, grad_y):
    x, = ctx.saved_tensors
    return grad_y * sg.where(x < -1, 0.0, sg.where(x > 1, 2.0, 1.0))
""",
        "n",
    )
    assert report.verdict is sg.PROVED
    told = {str(one).partition(" (")[0] for one in report.inputs["x"].conditions}
    assert told == {"x == -1", "x == 1"}
