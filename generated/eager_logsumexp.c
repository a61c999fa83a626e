/*
 * LogSumExp, written by symgrad.
 * Backward PROVED (derived: no backward written), under: x[i, j] - x[i, k] == 0; x[i, l] - x[i, m]
 *     == 0.
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

int64_t eager_logsumexp_inference_workspace(int64_t n, int64_t m)
{
    (void)n;
    (void)m;
    return 0;
}

/*
 * eager logsumexp inference
 *     output = log(sum(exp(x - amax(x, axes=(1,))), axes=(1,))) + amax(x, axes=(1,))
 * in:   x f32[n m]
 * out:  output f32[n]
 */
int eager_logsumexp_inference(
    int64_t n,
    int64_t m,
    const float *restrict x,
    int64_t x_s0,
    float *restrict output,
    void *workspace)
{
    (void)workspace;
    if (m < SHORT_ROW) {
        #pragma omp parallel for schedule(static) if(parallel: m*n > 8192)
        for (int64_t i0 = 0; i0 < n; i0 += 64) {
            const int64_t i3 = MIN(n, i0 + 64);
            float output_greatest[64];
            float total[64];
            for (int64_t i = i0; i < i3; i++)
                output_greatest[i - i0] = -INFINITY;
            for (int64_t j = 0; j < m; j++) {
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++) {
                    const float value = x[i*x_s0 + j];
                    output_greatest[i - i0] = value > output_greatest[i - i0] || value != value ?
                        value : output_greatest[i - i0];
                }
            }
            for (int64_t i = i0; i < i3; i++)
                total[i - i0] = 0.0f;
            for (int64_t j = 0; j < m; j++) {
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++)
                    total[i - i0] += expf(x[i*x_s0 + j] - output_greatest[i - i0]);
            }
            #pragma omp simd
            for (int64_t i = i0; i < i3; i++)
                output[i] = logf(total[i - i0]) + output_greatest[i - i0];
        }
    } else {
        #pragma omp parallel for schedule(static) if(parallel: m*n > 8192)
        for (int64_t i = 0; i < n; i++) {
            float output_greatest = -INFINITY;
            int output_greatest_nan = 0;
            const float *x_i = x + i*x_s0;
            #pragma omp simd reduction(max:output_greatest) reduction(|:output_greatest_nan)
            for (int64_t j = 0; j < m; j++) {
                const float value = x_i[j];
                output_greatest = value > output_greatest ? value : output_greatest;
                output_greatest_nan |= value != value;
            }
            if (output_greatest_nan)
                output_greatest = NAN;
            float total = 0.0f;
            #pragma omp simd reduction(+:total)
            for (int64_t j = 0; j < m; j++)
                total += expf(x_i[j] - output_greatest);
            output[i] = logf(total) + output_greatest;
        }
    }
    return 0;
}

int64_t eager_logsumexp_forward_workspace(int64_t n, int64_t m)
{
    (void)n;
    (void)m;
    return 0;
}

/*
 * eager logsumexp forward
 *     residual_1 = amax(x, axes=(1,))
 *     residual_2 = sum(exp(x - residual_1), axes=(1,))
 *     output = log(residual_2) + residual_1
 * in:   x f32[n m]
 * out:  output f32[n], residual_1 f32[n 1], residual_2 f32[n 1]
 */
int eager_logsumexp_forward(
    int64_t n,
    int64_t m,
    const float *restrict x,
    int64_t x_s0,
    float *restrict output,
    float *restrict residual_1,
    float *restrict residual_2,
    void *workspace)
{
    (void)workspace;
    if (m < SHORT_ROW) {
        #pragma omp parallel for schedule(static) if(parallel: m*n > 8192)
        for (int64_t i0 = 0; i0 < n; i0 += 64) {
            const int64_t i3 = MIN(n, i0 + 64);
            for (int64_t i = i0; i < i3; i++)
                residual_1[i] = -INFINITY;
            for (int64_t j = 0; j < m; j++) {
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++) {
                    const float value = x[i*x_s0 + j];
                    residual_1[i] = value > residual_1[i] || value != value ? value : residual_1[i];
                }
            }
            for (int64_t i = i0; i < i3; i++)
                residual_2[i] = 0.0f;
            for (int64_t j = 0; j < m; j++) {
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++)
                    residual_2[i] += expf(x[i*x_s0 + j] - residual_1[i]);
            }
            #pragma omp simd
            for (int64_t i = i0; i < i3; i++)
                output[i] = logf(residual_2[i]) + residual_1[i];
        }
    } else {
        #pragma omp parallel for schedule(static) if(parallel: m*n > 8192)
        for (int64_t i = 0; i < n; i++) {
            float residual_1_ = -INFINITY;
            int residual_1__nan = 0;
            const float *x_i = x + i*x_s0;
            #pragma omp simd reduction(max:residual_1_) reduction(|:residual_1__nan)
            for (int64_t j = 0; j < m; j++) {
                const float value = x_i[j];
                residual_1_ = value > residual_1_ ? value : residual_1_;
                residual_1__nan |= value != value;
            }
            if (residual_1__nan)
                residual_1_ = NAN;
            residual_1[i] = residual_1_;
            float residual_2_ = 0.0f;
            #pragma omp simd reduction(+:residual_2_)
            for (int64_t j = 0; j < m; j++)
                residual_2_ += expf(x_i[j] - residual_1_);
            residual_2[i] = residual_2_;
            output[i] = logf(residual_2_) + residual_1_;
        }
    }
    return 0;
}

int64_t eager_logsumexp_backward_workspace(int64_t n, int64_t m)
{
    (void)n;
    (void)m;
    return 0;
}

/*
 * eager logsumexp backward
 *     t0 = grad_output/residual_2*exp(x - residual_1)
 *     t1 = x == residual_1
 *     grad_x = t0 + (grad_output + sum(-t0, axes=(1,)))/sum(t1, axes=(1,))*t1
 * in:   x f32[n m], residual_1 f32[n 1], residual_2 f32[n 1], grad_output f32[n]
 * out:  grad_x f32[n m]
 * Backward PROVED (derived: no backward written), under: x[i, j] - x[i, k] == 0; x[i, l] - x[i, m]
 *     == 0.
 */
int eager_logsumexp_backward(
    int64_t n,
    int64_t m,
    const float *restrict x,
    int64_t x_s0,
    const float *restrict residual_1,
    const float *restrict residual_2,
    const float *restrict grad_output,
    float *restrict grad_x,
    void *workspace)
{
    (void)workspace;
    if (m < SHORT_ROW) {
        #pragma omp parallel for schedule(static) if(parallel: m*n > 2048)
        for (int64_t i0 = 0; i0 < n; i0 += 64) {
            const int64_t i3 = MIN(n, i0 + 64);
            float total[64];
            float kept[64];
            float total_[64];
            float kept_[64];
            for (int64_t i = i0; i < i3; i++)
                total[i - i0] = 0.0f;
            for (int64_t j = 0; j < m; j++) {
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++)
                    total[i - i0] += x[i*x_s0 + j] == residual_1[i] ? 1.0f : 0.0f;
            }
            #pragma omp simd
            for (int64_t i = i0; i < i3; i++)
                kept[i - i0] = grad_output[i] / residual_2[i];
            for (int64_t i = i0; i < i3; i++)
                total_[i - i0] = 0.0f;
            for (int64_t j = 0; j < m; j++) {
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++) {
                    const float t = kept[i - i0] * expf(x[i*x_s0 + j] - residual_1[i]);
                    grad_x[i*m + j] = t;
                    total_[i - i0] += -t;
                }
            }
            #pragma omp simd
            for (int64_t i = i0; i < i3; i++)
                kept_[i - i0] = (grad_output[i] + total_[i - i0]) / total[i - i0];
            for (int64_t j = 0; j < m; j++) {
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++) {
                    const float kept_2 = grad_x[i*m + j];
                    const float t = kept_[i - i0] * (x[i*x_s0 + j] == residual_1[i] ? 1.0f : 0.0f);
                    grad_x[i*m + j] = kept_2 + t;
                }
            }
        }
    } else {
        #pragma omp parallel for schedule(static) if(parallel: m*n > 2048)
        for (int64_t i = 0; i < n; i++) {
            float total = 0.0f;
            float total_ = 0.0f;
            const float t = grad_output[i] / residual_2[i];
            const float *x_i = x + i*x_s0;
            const float residual_1_i = residual_1[i];
            float *grad_x_i = grad_x + i*m;
            #pragma omp simd reduction(+:total,total_)
            for (int64_t j = 0; j < m; j++) {
                const float x_ij = x_i[j];
                const float t_ = t * expf(x_ij - residual_1_i);
                total += x_ij == residual_1_i ? 1.0f : 0.0f;
                grad_x_i[j] = t_;
                total_ += -t_;
            }
            const float t_ = (grad_output[i] + total_) / total;
            #pragma omp simd
            for (int64_t j = 0; j < m; j++) {
                const float kept = grad_x_i[j];
                grad_x_i[j] = kept + t_ * (x_i[j] == residual_1_i ? 1.0f : 0.0f);
            }
        }
    }
    return 0;
}
