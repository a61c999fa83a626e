"""Products of matrices as C text: calls of the BLAS in which subnormal numbers count as zero.

In: nothing.  Out: ``FLUSHED``, the definitions of ``gemm_f32`` and ``gemm_f64``; ``MEANING``, what
they mean, as C that the validator reads in their place.

Where one of 16 factors is subnormal, a product takes 25 times as long on x86-64, which has a mode
without them.  Each thread sets it around its calls of the BLAS, and for nothing else.
"""

from __future__ import annotations

_KINDS = (("f32", "float"), ("f64", "double"))
_HEAD = (
    "gemm_{short}(int a_form, int b_form, int64_t m, int64_t n, int64_t k,\n"
    "    const {kind} *a, int64_t lda, const {kind} *b, int64_t ldb, {kind} beta,\n"
    "    {kind} *c, int64_t ldc)"
)
_CALL = "product_{short}(a_form, b_form, m, n, k, a, lda, b, ldb, beta, c, ldc);"

_MODE = """\
/* In products of matrices, subnormal numbers count as 0: with them processors help themselves with
 * microcode, which takes 25 times as long.  The mode is for the BLAS alone: no compiler moves
 * arithmetic into a function that stands apart. */
#if defined(__GNUC__) && defined(__OPTIMIZE__)
#define SYMGRAD_APART __attribute__((noinline, unused)) static
#else
#define SYMGRAD_APART static inline
#endif

#if defined(__GNUC__) && defined(__x86_64__)
enum { symgrad_flushes = 1 };

/* Returns the mode that was: what is subnormal is 0, read or made; no operation was invalid. */
static inline unsigned symgrad_flush(void)
{
    const unsigned mode = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr((mode & ~1u) | 0x8040u);
    return mode;
}

/* The mode again, with what was noted since.  Was an operation invalid? */
static inline int symgrad_unflush(unsigned mode)
{
    const unsigned noted = __builtin_ia32_stmxcsr() & 0x3fu;
    __builtin_ia32_ldmxcsr(mode | noted);
    return noted & 1u;
}
#else
enum { symgrad_flushes = 0 };

static inline unsigned symgrad_flush(void)
{
    return 0;
}

static inline int symgrad_unflush(unsigned mode)
{
    return (int)mode;
}
#endif
"""

_PRODUCT = """
/* Is no number of a matrix infinite or NaN? */
static inline int symgrad_finite_{short}(int64_t m, int64_t n, const {kind} *x, int64_t ldx)
{{
    int found = 1;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            found &= isfinite(x[i*ldx + j]) != 0;
    return found;
}}

/* product_{short}.  Infinity times 0 is invalid, and times a subnormal number it is infinite: where
 * something was invalid, all is made again.  What is added to c can be made once: infinities are
 * looked for before. */
SYMGRAD_APART void {head}
{{
    const int fresh = beta == 0;
    const int flushed = symgrad_flushes && (fresh
        || (symgrad_finite_{short}(a_form == PLAIN ? m : k, a_form == PLAIN ? k : m, a, lda)
            && symgrad_finite_{short}(b_form == PLAIN ? k : n, b_form == PLAIN ? n : k, b, ldb)));
    const unsigned mode = flushed ? symgrad_flush() : 0;
    {call}
    if (flushed && symgrad_unflush(mode) && fresh)
        {call}
}}
"""


def _product(short: str, kind: str) -> str:
    words = {"short": short, "kind": kind}
    return _PRODUCT.format(head=_HEAD.format(**words), call=_CALL.format(**words), **words)


FLUSHED = _MODE + "".join(_product(short, kind) for short, kind in _KINDS).rstrip()
MEANING = " ".join(
    f"static inline void {' '.join(_HEAD.format(short=short, kind=kind).split())} "
    f"{{ {_CALL.format(short=short)} }}"
    for short, kind in _KINDS
)
