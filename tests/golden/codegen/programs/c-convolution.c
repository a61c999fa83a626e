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

int64_t convolution_workspace(int64_t n, int64_t m)
{
    return 0
        + ROUND_UP(16*m*n + 32*n)
        + ROUND_UP(48)
        + ROUND_UP(48)
        + ROUND_UP(48)
        + ROUND_UP(row_groups(n, 4, 32) * 96)
        + ROUND_UP(row_groups(n, 4, 32) * 96)
        + ROUND_UP(row_groups(n, 4, 32) * 96)
        + ROUND_UP(row_groups(n, 4, 32) * (12*m))
        + ROUND_UP(row_groups(n, 4, 32) * 48)
        + ROUND_UP(row_groups(n, 4, 32) * 48)
        + ROUND_UP(row_groups(n, 4, 32) * 48)
        + ROUND_UP(row_groups(n, 4, 32) * 96)
        + ROUND_UP(row_groups(n, 4, 32) * 96)
        + ROUND_UP(row_groups(n, 4, 32) * 96)
        + ROUND_UP(row_groups(n, 4, 32) * 48)
        + ROUND_UP(row_groups(n, 4, 32) * 48)
        + ROUND_UP(row_groups(n, 4, 32) * 48);
}

/*
 * convolution
 * in:   x f32[n 4 m], weight f32[3 4 3], grad_y f32[n 3 m]
 * out:  y f32[n 3 m], grad_x f32[n 4 m], grad_weight f32[3 4 3]
 */
int convolution(
    int64_t n,
    int64_t m,
    const float *restrict x,
    int64_t x_s0,
    int64_t x_s1,
    const float *restrict weight,
    int64_t weight_s0,
    int64_t weight_s1,
    const float *restrict grad_y,
    int64_t grad_y_s0,
    int64_t grad_y_s1,
    float *restrict y,
    float *restrict grad_x,
    float *restrict grad_weight,
    void *workspace)
{
    char *space = workspace;
    float *restrict stored = carve(&space, 16*m*n + 32*n);
    float *restrict stored_ = carve(&space, 48);
    float *restrict stored_2 = carve(&space, 48);
    float *restrict stored_3 = carve(&space, 48);
    double *restrict total_part = carve(&space, row_groups(n, 4, 32) * 96);
    double *restrict total_part_ = carve(&space, row_groups(n, 4, 32) * 96);
    double *restrict total_part_2 = carve(&space, row_groups(n, 4, 32) * 96);
    float *restrict grad_y_copy_rows = carve(&space, row_groups(n, 4, 32) * (12*m));
    float *restrict total_rows_part = carve(&space, row_groups(n, 4, 32) * 48);
    float *restrict total_rows_part_ = carve(&space, row_groups(n, 4, 32) * 48);
    float *restrict total_rows_part_2 = carve(&space, row_groups(n, 4, 32) * 48);
    double *restrict total_part_3 = carve(&space, row_groups(n, 4, 32) * 96);
    double *restrict total_part_4 = carve(&space, row_groups(n, 4, 32) * 96);
    double *restrict total_part_5 = carve(&space, row_groups(n, 4, 32) * 96);
    float *restrict total_rows_part_3 = carve(&space, row_groups(n, 4, 32) * 48);
    float *restrict total_rows_part_4 = carve(&space, row_groups(n, 4, 32) * 48);
    float *restrict total_rows_part_5 = carve(&space, row_groups(n, 4, 32) * 48);
    #pragma omp parallel for schedule(static) if(parallel: 4*m*n + 8*n > 32768)
    for (int64_t i = 0; i < n; i++) {
        for (int64_t l = 0; l < 3; l++) {
            for (int64_t s = 0; s < m; s++)
                y[(i*3 + l) * m + s] = 0.0f;
        }
        for (int64_t k = 0; k < 4; k++) {
            float *stored_ik = stored + (i*4 + k) * (m + 2);
            #pragma omp simd
            for (int64_t p = 0; p < m + 2; p++)
                stored_ik[p] = p - 1 >= 0 && p - 1 < m ? x[i*x_s0 + k*x_s1 + (p - 1)] : 0.0f;
            for (int64_t r = 0; r < m; r++)
                grad_x[(i*4 + k) * m + r] = 0.0f;
            float *grad_x_ik = grad_x + (i*4 + k) * m;
            for (int64_t l = 0; l < 3; l++) {
                const float weight_lk = weight[l*weight_s0 + k*weight_s1];
                const float *grad_y_il = grad_y + (i*grad_y_s0 + l*grad_y_s1);
                const float weight_lk_ = weight[l*weight_s0 + k*weight_s1 + 1];
                const float weight_lk_2 = weight[l*weight_s0 + k*weight_s1 + 2];
                #pragma omp simd
                for (int64_t r = 0; r < m; r++) {
                    const float t_ = r + 1 < m ? grad_y[i*grad_y_s0 + l*grad_y_s1 + (r + 1)] *
                        weight_lk : 0.0f;
                    const float t_2 = r - 1 >= 0 ? grad_y[i*grad_y_s0 + l*grad_y_s1 + (r - 1)] *
                        weight_lk_2 : 0.0f;
                    grad_x_ik[r] += t_ + grad_y_il[r]*weight_lk_ + t_2;
                }
            }
            for (int64_t l = 0; l < 3; l++) {
                const float weight_lk = weight[l*weight_s0 + k*weight_s1];
                const float weight_lk_ = weight[l*weight_s0 + k*weight_s1 + 1];
                const float weight_lk_2 = weight[l*weight_s0 + k*weight_s1 + 2];
                float *y_il = y + (i*3 + l) * m;
                #pragma omp simd
                for (int64_t s = 0; s < m; s++) {
                    y_il[s] += stored_ik[s]*weight_lk + stored_ik[s + 1] * weight_lk_ + stored_ik[s
                        + 2] * weight_lk_2;
                }
            }
        }
    }
    if (m < SHORT_ROW) {
        const int64_t groups = row_groups(n, 4, 32);
        const int64_t rows = (n + groups - 1) / groups;
        #pragma omp parallel for schedule(static) if(parallel: 12*m*n > 16384)
        for (int64_t group = 0; group < groups; group++) {
            const int64_t j0_ = group*rows;
            const int64_t j1_ = MIN(n, j0_ + rows);
            float *restrict grad_y_copy_own = grad_y_copy_rows + group*(3*m);
            double *restrict total_own = total_part + group*12;
            for (int64_t k = 0; k < 4; k++) {
                for (int64_t l = 0; l < 3; l++)
                    total_own[l*4 + k] = 0.0;
            }
            float *restrict total_rows = total_rows_part + group*12;
            double *restrict total_own_ = total_part_ + group*12;
            for (int64_t k = 0; k < 4; k++) {
                for (int64_t l = 0; l < 3; l++)
                    total_own_[l*4 + k] = 0.0;
            }
            float *restrict total_rows_ = total_rows_part_ + group*12;
            double *restrict total_own_2 = total_part_2 + group*12;
            for (int64_t k = 0; k < 4; k++) {
                for (int64_t l = 0; l < 3; l++)
                    total_own_2[l*4 + k] = 0.0;
            }
            float *restrict total_rows_2 = total_rows_part_2 + group*12;
            for (int64_t first_row = j0_; first_row < j1_; first_row += SUM_ROWS) {
                const int64_t last_row = MIN(j1_, first_row + SUM_ROWS);
                for (int64_t k = 0; k < 4; k++) {
                    for (int64_t l = 0; l < 3; l++)
                        total_rows[l*4 + k] = 0.0f;
                }
                for (int64_t k = 0; k < 4; k++) {
                    for (int64_t l = 0; l < 3; l++)
                        total_rows_[l*4 + k] = 0.0f;
                }
                for (int64_t k = 0; k < 4; k++) {
                    for (int64_t l = 0; l < 3; l++)
                        total_rows_2[l*4 + k] = 0.0f;
                }
                for (int64_t j = first_row; j < last_row; j++) {
                    for (int64_t q = 0; q < m; q++) {
                        float *grad_y_copy_own_q = grad_y_copy_own + q*3;
                        #pragma omp simd
                        for (int64_t l = 0; l < 3; l++)
                            grad_y_copy_own_q[l] = grad_y[j*grad_y_s0 + l*grad_y_s1 + q];
                    }
                    for (int64_t k = 0; k < 4; k++) {
                        float total[3];
                        for (int64_t l = 0; l < 3; l++)
                            total[l] = 0.0f;
                        float total_[3];
                        for (int64_t l = 0; l < 3; l++)
                            total_[l] = 0.0f;
                        float total_2[3];
                        for (int64_t l = 0; l < 3; l++)
                            total_2[l] = 0.0f;
                        float *stored_jk = stored + (j*4 + k) * (m + 2);
                        for (int64_t q = 0; q < m; q++) {
                            float *grad_y_copy_own_q = grad_y_copy_own + q*3;
                            const float t_ = stored_jk[q];
                            const float t_2 = stored_jk[q + 1];
                            const float t_3 = stored_jk[q + 2];
                            #pragma omp simd
                            for (int64_t l = 0; l < 3; l++) {
                                total[l] += grad_y_copy_own_q[l]*t_;
                                total_[l] += grad_y_copy_own_q[l]*t_2;
                                total_2[l] += grad_y_copy_own_q[l]*t_3;
                            }
                        }
                        #pragma omp simd
                        for (int64_t l = 0; l < 3; l++) {
                            total_rows[l*4 + k] += total[l];
                            total_rows_[l*4 + k] += total_[l];
                            total_rows_2[l*4 + k] += total_2[l];
                        }
                    }
                }
                #pragma omp simd
                for (int64_t u = 0; u < 12; u++)
                    total_own[u] += total_rows[u];
                #pragma omp simd
                for (int64_t u_ = 0; u_ < 12; u_++)
                    total_own_[u_] += total_rows_[u_];
                #pragma omp simd
                for (int64_t u_2 = 0; u_2 < 12; u_2++)
                    total_own_2[u_2] += total_rows_2[u_2];
            }
        }
        combine_sum_f32(groups, 12, total_part, stored_);
        combine_sum_f32(groups, 12, total_part_, stored_2);
        combine_sum_f32(groups, 12, total_part_2, stored_3);
    } else {
        const int64_t groups = row_groups(n, 4, 32);
        const int64_t rows = (n + groups - 1) / groups;
        #pragma omp parallel for schedule(static) if(parallel: 12*m*n > 16384)
        for (int64_t group = 0; group < groups; group++) {
            const int64_t j0_ = group*rows;
            const int64_t j1_ = MIN(n, j0_ + rows);
            double *restrict total_own = total_part_3 + group*12;
            for (int64_t k = 0; k < 4; k++) {
                for (int64_t l = 0; l < 3; l++)
                    total_own[l*4 + k] = 0.0;
            }
            float *restrict total_rows = total_rows_part_3 + group*12;
            double *restrict total_own_ = total_part_4 + group*12;
            for (int64_t k = 0; k < 4; k++) {
                for (int64_t l = 0; l < 3; l++)
                    total_own_[l*4 + k] = 0.0;
            }
            float *restrict total_rows_ = total_rows_part_4 + group*12;
            double *restrict total_own_2 = total_part_5 + group*12;
            for (int64_t k = 0; k < 4; k++) {
                for (int64_t l = 0; l < 3; l++)
                    total_own_2[l*4 + k] = 0.0;
            }
            float *restrict total_rows_2 = total_rows_part_5 + group*12;
            for (int64_t first_row = j0_; first_row < j1_; first_row += SUM_ROWS) {
                const int64_t last_row = MIN(j1_, first_row + SUM_ROWS);
                for (int64_t k = 0; k < 4; k++) {
                    for (int64_t l = 0; l < 3; l++)
                        total_rows[l*4 + k] = 0.0f;
                }
                for (int64_t k = 0; k < 4; k++) {
                    for (int64_t l = 0; l < 3; l++)
                        total_rows_[l*4 + k] = 0.0f;
                }
                for (int64_t k = 0; k < 4; k++) {
                    for (int64_t l = 0; l < 3; l++)
                        total_rows_2[l*4 + k] = 0.0f;
                }
                for (int64_t j = first_row; j < last_row; j++) {
                    for (int64_t k = 0; k < 4; k++) {
                        float *stored_jk = stored + (j*4 + k) * (m + 2);
                        for (int64_t l = 0; l < 3; l++) {
                            double total_sum = 0.0;
                            double total_sum_ = 0.0;
                            double total_sum_2 = 0.0;
                            const float *grad_y_jl = grad_y + (j*grad_y_s0 + l*grad_y_s1);
                            for (int64_t q0 = 0; q0 < m; q0 += SUM_BLOCK) {
                                const int64_t q1 = MIN(m, q0 + SUM_BLOCK);
                                float total_block = 0.0f;
                                float total_block_ = 0.0f;
                                float total_block_2 = 0.0f;
                                #pragma omp simd reduction(+:total_block,total_block_,total_block_2)
                                for (int64_t q = q0; q < q1; q++) {
                                    const float grad_y_jlq = grad_y_jl[q];
                                    total_block += grad_y_jlq*stored_jk[q];
                                    total_block_ += grad_y_jlq * stored_jk[q + 1];
                                    total_block_2 += grad_y_jlq * stored_jk[q + 2];
                                }
                                total_sum += total_block;
                                total_sum_ += total_block_;
                                total_sum_2 += total_block_2;
                            }
                            const float total = (float)total_sum;
                            const float total_ = (float)total_sum_;
                            const float total_2 = (float)total_sum_2;
                            total_rows[l*4 + k] += total;
                            total_rows_[l*4 + k] += total_;
                            total_rows_2[l*4 + k] += total_2;
                        }
                    }
                }
                #pragma omp simd
                for (int64_t u = 0; u < 12; u++)
                    total_own[u] += total_rows[u];
                #pragma omp simd
                for (int64_t u_ = 0; u_ < 12; u_++)
                    total_own_[u_] += total_rows_[u_];
                #pragma omp simd
                for (int64_t u_2 = 0; u_2 < 12; u_2++)
                    total_own_2[u_2] += total_rows_2[u_2];
            }
        }
        combine_sum_f32(groups, 12, total_part_3, stored_);
        combine_sum_f32(groups, 12, total_part_4, stored_2);
        combine_sum_f32(groups, 12, total_part_5, stored_3);
    }
    for (int64_t row = 0; row < 12; row++) {
        const int64_t l = row%3;
        const int64_t k = row/3;
        const float t_ = stored_[l*4 + k];
        const float t_2 = stored_2[l*4 + k];
        const float t_3 = stored_3[l*4 + k];
        float *grad_weight_lk = grad_weight + (l*4 + k) * 3;
        #pragma omp simd
        for (int64_t t = 0; t < 3; t++) {
            grad_weight_lk[t] = (t < 1 ? t_ : 0.0f) + (t - 1 >= 0 && t - 1 < 1 ? t_2 : 0.0f) + (t -
                2 >= 0 ? t_3 : 0.0f);
        }
    }
    return 0;
}
