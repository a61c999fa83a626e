/*
 * LayerNorm, written by symgrad.
 * Backward PROVED (derived: no backward written).
 * Backwards of some of the gradients only; the name tells which inputs'.
 */
#include <math.h>
#include <stdint.h>

#ifndef _OPENMP
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#endif

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#ifndef SHORT_ROW
#define SHORT_ROW 32 /* elements: rows of fewer lie side by side in the lanes */
#endif
#if SHORT_ROW > 32
#error "SHORT_ROW is at most 32: tiles are made for rows of so many elements"
#endif
#define SUM_BLOCK 1024 /* elements: their sum is added to a double, so that errors do not grow */
#define SUM_ROWS 256 /* rows whose sums are added to doubles together */

/* The next piece of the workspace; every piece begins at a multiple of 64 bytes. */
#define ROUND_UP(bytes) (((bytes) + 63) / 64 * 64)

static void *carve(char **space, int64_t bytes)
{
    char *const piece = *space;
    *space += ROUND_UP(bytes);
    return piece;
}

/* How many groups rows are cut into: it depends on their number only, never on the threads. */
static int64_t row_groups(int64_t rows, int64_t least, int64_t most)
{
    return rows < 2 * least ? 1 : MIN(rows / least, most);
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

int64_t eager_layer_norm_backward_110_workspace(int64_t n, int64_t m)
{
    return 0
        + ROUND_UP(row_groups(n, 64, 32) * (8*m))
        + ROUND_UP(row_groups(n, 4, 32) * (8*m))
        + ROUND_UP(row_groups(n, 4, 32) * (4*m));
}

/*
 * eager layer norm backward 110
 *     t0 = x - residual_2
 *     t1 = grad_output*weight
 *     grad_weight = sum(grad_output*(t0*residual_3), axes=(0,))
 *     t2 = t1*residual_3 + sum(t1*t0, axes=(1,))*-0.5*(square(residual_3)*residual_3)/m*(t0*2.0)
 *     grad_x = t2 + mean(-t2, axes=(1,))
 * in:   x f32[n m], weight f32[m], residual_2 f32[n 1], residual_3 f32[n 1], grad_output f32[n m]
 * out:  grad_x f32[n m], grad_weight f32[m]
 * Backward PROVED (derived: no backward written).
 */
int eager_layer_norm_backward_110(
    int64_t n,
    int64_t m,
    const float *restrict x,
    int64_t x_s0,
    const float *restrict weight,
    const float *restrict residual_2,
    const float *restrict residual_3,
    const float *restrict grad_output,
    int64_t grad_output_s0,
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
                    float grad_weight_ = 0.0f;
                    const float weight_j = weight[j];
                    #pragma omp simd reduction(+:grad_weight_)
                    for (int64_t i = i2; i < i3; i++) {
                        const float grad_output_ij = grad_output[i*grad_output_s0 + j];
                        const float t = x[i*x_s0 + j] - residual_2[i];
                        grad_weight_ += grad_output_ij * (t*residual_3[i]);
                        total[i - i2] += grad_output_ij*weight_j*t;
                    }
                    grad_weight_own[j] += grad_weight_;
                }
                #pragma omp simd
                for (int64_t i = i2; i < i3; i++) {
                    const float residual_3_i = residual_3[i];
                    const float t = total[i - i2] * (-0.5f) * (residual_3_i * residual_3_i *
                        residual_3_i);
                    kept[i - i2] = t/(float)m;
                }
                for (int64_t i = i2; i < i3; i++)
                    total_[i - i2] = 0.0f;
                for (int64_t j = 0; j < m; j++) {
                    const float weight_j = weight[j];
                    #pragma omp simd
                    for (int64_t i = i2; i < i3; i++) {
                        const float t = grad_output[i*grad_output_s0 + j] * weight_j *
                            residual_3[i] + kept[i - i2] * ((x[i*x_s0 + j] - residual_2[i]) * 2.0f);
                        grad_x[i*m + j] = t;
                        total_[i - i2] += -t;
                    }
                }
                #pragma omp simd
                for (int64_t i = i2; i < i3; i++)
                    kept_[i - i2] = total_[i - i2] / (float)m;
                for (int64_t j = 0; j < m; j++) {
                    #pragma omp simd
                    for (int64_t i = i2; i < i3; i++) {
                        const float kept_2 = grad_x[i*m + j];
                        grad_x[i*m + j] = kept_2 + kept_[i - i2];
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
                    const float *grad_output_i = grad_output + i*grad_output_s0;
                    const float *x_i = x + i*x_s0;
                    const float residual_2_i = residual_2[i];
                    const float residual_3_i = residual_3[i];
                    for (int64_t j0_ = 0; j0_ < m; j0_ += SUM_BLOCK) {
                        const int64_t j1_ = MIN(m, j0_ + SUM_BLOCK);
                        float total_block = 0.0f;
                        #pragma omp simd reduction(+:total_block)
                        for (int64_t j = j0_; j < j1_; j++) {
                            const float grad_output_ij = grad_output_i[j];
                            const float t = x_i[j] - residual_2_i;
                            grad_weight_rows[j] += grad_output_ij * (t*residual_3_i);
                            total_block += grad_output_ij*weight[j] * t;
                        }
                        total_sum += total_block;
                    }
                    const float total = (float)total_sum;
                    double total_sum_ = 0.0;
                    const float t = total*(-0.5f) * (residual_3_i * residual_3_i * residual_3_i) /
                        (float)m;
                    float *grad_x_i = grad_x + i*m;
                    for (int64_t j0_ = 0; j0_ < m; j0_ += SUM_BLOCK) {
                        const int64_t j1_ = MIN(m, j0_ + SUM_BLOCK);
                        float total_block = 0.0f;
                        #pragma omp simd reduction(+:total_block)
                        for (int64_t j = j0_; j < j1_; j++) {
                            const float t_ = grad_output_i[j] * weight[j] * residual_3_i + t *
                                ((x_i[j] - residual_2_i) * 2.0f);
                            grad_x_i[j] = t_;
                            total_block += -t_;
                        }
                        total_sum_ += total_block;
                    }
                    const float total_ = (float)total_sum_;
                    const float t_ = total_/(float)m;
                    #pragma omp simd
                    for (int64_t j = 0; j < m; j++) {
                        const float kept = grad_x_i[j];
                        grad_x_i[j] = kept + t_;
                    }
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

int64_t eager_layer_norm_backward_101_workspace(int64_t n, int64_t m)
{
    return 0
        + ROUND_UP(row_groups(n, 64, 32) * (8*m))
        + ROUND_UP(row_groups(n, 4, 32) * (8*m))
        + ROUND_UP(row_groups(n, 4, 32) * (4*m));
}

/*
 * eager layer norm backward 101
 *     t0 = x - residual_2
 *     grad_bias = sum(grad_output, axes=(0,))
 *     t1 = grad_output*weight
 *     t2 = t1*residual_3 + sum(t1*t0, axes=(1,))*-0.5*(square(residual_3)*residual_3)/m*(t0*2.0)
 *     grad_x = t2 + mean(-t2, axes=(1,))
 * in:   x f32[n m], weight f32[m], residual_2 f32[n 1], residual_3 f32[n 1], grad_output f32[n m]
 * out:  grad_x f32[n m], grad_bias f32[m]
 * Backward PROVED (derived: no backward written).
 */
int eager_layer_norm_backward_101(
    int64_t n,
    int64_t m,
    const float *restrict x,
    int64_t x_s0,
    const float *restrict weight,
    const float *restrict residual_2,
    const float *restrict residual_3,
    const float *restrict grad_output,
    int64_t grad_output_s0,
    float *restrict grad_x,
    float *restrict grad_bias,
    void *workspace)
{
    char *space = workspace;
    double *restrict grad_bias_part = carve(&space, row_groups(n, 64, 32) * (8*m));
    double *restrict grad_bias_part_ = carve(&space, row_groups(n, 4, 32) * (8*m));
    float *restrict grad_bias_rows_part = carve(&space, row_groups(n, 4, 32) * (4*m));
    if (m == 0)
        return 0;
    if (m < SHORT_ROW) {
        const int64_t groups = row_groups(n, 64, 32);
        const int64_t rows = (n + groups - 1) / groups;
        #pragma omp parallel for schedule(static) if(parallel: m*n > 2048)
        for (int64_t group = 0; group < groups; group++) {
            const int64_t i0 = group*rows;
            const int64_t i1 = MIN(n, i0 + rows);
            double *restrict grad_bias_own = grad_bias_part + group*m;
            for (int64_t j = 0; j < m; j++)
                grad_bias_own[j] = 0.0;
            for (int64_t i2 = i0; i2 < i1; i2 += 64) {
                const int64_t i3 = MIN(i1, i2 + 64);
                float total[64];
                float kept[64];
                float total_[64];
                float kept_[64];
                for (int64_t i = i2; i < i3; i++)
                    total[i - i2] = 0.0f;
                for (int64_t j = 0; j < m; j++) {
                    float grad_bias_ = 0.0f;
                    const float weight_j = weight[j];
                    #pragma omp simd reduction(+:grad_bias_)
                    for (int64_t i = i2; i < i3; i++) {
                        const float grad_output_ij = grad_output[i*grad_output_s0 + j];
                        grad_bias_ += grad_output_ij;
                        total[i - i2] += grad_output_ij*weight_j * (x[i*x_s0 + j] - residual_2[i]);
                    }
                    grad_bias_own[j] += grad_bias_;
                }
                #pragma omp simd
                for (int64_t i = i2; i < i3; i++) {
                    const float residual_3_i = residual_3[i];
                    const float t = total[i - i2] * (-0.5f) * (residual_3_i * residual_3_i *
                        residual_3_i);
                    kept[i - i2] = t/(float)m;
                }
                for (int64_t i = i2; i < i3; i++)
                    total_[i - i2] = 0.0f;
                for (int64_t j = 0; j < m; j++) {
                    const float weight_j = weight[j];
                    #pragma omp simd
                    for (int64_t i = i2; i < i3; i++) {
                        const float t = grad_output[i*grad_output_s0 + j] * weight_j *
                            residual_3[i] + kept[i - i2] * ((x[i*x_s0 + j] - residual_2[i]) * 2.0f);
                        grad_x[i*m + j] = t;
                        total_[i - i2] += -t;
                    }
                }
                #pragma omp simd
                for (int64_t i = i2; i < i3; i++)
                    kept_[i - i2] = total_[i - i2] / (float)m;
                for (int64_t j = 0; j < m; j++) {
                    #pragma omp simd
                    for (int64_t i = i2; i < i3; i++) {
                        const float kept_2 = grad_x[i*m + j];
                        grad_x[i*m + j] = kept_2 + kept_[i - i2];
                    }
                }
            }
        }
        combine_sum_f32(groups, m, grad_bias_part, grad_bias);
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
            for (int64_t first_row = i0; first_row < i1; first_row += SUM_ROWS) {
                const int64_t last_row = MIN(i1, first_row + SUM_ROWS);
                for (int64_t j = 0; j < m; j++)
                    grad_bias_rows[j] = 0.0f;
                for (int64_t i = first_row; i < last_row; i++) {
                    double total_sum = 0.0;
                    const float *grad_output_i = grad_output + i*grad_output_s0;
                    const float *x_i = x + i*x_s0;
                    const float residual_2_i = residual_2[i];
                    for (int64_t j0_ = 0; j0_ < m; j0_ += SUM_BLOCK) {
                        const int64_t j1_ = MIN(m, j0_ + SUM_BLOCK);
                        float total_block = 0.0f;
                        #pragma omp simd reduction(+:total_block)
                        for (int64_t j = j0_; j < j1_; j++) {
                            const float grad_output_ij = grad_output_i[j];
                            grad_bias_rows[j] += grad_output_ij;
                            total_block += grad_output_ij*weight[j] * (x_i[j] - residual_2_i);
                        }
                        total_sum += total_block;
                    }
                    const float total = (float)total_sum;
                    double total_sum_ = 0.0;
                    const float residual_3_i = residual_3[i];
                    const float t = total*(-0.5f) * (residual_3_i * residual_3_i * residual_3_i) /
                        (float)m;
                    float *grad_x_i = grad_x + i*m;
                    for (int64_t j0_ = 0; j0_ < m; j0_ += SUM_BLOCK) {
                        const int64_t j1_ = MIN(m, j0_ + SUM_BLOCK);
                        float total_block = 0.0f;
                        #pragma omp simd reduction(+:total_block)
                        for (int64_t j = j0_; j < j1_; j++) {
                            const float t_ = grad_output_i[j] * weight[j] * residual_3_i + t *
                                ((x_i[j] - residual_2_i) * 2.0f);
                            grad_x_i[j] = t_;
                            total_block += -t_;
                        }
                        total_sum_ += total_block;
                    }
                    const float total_ = (float)total_sum_;
                    const float t_ = total_/(float)m;
                    #pragma omp simd
                    for (int64_t j = 0; j < m; j++) {
                        const float kept = grad_x_i[j];
                        grad_x_i[j] = kept + t_;
                    }
                }
                #pragma omp simd
                for (int64_t u = 0; u < m; u++)
                    grad_bias_own[u] += grad_bias_rows[u];
            }
        }
        combine_sum_f32(groups, m, grad_bias_part_, grad_bias);
    }
    return 0;
}

int64_t eager_layer_norm_backward_100_workspace(int64_t n, int64_t m)
{
    (void)n;
    (void)m;
    return 0;
}

/*
 * eager layer norm backward 100
 *     t0 = x - residual_2
 *     t1 = grad_output*weight
 *     t2 = t1*residual_3 + sum(t1*t0, axes=(1,))*-0.5*(square(residual_3)*residual_3)/m*(t0*2.0)
 *     grad_x = t2 + mean(-t2, axes=(1,))
 * in:   x f32[n m], weight f32[m], residual_2 f32[n 1], residual_3 f32[n 1], grad_output f32[n m]
 * out:  grad_x f32[n m]
 * Backward PROVED (derived: no backward written).
 */
int eager_layer_norm_backward_100(
    int64_t n,
    int64_t m,
    const float *restrict x,
    int64_t x_s0,
    const float *restrict weight,
    const float *restrict residual_2,
    const float *restrict residual_3,
    const float *restrict grad_output,
    int64_t grad_output_s0,
    float *restrict grad_x,
    void *workspace)
{
    (void)workspace;
    if (m == 0)
        return 0;
    if (m < SHORT_ROW) {
        #pragma omp parallel for schedule(static) if(parallel: m*n > 2048)
        for (int64_t i0 = 0; i0 < n; i0 += 64) {
            const int64_t i3 = MIN(n, i0 + 64);
            float total[64];
            float kept[64];
            float total_[64];
            float kept_[64];
            for (int64_t i = i0; i < i3; i++)
                total[i - i0] = 0.0f;
            for (int64_t j = 0; j < m; j++) {
                const float weight_j = weight[j];
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++) {
                    total[i - i0] += grad_output[i*grad_output_s0 + j] * weight_j * (x[i*x_s0 + j]
                        - residual_2[i]);
                }
            }
            #pragma omp simd
            for (int64_t i = i0; i < i3; i++) {
                const float residual_3_i = residual_3[i];
                const float t = total[i - i0] * (-0.5f) * (residual_3_i * residual_3_i *
                    residual_3_i);
                kept[i - i0] = t/(float)m;
            }
            for (int64_t i = i0; i < i3; i++)
                total_[i - i0] = 0.0f;
            for (int64_t j = 0; j < m; j++) {
                const float weight_j = weight[j];
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++) {
                    const float t = grad_output[i*grad_output_s0 + j] * weight_j * residual_3[i] +
                        kept[i - i0] * ((x[i*x_s0 + j] - residual_2[i]) * 2.0f);
                    grad_x[i*m + j] = t;
                    total_[i - i0] += -t;
                }
            }
            #pragma omp simd
            for (int64_t i = i0; i < i3; i++)
                kept_[i - i0] = total_[i - i0] / (float)m;
            for (int64_t j = 0; j < m; j++) {
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++) {
                    const float kept_2 = grad_x[i*m + j];
                    grad_x[i*m + j] = kept_2 + kept_[i - i0];
                }
            }
        }
    } else {
        #pragma omp parallel for schedule(static) if(parallel: m*n > 2048)
        for (int64_t i = 0; i < n; i++) {
            double total_sum = 0.0;
            const float *grad_output_i = grad_output + i*grad_output_s0;
            const float *x_i = x + i*x_s0;
            const float residual_2_i = residual_2[i];
            for (int64_t j0_ = 0; j0_ < m; j0_ += SUM_BLOCK) {
                const int64_t j1_ = MIN(m, j0_ + SUM_BLOCK);
                float total_block = 0.0f;
                #pragma omp simd reduction(+:total_block)
                for (int64_t j = j0_; j < j1_; j++)
                    total_block += grad_output_i[j] * weight[j] * (x_i[j] - residual_2_i);
                total_sum += total_block;
            }
            const float total = (float)total_sum;
            double total_sum_ = 0.0;
            const float residual_3_i = residual_3[i];
            const float t = total*(-0.5f) * (residual_3_i * residual_3_i * residual_3_i) / (float)m;
            float *grad_x_i = grad_x + i*m;
            for (int64_t j0_ = 0; j0_ < m; j0_ += SUM_BLOCK) {
                const int64_t j1_ = MIN(m, j0_ + SUM_BLOCK);
                float total_block = 0.0f;
                #pragma omp simd reduction(+:total_block)
                for (int64_t j = j0_; j < j1_; j++) {
                    const float t_ = grad_output_i[j] * weight[j] * residual_3_i + t * ((x_i[j] -
                        residual_2_i) * 2.0f);
                    grad_x_i[j] = t_;
                    total_block += -t_;
                }
                total_sum_ += total_block;
            }
            const float total_ = (float)total_sum_;
            const float t_ = total_/(float)m;
            #pragma omp simd
            for (int64_t j = 0; j < m; j++) {
                const float kept = grad_x_i[j];
                grad_x_i[j] = kept + t_;
            }
        }
    }
    return 0;
}

int64_t eager_layer_norm_backward_011_workspace(int64_t n, int64_t m)
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
 * eager layer norm backward 011
 *     grad_bias = sum(grad_output, axes=(0,))
 *     grad_weight = sum(grad_output*((x - residual_2)*residual_3), axes=(0,))
 * in:   x f32[n m], residual_2 f32[n 1], residual_3 f32[n 1], grad_output f32[n m]
 * out:  grad_weight f32[m], grad_bias f32[m]
 * Backward PROVED (derived: no backward written).
 */
int eager_layer_norm_backward_011(
    int64_t n,
    int64_t m,
    const float *restrict x,
    int64_t x_s0,
    const float *restrict residual_2,
    const float *restrict residual_3,
    const float *restrict grad_output,
    int64_t grad_output_s0,
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
        #pragma omp parallel for schedule(static) if(parallel: m*n > 16384)
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
                for (int64_t j = 0; j < m; j++) {
                    float grad_bias_ = 0.0f;
                    float grad_weight_ = 0.0f;
                    #pragma omp simd reduction(+:grad_bias_,grad_weight_)
                    for (int64_t i = i2; i < i3; i++) {
                        const float grad_output_ij = grad_output[i*grad_output_s0 + j];
                        grad_bias_ += grad_output_ij;
                        grad_weight_ += grad_output_ij * ((x[i*x_s0 + j] - residual_2[i]) *
                            residual_3[i]);
                    }
                    grad_bias_own[j] += grad_bias_;
                    grad_weight_own[j] += grad_weight_;
                }
            }
        }
        combine_sum_f32(groups, m, grad_bias_part, grad_bias);
        combine_sum_f32(groups, m, grad_weight_part, grad_weight);
    } else {
        const int64_t groups = row_groups(n, 4, 32);
        const int64_t rows = (n + groups - 1) / groups;
        #pragma omp parallel for schedule(static) if(parallel: m*n > 16384)
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
                if (m != 0) {
                    for (int64_t i = first_row; i < last_row; i++) {
                        const float *grad_output_i = grad_output + i*grad_output_s0;
                        const float *x_i = x + i*x_s0;
                        const float residual_2_i = residual_2[i];
                        const float residual_3_i = residual_3[i];
                        #pragma omp simd
                        for (int64_t j = 0; j < m; j++) {
                            const float grad_output_ij = grad_output_i[j];
                            grad_bias_rows[j] += grad_output_ij;
                            grad_weight_rows[j] += grad_output_ij * ((x_i[j] - residual_2_i) *
                                residual_3_i);
                        }
                    }
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

int64_t eager_layer_norm_backward_010_workspace(int64_t n, int64_t m)
{
    return 0
        + ROUND_UP(row_groups(n, 64, 32) * (8*m))
        + ROUND_UP(row_groups(n, 4, 32) * (8*m))
        + ROUND_UP(row_groups(n, 4, 32) * (4*m));
}

/*
 * eager layer norm backward 010
 *     grad_weight = sum(grad_output*((x - residual_2)*residual_3), axes=(0,))
 * in:   x f32[n m], residual_2 f32[n 1], residual_3 f32[n 1], grad_output f32[n m]
 * out:  grad_weight f32[m]
 * Backward PROVED (derived: no backward written).
 */
int eager_layer_norm_backward_010(
    int64_t n,
    int64_t m,
    const float *restrict x,
    int64_t x_s0,
    const float *restrict residual_2,
    const float *restrict residual_3,
    const float *restrict grad_output,
    int64_t grad_output_s0,
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
        #pragma omp parallel for schedule(static) if(parallel: m*n > 16384)
        for (int64_t group = 0; group < groups; group++) {
            const int64_t i0 = group*rows;
            const int64_t i1 = MIN(n, i0 + rows);
            double *restrict grad_weight_own = grad_weight_part + group*m;
            for (int64_t j = 0; j < m; j++)
                grad_weight_own[j] = 0.0;
            for (int64_t i2 = i0; i2 < i1; i2 += 64) {
                const int64_t i3 = MIN(i1, i2 + 64);
                for (int64_t j = 0; j < m; j++) {
                    float grad_weight_ = 0.0f;
                    #pragma omp simd reduction(+:grad_weight_)
                    for (int64_t i = i2; i < i3; i++) {
                        grad_weight_ += grad_output[i*grad_output_s0 + j] * ((x[i*x_s0 + j] -
                            residual_2[i]) * residual_3[i]);
                    }
                    grad_weight_own[j] += grad_weight_;
                }
            }
        }
        combine_sum_f32(groups, m, grad_weight_part, grad_weight);
    } else {
        const int64_t groups = row_groups(n, 4, 32);
        const int64_t rows = (n + groups - 1) / groups;
        #pragma omp parallel for schedule(static) if(parallel: m*n > 16384)
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
                if (m != 0) {
                    for (int64_t i = first_row; i < last_row; i++) {
                        const float *grad_output_i = grad_output + i*grad_output_s0;
                        const float *x_i = x + i*x_s0;
                        const float residual_2_i = residual_2[i];
                        const float residual_3_i = residual_3[i];
                        #pragma omp simd
                        for (int64_t j = 0; j < m; j++) {
                            grad_weight_rows[j] += grad_output_i[j] * ((x_i[j] - residual_2_i) *
                                residual_3_i);
                        }
                    }
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

int64_t eager_layer_norm_backward_001_workspace(int64_t n, int64_t m)
{
    return 0
        + ROUND_UP(row_groups(n, 64, 32) * (8*m))
        + ROUND_UP(row_groups(n, 4, 32) * (8*m))
        + ROUND_UP(row_groups(n, 4, 32) * (4*m));
}

/*
 * eager layer norm backward 001
 *     grad_bias = sum(grad_output, axes=(0,))
 * in:   grad_output f32[n m]
 * out:  grad_bias f32[m]
 * Backward PROVED (derived: no backward written).
 */
int eager_layer_norm_backward_001(
    int64_t n,
    int64_t m,
    const float *restrict grad_output,
    int64_t grad_output_s0,
    float *restrict grad_bias,
    void *workspace)
{
    char *space = workspace;
    double *restrict grad_bias_part = carve(&space, row_groups(n, 64, 32) * (8*m));
    double *restrict grad_bias_part_ = carve(&space, row_groups(n, 4, 32) * (8*m));
    float *restrict grad_bias_rows_part = carve(&space, row_groups(n, 4, 32) * (4*m));
    if (m == 0)
        return 0;
    if (m < SHORT_ROW) {
        const int64_t groups = row_groups(n, 64, 32);
        const int64_t rows = (n + groups - 1) / groups;
        #pragma omp parallel for schedule(static) if(parallel: m*n > 65536)
        for (int64_t group = 0; group < groups; group++) {
            const int64_t i0 = group*rows;
            const int64_t i1 = MIN(n, i0 + rows);
            double *restrict grad_bias_own = grad_bias_part + group*m;
            for (int64_t j = 0; j < m; j++)
                grad_bias_own[j] = 0.0;
            for (int64_t i2 = i0; i2 < i1; i2 += 64) {
                const int64_t i3 = MIN(i1, i2 + 64);
                for (int64_t j = 0; j < m; j++) {
                    float grad_bias_ = 0.0f;
                    #pragma omp simd reduction(+:grad_bias_)
                    for (int64_t i = i2; i < i3; i++)
                        grad_bias_ += grad_output[i*grad_output_s0 + j];
                    grad_bias_own[j] += grad_bias_;
                }
            }
        }
        combine_sum_f32(groups, m, grad_bias_part, grad_bias);
    } else {
        const int64_t groups = row_groups(n, 4, 32);
        const int64_t rows = (n + groups - 1) / groups;
        #pragma omp parallel for schedule(static) if(parallel: m*n > 65536)
        for (int64_t group = 0; group < groups; group++) {
            const int64_t i0 = group*rows;
            const int64_t i1 = MIN(n, i0 + rows);
            double *restrict grad_bias_own = grad_bias_part_ + group*m;
            for (int64_t j = 0; j < m; j++)
                grad_bias_own[j] = 0.0;
            float *restrict grad_bias_rows = grad_bias_rows_part + group*m;
            for (int64_t first_row = i0; first_row < i1; first_row += SUM_ROWS) {
                const int64_t last_row = MIN(i1, first_row + SUM_ROWS);
                for (int64_t j = 0; j < m; j++)
                    grad_bias_rows[j] = 0.0f;
                if (m != 0) {
                    for (int64_t i = first_row; i < last_row; i++) {
                        const float *grad_output_i = grad_output + i*grad_output_s0;
                        #pragma omp simd
                        for (int64_t j = 0; j < m; j++)
                            grad_bias_rows[j] += grad_output_i[j];
                    }
                }
                #pragma omp simd
                for (int64_t u = 0; u < m; u++)
                    grad_bias_own[u] += grad_bias_rows[u];
            }
        }
        combine_sum_f32(groups, m, grad_bias_part_, grad_bias);
    }
    return 0;
}
