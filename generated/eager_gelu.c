/*
 * Gelu, written by symgrad.
 * Backward PROVED (derived: no backward written), under: 0.7071067811865476 is read as 1/sqrt(2)
 *     (off by 7.6e-17); 1.1283791670955126 is read as 2/sqrt(pi) (off by 2.6e-17).
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

int64_t eager_gelu_forward_workspace(int64_t n)
{
    (void)n;
    return 0;
}

/*
 * eager gelu forward
 *     output = x*0.5*(erf(x*0.7071067811865476) + 1)
 * in:   x f32[n]
 * out:  output f32[n]
 */
int eager_gelu_forward(
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
            output[i] = x_i*0.5f * (erff(x_i*0.70710677f) + 1.0f);
        }
    }
    return 0;
}

int64_t eager_gelu_backward_workspace(int64_t n)
{
    (void)n;
    return 0;
}

/*
 * eager gelu backward
 *     t0 = x*0.7071067811865476
 *     grad_x = grad_output*(erf(t0) + 1)*0.5 +
 *         grad_output*(x*0.5)*(exp(-square(t0))*1.1283791670955126)*0.7071067811865476
 * in:   x f32[n], grad_output f32[n]
 * out:  grad_x f32[n]
 * Backward PROVED (derived: no backward written), under: 0.7071067811865476 is read as 1/sqrt(2)
 *     (off by 7.6e-17); 1.1283791670955126 is read as 2/sqrt(pi) (off by 2.6e-17).
 */
int eager_gelu_backward(
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
            const float grad_output_i = grad_output[i];
            const float x_i = x[i];
            const float t = x_i*0.70710677f;
            const float t_ = grad_output_i*(x_i*0.5f) * (expf(-(t * t)) * 1.1283792f) * 0.70710677f;
            grad_x[i] = grad_output_i * (erff(t) + 1.0f) * 0.5f + t_;
        }
    }
    return 0;
}
