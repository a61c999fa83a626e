/*
 * Softmax, written by symgrad.
 * Backward PROVED.
 */
#ifndef SYMGRAD_NN_SOFTMAX_H
#define SYMGRAD_NN_SOFTMAX_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

int64_t nn_softmax_forward_workspace(int64_t n, int64_t m);
int nn_softmax_forward(int64_t n, int64_t m, const float *x, int64_t x_s0, float *y, void *workspace);
int64_t nn_softmax_backward_workspace(int64_t n, int64_t m);
int nn_softmax_backward(int64_t n, int64_t m, const float *y, int64_t y_s0, const float *grad_y, int64_t grad_y_s0, float *grad_x, void *workspace);

#ifdef __cplusplus
}
#endif

#endif
