#include "_prelude.h"

/* Several numbers at once: libmvec has these functions. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 35)
__attribute__((simd("notinbranch"))) float tanhf(float);
#endif
#endif

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
