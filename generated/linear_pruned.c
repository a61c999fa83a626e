/* Linear, written by symgrad. * Backward PROVED. * Backwards of some of the gradients only; the name tells which inputs'. */
#include <math.h>
#include <stdint.h>

#ifndef _OPENMP
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#endif

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define BLOCK 4096 /* elements: vectors end at the same places for any number of threads */

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

int64_t linear_backward_110_workspace(int64_t n, int64_t k, int64_t m)
{
    (void)n;
    (void)k;
    (void)m;
    return 0;
}

/*
 * linear backward 110
 *     grad_x = grad_y @ weight
 *     grad_weight = grad_y.T @ x
 * in:   x f32[n k], weight f32[m k], grad_y f32[n m]
 * out:  grad_x f32[n k], grad_weight f32[m k]
 * Backward PROVED.
 */
int linear_backward_110(
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
    void *workspace)
{
    (void)k;
    (void)m;
    (void)x;
    (void)x_s0;
    (void)weight;
    (void)weight_s0;
    (void)grad_y;
    (void)grad_y_s0;
    (void)grad_x;
    (void)grad_weight;
    (void)workspace;
    #pragma omp parallel for schedule(static) if(parallel: n > 32768)
    for (int64_t i0 = 0; i0 < n; i0 += BLOCK) {
        const int64_t i1 = MIN(n, i0 + BLOCK);
        #pragma omp simd
        for (int64_t i = i0; i < i1; i++) {
        }
    }
    return 0;
}

int64_t linear_backward_101_workspace(int64_t m, int64_t k, int64_t n)
{
    (void)k;
    return 0
        + ROUND_UP(row_groups(n, 4, 32) * (4*m));
}

/*
 * linear backward 101
 *     grad_x = grad_y @ weight
 *     grad_bias = sum(grad_y, axes=(0,))
 * in:   weight f32[m k], grad_y f32[n m]
 * out:  grad_x f32[n k], grad_bias f32[m]
 * Backward PROVED.
 */
int linear_backward_101(
    int64_t m,
    int64_t k,
    int64_t n,
    const float *restrict weight,
    int64_t weight_s0,
    const float *restrict grad_y,
    int64_t grad_y_s0,
    float *restrict grad_x,
    float *restrict grad_bias,
    void *workspace)
{
    (void)k;
    (void)weight;
    (void)weight_s0;
    (void)grad_x;
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

int64_t linear_backward_100_workspace(int64_t m, int64_t k, int64_t n)
{
    (void)m;
    (void)k;
    (void)n;
    return 0;
}

/*
 * linear backward 100
 *     grad_x = grad_y @ weight
 * in:   weight f32[m k], grad_y f32[n m]
 * out:  grad_x f32[n k]
 * Backward PROVED.
 */
int linear_backward_100(
    int64_t m,
    int64_t k,
    int64_t n,
    const float *restrict weight,
    int64_t weight_s0,
    const float *restrict grad_y,
    int64_t grad_y_s0,
    float *restrict grad_x,
    void *workspace)
{
    (void)m;
    (void)k;
    (void)weight;
    (void)weight_s0;
    (void)grad_y;
    (void)grad_y_s0;
    (void)grad_x;
    (void)workspace;
    #pragma omp parallel for schedule(static) if(parallel: n > 65536)
    for (int64_t i0 = 0; i0 < n; i0 += BLOCK) {
        const int64_t i1 = MIN(n, i0 + BLOCK);
        #pragma omp simd
        for (int64_t i = i0; i < i1; i++) {
        }
    }
    return 0;
}

int64_t linear_backward_011_workspace(int64_t n, int64_t k, int64_t m)
{
    (void)k;
    return 0
        + ROUND_UP(row_groups(n, 4, 32) * (4*m));
}

/*
 * linear backward 011
 *     grad_weight = grad_y.T @ x
 *     grad_bias = sum(grad_y, axes=(0,))
 * in:   x f32[n k], grad_y f32[n m]
 * out:  grad_weight f32[m k], grad_bias f32[m]
 * Backward PROVED.
 */
int linear_backward_011(
    int64_t n,
    int64_t k,
    int64_t m,
    const float *restrict x,
    int64_t x_s0,
    const float *restrict grad_y,
    int64_t grad_y_s0,
    float *restrict grad_weight,
    float *restrict grad_bias,
    void *workspace)
{
    (void)k;
    (void)x;
    (void)x_s0;
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

int64_t linear_backward_010_workspace(int64_t n, int64_t k, int64_t m)
{
    (void)n;
    (void)k;
    (void)m;
    return 0;
}

/*
 * linear backward 010
 *     grad_weight = grad_y.T @ x
 * in:   x f32[n k], grad_y f32[n m]
 * out:  grad_weight f32[m k]
 * Backward PROVED.
 */
int linear_backward_010(
    int64_t n,
    int64_t k,
    int64_t m,
    const float *restrict x,
    int64_t x_s0,
    const float *restrict grad_y,
    int64_t grad_y_s0,
    float *restrict grad_weight,
    void *workspace)
{
    (void)k;
    (void)m;
    (void)x;
    (void)x_s0;
    (void)grad_y;
    (void)grad_y_s0;
    (void)grad_weight;
    (void)workspace;
    #pragma omp parallel for schedule(static) if(parallel: n > 65536)
    for (int64_t i0 = 0; i0 < n; i0 += BLOCK) {
        const int64_t i1 = MIN(n, i0 + BLOCK);
        #pragma omp simd
        for (int64_t i = i0; i < i1; i++) {
        }
    }
    return 0;
}

int64_t linear_backward_001_workspace(int64_t n, int64_t m)
{
    return 0
        + ROUND_UP(row_groups(n, 4, 32) * (4*m));
}

/*
 * linear backward 001
 *     grad_bias = sum(grad_y, axes=(0,))
 * in:   grad_y f32[n m]
 * out:  grad_bias f32[m]
 * Backward PROVED.
 */
int linear_backward_001(
    int64_t n,
    int64_t m,
    const float *restrict grad_y,
    int64_t grad_y_s0,
    float *restrict grad_bias,
    void *workspace)
{
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
            #pragma omp simd
            for (int64_t j = 0; j < m; j++)
                grad_bias_own[j] += grad_y[i*grad_y_s0 + j];
        }
    }
    combine_sum_f32(groups, m, grad_bias_part, grad_bias);
    return 0;
}
