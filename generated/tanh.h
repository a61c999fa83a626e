/*
 * Tanh, written by symgrad.
 * Backward PROVED.
 */
#ifndef SYMGRAD_TANH_H
#define SYMGRAD_TANH_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

int64_t tanh_forward_workspace(int64_t n, int64_t m);
int tanh_forward(int64_t n, int64_t m, const float *x, float *y, void *workspace);
int64_t tanh_backward_workspace(int64_t n, int64_t m);
int tanh_backward(int64_t n, int64_t m, const float *y, const float *grad_y, float *grad_x, void *workspace);

#ifdef __cplusplus
}
#endif

#endif
