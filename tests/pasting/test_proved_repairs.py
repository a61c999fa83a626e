"""A repair that is called proved is PROVED where it is pasted, with exactly what is printed.

Repairs are written into the text of the class here, and judged as any other Function.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
import textwrap
from typing import Any

import pytest

import symgrad as sg
from symgrad.proof.report.rendering import worded
from tests.suite.adversarial.loader import KINDS, over_symgrad
from tests.suite.adversarial.program import WRONG, Program, class_of, class_text

REPORTED_ONCE = ("found",)


def pasted(source: str, place: int, code: str) -> str | None:
    """The class with another gradient at a place of what backward returns.

    None where backward returns in more than one place, or not gradient by gradient.
    """
    tree = ast.parse(source)
    found = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == "backward"]
    if len(found) != 1:
        return None
    returns = [node for node in ast.walk(found[0]) if isinstance(node, ast.Return)]
    if len(returns) != 1 or returns[0] is not found[0].body[-1] or returns[0].value is None:
        return None
    value, new = returns[0].value, ast.parse(code).body
    assert isinstance(new[-1], ast.Expr)
    if isinstance(value, ast.Tuple):
        value.elts[place] = new[-1].value
    elif place == 0:
        returns[0].value = new[-1].value
    else:
        return None
    found[0].body[-1:-1] = new[:-1]
    return ast.unparse(tree) + "\n"


def made(function: Any, text: str) -> Any:
    """The class of a text, which reads what the given class can read."""
    space = vars(sys.modules[function.__module__]) | {"sg": sg}
    path = f"<pasted {function.__name__}>"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    exec(compile(text, path, "exec"), space)
    return space[function.__name__]


def judged(program: Program, function: Any, *, suggest: bool) -> Any:
    """The report on a class, judged as a program is."""
    return sg.verify(
        function, *program.specs, static=dict(program.static) or None,
        assume=dict(program.assume) or None, suggest=suggest,
    )  # fmt: skip


def check(program: Program) -> tuple[Any, list[str]]:
    """The report on a program, and its repairs that hold where they are pasted, as code."""
    try:
        report = judged(program, program.function, suggest=True)
        text = program.source or textwrap.dedent(inspect.getsource(program.function))
    except (sg.SymgradError, OSError, TypeError):
        return None, []
    names = list(inspect.signature(program.function.forward).parameters)[1:]
    held = []
    for one in report.inputs.values():
        elsewhere = any("save" in said or "keep it first" in said for said in one.diagnosis)
        elsewhere |= one.reason.startswith("backward failed")  # all of backward is written anew
        if one.suggestion is None or elsewhere:
            continue
        new = pasted(text[text.index("class ") :], names.index(one.name), one.suggestion)
        if new is None:
            continue
        again = judged(program, made(program.function, new), suggest=False)
        after = again.inputs[one.name]
        assert after.verdict == sg.PROVED, f"{report}\n\n{new}\n{again}"
        said = {*one.suggested_under, *(c for c in one.conditions if c.kind not in REPORTED_ONCE)}
        assert said == set(after.conditions), f"{report}\n\n{new}\n{again}"
        assert all(worded(c) in " ".join(str(report).split()) for c in one.suggested_under)
        held.append(one.suggestion)
    return report, held


WRONG_ONES = [
    program for kind in KINDS for program in over_symgrad(kind).values()
    if program.label == WRONG and program.order == 1
]  # fmt: skip


# a wrong backward with a part that is 0, or 1, wherever it is defined, and undefined somewhere
DEAD = (
    "0/(x+70)", "(x-x)*(x-6)**-2.0", "(x-9).reciprocal() - (x-9).reciprocal()", "0*(x+1e6).log()",
    "0*sg.lgamma(x+3)", "0*(x-40).acosh()", "0*(x.sum()-3).reciprocal()",
)  # fmt: skip
ONES = ("x/x", "(x+1).reciprocal()*(x+1)", "(x*x)**0.5/x.abs()")
SUMMED = ("+ {}", "- 2*{}", "+ g*{}")


def dead_program(number: int, forward: str, backward: str, takes: str = "x") -> Program:
    name = f"Dead{number}"
    text = class_text(name, forward, backward, takes)
    specs = ("n",) * len(takes)
    return Program(name, class_of(name, text, sg), specs, WRONG, source=text)


SLIPS = (("x*x", "3*g*x"), ("x.sin()", "-g*x.cos()"), ("x.exp()", "g*x.exp()*2"))
DEAD_ONES = [
    dead_program(k, *SLIPS[k % 3][:1], f"{SLIPS[k % 3][1]} {SUMMED[k % 2].format(term)}")
    for k, term in enumerate(DEAD)
] + [
    dead_program(50 + k, SLIPS[k % 3][0], f"{SLIPS[k % 3][1]} * {one}")
    for k, one in enumerate(ONES)
]  # fmt: skip


@pytest.mark.parametrize("program", [pytest.param(one, id=one.name) for one in DEAD_ONES])
def test_a_repair_has_no_dead_part(program: Program) -> None:
    report, held = check(program)
    assert held, "no repair was pasted"
    assert not report.inputs["x"].suggested_under, str(report)


CONDITIONAL = (
    ("x.relu()", "2*g*(x > 0)"),
    ("sg.maximum(x, y)", "g*(x > y), g*(x > y)"),
    ("x.log()", "2*g/x"),
    ("x.prod()", "2*g*x.prod()/x"),
    ("x**1.5", "g*x**0.5"),
)


@pytest.mark.parametrize(("forward", "backward"), CONDITIONAL)
def test_a_repair_is_printed_with_its_conditions(forward: str, backward: str) -> None:
    number = 80 + CONDITIONAL.index((forward, backward))
    takes = "xy" if "y" in forward else "x"
    report, held = check(dead_program(number, forward, backward, takes))
    assert held, "no repair was pasted"
    if forward == "x.relu()":
        below = str(report).partition("write instead")[2]
        assert "at the kink: x == 0 (yours gives 0 there)" in below


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_repairs_of_hostile_programs(part: int) -> None:
    for program in WRONG_ONES[part::40]:
        check(program)
