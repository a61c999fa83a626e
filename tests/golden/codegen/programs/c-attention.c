#include "_prelude.h"

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
                            const float e = symgrad_expf(product_own_ij[l] - top);
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
