"""Functions of JAX as public code has them: PROVED where ``jax.vjp`` agrees, else REFUTED."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import symgrad as sg  # noqa: E402
from symgrad.frontend.guests import taken  # noqa: E402
from tests.interop.jax_public import KINDS, Affine, Kind  # noqa: E402

pytestmark = pytest.mark.peers
RULES = [(name, rule) for name, one in KINDS.items() for rule in one.rules]


def _is_float(value: Any) -> bool:
    leaves = jax.tree_util.tree_leaves(value)
    return bool(leaves) and all(getattr(one, "dtype", np.dtype(int)).kind == "f" for one in leaves)


def is_right(one: Kind, rule: str) -> bool:
    """Are output and gradients of the function those of the plain one, in float64?"""
    function = one.function(rule)
    floats = [place for place, value in enumerate(one.arguments) if _is_float(value)]

    def of(plain: Any) -> Any:
        def call(*given: Any) -> Any:
            known = list(one.arguments)
            for place, value in zip(floats, given, strict=True):
                known[place] = value
            return plain(*known)

        return call

    with jax.enable_x64(True):
        given = [jax.tree_util.tree_map(jnp.asarray, one.arguments[place]) for place in floats]
        out, pull = jax.vjp(of(one.fun), *given)
        random = np.random.default_rng(7)
        cotangent = jax.tree_util.tree_map(lambda leaf: jnp.asarray(random.normal(size=leaf.shape)),
                                           out)  # fmt: skip
        own, own_pull = jax.vjp(of(function), *given)
        try:
            pairs = [(out, own), (pull(cotangent), own_pull(cotangent))]
        except (TypeError, ValueError):  # JAX refuses what bwd returns
            return False
        leaves = [map(jax.tree_util.tree_leaves, pair) for pair in pairs]
        return all(
            bool(np.allclose(left, right, rtol=1e-9, atol=1e-12))
            for pair in leaves for left, right in zip(*pair, strict=True)
        )  # fmt: skip


@pytest.mark.parametrize(("name", "rule"), RULES)
def test_the_verdict_is_what_jax_says(name: str, rule: str) -> None:
    one = KINDS[name]
    report = sg.verify(one.function(rule), *one.specs, static=one.static, suggest=False)
    right = is_right(one, rule)
    wanted = ("PROVED",) if right else ("REFUTED", "SURROGATE?")
    assert str(report.verdict) in wanted, str(report)
    assert (rule in ("right", "by_jax")) is right


@pytest.mark.parametrize(
    "name", ["mlp", "affine", "rms_norm_of", "nested_tuples", "swiglu", "causal_attention"]
)
def test_shapes_and_containers_are_found(name: str) -> None:
    one = KINDS[name]
    report = sg.verify(one.function("right"), static=one.static, suggest=False)
    assert str(report.verdict) == "PROVED", str(report)


# -- containers


def _affine(bwd: Any) -> Any:
    made = jax.custom_vjp(KINDS["affine"].fun)
    made.defvjp(KINDS["affine"].rules["right"][0], bwd)
    return made


def test_leaves_are_named_by_their_paths() -> None:
    one = KINDS["nested_tuples"]
    report = sg.verify(one.function("right"), *one.specs)
    assert [*report.inputs] == ["p_0_0", "p_0_1", "p_1", "x"]
    one = KINDS["mlp"]
    report = sg.verify(one.function("no_bias"), *one.specs, suggest=False)
    assert str(report.inputs["params_b1"].verdict) == "REFUTED"
    assert str(report.inputs["params_w1"].verdict) == "PROVED"


def test_other_containers_than_the_argument_has_are_refuted() -> None:
    swapped = _affine(lambda r, g: ((g * r[1], g), g * r[0].scale))
    report = sg.verify(swapped, Affine("n", "n"), "n", suggest=False)
    assert str(report.verdict) == "REFUTED"
    assert "containers of the argument" in " ".join(str(report).split())
    found = sg.verify(swapped, suggest=False)  # perhaps the class is another one
    assert str(found.verdict) == "UNDECIDED"
    assert "state the" in " ".join(str(found).split())


def test_one_array_may_stand_for_all_leaves() -> None:
    both = jax.custom_vjp(lambda p, x: p["a"] + p["b"] + x)
    both.defvjp(lambda p, x: (p["a"] + p["b"] + x, None), lambda r, g: (g, g))
    assert str(sg.verify(both, {"a": "n", "b": "n"}, "n").verdict) == "PROVED"
    leaf = {"a": jnp.ones(2), "b": jnp.ones(2)}
    assert jax.grad(lambda p: both(p, jnp.ones(2)).sum())(leaf)["b"].tolist() == [1, 1]


def test_a_gradient_of_another_float_is_one() -> None:
    half = jax.custom_vjp(lambda x: 2 * x)
    half.defvjp(lambda x: (2 * x, None), lambda r, g: (2 * g.astype(jnp.float32),))
    assert str(sg.verify(half, "f64[n]").verdict) == "PROVED"


@pytest.mark.parametrize(
    ("name", "rule", "said"),
    [("identity", "clipped", "clip"), ("identity", "reversed", "-1 * x"),
     ("identity", "scaled", "0.5"), ("rounded", "straight", "`x` in place of")],
)  # fmt: skip
def test_surrogates_are_named(name: str, rule: str, said: str) -> None:
    one = KINDS[name]
    report = sg.verify(one.function(rule), *one.specs, suggest=False)
    assert str(report.verdict) == "SURROGATE?"
    assert said in " ".join(str(report).split())


def test_a_fixed_point_by_a_loop_says_what_it_cannot() -> None:
    def fixed(a: Any, x: Any) -> Any:
        return jax.lax.while_loop(lambda y: jnp.abs(a * jnp.cos(y) - y) > 1e-6,
                                  lambda y: a * jnp.cos(y), x)  # fmt: skip

    made = jax.custom_vjp(fixed)
    made.defvjp(lambda a, x: (fixed(a, x), a), lambda a, g: (g, None))
    with pytest.raises(sg.SymgradError, match="number of steps depends on values"):
        sg.verify(made, "", "")


@pytest.mark.parametrize(
    ("text", "verdict"),
    [("identity", "PROVED"), ("jnp.sin(x)", "REFUTED"), ("tanh", "REFUTED"), ("x + 1", "PROVED")],
)
def test_a_surrogate_declared_in_a_file_is_one_of_jax(
    text: str, verdict: str, tmp_path: Path
) -> None:
    straight = KINDS["rounded"].function("straight")
    file = tmp_path / "symgrad.toml"
    name = f"{taken(straight).__module__}.{taken(straight).__qualname__}"
    file.write_text(f'[functions."{name}"]\nsurrogate = "{text}"\nshapes = "n m"\n')
    report = sg.verify(straight, config=file, suggest=False)
    assert str(report.verdict) == verdict, str(report)
    if verdict == "REFUTED":
        replayed = report.inputs["x"].replayed
        assert replayed is not None
        assert replayed.confirmed


def test_shapes_declared_in_a_file_stand_in_containers(tmp_path: Path) -> None:
    one = KINDS["mlp"].function("right")
    file = tmp_path / "symgrad.toml"
    shapes = '{ params = { w1 = "d h", b1 = "h", w2 = "h o", b2 = "o" }, x = "n d" }'
    name = f"{taken(one).__module__}.{taken(one).__qualname__}"
    file.write_text(f'[functions."{name}"]\nshapes = {shapes}\n')
    report = sg.verify(one, config=file, suggest=False)
    assert str(report.verdict) == "PROVED"
    assert "inferred" not in str(report)


def test_what_gets_a_number_for_its_gradient_is_one() -> None:
    def mean(state: Any, x: Any, decay: Any) -> Any:
        return decay * state["mean"] + (1 - decay) * x

    def bwd(r: Any, g: Any) -> Any:
        state, x, decay = r
        return {"mean": decay * g}, (1 - decay) * g, jnp.sum((state["mean"] - x) * g)

    made = jax.custom_vjp(mean)
    made.defvjp(lambda *args: (mean(*args), args), bwd)
    report = sg.verify(made, suggest=False)
    assert str(report.verdict) == "PROVED", str(report)
    assert "decay[]" in str(report)


def test_a_list_of_layers_is_judged_as_it_is_stated() -> None:
    def layers(params: Any, x: Any) -> Any:
        for w, b in params:
            x = jnp.tanh(x @ w + b)
        return x

    made = jax.custom_vjp(layers)
    made.defvjp(lambda *args: (layers(*args), args), lambda r, g: jax.vjp(layers, *r)[1](g))
    report = sg.verify(made, [("d h", "h"), ("h d", "d")], "n d", suggest=False)
    assert str(report.verdict) == "PROVED", str(report)
    with pytest.raises(sg.SymgradError, match="those of a container"):
        sg.verify(made)
