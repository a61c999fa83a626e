/*
 * ELU, written by symgrad.
 * Backward PROVED for alpha = 1.0.
 * This C VALIDATED against what was traced, for all sizes and over the reals.
 * Each kernel takes the sizes that it needs first, in this order: s.
 * *s is any number of axes, taken as one: s is the number of all elements.
 * Arrays are C-contiguous, but for the inputs with strides behind them: x_s0 counts elements from
 *     one index of axis 0 to the next. No output overlaps any other array.
 * The workspace begins at a multiple of 64 bytes and has the number of bytes that
 *     <kernel>_workspace returns for the same sizes; it may be NULL for 0. Its content means
 *     nothing before and after the call.
 * A kernel returns 0 once its outputs are written, or else a number that is explained above it;
 *     then they may hold anything. It keeps no state and allocates nothing.
 */
#ifndef SYMGRAD_NN_ELU_H
#define SYMGRAD_NN_ELU_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * in:   x f32[s]
 * out:  y f32[s]
 */
int64_t nn_elu_forward_workspace(int64_t s);
int nn_elu_forward(int64_t s, const float *x, float *y, void *workspace);

/*
 * in:   x f32[s], grad_y f32[s]
 * out:  grad_x f32[s]
 */
int64_t nn_elu_backward_workspace(int64_t s);
int nn_elu_backward(int64_t s, const float *x, const float *grad_y, float *grad_x, void *workspace);

#ifdef __cplusplus
}
#endif

#endif
