"""Names in C: one namespace for sizes, arrays, loop variables and temporaries of a kernel.

In: the names that users chose, in any script.  Out: C identifiers, each given once.
Imports the standard library only.
"""

from __future__ import annotations

import re
import unicodedata

_KEYWORDS = """\
auto break case char const continue default do double else enum extern float for goto if inline
int long register restrict return short signed sizeof static struct switch typedef union
unsigned void volatile while bool true false nullptr alignas alignof asm constexpr static_assert
thread_local typeof typeof_unqual and and_eq bitand bitor catch class compl concept const_cast
decltype delete dynamic_cast explicit export friend mutable namespace new noexcept not not_eq
operator or or_eq private protected public reinterpret_cast requires static_cast template this
throw try typeid typename using virtual wchar_t xor xor_eq main errno signgam environ linux unix
i386 complex imaginary I NULL NAN INFINITY HUGE_VAL EOF assert int8_t int16_t int32_t int64_t
uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t size_t acos asin atan atan2 cos sin tan
acosh asinh atanh cosh sinh tanh exp exp2 expm1 frexp ilogb ldexp log log10 log1p log2 logb modf
scalbn scalbln cbrt fabs hypot pow sqrt erf erfc lgamma tgamma ceil floor nearbyint rint lrint
llrint round lround llround trunc fmod remainder remquo copysign nan nextafter nexttoward fdim
fmax fmin fma j0 j1 jn y0 y1 yn gamma drem significand scalb finite isnan isinf isfinite
isnormal signbit fpclassify isgreater isless isunordered abs labs llabs div index rindex
workspace carve row_groups block_rows MIN MAX BLOCK SHORT_ROW ROUND_UP ROW_MAJOR PLAIN
TRANSPOSED space
"""
_WORDS = _KEYWORDS.split()
_FLOATS = {f"{word}f" for word in _WORDS if word.islower() and word.isalnum()}
RESERVED = frozenset(_WORDS) | _FLOATS

_LETTERS = ("i", "j", "k", "l", "p", "q", "r", "s", "t", "u", "v", "w")


def identifier(text: str) -> str:
    """``text`` as a C identifier: letters of other scripts by their names, the rest as ``_``."""
    spelled = []
    for letter in unicodedata.normalize("NFKC", text):
        if letter.isascii():
            spelled.append(letter if letter.isalnum() else "_")
        else:
            spelled.append(unicodedata.name(letter, f"U{ord(letter):X}").split()[-1].lower())
    # Names that begin with an underscore belong to the implementation of C.
    word = re.sub(r"[^A-Za-z0-9_]+", "_", "".join(spelled)).lstrip("_") or "value"
    return f"v{word}" if word[0].isdigit() else word


class Names:
    """Gives each name once."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def fresh(self, wanted: str) -> str:
        """``wanted`` as an identifier, with underscores or a number where it is taken."""
        word = identifier(wanted)
        found, number = word, 1
        while found in self._taken or found in RESERVED:
            found = f"{word}_" if number == 1 else f"{word}_{number}"
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
