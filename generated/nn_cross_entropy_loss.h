/*
 * CrossEntropyLoss, written by symgrad.
 * Backward PROVED, under: 0 <= labels < c.
 */
#ifndef SYMGRAD_NN_CROSS_ENTROPY_LOSS_H
#define SYMGRAD_NN_CROSS_ENTROPY_LOSS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

int64_t nn_cross_entropy_loss_forward_workspace(int64_t n, int64_t c);
int nn_cross_entropy_loss_forward(int64_t n, int64_t c, const float *x, int64_t x_s0, const int64_t *labels, float *output, void *workspace);
int64_t nn_cross_entropy_loss_backward_workspace(int64_t n, int64_t c);
int nn_cross_entropy_loss_backward(int64_t n, int64_t c, const float *x, int64_t x_s0, const int64_t *labels, const float *grad_output, float *grad_x, void *workspace);

#ifdef __cplusplus
}
#endif

#endif
