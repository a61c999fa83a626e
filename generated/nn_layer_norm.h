/*
 * LayerNorm, written by symgrad.
 * Backward PROVED for eps = 1e-05, axes = (-1,); for weight and bias given.
 * This C VALIDATED against what was traced, for all sizes and over the reals.
 * Each kernel takes the sizes that it needs first, in this order: n, m.
 * Arrays are C-contiguous, but for the inputs with strides behind them: x_s0 counts elements from
 *     one index of axis 0 to the next. No output overlaps any other array.
 * The workspace begins at a multiple of 64 bytes and has the number of bytes that
 *     <kernel>_workspace returns for the same sizes; it may be NULL for 0. Its content means
 *     nothing before and after the call.
 * A kernel returns 0 once its outputs are written, or else a number that is explained above it;
 *     then they may hold anything. It keeps no state and allocates nothing.
 * Digits at the end, one for each of x, weight, bias: 1 where its gradient is an output.
 */
#ifndef SYMGRAD_NN_LAYER_NORM_H
#define SYMGRAD_NN_LAYER_NORM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * in:   x f32[n m], weight f32[m], bias f32[m]
 * out:  y f32[n m]
 */
int64_t nn_layer_norm_forward_workspace(int64_t n, int64_t m);
int nn_layer_norm_forward(int64_t n, int64_t m, const float *x, int64_t x_s0, const float *weight, const float *bias, float *y, void *workspace);

/*
 * in:   x f32[n m], weight f32[m], grad_y f32[n m]
 * out:  grad_x f32[n m], grad_weight f32[m], grad_bias f32[m]
 */
int64_t nn_layer_norm_backward_workspace(int64_t n, int64_t m);
int nn_layer_norm_backward(int64_t n, int64_t m, const float *x, int64_t x_s0, const float *weight, const float *grad_y, int64_t grad_y_s0, float *grad_x, float *grad_weight, float *grad_bias, void *workspace);

/*
 * in:   x f32[n m], weight f32[m], grad_y f32[n m]
 * out:  grad_x f32[n m], grad_weight f32[m]
 */
int64_t nn_layer_norm_backward_110_workspace(int64_t n, int64_t m);
int nn_layer_norm_backward_110(int64_t n, int64_t m, const float *x, int64_t x_s0, const float *weight, const float *grad_y, int64_t grad_y_s0, float *grad_x, float *grad_weight, void *workspace);

/*
 * in:   x f32[n m], weight f32[m], grad_y f32[n m]
 * out:  grad_x f32[n m], grad_bias f32[m]
 */
int64_t nn_layer_norm_backward_101_workspace(int64_t n, int64_t m);
int nn_layer_norm_backward_101(int64_t n, int64_t m, const float *x, int64_t x_s0, const float *weight, const float *grad_y, int64_t grad_y_s0, float *grad_x, float *grad_bias, void *workspace);

/*
 * in:   x f32[n m], weight f32[m], grad_y f32[n m]
 * out:  grad_x f32[n m]
 */
int64_t nn_layer_norm_backward_100_workspace(int64_t n, int64_t m);
int nn_layer_norm_backward_100(int64_t n, int64_t m, const float *x, int64_t x_s0, const float *weight, const float *grad_y, int64_t grad_y_s0, float *grad_x, void *workspace);

/*
 * in:   x f32[n m], grad_y f32[n m]
 * out:  grad_weight f32[m], grad_bias f32[m]
 */
int64_t nn_layer_norm_backward_011_workspace(int64_t n, int64_t m);
int nn_layer_norm_backward_011(int64_t n, int64_t m, const float *x, int64_t x_s0, const float *grad_y, int64_t grad_y_s0, float *grad_weight, float *grad_bias, void *workspace);

/*
 * in:   x f32[n m], grad_y f32[n m]
 * out:  grad_weight f32[m]
 */
int64_t nn_layer_norm_backward_010_workspace(int64_t n, int64_t m);
int nn_layer_norm_backward_010(int64_t n, int64_t m, const float *x, int64_t x_s0, const float *grad_y, int64_t grad_y_s0, float *grad_weight, void *workspace);

/*
 * in:   grad_y f32[n m]
 * out:  grad_bias f32[m]
 */
int64_t nn_layer_norm_backward_001_workspace(int64_t n, int64_t m);
int nn_layer_norm_backward_001(int64_t n, int64_t m, const float *grad_y, int64_t grad_y_s0, float *grad_bias, void *workspace);

#ifdef __cplusplus
}
#endif

#endif
