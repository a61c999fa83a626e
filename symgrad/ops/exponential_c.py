"""``exp`` as C text: a polynomial without branches, which compilers vectorise as it stands.

In: nothing.  Out: ``EXP``, the definitions of ``symgrad_exp`` and ``symgrad_expf``; ``SIGMOID`` and
``SILU``, which need less of it; its numbers; ``FLOATS``, what they are made of, and other such
functions are.

``x = n ln 2 + r`` with a whole n: ``e**r`` is a polynomial, and n goes into its exponent by
integers.  A product of 2**n would be slow where the result is subnormal: there processors help
themselves with microcode, which they do not for sums.  ``benchmarks/exponential.py`` finds the
numbers again; ``tests/ops/test_exponential.py`` proves that the error is less than one ulp.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Exponential:
    """The numbers of one format.

    ``suffix``: that of its functions.  ``digits``: binary digits behind the point; ``lowest``: the
    exponent of the least normal number.  ``high + low`` is ln 2, and n times ``high`` is exact.
    ``zero``: where the result is 0 from here downwards.  ``subnormal``: below, it is less than
    the least normal number.  ``largest``: above, it is infinite.  ``terms``: the polynomial is
    ``1 + r + terms[0] r**2 + terms[1] r**3 ...``.
    """

    kind: str
    suffix: str
    digits: int
    lowest: int
    log2e: float
    high: float
    low: float
    zero: float
    subnormal: float
    largest: float
    terms: tuple[float, ...]

    @property
    def whole(self) -> float:
        """Added to a small number, it leaves a whole one in the last digits."""
        return 1.5 * 2.0**self.digits


F32 = Exponential(
    "float", "f", 23, -126, log2e=1.442695, high=0.6931457519531250, low=1.4286068e-06,
    zero=-104.0, subnormal=-87.33654, largest=88.72283,
    terms=(0.49999994, 0.1666652, 0.041668393, 0.008368756, 0.0013814514),
)  # fmt: skip
F64 = Exponential(
    "double", "", 52, -1022, log2e=1.4426950408889634, high=0.6931471805598903,
    low=5.497923018708371e-14,
    zero=-746.0, subnormal=-708.3964185322641, largest=709.782712893384,
    terms=(
        0.5000000000000011, 0.16666666666666413, 0.04166666666653018, 0.008333333333494414,
        0.0013888888943622208, 0.00019841269506654837, 2.4801493107901095e-05,
        2.755758632797085e-06, 2.763024492614454e-07, 2.5000069165431385e-08,
    ),
)  # fmt: skip


def spelled(form: Exponential) -> Callable[[float], str]:
    """How C writes a number of this format."""
    if form is F64:
        return repr
    return lambda value: f"{np.float32(value)!s}f"


def _text(form: Exponential) -> str:
    number, f, kind = spelled(form), form.suffix, form.kind
    bits = f"uint{32 if f else 64}_t"
    return f"""\
/* exp, off by less than one unit in the last place. */
SYMGRAD_INLINE {kind} symgrad_exp{f}({kind} x)
{{
{_power(form, form.zero)}
    const {bits} step = ({bits})1 << {form.digits};
    const {bits} tiny = x < {number(form.subnormal)} ? ~({bits})0 : 0; /* all bits or none */
    symgrad_bits{f} grid = n;
    grid.bits = (n.bits + step) & tiny;
    e.value += grid.value;
    e.bits -= n.bits + (step & tiny);
    return x <= {number(form.largest)} ? e.value : x + ({kind})INFINITY;
}}
"""


def _sigmoid_text(form: Exponential) -> str:
    f, kind = form.suffix, form.kind
    return f"""\
/* exp for sums with 1: where it would be subnormal, it is a little more. */
SYMGRAD_INLINE {kind} symgrad_power{f}({kind} x)
{{
{_power(form, float(math.ceil(form.subnormal)))}
    e.bits -= n.bits;
    return x <= {spelled(form)(form.largest)} ? e.value : x + ({kind})INFINITY;
}}

/* 1/(1 + exp(-x)), with the bits of that. */
SYMGRAD_INLINE {kind} symgrad_sigmoid{f}({kind} x)
{{
    return {spelled(form)(1.0)} / ({spelled(form)(1.0)} + symgrad_power{f}(-x));
}}
"""


def _silu_text(form: Exponential) -> str:
    f, kind, one = form.suffix, form.kind, spelled(form)(1.0)
    return f"""\
/* x/(1 + exp(-x)), with the bits of that. */
SYMGRAD_INLINE {kind} symgrad_silu{f}({kind} x)
{{
    return x / ({one} + symgrad_power{f}(-x));
}}
"""


def _power(form: Exponential, least: float) -> str:
    """``e`` to the power of x, or of ``least`` if that is more: e**r and n, in its place."""
    number, f, kind = spelled(form), form.suffix, form.kind
    first, *others = map(number, form.terms[::-1])
    horner = "\n".join(f"    e.value = symgrad_fused{f}(e.value, r, {one});" for one in others)
    one, whole, high, low = map(number, (1.0, form.whole, form.high, form.low))
    return f"""\
    {_clamped(form, least)}
    symgrad_bits{f} n = {{ symgrad_fused{f}(y.value, {number(-form.log2e)}, {whole}) }};
    const {kind} minus_n = n.value - {whole};
    const {kind} high = symgrad_fused{f}(minus_n, {high}, y.value);
    const {kind} r = symgrad_fused{f}(minus_n, {low}, high);
    symgrad_bits{f} e = {{ {first} }};
{horner}
#ifdef FP_FAST_FMA{f.upper()}
    e.value = fma{f}(fma{f}(e.value, r, {one}), r, {one});
#else
    const {kind} most = {one} + high;
    const {kind} rest = high - (most - {one}); /* exact */
    e.value = most + (rest + (r * r * e.value + minus_n * {low}));
#endif
    n.bits <<= {form.digits};"""


def _clamped(form: Exponential, least: float) -> str:
    """The greater of x and ``least``; floats that are negative are ordered by their bits."""
    if form is F64:
        return f"const symgrad_bits y = {{ x < {least} ? {least} : x }};"
    bits = f"{np.float32(least).view(np.uint32):#x}u"
    return f"symgrad_bitsf y = {{ x }};\n    y.bits = y.bits < {bits} ? y.bits : {bits};"


def _bits_text(form: Exponential) -> str:
    f, kind = form.suffix, form.kind
    return f"""\
typedef union {{ {kind} value; uint{32 if f else 64}_t bits; }} symgrad_bits{f};

/* a b + c, rounded once where the processor has an instruction for it. */
SYMGRAD_INLINE {kind} symgrad_fused{f}({kind} a, {kind} b, {kind} c)
{{
#ifdef FP_FAST_FMA{f.upper()}
    return fma{f}(a, b, c);
#else
    return a * b + c;
#endif
}}
"""


FLOATS = f"""\
#ifdef __GNUC__
#define SYMGRAD_INLINE __attribute__((always_inline)) static inline
#else
#define SYMGRAD_INLINE static inline
#endif

{_bits_text(F32)}
{_bits_text(F64)}"""
EXP = f"""\
/* x = n ln 2 + r: a polynomial is e to the power of r, and n is added to the bits of its exponent.
 * Where the result is subnormal, a power of 2 rounds it to the last place that there is. */
{_text(F32)}
{_text(F64)}"""
SIGMOID = f"""\
{_sigmoid_text(F32)}
{_sigmoid_text(F64)}"""
SILU = f"""\
{_silu_text(F32)}
{_silu_text(F64)}"""
