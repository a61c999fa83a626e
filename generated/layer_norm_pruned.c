/*
 * LayerNorm, written by symgrad.
 * Backward PROVED for eps = 1e-05.
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

int64_t layer_norm_backward_110_workspace(int64_t n, int64_t m)
{
    return 0
        + ROUND_UP(row_groups(n, 64, 32) * (8*m))
        + ROUND_UP(row_groups(n, 4, 32) * (8*m))
        + ROUND_UP(row_groups(n, 4, 32) * (4*m));
}

/*
 * layer norm backward 110
 *     grad_normalized = grad_y*weight
 *     mean = mean(grad_normalized, axes=(1,))
 *     projection = mean(grad_normalized*normalized, axes=(1,))
 *     grad_x = (grad_normalized - mean - normalized*projection)*inverse_deviation
 *     grad_weight = sum(grad_y*normalized, axes=(0,))
 * in:   weight f32[m], inverse_deviation f32[n 1], normalized f32[n m], grad_y f32[n m]
 * out:  grad_x f32[n m], grad_weight f32[m]
 * Backward PROVED for eps = 1e-05.
 */
int layer_norm_backward_110(
    int64_t n,
    int64_t m,
    const float *restrict weight,
    const float *restrict inverse_deviation,
    const float *restrict normalized,
    int64_t normalized_s0,
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
        #pragma omp parallel for schedule(static) if(parallel: m*n > 4096)
        for (int64_t group = 0; group < groups; group++) {
            const int64_t i0 = group*rows;
            const int64_t i1 = MIN(n, i0 + rows);
            double *restrict grad_weight_own = grad_weight_part + group*m;
            for (int64_t j = 0; j < m; j++)
                grad_weight_own[j] = 0.0;
            for (int64_t i2 = i0; i2 < i1; i2 += 64) {
                const int64_t i3 = MIN(i1, i2 + 64);
                float projection_total[64];
                float projection[64];
                float mean_total[64];
                float mean[64];
                for (int64_t i = i2; i < i3; i++)
                    projection_total[i - i2] = 0.0f;
                for (int64_t i = i2; i < i3; i++)
                    mean_total[i - i2] = 0.0f;
                for (int64_t j = 0; j < m; j++) {
                    float grad_weight_ = 0.0f;
                    const float weight_j = weight[j];
                    #pragma omp simd reduction(+:grad_weight_)
                    for (int64_t i = i2; i < i3; i++) {
                        const float grad_y_ij = grad_y[i*grad_y_s0 + j];
                        const float grad_normalized = grad_y_ij*weight_j;
                        const float normalized_ij = normalized[i*normalized_s0 + j];
                        projection_total[i - i2] += grad_normalized * normalized_ij;
                        mean_total[i - i2] += grad_normalized;
                        grad_weight_ += grad_y_ij*normalized_ij;
                    }
                    grad_weight_own[j] += grad_weight_;
                }
                #pragma omp simd
                for (int64_t i = i2; i < i3; i++) {
                    projection[i - i2] = projection_total[i - i2] / (float)m;
                    mean[i - i2] = mean_total[i - i2] / (float)m;
                }
                for (int64_t j = 0; j < m; j++) {
                    const float weight_j = weight[j];
                    #pragma omp simd
                    for (int64_t i = i2; i < i3; i++) {
                        const float grad_normalized = grad_y[i*grad_y_s0 + j] * weight_j;
                        const float t = grad_normalized - mean[i - i2] - normalized[i*normalized_s0
                            + j] * projection[i - i2];
                        grad_x[i*m + j] = t*inverse_deviation[i];
                    }
                }
            }
        }
        combine_sum_f32(groups, m, grad_weight_part, grad_weight);
    } else {
        const int64_t groups = row_groups(n, 4, 32);
        const int64_t rows = (n + groups - 1) / groups;
        #pragma omp parallel for schedule(static) if(parallel: m*n > 4096)
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
                    double projection_total_sum = 0.0;
                    double mean_total_sum = 0.0;
                    const float *grad_y_i = grad_y + i*grad_y_s0;
                    const float *normalized_i = normalized + i*normalized_s0;
                    for (int64_t j0_ = 0; j0_ < m; j0_ += SUM_BLOCK) {
                        const int64_t j1_ = MIN(m, j0_ + SUM_BLOCK);
                        float projection_total_block = 0.0f;
                        float mean_total_block = 0.0f;
                        #pragma omp simd reduction(+:projection_total_block,mean_total_block)
                        for (int64_t j = j0_; j < j1_; j++) {
                            const float grad_y_ij = grad_y_i[j];
                            const float grad_normalized = grad_y_ij*weight[j];
                            const float normalized_ij = normalized_i[j];
                            projection_total_block += grad_normalized * normalized_ij;
                            mean_total_block += grad_normalized;
                            grad_weight_rows[j] += grad_y_ij*normalized_ij;
                        }
                        projection_total_sum += projection_total_block;
                        mean_total_sum += mean_total_block;
                    }
                    const float projection_total = (float)projection_total_sum;
                    const float mean_total = (float)mean_total_sum;
                    const float mean = mean_total/(float)m;
                    const float projection = projection_total/(float)m;
                    const float inverse_deviation_i = inverse_deviation[i];
                    float *grad_x_i = grad_x + i*m;
                    #pragma omp simd
                    for (int64_t j = 0; j < m; j++) {
                        const float grad_normalized = grad_y_i[j]*weight[j];
                        grad_x_i[j] = (grad_normalized - mean - normalized_i[j] * projection) *
                            inverse_deviation_i;
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

int64_t layer_norm_backward_101_workspace(int64_t n, int64_t m)
{
    return 0
        + ROUND_UP(row_groups(n, 64, 32) * (8*m))
        + ROUND_UP(row_groups(n, 4, 32) * (8*m))
        + ROUND_UP(row_groups(n, 4, 32) * (4*m));
}

/*
 * layer norm backward 101
 *     grad_normalized = grad_y*weight
 *     mean = mean(grad_normalized, axes=(1,))
 *     projection = mean(grad_normalized*normalized, axes=(1,))
 *     grad_x = (grad_normalized - mean - normalized*projection)*inverse_deviation
 *     grad_bias = sum(grad_y, axes=(0,))
 * in:   weight f32[m], inverse_deviation f32[n 1], normalized f32[n m], grad_y f32[n m]
 * out:  grad_x f32[n m], grad_bias f32[m]
 * Backward PROVED for eps = 1e-05.
 */
int layer_norm_backward_101(
    int64_t n,
    int64_t m,
    const float *restrict weight,
    const float *restrict inverse_deviation,
    const float *restrict normalized,
    int64_t normalized_s0,
    const float *restrict grad_y,
    int64_t grad_y_s0,
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
        #pragma omp parallel for schedule(static) if(parallel: m*n > 4096)
        for (int64_t group = 0; group < groups; group++) {
            const int64_t i0 = group*rows;
            const int64_t i1 = MIN(n, i0 + rows);
            double *restrict grad_bias_own = grad_bias_part + group*m;
            for (int64_t j = 0; j < m; j++)
                grad_bias_own[j] = 0.0;
            for (int64_t i2 = i0; i2 < i1; i2 += 64) {
                const int64_t i3 = MIN(i1, i2 + 64);
                float projection_total[64];
                float projection[64];
                float mean_total[64];
                float mean[64];
                for (int64_t i = i2; i < i3; i++)
                    projection_total[i - i2] = 0.0f;
                for (int64_t i = i2; i < i3; i++)
                    mean_total[i - i2] = 0.0f;
                for (int64_t j = 0; j < m; j++) {
                    float grad_bias_ = 0.0f;
                    const float weight_j = weight[j];
                    #pragma omp simd reduction(+:grad_bias_)
                    for (int64_t i = i2; i < i3; i++) {
                        const float grad_y_ij = grad_y[i*grad_y_s0 + j];
                        const float grad_normalized = grad_y_ij*weight_j;
                        projection_total[i - i2] += grad_normalized * normalized[i*normalized_s0 +
                            j];
                        mean_total[i - i2] += grad_normalized;
                        grad_bias_ += grad_y_ij;
                    }
                    grad_bias_own[j] += grad_bias_;
                }
                #pragma omp simd
                for (int64_t i = i2; i < i3; i++) {
                    projection[i - i2] = projection_total[i - i2] / (float)m;
                    mean[i - i2] = mean_total[i - i2] / (float)m;
                }
                for (int64_t j = 0; j < m; j++) {
                    const float weight_j = weight[j];
                    #pragma omp simd
                    for (int64_t i = i2; i < i3; i++) {
                        const float grad_normalized = grad_y[i*grad_y_s0 + j] * weight_j;
                        const float t = grad_normalized - mean[i - i2] - normalized[i*normalized_s0
                            + j] * projection[i - i2];
                        grad_x[i*m + j] = t*inverse_deviation[i];
                    }
                }
            }
        }
        combine_sum_f32(groups, m, grad_bias_part, grad_bias);
    } else {
        const int64_t groups = row_groups(n, 4, 32);
        const int64_t rows = (n + groups - 1) / groups;
        #pragma omp parallel for schedule(static) if(parallel: m*n > 4096)
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
                    double projection_total_sum = 0.0;
                    double mean_total_sum = 0.0;
                    const float *grad_y_i = grad_y + i*grad_y_s0;
                    const float *normalized_i = normalized + i*normalized_s0;
                    for (int64_t j0_ = 0; j0_ < m; j0_ += SUM_BLOCK) {
                        const int64_t j1_ = MIN(m, j0_ + SUM_BLOCK);
                        float projection_total_block = 0.0f;
                        float mean_total_block = 0.0f;
                        #pragma omp simd reduction(+:projection_total_block,mean_total_block)
                        for (int64_t j = j0_; j < j1_; j++) {
                            const float grad_y_ij = grad_y_i[j];
                            const float grad_normalized = grad_y_ij*weight[j];
                            projection_total_block += grad_normalized * normalized_i[j];
                            mean_total_block += grad_normalized;
                            grad_bias_rows[j] += grad_y_ij;
                        }
                        projection_total_sum += projection_total_block;
                        mean_total_sum += mean_total_block;
                    }
                    const float projection_total = (float)projection_total_sum;
                    const float mean_total = (float)mean_total_sum;
                    const float mean = mean_total/(float)m;
                    const float projection = projection_total/(float)m;
                    const float inverse_deviation_i = inverse_deviation[i];
                    float *grad_x_i = grad_x + i*m;
                    #pragma omp simd
                    for (int64_t j = 0; j < m; j++) {
                        const float grad_normalized = grad_y_i[j]*weight[j];
                        grad_x_i[j] = (grad_normalized - mean - normalized_i[j] * projection) *
                            inverse_deviation_i;
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

int64_t layer_norm_backward_100_workspace(int64_t n, int64_t m)
{
    (void)n;
    (void)m;
    return 0;
}

/*
 * layer norm backward 100
 *     grad_normalized = grad_y*weight
 *     mean = mean(grad_normalized, axes=(1,))
 *     projection = mean(grad_normalized*normalized, axes=(1,))
 *     grad_x = (grad_normalized - mean - normalized*projection)*inverse_deviation
 * in:   weight f32[m], inverse_deviation f32[n 1], normalized f32[n m], grad_y f32[n m]
 * out:  grad_x f32[n m]
 * Backward PROVED for eps = 1e-05.
 */
int layer_norm_backward_100(
    int64_t n,
    int64_t m,
    const float *restrict weight,
    const float *restrict inverse_deviation,
    const float *restrict normalized,
    int64_t normalized_s0,
    const float *restrict grad_y,
    int64_t grad_y_s0,
    float *restrict grad_x,
    void *workspace)
{
    (void)workspace;
    if (m == 0)
        return 0;
    if (m < SHORT_ROW) {
        #pragma omp parallel for schedule(static) if(parallel: m*n > 8192)
        for (int64_t i0 = 0; i0 < n; i0 += 64) {
            const int64_t i3 = MIN(n, i0 + 64);
            float projection_total[64];
            float projection[64];
            float mean_total[64];
            float mean[64];
            for (int64_t i = i0; i < i3; i++)
                projection_total[i - i0] = 0.0f;
            for (int64_t i = i0; i < i3; i++)
                mean_total[i - i0] = 0.0f;
            for (int64_t j = 0; j < m; j++) {
                const float weight_j = weight[j];
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++) {
                    const float grad_normalized = grad_y[i*grad_y_s0 + j] * weight_j;
                    projection_total[i - i0] += grad_normalized * normalized[i*normalized_s0 + j];
                    mean_total[i - i0] += grad_normalized;
                }
            }
            #pragma omp simd
            for (int64_t i = i0; i < i3; i++) {
                projection[i - i0] = projection_total[i - i0] / (float)m;
                mean[i - i0] = mean_total[i - i0] / (float)m;
            }
            for (int64_t j = 0; j < m; j++) {
                const float weight_j = weight[j];
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++) {
                    const float grad_normalized = grad_y[i*grad_y_s0 + j] * weight_j;
                    const float t = grad_normalized - mean[i - i0] - normalized[i*normalized_s0 +
                        j] * projection[i - i0];
                    grad_x[i*m + j] = t*inverse_deviation[i];
                }
            }
        }
    } else {
        #pragma omp parallel for schedule(static) if(parallel: m*n > 8192)
        for (int64_t i = 0; i < n; i++) {
            double projection_total_sum = 0.0;
            double mean_total_sum = 0.0;
            const float *grad_y_i = grad_y + i*grad_y_s0;
            const float *normalized_i = normalized + i*normalized_s0;
            for (int64_t j0_ = 0; j0_ < m; j0_ += SUM_BLOCK) {
                const int64_t j1_ = MIN(m, j0_ + SUM_BLOCK);
                float projection_total_block = 0.0f;
                float mean_total_block = 0.0f;
                #pragma omp simd reduction(+:projection_total_block,mean_total_block)
                for (int64_t j = j0_; j < j1_; j++) {
                    const float grad_normalized = grad_y_i[j]*weight[j];
                    projection_total_block += grad_normalized * normalized_i[j];
                    mean_total_block += grad_normalized;
                }
                projection_total_sum += projection_total_block;
                mean_total_sum += mean_total_block;
            }
            const float projection_total = (float)projection_total_sum;
            const float mean_total = (float)mean_total_sum;
            const float mean = mean_total/(float)m;
            const float projection = projection_total/(float)m;
            const float inverse_deviation_i = inverse_deviation[i];
            float *grad_x_i = grad_x + i*m;
            #pragma omp simd
            for (int64_t j = 0; j < m; j++) {
                const float grad_normalized = grad_y_i[j]*weight[j];
                grad_x_i[j] = (grad_normalized - mean - normalized_i[j] * projection) *
                    inverse_deviation_i;
            }
        }
    }
    return 0;
}

int64_t layer_norm_backward_011_workspace(int64_t n, int64_t m)
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
 * layer norm backward 011
 *     grad_weight = sum(grad_y*normalized, axes=(0,))
 *     grad_bias = sum(grad_y, axes=(0,))
 * in:   normalized f32[n m], grad_y f32[n m]
 * out:  grad_weight f32[m], grad_bias f32[m]
 * Backward PROVED for eps = 1e-05.
 */
int layer_norm_backward_011(
    int64_t n,
    int64_t m,
    const float *restrict normalized,
    int64_t normalized_s0,
    const float *restrict grad_y,
    int64_t grad_y_s0,
    float *restrict grad_weight,
    float *restrict grad_bias,
    void *workspace)
{
    char *space = workspace;
    double *restrict grad_weight_part = carve(&space, row_groups(n, 64, 32) * (8*m));
    double *restrict grad_bias_part = carve(&space, row_groups(n, 64, 32) * (8*m));
    double *restrict grad_weight_part_ = carve(&space, row_groups(n, 4, 32) * (8*m));
    double *restrict grad_bias_part_ = carve(&space, row_groups(n, 4, 32) * (8*m));
    float *restrict grad_weight_rows_part = carve(&space, row_groups(n, 4, 32) * (4*m));
    float *restrict grad_bias_rows_part = carve(&space, row_groups(n, 4, 32) * (4*m));
    if (m == 0)
        return 0;
    if (m < SHORT_ROW) {
        const int64_t groups = row_groups(n, 64, 32);
        const int64_t rows = (n + groups - 1) / groups;
        #pragma omp parallel for schedule(static) if(parallel: m*n > 32768)
        for (int64_t group = 0; group < groups; group++) {
            const int64_t i0 = group*rows;
            const int64_t i1 = MIN(n, i0 + rows);
            double *restrict grad_weight_own = grad_weight_part + group*m;
            for (int64_t j = 0; j < m; j++)
                grad_weight_own[j] = 0.0;
            double *restrict grad_bias_own = grad_bias_part + group*m;
            for (int64_t j = 0; j < m; j++)
                grad_bias_own[j] = 0.0;
            for (int64_t i2 = i0; i2 < i1; i2 += 64) {
                const int64_t i3 = MIN(i1, i2 + 64);
                for (int64_t j = 0; j < m; j++) {
                    float grad_weight_ = 0.0f;
                    float grad_bias_ = 0.0f;
                    #pragma omp simd reduction(+:grad_weight_,grad_bias_)
                    for (int64_t i = i2; i < i3; i++) {
                        const float grad_y_ij = grad_y[i*grad_y_s0 + j];
                        grad_weight_ += grad_y_ij * normalized[i*normalized_s0 + j];
                        grad_bias_ += grad_y_ij;
                    }
                    grad_weight_own[j] += grad_weight_;
                    grad_bias_own[j] += grad_bias_;
                }
            }
        }
        combine_sum_f32(groups, m, grad_weight_part, grad_weight);
        combine_sum_f32(groups, m, grad_bias_part, grad_bias);
    } else {
        const int64_t groups = row_groups(n, 4, 32);
        const int64_t rows = (n + groups - 1) / groups;
        #pragma omp parallel for schedule(static) if(parallel: m*n > 32768)
        for (int64_t group = 0; group < groups; group++) {
            const int64_t i0 = group*rows;
            const int64_t i1 = MIN(n, i0 + rows);
            double *restrict grad_weight_own = grad_weight_part_ + group*m;
            for (int64_t j = 0; j < m; j++)
                grad_weight_own[j] = 0.0;
            float *restrict grad_weight_rows = grad_weight_rows_part + group*m;
            double *restrict grad_bias_own = grad_bias_part_ + group*m;
            for (int64_t j = 0; j < m; j++)
                grad_bias_own[j] = 0.0;
            float *restrict grad_bias_rows = grad_bias_rows_part + group*m;
            for (int64_t first_row = i0; first_row < i1; first_row += SUM_ROWS) {
                const int64_t last_row = MIN(i1, first_row + SUM_ROWS);
                for (int64_t j = 0; j < m; j++)
                    grad_weight_rows[j] = 0.0f;
                for (int64_t j = 0; j < m; j++)
                    grad_bias_rows[j] = 0.0f;
                if (m != 0) {
                    for (int64_t i = first_row; i < last_row; i++) {
                        const float *grad_y_i = grad_y + i*grad_y_s0;
                        const float *normalized_i = normalized + i*normalized_s0;
                        #pragma omp simd
                        for (int64_t j = 0; j < m; j++) {
                            const float grad_y_ij = grad_y_i[j];
                            grad_weight_rows[j] += grad_y_ij*normalized_i[j];
                            grad_bias_rows[j] += grad_y_ij;
                        }
                    }
                }
                #pragma omp simd
                for (int64_t u = 0; u < m; u++)
                    grad_weight_own[u] += grad_weight_rows[u];
                #pragma omp simd
                for (int64_t u_ = 0; u_ < m; u_++)
                    grad_bias_own[u_] += grad_bias_rows[u_];
            }
        }
        combine_sum_f32(groups, m, grad_weight_part_, grad_weight);
        combine_sum_f32(groups, m, grad_bias_part_, grad_bias);
    }
    return 0;
}

int64_t layer_norm_backward_010_workspace(int64_t n, int64_t m)
{
    return 0
        + ROUND_UP(row_groups(n, 64, 32) * (8*m))
        + ROUND_UP(row_groups(n, 4, 32) * (8*m))
        + ROUND_UP(row_groups(n, 4, 32) * (4*m));
}

/*
 * layer norm backward 010
 *     grad_weight = sum(grad_y*normalized, axes=(0,))
 * in:   normalized f32[n m], grad_y f32[n m]
 * out:  grad_weight f32[m]
 * Backward PROVED for eps = 1e-05.
 */
int layer_norm_backward_010(
    int64_t n,
    int64_t m,
    const float *restrict normalized,
    int64_t normalized_s0,
    const float *restrict grad_y,
    int64_t grad_y_s0,
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
        #pragma omp parallel for schedule(static) if(parallel: m*n > 32768)
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
                    for (int64_t i = i2; i < i3; i++)
                        grad_weight_ += grad_y[i*grad_y_s0 + j] * normalized[i*normalized_s0 + j];
                    grad_weight_own[j] += grad_weight_;
                }
            }
        }
        combine_sum_f32(groups, m, grad_weight_part, grad_weight);
    } else {
        const int64_t groups = row_groups(n, 4, 32);
        const int64_t rows = (n + groups - 1) / groups;
        #pragma omp parallel for schedule(static) if(parallel: m*n > 32768)
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
                        const float *grad_y_i = grad_y + i*grad_y_s0;
                        const float *normalized_i = normalized + i*normalized_s0;
                        #pragma omp simd
                        for (int64_t j = 0; j < m; j++)
                            grad_weight_rows[j] += grad_y_i[j] * normalized_i[j];
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

int64_t layer_norm_backward_001_workspace(int64_t n, int64_t m)
{
    return 0
        + ROUND_UP(row_groups(n, 64, 32) * (8*m))
        + ROUND_UP(row_groups(n, 4, 32) * (8*m))
        + ROUND_UP(row_groups(n, 4, 32) * (4*m));
}

/*
 * layer norm backward 001
 *     grad_bias = sum(grad_y, axes=(0,))
 * in:   grad_y f32[n m]
 * out:  grad_bias f32[m]
 * Backward PROVED for eps = 1e-05.
 */
int layer_norm_backward_001(
    int64_t n,
    int64_t m,
    const float *restrict grad_y,
    int64_t grad_y_s0,
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
                        grad_bias_ += grad_y[i*grad_y_s0 + j];
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
                        const float *grad_y_i = grad_y + i*grad_y_s0;
                        #pragma omp simd
                        for (int64_t j = 0; j < m; j++)
                            grad_bias_rows[j] += grad_y_i[j];
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
