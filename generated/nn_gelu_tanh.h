/*
 * GELUTanh, written by symgrad.
 * Backward PROVED.
 */
#ifndef SYMGRAD_NN_GELU_TANH_H
#define SYMGRAD_NN_GELU_TANH_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

int64_t nn_gelu_tanh_forward_workspace(int64_t s_0, int64_t s_1);
int nn_gelu_tanh_forward(int64_t s_0, int64_t s_1, const float *x, float *y, void *workspace);
int64_t nn_gelu_tanh_backward_workspace(int64_t s_0, int64_t s_1);
int nn_gelu_tanh_backward(int64_t s_0, int64_t s_1, const float *x, const float *grad_y, float *grad_x, void *workspace);

#ifdef __cplusplus
}
#endif

#endif
