/*
 * GELUTanh, written by symgrad.
 * Backward PROVED.
 * This C VALIDATED against what was traced, for all sizes and over the reals.
 */
#include "_prelude.h"

/* Several numbers at once: libmvec has these functions. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 35)
__attribute__((simd("notinbranch"))) float tanhf(float);
#endif
#endif

int64_t nn_gelu_tanh_forward_workspace(int64_t s)
{
    (void)s;
    return 0;
}

/*
 * nn gelu tanh forward
 *     y = x*0.5*(sigmoid((x + square(x)*x*0.044715)*1.5957691216057308)*2.0)
 * in:   x f32[s]
 * out:  y f32[s]
 * Evaluated as written but for: forms that do not overflow.
 */
int nn_gelu_tanh_forward(
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
            const float t = symgrad_sigmoidf((x_i + x_i * x_i * x_i * 0.044715f) * 1.5957692f);
            y[i] = x_i*0.5f*(t*2.0f);
        }
    }
    return 0;
}

int64_t nn_gelu_tanh_backward_workspace(int64_t s)
{
    (void)s;
    return 0;
}

/*
 * nn gelu tanh backward
 *     t0 = 0.5*x*(1 - square(tanh(0.7978845608028654*(x +
 *         0.044715*x*x*x))))*(0.7978845608028654*(1 + 0.134145*x*x))
 *     grad_x = grad_y*(0.5*(1 + tanh(0.7978845608028654*(x + 0.044715*x*x*x))) + t0)
 * in:   x f32[s], grad_y f32[s]
 * out:  grad_x f32[s]
 * Backward PROVED.
 * Evaluated as written.
 */
int nn_gelu_tanh_backward(
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
            const float t = tanhf(0.7978846f * (x_i + 0.044715f*x_i*x_i*x_i));
            const float t_ = 0.5f*x_i * (1.0f - t * t) * (0.7978846f * (1.0f + 0.134145f*x_i*x_i));
            grad_x[i] = grad_y[i] * (0.5f * (1.0f + t) + t_);
        }
    }
    return 0;
}
