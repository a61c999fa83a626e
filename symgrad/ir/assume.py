"""Declared assumptions: what an author says of the inputs, as text.

In: ``{"x": "positive", "p": "(0, 1)", "A": "symmetric", "idx": "index v", "t": "one-hot"}``.
Out: ``Assumption`` records.

Grammar, words separated by commas or ``and`` where several hold:

    positive | nonnegative | negative | nonzero      of every element
    (a, b) [a, b] (a, b] [a, b)                      every element lies in between; inf is allowed
    binary | {0, 1}                                  every element is 0 or 1
    symmetric                                        the last two axes may be exchanged
    square                                           the last two sizes are one
    diagonal                                         a matrix that is 0 off its diagonal
    one-hot                                          along the last axis: 1 once, else 0
    index n                                          integers, 0 <= element < n
    unique                                           no value occurs twice
    constant                                         no gradient is wanted
    number                                           constant, and fixed for a call: what holds
                                                     almost everywhere does for each value
    left < right  (also <= > >= == !=)                  a relation between expressions of inputs,
                                                     in tensor code, that holds for all elements

A relation, ``(x * x).sum(-1) < 1``, may name several inputs; ``a < b < c`` is two of them.

Signs and intervals of one input are met together: ``positive and (-2, 5)`` is ``(0, 5)``.  What no
tensor can meet is an error, since everything would hold of it.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from symgrad.errors import SpecError
from symgrad.ir.dim import Dim

_WORDS = {
    "positive": "positive", "> 0": "positive", ">0": "positive",
    "nonnegative": "nonnegative", "non-negative": "nonnegative", ">= 0": "nonnegative",
    ">=0": "nonnegative", "negative": "negative", "< 0": "negative", "<0": "negative",
    "nonzero": "nonzero", "non-zero": "nonzero", "!= 0": "nonzero", "binary": "binary",
    "{0, 1}": "binary", "{0,1}": "binary", "0 or 1": "binary", "symmetric": "symmetric",
    "one-hot": "one-hot", "one hot": "one-hot", "onehot": "one-hot", "one_hot": "one-hot",
    "unique": "unique", "distinct": "unique", "square": "square",
    "diagonal": "diagonal", "constant": "constant",
    "number": "plain", "plain number": "plain",
}  # fmt: skip
RELATION = "relation"
_INTERVAL = re.compile(r"([(\[])\s*([^,\s]+)\s*,\s*([^,\s]+)\s*([)\]])")
_INDEX = re.compile(r"index\s+(\w+)")


@dataclass(frozen=True)
class Assumption:
    """One declared fact about one input; ``text`` is as it was written.

    ``sides`` of a relation, and the names that stand in them.  ``taken``: nobody declared it; an
    operation takes it to be so, or it is an answer to what the program asks.  ``usual``: a value of
    a plain number that calls pass, often its default.
    """

    name: str
    kind: str
    text: str
    low: Fraction | None = None
    high: Fraction | None = None
    low_open: bool = True
    high_open: bool = True
    extent: Dim | None = None
    sides: tuple[str, str, str] | None = None
    names: tuple[str, ...] = ()
    taken: bool = False
    usual: float = 0.0

    @property
    def inputs(self) -> tuple[str, ...]:
        """The inputs that it is about."""
        return self.names or (self.name,)

    def __str__(self) -> str:
        if self.kind == RELATION:
            return self.text
        if self.kind == "interval" and self.high is None and self.low is not None:
            return f"{self.name} {'>' if self.low_open else '>='} {_end(self.low)}"
        if self.kind == "interval":
            return f"{self.name} in {self.text}"
        if self.kind == "index":
            return f"0 <= {self.name} < {self.extent}"
        signs = {"positive": "> 0", "nonnegative": ">= 0", "negative": "< 0", "nonzero": "!= 0"}
        if self.kind in signs:
            return f"{self.name} {signs[self.kind]}"
        words = {
            "binary": "is 0 or 1 everywhere",
            "unique": "has no value twice",
            "constant": "is constant: no gradient by it is judged",
            "plain": "is a plain number",
        }
        return f"{self.name} {words.get(self.kind, f'is {self.kind}')}"

    @property
    def code(self) -> str:
        """The same as Python, element by element; empty where it has no such form."""
        name = self.name
        if self.kind == RELATION:
            return self.text
        if self.kind == "interval":
            ends = [(self.low, ">" if self.low_open else ">="),
                    (self.high, "<" if self.high_open else "<=")]  # fmt: skip
            parts = [f"{name} {sign} {_end(end)}" for end, sign in ends if end is not None]
            return parts[0] if len(parts) == 1 else " & ".join(f"({part})" for part in parts)
        return _CODES.get(self.kind, "").format(name=name, extent=self.extent)


_LONGEST = 10**12


def _end(value: Fraction) -> str:
    """An end of an interval; that of a program's literal, which has too many digits, as a float."""
    exact = value.denominator > _LONGEST and Fraction(float(value)) == value
    return repr(float(value)) if exact else str(value)


_CODES = {
    "positive": "{name} > 0", "nonnegative": "{name} >= 0", "negative": "{name} < 0",
    "nonzero": "{name} != 0", "binary": "({name} == 0) | ({name} == 1)",
    "index": "(0 <= {name}) & ({name} < {extent})",
}  # fmt: skip


Stated = Mapping[str, str | Iterable[str]] | Iterable[str]
"""Facts by inputs, several as a list; or a list of ``x=positive`` and ``x < y``."""
_NAMED = re.compile(r"\s*([^\W\d]\w*)\s*=(?!=)(.*)", re.S)


def joined(assume: Stated | None) -> dict[str, str]:
    """All that is stated of each input, as one text.  Raises SpecError."""
    found: dict[str, list[str]] = {}
    if isinstance(assume, Mapping):
        for name, said in assume.items():
            found[name] = _texts(said)
    else:
        for text in _texts([] if assume is None else assume):
            name, fact = _named(text)
            found.setdefault(name, []).append(fact)
    return {name: " and ".join(facts) for name, facts in found.items()}


def _texts(said: object) -> list[str]:
    """One fact or several."""
    if isinstance(said, str):
        return [said]
    facts = list(said) if isinstance(said, Iterable) and not isinstance(said, bytes) else [said]
    for one in facts:
        if not isinstance(one, str):
            raise SpecError(
                f"the assumption {one!r} is no text", hint='as assume={"x": "positive"}'
            )
    return [str(one) for one in facts]


def _named(text: str) -> tuple[str, str]:
    """The input of ``x=positive`` and the fact; of a relation the first input that it names."""
    if match := _NAMED.fullmatch(text):
        return match[1], match[2].strip()
    tree = _comparison(_piece(text.strip()))
    names = () if tree is None else _names(tree)
    if not names:
        raise SpecError(
            f"the assumption {text!r} names no input",
            hint='write "x=positive" or "(x * x).sum() < 1"',
        )
    return names[0], text.strip()


def symmetric(name: str) -> Assumption:
    """An input that operations take to be symmetric."""
    return Assumption(name, "symmetric", "symmetric", taken=True)


def parse_all(assume: Mapping[str, str] | Iterable[tuple[str, str]]) -> tuple[Assumption, ...]:
    """The assumptions of a mapping.

    Raises SpecError for one that cannot be read, and for those that contradict each other.
    """
    items = assume.items() if isinstance(assume, Mapping) else assume
    return tuple(found for name, text in items for found in parse(name, text))


def parse(name: str, text: str) -> list[Assumption]:
    """The assumptions about one input, its bounds as one of them.  Raises SpecError."""
    return _together(name, text.strip(), _written(name, text))


def _written(name: str, text: str) -> list[Assumption]:
    """The assumptions about one input, each as it is written."""
    rest, found = text.strip(), []
    while rest:
        relation = _piece(rest)
        if (tree := _comparison(relation)) is not None:
            found += _relations(name, relation, tree)
            end = len(relation)
        else:
            taken, end = _first(name, rest)
            found.append(taken)
        rest = re.sub(r"^\s*(,|;|and\b)?\s*", "", rest[end:])
    if not found:
        raise SpecError(f"the assumption about {name!r} is empty", hint=_HINT)
    return found


_HINT = (
    "write positive, nonnegative, negative, nonzero, an interval such as (0, 1), binary, "
    "symmetric, square, diagonal, one-hot, unique, index n, or a relation such as "
    "(x * x).sum(-1) < 1"
)


def _first(name: str, text: str) -> tuple[Assumption, int]:
    """The assumption that ``text`` begins with, and how many characters it takes."""
    if match := _INTERVAL.match(text):
        return _interval(name, match), match.end()
    if match := _INDEX.match(text):
        extent = Dim.of(int(match[1])) if match[1].isdigit() else Dim.size(match[1])
        return Assumption(name, "index", match[0], extent=extent), match.end()
    lowered = text.lower()
    for word in sorted(_WORDS, key=len, reverse=True):
        if lowered.startswith(word) and not lowered[len(word) : len(word) + 1].isalnum():
            if word == "diagonal":
                return _relations(name, *_diagonal(name))[0], len(word)
            return Assumption(name, _WORDS[word], word), len(word)
    raise SpecError(f"the assumption {text!r} about {name!r} cannot be read", hint=_HINT)


def _diagonal(name: str) -> tuple[str, ast.Compare]:
    """What a matrix is that is its diagonal, as a relation."""
    text = f"{name} == {name}.diagonal().diag()"
    tree = _comparison(text)
    assert tree is not None
    return text, tree


def _interval(name: str, match: re.Match[str]) -> Assumption:
    low, high = _bound(name, match[2]), _bound(name, match[3])
    if low is not None and high is not None and low >= high:
        raise SpecError(f"the interval {match[0]} of {name!r} is empty", hint=_HINT)
    return Assumption(
        name, "interval", match[0], low, high, match[1] == "(", match[4] == ")"
    )  # fmt: skip


# -- relations between expressions of inputs

_SYMBOLS: Mapping[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.NotEq: "!=",
    ast.Eq: "==",
}  # fmt: skip
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!=", "==": "=="}
_PIECES = re.compile(r"[(\[{]|[)\]}]|[,;]|\band\b")


def _piece(text: str) -> str:
    """The text up to the first separator that is in no brackets."""
    depth = 0
    for mark in _PIECES.finditer(text):
        if mark[0] in "([{":
            depth += 1
        elif mark[0] in ")]}":
            depth -= 1
        elif not depth:
            return text[: mark.start()].rstrip()
    return text


def _comparison(text: str) -> ast.Compare | None:
    """A comparison as Python reads it; None where the text is none."""
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return None
    return tree if isinstance(tree, ast.Compare) else None


def _relations(name: str, text: str, tree: ast.Compare) -> list[Assumption]:
    """The relations of a chain of comparisons.  Raises SpecError."""
    parts, found = [tree.left, *tree.comparators], []
    for operator, left, right in zip(tree.ops, parts, parts[1:], strict=False):
        symbol = _SYMBOLS.get(type(operator))
        if symbol is None:
            raise SpecError(
                f"the assumption {text!r} about {name!r} is no relation that symgrad reads",
                hint="relations are < <= > >= == and !=",
            )
        sides = _source(text, left), _source(text, right)
        names = _names(left, right)
        own = names[0] if len(parts) > 2 and names and name not in names else name
        found.append(
            _bounded(name, left, symbol, right)
            or _bounded(name, right, _TURNED[symbol], left)
            or Assumption(
                own, RELATION, f"{sides[0]} {symbol} {sides[1]}",
                sides=(sides[0], symbol, sides[1]), names=names,
            )
        )  # fmt: skip
    return found


def _source(text: str, part: ast.expr) -> str:
    return ast.get_source_segment(text, part) or ast.unparse(part)


def _bounded(name: str, side: ast.expr, symbol: str, other: ast.expr) -> Assumption | None:
    """``x > 0.5`` as an interval; None for what is not the input itself beside a number."""
    if not isinstance(side, ast.Name) or side.id != name:
        return None
    try:
        value = ast.literal_eval(other)
    except (ValueError, TypeError, SyntaxError):
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    number = Fraction(repr(value) if isinstance(value, float) else value)
    if symbol in ("==", "!="):
        return Assumption(name, "nonzero", "nonzero") if symbol == "!=" and not number else None
    is_open = symbol in "<>"
    if symbol in (">", ">="):
        text = f"{'(' if is_open else '['}{value}, inf)"
        return Assumption(name, "interval", text, number, None, is_open, True)
    text = f"(-inf, {value}{')' if is_open else ']'}"
    return Assumption(name, "interval", text, None, number, True, is_open)


def _names(*parts: ast.expr) -> tuple[str, ...]:
    """The names in expressions, but for those of functions and of modules that hold them."""
    found: dict[str, None] = {}
    for part in parts:
        called = {id(one.func) for one in ast.walk(part) if isinstance(one, ast.Call)}
        called |= {
            id(one.value) for one in ast.walk(part)
            if isinstance(one, ast.Attribute) and id(one) in called
            and isinstance(one.value, ast.Name) and one.value.id in MODULES
        }  # fmt: skip
        for one in ast.walk(part):
            if isinstance(one, ast.Name) and id(one) not in called:
                found[one.id] = None
    return tuple(found)


MODULES = ("torch", "sg", "symgrad")
"""What functions in relations may be written with: ``torch.sqrt(x)``."""


def pointed(text: str, name: str) -> str:
    """A relation with a caret under the first place of a name."""
    at = re.search(rf"\b{re.escape(name)}\b", text)
    return f"\n  {text}\n  {' ' * (at.start() if at else 0)}{'^' * len(name)}"


# -- several assumptions about one input: all of them hold

_ZERO = Fraction(0)
_BOUNDS: Mapping[str, tuple[Fraction | None, Fraction | None, bool, bool]] = {
    "positive": (_ZERO, None, True, True),
    "nonnegative": (_ZERO, None, False, True),
    "negative": (None, _ZERO, True, True),
}


def narrowed(declared: Sequence[Assumption], known: Sequence[Assumption]) -> list[Assumption]:
    """What is declared, and bounds that are known beside it, met with those of the same inputs.

    Bounds that contradict what is declared are left out.
    """
    found = list(declared)
    for one in known:
        own = [other for other in found if other.name == one.name]
        try:
            met = _together(one.name, one.text, [*own, one])
        except SpecError:
            continue
        found = [other for other in found if other.name != one.name] + met
    return found


def _together(name: str, text: str, found: list[Assumption]) -> list[Assumption]:
    """The assumptions with their bounds met into one, and without those that others imply.

    Raises SpecError where nothing meets them.
    """
    bounds = [one for one in found if one.kind in _BOUNDS or one.kind == "interval"]
    kinds = {one.kind for one in found}
    met = _met(name, text, bounds) if len(bounds) > 1 else bounds[0] if bounds else None
    marks = next((kind for kind in ("one-hot", "binary") if kind in kinds), None)
    if marks is not None:
        _check_values(name, text, marks, met, nonzero="nonzero" in kinds)
        implied = {*_BOUNDS, "interval", "binary"} - {marks}
        return [one for one in found if one.kind not in implied]
    extent = next((one.extent for one in found if one.extent is not None), None)
    if extent is not None and met is not None:
        _check_index(name, text, extent, met)
    if met is None:
        return found
    return [met if one is bounds[0] else one for one in found if one not in bounds[1:]]


def _ends(one: Assumption) -> tuple[Fraction | None, Fraction | None, bool, bool]:
    """The least and the greatest value, and which of them is left out."""
    return _BOUNDS.get(one.kind) or (one.low, one.high, one.low_open, one.high_open)


def _met(name: str, text: str, bounds: Sequence[Assumption]) -> Assumption:
    """What lies within all of several bounds, as an interval.  Raises SpecError."""
    lows = [(low, is_open) for low, _, is_open, _ in map(_ends, bounds) if low is not None]
    highs = [(-high, is_open) for _, high, _, is_open in map(_ends, bounds) if high is not None]
    low, low_open = max(lows, default=(None, True))
    top, high_open = max(highs, default=(None, True))
    high = None if top is None else -top
    if low is not None and high is not None and low >= high:
        only = (
            f"only the number {low}" if low == high and not (low_open or high_open) else "no number"
        )
        raise _contradiction(name, text, f"{only} meets all of it")
    left = "(-inf" if low is None else f"{'(' if low_open else '['}{low}"
    right = "inf)" if high is None else f"{high}{')' if high_open else ']'}"
    return Assumption(name, "interval", f"{left}, {right}", low, high, low_open, high_open)


def _within(one: Assumption, value: int) -> bool:
    low, high, low_open, high_open = _ends(one)
    above = low is None or value > low or (value == low and not low_open)
    return above and (high is None or value < high or (value == high and not high_open))


def _check_values(
    name: str, text: str, kind: str, bounds: Assumption | None, *, nonzero: bool
) -> None:
    """Are 0 and 1 both within the bounds of what holds nothing else?  Raises SpecError."""
    inside = [value for value in (0, 1) if bounds is None or _within(bounds, value)]
    left = [value for value in inside if value or not nonzero]
    if len(left) < 2:
        only = f"only the number {left[0]} meets all of it" if left else "no number meets all of it"
        raise _contradiction(name, text, f"a {kind} tensor holds 0 and 1, and {only}")


def _check_index(name: str, text: str, extent: Dim, bounds: Assumption) -> None:
    """Is there an index within the bounds?  Raises SpecError."""
    low, high, _, _ = _ends(bounds)
    most = extent.constant
    inside = high is None or high > 0 or _within(bounds, 0)
    if not inside or (most is not None and low is not None and low > most - 1):
        raise _contradiction(name, text, f"no index below {extent} meets all of it")


def _contradiction(name: str, text: str, why: str) -> SpecError:
    return SpecError(
        f"the assumption {text!r} about {name!r} contradicts itself: {why}",
        hint=f"leave out the part that does not hold of {name}",
    )


def _bound(name: str, text: str) -> Fraction | None:
    try:
        value = float(text)
        return None if math.isinf(value) else Fraction(text)
    except ValueError:
        raise SpecError(
            f"{text!r} in the interval of {name!r} is not a number", hint=_HINT
        ) from None


def check_names(
    assumptions: Iterable[Assumption], inputs: Iterable[str], beside: Collection[str] | None = ()
) -> None:
    """Raises SpecError where an assumption is about something that is no tensor input.

    ``beside``: what relations may name as well, sizes and plain numbers; None where that is not
    known yet.
    """
    known = tuple(inputs)
    for assumption in assumptions:
        for name in (assumption.name, *assumption.names):
            other = assumption.kind == RELATION and name != assumption.name
            if name not in known and not (other and (beside is None or name in beside)):
                shown = pointed(assumption.text, name) if name in assumption.names else ""
                raise SpecError(
                    f"an assumption is about {name!r}, which is not a tensor input{shown}",
                    hint=f"the inputs are {', '.join(known)}"
                    + ("; a size is written x.shape[0]" if shown else ""),
                )
        strange = assumption.kind == RELATION and assumption.name not in assumption.names
        if strange and beside is not None:
            raise SpecError(
                f"the relation {assumption.text!r} is stated of {assumption.name!r}, which it does"
                " not name",
                hint=f"state it of {' or of '.join(assumption.names) or 'an input that it names'}",
            )


def check_square(
    assumptions: Iterable[Assumption], shapes: Mapping[str, Sequence[Dim]]
) -> None:  # fmt: skip
    """Raises SpecError where what is called symmetric or square is not square."""
    for assumption in assumptions:
        shape = shapes.get(assumption.name, ())
        wanted = assumption.kind in ("symmetric", "square")
        if wanted and (len(shape) < 2 or shape[-1] != shape[-2]):
            sizes = " ".join(map(str, shape))
            raise SpecError(
                f"{assumption.name!r} is declared {assumption.kind}, but its shape is [{sizes}]",
                hint="write one name for its last two sizes in the shape spec",
            )
