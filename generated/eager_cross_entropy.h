/*
 * CrossEntropy, written by symgrad.
 * Backward PROVED, under: 0 <= labels < m; x[i, j] - x[i, k] == 0; x[i, l] - x[i, m] == 0.
 */
#ifndef SYMGRAD_EAGER_CROSS_ENTROPY_H
#define SYMGRAD_EAGER_CROSS_ENTROPY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

int64_t eager_cross_entropy_workspace(int64_t n, int64_t m);
int eager_cross_entropy(int64_t n, int64_t m, const float *x, int64_t x_s0, const int64_t *labels, float *output, void *workspace);
int64_t eager_cross_entropy_forward_workspace(int64_t n, int64_t m);
int eager_cross_entropy_forward(int64_t n, int64_t m, const float *x, int64_t x_s0, const int64_t *labels, float *output, float *residual_2, float *residual_3, void *workspace);
int64_t eager_cross_entropy_backward_workspace(int64_t n, int64_t m);
int eager_cross_entropy_backward(int64_t n, int64_t m, const float *x, int64_t x_s0, const int64_t *labels, const float *residual_2, const float *residual_3, const float *grad_output, float *grad_x, void *workspace);

#ifdef __cplusplus
}
#endif

#endif
