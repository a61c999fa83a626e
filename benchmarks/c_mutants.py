"""Mutants of the emitted C: small wrong edits of right kernels, and which of them are found.

    python -m benchmarks.c_mutants --count 5000 --workers 2 --write

In: the kernels of ``symgrad.nn`` and of the graphs of ``tests/codegen/programs``, each alone in a
file.  Out: a Markdown table on standard output, in ``benchmarks/C_MUTANTS.md`` with ``--write``.
One line of JSON a mutant is appended to ``--log``; a second run takes up where the first stopped.

A mutant is one edit of the text: of a bound, a stride, an index, an initial value, an operand, an
operator, an accumulator, a tail, a pragma or a clause, a guard, a cast, a helper, a number, the
order of statements, a statement that is dropped, a parameter.  ``edits_of`` and ``mutant_of`` make
them; ``judged`` tells whether one is validated for all sizes, and whether bounded execution finds
that it is wrong, where it is: that must not be.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import operator
import random
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pycparser import c_ast

from symgrad import abi
from symgrad.codegen.calls import SizeNames
from symgrad.codegen.emit.file import PRELUDE, FileDoc, emit_file, prelude
from symgrad.codegen.emit.kernel import emit_kernel
from symgrad.deadline import TimeUp, limited
from symgrad.errors import SymgradError
from symgrad.frontend.trace import trace_request
from symgrad.ir.function import SizeCondition
from symgrad.ir.graph import Graph
from symgrad.kernels import OpPlan, plan
from symgrad.nn import functions
from symgrad.shapes import requested
from symgrad.validate.bounded import Equal, check
from symgrad.validate.source import (
    Unit,
    Unsupported,
    parse,
    type_of,
    walk,
    without_comments,
)
from symgrad.validate.symbolic.kernel import Outcome, validate
from tests.codegen import programs

HERE = Path(__file__).parent
LOG = HERE.parent / "build" / "c_mutants.jsonl"
TABLE = HERE / "C_MUTANTS.md"
LIMIT = 20.0
"""Seconds that a validation may take."""
MOST_LINES = 45
"""Of a short kernel.  The others take ten times as long."""
PROGRAMS = ("softmax", "layer_norm", "cross_entropy", "linear", "attention", "batch_norm")

# -- the right kernels


@dataclass(frozen=True)
class Case:
    """A kernel alone in a file: text, the record of its call, graph, the sizes that it serves."""

    name: str
    text: str
    record: abi.Kernel
    graph: Graph
    conditions: tuple[SizeCondition, ...] = ()

    def admits(self, sizes: Mapping[str, int]) -> bool:
        """Does it serve these sizes?"""
        return all(
            _RELATIONS[one.relation](one.left.at(sizes), one.right.at(sizes))
            for one in self.conditions
        )


_RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge,
}  # fmt: skip


@cache
def cases() -> tuple[Case, ...]:
    """The kernels, in an order that does not change."""
    found: list[Case] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in functions.__all__:
            try:
                planned = plan(trace_request(requested(getattr(functions, name))))
            except SymgradError:
                continue  # no kernel without values of its plain arguments
            found += _of_plan(name, planned)
    for name in PROGRAMS:
        found.append(alone(f"programs.{name}", getattr(programs, name)()))
    return tuple(found)


def _of_plan(name: str, planned: OpPlan) -> Iterator[Case]:
    conditions: dict[str, tuple[SizeCondition, ...]] = {}
    for one in planned.cases:
        for kernel in (one.inference, one.forward, *one.backward):
            if kernel is not None:
                conditions[kernel.name] = (*one.case.conditions, *one.case.requires)
    for kernel in planned.kernels:
        yield _case(
            f"{name}.{kernel.name}", kernel.name, kernel.graph, SizeNames(planned.sizes),
            dict(kernel.numbers), conditions.get(kernel.name, ()),
        )  # fmt: skip


def alone(name: str, graph: Graph) -> Case:
    """The kernel of a graph."""
    return _case(name, f"k_{re.sub(r'[^0-9a-z]+', '_', name.removeprefix('programs.'))}", graph)


def _case(
    name: str, kernel: str, graph: Graph, sizes: SizeNames | None = None,
    numbers: Mapping[str, str] | None = None, conditions: tuple[SizeCondition, ...] = (),
) -> Case:  # fmt: skip
    emitted = emit_kernel(graph, kernel, None, sizes, numbers)
    text = emit_file([emitted], FileDoc("x")).source
    text = text.replace(f'#include "{PRELUDE}"\n', prelude())
    return Case(name, text, emitted.record, graph, conditions)


# -- mutants


@dataclass(frozen=True)
class Mutant:
    """A wrong edit: its text, what kind it is, and the line that it is on."""

    text: str
    kind: str
    line: int
    told: str


@dataclass(frozen=True)
class Token:
    """A word, number or operator.  ``within``: what it is in, the innermost last."""

    start: int
    end: int
    text: str
    within: tuple[str, ...]
    function: str

    def inside(self, what: str) -> bool:
        """Is it in there?"""
        return any(one.startswith(what) for one in self.within)


Edit = tuple[str, int, int, str]
"""A kind, where the old text begins and ends, and the new text."""
Pool = dict[str, list[tuple[int, Edit]]]
"""Edits of kernels, by their kind."""


def edits_of(text: str) -> list[Edit]:
    """All single edits of a file, in the order of the text; each gives another text."""
    found: dict[tuple[int, int, str], Edit] = {}
    for edit in sorted(_edits(_Source(text)), key=lambda edit: edit[1:3]):
        _, start, end, new = edit
        if text[start:end] != new:
            found.setdefault(edit[1:], edit)
    return list(found.values())


def mutant_of(text: str, edit: Edit) -> Mutant:
    """The file after an edit."""
    kind, start, end, new = edit
    line = text.count("\n", 0, start) + 1
    told = f"{_short(text[start:end])} -> {_short(new)}"
    return Mutant(text[:start] + new + text[end:], kind, line, told)


def _short(text: str) -> str:
    return " ".join(text.split())[:60] or "nothing"


_TOKEN = re.compile(
    r"[A-Za-z_]\w*|(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?[fu]?|\+\+|--|[-+*/|&<>=!]=|&&|\|\||\S"
)


class _Source:
    """A text with its tokens, and the variables of its functions."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.bare = without_comments(text)
        self.unit: Unit = parse(text)
        self.names = {name: _names(node) for name, node in self.unit.functions.items()}
        self.spans = self._spans()
        self.tokens = list(self._tokens())

    def _spans(self) -> dict[str, tuple[int, int]]:
        """Where each function begins and ends."""
        starts = [0]
        for line in self.text.split("\n"):
            starts.append(starts[-1] + len(line) + 1)
        found = {}
        for name, signature in self.unit.signatures.items():
            begin = starts[signature.line - 1]
            found[name] = begin, self.bare.index("\n}", begin) + 2
        return found

    def _tokens(self) -> Iterator[Token]:
        for name, (begin, end) in self.spans.items():
            stack: list[str] = []
            before = ""
            for match in _TOKEN.finditer(self.bare, begin, end):
                line = self.bare.rfind("\n", 0, match.start()) + 1
                if self.bare[line:].lstrip().startswith("#"):
                    continue
                word = match.group()
                if word in ")]}" and stack:
                    stack.pop()
                yield Token(match.start(), match.end(), word, tuple(stack), name)
                if word in "([{":
                    stack.append(_opened(word, before))
                elif word == ";" and stack and stack[-1].startswith("for"):
                    stack[-1] = f"for{int(stack[-1][3:]) + 1}"
                before = word


def _opened(word: str, before: str) -> str:
    if word == "[":
        return "index"
    if word == "{":
        return "block"
    if before in ("for", "if"):
        return "for0" if before == "for" else "if"
    return f"call {before}" if re.fullmatch(r"[A-Za-z_]\w*", before) else "("


def _names(function: c_ast.FuncDef) -> dict[str, str]:
    """The kind of each variable: ``whole``, ``real``, or the type of a pointer or array."""
    found: dict[str, str] = {}
    for one in walk(function):
        if isinstance(one, c_ast.Decl) and one.name and not isinstance(one.type, c_ast.FuncDecl):
            kind = type_of(one)
            if kind.pointers or isinstance(one.type, c_ast.ArrayDecl):
                found[one.name] = f"{kind.base}*"
            else:
                found[one.name] = "real" if kind.base in ("float", "double") else "whole"
    return found


def _edits(source: _Source) -> Iterator[Edit]:
    for make in (_words, _signs, _numbers, _casts, _tails, _statements, _conditions, _parameters):
        for kind, start, end, new in make(source):
            yield _kind_at(source, start, kind), start, end, new
    yield from _pragmas(source)
    yield from _directives(source)


def _kind_at(source: _Source, start: int, kind: str) -> str:
    """The kind of an edit; those of functions that are no kernels are of their own."""
    for name, (begin, end) in source.spans.items():
        if begin <= start < end:
            if name.endswith("_workspace"):
                return "workspace"
            if source.unit.signatures[name].static:
                return "helper"
    return kind


def _choice(source: _Source, token: Token, options: Sequence[str], most: int = 2) -> list[str]:
    """Some of the options, always the same for a place."""
    others = [one for one in dict.fromkeys(options) if one != token.text]
    return random.Random(f"{token.start} {token.text}").sample(others, min(most, len(others)))


def _words(source: _Source) -> Iterator[Edit]:
    """Another variable of the same kind."""
    for place, token in enumerate(source.tokens):
        names = source.names[token.function]
        kind = names.get(token.text)
        before = source.tokens[place - 1].text if place else ""
        if kind is None or before in ("int64_t", "int", "float", "double", "restrict", "*restrict"):
            continue
        options = [name for name, other in names.items() if other == kind]
        for new in _choice(source, token, options):
            yield _role(token), token.start, token.end, new
        if kind == "whole":
            for new in _choice(source, token, (f"({token.text} + 1)", f"({token.text} - 1)"), 1):
                yield _role(token), token.start, token.end, new
        elif kind == "real" and not _is_target(source, place):
            yield "operands", token.start, token.end, "0.0f"


def _is_target(source: _Source, place: int) -> bool:
    after = source.tokens[place + 1].text if place + 1 < len(source.tokens) else ""
    return after in ("=", "+=", "-=", "*=", "|=", "&=")


def _role(token: Token) -> str:
    if re.search(r"_s\d+$", token.text):
        return "strides"
    if token.inside("for"):
        return "bounds"
    return "indices" if token.inside("index") else "operands"


_SIGNS = {
    "+": "-", "-": "+", "*": "+/", "/": "*", "<": ("<=", ">"), "<=": ("<",), ">": (">=", "<"),
    ">=": (">",), "==": ("!=",), "!=": ("==",), "&&": ("||",), "||": ("&&",), "|": ("&",),
    "&": ("|",), "+=": ("=", "-="), "-=": ("+=",), "*=": ("=", "+="), "|=": ("=", "&="),
    "&=": ("=", "|="), "++": ("--",), "--": ("++",), "=": ("+=",),
}  # fmt: skip


def _signs(source: _Source) -> Iterator[Edit]:
    """Another operator."""
    for place, token in enumerate(source.tokens):
        if token.text in _SIGNS and not _is_declared(source, place):
            for new in _SIGNS[token.text]:
                yield _role_of_sign(token), token.start, token.end, new


def _is_declared(source: _Source, place: int) -> bool:
    """Is the sign part of a declaration: a pointer, or what a variable begins with?"""
    words = [token.text for token in source.tokens[max(place - 3, 0) : place]]
    types = ("int64_t", "int", "float", "double", "void", "char", "uint8_t")
    if source.tokens[place].text == "=":
        return len(words) > 1 and (words[-2] in (*types, "restrict", "*", "const"))
    return bool(words) and words[-1] in types


def _role_of_sign(token: Token) -> str:
    if token.text in ("=", "+=", "-=", "*=", "|=", "&=") and not token.inside("for"):
        return "accumulators"
    if token.inside("for"):
        return "bounds"
    if token.inside("index"):
        return "indices"
    return "guards" if token.inside("if") else "operators"


def _numbers(source: _Source) -> Iterator[Edit]:
    """Another number."""
    for place, token in enumerate(source.tokens):
        before = source.tokens[place - 1].text if place else ""
        if re.fullmatch(r"\d+", token.text):
            value = int(token.text)
            news = [str(value + 1), str(max(value - 1, 0)), str(2 * value)]
            kind = "constants"
            if token.inside("for"):
                kind = "bounds"
            elif token.inside("index"):
                kind = "indices"
            for new in news:
                yield kind, token.start, token.end, new
        elif re.fullmatch(r"[\d.]+(e[+-]?\d+)?f?", token.text):
            kind = "initial values" if before == "=" else "constants"
            suffix = "f" if token.text.endswith("f") else ""
            for new in ("0.0", "1.0", "0.5"):
                yield kind, token.start, token.end, new + suffix
        elif token.text == "INFINITY":
            yield "initial values", token.start, token.end, "0.0f"
            if before == "-":
                at = source.tokens[place - 1].start
                yield "initial values", at, token.end, "INFINITY"


def _casts(source: _Source) -> Iterator[Edit]:
    """No cast, or another one."""
    for name, (begin, end) in source.spans.items():
        for match in re.finditer(r"\((float|double|int|uint8_t|int64_t)\)", source.bare[begin:end]):
            start, stop = begin + match.start(), begin + match.end()
            yield "casts", start, stop, ""
            for new in ("int", "int64_t"):
                if name and new != match[1]:
                    yield "casts", start, stop, f"({new})"


def _tails(source: _Source) -> Iterator[Edit]:
    """``MIN(a, b)`` as one of both."""
    for match in re.finditer(r"\bM(?:IN|AX)\(", source.bare):
        line = source.bare.rfind("\n", 0, match.start()) + 1
        if source.bare[line:].startswith("#"):
            continue
        end, parts = _arguments(source.bare, match.end())
        for part in parts:
            yield "tails", match.start(), end, f"({part.strip()})"


def _arguments(text: str, begin: int) -> tuple[int, list[str]]:
    """The arguments of a call from behind its parenthesis, and where it ends."""
    depth, parts, last = 1, [], begin
    for place in range(begin, len(text)):
        letter = text[place]
        depth += (letter in "([") - (letter in ")]")
        if depth == 0 or (depth == 1 and letter == ","):
            parts.append(text[last:place])
            last = place + 1
        if depth == 0:
            return place + 1, parts
    return len(text), parts


_SIMPLE = re.compile(r"^( +)([^\s#{}/][^;{}]*;)\n", re.MULTILINE)
_HEADS = ("for ", "if ", "else", "return")


def _statements(source: _Source) -> Iterator[Edit]:
    """A statement that is dropped, or changes places with the next; a variable without a value."""
    previous: re.Match[str] | None = None
    for match in _SIMPLE.finditer(source.bare):
        text = match[2]
        if text.startswith(_HEADS) or "(void)" in text:
            if text.startswith("return"):
                yield from _returns(match)
            previous = None
            continue
        start, end = match.span(2)
        declared = re.fullmatch(
            r"(?:const )?((?:float|double|int64_t|int) \w+) = [^;]*;", text, re.DOTALL
        )
        if declared is not None:
            yield "initial values", start, end, f"{declared[1]};"
        yield "dropped statements", start, end, "" if declared else "{}"
        if previous is not None and previous.end() == match.start() and previous[1] == match[1]:
            both = source.text[previous.start(2) : previous.end(2)]
            yield "order", previous.start(2), end, f"{text}\n{match[1]}{both}"
        previous = match


def _returns(match: re.Match[str]) -> Iterator[Edit]:
    start, end = match.span(2)
    if match[2] in ("return 0;", "return 1;", "return 2;"):
        yield "guards", start, end, "return 0;" if match[2] != "return 0;" else "return 1;"
        if len(match[1]) > 4:
            yield "guards", start, end, "{}"


def _conditions(source: _Source) -> Iterator[Edit]:
    """A condition that always holds, or never."""
    for match in re.finditer(r"\bif \(", source.bare):
        end, parts = _arguments(source.bare, match.end())
        for new in ("1", "0", f"!({','.join(parts)})"):
            yield "guards", match.end(), end - 1, new


def _parameters(source: _Source) -> Iterator[Edit]:
    """Two parameters, or two arguments, that change places."""
    for match in re.finditer(r"\b(\w+)\(", source.bare):
        if match[1] in ("if", "for", "MIN", "MAX", "simd", "defined", "reduction", "carve"):
            continue
        inside = any(begin <= match.start() < end for begin, end in source.spans.values())
        end, parts = _arguments(source.bare, match.end())
        if not inside or len(parts) < 2:
            continue
        for place in range(len(parts) - 1):
            swapped = [*parts]
            swapped[place : place + 2] = parts[place + 1], parts[place]
            yield "parameters", match.end(), end - 1, ",".join(swapped)


def _pragmas(source: _Source) -> Iterator[Edit]:
    """A clause or a pragma that goes or comes."""
    for match in re.finditer(r"^( *)#pragma omp [^\n]*\n", source.bare, re.MULTILINE):
        text = match.group()
        start, end = match.span()
        yield "pragmas", start, end, ""
        for clause in re.finditer(r" reduction\(([^:]+):([^)]*)\)", text):
            begin, stop = start + clause.start(), start + clause.end()
            yield "clauses", begin, stop, ""
            for symbol in ("+", "*", "max", "min", "|"):
                if symbol != clause[1]:
                    yield "clauses", begin, stop, f" reduction({symbol}:{clause[2]})"
        if "parallel" in text:
            yield "pragmas", start, end, f"{match[1]}#pragma omp simd\n"
        elif "reduction" not in text:
            new = f"{match[1]}#pragma omp parallel for schedule(static)\n"
            yield "pragmas", start, end, new
    for match in re.finditer(r"^( *)for \(int64_t", source.bare, re.MULTILINE):
        before = source.bare[: match.start()].rstrip().rsplit("\n", 1)[-1]
        if not before.lstrip().startswith("#pragma"):
            for words in ("simd", "parallel for schedule(static)"):
                yield "pragmas", match.start(), match.start(), f"{match[1]}#pragma omp {words}\n"


def _directives(source: _Source) -> Iterator[Edit]:
    """Another macro, or another guard of it."""
    for match in re.finditer(r"^#(define|if) \w+[^\n]*$", source.bare, re.MULTILINE):
        if "defined" in match.group() or "__" in match.group():
            continue
        kind = "guards" if match[1] == "if" else "helper"
        for inner in re.finditer(r"\b\d+\b|[<>](?!=)| \? |\+", match.group()):
            start, end = match.start() + inner.start(), match.start() + inner.end()
            word = inner.group()
            if word.isdigit():
                for value in (int(word) + 1, max(int(word) - 1, 0), 2 * int(word)):
                    yield kind, start, end, str(value)
            elif word in "<>":
                yield kind, start, end, "<" if word == ">" else ">"
            elif word == "+":
                yield kind, start, end, "-"
    for match in re.finditer(r"^#if \w+ > [^#]*#error[^\n]*\n#endif\n", source.bare, re.MULTILINE):
        yield "guards", match.start(), match.end(), ""


# -- judged


@dataclass(frozen=True)
class Judged:
    """What became of a mutant.

    ``found``: ``language`` and ``rejected`` where it was not validated, as it is not in the
    language, or for another reason.  Of what was validated for all sizes, bounded execution says
    ``equal`` or ``wrong``; ``crash`` where it fails.
    """

    case: str
    kind: str
    line: int
    told: str
    found: str
    why: str


def judged(case: Case, mutant: Mutant) -> Judged:
    """Is it validated, and is it equal at all small sizes where it is?"""
    try:
        with limited(LIMIT):
            outcome = validate(mutant.text, case.record, case.graph, case.conditions)
    except TimeUp:
        outcome = Outcome(False, f"it takes more than {LIMIT:g} s", paths=1)
    if outcome.validated:
        found, why = executed(case, mutant)
    else:
        found, why = "rejected" if outcome.paths else "language", outcome.reason[:300]
    return Judged(case.name, mutant.kind, mutant.line, mutant.told, found, why)


def executed(case: Case, mutant: Mutant) -> tuple[str, str]:
    """What bounded execution says of it, and why."""
    try:
        result = check(parse(mutant.text), case.record, case.graph, case.admits, most_sizes=16)
    except Unsupported as error:
        return "language", str(error)
    except Exception as error:  # a mutant must not stop the run: it is reported
        return "crash", f"{type(error).__name__}: {error}"[:300]
    return ("equal", "") if isinstance(result, Equal) else ("wrong", str(result)[:300])


def drawn(count: int, seed: int = 0) -> list[tuple[int, Mutant]]:
    """So many mutants, one in ten of them of a long kernel; each kind as often as the others."""
    draw = random.Random(seed)
    pools: tuple[Pool, Pool] = ({}, {})
    for place, case in enumerate(cases()):
        pool = pools[_lines(case) > MOST_LINES]
        for edit in edits_of(case.text):
            pool.setdefault(edit[0], []).append((place, edit))
    short, long = (_in_turns(pool, draw) for pool in pools)
    found = [one for turn in zip(*[short] * 9, long, strict=False) for one in turn][:count]
    return [(place, mutant_of(cases()[place].text, edit)) for place, edit in found]


def _lines(case: Case) -> int:
    """The lines of its kernel, without the helpers."""
    return case.text[case.text.index(f"int {case.record.name}(") :].count("\n")


def _in_turns(pool: Pool, draw: random.Random) -> Iterator[tuple[int, Edit]]:
    """All edits: one of each kind, and then again."""
    for one in pool.values():
        draw.shuffle(one)
    while any(pool.values()):
        for kind in sorted(pool):
            if pool[kind]:
                yield pool[kind].pop()


def _task(task: tuple[int, Mutant]) -> Judged:
    return judged(cases()[task[0]], task[1])


def table(results: Sequence[Judged]) -> str:
    """The results by kind, as Markdown."""
    kernels = len({one.case for one in results})
    lines = [
        "# Mutants of the emitted C", "",
        f"{len(results)} mutants of {kernels} kernels, each one small edit of the text.  What is "
        "validated is executed at small sizes.", "",
        "| edit of | mutants | not in the language | not validated | validated, and equal | "
        "validated, and wrong |",
        "|---|---:|---:|---:|---:|---:|",
    ]  # fmt: skip
    for kind in [*sorted({one.kind for one in results}), ""]:
        some = [one for one in results if kind in ("", one.kind)]
        counts = Counter(one.found for one in some)
        cells = [counts[found] for found in ("language", "rejected", "equal", "wrong")]
        lines.append(f"| {kind or '**all**'} | {' | '.join(map(str, (len(some), *cells)))} |")
    if wrong := [one for one in results if one.found == "wrong"]:
        lines += ["", "Validated though wrong:", ""]
        lines += [f"- {one.case}, line {one.line}: {one.told}: {one.why}" for one in wrong]
    if crashes := sum(one.found == "crash" for one in results):
        lines += ["", f"The oracle itself failed on {crashes}."]
    return "\n".join(lines) + "\n"


def main() -> None:
    options = _options()
    known: dict[str, Any] = {}
    if options.log.exists():
        for line in options.log.read_text(encoding="utf-8").splitlines():
            one = json.loads(line)
            known[_key(one["case"], one["line"], one["kind"], one["told"])] = Judged(**one)
    tasks = drawn(options.count, options.seed)
    names = [case.name for case in cases()]
    results, pending = [], []
    for place, mutant in tasks:
        key = _key(names[place], mutant.line, mutant.kind, mutant.told)
        if key in known:
            results.append(known[key])
        else:
            pending.append((place, mutant))
    options.log.parent.mkdir(parents=True, exist_ok=True)
    with options.log.open("a", encoding="utf-8") as log, multiprocessing.Pool(
        options.workers
    ) as pool:  # fmt: skip
        for found in pool.imap_unordered(_task, pending, chunksize=4):
            results.append(found)
            log.write(json.dumps(asdict(found)) + "\n")
            log.flush()
    text = table(results)
    print(text)
    if options.write:
        TABLE.write_text(text, encoding="utf-8")


def _key(case: str, line: int, kind: str, told: str) -> str:
    return f"{case} {line} {kind} {told}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--log", type=Path, default=LOG)
    parser.add_argument("--write", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
