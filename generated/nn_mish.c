/*
 * Mish, written by symgrad.
 * Backward PROVED.
 * This C VALIDATED against what was traced, for all sizes and over the reals.
 */
#include "_prelude.h"

/* Several numbers at once: libmvec has these functions. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 35)
__attribute__((simd("notinbranch"))) float log1pf(float);
__attribute__((simd("notinbranch"))) float tanhf(float);
#endif
#endif

int64_t nn_mish_forward_workspace(int64_t s)
{
    (void)s;
    return 0;
}

/*
 * nn mish forward
 *     y = x*tanh(softplus(x))
 * in:   x f32[s]
 * out:  y f32[s]
 * Evaluated as written.
 */
int nn_mish_forward(
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
            const float t = (x_i < 0.0f ? 0.0f : x_i) + log1pf(symgrad_expf(-fabsf(x_i)));
            y[i] = x_i*tanhf(t);
        }
    }
    return 0;
}

int64_t nn_mish_backward_workspace(int64_t s)
{
    (void)s;
    return 0;
}

/*
 * nn mish backward
 *     grad_x = grad_y*(tanh(softplus(x)) + x*(1 - square(tanh(softplus(x))))*sigmoid(x))
 * in:   x f32[s], grad_y f32[s]
 * out:  grad_x f32[s]
 * Backward PROVED.
 * Evaluated as written.
 */
int nn_mish_backward(
    int64_t s,
    const float *restrict x,
    const float *restrict grad_y,
    float *restrict grad_x,
    void *workspace)
{
    (void)workspace;
    #pragma omp parallel for schedule(static) if(parallel: s > 2048)
    for (int64_t i0 = 0; i0 < s; i0 += BLOCK) {
        const int64_t i1 = MIN(s, i0 + BLOCK);
        #pragma omp simd
        for (int64_t i = i0; i < i1; i++) {
            const float x_i = x[i];
            const float t = (x_i < 0.0f ? 0.0f : x_i) + log1pf(symgrad_expf(-fabsf(x_i)));
            const float t_ = tanhf(t);
            grad_x[i] = grad_y[i] * (t_ + x_i * (1.0f - t_ * t_) * symgrad_sigmoidf(x_i));
        }
    }
    return 0;
}
