/*
 * SoftmaxCrossEntropy, written by symgrad.
 * Backward PROVED, under: 0 <= labels < c.
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

int64_t softmax_cross_entropy_inference_workspace(int64_t n, int64_t c)
{
    return 0
        + ROUND_UP(4*c*n)
        + ROUND_UP(row_groups(n, 64, 32) * 8)
        + ROUND_UP(row_groups(n, 4, 32) * 8);
}

/*
 * softmax cross entropy inference
 *     shifted = logits - amax(logits, axes=(1,))
 *     log_probabilities = shifted - log(sum(exp(shifted), axes=(1,)))
 *     loss = -mean(index(log_probabilities, iota(n), labels), axes=(0,))
 * in:   logits f32[n c], labels i64[n]
 * out:  loss f32[]
 * returns 1: an index is out of range, unless 0 <= labels[i] < c
 */
int softmax_cross_entropy_inference(
    int64_t n,
    int64_t c,
    const float *restrict logits,
    int64_t logits_s0,
    const int64_t *restrict labels,
    float *restrict loss,
    void *workspace)
{
    char *space = workspace;
    float *restrict stored = carve(&space, 4*c*n);
    double *restrict total_part = carve(&space, row_groups(n, 64, 32) * 8);
    double *restrict total_part_ = carve(&space, row_groups(n, 4, 32) * 8);
    int outside = 0;
    for (int64_t k = 0; k < n; k++)
        outside |= (labels[k] < 0) | (labels[k] >= c);
    if (outside)
        return 1;
    float total;
    if (c < SHORT_ROW) {
        const int64_t groups = row_groups(n, 64, 32);
        const int64_t rows = (n + groups - 1) / groups;
        #pragma omp parallel for schedule(static) if(parallel: c*n > 4096)
        for (int64_t group = 0; group < groups; group++) {
            const int64_t i0 = group*rows;
            const int64_t i1 = MIN(n, i0 + rows);
            double total_ = 0.0;
            for (int64_t i2 = i0; i2 < i1; i2 += 64) {
                const int64_t i3 = MIN(i1, i2 + 64);
                float shifted_greatest[64];
                float total_2[64];
                float kept[64];
                for (int64_t i = i2; i < i3; i++)
                    shifted_greatest[i - i2] = -INFINITY;
                for (int64_t j = 0; j < c; j++) {
                    #pragma omp simd
                    for (int64_t i = i2; i < i3; i++) {
                        const float value = logits[i*logits_s0 + j];
                        shifted_greatest[i - i2] = value > shifted_greatest[i - i2] || value !=
                            value ? value : shifted_greatest[i - i2];
                    }
                }
                for (int64_t i = i2; i < i3; i++)
                    total_2[i - i2] = 0.0f;
                for (int64_t j = 0; j < c; j++) {
                    #pragma omp simd
                    for (int64_t i = i2; i < i3; i++) {
                        const float shifted = logits[i*logits_s0 + j] - shifted_greatest[i - i2];
                        total_2[i - i2] += expf(shifted);
                    }
                }
                #pragma omp simd
                for (int64_t i = i2; i < i3; i++)
                    kept[i - i2] = logf(total_2[i - i2]);
                for (int64_t j = 0; j < c; j++) {
                    #pragma omp simd
                    for (int64_t i = i2; i < i3; i++) {
                        const float shifted = logits[i*logits_s0 + j] - shifted_greatest[i - i2];
                        stored[i*c + j] = shifted - kept[i - i2];
                    }
                }
                float total_3 = 0.0f;
                #pragma omp simd reduction(+:total_3)
                for (int64_t i = i2; i < i3; i++)
                    total_3 += stored[i*c + labels[i]];
                total_ += total_3;
            }
            total_part[group] = total_;
        }
        combine_sum_f32(groups, 1, total_part, &total);
    } else {
        const int64_t groups = row_groups(n, 4, 32);
        const int64_t rows = (n + groups - 1) / groups;
        #pragma omp parallel for schedule(static) if(parallel: c*n > 4096)
        for (int64_t group = 0; group < groups; group++) {
            const int64_t i0 = group*rows;
            const int64_t i1 = MIN(n, i0 + rows);
            double total_sum = 0.0;
            for (int64_t i = i0; i < i1; i++) {
                float shifted_greatest = -INFINITY;
                int shifted_greatest_nan = 0;
                const float *logits_i = logits + i*logits_s0;
                #pragma omp simd reduction(max:shifted_greatest) reduction(|:shifted_greatest_nan)
                for (int64_t j = 0; j < c; j++) {
                    const float value = logits_i[j];
                    shifted_greatest = value > shifted_greatest ? value : shifted_greatest;
                    shifted_greatest_nan |= value != value;
                }
                if (shifted_greatest_nan)
                    shifted_greatest = NAN;
                double total_sum_ = 0.0;
                for (int64_t j0_ = 0; j0_ < c; j0_ += SUM_BLOCK) {
                    const int64_t j1_ = MIN(c, j0_ + SUM_BLOCK);
                    float total_block = 0.0f;
                    #pragma omp simd reduction(+:total_block)
                    for (int64_t j = j0_; j < j1_; j++) {
                        const float shifted = logits_i[j] - shifted_greatest;
                        total_block += expf(shifted);
                    }
                    total_sum_ += total_block;
                }
                const float total_ = (float)total_sum_;
                const float t = logf(total_);
                float *stored_i = stored + i*c;
                #pragma omp simd
                for (int64_t j = 0; j < c; j++) {
                    const float shifted = logits_i[j] - shifted_greatest;
                    stored_i[j] = shifted - t;
                }
                total_sum += stored[i*c + labels[i]];
            }
            total_part_[group] = total_sum;
        }
        combine_sum_f32(groups, 1, total_part_, &total);
    }
    loss[0] = -(total/(float)n);
    return 0;
}

int64_t softmax_cross_entropy_forward_workspace(int64_t n, int64_t c)
{
    (void)c;
    return 0
        + ROUND_UP(row_groups(n, 64, 32) * 8)
        + ROUND_UP(row_groups(n, 4, 32) * 8);
}

/*
 * softmax cross entropy forward
 *     shifted = logits - amax(logits, axes=(1,))
 *     log_probabilities = shifted - log(sum(exp(shifted), axes=(1,)))
 *     loss = -mean(index(log_probabilities, iota(n), labels), axes=(0,))
 * in:   logits f32[n c], labels i64[n]
 * out:  loss f32[], log_probabilities f32[n c]
 * returns 1: an index is out of range, unless 0 <= labels[i] < c
 */
int softmax_cross_entropy_forward(
    int64_t n,
    int64_t c,
    const float *restrict logits,
    int64_t logits_s0,
    const int64_t *restrict labels,
    float *restrict loss,
    float *restrict log_probabilities,
    void *workspace)
{
    char *space = workspace;
    double *restrict total_part = carve(&space, row_groups(n, 64, 32) * 8);
    double *restrict total_part_ = carve(&space, row_groups(n, 4, 32) * 8);
    int outside = 0;
    for (int64_t k = 0; k < n; k++)
        outside |= (labels[k] < 0) | (labels[k] >= c);
    if (outside)
        return 1;
    float total;
    if (c < SHORT_ROW) {
        const int64_t groups = row_groups(n, 64, 32);
        const int64_t rows = (n + groups - 1) / groups;
        #pragma omp parallel for schedule(static) if(parallel: c*n > 4096)
        for (int64_t group = 0; group < groups; group++) {
            const int64_t i0 = group*rows;
            const int64_t i1 = MIN(n, i0 + rows);
            double total_ = 0.0;
            for (int64_t i2 = i0; i2 < i1; i2 += 64) {
                const int64_t i3 = MIN(i1, i2 + 64);
                float shifted_greatest[64];
                float total_2[64];
                float kept[64];
                for (int64_t i = i2; i < i3; i++)
                    shifted_greatest[i - i2] = -INFINITY;
                for (int64_t j = 0; j < c; j++) {
                    #pragma omp simd
                    for (int64_t i = i2; i < i3; i++) {
                        const float value = logits[i*logits_s0 + j];
                        shifted_greatest[i - i2] = value > shifted_greatest[i - i2] || value !=
                            value ? value : shifted_greatest[i - i2];
                    }
                }
                for (int64_t i = i2; i < i3; i++)
                    total_2[i - i2] = 0.0f;
                for (int64_t j = 0; j < c; j++) {
                    #pragma omp simd
                    for (int64_t i = i2; i < i3; i++) {
                        const float shifted = logits[i*logits_s0 + j] - shifted_greatest[i - i2];
                        total_2[i - i2] += expf(shifted);
                    }
                }
                #pragma omp simd
                for (int64_t i = i2; i < i3; i++)
                    kept[i - i2] = logf(total_2[i - i2]);
                for (int64_t j = 0; j < c; j++) {
                    #pragma omp simd
                    for (int64_t i = i2; i < i3; i++) {
                        const float shifted = logits[i*logits_s0 + j] - shifted_greatest[i - i2];
                        log_probabilities[i*c + j] = shifted - kept[i - i2];
                    }
                }
                float total_3 = 0.0f;
                #pragma omp simd reduction(+:total_3)
                for (int64_t i = i2; i < i3; i++)
                    total_3 += log_probabilities[i*c + labels[i]];
                total_ += total_3;
            }
            total_part[group] = total_;
        }
        combine_sum_f32(groups, 1, total_part, &total);
    } else {
        const int64_t groups = row_groups(n, 4, 32);
        const int64_t rows = (n + groups - 1) / groups;
        #pragma omp parallel for schedule(static) if(parallel: c*n > 4096)
        for (int64_t group = 0; group < groups; group++) {
            const int64_t i0 = group*rows;
            const int64_t i1 = MIN(n, i0 + rows);
            double total_sum = 0.0;
            for (int64_t i = i0; i < i1; i++) {
                float shifted_greatest = -INFINITY;
                int shifted_greatest_nan = 0;
                const float *logits_i = logits + i*logits_s0;
                #pragma omp simd reduction(max:shifted_greatest) reduction(|:shifted_greatest_nan)
                for (int64_t j = 0; j < c; j++) {
                    const float value = logits_i[j];
                    shifted_greatest = value > shifted_greatest ? value : shifted_greatest;
                    shifted_greatest_nan |= value != value;
                }
                if (shifted_greatest_nan)
                    shifted_greatest = NAN;
                double total_sum_ = 0.0;
                for (int64_t j0_ = 0; j0_ < c; j0_ += SUM_BLOCK) {
                    const int64_t j1_ = MIN(c, j0_ + SUM_BLOCK);
                    float total_block = 0.0f;
                    #pragma omp simd reduction(+:total_block)
                    for (int64_t j = j0_; j < j1_; j++) {
                        const float shifted = logits_i[j] - shifted_greatest;
                        total_block += expf(shifted);
                    }
                    total_sum_ += total_block;
                }
                const float total_ = (float)total_sum_;
                const float t = logf(total_);
                float *log_probabilities_i = log_probabilities + i*c;
                #pragma omp simd
                for (int64_t j = 0; j < c; j++) {
                    const float shifted = logits_i[j] - shifted_greatest;
                    log_probabilities_i[j] = shifted - t;
                }
                total_sum += log_probabilities[i*c + labels[i]];
            }
            total_part_[group] = total_sum;
        }
        combine_sum_f32(groups, 1, total_part_, &total);
    }
    loss[0] = -(total/(float)n);
    return 0;
}

int64_t softmax_cross_entropy_backward_workspace(int64_t n, int64_t c)
{
    (void)n;
    (void)c;
    return 0;
}

/*
 * softmax cross entropy backward
 *     one_hot = labels == iota(c)
 *     grad_logits = grad_loss*(exp(log_probabilities) - one_hot)/n
 * in:   labels i64[n], log_probabilities f32[n c], grad_loss f32[]
 * out:  grad_logits f32[n c]
 * Backward PROVED, under: 0 <= labels < c.
 */
int softmax_cross_entropy_backward(
    int64_t n,
    int64_t c,
    const int64_t *restrict labels,
    const float *restrict log_probabilities,
    int64_t log_probabilities_s0,
    const float *restrict grad_loss,
    float *restrict grad_logits,
    void *workspace)
{
    (void)workspace;
    if (c == 0)
        return 0;
    const float grad_loss_0 = grad_loss[0];
    if (c < SHORT_ROW) {
        #pragma omp parallel for schedule(static) if(parallel: c*n > 8192)
        for (int64_t i0 = 0; i0 < n; i0 += 64) {
            const int64_t i3 = MIN(n, i0 + 64);
            for (int64_t j = 0; j < c; j++) {
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++) {
                    const int one_hot = labels[i] == j;
                    const float t = expf(log_probabilities[i*log_probabilities_s0 + j]) - (one_hot
                        ? 1.0f : 0.0f);
                    grad_logits[i*c + j] = grad_loss_0*t/(float)n;
                }
            }
        }
    } else {
        #pragma omp parallel for schedule(static) if(parallel: c*n > 8192)
        for (int64_t i = 0; i < n; i++) {
            const float *log_probabilities_i = log_probabilities + i*log_probabilities_s0;
            const int64_t labels_i = labels[i];
            float *grad_logits_i = grad_logits + i*c;
            #pragma omp simd
            for (int64_t j = 0; j < c; j++) {
                const int one_hot = labels_i == j;
                const float t = grad_loss_0 * (expf(log_probabilities_i[j]) - (one_hot ? 1.0f :
                    0.0f));
                grad_logits_i[j] = t/(float)n;
            }
        }
    }
    return 0;
}
