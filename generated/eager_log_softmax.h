/*
 * LogSoftmax, written by symgrad.
 * Backward PROVED, under: x[i, j] - x[i, k] == 0; x[i, l] - x[i, m] == 0.
 */
#ifndef SYMGRAD_EAGER_LOG_SOFTMAX_H
#define SYMGRAD_EAGER_LOG_SOFTMAX_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

int64_t eager_log_softmax_workspace(int64_t n, int64_t m);
int eager_log_softmax(int64_t n, int64_t m, const float *x, int64_t x_s0, float *output, void *workspace);
int64_t eager_log_softmax_forward_workspace(int64_t n, int64_t m);
int eager_log_softmax_forward(int64_t n, int64_t m, const float *x, int64_t x_s0, float *output, float *residual_1, float *residual_2, void *workspace);
int64_t eager_log_softmax_backward_workspace(int64_t n, int64_t m);
int eager_log_softmax_backward(int64_t n, int64_t m, const float *x, int64_t x_s0, const float *residual_1, const float *residual_2, const float *grad_output, int64_t grad_output_s0, float *grad_x, void *workspace);

#ifdef __cplusplus
}
#endif

#endif
