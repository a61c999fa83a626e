"""Sizes and arguments to try a Function of the corpus at.

In: a ``Case``.  Out: sizes by name and forward's arguments as torch tensors, that meet the
declared assumptions.  Every size takes the value 1 by itself; small and large values occur.
"""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import torch

from tests.suite.marks import Case
from tests.suite.torch_apply import parameter_names

SCALES = (1.0, 0.3, 4.0)
BATCH = "batch"  # the name of any number of leading axes in a spec: ``*batch``
BATCHES: tuple[tuple[int, ...], ...] = ((2, 3), (), (3,), (2, 1, 2))
_DTYPES = {"i64": torch.int64, "bool": torch.bool}


class Unsatisfiable(Exception):
    """No input of these sizes meets the assumptions."""


def size_names(case: Case) -> list[str]:
    """The size symbols of a case's specs and of its assumptions, in order of appearance."""
    text = [_dims(spec) for spec in case.specs if spec is not None]
    words = re.findall(r"[A-Za-z_]\w*", " ".join(text))
    words += [word for value in case.assume.values() for word in _index_bound(value)]
    return list(dict.fromkeys(words))


def _dims(spec: str) -> str:
    return spec[spec.index("[") + 1 : -1] if "[" in spec else spec


def _shape(spec: str, sizes: dict[str, Any]) -> tuple[int, ...]:
    shape: tuple[int, ...] = ()
    for word in _dims(spec).split():
        value = sizes[BATCH] if word == f"*{BATCH}" else eval(word, {}, dict(sizes))
        shape += value if isinstance(value, tuple) else (value,)
    return shape


def _index_bound(assumption: str) -> list[str]:
    found = re.fullmatch(r"(?:unique )?index ([A-Za-z_]\w*)", assumption)
    return [found.group(1)] if found else []


def size_choices(names: list[str]) -> list[dict[str, Any]]:
    """Generic sizes, each size 1 by itself, all 1, all equal; ``*batch`` is a tuple of sizes."""
    if not names:
        return [{}, {}, {}]
    if BATCH in names:
        others = size_choices([name for name in names if name != BATCH])
        return [{**choice, BATCH: shape} for choice in others for shape in BATCHES]
    generic = itertools.cycle((3, 2, 5, 4))
    first = {name: next(generic) for name in names}
    second = {name: 2 + (index + 1) % 3 for index, name in enumerate(names)}
    choices = [first, second]
    choices += [{**first, name: 1} for name in names]
    choices += [{**second, **dict.fromkeys(names, 1), name: 3} for name in names]
    choices += [dict.fromkeys(names, 1), dict.fromkeys(names, 2), dict.fromkeys(names, 3)]
    return [dict(pair) for pair in dict.fromkeys(tuple(choice.items()) for choice in choices)]


def sample_arguments(
    case: Case, sizes: dict[str, Any], generator: np.random.Generator, scale: float
) -> dict[str, Any]:
    """The arguments by name: tensors of the specs' shapes, then the static ones."""
    names = parameter_names(case)
    given: dict[str, Any] = {}
    free = [name for name in names if name not in case.static]
    for position, spec in enumerate(case.specs):
        name = free[position] if position < len(free) else f"{free[-1]}_{position}"
        if spec is None:
            given[name] = None
            continue
        shape = _shape(spec, sizes)
        kind = spec[: spec.index("[")] if "[" in spec else "f64"
        values = _sample(shape, kind, case.assume.get(name, ""), sizes, generator, scale)
        given[name] = torch.tensor(values, dtype=_DTYPES.get(kind, torch.float64))
    return {**given, **case.static}


def _sample(
    shape: tuple[int, ...],
    kind: str,
    assumption: str,
    sizes: dict[str, Any],
    generator: np.random.Generator,
    scale: float,
) -> Any:
    unique = assumption.startswith("unique ")
    if kind == "bool":
        return generator.random(shape) < 0.5
    if "index" in assumption:
        word = assumption.split()[-1]
        bound = int(word) if word.isdigit() else sizes[word]
        count = int(np.prod(shape))
        if unique and count > bound:
            raise Unsatisfiable
        picked = generator.permutation(bound)[:count] if unique else None
        return generator.integers(0, bound, shape) if picked is None else picked.reshape(shape)
    normal = generator.standard_normal(shape) * scale
    if assumption == "positive":
        return np.exp(np.clip(normal, -2, 2))
    if assumption == "symmetric":
        return normal + np.swapaxes(normal, -1, -2)
    if assumption == "one-hot":
        return np.eye(shape[-1])[generator.integers(0, shape[-1], shape[:-1])]
    if assumption == "{0, 1}":
        return (generator.random(shape) < 0.5).astype(float)
    interval = re.fullmatch(r"[(\[](-?[\d.]+), (-?[\d.]+)[)\]]", assumption)
    if interval:
        low, high = map(float, interval.groups())
        return generator.uniform(low, high, shape)
    if assumption not in ("", "constant"):
        raise ValueError(f"unknown assumption: {assumption}")
    return normal
