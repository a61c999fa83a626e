/*
 * MSELoss, written by symgrad.
 * Backward PROVED for reduction = 'mean'.
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
 * Digits at the end, one for each of x, target: 1 where its gradient is an output.
 */
#ifndef SYMGRAD_NN_MSE_LOSS_H
#define SYMGRAD_NN_MSE_LOSS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * in:   x f32[s], target f32[s]
 * out:  output f32[]
 */
int64_t nn_mse_loss_forward_workspace(int64_t s);
int nn_mse_loss_forward(int64_t s, const float *x, const float *target, float *output, void *workspace);

/*
 * in:   x f32[s], target f32[s], grad_output f32[]
 * out:  grad_x f32[s], grad_target f32[s]
 */
int64_t nn_mse_loss_backward_workspace(int64_t s);
int nn_mse_loss_backward(int64_t s, const float *x, const float *target, const float *grad_output, float *grad_x, float *grad_target, void *workspace);

/*
 * in:   x f32[s], target f32[s], grad_output f32[]
 * out:  grad_x f32[s]
 */
int64_t nn_mse_loss_backward_10_workspace(int64_t s);
int nn_mse_loss_backward_10(int64_t s, const float *x, const float *target, const float *grad_output, float *grad_x, void *workspace);

/*
 * in:   x f32[s], target f32[s], grad_output f32[]
 * out:  grad_target f32[s]
 */
int64_t nn_mse_loss_backward_01_workspace(int64_t s);
int nn_mse_loss_backward_01(int64_t s, const float *x, const float *target, const float *grad_output, float *grad_target, void *workspace);

#ifdef __cplusplus
}
#endif

#endif
