/*
 * Relu, written by symgrad.
 * Backward PROVED (derived: no backward written), under: x == 0 (yours gives 0 there).
 */
#include <math.h>
#include <stdint.h>

#ifndef _OPENMP
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#endif

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define BLOCK 4096 /* elements: vectors end at the same places for any number of threads */

int64_t eager_relu_forward_workspace(int64_t n)
{
    (void)n;
    return 0;
}

/*
 * eager relu forward
 *     output = relu(x)
 * in:   x f32[n]
 * out:  output f32[n]
 */
int eager_relu_forward(
    int64_t n,
    const float *restrict x,
    float *restrict output,
    void *workspace)
{
    (void)workspace;
    #pragma omp parallel for schedule(static) if(parallel: n > 65536)
    for (int64_t i0 = 0; i0 < n; i0 += BLOCK) {
        const int64_t i1 = MIN(n, i0 + BLOCK);
        #pragma omp simd
        for (int64_t i = i0; i < i1; i++) {
            const float x_i = x[i];
            output[i] = x_i < 0.0f ? 0.0f : x_i;
        }
    }
    return 0;
}

int64_t eager_relu_backward_workspace(int64_t n)
{
    (void)n;
    return 0;
}

/*
 * eager relu backward
 *     grad_x = where(output <= 0.0, 0.0, grad_output)
 * in:   output f32[n], grad_output f32[n]
 * out:  grad_x f32[n]
 * Backward PROVED (derived: no backward written), under: x == 0 (yours gives 0 there).
 */
int eager_relu_backward(
    int64_t n,
    const float *restrict output,
    const float *restrict grad_output,
    float *restrict grad_x,
    void *workspace)
{
    (void)workspace;
    #pragma omp parallel for schedule(static) if(parallel: n > 32768)
    for (int64_t i0 = 0; i0 < n; i0 += BLOCK) {
        const int64_t i1 = MIN(n, i0 + BLOCK);
        #pragma omp simd
        for (int64_t i = i0; i < i1; i++)
            grad_x[i] = output[i] <= 0.0f ? 0.0f : grad_output[i];
    }
    return 0;
}
