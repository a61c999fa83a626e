/*
 * Sigmoid, written by symgrad.
 * Backward PROVED.
 * This C VALIDATED against what was traced, for all sizes and over the reals.
 */
#include "_prelude.h"

int64_t nn_sigmoid_forward_workspace(int64_t s)
{
    (void)s;
    return 0;
}

/*
 * nn sigmoid forward
 *     y = sigmoid(x)
 * in:   x f32[s]
 * out:  y f32[s]
 * Evaluated as written.
 */
int nn_sigmoid_forward(
    int64_t s,
    const float *restrict x,
    float *restrict y,
    void *workspace)
{
    (void)workspace;
    #pragma omp parallel for schedule(static) if(parallel: s > 8192)
    for (int64_t i0 = 0; i0 < s; i0 += BLOCK) {
        const int64_t i1 = MIN(s, i0 + BLOCK);
        #pragma omp simd
        for (int64_t i = i0; i < i1; i++)
            y[i] = symgrad_sigmoidf(x[i]);
    }
    return 0;
}

int64_t nn_sigmoid_backward_workspace(int64_t s)
{
    (void)s;
    return 0;
}

/*
 * nn sigmoid backward
 *     grad_x = grad_y*(1 - y)*y
 * in:   y f32[s], grad_y f32[s]
 * out:  grad_x f32[s]
 * Backward PROVED.
 * Evaluated as written.
 */
int nn_sigmoid_backward(
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
        for (int64_t i = i0; i < i1; i++) {
            const float y_i = y[i];
            grad_x[i] = grad_y[i] * (1.0f - y_i) * y_i;
        }
    }
    return 0;
}
