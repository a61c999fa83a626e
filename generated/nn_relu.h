/*
 * ReLU, written by symgrad.
 * Backward PROVED, under: x == 0 (yours gives 0 there).
 */
#ifndef SYMGRAD_NN_RELU_H
#define SYMGRAD_NN_RELU_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

int64_t nn_relu_forward_workspace(int64_t s_0, int64_t s_1);
int nn_relu_forward(int64_t s_0, int64_t s_1, const float *x, float *y, void *workspace);
int64_t nn_relu_backward_workspace(int64_t s_0, int64_t s_1);
int nn_relu_backward(int64_t s_0, int64_t s_1, const float *y, const float *grad_y, float *grad_x, void *workspace);

#ifdef __cplusplus
}
#endif

#endif
