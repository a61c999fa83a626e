"""A random program, fixed by its seed.

In: a seed.  Out: a ``Program``.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from copy import copy
from dataclasses import replace

from benchmarks.reliability.program import (
    BOOL,
    FLOAT,
    INTEGER,
    Ending,
    Input,
    Program,
    Shape,
    Step,
    Value,
    can_be_written,
)
from benchmarks.reliability.vocabulary import WORDS, Draft, condition

_SHAPES: tuple[Shape, ...] = (
    ("n", "m"), ("n", "m"), ("n", "m"), ("n",), ("m",), ("m", "k"), ("n", "k"), ("m", "n"), ("k",),
    ("n", "m", "k"), (), ("n", "n"), ("n", "1"), ("1", "m"), ("k", "n", "m"), ("n", "3"),
)  # fmt: skip
_NAMES = ("x", "y", "z", "w")
_MOST_TRIES = 60


def draw(seed: str) -> Program:
    """The program of a seed."""
    choice = random.Random(seed)
    inputs = _inputs(choice)
    written = choice.random() < 0.45
    draft = Draft(choice, [one.value for one in inputs if not one.optional])
    for one in inputs:
        if one.optional:
            _use_optional(draft, one.value)
    _extend(draft, choice.randint(2, 8), written)
    endings = _endings(draft, written)
    # What raises in torch though nobody reads it is no part of what an op computes.
    program = without_dead(Program(tuple(inputs), tuple(draft.steps), tuple(endings)))
    if not (written and can_be_written(program)):
        return program
    names = [name for name in program.values() if name not in program.arguments]
    kept = frozenset(name for name in names if choice.random() < 0.6)
    attributes = frozenset(name for name in kept if choice.random() < 0.2)
    return replace(program, written=True, kept=kept, attributes=attributes)


def without_dead(program: Program) -> Program:
    """Without the steps and inputs that no output needs."""
    endings, alive = [], set()
    for ending in program.endings:
        needed = set(ending.outputs)
        steps = _needed(ending.steps, needed)
        endings.append(replace(ending, steps=steps))
        alive |= needed | set(re.findall(r"\w+", ending.condition))
    kept = _needed(program.steps, alive)
    inputs = tuple(one for one in program.inputs if one.value.name in alive)
    return replace(program, inputs=inputs, steps=kept, endings=tuple(endings))


def _needed(steps: Sequence[Step], needed: set[str]) -> tuple[Step, ...]:
    """The steps that ``needed`` rests on; what these read is added to it."""
    kept = []
    for step in reversed(steps):
        if step.result.name in needed:
            kept.append(step)
            words = " ".join(step.lines) + " ".join(text for _, text in step.slopes or ())
            needed |= set(re.findall(r"\w+", words))
    return tuple(reversed(kept))


def _inputs(choice: random.Random) -> list[Input]:
    found = [
        Input(Value(name, choice.choice(_SHAPES)))
        for name in _NAMES[: choice.choice([1, 1, 2, 2, 2, 3, 3, 4])]
    ]
    if choice.random() < 0.25:
        found.append(Input(Value("o", choice.choice(found).value.shape), optional=True))
    sizes = [size for one in found for size in one.value.shape if size.isidentifier()]
    if sizes and choice.random() < 0.45:
        below = choice.choice(sizes)
        found.append(Input(Value("idx", (choice.choice(["p", "p", *sizes]),), INTEGER, below)))
    if choice.random() < 0.2:
        found.append(Input(Value("mask", choice.choice(found).value.shape, BOOL)))
    return found


def _use_optional(draft: Draft, value: Value) -> None:
    a = draft.like(value.shape)
    if a is None:
        return
    name, other = draft.name(), value.name
    text = f"{name} = {a.name} * 1.5 if {other} is None else {a.name} + {other} * 2"
    rules = (
        (a.name, f"({{g}} * 1.5 if not ctx.has_{other} else {{g}})"),
        (other, f"(None if not ctx.has_{other} else {{g}} * 2)"),
    )
    step = Step(Value(name, value.shape), (text,), (a.name, other), rules)
    draft.steps.append(step)
    draft.values.append(step.result)


def _extend(draft: Draft, count: int, written: bool) -> None:
    """So many steps more; those of a written program have rules."""
    words = [word for weight, word in WORDS for _ in range(weight)]
    for _ in range(_MOST_TRIES):
        if count <= 0:
            return
        step = draft.choice.choice(words)(draft)
        if step is not None and _may_stand(step, written):
            draft.add(step)
            count -= 1


def _may_stand(step: Step, written: bool) -> bool:
    """A written backward needs a rule; what is detached is no constant in the map it belongs to."""
    return not written or (step.slopes is not None and "detach" not in " ".join(step.lines))


def _endings(draft: Draft, written: bool) -> list[Ending]:
    """One ending, or two with other steps or another order of outputs."""
    outputs = _outputs(draft)
    asked = [v for v in draft.values if v.shape and v.name != "o"]
    if not asked or draft.choice.random() < 0.65:
        return [Ending("", (), outputs)]
    value = draft.choice.choice(asked[:4])
    test = condition(draft, value).replace("{a}", value.name)
    first = copy(draft)
    first.values, first.steps = list(draft.values), []
    _extend(first, draft.choice.randint(0, 2), written)
    draft.count = first.count
    other = _reordered(first, outputs)
    return [Ending(test, tuple(first.steps), other), Ending("", (), outputs)]


def _outputs(draft: Draft) -> tuple[str, ...]:
    """Some of the values, the last of them among these, one of them of floats."""
    computed = [step.result for step in draft.steps] or draft.values[:1]
    floats = [v for v in computed if v.kind == FLOAT] or [
        v for v in draft.values if v.kind == FLOAT
    ]
    read = {name for step in draft.steps for name in step.arguments}
    ends = [v for v in computed if v.name not in read]
    found = [floats[-1].name]
    for _ in range(draft.choice.choice([0, 0, 1, 1, 2])):
        found.append(draft.choice.choice(ends or computed or floats).name)
    found = list(dict.fromkeys(found))
    draft.choice.shuffle(found)
    return tuple(found)


def _reordered(draft: Draft, outputs: tuple[str, ...]) -> tuple[str, ...]:
    """As many values of the same kinds and ranks, in another order or others altogether."""
    kinds = {v.name: (v.kind, len(v.shape)) for v in draft.values}
    if draft.choice.random() < 0.4 and len({kinds[name][0] for name in outputs}) == 1:
        return outputs[::-1]
    found: list[str] = []
    for name in outputs:
        fits = [
            v.name for v in draft.values if kinds[v.name] == kinds[name] and v.name not in found
        ]
        fits = [one for one in fits if not one.startswith(("o", "x", "y", "z", "w", "idx", "mask"))]
        found.append(draft.choice.choice(fits[-4:] or [name]))
    return tuple(found) if len(set(found)) == len(found) else outputs
