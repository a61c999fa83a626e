/*
 * LogSumExp, written by symgrad.
 * Backward PROVED, under: x[i, j] - x[i, k] == 0; x[i, l] - x[i, m] == 0.
 */
#ifndef SYMGRAD_EAGER_LOGSUMEXP_H
#define SYMGRAD_EAGER_LOGSUMEXP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

int64_t eager_logsumexp_workspace(int64_t n, int64_t m);
int eager_logsumexp(int64_t n, int64_t m, const float *x, int64_t x_s0, float *output, void *workspace);
int64_t eager_logsumexp_forward_workspace(int64_t n, int64_t m);
int eager_logsumexp_forward(int64_t n, int64_t m, const float *x, int64_t x_s0, float *output, float *residual_1, float *residual_2, void *workspace);
int64_t eager_logsumexp_backward_workspace(int64_t n, int64_t m);
int eager_logsumexp_backward(int64_t n, int64_t m, const float *x, int64_t x_s0, const float *residual_1, const float *residual_2, const float *grad_output, float *grad_x, void *workspace);

#ifdef __cplusplus
}
#endif

#endif
