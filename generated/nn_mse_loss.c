/*
 * MSELoss, written by symgrad.
 * Backward PROVED for reduction = 'mean'.
 * This C VALIDATED against what was traced, for all sizes and over the reals.
 */
#include "_prelude.h"

/* The parts of all groups joined, always in the same order. */
static void combine_sum_f32(int64_t groups, int64_t n, double *restrict part,
    float *restrict whole)
{
    for (int64_t g = 1; g < groups; g++) {
        #pragma omp simd
        for (int64_t u = 0; u < n; u++)
            part[u] += part[g * n + u];
    }
    for (int64_t u = 0; u < n; u++)
        whole[u] = (float)part[u];
}

int64_t nn_mse_loss_forward_workspace(int64_t s)
{
    return 0
        + ROUND_UP(row_groups(s, BLOCK, 64) * 8);
}

/*
 * nn mse loss forward
 *     output = mean(square(x - target), axes=(0,))
 * in:   x f32[s], target f32[s]
 * out:  output f32[]
 * Evaluated as written but for: sums in lanes, sums in blocks, sums in groups of rows, sums of
 *     floats in double.
 */
int nn_mse_loss_forward(
    int64_t s,
    const float *restrict x,
    const float *restrict target,
    float *restrict output,
    void *workspace)
{
    char *space = workspace;
    double *restrict output_total_part = carve(&space, row_groups(s, BLOCK, 64) * 8);
    const int64_t groups = row_groups(s, BLOCK, 64);
    const int64_t rows = (s + groups - 1) / groups;
    #pragma omp parallel for schedule(static) if(parallel: s > 32768)
    for (int64_t group = 0; group < groups; group++) {
        const int64_t i0 = group*rows;
        const int64_t i1 = MIN(s, i0 + rows);
        double output_total_sum = 0.0;
        for (int64_t i0_ = i0; i0_ < i1; i0_ += SUM_BLOCK) {
            const int64_t i1_ = MIN(i1, i0_ + SUM_BLOCK);
            float output_total_block = 0.0f;
            #pragma omp simd reduction(+:output_total_block)
            for (int64_t i = i0_; i < i1_; i++) {
                const float t = x[i] - target[i];
                output_total_block += t * t;
            }
            output_total_sum += output_total_block;
        }
        output_total_part[group] = output_total_sum;
    }
    float output_total;
    combine_sum_f32(groups, 1, output_total_part, &output_total);
    output[0] = output_total/(float)s;
    return 0;
}

int64_t nn_mse_loss_backward_workspace(int64_t s)
{
    (void)s;
    return 0;
}

/*
 * nn mse loss backward
 *     grad_x = grad_output/s*2*(x - target)
 *     grad_target = -grad_x
 * in:   x f32[s], target f32[s], grad_output f32[]
 * out:  grad_x f32[s], grad_target f32[s]
 * Backward PROVED for reduction = 'mean'.
 * Evaluated as written.
 */
int nn_mse_loss_backward(
    int64_t s,
    const float *restrict x,
    const float *restrict target,
    const float *restrict grad_output,
    float *restrict grad_x,
    float *restrict grad_target,
    void *workspace)
{
    (void)workspace;
    const float t = grad_output[0]/(float)s * 2.0f;
    #pragma omp parallel for schedule(static) if(parallel: s > 8192)
    for (int64_t i0 = 0; i0 < s; i0 += BLOCK) {
        const int64_t i1 = MIN(s, i0 + BLOCK);
        #pragma omp simd
        for (int64_t i = i0; i < i1; i++) {
            const float grad_x_ = t * (x[i] - target[i]);
            grad_x[i] = grad_x_;
            grad_target[i] = -grad_x_;
        }
    }
    return 0;
}
