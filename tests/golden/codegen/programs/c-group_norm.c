#include "_prelude.h"

int64_t group_norm_workspace(int64_t n, int64_t m)
{
    (void)n;
    (void)m;
    return 0;
}

/*
 * group norm
 * in:   x f32[n 6 m], grad_y f32[n 6 m]
 * out:  y f32[n 6 m], grad_x f32[n 6 m]
 */
int group_norm(
    int64_t n,
    int64_t m,
    const float *restrict x,
    int64_t x_s0,
    int64_t x_s1,
    const float *restrict grad_y,
    int64_t grad_y_s0,
    int64_t grad_y_s1,
    float *restrict y,
    float *restrict grad_x,
    void *workspace)
{
    (void)workspace;
    if (m == 0)
        return 0;
    #pragma omp parallel for schedule(static) if(parallel: 6*m*n > 2048)
    for (int64_t row = 0; row < 2*n; row++) {
        const int64_t j = row%2;
        const int64_t i = row/2;
        double total_sum = 0.0;
        double total_sum_ = 0.0;
        for (int64_t k = 0; k < 3; k++) {
            const float *x_ijk = x + (i*x_s0 + (k + 3*j) * x_s1);
            const float *grad_y_ijk = grad_y + (i*grad_y_s0 + (k + 3*j) * grad_y_s1);
            for (int64_t l0 = 0; l0 < m; l0 += SUM_BLOCK) {
                const int64_t l1 = MIN(m, l0 + SUM_BLOCK);
                float total_block = 0.0f;
                float total_block_ = 0.0f;
                #pragma omp simd reduction(+:total_block,total_block_)
                for (int64_t l = l0; l < l1; l++) {
                    total_block += x_ijk[l];
                    total_block_ += grad_y_ijk[l];
                }
                total_sum += total_block;
                total_sum_ += total_block_;
            }
        }
        const float total = (float)total_sum;
        const float total_ = (float)total_sum_;
        double total_sum_2 = 0.0;
        double total_sum_3 = 0.0;
        double total_sum_4 = 0.0;
        const float t = total/(float)(3*m);
        for (int64_t k = 0; k < 3; k++) {
            const float *x_ijk = x + (i*x_s0 + (k + 3*j) * x_s1);
            const float *grad_y_ijk = grad_y + (i*grad_y_s0 + (k + 3*j) * grad_y_s1);
            for (int64_t l0 = 0; l0 < m; l0 += SUM_BLOCK) {
                const int64_t l1 = MIN(m, l0 + SUM_BLOCK);
                float total_block = 0.0f;
                float total_block_ = 0.0f;
                float total_block_2 = 0.0f;
                #pragma omp simd reduction(+:total_block,total_block_,total_block_2)
                for (int64_t l = l0; l < l1; l++) {
                    const float centred = x_ijk[l] - t;
                    total_block += centred*centred;
                    total_block_ += centred;
                    total_block_2 += grad_y_ijk[l]*centred;
                }
                total_sum_2 += total_block;
                total_sum_3 += total_block_;
                total_sum_4 += total_block_2;
            }
        }
        const float total_2 = (float)total_sum_2;
        const float total_3 = (float)total_sum_3;
        const float total_4 = (float)total_sum_4;
        const float rstd = 1.0f / sqrtf(total_2/(float)(3*m) + 1e-05f);
        const float slope = total_4/(float)(3*m) * (rstd*rstd*rstd);
        const float t_ = (total_*rstd - slope*total_3) / (float)(3*m);
        for (int64_t k = 0; k < 3; k++) {
            const float *x_ijk = x + (i*x_s0 + (k + 3*j) * x_s1);
            const float *grad_y_ijk = grad_y + (i*grad_y_s0 + (k + 3*j) * grad_y_s1);
            float *y_ijk = y + ((i*2 + j) * 3 + k) * m;
            float *grad_x_ijk = grad_x + ((i*2 + j) * 3 + k) * m;
            #pragma omp simd
            for (int64_t l = 0; l < m; l++) {
                const float centred = x_ijk[l] - t;
                y_ijk[l] = centred*rstd;
                grad_x_ijk[l] = grad_y_ijk[l]*rstd - slope*centred - t_;
            }
        }
    }
    return 0;
}
