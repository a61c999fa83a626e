/*
 * CrossEntropy, written by symgrad.
 * Backward PROVED (derived: no backward written), under: 0 <= labels < m.
 */
#include <math.h>
#include <stdint.h>

#ifndef _OPENMP
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#endif

/* Several numbers at once: libmvec has these functions. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 35)
__attribute__((simd("notinbranch"))) float expf(float);
__attribute__((simd("notinbranch"))) float logf(float);
#endif
#endif

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#ifndef SHORT_ROW
#define SHORT_ROW 32 /* elements: rows of fewer lie side by side in the lanes */
#endif
#if SHORT_ROW > 32
#error "SHORT_ROW is at most 32: tiles are made for rows of so many elements"
#endif
#define SUM_BLOCK 1024 /* elements: their sum is added to a double, so that errors do not grow */

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

int64_t eager_cross_entropy_inference_workspace(int64_t n, int64_t m)
{
    return 0
        + ROUND_UP(4*m*n)
        + ROUND_UP(row_groups(n, 64, 32) * 8)
        + ROUND_UP(row_groups(n, 4, 32) * 8);
}

/*
 * eager cross entropy inference
 *     t0 = x - amax(x, axes=(1,))
 *     output = mean(-index(t0 - log(sum(exp(t0), axes=(1,))), iota(n), labels), axes=(0,))
 * in:   x f32[n m], labels i64[n]
 * out:  output f32[]
 * returns 1: an index is out of range, unless 0 <= labels[i] < m
 */
int eager_cross_entropy_inference(
    int64_t n,
    int64_t m,
    const float *restrict x,
    int64_t x_s0,
    const int64_t *restrict labels,
    float *restrict output,
    void *workspace)
{
    char *space = workspace;
    float *restrict stored = carve(&space, 4*m*n);
    double *restrict output_total_part = carve(&space, row_groups(n, 64, 32) * 8);
    double *restrict output_total_part_ = carve(&space, row_groups(n, 4, 32) * 8);
    int outside = 0;
    for (int64_t k = 0; k < n; k++)
        outside |= (labels[k] < 0) | (labels[k] >= m);
    if (outside)
        return 1;
    float output_total;
    if (m < SHORT_ROW) {
        const int64_t groups = row_groups(n, 64, 32);
        const int64_t rows = (n + groups - 1) / groups;
        #pragma omp parallel for schedule(static) if(parallel: m*n > 4096)
        for (int64_t group = 0; group < groups; group++) {
            const int64_t i0 = group*rows;
            const int64_t i1 = MIN(n, i0 + rows);
            double output_total_ = 0.0;
            for (int64_t i2 = i0; i2 < i1; i2 += 64) {
                const int64_t i3 = MIN(i1, i2 + 64);
                float greatest[64];
                float total[64];
                float kept[64];
                for (int64_t i = i2; i < i3; i++)
                    greatest[i - i2] = -INFINITY;
                for (int64_t j = 0; j < m; j++) {
                    #pragma omp simd
                    for (int64_t i = i2; i < i3; i++) {
                        const float value = x[i*x_s0 + j];
                        greatest[i - i2] = value > greatest[i - i2] || value != value ? value :
                            greatest[i - i2];
                    }
                }
                for (int64_t i = i2; i < i3; i++)
                    total[i - i2] = 0.0f;
                for (int64_t j = 0; j < m; j++) {
                    #pragma omp simd
                    for (int64_t i = i2; i < i3; i++)
                        total[i - i2] += expf(x[i*x_s0 + j] - greatest[i - i2]);
                }
                #pragma omp simd
                for (int64_t i = i2; i < i3; i++)
                    kept[i - i2] = logf(total[i - i2]);
                for (int64_t j = 0; j < m; j++) {
                    #pragma omp simd
                    for (int64_t i = i2; i < i3; i++)
                        stored[i*m + j] = x[i*x_s0 + j] - greatest[i - i2] - kept[i - i2];
                }
                float output_total_2 = 0.0f;
                #pragma omp simd reduction(+:output_total_2)
                for (int64_t i = i2; i < i3; i++)
                    output_total_2 += -stored[i*m + labels[i]];
                output_total_ += output_total_2;
            }
            output_total_part[group] = output_total_;
        }
        combine_sum_f32(groups, 1, output_total_part, &output_total);
    } else {
        const int64_t groups = row_groups(n, 4, 32);
        const int64_t rows = (n + groups - 1) / groups;
        #pragma omp parallel for schedule(static) if(parallel: m*n > 4096)
        for (int64_t group = 0; group < groups; group++) {
            const int64_t i0 = group*rows;
            const int64_t i1 = MIN(n, i0 + rows);
            double output_total_sum = 0.0;
            for (int64_t i = i0; i < i1; i++) {
                float greatest = -INFINITY;
                int greatest_nan = 0;
                const float *x_i = x + i*x_s0;
                #pragma omp simd reduction(max:greatest) reduction(|:greatest_nan)
                for (int64_t j = 0; j < m; j++) {
                    const float value = x_i[j];
                    greatest = value > greatest ? value : greatest;
                    greatest_nan |= value != value;
                }
                if (greatest_nan)
                    greatest = NAN;
                double total_sum = 0.0;
                for (int64_t j0_ = 0; j0_ < m; j0_ += SUM_BLOCK) {
                    const int64_t j1_ = MIN(m, j0_ + SUM_BLOCK);
                    float total_block = 0.0f;
                    #pragma omp simd reduction(+:total_block)
                    for (int64_t j = j0_; j < j1_; j++)
                        total_block += expf(x_i[j] - greatest);
                    total_sum += total_block;
                }
                const float total = (float)total_sum;
                const float t = logf(total);
                float *stored_i = stored + i*m;
                #pragma omp simd
                for (int64_t j = 0; j < m; j++)
                    stored_i[j] = x_i[j] - greatest - t;
                output_total_sum += -stored[i*m + labels[i]];
            }
            output_total_part_[group] = output_total_sum;
        }
        combine_sum_f32(groups, 1, output_total_part_, &output_total);
    }
    output[0] = output_total/(float)n;
    return 0;
}

int64_t eager_cross_entropy_forward_workspace(int64_t n, int64_t m)
{
    return 0
        + ROUND_UP(4*m*n)
        + ROUND_UP(row_groups(n, 64, 32) * 8)
        + ROUND_UP(row_groups(n, 4, 32) * 8);
}

/*
 * eager cross entropy forward
 *     residual_2 = amax(x, axes=(1,))
 *     t0 = x - residual_2
 *     residual_3 = sum(exp(t0), axes=(1,))
 *     output = mean(-index(t0 - log(residual_3), iota(n), labels), axes=(0,))
 * in:   x f32[n m], labels i64[n]
 * out:  output f32[], residual_2 f32[n 1], residual_3 f32[n 1]
 * returns 1: an index is out of range, unless 0 <= labels[i] < m
 */
int eager_cross_entropy_forward(
    int64_t n,
    int64_t m,
    const float *restrict x,
    int64_t x_s0,
    const int64_t *restrict labels,
    float *restrict output,
    float *restrict residual_2,
    float *restrict residual_3,
    void *workspace)
{
    char *space = workspace;
    float *restrict stored = carve(&space, 4*m*n);
    double *restrict output_total_part = carve(&space, row_groups(n, 64, 32) * 8);
    double *restrict output_total_part_ = carve(&space, row_groups(n, 4, 32) * 8);
    int outside = 0;
    for (int64_t k = 0; k < n; k++)
        outside |= (labels[k] < 0) | (labels[k] >= m);
    if (outside)
        return 1;
    float output_total;
    if (m < SHORT_ROW) {
        const int64_t groups = row_groups(n, 64, 32);
        const int64_t rows = (n + groups - 1) / groups;
        #pragma omp parallel for schedule(static) if(parallel: m*n > 4096)
        for (int64_t group = 0; group < groups; group++) {
            const int64_t i0 = group*rows;
            const int64_t i1 = MIN(n, i0 + rows);
            double output_total_ = 0.0;
            for (int64_t i2 = i0; i2 < i1; i2 += 64) {
                const int64_t i3 = MIN(i1, i2 + 64);
                float kept[64];
                for (int64_t i = i2; i < i3; i++)
                    residual_2[i] = -INFINITY;
                for (int64_t j = 0; j < m; j++) {
                    #pragma omp simd
                    for (int64_t i = i2; i < i3; i++) {
                        const float value = x[i*x_s0 + j];
                        residual_2[i] = value > residual_2[i] || value != value ? value :
                            residual_2[i];
                    }
                }
                for (int64_t i = i2; i < i3; i++)
                    residual_3[i] = 0.0f;
                for (int64_t j = 0; j < m; j++) {
                    #pragma omp simd
                    for (int64_t i = i2; i < i3; i++)
                        residual_3[i] += expf(x[i*x_s0 + j] - residual_2[i]);
                }
                #pragma omp simd
                for (int64_t i = i2; i < i3; i++)
                    kept[i - i2] = logf(residual_3[i]);
                for (int64_t j = 0; j < m; j++) {
                    #pragma omp simd
                    for (int64_t i = i2; i < i3; i++)
                        stored[i*m + j] = x[i*x_s0 + j] - residual_2[i] - kept[i - i2];
                }
                float output_total_2 = 0.0f;
                #pragma omp simd reduction(+:output_total_2)
                for (int64_t i = i2; i < i3; i++)
                    output_total_2 += -stored[i*m + labels[i]];
                output_total_ += output_total_2;
            }
            output_total_part[group] = output_total_;
        }
        combine_sum_f32(groups, 1, output_total_part, &output_total);
    } else {
        const int64_t groups = row_groups(n, 4, 32);
        const int64_t rows = (n + groups - 1) / groups;
        #pragma omp parallel for schedule(static) if(parallel: m*n > 4096)
        for (int64_t group = 0; group < groups; group++) {
            const int64_t i0 = group*rows;
            const int64_t i1 = MIN(n, i0 + rows);
            double output_total_sum = 0.0;
            for (int64_t i = i0; i < i1; i++) {
                float residual_2_ = -INFINITY;
                int residual_2__nan = 0;
                const float *x_i = x + i*x_s0;
                #pragma omp simd reduction(max:residual_2_) reduction(|:residual_2__nan)
                for (int64_t j = 0; j < m; j++) {
                    const float value = x_i[j];
                    residual_2_ = value > residual_2_ ? value : residual_2_;
                    residual_2__nan |= value != value;
                }
                if (residual_2__nan)
                    residual_2_ = NAN;
                residual_2[i] = residual_2_;
                double residual_3_sum = 0.0;
                for (int64_t j0_ = 0; j0_ < m; j0_ += SUM_BLOCK) {
                    const int64_t j1_ = MIN(m, j0_ + SUM_BLOCK);
                    float residual_3_block = 0.0f;
                    #pragma omp simd reduction(+:residual_3_block)
                    for (int64_t j = j0_; j < j1_; j++)
                        residual_3_block += expf(x_i[j] - residual_2_);
                    residual_3_sum += residual_3_block;
                }
                const float residual_3_ = (float)residual_3_sum;
                residual_3[i] = residual_3_;
                const float t = logf(residual_3_);
                float *stored_i = stored + i*m;
                #pragma omp simd
                for (int64_t j = 0; j < m; j++)
                    stored_i[j] = x_i[j] - residual_2_ - t;
                output_total_sum += -stored[i*m + labels[i]];
            }
            output_total_part_[group] = output_total_sum;
        }
        combine_sum_f32(groups, 1, output_total_part_, &output_total);
    }
    output[0] = output_total/(float)n;
    return 0;
}

int64_t eager_cross_entropy_backward_workspace(int64_t n, int64_t m)
{
    (void)n;
    (void)m;
    return 0;
}

/*
 * eager cross entropy backward
 *     t0 = sum(-index_add(-(grad_output/n), iota(n), labels, shape=(n, m)), axes=(1,))/residual_3
 *     grad_x = index_add(-(grad_output/n), iota(n), labels, shape=(n, m)) + t0*exp(x - residual_2)
 * in:   x f32[n m], labels i64[n], residual_2 f32[n 1], residual_3 f32[n 1], grad_output f32[]
 * out:  grad_x f32[n m]
 * returns 1: an index is out of range, unless 0 <= labels[i] < m
 * Backward PROVED (derived: no backward written), under: 0 <= labels < m.
 */
int eager_cross_entropy_backward(
    int64_t n,
    int64_t m,
    const float *restrict x,
    int64_t x_s0,
    const int64_t *restrict labels,
    const float *restrict residual_2,
    const float *restrict residual_3,
    const float *restrict grad_output,
    float *restrict grad_x,
    void *workspace)
{
    (void)workspace;
    int outside = 0;
    for (int64_t k = 0; k < n; k++)
        outside |= (labels[k] < 0) | (labels[k] >= m);
    if (outside)
        return 1;
    const float t = -(grad_output[0]/(float)n);
    if (m < SHORT_ROW) {
        #pragma omp parallel for schedule(static) if(parallel: m*n > 4096)
        for (int64_t i0 = 0; i0 < n; i0 += 64) {
            const int64_t i3 = MIN(n, i0 + 64);
            float total[64];
            float kept[64];
            for (int64_t i = i0; i < i3; i++)
                total[i - i0] = 0.0f;
            for (int64_t j = 0; j < m; j++) {
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++) {
                    const float t_ = j == labels[i] ? t : 0.0f;
                    grad_x[i*m + j] = t_;
                    total[i - i0] += -t_;
                }
            }
            #pragma omp simd
            for (int64_t i = i0; i < i3; i++)
                kept[i - i0] = total[i - i0] / residual_3[i];
            for (int64_t j = 0; j < m; j++) {
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++) {
                    const float kept_ = grad_x[i*m + j];
                    grad_x[i*m + j] = kept_ + kept[i - i0] * expf(x[i*x_s0 + j] - residual_2[i]);
                }
            }
        }
    } else {
        #pragma omp parallel for schedule(static) if(parallel: m*n > 4096)
        for (int64_t i = 0; i < n; i++) {
            double total_sum = 0.0;
            float *grad_x_i = grad_x + i*m;
            for (int64_t j0_ = 0; j0_ < m; j0_ += SUM_BLOCK) {
                const int64_t j1_ = MIN(m, j0_ + SUM_BLOCK);
                float total_block = 0.0f;
                #pragma omp simd reduction(+:total_block)
                for (int64_t j = j0_; j < j1_; j++) {
                    const float t_ = j == labels[i] ? t : 0.0f;
                    grad_x_i[j] = t_;
                    total_block += -t_;
                }
                total_sum += total_block;
            }
            const float total = (float)total_sum;
            const float *x_i = x + i*x_s0;
            const float residual_2_i = residual_2[i];
            const float t_ = total/residual_3[i];
            #pragma omp simd
            for (int64_t j = 0; j < m; j++) {
                const float kept = grad_x_i[j];
                grad_x_i[j] = kept + t_ * expf(x_i[j] - residual_2_i);
            }
        }
    }
    return 0;
}
