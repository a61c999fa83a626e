/*
 * LayerNorm, written by symgrad.
 * Backward PROVED.
 */
#ifndef SYMGRAD_NN_LAYER_NORM_H
#define SYMGRAD_NN_LAYER_NORM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

int64_t nn_layer_norm_forward_workspace(int64_t n, int64_t m);
int nn_layer_norm_forward(int64_t n, int64_t m, const float *x, int64_t x_s0, const float *weight, const float *bias, float *y, void *workspace);
int64_t nn_layer_norm_backward_workspace(int64_t n, int64_t m);
int nn_layer_norm_backward(int64_t n, int64_t m, const float *x, int64_t x_s0, const float *weight, const float *grad_y, int64_t grad_y_s0, float *grad_x, float *grad_weight, float *grad_bias, void *workspace);
int64_t nn_layer_norm_backward_110_workspace(int64_t n, int64_t m);
int nn_layer_norm_backward_110(int64_t n, int64_t m, const float *x, int64_t x_s0, const float *weight, const float *grad_y, int64_t grad_y_s0, float *grad_x, float *grad_weight, void *workspace);
int64_t nn_layer_norm_backward_101_workspace(int64_t n, int64_t m);
int nn_layer_norm_backward_101(int64_t n, int64_t m, const float *x, int64_t x_s0, const float *weight, const float *grad_y, int64_t grad_y_s0, float *grad_x, float *grad_bias, void *workspace);
int64_t nn_layer_norm_backward_100_workspace(int64_t n, int64_t m);
int nn_layer_norm_backward_100(int64_t n, int64_t m, const float *x, int64_t x_s0, const float *weight, const float *grad_y, int64_t grad_y_s0, float *grad_x, void *workspace);
int64_t nn_layer_norm_backward_011_workspace(int64_t n, int64_t m);
int nn_layer_norm_backward_011(int64_t n, int64_t m, const float *x, int64_t x_s0, const float *grad_y, int64_t grad_y_s0, float *grad_weight, float *grad_bias, void *workspace);
int64_t nn_layer_norm_backward_010_workspace(int64_t n, int64_t m);
int nn_layer_norm_backward_010(int64_t n, int64_t m, const float *x, int64_t x_s0, const float *grad_y, int64_t grad_y_s0, float *grad_weight, void *workspace);
int64_t nn_layer_norm_backward_001_workspace(int64_t n, int64_t m);
int nn_layer_norm_backward_001(int64_t n, int64_t m, const float *grad_y, int64_t grad_y_s0, float *grad_bias, void *workspace);

#ifdef __cplusplus
}
#endif

#endif
