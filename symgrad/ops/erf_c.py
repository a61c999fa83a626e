"""``erf`` as C text: two polynomials without branches, which compilers vectorise as it stands.

In: nothing.  Out: ``ERF``, the definition of ``symgrad_erff``; its numbers.

Below ``BORDER``, ``erf(x) = x + x c(x**2)``.  From there on, ``erf(x) = 1 - exp(-x**2) scaled(x)``:
the exponential is that of ``exponential_c``, but its argument is not rounded, as rounding x**2
loses as much as all else.  Both are computed, and one is chosen.
``benchmarks/error_function.py`` finds the numbers again; ``tests/ops/test_erf.py`` proves that the
error is less than one ulp.  For f64 libmvec is faster.
"""

from __future__ import annotations

from symgrad.ops.exponential_c import F32, spelled

BORDER = 0.859375
FURTHEST = 4.0
"""From here on, the result is 1."""
NEAR_CENTRE = 0.3125
NEAR = (
    0.021086488, -0.31287464, 0.09046726, -0.021102043, 0.004050669, -0.0006586589,
    8.776118e-05,
)  # fmt: skip
"""c is a polynomial of ``x**2 - NEAR_CENTRE``; the least coefficient comes first."""
FAR_CENTRE = 1.03125
FAR = (
    0.41919407, -0.26379123, 0.1471595, -0.07470117, 0.035076234, -0.015196994, 0.0056695933,
    -0.0015052656, 0.00019391834,
)  # fmt: skip
"""``scaled`` is a polynomial of ``|x| - FAR_CENTRE``."""

_number = spelled(F32)


def _horner(name: str, variable: str, terms: tuple[float, ...]) -> str:
    first, *others = map(_number, terms[::-1])
    lines = [f"    float {name} = {first};"]
    lines += [f"    {name} = symgrad_fusedf({name}, {variable}, {one});" for one in others]
    return "\n".join(lines)


_LOG2E, _WHOLE, _HIGH, _LOW = map(_number, (F32.log2e, F32.whole, F32.high, F32.low))
ERF = f"""\
/* erf, off by less than one unit in the last place. */
SYMGRAD_INLINE float symgrad_erff(float x)
{{
    /* near 0: x + x c(x x) */
    const float z = symgrad_fusedf(x, x, {_number(-NEAR_CENTRE)});
{_horner("c", "z", NEAR)}
    const float near = symgrad_fusedf(c, x, x);

    /* far from it: 1 - exp(-t t) scaled(t), where -t t = r - n ln 2 and exp(r) = 1 + m */
    const float distance = fabsf(x);
    const symgrad_bitsf t = {{ distance < {_number(FURTHEST)} ? distance : {_number(FURTHEST)} }};
    const symgrad_bitsf n = {{ symgrad_fusedf(t.value * t.value, {_LOG2E}, {_WHOLE}) }};
    const float whole = n.value - {_WHOLE};
#ifdef FP_FAST_FMAF
    const float r = fmaf(whole, {_LOW}, fmaf(-t.value, t.value, whole * {_HIGH}));
#else
    symgrad_bitsf half = t;
    half.bits &= 0xfffff000u; /* half of its digits: its square is exact */
    const float rest = (t.value - half.value) * (t.value + half.value);
    const float r = (whole * {_HIGH} - half.value * half.value) + (whole * {_LOW} - rest);
#endif
{_horner("m", "r", F32.terms)}
    m = symgrad_fusedf(m, r * r, r);
    const float y = t.value - {_number(FAR_CENTRE)};
{_horner("scaled", "y", FAR)}
    symgrad_bitsf left = {{ symgrad_fusedf(scaled, m, scaled) }};
    left.bits -= n.bits << {F32.digits};
    const float far = copysignf(1.0f - left.value, x);
    return distance >= {_number(BORDER)} ? far : near;
}}
"""
