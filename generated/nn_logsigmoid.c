/*
 * LogSigmoid, written by symgrad.
 * Backward PROVED.
 * This C VALIDATED against what was traced, for all sizes and over the reals.
 */
#include "_prelude.h"

/* Several numbers at once: libmvec has these functions. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 35)
__attribute__((simd("notinbranch"))) float log1pf(float);
#endif
#endif

int64_t nn_logsigmoid_forward_workspace(int64_t s)
{
    (void)s;
    return 0;
}

/*
 * nn logsigmoid forward
 *     y = log_sigmoid(x)
 * in:   x f32[s]
 * out:  y f32[s]
 * Evaluated as written.
 */
int nn_logsigmoid_forward(
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
            y[i] = (x_i > 0.0f ? 0.0f : x_i) - log1pf(symgrad_expf(-fabsf(x_i)));
        }
    }
    return 0;
}

int64_t nn_logsigmoid_backward_workspace(int64_t s)
{
    (void)s;
    return 0;
}

/*
 * nn logsigmoid backward
 *     grad_x = grad_y*sigmoid(-x)
 * in:   x f32[s], grad_y f32[s]
 * out:  grad_x f32[s]
 * Backward PROVED.
 * Evaluated as written.
 */
int nn_logsigmoid_backward(
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
        for (int64_t i = i0; i < i1; i++)
            grad_x[i] = grad_y[i] * symgrad_sigmoidf(-x[i]);
    }
    return 0;
}
