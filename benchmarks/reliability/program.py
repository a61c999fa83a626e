"""What a random program is: inputs, steps in single assignment, ways to end; and its text.

In: steps that ``operations`` drew.  Out: the source of a Function, and of the plain function that
computes the same, over a module called ``T``: torch or symgrad.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

FLOAT, INTEGER, BOOL = "float", "integer", "bool"
Shape = tuple[str, ...]


@dataclass(frozen=True)
class Value:
    """What a name stands for.  ``shape``: the text of each size.

    ``below``: an integer value indexes an axis of this size.
    """

    name: str
    shape: Shape
    kind: str = FLOAT
    below: str = ""


@dataclass(frozen=True)
class Input:
    """An argument of the program; ``optional``: it may be None."""

    value: Value
    optional: bool = False


@dataclass(frozen=True)
class Step:
    """The lines that compute one value from others.

    ``slopes``: for each float argument what its gradient grows by, as text over ``{g}``, the
    gradient of the result; None where only a derived backward will do.  ``reads``: the values
    that these texts read.
    """

    result: Value
    lines: tuple[str, ...]
    arguments: tuple[str, ...]
    slopes: tuple[tuple[str, str], ...] | None = None
    reads: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ending:
    """What follows where ``condition`` holds (empty: otherwise), and what is returned there."""

    condition: str
    steps: tuple[Step, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Program:
    """Steps for all sizes, then one of several endings.

    ``written``: backward is written out; else it is derived.  ``kept``: what a written backward
    finds saved, by ``save_for_backward`` or (``attributes``) on ctx; the rest it computes again.
    """

    inputs: tuple[Input, ...]
    steps: tuple[Step, ...]
    endings: tuple[Ending, ...]
    written: bool = False
    kept: frozenset[str] = frozenset()
    attributes: frozenset[str] = frozenset()

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of the inputs."""
        return tuple(one.value.name for one in self.inputs)

    @property
    def sizes(self) -> tuple[str, ...]:
        """The names of the sizes of the inputs, in order."""
        found = (size for one in self.inputs for size in (*one.value.shape, one.value.below))
        return tuple(dict.fromkeys(size for size in found if size.isidentifier()))

    def values(self) -> dict[str, Value]:
        """Every value by its name."""
        steps = [*self.steps, *(step for ending in self.endings for step in ending.steps)]
        found = [*(one.value for one in self.inputs), *(step.result for step in steps)]
        return {value.name: value for value in found}

    def outputs(self) -> tuple[str, ...]:
        """The kinds of what is returned: the same in every ending."""
        values = self.values()
        return tuple(values[name].kind for name in self.endings[0].outputs)

    def specs(self, absent: frozenset[str] = frozenset(), dtype: str = "f64") -> list[str | None]:
        """The shapes of the inputs as symgrad takes them."""
        kinds = {FLOAT: dtype, INTEGER: "i64", BOOL: "bool"}
        return [
            None if one.value.name in absent
            else f"{kinds[one.value.kind]}[{' '.join(one.value.shape)}]"
            for one in self.inputs
        ]  # fmt: skip


def function_text(program: Program) -> str:
    """``def program(...)``: forward alone, of any tensors."""
    lines = [f"def program({', '.join(program.arguments)}):"]
    lines += _indented(_forward(program, saving=False), 1)
    return "\n".join(lines) + "\n"


def class_text(program: Program) -> str:
    """``class Program(Base)``: the Function, with its backward where that is written out."""
    lines = ["class Program(Base):", "    @staticmethod"]
    lines += [f"    def forward(ctx, {', '.join(program.arguments)}):"]
    lines += _indented(_forward(program, saving=program.written), 2)
    if program.written:
        cotangents = [f"g{position}" for position in range(len(program.outputs()))]
        lines += ["", "    @staticmethod", f"    def backward(ctx, {', '.join(cotangents)}):"]
        lines += _indented(_backward(program), 2)
    return "\n".join(lines) + "\n"


def renamed(text: str, old: str, new: str) -> str:
    """The text with another name."""
    return re.sub(rf"\b{old}\b", new, text)


def with_name(step: Step, old: str, new: str) -> Step:
    """The step, reading another value."""
    slopes = step.slopes
    if slopes is not None:
        slopes = tuple((renamed(a, old, new), renamed(text, old, new)) for a, text in slopes)
    return replace(
        step,
        lines=tuple(renamed(line, old, new) for line in step.lines),
        arguments=tuple(new if name == old else name for name in step.arguments),
        slopes=slopes,
        reads=tuple(new if name == old else name for name in step.reads),
    )


# -- forward


def _indented(lines: Iterable[str], depth: int) -> Iterator[str]:
    return ("    " * depth + line for line in lines)


def _forward(program: Program, saving: bool) -> list[str]:
    lines = [line for step in program.steps for line in step.lines]
    for number, ending in enumerate(program.endings):
        body = [line for step in ending.steps for line in step.lines]
        if saving:
            body += _saved(program, number)
        results = ", ".join(ending.outputs)
        if not ending.condition:
            return [*lines, *body, f"return {results}"]
        lines += [f"if {ending.condition}:", *_indented([*body, f"return {results}"], 1)]
    raise ValueError("the last ending has no condition")


def _saved(program: Program, number: int) -> list[str]:
    """The lines that keep what backward reads in one ending."""
    plan = _Recomputation(program, number)
    tensors = [name for name in plan.saved if name not in program.attributes]
    lines = [f"ctx.save_for_backward({', '.join(tensors)})"] if tensors else []
    lines += [f"ctx.{name} = {name}" for name in plan.saved if name in program.attributes]
    if len(program.endings) > 1:
        lines.append(f"ctx.ending = {number}")
    for one in program.inputs:
        if one.optional:
            lines.append(f"ctx.has_{one.value.name} = {one.value.name} is not None")
    ending, values = program.endings[number], program.values()
    other = [name for name in ending.outputs if values[name].kind != FLOAT]
    if other:
        lines.append(f"ctx.mark_non_differentiable({', '.join(dict.fromkeys(other))})")
    return lines


# -- backward


class _Recomputation:
    """What a written backward of one ending finds saved, and what it computes again."""

    def __init__(self, program: Program, number: int) -> None:
        ending = program.endings[number]
        self.steps = (*program.steps, *ending.steps)
        makers = {step.result.name: step for step in self.steps}
        wanted = [name for step in self.steps for name in step.reads]
        saved: dict[str, None] = {}
        again: set[str] = set()
        while wanted:
            name = wanted.pop()
            if name not in makers or name in program.kept:
                saved[name] = None
            elif name not in again:
                again.add(name)
                wanted += makers[name].arguments
        self.saved = sorted(saved)
        self.again = [step for step in self.steps if step.result.name in again]


def _backward(program: Program) -> list[str]:
    if len(program.endings) == 1:
        return _backward_of(program, 0)
    lines: list[str] = []
    for number in range(len(program.endings)):
        lines += [f"if ctx.ending == {number}:", *_indented(_backward_of(program, number), 1)]
    return lines


def _backward_of(program: Program, number: int) -> list[str]:
    """The gradients, step by step in reverse."""
    ending, plan, values = (
        program.endings[number],
        _Recomputation(program, number),
        program.values(),
    )
    lines = []
    tensors = [name for name in plan.saved if name not in program.attributes]
    if tensors:
        lines.append(f"{', '.join(tensors)}, = ctx.saved_tensors")
    lines += [f"{name} = ctx.{name}" for name in plan.saved if name in program.attributes]
    lines += [line for step in plan.again for line in step.lines]
    known: set[str] = set()

    def add(name: str, text: str) -> None:
        lines.append(f"d_{name} = d_{name} + {text}" if name in known else f"d_{name} = {text}")
        known.add(name)

    for position, name in enumerate(ending.outputs):
        if values[name].kind == FLOAT:
            add(name, f"g{position}")
    for step in reversed(plan.steps):
        if step.result.name in known:
            for argument, text in step.slopes or ():
                add(argument, text.replace("{g}", f"d_{step.result.name}"))
    gradients = [f"d_{name}" if name in known else "None" for name in program.arguments]
    return [*lines, f"return {', '.join(gradients)}"]


def can_be_written(program: Program) -> bool:
    """Is there a rule for every step?"""
    steps: Sequence[Step] = [*program.steps, *(s for e in program.endings for s in e.steps)]
    return all(step.slopes is not None for step in steps)
