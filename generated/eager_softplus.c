/*
 * Softplus, written by symgrad.
 * Backward PROVED (derived: no backward written).
 */
#include <math.h>
#include <stdint.h>

#ifndef _OPENMP
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#endif

/* Several numbers at once: libmvec has these functions. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 35)
__attribute__((simd("notinbranch"))) float expf(float);
__attribute__((simd("notinbranch"))) float log1pf(float);
#endif
#endif

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define BLOCK 4096 /* elements: vectors end at the same places for any number of threads */

int64_t eager_softplus_forward_workspace(int64_t n)
{
    (void)n;
    return 0;
}

/*
 * eager softplus forward
 *     output = softplus(x)
 * in:   x f32[n]
 * out:  output f32[n]
 */
int eager_softplus_forward(
    int64_t n,
    const float *restrict x,
    float *restrict output,
    void *workspace)
{
    (void)workspace;
    #pragma omp parallel for schedule(static) if(parallel: n > 4096)
    for (int64_t i0 = 0; i0 < n; i0 += BLOCK) {
        const int64_t i1 = MIN(n, i0 + BLOCK);
        #pragma omp simd
        for (int64_t i = i0; i < i1; i++) {
            const float x_i = x[i];
            output[i] = (x_i < 0.0f ? 0.0f : x_i) + log1pf(expf(-fabsf(x_i)));
        }
    }
    return 0;
}

int64_t eager_softplus_backward_workspace(int64_t n)
{
    (void)n;
    return 0;
}

/*
 * eager softplus backward
 *     grad_x = grad_output*sigmoid(x)
 * in:   x f32[n], grad_output f32[n]
 * out:  grad_x f32[n]
 * Backward PROVED (derived: no backward written).
 */
int eager_softplus_backward(
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
        for (int64_t i = i0; i < i1; i++)
            grad_x[i] = grad_output[i] * (1.0f / (1.0f + expf(-x[i])));
    }
    return 0;
}
