/*
 * LayerNorm, written by symgrad.
 * Backward PROVED.
 */
#ifndef SYMGRAD_EAGER_LAYER_NORM_H
#define SYMGRAD_EAGER_LAYER_NORM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

int64_t eager_layer_norm_workspace(int64_t n, int64_t m);
int eager_layer_norm(int64_t n, int64_t m, const float *x, int64_t x_s0, const float *weight, const float *bias, float *output, void *workspace);
int64_t eager_layer_norm_forward_workspace(int64_t n, int64_t m);
int eager_layer_norm_forward(int64_t n, int64_t m, const float *x, int64_t x_s0, const float *weight, const float *bias, float *output, float *residual_2, float *residual_3, void *workspace);
int64_t eager_layer_norm_backward_workspace(int64_t n, int64_t m);
int eager_layer_norm_backward(int64_t n, int64_t m, const float *x, int64_t x_s0, const float *weight, const float *residual_2, const float *residual_3, const float *grad_output, int64_t grad_output_s0, float *grad_x, float *grad_weight, float *grad_bias, void *workspace);
int64_t eager_layer_norm_backward_110_workspace(int64_t n, int64_t m);
int eager_layer_norm_backward_110(int64_t n, int64_t m, const float *x, int64_t x_s0, const float *weight, const float *residual_2, const float *residual_3, const float *grad_output, int64_t grad_output_s0, float *grad_x, float *grad_weight, void *workspace);
int64_t eager_layer_norm_backward_101_workspace(int64_t n, int64_t m);
int eager_layer_norm_backward_101(int64_t n, int64_t m, const float *x, int64_t x_s0, const float *weight, const float *residual_2, const float *residual_3, const float *grad_output, int64_t grad_output_s0, float *grad_x, float *grad_bias, void *workspace);
int64_t eager_layer_norm_backward_100_workspace(int64_t n, int64_t m);
int eager_layer_norm_backward_100(int64_t n, int64_t m, const float *x, int64_t x_s0, const float *weight, const float *residual_2, const float *residual_3, const float *grad_output, int64_t grad_output_s0, float *grad_x, void *workspace);
int64_t eager_layer_norm_backward_011_workspace(int64_t n, int64_t m);
int eager_layer_norm_backward_011(int64_t n, int64_t m, const float *x, int64_t x_s0, const float *residual_2, const float *residual_3, const float *grad_output, int64_t grad_output_s0, float *grad_weight, float *grad_bias, void *workspace);
int64_t eager_layer_norm_backward_010_workspace(int64_t n, int64_t m);
int eager_layer_norm_backward_010(int64_t n, int64_t m, const float *x, int64_t x_s0, const float *residual_2, const float *residual_3, const float *grad_output, int64_t grad_output_s0, float *grad_weight, void *workspace);
int64_t eager_layer_norm_backward_001_workspace(int64_t n, int64_t m);
int eager_layer_norm_backward_001(int64_t n, int64_t m, const float *grad_output, int64_t grad_output_s0, float *grad_bias, void *workspace);

#ifdef __cplusplus
}
#endif

#endif
