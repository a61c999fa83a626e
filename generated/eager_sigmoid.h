/*
 * Sigmoid, written by symgrad.
 * Backward PROVED.
 */
#ifndef SYMGRAD_EAGER_SIGMOID_H
#define SYMGRAD_EAGER_SIGMOID_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

int64_t eager_sigmoid_forward_workspace(int64_t n);
int eager_sigmoid_forward(int64_t n, const float *x, float *output, void *workspace);
int64_t eager_sigmoid_backward_workspace(int64_t n);
int eager_sigmoid_backward(int64_t n, const float *output, const float *grad_output, float *grad_x, void *workspace);

#ifdef __cplusplus
}
#endif

#endif
