/*
 * Tanh, written by symgrad.
 * Backward PROVED.
 */
#include <math.h>
#include <stdint.h>

#ifndef _OPENMP
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#endif

/* Several numbers at once: libmvec has these functions. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 35)
__attribute__((simd("notinbranch"))) float tanhf(float);
#endif
#endif

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define BLOCK 4096 /* elements: vectors end at the same places for any number of threads */

int64_t tanh_forward_workspace(int64_t n, int64_t m)
{
    (void)n;
    (void)m;
    return 0;
}

/*
 * tanh forward
 *     y = tanh(x)
 * in:   x f32[n m]
 * out:  y f32[n m]
 */
int tanh_forward(
    int64_t n,
    int64_t m,
    const float *restrict x,
    float *restrict y,
    void *workspace)
{
    (void)workspace;
    #pragma omp parallel for schedule(static) if(parallel: m*n > 8192)
    for (int64_t i0 = 0; i0 < m*n; i0 += BLOCK) {
        const int64_t i1 = MIN(m*n, i0 + BLOCK);
        #pragma omp simd
        for (int64_t i = i0; i < i1; i++)
            y[i] = tanhf(x[i]);
    }
    return 0;
}

int64_t tanh_backward_workspace(int64_t n, int64_t m)
{
    (void)n;
    (void)m;
    return 0;
}

/*
 * tanh backward
 *     grad_x = grad_y*(1 - square(y))
 * in:   y f32[n m], grad_y f32[n m]
 * out:  grad_x f32[n m]
 * Backward PROVED.
 */
int tanh_backward(
    int64_t n,
    int64_t m,
    const float *restrict y,
    const float *restrict grad_y,
    float *restrict grad_x,
    void *workspace)
{
    (void)workspace;
    #pragma omp parallel for schedule(static) if(parallel: m*n > 32768)
    for (int64_t i0 = 0; i0 < m*n; i0 += BLOCK) {
        const int64_t i1 = MIN(m*n, i0 + BLOCK);
        #pragma omp simd
        for (int64_t i = i0; i < i1; i++) {
            const float y_i = y[i];
            grad_x[i] = grad_y[i] * (1.0f - y_i * y_i);
        }
    }
    return 0;
}
