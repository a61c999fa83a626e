"""Plain numbers that each call passes: what kernels compute with them, what calls may pass."""

from __future__ import annotations

import importlib
import json
import math
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import symgrad as sg
from symgrad.compiler import build, judged_plan
from symgrad.emission import emit
from symgrad.errors import KernelArgumentError, KernelTypeError
from symgrad.frontend.plain import with_regions
from symgrad.frontend.regions import Region
from symgrad.frontend.request import bind
from symgrad.frontend.trace import trace_request
from symgrad.kernels import plan
from symgrad.manifest import proof_line
from symgrad.numpy_op import NumpyOp
from symgrad.tools.cli import main
from tests.suite.adversarial.loader import over_symgrad


class Swish(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, beta: float = 1.0, *, shift: int = 2) -> Any:
        s = sg.sigmoid(beta * x)
        ctx.save_for_backward(x, s)
        ctx.beta = beta
        return x * s + (1 - shift**2) / 3

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, s = ctx.saved_tensors
        return g * (s + ctx.beta * x * s * (1 - s)), None


class Again(Swish):
    """What it differentiates by is computed in backward."""

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, _ = ctx.saved_tensors
        s = sg.sigmoid(ctx.beta * x)
        return g * (s + ctx.beta * x * s * (1 - s)), None


class Positive(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, alpha: float = 1.0, mode: str = "a") -> Any:
        ctx.alpha = alpha
        return x * math.log(alpha) if mode == "a" else x * alpha

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * math.log(ctx.alpha), None, None


class Between(sg.Function):
    """The number stands before a tensor."""

    @staticmethod
    def forward(ctx: Any, x: Any, slope: float = 0.5, y: Any = None) -> Any:
        ctx.slope = slope
        ctx.save_for_backward(x)
        return sg.where(x > 0, x, slope * x) + y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return sg.where(x > 0, g, ctx.slope * g), None, g


def swish(x: Any, beta: float, shift: int) -> tuple[Any, Any]:
    """The value and the derivative by x, in the precision of x."""
    beta, moved = x.dtype.type(beta), x.dtype.type((1 - shift**2) / 3)
    s = 1 / (1 + np.exp(-beta * x))
    return x * s + moved, s + beta * x * s * (1 - s)


def on_numpy(function: Any, *specs: str, **numbers: float) -> NumpyOp:
    """The op without C, with these numbers as symbols."""
    bound = bind(function, specs)
    general = with_regions(bound, {name: Region(name, one) for name, one in numbers.items()})
    return NumpyOp(plan(trace_request(general)), origin=bound)


@pytest.fixture(scope="module", params=["float32", "float64", "on NumPy"])
def op(request: pytest.FixtureRequest) -> Any:
    if request.param == "on NumPy":
        return on_numpy(Swish, "f32[n m]", beta=1.0, shift=2), np.float32
    spec = {"float32": "f32", "float64": "f64"}[request.param]
    return sg.compile(Swish, f"{spec}[n m]"), np.dtype(request.param).type


reals = st.floats(-20, 20, width=32)


@settings(max_examples=60, deadline=None)
@given(beta=reals, shift=st.integers(-1000, 1000), seed=st.integers(0, 99))
def test_kernels_compute_with_the_numbers_of_the_call(
    op: Any, beta: float, shift: int, seed: int
) -> None:
    kernels, dtype = op
    x = np.random.default_rng(seed).normal(size=(3, 5)).astype(dtype)
    y, slope = swish(x, beta, shift)
    close: dict[str, Any] = {"rtol": 1e-5 if dtype is np.float32 else 1e-12, "atol": 1e-5}
    calls: list[Callable[[], Any]] = [
        lambda: kernels(x, beta, shift=shift),
        lambda: kernels.inference(x, beta=beta, shift=shift),
        lambda: kernels(sg.tensor(x), beta, shift=shift).numpy(),
    ]
    for call in calls:
        np.testing.assert_allclose(call(), y, **close)
    found, residuals = kernels.forward(x, beta, shift=shift)
    np.testing.assert_allclose(found, y, **close)
    assert residuals.sizes == {"n": 3, "m": 5}
    np.testing.assert_allclose(kernels.backward(residuals, np.ones_like(x))[0], slope, **close)
    leaf = sg.tensor(x).requires_grad_()
    kernels(leaf, beta, shift=shift).sum().backward()
    np.testing.assert_allclose(leaf.grad.numpy(), slope, **close)


def test_what_counts_as_a_number(op: Any) -> None:
    kernels, dtype = op
    x = np.linspace(-2, 2, 6, dtype=dtype).reshape(2, 3)
    for two in (2.0, 2, np.float32(2), np.float16(2), np.longdouble(2), np.int8(2), np.array(2.0)):
        np.testing.assert_array_equal(kernels(x, two), kernels(x, 2.0))
    for one in (True, np.bool_(True), np.array(1)):
        np.testing.assert_array_equal(kernels(x, one, shift=one), kernels(x, 1.0, shift=1))
    np.testing.assert_array_equal(kernels(x), kernels(x, 1.0, shift=2))
    assert np.isnan(kernels(x, math.nan)).all()
    assert np.isnan(kernels(x * 0, math.inf)).all()
    with np.errstate(over="ignore"):
        huge = np.float64(2.0**200).astype(dtype)
    np.testing.assert_array_equal(kernels(x, 2**200), kernels(x, float(huge)))
    wrong: list[Any] = [
        "1.0",
        None,
        1j,
        [1.0],
        np.ones(1),
        (),
        np.array("a"),
        sg.tensor(1.0),
        object,
    ]
    for value in wrong:
        for call in (kernels, kernels.forward, kernels.inference):
            with pytest.raises(KernelTypeError, match=r"beta is .*, and a number is expected"):
                call(x, value)
    for value in (1.0, np.float32(1), *wrong):
        with pytest.raises(KernelTypeError, match=r"shift is .*, and an integer is expected"):
            kernels(x, shift=value)
    for names in ({"beta": 10**400}, {"shift": 1 << 63}, {"shift": -(1 << 63) - 1}):
        with pytest.raises(KernelArgumentError, match="does not hold"):
            kernels.forward(x, **names)
    kernels(x, shift=-(1 << 63))
    with pytest.raises(KernelTypeError, match=r"given twice|multiple values"):
        kernels(x, 1.0, beta=1.0)
    residuals = kernels.forward(x, 2.0)[1]
    changed = type(residuals)("2" if type(one) is float else one for one in residuals)
    with pytest.raises(KernelTypeError, match="not the number"):
        kernels.backward(changed, x)


def test_a_number_for_which_it_is_not_proved_is_refused() -> None:
    kernels = sg.compile(Positive, "f64[n]")
    x = np.arange(4.0)
    for alpha in (0.5, 1.0, 3.0):
        found, residuals = kernels.forward(x, alpha)
        np.testing.assert_allclose(found, x * math.log(alpha))
        slope: Any = kernels.backward(residuals, x)[0]
        np.testing.assert_allclose(slope, x * math.log(alpha))
    for alpha in (0.0, -0.0, -1.0, math.nan, -math.inf, 0, False):
        for call in (kernels, kernels.inference, kernels.forward):
            with pytest.raises(KernelArgumentError, match="compiled for alpha > 0"):
                call(x, alpha)
    with pytest.raises(KernelArgumentError, match="compiled for mode = 'a'"):
        kernels(x, 1.0, "b")
    assert "for all real alpha > 0; for mode = 'a'" in repr(kernels)


class Branches(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, alpha: float = 0.0, factor: int = 2) -> Any:
        ctx.alpha, ctx.factor = alpha, factor
        ctx.save_for_backward(x)
        if alpha < 0:
            return x * x * alpha * factor
        return x * factor if alpha == 0 else x * alpha * factor

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        if ctx.alpha < 0:
            return 2 * g * x * ctx.alpha * ctx.factor, None, None
        return g * (ctx.alpha if ctx.alpha else 1) * ctx.factor, None, None


def test_a_branch_on_a_number_is_a_case_of_the_kernels() -> None:
    kernels = sg.compile(Branches, "f64[n]")
    assert "for all real alpha, all integer factor" in repr(kernels)
    x = np.linspace(-1, 1, 4)
    for alpha in (0.0, -0.0, 2.5, -2.5, 0, True, 1e-300):
        for factor in (2, -3):
            leaf = sg.tensor(x).requires_grad_()
            y = Branches.apply(leaf, alpha, factor)
            y.sum().backward()
            found, residuals = kernels.forward(x, alpha, factor)
            np.testing.assert_allclose(found, y.detach().numpy())
            np.testing.assert_allclose(kernels(x, alpha, factor=factor), found)
            slope: Any = kernels.backward(residuals, np.ones(4))[0]
            np.testing.assert_allclose(slope, leaf.grad.numpy())
    with pytest.raises(KernelArgumentError, match=r"alpha is nan, .* alpha < 0 or alpha > 0"):
        kernels(x, math.nan)


def test_a_number_among_tensors_goes_by_place_or_by_name() -> None:
    kernels = sg.compile(Between, "f32[n]", "f32[n]")
    x = np.array([-1.0, 2.0], np.float32)
    expected = np.array([-3.0, 2.0], np.float32) + x
    np.testing.assert_array_equal(kernels(x, 3.0, x), expected)
    np.testing.assert_array_equal(kernels(x, x, slope=3), expected)
    np.testing.assert_array_equal(kernels.inference(x, x, slope=3.0), expected)


def test_the_second_derivative_has_the_number_of_the_call() -> None:
    kernels = sg.compile(Again, "f64[n]")
    for beta in (0.5, -2.0):
        x = sg.tensor(np.linspace(-1, 1, 5)).requires_grad_()
        y = kernels(x, beta)
        (first,) = sg.autograd.grad(y.sum(), x, create_graph=True)
        (second,) = sg.autograd.grad(first.sum(), x)
        values, step = x.detach().numpy(), 1e-6
        quotient = (swish(values + step, beta, 2)[1] - swish(values - step, beta, 2)[1]) / 2 / step
        np.testing.assert_allclose(second.numpy(), quotient, rtol=1e-6)


PROGRAM = """
import sys, json
import numpy as np
sys.modules["symgrad"] = None
from package import swish, positive
x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
y, residuals = swish.forward(x, 2.5, shift=7)
(slope,) = swish.backward(residuals, np.ones_like(x))
try:
    positive.forward(x[0].astype(np.float64), -1.0)
except ValueError as error:
    print(json.dumps([y.tolist(), slope.tolist(), str(error)]))
"""


def test_a_package_takes_numbers_without_the_compiler(tmp_path: Path) -> None:
    source = tmp_path / "ops_here.py"
    text = Path(__file__).read_text()
    head, tail = text.index("class Swish"), text.index("class Between")
    imports = "import math\nfrom typing import Any\nimport symgrad as sg\n"
    source.write_text(imports + text[head:tail])
    sys.path.insert(0, str(tmp_path))
    try:
        ops = importlib.import_module("ops_here")
        ops.Swish.forward.__annotations__["x"] = "f32[n m]"
        ops.Positive.forward.__annotations__["x"] = "f64[n]"
        build([ops.Swish, ops.Positive], tmp_path / "package")
    finally:
        sys.path.remove(str(tmp_path))
        del sys.modules["ops_here"]
    header = (tmp_path / "package" / "swish.h").read_text()
    assert "const float *x, double beta, int64_t shift, float *output" in " ".join(header.split())
    assert "PROVED for all real beta, all integer shift" in header
    assert "1.0 by default" in header
    said = json.loads((tmp_path / "package" / "MANIFEST.json").read_text())["ops"]
    assert said["swish"]["proof"]["quantified"] == ["all real beta", "all integer shift"]
    assert said["positive"]["proof"]["values"] == {"mode": "'a'"}
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    y, slope, error = json.loads(found.stdout)
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_allclose((y, slope), swish(x, 2.5, 7), rtol=1e-5)
    assert "alpha is -1.0, and the op is compiled for alpha > 0" in error


OUTPUTS = """
import symgrad as sg


class Mix(sg.Function):
    assume = {"y": "constant"}

    @staticmethod
    def forward(
        ctx, x: "f32[n]", y: "f32[n]", alpha=1.5, table={"a": 2.0}, dims=[1, 2], act=abs
    ):
        ctx.alpha, ctx.table, ctx.dims = alpha, table, dims
        return alpha * x * table["a"] * dims[0] + y

    @staticmethod
    def backward(ctx, g):
        return ctx.alpha * g * ctx.table["a"] * ctx.dims[0], None, None, None, None, None
"""


def test_every_output_names_symbols_fixed_values_and_what_is_constant(tmp_path: Path) -> None:
    path = tmp_path / "mixed_ops.py"
    path.write_text(OUTPUTS)
    sarif, junit, folder = (tmp_path / name for name in ("log.sarif", "junit.xml", "built"))
    run = CliRunner().invoke
    said = "for all real alpha; for table = {'a': 2.0}, dims = [1, 2], act = builtins.abs"
    constant = "y is constant"

    def says(text: str) -> None:
        flat = " ".join(text.replace("&#x27;", "'").replace(" * ", " ").split())
        assert said in flat
        assert constant in flat

    printed = run(main, ["verify", str(path), "--sarif", str(sarif), "--junit", str(junit)])
    assert printed.exit_code == 0
    says(re.sub(r"[│┃]", " ", printed.output))
    (one,) = json.loads(run(main, ["verify", str(path), "--json"]).stdout)
    assert one["quantified"] == ["all real alpha"]
    assert one["values"] == {"table": "{'a': 2.0}", "dims": "[1, 2]", "act": "builtins.abs"}
    assert constant in one["inputs"]["x"]["conditions"][0]["text"]
    expected = one["values"] | {
        "proved for": "all real alpha",
        "declared": "y is constant: no gradient by it is judged",
    }
    (log,) = json.loads(sarif.read_text())["runs"]
    assert log["properties"]["judged"][0]["values"] == expected
    (case,) = ElementTree.parse(junit).iter("testcase")
    assert {one.get("name"): one.get("value") for one in case.iter("property")} == expected
    run(main, ["build", str(path), "-o", str(folder), "--no-compile"], catch_exceptions=False)
    for name in ("mix.h", "mix.c", "mix.py"):
        says((folder / name).read_text())
    proof = json.loads((folder / "MANIFEST.json").read_text())["ops"]["mix"]
    assert proof["assume"] == {"y": "constant"}
    assert proof["proof"]["quantified"] == ["all real alpha"]
    assert proof["proof"]["values"] == one["values"]
    assert constant in proof["proof"]["gradients"]["x"]["conditions"][0]["text"]
    held = run(main, ["verify", "--certificate", str(folder), "--root", str(tmp_path)])
    assert "the certificate holds" in held.output
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--symgrad", "-v", "-p", "no:cacheprovider", str(path)],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    says(done.stdout)


class Required(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, alpha: float, beta: float = 2.0, *, gamma: float) -> Any:
        ctx.factor = (1 - alpha) * beta + gamma
        return x * ctx.factor

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.factor, None, None


def test_a_number_without_a_default_is_what_each_call_gives() -> None:
    kernels = sg.compile(Required, "f32[*batch m]")
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(2, 3, 2)
    for alpha, beta, gamma in ((0.1, 2.0, 3.0), (2, 0.5, -1), (1e-9, 1.0, 0)):
        factor = np.float32((1 - alpha) * beta + gamma)
        found, residuals = kernels.forward(x, alpha, beta, gamma=gamma)
        np.testing.assert_allclose(found, x * factor, rtol=1e-6)
        np.testing.assert_allclose(kernels(x, alpha, beta, gamma=gamma), found)
        np.testing.assert_allclose(kernels(x, alpha=alpha, gamma=gamma, beta=beta), found)
        slope: Any = kernels.backward(residuals, x)[0]
        np.testing.assert_allclose(slope, x * factor, rtol=1e-6)
        leaf = sg.tensor(x).requires_grad_()
        kernels(leaf, alpha, beta, gamma=gamma).sum().backward()
        assert leaf.grad is not None
        np.testing.assert_allclose(leaf.grad.numpy(), np.full_like(x, factor), rtol=1e-6)
    for call in (kernels, kernels.inference, kernels.forward):
        with pytest.raises(TypeError, match=r"gamma is missing|argument: 'gamma'"):
            call(x, 1.0)
        with pytest.raises(TypeError, match=r"alpha is missing|argument: 'alpha'"):
            call(x, gamma=1.0)
    header = Path(str(kernels.c_paths[0])[:-1] + "h").read_text()
    for name in ("alpha", "beta", "gamma"):
        assert f"double {name}" in header


def test_the_c_of_numbers_compiles_without_a_warning(golden: Any) -> None:
    planned, report = judged_plan(bind(Branches, ["f32[n m]"]), ())
    texts = emit(planned, proof_line(report)).texts
    golden(texts["branches.c"], "branches.c")
    golden(texts["branches.h"], "branches.h")


EXPRESSIONS = [
    "lib.tanh(x * a) * b", "x * (1 - a**2) + b * x", "lib.sigmoid(a * x) * x / (1 + b * b)",
    "lib.exp(-a * a * x * x) * b", "lib.where(x > a, x * b, x)", "(x - a).abs() * b",
    "lib.log1p(x * x + a * a) * math.exp(b / 10)", "x.sum(-1, keepdim=True) * a + x * b",
    "lib.softmax(x * a, -1) * b",
]  # fmt: skip


@pytest.mark.peers
@pytest.mark.parametrize("text", EXPRESSIONS)
def test_kernels_with_numbers_agree_with_torch(text: str) -> None:
    torch = pytest.importorskip("torch")
    formula = eval(f"lambda lib, x, a, b: {text}", {"math": math})

    class Formula(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, a: float = 0.7, b: float = 1.3) -> Any:
            return formula(sg, x, a, b)

    kernels = sg.compile(Formula, "f64[n m]")
    assert "for all real a, all real b" in repr(kernels)
    random = np.random.default_rng(len(text))
    for a, b in (*random.uniform(-2, 2, (5, 2)).tolist(), (0.0, 0.0), (2, -1), (1, 3)):
        x = random.normal(size=(3, 4))
        peer = torch.tensor(x, requires_grad=True)
        expected = formula(torch, peer, a, b)
        expected.sum().backward()
        found, residuals = kernels.forward(x, a, b)
        np.testing.assert_allclose(found, expected.detach().numpy(), rtol=1e-9, atol=1e-12)
        slope: Any = kernels.backward(residuals, np.ones_like(found))[0]
        np.testing.assert_allclose(slope, peer.grad.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("CeluByOutput", "PROVED for all real alpha > 0"),
        ("HuberByClamp", "PROVED for all real delta > 0"),
        ("CeluForOne", "REFUTED for alpha = 0.5"), ("HuberBySquare", "REFUTED for delta = 0.5"),
    ],
)  # fmt: skip
def test_a_positive_number_is_no_part_of_where_a_comparison_changes(name: str, said: str) -> None:
    report = sg.verify(over_symgrad("plain_values")[name].function, "n")
    assert report.stated == said
