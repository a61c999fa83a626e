"""Names in C: one namespace for sizes, arrays, loop variables and temporaries of a kernel.

In: the names that users chose, in any script.  Out: C identifiers, each given once.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata

_KEYWORDS = """\
auto break case char const continue default do double else enum extern float for goto if inline
int long register restrict return short signed sizeof static struct switch typedef union
unsigned void volatile while bool true false nullptr alignas alignof asm constexpr static_assert
thread_local typeof typeof_unqual and and_eq bitand bitor catch char8_t char16_t char32_t class
co_await co_return co_yield compl concept const_cast consteval constinit decltype delete
dynamic_cast explicit export friend mutable namespace new noexcept not not_eq operator or or_eq
private protected public reinterpret_cast requires static_cast template this throw try typeid
typename using virtual wchar_t xor xor_eq main errno signgam environ linux unix i386 complex
imaginary noreturn I NULL NAN INFINITY HUGE_VAL EOF assert stdin stdout stderr math_errhandling
sched_priority int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t
uintptr_t size_t acos asin atan atan2 cos sin tan
acosh asinh atanh cosh sinh tanh exp exp2 expm1 frexp ilogb ldexp log log10 log1p log2 logb modf
scalbn scalbln cbrt fabs hypot pow sqrt erf erfc lgamma tgamma ceil floor nearbyint rint lrint
llrint round lround llround trunc fmod remainder remquo copysign nan nextafter nexttoward fdim
fmax fmin fma j0 j1 jn y0 y1 yn gamma drem significand scalb finite isnan isinf isfinite
isnormal signbit fpclassify isgreater isless isunordered abs labs llabs div index rindex
workspace carve row_groups product_groups block_rows MIN MAX BLOCK SHORT_ROW ROUND_UP ROW_MAJOR
PLAIN TRANSPOSED space
"""
_WORDS = _KEYWORDS.split()
_FLOATS = {f"{word}f" for word in _WORDS if word.islower() and word.isalnum()}
RESERVED = frozenset(_WORDS) | _FLOATS
# What macros of the C library, of POSIX and of Python.h look like: capitals, and a few families.
_MACRO = re.compile(
    r"(?=.*[A-Z].*[A-Z])[A-Z0-9_]{3,}"
    r"|(?:M|FP|MATH|HUGE|U?INT\w*|PTRDIFF|SIZE|SIG|WCHAR|WINT)_\w+|(?:PRI|SCN)[a-zX]\w*|Py\w+"
    r"|[AP]F_\w+|[LP]_(?:c|tmp)\w+|(?:st|si|sa|sigev)_\w+|(?:cblas|omp|GOMP|lgamma[fl]?|symgrad)_\w+"
    r"|is(?:less|greater|unordered|nan|inf|finite|normal)[a-z]*"
)
MOST_CHARACTERS = 63
"""Of a name: C promises to tell identifiers apart by so many, and file systems take them."""

_LETTERS = ("i", "j", "k", "l", "p", "q", "r", "s", "t", "u", "v", "w")


def is_reserved(name: str) -> bool:
    """Does C, a header or a kernel itself need this name?  Never where it ends in ``_``."""
    return name in RESERVED or (not name.endswith("_") and _MACRO.fullmatch(name) is not None)


def identifier(text: str, otherwise: str = "value") -> str:
    """``text`` as a C identifier; ``otherwise`` where nothing of it is left.

    Letters of other scripts go by their names, accents go, and the rest is ``_``.
    """
    spelled = "".join(map(_spelled, unicodedata.normalize("NFKC", text)))
    # Names that begin with an underscore belong to the implementation of C.
    word = re.sub(r"[^A-Za-z0-9_]+", "_", spelled).lstrip("_") or otherwise
    word = f"v{word}" if word[0].isdigit() else word
    if len(word) <= MOST_CHARACTERS:
        return word
    mark = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{word[: MOST_CHARACTERS - 9]}_{mark}"


def _spelled(letter: str) -> str:
    base = unicodedata.normalize("NFD", letter)[0]
    if base.isascii():
        return base
    return unicodedata.name(letter, f"U{ord(letter):X}").split()[-1].lower()


def comment_text(text: str) -> str:
    """A part of a C comment: printable, and without what ends the comment, or a trigraph."""
    return printable(text).replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?")


def literal_text(text: str) -> str:
    """What stands between the double quotes of a Python string, or in a docstring, on one line."""
    return printable(text.replace("\\", "\\\\")).replace('"', '\\"')


def printable(text: str) -> str:
    """The text with Python's escapes for whatever is not printable: newlines, lone surrogates."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii")
        for letter in text
    )


class Names:
    """Gives each name once."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def fresh(self, wanted: str) -> str:
        """``wanted`` as an identifier, with underscores or a number where it is taken."""
        word = identifier(wanted)
        found, number = _free(word), 1
        while found in self._taken:
            found = _free(f"{word}_" if number == 1 else f"{word}_{number}")
            number += 1
        self._taken.add(found)
        return found

    def release(self, name: str) -> None:
        """Make a name free again."""
        self._taken.discard(name)

    def loop_variable(self) -> str:
        """The next free letter of ``i j k l ...``."""
        for letter in _LETTERS:
            if letter not in self._taken:
                self._taken.add(letter)
                return letter
        number = 1
        while f"i{number}" in self._taken:
            number += 1
        self._taken.add(f"i{number}")
        return f"i{number}"


def _free(name: str) -> str:
    return f"{name}_" if is_reserved(name) else name
