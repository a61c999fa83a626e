#include <math.h>
#include <stdint.h>

#ifndef _OPENMP
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#endif

int64_t softmax_backward_workspace(int64_t n, int64_t m)
{
    (void)n;
    (void)m;
    return 0;
}

/*
 * softmax backward
 * in:   y f32[n m], grad_y f32[n m]
 * out:  grad_x f32[n m]
 */
int softmax_backward(
    int64_t n,
    int64_t m,
    const float *restrict y,
    int64_t y_s0,
    const float *restrict grad_y,
    int64_t grad_y_s0,
    float *restrict grad_x,
    void *workspace)
{
    (void)workspace;
    #pragma omp parallel for schedule(static) if(parallel: m*n > 16384)
    for (int64_t i = 0; i < n; i++) {
        float inner = 0.0f;
        const float *y_i = y + i*y_s0;
        const float *grad_y_i = grad_y + i*grad_y_s0;
        #pragma omp simd reduction(+:inner)
        for (int64_t j = 0; j < m; j++)
            inner += grad_y_i[j]*y_i[j];
        float *grad_x_i = grad_x + i*m;
        #pragma omp simd
        for (int64_t j = 0; j < m; j++)
            grad_x_i[j] = y_i[j] * (grad_y_i[j] - inner);
    }
    return 0;
}
