/*
 * Softmax, written by symgrad.
 * Backward PROVED for dim = -1.
 * This C VALIDATED against what was traced, for all sizes and over the reals.
 */
#include "_prelude.h"

int64_t nn_softmax_forward_workspace(int64_t n, int64_t m)
{
    (void)n;
    (void)m;
    return 0;
}

/*
 * nn softmax forward
 *     y = exp(x - amax(x, axes=(1,)))/sum(exp(x - amax(x, axes=(1,))), axes=(1,))
 * in:   x f32[n m]
 * out:  y f32[n m]
 * Evaluated as written but for: sums in lanes, sums in blocks, sums of floats in double.
 */
int nn_softmax_forward(
    int64_t n,
    int64_t m,
    const float *restrict x,
    int64_t x_s0,
    float *restrict y,
    void *workspace)
{
    (void)workspace;
    if (m == 0)
        return 0;
    if (m < SHORT_ROW) {
        #pragma omp parallel for schedule(static) if(parallel: m*n > 2048)
        for (int64_t i0 = 0; i0 < n; i0 += 64) {
            const int64_t i3 = MIN(n, i0 + 64);
            float greatest[64];
            float y_total[64];
            for (int64_t i = i0; i < i3; i++)
                greatest[i - i0] = -INFINITY;
            for (int64_t j = 0; j < m; j++) {
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++) {
                    const float value = x[i*x_s0 + j];
                    greatest[i - i0] = value > greatest[i - i0] || value != value ? value :
                        greatest[i - i0];
                }
            }
            for (int64_t i = i0; i < i3; i++)
                y_total[i - i0] = 0.0f;
            for (int64_t j = 0; j < m; j++) {
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++) {
                    const float t = symgrad_expf(x[i*x_s0 + j] - greatest[i - i0]);
                    y[i*m + j] = t;
                    y_total[i - i0] += t;
                }
            }
            for (int64_t j = 0; j < m; j++) {
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++) {
                    const float kept = y[i*m + j];
                    y[i*m + j] = kept / y_total[i - i0];
                }
            }
        }
    } else {
        #pragma omp parallel for schedule(static) if(parallel: m*n > 2048)
        for (int64_t i = 0; i < n; i++) {
            float greatest = -INFINITY;
            int greatest_nan = 0;
            const float *x_i = x + i*x_s0;
            #pragma omp simd reduction(max:greatest) reduction(|:greatest_nan)
            for (int64_t j = 0; j < m; j++) {
                const float value = x_i[j];
                greatest = value > greatest ? value : greatest;
                greatest_nan |= value != value;
            }
            if (greatest_nan)
                greatest = NAN;
            double y_total_sum = 0.0;
            float *y_i = y + i*m;
            for (int64_t j0_ = 0; j0_ < m; j0_ += SUM_BLOCK) {
                const int64_t j1_ = MIN(m, j0_ + SUM_BLOCK);
                float y_total_block = 0.0f;
                #pragma omp simd reduction(+:y_total_block)
                for (int64_t j = j0_; j < j1_; j++) {
                    const float t = symgrad_expf(x_i[j] - greatest);
                    y_i[j] = t;
                    y_total_block += t;
                }
                y_total_sum += y_total_block;
            }
            const float y_total = (float)y_total_sum;
            #pragma omp simd
            for (int64_t j = 0; j < m; j++) {
                const float kept = y_i[j];
                y_i[j] = kept/y_total;
            }
        }
    }
    return 0;
}

int64_t nn_softmax_backward_workspace(int64_t n, int64_t m)
{
    (void)n;
    (void)m;
    return 0;
}

/*
 * nn softmax backward
 *     grad_x = y*(grad_y - sum(grad_y*y, axes=(1,)))
 * in:   y f32[n m], grad_y f32[n m]
 * out:  grad_x f32[n m]
 * Backward PROVED for dim = -1.
 * Evaluated as written but for: sums in lanes, sums in blocks, sums of floats in double.
 */
int nn_softmax_backward(
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
            float total[64];
            for (int64_t i = i0; i < i3; i++)
                total[i - i0] = 0.0f;
            for (int64_t j = 0; j < m; j++) {
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++)
                    total[i - i0] += grad_y[i*grad_y_s0 + j] * y[i*y_s0 + j];
            }
            for (int64_t j = 0; j < m; j++) {
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++)
                    grad_x[i*m + j] = y[i*y_s0 + j] * (grad_y[i*grad_y_s0 + j] - total[i - i0]);
            }
        }
    } else {
        #pragma omp parallel for schedule(static) if(parallel: m*n > 16384)
        for (int64_t i = 0; i < n; i++) {
            double total_sum = 0.0;
            const float *y_i = y + i*y_s0;
            const float *grad_y_i = grad_y + i*grad_y_s0;
            for (int64_t j0_ = 0; j0_ < m; j0_ += SUM_BLOCK) {
                const int64_t j1_ = MIN(m, j0_ + SUM_BLOCK);
                float total_block = 0.0f;
                #pragma omp simd reduction(+:total_block)
                for (int64_t j = j0_; j < j1_; j++)
                    total_block += grad_y_i[j]*y_i[j];
                total_sum += total_block;
            }
            const float total = (float)total_sum;
            float *grad_x_i = grad_x + i*m;
            #pragma omp simd
            for (int64_t j = 0; j < m; j++)
                grad_x_i[j] = y_i[j] * (grad_y_i[j] - total);
        }
    }
    return 0;
}
