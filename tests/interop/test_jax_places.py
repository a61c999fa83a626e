"""Places that a JAX function computes: JAX clips or drops those outside, which a condition says."""

from __future__ import annotations

from typing import Any

import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

import symgrad as sg  # noqa: E402

pytestmark = pytest.mark.peers


def ramp(x: Any) -> Any:
    return jnp.arange(x.shape[0])


OUTSIDE = {
    "read": (
        lambda x: x[jnp.argmax(x) + 1], lambda x, g: (g * (ramp(x) == jnp.argmax(x) + 1),),
    ),
    "take": (
        lambda x: jnp.take(x, jnp.argmax(x) + 1), lambda x, g: (g * (ramp(x) == jnp.argmax(x) + 1),)
    ),
    "add": (lambda x: x.at[jnp.argmax(x) + 1].add(1.0), lambda x, g: (g,)),
}  # fmt: skip
"""Right while the place lies in its axis."""
INSIDE = {
    "read": (lambda x: x[jnp.argmax(x)], lambda x, g: (g * (ramp(x) == jnp.argmax(x)),)),
    "sort": (lambda x: jnp.sort(x), lambda x, g: (jnp.zeros_like(x).at[jnp.argsort(x)].set(g),)),
    "division": (lambda x: x * x, lambda x, g: (2 * g * x + 0 * (ramp(x) // (ramp(x) + 1)),)),
}


def judged(forward: Any, backward: Any) -> sg.Report:
    made = jax.custom_vjp(forward)
    made.defvjp(lambda x: (forward(x), x), backward)
    return sg.verify(made, "n", suggest=False)


def conditions(report: sg.Report) -> list[str]:
    return [one.text for one in report.conditions if one.kind == "index"]


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_place_that_may_be_outside_is_a_condition(name: str) -> None:
    report = judged(*OUTSIDE[name])
    assert report.verdict is sg.PROVED, str(report)
    assert conditions(report) == ["x.argmax(0) + 1 < n"]


@pytest.mark.parametrize("name", INSIDE)
def test_a_place_that_is_inside_is_none(name: str) -> None:
    report = judged(*INSIDE[name])
    assert report.verdict is sg.PROVED, str(report)
    assert not conditions(report)


def test_negative_places_count_from_the_end() -> None:
    report = judged(
        lambda x: x[jnp.argmax(x) - 1], lambda x, g: (g * (ramp(x) == jnp.argmax(x) - 1),)
    )
    assert report.verdict is sg.REFUTED, str(report)
