"""Declarations from outside: symgrad.toml and [tool.symgrad], read by every way to a verdict."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import symgrad as sg
from symgrad.declarations import nearest, read
from symgrad.errors import InferredShapesWarning, NotProvedError, SpecError
from symgrad.tools import discover
from symgrad.tools.cli import main
from symgrad.tools.sources import sources

OPS = """
import symgrad as sg


class Round(sg.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad):
        return grad


class Scale(sg.Function):
    @staticmethod
    def forward(ctx, x, weight, power):
        ctx.save_for_backward(x, weight)
        ctx.power = power
        return (x * weight.abs()) ** power

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        inner = grad * ctx.power * (x * weight) ** (ctx.power - 1)
        return inner * weight, (inner * x).sum(0), None


class Steep(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x > 0).to(x.dtype)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        y = sg.sigmoid(4 * x)
        return grad * 4 * y * (1 - y)
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "__init__.py").write_text("")
    (tmp_path / "lib" / "ops.py").write_text(OPS)
    monkeypatch.chdir(tmp_path)
    for module in [one for one in sys.modules if one.partition(".")[0] == "lib"]:
        monkeypatch.delitem(sys.modules, module)  # that of another project
    return tmp_path


def _run(*args: str) -> tuple[int, Any]:
    found = CliRunner().invoke(main, ["verify", *args, "--json", "--no-cache"])
    return found.exit_code, json.loads(found.stdout)


TABLES = """
[functions."lib.ops.Round"]
surrogate = "the derivative of identity"
[functions.Scale]
shapes = { x = "n m", weight = "m" }
static = { power = 2 }
assume = { weight = "positive" }
[functions."ops.Steep"]
surrogate = "sg.sigmoid(4 * x)"
"""


@pytest.mark.slow
def test_verdicts_without_declarations(project: Path) -> None:
    status, found = _run("lib/ops.py")
    assert status == 1
    assert [one["verdict"] for one in found] == ["SURROGATE?", "REFUTED", "SURROGATE?"]


@pytest.mark.slow
@pytest.mark.parametrize("shared", [False, True])
def test_declarations_decide_where_nothing_is_said(project: Path, shared: bool) -> None:
    text = TABLES.replace("[functions", "[tool.symgrad.functions") if shared else TABLES
    file = project / ("pyproject.toml" if shared else "symgrad.toml")
    file.write_text(text)
    status, found = _run("lib/ops.py")
    assert status == 0
    assert [one["verdict"] for one in found] == ["PROVED"] * 3
    assert "judged against the declared surrogate, not against forward" in found[0]["notes"]
    assert found[1]["values"] == {"power": "2"}
    assert _run("lib/ops.py:Round", "--no-config")[0] == 1


@pytest.mark.slow
def test_declarations_beside_options(project: Path) -> None:
    (project / "symgrad.toml").write_text(TABLES)
    assert _run("lib/ops.py:Scale", "--static", "power=3", "--assume", "x=positive")[0] == 0
    _, found = _run("lib/ops.py", "-j", "2")
    assert [one["verdict"] for one in found] == ["PROVED"] * 3


def test_a_verdict_may_be_expected_and_a_class_ignored(project: Path) -> None:
    file = project / "symgrad.toml"
    file.write_text(
        '[functions.Round]\nverdict = "SURROGATE?"\n[functions.Scale]\nignore = "not ours"\n'
        '[functions.Steep]\nverdict = "PROVED"\n'
    )
    status, found = _run("lib/ops.py")
    assert status == 1
    assert [one["verdict"] for one in found] == ["SURROGATE?", "IGNORED", "SURROGATE?"]
    assert found[1]["ignored"] == "not ours"
    status, found = _run("lib/ops.py:Round")
    assert status == 0
    result = CliRunner().invoke(main, ["verify", "lib/ops.py", "--junit", "junit.xml"])
    assert "as expected" in result.stdout
    assert "expected PROVED" in result.stdout
    report = (project / "junit.xml").read_text()
    assert 'failures="1"' in report
    assert 'skipped="1"' in report


CALLED = """
import symgrad as sg


def square(x):
    return x * x


class Applied(sg.Function):
    @staticmethod
    def forward(ctx, act, x):
        ctx.save_for_backward(x)
        return act(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return None, 2 * x * grad
"""


def test_a_function_is_declared_by_its_name(project: Path) -> None:
    (project / "lib" / "called.py").write_text(CALLED)
    status, found = _run("lib/called.py")
    assert status == 1
    assert "act is called, and nothing says which function it is" in found[0]["error"]
    for name, verdict in (("square", "PROVED"), ("lib.called.square", "PROVED"),
                          ("symgrad.tanh", "REFUTED")):  # fmt: skip
        (project / "symgrad.toml").write_text(
            f'[functions.Applied]\ncallables = {{ act = "{name}" }}\n'
        )
        _, found = _run("lib/called.py")
        assert found[0]["verdict"] == verdict
        assert found[0]["values"]["act"].endswith(name.rpartition(".")[2])


WRONG = {
    'shapes = "n m"': ("unknown key 'shapes'", 1),
    "[functions.Round]\nshape = 3": ("unknown key 'shape'", 2),
    "[functions.Round]\n\norder = 3": ("order = 3 is wrong", 3),
    "[functions.Round]\nverdict = 'RIGHT'": ("verdict = 'RIGHT' is wrong", 2),
    "[functions.Round]\nstatic = { a = [1, { b = 2 }] }": ("static = ", 2),
    "[functions.Rond]\norder = 2": ("there is no Function 'Rond'", 1),
    "[functions.lib.ops.Round]\norder = 2": ("'lib' is no class", 1),
    "\n[functions.Round\norder = 2": ("it is not TOML", 2),
    "[functions.Round]\nsurrogate = 'x +'": ("is no expression", 1),
    "[functions.Round]\nsurrogate = 'nosuch'": ("there is no function 'nosuch'", 1),
    "[functions.Round]\norder=1\n['functions'.'lib.ops.Round']\norder=1": ("the same class", 3),
    "[functions.Round]\nshapes = 'n m; k'": ("too many", 1),
    "[functions.Round]\ncallables = { x = 3 }": ("callables = ", 2),
    "[functions.Round]\ncallables = { x = 'math.nosuch' }": ("no function 'math.nosuch'", 1),
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_an_error_at_its_line(project: Path, text: str) -> None:
    (project / "symgrad.toml").write_text(text)
    said, line = WRONG[text]
    status, found = _run("lib/ops.py:Round")
    if isinstance(found, list):
        assert said in found[0]["error"]
        assert f"symgrad.toml:{line}" in found[0]["error"]
        assert status == 1
        return
    assert status == 2
    assert said in found["error"]["message"]
    assert Path(found["error"]["file"]).name == "symgrad.toml"
    assert found["error"]["line"] == line


def test_the_nearest_file_counts(project: Path) -> None:
    source = project / "lib" / "ops.py"
    assert nearest(source) is None or project not in nearest(source).path.parents  # type: ignore[union-attr]
    (project / "pyproject.toml").write_text("[tool.symgrad.functions.Round]\norder = 2\n")
    (project / "lib" / "pyproject.toml").write_text("[tool.other]\n")
    found = nearest(source)
    assert found is not None
    assert found.path == (project / "pyproject.toml").resolve()
    (project / "lib" / "symgrad.toml").write_text("[functions.Round]\norder = 1\n")
    found = nearest(source)
    assert found is not None
    assert found.path == (project / "lib" / "symgrad.toml").resolve()


def test_a_source_without_a_file_above_it_has_that_of_the_working_folder(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (project / "symgrad.toml").write_text(TABLES)
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "site-packages"
    for folder in (elsewhere.parent, elsewhere):
        found = nearest(folder / "ops.py")
        assert found is not None
        assert found.path == (project / "symgrad.toml").resolve()


def test_verify_takes_a_file(project: Path) -> None:
    (project / "mine.toml").write_text(TABLES)
    (scale,) = discover.functions("lib/ops.py:Scale")
    assert discover.functions("lib/ops.py::Scale") == [scale]
    assert str(sg.verify(scale, config="mine.toml").verdict) == "PROVED"
    (round_,) = discover.functions("lib/ops.py:Round")
    assert str(sg.verify(round_, config="mine.toml").verdict) == "PROVED"
    assert str(sg.verify(round_, "n").verdict) == "SURROGATE?"
    with pytest.raises(SpecError, match="cannot be read"):
        sg.verify(scale, config="none.toml")


SURROGATES = """
import math
import symgrad as sg


class Round(sg.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad):
        return grad


class Window(Round):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sign()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (x.abs() < 1).to(x.dtype)


class Arc(sg.Function):
    @staticmethod
    def forward(ctx, x, alpha=2.0):
        ctx.save_for_backward(x)
        ctx.alpha = alpha
        return (x > 0).to(x.dtype)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * ctx.alpha / 2 / (1 + (math.pi / 2 * ctx.alpha * x) ** 2), None


class Fast(Arc):
    @staticmethod
    def forward(ctx, x, alpha=25):
        return Arc.forward(ctx, x, alpha)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad / (1 + ctx.alpha * x.abs()) ** 2, None


class Reversed(sg.Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return -ctx.alpha * grad, None
"""


@pytest.mark.slow
def test_proposed_surrogates_are_proved_once_they_are_declared(project: Path) -> None:
    (project / "lib" / "ops.py").write_text(SURROGATES)
    main_of = ["verify", "lib/ops.py", "--write-config", "--quiet", "--no-cache"]
    assert "5 classes more" in CliRunner().invoke(main, main_of).stderr
    text = (project / "symgrad.toml").read_text()
    assert text.count("# surrogate = ") == 5, text
    assert "alpha" in text.partition("ops.Arc")[2].partition("surrogate = ")[2].splitlines()[0]
    assert {one["verdict"] for one in _run("lib/ops.py")[1]} == {"SURROGATE?"}
    (project / "symgrad.toml").write_text(text.replace("# surrogate = ", "surrogate = "))
    assert {one["verdict"] for one in _run("lib/ops.py")[1]} == {"PROVED"}


FIXED = """
import symgrad as sg


class Cosine(sg.Function):
    @staticmethod
    def forward(ctx, x, scale=1.0):
        z = sg.ones_like(x)
        for _ in range(4):
            z = sg.cos(z) * x
        ctx.save_for_backward(x, z)
        return z

    @staticmethod
    def backward(ctx, g):
        x, z = ctx.saved_tensors
        return g * sg.cos(z) / (1 + x * sg.sin(z)), None
"""


@pytest.mark.slow
def test_a_declared_fixed_point(project: Path) -> None:
    (project / "lib" / "ops.py").write_text(FIXED)
    table = '[functions."lib.ops.Cosine"]\nshapes = "n"\nsurrogate = "the fixed point of z = {}"\n'
    (project / "symgrad.toml").write_text(table.format("sg.cos(z) * x"))
    _, (found,) = _run("lib/ops.py")
    assert found["verdict"] == "PROVED"
    assert "forward has converged" in json.dumps(found)
    (project / "symgrad.toml").write_text(table.replace("of z", "of x").format("x"))
    assert "is an argument of forward" in json.dumps(_run("lib/ops.py")[1])


@pytest.mark.slow
def test_a_surrogate_has_the_defaults_of_forward(project: Path) -> None:
    (project / "lib" / "ops.py").write_text(SURROGATES)
    table = '[functions."lib.ops.Fast"]\nshapes = "n"\nsurrogate = "x / (1 + alpha * abs(x))"\n'
    (project / "symgrad.toml").write_text(table)
    _, (found,) = _run("lib/ops.py:Fast")
    assert found["verdict"] == "PROVED"


@pytest.mark.slow
def test_what_was_found_by_trying_is_appended(project: Path) -> None:
    before = '# ours\n[functions."lib.ops.Round"]  # kept\nsurrogate = "identity"\n'
    (project / "symgrad.toml").write_text(before)
    result = CliRunner().invoke(main, ["verify", "lib/ops.py", "--write-config", "--quiet"])
    assert "2 classes more" in result.stderr, result.output
    text = (project / "symgrad.toml").read_text()
    assert text.startswith(before)
    found = read(project / "symgrad.toml")
    assert set(found.functions) == {"lib.ops.Round", "lib.ops.Scale", "lib.ops.Steep"}
    assert found.functions["lib.ops.Scale"].assume == {"power": "constant, number"}
    _, trying = _run("lib/ops.py", "--no-config")
    _, judged = _run("lib/ops.py")
    assert all("inferred_shapes" not in one for one in judged[1:])
    assert [one["verdict"] for one in judged[1:]] == [one["verdict"] for one in trying[1:]]
    assert list(judged[1]["inputs"]) == list(trying[1]["inputs"])
    result = CliRunner().invoke(main, ["verify", "lib/ops.py", "--write-config", "--quiet"])
    assert "nothing was found" in result.stderr
    assert (project / "symgrad.toml").read_text() == text


RANKS = """
import symgrad as sg


class Flat(sg.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.softmax(-1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return y * (g - (g * y).sum(1, keepdim=True))


class Power(sg.Function):
    @staticmethod
    def forward(ctx, x, k: int):
        ctx.save_for_backward(x)
        ctx.k = k
        return x ** k

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * min(ctx.k, 2) * x ** (ctx.k - 1), None


class Pool(sg.Function):
    @staticmethod
    def forward(ctx, x, k: int):
        n, c = x.shape
        ctx.k = k
        return x.reshape(n, c // k, k).mean(-1)

    @staticmethod
    def backward(ctx, g):
        n, c = g.shape
        return (g.unsqueeze(-1) + sg.zeros((n, c, ctx.k))).reshape(n, c * ctx.k), None
"""


@pytest.mark.slow
def test_what_is_refuted_stays_so_once_its_shapes_are_written(project: Path) -> None:
    (project / "lib" / "ops.py").write_text(RANKS)
    assert {one["verdict"] for one in _run("lib/ops.py")[1]} == {"REFUTED"}
    CliRunner().invoke(main, ["verify", "lib/ops.py", "--write-config", "--quiet"])
    assert {one["verdict"] for one in _run("lib/ops.py")[1]} == {"REFUTED"}


def test_pytest_reads_them(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(declared_ops=OPS)
    pytester.path.joinpath("symgrad.toml").write_text(
        TABLES.replace("lib.ops", "ops")
        .replace("ops.", "declared_ops.")
        .replace("[functions.Scale]", '[functions.Scale]\nignore = "why"')
    )
    result = pytester.runpytest_inprocess("--symgrad", "-rs", "declared_ops.py")
    result.assert_outcomes(passed=2, skipped=1)
    result.stdout.fnmatch_lines(["*ignored: why*"])


# -- sources


def test_functions_are_found_without_imports(tmp_path: Path) -> None:
    package = tmp_path / "pack"
    (package / "deep").mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit(1)\n")
    (package / "base.py").write_text(
        "import torch.autograd as ag\nfrom torch import autograd\n"
        "class Base(ag.Function):\n    pass\n"
        "class Other(autograd.function.Function):\n    forward = None\n"
        "def make():\n    class Inner(ag.Function):\n        def forward(ctx, x): pass\n"
    )
    (package / "deep" / "__init__.py").write_text("from ..base import Base as B\n")
    (package / "deep" / "more.py").write_text(
        "from ..base import Base\nfrom torch.nn import Module\nimport symgrad as sg\n"
        "class M(Module):\n    def forward(self, x): pass\n"
        "    class In(Base):\n        def forward(ctx, x): pass\n"
        "if sg:\n    class Own(sg.Function):\n        def forward(ctx, x): pass\n"
    )
    (package / "broken.py").write_text("class {{ name }}(Function):\n")
    (package / ".hidden").mkdir()
    (package / ".hidden" / "no.py").write_text((package / "base.py").read_text())
    found = {one.name: one for one in sources(str(package))}
    assert list(found) == [
        "pack.base.Other", "pack.base.make.<locals>.Inner", "pack.deep.more.M.In",
        "pack.deep.more.Own",
    ]  # fmt: skip
    assert found["pack.base.make.<locals>.Inner"].inside
    assert found["pack.deep.more.M.In"].torch
    assert not found["pack.deep.more.Own"].torch
    assert found["pack.deep.more.Own"].line == 9
    with pytest.raises(SpecError, match="neither a file nor a module"):
        sources("no_such_package_at_all")


def _project(folder: Path, table: str) -> Path:
    (folder / "ops.py").write_text(OPS)
    (folder / "symgrad.toml").write_text(table)
    return folder / "ops.py"


_DECLARED = """
[functions.Round]
ignore = "it has no kernel"

[functions.Scale]
shapes = { x = "n m", weight = "m" }
static = { power = 2 }
assume = { weight = "positive" }

[functions.Steep]
surrogate = "sg.sigmoid(4 * x)"
shapes = "n"
"""


def test_build_and_show_read_what_verify_reads(tmp_path: Path) -> None:
    path, package = _project(tmp_path, _DECLARED), tmp_path / "kernels"
    options = ["build", str(path), "-o", str(package), "--no-compile"]
    found = CliRunner().invoke(main, options)
    assert found.exit_code == 0, found.output
    assert "not built: Round: it has no kernel" in found.output
    assert {"scale.c", "steep.c"} <= {one.name for one in package.iterdir()}
    assert CliRunner().invoke(main, [*options, "--check"]).exit_code == 0
    shown = CliRunner().invoke(main, ["show", f"{path}:Scale", "--stage", "c"])
    assert shown.exit_code == 0, shown.output
    assert "PROVED" in shown.output
    picture = tmp_path / "scale.svg"
    drawn = CliRunner().invoke(main, ["show", f"{path}:Scale", "--draw", str(picture)])
    assert drawn.exit_code == 0, drawn.output


def test_a_compiled_op_has_the_declared_shapes_and_values(tmp_path: Path) -> None:
    path = _project(tmp_path, _DECLARED)
    scale = discover.functions(f"{path}:Scale")[0]
    op = sg.compile(scale, config=tmp_path / "symgrad.toml")
    y, _ = op.forward(np.full((2, 3), 2.0, np.float32), np.full(3, 3.0, np.float32), 2)
    assert (y == 36).all()
    steep = discover.functions(f"{path}:Steep")[0]
    with pytest.raises(NotProvedError):
        sg.compile(steep, "n")
    assert sg.compile(steep, config=tmp_path / "symgrad.toml") is not None


class _Normed(sg.Function):
    @staticmethod
    def forward(ctx: Any, v: Any, g: Any) -> Any:
        length = v.square().sum(1, keepdim=True).sqrt()
        ctx.save_for_backward(v, g, length)
        return g[:, None] * v / length

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        v, g, length = ctx.saved_tensors
        unit = v / length
        grad_g = (grad * unit).sum(1)
        return g[:, None] / length * (grad - unit * grad_g[:, None]), grad_g


def test_kernels_are_for_the_shapes_that_fit_backward() -> None:
    with pytest.warns(InferredShapesWarning, match=r"v\[n, m\], g\[n\]"):
        op = sg.compile(_Normed)
    v = np.asarray([[3.0, 4.0]], np.float32)
    y, _ = op.forward(v, np.ones(1, np.float32))
    assert np.allclose(y, [[0.6, 0.8]])
