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

int64_t layer_norm_workspace(int64_t n, int64_t m)
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
 * layer norm
 * in:   x f32[n m], grad_y f32[n m], weight f32[m], bias f32[m]
 * out:  y f32[n m], grad_x f32[n m], grad_weight f32[m], grad_bias f32[m]
 */
int layer_norm(
    int64_t n,
    int64_t m,
    const float *restrict x,
    int64_t x_s0,
    const float *restrict grad_y,
    int64_t grad_y_s0,
    const float *restrict weight,
    const float *restrict bias,
    float *restrict y,
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
                float mean_total[64];
                float mean[64];
                float var_total[64];
                float rstd[64];
                float c2_total[64];
                float c2[64];
                float c1_total[64];
                float c1[64];
                for (int64_t i = i2; i < i3; i++)
                    mean_total[i - i2] = 0.0f;
                for (int64_t i = i2; i < i3; i++)
                    c1_total[i - i2] = 0.0f;
                for (int64_t j = 0; j < m; j++) {
                    float grad_bias_ = 0.0f;
                    const float weight_j = weight[j];
                    #pragma omp simd reduction(+:grad_bias_)
                    for (int64_t i = i2; i < i3; i++) {
                        const float grad_y_ij = grad_y[i*grad_y_s0 + j];
                        mean_total[i - i2] += x[i*x_s0 + j];
                        c1_total[i - i2] += grad_y_ij*weight_j;
                        grad_bias_ += grad_y_ij;
                    }
                    grad_bias_own[j] += grad_bias_;
                }
                #pragma omp simd
                for (int64_t i = i2; i < i3; i++) {
                    mean[i - i2] = mean_total[i - i2] / (float)m;
                    c1[i - i2] = c1_total[i - i2] / (float)m;
                }
                for (int64_t i = i2; i < i3; i++)
                    var_total[i - i2] = 0.0f;
                for (int64_t j = 0; j < m; j++) {
                    #pragma omp simd
                    for (int64_t i = i2; i < i3; i++) {
                        const float centred = x[i*x_s0 + j] - mean[i - i2];
                        y[i*m + j] = centred;
                        var_total[i - i2] += centred*centred;
                    }
                }
                #pragma omp simd
                for (int64_t i = i2; i < i3; i++) {
                    const float var = var_total[i - i2] / (float)m;
                    rstd[i - i2] = 1.0f / sqrtf(var + 1e-05f);
                }
                for (int64_t i = i2; i < i3; i++)
                    c2_total[i - i2] = 0.0f;
                for (int64_t j = 0; j < m; j++) {
                    float grad_weight_ = 0.0f;
                    const float weight_j = weight[j];
                    const float bias_j = bias[j];
                    #pragma omp simd reduction(+:grad_weight_)
                    for (int64_t i = i2; i < i3; i++) {
                        const float centred = y[i*m + j];
                        const float grad_y_ij = grad_y[i*grad_y_s0 + j];
                        const float gw = grad_y_ij*weight_j;
                        const float xhat = centred * rstd[i - i2];
                        grad_x[i*m + j] = xhat;
                        c2_total[i - i2] += gw*xhat;
                        y[i*m + j] = xhat*weight_j + bias_j;
                        grad_weight_ += grad_y_ij*xhat;
                    }
                    grad_weight_own[j] += grad_weight_;
                }
                #pragma omp simd
                for (int64_t i = i2; i < i3; i++)
                    c2[i - i2] = c2_total[i - i2] / (float)m;
                for (int64_t j = 0; j < m; j++) {
                    const float weight_j = weight[j];
                    #pragma omp simd
                    for (int64_t i = i2; i < i3; i++) {
                        const float xhat = grad_x[i*m + j];
                        const float gw = grad_y[i*grad_y_s0 + j] * weight_j;
                        grad_x[i*m + j] = (gw - c1[i - i2] - xhat * c2[i - i2]) * rstd[i - i2];
                    }
                }
            }
        }
        combine_sum_f32(groups, m, grad_bias_part, grad_bias);
        combine_sum_f32(groups, m, grad_weight_part, grad_weight);
    } else {
        const int64_t groups = row_groups(n, 4, 32);
        const int64_t rows = (n + groups - 1) / groups;
        #pragma omp parallel for schedule(static) if(parallel: m*n > 1024)
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
                    double mean_total_sum = 0.0;
                    double c1_total_sum = 0.0;
                    const float *grad_y_i = grad_y + i*grad_y_s0;
                    const float *x_i = x + i*x_s0;
                    for (int64_t j0_ = 0; j0_ < m; j0_ += SUM_BLOCK) {
                        const int64_t j1_ = MIN(m, j0_ + SUM_BLOCK);
                        float mean_total_block = 0.0f;
                        float c1_total_block = 0.0f;
                        #pragma omp simd reduction(+:mean_total_block,c1_total_block)
                        for (int64_t j = j0_; j < j1_; j++) {
                            const float grad_y_ij = grad_y_i[j];
                            mean_total_block += x_i[j];
                            c1_total_block += grad_y_ij*weight[j];
                            grad_bias_rows[j] += grad_y_ij;
                        }
                        mean_total_sum += mean_total_block;
                        c1_total_sum += c1_total_block;
                    }
                    const float mean_total = (float)mean_total_sum;
                    const float c1_total = (float)c1_total_sum;
                    double var_total_sum = 0.0;
                    const float mean = mean_total/(float)m;
                    for (int64_t j0_ = 0; j0_ < m; j0_ += SUM_BLOCK) {
                        const int64_t j1_ = MIN(m, j0_ + SUM_BLOCK);
                        float var_total_block = 0.0f;
                        #pragma omp simd reduction(+:var_total_block)
                        for (int64_t j = j0_; j < j1_; j++) {
                            const float centred = x_i[j] - mean;
                            var_total_block += centred*centred;
                        }
                        var_total_sum += var_total_block;
                    }
                    const float var_total = (float)var_total_sum;
                    double c2_total_sum = 0.0;
                    const float var = var_total/(float)m;
                    const float rstd = 1.0f / sqrtf(var + 1e-05f);
                    float *y_i = y + i*m;
                    for (int64_t j0_ = 0; j0_ < m; j0_ += SUM_BLOCK) {
                        const int64_t j1_ = MIN(m, j0_ + SUM_BLOCK);
                        float c2_total_block = 0.0f;
                        #pragma omp simd reduction(+:c2_total_block)
                        for (int64_t j = j0_; j < j1_; j++) {
                            const float grad_y_ij = grad_y_i[j];
                            const float weight_j = weight[j];
                            const float gw = grad_y_ij*weight_j;
                            const float centred = x_i[j] - mean;
                            const float xhat = centred*rstd;
                            c2_total_block += gw*xhat;
                            y_i[j] = xhat*weight_j + bias[j];
                            grad_weight_rows[j] += grad_y_ij*xhat;
                        }
                        c2_total_sum += c2_total_block;
                    }
                    const float c2_total = (float)c2_total_sum;
                    const float c1 = c1_total/(float)m;
                    const float c2 = c2_total/(float)m;
                    float *grad_x_i = grad_x + i*m;
                    #pragma omp simd
                    for (int64_t j = 0; j < m; j++) {
                        const float gw = grad_y_i[j]*weight[j];
                        const float centred = x_i[j] - mean;
                        const float xhat = centred*rstd;
                        grad_x_i[j] = (gw - c1 - xhat*c2) * rstd;
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
