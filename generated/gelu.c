/*
 * Gelu, written by symgrad.
 * Backward PROVED, under: 1.4142135623730951 is read as sqrt(2) (off by 5.1e-17);
 *     2.5066282746310002 is read as sqrt(2*pi) (off by 3.0e-16).
 */
#include <math.h>
#include <stdint.h>

#ifndef _OPENMP
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#endif

/* Several numbers at once: libmvec has these functions. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 35)
__attribute__((simd("notinbranch"))) float erff(float);
__attribute__((simd("notinbranch"))) float expf(float);
#endif
#endif

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define BLOCK 4096 /* elements: vectors end at the same places for any number of threads */

int64_t gelu_forward_workspace(int64_t n, int64_t m)
{
    (void)n;
    (void)m;
    return 0;
}

/*
 * gelu forward
 *     y = 0.5*x*(1 + erf(x/1.4142135623730951))
 * in:   x f32[n m]
 * out:  y f32[n m]
 */
int gelu_forward(
    int64_t n,
    int64_t m,
    const float *restrict x,
    float *restrict y,
    void *workspace)
{
    (void)workspace;
    #pragma omp parallel for schedule(static) if(parallel: m*n > 4096)
    for (int64_t i0 = 0; i0 < m*n; i0 += BLOCK) {
        const int64_t i1 = MIN(m*n, i0 + BLOCK);
        #pragma omp simd
        for (int64_t i = i0; i < i1; i++) {
            const float x_i = x[i];
            y[i] = 0.5f*x_i * (1.0f + erff(x_i/1.4142135f));
        }
    }
    return 0;
}

int64_t gelu_backward_workspace(int64_t n, int64_t m)
{
    (void)n;
    (void)m;
    return 0;
}

/*
 * gelu backward
 *     distribution = 0.5*(1 + erf(x/1.4142135623730951))
 *     density = exp(-0.5*x*x)/2.5066282746310002
 *     grad_x = grad_y*(distribution + x*density)
 * in:   x f32[n m], grad_y f32[n m]
 * out:  grad_x f32[n m]
 * Backward PROVED, under: 1.4142135623730951 is read as sqrt(2) (off by 5.1e-17);
 *     2.5066282746310002 is read as sqrt(2*pi) (off by 3.0e-16).
 */
int gelu_backward(
    int64_t n,
    int64_t m,
    const float *restrict x,
    const float *restrict grad_y,
    float *restrict grad_x,
    void *workspace)
{
    (void)workspace;
    #pragma omp parallel for schedule(static) if(parallel: m*n > 4096)
    for (int64_t i0 = 0; i0 < m*n; i0 += BLOCK) {
        const int64_t i1 = MIN(m*n, i0 + BLOCK);
        #pragma omp simd
        for (int64_t i = i0; i < i1; i++) {
            const float x_i = x[i];
            const float distribution = 0.5f * (1.0f + erff(x_i/1.4142135f));
            const float density = expf(-0.5f*x_i*x_i) / 2.5066283f;
            grad_x[i] = grad_y[i] * (distribution + x_i*density);
        }
    }
    return 0;
}
