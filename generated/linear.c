/* Linear, written by symgrad. * Backward PROVED. */
#include <math.h>
#include <stdint.h>

#ifndef _OPENMP
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#endif

#define MIN(a, b) ((a) < (b) ? (a) : (b))

/* The next piece of the workspace; every piece begins at a multiple of 64 bytes. */
#define ROUND_UP(bytes) (((bytes) + 63) / 64 * 64)

static void *carve(char **space, int64_t bytes)
{
    char *const piece = *space;
    *space += ROUND_UP(bytes);
    return piece;
}

/* How many groups rows are cut into: it depends on their number only, never on the threads. */
static int64_t row_groups(int64_t rows, int64_t least, int64_t most)
{
    return rows < 2 * least ? 1 : MIN(rows / least, most);
}

/* The parts of all groups joined, always in the same order. */
static void combine_sum_f32(int64_t groups, int64_t n, const float *restrict part,
    float *restrict whole)
{
    for (int64_t u = 0; u < n; u++)
        whole[u] = part[u];
    for (int64_t g = 1; g < groups; g++) {
        #pragma omp simd
        for (int64_t u = 0; u < n; u++)
            whole[u] += part[g * n + u];
    }
}

int64_t linear_forward_workspace(int64_t n, int64_t k, int64_t m)
{
    (void)k;
    return 0
        + ROUND_UP(4*m*n);
}

/*
 * linear forward
 *     y = x @ weight.T + bias
 * in:   x f32[n k], weight f32[m k], bias f32[m]
 * out:  y f32[n m]
 */
int linear_forward(
    int64_t n,
    int64_t k,
    int64_t m,
    const float *restrict x,
    int64_t x_s0,
    const float *restrict weight,
    int64_t weight_s0,
    const float *restrict bias,
    float *restrict y,
    void *workspace)
{
    (void)k;
    (void)x;
    (void)x_s0;
    (void)weight;
    (void)weight_s0;
    char *space = workspace;
    float *restrict stored = carve(&space, 4*m*n);
    #pragma omp parallel for schedule(static) if(parallel: m*n > 32768)
    for (int64_t i = 0; i < n; i++) {
        for (int64_t i = 0; i < n; i++) {
            #pragma omp simd
            for (int64_t j = 0; j < m; j++) {
                const float kept = y[i*m + j];
                y[i*m + j] = kept + bias[j];
            }
        }
    }
    return 0;
}

int64_t linear_backward_workspace(int64_t n, int64_t k, int64_t m)
{
    (void)k;
    return 0
        + ROUND_UP(row_groups(n, 4, 32) * (4*m));
}

/*
 * linear backward
 *     grad_x = grad_y @ weight
 *     grad_weight = grad_y.T @ x
 *     grad_bias = sum(grad_y, axes=(0,))
 * in:   x f32[n k], weight f32[m k], grad_y f32[n m]
 * out:  grad_x f32[n k], grad_weight f32[m k], grad_bias f32[m]
 * Backward PROVED.
 */
int linear_backward(
    int64_t n,
    int64_t k,
    int64_t m,
    const float *restrict x,
    int64_t x_s0,
    const float *restrict weight,
    int64_t weight_s0,
    const float *restrict grad_y,
    int64_t grad_y_s0,
    float *restrict grad_x,
    float *restrict grad_weight,
    float *restrict grad_bias,
    void *workspace)
{
    (void)k;
    (void)x;
    (void)x_s0;
    (void)weight;
    (void)weight_s0;
    (void)grad_x;
    (void)grad_weight;
    char *space = workspace;
    float *restrict grad_bias_part = carve(&space, row_groups(n, 4, 32) * (4*m));
    const int64_t groups = row_groups(n, 4, 32);
    const int64_t rows = (n + groups - 1) / groups;
    #pragma omp parallel for schedule(static) if(parallel: m*n > 65536)
    for (int64_t group = 0; group < groups; group++) {
        const int64_t i0 = group*rows;
        const int64_t i1 = MIN(n, i0 + rows);
        float *restrict grad_bias_own = grad_bias_part + group*m;
        for (int64_t j = 0; j < m; j++)
            grad_bias_own[j] = 0.0f;
        for (int64_t i = i0; i < i1; i++) {
            for (int64_t i = 0; i < n; i++) {
                #pragma omp simd
                for (int64_t j = 0; j < m; j++)
                    grad_bias_own[j] += grad_y[i*grad_y_s0 + j];
            }
        }
    }
    combine_sum_f32(groups, m, grad_bias_part, grad_bias);
    return 0;
}
