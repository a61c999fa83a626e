/*
 * Erf, written by symgrad.
 * Backward PROVED (derived: no backward written), literal: 1.1283791670955126 is read as
 *     2/sqrt(pi) (off by 2.6e-17).
 * This C VALIDATED against what was traced, for all sizes and over the reals.
 * Each kernel takes the sizes that it needs first, in this order: n.
 * Arrays are C-contiguous, but for the inputs with strides behind them: x_s0 counts elements from
 *     one index of axis 0 to the next. No output overlaps any other array.
 * The workspace begins at a multiple of 64 bytes and has the number of bytes that
 *     <kernel>_workspace returns for the same sizes; it may be NULL for 0. Its content means
 *     nothing before and after the call.
 * A kernel returns 0 once its outputs are written, or else a number that is explained above it;
 *     then they may hold anything. It keeps no state and allocates nothing.
 */
#ifndef SYMGRAD_NN_ERF_H
#define SYMGRAD_NN_ERF_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * in:   x f32[n]
 * out:  output f32[n]
 */
int64_t nn_erf_forward_workspace(int64_t n);
int nn_erf_forward(int64_t n, const float *x, float *output, void *workspace);

/*
 * in:   x f32[n], grad_output f32[n]
 * out:  grad_x f32[n]
 */
int64_t nn_erf_backward_workspace(int64_t n);
int nn_erf_backward(int64_t n, const float *x, const float *grad_output, float *grad_x, void *workspace);

#ifdef __cplusplus
}
#endif

#endif
