/*
 * GELU, written by symgrad.
 * Backward PROVED, literal: 1.4142135623730951 is read as sqrt(2) (off by 5.1e-17); literal:
 *     2.5066282746310002 is read as sqrt(2*pi) (off by 3.0e-16); literal: 0.7071067811865476 is
 *     read as 1/sqrt(2) (off by 7.6e-17).
 * This C VALIDATED against what was traced, for all sizes and over the reals.
 */
#include "_prelude.h"

int64_t nn_gelu_forward_workspace(int64_t s)
{
    (void)s;
    return 0;
}

/*
 * nn gelu forward
 *     y = x*0.5*(erf(x*0.7071067811865476) + 1)
 * in:   x f32[s]
 * out:  y f32[s]
 * Evaluated as written.
 */
int nn_gelu_forward(
    int64_t s,
    const float *restrict x,
    float *restrict y,
    void *workspace)
{
    (void)workspace;
    #pragma omp parallel for schedule(static) if(parallel: s > 4096)
    for (int64_t i0 = 0; i0 < s; i0 += BLOCK) {
        const int64_t i1 = MIN(s, i0 + BLOCK);
        #pragma omp simd
        for (int64_t i = i0; i < i1; i++) {
            const float x_i = x[i];
            y[i] = x_i*0.5f * (symgrad_erff(x_i*0.70710677f) + 1.0f);
        }
    }
    return 0;
}

int64_t nn_gelu_backward_workspace(int64_t s)
{
    (void)s;
    return 0;
}

/*
 * nn gelu backward
 *     grad_x = grad_y*(0.5*(1 + erf(x/1.4142135623730951)) + x*(exp(-0.5*x*x)/2.5066282746310002))
 * in:   x f32[s], grad_y f32[s]
 * out:  grad_x f32[s]
 * Backward PROVED, literal: 1.4142135623730951 is read as sqrt(2) (off by 5.1e-17); literal:
 *     2.5066282746310002 is read as sqrt(2*pi) (off by 3.0e-16); literal: 0.7071067811865476 is
 *     read as 1/sqrt(2) (off by 7.6e-17).
 * Evaluated as written.
 */
int nn_gelu_backward(
    int64_t s,
    const float *restrict x,
    const float *restrict grad_y,
    float *restrict grad_x,
    void *workspace)
{
    (void)workspace;
    #pragma omp parallel for schedule(static) if(parallel: s > 4096)
    for (int64_t i0 = 0; i0 < s; i0 += BLOCK) {
        const int64_t i1 = MIN(s, i0 + BLOCK);
        #pragma omp simd
        for (int64_t i = i0; i < i1; i++) {
            const float x_i = x[i];
            const float t = 0.5f * (1.0f + symgrad_erff(x_i/1.4142135f)) + x_i *
                (symgrad_expf(-0.5f*x_i*x_i) / 2.5066283f);
            grad_x[i] = grad_y[i]*t;
        }
    }
    return 0;
}
