#include <math.h>
#include <stdint.h>

#ifndef _OPENMP
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#endif

/* Several numbers at once: libmvec has these functions. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 35)
__attribute__((simd("notinbranch"))) float expf(float);
#endif
#endif

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define SUM_BLOCK 1024 /* elements: their sum is added to a double, so that errors do not grow */

/* The next piece of the workspace; every piece begins at a multiple of 64 bytes. */
#define ROUND_UP(bytes) (((bytes) + 63) / 64 * 64)

static void *carve(char **space, int64_t bytes)
{
    char *const piece = *space;
    *space += ROUND_UP(bytes);
    return piece;
}

enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 };

void cblas_sgemm(int order, int a_form, int b_form, int m, int n, int k, float alpha,
    const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);

/* c = a b + beta c, with the m by k matrix a and the k by n matrix b as they lie or transposed. */
static void gemm_f32(int a_form, int b_form, int64_t m, int64_t n, int64_t k,
    const float *a, int64_t lda, const float *b, int64_t ldb, float beta,
    float *c, int64_t ldc)
{
    cblas_sgemm(ROW_MAJOR, a_form, b_form, (int)m, (int)n, (int)k, 1.0f, a, (int)MAX(lda, 1),
        b, (int)MAX(ldb, 1), beta, c, (int)MAX(ldc, 1));
}

/* Rows of a block: what they leave behind fits into half of a cache of 1.5 MB, or is as much as what
 * the products read anew for each block. */
static int64_t block_rows(int64_t numbers, int64_t again, int64_t least)
{
    return MAX(least, MIN(512, MAX(196608, again) / (numbers + 1) / 8 * 8));
}

/* How many groups rows are cut into: it depends on their number only, never on the threads. */
static int64_t row_groups(int64_t rows, int64_t least, int64_t most)
{
    return rows < 2 * least ? 1 : MIN(rows / least, most);
}

int64_t attention_workspace(int64_t b, int64_t n, int64_t k, int64_t m)
{
    return 0
        + ROUND_UP(row_groups(b, 1, 32) * block_rows(2*m*n + k*n + m, 0, 1) * (4*m*n))
        + ROUND_UP(row_groups(b, 1, 32) * block_rows(2*m*n + k*n + m, 0, 1) * (4*m*n));
}

/*
 * attention
 * in:   q f32[b n k], k f32[b m k], v f32[b m k]
 * out:  y f32[b n k]
 * returns 2: a matrix is too large for the BLAS
 */
int attention(
    int64_t b,
    int64_t n,
    int64_t k,
    int64_t m,
    const float *restrict q,
    const float *restrict k_,
    const float *restrict v,
    float *restrict y,
    void *workspace)
{
    char *space = workspace;
    float *restrict product_blocks = carve(&space, row_groups(b, 1, 32) * block_rows(2*m*n + k*n + m, 0, 1) * (4*m*n));
    float *restrict p_blocks = carve(&space, row_groups(b, 1, 32) * block_rows(2*m*n + k*n + m, 0, 1) * (4*m*n));
    if (k > INT32_MAX || m > INT32_MAX || n > INT32_MAX)
        return 2;
    if (n == 0)
        return 0;
    const int64_t groups = row_groups(b, 1, 32);
    const int64_t rows = (b + groups - 1) / groups;
    const int64_t block = block_rows(2*m*n + k*n + m, 0, 1);
    #pragma omp parallel for schedule(static) if(parallel: b*k*m*n > 32768)
    for (int64_t group = 0; group < groups; group++) {
        const int64_t first = group*rows;
        const int64_t last = MIN(b, first + rows);
        float *restrict product_own = product_blocks + group*(block*(m*n));
        float *restrict p_own = p_blocks + group*(block*(m*n));
        for (int64_t i0 = first; i0 < last; i0 += block) {
            const int64_t i1 = MIN(last, i0 + block);
            for (int64_t i = i0; i < i1; i++) {
                gemm_f32(PLAIN, TRANSPOSED, n, m, k, q + k*n*i, k, k_ + k*m*i, k, 0.0f, product_own
                    + (m*n*i - i0*m*n), m);
            }
            for (int64_t i = i0; i < i1; i++) {
                for (int64_t j = 0; j < n; j++) {
                    float top = -INFINITY;
                    int top_nan = 0;
                    float *product_own_ij = product_own + ((i - i0) * n + j) * m;
                    #pragma omp simd reduction(max:top) reduction(|:top_nan)
                    for (int64_t l = 0; l < m; l++) {
                        const float value = product_own_ij[l];
                        top = value > top ? value : top;
                        top_nan |= value != value;
                    }
                    if (top_nan)
                        top = NAN;
                    double total_sum = 0.0;
                    float *p_own_ij = p_own + ((i - i0) * n + j) * m;
                    for (int64_t l0 = 0; l0 < m; l0 += SUM_BLOCK) {
                        const int64_t l1 = MIN(m, l0 + SUM_BLOCK);
                        float total_block = 0.0f;
                        #pragma omp simd reduction(+:total_block)
                        for (int64_t l = l0; l < l1; l++) {
                            const float e = expf(product_own_ij[l] - top);
                            p_own_ij[l] = e;
                            total_block += e;
                        }
                        total_sum += total_block;
                    }
                    const float total = (float)total_sum;
                    #pragma omp simd
                    for (int64_t l = 0; l < m; l++) {
                        const float e = p_own_ij[l];
                        p_own_ij[l] = e/total;
                    }
                }
            }
            for (int64_t i = i0; i < i1; i++) {
                gemm_f32(PLAIN, PLAIN, n, k, m, p_own + (m*n*i - i0*m*n), m, v + k*m*i, k, 0.0f, y
                    + k*n*i, k);
            }
        }
    }
    return 0;
}
