"""A reader of the LaTeX that formulas are written in: what MathJax would refuse is refused.

In: text between ``$$``.  Out: nothing, or LatexError that says what is wrong and where.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(r"\\[A-Za-z]+\*?|\\.|[{}_^&]|[^\\{}_^&\s]|\s+", re.DOTALL)
_PLAIN = re.compile(
    r"\\(ell|sum|prod|max|min|bigvee|bigwedge|log|psi|Gamma|sigma|sin|cos|tan|sinh|cosh|tanh|arccos|"
    r"arcsin|arctan|pi|infty|cdot|ne|le|ge|land|lor|lnot|oplus|bmod|prime|varepsilon|partial|alpha|"
    r"beta|gamma|delta|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|rho|tau|upsilon|phi|chi|omega|,|_)"
    r"|[A-Za-z0-9.,=<>+*/|()\[\]:-]"
)
ARGUMENTS = {r"\frac": 2, r"\sqrt": 1}
DELIMITERS = {"(", ")", "[", "]", "|", r"\lfloor", r"\rfloor", r"\lceil", r"\rceil"}
ENVIRONMENTS = {"aligned", "cases"}


class LatexError(AssertionError):
    """The text is no formula."""


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        found = [(match.group(), match.start()) for match in _TOKEN.finditer(text)]
        if "".join(token for token, _ in found) != text:
            raise LatexError(f"there is a lone backslash in {text!r}")
        self.tokens = [(token, at) for token, at in found if not token.isspace()]
        self.position = 0

    def peek(self) -> str:
        return self.tokens[self.position][0] if self.position < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.position += 1
        return token

    def expect(self, *wanted: str) -> str:
        token = self.take()
        if token not in wanted:
            at = self.tokens[self.position - 1][1] if token else len(self.text)
            raise LatexError(f"{token!r} in place of {wanted} at {at}: {self.text[at:][:60]!r}")
        return token

    def sequence(self, ends: tuple[str, ...], *, table: bool = False) -> int:
        """Atoms up to one of ``ends``, which is not taken; how many there were."""
        count = 0
        while self.peek() not in ends:
            if not self.peek():
                raise LatexError(f"the text ends before one of {ends}")
            if table and self.peek() in ("&", r"\\"):
                self.take()
                continue
            self.atom()
            self.scripts()
            count += 1
        return count

    def scripts(self) -> None:
        seen = set()
        while self.peek() in ("_", "^"):
            kind = self.take()
            if kind in seen:
                raise LatexError(f"two {kind} on one symbol: {self.text!r}")
            seen.add(kind)
            self.group()

    def group(self) -> None:
        self.expect("{")
        if not self.sequence(("}",)):
            raise LatexError(f"an empty group in {self.text!r}")
        self.expect("}")

    def atom(self) -> None:
        token = self.peek()
        if token == "{":
            self.group()
        elif token == r"\left":
            self.take()
            self.expect(*DELIMITERS)
            self.sequence((r"\right",))
            self.take()
            self.expect(*DELIMITERS)
        elif token == r"\begin":
            self.environment()
        elif token in (r"\text", r"\mathrm", r"\operatorname", r"\operatorname*"):
            self.take()
            self.words()
        elif token in ARGUMENTS:
            self.take()
            for _ in range(ARGUMENTS[token]):
                self.group()
        elif _PLAIN.fullmatch(token):
            self.take()
        else:
            raise LatexError(f"{token!r} is not known, in {self.text!r}")

    def words(self) -> None:
        """Plain characters in braces."""
        self.expect("{")
        while self.peek() != "}":
            if not re.fullmatch(r"[\w.,:=<>!+*/()' -]|\\_|\\,", self.take() or " \0"):
                raise LatexError(f"text with a character that is none, in {self.text!r}")
        self.expect("}")

    def environment(self) -> None:
        self.take()
        name = self.name()
        self.sequence((r"\end",), table=True)
        self.take()
        if self.name() != name:
            raise LatexError(f"the end of {name} is missing in {self.text!r}")

    def name(self) -> str:
        self.expect("{")
        letters = ""
        while self.peek() not in ("}", ""):
            letters += self.take()
        self.expect("}")
        if letters not in ENVIRONMENTS:
            raise LatexError(f"there is no environment {letters!r}")
        return letters


def check(text: str) -> None:
    """Raise LatexError unless the text is a formula."""
    reader = _Reader(text)
    reader.sequence(("",), table=False)
