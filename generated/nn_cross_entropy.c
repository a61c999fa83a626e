/*
 * CrossEntropyLoss, written by symgrad.
 * Backward PROVED for ignore_index = -100, reduction = 'mean', label_smoothing = 0.0 if 0 <=
 *     labels < c.
 * This C VALIDATED against what was traced, for all sizes and over the reals.
 */
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

/* The parts of all groups joined, always in the same order. */
static void combine_sum_i64(int64_t groups, int64_t n, int64_t *restrict part,
    int64_t *restrict whole)
{
    for (int64_t g = 1; g < groups; g++) {
        #pragma omp simd
        for (int64_t u = 0; u < n; u++)
            part[u] += part[g * n + u];
    }
    for (int64_t u = 0; u < n; u++)
        whole[u] = part[u];
}

int64_t nn_cross_entropy_forward_workspace(int64_t n, int64_t c)
{
    return 0
        + ROUND_UP(4*c*n)
        + ROUND_UP(8*n)
        + ROUND_UP(row_groups(n, 64, 32) * 8)
        + ROUND_UP(row_groups(n, 4, 32) * 8)
        + ROUND_UP(row_groups(n, BLOCK, 64) * 8);
}

/*
 * nn cross entropy forward
 *     t0 = x - amax(x, axes=(1,))
 *     t1 = labels != -100
 *     t2 = index(t0 - log(sum(exp(t0), axes=(1,))), iota(n), where(labels != -100, labels, 0))
 *     output = sum(where(t1, -t2, 0.0), axes=(0,))/sum(t1, axes=(0,))
 * in:   x f32[n c], labels i64[n]
 * out:  output f32[]
 * returns 1: an index is out of range, unless 0 <= where(labels[i] != -100, labels[i], 0) < c
 * Evaluated as written but for: sums in lanes, sums in blocks, sums in groups of rows, sums of
 *     floats in double.
 */
int nn_cross_entropy_forward(
    int64_t n,
    int64_t c,
    const float *restrict x,
    int64_t x_s0,
    const int64_t *restrict labels,
    float *restrict output,
    void *workspace)
{
    char *space = workspace;
    float *restrict stored = carve(&space, 4*c*n);
    int64_t *restrict stored_ = carve(&space, 8*n);
    int64_t *restrict total_part = carve(&space, row_groups(n, 64, 32) * 8);
    int64_t *restrict total_part_ = carve(&space, row_groups(n, 4, 32) * 8);
    double *restrict output_total_part = carve(&space, row_groups(n, BLOCK, 64) * 8);
    int64_t total;
    if (c < SHORT_ROW) {
        const int64_t groups = row_groups(n, 64, 32);
        const int64_t rows = (n + groups - 1) / groups;
        #pragma omp parallel for schedule(static) if(parallel: c*n > 4096)
        for (int64_t group = 0; group < groups; group++) {
            const int64_t i0 = group*rows;
            const int64_t i1 = MIN(n, i0 + rows);
            int64_t total_ = 0;
            for (int64_t i2 = i0; i2 < i1; i2 += 64) {
                const int64_t i3 = MIN(i1, i2 + 64);
                float greatest[64];
                float total_2[64];
                float kept[64];
                for (int64_t i = i2; i < i3; i++)
                    greatest[i - i2] = -INFINITY;
                for (int64_t j = 0; j < c; j++) {
                    #pragma omp simd
                    for (int64_t i = i2; i < i3; i++) {
                        const float value = x[i*x_s0 + j];
                        greatest[i - i2] = value > greatest[i - i2] || value != value ? value :
                            greatest[i - i2];
                    }
                }
                int64_t total_3 = 0;
                #pragma omp simd reduction(+:total_3)
                for (int64_t i = i2; i < i3; i++) {
                    const int64_t labels_i = labels[i];
                    const int t = labels_i != (-100);
                    stored_[i] = t ? labels_i : 0;
                    total_3 += t ? 1 : 0;
                }
                total_ += total_3;
                for (int64_t i = i2; i < i3; i++)
                    total_2[i - i2] = 0.0f;
                for (int64_t j = 0; j < c; j++) {
                    #pragma omp simd
                    for (int64_t i = i2; i < i3; i++)
                        total_2[i - i2] += symgrad_expf(x[i*x_s0 + j] - greatest[i - i2]);
                }
                #pragma omp simd
                for (int64_t i = i2; i < i3; i++)
                    kept[i - i2] = logf(total_2[i - i2]);
                for (int64_t j = 0; j < c; j++) {
                    #pragma omp simd
                    for (int64_t i = i2; i < i3; i++)
                        stored[i*c + j] = x[i*x_s0 + j] - greatest[i - i2] - kept[i - i2];
                }
            }
            total_part[group] = total_;
        }
        combine_sum_i64(groups, 1, total_part, &total);
    } else {
        const int64_t groups = row_groups(n, 4, 32);
        const int64_t rows = (n + groups - 1) / groups;
        #pragma omp parallel for schedule(static) if(parallel: c*n > 4096)
        for (int64_t group = 0; group < groups; group++) {
            const int64_t i0 = group*rows;
            const int64_t i1 = MIN(n, i0 + rows);
            int64_t total_ = 0;
            for (int64_t i = i0; i < i1; i++) {
                const int64_t labels_i = labels[i];
                const int t = labels_i != (-100);
                stored_[i] = t ? labels_i : 0;
                total_ += t ? 1 : 0;
                float greatest = -INFINITY;
                int greatest_nan = 0;
                const float *x_i = x + i*x_s0;
                #pragma omp simd reduction(max:greatest) reduction(|:greatest_nan)
                for (int64_t j = 0; j < c; j++) {
                    const float value = x_i[j];
                    greatest = value > greatest ? value : greatest;
                    greatest_nan |= value != value;
                }
                if (greatest_nan)
                    greatest = NAN;
                double total_sum = 0.0;
                for (int64_t j0_ = 0; j0_ < c; j0_ += SUM_BLOCK) {
                    const int64_t j1_ = MIN(c, j0_ + SUM_BLOCK);
                    float total_block = 0.0f;
                    #pragma omp simd reduction(+:total_block)
                    for (int64_t j = j0_; j < j1_; j++)
                        total_block += symgrad_expf(x_i[j] - greatest);
                    total_sum += total_block;
                }
                const float total_2 = (float)total_sum;
                const float t_ = logf(total_2);
                float *stored_i = stored + i*c;
                #pragma omp simd
                for (int64_t j = 0; j < c; j++)
                    stored_i[j] = x_i[j] - greatest - t_;
            }
            total_part_[group] = total_;
        }
        combine_sum_i64(groups, 1, total_part_, &total);
    }
    int outside = 0;
    for (int64_t k = 0; k < n; k++)
        outside |= (stored_[k] < 0) | (stored_[k] >= c);
    if (outside)
        return 1;
    const int64_t groups = row_groups(n, BLOCK, 64);
    const int64_t rows = (n + groups - 1) / groups;
    #pragma omp parallel for schedule(static) if(parallel: n > 32768)
    for (int64_t group = 0; group < groups; group++) {
        const int64_t i0 = group*rows;
        const int64_t i1 = MIN(n, i0 + rows);
        double output_total_sum = 0.0;
        for (int64_t i0_ = i0; i0_ < i1; i0_ += SUM_BLOCK) {
            const int64_t i1_ = MIN(i1, i0_ + SUM_BLOCK);
            float output_total_block = 0.0f;
            #pragma omp simd reduction(+:output_total_block)
            for (int64_t i = i0_; i < i1_; i++)
                output_total_block += labels[i] != (-100) ? -stored[i*c + stored_[i]] : 0.0f;
            output_total_sum += output_total_block;
        }
        output_total_part[group] = output_total_sum;
    }
    float output_total;
    combine_sum_f32(groups, 1, output_total_part, &output_total);
    output[0] = output_total/(float)total;
    return 0;
}

int64_t nn_cross_entropy_backward_workspace(int64_t n, int64_t c)
{
    (void)c;
    return 0
        + ROUND_UP(4*n)
        + ROUND_UP(4*n)
        + ROUND_UP(row_groups(n, 64, 32) * 8)
        + ROUND_UP(row_groups(n, 4, 32) * 8);
}

/*
 * nn cross entropy backward
 *     t0 = labels != -100
 *     t1 = exp(x - amax(x, axes=(1,)))/sum(exp(x - amax(x, axes=(1,))), axes=(1,)) - (where(labels
 *         != -100, labels, 0) == iota(c))
 *     grad_x = where(t0, grad_output/sum(t0, axes=(0,)), 0.0)*t1
 * in:   x f32[n c], labels i64[n], grad_output f32[]
 * out:  grad_x f32[n c]
 * Backward PROVED for ignore_index = -100, reduction = 'mean', label_smoothing = 0.0 if 0 <=
 *     labels < c.
 * Evaluated as written but for: sums in lanes, sums in blocks, sums of floats in double.
 */
int nn_cross_entropy_backward(
    int64_t n,
    int64_t c,
    const float *restrict x,
    int64_t x_s0,
    const int64_t *restrict labels,
    const float *restrict grad_output,
    float *restrict grad_x,
    void *workspace)
{
    char *space = workspace;
    float *restrict greatest_all = carve(&space, 4*n);
    float *restrict total_all = carve(&space, 4*n);
    int64_t *restrict total_part = carve(&space, row_groups(n, 64, 32) * 8);
    int64_t *restrict total_part_ = carve(&space, row_groups(n, 4, 32) * 8);
    if (c == 0)
        return 0;
    int64_t total;
    if (c < SHORT_ROW) {
        const int64_t groups = row_groups(n, 64, 32);
        const int64_t rows = (n + groups - 1) / groups;
        #pragma omp parallel for schedule(static) if(parallel: c*n > 8192)
        for (int64_t group = 0; group < groups; group++) {
            const int64_t i0 = group*rows;
            const int64_t i1 = MIN(n, i0 + rows);
            int64_t total_ = 0;
            for (int64_t i2 = i0; i2 < i1; i2 += 64) {
                const int64_t i3 = MIN(i1, i2 + 64);
                for (int64_t i = i2; i < i3; i++)
                    greatest_all[i] = -INFINITY;
                for (int64_t j = 0; j < c; j++) {
                    #pragma omp simd
                    for (int64_t i = i2; i < i3; i++) {
                        const float value = x[i*x_s0 + j];
                        greatest_all[i] = value > greatest_all[i] || value != value ? value :
                            greatest_all[i];
                    }
                }
                int64_t total_2 = 0;
                #pragma omp simd reduction(+:total_2)
                for (int64_t i = i2; i < i3; i++)
                    total_2 += labels[i] != (-100) ? 1 : 0;
                total_ += total_2;
                for (int64_t i = i2; i < i3; i++)
                    total_all[i] = 0.0f;
                for (int64_t j = 0; j < c; j++) {
                    #pragma omp simd
                    for (int64_t i = i2; i < i3; i++)
                        total_all[i] += symgrad_expf(x[i*x_s0 + j] - greatest_all[i]);
                }
            }
            total_part[group] = total_;
        }
        combine_sum_i64(groups, 1, total_part, &total);
    } else {
        const int64_t groups = row_groups(n, 4, 32);
        const int64_t rows = (n + groups - 1) / groups;
        #pragma omp parallel for schedule(static) if(parallel: c*n > 8192)
        for (int64_t group = 0; group < groups; group++) {
            const int64_t i0 = group*rows;
            const int64_t i1 = MIN(n, i0 + rows);
            int64_t total_ = 0;
            for (int64_t i = i0; i < i1; i++) {
                total_ += labels[i] != (-100) ? 1 : 0;
                float greatest = -INFINITY;
                int greatest_nan = 0;
                const float *x_i = x + i*x_s0;
                #pragma omp simd reduction(max:greatest) reduction(|:greatest_nan)
                for (int64_t j = 0; j < c; j++) {
                    const float value = x_i[j];
                    greatest = value > greatest ? value : greatest;
                    greatest_nan |= value != value;
                }
                if (greatest_nan)
                    greatest = NAN;
                greatest_all[i] = greatest;
                double total_sum = 0.0;
                for (int64_t j0_ = 0; j0_ < c; j0_ += SUM_BLOCK) {
                    const int64_t j1_ = MIN(c, j0_ + SUM_BLOCK);
                    float total_block = 0.0f;
                    #pragma omp simd reduction(+:total_block)
                    for (int64_t j = j0_; j < j1_; j++)
                        total_block += symgrad_expf(x_i[j] - greatest);
                    total_sum += total_block;
                }
                const float total_2 = (float)total_sum;
                total_all[i] = total_2;
            }
            total_part_[group] = total_;
        }
        combine_sum_i64(groups, 1, total_part_, &total);
    }
    const float t_ = grad_output[0] / (float)total;
    if (c < SHORT_ROW) {
        #pragma omp parallel for schedule(static) if(parallel: c*n > 4096)
        for (int64_t i0 = 0; i0 < n; i0 += 64) {
            const int64_t i3 = MIN(n, i0 + 64);
            for (int64_t j = 0; j < c; j++) {
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++) {
                    const int64_t labels_i = labels[i];
                    const int t = labels_i != (-100);
                    const float t_2 = symgrad_expf(x[i*x_s0 + j] - greatest_all[i]) / total_all[i]
                        - ((t ? labels_i : 0) == j ? 1.0f : 0.0f);
                    grad_x[i*c + j] = (t ? t_ : 0.0f) * t_2;
                }
            }
        }
    } else {
        #pragma omp parallel for schedule(static) if(parallel: c*n > 4096)
        for (int64_t i = 0; i < n; i++) {
            const int64_t labels_i = labels[i];
            const int t = labels_i != (-100);
            const float t_2 = t ? t_ : 0.0f;
            const float *x_i = x + i*x_s0;
            const int64_t t_3 = t ? labels_i : 0;
            float *grad_x_i = grad_x + i*c;
            #pragma omp simd
            for (int64_t j = 0; j < c; j++) {
                const float t_4 = symgrad_expf(x_i[j] - greatest_all[i]) / total_all[i] - (t_3 == j
                    ? 1.0f : 0.0f);
                grad_x_i[j] = t_2*t_4;
            }
        }
    }
    return 0;
}
