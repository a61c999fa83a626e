/*
 * Softmax, written by symgrad.
 * Backward PROVED for dim = -1.
 * This C VALIDATED against what was traced, for all sizes and over the reals.
 * Each kernel takes the sizes that it needs first, in this order: n, m.
 * Arrays are C-contiguous, but for the inputs with strides behind them: x_s0 counts elements from
 *     one index of axis 0 to the next. No output overlaps any other array.
 * The workspace begins at a multiple of 64 bytes and has the number of bytes that
 *     <kernel>_workspace returns for the same sizes; it may be NULL for 0. Its content means
 *     nothing before and after the call.
 * A kernel returns 0 once its outputs are written, or else a number that is explained above it;
 *     then they may hold anything. It keeps no state and allocates nothing.
 */
#ifndef SYMGRAD_NN_SOFTMAX_H
#define SYMGRAD_NN_SOFTMAX_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * in:   x f32[n m]
 * out:  y f32[n m]
 */
int64_t nn_softmax_forward_workspace(int64_t n, int64_t m);
int nn_softmax_forward(int64_t n, int64_t m, const float *x, int64_t x_s0, float *y, void *workspace);

/*
 * in:   y f32[n m], grad_y f32[n m]
 * out:  grad_x f32[n m]
 */
int64_t nn_softmax_backward_workspace(int64_t n, int64_t m);
int nn_softmax_backward(int64_t n, int64_t m, const float *y, int64_t y_s0, const float *grad_y, int64_t grad_y_s0, float *grad_x, void *workspace);

#ifdef __cplusplus
}
#endif

#endif
