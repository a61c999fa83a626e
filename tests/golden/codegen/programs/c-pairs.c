#include "_prelude.h"

int64_t pairs_workspace(int64_t n, int64_t k, int64_t m)
{
    return 0
        + ROUND_UP(4*k*m)
        + ROUND_UP(row_groups(n, 4, 32) * (4*m));
}

/*
 * pairs
 * in:   x f32[n k], y f32[m k]
 * out:  kernel f32[n m], mean f32[n]
 */
int pairs(
    int64_t n,
    int64_t k,
    int64_t m,
    const float *restrict x,
    int64_t x_s0,
    const float *restrict y,
    int64_t y_s0,
    float *restrict kernel,
    float *restrict mean,
    void *workspace)
{
    char *space = workspace;
    float *restrict y_copy_all = carve(&space, 4*k*m);
    float *restrict total_rows = carve(&space, row_groups(n, 4, 32) * (4*m));
    if (k < SHORT_ROW) {
        #pragma omp parallel for schedule(static) if(parallel: k*m > 65536)
        for (int64_t l = 0; l < k; l++) {
            float *y_copy_all_l = y_copy_all + l*m;
            #pragma omp simd
            for (int64_t j = 0; j < m; j++)
                y_copy_all_l[j] = y[j*y_s0 + l];
        }
        const int64_t groups = row_groups(n, 4, 32);
        const int64_t rows = (n + groups - 1) / groups;
        #pragma omp parallel for schedule(static) if(parallel: k*m*n > 32768)
        for (int64_t group = 0; group < groups; group++) {
            const int64_t i0 = group*rows;
            const int64_t i1 = MIN(n, i0 + rows);
            float *restrict total_own = total_rows + group*m;
            for (int64_t i = i0; i < i1; i++) {
                for (int64_t j = 0; j < m; j++)
                    total_own[j] = 0.0f;
                const float *x_i = x + i*x_s0;
                for (int64_t l = 0; l < k; l++) {
                    float *y_copy_all_l = y_copy_all + l*m;
                    const float x_il = x_i[l];
                    #pragma omp simd
                    for (int64_t j = 0; j < m; j++) {
                        const float t = x_il - y_copy_all_l[j];
                        total_own[j] += t*t;
                    }
                }
                double mean_total_sum = 0.0;
                float *kernel_i = kernel + i*m;
                for (int64_t j0_ = 0; j0_ < m; j0_ += SUM_BLOCK) {
                    const int64_t j1_ = MIN(m, j0_ + SUM_BLOCK);
                    float mean_total_block = 0.0f;
                    #pragma omp simd reduction(+:mean_total_block)
                    for (int64_t j = j0_; j < j1_; j++) {
                        const float kernel_ = symgrad_expf(-total_own[j]);
                        kernel_i[j] = kernel_;
                        mean_total_block += kernel_;
                    }
                    mean_total_sum += mean_total_block;
                }
                const float mean_total = (float)mean_total_sum;
                mean[i] = mean_total/(float)m;
            }
        }
    } else {
        #pragma omp parallel for schedule(static) if(parallel: k*m*n > 32768)
        for (int64_t i = 0; i < n; i++) {
            double mean_total_sum = 0.0;
            const float *x_i = x + i*x_s0;
            float *kernel_i = kernel + i*m;
            for (int64_t j = 0; j < m; j++) {
                double total_sum = 0.0;
                const float *y_j = y + j*y_s0;
                for (int64_t l0 = 0; l0 < k; l0 += SUM_BLOCK) {
                    const int64_t l1 = MIN(k, l0 + SUM_BLOCK);
                    float total_block = 0.0f;
                    #pragma omp simd reduction(+:total_block)
                    for (int64_t l = l0; l < l1; l++) {
                        const float t = x_i[l] - y_j[l];
                        total_block += t*t;
                    }
                    total_sum += total_block;
                }
                const float total = (float)total_sum;
                const float kernel_ = symgrad_expf(-total);
                kernel_i[j] = kernel_;
                mean_total_sum += kernel_;
            }
            const float mean_total = (float)mean_total_sum;
            mean[i] = mean_total/(float)m;
        }
    }
    return 0;
}
