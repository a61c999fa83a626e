"""A smaller program that still fails in the same way.

In: a program and a test of programs.  Out: the smallest one found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from benchmarks.reliability.draw import without_dead
from benchmarks.reliability.program import Ending, Program, Step, renamed, with_name


def reduced(program: Program, fails: Callable[[Program], bool], most: int) -> Program:
    """The program after every change that keeps it failing; ``most`` tries."""
    changed = True
    while changed and most > 0:
        changed = False
        for candidate in _smaller(program):
            most -= 1
            if fails(candidate):
                program, changed = candidate, True
                break
            if most <= 0:
                break
    return program


def _smaller(program: Program) -> Iterator[Program]:
    """Programs with something less, the greatest changes first."""
    if program.written:
        yield replace(program, written=False)
    for number in range(len(program.endings)):
        rest = [one for at, one in enumerate(program.endings) if at != number]
        if rest:
            rest[-1] = replace(rest[-1], condition="")
            yield without_dead(replace(program, endings=tuple(rest)))
    for one in program.inputs:
        if one.optional:
            inputs = tuple(replace(i, optional=i.optional and i != one) for i in program.inputs)
            yield replace(program, inputs=inputs)
    count = len(program.endings[0].outputs)
    for at in range(count if count > 1 else 0):
        endings = tuple(
            replace(ending, outputs=(*ending.outputs[:at], *ending.outputs[at + 1 :]))
            for ending in program.endings
        )
        yield without_dead(replace(program, endings=endings))
    yield from _without_steps(program)


def _without_steps(program: Program) -> Iterator[Program]:
    """Each step left out, an earlier value of the same shape and kind in the place of its own."""
    values = program.values()
    steps = [*program.steps, *(step for ending in program.endings for step in ending.steps)]
    for step in reversed(steps):
        names = [*program.arguments, *(one.result.name for one in program.steps if one != step)]
        names = names[: names.index(step.result.name)] if step.result.name in names else names
        for name in names:
            fits = values[name].shape == step.result.shape and values[name].kind == step.result.kind
            if fits and _before(program, name, step):
                yield without_dead(_replaced(program, step, name))
                break


def _before(program: Program, name: str, step: Step) -> bool:
    """Is the value there when the step is reached?"""
    order = [*program.arguments, *(one.result.name for one in program.steps)]
    place = order.index(step.result.name) if step.result.name in order else len(order)
    return name in order[:place] and not any(
        one.optional and one.value.name == name for one in program.inputs
    )


def _replaced(program: Program, gone: Step, name: str) -> Program:
    old = gone.result.name

    def rest(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        return tuple(with_name(step, old, name) for step in steps if step != gone)

    endings = tuple(
        Ending(
            renamed(ending.condition, old, name), rest(ending.steps),
            tuple(name if one == old else one for one in ending.outputs),
        )
        for ending in program.endings
    )  # fmt: skip
    return replace(program, steps=rest(program.steps), endings=endings)
