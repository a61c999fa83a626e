/*
 * Relu, written by symgrad.
 * Backward PROVED, under: x == 0 (yours gives 0 there).
 */
#ifndef SYMGRAD_EAGER_RELU_H
#define SYMGRAD_EAGER_RELU_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

int64_t eager_relu_forward_workspace(int64_t n);
int eager_relu_forward(int64_t n, const float *x, float *output, void *workspace);
int64_t eager_relu_backward_workspace(int64_t n);
int eager_relu_backward(int64_t n, const float *output, const float *grad_output, float *grad_x, void *workspace);

#ifdef __cplusplus
}
#endif

#endif
