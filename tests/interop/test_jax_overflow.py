"""Integers of 32 bits wrap around in JAX: where they may, a condition says so."""

from __future__ import annotations

from typing import Any

import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

import symgrad as sg  # noqa: E402

pytestmark = pytest.mark.peers


def ramp(x: Any) -> Any:
    return jnp.arange(x.shape[0], dtype=jnp.int32)


MAY = {
    "square": lambda x: ramp(x) * ramp(x),
    "power": lambda x: ramp(x) ** 3,
    "scaled": lambda x: ramp(x) * jnp.int32(1 << 20),
    "size": lambda x: jnp.int32(x.shape[0]) * x.shape[0],
    "sum": lambda x: ramp(x).sum(),
    "running sum": lambda x: jnp.cumsum(ramp(x)),
    "product": lambda x: jnp.dot(ramp(x), ramp(x)),
}
NEVER = {
    "ramp": ramp,
    "neighbour": lambda x: ramp(x) + 1,
    "difference": lambda x: ramp(x)[:, None].sum(1) * 0 + x.shape[0] - 1 - ramp(x),
    "parity": lambda x: ramp(x) % 2 * 3,
    "half": lambda x: ramp(x) // 2 - 1,
    "count": lambda x: (ramp(x) < 5).sum(),
    "place": lambda x: jnp.argmax(x) + 1,
}


def judged(factor: Any) -> sg.Report:
    made = jax.custom_vjp(lambda x: x * factor(x))
    made.defvjp(
        lambda x: (x * factor(x), x), lambda x, g: (g * factor(x).astype(jnp.float32),)
    )  # fmt: skip
    return sg.verify(made, "n")


@pytest.mark.parametrize("name", [*MAY, *NEVER])
def test_what_may_overflow_is_printed(name: str) -> None:
    report = judged(MAY.get(name) or NEVER[name])
    printed = [one.text for one in report.conditions if "2147483648" in one.text]
    assert report.verdict is sg.PROVED, str(report)
    assert bool(printed) == (name in MAY)


def test_what_always_overflows_is_not_proved() -> None:
    report = judged(lambda x: jnp.int32(1 << 16) * jnp.int32(1 << 16))
    assert report.verdict is sg.UNDECIDED
    assert "an integer of 32 bits overflows" in str(report)
