/* SoftmaxCrossEntropy, written by symgrad. * Backward PROVED, under: the maximum of logits is reached more than once. */
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

int64_t softmax_cross_entropy_workspace(int64_t n, int64_t c)
{
    return 0
        + ROUND_UP(4*c*n)
        + ROUND_UP(row_groups(n, 4, 32) * (4));
}

/*
 * softmax cross entropy
 *     shifted = logits - amax(logits, axes=(1,))
 *     log_probabilities = shifted - log(sum(exp(shifted), axes=(1,)))
 *     loss = -mean(index(log_probabilities, iota(n), labels), axes=(0,))
 * in:   logits f32[n c], labels i64[n]
 * out:  loss f32[]
 */
int softmax_cross_entropy(
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
    float *restrict total_part = carve(&space, row_groups(n, 4, 32) * (4));
    int outside = 0;
    for (int64_t i = 0; i < n; i++)
        outside |= (labels[i] < 0) | (labels[i] >= c);
    if (outside)
        return 1;
    const int64_t groups = row_groups(n, 4, 32);
    const int64_t rows = (n + groups - 1) / groups;
    #pragma omp parallel for schedule(static) if(parallel: c*n > 4096)
    for (int64_t group = 0; group < groups; group++) {
        const int64_t i0 = group*rows;
        const int64_t i1 = MIN(n, i0 + rows);
        float total = 0.0f;
        for (int64_t i = i0; i < i1; i++) {
            float greatest = -INFINITY;
            int greatest_nan = 0;
            #pragma omp simd reduction(max:greatest) reduction(|:greatest_nan)
            for (int64_t j = 0; j < c; j++) {
                const float value = logits[i*logits_s0 + j];
                greatest = value > greatest ? value : greatest;
                greatest_nan |= value != value;
            }
            if (greatest_nan)
                greatest = NAN;
            float total_ = 0.0f;
            #pragma omp simd reduction(+:total_)
            for (int64_t j = 0; j < c; j++) {
                const float shifted = logits[i*logits_s0 + j] - greatest;
                total_ += expf(shifted);
            }
            const float t = logf(total_);
            #pragma omp simd
            for (int64_t j = 0; j < c; j++) {
                const float shifted_ = logits[i*logits_s0 + j] - greatest;
                stored[i*c + j] = shifted_ - t;
            }
            total += stored[i*c + labels[i]];
        }
        total_part[group] = total;
    }
    float total_2;
    combine_sum_f32(groups, 1, total_part, &total_2);
    loss[0] = -(total_2/(float)n);
    return 0;
}

int64_t softmax_cross_entropy_forward_workspace(int64_t n, int64_t c)
{
    (void)c;
    return 0
        + ROUND_UP(row_groups(n, 4, 32) * (4));
}

/*
 * softmax cross entropy forward
 *     shifted = logits - amax(logits, axes=(1,))
 *     log_probabilities = shifted - log(sum(exp(shifted), axes=(1,)))
 *     loss = -mean(index(log_probabilities, iota(n), labels), axes=(0,))
 * in:   logits f32[n c], labels i64[n]
 * out:  loss f32[], log_probabilities f32[n c]
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
    float *restrict total_part = carve(&space, row_groups(n, 4, 32) * (4));
    int outside = 0;
    for (int64_t i = 0; i < n; i++)
        outside |= (labels[i] < 0) | (labels[i] >= c);
    if (outside)
        return 1;
    const int64_t groups = row_groups(n, 4, 32);
    const int64_t rows = (n + groups - 1) / groups;
    #pragma omp parallel for schedule(static) if(parallel: c*n > 4096)
    for (int64_t group = 0; group < groups; group++) {
        const int64_t i0 = group*rows;
        const int64_t i1 = MIN(n, i0 + rows);
        float total = 0.0f;
        for (int64_t i = i0; i < i1; i++) {
            float greatest = -INFINITY;
            int greatest_nan = 0;
            #pragma omp simd reduction(max:greatest) reduction(|:greatest_nan)
            for (int64_t j = 0; j < c; j++) {
                const float value = logits[i*logits_s0 + j];
                greatest = value > greatest ? value : greatest;
                greatest_nan |= value != value;
            }
            if (greatest_nan)
                greatest = NAN;
            float total_ = 0.0f;
            #pragma omp simd reduction(+:total_)
            for (int64_t j = 0; j < c; j++) {
                const float shifted = logits[i*logits_s0 + j] - greatest;
                total_ += expf(shifted);
            }
            const float t = logf(total_);
            #pragma omp simd
            for (int64_t j = 0; j < c; j++) {
                const float shifted_ = logits[i*logits_s0 + j] - greatest;
                log_probabilities[i*c + j] = shifted_ - t;
            }
            total += log_probabilities[i*c + labels[i]];
        }
        total_part[group] = total;
    }
    float total_2;
    combine_sum_f32(groups, 1, total_part, &total_2);
    loss[0] = -(total_2/(float)n);
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
 * Backward PROVED, under: the maximum of logits is reached more than once.
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
    const float grad_loss_0 = grad_loss[0];
    #pragma omp parallel for schedule(static) if(parallel: c*n > 8192)
    for (int64_t i = 0; i < n; i++) {
        const int64_t labels_i = labels[i];
        #pragma omp simd
        for (int64_t j = 0; j < c; j++) {
            const int one_hot = labels_i == j;
            const float t = expf(log_probabilities[i*log_probabilities_s0 + j]) - (one_hot ? 1.0f :
                0.0f);
            grad_logits[i*c + j] = grad_loss_0*t/(float)n;
        }
    }
    return 0;
}
