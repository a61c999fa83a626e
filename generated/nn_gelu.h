/*
 * GELU, written by symgrad.
 * Backward PROVED, under: 1.4142135623730951 is read as sqrt(2) (off by 5.1e-17);
 *     2.5066282746310002 is read as sqrt(2*pi) (off by 3.0e-16).
 */
#ifndef SYMGRAD_NN_GELU_H
#define SYMGRAD_NN_GELU_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

int64_t nn_gelu_forward_workspace(int64_t s_0, int64_t s_1);
int nn_gelu_forward(int64_t s_0, int64_t s_1, const float *x, float *y, void *workspace);
int64_t nn_gelu_backward_workspace(int64_t s_0, int64_t s_1);
int nn_gelu_backward(int64_t s_0, int64_t s_1, const float *x, const float *grad_y, float *grad_x, void *workspace);

#ifdef __cplusplus
}
#endif

#endif
