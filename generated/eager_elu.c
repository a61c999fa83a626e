/*
 * Elu, written by symgrad.
 * Backward PROVED (derived: no backward written), under: x == 0 (yours gives 1 there).
 */
#include <math.h>
#include <stdint.h>

#ifndef _OPENMP
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#endif

/* Several numbers at once: libmvec has these functions. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 35)
__attribute__((simd("notinbranch"))) float expm1f(float);
#endif
#endif

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define BLOCK 4096 /* elements: vectors end at the same places for any number of threads */

int64_t eager_elu_forward_workspace(int64_t n)
{
    (void)n;
    return 0;
}

/*
 * eager elu forward
 *     t0 = x > 0
 *     output = where(t0, x, expm1(where(t0, 0.0, x)))
 * in:   x f32[n]
 * out:  output f32[n]
 */
int eager_elu_forward(
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
        for (int64_t i = i0; i < i1; i++) {
            const float x_i = x[i];
            const int t = x_i > 0.0f;
            output[i] = t ? x_i : expm1f(t ? 0.0f : x_i);
        }
    }
    return 0;
}

int64_t eager_elu_backward_workspace(int64_t n)
{
    (void)n;
    return 0;
}

/*
 * eager elu backward
 *     t0 = x > 0
 *     grad_x = where(t0, grad_output, 0.0) + where(t0, 0.0, where(t0, 0.0,
 *         grad_output)*(expm1(where(t0, 0.0, x)) + 1.0))
 * in:   x f32[n], grad_output f32[n]
 * out:  grad_x f32[n]
 * Backward PROVED (derived: no backward written), under: x == 0 (yours gives 1 there).
 */
int eager_elu_backward(
    int64_t n,
    const float *restrict x,
    const float *restrict grad_output,
    float *restrict grad_x,
    void *workspace)
{
    (void)workspace;
    #pragma omp parallel for schedule(static) if(parallel: n > 4096)
    for (int64_t i0 = 0; i0 < n; i0 += BLOCK) {
        const int64_t i1 = MIN(n, i0 + BLOCK);
        #pragma omp simd
        for (int64_t i = i0; i < i1; i++) {
            const float x_i = x[i];
            const int t = x_i > 0.0f;
            const float grad_output_i = grad_output[i];
            const float t_ = t ? 0.0f : (t ? 0.0f : grad_output_i) * (expm1f(t ? 0.0f : x_i) +
                1.0f);
            grad_x[i] = (t ? grad_output_i : 0.0f) + t_;
        }
    }
    return 0;
}
