/*
 * ReLU, written by symgrad.
 * Backward PROVED, at the kink: x == 0 (yours gives 0 there).
 * This C VALIDATED against what was traced, for all sizes and over the reals.
 */
#include "_prelude.h"

int64_t nn_relu_forward_workspace(int64_t s)
{
    (void)s;
    return 0;
}

/*
 * nn relu forward
 *     y = relu(x)
 * in:   x f32[s]
 * out:  y f32[s]
 * Evaluated as written.
 */
int nn_relu_forward(
    int64_t s,
    const float *restrict x,
    float *restrict y,
    void *workspace)
{
    (void)workspace;
    #pragma omp parallel for schedule(static) if(parallel: s > 65536)
    for (int64_t i0 = 0; i0 < s; i0 += BLOCK) {
        const int64_t i1 = MIN(s, i0 + BLOCK);
        #pragma omp simd
        for (int64_t i = i0; i < i1; i++) {
            const float x_i = x[i];
            y[i] = x_i < 0.0f ? 0.0f : x_i;
        }
    }
    return 0;
}

int64_t nn_relu_backward_workspace(int64_t s)
{
    (void)s;
    return 0;
}

/*
 * nn relu backward
 *     grad_x = where(y <= 0, 0.0, grad_y)
 * in:   y f32[s], grad_y f32[s]
 * out:  grad_x f32[s]
 * Backward PROVED, at the kink: x == 0 (yours gives 0 there).
 * Evaluated as written.
 */
int nn_relu_backward(
    int64_t s,
    const float *restrict y,
    const float *restrict grad_y,
    float *restrict grad_x,
    void *workspace)
{
    (void)workspace;
    #pragma omp parallel for schedule(static) if(parallel: s > 32768)
    for (int64_t i0 = 0; i0 < s; i0 += BLOCK) {
        const int64_t i1 = MIN(s, i0 + BLOCK);
        #pragma omp simd
        for (int64_t i = i0; i < i1; i++)
            grad_x[i] = y[i] <= 0.0f ? 0.0f : grad_y[i];
    }
    return 0;
}
