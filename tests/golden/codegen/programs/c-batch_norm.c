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

int64_t batch_norm_workspace(int64_t n, int64_t m)
{
    return 0
        + ROUND_UP(4*m)
        + ROUND_UP(4*m)
        + ROUND_UP(4*m)
        + ROUND_UP(4*m)
        + ROUND_UP(4*m)
        + ROUND_UP(4*m)
        + ROUND_UP(4*m)
        + ROUND_UP(row_groups(n, 64, 32) * (8*m))
        + ROUND_UP(row_groups(n, 64, 32) * (8*m))
        + ROUND_UP(row_groups(n, 4, 32) * (8*m))
        + ROUND_UP(row_groups(n, 4, 32) * (8*m))
        + ROUND_UP(row_groups(n, 4, 32) * (4*m))
        + ROUND_UP(row_groups(n, 4, 32) * (4*m))
        + ROUND_UP(row_groups(n, 64, 32) * (8*m))
        + ROUND_UP(row_groups(n, 4, 32) * (8*m))
        + ROUND_UP(row_groups(n, 4, 32) * (4*m))
        + ROUND_UP(row_groups(n, 64, 32) * (8*m))
        + ROUND_UP(row_groups(n, 4, 32) * (8*m))
        + ROUND_UP(row_groups(n, 4, 32) * (4*m));
}

/*
 * batch norm
 * in:   x f32[n m], grad_y f32[n m], weight f32[m]
 * out:  y f32[n m], grad_x f32[n m], grad_weight f32[m], grad_bias f32[m]
 */
int batch_norm(
    int64_t n,
    int64_t m,
    const float *restrict x,
    int64_t x_s0,
    const float *restrict grad_y,
    int64_t grad_y_s0,
    const float *restrict weight,
    float *restrict y,
    float *restrict grad_x,
    float *restrict grad_weight,
    float *restrict grad_bias,
    void *workspace)
{
    char *space = workspace;
    float *restrict mean_total_all = carve(&space, 4*m);
    float *restrict mean_all = carve(&space, 4*m);
    float *restrict total_all = carve(&space, 4*m);
    float *restrict rstd_all = carve(&space, 4*m);
    float *restrict kept_all = carve(&space, 4*m);
    float *restrict kept_all_ = carve(&space, 4*m);
    float *restrict kept_all_2 = carve(&space, 4*m);
    double *restrict mean_total_part = carve(&space, row_groups(n, 64, 32) * (8*m));
    double *restrict grad_bias_part = carve(&space, row_groups(n, 64, 32) * (8*m));
    double *restrict mean_total_part_ = carve(&space, row_groups(n, 4, 32) * (8*m));
    double *restrict grad_bias_part_ = carve(&space, row_groups(n, 4, 32) * (8*m));
    float *restrict mean_total_rows_part = carve(&space, row_groups(n, 4, 32) * (4*m));
    float *restrict grad_bias_rows_part = carve(&space, row_groups(n, 4, 32) * (4*m));
    double *restrict total_part = carve(&space, row_groups(n, 64, 32) * (8*m));
    double *restrict total_part_ = carve(&space, row_groups(n, 4, 32) * (8*m));
    float *restrict total_rows_part = carve(&space, row_groups(n, 4, 32) * (4*m));
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
            double *restrict mean_total_own = mean_total_part + group*m;
            for (int64_t j = 0; j < m; j++)
                mean_total_own[j] = 0.0;
            double *restrict grad_bias_own = grad_bias_part + group*m;
            for (int64_t j = 0; j < m; j++)
                grad_bias_own[j] = 0.0;
            for (int64_t i2 = i0; i2 < i1; i2 += 64) {
                const int64_t i3 = MIN(i1, i2 + 64);
                for (int64_t j = 0; j < m; j++) {
                    float mean_total = 0.0f;
                    float grad_bias_ = 0.0f;
                    #pragma omp simd reduction(+:mean_total,grad_bias_)
                    for (int64_t i = i2; i < i3; i++) {
                        mean_total += x[i*x_s0 + j];
                        grad_bias_ += grad_y[i*grad_y_s0 + j];
                    }
                    mean_total_own[j] += mean_total;
                    grad_bias_own[j] += grad_bias_;
                }
            }
        }
        combine_sum_f32(groups, m, mean_total_part, mean_total_all);
        combine_sum_f32(groups, m, grad_bias_part, grad_bias);
    } else {
        const int64_t groups = row_groups(n, 4, 32);
        const int64_t rows = (n + groups - 1) / groups;
        #pragma omp parallel for schedule(static) if(parallel: m*n > 32768)
        for (int64_t group = 0; group < groups; group++) {
            const int64_t i0 = group*rows;
            const int64_t i1 = MIN(n, i0 + rows);
            double *restrict mean_total_own = mean_total_part_ + group*m;
            for (int64_t j = 0; j < m; j++)
                mean_total_own[j] = 0.0;
            float *restrict mean_total_rows = mean_total_rows_part + group*m;
            double *restrict grad_bias_own = grad_bias_part_ + group*m;
            for (int64_t j = 0; j < m; j++)
                grad_bias_own[j] = 0.0;
            float *restrict grad_bias_rows = grad_bias_rows_part + group*m;
            for (int64_t first_row = i0; first_row < i1; first_row += SUM_ROWS) {
                const int64_t last_row = MIN(i1, first_row + SUM_ROWS);
                for (int64_t j = 0; j < m; j++)
                    mean_total_rows[j] = 0.0f;
                for (int64_t j = 0; j < m; j++)
                    grad_bias_rows[j] = 0.0f;
                if (m != 0) {
                    for (int64_t i = first_row; i < last_row; i++) {
                        const float *grad_y_i = grad_y + i*grad_y_s0;
                        const float *x_i = x + i*x_s0;
                        #pragma omp simd
                        for (int64_t j = 0; j < m; j++) {
                            mean_total_rows[j] += x_i[j];
                            grad_bias_rows[j] += grad_y_i[j];
                        }
                    }
                }
                #pragma omp simd
                for (int64_t u = 0; u < m; u++)
                    mean_total_own[u] += mean_total_rows[u];
                #pragma omp simd
                for (int64_t u_ = 0; u_ < m; u_++)
                    grad_bias_own[u_] += grad_bias_rows[u_];
            }
        }
        combine_sum_f32(groups, m, mean_total_part_, mean_total_all);
        combine_sum_f32(groups, m, grad_bias_part_, grad_bias);
    }
    #pragma omp parallel for schedule(static) if(parallel: m > 8192)
    for (int64_t j0_ = 0; j0_ < m; j0_ += BLOCK) {
        const int64_t j1_ = MIN(m, j0_ + BLOCK);
        #pragma omp simd
        for (int64_t j = j0_; j < j1_; j++) {
            mean_all[j] = mean_total_all[j] / (float)n;
            kept_all_[j] = grad_bias[j]/(float)n;
        }
    }
    if (m < SHORT_ROW) {
        const int64_t groups = row_groups(n, 64, 32);
        const int64_t rows = (n + groups - 1) / groups;
        #pragma omp parallel for schedule(static) if(parallel: m*n > 16384)
        for (int64_t group = 0; group < groups; group++) {
            const int64_t i0 = group*rows;
            const int64_t i1 = MIN(n, i0 + rows);
            double *restrict total_own = total_part + group*m;
            for (int64_t j = 0; j < m; j++)
                total_own[j] = 0.0;
            for (int64_t i2 = i0; i2 < i1; i2 += 64) {
                const int64_t i3 = MIN(i1, i2 + 64);
                for (int64_t j = 0; j < m; j++) {
                    float total = 0.0f;
                    #pragma omp simd reduction(+:total)
                    for (int64_t i = i2; i < i3; i++) {
                        const float centred = x[i*x_s0 + j] - mean_all[j];
                        total += centred*centred;
                    }
                    total_own[j] += total;
                }
            }
        }
        combine_sum_f32(groups, m, total_part, total_all);
    } else {
        const int64_t groups = row_groups(n, 4, 32);
        const int64_t rows = (n + groups - 1) / groups;
        #pragma omp parallel for schedule(static) if(parallel: m*n > 16384)
        for (int64_t group = 0; group < groups; group++) {
            const int64_t i0 = group*rows;
            const int64_t i1 = MIN(n, i0 + rows);
            double *restrict total_own = total_part_ + group*m;
            for (int64_t j = 0; j < m; j++)
                total_own[j] = 0.0;
            float *restrict total_rows = total_rows_part + group*m;
            for (int64_t first_row = i0; first_row < i1; first_row += SUM_ROWS) {
                const int64_t last_row = MIN(i1, first_row + SUM_ROWS);
                for (int64_t j = 0; j < m; j++)
                    total_rows[j] = 0.0f;
                if (m != 0) {
                    for (int64_t i = first_row; i < last_row; i++) {
                        const float *x_i = x + i*x_s0;
                        #pragma omp simd
                        for (int64_t j = 0; j < m; j++) {
                            const float centred = x_i[j] - mean_all[j];
                            total_rows[j] += centred*centred;
                        }
                    }
                }
                #pragma omp simd
                for (int64_t u = 0; u < m; u++)
                    total_own[u] += total_rows[u];
            }
        }
        combine_sum_f32(groups, m, total_part_, total_all);
    }
    #pragma omp parallel for schedule(static) if(parallel: m > 4096)
    for (int64_t j0_ = 0; j0_ < m; j0_ += BLOCK) {
        const int64_t j1_ = MIN(m, j0_ + BLOCK);
        #pragma omp simd
        for (int64_t j = j0_; j < j1_; j++) {
            const float rstd = 1.0f / sqrtf(total_all[j]/(float)n + 1e-05f);
            rstd_all[j] = rstd;
            kept_all_2[j] = weight[j]*rstd;
        }
    }
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
                for (int64_t j = 0; j < m; j++) {
                    float grad_weight_ = 0.0f;
                    const float weight_j = weight[j];
                    #pragma omp simd reduction(+:grad_weight_)
                    for (int64_t i = i2; i < i3; i++) {
                        const float centred = x[i*x_s0 + j] - mean_all[j];
                        const float xhat = centred*rstd_all[j];
                        grad_weight_ += grad_y[i*grad_y_s0 + j] * xhat;
                        y[i*m + j] = xhat*weight_j;
                    }
                    grad_weight_own[j] += grad_weight_;
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
                    const float *grad_y_i = grad_y + i*grad_y_s0;
                    const float *x_i = x + i*x_s0;
                    float *y_i = y + i*m;
                    #pragma omp simd
                    for (int64_t j = 0; j < m; j++) {
                        const float centred = x_i[j] - mean_all[j];
                        const float xhat = centred*rstd_all[j];
                        grad_weight_rows[j] += grad_y_i[j]*xhat;
                        y_i[j] = xhat*weight[j];
                    }
                }
                #pragma omp simd
                for (int64_t u = 0; u < m; u++)
                    grad_weight_own[u] += grad_weight_rows[u];
            }
        }
        combine_sum_f32(groups, m, grad_weight_part_, grad_weight);
    }
    #pragma omp parallel for schedule(static) if(parallel: m > 16384)
    for (int64_t j0_ = 0; j0_ < m; j0_ += BLOCK) {
        const int64_t j1_ = MIN(m, j0_ + BLOCK);
        #pragma omp simd
        for (int64_t j = j0_; j < j1_; j++)
            kept_all[j] = grad_weight[j]/(float)n;
    }
    if (m < SHORT_ROW) {
        #pragma omp parallel for schedule(static) if(parallel: m*n > 4096)
        for (int64_t i0 = 0; i0 < n; i0 += 64) {
            const int64_t i3 = MIN(n, i0 + 64);
            for (int64_t j = 0; j < m; j++) {
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++) {
                    const float centred = x[i*x_s0 + j] - mean_all[j];
                    const float xhat = centred*rstd_all[j];
                    grad_x[i*m + j] = kept_all_2[j] * (grad_y[i*grad_y_s0 + j] - kept_all_[j] -
                        xhat*kept_all[j]);
                }
            }
        }
    } else {
        #pragma omp parallel for schedule(static) if(parallel: m*n > 4096)
        for (int64_t i = 0; i < n; i++) {
            const float *grad_y_i = grad_y + i*grad_y_s0;
            const float *x_i = x + i*x_s0;
            float *grad_x_i = grad_x + i*m;
            #pragma omp simd
            for (int64_t j = 0; j < m; j++) {
                const float centred = x_i[j] - mean_all[j];
                const float xhat = centred*rstd_all[j];
                grad_x_i[j] = kept_all_2[j] * (grad_y_i[j] - kept_all_[j] - xhat*kept_all[j]);
            }
        }
    }
    return 0;
}
