/*
 * CrossEntropyLoss, written by symgrad.
 * Backward PROVED for ignore_index = -100, reduction = 'mean', label_smoothing = 0.0 if 0 <=
 *     labels < c.
 * This C VALIDATED against what was traced, for all sizes and over the reals.
 * Each kernel takes the sizes that it needs first, in this order: n, c.
 * Arrays are C-contiguous, but for the inputs with strides behind them: x_s0 counts elements from
 *     one index of axis 0 to the next. No output overlaps any other array.
 * The workspace begins at a multiple of 64 bytes and has the number of bytes that
 *     <kernel>_workspace returns for the same sizes; it may be NULL for 0. Its content means
 *     nothing before and after the call.
 * A kernel returns 0 once its outputs are written, or else a number that is explained above it;
 *     then they may hold anything. It keeps no state and allocates nothing.
 */
#ifndef SYMGRAD_NN_CROSS_ENTROPY_H
#define SYMGRAD_NN_CROSS_ENTROPY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * in:   x f32[n c], labels i64[n]
 * out:  output f32[]
 * returns 1: an index is out of range, unless 0 <= where(labels[i] != -100, labels[i], 0) < c
 */
int64_t nn_cross_entropy_forward_workspace(int64_t n, int64_t c);
int nn_cross_entropy_forward(int64_t n, int64_t c, const float *x, int64_t x_s0, const int64_t *labels, float *output, void *workspace);

/*
 * in:   x f32[n c], labels i64[n], grad_output f32[]
 * out:  grad_x f32[n c]
 */
int64_t nn_cross_entropy_backward_workspace(int64_t n, int64_t c);
int nn_cross_entropy_backward(int64_t n, int64_t c, const float *x, int64_t x_s0, const int64_t *labels, const float *grad_output, float *grad_x, void *workspace);

#ifdef __cplusplus
}
#endif

#endif
