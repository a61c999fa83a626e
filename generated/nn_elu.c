/*
 * ELU, written by symgrad.
 * Backward PROVED for alpha = 1.0.
 * This C VALIDATED against what was traced, for all sizes and over the reals.
 */
#include "_prelude.h"

/* Several numbers at once: libmvec has these functions. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 35)
__attribute__((simd("notinbranch"))) float expm1f(float);
#endif
#endif

int64_t nn_elu_forward_workspace(int64_t s)
{
    (void)s;
    return 0;
}

/*
 * nn elu forward
 *     t0 = x > 0
 *     y = where(t0, x, expm1(where(t0, 0.0, x)))
 * in:   x f32[s]
 * out:  y f32[s]
 * Evaluated as written.
 */
int nn_elu_forward(
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
        for (int64_t i = i0; i < i1; i++) {
            const float x_i = x[i];
            const int t = x_i > 0.0f;
            y[i] = t ? x_i : expm1f(t ? 0.0f : x_i);
        }
    }
    return 0;
}

int64_t nn_elu_backward_workspace(int64_t s)
{
    (void)s;
    return 0;
}

/*
 * nn elu backward
 *     t0 = x <= 0
 *     grad_x = where(t0, grad_y*exp(where(t0, x, 0.0)), grad_y)
 * in:   x f32[s], grad_y f32[s]
 * out:  grad_x f32[s]
 * Backward PROVED for alpha = 1.0.
 * Evaluated as written.
 */
int nn_elu_backward(
    int64_t s,
    const float *restrict x,
    const float *restrict grad_y,
    float *restrict grad_x,
    void *workspace)
{
    (void)workspace;
    #pragma omp parallel for schedule(static) if(parallel: s > 8192)
    for (int64_t i0 = 0; i0 < s; i0 += BLOCK) {
        const int64_t i1 = MIN(s, i0 + BLOCK);
        #pragma omp simd
        for (int64_t i = i0; i < i1; i++) {
            const float x_i = x[i];
            const int t = x_i <= 0.0f;
            const float grad_y_i = grad_y[i];
            grad_x[i] = t ? grad_y_i * symgrad_expf(t ? x_i : 0.0f) : grad_y_i;
        }
    }
    return 0;
}
