/*
 * Erf, written by symgrad.
 * Backward PROVED (derived: no backward written), literal: 1.1283791670955126 is read as
 *     2/sqrt(pi) (off by 2.6e-17).
 * This C VALIDATED against what was traced, for all sizes and over the reals.
 */
#include "_prelude.h"

int64_t nn_erf_forward_workspace(int64_t n)
{
    (void)n;
    return 0;
}

/*
 * nn erf forward
 *     output = erf(x)
 * in:   x f32[n]
 * out:  output f32[n]
 * Evaluated as written.
 */
int nn_erf_forward(
    int64_t n,
    const float *restrict x,
    float *restrict output,
    void *workspace)
{
    (void)workspace;
    #pragma omp parallel for schedule(static) if(parallel: n > 8192)
    for (int64_t i0 = 0; i0 < n; i0 += BLOCK) {
        const int64_t i1 = MIN(n, i0 + BLOCK);
        #pragma omp simd
        for (int64_t i = i0; i < i1; i++)
            output[i] = symgrad_erff(x[i]);
    }
    return 0;
}

int64_t nn_erf_backward_workspace(int64_t n)
{
    (void)n;
    return 0;
}

/*
 * nn erf backward
 *     grad_x = grad_output*(exp(-square(x))*1.1283791670955126)
 * in:   x f32[n], grad_output f32[n]
 * out:  grad_x f32[n]
 * Backward PROVED (derived: no backward written), literal: 1.1283791670955126 is read as
 *     2/sqrt(pi) (off by 2.6e-17).
 * Evaluated as written.
 */
int nn_erf_backward(
    int64_t n,
    const float *restrict x,
    const float *restrict grad_output,
    float *restrict grad_x,
    void *workspace)
{
    (void)workspace;
    #pragma omp parallel for schedule(static) if(parallel: n > 8192)
    for (int64_t i0 = 0; i0 < n; i0 += BLOCK) {
        const int64_t i1 = MIN(n, i0 + BLOCK);
        #pragma omp simd
        for (int64_t i = i0; i < i1; i++) {
            const float x_i = x[i];
            grad_x[i] = grad_output[i] * (symgrad_expf(-(x_i * x_i)) * 1.1283792f);
        }
    }
    return 0;
}
