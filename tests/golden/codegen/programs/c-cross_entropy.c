#include "_prelude.h"

/* Several numbers at once: libmvec has these functions. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 35)
__attribute__((simd("notinbranch"))) float logf(float);
#endif
#endif

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

int64_t cross_entropy_workspace(int64_t n, int64_t m)
{
    (void)m;
    return 0
        + ROUND_UP(row_groups(n, 64, 32) * 8)
        + ROUND_UP(row_groups(n, 4, 32) * 8);
}

/*
 * cross entropy
 * in:   x f32[n m], target i64[n]
 * out:  loss f32[], grad_x f32[n m]
 * returns 1: an index is out of range, unless 0 <= target[i] < m
 */
int cross_entropy(
    int64_t n,
    int64_t m,
    const float *restrict x,
    int64_t x_s0,
    const int64_t *restrict target,
    float *restrict loss,
    float *restrict grad_x,
    void *workspace)
{
    char *space = workspace;
    double *restrict loss_total_part = carve(&space, row_groups(n, 64, 32) * 8);
    double *restrict loss_total_part_ = carve(&space, row_groups(n, 4, 32) * 8);
    int outside = 0;
    for (int64_t k = 0; k < n; k++)
        outside |= (target[k] < 0) | (target[k] >= m);
    if (outside)
        return 1;
    float loss_total;
    if (m < SHORT_ROW) {
        const int64_t groups = row_groups(n, 64, 32);
        const int64_t rows = (n + groups - 1) / groups;
        #pragma omp parallel for schedule(static) if(parallel: m*n > 2048)
        for (int64_t group = 0; group < groups; group++) {
            const int64_t i0 = group*rows;
            const int64_t i1 = MIN(n, i0 + rows);
            double loss_total_ = 0.0;
            for (int64_t i2 = i0; i2 < i1; i2 += 64) {
                const int64_t i3 = MIN(i1, i2 + 64);
                float top[64];
                float total[64];
                for (int64_t i = i2; i < i3; i++)
                    top[i - i2] = -INFINITY;
                for (int64_t j = 0; j < m; j++) {
                    #pragma omp simd
                    for (int64_t i = i2; i < i3; i++) {
                        const float value = x[i*x_s0 + j];
                        top[i - i2] = value > top[i - i2] || value != value ? value : top[i - i2];
                    }
                }
                for (int64_t i = i2; i < i3; i++)
                    total[i - i2] = 0.0f;
                for (int64_t j = 0; j < m; j++) {
                    #pragma omp simd
                    for (int64_t i = i2; i < i3; i++) {
                        const float e = symgrad_expf(x[i*x_s0 + j] - top[i - i2]);
                        grad_x[i*m + j] = e;
                        total[i - i2] += e;
                    }
                }
                for (int64_t j = 0; j < m; j++) {
                    #pragma omp simd
                    for (int64_t i = i2; i < i3; i++) {
                        const float e = grad_x[i*m + j];
                        grad_x[i*m + j] = (e / total[i - i2] - (j == target[i] ? 1.0f : 0.0f)) /
                            (float)n;
                    }
                }
                float loss_total_2 = 0.0f;
                #pragma omp simd reduction(+:loss_total_2)
                for (int64_t i = i2; i < i3; i++)
                    loss_total_2 += top[i - i2] + logf(total[i - i2]) - x[i*x_s0 + target[i]];
                loss_total_ += loss_total_2;
            }
            loss_total_part[group] = loss_total_;
        }
        combine_sum_f32(groups, 1, loss_total_part, &loss_total);
    } else {
        const int64_t groups = row_groups(n, 4, 32);
        const int64_t rows = (n + groups - 1) / groups;
        #pragma omp parallel for schedule(static) if(parallel: m*n > 2048)
        for (int64_t group = 0; group < groups; group++) {
            const int64_t i0 = group*rows;
            const int64_t i1 = MIN(n, i0 + rows);
            double loss_total_sum = 0.0;
            for (int64_t i = i0; i < i1; i++) {
                float top = -INFINITY;
                int top_nan = 0;
                const float *x_i = x + i*x_s0;
                #pragma omp simd reduction(max:top) reduction(|:top_nan)
                for (int64_t j = 0; j < m; j++) {
                    const float value = x_i[j];
                    top = value > top ? value : top;
                    top_nan |= value != value;
                }
                if (top_nan)
                    top = NAN;
                double total_sum = 0.0;
                float *grad_x_i = grad_x + i*m;
                for (int64_t j0_ = 0; j0_ < m; j0_ += SUM_BLOCK) {
                    const int64_t j1_ = MIN(m, j0_ + SUM_BLOCK);
                    float total_block = 0.0f;
                    #pragma omp simd reduction(+:total_block)
                    for (int64_t j = j0_; j < j1_; j++) {
                        const float e = symgrad_expf(x_i[j] - top);
                        grad_x_i[j] = e;
                        total_block += e;
                    }
                    total_sum += total_block;
                }
                const float total = (float)total_sum;
                loss_total_sum += top + logf(total) - x[i*x_s0 + target[i]];
                #pragma omp simd
                for (int64_t j = 0; j < m; j++) {
                    const float e = grad_x_i[j];
                    grad_x_i[j] = (e/total - (j == target[i] ? 1.0f : 0.0f)) / (float)n;
                }
            }
            loss_total_part_[group] = loss_total_sum;
        }
        combine_sum_f32(groups, 1, loss_total_part_, &loss_total);
    }
    loss[0] = loss_total/(float)n;
    return 0;
}
