/*
 * LogSumExp, written by symgrad.
 * Backward PROVED (derived: no backward written).
 * This C VALIDATED against what was traced, for all sizes and over the reals.
 */
#include "_prelude.h"

/* Several numbers at once: libmvec has these functions. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 35)
__attribute__((simd("notinbranch"))) float logf(float);
#endif
#endif

int64_t nn_logsumexp_inference_workspace(int64_t n, int64_t m)
{
    (void)n;
    (void)m;
    return 0;
}

/*
 * nn logsumexp inference
 *     t0 = where(amax(x, axes=(1,)) > 0.0, 3.4028234663852886e+38, -3.4028234663852886e+38)
 *     t1 = sum(exp(x - where(abs(amax(x, axes=(1,))) < inf, amax(x, axes=(1,)), t0)), axes=(1,))
 *     output = log(t1) + where(abs(amax(x, axes=(1,))) < inf, amax(x, axes=(1,)), t0)
 * in:   x f32[n m]
 * out:  output f32[n]
 * Evaluated as written but for: sums in lanes, sums in blocks, sums of floats in double.
 */
int nn_logsumexp_inference(
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
            float greatest[64];
            float total[64];
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
            #pragma omp simd
            for (int64_t i = i0; i < i3; i++) {
                output[i] = fabsf(greatest[i - i0]) < INFINITY ? greatest[i - i0] : greatest[i -
                    i0] > 0.0f ? 3.4028235e+38f : -3.4028235e+38f;
            }
            for (int64_t i = i0; i < i3; i++)
                total[i - i0] = 0.0f;
            for (int64_t j = 0; j < m; j++) {
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++)
                    total[i - i0] += symgrad_expf(x[i*x_s0 + j] - output[i]);
            }
            #pragma omp simd
            for (int64_t i = i0; i < i3; i++) {
                const float kept = output[i];
                output[i] = logf(total[i - i0]) + kept;
            }
        }
    } else {
        #pragma omp parallel for schedule(static) if(parallel: m*n > 8192)
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
            double total_sum = 0.0;
            const float t = fabsf(greatest) < INFINITY ? greatest : greatest > 0.0f ?
                3.4028235e+38f : -3.4028235e+38f;
            for (int64_t j0_ = 0; j0_ < m; j0_ += SUM_BLOCK) {
                const int64_t j1_ = MIN(m, j0_ + SUM_BLOCK);
                float total_block = 0.0f;
                #pragma omp simd reduction(+:total_block)
                for (int64_t j = j0_; j < j1_; j++)
                    total_block += symgrad_expf(x_i[j] - t);
                total_sum += total_block;
            }
            const float total = (float)total_sum;
            output[i] = logf(total) + t;
        }
    }
    return 0;
}

int64_t nn_logsumexp_forward_workspace(int64_t n, int64_t m)
{
    (void)n;
    (void)m;
    return 0;
}

/*
 * nn logsumexp forward
 *     t0 = where(amax(x, axes=(1,)) > 0.0, 3.4028234663852886e+38, -3.4028234663852886e+38)
 *     residual_1 = where(abs(amax(x, axes=(1,))) < inf, amax(x, axes=(1,)), t0)
 *     residual_2 = sum(exp(x - residual_1), axes=(1,))
 *     output = log(residual_2) + residual_1
 * in:   x f32[n m]
 * out:  output f32[n], residual_1 f32[n 1], residual_2 f32[n 1]
 * Evaluated as written but for: sums in lanes, sums in blocks, sums of floats in double.
 */
int nn_logsumexp_forward(
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
            float residual_1_greatest[64];
            for (int64_t i = i0; i < i3; i++)
                residual_1_greatest[i - i0] = -INFINITY;
            for (int64_t j = 0; j < m; j++) {
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++) {
                    const float value = x[i*x_s0 + j];
                    residual_1_greatest[i - i0] = value > residual_1_greatest[i - i0] || value !=
                        value ? value : residual_1_greatest[i - i0];
                }
            }
            #pragma omp simd
            for (int64_t i = i0; i < i3; i++) {
                const float t = residual_1_greatest[i - i0] > 0.0f ? 3.4028235e+38f :
                    -3.4028235e+38f;
                residual_1[i] = fabsf(residual_1_greatest[i - i0]) < INFINITY ?
                    residual_1_greatest[i - i0] : t;
            }
            for (int64_t i = i0; i < i3; i++)
                residual_2[i] = 0.0f;
            for (int64_t j = 0; j < m; j++) {
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++)
                    residual_2[i] += symgrad_expf(x[i*x_s0 + j] - residual_1[i]);
            }
            #pragma omp simd
            for (int64_t i = i0; i < i3; i++)
                output[i] = logf(residual_2[i]) + residual_1[i];
        }
    } else {
        #pragma omp parallel for schedule(static) if(parallel: m*n > 8192)
        for (int64_t i = 0; i < n; i++) {
            float residual_1_greatest = -INFINITY;
            int residual_1_greatest_nan = 0;
            const float *x_i = x + i*x_s0;
            #pragma omp simd reduction(max:residual_1_greatest) reduction(|:residual_1_greatest_nan)
            for (int64_t j = 0; j < m; j++) {
                const float value = x_i[j];
                residual_1_greatest = value > residual_1_greatest ? value : residual_1_greatest;
                residual_1_greatest_nan |= value != value;
            }
            if (residual_1_greatest_nan)
                residual_1_greatest = NAN;
            const float t = residual_1_greatest > 0.0f ? 3.4028235e+38f : -3.4028235e+38f;
            residual_1[i] = fabsf(residual_1_greatest) < INFINITY ? residual_1_greatest : t;
            double residual_2_sum = 0.0;
            for (int64_t j0_ = 0; j0_ < m; j0_ += SUM_BLOCK) {
                const int64_t j1_ = MIN(m, j0_ + SUM_BLOCK);
                float residual_2_block = 0.0f;
                #pragma omp simd reduction(+:residual_2_block)
                for (int64_t j = j0_; j < j1_; j++) {
                    const float t_ = x_i[j] - (fabsf(residual_1_greatest) < INFINITY ?
                        residual_1_greatest : t);
                    residual_2_block += symgrad_expf(t_);
                }
                residual_2_sum += residual_2_block;
            }
            const float residual_2_ = (float)residual_2_sum;
            residual_2[i] = residual_2_;
            output[i] = logf(residual_2_) + (fabsf(residual_1_greatest) < INFINITY ?
                residual_1_greatest : t);
        }
    }
    return 0;
}

int64_t nn_logsumexp_backward_workspace(int64_t n, int64_t m)
{
    (void)n;
    (void)m;
    return 0;
}

/*
 * nn logsumexp backward
 *     grad_x = grad_output/residual_2*exp(x - residual_1)
 * in:   x f32[n m], residual_1 f32[n 1], residual_2 f32[n 1], grad_output f32[n]
 * out:  grad_x f32[n m]
 * Backward PROVED (derived: no backward written).
 * Evaluated as written.
 */
int nn_logsumexp_backward(
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
    if (m == 0)
        return 0;
    if (m < SHORT_ROW) {
        #pragma omp parallel for schedule(static) if(parallel: m*n > 8192)
        for (int64_t i0 = 0; i0 < n; i0 += 64) {
            const int64_t i3 = MIN(n, i0 + 64);
            float kept[64];
            #pragma omp simd
            for (int64_t i = i0; i < i3; i++)
                kept[i - i0] = grad_output[i] / residual_2[i];
            for (int64_t j = 0; j < m; j++) {
                #pragma omp simd
                for (int64_t i = i0; i < i3; i++)
                    grad_x[i*m + j] = kept[i - i0] * symgrad_expf(x[i*x_s0 + j] - residual_1[i]);
            }
        }
    } else {
        #pragma omp parallel for schedule(static) if(parallel: m*n > 8192)
        for (int64_t i = 0; i < n; i++) {
            const float t = grad_output[i] / residual_2[i];
            const float *x_i = x + i*x_s0;
            const float residual_1_i = residual_1[i];
            float *grad_x_i = grad_x + i*m;
            #pragma omp simd
            for (int64_t j = 0; j < m; j++)
                grad_x_i[j] = t * symgrad_expf(x_i[j] - residual_1_i);
        }
    }
    return 0;
}
