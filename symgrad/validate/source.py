"""The C text of kernels, parsed: the language that is validated, and nothing else.

In: the text of a C file, or of its header.  Out: ``Unit``, ``Header``.

The preprocessor of this language is small.  Comments go, lines stay.  ``#include`` of ``math.h``
and ``stdint.h``.  ``#define NAME number``: a constant, which is exactly that number, or any number
that the guards admit where ``#ifndef NAME`` stands before it (``-D`` then chooses).
``#define NAME(a, b) expression``: kept as a call, its body an expression whose parameters stand
in parentheses, so that the call means what a function with that body means.
``#if NAME > 32`` with ``#error``: a guard.  There are two other conditions, of which each word is
known: one around ``#pragma GCC diagnostic``, one around declarations of the SIMD versions that
functions of ``math.h`` have; with or without what they hold the file means the same.
``#pragma omp simd`` and ``parallel for`` stand in front of their loop.  So does ``#pragma GCC
unroll``, which changes nothing.

What is not in the language raises ``Unsupported``.  So does C that is legal but easily misread:
a comma operator, a macro whose arguments have effects, a name that is also a macro.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import isfinite
from typing import Any, TypeAlias, TypeVar

from pycparser import c_ast, c_parser

from symgrad.validate.definitions import Defined, without_definitions
from symgrad.validate.rounding import stored

Node: TypeAlias = Any  # of pycparser, which has no types

INTEGERS = {
    "char": (-(2**7), 2**7 - 1), "int": (-(2**31), 2**31 - 1),
    "int8_t": (-(2**7), 2**7 - 1), "int16_t": (-(2**15), 2**15 - 1),
    "int32_t": (-(2**31), 2**31 - 1), "int64_t": (-(2**63), 2**63 - 1),
    "uint8_t": (0, 2**8 - 1), "uint16_t": (0, 2**16 - 1),
    "uint32_t": (0, 2**32 - 1), "uint64_t": (0, 2**64 - 1),
}  # fmt: skip
"""The least and the greatest number of each type of integers."""
BYTES = {
    "char": 1, "int8_t": 1, "uint8_t": 1, "int16_t": 2, "uint16_t": 2, "int": 4, "int32_t": 4,
    "uint32_t": 4, "float": 4, "int64_t": 8, "uint64_t": 8, "double": 8,
}  # fmt: skip
"""The bytes of one number of each type."""
FLOATS = ("float", "double")

MATH = {
    **dict.fromkeys((
        "acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "ceil", "cos", "cosh", "erf",
        "erfc", "exp", "exp2", "expm1", "fabs", "floor", "lgamma", "log", "log10", "log1p", "log2",
        "rint", "sin", "sinh", "sqrt", "tan", "tanh", "tgamma", "trunc",
    ), 1),
    **dict.fromkeys(("atan2", "copysign", "fmax", "fmin", "fmod", "hypot", "pow"), 2),
}  # fmt: skip
"""The functions of ``math.h`` on doubles, and how many they take; with ``f`` behind, on floats."""
LIBMVEC = frozenset((
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "erf",
    "erfc", "exp", "exp2", "expm1", "hypot", "log", "log10", "log1p", "log2", "pow", "sin", "sinh",
    "tan", "tanh",
))  # fmt: skip
"""Those that libmvec of glibc 2.35 has for several numbers at once, and with ``f`` behind."""
CLASSIFY = ("isnan", "isinf", "isfinite", "signbit")
"""The macros of ``math.h`` that tell a truth of one number."""
NUMBERS = {"INT32_MAX": 2**31 - 1, "INT64_MAX": 2**63 - 1, "INT64_MIN": -(2**63)}
"""The macros of ``stdint.h`` that are numbers."""
FIXED = frozenset((*NUMBERS, *CLASSIFY, "NAN", "INFINITY", "INT64_C"))
"""Names that mean what the standard headers say, and may not be declared."""
ENUMERATORS = ("ROW_MAJOR", "PLAIN", "TRANSPOSED")
"""What the BLAS calls the order and the forms of matrices."""
_RESERVED = re.compile(
    r"_\w*|asm|typeof|typeof_unqual|bool|true|false|nullptr|constexpr|thread_local|alignas|alignof|"
    r"static_assert|(?!\w*(__|_$))((M|FP|MATH|HUGE|U?INT\w*|PTRDIFF|SIZE|SIG|WCHAR|WINT)_\w+|INFINITY|NAN|"
    r"is(less|greater|unordered|nan|inf|finite|normal)[a-z]*|fpclassify|signbit|signgam|unix|linux|"
    r"i386|math_errhandling|(cblas|omp|GOMP)_\w+|lgamma[fl]?_\w+)"
)
"""Macros of the headers and of the compiler, words of GNU C and of C23, and names of OpenMP and of
the BLAS.  None of them has
``__`` behind its beginning, or ends in ``_``, unless it begins with ``_``."""

_HEADERS = ("math.h", "stdint.h")
_TYPEDEFS = tuple(name for name in INTEGERS if name.endswith("_t"))
_PRELUDE = "".join(f"typedef int {name};" for name in _TYPEDEFS)  # so that they parse as types


class Unsupported(Exception):
    """The text is not in the language.  ``line``: where, from 1; 0 where no line is to blame."""

    def __init__(self, reason: str, line: int = 0) -> None:
        self.reason = reason
        self.line = line
        super().__init__(f"line {line}: {reason}" if line else reason)


# -- what a unit holds


@dataclass(frozen=True)
class CType:
    """``const float *restrict``: base ``float``, one pointer, ``const``, ``restrict``.

    ``const``: what it points to is, or itself where it is no pointer.  ``fixed``: the pointer
    itself is const.
    """

    base: str
    pointers: int = 0
    const: bool = False
    restrict: bool = False
    fixed: bool = False

    def __str__(self) -> str:
        stars = "*" * self.pointers
        words = f"{'const ' if self.const else ''}{self.base}{' ' if stars else ''}{stars}"
        return words + ("restrict" if self.restrict else "")


@dataclass(frozen=True)
class Signature:
    """A function as it is declared.  A parameter without a name is called ''."""

    name: str
    result: CType
    parameters: tuple[tuple[str, CType], ...]
    line: int = field(compare=False, default=0)
    static: bool = field(compare=False, default=False)


@dataclass(frozen=True)
class Guard:
    """``#if NAME relation number`` before ``#error``: no value of the macro satisfies it."""

    macro: str
    relation: str
    number: int
    line: int

    def admits(self, value: int) -> bool:
        """May the macro have this value, as far as this guard says?"""
        relations = {
            "<": value < self.number, "<=": value <= self.number, ">": value > self.number,
            ">=": value >= self.number, "==": value == self.number, "!=": value != self.number,
        }  # fmt: skip
        return not relations[self.relation]


@dataclass(frozen=True)
class Constant:
    """``#define NAME number``.

    ``open``: ``-D`` may give it any number that ``guards`` admit; else it is ``value``.
    """

    name: str
    value: int
    line: int
    open: bool = False
    guards: tuple[Guard, ...] = ()

    def admits(self, value: int) -> bool:
        """May it have this value?"""
        if not self.open:
            return value == self.value
        return all(guard.admits(value) for guard in self.guards)


@dataclass(frozen=True)
class Macro:
    """``#define NAME(a, b) body``.  It means what a function of that body means.

    ``kind``: ``min``, ``max``, ``round_up`` (to a multiple of 64), or empty for another one.
    """

    name: str
    parameters: tuple[str, ...]
    body: Node
    line: int
    kind: str


@dataclass(frozen=True)
class Directive:
    """``#pragma omp``: ``parallel`` for ``parallel for``, else ``simd``.

    ``reductions``: pairs of an operator and a name.  ``condition``: that of ``if(parallel: ...)``.
    """

    parallel: bool
    line: int
    reductions: tuple[tuple[str, str], ...] = ()
    condition: Node | None = None


_Named = TypeVar("_Named", Signature, Constant, Macro)


@dataclass(frozen=True)
class Unit:
    """A parsed file.

    ``functions``: those defined, in their order; ``signatures``: of these.  ``externals``: those
    declared and not defined.  ``vectors``: those of ``math.h`` that are declared to have SIMD
    versions.  ``constants``: macros that are numbers; ``enumerators``: those of ``enum``.
    ``macros``: macros with parameters.  ``defined``: externals that are proved to be ops.
    """

    text: str
    functions: Mapping[str, c_ast.FuncDef]
    signatures: Mapping[str, Signature]
    externals: Mapping[str, Signature]
    vectors: Mapping[str, Signature]
    constants: Mapping[str, Constant]
    enumerators: Mapping[str, int]
    macros: Mapping[str, Macro]
    defined: Mapping[str, Defined]
    _directives: Mapping[Node, Directive]

    def line(self, node: Node) -> int:
        """The line of a node, from 1."""
        return line_of(node)

    def source(self, line: int) -> str:
        """The text of a line, from 1."""
        lines = self.text.split("\n")
        return lines[line - 1].strip() if 0 < line <= len(lines) else ""

    def called_by(self, *names: str) -> set[str]:
        """The functions of the file that a call of these may execute, themselves too."""
        found: set[str] = set()
        todo = list(names)
        while todo:
            name = todo.pop()
            if name not in found and name in self.functions:
                found.add(name)
                parts = walk(self.functions[name])
                todo += [one.name for one in parts if isinstance(one, c_ast.ID)]
        return found

    def directive(self, pragma: c_ast.Pragma) -> Directive:
        """What a ``#pragma omp`` says."""
        return self._directives[pragma]


@dataclass(frozen=True)
class Header:
    """The functions that a header declares, in their order."""

    text: str
    declarations: Mapping[str, Signature]


def line_of(node: Node) -> int:
    """The line of a node, from 1; 0 where it is not known."""
    return int(node.coord.line) if node.coord is not None else 0


# -- entry points


def parse(text: str) -> Unit:
    """A C file.  Raises Unsupported.

    A header of its own may stand there in place of its ``#include``, between line markers.  What
    the file uses of it is in the unit, without a line.  Functions that are proved to be ops are
    declared in it, not defined.
    """
    bare, defined = without_definitions(text, proved_only=True)
    own, header = parts(bare)
    if not header:
        return replace(_Reader(own).unit(), defined=defined)
    words = re.findall(r"\w+", without_comments(own))
    return replace(_Reader(own, _used(_parsed_header(header), words)).unit(), defined=defined)


_INCLUDED = re.compile(r'^# 1 "_\w+\.h"\n(.*?)^# (\d+) "\w+\.c"\n', re.DOTALL | re.MULTILINE)


def parts(text: str) -> tuple[str, str]:
    """The lines of the file itself, and those of the header in it.  Raises Unsupported."""
    found = _INCLUDED.search(text)
    if found is None:
        return text, ""
    before = text[: found.start()]
    line = before.count("\n") + 1
    if without_comments(before).strip() or int(found[2]) != line + 1:
        raise Unsupported("a header behind the first line, or a wrong line marker", line)
    return f"{before}\n{text[found.end() :]}", found[1]


@lru_cache(maxsize=8)
def _parsed_header(text: str) -> Unit:
    unit = _Reader(text).unit()
    for function in unit.functions.values():
        for node in walk(function):
            node.coord = None
    return unit


def _used(unit: Unit, words: Iterable[str]) -> Unit:
    """What of a header is used where these words stand."""
    found: set[str] = set()
    todo = list(words)
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            macro = unit.macros.get(name)
            body = macro.body if macro else unit.functions.get(name)
            todo += [one.name for one in walk(body) if isinstance(one, c_ast.ID)] if body else []

    def kept(names: Mapping[str, _Named]) -> dict[str, _Named]:
        return {name: replace(one, line=0) for name, one in names.items() if name in found}

    return replace(
        unit,
        functions={name: one for name, one in unit.functions.items() if name in found},
        signatures=kept(unit.signatures), externals=kept(unit.externals),
        constants=kept(unit.constants), macros=kept(unit.macros),
        enumerators={name: one for name, one in unit.enumerators.items() if name in found},
    )  # fmt: skip


def parse_header(text: str) -> Header:
    """A header, or the declarations alone.  Raises Unsupported."""
    bare = without_comments(text).split("\n")
    lines = list(bare)
    for number, line in enumerate(bare):
        if line.lstrip().startswith("#"):
            lines[number] = ""
    _check_frame([(number, line) for number, line in enumerate(bare, 1) if line.strip()])
    lines = ["" if re.fullmatch(r'\s*(extern "C" \{|\})\s*', line) else line for line in lines]
    declarations: dict[str, Signature] = {}
    for one in _trees("\n".join(lines)):
        if not isinstance(one, c_ast.Decl) or not isinstance(one.type, c_ast.FuncDecl):
            raise Unsupported("a header declares functions alone", line_of(one))
        signature = signature_of(one)
        if signature.static or signature.name in declarations:
            raise Unsupported(f"{signature.name} is static or declared twice", signature.line)
        declarations[signature.name] = signature
    return Header(text, declarations)


_FRAME = (
    r"#ifndef (?P<guard>SYMGRAD_\w+_H)", r"#define (?P=guard)", r"#include <stdint\.h>",
    r"#ifdef __cplusplus", r'extern "C" \{', "#endif", r"(?P<body>[^#{}]*?)",
    r"#ifdef __cplusplus", r"\}", "#endif", "#endif",
)  # fmt: skip


def _check_frame(lines: Sequence[tuple[int, str]]) -> None:
    """A header has a guard, an include and ``extern "C"`` around its declarations, or nothing."""
    text = "\n".join(line.strip() for _, line in lines)
    if "#" in text and not re.fullmatch("\n".join(_FRAME), text):
        first = next(number for number, line in lines if line.lstrip().startswith("#"))
        raise Unsupported("the header has another frame", first)


def differences(header: Header, units: Sequence[Unit]) -> list[str]:
    """Where a header does not declare what the units define.  ``restrict`` may be left out."""
    found: list[str] = []
    defined: dict[str, Signature] = {}
    for unit in units:
        for name, signature in unit.signatures.items():
            if signature.static:
                continue
            if name in defined:
                found.append(f"{name} is defined twice")
            defined[name] = signature
    for name, declared in header.declarations.items():
        if name not in defined:
            found.append(f"{name} is declared and not defined")
            continue
        found += _unlike(declared, defined[name])
    return [*found, *(f"{n} is not declared" for n in defined if n not in header.declarations)]


def _unlike(declared: Signature, defined: Signature) -> Iterator[str]:
    name = declared.name
    if declared.result != defined.result:
        yield f"{name} returns {defined.result}, declared as {declared.result}"
    if len(declared.parameters) != len(defined.parameters):
        yield (
            f"{name} has {len(defined.parameters)} parameters, declared with "
            f"{len(declared.parameters)}"
        )
        return
    pairs = zip(declared.parameters, defined.parameters, strict=True)
    for place, ((one, one_type), (other, other_type)) in enumerate(pairs, 1):
        loose = CType(other_type.base, other_type.pointers, other_type.const)
        if one != other:
            yield f"parameter {place} of {name} is {other}, declared as {one}"
        if one_type not in (other_type, loose):
            yield f"parameter {other} of {name} is {other_type}, declared as {one_type}"


# -- the preprocessor


_LEXEME = re.compile(
    r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*|/\*', re.DOTALL
)


def without_comments(text: str) -> str:
    """The text with spaces in place of comments; all else keeps its line and column.

    Raises Unsupported for characters that do not print, and outside of comments for those that are
    not ASCII.
    """
    for number, line in enumerate(text.split("\n"), 1):
        if line.rstrip().endswith("\\") or "??" in line:
            raise Unsupported("a spliced line or a trigraph", number)
        if not line.isprintable():
            raise Unsupported("a character that does not print", number)

    def blank(match: re.Match[str]) -> str:
        if match.group() == "/*":
            line = text.count("\n", 0, match.start()) + 1
            raise Unsupported("a comment without an end", line)
        if match.group()[0] != "/":
            return match.group()
        begin = text.rfind("\n", 0, match.start()) + 1
        if "\n" in match.group() and text[begin:].lstrip(" \t").startswith("#"):
            line = text.count("\n", 0, match.start()) + 1
            raise Unsupported("a directive that goes on behind a comment", line)
        return re.sub(r"[^\n]", " ", match.group())

    bare = _LEXEME.sub(blank, text)
    for number, line in enumerate(bare.split("\n"), 1):
        if not line.isascii():
            raise Unsupported("a character that is not ASCII, outside of a comment", number)
    return bare


_VECTOR = re.compile(
    r'__attribute__\(\(simd\("notinbranch"\)\)\) (float|double) (\w+)\(([\w ,]*)\);'
)
_DIAGNOSTIC = '#pragma GCC diagnostic ignored "-Wunknown-pragmas"'
_UNROLL = re.compile(r"#pragma GCC unroll [1-9]\d?")
_QUIET = "#ifndef _OPENMP"
_VECTORS = (
    "#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && "
    "defined(__GLIBC_PREREQ)",
    "#if __GLIBC_PREREQ(2, 35)",
)
"""Where libmvec has the functions of ``LIBMVEC``."""
_GUARD = re.compile(r"#if (\w+) (<|<=|>|>=|==|!=) (-?(?:0|[1-9]\d{0,8}))")
_DEFINE = re.compile(r"#define (\w+)(?:\(([\w ,]*)\))?(?: (.*))?")


class _Preprocessed:
    """The text without its directives, and what these said."""

    def __init__(self, text: str, header: Unit | None) -> None:
        self.constants: dict[str, Constant] = dict(header.constants) if header else {}
        self.macros: dict[str, Macro] = dict(header.macros) if header else {}
        self.vectors: dict[str, Signature] = {}
        self.includes: dict[str, int] = dict.fromkeys(_HEADERS, 0) if header else {}
        self._lines = without_comments(text).split("\n")
        self._at = 0
        kept: list[str] = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.lstrip().startswith("#") and not line.lstrip().startswith("#pragma omp "):
                begin = self._at
                self._directive()
                kept += [""] * (self._at - begin)
            else:
                kept.append(line)
                self._at += 1
        self.text = "\n".join(kept)

    def _here(self) -> str:
        """The line, with one space between words."""
        return " ".join(self._lines[self._at].split())

    def _next(self) -> str:
        """The next line that is not empty."""
        self._at += 1
        while self._at < len(self._lines) and not self._here():
            self._at += 1
        if self._at >= len(self._lines):
            raise self._bad("#endif is missing")
        return self._here()

    def _bad(self, reason: str) -> Unsupported:
        return Unsupported(reason, min(self._at + 1, len(self._lines)))

    def _directive(self) -> None:
        """One directive, or a condition with all that is in it."""
        line = self._here()
        include = re.fullmatch(r"#include <([\w.]+)>", line)
        if include and include[1] in _HEADERS:
            self.includes.setdefault(include[1], self._at + 1)
        elif match := _DEFINE.fullmatch(line):
            self._define(match, free=False)
        elif match := _GUARD.fullmatch(line):
            self._guard(match)
        elif _UNROLL.fullmatch(line):
            if not self._next().startswith("for ("):
                raise self._bad("#pragma GCC unroll in front of no loop")
            return
        elif line == _QUIET:
            if self._next() != _DIAGNOSTIC or self._next() != "#endif":
                raise self._bad("another condition on OpenMP")
        elif line == _VECTORS[0]:
            self._vectors()
        elif match := re.fullmatch(r"#ifndef (\w+)", line):
            self._open(match[1])
        else:
            raise self._bad(f"the directive {line}")
        self._at += 1

    def _open(self, name: str) -> None:
        """``#ifndef NAME``, ``#define NAME number``, ``#endif``."""
        match = _DEFINE.fullmatch(self._next())
        if match is None or match[1] != name or match[2] is not None:
            raise self._bad(f"#ifndef {name} defines something else")
        self._define(match, free=True)
        if self._next() != "#endif":
            raise self._bad(f"#ifndef {name} has more than its #define")

    def _guard(self, match: re.Match[str]) -> None:
        """``#if NAME > number``, ``#error``, ``#endif``."""
        name = match[1]
        guard = Guard(name, match[2], int(match[3]), self._at + 1)
        if name not in self.constants:
            raise self._bad(f"{name} is no macro")
        if not re.fullmatch(r'#error "[^"]*"', self._next()) or self._next() != "#endif":
            raise self._bad(f"a guard of {name} without its #error")
        old = self.constants[name]
        guards = (*old.guards, guard)
        self.constants[name] = Constant(name, old.value, old.line, old.open, guards)
        if not guard.admits(old.value):
            raise self._bad(f"{name} is {old.value}, which its guard refuses")

    def _vectors(self) -> None:
        """The SIMD versions of functions, where the library has them."""
        if self._next() != _VECTORS[1]:
            raise self._bad("another condition on libmvec")
        while (line := self._next()) != "#endif":
            match = _VECTOR.fullmatch(line)
            if match is None:
                raise self._bad(f"under a condition: {line}")
            self._vector(match)
        if self._next() != "#endif":
            raise self._bad("a condition on libmvec with more in it")

    def _vector(self, match: re.Match[str]) -> None:
        kind, name, words = match.groups()
        parameters = [word.strip() for word in words.split(",")]
        known = math_function(name)
        if name.removesuffix("f") not in LIBMVEC and name not in LIBMVEC:
            raise self._bad(f"libmvec has no {name}")
        if known is None or parameters != [known[0]] * known[1] or kind != known[0]:
            raise self._bad(f"{name} of math.h is declared as another function")
        types = tuple(("", CType(word)) for word in parameters)
        self.vectors[name] = Signature(name, CType(kind), types, self._at + 1)

    def _define(self, match: re.Match[str], *, free: bool) -> None:
        name, words, body = match.groups()
        line = self._at + 1
        if name in self.constants or name in self.macros or _RESERVED.fullmatch(name):
            raise self._bad(f"{name} is defined again")
        if words is not None:
            self.macros[name] = _macro(name, words, body or "", line)
        elif re.fullmatch(r"0|[1-9]\d{0,8}", body or ""):
            self.constants[name] = Constant(name, int(body), line, free)
        else:
            raise self._bad(f"{name} is no number")


def math_function(name: str) -> tuple[str, int] | None:
    """The type and the number of the operands of a function of ``math.h``."""
    if name in MATH:
        return "double", MATH[name]
    if name.endswith("f") and name[:-1] in MATH:
        return "float", MATH[name[:-1]]
    return None


_KINDS = {
    "min": (2, "((x0) < (x1) ? (x0) : (x1))"),
    "max": (2, "((x0) > (x1) ? (x0) : (x1))"),
    "round_up": (1, "(((x0) + 63) / 64 * 64)"),
}


def _macro(name: str, words: str, body: str, line: int) -> Macro:
    """A macro with parameters, which must all stand in parentheses, as the whole must."""
    parameters = tuple(word.strip() for word in words.split(","))
    reserved = any(map(_RESERVED.fullmatch, parameters))
    if len(set(parameters)) < len(parameters) or "" in parameters or "#" in body or reserved:
        raise Unsupported(f"the parameters of {name}", line)
    outside = body
    for word in parameters:
        outside = re.sub(rf"\(\s*{word}\s*\)", "(0)", outside)
    if re.search(rf"\b(?:{'|'.join(parameters)})\b", outside) or not _enclosed(body):
        raise Unsupported(f"{name} or its parameters are not in parentheses", line)
    tree = expression(body, line)
    _Expressions(set(parameters)).check(tree)
    return Macro(name, parameters, tree, line, _kind(parameters, tree))


def _enclosed(body: str) -> bool:
    """Does the text stand in one pair of parentheses?"""
    depth, text = 0, body.strip()
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth <= 0 and place < len(text) - 1:
            return False
    return depth == 0 and text.startswith("(")


def _kind(parameters: tuple[str, ...], body: Node) -> str:
    names = {word: f"x{place}" for place, word in enumerate(parameters)}
    shape = _shape(body, names)
    for kind, (count, text) in _KINDS.items():
        if count == len(parameters) and _shape(expression(text), {}) == shape:
            return kind
    return ""


def _shape(node: Node, names: Mapping[str, str]) -> tuple[object, ...]:
    """A tree as tuples: equal for equal expressions."""
    own = tuple(
        names.get(value, value) if isinstance(value, str) else value
        for value in (getattr(node, one) for one in node.attr_names)
    )
    children = tuple(_shape(child, names) for _, child in node.children())
    return (type(node).__name__, own, children)


# -- the tree


def _trees(text: str) -> list[Node]:
    """The declarations and definitions of a text.  Raises Unsupported."""
    try:
        tree = c_parser.CParser().parse(f'{_PRELUDE}\n# 1 "c"\n{text}', "c")
    except c_parser.ParseError as error:
        place = re.match(r"c:(\d+)", str(error))
        raise Unsupported(f"it does not parse: {error}", int(place[1]) if place else 0) from error
    except RecursionError as error:
        raise Unsupported("it is nested too deeply") from error
    return list(tree.ext[len(_TYPEDEFS) :])


def expression(text: str, line: int = 1) -> Node:
    """One expression, which stands on ``line``.  Raises Unsupported."""
    trees = _trees("\n" * (line - 1) + f"int f(void) {{ return {text}; }}")
    items: Sequence[Node] = trees[0].body.block_items if len(trees) == 1 else ()
    if len(items) != 1 or not isinstance(items[0], c_ast.Return) or items[0].expr is None:
        raise Unsupported(f"{text} is no expression", line)
    return items[0].expr


def walk(node: Node) -> Iterator[Node]:
    """A node and all below it."""
    todo = [node]
    while todo:
        one = todo.pop()
        yield one
        todo += [child for _, child in reversed(one.children())]


def type_of(node: Node) -> CType:
    """The type that a declaration or a cast names; of an array, that of an element.

    Raises Unsupported.
    """
    inner = node.type
    pointers, restrict, fixed = 0, False, False
    if isinstance(inner, c_ast.ArrayDecl):
        inner = inner.type
    while isinstance(inner, c_ast.PtrDecl):
        if pointers == 0:
            restrict, fixed = "restrict" in inner.quals, "const" in inner.quals
        elif inner.quals:
            raise Unsupported("a qualified pointer behind a pointer", line_of(node))
        pointers += 1
        inner = inner.type
    named = isinstance(inner, c_ast.TypeDecl) and isinstance(inner.type, c_ast.IdentifierType)
    if not named or len(inner.type.names) != 1 or {*inner.quals} - {"const"}:
        raise Unsupported("a type that no kernel has", line_of(node))
    base = inner.type.names[0]
    if base not in BYTES and base != "void":
        raise Unsupported(f"the type {base}", line_of(node))
    return CType(base, pointers, "const" in inner.quals, restrict, fixed)


def signature_of(node: c_ast.Decl) -> Signature:
    """The signature that a declaration of a function tells.  Raises Unsupported."""
    line = line_of(node)
    if {*node.storage} - {"static"} or {*node.funcspec} - {"inline"} or node.init is not None:
        raise Unsupported(f"{node.name} has storage or specifiers that no kernel has", line)
    static = "static" in node.storage
    if node.funcspec and not static:
        raise Unsupported(f"{node.name} is inline and not static", line)
    if node.type.args is None:
        raise Unsupported(f"{node.name} does not say what it takes", line)
    parameters = []
    for one in node.type.args.params:
        if isinstance(one, c_ast.EllipsisParam) or isinstance(one.type, c_ast.ArrayDecl):
            raise Unsupported(f"a parameter of {node.name}", line)
        parameters.append((getattr(one, "name", None) or "", type_of(one)))
    if parameters == [("", CType("void"))]:
        parameters = []
    if any(kind == CType("void", const=kind.const) for _, kind in parameters):
        raise Unsupported(f"a parameter of {node.name} is void", line)
    names = [name for name, _ in parameters if name]
    if len(set(names)) < len(names):
        raise Unsupported(f"two parameters of {node.name} have one name", line)
    return Signature(node.name, type_of(node.type), tuple(parameters), line, static)


# -- what may stand in an expression

_BINARY = frozenset(
    ["+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "&&", "||", "|", "&", "^"]
)
_UNARY = frozenset(["-", "+", "!", "~", "*", "&"])
_STEPS = frozenset(("p++", "p--", "++", "--"))
_ASSIGN = frozenset(["=", "+=", "-=", "*=", "/=", "|=", "&="])
_LONGEST = 40
"""Letters of a number."""
_NUMBER = re.compile(r"\d+u?|(\d+\.\d*|\.\d+|\d+(?=e))(e[+-]?\d+)?f?")


class _Expressions:
    """Checks expressions.

    ``known``: the names that may stand there; ``callable``: the functions and macros that may be
    called, with the number of their operands, None where they have effects.
    """

    def __init__(
        self, known: set[str], callable: Mapping[str, Signature | Macro] | None = None
    ) -> None:
        self._known = known
        self._callable = callable or {}

    def check(self, node: Node, *, effect: bool = False) -> None:
        """Raises Unsupported.  ``effect``: the call that the expression is may have one."""
        if isinstance(node, c_ast.FuncCall):
            self._call(node, effect=effect)
            return
        if (reason := self._wrong(node)) is not None:
            raise Unsupported(reason, line_of(node))
        for name, child in node.children():
            if name != "to_type":
                self.check(child)

    def _wrong(self, node: Node) -> str | None:
        """Why a node may not stand in an expression, whatever is below it."""
        if isinstance(node, c_ast.ID):
            return None if node.name in self._known else f"the name {node.name}"
        if isinstance(node, c_ast.Constant):
            fits = _NUMBER.fullmatch(node.value) and not re.fullmatch(r"0\d+u?", node.value)
            fits = fits and len(node.value) <= _LONGEST and _is_in_range(node.value)
            return None if fits else f"the number {node.value}"
        if isinstance(node, c_ast.Cast):
            type_of(node.to_type)
            return None
        if isinstance(node, c_ast.UnaryOp) and node.op in _UNARY:
            named = node.op not in "*&" or isinstance(node.expr, c_ast.ID)
            return None if named else f"{node.op} of an expression"
        if isinstance(node, c_ast.ArrayRef):
            return None if isinstance(node.name, c_ast.ID) else "an element of an expression"
        binary = isinstance(node, c_ast.BinaryOp) and node.op in _BINARY
        if binary or isinstance(node, c_ast.TernaryOp):
            return None
        return f"{type(node).__name__} in an expression"

    def _call(self, node: c_ast.FuncCall, *, effect: bool) -> None:
        line = line_of(node)
        if not isinstance(node.name, c_ast.ID):
            raise Unsupported("a call of an expression", line)
        name = node.name.name
        arguments = node.args.exprs if node.args is not None else []
        if self._arity(name, line, effect=effect) != len(arguments):
            raise Unsupported(f"{name} is called with {len(arguments)} arguments", line)
        if name == "INT64_C" and not re.fullmatch(r"\d+", _number_text(arguments[0])):
            raise Unsupported("INT64_C of what is no number", line)
        for one in arguments:
            self.check(one)

    def _arity(self, name: str, line: int, *, effect: bool) -> int:
        """How many arguments a function takes that may be called there."""
        found = self._callable.get(name)
        if name in self._known and found is None:
            raise Unsupported(f"{name} is called and is no function", line)
        if isinstance(found, Macro):
            return len(found.parameters)
        if found is not None:
            pure = found.result != CType("void") and not any(
                k.pointers for _, k in found.parameters
            )
            if not pure and not effect:
                raise Unsupported(f"{name} has an effect, inside an expression", line)
            return len(found.parameters)
        if name in CLASSIFY or name == "INT64_C":
            return 1
        function = math_function(name)
        if function is None:
            raise Unsupported(f"a call of {name}", line)
        return function[1]


def _is_in_range(text: str) -> bool:
    """Is a number one of its type?  Compilers make another one of it where it is not."""
    digits = text.rstrip("u")
    return int(digits) < 2**63 if digits.isdigit() else isfinite(stored(text))


def _number_text(node: Node) -> str:
    """The text of a number without its sign; empty for all else."""
    if isinstance(node, c_ast.UnaryOp) and node.op == "-":
        node = node.expr
    return str(node.value) if isinstance(node, c_ast.Constant) else ""


# -- functions

_REDUCTION = re.compile(r" reduction\((\+|\*|max|min|\||&|\|\||&&):(\w+(?:, ?\w+)*)\)")
_OMP = re.compile(r"omp (simd|parallel for schedule\(static\)(?: if\(parallel: (.*)\))?)(.*)")


class _Reader:
    """Makes a unit, and checks that all of it is in the language.

    ``header``: what is defined before it.
    """

    def __init__(self, text: str, header: Unit | None = None) -> None:
        self._text = text
        self._read = _Preprocessed(text, header)
        self._functions: dict[str, c_ast.FuncDef] = {}
        self._signatures: dict[str, Signature] = {}
        self._externals: dict[str, Signature] = {}
        self._enumerators: dict[str, int] = {}
        self._directives: dict[Node, Directive] = {}
        self._scopes: list[set[str]] = []
        if header is not None:
            self._functions |= header.functions
            self._signatures |= header.signatures
            self._externals |= header.externals
            self._enumerators |= header.enumerators
            self._directives |= header._directives

    def unit(self) -> Unit:
        """The whole file.  Raises Unsupported."""
        try:
            trees = _trees(self._read.text)
            for one in trees:
                self._check_includes(line_of(one))
                self._top(one)
        except RecursionError as error:
            raise Unsupported("it is nested too deeply") from error
        return Unit(
            self._text, self._functions, self._signatures, self._externals, self._read.vectors,
            self._read.constants, self._enumerators, self._read.macros, {}, self._directives,
        )  # fmt: skip

    def _check_includes(self, first: int) -> None:
        """What the headers declare is declared before all else is."""
        for name in _HEADERS:
            if self._read.includes.get(name, first) >= first:
                raise Unsupported(f"#include <{name}> is missing", first)

    def _top(self, node: Node) -> None:
        line = line_of(node)
        if isinstance(node, c_ast.FuncDef):
            if node.param_decls:
                raise Unsupported("parameters declared behind the function", line)
            self._function(node)
        elif isinstance(node, c_ast.Decl) and isinstance(node.type, c_ast.FuncDecl):
            signature = signature_of(node)
            self._new(signature.name, line)
            if signature.static:
                raise Unsupported(f"{signature.name} is declared static", line)
            self._externals[signature.name] = signature
        elif isinstance(node, c_ast.Decl) and isinstance(node.type, c_ast.Enum):
            self._enum(node.type)
        else:
            raise Unsupported(f"{type(node).__name__} outside of functions", line)

    def _new(self, name: str, line: int) -> None:
        """A name of the file, which must be new."""
        known = (self._signatures, self._externals, self._enumerators)
        if self._is_macro(name) or any(name in one for one in known):
            raise Unsupported(f"{name} is declared again", line)
        if math_function(name) is not None:
            raise Unsupported(f"{name} of math.h is declared again", line)
        if _RESERVED.fullmatch(name) and not name.startswith("cblas_"):
            raise Unsupported(f"{name} is a name of the standard headers", line)

    def _is_macro(self, name: str) -> bool:
        return name in self._read.constants or name in self._read.macros or name in FIXED

    def _enum(self, node: c_ast.Enum) -> None:
        for one in node.values.enumerators if node.values is not None else ():
            number = one.value.value if isinstance(one.value, c_ast.Constant) else ""
            if not re.fullmatch(r"0|[1-9]\d{0,8}", number):
                raise Unsupported(f"{one.name} is no number", line_of(one))
            self._new(one.name, line_of(one))
            if one.name not in ENUMERATORS:
                raise Unsupported(f"the enumerator {one.name}", line_of(one))
            self._enumerators[one.name] = int(number)

    def _function(self, node: c_ast.FuncDef) -> None:
        signature = signature_of(node.decl)
        if signature.name in self._externals:
            raise Unsupported(f"{signature.name} is declared and defined", signature.line)
        self._new(signature.name, signature.line)
        names = [name for name, _ in signature.parameters]
        if "" in names:
            raise Unsupported(f"a parameter of {signature.name} has no name", signature.line)
        for name in names:
            self._free(name, signature.line)
        self._scopes = [set(names)]
        self._block(node.body)
        if any(one for one in walk(node.body) if isinstance(one, c_ast.Return) and (
            (one.expr is None) != (signature.result == CType("void"))
        )):  # fmt: skip
            raise Unsupported(f"{signature.name} returns nothing, or too much", signature.line)
        self._scopes = []
        self._functions[signature.name] = node
        self._signatures[signature.name] = signature

    def _free(self, name: str, line: int) -> None:
        """A name of a local variable."""
        if self._is_macro(name) or name in self._signatures or name in self._externals:
            raise Unsupported(f"{name} names a variable too", line)
        if _RESERVED.fullmatch(name):
            raise Unsupported(f"{name} is a name of the standard headers", line)

    # -- statements

    def _block(self, node: c_ast.Compound) -> None:
        self._scopes.append(set())
        items = node.block_items or []
        for place, one in enumerate(items):
            if isinstance(one, c_ast.Pragma):
                follows = items[place + 1] if place + 1 < len(items) else None
                self._pragma(one, follows)
            else:
                self._statement(one)
        self._scopes.pop()

    def _statement(self, node: Node) -> None:
        if isinstance(node, c_ast.Compound):
            self._block(node)
        elif isinstance(node, c_ast.Decl):
            self._declare(node)
        elif isinstance(node, c_ast.For):
            self._loop(node)
        elif isinstance(node, c_ast.If):
            self._expression(node.cond)
            for branch in (node.iftrue, node.iffalse):
                if branch is not None:
                    self._inner(branch)
        elif isinstance(node, c_ast.Return):
            if node.expr is not None:
                self._expression(node.expr)
        else:
            self._effect(node)

    def _inner(self, node: Node) -> None:
        """A statement that is a scope of its own."""
        self._scopes.append(set())
        self._statement(node)
        self._scopes.pop()

    def _effect(self, node: Node) -> None:
        """A statement that is an expression."""
        line = line_of(node)
        if isinstance(node, c_ast.Assignment):
            if node.op not in _ASSIGN or not isinstance(
                node.lvalue, (c_ast.ID, c_ast.ArrayRef, c_ast.UnaryOp)
            ):
                raise Unsupported(f"the assignment {node.op}", line)
            if isinstance(node.lvalue, c_ast.UnaryOp) and node.lvalue.op != "*":
                raise Unsupported("an assignment to no variable", line)
            self._expression(node.lvalue)
            self._expression(node.rvalue, effect=True)
        elif isinstance(node, c_ast.UnaryOp) and node.op in _STEPS:
            if not isinstance(node.expr, c_ast.ID):
                raise Unsupported(f"{node.op.strip('p')} of an expression", line)
            self._expression(node.expr)
        elif isinstance(node, c_ast.FuncCall):
            self._expression(node, effect=True)
        elif isinstance(node, c_ast.Cast) and type_of(node.to_type) == CType("void"):
            if not isinstance(node.expr, c_ast.ID):
                raise Unsupported("an expression whose value goes nowhere", line)
            self._expression(node.expr)
        else:
            raise Unsupported(f"the statement {type(node).__name__}", line)

    def _declare(self, node: c_ast.Decl) -> None:
        line = line_of(node)
        if node.storage or node.funcspec or node.name is None:
            raise Unsupported("a declaration with storage of its own", line)
        kind = type_of(node)
        if kind.base == "void" and not kind.pointers:
            raise Unsupported(f"{node.name} is void", line)
        if isinstance(node.type, c_ast.ArrayDecl) and (
            not isinstance(node.type.dim, c_ast.Constant)
            or not re.fullmatch(r"[1-9]\d{0,6}", node.type.dim.value)
            or node.init is not None
        ):
            raise Unsupported(f"the extent of {node.name} is no number", line)
        self._free(node.name, line)
        if any(node.name in one for one in self._scopes[-1:]):
            raise Unsupported(f"{node.name} is declared twice", line)
        if len(self._scopes) == 2 and node.name in self._scopes[0]:
            raise Unsupported(f"{node.name} is a parameter, too", line)
        if node.init is not None:
            named = {one.name for one in walk(node.init) if isinstance(one, c_ast.ID)}
            if node.name in named:
                raise Unsupported(f"{node.name} is read in its own declaration", line)
            self._expression(node.init, effect=True)
        self._scopes[-1].add(node.name)

    def _loop(self, node: c_ast.For) -> None:
        line = line_of(node)
        self._scopes.append(set())
        if node.init is not None:
            decls: Sequence[Node] = node.init.decls if isinstance(node.init, c_ast.DeclList) else ()
            if len(decls) != 1 or decls[0].init is None:
                raise Unsupported("a loop that does not begin with its variable", line)
            self._declare(decls[0])
            name = decls[0].name
            if name in _assigned(node.stmt):
                raise Unsupported(f"{name} changes in the body of its loop", line)
        if node.cond is None or node.next is None:
            raise Unsupported("a loop without an end", line)
        self._expression(node.cond)
        self._effect(node.next)
        self._inner(node.stmt)
        self._scopes.pop()

    def _expression(self, node: Node, *, effect: bool = False) -> None:
        for one in walk(node):
            defined = self._read.constants.get(getattr(one, "name", ""))
            if isinstance(one, c_ast.ID) and defined and line_of(one) < defined.line:
                raise Unsupported(f"{one.name} stands before its #define", line_of(one))
        macros = {n: m for n, m in self._read.macros.items() if m.line < line_of(node)}
        known: set[str] = set().union(
            *self._scopes, self._read.constants, self._enumerators, NUMBERS, ("NAN", "INFINITY")
        )
        calls: dict[str, Signature | Macro] = {**self._signatures, **self._externals, **macros}
        _Expressions(known, calls).check(node, effect=effect)

    def _pragma(self, node: c_ast.Pragma, loop: Node | None) -> None:
        """A pragma in front of its loop, which must be as OpenMP wants it."""
        line = line_of(node)
        if not isinstance(node.string, str):
            raise Unsupported("_Pragma", line)
        match = _OMP.fullmatch(" ".join(node.string.split()))
        if match is None or not isinstance(loop, c_ast.For):
            raise Unsupported(f"#pragma {node.string}", line)
        rest = match[3]
        reductions = [(m[1], m[2]) for m in _REDUCTION.finditer(rest)]
        if _REDUCTION.sub("", rest):
            raise Unsupported(f"the clauses {rest.strip()}", line)
        pairs = [(o, name.strip()) for o, names in reductions for name in names.split(",")]
        known: set[str] = set().union(*self._scopes)
        names = [name for _, name in pairs]
        if len(set(names)) < len(names) or not known.issuperset(names):
            raise Unsupported("a reduction of what is no variable", line)
        condition = None
        if match[2] is not None:
            condition = expression(match[2], line)
            self._expression(condition)
        if not canonical(loop):
            raise Unsupported("a loop that OpenMP does not take", line)
        self._directives[node] = Directive(match[1] != "simd", line, tuple(pairs), condition)


def _assigned(node: Node) -> set[str]:
    """The variables that are assigned to, or whose address is taken, in a statement."""
    found = set()
    for one in walk(node):
        target = None
        if isinstance(one, c_ast.Assignment):
            target = one.lvalue
        elif isinstance(one, c_ast.UnaryOp) and one.op in (*_STEPS, "&"):
            target = one.expr
        if isinstance(target, c_ast.ID):
            found.add(target.name)
    return found


def canonical(loop: c_ast.For) -> bool:
    """``i = a; i < b; i++``, or ``i += c``, or ``i >= b; i--``; nothing leaves the loop.

    What ``b`` and ``c`` are made of does not change in it.
    """
    begins = isinstance(loop.init, c_ast.DeclList) and len(loop.init.decls) == 1
    if not begins or not isinstance(loop.cond, c_ast.BinaryOp):
        return False
    name = loop.init.decls[0].name
    if type_of(loop.init.decls[0]) != CType("int64_t"):
        return False
    left = loop.cond.left
    if not isinstance(left, c_ast.ID) or left.name != name:
        return False
    if any(isinstance(one, c_ast.Return) for one in walk(loop.stmt)):
        return False
    fixed = (loop.cond.right, getattr(loop.next, "rvalue", loop.cond.right))
    bounds = [one.name for part in fixed for one in walk(part) if isinstance(one, c_ast.ID)]
    if name in bounds or not _assigned(loop.stmt).isdisjoint(bounds):
        return False
    step = loop.next
    if isinstance(step, c_ast.UnaryOp):
        ways = {"p++": ("<", "<="), "++": ("<", "<="), "p--": (">", ">="), "--": (">", ">=")}
        moved = step.expr
        fits = loop.cond.op in ways.get(step.op, ())
    else:
        moved = getattr(step, "lvalue", None)
        fits = getattr(step, "op", "") == "+=" and loop.cond.op in ("<", "<=")
    return fits and isinstance(moved, c_ast.ID) and moved.name == name
