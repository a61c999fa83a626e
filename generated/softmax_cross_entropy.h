/*
 * SoftmaxCrossEntropy, written by symgrad.
 * Backward PROVED, under: 0 <= labels < c.
 */
#ifndef SYMGRAD_SOFTMAX_CROSS_ENTROPY_H
#define SYMGRAD_SOFTMAX_CROSS_ENTROPY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

int64_t softmax_cross_entropy_workspace(int64_t n, int64_t c);
int softmax_cross_entropy(int64_t n, int64_t c, const float *logits, int64_t logits_s0, const int64_t *labels, float *loss, void *workspace);
int64_t softmax_cross_entropy_forward_workspace(int64_t n, int64_t c);
int softmax_cross_entropy_forward(int64_t n, int64_t c, const float *logits, int64_t logits_s0, const int64_t *labels, float *loss, float *log_probabilities, void *workspace);
int64_t softmax_cross_entropy_backward_workspace(int64_t n, int64_t c);
int softmax_cross_entropy_backward(int64_t n, int64_t c, const int64_t *labels, const float *log_probabilities, int64_t log_probabilities_s0, const float *grad_loss, float *grad_logits, void *workspace);

#ifdef __cplusplus
}
#endif

#endif
