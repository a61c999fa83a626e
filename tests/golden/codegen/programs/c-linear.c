#include <math.h>
#include <stdint.h>

#ifndef _OPENMP
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#endif

/* Several numbers at once: libmvec has these functions. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 35)
__attribute__((simd("notinbranch"))) float tanhf(float);
#endif
#endif

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

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

/* How many groups rows are cut into: it depends on sizes only, never on the threads.  ``work``: the
 * multiplications of a row.  A product of a few rows takes as long as 20 more, which go to reading
 * what all rows are multiplied by. */
static int64_t product_groups(int64_t rows, int64_t work, int64_t most)
{
    return rows < 64 ? 1
        : work < 4000000 / rows ? 1
        : rows < 384 ? 2
        : rows < 2048 ? 4
        : MIN(rows / 1024 * 4, most);
}

/* The parts of all groups joined, always in the same order. */
static void combine_products_f32(int64_t groups, int64_t n, float *restrict part,
    float *restrict whole)
{
    for (int64_t g = 1; g < groups; g++) {
        #pragma omp simd
        for (int64_t u = 0; u < n; u++)
            part[u] += part[g * n + u];
    }
    for (int64_t u = 0; u < n; u++)
        whole[u] = part[u];
}

/* The parts of all groups joined, always in the same order. */
static void combine_sum_f32(int64_t groups, int64_t n, double *restrict part,
    float *restrict whole)
{
    for (int64_t g = 1; g < groups; g++) {
        #pragma omp simd
        for (int64_t u = 0; u < n; u++)
            part[u] += part[g * n + u];
    }
    for (int64_t u = 0; u < n; u++)
        whole[u] = (float)part[u];
}

int64_t linear_workspace(int64_t n, int64_t k, int64_t m)
{
    return 0
        + ROUND_UP(4*m*n)
        + ROUND_UP(product_groups(n, 2*k*m + 181*m, 32) * (8*m))
        + ROUND_UP(product_groups(n, 2*k*m + 181*m, 32) * (4*m))
        + ROUND_UP(product_groups(n, 3*k*m + 181*m, 4) * (8*m))
        + ROUND_UP(product_groups(n, 3*k*m + 181*m, 4) * (4*k*m))
        + ROUND_UP(product_groups(n, 3*k*m + 181*m, 4) * block_rows(2*m + k, 3*k*m, 32) * (4*m))
        + ROUND_UP(product_groups(n, 3*k*m + 181*m, 4) * (4*m));
}

/*
 * linear
 * in:   x f32[n k], weight f32[m k], bias f32[m], grad_y f32[n m]
 * out:  y f32[n m], grad_x f32[n k], grad_weight f32[m k], grad_bias f32[m]
 * returns 2: a matrix is too large for the BLAS
 */
int linear(
    int64_t n,
    int64_t k,
    int64_t m,
    const float *restrict x,
    const float *restrict weight,
    const float *restrict bias,
    const float *restrict grad_y,
    int64_t grad_y_s0,
    float *restrict y,
    float *restrict grad_x,
    float *restrict grad_weight,
    float *restrict grad_bias,
    void *workspace)
{
    char *space = workspace;
    float *restrict inner_all = carve(&space, 4*m*n);
    double *restrict grad_bias_part = carve(&space, product_groups(n, 2*k*m + 181*m, 32) * (8*m));
    float *restrict grad_bias_rows_part = carve(&space, product_groups(n, 2*k*m + 181*m, 32) * (4*m));
    double *restrict grad_bias_part_ = carve(&space, product_groups(n, 3*k*m + 181*m, 4) * (8*m));
    float *restrict product_part = carve(&space, product_groups(n, 3*k*m + 181*m, 4) * (4*k*m));
    float *restrict inner_blocks = carve(&space, product_groups(n, 3*k*m + 181*m, 4) * block_rows(2*m + k, 3*k*m, 32) * (4*m));
    float *restrict grad_bias_rows_part_ = carve(&space, product_groups(n, 3*k*m + 181*m, 4) * (4*m));
    if (k > INT32_MAX || m > INT32_MAX || n > INT32_MAX)
        return 2;
    if (n <= 4*m && n <= 4*k) {
        const int64_t groups = product_groups(n, 2*k*m + 181*m, 32);
        const int64_t rows = (n + groups - 1) / groups;
        const int64_t block = block_rows(2*m + k, 2*k*m, 32);
        #pragma omp parallel for schedule(static) if(parallel: groups > 1)
        for (int64_t group = 0; group < groups; group++) {
            const int64_t first = group*rows;
            const int64_t last = MIN(n, first + rows);
            double *restrict grad_bias_own = grad_bias_part + group*m;
            for (int64_t j = 0; j < m; j++)
                grad_bias_own[j] = 0.0;
            float *restrict grad_bias_rows = grad_bias_rows_part + group*m;
            for (int64_t i0 = first; i0 < last; i0 += block) {
                const int64_t i1 = MIN(last, i0 + block);
                for (int64_t j = 0; j < m; j++)
                    grad_bias_rows[j] = 0.0f;
                gemm_f32(PLAIN, TRANSPOSED, i1 - i0, m, k, x + i0*k, k, weight, k, 0.0f, y + i0*m,
                    m);
                for (int64_t i = i0; i < i1; i++) {
                    float *y_i = y + i*m;
                    const float *grad_y_i = grad_y + i*grad_y_s0;
                    float *inner_all_i = inner_all + i*m;
                    #pragma omp simd
                    for (int64_t j = 0; j < m; j++) {
                        const float product = y_i[j];
                        const float y_ = tanhf(product + bias[j]);
                        const float inner = grad_y_i[j] * (1.0f - y_*y_);
                        y_i[j] = y_;
                        inner_all_i[j] = inner;
                        grad_bias_rows[j] += inner;
                    }
                }
                gemm_f32(PLAIN, PLAIN, i1 - i0, k, m, inner_all + i0*m, m, weight, k, 0.0f, grad_x
                    + i0*k, k);
                #pragma omp simd
                for (int64_t u = 0; u < m; u++)
                    grad_bias_own[u] += grad_bias_rows[u];
            }
        }
        combine_sum_f32(groups, m, grad_bias_part, grad_bias);
        const int64_t groups_ = product_groups(m, k*n, 32);
        const int64_t rows_ = (m + groups_ - 1) / groups_;
        #pragma omp parallel for schedule(static) if(parallel: groups_ > 1)
        for (int64_t group_ = 0; group_ < groups_; group_++) {
            const int64_t j0_ = group_*rows_;
            const int64_t j1_ = MIN(m, j0_ + rows_);
            gemm_f32(TRANSPOSED, PLAIN, j1_ - j0_, k, n, inner_all + j0_, m, x, k, 0.0f,
                grad_weight + j0_*k, k);
        }
    } else {
        const int64_t groups = product_groups(n, 3*k*m + 181*m, 4);
        const int64_t rows = (n + groups - 1) / groups;
        const int64_t block = block_rows(2*m + k, 3*k*m, 32);
        #pragma omp parallel for schedule(static) if(parallel: groups > 1)
        for (int64_t group = 0; group < groups; group++) {
            const int64_t first = group*rows;
            const int64_t last = MIN(n, first + rows);
            float *restrict inner_own = inner_blocks + group*(block*m);
            double *restrict grad_bias_own = grad_bias_part_ + group*m;
            for (int64_t j = 0; j < m; j++)
                grad_bias_own[j] = 0.0;
            float *restrict grad_bias_rows = grad_bias_rows_part_ + group*m;
            float *restrict product_own = product_part + group*(k*m);
            for (int64_t j = 0; j < m; j++) {
                for (int64_t l = 0; l < k; l++)
                    product_own[j*k + l] = 0.0f;
            }
            for (int64_t i0 = first; i0 < last; i0 += block) {
                const int64_t i1 = MIN(last, i0 + block);
                for (int64_t j = 0; j < m; j++)
                    grad_bias_rows[j] = 0.0f;
                gemm_f32(PLAIN, TRANSPOSED, i1 - i0, m, k, x + i0*k, k, weight, k, 0.0f, y + i0*m,
                    m);
                for (int64_t i = i0; i < i1; i++) {
                    float *y_i = y + i*m;
                    const float *grad_y_i = grad_y + i*grad_y_s0;
                    float *inner_own_i = inner_own + (i - i0) * m;
                    #pragma omp simd
                    for (int64_t j = 0; j < m; j++) {
                        const float product = y_i[j];
                        const float y_ = tanhf(product + bias[j]);
                        const float inner = grad_y_i[j] * (1.0f - y_*y_);
                        y_i[j] = y_;
                        inner_own_i[j] = inner;
                        grad_bias_rows[j] += inner;
                    }
                }
                gemm_f32(PLAIN, PLAIN, i1 - i0, k, m, inner_own, m, weight, k, 0.0f, grad_x + i0*k,
                    k);
                gemm_f32(TRANSPOSED, PLAIN, m, k, i1 - i0, inner_own, m, x + i0*k, k, 1.0f,
                    product_own, k);
                #pragma omp simd
                for (int64_t u = 0; u < m; u++)
                    grad_bias_own[u] += grad_bias_rows[u];
            }
        }
        combine_sum_f32(groups, m, grad_bias_part_, grad_bias);
        combine_products_f32(groups, k*m, product_part, grad_weight);
    }
    return 0;
}
