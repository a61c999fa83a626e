/*
 * LogSigmoid, written by symgrad.
 * Backward PROVED.
 */
#ifndef SYMGRAD_EAGER_LOGSIGMOID_H
#define SYMGRAD_EAGER_LOGSIGMOID_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

int64_t eager_logsigmoid_forward_workspace(int64_t n);
int eager_logsigmoid_forward(int64_t n, const float *x, float *output, void *workspace);
int64_t eager_logsigmoid_backward_workspace(int64_t n);
int eager_logsigmoid_backward(int64_t n, const float *x, const float *grad_output, float *grad_x, void *workspace);

#ifdef __cplusplus
}
#endif

#endif
