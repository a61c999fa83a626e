/*
 * LayerNorm, written by symgrad.
 * Backward PROVED for eps = 1e-05, axes = (-1,); for weight and bias given.
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

int64_t nn_layer_norm_forward_workspace(int64_t n, int64_t m)
{
    (void)n;
    (void)m;
    return 0;
}

/*
 * nn layer norm forward
 *     t0 = x - mean(x, axes=(1,))
 *     y = t0*rsqrt(mean(square(t0), axes=(1,)) + 1e-05)*weight + bias
 * in:   x f32[n m], weight f32[m], bias f32[m]
 * out:  y f32[n m]
 * Evaluated as written but for: sums in lanes, sums in blocks, sums of floats in double.
 */
int nn_layer_norm_forward(
    int64_t n,
    int64_t m,
    const float *restrict x,
    int64_t x_s0,
    const float *restrict weight,
    const float *restrict bias,
    float *restrict y,
    void *workspace)
{
    (void)workspace;
    if (m == 0)
        return 0;
    if (m < SHORT_ROW) {
        #pragma omp parallel for schedule(static) if(parallel: m*n > 4096)
        for (int64_t i0 = 0; i0 < n; i0 += 64) {
            const int64_t i3 = MIN(n, i0 + 64);
            float total[64];
            float kept[64];
            float total_[64];
            float kept_[64];
            for (int64_t i = i0; i < i3; i++)
                total[i - i0] = 0.0f;
            for (int64_t j = 0; j < m; j++) {
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++)
                    total[i - i0] += x[i*x_s0 + j];
            }
            #pragma omp simd
            for (int64_t i = i0; i < i3; i++)
                kept[i - i0] = total[i - i0] / (float)m;
            for (int64_t i = i0; i < i3; i++)
                total_[i - i0] = 0.0f;
            for (int64_t j = 0; j < m; j++) {
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++) {
                    const float t = x[i*x_s0 + j] - kept[i - i0];
                    y[i*m + j] = t;
                    total_[i - i0] += t * t;
                }
            }
            #pragma omp simd
            for (int64_t i = i0; i < i3; i++)
                kept_[i - i0] = 1.0f / sqrtf(total_[i - i0] / (float)m + 1e-05f);
            for (int64_t j = 0; j < m; j++) {
                const float weight_j = weight[j];
                const float bias_j = bias[j];
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++) {
                    const float kept_2 = y[i*m + j];
                    y[i*m + j] = kept_2 * kept_[i - i0] * weight_j + bias_j;
                }
            }
        }
    } else {
        #pragma omp parallel for schedule(static) if(parallel: m*n > 4096)
        for (int64_t i = 0; i < n; i++) {
            double total_sum = 0.0;
            const float *x_i = x + i*x_s0;
            for (int64_t j0_ = 0; j0_ < m; j0_ += SUM_BLOCK) {
                const int64_t j1_ = MIN(m, j0_ + SUM_BLOCK);
                float total_block = 0.0f;
                #pragma omp simd reduction(+:total_block)
                for (int64_t j = j0_; j < j1_; j++)
                    total_block += x_i[j];
                total_sum += total_block;
            }
            const float total = (float)total_sum;
            double total_sum_ = 0.0;
            const float t = total/(float)m;
            for (int64_t j0_ = 0; j0_ < m; j0_ += SUM_BLOCK) {
                const int64_t j1_ = MIN(m, j0_ + SUM_BLOCK);
                float total_block = 0.0f;
                #pragma omp simd reduction(+:total_block)
                for (int64_t j = j0_; j < j1_; j++) {
                    const float t_ = x_i[j] - t;
                    total_block += t_ * t_;
                }
                total_sum_ += total_block;
            }
            const float total_ = (float)total_sum_;
            const float t_ = 1.0f / sqrtf(total_/(float)m + 1e-05f);
            float *y_i = y + i*m;
            #pragma omp simd
            for (int64_t j = 0; j < m; j++)
                y_i[j] = (x_i[j] - t) * t_ * weight[j] + bias[j];
        }
    }
    return 0;
}

int64_t nn_layer_norm_backward_workspace(int64_t n, int64_t m)
{
    return 0
        + ROUND_UP(row_groups(n, 64, 32) * (8*m))
        + ROUND_UP(row_groups(n, 64, 32) * (8*m))
        + ROUND_UP(row_groups(n, 4, 32) * (8*m))
        + ROUND_UP(row_groups(n, 4, 32) * (8*m))
        + ROUND_UP(row_groups(n, 4, 32) * (4*m))
        + ROUND_UP(row_groups(n, 4, 32) * (4*m));
}

/*
 * nn layer norm backward
 *     t0 = x - mean(x, axes=(1,))
 *     t1 = t0*rsqrt(mean(square(t0), axes=(1,)) + 1e-05)
 *     t2 = grad_y*weight
 *     grad_x = (t2 - mean(t2, axes=(1,)) - t1*mean(t2*t1, axes=(1,)))*rsqrt(mean(square(t0),
 *         axes=(1,)) + 1e-05)
 *     grad_weight = sum(grad_y*t1, axes=(0,))
 *     grad_bias = sum(grad_y, axes=(0,))
 * in:   x f32[n m], weight f32[m], grad_y f32[n m]
 * out:  grad_x f32[n m], grad_weight f32[m], grad_bias f32[m]
 * Backward PROVED for eps = 1e-05, axes = (-1,); for weight and bias given.
 * Evaluated as written but for: sums in lanes, sums in blocks, sums in groups of rows, sums of
 *     floats in double.
 */
int nn_layer_norm_backward(
    int64_t n,
    int64_t m,
    const float *restrict x,
    int64_t x_s0,
    const float *restrict weight,
    const float *restrict grad_y,
    int64_t grad_y_s0,
    float *restrict grad_x,
    float *restrict grad_weight,
    float *restrict grad_bias,
    void *workspace)
{
    char *space = workspace;
    double *restrict grad_bias_part = carve(&space, row_groups(n, 64, 32) * (8*m));
    double *restrict grad_weight_part = carve(&space, row_groups(n, 64, 32) * (8*m));
    double *restrict grad_bias_part_ = carve(&space, row_groups(n, 4, 32) * (8*m));
    double *restrict grad_weight_part_ = carve(&space, row_groups(n, 4, 32) * (8*m));
    float *restrict grad_bias_rows_part = carve(&space, row_groups(n, 4, 32) * (4*m));
    float *restrict grad_weight_rows_part = carve(&space, row_groups(n, 4, 32) * (4*m));
    if (m == 0)
        return 0;
    if (m < SHORT_ROW) {
        const int64_t groups = row_groups(n, 64, 32);
        const int64_t rows = (n + groups - 1) / groups;
        #pragma omp parallel for schedule(static) if(parallel: m*n > 1024)
        for (int64_t group = 0; group < groups; group++) {
            const int64_t i0 = group*rows;
            const int64_t i1 = MIN(n, i0 + rows);
            double *restrict grad_bias_own = grad_bias_part + group*m;
            for (int64_t j = 0; j < m; j++)
                grad_bias_own[j] = 0.0;
            double *restrict grad_weight_own = grad_weight_part + group*m;
            for (int64_t j = 0; j < m; j++)
                grad_weight_own[j] = 0.0;
            for (int64_t i2 = i0; i2 < i1; i2 += 64) {
                const int64_t i3 = MIN(i1, i2 + 64);
                float total[64];
                float kept[64];
                float total_[64];
                float kept_[64];
                float kept_2[2048];
                float total_2[64];
                float kept_3[64];
                float total_3[64];
                float kept_4[64];
                for (int64_t i = i2; i < i3; i++)
                    total[i - i2] = 0.0f;
                for (int64_t i = i2; i < i3; i++)
                    total_3[i - i2] = 0.0f;
                for (int64_t j = 0; j < m; j++) {
                    float grad_bias_ = 0.0f;
                    const float weight_j = weight[j];
                    #pragma omp simd reduction(+:grad_bias_)
                    for (int64_t i = i2; i < i3; i++) {
                        const float grad_y_ij = grad_y[i*grad_y_s0 + j];
                        total[i - i2] += x[i*x_s0 + j];
                        total_3[i - i2] += grad_y_ij*weight_j;
                        grad_bias_ += grad_y_ij;
                    }
                    grad_bias_own[j] += grad_bias_;
                }
                #pragma omp simd
                for (int64_t i = i2; i < i3; i++) {
                    kept[i - i2] = total[i - i2] / (float)m;
                    kept_4[i - i2] = total_3[i - i2] / (float)m;
                }
                for (int64_t i = i2; i < i3; i++)
                    total_[i - i2] = 0.0f;
                for (int64_t j = 0; j < m; j++) {
                    float *kept_2_j = kept_2 + j*64;
                    #pragma omp simd
                    for (int64_t i = i2; i < i3; i++) {
                        const float t = x[i*x_s0 + j] - kept[i - i2];
                        kept_2_j[i - i2] = t;
                        total_[i - i2] += t * t;
                    }
                }
                #pragma omp simd
                for (int64_t i = i2; i < i3; i++)
                    kept_[i - i2] = 1.0f / sqrtf(total_[i - i2] / (float)m + 1e-05f);
                for (int64_t i = i2; i < i3; i++)
                    total_2[i - i2] = 0.0f;
                for (int64_t j = 0; j < m; j++) {
                    float grad_weight_ = 0.0f;
                    float *kept_2_j = kept_2 + j*64;
                    const float weight_j = weight[j];
                    #pragma omp simd reduction(+:grad_weight_)
                    for (int64_t i = i2; i < i3; i++) {
                        const float kept_5 = kept_2_j[i - i2];
                        const float grad_y_ij = grad_y[i*grad_y_s0 + j];
                        const float t = kept_5 * kept_[i - i2];
                        kept_2_j[i - i2] = t;
                        total_2[i - i2] += grad_y_ij*weight_j*t;
                        grad_weight_ += grad_y_ij*t;
                    }
                    grad_weight_own[j] += grad_weight_;
                }
                #pragma omp simd
                for (int64_t i = i2; i < i3; i++)
                    kept_3[i - i2] = total_2[i - i2] / (float)m;
                for (int64_t j = 0; j < m; j++) {
                    float *kept_2_j = kept_2 + j*64;
                    const float weight_j = weight[j];
                    #pragma omp simd
                    for (int64_t i = i2; i < i3; i++) {
                        const float t = grad_y[i*grad_y_s0 + j] * weight_j - kept_4[i - i2] -
                            kept_2_j[i - i2] * kept_3[i - i2];
                        grad_x[i*m + j] = t * kept_[i - i2];
                    }
                }
            }
        }
        combine_sum_f32(groups, m, grad_bias_part, grad_bias);
        combine_sum_f32(groups, m, grad_weight_part, grad_weight);
    } else {
        const int64_t groups = row_groups(n, 4, 32);
        const int64_t rows = (n + groups - 1) / groups;
        #pragma omp parallel for schedule(static) if(parallel: m*n > 2048)
        for (int64_t group = 0; group < groups; group++) {
            const int64_t i0 = group*rows;
            const int64_t i1 = MIN(n, i0 + rows);
            double *restrict grad_bias_own = grad_bias_part_ + group*m;
            for (int64_t j = 0; j < m; j++)
                grad_bias_own[j] = 0.0;
            float *restrict grad_bias_rows = grad_bias_rows_part + group*m;
            double *restrict grad_weight_own = grad_weight_part_ + group*m;
            for (int64_t j = 0; j < m; j++)
                grad_weight_own[j] = 0.0;
            float *restrict grad_weight_rows = grad_weight_rows_part + group*m;
            for (int64_t first_row = i0; first_row < i1; first_row += SUM_ROWS) {
                const int64_t last_row = MIN(i1, first_row + SUM_ROWS);
                for (int64_t j = 0; j < m; j++)
                    grad_bias_rows[j] = 0.0f;
                for (int64_t j = 0; j < m; j++)
                    grad_weight_rows[j] = 0.0f;
                for (int64_t i = first_row; i < last_row; i++) {
                    double total_sum = 0.0;
                    double total_sum_ = 0.0;
                    const float *grad_y_i = grad_y + i*grad_y_s0;
                    const float *x_i = x + i*x_s0;
                    for (int64_t j0_ = 0; j0_ < m; j0_ += SUM_BLOCK) {
                        const int64_t j1_ = MIN(m, j0_ + SUM_BLOCK);
                        float total_block = 0.0f;
                        float total_block_ = 0.0f;
                        #pragma omp simd reduction(+:total_block,total_block_)
                        for (int64_t j = j0_; j < j1_; j++) {
                            const float grad_y_ij = grad_y_i[j];
                            total_block += x_i[j];
                            total_block_ += grad_y_ij*weight[j];
                            grad_bias_rows[j] += grad_y_ij;
                        }
                        total_sum += total_block;
                        total_sum_ += total_block_;
                    }
                    const float total = (float)total_sum;
                    const float total_ = (float)total_sum_;
                    double total_sum_2 = 0.0;
                    const float t = total/(float)m;
                    for (int64_t j0_ = 0; j0_ < m; j0_ += SUM_BLOCK) {
                        const int64_t j1_ = MIN(m, j0_ + SUM_BLOCK);
                        float total_block = 0.0f;
                        #pragma omp simd reduction(+:total_block)
                        for (int64_t j = j0_; j < j1_; j++) {
                            const float t_ = x_i[j] - t;
                            total_block += t_ * t_;
                        }
                        total_sum_2 += total_block;
                    }
                    const float total_2 = (float)total_sum_2;
                    double total_sum_3 = 0.0;
                    const float t_ = 1.0f / sqrtf(total_2/(float)m + 1e-05f);
                    for (int64_t j0_ = 0; j0_ < m; j0_ += SUM_BLOCK) {
                        const int64_t j1_ = MIN(m, j0_ + SUM_BLOCK);
                        float total_block = 0.0f;
                        #pragma omp simd reduction(+:total_block)
                        for (int64_t j = j0_; j < j1_; j++) {
                            const float grad_y_ij = grad_y_i[j];
                            const float t_2 = (x_i[j] - t) * t_;
                            total_block += grad_y_ij*weight[j]*t_2;
                            grad_weight_rows[j] += grad_y_ij*t_2;
                        }
                        total_sum_3 += total_block;
                    }
                    const float total_3 = (float)total_sum_3;
                    const float t_2 = total_/(float)m;
                    const float t_3 = total_3/(float)m;
                    float *grad_x_i = grad_x + i*m;
                    #pragma omp simd
                    for (int64_t j = 0; j < m; j++)
                        grad_x_i[j] = (grad_y_i[j]*weight[j] - t_2 - (x_i[j] - t) * t_ * t_3) * t_;
                }
                #pragma omp simd
                for (int64_t u = 0; u < m; u++)
                    grad_bias_own[u] += grad_bias_rows[u];
                #pragma omp simd
                for (int64_t u_ = 0; u_ < m; u_++)
                    grad_weight_own[u_] += grad_weight_rows[u_];
            }
        }
        combine_sum_f32(groups, m, grad_bias_part_, grad_bias);
        combine_sum_f32(groups, m, grad_weight_part_, grad_weight);
    }
    return 0;
}
