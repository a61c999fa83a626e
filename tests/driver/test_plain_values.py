"""Values of plain arguments: printed wherever a verdict stands, and no others in compiled calls."""

from __future__ import annotations

import ast
import importlib
import json
import math
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import symgrad as sg
from symgrad.abi import Op, Value
from symgrad.errors import KernelArgumentError, NotProvedError
from symgrad.frontend.request import bind
from symgrad.frontend.trace import trace_request
from symgrad.kernels import plan
from symgrad.numpy_op import NumpyOp
from symgrad.plain_values import described, literal
from symgrad.runtime.values import Values
from symgrad.tools.cli import main

SOURCE = """
import symgrad as sg


class Scale(sg.Function):
    @staticmethod
    def forward(
        ctx, x: "f32[n]", alpha=1.0, *, mode=("*/", '"' * 3, "\\\\"), absent=None, beta=1.0
    ):
        ctx.factor = [0.0, beta][int(alpha)]
        return x * ctx.factor

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor, None


class Wrong(sg.Function):
    @staticmethod
    def forward(ctx, x: "f32[n]", power=3):
        ctx.save_for_backward(x)
        return x**power

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x, None
"""
SAID = "alpha = 1.0"
JUDGED = "0.25 or 0.5 or 1.0"


@pytest.fixture
def ops(tmp_path: Path) -> Path:
    path = tmp_path / "plain_ops.py"
    path.write_text(SOURCE)
    return path


def run(*arguments: object) -> str:
    return CliRunner().invoke(main, list(map(str, arguments)), catch_exceptions=False).output


# -- where they are printed


@pytest.mark.slow
def test_wherever_a_verdict_stands_the_values_stand(ops: Path, tmp_path: Path) -> None:
    sarif, junit = tmp_path / "log.sarif", tmp_path / "junit.xml"
    printed = run("verify", ops, "--sarif", sarif, "--junit", junit)
    assert "for all real beta; for alpha = 0.25 or 0.5" in printed
    assert "Wrong: REFUTED for power = 3" in printed
    plain = json.loads(CliRunner().invoke(main, ["verify", str(ops), "--json"]).stdout)
    assert [one["values"].get("alpha") for one in plain] == [JUDGED, None]
    assert plain[1]["values"] == {"power": "3"}
    assert plain[0]["values"]["absent"] == "None"
    (log,) = json.loads(sarif.read_text())["runs"]
    assert plain[0]["quantified"] == ["all real beta"]
    expected = [plain[0]["values"] | {"proved for": "all real beta"}, plain[1]["values"]]
    assert [one["values"] for one in log["properties"]["judged"]] == expected
    assert "for power = 3" in log["results"][0]["message"]["text"]
    assert log["results"][0]["properties"]["values"] == {"power": "3"}
    cases = list(ElementTree.parse(junit).iter("testcase"))
    for case, values in zip(cases, expected, strict=True):
        assert {p.get("name"): p.get("value") for p in case.iter("property")} == values
    assert "for power = 3" in str(cases[1].find("failure").get("message"))  # type: ignore[union-attr]


def test_in_notebooks_and_errors() -> None:
    report = sg.verify(Powers, "n", static={"power": 2})
    assert "for power = 2" in report._repr_html_()
    with pytest.raises(NotProvedError, match="REFUTED for power = 3"):
        sg.verify(Powers, "n", suggest=False).raise_for_verdict()


def test_an_instance_is_judged_for_what_it_was_made_with() -> None:
    assert sg.verify(Made, "n").given == " for factor = 2.0"
    assert sg.verify(Made, "n", static={"factor": 3}).given == " for factor = 3"
    assert sg.verify(Made(0.5), "n").given == " for factor = 0.5"


# -- what a compiled op takes


class Powers(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, power: int = 3) -> Any:
        ctx.save_for_backward(x)
        return x**power

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * grad * x, None


class Made(sg.Function):
    def __init__(self, factor: float = 2.0) -> None:
        self.factor = factor

    def forward(self, x: Any) -> Any:  # type: ignore[override]
        return x * self.factor

    def backward(self, grad: Any) -> Any:  # type: ignore[override]
        return grad * self.factor


def double(x: Any) -> Any:
    return 2 * x


class Mixed(sg.Function):
    @staticmethod
    def forward(
        ctx: Any, k: Any, x: Any, f: Any, y: Any, out: Any = (1, "a"), *, z: Any = None
    ) -> Any:
        return f(x) + y

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return None, 2 * grad, None, grad


X = np.arange(3, dtype=np.float32)
RIGHT: list[Callable[[Any], Any]] = [
    lambda op: op(X, X),
    lambda op: op(math.nan, X, double, X),
    lambda op: op(math.nan, X, double, X, (1, "a"), z=None),
    lambda op: op(X, X, k=math.nan, f=double, z=None),
    lambda op: op(sg.tensor(X), sg.tensor(X), k=math.nan).numpy(),
    lambda op: op(math.nan, sg.tensor(X), double, X).numpy(),
    lambda op: op.inference(X, X, z=None, k=math.nan),
    lambda op: op.inference(X, X, f=double),
    lambda op: op.forward(X, X, z=None)[0],
    lambda op: op(X, X, k=np.float64("nan")),
    lambda op: op(np.float32("nan"), X, double, X),
    lambda op: op.inference(X, X, k=np.float64("nan")),
]
WRONG: list[Callable[[Any], Any]] = [
    lambda op: op(1.0, X, double, X),
    lambda op: op(math.nan, X, lambda x: 2 * x, X),
    lambda op: op(math.nan, X, double, X, (1.0, "a")),
    lambda op: op(math.nan, X, double, X, [1, "a"]),
    lambda op: op(X, X, z=False),
    lambda op: op(sg.tensor(X), sg.tensor(X), k=1.0),
    lambda op: op(1.0, sg.tensor(X), double, X),
    lambda op: op.inference(X, X, k=1.0),
    lambda op: op.forward(X, X, z=0),
]
MIXED = (Mixed, "f32[n]", "f32[n]")
STATIC = {"k": math.nan, "f": double}


@pytest.fixture(scope="module", params=["compiled", "on NumPy"])
def mixed(request: pytest.FixtureRequest) -> Any:
    if request.param == "compiled":
        return sg.compile(*MIXED, static=STATIC)
    bound = bind(MIXED[0], MIXED[1:], STATIC)
    return NumpyOp(plan(trace_request(bound)), origin=bound)


def test_a_call_passes_what_was_compiled_in(mixed: Any) -> None:
    for call in RIGHT:
        np.testing.assert_array_equal(call(mixed), 3 * X)
    for call in WRONG:
        with pytest.raises(KernelArgumentError):
            call(mixed)
    unknown: list[dict[str, Any]] = [{"w": 1}, {"w": None, "z": None}]
    for function in (mixed, mixed.forward, mixed.inference):
        for names in unknown:
            with pytest.raises(TypeError, match="'w'"):
                function(X, X, **names)
    with pytest.raises(TypeError, match="twice"):
        mixed(math.nan, X, double, X, k=math.nan)
    assert "for k = nan, f = tests.driver.test_plain_values.double, out = (1, 'a')" in repr(mixed)


NUMBERS: list[Any] = [0, 1, 2, -1, 0.0, -0.0, 1.0, 2.0, 0.1, True, False, math.inf, math.nan]
KINDS: list[Any] = [
    *(np.bool_, np.int8, np.int64, np.uint64, np.float16, np.float32, np.float64, np.longdouble),
    *(bool, int, float, complex),
]


def test_a_number_counts_only_as_one_of_its_value_and_kind() -> None:
    op = Op(name="some", differentiable=(True,), cases=(), files=(), header="some.h")
    for compiled in NUMBERS:
        known = Values(replace(op, values=(Value("alpha", repr(compiled)),)), {})
        for number, kind in product(NUMBERS, KINDS):
            with np.errstate(all="ignore"), suppress(OverflowError, ValueError):
                passed = kind(number)
                python = passed.item() if isinstance(passed, np.generic) else passed
                if (type(python), repr(python)) == (type(compiled), repr(compiled)):
                    known.check("some", "alpha", passed)
                    continue
                with pytest.raises(KernelArgumentError, match=f"pass {compiled!r}, leave alpha"):
                    known.check("some", "alpha", passed)


def test_a_package_has_the_values_in_header_manifest_and_calls(
    ops: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "plain_package"
    run("build", f"{ops}:Scale", "-o", folder, "--no-compile")
    for name in ("scale.h", "scale.c", "scale.py"):
        assert f"PROVED for all real beta; for {SAID}" in (folder / name).read_text()
    manifest = json.loads((folder / "MANIFEST.json").read_text())
    assert manifest["ops"]["scale"]["proof"]["values"]["alpha"] == "1.0"
    assert f"PROVED again for {SAID}" in run(
        "verify", "--certificate", folder, "--root", ops.parent
    )
    monkeypatch.syspath_prepend(tmp_path)
    try:
        scale = importlib.import_module("plain_package.scale")
        mode = ast.literal_eval(manifest["ops"]["scale"]["proof"]["values"]["mode"])
        for found in (scale.inference(X, 1.0), scale.forward(X, alpha=1.0, mode=mode)[0]):
            np.testing.assert_array_equal(found, X)
        np.testing.assert_array_equal(scale.inference(X, beta=2.5), 2.5 * X)
        for wrong in ({"alpha": 2.0}, {"alpha": 1}, {"mode": mode[::-1]}, {"absent": X}):
            with pytest.raises(ValueError, match="is compiled for"):
                scale.forward(X, **wrong)
    finally:
        for name in [name for name in sys.modules if name.startswith("plain_package")]:
            del sys.modules[name]


# -- texts

numbers = st.one_of(st.integers(), st.floats(), st.booleans(), st.complex_numbers())
leaves = st.one_of(
    numbers,
    st.none(),
    st.text(),
    st.binary(),
    st.integers().map(lambda i: 3**i if 0 < i < 4000 else i),
)
hashable = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=4)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(hashable, inner, max_size=3),
        st.frozensets(hashable, max_size=3),
    ),
    max_leaves=8,
)


def same(one: Any, other: Any) -> bool:
    """Alike to the last bit, types and signs of zeros included."""
    if type(one) is not type(other):
        return False
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return same(list(one.items()), list(other.items()))
    if isinstance(one, frozenset):
        return len(one) == len(other) and all(any(same(a, b) for b in other) for a in one)
    return repr(one) == repr(other) if isinstance(one, (float, complex)) else bool(one == other)


@settings(max_examples=300, deadline=None)
@given(values, values)
def test_two_values_have_one_text_only_if_they_are_alike(one: Any, other: Any) -> None:
    assert (literal(one) == literal(other)) == same(one, other)
    text = literal(one)
    assert text == described(one) == literal(one)
    assert text is not None
    assert text.isprintable()
    assert len(text) < 200


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class Named:
    def __repr__(self) -> str:
        return f"<Named object at {id(self):#x}>\n\ud800"


def test_what_has_no_literal_is_named_without_its_address() -> None:
    circle: list[Any] = []
    circle.append(circle)
    for value in (Hostile(), Named(), circle, (1, double), np.float64(1), np.zeros(2), len):
        assert literal(value) is None
        assert described(value).isprintable()
    assert described(Named()) == r"<Named object> \ud800"
    assert described((1, double)) == "(1, tests.driver.test_plain_values.double)"
    assert described(Hostile()) == "<Hostile>"
