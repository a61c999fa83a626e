/*
 * MSELoss, written by symgrad.
 * Backward PROVED for reduction = 'mean'.
 * This C VALIDATED against what was traced, for all sizes and over the reals.
 * Backwards of some of the gradients only; the name tells which inputs'.
 */
#include "_prelude.h"

int64_t nn_mse_loss_backward_10_workspace(int64_t s)
{
    (void)s;
    return 0;
}

/*
 * nn mse loss backward 10
 *     grad_x = grad_output/s*2*(x - target)
 * in:   x f32[s], target f32[s], grad_output f32[]
 * out:  grad_x f32[s]
 * Backward PROVED for reduction = 'mean'.
 * Evaluated as written.
 */
int nn_mse_loss_backward_10(
    int64_t s,
    const float *restrict x,
    const float *restrict target,
    const float *restrict grad_output,
    float *restrict grad_x,
    void *workspace)
{
    (void)workspace;
    const float t = grad_output[0]/(float)s * 2.0f;
    #pragma omp parallel for schedule(static) if(parallel: s > 16384)
    for (int64_t i0 = 0; i0 < s; i0 += BLOCK) {
        const int64_t i1 = MIN(s, i0 + BLOCK);
        #pragma omp simd
        for (int64_t i = i0; i < i1; i++)
            grad_x[i] = t * (x[i] - target[i]);
    }
    return 0;
}

int64_t nn_mse_loss_backward_01_workspace(int64_t s)
{
    (void)s;
    return 0;
}

/*
 * nn mse loss backward 01
 *     grad_target = -(grad_output/s*2*(x - target))
 * in:   x f32[s], target f32[s], grad_output f32[]
 * out:  grad_target f32[s]
 * Backward PROVED for reduction = 'mean'.
 * Evaluated as written.
 */
int nn_mse_loss_backward_01(
    int64_t s,
    const float *restrict x,
    const float *restrict target,
    const float *restrict grad_output,
    float *restrict grad_target,
    void *workspace)
{
    (void)workspace;
    const float t = grad_output[0]/(float)s * 2.0f;
    #pragma omp parallel for schedule(static) if(parallel: s > 16384)
    for (int64_t i0 = 0; i0 < s; i0 += BLOCK) {
        const int64_t i1 = MIN(s, i0 + BLOCK);
        #pragma omp simd
        for (int64_t i = i0; i < i1; i++)
            grad_target[i] = -(t * (x[i] - target[i]));
    }
    return 0;
}
