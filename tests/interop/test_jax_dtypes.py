"""Floats of 16 bits, and of two dtypes, are not judged: what a program does otherwise is printed.

JAX is the oracle: it runs each program in all dtypes.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

import symgrad as sg  # noqa: E402

pytestmark = pytest.mark.peers

KINDS = (jnp.float32, jnp.float16, jnp.bfloat16)
WAYS = {
    "==": lambda x, y: x.dtype == jnp.bfloat16,
    "finfo": lambda x, y: jnp.finfo(x.dtype).eps > 1e-3,
    "size": lambda x, y: y.dtype.itemsize == 2,
    "text": lambda x, y: "16" in str(x.aval),
    "attribute": lambda x, y: getattr(x, "dt" + "ype") == jnp.float16,
    "unlike": lambda x, y: x.dtype != y.dtype,
    "result": lambda x, y: jnp.result_type(x, y) != x.dtype,
    "cast": lambda x, y: x.astype(jnp.float32).dtype != jnp.float32,
    "like": lambda x, y: jnp.zeros_like(x).astype(y.dtype).dtype != y.dtype,
    "integers": lambda x, y: jnp.issubdtype(x.dtype, jnp.integer),
}


def product(asks: Any) -> Any:
    made = jax.custom_vjp(lambda x, y: x * y)
    made.defvjp(
        lambda x, y: (x * y, (x, y)),
        lambda kept, g: (
            ((3 if asks(*kept) else 1) * g * kept[1]).astype(kept[0].dtype),
            (g * kept[0]).astype(kept[1].dtype),
        ),
    )
    return made


def is_wrong(function: Any, one: Any, other: Any) -> bool:
    given = jnp.ones(1, one), jnp.ones(1, other)
    found = jax.grad(lambda x, y: function(x, y).sum().astype(jnp.float32))(*given)
    return bool(found[0] != 1)


@pytest.mark.parametrize("way", WAYS)
def test_what_is_wrong_for_other_dtypes_is_printed(way: str) -> None:
    function = product(WAYS[way])
    report = sg.verify(function, "n", "n")
    printed = [one.text for one in report.conditions if one.kind == "asked"]
    pairs = itertools.product(KINDS, repeat=2)
    wrong = {one == other for one, other in pairs if is_wrong(function, one, other)}
    assert report.verdict is sg.PROVED, str(report)
    assert bool(wrong) == bool(printed)
    assert (True in wrong) <= any("no float is a" in one for one in printed)
    assert (False in wrong) <= bool(printed)
