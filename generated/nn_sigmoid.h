/*
 * Sigmoid, written by symgrad.
 * Backward PROVED.
 */
#ifndef SYMGRAD_NN_SIGMOID_H
#define SYMGRAD_NN_SIGMOID_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

int64_t nn_sigmoid_forward_workspace(int64_t s_0, int64_t s_1);
int nn_sigmoid_forward(int64_t s_0, int64_t s_1, const float *x, float *y, void *workspace);
int64_t nn_sigmoid_backward_workspace(int64_t s_0, int64_t s_1);
int nn_sigmoid_backward(int64_t s_0, int64_t s_1, const float *y, const float *grad_y, float *grad_x, void *workspace);

#ifdef __cplusplus
}
#endif

#endif
