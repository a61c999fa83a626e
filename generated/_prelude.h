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
static inline void gemm_f32(int a_form, int b_form, int64_t m, int64_t n, int64_t k,
    const float *a, int64_t lda, const float *b, int64_t ldb, float beta,
    float *c, int64_t ldc)
{
    cblas_sgemm(ROW_MAJOR, a_form, b_form, (int)m, (int)n, (int)k, 1.0f, a, (int)MAX(lda, 1),
        b, (int)MAX(ldb, 1), beta, c, (int)MAX(ldc, 1));
}

void cblas_dgemm(int order, int a_form, int b_form, int m, int n, int k, double alpha,
    const double *a, int lda, const double *b, int ldb, double beta, double *c, int ldc);

/* c = a b + beta c, with the m by k matrix a and the k by n matrix b as they lie or transposed. */
static inline void gemm_f64(int a_form, int b_form, int64_t m, int64_t n, int64_t k,
    const double *a, int64_t lda, const double *b, int64_t ldb, double beta,
    double *c, int64_t ldc)
{
    cblas_dgemm(ROW_MAJOR, a_form, b_form, (int)m, (int)n, (int)k, 1.0, a, (int)MAX(lda, 1),
        b, (int)MAX(ldb, 1), beta, c, (int)MAX(ldc, 1));
}
