"""Unmodified ``jax.custom_vjp`` functions: right ones are proved, doubled ones refuted.

What is right and what is wrong is for ``jax.vjp`` of the plain function to say, in float64.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402

import symgrad as sg  # noqa: E402
from symgrad.errors import SymgradError  # noqa: E402
from symgrad.frontend.guests import taken  # noqa: E402
from symgrad.frontend.session import active  # noqa: E402
from symgrad.interop.jax.sizes import JaxDim  # noqa: E402
from tests.interop.jax_functions import CASES, SLIPS, Case, doubled  # noqa: E402

pytestmark = pytest.mark.peers


def _is_right(function: Any, case: Case) -> bool:
    """Does JAX agree: are output and gradients those of the plain function?"""
    fixed, args = function.nondiff_argnums, case.arguments
    floats = [
        place for place, one in enumerate(args)
        if place not in fixed and isinstance(one, np.ndarray) and one.dtype.kind == "f"
    ]  # fmt: skip

    def of(plain: Any) -> Any:
        def call(*given: Any) -> Any:
            known = list(args)
            for place, one in zip(floats, given, strict=True):
                known[place] = one
            return plain(*known)

        return call

    with jax.enable_x64(True):
        given = [jnp.asarray(args[place]) for place in floats]
        out, pull = jax.vjp(of(function.fun), *given)
        random = np.random.default_rng(7)
        cotangent = jax.tree_util.tree_map(
            lambda one: jnp.asarray(random.normal(size=one.shape), one.dtype), out
        )
        own, own_pull = jax.vjp(of(function), *given)
        pairs = [(out, own), (pull(cotangent), own_pull(cotangent))]
        leaves = [map(jax.tree_util.tree_leaves, pair) for pair in pairs]
        return all(
            bool(np.allclose(one, other, rtol=1e-9, atol=1e-12))
            for pair in leaves for one, other in zip(*pair, strict=True)
        )  # fmt: skip


def _verdict(function: Any, case: Case) -> tuple[str, str]:
    report = sg.verify(function, *case.specs, static=case.static, suggest=False)
    return str(report.verdict), str(report)


@pytest.mark.parametrize("name", CASES)
def test_right_rules_are_proved_and_doubled_ones_refuted(name: str) -> None:
    case = CASES[name]
    assert _is_right(case.function, case)
    report = sg.verify(case.function, *case.specs, static=case.static, suggest=False)
    assert str(report.verdict) == "PROVED", str(report)
    assert report.name == name
    assert report.location is not None
    assert report.location.file.endswith("jax_functions.py")
    assert _verdict(doubled(case.function), case)[0] == "REFUTED"


@pytest.mark.parametrize("name", SLIPS)
def test_slips_are_refuted(name: str) -> None:
    case = SLIPS[name]
    assert not _is_right(case.function, case)
    verdict, text = _verdict(case.function, case)
    assert verdict == "REFUTED", text
    assert "sg." not in text  # a repair in other words than JAX's


def test_fwd_that_returns_something_else_is_said() -> None:
    case = SLIPS["slip_of_fwd"]
    report = sg.verify(case.function, *case.specs)
    found = {one.name: one for one in report.protocol}["fwd returns what fun returns"]
    assert str(found.verdict) == "REFUTED"
    assert "another output" in found.text
    assert all(str(one.verdict) == "PROVED" for one in report.inputs.values())


# -- what is refused


def _rule(fun: Any, bwd: Any = None, **how: Any) -> Any:
    made = jax.custom_vjp(fun)
    made.defvjp(lambda *args: (fun(*args), args), bwd or (lambda r, g: (g,)), **how)
    return made


def _while(x: Any) -> Any:
    return lax.while_loop(lambda y: y.sum() < 10, lambda y: y * 2, x)


REFUSED = {
    "while": (_while, "while"),
    "long scan": (lambda x: lax.scan(lambda c, r: (c + r, None), 0.0, x)[0] * x, "scan"),
    "random": (lambda x: x * jax.random.uniform(jax.random.key(0), x.shape), "random"),
    "branch": (lambda x: x if x.sum() > 0 else -x, "Attempted boolean"),
    "value": (lambda x: x * float(x.sum()), "ConcretizationTypeError"),
    "array": (lambda x: x * np.asarray(x), "TracerArrayConversionError"),
    "loop": (lambda x: sum(x[i] for i in range(x.shape[0])) * x, "_DimExpr"),
    "window": (lambda x: lax.reduce_window(x, 1.0, lax.mul, (1,), (1,), "SAME"), "reduce_window"),
    "callback": (
        lambda x: jax.pure_callback(lambda v: v, jax.ShapeDtypeStruct(x.shape, x.dtype), x),
        "pure_callback",
    ),
    "half": (lambda x: x.astype(jnp.bfloat16).astype(x.dtype), "bfloat16"),
    "bits": (lambda x: lax.bitcast_convert_type(x, jnp.int32) * x, "bitcast"),
}


def _said(function: Any, *specs: str, **how: Any) -> str:
    """The error, or the report that the verdict is UNDECIDED; empty for any other verdict."""
    try:
        report = sg.verify(function, *specs, suggest=False, **how)
    except SymgradError as error:
        return str(error)
    return str(report) if str(report.verdict) == "UNDECIDED" else ""


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_traced_is_said_with_its_line(name: str) -> None:
    fun, wanted = REFUSED[name]
    for said in (_said(_rule(fun), "n"), _said(_rule(lambda x: x, lambda r, g: (fun(g),)), "n")):
        assert wanted in said
        first = fun.__code__.co_firstlineno
        assert any(f"test_jax_functions.py:{first + line}" in said for line in range(3))


def test_symbolic_zeros_are_refused() -> None:
    assert "symbolic_zeros" in _said(_rule(lambda x: x, symbolic_zeros=True), "n")


def test_no_rule_is_said() -> None:
    assert "defvjp" in _said(jax.custom_vjp(lambda x: x), "n")


def test_what_jax_refuses_of_bwd_is_refuted() -> None:
    for bwd, wanted in (
        (lambda r, g: g, "bwd returned"), (lambda r, g: (g, g), "bwd returned 2"),
        (lambda r, g: (g.sum(),), "JAX refuses"), (lambda r, g: ({"x": g},), "containers"),
    ):  # fmt: skip
        report = sg.verify(_rule(lambda x: x, bwd), "n", suggest=False)
        assert str(report.verdict) == "REFUTED"
        assert wanted in str(report)


def test_a_handler_hides_no_question() -> None:
    def bwd(r: Any, g: Any) -> Any:
        try:
            return (2 * g if g.sum() > 0 else g,)
        except jax.errors.ConcretizationTypeError:
            return (g,)

    assert _said(_rule(lambda x: x, bwd), "n")


def test_a_traced_value_cannot_be_told_from_a_real_one() -> None:
    def bwd(r: Any, g: Any) -> Any:
        return (g if isinstance(g, jax.core.Tracer) else 2 * g,)

    assert "tell a trace from a call" in _said(_rule(lambda x: x, bwd), "n")


def test_which_object_an_array_is_has_no_answer() -> None:
    function = _rule(lambda x, y: x * y, lambda r, g: (g * (r[0] if r[0] is r[1] else r[1]), g))
    assert "which object" in _said(function, "n", "n")


def _stopped(x: Any) -> Any:
    return x * lax.stop_gradient(x)


@pytest.mark.parametrize("factor", [1, 2, 3])
def test_a_derivative_that_fun_cuts_off_is_not_judged(factor: int) -> None:
    said = _said(_rule(_stopped, lambda r, g: (factor * g * r[0],)), "n")
    assert "stop_gradient" in said
    nested = _rule(lambda x: jnp.round(x), lambda r, g: (g,))
    assert "nested rule" in _said(_rule(lambda x: 2 * nested(x), lambda r, g: (factor * g,)), "n")


def test_a_declared_surrogate_is_what_is_judged() -> None:
    straight = _rule(lambda x: jnp.round(x), lambda r, g: (g,))
    assert str(sg.verify(straight, "n").verdict) == "SURROGATE?"
    sg.surrogate(lambda x: jnp.sin(x))(straight)
    assert str(sg.verify(straight, "n").verdict) == "REFUTED"
    sg.surrogate(lambda x: x)(straight)
    assert str(sg.verify(straight, "n").verdict) == "PROVED"


def test_axes_of_any_number_are_judged_one_by_one() -> None:
    report = sg.verify(_rule(lambda x: x * 1, lambda r, g: (g * (1 + (g.ndim > 3)),)), "*batch")
    assert "for 0, 1, 2, 3 batch axes only" in str(report)


# -- sizes


@pytest.mark.parametrize(
    "wrong",
    [
        lambda n: n == 7, lambda n: n <= 7 and n >= 7, lambda n: 6 < n < 8, lambda n: n in (7,),
        lambda n: (n, 1) == (7, 1), lambda n: n - 7 == 0 or False, lambda n: not n - 7,
        lambda n: isinstance(n, int) and n == 7, lambda n: n % 7 == 0 and n // 7 == 1,
        lambda n: max(n, 7) == 7 and min(n, 7) == 7,
    ],
)  # fmt: skip
def test_one_size_is_never_all_sizes(wrong: Any) -> None:
    def bwd(r: Any, g: Any) -> Any:
        return (g + jnp.sin(g) * 0 + (r[0] * g if wrong(r[0].shape[0]) else 0),)

    report = sg.verify(_rule(lambda x: x * 1, bwd), "n", suggest=False)
    assert str(report.verdict) == "REFUTED", str(report)
    assert "n = 7" in str(report)


@pytest.mark.parametrize("asked", [lambda n: {7: 2}.get(n, 1), lambda n: 2 if str(n) == "7" else 1])
def test_what_hides_a_size_is_observed(asked: Any) -> None:
    function = _rule(lambda x: x * 1, lambda r, g: (g * asked(r[0].shape[0]),))
    assert "of a size is asked for" in _said(function, "n")


def test_sizes_compute_as_numbers_do() -> None:
    import math

    def fun(x: Any) -> Any:
        n = x.shape[0]
        return x * n**-0.5 + x / math.sqrt(n) + x * (n // 2) / n + x * np.sqrt(n) + math.log(n) * x

    def bwd(r: Any, g: Any) -> Any:
        n = r[0].size
        return (g * (2 / jnp.sqrt(n) + (n // 2) / n + jnp.sqrt(n) + jnp.log(n)),)

    report = sg.verify(_rule(fun, bwd), "n", suggest=False)
    assert str(report.verdict) == "PROVED", str(report)


# -- state


COUNT = [0.0]


def test_what_calls_leave_is_no_derivative() -> None:
    def counting(r: Any, g: Any) -> Any:
        COUNT[0] += 1
        return (g * (1 if COUNT[0] < 3 else 2),)

    def keeping(x: Any) -> Any:
        COUNT[0] = x
        return x * 1

    def reading(r: Any, g: Any) -> Any:
        return (g + 0 * COUNT[0],)

    for function in (_rule(lambda x: x * 1, counting), _rule(keeping), _rule(keeping, reading)):
        with contextlib.suppress(SymgradError):
            assert str(sg.verify(function, "n", suggest=False).verdict) != "PROVED"
    assert isinstance(COUNT[0], float)
    helper = jax.jit(lambda g: g * (1 if COUNT[0] < 3 else 2))
    inner = jax.custom_vjp(lambda g: g * (1 if COUNT[0] < 3 else 2))

    def through(call: Any) -> Any:
        def bwd(r: Any, g: Any) -> Any:
            COUNT[0] += 1
            return (call(g),)

        return _rule(lambda x: x * 1, bwd)

    for call in (helper, inner):
        assert str(sg.verify(through(call), "n", suggest=False).verdict) != "PROVED"
    assert isinstance(COUNT[0], float)


# -- what is left as it was


def test_jax_is_itself_after_a_trace() -> None:
    names = ("__eq__", "__hash__", "__lt__", "__str__", "__pow__", "__getattribute__")
    before = [getattr(JaxDim, name) for name in names]
    case = CASES["attention"]
    sg.verify(case.function, *case.specs)
    assert [getattr(JaxDim, name) for name in names] == before
    assert not hasattr(JaxDim, "sqrt")
    assert active() is None
    assert taken(case.function) is taken(case.function)


def test_the_command_line_finds_functions(tmp_path: Path) -> None:
    file = tmp_path / "ops.py"
    file.write_text(
        textwrap.dedent(
            """
            import jax
            import jax.numpy as jnp

            @jax.custom_vjp
            def good(x, labels):
                return x[jnp.arange(x.shape[0]), labels].sum()

            def fwd(x, labels):
                return good(x, labels), (x, labels)

            def bwd(res, g):
                x, labels = res
                return g * jax.nn.one_hot(labels, x.shape[1]), None

            good.defvjp(fwd, bwd)

            @jax.custom_vjp
            def wrong(x, y):
                return x * y

            wrong.defvjp(lambda x, y: (x * y, (x, y)), lambda r, g: (g * r[0], g * r[1]))
            """
        )
    )
    command = [sys.executable, "-m", "symgrad", "verify", str(file)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 1, found.stderr
    assert "good" in found.stdout
    assert "wrong: REFUTED" in found.stdout
    assert "good: REFUTED" not in found.stdout
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--symgrad",
        "-q",
        "-p",
        "no:cacheprovider",
        str(file),
    ]
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert "1 failed, 1 passed" in found.stdout, found.stdout


@pytest.mark.parametrize("factor", [1, 2])
def test_a_gradient_may_be_of_integers_as_in_jax(factor: int) -> None:
    @jax.custom_vjp
    def total(x: Any) -> Any:
        return x.sum()

    def bwd(shape: Any, g: Any) -> Any:
        return ((g > 0).astype(jnp.int32) * factor + jnp.zeros(shape, jnp.int32),)

    total.defvjp(lambda x: (x.sum(), x.shape), bwd)
    report = sg.verify(total, "n", suggest=False)
    assert report.verdict == "REFUTED"  # of another sign than g's, and no multiple of it
    assert "refuses" not in str(report)


CONTAINERS = """
import jax
import jax.numpy as jnp


@jax.custom_vjp
def layer(params, x):
    return x @ params["w"] + params["b"]


def fwd(params, x):
    return layer(params, x), (params, x)


def bwd(kept, g):
    params, x = kept
    return {"w": x.T @ g, "b": g.sum(0)}, g @ params["w"].T


layer.defvjp(fwd, bwd)
"""


@pytest.mark.slow
def test_shapes_of_containers_on_the_command_line(tmp_path: Any) -> None:
    from click.testing import CliRunner

    from symgrad.tools.cli import main

    (tmp_path / "layers.py").write_text(CONTAINERS)
    place = f"{tmp_path}/layers.py:layer"
    shapes = '{"w": "d m", "b": "m"}, "n d"'
    result = CliRunner().invoke(main, ["verify", place, "--shapes", shapes, "--no-config"])
    assert result.exit_code == 0, result.output
    assert "params_w" in result.output
    for wrong in ('{"w": "d m"', '{"w": "d m"}, 3'):
        result = CliRunner().invoke(main, ["verify", place, "--shapes", wrong, "--no-config"])
        assert result.exit_code == 2, result.output
        assert "in quotes" in result.output or "as Python writes" in result.output
