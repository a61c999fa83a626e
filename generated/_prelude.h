/*
 * What the C files of kernels share, written by symgrad.
 */
#include <math.h>
#include <stdint.h>

#ifndef _OPENMP
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#endif

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define BLOCK 4096 /* elements: vectors end at the same places for any number of threads */
#define SUM_BLOCK 1024 /* elements: their sum is added to a double, so that errors do not grow */
#define SUM_ROWS 256 /* rows whose sums are added to doubles together */
#ifndef SHORT_ROW
#define SHORT_ROW 32 /* elements: rows of fewer lie side by side in the lanes */
#endif
#if SHORT_ROW > 32
#error "SHORT_ROW is at most 32: tiles are made for rows of so many elements"
#endif

/* Rounds down. */
static inline int64_t floor_divide(int64_t x, int64_t y)
{
    const int64_t quotient = x / y;
    return x % y != 0 && (x < 0) != (y < 0) ? quotient - 1 : quotient;
}

/* Has the sign of y. */
static inline int64_t floor_modulo(int64_t x, int64_t y)
{
    const int64_t rest = x % y;
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

/* The next piece of the workspace; every piece begins at a multiple of 64 bytes. */
#define ROUND_UP(bytes) (((bytes) + 63) / 64 * 64)

static inline void *carve(char **space, int64_t bytes)
{
    char *const piece = *space;
    *space += ROUND_UP(bytes);
    return piece;
}

/* How many groups rows are cut into: it depends on their number only, never on the threads. */
static inline int64_t row_groups(int64_t rows, int64_t least, int64_t most)
{
    return rows < 2 * least ? 1 : MIN(rows / least, most);
}

/* The same for products.  ``work``: the multiplications of a row.  A product of a few rows takes as
 * long as 20 more, which go to reading what all rows are multiplied by. */
static inline int64_t product_groups(int64_t rows, int64_t work, int64_t most)
{
    return rows < 64 ? 1
        : work < 4000000 / rows ? 1
        : rows < 384 ? 2
        : rows < 2048 ? 4
        : MIN(rows / 1024 * 4, most);
}

/* Rows of a block: what they leave behind fits into half of a cache of 1.5 MB, or is as much as what
 * the products read anew for each block. */
static inline int64_t block_rows(int64_t numbers, int64_t again, int64_t least)
{
    return MAX(least, MIN(512, MAX(196608, again) / (numbers + 1) / 8 * 8));
}

enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 };

void cblas_sgemm(int order, int a_form, int b_form, int m, int n, int k, float alpha,
    const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);

/* c = a b + beta c, with the m by k matrix a and the k by n matrix b as they lie or transposed. */
static inline void product_f32(int a_form, int b_form, int64_t m, int64_t n, int64_t k,
    const float *a, int64_t lda, const float *b, int64_t ldb, float beta,
    float *c, int64_t ldc)
{
    cblas_sgemm(ROW_MAJOR, a_form, b_form, (int)m, (int)n, (int)k, 1.0f, a, (int)MAX(lda, 1),
        b, (int)MAX(ldb, 1), beta, c, (int)MAX(ldc, 1));
}

void cblas_dgemm(int order, int a_form, int b_form, int m, int n, int k, double alpha,
    const double *a, int lda, const double *b, int ldb, double beta, double *c, int ldc);

/* c = a b + beta c, with the m by k matrix a and the k by n matrix b as they lie or transposed. */
static inline void product_f64(int a_form, int b_form, int64_t m, int64_t n, int64_t k,
    const double *a, int64_t lda, const double *b, int64_t ldb, double beta,
    double *c, int64_t ldc)
{
    cblas_dgemm(ROW_MAJOR, a_form, b_form, (int)m, (int)n, (int)k, 1.0, a, (int)MAX(lda, 1),
        b, (int)MAX(ldb, 1), beta, c, (int)MAX(ldc, 1));
}

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

/* Is no number of a matrix infinite or NaN? */
static inline int symgrad_finite_f32(int64_t m, int64_t n, const float *x, int64_t ldx)
{
    int found = 1;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            found &= isfinite(x[i*ldx + j]) != 0;
    return found;
}

/* product_f32.  Infinity times 0 is invalid, and times a subnormal number it is infinite: where
 * something was invalid, all is made again.  What is added to c can be made once: infinities are
 * looked for before. */
SYMGRAD_APART void gemm_f32(int a_form, int b_form, int64_t m, int64_t n, int64_t k,
    const float *a, int64_t lda, const float *b, int64_t ldb, float beta,
    float *c, int64_t ldc)
{
    const int fresh = beta == 0;
    const int flushed = symgrad_flushes && (fresh
        || (symgrad_finite_f32(a_form == PLAIN ? m : k, a_form == PLAIN ? k : m, a, lda)
            && symgrad_finite_f32(b_form == PLAIN ? k : n, b_form == PLAIN ? n : k, b, ldb)));
    const unsigned mode = flushed ? symgrad_flush() : 0;
    product_f32(a_form, b_form, m, n, k, a, lda, b, ldb, beta, c, ldc);
    if (flushed && symgrad_unflush(mode) && fresh)
        product_f32(a_form, b_form, m, n, k, a, lda, b, ldb, beta, c, ldc);
}

/* Is no number of a matrix infinite or NaN? */
static inline int symgrad_finite_f64(int64_t m, int64_t n, const double *x, int64_t ldx)
{
    int found = 1;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            found &= isfinite(x[i*ldx + j]) != 0;
    return found;
}

/* product_f64.  Infinity times 0 is invalid, and times a subnormal number it is infinite: where
 * something was invalid, all is made again.  What is added to c can be made once: infinities are
 * looked for before. */
SYMGRAD_APART void gemm_f64(int a_form, int b_form, int64_t m, int64_t n, int64_t k,
    const double *a, int64_t lda, const double *b, int64_t ldb, double beta,
    double *c, int64_t ldc)
{
    const int fresh = beta == 0;
    const int flushed = symgrad_flushes && (fresh
        || (symgrad_finite_f64(a_form == PLAIN ? m : k, a_form == PLAIN ? k : m, a, lda)
            && symgrad_finite_f64(b_form == PLAIN ? k : n, b_form == PLAIN ? n : k, b, ldb)));
    const unsigned mode = flushed ? symgrad_flush() : 0;
    product_f64(a_form, b_form, m, n, k, a, lda, b, ldb, beta, c, ldc);
    if (flushed && symgrad_unflush(mode) && fresh)
        product_f64(a_form, b_form, m, n, k, a, lda, b, ldb, beta, c, ldc);
}

#ifdef __GNUC__
#define SYMGRAD_INLINE __attribute__((always_inline)) static inline
#else
#define SYMGRAD_INLINE static inline
#endif

typedef union { float value; uint32_t bits; } symgrad_bitsf;

/* a b + c, rounded once where the processor has an instruction for it. */
SYMGRAD_INLINE float symgrad_fusedf(float a, float b, float c)
{
#ifdef FP_FAST_FMAF
    return fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

typedef union { double value; uint64_t bits; } symgrad_bits;

/* a b + c, rounded once where the processor has an instruction for it. */
SYMGRAD_INLINE double symgrad_fused(double a, double b, double c)
{
#ifdef FP_FAST_FMA
    return fma(a, b, c);
#else
    return a * b + c;
#endif
}


/* erf, off by less than one unit in the last place. */
SYMGRAD_INLINE float symgrad_erff(float x)
{
    /* near 0: x + x c(x x) */
    const float z = symgrad_fusedf(x, x, -0.3125f);
    float c = 8.776118e-05f;
    c = symgrad_fusedf(c, z, -0.0006586589f);
    c = symgrad_fusedf(c, z, 0.004050669f);
    c = symgrad_fusedf(c, z, -0.021102043f);
    c = symgrad_fusedf(c, z, 0.09046726f);
    c = symgrad_fusedf(c, z, -0.31287464f);
    c = symgrad_fusedf(c, z, 0.021086488f);
    const float near = symgrad_fusedf(c, x, x);

    /* far from it: 1 - exp(-t t) scaled(t), where -t t = r - n ln 2 and exp(r) = 1 + m */
    const float distance = fabsf(x);
    const symgrad_bitsf t = { distance < 4.0f ? distance : 4.0f };
    const symgrad_bitsf n = { symgrad_fusedf(t.value * t.value, 1.442695f, 1.2582912e+07f) };
    const float whole = n.value - 1.2582912e+07f;
#ifdef FP_FAST_FMAF
    const float r = fmaf(whole, 1.4286068e-06f, fmaf(-t.value, t.value, whole * 0.69314575f));
#else
    symgrad_bitsf half = t;
    half.bits &= 0xfffff000u; /* half of its digits: its square is exact */
    const float rest = (t.value - half.value) * (t.value + half.value);
    const float r = (whole * 0.69314575f - half.value * half.value) + (whole * 1.4286068e-06f - rest);
#endif
    float m = 0.0013814514f;
    m = symgrad_fusedf(m, r, 0.008368756f);
    m = symgrad_fusedf(m, r, 0.041668393f);
    m = symgrad_fusedf(m, r, 0.1666652f);
    m = symgrad_fusedf(m, r, 0.49999994f);
    m = symgrad_fusedf(m, r * r, r);
    const float y = t.value - 1.03125f;
    float scaled = 0.00019391834f;
    scaled = symgrad_fusedf(scaled, y, -0.0015052656f);
    scaled = symgrad_fusedf(scaled, y, 0.0056695933f);
    scaled = symgrad_fusedf(scaled, y, -0.015196994f);
    scaled = symgrad_fusedf(scaled, y, 0.035076234f);
    scaled = symgrad_fusedf(scaled, y, -0.07470117f);
    scaled = symgrad_fusedf(scaled, y, 0.1471595f);
    scaled = symgrad_fusedf(scaled, y, -0.26379123f);
    scaled = symgrad_fusedf(scaled, y, 0.41919407f);
    symgrad_bitsf left = { symgrad_fusedf(scaled, m, scaled) };
    left.bits -= n.bits << 23;
    const float far = copysignf(1.0f - left.value, x);
    return distance >= 0.859375f ? far : near;
}


/* x = n ln 2 + r: a polynomial is e to the power of r, and n is added to the bits of its exponent.
 * Where the result is subnormal, a power of 2 rounds it to the last place that there is. */
/* exp, off by less than one unit in the last place. */
SYMGRAD_INLINE float symgrad_expf(float x)
{
    symgrad_bitsf y = { x };
    y.bits = y.bits < 0xc2d00000u ? y.bits : 0xc2d00000u;
    symgrad_bitsf n = { symgrad_fusedf(y.value, -1.442695f, 1.2582912e+07f) };
    const float minus_n = n.value - 1.2582912e+07f;
    const float high = symgrad_fusedf(minus_n, 0.69314575f, y.value);
    const float r = symgrad_fusedf(minus_n, 1.4286068e-06f, high);
    symgrad_bitsf e = { 0.0013814514f };
    e.value = symgrad_fusedf(e.value, r, 0.008368756f);
    e.value = symgrad_fusedf(e.value, r, 0.041668393f);
    e.value = symgrad_fusedf(e.value, r, 0.1666652f);
    e.value = symgrad_fusedf(e.value, r, 0.49999994f);
#ifdef FP_FAST_FMAF
    e.value = fmaf(fmaf(e.value, r, 1.0f), r, 1.0f);
#else
    const float most = 1.0f + high;
    const float rest = high - (most - 1.0f); /* exact */
    e.value = most + (rest + (r * r * e.value + minus_n * 1.4286068e-06f));
#endif
    n.bits <<= 23;
    const uint32_t step = (uint32_t)1 << 23;
    const uint32_t tiny = x < -87.33654f ? ~(uint32_t)0 : 0; /* all bits or none */
    symgrad_bitsf grid = n;
    grid.bits = (n.bits + step) & tiny;
    e.value += grid.value;
    e.bits -= n.bits + (step & tiny);
    return x <= 88.72283f ? e.value : x + (float)INFINITY;
}

/* exp, off by less than one unit in the last place. */
SYMGRAD_INLINE double symgrad_exp(double x)
{
    const symgrad_bits y = { x < -746.0 ? -746.0 : x };
    symgrad_bits n = { symgrad_fused(y.value, -1.4426950408889634, 6755399441055744.0) };
    const double minus_n = n.value - 6755399441055744.0;
    const double high = symgrad_fused(minus_n, 0.6931471805598903, y.value);
    const double r = symgrad_fused(minus_n, 5.497923018708371e-14, high);
    symgrad_bits e = { 2.5000069165431385e-08 };
    e.value = symgrad_fused(e.value, r, 2.763024492614454e-07);
    e.value = symgrad_fused(e.value, r, 2.755758632797085e-06);
    e.value = symgrad_fused(e.value, r, 2.4801493107901095e-05);
    e.value = symgrad_fused(e.value, r, 0.00019841269506654837);
    e.value = symgrad_fused(e.value, r, 0.0013888888943622208);
    e.value = symgrad_fused(e.value, r, 0.008333333333494414);
    e.value = symgrad_fused(e.value, r, 0.04166666666653018);
    e.value = symgrad_fused(e.value, r, 0.16666666666666413);
    e.value = symgrad_fused(e.value, r, 0.5000000000000011);
#ifdef FP_FAST_FMA
    e.value = fma(fma(e.value, r, 1.0), r, 1.0);
#else
    const double most = 1.0 + high;
    const double rest = high - (most - 1.0); /* exact */
    e.value = most + (rest + (r * r * e.value + minus_n * 5.497923018708371e-14));
#endif
    n.bits <<= 52;
    const uint64_t step = (uint64_t)1 << 52;
    const uint64_t tiny = x < -708.3964185322641 ? ~(uint64_t)0 : 0; /* all bits or none */
    symgrad_bits grid = n;
    grid.bits = (n.bits + step) & tiny;
    e.value += grid.value;
    e.bits -= n.bits + (step & tiny);
    return x <= 709.782712893384 ? e.value : x + (double)INFINITY;
}


/* exp for sums with 1: where it would be subnormal, it is a little more. */
SYMGRAD_INLINE float symgrad_powerf(float x)
{
    symgrad_bitsf y = { x };
    y.bits = y.bits < 0xc2ae0000u ? y.bits : 0xc2ae0000u;
    symgrad_bitsf n = { symgrad_fusedf(y.value, -1.442695f, 1.2582912e+07f) };
    const float minus_n = n.value - 1.2582912e+07f;
    const float high = symgrad_fusedf(minus_n, 0.69314575f, y.value);
    const float r = symgrad_fusedf(minus_n, 1.4286068e-06f, high);
    symgrad_bitsf e = { 0.0013814514f };
    e.value = symgrad_fusedf(e.value, r, 0.008368756f);
    e.value = symgrad_fusedf(e.value, r, 0.041668393f);
    e.value = symgrad_fusedf(e.value, r, 0.1666652f);
    e.value = symgrad_fusedf(e.value, r, 0.49999994f);
#ifdef FP_FAST_FMAF
    e.value = fmaf(fmaf(e.value, r, 1.0f), r, 1.0f);
#else
    const float most = 1.0f + high;
    const float rest = high - (most - 1.0f); /* exact */
    e.value = most + (rest + (r * r * e.value + minus_n * 1.4286068e-06f));
#endif
    n.bits <<= 23;
    e.bits -= n.bits;
    return x <= 88.72283f ? e.value : x + (float)INFINITY;
}

/* 1/(1 + exp(-x)), with the bits of that. */
SYMGRAD_INLINE float symgrad_sigmoidf(float x)
{
    return 1.0f / (1.0f + symgrad_powerf(-x));
}

/* exp for sums with 1: where it would be subnormal, it is a little more. */
SYMGRAD_INLINE double symgrad_power(double x)
{
    const symgrad_bits y = { x < -708.0 ? -708.0 : x };
    symgrad_bits n = { symgrad_fused(y.value, -1.4426950408889634, 6755399441055744.0) };
    const double minus_n = n.value - 6755399441055744.0;
    const double high = symgrad_fused(minus_n, 0.6931471805598903, y.value);
    const double r = symgrad_fused(minus_n, 5.497923018708371e-14, high);
    symgrad_bits e = { 2.5000069165431385e-08 };
    e.value = symgrad_fused(e.value, r, 2.763024492614454e-07);
    e.value = symgrad_fused(e.value, r, 2.755758632797085e-06);
    e.value = symgrad_fused(e.value, r, 2.4801493107901095e-05);
    e.value = symgrad_fused(e.value, r, 0.00019841269506654837);
    e.value = symgrad_fused(e.value, r, 0.0013888888943622208);
    e.value = symgrad_fused(e.value, r, 0.008333333333494414);
    e.value = symgrad_fused(e.value, r, 0.04166666666653018);
    e.value = symgrad_fused(e.value, r, 0.16666666666666413);
    e.value = symgrad_fused(e.value, r, 0.5000000000000011);
#ifdef FP_FAST_FMA
    e.value = fma(fma(e.value, r, 1.0), r, 1.0);
#else
    const double most = 1.0 + high;
    const double rest = high - (most - 1.0); /* exact */
    e.value = most + (rest + (r * r * e.value + minus_n * 5.497923018708371e-14));
#endif
    n.bits <<= 52;
    e.bits -= n.bits;
    return x <= 709.782712893384 ? e.value : x + (double)INFINITY;
}

/* 1/(1 + exp(-x)), with the bits of that. */
SYMGRAD_INLINE double symgrad_sigmoid(double x)
{
    return 1.0 / (1.0 + symgrad_power(-x));
}


/* x/(1 + exp(-x)), with the bits of that. */
SYMGRAD_INLINE float symgrad_siluf(float x)
{
    return x / (1.0f + symgrad_powerf(-x));
}

/* x/(1 + exp(-x)), with the bits of that. */
SYMGRAD_INLINE double symgrad_silu(double x)
{
    return x / (1.0 + symgrad_power(-x));
}

