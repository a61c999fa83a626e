/*
 * SoftmaxCrossEntropy, written by symgrad.
 * Backward PROVED, under: 0 <= labels < c.
 * Each kernel takes the sizes that it needs first, in this order: n, c.
 * Arrays are C-contiguous, but for the inputs with strides behind them: x_s0 counts elements from
 *     one index of axis 0 to the next. No output overlaps any other array.
 * The workspace begins at a multiple of 64 bytes and has the number of bytes that
 *     <kernel>_workspace returns for the same sizes; it may be NULL for 0. Its content means
 *     nothing before and after the call.
 * A kernel returns 0 once its outputs are written, or else a number that is explained above it;
 *     then they may hold anything. It keeps no state and allocates nothing.
 */
#ifndef SYMGRAD_SOFTMAX_CROSS_ENTROPY_H
#define SYMGRAD_SOFTMAX_CROSS_ENTROPY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * in:   logits f32[n c], labels i64[n]
 * out:  loss f32[]
 * returns 1: an index is out of range, unless 0 <= labels[i] < c
 */
int64_t softmax_cross_entropy_inference_workspace(int64_t n, int64_t c);
int softmax_cross_entropy_inference(int64_t n, int64_t c, const float *logits, int64_t logits_s0, const int64_t *labels, float *loss, void *workspace);

/*
 * in:   logits f32[n c], labels i64[n]
 * out:  loss f32[], log_probabilities f32[n c]
 * returns 1: an index is out of range, unless 0 <= labels[i] < c
 */
int64_t softmax_cross_entropy_forward_workspace(int64_t n, int64_t c);
int softmax_cross_entropy_forward(int64_t n, int64_t c, const float *logits, int64_t logits_s0, const int64_t *labels, float *loss, float *log_probabilities, void *workspace);

/*
 * in:   labels i64[n], log_probabilities f32[n c], grad_loss f32[]
 * out:  grad_logits f32[n c]
 */
int64_t softmax_cross_entropy_backward_workspace(int64_t n, int64_t c);
int softmax_cross_entropy_backward(int64_t n, int64_t c, const int64_t *labels, const float *log_probabilities, int64_t log_probabilities_s0, const float *grad_loss, float *grad_logits, void *workspace);

#ifdef __cplusplus
}
#endif

#endif
