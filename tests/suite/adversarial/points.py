"""Points: the sizes, the tensors and the plain values at which a program is looked at.

In: a ``Program`` and an ``At``.  Out: a ``Place``: sizes by name, arrays and plain values by the
names of forward's parameters.  What the point does not name is generic, and the same each time.
"""

from __future__ import annotations

import inspect
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.suite.adversarial.program import At, Program, at

SIZES = {"n": 3, "m": 2, "k": 4}
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Place:
    """A point in full."""

    sizes: Mapping[str, int]
    arrays: Mapping[str, np.ndarray]
    plain: Mapping[str, Any]


def parameters(program: Program) -> list[str]:
    """The names of forward's arguments, without ctx."""
    return list(inspect.signature(program.function.forward).parameters)[1:]


def tensors(program: Program) -> dict[str, str]:
    """The tensor arguments and their specs; absent ones are left out."""
    free = [name for name in parameters(program) if name not in program.static]
    pairs = zip(free, program.specs, strict=False)
    return {name: spec for name, spec in pairs if spec is not None}


def place(program: Program, point: At, seed: int = 0) -> Place:
    """The sizes and values of a point."""
    specs = tensors(program)
    words = {word for spec in specs.values() for word in _WORD.findall(_dims(spec))}
    sizes = {word: SIZES[word] + seed % 2 for word in sorted(words)}
    sizes |= {name: value for name, value in point.values.items() if name in words}
    arrays = {}
    for name, spec in specs.items():
        shape = tuple(eval(word, {}, dict(sizes)) for word in _dims(spec).split())
        arrays[name] = _array(program, name, spec, shape, point, seed)
    plain = {
        name: one.default
        for name, one in inspect.signature(program.function.forward).parameters.items()
        if isinstance(one.default, (int, float))
    } | dict(program.static)
    plain |= {k: v for k, v in point.values.items() if k not in sizes and k not in arrays}
    return Place(sizes, arrays, plain)


def generic(program: Program) -> Iterator[Place]:
    """Two points of which nothing is named."""
    yield place(program, at(), 0)
    yield place(program, at(), 1)


def _dims(spec: str) -> str:
    return spec[spec.index("[") + 1 : -1] if "[" in spec else spec


def _array(
    program: Program, name: str, spec: str, shape: tuple[int, ...], point: At, seed: int
) -> np.ndarray:
    if name in point.values:
        return np.broadcast_to(np.asarray(point.values[name], float), shape).copy()
    generator = np.random.default_rng([seed, zlib.crc32(f"{program.name} {name}".encode())])
    if spec.startswith("bool"):
        return generator.random(shape) < 0.5
    low, high = program.inside.get(name, (0.0, 0.0))
    if low < high:
        return generator.uniform(low, high, shape)
    values = generator.standard_normal(shape)
    values = values + 0.2 * np.sign(values)  # not close to zero
    if "symmetric" in program.assume.get(name, ""):
        values = values + np.swapaxes(values, -1, -2)
    return values * program.scale
