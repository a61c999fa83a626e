#include "_prelude.h"

int64_t gelu_workspace(int64_t n, int64_t m)
{
    (void)n;
    (void)m;
    return 0;
}

/*
 * gelu
 * in:   x f32[n m], grad_y f32[n m]
 * out:  y f32[n m], grad_x f32[n m]
 */
int gelu(
    int64_t n,
    int64_t m,
    const float *restrict x,
    const float *restrict grad_y,
    float *restrict y,
    float *restrict grad_x,
    void *workspace)
{
    (void)workspace;
    #pragma omp parallel for schedule(static) if(parallel: m*n > 2048)
    for (int64_t i0 = 0; i0 < m*n; i0 += BLOCK) {
        const int64_t i1 = MIN(m*n, i0 + BLOCK);
        #pragma omp simd
        for (int64_t i = i0; i < i1; i++) {
            const float x_i = x[i];
            const float cdf = (symgrad_erff(x_i*0.70710677f) + 1.0f) * 0.5f;
            const float density = symgrad_expf(x_i*x_i*(-0.5f)) * 0.3989423f;
            y[i] = x_i*cdf;
            grad_x[i] = grad_y[i] * (cdf + x_i*density);
        }
    }
    return 0;
}
