/*
 * LogSoftmax, written by symgrad.
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

int64_t eager_log_softmax_inference_workspace(int64_t n, int64_t m)
{
    (void)n;
    (void)m;
    return 0;
}

/*
 * eager log softmax inference
 *     t0 = x - amax(x, axes=(1,))
 *     output = t0 - log(sum(exp(t0), axes=(1,)))
 * in:   x f32[n m]
 * out:  output f32[n m]
 */
int eager_log_softmax_inference(
    int64_t n,
    int64_t m,
    const float *restrict x,
    int64_t x_s0,
    float *restrict output,
    void *workspace)
{
    (void)workspace;
    if (m < SHORT_ROW) {
        #pragma omp parallel for schedule(static) if(parallel: m*n > 4096)
        for (int64_t i0 = 0; i0 < n; i0 += 64) {
            const int64_t i3 = MIN(n, i0 + 64);
            float greatest[64];
            float total[64];
            float kept[64];
            for (int64_t i = i0; i < i3; i++)
                greatest[i - i0] = -INFINITY;
            for (int64_t j = 0; j < m; j++) {
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++) {
                    const float value = x[i*x_s0 + j];
                    greatest[i - i0] = value > greatest[i - i0] || value != value ? value :
                        greatest[i - i0];
                }
            }
            for (int64_t i = i0; i < i3; i++)
                total[i - i0] = 0.0f;
            for (int64_t j = 0; j < m; j++) {
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++)
                    total[i - i0] += expf(x[i*x_s0 + j] - greatest[i - i0]);
            }
            #pragma omp simd
            for (int64_t i = i0; i < i3; i++)
                kept[i - i0] = logf(total[i - i0]);
            for (int64_t j = 0; j < m; j++) {
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++)
                    output[i*m + j] = x[i*x_s0 + j] - greatest[i - i0] - kept[i - i0];
            }
        }
    } else {
        #pragma omp parallel for schedule(static) if(parallel: m*n > 4096)
        for (int64_t i = 0; i < n; i++) {
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
            float total = 0.0f;
            #pragma omp simd reduction(+:total)
            for (int64_t j = 0; j < m; j++)
                total += expf(x_i[j] - greatest);
            const float t = logf(total);
            float *output_i = output + i*m;
            #pragma omp simd
            for (int64_t j = 0; j < m; j++)
                output_i[j] = x_i[j] - greatest - t;
        }
    }
    return 0;
}

int64_t eager_log_softmax_forward_workspace(int64_t n, int64_t m)
{
    (void)n;
    (void)m;
    return 0;
}

/*
 * eager log softmax forward
 *     residual_1 = amax(x, axes=(1,))
 *     t0 = x - residual_1
 *     residual_2 = sum(exp(t0), axes=(1,))
 *     output = t0 - log(residual_2)
 * in:   x f32[n m]
 * out:  output f32[n m], residual_1 f32[n 1], residual_2 f32[n 1]
 */
int eager_log_softmax_forward(
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
        #pragma omp parallel for schedule(static) if(parallel: m*n > 4096)
        for (int64_t i0 = 0; i0 < n; i0 += 64) {
            const int64_t i3 = MIN(n, i0 + 64);
            float kept[64];
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
                kept[i - i0] = logf(residual_2[i]);
            for (int64_t j = 0; j < m; j++) {
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++)
                    output[i*m + j] = x[i*x_s0 + j] - residual_1[i] - kept[i - i0];
            }
        }
    } else {
        #pragma omp parallel for schedule(static) if(parallel: m*n > 4096)
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
            const float t = logf(residual_2_);
            float *output_i = output + i*m;
            #pragma omp simd
            for (int64_t j = 0; j < m; j++)
                output_i[j] = x_i[j] - residual_1_ - t;
        }
    }
    return 0;
}

int64_t eager_log_softmax_backward_workspace(int64_t n, int64_t m)
{
    (void)n;
    (void)m;
    return 0;
}

/*
 * eager log softmax backward
 *     t0 = grad_output + sum(-grad_output, axes=(1,))/residual_2*exp(x - residual_1)
 *     t1 = x == residual_1
 *     grad_x = t0 + sum(-t0, axes=(1,))/sum(t1, axes=(1,))*t1
 * in:   x f32[n m], residual_1 f32[n 1], residual_2 f32[n 1], grad_output f32[n m]
 * out:  grad_x f32[n m]
 * Backward PROVED (derived: no backward written), under: x[i, j] - x[i, k] == 0; x[i, l] - x[i, m]
 *     == 0.
 */
int eager_log_softmax_backward(
    int64_t n,
    int64_t m,
    const float *restrict x,
    int64_t x_s0,
    const float *restrict residual_1,
    const float *restrict residual_2,
    const float *restrict grad_output,
    int64_t grad_output_s0,
    float *restrict grad_x,
    void *workspace)
{
    (void)workspace;
    if (m < SHORT_ROW) {
        #pragma omp parallel for schedule(static) if(parallel: m*n > 2048)
        for (int64_t i0 = 0; i0 < n; i0 += 64) {
            const int64_t i3 = MIN(n, i0 + 64);
            float total[64];
            float total_[64];
            float kept[64];
            float total_2[64];
            float kept_[64];
            for (int64_t i = i0; i < i3; i++)
                total[i - i0] = 0.0f;
            for (int64_t i = i0; i < i3; i++)
                total_[i - i0] = 0.0f;
            for (int64_t j = 0; j < m; j++) {
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++) {
                    total[i - i0] += x[i*x_s0 + j] == residual_1[i] ? 1.0f : 0.0f;
                    total_[i - i0] += -grad_output[i*grad_output_s0 + j];
                }
            }
            #pragma omp simd
            for (int64_t i = i0; i < i3; i++)
                kept[i - i0] = total_[i - i0] / residual_2[i];
            for (int64_t i = i0; i < i3; i++)
                total_2[i - i0] = 0.0f;
            for (int64_t j = 0; j < m; j++) {
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++) {
                    const float t = grad_output[i*grad_output_s0 + j] + kept[i - i0] *
                        expf(x[i*x_s0 + j] - residual_1[i]);
                    grad_x[i*m + j] = t;
                    total_2[i - i0] += -t;
                }
            }
            #pragma omp simd
            for (int64_t i = i0; i < i3; i++)
                kept_[i - i0] = total_2[i - i0] / total[i - i0];
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
            const float *grad_output_i = grad_output + i*grad_output_s0;
            const float *x_i = x + i*x_s0;
            const float residual_1_i = residual_1[i];
            #pragma omp simd reduction(+:total,total_)
            for (int64_t j = 0; j < m; j++) {
                total += x_i[j] == residual_1_i ? 1.0f : 0.0f;
                total_ += -grad_output_i[j];
            }
            float total_2 = 0.0f;
            const float t = total_/residual_2[i];
            float *grad_x_i = grad_x + i*m;
            #pragma omp simd reduction(+:total_2)
            for (int64_t j = 0; j < m; j++) {
                const float t_ = grad_output_i[j] + t * expf(x_i[j] - residual_1_i);
                grad_x_i[j] = t_;
                total_2 += -t_;
            }
            const float t_ = total_2/total;
            #pragma omp simd
            for (int64_t j = 0; j < m; j++) {
                const float kept = grad_x_i[j];
                grad_x_i[j] = kept + t_ * (x_i[j] == residual_1_i ? 1.0f : 0.0f);
            }
        }
    }
    return 0;
}
