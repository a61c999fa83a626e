"""A gradient as JAX computes it: a function of the user's runs, on real arrays of 64 bits.

In: a ``jax.custom_vjp`` function, how its arguments are grouped, a ``Call``.  Out: ``Measured``:
one element of the gradient by ``bwd``, and by other means.

The other means are ``jax.vjp`` of ``fun``, the plain function, and difference quotients of it.
Where both agree, the number of ``jax.vjp`` counts.  Where they do not, the quotients count: ``fun``
may say itself what is differentiated (``stop_gradient``, a nested rule).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from symgrad.frontend.guests import Call, Given, Measured, NotMeasured
from symgrad.interop.quotients import Weighted, by_quotients

_DIGITS = 1e-11
"""How far numbers that were computed in float64 may be from those that are meant, relatively."""
_ROUNDING = 2.0**-50
"""The same of the outputs of ``fun``, a few operations deep."""
_COARSE = 1e-3
"""A relative error with which a quotient says nothing."""


def measured(function: Any, grouped: Callable[..., tuple[Any, ...]], call: Call) -> Measured:
    """One element of a gradient, as ``bwd`` gives it and as it should be.

    Raises NotMeasured, and what the user's code raises.
    """
    with _calm():
        return _measured(_Run(function, grouped, call))


@contextmanager
def _calm() -> Iterator[None]:
    with warnings.catch_warnings(), jax.enable_x64(True), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@dataclass(frozen=True)
class _Run:
    """A function, its arguments of the leaves that a call gives, and the call."""

    function: Any
    grouped: Callable[..., tuple[Any, ...]]
    call: Call

    def wanted(self) -> Any:
        """The argument whose gradient is asked about."""
        for name, value in self.call.arguments:
            if name == self.call.wanted and isinstance(value, Given):
                return np.asarray(value.value, dtype=np.float64)
        raise NotMeasured(f"{self.call.wanted} is no array of floats")

    def outputs(self, function: Callable[..., Any], wanted: Any) -> list[tuple[Any, Any]]:
        """The outputs that have a cotangent, with it."""
        leaves = [
            wanted if name == self.call.wanted else _value(value)
            for name, value in self.call.arguments
        ]
        found = jax.tree_util.tree_leaves(function(*self._plain(self.grouped(leaves))))
        if len(found) != len(self.call.cotangents):
            raise NotMeasured(
                f"fun returns {len(found)} arrays, and not {len(self.call.cotangents)}"
            )
        return [
            (one, np.asarray(given, dtype=np.float64).reshape(jnp.shape(one)))
            for one, given in zip(found, self.call.cotangents, strict=True)
            if given is not None
        ]

    def _plain(self, given: Sequence[Any]) -> list[Any]:
        """The arguments, with numbers for those that JAX takes no arrays for."""
        fixed = frozenset(getattr(self.function, "nondiff_argnums", ()))
        return [
            one.item() if place in fixed and isinstance(one, jax.Array) and one.ndim == 0 else one
            for place, one in enumerate(given)
        ]  # fmt: skip

    def gradient(self, function: Callable[..., Any]) -> float:
        """One element of the gradient of a function, as JAX differentiates it."""

        def total(wanted: Any) -> Any:
            pairs = self.outputs(function, wanted)
            return sum((jnp.vdot(given, one) for one, given in pairs), jnp.zeros(()))

        return float(jax.grad(total)(jnp.asarray(self.wanted()))[self.call.at])

    def meant(self) -> Callable[..., Any]:
        """What backward is to be the derivative of."""
        if self.call.meant is None:
            return self.function.fun  # type: ignore[no-any-return]
        found = getattr(self.call.meant, "symgrad_real", None)
        if found is None:  # in another process, which has it from the program
            found = vars(self.function).get("symgrad_surrogate")
        if found is None:
            raise NotMeasured("the surrogate is not known there")
        return found  # type: ignore[no-any-return]


def _value(value: Any) -> Any:
    if not isinstance(value, Given):
        return value
    kind = "float64" if value.dtype.startswith("float") else value.dtype
    return jnp.asarray(np.asarray(value.value, dtype=kind))


def _measured(run: _Run) -> Measured:
    meant = run.meant()
    backward = run.gradient(run.function)
    derived = _by_jax(run, meant)
    true, error = _quotient(run, meant)
    how = "by difference quotients"
    if derived is not None:
        own, apart = _DIGITS * (1 + abs(derived)), abs(derived - true)
        if run.call.meant is not None:  # what it stops is meant to be a constant
            true, error, how = derived, own, "by jax.vjp of the surrogate"
        elif not apart > max(error, _COARSE * (1 + abs(derived))):
            error = own if not apart > error else apart
            true, how = derived, "by jax.vjp of fun"
    if not math.isfinite(true) or error > _COARSE * (1 + abs(true)):
        raise NotMeasured("neither jax.vjp nor difference quotients give the derivative of fun")
    error += _DIGITS * (abs(backward) if math.isfinite(backward) else 0)
    return Measured(backward, true, error, how, "float64")


def _by_jax(run: _Run, meant: Callable[..., Any]) -> float | None:
    """The derivative of the plain function; None where JAX finds none."""
    try:
        found = run.gradient(meant)
    except NotMeasured:
        raise
    except Exception:  # a loop that JAX does not differentiate in reverse, say
        return None
    return found if math.isfinite(found) else None


def _quotient(run: _Run, meant: Callable[..., Any]) -> tuple[float, float]:
    """The derivative, and how wrong it may be; NaN where the quotients show none."""
    point = run.wanted()

    def outputs(value: float) -> tuple[Sequence[Weighted], float]:
        moved = point.copy()
        moved[run.call.at] = value
        pairs = run.outputs(meant, jnp.asarray(moved))
        return [Weighted(np.asarray(one, np.float64), given, _ROUNDING) for one, given in pairs], (
            value
        )

    try:
        return by_quotients(outputs, float(point[run.call.at]))
    except NotMeasured:
        raise
    except Exception:  # fun does not take the values next to these
        return math.nan, math.inf
