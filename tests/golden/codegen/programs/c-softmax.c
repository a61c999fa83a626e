#include "_prelude.h"

int64_t softmax_workspace(int64_t n, int64_t m)
{
    (void)n;
    (void)m;
    return 0;
}

/*
 * softmax
 * in:   x f32[n m], grad_y f32[n m]
 * out:  y f32[n m], grad_x f32[n m]
 */
int softmax(
    int64_t n,
    int64_t m,
    const float *restrict x,
    int64_t x_s0,
    const float *restrict grad_y,
    int64_t grad_y_s0,
    float *restrict y,
    float *restrict grad_x,
    void *workspace)
{
    (void)workspace;
    if (m == 0)
        return 0;
    if (m < SHORT_ROW) {
        #pragma omp parallel for schedule(static) if(parallel: m*n > 1024)
        for (int64_t i0 = 0; i0 < n; i0 += 64) {
            const int64_t i3 = MIN(n, i0 + 64);
            float top[64];
            float total[64];
            float inner[64];
            for (int64_t i = i0; i < i3; i++)
                top[i - i0] = -INFINITY;
            for (int64_t j = 0; j < m; j++) {
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++) {
                    const float value = x[i*x_s0 + j];
                    top[i - i0] = value > top[i - i0] || value != value ? value : top[i - i0];
                }
            }
            for (int64_t i = i0; i < i3; i++)
                total[i - i0] = 0.0f;
            for (int64_t j = 0; j < m; j++) {
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++) {
                    const float e = symgrad_expf(x[i*x_s0 + j] - top[i - i0]);
                    y[i*m + j] = e;
                    total[i - i0] += e;
                }
            }
            for (int64_t i = i0; i < i3; i++)
                inner[i - i0] = 0.0f;
            for (int64_t j = 0; j < m; j++) {
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++) {
                    const float e = y[i*m + j];
                    const float y_ = e / total[i - i0];
                    y[i*m + j] = y_;
                    inner[i - i0] += grad_y[i*grad_y_s0 + j] * y_;
                }
            }
            for (int64_t j = 0; j < m; j++) {
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++)
                    grad_x[i*m + j] = y[i*m + j] * (grad_y[i*grad_y_s0 + j] - inner[i - i0]);
            }
        }
    } else {
        #pragma omp parallel for schedule(static) if(parallel: m*n > 1024)
        for (int64_t i = 0; i < n; i++) {
            float top = -INFINITY;
            int top_nan = 0;
            const float *x_i = x + i*x_s0;
            #pragma omp simd reduction(max:top) reduction(|:top_nan)
            for (int64_t j = 0; j < m; j++) {
                const float value = x_i[j];
                top = value > top ? value : top;
                top_nan |= value != value;
            }
            if (top_nan)
                top = NAN;
            double total_sum = 0.0;
            float *y_i = y + i*m;
            for (int64_t j0_ = 0; j0_ < m; j0_ += SUM_BLOCK) {
                const int64_t j1_ = MIN(m, j0_ + SUM_BLOCK);
                float total_block = 0.0f;
                #pragma omp simd reduction(+:total_block)
                for (int64_t j = j0_; j < j1_; j++) {
                    const float e = symgrad_expf(x_i[j] - top);
                    y_i[j] = e;
                    total_block += e;
                }
                total_sum += total_block;
            }
            const float total = (float)total_sum;
            double inner_sum = 0.0;
            const float *grad_y_i = grad_y + i*grad_y_s0;
            for (int64_t j0_ = 0; j0_ < m; j0_ += SUM_BLOCK) {
                const int64_t j1_ = MIN(m, j0_ + SUM_BLOCK);
                float inner_block = 0.0f;
                #pragma omp simd reduction(+:inner_block)
                for (int64_t j = j0_; j < j1_; j++) {
                    const float e = y_i[j];
                    const float y_ = e/total;
                    y_i[j] = y_;
                    inner_block += grad_y_i[j]*y_;
                }
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
