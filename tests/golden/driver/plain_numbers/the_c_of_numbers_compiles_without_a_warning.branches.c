/*
 * Branches, written by symgrad.
 * Backward PROVED for all real alpha, all integer factor.
 */
#include "_prelude.h"

int64_t branches_forward_case0_workspace(int64_t n, int64_t m)
{
    (void)n;
    (void)m;
    return 0;
}

/*
 * branches forward case0
 *     output = x*factor
 * in:   x f32[n m], factor i64
 * out:  output f32[n m]
 */
int branches_forward_case0(
    int64_t n,
    int64_t m,
    const float *restrict x,
    int64_t factor,
    float *restrict output,
    void *workspace)
{
    (void)workspace;
    const float t = (float)(double)factor;
    #pragma omp parallel for schedule(static) if(parallel: m*n > 32768)
    for (int64_t i0 = 0; i0 < m*n; i0 += BLOCK) {
        const int64_t i1 = MIN(m*n, i0 + BLOCK);
        #pragma omp simd
        for (int64_t i = i0; i < i1; i++)
            output[i] = x[i]*t;
    }
    return 0;
}

int64_t branches_backward_case0_workspace(int64_t n, int64_t m)
{
    (void)n;
    (void)m;
    return 0;
}

/*
 * branches backward case0
 *     grad_x = grad_output*factor
 * in:   factor i64, grad_output f32[n m]
 * out:  grad_x f32[n m]
 * Backward PROVED for all real alpha, all integer factor.
 */
int branches_backward_case0(
    int64_t n,
    int64_t m,
    int64_t factor,
    const float *restrict grad_output,
    float *restrict grad_x,
    void *workspace)
{
    (void)workspace;
    const float t = (float)(double)factor;
    #pragma omp parallel for schedule(static) if(parallel: m*n > 32768)
    for (int64_t i0 = 0; i0 < m*n; i0 += BLOCK) {
        const int64_t i1 = MIN(m*n, i0 + BLOCK);
        #pragma omp simd
        for (int64_t i = i0; i < i1; i++)
            grad_x[i] = grad_output[i]*t;
    }
    return 0;
}

int64_t branches_forward_case1_workspace(int64_t n, int64_t m)
{
    (void)n;
    (void)m;
    return 0;
}

/*
 * branches forward case1
 *     output = square(x)*alpha*factor
 * in:   x f32[n m], alpha f64, factor i64
 * out:  output f32[n m]
 */
int branches_forward_case1(
    int64_t n,
    int64_t m,
    const float *restrict x,
    double alpha,
    int64_t factor,
    float *restrict output,
    void *workspace)
{
    (void)workspace;
    const float t = (float)alpha;
    const float t_ = (float)(double)factor;
    #pragma omp parallel for schedule(static) if(parallel: m*n > 16384)
    for (int64_t i0 = 0; i0 < m*n; i0 += BLOCK) {
        const int64_t i1 = MIN(m*n, i0 + BLOCK);
        #pragma omp simd
        for (int64_t i = i0; i < i1; i++) {
            const float x_i = x[i];
            output[i] = x_i * x_i * t * t_;
        }
    }
    return 0;
}

int64_t branches_backward_case1_workspace(int64_t n, int64_t m)
{
    (void)n;
    (void)m;
    return 0;
}

/*
 * branches backward case1
 *     grad_x = 2*grad_output*x*alpha*factor
 * in:   x f32[n m], alpha f64, factor i64, grad_output f32[n m]
 * out:  grad_x f32[n m]
 * Backward PROVED for all real alpha, all integer factor.
 */
int branches_backward_case1(
    int64_t n,
    int64_t m,
    const float *restrict x,
    double alpha,
    int64_t factor,
    const float *restrict grad_output,
    float *restrict grad_x,
    void *workspace)
{
    (void)workspace;
    const float t = (float)alpha;
    const float t_ = (float)(double)factor;
    #pragma omp parallel for schedule(static) if(parallel: m*n > 16384)
    for (int64_t i0 = 0; i0 < m*n; i0 += BLOCK) {
        const int64_t i1 = MIN(m*n, i0 + BLOCK);
        #pragma omp simd
        for (int64_t i = i0; i < i1; i++)
            grad_x[i] = 2.0f*grad_output[i]*x[i] * t * t_;
    }
    return 0;
}

int64_t branches_forward_case2_workspace(int64_t n, int64_t m)
{
    (void)n;
    (void)m;
    return 0;
}

/*
 * branches forward case2
 *     output = x*alpha*factor
 * in:   x f32[n m], alpha f64, factor i64
 * out:  output f32[n m]
 */
int branches_forward_case2(
    int64_t n,
    int64_t m,
    const float *restrict x,
    double alpha,
    int64_t factor,
    float *restrict output,
    void *workspace)
{
    (void)workspace;
    const float t = (float)alpha;
    const float t_ = (float)(double)factor;
    #pragma omp parallel for schedule(static) if(parallel: m*n > 16384)
    for (int64_t i0 = 0; i0 < m*n; i0 += BLOCK) {
        const int64_t i1 = MIN(m*n, i0 + BLOCK);
        #pragma omp simd
        for (int64_t i = i0; i < i1; i++)
            output[i] = x[i]*t*t_;
    }
    return 0;
}

int64_t branches_backward_case2_workspace(int64_t n, int64_t m)
{
    (void)n;
    (void)m;
    return 0;
}

/*
 * branches backward case2
 *     grad_x = grad_output*alpha*factor
 * in:   alpha f64, factor i64, grad_output f32[n m]
 * out:  grad_x f32[n m]
 * Backward PROVED for all real alpha, all integer factor.
 */
int branches_backward_case2(
    int64_t n,
    int64_t m,
    double alpha,
    int64_t factor,
    const float *restrict grad_output,
    float *restrict grad_x,
    void *workspace)
{
    (void)workspace;
    const float t = (float)alpha;
    const float t_ = (float)(double)factor;
    #pragma omp parallel for schedule(static) if(parallel: m*n > 16384)
    for (int64_t i0 = 0; i0 < m*n; i0 += BLOCK) {
        const int64_t i1 = MIN(m*n, i0 + BLOCK);
        #pragma omp simd
        for (int64_t i = i0; i < i1; i++)
            grad_x[i] = grad_output[i]*t*t_;
    }
    return 0;
}
