#include "_prelude.h"

int64_t softmax_backward_workspace(int64_t n, int64_t m)
{
    (void)n;
    (void)m;
    return 0;
}

/*
 * softmax backward
 * in:   y f32[n m], grad_y f32[n m]
 * out:  grad_x f32[n m]
 */
int softmax_backward(
    int64_t n,
    int64_t m,
    const float *restrict y,
    int64_t y_s0,
    const float *restrict grad_y,
    int64_t grad_y_s0,
    float *restrict grad_x,
    void *workspace)
{
    (void)workspace;
    if (m == 0)
        return 0;
    if (m < SHORT_ROW) {
        #pragma omp parallel for schedule(static) if(parallel: m*n > 16384)
        for (int64_t i0 = 0; i0 < n; i0 += 64) {
            const int64_t i3 = MIN(n, i0 + 64);
            float inner[64];
            for (int64_t i = i0; i < i3; i++)
                inner[i - i0] = 0.0f;
            for (int64_t j = 0; j < m; j++) {
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++)
                    inner[i - i0] += grad_y[i*grad_y_s0 + j] * y[i*y_s0 + j];
            }
            for (int64_t j = 0; j < m; j++) {
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++)
                    grad_x[i*m + j] = y[i*y_s0 + j] * (grad_y[i*grad_y_s0 + j] - inner[i - i0]);
            }
        }
    } else {
        #pragma omp parallel for schedule(static) if(parallel: m*n > 16384)
        for (int64_t i = 0; i < n; i++) {
            double inner_sum = 0.0;
            const float *y_i = y + i*y_s0;
            const float *grad_y_i = grad_y + i*grad_y_s0;
            for (int64_t j0_ = 0; j0_ < m; j0_ += SUM_BLOCK) {
                const int64_t j1_ = MIN(m, j0_ + SUM_BLOCK);
                float inner_block = 0.0f;
                #pragma omp simd reduction(+:inner_block)
                for (int64_t j = j0_; j < j1_; j++)
                    inner_block += grad_y_i[j]*y_i[j];
                inner_sum += inner_block;
            }
            const float inner = (float)inner_sum;
            float *grad_x_i = grad_x + i*m;
            #pragma omp simd
            for (int64_t j = 0; j < m; j++)
                grad_x_i[j] = y_i[j] * (grad_y_i[j] - inner);
        }
    }
    return 0;
}
