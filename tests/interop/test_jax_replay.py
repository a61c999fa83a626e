"""Refutations of functions of JAX are run in JAX; functions are found by reading."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

import symgrad as sg  # noqa: E402
from symgrad.frontend.guests import Call, Given, taken  # noqa: E402
from symgrad.interop.jax import spawned  # noqa: E402
from symgrad.tools.importing import load_file  # noqa: E402
from symgrad.tools.sources import in_files  # noqa: E402
from tests.interop.jax_functions import CASES, SLIPS  # noqa: E402
from tests.interop.jax_public import KINDS  # noqa: E402

pytestmark = pytest.mark.peers


def _replayed(report: Any) -> list[Any]:
    return [one.replayed for one in report.inputs.values() if one.replayed is not None]


@pytest.mark.parametrize("name", ["slip_axis", "slip_of_one_size", "slip_cross_entropy"])
def test_refutations_are_confirmed_in_a_process_of_their_own(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here: list[Any] = []
    monkeypatch.setattr(spawned, "_one", lambda *args: here.append(args))
    case = SLIPS[name]
    report = sg.verify(case.function, *case.specs, suggest=False)
    found = _replayed(report)
    assert found
    assert all(one.confirmed for one in found), report
    assert "confirmed in JAX: backward gives" in str(found[0])
    assert not here


@pytest.mark.parametrize(("name", "rule"), [("mlp", "no_bias"), ("rms_norm_of", "summed")])
def test_what_no_import_finds_runs_here(name: str, rule: str) -> None:
    one = KINDS[name]
    found = _replayed(sg.verify(one.function(rule), *one.specs, suggest=False))
    assert found
    assert all(one.confirmed for one in found)
    assert not jax.config.jax_enable_x64


def test_what_jax_does_not_confirm_is_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    case = SLIPS["slip_saved_input"]
    right = CASES["tanh_by_output"].function
    real = taken(right).symgrad_real
    original = spawned.measured_all
    monkeypatch.setattr(spawned, "measured_all", lambda _, calls: original(real, calls))
    report = sg.verify(case.function, *case.specs, suggest=False)
    assert str(report.verdict) == "UNDECIDED"
    assert "JAX does not confirm" in " ".join(str(report).split())


def _call(function: Any, value: float) -> Any:
    call = Call([("x", Given([value], "float64"))], frozenset("x"), [[1.0]], "x", (0,))
    return spawned.measured_all(taken(function).symgrad_real, [call])[0]


def test_real_calls_have_64_bits_and_both_derivatives() -> None:
    found = _call(CASES["cube"].function, 3.1)
    assert found.dtype == "float64"
    assert found.how == "by jax.vjp of fun"
    assert abs(found.backward - 3 * 3.1**2) < 1e-12
    assert abs(found.derivative - 3 * 3.1**2) < 1e-12


def test_what_fun_cuts_off_is_found_by_quotients() -> None:
    cut = jax.custom_vjp(lambda x: x * jax.lax.stop_gradient(x))
    cut.defvjp(lambda x: (x * x, x), lambda x, g: (2 * g * x,))
    found = _call(cut, 3.0)
    assert found.how == "by difference quotients"
    assert abs(found.derivative - 6) < 1e-6


PACKAGE = """
    import functools
    import jax, jax.numpy as jnp
    from functools import partial
    from jax import custom_vjp
    from typing import NamedTuple

    @jax.custom_vjp
    def cube(x):
        return x**3

    cube.defvjp(lambda x: (x**3, x), lambda x, g: (2 * g * x**2,))

    class Pair(NamedTuple):
        w: object
        b: object

    @partial(custom_vjp, nondiff_argnums=(2,))
    def affine(p, x, flip):
        return p.b - p.w * x if flip else p.w * x + p.b

    affine.defvjp(
        lambda p, x, flip: (affine.fun(p, x, flip), (p, x)),
        lambda flip, r, g: (Pair(g * r[1] * (-1 if flip else 1), g),
                            g * r[0].w * (-1 if flip else 1)))

    sine = jax.custom_vjp(jnp.sin)
    sine.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (g * jnp.cos(x),))
    square = functools.partial(jax.custom_vjp)(lambda x: x * x)
    square.defvjp(lambda x: (x * x, x), lambda x, g: (2 * g * x,))

    def make():
        @custom_vjp
        def inner(x):
            return x
        return inner

    @jax.custom_vjp
    def no_rule(x):
        return x

    @jax.jit
    def plain(x):
        return x

    value = partial(plain, 1.0)
    """
NAMES = ["cube", "affine", "sine", "square", "make.<locals>.inner", "no_rule"]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "pack"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise RuntimeError\n")
    (folder / "ops.py").write_text(textwrap.dedent(PACKAGE))
    return folder


def test_functions_are_found_by_reading(package: Path) -> None:
    found = in_files([package / "ops.py"])
    assert [one.qualname for one in found] == NAMES
    assert all(one.jax and not one.torch for one in found)
    assert found[0].name == "pack.ops.cube"


def test_a_changed_file_is_not_asked(tmp_path: Path) -> None:
    file = tmp_path / "changed_ops.py"
    file.write_text(textwrap.dedent(PACKAGE))
    function = load_file(file).cube
    file.write_text(textwrap.dedent(PACKAGE).replace("return x**3", "return x * x * x"))
    report = sg.verify(function, "n", suggest=False)
    assert "its text has changed" in str(report)


@pytest.mark.slow
def test_a_scan_judges_them(package: Path) -> None:
    (package / "__init__.py").write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "symgrad", "scan", str(package), "--json"],
        capture_output=True, text=True, check=False, cwd=package.parent,
    )  # fmt: skip
    found = {one["class"]: one for one in json.loads(done.stdout)["functions"]}
    said = {name.removeprefix("pack.ops."): one["category"] for name, one in found.items()}
    assert {name: said[name] for name in NAMES} == dict(
        zip(NAMES, ["refuted", "proved", "proved", "proved", "not traceable", "not traceable"],
            strict=True)
    )  # fmt: skip
    assert "confirmed in JAX" in found["pack.ops.cube"]["why"]
    assert "no rule" in found["pack.ops.no_rule"]["why"]


def test_several_outputs_and_integers_run() -> None:
    case = SLIPS["slip_cross_entropy"]
    report = sg.verify(case.function, *case.specs, suggest=False)
    assert all(one.confirmed for one in _replayed(report))
    function = jax.custom_vjp(lambda x: {"a": 2 * x, "b": (jnp.sin(x), jnp.argmax(x))})
    function.defvjp(lambda x: (function.fun(x), x), lambda x, g: (2 * g["a"],))
    found = _replayed(sg.verify(function, "n", suggest=False))
    assert found
    assert all(one.confirmed for one in found)


def test_written_tests_fail_until_the_rule_is_right(package: Path, tmp_path: Path) -> None:
    (package / "__init__.py").write_text("")
    from symgrad.tools.judging import judge
    from symgrad.tools.regression import regression_tests

    file = tmp_path / "own_ops.py"
    file.write_text(textwrap.dedent(PACKAGE) + textwrap.dedent(NET))
    module = load_file(file)
    judged = [judge(taken(one)) for one in (module.cube, module.net)]
    target = tmp_path / "test_found.py"
    written = regression_tests(judged, target)
    assert written.tests == ("test_cube_gradient_of_x", "test_net_gradient_of_params_top_b")
    assert "jax_backward(call" in written.text
    assert 'Function({"top": {"b": params_top_b}, "w": params_w}, x)' in written.text
    assert "torch" not in written.text
    target.write_text(written.text)
    for text, status in ((file.read_text(), 1), (_right(file.read_text()), 0)):
        file.write_text(text)
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(target)],
            capture_output=True, text=True, check=False, cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == status, done.stdout


NET = """
    @jax.custom_vjp
    def net(params, x):
        return jnp.tanh(x @ params["w"] + params["top"]["b"])

    def net_bwd(r, g):
        params, x, y = r
        inner = g * (1 - y**2)
        return {"w": x.T @ inner, "top": {"b": g.sum(0)}}, inner @ params["w"].T

    net.defvjp(lambda p, x: (net.fun(p, x), (p, x, net.fun(p, x))), net_bwd)
    """


def _right(text: str) -> str:
    return text.replace("2 * g * x**2", "3 * g * x**2").replace("g.sum(0)", "inner.sum(0)")
