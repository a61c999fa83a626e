/*
 * Softplus, written by symgrad.
 * Backward PROVED, under: x * 1 == 20.
 */
#ifndef SYMGRAD_NN_SOFTPLUS_H
#define SYMGRAD_NN_SOFTPLUS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

int64_t nn_softplus_forward_workspace(int64_t s_0, int64_t s_1);
int nn_softplus_forward(int64_t s_0, int64_t s_1, const float *x, float *y, void *workspace);
int64_t nn_softplus_backward_workspace(int64_t s_0, int64_t s_1);
int nn_softplus_backward(int64_t s_0, int64_t s_1, const float *x, const float *grad_y, float *grad_x, void *workspace);

#ifdef __cplusplus
}
#endif

#endif
