"""What symgrad says of a program, and whether that is true.

In: a ``Program`` over symgrad.  Out: its report, and complaints: what is said and is not true.

A printed condition is computed at the points where a program fails, by its code.  It excludes a
point if it is one of ``if ...`` that does not hold there, or one of ``but where ...`` that does.
What is declared, and what is said in words alone, is looked up in a few patterns; the program names
its own by ``unless``.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

import symgrad as sg
from symgrad.errors import SymgradError
from symgrad.plain_values import described
from symgrad.proof.report.rendering import under, worded
from tests.suite.adversarial.points import Place, generic, place
from tests.suite.adversarial.program import RIGHT, WRONG, At, Program

PROVED, REFUTED, UNDECIDED, ERROR = "PROVED", "REFUTED", "UNDECIDED", "an error"
SURROGATE = "SURROGATE?"
_EXCEPT = re.compile(r"(?:but where|except at ties:|at the kink:|except where|unless)\s+(.*)", re.S)
_ONLY = re.compile(r"(?:if|only if|only where|where)\s+(.*)", re.S)
_FOUND = re.compile(r"found: PROVED if (.*?), a sufficient condition", re.S)
_REMARK = re.compile(r"\s*\((?:yours|and )[^()]*(?:\([^()]*\)[^()]*)*\)\s*$")
_NUMBERS = re.compile(r" is (\S+), true is (\S+)$")
_NO_POLE = re.compile(r"(.*) is not a pole of \w+", re.S)
_NEAR = 1e-9
_MOST_LETTERS = 3


@dataclass(frozen=True)
class Judged:
    """An answer: the verdict, or ``an error``, and the report where there is one."""

    verdict: str
    report: Any = None
    said: str = ""


def judge(program: Program, *, suggest: bool = False) -> Judged:
    """What symgrad answers; errors of symgrad are answers."""
    try:
        report = sg.verify(
            program.function, *program.specs, static=dict(program.static) or None,
            assume=dict(program.assume) or None, order=program.order, suggest=suggest,
        )  # fmt: skip
    except SymgradError as error:
        return Judged(ERROR, said=str(error))
    return Judged(str(report.verdict), report, "\n".join(_sayings(report)))


def complaints(program: Program, judged: Judged) -> list[str]:
    """What is said of a program and is not true; empty where all is well."""
    found = []
    if program.label == RIGHT and judged.verdict in (REFUTED, SURROGATE):
        found.append("REFUTED though right")
    if program.label == WRONG and judged.verdict == PROVED:
        found += [
            f"PROVED, and wrong at {point}, which nothing excludes"
            for point in program.fails
            if not excludes(program, judged, point)
        ]
    if judged.verdict == PROVED and (program.label == RIGHT or program.hides):
        found += [
            f"PROVED on a condition that excludes generic points: {said}"
            for somewhere in generic(program)
            for said in excluding(judged.report, somewhere)
            if not _SOME_SIZES.search(said)
        ]
    if judged.verdict == REFUTED:
        found += _alike(judged.report)
    if judged.report is not None and program.label == WRONG:
        found += _false_claims(program, judged.report)
    if judged.report is not None:
        found += _unclear(program, judged.report)
    return found


_SOME_SIZES = re.compile(r" is one of 1, 2, 3$")  # what asks for a number of elements
_INTERNAL = re.compile(r"(?<![\w)])%\d|\b(?:Abs|Max|Min|Piecewise|ceiling)\(|new_full\(")
_CODED = ("kink", "ties", "nonzero", "null set")
_IN_WORDS = ("the value of line", "more like these", "the two sides of a comparison")


def _unclear(program: Program, report: Any) -> Iterator[str]:
    """Conditions in names that are not the user's, said twice, or that cannot be evaluated."""
    somewhere = next(iter(generic(program)), None)
    for one in report.inputs.values():
        codes = [condition.code.replace(" ", "") for condition in one.conditions if condition.code]
        if len(set(codes)) < len(codes):
            yield f"a condition is said twice: {codes}"
        for condition in one.conditions:
            if _INTERNAL.search(condition.text):
                yield f"no words of a user: {condition}"
            in_words = any(words in condition.text for words in _IN_WORDS)
            if condition.kind not in _CODED or in_words or somewhere is None:
                continue
            if evaluated(condition, somewhere, any) is None:
                yield f"it cannot be evaluated: {condition} ({condition.code})"


def excludes(program: Program, judged: Judged, point: At) -> bool:
    """Whether something that is printed excludes the point."""
    somewhere = place(program, point)
    values = dict(judged.report.values)
    for name, value in somewhere.plain.items():
        fixed = described(program.static[name]) if name in program.static else values.get(name)
        if values.get(name) == fixed is not None and described(value) != fixed:
            return True
    if program.unless and re.search(program.unless, judged.said):
        return True
    return any(True for _ in excluding(judged.report, somewhere))


def excluding(report: Any, somewhere: Place) -> Iterator[str]:
    """The printed conditions that exclude a point, of those that can be computed."""
    for condition in report.conditions:
        found = evaluated(condition, somewhere, any if condition.excepted else all)
        if found is condition.excepted:
            yield worded(condition)
    coded = {worded(condition) for condition in report.conditions if condition.code}
    for said in _sayings(report):
        said = said.strip()
        if said in coded:
            continue
        holds_not, holds = _EXCEPT.fullmatch(said), _ONLY.fullmatch(said)
        if (holds_not and _truth(_REMARK.sub("", holds_not[1]), somewhere, any) is True) or (
            holds and _truth(_REMARK.sub("", holds[1]), somewhere, all) is False
        ):
            yield said


def evaluated(
    condition: Any, somewhere: Place, whole: Callable[[Iterable[bool]], bool]
) -> bool | None:
    """Whether the code of a condition holds (of all elements, or of any); None without code."""
    if not condition.code:
        return None
    tree = ast.parse(condition.code, mode="eval").body
    extents = [
        range(int(eval(extent, {"__builtins__": {}}, dict(somewhere.sizes))))
        for _, extent in condition.indices
    ]
    letters = [name for name, _ in condition.indices]
    choices = (dict(zip(letters, values, strict=True)) for values in itertools.product(*extents))
    return _everywhere(tree, somewhere, whole, choices)


def _sayings(report: Any) -> list[str]:
    """All statements that restrict a verdict, each by itself."""
    findings = [finding.text for finding in report.protocol if finding.text]
    return [
        *(worded(condition) for condition in report.conditions),
        *findings, *report.notes, report.domain, report.stated,
    ]  # fmt: skip


def _alike(report: Any) -> list[str]:
    """Refutations whose two numbers print alike."""
    found = [one.counterexample for one in report.inputs.values() if one.counterexample is not None]
    both = [(_NUMBERS.search(str(one)), one) for one in found]
    return [
        f"REFUTED where both numbers print alike: {one}"
        for match, one in both
        if match is None or match[1] == match[2]
    ]


def _false_claims(program: Program, report: Any) -> list[str]:
    """Statements ``PROVED if ...`` on the gradient of every input that hold where it fails."""
    claims = [_claims(one) for one in report.inputs.values() if str(one.verdict) != PROVED]
    shared = set.intersection(*claims) if len(claims) == len(report.inputs) > 0 else set()
    return [
        f"it says PROVED if {claim}, which holds at {point}, where it is wrong"
        for claim in sorted(shared)
        for point in program.fails
        if _claimed(claim, place(program, point))
    ]


def _claimed(claim: str, somewhere: Place) -> bool:
    """Is a claim, with what it leaves out, about a point?"""
    only, *excepted = re.split(r", (?=but where|except at ties|at the kink|except where)", claim)
    out = (_EXCEPT.fullmatch(said) for said in excepted)
    parts = [_truth(part, somewhere, all) for part in only.split(" and ")]
    return all(part is True for part in parts) and not any(
        match is not None and _truth(_REMARK.sub("", match[1]), somewhere, any) is True
        for match in out
    )


def _claims(one: Any) -> set[str]:
    """When the gradient of an input is said to be proved."""
    found = (_FOUND.match(worded(condition)) for condition in one.conditions)
    cases = [case for case in one.cases if str(case.verdict) == PROVED]
    whens = {case.when + under(case.conditions) for case in cases}
    return {match[1] for match in found if match} | whens


# -- conditions at a point


def _is_pole(values: Any) -> np.ndarray:
    """Where the gamma function has a pole: at 0, -1, -2 and so on."""
    found = np.asarray(values.numpy() if isinstance(values, sg.Tensor) else values)
    return np.asarray((found <= 0) & (np.abs(found - np.rint(found)) <= _NEAR))


def _number(text: str) -> float:
    return float(Fraction(text)) if "/" in text else float(text)


_PATTERNS: tuple[tuple[str, Callable[..., bool]], ...] = (
    (r"(\w+) is invertible", lambda a: abs(np.linalg.det(a)) > _NEAR),
    (r"(\w+) is symmetric", lambda a: np.allclose(a, np.swapaxes(a, -1, -2))),
    (r"(\w+) is 0 or 1 everywhere", lambda a: bool(np.isin(a, (0.0, 1.0)).all())),
    (r"(\w+) is one-hot", lambda a: bool(((a == 1).sum(-1) == 1).all() & np.isin(a, (0, 1)).all())),
    (
        r"two elements of (\w+)(?: along .*)? are equal",
        lambda a: any(np.unique(row).size < row.size for row in a.reshape(-1, a.shape[-1])),
    ),
    (
        r"(\w+) in ([\[(])([^()\[\],]*), ([^()\[\],]*)([\])])",
        lambda a, left, low, high, right: bool(
            ((a > _number(low)) | ((a == _number(low)) & (left == "["))).all()
            & ((a < _number(high)) | ((a == _number(high)) & (right == "]"))).all()
        ),
    ),
)


def _truth(text: str, somewhere: Place, whole: Callable[[Iterable[bool]], bool]) -> bool | None:
    """Whether a condition holds (of all elements, or of any); None where it is not computable."""
    for pattern, test in _PATTERNS:
        match = re.fullmatch(pattern, text)
        if match and match[1] in somewhere.arrays:
            return bool(test(somewhere.arrays[match[1]], *match.groups()[1:]))
    text = _NO_POLE.sub(r"is_pole(\1) == False", text.strip())
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError:
        return None
    if not any(isinstance(node, (ast.Compare, ast.BoolOp)) for node in ast.walk(tree)):
        return None
    return _everywhere(tree, somewhere, whole, _letters(tree, somewhere))


def _everywhere(
    tree: ast.expr, somewhere: Place, whole: Callable[[Iterable[bool]], bool],
    choices: Iterable[Mapping[str, int]],
) -> bool | None:  # fmt: skip
    space = {name: sg.tensor(value) for name, value in somewhere.arrays.items()}
    space |= {
        "sg": sg,
        "is_pole": _is_pole,
        "abs": abs,
        "max": max,
        "min": min,
        "sum": sum,
        "range": range,
        "float": float,
        **somewhere.sizes,
        **somewhere.plain,
    }
    found: list[bool] = []
    for letters in choices:
        with contextlib.suppress(IndexError):
            try:
                found += _holds(tree, {**space, **letters}).ravel().tolist()
            except (NameError, AttributeError, TypeError, ValueError, SymgradError) as problem:
                if isinstance(problem, IndexError):
                    continue
                return None
    return whole(found) if found else None


def _letters(tree: ast.expr, somewhere: Place) -> Iterator[Mapping[str, int]]:
    """Values for the names of indices: what stands in brackets and is no size."""
    names = {
        node.id
        for part in ast.walk(tree)
        if isinstance(part, ast.Subscript)
        for node in ast.walk(part.slice)
        if isinstance(node, ast.Name)
    }
    free = sorted(names - somewhere.sizes.keys() - somewhere.arrays.keys())
    if len(free) > _MOST_LETTERS:
        return
    longest = max([1, *(max(a.shape, default=1) for a in somewhere.arrays.values())])
    for values in itertools.product(range(longest), repeat=len(free)):
        if len(set(values)) == len(values):
            yield dict(zip(free, values, strict=True))


def _holds(tree: ast.expr, space: Mapping[str, Any]) -> np.ndarray:
    """The truth of a condition, element by element; what is equal but for rounding is equal."""
    if isinstance(tree, ast.BoolOp):
        joined = np.logical_and if isinstance(tree.op, ast.And) else np.logical_or
        parts = [_holds(part, space) for part in tree.values]
        return np.asarray(joined.reduce(np.broadcast_arrays(*parts)))
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, (ast.BitAnd, ast.BitOr)):
        left, right = _holds(tree.left, space), _holds(tree.right, space)
        return left & right if isinstance(tree.op, ast.BitAnd) else left | right
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, (ast.Invert, ast.Not)):
        return ~_holds(tree.operand, space)
    if not isinstance(tree, ast.Compare) or not all(type(each) in _ORDERS for each in tree.ops):
        return np.asarray(_value(tree, space)).astype(bool)
    sides = [_value(side, space) for side in (tree.left, *tree.comparators)]
    tests = [
        _related(operator, left, right)
        for operator, left, right in zip(tree.ops, sides, sides[1:], strict=False)
    ]
    return np.asarray(np.logical_and.reduce(np.broadcast_arrays(*tests)))


_ORDERS = (ast.Eq, ast.NotEq, ast.Gt, ast.GtE, ast.Lt, ast.LtE)


def _related(operator: ast.cmpop, left: Any, right: Any) -> np.ndarray:
    difference = np.asarray(left, float) - np.asarray(right, float)
    near = np.abs(difference) <= _NEAR * (1 + np.abs(right))
    above = difference > 0
    table = {
        ast.Eq: near, ast.NotEq: ~near, ast.Gt: above & ~near, ast.GtE: above | near,
        ast.Lt: ~above & ~near & (difference < 0), ast.LtE: (difference < 0) | near,
    }  # fmt: skip
    return np.asarray(table[type(operator)])


def _value(tree: ast.expr, space: Mapping[str, Any]) -> Any:
    code = compile(ast.Expression(tree), "<condition>", "eval")
    value = eval(code, {"__builtins__": {}, **space})  # names inside of loops are looked up there
    return value.numpy() if isinstance(value, sg.Tensor) else value
