/*
 * RMSNorm, written by symgrad.
 * Backward PROVED for eps = 1.1920928955078125e-07, axes = (-1,); for weight given.
 * This C VALIDATED against what was traced, for all sizes and over the reals.
 */
#include "_prelude.h"

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

int64_t nn_rms_norm_forward_workspace(int64_t n, int64_t m)
{
    (void)n;
    (void)m;
    return 0;
}

/*
 * nn rms norm forward
 *     y = x*rsqrt(mean(square(x), axes=(1,)) + 1.1920928955078125e-07)*weight
 * in:   x f32[n m], weight f32[m]
 * out:  y f32[n m]
 * Evaluated as written but for: sums in lanes, sums in blocks, sums of floats in double.
 */
int nn_rms_norm_forward(
    int64_t n,
    int64_t m,
    const float *restrict x,
    int64_t x_s0,
    const float *restrict weight,
    float *restrict y,
    void *workspace)
{
    (void)workspace;
    if (m == 0)
        return 0;
    if (m < SHORT_ROW) {
        #pragma omp parallel for schedule(static) if(parallel: m*n > 8192)
        for (int64_t i0 = 0; i0 < n; i0 += 64) {
            const int64_t i3 = MIN(n, i0 + 64);
            float total[64];
            float kept[64];
            for (int64_t i = i0; i < i3; i++)
                total[i - i0] = 0.0f;
            for (int64_t j = 0; j < m; j++) {
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++) {
                    const float x_ij = x[i*x_s0 + j];
                    total[i - i0] += x_ij * x_ij;
                }
            }
            #pragma omp simd
            for (int64_t i = i0; i < i3; i++)
                kept[i - i0] = 1.0f / sqrtf(total[i - i0] / (float)m + 1.1920929e-07f);
            for (int64_t j = 0; j < m; j++) {
                const float weight_j = weight[j];
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++)
                    y[i*m + j] = x[i*x_s0 + j] * kept[i - i0] * weight_j;
            }
        }
    } else {
        #pragma omp parallel for schedule(static) if(parallel: m*n > 8192)
        for (int64_t i = 0; i < n; i++) {
            double total_sum = 0.0;
            const float *x_i = x + i*x_s0;
            for (int64_t j0_ = 0; j0_ < m; j0_ += SUM_BLOCK) {
                const int64_t j1_ = MIN(m, j0_ + SUM_BLOCK);
                float total_block = 0.0f;
                #pragma omp simd reduction(+:total_block)
                for (int64_t j = j0_; j < j1_; j++) {
                    const float x_ij = x_i[j];
                    total_block += x_ij * x_ij;
                }
                total_sum += total_block;
            }
            const float total = (float)total_sum;
            const float t = 1.0f / sqrtf(total/(float)m + 1.1920929e-07f);
            float *y_i = y + i*m;
            #pragma omp simd
            for (int64_t j = 0; j < m; j++)
                y_i[j] = x_i[j]*t*weight[j];
        }
    }
    return 0;
}

int64_t nn_rms_norm_backward_workspace(int64_t n, int64_t m)
{
    return 0
        + ROUND_UP(row_groups(n, 64, 32) * (8*m))
        + ROUND_UP(row_groups(n, 4, 32) * (8*m))
        + ROUND_UP(row_groups(n, 4, 32) * (4*m));
}

/*
 * nn rms norm backward
 *     t0 = x*rsqrt(mean(square(x), axes=(1,)) + 1.1920928955078125e-07)
 *     t1 = grad_y*weight
 *     grad_x = (t1 - t0*mean(t1*t0, axes=(1,)))*rsqrt(mean(square(x), axes=(1,)) +
 *         1.1920928955078125e-07)
 *     grad_weight = sum(grad_y*t0, axes=(0,))
 * in:   x f32[n m], weight f32[m], grad_y f32[n m]
 * out:  grad_x f32[n m], grad_weight f32[m]
 * Backward PROVED for eps = 1.1920928955078125e-07, axes = (-1,); for weight given.
 * Evaluated as written but for: sums in lanes, sums in blocks, sums in groups of rows, sums of
 *     floats in double.
 */
int nn_rms_norm_backward(
    int64_t n,
    int64_t m,
    const float *restrict x,
    int64_t x_s0,
    const float *restrict weight,
    const float *restrict grad_y,
    int64_t grad_y_s0,
    float *restrict grad_x,
    float *restrict grad_weight,
    void *workspace)
{
    char *space = workspace;
    double *restrict grad_weight_part = carve(&space, row_groups(n, 64, 32) * (8*m));
    double *restrict grad_weight_part_ = carve(&space, row_groups(n, 4, 32) * (8*m));
    float *restrict grad_weight_rows_part = carve(&space, row_groups(n, 4, 32) * (4*m));
    if (m == 0)
        return 0;
    if (m < SHORT_ROW) {
        const int64_t groups = row_groups(n, 64, 32);
        const int64_t rows = (n + groups - 1) / groups;
        #pragma omp parallel for schedule(static) if(parallel: m*n > 2048)
        for (int64_t group = 0; group < groups; group++) {
            const int64_t i0 = group*rows;
            const int64_t i1 = MIN(n, i0 + rows);
            double *restrict grad_weight_own = grad_weight_part + group*m;
            for (int64_t j = 0; j < m; j++)
                grad_weight_own[j] = 0.0;
            for (int64_t i2 = i0; i2 < i1; i2 += 64) {
                const int64_t i3 = MIN(i1, i2 + 64);
                float total[64];
                float kept[64];
                float total_[64];
                float kept_[64];
                for (int64_t i = i2; i < i3; i++)
                    total[i - i2] = 0.0f;
                for (int64_t j = 0; j < m; j++) {
                    #pragma omp simd
                    for (int64_t i = i2; i < i3; i++) {
                        const float x_ij = x[i*x_s0 + j];
                        total[i - i2] += x_ij * x_ij;
                    }
                }
                #pragma omp simd
                for (int64_t i = i2; i < i3; i++)
                    kept[i - i2] = 1.0f / sqrtf(total[i - i2] / (float)m + 1.1920929e-07f);
                for (int64_t i = i2; i < i3; i++)
                    total_[i - i2] = 0.0f;
                for (int64_t j = 0; j < m; j++) {
                    float grad_weight_ = 0.0f;
                    const float weight_j = weight[j];
                    #pragma omp simd reduction(+:grad_weight_)
                    for (int64_t i = i2; i < i3; i++) {
                        const float grad_y_ij = grad_y[i*grad_y_s0 + j];
                        const float t = x[i*x_s0 + j] * kept[i - i2];
                        grad_x[i*m + j] = t;
                        total_[i - i2] += grad_y_ij*weight_j*t;
                        grad_weight_ += grad_y_ij*t;
                    }
                    grad_weight_own[j] += grad_weight_;
                }
                #pragma omp simd
                for (int64_t i = i2; i < i3; i++)
                    kept_[i - i2] = total_[i - i2] / (float)m;
                for (int64_t j = 0; j < m; j++) {
                    const float weight_j = weight[j];
                    #pragma omp simd
                    for (int64_t i = i2; i < i3; i++) {
                        const float kept_2 = grad_x[i*m + j];
                        grad_x[i*m + j] = (grad_y[i*grad_y_s0 + j] * weight_j - kept_2 * kept_[i -
                            i2]) * kept[i - i2];
                    }
                }
            }
        }
        combine_sum_f32(groups, m, grad_weight_part, grad_weight);
    } else {
        const int64_t groups = row_groups(n, 4, 32);
        const int64_t rows = (n + groups - 1) / groups;
        #pragma omp parallel for schedule(static) if(parallel: m*n > 2048)
        for (int64_t group = 0; group < groups; group++) {
            const int64_t i0 = group*rows;
            const int64_t i1 = MIN(n, i0 + rows);
            double *restrict grad_weight_own = grad_weight_part_ + group*m;
            for (int64_t j = 0; j < m; j++)
                grad_weight_own[j] = 0.0;
            float *restrict grad_weight_rows = grad_weight_rows_part + group*m;
            for (int64_t first_row = i0; first_row < i1; first_row += SUM_ROWS) {
                const int64_t last_row = MIN(i1, first_row + SUM_ROWS);
                for (int64_t j = 0; j < m; j++)
                    grad_weight_rows[j] = 0.0f;
                for (int64_t i = first_row; i < last_row; i++) {
                    double total_sum = 0.0;
                    const float *x_i = x + i*x_s0;
                    for (int64_t j0_ = 0; j0_ < m; j0_ += SUM_BLOCK) {
                        const int64_t j1_ = MIN(m, j0_ + SUM_BLOCK);
                        float total_block = 0.0f;
                        #pragma omp simd reduction(+:total_block)
                        for (int64_t j = j0_; j < j1_; j++) {
                            const float x_ij = x_i[j];
                            total_block += x_ij * x_ij;
                        }
                        total_sum += total_block;
                    }
                    const float total = (float)total_sum;
                    double total_sum_ = 0.0;
                    const float *grad_y_i = grad_y + i*grad_y_s0;
                    const float t = 1.0f / sqrtf(total/(float)m + 1.1920929e-07f);
                    for (int64_t j0_ = 0; j0_ < m; j0_ += SUM_BLOCK) {
                        const int64_t j1_ = MIN(m, j0_ + SUM_BLOCK);
                        float total_block = 0.0f;
                        #pragma omp simd reduction(+:total_block)
                        for (int64_t j = j0_; j < j1_; j++) {
                            const float grad_y_ij = grad_y_i[j];
                            const float t_ = x_i[j]*t;
                            total_block += grad_y_ij*weight[j]*t_;
                            grad_weight_rows[j] += grad_y_ij*t_;
                        }
                        total_sum_ += total_block;
                    }
                    const float total_ = (float)total_sum_;
                    const float t_ = total_/(float)m;
                    float *grad_x_i = grad_x + i*m;
                    #pragma omp simd
                    for (int64_t j = 0; j < m; j++)
                        grad_x_i[j] = (grad_y_i[j]*weight[j] - x_i[j]*t*t_) * t;
                }
                #pragma omp simd
                for (int64_t u = 0; u < m; u++)
                    grad_weight_own[u] += grad_weight_rows[u];
            }
        }
        combine_sum_f32(groups, m, grad_weight_part_, grad_weight);
    }
    return 0;
}
